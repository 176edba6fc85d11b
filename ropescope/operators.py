"""One operator per position, and what it is made of: pairs of channels, angles, frequencies.

1. A linear map is known by what it does to unit vectors: fed with the identity, a rotation gives
   its matrix ``M_t`` at every position t (`operators`).
2. Channels that share an output form a group; in a rotary embedding each group is a pair, whose
   block is ``c R(angle)`` (`decompose`).
3. An angle is known up to whole turns. At positions 1, 2, 4, 8, ... each must be twice the one
   before, which counts the turns; far out a frequency is known to 16 digits (`by_doubling`).
4. A score sees ``M_m^T M_n`` of two positions: it must not change when both move by the same
   distance (`relative_error`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from .precision import wrapped

__all__ = [
    "Structure", "along", "by_doubling", "decompose", "operators", "powers_of_two", "probe_grid",
    "relative_error",
]  # fmt: skip

AMBIGUOUS = 0.1
"""Radians between a doubled angle and the one measured, from which on they are two angles."""

SMALL_PART = 1.0 / 32.0
"""The same as a part of a small angle: no rounding of a product is so large."""


def powers_of_two(size: int) -> list[int]:
    """Return 1, 2, 4, ... below ``size``."""
    return [2**k for k in range((size - 1).bit_length())]


def along(axis: int, axes: int, places: np.ndarray | list[int]) -> np.ndarray:
    """Return positions (T, axes) at these places along one axis, 0 along the others."""
    positions = np.zeros((len(places), axes), dtype=np.int64)
    positions[:, axis] = places
    return positions


def probe_grid(sizes: tuple[int, ...]) -> np.ndarray:
    """Return the positions of the operators, (T, axes): the origin, doublings, corners.

    Powers of two and three times them are held exactly by every format; those after are not.
    """
    axes = len(sizes)
    points = [np.zeros((1, axes), dtype=np.int64)]
    for axis, size in enumerate(sizes):
        places = [q for p in powers_of_two(size) for q in (p, p + 1, 3 * p) if q < size]
        points.append(along(axis, axes, places))
    if axes > 1:
        corners = [(0, 1, powers_of_two((size + 1) // 2 + 1)[-1]) for size in sizes]
        both = [np.add(a, b) for a, b in product(product(*corners), repeat=2)]
        points.append(np.array([p for p in both if (p < sizes).all()][:200]))
    grid = np.concatenate(points)
    return grid[np.sort(np.unique(grid, axis=0, return_index=True)[1])]


def operators(
    probe: Callable[[np.ndarray, np.ndarray], np.ndarray], head_dim: int, positions: np.ndarray
) -> np.ndarray:
    """Return ``M_t`` for each position, (T, D, D): column i is the output for unit vector i."""
    return np.ascontiguousarray(probe(np.eye(head_dim), positions).transpose(1, 2, 0))


@dataclass(frozen=True, eq=False)
class Structure:
    """What T operators of shape (D, D) are made of.

    Attributes
    ----------
    inputs, outputs : ndarray of shape (n, 2)
        For each pair that rotates, the channels of x that go in, the lower one first, and those of
        y that come out, ordered so that the block at position 0 does not mirror.
    blocks : ndarray of shape (T, n, 2, 2)
        ``y[outputs] = blocks @ x[inputs]``.
    fixed : ndarray of shape (k,)
        The channels of x whose output is the same at every position.
    fixed_map : ndarray of shape (D, k)
        That output.
    mixed : tuple of ndarray, each of shape (T, outputs, inputs)
        What changes with the position and is no pair.
    """

    inputs: np.ndarray
    outputs: np.ndarray
    blocks: np.ndarray
    fixed: np.ndarray
    fixed_map: np.ndarray
    mixed: tuple[np.ndarray, ...]

    def groups(self) -> list[np.ndarray]:
        """Return all that changes with the position as stacks (T, groups, outputs, inputs)."""
        return [self.blocks] * bool(len(self.inputs)) + [block[:, None] for block in self.mixed]

    @cached_property
    def scales(self) -> np.ndarray:
        """The factor on lengths in each group at the first position."""
        squares = [(b[0] ** 2).sum((-2, -1)) / b.shape[-1] for b in self.groups()]
        return np.sqrt(np.concatenate(squares))

    @cached_property
    def factor(self) -> float:
        """The mean of `scales`, 1 where all are 0."""
        return float(self.scales.mean()) or 1.0

    @cached_property
    def pair_values(self) -> np.ndarray:
        """Singular values of the blocks, the larger one first, (T, n, 2)."""
        return _singular_values(self.blocks)

    @cached_property
    def values(self) -> np.ndarray:
        """All singular values of what changes with the position, (T, values)."""
        found = [self.pair_values.reshape(len(self.blocks), -1)]
        for block in self.mixed:
            lost = max(0, block.shape[-1] - block.shape[-2])
            found.append(np.pad(_singular_values(block), ((0, 0), (0, lost))))
        return np.concatenate(found, axis=1)

    @cached_property
    def change(self) -> float:
        """By how much lengths change with the position, divided by `factor`."""
        return float(np.ptp(self.values, axis=0).max()) / self.factor

    @cached_property
    def sides(self) -> tuple[float, float]:
        """How ``B^T B`` and ``B B^T`` change: one is constant if weights stand on its side."""
        before, after = self.blocks.mT @ self.blocks, self.blocks @ self.blocks.mT
        return float(np.ptp(before, axis=0).max()), float(np.ptp(after, axis=0).max())

    @cached_property
    def phases(self) -> np.ndarray:
        """Angle of the rotation nearest to each block at the first position, (n,)."""
        first = self.blocks[0]
        return np.arctan2(first[:, 1, 0] - first[:, 0, 1], first[:, 0, 0] + first[:, 1, 1])

    def angles(self) -> np.ndarray:
        """Return the angle of each pair against the first position, (T, n), in (-pi, pi].

        Trace and determinant of ``B_0^-1 B_t = G^-1 R(angle) G`` give it, whatever per-channel
        weights G stand before the rotation.
        """
        turn = np.linalg.solve(self.blocks[0], self.blocks)
        (a, b), (c, d) = np.moveaxis(turn, (-2, -1), (0, 1))
        square = -b * c - ((a - d) / 2.0) ** 2  # det - cos^2, without the loss of digits
        return np.arctan2(np.sign(c - b) * np.sqrt(np.maximum(square, 0.0)), (a + d) / 2.0)


def _singular_values(blocks: np.ndarray) -> np.ndarray:
    """Return the singular values of blocks (..., outputs, inputs), the largest first."""
    if blocks.shape[-2:] != (2, 2):
        return np.linalg.svd(blocks, compute_uv=False)
    (a, b), (c, d) = np.moveaxis(blocks, (-2, -1), (0, 1))
    plus, minus = np.hypot(a + d, c - b) / 2.0, np.hypot(a - d, b + c) / 2.0
    return np.stack((plus + minus, np.abs(plus - minus)), axis=-1)


def decompose(matrices: np.ndarray, noise: float) -> Structure:
    """Return what operators (T, D, D) are made of; numbers up to ``noise`` may be rounding.

    A rotation writes exact zeros between its pairs, and then the slowest pair is seen however slow
    it is. Only where exact zeros leave no pairs are numbers up to ``noise`` taken for zeros.
    """
    size = np.abs(matrices).max(axis=0)
    groups = _groups(size > 0)
    if max(len(reads) for reads, _ in groups) > 2:
        clean = _groups(size > noise * size.max())
        groups = clean if len(clean) > len(groups) else groups
    pairs, mixed = [], []
    fixed: list[int] = []
    for reads, writes in groups:
        block = matrices[:, writes][:, :, reads]
        loose = noise * size.max() if len(reads) == 1 else 0.0
        if np.ptp(block, axis=0).max(initial=0.0) <= loose:
            fixed.extend(reads.tolist())
        elif len(reads) == len(writes) == 2:
            pairs.append((reads, writes[::-1] if np.linalg.det(block[0]) < 0 else writes))
        else:
            mixed.append(block)
    ins, outs = (np.array([p[k] for p in pairs], int).reshape(-1, 2) for k in (0, 1))
    return Structure(
        inputs=ins,
        outputs=outs,
        blocks=matrices[:, outs[:, :, None], ins[:, None, :]],
        fixed=np.array(fixed, int),
        fixed_map=matrices[0][:, np.array(fixed, int)],
        mixed=tuple(mixed),
    )


def _groups(linked: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the groups of inputs that share an output, each with its outputs, in order."""
    together = (linked.T.astype(np.float32) @ linked > 0) | np.eye(linked.shape[1], dtype=bool)
    while not np.array_equal(wider := together.astype(np.float32) @ together > 0, together):
        together = wider
    reads = [np.flatnonzero(row) for row in together]
    firsts = [found for channel, found in enumerate(reads) if found[0] == channel]
    return [(found, np.flatnonzero(linked[:, found].any(axis=1))) for found in firsts]


