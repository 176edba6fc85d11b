"""Adapters: what people have at hand, as a function of x and positions.

A module of this project, tables of cosines and sines with a function that applies them: each
becomes a `Rotation`, which `identify` can probe.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from rope_minimal.checks import check_count, check_float
from rope_minimal.rotation import RotaryEmbedding

from .hypotheses import Finding
from .report import Report
from .study import identify

__all__ = ["Rotation", "of_module", "of_tables"]

Rotate = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Rotation:
    """A function that can be probed, with what has to be known for that.

    Attributes
    ----------
    rotate, head_dim, positions, dtype
        The arguments of `identify`; ``rotate`` is None where nothing can be probed.
    more
        What was found besides, while it was taken out of what it is part of.
    """

    rotate: Rotate | None
    head_dim: int
    positions: int | tuple[int, ...] = 2**17
    dtype: Any = torch.float32
    more: tuple[Finding, ...] = ()

    def identify(self) -> Report:
        """Return the report; where nothing can be probed, it holds what was found besides."""
        if self.rotate is None:
            return Report(self.head_dim, 1, "", more=self.more)
        report = identify(self.rotate, self.head_dim, positions=self.positions, dtype=self.dtype)
        return replace(report, more=self.more)


def of_module(rope: RotaryEmbedding, head_dim: int | None = None) -> Rotation:
    """Return the rotation of this package's module.

    Parameters
    ----------
    rope
        A `rope_minimal.RotaryEmbedding`.
    head_dim
        Channels of a head; ``rope.dim`` where not given.
    """
    known = all(hasattr(rope, name) for name in ("dim", "max_seq_len", "cos"))
    if not (isinstance(rope, nn.Module) and known and isinstance(rope.cos, Tensor)):
        raise TypeError(f"rope must be a RotaryEmbedding, got {type(rope).__name__}")
    width = rope.dim if head_dim is None else check_count("head_dim", head_dim, least=rope.dim)
    return Rotation(
        lambda x, at: rope(x.to(rope.cos.device), position_ids=at[None]),
        width,
        positions=rope.max_seq_len + 1,  # and one past its end
        dtype=rope.cos.dtype,
    )


def of_tables(
    cos: Tensor, sin: Tensor, apply: Callable[[Tensor, Tensor, Tensor], Tensor], head_dim: int
) -> Rotation:
    """Return the rotation by rows of two tables.

    Parameters
    ----------
    cos, sin
        Shape (positions, width), any width that ``apply`` wants.
    apply
        ``apply(x, cos, sin)`` for x of shape (N, T, head_dim) and rows of shape (T, width).
    head_dim
        Channels of a head.
    """
    for name, table in (("cos", cos), ("sin", sin)):
        check_float(name, table)
        if table.ndim != 2 or len(table) < 2:
            raise ValueError(f"{name} must have shape (positions, width), got {tuple(table.shape)}")
    if cos.shape != sin.shape:
        raise ValueError(
            f"cos and sin must have the same shape, got {tuple(cos.shape)} and {tuple(sin.shape)}"
        )
    if not callable(apply):
        raise TypeError(f"apply must be callable, got {type(apply).__name__}")
    head_dim = check_count("head_dim", head_dim, least=2)
    return Rotation(
        lambda x, at: apply(x.to(cos.device), cos[at], sin[at]),
        head_dim,
        positions=len(cos) + 1,
        dtype=cos.dtype,
    )
