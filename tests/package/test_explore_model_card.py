"""The page's card of every public checkpoint: whole sentences, and lines to write that hold."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import atlas
from rope_minimal import inverse_frequencies
from ropebook import aliasing, figures
from ropebook.atlas import card_data
from ropebook.figures.alone import slim
from ropebook.figures.model_card import _as_written as as_written
from ropescope.__main__ import main
from ropescope.card import lines, matches, specification
from ropescope.configuration import load_rules, rope_of
from ropescope.elsewhere import VERDICTS, elsewhere, load_engines
from ropescope.gguf_file import LAYOUTS
from ropescope.names import ARCHITECTURES
from ropescope.translation import FAMILIES
from tests.tools.broken_files import GGUF_LLAMA, gguf

TWIN = (Path(__file__).parents[1] / "tools" / "cards.mjs").as_uri()
DROPPED = (Path(__file__).parents[1] / "tools" / "dropped.mjs").as_uri()
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
ALL_ROWS = json.loads((atlas.RESULTS / "checkpoints.json").read_text("utf8"))


def known(config: dict) -> bool:
    """Whether a configuration has a rule and is not refused."""
    try:
        return rope_of(config).known
    except ValueError:
        return False


ROWS = [row for row in ALL_ROWS if known(row["config"])]


@pytest.fixture(scope="module")
def cards(node):
    texts = [json.dumps(row["config"]) for row in ROWS]
    found = node.ask(TWIN, "cards", texts, json.dumps(load_rules()), 4)
    return dict(zip((row["name"] for row in ROWS), found, strict=True))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_card_has_no_hole(cards, row):
    for part in cards[row["name"]]:
        assert not re.search(r"NaN|undefined|null|object|∞|not a number", part["said"])


def of_vllm(part: dict) -> dict:
    """What the command for vLLM sets in the fields of a part."""
    (command,) = (code for title, code in part["blocks"] if title == "vLLM")
    told = json.loads(re.search(r"--hf-overrides '(.*)'", command, re.DOTALL)[1])
    return told.get("text_config", told)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_what_is_to_be_written_leaves_no_pair_with_a_new_angle(cards, row):
    for number, part in enumerate(cards[row["name"]]):
        if (told := part["written"]) is None or len(part["blocks"]) == 1:
            continue  # for transformers alone, where test_longer_context runs it
        config = json.loads(json.dumps(row["config"]))
        own = config
        for name in filter(None, part["path"].split(".")):
            own = own[name]
        before = rope_of(config).parts[number]
        given = own.pop("rope_scaling", None) or own.get("rope_parameters") or {}
        given = given.get(part["kind"], given)
        assert {*given} - {"type", "attention_factor"} <= {*told}
        for name in ("partial_rotary_factor", "rotary_pct"):  # the lines hold by themselves
            own.pop(name, None)
        own["rope_parameters"] = of_vllm(part)["rope_parameters"]
        after = rope_of(config).parts[number]
        assert (after.base, after.width, after.layout) == (before.base, before.width, before.layout)
        waves = np.array(after.inv_freq, float)
        speed = waves if waves.ndim == 1 else np.linalg.norm(waves, axis=1)
        plain = inverse_frequencies(after.width, after.base)
        trained = before.trained_length
        assert not aliasing.unseen_pairs(speed, part["wanted"], plain, trained).any()
        assert part["wanted"] <= told["factor"] * trained * (1 + 1e-9)


def test_some_lines_are_written(cards):
    assert sum(part["written"] is not None for parts in cards.values() for part in parts) > 20


def test_the_page_and_the_command_find_the_same_checkpoints(node):
    rows = [[row["name"], row["aliases"], row["config"]] for row in ALL_ROWS]
    names = [name for row in ALL_ROWS for name in (row["name"], *row["aliases"])]
    names += [name.replace(" ", mark) for name in names for mark in ("", "-", "_", ".")]
    names += [name.split("/")[-1][:n] for name in names for n in (5, 8)]
    owned = [(row["name"].split("/")[0], alias) for row in ALL_ROWS for alias in row["aliases"]]
    names += ["/".join(pair) for pair in owned] + ["unsloth/Llama-3.1-8B", "me/no such model"]
    names += ["", " ", "/", "qwen2.5", "qwen25", "Qwen 2.5", "qwen-2_5", "glm45", "no such model"]
    names = sorted({*names})
    found = node.ask(TWIN, "searched", names, json.dumps(rows), json.dumps(load_rules()))
    for name, theirs in zip(names, found, strict=True):
        assert [row["name"] for _, row in matches(name)] == theirs, name
    assert found[names.index("qwen25")] == found[names.index("qwen2.5")]
    assert found[names.index("qwen25")][0] == "Qwen/Qwen2.5-7B-Instruct"
    assert found[names.index("unsloth/Llama-3.1-8B")][0] == "meta-llama/Meta-Llama-3.1-8B"
    assert found[names.index("me/no such model")] == []
    assert matches("meta-llama/Llama-3.1-8B")[0] == matches("meta-llama/Meta-Llama-3.1-8B")[0]
    # an alias names a family: with its owner it may be a checkpoint of its own
    for name in ("zai-org/CogVideo", "EleutherAI/gpt-neox", "deepseek-ai/DeepSeek-V4"):
        assert matches(name)[0][0] > 0


def onto(node, dropped, sought="", **traits):
    """What the figure shows at first, with a file dropped onto it, and after a key in its field."""
    figure = figures.model_card(card_data())
    for name, value in traits.items():
        setattr(figure, name, value)
    return node.ask(DROPPED, "onto", slim(figure.get_state()), dropped, sought)


def test_a_file_that_is_refused_has_no_card_and_what_stood_there_stays(node):
    before, refused, after = onto(node, '{"model_type": ')
    assert before["shown"]
    assert before["problem"] == ""
    assert refused["shown"] == []
    assert refused["says"].startswith("No card yet")
    assert refused["problem"].startswith("new.json: ")
    assert before["field"] == refused["field"] == after["field"] != ""
    assert after["problem"] == ""
    assert after["shown"] == before["shown"]
    other = onto(node, '{"model_type": "qwen2", "rope_theta": 77.0}')[1]
    assert "rope-card" in other["shown"]
    assert "base 77" in other["says"]


@pytest.mark.parametrize(
    ("pasted", "words"),
    [
        ('{"model_type": "qwen2",}', "no comma before the closing bracket"),
        ("{'model_type': 'qwen2'}", "json.dumps writes JSON"),
        ('{"model_type": "qwen2", "rope_scaling": None}', "json.dumps writes JSON"),
        ('{"rope_type": "yarn", "factor": 4.0}', "most whole files have one"),
    ],
)
def test_what_people_paste_in_place_of_a_file_is_told(node, pasted, words):
    found = onto(node, "", text=pasted)[0]
    assert words in found["problem"] + found["says"] + str(found)


def shown(node, config, **traits):
    """What the figure shows of a configuration, or of a row by its name."""
    if isinstance(config, str):
        (config,) = (row["config"] for row in ALL_ROWS if row["name"] == config)
    return onto(node, "", text=as_written(config), **traits)[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bigcode/starcoder2-7b", "sliding_window is 4,096: "),
        ("mistralai/Mistral-7B-v0.1", "sliding_window is 4,096: "),
        ("CohereLabs/c4ai-command-r7b-12-2024", "sliding_window is 4,096: "),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "attention_chunk_size is 8,192: "),
        ("Qwen/Qwen2.5-3B-Instruct", ""),  # use_sliding_window is false
        ("microsoft/Phi-3.5-mini-instruct", "sliding_window is 262,144: "),
        ("google/gemma-3-1b-it", ""),  # its layers are told apart
    ],
)
def test_a_window_is_told_alike_on_the_page_in_the_command_and_in_its_page(
    node, capsys, name, words
):
    found = shown(node, name)
    (text,) = [one for one in specification(name)["parts"] if one["part"] == "text"][-1:]
    told = dict(lines(text)).get("window", "")
    assert told.startswith(words)
    assert bool(told) == bool(words)
    for form in ([], ["--html"]):
        main([name, *form])
        assert (told or "layers that look back") in capsys.readouterr().out or not told
    assert (f"window{told}" if told else "window") in found["table"] or not told
    assert ("look back no further" in found["table"]) == bool(told)
    assert ("where a layer looks so far back" in found["says"]) <= bool(told)


def test_a_window_is_that_of_the_class_that_reads_a_part(node):
    """A flat file of Qwen2.5-VL and a part without a model_type have no window by default."""
    sizes = {"hidden_size": 512, "num_attention_heads": 4, "num_hidden_layers": 2}
    text = sizes | {"sliding_window": 4096, "max_position_embeddings": 32768}
    part = {"model_type": "llava_onevision", "text_config": text}
    for config in (text | {"model_type": "qwen2_5_vl"}, part):
        (own,) = (one for one in rope_of(config).parts if one.part == "text")
        assert own.model_type in ("qwen2_5_vl_text", "qwen2")
        assert "look back no further" not in shown(node, config)["table"]
        inside = config.get("text_config", config)
        inside["use_sliding_window"] = True
        assert "look back no further" in shown(node, config)["table"]


@pytest.mark.parametrize("family", ["qwen2_moe", "qwen3_moe", "smollm3"])
def test_a_window_that_is_switched_off_by_default_is_no_line(node, tmp_path, capsys, family):
    sizes = {"hidden_size": 512, "num_attention_heads": 4, "num_hidden_layers": 2, "head_dim": 128}
    config = sizes | {"model_type": family, "sliding_window": 4096}
    file = tmp_path / "config.json"
    for switch, slides in (({}, False), (None, False), (False, False), (True, True)):
        one = config if switch == {} else config | {"use_sliding_window": switch}
        assert ("look back no further" in shown(node, one)["table"]) == slides
        file.write_text(json.dumps(one))
        main([str(file)])
        assert ("look back no further" in capsys.readouterr().out) == slides


def test_a_window_of_a_gguf_is_named_by_its_key(tmp_path):
    keys = {"general.architecture": "starcoder2", "starcoder2.attention.sliding_window": 512}
    keys |= {k.replace("llama", "starcoder2"): v for k, v in GGUF_LLAMA.items() if "." in k[7:]
             and k.startswith("llama")}  # fmt: skip
    file = tmp_path / "m.gguf"
    file.write_bytes(gguf(keys))
    (part,) = specification(file)["parts"]
    assert part["window"].startswith("starcoder2.attention.sliding_window is 512: ")


def test_what_a_row_does_not_show_is_a_note_alike_on_the_page_and_in_the_command(node, capsys):
    for row in ALL_ROWS:
        if row["name"] in ("zai-org/GLM-4.5", "facebook/dinov3-vitb16-pretrain-lvd1689m"):
            assert main([row["name"]]) == 0
            said = capsys.readouterr().out
            (note,) = re.findall("- note: (Public sources quote .*)", said)
            assert "do not show the whole config.json or " in note
            (model,) = [m for m in choices(node) if m["name"] == row["name"]]
            assert model["notes"] == [note]
            page = shown(node, row["config"], name=row["name"], notes=[note])
            assert f"Note {note}" in page["warnings"]
            assert "Warning" not in page["warnings"]
            page = shown(node, row["config"] | {"rope_theta": 7.0}, name="", notes=[note])
            assert f"Warning {note}" in page["warnings"]


def test_of_a_row_of_a_tower_alone_it_is_said_what_is_left_out(capsys):
    assert main(["pixtral-12b"]) == 0
    said = capsys.readouterr().out
    assert "part         vision, layers 0 to 23" in said
    assert "text, layers" not in said
    assert "do not show the whole config.json or text_config. What is missing is left out" in said
    (whole,) = (row["config"] for row in ALL_ROWS if row["name"] == "mistral-community/pixtral-12b")
    told = {"model_type": "llava", "text_config": {"model_type": "mistral"}, "vision_config": whole}
    assert {part.part for part in rope_of(told).parts} == {"text", "vision"}


def choices(node):
    """What can be chosen on the page."""
    data = card_data()
    return node.ask(TWIN, "chosen", data["rows"], data["rules"])


def test_attention_comes_before_its_indexer(node, capsys):
    for name in ("deepseek-ai/DeepSeek-V3.2", "zai-org/GLM-5"):
        assert "indexer" not in shown(node, name)["says"]
        main([name])
        said = capsys.readouterr().out
        assert said.count("indexer, layers") == 1
        assert said.index("text, layers") < said.index("indexer, layers")


def test_a_length_that_was_not_seen_is_no_length_that_the_file_lacks(node, capsys):
    found = shown(node, "zai-org/GLM-4.5")
    assert "For what length it was trained was not seen." in found["says"]
    assert "trained fornot seen" in found["table"]
    assert "was not seen: paste its config.json, or type it" in found["blocks"]
    (config,) = (row["config"] for row in ALL_ROWS if row["name"] == "zai-org/GLM-4.5")
    found = shown(node, config | {"hidden_size": 4096})  # a file of a reader's
    assert "the file does not say" in found["says"]
    assert "is not in the file: type it" in found["blocks"]
    name = "deepseek-ai/DeepSeek-R1-Distill-Llama-8B"
    found = shown(node, name, wanted=131_072)
    assert "new" not in found["says"] + found["warnings"]
    assert "not less than" not in found["warnings"]
    main([name])
    assert "not less than" not in capsys.readouterr().out


def test_what_is_taken_of_metas_file_is_not_what_the_file_says(node):
    meta = {"dim": 4096, "n_layers": 32, "n_heads": 32, "rope_theta": 5e5, "use_scaled_rope": True}
    found = shown(node, meta, wanted=131_072)
    assert "131,072 tokens, as assumed of Llama 3.1" in found["table"]
    assert "131,072 that are taken, as assumed of Llama 3.1" in found["blocks"]
    assert "slow pairs turn up to 8 times slower (Llama 3.2: 32)" in found["warnings"]
    assert "the file is for" not in found["blocks"]
    given = shown(node, meta | {"max_position_embeddings": 65_536}, wanted=65_536)
    assert "65,536 tokens, as the file says" in given["table"]
    assert "assumed" not in given["table"] + given["blocks"]
    assert "the file in the words of a config.json" in found["blocks"]
    assert "convert FOLDER --to hf -o NEW_FOLDER" in found["blocks"]
    assert "vllm serve NEW_FOLDER" in found["blocks"]  # the weights as they are then
    assert (
        "vLLM, once tokenizer.json, tokenizer_config.json and generation_config.json lie"
        in found["blocks"]
    )
    assert "consolidated.01.pth ...) are joined before" in found["blocks"]


def test_the_command_says_that_parallel_parts_are_joined_before(capsys):
    with pytest.raises(SystemExit):
        main(["convert", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "parallel parts (consolidated.00.pth, consolidated.01.pth and so on) have to be" in said


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"dim": 4096, "n_layers": 32, "n_heads": 32}, "max_position_embeddings"),
        ({"dim": 5120, "n_layers": 48, "n_heads": 40, "nope_layer_interval": 4,
          "vision_args": {"dim": 1408, "n_layers": 34, "n_heads": 16}}, "max_position_embeddings"),
        ({"general.architecture": "qwen2", "qwen2.embedding_length": 3584, "qwen2.block_count": 28,
          "qwen2.attention.head_count": 28, "qwen2.rope.freq_base": 1e6}, "qwen2.context_length"),
    ],
)  # fmt: skip
def test_a_length_that_is_missing_is_asked_for_in_the_files_own_words(node, raw, field):
    found = shown(node, raw, wanted=131_072)
    assert f"type it as {field}, to see the lines" in found["blocks"]
    found = shown(node, raw | {field: 8192}, wanted=131_072)
    assert "YaRN by 16" in found["blocks"]


@pytest.mark.parametrize("architecture", ["llama", "granite", "qwen2", "smollm3", "cohere2"])
def test_a_gguf_has_the_command_that_takes_it_or_none(node, architecture):
    sizes = {"embedding_length": 4096, "block_count": 2, "context_length": 8192,
             "attention.head_count": 32, "rope.freq_base": 1e4}  # fmt: skip
    header = {f"{architecture}.{key}": value for key, value in sizes.items()}
    found = shown(node, {"general.architecture": architecture} | header)
    assert "the header in the words of a config.json" in found["blocks"]
    family = FAMILIES.get(architecture, architecture)
    differs = rope_of({"model_type": family}).parts[0].layout != LAYOUTS[architecture]
    assert ("query and key rows" in found["warnings"]) == differs
    back = differs and architecture in ARCHITECTURES.values()
    command = "python -m ropescope convert FILE.gguf --to hf -o NEW_FOLDER"
    assert (command in found["blocks"]) == back
    assert ("No command here converts it" in found["warnings"]) == (differs and not back)


def test_where_no_pair_meets_a_new_angle_of_p_rope_nothing_is_to_be_written(node):
    found = shown(node, "google/gemma-4-E2B", wanted=262_144)
    assert found["blocks"].startswith(
        "Nothing is to be written for the rotation: its slowest pairs rest, and no pair meets a "
        "new angle. vLLM, SGLang and llama.cpp stop at the length in the configuration all the same"
    )
    assert "rope_parameters" not in found["blocks"]


def test_a_factor_that_is_left_out_is_named(node):
    told = {"model_type": "qwen2", "max_position_embeddings": 32768}
    found = shown(node, told | {"rope_scaling": {**YARN, "attention_factor": 1.0}}, wanted=2**20)
    assert "The file’s attention_factor 1 is left out." in found["blocks"]
    assert "attention_factor" not in shown(node, told | {"rope_scaling": YARN})["blocks"]


def test_a_name_that_none_has_offers_those_that_are_like_it(node, capsys):
    chips = onto(node, "", "phi-3-mini-128k")[0]["chips"]
    assert chips.startswith(
        "No checkpoint here has exactly this name. Paste its config.json below; or did you mean"
    )
    assert main(["phi-3-mini-128k"]) == 2
    names = re.findall("'([^']+)'", capsys.readouterr().err)
    assert names
    assert chips.endswith("".join(names))
    assert onto(node, "", "zzzzzzzz")[0]["chips"].endswith("Paste its config.json below.")


def test_a_refusal_begins_with_the_fields_own_name(node):
    said = onto(node, "", text='{"model_type": "llama", "rope_theta": -1}')[0]["problem"]
    assert said.startswith("rope_theta must be a positive number")


def test_layers_and_axes_in_short(node):
    (part,) = rope_of({"model_type": "llama", "num_hidden_layers": 6}).to_dict()["parts"]
    turns = [[pair % 3, 1] for pair in range(60)] + [[0, 4]]
    part |= {"layers": [[0, 5, 5], [7, 13, 3]], "sections": turns}
    page = dict(node.call("model_card.js", "lines", part, ""))
    ours = dict(lines(part))
    assert page["axes"] == ours["axes"] == "axes 0, 1, 2 in turn: 24, 20, 20 pairs"
    assert page["layers"] == "0, 5, 7 to 13 in steps of 3"
    assert ours["part"].endswith("layers 0, 5, 7 to 13 in steps of 3")


def test_a_base_that_a_short_form_lacks_is_named_in_the_files_own_field(node):
    told = {"model_type": "gemma3", "text_config": {
        "model_type": "gemma3_text", "num_hidden_layers": 12, "sliding_window": 1024,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0}}}  # fmt: skip
    words = ("text_config.rope_scaling has no rope_theta: full_attention layers take the class's "
             "default 1,000,000.")  # fmt: skip
    assert words in {one.message for one in rope_of(told).warnings}
    assert words in shown(node, told)["warnings"]


@pytest.mark.parametrize("rows", ["", "interleaved"])
def test_other_runtimes_are_told_of_the_rows_of_a_file(node, rows):
    """A GGUF has rows of its own, beside a configuration that speaks of Hugging Face's."""
    told = {"model_type": "llama", "rope_theta": 1e4}
    (part,) = rope_of(told).to_dict()["parts"]
    found = elsewhere(part | {"layout": rows or part["layout"]})
    said = onto(node, "", text=json.dumps(told), rows=rows)[0]["elsewhere"]
    heads = ("differs in", "turned so by", "was asked of")
    for verdict, words in zip(VERDICTS, heads, strict=True):
        many = sum(one["verdict"] == verdict for one in found)
        assert (f"{words} {many}" in said) == bool(many)


