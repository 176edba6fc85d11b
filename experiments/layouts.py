"""Which layout `ropescope.layout_of_weights` finds in trained weights, and how often.

``python -m experiments.layouts`` trains small models again, in about four minutes, and keeps the
lengths of their rows. Those of the released model are in `experiments.real.lengths`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import rms_norm

from rope_minimal import permute_qk
from ropescope import layout_of_weights

from . import run, summary
from .model import Transformers
from .real.lengths import LENGTHS as RELEASED
from .tasks import TASKS

LENGTHS = Path(__file__).parent / "results" / "row-lengths.npz"
SEEDS = tuple(range(8))

# Small models -------------------------------------------------------------------------------------


class WithBias(Transformers):
    """Queries and keys have biases, 0 before training."""

    start = 0.0

    def __init__(self, *args: object, **sizes: int) -> None:
        super().__init__(*args, **sizes)  # type: ignore[arg-type]
        for layer in range(self.layers):
            for name in ("q", "k"):
                extra = torch.full_like(self.weights[f"{layer}_{name}"][:, 0], self.start)
                self.weights[f"{layer}_{name}_extra"] = torch.nn.Parameter(extra)

    def _project(self, x: Tensor, layer: int, name: str) -> Tensor:
        return super()._project(x, layer, name) + self.weights[f"{layer}_{name}_extra"][:, None]


class WithGain(WithBias):
    """Queries and keys pass a root-mean-square norm with gains, 1 before training."""

    start = 1.0

    def _project(self, x: Tensor, layer: int, name: str) -> Tensor:
        x = Transformers._project(self, x, layer, name)
        return rms_norm(x, x.shape[-1:]) * self.weights[f"{layer}_{name}_extra"][:, None]


PLAIN = ("copy", "find", "induction", "English")
KINDS = {
    "copy": ("copy", "rope", Transformers),
    "find": ("find", "rope", Transformers),
    "induction": ("induction", "rope", Transformers),
    "English": ("language", "rope", Transformers),
    "half the width": ("language", "fast_half", Transformers),
    "biases": ("language", "rope", WithBias),
    "gains": ("language", "rope", WithGain),
    "no rotation": ("language", "nope", Transformers),
}
"""Of each kind of models: the task, the encoding, and what computes queries and keys.

