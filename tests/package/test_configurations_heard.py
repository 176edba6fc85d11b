"""Configurations as hybrids and others have them: the card is what the live class does with them.

The class is run without weights and heard layer by layer (`atlas.public.fault`); what fails is made
with weights, and run.
"""

import copy
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import torch
import transformers

from atlas import public
from ropescope.configuration import load_rules, rope_of
from ropescope.layers import unrolled

SIZES: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 4, "intermediate_size": 32, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
EXPERTS = {
    "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
    "head_dim": 64,
}  # fmt: skip
IN_TURN = {"layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 4}
CONV = {"layer_types": ["conv", "full_attention"] * 2}
TWO = {
    "full_attention": {"rope_type": "default", "rope_theta": 4e5},
    "sliding_attention": {"rope_type": "default", "rope_theta": 2e4},
}
LLAMA3 = {
    "rope_type": "llama3", "factor": 2.0, "original_max_position_embeddings": 131072,
    "low_freq_factor": 1.0, "high_freq_factor": 32.0,
}  # fmt: skip
STEP: dict[str, Any] = {
    **EXPERTS, "n_routed_experts": 4, "moe_num_experts": 4, "num_attention_groups": 2,
    "layer_types": ["full_attention"] * 4, "sliding_window": 4,
}  # fmt: skip
BEAM = {**EXPERTS, "n_group": 1, "topk_group": 1}
LISTS = {
    "layer_types": ["full_attention", *["sliding_attention"] * 3],
    "rope_theta": [5e6, 1e4, 1e4, 1e4], "partial_rotary_factors": [0.5, 1.0, 1.0, 1.0],
    "rope_scaling": LLAMA3,
}  # fmt: skip
LONGCAT = {
    "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "v_head_dim": 16,
    "n_routed_experts": 4, "ffn_hidden_size": 32, "moe_topk": 2, "expert_ffn_hidden_size": 16,
    "num_key_value_heads": 4,
}  # fmt: skip
DEEP = {
    **EXPERTS, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 16, "v_head_dim": 16, "n_routed_experts": 4, "n_group": 1, "topk_group": 1,
    "first_k_dense_replace": 4, "num_key_value_heads": 4,
}  # fmt: skip
del DEEP["head_dim"]
PLAIN = {"rope_type": "default", "rope_theta": 1e4}
MINISTRAL = {
    "rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "llama_4_scaling_beta": 0.1,
    "original_max_position_embeddings": 16384,
}  # fmt: skip
DBRX: dict[str, Any] = {
    "d_model": 256, "n_heads": 4, "n_layers": 4,
    "attn_config": {"rope_theta": 1e4, "clip_qkv": 8.0},
    "ffn_config": {"ffn_hidden_size": 32, "moe_num_experts": 4},
}  # fmt: skip
ZAMBA = {"use_mem_rope": True, "hidden_size": 320, "num_key_value_heads": 4, "kv_channels": 16}
HYBRID = {"layers_block_type": ["mamba", "hybrid"] * 2}
LONG = {
    "max_position_embeddings": 8192, "original_max_position_embeddings": 2048,
    "rope_scaling": {"rope_type": "longrope", "short_factor": [1.0 + i / 9 for i in range(32)],
                     "long_factor": [2.0] * 32, "factor": 4.0},
}  # fmt: skip
SLIDES = {"layer_types": ["sliding_attention"] * 4, "sliding_window": 4, "use_sliding_window": True}

HEARD: list[tuple[str, dict[str, Any]]] = [
    ("lfm2", CONV), ("lfm2", {"full_attn_idxs": [1, 3]}), ("lfm2", {}),
    ("lfm2", {**CONV, "full_attn_idxs": [0]}), ("lfm2_moe", {**EXPERTS, **CONV}),
    ("bamba", {"attn_layer_indices": [1, 3]}),
    ("granitemoehybrid", {"position_embedding_type": "rope",
                          "layer_types": ["mamba", "attention"] * 2}),
    ("zamba2", {**ZAMBA, "num_hidden_layers": 54}),
    ("zamba2", {**ZAMBA, **HYBRID}),
    ("step3p5", STEP), ("step3p5", STEP | LISTS),
    ("step3p5", STEP | {"rope_parameters": {"full_attention": TWO["full_attention"]},
                        "rope_scaling": LLAMA3}),
    ("laguna", {**EXPERTS, **IN_TURN}), ("mellum", {**EXPERTS, **IN_TURN}),
    ("mellum", {**EXPERTS, **IN_TURN, "rope_parameters": TWO}),
    ("beam", BEAM), ("beam", {**BEAM, **IN_TURN, "rope_parameters": TWO}),
    ("beam", {**BEAM, **IN_TURN, "rope_parameters": {**TWO, "sliding_attention": None}}),
    ("flint", {**EXPERTS, "shared_expert_intermediate_size": 16}), ("lfm3", {}),
    ("minimax_m2", {**EXPERTS, "rotary_dim": 32}),
    ("longcat_flash", {**LONGCAT, "num_layers": 2}),
    ("longcat_flash", {**LONGCAT, "num_layers": 3, "num_hidden_layers": 4}),
    ("glm_image_text", {"head_dim": 64, "rope_parameters": PLAIN}),
    ("glm4v_text", {"hidden_size": 512, "rope_parameters": PLAIN | {"partial_rotary_factor": 0.5}}),
    ("emu3_text_model", {"rope_parameters": PLAIN | {"rope_type": "linear", "factor": 2.0}}),
    ("deepseek_v3", DEEP), ("mistral4", DEEP | {"head_dim": 32}),
    ("internlm3", {"head_dim": 64}), ("iquestcoder", {"rope_theta": 5e5}),
    ("csm", {"head_dim": 64, "rope_scaling": LLAMA3, "rope_theta": 4e5}),
    ("step3p5", STEP | {"layer_types": ["full_attention"] * 5, "num_nextn_predict_layers": 1}),
    ("zamba2", {**ZAMBA, **HYBRID, "hybrid_layer_ids": [1, 3]}),
    ("zaya", {"layer_types": ["hybrid", "hybrid_sliding"] * 2, "sliding_window": 4}),
    *((kind, {"head_dim": 64, **LONG}) for kind in ("ministral", "mixtral", "hunyuan_v1_dense")),
    ("zamba2", {**ZAMBA, **HYBRID, "head_dim": 64}),
    *(("step3p5", {**STEP, **LISTS, "rope_parameters": given})
      for given in ({"full_attention": TWO["full_attention"]}, TWO, {},
                    {**TWO, "sliding_attention": None}, PLAIN | {"rope_theta": 7e5})),
    ("step3p5", STEP | {"layer_types": LISTS["layer_types"],
                        "rope_parameters": {"full_attention": TWO["full_attention"]}}),
    ("gemma3n_text", {**IN_TURN, "head_dim": 64, "num_kv_shared_layers": 0, "rope_theta": 4e5,
                      "rope_local_base_freq": 2e4, "rope_scaling": LLAMA3}),
    ("kolibri1", {**EXPERTS, "layer_types": ["sliding_attention", "attention"] * 2}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "told"), HEARD)
def test_a_card_says_what_the_code_does_layer_by_layer(kind: str, told: dict[str, Any]) -> None:
    raw = {**SIZES, **copy.deepcopy(told)}
    if "num_layers" in told and "num_hidden_layers" not in told:
        del raw["num_hidden_layers"]
    rule = load_rules()["types"][kind]
    assert public.fault(kind, raw, rule) is None
    parts = rope_of({"model_type": kind, **raw}).parts
    assert parts


@pytest.mark.parametrize(
    ("kind", "told", "right"),
    [("esm", "rope", "rotary"), ("granitemoehybrid", "RoPE", "rope"),
     ("granitemoehybrid", "rotary", "rope")],
)  # fmt: skip
def test_where_a_switch_is_misspelt_nothing_rotates_and_this_is_wrong(
    kind: str, told: str, right: str
) -> None:
    raw = {**SIZES, "position_embedding_type": told, "layer_types": ["attention"] * 4}
    raw = {k: v for k, v in raw.items() if kind != "esm" or k != "layer_types"}
    assert public.fault(kind, raw, load_rules()["types"][kind]) is None
    spec = rope_of({"model_type": kind, **raw})
    assert not spec.parts
    first = spec.warnings[0]
    assert (first.code, first.severity) == ("spelling", 2)
    assert first.message.endswith(f"did you mean {right!r}?")


@pytest.mark.parametrize(
    ("kind", "told", "name"),
    [
        ("hrm_text", {"num_hidden_layers": 3, "head_dim": 64}, "num_layers_per_stack"),
        ("longcat_flash", {"num_hidden_layers": 6, "num_key_value_heads": 4}, "num_layers"),
    ],
)
def test_layers_are_counted_as_the_class_counts_them_when_it_is_saved_again(
    kind: str, told: dict[str, Any], name: str
) -> None:
    own = transformers.CONFIG_MAPPING[kind].from_dict(dict(told))
    for raw in (told, own.to_dict()):
        (part,) = rope_of({**raw, "model_type": kind}).parts
        assert part.layers == [[0, getattr(own, name) - 1, 1]]


def test_heads_of_single_layers_are_no_question_where_their_width_is_given() -> None:
    """As Step-3.5 is when it is saved again: its sliding layers have more heads, as wide."""
    other = {"attention_type": "sliding_attention", "num_attention_heads": 8}
    told = {**SIZES, **STEP, **copy.deepcopy(LISTS), "attention_other_setting": other}
    own = transformers.CONFIG_MAPPING["step3p5"].from_dict(told).to_dict()
    assert own["per_layer_config"]
    spec = rope_of({**own, "model_type": "step3p5"})
    assert {part.kind: part.width for part in spec.parts} == {
        "full_attention": 32, "sliding_attention": 64,
    }  # fmt: skip
    assert not [one for one in spec.warnings if one.code == "not-known"]
    apart = {"model_type": "llama", **SIZES, "per_layer_config": {"1": {"num_attention_heads": 8}}}
    assert [one for one in rope_of(apart).warnings if one.code == "not-known"]


NULL = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
                            "partial_rotary_factor": None}}  # fmt: skip
