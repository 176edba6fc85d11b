"""What can be said of the Triton kernel without a GPU: its numbers, interpreted, and its code."""

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rope_minimal import rope_table

ROOT = Path(__file__).parents[2]
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def test_without_triton_the_import_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "ropebook.timing.fused", raising=False)
    with pytest.raises(ImportError, match=r"timing\.fused needs triton: pip install triton"):
        importlib.import_module("ropebook.timing.fused")


@pytest.mark.drawn(3, among="long")
@pytest.mark.skipif(torch.cuda.is_available(), reason="test_fused.py runs on the GPU here")
def test_the_interpreted_kernel_passes_every_test() -> None:
    # in a process of its own: triton reads the variable once, and the compiler's tests must not
    pytest.importorskip("triton", reason="triton is not installed")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*command, "tests/package/test_fused.py"],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "skipped" not in run.stdout


@pytest.mark.skipif(INTERPRETED, reason="the interpreter compiles nothing")
def test_without_interpreter_a_tensor_on_the_cpu_is_refused() -> None:
    pytest.importorskip("triton", reason="triton is not installed")
    from ropebook.timing.fused import apply_rope_fused

    with pytest.raises(ValueError, match=r"x must be on a GPU, got cpu .TRITON_INTERPRET=1"):
        apply_rope_fused(torch.ones(4, 8), *rope_table(range(4), 8))


@pytest.mark.skipif(INTERPRETED, reason="the interpreter compiles nothing")
@pytest.mark.parametrize("interleaved", [False, True], ids=["half", "interleaved"])
@pytest.mark.parametrize("kind", ["bf16", "fp32"])
def test_compiled_for_hopper_every_access_is_16_bytes_wide(kind: str, interleaved: bool) -> None:
    triton = pytest.importorskip("triton", reason="triton is not installed")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from ropebook.timing import fused

    # heads 128 wide, fully rotated; pointers and strides are multiples of 16, as the launcher sees
    constants = {
        "row_ptr": None, "D": 128, "W": 64, "INTERLEAVED": interleaved, "CONJUGATE": False,
        "EXACT": triton.language.float32, "BLOCK_H": fused.BLOCK_ROWS // fused.BLOCK_T,
        "BLOCK_T": fused.BLOCK_T, "BLOCK_W": 64, "BLOCK_REST": 1,
    }  # fmt: skip
    types = {"x_ptr": f"*{kind}", "y_ptr": f"*{kind}", "cos_ptr": "*fp32", "sin_ptr": "*fp32"}
    names = list(inspect.signature(fused._kernel.fn).parameters)
    signature = {n: "constexpr" if n in constants else types.get(n, "i32") for n in names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if n not in constants}
    source = ASTSource(fused._kernel, signature, constants, aligned)
    target, options = GPUTarget("cuda", 90, 32), {"num_warps": fused.NUM_WARPS}
    code = triton.compile(source, target=target, options=options).asm["ptx"]
    accesses = re.findall(r"(?:ld|st)\.global\S*", code)
    assert set(accesses) == {"ld.global.v4.b32", "st.global.v4.b32"}