The first four, `PLAIN`, are the models of the contest.
"""


def trained(kind: str, seeds: tuple[int, ...] = SEEDS) -> dict[str, np.ndarray]:
    """Train models of a kind and return their rows' lengths, (seeds, layers, 32), of q and k.

    ``q extra`` and ``k extra`` are the sizes of their biases or gains. The rate is the one that the
    contest chose for RoPE.
    """
    name, encoding, make = KINDS[kind]
    task, rate = TASKS[name], summary.measured(summary.load(name), "rope")["learning_rate"]
    models = run.build(task, encoding, seeds, make)
    weights = run.fit(models, task, seeds, rate, task.steps).weights
    found = {}
    for side in ("q", "k"):
        each = [weights[f"{i}_{side}"].norm(dim=1) for i in range(models.layers)]
        found[side] = torch.stack(each, 1)
        if make is not Transformers:
            each = [weights[f"{i}_{side}_extra"].abs() for i in range(models.layers)]
            found[f"{side} extra"] = torch.stack(each, 1)
    return {side: rows.detach().numpy() for side, rows in found.items()}


# What is found ------------------------------------------------------------------------------------


class Case(NamedTuple):
    """Projections that are asked for their layout.

    ``rows`` has the lengths of their rows, (models, layers, heads * head_dim), ``right`` the name
    of their layout, or None where there is none to find. ``wrong`` is the number of heads by which
    a converter permuted them, ``asked`` whether `layout_of_weights` is given it.
    """

    rows: np.ndarray
    heads: int
    right: str | None
    rotated: int | None = None
    wrong: int | None = None
    asked: bool = True


class Told(NamedTuple):
    """How often the right layout was named and how often another, of how many."""

    right: int
    wrong: int
    asked: int


Verdicts = list[list[bool | None]]


def verdicts(case: Case) -> Verdicts:
    """Return by head, by layer and by model whether the layout was named, None where none was."""
    models, layers, rows = case.rows.shape
    found = []
    for shape, heads in (
        ((-1, rows // case.heads, 1), 1),
        ((-1, rows, 1), case.heads),
        ((models, layers, rows, 1), case.heads),
    ):
        right, options = case.right, {"rotated": case.rotated}
        if case.wrong:
            right = f"{right}, permuted as {case.wrong * heads // case.heads} heads"
            options["query_heads"] = case.wrong * heads // case.heads if case.asked else None
        names = [layout_of_weights(x, heads, **options).layout for x in case.rows.reshape(shape)]
        found.append([None if name is None else name == right for name in names])
    return found


def apart(first: Case, second: Case) -> Verdicts:
    """Return by layer and by model whether both layouts were named, each asked by itself."""
    found: Verdicts = [[]]
    for one, other in zip(verdicts(first)[1:], verdicts(second)[1:], strict=True):
        pairs = zip(one, other, strict=True)
        found.append([False if False in pair else None if None in pair else True for pair in pairs])
    return found


def permuted(rows: np.ndarray, heads: int, *, inverse: bool = False) -> np.ndarray:
    """Return row lengths, (models, layers, rows), as `rope_minimal.permute_qk` orders rows."""
    return rows[..., permute_qk(np.arange(rows.shape[-1]), heads, inverse=inverse)]


def layouts(rows: np.ndarray, heads: int, rotated: int | None = None) -> list[Case]:
    """Return projections as they are, in interleaved pairs, and the same in half-split ones."""
    each = rows.reshape(*rows.shape[:2], heads, -1).copy()
    turned = each[..., :rotated]
    turned[:] = permuted(turned.reshape(*rows.shape[:2], -1), heads).reshape(turned.shape)
    halves = each.reshape(rows.shape)
    return [Case(rows, heads, "interleaved", rotated), Case(halves, heads, "half-split", rotated)]


def mispermuted(rows: np.ndarray, heads: int, wrong: int, *, asked: bool = True) -> list[Case]:
    """Return what a converter to the other layout makes of projections, taken for more heads."""
    one, other = layouts(rows, heads)
    return [
        one._replace(rows=permuted(one.rows, wrong), wrong=wrong, asked=asked),
        other._replace(rows=permuted(other.rows, wrong, inverse=True), wrong=wrong, asked=asked),
    ]


def released(sides: str) -> tuple[np.ndarray, int]:
    """Return the released model's row lengths, (1, 30, rows), and heads, of ``q``, ``k`` or both.

    They are in interleaved pairs.
    """
    kept = np.load(RELEASED)
    rows = np.concatenate([kept[side].astype(float) for side in sides], 1)
    return rows[None], rows.shape[1] // 64


def small(kind: str, sides: str = "qk", extra: str = "") -> tuple[np.ndarray, int]:
    """Return the same of small models, (8, 2, rows), or ``extra`` for their biases or gains."""
    kept = np.load(LENGTHS)
    each = [kept[f"{kind} {side}{extra}"].astype(float) for side in sides]
    return np.concatenate(each, 2), len(sides)


def fresh(count: int = 1000) -> list[Case]:
    """Return projections that were never trained, one head each, of two shapes."""
    draw = np.random.default_rng(0)
    shapes = ((32, 32), (64, 576))
    return [Case(draw.chisquare(n, (1, count, d)) ** 0.5, 1, None) for d, n in shapes]


def questions() -> Iterator[tuple[str, list[Verdicts]]]:
    """Yield the lines of the table: what was asked, in words, and the verdicts."""

    def asked(cases: Iterable[Case]) -> list[Verdicts]:
        return [verdicts(case) for case in cases]

    def half_converted(q: list[Case], k: list[Case]) -> list[Verdicts]:
        return [apart(q[0], k[1]), apart(q[1], k[0])]

    q, k, qk = (released(sides) for sides in ("q", "k", "qk"))
    yield "queries", asked(layouts(*q))
    yield "keys", asked(layouts(*k))
    yield "queries and keys together", asked(layouts(*qk))
    for width in (32, 16):
        yield f"{width} of 64 channels rotated", asked(layouts(*qk, rotated=width))
    yield "queries or keys converted", half_converted(layouts(*q), layouts(*k))
    for wrong in (6, 12):
        yield f"3 key heads permuted as {wrong}", asked(mispermuted(*k, wrong))
    yield "the same, `query_heads` not given", asked(mispermuted(*k, 12, asked=False))
    for kind in KINDS:
        if kind == "no rotation":
            cases = [case._replace(right=None) for case in layouts(*small(kind))]
        else:
            cases = layouts(*small(kind), rotated=16 if kind == "half the width" else None)
        yield f"small models: {kind}", asked(cases)
        if kind in ("biases", "gains"):
            yield f"the {kind} alone", asked(layouts(*small(kind, extra=" extra")))
    sides = [[layouts(*small(kind, side)) for side in "qk"] for kind in PLAIN]
    yield "small models: queries or keys converted", [v for s in sides for v in half_converted(*s)]
    halved = [case for kind in PLAIN for case in mispermuted(*small(kind, "k"), 2)]
    yield "small models: one key head permuted as two", asked(halved)
    yield "never trained", asked(fresh())


def results() -> dict[str, list[Told]]:
    """Return for each of `questions` what was told by head, by layer and by model."""
    found = {}
    for words, each in questions():
        lists = [[v for part in parts for v in part] for parts in zip(*each, strict=True)]
        found[words] = [Told(v.count(True), v.count(False), len(v)) for v in lists]
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    kept = {}
    for kind in KINDS:
        print(kind, flush=True)
        for side, rows in trained(kind).items():
            kept[f"{kind} {side}"] = rows.astype(np.float16)
    np.savez_compressed(LENGTHS, **kept)
