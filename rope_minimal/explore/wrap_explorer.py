"""The paper's two figures as one: angle, wrapped angle, cosine, and the mean of the bank."""

import ipywidgets

from . import controls
from .figure import Even, Figure, Real, Whole

__all__ = ["WrapExplorer", "wrap_explorer"]


class WrapExplorer(Figure):
    """One hand over the distances, and the bank it belongs to (``wrap_explorer.js``)."""

    theta = Real(1.0, low=0.001, high=10**0.5, help="radians per token of the fastest hand")
    window = Whole(20, low=8, high=2048, help="largest distance shown, in tokens")
    dim = Even(128, low=2, high=256, help="rotated width of one head")
    distance = Whole(7, low=0, high=2048, help="the cursor's distance in tokens")


def wrap_explorer(
    theta: float = 1.0, window: int = 20, dim: int = 128, distance: int = 7
) -> ipywidgets.VBox:
    """Return the wrap explorer with its controls.

    Parameters
    ----------
    theta
        Radians per token of the fastest hand, 0.001 to 3.16; hand ``i`` turns by
        ``theta * 10000**(-2i/dim)``.
    window
        Largest distance shown, 8 to 2048 tokens.
    dim
        Rotated width of one head, even, 2 to 256.
    distance
        Where the cursor stands at first, 0 to ``window``.

    Returns
    -------
    VBox
        Question, controls and figure. The cursor follows the pointer and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or out of range; the message names it.
    """
    figure = WrapExplorer(theta=theta, window=window, dim=dim, distance=distance)
    if distance > window:
        raise ValueError(f"distance must be <= window = {window}, got {distance}")
    return controls.box(
        figure,
        [
            controls.log_slider(figure, "theta", "Turn per token θ₀", unit="rad", stops=500),
            controls.slider(figure, "window", "Largest distance", unit="tokens", step=1),
            controls.slider(figure, "dim", "Head width d", unit="channels", step=2),
        ],
        question="At distance 7 the angle falls back to 0.72: is a far token taken for a near one?",
    )
