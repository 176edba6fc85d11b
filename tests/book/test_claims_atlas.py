"""The claims of the chapter on the atlas, asked again: of packages as they are installed."""

import importlib
import importlib.util
import inspect
import itertools
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas import RESULTS
from atlas.families import families, has_indexer
from atlas.layers import examine, tiny_model
from rope_minimal import rotate_complex, to_half
from ropebook.atlas import read_atlas
from ropescope import identify
from ropescope.configuration import rope_of
from tests.book.test_layouts_peers import table_rows

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "15-atlas.ipynb"


def cells() -> dict[str, str]:
    found = json.loads(NOTEBOOK.read_text("utf8"))["cells"]
    return {cell["id"]: "".join(cell["source"]) for cell in found}


def function(cell: str, name: str) -> Any:
    """Return a function that a cell of the chapter defines."""
    found: dict[str, Any] = {"np": np, "identify": lambda *_, **__: None}
    exec(cells()[cell], found)
    return found[name]


def modeling(family: str) -> Any:
    pytest.importorskip("transformers")
    return importlib.import_module(f"transformers.models.{family}.modeling_{family}")


def config_of(family: str, name: str, **values: Any) -> Any:
    pytest.importorskip("transformers")
    module = importlib.import_module(f"transformers.models.{family}.configuration_{family}")
    return getattr(module, name)(**values)


@torch.no_grad()
def random_weights(module: torch.nn.Module) -> torch.nn.Module:
    """Fill every parameter, gains too, with numbers of a size that makes attention sharp."""
    generator = torch.Generator().manual_seed(14)
    for weight in module.parameters():
        scale = 2.0 * weight.shape[-1] ** -0.5 if weight.ndim > 1 else 1.0
        weight.copy_(scale * torch.randn(weight.shape, generator=generator))
    return module.eval()


