"""The paper's two figures as one: angle, wrapped angle, cosine, and the mean over all pairs."""

import math

from .figure import Even, Figure, Real, Whole

__all__ = ["WrapExplorer", "wrap_explorer"]


class WrapExplorer(Figure):
    """One pair over all distances, and the head it belongs to (``wrap_explorer.js``)."""

    question = "Angles fall back each turn: is a far token taken for a near one?"

    theta = Real(
        1.0,
        low=0.001,
        high=math.pi,
        label="Turn per token θ₀",
        unit="rad",
        per_decade=877,  # a stop reads right beside each button
        digits=4,
    )
    dim = Even(128, low=2, high=256, label="Head width d", unit="channels")
    distance = Whole(7, low=1, high=10000, help="the cursor's distance in tokens")


def wrap_explorer(theta: float = 1.0, dim: int = 128, distance: int = 7) -> WrapExplorer:
    """Return the wrap explorer with its controls.

    Parameters
    ----------
    theta
        Radians per token of the fastest pair, 0.001 to pi; pair ``i`` rotates by
        ``theta * 10000**(-2i/dim)``.
    dim
        Rotated width of one head, even, 2 to 256.
    distance
        Where the cursor stands at first, 1 to 10000 tokens.

    Returns
    -------
    WrapExplorer
        The cursor follows the pointer and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or out of range; the message names it.
    """
    return WrapExplorer(theta=theta, dim=dim, distance=distance)
