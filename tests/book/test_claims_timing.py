"""The claims of chapter 11 and of its appendix on CPUs, asked without a clock.

What can be counted is counted here, on any machine: operations, passes by hand, tensors held, page
faults, calls. Times stand in the text as what the named record shows, and no test repeats them.
"""

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks import __main__ as command
from benchmarks import machine
from rope_minimal import rope_table
from ropebook.timing import FORMS, moved_bytes, operations, peak_extra_bytes

PRODUCT, ROLLED, FOUR = "view_as_complex", "roll, signed sine", "four products, cat"
TEXTBOOK = "rotate_half"


# Operations and passes -----------------------------------------------------------------------


class Counting(float):
    """A number that counts what is done with it."""

    done = 0

    def _count(name):  # noqa: N805
        def operator(self, other):
            Counting.done += 1
            return Counting(getattr(float, name)(self, other))

        return operator

    __mul__, __add__, __sub__ = map(_count, ("__mul__", "__add__", "__sub__"))


def test_the_rotation_waits_for_memory():
    """Refuted if a pair costs other than six operations, or other bytes are moved for it.

    Operations are counted by numbers that count them, bytes by what PyTorch is asked to move.
    """
    a, b, cos, sin = (np.array([Counting(i)] * 5, object) for i in range(4))
    Counting.done = 0
    a * cos - b * sin, b * cos + a * sin
    arithmetic = Counting.done / 5
    assert arithmetic == 6
    for kind, expected in ((torch.float32, 0.375), (torch.bfloat16, 0.75)):
        x = torch.zeros(1, 64, 64, 64, dtype=kind)
        copy = moved_bytes(FORMS["copy_"].bind(x, *rope_table(range(64), 64)))
        assert arithmetic * (x.numel() / 2) / copy == expected
    x = torch.zeros(1, 64, 64, 64)
    call = FORMS[PRODUCT].bind(x, *rope_table(range(64), 64))  # which rotates, table and all
    assert arithmetic * (x.numel() / 2) / moved_bytes(call) == pytest.approx(0.375, rel=0.01)
    # four instructions a pair, two products and two fused ones; the peak counts each as two
    assert 4 * 2 / (4 * 2) / (67 / 3.35) < 1 / 10  # bytes: four numbers of two


@pytest.mark.parametrize(("heads", "share"), [(32, 1 / 32), (8, 1 / 8), (1, 1)])
def test_a_float32_table_beside_bfloat16_vectors(heads, share):
    """Refuted if a table has another share of the bytes."""
    x = torch.zeros(1, heads, 64, 128, dtype=torch.bfloat16)
    table = rope_table(range(64), 128)
    assert sum(t.nbytes for t in table) / (2 * x.nbytes) == share
    x = x.float()
    assert sum(t.nbytes for t in table) / (2 * x.nbytes) == share / 2


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
    """Refuted if PyTorch moves other bytes than the list written by hand."""
    x = torch.zeros(1, 64, 64, 64, dtype=kind)
    cos, sin = rope_table(torch.arange(64), 64)

    def passes(name):
        return moved_bytes(FORMS[name].bind(x, cos, sin)) / x.nbytes

    for name, steps in (BY_HAND if kind == torch.float32 else BY_HAND | BY_HAND_16).items():
        assert round(passes(name)) == sum(steps), name
    # for want of a complex type of bfloat16 parts; float16 has one, and PyTorch warns of it
    if kind == torch.bfloat16:
        pairs = x.unflatten(-1, (-1, 2))
        with pytest.raises(RuntimeError):
            torch.view_as_complex(pairs)
        assert torch.view_as_complex(pairs.half()).dtype == torch.complex32


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_the_functions_of_transformers_make_ten_passes(kind):
    """Refuted if Llama's or GPT-J's own function moves other than ten passes."""
    llama, gptj = (transformers_model(name) for name in ("llama", "gptj"))
    x, (cos, sin) = torch.zeros(1, 64, 64, 64, dtype=kind), rope_table(range(64), 64)
    twice = [torch.cat((t, t), -1).to(kind)[None] for t in (cos, sin)]
    moved = moved_bytes(lambda: llama.apply_rotary_pos_emb(x, x, *twice))
    assert round(moved / (2 * x.nbytes)) == 10  # queries and keys
    x, pairs = x.transpose(1, 2), [t.to(kind)[None] for t in (sin, cos)]
    moved = moved_bytes(lambda: gptj.apply_rotary_pos_emb(x, *pairs))
    assert round(moved / x.nbytes) == 10


def transformers_model(name):
    pytest.importorskip("transformers")
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


# The compiler --------------------------------------------------------------------------------


