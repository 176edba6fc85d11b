"""The report: what a rotation is, in numbers, in words, in JSON."""

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from .differences import Difference, difference
from .formulas import Formula, name_arrangement
from .hypotheses import Finding, Hypothesis

__all__ = ["Report"]


@dataclass(frozen=True, eq=False)
class Report:
    """What `identify` measured of a rotation, from outside.

    Attributes
    ----------
    head_dim, axes
        What was probed: the width of a head and the axes of a position.
    probed
        In words: the kind of array, and the positions along each axis; "" if nothing was measured.
    pairs
        Channels of x that rotate together, the lower one first.
    written
        Channels of y in which each pair comes out.
    layout
        ``half-split``, ``interleaved``, ``read interleaved, written half-split`` and so on; None
        where these pairs have no name here, or there are none.
    place
        ``all``, ``first``, ``last`` or ``elsewhere``: where the channels that rotate stand.
    is_rotation
        Whether every operator is a rotation of each pair times one factor.
    singular_values
        Smallest and largest length of a unit vector that was rotated, divided by
        ``attention_factor`` where there is one.
    direction
        +1 where each pair rotates counter-clockwise, from its first channel to its second; -1 the
        other way; None where pairs differ, or where angles were not measured.
    inv_freq
        Radians per position in the order of ``pairs``, shape (pairs,); with several axes the wave
        vector of each pair, (pairs, axes). Signed only where ``direction`` is None. Integer
        positions know a frequency up to a turn: it is the one within half a turn either way.
    inv_freq_error
        Same shape: the precision to which each is known.
    base
        Of the shortest formula that gives these frequencies, or of the series of each axis.
    rescaling
        Its name and parameters; None for a plain series, for frequencies that no known formula
        gives, and where 16 bits hide by which factor slow pairs are stretched. Of LongRoPE's two
        lists the one that was measured stands for both; its length and its factor do not show.
    formulas
        Known formulas that give the same frequencies, the shortest first.
    attention_factor
        The factor on cos and sin; scores grow by its square. None where pairs differ at some
        position; where lengths change with the position alone, that of the first.
    unrotated_factor
        The factor on the channels that do not rotate; None where they differ.
    relative_error
        By how much a score of two unit vectors was seen to change under a common shift, divided by
        the square of ``attention_factor`` where there is one.
    relative_error_at
        The two positions and the shift where it does.
    numbers
        The smallest format that held all numbers that came back, before factors were multiplied in.
    angle_error
        The most, in radians, by which an angle was seen to miss position times frequency; None
        where angles were not measured.
    angle_error_at
        The position where it does.
    shared_position
        The first one probed that has the rotation of the one before; None where none was found, and
        with several axes.
    table_end
        The last position that is rotated as all before it; None where none was found. With several
        axes, the nearest.
    past_end
        What happens after it, in words, and along which of several axes.
    hypotheses
        The table: every hypothesis tested, with its residual and its limit.
    more
        Findings from outside the table.
    """

    head_dim: int
    axes: int
    probed: str
    pairs: tuple[tuple[int, int], ...] = ()
    written: tuple[tuple[int, int], ...] = ()
    layout: str | None = None
    place: str = "elsewhere"
    is_rotation: bool = False
    singular_values: tuple[float, float] | None = None
    direction: int | None = None
    inv_freq: np.ndarray = field(default_factory=lambda: np.empty(0))
    inv_freq_error: np.ndarray = field(default_factory=lambda: np.empty(0))
    base: float | None = None
    rescaling: tuple[str, dict[str, Any]] | None = None
    formulas: tuple[Formula, ...] = ()
    attention_factor: float | None = None
    unrotated_factor: float | None = 1.0
    relative_error: float | None = None
    relative_error_at: tuple[list[int], list[int], list[int]] | None = None
    numbers: str | None = None
    angle_error: float | None = None
    angle_error_at: int | None = None
    shared_position: int | None = None
    table_end: int | None = None
    past_end: str | None = None
    hypotheses: tuple[Hypothesis, ...] = ()
    more: tuple[Finding, ...] = ()

    @property
    def width(self) -> int:
        """Channels that rotate."""
        return 2 * len(self.pairs)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What does not hold, in words, the most severe first."""
        failed = dict.fromkeys(one.finding() for one in self.hypotheses if not one.holds)
        return tuple(sorted((*failed, *self.more), key=lambda finding: -finding.severity))

    @property
    def wavelengths(self) -> np.ndarray:
        """Positions of a full turn of each pair, (pairs,); along the wave vector for several axes.

        Infinite for a pair that does not rotate.
        """
        frequency = np.linalg.norm(self.inv_freq.reshape(-1, self.axes), axis=1)
        with np.errstate(divide="ignore"):
            return 2.0 * np.pi / frequency

    @property
    def sections(self) -> tuple[int, ...] | None:
        """The axis that each pair follows; None with one axis, or where a pair follows several."""
        along = self.inv_freq.reshape(-1, self.axes) != 0
        if self.axes == 1 or not along.any() or (along.sum(axis=1) > 1).any():
            return None
        return tuple(int(row.argmax()) if row.any() else -1 for row in along)

    @property
    def arrangement(self) -> str | None:
        """How pairs are dealt out to axes, in blocks or by turns; None without `sections`."""
        return None if self.sections is None else name_arrangement(self.sections)

    def rows(self) -> list[tuple[str, str]]:
        """Return the lines of the card: a name and what is known."""
        if not self.probed:
            return [("probed", "nothing")]
        if not self.pairs:
            return [("probed", self.probed), ("rotation", "no, where it was probed")]
        factor = self.attention_factor or 1.0
        low, high = (factor * length for length in self.singular_values or (np.nan, np.nan))
        rotation = "yes" if self.is_rotation else f"no: lengths times {low:.4g} to {high:.4g}"
        rows = [
            ("probed", self.probed),
            ("rotation", rotation),
            ("layout", self.layout or "none that has a name"),
            ("channels", f"{self.width} of {self.head_dim}, {self.place}"),
        ]
        if self.arrangement:
            rows.append(("axes", self.arrangement))
        if self.inv_freq.any():
            rows += self._frequency_rows()
        return [*rows, *self._number_rows()]

    def _number_rows(self) -> list[tuple[str, str]]:
        """Return the lines about factors, errors and the table."""
        rows: list[tuple[str, str]] = []
        factor = self.attention_factor or 1.0
        if self.attention_factor is not None:
            known = self.unrotated_factor is not None
            alone = f"{self.unrotated_factor:.10g}" if known else "no one factor"
            rest = f"; {alone} on channels that do not rotate" * (self.width < self.head_dim)
            rows.append(("factor", f"{self.attention_factor:.10g}{rest}"))
        if self.relative_error is not None:
            change = f"{self.relative_error * factor**2:.2g}"
            rows.append(("relative", f"a common shift was seen to change a score by {change}"))
        rows.append(("numbers", str(self.numbers)))
        if self.angle_error is not None:
            at = f" at position {self.angle_error_at:,}" if self.angle_error_at else ""
            rows.append(("angles", f"seen to be off by {self.angle_error:.2g} rad{at}"))
        if self.table_end is not None:
            rows.append(("table", f"ends at {self.table_end:,}, then {self.past_end}"))
        held = sum(one.holds for one in self.hypotheses)
        rows.append(("hypotheses", f"{held} of {len(self.hypotheses)} tested hold"))
        return rows

    def _frequency_rows(self) -> list[tuple[str, str]]:
        """Return the lines about frequencies."""
        turn = {1: "counter-clockwise (+1)", -1: "clockwise (-1)", None: "not one for all pairs"}
        waves = self.wavelengths[np.isfinite(self.wavelengths)]
        w, known = 2.0 * np.pi / waves, float(self.inv_freq_error.max())
        names = [str(one) for one in self.formulas]
        apart = self.base and f"a series of base {self.base:.10g} along each axis"
        return [
            ("direction", turn[self.direction]),
            ("frequencies", f"{w.max():.10g} to {w.min():.10g} rad, +-{known:.1g}"),
            ("wavelengths", f"{waves.min():,.6g} to {waves.max():,.6g} positions"),
            ("formula", names[0] if names else apart or "none known here"),
            *(("or equally", name) for name in names[1:4]),
        ]

    def __str__(self) -> str:
        lines = [f"{name:<12} {value}" for name, value in self.rows()]
        return "\n".join([*lines, *(f"- {finding}" for finding in self.findings)])

    def _repr_html_(self) -> str:
        from .picture import card

        return card(self)

    def to_json(self) -> str:
        """Return the report as JSON; `from_json` reads it."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in ("formulas", "hypotheses", "more"):
            values[name] = [asdict(one) for one in values[name]]
        values["inv_freq"] = self.inv_freq.tolist()
        values["inv_freq_error"] = self.inv_freq_error.tolist()
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
            for name in ("pairs", "written"):
                values[name] = tuple((a, b) for a, b in values[name])
            for name in ("singular_values", "rescaling", "relative_error_at"):
                values[name] = None if values[name] is None else tuple(values[name])
            for name in ("inv_freq", "inv_freq_error"):
                values[name] = np.array(values[name], dtype=np.float64)
            kinds = {"formulas": Formula, "hypotheses": Hypothesis, "more": Finding}
            for name, kind in kinds.items():
                values[name] = tuple(kind(**one) for one in values[name])
            report = cls(**values)
            report.differs_from(report)  # what reads it will not fail later
            report._repr_html_()
        except Exception as error:  # whatever a value of another type leads to
            message = f"text must be what Report.to_json wrote, got {text[:60]!r}"
            raise ValueError(message) from error
        return report

    def differs_from(self, other: "Report") -> Difference:
        """Compare with another rotation, and return what converts weights to it.

        Parameters
        ----------
        other
            A report on heads of the same width and positions with as many axes.

        Returns
        -------
        Difference
            Pairs of equal frequency are matched. A table that ends before the other is told, and
            is no reason not to convert.
        """
        if not isinstance(other, Report):
            raise TypeError(f"other must be a Report, got {type(other).__name__}")
        return difference(self, other)
