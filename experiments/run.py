"""Train one model and measure it."""

import math
import time
from typing import Any

import torch
from torch import Tensor, nn

from .encodings import ENCODINGS, STRETCHES, stretched
from .model import Transformer, attention_by_distance, pair_usage
from .tasks import IGNORE, MARKER, TASKS, Task

LEARNING_RATES = (1e-3, 3e-3, 1e-2)
TIMES = (1, 2, 4, 8)
"""Lengths of the tests, in windows of the training."""

SIZES = {"width": 64, "heads": 2, "layers": 2}
WARMUP = 50
DISTANCE_BINS = 8


def train(task: Task, encoding: str, seed: int, learning_rate: float, steps: int) -> Transformer:
    """Train a model from ``seed``: weights and batches are the same for every encoding.

    AdamW, a linear warm-up and a linear fall to zero, gradients cut at norm 1.
    """
    torch.manual_seed(seed)
    model = Transformer(
        ENCODINGS[encoding], task.vocabulary, task.window, longest=TIMES[-1] * task.window, **SIZES
    )
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
    draw = task.batches("train", seed, task.batch, task.window)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * min((step + 1) / WARMUP, 1.0) * (1.0 - step / steps)
        tokens, targets = draw()
        loss = cross_entropy(model(tokens), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean loss in nats over the targets that are asked for."""
    return nn.functional.cross_entropy(
        logits.float().flatten(0, -2), targets.flatten(), ignore_index=IGNORE
    )


@torch.no_grad()
def score(model: Transformer, task: Task, split: str, seed: int, times: int) -> dict[str, float]:
    """Return accuracy and loss in bits over the last window of texts of ``times`` windows.

    Beyond the first window that is where no position of the training is.
    """
    length = times * task.window
    draw = task.batches(split, seed, 64 if times == 1 else 32, length)
    right = asked = loss = 0.0
    for _ in range(4 if times == 1 else 2):
        tokens, targets = draw()
        logits, targets = model(tokens)[:, -task.window :], targets[:, -task.window :]
        count = int((targets != IGNORE).sum())
        right += float((logits.argmax(dim=-1) == targets).sum())
        loss += float(cross_entropy(logits, targets)) * count
        asked += count
    return {"accuracy": round(right / asked, 5), "bits": round(loss / asked / math.log(2), 5)}


@torch.no_grad()
def by_distance(model: Transformer, task: Task, seed: int) -> list[float | None]:
    """Return the accuracy of the find task in equal bins of the distance to what is to be found."""
    right, asked = torch.zeros(DISTANCE_BINS), torch.zeros(DISTANCE_BINS)
    draw = task.batches("test", seed, 256, task.window)
    for _ in range(4):
        tokens, targets = draw()
        value = (tokens == MARKER).int().argmax(dim=-1, keepdim=True) + 1
        distance = torch.arange(task.window) - value
        wanted = targets != IGNORE
        bins = (distance[wanted] * DISTANCE_BINS) // task.window
        asked += bins.bincount(minlength=DISTANCE_BINS)
        correct = (model(tokens).argmax(dim=-1) == targets)[wanted]
        right += bins.bincount(weights=correct.double(), minlength=DISTANCE_BINS)
    return [round(float(r / a), 5) if a else None for r, a in zip(right, asked, strict=True)]


@torch.no_grad()
def look_inside(model: Transformer, task: Task, seed: int) -> dict[str, Any]:
    """Return, for each layer and head, the attention by distance and the use of every pair."""
    for block in model.blocks:
        block.attention.watched = True
    model(task.batches("test", seed, 64, task.window)()[0])
    seen = [block.attention.seen for block in model.blocks]
    for block in model.blocks:
        block.attention.watched, block.attention.seen = False, None
    attention = [attention_by_distance(q, k, model.how.causal) for q, k in seen]
    usage = [pair_usage(q, k) for q, k in seen]
    return {
        "attention": [_rounded(layer) for layer in attention],
        "usage": [_rounded(layer) for layer in usage],
    }


def _rounded(values: Tensor) -> list[list[float]]:
    return [[float(f"{v:.4g}") for v in row] for row in values.tolist()]


def choose(task: Task, encoding: str, learning_rate: float, seed: int) -> dict[str, Any]:
    """Train once and return the loss on the validation split, in bits."""
    start = time.process_time()
    model = train(task, encoding, seed, learning_rate, task.steps)
    valid = score(model, task, "valid", seed, 1)
    return {"valid_bits": valid["bits"], "cpu_seconds": round(time.process_time() - start, 1)}


def measure(task: Task, encoding: str, learning_rate: float, seed: int) -> dict[str, Any]:
    """Train once and return everything that the book says about such a model."""
    start = time.process_time()
    model = train(task, encoding, seed, learning_rate, task.steps)
    inside = look_inside(model, task, seed)
    if task.name == "find":
        inside["by_distance"] = by_distance(model, task, seed)
    return {
        "test": {
            "float32": lengths(model, task, seed),
            "bfloat16": lengths(model.bfloat16(), task, seed),
        },
        **inside,
        "cpu_seconds": round(time.process_time() - start, 1),
    }


def lengths(model: Transformer, task: Task, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """Score at each length of ``TIMES``; RoPE also with its frequencies stretched for it."""
    kinds = STRETCHES if model.how.name == "rope" else STRETCHES[:1]
    trained = model.inv_freq
    result: dict[str, dict[str, dict[str, float]]] = {}
    for kind in kinds:
        result[kind] = {}
        for times in TIMES:
            if model.how.name == "rope":
                model.turn(*stretched(kind, model.head_dim, task.window, times))
            result[kind][str(times)] = score(model, task, "test", seed, times)
    model.turn(trained)
    return result


def run(job: tuple[str, str, str, float, int]) -> dict[str, Any]:
    """Do one job: (purpose, task, encoding, learning rate, seed)."""
    torch.set_num_threads(1)
    purpose, task, encoding, learning_rate, seed = job
    work = choose if purpose == "choose" else measure
    found = work(TASKS[task], encoding, learning_rate, seed)
    return {
        "purpose": purpose,
        "encoding": encoding,
        "learning_rate": learning_rate,
        "seed": seed,
        **found,
    }
