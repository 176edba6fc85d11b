"""The rotary position embeddings of every model family of transformers, and of two peers.

`of_transformers` makes the rotations of a model or configuration functions that
`ropescope.identify` can probe, `examine` tests a whole model, `tiny_model` makes a small random
one, and `load` returns what is recorded in ``atlas/results``. ``python -m atlas`` records it again,
without weights and without a network: every family with the defaults of its classes, or with a
rotation chosen where these have none (``why`` or ``note`` says so).

A file
------
``peer``, ``versions``
    The package, its version and that of torch.
``counts``
    Families by status; ``rotations``.
``families``
    By name, sorted. Each has

    ``status``
        ``recorded``; ``refused``: it rotates, and could not be recorded; ``dead code``: a function
        that rotates is called nowhere; ``none``: no head is rotated, whatever the names.
    ``why``
        The reason for the status; what was set against the defaults.
    ``rotations``
        A list in the order of the layers; empty unless ``recorded``.
    ``without``
        Layers of the same models whose queries do not depend on the position, as ``layers`` below.
``frequencies``
    Lists of radians per position, to which rotations refer by index; with several axes each pair
    has a list of its own, one number for each axis.

A rotation
----------
``part``, ``model``
    ``text``, ``vision``, ``audio`` or ``other``; the classes that ran.
``kind``, ``layers``
    The layer type where the configuration distinguishes types; ``[first, last, step]`` runs of
    layer numbers by module: ``{"layers.*.self_attn": [[0, 31, 1]]}``; empty where no model ran.
``head_dim, width, place, layout, direction, base, rescaling, attention_factor, unrotated_factor,
axes, is_rotation, singular_values, relative_error, numbers, angle_error, angle_error_at,
shared_position, table_end, past_end``
    As in `ropescope.Report`; ``rescaling`` is ``[name, parameters]``.
``pairs``, ``written``
    Runs ``[a, b, count, step]``: pairs (a, b), (a + step, b + step), ...; ``written`` only where
    pairs are written to other channels than they are read from.
``frequencies``
    Index of the list, in the order of the pairs.
``sections``
    With several axes, runs ``[axis, pairs]``; None where a pair depends on more than one.
``equally``
    Other formulas with the same frequencies.
``norm``
    ``{"place": "before" | "after" | "part", "weights": bool}`` or None: where a norm stands, and
    whether it has learned weights.
``query_factor``
    Length of queries over that of keys; None where keys are no multiple of queries.
``values_rotated``
    Whether values depend on their position.
``where``, ``note``
    What is rotated: ``queries and keys``, or what enters their projection (``before the
    projection``); what has to be known besides, or None.
``findings``
    ``[severity, message, chapter, hypothesis]``, the most severe first.
"""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "BY_COUNT", "BY_HEAD", "FIRST_HEAD", "INNER_WIDTH", "NOT_RUN", "RESULTS", "TABLE_ALONE",
    "all_pairs", "examine", "load", "of_transformers", "runs", "tiny_model",
]  # fmt: skip

RESULTS = Path(__file__).parent / "results"

NOT_RUN = "attention alone: its model was not run"
TABLE_ALONE = "table and function alone: the attention around them was not run"
"""Notes where less than a model was recorded: ``layers`` are empty there."""

INNER_WIDTH = "rotated over the full inner width, before it is split into heads"
BY_HEAD = "the model passes the index of a head where others pass that of a token"
FIRST_HEAD = "only the first of 16 heads is rotated, the others have no position"
"""Notes where heads are not all rotated alike."""

BY_COUNT = "are rotated by the number of tokens before them, whatever positions the model is given"
"""Note on keys that stand for several tokens each."""

_HOME = {"examine": "layers", "of_transformers": "adapters", "tiny_model": "layers"}


def __getattr__(name: str) -> Any:
    """Import what needs torch on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def load(peer: str) -> dict[str, Any]:
    """Return the records of a package: ``transformers``, ``timm`` or ``x_transformers``."""
    return json.loads((RESULTS / f"{peer}.json").read_text(encoding="utf-8"))


def runs(pairs: Any) -> list[list[int]]:
    """Return pairs of channels as runs ``[a, b, count, step]``."""
    found: list[list[int]] = []
    for a, b in pairs:
        if found:
            first, second, count, step = found[-1]
            gap = a - (first + (count - 1) * step)
            if gap == b - (second + (count - 1) * step) and (count == 1 or gap == step):
                found[-1][2:] = [count + 1, gap]
                continue
        found.append([int(a), int(b), 1, 0])
    return found


def all_pairs(found: list[list[int]]) -> np.ndarray:
    """Return the pairs of channels, (pairs, 2), of runs."""
    pairs = [(a + k * step, b + k * step) for a, b, count, step in found for k in range(count)]
    return np.array(pairs, int).reshape(-1, 2)
