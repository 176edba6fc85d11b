"""Measuring variants side by side: ways to write the rotation, and what each of them costs.

A rotation does six floating-point operations for each pair and waits for memory the rest of the
time. So a form is judged by the bytes that it moves, in units of N, the bytes of ``x``: reading
``x`` once and writing the result once is 2 N, which is what a copy does.
"""

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from .rotation import apply_rope

__all__ = [
    *("FORMS", "Form", "Operation", "Timing", "compare", "moved_bytes", "operations"),
    *("peak_extra_bytes", "records"),
]

Tables = tuple[Tensor, ...]


def _as_given(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return cos, sin


@dataclass(frozen=True)
class Form:
    """One way to write the rotation.

    Parameters
    ----------
    name
        What a table of results calls it.
    interleaved
        Which channels it pairs, as in `apply_rope`; None for a floor, which rotates nothing.
    passes
        Bytes read and written for a float32 ``x`` in units of N, tables not counted; None where
        it is left to `moved_bytes`.
    rotate
        The form itself: ``rotate(x, *tables)`` returns a new tensor.
    tables
        ``tables(x, cos, sin)`` makes what the form keeps ready between calls, from float32 ``cos``
        and ``sin`` of shape (T, D/2).
    passes_16
        The same count for a 16-bit ``x``, where it differs because the form goes through float32.
    max_length
        Longest T for which its tables are of a sensible size; None if any.
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
        """Return ``x`` (..., T, D) rotated by ``cos`` and ``sin`` (T, D/2), tables made anew."""
        return self.rotate(x, *self.tables(x, cos, sin))

    def bind(self, x: Tensor, cos: Tensor, sin: Tensor) -> Callable[[], Tensor]:
        """Return a call that rotates ``x`` with tables made now: what `compare` should time."""
        return partial(self.rotate, x, *self.tables(x, cos, sin))

    def passes_for(self, dtype: torch.dtype) -> float | None:
        """Return the count for ``x`` of this type: `passes`, or `passes_16` where it differs."""
        return self.passes_16 if dtype.itemsize == 2 and self.passes_16 else self.passes

    def compiled(self) -> "Form":
        """Return the form with ``rotate`` compiled for static shapes; its passes are unknown."""
        rotate = torch.compile(self.rotate, dynamic=False)
        return replace(self, rotate=rotate, passes=None, passes_16=None, mode="compiled")


# What forms keep ready. A model makes these once for all its layers, in the type of x.


def _output(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return (torch.empty_like(x),)


def _typed(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return cos.to(x.dtype), sin.to(x.dtype)


def _twice(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return tuple(torch.cat((t, t), dim=-1).to(x.dtype) for t in (cos, sin))


def _each_twice(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return tuple(t.repeat_interleave(2, dim=-1).to(x.dtype) for t in (cos, sin))


def _cos_and_signed_sin(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return torch.cat((cos, cos), dim=-1).to(x.dtype), torch.cat((-sin, sin), dim=-1).to(x.dtype)


def _wide_cos(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return torch.cat((cos, cos), dim=-1).to(x.dtype), sin.to(x.dtype)


def _complex(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return (torch.complex(cos, sin),)


def _matrices(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    """Return R_m transposed for every position, (T, D, D): row vectors are multiplied by it."""
    unit = torch.eye(x.shape[-1], device=x.device)
    rotated = apply_rope(unit[:, None].expand(-1, len(cos), -1), cos, sin)  # (D, T, D)
    return (rotated.transpose(0, 1).to(x.dtype).contiguous(),)


def _clay_angles(x: Tensor, interleaved: bool) -> Tables:
    """Return his float32 positions and frequencies; cos and sin are made anew in every call."""
    width = torch.arange(0, x.shape[-1], 2, device=x.device).float() / x.shape[-1]
    theta = 1 / 10_000**width
    theta = theta.repeat_interleave(2) if interleaved else theta.repeat(2)
    return torch.arange(x.shape[-2], device=x.device), theta


def _clay_interleaved_angles(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return _clay_angles(x, interleaved=True)


def _clay_half_angles(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    return _clay_angles(x, interleaved=False)


def _twice_float32(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
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
    Form("rotate_half", False, 10, _rotate_half, _twice),  # Hugging Face
    Form("four products, cat", False, 9, _products_cat, _typed),
    Form("addcmul, cat", False, 7, _addcmul_cat, _typed),
    Form("roll, signed sine", False, 7, _roll, _cos_and_signed_sin),
    Form("three kernels", False, 5, _three_kernels, _wide_cos),
    Form("rotate_every_two", True, 10, _rotate_every_two, _each_twice),  # GPT-J
    Form("four products, stack", True, 9, _products_stack, _typed),
    Form("view_as_complex", True, 2, _view_as_complex, _complex, passes_16=10),  # Meta
    Form("dense matrix", False, None, _dense, _matrices, max_length=1024),
    Form("Clay, interleaved", True, 10, _clay_interleaved, _clay_interleaved_angles, passes_16=15),
    Form("Clay, half-split", False, 10, _clay_half, _clay_half_angles, passes_16=15),
    Form("Rotator", False, 10, _rotate_half, _twice_float32, passes_16=15),  # the skylyj deck
    Form("apply_rope, half-split", False, None, _package),
    Form("apply_rope, interleaved", True, None, _package_interleaved),
)

FORMS: dict[str, Form] = {form.name: form for form in _ALL}
"""The forms that the chapter on speed compares, by name; the first two are floors."""


@dataclass(frozen=True)
class Timing:
    """What `compare` found out about one call.

    Parameters
    ----------
    us
        Median time of one call in microseconds.
    us_low
        20 % quantile of that time.
    us_high
        80 % quantile of that time.
    ratio
        Median of (time of the call) / (time of the floor), taken round by round.
    ratio_low
        20 % quantile of that ratio.
    ratio_high
        80 % quantile of that ratio.
    rounds
        Number of rounds.
    repeats
        Calls in a row that made one sample of a round.
    """

    us: float
    us_low: float
    us_high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    rounds: int
    repeats: int


def compare(
    calls: Mapping[str, Callable[[], Any]],
    floor: str,
    *,
    rounds: int = 15,
    sample_us: float = 1000.0,
    cold: bool = False,
    device: str | torch.device = "cpu",
    clock: Callable[[], int] = time.perf_counter_ns,
    on_round: Callable[[], Any] = lambda: None,
) -> dict[str, Timing]:
    """Time calls in turn, round after round, and give each as a multiple of the floor.

    A machine speeds up and slows down while it is measured. Here every round times every call
    once, so a slow moment hits all alike, and a ratio compares two times of the same round. Each
    round starts with the next call, so that none is always first.

    Parameters
    ----------
    calls
        Functions without arguments, by name.
    floor
        The name of the call that the others are divided by.
    rounds
        Number of rounds, at least 1.
    sample_us
        Least length of a sample in microseconds: a shorter call is repeated until it fills it.
    cold
        Whether each call is timed alone, after a pass over 256 MiB that leaves nothing else in a
        cache: otherwise a call may find there what the one before it left. On "cuda" always.
    device
        Where the calls compute. On "cuda", events time them.
    clock
        Nanoseconds, for a call on the CPU.
    on_round
        Called after each round, to show progress.

    Returns
    -------
    dict of str to Timing
        In the order of ``calls``.

    Raises
    ------
    TypeError
        If ``calls`` is no mapping to functions, or ``rounds`` is not an integer.
    ValueError
        If ``floor`` names no call, or ``rounds`` or ``sample_us`` is too small.
    """
    _check_compare(calls, floor, rounds, sample_us)
    on_cuda = torch.device(device).type == "cuda"
    flush = torch.ones(2**26 if cold or on_cuda else 0, device=device)
    sample = partial(_cuda_ns if on_cuda else partial(_cpu_ns, clock=clock), flush=flush)
    repeats = {}
    for name, call in calls.items():
        sample(call, 1)  # the first call may compile, allocate or read from disk
        repeats[name] = max(1, math.ceil(1000 * sample_us / max(sample(call, 2), 1)))
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in names}
    for i in range(rounds):
        start = i % len(names)
        for name in names[start:] + names[:start]:
            times[name].append(sample(calls[name], repeats[name]))
        on_round()
    return {name: _timing(times[name], times[floor], repeats[name]) for name in names}


def _timing(times: list[float], floor: list[float], repeats: int) -> Timing:
    """Summarise the samples of one call, in nanoseconds a call."""
    shares = (0.5, 0.2, 0.8)
    us, us_low, us_high = np.quantile(np.divide(times, 1000), shares).tolist()
    ratio, low, high = np.quantile(np.divide(times, floor), shares).tolist()
    return Timing(us, us_low, us_high, ratio, low, high, len(times), repeats)


def _cpu_ns(
    call: Callable[[], Any], repeats: int, flush: Tensor, clock: Callable[[], int]
) -> float:
    """Return nanoseconds a call: in a row, or, given something to flush the caches with, alone."""
    in_a_row = 1 if flush.numel() else repeats
    total = 0
    for _ in range(repeats // in_a_row):
        flush.sum()  # reads: what was written would still be on its way to memory
        start = clock()
        for _ in range(in_a_row):
            call()
        total += clock() - start
    return total / repeats


def _cuda_ns(call: Callable[[], Any], repeats: int, flush: Tensor) -> float:
    """Return nanoseconds a call on the device, each after a flush of its L2 cache."""
    total = 0.0
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.sum()  # reads, as on the CPU: what was written would still be on its way
        start.record()
        call()
        end.record()
        end.synchronize()
        total += start.elapsed_time(end)  # milliseconds
    return 1e6 * total / repeats


def _check_compare(calls: Any, floor: Any, rounds: Any, sample_us: Any) -> None:
    """Raise unless the arguments of `compare` are as described."""
    if not isinstance(calls, Mapping):
        raise TypeError(f"calls must be a mapping, got {type(calls).__name__}")
    for name, call in calls.items():
        if not callable(call):
            raise TypeError(f"calls[{name!r}] must be callable, got {call!r}")
    if floor not in calls:
        raise ValueError(f"floor must be one of the calls {list(calls)}, got {floor!r}")
    if isinstance(rounds, bool) or not isinstance(rounds, int):
        raise TypeError(f"rounds must be an integer, got {rounds!r}")
    if rounds < 1:
        raise ValueError(f"rounds must be >= 1, got {rounds}")
    if not sample_us > 0:
        raise ValueError(f"sample_us must be > 0, got {sample_us!r}")


@dataclass(frozen=True)
class Operation:
    """One operation of an eager call, and its way to memory and back.

    Parameters
    ----------
    name
        What PyTorch calls it, for example "mul".
    read, written
        Bytes.
    """

    name: str
    read: int
    written: int


# operations that write their first argument without reading it
_OVERWRITES = {f"aten::{name}_" for name in ("copy", "fill", "zero", "normal", "uniform")}


class _Traffic(TorchDispatchMode):
    """List the operations that read or write a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Operation] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = {key: value for key, value in (kwargs or {}).items() if key != "out"}
        inputs, results, name = _tensors((args, given)), _tensors(out), func._schema.name
        if not name.startswith("aten::"):
            raise ValueError(
                f"call must use PyTorch's own operations, got {name}: its inside hides"
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

    Every operation of PyTorch counts its tensor arguments and results once: a view moves
    nothing, an operation in place reads what it changes, a tensor that is broadcast is read once.
    What a single operation does inside, and what a compiled function does, is not seen.

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
        If ``call`` cannot be called.
    ValueError
        If it uses an operation of another library, whose inside would stay hidden.
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
        If ``call`` cannot be called.
    ValueError
        If it uses an operation of another library, whose inside would stay hidden.
    """
    return sum(each.read + each.written for each in operations(call))


def _is_view(results: list[Tensor], inputs: list[Tensor]) -> bool:
    """Whether all results lie in the memory of an input."""
    own = {t.untyped_storage().data_ptr() for t in inputs}
    return bool(results) and all(t.untyped_storage().data_ptr() in own for t in results)


def _tensors(value: Any) -> list[Tensor]:
    return [t for t in torch.utils._pytree.tree_leaves(value) if isinstance(t, Tensor)]


def _bytes(t: Tensor) -> int:
    """Return the bytes of the different elements of ``t``: a broadcast axis counts once."""
    count = math.prod(n for n, s in zip(t.shape, t.stride(), strict=True) if s or n == 0)
    return count * t.element_size()


def peak_extra_bytes(call: Callable[[], Any], *, device: str | torch.device = "cpu") -> int:
    """Return how many bytes a call holds at its peak, beyond what was allocated before it.

    The result counts, and so does every temporary that is alive at the same time.

    Parameters
    ----------
    call
        A function without arguments, called twice: the first time warms caches.
    device
        Where it computes. On the CPU PyTorch's profiler lists the allocations; on "cuda" the
        allocator knows its peak.

    Returns
    -------
    int

    Raises
    ------
    TypeError
        If ``call`` cannot be called.
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


def records(start: Path | None = None) -> list[dict[str, Any]]:
    """Return the measurements that ``make bench`` recorded in ``benchmarks/results``.

    Parameters
    ----------
    start
        A folder or file in the repository. By default this module, and then the working folder:
        the package may be installed somewhere else.

    Returns
    -------
    list of dict
        What each results file holds, by file name; empty if there is none.
    """
    for place in (start,) if start else (Path(__file__), Path.cwd()):
        for folder in (place.resolve(), *place.resolve().parents):
            files = sorted(folder.glob("benchmarks/results/*.json"))
            if files:
                return [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return []
