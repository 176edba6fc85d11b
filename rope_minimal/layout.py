"""Layouts: which two channels of a head form a pair.

*Interleaved* (RoFormer, Meta's LLaMA, GPT-J) pairs the channels ``(2i, 2i+1)``; *half-split*
(Hugging Face, GPT-NeoX) pairs ``(i, i + dim/2)``. One is a fixed permutation of the other.
The functions take NumPy arrays and torch tensors and return the same kind.
"""

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .checks import check_count, check_dim, check_flag

__all__ = ["permute_qk", "to_half", "to_interleaved"]

if TYPE_CHECKING:
    from torch import Tensor

Array = TypeVar("Array", np.ndarray, "Tensor")


def to_half(x: Array) -> Array:
    """Reorder the last axis from interleaved to half-split: even channels first, then odd ones.

    Parameters
    ----------
    x
        Shape (..., D), D even, in the interleaved layout.

    Returns
    -------
    array or tensor of the shape of ``x``
        ``y[..., i] = x[..., 2i]`` and ``y[..., i + D/2] = x[..., 2i + 1]``.
    """
    *lead, width = _shape(x)
    return x.reshape(*lead, width // 2, 2).swapaxes(-1, -2).reshape(x.shape)


def to_interleaved(x: Array) -> Array:
    """Reorder the last axis from half-split to interleaved; the inverse of `to_half`.

    Parameters
    ----------
    x
        Shape (..., D), D even, in the half-split layout.

    Returns
    -------
    array or tensor of the shape of ``x``
        ``y[..., 2i] = x[..., i]`` and ``y[..., 2i + 1] = x[..., i + D/2]``.
    """
    *lead, width = _shape(x)
    return x.reshape(*lead, 2, width // 2).swapaxes(-1, -2).reshape(x.shape)


def permute_qk(weight: Array, num_heads: int, *, inverse: bool = False) -> Array:
    """Reorder the rows of a query or key projection from interleaved to half-split heads.

    A model trained with interleaved pairs gives the same attention scores when both ``W_q`` and
    ``W_k`` are permuted and its heads are rotated half-split. ``W_v`` and ``W_o`` do not change.

    Parameters
    ----------
    weight
        Projection weight of shape (num_heads * head_dim, in_features), or its bias of shape
        (num_heads * head_dim,). Every head is rotated over its whole width.
    num_heads
        Heads in ``weight``: for ``W_k`` under grouped-query attention, the key heads.
    inverse
        From half-split to interleaved instead.

    Returns
    -------
    array or tensor of the shape of ``weight``
        The same rows, `to_half` (or `to_interleaved`) applied within each head.

    Notes
    -----
    Converters of LLaMA checkpoints to Hugging Face's layout use the same permutation.
    """
    shape = _shape(weight, "weight", even=False)
    if len(shape) > 2:
        raise ValueError(f"weight must be 1-D or 2-D, got shape {shape}")
    num_heads = check_count("num_heads", num_heads)
    check_flag("inverse", inverse)
    rows, columns = shape[0], shape[1:]
    if rows == 0 or rows % (2 * num_heads):
        raise ValueError(
            f"weight must split into num_heads = {num_heads} heads of even width, got {rows} rows"
        )
    half = rows // num_heads // 2
    pairs = (2, half) if inverse else (half, 2)
    return weight.reshape(num_heads, *pairs, *columns).swapaxes(1, 2).reshape(shape)


def _shape(x: Array, name: str = "x", even: bool = True) -> tuple[int, ...]:
    """Return the shape of ``x``; raise unless it is an array whose last axis can hold pairs."""
    if not hasattr(x, "swapaxes"):
        raise TypeError(f"{name} must be a NumPy array or a torch tensor, got {type(x).__name__}")
    if x.ndim == 0:
        raise ValueError(f"{name} must have at least 1 dimension, got shape ()")
    if even:
        check_dim(x.shape[-1], f"{name}.shape[-1]")
    return tuple(x.shape)
