"""The instrument asked about other packages as they are, and about whole layers and models.

transformers and rotary-embedding-torch are needed by these tests only: without them, they skip.
"""

import copy
import importlib
from functools import partial, update_wrapper
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from atlas.adapters import of_transformers
from atlas.layers import CHANGING, CHECKS, _resting, examine, tiny_model
from atlas.recording import altered, hear, hear_cells
from rope_minimal import RotaryEmbedding, RotarySelfAttention, apply_rope, rope_table
from ropebook import bugs
from ropescope import Report, identify
from ropescope.adapters import Rotation, of_module, of_tables


def config_of(family: str, name: str, **more: Any) -> Any:
    """Return a family's own configuration, of few layers."""
    pytest.importorskip("transformers")
    module = importlib.import_module(f"transformers.models.{family}.configuration_{family}")
    return getattr(module, name)(**({"num_hidden_layers": 2} | more))


def type_of(family: str, name: str) -> Any:
    pytest.importorskip("transformers")
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    return getattr(module, name)


# family, configuration, part: layout, place, direction, width, base, rescaling, factor
TEXT = [
    ("llama", "LlamaConfig", "half-split", "all", 1, 128, 1e4, None),
    ("gpt_neox", "GPTNeoXConfig", "half-split", "first", 1, 24, 1e4, None),
    ("glm", "GlmConfig", "interleaved", "first", 1, 64, 1e4, None),
    ("cohere", "CohereConfig", "interleaved", "all", 1, 128, 5e5, None),
    ("nanochat", "NanoChatConfig", "half-split", "all", -1, 128, 1e4, None),
    ("gpt_oss", "GptOssConfig", "half-split", "all", 1, 64, 1.5e5, "yarn"),
]


@pytest.mark.parametrize("row", TEXT, ids=[row[0] for row in TEXT])
def test_families_of_transformers(row: Any) -> None:
    family, config, *wanted, rescaling = row
    for rotation in of_transformers(config_of(family, config)).values():
        report = rotation.identify()
        found = [report.layout, report.place, report.direction, report.width, report.base]
        assert found == wanted
        assert (report.rescaling and report.rescaling[0]) == rescaling
        assert report.is_rotation
        assert not [f for f in report.findings if f.gravity == 3], str(report)


