"""Nothing is timed before it is right, and the committed results are what the command writes."""

import json
import os
import platform
import re
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import torch

from benchmarks import __main__ as command
from benchmarks import angles, layer, machine, moves, peers
from benchmarks import measure as bench
from benchmarks.measure import Case, Oracle, candidates, make_input, measure, prepare
from rope_minimal import apply_rope
from ropebook.timing import FORMS, Form, Timing

ROOT = Path(__file__).parents[2]
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
TINY = Case((2, 3, 24, 16))
BACKWARD = replace(TINY, direction="forward+backward")


@pytest.fixture(autouse=True)
def quiet_profiler(monkeypatch):
    monkeypatch.setenv("KINETO_LOG_LEVEL", "99")


def check(form, case=TINY, package="test"):
    data = make_input(case, "cpu")
    return prepare(form, package, case, data, Oracle(case, *data[:2]), "cpu")


def form(rotate, interleaved=False):
    return Form("made up", interleaved, None, rotate)


class Forgetful(torch.autograd.Function):
    """Right forward; its gradient is not rotated back."""

    @staticmethod
    def forward(ctx, x, cos, sin):
        return apply_rope(x, cos, sin)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None, None


# the gate


@pytest.mark.parametrize(
    ("rotate", "interleaved", "case", "status", "reason"),
    [
        (apply_rope, False, TINY, "ok", "^$"),
        (apply_rope, True, TINY, "wrong", r"off by \d\.\d.* not timed"),  # the other layout
        (lambda x, c, s: apply_rope(x, c, -s), False, TINY, "wrong", "off by"),  # turned back
        (lambda x, c, s: x, False, TINY, "wrong", "off by"),
        (lambda x, c, s: x * torch.nan, False, TINY, "wrong", "off by nan"),
        (lambda x, c, s: x[:, :1], False, TINY, "unavailable", r"returns the shape \(2, 1, 24, 16"),
        (lambda x, c, s: 1 / 0, False, TINY, "unavailable", "ZeroDivisionError: division by zero"),
        (lambda x, c, s: os.stat("/no/such"), False, TINY, "unavailable", "^FileNot[^/]*$"),
        (apply_rope, False, BACKWARD, "ok", "^$"),
        (Forgetful.apply, False, TINY, "ok", "^$"),
        (Forgetful.apply, False, BACKWARD, "wrong", "off by"),
        (lambda x, c, s: apply_rope(x.detach(), c, s), False, BACKWARD, "unavailable", "grad"),
    ],
)
def test_only_a_right_form_gets_a_call(rotate, interleaved, case, status, reason):
    found = check(form(rotate, interleaved), case)
    assert found.status == status
    assert re.search(reason, found.reason)
    assert (found.call is not None) == (status == "ok")


def test_a_wrong_form_stands_in_the_results_without_a_time(monkeypatch):
    calls = []

    def wrong(x, cos, sin):
        calls.append(x)
        return x

    rows = measure(
        TINY,
        "cpu",
        seconds=0.01,
        forms=[(FORMS["copy_"], "rope_minimal", ""), (form(wrong), "test", "")],
    )["rows"]
    assert [row["status"] for row in rows] == ["ok", "wrong"]
    assert rows[0]["us"] > 0
    assert rows[0]["ratio"] == 1
    assert rows[1]["us"] is rows[1]["ratio"] is rows[1]["rounds"] is None
    assert rows[1]["error"] > 1
    assert len(calls) == 1  # the check and no more


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("direction", ["forward", "forward+backward"])
def test_every_form_and_every_peer_passes_the_gate(dtype, direction):
    case = replace(TINY, dtype=dtype, direction=direction)
    seen = set()
    for each, package, missing in candidates(case, "cpu"):
        seen.add(package)
        if each.mode == "eager" and not missing:
            found = check(each, case, package)
            if package == "torch" and case.backward:  # the operator has no gradient
                assert "no autograd formula" in found.reason
                continue
            assert (found.status, found.reason) == ("ok", ""), (package, each.name)
            assert found.peak is not None
    assert seen == {"rope_minimal", "transformers", "rotary-embedding-torch", "torch"}


def test_a_peer_that_makes_16_bit_positions_is_wrong_past_256():
    case = Case((1, 1, 512, 16), "bfloat16")
    (lucidrains,) = peers.rotary_embedding_torch(0)
    assert check(lucidrains, case).status == "wrong"


