"""A published configuration gives its rotary embedding by the rules of its family."""

import copy
import json
import lzma
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import atlas
import ropescope
from ropescope.configuration import PARAMETERS, Specification, load_rules, rope_of

RULES = Path(ropescope.__file__).parent / "rules.json"

LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
    "num_hidden_layers": 32, "max_position_embeddings": 8192, "rope_theta": 500000.0,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
QWEN: dict[str, Any] = {
    "model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28,
    "num_hidden_layers": 28, "max_position_embeddings": 32768, "rope_theta": 1000000.0,
}  # fmt: skip
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}


def only(config: dict[str, Any]) -> Any:
    (part,) = rope_of(config).parts
    return part


def codes(spec: Specification) -> list[tuple[str, str]]:
    return [(one.code, one.field) for one in spec.warnings]


def needs(*names: str) -> Any:
    missing = [name for name in names if name not in load_rules()["types"]]
    return pytest.mark.skipif(bool(missing), reason=f"no rule yet for {missing}")


def test_the_rules_are_small_and_each_says_how_well_it_agrees() -> None:
    rules = load_rules()
    assert rules["schema"] == 1
    assert len(lzma.compress(RULES.read_bytes())) < 150_000
    for name, rule in rules["types"].items():
        if "rotations" in rule:
            agreeing, drawn = rule["agreement"]
            assert agreeing == drawn or rule["why"], name
            assert drawn > 0, name
        else:
            assert rule.get("null") or "parts" in rule, name


def test_numpy_alone_is_imported() -> None:
    words = "import sys, ropescope.configuration as c; c.rope_of({'model_type': 'llama'}); "
    words += "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", words], check=False).returncode == 0


def test_qwen_2_5_with_yarn() -> None:
    part = only({**QWEN, "rope_scaling": YARN})
    assert (part.head_dim, part.width, part.place, part.layout) == (128, 128, "all", "half-split")
    assert (part.base, part.base_from) == (1000000.0, "rope_theta")
    assert part.layers == [[0, 27, 1]]
    assert part.rescaling[0] == "yarn"
    assert part.attention_factor == pytest.approx(0.1 * np.log(4.0) + 1.0)
    plain = 1e6 ** (-np.arange(64) / 64)
    ratio = np.array(part.inv_freq) / plain
    # pairs with more than 32 turns in 32,768 tokens stay, those with less than 1 go at a quarter
    turns = 32768 * plain / (2 * np.pi)
    assert np.allclose(ratio[turns > 34], 1.0)
    assert np.allclose(ratio[turns < 0.8], 0.25)
    assert (part.trained_length, part.max_length, part.dynamic) == (32768, 32768, False)


def test_old_and_new_spelling_are_the_same() -> None:
    new = {k: v for k, v in LLAMA.items() if k != "rope_theta"}
    new["rope_parameters"] = {**LLAMA3, "rope_theta": 500000.0}
    old = only({**LLAMA, "rope_scaling": LLAMA3})
    assert only(new).inv_freq == old.inv_freq
    assert only(new).base_from == "rope_parameters.rope_theta"
    assert old.inv_freq[-1] == pytest.approx(500000.0 ** (-63 / 64) / 8)


def test_a_specification_is_json() -> None:
    told = rope_of({**QWEN, "rope_scaling": YARN}).to_dict()
    assert json.loads(json.dumps(told)) == told
    names = ["family", "known", "parts", "read", "without_effect", "others", "warnings"]
    assert list(told) == names
    assert "rope_scaling.factor" in told["read"]


@needs("glm4_moe")
def test_glm_4_5_rotates_half_of_a_head() -> None:
    config = {
        "model_type": "glm4_moe", "hidden_size": 4096, "num_attention_heads": 96, "head_dim": 128,
        "num_hidden_layers": 46, "partial_rotary_factor": 0.5, "rope_theta": 1000000,
        "max_position_embeddings": 131072, "rope_scaling": None,
    }  # fmt: skip
    part = only(config)
    assert (part.head_dim, part.width, part.place, part.base) == (128, 64, "first", 1e6)


@needs("deepseek_v3")
def test_deepseek_v3_rotates_the_last_64_of_192() -> None:
    scaling = {
        "type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32,
        "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
    }  # fmt: skip
    config = {
        "model_type": "deepseek_v3", "num_hidden_layers": 61, "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128, "rope_theta": 10000, "max_position_embeddings": 163840,
        "rope_scaling": scaling,
    }  # fmt: skip
    part = only(config)
    assert (part.head_dim, part.width, part.place, part.attention_factor) == (192, 64, "last", 1.0)
    assert (part.trained_length, part.max_length) == (4096, 163840)


@needs("gemma3", "gemma3_text")
def test_gemma_3_has_a_base_for_each_kind_of_layer() -> None:
    text = {
        "model_type": "gemma3_text", "hidden_size": 2560, "num_attention_heads": 8,
        "head_dim": 256, "num_hidden_layers": 34, "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0, "sliding_window_pattern": 6,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "max_position_embeddings": 131072,
    }  # fmt: skip
    found = rope_of({"model_type": "gemma3", "text_config": text}).parts
    told = {one.kind: (one.path, one.base, one.rescaling) for one in found}
    assert told == {
        "sliding_attention": ("text_config", 10000.0, None),
        "full_attention": ("text_config", 1e6, ["linear", {"factor": 8.0}]),
    }
    assert next(p.layers for p in found if p.kind == "full_attention") == [[5, 29, 6]]


@needs("qwen2_5_vl", "qwen2_5_vl_text", "qwen2_5_vl_vision")
def test_qwen_2_5_vl_has_sections_and_its_tower_two_axes() -> None:
    config = {
        **QWEN, "model_type": "qwen2_5_vl", "max_position_embeddings": 128000,
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
        "vision_config": {"depth": 32, "hidden_size": 1280, "num_heads": 16},
    }  # fmt: skip
    text, tower = sorted(rope_of(config).parts, key=lambda one: one.part)
    assert text.sections == [[0, 16], [1, 24], [2, 24]]
    assert (text.base, text.rescaling) == (1e6, None)
    assert np.array(text.inv_freq).shape == (64, 3)
    assert (tower.head_dim, tower.width) == (80, 80)
    assert tower.sections == [[0, 20], [1, 20]]


HUNYUAN: dict[str, Any] = {
    "model_type": "hunyuan_v1_moe", "attention_head_dim": 128, "head_dim": 128, "hidden_size": 4096,
    "max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "rope_theta": 10000.0,
    "rope_scaling": {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0,
                     "mscale": 1.0, "mscale_all_dim": 1.0, "type": "dynamic"},
}  # fmt: skip
"""As of Hunyuan-A13B-Instruct."""


