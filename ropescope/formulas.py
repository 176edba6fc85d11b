"""Names: which published formula gives these frequencies, which layout these pairs are.

A formula is a hypothesis like any other: candidates are taken from the numbers and *run* by
`rescaled_frequencies`; one that does not give back every frequency within its error is dropped, and
of those left the one with the fewest digits to write down leads.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from typing import Any

import numpy as np

from rope_minimal.rescaling import rescaled_frequencies

__all__ = [
    "TOLERANCES", "Formula", "fit_axes", "fit_formulas", "name_arrangement", "name_layout",
    "name_place", "round_number",
]  # fmt: skip

KNOWN_BASES = (
    *(1e4, 5e5, 1e6, 1e5, 1.6e5, 5e6, 1e7, 2e4, 5e4, 2.5e5, 6e5, 2e6, 8e6, 2.5e7),
    *(5e7, 7.5e7, 8e7, 1e8, 1e11, 1e3, 1e2),
)
"""Bases that models ship with: tried where the numbers alone leave the base open."""

TOLERANCES = {"float64": 1e-10, "float32": 4e-6, "16 bits": 2.0**-8}
"""Relative errors of frequencies that were computed in these formats."""

CAREFUL = 5e-7
"""That of float32 whose powers were computed with care: more digits of a base show."""

OPEN = 1e-3
"""Relative error of frequencies from which on several round bases fit."""

MOST = 1e6
"""Factor from which on no context was ever stretched."""

SUBNORMAL = 2.0**-25
"""Error of rounding a number below 2**-14 to float16."""

LONGER = 10
"""Digits by which a formula may be longer than the shortest: two frequencies fit many."""

KNEES = ((1.0, 32.0), (1.0, 4.0), (1.0, 8.0), (1.0, 2.0), (1.0, 1.0))
"""Turns in training between which ramps run: YaRN's and NTK-by-parts', Llama 3's, steps."""

POWERS = 2.0 ** np.arange(6, 24)
"""Lengths of training that are tried before those that a ramp leads to."""

Scale = tuple[float, float]
"""The factor on cos and sin, and its relative error."""

Candidate = tuple[str, int, float, dict[str, Any]]


@dataclass(frozen=True)
class Formula:
    """A formula of `rescaled_frequencies` that gives the frequencies measured.

    Attributes
    ----------
    kind, dim, base, parameters
        Its arguments. ``dim`` is the width that the series is built for.
    precision
        The format in which the frequencies agree with it: a key of `TOLERANCES`.
    """

    kind: str
    dim: int
    base: float
    parameters: dict[str, Any] = field(default_factory=dict)
    precision: str = "float64"

    def inv_freq(self) -> np.ndarray:
        """Return the frequencies above zero that the formula gives, (pairs,)."""
        found, _ = rescaled_frequencies(self.kind, self.dim, self.base, **self.parameters)
        return found[found > 0]

    def __str__(self) -> str:
        named = [f"base {self.base:.10g}"] if self.dim > 2 else []
        for name, value in self.parameters.items():
            if isinstance(value, list):
                value = f"[{value[0]:.6g}, ..., {value[-1]:.6g}]"
            named.append(f"{name}={value:.10g}" if isinstance(value, float) else f"{name}={value}")
        return f"{self.kind} over {self.dim} channels{': ' if named else ''}{', '.join(named)}"

    def length(self) -> tuple[int, int]:
        """Return the digits that must be written down, and the order of the kinds."""
        values = [self.base]
        for value in self.parameters.values():
            values += value if isinstance(value, list) else [value]
        counted = [v for v in values if not isinstance(v, bool) and v != 1.0]
        return sum(_digits(v) + 2 for v in counted), _ORDER.index(self.kind)

    def gives(self, inv_freq: np.ndarray, allowed: np.ndarray) -> bool:
        """Run the formula and compare every frequency, fastest first, with relative errors."""
        try:
            found = self.inv_freq()
        except (ValueError, TypeError):
            return False
        return found.shape == inv_freq.shape and bool(
            (np.abs(np.sort(found)[::-1] - inv_freq) <= allowed * inv_freq).all()
        )


_ORDER = (
    *("default", "linear", "ntk", "dynamic", "proportional", "llama3", "by_parts"),
    *("yarn_paper", "yarn", "monotone", "longrope"),
)


