"""The page's evaluator of the rules (configuration.js) against ropescope's, word by word.

Public configurations, and drawn ones of every family: widths, bases, rescalings and layers in old
and new spellings, left out, misspelt, and of the wrong kind.
"""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

import atlas
from ropescope.configuration import load_rules, rope_of

TWIN = Path(__file__).parents[1] / "tools" / "rope_of.mjs"
ROWS = json.loads((atlas.RESULTS / "checkpoints.json").read_text("utf8"))
RULES = json.dumps(load_rules())
WIDTHS = [64, 80, 96, 128, 256, 7, 4096.0, 0, -2, True, None, "128"]
BASES = [10_000, 10000.0, 5e5, 1e6, 1_000_000.0, 1e-6, 1, 0, -3.5, True, None, "1e4"]
FACTORS = [1, 1.0, 2.0, 4, 8.0, 32.0, 0.5, 0, -1.0, None, "4"]
LENGTHS = [2048, 4096, 8192, 32_768, 131_072, 262_144, 1, None]
SPELT = ["rope_thetta", "rope_scalling", "partial_rotary_facter", "rotary_pct", "rope_interleave"]
PARTIAL = ["partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_dim", "partial_rotary_facto"]


def refused(text: str) -> dict[str, Any]:
    """What Python makes of a configuration, as the twin says it."""
    try:
        return {"made": rope_of(json.loads(text)).to_dict()}
    except (TypeError, ValueError) as error:
        return {"refused": str(error)}


def same(ours: Any, twin: Any, where: str = "") -> None:
    """Assert that two JSON values are equal, numbers to 1e-12."""
    numbers = [type(x) in (int, float) for x in (ours, twin)]
    if all(numbers):
        assert math.isclose(ours, twin, rel_tol=1e-12), f"{where}: {ours!r}, {twin!r}"
    elif isinstance(ours, dict) and isinstance(twin, dict):
        assert set(ours) == set(twin), where
        for name, value in ours.items():
            same(value, twin[name], f"{where}.{name}")
    elif isinstance(ours, list) and isinstance(twin, list):
        assert len(ours) == len(twin), f"{where}: {ours!r}, {twin!r}"
        for i, (one, other) in enumerate(zip(ours, twin, strict=True)):
            same(one, other, f"{where}[{i}]")
    else:
        assert ours == twin, f"{where}: {ours!r}, {twin!r}"


def compared(node, texts: list[str]) -> int:
    """Assert that both evaluators say the same; return how many configurations were made."""
    found = node.ask(TWIN.as_uri(), "ropeOfAll", texts, RULES)
    made = 0
    for text, twin in zip(texts, found, strict=True):
        try:
            same(refused(text), twin)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{text[:1500]}") from None
        made += "made" in twin
    return made


def rescaling(draw: random.Random) -> Any:
    """A value of rope_scaling or rope_parameters, at times wrong."""
    kinds = ["default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"]
    kind = draw.choice([*kinds, "su", "mrope", "yarm", 7, None])
    found: dict[str, Any] = {draw.choice(["rope_type", "rope_type", "type"]): kind}
    maybe = {
        "alpha": draw.choice(FACTORS),
        "factor": draw.choice(FACTORS[:6] if draw.random() < 0.8 else FACTORS),
        "original_max_position_embeddings": draw.choice(LENGTHS),
        "low_freq_factor": draw.choice([1.0, 1, 2.0]),
        "high_freq_factor": draw.choice([4.0, 4, 1.0]),
        "beta_fast": draw.choice([32, 32.0, 1, 0]),
        "beta_slow": draw.choice([1, 1.0, 64]),
        "mscale": draw.choice([0.707, 1.0, 0]),
        "mscale_all_dim": draw.choice([0.707, 1.0, None]),
        "attention_factor": draw.choice([1.0, 1.2, 0]),
        "truncate": draw.choice([True, False, 1]),
        "short_factor": [1.0] * draw.choice([16, 32, 48, 64]),
        "long_factor": [2.5] * draw.choice([16, 32, 48, 64]),
        "mrope_section": draw.choice(
            [[16, 24, 24], [11, 11, 10], [8, 12, 12], "x", [], [64], None]
        ),
        "mrope_interleaved": draw.choice([True, False]),
        "rope_theta": draw.choice(BASES),
        "partial_rotary_factor": draw.choice([1, 0.5, 0.25, 0, 2]),
        "original_max_position_embedding": 4096,
    }
    needed = {"yarn": 4, "llama3": 4, "linear": 1, "dynamic": 1}.get(str(kind), 0)
    names = list(maybe)
    for i, name in enumerate(names):
        if draw.random() < (0.95 if i < needed else 0.2):
            found[name] = maybe[name]
    if kind == "longrope" and draw.random() < 0.9:
        n = draw.choice([16, 32, 48, 64])
        found |= {"short_factor": [1.0] * n, "long_factor": [2 + i / 7 for i in range(n)]}
    return found


