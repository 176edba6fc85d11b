"""Which layout were these weights trained in? Read from a query or key projection alone.

Training leaves rows of similar length where channels turn at similar speed: the two channels of a
pair, and pairs of neighbouring frequencies. So each layout says which rows' lengths should resemble
one another, and the layout that explains the lengths best is named.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rope_minimal import permute_qk
from rope_minimal.checks import check_count

__all__ = ["LayoutEvidence", "layout_of_weights"]

LIMIT = 8.0
"""Nats by which the best layout must explain the lengths better than the next, and than none.

Of 720 heads of a released model (SmolLM2-135M, in either layout) 255 are named and none wrongly, of
its 120 layers' projections 112 and none wrongly, and of 2,000 untrained heads none (tests).
"""

Place = tuple[np.ndarray, np.ndarray]
Whitened = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class LayoutEvidence:
    """How well each layout explains the lengths of a projection's rows.

    Attributes
    ----------
    layout
        The layout's name, or None where the evidence does not decide.
    margin
        By how much the best layout's log likelihood exceeds that of the next, or of rows whose
        lengths resemble one another nowhere, in nats.
    log_likelihood
        Of each layout, above that of such rows, in nats, summed over heads.
    """

    layout: str | None
    margin: float
    log_likelihood: Mapping[str, float]


def layout_of_weights(
    weight: Any, num_heads: int, *, rotated: int | None = None, query_heads: int | None = None
) -> LayoutEvidence:
    """Tell which layout a query or key projection was trained in, without running the model.

    Parameters
    ----------
    weight
        W_q or W_k, shape (num_heads * head_dim, in), or several of one model, (layers, num_heads *
        head_dim, in). NumPy array, or torch tensor. A bias, or the gains of a norm that queries or
        keys pass after the projection, is a weight with ``in`` 1.
    num_heads
        Heads of this projection (for keys, the key heads).
    rotated
        Width of a head that is rotated, its first channels; all of it unless given.
    query_heads
        For keys that several query heads share: the number of query heads. A converter may have
        permuted the rows as if the keys had so many, and only with this number is that asked, too.

    Returns
    -------
    LayoutEvidence
        Its layout is ``interleaved``, ``half-split``, ``interleaved, permuted as N heads`` (to
        half-split, by N = ``query_heads`` heads), ``half-split, permuted as N heads`` (the other
        way), or None.

    Raises
    ------
    TypeError, ValueError
        Where the shapes do not fit, a number is not finite, or a row is zero.

    Notes
    -----
    The logarithms of a head's row lengths are a Gaussian process over the pairs' indices: a part
    that both channels of a pair share, a part of each channel's own series, both smooth in the
    index, and noise. Scale and mean are free for each head; the shares of the parts and the reach
    of the smoothness are those that fit best under each layout. Heads count as independent.

    All heads are taken to be in one layout, and one of those that are asked for: ask queries and
    keys apart, and layer by layer, before you join them. Rows that were never trained, or made
    equally long, decide nothing; neither do most single heads, heads of eight pairs, and the
    biases of small models. Gains alone decide less often than rows.
    """
    lengths = _log_lengths(weight, num_heads)
    head_dim = lengths.shape[1]
    width = head_dim if rotated is None else rotated
    check_count("rotated", width)
    if width % 2 or not 8 <= width <= head_dim:
        raise ValueError(
            f"rotated must be even, at least 8 and at most head_dim = {head_dim}, got {width}"
        )
    places = _places(width)
    if query_heads is not None:
        check_count("query_heads", query_heads)
        if query_heads % num_heads or width < head_dim:
            raise ValueError(
                f"query_heads must be a multiple of num_heads = {num_heads}, and heads rotated "
                f"whole, got {query_heads} and {width} of {head_dim} channels"
            )
        places |= _mispermuted(places, query_heads, num_heads)
    lengths = lengths[:, :width] - lengths[:, :width].mean(1, keepdims=True)
    lengths = lengths[np.ptp(lengths, axis=1) > 1e-9]  # heads of rows of one length say nothing
    none = _best(lengths, _stacked([_whitened(np.eye(width))]))
    found = {
        name: _best(lengths, _covariances(*(tuple(each.tolist()) for each in place))) - none
        for name, place in places.items()
    }
    first, second = sorted([*found.values(), 0.0])[-1:-3:-1]
    name = max(found, key=lambda each: found[each])
    decided = found[name] > 0 and first - second > LIMIT
    return LayoutEvidence(name if decided else None, first - second, found)


def _log_lengths(weight: Any, num_heads: int) -> np.ndarray:
    """Return the logarithms of the row lengths, one row for each head, (heads, head_dim)."""
    check_count("num_heads", num_heads)
    if hasattr(weight, "detach"):  # a tensor, perhaps a parameter in bfloat16
        weight = weight.detach().double().cpu()
    rows = np.asarray(weight, dtype=np.float64)
    if rows.ndim not in (2, 3) or rows.shape[-2] % num_heads:
        raise ValueError(
            f"weight must have shape (num_heads * head_dim, in), got {rows.shape} for "
            f"{num_heads} heads"
        )
    lengths = np.linalg.norm(rows, axis=-1).reshape(-1, rows.shape[-2] // num_heads)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise ValueError("weight must be finite, and no row zero")
    return np.log(lengths)


def _places(width: int) -> dict[str, Place]:
    """Return for each layout the pair that a channel belongs to, and which of its two it is."""
    i = np.arange(width)
    return {"interleaved": (i // 2, i % 2), "half-split": (i % (width // 2), i // (width // 2))}


def _mispermuted(places: dict[str, Place], wrong: int, num_heads: int) -> dict[str, Place]:
    """Return the places of channels that a converter permuted as ``wrong`` heads, to either layout.

    Empty where ``wrong`` is ``num_heads``, or the rows do not split into so many heads of whole
    pairs: then no converter can permute them so.
    """
    width, ratio = len(places["interleaved"][0]), wrong // num_heads
    if ratio == 1 or width % (2 * ratio):
        return {}
    found = {}
    for name, inverse in (("interleaved", False), ("half-split", True)):
        order = permute_qk(np.arange(width), ratio, inverse=inverse)
        pair, channel = places[name]
        found[f"{name}, permuted as {wrong} heads"] = pair[order], channel[order]
    return found


def _best(lengths: np.ndarray, whitened: Whitened) -> float:
    """Return the log likelihood of all heads under the covariance that explains them best.

    Each head has the mean and the scale that fit it best.
    """
    white, determinant = whitened
    n = lengths.shape[1] - 1
    squares = ((white @ lengths.T) ** 2).sum(1)
    return float((-0.5 * n * np.log(squares / n) - determinant[:, None]).sum(1).max())


def _whitened(covariance: np.ndarray) -> tuple[np.ndarray, float]:
    """Return what makes rows of a covariance independent and takes their mean out, and its cost.

    The cost is half the logarithm of the determinant, with a free mean.
    """
    factor = np.linalg.cholesky(covariance)
    white = np.linalg.inv(factor)
    one = white.sum(1)
    cost = np.log(np.diag(factor)).sum() + 0.5 * np.log(one @ one)
    return white - np.outer(one, one @ white / (one @ one)), cost


def _stacked(found: list[tuple[np.ndarray, float]]) -> Whitened:
    return np.stack([white for white, _ in found]), np.array([cost for _, cost in found])


@lru_cache(maxsize=16)
def _covariances(pair: tuple[int, ...], channel: tuple[int, ...]) -> Whitened:
    """Return `_whitened` of the covariances that are tried: shares of parts, and reach."""
    index, which = np.array(pair), np.array(channel)
    apart = np.subtract.outer(index, index)
    same_pair, same_series = apart == 0, np.equal.outer(which, which)
    found = []
    for reach in (1.5, 5.0):
        smooth = np.exp(-0.5 * (apart / reach) ** 2)
        for noise in (0.05, 0.2, 0.5, 0.8):
            for own in (0.0, 0.2, 0.5):
                for rough in (0.0, 0.5):
                    shared = (1 - own) * ((1 - rough) * smooth + rough * same_pair)
                    covariance = (1 - noise) * (shared + own * smooth * same_series)
                    found.append(_whitened(covariance + noise * np.eye(len(index))))
    return _stacked(found)
