"""Naming: which layout these pairs are, and which published formula gives these frequencies.

A formula is proposed from the numbers and then *run*: `rescaled_frequencies` with the proposed
parameters must give back every frequency, or the proposal is dropped. What several formulas give
equally is listed as such.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from rope_minimal.rescaling import rescaled_frequencies

__all__ = [
    "MADE_IN",
    "Explanation",
    "explain",
    "explain_axes",
    "follows_but",
    "name_layout",
    "name_place",
    "plainest",
    "round_number",
]

KNOWN_BASES = (
    *(1e4, 5e5, 1e6, 1e5, 1.6e5, 5e6, 1e7, 2e4, 5e4, 2.5e5, 6e5, 2e6, 8e6, 2.5e7),
    *(5e7, 7.5e7, 8e7, 1e8, 1e11, 1e3, 1e2),
)
"""Bases that models ship with: tried where the numbers alone leave the base open."""

MADE_IN = {"float64": 1e-10, "float32": 4e-6, "16 bits": 2.0**-8}
"""Relative errors of frequencies that were computed in these formats."""

CAREFUL = 5e-7
"""As near are those of float32 whose powers were made with care: more digits of a base show."""

ENOUGH = 8
"""Speeds from which on no base of many digits fits what was made with less care."""

COARSE = 1e-3
"""Relative error of frequencies from which on several round bases fit."""

FARTHEST = 1e6
"""Factor from which on no context was ever stretched."""

MOST_TURNS = 1024.0
"""Turns in training from which on no pair was ever slowed down."""

SUBNORMAL = 2.0**-25
"""Largest error of rounding a small number to float16: below 2**-14 its digits run out."""

CONTRIVED = 10
"""Digits by which an explanation may be longer than the plainest: two speeds fit many formulas."""


@dataclass(frozen=True)
class Explanation:
    """A formula of `rescaled_frequencies` that gives the frequencies that were found.

    Attributes
    ----------
    kind, dim, base, parameters
        Its arguments. ``dim`` is the width that the series is built for.
    made_in
        The format in which the frequencies agree with it: a key of `MADE_IN`.
    """

    kind: str
    dim: int
    base: float
    parameters: dict[str, Any] = field(default_factory=dict)
    made_in: str = "float64"

    def inv_freq(self) -> np.ndarray:
        """Return the frequencies above zero that the formula gives, (pairs,)."""
        theta, _ = rescaled_frequencies(self.kind, self.dim, self.base, **self.parameters)
        return theta[theta > 0]

    def without(self, name: str) -> "Explanation":
        """Return it without a parameter, as where nobody can tell it."""
        rest = {key: value for key, value in self.parameters.items() if key != name}
        return replace(self, parameters=rest)

    def __str__(self) -> str:
        named = [f"base {self.base:.10g}"] if self.dim > 2 else []
        for name, value in self.parameters.items():
            if isinstance(value, list):
                value = f"[{value[0]:.6g}, ..., {value[-1]:.6g}]"
            named.append(f"{name}={value:.10g}" if isinstance(value, float) else f"{name}={value}")
        return f"{self.kind} over {self.dim} channels{': ' if named else ''}{', '.join(named)}"

    def _effort(self) -> tuple[int, int]:
        """Digits that must be written down: of two explanations that fit, the plain one leads."""
        values = [self.base]
        for value in self.parameters.values():
            values += value if isinstance(value, list) else [value]
        told = [v for v in values if not isinstance(v, bool) and v != 1.0]
        return sum(_digits(v) + 2 for v in told), _ORDER.index(self.kind)


_ORDER = (
    *("default", "linear", "ntk", "dynamic", "proportional", "llama3", "by_parts"),
    *("yarn_paper", "yarn", "monotone", "longrope"),
)


Scale = tuple[float, float]
"""The factor on cos and sin, and its relative error."""


def explain(
    speeds: np.ndarray,
    errors: np.ndarray,
    widths: tuple[int, ...],
    scale: Scale = (1.0, 0.0),
) -> list[Explanation]:
    """Return every formula known here that gives these frequencies, the plainest first.

    Parameters
    ----------
    speeds
        Frequencies above zero, shape (n,), in radians per position, in the order of the pairs.
    errors
        Their precision, shape (n,). A speed that it hides may be given as large as its error.
    widths
        Widths, in channels, that the series may be built for; the first is 2n.
    scale
        The factor on cos and sin: of two formulas that differ by it alone, it decides.

    Returns
    -------
    list of Explanation
        All of the finest format in which any formula holds; empty where none does.

    Notes
    -----
    Numbers of 16 bits do not tell a base of 500,000 from 497,000: in them only `KNOWN_BASES` are
    named. Nor is a ramp found over a base that neither its ends tell nor models ship with.
    """
    if not len(speeds) or np.ptp(np.log(speeds)) > 300.0:  # no base that a float holds
        return []
    order = np.argsort(-speeds, kind="stable")
    copies = _copies(speeds[order])
    if copies > 1:  # one series for each block or axis
        order, widths = order[::copies], tuple(w // copies for w in widths if w % (2 * copies) == 0)
    scale = scale[0], max(scale[1], 1e-4)
    speeds, reached = speeds[order], 4.0 * (errors / speeds)[order]
    for made_in, precision in MADE_IN.items():
        if made_in == "float64" and np.median(reached) > precision:
            continue  # few are known so well: a base would be fitted to rounding
        allowed = np.maximum(precision, reached)  # a slow pair may be known to few digits
        if made_in == "16 bits":
            allowed = np.maximum(allowed, SUBNORMAL / speeds)
        told = allowed[allowed < 0.25]  # a pair that has hardly moved tells nothing of the others
        tolerance = float(np.median(told if len(told) > 1 else allowed))
        if tolerance > 0.05:
            return []
        coarse = tolerance > COARSE
        found: dict[str, Explanation] = {}
        for proposals in (
            _known(speeds, widths, tolerance) if coarse else (),
            _proposals(speeds, allowed, widths, scale, tolerance),
            _other_knees(speeds, allowed, scale, tolerance),
            _searched(speeds, scale, tolerance),
        ):
            for kind, dim, base, parameters in proposals if not found else ():
                if coarse and (kind == "ntk" or (dim > 2 and base not in KNOWN_BASES)):
                    continue
                proposal = Explanation(kind, dim, base, parameters, made_in)
                if _holds(proposal, speeds, allowed):
                    found.setdefault(str(proposal), proposal)
        if found:
            fine = [  # proposed by coarse numbers alone
                replace(one, made_in="float32")
                for one in found.values()
                if made_in == "16 bits" and _holds(one, speeds, np.maximum(8e-6, reached))
            ]
            ranked = sorted(fine or found.values(), key=Explanation._effort)
            most = ranked[0]._effort()[0] + CONTRIVED
            ranked = [one for one in ranked if one._effort()[0] <= most]
            return [_with_more_digits(ranked[0], speeds, reached), *ranked[1:]]
    return []


def _with_more_digits(one: Explanation, speeds: np.ndarray, reached: np.ndarray) -> Explanation:
    """Return a plain series over a base of more digits, where they show and these miss."""
    allowed = np.maximum(CAREFUL, reached)
    told = one.kind == "default" and one.made_in == "float32" and len(speeds) >= ENOUGH
    told &= _digits(one.base) > 3  # a plain one was meant, however the powers were made
    if not told or np.median(reached) > CAREFUL or _holds(one, speeds, allowed):
        return one
    for kind, dim, base, _ in _proposals(speeds, allowed, (one.dim,), (1.0, 1e-4), CAREFUL):
        better = replace(one, base=base)
        if (kind, dim) == ("default", one.dim) and _holds(better, speeds, allowed):
            return better
    return one


def _copies(ranked: np.ndarray) -> int:
    """Return how often a series of two speeds or more is repeated: every speed so many times."""
    n = len(ranked)
    for copies in range(n // 2, 1, -1):
        if n % copies == 0:
            rows = ranked.reshape(-1, copies)
            if (np.ptp(rows, axis=1) <= 1e-12 * rows[:, 0]).all() and (
                np.diff(rows[:, 0]) < 0
            ).all():
                return copies
    return 1


def _holds(proposal: Explanation, speeds: np.ndarray, allowed: np.ndarray) -> bool:
    """Run the formula and compare every number."""
    try:
        theta = proposal.inv_freq()
    except (ValueError, TypeError):
        return False
    return theta.shape == speeds.shape and bool(
        (np.abs(np.sort(theta)[::-1] - speeds) <= allowed * speeds).all()
    )


Proposal = tuple[str, int, float, dict[str, Any]]


def _proposals(
    speeds: np.ndarray,
    allowed: np.ndarray,
    widths: tuple[int, ...],
    scale: Scale,
    tolerance: float,
) -> Iterator[Proposal]:
    """Propose formulas with parameters; none of them is believed before it was run."""
    if len(speeds) == 1:  # one hand has a speed and no base
        yield from _slower("default", 2, 1.0, speeds[0], tolerance)
        return
    steps = np.arange(1, len(speeds))
    best = int(np.argmin(allowed[1:] / steps)) + 1  # far down the series, and well known
    slope = math.log(speeds[0] / speeds[best]) / best  # of log theta, per pair
    for width in dict.fromkeys(widths):
        loose = width * float((allowed[1:] / steps).min()) / 4.0  # no frequency moves too far
        base = round_number(math.exp(min(slope * width / 2.0, 700.0)), loose)
        yield from _series(speeds, width, base, min(tolerance, float(allowed[0])))
        if width == 2 * len(speeds) and abs(speeds[0] - 1.0) <= tolerance:
            yield from _stretched(base, width, tolerance)
    series = speeds[0] * np.exp(-slope * np.arange(len(speeds)))
    if (np.abs(series / speeds - 1.0) > 2.0 * allowed).any():  # it bends
        yield from _ramps(speeds, allowed, scale, tolerance)


def _known(speeds: np.ndarray, widths: tuple[int, ...], tolerance: float) -> Iterator[Proposal]:
    """Propose plain series of known bases, for numbers too coarse to tell a base."""
    for width, base in product(dict.fromkeys(widths), KNOWN_BASES if len(speeds) > 1 else ()):
        yield from _series(speeds, width, base, tolerance)


def _series(speeds: np.ndarray, width: int, base: float, tolerance: float) -> Iterator[Proposal]:
    """Propose a plain series, all of it or its beginning, as it is or slower alike."""
    kind = "default" if width == 2 * len(speeds) else "proportional"
    more = {} if kind == "default" else {"partial_rotary_factor": 2 * len(speeds) / width}
    if abs(speeds[0] - 1.0) <= tolerance:
        yield kind, width, base, more
    else:
        for name, dim, _, scale in _slower(kind, width, base, speeds[0], tolerance):
            yield name, dim, base, more | scale


def _slower(
    kind: str, dim: int, base: float, fastest: float, tolerance: float
) -> Iterator[Proposal]:
    """All pairs slower alike: an interpolation, or a fastest pair chosen on purpose."""
    factor = round_number(1.0 / fastest, tolerance)
    if factor > FARTHEST:
        return
    if kind == "proportional":
        yield kind, dim, base, {"factor": factor}
        return
    if factor == 1.0:
        yield "default", dim, base, {}
        return
    yield "linear", dim, base, {"factor": factor}
    whole = round_number(math.pi * factor, tolerance)
    if whole == int(whole):
        yield "monotone", dim, base, {"max_positions": int(whole)}


def _stretched(base: float, dim: int, tolerance: float) -> Iterator[Proposal]:
    """Propose a base that grew out of a known one by a round factor: NTK, fixed or at one length.

    ``base * factor**(dim / (dim-2))``
    """
    for known in KNOWN_BASES if dim > 2 else ():
        factor = round_number((base / known) ** ((dim - 2) / dim), dim * tolerance)
        if factor > 1.0 and _digits(factor) <= 3:
            yield "ntk", dim, known, {"factor": factor}


@dataclass(frozen=True, eq=False)
class _Bent:
    """A series of which fast pairs are as trained and slow ones divided, each by at most a factor.

    ``keep`` is how much of each pair is as trained, from 1 to 0; ``ramp`` are the pairs between.
    """

    plain: np.ndarray
    keep: np.ndarray
    ramp: np.ndarray
    base: float
    factor: float
    hot: bool  # the factor on cos and sin is YaRN's own, 0.1 ln(factor) + 1

    def straight_over(self, x: np.ndarray, loose: float) -> bool:
        """Whether the ramp is a straight line over x."""
        if len(self.ramp) < 3:
            return True
        x, y = x[self.ramp], self.keep[self.ramp]
        slope = (y[-1] - y[0]) / (x[-1] - x[0])
        return bool((np.abs(y - y[0] - slope * (x - x[0])) <= loose).all())

    def knees(self) -> tuple[float, float] | None:
        """Return the indices of pairs between which the ramp runs; None where it does not fall."""
        if len(self.ramp) < 2:  # whole numbers beside it
            return float((self.keep > 0.75).sum() - 1), float((self.keep >= 0.25).sum())
        first, last = self.ramp[0], self.ramp[-1]
        fall = (self.keep[first] - self.keep[last]) / (last - first)
        if fall < 0.01 / len(self.keep):  # as good as level: it never ends
            return None
        low = first - (1.0 - self.keep[first]) / fall
        return float(low), float(last + self.keep[last] / fall)

    def wave(self, at: float) -> float:
        """Return the wavelength of the plain series at an index; far beyond it, a bound."""
        power = math.log(self.base) * at / len(self.plain)
        return 2.0 * math.pi * math.exp(min(max(power, -300.0), 300.0))

    def shared(self, scale: Scale, tolerance: float) -> dict[str, Any]:
        """Return YaRN's factor, and that on cos and sin where it is not its own."""
        if self.hot:
            return {"factor": self.factor}
        own = round_number(scale[0], max(tolerance, 1e-6))
        return {"factor": self.factor, "attention_factor": own}


