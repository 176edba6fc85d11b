"""Train one model per seed for an encoding, in one batch, and evaluate them."""

import hashlib
import json
import math
import time
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from .encodings import AIDS, ENCODINGS, RAMPS, SIGHTS, aided, temperature
from .model import Transformers, Watched, attention_by_distance, pair_usage
from .tasks import IGNORE, TASKS, Task

TIMES = (1, 2, 4, 8)
"""Test lengths, in training windows."""

AIDED = 4
"""Test length, in windows, of the rescalings and the interventions on distant keys."""

TEXTS = {1: 32, 2: 16, 4: 16, 8: 8}
"""Test texts per seed at each length."""

SIZES = {"width": 32, "heads": 1, "layers": 2, "hidden": 64}
WARMUP = 40
BINS = (1, 4, 8, 16, 32, 64, 128, 256, 512)
"""Edges of the distance bins of `find` and `induction`."""

WEIGHTS = Path(__file__).parent / "weights"
"""Cache of trained models, so that an interrupted evaluation can resume."""


M = TypeVar("M", bound=Transformers)


class Job(NamedTuple):
    """A unit of work for one process: all seeds are trained in one batch."""

    purpose: str
    task: str
    encoding: str
    learning_rate: float
    steps: int
    seeds: tuple[int, ...]


def build(
    task: Task, encoding: str, seeds: tuple[int, ...], make: type[Transformers] = Transformers
) -> Transformers:
    """Return untrained models, one per seed."""
    longest = TIMES[-1] * task.window
    how = ENCODINGS[encoding]
    return make(how, task.vocabulary, task.window, seeds, longest=longest, **SIZES)


def train(
    task: Task, encoding: str, seeds: tuple[int, ...], learning_rate: float, steps: int
) -> Transformers:
    """Train one model per seed; initial weights and batches are the same for every encoding."""
    return fit(build(task, encoding, seeds), task, seeds, learning_rate, steps)