WIDE = {"head_dim": 128}
FAILS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    *((kind, {}, WIDE) for kind in (
        "modernbert", "modernbert-decoder", "stablelm", "persimmon", "bitnet", "gpt_neox_japanese",
    )),
    ("helium", {"head_dim": 64}, WIDE),
    ("mllama_text_model", {"cross_attention_layers": [1]}, WIDE),
    ("olmoe", {**EXPERTS, "head_dim": 64}, WIDE),
    ("esm", {"position_embedding_type": "rotary", "vocab_size": 33}, WIDE),
    *((kind, {"head_dim": 64}, NULL) for kind in ("glm4", "phi3", "stablelm", "phi")),
    ("qwen3_next", EXPERTS, NULL), ("minimax_m2", EXPERTS, NULL),
    ("cohere2_moe", EXPERTS, {"rope_parameters": {"rope_type": "default"}, "rope_theta": 5e5}),
    ("cosmos3_edge_text", {"hidden_size": 512}, {
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    *((kind, DEEP, {"head_dim": None}) for kind in ("deepseek_v3", "axk1", "youtu", "mistral4")),
    ("mistral4", DEEP, {"head_dim": 16}), ("longcat_flash", LONGCAT, {"head_dim": 32}),
    ("cohere2_moe", EXPERTS, {"rope_parameters": None}),
    *((kind, {"head_dim": 64, **EXPERTS}, {"layer_types": [other, "full_attention"] * 2})
      for kind in ("cohere2", "afmoe", "qwen3_next", "lfm2", "exaone4", "gemma3_text")
      for other in ("chunked_attention", "conv" if kind != "lfm2" else "sliding_attention")),
    *((kind, {"head_dim": 64, "sliding_window": 4, **EXPERTS}, {"layer_types": [other] * 4})
      for kind in ("qwen2", "qwen3", "gpt_oss", "gemma2", "smollm3", "ministral")
      for other in ("chunked_attention", "linear_attention", "conv")),
    *((kind, {"head_dim": 64}, {"rope_parameters": False}) for kind in ("llama", "gemma3_text")),
    ("gemma3_text", {"head_dim": 64}, {"rope_scaling": False}),
    ("cosmos3_edge_text", {"hidden_size": 512}, {"head_dim": 64}),
    ("glm4_moe_lite", DEEP, NULL), ("solar_open", DEEP | {"head_dim": 64}, NULL),
    ("solar_open", DEEP | {"head_dim": 64}, {"partial_rotary_factor": 0.5}),
    *((kind, {"head_dim": 64, **SLIDES}, change)
      for kind in ("qwen2", "qwen3") for change in (
          {"use_sliding_window": False}, {"sliding_window": None})),
    ("smollm3", SLIDES, {"sliding_window": None}),
    ("smollm3", SLIDES, {"layer_types": ["conv"] * 4}),
    ("qwen2_vl_text", {**SLIDES, "rope_parameters": PLAIN | {"mrope_section": [8, 12, 12]}},
     {"layer_types": ["conv"] * 4}),
    *((kind, DEEP, {"layer_types": ["full_attention"] * 4}) for kind in ("deepseek_v32", "axk2")),
    ("exaone4", {**SLIDES, "head_dim": 64}, {"sliding_window": None}),
    ("dots1", EXPERTS | SLIDES | {"n_routed_experts": 4, "n_shared_experts": 1, "n_group": 1,
                                  "topk_group": 1}, {"layer_types": ["conv"] * 4}),
    *(("step3p5", STEP, change | {"layer_types": ["full_attention"] * 5})
      for change in ({}, {"num_nextn_predict_layers": 2})),
    ("zamba2", {**ZAMBA, **HYBRID, "hybrid_layer_ids": [1, 3]}, {"hybrid_layer_ids": [0, 2]}),
    ("zamba2", {**ZAMBA, **HYBRID}, {"hybrid_layer_ids": None}),
    ("zamba2", {**ZAMBA, **HYBRID}, {"layers_block_type": ["full_attention", "hybrid"] * 2}),
    ("zamba2", {**ZAMBA, **HYBRID}, {"head_dim": None}),
    ("dbrx", DBRX, {"head_dim": 32}),
    ("mistral4", DEEP | {"head_dim": 32, "rope_parameters": MINISTRAL},
     {"rope_parameters": None, "rope_scaling": MINISTRAL}),
    *(("dbrx", DBRX, {"attn_config": own}) for own in ({"clip_qkv": 8.0}, {}, None)),
    ("glm_ocr_text", {"rope_parameters": PLAIN | {"mrope_section": [8, 12, 12]}},
     {"head_dim": None}),
    ("ministral3", {"head_dim": 64, "rope_parameters": MINISTRAL},
     {"rope_parameters": {**MINISTRAL, "llama_4_scaling_beta": None}}),
    ("recurrent_gemma", {"head_dim": 64, "num_hidden_layers": 3}, {"layer_types": None}),
    ("gemma4_text", {**IN_TURN, "head_dim": 64, "global_head_dim": 128},
     {"layer_types": [*IN_TURN["layer_types"][:1], "attention", *IN_TURN["layer_types"][2:]]}),
    ("esmc", {"num_key_value_heads": 4}, WIDE),
    ("cohere2_moe", {**EXPERTS, **IN_TURN}, {"layer_types": ["attention"] * 4}),
    ("mellum", {**EXPERTS, **IN_TURN}, {"sliding_window": None}),
]  # fmt: skip

APART = {
    "mllama_text_model": "MllamaTextModel", "step3p5": "Step3p7TextModel",
    "qwen2_vl_text": "Qwen2VLTextModel", "glm_ocr_text": "GlmOcrTextModel",
}  # fmt: skip
"""Parts that AutoModel does not know."""


def runs(config: dict[str, Any]) -> bool:
    try:
        own = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
        made = transformers.AutoModel.from_config
        if config["model_type"] in APART:
            made = getattr(transformers, APART[config["model_type"]])
        with torch.no_grad():
            made(own).eval()(input_ids=torch.ones(1, 3, dtype=torch.long))
    except Exception:  # whatever it raises
        return False
    return True


def warned(config: dict[str, Any]) -> bool:
    try:
        return any(one.severity == 2 for one in rope_of(copy.deepcopy(config)).warnings)
    except ValueError:
        return True


@pytest.mark.parametrize(("kind", "sizes", "change"), FAILS)
def test_what_makes_a_rotary_embedding_fail_is_told(
    kind: str, sizes: dict[str, Any], change: dict[str, Any]
) -> None:
    config = {"model_type": kind, **SIZES, **sizes}
    assert runs(config)
    assert not warned(config)
    assert not runs({**config, **change})
    assert warned({**config, **change})


@pytest.mark.parametrize("kind", ["llama", "qwen2", "phi3", "mistral", "ministral3"])
@pytest.mark.parametrize("none", [False, 0, "", []])
def test_what_is_no_rescaling_is_taken_as_none_and_told(kind: str, none: Any) -> None:
    made = transformers.CONFIG_MAPPING[kind].from_dict
    told = {"rope_theta": 777.0}
    assert made({**told, "rope_scaling": none}).to_dict() == made(dict(told)).to_dict()
    spec, plain = (rope_of({"model_type": kind, **told, **x}) for x in ({"rope_scaling": none}, {}))
    assert spec.parts == plain.parts
    (found,) = set(spec.warnings) - set(plain.warnings)
    assert (found.code, found.severity, found.field) == ("taken-as-null", 1, "rope_scaling")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "llama", "head_dim": 10**15}, "at most 65,536"),
        ({"model_type": "llama", "rope_theta": 1e300}, "positive number"),
        ({"model_type": "mistral3", "vision_config": {"model_type": []}}, "must be a text"),
    ],
)
def test_values_without_end_or_sense_are_refused_in_words(config: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rope_of(config)


@pytest.mark.parametrize(
    ("kind", "name", "other"),
    [
        ("gemma4_text", "per_layer_config", {"5": {"head_dim": 128}}),
        ("cohere2_moe", "mlp_layer_types", ["dense"] * 40),
        ("granite_swa", "layer_rope_theta", [10000.0, *[5e5] * 31]),
    ],
)
def test_what_a_class_derives_and_saves_is_no_warning(kind: str, name: str, other: Any) -> None:
    saved = transformers.CONFIG_MAPPING[kind]().to_dict()
    assert saved[name]
    for value, told in ((saved[name], set()), (other, {name})):
        spec = rope_of({**saved, "model_type": kind, name: value})
        assert {one.field for one in spec.warnings if one.code == "not-known"} == told


def read(config: dict[str, Any]) -> Any:
    try:
        return rope_of(config)
    except ValueError as error:
        return str(error)


def bare(path: str) -> str:
    return path.removesuffix("text_config").rstrip(".")  # whose fields may stand outside


@pytest.mark.parametrize("chunk", range(4))
def test_a_name_alone_is_read_as_the_class_makes_it(chunk: int) -> None:
    rules, seen = load_rules()["types"], 0
    for name in [*transformers.CONFIG_MAPPING][chunk::4]:
        try:
            made = transformers.CONFIG_MAPPING[name]()
        except Exception:
            continue  # a class without defaults
        if "null" in rules[name] or made.model_type not in rules:
            continue
        alone, told = read({"model_type": name}), read(made.to_dict())
        if isinstance(alone, str):
            assert alone.startswith(told), name  # it may add which fields are not given
            continue
        for one, other in zip(alone.parts, told.parts, strict=True):
            for field in ("layers", "layout", "width", "base", "inv_freq"):
                if field == "layers" and one.kind == "indexer" and not one.layers:
                    continue  # a name alone does not tell which layers share one
                assert getattr(one, field) == getattr(other, field), (name, one.path, field)
            assert bare(one.path) == bare(other.path), name
        lacks = [
            {bare(w.field) for w in one.warnings if w.code == "no-rule"} for one in (alone, told)
        ]
        assert lacks[0] <= lacks[1], name
        seen += bool(alone.parts)
    assert seen > 60


@pytest.mark.parametrize(
    ("kind", "field", "own", "path"),
    [
        ("instructblip", "text_config", {"model_type": "llama"}, "text_config"),
        ("vision-encoder-decoder", "decoder", {"model_type": "llama"}, "decoder"),
        ("colpali", "vlm_config", {"model_type": "paligemma"}, "vlm_config.text_config"),
        ("depth_anything", "backbone_config", {"model_type": "dinov3_vit"}, "backbone_config"),
    ],
)
def test_a_part_may_rotate_where_its_default_does_not(
    kind: str, field: str, own: dict[str, Any], path: str
) -> None:
    spec = rope_of({"model_type": kind, field: own})
    assert [one.path for one in spec.parts] == [path]
    if kind != "vision-encoder-decoder":  # which wants its encoder, too
        made = transformers.CONFIG_MAPPING[kind].from_dict({field: own})
        assert getattr(made, field).model_type == own["model_type"]


def test_a_class_with_a_rotation_that_was_not_asked_is_not_said_to_rest() -> None:
    """Such a name has a rule, or one that says why it has none."""
    for name, rule in load_rules()["types"].items():
        if name in transformers.CONFIG_MAPPING and not rule.keys() & {"rotations", "null"}:
            try:
                made = transformers.CONFIG_MAPPING[name]()
            except Exception:
                continue  # a class without defaults
            assert rule["parts"] or not hasattr(made, "rope_parameters"), name


@pytest.mark.parametrize("kind", ["internlm3", "iquestcoder"])
def test_a_model_of_another_family_may_stand_in_a_part(kind: str) -> None:
    inside = {"model_type": "internvl", "text_config": {"model_type": kind, "rope_theta": 5e5}}
    (part,) = (one for one in rope_of(inside).parts if one.part == "text")
    assert (part.path, part.base, part.head_dim) == ("text_config", 5e5, 128)


VIT = {"model_type": "sam3_vit_model", "hidden_size": 128, "num_attention_heads": 2}


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"model_type": "sam3", "image_size": 504}, "image_size is 504, and overrules it"),
        ({"model_type": "sam3_lite_text", "image_size": 504}, "image_size is 504, and overrules"),
        ({"model_type": "sam3_tracker_video"}, "image_size is 1008, as its class sets it"),
        ({"model_type": "sam3_tracker_video", "image_size": 1008}, "1008, and overrules it"),
        ({"model_type": "sam3"}, ""),
    ],
)
def test_an_image_size_of_the_whole_overrules_that_of_a_part(
    config: dict[str, Any], says: str
) -> None:
    for size in (504, 1008, 672):
        raw = config | {"vision_config": {"backbone_config": VIT | {"image_size": size}}}
        made = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(raw))
        due = made.vision_config.backbone_config.image_size
        (told,) = (one for one in rope_of(raw).parts if one.kind == "whole_picture")
        (alone,) = (
            one for one in rope_of(VIT | {"image_size": due}).parts if one.kind == told.kind
        )
        assert told.inv_freq == alone.inv_freq
        lost = [one.message for one in rope_of(raw).warnings if "no effect" in one.message]
        assert bool(lost) == (due != size)
        assert all(says in one for one in lost)


