"""Checks of tensors, one wording for the whole package; `rope_minimal.checks` has the numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .checks import leaves

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_DENSE = torch.strided
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # torch has no arithmetic for these


def as_tensor(name: str, value: Any, kind: str, device: str | None = None) -> Tensor:
    """Return a tensor as it is and anything else as NumPy reads it, so that floats stay float64.

    What is no tensor yet is made on ``device``, that of torch's default where not given.
    """
    if isinstance(value, Tensor):
        check_dense(name, value)
        return value
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} must be {kind}, got {value!r}")
    if not torch.compiler.is_compiling():
        leaves(name, value, kind)
        if isinstance(value, np.ndarray):
            # torch reads no other byte order than the machine's and no negative stride
            value = value.astype(value.dtype.newbyteorder("="))
    try:
        array = np.asarray(value)
        if isinstance(value, Sequence) and not array.size:  # it has no type of its own
            array = array.astype(np.int64)
        return torch.tensor(array, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} must be {kind}, got {value!r}") from error


def integers(name: str, value: Any, device: str | None = None) -> Tensor:
    """Return ``value`` as a tensor of integers; raise TypeError where it holds anything else."""
    if isinstance(value, (int, list, tuple)) and not torch.compiler.is_compiling():
        for n in leaves(name, value, "integers"):
            if isinstance(n, int) and not -(2**63) <= n < 2**63:
                raise ValueError(f"{name} must be >= -2**63 and < 2**63, got {n}")
    tensor = as_tensor(name, value, "integers", device)
    if tensor.dtype in _UNSIGNED:
        tensor = tensor.long()
        if values_may_be_read(tensor) and tensor.numel() and tensor.min() < 0:  # has wrapped
            raise ValueError(f"{name} must be < 2**63, got {value}")
    if tensor.dtype not in _INTEGERS:
        raise TypeError(f"{name} must be integers, got {tensor.dtype}")
    return tensor


def moved_to(device: torch.device, name: str, tensor: Tensor) -> Tensor:
    """Return ``tensor`` on ``device``; raise ValueError where it holds no values to bring there."""
    if tensor.device.type == "meta" != device.type:
        raise ValueError(f"{name} must be on {device}, got meta")
    return tensor.to(device)


def check_range(name: str, rows: Tensor, size: int, last: str) -> None:
    """Raise unless ``0 <= rows < size``, where the values may be read."""
    if values_may_be_read(rows) and rows.numel():
        low, high = rows.min().item(), rows.max().item()
        if low < 0 or high >= size:
            wrong = low if low < 0 else high
            raise ValueError(f"{name} must be in 0..{last} = 0..{size - 1}, got {wrong}")


def values_may_be_read(tensor: Tensor) -> bool:
    """Whether a check may look at the values: not where that stalls a device, a graph or vmap."""
    if torch.compiler.is_compiling() or tensor.device.type != "cpu":
        return False
    # a fake tensor, or one that keeps its values elsewhere, dispatches by itself
    plain = type(tensor).__torch_dispatch__ is Tensor.__torch_dispatch__
    return plain and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def is_transformed() -> bool:
    """Whether a transform of torch.func, or forward-mode differentiation, is at work."""
    depth = torch._C._functorch.get_dynamic_layer_stack_depth()
    return depth > 0 or torch.autograd.forward_ad._current_level >= 0


def check_floating_dtype(dtype: Any) -> None:
    """Raise unless ``dtype`` is a floating-point type of torch."""
    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(f"dtype must be a floating-point torch.dtype, got {dtype!r}")


def check_float(name: str, value: Any) -> None:
    """Raise TypeError unless ``value`` is a floating-point tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}")
    if not value.dtype.is_floating_point:
        raise TypeError(f"{name} must be floating point, got {value.dtype}")
    if value.layout is not _DENSE or value.is_nested:
        check_dense(name, value)


def check_dense(name: str, value: Any) -> None:
    """Raise TypeError where a tensor is no block of numbers: sparse, nested, or of a library."""
    if value.layout is not _DENSE or value.is_nested:
        kind = "a nested tensor" if value.is_nested else value.layout
        raise TypeError(f"{name} must be dense, got {kind}")


def check_mask(
    name: str, mask: Any, axes: str, shapes: Sequence[tuple[int, ...]], x: Tensor, owner: str = "x"
) -> None:
    """Raise unless a mask is of torch.bool, of one of the shapes, and where ``x`` is."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"{name} must be a tensor of torch.bool, got {got}")
    check_dense(name, mask)
    if tuple(mask.shape) not in shapes:
        raise ValueError(f"{name} must have shape {axes} = {shapes[0]}, got {tuple(mask.shape)}")
    if mask.device != x.device:
        raise ValueError(f"{name} must be on {x.device} as {owner} is, got {mask.device}")


def check_x(x: Any, name: str = "x") -> torch.Size:
    """Return the shape of ``x``; raise unless ``x`` is floating point of shape (..., T, D)."""
    check_float(name, x)
    if len(shape := x.shape) < 2:
        raise ValueError(
            f"{name} must have at least 2 dimensions (..., T, D), got shape {tuple(shape)}"
        )
    return shape


def check_rotation(x: Any, cos: Any, sin: Any) -> None:
    """Raise unless ``cos`` and ``sin`` fit ``x``, in the order in which a reader would look."""
    shape = check_x(x)
    check_float("cos", cos)
    check_float("sin", sin)
    table = cos.shape
    if table != sin.shape:
        raise ValueError(
            f"cos and sin must have the same shape, got {tuple(table)} and {tuple(sin.shape)}"
        )
    if len(table) not in (2, len(shape)):
        raise ValueError(
            f"cos must have 2 dimensions (T, R/2) or as many as x, got shape {tuple(table)} "
            f"for x of shape {tuple(shape)}"
        )
    if not 0 < 2 * table[-1] <= shape[-1]:
        raise ValueError(
            f"rotated width 2 * cos.shape[-1] must be in 2..x.shape[-1] = 2..{shape[-1]}, "
            f"got {2 * table[-1]}"
        )
    if table[-2] != shape[-2]:
        raise ValueError(
            f"cos has {table[-2]} positions but x has {shape[-2]} (axis -2); is x (..., T, D)?"
        )
    if len(table) > 2 and any(n not in (1, m) for n, m in zip(table[:-2], shape[:-2], strict=True)):
        raise ValueError(
            f"cos must broadcast to x, got shape {tuple(table)} for x of shape {tuple(shape)}"
        )
    if not (x.device == cos.device == sin.device):
        raise ValueError(
            f"x, cos and sin must be on one device, got {x.device}, {cos.device} and {sin.device}"
        )
