"""The same numbers as other people's code, and a model of theirs that runs on ours."""

import numpy as np
import pytest
import torch
from rotary_embedding_torch import RotaryEmbedding as LucidrainsEmbedding
from rotary_embedding_torch import apply_rotary_emb as lucidrains_apply
from torch import Tensor
from transformers import GPTNeoXConfig, LlamaConfig, LlamaForCausalLM
from transformers.models.gpt_neox import modeling_gpt_neox as gpt_neox
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama

from rope_minimal import (
    RotaryEmbedding,
    apply_rope,
    inverse_frequencies,
    permute_qk,
    rope_table,
    rotate_complex,
)

LENGTH = 512
# The peers make their angles in float32: an angle near T radians is off by up to about 2e-7 T
# (half a step of float32, and the rounding of the frequency), and a value of size 4 by 4 times it.
PEER = {"rtol": 0, "atol": 4e-7 * LENGTH}
SAME_TABLE = {"rtol": 0, "atol": 1e-6}


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.manual_seed(seed))


# transformers


def test_llama() -> None:
    config = LlamaConfig(
        hidden_size=64,
        num_attention_heads=2,
        rope_parameters={"rope_type": "default", "rope_theta": 5e5},
    )
    q, k = random(2, 4, LENGTH, 32), random(2, 2, LENGTH, 32, seed=1)
    ids = torch.arange(LENGTH)[None]
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, ids)
    want = llama.apply_rotary_pos_emb(q, k, cos, sin)
    rope = RotaryEmbedding(32, LENGTH, 5e5)
    for x, y in zip((q, k), want, strict=True):
        torch.testing.assert_close(rope(x), y, **PEER)
        ours = apply_rope(x, cos[0, :, :16], sin[0, :, :16])
        torch.testing.assert_close(ours, y, **SAME_TABLE)


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_gpt_neox_rotates_a_part_of_the_width(share: float) -> None:
    config = GPTNeoXConfig(
        hidden_size=64,
        num_attention_heads=2,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": share,
        },
    )
    width = int(32 * share)
    q, k = random(2, 2, LENGTH, 32), random(2, 2, LENGTH, 32, seed=1)
    cos, sin = gpt_neox.GPTNeoXRotaryEmbedding(config)(q, torch.arange(LENGTH)[None])
    assert cos.shape[-1] == width
    want = gpt_neox.apply_rotary_pos_emb(q, k, cos, sin)
    rope = RotaryEmbedding(width, LENGTH)
    for x, y in zip((q, k), want, strict=True):
        torch.testing.assert_close(rope(x), y, **PEER)
        ours = apply_rope(x, cos[0, :, : width // 2], sin[0, :, : width // 2])
        torch.testing.assert_close(ours, y, **SAME_TABLE)


def test_gptj_interleaves() -> None:
    x = random(2, LENGTH, 3, 32)  # (B, T, H, D)
    sin, cos = gptj.create_sinusoidal_positions(LENGTH, 32).chunk(2, dim=-1)
    want = gptj.apply_rotary_pos_emb(x, sin[None], cos[None]).transpose(1, 2)
    heads_first = x.transpose(1, 2)
    torch.testing.assert_close(
        RotaryEmbedding(32, LENGTH, interleaved=True)(heads_first), want, **PEER
    )
    torch.testing.assert_close(
        apply_rope(heads_first, cos, sin, interleaved=True), want, **SAME_TABLE
    )


# rotary-embedding-torch


@pytest.mark.parametrize("offset", [0, 37])
@pytest.mark.parametrize("width", [32, 48])
def test_rotary_embedding_torch(width: int, offset: int) -> None:
    x = random(2, 3, LENGTH - offset, width)
    want = LucidrainsEmbedding(dim=32, theta=500).rotate_queries_or_keys(x, offset=offset)
    rope = RotaryEmbedding(32, LENGTH, 500.0, interleaved=True)
    torch.testing.assert_close(rope(x, offset=offset), want, **PEER)


def test_rotary_embedding_torch_with_exact_angles() -> None:
    x = random(2, 3, 50, 40, dtype=torch.float64)
    angle = torch.arange(50)[:, None] * torch.from_numpy(inverse_frequencies(32))
    want = lucidrains_apply(angle.repeat_interleave(2, dim=-1), x)
    ours = apply_rope(x, *rope_table(range(50), 32, dtype=torch.float64), interleaved=True)
    torch.testing.assert_close(ours, want, rtol=0, atol=1e-12)


# The ONNX operator, as torch carries it


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("width", [16, 24])
def test_onnx_operator_in_float64(width: int, interleaved: bool) -> None:
    x = random(2, 3, 7, width, dtype=torch.float64)
    ids = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [0, 0, 9, 2047, 131071, 5, 1]])
    cos, sin = rope_table(ids, 16, dtype=torch.float64)
    want = torch.onnx.ops.rotary_embedding(
        x, cos, sin, interleaved=interleaved, rotary_embedding_dim=16
    )
    ours = apply_rope(x, cos[:, None], sin[:, None], interleaved=interleaved)
    torch.testing.assert_close(ours, want, rtol=0, atol=1e-12)

    rope = RotaryEmbedding(16, 131072, interleaved=interleaved).double()
    want = torch.onnx.ops.rotary_embedding(
        x, rope.cos, rope.sin, ids, interleaved=interleaved, rotary_embedding_dim=16
    )
    torch.testing.assert_close(rope(x, position_ids=ids), want, rtol=0, atol=1e-12)


