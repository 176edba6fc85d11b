"""A sceptic's list: what else than their content could make pairs 22 to 25 so dear?

Each doubt is a run; what it would say was predicted (``predictions-real.json``, 23 on) unless it is
said to have been asked afterwards.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from rope_minimal import apply_rope

from .model import (
    HEADS,
    KEY_HEADS,
    LAYERS,
    PAIRS,
    TRAINED,
    WIDTH,
    Change,
    Model,
    as_complex,
    causal,
    frequencies,
)

FOUR = (22, 23, 24, 25)
"""The first pairs whose wavelength is more than twice the trained length."""
OTHERS = tuple(i for i in range(PAIRS) if i not in FOUR)
WINDOW = 512
"""Tokens of a short text."""


def turning_as(pairs: tuple[int, ...]) -> Change:
    """Let the four turn as other pairs do."""
    theta = frequencies()
    theta[list(FOUR)] = theta[list(pairs)]
    return Change(frequencies=theta)


DOUBTS: dict[str, Change] = {
    # is it the size of the scores, and not what they say?
    "spread restored": Change(left_out=FOUR, restored="spread"),
    "three quarters kept": Change(left_out=FOUR, kept=0.75),
    "half kept": Change(left_out=FOUR, kept=0.5),
    "a quarter kept": Change(left_out=FOUR, kept=0.25),
    "of the others, half kept": Change(left_out=OTHERS, kept=0.5),
    "random directions": Change(left_out=FOUR, replace_by="random direction"),
    # is it the sink?
    "first token's weight restored": Change(left_out=FOUR, restored="first"),
    "all but the first's weight restored": Change(left_out=FOUR, restored="others"),
    "29-31, first token's weight restored": Change(left_out=(29, 30, 31), restored="first"),
    "0-3, first token's weight restored": Change(left_out=(0, 1, 2, 3), restored="first"),
    "the others, first token's weight restored": Change(left_out=OTHERS, restored="first"),
    # what do they say: which key, or that it is a key to read? length or direction?
    "keys of the token before": Change(left_out=FOUR, replace_by="previous"),
    "mean query": Change(left_out=FOUR, of_queries=True, replace_by="mean"),
    "own length, mean direction": Change(left_out=FOUR, replace_by="mean direction"),
    "own direction, mean length": Change(left_out=FOUR, replace_by="mean length"),
    # need they stand still?
    "turning as 12-15": turning_as((12, 13, 14, 15)),
    "turning as 16-19": turning_as((16, 17, 18, 19)),
    "turning as 28-31": turning_as((28, 29, 30, 31)),
    "layer 0 alone": Change(left_out=FOUR, layers=range(1)),
}

AFTERWARDS: dict[str, Change] = {
    "29-31, all but the first's weight restored": Change(left_out=(29, 30, 31), restored="others"),
    "0-3, mean query": Change(left_out=(0, 1, 2, 3), of_queries=True, replace_by="mean"),
    "29-31, mean query": Change(left_out=(29, 30, 31), of_queries=True, replace_by="mean"),
    "keys shuffled but the first": Change(left_out=FOUR, replace_by="shuffled but the first"),
}
"""Asked when the chapter was written, without a prediction."""

GROUPS_OF_FOUR = ("18-21", "20-23", "21-24", "23-26", "24-27", "26-29", "28-31")
NOISED = ("0-3", "12-15", "22-25", "28-31")
AS_LARGE = ("as large, of the others", "as large, of 0-21", "as large, of 26-31")


def span(name: str) -> tuple[int, ...]:
    first, last = map(int, name.split("-"))
    return tuple(range(first, last + 1))


BESIDES: dict[str, dict[str, Change]] = {
    # is it these four, or do any neighbours do?
    "neighbours left out": {name: Change(left_out=span(name)) for name in
                            (*GROUPS_OF_FOUR, "22-24", "23-25", "0-21", "26-31")},
    "random directions": {name: Change(left_out=span(name), replace_by="random direction")
                          for name in NOISED if name != "22-25"},
}  # fmt: skip
"""Asked last, without a prediction, as are ``AS_LARGE`` and ``Noised``."""

BY_HEAD = ("largest four besides", "largest two anywhere", "four in the 9 largest",
           "four in the other 81")  # fmt: skip


def sizes(model: Model, text: Tensor) -> Tensor:
    """Return the mean of |q| |k| by layer, key head and pair, (30, 3, 32)."""
    rows: list[Tensor] = []

    def watch(layer: int, q: Tensor, k: Tensor) -> None:
        q, k = (x.unflatten(-1, (PAIRS, 2)).norm(dim=-1)[:, 1:].mean(1) for x in (q, k))
        rows.append(q.unflatten(0, (KEY_HEADS, -1)).mean(1) * k)

    with torch.no_grad():
        model(text, watch=watch)
    return torch.stack(rows)


def by_head(model: Model, text: Tensor, kind: str) -> Change:
    """Return a change that leaves other pairs out in each head, by their sizes in this text."""
    found = sizes(model, text)
    four = torch.zeros(LAYERS, KEY_HEADS, PAIRS, dtype=torch.bool)
    four[..., list(FOUR)] = True
    if kind.startswith("largest"):
        besides = kind.endswith("besides")
        best = found.masked_fill(four, 0) if besides else found
        chosen = best.argsort(-1, descending=True)[..., : 4 if besides else 2]
        return Change(left_out=torch.zeros_like(four).scatter(-1, chosen, True))
    of_head = (found * four).sum(-1).flatten()
    largest = torch.zeros(LAYERS * KEY_HEADS, dtype=torch.bool)
    largest[of_head.argsort(descending=True)[:9]] = True
    if kind == "four in the other 81":
        largest = ~largest
    return Change(left_out=four & largest.view(LAYERS, KEY_HEADS, 1))


def as_large(model: Model, text: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """Return which pairs of a head are together as large as the four, and all sizes.

    They are the largest of those named, as many as come nearest to the size of the four.
    """
    found = sizes(model, text)
    four = found[..., list(FOUR)].sum(-1, keepdim=True)
    of = OTHERS if kind.endswith("others") else span(kind.split()[-1])
    named = torch.zeros(PAIRS, dtype=torch.bool)
    named[list(of)] = True
    ordered, order = (found * named).sort(-1, descending=True)
    total = torch.cat((torch.zeros_like(four), ordered.cumsum(-1)[..., : len(of)]), -1)
    count = (total - four).abs().argmin(-1, keepdim=True)
    chosen = torch.arange(PAIRS) < count
    return torch.zeros_like(chosen).scatter(-1, order, chosen), found


def read_as_large(model: Model, text: Tensor, kind: str) -> Any:
    """Return the losses without those pairs, how many they are and their size by the four's."""
    chosen, found = as_large(model, text, kind)
    four = found[..., list(FOUR)].sum(-1)
    return model.read(text, Change(left_out=chosen)) | {
        "pairs": float(chosen.double().sum(-1).mean()),
        "size": float(((found * chosen).sum(-1) / four).mean()),
    }


