"""Inverse frequencies: how fast each pair of channels turns.

Pair ``i`` of a head turns by ``theta_i`` radians per position. Everything here is NumPy float64.
"""

import math
import numbers

import numpy as np

__all__ = ["inverse_frequencies", "wavelengths"]


def inverse_frequencies(dim: int, base: float = 10000.0) -> np.ndarray:
    """Return ``theta_i = base**(-2i/dim)`` for ``i = 0 .. dim/2 - 1``.

    Parameters
    ----------
    dim
        Rotated width of one head, a positive even integer.
    base
        The base of the geometric series, finite and > 0. RoFormer uses 10000.

    Returns
    -------
    ndarray of shape (dim/2,), float64
        Radians per position, fastest pair first.

    Raises
    ------
    TypeError
        If ``dim`` is not an integer or ``base`` is not a real number.
    ValueError
        If ``dim`` is not positive and even, or ``base`` is not finite and positive.

    Notes
    -----
    Su et al. 2021 (RoFormer), section 3.2.2, with the pair index counted from 0.
    """
    check_dim(dim)
    check_positive("base", base)
    return float(base) ** (-2.0 * np.arange(dim // 2) / dim)


def wavelengths(inv_freq: np.ndarray) -> np.ndarray:
    """Return ``2*pi / theta_i``: the positions each pair needs for one full turn.

    Parameters
    ----------
    inv_freq
        Inverse frequencies in radians per position, any shape. A frequency of 0 never turns: its
        wavelength is infinite.

    Returns
    -------
    ndarray of the shape of ``inv_freq``, float64
        Wavelengths in positions.
    """
    inv_freq = np.asarray(inv_freq, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return 2.0 * np.pi / inv_freq


def check_dim(dim: int, name: str = "dim") -> None:
    """Raise unless ``dim`` is a positive even integer."""
    if isinstance(dim, bool) or not isinstance(dim, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {dim!r}")
    if dim <= 0 or dim % 2:
        raise ValueError(f"{name} must be a positive even integer, got {dim}")


def check_positive(name: str, value: float) -> None:
    """Raise unless ``value`` is a finite real number above 0."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be finite and > 0, got {value}")
