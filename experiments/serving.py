"""How trained models respond to moved, dropped and rounded cached keys (record of chapter 12).

``python -m experiments.serving`` trains what is missing and writes ``serving.json``.

No cache is needed. A key depends on the tokens that its token attended to, so each scheme of
serving is one pass with a mask and with positions of queries and keys; a test compares such a pass
with the package's layers and their caches.
"""

import itertools
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, layer_norm

from rope_minimal import RotarySelfAttention, apply_rope, inverse_frequencies, rope_table

from . import run
from .encodings import ENCODINGS
from .model import Transformers, Watched
from .tasks import LETTERS, SYMBOLS, TASKS, Task, language

RECORD = Path(__file__).parent / "serving.json"
SEEDS, CHOOSING_SEEDS = tuple(range(8)), (1000, 1001)
GRID = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
FIRST = (3e-3, 1e-2, 3e-2)
MARK = LETTERS
"""The first symbol of every text, for models trained with one."""
LOST, TRUE_BASE = 1e4, 5e5
BITS = (8, 4, 3, 2)


class Kind(NamedTuple):
    """A kind of model: its task, depth, base, training window and batch size."""

    task: str = "language"
    layers: int = 2
    marked: bool = False
    base: float = 1e4
    window: int = 64
    batch: int = 8


KINDS = {
    "one layer": Kind(layers=1),
    "two layers": Kind(),
    "four layers": Kind(layers=4),
    "marked, two layers": Kind(marked=True),
    "marked, four layers": Kind(layers=4, marked=True),
    "base 500,000": Kind(base=TRUE_BASE, window=256, batch=4),
    "induction": Kind("induction"),
    "backcopy": Kind("backcopy", layers=1, marked=True),
}


def marked_language(split: str, generator: torch.Generator, size: int, length: int) -> Any:
    """Predict the next byte of English prose; every text begins with the same symbol."""
    text, _, distance = language(split, generator, size, length)
    mark = torch.full_like(text[:, :1], MARK)
    return torch.cat((mark, text[:, :-1]), dim=1), text, distance


TRIGGERS = 3


@cache
def chain() -> np.ndarray:
    """Return the cumulative transition probabilities of a Markov chain, (SYMBOLS, SYMBOLS)."""
    weights = np.exp(2 * np.random.default_rng(0).normal(size=(SYMBOLS, SYMBOLS)))
    return (weights / weights.sum(1, keepdims=True)).cumsum(1)


def backcopy(split: str, generator: torch.Generator, size: int, length: int) -> Any:
    """Predict the next symbol of a Markov chain; after a trigger, the symbol before the trigger.

    Every text begins with the same symbol. Attention is needed only at a trigger (the
    bigram-backcopy task of Guo et al. 2024).
    """
    chance = torch.rand(length, size, 1, generator=generator).numpy()
    text = np.empty((length, size), dtype=np.int64)
    text[0] = TRIGGERS
    for t in range(1, length):
        following = (chain()[text[t - 1]] < chance[t]).sum(1).clip(max=SYMBOLS - 1)
        text[t] = np.where(text[t - 1] < TRIGGERS, text[max(t - 2, 0)], following)
    targets = torch.from_numpy(text.T.copy())
    mark = torch.full_like(targets[:, :1], SYMBOLS)
    return torch.cat((mark, targets[:, :-1]), dim=1), targets, torch.ones_like(targets)


def task_of(kind: Kind) -> Task:
    """Return the training task of a kind of model."""
    if kind.task == "backcopy":
        words = "predict a chain, and copy after a trigger"
        sizes = {"unit": "bits", "by_distance": False, "batch": kind.batch, "window": kind.window}
        return Task("backcopy", words, backcopy, SYMBOLS + 1, 1000, **sizes)
    task = replace(TASKS[kind.task], window=kind.window, batch=kind.batch)
    if kind.marked:
        task = replace(task, draw=marked_language, vocabulary=LETTERS + 1)
    return task


Look = Callable[[Tensor, Tensor], Tensor]
"""Maps unrotated queries and keys, (S, B, H, T, dim), to scores, (S, B, H, T, T)."""


