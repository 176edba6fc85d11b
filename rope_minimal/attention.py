"""Causal self-attention with rotary queries and keys, and the cache that decoding needs.

Project, rotate queries and keys by their positions, remember the rotated keys, attend. Values are
never rotated; nothing is rotated before the projection; nothing in the cache is rotated again.
"""

from typing import Any

import torch
from torch import Tensor, nn

from . import rotation
from .checks import check_count, check_dim, check_flag
from .tensors import check_float, check_floating_dtype, integers

__all__ = ["KVCache", "RotarySelfAttention"]


class KVCache:
    """Rotated keys and values of one layer for the tokens so far, in memory of a fixed size.

    Parameters
    ----------
    batch_size
        Rows of the memory: two tensors of shape (batch_size, num_kv_heads, max_seq_len, head_dim).
    num_kv_heads
        Heads of keys and values.
    max_seq_len
        Tokens that a row can hold.
    head_dim
        Channels of a head.
    dtype, device
        As those of the keys that will be stored.

    Attributes
    ----------
    next_position : Tensor of shape (batch_size, 1), int64
        The position that the next token of each row gets: one past the largest so far.
    """

    def __init__(
        self,
        batch_size: int,
        num_kv_heads: int,
        max_seq_len: int,
        head_dim: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        sizes = (batch_size, num_kv_heads, max_seq_len, head_dim)
        names = ("batch_size", "num_kv_heads", "max_seq_len", "head_dim")
        shape = [check_count(name, size) for name, size in zip(names, sizes, strict=True)]
        check_floating_dtype(dtype)
        self._keys = torch.zeros(shape, dtype=dtype, device=device)
        self._values = torch.zeros_like(self._keys)
        self._padding = torch.zeros(batch_size, max_seq_len, dtype=torch.bool, device=device)
        self.max_seq_len = max_seq_len
        self.reset()

    @property
    def length(self) -> int:
        """Tokens stored, padding included; a call of the layer that raises leaves it as it was.

        It cannot be set, for `next_position` would not follow.
        """
        return self._length

    @property
    def keys(self) -> Tensor:
        """The rotated keys stored, (batch_size, num_kv_heads, length, head_dim)."""
        return self._keys[:, :, : self.length]

    @property
    def values(self) -> Tensor:
        """The values stored, (batch_size, num_kv_heads, length, head_dim)."""
        return self._values[:, :, : self.length]

    def reset(self) -> None:
        """Forget every token; the memory stays."""
        self._length, self._padded = 0, False
        self.next_position = torch.zeros(
            self._keys.shape[0], 1, dtype=torch.long, device=self._keys.device
        )

    def _write(
        self, k: Tensor, v: Tensor, padding: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Write past the end, and return all keys, values and padding up to the new end."""
        new = slice(self.length, self.length + k.shape[-2])
        self._keys[:, :, new], self._values[:, :, new] = k, v
        self._padding[:, new] = False if padding is None else padding
        padded = self._padded or padding is not None
        return (
            self._keys[:, :, : new.stop],
            self._values[:, :, : new.stop],
            self._padding[:, : new.stop] if padded else None,
        )

    def _advance(self, position_ids: Tensor, padding: Tensor | None) -> None:
        """Make what was written part of the cache: the last step of a call that succeeded."""
        self._length += position_ids.shape[-1]
        self._padded = self._padded or padding is not None
        position_ids = position_ids.expand(self.next_position.shape[0], -1)
        if padding is not None:
            position_ids = position_ids.long().masked_fill(padding, -1)
        so_far = torch.cat((self.next_position - 1, position_ids), dim=-1)
        self.next_position = so_far.amax(dim=-1, keepdim=True) + 1


class RotarySelfAttention(nn.Module):
    """Causal multi-head self-attention whose queries and keys carry their positions as angles.

    Parameters
    ----------
    embed_dim
        Width of the input and of the output.
    num_heads
        Heads of the queries.
    num_kv_heads
        Heads of the keys and of the values: as many, or fewer that divide ``num_heads``
        (grouped-query attention).
    head_dim
        Width of one head; ``embed_dim / num_heads`` where not given.
    rotary_dim
        Rotated width of one head, even; the channels past it carry no position. ``head_dim``
        where not given.
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
    ) -> Tensor:
        """Let every token of ``x`` attend to itself and to what came before it.

        Parameters
        ----------
        x
            Floating point, shape (B, T, embed_dim).
        cache
            The tokens before ``x``. The keys and values of ``x`` are appended to it; it holds no
            gradient, so decode under ``torch.no_grad()``. What came before is decided by the
            order of the calls, not by the positions.
        position_ids
            Integers of shape (B, T) or (1, T). Where not given, each row counts its own tokens,
            without padding, and goes on from where the cache ends.
        key_padding_mask
            True where a token of ``x`` is padding, shape (B, T); what stands there must be finite.
            No other token attends to it, now or from the cache; the output at its own place means
            nothing, but is finite.

        Returns
        -------
        Tensor of the shape and type of ``x``; under autocast it has the autocast type

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described, or the cache has another size or is full. The
            cache is then as it was before the call.
        """
        self._check(x, cache, key_padding_mask)
        padding = key_padding_mask
        if position_ids is None:
            start = 0 if cache is None else cache.next_position
            counted = x.new_ones(1, x.shape[1], dtype=torch.long) if padding is None else ~padding
            position_ids = (start + counted.cumsum(dim=-1) - 1).clamp(min=0)
        position_ids = integers("position_ids", position_ids).to(x.device)

        q, k, v = (
            torch.unflatten(project(x), -1, (-1, self.head_dim)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = self.rope(q, position_ids=position_ids), self.rope(k, position_ids=position_ids)
        if cache is not None:
            _check_storable(q, k, v, cache)
            k, v, padding = cache._write(k, v, padding)
        mask = _mask(x.shape[1], k.shape[-2], padding, x.device)
        y = nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=True
        )
        y = self.o_proj(y.transpose(1, 2).flatten(-2))
        if cache is not None:
            cache._advance(position_ids, key_padding_mask)
        return y

    def new_cache(self, batch_size: int, max_seq_len: int | None = None) -> KVCache:
        """Return an empty cache of this layer's sizes, type and device.

        Under autocast keys have the autocast type: make a `KVCache` of that type instead.

        Parameters
        ----------
        batch_size
            Rows of the batch.
        max_seq_len
            Tokens that it can hold; the layer's ``max_seq_len`` where not given.
        """
        length = self.rope.max_seq_len if max_seq_len is None else max_seq_len
        weight = self._weight()
        sizes = (batch_size, self.num_kv_heads, length, self.head_dim)
        return KVCache(*sizes, dtype=weight.dtype, device=weight.device)

    def extra_repr(self) -> str:
        """Name the sizes that the projections and the rotation do not show."""
        heads = f"num_heads={self.num_heads}, num_kv_heads={self.num_kv_heads}"
        return f"{heads}, head_dim={self.head_dim}"

    def _weight(self) -> Tensor:
        """Return a tensor of the layer's type and device, whatever its projections are made of."""
        return next((p for p in self.parameters() if p.is_floating_point()), self.rope.table)

    def _check(self, x: Tensor, cache: KVCache | None, padding: Tensor | None) -> None:
        """Raise unless the arguments of a call fit this layer and each other."""
        check_float("x", x)
        shape = tuple(x.shape)
        if x.ndim != 3 or shape[-1] != self.embed_dim:
            raise ValueError(f"x must have shape (B, T, embed_dim = {self.embed_dim}), got {shape}")
        weight = self._weight()
        if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
            raise TypeError(f"x must have the layer's type {weight.dtype}, got {x.dtype}")
        if padding is not None:
            if not isinstance(padding, Tensor) or padding.dtype != torch.bool:
                got = padding.dtype if isinstance(padding, Tensor) else type(padding).__name__
                raise TypeError(f"key_padding_mask must be a tensor of torch.bool, got {got}")
            if padding.shape != shape[:2]:
                raise ValueError(
                    f"key_padding_mask must have shape (B, T) = {shape[:2]}, "
                    f"got {tuple(padding.shape)}"
                )
            if padding.device != x.device:
                raise ValueError(
                    f"key_padding_mask must be on {x.device} as x is, got {padding.device}"
                )
        if cache is None:
            return
        if not isinstance(cache, KVCache):
            raise TypeError(f"cache must be a KVCache, got {type(cache).__name__}")
        if cache._keys.device != x.device:
            raise ValueError(f"cache must be on {x.device} as x is, got {cache._keys.device}")
        rows, heads, capacity, width = cache._keys.shape
        wanted = {"batch size": (rows, shape[0]), "num_kv_heads": (heads, self.num_kv_heads)}
        wanted["head_dim"] = (width, self.head_dim)
        for name, (has, needs) in wanted.items():
            if has != needs:
                raise ValueError(f"cache has {name} {has}, but the call needs {needs}")
        if cache.length + shape[1] > capacity:
            raise ValueError(
                f"cache holds {cache.length} of max_seq_len = {capacity} tokens: "
                f"no room for {shape[1]} more"
            )


def _check_sizes(
    embed_dim: Any, num_heads: Any, num_kv_heads: Any, head_dim: Any, rotary_dim: Any
) -> tuple[int, int, int, int, int]:
    """Return the sizes as ints, with their defaults; raise if they misfit."""
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


def _check_storable(q: Tensor, k: Tensor, v: Tensor, cache: KVCache) -> None:
    """Raise unless the cache can take ``k`` and ``v``, and ``q`` attend to it, as they are."""
    if (k.dtype, k.device) != (cache._keys.dtype, cache._keys.device):
        raise ValueError(
            f"cache holds {cache._keys.dtype} on {cache._keys.device}, "
            f"but the keys are {k.dtype} on {k.device}"
        )
    if q.requires_grad or k.requires_grad or v.requires_grad:
        raise ValueError("cache holds no gradient: decode under torch.no_grad()")


def _mask(length: int, total: int, padding: Tensor | None, device: torch.device) -> Tensor | None:
    """Return who may be seen, True (.., length, total); None where causal order says it all."""
    if padding is None and length == total:
        return None
    causal = torch.ones(length, total, dtype=torch.bool, device=device).tril(total - length)
    if padding is None:
        return causal
    return causal & ~padding[:, None, None, :]
