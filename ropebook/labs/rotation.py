"""Lab 1: write the rotation."""

from dataclasses import replace
from typing import Any

import numpy as np

from .lab import Draw, Lab, Slip, agree, apart, call, name_slip, numbers, read
from .turns import LAYOUT, Turn, explain, series

__all__ = ["WriteTheRotation", "check_rotation"]


def check_rotation(function: Any, true: Turn, random: np.random.Generator, whose: str,
                   farthest: int = 100_000) -> None:  # fmt: skip
    """Raise `Slip` unless a reader's ``rotate(x, positions)`` is a rotation with its parameters."""
    places = random.permutation(40)[:6]
    x = random.standard_normal((6, true.head_dim))
    found = read(call(function, x, places), x.shape, "what your function returns")
    explain(lambda turn: turn(x, places), found, true, whose)
    if not agree(found, true(x, places)):
        raise Slip(_no_rotation(found, x, places, true))
    far = np.array([0, 5000, farthest])
    got = read(call(function, x[:3], far), x[:3].shape, "what your function returns")
    if not agree(got, true(x[:3], far), 1e-4):
        raise Slip(
            f"right at positions below 40, and off at 5,000 or {farthest:,}: are your frequencies "
            "exact, all of it in float64, and positions taken as they are?"
        )
    whole = np.rint(4 * x).astype(np.int64)
    got = read(call(function, whole, places), x.shape, "what your function returns")
    if not agree(got, true(whole, places)):
        raise Slip("vectors of integers come out cut to integers: make x floating point first")
    alone = read(call(function, x[:1], places[:1]), x[:1].shape, "what it returns for one token")
    if not agree(alone, true(x[:1], places[:1])):
        raise Slip("it is right for six tokens at once, and not for one alone")


def _no_rotation(found: np.ndarray, x: np.ndarray, places: np.ndarray, true: Turn) -> str:
    """Say what an answer does that is no rotation with other parameters."""
    if agree(found, x):
        return "your vectors come out as they went in: nothing turns"
    a, b = np.array(true.pairs()).T
    angle = true.direction * (places[:, None] + true.first) * np.array(true.inv_freq)
    cos, sin = np.cos(angle), np.sin(angle)
    one, two = x[:, a], x[:, b]
    for words, first, second in (
        ("both sines have the plus sign; one of the two needs a minus",
         one * cos + two * sin, two * cos + one * sin),
        ("both sines have the minus sign; one of the two needs a plus",
         one * cos - two * sin, two * cos - one * sin),
        ("the second channel is computed from the first as already written: keep both before "
         "you write", early := one * cos - two * sin, two * cos + early * sin),
        ("each of the two results stands in the other's channel",
         two * cos + one * sin, one * cos - two * sin),
        ("cosine and sine have changed places", one * sin - two * cos, two * sin + one * cos),
    ):  # fmt: skip
        y = np.array(x)
        y[:, a], y[:, b] = first, second
        if agree(found, y):
            return words
    if agree(found, _halves_with_repeated(x, angle)):
        return (
            "you rotate halves with cosines made for adjacent pairs: the two channels of a pair "
            "are turned by two different angles"
        )
    lengths = np.hypot(found[:, a], found[:, b]) / np.hypot(x[:, a], x[:, b])
    if agree(found, true(x, places), 1e-2) and not np.allclose(lengths, true.factor, rtol=1e-5):
        more = "" if true.factor == 1 else ", or does the factor need more digits"
        return f"right to two digits or three, and no further: is some of it in float16{more}?"
    for still in sorted({*range(true.head_dim)} - {*a, *b}):
        if not agree(found[:, still], x[:, still]):
            return f"channel {still} belongs to no pair: it should come back as it was"
    if not np.allclose(lengths, true.factor, rtol=1e-6):
        token, pair = divmod(int(np.argmax(np.abs(lengths - true.factor))), len(a))
        length, factor = apart(lengths[token, pair], true.factor)
        return (
            f"no rotation: the length of pair {pair}, channels {a[pair]} and {b[pair]}, is "
            f"multiplied by {length} at position {places[token]}, and should be by {factor}"
        )
    turned = (found[:, a] + 1j * found[:, b]) / (one + 1j * two) / true.factor
    off = np.angle(turned / np.exp(1j * angle))
    token, pair = np.argwhere(np.abs(off) > 1e-6)[0]
    stands = np.arange(-300, 301)
    would = np.exp(1j * true.direction * np.outer(stands + true.first, true.inv_freq))
    same = np.abs(would - turned[token]).max(axis=1) < 1e-6
    if same.any():
        return (
            f"all pairs of the token at position {places[token]} are turned as if it stood at "
            f"{stands[same][0]}: look at the positions"
        )
    return (
        f"lengths are kept, but pair {pair}, channels {a[pair]} and {b[pair]}, is "
        f"{off[token, pair]:.3g} radians off at position {places[token]}"
    )