@pytest.mark.parametrize(
    ("name", "part"), [("exaone4_5", "text_config"), ("sam3_vision_model", "backbone_config")]
)
def test_a_part_that_wants_its_type_is_refused_without_it(name: str, part: str) -> None:
    made = transformers.CONFIG_MAPPING[name]
    sizes = {"num_hidden_layers": 4}
    with pytest.raises(KeyError):
        made.from_dict({part: dict(sizes)})
    with pytest.raises(ValueError, match=f"{part}.model_type must be given: its class fails"):
        rope_of({"model_type": name, part: sizes})
    kind = load_rules()["types"][name]["parts"][part]["type"]
    assert rope_of({"model_type": name, part: sizes | {"model_type": kind}}).parts


def test_entries_of_a_list_that_no_layer_turns_by_are_told() -> None:
    kinds = ["full_attention", *["sliding_attention"] * 3]
    config = {"model_type": "step3p5", "num_hidden_layers": 4, "layer_types": kinds}
    config |= {"rope_theta": [5e6, 1e4, 1e4, 1e4], "partial_rotary_factors": [0.3, 1, 1, 1]}

    def told(**more: Any) -> list[str]:
        found = rope_of(config | more).warnings
        return [one.message for one in found if one.code == "entries-differ"]

    assert not told()
    (said,) = told(rope_theta=[5e6, 1e4, 2e4, 3e4])
    assert (
        said
        == "rope_theta has 20,000 for one of the sliding_attention layers, which turn by 10,000."
    )
    (said,) = told(partial_rotary_factors=[0.3, 1, 0.25, 1])
    assert said.endswith("which turn by 128 of 128 channels.")
    llama3 = {"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0}
    llama3 |= {"high_freq_factor": 32.0, "original_max_position_embeddings": 131072}
    (said,) = told(rope_scaling=llama3 | {"rope_theta": 1e4})
    assert said.startswith("rope_theta has 5,000,000 for one of the full_attention layers")


def test_the_alpha_of_hunyuan_reads_no_fraction() -> None:
    """Its class computes these frequencies itself, of whole heads."""
    from transformers.models.hunyuan_v1_dense import modeling_hunyuan_v1_dense as code

    sizes = {"hidden_size": 128, "num_attention_heads": 4, "head_dim": 32}
    scaling = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "rope_theta": 1e4}
    raw = {**sizes, "partial_rotary_factor": 0.5, "rope_scaling": scaling}
    (part,) = rope_of({"model_type": "hunyuan_v1_dense", **raw}).parts
    made = transformers.HunYuanDenseV1Config.from_dict(copy.deepcopy(raw))
    heard = code.HunYuanDenseV1RotaryEmbedding(made).inv_freq
    np.testing.assert_allclose(part.inv_freq, heard.numpy(), rtol=1e-6)


