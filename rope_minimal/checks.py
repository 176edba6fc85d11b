"""Checks of arguments: numbers, arrays and tensors, one wording for the whole package.

Each names the argument and what was passed: ``dim must be a positive even integer, got 7``. What
NumPy and torch refuse with a clear message of their own is left to them. Nothing here imports torch
before a tensor is made.
"""

import math
import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor, device


def check_dim(dim: Any, name: str = "dim") -> int:
    """Return ``dim`` as an int; raise unless it is a positive even integer."""
    if not isinstance(dim, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {dim!r}")
    if dim <= 0 or dim % 2:
        raise ValueError(f"{name} must be a positive even integer, got {dim}")
    return int(dim)


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return ``value`` as an int; raise unless it is an integer >= ``least``."""
    if not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be >= {least}, got {value}")
    return int(value)


def check_flag(name: str, value: Any) -> None:
    """Raise unless ``value`` is True or False: any non-empty string is truthy, "half" too."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_real(name: str, value: Any) -> float:
    """Return ``value`` as a float; raise unless it is a finite real number."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    if not math.isfinite(as_float(value)):
        raise ValueError(f"{name} must be finite, got {value}")
    return float(value)


def check_positive(name: str, value: Any) -> None:
    """Raise unless ``value`` is a finite real number above 0."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    if not 0.0 < as_float(value) < math.inf:
        raise ValueError(f"{name} must be finite and > 0, got {value}")


def as_float(value: numbers.Real | int) -> float:
    """Return ``value`` as a float, infinity where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def real_numbers(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as a float64 array; raise TypeError unless it holds real numbers."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers, got dtype {array.dtype}")
    return array.astype(np.float64)


def check_frequencies(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as a float64 array; raise unless it is finite and >= 0 everywhere."""
    array = real_numbers(name, value)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{name} must be finite and >= 0, got {value!r}")
    return array


# Tensors


def integers(name: str, value: Any, device: "device | str | None" = None) -> "Tensor":
    """Return ``value`` as an int64 tensor, on ``device`` where it is not a tensor yet."""
    import torch

    try:
        tensor = value if isinstance(value, torch.Tensor) else torch.tensor(value, device=device)
    except (TypeError, RuntimeError) as error:  # for None or a string
        raise TypeError(f"{name} must be integers, got {value!r}") from error
    if tensor.numel() and (tensor.is_floating_point() or tensor.dtype == torch.bool):
        raise TypeError(f"{name} must be integers, got {tensor.dtype}")
    return tensor.long()


def check_range(name: str, values: "Tensor", size: int) -> None:
    """Raise unless ``0 <= values < size``, on the CPU: reading an accelerator would stall it."""
    import torch

    if values.device.type == "cpu" and not torch.compiler.is_compiling() and values.numel():
        low, high = values.min().item(), values.max().item()
        if low < 0 or high >= size:
            raise ValueError(f"{name} must be in 0..{size - 1}, got {low if low < 0 else high}")


def check_float(name: str, value: Any) -> None:
    """Raise TypeError unless ``value`` is a floating-point tensor."""
    if not (hasattr(value, "is_floating_point") and value.is_floating_point()):
        got = f"{type(value).__name__} of {value.dtype}" if hasattr(value, "dtype") else repr(value)
        raise TypeError(f"{name} must be a floating-point torch.Tensor, got {got}")


def check_x(x: Any, name: str = "x", width: int = 1) -> None:
    """Raise unless ``x`` is a floating-point tensor of shape (..., T, D) with D >= ``width``."""
    if not hasattr(x, "is_floating_point") or not x.is_floating_point():
        check_float(name, x)
    if x.ndim < 2 or x.shape[-1] < width:
        raise ValueError(
            f"{name} must have shape (..., T, D) with D >= {width}, got {tuple(x.shape)}"
        )


def check_mask(name: str, mask: Any, axes: str, shapes: Sequence[tuple[int, ...]]) -> None:
    """Raise unless ``mask`` is a boolean tensor of one of the shapes."""
    if str(getattr(mask, "dtype", None)) != "torch.bool":
        got = getattr(mask, "dtype", type(mask).__name__)
        raise TypeError(f"{name} must be a tensor of torch.bool, got {got}")
    if tuple(mask.shape) not in shapes:
        raise ValueError(f"{name} must have shape {axes} = {shapes[0]}, got {tuple(mask.shape)}")


def check_rotation(x: Any, cos: Any, sin: Any) -> None:
    """Raise unless ``cos`` and ``sin`` fit ``x``: type, dimensions, width, length, broadcasting."""
    check_x(x)
    check_float("cos", cos)
    check_float("sin", sin)
    shape, table = tuple(x.shape), tuple(cos.shape)
    if table != tuple(sin.shape):
        raise ValueError(
            f"cos and sin must have the same shape, got {table} and {tuple(sin.shape)}"
        )
    if len(table) not in (2, len(shape)):
        raise ValueError(
            f"cos must have 2 dimensions (T, R/2) or as many as x, got shape {table} "
            f"for x of shape {shape}"
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
        raise ValueError(f"cos must broadcast to x, got shape {table} for x of shape {shape}")