def test_clays_classes_know_no_offset():
    case = Case((2, 3, 1, 16))
    assert check(FORMS["Clay, half-split"], case).status == "wrong"
    assert check(FORMS["Rotator"], case).status == "ok"


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers.models.llama.modeling_llama", None)
    (found,) = [c for c in candidates(TINY, "cpu") if c[1] == "transformers"]
    assert found[2] == "not here: transformers.models.llama.modeling_llama"


def test_a_long_dense_matrix_is_not_made():
    missing = {f.name: why for f, _, why in candidates(Case((1, 1, 2048, 16)), "cpu")}
    assert "timed up to 1024" in missing["dense matrix"]


def test_there_and_back_the_floor_is_two_copies():
    there, back = (check(FORMS["copy_"], case) for case in (TINY, BACKWARD))
    assert (there.passes, back.passes) == (2, 4)


def test_a_pair_of_tensors_counts_half():
    (hugging_face,) = peers.transformers(0)
    found = check(hugging_face, Case((4, 8, 64, 16)))
    assert found.rotations == 2
    assert found.passes == pytest.approx(10, abs=0.5)  # and the tables


# what a graphics processor adds, as far as it can be followed without one


def test_a_graph_of_many_calls_counts_one(monkeypatch):
    graphed = replace(FORMS["clone"], mode="graph")
    assert check(graphed).status == "unavailable"  # there is no graph on a CPU
    monkeypatch.setattr(bench, "_captured", lambda call: lambda: [call() for _ in range(20)])
    found = check(graphed)
    assert (found.rotations, found.peak) == (20, check(FORMS["clone"]).peak)
    row = bench._row(
        found,
        Timing(
            60, us_low=50, us_high=70, ratio=30, ratio_low=20, ratio_high=40, rounds=5, repeats=1
        ),
    )
    assert (row["us"], row["ratio"], row["ratio_low"], row["ratio_high"]) == (3, 1.5, 1, 2)
    assert row["reason"] == "one of 20 rotations in a call"


def test_one_token_on_cuda_is_measured_with_graphs_too():
    for case, count in ((TINY, 0), (Case((2, 3, 1, 16)), 1)):
        modes = [each.mode for each, _, _ in candidates(case, "cuda")]
        assert modes.count("graph") == count * len(FORMS)
        assert modes.count("compiled, graph") == count * len(bench.COMPILED)


def test_a_kernel_goes_into_a_graph_too(monkeypatch):
    kernel = replace(form(apply_rope), mode="fused")
    monkeypatch.setitem(peers.CUDA, "rope_minimal", lambda first: [kernel])
    modes = [each.mode for each, _, _ in candidates(Case((2, 3, 1, 16)), "cuda")]
    assert modes.count("fused, graph") == 1


def test_kernels_that_are_not_here_are_named(monkeypatch):
    for name in ("liger_kernel.transformers.rope", "flash_attn.layers.rotary"):
        monkeypatch.setitem(sys.modules, name, None)
    missing = {
        package for _, package, why in candidates(TINY, "cuda") if why.startswith("not here")
    }
    assert missing >= {"liger-kernel", "flash-attn"}


def test_triton_is_asked_too(monkeypatch):
    fake = types.ModuleType("triton.testing")
    fake.do_bench = lambda call, **options: 0.25
    monkeypatch.setitem(sys.modules, "triton", types.ModuleType("triton"))
    monkeypatch.setitem(sys.modules, "triton.testing", fake)
    found = bench._cross_checked(check(FORMS["clone"]))
    assert found.reason == "triton.testing.do_bench: 250.00 us"


# the command


def test_the_cases_are_many_and_different():
    made = {name: command.cases(name) for name in ("reused", "fresh", "cuda")}
    assert all(len(set(cases)) == len(cases) for cases in made.values())
    assert {(c.dtype, c.direction, c.memory) for c in made["reused"] if c.shape[2] == 4096} == {
        (dtype, *way)
        for dtype in ("float32", "bfloat16")
        for way in (
            ("forward", "contiguous"),
            ("forward+backward", "contiguous"),
            ("forward", "transposed"),
        )
    }
    assert {c.shape for c in made["fresh"]} < {c.shape for c in made["reused"]}


@pytest.mark.parametrize(
    ("text", "name"),
    [("AMD EPYC 2 core", "amd-epyc-2-core"), ("H200", "h200"), ("Intel(R)  x/../y", "intel-r-x-y")],
)
def test_a_machine_has_a_safe_name(text, name):
    assert machine.slug(text) == name


def test_a_name_of_nothing_is_refused():
    with pytest.raises(ValueError, match=r"name must contain a letter or a digit, got '\.\./'"):
        machine.slug("../")


