"""The rotation in fewer passes over memory, for eager calls: the formula's numbers, sooner.

Eager torch runs one kernel after the other, and each reads and writes its tensors whole. Written
as on paper, a rotation takes nine such passes of the size of a copy's two; here neighbours take
one complex product, and halves take three kernels. Whatever a call does not need is not done: the
table comes in the form that these kernels read (`spread`), so that a module makes it once.
"""

from typing import Any

import torch
from torch import Tensor

from .tensors import is_transformed

TILE = 2**19  # numbers that are rotated at once: 2 MiB of float32, for the cache of a core


def serves(*tables: Tensor) -> bool:
    """Whether these forms may run: not in compiled code, a transform, or for tables that learn."""
    if torch.compiler.is_compiling() or is_transformed():
        return False
    return not (torch.is_grad_enabled() and any(t.requires_grad for t in tables))


def compute_dtype(x: Tensor) -> torch.dtype:
    """Return the type in which ``x`` is rotated: float32 for what is shorter."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def spread(cos: Tensor, sin: Tensor, interleaved: bool) -> tuple[Tensor, ...]:
    """Return the table as `rotate` reads it.

    The complex numbers ``cos + i sin`` (..., T, R/2) turn neighbours. To turn halves, cos is
    doubled: (cos, cos) side by side (..., T, R), and sin as it is (..., T, R/2).
    """
    return (torch.complex(cos, sin),) if interleaved else (torch.cat((cos, cos), dim=-1), sin)


def rotate(x: Tensor, *table: Tensor, back: bool = False) -> Tensor:
    """Rotate the first channels of ``x`` by a table of `spread`, or ``back`` by the same angles."""
    if x.requires_grad and torch.is_grad_enabled() and not is_transformed():
        return _Rotation.apply(x, back, *table)
    return _rotate(x, back, table)


class _Rotation(torch.autograd.Function):
    """The rotation by a table that does not learn: the gradient is turned back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, back: bool, *table: Tensor) -> Tensor:
        ctx.save_for_backward(*table)
        ctx.back = back
        return _rotate(x, back, table)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        table = ctx.saved_tensors
        return rotate(grad, *table, back=not ctx.back), None, *(None for _ in table)


def _rotate(x: Tensor, back: bool, table: tuple[Tensor, ...]) -> Tensor:
    """Rotate all of ``x`` at once, or on the CPU, where it exceeds a cache, in pieces of it."""
    form, exact = (_neighbours if len(table) == 1 else _halves), compute_dtype(x)
    width = 2 * table[-1].shape[-1]
    partly = width < x.shape[-1]
    one_pass = form is _neighbours and not partly and x.dtype == exact
    if x.numel() <= TILE or one_pass or not x.is_cpu or is_transformed():  # tiles write in place
        turned = x[..., :width] if partly else x
        if x.dtype == exact:
            y = form(turned, back, *table)
        else:
            y = form(turned.to(exact), back, *table).to(x.dtype)
        return torch.cat((y, x[..., width:]), dim=-1) if partly else y
    y = torch.empty_like(x)
    y[..., width:] = x[..., width:]
    positions = max(1, TILE * x.shape[-2] // x.numel())
    tiles = (t.split(positions, dim=-2) for t in (y[..., :width], x[..., :width], *table))
    for into, part, *rows in zip(*tiles, strict=True):
        into.copy_(form(part.to(exact), back, *rows))
    return y


def _neighbours(x: Tensor, back: bool, turn: Tensor) -> Tensor:
    """Rotate by one complex product ``(a + ib)(cos + i sin)``, each pair read as a complex."""
    turn = turn.conj() if back else turn
    try:
        return (x.view(turn.dtype) * turn).view(x.dtype)
    except RuntimeError:  # a stride or the offset is odd, or these are batched gradients
        pairs = x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2).clone(
            memory_format=torch.contiguous_format
        )
        return torch.view_as_real(torch.view_as_complex(pairs) * turn).reshape(x.shape)


def _halves(x: Tensor, back: bool, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate in three kernels: ``x cos``, then ``-b sin`` and ``+a sin`` added to its halves."""
    (a, b), sign = x.chunk(2, dim=-1), -1 if back else 1
    y = x * cos
    first, second = y.chunk(2, dim=-1)
    first.addcmul_(b, sin, value=-sign)
    second.addcmul_(a, sin, value=sign)
    return y
