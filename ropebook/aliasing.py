"""When do two distances look alike? One hand of the clock, and all of them together.

A pair with inverse frequency ``theta`` turns by ``m * theta`` over a distance of ``m`` positions.
The first half of this module looks at one such hand: when it wraps, when its cosine turns back, how
near it comes to its start. The second half looks at all pairs: the distance between position
codes, its smallest value over a range or an image, and what of it survives rounding. All but
`near_repeats` is NumPy float64, so an angle of ``a`` radians is right to about ``a * 2**-53`` and
past 1e15 to nothing. Ranges that are searched are worked off in blocks, so memory stays bounded.
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
    """A distance after which one hand is almost back: ``error = distance*theta - 2*pi*turns``."""

    distance: int
    """Positions."""
    turns: int
    """Whole turns, the nearest to what the hand has made after that distance."""
    error: float
    """The angle in radians, negative if the hand stops short of its start."""


class NearestCode(NamedTuple):
    """The distance whose position code comes closest to that of distance 0, and how close."""

    distance: int
    """Positions."""
    code_distance: float
    """D(m) at that distance, from 0 (same code) to 2."""


class NearestOffset(NamedTuple):
    """The offset on several axes whose position code comes closest to that of no offset."""

    offset: tuple[int, ...]
    """Positions, one number for each axis. The first that is not 0 is positive."""
    code_distance: float
    """D at that offset, from 0 (same code) to 2."""


# One hand ------------------------------------------------------------------------------------


def wrapped_angle(angle: np.ndarray | float) -> np.ndarray:
    """Return ``angle`` modulo a full turn.

    Parameters
    ----------
    angle
        Radians, finite, any shape, any sign.

    Returns
    -------
    ndarray of the shape of ``angle``, float64
        Radians in [0, 2*pi), never 2*pi itself: a turn is the float64 nearest to 2*pi.
    """
    angle = real_numbers("angle", angle)
    if not np.isfinite(angle).all():
        raise ValueError(f"angle must be finite, got {angle}")
    wrapped = np.mod(angle, 2.0 * np.pi)
    return np.where(wrapped == 2.0 * np.pi, 0.0, wrapped)[()]


def angle_horizon(theta: np.ndarray | float) -> np.ndarray:
    """Return the first distance at which the wrapped angle falls back.

    It is ``ceil(2*pi/theta)``, whole turns in ``theta`` left out; `wrapped_angle` says what a turn
    is.

    Parameters
    ----------
    theta
        Radians per position, any shape, >= 0. A hand that stands still never wraps.

    Returns
    -------
    ndarray of the shape of ``theta``, float64
        Distances in positions, whole numbers or infinity.
    """
    theta = check_frequencies("theta", theta)
    with np.errstate(divide="ignore", over="ignore"):
        return np.ceil(2.0 * np.pi / wrapped_angle(theta))[()]


def near_repeats(theta: float, max_distance: int) -> list[NearRepeat]:
    """Return the record distances at which one hand comes nearest to its start.

    Parameters
    ----------
    theta
        Radians per position, finite and > 0. The float is taken as the exact number it is.
    max_distance
        The largest distance to report, in positions, >= 1.

    Returns
    -------
    list of NearRepeat
        By growing distance; each is nearer than every shorter distance, and none is left out.

    Notes
    -----
    The records are the denominators of the continued fraction of ``theta / (2*pi)`` (best
    approximations of the second kind, Lagrange). Integers are exact here and pi has bits enough, so
    the errors are right to the last digit even where ``distance * theta`` in floats is not.
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
        How many positions are marked on the circle, >= 1.

    Returns
    -------
    ndarray of shape (positions,), float64
        Radians, smallest first; they add up to 2*pi. At most three different lengths occur (the
        three-gap theorem, Sós 1958).
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

    It is the score of a query with an equal key at that distance when all pairs have equal length,
    divided by its value at distance 0.

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
    """Return the first distance at which the mean cosine is larger than one position before.

    Parameters
    ----------
    inv_freq
        Radians per position, shape (pairs,) or one number.
    max_distance
        Where to stop looking. By default 64 times the half turn of the fastest pair.

    Returns
    -------
    float
        A whole number of positions, or infinity if the mean cosine falls all the way to where the
        search stops, also if that is past the integers of float64.

    Raises
    ------
    ValueError
        If an angle on the way would be infinite.

    Notes
    -----
    ``cos(m t) - cos((m-1) t) = -2 sin((m - 1/2) t) sin(t/2)``, so the sign of the step is computed
    without subtracting nearly equal cosines. Up to the half turn of the fastest pair every cosine
    falls; the search begins there. What is within the rounding of the angles, ``2**-52`` of them,
    counts as no rise: pairs of some 1e-12 radians per position and less, whose steps are hardly
    longer, may be told to turn back a position late.
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
        From 0 (same code) over sqrt(2) (unrelated codes) to 2 (every hand opposite). With wave
        vectors, of shape (...).

    Notes
    -----
    ``|1 - exp(i a)| = 2 |sin(a/2)|``: no cancellation for small angles.
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
        The distance (the shortest one on a tie) and its code distance.
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
    """Return the offset inside an image with the smallest ``D``: two places most easily confused.

    Parameters
    ----------
    wave_vectors
        Radians per position, shape (A, pairs). A plan measured in sizes of the image is divided by
        them first: ``wave_vectors / np.array(shape)[:, None]``.
    shape
        The positions of the image on each axis, A numbers >= 1, one of them > ``min_distance``.
    min_distance
        Leave out offsets that are smaller than this on every axis.

    Returns
    -------
    NearestOffset
        The offset and its code distance. ``D`` is the same there and back, so one of the two is
        told. Among offsets whose ``D`` differ by less than 1e-9, the shortest, then the one with
        fewer negative numbers, then the one that moves less on the first axis where they differ.
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
    """Return ``D(1)``: how far apart the codes of two neighbours are.

    For queries and keys in random directions the score moves, over one position, by
    ``D(1) |q| |k| / sqrt(dim)`` in the root mean square.
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
        ``2**-p * sqrt(1 / (8 ln 2))`` for ``p`` significand bits, the leading one included.

    Notes
    -----
    The rounding error is uniform within half a unit in the last place, the significand ``s``
    follows Benford's law (density ``1 / (s ln 2)`` on [1, 2)), so ``1/s**2`` has the mean
    ``3 / (8 ln 2)``.
    Overflow and subnormal numbers are left out of account.
    """
    if not isinstance(dtype, str) or dtype not in _SIGNIFICAND_BITS:
        raise ValueError(f"dtype must be one of {', '.join(_SIGNIFICAND_BITS)}; got {dtype!r}")
    return 2.0 ** -_SIGNIFICAND_BITS[dtype] * math.sqrt(1.0 / (8.0 * math.log(2.0)))