@pytest.mark.parametrize("family", ["hunyuan_v1_moe", "hunyuan_v1_dense"])
def test_hunyuan_has_a_larger_base_under_the_name_of_dynamic(family: str) -> None:
    part = only(HUNYUAN | {"model_type": family})
    assert (part.rescaling, part.dynamic) == (["ntk", {"alpha": 1000.0}], False)
    base = 1e4 * 1000.0 ** (128 / 126)
    assert np.allclose(part.inv_freq, base ** -(np.arange(64) / 64), rtol=1e-12)
    pytest.importorskip("torch")
    code = pytest.importorskip(f"transformers.models.{family}.modeling_{family}")
    made = next(one for name, one in vars(code).items() if name.endswith("RotaryEmbedding"))
    kind = made.__init__.__annotations__["config"]
    own = made(kind.from_dict({k: v for k, v in HUNYUAN.items() if k != "model_type"}))
    assert np.allclose(part.inv_freq, own.inv_freq.numpy(), rtol=1e-6)
    spec = rope_of(LLAMA | {"rope_scaling": HUNYUAN["rope_scaling"]})
    assert ("no-effect", "rope_scaling.alpha") in codes(spec)
    assert spec.parts[0].rescaling[0] == "dynamic"


@needs("smollm3")
def test_every_fourth_layer_of_smollm3_rests() -> None:
    config = {**LLAMA, "model_type": "smollm3", "num_hidden_layers": 36}
    part = only(config)
    assert part.without == [[3, 35, 4]]
    assert part.layers[:2] == [[0, 2, 1], [4, 6, 1]]


