"""The trained models: data from the records, and what the script makes of them."""

import itertools
import json
from functools import cache

import numpy as np
import pytest

from experiments import summary
from experiments.encodings import ENCODINGS
from experiments.figure import trained_models_data
from experiments.run import TIMES
from experiments.tasks import TASKS
from ropebook import figures
from ropebook.figures.trained_models import ENTRIES
from ropebook.figures.trained_models import TASKS as SHOWN

CELLS = [
    ("copy", "monotone_a", 1),
    ("copy", "alibi", 4),
    ("find", "slow_half", 8),
    ("induction", "monotone_b", 4),
    ("language", "slow_half", 4),
    ("language", "nope", 2),
    ("language", "rope", 1),
]
load = cache(summary.load)
WORDS = {name: how.words for name, how in ENCODINGS.items()}


@pytest.fixture(scope="module")
def data():
    return trained_models_data()


def entries_of(data):
    """Return every entry of a figure by the names of its task and its encoding."""
    return {
        (task, encoding): shown["entries"][WORDS[encoding]]
        for task, shown in zip(TASKS, data["tasks"], strict=True)
        for encoding in load(task)["settings"]["encodings"]
    }


def recorded(task, encoding, times, kind="none"):
    record = load(task)
    return summary.values(record, encoding, TASKS[task].unit, times=times, kind=kind)


def reading(node, data, task="copy", encoding="rope", half=False):
    traits = {"task": task, "encoding": WORDS[encoding], "half": half}
    return node.call("trained_models.js", "reading", data, traits)


def test_the_figure_has_the_words_of_the_experiments(data):
    assert list(TASKS) == SHOWN
    assert list(WORDS.values()) == ENTRIES
    assert [task["name"] for task in data["tasks"]] == SHOWN
    for task in data["tasks"]:
        trained = load(task["name"])["settings"]["encodings"]
        assert list(task["entries"]) == [WORDS[encoding] for encoding in trained]
    assert len(json.dumps(data)) < 30_000


def test_every_score_of_the_record_is_in_the_figure(data):
    for (task, encoding), entry in entries_of(data).items():
        tests = summary.measured(load(task), encoding)["test"]
        assert len(entry["scores"]) == len(TIMES)
        assert len(entry["bfloat16"]) == len(tests["bfloat16"])
        for kind, name in (("none", "scores"), ("bfloat16", "bfloat16")):
            for times, values in zip(TIMES, entry[name], strict=False):
                assert values == recorded(task, encoding, times, kind), (task, encoding, kind)


@pytest.mark.parametrize("task", TASKS)
def test_the_rows_go_from_the_best_to_the_worst(node, data, task):
    names = node.call("trained_models.js", "ranked", data["tasks"][list(TASKS).index(task)])
    encodings = {words: name for name, words in WORDS.items()}
    means = [
        np.mean([np.median(recorded(task, encodings[name], times)) for times in TIMES])
        for name in names
    ]
    assert sorted(means, reverse=TASKS[task].unit != "bits") == means
    assert len(set(names)) == len(load(task)["settings"]["encodings"])


@pytest.mark.parametrize("task", TASKS)
def test_the_answer_counts_what_the_record_holds(node, data, task):
    now = reading(node, data, task)
    names = load(task)["settings"]["encodings"]
    median = lambda *asked: float(np.median(recorded(task, *asked)))  # noqa: E731
    medians = {n: [median(n, times) for times in (1, 8)] for n in names}
    half = {n: median(n, 1, "bfloat16") for n in names}
    assert now["tried"] == len(names)
    for i in (0, 1):
        assert now["well"][i] == sum(round(m[i], 2) >= 0.9 for m in medians.values())
        best = (min if TASKS[task].unit == "bits" else max)(m[i] for m in medians.values())
        assert now["best"][i]["value"] == pytest.approx(best)
    worse = -1 if TASKS[task].unit == "bits" else 1
    lost = {n: worse * (round(medians[n][0], 2) - round(half[n], 2)) for n in names}
    assert now["kept"] == sum(abs(value) < 0.011 for value in lost.values())
    assert now["worst"]["lost"] == pytest.approx(max(lost.values()))


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_there_are_as_many_medians_as_lengths(node, data, encoding, half):
    """Also in the rows of what was not tried on the task that is sorted by."""
    for task in TASKS:
        now = reading(node, data, task, encoding, half)
        assert now["times"] == list(TIMES[:2] if half else TIMES)
        there = [row["medians"] for row in now["rows"] if row["medians"]]
        assert {len(values) for values in there} == {len(now["times"])}


