"""Up to 64 hands on one dial: one of them comes back, all of them together do not."""

import ipywidgets

from . import controls
from .figure import Choice, Figure, Whole

__all__ = ["Clock", "clock"]

FARTHEST = 131072


class Clock(Figure):
    """Every hand of a head at one distance, and how far from its start (``clock.js``)."""

    m = Whole(44, low=0, high=FARTHEST, help="distance in tokens")
    dim = Choice(["2", "4", "8", "128"], default="128", help="rotated width of one head")


def clock(m: int = 44, dim: int = 128) -> ipywidgets.VBox:
    """Return the clock of all hands with its controls.

    Parameters
    ----------
    m
        Distance between query and key in tokens, 0 to 131072.
    dim
        Rotated width of one head: 2, 4, 8 or 128, which is 1, 2, 4 or 64 hands; base 10000.

    Returns
    -------
    VBox
        Question, controls and figure. "Find the nearest" tries every distance.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or out of range; the message names it.
    """
    figure = Clock(m=m, dim=str(dim))
    return controls.box(
        figure,
        [
            controls.slider(figure, "m", "Distance m", unit="tokens"),
            controls.choice(figure, "dim", "Head width d (two channels a hand)"),
        ],
        question="One hand comes back to its start. Do all of them ever come back together?",
    )