def held(name, kind):
    """How many tensors of the size of x a compiled call holds at its peak."""
    torch.compiler.reset()  # what was compiled with another switch is forgotten
    x = torch.randn(1, 8, 256, 128, generator=torch.manual_seed(0)).to(kind)
    call = FORMS[name].compiled().bind(x, *rope_table(range(256), 128))
    return round(peak_extra_bytes(call) / x.nbytes, 1)


@pytest.mark.drawn(3, among="long")
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_the_compiler_fuses_four_products_and_no_complex_one(kind):
    """Refuted if compiled code holds other tensors, or writes a loop for a complex product."""

    def generated(name):
        torch.compiler.reset()
        x, table = torch.zeros(1, 8, 256, 128, dtype=kind), rope_table(range(256), 128)
        with torch._inductor.config.patch(fx_graph_cache=False):
            call = FORMS[name].compiled().bind(x, *table)
            _, (code,) = torch._inductor.utils.run_and_get_code(call)
        return code

    assert held(FOUR, kind) == 1  # the result
    code = generated(FOUR)
    assert "aten.mul.Tensor(" not in code
    assert code.count("empty_strided_cpu((1, 8, 256, 128)") == 1  # one tensor, written in loops
    code = generated(PRODUCT)
    assert code.count("aten.mul.Tensor(") == 1
    assert code.count("cpp_pybinding(") == (2 if kind == torch.bfloat16 else 0)  # they convert
    if kind == torch.bfloat16:
        assert held(PRODUCT, kind) == 4  # float32 before and after the product


@pytest.mark.drawn(3, among="long")
def test_on_a_cpu_the_compiler_keeps_the_swapped_copy():
    """Refuted if `rotate_half`, compiled, holds one tensor, or two in spite of the switch."""
    assert held(TEXTBOOK, torch.float32) == 2
    assert held(FOUR, torch.float32) == 1
    with torch._inductor.config.patch(force_pointwise_cat=True):
        assert held(TEXTBOOK, torch.float32) == 1


# Calls ---------------------------------------------------------------------------------------


def asked(call):
    """Count the operators that ran and are not views, as PyTorch's profiler saw them.

    Of operators inside another the outer one counts; what only allocates or looks counts not.
    """
    call()
    with profile(activities=[ProfilerActivity.CPU]) as record:
        call()
    moves = {"mul", "add", "sub", "neg", "cat", "stack", "roll", "addcmul_", "_to_copy"}
    found = 0
    for event in record.events():
        name, parent = event.name.removeprefix("aten::"), event.cpu_parent
        inside = False
        while parent:
            inside |= parent.name.removeprefix("aten::") in moves
            parent = parent.cpu_parent
        found += name in moves and not inside
    return found


def test_a_token_asks_for_as_many_operators_as_a_prompt(monkeypatch):
    """Refuted if PyTorch's profiler sees other numbers of operators, for one token or 4,096."""
    monkeypatch.setenv("KINETO_LOG_LEVEL", "99")
    llama = transformers_model("llama")
    for length in (1, 4096):
        x, table = torch.zeros(1, 2, length, 128), rope_table(range(length), 128)
        for name, count in ((PRODUCT, 1), (ROLLED, 3), (TEXTBOOK, 5), (FOUR, 7)):
            call = FORMS[name].bind(x, *table)
            assert asked(call) == len(operations(call)) == count, name
        assert asked(FORMS[PRODUCT].bind(x.bfloat16(), *table)) == 3
        twice = [torch.cat((t, t), -1)[None] for t in table]
        assert asked(lambda x=x, twice=twice: llama.apply_rotary_pos_emb(x, x, *twice)) == 10


# Memory --------------------------------------------------------------------------------------


@pytest.mark.drawn(1)
@pytest.mark.skipif(not machine.has_glibc(), reason="the allocator is not glibc's")
def test_new_memory_costs_page_faults():
    """Refuted if the system counts few page faults with the default allocator, or many without.

    Each allocator has a process of its own. An aligned block leaves a splinter behind that parts
    it from the next; glibc joins them once it holds seven. So the counting begins after some calls.
    """
    code = (
        "import resource, torch\n"
        "x = torch.ones(9 * 2**20)  # 36 MiB\n"
        "def use():\n"
        "    x.clone()\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "counts = [use() for _ in range(20)]\n"
        "print(counts[-1] - counts[-6])\n"
    )
    faults = {}
    huge = "glibc.malloc.hugetlb=1"  # huge pages, where the system has them to give
    for name, tunables in (("reused", command.KEEP), ("fresh", ""), ("huge", huge)):
        environment = {**os.environ, "GLIBC_TUNABLES": tunables}
        faults[name] = int(subprocess.check_output([sys.executable, "-c", code], env=environment))
    assert faults["reused"] < 5 * 4
    assert min(faults["fresh"], faults["huge"]) >= 5 * 18  # 36 MiB in pages of 2 MiB