def _halves_with_repeated(x: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return the published bug ``halves`` of `ropebook.bugs`, over the channels that rotate."""
    if 2 * angle.shape[1] != x.shape[1]:
        return np.zeros(0)
    left, right = np.split(x, 2, axis=-1)
    angle = np.repeat(angle, 2, axis=-1)
    return x * np.cos(angle) + np.concatenate((-right, left), axis=-1) * np.sin(angle)


class WriteTheRotation(Lab):
    """Lab 1: frequencies, one rotation, and the score that knows the distance alone."""

    number = 1
    title = "write the rotation"
    parts = ("inv_freq", "slowest", "rotate", "score")

    def _draw(self, draw: Draw) -> None:
        self.head_dim = draw.one_of((8, 12, 16, 20))
        self.base = 100 * (3 + draw.below(4000))
        self.interleaved = bool(draw.below(2))
        bank = series(self.head_dim, self.base)
        self._turn = Turn(self.head_dim, self.head_dim, bank, self.interleaved)

    def _task(self) -> list[str]:
        return [
            f"your head has {self.head_dim} channels (`lab.head_dim`)",
            f"your base is {self.base:,} (`lab.base`)",
            f"your pairs are {LAYOUT[self.interleaved]}: {self._turn.pairs()[:2]} and so on",
            "pair $i$ turns counter-clockwise, by its frequency for each position, from position 0",
        ]

    def _check_inv_freq(self, answer: Any) -> None:
        theta, D = np.array(self._turn.inv_freq), self.head_dim
        if (found := numbers(answer, "inv_freq")).shape == (D,):
            raise Slip(f"one frequency for each pair: {D // 2}, not one for each of {D} channels")
        found = read(found, theta.shape, "inv_freq")
        explain(lambda turn: np.array(turn.inv_freq), found, self._turn, each=True)
        slips = [
            ("these are wavelengths, in tokens; the frequency is 2 pi over it", 2 * np.pi / theta),
            ("frequencies are not signed here: all pairs turn counter-clockwise", -theta),
            ("rounded to four decimals: of the slow pairs these keep little", np.round(theta, 4)),
        ]
        words = "these are not the frequencies of your base and width"
        if agree(found, theta, 5e-3, each=True):
            words = "right to two digits or three, and no further: more are wanted"
        name_slip(found, theta, slips, words, each=True)

    def _check_slowest(self, answer: Any) -> None:
        found = read(answer, (), "slowest")
        theta = self._turn.inv_freq
        last, base = theta[-1], float(self.base)
        name_slip(
            found, 2 * np.pi / last,
            [
                (f"you counted to pair {self.head_dim // 2}: the last one is number "
                 f"{self.head_dim // 2 - 1}, because pairs are counted from 0", 2 * np.pi * base),
                ("this is 1 over the frequency; a whole turn is 2 pi radians", 1 / last),
                ("this is half a turn", np.pi / last),
                ("this is the frequency, in radians a token", last),
                ("this is the fastest pair", 2 * np.pi / theta[0]),
                ("you count in degrees: the frequency is in radians", 360 / last),
            ],
            "not so: how many radians is a turn, and how many a token?", tol=5.1e-4,
        )  # fmt: skip

    def _check_rotate(self, answer: Any) -> None:
        far = 10_000_000  # float32 is too coarse there
        check_rotation(answer, self._turn, self.random, "the task", far)

    def _check_score(self, answer: Any) -> None:
        q, k = self.random.standard_normal((2, self.head_dim))
        distances = [0, 3, -3, 11, 3000]
        found = read([call(answer, q, k, far) for far in distances], (5,), "your five scores")

        def scores(turn: Turn) -> np.ndarray:
            return np.stack([turn(q[None], np.array([far]))[0] @ k for far in distances])

        true = scores(self._turn)
        a, b = np.array(self._turn.pairs()).T
        z, w = q[a] + 1j * q[b], k[a] + 1j * k[b]
        turned = [np.exp(1j * far * np.array(self._turn.inv_freq)) for far in distances]
        for words, slip in (
            ("you divide by the square root of the width; the task asks for the dot product",
             true / np.sqrt(self.head_dim)),
            ("the key is not conjugated: this multiplies the two",
             [np.real(np.sum(z * w * t)) for t in turned]),
            ("you take absolute values; the score is the real part",
             [abs(np.sum(z * np.conj(w) * t)) for t in turned]),
            ("you take the imaginary part; the score is the real part",
             [np.imag(np.sum(z * np.conj(w) * t)) for t in turned]),
            ("the distance does not matter in yours: nothing is turned, or both by one angle",
             [q @ k] * 5),
            ("the sign of the distance does not matter in yours: a key may stand after the query",
             true[[0, 1, 1, 3, 4]]),
            ("the sign of the distance is reversed: with q at 0, the key stands at -distance",
             scores(replace(self._turn, direction=-1))),
        ):  # fmt: skip
            if agree(found, slip):
                raise Slip(words)
        explain(scores, found, self._turn)
        words = "not the dot product of the two, as they stand that far apart"
        if agree(found, true, 1e-3):
            words = (
                "right to three digits, and no further: are your frequencies exact, and all of it "
                "in float64?"
            )
        name_slip(found, true, [], words)
