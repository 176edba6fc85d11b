"""The lines for a longer context that the page writes, run in transformers as they stand.

vLLM and SGLang are not installed here: how each puts such an argument into a configuration stands
below as read in vLLM 0.33.0 (``ModelConfig._apply_dict_overrides``) and SGLang 0.5.23
(``get_config``), November 2026. What comes of it is run in transformers, too.
"""

import copy
import importlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import atlas
from ropescope.configuration import load_rules, rope_of
from ropescope.layers import unrolled

TWIN = (Path(__file__).parents[1] / "tools" / "cards.mjs").as_uri()
CHECKPOINTS = json.loads((atlas.RESULTS / "checkpoints.json").read_text("utf8"))
NO_LINES = {  # what has them already, or cannot have them, and the words that say why
    "google/gemma-3-27b-it": "rescaled already (linear)",
    "meta-llama/Meta-Llama-3.1-8B": "rescaled already (llama3)",
    "microsoft/Phi-3.5-mini-instruct": "rescaled already (longrope)",
    "Qwen/Qwen2.5-72B": "trained length is not in the file",
}
LINES = {  # by the part of a configuration that the lines change
    "config.rope_parameters": (
        *("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen3-8B", "zai-org/GLM-4.5-Air"),
        *("deepseek-ai/DeepSeek-V3", "mistralai/Mistral-7B-v0.1", "openai/gpt-oss-20b"),
    ),
    "config.text_config.rope_parameters": ("Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen3.5-27B"),
    "config.head_dim": ("mistralai/Mixtral-8x7B-v0.1",),
    'config.rope_parameters["full_attention"]': (
        *("google/gemma-3-1b-it", "allenai/Olmo-3.1-32B-Instruct"),
    ),
}


REFUSED = {"microsoft/phi-4", "microsoft/Phi-mini-MoE-instruct"}  # with YaRN in the file
UNSCALED = {  # the page's words for types that a server turns without any rescaling
    "vLLM 0.33.0": {
        "dbrx": "DBRX", "mimo_v2_flash": "MiMo-V2-Flash",
        "minimax_m3_vl": "MiniMax M3 (its code for NVIDIA)", "muse_spark": "Muse Spark",
        "voxtral_realtime_encoder": "the audio encoder of Voxtral Realtime",
    },
    "SGLang 0.5.23": {
        "mixtral": "Mixtral", "starcoder2": "StarCoder2", "gemma": "Gemma", "gemma2": "Gemma 2",
        "olmo": "OLMo", "stablelm": "StableLM", "persimmon": "Persimmon", "dbrx": "DBRX",
        "granitemoe": "GraniteMoe", "granitemoe_swa": "GraniteMoeSWA",
        "granitemoeshared": "GraniteMoeShared", "phi": "Phi", "hy_v3": "HY 3",
        "muse_glimmer": "Muse Glimmer", "muse_spark": "Muse Spark",
    },
}  # fmt: skip
WINDOWED = {  # of which llama.cpp gives layers with a window a scale of their own
    "afmoe": "Trinity", "gemma2": "Gemma 2", "gpt_oss": "gpt-oss", "cohere2": "Command R7B",
    "llama4": "Llama 4",
}  # fmt: skip
PAGE = Path(__file__).parents[2] / "notebooks" / "check-your-model.ipynb"


def known(config: dict) -> bool:
    try:
        return rope_of(config).known and config["model_type"] in CONFIG_MAPPING
    except ValueError:
        return False


CONFIGS = {row["name"]: row["config"] for row in CHECKPOINTS if known(row["config"])}


@pytest.fixture(scope="module")
def cards(node) -> dict[str, list[dict]]:
    """The parts of each row's card at four times its length."""
    texts = [json.dumps(config) for config in CONFIGS.values()]
    found = node.ask(TWIN, "cards", texts, json.dumps(load_rules()), 4)
    return dict(zip(CONFIGS, found, strict=True))


@pytest.fixture(scope="module")
def written(cards) -> list[tuple[str, dict]]:
    """A row's name and a part for which lines are written, of all rows."""
    return [(name, part) for name in CONFIGS for part in cards[name] if part["written"]]


