"""Faster forms of the rotation for eager calls; `rope_minimal.rotation` has the formula.

Eager torch runs one kernel after the other, and each reads and writes whole tensors: the formula
makes nine passes over memory where a copy makes two. Here interleaved pairs take one complex
product and half-split pairs three kernels, and a large input on the CPU is rotated in tiles that
fit into its cache. None of this is differentiable; `rope_minimal.rotation` defines the gradient.
"""

import torch
from torch import Tensor

TILE = 2**20  # elements per tile: 4 MiB of float32, the caches of two cores


def rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Rotate the first ``2 * cos.shape[-1]`` channels of ``x``, without checks."""
    dtype, width = torch.promote_types(x.dtype, torch.float32), 2 * cos.shape[-1]
    form = _interleaved if interleaved else _half_split
    whole = x.dtype == cos.dtype == sin.dtype == dtype and x.shape[-1] == width
    if x.numel() > TILE and x.shape[-2] > 1 and x.is_cpu and not (whole and interleaved):
        return _in_tiles(x, cos, sin, interleaved)
    if whole:  # a slice and four casts that change nothing would double the time of one token
        return form(x, cos, sin)
    y = form(x.narrow(-1, 0, width).to(dtype), cos.to(dtype), sin.to(dtype)).to(x.dtype)
    return y if width == x.shape[-1] else torch.cat((y, x[..., width:]), dim=-1)


def _in_tiles(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Rotate ``x`` a few positions at a time, each tile written to its place in the result."""
    y, length = torch.empty_like(x), x.shape[-2]
    most = max(1, TILE * length // x.numel())
    for start in range(0, length, most):  # narrow, not split, which batched gradients refuse
        out, *tile = (t.narrow(-2, start, min(most, length - start)) for t in (y, x, cos, sin))
        out.copy_(rotate(tile[0], tile[1], tile[2], interleaved))
    return y


def _interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate by one complex product ``(a + ib)(cos + i sin)``, each pair viewed as a complex."""
    factor = torch.complex(cos, sin)
    try:
        pairs = x.view(factor.dtype)
    except RuntimeError:  # an odd stride or offset, or a batch of gradients under vmap
        pairs = x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
        pairs = torch.view_as_complex(pairs.clone(memory_format=torch.contiguous_format))
    return torch.view_as_real(pairs * factor).reshape(x.shape)


def _half_split(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate in three kernels: ``x cos``, then ``-b sin`` and ``+a sin`` added to its halves."""
    a, b = x.chunk(2, dim=-1)
    y = x * torch.cat((cos, cos), dim=-1)
    y[..., : sin.shape[-1]].addcmul_(b, sin, value=-1)
    y[..., sin.shape[-1] :].addcmul_(a, sin)
    return y
