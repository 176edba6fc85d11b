"""Four tasks. Three of them have an exact right answer and need positions in different ways."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pydoc_data.topics import topics

import torch
from torch import Tensor

IGNORE = -100
"""A target that is not asked for."""

LAG = 7
"""The copy task looks 7 steps back: where the paper sees the angle of pair 0 fall to 0.72."""

SYMBOLS = 16
MARKER, QUERY = SYMBOLS, SYMBOLS + 1
QUERIES = 16

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Task:
    """What is asked, and how long a model is trained for it.

    ``draw(split, generator, size, length)`` gives tokens and targets, each (size, length).
    """

    name: str
    words: str
    draw: Callable[[str, torch.Generator, int, int], Batch]
    vocabulary: int
    window: int
    steps: int
    batch: int = 32
    unit: str = "accuracy"
    """What it is scored in: ``accuracy``, or ``bits`` a target, where less is better."""

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
    return tokens, targets


def induction(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Name the token that followed when this one was last seen."""
    tokens = _symbols(generator, size, length)
    last = torch.full((size, SYMBOLS), -1)
    rows = torch.arange(size)
    targets = torch.full_like(tokens, IGNORE)
    for t in range(length):
        before = last[rows, tokens[:, t]]
        known = before >= 0
        targets[known, t] = tokens[rows[known], before[known] + 1]
        last[rows, tokens[:, t]] = t
    return tokens, targets


def find(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Name the token behind the one marker, wherever it was, at each of sixteen queries."""
    tokens = _symbols(generator, size, length)
    targets = torch.full_like(tokens, IGNORE)
    room = length - 2 - QUERIES
    marker = torch.randint(room + 1, (size, 1), generator=generator)
    rows = torch.arange(size)[:, None]
    tokens[rows, marker] = MARKER
    after = torch.arange(length) > marker + 1
    order = torch.rand(size, length, generator=generator).masked_fill(~after, 2.0)
    asked = order.argsort(dim=-1)[:, :QUERIES]
    value = tokens[rows, marker + 1]
    tokens[rows, asked] = QUERY
    targets[rows, asked] = value.expand(-1, QUERIES)
    return tokens, targets


@cache
def text(split: str) -> Tensor:
    """Return Python's own help texts as bytes, (n,): eight tenths to train, a tenth each to test.

    The texts of ``pydoc_data.topics`` are English, with some code. Every tenth block of 4096 bytes
    is for validation, the one after it for the test.
    """
    everything = torch.frombuffer(
        bytearray("\n".join(topics[name] for name in sorted(topics)).encode()), dtype=torch.uint8
    )
    blocks = everything[: everything.numel() // 4096 * 4096].view(-1, 4096).long()
    turn = torch.arange(len(blocks)) % 10
    wanted = {"train": turn < 8, "valid": turn == 8, "test": turn == 9}[split]
    return blocks[wanted].flatten() if split == "train" else blocks[wanted]


def language(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Name the next byte of an English text."""
    blocks = text(split)
    if split == "train":
        start = torch.randint(blocks.numel() - length, (size, 1), generator=generator)
        window = blocks[start + torch.arange(length + 1)]
    else:
        row = torch.randint(len(blocks), (size, 1), generator=generator)
        start = torch.randint(4096 - length, (size, 1), generator=generator)
        window = blocks[row, start + torch.arange(length + 1)]
    return window[:, :-1], window[:, 1:]


TASKS = {
    task.name: task
    for task in (
        Task("copy", "copy the token from 7 steps back", copy, SYMBOLS, 64, 200),
        Task("induction", "repeat what followed last time", induction, SYMBOLS, 64, 400),
        Task("find", "find the marked token", find, SYMBOLS + 2, 64, 500),
        Task("language", "predict the next byte of English", language, 256, 128, 600, 16, "bits"),
    )
}
