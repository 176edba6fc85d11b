"""The command: one card for every kind of file, what differs between two, and what is broken."""

import importlib
import json
import re
import subprocess
import sys
import tomllib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from experiments.real.model import path as released
from rope_minimal import rescaled_frequencies, rotate_complex
from ropescope import card, gguf_file, identify
from ropescope.__main__ import main
from ropescope.card import report_of, specification
from ropescope.configuration import OWN_CODE, load_rules, rope_of
from ropescope.files import read
from ropescope.translation import FAMILIES
from tests.tools import rows
from tests.tools.broken_files import (
    BROKEN,
    GGUF_LLAMA,
    LLAMA,
    gguf,
    llama3_divisors,
    mutated,
    safetensors,
)
from tests.tools.released import MISSING

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}  # fmt: skip


def asked(*words: object) -> int:
    return main([str(word) for word in words])


def written(file: Path, found: object) -> Path:
    data = found if isinstance(found, bytes) else json.dumps(found).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def part(source: Path) -> dict:
    (found,) = specification(source)["parts"]
    return found


# Forms --------------------------------------------------------------------------------------------


def test_a_configuration_a_folder_and_its_weights_give_one_card(tmp_path, capsys) -> None:
    file = written(tmp_path / "config.json", LLAMA)
    save_file({"a": np.zeros((2, 2), np.float32)}, tmp_path / "model.safetensors")
    cards = []
    for path in (file, tmp_path, tmp_path / "model.safetensors"):
        assert asked(path) == 0
        cards.append(capsys.readouterr().out.split("\n", 1)[1])
    assert cards[0] == cards[1] == cards[2]
    for words in ("half-split", "16 channels", "10,000, from rope_theta", "8 pairs", "2,048"):
        assert words in cards[0]


def test_of_a_folder_with_metas_file_too_the_models_own_counts(tmp_path) -> None:
    written(tmp_path / "config.json", LLAMA)
    for name, tensor in (("consolidated", "layers.0.attention.wq.weight"), ("model", "a")):
        save_file({tensor: np.zeros((2, 2), np.float32)}, tmp_path / f"{name}.safetensors")
    assert set(read(tmp_path).tensors) == {"a"}
    assert part(tmp_path)["layout"] == "half-split"
    assert part(tmp_path / "consolidated.safetensors")["layout"] == "interleaved"


def test_json_is_the_specification(tmp_path, capsys) -> None:
    file = written(tmp_path / "config.json", LLAMA)
    assert asked(file, "--json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(specification(file)))


def test_html_is_a_page_that_asks_nobody_and_escapes_names(tmp_path, capsys) -> None:
    file = written(tmp_path / "<script>alert(1)</script>" / "config.json", LLAMA)
    asked(file, "--html")
    page = capsys.readouterr().out
    assert page.startswith("<!doctype html>")
    assert "half-split" in page
    assert "<svg" in page
    assert not re.search(r"<script|src=|href=|https?:", page)


def test_metas_parameters_are_read_in_the_words_of_a_configuration(tmp_path) -> None:
    meta = {"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256,
            "ffn_dim_multiplier": 1.3, "multiple_of": 1024, "norm_eps": 1e-05,
            "rope_theta": 500000.0, "use_scaled_rope": True}  # fmt: skip
    found = specification(written(tmp_path / "params.json", meta))
    (one,) = found["parts"]
    assert (one["layout"], one["base"], one["width"]) == ("interleaved", 500_000, 128)
    parameters = {k: v for k, v in LLAMA3.items() if k != "rope_type"}
    inv_freq, _ = rescaled_frequencies("llama3", 128, 5e5, **parameters)
    np.testing.assert_allclose(one["inv_freq"], inv_freq, rtol=1e-6)
    assert any("use_scaled_rope" in warning["message"] for warning in found["warnings"])


# GGUF ---------------------------------------------------------------------------------------------


def of_gguf(folder: Path, tensors=None, **more) -> dict:
    """Return the configuration of a small GGUF; keys with __ for the dots."""
    keys = {key.replace("__", "."): value for key, value in more.items()}
    return read(written(folder / "m.gguf", gguf(GGUF_LLAMA | keys, tensors))).config


def test_a_gguf_of_text_alone_has_no_tower(tmp_path) -> None:
    keys = {
        f"qwen2vl.{key[6:]}": own for key, own in GGUF_LLAMA.items() if key.startswith("llama.")
    }
    keys |= {"general.architecture": "qwen2vl", "qwen2vl.rope.dimension_sections": [4, 2, 2, 0]}
    found = specification(written(tmp_path / "m.gguf", gguf(keys)))
    assert [one["part"] for one in found["parts"]] == ["text"]
    assert found["parts"][0]["sections"] == [[0, 4], [1, 2], [2, 2]]
    assert not any(one["severity"] for one in found["warnings"])


def test_rows_that_stand_alike_are_not_said_to_differ(tmp_path) -> None:
    """DeepSeek's code writes turned channels in another order than it reads them; no row moves."""
    keys = {"general.architecture": "deepseek2", "deepseek2.block_count": 2}
    keys |= {"deepseek2.context_length": 4096, "deepseek2.embedding_length": 7168}
    keys |= {"deepseek2.attention.head_count": 128, "deepseek2.rope.freq_base": 10000.0}
    keys |= {"deepseek2.rope.dimension_count": 64, "deepseek2.attention.kv_lora_rank": 512}
    keys |= {"deepseek2.attention.key_length": 576, "deepseek2.attention.key_length_mla": 192}
    found = specification(written(tmp_path / "m.gguf", gguf(keys)))
    assert found["parts"][0]["layout"] == "interleaved"
    assert "other-rows" not in {one["code"] for one in found["warnings"]}
    plain = rope_of({"model_type": "deepseek_v3"}).to_dict()["parts"][0]
    assert plain["layout"] == "read interleaved, written half-split"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Qwen/Qwen3-4B", "Qwen/Qwen3-4B-Instruct-2507"),  # whose base is another
        ("Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-7B-Instruct"),  # whose length is another
        ("deepseek-ai/DeepSeek-V2", "deepseek-ai/DeepSeek-V2-Lite"),
    ],
)
def test_the_name_of_another_checkpoint_is_none_of_a_row(capsys, name: str, near: str) -> None:
    assert asked(name) == 2
    assert near in capsys.readouterr().err


