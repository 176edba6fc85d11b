"""A rotation by its parameters, and which of them an answer got wrong."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from rope_minimal.frequencies import inverse_frequencies

from .lab import Slip, agree

__all__ = ["Turn", "explain", "series"]


def series(width: int, base: float) -> tuple[float, ...]:
    """Return the inverse frequencies of a width, fastest first."""
    return tuple(inverse_frequencies(width, base).tolist())


@dataclass(frozen=True)
class Turn:
    """A rotary position embedding of ``head_dim`` channels, as a function of x and positions.

    Attributes
    ----------
    head_dim, width
        Channels of a head, and how many of them rotate.
    inv_freq
        Radians per position of each pair.
    interleaved
        Whether the pairs are neighbours, within the channels that rotate, or half a width apart.
    direction
        +1 counter-clockwise, -1 clockwise.
    first
        What is added to every position.
    factor
        On the channels that rotate.
    at_end
        Whether the last ``width`` channels rotate instead of the first.
    by_row
        Whether the row of x is taken for the position.
    written
        The layout in which pairs are written, where it is another one than is read.
    """

    head_dim: int
    width: int
    inv_freq: tuple[float, ...]
    interleaved: bool = False
    direction: int = 1
    first: int = 0
    factor: float = 1.0
    at_end: bool = False
    by_row: bool = False
    written: bool | None = None

    def pairs(self) -> list[tuple[int, int]]:
        """Return the channels of each pair."""
        return list(zip(*self._channels(self.interleaved), strict=True))

    def _channels(self, interleaved: bool) -> tuple[list[int], list[int]]:
        half, start = self.width // 2, self.head_dim - self.width if self.at_end else 0
        a, b = (range(0, self.width, 2), range(1, self.width, 2)) if interleaved else (
            range(half), range(half, self.width)
        )  # fmt: skip
        return [start + i for i in a], [start + i for i in b]

    def __call__(self, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Rotate vectors of shape (..., T, head_dim) by positions of shape (T,)."""
        y = np.array(x, dtype=np.float64)
        places = np.arange(y.shape[-2]) if self.by_row else np.asarray(positions)
        angle = self.direction * (places[:, None] + self.first) * np.array(self.inv_freq)
        a, b = self._channels(self.interleaved)
        z = (y[..., a] + 1j * y[..., b]) * np.exp(1j * angle) * self.factor
        a, b = self._channels(self.interleaved if self.written is None else self.written)
        y[..., a], y[..., b] = z.real, z.imag
        return y


LAYOUT = {True: "interleaved", False: "half-split"}


def _slips(true: Turn, whose: str) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Yield, for each parameter, the values that people take for it, and what to say of them."""
    layout, other = LAYOUT[true.interleaved], LAYOUT[not true.interleaved]
    yield [
        (
            f"your pairs are {other}, {whose}'s are {layout}",
            {"interleaved": not true.interleaved},
        ),
        (
            f"your pairs are read {layout} as {whose}'s, but written {other}",
            {"written": not true.interleaved},
        ),
        (
            f"your pairs are read {other}, and written {layout} as {whose}'s: read them so, too",
            {"interleaved": not true.interleaved, "written": true.interleaved},
        ),
    ]
    round_ = {1: "counter-clockwise", -1: "clockwise"}
    yield [
        (
            f"direction reversed: you rotate {round_[-true.direction]}, it should be "
            f"{round_[true.direction]}",
            {"direction": -true.direction},
        )
    ]
    if whose == "the cache":  # its keys are moved by delta
        yield [
            ("each key is moved by delta + 1, not by delta", {"first": 1}),
            ("each key is moved by delta - 1, not by delta", {"first": -1}),
            ("you move by the row, not by delta", {"by_row": True}),
        ]
    else:
        yield [
            *(
                (
                    f"positions start at {first} in yours, and at {true.first} in {whose}",
                    {"first": first},
                )
                for first in dict.fromkeys((0, 1, -1, -true.first))
                if first != true.first
            ),
            (
                "you take the row of x for its position: use the argument positions",
                {"by_row": True},
            ),
        ]
    if true.width < true.head_dim:
        side, wrong = ("last", "first") if true.at_end else ("first", "last")
        yield [
            (
                f"you rotate the {wrong} {true.width} channels, {whose}'s are the {side}",
                {"at_end": not true.at_end},
            )
        ]
    if true.factor != 1.0:
        yield [
            ("the factor on the lengths is missing", {"factor": 1.0}),
            ("the factor on the lengths is there twice", {"factor": true.factor**2}),
            ("you divide by the factor on the lengths", {"factor": 1 / true.factor}),
        ]
    yield list(_banks(true, whose))


def _banks(true: Turn, whose: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield frequencies that people take for the true ones."""
    theta, half, width = np.array(true.inv_freq), true.width // 2, true.width
    own = "your own" if whose == "the task" else f"{whose}'s"
    w, what = ("D", "") if width == true.head_dim else ("w", ", w the channels that turn")
    base = theta[0] / theta[-1]
    base **= half / (half - 1)
    i = np.arange(half)
    banks = {}
    if width < true.head_dim:
        wide = base ** -(2 * i / true.head_dim)
        banks["your exponent divides by the whole head, it should by the rotary width"] = wide
    banks |= {
        f"your base is 10,000 instead of {own}": series(width, 10000.0),
        f"your exponent is i/{w}, it should be 2i/{w}{what}": base ** -(i / width),
        f"your exponent is 4i/{w}, it should be 2i/{w}{what}": base ** -(4 * i / width),
        f"your exponent is i/({w}/2 - 1), so that the last pair is too slow; it should be "
        f"2i/{w}{what}": base ** -(i / (half - 1)),
        "you count the pairs from 1: the first turns by 1 radian a position, its i is 0": base
        ** -(2 * (i + 1) / width),
        "your frequencies stand in reverse order: pair 0 is the fastest": theta[::-1],
        "you multiply by 1 over the frequency: the exponent is negative": 1 / theta,
        "you turn by degrees where radians are meant": np.radians(theta),
        "you take the radians for turns: there is a factor of 2 pi too many": 2 * np.pi * theta,
        "all your pairs turn at one speed": np.ones(half),
    }
    for words, bank in banks.items():
        if not np.allclose(bank, theta):
            yield words, {"inv_freq": tuple(np.asarray(bank).tolist())}


def explain(answer: Callable[[Turn], np.ndarray | None], found: np.ndarray, true: Turn,
            whose: str = "the task", *, each: bool = False) -> None:  # fmt: skip
    """Raise `Slip` unless an answer is the true rotation's: with up to three parameters to blame.

    Parameters
    ----------
    answer
        What a rotation with given parameters would have answered, None where it cannot.
    found
        What the reader's code answered.
    true
        The rotation that was asked for.
    whose, each
        Who is compared with, in the words; as in `agree`.
    """
    if agree(found, answer(true), each=each):
        return
    slips = list(_slips(true, whose))
    for count in (1, 2, 3):
        for chosen in combinations(slips, count):
            for together in product(*chosen):
                changes = {name: value for _, change in together for name, value in change.items()}
                would = answer(replace(true, **changes))
                if would is not None and agree(found, would, each=each):
                    raise Slip("; ".join(words for words, _ in together))
