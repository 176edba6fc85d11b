"""The encodings that are compared: everything else about the models is the same."""

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
    added: str | None = None
    """What is added to the input: ``sinusoidal``, ``learned`` or nothing."""
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
        Encoding("literal", "the proposal, 0.4096 as printed", _literal),
        Encoding("one_plane", "one frequency for all pairs", _one_plane),
        Encoding("fast_half", "fast pairs only (p-RoPE)", _fast_half),
        Encoding("slow_half", "slow pairs only", _slow_half),
        Encoding("nope", "no encoding"),
        Encoding("sinusoidal", "sinusoidal, added to the input", added="sinusoidal"),
        Encoding("learned", "learned, added to the input", added="learned"),
        Encoding("before", "rotated before the projection", _rope, before_projection=True),
        Encoding("mixed", "q and k in different layouts", _rope, mixed_layouts=True),
        Encoding("rope_unmasked", "RoPE, no causal mask", _rope, causal=False),
        Encoding("nope_unmasked", "no encoding, no causal mask", causal=False),
    )
}

STRETCHES = ("none", "linear", "ntk", "yarn")
"""What is done to RoPE's frequencies when a text is longer than those of the training."""


def stretched(kind: str, dim: int, window: int, factor: int) -> tuple[np.ndarray, float]:
    """Return RoPE's inverse frequencies for a text ``factor`` times the window, and the factor.

    The second number is the attention factor, by which cos and sin are multiplied.
    """
    if kind == "none" or factor == 1:
        return inverse_frequencies(dim), 1.0
    if kind == "yarn":
        return rescaled_frequencies(
            "yarn", dim, factor=factor, original_max_position_embeddings=window
        )
    return rescaled_frequencies(kind, dim, factor=factor)
