"""The core: matrices from outside, and from them which channels turn together and how fast.

1. A linear map is known by what it does to unit vectors: fed with the identity matrix, a rotation
   tells its matrix ``M_t`` at every position t (`read_matrices`).
2. Channels that exchange something form a group; in a rotary embedding each group is a pair, whose
   block is ``c R(angle)`` (`read_circuit`).
3. An angle is known up to whole turns. Asked at positions 1, 2, 4, 8, ... each must be twice the
   one before, which counts the turns; far out, the speed is known to 16 digits (`by_doubling`).
4. What a score sees of two positions is ``M_m^T M_n``: it must not change when both move by the
   same distance (`broken_promise`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np

__all__ = [
    "COARSEST",
    "FORMATS",
    "Circuit",
    "broken_promise",
    "by_doubling",
    "by_thirds",
    "holding_format",
    "in_proportion",
    "made_format",
    "read_circuit",
    "read_matrices",
    "rounded",
]

COARSEST = 0.02
"""Error of cos and sin that rounding to bfloat16 explains: doubled angles are still told then."""

FORMATS = {"bfloat16": 2.0**-9, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
"""Formats of numbers and the largest relative error of rounding to them.

That of bfloat16 is 2**-8; here stands its error for numbers from 1/2 to 1, as cos and sin mostly
are.
"""

LOST = 0.1
"""Radians between a doubled angle and the one found, from which on they are two things."""

SLOW = 1.0 / 32.0
"""The same as a part of the angle, where that is small: no rounding of a product is so large."""


def read_matrices(
    ask: Callable[[np.ndarray, np.ndarray], np.ndarray], head_dim: int, positions: np.ndarray
) -> np.ndarray:
    """Return ``M_t`` for each position, (T, D, D): column i is the answer to unit vector i."""
    return ask(np.eye(head_dim), positions).transpose(1, 2, 0)


@dataclass(frozen=True, eq=False)
class Circuit:
    """What T matrices of shape (D, D) are made of.

    Attributes
    ----------
    reads, writes : ndarray of shape (n, 2)
        For each pair that moves, the channels of x that go in, the lower one first, and the
        channels of y that come out, ordered so that the block at position 0 does not mirror.
    blocks : ndarray of shape (T, n, 2, 2)
        ``y[writes] = blocks @ x[reads]``.
    still : ndarray of shape (k,)
        The channels of x that come out the same at every position.
    rest : ndarray of shape (D, k)
        What comes out of these.
    tangles : tuple of ndarray, each of shape (T, outputs, inputs)
        What moves and is no pair: a channel scaled alone, three or more that mix.
    """

    reads: np.ndarray
    writes: np.ndarray
    blocks: np.ndarray
    still: np.ndarray
    rest: np.ndarray
    tangles: tuple[np.ndarray, ...]

    def groups(self) -> Iterator[np.ndarray]:
        """Yield all that moves as stacks of blocks, each (T, groups, outputs, inputs)."""
        if len(self.reads):
            yield self.blocks
        for tangle in self.tangles:
            yield tangle[:, None]

    def scales(self) -> np.ndarray:
        """Return the factor on the lengths in each moving group at the first position."""
        squares = [(b[0] ** 2).sum((-2, -1)) / b.shape[-1] for b in self.groups()]
        return np.sqrt(np.concatenate(squares))

    @cached_property
    def singular_values(self) -> np.ndarray:
        """All singular values of what moves, (T, values): all equal in a rotation.

        A group with fewer outputs than inputs loses lengths, which are values of 0.
        """
        values = []
        for b in self.groups():
            lost = max(0, b.shape[-1] - b.shape[-2]) * b.shape[1]
            found = np.linalg.svd(b, compute_uv=False).reshape(len(b), -1)
            values.append(np.pad(found, ((0, 0), (0, lost))))
        return np.concatenate(values, axis=1)

    def angles(self) -> np.ndarray:
        """Return the angle of each pair against the first position, (T, n), in (-pi, pi].

        Of ``M_0^-1 M_t = G^-1 R(angle) G``, whatever gains G stand before the turn, trace and
        determinant tell the angle.
        """
        turn = np.linalg.solve(self.blocks[0], self.blocks)
        (a, b), (c, d) = np.moveaxis(turn, (-2, -1), (0, 1))
        square = -b * c - ((a - d) / 2.0) ** 2  # det - cos^2, without the loss of digits
        return np.arctan2(np.sign(c - b) * np.sqrt(np.maximum(square, 0.0)), (a + d) / 2.0)

    def turned(self, x: np.ndarray, angles: np.ndarray) -> np.ndarray:
        """Return what comes out of x (D,) if pairs turn by angles (T, n) from the first block."""
        first = self.blocks[0]
        if self.gains_first:
            angles = angles * np.sign(np.linalg.det(first))  # seen from behind a mirror
        c, s = np.cos(angles), np.sin(angles)
        turn = np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)
        blocks = turn @ first if self.gains_first else first @ turn
        return (blocks @ x[self.reads][..., None])[..., 0]

    @cached_property
    def factor(self) -> float:
        """The mean of `scales`, 1 where all is 0 at the first position."""
        return float(self.scales().mean()) or 1.0

    @cached_property
    def change(self) -> float:
        """By how much lengths change with the position, against that factor."""
        return float(np.ptp(self.singular_values, axis=0).max()) / self.factor

    @cached_property
    def sides(self) -> tuple[float, float]:
        """How M^T M and M M^T of the pairs change: one stays if gains stand on its side alone."""
        before, after = self.blocks.mT @ self.blocks, self.blocks @ self.blocks.mT
        return float(np.ptp(before, axis=0).max()), float(np.ptp(after, axis=0).max())

    @property
    def gains_first(self) -> bool:
        """Whether what changes lengths in the pairs, if anything does, stands before the turn."""
        before, after = self.sides
        return before < after


def turn_of(blocks: np.ndarray) -> np.ndarray:
    """Return the angle of the rotation next to each 2 x 2 block, in (-pi, pi]."""
    return np.arctan2(blocks[..., 1, 0] - blocks[..., 0, 1], blocks[..., 0, 0] + blocks[..., 1, 1])


def read_circuit(matrices: np.ndarray, noise: float) -> Circuit:
    """Take matrices of shape (T, D, D) apart; numbers up to ``noise`` may be rounding.

    A rotation writes exact zeros between its pairs, and then the slowest pair is seen however slow
    it is. Only where exact zeros leave no pairs are numbers up to ``noise`` taken for zeros.
    """
    size = np.abs(matrices).max(axis=0)
    groups = _groups(size > 0)
    if max(len(reads) for reads, _ in groups) > 2:
        clean = _groups(size > noise * size.max())
        groups = clean if len(clean) > len(groups) else groups
    pairs, tangles = [], []
    still: list[int] = []
    for reads, writes in groups:
        block = matrices[:, writes][:, :, reads]
        loose = noise * size.max() if len(reads) == 1 else 0.0
        if np.ptp(block, axis=0).max(initial=0.0) <= loose:
            still.extend(reads.tolist())
        elif len(reads) == len(writes) == 2:
            mirrors = np.linalg.det(block[0]) < 0
            pairs.append((reads, writes[::-1] if mirrors else writes))
        else:
            tangles.append(block)
    ins, outs = (np.array([p[k] for p in pairs], int).reshape(-1, 2) for k in (0, 1))
    return Circuit(
        reads=ins,
        writes=outs,
        blocks=matrices[:, outs[:, :, None], ins[:, None, :]],
        still=np.array(still, int),
        rest=matrices[0][:, np.array(still, int)],
        tangles=tuple(tangles),
    )


def _groups(linked: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the groups of inputs that share an output, each with its outputs, in order."""
    together = (linked.T.astype(np.float32) @ linked > 0) | np.eye(linked.shape[1], dtype=bool)
    while True:
        wider = together.astype(np.float32) @ together > 0
        if np.array_equal(wider, together):
            break
        together = wider
    firsts = together.argmax(axis=1)
    groups = []
    for first in sorted(set(firsts.tolist())):
        reads = np.flatnonzero(firsts == first)
        groups.append((reads, np.flatnonzero(linked[:, reads].any(axis=1))))
    return groups


