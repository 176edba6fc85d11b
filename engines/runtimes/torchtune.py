"""torchtune: its rotary modules."""

from typing import Any

import torch

from engines.alone import alone
from engines.asking import BASE, HEAD_DIM, LONG, ORIGINAL, Case

NAME, PACKAGES, LICENCE = "torchtune", ["torchtune"], "BSD-3-Clause"

# the rest of the package needs a torchao that torch has left behind: files are asked alone


def each(rope: Any) -> Any:
    """Return a function of x and positions: torchtune takes (batch, positions, heads, channels)."""
    return lambda x, at: rope(x[:, :, None], input_pos=at[None].expand(len(x), -1))[:, :, 0]


def cases() -> list[Case]:
    """Return what is asked of torchtune."""
    plain = alone("torchtune.modules.position_embeddings").RotaryPositionalEmbeddings
    phi3 = alone("torchtune.models.phi3._position_embeddings").Phi3RotaryPositionalEmbeddings
    qwen2 = alone("torchtune.models.qwen2._positional_embeddings").Qwen2RotaryPositionalEmbeddings
    size = {"max_seq_len": 2**17}
    return [
        Case("RotaryPositionalEmbeddings", "", each(plain(HEAD_DIM, **size)), dtype=torch.float32),
        Case("RotaryPositionalEmbeddings", "x in bfloat16", each(plain(HEAD_DIM, **size)),
             dtype=torch.bfloat16),
        Case("RotaryPositionalEmbeddings", "max_seq_len=4096", each(plain(HEAD_DIM)),
             dtype=torch.float32),
        Case("Phi3RotaryPositionalEmbeddings", "", each(phi3(HEAD_DIM, **size)),
             dtype=torch.float32),
        Case("Qwen2RotaryPositionalEmbeddings", "base=10000", each(qwen2(HEAD_DIM, base=BASE,
             **size)), dtype=torch.float32),
    ]  # fmt: skip


def rescaled(rule: dict[str, Any]) -> Case:
    """Return the case of Llama 3's rule, whose other numbers are fixed there."""
    if rule["rope_type"] != "llama3":
        raise NotImplementedError
    made = alone("torchtune.models.llama3_1._position_embeddings").Llama3ScaledRoPE(
        HEAD_DIM, max_seq_len=LONG, base=int(BASE), old_context_len=ORIGINAL,
        scale_factor=int(rule["factor"]),
    )  # fmt: skip
    return Case("Llama3ScaledRoPE", "old_context_len=4096", each(made), dtype=torch.float32)
