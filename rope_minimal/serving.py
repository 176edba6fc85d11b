"""Attention for serving: multi-head latent attention, packed sequences, context parallel.

`LatentAttention` is DeepSeek's (MLA): it caches one latent vector and one rotated key per token,
shared by all heads. A rotation between two projections keeps them from being merged, so MLA rotates
a separate part of each head.
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from .attention import RotarySelfAttention
from .checks import check_count, check_dim, check_flag, integers
from .rotation import RotaryEmbedding

__all__ = ["LatentAttention", "document_mask", "zigzag_indices"]


class LatentAttention(RotarySelfAttention):
    """Causal multi-head latent attention (MLA) with decoupled rotary position embedding.

    A token is cached as one latent vector, from which every head computes its unrotated key and its
    value, and one rotated key that all heads share: ``kv_lora_rank + qk_rope_head_dim`` numbers.

    Parameters
    ----------
    embed_dim
        Width of the input and of the output.
    num_heads
        Heads.
    q_lora_rank
        Width of the latent vector of the queries; None projects them directly.
    kv_lora_rank
        Width of the latent vector that is cached.
    qk_nope_head_dim
        Width of the part of a query or key that carries no position.
    qk_rope_head_dim
        Width of the part that is rotated, even.
    v_head_dim
        Width of a value.
    max_seq_len, base, interleaved
        As in `RotarySelfAttention`.
    absorb
        Multiply the key's matrix into the query and the value's into the output, and attend to
        the latent vectors, instead of computing every head's keys and values. It may be set at
        any time: the weights, the cache and, up to rounding, the result are the same. It reads
        the weight of ``kv_b_proj``, which must be an ``nn.Linear`` without bias or forward hooks.

    Notes
    -----
    DeepSeek-V2, section 2.1. The parameters are those of transformers' ``DeepseekV3Attention``
    without biases, so that its state dict loads unchanged. YaRN's factor on the scores is not here.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        q_lora_rank: int | None = None,
        kv_lora_rank: int,
        qk_nope_head_dim: int,
        qk_rope_head_dim: int,
        v_head_dim: int,
        max_seq_len: int = 2048,
        base: float = 10000.0,
        interleaved: bool = True,
        absorb: bool = False,
    ) -> None:
        nn.Module.__init__(self)
        check_flag("absorb", absorb)
        self.embed_dim = check_count("embed_dim", embed_dim)
        self.num_heads = check_count("num_heads", num_heads)
        self.kv_lora_rank = check_count("kv_lora_rank", kv_lora_rank)
        self.qk_nope_head_dim = check_count("qk_nope_head_dim", qk_nope_head_dim)
        self.qk_rope_head_dim = check_dim(qk_rope_head_dim, "qk_rope_head_dim")
        self.v_head_dim, self.absorb = check_count("v_head_dim", v_head_dim), absorb
        self.num_kv_heads, self.head_dim = 1, self.qk_nope_head_dim + self.qk_rope_head_dim
        self.cache_shape = (1, self.qk_rope_head_dim, self.kv_lora_rank)
        q_width = self.num_heads * self.head_dim
        if q_lora_rank is None:
            self.q_proj = nn.Linear(embed_dim, q_width, bias=False)
        else:
            rank = check_count("q_lora_rank", q_lora_rank)
            self.q_a_proj = nn.Linear(embed_dim, rank, bias=False)
            self.q_a_layernorm = nn.RMSNorm(rank, eps=1e-6)
            self.q_b_proj = nn.Linear(rank, q_width, bias=False)
        stored = self.kv_lora_rank + self.qk_rope_head_dim
        self.kv_a_proj_with_mqa = nn.Linear(embed_dim, stored, bias=False)
        self.kv_a_layernorm = nn.RMSNorm(self.kv_lora_rank, eps=1e-6)
        expanded = self.num_heads * (self.qk_nope_head_dim + self.v_head_dim)
        self.kv_b_proj = nn.Linear(self.kv_lora_rank, expanded, bias=False)
        self.o_proj = nn.Linear(self.num_heads * self.v_head_dim, embed_dim, bias=False)
        self.rope = RotaryEmbedding(
            self.qk_rope_head_dim, max_seq_len, base, interleaved=interleaved
        )

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, their rotary part first; the key to be rotated; the latent vector."""
        if hasattr(self, "q_proj"):
            q = self.q_proj(x)
        else:
            q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x)))
        q = q.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
        q = q.roll(self.qk_rope_head_dim, dims=-1)
        stored = self.kv_a_proj_with_mqa(x)[:, None]
        latent, k = stored.split((self.kv_lora_rank, self.qk_rope_head_dim), dim=-1)
        return q, k, self.kv_a_layernorm(latent).to(k.dtype)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Attend with rotated keys ``k`` and latent vectors ``v``, both (B, 1, S, width)."""
        widths = (self.qk_nope_head_dim, self.v_head_dim)
        check_flag("absorb", self.absorb)
        if self.absorb:  # q . (W c) = (W^T q) . c
            layer = self.kv_b_proj
            changed = "forward" in vars(layer) or layer._forward_hooks or layer._forward_pre_hooks
            if type(layer) is not nn.Linear or layer.bias is not None or changed:
                raise TypeError(
                    "absorb=True needs kv_b_proj to be an nn.Linear without bias, forward hooks or "
                    f"another forward, got {layer}"
                )
            weight = layer.weight.unflatten(0, (self.num_heads, -1))
            to_key, to_value = weight.split(widths, dim=1)
            rotated, unrotated = q.split((self.qk_rope_head_dim, self.qk_nope_head_dim), dim=-1)
            q, k = torch.cat((rotated, unrotated @ to_key), dim=-1), torch.cat((k, v), dim=-1)
            return self._scaled_attention(q, k, v, mask) @ to_value.mT
        expanded = self.kv_b_proj(v).squeeze(1).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        unrotated, v = expanded.split(widths, dim=-1)
        k = torch.cat((k.expand(-1, self.num_heads, -1, -1), unrotated), dim=-1)
        return self._scaled_attention(q, k, v, mask)

    def _scaled_attention(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Attend, with scores scaled by the width of a head, however wide the keys are."""
        return nn.functional.scaled_dot_product_attention(
            *(q, k, v),
            attn_mask=mask,
            is_causal=mask is None,
            scale=self.head_dim**-0.5,
            enable_gqa=True,
        )

    def extra_repr(self) -> str:
        """Name the sizes that the projections and the rotation do not show."""
        heads = f"num_heads={self.num_heads}, qk_nope_head_dim={self.qk_nope_head_dim}"
        return f"{heads}, v_head_dim={self.v_head_dim}, absorb={self.absorb}"


def document_mask(document_ids: Tensor) -> Tensor:
    """Return the ``attn_mask`` that keeps the documents of a packed row apart.

    Parameters
    ----------
    document_ids
        Integers of shape (B or 1, T): the document of every token.

    Returns
    -------
    Tensor of shape (B or 1, T, T), bool
    """
    ids = integers("document_ids", document_ids)
    if ids.ndim != 2:
        raise ValueError(f"document_ids must have shape (B or 1, T), got {tuple(ids.shape)}")
    return ids[:, :, None] == ids[:, None, :]


def zigzag_indices(cu_seqlens: Any, cp_size: int, cp_rank: int) -> Tensor:
    """Return the tokens of a packed row that one rank of a context-parallel group holds.

    Every document is cut into ``2 * cp_size`` equal pieces; rank r holds the pieces r and
    ``2 * cp_size - 1 - r``, so that all ranks have the same work under the causal mask.

    Parameters
    ----------
    cu_seqlens
        Start of every document and end of the last, as in FlashAttention: integers from 0 that do
        not decrease, ``[0, T]`` for a single one. Lengths must be multiples of ``2 * cp_size``.
    cp_size
        Ranks in the group.
    cp_rank
        The rank, 0 to ``cp_size - 1``.

    Returns
    -------
    Tensor of shape (T / cp_size,), int64, on the CPU
        Indices into the row. Subtract the start of each document for positions that begin at 0.

    Notes
    -----
    As ``thd_get_partitioned_indices`` of Transformer Engine. Megatron-LM cuts the same way.
    """
    seqlens = integers("cu_seqlens", cu_seqlens, "cpu")
    size, rank = check_count("cp_size", cp_size), check_count("cp_rank", cp_rank, least=0)
    if rank >= size:
        raise ValueError(f"cp_rank must be < cp_size = {size}, got {rank}")
    ends = seqlens.tolist()
    if seqlens.ndim != 1 or not ends or ends[0] != 0:
        raise ValueError(f"cu_seqlens must be a row of integers from 0, got {ends}")
    documents = list(pairwise(ends))
    if any(stop < start or (stop - start) % (2 * size) for start, stop in documents):
        raise ValueError(
            f"cu_seqlens must grow by multiples of 2 * cp_size = {2 * size}, got {ends}"
        )
    kept = [torch.empty(0, dtype=torch.long, device="cpu")]
    for start, stop in documents:
        if stop > start:
            pieces = torch.arange(start, stop, device="cpu").chunk(2 * size)
            kept += [pieces[rank], pieces[-1 - rank]]
    return torch.cat(kept)