def halves(at: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cos and sin of shape (1, T, width) as transformers lays them out."""
    angle = at[:, None] * 1e4 ** (-torch.arange(0, width, 2) / width)
    return angle.cos().repeat(1, 2)[None], angle.sin().repeat(1, 2)[None]


HERE, THERE = torch.arange(12), torch.arange(500, 512)


# ---- doubling -----------------------------------------------------------------------------------


def turned_by_mpmath(speeds: list[float], error: float = 0.0) -> Any:
    """Return a half-split rotation whose angles are made with 40 digits, each off by an error."""
    half = len(speeds)

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        y = np.empty_like(x)
        for t, position in enumerate(at):
            for i, speed in enumerate(speeds):
                sign = 1 if (t + i) % 2 else -1
                with mpmath.workdps(40):
                    angle = mpmath.mpf(int(position)) * mpmath.mpf(speed) + sign * error
                    c, s = float(mpmath.cos(angle)), float(mpmath.sin(angle))
                a, b = x[:, t, i], x[:, t, i + half]
                y[:, t, i], y[:, t, i + half] = a * c - b * s, a * s + b * c
        return y

    return rotate


speeds = st.lists(st.floats(1e-4, 3.0) | st.floats(-3.0, -1e-4), min_size=1, max_size=6)


@settings(max_examples=12, deadline=None)
@given(wanted=speeds, error=st.sampled_from([0.0, 1e-3, 0.02, 1.0]))
def test_doubling_finds_any_speed(wanted: list[float], error: float) -> None:
    """Refuted if rotations made with 40 digits, of any speeds, come back with a larger error
    than one angle's over 65,536."""
    instrument = function("core", "instrument")
    pairs, found = instrument(turned_by_mpmath(wanted, error), 2 * len(wanted))
    assert pairs.tolist() == [[i, i + len(wanted)] for i in range(len(wanted))]
    # up to a turn per position
    off = (found - wanted + np.pi) % (2 * np.pi) - np.pi
    np.testing.assert_allclose(off, 0.0, rtol=0, atol=error / 2**16 + 1e-15)


def test_angles_that_are_off_by_more_than_a_sixth_of_a_turn_are_lost() -> None:
    instrument = function("core", "instrument")
    wanted = [1.0, 0.1, 0.01]
    near, far = (
        np.abs(instrument(turned_by_mpmath(wanted, np.pi / 3 + by), 6)[1] - wanted).max()
        for by in (-0.01, 0.01)
    )
    assert near < 2 / 2**16 < 0.5 < far


def test_without_doubling_the_turns_are_lost() -> None:
    """Refuted if a leap from position 1 to 65,536 finds the speeds as well as doubling does.

    From position 1 straight to 65,536, an error of a thousandth is many turns.
    """
    instrument = function("core", "instrument")
    leap = cells()["core"].replace("2 ** np.arange(count)", "2 ** (16 * np.arange(2))")
    leap = leap.replace("range(1, count)", "(16,)").replace("angle[k]", "angle[1]")
    leap = leap.replace("[:, None], count,", "[:, None], 2,")
    found: dict[str, Any] = {"np": np}
    exec(leap, found)
    rotate, wanted = turned_by_mpmath([1.0, 0.1, 0.01], 1e-3), [1.0, 0.1, 0.01]
    assert np.abs(instrument(rotate, 6)[1] - wanted).max() < 1e-7
    assert np.abs(found["instrument"](rotate, 6)[1] - wanted).min() > 1e-4


# ---- checkpoints --------------------------------------------------------------------------------


def by_its_module(config: Any) -> dict[str, Any]:
    """Return the buffers of frequencies of the text's rotary module, as the library builds it."""
    text = config.get_text_config()
    module = importlib.import_module(type(text).__module__.replace("configuration_", "modeling_"))
    made = next(
        value(text)
        for name, value in vars(module).items()
        if name.endswith("RotaryEmbedding") and value.__module__ == module.__name__
    )
    return {
        name: values.double().numpy()
        for name, values in made.named_buffers()
        if name.endswith("inv_freq") and "original" not in name
    }


def base_of(frequencies: np.ndarray) -> float:
    """Return the base of a series whose first two frequencies are rescaled alike."""
    return (frequencies[0] / frequencies[1]) ** len(frequencies)


def test_released_checkpoints_rotate_otherwise_than_their_classes_do_by_default() -> None:
    """Refuted if rotary modules that the library builds from the rows have the frequencies of
    its defaults in a third of them or more, have their base in three fifths, or if one differs
    where the chapter's count has it alike.

    No rule is read on this side: frequencies stand in the modules' buffers.
    """
    transformers = pytest.importorskip("transformers")
    found: dict[str, Any] = {"Counter": Counter, "itertools": itertools, "json": json}
    found |= {"RESULTS": RESULTS, "rope_of": rope_of}
    for cell in ("checkpoints-read", "checkpoints-count"):
        exec(cells()[cell], found)
    others, bases = [], []
    for config in found["configs"]:
        if config["model_type"] not in transformers.CONFIG_MAPPING or not found["has_rule"](config):
            continue
        if "long_factor" in str(config):  # another series for long texts, with factors of its own
            continue
        make = transformers.CONFIG_MAPPING[config["model_type"]]
        try:
            own, default = by_its_module(make.from_dict(dict(config))), by_its_module(make())
        except StopIteration:  # its frequencies stand in no module
            continue
        assert own.keys() == default.keys()
        apart = {name for name in own if not np.array_equal(own[name], default[name])}
        near = {name: base_of(own[name]) / base_of(default[name]) for name in own}
        rebased = {name for name in own if abs(near[name] - 1) > 1e-3}
        said = found["apart"](config)
        assert bool(apart) == bool(said), config
        assert bool(rebased) == ("base" in said), config
        others.append(bool(apart))
        bases.append(bool(rebased))
    assert len(others) > 40
    assert sum(others) / len(others) > 2 / 3
    assert sum(bases) / len(bases) > 2 / 5


# ---- the findings -------------------------------------------------------------------------------


def test_v_jepa_2_as_installed_is_the_function_of_the_chapter() -> None:
    """Refuted if the installed function differs from the chapter's, or keeps lengths and
    scores."""
    theirs, ours = (
        modeling("vjepa2").rotate_queries_or_keys,
        function("singular", "tiled_and_swapped"),
    )
    x = torch.randn(7, 16, 20, generator=torch.Generator().manual_seed(0))
    y = theirs(x[:, None], torch.arange(16))[:, 0]
    np.testing.assert_allclose(y, ours(x.double().numpy(), np.arange(16)), atol=1e-5)

    eye = torch.eye(20)[:, None, None].expand(-1, 1, 16, -1)
    m = theirs(eye, torch.arange(16))[:, 0].permute(1, 2, 0).double()
    gram = torch.linalg.eigvalsh(m.mT @ m)  # squares of the lengths
    assert 0.0 <= gram.min() < 0.03**2 < 1.41**2 < gram.max() < 1.415**2
    scores = torch.stack([m[p].T @ m[p + 5] for p in range(11)])
    u, _, v = torch.linalg.svd((scores - scores[0])[-1])
    best = max(
        abs((u[:, 0] @ (s - scores[0]) @ v[0]).item()) for s in scores
    )  # two unit vectors that show it
    assert best > 1
    axis = modeling("vjepa2").VJEPA2RopeAttention(config_of("vjepa2", "VJEPA2Config")).d_dim
    assert axis == 20


@torch.no_grad()
def test_hunyuan_vl_turns_text_and_no_picture() -> None:
    """Refuted if the installed table and function rotate a picture, or not with eight pieces.

    Its own table and function; then the same with each coordinate and section given twice.
    """
    module = modeling("hunyuan_vl")
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [16] * 4}
    config = config_of("hunyuan_vl", "HunYuanVLTextConfig", head_dim=128, rope_parameters=rope)
    table = module.HunYuanVLRotaryEmbedding(config)

    def matrices(at: torch.Tensor) -> torch.Tensor:
        """Return the matrix of each position, from coordinates (4, T)."""
        eye = torch.eye(128)[:, None, None].expand(-1, 1, at.shape[1], -1)
        turned = module.apply_rotary_pos_emb(eye, eye, *table(eye, at[:, None]))[0]
        return turned[:, 0].permute(1, 2, 0)

    def off(at: torch.Tensor) -> float:
        m = matrices(at)
        return (m.mT @ m - torch.eye(128)).abs().max().item()

    text = torch.arange(20).expand(4, -1)
    row, column = torch.arange(20) // 5, torch.arange(20) % 5
    picture = torch.stack((torch.arange(30, 50), column, row, torch.ones(20, dtype=torch.long)))
    assert off(text) < 1e-5
    assert off(picture) > 0.5
    m = matrices(picture)
    scores = torch.stack([m[k].T @ m[k + 5] for k in range(15)])  # a row further down
    assert (scores - scores[0]).abs().max() > 0.5
    exchanged = (m.abs() > 1e-6).any(0).nonzero().tolist()
    partners = {tuple(sorted(pair)) for pair in exchanged if pair[0] != pair[1]}
    assert partners == {(i, i + 64) for i in range(64)}

    table.mrope_section = [8] * 8
    twice = torch.cat((picture, picture))
    assert off(twice) < 1e-5
    # as half a table cut into four sections has it: pair i follows coordinate i // 16
    speeds = 1e4 ** (-torch.arange(64, dtype=torch.float64) / 64)
    angle = picture.double()[torch.arange(64) // 16].T * speeds
    c, s, i = angle.cos(), angle.sin(), torch.arange(64)
    wanted = torch.zeros(20, 128, 128, dtype=torch.float64)
    wanted[:, i, i] = wanted[:, i + 64, i + 64] = c
    wanted[:, i + 64, i], wanted[:, i, i + 64] = s, -s
    assert (matrices(twice) - wanted).abs().max() < 1e-5 < 0.5 < (m - wanted).abs().max()


@pytest.mark.parametrize(("family", "first"), [("ministral3", 16_384), ("mistral4", 8_192)])
def test_queries_grow_from_the_position_that_the_chapter_names(family: str, first: int) -> None:
    module = modeling(family)
    rope = config_of(family, f"{family.capitalize()}Config").rope_parameters
    known = (rope["llama_4_scaling_beta"], rope["original_max_position_embeddings"])
    scale = module.get_llama_4_attn_scale(torch.arange(20_000)[None], *known).flatten()
    assert (scale != 1).nonzero()[0].item() == first


@torch.no_grad()
@pytest.mark.parametrize(
    ("family", "kind"), [("xcodec2", "Xcodec2"), ("neucodec", "NeuCodec"), ("llama", "Llama")]
)
def test_two_codecs_do_not_know_the_order_of_their_tokens(family: str, kind: str) -> None:
    """Refuted if a real layer of a codec notices a shuffle of its tokens, or Llama's does not.

    A layer with random weights, its table asked as its model asks it; Llama's is the control.
    """
    module = modeling(family)
    small = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16}
    config = config_of(family, f"{kind}Config", attn_implementation="eager", **small)
    layer = random_weights(getattr(module, f"{kind}Attention")(config, 0))
    source = inspect.getsource(module)
    by_head = "position_ids = torch.arange(self.num_attention_heads" in source
    assert by_head == (family != "llama")
    x = torch.randn(1, 12, 64, generator=torch.Generator().manual_seed(3))
    ids = torch.arange(config.num_attention_heads if by_head else 12)[None]
    table = getattr(module, f"{kind}RotaryEmbedding")(config)(x, ids)
    shuffle = torch.randperm(12, generator=torch.Generator().manual_seed(4))
    plain, shuffled = (
        layer(rows, position_embeddings=table, attention_mask=None)[0]
        for rows in (x, x[:, shuffle])
    )
    apart = (plain[:, shuffle] - shuffled).abs().max() / plain.std()
    assert (apart < 1e-4) == by_head
    if by_head:  # beside the decoder stands an encoder that knows distances
        assert "self.semantic_encoder = AutoModel" in source
        assert config.semantic_model_config.position_embeddings_type == "relative_key"


