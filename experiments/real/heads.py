"""Eight heads of the model for a figure: ``python -m experiments.real.heads`` writes them.

The figure turns queries and keys in the reader's browser, so the file holds them as they are before
the rotation, as whole numbers of a byte, with a step and a middle for every channel.
"""

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .doubts import FOUR
from .model import (
    HEADS,
    KEY_HEADS,
    LAYERS,
    WIDTH,
    Change,
    Model,
    as_complex,
    causal,
    frequencies,
    path,
)

FILE = Path(__file__).with_name("heads.json")
TEXT = (
    '"Not the same thing a bit!" said the Hatter. "You might just as well say that I see what I '
    'eat is the same thing as I eat what I see!" "You might just as well say," added the March '
    'Hare, "that I like what I get is the same thing as I get what I like!"'
)
"""From chapter 7 of Alice's Adventures in Wonderland (Lewis Carroll, 1865), in the public domain;
quotation marks within quotations are left out."""
BEGIN = 8
"""Queries before this token have few keys to choose from, and are not counted."""
FAR = 16
LEVELS = 254


class Kind(NamedTuple):
    """A kind of head: its name in the figure, and where it reads."""

    name: str
    share: str
    """One of `mask`'s."""


KINDS = (
    Kind("the token before", "before"),
    Kind("the first token", "first"),
    Kind("the token itself", "itself"),
    Kind("a few tokens back", "near"),
    Kind("the same word", "same"),
    Kind("what followed that word", "next"),
    Kind("far and near alike", "far"),
    Kind("the loudest keys", "loud"),
)


def mask(share: str, tokens: list[str], weights: Tensor) -> Tensor:
    """Return the keys that a share of attention counts, by query, (..., n, n).

    Parameters
    ----------
    share
        ``before``, ``first``, ``itself``; ``near``: two to six tokens back; ``same``: the query's
        own token, earlier; ``next``: the token after such a one; ``far``: 16 tokens back and more,
        without the first token; ``loud``: the three keys that are read most in ``weights``.
    tokens
        The text, (n,).
    weights
        The attention as released, (..., n, n).
    """
    n = len(tokens)
    at = torch.arange(n)
    back = at[:, None] - at
    equal = torch.tensor([[a == b for b in tokens] for a in tokens])
    if share == "loud":
        read = weights[..., BEGIN:, :].sum(-2)
        chosen = torch.zeros_like(read, dtype=torch.bool).scatter(-1, read.topk(3).indices, True)
        return chosen[..., None, :] & causal(n)
    return {
        "before": back == 1,
        "first": (at == 0) & (back >= 0),
        "itself": back == 0,
        "near": (back >= 2) & (back <= 6),
        "same": equal & (back > 0),
        "next": equal.roll(1, 1) & (at > 0) & (back > 0),
        "far": (back >= FAR) & (at > 0),
    }[share]


def share_of(weights: Tensor, keys: Tensor) -> Tensor:
    """Return the part of attention (..., n, n) that keys get, over the queries that have some."""
    has = keys.any(-1)
    has[..., :BEGIN] = False
    return ((weights * keys).sum(-1) * has).sum(-1) / has.sum(-1)


def attention(q: Tensor, k: Tensor, change: Change | None = None) -> Tensor:
    """Return the weights with which heads read, (h, n, n), of vectors before the rotation.

    They are what the model's own attention makes of values that are unit vectors.

    Parameters
    ----------
    q, k
        (h, n, 64), and as many heads of keys or a divisor of it.
    change
        What differs from the released model in this layer.
    """
    change, n = change or Change(), q.shape[-2]
    unit = torch.eye(n).expand(len(k), n, n)
    return Model.attend(object.__new__(Model), 0, q, k, unit, change.tables(n), change, None)


def usage(q: Tensor, k: Tensor) -> Tensor:
    """Return of each pair the mean length of queries times that of keys, as a share, (32,)."""
    lengths = as_complex(q[0]).abs().mean(0) * as_complex(k[0]).abs().mean(0)
    return lengths / lengths.sum()


def moved(weights: Tensor, other: Tensor) -> Tensor:
    """Return the part of attention (..., n, n) that is elsewhere in the other, over queries."""
    return (weights - other).abs().sum(-1)[..., BEGIN:].mean(-1) / 2