def test_the_same_layers_in_another_order_of_kinds_rotate_alike() -> None:
    sizes = {"model_type": "olmo3", "hidden_size": 512, "num_attention_heads": 4}
    sizes["num_hidden_layers"] = 8
    kinds = {"layer_types": ["sliding_attention", "full_attention"] * 4}
    one, two = (rope_of({**sizes, **own}).to_dict() for own in ({}, kinds))
    assert card.compare(one, two) == (["They rotate alike."], 0)


def test_a_model_with_a_rescaling_is_compared_kind_by_kind_with_one_without() -> None:
    sizes = {"model_type": "olmo3", "hidden_size": 512, "num_attention_heads": 4}
    scaling = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192}
    one, two = (rope_of({**sizes, **own}).to_dict() for own in ({}, {"rope_scaling": scaling}))
    said, code = card.compare(one, two)
    assert code == 2
    assert len(said) == 2
    assert said[0].startswith("text, full_attention: ")
    assert "another frequency" in said[0]


def test_a_name_that_says_how_a_model_was_tuned_finds_its_model(capsys) -> None:
    assert asked("meta-llama/Llama-3.1-8B-Instruct") == 2
    assert "did you mean 'meta-llama/Meta-Llama-3.1-8B'?" in capsys.readouterr().err


def test_a_gguf_says_what_a_configuration_would(tmp_path) -> None:
    file = written(tmp_path / "m.gguf", gguf(GGUF_LLAMA))
    assert read(file).config == LLAMA
    assert part(file)["layout"] == "interleaved"
    same = part(written(tmp_path / "config.json", LLAMA))
    found = part(file)
    assert found.pop("elsewhere") != same.pop("elsewhere")  # other rows need another flag
    assert {name: value for name, value in found.items() if name.endswith("_from")} == {
        "head_dim_from": "llama.embedding_length // llama.attention.head_count",
        "width_from": "llama.embedding_length // llama.attention.head_count",
        "base_from": "llama.rope.freq_base",
    }
    for one in (found, same):
        for name in ("head_dim_from", "width_from", "base_from", "layout"):
            del one[name]
    assert found == same


def test_llama3s_divisors_get_their_name_back(tmp_path) -> None:
    for factor, base, width in ((8.0, 5e5, 128), (32.0, 5e5, 64)):
        found = of_gguf(
            tmp_path,
            {"rope_freqs.weight": llama3_divisors(width, base, factor, 8192)},
            llama__attention__key_length=width,
            llama__rope__dimension_count=width,
            llama__rope__freq_base=base,
        )
        assert found["rope_scaling"] == LLAMA3 | {"factor": factor}