def _ramps(
    speeds: np.ndarray, allowed: np.ndarray, scale: Scale, tolerance: float
) -> Iterator[Proposal]:
    """Fast pairs as trained, slow ones divided, a ramp between: by parts, Llama 3, YaRN."""
    loose = 50.0 * float(allowed.max())
    for bent in _bents(speeds, allowed, scale, tolerance):
        if bent.straight_over(bent.plain, loose):
            yield from _ramps_in_turns(bent, scale, tolerance)
        if bent.straight_over(np.arange(len(speeds)), loose):
            yield from _ramps_in_pairs(bent, scale, tolerance)


def _other_knees(
    speeds: np.ndarray, allowed: np.ndarray, scale: Scale, tolerance: float
) -> Iterator[Proposal]:
    """Propose YaRN between other knees than 32 turns and 1, where these were tried in vain.

    ``L / beta`` alone counts: twice the length between knees of twice the turns is the same. In 16
    bits a ramp so free would follow any series.
    """
    if len(speeds) < 2 or tolerance > COARSE:
        return
    for bent in _bents(speeds, allowed, scale, tolerance):
        straight = bent.straight_over(np.arange(len(speeds)), 50.0 * float(allowed.max()))
        knees = bent.knees()
        if not straight or knees is None:
            continue
        shared = bent.shared(scale, tolerance)
        for slow, truncate in product((1.0, 2.0, 4.0), (True, False)):
            if truncate:  # which hides the knees between two pairs
                low, high = round(knees[0]), round(knees[1])
                length = _roundest(slow * bent.wave(high - 1), slow * bent.wave(high))
                least, most = length / bent.wave(low + 1), length / bent.wave(low)
                usual = (beta for beta in (32.0, slow) if least < beta <= most)
                fast = next(usual, None) or _roundest(least, most)
            else:
                length = round_number(slow * bent.wave(knees[1]), 200.0 * tolerance)
                fast = round_number(length / bent.wave(knees[0]), 200.0 * tolerance)
            if fast > MOST_TURNS:
                continue
            told = {"original_max_position_embeddings": _whole(length)}
            told |= {} if fast == 32.0 else {"beta_fast": fast}
            told |= {} if slow == 1.0 else {"beta_slow": slow}
            told |= {} if truncate else {"truncate": False}
            yield "yarn", 2 * len(speeds), bent.base, shared | told


