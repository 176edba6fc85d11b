"""A solution of lab 5."""

import numpy as np

from ropebook import labs

lab = labs.begin(5, "a teacher")


def rounded(x):
    part, exponent = np.frexp(x)
    return np.ldexp(np.rint(part * 2.0**lab.bits), exponent - lab.bits)


counted = np.arange(1, 2 ** (lab.bits + 2))
last_exact = counted[np.argmax(rounded(counted) != counted)] - 1

crowd = np.sum(rounded(np.arange(4 * lab.token)) == rounded(lab.token))

places, theta = np.arange(lab.last + 1), lab.inv_freq[lab.pair]
position_error = np.abs(rounded(places) - places).max() * theta
frequency_error = np.abs(rounded(theta) - theta) * lab.last


def tables():
    """The same head, with each stage rounded in turn."""
    m = np.arange(len(lab.cos))[:, None]
    yield "positions", np.cos(rounded(m) * lab.inv_freq)
    yield "inverse frequencies", np.cos(m * rounded(lab.inv_freq))
    yield "product", np.cos(rounded(m * lab.inv_freq))
    yield "table", rounded(np.cos(m * lab.inv_freq))


stage = next(name for name, cos in tables() if np.allclose(cos, lab.cos, rtol=0, atol=1e-9))
