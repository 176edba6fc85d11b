"""The encodings that are compared, and what can be done to a trained one before a longer text."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rope_minimal import inverse_frequencies, rescaled_frequencies


@dataclass(frozen=True)
class Encoding:
    """One way to tell a transformer where its tokens are.

    ``inv_freq(dim, window)`` gives the inverse frequencies of a rotation, in radians per position;
    None where nothing is rotated.
    """

    name: str
    words: str
    inv_freq: Callable[[int, int], np.ndarray] | None = None
    resting_layers: tuple[int, ...] = ()
    """Layers that do not rotate."""
    added: str | None = None
    """What is added to the input: ``sinusoidal``, ``learned`` or nothing."""
    bias: str | None = None
    """What is added to the scores: ``alibi``, ``t5`` or nothing."""
    before_projection: bool = False
    """Rotate what goes into the projections of q and k, not what comes out."""
    mixed_layouts: bool = False
    """Rotate q interleaved and k half-split: a bug that trains."""
    causal: bool = True


def _rope(dim: int, window: int) -> np.ndarray:
    return inverse_frequencies(dim)


def _monotone(turns: float) -> Callable[[int, int], np.ndarray]:
    return lambda dim, window: rescaled_frequencies(
        "monotone", dim, max_positions=window, turns=turns
    )[0]


def _literal(dim: int, window: int) -> np.ndarray:
    return inverse_frequencies(dim) * (2 * 2048 / 10000)


def _one_plane(dim: int, window: int) -> np.ndarray:
    return np.ones(dim // 2)


def _one_hand(dim: int, window: int) -> np.ndarray:
    return np.eye(1, dim // 2)[0]


def _fast_half(dim: int, window: int) -> np.ndarray:
    return rescaled_frequencies("proportional", dim, partial_rotary_factor=0.5)[0]


def _slow_half(dim: int, window: int) -> np.ndarray:
    return inverse_frequencies(dim) - _fast_half(dim, window)


ENCODINGS = {
    encoding.name: encoding
    for encoding in (
        Encoding("rope", "RoPE", _rope),
        Encoding("monotone_a", "the proposal, half a turn", _monotone(0.5)),
        Encoding("monotone_b", "the proposal, one turn", _monotone(1.0)),
        Encoding("one_plane", "one frequency for all pairs", _one_plane),
        Encoding("one_hand", "one pair turns, fifteen rest", _one_hand),
        Encoding("fast_half", "fast pairs only (p-RoPE)", _fast_half),
        Encoding("slow_half", "slow pairs only", _slow_half),
        Encoding("nope", "no encoding"),
        Encoding("layers", "layer 1 rotates, layer 2 rests", _rope, resting_layers=(1,)),
        Encoding("alibi", "ALiBi", bias="alibi"),
        Encoding("t5", "T5 bias", bias="t5"),
        Encoding("mixed", "q and k in different layouts", _rope, mixed_layouts=True),
        Encoding("rope_unmasked", "RoPE, no causal mask", _rope, causal=False),
        Encoding("sinusoidal", "sinusoidal, added to the input", added="sinusoidal"),
        Encoding("learned", "learned, added to the input", added="learned"),
        Encoding("before", "rotated before the projection", _rope, before_projection=True),
        Encoding("literal", "the proposal, 0.4096 as printed", _literal),
    )
}
"""In the order in which they are trained."""

AIDS = {
    "temperature": "temperature",
    "pi": "PI",
    "ntk": "NTK",
    "parts": "by parts, knees 4 and 1",
    "parts+t": "YaRN, knees 4 and 1",
}
"""What is done to any bank when a text is longer than those of the training."""

RAMPS = {
    "printed": "by parts, knees 32 and 1, as printed",
    "printed+t": "YaRN, knees 32 and 1, as printed",
    "released": "by parts, knees 32 and 1, as released",
    "released+t": "YaRN, knees 32 and 1, as released",
}
"""The two ramps of YaRN with the knees of large models: for RoPE's own bank only."""

SIGHTS = {"near": "only keys seen at trained distances", "clamp": "longer distances coded as 63"}
"""Experiments: keys a window or more away are hidden, or coded as if they were 63 away."""


def temperature(factor: float) -> float:
    """Return YaRN's attention factor, by which cos and sin (so q and k) are multiplied."""
    return 0.1 * math.log(factor) + 1.0


def aided(kind: str, bank: np.ndarray, window: int, factor: int) -> tuple[np.ndarray, float]:
    """Return a bank changed for a text of ``factor`` windows, and the attention factor.

    Written for any bank; for RoPE's own they are the package's functions, a test says so.
    """
    kind, _, warm = kind.partition("+")
    heat = temperature(factor) if warm or kind == "temperature" else 1.0
    pairs = len(bank)
    if kind == "temperature":
        return bank, heat
    if kind == "pi":
        return bank / factor, heat
    if kind == "ntk":
        return bank * factor ** (-np.arange(pairs) / (pairs - 1)), heat
    if kind == "released":
        own = {"factor": factor, "original_max_position_embeddings": window}
        return rescaled_frequencies("yarn", 2 * pairs, **own)[0], heat
    slow, fast = {"parts": (1.0, 4.0), "printed": (1.0, 32.0)}[kind]
    keep = np.clip((window * bank / (2 * np.pi) - slow) / (fast - slow), 0.0, 1.0)
    return bank * (keep + (1.0 - keep) / factor), heat