def made(name: str) -> PretrainedConfig:
    """Return the configuration as transformers loads it from a file."""
    config = copy.deepcopy(CONFIGS[name])
    return CONFIG_MAPPING[config["model_type"]].from_dict(config)


def code(part: dict, program: str) -> str:
    """Return what is to be written for a program; empty where nothing is."""
    return next((text for title, text in part["blocks"] if title.startswith(program)), "")


def type_of(name: str) -> str:
    config = CONFIGS[name]
    return config.get("text_config", config).get("model_type", config["model_type"])


def deaf(program: str, name: str) -> bool:
    """Whether a server, as read, turns a row's type without any rescaling."""
    (types,) = (found for server, found in UNSCALED.items() if server.startswith(program))
    return type_of(name).removesuffix("_text") in types


def argument(command: str, name: str) -> str:
    words = shlex.split(command.replace("\\\n", " "))
    return words[words.index(name) + 1]


def rotary_classes(config: PretrainedConfig) -> list[Any]:
    """Return the classes of the family that make its tables of cosines for texts."""
    file = type(config).__module__.replace("configuration_", "modeling_")
    module = vars(importlib.import_module(file)).items()
    own = [c for n, c in module if n.endswith("RotaryEmbedding") and c.__module__ == file]
    own = [c for c in own if "Vision" not in c.__name__]
    return [c for c in own if "Text" in c.__name__] or own


def fault(config: PretrainedConfig, part: dict) -> str:
    """Return where the rotary module of a configuration differs from the card of the new length."""
    changed = re.findall(r"config((?:\.\w+)*)\.rope_parameters", code(part, "transformers"))[0]
    for name in filter(None, changed.split(".")):
        config = getattr(config, name)
    (kind,) = rotary_classes(config)
    rotary = kind(config=config)
    of = f"{part['kind']}_" if hasattr(rotary, f"{part['kind']}_inv_freq") else ""
    heard = getattr(rotary, f"{of}inv_freq").double().numpy()
    waves = np.array(part["longer"]["inv_freq"], float)
    told = waves if waves.ndim == 1 else np.linalg.norm(waves, axis=1)
    factors = getattr(rotary, f"{of}attention_scaling"), part["longer"]["attention_factor"]
    if heard.shape != told.shape or not np.allclose(heard, told, rtol=1e-5, atol=0.0):
        return f"frequencies {heard}, and the card says {told}"
    return "" if np.isclose(*factors, rtol=1e-6) else f"factors {factors}"


def in_vllm(config: PretrainedConfig, overrides: dict) -> None:
    """Change a configuration as vLLM does: a dict in a part is merged, one at the top is set."""

    def merge(target: Any, changes: dict) -> None:
        for name, value in changes.items():
            plain = isinstance(target, dict)
            inner = target.get(name) if plain else getattr(target, name, None)
            if isinstance(value, dict) and (isinstance(inner, dict) or hasattr(inner, "__dict__")):
                merge(inner, value)
            elif plain:
                target[name] = value
            else:
                setattr(target, name, value)

    for name, value in overrides.items():
        own = getattr(config, name, None)
        if isinstance(own, PretrainedConfig):
            merge(own, value)
        else:
            setattr(config, name, value)


def in_sglang(config: PretrainedConfig, overrides: dict) -> None:
    """Change a configuration as SGLang does: a dict at the top is merged, one in a part is set."""
    for name, value in overrides.items():
        own = getattr(config, name, None)
        if isinstance(own, PretrainedConfig):
            own.update(value)
        else:
            setattr(config, name, {**own, **value} if isinstance(own, dict) else value)


def test_what_refuses_yarn_is_refused_as_the_file_is_read(cards):
    """And not after it, nor where the class is said to take none."""
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}
    said = {"is refused when it is read": set(), "takes no YaRN": set()}
    for words, found in said.items():
        found |= {
            name for name, parts in cards.items() if words in "".join(p["said"] for p in parts)
        }
    assert said["is refused when it is read"] == REFUSED
    for words, names in said.items():
        for name in names:
            config = copy.deepcopy(CONFIGS[name])
            config["rope_parameters"] = yarn | {"rope_theta": config.get("rope_theta", 1e4)}
            config.pop("rope_scaling", None)
            read = CONFIG_MAPPING[config["model_type"]].from_dict
            if words == "takes no YaRN":
                read(config)
            else:
                with pytest.raises(Exception, match=r"rope_parameters|rope_type"):
                    read(config)