def test_the_description_names_no_host():
    about = machine.describe("cpu")
    assert about["gpu"] is None
    assert about["cores"] >= 1
    assert about["memory_gib"] > 0
    assert platform.node() not in json.dumps(about) or len(platform.node()) < 4


@pytest.mark.skipif(not machine.has_glibc(), reason="the allocator is not glibc's")
def test_reused_memory_is_kept():
    """A block freed and asked for again brings no page fault: counted by the kernel, not timed."""
    code = (
        "import ctypes, resource\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]\n"
        "libc.free.argtypes = [ctypes.c_void_p]\n"
        "def use():\n"
        "    block = libc.malloc(2**26); ctypes.memset(block, 1, 2**26); libc.free(block)\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "print(-use() + use())\n"
    )
    faults = {}
    for name, tunables in (("reused", command.KEEP), ("fresh", "")):
        environment = {**os.environ, "GLIBC_TUNABLES": tunables}
        run = [sys.executable, "-c", code]
        faults[name] = int(subprocess.check_output(run, env=environment))
    assert faults["reused"] < 16 < faults["fresh"]


# the results


GRAPHS = ("graph", "compiled, graph", "fused, graph")


def rows_schema():
    number, text = {"type": ["number", "null"]}, {"type": "string"}
    row = {
        "form": text,
        "interleaved": {"enum": [True, False, None]},
        "mode": {"enum": ["eager", "compiled", "fused", *GRAPHS]},
        "package": text,
        **dict.fromkeys(("passes", "us", "ratio", "ratio_low", "ratio_high", "error"), number),
        "rounds": {"type": ["integer", "null"]},
        "peak_extra_bytes": {"type": ["integer", "null"]},
        "status": {"enum": ["ok", "wrong", "unavailable"]},
        "reason": text,
    }
    return exactly(row)


