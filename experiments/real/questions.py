"""What the model is asked: one question is a list of changes, each read over all texts.

A question's name is its section of the chapter. Its jobs are named ``section/change/text``.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rope_minimal import rescaled_frequencies

from . import doubts
from .doubts import FOUR, OTHERS, WINDOW
from .model import (
    BASE,
    HEADS,
    KEY_HEADS,
    PAIRS,
    TRAINED,
    WIDTH,
    Change,
    Model,
    as_complex,
    causal,
    frequencies,
)

LONG = 12_288
"""Tokens of a long text."""
GROUPS = {"0-3": (0, 1, 2, 3), "4-7": (4, 5, 6, 7), "8-11": (8, 9, 10, 11),
          "12-15": (12, 13, 14, 15), "16-18": (16, 17, 18), "19-21": (19, 20, 21),
          "22-25": FOUR, "26-28": (26, 27, 28), "29-31": (29, 30, 31)}  # fmt: skip
MARK = 1
"""The token ``<|im_start|>``, with which every text of the chat model's training begins."""


def with_base(base: float) -> Change:
    return Change(frequencies=frequencies(base))


def not_turned(pairs: tuple[int, ...]) -> Change:
    theta = frequencies()
    theta[list(pairs)] = 0
    return Change(frequencies=theta)


def rescaled(kind: str, **parameters: Any) -> Change:
    theta, factor = rescaled_frequencies(kind, WIDTH, BASE, **parameters)
    return Change(frequencies=torch.tensor(theta), factor=factor)


LENGTHS = {"original_max_position_embeddings": TRAINED}
RESCALINGS = {
    "none": Change(),
    "PI": rescaled("linear", factor=2.0),
    "NTK": rescaled("ntk", factor=2.0),
    "by parts": rescaled("by_parts", factor=2.0, **LENGTHS),
    "YaRN": rescaled("yarn", factor=2.0, **LENGTHS),
    "llama3": rescaled("llama3", factor=2.0, low_freq_factor=1.0, high_freq_factor=4.0, **LENGTHS),
}

N = torch.arange(WINDOW)
HALF, SPAN = WINDOW // 2, slice(128, 256)


def window(kept: int) -> Change:
    """Read only the last 128 tokens, and the first ``kept``."""
    back = N[:, None] - N
    return Change(visible=causal(WINDOW) & ((back < 128) | (kept > N)))


def dropped(closed: bool) -> Change:
    """From the middle on, read what stands before and after a span, its gap closed or left."""
    visible = causal(WINDOW)
    visible[HALF:, SPAN] = False
    return Change(visible=visible, positions=torch.where(N < HALF, N, N - 128) if closed else N)


def packed(masked: bool, restarted: bool) -> Change:
    """Two texts in a row: may the second read the first, do its positions begin again?"""
    visible = causal(WINDOW)
    if masked:
        visible[HALF:, :HALF] = False
    return Change(visible=visible, positions=N % HALF if restarted else N)


SHORT: dict[str, dict[str, Change]] = {
    "released": {"as released": Change()},
    "layout": {
        "the other layout": Change(interleaved=False),
        "the other direction": Change(frequencies=-frequencies()),
        "queries alone turned": Change(key_positions=torch.zeros(WINDOW, dtype=torch.long)),
        "nothing turned": Change(frequencies=0 * frequencies()),
    },
    "base": {
        f"{base:,}": with_base(base) for base in (10_000, 50_000, 90_000, 110_000, 200_000, 500_000)
    },
    "not turned": {name: not_turned(pairs) for name, pairs in GROUPS.items()},
    "left out": {name: Change(left_out=pairs) for name, pairs in GROUPS.items()},
    "left out, one": {str(i): Change(left_out=(i,)) for i in range(12, PAIRS)},
    "the four, doubted": {
        "their mean stays": Change(left_out=FOUR, replace_by="mean"),
        "their keys shuffled": Change(left_out=FOUR, replace_by="shuffled"),
        "of the first token alone": Change(left_out=FOUR, first=True),
        "of all but the first": Change(left_out=FOUR, first=False),
        "near, below 16": Change(left_out=FOUR, far=16),
        "16 to 127": Change(left_out=FOUR, near=16, far=128),
        "128 and more": Change(left_out=FOUR, near=128),
        "layers 0-9": Change(left_out=FOUR, layers=range(10)),
        "layers 10-19": Change(left_out=FOUR, layers=range(10, 20)),
        "layers 20-29": Change(left_out=FOUR, layers=range(20, 30)),
        "all the others": Change(left_out=OTHERS),
        "all the others not turned": not_turned(OTHERS),
    },
    "distance": {
        f"{name}, {where}": Change(left_out=GROUPS[name], **limits)
        for name in ("0-3", "8-11", "16-18")
        for where, limits in (("near", {"far": 16}), ("far", {"near": 128}))
    },
    "table": {
        "positions from 7,000": Change(positions=N + 7000),
        "bfloat16": Change(table=torch.bfloat16),
        "bfloat16 from 7,000": Change(table=torch.bfloat16, positions=N + 7000),
        "positions in bfloat16 from 7,000": Change(positions=(N + 7000).bfloat16().long()),
        "positions in bfloat16": Change(positions=N.bfloat16().long()),
    },
    "short text": {name: change for name, change in RESCALINGS.items() if name != "none"}
    | {"YaRN 4": rescaled("yarn", factor=4.0, **LENGTHS), "PI 4": rescaled("linear", factor=4.0)},
    "serving": {
        "window": window(0),
        "window and first four": window(4),
        "gap left": dropped(closed=False),
        "gap closed": dropped(closed=True),
        "packed, nothing done": packed(masked=False, restarted=False),
        "packed, masked": packed(masked=True, restarted=False),
        "packed, masked, restarted": packed(masked=True, restarted=True),
        "packed, restarted": packed(masked=False, restarted=True),
        "padding counted": Change(positions=N + 64),
    },
}