def test_ultraberts_windows_and_bases_are_read_as_in_its_checkpoints() -> None:
    """Kinds of layers are made of ``attention_windows``; of a list of bases a kind has its last."""
    sizes = {"hidden_size": 128, "num_attention_heads": 4, "num_hidden_layers": 6}
    for windows, bases in (
        ([128, 0, 128, 128, 0, 128], [1e4, 5e5, 1e4, 1e4, 5e5, 1e4]),
        ([0, 64, 64, 64, 64, 0], [3e4, 1e4, 1e4, 1e4, 2e4, 7e5]),
        ([128, 0, 128, 128, 0, 128], None),
        (None, [1e4, 1e4, 5e5, 1e4, 1e4, 6e5]),
    ):
        raw = sizes | {"attention_windows": windows, "rope_theta": bases}
        raw = {key: value for key, value in raw.items() if value is not None}
        made = transformers.UltrabertConfig.from_dict(copy.deepcopy(raw))
        for part in rope_of({"model_type": "ultrabert", **raw}).parts:
            assert part.base == made.rope_parameters[part.kind]["rope_theta"]
            layers = [n for n, kind in enumerate(made.layer_types) if kind == part.kind]
            assert sorted(unrolled(part.layers)) == layers


@pytest.mark.parametrize(
    ("name", "part", "own", "due"),
    [
        ("exaone4_5", "text_config", "exaone4_5_text", "exaone4"),
        ("hyperclovax_vision_v2", "vision_config", "qwen2_5_vl", "qwen2_5_vl_vision"),
    ],
)
def test_a_part_of_an_older_type_is_read_as_its_model_reads_it(
    name: str, part: str, own: str, due: str
) -> None:
    raw = {part: {"model_type": own}}
    made = transformers.CONFIG_MAPPING[name].from_dict(copy.deepcopy(raw))
    assert getattr(made, part).model_type == due
    assert due in {one.model_type for one in rope_of({"model_type": name, **raw}).parts}


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("modernbert", {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}),
        ("neomme", {"layer_types": ["sliding_attention"] * 17}),
    ],
)
def test_a_rotation_that_a_class_refuses_is_refused(name: str, own: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r"rope_parameters|layer_types"):
        transformers.CONFIG_MAPPING[name].from_dict(copy.deepcopy(own))
    with pytest.raises(ValueError, match=r"rope_parameters must have|layer_types must have"):
        rope_of({"model_type": name, **own})


