"""Positions on several axes: each plan beside its real package, down to the channels of a pair."""

import importlib
import itertools
import math
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from rope_minimal import apply_rope, inverse_frequencies, mrope_positions, rope_table, wave_vectors
from ropebook import aliasing
from ropebook.aliasing import code_distance, mean_cosine, nearest_code, nearest_offset
from tests.tools.timm_file import timm_rotations

HEADS, SHAPE = 2, (3, 5)  # an image that is not square
PLACES = np.indices(SHAPE).reshape(2, -1).T  # (row, column), as the patches come
FLOAT32 = {"rtol": 0, "atol": 2e-5}  # the peers' angles of up to 60 radians are float32
PLANS = {
    "axial": wave_vectors("axial", 16),
    "pixtral": wave_vectors("pixtral", 16),
    "kimi": wave_vectors("kimi", 16),
    "dinov3": wave_vectors("dinov3", 16),
    "mixed": wave_vectors("mixed", 16, seed=1),
}


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.manual_seed(seed))


def models(name: str) -> ModuleType:
    """Return a file of transformers, ``family.part``."""
    family, part = name.split(".")
    return importlib.import_module(f"transformers.models.{family}.{part}_{family}")


def turned(x: Tensor, places: Any, vectors: np.ndarray, *, interleaved: bool = False) -> Tensor:
    cos, sin = rope_table(places, 2 * vectors.shape[1], inv_freq=vectors)
    return apply_rope(x, cos, sin, interleaved=interleaved)


# The table -----------------------------------------------------------------------------------


def test_one_axis_stays_what_it_is_to_the_bit() -> None:
    theta = torch.from_numpy(inverse_frequencies(64))
    theta[-1] = 0.0
    places = torch.tensor([[-3, 0, 1, 2], [5, 7, 131_071, -131_071]])
    angle = places.double()[..., None] * theta
    for dtype in (torch.float32, torch.float64):
        plain = rope_table(places, 64, inv_freq=theta, dtype=dtype)
        one = rope_table(places[..., None], 64, inv_freq=theta[None], dtype=dtype)
        for got, same, want in zip(plain, one, (angle.cos(), angle.sin()), strict=True):
            assert got.shape == (2, 4, 32)
            assert torch.equal(got, want.to(dtype))
            assert torch.equal(same, want.to(dtype))


@pytest.mark.parametrize("axes", [1, 2, 3, 5])
def test_an_angle_is_the_dot_product_of_a_position_and_a_wave_vector(axes: int) -> None:
    draw = np.random.default_rng(axes)
    places, vectors = draw.normal(size=(2, 7, axes)), draw.normal(size=(axes, 4))
    cos, sin = rope_table(places, 8, inv_freq=vectors, dtype=torch.float64)
    want = np.exp(1j * np.einsum("bta,ap->btp", places, vectors))
    np.testing.assert_allclose(cos.numpy() + 1j * sin.numpy(), want, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.float32, torch.float64])
def test_places_on_axes_are_counted_or_measured(dtype: torch.dtype) -> None:
    vectors = PLANS["axial"]
    want = rope_table(PLACES.tolist(), 16, inv_freq=vectors)
    got = rope_table(torch.tensor(PLACES).to(dtype), 16, inv_freq=torch.tensor(vectors))
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a, b)


def test_wave_vectors_can_learn() -> None:
    vectors = torch.tensor(PLANS["mixed"], requires_grad=True)
    torch.autograd.gradcheck(
        lambda k: rope_table(PLACES, 16, inv_freq=k, dtype=torch.float64), vectors
    )


@pytest.mark.parametrize("plan", PLANS)
@settings(deadline=None, max_examples=10)
@given(st.lists(st.integers(-40, 40), min_size=6, max_size=6), st.booleans())
def test_a_score_knows_the_offset_only(plan: str, numbers: list[int], interleaved: bool) -> None:
    at, offset, shift = np.reshape(numbers, (3, 2))
    q, k = random(2, 1, 16, seed=3).double()
    scores = []
    for start in (at, at + shift):
        tables = [
            rope_table([place.tolist()], 16, inv_freq=PLANS[plan], dtype=torch.float64)
            for place in (start, start + offset)
        ]
        y, z = (
            apply_rope(x, *t, interleaved=interleaved) for x, t in zip((q, k), tables, strict=True)
        )
        scores.append((y * z).sum().item())
    assert scores[0] == pytest.approx(scores[1], abs=1e-11)


