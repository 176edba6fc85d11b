"""OpenVINO: the rotation of a model that its compiler recognises and fuses."""

from typing import Any

import numpy as np
import openvino
from openvino import opset13 as ops

from engines.asking import BASE, HEAD_DIM, Case

NAME, PACKAGES, LICENCE = "OpenVINO", ["openvino"], "Apache-2.0"


def model(precision: str) -> Any:
    """Return a compiled model: x (1, heads, T, D) times cos, plus its halves swapped times sin."""
    names = ("x", "cos", "sin")
    x, cos, sin = (ops.parameter([1, -1, -1, HEAD_DIM], np.float32, name=n) for n in names)
    half = HEAD_DIM // 2
    low, high = (
        ops.slice(x, np.array([a]), np.array([b]), np.array([1]), np.array([3]))
        for a, b in ((0, half), (half, 2**31 - 1))
    )
    swapped = ops.concat([ops.multiply(high, np.float32(-1.0)), low], axis=-1)
    y = ops.add(ops.multiply(x, cos), ops.multiply(swapped, sin))
    core = openvino.Core()
    return core.compile_model(
        openvino.Model([y], [x, cos, sin]), "CPU", {"INFERENCE_PRECISION_HINT": precision}
    )


def each(precision: str) -> Any:
    """Return a function of x and positions."""
    compiled = model(precision)

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        angles = np.outer(at, BASE ** (-np.arange(0, HEAD_DIM, 2) / HEAD_DIM))
        whole = np.concatenate([angles, angles], axis=-1)[None, None]
        tables = (np.cos(whole), np.sin(whole))
        (y,) = compiled([x[None], *(t.astype(np.float32) for t in tables)]).values()
        return y[0]

    return rotate


def kinds(precision: str) -> list[str]:
    """Return the kinds of operators that the compiled model runs."""
    run = model(precision).get_runtime_model().get_ops()
    return sorted({str(op.get_rt_info()["layerType"].astype(str)) for op in run})


def cases() -> list[Case]:
    """Return what is asked of OpenVINO."""
    note = "the caller makes the table; the graph is half-split as given"
    return [
        Case("RoPE, fused", "INFERENCE_PRECISION_HINT=f32", each("f32"), note=note),
        Case("RoPE, fused", "INFERENCE_PRECISION_HINT=bf16", each("bf16"), note=note),
    ]


def facts() -> list[dict[str, Any]]:
    """Return whether the compiler has recognised the rotation."""
    return [{"topic": "fusion", "says": "operators of the compiled model", "value": kinds("f32")}]