LONGER = {
    "as released": Change(),
    "22-25 left out": Change(left_out=FOUR),
    "22-25 not turned": not_turned(FOUR),
    "0-3 left out": Change(left_out=GROUPS["0-3"]),
    "26-31 not turned": not_turned(tuple(range(26, PAIRS))),
}
"""Asked of 2,048 tokens, and, the last but two, of texts that begin with the model's first mark."""


def short(model: Model, texts: dict[str, Tensor], section: str, change: str, text: str) -> Any:
    """Return the losses of the first 512 tokens of a text under a change."""
    tokens = texts[text][:WINDOW]
    if change.startswith("packed"):  # after half of the next text in the list
        names = list(texts)
        before = texts[names[(names.index(text) + 1) % len(names)]][:HALF]
        tokens = torch.cat((before, tokens[HALF:]))
    return model.read(tokens, SHORT[section][change])


def alone(model: Model, texts: dict[str, Tensor], kind: str, text: str) -> Any:
    """Return the loss of a second half read without what stands before it, or without the span."""
    tokens = texts[text][:WINDOW]
    if kind == "second half alone":
        found = model.losses(tokens[HALF:])
        return {"loss": float(found.mean()), "second half": float(found.mean())}
    found = model.losses(torch.cat((tokens[: SPAN.start], tokens[HALF:])))
    return {"loss": float(found.mean()), "second half": float(found[SPAN.start :].mean())}


DISTANCES = (1, 10, 100, 1000, 8000, 30_000, 100_000)