def _bents(
    speeds: np.ndarray, allowed: np.ndarray, scale: Scale, tolerance: float
) -> Iterator[_Bent]:
    """Take speeds for a series bent so, over each base that its ends tell or models ship with."""
    dim, n = 2 * len(speeds), len(speeds)
    ends = [speeds[1] / speeds[0], speeds[-1] / speeds[-2]]  # a plateau at either end has the slope
    steep = (-n * math.log(max(float(ratio), 1e-300)) for ratio in ends)
    slopes = [round_number(math.exp(min(power, 700.0)), 2.0 * dim * tolerance) for power in steep]
    for base in dict.fromkeys([*slopes, *KNOWN_BASES]):
        if base <= 1.0:
            continue
        plain = base ** (-2.0 * np.arange(n) / dim)
        ratio = speeds / plain
        if abs(ratio[0] - 1.0) > tolerance or ratio[-1] <= 0:
            continue
        near = max(4.0 * tolerance, float(allowed[-1]))
        for factor in _factors(1.0 / float(ratio[-1]), near, scale):
            if not 1.0 + 4.0 * tolerance < factor < FARTHEST:
                continue
            keep = (ratio - 1.0 / factor) / (1.0 - 1.0 / factor)
            clear = 20.0 * allowed  # of either plateau
            if ((keep < -clear) | (keep > 1.0 + clear)).any():
                continue
            ramp = np.flatnonzero((keep > clear) & (keep < 1.0 - clear))
            hot = math.isclose(scale[0], 0.1 * math.log(factor) + 1.0, rel_tol=scale[1])
            yield _Bent(plain, keep, ramp, base, factor, hot)


