"""The keys of a small model's cache on a shelf a layer, after the text before them has changed."""

from . import controls
from .figure import Choice, Figure, Whole

__all__ = ["CacheShelf", "cache_shelf"]


class CacheShelf(Figure):
    """Cached keys beside those of a fresh run, layer by layer (``cache_shelf.js``)."""

    change = Choice(
        ["words dropped", "chunk spliced", "all moved"],
        help="what happens to the text whose keys are in the cache",
    )
    cached = Choice(
        ["moved", "left", "stored raw"],
        help="turned on to their new places, or not, or turned only when they are read",
    )
    words = Whole(4, low=0, high=8, help="words dropped, put before, or moved by")
    pair = Choice(["0", "1", "2", "3"], help="pair of channels that the arrows show")


def cache_shelf(
    change: str = "words dropped", cached: str = "moved", words: int = 4, pair: int = 0
) -> controls.FigureBox:
    """Return the cache shelf with its controls: twelve words, three layers with fixed weights.

    Parameters
    ----------
    change
        ``"words dropped"``: the first words go, the rest is kept. ``"chunk spliced"``: keys of a
        chunk that was read alone are put behind other words. ``"all moved"``: nothing is lost.
    cached
        What is done with the cached keys: ``"moved"`` to their new places, ``"left"`` as they are,
        or ``"stored raw"`` and turned whenever they are read.
    words
        Words dropped, put before, or moved by, 0 to 8.
    pair
        Which pair of channels of the first head the arrows show, 0 to 3, fast to slow.

    Returns
    -------
    FigureBox
        Question, figure and controls; the cut can be dragged.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind, unknown or out of range; the message names it.
    """
    figure = CacheShelf(change=change, cached=cached, words=words, pair=str(pair))
    return controls.box(
        figure,
        [
            controls.choice(figure, "change", "The text"),
            controls.choice(figure, "cached", "Cached keys"),
            controls.slider(figure, "words", "How many words"),
        ],
        more=[controls.choice(figure, "pair", "Pair that the arrows show")],
        question="The text before them has changed: which cached keys are still right?",
    )
