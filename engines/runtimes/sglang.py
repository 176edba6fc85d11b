"""SGLang: its rotary modules, in torch."""

from typing import Any

import torch
from torch import Tensor

from engines.alone import alone
from engines.asking import BASE, HEAD_DIM, LONG, ORIGINAL, Case

NAME, PACKAGES, LICENCE = "SGLang", ["sglang"], "Apache-2.0"

given = {
    "sglang.kernels.fused_op": {"BaseFusedOp": torch.nn.Module},
    "sglang.srt.utils": {"is_cpu": lambda: True},
    "sglang.srt.runtime_context": {"publish_role": lambda: None},
    "sglang.srt.layers.utils": {"MultiPlatformOp": torch.nn.Module},
}
ropes = alone("sglang.srt.layers.rotary_embedding", given)


def each(rope: Any) -> Any:
    """Return a function of x (N, T, D) and positions."""
    forward = getattr(rope, "forward_native", rope.forward)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        rows = x.transpose(0, 1).reshape(len(at), -1)
        where = at if at.ndim == 1 else at.T.contiguous()
        y = forward(where, rows, rows.clone())[0]
        return y.view(len(at), len(x), -1).transpose(0, 1)

    return rotate


def made(neox: bool = True, longest: int = 2**17, kind: Any = torch.float32, **rule: Any) -> Any:
    """Return what ``get_rope`` makes."""
    partial = rule.pop("partial_rotary_factor", 1.0)
    return ropes.get_rope(HEAD_DIM, HEAD_DIM, longest, int(BASE), neox, rule or None, kind, partial)


def cases() -> list[Case]:
    """Return what is asked of SGLang."""
    name, kind, half = "get_rope(...).forward_native", torch.float32, torch.bfloat16
    axes = {"rope_type": "default", "longest": 2**12}
    return [
        Case(name, "is_neox_style=True", each(made()), dtype=kind),
        Case(name, "is_neox_style=False", each(made(False)), dtype=kind),
        Case(name, "partial_rotary_factor=0.5", each(made(partial_rotary_factor=0.5)), dtype=kind),
        Case(name, "dtype=bfloat16", each(made(kind=half)), dtype=half),
        Case(name, "max_position=4096", each(made(longest=4096)), dtype=kind),
        Case(name, "mrope_section=[16, 8, 8]", each(made(mrope_section=[16, 8, 8], **axes)),
             positions=(512, 512, 512), dtype=kind),
        Case(name, "mrope_section=[12, 10, 10], mrope_interleaved=True",
             each(made(mrope_section=[12, 10, 10], mrope_interleaved=True, **axes)),
             positions=(512, 512, 512), dtype=kind),
    ]  # fmt: skip


def rescaled(rule: dict[str, Any]) -> Case:
    """Return the case of a rule: SGLang reads the fields of a ``config.json``."""
    given = rule | {"original_max_position_embeddings": ORIGINAL}
    longest = ORIGINAL if rule["rope_type"] == "dynamic" else LONG
    rope = made(longest=longest, **given)
    return Case("get_rope", type(rope).__name__, each(rope), dtype=torch.float32)
