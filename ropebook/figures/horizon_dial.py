"""One slider, two meters: how far a score keeps falling, and how far adjacent positions differ."""

import math

from .figure import Figure, Real

__all__ = ["HorizonDial", "horizon_dial"]


class HorizonDial(Figure):
    """All pairs slowed: where one turns back, and how loud a step is (``horizon_dial.js``)."""

    question = "What does it cost to slow all hands until none turns back in the window?"

    slower = Real(
        1.0,
        low=1.0,
        high=2000.0,
        label="All hands slowed by a factor of",
        per_decade=500,
        digits=4,
    )


def horizon_dial(slower: float = 2048 / math.pi) -> HorizonDial:
    """Return the two meters of a slowed head, with their slider.

    Parameters
    ----------
    slower
        Factor by which the 64 pairs of a head, ``10000**(-2i/128)`` radians per token, are slowed,
        1 to 2000. By default the fastest makes half a turn in the window of 2,048 tokens.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or out of range; the message names it.
    """
    return HorizonDial(slower=slower)
