"""The report: what a rotation is, in numbers, in words, and against another."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

from rope_minimal.checks import check_count
from rope_minimal.layout import _shape

from .circuit import FORMATS
from .naming import Explanation

__all__ = ["Difference", "Finding", "Report"]

Array = TypeVar("Array", bound=Any)

WRONG, LOOK, NOTE = 3, 2, 1
GRAVITY = {WRONG: "WRONG", LOOK: "LOOK", NOTE: "NOTE"}
"""How grave a finding is: it breaks the promise; it may be meant; it is good to know."""


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes
    ----------
    gravity
        3 wrong, 2 look at it, 1 good to know.
    words
        What was found, with the numbers that show it.
    chapter
        The part of a notebook's name that says which chapter explains it.
    partial
        Whether the report is about a part of what was asked, or about another thing: then no
        weight is converted by it.
    """

    gravity: int
    words: str
    chapter: str
    partial: bool = False

    def __str__(self) -> str:
        return f"{GRAVITY[self.gravity]}: {self.words} (chapter: {self.chapter})"


@dataclass(frozen=True)
class Difference:
    """What leads from one rotation to another.

    Attributes
    ----------
    words
        What to do, what differs, and what is wrong with either, a sentence each; empty only where
        they give the same scores, but for rounding, if the product follows the turn. What scores
        are divided by after the product is not compared.
    convert
        ``convert(weight, num_heads)`` takes W_q or W_k, of shape (num_heads * head_dim, in), or a
        bias (num_heads * head_dim,), as trained under the first rotation, and returns the weight
        that gives the same scores under the second (with a norm before the turn, see ``permute``),
        but for a small difference of frequencies that the words tell. None where no weight does,
        where the report on either is about a part (`Finding`) or tells of a fault that is not
        rounding, where angles of either are lost, and where frequencies are not known well enough
        to compare them.
    permute
        The same without signs and factors. Where a norm with gains stands between weight and turn,
        it takes the rows and their own biases, and ``convert`` takes the norm's gains and biases,
        with ``num_heads`` 1 where heads share them (of gains stored less 1, in float32, after 1 is
        added, which is taken away again). A norm without gains divides factors out. Gains after the
        turn follow the channels that it writes: ``permute`` takes them where pairs come out where
        they went in.
    """

    words: tuple[str, ...]
    convert: Callable[[Array, int], Array] | None = field(compare=False)
    permute: Callable[[Array, int], Array] | None = field(compare=False)

    def __str__(self) -> str:
        return "\n".join(self.words) or "They give the same scores."


