"""The claims of chapter 10, against counts by hand and against the recorded measurements.

No clock runs here. The bounds are wide enough for another quiet measurement of the same machine;
if one fails after `make bench`, the machine was busy or the chapter must change.
"""

from pathlib import Path

import numpy as np
import pytest
import sympy as sp
import torch

from rope_minimal import rope_table
from rope_minimal.timing import FORMS, moved_bytes, records

TESTS = Path(__file__).parent
PROMPT, TOKEN = [1, 32, 4096, 128], [8, 32, 1, 128]


def ratios(shape=PROMPT, dtype="float32", allocator="warm", direction="forward"):
    """Return {(form, mode): row} of one recorded case, for the rows that were timed."""
    wanted = [shape, dtype, allocator, direction, "contiguous"]
    names = ("shape", "dtype", "allocator", "direction", "memory")
    for record in records(TESTS):
        for case in record["cases"]:
            if not record["machine"]["gpu"] and [case[n] for n in names] == wanted:
                return {(r["form"], r["mode"]): r for r in case["rows"] if r["status"] == "ok"}
    pytest.fail(f"the case {wanted} is not in benchmarks/results: run `make bench`")


def copies(case, form, mode="eager"):
    return case[form, mode]["ratio"]


def test_the_rotation_waits_for_memory():
    a, b, cos, sin = sp.symbols("a b cos sin")
    operations = sp.count_ops([a * cos - b * sin, b * cos + a * sin])
    assert [operations / (4 * size) for size in (4, 2)] == [0.375, 0.75]
    assert round(67 / 4.8) == 14
    assert 0.75 / (67 / 4.8) < 0.1


# reads and writes of each operator in units of N, by hand; float32, and 16 bit where it differs
BY_HAND = {
    "rotate_half": (1, 2, 2, 2, 3),  # minus, cat, two products, sum
    "rotate_every_two": (1, 2, 2, 2, 3),
    "four products, cat": (1, 1, 1.5, 1, 1, 1.5, 2),
    "four products, stack": (1, 1, 1.5, 1, 1, 1.5, 2),
    "addcmul, cat": (1, 1.5, 1, 1.5, 2),
    "roll, signed sine": (2, 2, 3),
    "three kernels": (2, 1.5, 1.5),
    "view_as_complex": (2,),
    "Clay, interleaved": (1, 1, 1, 2, 2, 3),
}
BY_HAND_16 = {"view_as_complex": (3, 4, 3), "Clay, interleaved": (1, 1, 1, 3, 3, 6)}


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_passes_over_memory(kind):
    x = torch.zeros(1, 64, 64, 64, dtype=kind)
    cos, sin = rope_table(torch.arange(64), 64)

    def passes(name):
        return moved_bytes(FORMS[name].bind(x, cos, sin)) / x.nbytes

    for name, steps in (BY_HAND if kind == torch.float32 else BY_HAND | BY_HAND_16).items():
        assert round(passes(name)) == sum(steps), name
    if kind == torch.float32:
        assert round(passes("apply_rope, interleaved")) == 2
        assert round(passes("apply_rope, half-split")) <= 5


def test_bytes_predict_the_prompt():
    rows = [
        r
        for (form, mode), r in ratios().items()
        if mode == "eager" and r["passes"] and r["interleaved"] is not None
        if not form.startswith("apply_rope,")
    ]
    assert len(rows) >= 12
    off = [row["ratio"] / (row["passes"] / 2) for row in rows]
    assert 0.8 < min(off) <= max(off) < 2.5
    pairs = np.log([[row["passes"], row["ratio"]] for row in rows]).T
    assert np.corrcoef(pairs)[0, 1] > 0.85
    assert 4.5 < copies(ratios(), "rotate_half") < 8
    assert copies(ratios(), "view_as_complex") < 1.5


def test_half_the_bytes_and_half_rows():
    whole, half = ratios(), ratios(dtype="bfloat16")
    assert half["rotate_half", "eager"]["us"] < 0.8 * whole["rotate_half", "eager"]["us"]
    for form, passes in (("four products, cat", 9), ("three kernels", 5)):
        excess = [copies(case, form) / (passes / 2) for case in (whole, half)]
        assert excess[1] > max(1.5, excess[0]), form


def test_the_complex_form_is_the_fastest_that_runs_operator_by_operator():
    case = ratios()
    rivals = {form: row["ratio"] for (form, mode), row in case.items()
              if mode == "eager" and row["interleaved"] is False}  # fmt: skip
    assert min(rivals.values()) > copies(case, "view_as_complex")


def test_new_memory_costs_more_than_the_rotation():
    warm, cold = ratios(), ratios(allocator="cold")
    assert copies(warm, "clone") < 1.5
    assert copies(cold, "clone") > 3
    assert copies(cold, "rotate_half") > 3 * copies(warm, "rotate_half")
    x_bytes = 4 * np.prod(PROMPT)
    assert cold["rotate_half", "eager"]["peak_extra_bytes"] == 3 * x_bytes


def test_what_the_compiler_makes_of_it():
    case = ratios()
    best = copies(case, "four products, cat", "compiled")
    assert best < 1.7
    assert copies(case, "rotate_half", "compiled") > 1.4 * best


def test_there_and_back():
    there, both = ratios(), ratios(direction="forward+backward")
    for name in ("view_as_complex", "rotate_half"):
        assert 1 / 1.7 < copies(both, name) / copies(there, name) < 1.7
    assert copies(both, "view_as_complex") < 1.6
    assert copies(both, "rotate_half") > 4


def test_one_token_is_a_matter_of_calls():
    case = ratios(shape=TOKEN)
    fastest = copies(case, "view_as_complex")
    assert copies(case, "rotate_half") > 1.4 * 10 / 2
    assert fastest > 2
    turning = [row["ratio"] for row in case.values() if row["interleaved"] is not None]
    assert min(turning) == fastest
    for form in ("rotate_half", "addcmul, cat", "rotate_every_two", "four products, stack"):
        assert copies(case, form) > 1.4 * fastest
