"""Lab 3: extend a context."""

from typing import Any

import numpy as np

from rope_minimal.frequencies import inverse_frequencies
from rope_minimal.rescaling import rescaled_frequencies

from ..aliasing import neighbour_contrast
from .lab import Draw, Lab, Slip, agree, apart, call, name_slip, read, whole

__all__ = ["ExtendAContext"]

KEPT = 0.9
"""What part of the step to a neighbour the reader's own rescaling has to keep."""


class ExtendAContext(Lab):
    """Lab 3: which pairs meet new angles, PI, NTK, by parts, and a rescaling of one's own."""

    number = 3
    title = "extend a context"
    parts = ("fresh", "interpolated", "ntk_base", "by_parts", "mine")

    def _draw(self, draw: Draw) -> None:
        self.head_dim = draw.one_of((64, 80, 96, 128))
        thousands = 5 + draw.below(300)
        self.length = draw.one_of((1024, 2048, 4096, 8192))
        self.factor = draw.one_of((4, 8, 16))
        while True:  # whether the last position counts is to change no pair
            self.base = 1000 * thousands
            self.inv_freq = inverse_frequencies(self.head_dim, self.base)
            self._turns = self.length * self.inv_freq / (2 * np.pi)
            if (np.abs(self._turns - 1) > 2 / self.length).all():
                break
            thousands += 1
        self._pairs = np.flatnonzero(self._turns < 1)

    def _task(self) -> list[str]:
        return [
            f"a head of {self.head_dim} channels (`lab.head_dim`), base {self.base:,} "
            "(`lab.base`): its frequencies are `lab.inv_freq`",
            f"it was trained on texts of {self.length:,} tokens (`lab.length`)",
            f"it shall read {self.factor} times as much (`lab.factor`): "
            f"{self.length * self.factor:,} tokens",
        ]

    def _check_fresh(self, answer: Any) -> None:
        given = whole(answer, "fresh")
        if given.ndim != 1:
            raise Slip(f"fresh should be one list of pairs, got shape {given.shape}")
        half, true, found = self.head_dim // 2, self._pairs.tolist(), sorted(given.tolist())
        full = np.flatnonzero(self._turns >= 1).tolist()
        longer = np.flatnonzero(self._turns * self.factor < 1).tolist()
        radian = np.flatnonzero(self.length * self.inv_freq < 1).tolist()
        half_turn = np.flatnonzero(self._turns < 0.5).tolist()
        for words, slip in (
            ("these are the pairs that have been all the way round: they know every direction. "
             "The slow ones meet new angles", full),
            ("you count pairs from 1: the first is pair 0", [i + 1 for i in true]),
            ("these do not complete a turn in the longer text either; ask what they did in "
             "training", longer),
            ("you compare radians with 1: a turn is 2 pi of them", radian),
            ("a pair that has made half a turn has seen half of the directions", half_turn),
            ("every pair goes on turning; but which of them gets where it never was?",
             list(range(half))),
        ):  # fmt: skip
            if found and found == slip != true:
                raise Slip(words)
        if missing := sorted(set(true) - set(found)):
            turns, _ = apart(self._turns[missing[0]], 1)
            raise Slip(f"pair {missing[0]} is missing: it made {turns} turns in training")
        if extra := sorted(set(found) - set(true)):
            if extra[0] not in range(half):
                raise Slip(f"there is no pair {extra[0]}: your head has 0 to {half - 1}")
            turns, _ = apart(self._turns[extra[0]], 1)
            raise Slip(f"pair {extra[0]} has made {turns} turns in training: nothing is new to it")

    def _check_interpolated(self, answer: Any) -> None:
        theta, s = self.inv_freq, self.factor
        name_slip(
            read(answer, theta.shape, "interpolated"), theta / s,
            [
                ("these are as trained: nothing is slowed down", theta),
                ("you speed the pairs up: a longer text needs slower ones", theta * s),
                ("this divides the base, not the frequencies",
                 inverse_frequencies(self.head_dim, self.base / s)),
                ("this multiplies the base: that tilts the faders, PI presses all alike",
                 inverse_frequencies(self.head_dim, self.base * s)),
                ("you divide by the number of tokens, not by how many times the text is longer",
                 theta / (s * self.length)),
                ("you bring the last position onto the last; PI divides every position by the "
                 "factor", theta * (self.length - 1) / (self.length * s - 1)),
                ("you press the slow pairs only; position interpolation presses all of them",
                 np.where(self._turns < 1, theta / s, theta)),
            ],
            "position interpolation divides each frequency by one number: which?", each=True,
        )  # fmt: skip

    def _check_ntk_base(self, answer: Any) -> None:
        D, b, s = self.head_dim, float(self.base), float(self.factor)
        name_slip(
            read(answer, (), "ntk_base"), b * s ** (D / (D - 2)),
            [
                ("close: with base times the factor, the slowest pair is not slowed down by all of "
                 "it, because its exponent is (D - 2)/D and not 1", b * s),
                ("the exponent is upside down: the slowest pair has (D - 2)/D of the base's "
                 "logarithm, and you want the factor from it", b * s ** ((D - 2) / D)),
                ("this is what to multiply the base by", s ** (D / (D - 2))),
                ("you have counted pairs where channels are meant: D is the width of the head",
                 b * s ** (D / 2 / (D / 2 - 2))),
                ("this base is smaller, and pairs turn faster", b / s ** (D / (D - 2))),
                ("too much: this is the factor to the power of the number of pairs",
                 b * s ** (D / 2)),
            ],
            "not so: at the slowest pair, base^(-(D-2)/D) is to become 1/factor of what it was",
            tol=5.1e-4,
        )  # fmt: skip

    def _check_by_parts(self, answer: Any) -> None:
        theta, L, s = self.inv_freq, self.length, self.factor
        found = read(call(answer, theta, L, s), theta.shape, "what your function returns")
        self._explain_by_parts(found, theta, L, s)
        theta, L, s = inverse_frequencies(128, 10000.0), 3000, 32
        found = read(call(answer, theta, L, s), theta.shape, "what it returns for another head")
        name_slip(
            found, self._blend(theta, L, s), [],
            "right for your head, and wrong for another one: use the arguments, not lab", each=True,
        )  # fmt: skip

    @staticmethod
    def _blend(theta: np.ndarray, length: int, factor: float) -> np.ndarray:
        """Return by parts, with the ramp from 1 turn to 32."""
        keep = np.clip((length * theta / (2 * np.pi) - 1) / 31, 0, 1)
        return keep * theta + (1 - keep) * theta / factor

    def _explain_by_parts(self, found: np.ndarray, theta: np.ndarray, L: int, s: int) -> None:
        """Raise `Slip` unless frequencies are those of by parts for the reader's own head."""
        turns = L * theta / (2 * np.pi)
        keep = np.clip((turns - 1) / 31, 0, 1)

        def blend(keep: np.ndarray, factor: float = s) -> np.ndarray:
            return keep * theta + (1 - keep) * theta / factor

        name_slip(
            found, blend(keep),
            [
                ("the ramp is reversed: you press the fast pairs and keep the slow ones",
                 blend(1 - keep)),
                ("you multiply the slow pairs by the factor; they are to be slowed down",
                 blend(keep, 1 / s)),
                ("you count radians for turns: divide by 2 pi", blend(np.clip(
                    (L * theta - 1) / 31, 0, 1))),
                ("you count turns in the longer text; what counts is training",
                 blend(np.clip((s * turns - 1) / 31, 0, 1))),
                ("you leave the ramp out: between 1 and 32 turns a pair keeps part of its speed",
                 blend((turns >= 1).astype(float))),
                ("your ramp ends at 32 but starts at 0 turns; it starts at 1",
                 blend(np.clip(turns / 32, 0, 1))),
                ("you divide by 32 between the two ends; from 1 to 32 it is 31",
                 blend(np.clip((turns - 1) / 32, 0, 1))),
                ("you blend wavelengths; the task blends frequencies",
                 1 / (keep / theta + (1 - keep) * s / theta)),
                ("this is the released code's ramp, in the number of the pair; the task asks for "
                 "the paper's, in turns", self._released()),
                ("this is PI: all pairs are pressed", theta / s),
                ("nothing is slowed down", theta),
            ],
            self._by_parts_otherwise(found, blend(keep)), each=True,
        )  # fmt: skip

    def _released(self) -> np.ndarray:
        """Return by parts as its authors' code has it."""
        return rescaled_frequencies(
            "yarn", self.head_dim, self.base, factor=self.factor,
            original_max_position_embeddings=self.length,
        )[0]  # fmt: skip

    def _by_parts_otherwise(self, found: np.ndarray, true: np.ndarray) -> str:
        """Return which pair of the reader's own head is wrong, and by how much."""
        pair = int(np.argmax(np.abs(found / true - 1)))
        theta = self.inv_freq[pair]
        share, wanted = apart(found[pair] / theta, true[pair] / theta)
        turns, _ = apart(self._turns[pair], 1)
        return (
            f"pair {pair} made {turns} turns in training; yours leaves it "
            f"{share} of its speed, it should be {wanted}"
        )

    def _check_mine(self, answer: Any) -> None:
        found = read(answer, self.inv_freq.shape, "mine")
        if (found <= 0).any():
            pair = int(np.argmax(found <= 0))
            raise Slip(
                f"pair {pair} does not turn forward any more: its frequency is {found[pair]:g}"
            )
        limit = self.inv_freq[self._pairs] / self.factor * (1 + 1e-6)
        if (worst := self._pairs[found[self._pairs] > limit]).size:
            pair = int(worst[0])
            turns = found[pair] * self.length * self.factor / (2 * np.pi)
            seen, now = apart(self._turns[pair], turns)
            raise Slip(
                f"{len(worst)} pairs still meet new angles: pair {pair} made {seen} turns in "
                f"training, and makes {now} in the longer text"
            )
        if (fast := found > self.inv_freq * (1 + 1e-6)).any():
            raise Slip(
                f"pair {int(np.argmax(fast))} turns faster than in training: slow pairs down"
            )
        if (share := neighbour_contrast(found) / neighbour_contrast(self.inv_freq)) < KEPT:
            left, wanted = apart(100 * share, 100 * KEPT, 2)
            raise Slip(
                f"no pair meets a new angle, but the step to the next token has {left}% of its "
                f"size, and should keep {wanted}%: you have slowed down fast pairs as well"
            )
        by_parts = self._blend(self.inv_freq, self.length, self.factor), self._released()
        if any(agree(found, one, 1e-2, each=True) for one in by_parts):
            raise Slip("that is by parts, part 4: find another curve of your own")