@dataclass(frozen=True, eq=False)
class Report:
    """What `identify` found out about a rotation, from outside.

    Attributes
    ----------
    head_dim, axes
        What was asked: the width of a head and the axes of a position.
    asked
        In words: the kind of array, and the positions along each axis; "" if nothing was asked.
    pairs
        Channels of x that turn together, the lower one first.
    written
        Channels of y in which each pair comes out.
    layout
        ``half-split``, ``interleaved``, ``read interleaved, written half-split`` and so on; None
        where these pairs have no name here, or there are none.
    place
        ``all``, ``first``, ``last`` or ``elsewhere``: where the channels that turn stand.
    is_rotation
        Whether every answer is a turn of each pair times one factor.
    singular_values
        Smallest and largest length of a unit vector that was turned, divided by
        ``attention_factor`` where there is one.
    direction
        +1 where each pair turns counter-clockwise, from its first channel to its second; -1 the
        other way; None where pairs differ, or where angles were not read: where they do not grow
        with the position, or lengths do in each pair by its own factor.
    width
        Channels that turn.
    inv_freq
        Radians per position in the order of ``pairs``, shape (pairs,); with several axes the wave
        vector of each pair, (pairs, axes). Signed only where ``direction`` is None. Whole positions
        know a speed up to a turn: it is the one within half a turn per position, or, with several
        axes, a whole multiple of that along another where all pairs have the same.
    inv_freq_error
        Same shape: the precision to which each is known.
    base
        Of the plainest formula that gives these frequencies, or the series of each axis.
    rescaling
        Its name and parameters; None for a plain series, for numbers that no known formula gives,
        and where 16 bits hide by which factor slow pairs are stretched. Of LongRoPE's two lists the
        one that was heard stands for both; its length and its factor were not heard.
    explanations
        Known formulas that give the same numbers, the plainest first; one that rounds the ends of
        its ramp may give them with other parameters, too.
    attention_factor
        The factor on cos and sin; scores grow by its square. None where pairs differ at some
        position; where lengths change with the position alone, that of the first.
    rest_factor
        The factor on the channels that do not turn; None where they differ.
    deviation
        By how much a score of two unit vectors was seen to change under a common shift, divided by
        the square of ``attention_factor`` where there is one.
    deviation_at
        The two positions and the shift where it does.
    numbers
        The smallest format that held all numbers that came back, before factors were multiplied in.
    angle_error
        The most, in radians, by which an angle was seen to miss position times frequency. Not every
        position is asked, and another may miss by more. None where angles were read, or fit, in
        part.
    angle_error_at
        The position where it does.
    shared_position
        The first position that has the rotation of the one before; None where none was found, and
        with several axes.
    table_end
        The last position that is rotated as all before it; None where none was found. With several
        axes, the nearest.
    past_end
        What happens after it, in words, and along which of several axes.
    findings
        The gravest first.
    """

    head_dim: int
    axes: int
    asked: str
    pairs: tuple[tuple[int, int], ...] = ()
    written: tuple[tuple[int, int], ...] = ()
    layout: str | None = None
    place: str = "elsewhere"
    is_rotation: bool = False
    singular_values: tuple[float, float] | None = None
    direction: int | None = None
    width: int = 0
    inv_freq: np.ndarray = field(default_factory=lambda: np.empty(0))
    inv_freq_error: np.ndarray = field(default_factory=lambda: np.empty(0))
    base: float | None = None
    rescaling: tuple[str, dict[str, Any]] | None = None
    explanations: tuple[Explanation, ...] = ()
    attention_factor: float | None = None
    rest_factor: float | None = 1.0
    deviation: float | None = None
    deviation_at: tuple[list[int], list[int], list[int]] | None = None
    numbers: str | None = None
    angle_error: float | None = None
    angle_error_at: int | None = None
    shared_position: int | None = None
    table_end: int | None = None
    past_end: str | None = None
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        gravest_first = tuple(sorted(self.findings, key=lambda f: -f.gravity))
        object.__setattr__(self, "findings", gravest_first)

    @property
    def wavelengths(self) -> np.ndarray:
        """Positions of a full turn of each pair, (pairs,); along the wave vector for several axes.

        Infinite for a pair that does not turn.
        """
        speed = np.linalg.norm(self.inv_freq.reshape(-1, self.axes), axis=1)
        with np.errstate(divide="ignore"):
            return 2.0 * np.pi / speed

    def rows(self) -> list[tuple[str, str]]:
        """Return the lines of the card: a name and what is known."""
        if not self.asked:
            return [("asked", "nothing")]
        if not self.pairs:
            return [("asked", self.asked), ("rotation", "no, where it was asked")]
        factor = self.attention_factor or 1.0
        low, high = (factor * length for length in self.singular_values or (np.nan, np.nan))
        rotation = "yes" if self.is_rotation else f"no: lengths times {low:.4g} to {high:.4g}"
        turn = {1: "counter-clockwise (+1)", -1: "clockwise (-1)", None: "not one for all pairs"}
        channels = f"{self.width} of {self.head_dim}, {self.place}"
        rows = [
            ("asked", self.asked),
            ("rotation", rotation),
            ("layout", self.layout or "none that has a name"),
            ("channels", channels),
        ]
        along = self.inv_freq.reshape(-1, self.axes) != 0
        if self.axes > 1 and along.any() and (along.sum(axis=1) <= 1).all():
            counts = along.sum(axis=0)
            slow = int((~along).all(axis=1).sum())
            left = f", {slow} too slowly to be seen" if slow else ""
            rows.append(("axes", f"{', '.join(map(str, counts))} pairs turn along them{left}"))
        if self.inv_freq.any():
            waves = self.wavelengths[np.isfinite(self.wavelengths)]
            speeds, known = 2.0 * np.pi / waves, float(self.inv_freq_error.max())
            rows += [
                ("direction", turn[self.direction]),
                ("frequencies", f"{speeds.max():.10g} to {speeds.min():.10g} rad, +-{known:.1g}"),
                ("wavelengths", f"{waves.min():,.6g} to {waves.max():,.6g} positions"),
            ]
            names = [str(e) for e in self.explanations]
            apart = self.base and f"a series of base {self.base:.10g} along each axis"
            rows.append(("formula", names[0] if names else apart or "none that I know"))
            rows += [("or equally", name) for name in names[1:4]]
        if self.attention_factor is not None:
            alone = "no one factor" if self.rest_factor is None else f"{self.rest_factor:.10g}"
            rest = "" if self.width == self.head_dim else f"; {alone} on channels at rest"
            rows.append(("factor", f"{self.attention_factor:.10g}{rest}"))
        if self.deviation is not None:
            change = f"{self.deviation * factor**2:.2g}"
            rows.append(("promise", f"a common shift was seen to change a score by {change}"))
        rows.append(("numbers", str(self.numbers)))
        if self.angle_error is not None:
            at = f" at position {self.angle_error_at:,}" if self.angle_error_at else ""
            rows.append(("angles", f"seen to be off by {self.angle_error:.2g} rad{at}"))
        if self.table_end is not None:
            rows.append(("table", f"ends at {self.table_end:,}, then {self.past_end}"))
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        lines = [f"{name:<12} {value}" for name, value in rows]
        return "\n".join([*lines, *(f"- {finding}" for finding in self.findings)])

    def _repr_html_(self) -> str:
        from .picture import card

        return card(self)

    def to_json(self) -> str:
        """Return the report as JSON; `from_json` reads it."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["inv_freq"] = self.inv_freq.tolist()
        values["inv_freq_error"] = self.inv_freq_error.tolist()
        values["explanations"] = [asdict(e) for e in self.explanations]
        values["findings"] = [asdict(f) for f in self.findings]
        return json.dumps(values)

    @classmethod
    def from_json(cls, text: str) -> "Report":
        """Return the report that `to_json` wrote.

        Raises
        ------
        TypeError, ValueError
            If ``text`` is no text, or not that of a report.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        try:
            values = json.loads(text)
        except json.JSONDecodeError:
            values = None
        known = {f.name for f in fields(cls)}
        if not isinstance(values, dict) or not {"head_dim", "asked"} <= set(values) <= known:
            raise ValueError(f"text must be what Report.to_json wrote, got {text[:60]!r}")
        try:
            for name in ("pairs", "written"):
                values[name] = tuple((a, b) for a, b in values[name])
            for name in ("singular_values", "rescaling", "deviation_at"):
                values[name] = None if values[name] is None else tuple(values[name])
            for name in ("inv_freq", "inv_freq_error"):
                values[name] = np.array(values[name], dtype=np.float64)
            values["explanations"] = tuple(Explanation(**e) for e in values["explanations"])
            values["findings"] = tuple(Finding(**f) for f in values["findings"])
            report = cls(**values)
            report.differs_from(report)  # what reads it will not fail later
            report._repr_html_()
        except Exception as error:  # whatever a value of another type leads to
            words = f"text must be what Report.to_json wrote, got {text[:60]!r}"
            raise ValueError(words) from error
        return report

    def differs_from(self, other: "Report") -> Difference:
        """Say what leads from this rotation to ``other``, and return the converter of weights.

        Parameters
        ----------
        other
            A report on heads of the same width and positions with as many axes.

        Returns
        -------
        Difference
            Pairs of equal frequency are matched. Where both turn the same pairs at the same speeds,
            possibly elsewhere, the other way or times another factor, ``convert`` is a function.
            A table that ends before the other is told, and is no reason not to convert.
            What is wrong with either, or what its report leaves out, is repeated, and is a reason
            not to convert unless it is rounding, or a factor on queries that both have.
        """
        if not isinstance(other, Report):
            raise TypeError(f"other must be a Report, got {type(other).__name__}")
        words = []
        for report, which in ((self, "first"), (other, "second")):
            if not report.is_rotation:
                said = "is no rotation" if report.asked else "was not asked"
                if any(f.words.startswith(GROWING) for f in report.findings):
                    said = "changes lengths with the position"
                words.append(f"The {which} {said}.")
        unlike = []
        if self.asked and other.asked and self.head_dim != other.head_dim:
            unlike.append(f"heads of {self.head_dim} channels against {other.head_dim}")
        if self.asked and other.asked and self.axes != other.axes:
            unlike.append(
                f"{self.axes} {'axis' if self.axes == 1 else 'axes'} against {other.axes}"
            )
        if unlike:
            said = ", ".join(unlike)
            words.append(f"{said[0].upper()}{said[1:]}.")
        elif not words and self.width != other.width:
            words.append(f"{self.width} channels turn against {other.width}.")
        elif not words and len(self.inv_freq) * len(other.inv_freq) == 0:
            words.append("Angles that do not grow with the position have no frequencies.")
        if words:
            return Difference(tuple(words), None, None)
        return _compare(self, other)