def test_the_page_names_the_checkpoints_whose_rotating_layers_all_see_a_window():
    called = {
        "Mistral 7B v0.1": "mistralai/Mistral-7B-v0.1",
        "StarCoder2 7B": "bigcode/starcoder2-7b",
        "Phi-mini-MoE": "microsoft/Phi-mini-MoE-instruct",
        "Command R7B": "CohereLabs/c4ai-command-r7b-12-2024",
        "EXAONE 4.0 32B": "LGAI-EXAONE/EXAONE-4.0-32B",
        "Llama 4": "meta-llama/Llama-4-",
    }
    page = (Path(__file__).parents[2] / "notebooks" / "check-your-model.ipynb").read_text("utf8")
    assert f"rotate (for example in {', '.join(called)}) is not read" in page
    found = set()
    for name, config in CONFIGS.items():
        own = made(name).get_text_config()
        parts = [part for part in rope_of(config).parts if part.part == "text"]
        turning = {layer for part in parts for layer in unrolled(part.layers)}
        kinds = getattr(own, "layer_types", None)  # without them a window is that of all layers
        near = not kinds or {kinds[i] for i in turning} <= {
            "sliding_attention",
            "chunked_attention",
        }
        field = (
            "attention_chunk_size" if kinds and "chunked_attention" in kinds else "sliding_window"
        )
        window = getattr(own, field, None)
        seen = field in json.dumps(config)
        if turning and near and seen and window and window < own.max_position_embeddings:
            found.add(name)
    assert len(found) == len(called) + 1  # Scout and Maverick
    assert all(any(name.startswith(one) for one in called.values()) for name in found)


def test_lines_are_written_for_every_kind_of_configuration(cards, written):
    assert len(written) > 70
    for start, names in LINES.items():
        for name in names:
            lines = [code(part, "transformers") for part in cards[name] if part["written"]]
            assert lines, name
            assert all(line.startswith(f"{start} = ") for line in lines), (name, lines)
    for name, why in NO_LINES.items():
        assert any(why in part["said"] for part in cards[name]), name
        assert not any(part["written"] for part in cards[name]), name


def test_the_lines_for_transformers_give_what_the_card_says(written):
    wrong = {}
    for name, part in written:
        config = made(name)
        exec(code(part, "transformers"), {"config": config})
        if said := fault(config, part):
            wrong[name] = said
    assert wrong == {}


@pytest.mark.parametrize(
    ("program", "flag", "change"),
    [("vLLM", "--hf-overrides", in_vllm), ("SGLang", "--json-model-override-args", in_sglang)],
)
def test_what_the_servers_are_told_gives_the_same_configuration(written, program, flag, change):
    wrong, count = {}, 0
    for name, part in written:
        if not (command := code(part, program)):
            one_kind = '["' in code(part, "transformers").splitlines()[0]
            assert (one_kind and program == "SGLang") or name in REFUSED or deaf(program, name), (
                name
            )
            continue
        config = made(name)
        width = re.search(r"^config\.head_dim.*$", code(part, "transformers"), re.MULTILINE)
        exec(width[0] if width else "", {"config": config})  # both fill it in by themselves
        change(config, json.loads(argument(command, flag)))
        if said := fault(config, part):
            wrong[name] = said
        length = {"vLLM": "--max-model-len", "SGLang": "--context-length"}[program]
        assert int(argument(command, length)) == part["wanted"], name
        count += 1
    assert wrong == {}
    assert count > 60


def test_what_a_program_does_not_hear_has_no_line_for_it(written):
    """As read in the models of both servers' wheels, and in llama.cpp (get_rope_freq_scale)."""
    page = PAGE.read_text("utf8")
    for server, types in UNSCALED.items():
        *some, last = types.values()
        assert f"{server} turns {', '.join(some)} and {last} without any rescaling" in page
    *some, last = WINDOWED.values()
    assert f"so that {', '.join(some)} and {last}, and models" in page
    for program, types in (("SGLang", UNSCALED["SGLang 0.5.23"]), ("llama.cpp", WINDOWED)):
        found = {type_of(name).removesuffix("_text") for name, part in written
                 if not code(part, program) and '["' not in code(part, "transformers")
                 and name not in REFUSED}  # fmt: skip
        assert found <= {*types}
        assert len(found) > 2, found


