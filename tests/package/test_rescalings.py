"""The published rescalings of the frequencies: peers, golden numbers, limits."""

import math

import numpy as np
import pytest

from rope_minimal import inverse_frequencies, rescaled_frequencies, wavelengths
from rope_minimal.rescaling import _KINDS

SAMPLES = 60  # random configurations per kind


# Parity with Hugging Face ------------------------------------------------------------------


def peer(kind, head_dim, base, seq_len=None, max_position_embeddings=2048, **parameters):
    """What transformers computes for the same parameters, as float64, and its attention factor."""
    rope = pytest.importorskip("transformers.modeling_rope_utils")
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=2 * head_dim,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=head_dim,
        max_position_embeddings=max_position_embeddings,
        rope_parameters={"rope_type": kind, "rope_theta": base, **parameters},
    )
    inv_freq, attention = rope.ROPE_INIT_FUNCTIONS[kind](config, "cpu", seq_len=seq_len)
    return inv_freq.double().numpy(), attention


def random_case(kind, rng):
    """A head width, a base and random parameters that ``kind`` understands."""
    dim = int(rng.choice([32, 64, 80, 96, 128, 192, 256]))
    base = float(rng.choice([600.0, 1e4, 5e5, 1e6, 1e7, rng.uniform(500.0, 1e5)]))
    length = int(rng.choice([1024, 2048, 4096, 8192, 32768]))
    factor = float(rng.uniform(1.0, 40.0))
    partial = float(rng.choice([1.0, 1.0, 0.5, 0.25]))
    original = {"original_max_position_embeddings": length}
    pairs = int(dim * partial) // 2
    match kind:
        case "linear":
            own = {"factor": factor, "partial_rotary_factor": partial}
        case "dynamic":
            own = {"factor": factor, "partial_rotary_factor": partial}
            own |= {"max_position_embeddings": length, "seq_len": int(rng.integers(1, 8 * length))}
        case "yarn":
            own = {"beta_fast": rng.uniform(8.0, 64.0), "beta_slow": rng.uniform(0.5, 4.0)}
            own |= original | {"factor": factor}
            own |= [
                {},
                {"truncate": False},
                {"attention_factor": rng.uniform(0.5, 2.0)},
                {"mscale": 0.707},
                {"mscale": 0.707, "mscale_all_dim": rng.uniform(0.5, 1.5)},
            ][rng.integers(5)]
        case "llama3":
            low = rng.uniform(0.5, 2.0)
            own = {"low_freq_factor": low, "high_freq_factor": low + rng.uniform(0.5, 8.0)}
            own |= original | {"factor": factor}
        case "longrope":
            own = original | {
                "short_factor": list(rng.uniform(1.0, 2.0, pairs)),
                "long_factor": list(rng.uniform(1.0, 60.0, pairs)),
                "seq_len": int(rng.choice([1, length, length + 1, 4 * length])),
                "partial_rotary_factor": partial,
                "factor": factor,
            }
        case "proportional":
            own = {"partial_rotary_factor": rng.uniform(0.1, 1.0), "factor": factor}
    return dim, base, own


@pytest.mark.parametrize(
    "kind", ["linear", "dynamic", "yarn", "llama3", "longrope", "proportional"]
)
def test_every_kind_of_transformers_is_equal_to_1e_7(kind):
    rng = np.random.default_rng(20260)
    for _ in range(SAMPLES):
        dim, base, parameters = random_case(kind, rng)
        want, want_attention = peer(kind, dim, base, **parameters)
        got, attention = rescaled_frequencies(kind, dim, base, **parameters)
        assert got.dtype == np.float64
        assert got.shape == want.shape, parameters
        assert np.abs(got - want).max() < 1e-7, parameters
        # The peer computes in float32; slow pairs must agree relative to their own size as well.
        assert np.allclose(got, want, rtol=5e-6, atol=0), parameters
        assert attention == pytest.approx(want_attention, abs=1e-12)


def test_longrope_takes_its_factor_from_the_two_lengths_as_transformers_does():
    own = {
        "short_factor": [1.0] * 32,
        "long_factor": [2.0] * 32,
        "original_max_position_embeddings": 4096,
        "max_position_embeddings": 131_072,
    }
    want, want_attention = peer("longrope", 64, 1e4, **own)
    got, attention = rescaled_frequencies("longrope", 64, 1e4, **own)
    assert np.abs(got - want).max() < 1e-7
    assert attention == pytest.approx(want_attention, abs=1e-12)