def by_doubling(angles: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Return frequencies from angles at positions 1, 2, 4, ...: each is twice the one before.

    Parameters
    ----------
    angles
        Shape (K, n), in radians, at the positions ``2**k``; whole turns may be missing.
    noise
        Radians that may be rounding. Above it, a small angle must be twice the one before to
        within the part `SMALL_PART` of it, too.

    Returns
    -------
    inv_freq : ndarray of shape (n,)
        Radians per position, within half a turn per position either way.
    errors : ndarray of shape (n,)
        How far the last two disagree, as a frequency.
    steps : int
        How many of the K angles are doublings: fewer than K where proportion ends.
    """
    total, last = angles[0].copy(), np.zeros_like(angles[0])
    for k in range(1, len(angles)):
        error = wrapped(angles[k] - 2.0 * total)
        small = np.abs(total) < AMBIGUOUS
        slow = small & (np.abs(error) > noise + SMALL_PART * np.abs(2.0 * total))
        if np.abs(error).max(initial=0.0) > AMBIGUOUS or slow.any():
            return total / 2.0 ** (k - 1), last / 2.0 ** (k - 1), k
        total, last = 2.0 * total + error, np.abs(error)
    return total / 2.0 ** (len(angles) - 1), last / 2.0 ** (len(angles) - 1), len(angles)


def relative_error(
    structure: Structure, positions: np.ndarray
) -> tuple[float, tuple[list[int], list[int], list[int]] | None]:
    """Return by how much a score changes under a common shift, and where.

    Parameters
    ----------
    structure
        Of the operators at ``positions``, (T, axes), the first of them the origin.

    Returns
    -------
    error : float
        The largest norm of ``M_0^T M_d - M_s^T M_(d+s)``: that of unit vectors' scores.
    where : tuple of list of int or None
        Two positions and the shift, ``0, d, s``, at the largest; None where nothing changes.
    """
    count = len(positions)
    sums = (positions[1:, None] + positions).reshape(-1, positions.shape[1])
    _, first, which = np.unique(
        np.concatenate((positions, sums)), axis=0, return_index=True, return_inverse=True
    )
    both = first[which.ravel()[count:]]
    known = np.flatnonzero(both < count)
    found = np.stack((known % count, 1 + known // count, both[known]), axis=1)  # d, s, d + s
    worst, where = 0.0, None
    for blocks in structure.groups():
        few = max(1, 2**20 // blocks[0].size)  # at a time
        for d, s, both in (found[k : k + few].T for k in range(0, len(found), few)):
            change = blocks[0].mT @ blocks[d] - blocks[s].mT @ blocks[both]
            errors = _singular_values(change)[..., 0].max(axis=1)
            if errors.max() > worst:
                worst, one = float(errors.max()), int(errors.argmax())
                places = np.concatenate((positions[:1], positions[[d[one], s[one]]])).tolist()
                where = (places[0], places[1], places[2])
    return worst, where
