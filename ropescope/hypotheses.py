"""The table of hypotheses: each has one residual, one limit, and a sentence for where it fails.

A report is this table. Whoever tests a hypothesis writes a `Hypothesis`, numbers only; the sentence
is made here, at the very end, and nothing reads it.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

__all__ = ["Finding", "Hypothesis", "Severity"]


class Severity(IntEnum):
    """How severe a finding is: good to know, to be looked at, or wrong."""

    INFO = 1
    WARNING = 2
    ERROR = 3


INFO, WARNING, ERROR = Severity


@dataclass(frozen=True)
class Finding:
    """A hypothesis that does not hold, in words.

    Attributes
    ----------
    severity
        3 an error: scores or precision suffer; 2 a warning: it may be meant; 1 good to know.
    message
        What was found, with the numbers that show it.
    chapter
        The part of a notebook's name that says which chapter explains it.
    hypothesis
        The key of the hypothesis; "" for what was found outside the table.
    partial
        Whether the report is about a part of what was probed, or about another thing: then no
        weight is converted by it.
    """

    severity: int
    message: str
    chapter: str
    hypothesis: str = ""
    partial: bool = False

    def __str__(self) -> str:
        return f"{Severity(self.severity).name}: {self.message} (chapter: {self.chapter})"


@dataclass(frozen=True)
class Hypothesis:
    """One row of the table.

    Attributes
    ----------
    name
        A key of `SENTENCES`.
    residual, limit
        It holds while the residual is at most the limit, which the noise model gives.
    values
        Numbers and names for the sentence.
    """

    name: str
    residual: float
    limit: float
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether the residual is within the limit."""
        return self.residual <= self.limit

    def finding(self) -> Finding:
        """Return what is said where it does not hold."""
        severity, chapter, sentence = SENTENCES[self.name]
        message = sentence.format(residual=self.residual, limit=self.limit, **self.values)
        return Finding(severity, message, chapter, self.name, self.name == "call")


CHANGES = "Lengths change with the position"

