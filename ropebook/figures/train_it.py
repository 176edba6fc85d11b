"""A small model, trained in the page: which encoding, which bug, and how far it carries."""

from typing import Any

import traitlets

from .figure import Choice, Figure, Whole
from .trained_models import ENTRIES

__all__ = ["BUGS", "ENCODINGS", "RATES", "TASKS", "TrainIt", "train_it"]

ENCODINGS = [
    *ENTRIES,
    "CoPE, clipped frequencies",
    "two bases, local and global",
    "local RoPE, then no encoding",
]
"""What can be trained, in the words of ``experiments.encodings`` and ``experiments.recent``."""

BUGS = [
    "none",
    "q and k in different layouts",
    "keys turn backwards",
    "positions begin again every 16",
    "the base is lost",
]
"""What can be wrong with the rotation."""

TASKS = ["copy", "find", "induction"]
RATES = ["as in the record", "0.001", "0.003", "0.01", "0.03", "0.1"]


class TrainIt(Figure):
    """A model in training, and its accuracy as texts grow (``train_it.js``).

    ``runs`` has what was trained: names, settings, losses, attention and, after a stretch, scores.
    """

    question = "Train it yourself: what does it do with longer texts?"

    encoding = Choice(ENCODINGS, label="Encoding")
    bug = Choice(BUGS, label="Bug in the rotation")
    task = Choice(TASKS, label="Task")
    rate = Choice(RATES, label="Learning rate", fold=True)
    seed = Whole(0, low=0, high=7, label="Seed", fold=True)
    runs = traitlets.List(traitlets.Dict(), help="the last models that were trained").tag(sync=True)

    @traitlets.validate("data")
    def _check_data(self, given: Any) -> dict[str, Any]:
        """Let the data hold all encodings and all tasks."""
        for name, wanted in (("encodings", ENCODINGS), ("tasks", TASKS)):
            got = list(given["value"].get(name, ()))
            if got != wanted:
                raise ValueError(f"data must hold the {name} {', '.join(wanted)}; got {got!r}")
        return given["value"]


def train_it(
    data: dict[str, Any], encoding: str = "RoPE", task: str = "copy", bug: str = "none"
) -> TrainIt:
    """Return a figure that trains a model of the contest in the browser.

    Parameters
    ----------
    data
        What ``experiments.figure.train_it_data()`` returns.
    encoding, task, bug
        One of ``ENCODINGS``, ``TASKS`` and ``BUGS`` of this module: what is trained first.

    Returns
    -------
    TrainIt
        It has lists for the encoding and the bug, buttons for the task; rate and seed lie in the
        fold.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it.
    """
    figure = TrainIt(encoding=encoding, task=task, bug=bug)
    figure.data = data
    return figure