# A client: a Llama whose rotary function is ours


@pytest.fixture
def model() -> LlamaForCausalLM:
    """A Llama of two layers and grouped queries, with weights large enough for attention to aim."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=97,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        attention_bias=True,
        initializer_range=0.2,
        max_position_embeddings=64,
    )
    model = LlamaForCausalLM(config).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.5)
    return model


def logits(model: LlamaForCausalLM, monkeypatch, rope: RotaryEmbedding | None) -> Tensor:
    """Run the model, on our rotation where one is given."""
    tokens = torch.randint(0, 97, (2, 48), generator=torch.manual_seed(1))
    ids = torch.stack((torch.arange(48), (torch.arange(48) - 5).clamp(min=0)))  # a padded row
    with monkeypatch.context() as patch, torch.no_grad():
        if rope is not None:

            def ours(q: Tensor, k: Tensor, *table_of_theirs: Tensor) -> tuple[Tensor, Tensor]:
                return rope(q, position_ids=ids), rope(k, position_ids=ids)

            patch.setattr(llama, "apply_rotary_pos_emb", ours)
        return model(tokens, position_ids=ids).logits


def test_a_llama_on_our_rotation_gives_its_own_logits(model, monkeypatch) -> None:
    want = logits(model, monkeypatch, None)
    got = logits(model, monkeypatch, RotaryEmbedding(16, 48))
    torch.testing.assert_close(got, want, rtol=0, atol=1e-5)
    # The logits depend on the rotation: with the wrong layout they are other logits.
    wrong = logits(model, monkeypatch, RotaryEmbedding(16, 48, interleaved=True))
    assert (wrong - want).abs().max() > 0.1


def test_a_llama_with_interleaved_weights_gives_its_own_logits(model, monkeypatch) -> None:
    want = logits(model, monkeypatch, None)
    with torch.no_grad():
        for layer in model.model.layers:
            for projection, heads in ((layer.self_attn.q_proj, 4), (layer.self_attn.k_proj, 2)):
                for parameter in (projection.weight, projection.bias):
                    parameter.copy_(permute_qk(parameter, heads, inverse=True))
    got = logits(model, monkeypatch, RotaryEmbedding(16, 48, interleaved=True))
    torch.testing.assert_close(got, want, rtol=0, atol=1e-5)
    assert (logits(model, monkeypatch, None) - want).abs().max() > 0.1


def test_the_oracle_and_the_onnx_operator_agree() -> None:
    x = random(1, 3, 6, 16, dtype=torch.float64)
    for interleaved in (False, True):
        cos, sin = rope_table([list(range(6))], 16, dtype=torch.float64)
        theirs = torch.onnx.ops.rotary_embedding(x, cos, sin, interleaved=interleaved)
        ours = rotate_complex(x.numpy(), np.arange(6), interleaved=interleaved)
        torch.testing.assert_close(torch.from_numpy(ours), theirs, rtol=0, atol=1e-12)
