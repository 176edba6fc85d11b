"""Measure one case: build its input, verify each form against float64, time the correct ones."""

import re
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rope_minimal import rope_table, rotate_complex
from ropebook.timing import FORMS, Form, compare, moved_bytes, peak_extra_bytes

from . import peers

COMPILED = (
    *("rotate_half", "four products, cat", "four products, stack", "view_as_complex"),
    *("apply_rope, half-split", "apply_rope, interleaved"),
)
CACHED = 2**23  # bytes: a larger x is timed as memory holds it, a smaller one as a cache does
GRAPH = 20  # calls in one CUDA graph
# One rounding of x costs half a step; a chain of 16-bit operations some steps more. A float32
# angle of m radians is off by up to about 1.5e-7 m where a peer makes its own.
TOLERANCE = {torch.float32: 0.0, torch.bfloat16: 2**-6, torch.float16: 2**-9}


@dataclass(frozen=True)
class Case:
    """One input: shape (B, H, T, D), dtype, memory layout, and forward or gradient."""

    shape: tuple[int, int, int, int]
    dtype: str = "float32"
    allocator: str = "fresh"
    direction: str = "forward"
    memory: str = "contiguous"

    @property
    def backward(self) -> bool:
        return self.direction == "forward+backward"

    @property
    def first(self) -> int:
        """Position of the first vector: 0, or 4095 when decoding one token."""
        return 4095 if self.shape[2] == 1 else 0

    def __str__(self) -> str:
        parts = (self.dtype, self.allocator, self.direction, self.memory)
        return f"{self.shape} {' '.join(parts)}"


@dataclass(frozen=True)
class Candidate:
    """A form bound to one case."""

    form: Form
    package: str
    call: Callable[[], Any] | None = None
    error: float | None = None
    peak: int | None = None
    passes: float | None = None
    status: str = "ok"
    reason: str = ""
    rotations: int = 1  # of a tensor like x, in one call

    @property
    def key(self) -> str:
        return f"{self.package}: {self.form.name}, {self.form.mode}"


