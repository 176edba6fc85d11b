"""What the moving figure `rope_minimal.explore.contest` shows of the recorded runs."""

from typing import Any

import numpy as np

from . import summary
from .encodings import ENCODINGS, STRETCHES
from .run import SIZES, TIMES
from .tasks import TASKS

HEAD_DIM = SIZES["width"] // SIZES["heads"]
STRETCH_WORDS = {"linear": "RoPE, PI", "ntk": "RoPE, NTK", "yarn": "RoPE, YaRN"}


def contest_data() -> dict[str, Any]:
    """Return the data of the figure: every seed's score, and one trained head per encoding.

    Returns
    -------
    dict
        ``times``; ``tasks``, a list with ``words``, ``window``, ``unit`` and ``entries``. An entry
        has ``float32`` and ``bfloat16``, five scores for each length, and ``model``, the name of
        the entry whose head it shares, or a head of its own: ``inv_freq``, ``head`` (layer and
        number, of seed 0), ``loudness`` (the sum of ``|q_i| |k_i|``), ``usage`` (the share of each
        pair in it) and ``attention`` (by distance). The head is the one that puts the most
        attention on a single distance.
    """
    return {"times": list(TIMES), "tasks": [_task(name) for name in TASKS]}


def _task(name: str) -> dict[str, Any]:
    task, record = TASKS[name], summary.load(name)
    entries: dict[str, Any] = {}
    for encoding in record["settings"]["encodings"]:
        how = ENCODINGS[encoding]
        bank = np.zeros(HEAD_DIM // 2)
        if how.inv_freq is not None:
            bank = how.inv_freq(HEAD_DIM, task.window)
        entries[how.words] = {
            **_scores(record, encoding, task.unit, "none"),
            "inv_freq": [float(f"{theta:.4g}") for theta in bank],
            **_sharpest_head(summary.runs(record, encoding)[0]),
        }
    for stretch in STRETCHES[1:]:
        entries[STRETCH_WORDS[stretch]] = {
            **_scores(record, "rope", task.unit, stretch),
            "model": ENCODINGS["rope"].words,
            "stretch": stretch,
        }
    return {"words": task.words, "window": task.window, "unit": task.unit, "entries": entries}


def _scores(record: dict[str, Any], encoding: str, what: str, stretch: str) -> dict[str, Any]:
    return {
        dtype: [
            [
                round(value, 4)
                for value in summary.values(
                    record, encoding, what, times=times, stretch=stretch, dtype=dtype
                )
            ]
            for times in TIMES
        ]
        for dtype in ("float32", "bfloat16")
    }


def _sharpest_head(run: dict[str, Any]) -> dict[str, Any]:
    attention, usage = np.array(run["attention"]), np.array(run["usage"])
    layer, head, _ = np.unravel_index(attention.argmax(), attention.shape)
    loudness = float(usage[layer, head].sum())
    return {
        "head": [int(layer), int(head)],
        "loudness": float(f"{loudness:.3g}"),
        "usage": [round(float(value), 3) for value in usage[layer, head] / loudness],
        "attention": [round(float(value), 3) for value in attention[layer, head]],
    }
