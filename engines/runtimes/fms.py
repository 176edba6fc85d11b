"""Foundation Model Stack: `fms.modules.positions`."""

from typing import Any

import torch
from fms.modules.positions import RotaryEmbedding
from torch import Tensor

from engines.asking import BASE, HEAD_DIM, LONG, ORIGINAL, Case

NAME, PACKAGES, LICENCE = "Foundation Model Stack", ["ibm-fms"], "Apache-2.0"


def each(**more: Any) -> Any:
    """Return a function of x and positions with tables of its own."""
    rope = RotaryEmbedding(HEAD_DIM, BASE, **more)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        rows = x[:, :, None]
        return rope.adjusted_qk(rows, rows, at[None].expand(len(x), -1))[0][:, :, 0]

    return rotate


def cases() -> list[Case]:
    """Return what is asked: a table for what a call is seen to need."""
    return [
        Case("RotaryEmbedding", "max_seq_len=131072", each(max_seq_len=2**17), dtype=torch.float32),
        Case("RotaryEmbedding", "partial_rope=0.5", each(max_seq_len=2**17, partial_rope=0.5),
             dtype=torch.float32),
        Case("RotaryEmbedding", "x in bfloat16", each(max_seq_len=2**17), dtype=torch.bfloat16),
        Case("RotaryEmbedding", "max_seq_len=2048", each(), dtype=torch.float32),
    ]  # fmt: skip


def whole(rotate: Any) -> Any:
    """Return a function that rotates x as part of a whole text, whose length sets the table."""

    def among(x: Tensor, at: Tensor) -> Tensor:
        rows = x.new_zeros(len(x), int(at.max()) + 1, x.shape[-1])
        rows[:, at] = x
        return rotate(rows, torch.arange(rows.shape[1]))[:, at]

    return among


def rescaled(rule: dict[str, Any]) -> Case:
    """Return the case of a rule in its own words."""
    if rule["rope_type"] == "dynamic":
        ntk = each(max_seq_len=ORIGINAL, scaling={"rope_type": "ntk"})
        return Case("RotaryEmbedding", "scaling=ntk", whole(ntk), dtype=torch.float32)
    if rule["rope_type"] == "llama3":
        scaling = dict(rule) | {"original_max_position_embeddings": ORIGINAL}
        scaling["rope_type"] = "llama3"
    elif rule["rope_type"] == "yarn" and rule.keys() <= {
        "rope_type", "factor", "beta_fast", "beta_slow", "truncate",
    }:  # fmt: skip
        scaling = {"rope_type": "yarn", "scaling_factor": rule["factor"]}
        scaling |= {
            "ntk_beta": rule.get("beta_fast", 32.0),
            "ntk_alpha": rule.get("beta_slow", 1.0),
        }
    else:
        raise NotImplementedError
    rotate = each(max_seq_len=ORIGINAL, scaling=scaling)

    def primed(x: Tensor, at: Tensor) -> Tensor:
        first = torch.cat((torch.tensor([LONG - 1]), at))  # tables are as long as the first needs
        return rotate(torch.cat((x[:, :1], x), dim=1), first)[:, 1:]

    return Case("RotaryEmbedding", f"scaling={rule['rope_type']}", primed, dtype=torch.float32)
