"""ExecuTorch: the rotations of its Llama."""

from typing import Any

import torch
from executorch.examples.models.llama.rope import (
    apply_rotary_emb,
    hf_apply_rotary_emb,
    hf_precompute_freqs_cis,
    precompute_freqs_cis,
)  # fmt: skip
from torch import Tensor

from engines.asking import BASE, HEAD_DIM, Case

NAME, PACKAGES, LICENCE = "ExecuTorch", ["executorch"], "BSD-3-Clause"


def each(apply: Any, tables: Any) -> Any:
    """Return a function of x and positions."""
    cos, sin = tables

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        rows = x[:, :, None]
        return apply(rows, rows, cos[at], sin[at])[0][:, :, 0]

    return rotate


def cases() -> list[Case]:
    """Return what is asked of ExecuTorch."""
    size = 2**17
    return [
        Case("apply_rotary_emb", "use_hf_rope=False",
             each(apply_rotary_emb, precompute_freqs_cis(HEAD_DIM, size, BASE)),
             dtype=torch.float32),
        Case("hf_apply_rotary_emb", "use_hf_rope=True",
             each(hf_apply_rotary_emb, hf_precompute_freqs_cis(HEAD_DIM, size, BASE, 1.0)),
             dtype=torch.float32),
        Case("hf_apply_rotary_emb", "use_hf_rope=True, partial_rotary_factor=0.5",
             each(hf_apply_rotary_emb, hf_precompute_freqs_cis(HEAD_DIM, size, BASE, 0.5)),
             dtype=torch.float32),
    ]  # fmt: skip
