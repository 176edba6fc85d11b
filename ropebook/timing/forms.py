"""Implementations of the rotation, each with its precomputed tables and its memory traffic.

A rotation does six floating-point operations per pair and is bound by memory bandwidth. So an
implementation (a *form*) is characterised by the bytes it reads and writes, in units of N, the
bytes of ``x``: a copy, which reads ``x`` once and writes the result once, moves 2 N.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from rope_minimal.rotation import apply_rope

Tables = tuple[Tensor, ...]


def _as_given(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return cos, sin


@dataclass(frozen=True)
class Form:
    """One implementation of the rotation.

    Parameters
    ----------
    name
        Name in tables of results.
    interleaved
        Channel layout, as in `apply_rope`; None for a floor, which does not rotate.
    passes
        Bytes read and written for a float32 ``x`` in units of N, without tables; None if not
        derived by hand: see `moved_bytes`.
    rotate
        The implementation: ``rotate(x, *tables)`` returns a new tensor.
    tables
        ``tables(x, cos, sin)`` returns what is precomputed once, from float32 ``cos`` and ``sin``
        of shape (T, D/2).
    passes_16
        The same for a 16-bit ``x``, if it differs because the form computes in float32.
    max_length
        Largest T for which the tables have a reasonable size; None if unlimited.
    mode
        "eager", or "compiled" where ``rotate`` went through ``torch.compile``.
    """

    name: str
    interleaved: bool | None
    passes: float | None
    rotate: Callable[..., Tensor]
    tables: Callable[[Tensor, Tensor, Tensor], Tables] = _as_given
    passes_16: float | None = None
    max_length: int | None = None
    mode: str = "eager"

    def run(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Return ``x`` (..., T, D) rotated by ``cos`` and ``sin`` (T, D/2); builds the tables."""
        return self.rotate(x, *self.tables(x, cos, sin))

    def bind(self, x: Tensor, cos: Tensor, sin: Tensor) -> Callable[[], Tensor]:
        """Build the tables and return a function that rotates ``x``, for `compare`."""
        return partial(self.rotate, x, *self.tables(x, cos, sin))

    def passes_for(self, dtype: torch.dtype) -> float | None:
        """Return the memory passes for an ``x`` of this dtype."""
        return self.passes_16 if dtype.itemsize == 2 and self.passes_16 else self.passes

    def compiled(self) -> "Form":
        """Return the form with ``rotate`` compiled for static shapes (memory passes unknown)."""
        rotate = torch.compile(self.rotate, dynamic=False)
        return replace(self, rotate=rotate, passes=None, passes_16=None, mode="compiled")


# Precomputed tables: a model builds them once for all its layers, in the dtype of x.


