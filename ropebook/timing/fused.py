"""Rotary position embedding as one Triton kernel, which reads and writes every channel once.

Import this module by its own name; it needs triton and, to be fast, a GPU:
``from ropebook.timing.fused import apply_rope_fused``.
"""

from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from rope_minimal.checks import (
    check_count,
    check_flag,
    check_float,
    check_range,
    check_rotation,
    check_x,
    integers,
)

try:
    import triton
    import triton.language as tl
except ImportError as error:
    raise ImportError(
        "ropebook.timing.fused needs triton: "
        "pip install triton (Linux; torch's CUDA builds bring it)"
    ) from error

__all__ = ["apply_rope_fused"]

# On an H100 within some per cent of a copy (benchmarks/results); other sizes tried there gained
# less than 4%. One program turns 16 rows of channels, 8 positions of 2 heads: with 16-bit
# heads 128 wide, the first half of every row is one 16-byte load for each of 128 threads, and a row
# of the table serves two heads. Where there are fewer positions (decoding), it takes more heads.
BLOCK_ROWS = 16
BLOCK_T = 8
NUM_WARPS = 4


def apply_rope_fused(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    *,
    interleaved: bool = False,
    positions: int | Tensor | None = None,
) -> Tensor:
    """Rotate the pairs of ``x`` as `rope_minimal.apply_rope` does, in one kernel.

    Parameters
    ----------
    x
        Floating point, shape (..., T, D), on a GPU. It is not modified. Any strides are allowed;
        it is copied only if adjacent channels are not adjacent in memory.
    cos, sin
        As for ``apply_rope``: shape (T, R/2), or with as many dimensions as ``x`` and sizes that
        broadcast to (..., T, R/2). With ``positions``, the whole table, shape (P, R/2).
    interleaved
        Pair channels ``(2i, 2i+1)`` instead of ``(i, i + R/2)``.
    positions
        Rows of the table to use. An integer m takes rows ``m .. m + T - 1``. Integers of
        shape (T,), or of shape (B, T) or (1, T) for ``x`` of shape (B, ..., T, D), give the row of
        every token; a captured CUDA graph reads them at each replay. Their range is checked on
        the CPU. On a GPU, where the check would synchronise, the rotated channels of a token with
        a row outside the table become NaN.

    Returns
    -------
    Tensor of the shape and type of ``x``
        16-bit input is rotated in float32 and rounded once. The gradient with respect to ``x`` is
        the same kernel with the sine negated; ``cos`` and ``sin`` get none.

    Raises
    ------
    ImportError
        If triton is missing, when the module is imported.
    TypeError
        If ``x``, ``cos`` or ``sin`` is not a floating-point tensor, or ``positions`` not integer.
    ValueError
        If the shapes do not fit, a position is outside the table, the tensors live on different
        devices or where triton cannot run, or ``cos`` or ``sin`` requires a gradient.

    Notes
    -----
    Su et al. 2021 (RoFormer), equation 34. A GPU may contract ``a cos - b sin`` into a fused
    multiply-add, so the last bit can differ from ``apply_rope``.
    """
    check_flag("interleaved", interleaved)
    if positions is None:
        check_rotation(x, cos, sin)
        rows = None
    else:
        _check_table(x, cos, sin)
        cos, sin, rows = _take(x, cos, sin, positions)
    for name, tensor in (("cos", cos), ("sin", sin), ("positions", rows)):
        if tensor is not None and tensor.device != x.device:
            raise ValueError(
                f"x and {name} must be on one device, got {x.device} and {tensor.device}"
            )
    if isinstance(_kernel, triton.JITFunction) and x.device.type == "cpu":
        raise ValueError(
            "x must be on a GPU, got cpu (TRITON_INTERPRET=1, set before triton is imported, "
            "runs the kernel on the CPU, slowly)"
        )
    if torch.is_grad_enabled() and (cos.requires_grad or sin.requires_grad):
        raise ValueError(
            "cos and sin must not require a gradient: the fused kernel has none for them, "
            "apply_rope has"
        )
    if cos.stride() != sin.stride() or cos.stride(-1) != 1:
        cos, sin = cos.contiguous(), sin.contiguous()
    if cos.ndim > 2:
        cos, sin = (_four_axes(t.expand(*x.shape[:-1], -1)) for t in (cos, sin))
    return _Rotation.apply(_four_axes(x), cos, sin, rows, interleaved, False).view(x.shape)