def fit_formulas(
    inv_freq: np.ndarray, errors: np.ndarray, widths: tuple[int, ...], scale: Scale = (1.0, 0.0)
) -> list[Formula]:
    """Return every formula known here that gives these frequencies, the shortest first.

    Parameters
    ----------
    inv_freq
        Frequencies above zero, shape (n,), in radians per position.
    errors
        Their precision, shape (n,). A frequency that it hides may be given as large as its error.
    widths
        Widths, in channels, that the series may be built for; the first is 2n.
    scale
        The factor on cos and sin: of two formulas that differ by it alone, it decides.

    Returns
    -------
    list of Formula
        All of the finest format in which any holds; empty where none does. Of 16 bits only
        `KNOWN_BASES` are named: they do not distinguish a base of 500,000 from 497,000.
    """
    if not len(inv_freq) or np.ptp(np.log(inv_freq)) > 300.0:  # no base that a float holds
        return []
    order = np.argsort(-inv_freq, kind="stable")
    copies = _copies(inv_freq[order])
    if copies > 1:  # one series for each block or axis
        order, widths = order[::copies], tuple(w // copies for w in widths if w % (2 * copies) == 0)
    w, reached = inv_freq[order], 4.0 * (errors / inv_freq)[order]
    scale = scale[0], max(scale[1], 1e-4)
    for precision in TOLERANCES:
        allowed, typical = _allowed(precision, w, reached)
        if precision == "float64" and typical > TOLERANCES[precision]:
            continue  # a base would be fitted to rounding
        if typical > 0.06:
            return []
        for candidates in (
            _series(w, allowed, widths, typical),
            _ramps(w, allowed, scale, typical, fast=(32.0,)),
            _ramps(w, allowed, scale, typical, fast=(1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 128.0)),
            _searched(w, scale, typical),
        ):
            tried = (Formula(*one, precision) for one in candidates)
            found = {str(one): one for one in tried if one.gives(w, allowed)}
            if found:
                return _ranked(list(found.values()), w, reached)
    return []


def _allowed(precision: str, w: np.ndarray, reached: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the relative errors that a format allows, and the typical one of what is known."""
    allowed = np.maximum(TOLERANCES[precision], reached)
    if precision == "16 bits":
        allowed = np.maximum(allowed, SUBNORMAL / w)
    known = allowed[allowed < 0.25]
    return allowed, float(np.median(known if len(known) > 1 else allowed))


def _ranked(found: list[Formula], w: np.ndarray, reached: np.ndarray) -> list[Formula]:
    """Return formulas by length, without those far longer than the first."""
    if found[0].precision == "16 bits":  # their candidates come from low precision alone
        close = np.maximum(2.0 * TOLERANCES["float32"], reached)
        found = [replace(f, precision="float32") for f in found if f.gives(w, close)] or found
    found.sort(key=Formula.length)
    found = [one for one in found if one.length()[0] <= found[0].length()[0] + LONGER]
    first, careful = found[0], np.maximum(CAREFUL, reached)
    odd = (first.kind, first.precision) == ("default", "float32") and _digits(first.base) > 3
    if odd and len(w) >= 8 and np.median(reached) <= CAREFUL:  # more digits may show
        finer = (Formula(*one, "float32") for one in _series(w, careful, (first.dim,), CAREFUL))
        found[0] = next((f for f in finer if f.kind == "default" and f.gives(w, careful)), first)
    return found


def _copies(ranked: np.ndarray) -> int:
    """Return how often a series of two frequencies or more is repeated."""
    n = len(ranked)
    for copies in (c for c in range(n // 2, 1, -1) if n % c == 0):
        rows = ranked.reshape(-1, copies)
        equal = (np.ptp(rows, axis=1) <= 1e-12 * rows[:, 0]).all()
        if equal and (np.diff(rows[:, 0]) < 0).all():
            return copies
    return 1


def _series(
    w: np.ndarray, allowed: np.ndarray, widths: tuple[int, ...], tolerance: float
) -> Iterator[Candidate]:
    """Geometric series: all of one or its beginning, as it is, slower alike, or of a grown base."""
    n = len(w)
    if n == 1:  # one pair has a frequency and no base
        yield from _slowed("default", 2, 1.0, {}, w[0], tolerance)
        return
    steps = np.arange(1, n)
    best = int(np.argmin(allowed[1:] / steps)) + 1  # far down the series, and well known
    slope = math.log(w[0] / w[best]) / best
    for width in dict.fromkeys(widths):
        loose = width * float((allowed[1:] / steps).min()) / 4.0
        fitted = round_number(math.exp(min(slope * width / 2.0, 700.0)), loose)
        kind = "default" if width == 2 * n else "proportional"
        part = {} if kind == "default" else {"partial_rotary_factor": 2 * n / width}
        for base in KNOWN_BASES if tolerance > OPEN else (fitted,):
            yield from _slowed(kind, width, base, part, w[0], min(tolerance, float(allowed[0])))
        for base in KNOWN_BASES if kind == "default" and tolerance <= OPEN and n > 1 else ():
            power = (width - 2) / width
            factor = round_number((fitted / base) ** power, width * tolerance)
            if factor > 1.0 and _digits(factor) <= 3:
                yield "ntk", width, base, {"factor": factor}


def _slowed(
    kind: str, dim: int, base: float, part: dict[str, Any], fastest: float, tolerance: float
) -> Iterator[Candidate]:
    """Yield a series as it is, or all of it slower alike: an interpolation, or by choice."""
    factor = round_number(1.0 / fastest, tolerance)
    if abs(fastest - 1.0) <= tolerance or factor == 1.0:
        yield kind, dim, base, part
    elif kind == "proportional" and factor < MOST:
        yield kind, dim, base, part | {"factor": factor}
    elif factor < MOST:
        yield "linear", dim, base, {"factor": factor}
        whole = round_number(math.pi * factor, tolerance)
        if whole == int(whole):
            yield "monotone", dim, base, {"max_positions": int(whole)}


def _ramps(
    w: np.ndarray, allowed: np.ndarray, scale: Scale, tolerance: float, fast: tuple[float, ...]
) -> Iterator[Candidate]:
    """Fast pairs as trained, slow ones divided by a factor, a ramp between: YaRN and its kin.

    Yields by parts, Llama 3 and YaRN as printed with ``fast`` of (32,), where their `KNEES` are
    tried; YaRN as released between ``fast`` turns in training and 1 (``L / beta`` alone counts).
    """
    n = len(w)
    if tolerance > OPEN and fast != (32.0,):
        return
    for base, factor, keep in _kept(w, allowed, scale, tolerance):
        ramp = np.flatnonzero((keep > 20.0 * allowed) & (keep < 1.0 - 20.0 * allowed))
        hot = math.isclose(scale[0], 0.1 * math.log(factor) + 1.0, rel_tol=scale[1])
        own = {} if hot else {"attention_factor": round_number(scale[0], max(tolerance, 1e-6))}
        for low, high in KNEES if fast == (32.0,) else ():
            for length in _in_turns(keep, ramp, base, (low, high), allowed, tolerance):
                given = {"factor": factor, "original_max_position_embeddings": length}
                betas = {} if high == 32.0 else {"beta_fast": high}
                named = {"low_freq_factor": low, "high_freq_factor": high}
                kinds = [("llama3", given | named), ("by_parts", given | betas)]
                kinds += [("yarn", given | betas | own)] * (low == high)
                for kind, one in [("yarn_paper", given | betas)] if hot else kinds:
                    yield kind, 2 * n, base, one
        for beta, truncate in product(fast, (True, False)):
            more: dict[str, Any] = {"beta_fast": beta} if beta != 32.0 else {}
            more |= {"truncate": False} if not truncate else {}
            for length in _in_pairs(keep, ramp, base, beta, truncate, allowed, tolerance):
                given = {"factor": factor, **own, "original_max_position_embeddings": length}
                yield "yarn", 2 * n, base, given | more


def _in_turns(
    keep: np.ndarray, ramp: np.ndarray, base: float, knees: Scale, allowed: np.ndarray,
    tolerance: float,
) -> list[int | float]:  # fmt: skip
    """Return the lengths of training over which a ramp is straight in turns, between knees."""
    (low, high), plain = knees, base ** (-np.arange(len(keep)) / len(keep))
    ends = ramp[[0, -1]] if len(ramp) else ramp
    fitted = 2.0 * np.pi * (low + keep[ends] * (high - low)) / plain[ends]
    lengths = _with(fitted, tolerance)
    turns = lengths[:, None] * plain / (2.0 * np.pi)
    made = (turns > low) if low == high else np.clip((turns - low) / (high - low), 0, 1)
    near = (np.abs(made - keep) <= 50.0 * allowed.max()).all(axis=1)
    return [_whole(length) for length in lengths[near].tolist()]


def _in_pairs(
    keep: np.ndarray, ramp: np.ndarray, base: float, beta: float, truncate: bool,
    allowed: np.ndarray, tolerance: float,
) -> list[int | float]:  # fmt: skip
    """Return the lengths over which a ramp is straight in the pairs' index."""
    n = len(keep)
    pairs = n / math.log(base)  # per logarithm of a length over its turns
    lengths = _with(_ends(keep, ramp, allowed, beta, truncate, pairs), tolerance)
    knees = [pairs * np.log(lengths / (2.0 * np.pi * b)) for b in (beta, 1.0)]
    ends = [np.floor(knees[0]), np.ceil(knees[1])] if truncate else knees
    begin, stop = np.maximum(ends[0], 0.0), np.minimum(ends[1], 2.0 * n - 1.0)
    width = np.where(stop == begin, 0.001, stop - begin)
    made = 1.0 - np.clip((np.arange(n) - begin[:, None]) / width[:, None], 0.0, 1.0)
    near = (np.abs(made - keep) <= 50.0 * allowed.max()).all(axis=1)
    return [_whole(length) for length in lengths[near].tolist()]


def _with(fitted: np.ndarray, tolerance: float) -> np.ndarray:
    """Return `POWERS`, and lengths that a ramp leads to, in round numbers."""
    more = [round_number(float(v), 200.0 * tolerance) for v in fitted if 1.0 < v < 2.0**40]
    return np.array(sorted({*POWERS.tolist(), *more}, key=lambda v: (math.frexp(v)[0] != 0.5, v)))


def _ends(
    keep: np.ndarray, ramp: np.ndarray, allowed: np.ndarray, beta: float, truncate: bool,
    pairs: float,
) -> np.ndarray:  # fmt: skip
    """Return the lengths of training to which the ends of a ramp in the pairs' index lead."""
    waves = lambda index: 2.0 * math.pi * math.exp(min(index / pairs, 300.0))  # noqa: E731
    zero, one = np.flatnonzero(keep <= 20 * allowed), np.flatnonzero(keep >= 1.0 - 20 * allowed)
    if not (len(ramp) or len(zero)):  # all as trained
        return np.empty(0)
    fall = (keep[ramp[0]] - keep[ramp[-1]]) / (ramp[-1] - ramp[0]) if len(ramp) > 1 else 0.0
    if not truncate:  # the ramp's own line
        return np.array(
            [waves(ramp[-1] + keep[ramp[-1]] / fall)] if fall > 0.01 / len(keep) else []
        )
    high = int(zero[0]) if len(zero) else round(ramp[-1] + keep[ramp[-1]] / max(fall, 1e-3))
    low = int(one[-1]) if len(one) else 0
    least = max(waves(high - 1), beta * waves(low) if low else 0.0)  # rounding hides it between
    most = min(waves(high), beta * waves(low + 1))
    if not least < most < 2.0**40:
        return np.empty(0)
    step = next((s for s in 2.0 ** np.arange(24, -1, -1) if math.ceil(least / s) * s <= most), 0.0)
    return np.array([math.ceil(least / step) * step if step else most])


def _kept(
    w: np.ndarray, allowed: np.ndarray, scale: Scale, tolerance: float
) -> Iterator[tuple[float, float, np.ndarray]]:
    """Yield bases, factors, and how much of each pair is as trained, from 1 to 0."""
    n = len(w)
    hot = abs(scale[0] - 1.0) > scale[1]  # then no pair need be slowed by all of the factor
    told = math.exp(min(10.0 * (scale[0] - 1.0), 700.0))
    own = (2.0 ** round(math.log2(told)), round_number(told, 10.0 * scale[1]), round(2 * told) / 2)
    for base in _bases(w, tolerance):
        ratio = w * base ** (np.arange(n) / n)
        if abs(ratio[0] - 1.0) > tolerance or ratio[-1] <= 0.0:
            continue
        found, near = 1.0 / float(ratio[-1]), max(4.0 * tolerance, float(allowed[-1]))
        powers = 2.0 ** round(math.log2(found)), *own, round_number(found, near)
        for factor in dict.fromkeys(powers):
            fits = abs(factor - found) <= near * found or (hot and factor in own and factor > found)
            if not (fits and 1.0 + 4.0 * tolerance < factor < MOST):
                continue
            keep = (ratio - 1.0 / factor) / (1.0 - 1.0 / factor)
            if ((keep >= -20.0 * allowed) & (keep <= 1.0 + 20.0 * allowed)).all():
                yield base, factor, keep


def _bases(w: np.ndarray, tolerance: float) -> list[float]:
    """Return the bases that the ends of a bent series lead to, and known ones."""
    n = len(w)
    ends = [] if n < 2 else [w[1] / w[0], w[-1] / w[-2]]  # a plateau at either has the slope
    powers = [min(-n * math.log(max(float(ratio), 1e-300)), 700.0) for ratio in ends]
    slopes = [round_number(math.exp(power), 4.0 * n * tolerance) for power in powers]
    return [base for base in dict.fromkeys([*slopes, *KNOWN_BASES]) if base > 1.0 and n > 1]


def _searched(w: np.ndarray, scale: Scale, tolerance: float) -> Iterator[Candidate]:
    """LongRoPE: one divisor per pair gives anything, so all must be short numbers.

    One call shows one of its two lists, which stands for both.
    """
    n = len(w)
    for base in KNOWN_BASES if tolerance <= 1e-5 else ():
        divisors = [round_number(float(d), tolerance) for d in base ** (-np.arange(n) / n) / w]
        odd = n >= 4 and 0.75 <= divisors.count(1.0) / n < 1.0  # a plain series but for some pairs
        short = all(_digits(d) <= (4 if tolerance > 1e-8 else 6) for d in divisors)
        if short and not odd and 0.5 < min(divisors) <= max(divisors) < 1e3:
            given: dict[str, Any] = {"short_factor": divisors, "long_factor": divisors}
            given |= {"original_max_position_embeddings": 4096, "factor": 1.0}
            if abs(scale[0] - 1.0) > scale[1]:
                given["attention_factor"] = round_number(scale[0], max(tolerance, 1e-6))
            yield "longrope", 2 * n, base, given


def _whole(value: float) -> int | float:
    """Return a whole number as an int, another as it is."""
    return int(value) if value == int(value) else value


def round_number(value: float, tolerance: float) -> float:
    """Return the number with the fewest digits within a relative ``tolerance`` of ``value``."""
    for digits in range(1, 17):
        short = float(f"{value:.{digits - 1}e}")
        if abs(short - value) <= tolerance * abs(value):
            power = 2.0 ** round(math.log2(value)) if value > 0 else short
            near = abs(power - value) <= tolerance * abs(value)
            return power if near and digits > 3 else short
    return value


def _digits(value: float) -> int:
    """Return how many digits a number has to be written with, 1 for a power of two."""
    if value > 0 and math.frexp(value)[0] == 0.5:
        return 1
    return len(repr(float(value)).split("e")[0].replace(".", "").replace("-", "").strip("0")) or 1


def fit_axes(
    waves: np.ndarray, errors: np.ndarray, head_dim: int, span: int | None, scale: Scale
) -> list[list[Formula]]:
    """Return the formulas of wave vectors: one list for each axis, or one for all together.

    Parameters
    ----------
    waves, errors
        Their sizes without signs, and how well they are known, (pairs, axes). Every pair changes
        with the position: one without a wave is slower than its error.
    head_dim, span
        Channels of the head, and of the whole that is split (see `name_layout`).
    scale
        As in `fit_formulas`.
    """

    def formulas(w: np.ndarray, known: np.ndarray) -> list[Formula]:
        count = 2 * len(w)
        widths = [v for v in (count, span or count, 2 * len(waves), head_dim) if v >= count]
        found = fit_formulas(w, known, tuple(dict.fromkeys(widths)), scale)
        if count == 2 * len(waves) and span and span > count:  # halves as wide as the whole series
            found.sort(key=lambda one: one.dim != span)
        return found

    moves = waves.any(axis=1)
    most = errors.max(axis=1)
    if ((waves > 0).sum(axis=1) <= 1).all():
        one = formulas(np.where(moves, waves.sum(axis=1), most), most)
        if waves.shape[1] == 1 or (one and one[0].kind != "longrope"):
            return [one]  # one series, dealt out to the axes
    each, found = -(-len(waves) // waves.shape[1]), []
    for w, known in zip(waves.T, errors.T, strict=True):
        if (on := w > 0).any():
            hidden = known[~moves][: max(0, each - int(on.sum()))]
            more = formulas(np.append(w[on], hidden), np.append(known[on], hidden))
            found.append(more or formulas(w[on], known[on]))
    return found


def name_place(pairs: np.ndarray, head_dim: int) -> str:
    """Return where in a head the channels that rotate stand: all, first, last or elsewhere."""
    rotating = np.sort(pairs.flatten())
    if len(rotating) == head_dim:
        return "all"
    contiguous = len(rotating) > 0 and rotating[-1] - rotating[0] + 1 == len(rotating)
    if contiguous and rotating[0] == 0:
        return "first"
    return "last" if contiguous and rotating[-1] == head_dim - 1 else "elsewhere"


def name_layout(inputs: np.ndarray, outputs: np.ndarray) -> tuple[str | None, int | None]:
    """Return the name of a layout of pairs, (n, 2) each, and the channels of what is split.

    Returns
    -------
    name : str or None
        ``interleaved``, ``half-split``, either in blocks, ``read ..., written ...``; or None.
    span : int or None
        Channels from the first to the end of the whole that is split: more than what rotates where
        its last pairs are fixed, as in a proportional embedding of halves. None where others are.
    """
    read, span = _name_pairs(inputs)
    written, _ = _name_pairs(np.sort(outputs))
    if np.array_equal(np.sort(inputs), np.sort(outputs)) or (read and read == written):
        return read, span
    return (f"read {read}, written {written}" if read and written else None), span


def _name_pairs(pairs: np.ndarray) -> tuple[str | None, int | None]:
    """Return the name of pairs whose lower channel comes first, and the channels that are split."""
    partner = {int(a): int(b) for a, b in pairs}
    blocks: list[tuple[bool, int, bool]] = []  # whether of adjacent channels; the end; all of it
    while partner:
        start = min(partner)
        half = partner[start] - start
        inside = [a for a in partner if start <= a < start + half]
        if half < 1 or any(partner.pop(a) != a + half for a in inside):
            return None, None
        whole = inside == list(range(start, start + len(inside)))
        blocks.append((half == 1, start + 2 * half, whole and len(inside) in (half, len(pairs))))
    return _name_blocks(blocks, pairs)


def _name_blocks(
    blocks: list[tuple[bool, int, bool]], pairs: np.ndarray
) -> tuple[str | None, int | None]:
    """Return the name of blocks: whether of adjacent channels, the end, whether all of it."""
    if len({adjacent for adjacent, *_ in blocks}) != 1:
        return None, None
    if len(pairs) == 1 and blocks[0][0]:
        return "interleaved or half-split", 2
    span = max(end for _, end, _ in blocks) - int(pairs.min())
    span_if_whole = span if all(whole for *_, whole in blocks) else None
    if blocks[0][0]:
        return "interleaved", span_if_whole
    return "half-split" + f" in {len(blocks)} blocks" * (len(blocks) > 1), span_if_whole


def name_arrangement(axes: tuple[int, ...]) -> str:
    """Return in words how the pairs of a head are dealt out to the axes of a position.

    Parameters
    ----------
    axes
        Of each pair, in the order of the pairs, the axis that it follows.
    """
    runs = [(axis, len(list(pairs))) for axis, pairs in groupby(axes)]
    order = list(dict.fromkeys(axes))
    counts = ", ".join(f"{axes.count(axis)} of axis {axis}" for axis in order)
    if len(runs) == len(order):
        return f"in blocks: {counts}"
    turns = next((k for k in range(2, len(order) + 1) if axes[k] in order[:k]), len(order))
    cycle = order[:turns]
    last = max(axes.count(axis) for axis in cycle[1:]) * turns
    if all(axis in (cycle[i % turns], runs[-1][0]) for i, axis in enumerate(axes[:last])):
        return f"interleaved, axes {', '.join(map(str, cycle))} by turns: {counts}"
    return f"neither in blocks nor by turns: {counts}"
