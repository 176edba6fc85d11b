"""Small models, trained with each encoding: what they score in every task, as the texts grow."""

from typing import Any

import traitlets

from .figure import Choice, Figure, Flag

__all__ = ["ENTRIES", "TASKS", "TrainedModels", "trained_models"]

TASKS = ["copy", "find", "induction", "language"]
"""The tasks, by the names of ``experiments.tasks``."""

ENTRIES = [
    "RoPE",
    "the proposal, half a turn",
    "the proposal, one turn",
    "one frequency for all pairs",
    "one pair turns, fifteen rest",
    "fast pairs only (p-RoPE)",
    "slow pairs only",
    "no encoding",
    "layer 1 rotates, layer 2 rests",
    "ALiBi",
    "T5 bias",
    "q and k in different layouts",
    "RoPE, no causal mask",
    "sinusoidal, added to the input",
    "learned, added to the input",
    "rotated before the projection",
    "the proposal, 0.4096 as printed",
    "ALiBi, steeper",
    "T5 bias, to 64",
    "one frequency, half a turn",
    "one pair turns by 0.1, fifteen rest",
]
"""What can be compared, in the words of ``experiments.encodings``."""


class TrainedModels(Figure):
    """Every encoding in every task, each beside RoPE (``trained_models.js``)."""

    question = "The same model, the same text, another encoding: does it matter?"

    task = Choice(TASKS, help="the task that sorts the rows")
    encoding = Choice(ENTRIES, default=ENTRIES[1], help="the chosen row")
    half = Flag(False, help="whether the scores are those in bfloat16")

    @traitlets.validate("data")
    def _check_data(self, given: Any) -> dict[str, Any]:
        """Let the data hold all tasks, and known encodings only."""
        tasks = given["value"].get("tasks") or []
        names = [task.get("name") for task in tasks]
        if names != TASKS:
            raise ValueError(f"data must hold the tasks {', '.join(TASKS)}; got {names!r}")
        for task in tasks:
            if unknown := set(task.get("entries", [None])) - set(ENTRIES):
                raise ValueError(f"data must hold known encodings only, got {unknown!r}")
        return given["value"]


def trained_models(
    data: dict[str, Any],
    task: str = "copy",
    encoding: str = ENTRIES[1],
    half: bool = False,
) -> TrainedModels:
    """Return the trained models, side by side.

    Parameters
    ----------
    data
        What ``experiments.figure.trained_models_data()`` returns.
    task
        One of ``TASKS`` of this module; the rows are sorted by it.
    encoding
        One of ``ENTRIES``: the row that is read.
    half
        Whether to show the scores in bfloat16 instead of float32.

    Returns
    -------
    TrainedModels
        It has buttons for the task and for 16 bits; the row follows the pointer
        and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it.
    """
    figure = TrainedModels(task=task, encoding=encoding, half=half)
    figure.data = data
    return figure
