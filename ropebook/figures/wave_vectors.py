"""A wave vector a pair, and what a head with these vectors knows of the offset of two patches."""

import math
from typing import Any

import traitlets

from .figure import Choice, Figure, Whole

__all__ = ["WaveVectors", "wave_vectors"]

PAIRS = 8
LONGEST = 1.25


class WaveVectors(Figure):
    """Eight wave vectors, the wave of one, and the mean of all (``wave_vectors.js``)."""

    question = "A patch has a row and a column: does its code see them apart, or together?"

    plan = Choice(["axial", "Pixtral", "DINOv3", "mixed"], label="Plan")
    vectors: traitlets.List[list[float]] = traitlets.List(
        help="8 vectors, radians per column and per row, once the reader has moved one"
    ).tag(sync=True)
    pair = Whole(0, low=0, high=PAIRS - 1, label="Pair to move", unit="fast to slow", fold=True)
    size = Whole(16, low=12, high=32, label="Image", unit="patches a side", fold=True)

    @traitlets.validate("vectors")
    def _check_vectors(self, given: Any) -> list[list[float]]:
        values = [[float(number) for number in vector] for vector in given["value"]]
        fit = all(len(v) == 2 and math.hypot(*v) <= LONGEST + 1e-9 for v in values)
        if len(values) not in (0, PAIRS) or not fit:
            raise ValueError(
                f"vectors must be {PAIRS} pairs of numbers no longer than {LONGEST}, got {values!r}"
            )
        return values


def wave_vectors(plan: str = "axial", size: int = 16, pair: int = 0) -> WaveVectors:
    """Return the wave vectors of a head with 8 pairs, and the map that they make.

    Parameters
    ----------
    plan
        Where the vectors start. ``"axial"``: four frequencies on each axis, base 100.
        ``"Pixtral"``: every other frequency of one row of eight, base 10000, rows first.
        ``"DINOv3"``: as axial, but the fastest pairs make two turns from edge to edge, however
        many patches there are.
        ``"mixed"``: as RoPE-ViT starts to learn, base 10, its two axes turned, here by 45 degrees.
    size
        Patches along each side of the image, 12 to 32.
    pair
        The pair whose wave is drawn and that the arrow keys move, 0 to 7, fast to slow.

    Returns
    -------
    WaveVectors
        The heads of the arrows can be dragged.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind, unknown or out of range; the message names it.
    """
    return WaveVectors(plan=plan, size=size, pair=pair)
