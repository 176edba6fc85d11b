"""Data of the recorded runs for the interactive figures."""

from typing import Any

from . import recent, summary
from .encodings import ENCODINGS
from .run import SIZES, TIMES
from .tasks import TASKS, WINDOW, Task


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


# ---- encodings of 2024 to 2026 ------------------------------------------------------------------

METHODS = {
    "rope": ("RoPE", "one rotation to move a cached key"),
    "learned_bank": ("learned frequencies", "what RoPE pays"),
    "clipped": ("CoPE (clipped)", "a window known beforehand"),
    "fourier": ("FoPE (Fourier)", "100 drawn numbers and scores that change with the place"),
    "rope_pp": ("RoPE++", "twice the scores for the same cached keys"),
    "pope": ("PoPE", "scores twice as wide"),
    "grape_m": ("GRAPE, multiplicative", "positions that the text sets, one number a token"),
    "selective": ("Selective RoPE", "positions that the text sets, 16 numbers a token"),
    "repo": ("RePo", "positions that the text sets, in layer 2"),
    "grape_a": ("GRAPE, additive", "a bias that query and key set"),
    "alibi": ("ALiBi", "a bias in every score"),
    "t5": ("T5 bias", "a bias in every score"),
    "tapa": ("TAPA", "a cosine for every score"),
    "bases": ("two bases", "far keys in one layer only"),
    "local_nope": ("local RoPE, then none", "far keys in one layer only, unordered there"),
    "layers": ("RoPE, then none", "a second layer without order"),
    "drope": ("DroPE", "a quarter of the steps again, and then order"),
    "nope": ("no encoding", "order"),
}
"""Encodings by name: the words of the figure, and what each pays beside the weights it adds."""


def recent_methods_data() -> dict[str, Any]:
    """Return the data of `ropebook.figures.recent_methods`: the score of every seed.

    Returns
    -------
    dict
        ``times``; ``methods``, in the order of the rows; ``tasks``, a list with ``name``, ``unit``
        and ``scores``, by the words of the method, for each length one a seed; ``pays``, by the
        same words, with ``added``, the number of weights that are trained beside RoPE's, and
        ``also``, in words.
    """
    records = recent.records()

    def scores(task: Task, name: str) -> list[list[float]]:
        return [summary.values(records[task.name], name, task.unit, times=n) for n in TIMES]

    tasks = [
        {
            "name": task.name,
            "unit": task.unit,
            "scores": {words: scores(task, name) for name, (words, _) in METHODS.items()},
        }
        for task in recent.TASKS.values()
    ]
    pays = {w: {"added": added(name), "also": also} for name, (w, also) in METHODS.items()}
    return {"times": list(TIMES), "methods": list(pays), "tasks": tasks, "pays": pays}


def added(encoding: str) -> int:
    """Return how many weights a model of the contest trains beside those of RoPE."""

    def count(name: str) -> int:
        models = recent.build(recent.TASKS["copy"], name, (0,))
        return sum(w.numel() for w in models.parameters() if w.requires_grad)

    return count(encoding) - count("rope")


# ---- a model that is trained in the page --------------------------------------------------------

FIXED = ("clipped", "bases", "local_nope")
"""Recent encodings that are nothing but frequencies of each layer, and how far it sees."""


def train_it_data() -> dict[str, Any]:
    """Return the data of `ropebook.figures.train_it`: what to compute, and what the record has.

    Returns
    -------
    dict
        ``encodings``, by their words what ``training.js`` calls ``how``; ``tasks``, by their names
        the ``steps`` and the ``record``: by the words of an encoding its learning rate and, for
        each length, the lowest and the highest accuracy of eight seeds.
    """
    tasks = {
        name: {"steps": TASKS[name].steps, "record": _extremes(record)}
        for name, record in recent.records().items()
        if name in TASKS and TASKS[name].unit == "accuracy"
    }
    names = [*ENCODINGS, *FIXED]
    return {"encodings": {_words(name): how(name) for name in names}, "tasks": tasks}


def _words(name: str) -> str:
    return ENCODINGS[name].words if name in ENCODINGS else recent.RECENT[name].words


def _extremes(record: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name in record["settings"]["encodings"]:
        if name not in ENCODINGS and name not in FIXED:
            continue
        scores = [summary.values(record, name, times=n) for n in TIMES]
        rate = summary.measured(record, name)["learning_rate"]
        found[_words(name)] = {"rate": rate, "range": [[min(s), max(s)] for s in scores]}
    return found


def how(name: str) -> dict[str, Any]:
    """Return an encoding as ``training.js`` reads it: what of it is not as in no encoding."""
    layers, dim = range(SIZES["layers"]), SIZES["width"] // SIZES["heads"]
    if name not in ENCODINGS:
        models = recent.build(TASKS["copy"], name, (0,))
        assert isinstance(models, recent.Recent)
        return {"theta": [models.frequencies(i).tolist() for i in layers], "local": models.local}
    one, found = ENCODINGS[name], {}
    if one.inv_freq is not None:
        bank = one.inv_freq(dim, WINDOW)
        found["theta"] = [(bank * (i not in one.unrotated_layers)).tolist() for i in layers]
    if one.bias == "alibi":
        found["slopes"] = list(one.slopes)
    if one.bias == "t5":
        found["farthest"] = one.farthest
    if one.added:
        found["added"] = one.added
    flags = {
        "before": one.before_projection,
        "mixed": one.mixed_layouts,
        "unmasked": not one.causal,
    }
    return found | {flag: True for flag, holds in flags.items() if holds}
