"""Rotary position embedding in torch: the rotation, its table, and a module that holds one.

Positions and inverse frequencies give angles, angles give ``cos`` and ``sin``, and `apply_rope`
maps each pair ``(a, b)`` of channels to ``(a cos - b sin, b cos + a sin)``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from . import fast
from .checks import (
    check_count,
    check_dim,
    check_flag,
    check_rotation,
    check_x,
    integers,
)
from .frequencies import inverse_frequencies

__all__ = ["RotaryEmbedding", "apply_rope", "rope_table"]


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool = False) -> Tensor:
    """Rotate the pairs of ``x`` by the angles whose cosines and sines are given.

    Parameters
    ----------
    x
        Floating point, shape (..., T, D). It is not changed in place.
    cos, sin
        Shape (T, R/2), or with as many dimensions as ``x`` and sizes that broadcast to
        (..., T, R/2). The first R channels of ``x`` are rotated, the other D - R pass through.
    interleaved
        Pair channels ``(2i, 2i+1)`` (RoFormer, Meta, GPT-J) instead of ``(i, i + R/2)``
        (Hugging Face, GPT-NeoX).

    Returns
    -------
    Tensor of the shape and type of ``x``
        16-bit input is rotated in float32 and rounded once.

    Notes
    -----
    Su et al. 2021 (RoFormer), equation 34. Compiled code and calls that differentiate ``cos`` or
    ``sin`` run `formula`; other eager calls run a faster form of it (`rope_minimal.fast`).
    """
    check_rotation(x, cos, sin)
    check_flag("interleaved", interleaved)
    return _rotate(x, cos, sin, interleaved)


def formula(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Rotate as the equation is written, without checks; one loop once it is compiled."""
    dtype, width = torch.promote_types(x.dtype, torch.float32), 2 * cos.shape[-1]
    rotated, cos, sin = x[..., :width].to(dtype), cos.to(dtype), sin.to(dtype)
    a, b = torch.unflatten(rotated, -1, (-1, 2)).unbind(-1) if interleaved else rotated.chunk(2, -1)
    pair = a * cos - b * sin, b * cos + a * sin
    if interleaved:
        y = torch.stack(pair, dim=-1).flatten(-2).to(x.dtype)
    else:
        y = torch.cat([half.to(x.dtype) for half in pair], dim=-1)
    return torch.cat((y, x[..., width:]), dim=-1) if width < x.shape[-1] else y


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Rotate without checks: by a faster form where an eager call allows it, else by the formula.

    The faster forms are not traced, not transformed by torch.func and not differentiated forward;
    backward they have the gradient of ``x`` alone.
    """
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined]
        return formula(x, cos, sin, interleaved)
    functorch, backward = torch._C._functorch, torch.is_grad_enabled()
    transformed = functorch.get_dynamic_layer_stack_depth() > 0 or forward_ad._current_level >= 0
    if transformed or (backward and (cos.requires_grad or sin.requires_grad)):
        return formula(x, cos, sin, interleaved)
    if backward and x.requires_grad:
        return _Rotation.apply(x, cos, sin, interleaved)
    return fast.rotate(x, cos, sin, interleaved)


class _Rotation(torch.autograd.Function):
    """A faster form with the gradient of ``x``: the transposed rotation, which is by ``-sin``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
        ctx.save_for_backward(cos, sin)
        ctx.interleaved = interleaved
        y = fast.rotate(x, cos, sin, interleaved)
        # interleaved, y is a view of complex numbers, and autograd allows no in-place change of a
        # view that a Function returns: return a tensor of its own over the same memory
        return y.new_empty(0).set_(y) if interleaved else y  # type: ignore[call-overload]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        cos, sin = ctx.saved_tensors
        return _rotate(grad, cos, -sin, ctx.interleaved), None, None, None