class Served(Transformers):
    """The models of `model.py`, with the scores of each layer computed by ``look``."""

    look: Look | None = None

    def _attention(self, x: Tensor, layer: int, size: int, watch: list[Watched] | None) -> Tensor:
        if self.look is None:
            return super()._attention(x, layer, size, watch)
        q, k, v = (
            (x @ self.weights[f"{layer}_{name}"])
            .view(x.shape[0], size, -1, self.heads, self.head_dim)
            .transpose(2, 3)
            for name in "qkv"
        )
        weights = (self.look(q, k) / self.head_dim**0.5).softmax(dim=-1)
        if watch is not None:
            watch.append((q, k, weights))
        return (weights @ v).transpose(2, 3).reshape(x.shape)


def build(kind: Kind, seeds: tuple[int, ...]) -> Served:
    """Return untrained models, one per seed."""
    how = replace(ENCODINGS["rope"], inv_freq=lambda dim, _: inverse_frequencies(dim, kind.base))
    task, sizes = task_of(kind), {**run.SIZES, "layers": kind.layers}
    return Served(how, task.vocabulary, kind.window, seeds, longest=8 * kind.window, **sizes)


def train(kind: Kind, seeds: tuple[int, ...], rate: float, steps: int | None = None) -> Served:
    """Train one model per seed, as `run.train` does."""
    task = task_of(kind)
    steps = task.steps if steps is None else steps
    return run.fit(build(kind, seeds), task, seeds, rate, steps)


class Reader(nn.Module):
    """One trained model, rebuilt from the package's layers with their caches."""

    def __init__(self, kind: Kind, models: Transformers, i: int = 0, longest: int = 512) -> None:
        super().__init__()
        width, heads = models.weights["embed"].shape[-1], models.heads
        self.w = {name: w.detach()[i] for name, w in models.weights.items()}
        rope = {"base": kind.base, "interleaved": True, "max_seq_len": longest}
        self.layers = nn.ModuleList(
            RotarySelfAttention(width, heads, **rope) for _ in range(kind.layers)
        )
        for number, layer in enumerate(self.layers):
            weights = {f"{x}_proj.weight": self.w[f"{number}_{x}"].T for x in "qkvo"}
            layer.load_state_dict(weights)

    def new_caches(self, batch_size: int, **options: Any) -> list[Any]:
        """Return an empty cache for each layer."""
        return [layer.new_cache(batch_size, **options) for layer in self.layers]

    def forward(self, tokens: Tensor, caches: Any = None, **options: Any) -> Tensor:
        """Map tokens (B, T) to logits (B, T, vocabulary), appending to the caches, if given."""
        w, x = self.w, self.w["embed"][tokens]
        for i, layer in enumerate(self.layers):
            cache = None if caches is None else caches[i]
            x = x + layer(self._norm(x, f"{i}_attention"), cache=cache, **options)
            hidden = (self._norm(x, f"{i}_mlp") @ w[f"{i}_up"] + w[f"{i}_up_bias"]).relu()
            x = x + hidden @ w[f"{i}_down"] + w[f"{i}_down_bias"]
        return self._norm(x, "last") @ w["head"]

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return layer_norm(x, x.shape[-1:], self.w[f"{name}_gain"], self.w[f"{name}_shift"])


# ---- masks and positions ------------------------------------------------------------------------


def turned(z: Tensor, positions: Tensor, inv_freq: np.ndarray) -> Tensor:
    """Rotate vectors by positions (T,), in the layout of `model.py`."""
    return apply_rope(z, *rope_table(positions, z.shape[-1], inv_freq=inv_freq), interleaved=True)


def causal(length: int) -> Tensor:
    """Return the causal mask, (T, T)."""
    return torch.ones(length, length, dtype=torch.bool).tril()


