"""Rotations of transformers models, recorded without weights, and whole layers and models examined.

Without transformers, most of these tests skip.
"""

import copy
import importlib
import itertools
import random
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from atlas import examine, of_transformers, public, tiny_model
from atlas.layers import CHANGING, CHECKS, Examination, _unrotated
from atlas.recording import record_cells, record_model, rope_fault
from rope_minimal import RotaryEmbedding, RotarySelfAttention, apply_rope, rope_table
from ropebook import bugs
from ropescope import Report, identify
from ropescope.adapters import Rotation
from ropescope.configuration import load_rules

SMALL = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2}


def config_of(family: str, name: str, **more: Any) -> Any:
    """Return a family's own configuration, of few layers."""
    pytest.importorskip("transformers")
    module = importlib.import_module(f"transformers.models.{family}.configuration_{family}")
    return getattr(module, name)(**({"num_hidden_layers": 2} | more))


def modeling(family: str) -> Any:
    return pytest.importorskip(f"transformers.models.{family}.modeling_{family}")


def the_rotation(model: Any) -> Rotation:
    (rotation,) = of_transformers(model).values()
    return rotation


# ---- reports on models ---------------------------------------------------------------------------

TEXT = [
    # family, configuration: layout, place, direction, width, base, rescaling, end of the table
    ("llama", "LlamaConfig", "half-split", "all", 1, 128, 1e4, None, None),
    ("gpt_neox", "GPTNeoXConfig", "half-split", "first", 1, 24, 1e4, None, None),
    ("glm", "GlmConfig", "interleaved", "first", 1, 64, 1e4, None, None),
    ("cohere", "CohereConfig", "interleaved", "all", 1, 128, 5e5, None, None),
    ("nanochat", "NanoChatConfig", "half-split", "all", -1, 128, 1e4, None, None),
    ("gpt_oss", "GptOssConfig", "half-split", "all", 1, 64, 1.5e5, "yarn", None),
    ("gptj", "GPTJConfig", "interleaved", "first", 1, 64, 1e4, None, 2047),
    ("deepseek_v3", "DeepseekV3Config", "read interleaved, written half-split", "last", 1, 64, 1e4,
     None, None),
]  # fmt: skip


@pytest.mark.parametrize("row", TEXT, ids=[row[0] for row in TEXT])
def test_families_of_transformers(row: Any) -> None:
    family, config, *wanted, rescaling, end = row
    more = {"n_routed_experts": 8} if family == "deepseek_v3" else {}
    report = the_rotation(config_of(family, config, **more)).identify()
    found = [report.layout, report.place, report.direction, report.width, report.base]
    assert found == wanted
    assert (report.rescaling and report.rescaling[0], report.table_end) == (rescaling, end)
    assert report.is_rotation
    assert severities(report.findings) <= {1, 2}, str(report)


def severities(findings: Any) -> set[int]:
    return {finding.severity for finding in findings}


