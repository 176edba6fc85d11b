"""The figure of chapter 16: data from the records, verdicts against the summary, prices."""

import itertools
import json
import re

import numpy as np
import pytest

from experiments import recent, summary
from experiments.figure import METHODS as NAMES
from experiments.figure import recent_methods_data
from experiments.run import TIMES
from ropebook import figures
from ropebook.figures.recent_methods import LENGTHS, METHODS, TASKS

WORDS = {name: words for name, (words, _) in NAMES.items()}
START = {"task": "language", "first": "PoPE", "second": "RoPE", "length": 1}


@pytest.fixture(scope="module")
def data():
    return recent_methods_data()


@pytest.fixture(scope="module")
def records():
    return recent.records()


def call(node, name, *args):
    return node.call("recent_methods.js", name, *args)


def test_every_seed_of_the_record_is_in_the_figure(data, records):
    assert list(recent.TASKS) == TASKS == [task["name"] for task in data["tasks"]]
    assert list(WORDS.values()) == METHODS
    assert list(TIMES) == LENGTHS == data["times"]
    assert set(WORDS) == {*recent.RECENT, *recent.OLD}
    for task in data["tasks"]:
        assert list(task["scores"]) == METHODS
        for name, words in WORDS.items():
            run = summary.measured(records[task["name"]], name)
            wanted = [run["test"]["none"][str(n)][task["unit"]] for n in TIMES]
            assert task["scores"][words] == wanted
            assert np.shape(wanted) == (len(TIMES), 8)
    assert len(json.dumps(data)) < 40_000


def test_the_verdicts_are_those_of_the_summary(node, data, records):
    """Two-sided, with Holm's correction over the six tasks at one length."""
    pairs = [("PoPE", "RoPE"), ("no encoding", "DroPE"), ("TAPA", "T5 bias"), ("RePo", "RePo")]
    names = {words: name for name, words in WORDS.items()}
    for (first, second), times in itertools.product(pairs, TIMES):
        found = call(node, "verdicts", data, {"first": first, "second": second, "length": times})
        gains, p = [], []
        for task in TASKS:
            a, b = (
                summary.values(records[task], names[w], recent.TASKS[task].unit, times=times)
                for w in (first, second)
            )
            gains.append(np.array(summary.ahead(task, a, b)))
            both = [summary.sign_flip(s * gains[-1]) for s in (1, -1)]
            p.append(min(1.0, 2 * min(both)))
        for one, gain, corrected in zip(found, gains, summary.holm(p), strict=True):
            assert one["p"] == pytest.approx(corrected)
            assert (one["better"], one["worse"]) == (sum(gain > 0), sum(gain < 0))
            side = "undecided" if corrected >= summary.SIGNIFICANT else None
            assert one["side"] == (side or ("ahead" if np.median(gain) > 0 else "behind"))


def test_the_nearest_measured_length_is_shown(node):
    found = [call(node, "nearest", LENGTHS, n) for n in range(1, 9)]
    assert found == [1, 2, 4, 4, 4, 8, 8, 8]


def test_at_the_start_at_most_forty_words_are_read(node, data):
    said = call(node, "words", call(node, "reading", data, START))
    assert len(re.findall(r"[\w.]+", said + "Tap a cell, or use arrow keys.")) <= 40


def test_every_answer_is_short_and_names_the_score(node, data):
    pairs = itertools.product(TASKS, ["PoPE", "GRAPE, multiplicative"], METHODS, (1, 8))
    for task, first, second, length in pairs:
        traits = {"task": task, "first": first, "second": second, "length": length}
        now = call(node, "reading", data, traits)
        answer = call(node, "words", now).partition("\n")[0]
        assert len(answer.replace("*", "")) < 150
        shown = data["tasks"][TASKS.index(task)]["scores"][first][TIMES.index(length)]
        assert now["medians"][0] == pytest.approx(np.median(shown))
        (number,) = re.findall(r"gets \*\*([\d.]+)", answer)
        assert float(number) == pytest.approx(np.median(shown), abs=0.0051)


def test_what_a_method_pays_in_weights_is_what_is_trained(data):
    """Counted by their shapes; FoPE's coefficients are drawn, and stay."""
    width, pairs, layers = 32, 16, 2
    wanted = dict.fromkeys(METHODS, 0) | {
        "learned frequencies": layers * pairs,
        "PoPE": layers * 2 * pairs,
        "RoPE++": layers * width * width,
        "GRAPE, multiplicative": layers * (pairs + width + 1),
        "GRAPE, additive": layers * (1 + 2 * width),
        "Selective RoPE": layers * (width * pairs + 4 * pairs),
        "RePo": 2 * width * 4 + 4,
        "T5 bias": 32,
    }
    assert {words: paid["added"] for words, paid in data["pays"].items()} == wanted
    drawn = recent.build(recent.TASKS["copy"], "fourier", (0,)).weights
    assert sum(w.numel() for w in drawn.values() if not w.requires_grad) == 100
    assert "100 drawn numbers" in data["pays"]["FoPE (Fourier)"]["also"]


def test_data_of_something_else_are_refused(data):
    make = figures.recent_methods
    with pytest.raises(ValueError, match="data must hold the tasks"):
        make({"tasks": [{}]})
    for part in ("pays", "tasks"):
        other = json.loads(json.dumps(data))
        del (other["pays"] if part == "pays" else other["tasks"][2]["scores"])["TAPA"]
        with pytest.raises(ValueError, match="data must hold the methods"):
            make(other)
