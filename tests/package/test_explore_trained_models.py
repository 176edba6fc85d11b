"""The trained models: their data from the records, and what the script makes of them."""

import json

import numpy as np
import pytest

from experiments import run, summary
from experiments.encodings import ENCODINGS
from experiments.figure import DONE, trained_models_data, turning
from experiments.run import AIDED, BINS, TIMES
from experiments.tasks import TASKS
from rope_minimal import explore
from rope_minimal.explore.trained_models import AIDS, ENTRIES, TrainedModels
from rope_minimal.explore.trained_models import TASKS as SHOWN
from tests.tools.node import Node

CELLS = [
    ("copy", "monotone_a", "rope", 1, "none"),
    ("copy", "rope", "alibi", 4, "temperature"),
    ("find", "slow_half", "rope", 8, "none"),
    ("induction", "rope", "monotone_b", 4, "parts"),
    ("language", "rope", "slow_half", 4, "parts+t"),
    ("language", "nope", "alibi", 2, "none"),
    ("language", "rope", "rope", 1, "none"),
]
WORDS = {name: how.words for name, how in ENCODINGS.items()}


@pytest.fixture(scope="module")
def node():
    process = Node()
    yield process
    process.close()


@pytest.fixture(scope="module")
def data():
    return trained_models_data()


@pytest.fixture(scope="module")
def entries(data):
    """Every entry of the figure by the names of its task and its encoding."""
    return {
        (task, encoding): shown["entries"][WORDS[encoding]]
        for task, shown in zip(TASKS, data["tasks"], strict=True)
        for encoding in summary.load(task)["settings"]["encodings"]
    }


def recorded(task, encoding, times, kind="none"):
    record = summary.load(task)
    return summary.values(record, encoding, TASKS[task].unit, times=times, kind=kind)


def in_the_figure(entry, times, kind):
    return entry["scores"][TIMES.index(times)] if kind == "none" else entry["aids"][DONE[kind]]


@pytest.fixture(scope="module")
def said(node, data, entries):
    found = []
    for task, a, b, times, kind in CELLS:
        shown = [entries[task, a], entries[task, b]]
        less = TASKS[task].unit == "bits"
        first, second = (in_the_figure(one, times, kind) for one in shown)
        rows = node.call("trained_models.js", "rowsOf", data["done"], shown)
        found.append(
            {
                "of": node.call("seeds.js", "spread", first),
                "apart": node.call("seeds.js", "compare", first, second, less),
                "rows": [words for group in rows for words in group],
            }
        )
    return found


def test_the_figure_has_the_words_of_the_experiments(data):
    assert [task.words for task in TASKS.values()] == SHOWN
    assert list(WORDS.values()) == ENTRIES
    assert list(DONE.values()) == AIDS
    assert [words for group in data["done"] for words in group] == AIDS


def test_the_data_are_small_and_every_trained_encoding_is_in_them(data):
    assert len(json.dumps(data)) < 90_000
    for task, name in zip(data["tasks"], TASKS, strict=True):
        trained = summary.load(name)["settings"]["encodings"]
        assert list(task["entries"]) == [WORDS[encoding] for encoding in trained]


def test_every_score_of_the_record_is_in_the_figure(entries):
    for (task, encoding), entry in entries.items():
        run = summary.measured(summary.load(task), encoding)
        assert {words for kind, words in DONE.items() if kind in run["test"]} == set(entry["aids"])
        shown = {("none", n): entry["scores"][i] for i, n in enumerate(TIMES)}
        for kind, words in DONE.items():
            if words in entry["aids"]:
                shown[kind, AIDED] = entry["aids"][words]
        for kind in ("bfloat16", "stored"):
            assert len(entry[kind]) == len(run["test"][kind])
            shown |= {(kind, n): entry[kind][i] for i, n in enumerate(TIMES[: len(entry[kind])])}
        for (kind, times), values in shown.items():
            assert values == recorded(task, encoding, times, kind), (task, encoding, kind, times)


def test_the_distances_have_medians_and_intervals_of_the_seeds_that_were_asked(entries):
    for (task, encoding), entry in entries.items():
        assert ("bins" in entry) == TASKS[task].by_distance
        for times, rows in zip(TIMES, entry.get("bins", ()), strict=False):
            exact = summary.measured(summary.load(task), encoding)["test"]["none"][str(times)]
            assert len(rows) == len(exact["bins"]) < len(BINS)
            for row, values in zip(rows, exact["bins"], strict=True):
                answered = sorted(value for value in values if value is not None)
                assert row[0] == pytest.approx(np.median(answered), abs=6e-3)
                assert row[1:] == pytest.approx([answered[1], answered[-2]], abs=6e-3)


def test_the_note_says_how_often_the_interval_holds_the_median(node):
    covered = summary.coverage(len(summary.measured(summary.load("copy"), "rope")["seeds"]))
    assert f"interval of {covered:.0%} for the median" in node.call("trained_models.js", "NOTICE")


