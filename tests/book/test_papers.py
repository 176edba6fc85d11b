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
each_contest = pytest.mark.parametrize("name", [n for n in CARDS if "encoding" in CARDS[n]])
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
    assert all(len(card[line]) > 5 for line in ("claim", "setting", "read", "run"))
    assert f"arXiv:{card['id']}" in (ROOT / "book" / "references.bib").read_text("utf8")


@each_card
def test_no_verdict_stands_without_something_executed(name):
    card = CARDS[name]
    if "encoding" in card:
        assert "verdict" not in card  # the record says it
        assert f'contest_card("{name}"' in SHOWN[name]
    else:
        assert card["verdict"] in papers.VERDICTS
        assert "assert " in SHOWN[name]
        assert card["verdict"] == "holds" or len(card["why"]) > 30


@each_card
def test_a_why_is_two_short_sentences(name):
    why = re.sub(r"\{[^}]*\}|\d\.\d", "0", CARDS[name].get("why", ""))
    assert len(re.findall(r"\.(?: |$)", why)) <= 2
    assert len(why) < 330


FULL = {("copy", 1)}
"""RoPE copies every token within the window, so that nothing can be ahead there."""


@each_contest
def test_a_card_of_the_contest_shows_every_comparison_that_the_record_has(name):
    card = CARDS[name]
    html = papers.contest_card(name, worst="", wins="").data
    shown = BeautifulSoup(html, "html.parser").find("table")
    for task in papers.TASKS:
        (row,) = (r for r in shown.tbody("tr") if r.th.text.split()[0] == task)
        record = recent.records()[task]
        assert list(map(str, papers.TIMES)) == list(recent_lengths(record))
        for times, cell in zip(papers.TIMES, row("td"), strict=True):
            if card["encoding"] not in record["settings"]["encodings"]:
                assert cell.text == "–"
                continue
            side = (card["encoding"], "rope")
            there, back = (compare(record, *s, times=times) for s in (side, side[::-1]))
            assert ("ahead" in cell.text, "behind" in cell.text) == (there.stands, back.stands)
            number = float(cell.text.split()[-1].replace("\N{MINUS SIGN}", "-"))
            assert number == pytest.approx(np.median(there.measured), abs=0.00501)
            about = task in card["tasks"] and times in card["times"]
            about &= (task, times) not in FULL or back.stands
            assert ("paper-about" in cell["class"]) == about


def recent_lengths(record):
    return summary.measured(record, "rope")["test"]["none"]


@each_contest
def test_a_claim_is_about_whole_rows_and_columns(name):
    card = CARDS[name]
    assert set(card["tasks"]) <= set(papers.TASKS)
    assert card["times"] in ([], [2, 4, 8], list(papers.TIMES))
    assert bool(card["times"]) == bool(card["tasks"])
    assert len(papers.about(name)) == sum(
        card["encoding"] in recent.records()[task]["settings"]["encodings"]
        for task in card["tasks"]
        for times in card["times"]
        if (task, times) not in FULL
        or compare(recent.records()[task], "rope", card["encoding"]).stands
    )


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (["ahead", "ahead"], "holds"),
        (["ahead", "undecided"], "holds in part"),
        (["ahead", "behind"], "holds in part"),
        (["behind", "undecided"], "fails"),
        (["undecided", "undecided"], "cannot be asked here"),
        ([], "cannot be asked here"),
    ],
)
def test_the_verdict_of_trained_models_follows_the_rule(said, verdict, monkeypatch):
    monkeypatch.setattr(papers, "about", lambda name: said)
    assert papers.verdict("tapa") == verdict
    shown = BeautifulSoup(papers.contest_card("tapa").data, "html.parser")
    assert shown.select_one(".paper-verdict").text == verdict
    counts = f"Of {len(said)} cells {said.count('ahead')} ahead, {said.count('behind')} behind."
    assert (counts in shown.text) == bool(said)


def test_a_cell_says_who_is_ahead_in_how_many_seeds():
    assert papers.Cell(BETTER, WORSE).words == "ahead: ahead in 8 of 8 seeds, behind in 0"
    assert papers.Cell(WORSE, BETTER).words == "behind: ahead in 0 of 8 seeds, behind in 8"
    assert papers.Cell(EITHER, EITHER).words == "undecided: ahead in 4 of 8 seeds, behind in 4"
    assert papers.Cell(WORSE, BETTER).median == "\N{MINUS SIGN}0.10"
    assert papers.Cell(EITHER, EITHER).median == "+0.00"


def test_against_one_window_of_keys_the_counts_are_those_of_chapter_16():
    asked = ("pope", "grape_a", "fourier", "local_nope", "fast_half")
    assert [papers.masked(name) for name in asked] == [2, 8, 0, 1, None]


def test_a_card_escapes_what_stands_in_it(monkeypatch):
    one = CARDS["pope"] | {"claim": "1 < 2 & `a_b` and *so*", "found": "{number:.1f}"}
    monkeypatch.setattr(papers, "load", lambda: {"x": one | {"verdict": "holds", "why": "w"}})
    shown = papers.card("x", number=0.25).data
    assert "1 &lt; 2 &amp; <code>a_b</code> and <em>so</em>" in shown
    assert "0.2" in BeautifulSoup(shown, "html.parser").text


def test_a_table_counts_the_cards_and_has_a_box_for_every_class_that_has_some():
    shown = BeautifulSoup(papers.filters().data, "html.parser")
    rows = [[int(cell.text) for cell in row("td")] for row in shown.tbody("tr")]
    *kinds, total = np.array(rows)
    assert total.tolist() == np.sum(kinds, axis=0).tolist()
    assert total[-1] == len(CARDS)
    assert all(sum(row[:-1]) == row[-1] for row in rows)
    verdicts = [papers.verdict(name) for name in CARDS]
    assert total[:-1].tolist() == [verdicts.count(verdict) for verdict in papers.VERDICTS]
    names = {*verdicts, *papers.KINDS}
    boxes = {box["id"]: box.parent.text.strip() for box in shown.find_all("input")}
    assert boxes == {f"show-{papers.slug(name)}": name for name in names}
    assert all(f".paper-{papers.slug(name)}" in shown.style.text for name in names)


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
    assert met or CARDS[name]["verdict"] != "holds"
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
