"""What surprised, each with the lines that reproduce it: the last one's value is in the record."""

import ast
import json
import os
import subprocess
import sys
from typing import Any

from . import RUNTIMES

__all__ = ["FINDINGS", "again", "value_of"]

FINDINGS: dict[str, tuple[str, str]] = {
    "litgpt-yarn": ("litgpt", """
import torch
from litgpt.model import build_rope_cache
yarn = {"factor": 4, "beta_fast": 32, "beta_slow": 1, "original_max_seq_len": 4096}
cos, sin = build_rope_cache(2, 64, extra_config=yarn)
[round(float(torch.atan2(sin[1, i], cos[1, i])) * 10000 ** (i / 32), 4) for i in (0, 31)]
"""),
    "megatron-cos-sin": ("megatron", """
import torch
from megatron.core.models.common.embeddings.rope_utils import apply_rotary_pos_emb_with_cos_sin
x, cos, sin = torch.eye(4)[:1, None, None], torch.ones(1, 2), torch.zeros(1, 2)  # position 0
[round(float(v), 4) for v in apply_rotary_pos_emb_with_cos_sin(x, cos, sin)[0, 0, 0]]
"""),
    "mlx-longrope": ("mlx", """
from mlx_lm.models.rope_utils import initialize_rope
rule = {"rope_type": "longrope", "original_max_position_embeddings": 4096}
rule |= {"short_factor": [1.0] * 32, "long_factor": [2.0] * 32}
float(initialize_rope(64, 10000.0, False, rule, 16384)._freqs[0])
"""),
    "onnx-scale": ("onnx", """
import numpy as np
from engines.runtimes.onnx import run, session
x, at = np.ones((1, 1, 64), np.float32), np.array([100])
scaled = run("com.microsoft", session, scale=0.25)(x, at)
bool(np.array_equal(scaled, run("com.microsoft", session)(x, at)))
"""),
    "ggml-imrope": ("ggml", """
import numpy as np
from engines.runtimes.ggml import IMROPE, rope
x, at = np.ones((1, 1, 64), np.float32), np.array([[9, 9, 9, 0]])
y = rope(x, at, IMROPE, sections=(12, 10, 10, 0))
[float(y[0, 0, 31]), float(y[0, 0, 63])]
"""),
    "sglang-attention-factor": ("sglang", """
from engines.runtimes.sglang import ropes
rule = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
rope = ropes.get_rope(64, 64, 4096, 10000, True, rule | {"attention_factor": 1.0})
round(float(rope.cos_sin_cache[0, 0]), 5)
"""),
    "vllm-kernel": ("vllm", """
import torch
from engines.runtimes.vllm import made
table, x, at = made(longest=8192).cos_sin_cache, torch.eye(64)[:1], torch.tensor([5000])
torch.ops._C.rotary_embedding(at, x, x.clone(), 64, table[:4096], True)
bool(torch.equal(x[0, :1], table[5000, :1]))
"""),
    "transformer-engine-cast": ("transformer_engine", """
import torch
from engines.runtimes.transformer_engine import each
x = torch.eye(64)[:1, None].expand(1, 2, 64)
asked = ((torch.bfloat16, [256, 257]), (torch.float16, [2048, 2049]))
turned = [each(kind)(x.to(kind), torch.tensor(at))[0] for kind, at in asked]
[bool(torch.equal(*two)) for two in turned]
"""),
    "tvm-yarn": ("tvm", """
import numpy as np
from engines.runtimes.tvm import each
yarn = {"rope_type": "yarn", "factor": 4.0, "beta_fast": 32, "beta_slow": 1}
rotate = each(**yarn, original_max_position_embeddings=4096)
y = rotate(np.eye(64, dtype=np.float32)[[0, 32]][:, None], np.array([1]))[:, 0]  # position 1
[round(float(np.arccos(y[n, channel])), 4) for n, channel in ((0, 0), (1, 32))]
"""),
    "keras-dynamic": ("keras_hub", """
from engines.runtimes.keras_hub import Layer
plain, dynamic = (Layer(rope_type=t, scaling_factor=f) for t, f in (("linear", 1), ("dynamic", 4)))
slower = plain._get_inverse_freq(64) / dynamic._get_inverse_freq(64)
[round(float(slower[i]), 4) for i in (0, 31)]
"""),
}  # fmt: skip
"""By name: the runtime, and the lines."""


def value_of(lines: str) -> Any:
    """Return the value of the last of some lines."""
    *before, last = ast.parse(lines).body
    names: dict[str, Any] = {}
    exec(compile(ast.Module(before, []), "lines", "exec"), names)
    return eval(compile(ast.Expression(last.value), "lines", "eval"), names)  # type: ignore[attr-defined]


def again(name: str, python: str = sys.executable) -> Any:
    """Return what a finding's lines give now, in a process with what its runtime needs."""
    runtime, lines = FINDINGS[name]
    code = "import json, sys; from engines.findings import value_of; "
    code += f"print(json.dumps(value_of({lines!r})))"
    run = subprocess.run(
        [python, "-c", code], env=os.environ | RUNTIMES[runtime], stdout=subprocess.PIPE,
        encoding="utf8", check=True,
    )  # fmt: skip
    return json.loads(run.stdout.splitlines()[-1])