def test_the_page_and_the_command_say_the_same_of_other_runtimes(node):
    texts = [json.dumps(row["config"]) for row in ROWS]
    engines = json.dumps(load_engines())
    found = node.ask(TWIN, "others", texts, json.dumps(load_rules()), engines)
    some = set()
    for row, theirs in zip(ROWS, found, strict=True):
        ours = [elsewhere(part) for part in rope_of(row["config"]).to_dict()["parts"]]
        assert theirs == ours, row["name"]
        some |= {one["verdict"] for part in ours for one in part}
    assert some == set(VERDICTS)


@pytest.mark.parametrize(
    "name",
    [
        *("Qwen/Qwen2.5-7B-Instruct", "zai-org/GLM-4.5-Air"),
        *("deepseek-ai/DeepSeek-V3", "meta-llama/Llama-3.2-1B-Instruct"),
    ],
)
@pytest.mark.parametrize("wanted", [2048, 131_072, 2**20])
def test_hands_stand_where_the_frequencies_put_them(node, name, wanted):
    (config,) = (row["config"] for row in ALL_ROWS if row["name"] == name)
    part = rope_of(config).to_dict()["parts"][0]
    hands = node.call("rotated_part.js", "handsAt", part, wanted, None)
    theta, plain = np.array(part["inv_freq"]), inverse_frequencies(part["width"], part["base"])
    trained = part["trained_length"]
    longest = max(trained, part["max_length"])
    seen = np.minimum(np.maximum(trained * plain, longest * theta * (longest > trained)), 2 * np.pi)
    assert [hand["pair"] for hand in (hands[0], hands[-1])] == [0, len(theta) - 1]
    assert len(hands) == 8
    for hand in hands:
        i = hand["pair"]
        assert np.isclose(hand["angle"], wanted * theta[i])
        assert np.isclose(hand["seen"], seen[i])
        fresh = seen[i] < 2 * np.pi and wanted * theta[i] > seen[i] * (1 + 1e-9)
        assert hand["fresh"] == fresh


