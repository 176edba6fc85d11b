"""torchtitan: `ComplexRoPE` and `CosSinRoPE`."""

from typing import Any

import torch
from torchtitan.models.common.rope import ComplexRoPE, CosSinRoPE

from engines.asking import BASE, HEAD_DIM, LONG, ORIGINAL, Case

NAME, PACKAGES, LICENCE = "torchtitan", ["torchtitan"], "BSD-3-Clause"


def each(kind: Any, **more: Any) -> Any:
    """Return a function of x and positions."""
    rope = kind(kind.Config(**({"dim": HEAD_DIM, "max_seq_len": 2**17, "theta": BASE} | more)))
    return lambda x, at: rope(x[:, :, None], x[:, :, None], at[None].expand(len(x), -1))[0][:, :, 0]


def cases() -> list[Case]:
    """Return what is asked of torchtitan."""
    return [
        Case("ComplexRoPE", "", each(ComplexRoPE), dtype=torch.float32),
        Case("CosSinRoPE", "", each(CosSinRoPE), dtype=torch.float32),
        Case("CosSinRoPE", "x in bfloat16", each(CosSinRoPE), dtype=torch.bfloat16),
        Case("ComplexRoPE", "max_seq_len=4096", each(ComplexRoPE, max_seq_len=4096),
             dtype=torch.float32),
    ]  # fmt: skip


def rescaled(rule: dict[str, Any]) -> Case:
    """Return the case of a rule in torchtitan's words."""
    kind, more = rule["rope_type"], dict(rule)
    del more["rope_type"]
    factor = more.pop("factor")
    if kind == "llama3":
        more |= {"scaling": "llama", "scaling_factor": factor}
        more["original_max_position_embeddings"] = ORIGINAL
    elif kind == "yarn" and not {"attention_factor", "mscale", "mscale_all_dim"} & more.keys():
        more |= {"scaling": "yarn", "rope_factor": factor, "original_seq_len": ORIGINAL}
    else:
        raise NotImplementedError(kind)
    rotate = each(ComplexRoPE, max_seq_len=LONG, **more)
    return Case("ComplexRoPE", f"scaling={more['scaling']!r}", rotate, dtype=torch.float32)
