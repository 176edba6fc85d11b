"""The record of other runtimes: whole, and asked again in part where these are installed."""

import json
import math
import os
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import engines
from atlas import load
from engines.asking import FAR, RULES
from engines.findings import FINDINGS, again
from engines.read import OBSTACLES, READ
from ropebook.engines import axes_table, brief, lengths_table, others, rotations, rules_table
from ropescope import card, elsewhere
from ropescope.configuration import rope_of
from tests.tools import rows

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-engines" / "bin" / "python"
RECORD = load("engines")
HEARD = RECORD["heard"]

installed = pytest.mark.skipif(
    not (ROOT / ".venv-engines" / ".done").exists(), reason="make engines installs the runtimes"
)

SAME = (
    "function",
    "options",
    "layout",
    "place",
    "width",
    "axes",
    "direction",
    "is_rotation",
    "numbers",
    "table_end",
)


def test_every_runtime_is_heard_with_its_version() -> None:
    assert set(HEARD) == set(engines.RUNTIMES)
    modules = {file.stem for file in (ROOT / "engines" / "runtimes").glob("[a-z]*.py")}
    assert modules == set(HEARD)
    files = (ROOT / "engines" / name for name in ("requirements.txt", "apart.txt"))
    pins = "".join(file.read_text("utf8") for file in files).lower().replace(" ", "\n")
    for entry in HEARD.values():
        assert entry["licence"]
        assert entry["megabytes"] >= 0
        assert entry["rotations"]
        for name, version in entry["version"].items():
            if name not in ("ggml", "@node-llama-cpp/linux-x64"):
                assert f"{name.lower().replace('_', '-')}=={version}\n" in pins
    lock = json.loads((ROOT / "engines" / "package-lock.json").read_text("utf8"))
    library = "@node-llama-cpp/linux-x64"
    assert (
        lock["packages"][f"node_modules/{library}"]["version"]
        == (HEARD["ggml"]["version"][library])
    )


@pytest.mark.parametrize("name", HEARD)
def test_a_runtime_rotates_and_says_how(name: str) -> None:
    for one in HEARD[name]["rotations"]:
        assert one["function"]
        assert one["seconds"] >= 0
        assert set(one["far"]) <= {str(position) for position in FAR}
        if "with_cos_sin" in one["function"]:
            assert not one["is_rotation"]  # a finding
        else:
            assert one["is_rotation"], one["options"]
            assert one["direction"] in (1, None)
    for one in HEARD[name]["rules"]:
        assert one["rule"] in RULES
        assert not one.get("refused", "").startswith("Not a") or name == "tvm"  # a finding
        assert ("refused" in one) + ("when" in one) + ("frequencies_off" in one) == 1


def test_what_was_heard_and_what_was_read_stand_apart() -> None:
    assert RECORD["read"] == READ
    assert RECORD["obstacles"] == OBSTACLES
    for one in READ:
        assert re.fullmatch(r"[0-9a-f]{7}", one["commit"])
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", one["date"])
        assert re.match(r"[\w.-]+/[\w.-]+: ", one["source"])
    assert not {one["name"] for one in READ} & {entry["name"] for entry in HEARD.values()}


def test_the_findings_are_those_of_the_lines() -> None:
    found = RECORD["findings"]
    assert {name: (one["runtime"], one["lines"]) for name, one in found.items()} == {
        name: (runtime, lines.strip()) for name, (runtime, lines) in FINDINGS.items()
    }


def test_the_rules_that_are_told_as_equal_agree_in_frequencies_and_factor() -> None:
    table = rules_table()
    assert "same" in table
    for name, entry in HEARD.items():
        for one in entry["rules"]:
            if "frequencies_off" not in one or name == "litgpt":
                continue
            if one["rule"] == "linear":
                assert one["frequencies_off"] < 1e-5, name
                assert math.isclose(one["factor"], 1.0, rel_tol=1e-6)