LENGTH = {"max_position_embeddings": 4096}
FILES = {  # the least that a file of a type has to say; the others have defaults
    "dbrx": {"max_seq_len": 2048, "attn_config": {"rope_theta": 1e4}},
    "minimax_m3_vl": {"text_config": LENGTH | {"model_type": "minimax_m3_vl_text"}},
    "muse_spark": {"text_config": LENGTH | {"model_type": "muse_spark_text"}},
    "muse_glimmer": {"text_config": LENGTH | {"model_type": "muse_glimmer_text"}},
}


@pytest.mark.parametrize("server", UNSCALED)
def test_a_type_that_a_server_turns_unscaled_has_other_lines_and_says_so(node, server):
    program = server.split()[0]
    for family in {*UNSCALED["vLLM 0.33.0"], *UNSCALED["SGLang 0.5.23"]}:
        raw = {"model_type": family} | FILES.get(family, LENGTH)
        found = node.ask(TWIN, "cards", [json.dumps(raw)], json.dumps(load_rules()), 4)[0]
        parts = [part for part in found if part["written"]]
        assert parts, family
        for part in parts:
            assert code(part, "transformers"), family
            one_kind = '["' in code(part, "transformers").splitlines()[0]
            unheard = family in UNSCALED[server]
            assert bool(code(part, program)) != (unheard or (one_kind and program == "SGLang"))
            assert (server in part["deaf"]) == unheard, family


@pytest.mark.parametrize("holder", ["", "text_config"])
def test_a_rescaling_that_is_there_has_a_line_where_the_length_was_not_raised(node, holder):
    """The card of Qwen2.5 says how: YaRN by 4 from 32,768, and the length stays."""
    length = {"max_position_embeddings": 32768}
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    sizes = {"hidden_size": 3584, "num_attention_heads": 28}
    own = {**sizes, **length, "rope_theta": 1e6, "rope_scaling": yarn}
    family = "qwen2_5_vl" if holder else "qwen2"
    raw = {"model_type": family, **({holder: own} if holder else own)}
    found = node.ask(TWIN, "cards", [json.dumps(raw)], json.dumps(load_rules()), 4)[0]
    (part,) = [part for part in found if part["path"] == holder]
    command, other = code(part, "vLLM"), code(part, "SGLang")
    assert int(argument(other, "--context-length")) == 131072
    assert other.startswith("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 ")
    changed = CONFIG_MAPPING[family].from_dict(copy.deepcopy(raw))
    in_sglang(changed, json.loads(argument(other, "--json-model-override-args")))
    assert "vLLM and SGLang stop at the length in the configuration all the same" in part["said"]
    assert int(argument(command, "--max-model-len")) == 131072
    config = CONFIG_MAPPING[family].from_dict(copy.deepcopy(raw))
    in_vllm(config, json.loads(argument(command, "--hf-overrides")))
    text = config.get_text_config()
    assert text.max_position_embeddings == 131072
    (kind,) = rotary_classes(config)
    before = kind(config=CONFIG_MAPPING[family].from_dict(copy.deepcopy(raw)).get_text_config())
    after = kind(config=text)
    assert after.inv_freq.equal(before.inv_freq)
    assert after.attention_scaling == before.attention_scaling
    there = kind(config=changed.get_text_config())
    assert there.inv_freq.equal(before.inv_freq)


YARN = {"type": "yarn", "factor": 16.0, "original_max_position_embeddings": 8192}
PLAIN = {"rope_type": "default", "rope_theta": 5e5}
TURNED: dict[str, dict[str, Any]] = {  # by the class, or beside parameters that are not read
    "gpt_oss": {},
    "ministral3": {},
    "qwen2": {"rope_scaling": YARN, "rope_parameters": {**PLAIN, "rope_theta": 1e4}},
    "olmo3": {"rope_scaling": YARN, "rope_parameters": {
        "full_attention": {**PLAIN, **YARN, "rope_type": "yarn", "factor": 8.0},
        "sliding_attention": PLAIN}},
}  # fmt: skip