def make_input(case: Case, device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return x and a gradient, both N(0, 1), and float32 cos and sin of the positions."""
    b, h, t, d = case.shape
    draw = torch.manual_seed(0)
    x, gradient = (torch.randn(b, h, t, d, generator=draw) for _ in range(2))
    x, gradient = (v.to(device, getattr(torch, case.dtype)) for v in (x, gradient))
    if case.memory == "transposed":  # (B, T, H, D) in memory: what a projection returns
        x = x.transpose(1, 2).contiguous().transpose(1, 2)
    positions = torch.arange(case.first, case.first + t)
    cos, sin = (table.to(device) for table in rope_table(positions, d))
    return x.requires_grad_(case.backward), gradient, cos, sin


class Oracle:
    """The expected result in float64, for the first and the last row of the batch."""

    def __init__(self, case: Case, x: Tensor, gradient: Tensor) -> None:
        self.case, self.rows = case, sorted({0, len(x) - 1})
        self.x, self.gradient = (self._exact(v) for v in (x, gradient))
        self.scale = abs(self.x).max()
        self._answers: dict[tuple, np.ndarray] = {}

    def _exact(self, v: Tensor) -> np.ndarray:
        return v.detach()[self.rows].double().cpu().numpy()

    def answer(self, interleaved: bool | None, gradient: bool) -> np.ndarray:
        """Return the rotated x, or the gradient rotated back; unchanged for a floor."""
        given = self.gradient if gradient else self.x
        if interleaved is None:
            return given
        key = (interleaved, gradient)
        if key not in self._answers:
            positions = np.arange(given.shape[-2]) + self.case.first
            turned = rotate_complex(
                given, -positions if gradient else positions, interleaved=interleaved
            )
            self._answers[key] = turned
        return self._answers[key]

    def error(self, y: Tensor, interleaved: bool | None, gradient: bool = False) -> float:
        """Return the maximum error; raise ValueError for a wrong shape."""
        if tuple(y.shape) != self.case.shape:
            raise ValueError(f"returns the shape {tuple(y.shape)}")
        return float(abs(self._exact(y) - self.answer(interleaved, gradient)).max())

    @property
    def tolerance(self) -> float:
        last = self.case.first + self.case.shape[2]
        own = TOLERANCE[getattr(torch, self.case.dtype)]
        return float(self.scale * max(own, 1e-6, 2e-7 * last))


def candidates(case: Case, device: str) -> Iterator[tuple[Form, str, str]]:
    """Yield (form, package, reason why it cannot run or "")."""
    for form in (*FORMS.values(), *peers.module(case.first)):
        yield form, "rope_minimal", _too_long(form, case)
    compiled = [FORMS[name].compiled() for name in COMPILED]
    for form in compiled:
        yield form, "rope_minimal", ""
    graphs = device == "cuda" and case.shape[2] == 1  # without the time that a launch takes
    for form in (*FORMS.values(), *compiled) if graphs else ():
        yield _in_a_graph(form), "rope_minimal", ""
    for package, load in (peers.CUDA if device == "cuda" else peers.CPU).items():
        try:
            forms = load(case.first)
        except (ImportError, AttributeError) as error:
            yield Form(load.__name__, None, None, torch.clone), package, f"not here: {error.name}"
            continue
        for form in forms:
            yield form, package, ""
            if graphs and package == "rope_minimal":
                yield _in_a_graph(form), package, ""


def _in_a_graph(form: Form) -> Form:
    """Return the form with the mode "graph", or "compiled, graph" and "fused, graph"."""
    return replace(form, mode="graph" if form.mode == "eager" else f"{form.mode}, graph")


def _too_long(form: Form, case: Case) -> str:
    length = case.shape[2]
    if form.max_length is None or length <= form.max_length:
        return ""
    return f"its tables for {length} positions are too large: timed up to {form.max_length}"


def prepare(
    form: Form, package: str, case: Case, data: tuple, oracle: Oracle, device: str
) -> Candidate:
    """Return the form as a verified call, or the reason why there is none."""
    candidate = Candidate(form, package)
    try:
        candidate = _checked(candidate, case, data, oracle)
        if not candidate.error <= oracle.tolerance:
            reason = f"off by {candidate.error:.2g}, more than {oracle.tolerance:.2g}: not timed"
            return replace(candidate, call=None, status="wrong", reason=reason)
        peak = peak_extra_bytes(candidate.call, device=device)
        candidate = replace(candidate, peak=peak, passes=_passes(candidate, case, data[0]))
        if form.mode.endswith("graph"):
            graph, rotations = _captured(candidate.call), GRAPH * candidate.rotations
            return replace(candidate, call=graph, rotations=rotations)
        return candidate
    except Exception as problem:  # whatever another package raises is its result here
        said = re.sub(r"(?<!\w)/\w\S+", "...", str(problem))  # no path of this machine
        reason = textwrap.shorten(f"{type(problem).__name__}: {said}", 160)
        return Candidate(form, package, status="unavailable", reason=reason)


def _checked(candidate: Candidate, case: Case, data: tuple, oracle: Oracle) -> Candidate:
    """Return the candidate with its call and the maximum error of its result."""
    x, gradient, cos, sin = data
    form, floor = candidate.form, candidate.form.interleaved is None
    if floor:
        x = x.detach()
    tables = form.tables(x, cos, sin)
    call = there = partial(form.rotate, x, *tables)  # the least that can stand around a call
    result = call()
    outputs = result if isinstance(result, tuple) else (result,)
    error = max(oracle.error(y, form.interleaved) for y in outputs)
    if case.backward and floor:  # nothing is faster than a copy of x and one of its gradient
        back = partial(form.rotate, gradient, *form.tables(gradient, cos, sin))
        call = lambda: (there(), back())  # noqa: E731
    elif case.backward:
        inputs = [x, *(t for t in tables if isinstance(t, Tensor) and t.requires_grad)]
        given = [gradient.to(y.dtype) for y in outputs]
        call = lambda: torch.autograd.grad(there(), inputs, given)  # noqa: E731
        error = max(error, *(oracle.error(g, form.interleaved, gradient=True) for g in call()))
    return replace(candidate, call=call, error=error, rotations=len(outputs))


def _captured(call: Callable[[], Any]) -> Callable[[], None]:
    """Capture `GRAPH` calls as one CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # a capture wants every lazy start behind it
        call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(GRAPH):
            call()
    return graph.replay


def _passes(candidate: Candidate, case: Case, x: Tensor) -> float | None:
    """Return the bytes that a call moves in units of N: by formula, or else counted."""
    passes = candidate.form.passes_for(x.dtype)
    if passes is not None and not case.backward:
        return passes
    if candidate.form.mode != "eager":
        return None
    try:
        moved = moved_bytes(candidate.call) / candidate.rotations
    except ValueError:  # an operation that hides what it does
        return None
    return round(moved / (x.numel() * x.element_size()), 2)


def measure(case: Case, device: str, seconds: float, forms: Any = None) -> dict[str, Any]:
    """Time a case for about ``seconds`` and return its entry of the results file."""
    torch.compiler.reset()  # or a later shape finds the limit of recompilations reached
    data = make_input(case, device)
    oracle = Oracle(case, *data[:2])
    found = []
    for form, package, missing in forms or candidates(case, device):
        if missing:
            found.append(Candidate(form, package, status="unavailable", reason=missing))
        else:
            found.append(prepare(form, package, case, data, oracle, device))
    calls = {each.key: each.call for each in found if each.call is not None}
    floor = found[0].key
    rounds = _rounds(calls, seconds)
    cold = data[0].nbytes > CACHED
    timings = compare(calls, floor, rounds=rounds, cold=cold, device=device)
    if device == "cuda":
        found = [_cross_checked(each) for each in found]
    x = data[0]
    return {
        "shape": list(case.shape),
        "dtype": case.dtype,
        "allocator": case.allocator,
        "direction": case.direction,
        "memory": case.memory,
        "caches": "cold" if cold else "warm",
        "floor": found[0].form.name,
        **{f"floor_{k}": round(getattr(timings[floor], k), 3) for k in ("us", "us_low", "us_high")},
        "bytes_x": x.numel() * x.element_size(),
        "rows": [_row(each, timings.get(each.key)) for each in found],
    }


def _cross_checked(each: Candidate) -> Candidate:
    """Return the candidate with its time by Triton's ``do_bench``."""
    try:
        from triton.testing import do_bench
    except ImportError:
        return each
    if each.call is None:
        return each
    ms = do_bench(each.call, warmup=25, rep=100, return_mode="median")
    return replace(each, reason=f"triton.testing.do_bench: {1000 * ms / each.rotations:.2f} us")


def _rounds(calls: dict[str, Callable[[], Any]], seconds: float) -> int:
    """Return the number of rounds (5 to 25) that fit into a time, without cache flushes."""
    start = time.perf_counter()
    for call in calls.values():
        call()
    once = time.perf_counter() - start + 1e-3 * len(calls)
    return int(np.clip(seconds / once, 5, 25))


def _row(each: Candidate, timing: Any) -> dict[str, Any]:
    """Return one row of the results; calls that rotate two tensors count half."""
    share = 1 / each.rotations
    several = f"one of {each.rotations} rotations in a call" if each.rotations > 1 else ""
    row = {
        "form": each.form.name,
        "interleaved": each.form.interleaved,
        "mode": each.form.mode,
        "package": each.package,
        "passes": each.passes,
        **dict.fromkeys(("us", "ratio", "ratio_low", "ratio_high", "rounds")),
        "peak_extra_bytes": each.peak,
        "error": each.error,
        "status": each.status,
        "reason": "; ".join(filter(None, (several, each.reason))),
    }
    if timing is not None:
        row["us"] = round(timing.us * share, 3)
        for key in ("ratio", "ratio_low", "ratio_high"):
            row[key] = round(getattr(timing, key) * share, 4)
        row["rounds"] = timing.rounds
    return row