def test_a_column_of_the_map_is_the_mean_of_the_cosine(node):
    for theta, start, end in ((1.0, 10, 11), (0.01, 5, 900), (1e-6, 1, 4), (1.0, 2**16, 2**17)):
        exact = np.cos(theta * np.linspace(start, end, 2_000_001)).mean()
        mean = node.call("rotated_part.js", "meanCosine", theta, start, end)
        assert np.isclose(mean, exact, atol=2e-6)


@pytest.mark.parametrize(
    ("config", "factor"),
    [
        ({"model_type": "openai_privacy_filter"}, 0.4761),
        ({"model_type": "llama"}, None),
        ({"model_type": "qwen2", "rope_scaling": {**YARN, "attention_factor": 2.5}}, 2.5),
        ({"model_type": "qwen2", "rope_scaling": {**YARN, "attention_factor": 0.4}}, 0.4),
    ],
)
def test_a_factor_after_the_rotation_is_not_on_the_table(node, config, factor):
    (part,) = rope_of(config).to_dict()["parts"]
    said = dict(node.call("model_card.js", "lines", part, ""))
    for found in (said, dict(lines(part))):
        words = found.get("factor", "1 on rotated queries and keys")
        assert re.fullmatch(r"[\d.]+ on rotated queries and keys", words)
        assert np.isclose(float(words.split()[0]), factor or 1.0, atol=1e-4)
    table = part["table_factor"] * torch.linspace(-1, 1, 100_001, dtype=torch.float64)
    off = (table.bfloat16().double() - table).abs().max().item()
    words = r"cosines rounded to bfloat16 is off by ([\d.]+) at most"
    bound = float(re.search(words, said["16 bits"])[1])
    assert bound / 1.2 < off <= bound


