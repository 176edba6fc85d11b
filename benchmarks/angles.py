"""Error of positions times inverse frequencies under a GPU's autocast, and with TF32 allowed."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rope_minimal import inverse_frequencies

POSITIONS, WIDTH = 4096, 128
PRODUCTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "p[:, None] * theta": lambda p, theta: p[:, None] * theta,
    "torch.outer(p, theta)": torch.outer,
    'torch.einsum("i,j->ij", p, theta)': lambda p, theta: torch.einsum("i,j->ij", p, theta),
    "p[:, None] @ theta[None]": lambda p, theta: p[:, None] @ theta[None],
}
ZEROS = "the same, a column of zeros beside p"  # another kernel, the same product


def measure(device: str) -> list[dict[str, Any]]:
    """Return each product's type and its largest error in radians, under each setting."""
    p = torch.arange(POSITIONS, dtype=torch.float64)
    theta = torch.as_tensor(inverse_frequencies(WIDTH), dtype=torch.float64)
    given = [t.float().to(device) for t in (p, theta)]
    rows = []

    def note(setting: str, products: dict[str, Callable[[Tensor, Tensor], Tensor]]) -> None:
        for name, product in products.items():
            made = product(*given)
            error = (made.double().cpu() - p[:, None] * theta).abs().max().item()
            kind = str(made.dtype).removeprefix("torch.")
            row = {"product": name, "dtype": kind, "error": float(f"{error:.4g}")}
            rows.append({"setting": setting, **row})

    with torch.autocast(device, torch.bfloat16):
        note("bfloat16 autocast", PRODUCTS)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    wide = lambda p, theta: torch.stack((p, 0 * p), 1) @ torch.stack((theta, 0 * theta))  # noqa: E731
    note("TF32 allowed", PRODUCTS | {ZEROS: wide})
    torch.set_float32_matmul_precision(before)
    return rows
