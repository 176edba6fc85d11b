"""The instrument: ask a function that rotates what it is, from outside.

What is asked and computed stands in `circuit`; here it is put together, and judged in words by
`judging` and `manners`.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from rope_minimal.checks import check_count

from . import judging, manners
from .asking import Asker, RefusalError, check_dtype, check_positions
from .circuit import (
    COARSEST,
    FORMATS,
    Circuit,
    broken_promise,
    by_doubling,
    by_thirds,
    holding_format,
    in_proportion,
    made_format,
    read_circuit,
    read_matrices,
    rounded,
    turn_of,
)
from .naming import Explanation, explain_axes, name_layout, name_place, plainest
from .report import LOOK, WRONG, Finding, Report

__all__ = ["identify"]

DENSE = 1024
"""Below it, every position is asked."""

SMALL = 1e-3
"""Radians by which angles may miss without a finding."""

NEAR = 64
"""Up to it, angles hardly miss by whole turns where speeds are slightly wrong."""

FIRST_STEP = 1.0 + 0.1 * math.log(2.0)
"""By how much queries grow first where they do with the logarithm of a block's number (Llama 4)."""

ASTRAY = re.compile("^Angles (do not grow|are not)|^It turns by its freq|positions below 1,024")
"""Of such a finding the first positions alone may be the reason."""

OTHER_KIND = re.compile(
    r"not numpy\.ndarray|Cannot interpret 'torch|'numpy\.ndarray' object has no"
)
"""Of these refusals the kind of array is the reason; where it gives another, that one tells."""


def identify(
    rotate: Callable[..., Any],
    head_dim: int,
    *,
    positions: int | tuple[int, ...] = 2**17,
    dtype: Any = None,
) -> Report:
    """Say what a function that rotates queries or keys is, without reading its code.

    Parameters
    ----------
    rotate
        ``rotate(x, positions)`` takes x of shape (N, T, head_dim), NumPy or torch, and T whole
        numbers, of shape (T,), or (T, axes) where a position has several; it returns x turned.
    head_dim
        Channels of a head, at least 2.
    positions
        How many positions may be asked: 0 to ``positions - 1``. A tuple has one number for each
        axis of a position. A function whose table ends before says so.
    dtype
        Floating-point type of x, of NumPy or of torch. Where not given, NumPy's float64, then
        torch's float64 and float32 are tried.

    Returns
    -------
    Report
        A function that fails, or does something else than rotate, has a report, too: its findings
        say what it does. What ``rotate`` raises does not get out.

    Notes
    -----
    A speed is known within half a turn per position, as whole positions tell no more: ``theta`` and
    ``theta - 2 pi`` are one function of them. Of a rotation whose angles fit, every position below
    1,024 along each axis is asked, and some points between the axes; beyond, powers of two, their
    neighbours, what lies halfway between, and the last. Of anything else, powers of two are asked,
    those just after them, three times them, and sums of some. What a function does to none of these
    is not seen, nor what it does to calls of more than 1,024 positions, nor what it has forgotten
    of calls before: ask one that has just been made.
    Angles that miss by less than 0.001 rad have no finding; ``angle_error`` tells them.
    """
    if not callable(rotate):
        raise TypeError(f"rotate must be callable, got {type(rotate).__name__}")
    head_dim = check_count("head_dim", head_dim, least=2)
    sizes = check_positions(positions)
    refusals: dict[str, list[str]] = {}
    for kind in check_dtype(dtype):
        ask = Asker(rotate, head_dim, len(sizes), kind)
        try:
            first = ask(np.eye(head_dim), _asked(sizes)[:2])
        except RefusalError as said:
            refusals.setdefault(str(said), []).append(ask.kind)
            continue
        try:
            return _past_start(_Examination(ask, sizes, first).report(), ask, sizes)
        except RefusalError as said:  # this kind of array it takes
            refusals = {f"answers once and later {said}": [ask.kind]}
            break
    own = {why: kinds for why, kinds in refusals.items() if not OTHER_KIND.search(why)}
    refusals = own or refusals
    asked = [kind for kinds in refusals.values() for kind in kinds]
    told = "; ".join(f"asked in {', '.join(kinds)}, it {why}" for why, kinds in refusals.items())
    if dtype is None and len(refusals) > 1:
        told += ". Where it keeps something between calls, the first of them may have broken it: "
        told += "make it anew, and give dtype"
    refused = Finding(WRONG, f"It does not answer: {told}.", "attention")
    return Report(head_dim, len(sizes), ", ".join(asked), findings=(refused,))


def _past_start(report: Report, ask: Asker, sizes: tuple[int, ...]) -> Report:
    """Return what is said of later positions where the first few alone are turned otherwise."""
    said = any(f.gravity == WRONG and ASTRAY.search(f.words) for f in report.findings)
    try:
        if not (said and len(sizes) == 1 and report.pairs):
            return report
        count, change = _steady_from(ask, sizes[0])
        if not count:
            return report
        later = Asker(lambda x, at: ask.rotate(x, at + count), ask.head_dim, 1, ask.dtype)
        size = (sizes[0] - count,)
        first = later(np.eye(ask.head_dim), _asked(size)[:2])
        rest = _Examination(later, size, first).report()
    except RefusalError:
        return report
    if not rest.inv_freq.any():
        return report
    found = (judging.false_start(count, change), *rest.findings)
    return replace(rest, asked=f"{rest.asked}, counted from {count}", findings=found)