def test_a_base_that_a_class_wants_by_default_alone_is_asked_for_there() -> None:
    from transformers.models.cohere2_moe import modeling_cohere2_moe as code

    for kind, fine in (("yarn", True), ("linear", True), ("default", False)):
        rope = {"rope_type": kind, "factor": 2.0, "original_max_position_embeddings": 4096}
        raw = {"rope_theta": 1e6, "rope_parameters": rope}
        made = transformers.CONFIG_MAPPING["cohere2_moe"].from_dict(copy.deepcopy(raw))
        with nullcontext() if fine else pytest.raises(KeyError):
            code.Cohere2MoeRotaryEmbedding(config=made)
        said = {one.code for one in rope_of({"model_type": "cohere2_moe", **raw}).warnings}
        assert ("key-missing" in said) != fine


def test_a_width_that_is_no_multiple_of_four_is_told_where_its_class_refuses_it() -> None:
    for width, fine in ((64, True), (72, False), (80, True)):
        said = rope_of({"model_type": "neomme", "head_dim": width}).warnings
        assert any("not a multiple of 4" in one.message for one in said) != fine
        with nullcontext() if fine else pytest.raises(Exception, match="not a multiple of 4"):
            transformers.CONFIG_MAPPING["neomme"].from_dict({"head_dim": width})


