"""Small models on a grid of patches, with axial, rotated and mixed wave vectors.

``python -m experiments.patches`` trains what is missing and writes ``results/patches/<task>.json``.

A pair's angle is the dot product of a patch's position and the pair's wave vector. The models, the
optimisation, the rates, the seeds and the statistics are those of the contest of chapter 8.
"""

import math
import sys
import time
import zlib
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rope_minimal import apply_rope

from .__main__ import CHOOSING_SEEDS, GRID, SEEDS, chosen, jobs_of, load, save
from .encodings import Encoding
from .model import Transformers, Watched
from .run import SIZES, WARMUP, Job, cross_entropy, fit
from .summary import RESULTS, measured, runs
from .tasks import IGNORE, SYMBOLS, Batch, Task

SIDE = 8
PLACES = torch.cartesian_prod(torch.arange(SIDE), torch.arange(SIDE)).flip(1)
"""Column x and row y of each patch, row by row, (64, 2)."""

BASE = 10.0
"""RoPE-ViT's: the slowest of 16 pairs rotates by 0.13 radians per patch."""

SHORT, MARKED = 4, 4
"""Shortest diagonal with targets; number of targets in the corner task."""
CALM = 3e-3
"""A learning rate at which all plans are evaluated as well. It was added after the first record, in
which some seeds of every plan diverged at the rate selected on two seeds."""
IMAGES = 128
"""Test images per seed."""

FOLDER = RESULTS / "patches"
PREDICTIONS = RESULTS.parent / "predictions-patches.json"


# ---- the wave vectors ---------------------------------------------------------------------------


class Plan(NamedTuple):
    """The wave vectors of a head: pairs of perpendicular vectors of equal length.

    ``turns`` are the angles, in radians, by which the crosses are turned from the axes, one after
    the other; None where nothing is rotated. What is ``learned`` begins as in RoPE-ViT: all crosses
    of a head are turned by one angle, drawn for each head.
    """

    words: str
    turns: tuple[float, ...] | None = (0.0,)
    learned: bool = False
    heads: int = 1
    layers: int = 1


PLANS = {
    "axial": Plan("axial"),
    "turned": Plan("axial, turned by 45°", (math.pi / 4,)),
    "mixed": Plan("mixed: axes and diagonals", (0.0, math.pi / 4)),
    "learned": Plan("mixed, learned", learned=True),
    "none": Plan("no position", None),
    "two_heads": Plan("axial, two heads", heads=2),
    "two_layers": Plan("axial, two layers", layers=2),
}
TRIED = {
    "arrow": ("axial", "mixed", "none"),
    "row": ("axial", "turned", "mixed", "learned"),
    "diagonal": PLANS,
    "corner": ("axial", "mixed", "none", "two_heads", "two_layers"),
}
"""The plans of each task."""


def wave_vectors(turns: tuple[float, ...], pairs: int) -> np.ndarray:
    """Return the wave vectors of a head, in radians per patch, (pairs, 2)."""
    count = pairs // 2
    angle = np.resize(turns, count)
    length = BASE ** (-np.arange(count) / count)
    along = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    across = np.stack((-np.sin(angle), np.cos(angle)), axis=1)
    return np.concatenate((along, across)) * np.tile(length, 2)[:, None]


def first_waves(seed: int, plan: Plan, pairs: int) -> Tensor:
    """Return the initial wave vectors of a seed, (1 or heads, pairs, 2)."""
    if not plan.learned:
        return torch.tensor(wave_vectors(plan.turns or (), pairs), dtype=torch.float32)[None]
    rng = np.random.default_rng(zlib.crc32(f"waves {seed}".encode()))
    angles = rng.uniform(0, 2 * np.pi, size=plan.heads)
    drawn = np.stack([wave_vectors((angle,), pairs) for angle in angles])
    return torch.tensor(drawn, dtype=torch.float32)


