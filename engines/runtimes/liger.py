"""Liger: its Triton kernel, run by Triton's interpreter on a processor."""

from typing import Any

import torch
from liger_kernel.ops.rope import rope_forward
from torch import Tensor

from engines.asking import BASE, HEAD_DIM, Case

NAME, PACKAGES, LICENCE = "Liger Kernel", ["liger-kernel", "triton"], "BSD-2-Clause"


def each(width: int = HEAD_DIM) -> Any:
    """Return a function of x and positions; the caller makes the table, as transformers does."""

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        angles = torch.outer(at.double(), BASE ** (-torch.arange(0, width, 2).double() / width))
        cos, sin = (t(torch.cat((angles, angles), -1))[None].to(x.dtype) for t in
                    (torch.cos, torch.sin))  # fmt: skip
        rows = x[None].clone()  # (batch, heads, positions, channels)
        return rope_forward(rows, rows.clone(), cos, sin)[0][0]

    return rotate


def cases() -> list[Case]:
    """Return what is asked: few positions, for the interpreter takes its time."""
    note = "the caller makes the table; by Triton's interpreter"
    return [
        Case("rope_forward", "", each(), positions=64, dtype=torch.float32, note=note),
        Case("rope_forward", "a table of 32 channels", each(32), positions=64,
             dtype=torch.float32, note=note),
    ]  # fmt: skip
