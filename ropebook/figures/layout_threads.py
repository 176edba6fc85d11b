"""Rows of W_q and W_k as threads from one layout to the other, beside the scores they make."""

from .figure import Choice, Figure, Flag, Whole

__all__ = ["FAMILIES", "LayoutThreads", "layout_threads"]

FAMILIES = {
    "a small head, 16 channels": (16, 16, True, 1),
    "Llama, Meta's files: 128": (128, 128, True, 1),
    "Llama, Hugging Face's files: 128": (128, 128, False, 1),
    "GPT-J: 64 of 256": (256, 64, True, 1),
    "GPT-NeoX: 24 of 96": (96, 24, False, 1),
    "GLM-4: 64 of 128": (128, 64, True, 1),
    "Phi: 32 of 64": (64, 32, False, 1),
    "nanochat, clockwise: 128": (128, 128, False, -1),
}
"""Head width, rotated width, whether the file is interleaved, and +1 for counter-clockwise."""


class LayoutThreads(Figure):
    """A head's channels in the file's order and in the code's order (``layout_threads.js``)."""

    question = "Weights made for one layout, code written for the other: which rows must move?"

    permute_q = Flag(False, label="Permute the rows of W_q")
    permute_k = Flag(False, label="Permute the rows of W_k")
    family = Choice(list(FAMILIES), label="Weights of", fold=True)
    channel = Whole(2, low=0, high=255, help="the channel that the reader looks at")


def layout_threads(
    family: str = "a small head, 16 channels", permute_q: bool = False, permute_k: bool = False
) -> LayoutThreads:
    """Return the threads of W_q and W_k between the two layouts, with their controls.

    Parameters
    ----------
    family
        Whose weights are converted, one of ``FAMILIES``.
    permute_q
        Whether the rows of W_q are permuted at first.
    permute_k
        Whether those of W_k are.

    Returns
    -------
    LayoutThreads
        The channel follows the pointer and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it.
    """
    return LayoutThreads(family=family, permute_q=permute_q, permute_k=permute_k)
