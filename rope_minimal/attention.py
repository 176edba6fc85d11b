"""Causal self-attention with rotary queries and keys, for whole sequences or with a cache.

Queries and keys are projected, then rotated by their positions; the rotated keys are cached. Values
are not rotated. A cached key is not rotated again, unless the cache is raw.
"""

from typing import Any

import torch
from torch import Tensor, nn

from . import rotation
from .cache import KVCache, check_cache
from .checks import check_count, check_dim, check_flag, check_float, check_mask, integers

__all__ = ["RotarySelfAttention"]


class RotarySelfAttention(nn.Module):
    """Causal multi-head self-attention with rotary position embedding.

    Parameters
    ----------
    embed_dim
        Width of the input and of the output.
    num_heads
        Heads of the queries.
    num_kv_heads
        Heads of the keys and values; ``num_heads`` by default, or a divisor of it (grouped-query
        attention).
    head_dim
        Width of one head; ``embed_dim / num_heads`` by default.
    rotary_dim
        Rotated width of one head, even; ``head_dim`` by default. Other channels carry no position.
    max_seq_len
        Positions 0 to ``max_seq_len - 1`` can be rotated.
    base
        Base of the inverse frequencies.
    interleaved
        Pair channels ``(2i, 2i+1)`` (GPT-J) instead of ``(i, i + rotary_dim/2)`` (Llama).
    bias
        Give the four projections a bias.

    Notes
    -----
    The parameters are those of a Llama layer (``q_proj``, ``k_proj``, ``v_proj``, ``o_proj``), so
    that its state dict loads as it is; the rotation has none.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        *,
        head_dim: int | None = None,
        rotary_dim: int | None = None,
        max_seq_len: int = 2048,
        base: float = 10000.0,
        interleaved: bool = False,
        bias: bool = False,
    ) -> None:
        super().__init__()
        check_flag("bias", bias)
        embed_dim, num_heads, num_kv_heads, head_dim, rotary_dim = _check_sizes(
            embed_dim, num_heads, num_kv_heads, head_dim, rotary_dim
        )
        self.embed_dim, self.num_heads, self.num_kv_heads = embed_dim, num_heads, num_kv_heads
        self.head_dim = head_dim
        self.cache_shape = (num_kv_heads, head_dim, head_dim)
        self.q_proj = nn.Linear(embed_dim, num_heads * head_dim, bias=bias)
        self.k_proj = nn.Linear(embed_dim, num_kv_heads * head_dim, bias=bias)
        self.v_proj = nn.Linear(embed_dim, num_kv_heads * head_dim, bias=bias)
        self.o_proj = nn.Linear(num_heads * head_dim, embed_dim, bias=bias)
        self.rope = rotation.RotaryEmbedding(rotary_dim, max_seq_len, base, interleaved=interleaved)

    def forward(
        self,
        x: Tensor,
        *,
        cache: KVCache | None = None,
        position_ids: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        attn_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the attention output of every token of ``x``, (B, T, embed_dim).

        Parameters
        ----------
        x
            Floating point, shape (B, T, embed_dim).
        cache
            The tokens before ``x``; its keys and values are appended. A cache holds no gradient:
            decode under ``torch.no_grad()``. Which tokens came before is given by the order of the
            calls, not by positions. Use one cache for each layer.
        position_ids
            Integers of shape (B, T) or (1, T). By default each row counts its own tokens, without
            padding, from the `next_position` of the cache.
        key_padding_mask
            True where a token of ``x`` is padding, shape (B, T); its values must be finite. No
            other token attends to it, now or from the cache; its own output is finite and unused.
        attn_mask
            True where a token of ``x`` may attend to a key, shape (B or 1, T, S) for the S tokens
            of the cache and of ``x``: the same document of a packed row, or an ancestor in a tree
            of drafts. It is combined with the causal mask.

        Returns
        -------
        Tensor of the shape and type of ``x``; under autocast it has the autocast type

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described, or the cache has another size or is full. The
            cache is then as it was before the call.
        """
        self._check(x, cache, key_padding_mask, attn_mask)
        padding = key_padding_mask
        if position_ids is None:
            start = 0 if cache is None else cache.next_position
            counted = x.new_ones(1, x.shape[1], dtype=torch.long) if padding is None else ~padding
            position_ids = (start + counted.cumsum(dim=-1) - 1).clamp(min=0)
        position_ids = integers("position_ids", position_ids, x.device).to(x.device)

        q, k, v = self._project(x)
        if cache is not None and cache.raw:  # its keys are rotated when they are read
            q = self.rope(q, position_ids=position_ids)
        else:
            q, k = self.rope(q, position_ids=position_ids), self.rope(k, position_ids=position_ids)
        if cache is not None:
            cache.check_storable(keys=k, values=v, queries=q)
            k, v, padding = cache._write(k, v, position_ids, padding)
        mask = _mask(x.shape[1], k.shape[-2], padding, attn_mask, x.device)
        y = self.o_proj(self._attend(q, k, v, mask).transpose(1, 2).flatten(-2))
        if cache is not None:
            cache._advance(x.shape[1], key_padding_mask)
        return y

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values (B, heads, T, width), before the rotation."""
        q, k, v = (
            torch.unflatten(project(x), -1, (-1, self.head_dim)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        return q, k, v

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Return the attention output of every head, (B, num_heads, T, width)."""
        return nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=True
        )

    def new_cache(
        self, batch_size: int, max_seq_len: int | None = None, *, raw: bool = False
    ) -> KVCache:
        """Return an empty cache of this layer's sizes, type and device.

        Under autocast keys have the autocast type: make a `KVCache` of that type instead.

        Parameters
        ----------
        batch_size
            Rows of the batch.
        max_seq_len
            Tokens that it can hold; the layer's ``max_seq_len`` by default.
        raw
            Store keys before their rotation, and rotate them whenever they are read.
        """
        length = self.rope.max_seq_len if max_seq_len is None else max_seq_len
        # a quantized projection has no floating-point parameter
        floats = (p for p in self.parameters() if p.is_floating_point())
        like, (heads, width, v_width) = next(floats, self.rope.cos), self.cache_shape
        return KVCache(
            *(batch_size, heads, length, width),
            v_head_dim=v_width,
            dtype=like.dtype,
            device=like.device,
            rope=self.rope,
            raw=raw,
        )

    def extra_repr(self) -> str:
        """Name the sizes that the projections and the rotation do not show."""
        heads = f"num_heads={self.num_heads}, num_kv_heads={self.num_kv_heads}"
        return f"{heads}, head_dim={self.head_dim}"

    def _check(
        self, x: Tensor, cache: KVCache | None, padding: Tensor | None, attn_mask: Tensor | None
    ) -> None:
        """Raise unless the arguments of a call fit this layer and each other."""
        check_float("x", x)
        if x.ndim != 3 or x.shape[-1] != self.embed_dim:
            raise ValueError(
                f"x must have shape (B, T, embed_dim = {self.embed_dim}), got {tuple(x.shape)}"
            )
        batch, length = x.shape[:2]
        if padding is not None:
            check_mask("key_padding_mask", padding, "(B, T)", [(batch, length)])
        if cache is not None:
            check_cache(cache, x, self)
            cache.check_room(length)
        if attn_mask is not None:
            square = (length, length + (0 if cache is None else cache.length))
            check_mask("attn_mask", attn_mask, "(B or 1, T, S)", [(batch, *square), (1, *square)])


