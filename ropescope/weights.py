"""Which layout were these weights trained in? Read from a query or key projection alone.

Training leaves rows of similar length where channels have similar work: the two channels of a pair,
and pairs of neighbouring frequencies. So each layout says which rows' lengths should resemble one
another, and the layout that explains the lengths best is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rope_minimal.checks import check_count

__all__ = ["LayoutEvidence", "layout_of_weights"]

LIMIT = 8.0
"""Nats by which the best layout must explain the lengths better than the next, and than none.

Of 720 heads of a released model (SmolLM2-135M, in either layout) 255 are named and none wrongly, of
its 120 layers' projections 112 and none wrongly; 300 untrained ones reach 6 (tests).
"""

Order = tuple[np.ndarray, np.ndarray]


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
    weight: Any, num_heads: int, *, rotated: int | None = None,
    orders: Mapping[str, Sequence[int]] | None = None,
) -> LayoutEvidence:  # fmt: skip
    """Tell which layout a query or key projection was trained in, without running the model.

    Parameters
    ----------
    weight
        W_q or W_k, shape (num_heads * head_dim, in), or several of one model, (layers, num_heads *
        head_dim, in); a bias has ``in`` 1. NumPy array, or torch tensor on the CPU.
    num_heads
        Heads of this projection (for keys, the key heads).
    rotated
        Width of a head that is rotated, its first channels; all of it unless given.
    orders
        Further hypotheses: for each name, where the channels of a head stand that was trained
        half-split, as `rope_minimal.permute_qk` would have put them: ``order[i]`` is the channel
        that stands in row i.

    Returns
    -------
    LayoutEvidence

    Raises
    ------
    TypeError, ValueError
        Where the shapes do not fit, a number is not finite, or a row is zero.

    Notes
    -----
    The logarithms of a head's row lengths are a Gaussian process over the pairs' indices: a part
    that both channels of a pair share, a part of each channel's own series, both smooth in the
    index, and noise. Scale and mean are free for each head; the shares of the parts and the reach
    of the smoothness are those that fit best under each layout. Heads count as independent. Weights
    that were never trained, or whose rows were normalised, decide nothing. A norm with weights
    between projection and rotation changes no row's length: multiply the rows by its weights, if
    they differ, first.
    """
    lengths = _log_lengths(weight, num_heads)
    width = lengths.shape[1] if rotated is None else rotated
    check_count("rotated", width)
    if width % 2 or not 8 <= width <= lengths.shape[1]:
        raise ValueError(
            "rotated must be even, at least 8 and at most head_dim = "
            f"{lengths.shape[1]}, got {width}"
        )
    lengths = lengths[:, :width] - lengths[:, :width].mean(1, keepdims=True)
    lengths = lengths[np.ptp(lengths, axis=1) > 1e-9]  # heads of rows of one length say nothing
    places = _places(width)
    for name, order in (orders or {}).items():
        if sorted(order) != list(range(width)):
            raise ValueError(f"orders[{name!r}] must be a permutation of {width} channels")
        half = places["half-split"]
        places[name] = half[0][list(order)], half[1][list(order)]
    none = _log_likelihood(lengths, np.eye(width))  # which is its own Cholesky factor
    found = {name: _best(lengths, place) - none for name, place in places.items()}
    first, second = sorted([*found.values(), 0.0])[-1:-3:-1]
    name = max(found, key=lambda each: found[each])
    decided = found[name] > 0 and first - second > LIMIT
    return LayoutEvidence(name if decided else None, first - second, found)


def _log_lengths(weight: Any, num_heads: int) -> np.ndarray:
    """Return the logarithms of the row lengths, one row for each head, (heads, head_dim)."""
    check_count("num_heads", num_heads)
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


def _places(width: int) -> dict[str, Order]:
    """Return for each layout the pair that a channel belongs to, and which of its two it is."""
    i = np.arange(width)
    return {"interleaved": (i // 2, i % 2), "half-split": (i % (width // 2), i // (width // 2))}


def _log_likelihood(lengths: np.ndarray, factor: np.ndarray) -> float:
    """Return the log likelihood of all heads, each with the mean and scale that fit it best.

    ``factor`` is the Cholesky factor of their covariance.
    """
    white = np.linalg.solve(factor, lengths.T)
    one = np.linalg.solve(factor, np.ones(len(factor)))
    white -= np.outer(one, one @ white / (one @ one))  # the mean is free
    n = len(factor) - 1
    determinant = np.log(np.diag(factor)).sum() + 0.5 * np.log(one @ one)
    return float((-0.5 * n * np.log((white**2).sum(0) / n) - determinant).sum())


def _best(lengths: np.ndarray, place: Order) -> float:
    pair, channel = (tuple(each.tolist()) for each in place)
    return max(_log_likelihood(lengths, factor) for factor in _factors(pair, channel))


@lru_cache(maxsize=16)
def _factors(pair: tuple[int, ...], channel: tuple[int, ...]) -> list[np.ndarray]:
    """Return Cholesky factors of the covariances that are tried: shares of parts, and reach."""
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
                    found.append(np.linalg.cholesky(covariance + noise * np.eye(len(index))))
    return found
