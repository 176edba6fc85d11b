"""mistral-inference: `precompute_freqs_cis` and `apply_rotary_emb`."""

from typing import Any

import torch
from mistral_inference.rope import (
    apply_rotary_emb,
    precompute_freqs_cis,
    precompute_freqs_cis_2d,
)  # fmt: skip
from torch import Tensor

from engines.asking import BASE, HEAD_DIM, Case

NAME, PACKAGES, LICENCE = "mistral-inference", ["mistral-inference"], "Apache-2.0"


def each(table: Tensor) -> Any:
    """Return a function of x and positions, (T,) or (T, 2)."""

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        rows = table[at] if at.ndim == 1 else table[at[:, 0], at[:, 1]]
        return apply_rotary_emb(x.transpose(0, 1), x.transpose(0, 1), rows)[0].transpose(0, 1)

    return rotate


def cases() -> list[Case]:
    """Return what is asked of mistral-inference."""
    return [
        Case("precompute_freqs_cis", "", each(precompute_freqs_cis(HEAD_DIM, 2**17, BASE)),
             dtype=torch.float32),
        Case("precompute_freqs_cis", "x in bfloat16",
             each(precompute_freqs_cis(HEAD_DIM, 2**17, BASE)), dtype=torch.bfloat16),
        Case("precompute_freqs_cis_2d", "64 by 64",
             each(precompute_freqs_cis_2d(HEAD_DIM, 64, 64, BASE)), positions=(64, 64),
             dtype=torch.float32),
    ]  # fmt: skip
