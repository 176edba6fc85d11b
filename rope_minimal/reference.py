"""The definition of rotary position embedding in NumPy float64: the reference of the tests.

It is written twice, as a matrix and as a complex product. Vectors are columns; position ``m``
rotates pair ``i`` counter-clockwise by ``m * theta_i``.
"""

import numpy as np

from .checks import check_dim, check_flag, check_real, real_numbers
from .frequencies import inverse_frequencies

__all__ = ["rotate_by_matrix", "rotate_complex", "rotation_matrix"]


def rotation_matrix(
    position: float,
    dim: int,
    base: float = 10000.0,
    *,
    inv_freq: np.ndarray | None = None,
    interleaved: bool = False,
) -> np.ndarray:
    """Return the matrix ``R_m`` that rotates a vector at position ``m``.

    Parameters
    ----------
    position
        The position ``m``: a finite real number.
    dim
        Width of the vector, a positive even integer.
    base
        Base of the inverse frequencies; unused where ``inv_freq`` is given.
    inv_freq
        Inverse frequencies of shape (dim/2,), in radians per position.
    interleaved
        Pair channels ``(2i, 2i+1)`` instead of ``(i, i + dim/2)``.

    Returns
    -------
    ndarray of shape (dim, dim), float64
        One 2 x 2 block ``[[cos, -sin], [sin, cos]]`` for each pair, zero elsewhere.

    Notes
    -----
    Su et al. 2021 (RoFormer), equation 15, for ``interleaved=True``.
    """
    angle = _angles(check_real("position", position), dim, base, inv_freq)
    first, second = _pairs(dim, interleaved)
    matrix = np.zeros((dim, dim))
    matrix[first, first], matrix[first, second] = np.cos(angle), -np.sin(angle)
    matrix[second, first], matrix[second, second] = np.sin(angle), np.cos(angle)
    return matrix


def rotate_by_matrix(
    x: np.ndarray,
    positions: np.ndarray,
    base: float = 10000.0,
    *,
    inv_freq: np.ndarray | None = None,
    interleaved: bool = False,
) -> np.ndarray:
    """Rotate each vector of ``x`` by multiplying it with the matrix of its position.

    Parameters
    ----------
    x
        Vectors of shape (..., T, D), D even; converted to float64.
    positions
        Real numbers of shape (T,).
    base, inv_freq, interleaved
        As in `rotation_matrix`.

    Returns
    -------
    ndarray of the shape of ``x``, float64
        ``y[..., t, :] = R_{positions[t]} x[..., t, :]``.
    """
    x, positions = _vectors(x, positions)
    dim = x.shape[-1]
    matrices = [
        rotation_matrix(m, dim, base, inv_freq=inv_freq, interleaved=interleaved) for m in positions
    ]
    return np.einsum("tij,...tj->...ti", np.reshape(matrices, (-1, dim, dim)), x)


def rotate_complex(
    x: np.ndarray,
    positions: np.ndarray,
    base: float = 10000.0,
    *,
    inv_freq: np.ndarray | None = None,
    interleaved: bool = False,
) -> np.ndarray:
    """Rotate each pair of ``x`` as a complex number, by multiplying it with ``e^{im theta}``.

    Parameters
    ----------
    x, positions, base, inv_freq, interleaved
        As in `rotate_by_matrix`.

    Returns
    -------
    ndarray of the shape of ``x``, float64
        The values of `rotate_by_matrix`, in O(D) instead of O(D^2) operations.
    """
    x, positions = _vectors(x, positions)
    first, second = _pairs(x.shape[-1], interleaved)
    angle = _angles(positions[:, None], x.shape[-1], base, inv_freq)
    z = (x[..., first] + 1j * x[..., second]) * np.exp(1j * angle)
    y = np.empty_like(x)
    y[..., first], y[..., second] = z.real, z.imag
    return y


def _pairs(dim: int, interleaved: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the channel indices of the first and of the second member of each pair."""
    check_flag("interleaved", interleaved)
    half = int(dim) // 2
    i = np.arange(half)
    return (2 * i, 2 * i + 1) if interleaved else (i, i + half)


def _angles(
    positions: np.ndarray | float, dim: int, base: float, inv_freq: np.ndarray | None
) -> np.ndarray:
    """Return ``positions * inv_freq``, with the standard frequencies by default."""
    inv_freq = real_numbers(
        "inv_freq", inverse_frequencies(dim, base) if inv_freq is None else inv_freq
    )
    if inv_freq.shape != (check_dim(dim) // 2,):
        raise ValueError(f"inv_freq must have shape (dim/2,) = ({dim // 2},), got {inv_freq.shape}")
    return positions * inv_freq


def _vectors(x: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``x`` and ``positions`` in float64; raise unless every vector has one position."""
    x, positions = real_numbers("x", x), real_numbers("positions", positions)
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 dimensions (..., T, D), got shape {x.shape}")
    check_dim(x.shape[-1], "x.shape[-1]")
    if positions.shape != x.shape[-2:-1]:
        raise ValueError(
            f"positions must have shape (T,) = ({x.shape[-2]},), got {positions.shape}"
        )
    return x, positions
