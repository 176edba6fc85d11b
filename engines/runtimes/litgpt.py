"""LitGPT: `build_rope_cache` and `apply_rope`."""

from typing import Any

import torch
from litgpt.model import apply_rope, apply_rope_interleave, build_rope_cache
from torch import Tensor

from engines.asking import BASE, HEAD_DIM, LONG, ORIGINAL, Case

NAME, PACKAGES, LICENCE = "LitGPT", ["litgpt"], "Apache-2.0"


def with_table(size: int, apply: Any = apply_rope, width: int = HEAD_DIM, **more: Any) -> Any:
    """Return a function of x and positions with a table of ``size`` positions."""
    cos, sin = build_rope_cache(size, width, base=int(BASE), **more)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        y = apply(x[..., :width], cos[at][None], sin[at][None])
        return torch.cat((y, x[..., width:]), dim=-1)  # as its attention does

    return rotate


def cases() -> list[Case]:
    """Return what is asked of LitGPT."""
    name, size = "apply_rope(x, *build_rope_cache(...))", 2**17
    return [
        Case(name, "", with_table(size), dtype=torch.float32),
        Case(name, "n_elem=32", with_table(size, width=32), dtype=torch.float32),
        Case(name, "x in bfloat16", with_table(size), dtype=torch.bfloat16),
        Case(name, "a table of 4,096", with_table(4096), dtype=torch.float32),
        Case(name, "condense_ratio=4", with_table(size, condense_ratio=4), dtype=torch.float32),
        Case("apply_rope_interleave", "", with_table(size, apply_rope_interleave),
             dtype=torch.float32),
    ]  # fmt: skip


def rescaled(rule: dict[str, Any]) -> Case:
    """Return the case of a rule in LitGPT's words, ``rope_adjustments``."""
    kind = rule["rope_type"]
    if kind not in ("linear", "llama3", "yarn") or "attention_factor" in rule:
        raise NotImplementedError(kind)
    given = {key: value for key, value in rule.items() if key != "rope_type"}
    if kind != "linear":
        given["original_max_seq_len"] = ORIGINAL
    if kind == "yarn":
        given = {"beta_fast": 32.0, "beta_slow": 1.0} | given
    rotate = with_table(LONG, extra_config=given)
    return Case("build_rope_cache", f"extra_config={kind}", rotate, dtype=torch.float32)