def look(model: Model, text: Tensor) -> Any:
    """Return what queries and keys of all heads say of distances, directions and the first token.

    Scores are made at distances that the text does not have: unrotated queries and keys of random
    places, turned as if they stood ``DISTANCES`` apart.
    """
    tokens, theta = text[:WINDOW], frequencies()
    turn = torch.exp(1j * theta * torch.tensor(DISTANCES, dtype=torch.float64)[:, None])
    draw = torch.Generator("cpu").manual_seed(0)
    rows: list[dict[str, Any]] = []

    def compare(product: Tensor, pairs: Any = slice(None)) -> Tensor:
        """Return scores at the distances, (len(DISTANCES), draws)."""
        return (product[:, None, pairs] * turn[None, :, pairs]).real.sum(-1).T

    def watch(layer: int, q: Tensor, k: Tensor) -> None:
        q, k = as_complex(q.double()), as_complex(k.double())
        for head in range(HEADS):
            a, b = q[head], k[head * KEY_HEADS // HEADS]
            i, j, l = (
                torch.randint(1, WINDOW, (200,), generator=draw, device="cpu") for _ in range(3)
            )
            product, rival = a[i] * b[j].conj(), a[i] * b[l].conj()
            at, other = compare(product), compare(rival)
            noise = torch.randn(4, 200, PAIRS, generator=draw, device="cpu", dtype=torch.float64)
            gauss = torch.complex(noise[::2], noise[1::2]).to(turn)
            flat = compare(gauss[0] * gauss[1].conj())
            first = (a[1:] * b[0].conj()).real.mean(0)  # by pair, the first token's key ...
            rest = (a[1:] * b[1:].mean(0).conj()).real.mean(0)  # ... and that of the others
            rows.append({
                "size": (a[1:].abs().mean(0) * b[1:].abs().mean(0)).tolist(),
                "concentration of q": (a[1:].mean(0).abs() / a[1:].abs().mean(0)).tolist(),
                "concentration of k": (b[1:].mean(0).abs() / b[1:].abs().mean(0)).tolist(),
                "phase": torch.angle(a[1:].mean(0) * b[1:].mean(0).conj()).tolist(),
                "nearer wins": wins(at),
                "nearer wins, four": wins(compare(product, list(FOUR))),
                "nearer wins, others": wins(compare(product, list(OTHERS))),
                "nearer wins, Gaussian": wins(flat),
                "better key changes": [float(((at[0] > other[0]) != (s > o)).double().mean())
                                       for s, o in zip(at[1:], other[1:], strict=True)],
                "first token": ((first - rest) / WIDTH**0.5).tolist(),
            })  # fmt: skip

    def wins(scores: Tensor) -> list[float]:
        return [float((scores[0] > s).double().mean()) for s in scores[1:]]

    with torch.no_grad():
        model(tokens, watch=watch)
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    found: dict[str, Any] = {
        "largest pair": np.bincount(table["size"].argmax(1), minlength=PAIRS).tolist(),
        "largest pair of the first token":
            np.bincount(table["first token"].argmax(1), minlength=PAIRS).tolist(),
        "agreement": np.cos(table.pop("phase")).mean(0).round(3).tolist(),
    }  # fmt: skip
    for name, values in table.items():
        found[name] = values.mean(0).round(4).tolist()
        if name.startswith("nearer"):
            found[f"{name}, share of heads"] = (values > 0.5).mean(0).round(4).tolist()
    return found


def sink(model: Model, text: Tensor) -> Any:
    """Return the first token's share of attention by layer, as released and without pairs."""
    tokens, found = text[:WINDOW], {}
    theta = frequencies()
    mask = causal(WINDOW)
    for name, pairs in {"as released": (), **GROUPS}.items():
        shares: list[float] = []

        def watch(
            layer: int, q: Tensor, k: Tensor, pairs: Any = pairs, shares: Any = shares
        ) -> None:
            q, k = as_complex(q.double()), as_complex(k.double())
            phase = torch.exp(1j * theta * N[:, None])
            keep = torch.ones(PAIRS)
            keep[list(pairs)] = 0
            q, k = q * phase, k * phase * keep
            k = k.repeat_interleave(HEADS // KEY_HEADS, 0)
            scores = (q @ k.mH).real / WIDTH**0.5
            weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
            shares.append(float(weights[:, 64:, 0].mean()))

        with torch.no_grad():
            model(tokens, watch=watch)
        found[name] = np.round(shares, 4).tolist()
    return found


ASKED_AT = (6144, LONG)
"""Where a long text is interrupted by the questions: within the trained length, and past it."""


def read_long(model: Model, tokens: Tensor, needles: list[tuple[int, Tensor, Tensor]],
              change: Change, asked_at: tuple[int, ...] = ASKED_AT) -> Any:  # fmt: skip
    """Read a long text with needles in it, and be asked for those that have been read.

    Returns
    -------
    dict
        ``loss`` in stretches of 1,024 tokens; ``needles`` by the place of the question: of each its
        distance, the loss of its four digits, how many are the model's first choice and whether
        the first one is.
    """
    cache: list[Any] = []
    hidden: list[Tensor] = []
    asked: dict[str, Any] = {}
    with torch.no_grad():
        for part in tokens.split(2048):
            hidden.append(model(part, place(change, sum(map(len, hidden)), len(part)), cache))
            here = sum(map(len, hidden))
            if here in asked_at:
                asked[str(here)] = [ask(model, cache, here, needle, change)
                                    for needle in needles if needle[0] + 32 < here]  # fmt: skip
        states = torch.cat(hidden)
        loss = model.loss_of(states[:-1], tokens[1:])
    return {"loss": [float(x.mean()) for x in loss.split(1024)], "needles": asked}


def ask(model: Model, cache: list[Any], here: int, needle: tuple[int, Tensor, Tensor],
        change: Change) -> dict[str, Any]:  # fmt: skip
    """Return what the model makes of one question, whose tokens stand from ``here`` on."""
    at, question, answer = needle
    asked = torch.cat((question, answer))
    h = model(asked, place(change, here, len(asked)), [(k, v) for k, v in cache])
    tail = h[len(question) - 1 : -1]
    best = (tail @ model.weights["token_embd"].T).argmax(-1)
    return {"distance": here - at, "loss": float(model.loss_of(tail, answer).mean()),
            "right": int((best == answer).sum()), "first": bool(best[0] == answer[0])}  # fmt: skip


def ask_near(model: Model, tokens: Tensor, needles: list[tuple[int, Tensor, Tensor]]) -> Any:
    """Return the same for each needle of a long text, read alone with 64 tokens on either side."""
    found = []
    with torch.no_grad():
        for at, question, answer in needles:
            start = max(at - 64, 0)
            cache: list[Any] = []
            here = len(tokens[start : at + 64])
            model(tokens[start : at + 64], None, cache)
            near = (at - start, question, answer)
            found.append(ask(model, cache, here, near, Change()))
    return {"needles": found}


def read_in_part(model: Model, tokens: Tensor, mean_turns: bool) -> Any:
    """Return the loss in stretches of 1,024 tokens where a part of the four's keys rests."""
    loss = doubts.TurnedInPart(model, mean_turns).losses(tokens)
    return {"loss": [float(x.mean()) for x in loss.split(1024)]}


def place(change: Change, start: int, n: int) -> Change:
    return replace(change, positions=torch.arange(start, start + n))


Job = tuple[str, Callable[[Model], Any]]


def jobs(short_texts: dict[str, Tensor], long_texts: dict[str, Any]) -> Iterator[Job]:
    """Yield every job of the record: its name, and a function of the model."""
    for section, changes in SHORT.items():
        for change in changes:
            for text in short_texts:
                job = partial(short, texts=short_texts, section=section, change=change, text=text)
                yield f"{section}/{change}/{text}", job
    for kind in ("second half alone", "span left out"):
        for text in short_texts:
            yield (f"serving/{kind}/{text}", lambda m, k=kind, t=text: alone(m, short_texts, k, t))
    for text, tokens in short_texts.items():
        yield f"look/all heads/{text}", lambda m, t=tokens: look(m, t)
        yield f"sink/by pairs/{text}", lambda m, t=tokens: sink(m, t)
    for change in LONGER:
        for text, tokens in short_texts.items():
            yield (f"2,048 tokens/{change}/{text}",
                   lambda m, t=tokens, c=change: m.read(t[:2048], LONGER[c]))  # fmt: skip
    for change in list(LONGER)[:3]:
        for text, tokens in short_texts.items():
            marked = torch.cat((torch.tensor([MARK]), tokens[: WINDOW - 1]))
            yield (f"first mark/{change}/{text}",
                   lambda m, t=marked, c=change: m.read(t, LONGER[c]))  # fmt: skip
    for change in list(LONGER)[:4]:
        for number in range(6):
            draw = torch.Generator("cpu").manual_seed(number)
            drawn = torch.randint(1000, 40_000, (HALF,), generator=draw, device="cpu").repeat(2)
            yield (f"said twice/{change}/draw {number}",
                   lambda m, t=drawn, c=change: m.read(t.to(N.device), LONGER[c]))  # fmt: skip
    yield from doubts.jobs(short_texts)
    for text, (tokens, needles) in long_texts.items():
        for name, change in RESCALINGS.items():
            if name != "llama3":
                yield (f"past the length/{name}/{text}",
                       lambda m, t=tokens, n=needles, c=change: read_long(m, t, n, c))  # fmt: skip
        still = LONGER["22-25 not turned"]
        yield (f"past the length/22-25 not turned/{text}",
               lambda m, t=tokens, n=needles, c=still: read_long(m, t, n, c))  # fmt: skip
        yield f"needles near/as released/{text}", lambda m, t=tokens, n=needles: ask_near(m, t, n)
    yield from afterwards(short_texts, long_texts)


def afterwards(short_texts: dict[str, Tensor], long_texts: dict[str, Any]) -> Iterator[Job]:
    """Yield the jobs that were added when the chapter was written, without predictions."""
    for text, tokens in short_texts.items():
        first = tokens[:WINDOW]
        for name, change in doubts.AFTERWARDS.items():
            yield f"afterwards/{name}/{text}", partial(Model.read, tokens=first, change=change)
        yield f"fading/22-25/{text}", partial(doubts.fading, text=first)
    for text, (tokens, needles) in long_texts.items():
        for name, change, length in (
            ("base 10,000", with_base(10_000), TRAINED),
            ("19-21 not turned", not_turned(GROUPS["19-21"]), TRAINED),
            ("26-31 not turned", LONGER["26-31 not turned"], TRAINED),
            ("none", Change(), 10_240),
            ("YaRN", RESCALINGS["YaRN"], 10_240),
        ):
            yield (f"long, afterwards/{name}/{text}",
                   partial(read_long, tokens=tokens[:length], needles=needles, change=change,
                           asked_at=(length,)))  # fmt: skip
        for name, so in (("mean key turns", True), ("mean key rests", False)):
            yield (f"long, afterwards/{name}/{text}",
                   partial(read_in_part, tokens=tokens[:4096], mean_turns=so))  # fmt: skip
    yield from doubts.last_jobs(short_texts)
