"""The atlas: every model family's rotation as a wheel, to search, filter and sort."""

from typing import Any

import traitlets

from .figure import Choice, Figure, Flag, Whole

__all__ = ["COLUMNS", "FIELDS", "SHOW", "Atlas", "atlas"]

SHOW = [
    "all rotations",
    "half-split",
    "interleaved",
    "another layout",
    "clockwise",
    "part of the head",
    "the last channels",
    "base 10,000",
    "another base",
    "rescaled frequencies",
    "a factor on cos and sin",
    "several axes",
    "norm before the turn",
    "norm after the turn",
    "layers that do not turn",
    "two bases in a model",
    "promise broken",
]
"""What can be shown."""

COLUMNS = ["family", "layout", "turns", "base", "scaling", "axes", "promise"]
"""By what the rows can be sorted."""

FIELDS = [
    *("name", "family", "part", "head", "axes", "layout", "place", "width", "pairs", "direction"),
    *("base", "bases", "scaling", "factor", "series", "rotation", "broken", "deviation"),
    *("norm", "rests", "heard", "ran", "heads", "values", "findings", "rest", "wrong", "lost"),
    "dealt",
]
"""What is known of a row, in order.

Norms and values are known where ``heard`` is true, since more was run than a table and the
function that applies it; unrotated layers where ``ran`` is true, since the whole model ran.
``heads`` is true where not all heads of a module are rotated alike, each by itself; ``values``
where values are rotated like keys.

The last four are for comparing two rows: the factor on channels that do not turn, what is wrong
(its words, whether it is rounding, the hypothesis), whether an angle misses position times
frequency, and how pairs are dealt out to several axes.
"""


class Atlas(Figure):
    """A wall of rotations, and two of them side by side (``atlas.js``)."""

    question = "Whose rotations break the promise that scores see the distance alone?"

    show = Choice(SHOW, help="which rows are shown")
    sort = Choice(COLUMNS, help="the column that sorts them")
    down = Flag(False, help="whether the last comes first")
    search = traitlets.Unicode(help="words that all occur in a row").tag(sync=True)
    row = Whole(0, low=0, help="the number of the chosen row")
    other = Whole(0, low=0, help="the number of the row beside it")


def atlas(
    data: dict[str, Any],
    row: str | None = None,
    other: str | None = None,
    show: str = "all rotations",
    search: str = "",
) -> Atlas:
    """Return the atlas as a wall of wheels and a table, with two of its rows side by side.

    Parameters
    ----------
    data
        What ``ropebook.atlas.atlas_data()`` returns: ``columns``, which are ``FIELDS`` of this
        module, ``rows`` of as many values, and ``series``, the lists of frequencies that rows name
        by number.
    row, other
        Names of the chosen row and of the one beside it; the first one where not given.
    show
        One of ``SHOW`` of this module.
    search
        Words that must all occur in a row.

    Returns
    -------
    Atlas
        Wall, cards and table. Rows are chosen by pointer and arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it.
    """
    if not isinstance(data, dict) or data.get("columns") != FIELDS or not data.get("rows"):
        raise ValueError(f"data must hold rows with the columns {', '.join(FIELDS)}")
    if not isinstance(search, str):
        raise TypeError(f"search must be a str, got {type(search).__name__}")
    names = [values[0] for values in data["rows"]]
    places = {}
    for key, name in (("row", row), ("other", other)):
        if name is not None and name not in names:
            raise ValueError(f"{key} must be the name of a row, got {name!r}")
        places[key] = 0 if name is None else names.index(name)
    figure = Atlas(show=show, search=search, **places)
    figure.data = data
    return figure