@pytest.mark.parametrize(
    ("dim", "base", "changed"), [(64, 1e4, {"factor": 0.5}), (32, 10.0, {"factor": 4.0})]
)
def test_yarn_at_its_edges_is_that_of_transformers(dim, base, changed):
    """A factor below 1 brings no temperature; a knee past the last pair is drawn back to it."""
    own = {"original_max_position_embeddings": 2**20, "beta_fast": 9e4} | changed
    want, want_attention = peer("yarn", dim, base, **own)
    got, attention = rescaled_frequencies("yarn", dim, base, **own)
    assert np.abs(got / want - 1).max() < 1e-6
    assert attention == pytest.approx(want_attention, abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "dim", "base", "length", "factor", "knees", "kept"),
    [
        ("yarn", 64, 5e4, 4096, 32.0, ("beta_fast", "beta_slow"), 20),  # as Kimi K2 has it
        ("llama3", 128, 5e5, 8192, 16.0, ("low_freq_factor", "high_freq_factor"), 35),
    ],
)
def test_equal_knees_are_a_step_as_in_transformers(kind, dim, base, length, factor, knees, kept):
    """From one pair to the next, all or nothing."""
    own = {"factor": factor, "original_max_position_embeddings": length}
    own |= dict.fromkeys(knees, 1.0)
    theirs, _ = peer(kind, dim, base, **own)
    ours, _ = rescaled_frequencies(kind, dim, base, **own)
    assert np.allclose(ours, theirs, rtol=5e-6, atol=0)
    pairs = np.arange(dim // 2)
    plain = base ** (-2.0 * pairs / dim)
    assert np.allclose(ours, np.where(pairs < kept, plain, plain / factor), rtol=1e-12, atol=0)


def test_no_kind_of_transformers_is_forgotten():
    rope = pytest.importorskip("transformers.modeling_rope_utils")
    assert set(rope.ROPE_INIT_FUNCTIONS) - set(_KINDS) <= {"axial"}


# What chapters 6 and 7 say of transformers -----------------------------------------------------


def test_gpt_oss_is_shipped_without_rounded_knees_and_deepseek_may_cancel_its_factor():
    transformers = pytest.importorskip("transformers")
    rope = transformers.GptOssConfig().rope_parameters
    assert (rope["rope_type"], rope["truncate"]) == ("yarn", False)
    stretch = {"factor": 16, "original_max_position_embeddings": 4096}
    _, equal = peer("yarn", 64, 1e4, mscale=0.7, mscale_all_dim=0.7, **stretch)
    _, apart = peer("yarn", 64, 1e4, mscale=1.4, mscale_all_dim=0.7, **stretch)
    assert equal == 1.0
    assert apart == pytest.approx((0.14 * math.log(16) + 1) / (0.07 * math.log(16) + 1))
    # what cancels there comes back in the scale of the attention: a layer of a tiny model
    deepseek = pytest.importorskip("transformers.models.deepseek_v3.modeling_deepseek_v3")
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "q_lora_rank": None, "kv_lora_rank": 8}
    yarn = {"rope_type": "yarn", "rope_theta": 1e4, "mscale": 0.7, "mscale_all_dim": 0.7} | stretch
    scales = [
        deepseek.DeepseekV3Attention(
            deepseek.DeepseekV3Config(**sizes, rope_parameters=rope), layer_idx=0
        ).scaling
        for rope in ({"rope_type": "default", "rope_theta": 1e4}, yarn)
    ]
    assert scales[1] / scales[0] == pytest.approx((0.07 * math.log(16) + 1) ** 2)


