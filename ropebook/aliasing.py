"""Aliasing of rotary angles: which distances have (nearly) equal angles modulo a full turn.

A pair with inverse frequency ``theta`` rotates by ``m * theta`` over a distance of ``m`` positions.
The first half of this module is about a single pair: the distance at which its angle wraps, and
the distances at which it comes closest to 0. The second half is about all pairs: the mean cosine,
the distance between position codes, its minimum over a range or an image, and rounding. All but
`near_repeats` is NumPy float64: an angle of ``a`` radians has an error of about ``a * 2**-53``, and
no correct digit past 1e15. Searches run in blocks, so memory stays bounded.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, reduce
from typing import NamedTuple

import numpy as np

from rope_minimal.checks import (
    as_float,
    check_count,
    check_frequencies,
    check_positive,
    real_numbers,
)

__all__ = [
    "NearRepeat",
    "NearestCode",
    "NearestOffset",
    "angle_horizon",
    "circle_gaps",
    "code_distance",
    "cosine_horizon",
    "mean_cosine",
    "near_repeats",
    "nearest_code",
    "nearest_offset",
    "neighbour_contrast",
    "neighbour_snr",
    "rounding_noise",
    "unseen_pairs",
    "wrapped_angle",
]

_BLOCK = 1 << 20
"""Angles held in memory at once (8 MiB of float64)."""

_SIGNIFICAND_BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


class NearRepeat(NamedTuple):
    """A distance at which the angle of a pair is near a multiple of 2*pi."""

    distance: int
    """Positions."""
    turns: int
    """The nearest number of full turns."""
    error: float
    """``distance * theta - 2*pi*turns``, in radians."""


class NearestCode(NamedTuple):
    """The distance whose position code is closest to that of distance 0."""

    distance: int
    """Positions."""
    code_distance: float
    """D(m) at that distance, from 0 (same code) to 2."""


class NearestOffset(NamedTuple):
    """The offset along several axes whose position code is closest to that of offset 0."""

    offset: tuple[int, ...]
    """Positions, one per axis. The first nonzero one is positive."""
    code_distance: float
    """D at that offset, from 0 (same code) to 2."""


# One pair ------------------------------------------------------------------------------------


def wrapped_angle(angle: np.ndarray | float) -> np.ndarray:
    """Return ``angle`` modulo 2*pi.

    Parameters
    ----------
    angle
        Radians, finite, any shape, any sign.

    Returns
    -------
    ndarray of the shape of ``angle``, float64
        Radians in [0, 2*pi), where 2*pi is the nearest float64.
    """
    angle = real_numbers("angle", angle)
    if not np.isfinite(angle).all():
        raise ValueError(f"angle must be finite, got {angle}")
    wrapped = np.mod(angle, 2.0 * np.pi)
    return np.where(wrapped == 2.0 * np.pi, 0.0, wrapped)[()]


def angle_horizon(theta: np.ndarray | float) -> np.ndarray:
    """Return the first distance at which the wrapped angle decreases: ``ceil(2*pi/theta)``.

    ``theta`` is taken modulo 2*pi first, as in `wrapped_angle`.

    Parameters
    ----------
    theta
        Radians per position, any shape, >= 0. The result is infinite for 0.

    Returns
    -------
    ndarray of the shape of ``theta``, float64
        Distances in positions, whole numbers or infinity.
    """
    theta = check_frequencies("theta", theta)
    with np.errstate(divide="ignore", over="ignore"):
        return np.ceil(2.0 * np.pi / wrapped_angle(theta))[()]


def near_repeats(theta: float, max_distance: int) -> list[NearRepeat]:
    """Return the distances at which the angle of a pair comes closer to 0 than at any shorter one.

    Parameters
    ----------
    theta
        Radians per position, finite and > 0. The float is taken as the exact number it is.
    max_distance
        The largest distance to report, in positions, >= 1.

    Returns
    -------
    list of NearRepeat
        All such distances, in increasing order; angles are compared modulo 2*pi.

    Notes
    -----
    The records are the denominators of the continued fraction of ``theta / (2*pi)`` (best
    approximations of the second kind, Lagrange). The arithmetic is exact up to a sufficiently long
    pi, so ``error`` is correctly rounded even where ``distance * theta`` in float64 is not.
    """
    check_positive("theta", theta)
    max_distance = check_count("max_distance", max_distance)
    turn = 2 * _pi(2200 + 2 * max_distance.bit_length())
    step = Fraction(float(theta))
    records: list[NearRepeat] = []
    for turns, distance in _convergents(step / turn):
        if distance > max_distance:
            break
        record = NearRepeat(distance, turns, float(distance * step - turns * turn))
        if records and records[-1].distance == distance:
            records.pop()  # 0/1 and 1/1 share the denominator: the second is the nearer one
        records.append(record)
    return records


def circle_gaps(theta: float, positions: int) -> np.ndarray:
    """Return the gaps between the angles ``0, theta, .., (positions-1)*theta`` on the circle.

    Parameters
    ----------
    theta
        Radians per position, finite and > 0.
    positions
        Number of positions, >= 1.

    Returns
    -------
    ndarray of shape (positions,), float64
        Radians in increasing order; their sum is 2*pi. At most three different lengths occur
        (three-gap theorem, Sós 1958).
    """
    check_positive("theta", theta)
    positions = check_count("positions", positions)
    if not math.isfinite(as_float(positions) * float(theta)):
        raise ValueError(f"theta * positions must be finite, got {theta} * {positions}")
    angles = np.sort(wrapped_angle(np.arange(positions) * float(theta)))
    return np.sort(np.diff(angles, append=angles[0] + 2.0 * np.pi))


# All pairs ------------------------------------------------------------------------------------


def mean_cosine(distance: np.ndarray | float, inv_freq: np.ndarray) -> np.ndarray:
    """Return the mean of ``cos(distance * theta_i)`` over the pairs.

    This is the score of a query and an equal key at that distance, relative to distance 0, when
    all pairs have equal norms.

    Parameters
    ----------
    distance
        Distances in positions, any shape; with wave vectors, offsets of shape (..., A).
    inv_freq
        Radians per position, shape (pairs,), or wave vectors of shape (A, pairs).

    Returns
    -------
    ndarray of the shape of ``distance``, float64
        In [-1, 1]. With wave vectors, of shape (...): the map over the offsets.
    """
    return _by_blocks(distance, inv_freq, lambda angle: np.cos(angle).mean(axis=-1))


def cosine_horizon(inv_freq: np.ndarray | float, max_distance: int | None = None) -> float:
    """Return the first distance at which the mean cosine increases.

    Parameters
    ----------
    inv_freq
        Radians per position, shape (pairs,) or one number.
    max_distance
        End of the search. By default 64 times the half period of the fastest pair.

    Returns
    -------
    float
        An integer number of positions; infinity if the mean cosine decreases over the whole range
        of the search.

    Raises
    ------
    ValueError
        If an angle in the range overflows.

    Notes
    -----
    ``cos(m t) - cos((m-1) t) = -2 sin((m - 1/2) t) sin(t/2)``, so the sign of the step is computed
    without cancellation. Up to the half period of the fastest pair every cosine decreases, so the
    search begins there. An increase within the rounding error of the angles, ``2**-52`` of them,
    does not count: for pairs below about 1e-12 radians per position the result may be one position
    late.
    """
    inv_freq = _check_inv_freq(inv_freq)
    if max_distance is not None:
        max_distance = check_count("max_distance", max_distance)
    fastest = float(inv_freq.max())
    if fastest < 2.0**-50:
        return math.inf
    start = max(1, math.floor(math.pi / fastest))
    stop = 64 * start if max_distance is None else max_distance
    if not math.isfinite(as_float(stop) * fastest):
        raise ValueError(f"max_distance * inv_freq must be finite, got {stop} * {fastest}")
    weight = np.sin(inv_freq / 2.0)
    for block in _blocks(start, stop, inv_freq.size):
        angles = (block[:, None] - 0.5) * inv_freq
        rises = np.sin(angles) @ weight < -(2.0**-52) * (angles @ np.abs(weight))  # no rounding
        if rises.any():
            return float(block[rises.argmax()])
    return math.inf


def code_distance(distance: np.ndarray | float, inv_freq: np.ndarray | float) -> np.ndarray:
    """Return ``D(m)``: the root mean square over the pairs of ``|1 - exp(i m theta)|``.

    Parameters
    ----------
    distance
        Distances ``m`` in positions, any shape; with wave vectors, offsets of shape (..., A).
    inv_freq
        Radians per position, shape (pairs,), or wave vectors of shape (A, pairs).

    Returns
    -------
    ndarray of the shape of ``distance``, float64
        Between 0 (equal codes) and 2 (all pairs opposite); sqrt(2) for unrelated codes. With
        wave vectors, of shape (...).

    Notes
    -----
    Computed as ``|1 - exp(i a)| = 2 |sin(a/2)|``, without cancellation for small angles.
    ``D**2 = 2 - 2*mean_cosine``.
    """
    return _by_blocks(
        distance,
        inv_freq,
        lambda angle: 2.0 * np.sqrt(np.square(np.sin(angle / 2.0)).mean(axis=-1)),
    )


def nearest_code(
    inv_freq: np.ndarray | float, max_distance: int, min_distance: int = 1
) -> NearestCode:
    """Return the distance in ``min_distance .. max_distance`` with the smallest ``D(m)``.

    Parameters
    ----------
    inv_freq
        Radians per position, shape (pairs,) or one number.
    max_distance
        The largest distance to search, in positions, up to 2**53.
    min_distance
        The smallest.

    Returns
    -------
    NearestCode
        The distance (the smallest one on a tie) and its code distance.
    """
    inv_freq = _check_inv_freq(inv_freq)
    max_distance = check_count("max_distance", max_distance)
    min_distance = check_count("min_distance", min_distance)
    if max_distance > 2**53:
        raise ValueError(f"max_distance must be <= 2**53, got {max_distance}")
    if min_distance > max_distance:
        raise ValueError(
            f"min_distance must be <= max_distance, got {min_distance}, {max_distance}"
        )
    best = NearestCode(0, math.inf)
    for block in _blocks(min_distance, max_distance, inv_freq.size):
        distances = code_distance(block, inv_freq)
        at = int(distances.argmin())
        if distances[at] < best.code_distance:
            best = NearestCode(int(block[at]), float(distances[at]))
    return best


def nearest_offset(
    wave_vectors: np.ndarray, shape: Sequence[int], min_distance: int = 1
) -> NearestOffset:
    """Return the offset within an image with the smallest ``D``.

    Parameters
    ----------
    wave_vectors
        Radians per position, shape (A, pairs). Divide wave vectors per image size by it first:
        ``wave_vectors / np.array(shape)[:, None]``.
    shape
        Size of the image along each axis, A integers >= 1, one of them > ``min_distance``.
    min_distance
        Ignore offsets that are smaller than this on every axis.

    Returns
    -------
    NearestOffset
        The offset and its code distance. ``D`` is the same for an offset and its negative; one of
        the two is returned. Ties (``D`` within 1e-9) go to the shortest offset, then to the one
        with fewer negative entries, then to the one smaller on the first axis where they differ.
    """
    wave_vectors = _check_wave_vectors("wave_vectors", wave_vectors)
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence):
        raise TypeError(f"shape must hold {len(wave_vectors)} integers, got {shape!r}")
    sizes = [check_count("shape", n) for n in shape]
    if len(sizes) != len(wave_vectors):
        raise ValueError(f"shape must hold {len(wave_vectors)} integers, got {shape!r}")
    min_distance = check_count("min_distance", min_distance)
    if min_distance >= max(sizes):
        raise ValueError(f"min_distance must be < {max(sizes)}, got {min_distance}")
    with np.errstate(over="ignore"):
        if not np.isfinite(max(sizes) * np.abs(wave_vectors).sum(axis=0)).all():
            raise ValueError(f"shape * wave_vectors must be finite, got shape = {shape!r}")
    steps = np.meshgrid(*(np.arange(1 - n, n) for n in sizes), indexing="ij")
    offsets = np.stack(steps, axis=-1).reshape(-1, len(sizes))
    offsets = offsets[len(offsets) // 2 + 1 :]  # past no offset, the way back of each before it
    offsets = offsets[np.abs(offsets).max(axis=1) >= min_distance]
    distances = code_distance(offsets, wave_vectors)
    nearest = offsets[distances < distances.min() + 1e-9]
    length, back = np.square(nearest).sum(axis=1), (nearest < 0).sum(axis=1)
    offset = nearest[np.lexsort([*np.abs(nearest).T[::-1], back, length])[0]]  # the last key first
    return NearestOffset(tuple(offset.tolist()), float(code_distance(offset, wave_vectors)))


def neighbour_contrast(inv_freq: np.ndarray | float) -> float:
    """Return ``D(1)``, the distance between the codes of adjacent positions.

    For queries and keys in random directions the score changes over one position by
    ``D(1) |q| |k| / sqrt(dim)`` (root mean square).
    """
    return float(code_distance(1, _check_inv_freq(inv_freq)))


def rounding_noise(dtype: str) -> float:
    """Return the root mean square relative error of rounding to ``dtype``.

    Parameters
    ----------
    dtype
        ``"float64"``, ``"float32"``, ``"float16"`` or ``"bfloat16"``.

    Returns
    -------
    float
        ``2**-p * sqrt(1 / (8 ln 2))`` for ``p`` significand bits, including the leading one.

    Notes
    -----
    The rounding error is uniform within half a unit in the last place, the significand ``s``
    follows Benford's law (density ``1 / (s ln 2)`` on [1, 2)), so ``1/s**2`` has the mean
    ``3 / (8 ln 2)``.
    Overflow and subnormal numbers are ignored.
    """
    if not isinstance(dtype, str) or dtype not in _SIGNIFICAND_BITS:
        raise ValueError(f"dtype must be one of {', '.join(_SIGNIFICAND_BITS)}; got {dtype!r}")
    return 2.0 ** -_SIGNIFICAND_BITS[dtype] * math.sqrt(1.0 / (8.0 * math.log(2.0)))


def neighbour_snr(inv_freq: np.ndarray | float, dtype: str) -> float:
    """Return the signal-to-noise ratio of a one-position step when q and k are stored in ``dtype``.

    Parameters
    ----------
    inv_freq
        Radians per position, shape (pairs,) or one number.
    dtype
        Storage dtype of the rotated queries and keys, as in `rounding_noise`.

    Returns
    -------
    float
        Root mean square of the score's change over that of its error, for q and k with i.i.d.
        normal entries; 0 if all frequencies are 0. A head that learned to use the step has a
        higher ratio.

    Notes
    -----
    A key moves by ``s_i = |1 - exp(i theta_i)|`` in pair i. With ``e = rounding_noise(dtype)`` its
    stored values at two adjacent positions would have a mean square error of ``2 e**2`` if they
    were rounded independently. Entries closer than their unit in the last place are mostly
    rounded alike and the errors cancel: what remains is ``unit * |difference|`` in the mean square,
    ``2 e**2 c s_i / e`` with ``c = (2/pi) sqrt(2/ln 2)``. ``2 e**2 (1 - exp(-c s_i / e))`` joins
    the two ends and is within 2 % of the integral over normal entries. The rounding of the query
    adds ``(e s_i)**2``.
    """
    noise = rounding_noise(dtype)
    step = 2.0 * np.abs(np.sin(_check_inv_freq(inv_freq) / 2.0))
    if not (step**2).any():
        return 0.0
    apart = (2.0 / math.pi) * math.sqrt(2.0 / math.log(2.0)) * step / noise
    error = noise**2 * (2.0 * -np.expm1(-apart) + step**2)
    return math.sqrt((step**2).sum() / error.sum())


def unseen_pairs(
    inv_freq: np.ndarray, positions: int, trained_inv_freq: np.ndarray, trained_positions: int
) -> np.ndarray:
    """Return which pairs reach angles at ``positions`` that did not occur in training.

    Parameters
    ----------
    inv_freq
        Radians per position in use now, shape (pairs,).
    positions
        Number of positions now.
    trained_inv_freq
        Radians per position during training, shape (pairs,).
    trained_positions
        Number of positions during training.

    Returns
    -------
    ndarray of shape (pairs,), bool
        True where the largest angle exceeds that of training, unless training covered the full
        circle. An excess below one part in 10**9 counts as rounding.
    """
    now, before = _check_inv_freq(inv_freq), _check_inv_freq(trained_inv_freq)
    if now.shape != before.shape:
        raise ValueError(
            f"inv_freq and trained_inv_freq must have one shape, got {now.shape} and {before.shape}"
        )
    for name, count in (("positions", positions), ("trained_positions", trained_positions)):
        check_count(name, count)
        check_positive(name, count)
    seen = float(trained_positions) * before
    return (seen < 2.0 * np.pi) & (float(positions) * now > seen * (1.0 + 1e-9))


# Helpers -------------------------------------------------------------------------------------


def _blocks(start: int, stop: int, pairs: int) -> Iterator[np.ndarray]:
    """Yield the integers ``start .. stop`` in float64 blocks that keep the angles within _BLOCK."""
    step = max(1, _BLOCK // pairs)
    for first in range(start, stop + 1, step):
        yield np.arange(first, min(first + step, stop + 1), dtype=np.float64)


def _by_blocks(
    distance: np.ndarray | float,
    inv_freq: np.ndarray | float,
    function: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Apply ``function`` to blocks (rows, pairs) of the angles after each ``distance``."""
    distance, inv_freq = real_numbers("distance", distance), real_numbers("inv_freq", inv_freq)
    if inv_freq.ndim == 2:
        vectors = _check_wave_vectors("inv_freq", inv_freq)
        if distance.shape[-1:] != (len(vectors),):
            raise ValueError(
                f"distance must have shape (..., {len(vectors)}), as inv_freq has {len(vectors)} "
                f"axes, got {distance.shape}"
            )
        shape = distance.shape[:-1]
    else:
        vectors, shape = _check_inv_freq(inv_freq)[None], distance.shape
    flat = distance.reshape(-1, len(vectors))
    step = max(1, _BLOCK // vectors.shape[1])
    out = np.empty(len(flat))
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, len(flat), step):
            block = flat[first : first + step]
            by_axis = (m[:, None] * theta for m, theta in zip(block.T, vectors, strict=True))
            out[first : first + step] = function(reduce(np.add, by_axis))
    if not np.isfinite(out).all():
        first = flat[~np.isfinite(out)][0]
        raise ValueError(f"distance * inv_freq must be finite, got distance = {first}")
    return out.reshape(shape)[()]


