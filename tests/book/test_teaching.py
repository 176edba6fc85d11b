"""Lessons and handouts: plans add up, links and figures exist, numbers are computed again."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from mdit_py_plugins.anchors.index import slugify

from rope_minimal import (
    inverse_frequencies,
    mrope_positions,
    rescaled_frequencies,
    rotate_complex,
    rotation_matrix,
    to_half,
    wavelengths,
)
from ropebook import figures
from ropebook.aliasing import code_distance, neighbour_contrast, unseen_pairs
from slides.pictures import PICTURES

from .test_glossary_and_map import headings

BOOK = Path(__file__).parents[2] / "book"
TEACH, HANDOUTS = ((BOOK / name).read_text("utf8") for name in ("teach.md", "handouts.md"))
LESSONS = re.split(r"^## (?=Lesson \d:)", TEACH.partition("## Pictures")[0], flags=re.MULTILINE)[1:]
SHEETS = re.split(r"^## (?=Sheet \d:)", HANDOUTS, flags=re.MULTILINE)[1:]
TURN, THETA = 2 * np.pi, inverse_frequencies(128)


def answers(sheet):
    """Return the answers of a sheet, each with its question before it."""
    fold = r"^\*\*\d\..*?<summary>Answer</summary>\n\n(.*?)\n\n</details>"
    return re.findall(fold, sheet, re.MULTILINE | re.DOTALL)


# ---- the two pages ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(1, 7))
def test_a_lesson_has_its_parts_and_45_minutes(number):
    lesson = LESSONS[number - 1]
    assert lesson.startswith(f"Lesson {number}: ")
    parts = ["Goal.", "Before the lesson", "Sheet.", "Slides.", "What students get wrong."]
    assert all(lesson.count(f"**{part}**") == 1 for part in parts)
    assert len(re.findall(r"\*\*Figures?\.\*\*", lesson)) == 1
    minutes = re.findall(r"^\| (\d+) \|", lesson, re.MULTILINE)
    assert len(minutes) >= 5
    assert sum(map(int, minutes)) == 45
    assert f"(handouts.md#sheet-{number}-" in lesson


@pytest.mark.parametrize("number", range(1, 7))
def test_a_sheet_has_four_questions_with_room_answer_and_the_place_that_shows_it(number):
    sheet = SHEETS[number - 1]
    assert sheet.startswith(f"Sheet {number}: ")
    assert re.findall(r"^\*\*(\d)\.", sheet, re.MULTILINE) == list("1234")
    assert sheet.count('<div class="room') == sheet.count('<details class="answer">') == 4
    assert len(answers(sheet)) == 4
    for answer in answers(sheet):
        assert re.search(r"\(\[.+\]\(\.\./notebooks/\S+\.ipynb#\S+\)\)$", answer)
    # every question is worked on in the lesson
    asked = re.findall(r"[Qq]uestion (\d)", LESSONS[number - 1])
    assert set(asked) == set("1234")


@pytest.mark.parametrize("page", [TEACH, HANDOUTS], ids=["teach", "handouts"])
def test_every_link_finds_its_heading(page):
    own = {"": page, "teach.md": TEACH, "handouts.md": HANDOUTS}
    anchors = {
        name: {slugify(title) for title in re.findall(r"^#{1,3} (.+)$", text, re.MULTILINE)}
        for name, text in own.items()
    }
    links = re.findall(r"\]\(([^()#\s]*)#([^()\s]+)\)", page)
    assert len(links) >= 20
    for file, anchor in links:
        found = anchors[file] if file in own else headings(BOOK / file)
        assert anchor in found, (file, anchor)


@pytest.mark.parametrize("page", [TEACH, HANDOUTS], ids=["teach", "handouts"])
def test_the_figures_ask_what_the_pages_say(page):
    asked = {getattr(getattr(figures, name), "question", "") for name in figures.__all__}
    named = [
        question
        for line in re.findall(r"^(?:\*\*)?Figures?[.:].*$", page, re.MULTILINE)
        for question in re.findall(r"(?<!\*)\*([^*]+\?)\*(?!\*)", line)
    ]
    assert len(named) == 8
    assert set(named) <= asked


def test_the_pictures_are_named_with_what_they_say():
    listed = re.findall(r"^\| `(\w+)` \| (.+?) \| ([\d, ]+) \|$", TEACH, re.MULTILINE)
    assert {name: says for name, says, _ in listed} == {n: p.says for n, p in PICTURES.items()}
    for number, lesson in enumerate(LESSONS, 1):
        (line,) = re.findall(r"\*\*Slides\.\*\* (.+)$", lesson, re.MULTILINE)
        wanted = {name for name, _, lessons in listed if str(number) in lessons.split(", ")}
        assert set(re.findall(r"`(\w+)`", line)) == wanted


# ---- the answers --------------------------------------------------------------------------------


def numbers(text):
    """Return the numbers of an answer, the name of its source left out."""
    told = re.sub(r"\(\[.*\]\(.*\)\)$", "", text)
    return set(re.findall(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?", told))


def turned(m, n, step=15.0):
    """Return the angles in degrees of a query at m and a key at n, and their score."""
    ones = np.array([[1.0, 0], [1, 0]])
    q, k = rotate_complex(ones, np.array([m, n]), inv_freq=[np.radians(step)])
    return *(f"{np.degrees(np.arctan2(*z[::-1])) % 360:.0f}" for z in (q, k)), q @ k


def sheet_1():
    four = inverse_frequencies(8)
    yield {"3", "6", "7", "2", f"{7 % TURN:.2f}"}
    far = f"{np.degrees(1000 * four[-1]):.0f}"
    sides = {f"{np.degrees(four[0]):.0f}", f"{np.degrees(four[-1]):.2f}", far}
    spans = {f"{w:,.3g}" if w < 1000 else f"{w:,.0f}" for w in wavelengths(four)}
    turns = 1000 * four / TURN
    assert 1 < turns[2] < 2
    yield spans | sides | {"2", f"{turns[0] // 1:.0f}", f"{np.ceil(turns[1]):.0f}"}
    yield {"4", "2", f"{TURN - 4:.2f}"}
    turning = np.flatnonzero(wavelengths(THETA) <= 4096)
    at = 64 * np.log(4096 / TURN) / np.log(10_000)
    slowest = f"{wavelengths(THETA)[-1]:,.0f}"
    yield {"4,096", f"{at:.2f}", "0", str(turning[-1]), str(len(turning)), "63", "64", slowest}


def sheet_2():
    q, k, score = turned(5, 1)
    moved_q, moved_k, again = turned(9, 5)
    assert np.isclose(score, again)
    yield {"5", "1", "15", "9", "60", f"{score:.2f}", moved_q, moved_k}
    assert int(q) - int(k) == int(moved_q) - int(moved_k) == 60
    product = (1 + 2j) * (3 - 1j).conjugate()
    yield {"1", "3", "2", f"{product.real:.0f}"}
    steps = [15 * m**2 for m in (1, 2, 3)]
    yield {str(s) for s in (*steps, *np.diff(steps), 1)}
    scores = [turned(m, 0)[2] for m in range(12)]
    ahead = [np.cos(np.radians(15 * m - 60)) for m in range(12)]
    assert np.isclose(scores[4], ahead[0])  # as four words apart for a key that is not ahead
    best = int(np.argmax(ahead))
    yield {"15", str(best), f"{ahead[best]:.2f}", "0", "60", f"{ahead[0]:.2f}"}


def sheet_3():
    told = {}
    for interleaved in (True, False):
        partners = np.argwhere(np.triu(rotation_matrix(1, 8, interleaved=interleaved), 1))
        told[interleaved] = ", ".join(f"{a} and {b}" for a, b in partners)
    given = answers(SHEETS[2])
    assert given[0].startswith(f"Interleaved: {told[True]}. Half-split: {told[False]}.")
    yield {str(i) for i in range(8)}
    assert given[1].startswith(", ".join(map(str, to_half(np.arange(8)))) + ":")
    yield {str(i) for i in range(8)}
    runs = {}
    for width in (8, 128):
        order, runs[width] = to_half(np.arange(width)), 1
        while (order != np.arange(width)).any():
            order, runs[width] = to_half(order), runs[width] + 1
    yield {str(runs[8]), "2", "8", "1", "7", "128", str(runs[128]), "127"}
    wrong = wrong_scores()
    right = 144 - wrong["none"]
    assert wrong["q"] == wrong["k"] == 144
    assert wrong["both"] == 0
    yield {str(right), "0", str(wrong["none"]), "144"}


def wrong_scores():
    """Count the wrong scores of 12 tokens if rows of no matrix, one or both have moved."""
    q, k = np.random.default_rng(0).normal(size=(2, 12, 16))
    at = np.arange(12)
    truth = np.array([rotate_complex(z, at, interleaved=True) for z in (q, k)])
    truth = truth[0] @ truth[1].T
    found = {}
    for name, moved in (("none", ""), ("q", "q"), ("k", "k"), ("both", "qk")):
        one, other = (to_half(z) if n in moved else z for n, z in (("q", q), ("k", k)))
        made = rotate_complex(one, at) @ rotate_complex(other, at).T
        found[name] = int((~np.isclose(made, truth, rtol=0, atol=1e-9)).sum())
    return found


def sheet_4():
    far = np.arange(1, 131_073)
    yield {"7", f"{7 * TURN:.3f}", "44", f"{44 - 7 * TURN:.3f}", "113", f"{113 * TURN:.5f}"} | {
        "710",
        f"{710 - 113 * TURN:.5f}",
    }
    angle, cosine = np.arange(40) * 0.5 % TURN, np.cos(np.arange(40) * 0.5)
    back, up = (
        1 + np.flatnonzero(np.diff(x) * sign > 0)[0] for x, sign in ((angle, -1), (cosine, 1))
    )
    assert back == -(-12.56 // 1)
    yield {"2", "6.28", "12.56", str(back), str(up), str(up - 1)}
    chance = 0.2 / TURN
    expected = [131_072 * chance**hands for hands in (1, 2, 4, 8)]
    gone = far[:, None] * inverse_frequencies(8)
    near = np.abs(gone - TURN * np.round(gone / TURN)) < 0.1
    counted = near.all(axis=1).sum()
    told = (f"{e:,.{d}f}" for e, d in zip(expected, (0, 0, 2, 7), strict=True))
    yield {"1", f"{1 / chance:.1f}", *told, "8", str(counted), "0.1", "0.01", "0.001"}
    own = code_distance(far, THETA)
    assert own.argmin() == 0
    assert int(131_072 // TURN) == 20_860  # the question
    two = code_distance(far, THETA[:2])
    least = 1 + int(two.argmin())
    assert far[least - 1] > 1
    yield {"64", f"{own[0]:.3f}", "710", f"{own[709]:.3f}", "2", "131,072", "0", "1"} | {
        f"{THETA[1]:.3f}",
        f"{least:,}",
        f"{two.min():.3f}",
    }


def sheet_5():
    yield {f"{4096 / 1000:.1f}", f"{4096 / 10_000:.2f}", f"{360 / 1000:.2f}"}
    new = np.flatnonzero(unseen_pairs(THETA, 65_536, THETA, 4096))
    assert list(new) == list(range(new[0], 64))
    yield {"64", "46", str(len(new)), str(new[0]), "63", "1", "16", "65,536", "4,096"}
    slow = THETA / 16
    assert np.allclose(code_distance(112, slow), code_distance(7, THETA))
    yield {"112", str(slow[0]), f"{np.cos(slow[0]):.3f}", f"{np.cos(1):.3f}"}
    # a head whose pairs made half a turn, ten and a hundred
    speeds = TURN * np.array([100, 10, 0.5]) / 4096
    bank, _ = by_parts(speeds)
    assert np.isclose(bank[0], speeds[0])
    assert np.isclose(bank[2], speeds[2] / 16)
    yield {"1", "16", f"{bank[1] / speeds[1]:.3f}", "9", "31", f"{9 / 31:.3f}"}


def by_parts(speeds):
    """Read the ramp of the package at speeds between those of a very wide head."""
    own = {"factor": 16, "original_max_position_embeddings": 4096}
    wide = inverse_frequencies(2**16)
    bank, factor = rescaled_frequencies("by_parts", 2**16, **own)
    return np.interp(speeds, wide[::-1], bank[::-1]), factor


def sheet_6():
    newest, fourth = 255, 3
    yield {str(newest), str(fourth), str(newest - fourth), "999", str(999 - fourth)}
    image = (1, 28, 42)
    places = mrope_positions([20, image, 6, image])
    one = mrope_positions([image])
    side, tokens = one.max() + 1, len(one)
    yield {"20", "6", str(side), str(places.max() + 1), str(tokens), str(len(places)), "14"}
    assert tokens == 14 * side
    yield {f"{TURN - 4:.3f}", "4", "2"}
    stored = torch.tensor([256, 257, 300, 1001]).bfloat16().int().tolist()
    assert stored == [256, 256, 300, 1000]
    yield {f"{position:,}" for position in stored}


@pytest.mark.parametrize("number", range(1, 7))
def test_every_number_of_an_answer_is_computed(number):
    computed = list(globals()[f"sheet_{number}"]())
    for question, (told, wanted) in enumerate(
        zip(answers(SHEETS[number - 1]), computed, strict=True), 1
    ):
        assert numbers(told) == wanted, question


# ---- the lessons --------------------------------------------------------------------------------


def says(number, *words):
    """Tell whether a lesson says all these words."""
    return all(word in LESSONS[number - 1] for word in words)


def test_the_numbers_of_the_lessons():
    assert says(1, f"collect 3, 6 and {7 % TURN:.2f}", f"{wavelengths(THETA)[-1]:,.0f} tokens")
    q, k, score = turned(5, 1)
    assert says(2, "query at word 5, key at word 1", f"{int(q) - int(k)}°, score {score:.2f}")
    q, k, score = turned(9, 1)
    assert says(2, f"it is {int(q) - int(k)}° and the score −{-score:.2f}")
    wrong = wrong_scores()
    assert says(3, f"{wrong['none']} of 144", f"all {wrong['q']} are wrong, the 12 on the diagonal")
    assert says(3, ", ".join(map(str, to_half(np.arange(8)))))


def test_the_numbers_of_the_later_lessons():
    far = np.arange(2, 131_073)
    below = {}
    for hands in (8, 7, 2):
        own = inverse_frequencies(2 * hands)
        below[hands] = int((code_distance(far, own) <= neighbour_contrast(own)).sum())
    assert below == {8: 0, 7: 4, 2: 10_151}
    assert says(4, "eight hands, none; seven, four distances; two, 10,151", "20,860")
    banks = {kind: rescaled_frequencies(kind, 128, factor=16)[0] for kind in ("linear", "ntk")}
    new = {k: int(unseen_pairs(b, 65_536, THETA, 4096).sum()) for k, b in banks.items()}
    assert new == {"linear": 0, "ntk": 17}
    kept = neighbour_contrast(banks["linear"]) / neighbour_contrast(THETA)
    assert says(5, "18 pairs, 46 to 63", "17 pairs still meet", f"has {kept:.0%} of its size")
    stretch = {"factor": 16, "original_max_position_embeddings": 4096}
    paper, code = (rescaled_frequencies(k, 128, **stretch)[0] for k in ("yarn_paper", "yarn"))
    assert round((code / paper).max()) == 3
    assert says(5, "a factor of three at one pair")
    fast, _ = rescaled_frequencies("proportional", 512, 1e6, partial_rotary_factor=0.25)
    assert says(4, f"turns every {wavelengths(fast[fast > 0])[-1]:.0f} tokens")
    places = mrope_positions([2, (1, 8, 12), 2])  # the text of the figure, up to its third word
    assert says(6, f"Token {len(places) - 1} stands at position {places.max()}")