def _factors(found: float, tolerance: float, scale: Scale) -> list[float]:
    """Return factors as near to the one found: a power of two, YaRN's own, the shortest number."""
    told = math.exp(min(10.0 * (scale[0] - 1.0), 700.0))  # known to ten times the error of its root
    powers = [2.0 ** round(math.log2(factor)) for factor in (found, told)]
    own = (round_number(told, 10.0 * scale[1]), round(2.0 * told) / 2.0)
    tried = (*powers, *own, round_number(found, tolerance))
    hot = abs(scale[0] - 1.0) > scale[1]  # then no pair need be slowed by all of it
    return [
        f for f in dict.fromkeys(tried)
        if abs(f - found) <= tolerance * found or (hot and f in own and f > found)
    ]  # fmt: skip


def _ramps_in_turns(bent: _Bent, scale: Scale, tolerance: float) -> Iterator[Proposal]:
    """Propose ramps straight in the turns that a pair makes in training, ``L theta / 2 pi``."""
    plain, keep, ramp = bent.plain, bent.keep, bent.ramp
    knees = {(1.0, 2.0), (1.0, 4.0), (1.0, 8.0), (1.0, 32.0)}
    lengths: set[float] = {2.0**k for k in range(6, 24)}
    loose = 200.0 * tolerance
    if len(ramp) >= 2:
        first, last = ramp[0], ramp[-1]
        slope = (keep[first] - keep[last]) / (plain[first] - plain[last])
        stands = plain[last] - keep[last] / slope  # speed at which a pair is divided fully
        trained = plain[first] + (1.0 - keep[first]) / slope  # and from which it is left alone
        if stands > 0:
            knees = {(1.0, round_number(trained / stands, loose))}
            length = 2.0 * math.pi / stands
            lengths = {round_number(length, loose), 2.0 ** round(math.log2(length))}
    elif len(ramp) == 0:
        knees.add((1.0, 1.0))  # a step
    elif len(ramp) == 1:
        (one,) = ramp
        turns = (low + keep[one] * (high - low) for low, high in knees)
        found = [2.0 * math.pi * turn / plain[one] for turn in turns]
        lengths = {round_number(length, loose / 2.0) for length in found}
        lengths |= {2.0 ** round(math.log2(length)) for length in found}
    for length in sorted(lengths):
        for low, high in sorted(knees):
            shared = {"factor": bent.factor, "original_max_position_embeddings": _whole(length)}
            named = {"low_freq_factor": low, "high_freq_factor": high}
            betas = {} if high == 32.0 else {"beta_fast": high}
            if bent.hot:
                yield "yarn_paper", 2 * len(plain), bent.base, shared | betas
            else:
                yield "llama3", 2 * len(plain), bent.base, shared | named
                if low == high:
                    one = shared | {"beta_fast": high} | bent.shared(scale, tolerance)
                    yield "yarn", 2 * len(plain), bent.base, one
                yield "by_parts", 2 * len(plain), bent.base, shared | betas