GROWING = "Lengths were seen to change with the position alone"
"""The beginning of what is said of a rotation times a factor of its own at each position."""

UNSURE = 0.05
"""Relative error of a frequency from which on two that agree may as well differ."""


def _faults(one: Report, two: Report) -> tuple[list[str], bool]:
    """Return what is wrong with either, or not heard, and whether all of it is rounding."""
    graves = [
        [f for f in report.findings if f.gravity == WRONG or f.partial] for report in (one, two)
    ]
    shared = [f for f in graves[0] if f in graves[1] and f.gravity == NOTE]  # which does no harm
    graves = [[f for f in found if f not in shared] for found in graves]
    words = [f"Both: {f.words}" for f in graves[0] if f in graves[1]]
    sides = (("first", graves[0], graves[1]), ("second", graves[1], graves[0]))
    for which, mine, others in sides:
        words += [f"The {which}: {f.words}" for f in mine if f not in others]
    rounding = all(f.chapter == "precision" for f in graves[0] + graves[1])
    lost = [(r.angle_error or 0.0) > ANGLE for r in (one, two)]
    words += [
        f"Angles of the {which} miss position times frequency by more than {ANGLE} rad."
        for (which, *_), off in zip(sides, lost, strict=True)
        if off
    ]
    return words, rounding and not any(lost)