def looking(
    inv_freq: np.ndarray,
    seen: Tensor,
    of_queries: Tensor | None = None,
    of_keys: Tensor | None = None,
    *,
    store: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Look:
    """Return a score function for a mask (T, T) and positions (T,) of queries and keys.

    ``store(k, positions)`` replaces the rotation of the keys.
    """
    count = torch.arange(seen.shape[-1])
    of_queries = count if of_queries is None else of_queries
    of_keys = count if of_keys is None else of_keys

    def look(q: Tensor, k: Tensor) -> Tensor:
        keys = turned(k, of_keys, inv_freq) if store is None else store(k, of_keys)
        return (turned(q, of_queries, inv_freq) @ keys.mT).masked_fill(~seen, -math.inf)

    return look


def bits(models: Served, tokens: Tensor, targets: Tensor, look: Look | None = None) -> Tensor:
    """Return the loss of each target in bits, (S, B, T)."""
    models.look = look
    logits = models(tokens)
    models.look = None
    nats = cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none")
    return nats.view(targets.shape) / math.log(2)


def apart(models: Served, tokens: Tensor, one: Look | None, other: Look | None) -> Tensor:
    """Return the Kullback-Leibler divergence of two predictions in bits, (S, B, T)."""
    logs = []
    for look in (one, other):
        models.look = look
        logs.append(models(tokens).double().log_softmax(-1))
    models.look = None
    return (logs[0].exp() * (logs[0] - logs[1])).sum(-1) / math.log(2)


def drawn(kind: Kind, seeds: tuple[int, ...], size: int, length: int) -> tuple[Tensor, ...]:
    """Return tokens and targets of test texts, (S, size, length)."""
    task = task_of(kind)
    parts = [task.batches("test", seed, size, length)() for seed in seeds]
    tokens, targets, _ = (torch.stack(part) for part in zip(*parts, strict=True))
    return tokens, targets


# ---- what is measured ---------------------------------------------------------------------------


def mean(values: Tensor, rows: slice | Tensor = slice(None)) -> list[float]:
    """Return the mean over texts and selected tokens, one number per seed."""
    return [float(f"{v:.4g}") for v in values[:, :, rows].flatten(1).mean(1).tolist()]


def dropped(kind: Kind, models: Served, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Drop the first 32 tokens when 48 are read, and predict 48 to 63.

    Kept are the keys 32 to 47 as they are, or they are made again from the kept text alone.
    """
    tokens, targets = drawn(kind, seeds, 32, 64)
    theta, rows, row = models.bank, slice(48, 64), torch.arange(64)[:, None]
    later = causal(64) & ((row < 48) | (torch.arange(64) >= 32))
    alone = causal(64) & ((row < 32) | (torch.arange(64) >= 32))
    whole, kept, again = (looking(theta, seen) for seen in (causal(64), later, alone))
    moved = looking(theta, later, torch.arange(64) - 32, torch.arange(64) - 32)
    middle = causal(64) & ((row < 48) | (torch.arange(64) < 8) | (torch.arange(64) >= 32))
    afresh = causal(64) & ((row < 32) | (torch.arange(64) < 8) | (torch.arange(64) >= 32))
    at = torch.where(torch.arange(64) < 32, torch.arange(64), torch.arange(64) - 24)
    found = {
        "whole": mean(bits(models, tokens, targets, whole), rows),
        "kept": mean(bits(models, tokens, targets, kept), rows),
        "made again": mean(bits(models, tokens, targets, again), rows),
        "kept is not made again": mean(apart(models, tokens, again, kept), rows),
        "kept and moved is not kept": mean(apart(models, tokens, kept, moved), rows),
        "kept is not whole": mean(apart(models, tokens, whole, kept), rows),
    }
    spans = {  # the middle goes, 8 to 31: the gap is left open, closed, or all is made again
        "open": looking(theta, middle),
        "closed": cut(theta, middle, at),
        "made again": looking(theta, afresh, at, at),
    }
    for name, look in spans.items():
        found[f"span, {name}"] = mean(bits(models, tokens, targets, look), rows)
    for name in ("open", "closed"):
        between = apart(models, tokens, spans["made again"], spans[name])
        found[f"span, {name}, is not made again"] = mean(between, rows)
    return found


def cut(theta: np.ndarray, seen: Tensor, at: Tensor) -> Look:
    """Return scores where the gap was closed at token 48: later queries use the new positions."""
    before, after = looking(theta, seen), looking(theta, seen, at, at)

    def look(q: Tensor, k: Tensor) -> Tensor:
        late = torch.arange(q.shape[-2])[:, None] >= 48
        return torch.where(late, after(q, k), before(q, k))

    return look


def streamed(kind: Kind, models: Served, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Process 512 tokens with 64 keys at a time: the last ones, or also some first ones."""
    length, size = 512, 64
    tokens, targets = drawn(kind, seeds, 8, length)
    theta, count = models.bank, torch.arange(length)
    far, rows = count[:, None] - count, slice(length - 64, length)
    found = {
        "all keys": mean(bits(models, tokens, targets), rows),
        "the window": mean(bits(models, tokens, targets), slice(32, 64)),
        "last": mean(
            bits(models, tokens, targets, looking(theta, causal(length) & (far < size))), rows
        ),
    }
    for first in (1, 4):
        seen = causal(length) & ((far < size - first) | (count < first))
        text = looking(theta, seen)
        inside = looking(theta, seen, count.clamp(max=size - 1))

        def look(q: Tensor, k: Tensor, *, text=text, inside=inside, first=first) -> Tensor:
            return torch.where(count < first, inside(q, k), text(q, k))

        ways = {"as in the text": text, "as in the cache": look}
        for name, way in ways.items():
            found[f"first {first}, {name}"] = mean(bits(models, tokens, targets, way), rows)
    ends = torch.arange(length - 64, length)
    views = tokens[:, :, ends[:, None] - torch.arange(size - 1, -1, -1)]  # (S, B, 64, size)
    if kind.marked:
        views[..., 0] = task_of(kind).vocabulary - 1
    anew = bits(
        models, views.flatten(1, 2), targets[:, :, ends, None].expand_as(views).flatten(1, 2)
    )
    found["made again"] = mean(anew, slice(size - 1, size))
    watch: list[Watched] = []
    models(tokens[:, :, :64], watch)
    share = torch.stack([w[:, :, 0, 32:, :4].mean((1, 2)) for *_, w in watch], 1)
    found["share of the first four"] = [
        [[round(x, 4) for x in r] for r in s] for s in share.tolist()
    ]
    return found


def spliced(kind: Kind, models: Served, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Process A and B (24 tokens each) separately, concatenate, and predict the next 16 tokens."""
    tokens, targets = drawn(kind, seeds, 32, 64)
    theta, count = models.bank, torch.arange(64)
    rows, in_b = slice(48, 64), (count >= 24) & (count < 48)
    ways: dict[str, Look] = {"whole": looking(theta, causal(64))}
    for repaired in (0, 1, 4, 8):
        blind = in_b & (count >= 24 + repaired)
        seen = causal(64) & ~(blind[:, None] & (count < 24))
        ways[f"moved, {repaired} made again"] = looking(theta, seen)
    apart_from = causal(64) & ~(in_b[:, None] & (count < 24))
    own, text = torch.where(in_b, count - 24, count), ways["moved, 0 made again"]
    stays = looking(theta, apart_from, count, own)

    def look(q: Tensor, k: Tensor) -> Tensor:
        return torch.where(count[:, None] >= 48, stays(q, k), text(q, k))

    ways["not moved"] = look
    ways["B alone"] = looking(theta, causal(64) & ~((count[:, None] >= 24) & (count < 24)))
    found: dict[str, Any] = {}
    if kind.task == "induction":
        tokens, targets, masks = seams(seeds)
        for name, way in ways.items():
            models.look = way
            right = (models(tokens).argmax(-1) == targets).float()
            for place, where in masks.items():
                found[f"{name}, {place}"] = mean((right * where).sum(-1, keepdim=True))
        models.look = None
        return found
    for name, way in ways.items():
        found[name] = mean(bits(models, tokens, targets, way), rows)
        if name != "whole":
            between = mean(apart(models, tokens, ways["whole"], way), rows)
            found[f"{name} is not whole"] = between
    return found


def seams(seeds: tuple[int, ...]) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Return texts that repeat, at token 56, a rare symbol: its successor is the target."""
    places = {"before the seam": 12, "at the seam": 23, "behind the seam": 24, "within B": 36}
    tokens, targets, queries = [], [], {name: [] for name in places}
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        text = torch.randint(SYMBOLS, (128, 64), generator=generator)
        rare = torch.rand(128, SYMBOLS, generator=generator).argsort(1)[:, : len(places)] + SYMBOLS
        which = torch.arange(128) % len(places)
        for i, place in enumerate(places.values()):
            text[which == i, place] = rare[which == i, i]
            text[which == i, 56] = rare[which == i, i]
        answer = torch.zeros_like(text)
        at = torch.tensor(list(places.values()))[which] + 1
        answer[:, 56] = text[torch.arange(128), at]
        tokens.append(text)
        targets.append(answer)
        for i, name in enumerate(places):
            where = torch.zeros(128, 64)
            where[which == i, 56] = float(len(places))  # the mean over all texts is that of these
            queries[name].append(where)
    masks = {name: torch.stack(rows) for name, rows in queries.items()}
    return torch.stack(tokens), torch.stack(targets), masks


def rounded(z: Tensor, levels: int, dims: int | tuple[int, ...]) -> Tensor:
    """Round to ``levels`` uniform levels between the minimum and the maximum over ``dims``."""
    low, high = z.amin(dims, keepdim=True), z.amax(dims, keepdim=True)
    step = ((high - low) / (levels - 1)).clamp(min=1e-12)
    return low + ((z - low) / step).round() * step


def quantised(kind: Kind, models: Served, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Quantise keys before or after the rotation, with one scale per channel or per token.

    Score error: root mean square change of the unmasked scores over their standard deviation.
    """
    length = kind.window
    tokens, targets = drawn(kind, seeds, 32 if length == 64 else 8, length)
    theta, seen, found = models.bank, causal(length), {"exact": {}}
    found["exact"]["bits"] = mean(bits(models, tokens, targets))
    watch: list[Watched] = []
    models.look = looking(theta, seen)
    models(tokens, watch)
    models.look = None
    at = torch.arange(length)
    for grid, dims in (("channel", -2), ("token", -1)):
        for number in BITS:

            def before(k: Tensor, p: Tensor, *, n=2**number, dims=dims) -> Tensor:
                return turned(rounded(k, n, dims), p, theta)

            def after(k: Tensor, p: Tensor, *, n=2**number, dims=dims) -> Tensor:
                return rounded(turned(k, p, theta), n, dims)

            for name, store in (("before", before), ("after", after)):
                errors = []
                for q, k, _ in watch:
                    queries, keys = turned(q, at, theta), turned(k, at, theta)
                    true, got = queries @ keys.mT, queries @ store(k, at).mT
                    both = [(x * seen).flatten(1) for x in (got - true, true)]
                    count = seen.sum() * tokens.shape[1]
                    spread = true[..., seen].flatten(1).std(1)
                    errors.append((both[0].square().sum(1) / count).sqrt() / spread)
                worn = bits(models, tokens, targets, looking(theta, seen, store=store))
                found[f"{name}, {grid}, {number} bits"] = {
                    "score error": [[float(f"{x:.4g}") for x in e.tolist()] for e in errors],
                    "bits": mean(worn),
                }
    return found


def worn(kind: Kind, models: Served, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Move all keys by 256 in one step or in 256, stored in 8 or 4 bits; queries move along.

    Stored in plain blocks of 32 channels (here a whole head) with a scale of their own. llama.cpp
    stores wider heads in a Hadamard basis (since April 2026).
    """
    tokens, targets = drawn(kind, seeds, 32, 64)
    theta, found = models.bank, {"exact": mean(bits(models, tokens, targets))}
    for number in (8, 4):
        for moves in (1, 16, 256):

            def store(k: Tensor, p: Tensor, *, number=number, moves=moves) -> Tensor:
                keys = blocks(turned(k, p, theta), number)
                step = torch.full_like(p, 256 // moves)
                for _ in range(moves):
                    keys = blocks(turned(keys, step, theta), number)
                return keys

            look = looking(theta, causal(64), torch.arange(64) + 256, None, store=store)
            found[f"{number} bits, {moves} moves"] = mean(bits(models, tokens, targets, look))
    return found


def blocks(z: Tensor, number: int) -> Tensor:
    """Return ``z`` on a grid of whole multiples of its largest entry over 2^(number-1) - 1."""
    top = 2 ** (number - 1) - 1
    step = (z.abs().amax(-1, keepdim=True) / top).clamp(min=1e-12)
    return (z / step).round() * step


EDGES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)


def based(kind: Kind, models: Served, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Evaluate with the base of training and with the default base."""
    tokens, targets = drawn(kind, seeds, 32, kind.window)
    dim, found = models.head_dim, {"edges": list(EDGES)}
    for name, base in (("own", kind.base), ("lost", LOST)):
        look = looking(inverse_frequencies(dim, base), causal(kind.window))
        cost = bits(models, tokens, targets, look)
        found[name] = [mean(cost, slice(a, b)) for a, b in itertools.pairwise(EDGES)]
    row = torch.arange(kind.window)
    near = causal(kind.window) & (row[:, None] - row < 64)
    for name, base in (("own, 64 keys", kind.base), ("lost, 64 keys", LOST)):
        cost = bits(models, tokens, targets, looking(inverse_frequencies(dim, base), near))
        found[name] = mean(cost, slice(128, 256))
    return found


MEASURES = {
    "one layer": (dropped, spliced, streamed),
    "two layers": (dropped, spliced, streamed, quantised, worn),
    "four layers": (dropped, spliced, streamed, quantised, worn),
    "marked, two layers": (streamed,),
    "marked, four layers": (streamed,),
    "base 500,000": (based, quantised),
    "induction": (spliced,),
    "backcopy": (streamed,),
}


@torch.no_grad()
def measured(name: str, models: Served, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Return all measurements of a kind of model."""
    kind = KINDS[name]
    return {f.__name__: f(kind, models, seeds) for f in MEASURES[name]}


def load() -> dict[str, Any]:
    """Load the record: learning rates, seeds and measurements of each kind of model."""
    return json.loads(RECORD.read_text("utf8"))


def predictions() -> list[dict[str, str]]:
    """Load the predictions, in order; the file was committed before the runs."""
    found = json.loads((Path(__file__).parent / "predictions-serving.json").read_text("utf8"))
    return [*found["predictions"], *found["later"]]


def judged(record: dict[str, Any]) -> dict[str, bool]:
    """Evaluate all predictions on the record: ``{name: held}``."""

    def of(name: str, part: str, what: str) -> np.ndarray:
        return np.array(record[name]["measured"][part][what], dtype=float)

    def less(name: str, part: str, what: str, than: str) -> np.ndarray:
        return of(name, part, than) - of(name, part, what)

    def error(name: str, when: str, grid: str, number: int) -> np.ndarray:
        found = record[name]["measured"]["quantised"][f"{when}, {grid}, {number} bits"]
        return np.array(found["score error"])

    one, deep = "one layer", ("two layers", "four layers")
    again = {n: of(n, "dropped", "kept is not made again") for n in (one, *deep)}
    marked, median = "marked, four layers", np.median
    apart = {n: of(n, "spliced", "moved, 0 made again is not whole") for n in (one, *deep)}
    right = {
        (made, place): median(of("induction", "spliced", f"moved, {made} made again, {place}"))
        for made in (0, 1)
        for place in ("before the seam", "at the seam", "behind the seam", "within B")
    }
    worse = of("base 500,000", "based", "lost") - of("base 500,000", "based", "own")
    near = less("base 500,000", "based", "own, 64 keys", "lost, 64 keys")
    grids = [(n, number) for n in deep for number in (4, 3, 2)]
    mark = of("backcopy", "streamed", "share of the first four")[:, 0, 0]
    last, cache, text = "last", "first 1, as in the cache", "first 1, as in the text"
    held = {
        "1": again[one].max() < 1e-6
        and min(again[n].min() for n in deep) > 1e-3
        and median(again[deep[1]]) > median(again[deep[0]]),
        "2": max(of(n, "dropped", "kept and moved is not kept").max() for n in again) < 1e-6,
        "3": all((less(n, "dropped", "kept", "made again") >= 0).sum() >= 7 for n in deep),
        "4": all(
            abs(median(less(n, "dropped", "span, open", "span, closed"))) < 0.02 for n in deep
        ),
        "5": all(
            median(less(n, "streamed", "first 4, as in the cache", last)) < 0.02 for n in deep
        ),
        "6": bool(median(less(marked, "streamed", cache, last)) >= 0.02),
        "7": bool((less(marked, "streamed", cache, text) > 0).sum() >= 7),
        "8": (less(deep[0], "spliced", "moved, 0 made again", "not moved") > 0).sum() >= 7
        and apart[one].max() < 1e-6
        and min(apart[n].min() for n in deep) > 1e-3,
        "9": right[0, "at the seam"] < 0.25
        and min(v for key, v in right.items() if key != (0, "at the seam")) > 0.75,
        "10": all(
            ((error(n, "after", "channel", b) > error(n, "before", "channel", b)).sum(1) >= 7).all()
            and (
                abs(median(error(n, "after", "token", b) / error(n, "before", "token", b), 1) - 1)
                < 0.2
            ).all()
            for n, b in grids
        ),
        "11": all(median(less(n, "worn", "exact", "8 bits, 256 moves")) >= 0.05 for n in deep)
        and all(median(less(n, "worn", "exact", "8 bits, 1 moves")) < 0.01 for n in deep),
        "12": bool(abs(median((worse[:3] * [[1], [1], [2]]).sum(0) / 4)) < 0.1)
        and bool((worse[-2:] * [[1], [2]]).sum(0).min() / 3 >= 0.3),
        "13": bool(median(mark) > 0.5),
        "14": bool((less("backcopy", "streamed", cache, last) >= 0.1).sum() >= 7),
        "15": bool((less("backcopy", "streamed", cache, text) > 0).sum() >= 7),
        "16": bool(near.max() < 0.1),
    }
    return {name: bool(so) for name, so in held.items()}


def chosen(tried: dict[float, float]) -> float | None:
    """Return the best learning rate; None while it is at the edge of the grid."""
    best = min(tried, key=tried.__getitem__)
    return best if min(tried) < best < max(tried) else None


def choose(kind: Kind, tried: dict[float, float]) -> dict[float, float]:
    """Return the mean validation loss in bits of each learning rate, extending ``tried``."""
    tried = dict(tried)
    rates = [rate for rate in FIRST if rate not in tried]
    while rates or chosen(tried) is None:
        if not rates:
            best = min(tried, key=tried.__getitem__)
            at = GRID.index(best) + (1 if best == max(tried) else -1)
            if not 0 <= at < len(GRID):
                break
            rates = [GRID[at]]
        rate = rates.pop(0)
        models = train(kind, CHOOSING_SEEDS, rate)
        found = run.score(models, task_of(kind), "valid", CHOOSING_SEEDS, 1)["bits"]
        tried[rate] = round(sum(found) / len(found), 4)
        print(f"  rate {rate:g}: {tried[rate]:.3f} bits", flush=True)
    return dict(sorted(tried.items()))


def save(name: str, entry: dict[str, Any]) -> None:
    """Write the entry of a kind of model to the record, one line per kind."""
    record = (load() if RECORD.exists() else {}) | {name: entry}
    lines = [
        f"{json.dumps(n)}: {json.dumps(record[n], separators=(',', ':'))}"
        for n in KINDS
        if n in record
    ]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf8")


def main() -> None:
    """Select learning rates, train eight seeds of each kind, evaluate, and record each kind.

    Recorded learning rates are not evaluated again.
    """
    torch.set_num_threads(1)
    for name in sys.argv[1:] or KINDS:
        record = load() if RECORD.exists() else {}
        entry = record.get(name, {"kind": KINDS[name]._asdict()})
        if "measured" in entry:
            continue
        print(name, flush=True)
        cpu = time.process_time()
        tried = {float(rate): loss for rate, loss in entry.get("tried", {}).items()}
        tried = choose(KINDS[name], tried)
        rate = min(tried, key=tried.__getitem__)
        entry |= {"tried": {f"{r:g}": v for r, v in tried.items()}, "rate": rate}
        save(name, entry)
        models = train(KINDS[name], SEEDS, rate)
        entry |= {"seeds": list(SEEDS), "measured": measured(name, models, SEEDS)}
        entry["cpu_seconds"] = round(time.process_time() - cpu, 1)
        save(name, entry)


if __name__ == "__main__":
    main()