WARNED: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "original": (
        {"rope_scaling": {"type": "yarn", "factor": 4.0}},
        ("original-length-forgotten", "rope_scaling"),
    ),
    "one": (
        {"rope_scaling": {"type": "linear", "factor": 1.0}}, ("factor-one", "rope_scaling.factor"),
    ),
    "twice": (
        {"rope_scaling": LLAMA3, "rope_parameters": YARN},
        ("rescaling-of-rescaling", "rope_scaling"),
    ),
    "spelling": ({"rope_thetta": 1e6}, ("spelling", "rope_thetta")),
    "a singular": (
        {"model_type": "cohere2", "layer_type": ["full_attention"]}, ("spelling", "layer_type"),
    ),
    "words of others": (
        {"position_embedding_base": 1e6}, ("no-effect", "position_embedding_base"),
    ),
    "inner spelling": (
        {"rope_scaling": {**LLAMA3, "high_freq_facter": 4.0}},
        ("spelling", "rope_scaling.high_freq_facter"),
    ),
    "no effect": ({"partial_rotary_factor": 0.5}, ("no-effect", "partial_rotary_factor")),
    "inner no effect": (
        {"rope_scaling": {**LLAMA3, "beta_fast": 16}}, ("no-effect", "rope_scaling.beta_fast"),
    ),
    "guess": (
        {"model_type": "qwen2", "num_attention_heads": 33}, ("head-width-guessed", "hidden_size"),
    ),
    "lengths of others": ({"n_ctx": 4096}, ("no-effect", "n_ctx")),
    "half of two": (
        {"rope_scaling": {**YARN, "mscale": 0.7}}, ("no-effect", "rope_scaling.mscale"),
    ),
    "fields of a layer": (
        {"per_layer_config": {"0": {"head_dim": 64}}}, ("not-known", "per_layer_config"),
    ),
    "lost": (
        {"rope_theta": "leave out", "rope_parameters": {"rope_type": "linear", "factor": 2.0}},
        ("base-lost", "rope_parameters"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNED)
def test_what_a_reader_has_to_know_is_told(name: str) -> None:
    change, told = WARNED[name]
    config = {k: v for k, v in {**LLAMA, **change}.items() if v != "leave out"}
    spec = rope_of(config)
    assert told in codes(spec)
    assert rope_of(LLAMA).warnings == ()
    assert [one.severity for one in spec.warnings] == sorted(
        (one.severity for one in spec.warnings), reverse=True
    )


def test_a_field_without_effect_changes_nothing() -> None:
    spec = rope_of({**LLAMA, "rope_interleaved": True})
    assert spec.without_effect == ("rope_interleaved",)
    assert spec.parts == rope_of(LLAMA).parts


def test_a_null_factor_of_yarn_is_the_quotient_of_the_lengths_in_the_part_too() -> None:
    sizes = {"model_type": "qwen2", "max_position_embeddings": 131_072}
    told = {"rope_type": "yarn", "factor": None, "original_max_position_embeddings": 32_768}
    spec = rope_of({**sizes, "rope_parameters": told})
    plain = rope_of({**sizes, "rope_parameters": {**told, "factor": 4.0}})
    assert spec.parts == plain.parts
    assert spec.parts[0].rescaling[1]["factor"] == 4.0
    assert ("factor-null", "rope_parameters.factor") in codes(spec)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a word": ({"hidden_size": "4096"}, "hidden_size must be a positive integer, got '4096'"),
    "no heads": ({"num_attention_heads": 0}, "num_attention_heads must be a positive integer"),
    "true": ({"num_attention_heads": True}, "num_attention_heads must be a positive integer"),
    "a null base": ({"rope_theta": None}, "rope_theta must be a positive number"),
    "an infinite base": ({"rope_theta": float("inf")}, "rope_theta must be a positive number"),
    "more than any float": ({"rope_theta": 10**400}, "rope_theta must be a positive number"),
    "a list": ({"rope_scaling": [1]}, "rope_scaling must be a dict or null"),
    "a type": ({"rope_scaling": {"type": "yran", "factor": 2}}, r"did you mean 'yarn'\?"),
    "no factor": ({"rope_scaling": {"type": "linear"}}, "rope_scaling must have factor"),
    "a null factor": (
        {"rope_scaling": {"type": "linear", "factor": None}}, "rope_scaling must have factor",
    ),
    "a null factor of Gemma 4's": (
        {"rope_scaling": {"type": "proportional", "factor": None}}, "rope_scaling must have factor",
    ),
    "a null length": (
        {"rope_scaling": {**YARN, "original_max_position_embeddings": None}},
        "rope_scaling must have original_max_position_embeddings",
    ),
    "a ramp that falls": (
        {"rope_scaling": {**YARN, "beta_fast": 1, "beta_slow": 32}},
        "beta_slow 32 is more than beta_fast",
    ),
    "a factor of 0": (
        {"rope_scaling": {"type": "linear", "factor": 0}}, r"rope_scaling\.factor must be a number",
    ),
    "no length": (
        {"rope_scaling": {**YARN, "original_max_position_embeddings": 0}},
        r"rope_scaling\.original_max_position_embeddings must be a number > 0",
    ),
    "part of a head": (
        {"partial_rotary_factor": 0.5, "rope_scaling": {"type": "linear", "factor": 2.0}},
        "partial_rotary_factor must be 1 with rope_type 'linear'",
    ),
    "too many layers": ({"num_hidden_layers": 10**9}, "num_hidden_layers must be at most 10,000"),
    "lists": (
        {"rope_scaling": {
            "type": "longrope", "short_factor": [1.0], "long_factor": [2.0], "factor": 4.0,
            "original_max_position_embeddings": 4096,
        }},
        "short_factor must have shape",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_class_refuses_is_refused_by_name(name: str) -> None:
    change, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        rope_of({**LLAMA, **change})


@needs("gptj")
def test_a_rescaling_that_a_class_does_not_read_is_told() -> None:
    spec = rope_of({"model_type": "gptj", "rope_scaling": {"type": "linear", "factor": 2.0}})
    assert spec.without_effect == ("rope_scaling",)
    assert spec.parts[0].rescaling is None


def test_what_is_no_configuration_is_refused() -> None:
    with pytest.raises(TypeError, match="config must be a dict"):
        rope_of([LLAMA])  # type: ignore[arg-type]


def test_an_unknown_family_gives_no_card_and_the_nearest_name() -> None:
    spec = rope_of({**LLAMA, "model_type": "lama"})
    assert (spec.known, spec.parts) == (False, ())
    assert "did you mean 'llama'?" in spec.warnings[0].message
    assert rope_of({"hidden_size": 64}).warnings[0].severity == 2


DRAWN = [
    ("default", {}),
    ("linear", {"factor": 2.5}),
    ("dynamic", {"factor": 4.0}),
    ("yarn", {"factor": 8.0, "original_max_position_embeddings": 1024, "beta_fast": 16}),
    ("llama3", {**LLAMA3, "original_max_position_embeddings": 1024}),
    ("proportional", {"partial_rotary_factor": 0.5}),
]


@pytest.mark.parametrize(("kind", "told"), DRAWN)
def test_the_tables_of_transformers_have_these_frequencies(kind: str, told: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    models = pytest.importorskip("transformers.models.llama.modeling_llama")
    rope = {**told, "rope_type": kind, "rope_theta": 30000.0}
    config = {**LLAMA, "hidden_size": 1024, "rope_parameters": rope}
    config.pop("rope_theta")
    table = models.LlamaRotaryEmbedding(models.LlamaConfig(**config))
    part, own = only(config), table.inv_freq.numpy()
    assert np.allclose(part.inv_freq, own[own > 0], rtol=1e-6)
    assert part.attention_factor == pytest.approx(table.attention_scaling)
    assert kind in PARAMETERS


TYPED: dict[str, tuple[dict[str, Any], str]] = {
    "null for a pattern": (
        {"model_type": "gemma3_text", "sliding_window_pattern": None}, "sliding_window_pattern",
    ),
    "null for the wider heads": (
        {"model_type": "gemma4_text", "global_head_dim": None}, "global_head_dim",
    ),
    "no window": ({"model_type": "cohere2", "sliding_window": None}, "sliding_window"),
    "a text for a flag": ({"model_type": "falcon", "alibi": "false"}, "alibi"),
    "a text for a layout": ({"model_type": "deepseek_v3", "rope_interleave": "no"},
                            "rope_interleave"),
    "an empty list": ({"model_type": "smollm3", "no_rope_layers": []}, "no_rope_layers"),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPED)
def test_a_value_of_a_type_that_a_class_does_not_take_is_told(name: str) -> None:
    config, field = TYPED[name]
    assert ("other-type", field) in codes(rope_of(config))
    left = {k: v for k, v in config.items() if k != field}
    assert field not in {one for _, one in codes(rope_of(left))}


def test_a_window_is_missed_by_layers_that_have_one() -> None:
    config = {"model_type": "exaone4", "num_hidden_layers": 4, "sliding_window": None}
    full = ["full_attention"] * 4
    assert ("other-type", "sliding_window") in codes(rope_of(config))
    assert "sliding_window" not in {
        field for _, field in codes(rope_of({**config, "layer_types": full}))
    }


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"model_type": "cohere2_moe", "first_k_dense_replace": 2}, "first_k_dense_replace"),
        ({"model_type": "granite_swa", "layer_rope_theta": [1e4] * 23 + [0]}, "layer_rope_theta"),
    ],
)
def test_a_field_whose_rule_is_not_known_is_told(config: dict[str, Any], field: str) -> None:
    assert ("not-known", field) in codes(rope_of(config))


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "stablelm", "hidden_size": 400, "num_attention_heads": 4},
        {"model_type": "gptj", "rotary_dim": 63},
        {"model_type": "glm_moe_dsa", "qk_rope_head_dim": 63},
    ],
)
def test_an_odd_number_of_channels_is_told(config: dict[str, Any]) -> None:
    assert "width-odd" in {code for code, _ in codes(rope_of(config))}


@pytest.mark.parametrize("sections", [None, [], [64], [32, 32], [16, 16, 16, 16]])
def test_sections_are_as_many_as_axes(sections: Any) -> None:
    text = {**QWEN, "model_type": "qwen2_5_vl_text", "rope_scaling": {"mrope_section": sections}}
    with pytest.raises(ValueError, match="mrope_section must be 3 whole numbers"):
        rope_of(text)


@needs("glm4v_moe_text")
def test_sections_that_its_class_has_are_taken_where_none_are_told() -> None:
    """8, 12 and 12 pairs: `Glm4vMoeTextRotaryEmbedding`."""
    config = {"model_type": "glm4v_moe_text", "head_dim": 128, "rope_theta": 1e4}
    assert only(config).sections == [[0, 8], [1, 12], [2, 12]]
    with pytest.raises(ValueError, match="add up to the 21 pairs"):
        rope_of(config | {"head_dim": 84})


NESTED = {
    kind: {"rope_type": "linear", "factor": 2.0, "rope_theta": base}
    for kind, base in (("full_attention", 5e5), ("sliding_attention", 3e4))
}


