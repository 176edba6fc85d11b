"""ONNX: the operator of opset 23 in three runtimes, and the one that ONNX Runtime had before."""

from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from engines.asking import BASE, HEAD_DIM, Case

NAME, PACKAGES, LICENCE = "ONNX Runtime", ["onnxruntime", "onnx"], "MIT; Apache-2.0"

LONGEST = 2**17


@cache
def model(domain: str, kind: int = TensorProto.FLOAT, **options: Any) -> bytes:
    """Return a model of one node, which takes x, positions, and tables of cos and sin."""
    names = ["x", "at", "cos", "sin"] if domain else ["x", "cos", "sin", "at"]
    node = helper.make_node("RotaryEmbedding", names, ["y"], domain=domain, **options)
    whole = {"at": TensorProto.INT64}
    inputs = [helper.make_tensor_value_info(n, whole.get(n, kind), None) for n in names]
    graph = helper.make_graph(
        [node], "rope", inputs, [helper.make_tensor_value_info("y", kind, None)]
    )
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11).SerializeToString()


@cache
def table(width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin of positions below `LONGEST`: the caller makes them, from float64 here."""
    angles = np.outer(np.arange(LONGEST), BASE ** (-np.arange(0, width, 2) / width))
    return np.cos(angles), np.sin(angles)


def run(domain: str, engine: Any, width: int = HEAD_DIM, **options: Any) -> Any:
    """Return a function of x (N, T, D) and positions (T,)."""
    made: dict[Any, Any] = {}

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        half = x.dtype == np.float16
        if half not in made:
            kind = TensorProto.FLOAT16 if half else TensorProto.FLOAT
            made[half] = engine(model(domain, kind, **options))
        cos, sin = (t.astype(x.dtype) for t in table(width))
        feed = {"x": x[None], "at": at[None], "cos": cos, "sin": sin}
        return made[half].run(None, feed)[0][0]

    return rotate


def session(code: bytes) -> Any:
    """Return a session of ONNX Runtime on a processor."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    return onnxruntime.InferenceSession(code, settings, providers=["CPUExecutionProvider"])


def reference(code: bytes) -> Any:
    """Return the reference evaluator of the onnx package."""
    return ReferenceEvaluator(onnx.load_from_string(code))


def in_torch(x: torch.Tensor, at: torch.Tensor, **options: Any) -> torch.Tensor:
    """Return `torch.onnx.ops.rotary_embedding` of x."""
    cos, sin = (torch.tensor(t).to(x.dtype) for t in table(HEAD_DIM))
    return torch.onnx.ops.rotary_embedding(x[None], cos, sin, at[None], **options)[0]


def cases() -> list[Case]:
    """Return what is asked: tables are the caller's, so they hold `LONGEST` positions here."""
    ms, standard, twice = "com.microsoft.RotaryEmbedding", "ai.onnx.RotaryEmbedding-23", 2 * LONGEST
    tables = "the caller makes the table"
    return [
        Case(ms, "interleaved=0", run("com.microsoft", session), positions=twice, note=tables),
        Case(ms, "interleaved=1", run("com.microsoft", session, interleaved=1)),
        Case(ms, "interleaved=0, rotary_embedding_dim=32, num_heads",
             run("com.microsoft", session, 32, rotary_embedding_dim=32, num_heads=HEAD_DIM)),
        Case(ms, "interleaved=0, scale=0.25", run("com.microsoft", session, scale=0.25)),
        Case(ms, "interleaved=0, float16", run("com.microsoft", session), dtype=np.float16),
        Case(standard, "interleaved=0", run("", session), positions=twice, note=tables),
        Case(standard, "interleaved=1", run("", session, interleaved=1)),
        Case(standard, "interleaved=0, rotary_embedding_dim=32",
             run("", session, 32, rotary_embedding_dim=32)),
        Case(standard, "interleaved=0, float16", run("", session), dtype=np.float16),
        Case("onnx.reference", "interleaved=0", run("", reference), positions=4096),
        Case("onnx.reference", "interleaved=1", run("", reference, interleaved=1), positions=4096),
        Case("torch.onnx.ops.rotary_embedding", "interleaved=False", in_torch,
             positions=twice, dtype=torch.float32, note=tables),
        Case("torch.onnx.ops.rotary_embedding", "interleaved=True",
             lambda x, at: in_torch(x, at, interleaved=True), dtype=torch.float32),
    ]  # fmt: skip
