"""Time several functions in interleaved rounds, relative to one of them."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rope_minimal.checks import check_count, check_positive

HEAD_START = 12  # passes over 256 MiB: about a millisecond on an H100


@dataclass(frozen=True)
class Timing:
    """Times of one function, as measured by `compare`.

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
    """Time functions in interleaved rounds, and return each time as a multiple of ``floor``.

    A machine's clock rate and load vary during a measurement. Every round times every function
    once, so a slow moment affects all of them, and a ratio compares two times of the same round.
    Rounds start with a different function each, so that none is always first.

    Parameters
    ----------
    calls
        Functions without arguments, by name.
    floor
        Name of the call whose time divides the others'.
    rounds
        Number of rounds, at least 1.
    sample_us
        Minimum duration of a sample in microseconds: shorter calls are repeated.
    cold
        Time each call by itself, with caches flushed by a pass over 256 MiB. On a GPU, twelve
        passes (about a millisecond) hide the launch of the call, so that only its kernels are
        timed; without ``cold``, consecutive calls are timed with their launches.
    device
        Device of the calls. On "cuda", they are timed by CUDA events.
    clock
        Returns nanoseconds; used for calls on the CPU.
    on_round
        Called after each round, to show progress.

    Returns
    -------
    dict of str to Timing
        In the order of ``calls``.

    Raises
    ------
    TypeError
        If ``calls`` is not a mapping to functions, ``rounds`` not an integer, or ``sample_us`` not
        a number.
    ValueError
        If ``floor`` is not a key of ``calls``, or ``rounds`` or ``sample_us`` is out of range.
    """
    _check_compare(calls, floor, rounds, sample_us)
    on_cuda = torch.device(device).type == "cuda"
    flush = torch.ones(2**26 if cold else 0, device=device)  # 256 MiB
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
    """Summarise the samples of one call, in nanoseconds per call."""
    shares = (0.5, 0.2, 0.8)
    us, us_low, us_high = np.quantile(np.divide(times, 1000), shares).tolist()
    ratio, low, high = np.quantile(np.divide(times, floor), shares).tolist()
    return Timing(us, us_low, us_high, ratio, low, high, len(times), repeats)


def _cpu_ns(
    call: Callable[[], Any], repeats: int, flush: Tensor, clock: Callable[[], int]
) -> float:
    """Return nanoseconds per call: consecutive calls, or each after a pass over ``flush``."""
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
    """Return nanoseconds per call on the GPU: consecutive calls, or each with a flushed cache."""
    in_a_row = 1 if flush.numel() else repeats
    total = 0.0
    for _ in range(repeats // in_a_row):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(HEAD_START if flush.numel() else 0):
            flush.sum()
        start.record()
        for _ in range(in_a_row):
            call()
        end.record()
        end.synchronize()
        total += start.elapsed_time(end)  # milliseconds
    return 1e6 * total / repeats


def _check_compare(calls: Any, floor: Any, rounds: Any, sample_us: Any) -> None:
    """Raise TypeError or ValueError for bad arguments of `compare`."""
    if not isinstance(calls, Mapping):
        raise TypeError(f"calls must be a mapping, got {type(calls).__name__}")
    for name, call in calls.items():
        if not callable(call):
            raise TypeError(f"calls[{name!r}] must be callable, got {call!r}")
    if floor not in calls:
        raise ValueError(f"floor must be one of the calls {list(calls)}, got {floor!r}")
    check_count("rounds", rounds)
    check_positive("sample_us", sample_us)
