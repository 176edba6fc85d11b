"""What the labs share: a reader's number, answers that are asked safely, and the certificate."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any, ClassVar, TypeVar

import numpy as np

__all__ = [
    *("OPEN", "Draw", "Lab", "Slip", "agree", "apart", "call", "name_slip", "numbers", "read"),
    *("seed_of", "verify", "whole"),
]

T = TypeVar("T")

OPEN = "not solved yet"
NOBODY = "your name"
"""Stands in the unsolved notebooks where the reader writes his or her own."""


class Slip(Exception):  # noqa: N818 -- of a reader's answer, not of a program
    """What is wrong with an answer, in words."""


def plain(who: str) -> str:
    """Return a name in one spelling: letters composed, single spaces, no dots of a line."""
    return " ".join(unicodedata.normalize("NFC", who).replace("·", " ").split())


def seed_of(text: str) -> int:
    """Return the 32-bit FNV-1a hash of a text in UTF-8."""
    state = 0x811C9DC5
    for byte in text.encode():
        state = (state ^ byte) * 0x01000193 & 0xFFFFFFFF
    return state


class Draw:
    """A small generator of numbers (mulberry32): the same numbers in Python and on the page."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, count: int) -> int:
        """Return an integer from 0 to ``count - 1``."""
        self.state = (self.state + 0x6D2B79F5) & 0xFFFFFFFF
        t = (self.state ^ self.state >> 15) * (self.state | 1) & 0xFFFFFFFF
        t ^= t + ((t ^ t >> 7) * (t | 61) & 0xFFFFFFFF) & 0xFFFFFFFF
        return ((t ^ t >> 14) & 0xFFFFFFFF) * count >> 32

    def one_of(self, options: Sequence[T]) -> T:
        """Return one of some options."""
        return options[self.below(len(options))]


def numbers(answer: Any, what: str) -> np.ndarray:
    """Return an answer as finite float64 numbers; raise `Slip` where it is not."""
    try:
        found = np.asarray(answer)
        if found.dtype.kind == "c":
            got = found.dtype.name
            raise Slip(f"{what} should be real numbers, got {got}: .real takes the real part")
        if found.dtype.kind in "bSU":
            raise TypeError
        single = found.dtype == np.float32
        found = found.astype(np.float64)
    except RuntimeError as error:  # of torch, for a tensor with a gradient
        raise Slip(f"{what} cannot be read as an array: {error}") from None
    except (TypeError, ValueError, OverflowError):
        got = getattr(answer, "dtype", type(answer).__name__)
        raise Slip(f"{what} should be real numbers, got {got}") from None
    if np.isnan(found).any():
        raise Slip(f"{what} should be finite, and holds nan")
    if np.isinf(found).any():
        end = " (float32 ends at 3e38)" * single
        raise Slip(f"{what} should be finite, and holds inf{end}")
    return found


