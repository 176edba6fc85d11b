"""Checks of numbers and arrays, one wording for the whole package.

Each names the argument and what came: ``dim must be a positive even integer, got 7``. Tensors are
checked in `rope_minimal.tensors`.
"""

import inspect
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def check_dim(dim: Any, name: str = "dim") -> int:
    """Return ``dim`` as an int; raise unless it is a positive even integer."""
    if isinstance(dim, bool) or not isinstance(dim, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {dim!r}")
    if dim <= 0 or dim % 2:
        raise ValueError(f"{name} must be a positive even integer, got {dim}")
    return int(dim)


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return ``value`` as an int, in which sums do not wrap; raise unless it is >= ``least``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be >= {least}, got {value}")
    return int(value)


def check_flag(name: str, value: Any) -> None:
    """Raise unless ``value`` is True or False: any text is true, "no" too."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_real(name: str, value: Any) -> float:
    """Return ``value`` as a float; raise unless it is a finite real number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    if not math.isfinite(as_float(value)):
        raise ValueError(f"{name} must be finite, got {value}")
    return float(value)


def check_positive(name: str, value: Any) -> None:
    """Raise unless ``value`` is a real number that is finite and above 0 as a float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    if not 0.0 < as_float(value) < math.inf:
        raise ValueError(f"{name} must be finite and > 0, got {value}")


def as_float(value: numbers.Real | int) -> float:
    """Return ``value`` as a float, infinity where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def leaves(name: str, value: Any, kind: str) -> list[Any]:
    """Return what lists hold; raise at True, for NumPy 1 among numbers, and at what is masked."""
    dtype = str(getattr(value, "dtype", type(value).__name__))
    if dtype in ("bool", "torch.bool") or np.ma.is_masked(value):
        raise TypeError(f"{name} must be {kind}, got {value!r}")
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        return [value]
    plain = {*map(type, value)} <= {int, float}  # as the longest lists are
    return [*value] if plain else [leaf for each in value for leaf in leaves(name, each, kind)]


def real_numbers(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as float64; raise TypeError where it holds anything but real numbers."""
    leaves(name, value, "real numbers")
    try:
        array = np.asarray(value)
        of_real = (isinstance(n, numbers.Real) for n in array.flat)  # Fractions, long integers
        if array.dtype.kind in "iuf" or (array.dtype.kind == "O" and all(of_real)):
            return array.astype(np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise TypeError(f"{name} must be real numbers, got {value!r}") from error
    raise TypeError(f"{name} must be real numbers, got dtype {array.dtype}")


def check_frequencies(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as float64 if it is finite and >= 0 everywhere."""
    array = real_numbers(name, value)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{name} must be finite and >= 0, got {value!r}")
    return array + 0.0  # -0.0 is 0.0


def check_one_per_pair(inv_freq: Any, dim: int) -> None:
    """Raise unless the array or tensor ``inv_freq`` has one frequency for each pair."""
    if tuple(inv_freq.shape) != (check_dim(dim) // 2,):
        raise ValueError(
            f"inv_freq must have shape (dim/2,) = ({dim // 2},), got {tuple(inv_freq.shape)}"
        )


def check_parameter_names(
    kind: str, rule: Callable[..., Any], given: dict[str, Any], also: str | None = None
) -> None:
    """Raise TypeError naming every parameter that ``rule`` misses or does not know.

    Its parameters are what it takes by keyword only, and ``also``.
    """
    known = {
        name: parameter.default is inspect.Parameter.empty
        for name, parameter in inspect.signature(rule).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    if also is not None:
        known.setdefault(also, False)
    names = [f"{name} (required)" if must else name for name, must in known.items()]
    listing = ", ".join(names) or "none"
    unknown = sorted(set(given) - set(known))
    missing = sorted(name for name, must in known.items() if must and name not in given)
    if unknown:
        raise TypeError(f"kind {kind!r} takes no {', '.join(unknown)}; it knows: {listing}")
    if missing:
        raise TypeError(f"kind {kind!r} misses {', '.join(missing)}; it knows: {listing}")
