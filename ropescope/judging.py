"""Judging: what the numbers mean, in words. Each function returns the findings of one question."""

import math
from collections.abc import Callable

import numpy as np

from .asking import Asker, RefusalError
from .circuit import COARSEST, FORMATS, Circuit, format_before, many_digits, rounded, turn_of
from .naming import Explanation, follows_but, round_number
from .report import ANGLE, GROWING, LOOK, NOTE, WRONG, Finding, Report

Findings = list[Finding]

PROMISE = 0.02
"""A score may change by as much where angles far out are made in float32."""

COARSE = 0.02
"""Radians by which the first positions may miss where angles of float32 start far out."""

STILL = 1e-9
"""Radians per position of the fastest pair, below which it is rounding or meant as nothing."""

ROUNDED = {"bfloat16": 2.0**-9, "float16": 2.0**-12}
"""Largest error of rounding a number up to 1."""

SHORT = 16
"""Positions of an axis so short that rounding may hide which formula its speeds follow."""

HIDDEN = 0.05
"""Relative error of a speed from which on several factors fit it."""

FEW = 6
"""So many numbers of 16 bits, where more digits were told, are no chance."""

Made = tuple[str, str]
"""What is rounded, a key of `HOW`, and the format that it is rounded to."""

HOW = {"product": "the product were made in", "positions": "positions{} were held in"}
"""The same in words, with what was done to positions before."""


def still() -> Findings:
    """Say that nothing moves."""
    words = "It turns nothing: every position gets the same matrix."
    return [Finding(WRONG, words, "why-position")]


def lengths(report: Report, circuit: Circuit, ask: Asker, positions: np.ndarray) -> Findings:
    """Say why this is no rotation, with the position that shows it best."""
    found = []
    low, high = (f(circuit.singular_values) / circuit.factor for f in (np.min, np.max))
    if report.rest_factor is None:
        rest = np.linalg.svd(circuit.rest, compute_uv=False)
        own = circuit.rest[circuit.still, np.arange(len(circuit.still))]
        in_place = np.eye(report.head_dim)[:, circuit.still] * own
        gains = bool(np.abs(own).min() > 0.01 and np.abs(circuit.rest - in_place).max() <= 1e-6)
        words = (
            f"The {len(circuit.still)} channels that do not turn are not left alone: their lengths "
            f"are multiplied by {rest.min():.3g} to {rest.max():.3g}"
            f"{', each by its own, as gains do: the promise holds for them' * gains}."
        )
        found.append(Finding(LOOK if gains else WRONG, words, "layouts"))
    if circuit.tangles:
        sizes = sorted({max(t.shape[1:]) for t in circuit.tangles} - {1})
        alone = sum(max(t.shape[1:]) == 1 for t in circuit.tangles)
        parts = [f"channels mix in groups of {sizes}"] if sizes else []
        parts += [f"{alone} channels are scaled alone"] if alone else []
        loose = 64.0 * FORMATS[report.numbers or "float64"]
        kept = high - low <= loose
        factor = circuit.factor
        each = np.ptp(circuit.singular_values, axis=1).max() / factor
        # one factor at each position, at rest as well
        if report.pairs and not sizes and each <= loose:
            return [*found, changing(factor * low, factor * high, 0.0, True, False)]
        times = f"lengths times {factor * low:.3g} to {factor * high:.3g}"
        whole, too = "lengths are kept", "so is the promise"
        if abs(factor - 1.0) > loose:
            whole = f"lengths of what turns are multiplied by {factor:.6g}"
            too = "the promise is kept"
        then = whole if kept else times
        promise = kept and _kept(report, circuit)
        then += f", and {too}, to {report.deviation:.1g}" if promise else ""
        words = f"Not a rotation in pairs of channels: {' and '.join(parts)}; {then}."
        return [*found, Finding(LOOK if promise else WRONG, words, "linear-algebra")]
    exact = high - low <= 64.0 * FORMATS[report.numbers or "float64"]
    if report.is_rotation or not report.pairs or (found and exact):
        return found
    return [*found, _not_a_rotation(report, circuit, ask, positions)]


