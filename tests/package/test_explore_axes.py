"""The figures on more than one axis: wave vectors against other people's plans, positions too."""

import math
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import DINOv3ViTConfig, PixtralVisionConfig
from transformers.models.dinov3_vit.modeling_dinov3_vit import DINOv3ViTRopePositionEmbedding
from transformers.models.pixtral.modeling_pixtral import PixtralVisionRotaryEmbedding
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2
from transformers.models.qwen3_vl import modeling_qwen3_vl as qwen3

from rope_minimal import inverse_frequencies
from tests.tools.node import run_tests

PLANS = ["axial", "Pixtral", "DINOv3", "mixed"]
SIZE = 16
PAIRS = 8


# ---- wave vectors -------------------------------------------------------------------------------


def vectors_of(node, plan: str, size: int = SIZE) -> np.ndarray:
    """Return the wave vectors (pairs, 2), columns first."""
    return np.array(node.call("wave_vectors.js", "planVectors", plan, size))


def as_set(vectors: np.ndarray) -> np.ndarray:
    """Return vectors in an order of their own; k and -k have the same cosines."""
    vectors = np.round(vectors, 9)
    flipped = np.where((vectors[:, :1] < 0) | ((vectors[:, :1] == 0) & (vectors[:, 1:] < 0)), -1, 1)
    return np.array(sorted((vectors * flipped + 0.0).tolist()))


def mixed_start(dim: int, base: float, angle: float) -> np.ndarray:
    """Return what RoPE-ViT's init_random_2d_freqs draws for a head's angle, as (x, y)."""
    magnitude = 1 / base ** (np.arange(0, dim, 4) / dim)
    x = np.concatenate([magnitude * np.cos(angle), magnitude * np.cos(np.pi / 2 + angle)])
    y = np.concatenate([magnitude * np.sin(angle), magnitude * np.sin(np.pi / 2 + angle)])
    return np.stack([x, y], axis=1)


def pixtral() -> np.ndarray:
    """Ask Pixtral's table how far one column, and one row, turn each pair."""
    config = PixtralVisionConfig(hidden_size=2 * PAIRS, num_attention_heads=1)
    places = torch.tensor([[[0, 1], [1, 0]]])  # rows, then columns, of two patches
    cosine, sine = PixtralVisionRotaryEmbedding(config)(torch.zeros(1), places)
    return torch.atan2(sine, cosine)[0, :, :PAIRS].T.double().numpy()


def dinov3() -> np.ndarray:
    """Ask DINOv3's table of an image how far one column, and one row, turn each pair."""
    config = DINOv3ViTConfig(hidden_size=2 * PAIRS, num_attention_heads=1, patch_size=4)
    table = DINOv3ViTRopePositionEmbedding(config).eval()
    cosine, sine = table(torch.zeros(1, 3, 4 * SIZE, 4 * SIZE))
    code = torch.complex(cosine.double(), sine.double())[:, :PAIRS]
    steps = [(code[place] / code[0]).angle() for place in (1, SIZE)]
    return torch.stack(steps, dim=1).numpy()


@pytest.mark.parametrize(
    ("plan", "wanted"),
    [
        ("DINOv3", dinov3),
        ("axial", lambda: mixed_start(2 * PAIRS, 100.0, 0.0)),
        ("mixed", lambda: mixed_start(2 * PAIRS, 10.0, math.pi / 4)),
        ("Pixtral", pixtral),
    ],
)
def test_a_plan_has_the_vectors_of_its_model(node, plan, wanted):
    np.testing.assert_allclose(as_set(vectors_of(node, plan)), as_set(wanted()), atol=2e-6)