def shares(model: Model, text: Tensor) -> Any:
    """Return each pair's share of the variance of a query's scores, and that of the four by head.

    The share is the covariance of the pair's part with the whole, over the keys that the query
    sees but the first, by the variance of the whole: the shares of all pairs add up to one.
    """
    turn = torch.exp(1j * frequencies() * torch.arange(WINDOW, dtype=torch.float64)[:, None])
    asked = slice(WINDOW - 64, WINDOW)
    visible = causal(WINDOW)[asked, 1:]
    count = visible.sum(-1)
    rows: list[Tensor] = []

    def watch(layer: int, q: Tensor, k: Tensor) -> None:
        q, k = as_complex(q.double()) * turn, as_complex(k.double()) * turn
        k = k.repeat_interleave(HEADS // KEY_HEADS, 0)[:, 1:]
        for a, b in zip(q[:, asked], k, strict=True):
            part = (a[:, None] * b[None].conj()).real * visible[..., None]
            part = (part - part.sum(1, keepdim=True) / count[:, None, None]) * visible[..., None]
            whole = part.sum(-1, keepdim=True)
            rows.append(((part * whole).sum(1) / (whole**2).sum(1)).mean(0))

    with torch.no_grad():
        model(text, watch=watch)
    table = torch.stack(rows).cpu().numpy()
    four = np.quantile(table[:, list(FOUR)].sum(1), np.linspace(0, 1, 11))
    return {"by pair": table.mean(0).tolist(), "four, deciles over heads": four.tolist()}


def rounding(model: Model) -> dict[str, Tensor]:
    """Return the error that Q4_1 may have left in each row of the query and key maps, by its size.

    A block of 32 weights has 16 equal steps ``d``; a rounding error has the variance d² / 12.
    """
    from gguf import GGUFReader

    found = {}
    for each in GGUFReader(model.file).tensors:
        if each.name.endswith(("attn_q.weight", "attn_k.weight")):
            assert each.tensor_type.name == "Q4_1"
            blocks = torch.tensor(np.asarray(each.data), device="cpu").view(-1, 18, 20)
            steps = blocks[..., :2].contiguous().view(torch.float16).float()[..., 0]
            name = each.name.removesuffix(".weight")
            rows = model.weights[name].cpu()
            found[name] = (steps**2 / 12).mean(-1).sqrt() / rows.square().mean(-1).sqrt()
    return found


def rounded_again(model: Model, text: Tensor, pairs: tuple[int, ...]) -> Any:
    """Return the loss where the rows of some pairs carry as much error again as Q4_1's."""
    draw, weights = torch.Generator("cpu").manual_seed(0), dict(model.weights)
    rows = torch.tensor([i for p in pairs for i in (2 * p, 2 * p + 1)], device="cpu")
    for name, error in rounding(model).items():
        w = weights[name].cpu().clone()
        at = (torch.arange(0, len(w), WIDTH, device="cpu")[:, None] + rows).flatten()
        size = (error * w.square().mean(-1).sqrt())[at, None]
        w[at] += size * torch.randn(len(at), w.shape[1], generator=draw, device="cpu")
        weights[name] = w.to(model.weights[name])
    noisy = object.__new__(Model)
    noisy.weights = weights
    return noisy.read(text)


def rounding_by_pair(model: Model) -> Any:
    found = rounding(model)
    return {side: torch.stack([error.view(-1, PAIRS, 2).mean((0, 2)) for name, error in
                               found.items() if name.endswith(side)]).mean(0).tolist()
            for side in ("attn_q", "attn_k")}  # fmt: skip


class Noised(Model):
    """The model with noise in some pairs of all keys but the first.

    What is added to a pair points in a random direction, and its products with queries are together
    ``part`` times as large as those of the four in this head, whichever pairs have them.
    """

    def __init__(self, model: Model, pairs: tuple[int, ...], part: float) -> None:
        self.weights, self.pairs, self.part = model.weights, list(pairs), part

    def attend(self, layer: int, q: Tensor, k: Tensor, *rest: Any) -> Tensor:
        return super().attend(layer, q, self.noised(layer, q, k), *rest)

    def noised(self, layer: int, q: Tensor, k: Tensor) -> Tensor:
        """Return the keys with their noise, (3, n, 64)."""
        z, draw = as_complex(k).clone(), torch.Generator("cpu").manual_seed(layer)
        asking, asked = (as_complex(x)[:, 1:].abs().mean(1) for x in (q, k))
        asking = asking.unflatten(0, (KEY_HEADS, -1)).mean(1)
        size = (asking * asked)[:, list(FOUR)].sum(-1, keepdim=True)
        length = self.part * size / len(self.pairs) / asking[:, self.pairs]
        shape = (KEY_HEADS, z.shape[1] - 1, len(self.pairs))
        turn = torch.rand(shape, generator=draw, device="cpu").to(k) * 2 * torch.pi
        z[:, 1:, self.pairs] += length[:, None] * torch.exp(1j * turn)
        return torch.view_as_real(z).flatten(-2)


class TurnedInPart(Model):
    """The model with the four of each key in two parts, of which one turns and the other rests.

    The parts are the head's mean key, over the tokens 1 to 511, and what a key has besides.
    """

    def __init__(self, model: Model, mean_turns: bool) -> None:
        self.weights, self.mean_turns = model.weights, mean_turns

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, tables: Any, change: Change,
               cache: list[Any] | None) -> Tensor:  # fmt: skip
        four = torch.zeros(PAIRS, dtype=torch.bool)
        four[list(FOUR)] = True
        four = four.repeat_interleave(2)
        mean = k[:, 1:WINDOW].mean(1, keepdim=True).expand_as(k)
        turns, rests = (mean, k - mean) if self.mean_turns else (k - mean, mean)
        turns = apply_rope(torch.where(four, turns, k), *tables[1], interleaved=True)
        asking = torch.cat((apply_rope(q, *tables[0], interleaved=True), q[..., four]), -1)
        asked = torch.cat((turns, rests[..., four]), -1)
        return scaled_dot_product_attention(
            asking[None], asked[None], v[None], is_causal=True, enable_gqa=True, scale=WIDTH**-0.5
        )[0]


