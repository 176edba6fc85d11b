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
from ropebook.engines import axes_table, lengths_table, others, rotations, rules_table

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-engines" / "bin" / "python"
RECORD = load("engines")
HEARD = RECORD["heard"]

installed = pytest.mark.skipif(
    not (ROOT / ".venv-engines" / ".done").exists(), reason="make engines installs the runtimes"
)

SAME = ("layout", "place", "width", "axes", "direction", "is_rotation", "numbers", "table_end")


def test_every_runtime_is_heard_with_its_version() -> None:
    assert set(HEARD) == set(engines.RUNTIMES)
    modules = {file.stem for file in (ROOT / "engines" / "runtimes").glob("[a-z]*.py")}
    assert modules == set(HEARD)
    pins = (ROOT / "engines" / "requirements.txt").read_text("utf8").lower()
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
        assert entry["name"] in rotations()
    for one in READ:
        assert one["says"] in others()
    count = sum(one["axes"] > 1 for entry in HEARD.values() for one in entry["rotations"])
    assert len(axes_table().splitlines()) == count + 2
    when = sum("when" in one for entry in HEARD.values() for one in entry["rules"])
    assert len(lengths_table().splitlines()) == when + 2


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