def test_bases_that_a_switch_is_given_in_vain_are_told() -> None:
    """Muse's class asks of its list only which layers turn."""
    raw = {"num_hidden_layers": 4, "layer_rope_theta": [250000, 250000, 250000, 0]}
    spec = rope_of({"model_type": "muse_glimmer_text", **raw})
    (said,) = (one.message for one in spec.warnings if one.code == "entries-differ")
    assert said == "layer_rope_theta has 250,000 for one of the layers, which turn by 10,000."
    raw["layer_rope_theta"] = [1, 1, 1, 0]
    assert "entries-differ" not in {
        one.code for one in rope_of({"model_type": "muse_glimmer_text", **raw}).warnings
    }


@pytest.mark.parametrize(
    "more",
    [
        {}, {"per_layer_config": None}, {"per_layer_config": {}}, {"global_head_dim": 128},
        {"per_layer_config": {"5": {"head_dim": 128}}},
        {"per_layer_config": {"05": {"head_dim": 512, "num_key_value_heads": 1}}},
        {"per_layer_config": {"5": {"num_key_value_heads": 1}}},
        {"global_head_dim": 256, "per_layer_config": {"5": {"head_dim": 512}}},
    ],
)  # fmt: skip
def test_widths_of_single_layers_stand_for_that_of_the_full_ones(more: dict[str, Any]) -> None:
    """As transformers saves Gemma 4: ``global_head_dim`` is no field of its file then."""
    from transformers.models.gemma4 import modeling_gemma4 as code

    raw = {"num_hidden_layers": 6, "head_dim": 256, **more}
    made = transformers.CONFIG_MAPPING["gemma4_text"].from_dict(copy.deepcopy(raw))
    table = code.Gemma4TextRotaryEmbedding(made)
    spec = rope_of({"model_type": "gemma4_text", **raw})
    for part in spec.parts:
        due = getattr(table, f"{part.kind}_inv_freq").numpy()
        np.testing.assert_allclose(part.inv_freq, due[due > 0], rtol=1e-6)
    assert "not-known" not in {one.code for one in spec.warnings}


