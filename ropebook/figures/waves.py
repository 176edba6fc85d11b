"""The waves of one head: heights and starts from the content, frequencies fixed, and their sum."""

from .figure import Choice, Figure, Whole

__all__ = ["Waves", "waves"]

FARTHEST = 200


class Waves(Figure):
    """The score of one head over the distance as a sum of waves (``waves.js``)."""

    question = "Every pair adds a wave. At which distance do their crests meet?"

    aim = Whole(60, low=0, high=FARTHEST, label="Key turned beforehand by", unit="tokens")
    pairs = Choice(["1", "2", "8", "64"], default="64", label="Waves (pairs of channels)")
    distance = Whole(60, low=0, high=FARTHEST, label="Distance s", unit="tokens", fold=True)
    content = Choice(
        ["key = query", "fast half", "slow half", "random"],
        label="Content of query and key",
        fold=True,
    )
    draw = Whole(0, low=0, high=2**31 - 1, help="which random content")


def waves(
    distance: int = 60, aim: int = 60, pairs: int = 64, content: str = "key = query"
) -> Waves:
    """Return the waves of one head with their controls.

    Parameters
    ----------
    distance
        Distance between query and key in tokens, 0 to 200.
    aim
        Tokens by which the key is turned before the positions turn it, 0 to 200.
    pairs
        1, 2, 8 or 64 pairs of channels; base 10000.
    content
        ``"key = query"``: all pairs of one length; ``"fast half"`` or ``"slow half"``: the same
        lengths of query and key, put into half of the pairs; ``"random"``: independent normal
        numbers.

    Returns
    -------
    Waves
        "Random content" draws another query and key.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or out of range; the message names it.
    """
    return Waves(distance=distance, aim=aim, pairs=str(pairs), content=content)
