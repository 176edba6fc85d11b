"""What leads from one rotation to another: sentences, and a function that converts weights."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rope_minimal.checks import check_count

from .hypotheses import ERROR, Finding
from .precision import DIGITS

if TYPE_CHECKING:
    from .report import Report

__all__ = ["LOST", "Difference", "difference"]

Array = TypeVar("Array", bound=Any)

LOST = 0.05
"""Radians off, from which on an angle is not position times frequency."""

DRIFT = 0.01
"""Radians, at position 131,071, from which on a difference of frequencies is told."""

UNSURE = 0.05
"""Relative error of a frequency from which on two that agree may as well differ."""


@dataclass(frozen=True)
class Difference:
    """What leads from one rotation to another.

    Attributes
    ----------
    messages
        What to do, what differs, and what is wrong with either, a sentence each; empty only where
        they give the same scores, but for rounding, if the product follows the rotation. What
        scores are divided by after the product is not compared.
    convert
        ``convert(weight, num_heads)`` takes W_q or W_k, of shape (num_heads * head_dim, in), or a
        bias (num_heads * head_dim,), as trained under the first rotation, and returns the weight
        that gives the same scores under the second. None where no weight does, or where a report is
        about a part (`Finding`), has an error that is not rounding, or knows too little.
    permute
        The same without signs and factors. Where a norm with weights stands between projection and
        rotation, it takes the rows and their own biases, and ``convert`` takes the norm's weights
        and biases, with ``num_heads`` 1 where heads share them (of weights stored less 1, in
        float32, after 1 is added, which is taken away again). A norm without weights divides
        factors out. Weights after the rotation follow the channels that it writes: ``permute``
        takes them where pairs come out where they went in.
    """

    messages: tuple[str, ...]
    convert: Callable[[Array, int], Array] | None = field(compare=False)
    permute: Callable[[Array, int], Array] | None = field(compare=False)

    def __str__(self) -> str:
        return "\n".join(self.messages) or "They give the same scores."


def difference(one: "Report", two: "Report") -> Difference:
    """Return what leads from one rotation to another, see `Report.differs_from`."""
    both = ((one, "first"), (two, "second"))
    messages = [f"The {which} {_fault(r)}." for r, which in both if not r.is_rotation]
    unlike = []
    if one.probed and two.probed:
        if one.head_dim != two.head_dim:
            unlike.append(f"heads of {one.head_dim} channels against {two.head_dim}")
        if one.axes != two.axes:
            unlike.append(f"{one.axes} {'axis' if one.axes == 1 else 'axes'} against {two.axes}")
    if unlike:
        messages.append(f"{', '.join(unlike).capitalize()}.")
    elif not messages and one.width != two.width:
        messages.append(f"{one.width} channels rotate against {two.width}.")
    elif not messages and not (len(one.inv_freq) and len(two.inv_freq)):
        messages.append("Angles that are not proportional to the position have no frequencies.")
    if messages:
        return Difference(tuple(messages), None, None)
    return _Comparison(one, two).difference()


def _fault(report: "Report") -> str:
    """Return why a report is not that of a rotation."""
    if any(finding.hypothesis == "lengths keep" for finding in report.findings):
        return "changes lengths with the position"
    return "is no rotation" if report.probed else "was not measured"


class _Comparison:
    """Two rotations of as many pairs, beside each other in the order of their frequencies."""

    def __init__(self, one: "Report", two: "Report") -> None:
        self.reports = one, two
        self.messages: list[str] = []
        self.convertible = True
        signed = [r.inv_freq * (r.direction or 1) for r in self.reports]
        waves = [w.reshape(len(one.pairs), one.axes) for w in signed]
        errors = [r.inv_freq_error.reshape(waves[0].shape) for r in self.reports]
        noise = 2.0 * (errors[0].max(axis=0) + errors[1].max(axis=0))
        signs = [_signs(w, noise) for w in waves]
        upper = [w * s for w, s in zip(waves, signs, strict=True)]
        self.orders = orders = self._matched(upper, errors, noise)
        self.first, self.second = (w[order] for w, order in zip(upper, orders, strict=True))
        self.known = 2.0 * (errors[0][orders[0]] + errors[1][orders[1]])
        self.apart = np.abs(self.first - self.second)
        self.off = (self.apart > self.known + 1e-6 * np.abs(self.first)).any(axis=1)
        self.flips = (signs[0][orders[0]] != signs[1][orders[1]])[:, 0]
        near = 2.0 * (errors[0] + errors[1]) + 1e-6 * np.abs(waves[0])
        self.in_place = not (np.abs(upper[0] - upper[1]) > near).any()

    def _matched(
        self, upper: list[np.ndarray], errors: list[np.ndarray], noise: np.ndarray
    ) -> np.ndarray:
        """Return the order of the pairs of either, (2, pairs), in which equals are side by side."""
        one, two = self.reports
        orders = _orders(upper[0], upper[1], noise)
        (a, b), (i, j) = upper, orders
        level = (np.abs(np.abs(a[i]) - np.abs(b[j])) <= noise + 3e-6 * np.abs(a[i])).all()
        if one.axes == 1 and set(one.pairs) == set(two.pairs) and not level:
            orders[1] = [two.pairs.index(one.pairs[k]) for k in i]  # each beside itself
        if one.axes > 1:  # by size, pairs of equal waves may miss each other
            orders[1] = j[_equals(a[i], b[j], 2.0 * errors[0][i], 2.0 * errors[1][j])]
        return orders

    def difference(self) -> Difference:
        """Compare, and return sentences and converters."""
        one, _ = self.reports
        self._faults()
        self._frequencies()
        self._tables()
        source, target = (_channels(r, o) for r, o in zip(self.reports, self.orders, strict=True))
        self._rows(source, target)
        sign = self._signs_and_factors(source)
        order = np.empty(one.head_dim, int)
        order[target] = source
        messages = tuple(self.messages)
        if not self.convertible:
            return Difference(messages, None, None)
        return Difference(messages, _converter(order, sign), _converter(order, np.ones(len(order))))

    @staticmethod
    def _faulty(report: "Report") -> list[Finding]:
        return [f for f in report.findings if f.severity == ERROR or f.partial]

    def _faults(self) -> None:
        """Repeat what is wrong with either; what is not rounding is no reason to convert."""
        one, two = map(self._faulty, self.reports)
        harmless = [f for f in one if f in two and f.severity < ERROR and not f.hypothesis]
        one, two = ([f for f in found if f not in harmless] for found in (one, two))
        both = [f for f in one if f in two]
        for who, found in (("Both", both), ("The first", one), ("The second", two)):
            self.messages += [
                f"{who}: {f.message}" for f in found if who == "Both" or f not in both
            ]
        self.convertible &= all(f.chapter == "precision" for f in one + two)
        self._lost()

    def _lost(self) -> None:
        """Tell what no change of rows makes up for."""
        for which, report in zip(("first", "second"), self.reports, strict=True):
            if (report.angle_error or 0.0) > LOST:
                self.convertible = False
                self.messages.append(
                    f"Angles of the {which} miss position times frequency by more than {LOST} rad."
                )
        if bool(self.reports[0].unrotated_factor) != bool(self.reports[1].unrotated_factor):
            self.convertible = False
            self.messages.append("One of them loses the channels that do not rotate.")

    def _frequencies(self) -> None:
        """Compare frequencies, or wave vectors and the arrangement of sections."""
        one, two = self.reports
        first, second, pairs = self.first, self.second, len(self.first)
        size = np.maximum(np.abs(first), 1e-300)
        unsure = (self.known.max(axis=1) > UNSURE * np.abs(first).max(axis=1)) & ~self.off
        if unsure.any():
            self.messages.append(
                f"{int(unsure.sum())} of {pairs} pairs are too slow to be compared: as positions "
                f"and numbers were probed, they may differ by {UNSURE:.0%} or more."
            )
        if one.arrangement != two.arrangement and one.sections and two.sections:
            self.messages.append(
                f"Pairs are dealt out to axes {one.arrangement}; there {two.arrangement}."
            )
        if self.off.any() and one.axes > 1:
            self.flips[self.off] = False  # they stand beside any
            left = int(self.off.argmax())
            self.messages.append(
                f"{int(self.off.sum())} of {pairs} wave vectors have no equal there, that of pair "
                f"{one.pairs[self.orders[0][left]]} for one: {_number(first[left])}. No weight "
                "makes up for that: the pairs must rotate as there, with its axes, base and "
                "rescaling."
            )
        elif self.off.any():
            times = (size / np.maximum(np.abs(second), 1e-300))[:, 0]
            alike = self.off.all() and np.ptp(times) <= 1e-5 * times.min()
            worst = 0 if alike else int((self.apart / size).max(axis=1).argmax())
            pair = f"pair {one.pairs[self.orders[0][worst]]}"
            start = (
                f"All {pairs} pairs rotate {times.min():.6g} times as fast as there, {pair} for one"
                if alike
                else f"{int(self.off.sum())} of {pairs} pairs have another frequency than there, "
                f"{pair} the most"
            )
            self.messages.append(
                f"{start}: {_number(first[worst])} against {_number(second[worst])}. No weight "
                "makes up for that; base and rescaling are of the configuration: give the second "
                "those of the first, and compare again."
            )
        self.convertible &= not (self.off.any() or unsure.any())
        drift = np.where(self.apart <= self.known, 0.0, self.apart)
        if not self.off.any() and (far := float(drift.max()) * (2**17 - 1)) > DRIFT:
            self.messages.append(
                f"Frequencies differ by up to {float((drift / size).max()):.1g} of themselves, "
                f"which is {far:.2g} rad at position 131,071."
            )

    def _tables(self) -> None:
        """Tell where tables end, if they do so at different positions."""
        ends = [report.table_end for report in self.reports]
        for which, end, report in zip(("first", "second"), ends, self.reports, strict=True):
            if end is not None and ends[0] != ends[1]:
                self.messages.append(
                    f"The table of the {which} ends at {end:,}, then {report.past_end}."
                )

    def _rows(self, source: np.ndarray, target: np.ndarray) -> None:
        """Tell how rows move."""
        one, two = self.reports
        named = (
            not self.off.any()
            or one.axes == 1
            or (one.layout, one.place) != (two.layout, two.place)
        )
        if not named or np.array_equal(source, target):
            return
        a, b = (f"{r.layout or 'a layout without a name'} ({r.place})" for r in self.reports)
        if a == b:
            a, b = "one order of pairs", "another"
            if set(one.pairs) != set(two.pairs):
                a, b = (
                    f"pairs such as {r.pairs[o[0]]}"
                    for r, o in zip(self.reports, self.orders, strict=True)
                )
        elif one.layout and two.layout and not self.off.any() and not self.in_place:
            b += ", where pairs stand in another order"
        self.messages.append(f"Permute the rows of each head of W_q and W_k: from {a} to {b}.")

    def _signs_and_factors(self, source: np.ndarray) -> np.ndarray:
        """Return what each row is multiplied by, and tell it."""
        one, two = self.reports
        sign = np.ones(one.head_dim)
        flipped = np.flatnonzero(self.flips)
        sign[source[2 * flipped + 1]] = -1.0
        if len(flipped):
            self.messages.append(
                f"Negate the second row of {len(flipped)} of {len(self.first)} pairs: they rotate "
                "the other way."
            )
        numbers = [report.numbers or "float64" for report in self.reports]
        limit = max(1e-6, *(2.0 * 2.0 ** -DIGITS[name] for name in numbers))
        rotates = np.arange(one.head_dim) < one.width
        for rows, which, mine, others in (
            (source[rotates], "rotate", one.attention_factor, two.attention_factor),
            (source[~rotates], "do not rotate", one.unrotated_factor, two.unrotated_factor),
        ):
            factor = mine / others if mine and others else 1.0
            if len(rows) and abs(factor - 1.0) > limit:
                carry = f"he rotations carry {mine:.10g} against {others:.10g} there"
                if self.off.any():  # a rescaling, which is to be given, has a factor of its own
                    self.messages.append(f"T{carry}: multiply no rows before frequencies agree.")
                    continue
                self.messages.append(f"Multiply the rows that {which} by {factor:.10g}: t{carry}.")
                sign[rows] *= factor
                self.messages += _root(factor, one.head_dim)
        return sign


def _root(factor: float, head_dim: int) -> list[str]:
    """Tell where a factor is what one side may divide scores by, half of it on each side."""
    for sign, power in (("-", head_dim**-0.25), ("", head_dim**0.25)):
        if math.isclose(factor, power, rel_tol=1e-5):
            return [
                f"That is {head_dim}^({sign}1/4): if one model divides queries and keys by it, and "
                f"the other their scores by the root of {head_dim}, leave it out."
            ]
    return []


def _converter(order: np.ndarray, sign: np.ndarray) -> Callable[[Array, int], Array]:
    """Return the function that moves, negates and scales the rows of every head."""

    def convert(weight: Array, num_heads: int) -> Array:
        """Return ``weight`` (num_heads * head_dim, in), or a bias, for the other rotation."""
        if not hasattr(weight, "reshape") or not hasattr(weight, "dtype"):
            raise TypeError(
                f"weight must be a NumPy array or a torch tensor, got {type(weight).__name__}"
            )
        if "float" not in str(weight.dtype):  # whole numbers would lose a factor of 0.7
            raise TypeError(f"weight must hold floating-point numbers, got {weight.dtype}")
        num_heads, shape = check_count("num_heads", num_heads), tuple(weight.shape)
        if len(shape) not in (1, 2) or shape[0] != num_heads * len(order):
            raise ValueError(
                f"weight must have num_heads * head_dim = {num_heads} * {len(order)} rows, "
                f"got shape {shape}"
            )
        heads = weight.reshape(num_heads, len(order), *shape[1:])[:, order]
        factors = sign[order].reshape(-1, *(1,) * (len(shape) - 1))
        if isinstance(weight, np.ndarray):
            return (heads * factors).astype(weight.dtype).reshape(shape)
        wide = heads.float() if heads.element_size() < 4 else heads  # rounded once, at the end
        return (wide * wide.new_tensor(factors)).to(weight.dtype).reshape(shape)

    return convert


def _signs(waves: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return the sign, (pairs, 1), that makes a wave's first number above noise positive."""
    size = np.abs(waves)
    above = size > np.minimum(noise, size.max(axis=1, keepdims=True) / 2.0)
    first = waves[np.arange(len(waves)), above.argmax(axis=1)]
    return np.where(first < 0, -1.0, 1.0)[:, None]