def _not_a_rotation(report: Report, circuit: Circuit, ask: Asker, positions: np.ndarray) -> Finding:
    """Say what is wrong with the blocks of the pairs."""
    factor = circuit.factor
    values = np.linalg.svd(circuit.blocks, compute_uv=False) / factor  # (T, n, 2)
    low, high = float(values.min()), float(values.max())
    times = 16.0 if report.numbers in ROUNDED else 64.0  # 64 units of bfloat16 would hide gains
    loose = max(1e-6, times * FORMATS[report.numbers or "float64"])
    if low > 0.5 and high < 1.5 and _in_8_bits(circuit.blocks / np.abs(circuit.blocks).max()):
        words = (
            f"{_what(ask, positions, report, _in_8_bits)} rounded to 8 bits, as in float8: lengths "
            f"are multiplied by {factor * low:.3g} to {factor * high:.3g}."
        )
        return Finding(WRONG, words, "precision")
    numbers, off = report.numbers or "float64", factor * max(high - 1.0, 1.0 - low)
    if numbers in ROUNDED and high - low < 2.0 * loose:  # too little to tell what does it
        words = f"Lengths are off by up to {off:.2g}, and one rounding to {numbers} explains "
        words += f"{4.0 * factor * FORMATS[numbers]:.2g}: cos and sin are rounded coarsely or "
        words += "disagree, or lengths change with the position or the channel."
        return Finding(WRONG, words, "precision")
    far = max(1.0, high)  # where one gain is large, so is what rounding changes
    fixed = bool((np.ptp(values, axis=0) <= loose * far).all())  # the same at every position
    alike = bool((np.ptp(values.reshape(len(values), -1), axis=1) <= loose).all())  # all pairs
    exponential = low > 0.0 and len(values) > 4 and _steady(values, positions, loose)
    steady = fixed or alike or exponential
    if high - low < COARSEST and not (steady and high - low > loose):
        words = f"Lengths are off by up to {off:.2g}, as where cos and sin, or what comes out, are "
        words += "rounded coarsely."
        return Finding(WRONG, words, "precision")
    if (np.ptp(values, axis=2) <= loose).all():  # each block is a turn times its own factor
        if fixed:
            kept = low > loose and _kept(report, circuit, high)
            who = "Pairs, or channels," if loose > 1e-3 else "Pairs"  # which rounding hides
            words = (
                f"{who} carry different factors at every position: "
                f"{factor * low:.6g} to {factor * high:.6g}{'; the promise is kept' * kept}."
            )
            return Finding(LOOK if kept else WRONG, words, "longer-contexts")
        steps = 2.0 * FORMATS["float32"] * float(positions.sum(axis=1).max())
        return changing(factor * low, factor * high, steps, alike, exponential)
    if fixed and low <= loose:
        lost = int((values[0].min(axis=1) <= loose).sum())
        words = (
            f"Not a rotation: {lost} of {len(report.pairs)} pairs lose a direction at every "
            f"position, and other lengths are multiplied by up to {factor * high:.3g}: queries and "
            "keys that differ along it alone cannot be told apart."
        )
        return Finding(WRONG, words, "linear-algebra")
    if fixed:
        inner, outer = (side / factor**2 for side in circuit.sides)
        before = bool(inner <= min(4.0 * loose * far**2, outer))  # no turn stands between
        kept = before and _kept(report, circuit, high)
        place = "before" if before else "after"
        then = "kept: a gain is part of the query" if kept else "broken"
        then += ", but not by them" if before and not kept else ""
        words = (
            f"Channels carry gains, {factor * low:.3g} to {factor * high:.3g}, {place} the turn: "
            f"the promise is {then}."
        )
        return Finding(LOOK if kept else WRONG, words, "attention")
    if circuit.change < COARSEST and not steady:
        words = (
            f"Lengths change with the position by up to {factor * circuit.change:.2g}, as where "
            f"cos and sin are rounded coarsely, beside gains of {factor * low:.3g} to "
            f"{factor * high:.3g}."
        )
        return Finding(WRONG, words, "precision")
    worst = int(np.ptp(values, axis=2).max(axis=1).argmax())
    determinant = float(np.linalg.det(circuit.blocks[worst]).min())
    why = (
        "The two channels of a pair get different angles or factors, as where cos and sin are laid "
        "out for one layout and channels are swapped for the other, or a channel is overwritten "
        "before it is read."
    )
    size = np.abs(circuit.blocks) / factor
    mirrored = np.allclose(size, size[..., ::-1, ::-1], atol=loose)
    if mirrored and np.allclose(np.linalg.norm(size, axis=-1), 1.0, atol=loose):
        why = "But for a sign these are the numbers of a rotation: a minus is missing or misplaced."
    short, long = (factor * float(f(values[worst])) for f in (np.min, np.max))
    words = (
        f"Not a rotation: at position {_at(positions[worst])} a vector of length 1 comes out with "
        f"length {short:.3g} to {long:.3g} (singular values; smallest determinant "
        f"{determinant:.3g}). {why}"
    )
    return Finding(WRONG, words, "layouts")


def changing(low: float, high: float, steps: float, alike: bool, exponential: bool) -> Finding:
    """Say that lengths change with the position, and what may do it.

    Parameters
    ----------
    low, high
        The smallest factor and the largest.
    steps
        How far float32 may round a product of as many steps as there are positions.
    alike
        Whether all pairs have one factor at each position.
    exponential
        Whether it grows or falls by one part in each step.
    """
    by = f"{low:.3g} to {high:.3g}"
    if high - low < steps:
        by = f"up to {high - low:.1g}"
        why = "as where float32 rounds each step of powers or products of rotations"
    elif exponential:
        why = "scores depend on the place, unless keys get the inverse factor (xPos)"
    elif alike:
        why = "scores depend on the place, which may be meant, as where queries are made longer "
        why += "with the logarithm of the position"
    else:
        why = "cos and sin disagree, by a factor, or because they are those of different positions "
        why += "or frequencies"
    each = f"{GROWING.removesuffix(' alone')}, in each pair by its own factor"
    words = f"{GROWING if alike else each}, by {by}: {why}."
    return Finding(WRONG, words, "layouts")


def _kept(report: Report, circuit: Circuit, longest: float = 1.0) -> bool:
    """Return whether scores of vectors up to so long change by no more than rounding explains."""
    coarse = max(0.01, 12.0 * FORMATS[report.numbers or "float64"])
    limit = coarse if report.numbers in ROUNDED else PROMISE
    factor = circuit.factor if report.attention_factor is None else 1.0
    return (report.deviation or 0.0) <= limit * (factor * max(1.0, longest)) ** 2


def _in_8_bits(numbers: np.ndarray) -> bool:
    """Return whether numbers have four binary digits, as those of float8 at most."""
    digits = np.frexp(numbers)[0] * 16.0
    return np.allclose(digits, np.round(digits), 0.0, 1e-5)


def _steady(values: np.ndarray, positions: np.ndarray, loose: float) -> bool:
    """Return whether lengths (T, n, 2) grow or fall exponentially, as no rounding makes them."""
    change = np.log(values.min(axis=2) / values[0].min(axis=1))
    rate = np.linalg.lstsq(positions, change)[0]
    return bool(np.abs(change - positions @ rate).max() <= loose + 0.1 * np.abs(change).max())


def _what(
    ask: Asker, positions: np.ndarray, report: Report, few: Callable[[np.ndarray], bool]
) -> str:
    """Say what is rounded: cos and sin, or all, if a vector of many digits comes out of few."""
    if (digits := _of_many_digits(ask, positions)) is None:
        return "cos and sin are"
    if few(digits):
        return "What comes out is"
    turning = digits[..., np.unique(report.written)]
    return "What comes out of channels that turn is" if few(turning) else "cos and sin are"