def test_gpt_oss_carries_yarns_factor_and_its_parameters() -> None:
    """Refuted if gpt-oss' rotation has another factor than YaRN's, or other parameters."""
    report = the_rotation(config_of("gpt_oss", "GptOssConfig")).identify()
    assert report.attention_factor == pytest.approx(0.1 * np.log(32) + 1, rel=1e-7)
    assert report.rescaling == (
        "yarn",
        {"factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False},
    )


def test_a_rotation_is_the_familys_own_function_and_table() -> None:
    config, module = config_of("llama", "LlamaConfig"), modeling("llama")
    table = module.LlamaRotaryEmbedding(config)
    x = torch.randn(3, 4, 128, generator=torch.Generator().manual_seed(0))
    at = torch.tensor([0, 7, 7, 900])
    wanted = module.apply_rotary_pos_emb(x[:, None], x[:, None], *table(x, at[None]))[0][:, 0]
    assert torch.equal(the_rotation(config).rotate(x, at), wanted)


@pytest.mark.drawn(2)
def test_gemma_3_has_two_bases() -> None:
    rotations = of_transformers(config_of("gemma3", "Gemma3TextConfig", num_hidden_layers=6))
    bases = {name: rotation.identify().base for name, rotation in rotations.items()}
    assert bases == {
        "Gemma3TextModel[sliding_attention]": 1e4,
        "Gemma3TextModel[full_attention]": 1e6,
    }


SECTIONS = {
    ("qwen2_vl", "Qwen2VLTextConfig"): "in blocks: 16 of axis 0, 24 of axis 1, 24 of axis 2",
    ("qwen3_vl", "Qwen3VLTextConfig"): "interleaved, axes 0, 1, 2 by turns: 24 of axis 0, 20 of "
    "axis 1, 20 of axis 2",
    ("ernie4_5_vl_moe", "Ernie4_5_VLMoeTextConfig"): "interleaved, axes 1, 2 by turns: 22 of axis "
    "1, 22 of axis 2, 20 of axis 0",
}


def test_how_sections_are_dealt_out_to_time_row_and_column() -> None:
    reports = [the_rotation(config_of(*names)).identify() for names in SECTIONS]
    assert [report.arrangement for report in reports] == list(SECTIONS.values())
    for one, two in itertools.permutations(reports, 2):
        difference = one.differs_from(two)
        assert f"axes {one.arrangement}; there {two.arrangement}." in str(difference)
        assert difference.convert is None


@pytest.mark.drawn(2)
def test_an_image_has_two_axes() -> None:
    parts = {"text_config": {"num_hidden_layers": 2}, "vision_config": {"depth": 2}}
    _, image = of_transformers(config_of("qwen2_vl", "Qwen2VLConfig", **parts)).values()
    report = image.identify()
    assert (report.axes, report.base, report.width) == (2, 1e4, 80)
    assert report.arrangement == "in blocks: 20 of axis 0, 20 of axis 1"


@pytest.mark.drawn(2)
@pytest.mark.parametrize("heads", [5, 16])  # as many as positions of a run
def test_an_indexer_has_a_rotation_of_its_own(heads: int) -> None:
    config = config_of("axk2", "AXK2Config", n_routed_experts=8, index_n_heads=heads)
    rotations = of_transformers(config)
    main, indexer = (
        rotations[f"AXK2Model[layers.0.self_attn{part}]"].identify() for part in ("", ".indexer")
    )
    assert (main.layout, main.place) == ("read interleaved, written half-split", "last")
    assert (indexer.layout, indexer.place, indexer.width) == ("half-split", "first", 32)
    assert indexer.findings == ()


def test_layers_with_the_same_queries_are_one_record() -> None:
    (record,) = record_model(modeling("llama").LlamaModel, config_of("llama", "LlamaConfig"))
    assert len(record.modules) == 2
    config = config_of("smollm3", "SmolLM3Config", num_hidden_layers=8)
    records = record_model(modeling("smollm3").SmolLM3Model, config)
    rotated = {name: one.rotated for one in records for name in one.modules}
    assert [rotated[f"layers.{i}.self_attn"] for i in range(8)] == [True, True, True, False] * 2
    (finding,) = the_rotation(config).more
    assert "2 of 8 such modules rotate nothing, such as layers.3.self_attn." in str(finding)


def test_layers_that_differ_far_out_only_are_entries_of_their_own() -> None:
    kinds = {"rope_theta": 1e4, "rope_type": "default"}
    config = config_of(
        "gemma3", "Gemma3TextConfig", hidden_size=128, num_attention_heads=2, head_dim=64,
        num_key_value_heads=2, layer_types=["sliding_attention", "full_attention"],
        max_position_embeddings=2048,
        rope_parameters={
            "full_attention": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0},
            "sliding_attention": kinds,
        },
    )  # fmt: skip
    reports = {name: one.identify() for name, one in of_transformers(config).items()}
    assert severities(reports["Gemma3TextModel[sliding_attention]"].findings) <= {1}
    assert severities(reports["Gemma3TextModel[full_attention]"].findings) - {1}


def test_a_model_that_counts_tokens_itself_is_run_with_its_positions_in_order() -> None:
    """The depth decoder of CSM takes positions and ignores them; RoFormer takes none."""
    config = config_of("csm", "CsmDepthDecoderConfig")
    (record,) = record_model(modeling("csm").CsmDepthDecoderModel, config)
    report = Rotation(record.rotate, record.head_dim, 64).identify()
    assert (report.layout, report.base, record.sizes) == ("half-split", 5e5, (512,))
    assert record.ignores_ids
    assert "counts tokens instead" in str(the_rotation(config).more)
    most = 256
    roformer = config_of(
        "roformer", "RoFormerConfig", hidden_size=64, embedding_size=64, num_attention_heads=2,
        vocab_size=9, intermediate_size=8, max_position_embeddings=most,
    )  # fmt: skip
    assert the_rotation(roformer).identify().table_end == most - 1


@pytest.mark.parametrize(
    ("family", "model", "config", "more", "wanted"),
    [
        ("esm", "EsmModel", "EsmConfig",
         {"position_embedding_type": "rotary", "vocab_size": 33, "pad_token_id": 1},
         {"query_factor": 0.125}),
        ("clvp", "ClvpEncoder", "ClvpEncoderConfig", {},
         {"values_rotated": True}),
        ("qwen3", "Qwen3Model", "Qwen3Config", {}, {"norm": "before", "norm_weights": True}),
        ("hunyuan_v1_dense", "HunYuanDenseV1Model", "HunYuanDenseV1Config", {"head_dim": 128},
         {"norm": "after", "norm_weights": True}),
        ("nanochat", "NanoChatModel", "NanoChatConfig", {},
         {"norm": "after", "norm_weights": False}),
        # takes embeddings, and its norms are identities
        ("qwen3_omni_moe", "Qwen3OmniMoeCode2WavTransformerModel", "Qwen3OmniMoeCode2WavConfig", {},
         {"norm": None}),
    ],
)  # fmt: skip
def test_what_a_record_says_beside_the_rotation(
    family: str, model: str, config: str, more: Any, wanted: dict[str, Any]
) -> None:
    made = config_of(family, config)
    for name, value in more.items():
        setattr(made, name, value)
    (record,) = record_model(getattr(modeling(family), model), made)
    plain = {"rotated": True, "norm": None, "values_rotated": False}
    assert {name: getattr(record, name) for name in plain | wanted} == plain | wanted


