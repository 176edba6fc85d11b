"""All distances at once: one pair comes back to its start, all pairs together do not."""

from typing import Any

from .figure import Figure, Whole
from .own_model import read_model

__all__ = ["Clock", "clock"]

FARTHEST = 131072


class Clock(Figure):
    """Every distance's code, and the angles at one of them (``clock.js``)."""

    question = "One hand comes back to its start. Do all of them ever come back together?"

    pairs = Whole(64, low=1, high=64, label="Hands", unit="pairs of channels")
    m = Whole(710, low=1, high=FARTHEST, help="the distance that is shown, in tokens")


def clock(pairs: int = 64, m: int = 710, model: Any = None) -> Clock:
    """Return the clock of a head, all its distances at once, with its control.

    Parameters
    ----------
    pairs
        Pairs of channels of the head, each a hand of the clock, 1 to 64; base 10000.
    m
        The distance that is shown, 1 to 131072 tokens.
    model
        Your own model instead of ``pairs`` and base 10000: a `Report` of `identify`; a model or
        configuration of transformers, or the dict of one; or inverse frequencies in radians per
        token, shape (pairs,). At most 512 pairs.

    Returns
    -------
    Clock
        A tap or the arrow keys choose another distance.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or out of range; the message names it. If the model makes
        no rotation, several, or one of positions with several axes.
    """
    own = None if model is None else read_model(model)
    figure = Clock(pairs=pairs, m=m)
    if own:
        own.draw_in(figure, without=("pairs",))
    return figure