def _of_many_digits(ask: Asker, positions: np.ndarray) -> np.ndarray | None:
    """Return what comes of a vector of many digits, None if it is refused."""
    try:
        return ask(many_digits(ask.head_dim), positions)
    except RefusalError:
        return None


def few(report: Report) -> Findings:
    """Say it where hardly any channels turn."""
    if not report.width or report.width * 8 >= report.head_dim:
        return []
    words = f"Only {report.width} of {report.head_dim} channels are seen to turn."
    return [Finding(LOOK, words, "many-planes")]


def short_table(good: int, past: str, grows: bool) -> Findings:
    """Say it where hardly any position is answered, or those that a longer call holds."""
    if grows:
        words = "A position is answered only in a call that is longer, as where a table is made "
        words += f"for each call: of two positions {good} is the last, and then it {past}."
        return [Finding(LOOK, words, "attention")]
    if good >= SHORT:
        return []
    return [Finding(LOOK, f"Position {good} is the last: after it, it {past}.", "attention")]


def out_of_place(report: Report, circuit: Circuit) -> Findings:
    """Say which channels come out elsewhere than they went in."""
    found = []
    both = zip(report.pairs, report.written, strict=True)
    moved = [n for n, (read, written) in enumerate(both) if read != written]
    mirrored = sum(report.pairs[n] == report.written[n][::-1] for n in moved)
    if (report.layout or "").startswith("read "):
        words = (
            f"It is {report.layout}: channels come out in another order than they went in. "
            "Scores are those of the layout that it reads."
        )
        found.append(Finding(NOTE, words, "layouts"))
    elif moved and (report.is_rotation or mirrored == len(moved)):
        one = moved[0]
        words = (
            f"{len(moved)} of {len(report.pairs)} pairs come out in other places, such as "
            f"{report.pairs[one]} in {report.written[one]}. Scores are the same without."
        )
        if mirrored == len(moved):
            words = (
                f"{mirrored} of {len(report.pairs)} pairs are mirrored as well as turned: the two "
                "channels of each are exchanged, or one has its sign changed. Scores are the same "
                "without."
            )
        found.append(Finding(NOTE, words, "layouts"))
    in_place = np.eye(report.head_dim)[:, circuit.still] * (report.rest_factor or 0.0)
    if report.rest_factor is not None and np.abs(circuit.rest - in_place).max(initial=0.0) > 1e-6:
        words = (
            f"Channels that do not turn ({len(circuit.still)}) come out in other places, with "
            "other signs or mixed. Scores are the same without."
        )
        found.append(Finding(NOTE, words, "layouts"))
    return found


def direction(report: Report) -> Findings:
    """Say it where pairs turn clockwise, along several axes at once, or along one not at all."""
    found = []
    waves = report.inv_freq.reshape(len(report.pairs), -1)
    alike = one_proportion(report) is not None
    mixed, several = report.direction is None and not alike, (waves != 0).sum(axis=1) > 1
    if several.any() and report.direction is not None and not alike:
        words = f"{several.sum()} of {len(waves)} pairs turn along several axes at once."
        found.append(Finding(NOTE, words, "many-planes"))
    if mixed and several.any():
        words = "Pairs follow wave vectors of their own, in several axes at once: no one direction."
        found.append(Finding(NOTE, words, "many-planes"))
    elif mixed and waves.any():
        backwards = int((waves < 0).any(axis=1).sum())
        words = (
            f"{backwards} of {len(waves)} pairs turn clockwise, the others counter-clockwise, seen "
            "from their first channel; more than half a turn per position would look the same."
        )
        if (step := _even_step(waves)) is not None:
            top = abs(step) * (np.count_nonzero(waves, axis=0).max() - 1)
            words += (
                f" So it is here if speeds are evenly spaced, by {abs(step):.4g} rad from pair to "
                f"pair and over {top:.4g} rad in all: these frequencies lack whole turns."
            )
        found.append(Finding(LOOK, words, "layouts"))
    elif report.direction == -1:
        words = (
            "It turns clockwise, by minus the angle of the paper. Weights trained the other way "
            "need the second row of each pair negated."
        )
        found.append(Finding(NOTE, words, "linear-algebra"))
    for axis in np.flatnonzero(~waves.any(axis=0)) if waves.shape[1] > 1 else ():
        words = f"Nothing turns along axis {axis} of a position."
        if report.numbers in ROUNDED and report.inv_freq_error[:, axis].any():
            words = (
                f"No turn is seen along axis {axis} of a position: {report.numbers} may hide it."
            )
        found.append(Finding(LOOK, words, "many-planes"))
    return found


def proportion(report: Report) -> Findings:
    """Say it where all axes turn all pairs in one proportion."""
    if (parts := one_proportion(report)) is None:
        return []
    words = "All axes turn all pairs alike: "
    if not np.allclose(parts, 1.0, 0.0, 1e-3):
        told = " : ".join(f"{part:.4g}" for part in parts / np.abs(parts).min())
        words = f"All axes turn all pairs in one proportion, {told}: with these weights, "
    words += "points whose places have one sum share a rotation."
    return [Finding(LOOK, words, "many-planes")]


def one_proportion(report: Report) -> np.ndarray | None:
    """Return the proportion of the axes (A,) if all pairs follow multiples of one wave vector.

    None where several do, or one alone, or rounding hides it.
    """
    waves = report.inv_freq.reshape(len(report.pairs), -1)
    errors = report.inv_freq_error.reshape(waves.shape)
    fastest = int(np.abs(waves).sum(axis=1).argmax())
    one, lead = waves[fastest], int(np.abs(waves[fastest]).argmax())
    if len(waves) < 2 or np.count_nonzero(one) < 2:
        return None
    if (errors[fastest] > 0.01 * np.abs(one[one != 0]).min()).any():
        return None
    apart = np.abs(waves - np.outer(waves[:, lead] / one[lead], one))
    near = 4.0 * (errors + errors.max(axis=1, keepdims=True)) + 1e-6 * np.abs(one).max()
    return one / one[lead] if (apart <= near).all() else None


