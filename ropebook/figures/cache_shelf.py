"""The keys of a small model's cache on a shelf a layer, after the text before them has changed."""

from .figure import Choice, Figure, Whole

__all__ = ["CacheShelf", "cache_shelf"]


class CacheShelf(Figure):
    """Cached keys beside those of a fresh run, layer by layer (``cache_shelf.js``)."""

    question = "The text before them has changed: which cached keys are still right?"

    change = Choice(["words dropped", "chunk spliced", "all moved"], label="The text")
    cached = Choice(["as they are", "moved", "stored raw"], label="Cached keys")
    words = Whole(4, low=0, high=8, label="How many words", fold=True)
    word = Whole(8, low=0, high=11, help="the word whose keys are drawn")
    pair = Choice(["0", "1", "2", "3"], label="Pair that the arrows show", fold=True)


def cache_shelf(
    change: str = "words dropped",
    cached: str = "as they are",
    words: int = 4,
    pair: int = 0,
    word: int = 8,
) -> CacheShelf:
    """Return the cache shelf with its controls: twelve words, three layers with fixed weights.

    Parameters
    ----------
    change
        ``"words dropped"``: the first words go, the rest is kept. ``"chunk spliced"``: keys of a
        chunk that was read alone are put behind other words. ``"all moved"``: nothing is lost.
    cached
        What is done with the cached keys: left ``"as they are"``, ``"moved"`` to their new places,
        or ``"stored raw"`` and turned whenever they are read.
    words
        Words dropped, put before, or moved by, 0 to 8.
    pair
        Which pair of channels of the first head the arrows show, 0 to 3, fast to slow.
    word
        The word whose keys are drawn as arrows, 0 to 11.

    Returns
    -------
    CacheShelf
        The cut can be dragged, and words are pointed at.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind, unknown or out of range; the message names it.
    """
    return CacheShelf(change=change, cached=cached, words=words, pair=str(pair), word=word)
