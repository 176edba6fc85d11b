"""The angle of every pair at every position, as it is and as it is shown."""

import ipywidgets

from . import controls
from .figure import Choice, Even, Figure, Real, Whole

__all__ = ["AngleHeatmap", "angle_heatmap"]

FARTHEST = 131072


class AngleHeatmap(Figure):
    """The true angle beside what is shown of it, and one pair of both (``angle_heatmap.js``)."""

    dim = Even(128, low=2, high=256, help="rotated width of one head")
    base = Real(10000.0, low=10.0, high=1e7, help="base of the inverse frequencies")
    first = Whole(0, low=0, high=FARTHEST, help="first position shown")
    count = Whole(256, low=8, high=512, help="number of positions shown")
    show = Choice(["wrapped angle", "cosine"], help="what stands beside the true angle")
    position = Whole(44, low=0, high=FARTHEST + 512, help="the cursor's position")
    pair = Whole(8, low=0, high=127, help="the cursor's pair")


def angle_heatmap(
    dim: int = 128,
    base: float = 10000.0,
    first: int = 0,
    count: int = 256,
    show: str = "wrapped angle",
    pair: int = 8,
) -> ipywidgets.VBox:
    """Return the angle heatmap with its controls.

    Parameters
    ----------
    dim
        Rotated width of one head, even, 2 to 256; ``dim/2`` pairs are shown.
    base
        Base of the inverse frequencies, 10 to 1e7.
    first
        First position shown, 0 to 131072.
    count
        Number of positions shown, 8 to 512.
    show
        What stands beside the true angle: ``"wrapped angle"`` or ``"cosine"``.
    pair
        The pair that the cursor is on at first.

    Returns
    -------
    VBox
        Question, figure and controls. The cursor follows the pointer and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or out of range; the message names it.
    """
    figure = AngleHeatmap(dim=dim, base=base, first=first, count=count, show=show, pair=pair)
    if pair >= dim // 2:
        raise ValueError(f"pair must be below dim/2 = {dim // 2}, got {pair}")
    figure.position = first + min(44, count - 1)
    figure.start_here()
    return controls.box(
        figure,
        [controls.choice(figure, "show", "Beside the true angle")],
        more=[
            controls.slider(figure, "dim", "Head width", unit="channels", step=2),
            controls.log_slider(figure, "base", "Base"),
            controls.slider(figure, "first", "First position", step=32),
            controls.slider(figure, "count", "Number of positions", step=8),
        ],
        question="Along a text, does a pair ever turn backwards?",
    )
