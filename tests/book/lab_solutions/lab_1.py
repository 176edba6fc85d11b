"""A solution of lab 1."""

import numpy as np

from ropebook import labs

lab = labs.begin(1, "a teacher")

inv_freq = lab.base ** (-2 * np.arange(lab.head_dim // 2) / lab.head_dim)

slowest = 2 * np.pi / inv_freq[-1]


def rotate(x, positions):
    x = np.asarray(x, dtype=float)
    y = np.empty_like(x)
    half = lab.head_dim // 2
    if lab.interleaved:
        first, second = slice(0, None, 2), slice(1, None, 2)
    else:
        first, second = slice(0, half), slice(half, None)
    angle = positions[:, None] * inv_freq
    cos, sin = np.cos(angle), np.sin(angle)
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., first] * sin + x[..., second] * cos
    return y


def score(q, k, distance):
    return rotate(q[None], np.array([distance]))[0] @ k
