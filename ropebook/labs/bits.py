"""Lab 5: count bits."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rope_minimal.frequencies import inverse_frequencies

from .lab import Draw, Lab, Slip, agree, apart, call, name_slip, read

__all__ = ["CountBits", "to_bits"]

STAGES = ("positions", "inverse frequencies", "product", "table")
POSITIONS = 4096
"""Of the table whose rounding is to be found."""


def to_bits(x: Any, bits: int) -> np.ndarray:
    """Round to a number of significant bits, halves to the even neighbour; float64.

    Parameters
    ----------
    x
        Real numbers of any shape.
    bits
        Significant bits, the leading one included: 8 in bfloat16, 11 in float16.
    """
    part, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.rint(np.ldexp(part, bits)), exponent - bits)


def _cut(x: np.ndarray, bits: int, how: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Round as `to_bits` does, by another rule for what lies between two numbers."""
    part, exponent = np.frexp(x)
    return np.ldexp(how(np.ldexp(part, bits)), exponent - bits)


class CountBits(Lab):
    """Lab 5: round to a format of one's own, count in it, and find what was rounded in a table."""

    number = 5
    title = "count bits"
    parts = ("rounded", "last_exact", "crowd", "position_error", "frequency_error", "stage")

    def _draw(self, draw: Draw) -> None:
        self.bits = draw.one_of((6, 7, 9, 10))
        octave = 1 << self.bits + 3  # in which the gap is 16; it is another beyond either end
        self.token = octave + 16 + draw.below(octave - 31)
        self.last = 1 << self.bits + 4
        self.inv_freq = inverse_frequencies(64, 10_000.0)
        self.pair = draw.one_of([pair for pair in range(4, 28) if self._told_apart(pair)])
        self._stage = draw.one_of(STAGES)
        self.cos, self.sin = self._table(self._stage)

    def _task(self) -> list[str]:
        return [
            f"your format has {self.bits} significant bits, the leading one included (`lab.bits`): "
            "bfloat16 has 8 and float16 11. Its exponents have no end",
            f"your token is number {self.token:,} (`lab.token`), your last position {self.last:,} "
            f"(`lab.last`)",
            f"your pair is {self.pair} (`lab.pair`) of a head of 64 channels with base 10,000: it "
            f"turns by {self.inv_freq[self.pair]:.6f} radians a position (`lab.inv_freq`)",
            f"`lab.cos` and `lab.sin`, shape ({POSITIONS:,}, 32), are a table of that head in "
            "which something was rounded to your format, once",
        ]

    def _table(self, stage: str) -> tuple[np.ndarray, np.ndarray]:
        """Return cosines and sines of which one stage is rounded to the reader's format."""
        rounded = {one: (lambda x: to_bits(x, self.bits)) if one == stage else np.asarray
                   for one in STAGES}  # fmt: skip
        places = rounded["positions"](np.arange(POSITIONS, dtype=np.float64))
        angle = rounded["product"](places[:, None] * rounded["inverse frequencies"](self.inv_freq))
        return rounded["table"](np.cos(angle)), rounded["table"](np.sin(angle))

    def _check_rounded(self, answer: Any) -> None:
        p, random = self.bits, self.random
        x = random.standard_normal(40) * 2.0 ** random.integers(-300, 300, 40)
        halves = (2 ** (p - 1) + np.arange(6) + 0.5) * np.repeat([1.0, -4.0], 3)
        x = np.concatenate((x, halves, [0.0, 1.0, 2.0 ** (p + 2) - 1]))
        found = read(call(answer, x), x.shape, "what rounded returns")
        name_slip(
            found, to_bits(x, p),
            [
                ("nothing is rounded", x),
                ("you cut off what does not fit; the nearest number is wanted",
                 _cut(x, p, np.trunc)),
                ("you round down, towards minus infinity; the nearest number is wanted",
                 _cut(x, p, np.floor)),
                ("right but for halves: what lies half way goes to the even neighbour, not away "
                 "from zero", _cut(x, p, lambda z: np.sign(z) * np.floor(np.abs(z) + 0.5))),
                ("right but for halves: what lies half way goes to the even neighbour, not up",
                 _cut(x, p, lambda z: np.floor(z + 0.5))),
                (f"this keeps {p + 1} bits: the leading one is among your {p}", to_bits(x, p + 1)),
                (f"this keeps {p - 1} bits: the leading one counts once", to_bits(x, p - 1)),
                ("a fixed grid: the step has to grow with the number, as the bits of a float do",
                 np.rint(x * 2.0**p) / 2.0**p),
                ("these are whole numbers: it is the significant bits that count", np.rint(x)),
                ("this keeps decimal digits; bits are wanted",
                 [float(f"%.{p - 1}e" % one) for one in x]),
                ("the sign is lost", np.abs(to_bits(x, p))),
            ],
            self._first_wrong(found, x), tol=1e-15, each=True,
        )  # fmt: skip
        if not np.array_equal(found, to_bits(x, p)):
            raise Slip(self._first_wrong(found, x))
        table = x.reshape(7, 7)
        found = read(call(answer, table), table.shape, "what rounded returns for a table")
        if not np.array_equal(found, to_bits(table, p)):
            raise Slip("right for a list of numbers, and wrong for a table of shape (7, 7)")

    def _first_wrong(self, found: np.ndarray, x: np.ndarray) -> str:
        """Return where rounding goes wrong first."""
        wrong = np.flatnonzero(found != to_bits(x, self.bits))
        at = wrong[0] if len(wrong) else 0
        nearest = to_bits(x[at], self.bits)
        became, wanted = apart(found[at], float(nearest), 9)
        if np.ldexp(np.frexp(x[at])[0], self.bits) % 1 == 0.5:
            wanted = f"it lies half way, and should become the even neighbour, {wanted}"
        else:
            wanted = f"the nearest is {wanted}"
        return f"{x[at]:.9g} becomes {became}; {wanted}"

    def _check_last_exact(self, answer: Any) -> None:
        found, p = read(answer, (), "last_exact"), self.bits
        name_slip(
            found, 2**p,
            [
                (f"it goes on: {2**p} is a power of two, and needs one bit", 2**p - 1),
                (f"{2**p + 1} is the first that is missing, the one before it is asked for",
                 2**p + 1),
                ("the leading bit counts as well: twice as far", 2 ** (p - 1)),
                ("the leading bit is among yours: half as far", 2 ** (p + 1)),
                ("this is bfloat16; your format has other bits", 256),
                ("this is float16; your format has other bits", 2048),
            ],
            "count 1, 2, 3 and so on in your format: which is the last before one is skipped?",
            tol=1e-12,
        )  # fmt: skip

    def _check_crowd(self, answer: Any) -> None:
        found, p = read(answer, (), "crowd"), self.bits
        numbers = np.arange(4 * self.token)
        true = int(np.sum(to_bits(numbers, p) == to_bits(self.token, p)))
        gap = 2 ** (int(self.token).bit_length() - p)
        name_slip(
            found, true,
            [
                (f"every {gap}th position exists there; but what lies half way goes to the even "
                 "neighbour, so one crowd is larger and the next smaller", gap),
                ("the token itself is one of them", true - 1),
                ("that is one too many", true + 1),
                ("the numbers half way on both sides are missing: they go to the even neighbour, "
                 "and here that is yours", gap - 1),
                ("the gap is twice as wide there", gap / 2),
                ("the gap is half as wide there", 2 * gap),
            ],
            "count the whole numbers that become the same as your token", tol=1e-12,
        )  # fmt: skip

    def _errors(self, bits: int, pair: int) -> tuple[float, float]:
        """Return the largest error of an angle by rounding positions, and by the frequency."""
        places, theta = np.arange(self.last + 1.0), self.inv_freq[pair]
        by_place = np.abs(to_bits(places, bits) - places).max() * theta
        return float(by_place), float(abs(to_bits(theta, bits) - theta) * self.last)

    def _told_apart(self, pair: int) -> bool:
        """Return whether bfloat16, and the other rounding, are off by something else."""
        by_place, by_frequency = self._errors(self.bits, pair)
        others = by_place, self._errors(8, pair)[1]
        return all(abs(one - by_frequency) > 0.1 * by_place for one in others)

    def _check_error(self, answer: Any, which: int, name: str) -> None:
        found = read(answer, (), name)
        mine = self._errors(self.bits, self.pair)
        true, other = mine[which], mine[1 - which]
        rest = [
            ("this is what rounding the other of the two does", other),
            ("in degrees; radians are wanted", np.degrees(true)),
            ("a distance has no sign", -true),
            (
                "twice as much as it is"
                + ": below `lab.last` the step is 16, and the nearest number "
                "at most half of it away" * (which == 0),
                2 * true,
            ),
            ("half of what it is", true / 2),
            ("this is for bfloat16; take your own format", self._errors(8, self.pair)[which]),
        ]
        if which:
            rest += [
                ("this is the error for pair 0; take your own", 0.0),
                (
                    "this is how far the frequency is off; after so many positions it is that many "
                    "times as much",
                    true / self.last,
                ),
                ("reduced to a turn; here the whole angle is asked for", true % (2 * np.pi)),
            ]
        else:
            place = true / self.inv_freq[self.pair]
            rest += [("this is how far the position is off, not the angle", place)]
        name_slip(found, true, rest, "not so: angle = position x frequency", tol=5.1e-3)

    def _check_position_error(self, answer: Any) -> None:
        self._check_error(answer, 0, "position_error")

    def _check_frequency_error(self, answer: Any) -> None:
        self._check_error(answer, 1, "frequency_error")

    def _check_stage(self, answer: Any) -> None:
        if not isinstance(answer, str) or answer not in STAGES:
            raise Slip(f"stage should be one of {', '.join(map(repr, STAGES))}")
        if answer != self._stage:
            raise Slip(self._against(answer))

    def _against(self, stage: str) -> str:
        """Return what in the table speaks against a stage."""
        far = 2 ** (self.bits + 1)
        angle = np.arctan2(self.sin, self.cos)
        slow = 20
        if stage == "positions":
            row = next(
                m for m in range(far, POSITIONS)
                if to_bits(m, self.bits) == to_bits(m + 1, self.bits)
                and not agree(self.cos[m], self.cos[m + 1])
            )  # fmt: skip
            return f"then rows {row} and {row + 1} would be equal, and in your table they differ"
        if stage == "inverse frequencies":
            if agree(self.cos[1] ** 2 + self.sin[1] ** 2, np.ones(32), 1e-12):
                step = angle[1, slow]
                miss = np.abs(
                    np.exp(1j * angle[:, slow]) - np.exp(1j * step * np.arange(POSITIONS))
                )
                row = int(np.argmax(miss))
                return (
                    f"then each angle would be its position times that of position 1; pair {slow} "
                    f"is not where that leads at position {row}"
                )
            return "then cos^2 + sin^2 would be 1, and in row 1 of your table it is not"
        if stage == "product":
            if not agree(self.cos**2 + self.sin**2, np.ones_like(self.cos), 1e-12):
                return "then cos^2 + sin^2 would be 1 everywhere, and in your table it is not"
            inside = np.arange(POSITIONS)[:, None] * self.inv_freq[slow:] < 1  # no whole turns
            off = np.where(inside, np.abs(to_bits(angle, self.bits) - angle)[:, slow:], 0)
            row, pair = divmod(int(np.argmax(off)), off.shape[1])
            return (
                f"then angles would have {self.bits} bits; that of pair {pair + slow} at position "
                f"{row} is {angle[row, pair + slow]:.9f}, which has more"
            )
        many = np.argwhere(to_bits(self.cos, self.bits) != self.cos)
        row, pair = many[len(many) // 2].tolist()
        return (
            f"then every cosine would have {self.bits} bits; the one of pair {pair} at position "
            f"{row} is {self.cos[row, pair]:.9f}, which has more"
        )
