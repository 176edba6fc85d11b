"""All distances at once: one hand comes back, all hands together do not."""

import ipywidgets

from . import controls
from .figure import Figure, Whole

__all__ = ["Clock", "clock"]

FARTHEST = 131072


class Clock(Figure):
    """Every distance's code, and the hands at one of them (``clock.js``)."""

    pairs = Whole(64, low=1, high=64, help="hands: pairs of channels of the head")
    m = Whole(710, low=1, high=FARTHEST, help="the distance whose hands are shown, in tokens")


def clock(pairs: int = 64, m: int = 710) -> ipywidgets.VBox:
    """Return the clock of a head, all its distances at once, with its control.

    Parameters
    ----------
    pairs
        Pairs of channels of the head, each a hand of the clock, 1 to 64; base 10000.
    m
        The distance whose hands are shown, 1 to 131072 tokens.

    Returns
    -------
    VBox
        Question, figure and slider. A tap or the arrow keys choose another distance.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or out of range; the message names it.
    """
    figure = Clock(pairs=pairs, m=m)
    return controls.box(
        figure,
        [controls.slider(figure, "pairs", "Hands", unit="pairs of channels")],
        question="One hand comes back to its start. Do all of them ever come back together?",
    )
