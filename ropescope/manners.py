"""Manners: whether a function is one linear map for each position, as a rotation is.

Matrices tell all of a function only if it gives the same answer twice, to every vector, in every
company. What breaks this is said here.
"""

from dataclasses import dataclass

import numpy as np

from .asking import Asker, RefusalError
from .circuit import FORMATS, format_before, holding_format, many_digits, read_matrices
from .report import LOOK, WRONG, Finding

Findings = list[Finding]

LONG = 64.0
"""How much longer a vector is whose answer must be as much longer."""

STRICTER = 4.0
"""How much less what repeats may change from call to call than what is asked otherwise."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What came back at T positions, (T, axes): matrices (T, D, D), and of zeros (T, D, 1).

    ``numbers`` is the smallest format that held what came back, before a difference was taken.
    """

    positions: np.ndarray
    matrices: np.ndarray
    added: np.ndarray
    numbers: str

    @property
    def loose(self) -> float:
        """The difference up to which two answers are one."""
        return 32.0 * FORMATS[self.numbers] * float(np.abs(self.matrices).max())


def read(ask: Asker, positions: np.ndarray) -> Answer:
    """Ask; a linear function leaves zeros, and what another adds to them is set apart."""
    matrices = read_matrices(ask, ask.head_dim, positions)
    try:
        added = ask(np.zeros((1, ask.head_dim)), positions).transpose(1, 2, 0)
    except RefusalError:  # a norm divides by 0
        added = np.zeros((len(positions), ask.head_dim, 1))
    return Answer(positions, matrices - added, added, holding_format(matrices))


def arguments(ask: Asker, answer: Answer) -> Findings:
    """Say what it has done so far to its arguments, to zeros, and to the type of numbers."""
    found = []
    if (size := float(np.abs(answer.added).max())) > 0:
        words = (
            f"It adds a vector of its own: zeros come out as numbers up to {size:.2g}. What is "
            "said here is about the rest."
        )
        found.append(Finding(WRONG, words, "why-position"))
    if ask.writes_into:
        names = " and ".join(sorted(ask.writes_into, reverse=True))
        words = f"It writes into the {names}: whoever needs what was there has lost it."
        found.append(Finding(WRONG, words, "attention"))
    if ask.returns != ask.type:
        words = f"It returns {ask.returns} where {ask.type} was given."
        found.append(Finding(LOOK, words, "precision"))
    return found


def repeats(ask: Asker, answer: Answer, times: int = 1) -> Findings:
    """Ask the same so many times more."""
    wanted = answer.matrices + answer.added
    again = (read_matrices(ask, ask.head_dim, answer.positions) for _ in range(times))
    change = max(float(np.abs(one - wanted).max()) for one in again)
    if change <= answer.loose:
        return []
    words = (
        "It is random, or its calls leave something behind, as in dynamic NTK: asked the same "
        f"{times + 1} times, numbers were seen to change by {change:.2g}."
    )
    return [Finding(WRONG, words, "attention")]


def memory(ask: Asker, answer: Answer, first: np.ndarray) -> Findings:
    """Ask what was asked before all else once more; ``first`` is what came back then."""
    ask(-np.eye(ask.head_dim), answer.positions[:2])  # whether that overwrites the first answer
    again = ask(np.eye(ask.head_dim), answer.positions[:2])
    if (change := float(np.abs(again - first).max())) <= answer.loose / STRICTER:
        return []
    what = "what it was asked first comes out otherwise later"
    return [_remembered(change, what, "and stay so", "that the longest call left")]


def left_behind(answer: Answer, again: Answer) -> Findings:
    """Compare with what was answered to the same call after others; it is known to repeat."""
    change = float(np.abs(again.matrices + again.added - answer.matrices - answer.added).max())
    if change <= answer.loose / STRICTER:
        return []
    what = "after other calls the same call is answered otherwise"
    return [_remembered(change, what, "until a short one sets them back", "before")]


def _remembered(change: float, what: str, then: str, state: str) -> Finding:
    words = (
        f"It remembers: {what}, with numbers seen to change by {change:.2g}, as where frequencies "
        f"grow with the longest call so far {then}. What is said here is about the state {state}."
    )
    return Finding(WRONG, words, "longer-contexts")


def company(ask: Asker, answer: Answer) -> Findings:
    """Ask in the other order, and for a few positions one after another."""
    few = answer.positions[:4]
    backwards = read(ask, answer.positions[::-1]).matrices[::-1]
    try:
        alone = np.concatenate([read(ask, at).matrices for at in few[:, None]])
    except RefusalError as said:
        return [Finding(LOOK, f"Asked for one position alone, it {said}.", "attention")]
    order = float(np.abs(backwards - answer.matrices).max())
    change = float(np.abs(alone - answer.matrices[: len(few)]).max())
    # and a product of matrices rounds the angles of a row by its place
    order = max(order, _within(ask, answer))
    far = float(np.abs(answer.positions).sum(axis=1).max())
    loose = answer.loose + 8.0 * FORMATS["float64"] * far * float(np.abs(answer.matrices).max())
    if max(order, change) <= loose:
        return []
    if order > loose or np.abs(alone - alone[0]).max() <= loose:
        ways = [
            *(["in another order"] if order > loose else []),
            *(["one after another"] if change > loose else []),
        ]
        words = (
            f"Asked {' or '.join(ways)}, positions get other rotations, as where it remembers an "
            "answer, takes the place in the call for the position, counts from a position of the "
            "call, or leaves the end of a call as it is. What is said here is about the longest "
            "call."
        )
        return [Finding(WRONG, words, "attention")]
    words = (
        "The rotation of a position depends on what else is in the call: alone, numbers of the "
        f"first {len(few)} were seen to change by {change:.2g}. The frequencies here are those of "
        f"a call that goes to {_farthest(answer)}, or of a longer one that it remembers; a key "
        "that was cached before keeps others."
    )
    return [Finding(LOOK, words, "longer-contexts", partial=True)]