@pytest.mark.drawn(2)
def test_a_table_of_three_axes_is_given_three() -> None:
    (record,) = record_cells(config_of("minimax_m3_vl", "MiniMaxM3VLVisionConfig"))
    report = Rotation(record.rotate, record.head_dim, (64,) * 3).identify()
    assert (report.axes, report.width, report.head_dim) == (3, 78, 80)
    assert (report.base, report.layout) == (1e4, "half-split")
    assert (report.inv_freq > 0).sum(axis=0).tolist() == [13, 13, 13]


def test_llama_becomes_cohere_and_nanochat() -> None:
    """Refuted if Llama's weights, converted as the report says, score otherwise in nanochat."""
    one, two = (
        the_rotation(config_of(family, name))
        for family, name in (("llama", "LlamaConfig"), ("nanochat", "NanoChatConfig"))
    )
    difference = one.identify().differs_from(two.identify())
    assert "Negate the second row of 64 of 64 pairs" in str(difference)
    assert difference.convert is not None
    torch.manual_seed(0)
    q, k = torch.randn(2, 128, 3)
    at = torch.tensor([5, 9, 70])

    def scores(rotate: Any, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return rotate(q.T[None], at) @ rotate(k.T[None], at).mT

    wanted = scores(one.rotate, q, k)
    moved = scores(two.rotate, difference.convert(q, 1), difference.convert(k, 1))
    assert torch.allclose(moved, wanted, atol=1e-4)
    assert not torch.allclose(scores(two.rotate, q, k), wanted, atol=1)


@pytest.mark.parametrize(("base", "other"), [(1e4, 5e5), (5e5, 5e5), (1e4, 1e4), (5e5, 1e4)])
def test_llama_converts_to_cohere_once_both_have_one_base(base: float, other: float) -> None:
    """Refuted if rows lead from Llama's own code to Cohere's where bases differ, or do not where
    they are one.

    Bases of both classes' defaults, of Llama 2 and 3, and of Aya 23.
    """
    llama, cohere = (
        config_of(family, name, rope_parameters={"rope_type": "default", "rope_theta": theta})
        for family, name, theta in (
            ("llama", "LlamaConfig", base),
            ("cohere", "CohereConfig", other),
        )
    )
    one, two = the_rotation(llama), the_rotation(cohere)
    difference = one.identify().differs_from(two.identify())
    assert "from half-split (all) to interleaved (all)" in str(difference)
    assert ("of the configuration" in str(difference)) == (base != other)
    assert (difference.convert is None) == (base != other)
    q, k = torch.randn(2, 128, 3, generator=torch.Generator().manual_seed(0))
    order = torch.arange(128).view(2, 64).T.flatten()  # halves to neighbours
    at = torch.tensor([5, 9, 70])
    wanted = one.rotate(q.T[None], at) @ one.rotate(k.T[None], at).mT
    moved = two.rotate(q[order].T[None], at) @ two.rotate(k[order].T[None], at).mT
    assert torch.allclose(moved, wanted, atol=1e-3) == (base == other)


def test_a_factor_on_queries_is_that_of_the_whole_model_and_is_not_converted() -> None:
    """LongCat's is the root of hidden size over rank, though its model has few heads here."""
    config = config_of("longcat_flash", "LongcatFlashConfig")
    config.hidden_size = 3072
    with torch.device("meta"):
        factor = modeling("longcat_flash").LongcatFlashMLA(config, 0).mla_scale_q_lora
    rotation = the_rotation(config)
    assert f"Queries are {factor:.6g} times as long as keys" in str(rotation.more)
    scaled = rotation.identify()
    plain = identify(rotation.rotate, rotation.head_dim, dtype=torch.float32)
    assert scaled.differs_from(plain).convert is None
    assert plain.differs_from(plain).convert is not None
    assert scaled.differs_from(scaled).convert is not None  # the same on both sides


# ---- keys that differ from queries ---------------------------------------------------------------


def interleaved(x: Any, cos: Any, sin: Any) -> Any:
    a, b, c, s = x[..., 0::2], x[..., 1::2], cos[:, None, :, :32], sin[:, None, :, :32]
    return torch.stack((a * c - b * s, b * c + a * s), dim=-1).flatten(-2)


def half_split(x: Any, cos: Any, sin: Any) -> Any:
    half = torch.cat((-x[..., 32:], x[..., :32]), dim=-1)
    return x * cos[:, None] + half * sin[:, None]


def moved(way: int) -> Any:
    """Rotate by the next position, or by the one before."""
    c, s = (f(1e4 ** -(torch.arange(64) % 32 / 32)) for f in (torch.cos, torch.sin))
    return lambda x, cos, sin: half_split(x, cos * c - way * sin * s, sin * c + way * cos * s)


def longer(way: float, x: Any, cos: Any, sin: Any) -> Any:
    """Scale as xPos does: queries by 1.001 to the power of the position, keys by one over it."""
    at = torch.atan2(sin, cos)[:, None, :, 31:32] * 1e4 ** (31 / 32)  # from the slowest pair
    return 1.001 ** (way * at) * half_split(x, cos, sin)


def twice(x: Any, cos: Any, sin: Any) -> Any:
    return half_split(half_split(x, cos, sin), cos, sin)


KEYS = "Keys do not depend on the position as queries do: this report is on queries."


@pytest.mark.parametrize(
    ("keys", "queries", "severity", "says"),
    [
        (lambda x, cos, sin: half_split(x, cos, -sin), half_split, 3, KEYS),
        (twice, half_split, 3, KEYS),
        (lambda x, *_: x, half_split, 3, KEYS),
        (interleaved, half_split, 3, KEYS),
        (half_split, lambda x, *_: x, 3, "Keys depend on the position and queries do not."),
        (moved(1), half_split, 2, "one position further than queries: every distance is off by"),
        (moved(-1), half_split, 2, "one position less far than queries"),
        (partial(longer, -1.0), partial(longer, 1.0), 2, KEYS),
        (half_split, lambda *given: 1.2 * half_split(*given), 1, "Queries are 1.2 times as long"),
        (lambda *given: 1.2 * half_split(*given), half_split, 1, "Keys are 1.2 times as long as"),
        (half_split, half_split, None, ""),
    ],
)  # fmt: skip
def test_keys_are_compared_with_queries_by_the_scores_that_they_make(
    keys: Any, queries: Any, severity: int | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    llama = modeling("llama")
    both = lambda q, k, cos, sin: (queries(q, cos, sin), keys(k, cos, sin))  # noqa: E731
    monkeypatch.setattr(llama, "apply_rotary_pos_emb", both)
    rotation = the_rotation(llama.LlamaConfig(**SMALL))
    assert severities(rotation.more) == ({severity} if severity else set())
    assert says in str(rotation.more)
    report = rotation.identify()
    assert (report.attention_factor or 1.0) == pytest.approx(1.0, rel=1e-5) or "xPos" in says
    plain = identify(lambda x, at: apply_rope(x, *rope_table(at, 64)), 64, dtype=torch.float32)
    assert (plain.differs_from(report).convert is None) == (severity is not None)


@pytest.mark.parametrize("counted", [True, False])
def test_keys_that_differ_far_out_only_have_a_finding(
    counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys counted in their row, or at positions rounded to bfloat16: five of them are right."""
    llama = modeling("llama")
    apply, forward, tables = llama.apply_rotary_pos_emb, llama.LlamaRotaryEmbedding.forward, []

    def table(self: Any, x: torch.Tensor, position_ids: torch.Tensor) -> Any:
        slots = torch.arange(position_ids.shape[1])[None].expand_as(position_ids)
        tables[:] = forward(self, x, slots if counted else position_ids.bfloat16().long())
        return forward(self, x, position_ids)

    def wrong(q: Any, k: Any, cos: Any, sin: Any) -> Any:
        return apply(q, k, cos, sin)[0], apply(q, k, *tables)[1]

    monkeypatch.setattr(llama.LlamaRotaryEmbedding, "forward", table)
    monkeypatch.setattr(llama, "apply_rotary_pos_emb", wrong)
    (finding,) = the_rotation(llama.LlamaConfig(**SMALL)).more
    assert finding.severity == 3
    assert KEYS in str(finding)


@pytest.mark.parametrize("family", ["deepseek_v3", "gemma3_text", "cohere2", "mistral4"])
def test_right_keys_have_no_finding(family: str) -> None:
    """Keys of latent attention are no multiple of queries; Mistral 4's queries grow far out."""
    transformers = pytest.importorskip("transformers")
    grows = family == "mistral4"
    config = transformers.AutoConfig.for_model(family) if grows else tiny_model(family).config
    for rotation in of_transformers(config).values():
        assert severities(rotation.more) <= {1}


def test_norm_weights_after_the_rotation_have_a_finding() -> None:
    pytest.importorskip("transformers")
    for family, after in (("hunyuan_v1_dense", True), ("qwen3", False), ("nanochat", False)):
        found = str(the_rotation(tiny_model(family).config).more)
        assert ("A norm with learned weights follows the rotation" in found) == after


# ---- what is not probed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "name", "words"),
    [
        ("hunyuan_v1_dense", "HunYuanDenseV1Config", "(its configuration leaves head_dim unset)"),
        ("jetmoe", "JetMoeConfig", "queries are zero: a parameter stands before the score"),
    ],
)
def test_what_keeps_a_model_from_running_is_reported(family: str, name: str, words: str) -> None:
    rotations = of_transformers(config_of(family, name))
    report = next(r for part, r in rotations.items() if part.endswith("Model")).identify()
    (finding,) = report.findings
    assert finding.severity == 2
    assert str(finding).startswith("WARNING: Not probed: ")
    assert words in str(finding)
    assert Report.from_json(report.to_json()).to_json() == report.to_json()
    assert report.differs_from(report).convert is None


@pytest.mark.parametrize("kind", ["linear", "llama3", "dynamic"])
def test_a_legacy_rope_scaling_written_into_a_loaded_configuration_loses_the_base(
    kind: str,
) -> None:
    config = config_of("llama", "LlamaConfig", **SMALL)
    with pytest.warns(FutureWarning):
        config.rope_scaling = {"rope_type": kind, "factor": 2.0, "low_freq_factor": 1.0,
                               "high_freq_factor": 4.0}  # fmt: skip
    (finding,) = the_rotation(config).identify().findings
    assert "rope_theta in rope_parameters must be a positive number" in str(finding)
    assert "a legacy rope_scaling is assigned to a loaded configuration" in str(finding)


@pytest.mark.parametrize(
    ("parameters", "fault"),
    [
        ({}, None),
        ({"rope_type": "default", "rope_theta": 1e4}, None),
        ({"rope_type": "proportional", "rope_theta": 1e4, "factor": None}, None),
        ({"a": {"rope_theta": 1e4}, "b": {"rope_theta": 1e6, "rope_type": "linear", "factor": 8}},
         None),
        ({"rope_type": "linear", "factor": 2.0}, "rope_theta in rope_parameters must"),
        ({"a": {"rope_theta": 1e4}, "b": {"rope_theta": None}}, "number (the base is lost"),
        ({"rope_theta": "10000"}, "got '10000'"),
        ({"rope_theta": -1.0}, "got -1.0"),
        ({"rope_type": "yarn", "rope_theta": 1e4}, "factor in rope_parameters must be a positive "
         "number for rope_type 'yarn', got None"),
        ({"rope_type": "linear", "rope_theta": 1e4, "factor": 0.0}, "got 0.0"),
        ({"rope_type": "dynamic", "rope_theta": 1e4, "factor": float("nan")}, "got nan"),
        ({"rope_type": "llama3", "rope_theta": 1e4, "factor": "8"}, "got '8'"),
    ],
)  # fmt: skip
def test_rope_parameters_without_a_base_or_a_factor_are_named(
    parameters: dict[str, Any], fault: str | None
) -> None:
    found = rope_fault(SimpleNamespace(rope_parameters=parameters))
    assert found is None if fault is None else fault in str(found)


def test_what_does_not_rotate_has_no_entry_and_what_may_says_so() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    for config in (
        transformers.BertConfig(),
        transformers.ViTConfig(),
        transformers.FalconConfig(alibi=True, **sizes),
        transformers.SmolLM3Config(no_rope_layers=[0, 0], pad_token_id=0, **sizes),
    ):
        assert of_transformers(config) == {}, config.model_type
    (rotation,) = of_transformers(transformers.AutoConfig.for_model("dinov3_vit")).values()
    assert "it may rotate" in str(rotation.identify())


def test_a_model_is_taken_for_its_configuration_and_says_so() -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama")
    wanted = the_rotation(model.config).identify()
    model.model.rotary_emb.inv_freq.mul_(0.5)
    model.lm_head.half()
    rotation = the_rotation(model)
    assert rotation.identify().base == wanted.base == 1e4
    assert "changes to the model given and the rounding of its float16 are" in str(rotation.more)


def test_the_default_dtype_of_the_session_changes_nothing() -> None:
    config = config_of("llama", "LlamaConfig", **SMALL)
    wanted = the_rotation(config).identify()
    torch.set_default_dtype(torch.bfloat16)
    try:
        report = the_rotation(config).identify()
        assert torch.get_default_dtype() == torch.bfloat16
    finally:
        torch.set_default_dtype(torch.float32)
    assert report.to_json() == wanted.to_json()


def test_a_configuration_of_ones_own_is_taken_for_what_it_derives_from() -> None:
    theirs = config_of("llama", "LlamaConfig", **SMALL)
    mine = type("MyConfig", (type(theirs),), {"model_type": "my_llama"})(**theirs.to_dict())
    assert list(of_transformers(mine)) == ["LlamaModel"]
    assert type(mine).__name__ == "MyConfig"


# ---- whole layers and models ---------------------------------------------------------------------

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


def failed(found: Examination, severity: int | None = None) -> set[str]:
    """Return the checks with a finding, or with one of this severity."""
    return {
        key
        for f in found.findings
        for key in CHECKS
        if f.message.startswith(CHECKS[key].format(shift=found.shift))
        and severity in (None, f.severity)
    }


def layer_of(package: Any, **more: Any) -> Any:
    """Return a layer whose attention is sharp."""
    torch.manual_seed(0)
    layer = package.RotarySelfAttention(64, 2, **more)
    for weight in layer.parameters():
        weight.data.mul_(3)
    return layer


@pytest.mark.parametrize("key", FAILS)
def test_the_bugs_of_a_layer_fail_the_checks_that_they_should(key: str | None) -> None:
    assert {bug.key for bug in bugs.BUGS} == set(FAILS) - {None}
    package = bugs.mutant(next((bug for bug in bugs.BUGS if bug.key == key), None))
    found = examine(layer_of(package.attention, max_seq_len=4096).double())
    assert (set(found.errors), found.refused) == (set(CHECKS), {})
    assert failed(found) == FAILS[key], str(found)


def test_a_layer_is_left_as_it_was() -> None:
    layer = RotarySelfAttention(32, 2, max_seq_len=64).train()
    layer.q_proj.eval()
    before = {name: weight.clone() for name, weight in layer.named_parameters()}
    found = str(examine(layer))
    assert [module.training for module in layer.children()] == [False, True, True, True, True]
    assert layer.training
    assert all(torch.equal(weight, before[name]) for name, weight in layer.named_parameters())
    assert "all positions moved by 499" in found  # which its table is too short for
    assert "not run: ValueError" in found


def in_first_row(self: Any, x: torch.Tensor, *, position_ids: torch.Tensor) -> torch.Tensor:
    return FORWARD(self, x, position_ids=position_ids[:1].expand_as(position_ids))


FORWARD = RotaryEmbedding.forward


def test_what_a_layer_of_this_package_loses_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import rope_minimal

    layer = layer_of(rope_minimal)
    found = examine(layer)
    assert found.findings == ()
    assert max(found.errors[key] for key in CHECKS if key not in CHANGING) < 1e-4
    forward = layer.forward
    layer.forward = lambda x, attn_mask=None, **kwargs: forward(x, **kwargs)
    assert "packed" in failed(examine(layer))
    del layer.forward
    monkeypatch.setattr(RotaryEmbedding, "forward", in_first_row)
    assert failed(examine(layer)) == {"padded"}


def positioned(model: Any, change: Callable[[Any, torch.Tensor], torch.Tensor]) -> Any:
    """Return a model whose table is given other positions."""
    table = model.model.rotary_emb
    forward = table.forward
    table.forward = lambda x, position_ids, *kind: forward(x, change(x, position_ids), *kind)
    return model


def without_rotation(monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    unrotated = lambda q, k, *table, **more: (q, k)  # noqa: E731
    monkeypatch.setattr(modeling(family), "apply_rotary_pos_emb", unrotated)


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        (lambda x, at: at, set()),
        (lambda x, at: at // 2, {"shift"}),
        (lambda x, at: at % 250, {"shift"}),  # a period of round length
        (lambda x, at: at**2, {"shift"}),
        (lambda x, at: at[:1].expand_as(at), {"padded"}),
        (lambda x, at: torch.arange(at.shape[1])[None] if 1 < at.shape[1] < 9 else at, {"cached"}),
    ],
)
def test_positions_that_are_changed_are_found(change: Any, fails: set[str]) -> None:
    pytest.importorskip("transformers")
    assert failed(examine(positioned(tiny_model("llama"), change))) == fails


@pytest.mark.parametrize(
    ("family", "sizes"),
    [
        ("llama", {"num_hidden_layers": 1}),
        ("llama", {"num_hidden_layers": 4}),  # causal layers distinguish orders without positions
        ("smollm3", {"no_rope_layers": [1, 0]}),
        ("gemma3_text", {"layer_types": ["sliding_attention", "full_attention"]}),
    ],
)
def test_a_model_that_has_lost_its_rotation_fails(
    family: str, sizes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    assert failed(examine(tiny_model(family, **sizes))) == set()
    without_rotation(monkeypatch, family.removesuffix("_text"))
    assert "doubled" in failed(examine(tiny_model(family, **sizes)), 3)


def test_position_ids_that_are_dropped_may_be_lost_positions() -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama")
    forward = model.model.forward
    model.model.forward = lambda *args, position_ids=None, **more: forward(*args, **more)
    (finding,) = examine(model).findings
    assert "positions are lost, or `position_ids` do not reach them" in str(finding)


@pytest.mark.parametrize(
    ("family", "values", "switch"),
    [
        ("llama", {}, ""),
        ("mpt", {}, "the lack of rope_parameters"),
        ("smollm3", {"no_rope_layers": [1, 0]}, ""),
        ("smollm3", {"no_rope_layers": [0, 0]}, "no_rope_layers"),
        ("cohere2", {"layer_types": ["sliding_attention", "full_attention"]}, ""),
        ("cohere2", {"layer_types": ["full_attention"] * 2}, "layer_types"),
        ("granite_swa", {"layer_rope_theta": [0, 0]}, "layer_rope_theta"),
        ("granitemoehybrid", {"position_embedding_type": "nope"}, "position_embedding_type"),
        ("falcon", {"alibi": True}, "alibi"),
        ("zamba2", {"use_mem_rope": False}, "use_mem_rope"),
    ],
)
def test_switches_that_leave_all_layers_unrotated(
    family: str, values: dict[str, Any], switch: str
) -> None:
    config = copy.copy(pytest.importorskip("transformers").AutoConfig.for_model(family))
    for name, value in values.items():
        setattr(config, name, value)
    assert _unrotated(config) == switch


@pytest.mark.parametrize(
    ("family", "sizes", "warned", "words"),
    [
        ("mpt", {}, {"doubled"}, "as the lack of rope_parameters may mean"),
        # keys are multiplied by a weight that starts as 0
        ("zaya", {}, {"doubled"}, "does with random norm weights"),
        ("lfm3", {}, {"packed"}, "unless its convolutions do it"),
        ("minimax", {}, {"packed"}, "unless its linear attention do it"),
        ("hrm_text", {}, {"shift"}, "such weights amplify rounding"),  # 16 layers, six times
        ("hrm_text", {"initializer_range": 0.1}, set(), ""),
        ("deepseek_v3", {}, set(), ""),
        ("falcon", {}, set(), ""),
        ("stablelm", {"qk_layernorm": True}, set(), ""),
        ("mistral", {"sliding_window": 8}, set(), ""),
        ("gpt_oss", {"sliding_window": 8}, set(), ""),
    ],
)
def test_models_as_they_are_have_no_errors(
    family: str, sizes: dict[str, Any], warned: set[str], words: str
) -> None:
    pytest.importorskip("transformers")
    found = examine(tiny_model(family, **sizes))
    assert not failed(found, 3), str(found)
    assert warned <= failed(found, 2)
    assert bool(warned) == bool(failed(found))
    assert words in str(found)


@pytest.mark.parametrize("family", ["qwen3_next", "jamba"])
def test_a_recurrent_state_goes_on_by_one_token(family: str) -> None:
    pytest.importorskip("transformers")
    sizes: dict[str, Any] = {"layer_types": ["linear_attention", "full_attention"]}
    sizes = {"attn_layer_period": 2, "attn_layer_offset": 1} if family == "jamba" else sizes
    assert examine(tiny_model(family, **sizes)).errors["cached"] < 1e-3


def test_a_recurrence_that_starts_at_position_0_is_no_broken_rotation() -> None:
    pytest.importorskip("transformers")
    found = examine(tiny_model("recurrent_gemma"))
    assert "shift" in failed(found, 2)
    assert "unless position 0 starts a recurrence: from 1 on, a shift changes nothing" in str(found)


@pytest.mark.drawn(3, among="long")
def test_keys_of_several_tokens_that_are_rotated_by_their_count_fail() -> None:
    pytest.importorskip("transformers")
    assert "shift" in failed(examine(tiny_model("deepseek_v4")), 3)
    single = tiny_model("deepseek_v4", layer_types=["sliding_attention"] * 2)
    assert examine(single).findings == ()


def test_a_model_that_sees_later_tokens_is_distinguished_from_one_that_caches_wrongly() -> None:
    pytest.importorskip("transformers")
    assert failed(examine(tiny_model("roformer")), 3) == set()
    found = examine(tiny_model("roformer", is_decoder=False))
    assert {"later", "cached"} <= failed(found, 3)
    assert "what later tokens change cannot be cached." in str(found)


# ---- norm weights --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "fails"), [("llama", False), ("qwen3", False), ("hunyuan_v1_dense", True)]
)
def test_norm_weights_after_the_rotation_fail(family: str, fails: bool) -> None:
    pytest.importorskip("transformers")
    model = tiny_model(family)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    found = examine(model)
    assert set(found.errors) == set(CHECKS), found.refused
    assert max(v for k, v in found.errors.items() if k not in CHANGING) < 1e-3
    assert bool(found.weighted) == (family != "llama")
    assert failed(found, 3) == ({"shift"} if fails else set())
    assert ("moved by 499 with norm weights that are not 1" in str(found)) == fails
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())


# ---- rounding ------------------------------------------------------------------------------------

BF16, FP16 = torch.bfloat16, torch.float16


@pytest.mark.parametrize("shift", [4001, 100003])
def test_what_float32_rounds_of_a_large_angle_is_no_fault(shift: int) -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama")
    found = examine(model, shift=shift)
    assert found.findings == ()
    assert found.errors["shift"] < min(found.noise[0], 0.1)
    rounded = examine(positioned(model, lambda x, at: at.half().float()), shift=4001)
    assert "shift" in failed(rounded, 3)


@pytest.mark.parametrize(
    ("family", "dtype", "shift", "sizes"),
    [
        ("llama", BF16, 499, {}),
        ("gemma3_text", BF16, 499, {}),
        ("llama", FP16, 4001, {}),
        ("llama", BF16, 499, {"num_hidden_layers": 4, "hidden_size": 128}),
    ],
)
def test_rounding_to_16_bits_is_distinguished_from_rounded_positions(
    family: str, dtype: torch.dtype, shift: int, sizes: dict[str, Any]
) -> None:
    pytest.importorskip("transformers")
    model = tiny_model(family, **sizes).to(dtype)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    forward = model.forward
    model.forward = lambda *args, **kwargs: forward(*args, **kwargs)  # what wraps a model
    found = examine(model, shift=shift)
    assert severities(found.findings) == {1}
    assert "nothing, and does in float32, to" in str(found)
    assert all(
        torch.equal(t, before[name]) and t.dtype == before[name].dtype
        for name, t in model.state_dict().items()
    )
    positioned(model, lambda x, at: at.to(x.dtype).float())
    errors = [str(f) for f in examine(model, shift=shift).findings if f.severity == 3]
    assert errors
    assert all("something else is rounded, such as positions" in words for words in errors)


def test_rounding_under_autocast_and_masks_in_float64_are_reported_as_such() -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama")
    with torch.autocast("cpu", BF16):
        assert severities(examine(model).findings) == {1}
    (finding,) = examine(model.double()).findings
    assert (finding.severity, finding.chapter) == (1, "precision")
    assert "masks may overflow in float64" in str(finding)
    assert model.dtype == torch.float64
    assert "shift" in failed(examine(positioned(model, lambda _, at: at**2)), 3)


@pytest.mark.parametrize(("layers", "fails"), [(2, {"doubled"}), (1, {"order", "doubled"})])
def test_small_weights_hide_neither_positions_nor_their_loss(
    layers: int, fails: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As weights are initialised by default, attention is nearly uniform: little changes."""
    pytest.importorskip("transformers")
    small = {"num_hidden_layers": layers, "initializer_range": 0.02}
    assert examine(tiny_model("llama", **small | {"initializer_range": 0.002})).findings == ()
    without_rotation(monkeypatch, "llama")
    assert failed(examine(tiny_model("llama", **small)), 3) == fails


# ---- masks, caches and padding -------------------------------------------------------------------


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize("dropped", [(True,), (False,), (True, False)])
def test_a_document_mask_that_is_dropped_fails(family: str, dropped: tuple[bool, ...]) -> None:
    """In calls with a cache, in those without, or in all."""
    pytest.importorskip("transformers")
    model = tiny_model(family)
    forward = model.forward
    assert examine(model).errors["packed"] < 1e-4

    def dropping(*args: Any, attention_mask: Any = None, use_cache: Any, **kwargs: Any) -> Any:
        if attention_mask is not None and attention_mask.ndim == 4 and use_cache in dropped:
            attention_mask = None
        return forward(*args, attention_mask=attention_mask, use_cache=use_cache, **kwargs)

    model.forward = dropping
    assert "packed" in failed(examine(model), 3)


@pytest.mark.parametrize(
    "change",
    [
        lambda given: {"position_ids": None},
        lambda given: {"attention_mask": None},
        lambda given: {"position_ids": given["position_ids"] - given["position_ids"][:, :1]},
        None,
    ],
    ids=["ids", "mask", "start", "nothing"],
)
def test_what_is_lost_while_a_padded_row_is_decoded_fails(change: Any) -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama")
    forward = model.model.forward

    def changed(*args: Any, past_key_values: Any = None, **kwargs: Any) -> Any:
        given = [kwargs.get(name) is not None for name in ("position_ids", "attention_mask")]
        if change and past_key_values and past_key_values.get_seq_length() and all(given):
            kwargs |= change(kwargs)
        return forward(*args, past_key_values=past_key_values, **kwargs)

    model.model.forward = changed
    assert failed(examine(model)) == ({"padded"} if change else set())


# ---- what cannot be examined ---------------------------------------------------------------------


def test_what_cannot_be_examined_is_refused_with_the_reason() -> None:
    pytest.importorskip("transformers")
    model = tiny_model("llama")
    for other in (torch.nn.Linear(3, 3), model.model.layers[0]):
        with pytest.raises(TypeError, match="model must be a causal language model of tr"):
            examine(other)
    wanted = "model must run on 32 tokens and return logits, got "
    with pytest.raises(ValueError, match=f"{wanted}AttributeError: .* 'logits'"):
        examine(model.model)
    model.model.rotary_emb.forward = None
    with pytest.raises(ValueError, match=f"{wanted}TypeError: 'NoneType'"):
        examine(model)
    with torch.inference_mode():
        model = tiny_model("llama")
        assert examine(model).findings == ()
    with pytest.raises(ValueError, match="model must not be made under torch"):
        examine(model)


@pytest.mark.parametrize("seed", range(3))
def test_public_configurations_are_heard_as_their_cards_say(seed: int) -> None:
    """One drawn from those of at most 32 layers, at its own widths."""
    pytest.importorskip("transformers")
    types = load_rules()["types"]
    rows = [row for row in public.checkpoints() if row["config"].get("num_hidden_layers", 99) <= 32]
    asked = [one for row in rows for one in public.parts_of_row(row["config"], types)]
    kind, raw = random.Random(seed).choice(asked)
    assert public.fault(kind, raw, types[kind]) is None
