"""Checks of arguments: numbers, arrays and tensors, one wording for the whole package.

Each names the argument and what was passed: ``dim must be a positive even integer, got 7``. torch
is imported where a tensor is checked, so that the NumPy part of the package does not load it.
"""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def check_dim(dim: Any, name: str = "dim") -> int:
    """Return ``dim`` as an int; raise unless it is a positive even integer."""
    if isinstance(dim, bool) or not isinstance(dim, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {dim!r}")
    if dim <= 0 or dim % 2:
        raise ValueError(f"{name} must be a positive even integer, got {dim}")
    return int(dim)


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return ``value`` as an int, in which sums do not wrap; raise unless it is >= ``least``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be >= {least}, got {value}")
    return int(value)


def check_flag(name: str, value: Any) -> None:
    """Raise unless ``value`` is True or False: any text is true, "no" too."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_real(name: str, value: Any) -> float:
    """Return ``value`` as a float; raise unless it is a finite real number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    if not math.isfinite(as_float(value)):
        raise ValueError(f"{name} must be finite, got {value}")
    return float(value)


def check_positive(name: str, value: Any) -> None:
    """Raise unless ``value`` is a real number that is finite and above 0 as a float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    if not 0.0 < as_float(value) < math.inf:
        raise ValueError(f"{name} must be finite and > 0, got {value}")


def as_float(value: numbers.Real | int) -> float:
    """Return ``value`` as a float, infinity where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def leaves(name: str, value: Any, kind: str) -> list[Any]:
    """Return what lists hold; raise at True, for NumPy 1 among numbers, and at what is masked."""
    dtype = str(getattr(value, "dtype", type(value).__name__))
    if dtype in ("bool", "torch.bool") or np.ma.is_masked(value):
        raise TypeError(f"{name} must be {kind}, got {value!r}")
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        return [value]
    plain = {*map(type, value)} <= {int, float}  # as the longest lists are
    return [*value] if plain else [leaf for each in value for leaf in leaves(name, each, kind)]


def real_numbers(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as float64; raise TypeError where it holds anything but real numbers."""
    leaves(name, value, "real numbers")
    try:
        array = np.asarray(value)
        of_real = (isinstance(n, numbers.Real) for n in array.flat)  # Fractions, long integers
        if array.dtype.kind in "iuf" or (array.dtype.kind == "O" and all(of_real)):
            return array.astype(np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise TypeError(f"{name} must be real numbers, got {value!r}") from error
    raise TypeError(f"{name} must be real numbers, got dtype {array.dtype}")


def check_frequencies(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as float64 if it is finite and >= 0 everywhere."""
    array = real_numbers(name, value)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{name} must be finite and >= 0, got {value!r}")
    return array + 0.0  # -0.0 is 0.0


def check_one_per_pair(inv_freq: Any, dim: int) -> None:
    """Raise unless the array or tensor ``inv_freq`` has one frequency for each pair."""
    if tuple(inv_freq.shape) != (check_dim(dim) // 2,):
        raise ValueError(
            f"inv_freq must have shape (dim/2,) = ({dim // 2},), got {tuple(inv_freq.shape)}"
        )


def check_parameter_names(
    kind: str, rule: Callable[..., Any], given: dict[str, Any], also: str | None = None
) -> None:
    """Raise TypeError naming every parameter that ``rule`` misses or does not know.

    Its parameters are what it takes by keyword only, and ``also``.
    """
    known = {
        name: parameter.default is inspect.Parameter.empty
        for name, parameter in inspect.signature(rule).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    if also is not None:
        known.setdefault(also, False)
    names = [f"{name} (required)" if must else name for name, must in known.items()]
    listing = ", ".join(names) or "none"
    unknown = sorted(set(given) - set(known))
    missing = sorted(name for name, must in known.items() if must and name not in given)
    if unknown:
        raise TypeError(f"kind {kind!r} takes no {', '.join(unknown)}; it knows: {listing}")
    if missing:
        raise TypeError(f"kind {kind!r} misses {', '.join(missing)}; it knows: {listing}")


# Tensors


def as_tensor(name: str, value: Any, kind: str, device: str | None = None) -> Tensor:
    """Return a tensor as it is and anything else as NumPy reads it, so that floats stay float64.

    What is no tensor yet is made on ``device``, that of torch's default where not given.
    """
    import torch

    if isinstance(value, torch.Tensor):
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
    import torch

    if isinstance(value, (int, list, tuple)) and not torch.compiler.is_compiling():
        for n in leaves(name, value, "integers"):
            if isinstance(n, int) and not -(2**63) <= n < 2**63:
                raise ValueError(f"{name} must be >= -2**63 and < 2**63, got {n}")
    tensor = as_tensor(name, value, "integers", device)
    if tensor.dtype in (torch.uint16, torch.uint32, torch.uint64):
        tensor = tensor.long()
        if values_may_be_read(tensor) and tensor.numel() and tensor.min() < 0:  # has wrapped
            raise ValueError(f"{name} must be < 2**63, got {value}")
    if tensor.dtype not in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
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
    import torch

    if torch.compiler.is_compiling() or tensor.device.type != "cpu":
        return False
    # a fake tensor, or one that keeps its values elsewhere, dispatches by itself
    plain = type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    return plain and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def is_transformed() -> bool:
    """Whether a transform of torch.func, or forward-mode differentiation, is at work."""
    import torch

    depth = torch._C._functorch.get_dynamic_layer_stack_depth()
    return depth > 0 or torch.autograd.forward_ad._current_level >= 0


def check_floating_dtype(dtype: Any) -> None:
    """Raise unless ``dtype`` is a floating-point type of torch."""
    import torch

    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(f"dtype must be a floating-point torch.dtype, got {dtype!r}")


def check_float(name: str, value: Any) -> None:
    """Raise TypeError unless ``value`` is a floating-point tensor."""
    import torch

    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}")
    if not value.dtype.is_floating_point:
        raise TypeError(f"{name} must be floating point, got {value.dtype}")
    if str(value.layout) != "torch.strided" or value.is_nested:
        check_dense(name, value)


def check_dense(name: str, value: Any) -> None:
    """Raise TypeError where a tensor is no block of numbers: sparse, nested, or of a library."""
    if str(value.layout) != "torch.strided" or value.is_nested:
        kind = "a nested tensor" if value.is_nested else value.layout
        raise TypeError(f"{name} must be dense, got {kind}")


def check_mask(
    name: str, mask: Any, axes: str, shapes: Sequence[tuple[int, ...]], x: Tensor, owner: str = "x"
) -> None:
    """Raise unless a mask is of torch.bool, of one of the shapes, and where ``x`` is."""
    import torch

    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, torch.Tensor) else type(mask).__name__
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
