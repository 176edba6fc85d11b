"""The angle of every pair at every position, as it is and as it is shown."""

import math
from typing import Any

import ipywidgets
import traitlets

from .figure import Choice, Even, Figure, Real, Whole
from .own_model import MOST, read_model

__all__ = ["AngleHeatmap", "angle_heatmap"]

FARTHEST = 131072


class AngleHeatmap(Figure):
    """The true angle beside what is shown of it, and one pair of both (``angle_heatmap.js``)."""

    question = "Along a text, does a pair ever turn backwards?"

    show = Choice(["wrapped angle", "cosine"], label="Beside the true angle")
    dim = Even(128, low=2, high=256, label="Head width", unit="channels", fold=True)
    base = Real(10000.0, low=10.0, high=1e7, label="Base", per_decade=10, digits=3, fold=True)
    first = Whole(0, low=0, high=FARTHEST, label="First position", every=32, fold=True)
    count = Whole(256, low=8, high=512, label="Number of positions", every=8, fold=True)
    position = Whole(44, low=0, high=FARTHEST + 512, help="the cursor's position")
    pair = Whole(8, low=0, high=MOST - 1, help="the cursor's pair")
    _elsewhere: traitlets.List[str] = traitlets.List(help="traits with a slider of ipywidgets").tag(
        sync=True
    )

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Show the heatmap above sliders of ipywidgets, linked to it in the browser.

        A page without a kernel, or a saved file, shows the heatmap with controls of its own.
        """
        folded = [control for control in self._controls if control["fold"]]
        self._elsewhere = [control["name"] for control in folded]
        box = ipywidgets.VBox([self, *(self._slider(**control) for control in folded)])
        return box._repr_mimebundle_(**kwargs)

    def _slider(
        self, name: str, label: str, every: int = 1, per_decade: int = 0, **_: Any
    ) -> ipywidgets.Widget:
        low, high, _ = self._limits[name]
        if per_decade:
            slider = ipywidgets.FloatLogSlider(
                min=math.log10(low), max=math.log10(high), step=1 / per_decade
            )
        else:
            slider = ipywidgets.IntSlider(min=low, max=high, step=every)
        slider.value, slider.description = getattr(self, name), label
        slider.style.description_width, slider.layout.width = "11em", "auto"
        slider.link = ipywidgets.jslink((slider, "value"), (self, name))
        return slider


def angle_heatmap(
    dim: int = 128,
    base: float = 10000.0,
    first: int = 0,
    count: int = 256,
    show: str = "wrapped angle",
    pair: int | None = None,
    model: Any = None,
) -> AngleHeatmap:
    """Return the angle heatmap with its controls: in a notebook, sliders of ipywidgets.

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
    AngleHeatmap
        The cursor follows the pointer and the arrow keys.

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
    figure.position = first + min(44, count - 1)
    figure.start_here()
    if own:
        own.draw_in(figure, without=("dim", "base"))
    return figure
