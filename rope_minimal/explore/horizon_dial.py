"""One knob, two meters: how far the code stays monotone, and what that costs the neighbours."""

import ipywidgets

from . import controls
from .figure import Choice, Figure, Real

__all__ = ["HorizonDial", "horizon_dial"]


class HorizonDial(Figure):
    """Speed of the fastest hand against horizon and neighbour signal (``horizon_dial.js``)."""

    theta = Real(1.0, low=10**-4.5, high=1.0, help="radians per token of the fastest hand")
    window = Choice(["512", "2048", "8192", "32768"], default="2048", help="window n in tokens")


def horizon_dial(theta: float = 1.0, window: int = 2048) -> ipywidgets.VBox:
    """Return the dial between a long horizon and distinct neighbours, with its controls.

    Parameters
    ----------
    theta
        Radians per token of the fastest hand, 0.00003 to 1; the 64 hands turn by
        ``theta * 10000**(-2i/128)``.
    window
        The window ``n`` that the code should stay monotone in: 512, 2048, 8192 or 32768 tokens.

    Returns
    -------
    VBox
        Question, controls and figure. The knob follows the pointer and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or out of range; the message names it.
    """
    figure = HorizonDial(theta=theta, window=str(window))
    return controls.box(
        figure,
        [
            controls.log_slider(figure, "theta", "Turn per token θ₀", unit="rad", stops=500),
            controls.choice(figure, "window", "Window n (tokens)"),
        ],
        question="What does it cost to slow all hands until none turns back in the window?",
    )