@pytest.mark.parametrize("plan", PLANS)
def test_vectors_stand_in_the_half_plane_fast_to_slow(node, plan):
    vectors = vectors_of(node, plan)
    assert vectors.shape == (PAIRS, 2)
    assert (vectors[:, 0] >= 0).all()
    lengths = np.hypot(*vectors.T)
    assert (np.diff(lengths) <= 1e-12).all()
    assert lengths[0] == pytest.approx(math.tau * 2 / SIZE if plan == "DINOv3" else 1)
    edge = vectors_of(node, plan, 12)  # the smallest image, where DINOv3's are longest
    for vector in [*vectors.tolist(), *edge.tolist()]:
        np.testing.assert_allclose(node.call("wave_vectors.js", "held", vector), vector)


def kernel(vectors: np.ndarray, size: int) -> np.ndarray:
    """Return the mean score of equal patches (rows dy, columns dx) by turning them, no cosine."""
    places = np.arange(size)
    codes = np.exp(1j * (places[:, None, None] * vectors[:, 1] + places[:, None] * vectors[:, 0]))
    flat = codes.reshape(size * size, -1)
    scores = (flat @ flat.conj().T).real / len(vectors)
    found = np.full((2 * size - 1, 2 * size - 1), np.nan)
    for i, j in np.ndindex(scores.shape):
        dy, dx = i // size - j // size, i % size - j % size
        found[dy + size - 1, dx + size - 1] = scores[i, j]
    return found


@pytest.mark.parametrize("plan", [*PLANS, "dragged"])
@pytest.mark.parametrize("size", [12, 13])
def test_the_map_is_what_turned_patches_score(node, plan, size):
    vectors = vectors_of(node, "axial" if plan == "dragged" else plan, size)
    if plan == "dragged":
        vectors[2] = [0.4, 0.4]
    seen = node.call("wave_vectors.js", "survey", vectors.tolist(), size)
    wanted = kernel(vectors, size)
    np.testing.assert_allclose(seen["mean"], wanted, atol=1e-12)

    # the best A + B by a general solver
    side = 2 * size - 1
    eye, one = np.eye(side), np.ones((side, 1))
    design = np.hstack([np.kron(eye, one), np.kron(one, eye)])
    fitted = design @ np.linalg.lstsq(design, wanted.ravel(), rcond=None)[0]
    left = wanted - fitted.reshape(side, side)
    np.testing.assert_allclose(seen["left"], left, atol=1e-9)
    assert seen["most"] == pytest.approx(np.abs(left).max(), abs=1e-9)
    on_axes = plan in ("axial", "Pixtral", "DINOv3")
    assert (seen["most"] < 1e-12) == on_axes
    assert seen["off"] == {"mixed": 8, "dragged": 1}.get(plan, 0)

    assert seen["turned"] == pytest.approx(np.abs(wanted - wanted.T).max(), abs=1e-12)
    assert (seen["turned"] < 1e-12) == (plan in ("axial", "DINOv3", "mixed"))

    away = np.sqrt(np.maximum(2 - 2 * wanted, 0))
    away[size - 1, size - 1] = np.inf
    assert seen["distance"] == pytest.approx(away.min(), abs=1e-7)
    places = np.argwhere(away < away.min() + 1e-7) - (size - 1)
    both = [place for dx, dy in seen["nearest"] for place in ([dy, dx], [-dy, -dx])]
    assert sorted(both) == sorted(places.tolist())


def test_a_vector_is_kept_in_the_half_plane(node):
    held = partial(node.call, "wave_vectors.js", "held")
    assert held([-1.0, 0.5]) == [0, 0.5]
    assert held([1e9, 0]) == [1.25, 0]
    assert held([1.4e-17, -1.4e-17]) == [0, 0]  # what is left of steps there and back
    edge = np.array(held([0.3, -1e9]))
    np.testing.assert_allclose(edge, 1.25 * np.array([0.3, -1.25]) / math.hypot(0.3, 1.25))


# ---- three clocks -------------------------------------------------------------------------------

MODELS = {"chunked": qwen2.Qwen2VLModel, "dealt out": qwen3.Qwen3VLModel}


def tokens_of(node, plan: str) -> list[dict]:
    return node.call("three_clocks.js", "tokensOf", plan)