def _check_table(x: Tensor, cos: Tensor, sin: Tensor) -> None:
    """Raise unless ``cos`` and ``sin`` are tables (P, R/2) whose rows fit ``x``."""
    check_x(x)
    for name, table in (("cos", cos), ("sin", sin)):
        check_float(name, table)
        if table.ndim != 2 or len(table) == 0:
            raise ValueError(
                f"{name} must be a table (P, R/2) where positions are given, "
                f"got shape {tuple(table.shape)}"
            )
    if cos.shape != sin.shape:
        raise ValueError(
            f"cos and sin must have the same shape, got {tuple(cos.shape)} and {tuple(sin.shape)}"
        )
    check_rotation(x, *(table[:1].expand(x.shape[-2], -1) for table in (cos, sin)))


def _take(
    x: Tensor, cos: Tensor, sin: Tensor, positions: Any
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the tables cut to T rows, or whole with the rows (B, T) that the kernel looks up."""
    length, size = x.shape[-2], len(cos)
    if isinstance(positions, Integral):
        positions = check_count("positions", positions, least=0)
        if positions + length > size:
            raise ValueError(
                f"positions m..m+T = {positions}..{positions + length} exceed the "
                f"table's {size} rows"
            )
        return cos[positions : positions + length], sin[positions : positions + length], None
    rows = integers("positions", positions)
    batch = x.shape[0] if x.ndim > 2 else 1
    if tuple(rows.shape) not in ((length,), (1, length), (batch, length)):
        raise ValueError(
            f"positions must have shape (T,) = ({length},) or (B, T) = ({batch}, {length}), "
            f"got {tuple(rows.shape)}"
        )
    check_range("positions", rows, size)
    return cos, sin, rows.expand(batch, length)


def _four_axes(x: Tensor) -> Tensor:
    """View x (..., T, D) as (B, H, T, D); copy only if strides do not allow a view."""
    while x.ndim < 4:
        x = x.unsqueeze(-3)
    return x.flatten(1, -3)


class _Rotation(torch.autograd.Function):
    """The kernel; its gradient is the rotation by the opposite angles."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        cos: Tensor,
        sin: Tensor,
        rows: Tensor | None,
        interleaved: bool,
        conjugate: bool,
    ) -> Tensor:
        ctx.save_for_backward(cos, sin, rows)
        ctx.interleaved, ctx.conjugate = interleaved, conjugate
        return _launch(x, cos, sin, rows, interleaved, conjugate)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        dx = _Rotation.apply(dy, *ctx.saved_tensors, ctx.interleaved, not ctx.conjugate)
        return dx, None, None, None, None, None


