"""Apache TVM: the rotation of its library for language models, compiled for a processor."""

from typing import Any

import numpy as np
import tvm
from tvm.relax.frontend.nn.llm.kv_cache import _prepare_yarn_rope_scaling
from tvm.relax.frontend.nn.llm.position_embedding import llama_rope_with_position_map

from engines.asking import BASE, HEAD_DIM, LONG, ORIGINAL, RULES, Case, said

NAME, PACKAGES, LICENCE = "Apache TVM", ["apache-tvm", "apache-tvm-ffi"], "Apache-2.0"


def each(kind: str = "float32", width: int | None = None, scale: float = 1.0, **rule: Any) -> Any:
    """Return a function of x (N, T, D) and positions: each row of x is one call of T tokens."""
    scaling = _prepare_yarn_rope_scaling(rule, BASE)  # as its cache of keys does
    run = tvm.compile(
        llama_rope_with_position_map(BASE, scale, HEAD_DIM, 1, 1, kind, scaling, width), "llvm"
    )["main"]

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        found = []
        for one in np.repeat(x[:, :, None], 3, axis=2):  # query, key and value
            given = [tvm.runtime.tensor(array) for array in (one, at.astype(np.int32))]
            out = [tvm.runtime.tensor(np.empty_like(one[:, :1])) for _ in "qkv"]
            run(*given, *out, 1)
            found.append(out[0].numpy()[:, 0])
        return np.stack(found)

    return rotate


def cases() -> list[Case]:
    """Return what is asked of TVM."""
    name = "llama_rope_with_position_map"
    return [
        Case(name, "rope_scaling={}", each()),
        Case(name, 'rope_scaling=dict(rope_type="gptj")', each(rope_type="gptj")),
        Case(name, "rotary_dim=32", each(width=32)),
        Case(name, "scale=0.25", each(scale=0.25)),
        Case(name, 'dtype="float16"', each("float16"), dtype=np.float16),
    ]


def rescaled(rule: dict[str, Any]) -> Case:
    """Return the case of a rule in TVM's words."""
    kind, name = rule["rope_type"], "llama_rope_with_position_map"
    if kind == "linear":
        scale = 1.0 / rule["factor"]
        return Case(name, f"scale={scale:g}", each(scale=scale))
    if kind == "yarn" and rule.keys() <= {"rope_type", "factor", "beta_fast", "beta_slow"}:
        rule = {"beta_fast": 32, "beta_slow": 1} | rule
    elif kind != "llama3":
        raise NotImplementedError(kind)
    rotate = each(**rule, original_max_position_embeddings=ORIGINAL)
    return Case(name, f"rope_type={kind!r}", rotate)


def facts() -> list[dict[str, Any]]:
    """Return what one more call shows."""
    lengths = {"original_max_position_embeddings": ORIGINAL, "max_position_embeddings": LONG}
    try:
        each(**RULES["longrope"], **lengths)
    except tvm.error.DiagnosticError as error:
        says = "LongRoPE, whose two lists are an argument of the compiled function, does not build"
        return [{"topic": "LongRoPE", "says": says, "value": said(error)}]
    return []