def _steady_from(ask: Asker, size: int) -> tuple[int, float]:
    """Return from which of the first positions on every step is one turn, 0 if from the first.

    Beside it, by how much the score of two unit vectors changes from the step before it to the
    step after.
    """
    if size < 2 * judging.SHORT:
        return 0, 0.0
    matrices = read_matrices(ask, ask.head_dim, np.arange(min(NEAR + 1, size))[:, None])
    if np.linalg.cond(matrices).max() > 1e3:
        return 0, 0.0
    steps = np.linalg.inv(matrices[:-1]) @ matrices[1:]
    off = np.linalg.norm(steps - steps[-1], 2, axis=(1, 2))
    misses = np.flatnonzero(off > max(1e-4, 64.0 * FORMATS[holding_format(matrices)]))
    count = int(misses[-1]) + 1 if len(misses) else 0
    if not 0 < count <= len(steps) // 2:
        return 0, 0.0
    last, first, next_one = matrices[count - 1 : count + 2]
    return count, float(np.linalg.norm(last.T @ first - first.T @ next_one, 2))


@dataclass
class _Examination:
    """One function under examination: what is asked, in order, and what has been found so far."""

    ask: Asker
    sizes: tuple[int, ...]
    first: np.ndarray
    findings: list[Finding] = field(default_factory=list)
    end: int | None = None
    past: str | None = None
    ended: list[Finding] = field(default_factory=list)
    still: np.ndarray = field(default_factory=lambda: np.empty(0, int))
    loss: float = FORMATS["float32"]

    def report(self) -> Report:
        """Ask, read, name and judge; once more within the table where that ends without a word."""
        self._find_refusals()
        sizes, report = self.sizes, self._examine()
        while self.sizes != sizes:
            self.findings = []
            sizes, report = self.sizes, self._examine()
        found = (*self.ended, *self.findings)
        return replace(report, table_end=self.end, past_end=self.past, findings=found)

    def _examine(self) -> Report:
        """Ask at the positions that are answered."""
        ask, positions = self.ask, _asked(self.sizes)
        ranges = " x ".join(f"0..{size - 1:,}" for size in self.sizes)
        report = Report(ask.head_dim, len(self.sizes), f"{ask.kind}, positions {ranges}")
        try:
            answer = manners.read(ask, positions)
        except RefusalError as said:
            ask(np.eye(ask.head_dim), positions[:2])  # does it still answer at all?
            for i, at in enumerate(positions):
                try:
                    ask(np.eye(ask.head_dim), positions[[0, i]])
                except RefusalError as refusal:
                    place = ", ".join(f"{p:,}" for p in np.atleast_1d(at))
                    self._refused(RefusalError(f"{refusal}, asked for position {place}"))
                    return report
            words = f"It answers each position alone, but together it {said}."
            self.findings.append(Finding(WRONG, words, "attention"))
            return report
        for unlike in (manners.repeats, manners.neighbours, manners.rows):
            if found := unlike(ask, answer):  # then matrices tell nothing
                self.findings += manners.repeats(ask, answer, 16) or found
                return report
        bent = manners.linear(ask, answer)  # before a short call, which may change what is kept
        found = manners.company(ask, answer) + bent
        found = found or manners.memory(ask, answer, self.first)
        if found:
            manners.read(ask, positions)  # calls in between may have left something for the next
            again = manners.read(ask, positions)
            if random := manners.repeats(ask, again, 16):
                self.findings += random
                return report
            found += manners.left_behind(answer, again)
        self.alone = not found and not answer.added.any()
        self.findings += found + manners.arguments(ask, answer)
        matrices = answer.matrices  # a difference is rounded as what it is made of
        numbers = max(answer.numbers, made_format(matrices), key=FORMATS.__getitem__)
        self.unit = FORMATS[numbers] * max(1.0, float(np.abs(answer.added).max()))
        report = replace(report, numbers=numbers)
        if self.alone and self._find_step(matrices, positions):
            return report
        circuit = read_circuit(matrices, 64.0 * self.unit)
        if not (len(circuit.reads) or circuit.tangles):
            self.findings += judging.still()
            return report
        return self._read(report, circuit, positions)

    # ---- where it ends -----------------------------------------------------------------------

    def _find_refusals(self) -> None:
        """Find where the function begins to refuse, and shrink what is asked to what it takes."""
        sizes = list(self.sizes)
        for axis, size in enumerate(self.sizes):
            if (said := self._refusal(axis, size - 1)) is None:
                continue
            good, bad = 1, size - 1
            while bad - good > 1:
                middle = (good + bad) // 2
                if (words := self._refusal(axis, middle)) is None:
                    good = middle
                else:
                    bad, said = middle, words
            sizes[axis] = good + 1
            grows = said.startswith("raises") and self._grows(axis, good, size)
            self.ended += judging.short_table(good, said, grows)
            if not grows:
                self._ends(axis, good, said)
            if not said.startswith("raises"):  # an error is what one wants there
                self.ended += judging.silent_end(good, f"it {said}{self._of_axis(axis)}")
        self.sizes = tuple(sizes)

    def _grows(self, axis: int, good: int, size: int) -> bool:
        """Return whether what two positions alone do not get is answered in a longer call."""
        places = range(min(size, 2 * good + 2, DENSE))
        try:
            self.ask(self._vector()[None], [_along(axis, len(self.sizes), p) for p in places])
        except RefusalError:
            return False
        return len(places) > good + 1

    def _refusal(self, axis: int, p: int) -> str | None:
        """Return what is said at position ``p`` along an axis; None where it is answered."""
        x = self._vector()[None]  # a mean taken away would leave nothing of equal numbers
        x[:, self.still] = 0.0
        try:
            self.ask(x, [_along(axis, len(self.sizes), q) for q in (0, p)])
        except RefusalError as said:
            return f"{said}{' where channels turn' if len(self.still) else ''}"
        return None

    def _ends(self, axis: int, good: int, past: str) -> None:
        """Write down the last position along an axis, and what comes after it; the nearest."""
        if self.end is None or good < self.end:
            self.end, self.past = good, f"{past}{self._of_axis(axis)}"

    def _find_silent_end(
        self, circuit: Circuit, axis: int, speed: np.ndarray, good: int, bad: int
    ) -> None:
        """Between positions along an axis, one that fits and one not, find the last that fits."""
        end = self.sizes[axis] - 1
        share = np.minimum(0.1, 64.0 * self.unit + 1e-6 * bad * np.abs(speed))

        def misfits(places: Any) -> np.ndarray:
            return self._misfits(circuit, speed, places, axis, share)

        if misfits([good, good // 2 + 1]).any():  # angles are not so exact
            share = np.full(len(speed), 0.1)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (good, middle) if misfits([middle])[0] else (middle, bad)
        if misfits(np.unique(np.linspace(0, good, DENSE).astype(int))).any():
            return  # it misses before, too: that is no end
        after = np.unique(np.minimum(bad + np.array([0, 1, 2, 5, 11]), end))
        y = self._turned([*after, end], axis)
        again = self._turned([good, *(after - bad)], axis)
        loose = 0.1 * share.max() * np.abs(again).max()
        sizes = np.linalg.norm(y, axis=1) / np.linalg.norm(again[0])
        if np.abs(y - again[0]).max() < loose:
            past = "every position gets the rotation of the last"
            good = min(good, self._first_like(end, axis, good))
        elif np.abs(y[:-1] - again[1:]).max() < loose:
            past = "it starts again from position 0"
        elif np.abs(y - again[1]).max() < loose:
            past = "every position gets the rotation of position 0"
        elif sizes.min() > 1.0 + 1e-3 and self._grows_on(axis, good):
            self.findings.append(judging.changing(1.0, float(sizes.max()), 0.0, True, False))
            return
        elif np.abs(sizes - 1.0).min() > 1e-3:
            past = "vectors come out with other lengths"
        elif np.abs(y[:-1, circuit.writes] - self._lag(circuit, speed, after)).max() < loose:
            past = "each position gets the rotation that the one before it should have"
        elif misfits(after).all():
            past = "angles no longer follow them"
        else:
            return
        self._ends(axis, good, past)
        self.ended += judging.silent_end(good, f"{past}{self._of_axis(axis)}")
        self.sizes = (*self.sizes[:axis], max(2, good + 1), *self.sizes[axis + 1 :])

    def _find_step(self, matrices: np.ndarray, positions: np.ndarray) -> bool:
        """Find from where on along an axis unit vectors come out with other lengths, all at once.

        What grows or falls by and by is no step.
        """
        lengths = np.linalg.norm(matrices, axis=1)
        most = np.abs(lengths - lengths[0]).max(axis=1)
        loose = 24.0 * self.unit * lengths[0].max()
        if (lengths[:, lengths[0] > loose] <= loose).any():  # zeros are another end
            return False

        def apart(axis: int, p: int) -> float:
            found = self.ask(np.eye(self.ask.head_dim), [_along(axis, len(self.sizes), p)])
            return float(np.abs(np.linalg.norm(found[:, 0], axis=1) - lengths[0]).max())

        for axis in range(len(self.sizes)):
            on = (positions != 0).sum(axis=1) == (positions[:, axis] != 0)
            same, late = (positions[on & other, axis] for other in (most <= loose, most > loose))
            if not len(late) or same.max() < 4 or same.max() > late.min():
                continue
            good, bad = int(same.max()), int(late.min())
            while bad - good > 1:
                middle = (good + bad) // 2
                good, bad = (middle, bad) if apart(axis, middle) <= loose else (good, middle)
            if apart(axis, bad) > max(2.0 * apart(axis, good), 0.5 * most[on].max()):
                if self._grows_on(axis, good):
                    return False
                past = "vectors come out with other lengths"
                self._ends(axis, good, past)
                self.ended += judging.silent_end(good, f"{past}{self._of_axis(axis)}")
                self.sizes = (*self.sizes[:axis], good + 1, *self.sizes[axis + 1 :])
                return True
        return False

    def _grows_on(self, axis: int, good: int) -> bool:
        """Whether lengths grow in steps, this being the first, and turns are those of their parts.

        Where no other step is within reach, it is known by its size.
        """
        end = self.sizes[axis] - 1
        far = min(2 * good, end)
        half = far // 2
        each = [_along(axis, len(self.sizes), p) for p in (0, half, far - half, far, good + 1, end)]
        matrices = read_matrices(self.ask, self.ask.head_dim, np.array(each))
        lengths = np.linalg.norm(matrices, axis=1, keepdims=True)
        if np.ptp(lengths, axis=2).max() > 64.0 * self.unit * lengths.max():
            return False  # not one factor for all
        start, one, other, both, *_ = matrices / lengths
        loose = max(1e-3, 64.0 * self.unit)
        if np.abs(one @ np.linalg.pinv(start) @ other - both).max() > loose:
            return False
        first, last = (lengths[[-2, -1], 0, 0] / lengths[0, 0, 0]).tolist()
        near = 8.0 * self.unit + 1e-5
        return bool(last > first + near or abs(first - FIRST_STEP) <= near)

    def _first_like(self, end: int, axis: int, at: int) -> int:
        """Return the first position up to ``at`` that comes out exactly as the last; at if none."""
        last, other, alike = self._turned([end], axis), 0, at + 1
        while alike - other > 1:
            middle = (other + alike) // 2
            same = np.array_equal(self._turned([middle], axis), last)
            other, alike = (other, middle) if same else (middle, alike)
        return min(alike, at)

    # ---- reading -----------------------------------------------------------------------------

    def _read(self, report: Report, circuit: Circuit, positions: np.ndarray) -> Report:
        """Fill in what the matrices say."""
        values, scales = circuit.singular_values, circuit.scales()
        if values[0].any() and not (len(self.still) or values.any(axis=1).all()):
            self.still, sizes = circuit.still, self.sizes  # what stands hides zeros beside it
            self._find_refusals()
            if self.sizes != sizes:
                return report
        factor = circuit.factor
        low, high = float(values.min()) / factor, float(values.max()) / factor
        if high - low <= 8.0 * FORMATS["float32"]:  # in float64, some of it was made in float32
            self.unit = max(self.unit, min(FORMATS["float32"], high - low))
        loose = self.unit * (16.0 if report.numbers in judging.ROUNDED else 64.0)
        one_factor = bool(np.ptp(scales) <= loose * factor)
        one_factor &= bool(np.ptp(values, axis=1).max() <= max(loose, COARSEST) * factor)
        rest = np.linalg.svd(circuit.rest, compute_uv=False) if len(circuit.still) else np.ones(1)
        one_rest = bool(np.ptp(rest) <= loose * rest.max())
        deviation, where = broken_promise(circuit, positions)
        one = factor if one_factor else 1.0
        # four numbers of a block may all be rounded twice
        rotates = one_factor and one_rest and not circuit.tangles and high - low <= 8.0 * self.unit
        layout, self.span = name_layout(circuit.reads, circuit.writes)
        report = replace(
            report,
            pairs=tuple((int(a), int(b)) for a, b in circuit.reads),
            written=tuple((int(a), int(b)) for a, b in circuit.writes),
            layout=layout,
            place=name_place(circuit.reads, report.head_dim),
            width=2 * len(circuit.reads),
            is_rotation=rotates,
            singular_values=(float(values.min()) / one, float(values.max()) / one),
            attention_factor=factor if one_factor else None,
            rest_factor=float(rest.mean()) if one_rest else None,
            deviation=deviation / one**2,
            deviation_at=where,
        )
        self.findings += judging.lengths(report, circuit, self.ask, positions)
        self.findings += judging.out_of_place(report, circuit) + judging.few(report)
        start = np.abs(np.linalg.det(circuit.blocks[0])).min(initial=np.inf)
        alike = np.ptp(values, axis=1).max() <= COARSEST * values.max(axis=1)
        turns = high - low <= 0.5 or (circuit.change < COARSEST and low > 1e-3)  # behind gains
        turns |= bool(alike.all()) and low > 1e-3  # times one factor at each position
        if len(circuit.reads) and turns and start > 1e-12 * factor**2:
            report = self._read_angles(report, circuit, positions)
        if rotates:
            self.findings += judging.factor(report, self.unit)
        self.findings += judging.rest(report, circuit, self.unit)
        return report

    def _read_angles(self, report: Report, circuit: Circuit, positions: np.ndarray) -> Report:
        """Fill in speeds and what they are, and compare every angle with them."""
        angles, axes = circuit.angles(), len(self.sizes)
        row = {tuple(p): t for t, p in enumerate(positions.tolist())}
        speeds, errors, ends = [], [], []
        wobble = circuit.change / 2.0 if circuit.change / 2.0 < COARSEST else 0.0  # of rounding
        for axis, size in enumerate(self.sizes):
            powers = _powers(size)
            found = angles[[row[_along(axis, axes, p)] for p in powers]]
            unit = self.unit
            speed, error, fits = by_doubling(found, 8.0 * unit)
            for coarser in (wobble, 3.0 * SMALL / 8.0):  # what rounds lengths rounds angles
                if fits < len(powers) and unit < coarser:
                    rough = by_doubling(found, 8.0 * coarser)
                    if rough[2] == len(powers):
                        (speed, error, fits), unit = rough, coarser
            last = 2.0 ** (fits - 1)
            off, near = found[:fits] - np.outer(powers[:fits], speed), 4.0 * max(unit, wobble)
            off = np.abs((off + np.pi) % (2.0 * np.pi) - np.pi).max(axis=0)
            off = 8.0 * np.maximum(off - near, 0.0)  # rounded, as none is that starts at 0
            error = error + (near + off) / last
            thirds = [row[_along(axis, axes, 3 * p)] for p in powers if 3 * p < min(size, last + 1)]
            other = by_thirds(found[0], angles[thirds], 8.0 * unit)
            speed, apart = self._nearer(circuit, axis, speed, other)
            slow = (np.abs(speed) <= 2.0 * unit / last) & ~_doubles(found[:fits])
            speeds.append(np.where(slow, 0.0, speed))
            errors.append(error + apart)
            ends.append(size if fits == len(powers) else int(last))
            if fits < len(powers) and (fits == 1 or not speeds[axis].any()):
                report = replace(report, shared_position=self._shared(circuit))
                here, there = (row[_along(axis, axes, int(p))] for p in (last, 2 * last))
                self.findings += judging.no_speed(report, angles, positions, here, there)
                self.findings += judging.shared(report, resolved=True)
                self.findings += judging.promise(report, self.unit)
                return report
            if fits < len(powers) and self.alone:
                try:
                    self._find_silent_end(circuit, axis, speed, int(last), int(2 * last))
                except RefusalError as said:
                    self._refused(said)
                if self.sizes[axis] == size:
                    ends[axis] = size
        known = np.stack(errors, axis=-1)
        waves = in_proportion(np.stack(speeds, axis=-1), known)
        signs = set(np.sign(waves[waves != 0]).astype(int).tolist())
        direction = signs.pop() if len(signs) == 1 else None
        shape = (len(waves),) if axes == 1 else waves.shape
        report = replace(
            report,
            direction=direction,
            inv_freq=(waves * (direction or 1) + 0.0).reshape(shape),
            inv_freq_error=known.reshape(shape),
        )
        self.findings += judging.direction(report)
        scale = report.attention_factor or 1.0, 2.0 * self.unit
        series = explain_axes(np.abs(waves), known, report.head_dim, self.span, scale)
        if len(series) > 1 and judging.one_proportion(report) is not None:
            series = [plainest(series)]  # what turns along one axis turns along all
        if report.attention_factor is None:  # gains may hold it
            series = [[one.without("attention_factor") for one in found] for found in series]
        if series and len({str(found[:1]) for found in series}) == 1 and series[0]:
            best = series[0][0]
            report = replace(
                report,
                base=best.base if best.dim > 2 else None,  # one speed has no base
                rescaling=(best.kind, best.parameters) if judging.rescales(report, best) else None,
                explanations=tuple(series[0]),
            )
        elif (base := judging.one_base(series)) is not None:
            report = replace(report, base=base)
        return self._compare(report, circuit, positions, angles, waves, ends, series)

    def _nearer(
        self, circuit: Circuit, axis: int, speed: np.ndarray, other: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which of two answers fits the first angles, and how far they disagree, (n,)."""
        if other is None:
            return speed, np.zeros_like(speed)
        apart = np.abs(other - speed)
        if (apart <= 8.0 * FORMATS["float32"] * np.abs(speed)).all():  # as products are rounded
            return speed, np.zeros_like(speed)
        places = np.arange(min(NEAR + 1, self.sizes[axis]))
        angles = self._angles(circuit, axis, places)
        off = [np.abs(np.sin((angles - np.outer(places, v)) / 2.0)).sum() for v in (speed, other)]
        return (other if off[1] < off[0] else speed), 1.01 * apart

    def _angles(self, circuit: Circuit, axis: int, places: np.ndarray) -> np.ndarray:
        """Return the angle of each pair at places along an axis against the first, (T, n)."""
        points = np.array([_along(axis, len(self.sizes), int(p)) for p in places])
        matrices = read_matrices(self.ask, self.ask.head_dim, points)
        blocks = matrices[:, circuit.writes[:, :, None], circuit.reads[:, None, :]]
        return replace(circuit, blocks=blocks).angles()

    def _compare(
        self,
        report: Report,
        circuit: Circuit,
        positions: np.ndarray,
        angles: np.ndarray,
        waves: np.ndarray,
        ends: list[int],
        series: list[list[Explanation]],
    ) -> Report:
        """Compare every angle with position times frequency."""
        inside = (positions <= np.array(ends)).all(axis=1)
        waves = self._meant(report, circuit, waves)
        off = (angles - positions @ waves.T + np.pi) % (2.0 * np.pi) - np.pi
        error = np.abs(off).max(axis=1) * inside
        worst = int(error.argmax())
        starts = bool(np.abs(turn_of(circuit.blocks[0])).max() > 1e-3)
        by = judging.divisor(report)
        made = judging.rounding(off[inside], positions[inside], waves, self.unit, starts, by)
        first = positions[int((error > 0.5 * error[worst]).argmax())]  # of those that miss so far
        stops = made and made[0] == "positions" and self._stops(first)
        if stops:
            made = None
        if made == ("product", "float32"):  # of more than what these speeds make: whole turns
            size = np.maximum((np.abs(positions) @ np.abs(waves).T).max(axis=1), 1.0)
            self.loss = max(self.loss, 2.0 * float((error / size).max()))
        report = replace(
            report,
            angle_error=float(error[worst]) if inside.all() else None,
            angle_error_at=int(positions[worst].max()) if inside.all() else None,
            shared_position=self._shared(circuit),
        )
        self.findings += judging.numbers(report, series, made, self.sizes)
        self.findings += judging.origin(circuit, waves, self.unit)
        coarse = 8.0 * FORMATS.get(self.ask.type, FORMATS["float64"])
        self.findings += judging.shared(report, resolved=bool(np.abs(waves).max() > coarse))
        may_end = stops is None  # cannot be told
        far = starts and self.unit >= FORMATS["float32"]  # angles may start anywhere
        missed = judging.angles(report, error, positions, waves, made, self.unit, may_end, far)
        self.findings += missed
        if not any(f.gravity == WRONG for f in missed):  # axes may not add
            self.findings += judging.proportion(report)
        self.findings += judging.promise(report, self.unit)
        self.findings += judging.coarse_table(report, circuit, self.ask, positions)
        if made and judging.of_16_bits(made):  # so are the first angles
            part = 2.0 * FORMATS[made[1]] * np.abs(report.inv_freq)
            report = replace(report, inv_freq_error=np.maximum(report.inv_freq_error, part))
        lengths = circuit.change * circuit.factor
        start = np.ptp(np.linalg.svd(circuit.blocks[0], compute_uv=False), axis=-1).max()
        plain = error[worst] < 0.05 or made is None
        if self.alone and plain and max(lengths, start) <= COARSEST * circuit.factor:
            share = 1e-3 + 4.0 * error[worst] + 64.0 * self.unit + 2.0 * lengths
            share = share if report.is_rotation else 0.1  # gains before the turn do not turn
            try:
                for axis, speed in enumerate(waves.T):
                    self._ask_each(circuit, axis, speed, min(0.1, share))
                if len(self.sizes) > 1 and self.alone:
                    self._ask_some(circuit, waves, min(0.1, share))
            except RefusalError as said:
                self._refused(said)
        return self._with_near(report, circuit, waves[:, 0])

    def _with_near(self, report: Report, circuit: Circuit, speed: np.ndarray) -> Report:
        """Return the report with the largest error of an angle if it is one of the first."""
        if (
            report.axes > 1
            or not report.is_rotation
            or not self.alone
            or report.angle_error is None
        ):
            return report
        try:
            error = self._off(circuit, np.arange(min(DENSE, self.sizes[0])), speed).max(axis=1)
            at = int((error >= 0.999 * error.max()).argmax())  # of equal ones, the first
            # in a long call it may be another
            error = self._off(circuit, np.array([0, at]), speed)[-1].max()
        except RefusalError:  # which has been said
            return report
        if error <= report.angle_error:
            return report
        return replace(report, angle_error=float(error), angle_error_at=at)

    def _off(self, circuit: Circuit, places: np.ndarray, speed: np.ndarray) -> np.ndarray:
        """Return by how much angles at places, first of all 0, miss these speeds, (T, n)."""
        y = self._turned(places, x=_firsts(circuit, self.ask.head_dim))[:, circuit.writes]
        turn = y @ np.array([1.0, 1j])
        return np.abs(np.angle(turn * turn[0].conj() * np.exp(-1j * np.outer(places, speed))))

    def _meant(self, report: Report, circuit: Circuit, waves: np.ndarray) -> np.ndarray:
        """Return the speeds (n, axes) of a formula found in 16 bits, if angles fit them better.

        At powers of two, where speeds are read, a rounded product is that of a rounded speed.
        """
        best = report.explanations[0] if report.explanations else None
        coarse = best is not None and best.made_in == "16 bits"
        if best is None or not (coarse and report.axes == 1 and report.is_rotation and self.alone):
            return waves
        speeds, order = best.inv_freq(), np.argsort(-np.abs(waves[:, 0]), kind="stable")
        if len(speeds) != len(waves):
            return waves
        meant = np.empty_like(waves)
        meant[order, 0] = np.sort(speeds)[::-1]
        meant *= np.sign(waves)
        places = np.arange(min(DENSE, self.sizes[0]))
        try:
            own, other = (self._off(circuit, places, w[:, 0]).sum() for w in (waves, meant))
        except RefusalError:  # which will be said
            return waves
        return meant if other < own else waves

    def _stops(self, at: np.ndarray) -> bool | None:
        """Return whether what comes after 2^k + 1 is as at 2^k: formats of few digits round up.

        Any axis that goes on so far tells; None where none does.
        """
        last = int(at.max())
        longer = [axis for axis, size in enumerate(self.sizes) if size > last + 2]
        for axis in longer:
            y = self._turned([last - 1, last + 2], axis)
            if np.array_equal(y[0], y[1]):
                return True
        return False if longer else None

    def _ask_each(self, circuit: Circuit, axis: int, speed: np.ndarray, share: float) -> None:
        """Ask each place along an axis, far out some; where one misfits, a table may end."""
        end = self.sizes[axis] - 1
        each = np.arange(min(DENSE, end + 1))
        wrong = self._misfits(circuit, speed, each, axis, share)
        if wrong.any():
            some = np.flatnonzero(wrong)[:8]
            alone = not self._misfits(circuit, speed, some, axis, share).any()
            if not alone and end < DENSE and some[0] and wrong[some[0] :].all():
                self._find_silent_end(circuit, axis, speed, int(some[0]) // 2, int(some[0]))
                if self.sizes[axis] <= end:
                    return
            self.findings += judging.misfits(wrong, len(some) if alone else 0, self._of_axis(axis))
            return
        if end < DENSE:
            return
        powers = [p for p in _powers(end) if p >= DENSE]
        between = [place for p in powers for place in (p, 3 * p // 2, 2 * p - 1)]
        far = [DENSE // 2, *(place for place in between if place < end), end]
        loose = self._loosened(share, np.outer(far, np.abs(speed)))
        wrong = self._misfits(circuit, speed, far, axis, loose)
        own = np.zeros_like(wrong)  # wrong alone; the first was right among those beside it
        for k in 1 + np.flatnonzero(wrong[1:]):
            near = loose[[k]] if isinstance(loose, np.ndarray) else loose
            own[k] = self._misfits(circuit, speed, [far[k]], axis, near)[0]
        self.findings += judging.far_company(np.array(far), wrong & ~own, self._of_axis(axis))
        if own.any():
            one = int(own.argmax())
            self._find_silent_end(circuit, axis, speed, far[one - 1], far[one])
            if self.sizes[axis] > end:
                after = np.arange(far[one] + 1, min(far[one] + NEAR, end) + 1)
                beside = np.zeros(0, bool)
                if len(after):
                    beside = self._misfits(circuit, speed, after, axis, 0.1)
                self.findings += judging.misfit(far[one], beside, self._of_axis(axis))

    def _ask_some(self, circuit: Circuit, waves: np.ndarray, share: float) -> None:
        """Ask at points drawn between the axes, and at the farthest."""
        drawn = np.random.default_rng(0).integers(0, self.sizes, (255, len(self.sizes)))
        points = np.concatenate((drawn, np.array([self.sizes]) - 1))
        loose = self._loosened(share, points @ np.abs(waves).T)
        wrong = self._misfits(circuit, waves, points, None, loose)
        self.findings += judging.misfit_points(points[wrong], len(points))

    def _loosened(self, share: float, angles: np.ndarray) -> float | np.ndarray:
        """Return the share, and where numbers are of float32 what is lost of angles (T, n)."""
        if self.unit < FORMATS["float32"]:
            return share
        if self.loss > FORMATS["float32"]:  # whole turns may be in them, which speeds do not tell
            return np.minimum(3.0, share + self.loss * angles.max(axis=1, keepdims=True))
        return np.minimum(0.1, share + self.loss * angles)

    def _of_axis(self, axis: int | None) -> str:
        """Return which axis in words, where there are several."""
        return f" along axis {axis}" if len(self.sizes) > 1 and axis is not None else ""

    # ---- one vector at many positions --------------------------------------------------------

    def _vector(self) -> np.ndarray:
        """Return a vector of shape (D,), without a zero or a symmetry, that every format holds."""
        n = np.arange(self.ask.head_dim)
        return rounded((np.cos(1.7 * n**2) + 2.0) * (-1.0) ** (n * (n + 1) // 2), "bfloat16")

    def _lag(self, circuit: Circuit, speed: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return that vector, turned as at the places before these, (T, n, 2)."""
        return circuit.turned(self._vector(), np.outer(places - 1, speed))

    def _turned(self, places: Any, axis: int | None = 0, x: np.ndarray | None = None) -> np.ndarray:
        """Return that vector, or x, at places along an axis, (T, D): cheaper than matrices.

        Where there is no axis, places are points (T, axes).
        Where so many at once are refused, they are asked by halves.
        """
        positions = np.asarray(places)
        try:
            axes = len(self.sizes)
            at = places if axis is None else [_along(axis, axes, int(p)) for p in positions]
            return self.ask((self._vector() if x is None else x)[None], at)[0]
        except RefusalError as said:
            if len(positions) == 1:
                at = ", ".join(f"{p:,}" for p in positions.flatten())
                words = f"{said}, asked for position {at}{self._of_axis(axis)}"
                raise RefusalError(words) from said
            halves = [self._turned(half, axis, x) for half in np.array_split(positions, 2)]
            words = f"Asked for {len(positions):,} positions in one call, it {said}."
            self.findings = [f for f in self.findings if "positions in one call" not in f.words]
            self.findings.append(Finding(LOOK, words, "attention"))
            return np.concatenate(halves)

    def _misfits(
        self, circuit: Circuit, speed: np.ndarray, places: Any, axis: int | None, share: Any
    ) -> np.ndarray:
        """Return where along an axis that vector is not turned by place times speed, (T,).

        Where there is no axis, places are points (T, axes), and speeds wave vectors (n, axes).
        ``share`` of the largest number is allowed, for all pairs alike, for each, (n,), or for
        each at each place, (T, n).
        """
        x, y = self._vector(), self._turned(places, axis)
        angles = np.outer(places, speed) if axis is not None else places @ speed.T
        wanted = circuit.turned(x, angles)
        apart = np.abs(y[:, circuit.writes] - wanted).max(axis=2)
        off = (apart > share * np.abs(wanted).max()).any(axis=1)
        if len(circuit.still) and not circuit.tangles:  # channels that stand
            away = np.setdiff1d(np.arange(len(x)), circuit.writes)
            rest = (circuit.rest @ x[circuit.still])[away]
            off |= (
                np.abs(y[:, away] - rest).max(axis=1, initial=0.0) > np.max(share) * np.abs(x).max()
            )
        return off

    def _refused(self, said: RefusalError) -> None:
        """Say that some position is not answered, and ask no further."""
        self.findings.append(
            Finding(WRONG, f"Not every position is answered: it {said}.", "attention")
        )
        self.alone = False

    def _shared(self, circuit: Circuit) -> int | None:
        """Return the first position that has the rotation of the one before."""
        if len(self.sizes) > 1 or not self.alone:
            return None
        try:
            return self._first_shared(circuit)
        except RefusalError as said:
            self._refused(said)
        return None

    def _first_shared(self, circuit: Circuit) -> int | None:
        """Look for that position among the first, beside powers of two, and between those."""
        alone = _firsts(circuit, self.ask.head_dim)

        def first(positions: np.ndarray) -> int | None:
            y = self._turned(positions, x=alone)
            equal = (y[1:] == y[:-1]).all(axis=1) & (np.diff(positions) == 1)
            return int(positions[1 + equal.argmax()]) if equal.any() else None

        end = self.sizes[0] - 1
        if (found := first(np.arange(min(DENSE, end + 1)))) is not None:
            return found
        far = sorted({q for p in _powers(end) if p >= DENSE for q in (p, 3 * p // 2)})
        far = [q for q in far if q < end]
        if not far or (found := first(np.array([q for p in far for q in (p, p + 1)]))) is None:
            return None
        for start in range(max(DENSE - 1, found // 16), found, 2 * DENSE):
            near = first(np.arange(start, min(start + 2 * DENSE, found) + 1))
            if near is not None:
                return near
        return found


def _firsts(circuit: Circuit, head_dim: int) -> np.ndarray:
    """Return 1 in the first channel of each pair: in a sum of two, rounding hides a small turn."""
    x = np.zeros(head_dim)
    x[circuit.reads[:, 0]] = 1.0
    return x


def _doubles(angles: np.ndarray) -> np.ndarray:
    """Return which pairs double their angle at every doubling, nearly, (n,): they do turn.

    Numbers of few digits have as many near 0, so an angle below what is rounded near 1 is seen.
    """
    near = np.abs(angles[1:] - 2.0 * angles[:-1]) <= np.abs(angles[1:]) / 4.0
    return near.all(axis=0) & (len(angles) > 2) & (angles[0] != 0)


def _powers(size: int) -> list[int]:
    """Return 1, 2, 4, ... below ``size``."""
    return [2**k for k in range((size - 1).bit_length()) if 2**k < size]


def _along(axis: int, axes: int, p: int) -> tuple[int, ...]:
    """Return the position ``p`` along one axis."""
    return tuple(p if a == axis else 0 for a in range(axes))


def _asked(sizes: tuple[int, ...]) -> np.ndarray:
    """Return the positions to ask, (T, axes): the origin, doublings and those after them, corners.

    Powers of two and three times them are held exactly by every format; those after are not.
    """
    axes = len(sizes)
    points = {_along(0, axes, 0): None}
    for axis, size in enumerate(sizes):
        for p in _powers(size):
            for q in (p, p + 1, 3 * p):
                if q < size:
                    points[_along(axis, axes, q)] = None
    if axes > 1:
        grids = [(0, 1, p) for p in (_powers((size + 1) // 2 + 1)[-1] for size in sizes)]
        corners = [tuple(a) for a in product(*grids)]
        for a, b in product(corners, corners):
            both = tuple(x + y for x, y in zip(a, b, strict=True))
            if len(points) < 200 and all(x < s for x, s in zip(both, sizes, strict=True)):
                points[both] = None
    return np.array(list(points), dtype=np.int64).reshape(-1, axes)
