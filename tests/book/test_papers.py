"""The verdict cards: complete, each with something executed, and no better than what was found."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bs4 import BeautifulSoup

from experiments import papers, recent, summary
from experiments.real import papers as asked
from experiments.real.model import LAYERS, PAIRS
from experiments.summary import Comparison, compare
from tests.tools.released import loaded

ROOT = Path(__file__).parents[2]
CARDS = papers.load()
CELLS = json.loads((ROOT / "notebooks" / "papers.ipynb").read_text("utf8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]
SHOWN = {
    name: code
    for code in CODE
    for name in re.findall(r"^(?:contest_)?card\(\"([\w-]+)\"", code, re.MULTILINE)
}
each_card = pytest.mark.parametrize("name", CARDS)
BETTER = Comparison((0.1,) * 8, (0.1, 0.1), (0.1, 0.1), (0.1, 0.1))
WORSE = Comparison((-0.1,) * 8, (-0.1, -0.1), (-0.1, -0.1), (-0.1, -0.1))
EITHER = Comparison((0.1, -0.1) * 4, (0.1, -0.1), (0.1, -0.1), (0.1, -0.1))


def test_every_card_is_shown_once_and_there_are_many_works():
    assert set(SHOWN) == set(CARDS)
    assert len(re.findall(r"card\(\"", "\n".join(CODE))) == len(CARDS)
    assert len({card["id"] for card in CARDS.values()}) >= 25


@each_card
def test_a_card_says_what_was_claimed_read_and_run(name):
    card = CARDS[name]
    assert card["kind"] in papers.KINDS
    assert re.fullmatch(r"\d{4}\.\d{5}", card["id"])
    assert card["year"] == 2000 + int(card["id"][:2])
    assert all(len(card[line]) > 5 for line in papers.LINES)
    assert re.search(r"on \d+ November 2026$", card["read"])
    assert f"arXiv:{card['id']}" in (ROOT / "book" / "references.bib").read_text("utf8")


@each_card
def test_no_verdict_stands_without_something_executed(name):
    card = CARDS[name]
    if "encoding" in card:
        assert "verdict" not in card  # the record says it
        assert card["encoding"] in {*recent.RECENT, *summary.load("copy")["settings"]["encodings"]}
        assert SHOWN[name] == f'contest_card("{name}")'
    else:
        assert card["verdict"] in papers.VERDICTS[:-1]
        assert "assert " in SHOWN[name]


@each_card
def test_what_does_not_hold_says_why_and_what_small_models_say_names_their_size(name):
    card = CARDS[name]
    if card.get("verdict") != "holds":
        assert len(card["why"]) > 30
    if "encoding" in card:
        assert re.search(r"20,000 parameters|of two", card["why"])


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([(BETTER, WORSE), (BETTER, WORSE)], "holds"),
        ([(BETTER, WORSE), (EITHER, EITHER)], "holds in part"),
        ([(BETTER, WORSE), (WORSE, BETTER)], "holds in part"),
        ([(WORSE, BETTER), (EITHER, EITHER)], "fails"),
        ([(EITHER, EITHER), (EITHER, EITHER)], "cannot be asked here"),
        ([], "not run yet"),
        ([(BETTER, WORSE)], "not run yet"),
    ],
)
def test_the_verdict_of_trained_models_follows_the_rule(found, verdict, monkeypatch):
    places = (("language", 1), ("recall", 1))
    against = [papers.Against(*at, *sides) for at, sides in zip(places, found, strict=False)]
    one = CARDS["pope"] | {"against": [list(at) for at in places]}
    monkeypatch.setattr(papers, "load", lambda: {"pope": one})
    monkeypatch.setattr(papers, "contest", lambda name: against)
    assert papers.verdict("pope") == verdict
    shown = BeautifulSoup(papers.contest_card("pope").data, "html.parser")
    assert shown.select_one(".paper-verdict").text == verdict
    assert ("not recorded yet" in shown.text) == (len(found) < 2)
    assert ("not recorded yet: recall at the window." in shown.text) == (len(found) == 1)


def test_a_record_that_lacks_a_run_gives_no_verdict(monkeypatch):
    known = {name: summary.load(name) for name in ("copy", "induction", "find")}
    names = ["fast_half", "rope", "new"]
    for record in known.values():
        record["settings"]["encodings"] = names
    monkeypatch.setattr(papers, "_records", lambda: known)
    assert len(papers.contest("hope")) == 3
    for purpose in ("measure", "twice"):
        runs = known["find"]["runs"]
        gone = [r for r in runs if (r["purpose"], r["encoding"]) == (purpose, "fast_half")]
        known["find"]["runs"] = [run for run in runs if run not in gone]
        assert gone
        assert len(papers.contest("hope")) == (2 if purpose == "measure" else 3)
        assert papers.verdict("hope") == "not run yet"
        known["find"]["runs"] = runs


def test_a_comparison_says_who_is_ahead_and_whether_that_stands():
    said = papers.Against("copy", 8, BETTER, WORSE).words
    assert (
        said == "copy at 8 windows: ahead in 8 of 8 seeds (median gain +0.10 in accuracy), better"
    )
    said = papers.Against("language", 1, WORSE, BETTER).words
    assert said.endswith("ahead in 0 of 8 seeds (median gain -0.10 bits), worse")
    assert papers.Against("copy", 1, EITHER, EITHER).words.endswith(
        "(median gain +0.00 in accuracy), undecided"
    )
    tie = BETTER._replace(measured=(0.0,) * 8)
    assert "ahead in 0 of 8 seeds, level in 8 (" in papers.Against("copy", 1, tie, tie).words
    but = BETTER._replace(higher=(0.1, -0.2), twice=(-0.1, 0.0))
    said = "undecided, since not {} at the higher rate nor with twice the steps"
    assert papers.Against("copy", 1, but, WORSE).words.endswith(said.format("ahead"))
    assert papers.Against("copy", 1, WORSE, but).words.endswith(said.format("behind"))
    once = BETTER._replace(twice=())
    assert papers.Against("copy", 1, once, once).words.endswith("twice the steps not recorded yet")


def test_a_card_escapes_what_stands_in_it_and_refuses_another_verdict(monkeypatch):
    one = CARDS["pope"] | {"claim": "1 < 2 & `a_b` and *so*", "found": "{number:.1f}"}
    monkeypatch.setattr(papers, "load", lambda: {"x": one | {"verdict": "holds"}})
    shown = papers.card("x", number=0.25).data
    assert "1 &lt; 2 &amp; <code>a_b</code> and <em>so</em>" in shown
    assert "0.2" in BeautifulSoup(shown, "html.parser").text
    with pytest.raises(ValueError, match=r"verdict must be one of holds, .* got 'maybe'"):
        papers.card("x", "maybe", number=0.25)


def test_there_is_a_box_for_every_class_with_the_number_of_its_cards():
    shown = BeautifulSoup(papers.filters().data, "html.parser")
    boxes = {box["id"]: box.parent.text for box in shown.find_all("input")}
    names = (*papers.VERDICTS, *papers.KINDS)
    assert list(boxes) == [f"show-{papers.slug(name)}" for name in names]
    counts = [int(re.search(r"\((\d+)\)", words)[1]) for words in boxes.values()]
    assert sum(counts[:5]) == sum(counts[5:]) == len(CARDS)
    assert all(f".paper-{papers.slug(name)}" in shown.style.text for name in names)


def test_what_the_cards_say_of_other_encodings_is_in_the_record():
    english, parity = (recent.records()[task] for task in ("language", "parity"))

    def gain(name, times=1):
        return np.array(compare(english, name, "rope", times=times).measured)

    nope, later = np.median(gain("nope")), np.median(gain("nope", 8))
    assert np.median(gain("tapa")) == pytest.approx(nope, abs=0.03)
    assert np.median(gain("drope")) == pytest.approx(nope, rel=0.1)
    assert np.median(gain("drope", 8)) == pytest.approx(later, rel=0.1)
    assert min(compare(english, "tapa", "rope", times=4).twice) > 0
    assert (gain("local_nope") < 0).all()
    near = summary.values(english, "rope", "bits", times=4, kind="near")
    for name in ("local_nope", "fourier", "drope"):
        found = summary.values(english, name, "bits", times=4)
        assert np.median(found) > np.median(near)
    (twice,) = summary.runs(parity, "selective", "twice")
    assert min(twice["test"]["none"]["1"]["accuracy"]) > 0.99
    for name in ("selective", "rope"):
        assert np.median(summary.values(recent.records()["copy"], name)) == 1
    assert (gain("selective", 4) < 0).all()
    shown_one = np.subtract(near, summary.values(english, "pope", "bits", times=4))
    assert np.median(shown_one) < 0
    records = {task: summary.load(task) for task in ("copy", "find", "induction")}
    ahead = {
        task: compare(record, "fast_half", "rope").measured for task, record in records.items()
    }
    assert [sum(np.array(each) > 0) for each in ahead.values()] == [0, 4, 1]
    assert not any(ahead["copy"])


# ---- what the released model was asked ----------------------------------------------------------

THRESHOLDS = {
    "jin-massive": ("1", "2", "3"),
    "kim-model": ("4",),
    "chiang": ("5", "8"),
    "wertheimer": ("6",),
    "cope-zero": ("7",),
}


@pytest.mark.parametrize("name", THRESHOLDS)
def test_no_verdict_is_better_than_the_thresholds_and_one_that_was_missed_is_told(name):
    met = all(asked.judged()[number] for number in THRESHOLDS[name])
    assert (CARDS[name]["verdict"] == "holds") == met
    assert ("threshold" in CARDS[name]["why"]) == (not met)


def test_every_threshold_is_judged_and_the_record_is_whole():
    file = ROOT / "experiments" / "predictions-papers.json"
    assert [one["id"] for one in json.loads(file.read_text())["predictions"]] == [*asked.judged()]
    record = asked.load()
    assert set(record["about"]) == {"date", "torch", "device", "threads", "seconds"}
    assert len(record) == 6 + 6 * 5 + 2 + 2 + 1
    assert np.shape(record["sinks/YaRN"]) == (LAYERS, 12)
    assert np.shape(record["drift/draw 0"]) == (LAYERS, 9)
    assert sum(record["massive/Milton"]["at"]) == LAYERS * 9
    assert len(record["massive/Milton"]["at"]) == PAIRS


def test_pairs_fade_out_from_the_first_that_makes_no_turn():
    faded, plain = asked.faded().frequencies.numpy(), asked.frequencies().numpy()
    slow = 2 * np.pi / plain > 8192
    assert np.array_equal(faded[~slow], plain[~slow])
    assert np.isclose(faded[-1], 0)
    assert (np.diff(faded[slow] / plain[slow]) < 0).all()


def test_the_watched_model_shows_values_and_reads_as_before():
    seen = []
    attend = SimpleNamespace(weights={})
    watched = asked.Watched(attend, lambda *vectors: seen.append(vectors))
    with pytest.raises(AttributeError):  # the model's own attention is asked for next
        watched.attend(0, "q", "k", "v", None, None, None)
    assert seen == [(0, "q", "k", "v")]


@pytest.mark.parametrize("number", [0, 5])
def test_a_part_of_the_record_is_made_again(number):
    model, record = loaded(), asked.load()
    for name, change in {
        "as released": {"left_out": ()},
        "24-31": {"left_out": asked.SLOW},
        "24-31, sink spared": {"left_out": asked.SLOW, "first": False},
    }.items():
        again = asked.copied(model, number, **change)
        assert again == pytest.approx(record[f"copied/{name}/draw {number}"], abs=0.01)
