"""Converted weights, run by the engines that they are for: the record, and a part asked again."""

import functools
import json
import random
import subprocess
from pathlib import Path

import pytest

from ropescope.names import ACTIVATIONS, ARCHITECTURES

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "atlas" / "results" / "conversions.json"
ENGINES = ROOT / ".venv-engines" / "bin" / "python"
LIBRARY = ROOT / "engines" / "node_modules" / "@node-llama-cpp"


@functools.cache
def record() -> dict:
    found: dict = json.loads(RECORD.read_text())
    return found


def right_and_wrong(rows: list[dict]) -> None:
    """Right conversions agree with transformers, and each slip is seen."""
    for row in rows:
        assert isinstance(row["residual"], float), row
        assert row["residual"] < 1e-3, row
        assert row["slips"], row
        assert all(slip == "refused" or slip > 0.1 for slip in row["slips"].values()), row


def test_every_conversion_agrees_and_every_slip_is_seen() -> None:
    right_and_wrong(record()["rows"])


def test_what_is_left_of_a_difference_is_gelu_not_rotation() -> None:
    """Where it is largest; llama.cpp looks it up in a table of float16, and with that table ..."""
    rows = record()["rows"]
    for row in rows:
        family = row["model"].split(",")[0]
        assert row["residual"] < 1e-5 or family in ACTIVATIONS, row
        if row["engine"] == "llama.cpp" and family in ACTIVATIONS:
            assert row["with its GELU"] < 5e-5, row


def test_tools_make_two_slips_of_their_own() -> None:
    """What mlx-lm makes of rope_parameters, and llama.cpp of the factor in its converter's key."""
    slips = {
        (row["model"], slip): x for row in record()["rows"] for slip, x in row["slips"].items()
    }
    kept = {model: x for (model, slip), x in slips.items() if slip == "rope_parameters kept"}
    refused = {model for model, x in kept.items() if x == "refused"}
    assert refused == {"gpt_neox", "stablelm", "glm4"}
    assert {model.split(",")[0] for model in set(kept) - refused} == {"llama", "phi"}
    assert slips["llama, YaRN's factor 2", "the factor in yarn_attn_factor"] > 0.4


def test_ctranslate2_turns_a_model_with_the_rule_of_llama_3_as_one_without() -> None:
    lost = record()["a rule not carried"]
    assert lost["without the rule"] < 1e-5 < 1e-2 < lost["residual"]


def test_the_record_has_every_engine_and_every_family_that_is_written_to_gguf() -> None:
    rows = record()["rows"]
    asked = {row["model"].split(",")[0] for row in rows if row["engine"] == "llama.cpp"}
    assert asked == set(ARCHITECTURES)
    assert {row["engine"] for row in rows} == set(record()["versions"])
    assert {(row["from"], row["to"]) for row in rows} >= {
        ("hf", "meta"), ("hf", "gguf"), ("gguf", "hf"), ("hf", "mlx"), ("meta", "mlx"),
        ("Megatron's order", "meta"),
    }  # fmt: skip


def test_a_released_model_reads_a_text_alike_everywhere() -> None:
    """SmolLM2 from its GGUF: as numbers, and where llama.cpp rounds what it multiplies by."""
    found = record()["released"]
    n, engines = found["tokens"], found["engines"]
    ours = engines.pop("transformers")
    for name, one in engines.items():
        exact = "blocks" not in name
        assert one["residual"] < (1e-3 if exact else 0.1), name
        assert abs(one["loss"] - ours["loss"]) < (1e-4 if exact else 0.05), name
        assert one["same next token"] >= (n if exact else 0.9 * n), name
        assert one["last next token"] == ours["last next token"], name


def test_a_drawn_part_is_asked_again() -> None:
    if not (ENGINES.exists() and LIBRARY.exists()):
        pytest.skip("the engines are not installed; `make engines` installs them")
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    words = [ENGINES, "-m", "engines.conversions", "--draw", "3", "--seed", str(seed)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout.splitlines()[-1])
    right_and_wrong(rows)
    known = {
        tuple(row[key] for key in ("model", "from", "to", "engine")) for row in record()["rows"]
    }
    assert {tuple(row[key] for key in ("model", "from", "to", "engine")) for row in rows} <= known