def test_divisors_of_no_formula_are_told_and_left_out(tmp_path) -> None:
    odd = {"rope_freqs.weight": [1.0, 3.0, 2.0, 5.0, 1.0, 4.0, 9.0, 2.0]}
    found = read(written(tmp_path / "m.gguf", gguf(GGUF_LLAMA, odd)))
    assert "rope_scaling" not in found.config
    assert any("rope_freqs" in note.message for note in found.told.notes)


def test_rescalings_of_gguf_have_the_names_of_a_configuration(tmp_path) -> None:
    yarn = of_gguf(
        tmp_path,
        llama__rope__scaling__type="yarn",
        llama__rope__scaling__factor=4.0,
        llama__rope__scaling__original_context_length=32768,
    )
    assert yarn["rope_scaling"] == {"rope_type": "yarn", "factor": 4.0,
                                    "original_max_position_embeddings": 32768}  # fmt: skip
    linear = of_gguf(tmp_path, llama__rope__scale_linear=2.0)
    assert linear["rope_scaling"] == {"rope_type": "linear", "factor": 2.0}
    lists = {"rope_factors_long.weight": [2.0] * 8, "rope_factors_short.weight": [1.0] * 8}
    long = of_gguf(tmp_path, lists, llama__rope__scaling__attn_factor=1.25)
    wanted = {"rope_type": "longrope", "long_factor": [2.0] * 8, "short_factor": [1.0] * 8}
    assert long["rope_scaling"] == wanted | {"attention_factor": 1.25}
    axes = of_gguf(tmp_path, llama__rope__dimension_sections=[4, 2, 2, 0])
    assert axes["rope_scaling"] == {"rope_type": "default", "mrope_section": [4, 2, 2]}
    plain = of_gguf(tmp_path, llama__rope__scaling__type="none", llama__rope__scaling__factor=2.0)
    assert "rope_scaling" not in plain


def test_partial_widths_of_gguf(tmp_path) -> None:
    found = of_gguf(tmp_path, llama__rope__dimension_count=8)
    assert found["partial_rotary_factor"] == 0.5
    keys = {k.replace("llama", "deepseek2"): v for k, v in GGUF_LLAMA.items()}
    keys |= {"general.architecture": "deepseek2", "deepseek2.rope.dimension_count": 64,
             "deepseek2.attention.key_length": 192}  # fmt: skip
    found = read(written(tmp_path / "d.gguf", gguf(keys))).config
    assert (found["qk_rope_head_dim"], found["qk_nope_head_dim"]) == (64, 128)


def test_a_base_that_a_gguf_lacks_is_said(tmp_path) -> None:
    keys = {key: value for key, value in GGUF_LLAMA.items() if "freq_base" not in key}
    found = specification(written(tmp_path / "m.gguf", gguf(keys)))
    assert any("llama.cpp takes 10,000" in one["message"] for one in found["warnings"])


def test_an_architecture_whose_layout_is_not_known_is_said(tmp_path) -> None:
    found = read(written(tmp_path / "m.gguf", gguf({"general.architecture": "new"})))
    assert found.layout is None
    assert any("'new'" in note.message for note in found.told.notes)


def test_the_tables_are_those_of_the_gguf_package() -> None:
    constants = pytest.importorskip("gguf.constants")
    kinds = constants.GGMLQuantizationType
    sizes = {int(kind): size for kind, size in constants.GGML_QUANT_SIZES.items()}
    assert all(sizes[kind] == size for kind, size in gguf_file.BLOCKS.items())
    assert all(kinds(kind).name == name for kind, name in gguf_file.PLAIN.items())
    assert set(gguf_file.LAYOUTS) <= set(constants.MODEL_ARCH_NAMES.values())
    assert set(FAMILIES) <= set(gguf_file.LAYOUTS)