# The plans -----------------------------------------------------------------------------------

TOWERS = ["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "glm4v"]


@pytest.mark.parametrize("family", TOWERS)
def test_the_towers_of_qwen2_vl_and_relatives_are_axial(family: str) -> None:
    module, settings_ = models(f"{family}.modeling"), models(f"{family}.configuration")
    (name,) = (n for n in vars(module) if n.endswith("VisionRotaryEmbedding"))
    config = getattr(settings_, name.replace("RotaryEmbedding", "Config"))()
    rope = getattr(module, name)(config)
    q, k = random(2, len(PLACES), HEADS, 4 * len(rope.inv_freq))
    cos, sin = rope(q, torch.tensor(PLACES))
    vectors = wave_vectors("axial", q.shape[-1])
    for x, want in zip((q, k), module.apply_rotary_pos_emb_vision(q, k, cos, sin), strict=True):
        got = turned(x.transpose(0, 1), PLACES, vectors).transpose(0, 1)
        torch.testing.assert_close(got, want, **FLOAT32)


def test_pixtral() -> None:
    pixtral = models("pixtral.modeling")
    config = models("pixtral.configuration").PixtralVisionConfig()
    q = random(1, HEADS, len(PLACES), 64)
    cos, sin = pixtral.PixtralVisionRotaryEmbedding(config)(q, torch.tensor(PLACES))
    want, _ = pixtral.apply_rotary_pos_emb(q, q, cos, sin, unsqueeze_dim=0)
    torch.testing.assert_close(turned(q, PLACES, wave_vectors("pixtral", 64)), want, **FLOAT32)


def test_kimi() -> None:
    kimi = models("kimi_k25.modeling")
    config = models("kimi_k25.configuration").Kimi_K25VisionConfig()
    q = random(len(PLACES), HEADS, 72)
    cos, sin = kimi.Kimi_K25VisionRotaryEmbedding(config)(q, torch.tensor(PLACES))
    want, _ = kimi.apply_rotary_pos_emb_vision(q, q, cos, sin)
    got = turned(q.transpose(0, 1), PLACES, wave_vectors("kimi", 72)).transpose(0, 1)
    torch.testing.assert_close(got, want, **FLOAT32)


def test_dinov3_measures_in_sizes_of_the_image() -> None:
    dino = models("dinov3_vit.modeling")
    config = models("dinov3_vit.configuration").DINOv3ViTConfig(patch_size=16)
    rope = dino.DINOv3ViTRopePositionEmbedding(config).eval()
    q = random(1, HEADS, 1 + len(PLACES), rope.head_dim)  # the class token does not turn
    cos, sin = rope(torch.zeros(1, 3, 16 * SHAPE[0], 16 * SHAPE[1]))
    want, _ = dino.apply_rotary_pos_emb(q, q, cos, sin)
    places = (PLACES + 0.5) / SHAPE - 0.5
    got = turned(q[:, :, 1:], places, wave_vectors("dinov3", rope.head_dim))
    torch.testing.assert_close(got, want[:, :, 1:], **FLOAT32)
    assert torch.equal(want[:, :, 0], q[:, :, 0])


def sam(family: str) -> tuple[ModuleType, Any, Tensor]:
    """Return SAM's file, its rotation and the places that it counts in an image."""
    module, settings_ = models(f"{family}.modeling"), models(f"{family}.configuration")
    if family == "sam3":
        config = settings_.Sam3ViTConfig()
        places = module.Sam3ViTLayer.precompute_positions(config, 0)  # a layer without windows
        return module, module.Sam3ViTRotaryEmbedding(config), places
    config = settings_.Sam2VideoConfig(memory_attention_rope_feat_sizes=[5, 3])
    places = module.Sam2VideoMemoryAttention.precompute_positions(config)
    return module, module.Sam2VideoVisionRotaryEmbedding(config), places


@pytest.mark.parametrize("family", ["sam2_video", "sam3"])
def test_sam_is_axial_by_neighbours_and_counts_the_column_first(family: str) -> None:
    module, rope, places = sam(family)
    assert places[0, 1] == places[1, 1]
    assert places[0, 0] < places[1, 0]
    if family == "sam3":  # 72 places are pressed into the 24 of a window
        assert places.unique().numel() == 72
        assert places.max() == pytest.approx(71 / 3)
    places = places[:99]
    q = random(1, HEADS, len(places), 4 * len(rope.inv_freq))
    want, _ = module.apply_rotary_pos_emb_2d(q, q, *rope(q, places))
    vectors = wave_vectors("axial", q.shape[-1])
    torch.testing.assert_close(turned(q, places, vectors, interleaved=True), want, **FLOAT32)


def test_gemma4_splits_each_half_of_the_head_into_halves() -> None:
    gemma = models("gemma4.modeling")
    config = models("gemma4.configuration").Gemma4VisionConfig()
    q, places = random(1, len(PLACES), HEADS, 64), torch.tensor(PLACES)[None]
    cos, sin = gemma.Gemma4VisionRotaryEmbedding(config)(q, places)
    want = gemma.apply_multidimensional_rope(q, cos, sin, places)
    tables = rope_table(PLACES, 64, inv_freq=wave_vectors("axial", 64, 100))
    halves = zip(q.transpose(1, 2).chunk(2, -1), *(t.chunk(2, -1) for t in tables), strict=True)
    got = torch.cat([apply_rope(x, cos, sin) for x, cos, sin in halves], dim=-1)
    torch.testing.assert_close(got.transpose(1, 2), want, **FLOAT32)


def test_minimax_has_three_axes_and_leaves_two_channels() -> None:
    minimax = models("minimax_m3_vl.modeling")
    config = models("minimax_m3_vl.configuration").MiniMaxM3VLVisionConfig()
    places = np.indices((2, *SHAPE)).reshape(3, -1).T
    q = random(len(places), HEADS, 80)
    cos, sin = minimax.MiniMaxM3VLVisionRotaryEmbedding(config)(q, torch.tensor(places))
    want, _ = minimax.apply_rotary_pos_emb_vision(q, q, cos, sin)
    got = turned(q.transpose(0, 1), places, wave_vectors("axial", 78, axes=3)).transpose(0, 1)
    torch.testing.assert_close(got, want, **FLOAT32)
    assert torch.equal(want[..., 78:], q[..., 78:])


SECTIONS = [
    ("qwen2_vl", "Qwen2VLRotaryEmbedding", [16, 24, 24], False),
    ("qwen2_vl", "Qwen2VLRotaryEmbedding", [8, 12, 12], False),  # GLM-4V's
    ("qwen2_5_vl", "Qwen2_5_VLRotaryEmbedding", [16, 24, 24], False),
    ("qwen3_vl", "Qwen3VLTextRotaryEmbedding", [24, 20, 20], True),
    ("qwen3_vl", "Qwen3VLTextRotaryEmbedding", [11, 11, 10], True),  # Qwen3.5's
]


@pytest.mark.parametrize(("family", "name", "section", "dealt"), SECTIONS)
def test_mrope(family: str, name: str, section: list[int], dealt: bool) -> None:
    module, settings_ = models(f"{family}.modeling"), models(f"{family}.configuration")
    (text,) = (v for n, v in vars(settings_).items() if n.endswith("TextConfig"))
    dim = 2 * sum(section)
    parameters = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": section}
    config = text(
        hidden_size=2 * dim, num_attention_heads=2, head_dim=dim, rope_parameters=parameters
    )
    places = mrope_positions([4, (1, 6, 10), 3, (2, 4, 4), 2])
    q = random(1, HEADS, len(places), dim)
    cos, sin = getattr(module, name)(config)(q, torch.tensor(places).T[:, None])
    want, _ = module.apply_rotary_pos_emb(q, q, cos, sin)
    vectors = wave_vectors("mrope", dim, mrope_section=section, mrope_interleaved=dealt)
    torch.testing.assert_close(turned(q, places, vectors), want, **FLOAT32)
    assert np.count_nonzero(vectors, axis=1).tolist() == section


@pytest.fixture
def timm() -> ModuleType:
    """timm's own rotations."""
    return timm_rotations()


def test_timm_axial_as_eva_02(timm: ModuleType) -> None:
    q = random(1, HEADS, len(PLACES), 64)
    table = timm.RotaryEmbeddingCat(64, in_pixels=False).get_embed(list(SHAPE))
    want = timm.apply_rot_embed_cat(q, table)
    got = turned(q, PLACES, wave_vectors("axial", 64), interleaved=True)
    torch.testing.assert_close(got, want, **FLOAT32)


def test_timm_measures_eva_02_in_patches_of_its_training(timm: ModuleType) -> None:
    q, trained = random(1, HEADS, len(PLACES), 64), [16, 16]
    rope = timm.RotaryEmbeddingCat(64, in_pixels=False, ref_feat_shape=trained)
    want = timm.apply_rot_embed_cat(q, rope.get_embed(list(SHAPE)))
    places = PLACES / SHAPE * trained
    got = turned(q, places, wave_vectors("axial", 64), interleaved=True)
    torch.testing.assert_close(got, want, **FLOAT32)


@pytest.mark.parametrize("seed", [0, 7])
def test_timm_mixed_as_rope_vit(
    timm: ModuleType, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    vectors = wave_vectors("mixed", 64, seed=seed)
    turns = math.atan2(vectors[0, 0], vectors[1, 0]) / (2 * math.pi)
    with monkeypatch.context() as patch:  # the one number that it draws
        patch.setattr(torch, "rand", lambda *shape, **_: torch.full(shape, turns))
        rope = timm.RotaryEmbeddingMixed(HEADS * 64, 1, HEADS)
    q = random(HEADS, len(PLACES), 64)
    want = timm.apply_rot_embed_cat(q, rope.get_embed(list(SHAPE))[0])
    torch.testing.assert_close(turned(q, PLACES, vectors, interleaved=True), want, **FLOAT32)


# What the plans are, without a peer ----------------------------------------------------------


def as_set(vectors: np.ndarray) -> list[tuple[float, ...]]:
    """Return the wave vectors in order, each with its opposite, for a cosine knows no sign."""
    both = np.concatenate((vectors, -vectors), axis=1) + 0.0
    return sorted(map(tuple, both.T.round(12).tolist()))


def test_axial_and_kimi_hold_the_same_wave_vectors() -> None:
    assert as_set(PLANS["axial"]) == as_set(PLANS["kimi"])
    assert as_set(PLANS["axial"]) != as_set(PLANS["pixtral"])


@pytest.mark.parametrize(
    ("plan", "turn", "mirror"),
    [
        ("axial", True, True),
        ("kimi", True, True),
        ("dinov3", True, True),
        ("pixtral", False, False),
        ("mixed", True, False),
    ],
)
def test_which_plans_survive_a_turn_of_the_image(plan: str, turn: bool, mirror: bool) -> None:
    row, column = vectors = PLANS[plan]
    assert (as_set(np.array([column, -row])) == as_set(vectors)) is turn
    assert (as_set(np.array([column, row])) == as_set(vectors)) is mirror


def test_mixed_is_axial_at_one_angle_for_the_whole_head() -> None:
    vectors = wave_vectors("mixed", 32, 100.0, seed=5)
    lengths = np.linalg.norm(vectors, axis=0)
    np.testing.assert_allclose(lengths, np.tile(inverse_frequencies(16, 100.0), 2), rtol=1e-14)
    np.testing.assert_allclose((vectors[:, :8] * vectors[:, 8:]).sum(axis=0), 0, atol=1e-15)
    across = vectors / lengths
    np.testing.assert_allclose(across[:, :8], across[:, :1].repeat(8, axis=1), atol=1e-14)
    # square to each other, the second a quarter turn on from the column to the row
    assert across[1, 0] * across[0, 8] - across[0, 0] * across[1, 8] == pytest.approx(1)
    assert not np.allclose(vectors, wave_vectors("mixed", 32, 100.0, seed=6))


@pytest.mark.parametrize("plan", PLANS)
def test_axial_scores_are_a_part_for_rows_and_a_part_for_columns(plan: str) -> None:
    """A(dy) + B(dx) has no interaction, whatever is asked; a turned plan has one."""
    weight = np.random.default_rng(0).normal(size=(8, 2)) @ [1, 1j]
    offsets = np.stack(np.meshgrid(range(4), range(4), indexing="ij"), axis=-1)
    score = (weight * np.exp(1j * offsets @ PLANS[plan])).sum(-1).real
    interaction = np.abs(score - score[:1] - score[:, :1] + score[0, 0]).max()
    if plan == "mixed":
        assert interaction > 0.5
    else:
        assert interaction < 1e-12


@pytest.mark.parametrize("base", [10.0, 500.0])
def test_speeds_of_the_plans_pair_by_pair(base: float) -> None:
    axial = {
        "axial": [(base ** (-i / 4), 0) for i in range(4)]
        + [(0, base ** (-i / 4)) for i in range(4)],
        "pixtral": [(base ** (-i / 4), 0) for i in range(4)]
        + [(0, base ** (-(i + 0.5) / 4)) for i in range(4)],
        "kimi": [pair for i in range(4) for pair in ((0, base ** (-i / 4)), (base ** (-i / 4), 0))],
    }
    for kind, pairs in axial.items():
        np.testing.assert_allclose(wave_vectors(kind, 16, base).T, pairs, rtol=1e-13)
    dino = 4 * math.pi * np.array(axial["axial"])
    np.testing.assert_allclose(wave_vectors("dinov3", 16, base).T, dino, rtol=1e-13)


def test_bases_of_the_plans() -> None:
    for kind, base in {
        "axial": 1e4,
        "pixtral": 1e4,
        "kimi": 1e4,
        "dinov3": 100,
        "mixed": 10,
    }.items():
        assert np.array_equal(wave_vectors(kind, 16), wave_vectors(kind, 16, base))
    third = wave_vectors("axial", 12, axes=3)
    assert third.shape == (3, 6)
    assert np.array_equal(third @ third.T != 0, np.eye(3, dtype=bool))
    one = wave_vectors("axial", 12, axes=1)
    assert np.array_equal(one, inverse_frequencies(12)[None])


# Positions of a text with images -------------------------------------------------------------


def rope_index(family: str, parts: list[Any], seconds: float | None = None) -> np.ndarray:
    """Return what the model of transformers gives the same tokens, (T, 3)."""
    module = models(f"{family}.modeling")
    (model,) = (
        v for n, v in vars(module).items() if n.endswith("Model") and hasattr(v, "get_rope_index")
    )
    vision = SimpleNamespace(spatial_merge_size=2, tokens_per_second=2)
    itself = SimpleNamespace(config=SimpleNamespace(vision_config=vision))
    itself.get_vision_position_ids = partial(model.get_vision_position_ids, itself)
    kinds: list[int] = []
    images, videos = [], []
    for part in parts:
        if isinstance(part, int):
            kinds += [0] * part
        else:
            t, h, w = part
            kinds += [1 if t == 1 else 2] * (t * h * w // 4)
            (images if t == 1 else videos).append(part)
    if family == "qwen3_vl":  # every step of a video has a text before it that tells the time
        videos, images, kinds = images, [], [2 * kind for kind in kinds]
    more = {"second_per_grid_ts": torch.tensor([seconds] * len(videos))} if seconds else {}
    ids, delta = model.get_rope_index(
        itself,
        torch.zeros(1, len(kinds), dtype=torch.long),
        torch.tensor([kinds]),
        torch.tensor(images) if images else None,
        torch.tensor(videos) if videos else None,
        **more,
    )
    assert delta.item() == ids.max() + 1 - len(kinds)
    return ids[:, 0].T.numpy()


sides = st.integers(1, 5).map(lambda n: 2 * n)
texts = st.integers(1, 6)


def documents(steps: st.SearchStrategy[int]) -> st.SearchStrategy[list[Any]]:
    grid = st.tuples(steps, sides, sides)
    several = st.lists(st.tuples(grid, texts), max_size=4)
    return st.tuples(texts, several).map(lambda d: [d[0], *itertools.chain(*d[1])])


@settings(deadline=None, max_examples=30)
@given(documents(st.integers(1, 9)))
def test_positions_are_those_of_qwen2_vl(parts: list[Any]) -> None:
    assert np.array_equal(mrope_positions(parts), rope_index("qwen2_vl", parts))


@settings(deadline=None, max_examples=30)
@given(documents(st.integers(1, 40)), st.integers(1, 400).map(lambda n: n / 100))
@example([1, (26, 2, 2), 1], 0.58)  # 25 x 1.16 is 29 in float32, 28.999.. in float64
@example([1, (31, 2, 2), 1], 1.05)  # 30 x 2.10 is 62.999.. in float32, 63 in float64
def test_positions_are_those_of_qwen2_5_vl(parts: list[Any], seconds: float) -> None:
    got = mrope_positions(parts, time_interval=2 * seconds)
    assert np.array_equal(got, rope_index("qwen2_5_vl", parts, seconds))


@settings(deadline=None, max_examples=20)
@given(documents(st.just(1)))
def test_positions_are_those_of_qwen3_vl(parts: list[Any]) -> None:
    assert np.array_equal(mrope_positions(parts), rope_index("qwen3_vl", parts))


def test_a_text_of_its_own_is_counted_as_ever() -> None:
    places = mrope_positions([3, 2])
    assert places.dtype == np.int64
    assert places.tolist() == [[n] * 3 for n in range(5)]
    vectors = wave_vectors("mrope", 16, mrope_section=[2, 3, 3])
    for a, b in zip(
        rope_table(places, 16, inv_freq=vectors), rope_table(range(5), 16, 1e6), strict=True
    ):
        assert torch.equal(a, b)


def test_after_an_image_the_next_position_is_smaller_than_the_number_of_tokens() -> None:
    places = mrope_positions([2, (1, 4, 6), 1])
    assert places.tolist() == [
        [0, 0, 0], [1, 1, 1],
        [2, 2, 2], [2, 2, 3], [2, 2, 4], [2, 3, 2], [2, 3, 3], [2, 3, 4],
        [5, 5, 5],
    ]  # fmt: skip
    assert mrope_positions([1, (1, 4, 6), 1], spatial_merge_size=1)[-1, 0] == 7
    assert mrope_positions([1, np.array([1, 6, 4]), np.int64(1)])[-1, 0] == 4


def test_the_text_after_a_video_does_not_wait_for_its_last_step() -> None:
    places = mrope_positions([1, (8, 4, 4), 1])
    assert places[-2].tolist() == [8, 2, 2]
    assert places[-1].tolist() == [3, 3, 3]


def test_each_video_may_have_a_pace_of_its_own() -> None:
    places = mrope_positions([(3, 2, 2), (1, 2, 2), (3, 2, 2)], time_interval=[0.5, 9, 2.25])
    assert places[:, 0].tolist() == [0, 0, 1, 1, 2, 4, 6]
    assert mrope_positions([(3, 2, 2), 1], time_interval=0)[:, 0].tolist() == [0, 0, 0, 1]


# Distances on the plane ----------------------------------------------------------------------


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_distances_on_axes_are_those_of_complex_codes(axes: int) -> None:
    draw = np.random.default_rng(axes)
    offsets, vectors = draw.integers(-50, 50, (4, 6, axes)), draw.normal(size=(axes, 5))
    codes = np.exp(1j * offsets @ vectors)
    apart = np.sqrt((np.abs(1 - codes) ** 2).mean(-1))
    np.testing.assert_allclose(mean_cosine(offsets, vectors), codes.real.mean(-1), atol=1e-12)
    np.testing.assert_allclose(code_distance(offsets, vectors), apart, atol=1e-12)
    assert code_distance(offsets[0, 0], vectors).shape == ()


def test_one_row_of_wave_vectors_is_one_axis() -> None:
    theta, distances = inverse_frequencies(8), np.arange(-30, 300)
    for function in (mean_cosine, code_distance):
        same = function(distances[:, None], theta[None])
        assert same.tobytes() == function(distances, theta).tobytes()
    found, near = nearest_offset(theta[None], [300], 2), nearest_code(theta, 299, 2)
    assert found == ((near.distance,), near.code_distance)


def plainly_nearest(vectors: np.ndarray, shape: tuple[int, ...], least: int) -> float:
    """Compare every two places of a grid, one by one."""
    places = np.array(list(np.ndindex(shape)))
    best = math.inf
    for a, b in itertools.combinations(places, 2):
        if np.abs(a - b).max() >= least:
            apart = np.exp(1j * a @ vectors) - np.exp(1j * b @ vectors)
            best = min(best, math.sqrt((np.abs(apart) ** 2).mean()))
    return best


@pytest.mark.parametrize("least", [1, 2, 4])
@pytest.mark.parametrize("plan", PLANS)
def test_nearest_offset_is_the_minimum_over_all_pairs_of_places(plan: str, least: int) -> None:
    for shape in ((5, 7), (6, 1), (1, 5)):
        found = nearest_offset(PLANS[plan], shape, least)
        assert found.code_distance == pytest.approx(plainly_nearest(PLANS[plan], shape, least))
        assert code_distance(found.offset, PLANS[plan]) == pytest.approx(found.code_distance)
        assert max(map(abs, found.offset)) >= least
        assert all(abs(d) < n for d, n in zip(found.offset, shape, strict=True))
        assert next(d for d in found.offset if d) > 0


def test_nearest_offset_of_a_tie_is_the_shortest_and_moves_forward() -> None:
    assert nearest_offset(np.zeros((2, 3)), (4, 4)) == ((0, 1), 0.0)
    assert nearest_offset(np.zeros((2, 3)), (4, 4), 2) == ((0, 2), 0.0)
    assert nearest_offset(np.zeros((3, 1)), (2, 1, 2)) == ((0, 0, 1), 0.0)
    # rows 5 and columns 3, 4 apart come back, to the last digit or nearly so
    turn = 2 * np.pi
    vectors = np.array([[turn / 5, 0, 0], [0, turn / 3, turn / 3]])
    assert nearest_offset(vectors, (6, 6))[0] == (0, 3)
    assert nearest_offset(np.array([[turn / 2], [turn / 4]]), (2, 4))[0] == (1, 2)  # and (1, -2)
    diagonal = np.array([[turn / 4], [-turn / 4]])
    assert nearest_offset(diagonal, (9, 9))[0] == (1, 1)
    assert nearest_offset(diagonal, (9, 9), 3)[0] == (1, -3)
    assert nearest_offset(np.array([[turn / 4], [turn / 4]]), (9, 9))[0] == (1, -1)
    assert nearest_offset(np.array([[turn / 5] * 2, [turn / 5 * 2] * 2]), (4, 4))[0] == (1, 2)
    # two offsets of one length with one step back each, on three axes and on four
    assert nearest_offset(np.array([[4.0], [1], [-1]]) * 0.731, (5, 5, 5), 3)[0] == (1, -1, 3)
    four = np.array([[2.0], [5], [3], [1]]) * 0.731
    assert nearest_offset(four, (2, 3, 2, 2))[0] == (1, 0, -1, 1)


def test_searches_on_the_plane_do_not_depend_on_the_block_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = [nearest_offset(PLANS[plan], (9, 12), 3) for plan in PLANS]
    monkeypatch.setattr(aliasing, "_BLOCK", 20)
    assert [nearest_offset(PLANS[plan], (9, 12), 3) for plan in PLANS] == whole
