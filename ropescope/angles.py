"""Angle = position x frequency, up to the table's end; frequencies = a published formula."""

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .formulas import Formula, fit_axes, name_layout
from .operators import Structure, along, by_doubling, powers_of_two
from .precision import DIGITS, HALF, ROUGH, Noise, synthesize, wrapped
from .preconditions import Measured
from .probe import ProbeError, place_of

if TYPE_CHECKING:
    from .report import Report
    from .study import Study

DENSE = 1024
"""Below it, every position is probed."""

VISIBLE = 1e-3
"""Radians below which lost digits are not worth a word."""

FAR_START = 2.0**19
"""Where position 0 may be, if its angle fits no position near."""

WHOLE_TURNS = 100.0 * np.pi
"""Radians per position that frequencies may lack, where they point both ways."""


@dataclass(eq=False)
class Samples:
    """Angles of pairs against position 0, (S, n), at positions (S, axes), from several calls.

    ``broken`` marks samples whose lengths, or channels that do not rotate, are others than at 0;
    ``shared`` those whose output equals that of the sample before, one position earlier.
    """

    positions: np.ndarray
    angles: np.ndarray
    broken: np.ndarray
    shared: np.ndarray

    @classmethod
    def joined(cls, *parts: "Samples") -> "Samples":
        """Return the samples of several calls one after the other."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


class Angles:
    """The angles of one structure: what they are, and whether more calls agree with them."""

    def __init__(
        self, study: "Study", report: "Report", found: Measured, structure: Structure
    ) -> None:
        self.study, self.report, self.found, self.structure = study, report, found, structure
        self.test, self.axes = found.test, len(study.sizes)
        self.angles = structure.angles()
        self.noise = found.noise
        self.row = {tuple(p): t for t, p in enumerate(found.positions.tolist())}

    def read(self) -> "Report":
        """Return the report with frequencies and all that follows from them."""
        per_axis = [self._frequencies(axis, size) for axis, size in enumerate(self.study.sizes)]
        if any(one is None for one in per_axis):
            return self.report
        waves, errors = (np.stack(part, axis=-1) for part in zip(*per_axis, strict=True))
        self.waves, self.errors = waves, errors
        self._directions()
        self._name()
        self._origin()
        self._compare()
        return self.report

    # ---- frequencies -------------------------------------------------------------------------

    def _frequencies(self, axis: int, size: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return frequencies along an axis and their errors, (n,); None where none are seen."""
        powers = powers_of_two(size)
        places = [tuple(p) for p in along(axis, self.axes, powers).tolist()]
        found = self.angles[[self.row[p] for p in places]]
        value = self.noise.value
        w, error, steps = by_doubling(found, 2.0 * value)
        if steps < len(powers) and value < VISIBLE:  # whole turns that float32 rounds
            rough = by_doubling(found, 3.0 * VISIBLE)
            if rough[2] == len(powers):
                (w, error, steps), value = rough, VISIBLE
        last = 2.0 ** (steps - 1)
        off = np.abs(wrapped(found[:steps] - np.outer(powers[:steps], w))).max(axis=0)
        error = error + (value + 8.0 * np.maximum(off - value, 0.0)) / last
        doubled = np.abs(found[1:steps] - 2.0 * found[: steps - 1]) <= np.abs(found[1:steps]) / 4.0
        moves = doubled.all(axis=0) & (steps > 2) & (found[0] != 0)
        w = np.where((np.abs(w) <= value / 4.0 / last) & ~moves, 0.0, w)
        if steps < len(powers) and (steps == 1 or not w.any()):
            here, there = (self.row[places[k]] for k in (steps - 1, steps))
            apart = np.abs(wrapped(self.angles[there] - 2.0 * self.angles[here]))
            pair = int(apart.argmax())
            values = {
                "pair": self.report.pairs[pair], "one": self.angles[here, pair] + 0.0,
                "two": self.angles[there, pair] + 0.0,
                "here": place_of(places[steps - 1]), "there": place_of(places[steps]),
            }  # fmt: skip
            self.test("proportional", apart[pair], 2.0 * self.noise.value, **values)
            self._relative(0.0)
            return None
        return w, error

    def _directions(self) -> None:
        """Fill in direction and frequencies; test which way and along which axes pairs rotate."""
        waves, report = self.waves, self.report
        signs = set(np.sign(waves[waves != 0]).astype(int).tolist())
        direction = signs.pop() if len(signs) == 1 else None
        count = {"pairs": len(waves)}
        lines = np.linalg.svd(waves, compute_uv=False)
        fastest = waves[np.abs(waves).max(axis=1).argmax()]
        noise = np.linalg.norm(self.errors) + 1e-6 * lines[0]
        apart = len(waves) < 2 or np.count_nonzero(fastest) < 2 or lines[1] > 4.0 * noise
        parts = " : ".join(f"{v:.4g}" for v in fastest / np.abs(fastest).max())
        self.test("axes apart", not apart, parts=parts)
        several = int(((waves != 0).sum(axis=1) > 1).sum())
        self.test("one axis for each pair", several if apart else 0, count=several, **count)
        if direction is None and waves.any() and not several:
            clockwise = int((waves < 0).any(axis=1).sum())
            self.test("one direction", clockwise, count=clockwise, **count)
            self.noise = replace(self.noise, turns=WHOLE_TURNS)
        self.test("counter-clockwise", direction == -1)
        for axis in np.flatnonzero(~waves.any(axis=0)) if self.axes > 1 else ():
            self.test("axis used", 1.0, axis=axis)
        shape = (len(waves),) if self.axes == 1 else waves.shape
        self.report = replace(
            report,
            direction=direction,
            inv_freq=(waves * (direction or 1) + 0.0).reshape(shape),
            inv_freq_error=self.errors.reshape(shape),
        )

    # ---- a formula ---------------------------------------------------------------------------

    def _name(self) -> None:
        """Find the formula of the frequencies, and test what is unusual about it."""
        report, waves = self.report, np.abs(self.waves)
        self.series: list[list[Formula]] = []
        if not self.test("fast enough", waves.max() < 1e-9, fastest=waves.max()):
            self.noise = replace(self.noise, turns=WHOLE_TURNS)
            return
        scale = report.attention_factor or 1.0, self.found.noise.value / 2.0
        span = name_layout(self.structure.inputs, self.structure.outputs)[1]
        series = fit_axes(waves, self.errors, report.head_dim, span, scale)
        alike = len({str(found[:1]) for found in series}) == 1
        best = series[0][0] if alike and series[0] else None
        self.series = series
        self._explain(best)
        self._unnamed(any(series))

    def _explain(self, best: Formula | None) -> None:
        """Fill in base and rescaling of one formula, or say what those of the axes are."""
        report, series, axes = self.report, self.series, self.axes
        waves = np.abs(self.waves)
        plain = {found[0].base if found and _plain(found[0]) else None for found in series}
        if best is not None:
            named = best.kind != "default" and self._factor_known(best)
            rescaling = (best.kind, best.parameters) if named else None
            base = best.base if best.dim > 2 else None  # a single pair has none
            self.report = replace(report, base=base, rescaling=rescaling, formulas=tuple(series[0]))
            self._unusual(best, np.sort(waves[waves > 0])[::-1])
        elif len(series) == axes > 1 and len(plain) == 1 and None not in plain:
            (base,) = plain
            widths = ", ".join(str(found[0].dim) for found in series)
            self.report = replace(report, base=base)
            self.test("one series", 1.0, base=base, widths=widths)
        elif any(series):
            names = "; ".join(str(found[0]) if found else "none known" for found in series)
            self.test("one formula", 1.0, names=names)

    def _factor_known(self, best: Formula) -> bool:
        """Test whether low precision leaves open by how much slow pairs are stretched."""
        hidden = self.found.numbers in HALF and (self.errors > 0.05 * np.abs(self.waves)).any()
        ramp = best.kind in ("llama3", "by_parts") or "attention_factor" in best.parameters
        values = {"formula": best, "numbers": self.found.numbers}
        return self.test("factor known", bool(hidden and ramp), **values)

    def _unusual(self, best: Formula, ranked: np.ndarray) -> None:
        """Test what formulas for longer contexts do not do: repeat, hurry, stand still."""
        count, pairs = len(best.inv_freq()), len(ranked)
        if self.axes == 1 and "blocks" not in (self.report.layout or ""):
            times = pairs // max(count, 1)
            values = {"times": times, "pairs": pairs, "count": count}
            alike = pairs > 1 and np.ptp(ranked) <= 1e-6 * ranked[0]
            values |= {"times": pairs, "count": 1} if alike else {}
            self.test("distinct frequencies", values["times"], 1.0, **values)
        fixed = best.dim // 2 - pairs
        few = best.kind == "proportional" and 0 < fixed <= best.dim // 16
        self.test("all pairs", fixed if few else 0, count=fixed, pairs=best.dim // 2)
        self._usual_factor(best)

    def _usual_factor(self, best: Formula) -> None:
        """Test whether all pairs are slower, or faster, by what a mistake leads to."""
        if best.kind in ("linear", "monotone") and best.dim > 2:
            faster, few_digits = float(best.inv_freq().max()), self.found.numbers in HALF
            known = {
                np.deg2rad(1.0): "angles are taken for degrees",
                best.base ** (-2.0 / best.dim): "the series begins one pair late",
                best.base ** (-1.0 / best.dim): "the series begins half a pair late",
                **{float(n): f"the rotation is applied {n} times" for n in (2, 3, 4)},
            }
            near = 0.01 if few_digits and faster > 1.0 else 1e-4
            why = [f", as where {known[k]}" for k in known if abs(faster / k - 1.0) < near]
            odd = bool(why) or (faster > 1.0 and not few_digits)
            self.test("usual factor", odd, times=faster, base=best.base, why="".join(why[:1]))

    def _unnamed(self, known: bool) -> None:
        """Test whether a formula is known, and whether frequencies fall from pair to pair."""
        w, numbers = np.abs(self.waves), self.found.numbers
        if not known:
            speed = 2.0 * np.pi / self.report.wavelengths[np.isfinite(self.report.wavelengths)]
            hidden = f"; {numbers} may hide one: probe in float32" if numbers in HALF else ""
            self.test("formula", 1.0, high=speed.max(), low=speed.min(), hidden=hidden)
        if self.axes == 1 and self.report.layout and "blocks" not in self.report.layout:
            rises = np.flatnonzero(np.diff(w[:, 0]) > 0)
            k, last = (int(rises[0]) if len(rises) else 0), len(w) - 1
            low, high = (self.report.pairs[i] for i in (k, min(k + 1, last)))
            values = {"one": low, "two": high, "a": w[k, 0], "b": w[min(k + 1, last), 0]}
            self.test("falling frequencies", len(rises), **values)

    def _exact(self) -> np.ndarray | None:
        """Return the waves of the formulas, matched to the pairs by size; None without them."""
        exact, axes = np.zeros_like(self.waves), self.axes
        merged = len(self.series) == 1
        for axis, found in enumerate(self.series):
            mine = np.ones(len(exact), bool) if merged else self.waves[:, axis] != 0
            w = np.abs(self.waves[mine]).max(axis=1)
            made = np.sort(found[0].inv_freq())[::-1] if found else w[:0]
            if not len(made) or len(w) % len(made):
                return None
            ranked = np.empty(len(w))
            ranked[np.argsort(-w, kind="stable")] = np.repeat(made, len(w) // len(made))
            signs = np.sign(self.waves[mine])
            exact[mine] = signs * ranked[:, None] if merged else exact[mine]
            if not merged:
                exact[mine, axis] = signs[:, axis] * ranked
        return exact if len(self.series) in (1, axes) and self.series else None

    # ---- where it starts ---------------------------------------------------------------------

    def _origin(self) -> None:
        """Test whether position 0 is rotated, and find the position that it is rotated like."""
        structure, self.start = self.structure, 0.0
        mirrored = (structure.inputs == structure.outputs[:, ::-1]).all(axis=1)
        phases, waves, errors = (
            each[~mirrored] for each in (structure.phases, self.waves, self.errors)
        )
        limit = max(VISIBLE, 2.0 * self.noise.value)
        residual = float(np.abs(phases).max(initial=0.0))
        how = ""
        if residual > limit and (found := _start_of(phases, waves, errors, self.noise)) is not None:
            self.start, how = found, f": it counts from position {found:g}"
            self.noise = replace(self.noise, start=abs(found))
        elif residual > limit:
            quarter = bool(np.abs(phases - np.pi / 2.0).max() < limit)
            how = ", a quarter turn in each pair, as where cos and sin are exchanged" * quarter
            far = FAR_START if self.found.numbers != "float64" else 0.0
            self.noise = replace(self.noise, start=far)
        self.test("origin", residual, limit, how=how)

    # ---- comparison --------------------------------------------------------------------------

    def _compare(self) -> None:
        """Compare every angle with position times frequency."""
        samples, (inner, outer) = self._grid(), self.structure.sides
        dense = self.found.predicts and self.structure.change < ROUGH
        if dense and (inner <= outer or self.report.is_rotation):
            samples = Samples.joined(samples, *self._more())
        off, limit = self._errors(samples)
        bad = (off > limit).any(axis=1) | samples.broken
        made = self._synthesize(samples, off, limit)
        if made is None and bad.any() and not self._chained(samples, off):
            self._faults(samples, off.max(axis=1), bad)
            return
        worst = int(off.max(axis=1).argmax())
        self._precision(samples, off, made)
        if made and made[0] != "frequencies":
            exact = self._exact()
            if exact is not None:
                self._set_waves(exact, made[1])
                off, _ = self._errors(samples)
                worst = int(off.max(axis=1).argmax())
        error = float(off[worst].max())
        self.report = replace(
            self.report,
            angle_error=error,
            angle_error_at=int(samples.positions[worst].max()),
            shared_position=self._shared(samples),
        )
        if made is None or made[0] == "frequencies":
            place = place_of(samples.positions[worst])
            self.test("exact angles", error, max(VISIBLE, 4.0 * self.noise.value), place=place)
        self._relative(error)

    def _grid(self) -> Samples:
        """Return the angles of the operators as samples."""
        none = np.zeros(len(self.angles), dtype=bool)
        return Samples(self.found.positions, self.angles, none, none)

    def _more(self) -> list[Samples]:
        """Return samples of every position below 1,024 along each axis, of some far, and between.

        A call that fails gives none, and a hypothesis that does not hold.
        """
        sizes = self.study.sizes
        calls = []
        for axis, size in enumerate(sizes):
            calls.append(along(axis, self.axes, np.arange(min(DENSE, size))))
            powers = [p for p in powers_of_two(size) if p >= DENSE]
            far = {q for p in powers for q in (p, p + 1, 3 * p // 2, 2 * p - 1, size - 1)}
            if inside := sorted(q for q in far if q < size):
                calls.append(along(axis, self.axes, [0, *inside]))
        if self.axes > 1:
            drawn = np.random.default_rng(0).integers(0, sizes, (255, self.axes))
            calls.append(np.concatenate((0 * drawn[:1], drawn, np.array([sizes]) - 1)))
        found = []
        for call in calls:
            try:
                found.append(self._sample(call))
            except ProbeError as error:
                self.found.table.append(self.study.locate(call, error))
        return found

    def _errors(self, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much angles miss position times frequency, (S, n), and what may be."""
        off = np.abs(wrapped(samples.angles - samples.positions @ self.waves.T))
        limit = self.noise.angles(samples.positions, self.waves)
        return off, limit + np.abs(samples.positions) @ self.errors.T

    def _chained(self, samples: Samples, off: np.ndarray) -> bool:
        """Return whether a running product in float32 explains the angles, and take its noise.

        As in ggml: the angle of a pair is that of the one before times a constant, so the last is
        rounded as often as there are pairs.
        """
        if self.found.numbers == "float64" or samples.broken.any():
            return False
        noise = replace(self.noise, angle=max(self.noise.angle, 2.0**-24 * len(self.waves)))
        limit = noise.angles(samples.positions, self.waves)
        limit += np.abs(samples.positions) @ self.errors.T
        if not (off <= limit).all():
            return False
        self.noise = noise
        return True

    def _sample(self, positions: np.ndarray) -> Samples:
        """Return samples from one call: the first channel of each pair is 1, fixed ones too."""
        structure = self.structure
        x = np.zeros(self.report.head_dim)
        x[structure.inputs[:, 0]] = x[structure.fixed] = 1.0
        y = self.study.probe(x[None], positions)[0]
        z = y[:, structure.outputs] @ np.array([1.0, 1j])
        turn = z * z[0].conj() / np.abs(z[0]) ** 2
        away = np.setdiff1d(np.arange(len(x)), structure.outputs)
        limit = 2.0 * self.noise.lengths
        broken = (np.abs(np.abs(turn) - 1.0) > limit).any(axis=1)
        change = np.abs(y[:, away] - y[0, away])
        broken |= (change > limit * max(1.0, np.abs(y[0]).max())).any(axis=1)
        next_to = (np.abs(np.diff(positions, axis=0)).sum(axis=1) == 1) & (self.axes == 1)
        turning = y[:, structure.outputs.flatten()]
        shared = np.append(False, next_to & (turning[1:] == turning[:-1]).all(axis=1))
        return Samples(positions, np.angle(turn), broken, shared)

    def _synthesize(
        self, samples: Samples, off: np.ndarray, limit: np.ndarray
    ) -> tuple[str, str] | None:
        """Return which stage is rounded to which format; None where it is no rounding."""
        exact = self._exact()
        near, divisor = bool(self._low_precision()), self._divisor()
        best: tuple[float, tuple[str, str] | None] = float((off <= limit).all(axis=1).mean()), None
        at = samples.positions
        for waves in [self.waves] if exact is None else [exact, self.waves]:
            made_so = synthesize(samples.angles, at, waves, self.noise, self.start, divisor)
            for part, made in (one for one in made_so if near or one[1][0] != "frequencies"):
                cast = made[0] == "frequencies" and best[1] is None and part > 0.98
                if cast or part > best[0] + 0.005:
                    best = part, made
        return best[1] if best[0] > 0.98 else None

    def _divisor(self) -> float:
        """Return the factor of an interpolation, by which positions may have been divided."""
        kind, given = self.report.rescaling or ("", {})
        return float(given["factor"]) if kind == "linear" else 1.0

    def _low_precision(self) -> set[str]:
        """Return the formulas that hold to 16 bits alone."""
        best = [found[0] for found in self.series if found]
        return {str(one) for one in best if one.precision == "16 bits"}

    def _set_waves(self, waves: np.ndarray, name: str) -> None:
        """Take the formula's frequencies, which were rounded only together with positions."""
        error = np.maximum(self.errors, 2.0 ** -DIGITS[name] * np.abs(waves))
        self.waves, self.errors, shape = waves, error, self.report.inv_freq.shape
        w = (waves * (self.report.direction or 1)).reshape(shape)
        self.report = replace(self.report, inv_freq=w, inv_freq_error=error.reshape(shape))

    def _precision(self, samples: Samples, off: np.ndarray, made: tuple[str, str] | None) -> None:
        """Test which stage is rounded: frequencies, positions, products; then cos and sin."""
        worst = int(off.max(axis=1).argmax())
        values: dict[str, Any] = {
            "size": off[worst].max(),
            "place": place_of(samples.positions[worst]),
        }
        self._near_formula(made)
        if made and made[0] == "positions":
            divided = f" divided by {by:g}" if (by := self._divisor()) != 1.0 else ""
            self.test("stored positions", 1.0, format=made[1], divided=divided, **values)
        elif made and made[0] in ("products", "all"):
            self.test("stored products", 1.0, format=made[1], **values)
        given = self.study.probe.given
        if not (given == "bfloat16" or given == self.found.numbers == "float16"):
            self._tables(given)

    def _near_formula(self, made: tuple[str, str] | None) -> None:
        """Test whether frequencies that follow a formula to 16 bits alone are rounded to these."""
        exact = self._exact()
        near = self._low_precision()
        if exact is not None and near:
            sizes, errors = np.abs(self.waves).max(axis=1), self.errors.max(axis=1)
            formula = "; ".join(sorted(near))
            apart = np.abs(sizes / np.abs(exact).max(axis=1) - 1.0)
            clear = (errors <= 1e-4 * sizes) & (apart * sizes > 4.0 * errors)
            part = {"size": float(apart[errors <= 1e-4 * sizes].max(initial=0.0))}
            if made and made[0] == "frequencies":
                self.test("stored frequencies", 1.0, format=made[1], formula=formula, **part)
            elif made is None and clear.any():
                self.test("exact formula", part["size"], 0.0, formula=formula)

    def _tables(self, given: str) -> None:
        """Test whether cos and sin, or outputs, have 16 bits although x has more."""
        outputs, numbers = self.found.outputs, self.found.numbers
        few = np.isin(outputs.astype(str), HALF) & self.found.matrices.any(axis=(0, 2))
        if numbers in HALF and not few[self.structure.outputs].all():
            self.test("stored table", 1.0, given=given, format=numbers)
        elif few.any():
            values = {"given": given, "format": outputs[few][0], "count": few.sum()}
            self.test("stored outputs", 1.0, **values)

    def _relative(self, explained: float) -> None:
        """Test whether a score changes under a common shift by more than angles explain."""
        report = self.report
        if not report.is_rotation or report.relative_error_at is None:
            return
        limit = max(1e-9, 4.0 * explained + 8.0 * self.noise.value)
        residual = report.relative_error or 0.0
        m, n, shift = (place_of(p) for p in report.relative_error_at)
        change = residual * (report.attention_factor or 1.0) ** 2
        self.test("relative", residual, limit, m=m, n=n, shift=shift, change=change)

    def _faults(self, samples: Samples, off: np.ndarray, bad: np.ndarray) -> None:
        """Say which positions are others: all after one, where a table ends, or some."""
        on_axis = (samples.positions != 0).sum(axis=1) <= 1
        for axis in range(self.axes) if self.found.predicts else ():
            mine = on_axis & (samples.positions[:, axis] == samples.positions.sum(axis=1))
            places, first = np.unique(samples.positions[mine, axis], return_index=True)
            wrong = bad[mine][first]
            if not wrong.any():
                continue
            at = int(wrong.argmax())
            if wrong[at:].all() and at > 1:
                self._end(axis, int(places[at - 1]), int(places[at]))
                return
        worst = int(np.where(bad, off, -1.0).argmax())
        values = {"place": place_of(samples.positions[worst]), "size": off[worst]}
        if not (bad & on_axis).any():
            self.test("axes add", 1.0, **values)
        else:
            values["place"] = place_of(samples.positions[bad.argmax()])
            self.test("angles", 1.0, count=int(bad.sum()), probed=len(bad), **values)
        shared = self._shared(samples)
        self.report = replace(self.report, angle_error=float(off.max()), shared_position=shared)
        self._relative(float(off.max()))

    def _end(self, axis: int, good: int, bad: int) -> None:
        """Between a good and a bad place, find the last good one; say what comes after it."""
        sample = lambda places: self._sample(along(axis, self.axes, [0, *places]))  # noqa: E731
        while bad - good > 1:
            middle = (good + bad) // 2
            one = sample([middle])
            off, limit = self._errors(one)
            wrong = one.broken[1] or (off > limit)[1].any()
            good, bad = (good, middle) if wrong else (middle, bad)
        last = self.study.sizes[axis] - 1
        after = np.unique(np.minimum(bad + np.array([0, 1, 2, 5, 11]), last))
        found, w = sample([*after, last]), self.waves[:, axis]
        after = np.append(after, last)
        images = {
            "every position is rotated like the last": np.full(len(after), good),
            "it starts again from position 0": after % bad,
            "every position is rotated like position 0": np.zeros(len(after)),
            "each position is rotated like the one before it": after - 1,
        }
        past = "angles no longer follow the position"
        if found.broken[1:].any():
            past = "vectors come out with other lengths"
        else:
            scale = np.abs(wrapped(found.angles[1:] - np.outer(after, w))).max()
            for name, image in images.items():
                off = np.abs(wrapped(found.angles[1:] - np.outer(image, w)))
                if off.max() <= 0.1 * min(scale, 1.0):
                    past = name
                    break
        self.study.ends_at(axis, good, past, silent=True)

    def _shared(self, samples: Samples) -> int | None:
        """Return the first position that has the rotation of the one before, and test it.

        That is a fault where the fastest pair moves by more than rounding hides.
        """
        found = samples.positions[samples.shared, 0]
        if not len(found):
            return None
        place = int(found.min())
        step, limit = float(np.abs(self.waves).max()), 4.0 * self.noise.value
        self.test("distinct positions", step, limit, last=place - 1, place=place)
        return place


def _plain(formula: Formula) -> bool:
    """Return whether a formula is a plain series."""
    return formula.kind == "default" and formula.dim > 2


def _start_of(
    phases: np.ndarray, waves: np.ndarray, errors: np.ndarray, noise: Noise
) -> float | None:
    """Return the whole position whose angles position 0 has; None where none is near.

    The fastest pair gives candidates, up to 1,000 whole turns away.
    """
    fastest = int(np.abs(waves).max(axis=1).argmax())
    if waves.shape[1] > 1 or not waves[fastest].any():
        return None
    w, limit = waves[fastest, 0], max(1e-6, noise.value)
    tried = np.round((phases[fastest] + 2.0 * np.pi * np.arange(-1000, 1001)) / w)
    off = np.abs(wrapped(phases - np.outer(tried, waves[:, 0])))
    allowed = limit + np.outer(np.abs(tried), noise.angle * np.abs(w) + errors[:, 0])
    return min(tried[(off < allowed).all(axis=1)].tolist(), key=abs, default=None)
