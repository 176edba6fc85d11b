"""Inverse frequencies in NumPy float64: pair ``i`` rotates by ``theta_i`` radians per position.

`rope_minimal.rescaling` has the published changes of these numbers for longer contexts.
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
        Radians per position, largest first.

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
    """Return the wavelength ``2*pi / theta_i`` of every pair, in positions.

    Parameters
    ----------
    inv_freq
        Inverse frequencies in radians per position, any shape, >= 0.

    Returns
    -------
    ndarray of the shape of ``inv_freq``, float64
        Infinite where the frequency is 0.
    """
    with np.errstate(divide="ignore", over="ignore"):
        return 2.0 * np.pi / check_frequencies("inv_freq", inv_freq)