GROWS = "queries that grow with their position"


@torch.no_grad()
def test_yarns_factor_is_in_the_scores_of_mistral_4_and_nowhere_in_ministral_3() -> None:
    for family, kind, stretched in (
        ("mistral4", "Mistral4", True),
        ("ministral3", "Ministral3", False),
    ):
        config = config_of(family, f"{kind}Config")
        layer = getattr(modeling(family), f"{kind}Attention")(config, 0)
        width = getattr(layer, "qk_head_dim", None) or layer.head_dim
        assert (layer.scaling * width**0.5 > 1.5) == stretched
        source = inspect.getsource(modeling(family))  # queries alone grow
        assert "query_states = query_states * get_llama_4_attn_scale(" in source
        assert "key_states * get_llama_4_attn_scale(" not in source
        rows = [row for row in read_atlas() if row.family == family]
        assert all(row.rescaling[0] == "yarn" for row in rows if row.rescaling)
        assert {row.broken for row in rows if not row.kept} == {GROWS}


@torch.no_grad()
def test_clvp_turns_its_values_and_leaves_them_turned() -> None:
    module = modeling("clvp")
    small = {"hidden_size": 64, "num_attention_heads": 2, "projection_dim": 64}
    config = config_of("clvp", "ClvpEncoderConfig", **small)
    layer = random_weights(module.ClvpSelfAttention(config))
    table = module.ClvpRotaryPositionalEmbedding(config)(torch.zeros(1, 512, 1))
    x = torch.randn(1, 12, 64, generator=torch.Generator().manual_seed(9))
    here, there = (layer(x, rotary_pos_emb=table, position_ids=at[None]) for at in (HERE, THERE))
    assert (there[1] - here[1]).abs().max() < 1e-3  # its weights keep the promise
    assert (there[0] - here[0]).abs().max() > 0.1


def test_the_meter_of_the_exercise_finds_the_largest_change() -> None:
    """Against every two positions and every shift; the largest change does not begin at 0."""
    theirs = function("singular", "tiled_and_swapped")
    found: dict[str, Any] = {"np": np, "rotate_complex": rotate_complex}
    found["tiled_and_swapped"] = theirs
    exec(cells()["exercise-3"], found)
    at = np.arange(16)
    m = theirs(np.repeat(np.eye(20)[:, None], 16, axis=1), at).transpose(1, 2, 0)
    triples = [(a, b, c) for b in at for a in range(b + 1) for c in range(16 - b)]
    first, second, shift = np.transpose(triples)
    before = m[first].mT @ m[second]
    after = m[first + shift].mT @ m[second + shift]
    changes = np.linalg.norm(after - before, ord=2, axis=(1, 2))
    assert found["broken"](theirs, 20) == pytest.approx(changes.max())
    assert changes[first == 0].max() < 1.92 < 1.93 < changes.max()


