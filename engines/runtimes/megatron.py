"""Megatron Core without fusion: its embeddings and the function that applies them."""

from typing import Any

import torch
from megatron.core.models.common.embeddings.rope_utils import (
    _apply_rotary_pos_emb_bshd,
    apply_rotary_pos_emb_with_cos_sin,
)
from megatron.core.models.common.embeddings.rotary_pos_embedding import (
    MultimodalRotaryEmbedding,
    RotaryEmbedding,
)
from megatron.core.models.common.embeddings.yarn_rotary_pos_embedding import YarnRotaryEmbedding
from torch import Tensor

from engines.asking import BASE, HEAD_DIM, LONG, ORIGINAL, Case

NAME, PACKAGES, LICENCE = "Megatron Core", ["megatron-core"], "BSD-3-Clause and Apache-2.0"

# it moves its frequencies to "the current GPU", which is the processor here
torch.cuda.current_device = lambda: torch.device("cpu")


class _Group:
    def size(self) -> int:
        return 1


def made(kind: Any = RotaryEmbedding, **more: Any) -> Any:
    """Return an embedding for heads of `HEAD_DIM`."""
    options = {"kv_channels": HEAD_DIM, "rotary_percent": 1.0, "use_cpu_initialization": True}
    options |= {"cp_group": _Group(), "rotary_base": BASE} | more
    if kind is MultimodalRotaryEmbedding:
        del options["use_cpu_initialization"]
    return kind(**options)


def each(rope: Any, size: int = 2**17, **more: Any) -> Any:
    """Return a function of x and positions, with a table for ``size`` positions."""
    table = rope.get_emb(size)
    angles, mscale = table if isinstance(table, tuple) else (table, 1.0)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        rows = x.transpose(0, 1)[:, None]  # positions, batch, heads, channels
        y = _apply_rotary_pos_emb_bshd(rows, angles[at], mscale=mscale, **more)
        return y[:, 0].transpose(0, 1)

    return rotate


def several(x: Tensor, at: Tensor) -> Tensor:
    """Return x at positions of three axes, sections of 16, 8 and 8 pairs."""
    rope = made(MultimodalRotaryEmbedding)
    angles = rope(at.T[:, None], [16, 8, 8])
    return _apply_rotary_pos_emb_bshd(x.transpose(0, 1)[:, None], angles)[:, 0].transpose(0, 1)


def cos_sin(x: Tensor, at: Tensor) -> Tensor:
    """Return x through the function that takes a table of cos and sin, as inference does."""
    cos, sin = made().get_cos_sin(2**12)
    rows = x.transpose(0, 1)[:, None]
    return apply_rotary_pos_emb_with_cos_sin(rows, cos[at], sin[at])[:, 0].transpose(0, 1)


def cases() -> list[Case]:
    """Return what is asked of Megatron Core."""
    name, kind = "RotaryEmbedding", torch.float32
    return [
        Case(name, "rotary_interleaved=False", each(made()), dtype=kind),
        Case(name, "rotary_interleaved=True",
             each(made(rotary_interleaved=True), rotary_interleaved=True), dtype=kind),
        Case(name, "rotary_percent=0.5", each(made(rotary_percent=0.5)), dtype=kind),
        Case(name, "multi_latent_attention=True", each(made(), multi_latent_attention=True),
             dtype=kind),
        Case(name, "x in bfloat16", each(made()), dtype=torch.bfloat16),
        Case(name, "seq_len_interpolation_factor=4", each(made(seq_len_interpolation_factor=4.0)),
             dtype=kind),
        Case("MultimodalRotaryEmbedding", "mrope_section=[16, 8, 8]", several,
             positions=(512, 512, 512), dtype=kind),
        Case("apply_rotary_pos_emb_with_cos_sin", "without flash-attn", cos_sin, positions=2**12,
             dtype=kind),
    ]  # fmt: skip


def rescaled(rule: dict[str, Any]) -> Case:
    """Return the case of a rule in Megatron's words."""
    kind, more = rule["rope_type"], {key: v for key, v in rule.items() if key != "rope_type"}
    factor = more.pop("factor")
    if kind == "linear":
        rope, options = made(seq_len_interpolation_factor=factor), "seq_len_interpolation_factor"
    elif kind == "llama3":
        rope, options = made(rope_scaling=True, rope_scaling_factor=factor), "rope_scaling"
    elif kind == "yarn" and "attention_factor" not in more:
        if "truncate" in more:
            more["correction_range_round_to_int"] = more.pop("truncate")
        more |= {"scaling_factor": factor, "original_max_position_embeddings": ORIGINAL}
        rope, options = made(YarnRotaryEmbedding, **more), "YarnRotaryEmbedding"
    else:
        raise NotImplementedError(kind)
    return Case(type(rope).__name__, options, each(rope, LONG), dtype=torch.float32)