def drawn(draw: random.Random, rule: dict[str, Any], name: str, depth: int = 0) -> dict[str, Any]:
    """A configuration of a family, with what its rule reads and more."""
    config: dict[str, Any] = {"model_type": name}
    config |= {key: value for key, value in rule.get("defaults", {}).items() if draw.random() < 0.6}
    config["num_hidden_layers"] = draw.choice([2, 6, 12, 30])
    wild = draw.random() < 0.15
    for key in ("head_dim", "qk_rope_head_dim", "kv_channels"):
        if draw.random() < 0.3:
            config[key] = draw.choice(WIDTHS if wild else WIDTHS[:5])
    if draw.random() < 0.7:
        heads = draw.choice([4, 8, 12, 32])
        config |= {"num_attention_heads": heads, "hidden_size": heads * draw.choice([64, 128, 80])}
    for key in [*PARTIAL, *SPELT]:
        if draw.random() < 0.08:
            config[key] = draw.choice([0.5, 0.25, 32, 1.0, True, "x", None])
    bases = [key for key in rule.get("read", ()) if "theta" in key or "base" in key]
    for key in {*bases, "rope_theta", "rotary_emb_base"}:
        if draw.random() < 0.4:
            config[key] = draw.choice(BASES if wild else BASES[:5])
    if draw.random() < 0.7:
        config["max_position_embeddings"] = draw.choice(LENGTHS)
    if draw.random() < 0.2:
        config["original_max_position_embeddings"] = draw.choice(LENGTHS)
    for key in ("rope_scaling", "rope_parameters"):
        if draw.random() < 0.45:
            wrong = draw.random() < 0.05
            config[key] = draw.choice([None, {}, 3, False]) if wrong else rescaling(draw)
    kinds = [kind for kind in rule.get("rope", {}).get("kinds", {}) if kind]
    if kinds and draw.random() < 0.7:
        some = [kind for kind in kinds if draw.random() < 0.95]
        config["rope_parameters"] = {kind: rescaling(draw) for kind in some}
    types = rule.get("layers", {}).get("types")
    if types and draw.random() < 0.4:
        known = [*rule["layers"].get("rotation", ()), *rule["layers"].get("rest", ())]
        count = config["num_hidden_layers"] + draw.choice([0, 0, 0, 1])
        known += ["chunked_attention"] * (draw.random() < 0.2)
        config[types["field"]] = [draw.choice(known) for _ in range(count)]
    layers = rule.get("layers", {})
    if "words" in layers and draw.random() < 0.3:
        count = config["num_hidden_layers"]
        config["layer_types"] = [draw.choice(layers["words"]) for _ in range(count)]
    for key in sorted({one for own in layers.get("wants", {}).values() for one in own}):
        if draw.random() < 0.7:
            config[key] = draw.choice([4, True, False, None])
    if types and isinstance(types.get("cut"), str):
        config[types["cut"]] = draw.choice([0, 1, True, 2])
    if "rotating" in rule and draw.random() < 0.7:
        config[rule["rotating"][0]] = draw.choice([[], [0], [6, 12], None, 6])
    if "switch" in rule.get("layers", {}) and draw.random() < 0.4:
        field = rule["layers"]["switch"]["field"]
        config[field] = [draw.choice([0, 1]) for _ in range(config["num_hidden_layers"])]
    for key in [*rule.get("takes", ()), *rule.get("unset", ()), *rule.get("reaches", ())]:
        if draw.random() < 0.06:
            config[key] = draw.choice(
                [None, True, False, 0, 1, 4, 2.0, "4", [], [1] * 4, ["1"], {}]
            )
    if draw.random() < 0.02:
        config["per_layer_config"] = draw.choice([None, {}, {"0": {"head_dim": 64}}])
    for field, part in rule.get("parts", {}).items():
        inner = load_rules()["types"].get(part["type"], {})
        if draw.random() < 0.8 and depth < 3:
            config[field] = drawn(draw, inner, part["type"], depth + 1)
    entries = list(config.items())
    draw.shuffle(entries)
    return dict(entries)