def _ramps_in_pairs(bent: _Bent, scale: Scale, tolerance: float) -> Iterator[Proposal]:
    """Propose ramps straight in the pair's index, between knees that were rounded, or not."""
    base, dim = bent.base, 2 * len(bent.keep)
    shared = bent.shared(scale, tolerance)
    lengths = {2.0**k for k in range(6, 24)}
    knees = bent.knees()
    if knees is None:
        return
    low, high = knees
    if len(bent.ramp) > 1:
        lengths |= {32.0 * bent.wave(low), bent.wave(high)}
    # rounding the knees outwards hides the length between these two; no knee is below 0
    least = max(32.0 * bent.wave(low) if low > 0.5 else 0.0, bent.wave(high - 1.0))
    most = min(32.0 * bent.wave(low + 1.0), bent.wave(high))
    if least <= most < 2.0**40:
        lengths.add(_roundest(least, most))
    for length in sorted(
        filter(math.isfinite, lengths), key=lambda size: (math.frexp(size)[0] != 0.5, size)
    ):
        for truncate in (True, False):
            power = math.frexp(length)[0] == 0.5  # of two, as most are
            whole = _whole(length if power else round_number(length, 200.0 * tolerance))
            more = {} if truncate else {"truncate": False}
            yield "yarn", dim, base, shared | {"original_max_position_embeddings": whole} | more


