"""Test whether a function is deterministic, linear, and independent of all but the position.

Operators tell all of a function only if it is. They predict one call in which every vector is
another; only where that fails do further calls find which hypothesis it was.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .hypotheses import Hypothesis
from .operators import operators
from .precision import DIGITS, Noise, rounded, smallest_format, stored_format
from .probe import Probe, ProbeError

__all__ = ["Measured", "measure", "vectors"]

ALONE = 4
"""So many of the first positions are probed one by one as well."""


@dataclass(eq=False)
class Measured:
    """Operators, and how far they can be relied on.

    Attributes
    ----------
    positions, matrices
        Shapes (T, axes) and (T, D, D).
    added
        What comes out of zeros, (T, D, 1).
    numbers
        The smallest format that held the matrices before a factor was multiplied in.
    noise
        That of numbers in it.
    outputs
        The same of what comes out of a vector with many digits, for each channel, (D,).
    table
        The hypotheses tested.
    predicts
        Whether operators predict all other calls.
    """

    positions: np.ndarray
    matrices: np.ndarray
    added: np.ndarray
    numbers: str
    noise: Noise
    outputs: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=object))
    table: list[Hypothesis] = field(default_factory=list)
    predicts: bool = False

    @property
    def regular(self) -> bool:
        """Whether all hypotheses hold, so that other calls are predicted."""
        return all(one.holds for one in self.table)

    @property
    def limit(self) -> float:
        """Up to which two outputs for unit vectors are one."""
        return self.noise.value * float(np.abs(self.matrices).max())

    def test(self, name: str, residual: float, limit: float = 0.0, /, **values: Any) -> bool:
        """Write a hypothesis into the table, and return whether it holds."""
        plain = {key: _plain(value) for key, value in values.items()}
        self.table.append(Hypothesis(name, float(residual), float(limit), plain))
        return bool(residual <= limit)

    def expected(self, x: np.ndarray) -> np.ndarray:
        """Return what operators make of x (N, T, D)."""
        rows = np.ascontiguousarray(x.swapaxes(0, 1))  # so that BLAS multiplies
        return (rows @ self.matrices.mT + self.added.mT).swapaxes(0, 1)


def _plain(value: Any) -> Any:
    """Return what JSON keeps as it is."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (int, float, str)) else str(value)


def measure(probe: Probe, positions: np.ndarray, first: np.ndarray) -> Measured:
    """Return operators at positions (T, axes), and the hypotheses without which they tell nothing.

    ``first`` are the operators of the very first call, at the first two positions.
    """
    raw = operators(probe, probe.head_dim, positions)
    try:
        added = probe(np.zeros((1, probe.head_dim)), positions).transpose(1, 2, 0)
    except ProbeError:  # a norm divides by 0
        added = np.zeros((len(positions), probe.head_dim, 1))
    columns = np.linalg.norm(raw, axis=1).mean(axis=0)
    numbers = max(stored_format(raw, columns), key=DIGITS.__getitem__)
    noise = Noise(Noise.of(numbers).value * max(1.0, float(np.abs(added).max())))
    found = Measured(positions, raw - added, added, numbers, noise)
    change = np.abs(operators(probe, probe.head_dim, positions) - raw).max()
    if not found.test("deterministic", change, found.limit):
        return found
    if not _predicts(probe, found) and not _independent(probe, found):
        return found
    _placed(probe, found)
    if found.regular:
        change = np.abs(operators(probe, probe.head_dim, positions[:2]) - first).max()
        found.test("stateless", change, found.limit / 4.0, what="the first call")
    if not found.regular:
        operators(probe, probe.head_dim, positions)  # leaves the state of a long call
        last, again = (operators(probe, probe.head_dim, positions) for _ in range(2))
        if found.test("deterministic", np.abs(again - last).max(), found.limit):
            change = np.abs(last - raw).max()
            found.test("stateless", change, found.limit / 4.0, what="a call after others")
            found.matrices = last - added
    found.test("no offset", np.abs(added).max())
    found.predicts = found.regular
    return found


def vectors(*shape: int) -> np.ndarray:
    """Return random vectors without a zero that every format holds exactly."""
    rng = np.random.default_rng(0)
    return rng.choice([-1, 1], shape) * rng.integers(1, 17, shape) / 8.0


