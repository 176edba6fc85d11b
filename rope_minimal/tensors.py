"""Checks of tensors, one wording for the whole package; `rope_minimal.checks` has the numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # torch has no arithmetic for these


def as_tensor(name: str, value: Any, kind: str) -> Tensor:
    """Return a tensor as it is and anything else as NumPy reads it, so that floats stay float64."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (str, bytes)) or np.ma.is_masked(value):
        raise TypeError(f"{name} must be {kind}, got {value!r}")
    if isinstance(value, Sequence) and len(value) == 0:
        value = np.empty(0, dtype=np.int64)  # an empty list has no type of its own
    if isinstance(value, np.ndarray) and not torch.compiler.is_compiling():
        # torch reads no other byte order than the machine's and no negative stride
        value = value.astype(value.dtype.newbyteorder("="))
    try:
        return torch.tensor(np.asarray(value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} must be {kind}, got {value!r}") from error


def integers(name: str, value: Any) -> Tensor:
    """Return ``value`` as a tensor of integers; raise TypeError where it holds anything else."""
    tensor = as_tensor(name, value, "integers")
    if tensor.dtype in _UNSIGNED:
        tensor = tensor.long()
        if values_may_be_read(tensor) and tensor.numel() and tensor.min() < 0:  # has wrapped
            raise ValueError(f"{name} must be < 2**63, got {value}")
    if tensor.dtype not in _INTEGERS:
        raise TypeError(f"{name} must be integers, got {tensor.dtype}")
    return tensor


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
    plain = type(tensor) in (Tensor, nn.Parameter)  # not a fake one
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
    if not value.is_floating_point():
        raise TypeError(f"{name} must be floating point, got {value.dtype}")


def check_x(x: Any, name: str = "x") -> None:
    """Raise unless ``x`` is floating point of shape (..., T, D)."""
    check_float(name, x)
    if x.ndim < 2:
        raise ValueError(
            f"{name} must have at least 2 dimensions (..., T, D), got shape {tuple(x.shape)}"
        )


def check_rotation(x: Any, cos: Any, sin: Any) -> None:
    """Raise unless ``cos`` and ``sin`` fit ``x``, in the order in which a reader would look."""
    check_x(x)
    check_float("cos", cos)
    check_float("sin", sin)
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