def test_a_released_gguf_is_read_as_the_gguf_package_reads_it(capsys) -> None:
    gguf_package = pytest.importorskip("gguf")
    file = released()
    if file is None or not file.exists():
        pytest.skip(MISSING)
    ours, tensors = gguf_file.header(file)
    theirs = gguf_package.GGUFReader(file)
    for key, value in ours.items():
        assert value is None or theirs.fields[key].contents() == value
    found = {t.name: (t.shape.tolist()[::-1], t.data_offset, t.n_bytes) for t in theirs.tensors}
    assert found == {n: (list(t.shape), t.start, t.nbytes) for n, t in tensors.items()}
    assert asked(file) == 0
    said = capsys.readouterr().out
    assert all(words in said for words in ("interleaved", "100,000", "layers 0 to 29", "8,192"))


# Names --------------------------------------------------------------------------------------------


def test_the_rows_that_the_command_knows_are_those_of_the_atlas() -> None:
    file = Path(card.__file__).parent / "checkpoints.json"
    assert file.read_text("utf8") == rows.rows(), "run python -m tests.tools.rows"


def test_a_public_checkpoint_is_known_by_its_name_and_a_family_by_its_type(capsys) -> None:
    for name, words in (
        ("Qwen/Qwen2.5-72B", "1,000,000, from"),
        ("qwen2.5-72b", "1,000,000, from"),
        ("qwen 2.5-72B", "1,000,000, from"),
        ("meta-llama/Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-8B"),
        ("qwen2", "10,000, from the class's default"),
    ):
        asked(name)
        assert words in capsys.readouterr().out
    assert asked("Qwen2.5-72BB") == 2
    said = capsys.readouterr().err
    assert said.startswith("ropescope: Qwen2.5-72BB: no file, model_type or public checkpoint")
    assert "did you mean 'Qwen/Qwen2.5-72B'" in said
    assert asked("unsloth/Llama-3.1-8B") == 2  # of which nothing is known
    assert "did you mean 'meta-llama/Meta-Llama-3.1-8B'?" in capsys.readouterr().err


def test_of_a_family_without_a_rule_the_card_says_why_and_is_a_warning(capsys) -> None:
    assert asked("vjepa2") == 1
    said = capsys.readouterr().out
    assert "vjepa2, for which no rule is known" in said
    assert "- warning: vjepa2 has no rule: it rotates nothing: cosines and sines" in said


@pytest.mark.parametrize(
    ("one", "two", "code", "words"),
    [
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B", 0, "They rotate alike."),
        ("llama 3.1 405b", "llama 3.1 70b", 0, "layers 0 to 125 against 0 to 79"),
        ("llama 3.1 405b", "llama 3.1 70b", 0, "They rotate alike in the layers that both have."),
        ("gemma 3 1b", "gemma 2 9b", 2, "the second has no such part"),
        ("smollm3", "llama 3.1", 2, "layers 0 to 2, 4 to 6"),
        ("llama 3.1 70b", "llama 3.3", 0, "They rotate alike."),
        ("llama 3.1", "llama 3", 2, "35 of 64 pairs have another frequency"),  # slower than 2,048
        ("llama 3.1", "llama 3.2", 2, "Heads of 128 channels against 64."),
        ("llama 2", "llama 3", 2, "another frequency"),
        ("llama", "llama 2", 0, "They rotate alike."),
    ],
)
def test_llamas_beside_each_other(capsys, one: str, two: str, code: int, words: str) -> None:
    assert asked("compare", one, two) == code
    assert words in capsys.readouterr().out


def test_a_public_type_without_a_rule_is_no_misspelling() -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    rules = load_rules()["types"]
    kinds = {row["config"].get("model_type") for row in json.loads(rows.rows())}
    assert {kind for kind in kinds if kind and kind not in rules} == OWN_CODE
    assert not OWN_CODE & {*CONFIG_MAPPING}
    for kind in OWN_CODE:
        (said,) = (one.message for one in rope_of({"model_type": kind}).warnings)
        assert "did you mean" not in said
    kimi = json.loads(rows.rows())
    (kimi,) = (row["config"] for row in kimi if row["name"] == "moonshotai/Kimi-K2-Instruct")
    (said,) = (one.message for one in rope_of(kimi).warnings)
    assert "inside kimi_k25, transformers reads its fields as those of deepseek_v3" in said
    (one,) = rope_of(kimi | {"model_type": "deepseek_v3"}).parts
    inside = rope_of({"model_type": "kimi_k25", "text_config": kimi}).parts
    (two,) = (part for part in inside if part.part == "text")
    assert (one.inv_freq, one.attention_factor) == (two.inv_freq, two.attention_factor)
    assert "did you mean 'llama'?" in rope_of({"model_type": "lama"}).warnings[0].message