ANGLE = 0.05
"""Radians off, from which on an angle is not position times frequency."""

DRIFT = 0.01
"""Radians, at position 131,071, from which on a difference of frequencies is told."""


def _compare(one: Report, two: Report) -> Difference:
    """Compare two rotations of as many pairs."""
    words, convertible = _faults(one, two)
    if bool(one.rest_factor) != bool(two.rest_factor):
        convertible = False
        words.append("One of them loses the channels that do not turn.")
    waves = [_wave_vectors(report) for report in (one, two)]
    errors = [report.inv_freq_error.reshape(waves[0].shape) for report in (one, two)]
    noise = 2.0 * (errors[0].max(axis=0) + errors[1].max(axis=0))
    signs = [_upper(w, noise) for w in waves]
    orders = _orders(waves[0] * signs[0], waves[1] * signs[1], noise)
    if (
        one.axes == 1
        and set(one.pairs) == set(two.pairs)
        and not _level(waves, signs, orders, noise)
    ):
        orders[1] = [two.pairs.index(one.pairs[i]) for i in orders[0]]  # each against itself
    if one.axes > 1:  # by size, pairs of equal waves may miss each other
        upper = [(w * s)[order] for w, s, order in zip(waves, signs, orders, strict=True)]
        spread = [2.0 * error[order] for error, order in zip(errors, orders, strict=True)]
        orders[1] = orders[1][_equals(*upper, *spread)]
    first, second = (w[order] for w, order in zip(waves, orders, strict=True))
    ups = [sign[order] for sign, order in zip(signs, orders, strict=True)]
    flips = (ups[0] != ups[1])[:, 0]
    known = 2.0 * (errors[0][orders[0]] + errors[1][orders[1]])
    apart = np.abs(first * ups[0] - second * ups[1])
    off = apart > known + 1e-6 * np.abs(first)
    unsure = (known.max(axis=1) > UNSURE * np.abs(first).max(axis=1)) & ~off.any(axis=1)
    if unsure.any():
        convertible = False
        words.append(
            f"{int(unsure.sum())} of {len(first)} pairs turn too slowly to be compared: as "
            f"positions and numbers were asked, they may differ by {UNSURE:.0%} or more."
        )
    apart_at = np.flatnonzero(off.any(axis=1))
    if one.axes > 1:
        flips[apart_at] = False  # they stand beside any
    if off.any() and one.axes > 1:
        convertible = False
        left = apart_at[0]
        words.append(
            f"{len(apart_at)} of {len(first)} wave vectors have no equal there, that of pair "
            f"{one.pairs[orders[0][left]]} for one: {_number(first[left])}. No weight makes up for "
            "that: the pairs must turn as there, with its axes, base and rescaling."
        )
    elif off.any():
        convertible = False
        times = np.abs(first) / np.maximum(np.abs(second), 1e-300)
        worst = int(np.argmax((apart / np.maximum(np.abs(first), 1e-300)).max(axis=1)))
        said = f"{len(apart_at)} of {len(first)} pairs turn at another speed than there, pair "
        said += f"{one.pairs[orders[0][worst]]} the most"
        if off.all() and np.ptp(times) <= 1e-5 * times.min():
            worst = 0
            said = f"All {len(first)} pairs turn {times.min():.6g} times as fast as there, pair "
            said += f"{one.pairs[orders[0][0]]} for one"
        words.append(
            f"{said}: {_number(first[worst])} against {_number(second[worst])}. No weight makes up "
            "for that: change base or rescaling."
        )
    ends = (one.table_end, two.table_end)
    for which, end, report in zip(("first", "second"), ends, (one, two), strict=True):
        if end is not None and ends[0] != ends[1]:
            words.append(f"The table of the {which} ends at {end:,}, then {report.past_end}.")
    drift = np.where(off | (apart <= known), 0.0, apart)
    if not off.any() and (far := float(drift.max()) * (2**17 - 1)) > DRIFT:
        part = float((drift / np.maximum(np.abs(first), 1e-300)).max())
        words.append(
            f"Frequencies differ by up to {part:.1g} of themselves, which is {far:.2g} rad at "
            "position 131,071."
        )
    source = _channels(one, orders[0])
    target = _channels(two, orders[1])
    named = not off.any() or one.axes == 1 or (one.layout, one.place) != (two.layout, two.place)
    if named and not np.array_equal(source, target):
        a, b = (f"{r.layout or 'a layout without a name'} ({r.place})" for r in (one, two))
        in_place = np.abs(waves[0] * signs[0] - waves[1] * signs[1])  # first pair beside first
        near = 2.0 * (errors[0] + errors[1]) + 1e-6 * np.abs(waves[0])
        if a == b:
            a, b = "one order of pairs", "another"
        elif one.layout and two.layout and not off.any() and (in_place > near).any():
            b += ", where pairs stand in another order"
        words.append(f"Permute the rows of each head of W_q and W_k: from {a} to {b}.")
    sign = np.ones(one.head_dim)
    turned = np.flatnonzero(flips)
    sign[source[2 * turned + 1]] = -1.0
    if len(turned):
        words.append(
            f"Negate the second row of {len(turned)} of {len(first)} pairs: they turn the other "
            "way."
        )
    turns = np.arange(one.head_dim) < one.width
    unit = max(FORMATS[report.numbers or "float64"] for report in (one, two))
    loose = max(1e-6, 4.0 * unit)  # rounding alone makes such factors
    for rows, which, mine, others in (
        (source[turns], "turn", one.attention_factor, two.attention_factor),
        (source[~turns], "do not turn", one.rest_factor, two.rest_factor),
    ):
        factor = mine / others if mine and others else 1.0
        if len(rows) and abs(factor - 1.0) > loose:
            words.append(
                f"Multiply the rows that {which} by {factor:.10g}: the rotations carry "
                f"{mine:.10g} against {others:.10g} there."
            )
            sign[rows] *= factor
            words += _root(factor, one.head_dim)
    order = np.empty(one.head_dim, int)
    order[target] = source
    if not convertible:
        return Difference(tuple(words), None, None)
    return Difference(tuple(words), _converter(order, sign), _converter(order, np.ones(len(order))))


