"""Inverse frequencies: how fast each pair of channels turns, in NumPy float64.

Pair ``i`` of a head turns by ``theta_i`` radians per position. Published ways to change these
numbers for longer contexts are in `rope_minimal.rescaling`.
"""

import numpy as np

from .checks import check_dim, check_frequencies, check_positive

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
    ValueError
        If a number is out of its range, or a frequency would be infinite.

    Notes
    -----
    Su et al. 2021 (RoFormer), section 3.2.2, with the pair index counted from 0.
    """
    dim = check_dim(dim)
    check_positive("base", base)
    with np.errstate(over="ignore"):
        theta = float(base) ** (-2.0 * np.arange(dim // 2) / dim)
    if not np.isfinite(theta).all():
        raise ValueError(f"base must give finite frequencies, got {base}")
    return theta


def wavelengths(inv_freq: np.ndarray) -> np.ndarray:
    """Return ``2*pi / theta_i``: the positions each pair needs for one full turn.

    Parameters
    ----------
    inv_freq
        Inverse frequencies in radians per position, any shape, >= 0. A frequency of 0 never turns:
        its wavelength is infinite.

    Returns
    -------
    ndarray of the shape of ``inv_freq``, float64
        Wavelengths in positions.
    """
    with np.errstate(divide="ignore", over="ignore"):
        return 2.0 * np.pi / check_frequencies("inv_freq", inv_freq)