SENTENCES: dict[str, tuple[Severity, str, str]] = {
    # ---- it can be measured: deterministic, linear, independent of what else is in the call
    "answers": (ERROR, "attention", "There is nothing to measure: {why}."),
    "every position": (
        ERROR, "attention", "Not every position is answered: it {why}, probed at position {place}.",
    ),
    "one call": (
        ERROR, "attention", "Each position is answered alone, but in one call it {why}.",
    ),
    "single position": (
        WARNING, "attention", "A call with a single position fails: it {why}.",
    ),
    "deterministic": (
        ERROR, "attention",
        "Not deterministic: the same call gives different values (max change {residual:.2g}).",
    ),
    "independent rows": (
        ERROR, "attention",
        "The rows of a batch are not independent: equal vectors come out different (by up to "
        "{residual:.2g}), depending on their row or on the vectors in other rows.",
    ),
    "independent positions": (
        ERROR, "attention",
        "The positions of a call are not independent: the output at one changes by up to "
        "{residual:.2g} with the vectors at others.",
    ),
    "linear": (
        ERROR, "linear-algebra",
        "Not linear: a vector does not come out as the sum of its channels (off by {residual:.2g} "
        "of the largest). Results below hold for unit vectors.",
    ),
    "full inputs": (
        ERROR, "precision",
        "Inputs are rounded to 16 bits: a vector with more digits comes out off by {residual:.2g} "
        "of its largest channel.",
    ),
    "order": (
        ERROR, "attention",
        "The rotation of a position depends on its place in the call: {how}, positions get other "
        "rotations, as where a result is cached under a key that two calls share, or the index in "
        "the call is taken for the position. Results below refer to the longest call.",
    ),
    "call": (
        WARNING, "longer-contexts",
        "The rotation of a position depends on the other positions of the call, as in dynamic NTK "
        "and LongRoPE: alone, the first {count} change by up to {residual:.2g}. The frequencies "
        "below are those of a call that reaches {far}; keys cached from a shorter one keep others.",
    ),
    "stateless": (
        ERROR, "longer-contexts",
        "Not stateless: repeating {what} gives different values (max change {residual:.2g}), as in "
        "dynamic NTK that keeps its longest length. Results below refer to the last state.",
    ),
    "no offset": (
        ERROR, "why-position",
        "It adds a vector of its own: zeros come out as numbers up to {residual:.2g}. Results "
        "below are without it.",
    ),
    "arguments kept": (
        ERROR, "attention",
        "It writes into the {names}: whoever still needs what was there has lost it.",
    ),
    "dtype kept": (WARNING, "precision", "It returns {returned} for {given}."),
    # ---- what rotates: pairs, one factor, channels in their places
    "rotates": (ERROR, "why-position", "Nothing rotates: every position has the same matrix."),
    "pairs": (
        ERROR, "linear-algebra",
        "Not a rotation in pairs of channels: {what}; lengths times {low:.3g} to {high:.3g}.",
    ),
    "pairs, relative": (
        WARNING, "linear-algebra",
        "Not a rotation in pairs of channels: {what}; lengths are multiplied by {high:.6g}, and "
        "scores depend on the distance alone (to {deviation:.1g}).",
    ),
    "block rotations": (
        ERROR, "layouts",
        "Not a rotation: at position {place} a vector of length 1 comes out with length {low:.3g} "
        "to {high:.3g} (singular values; smallest determinant {det:.3g}). Either the two channels "
        "of a pair get different angles, as where cos and sin are laid out for one layout and "
        "channels are swapped for the other, or a sign is missing.",
    ),
    "full rank": (
        ERROR, "linear-algebra",
        "Not a rotation: {count} of {pairs} pairs lose a direction at every position, and other "
        "lengths are multiplied by up to {high:.3g}.",
    ),
    "exact lengths": (
        ERROR, "precision",
        "Lengths are off by up to {residual:.2g}, more than rounding to {numbers} explains: cos "
        "and sin are in low precision or disagree.",
    ),
    "lengths keep": (
        ERROR, "layouts",
        CHANGES + " alone, by factors of {low:.6g} to {high:.6g}: scores depend on the place. That "
        "may be meant, as where queries are scaled with the logarithm of the position, or keys get "
        "the inverse factor (xPos).",
    ),
    "lengths keep in each pair": (
        ERROR, "layouts",
        CHANGES + ", in each pair by its own factor, {low:.3g} to {high:.3g}: cos and sin "
        "disagree, or keys need the inverse factor (xPos).",
    ),
    "one factor": (
        WARNING, "longer-contexts",
        "Pairs have factors of their own at every position, {low:.6g} to {high:.6g}; scores depend "
        "on the distance alone.",
    ),
    "weights before": (
        WARNING, "attention",
        "Per-channel weights, {low:.3g} to {high:.3g}, act before the rotation, as those of a "
        "norm: scores depend on the distance alone.",
    ),
    "weights after": (
        ERROR, "attention",
        "Per-channel weights, {low:.3g} to {high:.3g}, act after the rotation: scores depend on "
        "the place.",
    ),
    "unrotated channels": (
        ERROR, "layouts",
        "The {count} channels that do not rotate are mixed or scaled: their lengths are multiplied "
        "by {low:.3g} to {high:.3g}.",
    ),
    "unrotated weights": (
        WARNING, "layouts",
        "The {count} channels that do not rotate have weights of their own, {low:.3g} to "
        "{high:.3g}, as those of a norm.",
    ),
    "unrotated kept": (
        ERROR, "layouts",
        "The {count} channels that do not rotate are lost: nothing of them comes out.",
    ),
    "unrotated factor": (
        INFO, "longer-contexts", "Channels that do not rotate are multiplied by {factor:.8g}.",
    ),
    "unrotated places": (
        INFO, "layouts",
        "Channels that do not rotate ({count}) come out in other places or with other signs. "
        "Scores are the same without.",
    ),
    "written layout": (
        INFO, "layouts",
        "Pairs are {layout}: channels come out in another order than they go in. Scores are those "
        "of the layout that is read.",
    ),
    "written places": (
        INFO, "layouts",
        "{count} of {pairs} pairs come out in other places, such as {read} in {written}. Scores "
        "are the same without.",
    ),
    "not mirrored": (
        INFO, "layouts",
        "{count} of {pairs} pairs are mirrored as well as rotated: two channels are exchanged, or "
        "one has its sign changed. Scores are the same without.",
    ),
    "most channels": (
        WARNING, "many-planes", "Only {count} of {head_dim} channels rotate.",
    ),
    "unit factor": (
        INFO, "longer-contexts",
        "cos and sin carry a factor of {factor:.8g}: scores grow by its square, {square:.6g}.{of}",
    ),
    "own factor": (
        INFO, "longer-contexts",
        "YaRN's own factor on cos and sin would be {own:.6g} for a stretch by {stretch:.6g}; here "
        "it is {factor:.6g}, as where it is set, or mscale and mscale_all_dim are equal.",
    ),
    # ---- where the table ends
    "long table": (
        WARNING, "attention", "Position {end} is the last: after it, it {past}.",
    ),
    "table for all calls": (
        WARNING, "attention",
        "A position is answered only in a call that is longer, as where a table is built for each "
        "call: of two positions {end} is the last, and then it {past}.",
    ),
    "no silent end": (
        ERROR, "attention",
        "The table ends silently at position {end:,}, then {past}.",
    ),
    # ---- angle = position x frequency, and scores depend on the distance alone
    "proportional": (
        ERROR, "many-planes",
        "Angles are not proportional to the position: pair {pair} is rotated by {one:.4g} rad at "
        "{here} and by {two:.4g} rad at {there}.",
    ),
    "angles": (
        ERROR, "many-planes",
        "{count} of {probed:,} positions, such as {place}, are not rotated by position times "
        "frequency: off by up to {size:.2g} rad.",
    ),
    "axes add": (
        ERROR, "layouts",
        "Axes do not add: the rotation at a point such as {place} is not the product of those "
        "along the axes (off by up to {size:.2g} rad).",
    ),
    "relative": (
        ERROR, "why-position",
        "Scores do not depend on the distance alone: the score of positions {m} and {n} changes "
        "by up to {change:.2g} when both move by {shift}.",
    ),
    "origin": (
        INFO, "many-planes", "Position 0 is rotated already, by up to {residual:.3g} rad{how}.",
    ),
    "counter-clockwise": (
        INFO, "linear-algebra",
        "It rotates clockwise, by minus the angle of the paper. Weights trained the other way need "
        "the second row of each pair negated.",
    ),
    "one direction": (
        WARNING, "layouts",
        "{count} of {pairs} pairs rotate clockwise, the others counter-clockwise; frequencies "
        "above half a turn per position would look the same.",
    ),
    "one axis for each pair": (
        INFO, "many-planes", "{count} of {pairs} pairs rotate along several axes at once.",
    ),
    "axis used": (
        WARNING, "many-planes", "No pair is seen to rotate along axis {axis} of a position.",
    ),
    "axes apart": (
        WARNING, "many-planes",
        "All axes rotate all pairs in one proportion, {parts}: points of one weighted sum share a "
        "rotation.",
    ),
    # ---- frequencies = a published formula
    "formula": (
        WARNING, "longer-contexts",
        "No formula known here gives these frequencies, {high:.6g} to {low:.6g}{hidden}.",
    ),
    "exact formula": (
        WARNING, "longer-contexts",
        "Frequencies are near those of {formula}, off by up to {residual:.2g} of them.",
    ),
    "one formula": (
        WARNING, "many-planes", "The axes have different series: {names}.",
    ),
    "one series": (
        INFO, "many-planes",
        "Each axis has a series of base {base:.10g} over its own channels: {widths}.",
    ),
    "factor known": (
        WARNING, "longer-contexts",
        "These frequencies may be those of {formula}, or of other factors, which {numbers} hides. "
        "Probe in float32, or farther.",
    ),
    "distinct frequencies": (
        WARNING, "many-planes",
        "Each frequency occurs {times} times: {pairs} pairs have {count} frequencies.",
    ),
    "usual factor": (
        WARNING, "longer-contexts",
        "All pairs rotate {times:.6g} times as fast as base {base:.10g} gives{why}.",
    ),
    "all pairs": (
        WARNING, "many-planes", "{count} of {pairs} pairs do not rotate at all.",
    ),
    "fast enough": (
        WARNING, "many-planes",
        "No pair rotates by more than {fastest:.2g} rad per position: as good as nothing, or "
        "whole turns, which integer positions cannot show.",
    ),
    "falling frequencies": (
        INFO, "many-planes",
        "Frequencies do not fall from pair to pair: {one} rotates by {a:.6g} per position, {two} "
        "by {b:.6g}.",
    ),
    # ---- precision
    "stored frequencies": (
        ERROR, "precision",
        "Inverse frequencies are rounded to {format}: off by up to {size:.2%} from {formula}. "
        "Scores depend on the distance alone, and all of them are wrong far out.",
    ),
    "stored positions": (
        ERROR, "precision",
        "Positions{divided} are rounded to {format}: at position {place} the angle is off by "
        "{size:.2g} rad.",
    ),
    "stored products": (
        ERROR, "precision",
        "Angles, the products of position and frequency, are rounded to {format}: at position "
        "{place} off by {size:.2g} rad.",
    ),
    "exact angles": (
        INFO, "precision",
        "Angles lose digits far out, as computed in float32: at position {place} off by "
        "{residual:.2g} rad.",
    ),
    "distinct positions": (
        ERROR, "precision",
        "Positions {last:,} and {place:,} share a rotation: keys there cannot be told apart by "
        "their positions.",
    ),
    "stored table": (
        ERROR, "precision", "cos and sin are rounded to {format} although x is {given}.",
    ),
    "stored outputs": (
        ERROR, "precision",
        "Outputs of {count} channels are rounded to {format} although x is {given}.",
    ),
}  # fmt: skip