@pytest.mark.parametrize("times", [8, 32])
@pytest.mark.parametrize("family", TURNED)
def test_lines_keep_the_rescaling_by_which_the_class_turns(node, family, times):
    sizes = {"hidden_size": 512, "num_attention_heads": 4, "head_dim": 128, "num_hidden_layers": 4}
    length = {} if family in ("gpt_oss", "ministral3") else {"max_position_embeddings": 8192}
    raw = {"model_type": family, **sizes, **length, **TURNED[family]}
    parts = node.ask(TWIN, "cards", [json.dumps(raw)], json.dumps(load_rules()), times)[0]
    part = next(part for part in parts if part["blocks"])
    config = CONFIG_MAPPING[family].from_dict(copy.deepcopy(raw))
    in_vllm(config, json.loads(argument(code(part, "vLLM"), "--hf-overrides")))
    then = rope_of({**config.to_dict(), "rope_scaling": None} | {"model_type": family})
    spec = rope_of(raw)
    (now,) = (one for one in spec.parts if one.rescaling)
    (told,) = (one for one in then.parts if one.rescaling)
    longer = part["wanted"] > now.trained_length * now.rescaling[1]["factor"]
    assert ("Nothing is to be written" in part["said"]) != longer
    (own, factor), (new, given) = ((o.inv_freq, o.rescaling[1]) for o in (now, told))
    assert (own == new) == (not longer)
    left = {k: v for k, v in factor.items() if k not in ("factor", "attention_factor")}
    assert {k: v for k, v in given.items() if k in left} == left
    (kind,) = rotary_classes(config)
    kind(config=config)  # it can be made


def test_a_longer_text_without_a_new_angle_asks_for_no_rescaling(node):
    """Of a base of 10,000 and 65,536 tokens every hand went round."""
    sizes = {"hidden_size": 512, "num_attention_heads": 4, "max_position_embeddings": 65536}
    config = {"model_type": "llama", "rope_theta": 1e4, **sizes}
    (part,) = node.ask(TWIN, "cards", [json.dumps(config)], json.dumps(load_rules()), 4)[0]
    said = "below are lines for vLLM and SGLang, and llama.cpp takes, as read, --override-kv"
    assert said in part["said"]
    assert "no pair meets a new angle." in part["said"]
    assert json.loads(argument(code(part, "vLLM"), "--hf-overrides")) == {
        "max_position_embeddings": 262144
    }
    assert not code(part, "llama.cpp")  # it stops at the length in the GGUF file
    assert not code(part, "transformers")


@pytest.mark.parametrize("family", ["llama", "qwen2", "phi3"])
def test_a_length_outside_that_would_overrule_a_line_is_to_be_taken_out_first(node, family):
    """As transformers standardises it: the line's own would not count."""
    sizes = {"hidden_size": 512, "num_attention_heads": 4, "rope_theta": 1e6}
    config = {"model_type": family, **sizes, "max_position_embeddings": 65536}
    outer = {"original_max_position_embeddings": 32768}
    (part,) = node.ask(TWIN, "cards", [json.dumps(config | outer)], json.dumps(load_rules()), 2)[0]
    assert not part["blocks"]
    assert "32,768, would overrule that of a line: take it out of the file first" in part["said"]
    yarn = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 2.0}
    yarn["original_max_position_embeddings"] = 65536
    if family != "phi3":  # whose class refuses YaRN in a file
        tables = []
        for more in (outer, {}):
            raw = copy.deepcopy(config | more | {"rope_parameters": yarn})
            made = CONFIG_MAPPING[family].from_dict(raw)
            (kind,) = rotary_classes(made)
            tables.append(kind(config=made).inv_freq)
        assert not tables[0].equal(tables[1])
    (part,) = node.ask(TWIN, "cards", [json.dumps(config)], json.dumps(load_rules()), 2)[0]
    assert bool(part["blocks"]) == (family != "phi3")
    assert ("its class's original" in part["said"].lower()) == (family == "phi3")


def test_whether_hunyuans_length_is_before_its_alpha_the_file_does_not_say(node):
    scaling = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}
    config = {"model_type": "hunyuan_v1_dense", "max_position_embeddings": 262144,
              "rope_scaling": scaling, "head_dim": 128}  # fmt: skip
    (part,) = node.ask(TWIN, "cards", [json.dumps(config)], json.dumps(load_rules()), 4)[0]
    assert "Whether 262,144 tokens are before or after the rescaling" in part["said"]