SPEECH = [
    ("wav2vec2_conformer", "Wav2Vec2Conformer", "num_attention_heads"),
    ("wav2vec2_bert", "Wav2Vec2Bert", "num_attention_heads"),
    ("seamless_m4t", "SeamlessM4TConformer", "speech_encoder_attention_heads"),
]


@pytest.mark.parametrize(("family", "prefix", "heads"), SPEECH, ids=[row[0] for row in SPEECH])
@torch.no_grad()
def test_three_speech_encoders_turn_before_the_projection(
    family: str, prefix: str, heads: str
) -> None:
    """Refuted if a real layer keeps its weights under a common shift, or the same rotation
    after the projection does not."""
    module = modeling(family)
    name = prefix.replace("SeamlessM4TConformer", "SeamlessM4T") + "Config"
    assert config_of(family, name).position_embeddings_type != "rotary"
    eager: dict[str, Any] = {"attn_implementation": "eager", "hidden_size": 32, heads: 2}
    config = config_of(family, name, position_embeddings_type="rotary", **eager)
    layer = random_weights(getattr(module, f"{prefix}SelfAttention")(config))
    table = getattr(module, f"{prefix}RotaryPositionalEmbedding")(config)(torch.zeros(1, 512, 32))
    x = torch.randn(1, 12, 32, generator=torch.Generator().manual_seed(9))

    def weights(at: torch.Tensor) -> torch.Tensor:
        return layer(x, relative_position_embeddings=table[:, at])[1]

    assert (weights(THERE) - weights(HERE)).abs().max() > 0.1

    # the same weights, and the same function of theirs, after the projection
    def projected(at: torch.Tensor) -> torch.Tensor:
        q, k = (f(x) for f in (layer.linear_q, layer.linear_k))
        q, k = (layer._apply_rotary_embedding(z, table[:, at]).view(12, 2, 16) for z in (q, k))
        return torch.einsum("ihd,jhd->hij", q, k).softmax(-1)

    assert (projected(THERE) - projected(HERE)).abs().max() < 1e-3


AFTER = [
    ("hunyuan_v1_dense", "HunYuanDenseV1Config", "HunYuanDenseV1Attention"),
    ("hunyuan_v1_moe", "HunYuanMoEV1Config", "HunYuanMoEV1Attention"),
    ("hunyuan_vl", "HunYuanVLTextConfig", "HunYuanVLDenseV1Attention"),
    ("timesfm2_5", "TimesFm2_5Config", "TimesFm2_5Attention"),
]