def kinds_of(tokens: list[dict]) -> list[int]:
    """Return 0, 1 or 2 a token: a word, a patch of an image, one of a video."""
    names = [(token["grid"] or {}).get("name") for token in tokens]
    return [{None: 0, "image": 1, "video": 2, "frame": 2}[name] for name in names]


@pytest.mark.parametrize("plan", MODELS)
def test_tokens_stand_where_the_model_puts_them(node, plan):
    model = MODELS[plan]
    tokens = tokens_of(node, plan)
    kinds = torch.tensor([kinds_of(tokens)])
    vision = SimpleNamespace(spatial_merge_size=2)
    stand_in = SimpleNamespace(config=SimpleNamespace(vision_config=vision))
    stand_in.get_vision_position_ids = partial(model.get_vision_position_ids, stand_in)
    image, video = torch.tensor([[1, 8, 12]]), torch.tensor([[2, 4, 6]])  # before 2 x 2 are merged
    ids, deltas = model.get_rope_index(stand_in, torch.zeros_like(kinds), kinds, image, video)
    assert [token["at"] for token in tokens] == ids[:, 0].T.tolist()
    # the next word's place, and how far it is behind the number of tokens
    assert tokens[-1]["at"][0] + 1 == len(tokens) + deltas.item()


def test_after_the_image_the_next_word_is_token_27_at_position_9(node):
    for plan in MODELS:
        token = tokens_of(node, plan)[27]
        assert (token["word"], token["at"]) == ("now", [9, 9, 9])


@pytest.mark.parametrize(
    ("plan", "rotary", "sections"),
    [
        ("chunked", qwen2.Qwen2VLRotaryEmbedding, [16, 24, 24]),
        ("chunked", qwen2.Qwen2VLRotaryEmbedding, [8, 12, 12]),
        ("dealt out", qwen3.Qwen3VLTextRotaryEmbedding, [24, 20, 20]),
        ("dealt out", qwen3.Qwen3VLTextRotaryEmbedding, [11, 11, 10]),
    ],
)
def test_pairs_listen_to_the_axes_of_the_model(node, plan, rotary, sections):
    pairs = sum(sections)
    axes = torch.arange(3.0)[:, None, None].expand(3, 1, pairs).clone()
    stand_in = SimpleNamespace(mrope_section=sections)
    wanted = rotary.recomposition_frequencies(stand_in, axes)[0, :pairs]
    assert node.call("three_clocks.js", "axisOfPairs", plan, sections) == wanted.int().tolist()


@pytest.mark.parametrize("plan", MODELS)
def test_the_wavelengths_of_an_axis_are_those_of_its_pairs(node, plan):
    heard = node.call("three_clocks.js", "pairsByAxis", plan)
    waves = 2 * math.pi / inverse_frequencies(128, base=1e6)
    assert sorted(pair for axis in heard for pair in axis["pairs"]) == list(range(64))
    for axis in heard:
        own = waves[axis["pairs"]]
        assert axis["shortest"] == pytest.approx(own.min())
        assert axis["longest"] == pytest.approx(own.max())


def test_a_video_counts_as_one_before_a_word(node):
    before = partial(node.call, "three_clocks.js", "gridsBefore")
    for plan in MODELS:
        tokens = tokens_of(node, plan)
        assert before(tokens, 2) == []
        assert [grid["name"] for grid in before(tokens, 27)] == ["image"]
        assert len(before(tokens, len(tokens) - 1)) == 2
        assert before(tokens, len(tokens) - 1)[1]["name"] == "video"
    stamp = next(i for i, token in enumerate(tokens) if token["word"] == "1 s")
    assert before(tokens, stamp)[1]["name"] == "frame"  # the second is still to come


def test_both_figures_obey_keys_pointers_and_plans():
    run_tests(Path(__file__).with_name("axes.test.mjs"))


# ---- controls -----------------------------------------------------------------------------------