ACT = {  # public checkpoints of which the card is not known, or a field does nothing
    "no-rule": 17, "no-effect": 5, "head-width-guessed": 1,
}  # fmt: skip


def test_a_name_warns_of_what_its_reader_can_mend_alone() -> None:
    found: dict[str, int] = {}
    for row in json.loads(rows.rows()):
        grave = {o["code"] for o in specification(row["name"])["warnings"] if o["severity"]}
        assert "assumed" not in grave, row["name"]
        for code in grave:
            found[code] = found.get(code, 0) + 1
    assert found == ACT


def test_kinds_of_layers_that_rotate_alike_are_compared_as_one() -> None:
    rope = {"rope_type": "default", "rope_theta": 5e5}
    sizes = {"hidden_size": 512, "num_attention_heads": 4, "num_hidden_layers": 8}
    both = {"rope_parameters": {"full_attention": rope, "sliding_attention": rope}}
    one = rope_of({"model_type": "olmo3", **sizes, **both}).to_dict()
    two = rope_of({"model_type": "llama", **sizes, "rope_parameters": rope}).to_dict()
    assert card.compare(one, two) == (["They rotate alike."], 0)
    both["rope_parameters"]["sliding_attention"] = rope | {"rope_theta": 1e4}
    one = rope_of({"model_type": "olmo3", **sizes, **both}).to_dict()
    assert card.compare(one, two)[1] == 2


def test_an_expression_with_a_sum_has_parentheses() -> None:
    config = {"model_type": "mistral4", "qk_nope_head_dim": 64, "qk_rope_head_dim": 64}
    (found,) = rope_of(config).to_dict()["parts"]
    whole = "(qk_nope_head_dim + qk_rope_head_dim)"
    assert found["width_from"] == f"{whole} x qk_rope_head_dim / {whole}"
    sizes = {"qk_nope_head_dim": 64, "qk_rope_head_dim": 64}
    value = eval(found["width_from"].replace(" x ", " * "), {}, sizes)
    assert value == found["width"] == 64


def test_every_public_checkpoint_can_be_chosen() -> None:
    found = {row["name"]: asked(row["name"]) for row in json.loads(rows.rows())}
    assert 2 not in found.values(), found
    (text,) = [one for one in specification("glm 4.1v")["parts"] if one["part"] == "text"]
    assert (text["width"], text["head_dim"], text["layout"]) == (64, 128, "interleaved")
    assert text["sections"] == [[0, 8], [1, 12], [2, 12]]


def test_whether_a_length_is_before_or_after_positions_are_divided_is_not_told(capsys) -> None:
    asked("google/gemma-3-27b-it")
    said = capsys.readouterr().out
    assert "131,072 tokens, before or after the rescaling, the file does not say" in said


def test_a_folder_with_a_gguf_is_told_to_name_the_file(tmp_path, capsys) -> None:
    written(tmp_path / "m.gguf", gguf(GGUF_LLAMA))
    assert asked(tmp_path) == 2
    assert "a GGUF is named itself, not by its folder" in capsys.readouterr().err


# What differs -------------------------------------------------------------------------------------


def test_what_leads_from_one_file_to_another(tmp_path, capsys) -> None:
    one = written(tmp_path / "a" / "config.json", LLAMA)
    same = written(tmp_path / "b" / "config.json", LLAMA)
    rows = written(tmp_path / "m.gguf", gguf(GGUF_LLAMA))
    other = written(tmp_path / "c" / "config.json", LLAMA | {"rope_theta": 500000.0})
    fewer = written(tmp_path / "d" / "config.json", LLAMA | {"num_hidden_layers": 1})
    for two, code, words in (
        (same, 0, "rotate alike"),
        (rows, 1, "Permute the rows"),
        (other, 2, "another frequency"),
        (fewer, 0, "layers 0 to 1 against 0"),
        ("qwen2", 2, "channels"),
        ("gpt2", 2, "no such part"),
        (written(tmp_path / "e" / "config.json", {"model_type": "unheard"}), 2, "is not known"),
    ):
        assert asked("compare", one, two) == code, two
        assert words in capsys.readouterr().out
    assert asked("compare", one, rows, "--json") == 1
    assert json.loads(capsys.readouterr().out)["code"] == 1


