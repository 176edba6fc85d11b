"""Rotary position embedding in torch: the rotation, its table, and the module that keeps one.

Positions and inverse frequencies give angles, angles give ``cos`` and ``sin``, and `apply_rope`
turns each pair ``(a, b)`` of channels into ``(a cos - b sin, b cos + a sin)``.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from . import fast
from .checks import (
    as_tensor,
    check_count,
    check_dim,
    check_flag,
    check_floating_dtype,
    check_positive,
    check_range,
    check_rotation,
    check_x,
    integers,
    moved_to,
    values_may_be_read,
)
from .frequencies import inverse_frequencies

__all__ = ["RotaryEmbedding", "apply_rope", "rope_table"]


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool = False) -> Tensor:
    """Rotate the pairs of ``x`` by the angles whose cosine and sine are given.

    Parameters
    ----------
    x
        Floating point, shape (..., T, D). It is never changed in place.
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
    Su et al. 2021 (RoFormer), equation 34. Compiled code runs the formula below as it stands; an
    eager call on a table that does not learn runs the same in fewer passes, `rope_minimal.fast`.
    """
    check_rotation(x, cos, sin)
    check_flag("interleaved", interleaved)
    return _rotate(x, cos, sin, interleaved)


def formula(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Rotate as it is written on paper. Only where the rounding stands is chosen for a compiler."""
    dtype, width = fast.compute_dtype(x), 2 * cos.shape[-1]
    turned, cos, sin = x[..., :width].to(dtype), cos.to(dtype), sin.to(dtype)
    a, b = torch.unflatten(turned, -1, (-1, 2)).unbind(-1) if interleaved else turned.chunk(2, -1)
    pair = a * cos - b * sin, b * cos + a * sin
    if interleaved:
        y = torch.stack(pair, dim=-1).flatten(-2).to(x.dtype)
    else:
        y = torch.cat([half.to(x.dtype) for half in pair], dim=-1)
    return torch.cat((y, x[..., width:]), dim=-1) if width < x.shape[-1] else y


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Rotate by the formula, or by the same in fewer passes where that may be."""
    if not fast.serves(cos, sin):
        return formula(x, cos, sin, interleaved)
    if x.requires_grad and torch.is_grad_enabled():
        return _Rotation.apply(x, cos, sin, interleaved)
    return fast.rotate(x, *fast.spread(cos, sin, interleaved, fast.compute_dtype(x)))


class _Rotation(torch.autograd.Function):
    """The rotation by a table that does not learn: the gradient is turned back by ``-sin``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
        ctx.save_for_backward(cos, sin)
        ctx.interleaved = interleaved
        y = fast.rotate(x, *fast.spread(cos, sin, interleaved, fast.compute_dtype(x)))
        # neighbours come as a view, and autograd would let nobody write into it
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
    inv_freq: Tensor | np.ndarray | None = None,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Return the cosine and the sine of every angle ``position * theta_i``.

    Parameters
    ----------
    positions
        Integers of shape (..., T); with wave vectors (A, dim/2), integers, float32 or float64 of
        shape (..., T, A): a patch may be counted, or measured in sizes of its image.
    dim
        Rotated width of one head, a positive even integer.
    base
        Base of the inverse frequencies; unused where ``inv_freq`` is given.
    inv_freq
        Inverse frequencies of shape (dim/2,), in radians per position; or, for positions on A axes,
        wave vectors of shape (A, dim/2), one row for each axis: an angle is then the dot product
        of a position and a wave vector (`rope_minimal.wave_vectors`).
        An angle of ``a`` radians is right to about ``a * 2**-53``, and must be below ``2**53``.
    dtype
        Floating-point type of the table.

    Returns
    -------
    cos, sin : Tensor, each of shape (..., T, dim/2)
        On the device of ``positions``.
    """
    theta = _frequencies(dim, base, inv_freq)
    positions = _positions(positions, theta)
    check_floating_dtype(dtype)
    device = positions.device
    # Apple's GPUs have no float64: their table is made on the CPU and moved.
    place = torch.device("cpu") if device.type == "mps" else device
    theta = moved_to(place, "inv_freq", theta)
    # An angle of 100,000 radians leaves float32 some 0.008 radian steps, and bfloat16 cannot even
    # hold the integer 257. So the angles are float64, and the rounding comes after cos and sin.
    by_axis = positions.to(place).to(torch.float64).unsqueeze(-1) * theta
    angle = reduce(torch.add, by_axis.unbind(-2))  # in this order everywhere
    if values_may_be_read(angle) and not (angle.abs() < 2**53).all():
        raise ValueError(f"positions * inv_freq must be < 2**53, got {angle.abs().max()}")
    return angle.cos().to(dtype).to(device), angle.sin().to(dtype).to(device)


def _frequencies(dim: int, base: float, inv_freq: Any) -> Tensor:
    """Return the inverse frequencies (dim/2,) or (A, dim/2) in float64, checked where given."""
    if inv_freq is None:
        return torch.tensor(inverse_frequencies(dim, base), device="cpu")
    theta = as_tensor("inv_freq", inv_freq, "floating point", "cpu")
    if not theta.is_floating_point():
        raise TypeError(f"inv_freq must be floating point, got {theta.dtype}")
    pairs, shape = check_dim(dim) // 2, tuple(theta.shape)
    if shape[-1:] != (pairs,) or len(shape) > 2 or 0 in shape:
        raise ValueError(
            f"inv_freq must have shape (dim/2,) = ({pairs},) or (A, dim/2), got {shape}"
        )
    theta = theta.to(torch.float64)
    if values_may_be_read(theta) and not theta.isfinite().all():
        raise ValueError(f"inv_freq must be finite, got {theta.tolist()}")
    return theta


def _positions(positions: Any, theta: Tensor) -> Tensor:
    """Return the positions with their axes last, (..., T, A), checked against the frequencies."""
    if theta.ndim == 1:
        positions = integers("positions", positions)
        if positions.ndim == 0:
            raise ValueError("positions must have at least 1 dimension (..., T), got shape ()")
        return positions.unsqueeze(-1)
    positions = as_tensor("positions", positions, "integers, float32 or float64")
    if not positions.is_floating_point():
        positions = integers("positions", positions)
    elif positions.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"positions must be integers, float32 or float64, got {positions.dtype}")
    if positions.ndim < 2 or positions.shape[-1] != len(theta):
        raise ValueError(
            f"positions must have shape (..., T, {len(theta)}), as inv_freq has {len(theta)} axes, "
            f"got {tuple(positions.shape)}"
        )
    return positions


class RotaryEmbedding(nn.Module):
    """Rotate queries or keys by their positions, from a table made once.

    Parameters
    ----------
    dim
        Rotated width of one head, a positive even integer.
    max_seq_len
        Positions in the table; positions 0 to ``max_seq_len - 1`` can be rotated.
    base
        Base of the inverse frequencies.
    interleaved
        Pair channels ``(2i, 2i+1)`` instead of ``(i, i + dim/2)``.

    Notes
    -----
    The table is kept as an eager call reads it. For neighbours the buffer ``table`` holds cosines
    and sines by turns, and ``sines`` is None; for halves ``table`` holds the cosines twice, side by
    side, and ``sines`` the sines. They are float32 (float64 after
    ``.double()``, or where float64 is torch's default) and made anew whenever the module is moved
    or cast: ``.half()``, ``.bfloat16()`` and ``to_empty()`` leave them exact. They are not part of
    the state dict: a layer loaded over the meta device by ``assign=True`` gets them by
    ``to_empty()`` of this module alone. The arguments cannot be changed afterwards, for the table
    would not follow.
    For other frequencies use `rope_table` and `apply_rope`.
    """

    table: Tensor
    sines: Tensor | None

    def __init__(
        self,
        dim: int,
        max_seq_len: int = 2048,
        base: float = 10000.0,
        *,
        interleaved: bool = False,
    ) -> None:
        super().__init__()
        check_positive("base", base)
        check_flag("interleaved", interleaved)
        self.dim, self.max_seq_len = check_dim(dim), check_count("max_seq_len", max_seq_len)
        self.base, self.interleaved = base, interleaved
        # where float64 is the default type, that of torch.empty, x will have it
        table, sines = self._made(torch.empty(0))
        self.register_buffer("table", table, persistent=False)
        self.register_buffer("sines", sines, persistent=False)

    @property
    def cos(self) -> Tensor:
        """A copy of the cosines, (max_seq_len, dim/2): what is written into it changes nothing."""
        return self._cos_and_sin(self._kept())[0].clone()

    @property
    def sin(self) -> Tensor:
        """A copy of the sines, (max_seq_len, dim/2): what is written into it changes nothing."""
        return self._cos_and_sin(self._kept())[1].clone()

    def at(self, positions: Tensor | np.ndarray | Sequence[Any]) -> tuple[Tensor, Tensor]:
        """Return the cosines and sines at integers 0 to ``max_seq_len - 1``, (..., dim/2) each."""
        index = moved_to(self.table.device, "positions", integers("positions", positions)).long()
        check_range("positions", index, self.max_seq_len, "max_seq_len-1")
        return self._cos_and_sin([nn.functional.embedding(index, t) for t in self._kept()])

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
            every token, for left-padded or packed batches. The range is checked on the CPU; on an
            accelerator and in compiled code, where reading it would stall, the gather checks it.

        Returns
        -------
        Tensor of the shape and type of ``x``

        Raises
        ------
        ValueError
            If a position is outside the table, or both ``offset`` and ``position_ids`` are given.
        """
        check_x(x)
        if x.shape[-1] < self.dim:
            raise ValueError(
                f"x must have at least dim = {self.dim} channels, got shape {tuple(x.shape)}"
            )
        rows = self._kept()
        if x.device != rows[0].device:
            raise ValueError(f"x must be on {rows[0].device} as the table is, got {x.device}")
        offset = check_count("offset", offset, least=0)
        if position_ids is None:
            end = offset + x.shape[-2]
            if end > self.max_seq_len:
                raise ValueError(
                    f"positions offset..offset+T = {offset}..{end} exceed "
                    f"max_seq_len = {self.max_seq_len}"
                )
            rows = [t.narrow(0, offset, x.shape[-2]) for t in rows]
        else:
            if offset != 0:
                raise ValueError(f"give offset or position_ids, not both, got offset = {offset}")
            index = self._index(x, position_ids)
            rows = [nn.functional.embedding(index, t) for t in rows]
        if x.requires_grad or not fast.serves(rows[0], rows[-1]):
            return _rotate(x, *self._cos_and_sin(rows), self.interleaved)
        dtype = fast.compute_dtype(x)
        if rows[0].dtype != dtype:
            rows = [t.to(dtype) for t in rows]
        if self.interleaved:
            return fast.rotate(x, rows[0].view(dtype.to_complex()))
        return fast.rotate(x, *rows)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse another value of an argument: the table would not follow."""
        if name in ("dim", "max_seq_len", "base", "interleaved") and name in self.__dict__:
            raise AttributeError(f"{name} cannot be changed: make another RotaryEmbedding")
        super().__setattr__(name, value)

    def extra_repr(self) -> str:
        """Name the four arguments."""
        table = f"dim={self.dim}, max_seq_len={self.max_seq_len}, base={self.base}"
        return f"{table}, interleaved={self.interleaved}"

    def _index(self, x: Tensor, position_ids: Tensor) -> Tensor:
        """Check ``position_ids`` (B, T) and shape it to (B, 1, ..., T), the axes of ``x``."""
        given, position_ids = position_ids, integers("position_ids", position_ids, "cpu")
        if position_ids.device != self.table.device:
            if isinstance(given, Tensor):
                raise ValueError(
                    f"position_ids must be on {self.table.device} as the table is, "
                    f"got {given.device}"
                )
            position_ids = position_ids.to(self.table.device)
        batch, length = x.shape[0], x.shape[-2]
        shape = tuple(position_ids.shape)
        if x.ndim < 3:
            raise ValueError(f"position_ids needs x of shape (B, ..., T, D), got {tuple(x.shape)}")
        if shape not in ((batch, length), (1, length)):
            raise ValueError(
                f"position_ids must have shape (B, T) = ({batch}, {length}), got {shape}"
            )
        check_range("position_ids", position_ids, self.max_seq_len, "max_seq_len-1")
        return position_ids.long().reshape(shape[0], *(1,) * (x.ndim - 3), length)

    def _made(self, like: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return both buffers on the device of ``like``, in its type or float32: what `fast` reads.

        As complex numbers, neighbours would lose their imaginary parts in a cast.
        """
        positions = torch.arange(self.max_seq_len, device=like.device)
        dtype = fast.compute_dtype(like)
        table = rope_table(positions, self.dim, self.base, dtype=dtype)
        turn, *sines = fast.spread(*table, self.interleaved, dtype)
        return turn.view(dtype), sines[0] if sines else None

    def _kept(self) -> list[Tensor]:
        """Return the buffers that hold the table: as attributes, one token would wait for them."""
        both = self._buffers["table"], self._buffers["sines"]
        return [t for t in both if t is not None]

    def _cos_and_sin(self, rows: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the views (..., dim/2) of rows of the buffers."""
        if self.interleaved:
            return rows[0][..., ::2], rows[0][..., 1::2]
        return rows[0].narrow(-1, 0, self.dim // 2), rows[1]

    def _apply(self, fn: Any, recurse: bool = True) -> "RotaryEmbedding":
        """Follow the module to a device or type with a table made anew, not converted."""
        super()._apply(fn, recurse)
        self.table, self.sines = self._made(self.table)
        return self