def _output(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return (torch.empty_like(x),)


def _in_type_of_x(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return cos.to(x.dtype), sin.to(x.dtype)


def _cat_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return tuple(torch.cat((t, t), dim=-1).to(x.dtype) for t in (cos, sin))


def _repeat_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return tuple(t.repeat_interleave(2, dim=-1).to(x.dtype) for t in (cos, sin))


def _cat_halves_signed(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return torch.cat((cos, cos), dim=-1).to(x.dtype), torch.cat((-sin, sin), dim=-1).to(x.dtype)


def _cat_halves_of_cos(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return torch.cat((cos, cos), dim=-1).to(x.dtype), sin.to(x.dtype)


def _complex(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return (torch.complex(cos, sin),)


def _matrices(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    """Return the transposed rotation matrices (T, D, D), which row vectors are multiplied by."""
    unit = torch.eye(x.shape[-1], device=x.device)
    rotated = apply_rope(unit[:, None].expand(-1, len(cos), -1), cos, sin)  # (D, T, D)
    return (rotated.transpose(0, 1).to(x.dtype).contiguous(),)


def _clay_angles(x: Tensor, interleaved: bool) -> Tables:
    """Return float32 positions and frequencies: Clay's modules compute cos and sin per call."""
    width = torch.arange(0, x.shape[-1], 2, device=x.device).float() / x.shape[-1]
    theta = 1 / 10_000**width
    theta = theta.repeat_interleave(2) if interleaved else theta.repeat(2)
    return torch.arange(x.shape[-2], device=x.device), theta


def _clay_interleaved_angles(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return _clay_angles(x, interleaved=True)


def _clay_half_angles(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return _clay_angles(x, interleaved=False)


def _cat_halves_float32(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return cos.repeat(1, 2), sin.repeat(1, 2)


# The forms. Beside each operation stand its reads and writes in units of N, the bytes of x.


def _copy(x: Tensor, out: Tensor) -> Tensor:
    return out.copy_(x)  # 1 read, 1 written


def _rotate_half(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    # the minus 1, cat 2, two products 2 each, a sum 3
    return x * cos + torch.cat((-b, a), dim=-1) * sin


def _products_cat(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    # four products of half the width 1 each, two sums 1.5 each, cat 2
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def _addcmul_cat(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    first = torch.addcmul(a * cos, b, sin, value=-1)  # a product 1, addcmul 1.5
    return torch.cat((first, torch.addcmul(b * cos, a, sin)), dim=-1)  # the same, and cat 2


def _roll(x: Tensor, cos: Tensor, signed_sin: Tensor) -> Tensor:
    swapped = x.roll(x.shape[-1] // 2, dims=-1)  # 2
    return (x * cos).addcmul_(swapped, signed_sin)  # 2, then 2 read and 1 written


def _three_kernels(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    y = x * cos  # 2
    half = x.shape[-1] // 2
    y[..., :half].addcmul_(b, sin, value=-1)  # two halves read, one written: 1.5
    y[..., half:].addcmul_(a, sin)  # 1.5
    return y


def _rotate_every_two(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x[..., ::2], x[..., 1::2]
    # the minus 1, stack 2, two products 2 each, a sum 3
    return x * cos + torch.stack((-b, a), dim=-1).flatten(-2) * sin


def _products_stack(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x[..., ::2], x[..., 1::2]
    # four products 1 each, two sums 1.5 each, stack 2
    return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)


def _view_as_complex(x: Tensor, turn: Tensor) -> Tensor:
    z = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))  # 16 bit: 1 read, 2 written
    y = torch.view_as_real(z * turn).flatten(-2)  # 2; in float32 for a 16-bit x, 4
    return y.to(x.dtype)  # 16 bit: 2 read, 1 written


def _dense(x: Tensor, matrices: Tensor) -> Tensor:
    return torch.einsum("...td,tde->...te", x, matrices)  # 2, and D/(B H) for the matrices


def _clay_interleaved(x: Tensor, positions: Tensor, theta: Tensor) -> Tensor:
    angle = torch.outer(positions, theta)
    swapped = torch.empty_like(x)
    swapped[..., 0::2] = -x[..., 1::2]  # the minus 1, the assignment 1
    swapped[..., 1::2] = x[..., 0::2]  # 1
    return x * angle.cos() + swapped * angle.sin()  # 7; float32 out of 16 bit: 3 + 3 + 6


def _clay_half(x: Tensor, positions: Tensor, theta: Tensor) -> Tensor:
    angle = torch.outer(positions, theta)
    return _rotate_half(x, angle.cos(), angle.sin())  # 10; float32 out of 16 bit: 3 + 3 + 3 + 6


def _package(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return apply_rope(x, cos, sin)


def _package_interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return apply_rope(x, cos, sin, interleaved=True)


_ALL = (
    Form("copy_", None, 2, _copy, _output),
    Form("clone", None, 2, lambda x, *_: x.clone(memory_format=torch.contiguous_format)),
    Form("rotate_half", False, 10, _rotate_half, _cat_halves),  # Hugging Face
    Form("four products, cat", False, 9, _products_cat, _in_type_of_x),
    Form("addcmul, cat", False, 7, _addcmul_cat, _in_type_of_x),
    Form("roll, signed sine", False, 7, _roll, _cat_halves_signed),
    Form("three kernels", False, 5, _three_kernels, _cat_halves_of_cos),
    Form("rotate_every_two", True, 10, _rotate_every_two, _repeat_pairs),  # GPT-J
    Form("four products, stack", True, 9, _products_stack, _in_type_of_x),
    Form("view_as_complex", True, 2, _view_as_complex, _complex, passes_16=10),  # Meta
    Form("dense matrix", False, None, _dense, _matrices, max_length=1024),
    Form("Clay, interleaved", True, 10, _clay_interleaved, _clay_interleaved_angles, passes_16=15),
    Form("Clay, half-split", False, 10, _clay_half, _clay_half_angles, passes_16=15),
    Form("Rotator", False, 10, _rotate_half, _cat_halves_float32, passes_16=15),  # the skylyj deck
    Form("apply_rope, half-split", False, None, _package),
    Form("apply_rope, interleaved", True, None, _package_interleaved),
)

FORMS: dict[str, Form] = {form.name: form for form in _ALL}
"""All forms by name; the first two, copies, are floors."""
