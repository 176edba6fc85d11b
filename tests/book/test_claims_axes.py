"""More than one axis: groups counted, scores read backwards, and the classes of transformers."""

import importlib
import importlib.util
import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from tests.tools.timm_file import timm_rotations

SECTIONS = {"qwen2_vl": [16, 24, 24], "qwen3_vl": [24, 20, 20]}


# ---- the promise on rows and columns ------------------------------------------------------------


def test_of_all_signed_swaps_only_commuting_ones_keep_the_promise():
    """Refuted if among all pairs of signed swaps a relative one does not commute, or a
    commuting one is not relative.

    The 48 ways to swap and to reverse three channels, at the places (1, 0), (0, 1), (1, 1).
    """
    swaps = [np.eye(3, dtype=int)[list(order)] for order in itertools.permutations(range(3))]
    signs = [np.diag(s) for s in itertools.product((1, -1), repeat=3)]
    group = np.array([s @ p for s in signs for p in swaps])
    scores = np.einsum("aji,bjk->abik", group, group)  # of every two channels, query and key
    code = (scores + 1).reshape(48, 48, 9) @ 3 ** np.arange(9)
    own = code[np.flatnonzero((group == np.eye(3)).all((1, 2)))[0]]  # from (0, 0)
    m, n, both = np.indices((48, 48, 48)).reshape(3, -1)
    kept = (code[n, both] == own[m]) & (code[m, both] == own[n])
    commute = [
        np.array_equal(group[a] @ group[b], group[b] @ group[a]) for a, b in np.ndindex(48, 48)
    ]
    assert kept.sum() == sum(commute) == 480  # as many as the group's order times its classes
    for a, b in zip(m[kept], n[kept], strict=True):
        assert np.array_equal(group[a] @ group[b], group[b] @ group[a])


def exponential(skew: np.ndarray) -> np.ndarray:
    """Return e to the power of a skew matrix, by its eigenvectors."""
    values, vectors = np.linalg.eigh(1j * skew)
    return (vectors @ np.diag(np.exp(-1j * values)) @ vectors.conj().T).real


def test_scores_of_commuting_steps_are_waves_with_two_frequencies():
    """Refuted if scores of random commuting steps are not a sum of as many waves, or of other
    frequencies.

    The frequencies are read off the scores alone, as two shifts of one signal.
    """
    rng = np.random.default_rng(0)
    for _ in range(5):
        raw = 0.3 * rng.normal(size=(6, 6))
        skew = raw - raw.T
        column, row = exponential(skew), exponential(skew @ skew @ skew)
        q, k = rng.normal(size=(2, 6))
        power = np.linalg.matrix_power
        score = np.array(
            [[q @ power(row, v) @ power(column, u) @ k for u in range(14)] for v in range(14)]
        )
        seen = np.lib.stride_tricks.sliding_window_view(score, (7, 7)).reshape(64, 49)
        basis, sizes, _ = np.linalg.svd(seen)
        assert sizes[6] < 1e-10 * sizes[0]  # six waves: two for each of three planes
        at = basis[:, :6].reshape(8, 8, 6)
        shifts = ((at[:, :-1], at[:, 1:]), (at[:-1], at[1:]))
        over, down = (np.linalg.lstsq(*(z.reshape(-1, 6) for z in s))[0] for s in shifts)
        values, vectors = np.linalg.eig(over)
        other = np.diag(np.linalg.inv(vectors) @ down @ vectors)
        assert abs(values) == pytest.approx(1, abs=1e-5)
        assert abs(other) == pytest.approx(1, abs=1e-5)
        speeds = np.linalg.eigvals(skew).imag
        wanted = sorted(zip(np.exp(1j * speeds), np.exp(-1j * speeds**3), strict=True), key=str)
        found = zip(values, other, strict=True)
        for pair in found:
            assert min(abs(np.subtract(pair, want)).max() for want in wanted) < 1e-4


# ---- published towers ---------------------------------------------------------------------------


def models(name: str) -> Any:
    family, part = name.split(".")
    return importlib.import_module(f"transformers.models.{family}.{part}_{family}")


