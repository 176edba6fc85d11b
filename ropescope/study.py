"""`identify`: estimate one operator per position, then test hypotheses about them.

`preconditions` says whether operators tell all of the function; here they are taken apart, and each
hypothesis gets its residual and its limit from the noise model of `precision`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rope_minimal.checks import check_count

from .angles import Angles
from .formulas import name_layout, name_place
from .hypotheses import Hypothesis
from .operators import Structure, along, decompose, operators, probe_grid, relative_error
from .precision import HALF, ROUGH, Noise
from .preconditions import Measured, measure, vectors
from .probe import Probe, ProbeError, check_dtype, check_positions, place_of
from .report import Report

__all__ = ["identify"]

SHORT = 16
"""Positions of a table that is hardly one."""

UNUSABLE = {"deterministic", "independent rows", "independent positions"}
"""Hypotheses without which operators tell nothing."""


def identify(
    rotate: Callable[..., Any],
    head_dim: int,
    *,
    positions: int | tuple[int, ...] = 2**17,
    dtype: Any = None,
) -> Report:
    """Identify a rotary position embedding from its outputs, without reading its code.

    Parameters
    ----------
    rotate
        ``rotate(x, positions)`` takes x of shape (N, T, head_dim), NumPy or torch, and T integers
        of shape (T,), or (T, axes) where a position has several; it returns x rotated.
    head_dim
        Channels of a head, at least 2.
    positions
        How many positions may be probed: 0 to ``positions - 1``. A tuple has one number for each
        axis of a position. A table that ends before is found.
    dtype
        Floating-point type of x, of NumPy or of torch. By default NumPy's float64, then torch's
        float64 and float32 are tried.

    Returns
    -------
    Report
        A function that fails, or does something else than rotate, has a report, too: its findings
        say what it does. What ``rotate`` raises does not get out.

    Notes
    -----
    A frequency is known within half a turn per position: integer positions do not distinguish
    ``theta`` and ``theta - 2 pi``. Of a rotation whose angles fit, every position below 1,024 along
    each axis is probed, beyond that powers of two, those beside them and halfway between, the last,
    and some points between the axes. What a function does at none of these is not seen, nor what it
    does to calls of more than 1,024 positions, nor what it has forgotten of calls before: probe one
    that has just been made.
    """
    if not callable(rotate):
        raise TypeError(f"rotate must be callable, got {type(rotate).__name__}")
    head_dim = check_count("head_dim", head_dim, least=2)
    sizes = check_positions(positions)
    failures: list[str] = []
    for kind in check_dtype(dtype):
        probe = Probe(rotate, head_dim, len(sizes), kind)
        try:
            first = operators(probe, head_dim, probe_grid(sizes)[:2])
        except ProbeError as error:
            failures.append(f"{probe.kind}: it {error}")
            continue
        try:
            return Study(probe, sizes, first).report()
        except ProbeError as error:
            failures = [f"{probe.kind}: it answers at first, and later {error}"]
            break
    why = {"why": "; ".join(failures)}
    return Report(head_dim, len(sizes), "", hypotheses=(Hypothesis("answers", 1.0, 0.0, why),))


class Study:
    """One function under study: what it answers to, and what has been found so far."""

    def __init__(self, probe: Probe, sizes: tuple[int, ...], first: np.ndarray) -> None:
        self.probe, self.sizes, self.first = probe, sizes, first
        self.ends: list[Hypothesis] = []
        self.end: int | None = None
        self.past: str | None = None

    def report(self) -> Report:
        """Measure, and once more within the table where that turns out to end."""
        self.find_failures()
        sizes, report = self.sizes, self.measure()
        while self.sizes != sizes:
            sizes, report = self.sizes, self.measure()
        rows = (*self.ends, *report.hypotheses)
        return replace(report, table_end=self.end, past_end=self.past, hypotheses=rows)

    def measure(self) -> Report:
        """Measure operators at the positions that are answered, and test what they are."""
        probe, grid = self.probe, probe_grid(self.sizes)
        ranges = " x ".join(f"0..{size - 1:,}" for size in self.sizes)
        report = Report(probe.head_dim, len(self.sizes), f"{probe.kind}, positions {ranges}")
        try:
            found = measure(probe, grid, self.first)
        except ProbeError as error:
            return replace(report, hypotheses=(self.locate(grid, error),))
        if not any(one.name in UNUSABLE and not one.holds for one in found.table):
            names = " and ".join(sorted(probe.overwritten, reverse=True))
            found.test("arguments kept", len(probe.overwritten), names=names)
            kinds = {"returned": probe.returned, "given": probe.given}
            found.test("dtype kept", probe.returned != probe.given, **kinds)
            report = self._take_apart(replace(report, numbers=found.numbers), found)
        return replace(report, hypotheses=tuple(found.table))

    def _take_apart(self, report: Report, found: Measured) -> Report:
        """Decompose operators, and fill in what they are made of."""
        structure = decompose(found.matrices, 8.0 * found.noise.value)
        if not found.test("rotates", not structure.groups()):
            return report
        report = _lengths(report, found, structure)
        _places(report, found, structure)
        values = structure.values
        low, high = values.min() / structure.factor, values.max() / structure.factor
        alike = (np.ptp(values, axis=1) <= ROUGH * values.max(axis=1)).all()
        readable = high - low <= 0.5 or (low > 1e-3 and (alike or structure.change < ROUGH))
        start = np.abs(np.linalg.det(structure.blocks[0])).min(initial=np.inf)
        if len(structure.inputs) and readable and start > 1e-12 * structure.factor**2:
            report = Angles(self, report, found, structure).read()
        _factors(report, found, structure)
        return report

    # ---- where it ends -----------------------------------------------------------------------

    def find_failures(self) -> None:
        """Find the position from which on calls fail, and shrink what is probed to what is left."""
        for axis, size in enumerate(self.sizes):
            if (failure := self._failure(axis, size - 1)) is None:
                continue
            good, bad = 1, size - 1
            while bad - good > 1:
                middle = (good + bad) // 2
                if (error := self._failure(axis, middle)) is None:
                    good = middle
                else:
                    bad, failure = middle, error
            values = {"end": good, "past": str(failure)}
            if failure.raised and self._grows(axis, good, size):
                self.ends.append(Hypothesis("table for all calls", 1.0, 0.0, values))
                self._shrink(axis, good)
                continue
            self.ends_at(axis, good, str(failure), silent=not failure.raised)
            if good < SHORT:
                self.ends.append(Hypothesis("long table", SHORT - good, 0.0, values))

    def _failure(self, axis: int, place: int) -> ProbeError | None:
        """Return what happens at a place along an axis; None where it is answered."""
        try:
            self.probe(vectors(1, self.probe.head_dim), along(axis, len(self.sizes), [0, place]))
        except ProbeError as error:
            return error
        return None

    def _grows(self, axis: int, good: int, size: int) -> bool:
        """Return whether a position that two alone do not reach is answered in a longer call."""
        places = np.arange(min(size, 2 * good + 2, 1024))
        try:
            self.probe(vectors(1, self.probe.head_dim), along(axis, len(self.sizes), places))
        except ProbeError:
            return False
        return len(places) > good + 1

    def ends_at(self, axis: int, place: int, past: str, silent: bool) -> None:
        """Write down the last position along an axis, and what comes after it; the nearest."""
        past += f" along axis {axis}" if len(self.sizes) > 1 else ""
        if self.end is None or place < self.end:
            self.end, self.past = place, past
        if silent:
            values = {"end": place, "past": past}
            self.ends.append(Hypothesis("no silent end", 1.0, 0.0, values))
        self._shrink(axis, place)

    def _shrink(self, axis: int, place: int) -> None:
        sizes = list(self.sizes)
        sizes[axis] = max(2, place + 1)
        self.sizes = tuple(sizes)

    def locate(self, grid: np.ndarray, error: ProbeError) -> Hypothesis:
        """Return which position fails, or that only one call of all of them does."""
        eye = np.eye(self.probe.head_dim)
        self.probe(eye, grid[:2])  # does it still answer at all?
        for at in grid:
            try:
                self.probe(eye, np.stack((grid[0], at)))
            except ProbeError as failure:
                values = {"why": str(failure), "place": place_of(at)}
                return Hypothesis("every position", 1.0, 0.0, values)
        return Hypothesis("one call", 1.0, 0.0, {"why": str(error)})


def _lengths(report: Report, found: Measured, structure: Structure) -> Report:
    """Test whether it is a rotation times one factor, and fill in what channels and lengths say."""
    values, factor = structure.values, structure.factor
    spread = float(np.ptp(values)) / factor
    single = Noise.of("float32")
    wobble = min(spread, structure.change * factor / max(factor, float(values.max())))
    if found.noise.lengths < wobble <= single.lengths:  # in float64, some of it is of float32
        found.noise = single
    loose = 2.0 * found.noise.lengths
    one_factor = bool(np.ptp(structure.scales) <= loose * factor)
    one_factor &= bool(np.ptp(values, axis=1).max() <= max(loose, ROUGH) * factor)
    kept = np.linalg.svd(structure.fixed_map, compute_uv=False)
    rest = kept if len(kept) else np.ones(1)
    one_rest = bool(np.ptp(rest) <= loose * rest.max())
    deviation, where = relative_error(structure, found.positions)
    scale = factor if one_factor else 1.0
    layout, _ = name_layout(structure.inputs, structure.outputs)
    rotates = one_factor and one_rest and not structure.mixed and spread <= found.noise.lengths
    if not one_rest:
        own = structure.fixed_map[structure.fixed, np.arange(len(structure.fixed))]
        mixed = structure.fixed_map - np.eye(report.head_dim)[:, structure.fixed] * own
        weights = np.abs(own).min() > 0.01 and np.abs(mixed).max() <= 1e-6
        name = "unrotated weights" if weights else "unrotated channels"
        bounds = {"count": len(structure.fixed), "low": rest.min(), "high": rest.max()}
        found.test(name, np.ptp(rest), loose * rest.max(), **bounds)
    if structure.mixed:
        _mixed(report, found, structure, deviation)
    else:
        _blocks(found, structure, spread)
    return replace(
        report,
        pairs=tuple((int(a), int(b)) for a, b in structure.inputs),
        written=tuple((int(a), int(b)) for a, b in structure.outputs),
        layout=layout,
        place=name_place(structure.inputs, report.head_dim),
        is_rotation=rotates,
        singular_values=(float(values.min()) / scale, float(values.max()) / scale),
        attention_factor=factor if one_factor else None,
        unrotated_factor=float(rest.mean()) if one_rest else None,
        relative_error=deviation / scale**2,
        relative_error_at=where,
    )


def _mixed(report: Report, found: Measured, structure: Structure, deviation: float) -> None:
    """Say what changes with the position and is no pair of channels."""
    values, factor = structure.values, structure.factor
    sizes = sorted({max(block.shape[1:]) for block in structure.mixed} - {1})
    alone = sum(max(block.shape[1:]) == 1 for block in structure.mixed)
    what = [f"channels mix in groups of {sizes}"] * bool(sizes)
    what += [f"{alone} channels are scaled alone"] * bool(alone)
    low, high = values.min(), values.max()
    limit = found.noise.lengths * factor
    bounds = {"low": low, "high": high}
    if len(structure.inputs) and not sizes and np.ptp(values, axis=1).max() <= limit:
        found.test("lengths keep", high - low, limit, **bounds)
        return
    relative = high - low <= 4.0 * limit and deviation <= 0.02 * factor**2
    name = "pairs, relative" if relative else "pairs"
    what_else = {"deviation": deviation} if relative else {}
    found.test(name, len(structure.mixed), what=" and ".join(what), **bounds, **what_else)


def _blocks(found: Measured, structure: Structure, spread: float) -> None:
    """Test whether every block is a rotation times one factor; else find what it is."""
    factor, limit = structure.factor, found.noise.lengths
    values = structure.pair_values / factor
    low, high = values.min(), values.max()
    bounds = {"low": factor * low, "high": factor * high}
    fixed = np.ptp(values, axis=0).max() <= limit * max(1.0, high)
    alike = np.ptp(values.reshape(len(values), -1), axis=1).max() <= limit
    conformal = np.ptp(values, axis=2).max() <= limit
    few = 4.0 * limit if found.numbers in HALF else 0.0  # too little to see what does it
    if spread <= max(limit, few) or (spread < ROUGH and not (fixed or alike)):
        found.test("exact lengths", spread, limit, numbers=found.numbers)
    elif conformal:
        name = "one factor" if fixed else "lengths keep" if alike else "lengths keep in each pair"
        found.test(name, spread, limit, **bounds)
    elif fixed and low <= limit:
        lost = int((values[0].min(axis=1) <= limit).sum())
        found.test("full rank", lost, count=lost, pairs=values.shape[1], high=factor * high)
    elif fixed:
        inner, outer = (side / factor**2 for side in structure.sides)
        before = inner <= min(4.0 * limit * max(1.0, high) ** 2, outer)
        found.test("weights before" if before else "weights after", spread, limit, **bounds)
    elif structure.change < ROUGH:
        found.test("exact lengths", spread, limit, numbers=found.numbers)
    else:
        worst = int(np.ptp(values, axis=2).max(axis=1).argmax())
        bounds = {"low": factor * values[worst].min(), "high": factor * values[worst].max()}
        det = float(np.linalg.det(structure.blocks[worst]).min())
        place = place_of(found.positions[worst])
        found.test("block rotations", spread, limit, place=place, det=det, **bounds)


def _places(report: Report, found: Measured, structure: Structure) -> None:
    """Say which channels come out elsewhere than they went in, and how many rotate."""
    both = zip(report.pairs, report.written, strict=True)
    moved = [n for n, (read, written) in enumerate(both) if read != written]
    mirrored = sum(report.pairs[n] == report.written[n][::-1] for n in moved)
    counts = {"count": len(moved), "pairs": len(report.pairs)}
    if (report.layout or "").startswith("read "):
        found.test("written layout", len(moved), layout=report.layout)
    elif mirrored and mirrored == len(moved):
        found.test("not mirrored", mirrored, **counts)
    elif report.is_rotation:
        pairs = (
            {"read": report.pairs[moved[0]], "written": report.written[moved[0]]} if moved else {}
        )
        found.test("written places", len(moved), **counts, **pairs)
    if report.unrotated_factor and len(structure.fixed):
        own = np.eye(report.head_dim)[:, structure.fixed] * report.unrotated_factor
        off = np.abs(structure.fixed_map - own).max()
        found.test(
            "unrotated places", off, max(1e-6, found.noise.lengths), count=len(structure.fixed)
        )
    few = 0 < report.width * 8 < report.head_dim
    found.test("most channels", few, count=report.width, head_dim=report.head_dim)


def _factors(report: Report, found: Measured, structure: Structure) -> None:
    """Test whether cos and sin carry a factor, and what channels that do not rotate are times."""
    limit = max(found.noise.lengths / 2.0, 1e-7)
    factor, count = report.unrotated_factor, len(structure.fixed)
    if count and factor is not None and found.test("unrotated kept", factor <= limit, count=count):
        found.test("unrotated factor", abs(factor - 1.0), limit, factor=factor)
    if not (report.is_rotation and (factor := report.attention_factor)):
        return
    kind, given = report.rescaling or ("", {})
    stretch = float(given.get("factor", 1.0))
    own = 0.1 * np.log(max(stretch, 1.0)) + 1.0
    part = factor * report.head_dim**0.25
    shared = next((k for k in (1.0, own) if abs(part / k - 1.0) < 1e-5), None)
    of = f" It is {part:.6g} times {report.head_dim}^(-1/4), half of 1/sqrt(head_dim) on each side."
    values = {"factor": factor, "square": factor**2, "of": of if shared else ""}
    found.test("unit factor", abs(factor - 1.0), limit, **values)
    if kind == "yarn" and "attention_factor" in given and not shared:
        off = abs(factor / own - 1.0)
        found.test("own factor", off, limit, own=own, stretch=stretch, factor=factor)
