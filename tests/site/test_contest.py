"""The contest on the published page says what the recorded runs say."""

import pytest
from playwright.sync_api import expect

from experiments import summary
from experiments.encodings import ENCODINGS
from experiments.tasks import TASKS

from .test_aliasing_figures import OnPage

PAGE = "notebooks/12-does-it-matter.html"
WORDS = {name: how.words for name, how in ENCODINGS.items()}


def test_the_contest_says_what_the_records_say(visit):
    seen = visit()
    contest = OnPage(seen.open(PAGE), "contest")
    for task, a, b, times in (
        ("copy", "one_plane", "rope", 8),
        ("find", "monotone_a", "slow_half", 2),
        ("language", "nope", "mixed", 4),
    ):
        contest.press("Task", TASKS[task].words)
        contest.press("Length of the text", str(times))
        contest.choose("Encoding", WORDS[a])
        contest.choose("Compare with", WORDS[b])
        says = contest.values(
            task=TASKS[task].words, encoding=WORDS[a], against=WORDS[b], times=times
        )
        record, what = summary.load(task), TASKS[task].unit
        exact = {
            "encodingScores": summary.mean(record, a, what, times=times),
            "againstScores": summary.mean(record, b, what, times=times),
        }
        for which, found in exact.items():
            ours = says[which]["float32"]
            assert [ours["mean"], ours["low"]] == pytest.approx(found[:2], abs=3e-4)
        apart = summary.difference(record, a, b, what, times=times)
        assert says["difference"]["mean"] == pytest.approx(apart.mean, abs=3e-4)
        verdict = "within noise" if says["difference"]["withinNoise"] else "more than noise"
        expect(contest.figure.locator(".rope-caption")).to_contain_text(verdict)
    assert seen.problems == []
    assert seen.foreign == []


def test_the_hands_turn_by_keyboard_and_pointer_on_a_phone(visit):
    page = visit(width=390, height=900, theme="dark", reduced_motion="reduce").open(PAGE)
    contest = OnPage(page, "contest")
    head = contest.figure.locator("canvas[tabindex]")
    head.press("Home")
    contest.values(m=0)
    head.press("Shift+ArrowRight")
    contest.values(m=10)
    head.scroll_into_view_if_needed()
    frame = head.bounding_box()
    page.mouse.click(frame["x"] + frame["width"] - 14, frame["y"] + frame["height"] - 60)
    contest.values(m=32)
    contest.button("Show me")
    contest.values(encoding="RoPE, YaRN", against="RoPE", times=8)
    contest.button("Reset")
    contest.values(encoding=WORDS["monotone_a"], m=7, times=1)
    contest.choose("Encoding", WORDS["rope_unmasked"])
    contest.press("Task", TASKS["language"].words)
    expect(contest.figure.locator(".rope-caption")).to_contain_text("in plain sight")
