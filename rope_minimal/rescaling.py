"""Published rescalings of the inverse frequencies, for contexts longer than in training.

`rescaled_frequencies` calls one function for each.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .checks import check_dim, check_flag, check_positive, check_real, real_numbers
from .frequencies import inverse_frequencies, wavelengths

__all__ = ["rescaled_frequencies"]


def rescaled_frequencies(
    kind: str, dim: int, base: float = 10000.0, **parameters: Any
) -> tuple[np.ndarray, float]:
    """Return the inverse frequencies of a published rescaling, and its attention factor.

    Parameters
    ----------
    kind
        One of the names in the table below.
    dim
        Width of one head, a positive even integer.
    base
        The base of the geometric series, finite and > 0.
    **parameters
        Parameters of the kind, with Hugging Face's names (required ones in **bold**). Every kind
        but ``proportional`` also takes ``partial_rotary_factor`` (default 1.0): only the first
        ``int(dim * partial_rotary_factor)`` channels are rotated, with the frequencies of that
        width (the partial rotary embedding of GPT-J and GPT-NeoX).

        ============== ============================================================================
        kind           parameters
        ============== ============================================================================
        default        none
        linear         **factor** (position interpolation: all frequencies divided by it)
        ntk            **factor** (a larger base: the last frequency divided by exactly it)
        dynamic        **factor**, **max_position_embeddings**, seq_len (the base grows with it)
        by_parts       **factor**, **original_max_position_embeddings**, beta_fast=32, beta_slow=1
        yarn_paper     as by_parts, attention_factor
        yarn           as yarn_paper, mscale, mscale_all_dim, truncate=True (the ramp of the code)
        llama3         **factor**, **low_freq_factor**, **high_freq_factor**,
                       **original_max_position_embeddings**
        longrope       **short_factor**, **long_factor** (one number per pair),
                       **original_max_position_embeddings**, max_position_embeddings, factor,
                       seq_len, attention_factor
        proportional   partial_rotary_factor=1.0, factor=1.0 (the lowest frequencies set to 0)
        monotone       **max_positions**, turns=0.5 (rotations of pair 0 in all)
        ============== ============================================================================

    Returns
    -------
    inv_freq : ndarray of shape (rotated/2,), float64
        Radians per position, largest first; ``rotated`` is ``dim`` unless
        ``partial_rotary_factor`` is given.
    attention_factor : float
        Factor on cos and sin; scores are multiplied by its square.

    Notes
    -----
    Chen et al. 2023 (linear); bloc97 2023 (ntk); emozilla 2023 (dynamic); Peng et al. 2023
    (by_parts, yarn); Llama 3 (llama3); Ding et al. 2024 (longrope); Gemma 4 (proportional); He & Xu
    2023 (monotone, reconstructed).
    """
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(sorted(_KINDS))}; got {kind!r}")
    check_dim(dim)
    check_positive("base", base)
    rule = _KINDS[kind]
    if kind != "proportional":
        dim = _partial_width(dim, parameters.pop("partial_rotary_factor", 1.0))
    with np.errstate(over="ignore"):
        inv_freq, attention_factor = rule(dim, float(base), **parameters)
    if not (np.isfinite(inv_freq).all() and math.isfinite(attention_factor)):
        raise ValueError(f"parameters must give finite frequencies, got {parameters}")
    return inv_freq, attention_factor


def _default(dim: int, base: float) -> tuple[np.ndarray, float]:
    """Return the frequencies of RoFormer."""
    return inverse_frequencies(dim, base), 1.0


def _linear(dim: int, base: float, *, factor: float) -> tuple[np.ndarray, float]:
    """Position interpolation (Chen et al. 2023): all frequencies divided by ``factor``."""
    check_positive("factor", factor)
    return inverse_frequencies(dim, base) / factor, 1.0


def _ntk(dim: int, base: float, *, factor: float) -> tuple[np.ndarray, float]:
    """NTK-aware scaling (bloc97 2023): the base multiplied by ``factor**(dim / (dim-2))``.

    The first frequency does not change, and the last is divided by exactly ``factor``.
    """
    check_positive("factor", factor)
    if dim <= 2:
        raise ValueError(f"dim must be >= 4 for kind 'ntk', got {dim}")
    scale = float(factor) ** (-2.0 * np.arange(dim // 2) / (dim - 2))
    return inverse_frequencies(dim, base) * scale, 1.0


def _dynamic(
    dim: int,
    base: float,
    *,
    factor: float,
    max_position_embeddings: int,
    seq_len: int | None = None,
) -> tuple[np.ndarray, float]:
    """Dynamic NTK (emozilla 2023): NTK scaling whose factor grows with the sequence."""
    check_positive("factor", factor)
    check_positive("max_position_embeddings", max_position_embeddings)
    if seq_len is None:
        seq_len = max_position_embeddings
    check_positive("seq_len", seq_len)
    length = max(seq_len, max_position_embeddings) / max_position_embeddings
    return _ntk(dim, base, factor=factor * (length - 1.0) + 1.0)


def _by_parts(
    dim: int,
    base: float,
    *,
    factor: float,
    original_max_position_embeddings: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
) -> tuple[np.ndarray, float]:
    """NTK-by-parts (Peng et al. 2023, eq. 18-20): a ramp in the rotations during training."""
    check_positive("factor", factor)
    check_positive("original_max_position_embeddings", original_max_position_embeddings)
    _check_ordered("beta_slow", beta_slow, "beta_fast", beta_fast)
    inv_freq = inverse_frequencies(dim, base)
    turns = original_max_position_embeddings / wavelengths(inv_freq)
    if beta_slow == beta_fast:  # a step, as in transformers' Llama 3
        return _blend(inv_freq, factor, (turns > beta_slow).astype(float)), 1.0
    keep = np.clip((turns - beta_slow) / (beta_fast - beta_slow), 0.0, 1.0)
    return _blend(inv_freq, factor, keep), 1.0


def _yarn_paper(
    dim: int, base: float, *, factor: float, attention_factor: float | None = None, **ramp: Any
) -> tuple[np.ndarray, float]:
    """YaRN as in the paper (Peng et al. 2023, eq. 21-22): by parts, and an attention factor."""
    inv_freq, _ = _by_parts(dim, base, factor=factor, **ramp)
    return inv_freq, _attention_factor(attention_factor, _yarn_temperature(factor))


def _yarn(
    dim: int,
    base: float,
    *,
    factor: float,
    original_max_position_embeddings: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    attention_factor: float | None = None,
    mscale: float | None = None,
    mscale_all_dim: float | None = None,
    truncate: bool = True,
) -> tuple[np.ndarray, float]:
    """YaRN as released: a ramp in the pair index, its two ends rounded outwards."""
    check_positive("factor", factor)
    check_positive("original_max_position_embeddings", original_max_position_embeddings)
    # equal values make a ramp from one pair to the next: Kimi K2 has 1 and 1
    _check_ordered("beta_slow", beta_slow, "beta_fast", beta_fast)
    if base <= 1.0:
        raise ValueError(f"base must be > 1 for kind 'yarn', got {base}")
    check_flag("truncate", truncate)

    def pair_with(turns: float) -> float:
        ratio = original_max_position_embeddings / (turns * 2.0 * math.pi)
        return dim * math.log(ratio) / (2.0 * math.log(base))

    low, high = pair_with(beta_fast), pair_with(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    width = high - low if high != low else 0.001  # as the released code avoids 0/0
    keep = 1.0 - np.clip((np.arange(dim // 2) - low) / width, 0.0, 1.0)

    temperature = _yarn_temperature(factor)
    for name, value in (("mscale", mscale), ("mscale_all_dim", mscale_all_dim)):
        if value is not None and check_real(name, value):  # 0 counts as None, as released
            check_positive(name, value)
    if mscale and mscale_all_dim:
        temperature = _yarn_temperature(factor, mscale) / _yarn_temperature(factor, mscale_all_dim)
    inv_freq = _blend(inverse_frequencies(dim, base), factor, keep)
    return inv_freq, _attention_factor(attention_factor, temperature)


def _llama3(
    dim: int, base: float, *, low_freq_factor: float, high_freq_factor: float, **scaling: Any
) -> tuple[np.ndarray, float]:
    """Llama 3's scaling: NTK-by-parts with another ramp, such as from 1 to 4 rotations."""
    _check_ordered("low_freq_factor", low_freq_factor, "high_freq_factor", high_freq_factor)
    return _by_parts(dim, base, beta_fast=high_freq_factor, beta_slow=low_freq_factor, **scaling)