def test_no_hand_is_off_in_float32_before_the_position_that_the_page_names():
    page = (NOTEBOOKS / "check-your-model.ipynb").read_text("utf8")
    (end,) = re.findall(r"no hand is off by 0.1 rad below position ([\d,]+):", page)
    at = np.arange(int(end.replace(",", "")))
    parts = [part for row in ROWS for part in rope_of(row["config"]).parts]
    for base, width in {(part.base, part.width) for part in parts}:
        exact = inverse_frequencies(width, base)
        exponents = np.arange(0, width, 2, np.float32) / np.float32(width)
        theta = 1 / np.float32(base) ** exponents
        for i in np.flatnonzero(exact > 0.1):  # else below 50,000 rad: 20 ulps are less
            assert np.abs(at.astype(np.float32) * theta[i] - at * exact[i]).max() < 0.1


def test_what_does_not_rotate_is_told_from_what_is_not_known(node):
    says = [
        node.call("model_card.js", "wordsWithout", {"family": family, "known": known})
        for family, known in (("gpt2", True), ("gpt7", False), (None, False))
    ]
    assert "**gpt2** has no rotary embedding" in says[0]
    assert "Of **gpt7** it is not known" in says[1]
    assert "Of **this configuration** it is not known" in says[2]
    spec = rope_of({"model_type": "granitemoehybrid", "position_embedding_type": "nope"}).to_dict()
    said = node.call("model_card.js", "wordsWithout", spec)
    assert said == "As this file has it, nothing in **granitemoehybrid** rotates."
    (why,) = (one["message"] for one in spec["warnings"])
    assert why == "None of its layers rotates: position_embedding_type is 'nope'."
    for family in ("evolla", "hunyuan_vl", "clvp"):
        spec = rope_of({"model_type": family}).to_dict()
        assert f"Of **{family}** it is not known" in node.call(
            "model_card.js", "wordsWithout", spec
        )
        assert all(one["message"][0] != " " for one in spec["warnings"])