def fading(model: Model, text: Tensor) -> Any:
    """Return where the four's waves start, and what they take from a key within 8,192 tokens.

    Returns
    -------
    dict
        ``phase`` of the head's mean query with its mean key in degrees, its quartiles over heads by
        pair of the four. The four's part of the mean query's scores in logits at distance 0 and at
        8,192, by the mean over heads: of ``all`` keys, and of the tenth that is ``loud``est at
        distance 0. The share of heads in which it is lower at 8,192 (``all fall``), and in which
        that of the loud keys falls all the way (``loud only fall``).
    """
    distance = torch.arange(0, TRAINED + 1, 32, dtype=torch.float64)
    turn = torch.exp(1j * frequencies()[list(FOUR)] * distance[:, None])
    rows: list[dict[str, Any]] = []

    def watch(layer: int, q: Tensor, k: Tensor) -> None:
        q, k = (as_complex(x.double())[:, 1:, list(FOUR)] for x in (q, k))
        for head in range(HEADS):
            a, b = q[head].mean(0), k[head * KEY_HEADS // HEADS]
            scores = ((a * b.conj()) @ turn.T).real / WIDTH**0.5
            loud = scores[scores[:, 0].argsort(descending=True)[: len(b) // 10]].mean(0)
            every = scores.mean(0)
            rows.append({
                "phase": torch.angle(a * b.mean(0).conj()).rad2deg().tolist(),
                "all": every[[0, -1]].tolist(), "loud": loud[[0, -1]].tolist(),
                "all fall": bool(every[-1] < every[0]),
                "loud only fall": bool((loud.diff() <= 0).all()),
            })  # fmt: skip

    with torch.no_grad():
        model(text, watch=watch)
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    phases = np.quantile(table.pop("phase"), (0.25, 0.5, 0.75), axis=0)
    return {"phase": phases.tolist()} | {n: values.mean(0).tolist() for n, values in table.items()}


def jobs(texts: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[Model], Any]]]:
    """Yield the jobs of the sceptic's list."""
    for name, full in texts.items():
        text = full[:WINDOW]
        for doubt, change in DOUBTS.items():
            yield f"doubts/{doubt}/{name}", partial(Model.read, tokens=text, change=change)
        for kind in BY_HEAD:
            yield (f"doubts/{kind}/{name}",
                   lambda m, t=text, k=kind: m.read(t, by_head(m, t, k)))  # fmt: skip
        for kind, pairs in (("four rounded again", FOUR), ("others rounded again", OTHERS)):
            yield f"doubts/{kind}/{name}", partial(rounded_again, text=text, pairs=pairs)
        yield f"shares/by pair/{name}", partial(shares, text=text)
    yield "rounding/Q4_1/weights", rounding_by_pair


def last_jobs(texts: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[Model], Any]]]:
    """Yield the jobs that ask whether other pairs, as many or as large, do what the four do."""
    for name, full in texts.items():
        text = full[:WINDOW]
        for section, changes in BESIDES.items():
            for pairs, change in changes.items():
                yield f"{section}/{pairs}/{name}", partial(Model.read, tokens=text, change=change)
        for kind in AS_LARGE:
            yield f"left out, as large/{kind}/{name}", partial(read_as_large, text=text, kind=kind)
        for pairs in NOISED:
            for part in (0.5, 1.0):
                yield (
                    f"noise/{pairs}, {part}/{name}",
                    lambda m, t=text, p=pairs, x=part: Noised(m, span(p), x).read(t),
                )