def draw_texts(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    rules = load_rules()["types"]
    found = []
    while len(found) < count:
        name = draw.choice(sorted(rules))
        config = drawn(draw, rules[name], name)
        if draw.random() < 0.02:
            config["model_type"] = draw.choice([name[:-1], None, 7, "constructor"])
        found.append(json.dumps(config))
    return found


def test_public_configurations_rotate_alike_in_both(node):
    made = compared(node, [json.dumps(row["config"]) for row in ROWS])
    assert made > 0.9 * len(ROWS)


def test_entries_of_kinds_that_no_layer_has_are_told_alike(node):
    plain = {"rope_type": "default", "rope_theta": 10000}
    layers = {"model_type": "gemma3_text", "layer_types": ["full_attention"] * 26}
    entries = [plain, {**plain, "rope_theta": 5}, None, {}, {"rope_type": "default"}, 7]
    given = [{"full_attention": plain, "sliding_attention": one} for one in entries]
    compared(node, [json.dumps({**layers, "rope_parameters": one}) for one in given])
    sam = {"model_type": "sam2_video", "memory_attention_rope_theta": 10000}
    rope = [{"rope_type": "axial", "rope_theta": base} for base in (500.0, 10000, None)]
    assert compared(node, [json.dumps({**sam, "rope_parameters": one}) for one in rope])


def test_sizes_by_the_names_of_older_files_are_read_alike(node):
    sizes = ({"n_embed": None}, {"n_embed": None, "hidden_size": 71}, {"n_embed": 8192})
    assert compared(node, [json.dumps({"model_type": "falcon", **own}) for own in sizes]) == 1


def test_what_a_model_sets_in_its_parts_and_lists_for_layers_are_told_alike(node):
    vit = [{"model_type": "sam3_vit_model", "image_size": size} for size in (504, 1008, "7")]
    names = ("sam3", "sam3_lite_text", "sam3_tracker_video")
    configs: list[Any] = [
        {"model_type": name, "vision_config": {"backbone_config": one}, **more}
        for name in names for one in (*vit, {"image_size": 504})
        for more in ({}, {"image_size": 504}, {"image_size": None})
    ]  # fmt: skip
    configs += [{"model_type": "sam3_video", "image_size": 504}, {"model_type": "sam3_video"}]
    configs += [{"model_type": name, "partial_rotary_factor": None, "rope_theta": 5e5}
                for name in ("glm4_moe", "qwen3_next", "ultrabert", "dots3_note")]  # fmt: skip
    two = {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}
    configs += [{"model_type": "ultrabert", "rope_theta": one, "rope_parameters": two}
                for one in (5e5, 500000, None, [5e5] * 32)]  # fmt: skip
    layers = [None, {}, {"5": {"head_dim": 128}}, {"5": {"head_dim": 8}, "4": {"head_dim": 8}}, 7]
    configs += [{"model_type": "gemma4_text", "num_hidden_layers": 6, "per_layer_config": one}
                for one in [*layers, {"5": 7}, {"5": {"head_dim": "x"}}]]  # fmt: skip
    kinds = ["full_attention", *["sliding_attention"] * 3]
    lists = [[5e6, 1e4, 2e4, 3e4], [5e6, 1e4, 1e4, 1e4], [5e6, 1e4, 1e4], 7]
    configs += [{"model_type": "step3p5", "num_hidden_layers": 4, "layer_types": kinds,
                 "rope_theta": one, "partial_rotary_factors": [0.3, 1, part, 1]}
                for one in lists for part in (1, 0.25)]  # fmt: skip
    assert compared(node, [json.dumps(one) for one in configs]) > 20


def test_what_is_no_configuration_is_refused_alike(node):
    texts = ["[]", "7", "null", '"llama"', "1.0", "true", "{}", '{"model_type": "lama"}']
    texts += ['{"model_type": ""}', '{"model_type": "", "rope_theta": 1e4}']
    assert compared(node, texts) == 4


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.drawn(1)
def test_a_thousand_drawn_configurations_rotate_alike_in_both(node, seed):
    assert compared(node, draw_texts(seed, 1000)) > 300, "most are to be ones that rotate"


def fields_of(config: dict[str, Any], path: str = "") -> set[str]:
    """Dotted names of the fields of a configuration, and of those in dicts, at any depth."""
    found = set()
    for name, value in config.items():
        inner = isinstance(value, dict)
        found |= fields_of(value, f"{path}{name}.") if inner else {f"{path}{name}"}
    return found


def test_each_field_of_a_file_is_in_one_of_three_lists_or_warned_of():
    seen = 0
    for text in [json.dumps(row["config"]) for row in ROWS] + draw_texts(7, 2000):
        config = json.loads(text)
        try:
            spec = rope_of(config)
        except ValueError:
            continue
        lists = [*spec.read, *spec.without_effect, *spec.others]
        assert len(lists) == len(set(lists)), text[:1500]
        for name in fields_of(config) if spec.known else ():
            dicts = {name[:end] for end, letter in enumerate(name) if letter == "."}
            entered = {one for one in dicts if one.endswith(("rope_scaling", "rope_parameters"))}
            met = dicts & {*lists} - (entered - {*spec.without_effect})
            assert name in lists or met, (name, text[:1500])
        seen += len(spec.others)
    assert seen > 3000