def exactly(properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def schema():
    number, text = {"type": "number", "exclusiveMinimum": 0}, {"type": "string"}
    texts = {"type": "object", "additionalProperties": text}
    count = {"type": "integer", "minimum": 1}
    about = {
        "name": {"type": "string", "pattern": "^[a-z0-9-]+$"},
        **dict.fromkeys(("processor", "system"), text),
        **dict.fromkeys(("cores", "threads"), count),
        "memory_gib": number,
        "caches": texts,
        "gpu": {"type": ["string", "null"]},
    }
    case = {
        "shape": {"type": "array", "items": count, "minItems": 4, "maxItems": 4},
        "dtype": {"enum": ["float32", "bfloat16"]},
        "allocator": {"enum": ["reused", "fresh", "cuda"]},
        "direction": {"enum": ["forward", "forward+backward"]},
        "memory": {"enum": ["contiguous", "transposed"]},
        "floor": {"const": "copy_"},
        "caches": {"enum": ["warm", "cold"]},
        **dict.fromkeys(("floor_us", "floor_us_low", "floor_us_high"), number),
        "bytes_x": count,
        "rows": {"type": "array", "items": rows_schema(), "minItems": len(FORMS)},
    }
    made = exactly(
        {
            "schema": {"const": 1},
            "machine": exactly(about),
            "versions": texts,
            "date": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"},
            "command": {"const": "make bench"},
            "cases": {"type": "array", "items": exactly(case), "minItems": 1},
        }
    )
    made["properties"]["moves"] = moves_schema()  # an older record has none
    made["properties"]["layer"] = layer_schema()  # a record of a GPU has it
    made["properties"]["angles"] = angles_schema()  # and this
    made["properties"]["machine"]["properties"]["instructions"] = text  # an older one has none
    return made


def moves_schema():
    number = {"type": "number", "exclusiveMinimum": 0}
    numbers = dict.fromkeys(("us", "ratio", "ratio_low", "ratio_high"), number)
    row = exactly({"call": {"type": "string"}, **numbers})
    shape = {"type": "array", "items": {"type": "integer", "minimum": 1}}
    dtype, rows = {"enum": ["float32", "bfloat16"]}, {"type": "array", "items": row, "minItems": 8}
    entry = exactly({"shape": shape, "dtype": dtype, "rows": rows})
    return {"type": "array", "items": entry, "minItems": 1}


def layer_schema():
    number, count = {"type": "number", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}
    row = exactly({"call": {"type": "string"}, "us": number, "us_low": number, "us_high": number})
    rows = {"type": "array", "items": row, "minItems": 4, "maxItems": 4}
    return exactly({"texts": count, "tokens": count, "rows": rows})


def angles_schema():
    number, text = {"type": "number", "exclusiveMinimum": 0}, {"type": "string"}
    row = exactly({"setting": text, "product": text, "dtype": text, "error": number})
    rows = {"type": "array", "items": row, "minItems": 9, "maxItems": 9}
    return exactly({"date": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"}, "rows": rows})


def test_angles_are_asked_under_autocast_and_with_tf32():
    """A CPU rounds the matrix product under autocast alone; what was set before is set again."""
    before = torch.get_float32_matmul_precision()
    rows = angles.measure("cpu")
    jsonschema.validate({"date": "2026-11-28", "rows": rows}, angles_schema())
    assert torch.get_float32_matmul_precision() == before
    rounded = [row["product"] for row in rows if row["dtype"] == "bfloat16"]
    assert rounded == ["p[:, None] @ theta[None]"]
    assert {row["error"] for row in rows if row["dtype"] == "float32"} == {0.0002422}


def test_a_layer_is_timed_with_its_rotation(monkeypatch):
    sizes = {"WIDTH": 32, "HEADS": 4, "KV_HEADS": 2, "HEAD": 8, "MLP": 48, "TEXTS": 2, "TOKENS": 12}
    for name, size in sizes.items():
        monkeypatch.setattr(layer, name, size)
    made = layer.calls("cpu")
    shapes = [tuple(y.shape) for y in made["products"]()]
    assert shapes == [(24, 64), (24, 32), (24, 96), (24, 32)]
    assert made["attention"]().shape == (2, 4, 12, 8)
    for name in ("rotation, textbook", "rotation, compiled"):
        q, k = made[name]()
        assert (q.shape, k.shape) == ((2, 4, 12, 8), (2, 2, 12, 8))
    torch.testing.assert_close(q, made["rotation, textbook"]()[0], rtol=0, atol=2**-5)
    jsonschema.validate(layer.measure("cpu", rounds=1), layer_schema())


def test_moves_of_a_cache_are_right_before_they_are_timed(monkeypatch):
    (entry,) = found = moves.measure("cpu", seconds=0.01, quick=True)
    jsonschema.validate(found, moves_schema())
    assert entry["rows"][0]["call"] == "copy_"
    assert entry["rows"][0]["ratio"] == 1
    assert "move_keys, interleaved" in moves.table(entry)
    monkeypatch.setattr(moves, "move_keys", lambda keys, delta, rope: rope(keys, -delta))
    with pytest.raises(ArithmeticError, match="not timed"):
        moves.calls(moves.SMALL, torch.float32, "cpu")


@pytest.fixture(params=RESULTS, ids=lambda path: path.stem)
def results(request):
    return request.param, json.loads(request.param.read_text(encoding="utf-8"))


def test_there_are_results():
    assert RESULTS


def test_the_results_follow_the_schema(results):
    path, found = results
    jsonschema.validate(found, schema())
    assert found["machine"]["name"] == path.stem


def test_the_results_were_measured_with_the_pinned_versions(results):
    pins = "\n".join((ROOT / f"requirements{kind}.txt").read_text() for kind in ("", "-dev"))
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", pins, re.M))
    used = results[1]["versions"]
    if results[1]["machine"]["gpu"]:
        pytest.skip("a GPU is measured with the build of torch that is there")
    assert {"python", "torch", "numpy", "transformers", "rotary-embedding-torch"} <= set(used)
    for package in set(used) & set(pinned):
        assert used[package].split("+")[0] == pinned[package], package


def test_the_results_have_every_case_and_every_form(results):
    cases = results[1]["cases"]
    for case in cases:
        ok = [row for row in case["rows"] if row["status"] == "ok"]
        # the package's own rotation may have changed since, and leaves the record then
        textbook = {form for form in FORMS if not form.startswith("apply_rope")}
        assert {row["form"] for row in case["rows"]} >= textbook
        assert all(
            row["us"] and row["ratio_low"] <= row["ratio"] <= row["ratio_high"] for row in ok
        )
        rest = [row for row in case["rows"] if row["status"] != "ok"]
        assert all(row["us"] is None and row["reason"] for row in rest)
        assert not any(re.search(r"(?<!\w)/\w", row["reason"]) for row in rest)
        count = case["bytes_x"] // (4 if case["dtype"] == "float32" else 2)
        assert count == torch.Size(case["shape"]).numel()
    allocators = {case["allocator"] for case in cases}
    want = [
        str(case)
        for name in ("reused", "fresh", "cuda")
        if name in allocators
        for case in command.cases(name)
    ]
    keys = ("dtype", "allocator", "direction", "memory")
    assert [f"{tuple(c['shape'])} {' '.join(c[k] for k in keys)}" for c in cases] == want
