"""Frequencies of so many channels, and which axis of the position each pair follows."""

from itertools import groupby
from typing import Any

import numpy as np

from rope_minimal.rescaling import rescaled_frequencies

from .fields import Json

__all__ = ["SECTIONED", "Series", "arranged", "axis_runs"]

SECTIONED = ("chunks", "interleaved", "in turn")
"""Arrangements of axes that follow from ``mrope_section``."""


class Series:
    """The frequencies of so many channels; keeps the factor, and whether the type changes none."""

    def __init__(self, kind: str, base: float, told: Json, longest: int | None) -> None:
        self.kind, self.base, self.factor = kind, base, 1.0
        self.told = {"factor": told["alpha"]} if kind == "ntk" else dict(told)
        if kind in ("dynamic", "longrope"):
            self.told["max_position_embeddings"] = longest
        if kind == "yarn":  # as released, 0 is none
            self.told = {k: v for k, v in self.told.items() if k[:4] != "beta" or v}

    def __call__(self, dim: int) -> np.ndarray:
        """Return radians per position, (dim / 2,)."""
        if dim < 1:
            raise ValueError(f"at least one pair of channels must rotate, got {dim} channels")
        plain = self.base ** -(np.arange(0, dim, 2) / dim)
        if self.kind in ("default", "linear"):  # of an odd width, too
            inv_freq = plain / self.told.get("factor", 1.0)
        else:
            inv_freq, self.factor = rescaled_frequencies(self.kind, dim, self.base, **self.told)
        self.idle = self.factor == 1.0 and np.allclose(inv_freq, plain, 1e-12, 0.0)
        return inv_freq


def arranged(
    axes: Json | None, dim: int, parameters: Json, series: Series
) -> tuple[np.ndarray, list[list[int]] | None]:
    """Return frequencies of all pairs, (pairs,) or (pairs, axes), and runs ``[axis, pairs]``."""
    if axes is None:
        return series(dim), None
    mode, count = axes["mode"], axes["count"]
    if mode.endswith(("blocks", "alternating")):  # a series for each axis
        each = series(2 * (dim // (2 * count)) if count > 2 else dim // count)
        order = list(range(count))[:: -1 if mode.startswith("reversed") else 1]
        if mode.endswith("alternating"):
            waves, which = np.repeat(each, count), np.tile(order, len(each))
        else:
            waves, which = np.tile(each, count), np.repeat(order, len(each))
    elif mode == "every other":
        waves = series(dim)
        waves, which = np.concatenate([waves[0::2], waves[1::2]]), np.arange(len(waves)) * 2
        which //= len(waves)
    else:  # one series, each pair with an axis
        waves = series(dim)
        given = parameters.get("mrope_section", axes.get("sections"))
        which = _sections(axes, given, len(waves), parameters["_name"])
    found = np.zeros((len(waves), count))
    found[np.arange(len(waves)), which] = waves
    return found, axis_runs(which)


def axis_runs(which: np.ndarray) -> list[list[int]]:
    """Return the axis of each pair as runs ``[axis, pairs]``."""
    return [[axis, len(list(pairs))] for axis, pairs in groupby(which.tolist())]


def _sections(axes: Json, given: Any, pairs: int, name: str) -> np.ndarray:
    """Return the axis of each pair, from the number of pairs of each axis."""
    mode, count = axes["mode"], axes["count"]
    sums = mode != "interleaved" or "sums" in axes
    fine = isinstance(given, list) and all(type(n) is int and n >= 0 for n in given)
    if not fine or len(given) != count or (sums and sum(given) != pairs):
        words = f"{count} whole numbers that add up to the {pairs} pairs of a head"
        raise ValueError(f"{name}.mrope_section must be {words}, got {given!r}")
    if mode == "chunks":
        return np.repeat(np.arange(len(given)), given)
    if mode == "in turn" and given[0] != given[1]:
        raise ValueError(f"{name}.mrope_section must begin with two equal numbers, got {given!r}")
    which = np.zeros(pairs, int)
    if mode == "interleaved":
        for axis in range(1, len(given)):
            which[axis : len(given) * given[axis] : len(given)] = axis
    else:  # rows and columns in turn, then time
        which[: given[0] + given[1]] = np.arange(given[0] + given[1]) % 2 + 1
    return which
