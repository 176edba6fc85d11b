"""Data of the recorded runs for the interactive figure of chapter 8."""

from typing import Any

from . import summary
from .encodings import ENCODINGS
from .run import TIMES
from .tasks import TASKS, Task


def trained_models_data() -> dict[str, Any]:
    """Return the data of `ropebook.figures.trained_models`: the score of every seed.

    Returns
    -------
    dict
        ``times``, and ``tasks``: a list with ``name``, ``unit``, ``chance`` and ``entries``, by the
        words of the encoding. An entry has ``scores``, one a seed for each length, and
        ``bfloat16``, the same in half precision, as far as measured.
    """
    tasks = [
        {"unit": task.unit, "chance": summary.chance(task.name), **_entries(task)}
        for task in TASKS.values()
    ]
    return {"times": list(TIMES), "tasks": tasks}


def _entries(task: Task) -> dict[str, Any]:
    record = summary.load(task.name)
    runs = {name: summary.measured(record, name) for name in record["settings"]["encodings"]}
    entries = {ENCODINGS[name].words: _scores(task, run) for name, run in runs.items()}
    return {"name": task.name, "entries": entries}


def _scores(task: Task, run: dict[str, Any]) -> dict[str, Any]:
    def scores(tests: dict[str, Any]) -> list[list[float]]:
        return [tests[str(n)][task.unit] for n in TIMES if str(n) in tests]

    return {"scores": scores(run["test"]["none"]), "bfloat16": scores(run["test"]["bfloat16"])}