def fit(models: M, task: Task, seeds: tuple[int, ...], learning_rate: float, steps: int) -> M:
    """Train the models and return them.

    AdamW with a linear warm-up and decay to zero; each model's gradients are clipped to norm 1.
    """
    parameters = list(models.parameters())
    optimizer = torch.optim.AdamW(parameters, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    draws = [task.batches("train", seed, task.batch, task.window) for seed in seeds]
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * min((step + 1) / WARMUP, 1.0) * (1.0 - step / steps)
        tokens, targets, _ = (torch.stack(part) for part in zip(*(d() for d in draws), strict=True))
        loss = cross_entropy(models(tokens), targets).sum()
        optimizer.zero_grad()
        loss.backward()
        _clip([p.grad for p in parameters if p.grad is not None])
        optimizer.step()
    return models


def _clip(gradients: list[Tensor]) -> None:
    """Clip the gradients of every model to norm 1."""
    squares = [g.flatten(1).square().sum(dim=1) for g in gradients]
    factor = torch.stack(squares).sum(dim=0).sqrt().clamp(min=1.0).reciprocal()
    for g in gradients:
        g.mul_(factor.view(-1, *[1] * (g.dim() - 1)))


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean loss of each model in nats over the targets that are not ignored, (S,)."""
    losses = torch.nn.functional.cross_entropy(
        logits.float().flatten(0, -2), targets.flatten(), ignore_index=IGNORE, reduction="none"
    ).view(targets.shape)
    return losses.flatten(1).sum(dim=1) / (targets != IGNORE).flatten(1).sum(dim=1)


@torch.no_grad()
def score(
    models: Transformers, task: Task, split: str, seeds: tuple[int, ...], times: int
) -> dict[str, Any]:
    """Return the accuracy and the loss in bits of each model on texts of ``times`` windows.

    If answers occur at many distances, those a window or more away count (in texts of one window:
    all), and ``bins`` has the accuracy by distance. Otherwise the last window counts.
    """
    length = times * task.window
    draws = [task.batches(split, seed, 4, length) for seed in seeds]
    right, total, loss = torch.zeros(3, len(seeds)).unbind()
    binned = torch.zeros(2, len(seeds), len(BINS) + 1)
    for _ in range(TEXTS[times] // 4):
        drawn = zip(*(draw() for draw in draws), strict=True)
        tokens, targets, distance = (torch.stack(part) for part in drawn)
        logits = models(tokens).float()
        correct = (logits.argmax(dim=-1) == targets).float()
        bits = torch.nn.functional.cross_entropy(
            logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORE, reduction="none"
        ).view(targets.shape) / math.log(2)
        wanted = targets != IGNORE
        in_bin = torch.bucketize(distance, torch.tensor(BINS), right=True)
        for b in range(len(BINS) + 1):
            here = wanted & (in_bin == b)
            binned[0, :, b] += (correct * here).flatten(1).sum(dim=1)
            binned[1, :, b] += here.flatten(1).sum(dim=1)
        if task.by_distance and times > 1:
            wanted = wanted & (distance >= task.window)
        elif not task.by_distance:
            wanted = wanted & (torch.arange(length) >= length - task.window)
        right += (correct * wanted).flatten(1).sum(dim=1)
        loss += (bits * wanted).flatten(1).sum(dim=1)
        total += wanted.flatten(1).sum(dim=1)
    found = {"accuracy": _short(right / total), "bits": _short(loss / total)}
    if task.by_distance:
        share = (binned[0] / binned[1])[:, 1:-1].T  # 0/0 is nan where a text is too short
        found["bins"] = [_short(row) for row in share if not row.isnan().all()]
    return found


def _short(values: Tensor) -> Any:
    if values.dim() > 1:
        return [_short(row) for row in values]
    return [None if math.isnan(v) else float(f"{v:.4g}") for v in values.tolist()]


@torch.no_grad()
def look_inside(models: Transformers, task: Task, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Return attention by distance and pair usage for each seed, layer and head."""
    watch: list[Watched] = []
    texts = [task.batches("test", seed, 32, task.window)()[0] for seed in seeds]
    models(torch.stack(texts), watch)
    attention = [attention_by_distance(weights) for _, _, weights in watch]
    usage = [pair_usage(q, k) for q, k, _ in watch]
    return {
        "attention": _short(torch.stack(attention, dim=1)),
        "usage": _short(torch.stack(usage, dim=1)),
    }


def tests(models: Transformers, task: Task, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Evaluate each model at every length and in every variant.

    Rescalings, and interventions on distant keys, apply to encodings that rotate; YaRN's ramps of
    large models only to plain RoPE.
    """
    how, found = models.how, {}

    def evaluate(kind: str, times: tuple[int, ...], **variant: Any) -> None:
        models.configure(**variant)
        found[kind] = {str(n): score(models, task, "test", seeds, n) for n in times}
        models.configure()

    evaluate("none", TIMES)
    evaluate("stored", (1, 2), stored=True)
    rotates = models.bank is not None and not how.before_projection and not how.mixed_layouts
    if rotates and how.causal:
        kinds = [*AIDS, *(RAMPS if how.name == "rope" else ())]
        for kind in kinds:
            bank, factor = aided(kind, models.bank, task.window, AIDED)
            evaluate(kind, (AIDED,), bank=bank, attention_factor=factor)
        for sight in SIGHTS:
            evaluate(sight, (AIDED,), sight=sight)
    elif models.bank is None and how.added is None:
        evaluate("temperature", (AIDED,), attention_factor=temperature(AIDED))
    weights = {name: value.clone() for name, value in models.state_dict().items()}
    models.to(torch.bfloat16)
    evaluate("bfloat16", (1, 2))
    models.to(torch.float32)
    models.load_state_dict(weights)
    return found


def trained(job: Job) -> Transformers:
    """Return the trained models of a job, from the cache if they are there."""
    task = TASKS[job.task]
    what = json.dumps([job[1:], SIZES, WARMUP, task.batch, task.vocabulary, task.window])
    path = WEIGHTS / f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.pt"
    if path.exists():
        models = build(task, job.encoding, job.seeds)
        models.load_state_dict(torch.load(path, weights_only=True))
        return models
    models = train(task, job.encoding, job.seeds, job.learning_rate, job.steps)
    WEIGHTS.mkdir(exist_ok=True)
    torch.save(models.state_dict(), path)
    return models


def run(job: Job) -> dict[str, Any]:
    """Run one job: select the rate (validation split), measure, or repeat with twice the steps."""
    torch.set_num_threads(1)
    task, cpu, wall = TASKS[job.task], time.process_time(), time.perf_counter()
    models = trained(job)
    training = time.process_time() - cpu
    found: dict[str, Any] = {**job._asdict(), "seeds": list(job.seeds)}
    if job.purpose == "measure":
        found |= {"test": tests(models, task, job.seeds), **look_inside(models, task, job.seeds)}
    else:
        found["valid_bits"] = score(models, task, "valid", job.seeds, 1)["bits"]
        scores = {str(n): score(models, task, "test", job.seeds, n) for n in TIMES}
        found["test"] = {"none": scores}
    return {
        **found,
        "training_seconds": round(training, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "wall_seconds": round(time.perf_counter() - wall, 1),
    }