def chosen(tokens: list[str], vectors: list[tuple[Tensor, Tensor]]) -> list[tuple[int, int]]:
    """Return layer and head of each of `KINDS`: the head that is most of its kind.

    That is the largest share of attention, but for two: "far and near alike" moves least when
    nothing is turned, among heads that give the first token less than a quarter; "the loudest keys"
    moves most without pairs 22 to 25.
    """

    def read(change: Change | None = None) -> Tensor:
        return torch.stack([attention(q, k, change) for q, k in vectors])

    weights = read()
    scores: dict[str, Tensor] = {
        kind.share: share_of(weights, mask(kind.share, tokens, weights)) for kind in KINDS
    }
    still = moved(weights, read(Change(frequencies=0 * frequencies())))
    scores["far"] = torch.where(scores["first"] < 0.25, -still, -1)
    scores["loud"] = moved(weights, read(Change(left_out=FOUR)))
    found = [divmod(int(scores[kind.share].argmax()), HEADS) for kind in KINDS]
    assert len(set(found)) == len(found)
    return found


def packed(x: Tensor) -> tuple[bytes, Tensor]:
    """Return (n, 64) as bytes, and of every channel the step and the middle, (2, 64)."""
    low, high = x.amin(0), x.amax(0)
    scale = torch.stack(((high - low) / LEVELS, (high + low) / 2)).float()
    return ((x - scale[1]) / scale[0]).round().to(torch.int8).numpy().tobytes(), scale


def unpacked(entry: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Return a head's queries and keys before the rotation, as the file has them, (1, n, 64)."""
    scale = np.frombuffer(b64decode(entry["scale"]), np.float32).reshape(2, 2, WIDTH)
    found = []
    for name, (step, middle) in zip("qk", scale, strict=True):
        whole = np.frombuffer(b64decode(entry[name]), np.int8).reshape(1, -1, WIDTH)
        found.append(torch.tensor(whole * step + middle))
    return found[0], found[1]


def load() -> dict[str, Any]:
    """Return the file: ``tokens``, and of each head ``name``, ``share``, ``layer``, ``head``, and
    ``q``, ``k`` and ``scale`` in base 64."""
    return json.loads(FILE.read_text("utf8"))


def read_text(model: Model) -> tuple[list[str], list[tuple[Tensor, Tensor]]]:
    """Return the text's tokens, and queries (9, n, 64) and keys (3, n, 64) of every layer."""
    from .texts import tokenizer, tokens

    numbers, vectors = tokens(model.file, TEXT), []
    with torch.no_grad():
        model(numbers, watch=lambda layer, q, k: vectors.append((q, k)))
    assert len(vectors) == LAYERS
    return [tokenizer(model.file).decode([number]) for number in numbers], vectors


def made(model: Model) -> dict[str, Any]:
    """Return what the file holds."""
    words, vectors = read_text(model)
    heads = []
    for kind, (layer, head) in zip(KINDS, chosen(words, vectors), strict=True):
        q, k = vectors[layer][0][head], vectors[layer][1][head * KEY_HEADS // HEADS]
        (queries, a), (keys, b) = packed(q), packed(k)
        scale = torch.stack((a, b)).numpy().tobytes()
        text = [b64encode(part).decode() for part in (queries, keys, scale)]
        heads.append({**kind._asdict(), "layer": layer, "head": head,
                      **dict(zip(("q", "k", "scale"), text, strict=True))})  # fmt: skip
    return {"tokens": words, "heads": heads}


def one_word() -> dict[str, Any]:
    """Return what one word reads in the first head, as it is and without its fastest pairs.

    Returns
    -------
    dict
        ``tokens``, the text's first and the last twelve up to the word; the weights ``released``
        and ``changed`` of each; and ``out``, how many pairs are left out.
    """
    word, out, seen = 60, 4, 12
    file = load()
    q, k = unpacked(file["heads"][0])
    fewer = Change(left_out=tuple(range(out)))
    kept = [0, *range(word - seen + 1, word + 1)]
    rows = [attention(q, k, change)[0, word, kept].tolist() for change in (None, fewer)]
    released, changed = ([round(weight, 4) for weight in row] for row in rows)
    tokens = [file["tokens"][at] for at in kept]
    return {"tokens": tokens, "released": released, "changed": changed, "out": out}


def main() -> None:
    """Write the file."""
    file = path()
    if file is None:
        raise SystemExit("the model is not installed: `make real` installs it")
    FILE.write_text(json.dumps(made(Model(file)), separators=(",", ":")) + "\n", "utf8")
    print(f"{FILE.name}: {FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
