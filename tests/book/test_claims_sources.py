"""Appendix A: its codes of the sources beside the packages, its experiments in another way."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from rope_minimal import apply_rope, inverse_frequencies, rope_table

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "A-sources.ipynb"
NOTEBOOK_CELLS = json.loads(NOTEBOOK.read_text("utf8"))["cells"]
CELLS = {cell["id"]: "".join(cell["source"]) for cell in NOTEBOOK_CELLS}


@pytest.fixture(scope="module")
def chapter():
    """What the chapter's checks work with, as the notebook defines it."""
    names: dict = {}
    for name, code in CELLS.items():
        if name.startswith(("imports-of-", "helpers-of-", "experiments-of-", "codes-of-")):
            exec(code, names)
    return names


@pytest.fixture
def x():
    return torch.randn(1, 2, 1024, 64, generator=torch.Generator().manual_seed(0))


def test_twenty_rows_come_first():
    assert CELLS["twenty-checks"].count("@claim(") == 20
    first = next(name for name, code in CELLS.items() if "@claim(" in code)
    assert first == "twenty-checks"


def test_clays_first_module_and_rotary_embedding_torch(chapter, x):
    peer = pytest.importorskip("rotary_embedding_torch").RotaryEmbedding
    ours = chapter["clays_module"](True, length=1024)(x)
    assert torch.equal(ours, peer(64).rotate_queries_or_keys(x))
    example = peer(32).rotate_queries_or_keys(x)  # as his example has it
    assert torch.equal(example[..., 32:], x[..., 32:])
    assert (example - ours).abs().max() > 1


@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_clays_second_module_and_transformers(chapter, x, family):
    pytest.importorskip("transformers")
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    name = family.capitalize()
    settings = {"hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2}
    config = getattr(module, f"{name}Config")(**settings, head_dim=64)
    cos, sin = getattr(module, f"{name}RotaryEmbedding")(config)(x, torch.arange(1024)[None])
    theirs = module.apply_rotary_pos_emb(x, x, cos, sin)[0]
    assert torch.equal(chapter["clays_module"](False, length=1024)(x), theirs)


def test_llama_gemma_and_gptj_use_rope():
    pytest.importorskip("transformers")
    x, (cos, sin) = torch.randn(1, 2, 6, 16), rope_table(range(6), 16)

    def function(name):
        module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
        return module.apply_rotary_pos_emb

    twice = cos.repeat(1, 2)[None], sin.repeat(1, 2)[None]
    for family in ("llama", "gemma"):
        assert torch.allclose(function(family)(x, x, *twice)[0], apply_rope(x, cos, sin))
    theirs = function("gptj")(x.transpose(1, 2), sin[None], cos[None]).transpose(1, 2)
    assert torch.allclose(theirs, apply_rope(x, cos, sin, interleaved=True), atol=1e-6)


def bfloat16(x):
    """Round to bfloat16, half to even, on the bits of float32."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def test_the_step_to_a_neighbour_beside_the_noise(chapter):
    """With other vectors and places, real half-split heads, and bfloat16 made on bits."""
    speeds = inverse_frequencies(128)
    slow = np.pi / 2048 * speeds
    for bank, expected in ((slow, 0.53), (2 * slow, 0.83), (speeds, 116)):
        rng = np.random.default_rng(1)
        q, k = rng.normal(size=(2, 10_000, 128))
        place = rng.integers(1, 2000, size=(10_000, 1))

        def turned(v, at, bank=bank):
            cos, sin = np.cos(at * bank), np.sin(at * bank)
            a, b = np.split(v, 2, axis=1)
            return np.concatenate((a * cos - b * sin, b * cos + a * sin), axis=1)

        exact = turned(q, place + 40), turned(k, place), turned(k, place - 1)
        stored = [bfloat16(v).astype(float) for v in exact]
        step, heard = (((v[2] - v[1]) * v[0]).sum(1) for v in (exact, stored))
        measured = np.sqrt(np.square(step).mean() / np.square(heard - step).mean())
        assert measured == pytest.approx(expected, rel=0.05)
        assert chapter["step_over_noise"](bank) == pytest.approx(measured, rel=0.05)


def test_the_decks_rotator_takes_positions_one_by_one(chapter):
    x = torch.randn(1, 2, 9, 32, generator=torch.manual_seed(0))
    whole = apply_rope(x, *rope_table(range(9), 32))
    steps = [chapter["rotator"](torch.tensor([p]), 32)(x[..., p : p + 1, :]) for p in range(9)]
    assert torch.allclose(torch.cat(steps, dim=-2), whole, atol=1e-5)