def rescales(report: Report, best: Explanation) -> bool:
    """Return whether a formula that is none of a plain series is known well enough to be named.

    By how much slow pairs are stretched is not, where 16 bits hide their speeds and no factor on
    cos and sin tells it.
    """
    speeds, errors = np.abs(report.inv_freq), report.inv_freq_error
    hidden = report.numbers in ROUNDED and bool((errors > HIDDEN * speeds).any())
    ramp = best.kind in ("llama3", "by_parts") or "attention_factor" in best.parameters
    return best.kind != "default" and not (hidden and ramp)


def one_base(series: list[list[Explanation]]) -> float | None:
    """Return the base of all axes if each has a plain series of its own; None otherwise."""
    firsts = [found[0] if found else None for found in series]
    plain = [one.base for one in firsts if one and one.kind == "default" and one.dim > 2]
    alike = len(plain) == len(series) > 1 and len(set(plain)) == 1
    return plain[0] if alike and all(one and one.made_in != "16 bits" for one in firsts) else None


def _even_step(waves: np.ndarray) -> float | None:
    """Return the one step from pair to pair, up to whole turns, of each axis; None if none."""
    steps = [np.diff(w[w != 0]) for w in waves.T]
    if min(len(step) for step in steps) < 3:
        return None
    off = (np.concatenate(steps) - steps[0][0] + np.pi) % (2.0 * np.pi) - np.pi
    first = (steps[0][0] + np.pi) % (2.0 * np.pi) - np.pi
    return float(first) if np.abs(off).max() < 1e-3 else None


def numbers(
    report: Report, series: list[list[Explanation]], made: Made | None, sizes: tuple[int, ...]
) -> Findings:
    """Say it where frequencies have no formula, several, one but for some pairs, or a wrong order.

    ``series`` holds the explanations of each axis, ``made`` is the `rounding` of angles, ``sizes``
    how many positions each axis has.
    """
    found = []
    if np.abs(report.inv_freq).max() < STILL:
        words = (
            f"No pair turns by more than {np.abs(report.inv_freq).max():.2g} rad a position: that "
            "is as good as nothing, or whole turns, which positions cannot tell."
        )
        return [Finding(LOOK, words, "many-planes")]
    waves = np.abs(report.inv_freq).reshape(len(report.pairs), -1)
    ranked = np.sort(waves[waves > 0])[::-1]
    best = report.explanations[0] if report.explanations else None
    short = min(sizes) < SHORT and not all(series) and _hidden(report, waves, series)
    if one_proportion(report) is not None:  # what turns along one axis turns along all
        short |= bool(((waves == 0) & waves.any(axis=0) & waves.any(axis=1, keepdims=True)).any())
    near = follows_but(waves[:, 0], report.inv_freq_error) if report.axes == 1 else None
    if near and (best is None or (best.made_in == "16 bits" and not _held_in(report))):
        base, off = near
        one = int(off.argmax())
        words = (
            f"Frequencies are those of base {base:.10g} but for {int(off.sum())} of {len(off)} "
            f"pairs: {report.pairs[one]} turns by {waves[one, 0]:.8g} a position instead of "
            f"{base ** (-one / len(off)):.8g}."
        )
        found.append(Finding(LOOK, words, "longer-contexts"))
    elif best is not None:
        found += _rounded(report, best, ranked, made) + _repeated(report, best, ranked)
        if best.kind != "default" and report.rescaling is None:
            words = f"These frequencies may be those of {best}, and of other factors: "
            words += f"{report.numbers} hides the speeds of slow pairs. Ask in float32, or farther."
            found.append(Finding(LOOK, words, "longer-contexts"))
        found += _at_rest(best, len(ranked)) + _hurried(report, best) + _late(report, best)
        found += _step(best)
    elif len(series) > 1 and any(series) and short:
        words = "Some pairs turn too slowly along a short axis for a formula to be told."
        found.append(Finding(NOTE, words, "many-planes"))
    elif one_base(series) is not None:
        names = ", ".join(str(e[0].dim) for e in series)
        words = f"Each axis has a series of base {report.base:.10g} over its own channels: {names}."
        found.append(Finding(NOTE, words, "many-planes"))
    elif len(series) > 1 and any(series):
        names = "; ".join(str(e[0]) if e else "none that I know" for e in series)
        hides = f"; {report.numbers} may hide one" if report.numbers in ROUNDED else ""
        words = f"The axes have series of their own: {names}{hides if not all(series) else ''}."
        found.append(Finding(LOOK, words, "many-planes"))
        cast = [str(e[0]) for e in series if e and e[0].made_in == "16 bits"]
        if cast and report.numbers not in ROUNDED:
            either = of_16_bits(made)
            words = f"The inverse frequencies{', or the angles,' if either else ''} are rounded to "
            words += f"16 bits: near {'; '.join(cast)}."
            found.append(Finding(WRONG, words, "precision"))
    elif series:
        searched = (
            "; one searched divisor per pair (LongRoPE) gives any" if report.axes == 1 else ""
        )
        turns = 2.0 * np.pi / report.wavelengths[np.isfinite(report.wavelengths)]
        words = "No formula that I know gives these frequencies, "
        words += f"{turns.max():.6g} to {turns.min():.6g}{searched}."
        if report.numbers in ROUNDED:
            words = f"I see no formula in these frequencies, {turns.max():.4g} to "
            words += f"{turns.min():.4g}, "
            words += f"where numbers have 16 bits: {report.numbers} may hide one. Ask in float32."
        found.append(Finding(LOOK, words, "longer-contexts"))
        told = (4.0 * report.inv_freq_error <= 2.0**-12 * np.abs(report.inv_freq)).sum()
        if told >= FEW and report.numbers not in ROUNDED and (held := _held_in(report)):
            words = f"Each of these frequencies is a number of {held}, as where they were cast with"
            found.append(Finding(LOOK, f"{words} the weights.", "precision"))
    rises = np.flatnonzero(np.diff(waves[:, 0]) > 0)
    if report.axes == 1 and report.layout and "blocks" not in report.layout and len(rises):
        a, b = rises[0], rises[0] + 1
        words = (
            f"Speeds do not fall from pair to pair: {report.pairs[a]} turns by {waves[a, 0]:.6g} a "
            f"position, {report.pairs[b]} by {waves[b, 0]:.6g}."
        )
        found.append(Finding(NOTE, words, "many-planes"))
    return found


