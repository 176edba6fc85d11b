"""What the moving figure `rope_minimal.explore.trained_models` shows of the recorded runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import summary
from .encodings import AIDS, ENCODINGS, RAMPS, SIGHTS
from .run import AIDED, BINS, SIZES, TIMES
from .tasks import TASKS, Task

HEAD_DIM = SIZES["width"] // SIZES["heads"]
DONE = {**AIDS, **RAMPS, **SIGHTS}
"""Whatever is done to a trained model before a text of four windows, in words."""


def trained_models_data() -> dict[str, Any]:
    """Return the data of the figure: every seed's score, and one trained head per encoding.

    Returns
    -------
    dict
        ``times``; ``aided_times``, the length that the aids are measured at; ``done``, the words
        for these aids and experiments, in groups; ``bins``, the edges of the distances; ``tasks``,
        a list with ``words``, ``window``, ``unit``, ``chance`` and ``entries``, by the words of
        the encoding. An entry has ``scores``, one a seed for each length; ``bfloat16`` and
        ``stored``, the same in half precision, as far as measured; ``twice``, the scores of two
        other seeds with twice the steps, or None; ``aids``, the scores after each thing done;
        where the task is scored by distance ``bins``, for each length and distance the median
        over the seeds and the ends of its interval; and of seed 0's layer that puts the most
        attention on a single distance ``layer``, ``inv_freq`` (zero where no pair turns with the
        distance), ``usage`` (the share of each pair in ``|q_i| |k_i|``) and ``attention`` (by
        distance).
    """
    return {
        "times": list(TIMES),
        "aided_times": AIDED,
        "done": [list(group.values()) for group in (AIDS, RAMPS, SIGHTS)],
        "bins": list(BINS),
        "tasks": [_task(task) for task in TASKS.values()],
    }


def _task(task: Task) -> dict[str, Any]:
    record = summary.load(task.name)
    return {
        "words": task.words,
        "window": task.window,
        "unit": task.unit,
        "chance": summary.chance(task.name),
        "entries": {
            ENCODINGS[name].words: _entry(task, record, name)
            for name in record["settings"]["encodings"]
        },
    }


def _entry(task: Task, record: dict[str, Any], encoding: str) -> dict[str, Any]:
    run = summary.measured(record, encoding)
    test, twice = run["test"], summary.runs(record, encoding, "twice")

    def scores(tests: dict[str, Any]) -> list[list[float]]:
        return [tests[str(n)][task.unit] for n in TIMES if str(n) in tests]

    return {
        "scores": scores(test["none"]),
        "bfloat16": scores(test["bfloat16"]),
        "stored": scores(test["stored"]),
        "twice": scores(twice[0]["test"]["none"]) if twice else None,
        "aids": {words: scores(test[kind])[0] for kind, words in DONE.items() if kind in test},
        **(
            {
                "bins": [
                    [_short(one[:3], 2) for one in summary.by_bin(test["none"][str(n)]["bins"])]
                    for n in TIMES
                ]
            }
            if task.by_distance
            else {}
        ),
        **_sharpest_layer(task, encoding, run),
    }


def _sharpest_layer(task: Task, encoding: str, run: dict[str, Any]) -> dict[str, Any]:
    attention, usage = (np.array(run[what][0]) for what in ("attention", "usage"))
    layer, head, _ = np.unravel_index(attention.argmax(), attention.shape)
    share = usage[layer, head] / usage[layer, head].sum()
    return {
        "layer": int(layer),
        "inv_freq": [float(f"{theta:.4g}") for theta in turning(task, encoding, int(layer))],
        "usage": _short(share),
        "attention": _short(attention[layer, head]),
    }


def turning(task: Task, encoding: str, layer: int) -> np.ndarray:
    """Return how fast the pairs of q and k turn with the distance, in radians per position.

    They rest where nothing is rotated, and where no pair of q and k turns as one: rotated before
    the projection, or in two layouts.
    """
    how = ENCODINGS[encoding]
    apart = how.before_projection or how.mixed_layouts or layer in how.resting_layers
    if how.inv_freq is None or apart:
        return np.zeros(HEAD_DIM // 2)
    return how.inv_freq(HEAD_DIM, task.window)


def _short(values: Sequence[float], digits: int = 3) -> list[float]:
    return [round(float(value), digits) for value in values]
