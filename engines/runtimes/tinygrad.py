"""tinygrad: the rotation of its language models, on its device that is Python itself."""

import sys
from typing import Any

import numpy as np

from engines.alone import Standin
from engines.asking import BASE, Case

NAME, PACKAGES, LICENCE = "tinygrad", ["tinygrad"], "MIT"

# the wheel leaves out these kernels for AMD, which the rotation does not use
sys.modules |= {
    name: Standin(name) for name in ("tinygrad.llm.kernels", "tinygrad.llm.kernels.amd")
}

from tinygrad import Tensor  # noqa: E402
from tinygrad.llm.model import apply_rope, precompute_freqs_cis  # noqa: E402


def each(longest: int) -> Any:
    """Return a function of x and positions with a table of its own."""
    table: list[np.ndarray] = []

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        if not table:
            table.append(precompute_freqs_cis(x.shape[-1], longest, BASE).numpy())
        return apply_rope(Tensor(x[None]), Tensor(table[0][at])).numpy()[0]

    return rotate


def cases() -> list[Case]:
    """Return what is asked: few positions, for Python takes its time."""
    return [Case("apply_rope, precompute_freqs_cis", "", each(4098), 64, 64)]