def test_the_lists_of_longrope_change_in_the_middle_of_a_text():
    torch = pytest.importorskip("torch")
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    lists = {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
    config = llama.LlamaConfig(
        hidden_size=32,
        num_attention_heads=2,
        max_position_embeddings=64,
        rope_parameters={
            "rope_type": "longrope",
            "rope_theta": 1e4,
            "original_max_position_embeddings": 16,
            **lists,
        },
    )
    rope = llama.LlamaRotaryEmbedding(config)
    x = torch.zeros(1, 1, 32)
    cos = {length: rope(x, torch.arange(length)[None])[0][0, 10] for length in (16, 17)}
    assert (cos[16] - cos[17]).abs().max() > 0.1  # the same position, one token later


def test_llama4_sharpens_with_the_position_by_the_formula_of_yarn():
    """Weights of a layer without rotation, against queries multiplied by hand."""
    torch = pytest.importorskip("torch")
    llama4 = pytest.importorskip("transformers.models.llama4.modeling_llama4")
    defaults = llama4.Llama4TextConfig()
    assert (defaults.attn_temperature_tuning, defaults.floor_scale) == (True, 8192)
    assert defaults.attn_scale == 0.1
    config = llama4.Llama4TextConfig(
        hidden_size=16,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=16,
        num_hidden_layers=1,
        no_rope_layers=[0],  # 0: this layer does not rotate
        floor_scale=4,
        attn_implementation="eager",
    )
    layer = llama4.Llama4TextAttention(config, 0)
    x = 3 * torch.randn(1, 20, 16, generator=torch.Generator().manual_seed(4))
    with torch.no_grad():
        _, weights = layer(x, None, None)
        q, k = layer.q_proj(x)[0], layer.k_proj(x)[0]
    sharper = 0.1 * torch.log(torch.floor((torch.arange(20) + 1) / 4) + 1) + 1
    expected = (sharper[:, None] * q @ k.T / 4).softmax(-1)
    torch.testing.assert_close(weights[0, 0], expected)


def test_gemma4_rotates_a_quarter_globally_and_everything_in_its_windows():
    gemma = pytest.importorskip("transformers.models.gemma4.modeling_gemma4")
    config = gemma.Gemma4TextConfig()
    assert set(config.layer_types) == {"full_attention", "sliding_attention"}
    rope = gemma.Gemma4TextRotaryEmbedding(config)
    far, near = rope.full_attention_inv_freq, rope.sliding_attention_inv_freq
    assert (len(far), (far > 0).sum()) == (256, 64)
    assert wavelengths(far[:64].double().numpy())[-1] == pytest.approx(188.3, abs=0.1)
    assert near.double().numpy() == pytest.approx(inverse_frequencies(256, 1e4), rel=1e-5)


# Golden numbers: each from the paper or the configuration named -------------------------------


def test_default_is_the_plain_series():
    inv_freq, attention = rescaled_frequencies("default", 128)
    assert np.array_equal(inv_freq, inverse_frequencies(128))
    assert attention == 1.0


def test_ntk_keeps_the_first_pair_and_slows_the_last_by_exactly_the_factor():
    got, _ = rescaled_frequencies("ntk", 128, factor=8)
    ratio = inverse_frequencies(128) / got
    assert ratio[0] == 1.0
    assert ratio[-1] == pytest.approx(8.0, abs=1e-12)
    new_base = got[1] ** -64.0
    assert new_base == pytest.approx(82684.6, abs=0.05)


@pytest.mark.parametrize(("seq_len", "base"), [(4096, 10000.0), (8192, 20221.3), (16384, 40889.9)])
def test_dynamic_ntk_grows_the_base_with_the_sequence(seq_len, base):
    got, _ = rescaled_frequencies(
        "dynamic", 128, factor=1, max_position_embeddings=4096, seq_len=seq_len
    )
    assert got[1] ** -64.0 == pytest.approx(base, abs=0.06)


LLAMA2_TO_64K = {"factor": 16, "original_max_position_embeddings": 4096}


def test_yarn_paper_leaves_21_pairs_ramps_25_and_interpolates_18():
    ratio = inverse_frequencies(128) / rescaled_frequencies("yarn_paper", 128, **LLAMA2_TO_64K)[0]
    untouched, full = np.isclose(ratio, 1), np.isclose(ratio, 16)
    assert (untouched.sum(), (~untouched & ~full).sum(), full.sum()) == (21, 25, 18)


def test_yarn_temperature_of_the_paper_and_of_olmo3():
    _, attention = rescaled_frequencies("yarn_paper", 128, **LLAMA2_TO_64K)
    assert attention == pytest.approx(1.2773, abs=5e-5)
    assert 1 / attention**2 == pytest.approx(0.6130, abs=5e-5)
    _, olmo3 = rescaled_frequencies("yarn", 128, factor=8, original_max_position_embeddings=8192)
    assert olmo3 == pytest.approx(1.2079441541679836, abs=1e-15)


@pytest.mark.parametrize(
    ("base", "length", "factor", "pair", "ratio"),
    [(1e4, 4096, 16, 38, 3.041), (1e4, 2048, 16, 33, 3.08)],
)
def test_the_two_ramps_of_yarn_differ_by_up_to_three(base, length, factor, pair, ratio):
    own = {"factor": factor, "original_max_position_embeddings": length}
    paper, _ = rescaled_frequencies("yarn_paper", 128, base, **own)
    code, _ = rescaled_frequencies("yarn", 128, base, **own)
    assert np.argmax(code / paper) == pair
    assert (code / paper).max() == pytest.approx(ratio, abs=0.01)


def test_llama3_is_by_parts_with_other_knees():
    own = {"factor": 8, "original_max_position_embeddings": 8192}
    llama3, _ = rescaled_frequencies(
        "llama3", 128, 5e5, low_freq_factor=1, high_freq_factor=4, **own
    )
    by_parts, _ = rescaled_frequencies("by_parts", 128, 5e5, beta_slow=1, beta_fast=4, **own)
    assert np.array_equal(llama3, by_parts)
    theta = inverse_frequencies(128, 5e5)
    kept, divided = np.isclose(llama3, theta, rtol=1e-12), np.isclose(llama3, theta / 8, rtol=1e-12)
    assert (kept.sum(), (~kept & ~divided).sum(), divided.sum()) == (29, 6, 29)
    assert wavelengths(theta)[-1] == pytest.approx(2.56e6, rel=2e-3)
    assert wavelengths(llama3)[-1] == pytest.approx(20.5e6, rel=2e-3)


def test_longrope_attention_factor_of_a_32_fold_stretch():
    ones = [1.0] * 64
    own = {"short_factor": ones, "long_factor": ones, "original_max_position_embeddings": 4096}
    _, attention = rescaled_frequencies("longrope", 128, factor=32, **own)
    assert attention == pytest.approx(1.1902380714238083, abs=1e-15)


def test_proportional_and_classic_partial_are_opposite_designs():
    proportional, _ = rescaled_frequencies("proportional", 512, 1e6, partial_rotary_factor=0.25)
    classic, _ = rescaled_frequencies("default", 512, 1e6, partial_rotary_factor=0.25)
    assert proportional.shape == (256,)
    assert np.count_nonzero(proportional) == classic.size == 64
    assert wavelengths(proportional[63]) == pytest.approx(188.3, abs=0.05)
    assert wavelengths(classic[-1]) == pytest.approx(5.06e6, rel=1e-3)


def test_monotone_is_position_interpolation_by_652():
    half_turn, _ = rescaled_frequencies("monotone", 128, max_positions=2048)
    interpolated, _ = rescaled_frequencies("linear", 128, factor=2048 / math.pi)
    assert round(2048 / math.pi) == 652
    assert np.allclose(half_turn, interpolated, rtol=1e-14)
    assert half_turn[0] * 2048 == pytest.approx(math.pi, abs=1e-14)
    full_turn, _ = rescaled_frequencies("monotone", 128, max_positions=2048, turns=1)
    assert full_turn[0] * 2048 == pytest.approx(2 * math.pi, abs=1e-14)


# Properties that hold for every kind -----------------------------------------------------------

LENGTH = {"original_max_position_embeddings": 4096}
NEUTRAL = {
    "default": {},
    "linear": {"factor": 1},
    "ntk": {"factor": 1},
    "dynamic": {"factor": 3, "max_position_embeddings": 4096, "seq_len": 77},
    "by_parts": {"factor": 1, **LENGTH},
    "yarn_paper": {"factor": 1, **LENGTH},
    "yarn": {"factor": 1, **LENGTH},
    "llama3": {"factor": 1, "low_freq_factor": 1, "high_freq_factor": 4, **LENGTH},
    "longrope": {"short_factor": [1] * 32, "long_factor": [1] * 32, "factor": 1, **LENGTH},
    "proportional": {},
    "monotone": {"max_positions": 1000, "turns": 1000 / (2 * math.pi)},
}


def test_every_kind_has_its_neutral_parameters():
    assert set(NEUTRAL) == set(_KINDS)


@pytest.mark.parametrize("kind", sorted(NEUTRAL))
def test_a_stretch_by_one_changes_nothing(kind):
    inv_freq, attention = rescaled_frequencies(kind, 64, 12345.0, **NEUTRAL[kind])
    assert np.allclose(inv_freq, inverse_frequencies(64, 12345.0), rtol=1e-14, atol=0)
    assert attention == 1.0


@pytest.mark.parametrize("kind", ["linear", "ntk", "by_parts", "yarn_paper", "yarn", "llama3"])
def test_a_stretch_slows_pairs_by_at_most_the_factor_and_the_last_by_all_of_it(kind):
    stretched, _ = rescaled_frequencies(kind, 128, **(NEUTRAL[kind] | {"factor": 10.0}))
    ratio = inverse_frequencies(128) / stretched
    assert (ratio >= 1 - 1e-12).all()
    assert (ratio <= 10 + 1e-12).all()
    assert (np.diff(ratio) >= -1e-12).all()
    assert ratio[-1] == pytest.approx(10)


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_no_stretch_of_the_base_overflows(factor):
    inv_freq, _ = rescaled_frequencies("ntk", 8, factor=factor)
    np.testing.assert_allclose(inv_freq[[0, -1]], [1, 1e-3 / factor], rtol=1e-14)
    plain, _ = rescaled_frequencies("dynamic", 8, factor=factor, max_position_embeddings=9)
    assert np.array_equal(plain, inverse_frequencies(8))
