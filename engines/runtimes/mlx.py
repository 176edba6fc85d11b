"""MLX on a processor: `mx.fast.rope`, `nn.RoPE` and the rotations of mlx-lm."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.models.rope_utils import initialize_rope

from engines.asking import BASE, HEAD_DIM, LONG, ORIGINAL, Case

NAME, PACKAGES, LICENCE = "MLX (with mlx-lm)", ["mlx", "mlx-cpu", "mlx-lm"], "MIT"

KINDS = {"float32": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}


def each(rope: Any, kind: str = "float32") -> Any:
    """Return a function of x and positions: MLX takes one offset for a run of positions."""

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        # a batch entry for each position, with an offset of its own
        rows = mx.array(x.transpose(1, 0, 2)[:, :, None].astype(np.float32)).astype(KINDS[kind])
        y = rope(rows, mx.array(at.astype(np.int32)))
        return np.array(y.astype(mx.float32))[:, :, 0].transpose(1, 0, 2).astype(x.dtype)

    return rotate


def whole(rope: Any) -> Any:
    """Return a function that asks for a run from 0, in one call, and returns some positions."""

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        run = np.zeros((len(x), 1, int(at.max()) + 1, x.shape[-1]), np.float32)
        run[:, 0, at] = x
        return np.array(rope(mx.array(run)))[:, 0, at].astype(x.dtype)

    return rotate


def fast(**more: Any) -> Any:
    """Return `mx.fast.rope` with some options."""
    options = {"dims": HEAD_DIM, "traditional": False, "base": BASE, "scale": 1.0} | more
    dims = options.pop("dims")
    return lambda x, offset: mx.fast.rope(x, dims, offset=offset, **options)


def cases() -> list[Case]:
    """Return what is asked of MLX."""
    name = "mx.fast.rope"
    return [
        Case(name, "traditional=False", each(fast())),
        Case(name, "traditional=True", each(fast(traditional=True))),
        Case(name, "traditional=False, dims=32", each(fast(dims=32))),
        Case(name, "traditional=False, scale=0.25", each(fast(scale=0.25))),
        Case(name, "traditional=False, x in float16", each(fast(), "float16")),
        Case(name, "traditional=False, x in bfloat16", each(fast(), "bfloat16")),
        Case(name, "base=None, freqs=4 * base**(2i/d)", each(fast(
            base=None, freqs=4.0 * BASE ** (mx.arange(0, HEAD_DIM, 2) / HEAD_DIM)))),
        Case("mlx.nn.RoPE", f"dims={HEAD_DIM}", each(nn.RoPE(HEAD_DIM))),
    ]  # fmt: skip


def rescaled(rule: dict[str, Any]) -> Case:
    """Return the case of a rule as mlx-lm reads it from a ``config.json``."""
    settings = rule | {"original_max_position_embeddings": ORIGINAL}
    by_length = rule["rope_type"] == "dynamic"  # by the end of a call
    rope = initialize_rope(HEAD_DIM, BASE, False, settings, ORIGINAL if by_length else LONG)
    rotate = whole(rope) if by_length else each(rope)
    return Case("mlx_lm.models.rope_utils.initialize_rope", type(rope).__name__, rotate)
