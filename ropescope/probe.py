"""Call an external function safely: arrays in, float64 out, every failure in words."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from rope_minimal.checks import check_count

__all__ = ["Probe", "ProbeError", "check_dtype", "check_positions", "describe"]

EXTREME = 1e100
"""The squares of larger numbers, or of numbers below one over it, leave float64."""


class ProbeError(Exception):
    """The function gave nothing to measure; the message says what it did instead.

    ``raised`` is whether it raised an exception of its own.
    """

    def __init__(self, message: str, raised: bool = False) -> None:
        super().__init__(message)
        self.raised = raised


class Probe:
    """An external rotation as a function from float64 to float64.

    Parameters
    ----------
    rotate
        Takes x of shape (N, T, head_dim) and integer positions, (T,) or (T, axes).
    head_dim
        Channels of a head.
    axes
        1 for positions of shape (T,), more for (T, axes).
    dtype
        Floating-point type of x, of NumPy or torch: it decides which kind of array goes in.

    Attributes
    ----------
    overwritten : set of str
        What some call so far has written into: an argument, or an earlier output.
    returned : str
        The dtype of the last output.
    """

    def __init__(self, rotate: Callable[..., Any], head_dim: int, axes: int, dtype: Any) -> None:
        self.rotate, self.head_dim, self.axes, self.dtype = rotate, head_dim, axes, dtype
        self.overwritten: set[str] = set()
        self.outputs: list[tuple[Any, np.ndarray]] = []  # the first and the last, with copies
        self.returned = self.given = str(dtype).removeprefix("torch.")
        self.kind = f"{'NumPy' if isinstance(dtype, np.dtype) else 'torch'} {self.given}"

    def __call__(self, x: np.ndarray, positions: Any) -> np.ndarray:
        """Return x (N, D), or (N, T, D), rotated at T positions: shape (N, T, D)."""
        at = np.asarray(positions, dtype=np.int64).reshape(-1, self.axes)
        if x.ndim == 2:
            x = np.repeat(x[:, None], len(at), axis=1)
        given, where = self._array(x), self._array(at[:, 0] if self.axes == 1 else at, whole=True)
        before, asked = _float64(given), _float64(where)
        try:
            y = self.rotate(given, where)
        except (Exception, SystemExit) as error:  # whatever external code raises
            raise ProbeError(f"raises {describe(error)}", raised=True) from error
        output = self._read(y, given)
        if not np.array_equal(_float64(given), before):
            self.overwritten.add("x")
        if not np.array_equal(_float64(where), asked):
            self.overwritten.add("positions")
        if any(not np.array_equal(_float64(one), copy) for one, copy in self.outputs):
            self.overwritten.add("output of an earlier call")
        if not np.isfinite(output).all():
            raise ProbeError("returns numbers that are not finite")
        self.outputs = [*self.outputs[:1], (y, output)]
        size = float(np.abs(output).max())
        if size and not 1.0 / EXTREME < size < EXTREME:
            raise ProbeError(f"returns numbers of size {size:.1g}, whose squares overflow float64")
        empty = before.any(axis=(0, 2)) & ~output.any(axis=(0, 2))
        if empty.any():
            place = "" if empty.all() else f" at position {place_of(at[empty.argmax()])}"
            raise ProbeError(f"returns only zeros{place}")
        return output

    def _read(self, y: Any, given: Any) -> np.ndarray:
        """Return the output as float64 if it has the type and the shape of the input."""
        if not isinstance(y, type(given)) or isinstance(y, np.ma.MaskedArray):
            raise ProbeError(f"returns {type(y).__name__} for {type(given).__name__}")
        if tuple(y.shape) != tuple(given.shape):
            raise ProbeError(f"returns shape {tuple(y.shape)} for {tuple(given.shape)}")
        self.returned = str(y.dtype).removeprefix("torch.")
        if "float" not in self.returned:
            raise ProbeError(f"returns {self.returned} for {self.given}")
        try:
            return _float64(y)
        except Exception as error:  # a sparse tensor, or one on the meta device
            raise ProbeError(f"returns what cannot be read: {describe(error)}") from error

    def _array(self, values: np.ndarray, whole: bool = False) -> Any:
        """Return a fresh array or tensor of the kind that the function takes."""
        if isinstance(self.dtype, np.dtype):
            return np.array(values, values.dtype if whole else self.dtype, order="C")
        import torch

        return torch.tensor(values) if whole else torch.tensor(values, dtype=self.dtype)


def place_of(position: Any) -> str:
    """Return a position in words: ``1,024``, or ``(3, 5)`` on several axes."""
    numbers = [f"{int(p):,}" for p in np.atleast_1d(position)]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"


def describe(error: BaseException, longest: int = 160) -> str:
    """Return an error's type and the beginning of its message."""
    try:
        message = " ".join(str(error).split())[:longest]
    except Exception:  # its __str__ fails, too
        message = ""
    return f"{type(error).__name__}{': ' if message else ''}{message}"


def _float64(x: Any) -> np.ndarray:
    """Return a copy of an array or tensor as float64."""
    if not isinstance(x, np.ndarray):
        x = x.detach().cpu().double().numpy()
    return x.astype(np.float64)


def check_dtype(dtype: Any) -> list[Any]:
    """Return the types to try in turn; by default NumPy's float64, then torch's if it is loaded."""
    torch = sys.modules.get("torch")
    if dtype is None:
        return [np.dtype(np.float64), *([torch.float64, torch.float32] if torch else [])]
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
    """Return the number of positions along each axis, at least 2 along each."""
    named = {"positions": positions}
    if isinstance(positions, (tuple, list)):
        named = {f"positions[{axis}]": size for axis, size in enumerate(positions)}
    if not named:
        raise ValueError("positions must name at least one axis, got ()")
    sizes = tuple(check_count(name, size, least=2) for name, size in named.items())
    for name, size in zip(named, sizes, strict=True):
        if size > 2**53:  # up to here float64 holds integers exactly
            raise ValueError(f"{name} must be <= 2**53, got {size}")
    return sizes
