"""A text with an image and a video in it: where its tokens stand, and the pairs of each axis."""

from .figure import Choice, Figure, Whole

__all__ = ["ThreeClocks", "three_clocks"]


class ThreeClocks(Figure):
    """Time, row and column of every token, each a clock (``three_clocks.js``)."""

    question = "An image stands in the text: at which position does the next word stand?"

    plan = Choice(["chunked", "dealt out"], label="Pairs among the axes", fold=True)
    token = Whole(25, low=0, high=46, help="the token that is looked at")


def three_clocks(plan: str = "chunked", token: int = 25) -> ThreeClocks:
    """Return the three clocks of a text with an image and a video in it, with their control.

    Parameters
    ----------
    plan
        ``"chunked"``: 16 pairs for time, 24 for rows, 24 for columns, as in Qwen2-VL.
        ``"dealt out"``: one by one in turn, 24, 20 and 20 of them, as in Qwen3-VL.
    token
        Number of the token that is looked at, 0 to 46; the text that is chunked ends with 42. At
        first the last one of the image: the next word is still to come.

    Returns
    -------
    ThreeClocks
        A tap, a drag or the arrow keys choose another token; positions are drawn up to it.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind, unknown or out of range; the message names it.
    """
    return ThreeClocks(plan=plan, token=token)
