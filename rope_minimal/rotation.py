"""Rotary position embedding in torch: a table of cosines and sines, and the rotation.

Positions and inverse frequencies give angles, angles give ``cos`` and ``sin``, and `apply_rope`
turns each pair ``(a, b)`` of channels into ``(a cos - b sin, b cos + a sin)``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from .frequencies import check_count, check_dim, check_flag, check_positive, inverse_frequencies

__all__ = ["RotaryEmbedding", "apply_rope", "rope_table"]

_TILE = 2**20  # numbers that are rotated at once: 4 MiB of float32, for the caches of two cores
_WORDS = (torch.float32, torch.bfloat16)  # whose pairs compiled code reads as integers
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor  # by a transform of torch.func


def rope_table(
    positions: Tensor | np.ndarray | Sequence[int],
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
        Integers of shape (..., T).
    dim
        Rotated width of one head, a positive even integer.
    base
        Base of the inverse frequencies; unused where ``inv_freq`` is given.
    inv_freq
        Inverse frequencies of shape (dim/2,), in radians per position.
    dtype
        Floating-point type of the table.

    Returns
    -------
    cos, sin : Tensor, each of shape (..., T, dim/2)
        On the device of ``positions``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.
    """
    positions = _integers("positions", positions)
    if positions.ndim == 0:
        raise ValueError("positions must have at least 1 dimension (..., T), got shape ()")
    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(f"dtype must be a floating-point torch.dtype, got {dtype!r}")
    device = positions.device
    # Apple's GPUs have no float64: their table is made on the CPU and moved.
    place = torch.device("cpu") if device.type == "mps" else device
    theta = _frequencies(dim, base, inv_freq).to(place)
    # An angle of 100,000 radians leaves float32 some 0.008 radian steps, and bfloat16 cannot even
    # hold the integer 257. So the angles are float64, and the rounding comes after cos and sin.
    angle = positions.to(place).to(torch.float64).unsqueeze(-1) * theta
    return angle.cos().to(dtype).to(device), angle.sin().to(dtype).to(device)


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

    Raises
    ------
    TypeError
        If ``x``, ``cos`` or ``sin`` is not a floating-point tensor.
    ValueError
        If the shapes do not fit, or the tensors live on different devices.
    RuntimeError
        In compiled code on the CPU, if an interleaved float32 or bfloat16 ``x``, or the gradient
        of what comes out, begins at an odd element of its memory (``storage_offset()``): clone it
        before the compiled call, for the compiler drops a clone inside. Under `torch.func.vmap`,
        if a table is mapped and ``x`` is not: expand ``x``.

    Notes
    -----
    Su et al. 2021 (RoFormer), equation 34.
    """
    _check_rotation(x, cos, sin)
    check_flag("interleaved", interleaved)
    if torch.compiler.is_compiling() and _is_transformed():  # requires_grad tells nothing there
        return _with_tail(_formula, x, cos, sin, interleaved)
    if torch.is_grad_enabled():
        if cos.requires_grad or sin.requires_grad:  # a table that learns
            return _with_tail(_formula, x, cos, sin, interleaved)
        if x.requires_grad:
            rotation = _Rotation if torch.compiler.is_compiling() else _EagerRotation
            return rotation.apply(x, cos, sin, interleaved)
    return _rotate(x, cos, sin, interleaved)


def _formula(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Rotate as it is written on paper; every other form below equals this one.

    Both results are rounded before they are joined, so a compiler makes one pass over ``x``.
    """
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1) if interleaved else x.chunk(2, dim=-1)
    a, b, cos, sin = (t.to(_exact(x)) for t in (a, b, cos, sin))
    pair = (a * cos - b * sin).to(x.dtype), (b * cos + a * sin).to(x.dtype)
    return torch.stack(pair, dim=-1).flatten(-2) if interleaved else torch.cat(pair, dim=-1)