def _convergents(x: Fraction) -> Iterator[tuple[int, int]]:
    """Yield numerators and denominators of the continued fraction of ``x``."""
    p, q, p_old, q_old = 1, 0, 0, 1
    while True:
        whole = math.floor(x)
        p, p_old = whole * p + p_old, p
        q, q_old = whole * q + q_old, q
        yield p, q
        if x == whole:
            return
        x = 1 / (x - whole)


@cache
def _pi(bits: int) -> Fraction:
    """Return pi to ``bits`` bits by Machin's formula, 16 atan(1/5) - 4 atan(1/239)."""
    one = 1 << (bits + 16)

    def atan_inverse(n: int) -> int:
        total, power, k = 0, one // n, 0
        while power:
            total += power // (2 * k + 1) * (-1) ** k
            power //= n * n
            k += 1
        return total

    return Fraction(16 * atan_inverse(5) - 4 * atan_inverse(239), one)


def _check_inv_freq(inv_freq: np.ndarray | float) -> np.ndarray:
    """Return ``inv_freq`` as a non-empty float64 vector."""
    array = np.atleast_1d(check_frequencies("inv_freq", inv_freq))
    if array.ndim != 1 or not array.size:
        raise ValueError(f"inv_freq must have shape (pairs,), pairs >= 1, got {array.shape}")
    return array


def _check_wave_vectors(name: str, value: np.ndarray | float) -> np.ndarray:
    """Return ``value`` as a non-empty finite float64 matrix."""
    array = real_numbers(name, value)
    if array.ndim != 2 or not array.size:
        raise ValueError(f"{name} must have shape (A, pairs), both >= 1, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {value!r}")
    return array