def tables_of(config: dict[str, Any]) -> Any:
    """The rotary embedding of a class with several kinds of layers, from transformers."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    name = config["model_type"]
    code = import_module(f"transformers.models.{name}.modeling_{name}")
    made = next(one for name, one in vars(code).items() if name.endswith("RotaryEmbedding"))
    return made(transformers.CONFIG_MAPPING[name].from_dict(copy.deepcopy(config)))


@needs("ultrabert", "lfm3", "mimo_v2_flash")
@pytest.mark.parametrize("field", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("family", ["ultrabert", "lfm3", "mimo_v2_flash"])
def test_an_entry_for_each_kind_of_layer_is_read_in_both_words(family: str, field: str) -> None:
    """Of `mimo_v2_flash` a rescaling that tells no fraction takes the whole head, too."""
    config = {"model_type": family, field: NESTED}
    spec = rope_of(config)
    assert spec.parts
    assert spec.without_effect == ()
    tables = tables_of(config)
    for part in spec.parts:
        own = getattr(tables, f"{part.kind}_inv_freq").numpy()
        assert np.allclose(part.inv_freq, own, rtol=1e-6), part.kind
        assert part.base_from == f"{field}.{part.kind}.rope_theta"
    assert rope_of({"model_type": "lfm3", "rope_scaling": None}).parts == rope_of(
        {"model_type": "lfm3"}).parts  # fmt: skip


@needs("neomme")
def test_where_the_old_word_is_read_by_another_rule_this_is_told() -> None:
    config = {"model_type": "neomme", "rope_scaling": NESTED}
    spec = rope_of(config)
    assert codes(spec) == [("not-known", "rope_scaling")]
    assert spec.parts == rope_of({"model_type": "neomme"}).parts, "as the warning says"
    own = tables_of(config).full_attention_inv_freq.numpy()
    assert len(own) > len(next(p for p in spec.parts if p.kind == "full_attention").inv_freq)


@pytest.mark.parametrize("name", ["neucodec", "xcodec2"])
def test_a_note_on_a_part_names_it(name: str) -> None:
    (note,) = (w for w in rope_of({"model_type": name}).warnings if w.code == "none-rotates")
    words = "None of the layers of semantic_model_config rotates: semantic_model_config."
    assert note.message == f"{words}position_embeddings_type is 'relative_key'."
    config = {"model_type": name, "semantic_model_config": {"position_embeddings_type": "rotary"}}
    (note,) = (w for w in rope_of(config).warnings if w.code == "head-width-guessed")
    names = "semantic_model_config.hidden_size and semantic_model_config.num_attention_heads"
    assert note.message.startswith(f"{names} not given")
    sizes = {"hidden_size": 100, "num_attention_heads": 16}
    config["semantic_model_config"] |= sizes
    (note,) = (w for w in rope_of(config).warnings if w.code == "head-width-guessed")
    names = "semantic_model_config.hidden_size // semantic_model_config.num_attention_heads"
    assert note.message.startswith(f"{names} is no whole number")


def test_a_position_that_numbers_heads_is_told() -> None:
    records = json.loads((atlas.RESULTS / "transformers.json").read_text("utf8"))["families"]
    noted = {k for k, v in records.items() if atlas.BY_HEAD in json.dumps(v["rotations"])}
    told = {name for name, rule in load_rules()["types"].items() if rule.get("by_head")}
    assert told == noted == {"neucodec", "xcodec2"}
    for name in told:
        (note,) = (w for w in rope_of({"model_type": name}).warnings if w.code == "by-head")
        assert note.severity == 1
        assert "A position is the number of the head here" in note.message


def test_what_layers_that_rest_do_not_read_is_named() -> None:
    """Bamba attends in no layer unless told; Granite 4 rotates unless its encoding is `nope`."""
    for config, severity in (
        ({"model_type": "bamba"}, 1),
        ({"model_type": "granitemoehybrid", "position_embedding_type": "nope",
          "num_hidden_layers": 2, "layer_types": ["attention"] * 2}, 0),
    ):  # fmt: skip
        spec = rope_of(config | {"rope_theta": 1e6, "rope_scaling": YARN})
        assert spec.parts == ()
        assert set(spec.without_effect) == {"rope_theta", "rope_scaling"}
        assert {one.severity for one in spec.warnings} == {severity}
        listed = {"attn_layer_indices": [1], "position_embedding_type": "rope"}
        assert rope_of({**config, "rope_scaling": YARN, **listed}).without_effect in (
            (), ("attn_layer_indices",), ("position_embedding_type",))  # fmt: skip


def test_a_file_of_diffusers_says_whose_class_it_is_and_what_it_tells() -> None:
    config = {"_class_name": "WanTransformer3DModel", "rope_theta": 256.0, "rope_axes_dim": [16, 8]}
    spec = rope_of(config)
    assert (spec.known, spec.parts, len(spec.warnings)) == (False, (), 1)
    assert spec.warnings[0].severity == 1
    assert spec.warnings[0].message == (
        "WanTransformer3DModel is a class of diffusers, for which there is no rule. Of its "
        "rotation it says: rope_theta 256.0, rope_axes_dim [16, 8]."
    )


def test_an_arrangement_of_axes_that_is_not_read_is_told() -> None:
    text = {"model_type": "qwen3_vl_text", "rope_theta": 5e6, "rope_scaling": {
        "rope_type": "default", "mrope_section": [24, 20, 20], "mrope_interleaved": False,
    }}  # fmt: skip
    told = ("no-effect", "rope_scaling.mrope_interleaved")
    assert told in codes(rope_of(text))
    text["rope_scaling"]["mrope_interleaved"] = True  # type: ignore[index]
    assert told not in codes(rope_of(text))


@needs("fuyu", "persimmon")
def test_fields_of_a_part_may_stand_outside() -> None:
    part = only({"model_type": "fuyu", "hidden_size": 4096, "num_attention_heads": 64})
    assert (part.path, part.head_dim, part.width) == ("", 64, 32)


def test_every_family_that_is_recorded_has_a_rule_or_says_why_not() -> None:
    recorded = json.loads((atlas.RESULTS / "transformers.json").read_text("utf-8"))["families"]
    wanted = {name for name, one in recorded.items() if one["status"] == "recorded"}
    types = load_rules()["types"].values()
    ruled = {rule["family"] for rule in types if "rotations" in rule}
    assert wanted - ruled <= {rule["family"] for rule in types if rule.get("null")}
    assert len(ruled & wanted) > 0.9 * len(wanted)


def test_dinov3_turns_by_fractions_of_an_image() -> None:
    config = {
        "model_type": "dinov3_vit", "hidden_size": 384, "num_attention_heads": 6,
        "num_hidden_layers": 12, "patch_size": 16, "image_size": 512, "rope_theta": 100.0,
    }  # fmt: skip
    part = only(config)
    waves = np.array(part.inv_freq)
    # the fastest pair of each axis makes two turns from edge to edge, 32 patches apart
    assert (part.head_dim, part.width, len(waves)) == (64, 64, 32)
    assert waves.max(axis=0) * 32 == pytest.approx([4 * np.pi] * 2)
    assert np.allclose(np.array(only({**config, "image_size": 256}).inv_freq), 2 * waves)
    (caution,) = rope_of({k: v for k, v in config.items() if k != "image_size"}).warnings
    assert (caution.code, caution.field) == ("image-size-guessed", "image_size")


def test_gemma_4_ends_with_full_attention() -> None:
    text = {"model_type": "gemma4_text", "num_hidden_layers": 5, "head_dim": 256}
    found = {part.kind: part for part in rope_of(text).parts}
    assert found["sliding_attention"].layers == [[0, 3, 1]]
    assert found["full_attention"].layers == [[4, 4, 1]]
    assert (found["full_attention"].head_dim, found["full_attention"].width) == (512, 128)


def test_a_base_inside_that_the_class_does_not_read_is_told() -> None:
    config = {"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40}
    spec = rope_of({**config, "attn_config": {"kv_n_heads": 8, "rope_theta": 500000}})
    assert [(part.head_dim, part.base) for part in spec.parts] == [(128, 1e4)]
    assert ("base-lost", "attn_config.rope_theta") in codes(spec)


@pytest.mark.parametrize(
    ("config", "layers"),
    [
        ({"model_type": "exaone4", "sliding_window": None}, [[0, 3, 1]]),
        ({"model_type": "afmoe", "sliding_window": None}, None),
        ({"model_type": "falcon", "alibi": None}, [[0, 3, 1]]),
        ({"model_type": "granitemoehybrid", "position_embedding_type": "rotary"}, None),
        ({"model_type": "granitemoehybrid", "position_embedding_type": "rope"}, [[1, 3, 2]]),
    ],
)
def test_a_switch_turns_layers_as_its_class_reads_it(config: dict, layers: list | None) -> None:
    """As modeling files say: `sliding_window is None or is_sliding`, `not alibi`, `== "rope"`."""
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 4}
    full = {"layer_types": ["full_attention"] * 4} if "sliding_window" in config else {}
    full |= {"layer_types": ["mamba", "attention"] * 2} if "granite" in config["model_type"] else {}
    parts = rope_of(sizes | full | config).to_dict()["parts"]
    assert [part["layers"] for part in parts] == ([layers] if layers else [])


def test_a_factor_of_1_changes_nothing_only_where_no_frequency_and_no_factor_changes() -> None:
    ones, rising = [1.0] * 64, [1.0 + i for i in range(64)]
    near = "nothing changes up to max_position_embeddings; beyond it frequencies do."
    original = {"original_max_position_embeddings": 4096}
    for told, words in (
        ({"rope_type": "linear"}, "linear changes nothing."),
        (YARN | {"factor": 1}, "yarn changes nothing."),
        (LLAMA3 | {"factor": 1.0}, "llama3 changes nothing."),
        ({"rope_type": "proportional"}, "proportional changes nothing."),
        ({"rope_type": "dynamic"}, near),
        (YARN | {"factor": 1, "attention_factor": 1.5}, None),
        ({"rope_type": "proportional", "partial_rotary_factor": 0.5}, None),
        ({"rope_type": "longrope", "short_factor": rising, "long_factor": rising} | original, None),
        ({"rope_type": "longrope", "short_factor": ones, "long_factor": rising} | original, None),
    ):
        spec = rope_of(LLAMA | {"rope_scaling": {"factor": 1.0} | told})
        said = [one.message for one in spec.warnings if one.code == "factor-one"]
        assert said == ([f"rope_scaling.factor is 1: {words}"] if words else [])


def test_what_a_parameter_beside_the_dict_would_say_is_named() -> None:
    """Those of a rescaling, whatever their names, and a width of layers with a window."""
    names = sorted({*sum(PARAMETERS.values(), ())} - {"original_max_position_embeddings"})
    for field in (*names, "swa_head_dim"):
        assert rope_of(LLAMA | {field: 0.7}).without_effect == (field,)
    assert rope_of(LLAMA | {"type": "yarn"}).without_effect == ("type",)
    assert rope_of(LLAMA | {"type": "model"}).without_effect == ()
    gemma = {"model_type": "gemma3_text", "_sliding_window_pattern": 2}
    assert rope_of(gemma).without_effect == ("_sliding_window_pattern",)
    assert len(rope_of(gemma).parts[0].layers) == 5, "its class keeps a pattern of 6"
    listed = gemma | {"layer_types": ["full_attention"] * 26}
    assert rope_of(listed).warnings == ()


def test_a_base_in_the_dict_that_is_not_read_is_lost() -> None:
    left = {k: v for k, v in LLAMA.items() if k != "rope_theta"}
    for given, where in (
        ({"rope_type": "default", "rope_theta": 1e6}, "rope_theta"),
        ({"full_attention": {"rope_theta": 1000000}}, "full_attention.rope_theta"),
    ):
        spec = rope_of(left | {"rope_scaling": YARN, "rope_parameters": given})
        assert spec.parts[0].base == 1e4
        assert spec.warnings[0].severity == 2
        assert spec.warnings[0].message == (
            f"rope_parameters is not read beside rope_scaling; its {where} 1,000,000 is lost: the "
            "base is the class's default 10,000."
        )
        assert f"rope_parameters.{where}" in spec.without_effect
    same = {"rope_type": "default", "rope_theta": QWEN["rope_theta"]}
    spec = rope_of(QWEN | {"rope_scaling": YARN, "rope_parameters": same})
    assert {one.severity for one in spec.warnings} == {0}, "they say the same"


@needs("gemma3")
def test_a_base_that_one_kind_of_layer_lost_is_of_that_kind() -> None:
    spec = rope_of({"model_type": "gemma3_text", "_rope_theta": 1e6})
    assert spec.warnings[0].message.startswith("_rope_theta is not read for sliding_attention: ")


@needs("ministral", "qwen2")
def test_a_null_width_is_told_where_its_class_fails() -> None:
    """Of Ministral's class without any, too, which AutoConfig takes for Mistral's with layers."""
    listed = {"model_type": "mistral", "layer_types": ["full_attention"] * 32}
    null = {"model_type": "qwen2", "head_dim": None}
    for config in ({"model_type": "ministral"}, listed, null):
        assert ("head-width-missing", "head_dim") in codes(rope_of(config))
        assert codes(rope_of(config | {"head_dim": 128})) == []
    plain = rope_of({"model_type": "mistral", "head_dim": None})
    assert ("head-width-missing", "head_dim") not in codes(plain)
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    for name, width in (("ministral", {}), ("qwen2", {"head_dim": None})):
        sizes = {"hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2}
        more = {"num_hidden_layers": 1, "vocab_size": 64, "intermediate_size": 32}
        config = transformers.CONFIG_MAPPING[name].from_dict(sizes | more | width)
        with pytest.raises(TypeError):
            transformers.AutoModel.from_config(config)


def test_fields_about_something_else_are_listed() -> None:
    spec = rope_of({**LLAMA, "head_dim": 128, "vocab_size": 9, "quantization_config": {"bits": 4}})
    assert spec.others == (
        "hidden_size",
        "num_attention_heads",
        "vocab_size",
        "quantization_config.bits",
    )
    inner = {"model_type": "clip_vision_model", "image_size": 224, "id2label": {"0": "European"}}
    more = {"x": {"y": {"z": 1}, "rope_scaling": YARN}, "none": {}}
    spec = rope_of({"model_type": "llava", "text_config": LLAMA, "vision_config": inner} | more)
    assert {"vision_config.image_size", "vision_config.id2label", "x.y.z"} <= {*spec.others}
    assert spec.without_effect == ("x.rope_scaling",)
    assert not {"vision_config", "text_config", "x", "none"} & {*spec.others}
    assert rope_of({"model_type": "none_such", "x": 1}).others == ()


@needs("gpt_oss", "apertus")
def test_null_keeps_a_rescaling_of_the_class_and_this_is_told() -> None:
    for family, kind in (("gpt_oss", "yarn"), ("apertus", "llama3")):
        for field in ("rope_scaling", "rope_parameters"):
            spec = rope_of({"model_type": family, field: None})
            assert spec.parts[0].rescaling[0] == kind
            (said,) = [one for one in spec.warnings if one.code == "own-rescaling"]
            assert (said.severity, said.field) == (1, field)
        (said,) = [o for o in rope_of({"model_type": family}).warnings if o.code == "own-rescaling"]
        assert (said.severity, said.field) == (0, "rope_parameters")
    assert "own-rescaling" not in dict(
        codes(rope_of({"model_type": "llama", "rope_scaling": None}))
    )


@needs("gemma4", "embedding_gemma2")
def test_a_tower_that_is_not_given_and_not_made_has_no_card() -> None:
    """As the class is loaded: its own vision_config is None then."""
    transformers = pytest.importorskip("transformers")
    for family in ("gemma4", "embedding_gemma2"):
        for config in ({}, {"vision_config": None}):
            made = transformers.CONFIG_MAPPING[family].from_dict(dict(config))
            assert made.vision_config is None
            parts = rope_of({"model_type": family, **config}).parts
            assert {one.part for one in parts} == {"text"}
    parts = rope_of({"model_type": "gemma4", "vision_config": {}}).parts
    assert {one.part for one in parts} == {"text", "vision"}


@needs("qwen2_5_vl")
def test_the_heads_of_a_tower_follow_from_its_width_alone() -> None:
    """Its attention takes the quotient, and its table head_dim: with another one it fails."""
    tower = {"hidden_size": 128, "num_heads": 4, "head_dim": 16}
    with pytest.raises(ValueError, match=r"head_dim must be 32, as hidden_size // num_at"):
        rope_of({"model_type": "qwen2_5_vl", "vision_config": tower})
    towers = rope_of({"model_type": "qwen2_5_vl", "vision_config": {**tower, "head_dim": 32}}).parts
    assert towers[0].head_dim == 32
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl as code

    made = transformers.CONFIG_MAPPING["qwen2_5_vl"].sub_configs["vision_config"]
    small = {**tower, "depth": 1, "intermediate_size": 32, "out_hidden_size": 64}
    for width, fails in ((32, False), (16, True)):
        config = made.from_dict({**small, "head_dim": width})
        model = code.Qwen2_5_VisionTransformerPretrainedModel(config).eval()
        pixels, grid = torch.zeros(16, 1176), torch.tensor([[1, 4, 4]])
        if fails:
            with pytest.raises(RuntimeError):
                model(pixels, grid_thw=grid)
        else:
            model(pixels, grid_thw=grid)


@needs("ernie4_5_vl_moe")
def test_rows_and_columns_in_turn_have_as_many_pairs_each() -> None:
    rope = {"rope_type": "default", "rope_theta": 5e5, "mrope_section": [24, 20, 20]}
    with pytest.raises(ValueError, match="must begin with two equal numbers"):
        rope_of({"model_type": "ernie4_5_vl_moe_text", "rope_parameters": rope})
    rope["mrope_section"] = [22, 22, 20]
    assert rope_of({"model_type": "ernie4_5_vl_moe_text", "rope_parameters": rope}).parts


@needs("nemotron_h_omni", "molmo2")
def test_a_part_by_another_name_is_warned_of() -> None:
    transformers = pytest.importorskip("transformers")
    for family, name, part in (
        ("nemotron_h_omni", "llm_config", "text_config"),
        ("molmo2", "vit_config", "vision_config"),
    ):
        spec = rope_of({"model_type": family, name: {"hidden_size": 96, "rope_theta": 5e5}})
        assert ("not-known", name) in codes(spec)
        assert name in spec.read
        made = transformers.CONFIG_MAPPING[family].from_dict({name: {"hidden_size": 96}})
        assert getattr(made, part).hidden_size == 96


@needs("step3p5_vision", "falcon")
def test_sizes_by_the_names_of_older_files_count() -> None:
    tower = {"model_type": "step3p5_vision", "width": 1024, "layers": 12, "heads": 8}
    (part,) = rope_of({"model_type": "step3p7", "vision_config": tower}).parts[:1]
    assert (part.head_dim, part.layers) == (128, [[0, 11, 1]])
    made = import_module("transformers").FalconConfig.from_dict
    falcon = {"model_type": "falcon", "num_attention_heads": 32}
    for own in ({"n_embed": 4096}, {"n_embed": 4096, "hidden_size": 64}, {"hidden_size": 4096}):
        for more in ({}, {"n_embed": None}):
            (part,) = rope_of({**falcon, **more, **own}).parts
            assert part.head_dim == made({**falcon, **more, **own}).hidden_size // 32 == 128


def test_an_odd_number_of_channels_under_a_rescaling_names_its_field() -> None:
    config = {"model_type": "glm4_moe", "head_dim": 128, "partial_rotary_factor": 0.4}
    scaling = {"type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scaling["original_max_position_embeddings"] = 8192
    words = "partial_rotary_factor makes 51 channels, an odd number: with llama3 there is no card"
    with pytest.raises(ValueError, match=words):
        rope_of(config | {"rope_scaling": scaling})
    (part,) = rope_of(config | {"rope_scaling": {"type": "linear", "factor": 2.0}}).parts
    assert part.width == 52


def test_the_same_rescaling_twice_is_one() -> None:
    scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    both = {"rope_scaling": scaling, "rope_parameters": {**scaling, "rope_theta": 1e6}}
    assert not any(one.severity for one in rope_of({**QWEN, **both}).warnings)
    both["rope_scaling"] = {**scaling, "factor": 2.0}
    assert "rescaling-of-rescaling" in {one.code for one in rope_of({**QWEN, **both}).warnings}


def test_a_rescaling_without_a_type_is_told() -> None:
    given = {"factor": 8.0, "low_freq_factor": 1.0, "rope_theta": 1e4}
    spec = rope_of({"model_type": "llama", "rope_scaling": given})
    assert spec.parts[0].rescaling is None
    words = "rope_scaling has factor and no rope_type: it is read as 'default'."
    assert [one.message for one in spec.warnings if one.code == "type-missing"] == [words]
    spec = rope_of({"model_type": "llama", "rope_parameters": {"rope_theta": 1e4}})
    assert "type-missing" not in {one.code for one in spec.warnings}


def test_a_length_written_as_a_float_is_a_whole_number() -> None:
    given = {**YARN, "original_max_position_embeddings": 32768.0}
    (part,) = rope_of({**QWEN, "rope_scaling": given}).parts
    assert (part.trained_length, type(part.trained_length)) == (32768, int)


@pytest.mark.parametrize(("rope", "severity"), [(True, 1), (False, 0)])
def test_a_rotation_that_a_dict_asks_for_in_vain_is_told(rope: bool, severity: int) -> None:
    """MPT as llm-foundry writes it; its class in transformers knows ALiBi alone."""
    attention = {"alibi": not rope, "rope": rope, "rope_impl": "dail", "rope_theta": 10000}
    found = rope_of({"model_type": "mpt", "attn_config": attention}).warnings
    said = {one.field: one.severity for one in found}
    assert said["attn_config.rope_impl"] == said["attn_config.rope_theta"] == severity
    assert ("attn_config.rope" in said) == rope


def test_an_odd_number_of_channels_is_told_with_the_fields_that_make_it() -> None:
    words = (
        r"n_embed // num_attention_heads, 8192 // 71, is an odd .*; num_attention_heads not given"
    )
    with pytest.raises(ValueError, match=words):
        rope_of({"model_type": "falcon", "n_embed": 8192, "n_head": 128})


@needs("sam2_video")
def test_a_base_in_the_dict_that_a_field_outside_overrules_is_lost() -> None:
    rope = {"rope_type": "axial", "rope_theta": 500.0}
    config = {"model_type": "sam2_video", "rope_parameters": rope}
    spec = rope_of(config | {"memory_attention_rope_theta": 10000.0})
    assert {part.base for part in spec.parts if not part.path} == {1e4}
    assert ("base-lost", "rope_parameters.rope_theta") in codes(spec)
    same = rope_of(config | {"memory_attention_rope_theta": 500.0})
    assert ("base-lost", "rope_parameters.rope_theta") not in codes(same)


@needs("fuyu")
def test_a_class_may_leave_the_new_spelling_where_a_part_stands_outside() -> None:
    given = {"rope_parameters": {"rope_type": "default", "rope_theta": 777.0}}
    spec = rope_of({"model_type": "fuyu", "rope_theta": 5e4, **given})
    assert spec.parts[0].base == 5e4
    assert ("no-effect", "rope_parameters") in codes(spec)
    transformers = pytest.importorskip("transformers")
    made = transformers.CONFIG_MAPPING["fuyu"].from_dict({"rope_theta": 5e4, **given})
    assert made.text_config.rope_parameters["rope_theta"] == 5e4


@needs("molmo2", "efficientloftr")
def test_a_field_that_chooses_layers_to_rescale_is_warned_of() -> None:
    linear = {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0}
    text = {"model_type": "molmo2_text", "rope_parameters": linear, "rope_scaling_layers": [3, 7]}
    assert ("not-known", "rope_scaling_layers") in codes(rope_of(text))
    (part,) = rope_of({"model_type": "efficientloftr"}).parts
    assert part.layers == [[0, 3, 1]]


def test_what_decides_something_else_is_not_said_to_have_no_effect_at_all() -> None:
    """Fields of released files: Llama 4 Maverick, RoFormer, Kimi Linear."""
    inner = {"model_type": "llama4_text", "interleave_moe_layer_step": 2}
    spec = rope_of({"model_type": "llama4", "text_config": inner})
    assert "text_config.interleave_moe_layer_step" in spec.others
    spec = rope_of({"model_type": "roformer", "rotary_value": False})
    assert "rotary_value has no effect on the rotation." in [one.message for one in spec.warnings]
    spec = rope_of({"model_type": "kimi_linear", "qk_rope_head_dim": 64})
    assert {one.severity for one in spec.warnings} == {0}


def test_a_width_that_no_field_tells_is_the_default_of_the_class() -> None:
    (part,) = rope_of({"model_type": "gemma3_text", "num_hidden_layers": 5}).parts
    assert part.head_dim_from == part.width_from == "the class's default"
    part = rope_of({"model_type": "gemma3_text", "head_dim": 256}).parts[0]
    assert part.head_dim_from == part.width_from == "head_dim"


@needs("gemma3", "modernbert", "olmo3")
def test_an_entry_for_a_kind_that_no_layer_has_is_told() -> None:
    for family in ("gemma3_text", "modernbert", "olmo3"):
        full = {"rope_type": "default", "rope_theta": 1e6}
        given = {"full_attention": full, "sliding_attention": {**full, "rope_theta": 5.0}}
        layers = {"num_hidden_layers": 2, "layer_types": ["full_attention"] * 2}
        spec = rope_of({"model_type": family, "rope_parameters": given} | layers)
        assert [part.base for part in spec.parts] == [1e6]
        assert spec.without_effect == ("rope_parameters.sliding_attention",)
        said = next(one for one in spec.warnings if one.code == "no-effect")
        assert said.severity == 1
        assert said.message.endswith("no layer is of this kind.")
        made = load_rules()["types"][family]["rope"]["kinds"]["sliding_attention"]["default"]
        given["sliding_attention"] = {"rope_type": "default", "rope_theta": made}
        spec = rope_of({"model_type": family, "rope_parameters": given} | layers)
        assert [one.severity for one in spec.warnings if one.code == "no-effect"] == [0]


@needs("gptj")
def test_of_two_spellings_of_a_field_the_lost_one_is_named() -> None:
    spec = rope_of({"model_type": "gptj", "hidden_size": 2048, "n_embd": 1024, "n_head": 16})
    assert ("no-effect", "n_embd") in codes(spec)
    assert spec.without_effect == ("n_embd",)
    transformers = pytest.importorskip("transformers")
    made = transformers.GPTJConfig.from_dict({"hidden_size": 2048, "n_embd": 1024})
    assert made.n_embd == made.hidden_size == spec.parts[0].head_dim * 16


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "gpt2", "gpt_bigcode"])
@pytest.mark.parametrize("value", ["rope", "rotary"])
def test_a_family_that_does_not_rotate_and_is_asked_to_has_a_warning(family, value) -> None:
    spec = rope_of({"model_type": family, "position_embedding_type": value})
    assert [(one.code, one.severity) for one in spec.warnings] == [("no-effect", 1)]
    assert not rope_of({"model_type": family, "position_embedding_type": "absolute"}).warnings


@needs("qwen3_vl_text")
def test_interleaved_sections_that_a_head_has_not_are_told() -> None:
    config = {"model_type": "qwen3_vl_text", "head_dim": 128, "rope_theta": 5e6}
    for sections, fine in (([24, 20, 20], True), ([99, 20, 20], False), ([4, 40, 20], False)):
        rope = {"rope_type": "default", "mrope_section": sections, "mrope_interleaved": True}
        spec = rope_of({**config, "rope_scaling": rope})
        told = ("sections-differ", "rope_scaling.mrope_section") in codes(spec)
        assert told != fine, sections
    assert "the 64 pairs of a head make it [23, 21, 20]." in str(spec.warnings)


@needs("llava")
def test_a_rescaling_where_nothing_rotates_may_be_refused() -> None:
    for rope, may in ((YARN, True), ({"type": "default"}, False)):
        spec = rope_of({"model_type": "llava", "text_config": LLAMA, "rope_scaling": rope})
        said = (
            "rope_scaling has no effect on the rotation"
            + ", and its class may refuse the file" * may
            + "."
        )
        assert said in [one.message for one in spec.warnings]


@needs("recurrent_gemma")
def test_a_list_from_which_a_class_makes_its_layers_is_not_silent() -> None:
    own = {"model_type": "recurrent_gemma", "num_hidden_layers": 3, "head_dim": 256}
    released = ["recurrent", "recurrent", "attention"]
    assert not rope_of({**own, "block_types": released}).warnings
    spec = rope_of({**own, "block_types": ["recurrent", "attention"]})
    assert codes(spec) == [("not-known", "block_types")]


@needs("pixtral")
def test_a_tower_whose_attention_takes_no_head_width_refuses_another() -> None:
    sizes = {"model_type": "pixtral", "hidden_size": 64, "num_attention_heads": 2}
    assert only({**sizes, "head_dim": 32}).head_dim == 32
    with pytest.raises(ValueError, match="head_dim must be 32"):
        rope_of({**sizes, "head_dim": 64})
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    more = {"num_hidden_layers": 1, "intermediate_size": 8, "image_size": 32}
    for width, fine in ((32, True), (64, False)):
        config = transformers.PixtralVisionConfig.from_dict({**sizes, **more, "head_dim": width})
        model = transformers.AutoModel.from_config(config)
        try:
            model(torch.zeros(1, 3, 32, 32))
        except RuntimeError:
            assert not fine
        else:
            assert fine


LISTS = {"short_factor": [1.0 + i / 9 for i in range(32)], "long_factor": [2.0] * 32}


@needs("phi3", "phimoe", "mistral4")
def test_types_that_a_class_takes_with_keys_of_its_own_are_not_refused() -> None:
    lengths = {"max_position_embeddings": 131072, "original_max_position_embeddings": 4096}
    sizes = {"hidden_size": 256, "num_attention_heads": 4, **lengths}
    for kind in ("yarn", "su", "longrope"):
        part = only({"model_type": "phi3", **sizes, "rope_scaling": {"type": kind, **LISTS}})
        assert part.rescaling[0] == "longrope"
    rope = {**LISTS, "type": "longrope", "original_max_position_embeddings": 4096}
    rope |= {"short_mscale": 1.24, "long_mscale": 1.24}
    spec = rope_of({"model_type": "phimoe", **sizes, "rope_scaling": rope})
    assert ("not-known", "rope_scaling.type") in codes(spec)
    assert not spec.without_effect
    del rope["short_mscale"]
    with pytest.raises(ValueError, match="must have short_mscale"):
        rope_of({"model_type": "phimoe", **sizes, "rope_scaling": rope})
    rope = {"type": "linear", "factor": 2.0, "original_max_position_embeddings": 8192}
    rope |= {"llama_4_scaling_beta": 0.1, "rope_theta": 1e4}
    spec = rope_of({"model_type": "mistral4", "rope_parameters": rope})
    assert spec.parts[0].rescaling == ["linear", {"factor": 2.0}]
    assert "key-missing" not in dict(codes(spec))
    del rope["llama_4_scaling_beta"]
    assert "key-missing" in dict(
        codes(rope_of({"model_type": "mistral4", "rope_parameters": rope}))
    )


@pytest.mark.parametrize("family", ["mistral4", "ministral3"])
def test_a_key_that_a_class_wants_for_something_else_is_not_said_to_do_nothing(family: str) -> None:
    wanted = {"original_max_position_embeddings": 8192, "llama_4_scaling_beta": 0.1}
    told = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e6, **wanted}
    config = {**LLAMA, "model_type": family, "rope_parameters": told}
    spec = rope_of({k: v for k, v in config.items() if k != "rope_theta"})
    assert not {one.field.split(".")[-1] for one in spec.warnings} & {*wanted}