def first_shared(seed: int, width: int) -> Tensor:
    """Return a common component of all symbol embeddings at the start, (width,)."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"shared {seed}".encode()))
    return torch.randn(width, generator=generator)


# ---- the models ---------------------------------------------------------------------------------


class OnPatches(Transformers):
    """The models of `model.py` on images; angles are positions times wave vectors."""

    def __init__(self, plan: Plan, vocabulary: int, seeds: tuple[int, ...]) -> None:
        sizes = {**SIZES, "heads": plan.heads, "layers": plan.layers}
        how = Encoding("patches", plan.words, causal=False)
        super().__init__(how, vocabulary, SIDE**2, seeds, longest=SIDE**2, **sizes)
        self.plan = plan
        alike = torch.stack([first_shared(seed, SIZES["width"]) for seed in seeds])
        self.weights["embed"].data[:, :SYMBOLS] += alike[:, None]
        if plan.turns is None:
            return
        each = torch.stack([first_waves(seed, plan, self.head_dim // 2) for seed in seeds])
        if plan.learned:
            self.weights["waves"] = nn.Parameter(each)
        self.register_buffer("fixed", each, persistent=False)

    def waves(self) -> Tensor:
        """Return the wave vectors, in radians per patch, (S, 1 or heads, pairs, 2)."""
        return self.weights["waves"] if self.plan.learned else self.fixed

    def _attention(self, x: Tensor, layer: int, size: int, watch: list[Watched] | None) -> Tensor:
        q, k, v = (
            (x @ self.weights[f"{layer}_{name}"])
            .view(x.shape[0], size, -1, self.heads, self.head_dim)
            .transpose(2, 3)
            for name in "qkv"
        )
        raw = q, k
        if self.plan.turns is not None:
            angle = PLACES.to(x.dtype) @ self.waves().mT  # (S, 1 or H, T, pairs)
            cos, sin = (table[:, None] for table in (angle.cos(), angle.sin()))
            q, k = (apply_rope(z, cos, sin, interleaved=True) for z in raw)
        weights = (q @ k.mT / self.head_dim**0.5).softmax(dim=-1)
        if watch is not None:
            watch.append((*raw, weights))
        return (weights @ v).transpose(2, 3).reshape(x.shape)


def train(
    name: str, plan: str, seeds: tuple[int, ...], rate: float, steps: int | None = None
) -> OnPatches:
    """Train one model per seed; initial weights and images are the same for every plan."""
    task = TASKS[name]
    models = OnPatches(PLANS[plan], task.vocabulary, seeds)
    return fit(models, task, seeds, rate, task.steps if steps is None else steps)


# ---- the tasks ----------------------------------------------------------------------------------


BLANK = SYMBOLS
"""The token of a patch without a symbol."""


def _blank(size: int) -> tuple[Tensor, Tensor]:
    return torch.full((size, SIDE**2), BLANK), torch.full((size, SIDE**2), IGNORE)


ARROWS = 2 * torch.tensor([(1, 1), (-1, -1), (1, -1), (-1, 1), (1, 0), (-1, 0), (0, 1), (0, -1)])
"""Offsets (dx, dy) of the arrows, in patches; y points down."""
ARROW_COUNT = 16


def arrow(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Predict the symbol at the tip of the arrow, two patches away along an axis or a diagonal."""
    tokens = torch.randint(SYMBOLS, (size, length), generator=generator)
    targets, rows = torch.full_like(tokens, IGNORE), torch.arange(size)[:, None]
    at = torch.rand(size, length, generator=generator).argsort(dim=1)[:, :ARROW_COUNT]
    tip = PLACES[at][:, :, None] + ARROWS  # (size, arrows, 8, 2)
    inside = ((tip >= 0) & (tip < SIDE)).all(dim=-1)
    tip = (tip @ torch.tensor([1, SIDE])).clamp(0, length - 1)
    free = torch.ones(size, length, dtype=torch.bool).scatter(1, at, value=False)
    can = inside & free.gather(1, tip.flatten(1)).view(tip.shape)
    which = torch.rand(tip.shape, generator=generator).masked_fill(~can, -1.0).argmax(dim=-1)
    answer = tokens.gather(1, tip.gather(2, which[:, :, None])[:, :, 0])
    targets[rows, at] = torch.where(can.any(dim=-1), answer, IGNORE)
    tokens[rows, at] = SYMBOLS + which
    return tokens, targets, torch.zeros_like(tokens)


def _lines(line: Tensor, generator: torch.Generator, size: int) -> Batch:
    """Put a symbol on a random patch of each line; it is the target of the line's blank patches.

    ``line`` is the index of each patch's line; negative for none. All symbols differ.
    """
    tokens, targets = _blank(size)
    rows, count = torch.arange(size)[:, None], int(line.max()) + 1
    order = torch.rand(size, 1, SIDE**2, generator=generator)
    marked = order.masked_fill(line != torch.arange(count)[:, None], -1.0).argmax(dim=-1)
    values = torch.rand(size, SYMBOLS, generator=generator).argsort(dim=1)[:, :count]
    tokens[rows, marked] = values
    targets[:, line >= 0] = values[:, line[line >= 0]]
    targets[rows, marked] = IGNORE
    return tokens, targets, torch.zeros_like(tokens)


