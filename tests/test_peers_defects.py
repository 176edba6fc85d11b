"""Defects of released packages, asserted as present: a failure means that upstream repaired one.

Then the chapter on precision must be corrected, with thanks. Every module is right in the way its
authors use it; the assertions below come in pairs, the right way first.
"""

import pytest
import torch

T, WIDTH = 512, 64
THETA = 10_000.0 ** (-torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
TURN = torch.exp(1j * torch.arange(T)[:, None] * THETA)


@pytest.fixture
def x():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(1, 1, T, WIDTH, generator=generator, dtype=torch.float64)


def interleaved_error(x, result):
    """Largest error, by position, of a rotation in the interleaved layout."""
    truth = torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * TURN).flatten(-2)
    return (result.double() - truth).abs().amax((0, 1, 3))


@pytest.fixture
def peer():
    return pytest.importorskip("rotary_embedding_torch").RotaryEmbedding


def test_rotary_embedding_torch_is_right_after_a_float32_call(peer, x):
    module = peer(WIDTH)
    assert interleaved_error(x, module.rotate_queries_or_keys(x.float())).max() < 2e-4
    assert interleaved_error(x, module.rotate_queries_or_keys(x.bfloat16())).max() < 0.03


def test_rotary_embedding_torch_caches_bf16_positions(peer, x):
    module = peer(WIDTH)
    first = interleaved_error(x, module.rotate_queries_or_keys(x.bfloat16()))
    assert first[:257].max() < 0.03  # bfloat16 counts to 256
    assert first.max() > 1
    later = interleaved_error(x, module.rotate_queries_or_keys(x.float()))
    assert later[:257].max() < 2e-4
    assert later[257] > 0.1
    assert later.max() > 1


def test_rotary_embedding_torch_loses_its_frequencies_in_a_cast(peer, x):
    assert interleaved_error(x, peer(WIDTH).half().rotate_queries_or_keys(x.float())).max() > 0.1


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [(torch.float32, 0, 1e-4), (torch.float16, 0.02, 0.3), (torch.bfloat16, 0.1, 2.0)],
)
def test_llama_rotary_embedding_loses_its_frequencies_in_a_cast(dtype, low, high):
    transformers = pytest.importorskip("transformers")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = transformers.LlamaConfig(hidden_size=2 * WIDTH, num_attention_heads=2, head_dim=WIDTH)
    module = llama.LlamaRotaryEmbedding(config).to(dtype)
    assert module.inv_freq.dtype == dtype
    cos, _ = module(torch.zeros(1, T, WIDTH), torch.arange(T)[None])
    assert cos.dtype == torch.float32  # the type of x: the loss is in the frequencies alone
    error = (cos[0, :, : WIDTH // 2].double() - TURN.real).abs().max()
    assert low <= error < high