def neighbour_snr(inv_freq: np.ndarray | float, dtype: str) -> float:
    """Return by how much the score of a one-position step exceeds the noise of storing q and k.

    Parameters
    ----------
    inv_freq
        Radians per position, shape (pairs,) or one number.
    dtype
        The number type in which rotated queries and keys are stored.

    Returns
    -------
    float
        Root mean square of the step over that of its error, for q and k in random directions
        (normal entries, all pairs alike); 0 if nothing turns. A head that aims its pairs at the
        step hears it better.

    Notes
    -----
    A key moves by ``s_i = |1 - exp(i theta_i)|`` in pair i. With ``e = rounding_noise(dtype)`` its
    two stored neighbours would differ from the exact ones by ``2 e**2`` in the mean square if they
    were rounded independently. Entries that are nearer than their unit in the last place are mostly
    rounded alike and the errors cancel: what is left is ``unit * |difference|`` in the mean square,
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
    inv_freq: np.ndarray, asked: int, trained_inv_freq: np.ndarray, trained: int
) -> np.ndarray:
    """Tell which pairs meet angles at ``asked`` positions that training never showed.

    Parameters
    ----------
    inv_freq
        Radians per position in use now, shape (pairs,).
    asked
        The number of positions now.
    trained_inv_freq
        Radians per position during training, shape (pairs,).
    trained
        The number of positions during training.

    Returns
    -------
    ndarray of shape (pairs,), bool
        True where ``asked`` steps turn farther than ``trained`` steps did, unless those had
        covered the whole circle. An excess below one part in 10**9 is rounding, not a new angle.
    """
    now, before = _check_inv_freq(inv_freq), _check_inv_freq(trained_inv_freq)
    if now.shape != before.shape:
        raise ValueError(
            f"inv_freq and trained_inv_freq must have one shape, got {now.shape} and {before.shape}"
        )
    for name, count in (("asked", asked), ("trained", trained)):
        check_count(name, count)
        check_positive(name, count)
    seen = float(trained) * before
    return (seen < 2.0 * np.pi) & (float(asked) * now > seen * (1.0 + 1e-9))


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