def test_gpt_oss_carries_yarns_factor_and_its_parameters() -> None:
    rotations = of_transformers(config_of("gpt_oss", "GptOssConfig"))
    report = rotations["GptOssModel"].identify()
    assert report.attention_factor == pytest.approx(0.1 * np.log(32) + 1, rel=1e-7)
    assert report.rescaling == (
        "yarn",
        {"factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False},
    )
    assert any("scores grow by its square, 1.813" in f.words for f in report.findings)


@pytest.mark.drawn(2)
def test_deepseek_v3_is_read_one_way_and_written_the_other() -> None:
    rotations = of_transformers(config_of("deepseek_v3", "DeepseekV3Config", n_routed_experts=8))
    report = rotations["DeepseekV3Model"].identify()
    assert report.layout == "read interleaved, written half-split"
    assert (report.place, report.width, report.head_dim) == ("last", 64, 192)
    assert report.pairs[:2] == ((128, 129), (130, 131))
    assert report.written[:2] == ((128, 160), (129, 161))


@pytest.mark.drawn(2)
def test_gemma_3_has_two_bases() -> None:
    rotations = of_transformers(config_of("gemma3", "Gemma3TextConfig", num_hidden_layers=6))
    bases = {name: rotation.identify().base for name, rotation in rotations.items()}
    assert bases == {
        "Gemma3TextModel[sliding_attention]": 1e4,
        "Gemma3TextModel[full_attention]": 1e6,
    }


@pytest.mark.drawn(2)
def test_qwen2_vl_has_three_axes_for_text_and_two_for_pictures() -> None:
    parts = {"text_config": {"num_hidden_layers": 2}, "vision_config": {"depth": 2}}
    rotations = of_transformers(config_of("qwen2_vl", "Qwen2VLConfig", **parts))
    text, picture = (r.identify() for r in rotations.values())
    assert (text.axes, text.base, text.width) == (3, 1e6, 128)
    assert (text.inv_freq > 0).sum(axis=0).tolist() == [16, 24, 24]
    assert (picture.axes, picture.base, picture.width) == (2, 1e4, 80)
    assert (picture.inv_freq > 0).sum(axis=0).tolist() == [20, 20]


@pytest.mark.drawn(2)
def test_gpt_j_pairs_neighbours_of_its_first_channels() -> None:
    rotations = of_transformers(config_of("gptj", "GPTJConfig"))
    report = rotations["GPTJModel"].identify()
    assert (report.layout, report.place, report.width) == ("interleaved", "first", 64)
    assert (report.base, report.table_end) == (1e4, 2047)


def test_layers_without_rotation_are_no_rotations() -> None:
    rotations = of_transformers(config_of("cohere2", "Cohere2Config", num_hidden_layers=4))
    assert list(rotations) == ["Cohere2Model"]
    heard = hear(type_of("llama", "LlamaModel"), config_of("llama", "LlamaConfig"))
    assert [len(one.names) for one in heard] == [2]
    config = config_of("smollm3", "SmolLM3Config", num_hidden_layers=8)
    heard = hear(type_of("smollm3", "SmolLM3Model"), config)
    turned = {name: one.turned for one in heard for name in one.names}
    assert [turned[f"layers.{i}.self_attn"] for i in range(8)] == [True, True, True, False] * 2


@pytest.mark.drawn(2)
def test_what_a_model_does_beside_the_main_thing_is_heard() -> None:
    """An indexer has scores of its own, another layout and another place than the attention."""
    config = config_of("deepseek_v32", "DeepseekV32Config", n_routed_experts=8)
    rotations = of_transformers(config)
    main, indexer = (
        rotations[f"DeepseekV32Model[layers.0.self_attn{name}]"].identify()
        for name in ("", ".indexer")
    )
    assert (main.layout, main.place) == ("read interleaved, written half-split", "last")
    assert (main.head_dim, indexer.head_dim) == (192, 128)
    assert (indexer.layout, indexer.place, indexer.width) == ("half-split", "first", 64)
    assert np.array_equal(main.inv_freq, indexer.inv_freq)


@pytest.mark.parametrize("heads", [5, 16])  # as many as positions are heard, or asked far out
def test_an_indexer_of_as_many_heads_as_positions_is_heard(heads: int) -> None:
    config = config_of("axk2", "AXK2Config", n_routed_experts=8, index_n_heads=heads)
    indexer = of_transformers(config)["AXK2Model[layers.0.self_attn.indexer]"]
    x, at = torch.randn(2, 16, 128), torch.arange(16) ** 2
    alone = [indexer.rotate(x[:, [t]], at[t : t + 1]) for t in range(16)]
    assert torch.allclose(indexer.rotate(x, at), torch.cat(alone, dim=1), atol=1e-5)
    report = indexer.identify()
    assert (report.layout, report.place, report.width) == ("half-split", "first", 32)
    assert report.findings == ()


class _Scores(torch.nn.Module):
    """Makes scores by a plain product, of queries that have positions before heads or after."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config, self.to_q = config, torch.nn.Linear(8, 8 * config.heads)

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        q = self.to_q(x).unflatten(-1, (self.config.heads, 8))
        q = apply_rope(q.transpose(1, 2), *rope_table(at[0], 8))
        q = q.transpose(1, 2) if self.config.positions_first else q
        return q @ q.mT


class _Model(torch.nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config, self.attention = config, type("Attention", (_Scores,), {})(config)

    def forward(self, inputs_embeds: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        return self.attention(inputs_embeds, position_ids)


@pytest.mark.parametrize("heads", [2, 5, 7])
def test_heads_are_told_from_as_many_positions(heads: int) -> None:
    pytest.importorskip("transformers")
    x = torch.randn(3, 7, 8)
    for first in (True, False):
        config = SimpleNamespace(hidden_size=8, heads=heads, positions_first=first)
        (heard,) = hear(_Model, config)
        assert heard.turned
        for count in range(1, 8):
            at = 3 * torch.arange(count)
            wanted = apply_rope(x[:, :count], *rope_table(at, 8))
            assert torch.allclose(heard.rotate(x[:, :count], at), wanted, atol=1e-5), count


def test_a_model_that_counts_tokens_itself_is_asked_so() -> None:
    """The depth decoder of CSM takes positions and looks at none."""
    config = config_of("csm", "CsmDepthDecoderConfig")
    (heard,) = hear(type_of("csm", "CsmDepthDecoderModel"), config)
    report = Rotation(heard.rotate, heard.head_dim, 64).identify()
    assert (report.layout, report.base, heard.ends) == ("half-split", 5e5, (512,))
    assert report.findings == ()


@pytest.mark.parametrize("most", [256, 1000])
def test_where_tokens_are_counted_the_end_of_their_table_is_found(most: int) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(
        "roformer", hidden_size=64, embedding_size=64, num_attention_heads=2, vocab_size=9,
        num_hidden_layers=1, intermediate_size=8, max_position_embeddings=most,
    )  # fmt: skip
    (rotation,) = of_transformers(config).values()
    assert rotation.identify().table_end == most - 1


def test_what_queries_are_multiplied_by_is_no_factor_of_the_rotation() -> None:
    more = {"position_embedding_type": "rotary", "vocab_size": 33, "pad_token_id": 1}
    (heard,) = hear(type_of("esm", "EsmModel"), config_of("esm", "EsmConfig", **more))
    assert heard.queries_scaled == heard.head_dim**-0.5 == 0.125
    report = Rotation(heard.rotate, heard.head_dim, 64).identify()
    assert report.attention_factor == pytest.approx(1)


@pytest.mark.drawn(2)
def test_a_table_of_three_axes_is_given_three() -> None:
    config = config_of("minimax_m3_vl", "MiniMaxM3VLVisionConfig")
    (heard,) = hear_cells(config)
    assert heard.axes == 3
    report = Rotation(heard.rotate, heard.head_dim, (64,) * 3).identify()
    assert (report.width, report.head_dim) == (78, 80)
    assert (report.base, report.layout) == (1e4, "half-split")
    assert (report.inv_freq > 0).sum(axis=0).tolist() == [13, 13, 13]


def test_a_model_that_wants_embeddings_gets_them() -> None:
    names = ("qwen3_omni_moe", "Qwen3OmniMoeCode2WavConfig")
    (heard,) = hear(type_of(names[0], "Qwen3OmniMoeCode2WavTransformerModel"), config_of(*names))
    assert heard.turned


def test_a_table_of_as_many_rows_as_tokens_is_heard() -> None:
    config = config_of("clvp", "ClvpEncoderConfig")
    (heard,) = hear(type_of("clvp", "ClvpEncoder"), config)
    assert (heard.turned, heard.values_turned, heard.output_turned) == (True, True, True)


@pytest.mark.parametrize(
    ("family", "names", "where", "gains"),
    [
        ("qwen3", ("Qwen3Model", "Qwen3Config"), "before", True),
        ("hunyuan_v1_dense", ("HunYuanDenseV1Model", "HunYuanDenseV1Config"), "after", True),
        ("nanochat", ("NanoChatModel", "NanoChatConfig"), "after", False),
        ("llama", ("LlamaModel", "LlamaConfig"), None, False),
        # its q_norm and k_norm are identities
        (
            "qwen3_omni_moe",
            ("Qwen3OmniMoeCode2WavTransformerModel", "Qwen3OmniMoeCode2WavConfig"),
            None,
            False,
        ),
    ],
)
def test_where_a_norm_stands_is_heard(family: str, names: Any, where: Any, gains: bool) -> None:
    config = config_of(family, names[1])
    if getattr(config, "head_dim", 0) is None:
        config.head_dim = 128
    (heard,) = hear(type_of(family, names[0]), config)
    assert (heard.norm, heard.gains) == (where, gains)


def test_what_is_heard_is_what_the_function_does() -> None:
    """From outside, a recorded model and the family's own function and table by hand agree."""
    config = config_of("llama", "LlamaConfig")
    module = importlib.import_module("transformers.models.llama.modeling_llama")
    table = module.LlamaRotaryEmbedding(config)
    rotation = of_transformers(config)["LlamaModel"]
    x = torch.randn(3, 4, 128, generator=torch.Generator().manual_seed(0))
    at = torch.tensor([0, 7, 7, 900])
    wanted = module.apply_rotary_pos_emb(x[:, None], x[:, None], *table(x, at[None]))[0][:, 0]
    assert torch.equal(rotation.rotate(x, at), wanted)


def test_tables_with_a_function_that_applies_them() -> None:
    cos, sin = rope_table(range(300), 16)
    report = of_tables(cos, sin, _neighbours, 24).identify()
    assert (report.layout, report.place, report.width) == ("interleaved", "last", 16)
    assert (report.base, report.table_end) == (1e4, 299)


def _neighbours(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x[..., 8::2], x[..., 9::2]
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    return torch.cat((x[..., :8], turned), dim=-1)


def test_v_jepa_2_is_singular() -> None:
    pytest.importorskip("transformers")
    module = importlib.import_module("transformers.models.vjepa2.modeling_vjepa2")

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return module.rotate_queries_or_keys(x[:, None], at)[:, 0]

    report = identify(rotate, 20, positions=16, dtype=torch.float32)
    assert not report.is_rotation
    assert report.singular_values is not None
    low, high = report.singular_values
    values = np.linalg.svd(
        rotate(torch.eye(20)[:, None].repeat(1, 16, 1), torch.arange(16)).permute(1, 2, 0).numpy(),
        compute_uv=False,
    )
    assert 1.4 < high <= values.max() + 1e-6  # not every position is asked
    assert values.min() - 1e-6 <= low < 0.3
    assert report.deviation is not None
    assert report.deviation > 0.5
    assert "Not a rotation" in report.findings[0].words


def test_rotary_embedding_torch_pairs_neighbours() -> None:
    package = pytest.importorskip("rotary_embedding_torch")
    rope = package.RotaryEmbedding(dim=32)

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return package.apply_rotary_emb(rope.forward(at), x)

    report = identify(rotate, 64, dtype=torch.float32)
    assert (report.layout, report.place, report.width) == ("interleaved", "first", 32)
    assert (report.base, report.direction) == (1e4, 1)


def test_llama_becomes_cohere_and_nanochat() -> None:
    """From a real family to another: what the report says to do gives the same scores."""
    rotations = [
        next(iter(of_transformers(config_of(family, name)).values()))
        for family, name in (("llama", "LlamaConfig"), ("nanochat", "NanoChatConfig"))
    ]
    one, two = (r.identify() for r in rotations)
    difference = one.differs_from(two)
    assert difference.words == (
        "Negate the second row of 64 of 64 pairs: they turn the other way.",
    )
    assert difference.convert is not None
    torch.manual_seed(0)
    q, k = torch.randn(2, 128, 3)
    at = torch.tensor([5, 9, 70])

    def scores(rotate: Any, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return rotate(q.T[None], at) @ rotate(k.T[None], at).mT

    wanted = scores(rotations[0].rotate, q, k)
    moved = scores(rotations[1].rotate, difference.convert(q, 1), difference.convert(k, 1))
    assert torch.allclose(moved, wanted, atol=1e-4)
    assert not torch.allclose(scores(rotations[1].rotate, q, k), wanted, atol=1)


@pytest.mark.parametrize("interleaved", [False, True])
def test_this_packages_own_module(interleaved: bool) -> None:
    rope = RotaryEmbedding(32, 300, 5e5, interleaved=interleaved)
    report = of_module(rope, 48).identify()
    assert (report.layout, report.place) == (
        "interleaved" if interleaved else "half-split",
        "first",
    )
    assert (report.width, report.head_dim, report.base) == (32, 48, 5e5)
    assert report.findings == ()
    assert report.table_end == 299


# ---- whole layers ------------------------------------------------------------------------------

FAILS = {
    None: set(),
    "offset": {"cached", "padded"},
    "sign": {"shift"},
    "cache_key": {"cached", "padded", "doubled"},
    "halves": {"shift"},
    "padding": {"padded"},
    "heads": {"order", "doubled"},
    "positions": {"shift"},
    "base": {"cached", "padded"},
    # right by themselves, and another model than the weights were trained for
    "inv_freq": set(),
    "permute": set(),
    "layouts": set(),
    "table": set(),
}


@pytest.mark.parametrize("key", FAILS)
def test_the_bugs_of_a_layer_fail_the_checks_that_they_should(key: str | None) -> None:
    assert {bug.key for bug in bugs.BUGS} == set(FAILS) - {None}
    package = bugs.mutant(next((bug for bug in bugs.BUGS if bug.key == key), None))
    torch.manual_seed(0)
    layer = package.attention.RotarySelfAttention(64, 2, max_seq_len=4096).double()
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(3)
    found = examine(layer)
    assert (set(found.errors), found.refused) == (set(CHECKS), {})
    failed = {name for name in CHECKS if any(_says(f.words, name) for f in found.findings)}
    assert failed == FAILS[key], str(found)


def _says(words: str, check: str) -> bool:
    return words.startswith(CHECKS[check].format(shift=499))


@pytest.mark.parametrize("step", [lambda p: p // 2, lambda p: p // 4, lambda p: p % 250])
def test_a_period_of_round_length_does_not_hide_from_the_shift(step) -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama")
    forward = model.model.rotary_emb.forward
    model.model.rotary_emb.forward = lambda x, position_ids: forward(x, step(position_ids))
    assert any(_says(finding.words, "shift") for finding in examine(model).findings)


def test_a_layer_is_left_as_it_was() -> None:
    layer = RotarySelfAttention(32, 2).train()
    before = {name: weight.clone() for name, weight in layer.named_parameters()}
    examine(layer)
    assert layer.training
    assert all(torch.equal(weight, before[name]) for name, weight in layer.named_parameters())


@pytest.mark.parametrize(
    ("family", "fails"), [("llama", False), ("qwen3", False), ("hunyuan_v1_dense", True)]
)
def test_gains_after_the_turn_break_the_promise(family: str, fails: bool) -> None:
    pytest.importorskip("transformers")
    model = tiny_model(family)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    found = examine(model)
    assert set(found.errors) == set(CHECKS), found.refused
    assert max(v for k, v in found.errors.items() if k not in CHANGING) < 1e-3
    assert bool(found.with_gains) == (family != "llama")
    assert [f.words.split(":")[0] for f in found.findings] == (
        ["all positions moved by 499 with gains that are not 1"] if fails else []
    )
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_a_model_that_has_lost_its_rotation_is_wrong(layers: int, monkeypatch: Any) -> None:
    """Two causal layers tell orders without positions."""
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    monkeypatch.setattr(llama, "apply_rotary_pos_emb", lambda q, k, *table, **more: (q, k))
    finding = examine(tiny_model("llama", num_hidden_layers=layers)).findings[-1]
    assert finding.gravity == 3
    assert _says(finding.words, "doubled")


@pytest.mark.parametrize(
    ("family", "sizes", "meant"),
    [
        ("smollm3", {"no_rope_layers": [1, 0]}, None),
        ("smollm3", {"no_rope_layers": [0, 0]}, "no_rope_layers"),
        ("mpt", {}, "the lack of rope_parameters"),
        ("cohere2", {"layer_types": ["sliding_attention", "full_attention"]}, None),
        ("cohere2", {"layer_types": ["full_attention"] * 2}, "layer_types"),
        ("bamba", {"num_hidden_layers": 2}, "layer_types"),
        ("granite_swa", {"layer_rope_theta": [0, 0]}, "layer_rope_theta"),
        (
            "granitemoehybrid",
            {"layer_types": ["linear_attention", "full_attention"]},
            "position_embedding_type",
        ),
    ],
)
def test_layers_at_rest_are_looked_at_only_where_all_are(
    family: str, sizes: dict[str, Any], meant: str | None
) -> None:
    pytest.importorskip("transformers")
    found = [f for f in examine(tiny_model(family, **sizes)).findings if _says(f.words, "doubled")]
    assert [f.gravity for f in found] == ([2] if meant else [])
    assert not meant or f"as {meant} may mean" in found[0].words


@pytest.mark.parametrize(("family", "named"), [("zamba2", "use_mem_rope"), ("falcon", "alibi")])
def test_a_switch_that_lets_all_layers_rest_is_named(family: str, named: str) -> None:
    transformers = pytest.importorskip("transformers")
    for rests in (True, False):
        config = transformers.AutoConfig.for_model(family)
        config.layer_types = ["hybrid", "linear_attention"]
        setattr(config, named, rests == (named == "alibi"))
        assert _resting(config) == (named if rests else "")


@pytest.mark.parametrize(
    ("family", "sizes"),
    [
        ("qwen3", {}),
        ("smollm3", {"no_rope_layers": [1, 0]}),
        ("gemma3_text", {"layer_types": ["sliding_attention", "full_attention"]}),
    ],
)
def test_kinds_of_layers_excuse_no_lost_rotation(
    family: str, sizes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    of_family = "gemma3" if family == "gemma3_text" else family
    module = importlib.import_module(f"transformers.models.{of_family}.modeling_{of_family}")
    monkeypatch.setattr(module, "apply_rotary_pos_emb", lambda q, k, *table, **more: (q, k))
    finding = examine(tiny_model(family, **sizes)).findings[-1]
    assert finding.gravity == 3
    assert _says(finding.words, "doubled")


def test_position_ids_that_are_dropped_are_told_as_positions_that_may_be() -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama")
    forward = model.model.forward
    model.model.forward = lambda *args, position_ids=None, **more: forward(*args, **more)
    (finding,) = examine(model).findings
    assert "positions are lost, or `position_ids` do not reach them" in finding.words


def test_keys_that_a_gain_silences_have_not_lost_their_positions() -> None:
    """Zaya multiplies its keys by a gain that begins as 0."""
    pytest.importorskip("transformers")
    found = [f for f in examine(tiny_model("zaya")).findings if _says(f.words, "doubled")]
    assert [f.gravity for f in found] == [2]
    assert "does with random gains inside attention" in found[0].words


def positioned(model: Any, change: Any) -> Any:
    """Return a model whose table is given other positions."""
    table = model.model.rotary_emb
    forward = table.forward
    table.forward = lambda x, position_ids, *kind: forward(x, change(x, position_ids), *kind)
    return model


def _in_rows_as_in_the_first(_: Any, at: torch.Tensor) -> torch.Tensor:
    return at[:1].expand_as(at)


def _from_zero_in_pieces(_: Any, at: torch.Tensor) -> torch.Tensor:
    return torch.arange(at.shape[1])[None] if 1 < at.shape[1] < 9 else at


@pytest.mark.parametrize(
    ("change", "fails"),
    [(_in_rows_as_in_the_first, "padded"), (_from_zero_in_pieces, "cached")],
)
def test_positions_of_one_row_or_of_one_piece_are_no_others(change: Any, fails: str) -> None:
    pytest.importorskip("transformers")
    (finding,) = examine(positioned(tiny_model("llama"), change)).findings
    assert (finding.gravity, _says(finding.words, fails)) == (3, True)


def test_a_layer_that_gives_all_rows_the_positions_of_the_first_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forward = RotaryEmbedding.forward

    def first(self: Any, x: torch.Tensor, *, position_ids: torch.Tensor) -> torch.Tensor:
        return forward(self, x, position_ids=position_ids[:1].expand_as(position_ids))

    torch.manual_seed(0)
    layer = RotarySelfAttention(64, 2)
    for weight in layer.parameters():
        weight.data.mul_(3)
    assert examine(layer).findings == ()
    monkeypatch.setattr(RotaryEmbedding, "forward", first)
    (finding,) = examine(layer).findings
    assert _says(finding.words, "padded")


@pytest.mark.parametrize("family", ["qwen3_next", "jamba"])
def test_what_has_a_state_beside_attention_goes_on_by_one_token(family: str) -> None:
    pytest.importorskip("transformers")
    sizes: dict[str, Any] = {"layer_types": ["linear_attention", "full_attention"]}
    sizes = {"attn_layer_period": 2, "attn_layer_offset": 1} if family == "jamba" else sizes
    assert examine(tiny_model(family, **sizes)).errors["cached"] < 1e-3


@pytest.mark.parametrize("shift", [4001, 20011, 100003])
def test_what_float32_rounds_of_a_large_angle_is_no_fault(shift: int) -> None:
    pytest.importorskip("transformers")
    found = examine(tiny_model("llama"), shift=shift)
    assert found.findings == ()
    assert found.errors["shift"] < min(found.noise[0], 0.1)


def test_positions_that_16_bits_round_are_told_far_out() -> None:
    pytest.importorskip("transformers")
    model = positioned(tiny_model("llama"), lambda _, at: at.half().float())
    (finding,) = examine(model, shift=4001).findings
    assert finding.gravity == 3
    assert finding.words.startswith("all positions moved by 4001: ")


def test_a_check_that_was_refused_is_printed_by_its_name() -> None:
    found = str(examine(RotarySelfAttention(32, 2, max_seq_len=64)))
    assert "all positions moved by 499" in found
    assert "not asked: ValueError" in found
    assert "{" not in found


@pytest.mark.parametrize(
    ("family", "named"),
    [("lfm3", "convolutions"), ("minimax", "linear attention"), ("gpt2", None)],
)
def test_what_no_mask_reaches_is_no_dropped_mask(family: str, named: str | None) -> None:
    pytest.importorskip("transformers")
    found = [f for f in examine(tiny_model(family)).findings if _says(f.words, "packed")]
    assert [f.gravity for f in found] == ([2] if named else [])
    assert not named or f"unless its {named} do it" in found[0].words


@pytest.mark.parametrize(("layers", "wanted"), [(2, ["doubled"]), (1, ["order", "doubled"])])
def test_small_weights_hide_neither_positions_nor_their_loss(
    layers: int, wanted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As weights are initialised by default, attention hardly aims: little changes, and enough."""
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    small = {"num_hidden_layers": layers, "initializer_range": 0.02}
    assert examine(tiny_model("hrm_text", initializer_range=0.02)).findings == ()
    assert examine(tiny_model("llama", **small)).findings == ()
    assert examine(tiny_model("llama", **small | {"initializer_range": 0.002})).findings == ()
    monkeypatch.setattr(llama, "apply_rotary_pos_emb", lambda q, k, *table, **more: (q, k))
    found = examine(tiny_model("llama", **small)).findings
    assert [f.gravity for f in found] == [3] * len(wanted)
    assert all(_says(f.words, key) for f, key in zip(found, wanted, strict=True))


def test_weights_that_enlarge_rounding_are_told_from_a_broken_promise() -> None:
    """Sixteen layers that run six times: what float32 rounds of an angle grows to any size."""
    pytest.importorskip("transformers")
    found = examine(tiny_model("hrm_text"))
    assert min(found.errors["shift"], found.noise[0]) > 0.01
    assert found.findings
    for finding in found.findings:
        assert (finding.gravity, finding.chapter) == (2, "precision")
        assert "such weights enlarge rounding" in finding.words
    model = tiny_model("hrm_text", initializer_range=0.1)
    assert examine(model).findings == ()
    forward = model.model.rotary_emb.forward
    model.model.rotary_emb.forward = lambda x, position_ids: forward(x, position_ids**2)
    (finding,) = examine(model).findings
    assert finding.gravity == 3
    assert _says(finding.words, "shift")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rounding_to_16_bits_is_no_broken_promise(dtype: torch.dtype) -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama").to(dtype)
    found = examine(model).findings
    assert found
    for finding in found:
        assert (finding.gravity, finding.chapter) == (1, "precision")
        assert "nothing, and does in float32, to" in finding.words
    assert model.dtype == dtype
    forward = model.model.rotary_emb.forward
    model.model.rotary_emb.forward = lambda x, position_ids: forward(x, position_ids**2)
    assert {f.gravity for f in examine(model).findings} == {3}


BF16, FP16 = torch.bfloat16, torch.float16


@pytest.mark.parametrize(
    ("family", "dtype", "shift"),
    [("llama", BF16, 499), ("qwen3", BF16, 499), ("gemma3_text", BF16, 499), ("llama", FP16, 4001)],
)
def test_positions_that_16_bits_round_are_no_rounding_of_vectors(
    family: str, dtype: torch.dtype, shift: int
) -> None:
    pytest.importorskip("transformers")
    model = tiny_model(family).to(dtype)
    assert {f.gravity for f in examine(model, shift=shift).findings} == {1}
    positioned(model, lambda x, at: at.to(x.dtype).float())
    found = [f for f in examine(model, shift=shift).findings if f.gravity == 3]
    assert found
    assert all("something else is rounded, such as positions" in f.words for f in found)


@pytest.mark.parametrize(
    "sizes",
    [{"num_hidden_layers": 4}, {"num_hidden_layers": 4, "hidden_size": 128},
     {"initializer_range": 0.02}],
)  # fmt: skip
def test_models_of_16_bits_of_any_size_are_rounded_and_right(sizes: dict[str, Any]) -> None:
    pytest.importorskip("transformers")
    for dtype in (BF16, FP16):
        found = examine(tiny_model("llama", **sizes).to(dtype)).findings
        assert {f.gravity for f in found} == {1}


def test_masks_that_do_not_hold_in_float64_are_told_as_such() -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama").double()
    (finding,) = examine(model).findings
    assert (finding.gravity, finding.chapter) == (1, "precision")
    assert "masks may not hold in float64" in finding.words
    assert model.dtype == torch.float64
    found = examine(positioned(model, lambda _, at: at**2)).findings
    assert any(f.gravity == 3 and _says(f.words, "shift") for f in found)


def test_a_model_made_in_inference_mode_is_examined_in_it() -> None:
    pytest.importorskip("transformers")
    with torch.inference_mode():
        model = tiny_model("llama")
        assert examine(model).findings == ()
    with pytest.raises(ValueError, match="model must not be made under torch"):
        examine(model)


def test_modules_of_mixed_modes_stay_so() -> None:
    layer = RotarySelfAttention(32, 2).train()
    layer.q_proj.eval()
    examine(layer)
    assert [module.training for module in layer.children()] == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("family", "sizes"), [("stablelm", {"qk_layernorm": True}), ("cohere", {"use_qk_norm": True})]
)
def test_gains_are_known_as_norms_inside_attention(family: str, sizes: dict[str, Any]) -> None:
    pytest.importorskip("transformers")
    found = examine(tiny_model(family, **sizes))
    assert found.findings == ()
    assert abs(found.with_gains["order"] - found.errors["order"]) > 0.01


def test_gains_after_the_turn_are_found_by_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    qwen = pytest.importorskip("transformers.models.qwen3.modeling_qwen3")
    model = tiny_model("qwen3", num_hidden_layers=1)
    attention = model.model.layers[0].self_attn
    attention.norm_q, attention.q_norm = attention.q_norm, torch.nn.Identity()
    attention.norm_k, attention.k_norm = attention.k_norm, torch.nn.Identity()
    turn = qwen.apply_rotary_pos_emb

    def then_norm(*args: Any, **more: Any) -> Any:
        q, k = turn(*args, **more)
        return attention.norm_q(q), attention.norm_k(k)

    monkeypatch.setattr(qwen, "apply_rotary_pos_emb", then_norm)
    (finding,) = examine(model).findings
    assert finding.gravity == 3
    assert finding.words.startswith("all positions moved by 499 with gains that are not 1: ")


def test_what_is_no_causal_model_is_refused_in_words() -> None:
    pytest.importorskip("transformers")
    for model in (torch.nn.Linear(3, 3), tiny_model("llama").model.layers[0]):
        with pytest.raises(TypeError, match="model must be a causal language model of tr"):
            examine(model)


@pytest.mark.parametrize("family", ["falcon", "modernbert-decoder"])
def test_a_tiny_model_leaves_out_what_its_class_refuses(family: str) -> None:
    pytest.importorskip("transformers")
    assert examine(tiny_model(family)).findings == ()


@pytest.mark.parametrize("family", ["deepseek_v3", "dots1"])
def test_a_tiny_model_of_parted_heads_or_of_unset_experts_runs(family: str) -> None:
    pytest.importorskip("transformers")
    found = examine(tiny_model(family))
    assert found.findings == ()
    assert set(found.errors) == set(CHECKS)


def test_a_model_that_sees_later_tokens_is_told_from_one_that_keeps_them_wrongly() -> None:
    pytest.importorskip("transformers")
    right = examine(tiny_model("roformer")).findings
    assert not [f for f in right if f.gravity == 3 or not _says(f.words, "doubled")]
    found = examine(tiny_model("roformer", is_decoder=False)).findings
    assert _says(found[0].words, "later")
    cached = next(f.words for f in found if _says(f.words, "cached"))
    assert cached.endswith("what later tokens change cannot be kept.")
    layer = RotarySelfAttention(32, 2)
    assert examine(layer).errors["later"] < 1e-6


def test_a_recurrence_that_starts_at_position_0_is_no_broken_rotation() -> None:
    pytest.importorskip("transformers")
    said = [f for f in examine(tiny_model("recurrent_gemma")).findings if _says(f.words, "shift")]
    assert [f.gravity for f in said] == [2]
    assert "unless position 0 is a start to it: from 1 on, a shift changes nothing" in said[0].words
    wrong = examine(positioned(tiny_model("llama"), lambda x, at: at // 2)).findings
    assert [f.gravity for f in wrong if _says(f.words, "shift")] == [3]
    assert not any("a start to it" in f.words for f in wrong)


@pytest.mark.parametrize("hidden", [6144, 3072])
def test_a_factor_on_queries_is_that_of_the_whole_model(hidden: int) -> None:
    """LongCat's is the root of hidden size over rank, and small models are asked."""
    config = config_of("longcat_flash", "LongcatFlashConfig")
    config.hidden_size = hidden
    (rotation,) = of_transformers(config).values()
    attend = type_of("longcat_flash", "LongcatFlashMLA")
    with torch.device("meta"):
        factor = attend(config, 0).mla_scale_q_lora
    (finding,) = rotation.beside
    assert f"Queries come out {factor:.6g} times as long as keys" in finding.words


def test_a_factor_on_queries_alone_is_part_of_what_differs() -> None:
    pytest.importorskip("transformers")
    llama = config_of("llama", "LlamaConfig")
    llama.hidden_size, llama.num_attention_heads = 512, 4
    glimmer = of_transformers(config_of("muse_glimmer", "MuseGlimmerTextConfig"))
    one = glimmer["MuseGlimmerTextModel"].identify()
    two = of_transformers(llama)["LlamaModel"].identify()
    for difference, which in ((one.differs_from(two), "first"), (two.differs_from(one), "second")):
        (words,) = (w for w in difference.words if "Queries come out" in w)
        assert words.startswith(f"The {which}: Queries come out 3.87 times as long as keys")
        assert difference.convert is None
    same = one.differs_from(one)
    assert same.words == ()
    assert same.convert is not None


def test_a_model_that_does_not_run_is_refused_with_what_it_says() -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama")
    model.model.rotary_emb.forward = None
    wanted = "model must answer 32 tokens, with logits, got "
    with pytest.raises(ValueError, match=f"{wanted}TypeError: 'NoneType'"):
        examine(model)
    with pytest.raises(ValueError, match=f"{wanted}AttributeError: .* 'logits'"):
        examine(tiny_model("llama").model)


@pytest.mark.parametrize(
    ("family", "name", "words"),
    [
        ("hunyuan_v1_dense", "HunYuanDenseV1Config", "(its configuration leaves head_dim unset)"),
        ("dots1", "Dots1Config", "configuration leaves n_shared_experts, n_routed_experts, num_ex"),
        ("jetmoe", "JetMoeConfig", "queries come out as zeros: a weight stands before the score"),
    ],
)
def test_what_keeps_a_model_from_running_is_said(family: str, name: str, words: str) -> None:
    rotations = of_transformers(config_of(family, name))
    report = next(r for part, r in rotations.items() if part.endswith("Model")).identify()
    (finding,) = report.findings
    assert finding.gravity == 2
    assert finding.words.startswith("It cannot be asked: ")
    assert words in finding.words
    assert report.rows() == [("asked", "nothing")]
    assert Report.from_json(report.to_json()).to_json() == report.to_json()
    assert report.differs_from(report).words == (
        "The first was not asked.",
        "The second was not asked.",
    )


# what adapters do not hear, they say


@pytest.mark.parametrize(
    ("name", "turned"),
    [
        ("backwards", lambda k, by: by(k, -1)),
        ("twice", lambda k, by: by(by(k, 1), 1)),
        ("not at all", lambda k, by: k),
    ],
)
def test_keys_that_do_not_turn_as_queries_do_are_told(
    name: str, turned: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    apply = llama.apply_rotary_pos_emb

    def wrong(q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
        keys = turned(k, lambda x, way: apply(x, x, cos, way * sin, **more)[1])
        return apply(q, k, cos, sin, **more)[0], keys

    config = llama.LlamaConfig(hidden_size=256, num_attention_heads=4, num_hidden_layers=2)
    (right,) = of_transformers(config).values()
    assert not right.beside
    monkeypatch.setattr(llama, "apply_rotary_pos_emb", wrong)
    (rotation,) = of_transformers(config).values()
    report = rotation.identify()
    finding = report.findings[0]
    assert (finding.gravity, finding.chapter) == (3, "why-position")
    assert "Keys do not move with the position as queries do" in finding.words
    assert "by 0.2" in finding.words
    plain = identify(lambda x, at: apply_rope(x, *rope_table(at, 64)), 64, dtype=torch.float32)
    assert plain.differs_from(report).convert is None


def by_neighbours(x: Any, cos: Any, sin: Any) -> Any:
    cos, sin = (t[:, None, :, :32] for t in (cos, sin))
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)


def one_further(x: Any, cos: Any, sin: Any, way: int) -> Any:
    """Turn halves by the next position, or by the one before."""
    step = 1e4 ** -(torch.arange(64) % 32 / 32)
    cos, sin = (
        cos * step.cos() - way * sin * step.sin(),
        sin * step.cos() + way * cos * step.sin(),
    )
    half = torch.cat((-x[..., 32:], x[..., :32]), dim=-1)
    return x * cos[:, None] + half * sin[:, None]


def longer_by_place(x: Any, cos: Any, sin: Any, way: float) -> Any:
    """Stretch as xPos does: queries by 1.1 to the power of the position, keys by one over it."""
    at = torch.atan2(sin, cos)[:, None, :, :1] % 6.2832  # the first pair turns by 1 rad
    half = torch.cat((-x[..., 32:], x[..., :32]), dim=-1)
    return 1.1 ** (way * at) * (x * cos[:, None] + half * sin[:, None])


@pytest.mark.parametrize(
    ("keys", "queries", "gravity", "says"),
    [
        (by_neighbours, None, 3, "Keys do not move with the position as queries do: what is said"),
        (partial(one_further, way=1), None, 2, "one position further than queries: every"),
        (partial(one_further, way=-1), None, 2, "one position less far than queries: every"),
        (
            partial(longer_by_place, way=-1.0),
            partial(longer_by_place, way=1.0),
            2,
            "Keys do not move with the position as queries do: what is said here is of queries.",
        ),
    ],
)
def test_keys_are_judged_by_the_scores_that_they_make(
    keys: Any, queries: Any, gravity: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    apply = llama.apply_rotary_pos_emb

    def wrong(q: Any, k: Any, cos: Any, sin: Any) -> Any:
        mine = apply(q, k, cos, sin)[0] if queries is None else queries(q, cos, sin)
        return mine, keys(k, cos, sin)

    monkeypatch.setattr(llama, "apply_rotary_pos_emb", wrong)
    config = llama.LlamaConfig(hidden_size=256, num_attention_heads=4, num_hidden_layers=2)
    (rotation,) = of_transformers(config).values()
    (finding,) = rotation.beside
    assert finding.gravity == gravity
    assert says in finding.words


@pytest.mark.parametrize("how", ["counted in their row", "rounded to bfloat16"])
def test_keys_that_part_from_queries_far_out_alone_are_told(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first five positions they are turned as queries are."""
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    apply, tables = llama.apply_rotary_pos_emb, []
    forward = llama.LlamaRotaryEmbedding.forward

    def table(self: Any, x: torch.Tensor, position_ids: torch.Tensor) -> Any:
        slots = torch.arange(position_ids.shape[1])[None].expand_as(position_ids)
        other = slots if "row" in how else position_ids.bfloat16().long()
        tables[:] = forward(self, x, other)
        return forward(self, x, position_ids)

    def wrong(q: Any, k: Any, cos: Any, sin: Any) -> Any:
        return apply(q, k, cos, sin)[0], apply(q, k, *tables)[1]

    config = llama.LlamaConfig(hidden_size=256, num_attention_heads=4, num_hidden_layers=2)
    monkeypatch.setattr(llama.LlamaRotaryEmbedding, "forward", table)
    monkeypatch.setattr(llama, "apply_rotary_pos_emb", wrong)
    (rotation,) = of_transformers(config).values()
    (finding,) = rotation.beside
    assert (finding.gravity, finding.chapter) == (3, "why-position")
    assert "Keys do not move with the position as queries do" in finding.words
    report = rotation.identify()
    assert report.differs_from(report).convert is None


@pytest.mark.parametrize("family", ["ministral3", "mistral4"])
def test_queries_that_grow_far_out_have_right_keys(family: str) -> None:
    transformers = pytest.importorskip("transformers")
    for rotation in of_transformers(transformers.AutoConfig.for_model(family)).values():
        assert not [f for f in rotation.beside if "Keys do not move" in f.words]


@pytest.mark.parametrize("family", ["deepseek_v3", "qwen3", "gemma3_text", "glm", "cohere2"])
def test_right_keys_have_no_finding(family: str) -> None:
    """Those of latent attention are no multiple of queries, and their scores keep the promise."""
    pytest.importorskip("transformers")
    for rotation in of_transformers(tiny_model(family).config).values():
        assert {finding.gravity for finding in rotation.beside} <= {1}


def test_keys_that_turn_alone_are_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    apply = llama.apply_rotary_pos_emb
    monkeypatch.setattr(
        llama,
        "apply_rotary_pos_emb",
        lambda q, k, *rest, **more: (q, apply(q, k, *rest, **more)[1]),
    )
    config = llama.LlamaConfig(hidden_size=256, num_attention_heads=4, num_hidden_layers=2)
    (rotation,) = of_transformers(config).values()
    (finding,) = rotation.identify().findings
    assert finding.gravity == 3
    assert "Keys turn with the position and queries do not. A common shift was" in finding.words


@pytest.mark.parametrize("family", ["dinov3_vit", "vjepa2", "sam3_vit_model"])
def test_a_family_that_may_rotate_and_is_not_heard_says_so(family: str) -> None:
    transformers = pytest.importorskip("transformers")
    rotations = of_transformers(transformers.AutoConfig.for_model(family))
    assert rotations
    for rotation in rotations.values():
        assert "it may rotate" in str(rotation.identify())


@pytest.mark.parametrize("family", ["bert", "gpt2", "vit", "t5"])
def test_a_family_without_tables_of_angles_has_no_entry(family: str) -> None:
    transformers = pytest.importorskip("transformers")
    assert of_transformers(transformers.AutoConfig.for_model(family)) == {}


def test_what_was_heard_and_rests_by_design_has_no_entry() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    granite = {"layer_types": ["attention"] * 2, "position_embedding_type": "nope"}
    for config in (
        transformers.FalconConfig(alibi=True, **sizes),
        transformers.SmolLM3Config(no_rope_layers=[0, 0], pad_token_id=0, **sizes),
        transformers.GraniteMoeHybridConfig(**granite, **sizes),
    ):
        assert of_transformers(config) == {}, config.model_type


@pytest.mark.parametrize(
    ("side", "says"),
    [
        ("queries", "Queries come out 1.2 times as long as keys"),
        ("keys", "Keys come out 1.2 times as long as queries; what is said here is of queries"),
    ],
)
def test_a_factor_on_queries_or_keys_alone_is_told(
    side: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    apply = llama.apply_rotary_pos_emb

    def scaled(*given: Any, **more: Any) -> Any:
        q, k = apply(*given, **more)
        return (1.2 * q, k) if side == "queries" else (q, 1.2 * k)

    monkeypatch.setattr(llama, "apply_rotary_pos_emb", scaled)
    config = llama.LlamaConfig(hidden_size=256, num_attention_heads=4, num_hidden_layers=2)
    (rotation,) = of_transformers(config).values()
    report = rotation.identify()
    assert says in str(report)
    assert "cos and sin carry a factor" not in str(report)


def small_llama() -> Any:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    config = llama.LlamaConfig(
        hidden_size=64, num_attention_heads=4, num_hidden_layers=2, vocab_size=8
    )
    return llama.LlamaForCausalLM(config)


def another_base(model: Any) -> None:
    model.config.rope_parameters["rope_theta"] = 777.0


def other_frequencies(model: Any) -> None:
    model.model.rotary_emb.inv_freq *= 0.5


def another_class(model: Any) -> None:
    layer = model.model.layers[1].self_attn
    layer.__class__ = type("Mine", (type(layer),), {})


def another_forward(model: Any) -> None:
    forward = model.model.rotary_emb.forward
    model.model.rotary_emb.forward = lambda *given: tuple(t.bfloat16() for t in forward(*given))


def a_factor(model: Any) -> None:
    model.model.rotary_emb.attention_scaling = 1.5


def a_parameter(model: Any) -> None:
    table = model.model.rotary_emb
    speeds = table._buffers.pop("inv_freq")
    table.inv_freq = torch.nn.Parameter(0.5 * speeds)


def a_hook(model: Any) -> None:
    model.model.rotary_emb.register_forward_hook(lambda m, given, out: (out[0], -out[1]))


def a_forward_above(model: Any) -> None:
    forward = model.model.forward
    model.model.forward = lambda *args, **kwargs: forward(*args, **kwargs)


def by_accelerate(module: Any) -> None:
    """Lay accelerate's forward around that of a module, as its hooks do."""

    def new_forward(module: Any, *given: Any, **more: Any) -> Any:
        return module._old_forward(*given, **more)

    new_forward.__module__ = "accelerate.hooks"
    module._hf_hook, module._old_forward = object(), module.forward
    module.forward = update_wrapper(partial(new_forward, module), module._old_forward)


def another_forward_below(model: Any) -> None:
    another_forward(model)
    by_accelerate(model.model.rotary_emb)


def a_hook_beside(model: Any) -> None:
    by_accelerate(model.model.rotary_emb)
    a_hook(model)


def a_compiled_forward(model: Any) -> None:
    forward = model.forward
    model.forward = torch.compile(lambda *args, **kwargs: forward(*args, **kwargs))


def another_layer(model: Any) -> None:
    layer = model.model.layers[1]
    layer.__class__ = type("Mine", (type(layer),), {})


def a_hook_inside(model: Any) -> None:
    model.model.layers[0].self_attn.q_proj.register_forward_hook(lambda m, given, out: -out)


def a_function_for_a_table(model: Any) -> None:
    table = model.model.rotary_emb
    del model.model.rotary_emb
    model.model.rotary_emb = lambda x, position_ids: table(x, position_ids)


def another_configuration(model: Any) -> None:
    model.config = copy.deepcopy(model.config)
    model.config.attention_bias = True


def one_layer_twice(model: Any) -> None:
    model.model.layers[1].self_attn = model.model.layers[0].self_attn


def other_scores(model: Any) -> None:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register("again", lambda *given, **more: None)
    model.model.layers[0].self_attn.config = copy.deepcopy(model.config)
    model.model.layers[0].self_attn.config._attn_implementation = "again"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (another_base, "model.rotary_emb (other numbers in inv_freq)"),
        (other_frequencies, "model.rotary_emb (other numbers in inv_freq)"),
        (lambda model: model.bfloat16(), "model.rotary_emb (other numbers in inv_freq)"),
        (another_class, "model.layers.1.self_attn (a Mine)"),
        (another_forward, "model.rotary_emb (a forward of its own)"),
        (a_factor, "model.rotary_emb (another attention_scaling)"),
        (a_parameter, "model.rotary_emb (no buffer inv_freq)"),
        (a_hook, "model.rotary_emb (a hook)"),
        (a_forward_above, "model (a forward of its own)"),
        (another_forward_below, "model.rotary_emb (a forward of its own)"),
        (a_hook_beside, "model.rotary_emb (a hook)"),
        (a_compiled_forward, "LlamaForCausalLM (a forward of its own)"),
        (another_layer, "model.layers.1 (a Mine)"),
        (a_hook_inside, "model.layers.0.self_attn.q_proj (a hook)"),
        (a_function_for_a_table, "model.rotary_emb (no module)"),
        (one_layer_twice, "model.layers.1.self_attn (another layer_idx)"),
        (
            another_configuration,
            "model.rotary_emb (another attention_bias in its configuration) and 3 more",
        ),
        (
            other_scores,
            "model.layers.0.self_attn (scores by 'again', which is not of transformers)",
        ),
    ],
)
def test_a_model_that_is_not_as_its_configuration_makes_it_is_told(change: Any, why: str) -> None:
    change(model := small_llama())
    (rotation,) = of_transformers(model).values()
    verb = "are" if why.endswith("more") else "is"
    assert rotation.beside[0].words == (
        f"In the model given, {why} {verb} not as transformers makes it from its configuration, "
        "which is what is said here."
    )


def no_norm(model: Any) -> None:
    model.model.layers[0].self_attn.q_norm = torch.nn.Identity()


def a_function_for_a_norm(model: Any) -> None:
    del model.model.layers[0].self_attn.k_norm
    model.model.layers[0].self_attn.k_norm = lambda x: x


def a_halved_table(model: Any) -> None:
    model.roformer.encoder.embed_positions.weight.data *= 0.5


def other_types(model: Any) -> None:
    model.model.config = copy.deepcopy(model.config)
    model.model.config.layer_types = ["full_attention"] * 2


@pytest.mark.parametrize(
    ("family", "change", "why"),
    [
        ("qwen3", no_norm, "model.layers.0.self_attn.q_norm (an Identity)"),
        ("qwen3", a_function_for_a_norm, "model.layers.0.self_attn.k_norm (no module)"),
        ("roformer", a_halved_table, "roformer.encoder.embed_positions (other numbers in weight)"),
        ("gemma3_text", other_types, "model (another layer_types in its configuration)"),
    ],
)
def test_what_stands_in_attention_or_holds_it_is_compared(
    family: str, change: Any, why: str
) -> None:
    pytest.importorskip("transformers")
    model = tiny_model(family)
    assert altered(model) == []
    change(model)
    assert altered(model) == [why]


class Adapter(torch.nn.Module):
    """A projection with another of low rank beside it, as adapters of weights make it."""

    def __init__(self, base_layer: Any) -> None:
        super().__init__()
        self.base_layer = base_layer
        self.lora_A = torch.nn.ModuleDict({"default": torch.nn.Linear(base_layer.in_features, 2)})


def adapted(model: Any) -> None:
    layer = model.model.layers[0].self_attn
    layer.q_proj = Adapter(layer.q_proj)


def compiled_in_part(model: Any) -> None:
    model.forward = torch.compile(model.forward)
    model.model.layers[0] = torch.compile(model.model.layers[0])


@pytest.mark.parametrize(
    "change",
    [lambda model: model.apply(by_accelerate), adapted, compiled_in_part, copy.deepcopy],
)
def test_what_changes_no_turn_is_no_change(change: Any) -> None:
    model = small_llama()
    assert altered(change(model) or model) == []


def test_a_class_that_attends_fast_is_no_other_one() -> None:
    model, gptj = tiny_model("gptj"), type_of("gptj", "GPTJFlashAttention2")
    model.transformer.h[0].attn.__class__ = gptj
    assert altered(model) == []
    model.transformer.h[0].attn.__class__ = type("GPTJFlashAttention2", (gptj,), {})
    assert altered(model) == ["transformer.h.0.attn (a GPTJFlashAttention2)"]


def test_a_model_of_16_bits_is_told_that_it_is_asked_in_float32() -> None:
    model = small_llama()
    model.lm_head.half()
    (rotation,) = of_transformers(model).values()
    (finding,) = rotation.beside
    assert finding.gravity == 1
    assert "holds float16, and its code is asked in float32" in finding.words


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_default_type_of_the_session_changes_nothing(dtype: torch.dtype) -> None:
    config = config_of("llama", "LlamaConfig")
    (wanted,) = of_transformers(config).values()
    torch.set_default_dtype(dtype)
    try:
        (rotation,) = of_transformers(config).values()
        assert torch.get_default_dtype() == dtype
        report = rotation.identify()
        assert altered(small_llama()) == []
    finally:
        torch.set_default_dtype(torch.float32)
    assert rotation.beside == wanted.beside
    assert report.to_json() == wanted.identify().to_json()


def test_a_configuration_of_ones_own_is_taken_for_what_it_is_made_of() -> None:
    theirs = small_llama().config
    mine = type("MyConfig", (type(theirs),), {"model_type": "my_llama"})(**theirs.to_dict())
    assert list(of_transformers(mine)) == ["LlamaModel"]
    assert type(mine).__name__ == "MyConfig"


def test_a_class_of_ones_own_is_compared_with_theirs() -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")

    class MyAttention(llama.LlamaAttention):
        pass

    class MyLlama(llama.LlamaForCausalLM):
        def __init__(self, config: Any, more: int) -> None:
            super().__init__(config)
            self.model.layers[more].self_attn = MyAttention(config, more)

    class LlamaAttentionLinearBias(llama.LlamaAttention):
        pass

    model = MyLlama(small_llama().config, 1)
    assert altered(model) == ["MyLlama (a MyLlama)", "model.layers.1.self_attn (a MyAttention)"]
    model.model.layers[1].self_attn = LlamaAttentionLinearBias(model.config, 1)
    assert altered(model)[1:] == ["model.layers.1.self_attn (a LlamaAttentionLinearBias)"]
    assert altered(torch.compile(model)) == altered(model)
    assert altered(torch.compile(small_llama())) == []
    (rotation,) = of_transformers(Holder(model)).values()
    assert "the model was not looked at" in rotation.beside[0].words


class Holder(torch.nn.Module):
    """A module that has a configuration, and is none of transformers."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.config = model.config


@pytest.mark.parametrize(
    "family", ["llama", "gemma3_text", "gpt_neox", "deepseek_v3", "gptj", "cohere2"]
)
def test_a_model_as_its_configuration_makes_it_is_so(family: str) -> None:
    pytest.importorskip("transformers")
    assert altered(tiny_model(family)) == []


def test_what_transformers_leaves_in_a_model_that_ran_is_no_change() -> None:
    (model := small_llama())(torch.arange(5)[None], output_attentions=True)
    model.config.attention_dropout = model.model.layers[0].self_attn.attention_dropout = 0.1
    for module in model.modules():  # as FSDP does, to gather weights
        module.register_forward_pre_hook(torch.nn.Module.named_parameters)
    assert altered(model) == []
    a_hook(model)
    assert altered(model) == ["model.rotary_emb (a hook)"]


def test_summaries_that_are_turned_by_a_count_of_their_own_are_found() -> None:
    pytest.importorskip("transformers")
    assert examine(tiny_model("deepseek_v4")).errors["shift"] > 0.1
    single = tiny_model("deepseek_v4", layer_types=["sliding_attention"] * 2)
    assert examine(single).findings == ()


def test_all_tables_of_a_module_that_are_others_are_named() -> None:
    pytest.importorskip("transformers")
    model = tiny_model("gemma3_text", layer_types=["sliding_attention", "full_attention"])
    one = model.model.rotary_emb.sliding_attention_inv_freq
    other = model.model.rotary_emb.full_attention_inv_freq
    kept = one.clone()
    one.copy_(other)
    other.copy_(kept)
    both = "full_attention_inv_freq and sliding_attention_inv_freq"
    assert altered(model) == [f"model.rotary_emb (other numbers in {both})"]


def test_numbers_of_layers_that_turn_nothing_are_not_compared() -> None:
    pytest.importorskip("transformers")
    (found,) = altered(tiny_model("minimax").bfloat16()) or []
    assert found == "model.rotary_emb (other numbers in inv_freq)"


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_layers_that_part_far_out_are_entries_of_their_own(kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    more: dict[str, Any] = {"dynamic": {"factor": 4.0}}.get(kind) or {
        "factor": 4.0, "original_max_position_embeddings": 2048, "attention_factor": 1.0,
        "short_factor": [1.0] * 32, "long_factor": [4.0] * 32,
    }  # fmt: skip
    config = transformers.Gemma3TextConfig(
        hidden_size=128, num_attention_heads=2, num_key_value_heads=2, head_dim=64,
        num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"],
        max_position_embeddings=2048 if kind == "dynamic" else 8192,
        rope_parameters={
            "full_attention": {"rope_type": kind, "rope_theta": 1e4, **more},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    )  # fmt: skip
    reports = {name: one.identify() for name, one in of_transformers(config).items()}
    assert len(reports) == 2
    healthy = reports["Gemma3TextModel[sliding_attention]"]
    assert all(f.gravity == 1 for f in healthy.findings)
    assert max(f.gravity for f in reports["Gemma3TextModel[full_attention]"].findings) > 1


def test_position_ids_that_are_taken_and_ignored_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    forward = llama.LlamaRotaryEmbedding.forward

    def counting(self: Any, x: Any, position_ids: torch.Tensor) -> Any:
        return forward(self, x, torch.arange(position_ids.shape[1]).expand_as(position_ids))

    monkeypatch.setattr(llama.LlamaRotaryEmbedding, "forward", counting)
    (rotation,) = of_transformers(small_llama().config).values()
    assert "counts tokens whatever these are" in str(rotation.identify())


def test_layers_that_rest_beside_others_are_counted() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.SmolLM3Config(
        no_rope_layers=[1, 0, 1], hidden_size=64, num_attention_heads=4, num_hidden_layers=3
    )
    (rotation,) = of_transformers(config).values()
    (finding,) = rotation.beside
    assert finding.words == "1 of 3 such modules turn nothing, such as layers.1.self_attn."


@pytest.mark.parametrize("family", ["llama", "smollm3"])
def test_a_document_mask_that_is_dropped_is_told(family: str) -> None:
    pytest.importorskip("transformers")
    model = tiny_model(family)
    forward = model.forward

    def dropping(*args: Any, attention_mask: Any = None, **kwargs: Any) -> Any:
        if attention_mask is not None and attention_mask.ndim == 4:
            attention_mask = None
        return forward(*args, attention_mask=attention_mask, **kwargs)

    model.forward = dropping
    (finding,) = examine(model).findings
    assert _says(finding.words, "packed")


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize("cached", [True, False])
def test_a_document_mask_that_is_dropped_in_one_kind_of_call_is_told(
    cached: bool, family: str
) -> None:
    pytest.importorskip("transformers")
    model = tiny_model(family)
    forward = model.forward
    assert examine(model).errors["packed"] < 1e-4

    def dropping(*args: Any, attention_mask: Any = None, use_cache: Any, **kwargs: Any) -> Any:
        if attention_mask is not None and attention_mask.ndim == 4 and use_cache is cached:
            attention_mask = None
        return forward(*args, attention_mask=attention_mask, use_cache=use_cache, **kwargs)

    model.forward = partial(dropping, use_cache=True)
    assert any(_says(finding.words, "packed") for finding in examine(model).findings)


@pytest.mark.parametrize("family", ["gemma3", "olmo3", "cohere2"])
@pytest.mark.parametrize("maker", ["create_causal_mask", "create_sliding_window_causal_mask"])
def test_a_mask_that_one_kind_of_layers_drops_is_told(
    family: str, maker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    make = getattr(module, maker)

    def dropping(*args: Any, attention_mask: Any = None, **kwargs: Any) -> Any:
        if attention_mask is not None and attention_mask.ndim == 4:
            attention_mask = None
        return make(*args, attention_mask=attention_mask, **kwargs)

    kinds = ["sliding_attention", "full_attention"]
    model = tiny_model("gemma3_text" if family == "gemma3" else family, layer_types=kinds)
    assert examine(model).findings == ()
    monkeypatch.setattr(module, maker, dropping)
    assert any(_says(finding.words, "packed") for finding in examine(model).findings)


def test_rounding_under_autocast_is_told_as_such() -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama")
    with torch.autocast("cpu", torch.bfloat16):
        found = examine(model).findings
    assert {f.gravity for f in found} == {1}


@pytest.mark.parametrize("family", ["mistral", "gemma3_text", "gpt_oss"])
def test_a_window_shorter_than_a_document_is_no_fault(family: str) -> None:
    pytest.importorskip("transformers")
    assert examine(tiny_model(family, sliding_window=8)).findings == ()


def test_rounding_is_told_as_such_of_a_wrapped_model_too() -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama").bfloat16()
    before = {name: t.clone() for name, t in model.state_dict().items()}
    table, forward = model.model.rotary_emb.inv_freq.clone(), model.forward
    model.forward = lambda *args, **kwargs: forward(*args, **kwargs)
    assert {f.gravity for f in examine(model).findings} == {1}
    assert all(
        torch.equal(t, before[name]) and t.dtype == before[name].dtype
        for name, t in model.state_dict().items()
    )
    assert torch.equal(model.model.rotary_emb.inv_freq, table)


# ---- decoding, documents, gains by any name, and what a report leaves out ------------------------


def decoding(change: Any) -> Any:
    """Return a tiny Llama whose arguments are changed while it goes on from a cache."""
    model = tiny_model("llama")
    forward = model.model.forward

    def changed(*args: Any, past_key_values: Any = None, **kwargs: Any) -> Any:
        if past_key_values is not None and past_key_values.get_seq_length():
            kwargs |= change(kwargs)
        return forward(*args, past_key_values=past_key_values, **kwargs)

    model.model.forward = changed
    return model


@pytest.mark.parametrize(
    "change",
    [
        lambda given: {"position_ids": None},
        lambda given: {"attention_mask": None},
        lambda given: {"position_ids": given["position_ids"] - given["position_ids"][:, :1]},
    ],
    ids=["ids", "mask", "start"],
)
def test_what_is_lost_while_a_padded_row_is_decoded_is_told(change: Any) -> None:
    pytest.importorskip("transformers")
    found = examine(decoding(lambda given: change(given) if _given(given) else {})).findings
    assert any(f.gravity == 3 and _says(f.words, "padded") for f in found)
    assert examine(decoding(lambda given: {})).findings == ()


def _given(kwargs: Any) -> bool:
    return kwargs.get("position_ids") is not None and kwargs.get("attention_mask") is not None


def test_a_document_mask_that_a_layer_of_ours_drops_is_told() -> None:
    layer = RotarySelfAttention(64, 4)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(3)
    assert examine(layer).errors["packed"] < 1e-4
    forward = layer.forward
    layer.forward = lambda x, attn_mask=None, **kwargs: forward(x, **kwargs)  # type: ignore[method-assign]
    assert any(_says(f.words, "packed") for f in examine(layer).findings)


class Scaled(torch.nn.Module):
    """Gains and nothing else, by a name that tells nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.g = torch.nn.Parameter(torch.ones(16))


def test_gains_by_any_name_are_varied(monkeypatch: pytest.MonkeyPatch) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    model = tiny_model("llama")
    running: dict[str, Any] = {}
    for layer in model.model.layers:
        layer.self_attn.inner = Scaled()
        layer.self_attn.__class__ = type("MHA", (llama.LlamaAttention,), {})
        layer.self_attn.register_forward_pre_hook(lambda own, given: running.update(own=own))
    apply = llama.apply_rotary_pos_emb

    def after(*args: Any, **kwargs: Any) -> Any:
        q, k = apply(*args, **kwargs)
        return q * running["own"].inner.g, k

    monkeypatch.setattr(llama, "apply_rotary_pos_emb", after)
    (finding,) = examine(model).findings
    assert finding.words.startswith(CHECKS["shift"].format(shift=499) + " with gains")


def test_weights_are_not_converted_by_a_part_of_what_turns() -> None:
    transformers = pytest.importorskip("transformers")
    long = {"rope_type": "longrope", "rope_theta": 1e4, "long_factor": [4.0] * 8}
    sizes = {"original_max_position_embeddings": 4096, "max_position_embeddings": 16384}
    sizes |= {
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 1,
        "pad_token_id": 0,
    }

    def ask(model: Any) -> Any:
        (rotation,) = of_transformers(model).values()
        return rotation.identify()

    one, two = (
        ask(transformers.Phi3Config(rope_parameters=long | {"short_factor": [f] * 8}, **sizes))
        for f in (1.0, 2.0)
    )
    assert one.differs_from(two).convert is None
    assert "depends on what else is in the call" in one.differs_from(two).words[0]
    altered_one = tiny_model("llama")
    altered_one.model.rotary_emb.inv_freq.mul_(0.5)
    difference = ask(altered_one).differs_from(ask(tiny_model("llama")))
    assert difference.convert is None
    assert "is not as transformers makes it" in difference.words[0]


def test_gains_after_the_turn_are_told_of_a_family() -> None:
    pytest.importorskip("transformers")
    for family, told in (("hunyuan_v1_dense", True), ("qwen3", False), ("nanochat", False)):
        (rotation,) = of_transformers(tiny_model(family)).values()
        found = [f for f in rotation.beside if "norm with learned gains stands after" in f.words]
        assert len(found) == told


def test_a_method_of_its_own_and_a_model_of_its_own_are_told() -> None:
    pytest.importorskip("transformers")
    model = tiny_model("gptj")
    attention = model.transformer.h[0].attn
    embed = attention._get_embed_positions
    attention._get_embed_positions = lambda ids: embed(ids * 0)
    assert altered(model) == ["transformer.h.0.attn (a _get_embed_positions of its own)"]
    own = torch.nn.Module()
    own.config = tiny_model("llama").config
    (rotation,) = of_transformers(own).values()
    (finding,) = rotation.beside
    assert (finding.gravity, finding.partial) == (2, True)
    assert finding.words.endswith("the model was not looked at.")