def _searched(speeds: np.ndarray, scale: Scale, tolerance: float) -> Iterator[Proposal]:
    """One divisor per pair explains anything; it is proposed where all are short numbers.

    Of the two lists one was heard, and stands for both.
    """
    if tolerance > 1e-5:
        return
    n = len(speeds)
    for base in KNOWN_BASES:
        divisors = [round_number(float(d), tolerance) for d in base ** (-np.arange(n) / n) / speeds]
        if not 0.5 < min(divisors) <= max(divisors) < 1e3:  # as they are searched for
            continue
        if n >= 4 and 0.75 <= divisors.count(1.0) / n < 1.0:
            continue  # a plain series with an odd pair: `follows_but`
        if all(_digits(d) <= (4 if tolerance > 1e-8 else 6) for d in divisors):
            found: dict[str, Any] = {"short_factor": divisors, "long_factor": divisors}
            found |= {"original_max_position_embeddings": 4096, "factor": 1.0}
            if abs(scale[0] - 1.0) > scale[1]:
                found["attention_factor"] = round_number(scale[0], max(tolerance, 1e-6))
            yield "longrope", 2 * n, base, found


def _whole(value: float) -> int | float:
    """Return a whole number as an int, another as it is."""
    return int(value) if value == int(value) else value


def _roundest(least: float, most: float) -> float:
    """Return the number in between that is the highest power of two times the smallest rest."""
    for step in (2.0**k for k in range(24, -1, -1)):
        found = math.ceil(least / step) * step
        if found <= most:
            return found
    return most


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