def test_a_fraction_that_yarn_would_read_is_to_be_taken_out_first(node):
    """A class that rotates whole heads ignores it, until its rescaling reads it and fails."""
    config = {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
              "max_position_embeddings": 4096, "partial_rotary_factor": 0.5}  # fmt: skip
    (part,) = node.ask(TWIN, "cards", [json.dumps(config)], json.dumps(load_rules()), 4)[0]
    assert "take it out of the file first" in part["said"]
    assert not part["written"]


@pytest.mark.parametrize("family", ["olmo3", "gemma3_text"])
def test_one_kind_of_layers_has_an_entry_of_its_own_where_its_class_wants_one(node, family):
    config = {"model_type": family, "hidden_size": 512, "num_attention_heads": 4, "head_dim": 128,
              "num_hidden_layers": 2, "layer_types": ["full_attention"] * 2, "rope_theta": 5e5,
              "max_position_embeddings": 4096}  # fmt: skip
    (part,) = node.ask(TWIN, "cards", [json.dumps(config)], json.dumps(load_rules()), 4)[0]
    told = CONFIG_MAPPING[family].from_dict(copy.deepcopy(config))
    exec(code(part, "transformers"), {"config": told})
    (kind,) = rotary_classes(told)
    rope = kind(config=told)
    assert told.rope_parameters["full_attention"]["factor"] == 4.0
    assert rope.full_attention_attention_scaling == pytest.approx(0.1 * np.log(4) + 1)


def test_a_fraction_of_the_class_stands_in_the_line(node):
    config = {"model_type": "neomme", "max_position_embeddings": 4096}
    parts = node.ask(TWIN, "cards", [json.dumps(config)], json.dumps(load_rules()), 4)[0]
    (part,) = (one for one in parts if one["kind"] == "full_attention")
    assert '"partial_rotary_factor": 0.25' in code(part, "transformers")


def test_vllm_is_told_a_length_that_it_takes(written):
    """It takes none beyond max_position_embeddings, which YaRN no longer multiplies."""
    for name, part in written:
        if command := code(part, "vLLM"):
            told = json.loads(argument(command, "--hf-overrides"))
            own = told.get("text_config", told)
            assert own["max_position_embeddings"] == part["wanted"], name
            assert "model_max_length" not in own
        else:
            assert name in REFUSED or deaf("vLLM", name)


LENGTHS = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"),
    *("max_target_positions", "max_sequence_length", "max_seq_length", "seq_len"),
)


def longest_in_vllm(config: PretrainedConfig) -> int:
    """Return the longest text, as read in vLLM 0.33.0 (``derive_max_model_len_and_key``)."""
    found = [getattr(config, name, None) for name in LENGTHS]
    return getattr(config, "model_max_length", None) or min(x for x in found if x is not None)


@pytest.mark.parametrize("other", [None, 2048, 131_072])
@pytest.mark.parametrize("name", LENGTHS[1:])
@pytest.mark.parametrize(("family", "holder"), [("llama", ""), ("qwen2_5_vl", "text_config")])
def test_vllm_takes_the_length_with_whatever_else_a_file_says(node, family, holder, name, other):
    """A file of LLaMA 1 has max_sequence_length, one of Command R model_max_length."""
    own = {"max_position_embeddings": 8192, name: other}
    raw = {"model_type": family, **({holder: own} if holder else own)}
    found = node.ask(TWIN, "cards", [json.dumps(raw)], json.dumps(load_rules()), 4)[0]
    (part,) = [part for part in found if part["path"] == holder]
    command = code(part, "vLLM")
    told = json.loads(argument(command, "--hf-overrides"))
    told = told[holder] if holder else told
    less = other is not None and other < 32_768
    assert told.get(name) == (32_768 if less else None)
    config = CONFIG_MAPPING[family].from_dict(copy.deepcopy(raw))
    in_vllm(config, json.loads(argument(command, "--hf-overrides")))
    assert longest_in_vllm(config.get_text_config()) >= int(argument(command, "--max-model-len"))


