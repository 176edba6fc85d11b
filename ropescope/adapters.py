"""Adapters: a module as a function of x and positions, which `identify` can probe."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from rope_minimal.checks import check_count
from rope_minimal.rotation import RotaryEmbedding

from .hypotheses import Finding
from .report import Report
from .study import identify

__all__ = ["Rotation", "of_module"]

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