def _farthest(answer: Answer) -> str:
    """Return the farthest position that was asked along each axis, in words."""
    return ", ".join(f"{p:,}" for p in answer.positions.max(axis=0))


def _within(ask: Asker, answer: Answer) -> float:
    """Return the change if a call keeps its length and both ends, and turns round what is within.

    It comes right after one in the usual order, whose angles may have been kept.
    """
    x, at = _vector(ask), np.arange(len(answer.positions))
    at[1:-1] = at[-2:0:-1]
    straight = ask(x, answer.positions)
    return float(np.abs(ask(x, answer.positions[at])[:, at] - straight).max() / np.abs(x).max())


def linear(ask: Asker, answer: Answer) -> Findings:
    """Ask for one vector at every position, a long one of its direction, and one of many digits."""
    words = (
        "It is not linear: a vector does not come out as the sum of its channels, by up to "
        "{:.2g} of its largest. What is said here holds for unit vectors."
    )
    if part := _no_sum(ask, answer, _vector(ask) * np.array([[1.0], [LONG]])):
        return [Finding(WRONG, words.format(part), "linear-algebra")]
    words = (
        "What goes in is rounded: a vector of many digits does not come out as the sum of its "
        "channels, by up to {:.2g} of its largest. What is said here is about one of few digits."
    )
    if part := _no_sum(ask, answer, many_digits(ask.head_dim)):
        return [Finding(WRONG, words.format(part), "precision")]
    return []


def _no_sum(ask: Asker, answer: Answer, x: np.ndarray) -> float:
    """Return by how much vectors do not come out as the sum of their channels, 0 if they do."""
    found = ask(x, answer.positions)
    wanted = (answer.matrices @ x.T + answer.added).transpose(2, 0, 1)
    size = (np.abs(answer.matrices) @ np.abs(x.T) + np.abs(answer.added)).transpose(2, 0, 1)
    off = np.abs(found - wanted)
    part = float((off.max(axis=(1, 2)) / np.abs(x).max(axis=1)).max())
    moves = np.ptp(answer.matrices, axis=0).max(axis=1) > answer.loose
    factors = np.abs(answer.matrices[0]).max(axis=1)  # one for all that move, each its own at rest
    factors[moves] = factors[moves].max(initial=0.0)
    each = zip(found.transpose(2, 0, 1), factors, strict=True)
    own = [FORMATS[format_before(numbers, float(factor))] for numbers, factor in each]
    # what is asked was rounded to its type
    unit = np.maximum(own, max(FORMATS["float32"], FORMATS.get(ask.type, 0.0)))
    beyond = (off > 16.0 * unit * (size + size.max(axis=(1, 2), keepdims=True))).any()
    return part if beyond else 0.0


def neighbours(ask: Asker, answer: Answer) -> Findings:
    """Ask for a vector at one position and for its opposite at the others."""
    positions = answer.positions
    x = _vector(ask) * np.where(np.arange(len(positions)) % 3 == 1, 1.0, -1.0)[:, None]
    one, other = ask(x[None], positions)[0], ask(-x[None], positions)[0]
    same = ask(np.broadcast_to(x[1:2], x.shape)[None], positions)[0]
    wanted = np.where(x[:, :1] == x[1, :1], one, other)
    unit = FORMATS[holding_format(same)]
    if (apart := float(np.abs(same - wanted).max())) <= 64.0 * unit * np.abs(same).max():
        return []
    words = (
        f"What comes out at a position depends on the vectors at other positions, by up to "
        f"{apart:.2g}."
    )
    return [Finding(WRONG, words, "attention")]


def rows(ask: Asker, answer: Answer) -> Findings:
    """Ask for a vector in many rows of a batch, others between them, and alone."""
    x = _vector(ask)[0]
    batch = np.repeat(x[None], ask.head_dim + 4, axis=0)  # as many as matrices are read from
    batch[1], batch[4] = -x[::-1], 2.0 * x[::-1]
    found, alone = ask(batch, answer.positions), ask(batch[1:2], answer.positions)
    alike = np.delete(found, [1, 4], axis=0)
    apart = float(max(np.ptp(alike, axis=0).max(), np.abs(found[1] - alone).max()))
    if apart <= 64.0 * FORMATS[holding_format(found)] * np.abs(found).max():
        return []
    words = (
        "What comes out depends on the row of the batch, or on the vectors in other rows: equal "
        f"ones come out apart by up to {apart:.2g}."
    )
    return [Finding(WRONG, words, "attention")]


def _vector(ask: Asker) -> np.ndarray:
    """Return a vector without a zero that every format holds exactly, (1, D)."""
    random = np.random.default_rng(0)
    signs = random.choice([-1, 1], (1, ask.head_dim))
    return signs * random.integers(1, 17, (1, ask.head_dim)) / 8.0
