"""Attention as it is served: a head split so that little is cached, packed rows, shards of a row.

`LatentAttention` is DeepSeek's (MLA): a token leaves one short vector and one turned key for all
heads. The rotation stands between the two matrices that one would like to merge; what is rotated
is therefore a part of the head by itself.
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from .attention import RotarySelfAttention
from .checks import check_count, check_dim, check_flag, integers, moved_to
from .rotation import RotaryEmbedding

__all__ = ["LatentAttention", "document_mask", "zigzag_indices"]


class LatentAttention(RotarySelfAttention):
    """Causal multi-head latent attention (MLA): part of a head rests, part of it turns.

    A token is cached as one latent vector, from which every head makes its resting key and its
    value, and one turned key that all heads share: ``kv_lora_rank + qk_rope_head_dim`` numbers.

    Parameters
    ----------
    embed_dim
        Width of the input and of the output.
    num_heads
        Heads.
    q_lora_rank
        Width of the latent vector that queries are made from; None makes them directly.
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
        Attend to the latent vectors as they are, the key's matrix multiplied into the query and
        the value's into the output, instead of making every head's keys and values. May be set
        at any time: the weights, the cache and, up to rounding, the result are the same. It reads
        the weight of ``kv_b_proj``, which must therefore be an ``nn.Linear`` without a bias and
        without forward hooks, its ``forward`` its own. Hooks for all modules do not see it then.

    Notes
    -----
    DeepSeek-V2, section 2.1. The parameters are those of transformers' ``DeepseekV3Attention``
    without biases, so that its state dict loads as it is. Scores are divided by the root of the
    whole width: YaRN, as in the published models, and its factor on the scores are not here.
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
        made = self.num_heads * (self.qk_nope_head_dim + self.v_head_dim)
        self.kv_b_proj = nn.Linear(self.kv_lora_rank, made, bias=False)
        self.o_proj = nn.Linear(self.num_heads * self.v_head_dim, embed_dim, bias=False)
        self.rope = RotaryEmbedding(
            self.qk_rope_head_dim, max_seq_len, base, interleaved=interleaved
        )

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, the part that turns in front; the key to be turned; the latent vector."""
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
        """Attend by the turned keys ``k`` and the latent vectors ``v``, both (B, 1, S, width)."""
        of_a_head = (self.qk_nope_head_dim, self.v_head_dim)
        check_flag("absorb", self.absorb)
        if self.absorb:  # q . (W c) = (W^T q) . c
            made_by = self.kv_b_proj
            if type(made_by) is not nn.Linear or made_by.bias is not None:
                raise TypeError(
                    f"absorb=True needs kv_b_proj to be an nn.Linear without bias, got {made_by}"
                )
            if "forward" in vars(made_by):
                raise TypeError("absorb=True needs the forward of nn.Linear, got another one")
            hooks = len(made_by._forward_hooks) + len(made_by._forward_pre_hooks)
            if hooks:  # they may change the weight, as when it is pruned, or what it gives
                raise TypeError(f"absorb=True needs kv_b_proj to have no forward hook, got {hooks}")
            weight = made_by.weight.unflatten(0, (self.num_heads, -1))
            to_key, to_value = weight.split(of_a_head, dim=1)
            turned, resting = q.split((self.qk_rope_head_dim, self.qk_nope_head_dim), dim=-1)
            q, k = torch.cat((turned, resting @ to_key), dim=-1), torch.cat((k, v), dim=-1)
            return self._read(q, k, v, mask) @ to_value.mT
        made = self.kv_b_proj(v).squeeze(1).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        resting, v = made.split(of_a_head, dim=-1)
        k = torch.cat((k.expand(-1, self.num_heads, -1, -1), resting), dim=-1)
        return self._read(q, k, v, mask)

    def _read(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Attend, with scores over the root of a head's width, however wide keys are now."""
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
    """Return which tokens of a packed row are of one document: the ``attn_mask`` that parts them.

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

    Every document is cut into ``2 * cp_size`` equal pieces, and rank r holds the pieces r and
    ``2 * cp_size - 1 - r``: under the causal mask all ranks have the same work.

    Parameters
    ----------
    cu_seqlens
        Where documents begin, and the end of the last: integers from 0 that do not decrease, such
        as ``[0, T]`` for a single one. Lengths must be multiples of ``2 * cp_size``.
    cp_size
        Ranks in the group.
    cp_rank
        The rank, 0 to ``cp_size - 1``.

    Returns
    -------
    Tensor of shape (T / cp_size,), int64, on the CPU
        Indices into the row: positions, less the start of their document where they begin anew.

    Notes
    -----
    As ``thd_get_partitioned_indices`` of Transformer Engine. Megatron-LM cuts the same way.
    """
    given = integers("cu_seqlens", cu_seqlens, "cpu")
    ends = moved_to(torch.device("cpu"), "cu_seqlens", given).tolist()
    size, rank = check_count("cp_size", cp_size), check_count("cp_rank", cp_rank, least=0)
    if rank >= size:
        raise ValueError(f"cp_rank must be < cp_size = {size}, got {rank}")
    if given.ndim != 1 or len(ends) < 1 or ends[0] != 0:
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