def test_layers_of_a_kind_with_different_widths_are_told() -> None:
    from transformers.models.gemma4 import modeling_gemma4 as code

    kinds = [*["sliding_attention"] * 5, "full_attention"] * 2
    raw = {"num_hidden_layers": 12, "layer_types": kinds}
    raw |= {"per_layer_config": {"5": {"head_dim": 512}}}
    made = transformers.CONFIG_MAPPING["gemma4_text"].from_dict(copy.deepcopy(raw))
    with pytest.raises(ValueError, match="not homogeneous"):
        code.Gemma4TextRotaryEmbedding(made)
    said = [
        one for one in rope_of({"model_type": "gemma4_text", **raw}).warnings if one.severity == 2
    ]
    words = (
        "per_layer_config gives some full_attention layers fields that others have not: its class "
    )
    words += "fails."
    assert [one.message for one in said] == [words]


@pytest.mark.parametrize("family", ["glm4_moe", "minimax_m2", "qwen3_next"])
def test_a_null_fraction_is_the_whole_head_where_its_class_takes_it_so(family: str) -> None:
    raw = SIZES | EXPERTS | {"head_dim": 64, "partial_rotary_factor": None}
    raw |= {"layer_types": ["full_attention"] * 4} if family == "qwen3_next" else {}
    rule = load_rules()["types"][family]
    assert public.fault(family, raw, rule) is None
    (part,) = rope_of({"model_type": family, **raw}).parts
    assert (part.width, part.head_dim) == (64, 64)
    if family == "minimax_m2":  # whose older field yields to it
        spec = rope_of({"model_type": family, **raw, "rotary_dim": 32})
        assert (spec.parts[0].width, spec.without_effect) == (64, ("rotary_dim",))
    half = raw | {"partial_rotary_factor": 0.5}
    assert rope_of({"model_type": family, **half}).parts[0].width == 32


def test_bases_outside_do_not_count_where_ultrabert_has_a_dict() -> None:
    both = {"rope_theta": 5e5, "rope_parameters": TWO}
    transformers.UltrabertConfig.from_dict(copy.deepcopy(both))
    spec = rope_of({"model_type": "ultrabert", **both})
    assert {part.base for part in spec.parts} == {4e5, 2e4}
    assert max(one.severity for one in spec.warnings) == 1
    with pytest.raises(TypeError):
        transformers.UltrabertConfig.from_dict({"rope_theta": 500000})
    said = rope_of({"model_type": "ultrabert", "rope_theta": 500000}).warnings
    assert "other-type" in {one.code for one in said}


def test_fields_of_a_part_without_a_rule_are_not_said_to_be_without_effect() -> None:
    """Dots 3's text part has no rule, and its published file has that part's fields outside."""
    spec = rope_of({"model_type": "dots3_note", "rope_theta": 1e6})
    assert "no-rule" in {one.code for one in spec.warnings}
    assert spec.without_effect == ()
    assert "rope_theta" in spec.others
    talker = {"text_config": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}}
    spec = rope_of({"model_type": "qwen3_omni_moe", "talker_config": talker,
                    "thinker_config": {"text_config": {"head_dim": 128}}})  # fmt: skip
    assert "no-rule" in {one.code for one in spec.warnings}
    assert not any("talker" in one for one in spec.without_effect)


def test_a_null_in_the_old_word_leaves_ultraberts_dict() -> None:
    raw = {"rope_scaling": None, "rope_parameters": TWO}
    made = transformers.UltrabertConfig.from_dict(copy.deepcopy(raw))
    for part in rope_of({"model_type": "ultrabert", **raw}).parts:
        assert part.base == made.rope_parameters[part.kind]["rope_theta"]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"full_attention_interval": 2},
        {"layer_types": ["linear_attention", "full_attention"] * 4},
    ],
)
def test_the_layers_of_qwen4_that_attend_rotate(more: dict[str, Any]) -> None:
    """Asked with its indexer, without which its attention is not reached."""
    raw = {"num_hidden_layers": 8, **more}
    made = transformers.CONFIG_MAPPING["qwen4_exp_text"].from_dict(copy.deepcopy(raw))
    due = {n for n, kind in enumerate(made.layer_types) if kind != "linear_attention"}
    (part,) = rope_of({"model_type": "qwen4_exp_text", **raw}).parts
    assert unrolled(part.layers) == due
    assert len(due) < 8


@pytest.mark.parametrize("family", ["hy_v4", "minimax_m3_vl_text", "qwen4_exp_text"])
def test_an_indexer_that_was_not_heard_is_told(family: str) -> None:
    spec = rope_of({"model_type": family})
    assert "indexer" not in {part.kind for part in spec.parts}
    (said,) = (one for one in spec.warnings if one.code == "indexer")
    assert said.message.startswith(f"The indexer of {family} rotates, too")


def test_layers_that_share_an_indexer_have_none_of_their_own() -> None:
    """GLM-5.2 lists them: where a file does not, it is not told which layers have one."""
    from transformers.models.glm_moe_dsa import modeling_glm_moe_dsa as code

    raw = {"num_hidden_layers": 6, "index_topk_freq": 4, "index_skip_topk_offset": 3}
    made = transformers.CONFIG_MAPPING["glm_moe_dsa"].from_dict(dict(raw))
    own = [i for i, kind in enumerate(made.indexer_types) if kind == "full"]
    assert own == [0, 1, 2]
    raw = {**SIZES, **EXPERTS, "num_hidden_layers": 6, "indexer_types": made.indexer_types}
    small = {"hidden_size": 64, "intermediate_size": 32, "vocab_size": 32, "q_lora_rank": 16}
    model = code.GlmMoeDsaModel(
        transformers.CONFIG_MAPPING["glm_moe_dsa"].from_dict({**raw, **small})
    )
    there = [i for i, layer in enumerate(model.layers) if layer.self_attn.indexer is not None]
    (part,) = (one for one in rope_of({"model_type": "glm_moe_dsa", **raw}).parts if one.kind)
    assert [*unrolled(part.layers)] == there == own
    (part,) = (one for one in rope_of({"model_type": "glm_moe_dsa"}).parts if one.kind)
    assert part.layers == []
    with pytest.raises(ValueError, match="indexer_types must be a list with an entry for each"):
        rope_of({"model_type": "glm_moe_dsa", **raw, "indexer_types": ["full"] * 5})