def codes(family: str, side: int) -> np.ndarray:
    """Return the position codes that a vision tower gives an image, (side * side, pairs)."""
    places = torch.tensor(np.indices((side, side)).reshape(2, -1).T)
    if family == "eva02":
        rope = timm_rotations().RotaryEmbeddingCat(64, in_pixels=False)
        sin, cos = rope.get_embed([side, side]).chunk(2, dim=-1)
        return (cos + 1j * sin)[:, ::2].numpy()  # each angle twice, side by side
    module = models(f"{family}.modeling")
    if family in ("sam3", "gemma4"):
        name = {"sam3": "Sam3ViT", "gemma4": "Gemma4Vision"}[family]
        config = getattr(models(f"{family}.configuration"), f"{name}Config")()
        rope = getattr(module, f"{name}RotaryEmbedding")(config)
        cos, sin = (t[0] for t in rope(torch.zeros(1), places[None] if name[0] == "G" else places))
        quarter = cos.shape[1] // 4  # Gemma's rows, rows again, columns, columns again
        own = [*range(quarter), *range(2 * quarter, 3 * quarter)]
        own = own if name[0] == "G" else range(0, 4 * quarter, 2)
        return (cos.double() + 1j * sin.double()).numpy()[:, list(own)]
    if family == "lightglue":
        config = module.LightGlueConfig(descriptor_dim=64, num_attention_heads=1)
        torch.manual_seed(0)
        with torch.no_grad():
            cos, sin = module.LightGluePositionalEncoder(config)(places[None].float())[0]
        return (cos + 1j * sin).reshape(side**2, -1)[:, ::2].numpy()
    name, made = {
        "qwen2_vl": ("Qwen2VLVisionRotaryEmbedding", "Qwen2VLVisionConfig"),
        "pixtral": ("PixtralVisionRotaryEmbedding", "PixtralVisionConfig"),
        "kimi_k25": ("Kimi_K25VisionRotaryEmbedding", "Kimi_K25VisionConfig"),
        "dinov3_vit": ("DINOv3ViTRopePositionEmbedding", "DINOv3ViTConfig"),
    }[family]
    config = getattr(models(f"{family}.configuration"), made)()
    rope = getattr(module, name)(config).eval()
    if family == "dinov3_vit":
        cos, sin = rope(torch.zeros(1, 3, side * config.patch_size, side * config.patch_size))
    else:
        cos, sin = rope(torch.zeros(1), places)
    cos, sin = (t.reshape(side**2, -1) for t in (cos, sin))
    half = cos.shape[1] // 2
    if torch.equal(cos[:, :half], cos[:, half:]):  # each angle twice
        cos, sin = cos[:, :half], sin[:, :half]
    return (cos.double() + 1j * sin.double()).numpy()


def likeness(code: np.ndarray) -> np.ndarray:
    """Return the mean cosine of every two patches."""
    return (code @ code.conj().T).real / code.shape[1]


def places_of(side: int) -> np.ndarray:
    return np.indices((side, side)).reshape(2, -1).T


NAMED = ["eva02", "sam3", "gemma4", "pixtral", "kimi_k25", "dinov3_vit"]
"""The towers whose names the plans of the chapter carry."""


@pytest.mark.parametrize("family", [*NAMED, "qwen2_vl", "lightglue"])
def test_the_nearest_code_of_published_towers_lies_in_the_row_or_the_column(family):
    """Refuted if the tables of a real tower have their nearest code elsewhere than in the row
    or the column.

    LightGlue learns its wave vectors, and has random ones here.
    """
    at = places_of(14)
    far = np.abs(at[:, None] - at)
    D = np.sqrt(np.maximum(2 - 2 * likeness(codes(family, 14)), 0))
    on_axes = []
    for least in (2, 3, 5, 7):
        left = np.where(far.max(-1) >= least, D, np.inf)
        nearest = np.argwhere(left < left.min() + 1e-5)
        on_axes.append(all(0 in far[a, b] for a, b in nearest))
    in_a_row = D[far[..., 0] == 0].max()
    if family == "lightglue":
        assert not all(on_axes)
        assert in_a_row > math.sqrt(2)
    else:
        assert all(on_axes)
        assert in_a_row <= math.sqrt(2) + 1e-6


