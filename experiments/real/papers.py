"""What works on rotary features claim, asked of the model: ``python -m experiments.real.papers``.

The thresholds stand in ``predictions-papers.json``. The record is ``papers.json``.
"""

import argparse
import json
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from rope_minimal import apply_rope

from .__main__ import WEIGHTS
from .model import HEADS, KEY_HEADS, PAIRS, TRAINED, WIDTH, Change, Model, frequencies, path
from .questions import RESCALINGS, read_long
from .texts import SOURCE, long_texts, short_texts

RECORD = Path(__file__).parent / "papers.json"
WINDOW, LENGTH, HALF = 512, 1024, 256
FAST, SLOW = tuple(range(8)), tuple(range(24, 32))


class Watched(Model):
    """The model, with its values shown to a watcher beside queries and keys."""

    def __init__(self, model: Model, watcher: Any) -> None:
        self.weights, self.watcher = model.weights, watcher

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> Tensor:
        self.watcher(layer, q, k, v)
        return super().attend(layer, q, k, v, *rest)


def massive(model: Model, text: Tensor) -> Any:
    """Return how far the largest channel of a head stands above its mean channel, by layer.

    A channel's size is the mean of its absolute values over tokens 1 to 511. ``at`` counts, over
    all heads, the pair that has the largest channel.
    """
    found: dict[str, Any] = {"q": [], "k": [], "v": [], "at": np.zeros(PAIRS, dtype=int)}

    def watcher(layer: int, *vectors: Tensor) -> None:
        for name, x in zip("qkv", vectors, strict=True):
            size = x[:, 1:].abs().mean(1)
            found[name].append(float((size.amax(-1) / size.mean(-1)).median()))
            if name == "q":
                found["at"] += np.bincount(size.argmax(-1).numpy() // 2, minlength=PAIRS)

    Watched(model, watcher)(text[:WINDOW])
    return found | {"at": found["at"].tolist()}


def drift(model: Model, number: int, distance: int = 16) -> Any:
    """Return by how much the scores at one distance move with the position, by layer and head.

    The text is 1,024 random tokens. Compared are the queries of positions 128 to 255 and of 896 to
    1,023, in standard deviations of the scores at this distance.
    """
    draw = torch.Generator("cpu").manual_seed(number)
    text = torch.randint(1000, 40_000, (LENGTH,), generator=draw)
    tables = Change().tables(LENGTH)[0]
    moved: list[list[float]] = []

    def watch(layer: int, q: Tensor, k: Tensor) -> None:
        q, k = (apply_rope(x, *tables, interleaved=True) for x in (q, k))
        k = k.repeat_interleave(HEADS // KEY_HEADS, 0)
        scores = (q[:, distance:] * k[:, :-distance]).sum(-1)  # of the queries from distance on
        early, late = scores[:, 128 - distance : 256 - distance], scores[:, 896 - distance :]
        moved.append(((late.mean(-1) - early.mean(-1)) / scores.std(-1)).tolist())

    model(text, watch=watch)
    return moved


def copied(model: Model, number: int, left_out: tuple[int, ...], first: bool | None = None) -> Any:
    """Return the loss of the second half of 256 random tokens that are said twice.

    ``first`` False spares the first token's key, so that attention keeps its sink.
    """
    draw = torch.Generator("cpu").manual_seed(number)
    text = torch.randint(1000, 40_000, (HALF,), generator=draw).repeat(2)
    change = Change(left_out=left_out, near=128, first=first)
    return float(model.losses(text, change)[HALF:].mean())


def sinks(model: Model, text: Tensor, change: Change) -> Any:
    """Return the first token's share of attention in stretches of 1,024 tokens, by layer."""
    n = len(text)
    tables, every = change.tables(n)[0], torch.arange(63, n, 64)
    visible = torch.arange(n) <= every[:, None]
    shares: list[list[float]] = []

    def watch(layer: int, q: Tensor, k: Tensor) -> None:
        q, k = (apply_rope(x, *tables, interleaved=True) for x in (q, k))
        found = []
        for head in range(HEADS):
            scores = q[head, every] @ k[head * KEY_HEADS // HEADS].T / WIDTH**0.5
            found.append(scores.masked_fill(~visible, -torch.inf).softmax(-1)[:, 0])
        shares.append(torch.stack(found).mean(0).view(-1, 1024 // 64).mean(-1).tolist())

    model(text, change, watch=watch)
    return shares


def faded() -> Change:
    """Return the change that lets pairs fade out whose period is longer than the trained length.

    By half a cosine, from the first of them to the slowest, which rests.
    """
    theta = frequencies()
    slow = 2 * torch.pi / theta > TRAINED
    theta[slow] *= 0.5 * (1 + torch.cos(torch.linspace(0, torch.pi, int(slow.sum()))))
    return Change(frequencies=theta)


def jobs(file: Path, archive: Path) -> dict[str, Any]:
    """Return every job by name, functions of the model."""
    short, long = short_texts(file, archive), long_texts(file, archive)
    found: dict[str, Any] = {f"massive/{n}": partial(massive, text=t) for n, t in short.items()}
    for number in range(6):
        found[f"drift/draw {number}"] = partial(drift, number=number)
        for name, pairs in {"as released": (), "0-7": FAST, "24-31": SLOW}.items():
            found[f"copied/{name}/draw {number}"] = partial(copied, number=number, left_out=pairs)
        found[f"copied/24-31, sink spared/draw {number}"] = partial(
            copied, number=number, left_out=SLOW, first=False
        )
    for name, change in {"as released": Change(), "YaRN": RESCALINGS["YaRN"]}.items():
        found[f"sinks/{name}"] = partial(sinks, text=long["workshop"][0], change=change)
    for name, (text, needles) in long.items():
        found[f"faded/{name}"] = partial(read_long, tokens=text, needles=needles, change=faded())
    return found


def load() -> dict[str, Any]:
    """Return the record, by job."""
    return json.loads(RECORD.read_text("utf8"))


def judged() -> dict[str, bool]:
    """Return which predictions held."""
    from . import summary

    found, texts = load(), summary.TEXTS
    far = {n: np.array([found[f"massive/{t}"][n] for t in texts]) for n in "qkv"}  # texts, layers
    over = {n: x - 1 for n, x in far.items()}  # above the mean channel
    least = np.minimum(over["q"], over["k"])
    at = np.array([found[f"massive/{t}"]["at"] for t in texts]).sum(0)
    moved = np.median(np.abs(np.mean([found[f"drift/draw {i}"] for i in range(6)], 0)), 1)
    cost = {
        n: np.median([found[f"copied/{n}/draw {i}"] - found[f"copied/as released/draw {i}"]
                      for i in range(6)]) for n in ("0-7", "24-31", "24-31, sink spared")
    }  # fmt: skip
    share = {n: np.array(found[f"sinks/{n}"])[12:].mean(0) for n in ("as released", "YaRN")}
    before, after = share["as released"][4:8].mean(), {n: s[10:].mean() for n, s in share.items()}
    loss = np.array([found[f"faded/{t}"]["loss"] for t in summary.LONG_TEXTS])
    gain = loss - summary.long_loss("none")
    return {
        "1": bool((np.median(least, 1) >= 2 * np.median(over["v"], 1)).all()),
        "2": bool(at[16:].sum() / at.sum() >= 0.9),
        "3": bool((least[:, 0] >= 2 * over["v"][:, 0]).all()),
        "4": bool(moved[0] < 0.05 and np.median(moved[1:]) > 0.2),
        "5": bool(cost["0-7"] < 0.2 and cost["24-31"] > 1),
        "6": bool(after["as released"] < before / 2 and after["YaRN"] > 0.75 * before),
        "7": bool((gain[:, 10:].mean(1) < 0).all() and (gain[:, :8].mean(1) >= 0.1).all()),
        "8": bool(cost["24-31, sink spared"] > 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.real.papers", description=__doc__)
    parser.add_argument("--archive", type=Path, default=WEIGHTS / SOURCE, help="the texts")
    archive, file = parser.parse_args().archive, path()
    if file is None:
        parser.error("the model is not installed: `make real` installs it")
    if not archive.exists():
        parser.error(f"{archive} is missing: `make real` downloads it")
    done = load() if RECORD.exists() else {}
    model, began = Model(file), time.perf_counter()
    with torch.no_grad():
        for name, job in tqdm(jobs(file, archive).items(), unit="job"):
            if name not in done:
                found = json.dumps(job(model))
                done[name] = json.loads(found, parse_float=lambda x: round(float(x), 4))
                done["about"] = {
                    "date": datetime.now(UTC).date().isoformat(),
                    "torch": torch.__version__,
                    "device": "cpu",
                    "threads": torch.get_num_threads(),
                    "seconds": round(time.perf_counter() - began),
                }
                RECORD.write_text(json.dumps(done, separators=(",", ":")) + "\n", "utf8")
    print(judged())


if __name__ == "__main__":
    main()