def _launch(
    x: Tensor, cos: Tensor, sin: Tensor, rows: Tensor | None, interleaved: bool, conjugate: bool
) -> Tensor:
    """Run the kernel over x (B, H, T, D) with tables (T, W), (B, H, T, W), or (P, W) and rows."""
    if x.stride(-1) != 1:
        x = x.contiguous()
    y = torch.empty_like(x)  # in the memory order of x, where that keeps channels side by side
    if y.stride(-1) != 1:
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return y
    (B, H, T, D), W = x.shape, cos.shape[-1]
    cos_strides = (0, 0, cos.stride(0)) if cos.ndim == 2 else cos.stride()[:3]
    block_t = min(BLOCK_T, triton.next_power_of_2(T))
    # a program has one table for all of its heads
    block_h = min(BLOCK_ROWS // block_t, triton.next_power_of_2(H)) if cos_strides[1] == 0 else 1
    with torch.cuda.device_of(x):  # triton launches on the current device
        _kernel[(B * triton.cdiv(H, block_h) * triton.cdiv(T, block_t),)](
            x, y, cos, sin, rows, H, T, cos.shape[-2],
            *x.stride()[:3], *y.stride()[:3], *cos_strides,
            *(rows.stride() if rows is not None else (0, 0)),
            D=D, W=W, INTERLEAVED=bool(interleaved), CONJUGATE=conjugate,
            EXACT=tl.float64 if x.dtype == torch.float64 else tl.float32,
            BLOCK_H=block_h, BLOCK_T=block_t, BLOCK_W=triton.next_power_of_2(W),
            BLOCK_REST=triton.next_power_of_2(D - 2 * W), num_warps=NUM_WARPS,
        )  # fmt: skip
    return y


@triton.jit
def _kernel(
    x_ptr, y_ptr, cos_ptr, sin_ptr, row_ptr, H, T, P,
    x_b, x_h, x_t, y_b, y_h, y_t, cos_b, cos_h, cos_t, row_b, row_t,
    D: tl.constexpr, W: tl.constexpr, INTERLEAVED: tl.constexpr, CONJUGATE: tl.constexpr,
    EXACT: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_W: tl.constexpr,
    BLOCK_REST: tl.constexpr,
):  # fmt: skip
    # Which rows: a block of positions of a block of heads. Divisions are cheap in 32 bits; what is
    # multiplied by a stride has 64, for tensors of 2^31 elements.
    program = tl.program_id(0)
    blocks_t, blocks_h = tl.cdiv(T, BLOCK_T), tl.cdiv(H, BLOCK_H)
    t = (program % blocks_t).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    first_h = (program // blocks_t % blocks_h).to(tl.int64) * BLOCK_H
    h = (first_h + tl.arange(0, BLOCK_H))[:, None, None]
    b = (program // (blocks_t * blocks_h)).to(tl.int64)
    i = tl.arange(0, BLOCK_W)
    inside = (h < H) & (t < T)[None, :, None]

    # The table, once for all heads. A mask over channels is made only for widths that need one.
    row, on_table = t, t < T
    if row_ptr is not None:
        row = tl.load(row_ptr + b * row_b + t * row_t, mask=on_table, other=0).to(tl.int64)
        on_table = on_table & (row >= 0) & (row < P)
    table = b * cos_b + first_h * cos_h + row[:, None] * cos_t + i
    on_table = on_table[:, None]
    if BLOCK_W != W:
        on_table = on_table & (i < W)
    cos = tl.load(cos_ptr + table, mask=on_table, other=float("nan")).to(EXACT)[None]
    sin = tl.load(sin_ptr + table, mask=on_table, other=float("nan")).to(EXACT)[None]
    if CONJUGATE:
        sin = -sin

    x_row = x_ptr + b * x_b + h * x_h + t[None, :, None] * x_t
    y_row = y_ptr + b * y_b + h * y_h + t[None, :, None] * y_t
    if INTERLEAVED:  # one contiguous piece of memory, its pairs taken apart in registers
        c = tl.arange(0, 2 * BLOCK_W)
        mask = inside
        if BLOCK_W != W:
            mask = inside & (c < 2 * W)
        pairs = tl.load(x_row + c, mask=mask).to(EXACT)
        first, second = tl.split(tl.reshape(pairs, (BLOCK_H, BLOCK_T, BLOCK_W, 2)))
        turned = tl.join(first * cos - second * sin, second * cos + first * sin)
        turned = tl.reshape(turned, (BLOCK_H, BLOCK_T, 2 * BLOCK_W))
        tl.store(y_row + c, turned.to(y_ptr.dtype.element_ty), mask=mask)
    else:
        mask = inside
        if BLOCK_W != W:
            mask = inside & (i < W)
        first = tl.load(x_row + i, mask=mask).to(EXACT)
        second = tl.load(x_row + W + i, mask=mask).to(EXACT)
        tl.store(y_row + i, (first * cos - second * sin).to(y_ptr.dtype.element_ty), mask=mask)
        tl.store(y_row + W + i, (second * cos + first * sin).to(y_ptr.dtype.element_ty), mask=mask)
    if D > 2 * W:  # the other channels pass through
        rest = 2 * W + tl.arange(0, BLOCK_REST)
        mask = inside & (rest < D)
        tl.store(y_row + rest, tl.load(x_row + rest, mask=mask), mask=mask)