def _hidden(report: Report, waves: np.ndarray, series: list[list[Explanation]]) -> bool:
    """Return whether rounding hides the speed of a pair, where no formula was found for its axis.

    To more than `HIDDEN` of it; of a pair that has none the axis is not known either.
    """
    errors = report.inv_freq_error.reshape(waves.shape).max(axis=1)
    told = np.zeros(len(waves), bool)
    for axis, found in zip(np.flatnonzero(waves.any(axis=0)), series, strict=False):
        told |= (waves[:, axis] > 0) & bool(found)
    return bool((errors > HIDDEN * waves.max(axis=1))[~told].any())


def _repeated(report: Report, best: Explanation, ranked: np.ndarray) -> Findings:
    """Say it where several pairs of one block turn at each speed, or all at one."""
    speeds = len(best.inv_freq())
    if report.axes == 1 < len(ranked) and np.ptp(ranked) <= 1e-6 * ranked[0]:
        words = (
            f"All {len(ranked)} pairs turn by {ranked[0]:.6g} rad a position: there is one speed."
        )
        return [Finding(LOOK, words, "many-planes")]
    if report.axes > 1 or "blocks" in (report.layout or "") or len(ranked) < 2 * speeds:
        return []
    words = (
        f"Each speed occurs {len(ranked) // speeds} times: the {len(ranked)} pairs turn at "
        f"{speeds} speeds only, those of {best}."
    )
    return [Finding(LOOK, words, "many-planes")]


def _step(best: Explanation) -> Findings:
    """Say it where Llama 3's rule has no ramp, which it was made for."""
    given = best.parameters
    if best.kind != "llama3" or given["low_freq_factor"] != given["high_freq_factor"]:
        return []
    words = "Llama 3's rule has a step here and no ramp, as where its low_freq_factor and "
    words += "high_freq_factor are exchanged."
    return [Finding(NOTE, words, "longer-contexts")]


def _at_rest(best: Explanation, turning: int) -> Findings:
    """Say it where a few pairs of a series stand still; a quarter or more may be meant."""
    rest = best.dim // 2 - turning
    if best.kind != "proportional" or not 0 < rest <= best.dim // 16:
        return []
    begins = best.parameters.get("factor", 1.0) == 1.0  # where it should
    verb = "stands" if rest == 1 else "stand"
    words = f"{rest} of {best.dim // 2} pairs{', the slowest,' * begins} {verb} still."
    return [Finding(LOOK, words, "many-planes")]


def _hurried(report: Report, best: Explanation) -> Findings:
    """Say it where all pairs turn faster than those of their base: no formula for contexts does."""
    times, coarse = 1.0 / best.parameters.get("factor", 1.0), report.numbers in ROUNDED
    if best.kind != "linear" or best.dim == 2 or times <= 1.0:
        return []
    near = 0.01 if coarse else 1e-5
    whole = round(times) > 1 and math.isclose(times, round(times), rel_tol=near)
    if coarse and not whole:
        return []
    told = round(times) if coarse else times
    words = f"Each pair turns {told:.6g} times as fast as base {best.base:.10g} has it"
    twice = {2: "twice", 3: "three times", 4: "four times"}.get(round(times)) if whole else None
    words += f", as where the rotation is done {twice}." if twice else "."
    return [Finding(LOOK, words, "longer-contexts")]


def _late(report: Report, best: Explanation) -> Findings:
    """Say it where all pairs are slower by a step of their own series, or by that of degrees."""
    if best.kind not in ("linear", "monotone") or best.dim == 2:
        return []
    near = 1e-4 if report.numbers in ROUNDED else 1e-5
    slower = 1.0 / float(best.inv_freq().max())
    words = ""
    for pairs, told in ((1, "one pair"), (0.5, "half a pair")):
        if math.isclose(slower, best.base ** (2.0 * pairs / best.dim), rel_tol=near):
            words = f"All pairs are slower by {slower:.6g}: the series of base {best.base:.10g} "
            words += f"begins {told} late."
    if math.isclose(slower, 180.0 / math.pi, rel_tol=near):
        words = f"All pairs are slower by {slower:.6g}, as where an angle is taken for degrees."
    return [Finding(LOOK, words, "many-planes")] if words else []