def _root(factor: float, head_dim: int) -> list[str]:
    """Say it where a factor is what one side may divide scores by, half of it on each side."""
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
        shape = _shape(weight, "weight", even=False)
        if "float" not in str(weight.dtype):  # whole numbers would lose a factor of 0.7
            raise TypeError(f"weight must hold floating-point numbers, got {weight.dtype}")
        num_heads = check_count("num_heads", num_heads)
        if len(shape) > 2 or shape[0] != num_heads * len(order):
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


def _wave_vectors(report: Report) -> np.ndarray:
    """Return the signed wave vectors, (pairs, axes)."""
    signed = report.inv_freq * (report.direction or 1)
    return signed.reshape(len(report.pairs), report.axes)


def _upper(waves: np.ndarray, noise: np.ndarray) -> np.ndarray:
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


def _level(
    waves: list[np.ndarray], signs: list[np.ndarray], orders: np.ndarray, noise: np.ndarray
) -> bool:
    """Return whether waves are equal by falling size, whatever pairs they belong to."""
    one, two = (np.abs(w * s)[order] for w, s, order in zip(waves, signs, orders, strict=True))
    return bool((np.abs(one - two) <= noise + 3e-6 * one).all())


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


def _channels(report: Report, order: np.ndarray) -> np.ndarray:
    """Return all channels of a head: those of the pairs in this order, then those that stand."""
    turning = np.array(report.pairs, int).reshape(-1, 2)[order].flatten()
    return np.concatenate((turning, np.setdiff1d(np.arange(report.head_dim), turning)))


def _number(wave: np.ndarray) -> str:
    """Return a frequency, or a wave vector, in ten digits."""
    values = [f"{abs(v) if len(wave) == 1 else v:.10g}" for v in wave]
    return values[0] if len(wave) == 1 else f"({', '.join(values)})"