def test_the_tables_have_a_row_for_everything() -> None:
    for entry in HEARD.values():
        assert entry["name"].split(" (")[0] in rotations()
    for one in READ:
        assert one["says"] in others()
    count = sum(one["axes"] > 1 for entry in HEARD.values() for one in entry["rotations"])
    assert len(axes_table().splitlines()) == count + 2
    when = sum("when" in one for entry in HEARD.values() for one in entry["rules"])
    assert len(lengths_table().splitlines()) == when + 2


def test_past_its_table_a_runtime_does_what_its_first_rotation_does() -> None:
    lines = {line.split(" | ")[0].strip("| "): line for line in rotations().splitlines()[2:]}
    ends = {name: line.rstrip("| ").split(" | ")[-1] for name, line in lines.items()}
    grows = {name for name, entry in HEARD.items() if "grows" in first_note(entry)}
    assert grows == {"flash_attn", "transformer_engine"}
    said = {KEYS[name.rsplit(" ", 1)[0]] for name, end in ends.items() if end == "it grows"}
    assert said == grows


def first_note(entry: dict[str, Any]) -> str:
    return entry["rotations"][0]["note"] or ""


def test_the_page_counts_the_runtimes_whose_files_were_asked_alone() -> None:
    files = (ROOT / "engines" / "runtimes").glob("[a-z]*.py")
    asked = [file.stem for file in files if re.search(r"\balone\(\"", file.read_text("utf8"))]
    assert len(asked) == 8, asked
    assert "(of eight, the files" in (ROOT / "notebooks" / "rosetta.ipynb").read_text("utf8")


def test_a_number_of_a_stand_in_is_not_said_of_a_runtime() -> None:
    far = {KEYS[one["name"].split(" (")[0].rsplit(" ", 1)[0]]: one for one in brief(RECORD)}
    standins = {name for name in far if "stand-in" in first_note(HEARD[name])}
    assert standins == {"xformers"}
    assert far["xformers"]["far"] == ""
    assert "positions 256 and 257 alike" in far["transformer_engine"]["ends"]


# What the command says of them ----------------------------------------------------------------

KEYS = {entry["name"].split(" (")[0]: key for key, entry in HEARD.items()}

FLAGS = {
    "ggml": ("mode NEOX (2)", "mode NORM (0)"),
    "mlx": ("traditional=False", "traditional=True"),
    "onnx": ("interleaved=0", "interleaved=1"),
    "vllm": ("is_neox_style=True", "is_neox_style=False"),
    "sglang": ("is_neox_style=True", "is_neox_style=False"),
    "megatron": ("rotary_interleaved=False", "rotary_interleaved=True"),
    "litgpt": ("apply_rope(x, *build_rope_cache(...))", "apply_rope_interleave"),
    "torchtune": ("Phi3RotaryPositionalEmbeddings", "RotaryPositionalEmbeddings"),
    "torchtitan": ("CosSinRoPE", "ComplexRoPE"),
    "executorch": ("use_hf_rope=True", "use_hf_rope=False"),
    "ncnn": ("interleaved 0=0", "interleaved 0=1"),
    "transformer_engine": ("RotaryPositionEmbedding", "interleaved=True"),
    "flash_attn": ("apply_rotary_emb_torch", "interleaved=True"),
    "xformers": ("adjacents=False", "adjacents=True"),
    "tvm": ("rope_scaling={}", 'rope_scaling=dict(rope_type="gptj")'),
}
"""How the documentation of each runtime calls half-split and interleaved."""


def of_runtimes(model: str) -> dict[str, dict[str, str]]:
    """Return what the command says of each runtime, by its name in the record."""
    (part, *_) = card.specification(model)["parts"]
    return {KEYS[one["runtime"].split(" (")[0].rsplit(" ", 1)[0]]: one for one in part["elsewhere"]}


def check_flags() -> None:
    """Assert that the command names the flag of the layout, for all runtimes that have both."""
    for n, model in enumerate(("Qwen/Qwen2.5-7B-Instruct", "CohereLabs/c4ai-command-r7b-12-2024")):
        said = of_runtimes(model)
        assert set(FLAGS) < set(said)
        for name, flags in FLAGS.items():
            assert said[name]["call"].split(": ")[-1] == flags[n], name
            version = next(iter(HEARD[name]["version"].values())).split()[0]
            assert f" {version}" in said[name]["runtime"]


