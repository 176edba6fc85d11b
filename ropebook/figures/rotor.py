"""Two words of a sentence as arrows of one plane: the score knows how far apart they are."""

from .figure import Figure, Flag, Whole

__all__ = ["Rotor", "rotor"]


class Rotor(Figure):
    """Query and key as arrows of one plane, turned by their positions (``rotor.js``)."""

    question = "What does the score know about where two words stand?"

    theta = Whole(15, low=0, high=180, label="Turn per word θ", unit="degrees", fold=True)
    m = Whole(5, low=0, high=11, label="Query at word m", fold=True)
    n = Whole(1, low=0, high=11, label="Key at word n", fold=True)
    plays = Flag(help="whether it moves by itself, once").tag(fixed=True)


def rotor(m: int = 5, n: int = 1, theta: int = 15, *, plays: bool = False) -> Rotor:
    """Return the two-dimensional rotor with its controls.

    Parameters
    ----------
    m
        Position of the query in a sentence of twelve words, 0 to 11.
    n
        Position of the key, 0 to 11.
    theta
        Turn of the plane in degrees per position, 0 to 180.
    plays
        Whether it moves both words by itself, once, when it comes into view (not where the reader
        wants motion reduced).

    Returns
    -------
    Rotor
        Its sliders lie in a fold: the words' markers are handles themselves.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or out of range; the message names it.
    """
    figure = Rotor(m=m, n=n, theta=theta)
    figure.plays = plays
    return figure