@pytest.mark.parametrize(("family", "config", "name"), AFTER, ids=[row[0] for row in AFTER])
@torch.no_grad()
def test_the_families_that_norm_after_the_turn_break_the_promise(
    family: str, config: str, name: str
) -> None:
    """Refuted if a real layer with random gains keeps its weights under a common shift, or one
    with equal gains does not."""
    small = {"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16}
    config = config_of(family, config, attn_implementation="eager", **small)
    layer = random_weights(getattr(modeling(family), name)(config, 0))
    x = torch.randn(1, 12, 32, generator=torch.Generator().manual_seed(9))
    mask = torch.zeros(1, 1, 12, 12)

    def change() -> float:
        weights = [layer(x, halves(at, 16), attention_mask=mask)[1] for at in (HERE, THERE)]
        return (weights[1] - weights[0]).abs().max().item()

    norms = [m for n, m in layer.named_modules() if re.search("q_norm|k_norm|layernorm", n)]
    assert len(norms) == 2
    assert change() > 0.01
    for norm in norms:
        norm.weight.fill_(1.0)
    if isinstance(layer.scaling, torch.nn.Parameter):  # TimesFM has one more factor a channel
        assert change() > 0.01
        layer.q_norm.weight.copy_(1.0 / torch.nn.functional.softplus(layer.scaling))
        assert change() < 1e-3  # in the product it is undone
        layer.q_norm.weight.fill_(1.0)
        layer.scaling.fill_(1.0)
    assert change() < 1e-3


def test_layers_of_muse_spark_rest_where_their_base_is_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a small model; the atlas has heard its function alone."""
    bases = config_of("muse_spark", "MuseSparkTextConfig").layer_rope_theta
    assert (len(bases), bases.count(0)) == (62, 16)
    module, turned = modeling("muse_spark"), []
    small = config_of(
        "muse_spark", "MuseSparkTextConfig", vocab_size=9, hidden_size=32, intermediate_size=16,
        num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=2, head_dim=16,
        moe_intermediate_size=8, moe_hidden_size=8, num_local_experts=2, num_experts_per_tok=1,
        pad_token_id=0, eos_token_id=1, bos_token_id=2,
    )  # fmt: skip
    assert small.layer_rope_theta.count(0) == 1
    model = module.MuseSparkTextModel(small).eval()
    for layer in model.layers:
        layer.register_forward_pre_hook(lambda *_: turned.append(False))
    turn = module.apply_rotary_pos_emb

    def heard(*given: Any, **more: Any) -> Any:
        turned[-1] = True
        return turn(*given, **more)

    monkeypatch.setattr(module, "apply_rotary_pos_emb", heard)
    with torch.no_grad():
        model(torch.arange(5)[None])
    assert turned == [base != 0 for base in small.layer_rope_theta]
    assert not any(row.rests for row in read_atlas() if row.family == "muse_spark")


def test_the_switch_of_idefics_reaches_no_layer_that_turns() -> None:
    small = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 8}
    config = config_of("idefics", "IdeficsConfig", qk_layer_norms=True, **small)
    assert not modeling("idefics").IdeficsDecoderLayer(config, 0).self_attn.qk_layer_norms
    cross = modeling("idefics").IdeficsGatedCrossAttentionLayer(config, 0).cross_attn
    assert cross.qk_layer_norms
    assert cross.is_cross_attention


@torch.no_grad()
def test_deepseek_v3_2_turns_in_two_layouts_in_one_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuted if the functions that a small real layer calls for attention and indexer have one
    layout.

    Run a small layer; write down which function its indexer calls, and which its attention.
    """
    module = modeling("deepseek_v32")
    width = 8
    config = config_of(
        "deepseek_v32",
        "DeepseekV32Config",
        hidden_size=32,
        num_attention_heads=2,
        num_key_value_heads=2,
        q_lora_rank=16,
        kv_lora_rank=16,
        qk_rope_head_dim=width,
        qk_nope_head_dim=8,
        v_head_dim=8,
        index_n_heads=2,
        index_head_dim=16,
        attn_implementation="eager",
    )
    layer = random_weights(module.DeepseekV32Attention(config, 0))
    calls: list[tuple[bool, str]] = []
    inside = SimpleNamespace(indexer=False)
    layer.indexer.register_forward_pre_hook(lambda *_: setattr(inside, "indexer", True))
    layer.indexer.register_forward_hook(lambda *_: setattr(inside, "indexer", False))
    reports = {}
    for name in ("apply_rotary_pos_emb", "apply_rotary_pos_emb_interleave"):
        apply = getattr(module, name)

        def rotate(x: torch.Tensor, at: torch.Tensor, apply: Any = apply) -> torch.Tensor:
            return apply(x[:, None], x[:, None], *halves(at, width))[0][:, 0]

        def written(*args: Any, name: str = name, apply: Any = apply, **more: Any) -> Any:
            calls.append((inside.indexer, name))
            return apply(*args, **more)

        reports[name] = identify(rotate, width, dtype=torch.float32, positions=2**12)
        monkeypatch.setattr(module, name, written)
    mask = torch.full((1, 1, 12, 12), -torch.inf).triu(1)
    x = torch.randn(1, 12, 32, generator=torch.Generator().manual_seed(1))
    layer(x, halves(HERE, width), mask)
    used = {indexer: reports[name].layout for indexer, name in calls}
    assert len(calls) == 2
    assert used[True] == "half-split"
    assert used[False] is not None
    assert "interleaved" in used[False].split(",")[0]


NAMES = re.compile(r"^(?:class|    def|def) \w*(?:rotat|rotary|rope|freqs_ci)\w*", re.M | re.I)


@cache
def rotate_halves() -> dict[str, str]:
    """What `rotate_half` of each modeling file that rotates does, "none" where there is no such."""
    place = importlib.util.find_spec("transformers")
    if place is None or place.origin is None:
        pytest.skip("transformers is not installed")
    x = torch.arange(1.0, 9.0)
    known = {
        "halves": torch.cat((-x[4:], x[:4])),
        "neighbours": torch.stack((-x[1::2], x[::2]), -1),
    }
    kinds: dict[str, str] = {}
    for path in sorted((Path(place.origin).parent / "models").glob("*/modeling_*.py")):
        text = path.read_text("utf8")
        found = re.search(r"^def rotate_half\(.*?(?=^\S)", text, re.M | re.S)
        if found:
            own: dict[str, Any] = {"torch": torch}
            exec(found[0], own)
            y = own["rotate_half"](x)
            names = (name for name, swapped in known.items() if torch.equal(y, swapped.flatten()))
            kinds[path.stem] = next(names, "other")
            if re.search(r"apply_rotary_pos_emb_interleave|transpose\(4, 3\)", text):
                kinds[path.stem] += ", read interleaved"
        elif NAMES.search(text):
            kinds[path.stem] = "none"
    return kinds


def test_rotate_half_is_two_functions_in_one_library() -> None:
    """Refuted if the functions of that name, taken from each file and called, are other kinds
    or numbers.

    The function of that name is taken from each file alone, and called.
    """
    values = [kind.partition(",")[0] for kind in rotate_halves().values()]
    assert (values.count("halves"), values.count("neighbours")) == (169, 15)
    assert [name for name, kind in rotate_halves().items() if kind == "other"] == [
        "modeling_nanochat"
    ]
    text = json.dumps(json.loads(NOTEBOOK.read_text("utf8")))
    assert "in 169 modeling files and neighbours in 15" in text


def test_layouts_counted_in_the_sources() -> None:
    """Refuted if a count over the library's files leaves two thirds out of reach for halves, or
    a quarter within reach for neighbours.

    Bounds on the atlas' shares, from the files alone: no rotation is run, no record is read.

    Files whose `rotate_half` swaps halves, and that do not read neighbours first, are a lower bound
    of what is half-split; all others together are an upper bound of what pairs neighbours.
    """
    kinds = list(rotate_halves().values())
    half = sum(kind in ("halves", "other") for kind in kinds)
    assert len(kinds) > 200
    assert half / len(kinds) > 2 / 3
    assert 1 - half / len(kinds) < 1 / 4


def test_families_with_two_bases_without_the_atlas() -> None:
    """Refuted if default configurations of the whole library hold two bases in fewer than ten
    families.

    Every configuration class of the library, made with its defaults.
    """
    transformers = pytest.importorskip("transformers")
    two = {}
    for name in transformers.CONFIG_MAPPING:
        try:
            config = transformers.CONFIG_MAPPING[name]()
        except Exception:  # a few cannot be made without arguments
            continue
        for part in (config, *(getattr(config, one, None) for one in type(config).sub_configs)):
            rope = getattr(part, "rope_parameters", None) or {}
            kinds = [kind for kind in rope.values() if isinstance(kind, dict)]
            bases = {float(kind["rope_theta"]) for kind in kinds if kind.get("rope_theta")}
            if len(bases) > 1:
                two[type(part).__module__.split(".")[-2]] = sorted(bases)
    assert len(two) >= 10
    assert two["gemma3"] == two["lfm3"] == [1e4, 1e6]


@pytest.mark.parametrize(
    ("family", "config", "model"),
    [
        ("smollm3", "SmolLM3Config", "SmolLM3Model"),
        ("llama4", "Llama4TextConfig", "Llama4TextModel"),
    ],
)
@torch.no_grad()
def test_a_one_in_no_rope_layers_means_that_the_layer_rotates(
    family: str, config: str, model: str
) -> None:
    """Refuted if a real layer with entry 1 ignores its table, or one with entry 0 follows it.

    Each layer alone, with the tables of two places: does its output change?
    """
    module = modeling(family)
    small: dict[str, Any] = {"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2}
    small |= {"num_hidden_layers": 4, "head_dim": 16, "attn_implementation": "eager"}
    made = config_of(family, config, **small)
    assert made.no_rope_layers == [1, 1, 1, 0]
    name = model.replace("TextModel", "TextAttention").replace("3Model", "3Attention")
    x = torch.randn(1, 12, 32, generator=torch.Generator().manual_seed(1))
    mask = torch.zeros(1, 1, 12, 12)
    tables = [halves(at, 16) for at in (HERE, 3 * HERE)]
    if family == "llama4":
        tables = [
            torch.polar(torch.ones(1, 12, 8), halves(at, 16)[0].acos()[..., :8])
            for at in (HERE, 3 * HERE)
        ]
    for index, entry in enumerate(made.no_rope_layers):
        layer = random_weights(getattr(module, name)(made, index))
        first, second = (layer(x, table, attention_mask=mask)[0] for table in tables)
        assert bool((first - second).abs().max() > 1e-3) == (entry == 1), index


@pytest.mark.parametrize(
    ("family", "config"),
    [
        ("llama4", "Llama4TextConfig"),
        ("smollm3", "SmolLM3Config"),
        ("mistral_large4", "MistralLarge4TextConfig"),
    ],
)
def test_every_fourth_layer_rests_by_default(family: str, config: str) -> None:
    listed = config_of(family, config).no_rope_layers
    assert listed == [int(n % 4 != 3) for n in range(len(listed))]
    assert len(listed) >= 4


# ---- the record ---------------------------------------------------------------------------------

SAMPLE = [
    ("llama", "LlamaConfig"),
    ("gpt_neox", "GPTNeoXConfig"),
    ("glm", "GlmConfig"),
    ("cohere", "CohereConfig"),
    ("nanochat", "NanoChatConfig"),
    ("gpt_oss", "GptOssConfig"),
    ("gemma3", "Gemma3TextConfig"),
    ("phi", "PhiConfig"),
    ("stablelm", "StableLmConfig"),
    ("helium", "HeliumConfig"),
]


def by_parts(family: str, config: Any, kind: str | None) -> Any:
    """Return the rotation of a table class and a function of a family, put together here."""
    module = modeling(family)
    table = next(
        value(config)
        for name, value in vars(module).items()
        if name.endswith("RotaryEmbedding") and value.__module__ == module.__name__
    )

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        rows = x[:, None]
        cos, sin = table(rows, at[None], *([kind] if kind else []))
        width = 2 * cos.shape[-1] if family == "gpt_oss" else cos.shape[-1]
        part = module.apply_rotary_pos_emb(rows[..., :width], rows[..., :width], cos, sin)[0]
        return torch.cat((part, rows[..., width:]), dim=-1)[:, 0]

    return rotate


@pytest.mark.parametrize(("family", "config"), SAMPLE, ids=[row[0] for row in SAMPLE])
def test_a_sample_of_families_is_as_the_atlas_says(family: str, config: str) -> None:
    """Refuted if a file's own table and function, put together here, rotate otherwise than the
    recorded whole model.

    Tables and function of a file alone, put together here; the atlas asked whole models.
    """
    made = config_of(family, config)
    known = [row for row in read_atlas() if row.family == family]
    assert known
    for row in known:
        rotate = by_parts(family, made, row.kind if family == "gemma3" else None)
        report = identify(rotate, row.head_dim, dtype=torch.float32)
        for name in ("layout", "place", "width", "direction", "base"):
            assert getattr(report, name) == getattr(row, name), name
        np.testing.assert_allclose(row.frequencies, report.inv_freq, rtol=1e-5)
        assert row.attention_factor == pytest.approx(report.attention_factor, rel=1e-5)
        assert report.relative_error is not None
        assert row.kept == (report.is_rotation and report.relative_error < 0.01)


WHOLE = [
    "codegen", "cohere", "cohere2", "cohere2_moe", "cwm", "deepseek_v2", "deepseek_v3",
    "deepseek_v32", "diffllama", "doge", "dots1", "ernie4_5", "exaone4",
    "falcon", "flex_olmo", "gemma", "gemma2", "glm", "glm4", "glm4_moe", "gpt_neox", "gpt_oss",
    "gptj", "granite", "helium", "hunyuan_v1_dense", "hunyuan_v1_moe", "jais2", "lfm2", "llama",
    "minicpm3", "ministral", "mistral", "mixtral", "nanochat", "nemotron", "olmo", "olmo2",
    "olmo3", "olmoe", "persimmon", "phi", "phi3", "phimoe", "qwen2", "qwen2_moe", "qwen3",
    "qwen3_moe", "seed_oss", "smollm3", "stablelm", "starcoder2", "youtu",
]  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize("family", WHOLE)
def test_whole_models_keep_the_promise_where_the_atlas_says_so(family: str) -> None:
    """Refuted if logits of a small random model change under a common shift where the atlas
    says that they keep still, or keep still where it says that they change.

    Logits of a small random model, gains and all, before and after a common shift.
    """
    pytest.importorskip("transformers")
    found = examine(tiny_model(family))
    change = max(found.errors["shift"], found.weighted.get("shift", 0.0))
    kept = all(row.kept for row in read_atlas() if row.family == family)
    assert (change < 0.01) if kept else (change > 0.1)


def test_families_with_two_bases_by_their_own_configurations() -> None:
    """Refuted if a configuration holds other bases than the recorded rotations of its family
    have.

    What their configurations hold, for each kind of layer, and no rotation asked.
    """
    pytest.importorskip("transformers")
    known: dict[tuple[str, str], set[float]] = {}
    for row in read_atlas():
        if row.base is not None:
            known.setdefault((row.family, row.model), set()).add(row.base)
    agreed = 0
    for (family, _), bases in known.items():
        if len(bases) < 2:
            continue
        module = importlib.import_module(f"transformers.models.{family}.configuration_{family}")
        configs = [v for k, v in vars(module).items() if k.endswith("Config") and k[0] != "P"]
        for make in sorted(configs, key=lambda one: "Text" not in one.__name__):
            rope = getattr(make(), "rope_parameters", None) or {}
            kinds = [kind for kind in rope.values() if isinstance(kind, dict)]
            if kinds:
                assert "rope_theta" not in rope  # as it is where all layers have one
                # where the first part p of a series turns: b^(-2i/d) is (b^p)^(-2i/pd)
                part = [kind.get("partial_rotary_factor", 1.0) for kind in kinds]
                own = [float(kind["rope_theta"]) for kind in kinds]
                known_as = [{b, round(b**p, 6)} & bases for b, p in zip(own, part, strict=True)]
                assert all(known_as), family
                assert set.union(*known_as) == bases, family
                agreed += 1
                break
    assert "rope_theta" in config_of("llama", "LlamaConfig").rope_parameters
    assert known["gemma3", "Gemma3TextModel"] == {1e4, 1e6}
    assert agreed >= 10


def test_the_tables_of_who_uses_which_are_those_of_the_atlas() -> None:
    """Of chapter 5 and of the cheat sheet."""
    rows: dict[str, list[Any]] = {}
    for row in read_atlas():
        rows.setdefault(row.family, []).append(row)
    turn = {1: "+mθ", -1: "−mθ"}
    listed = [row for row in table_rows() if row[-1].startswith("`")]
    assert len(listed) >= 20
    for label, layout, way, rotated, key in listed:
        found = {
            (r.layout, turn.get(r.direction), f"{r.width} of {r.head_dim}", r.place == "last")
            for r in rows[key.strip("`")]
        }
        last = rotated.startswith("last ")
        assert (layout, way, rotated.removeprefix("last "), last) in found, label

    sheet = json.loads(NOTEBOOK.with_name("cheat-sheet.ipynb").read_text("utf8"))["cells"][0]
    lines = [line for line in sheet["source"] if re.match(r"\| \[(interleaved|half-split)\]", line)]
    assert len(lines) == 2
    for line in lines:
        names = re.findall("`(\\w+)`", line)
        layouts = {row.layout for name in names for row in rows[name] if row.part != "vision"}
        assert layouts == {re.findall(r"[a-z-]+", line)[0]}
        assert len(names) >= 4


@pytest.mark.parametrize("mean_too", [True, False], ids=["LayerNorm", "RMSNorm"])
def test_signs_and_factors_go_into_the_gains_of_a_norm_between(mean_too: bool) -> None:
    """From neighbours that turn clockwise to halves that turn the other way, times a factor."""
    generator = np.random.default_rng(0)
    names = ("q", "k")
    rows = {name: generator.normal(size=(8, 24)) for name in names}
    gains = {name: generator.normal(size=8) for name in names}
    biases = {name: generator.normal(size=8) * mean_too for name in names}
    inputs = {name: generator.normal(size=24) for name in names}
    for name in names:  # a bias of the projection: a last column of its rows
        rows[name] = np.append(rows[name], generator.normal(size=(8, 1)), axis=1)
        inputs[name] = np.append(inputs[name], 1.0)

    def old(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return rotate_complex(x, -at, interleaved=True)

    def new(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return 1.5 * rotate_complex(x, at)

    def score(rotate: Any, rows: Any, gains: Any, biases: Any) -> float:
        turned = []
        for name, place in zip(names, (9, 4), strict=True):
            y = rows[name] @ inputs[name]
            y = y - y.mean() * mean_too
            y = y / np.sqrt((y**2).mean()) * gains[name] + biases[name]
            turned.append(rotate(y[None], np.array([place]))[0])
        return float(turned[0] @ turned[1])

    convert = identify(old, 8).differs_from(identify(new, 8)).convert
    assert convert is not None
    permute = identify(old, 8).differs_from(identify(new, 8)).permute
    assert permute is not None
    order = np.abs(convert(np.eye(8), 1)) > 0  # where rows go

    def converted(parts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: convert(part, 1) for name, part in parts.items()}

    def permuted(parts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: order.astype(float) @ part for name, part in parts.items()}

    wanted = score(old, rows, gains, biases)
    moved = score(new, permuted(rows), converted(gains), converted(biases))
    assert moved == pytest.approx(wanted, rel=1e-9)
    ones = convert(np.ones(8), 1)
    signs = {name: np.sign(ones)[:, None] * part for name, part in permuted(rows).items()}
    in_rows = score(rotate_complex, signs, permuted(gains), permuted(biases))
    assert (in_rows == pytest.approx(wanted, rel=1e-9)) != mean_too
    only = {name: permute(part, 1) for name, part in rows.items()}
    assert all(np.array_equal(only[name], permuted(rows)[name]) for name in names)
    of_rows = score(new, converted(rows), permuted(gains), permuted(biases))
    assert abs(of_rows - wanted) > 0.01 * abs(wanted)


@pytest.mark.parametrize("width", [8, 4], ids=["all", "half"])
def test_rows_are_converted_and_gains_permuted_where_a_norm_stands_after_the_turn(
    width: int,
) -> None:
    """From neighbours that turn clockwise to halves that turn the other way, times a factor."""
    generator = np.random.default_rng(0)
    rows, gains = generator.normal(size=(2, 8, 24)), generator.normal(size=(2, 8))
    inputs = generator.normal(size=(2, 24))

    def turner(layout: bool, way: int, factor: float) -> Any:
        def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
            turned = factor * rotate_complex(x[..., :width], way * at, interleaved=layout)
            return np.concatenate((turned, x[..., width:]), axis=-1)

        return rotate

    def score(rotate: Any, rows: np.ndarray, gains: np.ndarray, mean: bool = False) -> float:
        ends = []
        for weight, gain, x, place in zip(rows, gains, inputs, (9, 4), strict=True):
            y = rotate((weight @ x)[None], np.array([place]))[0]
            y = y - y.mean() * mean
            ends.append(gain * y / np.sqrt((y**2).mean()))
        return float(ends[0] @ ends[1])

    old, new = turner(True, -1, 1.0), turner(False, 1, 1.5)
    convert = identify(old, 8).differs_from(identify(new, 8)).convert
    assert convert is not None
    order = (np.abs(convert(np.eye(8), 1)) > 0).astype(float)  # where rows go
    moved = np.stack([convert(weight, 1) for weight in rows])
    permuted = gains @ order.T
    wanted = score(old, rows, gains)
    assert score(new, moved, permuted) == pytest.approx(wanted, rel=1e-9)
    assert score(new, moved, gains) != pytest.approx(wanted, rel=0.01)
    assert score(new, order @ rows, permuted) != pytest.approx(wanted, rel=0.01)
    mean = score(old, rows, gains, mean=True)
    assert score(new, moved, permuted, mean=True) != pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize("interleaved", [True, False])
def test_gains_after_the_turn_follow_the_channels_that_it_writes(interleaved: bool) -> None:
    generator = np.random.default_rng(0)
    rows, gains = generator.normal(size=(2, 8, 24)), generator.normal(size=(2, 8))
    inputs = generator.normal(size=(2, 24))

    def old(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return rotate_complex(x, at, interleaved=interleaved)

    def dealt_out(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return to_half(rotate_complex(x, at, interleaved=True))

    def score(rotate: Any, rows: np.ndarray, gains: np.ndarray) -> float:
        a, b = (
            gain * rotate((weight @ x)[None], np.array([place]))[0]
            for weight, gain, x, place in zip(rows, gains, inputs, (9, 4), strict=True)
        )
        return float(a @ b / np.linalg.norm(a / gains[0]) / np.linalg.norm(b / gains[1]))

    one, two = (identify(rotate, 8) for rotate in (old, dealt_out))
    convert = one.differs_from(two).convert
    assert convert is not None
    moved = np.stack([convert(weight, 1) for weight in rows])
    there = np.empty_like(gains)
    there[:, np.ravel(two.written)] = gains[:, np.ravel(one.written)]  # speeds fall in both
    wanted = score(old, rows, gains)
    assert score(dealt_out, moved, there) == pytest.approx(wanted, rel=1e-9)
    like_rows = np.stack([convert(gain, 1) for gain in gains])
    assert score(dealt_out, moved, like_rows) != pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_to_permute_moves_rows_and_does_no_more(kind: torch.dtype) -> None:
    two = identify(lambda x, at: 1.3465736 * rotate_complex(x, -at, interleaved=True), 16)
    difference = identify(rotate_complex, 16).differs_from(two)
    assert difference.convert is not None
    assert difference.permute is not None
    weight = torch.randn(32, 24, generator=torch.Generator().manual_seed(0)).to(kind)
    wide = weight.double()
    order = (difference.convert(torch.eye(32), 2) != 0).double()  # where each row goes
    assert torch.equal(difference.permute(weight, 2).double(), order @ wide)
    assert torch.equal(difference.permute(weight[:, 0], 2).double(), order @ wide[:, 0])
    ones = difference.convert(torch.ones(32, 1, dtype=torch.float64), 2)
    torch.testing.assert_close(difference.convert(wide, 2), order @ wide * ones)
    assert set(ones.sign().flatten().tolist()) == {1.0, -1.0}


def test_of_three_families_the_indexer_was_not_heard() -> None:
    heard = {row.family for row in read_atlas() if "indexer" in row.part}
    assert len(heard) == 6
    rotating = {family for family in families() if has_indexer(family)}
    assert rotating - heard == {"hy_v4", "minimax_m3_vl", "qwen4_exp"}
