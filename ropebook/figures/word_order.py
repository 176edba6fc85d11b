"""Four words to put in another order, and the scores that attention has for them."""

from itertools import permutations

from .figure import Choice, Figure, Flag

__all__ = ["WordOrder", "word_order"]

WORDS = ("from", "Beijing", "to", "Shanghai")
ORDERS = [" ".join(order) for order in permutations(WORDS)]


class WordOrder(Figure):
    """Scores and outputs of one layer for the same words in any order (``word_order.js``)."""

    question = "The words change places: do their numbers change?"

    positions = Flag(False, label="Give each word its position (RoPE)")
    order = Choice(ORDERS, help="the words as they stand")
    word = Choice(list(WORDS), default="Shanghai", help="the word that the arrow keys move")


def word_order(
    order: str = ORDERS[0], positions: bool = False, word: str = "Shanghai"
) -> WordOrder:
    """Return the four words of two tickets as cards, with their scores and their outputs.

    Parameters
    ----------
    order
        The words *from*, *Beijing*, *to* and *Shanghai* in any order, with spaces between them.
    positions
        Whether queries and keys are turned by their positions, as RoPE turns them.
    word
        The word that the arrow keys move.

    Returns
    -------
    WordOrder
        The words can be dragged.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it.
    """
    return WordOrder(order=order, positions=positions, word=word)
