"""The angle of every pair at every position, as it is and as it is shown."""

from typing import Any

import traitlets

from . import controls
from .figure import Choice, Even, Figure, Real, Whole
from .own_model import MOST, read_model

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
    pair = Whole(8, low=0, high=MOST - 1, help="the cursor's pair")
    data = traitlets.Dict(help="the frequencies of the reader's own model").tag(
        sync=True, fixed=True
    )


def angle_heatmap(
    dim: int = 128,
    base: float = 10000.0,
    first: int = 0,
    count: int = 256,
    show: str = "wrapped angle",
    pair: int | None = None,
    model: Any = None,
) -> controls.FigureBox:
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
        The pair that the cursor is on at first; 8 where not given, or the last.
    model
        Your own model instead of ``dim`` and ``base``: a `Report` of `identify`; a model or
        configuration of transformers, or the dict of one; or inverse frequencies in radians per
        token, shape (pairs,). At most 512 pairs.

    Returns
    -------
    FigureBox
        Question, figure and controls. The cursor follows the pointer and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or out of range; the message names it. If the model makes
        no rotation, several, or one of positions with several axes.
    """
    own = None if model is None else read_model(model)
    figure = AngleHeatmap(dim=dim, base=base, first=first, count=count, show=show)
    pairs = len(own.inv_freq) if own else dim // 2
    figure.pair = min(8, pairs - 1) if pair is None else pair
    if figure.pair >= pairs:
        of = f"the model's {pairs} pairs" if own else f"dim/2 = {pairs}"
        raise ValueError(f"pair must be below {of}, got {pair}")
    figure.data = own.data if own else {}
    figure.position = first + min(44, count - 1)
    figure.start_here()
    return controls.box(
        figure,
        [controls.choice(figure, "show", "Beside the true angle")],
        more=[
            *(
                []
                if own
                else [
                    controls.slider(figure, "dim", "Head width", unit="channels", step=2),
                    controls.log_slider(figure, "base", "Base"),
                ]
            ),
            controls.slider(figure, "first", "First position", step=32),
            controls.slider(figure, "count", "Number of positions", step=8),
        ],
        question="Along a text, does a pair ever turn backwards?",
        model=own.words if own else "",
    )
