"""Asking: feed vectors to a function that somebody else wrote, and read what comes back.

Whatever goes wrong on the way becomes a `RefusalError` in words, never a traceback.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from rope_minimal.checks import check_count

__all__ = ["Asker", "RefusalError", "check_dtype", "check_positions", "named"]


EXTREME = 1e100
"""Numbers as large as that, or as small as one over it, have no squares to compare."""


class RefusalError(Exception):
    """The function did not answer; the words say what it did instead."""


class Asker:
    """A rotation behind a window: vectors and positions go in, float64 comes out.

    Parameters
    ----------
    rotate
        Takes x of shape (N, T, head_dim) and whole positions, (T,) or (T, axes).
    head_dim
        Channels of a head.
    axes
        1 for positions of shape (T,), more for (T, axes).
    dtype
        A floating-point type of NumPy or torch: it says which kind of array goes in.

    Attributes
    ----------
    writes_into : set of str
        Which of its arguments some call so far has changed, or an earlier answer.
    given : list of tuple of array and ndarray
        The first answer and the last, as they came and as copies.
    returns : str
        The type of the numbers that came back last.
    """

    def __init__(self, rotate: Callable[..., Any], head_dim: int, axes: int, dtype: Any) -> None:
        self.rotate, self.head_dim, self.axes, self.dtype = rotate, head_dim, axes, dtype
        self.writes_into: set[str] = set()
        self.given: list[tuple[Any, np.ndarray]] = []
        self.returns = self.type = str(dtype).removeprefix("torch.")
        self.kind = f"{'NumPy' if isinstance(dtype, np.dtype) else 'torch'} {self.type}"

    def __call__(self, vectors: np.ndarray, positions: Any) -> np.ndarray:
        """Return each of N vectors turned at each of T positions, (N, T, D).

        ``vectors`` has shape (N, D), or (N, T, D) where each position has vectors of its own.
        """
        positions = np.asarray(positions, dtype=np.int64).reshape(-1, self.axes)
        if vectors.ndim == 2:
            vectors = np.repeat(vectors[:, None], len(positions), axis=1)
        at = (positions[:, 0] if self.axes == 1 else positions).copy()
        x, given = self._array(vectors), self._array(at, whole=True)
        before, asked = _float64(x), at.copy()
        try:
            y = self.rotate(x, given)
        except (Exception, SystemExit) as error:  # whatever a stranger's code raises
            raise RefusalError(f"raises {named(error)}") from error
        if not isinstance(y, type(x)) or isinstance(y, np.ma.MaskedArray):
            raise RefusalError(f"returns {type(y).__name__} where {type(x).__name__} was given")
        if tuple(y.shape) != tuple(x.shape):
            raise RefusalError(f"returns shape {tuple(y.shape)} where {tuple(x.shape)} was given")
        self.returns = str(y.dtype).removeprefix("torch.")
        if "float" not in self.returns:
            raise RefusalError(f"returns {self.returns} where {self.type} was given")
        try:
            answer = _float64(y)
        except Exception as error:  # a tensor that is sparse, or on no device
            raise RefusalError(f"returns what cannot be read: {named(error)}") from error
        if not all(np.array_equal(_float64(one), copy, equal_nan=True) for one, copy in self.given):
            self.writes_into.add("answer of an earlier call")
        self.given = [*self.given[:1], (y, answer)]
        if not np.array_equal(_float64(x), before):
            self.writes_into.add("x")
        if not np.array_equal(_float64(given), asked):
            self.writes_into.add("positions")
        if not np.isfinite(answer).all():
            raise RefusalError("returns numbers that are not finite")
        size = float(np.abs(answer).max())
        if size and not 1.0 / EXTREME < size < EXTREME:
            raise RefusalError(f"returns numbers of size {size:.1g}, whose squares float64 loses")
        empty = before.any(axis=(0, 2)) & ~answer.any(axis=(0, 2))
        if empty.any():
            first = positions[empty.argmax()].tolist()
            at = "" if empty.all() else f" at position {', '.join(f'{p:,}' for p in first)}"
            raise RefusalError(f"returns nothing but zeros{at}")
        return answer

    def _array(self, values: np.ndarray, whole: bool = False) -> Any:
        """Return the values as the kind of array that the function takes."""
        if isinstance(self.dtype, np.dtype):
            return values if whole else np.array(values, self.dtype, order="C")
        import torch

        return torch.tensor(values) if whole else torch.tensor(values, dtype=self.dtype)


def named(error: BaseException, longest: int = 160) -> str:
    """Return an error's type, and the beginning of what it says."""
    try:
        said = " ".join(str(error).split())[:longest]
    except Exception:  # its words fail, too
        said = ""
    return f"{type(error).__name__}{': ' if said else ''}{said}"


def _float64(x: Any) -> np.ndarray:
    """Return a copy of an array or tensor as float64."""
    if not isinstance(x, np.ndarray):
        x = x.detach().cpu().double().numpy()
    return x.astype(np.float64)


def check_dtype(dtype: Any) -> list[Any]:
    """Return the types to try in turn; where none is given, NumPy's float64, then torch's."""
    torch = sys.modules.get("torch")  # who has a function of tensors has loaded it
    if dtype is None:
        tensors = [torch.float64, torch.float32] if torch is not None else []
        return [np.dtype(np.float64), *tensors]
    if torch is not None and isinstance(dtype, torch.dtype):
        known = dtype.is_floating_point
    else:
        try:
            known = np.dtype(dtype).kind == "f"
        except TypeError:
            known = False
        dtype = np.dtype(dtype) if known else dtype
    if not known:
        raise TypeError(f"dtype must be a floating-point type of NumPy or torch, got {dtype!r}")
    return [dtype]


def check_positions(positions: Any) -> tuple[int, ...]:
    """Return how many positions may be asked along each axis, at least 2 along each."""
    if isinstance(positions, (tuple, list)):
        if not positions:
            raise ValueError("positions must name at least one axis, got ()")
        return tuple(_check_size(f"positions[{axis}]", size) for axis, size in enumerate(positions))
    return (_check_size("positions", positions),)


def _check_size(name: str, value: Any) -> int:
    """Return how many positions may be asked; float64 holds no more whole numbers in a row."""
    if (size := check_count(name, value, least=2)) > 2**53:
        raise ValueError(f"{name} must be <= 2**53, got {size}")
    return size