def _longrope(
    dim: int,
    base: float,
    *,
    short_factor: Sequence[float],
    long_factor: Sequence[float],
    original_max_position_embeddings: int,
    max_position_embeddings: int | None = None,
    factor: float | None = None,
    seq_len: int | None = None,
    attention_factor: float | None = None,
) -> tuple[np.ndarray, float]:
    """LongRoPE (Ding et al. 2024): a divisor for each pair, of two lists by sequence length."""
    original = original_max_position_embeddings
    check_positive("original_max_position_embeddings", original)
    if factor is None:
        if max_position_embeddings is None:
            raise TypeError("kind 'longrope' needs factor or max_position_embeddings")
        check_positive("max_position_embeddings", max_position_embeddings)
        factor = max_position_embeddings / original
    check_positive("factor", factor)
    if seq_len is not None:
        check_positive("seq_len", seq_len)
    short = _check_divisors("short_factor", short_factor, dim)
    long = _check_divisors("long_factor", long_factor, dim)
    divisors = long if seq_len is not None and seq_len > original else short
    temperature = 1.0
    if factor > 1.0:
        if original <= 1:
            raise ValueError(f"original_max_position_embeddings must be > 1, got {original}")
        temperature = math.sqrt(1.0 + math.log(factor) / math.log(original))
    inv_freq = inverse_frequencies(dim, base) / divisors
    return inv_freq, _attention_factor(attention_factor, temperature)