def by_doubling(angles: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Count whole turns: from angles at 1, 2, 4, ... know the speed of each pair.

    The angle at 2p is twice that at p, up to whole turns that are thereby known, and an error in
    the angle counts less for the speed each time.

    Parameters
    ----------
    angles
        Shape (K, n), in radians, at the positions ``2**k``; turns may be missing.
    noise
        Radians that may be rounding. Above it, a small angle must be twice the one before to
        within the part `SLOW` of it, too: what turns by less than `LOST` cannot miss by more.

    Returns
    -------
    speeds : ndarray of shape (n,)
        Radians per position, within half a turn per position either way.
    errors : ndarray of shape (n,)
        How far the last two answers disagree: the precision to which each speed is known; 0 where
        only one angle fits.
    steps : int
        How many of the K angles fit; fewer than K where the function ends without a word.
    """
    total, last = angles[0].copy(), np.zeros_like(angles[0])
    for k in range(1, len(angles)):
        error = (angles[k] - 2.0 * total + np.pi) % (2.0 * np.pi) - np.pi
        slow = (np.abs(total) < LOST) & (np.abs(error) > noise + SLOW * np.abs(2.0 * total))
        if np.abs(error).max(initial=0.0) > LOST or slow.any():
            return total / 2.0 ** (k - 1), last / 2.0 ** (k - 1), k
        total, last = 2.0 * total + error, np.abs(error)
    return total / 2.0 ** (len(angles) - 1), last / 2.0 ** (len(angles) - 1), len(angles)


def by_thirds(first: np.ndarray, angles: np.ndarray, noise: float) -> np.ndarray | None:
    """Return the speeds that positions 3, 6, 12, ... tell, (n,); None where they do not double.

    Where positions are divided by 3 and rounded, all powers of two are wrong alike, and these not.

    Parameters
    ----------
    first
        Angles at position 1, (n,).
    angles
        Those at 3, 6, 12, ..., (K, n); turns may be missing.
    noise
        As in `by_doubling`.
    """
    if not len(angles):
        return None
    third = 3.0 * first + (angles[0] - 3.0 * first + np.pi) % (2.0 * np.pi) - np.pi
    speeds, _, steps = by_doubling(np.concatenate((third[None], angles[1:])), noise)
    return speeds / 3.0 if steps == len(angles) else None


def in_proportion(waves: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return wave vectors (n, axes), with whole turns added where they are missing in an index.

    Where all pairs turn along one axis as whole positions along another do, as in an index through
    rows of so many columns, speeds above half a turn per position are those of that proportion.
    """
    told = waves.copy()
    for a, b in permutations(range(waves.shape[1]), 2):
        slowest = int(np.abs(waves[:, b]).argmin())
        if not waves[slowest, b]:
            continue
        rows = np.round(waves[slowest, a] / waves[slowest, b])
        off = (waves[:, a] - rows * waves[:, b] + np.pi) % (2.0 * np.pi) - np.pi
        near = 4.0 * (errors[:, a] + np.abs(rows) * errors[:, b]) + 1e-9
        if abs(rows) > 1 and near.min() < 0.01 and (np.abs(off) <= near).all():
            told[:, a] = rows * waves[:, b]
    return told


def broken_promise(
    circuit: Circuit, positions: np.ndarray
) -> tuple[float, tuple[list[int], list[int], list[int]] | None]:
    """Return by how much a score of two unit vectors changes under a common shift, and where.

    Parameters
    ----------
    circuit
        Read at ``positions``.
    positions
        Shape (T, axes); the first is the origin.

    Returns
    -------
    deviation : float
        Largest ``|M_m^T M_n - M_{m+s}^T M_{n+s}|`` over what was asked, as a spectral norm.
    where : tuple of m, n, s
        As positions; None where nothing deviates.
    """
    row = {tuple(p): t for t, p in enumerate(positions.tolist())}
    sums = (positions[:, None] + positions).tolist()
    found = [  # a distance, a shift, and both, as rows
        (d, s, row[both])
        for s, line in enumerate(sums[1:], 1)
        for d, both in enumerate(map(tuple, line))
        if both in row
    ]
    worst, where = 0.0, None
    for blocks in circuit.groups():
        few = max(1, 2**20 // blocks[0].size)  # at a time
        for k in range(0, len(found), few):
            d, s, both = np.array(found[k : k + few]).T
            change = blocks[0].mT @ blocks[d] - blocks[s].mT @ blocks[both]
            deviations = np.linalg.norm(change, ord=2, axis=(-2, -1)).max(axis=1)
            one = int(deviations.argmax())
            if deviations[one] > worst:
                worst = float(deviations[one])
                m, n, by = (positions[t].tolist() for t in (0, d[one], s[one]))
                where = (m, n, by)
    return worst, where


def made_format(matrices: np.ndarray) -> str:
    """Return the smallest format that held matrices (T, D, D) before factors were multiplied in.

    A table of float32 times 1.2 in float64 is no more exact than float32. Each column may have a
    factor of its own, which makes its largest number at the first position one of the format: that
    number itself if it stands alone, else about the length of all.
    """
    outer = holding_format(matrices)
    largest, length = np.abs(matrices[0]).max(axis=0), np.linalg.norm(matrices[0], axis=0)
    near = largest / np.where(length > 0, length, 1.0)

    def held(numbers: np.ndarray, name: str) -> np.ndarray:
        off = np.abs(numbers - rounded(numbers, name))
        return (off <= 4.0 * FORMATS[outer] * np.abs(numbers)).all(axis=(0, 1))

    for name, unit in FORMATS.items():
        if unit < 64.0 * FORMATS[outer]:  # what a factor rounds would hide it
            break
        left = np.arange(len(near))
        for step in (0, 1, -1, 2, -2):
            whole = rounded(near[left] + step * unit * (near[left] < 1.0), name)
            factors = np.where(near[left] > 0, largest[left] / np.where(whole > 0, whole, 1.0), 1.0)
            fits = held(matrices[:4, :, left] / factors, name)  # most fail at once
            fits[fits] = held(matrices[:, :, left[fits]] / factors[fits], name)
            left = left[~fits]
        if not len(left):
            return name
    return outer


def rounded(numbers: np.ndarray, name: str) -> np.ndarray:
    """Return numbers as one of the `FORMATS` holds them."""
    if name != "bfloat16":
        with np.errstate(over="ignore"):
            return numbers.astype(name).astype(np.float64)
    digits, power = np.frexp(numbers)
    return np.ldexp(np.round(digits * 256.0) / 256.0, power)


def many_digits(head_dim: int) -> np.ndarray:
    """Return eight vectors (8, D): no factor gives few digits to all numbers of a channel."""
    return np.random.default_rng(0).uniform(1.0, 2.0, (8, head_dim))


def format_before(numbers: np.ndarray, factor: float) -> str:
    """Return the smallest format that held every number before a factor was multiplied in."""
    outer = holding_format(numbers)
    for name in ("bfloat16", "float16"):
        before = numbers / (factor or 1.0)
        near = 4.0 * FORMATS[outer] * np.abs(before)
        if (
            FORMATS[name] > 64.0 * FORMATS[outer]
            and (np.abs(before - rounded(before, name)) <= near).all()
        ):
            return name
    return outer


def holding_format(numbers: np.ndarray) -> str:
    """Return the smallest format of `FORMATS` that holds every number exactly."""
    single = numbers.astype(np.float32)
    if not np.array_equal(single, numbers):
        return "float64"
    if not (single.view(np.uint32) & 0xFFFF).any():
        return "bfloat16"
    with np.errstate(over="ignore"):
        half = single.astype(np.float16)
    return "float16" if np.array_equal(half, single) else "float32"
