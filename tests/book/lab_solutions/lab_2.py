"""A solution of lab 2."""

import numpy as np

from ropebook import labs

lab = labs.begin(2, "a teacher")

ask = np.eye(lab.head_dim)


def outputs(position):
    """Row i is what comes out for a one in channel i."""
    return lab.stranger(ask, np.full(lab.head_dim, position))


def phase(position, pair):
    """The angle of a pair at a position, counter-clockwise."""
    a, b = pair
    return np.arctan2(outputs(position)[a, b], outputs(position)[a, a])


met = (np.abs(outputs(7)) > 1e-9).astype(int)
found = [(a, b) for a in range(lab.head_dim) for b in range(a + 1, lab.head_dim) if met[a, b]]
steps = {pair: (phase(1, pair) - phase(0, pair) + np.pi) % (2 * np.pi) - np.pi for pair in found}
pairs = sorted(found, key=lambda pair: -abs(steps[pair]))
direction = int(np.sign(steps[pairs[0]]))
rough = np.array([abs(steps[pair]) for pair in pairs])

# the same, more exactly, from a series
base = (rough[0] / rough[-1]) ** (len(rough) / (len(rough) - 1))
inv_freq = np.round(base) ** (-np.arange(len(rough)) / len(rough))

first = round(direction * phase(0, pairs[0]) / inv_freq[0])
factor = np.linalg.norm(outputs(3)[pairs[0][0]])


def twin(x, positions):
    y = np.array(x, dtype=float)
    a, b = np.array(pairs).T
    angle = direction * (positions[:, None] + first) * inv_freq
    z = factor * (y[:, a] + 1j * y[:, b]) * np.exp(1j * angle)
    y[:, a], y[:, b] = z.real, z.imag
    return y