def test_the_page_names_the_lengths_of_which_vllm_takes_the_least():
    assert f"the least of nine lengths ({', '.join(f'`{name}`' for name in LENGTHS)})" in (
        PAGE.read_text("utf8")
    )


def test_no_class_with_a_line_for_vllm_has_a_lesser_length_of_its_own(written):
    """A file's lengths are raised; a class's default would stop vLLM unseen."""
    for name, part in written:
        if command := code(part, "vLLM"):
            config = made(name)
            in_vllm(config, json.loads(argument(command, "--hf-overrides")))
            assert longest_in_vllm(config.get_text_config()) >= part["wanted"], name


def without_length(config: dict) -> dict:
    """Return a configuration without the lengths of its models."""
    left = {k: v for k, v in config.items() if k not in LENGTHS}
    return left | {k: without_length(v) for k, v in left.items() if isinstance(v, dict)}


def test_a_length_that_the_page_asks_for_can_be_typed_at_the_place_that_it_names(node):
    """Without their lengths, every row either has lines once one is typed there, or no promise."""
    asked = re.compile(r"type it as max_position_embeddings(?: in ([\w.]+))?, to see the lines")
    texts = {name: without_length(config) for name, config in CONFIGS.items()}
    texts["gemma"] = {"model_type": "gemma3", "text_config": {
        "hidden_size": 2560, "num_hidden_layers": 34,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0}}}  # fmt: skip
    rules = json.dumps(load_rules())
    found = node.ask(TWIN, "cards", [json.dumps(one) for one in texts.values()], rules, 4)
    typed, said = {}, dict(zip(texts, found, strict=True))
    for name, parts in said.items():
        for part in parts:
            if place := asked.search(part["said"]):
                config = inner = copy.deepcopy(texts[name])
                for key in filter(None, (place[1] or "").split(".")):
                    inner = inner[key]
                inner["max_position_embeddings"] = 4096
                typed[name, part["path"], part["kind"]] = config
    again = node.ask(TWIN, "cards", [json.dumps(one) for one in typed.values()], rules, 4)
    for (name, path, kind), parts in zip(typed, again, strict=True):
        (part,) = [p for p in parts if (p["path"], p["kind"]) == (path, kind)]
        assert part["blocks"], name
    assert len(typed) > 5
    assert any(path for _, path, _ in typed)
    words = "".join(part["said"] for part in said["gemma"])
    assert "type it as max_position_embeddings in text_config." in words  # no lines are promised


def test_llama_cpp_is_told_the_same_factor_and_length(written):
    """The base, and where the file has them the bounds, are in the GGUF file."""
    for name, part in written:
        if not (command := code(part, "llama.cpp")):
            continue
        parameters = part["written"]
        assert "--rope-freq" not in command
        assert argument(command, "--rope-scaling") == "yarn"
        assert float(argument(command, "--rope-scale")) == parameters["factor"]
        original = parameters["original_max_position_embeddings"]
        assert int(argument(command, "--yarn-orig-ctx")) == original
        assert int(argument(command, "-c")) == part["wanted"]
        assert parameters["rope_theta"] == part["longer"]["base"]
        before = [one for one in rope_of(CONFIGS[name]).parts if one.path == part["path"]]
        assert parameters["rope_theta"] in {one.base for one in before}, name


def test_which_classes_want_a_head_dim():
    """Those that leave it None fail in YaRN; the page's lines fill it in."""
    yarn = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0,
            "original_max_position_embeddings": 2048}  # fmt: skip
    found = []
    for family, rule in load_rules()["types"].items():
        takes = rule.get("rescalings", {}).get("yarn", "refused").startswith("yarn")
        if not takes or family not in CONFIG_MAPPING:
            continue
        config = CONFIG_MAPPING[family]()
        try:
            left_out = getattr(config, "head_dim", 0) is None
        except RuntimeError:  # it differs from layer to layer
            continue
        if not left_out or not (kinds := rotary_classes(config)):
            continue
        config.rope_parameters = {**(config.rope_parameters or {}), **yarn}
        try:
            kinds[0](config=config)
        except TypeError:
            found.append(family)
    known = {name: rule["defaults"] for name, rule in load_rules()["types"].items()
             if "yarn" in rule.get("needs", ())}  # fmt: skip
    assert found == [name for name, given in known.items() if given.get("head_dim", 0) is None]