def explain_axes(
    waves: np.ndarray,
    errors: np.ndarray,
    head_dim: int,
    span: int | None,
    scale: Scale = (1.0, 0.0),
) -> list[list[Explanation]]:
    """Return what explains the wave vectors: one list for each axis, or one for all together.

    Parameters
    ----------
    waves, errors
        Their sizes without signs, and how well they are known, (pairs, axes).
    head_dim, span
        Channels of the head, and of the whole that is split (see `name_layout`).
    scale
        As in `explain`.
    """

    def formulas(speeds: np.ndarray, known: np.ndarray) -> list[Explanation]:
        on = speeds > 0
        count = 2 * int(on.sum())
        widths = (count, span or count, 2 * len(waves), head_dim)
        fits = tuple(w for w in dict.fromkeys(widths) if w >= count)
        found = explain(speeds[on], known[on], fits, scale)
        whole = count == 2 * len(waves)
        if whole and span and span > count:  # halves as wide as the whole series
            found.sort(key=lambda one: one.dim != span)
        return found

    if waves.shape[1] > 1 and ((waves > 0).sum(axis=1) <= 1).all():
        # each pair was seen to move: a speed that rounding hides may be as large as its error
        known = errors.max(axis=1)
        one = formulas(np.where(waves.any(axis=1), waves.sum(axis=1), known), known)
        if one and one[0].kind != "longrope":
            return [one]  # one series, dealt out to the axes
    found, each = [], -(-len(waves) // waves.shape[1])
    for speeds, known in zip(waves.T, errors.T, strict=True):
        if speeds.any():
            some = known[~waves.any(axis=1)][: max(0, each - np.count_nonzero(speeds))]
            more = formulas(np.append(speeds, some), np.append(known, some)) if len(some) else []
            found.append(more or formulas(speeds, known))
    if len(found) == waves.shape[1] > 1 and all(found):  # known to as many digits as the axis tells
        for each in sorted(found, key=lambda one: one[0]._effort(), reverse=True):
            axes = zip(waves.T, errors.T, strict=True)
            if all(
                _gives(each[0], speeds[speeds > 0], known[speeds > 0]) for speeds, known in axes
            ):
                return [each]
    names = [{(one.kind, one.dim, one.base) for one in each} for each in found]
    shared = set.intersection(*names) if names else set()
    for each in found:  # what is a part of one series on every axis is told as such
        each.sort(key=lambda one: (one.kind, one.dim, one.base) not in shared)
    return found


def plainest(series: list[list[Explanation]]) -> list[Explanation]:
    """Return what explains an axis in the fewest digits; empty where nothing explains any."""
    return min(filter(None, series), key=lambda found: found[0]._effort(), default=[])


def _gives(one: Explanation, speeds: np.ndarray, errors: np.ndarray) -> bool:
    """Return whether a formula gives these speeds, as well as they are known."""
    order = np.argsort(-speeds, kind="stable")
    allowed = MADE_IN[one.made_in] + 4.0 * errors[order] / speeds[order]
    return _holds(one, speeds[order], allowed)


def follows_but(speeds: np.ndarray, errors: np.ndarray) -> tuple[float, np.ndarray] | None:
    """Return the known base that most pairs follow, three in four at least, and which do not.

    None where no base does, or where one is followed by all. A pair whose speed is not known to a
    tenth follows nothing.
    """
    n, near = len(speeds), 4.0 * errors
    allowed = np.maximum(MADE_IN["float32"] * speeds, near)
    plain = np.array(KNOWN_BASES)[:, None] ** (-np.arange(n) / n)
    off = np.abs(speeds - plain) > allowed
    best = int(off.sum(axis=1).argmin())
    follow = (~off[best] & (near < 0.1 * speeds)).sum()
    if n < 4 or not off[best].any() or follow < 0.75 * n:
        return None
    return KNOWN_BASES[best], off[best]


def name_place(pairs: np.ndarray, head_dim: int) -> str:
    """Say where in a head the channels that turn stand."""
    turning = np.sort(pairs.flatten())
    if len(turning) == head_dim:
        return "all"
    contiguous = len(turning) > 0 and turning[-1] - turning[0] + 1 == len(turning)
    if contiguous and turning[0] == 0:
        return "first"
    return "last" if contiguous and turning[-1] == head_dim - 1 else "elsewhere"


def name_layout(reads: np.ndarray, writes: np.ndarray) -> tuple[str | None, int | None]:
    """Name the layout of pairs, as they are read, and as they are written if that is another.

    Parameters
    ----------
    reads, writes
        Channels of each pair, shape (n, 2).

    Returns
    -------
    name : str or None
        ``interleaved``, ``half-split``, either in blocks, ``read ..., written ...``; or None.
    span : int or None
        Channels from the first to the end of the whole that is split; where its last pairs stand
        still, as in a proportional embedding of halves, it is more than what turns. None where
        others do.
    """
    read, span = _name_pairs(reads)
    written, _ = _name_pairs(np.sort(writes))
    if np.array_equal(np.sort(reads), np.sort(writes)) or (read and read == written):
        return read, span
    return (f"read {read}, written {written}" if read and written else None), span


def _name_pairs(pairs: np.ndarray) -> tuple[str | None, int | None]:
    """Name pairs whose lower channel comes first, and say what is split."""
    partner = {int(a): int(b) for a, b in pairs}
    blocks: list[tuple[str, int]] = []  # name and end
    gaps = part = False
    while partner:
        start = min(partner)
        step = partner[start] - start
        if step == 1:
            end = start
            while partner.get(end) == end + 1:
                del partner[end]
                end += 2
            blocks.append(("interleaved", end))
        else:
            end = start + 2 * step
            within = [a for a in partner if start <= a < start + step]
            if step < 1 or any(partner[a] != a + step for a in within):
                return None, None
            gaps |= within != list(range(start, start + len(within)))
            part |= len(within) < step
            for a in within:
                del partner[a]
            blocks.append(("half-split", end))
    if not blocks:
        return None, None
    if len(pairs) == 1 and blocks[0][0] == "interleaved":
        return "interleaved or half-split", 2
    names = {name for name, _ in blocks}
    if len(names) > 1:
        return None, None
    span = (
        None
        if gaps or (part and len(blocks) > 1)
        else max(end for _, end in blocks) - int(pairs.min())
    )
    one = names.pop()
    if len(blocks) == 1 or one == "interleaved":
        return one, span
    return f"{one} in {len(blocks)} blocks", span
