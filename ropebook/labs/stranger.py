"""Lab 2: find the layout of a stranger, a rotation that can be asked and not read."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from .lab import Draw, Lab, Slip, name_slip, read, whole
from .rotation import check_rotation
from .turns import LAYOUT, Turn, series

__all__ = ["FindTheLayout"]


class FindTheLayout(Lab):
    """Lab 2: which channels a function pairs, which way, from where, how fast, times what."""

    number = 2
    title = "find the layout of a stranger"
    parts = ("pairs", "direction", "first", "inv_freq", "factor", "twin")
    questions: ClassVar[int] = 0
    """How often a stranger was asked."""

    def _draw(self, draw: Draw) -> None:
        self.head_dim = draw.one_of((16, 20, 24))
        width = self.head_dim - draw.one_of((4, 6, 8))
        bank = series(width, draw.one_of((300, 700, 3000, 20_000, 80_000)))
        self._turn = Turn(
            *(self.head_dim, width, bank),
            interleaved=bool(draw.below(2)),
            direction=draw.one_of((1, -1)),
            first=draw.one_of((0, 1, 2)),
            factor=draw.one_of((1.1, 1.25, 0.8)),
            at_end=bool(draw.below(2)),
        )

    def _task(self) -> list[str]:
        return [
            f"the stranger takes vectors of {self.head_dim} channels (`lab.head_dim`)",
            "`lab.stranger(x, positions)` takes x of shape (T, head_dim) and positions of shape "
            "(T,), and returns x rotated: ask it whatever you like",
        ]

    def stranger(self, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return vectors of shape (T, head_dim), rotated by T positions in the stranger's way."""
        x, positions = np.asarray(x), np.asarray(positions)
        if x.ndim != 2 or x.shape[1] != self.head_dim or positions.shape != x.shape[:1]:
            raise ValueError(
                f"x must have shape (T, {self.head_dim}) and positions (T,), got {x.shape} and "
                f"{positions.shape}"
            )
        FindTheLayout.questions += 1
        return self._turn(x, positions)

    def _check_pairs(self, answer: Any) -> None:
        true, width = self._turn.pairs(), self._turn.width
        given = whole(answer, "pairs")
        if given.ndim != 2 or given.shape[1] != 2:
            raise Slip("pairs should be a list of two channels each, as [(0, 1), (2, 3)]")
        found = [(a, b) for a, b in given.tolist()]
        if found == true:
            return
        if found == true[::-1]:
            raise Slip("the pairs are right, in reverse order: the fastest comes first")
        if sorted(found) == sorted(true):
            raise Slip("the pairs are right, but not in order: the fastest comes first")
        if sorted(map(sorted, found)) == sorted(map(sorted, true)):
            raise Slip("the pairs are right, but name the lower channel of each first")
        if [(a - 1, b - 1) for a, b in found] == true:
            raise Slip("you count channels from 1: the first is channel 0")
        for words, pairs in self._other_pairs():
            if found == pairs:
                raise Slip(words)
        if twice := [pair for pair in found if found.count(pair) > 1]:
            raise Slip(f"{twice[0]} stands there twice")
        if len(found) != len(true):
            moved = "more channels" if len(found) < len(true) else "fewer channels"
            raise Slip(f"you name {len(found)} pairs; the stranger turns {moved} than that")
        one = next(pair for pair in found if pair not in true)
        head = range(self._turn.head_dim)
        if beyond := [channel for channel in one if channel not in head]:
            raise Slip(f"there is no channel {beyond[0]}: the stranger's are 0 to {head[-1]}")
        turned = {channel for pair in true for channel in pair}
        if still := [channel for channel in one if channel not in turned]:
            raise Slip(
                f"{one} is no pair of the stranger's: channel {still[0]} comes back as it was"
            )
        raise Slip(
            f"{one} is no pair of the stranger's: send in channel {one[0]} alone and look where "
            f"it comes out, among {width} channels that turn"
        )

    def _other_pairs(self) -> Iterator[tuple[str, list[tuple[int, int]]]]:
        """Yield the pairs of strangers that this one could be taken for."""
        true, layout = self._turn, LAYOUT[self._turn.interleaved]
        for interleaved in (True, False):
            mine = LAYOUT[interleaved]
            same = mine == layout
            for width, at_end in ((true.width, True), (true.width, False), (true.head_dim, False)):
                words = [] if same else [f"your pairs are {mine}, the stranger's are {layout}"]
                if width != true.width:
                    words.append(
                        f"you pair all {width} channels, and some of them come back as they were"
                    )
                elif at_end != true.at_end:
                    side = "last" if true.at_end else "first"
                    words.append(f"it is the {side} {width} channels that turn")
                other = Turn(true.head_dim, width, (), interleaved, at_end=at_end)
                yield "; ".join(words), other.pairs()

    def _check_direction(self, answer: Any) -> None:
        found = read(answer, (), "direction")
        if found not in (1, -1):
            raise Slip("direction should be 1 for counter-clockwise or -1 for clockwise")
        if found != self._turn.direction:
            raise Slip(
                "direction reversed: send a one into the lower channel of a slow pair at position "
                "1; the sign of what comes out in the higher one is the direction"
            )

    def _check_first(self, answer: Any) -> None:
        found, true = float(read(answer, (), "first")), self._turn.first
        if abs(found - true) < 1e-3:
            return
        if abs(found + true) < 1e-3:
            raise Slip("the sign is reversed: take the direction into account")
        raise Slip(
            f"not {found:g}: at positions = 0 the fastest pair is turned by an angle; how many "
            "positions is that?"
        )

    def _check_inv_freq(self, answer: Any) -> None:
        theta = np.array(self._turn.inv_freq)
        found = read(answer, theta.shape, "inv_freq")
        base = (theta[0] / theta[-1]) ** (len(theta) / (len(theta) - 1))
        wide = base ** -(np.arange(len(theta)) * 2 / self.head_dim)
        shift = 1 + self._turn.first
        name_slip(
            found, theta,
            [
                ("reverse order: the fastest pair comes first", theta[::-1]),
                ("frequencies are not signed here: the direction says which way", -theta),
                ("these are wavelengths, in tokens", 2 * np.pi / theta),
                ("these are in degrees", np.degrees(theta)),
                ("the exponent divides by the whole head: the stranger turns fewer channels", wide),
                ("these are the angles at position 1: the stranger's positions do not start at 0, "
                 "so take the difference of two positions", theta * shift),
                ("four digits are not four decimals: of the slow pairs these keep little",
                 np.round(theta, 4)),
                ("this is a series of base 10,000: measure the stranger's",
                 series(2 * len(theta), 10_000.0)),
            ],
            "not these: take the angle between the outputs at two positions next to each other",
            tol=5.1e-4, each=True,
        )  # fmt: skip

    def _check_factor(self, answer: Any) -> None:
        found, true = read(answer, (), "factor"), self._turn.factor
        name_slip(
            found, true,
            [
                ("scores grow by this: the factor on a vector is its square root", true**2),
                ("this is 1 over the factor", 1 / true),
                ("lengths do change: compare that of a vector going in with that coming out", 1.0),
            ],
            "not so: how long does a vector come out whose channels all turn?", tol=1e-4,
        )  # fmt: skip

    def _check_twin(self, answer: Any) -> None:
        before = self.questions
        check_rotation(answer, self._turn, self.random, "the stranger")
        if self.questions != before:
            raise Slip("it asks the stranger: write a function of your own, from what you measured")