@pytest.mark.parametrize("back", [False, True])
def test_a_factor_of_a_rescaling_is_no_factor_of_rows(tmp_path, capsys, back: bool) -> None:
    """To follow both would multiply twice: with the rescaling, its factor comes along."""
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}
    files = [written(tmp_path / "a.json", LLAMA),
             written(tmp_path / "b.json", LLAMA | {"rope_scaling": scaling})]  # fmt: skip
    assert asked("compare", *(files[::-1] if back else files)) == 2
    said = capsys.readouterr().out
    assert "give the second those of the first, and compare again" in said
    assert "multiply no rows before frequencies agree" in said
    assert "Multiply" not in said
    same = scaling | {"attention_factor": 1.0}
    other = written(tmp_path / "c.json", LLAMA | {"rope_scaling": same})
    assert asked("compare", files[1], other) == 1  # the same frequencies: here the factor is rows'
    assert "Multiply the rows that rotate by 1.13" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["t5gemma", "blt", "dia", "voxtral_realtime", "llama4"])
def test_a_model_of_several_parts_is_as_itself(name: str) -> None:
    one = specification(name)
    assert card.compare(one, one)[1] == 0


def test_two_without_a_rotation_are_not_compared() -> None:
    assert card.compare(specification("gpt2"), specification("bloom"))[1] == 2
    assert card.compare(specification("gpt2"), specification("gpt2"))[1] == 0


def test_frequencies_of_one_alone_may_follow_the_length(capsys) -> None:
    short = {"model_type": "llama", "rope_scaling": {"type": "dynamic", "factor": 2.0}}
    one, two = (rope_of(own).to_dict() for own in (short, {"model_type": "llama"}))
    for which, both in (("first", (one, two)), ("second", (two, one))):
        said, code = card.compare(*both)
        assert (said, code) == (
            [f"text: frequencies of the {which} alone change with the length of a text."], 2,
        )  # fmt: skip
    said, _ = card.compare(one, one | {"parts": [one["parts"][0] | {"max_length": 7}]})
    assert said == ["text: frequencies change with the length of a text, and not alike."]


def test_a_side_without_a_rule_is_not_said_to_lack_a_part() -> None:
    one, two = (
        specification("moonshotai/Kimi-K2-Instruct"),
        specification("deepseek-ai/DeepSeek-V3"),
    )
    for which, both in (("first", (one, two)), ("second", (two, one))):
        (said,), code = card.compare(*both)
        words = f"How the {which} rotates is not known: No rule for model_type 'kimi_k2'"
        assert said.startswith(words)
        assert code == 2


def test_a_class_that_does_not_run_by_default_is_named(capsys) -> None:
    assert asked("glm4v") == 2
    assert "glm4v, as its class is by default, has no card: " in capsys.readouterr().err


def test_families_without_a_rule_for_a_part_are_not_compared() -> None:
    for family in ("evolla", "hunyuan_vl", "vjepa2"):  # of these, parts have no rule
        found = specification(family)
        assert dict(card._head(found)).get("rotation", "not known, see below")[:3] == "not"
        said, code = card.compare(found, found)
        assert "rotates is not known" in said[-1]
        assert code == 2


def test_two_that_follow_the_length_of_a_text_are_not_alike() -> None:
    def of(factor: float | None) -> dict[str, object]:
        scaling = factor and {"rope_type": "dynamic", "factor": factor}
        sizes = {"hidden_size": 3584, "num_attention_heads": 28, "max_position_embeddings": 32_768}
        return rope_of({"model_type": "qwen2", **sizes, "rope_scaling": scaling}).to_dict()

    assert card.compare(of(4.0), of(4.0))[1] == 0
    for one, two in ((None, 4.0), (4.0, None), (4.0, 8.0)):
        said, code = card.compare(of(one), of(two))
        assert code == 2
        assert any("length of a text" in line for line in said)


@pytest.mark.parametrize("interleaved", [True, False])
def test_a_part_becomes_the_report_of_its_rotation(tmp_path, interleaved: bool) -> None:
    """Which `identify` hears when the rotation is run."""
    file, data = ("m.gguf", gguf(GGUF_LLAMA)) if interleaved else ("config.json", LLAMA)
    report = report_of(part(written(tmp_path / file, data)))
    heard = identify(lambda x, at: rotate_complex(x, at, interleaved=interleaved), 16)
    assert not heard.differs_from(report).messages
    assert (heard.layout, heard.place) == (report.layout, report.place)


# What is wrong ------------------------------------------------------------------------------------