SU = {"type": "su", "short_factor": [1.1] * 48, "long_factor": [2.0] * 48}
PHI = {"hidden_size": 3072, "num_attention_heads": 32, "max_position_embeddings": 131072,
       "original_max_position_embeddings": 4096}  # fmt: skip
MOE = {"hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 131072}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        # as Phi-3-mini-128k was published first, and as Phi-3.5-MoE is
        ({"model_type": "phi3", **PHI, "rope_scaling": SU},
         "First mend what is marked **Wrong** above"),
        ({"model_type": "phimoe", **MOE, "original_max_position_embeddings": 4096, "rope_scaling": {
            "type": "longrope", "short_factor": [1.1] * 64, "long_factor": [2.0] * 64,
            "short_mscale": 1.24, "long_mscale": 1.24, "original_max_position_embeddings": 4096}},
         "Because not all is known of how it turns"),
    ],
)  # fmt: skip
def test_a_card_that_is_wrong_or_not_whole_has_no_lines(node, config, words):
    for wanted in (65_536, 131_072, 1_048_576):
        found = shown(node, config, wanted=wanted)
        assert words.replace("*", "") in found["blocks"]
        assert "vllm serve" not in found["blocks"]
        if "Because" in words:
            assert "Not all is known" in found["says"].replace("*", "")
            assert "none, but for what the warning names" in found["table"]
            assert "no pair" not in found["says"]


