"""Data of the recorded runs for the interactive figures of chapter 8."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import summary
from .encodings import ENCODINGS
from .run import SIZES, TIMES
from .tasks import TASKS, Task

HEAD_DIM = SIZES["width"] // SIZES["heads"]


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
        {"unit": task.unit, "chance": summary.chance(task.name), **_entries(task, _scores)}
        for task in TASKS.values()
    ]
    return {"times": list(TIMES), "tasks": tasks}


def trained_heads_data() -> dict[str, Any]:
    """Return the data of `ropebook.figures.trained_head`: one trained head per encoding.

    Returns
    -------
    dict
        ``tasks``: a list with ``name`` and ``entries``, by the words of the encoding. An entry is
        seed 0's layer that puts the most attention on a single distance: ``layer``, ``inv_freq``
        (zero where no pair rotates), ``usage`` (the share of each pair in
        ``|q_i| |k_i|``) and ``attention`` (by distance).
    """
    return {"tasks": [_entries(task, _sharpest_layer) for task in TASKS.values()]}


def _entries(task: Task, entry: Callable[[Task, str, dict[str, Any]], Any]) -> dict[str, Any]:
    record = summary.load(task.name)
    runs = {name: summary.measured(record, name) for name in record["settings"]["encodings"]}
    entries = {ENCODINGS[name].words: entry(task, name, run) for name, run in runs.items()}
    return {"name": task.name, "entries": entries}


def _scores(task: Task, encoding: str, run: dict[str, Any]) -> dict[str, Any]:
    def scores(tests: dict[str, Any]) -> list[list[float]]:
        return [tests[str(n)][task.unit] for n in TIMES if str(n) in tests]

    return {"scores": scores(run["test"]["none"]), "bfloat16": scores(run["test"]["bfloat16"])}


def _sharpest_layer(task: Task, encoding: str, run: dict[str, Any]) -> dict[str, Any]:
    attention, usage = (np.array(run[what][0]) for what in ("attention", "usage"))
    layer, head, _ = np.unravel_index(attention.argmax(), attention.shape)
    share = usage[layer, head] / usage[layer, head].sum()
    return {
        "layer": int(layer),
        "inv_freq": [float(f"{theta:.4g}") for theta in rotation_of(task, encoding, int(layer))],
        "usage": _short(share),
        "attention": _short(attention[layer, head]),
    }


def rotation_of(task: Task, encoding: str, layer: int) -> np.ndarray:
    """Return the inverse frequencies of the pairs of q and k, in radians per position.

    They are 0 for layers without rotation, and where q and k have no common pairs: rotated before
    the projection, or in two layouts.
    """
    how = ENCODINGS[encoding]
    apart = how.before_projection or how.mixed_layouts or layer in how.unrotated_layers
    if how.inv_freq is None or apart:
        return np.zeros(HEAD_DIM // 2)
    return how.inv_freq(HEAD_DIM, task.window)


def _short(values: Sequence[float]) -> list[float]:
    return [round(float(value), 3) for value in values]