def _check_sizes(
    embed_dim: Any, num_heads: Any, num_kv_heads: Any, head_dim: Any, rotary_dim: Any
) -> tuple[int, int, int, int, int]:
    """Return the sizes as ints, with their defaults; raise if they do not fit each other."""
    embed_dim = check_count("embed_dim", embed_dim)
    num_heads = check_count("num_heads", num_heads)
    num_kv_heads = num_heads if num_kv_heads is None else check_count("num_kv_heads", num_kv_heads)
    if num_heads % num_kv_heads:
        raise ValueError(f"num_kv_heads must divide num_heads = {num_heads}, got {num_kv_heads}")
    if head_dim is None:
        if embed_dim % num_heads:
            raise ValueError(f"num_heads must divide embed_dim = {embed_dim}, got {num_heads}")
        head_dim = embed_dim // num_heads
    head_dim = check_count("head_dim", head_dim)
    name, width = ("head_dim", head_dim) if rotary_dim is None else ("rotary_dim", rotary_dim)
    rotary_dim = check_dim(width, name)
    if rotary_dim > head_dim:
        raise ValueError(f"rotary_dim must be <= head_dim = {head_dim}, got {rotary_dim}")
    return embed_dim, num_heads, num_kv_heads, head_dim, rotary_dim


def _mask(
    length: int,
    total: int,
    padding: Tensor | None,
    attn_mask: Tensor | None,
    device: torch.device,
) -> Tensor | None:
    """Return the boolean mask (..., length, total), or None where ``is_causal`` is enough."""
    if padding is None and attn_mask is None and length == total:
        return None
    causal = torch.ones(length, total, dtype=torch.bool, device=device).tril(total - length)
    mask = causal if attn_mask is None else causal & attn_mask[:, None]
    return mask if padding is None else mask & ~padding[:, None, None, :]