def test_there_are_forty_broken_files() -> None:
    assert len({one.name for one in BROKEN}) == len(BROKEN) == 40


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.name)
def test_a_broken_file_gets_one_sentence_that_names_it(tmp_path, capsys, broken) -> None:
    file = written(tmp_path / broken.file, broken.data)
    tracemalloc.start()
    assert asked(file) == 2
    assert tracemalloc.get_traced_memory()[1] < 5e7
    tracemalloc.stop()
    said = capsys.readouterr()
    assert said.out == ""
    assert str(file) in said.err
    assert broken.word in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("form", ["model.safetensors", "m.gguf", "config.json"])
def test_whatever_happens_to_a_file_there_is_a_card_or_one_sentence(tmp_path, capsys, form) -> None:
    good = {"config.json": json.dumps(LLAMA).encode(),
            "m.gguf": gguf({k: v for k, v in GGUF_LLAMA.items() if "tokenizer" not in k},
                           {"rope_freqs.weight": llama3_divisors(16, 1e4, 8.0, 2048)}),
            "model.safetensors": safetensors(
                {"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}},
                bytes(16))}  # fmt: skip
    written(tmp_path / "config.json", LLAMA)
    codes = []
    for seed in range(200):
        codes.append(asked(written(tmp_path / form, mutated(good[form], seed))))
        said = capsys.readouterr()
        assert bool(said.out) != bool(said.err), seed
        assert said.err.count("\n") == bool(said.err), seed
    assert set(codes) <= {0, 1, 2}
    assert codes.count(2) > 50


def test_what_is_missing_is_named(tmp_path, capsys) -> None:
    save_file({"a": np.zeros(2, np.float32)}, tmp_path / "model.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    for wrong, words in (
        (lambda: asked(tmp_path / "nothing"), "no file, model_type or public checkpoint"),
        (lambda: asked(tmp_path), "no config.json"),
        (lambda: asked(written(tmp_path / "empty" / "x", b"").parent), "expected config.json"),
        (lambda: asked(written(index, {"weight_map": {"a": "b.safetensors"}})), "b.safetensors"),
        (lambda: asked(written(index, {"weight_map": [1]})), "weight_map"),
        (lambda: asked(written(index, {"weight_map": {"b": "model.safetensors"}})), "b, which"),
    ):
        assert wrong() == 2
        assert words in capsys.readouterr().err


def test_usage_is_an_error_and_help_is_none(capsys) -> None:
    for words, code in (([], 2), (["--help"], 0), (["compare", "a"], 2), (["convert", "a"], 2)):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == code
    assert "Exit codes" in capsys.readouterr().out


def test_a_reader_who_has_gone_is_no_error(tmp_path) -> None:
    file = written(tmp_path / "config.json", LLAMA)
    command = [sys.executable, "-m", "ropescope", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 0


@pytest.mark.parametrize("nothing", ["", " "])
def test_no_name_is_no_folder(tmp_path, capsys, monkeypatch, nothing: str) -> None:
    written(tmp_path / "config.json", LLAMA)
    monkeypatch.chdir(tmp_path)
    for words in ([nothing], ["compare", nothing, "llama"], ["convert", nothing, "--to", "hf",
                                                             "-o", "b"]):  # fmt: skip
        assert asked(*words) == 2
        assert f"path must name a file or a folder, got {nothing!r}" in capsys.readouterr().err


def test_where_there_is_nothing_to_convert_the_command_says_so_and_is_fine(
    tmp_path, capsys
) -> None:
    written(tmp_path / "a" / "config.json", LLAMA)
    rows = np.zeros((64, 64), np.float32)
    save_file({"model.layers.0.self_attn.q_proj.weight": rows,
               "model.layers.0.self_attn.k_proj.weight": rows},
              tmp_path / "a" / "model.safetensors")  # fmt: skip
    assert asked("convert", tmp_path / "a", "--to", "hf", "-o", tmp_path / "b") == 0
    said = capsys.readouterr()
    assert "nothing is to be done: rows are half-split already" in said.out
    assert said.out.endswith("nothing is written\n")
    assert said.err == ""
    assert not (tmp_path / "b").exists()


def test_warnings_are_exit_code_1_and_what_is_wrong_is_2(tmp_path, capsys) -> None:
    one = {"rope_scaling": {"rope_type": "linear", "factor": 1.0}}
    for change, code, words in (
        (one, 1, "- warning: rope_scaling.factor is 1"),
        ({"rope_thetta": 500000.0}, 2, "- wrong: rope_thetta"),
        ({"model_type": "unheard"}, 1, "- warning: No rule"),
        ({"model_type": "gpt2"}, 1, "- warning: rope_theta has no effect"),
        ({"model_type": "gpt2", "rope_theta": None}, 0, "rotation     none"),
    ):
        assert asked(written(tmp_path / "config.json", LLAMA | change)) == code
        assert words in capsys.readouterr().out


def test_the_command_runs_as_a_module_and_as_a_script(tmp_path) -> None:
    file = written(tmp_path / "config.json", LLAMA)
    command = [sys.executable, "-m", "ropescope", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "half-split" in done.stdout
    project = tomllib.loads((Path(card.__file__).parent / "pyproject.toml").read_text("utf8"))
    module, _, name = project["project"]["scripts"]["ropescope"].partition(":")
    assert getattr(importlib.import_module(module), name) is main


def test_two_that_are_wrong_or_not_known_are_not_said_to_rotate_alike() -> None:
    lists = {"short_factor": [1.1] * 48, "long_factor": [2.0] * 48}
    phi = {"model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 32,
           "max_position_embeddings": 131072, "original_max_position_embeddings": 4096}  # fmt: skip
    first, new = (rope_of(phi | {"rope_scaling": {"type": kind, **lists}}).to_dict()
                  for kind in ("su", "longrope"))  # fmt: skip
    said, code = card.compare(first, first)
    assert code == 2
    assert [words[:14] for words in said if "its class fails" in words] == [
        "Of the first: ", "Of the second:",
    ]  # fmt: skip
    assert card.compare(new, new) == (["They rotate alike."], 0)
    moe = {"model_type": "phimoe", "hidden_size": 4096, "num_attention_heads": 32}
    scaled = {"type": "longrope", "short_factor": [1.1] * 64, "long_factor": [2.0] * 64,
              "short_mscale": 1.24, "long_mscale": 1.24,
              "original_max_position_embeddings": 4096}  # fmt: skip
    said, code = card.compare(
        *(rope_of(o).to_dict() for o in (moe | {"rope_scaling": scaled}, moe))
    )
    assert code == 2
    assert "How all of the first rotates is not known" in " ".join(said)
    assert "They rotate alike" not in " ".join(said)


def test_a_width_that_was_guessed_is_told_beside_the_difference() -> None:
    whole = specification("meta-llama/Llama-4-Scout-17B-16E-Instruct")
    less = specification("meta-llama/Llama-4-Maverick-17B-128E-Instruct")
    said, _ = card.compare(whole, less)
    assert any("channels against" in words for words in said)
    assert any(words.startswith("Of the second: ") and "is a guess" in words for words in said)


def test_a_type_whose_code_comes_with_it_is_no_misspelling() -> None:
    for more, words in (({}, "did you mean"), ({"auto_map": {"AutoConfig": "a.B"}}, "its code")):
        (note,) = rope_of({"model_type": "exaone", **more}).warnings
        assert words in note.message


def test_what_is_compared_is_named(capsys) -> None:
    """A word may stand for a class or for a checkpoint."""
    assert main(["compare", "qwen2.5", "qwen2"]) == 2
    said = capsys.readouterr().out
    assert said.startswith(
        "The first is Qwen/Qwen2.5-7B-Instruct.\nThe second is qwen2, as its class is by default.\n"
    )
    main(["compare", "qwen2.5", "qwen2", "--json"])
    assert json.loads(capsys.readouterr().out)["second"] == "qwen2, as its class is by default"


def test_what_was_assumed_of_a_side_is_told_beside_what_differs(tmp_path, capsys) -> None:
    """Llama 3.2's own file gives no numbers, and Llama 3.1's are taken."""
    meta = {"dim": 2048, "n_layers": 16, "n_heads": 32, "n_kv_heads": 8, "rope_theta": 5e5,
            "use_scaled_rope": True}  # fmt: skip
    file = tmp_path / "params.json"
    file.write_text(json.dumps(meta))
    assert main(["compare", str(file), "meta-llama/Llama-3.2-1B-Instruct"]) == 2
    said = capsys.readouterr().out
    assert "Of the first: use_scaled_rope gives no numbers: Llama 3.1's are taken" in said
    assert main(["compare", "decapoda-research/llama-7b-hf", "llama 2"]) == 0
    assert "do not show" in capsys.readouterr().out