class _Rotation(torch.autograd.Function):
    """The rotation by a table that does not learn: the gradient is turned back by ``-sin``."""

    @staticmethod
    def forward(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
        return _rotate(x, cos, sin, interleaved)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, cos, sin, ctx.interleaved = inputs
        ctx.save_for_backward(cos, sin)
        ctx.save_for_forward(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        cos, sin = ctx.saved_tensors
        return apply_rope(grad, cos, -sin, interleaved=ctx.interleaved), None, None, None


class _EagerRotation(_Rotation):
    """The same under `torch.func`, of which the compiler traces nothing."""

    generate_vmap_rule = True

    @staticmethod
    def jvp(ctx: Any, dx: Tensor, dcos: Tensor, dsin: Tensor, _: None) -> Tensor:
        x, cos, sin = ctx.saved_tensors
        width = 2 * cos.shape[-1]
        of_x = apply_rope(dx, cos, sin, interleaved=ctx.interleaved)
        of_table = _formula(x[..., :width], dcos, dsin, ctx.interleaved)
        return of_x + nn.functional.pad(of_table, (0, x.shape[-1] - width))


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Rotate by the form that is fastest where it runs."""
    exact, on_cpu = _exact(x), x.is_cpu
    if torch.compiler.is_compiling():
        form = _formula
        # An exported program may be given other strides than those of its example.
        words = interleaved and x.dtype in _WORDS and not torch.compiler.is_exporting()
        if on_cpu and words and _has_pairs(x):
            form = _in_words
        elif on_cpu and not interleaved and x.dtype.itemsize == 2 and _share_tables(x, cos):
            form = _in_halves
        return _with_tail(form, x, cos, sin, interleaved)
    width = 2 * cos.shape[-1]
    one_pass = interleaved and x.dtype == exact and width == x.shape[-1]
    as_one = x.numel() <= _TILE or not on_cpu or (one_pass and _has_pairs(x))
    if as_one or _is_transformed():  # a tile is written in place
        return _with_tail(_in_passes, x, cos, sin, interleaved)
    # Further passes over x are cheap in the cache: take so many positions at a time as it holds.
    y = torch.empty_like(x)
    y[..., width:] = x[..., width:]
    rows = max(1, _TILE * x.shape[-2] // x.numel())
    tiles = (t.split(rows, dim=-2) for t in (y[..., :width], x[..., :width], cos, sin))
    for into, part, cos_part, sin_part in zip(*tiles, strict=True):
        _rotate_into(into, part, cos_part, sin_part, interleaved)
    return y


def _with_tail(
    form: Callable[..., Tensor], x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool
) -> Tensor:
    """Rotate the first R channels by ``form`` and let the others pass."""
    width = 2 * cos.shape[-1]
    if width == x.shape[-1]:
        return form(x, cos, sin, interleaved)
    return torch.cat((form(x[..., :width], cos, sin, interleaved), x[..., width:]), dim=-1)


def _in_passes(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Rotate operator by operator, with as few passes over ``x`` as torch's operators allow."""
    rotate, exact = _rotate_interleaved if interleaved else _rotate_half, _exact(x)
    if x.dtype == cos.dtype == sin.dtype == exact:  # most often; a call to do nothing costs, too
        return rotate(x, cos, sin)
    return rotate(x.to(exact), cos.to(exact), sin.to(exact)).to(x.dtype)


def _rotate_interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate by one complex product ``(a + ib)(cos + i sin)``, each pair read as a complex."""
    pairs = x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)  # what batched gradients know, too
    try:
        z = torch.view_as_complex(pairs)
    except RuntimeError:  # its strides or its offset are odd
        z = torch.view_as_complex(pairs.clone(memory_format=torch.contiguous_format))
    return torch.view_as_real(z * torch.complex(cos, sin)).reshape(x.shape)


def _rotate_half(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate in three passes: ``x cos``, then ``-b sin`` and ``+a sin`` added to its halves."""
    a, b = x.chunk(2, dim=-1)
    y = x * torch.cat((cos, cos), dim=-1)
    y[..., : y.shape[-1] // 2].addcmul_(b, sin, value=-1)
    y[..., y.shape[-1] // 2 :].addcmul_(a, sin)
    return y


def _rotate_into(into: Tensor, x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> None:
    """Rotate a copy of ``x`` in place: in ``into`` itself, unless its type or strides forbid it."""
    cos, sin = cos.to(_exact(x)), sin.to(_exact(x))
    y = into
    if x.dtype != cos.dtype or (interleaved and not _has_pairs(into)):
        order = torch.preserve_format if x.stride(-1) == 1 else torch.contiguous_format
        y = torch.empty_like(x, dtype=cos.dtype, memory_format=order)
    y.copy_(x)
    if interleaved:
        torch.view_as_complex(y.unflatten(-1, (-1, 2))).mul_(torch.complex(cos, sin))
    else:
        a, b = y.chunk(2, dim=-1)
        given = b.clone()
        b.mul_(cos).addcmul_(a, sin)
        a.mul_(cos).addcmul_(given, sin, value=-1)
    if y is not into:
        into.copy_(y)


def _in_words(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = True) -> Tensor:
    """Rotate interleaved pairs in compiled code, each pair read and written as one integer.

    A compiler moves every second number of a row one by one, and integers in vectors.
    """
    if x.dim() > 2 and x.stride(-3) < x.stride(-2):  # (B, T, H, D) in memory: go in that order
        cos, sin = (t.unsqueeze(-2) if t.dim() == 2 else t.transpose(-3, -2) for t in (cos, sin))
        return _in_words(x.transpose(-3, -2), cos, sin).transpose(-3, -2)
    pairs = x.view(torch.int64 if x.dtype == torch.float32 else torch.int32)
    return _by_two_heads(_rotate_words, pairs, cos.float(), sin.float()).view(x.dtype)


def _rotate_words(pairs: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate pairs of float32 in int64, or of bfloat16, the upper half of float32, in int32."""
    if pairs.dtype == torch.int64:
        a, b = (t.to(torch.int32).view(torch.float32) for t in (pairs, pairs >> 32))
        lower, upper = (t.view(torch.int32).long() for t in (a * cos - b * sin, b * cos + a * sin))
        return (upper << 32) + (lower & 0xFFFFFFFF)
    a, b = (pairs << 16).view(torch.float32), (pairs & -(2**16)).view(torch.float32)
    lower, upper = (_bfloat16_bits(t) for t in (a * cos - b * sin, b * cos + a * sin))
    return (lower >> 16) & 0xFFFF | upper & -(2**16)


def _bfloat16_bits(number: Tensor) -> Tensor:
    """Round float32 to bfloat16, to nearest and ties to even, in the upper 16 bits of int32.

    The lower bits are left over. A cast would be shorter, but a compiler drops a cast there and
    back.
    """
    bits = number.view(torch.int32)
    nearest = bits + 0x7FFF + ((bits >> 16) & 1)
    return torch.where(number == number, nearest, 0x7FC00000)


def _in_halves(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """Rotate half-split 16-bit pairs in compiled code."""
    return _by_two_heads(_rotate_halves, x, cos.float(), sin.float())


def _rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return ``(a, b) cos + (b, a) (-sin, sin)``: one expression for both halves."""
    exact, cos, sin = x.unflatten(-1, (2, -1)).float(), cos.unsqueeze(-2), sin.unsqueeze(-2)
    sign = torch.arange(-1, 2, 2, dtype=sin.dtype).unsqueeze(-1)
    return (exact * cos + exact.flip(-2) * sin * sign).to(x.dtype).flatten(-2)


def _by_two_heads(rotate: Callable[..., Tensor], x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate both halves of the heads in one loop, which reads a row of the table for two heads."""
    if not _share_tables(x, cos):
        return rotate(x, cos, sin)
    return torch.cat([rotate(heads, cos, sin) for heads in x.chunk(2, dim=-3)], dim=-3)


def _share_tables(x: Tensor, cos: Tensor) -> bool:
    """Whether ``x`` has heads in pairs, one after the other in memory, all with the same tables."""
    same = cos.dim() == 2 or cos.shape[-3] == 1
    return x.dim() > 2 and x.shape[-3] % 2 == 0 and same and x.stride(-3) >= x.stride(-2)


def _has_pairs(x: Tensor) -> bool:
    """Whether every pair of neighbours in ``x`` can be read as one number of twice the width."""
    *strides, last = x.stride()
    # The compiler cannot read the offset: there, an odd one raises RuntimeError in the view.
    begin = 0 if torch.compiler.is_compiling() else x.storage_offset()
    return last == 1 and not any(s % 2 for s in (*strides, begin))


def _is_transformed() -> bool:
    """Whether a transform of torch.func, or forward-mode differentiation, is at work."""
    depth = torch._C._functorch.get_dynamic_layer_stack_depth()
    return depth > 0 or forward_ad._current_level >= 0


def _exact(x: Tensor) -> torch.dtype:
    """Return the type in which ``x`` is rotated."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


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

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.

    Notes
    -----
    The tables ``cos`` and ``sin`` of shape (max_seq_len, dim/2) are float32 (float64 after
    ``.double()``, or where float64 is torch's default) and made anew whenever the module is moved
    or cast: ``.half()``, ``.bfloat16()`` and ``to_empty()`` leave them exact, and what was written
    into them by hand is lost; for other frequencies use `rope_table` and `apply_rope`. They are not
    part of the state dict: a layer loaded over the meta device by ``assign=True`` gets them by
    ``to_empty()`` of this module alone.
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
        check_positive("base", base)
        check_flag("interleaved", interleaved)
        self.dim, self.max_seq_len = check_dim(dim), check_count("max_seq_len", max_seq_len)
        self.base, self.interleaved = base, interleaved
        # where float64 is the default type, that of torch.empty, x will have it
        tables = self._table(dtype=_exact(torch.empty(0)))
        for name, table in zip(("cos", "sin"), tables, strict=True):
            self.register_buffer(name, table, persistent=False)

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
        TypeError
            If ``x`` is not floating point, or ``offset`` or ``position_ids`` not integer.
        ValueError
            If a shape does not fit, a position is outside the table, or both ``offset`` and
            ``position_ids`` are given.
        """
        _check_x(x)
        offset = check_count("offset", offset, least=0)
        if position_ids is None:
            end = offset + x.shape[-2]
            if end > self.max_seq_len:
                raise ValueError(
                    f"positions offset..offset+T = {offset}..{end} exceed "
                    f"max_seq_len = {self.max_seq_len}"
                )
            cos, sin = self.cos[offset:end], self.sin[offset:end]
        else:
            if offset != 0:
                raise ValueError(f"give offset or position_ids, not both, got offset = {offset}")
            index = self._index(x, position_ids)
            cos = nn.functional.embedding(index, self.cos)
            sin = nn.functional.embedding(index, self.sin)
        return apply_rope(x, cos, sin, interleaved=self.interleaved)

    def extra_repr(self) -> str:
        """Name the four arguments."""
        return (
            f"dim={self.dim}, max_seq_len={self.max_seq_len}, base={self.base}, "
            f"interleaved={self.interleaved}"
        )

    def _index(self, x: Tensor, position_ids: Tensor) -> Tensor:
        """Check ``position_ids`` (B, T) and shape it to (B, 1, ..., T), the axes of ``x``."""
        position_ids = _integers("position_ids", position_ids)
        batch, length = x.shape[0], x.shape[-2]
        shape = tuple(position_ids.shape)
        if x.ndim < 3:
            raise ValueError(f"position_ids needs x of shape (B, ..., T, D), got {tuple(x.shape)}")
        if shape not in ((batch, length), (1, length)):
            raise ValueError(
                f"position_ids must have shape (B, T) = ({batch}, {length}), got {shape}"
            )
        if _readable(position_ids) and position_ids.numel():
            low, high = position_ids.min().item(), position_ids.max().item()
            if low < 0 or high >= self.max_seq_len:
                raise ValueError(
                    f"position_ids must be in 0..max_seq_len-1 = 0..{self.max_seq_len - 1}, "
                    f"got {low if low < 0 else high}"
                )
        return position_ids.long().reshape(shape[0], *(1,) * (x.ndim - 3), length)

    def _table(
        self, device: torch.device | None = None, dtype: torch.dtype = torch.float32
    ) -> tuple[Tensor, Tensor]:
        positions = torch.arange(self.max_seq_len, device=device)
        return rope_table(positions, self.dim, self.base, dtype=dtype)

    def _apply(self, fn: Any, recurse: bool = True) -> "RotaryEmbedding":
        """Follow the module to a device or type with tables made anew, not converted."""
        super()._apply(fn, recurse)
        dtype = _exact(self.cos)
        self.cos, self.sin = self._table(self.cos.device, dtype)
        return self


def _tensor(name: str, value: Any, kind: str) -> Tensor:
    """Return a tensor as it is and anything else as NumPy reads it, so that floats stay float64."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Sequence) and len(value) == 0:
        value = np.empty(0, dtype=np.int64)  # an empty list has no type of its own
    if isinstance(value, np.ndarray) and not torch.compiler.is_compiling():
        # torch reads no other byte order than the machine's and no negative stride
        value = value.astype(value.dtype.newbyteorder("="), order="C")
    try:
        return torch.tensor(np.asarray(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be {kind}, got {value!r}") from error


def _integers(name: str, value: Any) -> Tensor:
    """Return ``value`` as a tensor of integers; raise TypeError where it holds anything else."""
    tensor = _tensor(name, value, "integers")
    if tensor.dtype in (torch.uint16, torch.uint32, torch.uint64):  # no arithmetic of torch's
        tensor = tensor.long()
        if _readable(tensor) and tensor.numel() and tensor.min() < 0:  # has wrapped
            raise ValueError(f"{name} must be < 2**63, got {value}")
    if tensor.dtype not in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        raise TypeError(f"{name} must be integers, got {tensor.dtype}")
    return tensor


def _frequencies(dim: int, base: float, inv_freq: Any) -> Tensor:
    """Return the (dim/2,) inverse frequencies in float64, checked where they are given."""
    if inv_freq is None:
        return torch.tensor(inverse_frequencies(dim, base), device="cpu")
    check_dim(dim)
    theta = _tensor("inv_freq", inv_freq, "floating point")
    if not theta.is_floating_point():
        raise TypeError(f"inv_freq must be floating point, got {theta.dtype}")
    if theta.shape != (dim // 2,):
        raise ValueError(
            f"inv_freq must have shape (dim/2,) = ({dim // 2},), got {tuple(theta.shape)}"
        )
    if _readable(theta) and not theta.isfinite().all():
        raise ValueError(f"inv_freq must be finite, got {theta.tolist()}")
    return theta.to(torch.float64)


def _readable(tensor: Tensor) -> bool:
    """Whether a check may look at the values: not where that stalls a device, a graph or vmap."""
    if torch.compiler.is_compiling() or _is_wrapped(tensor):
        return False
    return tensor.device.type == "cpu" and type(tensor) in (Tensor, nn.Parameter)  # no fake


def _check_float(name: str, value: Tensor) -> None:
    """Raise TypeError unless ``value`` is a floating-point tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}")
    if not value.is_floating_point():
        raise TypeError(f"{name} must be floating point, got {value.dtype}")


def _check_x(x: Tensor) -> None:
    """Raise unless ``x`` is floating point of shape (..., T, D)."""
    _check_float("x", x)
    if x.ndim < 2:
        raise ValueError(
            f"x must have at least 2 dimensions (..., T, D), got shape {tuple(x.shape)}"
        )


def _check_rotation(x: Tensor, cos: Tensor, sin: Tensor) -> None:
    """Raise unless ``cos`` and ``sin`` fit ``x``, in the order in which a reader would look."""
    _check_x(x)
    _check_float("cos", cos)
    _check_float("sin", sin)
    shape, table = x.shape, cos.shape
    if table != sin.shape:
        raise ValueError(
            f"cos and sin must have the same shape, got {tuple(table)} and {tuple(sin.shape)}"
        )
    if len(table) not in (2, len(shape)):
        raise ValueError(
            f"cos must have 2 dimensions (T, R/2) or as many as x, got shape {tuple(table)} "
            f"for x of shape {tuple(shape)}"
        )
    length, width = table[-2], 2 * table[-1]
    if width == 0 or width > shape[-1]:
        raise ValueError(
            f"rotated width 2 * cos.shape[-1] must be in 2..x.shape[-1] = 2..{shape[-1]}, "
            f"got {width}"
        )
    if length != shape[-2]:
        raise ValueError(
            f"cos has {length} positions but x has {shape[-2]} (axis -2); is x (..., T, D)?"
        )
    if len(table) > 2 and any(n not in (1, m) for n, m in zip(table[:-2], shape[:-2], strict=True)):
        raise ValueError(
            f"cos must broadcast to x, got shape {tuple(table)} for x of shape {tuple(shape)}"
        )
    if not (x.device == cos.device == sin.device):
        raise ValueError(
            f"x, cos and sin must be on one device, got {x.device}, {cos.device} and {sin.device}"
        )
