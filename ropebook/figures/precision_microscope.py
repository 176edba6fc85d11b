"""Where rounding hurts the rotary table: positions x pairs, one rounding at a time."""

from numbers import Integral

from .figure import Choice, Figure, Whole

__all__ = ["PrecisionMicroscope", "precision_microscope"]

COLUMNS = 240
"""Positions shown; ``precision_microscope.js`` spaces them by equal factors, all odd."""


class PrecisionMicroscope(Figure):
    """Computed minus true, of angle or cosine, in colour (``precision_microscope.js``).

    The error of an angle is the short way round, pi at most.
    """

    question = "One rounding on the way to the table: where does it hurt?"

    dtype = Choice(["fp32", "fp16", "bf16"], default="bf16", label="Number type")
    stage = Choice(
        ["positions", "inverse frequencies", "product", "table", "everything"],
        label="What is rounded",
    )
    show = Choice(["cosine", "angle"], label="Error of the", fold=True)
    last = Choice(
        ["4,096", "131,072", "1,048,576"], default="131,072", label="Positions up to", fold=True
    )
    column = Whole(200, low=0, high=COLUMNS - 1, help="the cursor's column")
    pair = Whole(20, low=0, high=63, help="the cursor's pair")


def precision_microscope(
    dtype: str = "bf16", stage: str = "positions", show: str = "cosine", last: int = 131072
) -> PrecisionMicroscope:
    """Return the microscope of a 128-channel table with base 10000, with its controls.

    Parameters
    ----------
    dtype
        Number type of the rounding: ``"fp32"``, ``"fp16"`` or ``"bf16"``.
    stage
        What is rounded to it: ``"positions"``, ``"inverse frequencies"``, ``"product"`` (the
        angle), ``"table"`` (the cosine) or ``"everything"``; the rest is float64.
    show
        The error of the ``"cosine"``, 2 at most, or of the ``"angle"`` in radians, the short way
        round, pi at most. A rounded table has exact angles, so there it is always the cosine.
    last
        How many positions are looked at: 4096, 131072 or 1048576.

    Returns
    -------
    PrecisionMicroscope
        The cursor follows the pointer and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it.
    """
    count = f"{last:,}" if isinstance(last, Integral) else last
    return PrecisionMicroscope(dtype=dtype, stage=stage, show=show, last=count)
