"""Labelled controls, linked to a figure's traits in the browser itself.

Every helper takes the figure, the name of its trait and a label in words; the link goes both ways
and needs no kernel. `box` puts question, controls and figure together::

    controls.box(
        figure,
        [
            controls.slider(figure, "dim", "Head width", unit="channels", step=2),
            controls.log_slider(figure, "base", "Base"),
            controls.choice(figure, "show", "Show"),
            controls.checkbox(figure, "trail", "Leave a trail"),
        ],
        question="One angle is one hand of a clock. Why 64?",
    )

The limits of a slider are those of the trait unless ``low`` and ``high`` narrow them.
"""

import html
import math
from collections.abc import Sequence
from typing import Any

import ipywidgets

from rope_minimal.checks import check_positive

from .alone import Alone
from .figure import Choice, Figure, Flag, Real, Whole

__all__ = ["FigureBox", "box", "checkbox", "choice", "log_slider", "slider"]


class FigureBox(Alone, ipywidgets.VBox):
    """A figure, its question above it and its controls below; ``save`` writes it into a file."""


def slider(
    figure: Figure,
    trait: str,
    label: str,
    *,
    low: float | None = None,
    high: float | None = None,
    step: float | None = None,
    unit: str = "",
    digits: int = 2,
) -> ipywidgets.Widget:
    """Return a slider for a `Whole`, `Even` or `Real` trait.

    Parameters
    ----------
    figure
        The figure to drive.
    trait
        Name of the trait.
    label
        What the reader reads, in words.
    low, high
        Limits; those of the trait by default.
    step
        Distance between two stops: 1 for whole numbers, a hundredth of the range otherwise.
    unit
        Written after the label in brackets.
    digits
        Digits after the point in the number shown, for `Real` traits.

    Raises
    ------
    ValueError
        If the figure has no such number trait, a limit is missing or past the trait's, the trait's
        value is outside them, or ``step`` is not above 0; for a whole number also if one of these
        is none.
    """
    kind: Whole | Real = _trait(figure, trait, Whole, Real)
    low, high = _limits(figure, kind, low, high)
    if step is not None:
        check_positive("step", step)
    whole = isinstance(kind, Whole)
    for name, value in (("low", low), ("high", high), ("step", step)):
        if whole and value is not None and value != int(value):
            raise ValueError(f"{name} must be a whole number for {trait}, got {value}")
    make = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
    control = make(
        value=getattr(figure, trait),
        min=low,
        max=high,
        step=step or (1 if whole else (high - low) / 100),
        readout_format=",d" if whole else f",.{digits}f",
        description=_label(label, unit),
    )
    return _link(control, "value", figure, trait)


def log_slider(
    figure: Figure,
    trait: str,
    label: str,
    *,
    low: float | None = None,
    high: float | None = None,
    stops: int = 10,
    unit: str = "",
    digits: int = 3,
) -> ipywidgets.FloatLogSlider:
    """Return a slider for a `Real` trait that moves by equal factors, ``stops`` to a factor of 10.

    The other parameters and errors are those of `slider`; ``low`` must be above 0, and ``digits``
    are significant ones.
    """
    kind: Real = _trait(figure, trait, Real)
    low, high = _limits(figure, kind, low, high)
    check_positive("stops", stops)
    if low <= 0:
        raise ValueError(f"low must be > 0 on a logarithmic slider, got {low}")
    control = ipywidgets.FloatLogSlider(
        value=getattr(figure, trait),
        base=10.0,
        min=math.log10(low),
        max=math.log10(high),
        step=1 / stops,
        readout_format=f",.{digits}r",
        description=_label(label, unit),
    )
    return _link(control, "value", figure, trait)


def choice(figure: Figure, trait: str, label: str) -> ipywidgets.Widget:
    """Return buttons for a `Choice` trait, or a drop-down list if it has more than four options."""
    kind: Choice = _trait(figure, trait, Choice)
    make = ipywidgets.ToggleButtons if len(kind.options) <= 4 else ipywidgets.Dropdown
    control = make(
        options=list(kind.options), index=getattr(figure, trait), description=_label(label, "")
    )
    return _link(control, "index", figure, trait)


def checkbox(figure: Figure, trait: str, label: str) -> ipywidgets.Checkbox:
    """Return a checkbox for a `Flag` trait."""
    _trait(figure, trait, Flag)
    control = ipywidgets.Checkbox(value=getattr(figure, trait), description=label, indent=False)
    return _link(control, "value", figure, trait)


def box(
    figure: Figure,
    controls: Sequence[ipywidgets.Widget] = (),
    *,
    more: Sequence[ipywidgets.Widget] = (),
    question: str,
    model: str = "",
) -> FigureBox:
    """Return the figure as the reader meets it: its question, the picture, its controls.

    Those in ``more`` lie in a fold below the others, of which there should be three at most. Under
    the picture stands what ``model`` it draws, if it is the reader's.
    """

    def line(name: str, words: str) -> ipywidgets.HTML:
        return ipywidgets.HTML(f'<p class="{name}">{html.escape(words, quote=False)}</p>')

    rows: list[ipywidgets.Widget] = [line("rope-question", question), figure]
    if model:
        rows.append(line("rope-model", model))
    if controls:
        rows.append(ipywidgets.Box(list(controls)).add_class("rope-controls"))
    if more:
        folded = ipywidgets.Box(list(more)).add_class("rope-controls").add_class("rope-more")
        rows.append(folded)
    return FigureBox(rows).add_class("rope-box")


def _trait(figure: Figure, name: str, *kinds: type) -> Any:
    trait = figure.traits().get(name)
    if not isinstance(trait, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"trait must name a {wanted} of {type(figure).__name__}, got {name!r}")
    return trait


def _limits(
    figure: Figure, kind: Whole | Real, low: float | None, high: float | None
) -> tuple[float, float]:
    low = kind.low if low is None else low
    high = kind.high if high is None else high
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"low and high must be finite with low < high, got {low} and {high}")
    if not kind.low <= low < high <= kind.high:
        raise ValueError(f"low and high must be in {kind.low} .. {kind.high}, got {low} and {high}")
    value = getattr(figure, str(kind.name))
    if not low <= value <= high:
        raise ValueError(f"{kind.name} must be in {low} .. {high} for its slider, got {value}")
    return low, high


def _label(label: str, unit: str) -> str:
    return f"{label} ({unit})" if unit else label


def _link(control: ipywidgets.Widget, name: str, figure: Figure, trait: str) -> ipywidgets.Widget:
    """Link control and figure in the browser; both ends live as long as the control does."""
    control.layout.width = "auto"
    control.rope_link = ipywidgets.jslink((control, name), (figure, trait))
    return control