def _rounded(report: Report, best: Explanation, ranked: np.ndarray, made: Made | None) -> Findings:
    """Say it where the numbers fit a formula in 16 bits only, and are known better than that."""
    if best.made_in != "16 bits":
        return []
    speeds = np.abs(report.inv_freq).flatten()
    errors = report.inv_freq_error.flatten()[np.argsort(-speeds, kind="stable")][: len(ranked)]
    wanted = np.sort(best.inv_freq())[::-1]
    wanted = np.repeat(wanted, max(1, len(ranked) // len(wanted)))[: len(ranked)]
    apart = np.abs(ranked / wanted - 1.0)
    known = errors <= 1e-4 * ranked
    if not (known & (apart * ranked > 4.0 * errors)).any():
        return []
    off, where = float(apart[known].max()), "" if known.all() else " where they are known to 1e-4"
    if not (held := _held_in(report)):
        words = f"The inverse frequencies are near those of {best}, off by up to {off:.2g} of them"
        words += f"{where}."
        return [Finding(LOOK, words, "longer-contexts")]
    # at powers of two, where speeds are read, products lose what frequencies would
    products = of_16_bits(made)
    unit = FORMATS[report.numbers or "float64"]
    either = products and (report.angle_error or 0.0) > min(1e-3, 64.0 * unit)
    words = f"The inverse frequencies{', or the angles,' if either else ''} are rounded to {held}:"
    if products:  # and are known no better than that
        words += f" within {math.ceil(1000.0 * apart.max()) / 1000.0:.1%} of {best}."
    else:
        words += f" off by up to {off:.2%} from {best}{where}."
    if not either and (report.deviation or 0.0) <= PROMISE:
        words += " Scores still depend on the distance alone, and every one is wrong far out."
    return [Finding(WRONG, words, "precision")]


def of_16_bits(made: Made | None) -> bool:
    """Return whether products of position and frequency may have been made in 16 bits."""
    return made is not None and made[0] == "product" and made[1] in ROUNDED


def _held_in(report: Report) -> str | None:
    """Return the format of few digits that holds each frequency, as well as it is known."""
    speeds, near = np.abs(report.inv_freq), 4.0 * report.inv_freq_error
    digits, power = np.frexp(speeds)
    held = {name: rounded(speeds, name) for name in ("bfloat16", "float16")}
    held["TF32"] = np.ldexp(np.round(digits * 2.0**11) / 2.0**11, power)
    for name, values in held.items():
        if (np.abs(values - speeds) <= near + 1e-6 * speeds).all():
            return "16 bits" if name in ROUNDED else f"11 binary digits ({name})"
    return None


def origin(circuit: Circuit, waves: np.ndarray, unit: float) -> Findings:
    """Say it where position 0 is turned already."""
    mirrored = (circuit.reads == circuit.writes[:, ::-1]).all(axis=1)  # these have no turn there
    if mirrored.all():
        return []
    phase, waves = turn_of(circuit.blocks[0])[~mirrored], waves[~mirrored]
    loose = max(1e-6, 4.0 * unit)
    fastest = int(np.abs(waves).max(axis=1).argmax())
    if np.abs(phase).max() < 1e-3 or not waves[fastest].any():
        return []
    words = f"Position 0 is turned already, by up to {np.abs(phase).max():.3g} rad"
    starts = []
    if waves.shape[1] == 1:  # up to whole turns, of which some are tried
        speed = waves[fastest, 0]
        found = (phase[fastest] + 2.0 * np.pi * np.arange(-1000, 1001)) / speed
        few = [p for p in found[980:1021].tolist() if p]
        few = [round_number(p, max(1e-6, abs(loose / speed / p))) for p in few]
        tried = np.concatenate((np.round(found), few))
        off = np.abs(np.exp(1j * phase) - np.exp(1j * np.outer(tried, waves[:, 0]))).max(axis=1)
        starts = tried[off < loose + 4.0 * FORMATS["float32"] * np.abs(tried * speed)].tolist()
    if starts:
        start = min(starts, key=lambda p: (round(abs(p)), p % 1 != 0))  # whole, if it may be
        words = f"Position 0 is turned as position {start:g} should be: it counts from there"
    elif np.abs(phase - np.pi / 2).max() < loose and (circuit.reads == circuit.writes).all():
        words += ", a quarter turn, as where cos and sin are exchanged"
    return [Finding(NOTE, f"{words}.", "many-planes")]


def false_start(count: int, change: float) -> Finding:
    """Say that the first positions are turned otherwise than those after them."""
    who = f"The first {count} positions are" if count > 1 else "Position 0 is"
    words = (
        f"{who} not turned as those after need: the score of positions {count - 1} and {count} "
        f"changes by up to {change:.2g} when both move by 1. So it is where rows of a table below "
        "0 are its last, as left of padding, or where positions start late. What is said here "
        f"counts from position {count} on."
    )
    return Finding(WRONG, words, "attention", partial=True)


def no_speed(
    report: Report, angles: np.ndarray, positions: np.ndarray, here: int, there: int
) -> Findings:
    """Say that the angle at twice a position is not twice that at it."""
    one, two = angles[here], angles[there]
    apart = np.abs((two - 2.0 * one + np.pi) % (2.0 * np.pi) - np.pi)
    pair = int(apart.argmax())
    words = (
        "Angles do not grow in proportion to the position: from position 0, pair "
        f"{report.pairs[pair]} is turned by "
        f"{one[pair] + 0.0:.4g} rad at {_at(positions[here])} and by {two[pair] + 0.0:.4g} at "
        f"{_at(positions[there])}."
    )
    return [Finding(WRONG, words, "many-planes")]


def angles(
    report: Report, error: np.ndarray, positions: np.ndarray, waves: np.ndarray, made: Made | None,
    unit: float, may_end: bool = False, starts: bool = False,
) -> Findings:  # fmt: skip
    """Say it where angles miss position times frequency by ``error`` (T,), as ``made`` or not.

    ``may_end`` says that a table may end where positions seem to be rounded, ``starts`` that angles
    of float32 may be far larger than they seem.
    """
    mixed = (positions != 0).sum(axis=1) > 1
    along, between = error[~mixed].max(initial=0.0), error[mixed].max(initial=0.0)
    size = (np.abs(positions) @ np.abs(waves).T).max(axis=1)  # of what float32 may have rounded
    apart = (error - 2.0 * FORMATS["float32"] * size)[mixed].max(initial=0.0)
    if apart > max(1e-5, 64.0 * unit) + 2.0 * along:
        words = (
            "Axes do not add: the rotation at a point is not the product of those along the axes, "
            f"by up to {between:.2g} rad."
        )
        return [Finding(WRONG, words, "layouts")]
    worst = int(error.argmax())
    lost = error[worst] > max(1e-3, 16.0 * unit)
    if not (lost and report.is_rotation and (report.shared_position is None or not made)):
        return []
    off = f"at position {_at(positions[worst])} the angle is off by {error[worst]:.2g} rad from "
    off += "position times frequency"
    if made is None:
        rest = float(np.median(error))
        then = "more than the rounding of that product explains"
        if rest < error[worst] / 64.0 and report.shared_position is None:
            then = f"at half of those asked by at most {rest:.1g}"
        words = f"Angles are not those of a frequency: {off}, {then}."
        if starts and error[worst] < ANGLE:
            words = f"Angles lose their digits: {off}, as in float32 where position 0 is far out, "
            words += "or where what a position stands for was rounded."
            return [Finding(LOOK, words, "precision")]
        return [Finding(WRONG, words, "many-planes")]
    what, to = made
    divided = "" if (factor := divisor(report)) == 1.0 else f" divided by {factor:.6g}"
    words = f"Angles lose their digits: {off}, as if {HOW[what].format(divided)} {to}"
    if what == "product" and to in ROUNDED and report.direction is None and report.axes == 1:
        words += ", or in float32 at speeds that lack whole turns"
    words += ", or a table ended before it." if may_end else "."
    # what 16 bits round of cos and sin themselves is less than that
    grave = what == "positions" or (to in ROUNDED and error[worst] > ANGLE)
    return [Finding(WRONG if grave else NOTE, words, "precision")]


def rounding(
    off: np.ndarray, positions: np.ndarray, waves: np.ndarray, unit: float, starts: bool = False,
    divisor: float = 1.0,
) -> Made | None:  # fmt: skip
    """Return what may be rounded, and to which format, if angles miss exact ones by ``off`` (T, n).

    None where nothing may: beside most powers of two rounding shows, and a wrong row at its own.
    ``starts`` says that position 0 is turned: products may be larger than they seem. Positions may
    be divided by ``divisor`` first.
    """
    exact, error = positions @ waves.T, np.abs(off).max(axis=1)
    size = np.maximum((np.abs(positions) @ np.abs(waves).T).max(axis=1), 1.0)
    start = 4.0 * float(error[positions.sum(axis=1) <= 16].max()) if starts else 0.0
    start = start if start < COARSE else 0.0
    part, worst = (np.maximum(error - 4.0 * unit - start, 0.0) / size).max(), int(error.argmax())
    times = {"float32": 64.0}  # angles may hold whole turns, which speeds do not
    to = next((f for f in reversed(FORMATS) if part <= times.get(f, 2.0) * FORMATS[f]), "bfloat16")
    if to == "float64":
        return "product", "float32" if start and error[worst] > max(1e-6, 64.0 * unit) else to
    held = rounded(positions / divisor, to) * divisor
    if np.isfinite(held).all():
        moved = (held - positions) @ waves.T
        if np.abs(np.exp(1j * off) - np.exp(1j * moved)).max() <= error[worst] / 8.0:
            return "positions", to
    least = np.abs(rounded(exact, to) - exact).max(axis=1)
    least = np.minimum(least, error[worst] / size[worst] * size)
    others = (np.bitwise_count(positions).sum(axis=1) > 1) & (np.arange(len(off)) != worst)
    others &= least > max(8.0 * unit, 1e-3 * error[worst])
    shown = (error > 2.0 * unit + least / 8.0)[others]
    like = shown.mean() > 0.25 if len(shown) else len(off) < 8
    like |= error[worst] < 64.0 * max(unit, float(np.median(error)))  # or what hides it
    # as errors of a product do far out
    grown = min(1.0, FORMATS[to] * size.max()) / (4.0 if to == "bfloat16" else 8.0)
    near = error[size <= size.max() / 8.0]  # small, where errors grow with the position
    grows = error[worst] >= grown or float(near.max(initial=0.0)) <= error[worst] / 2.0
    like &= to not in ROUNDED or error[worst] <= max(1e-3, 16.0 * unit) or grows
    return ("product", to) if like and part <= 2.0**-7 else None


def divisor(report: Report) -> float:
    """Return the factor of an interpolation, by which positions may have been divided."""
    kind, parameters = report.rescaling or ("", {})
    return float(parameters["factor"]) if kind == "linear" else 1.0


def promise(report: Report, unit: float) -> Findings:
    """Say it where a score changes under a common shift by more than wrong angles account for."""
    coarse = report.numbers in ROUNDED  # then angles miss by what cos and sin are rounded
    angle = max(0.0, (report.angle_error or 0.0) - 4.0 * unit * coarse)
    limit = max(1e-9, 8.0 * angle + (12.0 if coarse else 64.0) * unit)
    deviation = report.deviation or 0.0
    if not report.is_rotation or report.deviation_at is None or deviation <= limit:
        return []
    m, n, s = map(_at, report.deviation_at)
    change = deviation * (report.attention_factor or 1.0) ** 2
    words = (
        f"The promise is broken: the score of positions {m} and {n} changes by up to "
        f"{change:.2g} when both move by {s}."
    )
    return [Finding(WRONG, words, "why-position")]


def coarse_table(report: Report, circuit: Circuit, ask: Asker, positions: np.ndarray) -> Findings:
    """Say it where numbers have 16 bits although x has more: all, some channels', or a table's."""
    if ask.type == "bfloat16" or ask.type == report.numbers == "float16":  # x has no more
        return []
    if report.numbers not in ROUNDED:
        return _coarse_rest(circuit, ask, positions)
    if circuit.change > 16.0 * FORMATS[report.numbers]:  # worse than that, as was said
        return []
    scale = report.attention_factor or 1.0
    what = _what(ask, positions, report, lambda d: format_before(d, scale) in ROUNDED)
    words = (
        f"{what} rounded to {report.numbers} although x is {ask.kind}: numbers up to 1 are off by "
        f"up to {ROUNDED[report.numbers]:.2g}, near 0 as near the end."
    )
    return [Finding(WRONG, words, "precision")]


def _coarse_rest(circuit: Circuit, ask: Asker, positions: np.ndarray) -> Findings:
    """Say it where channels that do not turn come out in 16 bits, and others in more."""
    still = np.setdiff1d(np.arange(ask.head_dim), np.unique(circuit.writes))
    digits = _of_many_digits(ask, positions) if len(still) else None
    if digits is None:
        return []
    factors = np.abs(circuit.rest).max(axis=1, initial=0.0)  # of each channel that comes out
    held = [format_before(digits[..., c], float(factors[c])) for c in still]
    few = [n for n, to in enumerate(held) if to in ROUNDED and digits[..., still[n]].any()]
    if not few:
        return []
    words = f"What comes out of {len(few)} of the {len(still)} channels that do not turn is "
    words += f"rounded to {held[few[0]]} although x is {ask.kind}."
    return [Finding(WRONG, words, "precision")]


def shared(report: Report, resolved: bool) -> Findings:
    """Say from where on neighbours share a rotation; it is grave where x could tell them apart."""
    if (p := report.shared_position) is None:
        return []
    words = (
        f"Position {p:,} shares its rotation with {p - 1:,}: keys there cannot be told apart by "
        "their positions."
    )
    return [Finding(WRONG if resolved else LOOK, words, "precision")]


def misfits(wrong: np.ndarray, alone: int, along: str) -> Findings:
    """Say which positions, asked in one call from 0, are not turned as frequencies say.

    ``alone`` is how many of them were, asked alone, 0 if any was not; ``along`` says which axis.
    """
    if not wrong.any():
        return []
    if alone:
        words = (
            f"In a call of {len(wrong):,} positions, {int(wrong.sum())} get other rotations than "
            f"in one of {alone}: it depends on how long the call is. What is said here is about "
            "short calls."
        )
        return [Finding(LOOK, words, "longer-contexts", partial=True)]
    count = int(wrong.sum())
    words = (
        f"{count} of the positions below {len(wrong):,}{along} {'are' if count > 1 else 'is'} not "
        f"rotated as these frequencies say; the first is {int(wrong.argmax()):,}."
    )
    return [Finding(WRONG, words, "attention")]


def misfit_points(wrong: np.ndarray, drawn: int) -> Findings:
    """Say which of some points between the axes are not turned as wave vectors say."""
    if not len(wrong):
        return []
    words = (
        f"{len(wrong)} of {drawn} points drawn between the axes, such as {_at(wrong[0])}, are not "
        "rotated as these frequencies say."
    )
    return [Finding(WRONG, words, "many-planes")]


def far_company(far: np.ndarray, wrong: np.ndarray, along: str) -> Findings:
    """Say which positions far out, right alone, are not turned so where they are asked together."""
    if not wrong.any():
        return []
    words = (
        f"The rotation of a position depends on what else is in the call: {int(wrong.sum())} of "
        f"{len(far)} far positions, such as {far[wrong.argmax()]:,}{along}, get other rotations "
        "together than alone. What is said here is how they turn alone."
    )
    return [Finding(LOOK, words, "longer-contexts", partial=True)]


def misfit(position: int, wrong: np.ndarray, along: str) -> Findings:
    """Say that a position far out is not turned as frequencies say, and how many after it."""
    words = f"Position {position:,}{along} is not rotated as these frequencies say"
    if len(wrong):
        words += f", and neither are {int(wrong.sum())} of the {len(wrong)} after it"
    return [Finding(WRONG, f"{words}.", "attention")]


def factor(report: Report, unit: float) -> Findings:
    """Say it where vectors come out longer or shorter."""
    found = []
    scale, shared = report.attention_factor or 1.0, ""
    if abs(scale - 1.0) > max(8.0 * unit, 1e-7):
        digits = 3 if report.numbers in ROUNDED else 8  # as many as are known
        words = f"cos and sin carry a factor of {scale:.{digits}g}: scores grow by its square, "
        words += f"{scale**2:.{min(digits, 6)}g}."
        words += (shared := _shared_scale(report, scale))
        found.append(Finding(NOTE, words, "longer-contexts"))
    kind, parameters = report.rescaling or ("", {})
    if kind == "yarn" and "attention_factor" in parameters and not shared:
        own = 0.1 * math.log(parameters["factor"]) + 1.0
        words = f"YaRN's own factor on cos and sin would be {own:.6g} for a stretch by "
        words += f"{parameters['factor']:.6g}; here it is {scale:.6g}"
        if report.numbers in ROUNDED:  # which hide by how much it stretches
            words = f"YaRN's own factor on cos and sin would be some {own:.2g} for a stretch by "
            words += f"some {parameters['factor']:.2g}; here it is {scale:.3g}"
        equal = ", as where it is set to 1, mscale and mscale_all_dim are equal, or it is lost"
        words += f"{equal if abs(scale - 1.0) <= max(8.0 * unit, 1e-7) else ''}."
        found.append(Finding(NOTE, words, "longer-contexts"))
    return found


def rest(report: Report, circuit: Circuit, unit: float) -> Findings:
    """Say it where channels that do not turn come out longer, shorter, or not at all."""
    factor = 1.0 if report.rest_factor is None else report.rest_factor
    if not len(circuit.still) or abs(factor - 1.0) <= max(8.0 * unit, 1e-7):
        return []
    if factor <= max(8.0 * unit, 1e-7):
        words = f"The {len(circuit.still)} channels that do not turn are lost: nothing of them "
        words += "comes out."
        return [Finding(WRONG, words, "layouts")]
    words = f"Channels that do not turn are multiplied by {factor:.8g}."
    return [Finding(NOTE, words, "longer-contexts")]


def _shared_scale(report: Report, scale: float) -> str:
    """Say it where the factor holds what attention divides scores by, half on each side."""
    stretch = (report.rescaling or ("", {}))[1].get("factor", 1.0)
    own = scale * report.head_dim**0.25
    for known in {1.0, 0.1 * math.log(stretch) + 1.0}:
        if math.isclose(own, known, rel_tol=1e-5):
            power = f"{report.head_dim}^(-1/4)"
            return f" It is {own:.6g} times {power}: on q and k, 1/sqrt(head_dim) of a score."
    return ""


def silent_end(end: int, past: str) -> Findings:
    """Say that a table ends and nothing tells so."""
    words = f"Its table ends at position {end:,} without a word: after it, {past}."
    if past.startswith("angles"):
        words = f"It turns by its frequencies to position {end:,} only: after it, {past}."
    return [Finding(WRONG, words, "attention")]


def _at(position: np.ndarray | list[int]) -> str:
    """Return a position in words."""
    numbers = [f"{int(p):,}" for p in position]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"
