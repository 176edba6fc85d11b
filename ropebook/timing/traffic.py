"""Count the bytes that an eager call reads, writes and allocates, per operation."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True)
class Operation:
    """One operation of an eager call with the bytes it reads and writes.

    Parameters
    ----------
    name
        PyTorch's name, for example "mul".
    read, written
        Bytes.
    """

    name: str
    read: int
    written: int


# operations that write their first argument without reading it
_OVERWRITES = {f"aten::{name}_" for name in ("copy", "fill", "zero", "normal", "uniform")}


class _Traffic(TorchDispatchMode):
    """Record the operations that read or write a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Operation] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = {key: value for key, value in (kwargs or {}).items() if key != "out"}
        inputs, results, name = _tensors((args, given)), _tensors(out), func._schema.name
        if not name.startswith("aten::"):
            raise ValueError(
                f"call must use PyTorch's own operations, got {name}, which cannot be counted"
            )
        if name.startswith(("aten::empty", "aten::new_empty")):
            return out
        in_place = func._schema.is_mutable
        moved = in_place or not _is_view(results, inputs)
        if name in _OVERWRITES:
            inputs = inputs[1:]  # the first is not read
        elif name.startswith("aten::new_") or name.endswith("_like"):
            inputs = []  # only their shape is read
        if moved:
            read, written = (sum(map(_bytes, tensors)) for tensors in (inputs, results))
            self.operations.append(Operation(name.removeprefix("aten::"), read, written))
        return out


def operations(call: Callable[[], Any]) -> list[Operation]:
    """Return the operations of an eager call in order, with the bytes they read and write.

    Every PyTorch operation counts its tensor arguments and results once: a view moves nothing, an
    in-place operation reads what it modifies, a broadcast tensor is read once. The inside of an
    operation, or of a compiled function, is not visible.

    Parameters
    ----------
    call
        A function without arguments, called once.

    Returns
    -------
    list of Operation

    Raises
    ------
    TypeError
        If ``call`` is not callable.
    ValueError
        If it uses an operation of another library, which cannot be counted.
    """
    if not callable(call):
        raise TypeError(f"call must be callable, got {call!r}")
    with _Traffic() as traffic:
        call()
    return traffic.operations


def moved_bytes(call: Callable[[], Any]) -> int:
    """Return the bytes that the `operations` of an eager call read and write.

    Parameters
    ----------
    call
        A function without arguments, called once.

    Returns
    -------
    int

    Raises
    ------
    TypeError
        If ``call`` is not callable.
    ValueError
        If it uses an operation of another library, which cannot be counted.
    """
    return sum(each.read + each.written for each in operations(call))


def _is_view(results: list[Tensor], inputs: list[Tensor]) -> bool:
    """Whether all results lie in the memory of an input."""
    own = {t.untyped_storage().data_ptr() for t in inputs}
    return bool(results) and all(t.untyped_storage().data_ptr() in own for t in results)


def _tensors(value: Any) -> list[Tensor]:
    return [t for t in torch.utils._pytree.tree_leaves(value) if isinstance(t, Tensor)]


def _bytes(t: Tensor) -> int:
    """Return the bytes of ``t``; a broadcast axis counts once."""
    count = math.prod(n for n, s in zip(t.shape, t.stride(), strict=True) if s or n == 0)
    return count * t.element_size()


def peak_extra_bytes(call: Callable[[], Any], *, device: str | torch.device = "cpu") -> int:
    """Return the peak memory of a call in bytes, beyond what was allocated before.

    It includes the result and all temporaries that are alive at the same time.

    Parameters
    ----------
    call
        A function without arguments, called twice; the first call warms caches.
    device
        Device of the call. On the CPU, allocations come from PyTorch's profiler; on "cuda", the
        peak from the allocator.

    Returns
    -------
    int

    Raises
    ------
    TypeError
        If ``call`` is not callable.
    """
    if not callable(call):
        raise TypeError(f"call must be callable, got {call!r}")
    call()
    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        call()
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        result = call()
    del result
    events = [e for e in record.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = np.cumsum([e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())])
    return int(max(held, default=0))