def _proportional(
    dim: int, base: float, *, partial_rotary_factor: float = 1.0, factor: float = 1.0
) -> tuple[np.ndarray, float]:
    """Proportional RoPE (p-RoPE): the lowest frequencies are set to 0."""
    check_positive("factor", factor)
    _check_fraction("partial_rotary_factor", partial_rotary_factor)
    rotated = int(partial_rotary_factor * dim // 2)
    if not rotated:
        raise ValueError(
            "partial_rotary_factor must leave at least one rotated pair, "
            f"got {partial_rotary_factor} x {dim}"
        )
    inv_freq = inverse_frequencies(dim, base) / factor
    inv_freq[rotated:] = 0.0
    return inv_freq, 1.0


def _monotone(
    dim: int, base: float, *, max_positions: int, turns: float = 0.5
) -> tuple[np.ndarray, float]:
    """He & Xu 2023, reconstructed: pair 0 rotates ``turns`` times in ``max_positions``."""
    check_positive("max_positions", max_positions)
    check_positive("turns", turns)
    return inverse_frequencies(dim, base) * (2.0 * math.pi * turns / max_positions), 1.0


_RULES = (_default, _linear, _ntk, _dynamic, _by_parts, _yarn_paper, _yarn, _llama3, _longrope)
_KINDS: dict[str, Callable[..., tuple[np.ndarray, float]]] = {
    rule.__name__[1:]: rule for rule in (*_RULES, _proportional, _monotone)
}


def _blend(inv_freq: np.ndarray, factor: float, keep: np.ndarray) -> np.ndarray:
    """Return frequencies that are unchanged where ``keep`` is 1, over ``factor`` where it is 0."""
    return (1.0 - keep) * inv_freq / factor + keep * inv_freq


def _yarn_temperature(factor: float, mscale: float = 1.0) -> float:
    """Return ``sqrt(1/t) = 0.1 mscale ln(factor) + 1`` (Peng et al. 2023, eq. 22)."""
    return 1.0 if factor <= 1.0 else 0.1 * mscale * math.log(factor) + 1.0


def _attention_factor(value: float | None, default: float) -> float:
    """Return ``value`` once checked, or the default."""
    if value is None:
        return default
    check_positive("attention_factor", value)
    return float(value)


def _partial_width(dim: int, fraction: float) -> int:
    """Return the rotated width ``int(dim * fraction)``; raise unless it is positive and even."""
    _check_fraction("partial_rotary_factor", fraction)
    width = int(dim * float(fraction))
    if width <= 0 or width % 2:
        raise ValueError(
            "partial_rotary_factor must leave a positive even rotated width, "
            f"got {fraction} x {dim} -> {width}"
        )
    return width


def _check_fraction(name: str, value: float) -> None:
    """Raise unless ``0 < value <= 1``."""
    check_positive(name, value)
    if value > 1:
        raise ValueError(f"{name} must be in (0, 1], got {value}")


def _check_ordered(low_name: str, low: float, high_name: str, high: float) -> None:
    """Raise unless both are positive and ``low <= high``."""
    check_positive(low_name, low)
    check_positive(high_name, high)
    if low > high:
        raise ValueError(f"{low_name} must be <= {high_name}, got {low} and {high}")


def _check_divisors(name: str, values: Sequence[float], dim: int) -> np.ndarray:
    """Return ``values`` as float64 if there is one finite positive number per pair."""
    divisors = real_numbers(name, values)
    if divisors.shape != (dim // 2,):
        raise ValueError(f"{name} must have shape ({dim // 2},), got {divisors.shape}")
    if not (np.isfinite(divisors).all() and (divisors > 0).all()):
        raise ValueError(f"{name} must be finite and > 0 everywhere, got {values!r}")
    return divisors