def _orders(first: np.ndarray, second: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return the pairs of either, (2, pairs), by falling waves; what noise sets apart is level."""
    both = np.concatenate((first, second))
    rising = both.argsort(axis=0)
    steps = np.diff(np.take_along_axis(both, rising, 0), axis=0, prepend=-np.inf) > noise
    levels = np.empty_like(both)
    np.put_along_axis(levels, rising, steps.cumsum(axis=0, dtype=float), 0)
    keys = np.split(np.concatenate((levels, np.round(both, 12)), axis=1), 2)
    return np.array([np.lexsort(key[:, ::-1].T)[::-1] for key in keys])


def _equals(
    first: np.ndarray, second: np.ndarray, known: np.ndarray, there: np.ndarray
) -> np.ndarray:
    """Return for each wave the number of its equal, or, where none is left, of one without."""
    apart = np.abs(first[:, None] - second)
    equal = (apart <= known[:, None] + there + 1e-6 * np.abs(first)[:, None]).all(axis=2)
    found = np.full(len(first), -1)
    for i, row in enumerate(equal):
        free = np.flatnonzero(row)
        if len(free):
            found[i] = free[0]
            equal[:, free[0]] = False
    found[found < 0] = np.setdiff1d(np.arange(len(first)), found)
    return found


def _channels(report: "Report", order: np.ndarray) -> np.ndarray:
    """Return all channels of a head: those of the pairs in this order, then the others."""
    rotating = np.array(report.pairs, int).reshape(-1, 2)[order].flatten()
    return np.concatenate((rotating, np.setdiff1d(np.arange(report.head_dim), rotating)))


def _number(wave: np.ndarray) -> str:
    """Return a frequency, or a wave vector, in ten digits."""
    values = [f"{abs(v) if len(wave) == 1 else v:.10g}" for v in wave]
    return values[0] if len(wave) == 1 else f"({', '.join(values)})"