def test_the_script_reads_the_summary(said):
    for (task, a, b, times, kind), found in zip(CELLS, said, strict=True):
        first, second = (np.array(recorded(task, one, times, kind)) for one in (a, b))
        for ours, exact in ((found["of"], first), (found["apart"], first - second)):
            assert [ours["median"], ours["low"], ours["high"]] == pytest.approx(
                summary.spread(exact)[:3], abs=1e-9
            )
        gains = (second - first) if TASKS[task].unit == "bits" else (first - second)
        apart, better, worse = found["apart"], int((gains > 0).sum()), int((gains < 0).sum())
        assert (apart["better"], apart["worse"]) == (better, worse)
        both = min(1.0, 2 * min(summary.sign_flip(gains), summary.sign_flip(-gains)))
        assert apart["p"] == pytest.approx(both)
        assert ("all eight" in apart["verdict"]) == (
            better == 8 or worse == 8 or (gains == 0).all()
        )
        assert ("undecided" in apart["verdict"]) == (both >= summary.SIGNIFICANT and gains.any())
        if "undecided" not in apart["verdict"] and gains.any():
            assert apart["verdict"].startswith("better" if gains.sum() > 0 else "worse")


def test_the_rows_are_what_was_done_to_either_of_the_two(said, entries):
    for (task, a, b, _, _), found in zip(CELLS, said, strict=True):
        tried = {*entries[task, a]["aids"], *entries[task, b]["aids"]}
        assert found["rows"] == [words for words in AIDS if words in tried]


def test_the_head_is_seed_0s_sharpest_and_rests_where_nothing_turns(entries):
    for (task, encoding), entry in entries.items():
        run = summary.measured(summary.load(task), encoding)
        attention, usage = np.array(run["attention"][0]), np.array(run["usage"][0])
        assert run["seeds"][0] == 0
        own = attention[entry["layer"]].ravel()
        assert own.max() == attention.max()
        assert entry["attention"] == pytest.approx(own, abs=6e-4)
        share = usage[entry["layer"]].ravel() / usage[entry["layer"]].sum()
        assert entry["usage"] == pytest.approx(share, abs=6e-4)
        bank = turning(TASKS[task], encoding, entry["layer"])
        assert entry["inv_freq"] == pytest.approx(bank, rel=1e-3)


def test_the_distance_that_t5s_head_is_shown_to_look_at_is_the_one_it_needs(entries):
    """A model trained here guesses if its bias hides that distance, and copies without others."""
    shown = int(np.argmax(entries["copy", "t5"]["attention"]))
    rate = summary.measured(summary.load("copy"), "t5")["learning_rate"]
    models = run.train(TASKS["copy"], "t5", (2000,), rate, TASKS["copy"].steps)
    bias = models.weights["t5"].data
    trained, copies = bias.clone(), []
    for distance in range(16):  # of one bucket each
        bias[..., distance] = -1e4
        copies += run.score(models, TASKS["copy"], "test", (2000,), 1)["accuracy"]
        bias.copy_(trained)
    assert copies.pop(shown) < 1 / 8
    assert min(copies) > 0.9


def test_alibis_recorded_attention_falls_as_its_bias_does():
    """Random text tells the first layer nothing of distances, so it looks as its bias says."""
    record = summary.measured(summary.load("copy"), "alibi")
    back = np.exp(-np.arange(64) / 16)
    alone = np.mean([back[:33] / back[: t + 1].sum() for t in range(32, 64)], axis=0)
    for models in record["attention"]:
        assert models[0][0] == pytest.approx(alone, abs=0.025)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("layer", [0, 1])
def test_the_hands_turn_where_q_and_k_are_rotated_alike(encoding, layer):
    how, hands = ENCODINGS[encoding], turning(TASKS["copy"], encoding, layer)
    assert hands.shape == (16,)
    if encoding in {"nope", "alibi", "t5", "sinusoidal", "learned", "before", "mixed"}:
        assert not hands.any()
    elif encoding == "layers":
        assert hands.any() == (layer == 0)
    else:
        assert hands == pytest.approx(how.inv_freq(32, TASKS["copy"].window))


def test_reset_leaves_the_data_alone(data):
    figure = explore.trained_models(data).children[1]
    start = {"task": 0, "encoding": 1, "against": 1, "times": 0, "aid": 3, "m": 7}
    assert figure._start == start
    assert "data" not in TrainedModels.figure_traits()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task": "chess"}, "task must be one of .* got 'chess'"),
        ({"encoding": "xPos"}, "encoding must be one of .* got 'xPos'"),
        ({"times": 3}, "times must be one of 1, 2, 4, 8; got '3'"),
    ],
)
def test_bad_values_are_named(data, values, message):
    with pytest.raises(ValueError, match=message):
        explore.trained_models(data, **values)


def test_data_of_something_else_are_refused(data):
    with pytest.raises(ValueError, match="data must hold the tasks"):
        explore.trained_models({"tasks": []})
    for change in ({"xPos": {}}, {"RoPE": {"aids": {"xPos": []}}}):
        other = json.loads(json.dumps(data))
        other["tasks"][0]["entries"] |= change
        with pytest.raises(ValueError, match=r"known entries only, got \{'xPos'\}"):
            explore.trained_models(other)
