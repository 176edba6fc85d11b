"""One trained head: where it looks, and which pairs it uses."""

from typing import Any

import traitlets

from .figure import Choice, Figure, Whole
from .trained_models import ENTRIES, TASKS, check_entries

__all__ = ["TrainedHead", "trained_head"]


class TrainedHead(Figure):
    """A head's attention by distance, its use of pairs, and their angles (``trained_head.js``)."""

    question = "Where does a trained head look, and with which pairs?"

    task = Choice(TASKS, label="Task")
    encoding = Choice(ENTRIES, label="Encoding")
    m = Whole(7, low=0, high=32, help="the distance that is shown")

    @traitlets.validate("data")
    def _check_data(self, given: Any) -> dict[str, Any]:
        return check_entries(given["value"])


def trained_head(
    data: dict[str, Any], task: str = "copy", encoding: str = "RoPE", m: int = 7
) -> TrainedHead:
    """Return one trained head with its controls.

    Parameters
    ----------
    data
        What ``experiments.figure.trained_heads_data()`` returns.
    task
        One of ``TASKS`` of `trained_models`' module.
    encoding
        One of its ``ENTRIES``.
    m
        The distance, 0 to 32 tokens.

    Returns
    -------
    TrainedHead
        The distance follows the pointer and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it.
    """
    figure = TrainedHead(task=task, encoding=encoding, m=m)
    figure.data = data
    return figure
