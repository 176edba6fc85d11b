"""The reader's own model, as figures draw it: the frequencies of its pairs, and their formula.

A figure that takes ``model`` draws these frequencies instead of those of a base and a width. It
may be given a report of `identify`, a configuration, or the numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_minimal.checks import real_numbers
from ropescope import Report
from ropescope.formulas import Formula, fit_formulas

from .figure import Figure

__all__ = ["OwnModel", "read_model"]

MOST = 512
"""Pairs of the widest head that a figure draws."""


@dataclass(frozen=True)
class OwnModel:
    """The frequencies of a model.

    Attributes
    ----------
    inv_freq
        Radians per token, shape (pairs,), fastest first, all >= 0.
    words
        What they are, in a line.
    formula
        The plainest formula that gives them, or None.
    attention_factor
        The factor on cos and sin.
    """

    inv_freq: np.ndarray
    words: str
    formula: Formula | None
    attention_factor: float = 1.0

    def draw_in(self, figure: Figure, without: Sequence[str] = ()) -> None:
        """Let a figure draw this model, without the controls of some traits."""
        figure.data = {"inv_freq": self.inv_freq.tolist()}
        figure._own_model = self.words
        figure._controls = [one for one in figure._controls if one["name"] not in without]


def read_model(model: Any) -> OwnModel:
    """Return the frequencies of a model, and what is known of them.

    Parameters
    ----------
    model
        A `Report` of `identify`; a model or configuration of transformers, or the dict of one,
        whose rotation `identify` reads; or inverse frequencies in radians per token, shape
        (pairs,), of which the sign is left out.

    Raises
    ------
    TypeError, ValueError
        If ``model`` is none of these, makes no rotation, several different ones, one of positions
        with several axes, one in which no pair turns, or more than 512 pairs.
    """
    if isinstance(model, Report):
        return _of_report(model)
    if isinstance(model, (list, tuple)) or hasattr(model, "__array__"):
        return _of_numbers(model)
    name, report = _identify(model)
    return _of_report(report, name)


def _identify(model: Any) -> tuple[str, Report]:
    """Return the name and the report of the one rotation that a configuration makes."""
    if isinstance(model, dict):
        if not isinstance(model.get("model_type"), str):
            raise ValueError(
                f"model must name its model_type, as the dict of a configuration does, got {model}"
            )
        from transformers import AutoConfig

        try:
            model = AutoConfig.for_model(**model)
        except ValueError as error:
            raise ValueError(
                f"model must be of a type that transformers knows, got {model['model_type']!r}"
            ) from error
    if not hasattr(getattr(model, "config", model), "to_dict"):
        raise TypeError(
            "model must be a Report, a configuration of transformers or its dict, or inverse "
            f"frequencies, got {type(model).__name__}"
        )
    from atlas import of_transformers

    reports = {name: one.identify() for name, one in of_transformers(model).items()}
    if not reports:
        raise ValueError(f"model must rotate, and {type(model).__name__} was not seen to")
    (name, first), *others = reports.items()
    if not all(np.array_equal(first.inv_freq, other.inv_freq) for _, other in others):
        raise ValueError(
            f"model must make one rotation, got {len(reports)}: {', '.join(reports)}. Give the "
            f"report of one, as in model=of_transformers(config)[{name!r}].identify()"
        )
    return name, first


def _of_report(report: Report, name: str = "Your model") -> OwnModel:
    if not report.is_rotation:
        found = str(report.findings[0]) if report.findings else report.probed
        raise ValueError(f"model must be a rotation, got a report of none: {found}")
    if report.axes > 1:
        raise ValueError(
            f"model must have positions of one axis, got {report.axes}; give the frequencies "
            "along one of them, as in model=report.inv_freq[:, 0]"
        )
    inv_freq = np.abs(report.inv_freq)
    formula = report.formulas[0] if report.formulas else None
    if formula and formula.kind == "proportional":  # the series has pairs that stand still
        inv_freq = np.pad(inv_freq, (0, max(formula.dim // 2 - len(inv_freq), 0)))
    turning = [f"{report.width} of {report.head_dim} channels turn"]
    if report.direction == -1:
        turning.append("clockwise")
    return _made(name, inv_freq, formula, turning, report.attention_factor or 1.0)


def _of_numbers(values: Any) -> OwnModel:
    inv_freq = np.abs(real_numbers("model", values))
    if inv_freq.ndim != 1 or not np.isfinite(inv_freq).all():
        raise ValueError(f"model must be finite frequencies of shape (pairs,), got {values!r}")
    on = inv_freq[inv_freq > 0]
    widths = tuple(dict.fromkeys((2 * len(on), 2 * len(inv_freq))))
    found = fit_formulas(on, np.zeros(len(on)), widths)
    standing = len(inv_freq) - len(on)
    found.sort(key=lambda one: one.dim // 2 != len(inv_freq))
    turning = [f"{standing} of them still"] if standing else []
    return _made("Your model", inv_freq, found[0] if found else None, turning)


def _made(
    name: str,
    inv_freq: np.ndarray,
    formula: Formula | None,
    turning: list[str],
    attention_factor: float = 1.0,
) -> OwnModel:
    if not inv_freq.any():
        raise ValueError("model must have a pair that turns, got none")
    if len(inv_freq) > MOST:
        raise ValueError(f"model must have at most {MOST} pairs, got {len(inv_freq)}")
    if (np.diff(inv_freq) > 0).any():
        turning = [*turning, "drawn from fast to slow"]
    pairs = "1 pair" if len(inv_freq) == 1 else f"{len(inv_freq)} pairs"
    known = _name(formula) if formula else "no formula known here gives these frequencies"
    if len(inv_freq) == 1:
        known = f"{inv_freq[0]:.6g} rad per token"
    words = f"{name}: {', '.join([pairs, *turning])}; {known}."
    return OwnModel(-np.sort(-inv_freq), words, formula, attention_factor)


def _written(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:,.6g}"


def _name(formula: Formula) -> str:
    """Return base and rescaling in words."""
    base = f"base {formula.base:,.10g}"
    if formula.kind == "default":
        return f"{base}, not rescaled"
    values = []
    for key, value in formula.parameters.items():
        ends = sorted({min(value), max(value)}) if isinstance(value, list) else [value]
        shown = (str(end) if isinstance(end, bool) else _written(end) for end in ends)
        values.append(f"{key} {' to '.join(shown)}")
    return f"{base}, rescaled by {formula.kind}: {', '.join(values)}"
