"""A solution of lab 4."""

import numpy as np

from rope_minimal import rotate_complex
from ropebook import labs

lab = labs.begin(4, "a teacher")


def move(keys, delta):
    return rotate_complex(keys, delta, lab.base)


def drop(keys, positions, start, stop):
    stay = np.r_[0:start, stop : len(keys)]
    delta = np.where(stay < start, 0, start - stop)
    return move(keys[stay], delta), positions[stay] + delta


def next_position(positions, padding):
    return np.where(padding, -1, positions).max(axis=1) + 1


def stands_at(slot):
    """Try every position for the raw key."""
    places = np.arange(-100, 101)
    tried = move(np.repeat(lab.raw[slot][None], len(places), axis=0), places)
    return places[np.argmin(np.abs(tried - lab.broken[slot]).max(axis=1))]


slots = sorted(lab.raw)[1:]
first, second = (stands_at(slot) for slot in slots[:2])
way = (second - first) / (slots[1] - slots[0])
accident = {2: "rotated twice", -1: "rotated the other way", 0: "never rotated"}.get(
    way, "offset lost"
)
where = {"rotated twice": 2 * lab.positions, "rotated the other way": -lab.positions,
         "never rotated": 0 * lab.positions, "offset lost": lab.positions - lab.before}  # fmt: skip
now = np.where(lab.positions < lab.before, lab.positions, where[accident])
mended = move(lab.broken, lab.positions - now)