def test_lines_for_one_of_two_texts_name_the_other(node):
    length = {"max_position_embeddings": 8192}
    found = shown(node, {"model_type": "t5gemma", "encoder": length, "decoder": length})
    assert "They are for encoder; decoder may need lines too: choose it above." in found["blocks"]
    assert "may need lines too" not in shown(node, "Qwen/Qwen2.5-7B-Instruct")["blocks"]


def test_how_far_yarn_goes_stands_beside_the_length_of_the_file(node, tmp_path, capsys):
    """As the cards of Qwen3 say: YaRN by 4 from 32,768, in a file with 40,960."""
    (row,) = (one for one in ALL_ROWS if one["name"] == "Qwen/Qwen3-8B")
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    config = row["config"] | {"rope_scaling": yarn}
    words = "40,960 tokens, as the file says; 131,072 by its YaRN"
    assert words in shown(node, config)["table"]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    main([str(file)])
    assert words in capsys.readouterr().out


def test_what_hangs_on_a_length_that_was_guessed_is_not_said(node):
    """The row of Phi-3-mini-4k has no length, and its class one of its own for the original."""
    for wanted in (8192, 16_384, 32_768, 131_072):
        said = shown(node, "microsoft/Phi-3-mini-4k-instruct", wanted=wanted)["blocks"]
        words = "paste its config.json, or type it as max_position_embeddings"
        assert said.startswith(f"Its trained length was not seen: {words}")
        assert "there first" not in said
        assert str(wanted // 2) not in said.replace(",", "")


def test_where_yarn_goes_beyond_the_one_length_of_a_file_it_is_told(node, tmp_path, capsys):
    """As the cards of Qwen2.5 say: the length stays."""
    (row,) = (one for one in ALL_ROWS if one["name"] == "Qwen/Qwen2.5-7B-Instruct")
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    config = row["config"] | {"rope_scaling": yarn, "max_position_embeddings": 32768}
    assert "may reach131,072 by its YaRN" in shown(node, config)["table"]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    main([str(file)])
    assert "may reach    131,072 tokens by its YaRN" in capsys.readouterr().out


def test_a_switch_that_a_class_does_not_read_turns_no_window_off(node, tmp_path, capsys):
    (row,) = (one for one in ALL_ROWS if one["name"] == "mistralai/Mistral-7B-v0.1")
    config = row["config"] | {"use_sliding_window": False}
    assert "look back no further" in shown(node, config)["table"]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    main([str(file)])
    assert "look back no further" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "taken"),
    [
        ("Qwen/Qwen2.5-7B", None), ("foo/llama", None), ("someone/Qwen2.5-7B-Instruct", None),
        ("qwen/qwen2.5-7b-instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("qwen2.5-7b", "Qwen/Qwen2.5-7B-Instruct"),
    ],
)  # fmt: skip
def test_a_name_with_an_owner_takes_that_checkpoint_alone(node, typed, taken):
    figure = figures.model_card(card_data(), "zai-org/GLM-4.5")
    chosen = node.ask(DROPPED, "entered", slim(figure.get_state()), typed)
    assert chosen == taken


