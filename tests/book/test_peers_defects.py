"""Defects of released packages, asserted as present: a failure means that upstream repaired one.

Then the chapter on precision must be corrected, with thanks. Every module is right in the way its
authors use it; the assertions below come in pairs, the right way first. The numbers are those of
the chapter's two tables.
"""

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "10-precision.ipynb"
T, WIDTH = 512, 64
THETA = 10_000.0 ** (-torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)


def printed():
    """Return the rows of the chapter's tables of defects: {first cell: second cell}."""
    text = "\n".join("".join(c["source"]) for c in json.loads(NOTEBOOK.read_text("utf8"))["cells"])
    section = text.split("## Live in released packages")[1].split("## Exercises")[0]
    return dict(re.findall(r"^(?:> )?\| (.+?) \| (.+?) \|$", section, re.M))


def says(row, value):
    """Whether the chapter prints this value in this row, to the digits that it prints."""
    number = printed()[row]
    digits = len(number.lstrip("0.").replace(".", ""))
    return float(number) == float(f"{value:.{digits}g}")


@pytest.fixture
def x():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(1, 1, 1024, WIDTH, generator=generator, dtype=torch.float64)


def rotated(x, first=0):
    """The rotation in the interleaved layout, in float64."""
    turn = torch.exp(1j * torch.arange(first, first + x.shape[-2])[:, None] * THETA)
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turn).flatten(-2)


@pytest.fixture
def peer():
    return pytest.importorskip("rotary_embedding_torch").RotaryEmbedding


def error(module, x, kind, first=0):
    """Largest error of a module's rotation of x in a type, for each position."""
    result = module.rotate_queries_or_keys(x.to(kind), offset=first)
    return (result.double() - rotated(x, first)).abs().amax((0, 1, 3))


def test_the_chapter_names_the_versions_that_are_measured():
    names = [row for row in printed() if " 0." in row or " 5." in row]
    assert len(names) == 2
    for name in names:
        package, measured = name.split(",")[0].split()
        pytest.importorskip(package.replace("-", "_"))
        assert version(package) == measured


def test_rotary_embedding_torch_is_right_after_a_float32_call(peer, x):
    module, x = peer(WIDTH), x[..., :T, :]
    first, second = error(module, x, torch.float32), error(module, x, torch.bfloat16)
    assert says("float32, 512 tokens", first.max())
    assert says("then, same module: bfloat16, 512 tokens", second.max())


def test_rotary_embedding_torch_caches_bf16_positions(peer, x):
    module, x = peer(WIDTH), x[..., :T, :]
    first, later = error(module, x, torch.bfloat16), error(module, x, torch.float32)
    assert first[:257].max() < 0.03  # bfloat16 counts to 256
    assert says("bfloat16 first, 512 tokens", first.max())
    assert later[:257].max() < 2e-4
    assert later[257] > 0.1
    assert says("then, same module: float32, 512 tokens", later.max())


def test_rotary_embedding_torch_rounds_again_past_its_first_call(peer, x):
    """A float32 prompt, then one token at a time in bfloat16: what a cache of keys asks for."""
    module = peer(WIDTH)
    assert error(module, x[..., :300, :], torch.float32).max() < 2e-4
    token = x[..., :1, :]
    steps = {p: error(module, token, torch.bfloat16, first=p).item() for p in range(290, 330)}
    assert max(steps[p] for p in steps if p < 300 or p % 2 == 0) < 0.03
    assert min(steps[p] for p in steps if p > 300 and p % 2) > 0.5
    assert says(
        "float32 prompt of 300 tokens, then one bfloat16 token at an odd position, 301", steps[301]
    )
    # a longer call is rounded anew, too
    assert error(module, x[..., :T, :], torch.bfloat16).max() > 1


def test_rotary_embedding_torch_is_right_as_far_as_a_first_float32_call_and_its_cache_reach(peer):
    module = peer(WIDTH)
    assert module.cache_max_seq_len == 8192
    long = torch.randn(1, 1, 8193, WIDTH, dtype=torch.float64, generator=torch.manual_seed(1))
    error(module, long[..., :8192, :], torch.float32)
    assert error(module, long[..., :8192, :], torch.bfloat16).max() < 0.05
    assert error(module, long[..., :1, :], torch.bfloat16, first=8191).max() < 0.03
    assert error(module, long, torch.bfloat16).max() > 1


def test_rotary_embedding_torch_loses_its_frequencies_in_a_cast(peer, x):
    found = error(peer(WIDTH).half(), x[..., :T, :], torch.float32)
    assert says("after `module.half()`: float32, 512 tokens", found.max())


@pytest.mark.parametrize(
    ("dtype", "row"),
    [
        (torch.float32, "as built"),
        (torch.float16, "after `.half()`"),
        (torch.bfloat16, "after `.bfloat16()`"),
    ],
)
def test_llama_rotary_embedding_loses_its_frequencies_in_a_cast(dtype, row):
    transformers = pytest.importorskip("transformers")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = transformers.LlamaConfig(hidden_size=2 * WIDTH, num_attention_heads=2, head_dim=WIDTH)
    module = llama.LlamaRotaryEmbedding(config).to(dtype)
    assert module.inv_freq.dtype == dtype
    cos, _ = module(torch.zeros(1, T, WIDTH), torch.arange(T)[None])
    assert cos.dtype == torch.float32  # the type of x: the loss is in the frequencies alone
    truth = (torch.arange(T)[:, None] * THETA).cos()
    assert says(row, (cos[0, :, : WIDTH // 2].double() - truth).abs().max())


def test_loading_keeps_the_frequencies_that_a_cast_loses(tmp_path):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 8}
    config = transformers.LlamaConfig(**sizes, num_attention_heads=2, num_key_value_heads=2)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    loaded = transformers.LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert loaded.lm_head.weight.dtype == torch.bfloat16
    assert loaded.model.rotary_emb.inv_freq.dtype == torch.float32
    assert loaded.bfloat16().model.rotary_emb.inv_freq.dtype == torch.bfloat16
