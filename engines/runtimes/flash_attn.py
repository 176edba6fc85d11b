"""flash-attn: its form in torch, and its Triton kernel by Triton's interpreter."""

import sys
from contextlib import nullcontext
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from engines.alone import APART, alone
from engines.asking import HEAD_DIM, Case

NAME, PACKAGES, LICENCE = "flash-attn", ["flash-attn", "triton"], "BSD-3-Clause"

sys.path.append(APART)
rotary = alone("flash_attn.ops.triton.rotary")
layers = alone("flash_attn.layers.rotary")
TABLE = 2**20
"""The module makes a table for as many positions as a call needs; longer ones are not asked."""


def each(
    function: Any, width: int = HEAD_DIM, interleaved: bool = False, kind: Any = torch.float32
) -> Any:
    """Return a function of x (N, T, D) and positions, with the table that the module makes.

    A module of another ``kind`` was cast.
    """
    made = layers.RotaryEmbedding(width).to(kind)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        longest = int(at.max()) + 1
        if longest > TABLE:
            raise IndexError("not asked: it would make a table of as many rows")
        made._update_cos_sin_cache(longest, x.device, x.dtype)
        cos, sin = made._cos_cached[at], made._sin_cached[at]
        return function(x.transpose(0, 1)[None], cos, sin, interleaved)[0].transpose(0, 1)

    return rotate


def kernel(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Rotate by the Triton kernel, whose guard wants a GPU."""
    with mock.patch.object(torch.cuda, "device", return_value=nullcontext()):
        return rotary.apply_rotary(x, cos, sin, interleaved=interleaved)


def cases() -> list[Case]:
    """Return what is asked: of the kernel few positions, for the interpreter takes its time."""
    name, note, single = "apply_rotary_emb_torch", "by Triton's interpreter", torch.float32
    torch_form, half = layers.apply_rotary_emb_torch, torch.bfloat16
    grows = "the module's table grows with the positions"
    return [
        Case(name, "", each(torch_form), dtype=single, note=grows),
        Case(name, "interleaved=True", each(torch_form, interleaved=True), dtype=single),
        Case(name, "a table of 32 channels", each(torch_form, 32), dtype=single),
        Case(name, "x in bfloat16", each(torch_form), dtype=half),
        Case(name, "cast to bfloat16 with the model", each(torch_form, kind=half), dtype=half),
        Case("apply_rotary", "", each(kernel), positions=64, dtype=single, note=note),
        Case("apply_rotary", "interleaved=True", each(kernel, interleaved=True), positions=64,
             dtype=single, note=note),
        Case("apply_rotary", "a table of 32 channels", each(kernel, 32), positions=64,
             dtype=single, note=note),
    ]  # fmt: skip
