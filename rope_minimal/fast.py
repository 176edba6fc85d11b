"""The rotation in fewer passes over memory, for eager calls: the formula's numbers, sooner.

Eager torch runs one kernel after the other, and each reads and writes its tensors whole. Written
as on paper, a rotation makes nine such passes where a copy makes two; here neighbours take one
complex product, and halves take three kernels. Whatever a call does not need is not done: the table
comes in the form that these kernels read (`spread`), so that a module makes it once.

None of this has a gradient of its own; `rope_minimal.rotation` gives it one.
"""

import torch
from torch import Tensor

from .checks import is_transformed

TILE = 2**20  # numbers that are rotated at once: 4 MiB of float32, for the caches of two cores


def serves(cos: Tensor, sin: Tensor) -> bool:
    """Whether these forms may run: not in a traced or transformed call, nor if a table learns."""
    if torch.compiler.is_compiling() or is_transformed():
        return False
    if torch.jit.is_tracing():  # type: ignore[attr-defined]
        return False
    return not (torch.is_grad_enabled() and (cos.requires_grad or sin.requires_grad))


def compute_dtype(x: Tensor) -> torch.dtype:
    """Return the type in which ``x`` is rotated: float32 for what is shorter."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def spread(cos: Tensor, sin: Tensor, interleaved: bool, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Return the table as `rotate` reads it, in this type.

    The complex numbers ``cos + i sin`` (..., T, R/2) turn neighbours. To turn halves, cos is
    doubled: (cos, cos) side by side (..., T, R), and sin as it is (..., T, R/2).
    """
    if not (cos.dtype == sin.dtype == dtype):
        cos, sin = cos.to(dtype), sin.to(dtype)
    return (torch.complex(cos, sin),) if interleaved else (torch.cat((cos, cos), dim=-1), sin)


def rotate(x: Tensor, *table: Tensor) -> Tensor:
    """Rotate all of ``x`` at once, or on the CPU, where it exceeds a cache, in pieces of it."""
    form, dtype = (_neighbours if len(table) == 1 else _halves), compute_dtype(x)
    width = 2 * table[-1].shape[-1]
    partly = width < x.shape[-1]
    one_pass = form is _neighbours and not partly and x.dtype == dtype
    if x.numel() <= TILE or one_pass or not x.is_cpu:
        turned = x[..., :width] if partly else x
        # a cast that changes nothing takes a tenth of one token's call
        y = form(turned, *table) if x.dtype == dtype else form(turned.to(dtype), *table).to(x.dtype)
        return torch.cat((y, x[..., width:]), dim=-1) if partly else y
    y = torch.empty_like(x)
    if partly:
        y[..., width:] = x[..., width:]
    positions = max(1, TILE * x.shape[-2] // x.numel())
    # narrow, for a slice of a whole axis takes no batch of gradients (torch: is_grads_batched)
    turning = y.narrow(-1, 0, width), x.narrow(-1, 0, width)
    tiles = (t.split(positions, dim=-2) for t in (*turning, *table))
    for into, part, *rows in zip(*tiles, strict=True):
        into.copy_(form(part.to(dtype), *rows))
    return y


def _neighbours(x: Tensor, turn: Tensor) -> Tensor:
    """Rotate by one complex product ``(a + ib)(cos + i sin)``, each pair read as a complex."""
    try:
        z = x.view(turn.dtype)
    except RuntimeError:  # a stride or the offset is odd; or autograd turns many gradients at once
        pairs = x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
        z = torch.view_as_complex(pairs.clone(memory_format=torch.contiguous_format))
    return torch.view_as_real(z * turn).reshape(x.shape)


def _halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate in three kernels: ``x cos``, then ``-b sin`` and ``+a sin`` added to its halves."""
    (a, b), half = x.chunk(2, dim=-1), sin.shape[-1]
    y = x * cos
    y[..., :half].addcmul_(b, sin, value=-1)
    y[..., half:].addcmul_(a, sin)
    return y