@pytest.mark.parametrize("family", [*NAMED, "qwen2_vl"])
def test_a_transposed_image_looks_other_to_pixtral_and_alike_to_qwen(family):
    """Refuted if the real towers change by other amounts when an image is transposed."""
    side = 32
    code, (row, column) = codes(family, side), places_of(side).T
    upright = likeness(code)
    for other in (column * side + row, column * side + side - 1 - row):  # transposed; turned
        change = np.abs(upright - likeness(code[other])).max()
        assert change == pytest.approx(0.186 if family == "pixtral" else 0, abs=1e-3)


def test_dinov3_keeps_the_halves_of_an_image_and_qwen_the_neighbours():
    """Refuted if scores of the real towers at half an image, or at one patch, follow the
    image's size otherwise."""
    assert models("dinov3_vit.configuration").DINOv3ViTConfig().pos_embed_rescale == 2.0
    D = {}
    for family in ("dinov3_vit", "qwen2_vl"):
        for side in (14, 28, 56):
            code = codes(family, side)[: side // 2 + 1]  # of the first row
            D[family, side] = np.sqrt((np.abs(code[0] - code[[1, side // 2]]) ** 2).mean(-1))
    near, half = (np.array([D["dinov3_vit", side][i] for side in (14, 28, 56)]) for i in (0, 1))
    assert half == pytest.approx(half[0], abs=1e-5)
    assert (np.diff(near) < -0.05).all()
    near, half = (np.array([D["qwen2_vl", side][i] for side in (14, 28, 56)]) for i in (0, 1))
    assert near == pytest.approx(near[0], abs=1e-5)
    assert np.ptp(half) > 0.05


def test_a_tower_with_pressed_places_turns_by_positions_interpolated():
    """Refuted if the real tower's table differs from interpolated positions."""
    config = models("qwen2_vl.configuration").Qwen2VLVisionConfig()
    rope = models("qwen2_vl.modeling").Qwen2VLVisionRotaryEmbedding(config)
    per_axis = 2 * len(rope.inv_freq)
    text = LlamaConfig(
        hidden_size=per_axis,
        num_attention_heads=1,
        head_dim=per_axis,
        rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4},
    )
    speeds, _ = ROPE_INIT_FUNCTIONS["linear"](text, torch.device("cpu"))
    at = places_of(9)
    cos, sin = rope(torch.zeros(1), torch.tensor(at) / 2)
    angles = np.concatenate([at[:, :1] * speeds.numpy(), at[:, 1:] * speeds.numpy()], axis=1)
    got = (cos + 1j * sin).numpy()[:, : angles.shape[1]]
    np.testing.assert_allclose(got, np.exp(1j * angles), atol=1e-5)


def test_eva02_of_timm_presses_the_places_of_a_larger_image_into_those_of_its_training():
    """Refuted if timm's rotation gives a larger image the places of its own patches."""
    made = timm_rotations().RotaryEmbeddingCat
    pressed = made(64, in_pixels=False, ref_feat_shape=[14, 14]).get_embed([28, 28])
    speeds = 1e4 ** (-np.arange(16) / 16)
    at = places_of(28) / 2
    angles = np.concatenate([at[:, :1] * speeds, at[:, 1:] * speeds], axis=1)
    sin, cos = (t[:, ::2].numpy() for t in pressed.chunk(2, dim=-1))
    np.testing.assert_allclose(cos + 1j * sin, np.exp(1j * angles), atol=1e-5)
    plain = made(64, in_pixels=False).get_embed([28, 28])
    assert (plain - pressed).abs().max() > 0.5


def turned_by(family: str, x: torch.Tensor, at: np.ndarray) -> torch.Tensor:
    """Turn x (places, width) as a vision tower does."""
    module, places = models(f"{family}.modeling"), torch.tensor(at)
    (name,) = (n for n in vars(module) if n.endswith("VisionRotaryEmbedding"))
    config = getattr(models(f"{family}.configuration"), name.replace("RotaryEmbedding", "Config"))()
    cos, sin = getattr(module, name)(config)(x, places)
    return module.apply_rotary_pos_emb_vision(x[:, None], x[:, None], cos, sin)[0][:, 0]


def test_kimi_computes_what_qwen_does_after_a_permutation_of_channels():
    """Refuted if no permutation makes the two functions give equal scores, or none is needed."""
    at = places_of(7)
    q, k = torch.randn(2, len(at), 72, generator=torch.manual_seed(0))
    where = [2 * i + 1 for i in range(18)] + [2 * i for i in range(18)]  # rows, then columns
    channels = where + [36 + i for i in where]

    def scores(family, q, k):
        return turned_by(family, q, at) @ turned_by(family, k, at).T

    kimi = scores("kimi_k25", q, k)
    torch.testing.assert_close(
        scores("qwen3_vl", q[:, channels], k[:, channels]), kimi, rtol=0, atol=2e-4
    )
    assert (scores("qwen3_vl", q, k) - kimi).abs().max() > 1

    # No permutation changes the mean cosine, and Pixtral's is not that of an axial head as wide.
    at = places_of(14)
    speeds = 1e4 ** (-np.arange(16) / 16)
    angles = np.concatenate([at[:, :1] * speeds, at[:, 1:] * speeds], axis=1)
    apart = likeness(np.exp(1j * angles)) - likeness(codes("pixtral", 14))
    assert np.abs(apart).max() > 0.05


# ---- text with images ---------------------------------------------------------------------------


def text_rope(family: str) -> Any:
    section, module = SECTIONS[family], models(f"{family}.modeling")
    (config,) = (
        v for n, v in vars(models(f"{family}.configuration")).items() if n.endswith("TextConfig")
    )
    parameters = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": section}
    made = config(hidden_size=256, num_attention_heads=2, head_dim=128, rope_parameters=parameters)
    names = {"qwen2_vl": "Qwen2VLRotaryEmbedding", "qwen3_vl": "Qwen3VLTextRotaryEmbedding"}
    return getattr(module, names[family])(made)


def tables(family: str, at: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the cosines and sines of a text model, (T, 128), at places (T, 3)."""
    cos, sin = text_rope(family)(torch.zeros(1), torch.as_tensor(at).T[:, None])
    return cos[0], sin[0]


def test_who_listens_to_time_row_and_column_in_qwen():
    """Refuted if the real tables give other pairs to time, row or column, or other wavelengths."""
    found = {}
    for family in SECTIONS:
        cos, sin = tables(family, np.eye(3, dtype=int))  # a step of each axis
        angle = torch.atan2(sin, cos).double().numpy()[:, :64]
        found[family] = [
            [2 * np.pi / step[step > 0].max(), 2 * np.pi / step[step > 0].min()] for step in angle
        ]
        heard = (angle > 0).sum(axis=1)
        assert heard.tolist() == SECTIONS[family]
    chunks, dealt = np.array(found["qwen2_vl"]), np.array(found["qwen3_vl"])
    assert chunks[0] == pytest.approx([6.283, 160.1], rel=1e-3)
    assert chunks[2, 0] > 35_000
    assert (dealt[:, 0] < 10).all()
    assert (dealt[:, 1] > 1e6).all()


@pytest.mark.parametrize("family", SECTIONS)
def test_a_text_of_words_is_turned_as_ever_by_qwen(family):
    """Refuted if text alone gets another table than plain RoPE's."""
    config = LlamaConfig(head_dim=128, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    at = torch.arange(3000)
    plain = LlamaRotaryEmbedding(config)(torch.zeros(1), at[None])
    for got, want in zip(tables(family, at[:, None].expand(-1, 3)), plain, strict=True):
        assert torch.equal(got, want[0])


def test_a_qwen_that_counts_slots_after_an_image_says_something_else():
    """Refuted if a small real Qwen2-VL says the same with slots counted, or something else with
    its own rule.

    A small random Qwen2-VL reads an image, and then one more word from its cache.
    """
    module = models("qwen2_vl.modeling")
    vision = SimpleNamespace(spatial_merge_size=2)
    itself = SimpleNamespace(config=SimpleNamespace(vision_config=vision))
    index = module.Qwen2VLModel.get_rope_index
    itself.get_vision_position_ids = lambda *a, **k: module.Qwen2VLModel.get_vision_position_ids(
        itself, *a, **k
    )
    kinds = torch.tensor([[0] * 5 + [1] * 64 + [0] * 4])
    ids, delta = index(itself, torch.zeros_like(kinds), kinds, torch.tensor([[1, 16, 16]]), None)
    slots = kinds.shape[1]
    assert ids.max() + 1 == slots + delta == slots - (64 - 8)

    torch.manual_seed(0)
    config = models("qwen2_vl.configuration").Qwen2VLTextConfig(
        vocab_size=32, hidden_size=128, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=1, num_key_value_heads=1, initializer_range=0.2,
        bos_token_id=None, eos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
    )  # fmt: skip
    model = module.Qwen2VLTextModel(config).eval()
    x = torch.randn(1, slots + 1, 128)

    @torch.no_grad()
    def last(position):
        seen = model(inputs_embeds=x[:, :-1], position_ids=ids, use_cache=True)
        place = torch.full((3, 1, 1), position)
        return model(
            inputs_embeds=x[:, -1:], position_ids=place, past_key_values=seen.past_key_values
        ).last_hidden_state[0, 0]

    right = int(ids.max()) + 1
    with torch.no_grad():
        at = torch.cat((ids, torch.full((3, 1, 1), right)), dim=-1)
        whole = model(inputs_embeds=x, position_ids=at).last_hidden_state[0, -1]
    assert (last(right) - whole).norm() < 1e-4 * whole.norm()
    assert (last(slots) - whole).norm() > 0.05 * whole.norm()


@torch.no_grad()
@pytest.mark.parametrize("seed", range(3))
def test_after_a_video_two_rules_of_counting_give_a_word_two_meanings(seed):
    """Refuted if transformers counts on from the largest position, or the word is the same."""
    module = models("qwen2_vl.modeling")
    text: dict[str, Any] = {
        "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "vocab_size": 64,
        "num_attention_heads": 2, "num_key_value_heads": 2, "initializer_range": 0.3,
        "bos_token_id": None, "eos_token_id": None,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]},
    }  # fmt: skip
    vision = {"depth": 1, "embed_dim": 16, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 1}
    config = models("qwen2_vl.configuration").Qwen2VLConfig(
        text_config=text, vision_config=vision, image_token_id=60, video_token_id=61
    )
    model = module.Qwen2VLModel(config)

    def counted(frames: int) -> tuple[torch.Tensor, int]:
        """Positions of a word, a video of 2 by 2 tokens a frame and two words."""
        row = torch.tensor([[1, *[61] * 4 * frames, 2, 3]])
        ids, delta = model.get_rope_index(
            row,
            mm_token_type_ids=2 * (row == 61).int(),
            video_grid_thw=torch.tensor([[frames, 4, 4]]),
        )
        return ids, row.shape[1] + int(delta)

    for frames, following, generated in ((2, 3, 5), (8, 3, 9)):
        ids, first_generated = counted(frames)
        assert ids[:, 0, -2:].tolist() == [[following, following + 1]] * 3
        assert first_generated == generated
        largest = int(ids[:, :, :-2].max()) + 1
        assert largest == (3 if frames == 2 else 9)
    other = ids.clone()
    other[:, :, -2:] = torch.tensor([largest, largest + 1])
    torch.manual_seed(seed)
    reader = module.Qwen2VLTextModel(config.text_config).double().eval()
    x = torch.randn(1, ids.shape[-1], 64, dtype=torch.float64)
    one, two = (
        reader(inputs_embeds=x, position_ids=p).last_hidden_state[0, -1] for p in (ids, other)
    )
    assert (one - two).norm() > 0.5 * one.norm()
