"""Rotations of other packages, each as a `Form`.

A loader imports its package and returns its forms; ImportError means that it is not here. Tables
are made in the type of ``x``, as these packages do, and once: a model makes them for all layers.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from ropebook.timing import Form

Tables = tuple[Tensor, ...]


def _twice_and_keys(x: Tensor, cos: Tensor, sin: Tensor) -> Tables:
    """Return cos and sin (1, T, D), and keys of the shape of ``x``."""
    cos, sin = (torch.cat((t, t), dim=-1).to(x.dtype)[None] for t in (cos, sin))
    return cos, sin, x.detach().clone().requires_grad_(x.requires_grad)


def module(first: int) -> list[Form]:
    """Return the module `RotaryEmbedding`, with its table built."""
    from rope_minimal import RotaryEmbedding

    def rotate(x, rope):
        return rope(x, first)

    def made(interleaved: bool) -> Form:
        def tables(x, cos, sin):
            length, width = x.shape[-2:]
            return (RotaryEmbedding(width, first + length, interleaved=interleaved).to(x.device),)

        layout = "interleaved" if interleaved else "half-split"
        return Form(f"RotaryEmbedding, {layout}", interleaved, None, rotate, tables)

    return [made(False), made(True)]


def transformers(first: int) -> list[Form]:
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    def rotate(x, cos, sin, keys):
        return apply_rotary_pos_emb(x, keys, cos, sin)

    return [Form("apply_rotary_pos_emb", False, None, rotate, _twice_and_keys)]


def rotary_embedding_torch(first: int) -> list[Form]:
    from rotary_embedding_torch import RotaryEmbedding

    modules = {}

    def tables(x, cos, sin):  # the module makes its own, and keeps its angles
        modules["last"] = RotaryEmbedding(dim=x.shape[-1]).to(x.device)
        return ()

    def rotate(x):
        return modules["last"].rotate_queries_or_keys(x, offset=first)

    return [Form("rotate_queries_or_keys", True, None, rotate, tables)]


def onnx(first: int) -> list[Form]:
    operator = torch.onnx.ops.rotary_embedding

    def tables(x, cos, sin):
        return tuple(t.to(x.dtype).expand(len(x), -1, -1) for t in (cos, sin))

    def half(x, cos, sin):
        return operator(x, cos, sin)

    def interleaved(x, cos, sin):
        return operator(x, cos, sin, interleaved=True)

    return [
        Form("onnx.ops.rotary_embedding, half-split", False, None, half, tables),
        Form("onnx.ops.rotary_embedding, interleaved", True, None, interleaved, tables),
    ]


# On a graphics processor only.


def fused(first: int) -> list[Form]:
    from ropebook.timing.fused import apply_rope_fused

    def half(x, cos, sin):
        return apply_rope_fused(x, cos, sin)

    def interleaved(x, cos, sin):
        return apply_rope_fused(x, cos, sin, interleaved=True)

    return [
        Form("apply_rope_fused, half-split", False, 2, half, mode="fused"),
        Form("apply_rope_fused, interleaved", True, 2, interleaved, mode="fused"),
    ]


def liger(first: int) -> list[Form]:
    from liger_kernel.transformers.rope import liger_rotary_pos_emb

    def tables(x, cos, sin):  # it writes over its input: let that be copies
        cos, sin, keys = _twice_and_keys(x, cos, sin)
        queries, keys = x.detach().clone(), keys.detach()
        if x.shape[2] == 1:  # it takes the tokens' stride as it stands: give that of a projection
            queries, keys = (
                t.transpose(1, 2).clone(memory_format=torch.contiguous_format).transpose(1, 2)
                for t in (queries, keys)
            )
        return cos, sin, keys, queries

    def rotate(x, cos, sin, keys, queries):
        return liger_rotary_pos_emb(queries, keys, cos, sin)  # right in the first call only

    return [Form("liger_rotary_pos_emb", False, None, rotate, tables, mode="fused")]


def flash_attn(first: int) -> list[Form]:
    from flash_attn.layers.rotary import apply_rotary_emb

    def tables(x, cos, sin):
        return cos.to(x.dtype), sin.to(x.dtype)

    def rotate(x, cos, sin, interleaved):
        return apply_rotary_emb(x.transpose(1, 2), cos, sin, interleaved).transpose(1, 2)

    def half(x, cos, sin):
        return rotate(x, cos, sin, False)

    def interleaved(x, cos, sin):
        return rotate(x, cos, sin, True)

    return [
        Form("apply_rotary_emb, half-split", False, None, half, tables, mode="fused"),
        Form("apply_rotary_emb, interleaved", True, None, interleaved, tables, mode="fused"),
    ]


Loader = Callable[[int], list[Form]]

# loaders take the position of the first vector of x, for packages that make their own angles
CPU: dict[str, Loader] = {
    "transformers": transformers,
    "rotary-embedding-torch": rotary_embedding_torch,
    "torch": onnx,
}
CUDA: dict[str, Loader] = {
    **CPU,
    "rope_minimal": fused,
    "liger-kernel": liger,
    "flash-attn": flash_attn,
}
