"""Two arrows in one plane: the angle between them knows only the distance."""

import ipywidgets

from . import controls
from .figure import Figure, Real, Whole

__all__ = ["Rotor", "rotor"]


class Rotor(Figure):
    """Query and key as arrows of one plane, turned by their positions (``rotor.js``)."""

    m = Whole(7, low=0, high=60, help="position of the query")
    n = Whole(3, low=0, high=60, help="position of the key")
    theta = Real(0.3, low=0.0, high=3.14, help="radians per position")


def rotor(m: int = 7, n: int = 3, theta: float = 0.3) -> ipywidgets.VBox:
    """Return the two-dimensional rotor with its controls.

    Parameters
    ----------
    m
        Position of the query, 0 to 60.
    n
        Position of the key, 0 to 60.
    theta
        Inverse frequency of the plane in radians per position, 0 to 3.14.

    Returns
    -------
    VBox
        Question, sliders and figure. "Shift both by 5" moves ``m`` and ``n`` together.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or out of range; the message names it.
    """
    figure = Rotor(m=m, n=n, theta=theta)
    return controls.box(
        figure,
        [
            controls.slider(figure, "m", "Query position m"),
            controls.slider(figure, "n", "Key position n"),
            controls.slider(figure, "theta", "Turn per position θ", unit="rad", step=0.01),
        ],
        question="What does the angle between query and key depend on?",
    )
