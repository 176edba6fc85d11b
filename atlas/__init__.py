"""The atlas: what every model family of three packages does, by `ropescope`.

``make atlas`` (``python -m atlas``) asks every family of transformers that rotates anything, and
the rotations of timm and x-transformers, with the defaults of their classes, or with a rotation
chosen where these choose none (``why`` or ``note`` says so), without weights and without a network,
and writes ``atlas/results/<peer>.json``. A checkpoint may say otherwise than the defaults:
`atlas.adapters.of_transformers` asks a configuration of your own.

A file
------
``peer``, ``versions``
    The package that was asked, and the versions of it and of torch.
``counts``
    How many families have which status, and how many rotations were asked.
``families``
    By name, sorted. Each has

    ``status``
        ``asked``; ``refused``: it rotates, and could not be asked; ``dead code``: a function that
        rotates and is called nowhere; ``none``: no head is rotated, although the file says so.
    ``why``
        In words, where the status needs a reason; and what was set against the defaults.
    ``rotations``
        A list, in the order in which they were heard; empty unless ``asked``.
    ``without``
        Layers of the same models whose queries do not depend on the position, as ``layers`` below.
``frequencies``
    Lists of radians per position that rotations refer to by their index; with several axes each
    pair has a list of its own, one number for each axis.

A rotation
----------
``part``, ``model``
    ``text``, ``vision``, ``audio`` or ``other``; the classes that ran.
``kind``, ``layers``
    The type of layer where the configuration tells types apart; ``[first, last, step]`` runs of
    layer numbers, by module: ``{"layers.*.self_attn": [[0, 31, 1]]}``; empty where no model ran.
``head_dim, width, place, layout, direction, base, rescaling, attention_factor, rest_factor, axes,
is_rotation, singular_values, deviation, numbers, angle_error, angle_error_at, shared_position,
table_end, past_end``
    As in `ropescope.Report`; ``rescaling`` is ``[name, parameters]``.
``pairs``, ``written``
    Runs ``[a, b, count, step]``: pairs (a, b), (a + step, b + step), ...; ``written`` only where
    channels come out elsewhere than they went in.
``frequencies``
    Index of the list, in the order of the pairs.
``sections``
    With several axes, runs ``[axis, pairs]``: which axis each pair listens to; None where a pair
    listens to more than one.
``equally``
    Other formulas that give the same numbers.
``norm``
    ``{"place": "before" | "after" | "part", "gains": bool}``, heard by letting gains act, or None.
``queries_scaled``
    A factor that queries have and keys have not; None where keys could not be compared.
``values_turned``, ``output_turned``
    Whether values depend on their position; whether attention's output does, for equal values.
``where``, ``note``
    What is turned: ``queries and keys``, or what enters their projection (``before the
    projection``); what has to be known besides, or None.
``findings``
    ``[gravity, words, chapter]``, the gravest first.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "BY_COUNT", "BY_HEAD", "FIRST_HEAD", "INNER_WIDTH", "NOT_RUN", "RESULTS", "UNHEARD",
    "all_pairs", "load", "runs",
]  # fmt: skip

RESULTS = Path(__file__).parent / "results"

NOT_RUN = "attention alone: its model was not run"
UNHEARD = "table and function alone: what stands around the turn was not heard"
"""What a note says where less than a model was asked: ``layers`` are empty there."""

INNER_WIDTH = "turned over the whole inner width, and only then cut into heads"
BY_HEAD = "the model gives it the number of a head where others give that of a token"
FIRST_HEAD = "the first of 16 heads alone turns, the others have no position"
"""What a note says where heads are not all turned alike."""

BY_COUNT = "are turned by the number of tokens before them, whatever positions the model is given"
"""What a note says of keys that stand for several tokens each."""


def load(peer: str) -> dict[str, Any]:
    """Return what was found in a package: ``transformers``, ``timm`` or ``x_transformers``."""
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