def test_a_list_of_bases_that_ends_early_is_told() -> None:
    """Its class runs out of entries: GraniteSWA deepened by two layers."""
    from transformers.models.granite_swa import modeling_granite_swa as code

    raw = {**SIZES, "hidden_size": 64, "num_hidden_layers": 4, "vocab_size": 32,
           "layer_rope_theta": [1e4] * 2, "rope_theta": 1e4}  # fmt: skip
    made = transformers.CONFIG_MAPPING["granite_swa"].from_dict(copy.deepcopy(raw))
    with pytest.raises(IndexError):
        code.GraniteSWAModel(made)(torch.arange(4)[None])
    raw["model_type"] = "granite_swa"
    (said,) = (one for one in rope_of(raw).warnings if one.field == "layer_rope_theta")
    assert said.severity == 1
    whole = rope_of(raw | {"layer_rope_theta": [1e4] * 4})
    assert "layer_rope_theta" not in {one.field for one in whole.warnings}


@pytest.mark.parametrize("family", ["qwen3_vl_vision", "dinov3_vit", "mlcd"])
def test_an_odd_head_of_a_tower_is_refused_as_its_class_fails_with_it(family: str) -> None:
    """25 channels: both axes together would turn 24."""
    heads = "num_heads" if "vl" in family else "num_attention_heads"
    raw = {"model_type": family, "hidden_size": 100, heads: 4}
    with pytest.raises(ValueError, match="is an odd number of channels"):
        rope_of(raw)
    made = transformers.CONFIG_MAPPING[family].from_dict(
        {**raw, "num_hidden_layers": 1, "depth": 1, "intermediate_size": 32}
    )
    model = transformers.AutoModel.from_config(made).eval()
    pixels = {"pixel_values": torch.zeros(1, 3, 32, 32)}
    if "vl" in family:
        size = made.in_channels * made.temporal_patch_size * made.patch_size**2
        pixels = {"hidden_states": torch.zeros(16, size), "grid_thw": torch.tensor([[1, 4, 4]])}
    with pytest.raises(RuntimeError, match=r"size|shape"):
        model(**pixels)


def test_sections_that_a_tower_does_not_read_are_told() -> None:
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [16, 24, 24]}
    spec = rope_of({"model_type": "pixtral", "num_hidden_layers": 2, "rope_parameters": rope})
    assert "rope_parameters.mrope_section" in spec.without_effect
    assert "rope_parameters.mrope_section" in {one.field for one in spec.warnings}


@pytest.mark.parametrize(
    ("family", "own"),
    [
        ("gemma4_text", {"rope_theta": 5e5}), ("gemma4_text", {"partial_rotary_factor": 0.5}),
        ("gemma4_text", {"rotary_pct": 0.5}), ("smollm3", {"head_dim": 64}),
    ],
)  # fmt: skip
def test_fields_of_single_layers_that_their_class_refuses_are_told(
    family: str, own: dict[str, Any]
) -> None:
    raw = {**SIZES, "num_hidden_layers": 6, "per_layer_config": {"5": own}}
    raw |= {"head_dim": 64} if family == "gemma4_text" else {}
    with pytest.raises(ValueError, match="attributes are missing"):
        transformers.CONFIG_MAPPING[family].from_dict(copy.deepcopy(raw))
    said = rope_of({"model_type": family, **raw}).warnings
    assert "per_layer_config" in {one.field for one in said}


@pytest.mark.parametrize(
    ("family", "more", "own"),
    [
        ("gemma4_text", {"num_hidden_layers": 12}, {"5": {"num_key_value_heads": 1}}),
        ("gemma4_text", {"num_hidden_layers": 12}, {"0": {"num_key_value_heads": 1}}),
        ("mixtral", {"head_dim": None}, {"1": {"head_dim": 64}}),
        ("llama", {}, {"7": {"intermediate_size": 16}}),
        ("molmo2_text", {}, None),
    ],
)
def test_what_single_layers_are_given_is_told(
    family: str, more: dict[str, Any], own: dict[str, Any] | None
) -> None:
    """Of a class that fails with it, or rescales no layer."""
    raw = {**SIZES, **more, "model_type": family}
    if own is None:
        yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 9216}
        raw |= {"rope_scaling": {**yarn, "rope_theta": 1e6}, "rope_scaling_layers": []}
    else:
        raw["per_layer_config"] = own
    field = "rope_scaling_layers" if own is None else "per_layer_config"
    (said,) = (one for one in rope_of(raw).warnings if one.field == field)
    assert said.severity == (2 if family == "gemma4_text" else 1)


def test_what_a_layer_at_rest_repeats_is_fine() -> None:
    own = {"per_layer_config": {"0": {"num_key_value_heads": 1}}}
    raw = {"model_type": "qwen3_next", **SIZES, **EXPERTS, **own}
    assert "per_layer_config" not in {one.field for one in rope_of(raw).warnings}