def test_sglang_has_no_line_for_a_text_two_levels_deep(node):
    text = {"max_position_embeddings": 32768, "hidden_size": 3584, "num_attention_heads": 28}
    config = {"model_type": "qwen2_5_omni", "thinker_config": {"text_config": text}}
    found = shown(node, config, wanted=131_072)
    assert "vllm serve" in found["blocks"]
    assert "sglang" not in found["blocks"]


def test_how_far_a_rescaling_reaches_that_was_not_seen_is_not_said(node):
    """Of the row, and of Llama 4's own file, the length before the rescaling alone is known."""
    llama4 = {"dim": 5120, "n_layers": 48, "n_heads": 40, "rope_theta": 5e5,
              "use_scaled_rope": True, "nope_layer_interval": 4}  # fmt: skip
    row = "deepseek-ai/DeepSeek-R1-Distill-Llama-8B"
    for config, said in ((row, "was not seen: paste"), (llama4, "the file does not say: type")):
        near, far = (shown(node, config, wanted=n)["blocks"] for n in (4096, 65_536))
        assert "4,096 tokens are within the 8,192 before its rescaling." in near
        assert "vllm serve" not in near + far
        assert "How far beyond 8,192 tokens it reaches" in far
        assert said in far
        assert "rescaling of a rescaling" not in far


