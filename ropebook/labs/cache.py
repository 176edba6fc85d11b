"""Lab 4: mend a cache of rotated keys."""

from typing import Any

import numpy as np

from .lab import Draw, Lab, Slip, agree, call, name_slip, numbers, read
from .turns import Turn, explain, series

__all__ = ["MendACache"]

ACCIDENTS = {
    "rotated twice": lambda m, c: 2 * m,
    "offset lost": lambda m, c: m - c,
    "rotated the other way": lambda m, c: -m,
    "never rotated": lambda m, c: 0 * m,
}
"""What happened to the keys from slot ``c`` on: where position ``m`` stands now."""


class MendACache(Lab):
    """Lab 4: move keys, close a gap, name the next position, repair what an accident left."""

    number = 4
    title = "mend a cache"
    parts = ("move", "drop", "next_position", "accident", "mended")

    def _draw(self, draw: Draw) -> None:
        self.head_dim = draw.one_of((8, 12, 16))
        self.base = 100 * (3 + draw.below(400))
        self._turn = Turn(self.head_dim, self.head_dim, series(self.head_dim, self.base))
        length = 24 + draw.below(12)
        self.positions = np.arange(length)
        self.before = 7 + draw.below(8)
        self._accident = draw.one_of(tuple(ACCIDENTS))
        raw = self.random.standard_normal((length, self.head_dim))
        self._mended = self._turn(raw, self.positions)
        now = np.where(
            self.positions < self.before,
            self.positions,
            ACCIDENTS[self._accident](self.positions, self.before),
        )
        self.broken = self._turn(raw, now)
        slots = (3, self.before + 2, self.before + 5, length - 1)
        self.raw = {slot: raw[slot].copy() for slot in slots}

    def _task(self) -> list[str]:
        return [
            f"keys of {self.head_dim} channels (`lab.head_dim`), base {self.base:,} (`lab.base`), "
            "half-split pairs, turned counter-clockwise",
            f"`lab.broken`: the {len(self.positions)} keys of a cache, shape {self.broken.shape}; "
            "`lab.positions`: where they should stand",
            f"the first {self.before} of them (`lab.before`) are healthy; those after them had "
            f"an accident, one of {', '.join(ACCIDENTS)}",
            f"`lab.raw`: what the keys in slots {', '.join(map(str, self.raw))} were before their "
            "rotation, by slot",
        ]

    def _keys(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return raw keys, and rotated ones."""
        raw = self.random.standard_normal((len(positions), self.head_dim))
        return raw, self._turn(raw, positions)

    def _check_move(self, answer: Any) -> None:
        positions = self.random.permutation(50)[:6]
        delta = np.array([-7, -1, 0, 4, 9, 3000])
        _, keys = self._keys(positions)
        found = read(call(answer, keys, delta), keys.shape, "what move returns")
        for words, would in (
            ("the keys come back where they were: nothing is moved", keys),
            ("you move by the absolute value: a negative delta goes towards the start",
             self._turn(keys, np.abs(delta))),
            ("all keys are moved by the first delta: there is one for each slot",
             self._turn(keys, np.full(6, delta[0]))),
            ("you add the slot to delta: the key is already rotated, and is moved by delta alone",
             self._turn(keys, np.arange(6) + delta)),
        ):  # fmt: skip
            if agree(found, would):
                raise Slip(words)
        explain(lambda turn: turn(keys, delta), found, self._turn, "the cache")
        true = self._turn(keys, delta)
        if agree(found[:5], true[:5]) and not agree(found[5], true[5]):
            raise Slip(
                "the moved key is R_(m + delta) k for small deltas, and not for 3000: take your "
                "frequencies more exactly, and all of it in float64"
            )
        words = "the moved key is not R_(m + delta) k"
        if agree(found, true, 1e-2) and not agree(_lengths(found.T), _lengths(true.T), 1e-6):
            words = "right to two digits or three, and no further: is some of it in float16?"
        name_slip(found, true, [], words)

    def _check_drop(self, answer: Any) -> None:
        positions, start, stop = np.arange(20), 4, 11
        raw, keys = self._keys(positions)
        found = call(answer, keys, positions, start, stop)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise Slip("drop should return two things: the keys that stay, and their positions")
        stay, shape = np.r_[0:start, stop:20], numbers(found[0], "keys").shape[:1]
        for words, kept in (
            ("one key too many stays: start to stop - 1 go", len(stay) + 1),
            ("one key too few stays: start to stop - 1 go", len(stay) - 1),
            ("as many keys come back as were to go", stop - start),
            ("as many keys come back as went in", 20),
        ):
            if shape == (kept,):
                raise Slip(words)
        places = read(found[1], stay.shape, "positions")
        new = np.arange(len(stay))
        name_slip(
            places, new,
            [
                ("the gap is still there: the positions behind it have to follow", stay),
                ("the positions behind the gap move the wrong way",
                 np.where(stay < start, stay, stay + stop - start)),
                ("one too many or too few: stop - start positions are gone",
                 np.where(stay < start, stay, stay - (stop - start) + 1)),
            ],
            "the positions that stay should be 0, 1, 2 and so on, without a gap",
        )  # fmt: skip
        got = read(found[0], (len(stay), self.head_dim), "keys")
        rest, gap = raw[stay], stop - start
        for words, place in (
            ("the gap is closed in the positions, but the keys have not moved: they still stand "
             "where they stood", stay),
            ("the cache was rotated twice: a key in it is turned already, so move it by the "
             "difference, not by its new position", stay + new),
            ("direction reversed: keys behind the gap move towards the start, by a negative delta",
             np.where(stay < start, stay, stay + gap)),
            ("you moved the keys before the gap as well: they stand where they should",
             stay - gap),
            ("you move by start; stop - start positions are gone",
             np.where(stay < start, stay, stay - start)),
            ("one too few: stop - start positions are gone",
             np.where(stay < start, stay, stay - gap + 1)),
            ("one too many: stop - start positions are gone",
             np.where(stay < start, stay, stay - gap - 1)),
        ):  # fmt: skip
            if agree(got, self._turn(rest, place)):
                raise Slip(words)
        name_slip(got, self._turn(rest, new), [], self._places(got, rest, new))

    def _check_next_position(self, answer: Any) -> None:
        positions = np.array([[0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 0, 1, 2, 3, 4],
                              [9, 9, 0, 1, 2, 3, 30, 31], [1, 1, 1, 1, 1, 1, 1, 0]])  # fmt: skip
        padding = np.zeros((4, 8), bool)
        padding[1, :3] = padding[2, :2] = padding[3, :7] = True
        largest = np.where(padding, -1, positions).max(axis=1)
        given = numbers(call(answer, positions, padding), "next_position")
        if given.shape == ():
            raise Slip("one number for each row: rows may have different lengths")
        name_slip(
            read(given, (4,), "next_position"), largest + 1,
            [
                ("this is the last position in use, the next is one further", largest),
                ("this counts slots, padding included: a padded row jumps ahead", np.full(4, 8)),
                ("this counts tokens; after a gap, a row of few tokens stands further on",
                 (~padding).sum(axis=1)),
                ("two too far", largest + 2),
                ("the number that stands in a slot of padding is no position",
                 positions.max(axis=1) + 1),
            ],
            "one past the largest position of the row's tokens",
        )  # fmt: skip

    def _check_accident(self, answer: Any) -> None:
        if not isinstance(answer, str) or answer not in ACCIDENTS:
            raise Slip(f"accident should be one of {', '.join(map(repr, ACCIDENTS))}")
        if answer == self._accident:
            return
        slot = self.before + 5
        says = ACCIDENTS[answer](slot, self.before)
        raise Slip(
            f"if it was {answer!r}, the key in slot {slot} would be turned from its raw key by "
            f"{says} positions (offset lost: counted anew from the first broken slot); measure it"
        )

    def _check_mended(self, answer: Any) -> None:
        found = read(answer, self._mended.shape, "mended")
        if agree(found, self._mended):
            return
        if agree(found, self.broken):
            raise Slip("nothing is mended: these are the keys of the broken cache")
        raw = self._turn(self._mended, -self.positions)
        raise Slip(self._places(found, raw, self.positions))

    def _places(self, found: np.ndarray, raw: np.ndarray, wanted: np.ndarray) -> str:
        """Return where the keys stand that are not where they should."""
        search = np.arange(-200, 201)
        wrong, told = [], []
        for slot, key in enumerate(found):
            would = self._turn(np.repeat(raw[slot][None], len(search), 0), search)
            off = np.abs(would - key).max(axis=1)
            best = int(np.argmin(off))
            place = int(search[best]) if off[best] < 1e-6 * np.abs(key).max() + 1e-9 else None
            if place != wanted[slot]:
                wrong.append(slot)
                told.append(place)
        if not wrong:
            return "a few numbers differ by more than rounding"
        if agree(found, self._turn(raw, wanted), 1e-2):
            return "right to two digits or three, and no further: is some of it in float16?"
        slot, place = wrong[-1], told[-1]
        if place is None:
            kept = agree(_lengths(found[slot]), _lengths(raw[slot]))
            return (
                f"the key in slot {slot} is not its raw key turned by any whole number of "
                f"positions from {search[0]} to {search[-1]}"
            ) + (
                ": is it the right base?" if kept else "; its half-split pairs have other "
                "lengths: are they the pairs, and is it the key of this slot?"
            )  # fmt: skip
        line = (
            f"not where they should stand: {len(wrong)} of {len(found)} keys; the last of them, in "
            f"slot {slot}, stands at {place} instead of {wanted[slot]}"
        )
        if wrong[0] < self.before and len(found) == len(self.positions):
            line += f"; the keys before slot {self.before} were healthy, leave them"
        return line


def _lengths(key: np.ndarray) -> np.ndarray:
    """Return the lengths of a key's half-split pairs."""
    return np.hypot(*np.split(key, 2))
