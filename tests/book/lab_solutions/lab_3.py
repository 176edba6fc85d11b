"""A solution of lab 3."""

import numpy as np

from ropebook import labs

lab = labs.begin(3, "a teacher")

turns = lab.length * lab.inv_freq / (2 * np.pi)
fresh = np.flatnonzero(turns < 1)

interpolated = lab.inv_freq / lab.factor

ntk_base = lab.base * lab.factor ** (lab.head_dim / (lab.head_dim - 2))


def by_parts(inv_freq, length, factor):
    turns = length * inv_freq / (2 * np.pi)
    keep = np.clip((turns - 1) / (32 - 1), 0, 1)
    return keep * inv_freq + (1 - keep) * inv_freq / factor


mine = np.where(turns < 1, lab.inv_freq / lab.factor, lab.inv_freq)
