"""Where rounding hurts the rotary table: positions x pairs, one rounding at a time."""

import ipywidgets

from . import controls
from .figure import Choice, Figure, Whole

__all__ = ["PrecisionMicroscope", "precision_microscope"]

COLUMNS = 240
"""Positions shown; ``precision_microscope.js`` spaces them by equal factors, all odd."""


class PrecisionMicroscope(Figure):
    """Computed minus true, of angle or cosine, in colour (``precision_microscope.js``)."""

    dtype = Choice(["fp32", "fp16", "bf16"], default="bf16", help="number type of the rounding")
    stage = Choice(
        ["positions", "inverse frequencies", "product", "table", "everything"],
        help="what is rounded to it; the rest is float64",
    )
    show = Choice(["angle", "cosine"], help="the error of which quantity")
    last = Choice(["4096", "131072", "1048576"], default="131072", help="number of positions")
    column = Whole(200, low=0, high=COLUMNS - 1, help="the cursor's column")
    pair = Whole(20, low=0, high=63, help="the cursor's pair")


def precision_microscope(
    dtype: str = "bf16", stage: str = "positions", show: str = "angle", last: int = 131072
) -> ipywidgets.VBox:
    """Return the microscope of a 128-channel table with base 10000, with its controls.

    Parameters
    ----------
    dtype
        Number type of the rounding: ``"fp32"``, ``"fp16"`` or ``"bf16"``.
    stage
        What is rounded to it: ``"positions"``, ``"inverse frequencies"``, ``"product"`` (the
        angle), ``"table"`` (the cosine) or ``"everything"``; the rest is float64.
    show
        The error of the ``"angle"`` in radians or of the ``"cosine"``. A rounded table has exact
        angles, so there the cosine is shown in any case.
    last
        How many positions are looked at: 4096, 131072 or 1048576.

    Returns
    -------
    VBox
        Question, controls and figure. The cursor follows the pointer and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it.
    """
    figure = PrecisionMicroscope(dtype=dtype, stage=stage, show=show, last=str(last))
    return controls.box(
        figure,
        [
            controls.choice(figure, "dtype", "Number type"),
            controls.choice(figure, "stage", "What is rounded"),
            controls.choice(figure, "show", "Error of the"),
            controls.choice(figure, "last", "Positions up to"),
        ],
        question="How far can you count in 16 bits, and where does it hurt?",
    )