def row(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Predict the symbol in the same row."""
    return _lines(PLACES[:, 1], generator, size)


def diagonal(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Predict the symbol on the same diagonal, dx = dy, if it has four patches or more."""
    far = PLACES[:, 0] - PLACES[:, 1]
    most = SIDE - SHORT
    return _lines(torch.where(far.abs() <= most, far + most, -1), generator, size)


def corner(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Predict the symbol at (1, 1) or (-1, -1), not the one at (1, -1) or (-1, 1).

    There is one of each kind, at a random end, and all symbols differ. Each quarter of the image
    has one target, at a random patch.
    """
    tokens, targets = _blank(size)
    rows, half = torch.arange(size)[:, None], SIDE // 2
    quarter = half * torch.tensor([(0, 0), (1, 0), (0, 1), (1, 1)])
    patch = quarter + torch.randint(1, half - 1, (size, MARKED, 2), generator=generator)
    sign = 2 * torch.randint(2, (size, MARKED, 2, 1), generator=generator) - 1
    marked = patch[:, :, None] + sign * torch.tensor([(1, 1), (1, -1)])
    at, there = (z @ torch.tensor([1, SIDE]) for z in (patch, marked))
    values = torch.rand(size, SYMBOLS, generator=generator).argsort(dim=1)[:, : 2 * MARKED]
    tokens[rows, there.flatten(1)] = values
    targets[rows, at] = values[:, ::2]
    return tokens, targets, torch.zeros_like(tokens)


def _task(name: str, words: str, draw: Any, vocabulary: int, steps: int) -> Task:
    return Task(name, words, draw, vocabulary, steps, by_distance=False, window=SIDE**2)


TASKS = {
    task.name: task
    for task in (
        _task("arrow", "the symbol two patches away, as told", arrow, SYMBOLS + len(ARROWS), 500),
        _task("row", "the symbol in the row", row, BLANK + 1, 500),
        _task("diagonal", "the symbol on the diagonal", diagonal, BLANK + 1, 500),
        _task("corner", "the symbol at either end of a diagonal", corner, BLANK + 1, 500),
    )
}
GUESS = {"arrow": 1 / SYMBOLS, "row": 1 / SIDE, "diagonal": 1 / 9, "corner": 1 / 2}
"""Accuracy by chance, among the symbols of the image or those beside the target patch."""


# ---- what is measured ---------------------------------------------------------------------------


def images(task: Task, split: str, seeds: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return tokens and targets of the test images of each seed, (S, IMAGES, 64)."""
    drawn = [task.batches(split, seed, IMAGES, task.window)() for seed in seeds]
    tokens, targets, _ = (torch.stack(part) for part in zip(*drawn, strict=True))
    return tokens, targets


@torch.no_grad()
def score(models: OnPatches, task: Task, split: str, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Return the accuracy of each model and its loss in bits."""
    tokens, targets = images(task, split, seeds)
    logits, wanted = models(tokens), targets != IGNORE
    right = (logits.argmax(dim=-1) == targets).flatten(1).sum(1) / wanted.flatten(1).sum(1)
    bits = cross_entropy(logits, targets) / math.log(2)
    return {"accuracy": _short(right, 4), "bits": _short(bits, 4)}


@torch.no_grad()
def score_map(models: OnPatches, task: Task, seeds: tuple[int, ...]) -> Tensor:
    """Return the first layer's score at each offset, (S, heads, 15, 15): [dy + 7, dx + 7].

    The mean over all queries of blank patches (of `arrow`: of the first arrow) and all keys that
    hold a symbol: a score is linear in either, so it is the score of the mean query with the mean
    key. An offset is the key's place minus the query's.
    """
    tokens, _ = images(task, "test", seeds)
    watch: list[Watched] = []
    models(tokens, watch)
    blanks, answers = tokens == BLANK, tokens < SYMBOLS
    q, k = (
        torch.view_as_complex(
            ((z * of[:, :, None, :, None]).sum((1, 3)) / of.sum((1, 2)).view(-1, 1, 1))
            .unflatten(-1, (-1, 2))
            .contiguous()
        )
        for z, of in zip(watch[0][:2], (blanks, answers), strict=True)
    )  # (S, heads, pairs)
    far = torch.arange(1 - SIDE, SIDE)
    offsets = torch.cartesian_prod(far, far).flip(1).to(models.waves().dtype)
    turn = torch.exp(-1j * (offsets @ models.waves().mT))  # (S, 1 or heads, 225, pairs)
    found = (turn * (q * k.conj())[:, :, None]).sum(-1).real / models.head_dim**0.5
    return found.unflatten(-1, (len(far), len(far)))


def interaction(scores: Any) -> Any:
    """Return s(dx, dy) - s(dx, 0) - s(0, dy) + s(0, 0): zero where s is A(dx) + B(dy).

    The last two axes are dy and dx, and offset 0 stands in the middle.
    """
    m = scores.shape[-1] // 2
    return (
        scores
        - scores[..., m : m + 1, :]
        - scores[..., :, m : m + 1]
        + scores[..., m, m, None, None]
    )


def best_bits(name: str, directions: Any, seed: int = 0) -> float:
    """Return the minimum loss of one head whose score is a sum of functions of the offset.

    Each function is free and sees the offset's dot product with one of the integer ``directions``,
    (n, 2): ((1, 0), (0, 1)) is A(dx) + B(dy). The head sees all marks alike and nothing else, and
    its weights are the answer's chances. The loss is convex, so the best that is found is the best
    that there is for these images; in bits an answer.
    """
    task = TASKS[name]
    tokens, targets, _ = task.batches("bound", seed, IMAGES, task.window)()
    at, patch = (targets != IGNORE).nonzero().unbind(1)
    marks = (tokens < SYMBOLS).nonzero()[:, 1].view(len(tokens), -1)[at]  # (answers, marks)
    offset = PLACES[marks] - PLACES[patch][:, None]
    seen = offset @ torch.tensor(directions).mT + 128
    answer = (tokens[at[:, None], marks] == targets[at, patch][:, None]).int().argmax(1)
    free = torch.zeros(len(directions), 256, requires_grad=True)
    optimizer = torch.optim.LBFGS([free], max_iter=100, line_search_fn="strong_wolfe")
    number = torch.arange(len(directions))

    def loss() -> Tensor:
        optimizer.zero_grad()
        nats = nn.functional.cross_entropy(free[number, seen].sum(-1), answer)
        nats.backward()
        return nats

    optimizer.step(loss)
    return loss().item() / math.log(2)


def _short(values: Tensor, digits: int) -> list[float | None]:
    return [None if math.isnan(v) else float(f"{v:.{digits}g}") for v in values.tolist()]


# ---- the record ---------------------------------------------------------------------------------


def settings(name: str) -> dict[str, Any]:
    """Return the settings that determine the results of a task."""
    task = TASKS[name]
    return {
        "vocabulary": task.vocabulary,
        "side": SIDE,
        "steps": task.steps,
        "batch": task.batch,
        "width": SIZES["width"],
        "hidden": SIZES["hidden"],
        "base": BASE,
        "images": IMAGES,
        "warmup": WARMUP,
        "grid": list(GRID),
        "seeds": list(SEEDS),
        "choosing_seeds": list(CHOOSING_SEEDS),
        "encodings": list(TRIED[name]),
    }


def calm(record: dict[str, Any], plan: str) -> dict[str, Any]:
    """Return the run of a plan with eight seeds at the lower rate."""
    return next(iter(runs(record, plan, "calm")), measured(record, plan))


def run(job: Job) -> dict[str, Any]:
    """Run one job: select the rate (validation split), measure, double steps, or the lower rate."""
    task, cpu = TASKS[job.task], time.process_time()
    models = train(job.task, job.encoding, job.seeds, job.learning_rate, job.steps)
    found: dict[str, Any] = {**job._asdict(), "seeds": list(job.seeds)}
    if job.purpose in ("choose", "twice"):
        found["valid_bits"] = score(models, task, "valid", job.seeds)["bits"]
    elif job.encoding in ("axial", "turned", "mixed", "learned"):
        maps = score_map(models, task, job.seeds)[:, 0]
        found["map"] = [[_short(line, 3) for line in one] for one in maps]
    found["test"] = {"none": {"1": score(models, task, "test", job.seeds)}}
    return {**found, "cpu_seconds": round(time.process_time() - cpu, 1)}


def main() -> None:
    """Select learning rates, train eight seeds of each plan, evaluate, and record every job."""
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or TASKS:
        record = load(TASKS[name], FOLDER, settings(name))

        def left(record: dict[str, Any] = record, name: str = name) -> list[Job]:
            keys = ("purpose", "task", "encoding", "learning_rate")
            have = [tuple(one[key] for key in keys) for one in record["runs"]]
            jobs = [j for plan in TRIED[name] for j in jobs_of(TASKS[name], plan, record)]
            jobs += [
                Job("calm", name, plan, CALM, TASKS[name].steps, SEEDS)
                for plan in TRIED[name]
                if chosen(record, plan) not in (None, CALM)
            ]
            return [job for job in jobs if job[:4] not in have]

        while jobs := left():
            record["runs"].append(run(jobs[0]))
            done = record["runs"][-1]
            print(*jobs[0][:4], done["test"]["none"]["1"]["accuracy"], flush=True)
            save(record, FOLDER)


if __name__ == "__main__":
    main()