def read(answer: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Return an answer as finite float64 numbers of a shape; raise `Slip` where it is not."""
    found = numbers(answer, what)
    if found.shape != shape:
        raise Slip(f"{what} should have shape {shape}, got {found.shape}")
    return found


def whole(answer: Any, what: str) -> np.ndarray:
    """Return an answer as an array of integers; raise `Slip` where it is not."""
    try:
        listed = list(answer)
    except TypeError:
        raise Slip(f"{what} should be a list, got {type(answer).__name__}") from None
    if listed and all(isinstance(one, (bool, np.bool_)) for one in listed):
        raise Slip(f"{what} should be numbers, got True and False: np.flatnonzero lists the True")
    found = numbers(listed, what)
    if (found != np.rint(found)).any():
        raise Slip(f"{what} should be whole numbers, got {found[found != np.rint(found)][0]:g}")
    return found.astype(np.int64)


def call(function: Any, *arguments: Any) -> Any:
    """Return what a reader's function returns; raise `Slip` where it raises or writes into them."""
    if not callable(function):
        raise Slip(f"it should be a function, got {type(function).__name__}")
    given = deepcopy(arguments)
    try:
        found = function(*given)
    except NotImplementedError:
        raise Slip(OPEN) from None
    except Exception as error:
        shapes = ", ".join(
            f"shape {one.shape}" if isinstance(one, np.ndarray) else type(one).__name__
            for one in arguments
        )
        what = f"{type(error).__name__}: {error}"
        raise Slip(f"your function raises {what} (called with {shapes})") from None
    if found is None:
        raise Slip("your function returns nothing: is there a return?")
    if not all(map(_untouched, arguments, given)):
        raise Slip("your function writes into its argument: work on a copy")
    return found


def _untouched(before: Any, after: Any) -> bool:
    """Return whether an argument is still what it was."""
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(
            np.array_equal(before[name], after[name]) for name in before
        )
    return np.array_equal(before, after)


def agree(found: Any, wanted: Any, tolerance: float = 1e-5, *, each: bool = False) -> bool:
    """Return whether numbers have one shape and differ by at most a part of the largest.

    With ``each``, as frequencies do that span decades, by at most a part of themselves.
    """
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    if found.shape != wanted.shape:
        return False
    size = np.abs(wanted) if each else np.abs(wanted).max()
    return bool((np.abs(found - wanted) <= tolerance * np.maximum(size, 1e-12)).all())


def apart(one: float, other: float, digits: int = 3) -> tuple[str, str]:
    """Return two numbers in words, with as many digits as tell them apart."""
    while digits < 17 and f"{one:.{digits}g}" == f"{other:.{digits}g}":
        digits += 1
    return f"{one:.{digits}g}", f"{other:.{digits}g}"


def name_slip(
    found: Any, wanted: Any, slips: Iterable[tuple[str, Any]], otherwise: str, tol: float = 1e-5,
    *, each: bool = False,
) -> None:  # fmt: skip
    """Raise `Slip` unless numbers agree: with the words of the first slip that gives the same."""
    if agree(found, wanted, tol, each=each):
        return
    for words, value in slips:
        if agree(found, value, tol, each=each):
            raise Slip(words)
    raise Slip(otherwise)


class Lab:
    """A lab in the variant of one reader; a subclass has a method for each part, ``_check_PART``.

    Attributes
    ----------
    number, title
        Which lab it is.
    parts
        What the reader's answers are called, in order.
    who
        The reader, as the certificate names him or her.
    seed
        The reader's own number, from which the variant is drawn.
    solved
        The parts that were right when they were last checked.
    given
        The answers that `check` was last given, by part.
    """

    number: ClassVar[int]
    title: ClassVar[str]
    parts: ClassVar[tuple[str, ...]]

    def __init__(self, who: str | int) -> None:
        if isinstance(who, bool) or not isinstance(who, (str, int)):
            raise TypeError(f"who must be your name or your number, got {who!r}")
        self.who = plain(str(who))
        if not self.who:
            raise ValueError(f"who must be your name or your number, got {who!r}")
        self.seed = seed_of(f"rope lab {self.number} for {self.who.lower()}")
        self.solved: set[str] = set()
        self.given: dict[str, Any] = {}
        self.random = np.random.default_rng(self.seed)
        self._draw(Draw(self.seed))
        for value in vars(self).values():
            for one in value.values() if isinstance(value, dict) else (value,):
                if isinstance(one, np.ndarray):
                    one.setflags(write=False)

    def _draw(self, draw: Draw) -> None:
        """Draw the reader's variant."""
        raise NotImplementedError

    def _task(self) -> list[str]:
        """Return the lines that describe the reader's variant."""
        raise NotImplementedError

    def __repr__(self) -> str:
        head = f"Lab {self.number}: {self.title}. For {self.who}, number {self.seed}."
        return "\n".join([head, *(f"- {line}" for line in self._task())]).translate(
            {96: None, 36: None}
        )

    def _repr_markdown_(self) -> str:
        head = f"**Lab {self.number}: {self.title}.** For {self.who}, number {self.seed}."
        return "\n".join([head, "", *(f"- {line}" for line in self._task())])

    def diagnose(self, part: str, answer: Any) -> str:
        """Return what is wrong with an answer, in a sentence; "" where it is right.

        Parameters
        ----------
        part
            One of `parts`.
        answer
            A number, an array or a function, as the task asks for; None where there is none yet.

        Raises
        ------
        ValueError
            If the lab has no such part.
        """
        if part not in self.parts:
            raise ValueError(f"part must be one of {', '.join(self.parts)}, got {part!r}")
        self.solved.discard(part)
        if answer is None or answer is ...:
            return OPEN
        untouched = type(self)(self.who)  # whatever the reader's code has made of this one
        check: Callable[[Any], None] = getattr(untouched, f"_check_{part}")
        try:
            check(answer)
        except Slip as slip:
            return str(slip)
        self.solved.add(part)
        return ""

    def check(self, **answers: Any) -> None:
        """Print for each answer, given by the name of its part, whether it is right or what is not.

        Raises
        ------
        ValueError
            If no answer is given, or the lab has no such part.
        """
        if not answers:
            raise ValueError(f"answers must name a part: {', '.join(self.parts)}")
        for part, answer in answers.items():
            self.given[part] = answer
            print(f"{part}: {self.diagnose(part, answer) or 'right'}")

    @property
    def missing(self) -> str:
        """What is still missing before the certificate, "" where nothing is."""
        left = [part for part in self.parts if part not in self.solved]
        if left:
            return f"{len(left)} of {len(self.parts)} parts to go: {', '.join(left)}"
        return self.missing_name

    @property
    def missing_name(self) -> str:
        """What is to be done where the reader has not written a name, "" where it stands."""
        nobody = self.who.lower() == NOBODY
        return f"write your own name into labs.begin, instead of {NOBODY!r}" if nobody else ""

    def certificate(self) -> None:
        """Print the reader's certificate, or what is missing."""
        print(f"no certificate yet: {self.missing}" if self.missing else line_of(self))


def line_of(lab: Lab) -> str:
    """Return the certificate of a lab that is solved."""
    mark = seed_of(f"rope lab {lab.number} solved by {lab.who.lower()}")
    return f"RoPE lab {lab.number} · {lab.who} · {lab.seed} · {mark:08X}"


def verify(line: str) -> tuple[bool, str]:
    """Return whether a line is a certificate of this book, and that in words.

    It is a receipt and no seal: who reads this module can write one. `ropebook.pytest_labs` asks
    the answers themselves.
    """
    found = re.search(r"RoPE lab ([1-6])( in the page)? · (.+?) · (\d+) · (\w{8})\s*$", line)
    if not found:
        return False, f"not a certificate: {line.strip()}"
    number, short, who, seed, mark = found.groups("")
    name, same = f"lab {number}{short}", plain(who).lower()
    if int(seed) != seed_of(f"rope lab {number} for {same}"):
        return False, f"{name}, {who}: not this reader's number"
    if mark != f"{seed_of(f'rope {name} solved by {same}'):08X}":
        return False, f"{name}, {who}: the mark at the end is not right"
    return True, f"{name}, {who}: solved"