def rope_table(
    positions: Tensor | np.ndarray | Sequence[Any],
    dim: int,
    base: float = 10000.0,
    *,
    inv_freq: Tensor | np.ndarray | Sequence[Any] | None = None,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Return the cosine and the sine of every angle ``position * theta_i``.

    Parameters
    ----------
    positions
        Integers of shape (..., T). With wave vectors: integers, float32 or float64 of shape
        (..., T, A).
    dim
        Rotated width of one head, a positive even integer.
    base
        Base of the inverse frequencies; unused where ``inv_freq`` is given.
    inv_freq
        Inverse frequencies of shape (dim/2,), in radians per position; or, for positions on A axes,
        wave vectors of shape (A, dim/2), one row for each axis: an angle is then the dot product
        of a position and a wave vector (`rope_minimal.wave_vectors`).
    dtype
        Floating-point type of the table.

    Returns
    -------
    cos, sin : Tensor, each of shape (..., T, dim/2)
        On the device of ``positions``. Angles are float64: one of ``a`` radians is right to about
        ``a * 2**-53``.
    """
    theta = _frequencies(dim, base, inv_freq)
    positions = _positions(positions, theta)
    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(f"dtype must be a floating-point torch.dtype, got {dtype!r}")
    # Apple's GPUs have no float64: their table is computed on the CPU and moved.
    place = "cpu" if positions.device.type == "mps" else positions.device
    # An angle of 100,000 radians leaves float32 some 0.008 radian steps, and bfloat16 cannot even
    # hold the integer 257. So angles are float64, and rounding comes after cos and sin.
    by_axis = positions.to(place, torch.float64).unsqueeze(-1) * theta.to(place)
    angle = by_axis.sum(dim=-2)
    return angle.cos().to(positions.device, dtype), angle.sin().to(positions.device, dtype)


def _frequencies(dim: int, base: float, inv_freq: Any) -> Tensor:
    """Return the inverse frequencies (dim/2,) or wave vectors (A, dim/2) in float64."""
    if inv_freq is None:
        inv_freq = inverse_frequencies(dim, base)
    if not isinstance(inv_freq, Tensor):
        inv_freq = torch.tensor(inv_freq, dtype=torch.float64, device="cpu")
    shape, pairs = tuple(inv_freq.shape), check_dim(dim) // 2
    if shape[-1:] != (pairs,) or len(shape) > 2 or 0 in shape:
        raise ValueError(
            f"inv_freq must have shape (dim/2,) = ({pairs},) or (A, dim/2), got {shape}"
        )
    return inv_freq.to(torch.float64)


def _positions(positions: Any, theta: Tensor) -> Tensor:
    """Return the positions with their axes last, (..., T, A); A = 1 for inverse frequencies."""
    if theta.ndim == 1:
        positions = integers("positions", positions)
        if positions.ndim == 0:
            raise ValueError("positions must have at least 1 dimension (..., T), got shape ()")
        return positions.unsqueeze(-1)
    if not isinstance(positions, Tensor):
        positions = torch.tensor(positions, dtype=torch.float64)
    if positions.dtype in (torch.bfloat16, torch.float16):
        raise TypeError(f"positions must be integers, float32 or float64, got {positions.dtype}")
    if positions.ndim < 2 or positions.shape[-1] != len(theta):
        raise ValueError(
            f"positions must have shape (..., T, {len(theta)}), as inv_freq has {len(theta)} axes, "
            f"got {tuple(positions.shape)}"
        )
    return positions


class RotaryEmbedding(nn.Module):
    """Rotate queries or keys by their positions, with a table of cosines and sines.

    Parameters
    ----------
    dim
        Rotated width of one head, a positive even integer.
    max_seq_len
        Rows of the table: positions 0 to ``max_seq_len - 1`` can be rotated.
    base
        Base of the inverse frequencies.
    interleaved
        Pair channels ``(2i, 2i+1)`` instead of ``(i, i + dim/2)``.

    Attributes
    ----------
    cos, sin : Tensor, each of shape (max_seq_len, dim/2)
        Buffers, float32 (float64 after ``.double()``, or where float64 is torch's default type).
        They are not in the state dict, and are computed again whenever the module is moved or cast:
        ``.half()``, ``.bfloat16()`` and ``to_empty()`` leave them exact.

    Notes
    -----
    The table is built from the arguments once: for other arguments make another module, for other
    frequencies use `rope_table` and `apply_rope`.
    """

    cos: Tensor
    sin: Tensor

    def __init__(
        self,
        dim: int,
        max_seq_len: int = 2048,
        base: float = 10000.0,
        *,
        interleaved: bool = False,
    ) -> None:
        super().__init__()
        check_flag("interleaved", interleaved)
        self.dim, self.max_seq_len = check_dim(dim), check_count("max_seq_len", max_seq_len)
        self.base, self.interleaved = base, interleaved
        cos, sin = self._table(torch.empty(0))  # on torch's default device
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, x: Tensor, offset: int = 0, position_ids: Tensor | None = None) -> Tensor:
        """Rotate ``x`` at positions ``offset .. offset + T - 1``, or at ``position_ids``.

        Parameters
        ----------
        x
            Floating point, shape (..., T, D) with D >= dim; channels past ``dim`` pass through.
        offset
            Position of the first vector: with a key-value cache, the number of tokens in it.
        position_ids
            Integers of shape (B, T) or (1, T), for ``x`` of shape (B, ..., T, D): the position of
            every token, for left-padded or packed batches.

        Returns
        -------
        Tensor of the shape and type of ``x``

        Raises
        ------
        ValueError
            If a position is outside the table. On an accelerator and in compiled code the gather
            checks ``position_ids`` itself.
        """
        check_x(x, width=self.dim)
        if position_ids is not None:
            if offset:
                raise ValueError(f"give offset or position_ids, not both, got offset = {offset}")
            return _rotate(x, *self._rows(position_ids, x), self.interleaved)
        end = offset + x.shape[-2]
        if not 0 <= offset <= end <= self.max_seq_len:
            raise ValueError(
                f"offset .. offset + T must be in 0..max_seq_len = 0..{self.max_seq_len}, "
                f"got {offset}..{end}"
            )
        return _rotate(x, self.cos[offset:end], self.sin[offset:end], self.interleaved)

    def extra_repr(self) -> str:
        """Name the four arguments."""
        table = f"dim={self.dim}, max_seq_len={self.max_seq_len}, base={self.base}"
        return f"{table}, interleaved={self.interleaved}"

    def gather(self, name: str, index: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows of ``cos`` and ``sin`` at an int64 index; ``name`` it if out of range."""
        try:
            embedding = nn.functional.embedding
            return embedding(index, self.cos), embedding(index, self.sin)
        except IndexError as error:
            raise ValueError(
                f"{name} must be in 0..max_seq_len-1 = 0..{self.max_seq_len - 1}, "
                f"got {index.min()}..{index.max()}"
            ) from error

    def _rows(self, position_ids: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``cos`` and ``sin`` at ``position_ids`` (B or 1, T), with the axes of ``x``."""
        ids = integers("position_ids", position_ids, self.cos.device)
        rows, length = len(x), x.shape[-2]
        if x.ndim < 3 or tuple(ids.shape) not in ((rows, length), (1, length)):
            raise ValueError(
                f"position_ids must have shape (B or 1, T) for x of shape (B, ..., T, D), "
                f"got {tuple(ids.shape)} and {tuple(x.shape)}"
            )
        return self.gather("position_ids", ids.reshape(len(ids), *(1,) * (x.ndim - 3), length))

    def _table(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return the table on the device and in the type of ``like``, at least float32."""
        positions = torch.arange(self.max_seq_len, device=like.device)
        dtype = torch.promote_types(like.dtype, torch.float32)
        return rope_table(positions, self.dim, self.base, dtype=dtype)

    def _apply(self, fn: Any, recurse: bool = True) -> "RotaryEmbedding":
        """Follow the module to a device or type with a table that is rebuilt, not converted."""
        super()._apply(fn, recurse)
        self.cos, self.sin = self._table(self.cos)
        return self