def test_what_the_command_knows_is_the_record_in_short() -> None:
    file = Path(card.__file__).parent / "engines.json"
    assert file.read_text("utf8") == rows.engines(), "run python -m tests.tools.rows"
    names = {KEYS[one["name"].split(" (")[0].rsplit(" ", 1)[0]] for one in elsewhere.load_engines()}
    assert names == set(HEARD) - {"diffusers", "openvino"}  # no texts; the caller's graph


def test_a_flag_is_that_of_the_layout_and_a_wrong_one_in_the_record_is_seen(monkeypatch) -> None:
    check_flags()
    for name, flags in FLAGS.items():
        wrong = load("engines")
        for one in wrong["heard"][name]["rotations"]:
            if one["options"] in flags:
                one["options"] = flags[1 - flags.index(one["options"])]
            elif one["function"] in flags:
                one["function"] = flags[1 - flags.index(one["function"])]
        monkeypatch.setattr(elsewhere, "load_engines", lambda wrong=wrong: brief(wrong))
        with pytest.raises(AssertionError, match=name):
            check_flags()


def test_no_call_for_a_plain_rotation_stands_under_a_rescaled_one() -> None:
    """TVM's rope_type holds the layout or the rescaling, and its empty dict is neither."""
    for name, layout in (("llama 3.1", "half-split"), ("llama 3.1", "interleaved")):
        (part,) = card.specification(name)["parts"]
        for one in elsewhere.elsewhere(part | {"layout": layout}):
            assert "rope_scaling={}" not in one["call"]
            heard = one["verdict"] == "so" or one["words"].endswith("move the rows")
            assert one["call"].endswith(", with llama3") == heard, one
    (tvm,) = (one for one in part["elsewhere"] if one["runtime"].startswith("Apache TVM"))
    assert (tvm["call"], tvm["verdict"]) == ("llama_rope_with_position_map, with llama3", "so")
    (part,) = card.specification("llama 3")["parts"]
    assert not any(", with" in one["call"] for one in part["elsewhere"])
    said = [value for _, value in card.lines(card.specification("llama 3.1")["parts"][0])]
    assert not any(one["call"] in line for line in said for one in part["elsewhere"])


def test_a_call_for_three_axes_has_the_sections_of_the_part() -> None:
    for config, wanted in (
        ({"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}, "16, 24, 24"),
        ({"model_type": "qwen3_vl_text", "head_dim": 128}, "24, 20, 20"),
    ):
        kind = {"model_type": "qwen2_5_vl_text", "hidden_size": 512, "num_attention_heads": 4}
        (part,) = rope_of(kind | config).to_dict()["parts"]
        said = {one["runtime"].split()[0]: one["call"] for one in elsewhere.elsewhere(part)}
        assert f"mrope_section=[{wanted}]" in said["vLLM"]
        assert wanted.replace(",", "") in said["ggml"]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("linear", {"rope_type": "linear", "factor": 4.0}),
        ("llama3", RULES["llama3"]),
        *((name, told) for name, told in RULES.items() if name.startswith("yarn")),
    ],
)
def test_what_is_said_of_a_rescaling_is_what_was_heard(rule, told) -> None:
    parameters = told | {"rope_theta": 1e4, "original_max_position_embeddings": 4096}
    config = {"model_type": "llama", "max_position_embeddings": 16384}
    said = said_of(config | {"rope_parameters": parameters}, [rule])
    for name, entry in HEARD.items():
        heard = {one["layout"] for one in entry["rotations"] if one["axes"] == 1}
        if name not in said or (heard == {"interleaved"} and name != "fms"):
            continue
        found = [one for one in entry["rules"] if one["rule"] == rule]
        if not found:
            turned = rule == "linear" and ["linear", {"factor": 4}] in rescalings(entry)
            assert (said[name]["verdict"] == "so") == turned, name
            continue
        (one,) = found
        if "refused" in one:
            assert said[name]["verdict"] == "otherwise"
            assert f"{rule}: no rotation" in said[name]["words"]
            continue
        off = one["frequencies_off"]
        same = off < 1e-5 and math.isclose(one["factor"], one["factor_there"], rel_tol=1e-4)
        same &= "half-split" in heard or one["layout"] == "half-split"
        assert said[name]["verdict"] == ("so" if same else "otherwise")
        if off > 1e-5:
            assert f"off by {float(f'{100 * off:.2g}'):g} %" in said[name]["words"]