def test_the_script_reads_the_summary(node, data):
    for task, encoding, times in CELLS:
        entries = entries_of(data)
        first, second = (np.array(recorded(task, one, times)) for one in (encoding, "rope"))
        less, at = TASKS[task].unit == "bits", TIMES.index(times)
        mine, rope = (entries[task, one]["scores"][at] for one in (encoding, "rope"))
        apart = node.call("seeds.js", "compare", mine, rope, less)
        for ours, exact in (
            (node.call("seeds.js", "spread", mine), first),
            (apart, first - second),
        ):
            assert [ours["median"], ours["low"], ours["high"]] == pytest.approx(
                summary.spread(exact)[:3], abs=1e-9
            )
        gains = (second - first) if less else (first - second)
        better, worse = int((gains > 0).sum()), int((gains < 0).sum())
        assert (apart["better"], apart["worse"]) == (better, worse)
        both = min(1.0, 2 * min(summary.sign_flip(gains), summary.sign_flip(-gains)))
        assert apart["p"] == pytest.approx(both)
        assert ("all eight" in apart["verdict"]) == (
            better == 8 or worse == 8 or (gains == 0).all()
        )
        assert ("undecided" in apart["verdict"]) == (both >= summary.SIGNIFICANT and gains.any())
        if "undecided" not in apart["verdict"] and gains.any():
            assert apart["verdict"].startswith("better" if gains.sum() > 0 else "worse")
        now = reading(node, data, task, encoding)
        said = [] if encoding == "rope" else [apart["verdict"]]
        assert now["verdicts"][at : at + 1] == said


def test_alibis_recorded_attention_falls_as_its_bias_does():
    """Random text tells the first layer nothing of distances, so it looks as its bias says."""
    record = summary.measured(load("copy"), "alibi")
    back = np.exp(-np.arange(64) / 16)
    alone = np.mean([back[:33] / back[: t + 1].sum() for t in range(32, 64)], axis=0)
    for models in record["attention"]:
        assert models[0][0] == pytest.approx(alone, abs=0.025)


def test_data_of_something_else_are_refused(data):
    make = figures.trained_models
    with pytest.raises(ValueError, match="data must hold the tasks"):
        make({"tasks": []})
    with pytest.raises(ValueError, match="data must hold the tasks"):
        make({"tasks": [{}]})
    with pytest.raises(ValueError, match=r"known encodings only, got \{None\}"):
        make({"tasks": [{"name": task["name"]} for task in data["tasks"]]})
    other = json.loads(json.dumps(data))
    other["tasks"][0]["entries"]["xPos"] = {}
    with pytest.raises(ValueError, match=r"known encodings only, got \{'xPos'\}"):
        make(other)


def test_every_answer_is_short_enough_to_be_read_first(node, data):
    lengths = []
    for task, encoding, half in itertools.product(SHOWN, ENTRIES, (False, True)):
        traits = {"task": task, "encoding": encoding, "half": half}
        now = node.call("trained_models.js", "reading", data, traits)
        said = node.call("trained_models.js", "words", now)
        lengths.append(len(said.partition("\n")[0].replace("*", "")))
        assert said.partition("\n")[0].endswith(".")
    assert max(lengths) < 220