def _predicts(probe: Probe, found: Measured) -> bool:
    """Return whether operators predict a call in which all vectors differ: long, short, precise."""
    rows = probe.head_dim + 4  # as many as operators are measured with, and more
    x = vectors(rows, len(found.positions), probe.head_dim)
    x[1] *= 64.0
    x[2] = np.random.default_rng(1).uniform(1.0, 2.0, x[2].shape)
    x[2] = rounded(x[2], probe.given) if probe.given in DIGITS else x[2]
    y = probe(x, found.positions)
    factors = np.linalg.norm(found.matrices, axis=2).mean(axis=0)
    found.outputs = stored_format(y[2], factors)
    size = np.abs(found.matrices).sum(axis=2).max() * np.abs(x).max(axis=(1, 2))
    off = np.abs(y - found.expected(x)).max(axis=(1, 2)) / (size + np.abs(found.added).max())
    precise, off[2] = off[2], 0.0
    formats = {probe.given, *found.outputs} & set(DIGITS)
    limit = 2.0 * max(found.noise.value, *(Noise.of(name).value for name in formats))
    if off.max() > limit:
        return False
    found.test("linear", off.max(), limit)
    return found.test("full inputs", precise, limit)


def _independent(probe: Probe, found: Measured) -> bool:
    """Find out which of rows, positions and sums makes a difference; False if not sums alone."""
    if not found.regular:  # inputs are rounded
        return True
    x = vectors(1, probe.head_dim)[0]
    batch = np.repeat(x[None], probe.head_dim + 4, axis=0)
    batch[1], batch[4] = -x[::-1], 2.0 * x[::-1]
    y, alone = probe(batch, found.positions), probe(batch[1:2], found.positions)
    equal = np.delete(y, [1, 4], axis=0)
    apart = max(np.ptp(equal, axis=0).max(), np.abs(y[1] - alone).max())
    limit = 8.0 * Noise.of(smallest_format(y)).value * np.abs(y).max()
    rows = found.test("independent rows", apart, limit)
    signs = np.where(np.arange(len(found.positions)) % 3 == 1, 1.0, -1.0)[:, None]
    ways = (np.ones_like(signs), -np.ones_like(signs), signs)
    plus, minus, mixed = (probe((sign * x)[None], found.positions)[0] for sign in ways)
    apart = np.abs(mixed - np.where(signs > 0, plus, minus)).max()
    if not found.test("independent positions", apart, limit) or not rows:
        return False
    off = np.abs(plus - found.expected(np.broadcast_to(x, (1, *plus.shape)))[0]).max()
    off = max(off, float(np.abs(probe(64.0 * x[None], found.positions)[0] / 64.0 - plus).max()))
    found.test("linear", off / np.abs(x).max())
    return True


def _placed(probe: Probe, found: Measured) -> None:
    """Compare with the same positions in another order, and one at a time."""
    at, size = found.positions, np.abs(found.matrices).max()
    x = vectors(1, 1, probe.head_dim).repeat(len(at), axis=1)
    straight = probe(x, at)
    order = np.arange(len(at))
    order[1:-1] = order[-2:0:-1]  # a call of the same length, with the same ends
    turned = float(np.abs(probe(x, at[order]) - straight[:, order]).max() / np.abs(x).max())
    far = float(np.abs(at).sum(axis=1).max()) * 2.0 ** -max(DIGITS[found.numbers], 24)
    limit = found.limit + 8.0 * far * size  # a product of matrices rounds angles by their place
    try:
        few = range(min(ALONE, len(at)))
        alone = np.concatenate([operators(probe, probe.head_dim, at[[t]]) for t in few])
    except ProbeError as error:
        found.test("single position", 1.0, why=str(error))
        return
    change = np.abs(alone - found.added[: len(alone)] - found.matrices[: len(alone)]).max()
    ways = ["permuted"] * bool(turned > limit) + ["one at a time"] * bool(change > limit)
    if turned > limit or np.ptp(alone, axis=0).max() <= limit < change:
        found.test("order", max(turned, change), limit, how=" or ".join(ways))
        return
    farthest = ", ".join(f"{p:,}" for p in at.max(axis=0))
    found.test("call", change, limit, count=len(alone), far=farthest)
