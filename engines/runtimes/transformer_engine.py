"""Transformer Engine: its angles and its form in torch, without the fused kernel."""

import sys
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from engines.alone import APART, Standin, alone
from engines.asking import HEAD_DIM, Case

NAME, PACKAGES, LICENCE = "Transformer Engine", ["transformer-engine"], "Apache-2.0"

sys.path.append(APART)
sys.modules["transformer_engine_torch"] = Standin("transformer_engine_torch")  # CUDA's part
rope = alone("transformer_engine.pytorch.attention.rope")


def each(kind: Any = torch.float32, **more: Any) -> Any:
    """Return a function of x (N, T, D) and positions; a module of another ``kind`` was cast."""
    with mock.patch.object(torch.cuda, "current_device", return_value="cpu"):
        made = rope.RotaryPositionEmbedding(HEAD_DIM, **more).to(kind)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        longest = int(at.max()) + 1
        if longest > 2**20:
            raise IndexError("not asked: it would make a table of as many rows")
        angles = made(longest)[at]
        rows = x.transpose(0, 1)[:, None]  # (positions, batch, heads, channels)
        y = rope.apply_rotary_pos_emb(rows, angles, interleaved=made.interleaved)
        return y[:, 0].transpose(0, 1)

    return rotate


def cases() -> list[Case]:
    """Return what is asked of Transformer Engine."""
    name, single, half = "RotaryPositionEmbedding", torch.float32, torch.bfloat16
    grows = "its table grows with the text"
    return [
        Case(name, "", each(), dtype=single, note=grows),
        Case(name, "interleaved=True", each(interleaved=True), dtype=single),
        Case(name, "rotary_percent=0.5", each(rotary_percent=0.5), dtype=single),
        Case(name, "x in bfloat16", each(), dtype=half),
        Case(name, "cast to bfloat16 with the model", each(half), dtype=half),
        Case(name, "cast to float16 with the model", each(torch.float16), dtype=torch.float16),
    ]
