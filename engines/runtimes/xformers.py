"""xFormers: the Triton kernel of `rope_padded`, run by Triton's interpreter on a processor."""

import sys
from contextlib import nullcontext
from typing import Any
from unittest import mock

import torch
import triton
import triton.language as tl
from torch import Tensor

from engines.alone import APART, alone
from engines.asking import Case

NAME, PACKAGES, LICENCE = "xFormers", ["xformers", "triton"], "BSD-3-Clause"


@triton.jit
def power(base, exponent):
    """Stand in for CUDA's ``pow``, which the interpreter lacks: exact, then rounded to float32."""
    logarithm = tl.log(tl.full((1,), base, tl.float64))
    return tl.exp(exponent.to(tl.float64) * logarithm).to(tl.float32)


given = {
    "xformers": {"_is_triton_available": lambda: True},
    "xformers.triton.importing": {"libdevice_find": lambda name: power},
}
sys.path.append(APART)
masks = alone("xformers.ops.fmha.attn_bias", given)
alone("xformers.ops._triton.rope_padded_kernels")
rope_padded = alone("xformers.ops.rope_padded").rope_padded


def each(**more: Any) -> Any:
    """Return a function of x (N, T, D) and positions: rows are heads, its keys go into a cache."""

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        rows, n = x.transpose(0, 1)[None].contiguous(), len(at)
        mask = masks.BlockDiagonalCausalWithOffsetPaddedKeysMask.from_seqlens([n], n, [n])
        keys = rows[:, :, :1].contiguous()
        cache = torch.zeros_like(keys)
        with mock.patch.object(torch.cuda, "device", return_value=nullcontext()):
            out = rope_padded(rows, keys, keys, cache, cache.clone(), mask, seqpos=at.int(), **more)
        return out[0].transpose(0, 1)

    return rotate


def cases() -> list[Case]:
    """Return what is asked: little, for the interpreter takes its time."""
    name, note = "rope_padded", "by Triton's interpreter, with a stand-in for CUDA's pow"
    few = {"positions": 64, "dtype": torch.float32, "note": note}
    return [
        Case(name, "adjacents=False", each(adjacents=False), **few),
        Case(name, "adjacents=True", each(), head_dim=16, **few),
        Case(name, "linear_scale=4", each(linear_scale=4.0), head_dim=16, **few),
    ]
