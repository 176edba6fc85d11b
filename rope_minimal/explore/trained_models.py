"""Small models, trained with each encoding: eight seeds' scores, their intervals, their hands."""

from typing import Any

import ipywidgets
import traitlets

from . import controls
from .figure import Choice, Figure, Whole

__all__ = ["AIDS", "ENTRIES", "TASKS", "TrainedModels", "trained_models"]

TASKS = [
    "copy the token from 7 steps back",
    "find the token marked as asked",
    "repeat what followed last time",
    "predict the next byte of English",
]
"""The tasks, in the words of ``experiments.tasks``."""

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
]
"""What can be compared, in the words of ``experiments.encodings``."""

AIDS = [
    "temperature",
    "PI",
    "NTK",
    "by parts, knees 4 and 1",
    "YaRN, knees 4 and 1",
    "by parts, knees 32 and 1, as printed",
    "YaRN, knees 32 and 1, as printed",
    "by parts, knees 32 and 1, as released",
    "YaRN, knees 32 and 1, as released",
    "only keys seen at trained distances",
    "longer distances coded as 63",
]
"""What is done to a trained model before a text of four windows; the last two are experiments."""


class TrainedModels(Figure):
    """Every seed's score by length, distance and aid; a trained head (``trained_models.js``)."""

    task = Choice(TASKS, help="what the models were trained for")
    encoding = Choice(ENTRIES, default="the proposal, half a turn", help="how positions came in")
    against = Choice(["nothing", *ENTRIES], default="RoPE", help="a second one to compare with")
    times = Choice(["1", "2", "4", "8"], help="length of the text in windows of the training")
    aid = Choice(AIDS, default="by parts, knees 4 and 1", help="the row that the caption reads")
    m = Whole(7, low=0, high=64, help="the distance that the hands and the cursor show")
    data = traitlets.Dict(help="the records, from ``experiments.figure.trained_models_data``").tag(
        sync=True, fixed=True
    )

    @traitlets.validate("data")
    def _check_data(self, proposal: Any) -> dict[str, Any]:
        data = proposal["value"]
        words = [task["words"] for task in data.get("tasks", [])]
        if words != TASKS:
            raise ValueError(f"data must hold the tasks {', '.join(TASKS)}; got {words!r}")
        for task in data["tasks"]:
            aids = {aid for entry in task["entries"].values() for aid in entry.get("aids", ())}
            if unknown := set(task["entries"]) - set(ENTRIES) | aids - set(AIDS):
                raise ValueError(f"data must hold known entries only, got {unknown!r}")
        return data


def trained_models(
    data: dict[str, Any],
    task: str = TASKS[0],
    encoding: str = "the proposal, half a turn",
    against: str = "RoPE",
    times: int = 1,
) -> ipywidgets.VBox:
    """Return the trained models, with its controls.

    Parameters
    ----------
    data
        What ``experiments.figure.trained_models_data()`` returns.
    task
        One of ``TASKS`` of this module.
    encoding
        One of ``ENTRIES``.
    against
        One of ``ENTRIES``, or ``"nothing"``.
    times
        The length of the text in windows of the training: 1, 2, 4 or 8.

    Returns
    -------
    VBox
        Question, controls and figure. The distance on the hands follows the pointer over the
        attention, and the arrow keys; so does the row of the aids that the caption reads.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it.
    """
    figure = TrainedModels(task=task, encoding=encoding, against=against, times=str(times))
    figure.data = data
    return controls.box(
        figure,
        [
            controls.choice(figure, "task", "Task"),
            controls.choice(figure, "times", "Length of the text (windows of the training)"),
            controls.choice(figure, "encoding", "Encoding"),
            controls.choice(figure, "against", "Compare with"),
        ],
        question="The same model, the same text, another encoding: does it matter?",
    )