@pytest.mark.parametrize("more", [{}, {"attention_factor": 1.1386294361119891}])
def test_a_null_factor_is_the_quotient_of_the_lengths(more: dict[str, float], node: Any) -> None:
    parameters = {"rope_type": "yarn", "factor": None, "original_max_position_embeddings": 4096}
    config = {"model_type": "llama", "max_position_embeddings": 16384}
    config |= {"rope_parameters": parameters | more}
    assert said_of(config, ["yarn"])
    (part,) = rope_of(config).to_dict()["parts"]
    assert node.call("elsewhere.js", "rulesOf", part) == ["yarn"]


def rescalings(entry: dict[str, Any]) -> list[Any]:
    """Return the rescalings that were heard of a runtime's rotations, without its rules."""
    return [one["rescaling"] for one in entry["rotations"]]


def said_of(config: dict[str, Any], rules: list[str]) -> dict[str, dict[str, str]]:
    """Return what is said of a configuration that needs these rules, by runtime."""
    (part,) = rope_of(config).to_dict()["parts"]
    assert elsewhere.rules_of(part) == rules
    found = elsewhere.elsewhere(part)
    return {KEYS[one["runtime"].split(" (")[0].rsplit(" ", 1)[0]]: one for one in found}


def test_what_a_runtime_has_of_its_own_fits_a_model_or_not() -> None:
    of = {}
    for length in (4096, 8192):
        rule = RULES["llama3"] | {"rope_theta": 5e5, "original_max_position_embeddings": length}
        of[length] = said_of({"model_type": "llama", "rope_parameters": rule}, ["llama3"])
    assert [of[n]["megatron"]["verdict"] for n in of] == ["otherwise", "so"]
    assert "as trained on 8,192" in of[4096]["megatron"]["words"]
    assert "interleaved pairs only" in of[4096]["fms"]["words"]
    rule = RULES["yarn, no truncation"] | {"rope_theta": 1e4}
    rule |= {"original_max_position_embeddings": 4096}
    said = said_of({"model_type": "llama", "rope_parameters": rule}, ["yarn, no truncation"])
    assert said["fms"]["verdict"] == "so"  # its YaRN alone is half-split


def drawn(names: list[str]) -> list[str]:
    """Return what is asked again: one by lot, or all."""
    return names if os.environ.get("ENGINES") == "all" else random.SystemRandom().sample(names, 1)


@installed
def test_a_runtime_drawn_anew_is_as_the_file_says() -> None:
    for name in drawn(sorted(HEARD)):
        run = subprocess.run(
            [PYTHON, "-m", "engines", "--print", name],
            cwd=ROOT,
            env=os.environ | engines.RUNTIMES[name] | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            encoding="utf8",
            check=True,
        )
        now: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])[name]
        written = HEARD[name]
        assert now["version"] == written["version"]
        pick = lambda entry: [[one[key] for key in SAME] for one in entry["rotations"]]  # noqa: E731
        assert pick(now) == pick(written), name
        told = lambda entry: [  # noqa: E731
            (one["rule"], one.get("factor"), one.get("when")) for one in entry["rules"]
        ]
        assert told(now) == told(written), name


@installed
def test_a_finding_drawn_anew_gives_the_same() -> None:
    for name in drawn(sorted(FINDINGS)):
        assert again(name, str(PYTHON)) == RECORD["findings"][name]["value"], name
