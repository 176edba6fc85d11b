"""ncnn: the layer `RotaryEmbed`, in a net of that one layer."""

from typing import Any

import ncnn
import numpy as np

from engines.asking import BASE, Case

NAME, PACKAGES, LICENCE = "ncnn", ["ncnn"], "BSD-3-Clause"

NET = """7767517
4 4
Input x 0 1 x
Input cos 0 1 cos
Input sin 0 1 sin
RotaryEmbed rope 3 1 x cos sin y 0={}
"""


def each(interleaved: int) -> Any:
    """Return a function of x and positions; the caller makes cos and sin of each call."""
    net = ncnn.Net()
    net.opt.use_vulkan_compute = False
    net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = net.opt.use_fp16_packed = False
    net.opt.use_bf16_storage = False
    net.load_param_mem(NET.format(interleaved))
    net.load_model_mem(bytes(16))

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        angles = np.outer(at, BASE ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1]))
        run = net.create_extractor()
        given = {"x": x, "cos": np.cos(angles), "sin": np.sin(angles)}
        # a Mat looks at an array without keeping it
        kept = {name: np.ascontiguousarray(values, np.float32) for name, values in given.items()}
        for name, values in kept.items():
            run.input(name, ncnn.Mat(values))
        _, y = run.extract("y")
        return np.array(y).reshape(x.shape)

    return rotate


def cases() -> list[Case]:
    """Return what is asked of ncnn."""
    note = "the caller makes the table"
    return [
        Case("RotaryEmbed", "interleaved 0=0", each(0), note=note),
        Case("RotaryEmbed", "interleaved 0=1", each(1), note=note),
    ]
