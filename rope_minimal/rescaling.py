"""Published rescalings of the inverse frequencies, for contexts longer than the training.

One small function for each, all behind one door, `rescaled_frequencies`.
"""

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .checks import (
    check_dim,
    check_flag,
    check_parameter_names,
    check_positive,
    check_real,
    real_numbers,
)
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
        What the kind needs, by Hugging Face's names (required ones in **bold**). Every kind but
        ``proportional`` also takes ``partial_rotary_factor`` (default 1.0): only the first
        ``int(dim * partial_rotary_factor)`` channels are rotated, and the series is built for that
        smaller width (the classic partial rotary embedding of GPT-J and GPT-NeoX).

        ============== ============================================================================
        kind           parameters
        ============== ============================================================================
        default        none
        linear         **factor** (position interpolation: every pair slower by the same factor)
        ntk            **factor** (a larger base: the slowest pair slower by exactly the factor)
        dynamic        **factor**, **max_position_embeddings**, seq_len (the base grows with it)
        by_parts       **factor**, **original_max_position_embeddings**, beta_fast=32, beta_slow=1
        yarn_paper     as by_parts, attention_factor
        yarn           as yarn_paper, mscale, mscale_all_dim, truncate=True (the ramp of the code)
        llama3         **factor**, **low_freq_factor**, **high_freq_factor**,
                       **original_max_position_embeddings**
        longrope       **short_factor**, **long_factor** (one number per pair),
                       **original_max_position_embeddings**, max_position_embeddings, factor,
                       seq_len, attention_factor
        proportional   partial_rotary_factor=1.0, factor=1.0 (the slow pairs stand still)
        monotone       **max_positions**, turns=0.5 (what the fastest pair makes in all)
        ============== ============================================================================

    Returns
    -------
    inv_freq : ndarray of shape (rotated/2,), float64
        Radians per position, fastest pair first; ``rotated`` is ``dim`` unless
        ``partial_rotary_factor`` says otherwise.
    attention_factor : float
        What cos and sin are both multiplied by, so that scores grow by its square.

    Raises
    ------
    ValueError
        If the kind is unknown or a value is out of its range.
    TypeError
        If a parameter is missing, unknown for this kind, or not a number.

    Notes
    -----
    Chen et al. 2023 (linear); bloc97 2023 (ntk); emozilla 2023 (dynamic); Peng et al. 2023
    (by_parts, yarn); Llama 3 (llama3); Ding et al. 2024 (longrope); Gemma 4 (proportional); He & Xu
    2023 (monotone, reconstructed: their formula did not survive translation).
    """
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(sorted(_KINDS))}; got {kind!r}")
    check_dim(dim)
    check_positive("base", base)
    rule = _KINDS[kind]
    check_parameter_names(kind, rule, parameters, also="partial_rotary_factor")
    if kind != "proportional":
        dim = _partial_width(dim, parameters.pop("partial_rotary_factor", 1.0))
    try:
        plain = {  # a Fraction or a NumPy number is computed with as a float
            name: float(value)
            if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)
            else value
            for name, value in parameters.items()
        }
        with np.errstate(over="ignore"):
            inv_freq, attention_factor = rule(dim, float(base), **plain)
    except OverflowError:
        inv_freq, attention_factor = np.array(np.inf), np.inf
    if not (np.isfinite(inv_freq).all() and math.isfinite(attention_factor)):
        raise ValueError(f"parameters must give finite frequencies, got {parameters}")
    return inv_freq, attention_factor


def _default(dim: int, base: float) -> tuple[np.ndarray, float]:
    """Plain series of RoFormer."""
    return inverse_frequencies(dim, base), 1.0


def _linear(dim: int, base: float, *, factor: float) -> tuple[np.ndarray, float]:
    """Position interpolation (Chen et al. 2023): positions, and so all angles, shrink alike."""
    check_positive("factor", factor)
    return inverse_frequencies(dim, base) / factor, 1.0


def _ntk(dim: int, base: float, *, factor: float) -> tuple[np.ndarray, float]:
    """NTK-aware scaling (bloc97 2023): the base grows by ``factor**(dim / (dim-2))``.

    So pair 0 keeps its speed, and the last is slower by exactly ``factor``.
    """
    check_positive("factor", factor)
    if dim <= 2:
        raise ValueError(f"dim must be at least 4 to stretch the base, got {dim}")
    slower = float(factor) ** (-2.0 * np.arange(dim // 2) / (dim - 2))
    return inverse_frequencies(dim, base) * slower, 1.0


def _dynamic(
    dim: int,
    base: float,
    *,
    factor: float,
    max_position_embeddings: int,
    seq_len: int | None = None,
) -> tuple[np.ndarray, float]:
    """Dynamic NTK (emozilla 2023): the stretch grows with the sequence."""
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
    """NTK-by-parts (Peng et al. 2023, eq. 18-20): a ramp in the turns made during training."""
    check_positive("factor", factor)
    check_positive("original_max_position_embeddings", original_max_position_embeddings)
    _check_ordered("beta_slow", beta_slow, "beta_fast", beta_fast)
    inv_freq = inverse_frequencies(dim, base)
    turns = original_max_position_embeddings / wavelengths(inv_freq)
    if beta_slow == beta_fast:  # a step, as transformers makes Llama 3's
        return _blend(inv_freq, factor, (turns > beta_slow).astype(float)), 1.0
    keep = np.clip((turns - beta_slow) / (beta_fast - beta_slow), 0.0, 1.0)
    return _blend(inv_freq, factor, keep), 1.0


def _yarn_paper(
    dim: int,
    base: float,
    *,
    factor: float,
    original_max_position_embeddings: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    attention_factor: float | None = None,
) -> tuple[np.ndarray, float]:
    """YaRN as printed (Peng et al. 2023, eq. 21-22): by parts, and a temperature on the scores."""
    inv_freq, _ = _by_parts(
        dim,
        base,
        factor=factor,
        original_max_position_embeddings=original_max_position_embeddings,
        beta_fast=beta_fast,
        beta_slow=beta_slow,
    )
    return inv_freq, _checked_or_default(
        "attention_factor", attention_factor, _yarn_temperature(factor)
    )


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
    """YaRN as released: the ramp runs in the pair index, between the two knees rounded outwards."""
    check_positive("factor", factor)
    check_positive("original_max_position_embeddings", original_max_position_embeddings)
    # equal knees make a ramp from one pair to the next: Kimi K2 has 1 and 1
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
    width = high - low if high != low else 0.001  # the released code's guard against 0/0
    keep = 1.0 - np.clip((np.arange(dim // 2) - low) / width, 0.0, 1.0)

    temperature = _yarn_temperature(factor)
    for name, value in (("mscale", mscale), ("mscale_all_dim", mscale_all_dim)):
        if value is not None and check_real(name, value):  # 0 is none, as in the released code
            check_positive(name, value)
    if mscale and mscale_all_dim:
        temperature = _yarn_temperature(factor, mscale) / _yarn_temperature(factor, mscale_all_dim)
    attention = _checked_or_default("attention_factor", attention_factor, temperature)
    return _blend(inverse_frequencies(dim, base), factor, keep), attention


def _llama3(
    dim: int,
    base: float,
    *,
    factor: float,
    low_freq_factor: float,
    high_freq_factor: float,
    original_max_position_embeddings: int,
) -> tuple[np.ndarray, float]:
    """Llama 3's scaling. It is NTK-by-parts with other knees such as 1 and 4 turns."""
    _check_ordered("low_freq_factor", low_freq_factor, "high_freq_factor", high_freq_factor)
    return _by_parts(
        dim,
        base,
        factor=factor,
        original_max_position_embeddings=original_max_position_embeddings,
        beta_fast=high_freq_factor,
        beta_slow=low_freq_factor,
    )


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
    """LongRoPE (Ding et al. 2024): one searched divisor per pair, another list when it is long."""
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
    attention = _checked_or_default("attention_factor", attention_factor, temperature)
    return inverse_frequencies(dim, base) / divisors, attention