def test_a_gguf_without_the_yarn_of_a_file_has_its_line(node):
    (row,) = (one for one in ALL_ROWS if one["name"] == "Qwen/Qwen3-8B")
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    found = shown(node, row["config"] | {"rope_scaling": yarn}, wanted=131_072)["blocks"]
    assert "131,072 tokens are within the 131,072 that its YaRN reaches" in found
    assert "llama.cpp, of a GGUF that was made without this YaRN" in found
    assert "--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768" in found


def test_a_length_that_is_missing_is_asked_for(node):
    """Of a class's rescaling too, and where a guess would bring no line."""
    ask = "paste its config.json, or type it as max_position_embeddings"
    for wanted in (4096, 131_072):
        assert ask in shown(node, "google/gemma-3-4b-it", wanted=wanted)["blocks"]
        assert "type it as max_position" in shown(node, {"model_type": "gptj"})["blocks"]


def test_new_angles_of_longrope_hang_on_no_length_that_is_missing(node):
    lists = {"type": "longrope", "short_factor": [1.1] * 48, "long_factor": [2.0] * 48}
    config = {**PHI, "model_type": "phi3", "rope_scaling": lists}
    del config["max_position_embeddings"]
    said = shown(node, config, wanted=1_048_576)["says"].replace("*", "")
    assert "How far beyond 4,096 tokens it was trained, the file does not say." in said
