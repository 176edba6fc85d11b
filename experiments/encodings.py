"""Position encodings under comparison, and rescalings of a trained one for longer texts."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rope_minimal import inverse_frequencies, rescaled_frequencies


@dataclass(frozen=True)
class Encoding:
    """A position encoding of a transformer.

    ``inv_freq(dim, window)`` returns the inverse frequencies of its rotation, in radians per
    position; None if it does not rotate.
    """

    name: str
    words: str
    inv_freq: Callable[[int, int], np.ndarray] | None = None
    unrotated_layers: tuple[int, ...] = ()
    """Layers that do not rotate."""
    added: str | None = None
    """Embedding added to the input: ``sinusoidal``, ``learned`` or None."""
    bias: str | None = None
    """Bias added to the scores: ``alibi``, ``t5`` or None."""
    slopes: tuple[float, ...] = (1 / 16, 1 / 256)
    """ALiBi's slope of each layer: those that its rule gives to two heads, one in each."""
    farthest: int = 128
    """The distance from which on T5's bias has one number: 128 as released."""
    before_projection: bool = False
    """Rotate the input of the projections of q and k instead of their output."""
    mixed_layouts: bool = False
    """Rotate q interleaved and k half-split, a common bug."""
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


def _slow_plane(dim: int, window: int) -> np.ndarray:
    return np.full(dim // 2, np.pi / window)


def _slow_hand(dim: int, window: int) -> np.ndarray:
    return 0.1 * np.eye(1, dim // 2)[0]


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
        Encoding("layers", "layer 1 rotates, layer 2 rests", _rope, unrotated_layers=(1,)),
        Encoding("alibi", "ALiBi", bias="alibi"),
        Encoding("t5", "T5 bias", bias="t5"),
        Encoding("mixed", "q and k in different layouts", _rope, mixed_layouts=True),
        Encoding("rope_unmasked", "RoPE, no causal mask", _rope, causal=False),
        Encoding("sinusoidal", "sinusoidal, added to the input", added="sinusoidal"),
        Encoding("learned", "learned, added to the input", added="learned"),
        Encoding("before", "rotated before the projection", _rope, before_projection=True),
        Encoding("literal", "the proposal, 0.4096 as printed", _literal),
        Encoding("alibi_steep", "ALiBi, steeper", bias="alibi", slopes=(1 / 2, 1 / 16)),
        Encoding("t5_window", "T5 bias, to 64", bias="t5", farthest=64),
        Encoding("slow_plane", "one frequency, half a turn", _slow_plane),
        Encoding("slow_hand", "one pair turns by 0.1, fifteen rest", _slow_hand),
    )
}
"""All encodings by name, in training order."""

AIDS = {
    "temperature": "temperature",
    "pi": "PI",
    "ntk": "NTK",
    "parts": "by parts, knees 4 and 1",
    "parts+t": "YaRN, knees 4 and 1",
}
"""Rescalings for texts longer than those of training, for any inverse frequencies."""

RAMPS = {
    "printed": "by parts, knees 32 and 1, as printed",
    "printed+t": "YaRN, knees 32 and 1, as printed",
    "released": "by parts, knees 32 and 1, as released",
    "released+t": "YaRN, knees 32 and 1, as released",
}
"""YaRN with the ramp boundaries of large models: for RoPE's own inverse frequencies only."""

SIGHTS = {"near": "only keys seen at trained distances", "clamp": "longer distances coded as 63"}
"""Interventions on keys a window or more away: masked, or rotated as if at distance 63."""


def temperature(factor: float) -> float:
    """Return YaRN's attention factor, which multiplies cos and sin (so q and k)."""
    return 0.1 * math.log(factor) + 1.0


def aided(kind: str, bank: np.ndarray, window: int, factor: int) -> tuple[np.ndarray, float]:
    """Return inverse frequencies for texts of ``factor`` windows, and the attention factor.

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