def _proportional(
    dim: int, base: float, *, partial_rotary_factor: float = 1.0, factor: float = 1.0
) -> tuple[np.ndarray, float]:
    """Proportional RoPE (p-RoPE): the fast pairs of the full series turn, the slow ones stand."""
    check_positive("factor", factor)
    _check_fraction("partial_rotary_factor", partial_rotary_factor)
    turning = int(partial_rotary_factor * dim // 2)
    if not turning:
        raise ValueError(
            "partial_rotary_factor must leave at least one pair that turns, "
            f"got {partial_rotary_factor} x {dim}"
        )
    inv_freq = inverse_frequencies(dim, base) / factor
    inv_freq[turning:] = 0.0
    return inv_freq, 1.0


def _monotone(
    dim: int, base: float, *, max_positions: int, turns: float = 0.5
) -> tuple[np.ndarray, float]:
    """He & Xu 2023, reconstructed: no pair makes more than ``turns`` turns in ``max_positions``."""
    check_positive("max_positions", max_positions)
    check_positive("turns", turns)
    return inverse_frequencies(dim, base) * (2.0 * math.pi * turns / max_positions), 1.0


_KINDS: dict[str, Callable[..., tuple[np.ndarray, float]]] = {
    "default": _default,
    "linear": _linear,
    "ntk": _ntk,
    "dynamic": _dynamic,
    "by_parts": _by_parts,
    "yarn_paper": _yarn_paper,
    "yarn": _yarn,
    "llama3": _llama3,
    "longrope": _longrope,
    "proportional": _proportional,
    "monotone": _monotone,
}


def _blend(inv_freq: np.ndarray, factor: float, keep: np.ndarray) -> np.ndarray:
    """Mix interpolated and untouched frequencies: ``keep`` is 1 where a pair stays as trained."""
    return (1.0 - keep) * inv_freq / factor + keep * inv_freq


def _yarn_temperature(factor: float, mscale: float = 1.0) -> float:
    """Return ``sqrt(1/t) = 0.1 mscale ln(factor) + 1`` (Peng et al. 2023, eq. 22)."""
    return 1.0 if factor <= 1.0 else 0.1 * mscale * math.log(factor) + 1.0


def _checked_or_default(name: str, value: float | None, default: float) -> float:
    """Return ``value`` once checked, or ``default`` where it is None."""
    if value is None:
        return float(default)
    check_positive(name, value)
    return float(value)


def _partial_width(dim: int, fraction: float) -> int:
    """Return the rotated width ``int(dim * fraction)`` of a partial rotary embedding."""
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
