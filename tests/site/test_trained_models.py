"""The trained models on the published page say what the recorded runs say."""

import pytest
from playwright.sync_api import expect

from experiments import summary
from experiments.encodings import AIDS, ENCODINGS, SIGHTS
from experiments.run import AIDED
from experiments.tasks import TASKS
from tests.tools.on_page import OnPage

PAGE = "notebooks/08-does-it-matter.html"
WORDS = {name: how.words for name, how in ENCODINGS.items()}


def test_the_trained_models_say_what_the_records_say(visit):
    seen = visit()
    models = OnPage(seen.open(PAGE), "trained-models")
    caption = models.figure.locator(".rope-caption")
    for task, a, b, times in (
        ("copy", "one_plane", "rope", 8),
        ("find", "monotone_a", "slow_half", 2),
        ("language", "nope", "mixed", 4),
    ):
        models.press("Task", TASKS[task].words)
        models.press("Length of the text", str(times))
        models.choose("Encoding", WORDS[a])
        models.choose("Compare with", WORDS[b])
        says = models.values(
            task=TASKS[task].words, encoding=WORDS[a], against=WORDS[b], times=times
        )
        record, what = summary.load(task), TASKS[task].unit
        both = [summary.values(record, one, what, times=times) for one in (a, b)]
        apart = [x - y for x, y in zip(*both, strict=True)]
        for which, values in zip(
            ("encodingScores", "againstScores", "difference"), (*both, apart), strict=True
        ):
            ours, exact = says[which], summary.spread(values)
            assert [ours["median"], ours["low"], ours["high"]] == pytest.approx(exact[:3], abs=1e-9)
        p = min(1.0, 2 * min(summary.sign_flip(apart), summary.sign_flip([-d for d in apart])))
        assert says["difference"]["p"] == pytest.approx(p)
        expect(caption).to_contain_text(says["difference"]["verdict"])
        expect(caption).to_contain_text("p before any correction")
    assert seen.problems == []
    assert seen.foreign == []


def test_the_rows_and_the_hands_turn_by_keyboard_and_pointer_on_a_phone(visit):
    page = visit(width=390, height=900, theme="dark", reduced_motion="reduce").open(PAGE)
    models = OnPage(page, "trained-models")
    caption = models.figure.locator(".rope-caption")
    rows, head = models.figure.locator("canvas[tabindex]").all()
    words = [*AIDS.values(), *SIGHTS.values()]
    models.choose("Encoding", WORDS["rope"])
    rows.press("Home")
    models.values(aid=words[0])
    rows.press("ArrowDown")
    aided = models.values(aid=words[1])["aided"][0]
    record = summary.load("copy")
    for kind, ours in (("none", aided["before"]), ("pi", aided["median"])):
        exact = summary.score(record, "rope", times=AIDED, kind=kind)
        assert ours == pytest.approx(exact.median, abs=1e-9)
    expect(caption).to_contain_text(f"“{words[1]}” takes RoPE")
    rows.press("End")
    models.values(aid=words[-1])
    rows.scroll_into_view_if_needed()
    frame = rows.bounding_box()
    page.mouse.click(frame["x"] + 200, frame["y"] + 66 + 40 + 6 + 20)
    models.values(aid=words[0])
    head.press("Home")
    models.values(m=0)
    head.press("Shift+ArrowRight")
    models.values(m=10)
    head.scroll_into_view_if_needed()
    frame = head.bounding_box()
    page.mouse.click(frame["x"] + frame["width"] - 14, frame["y"] + frame["height"] - 60)
    models.values(m=32)
    models.button("Show me")
    models.values(task=TASKS["induction"].words, aid=AIDS["parts"], times=AIDED)
    models.button("Reset")
    models.values(encoding=WORDS["monotone_a"], task=TASKS["copy"].words, m=7, times=1)
    models.choose("Encoding", WORDS["rope_unmasked"])
    models.press("Task", TASKS["language"].words)
    expect(caption).to_contain_text("in plain sight")
    models.choose("Compare with", WORDS["learned"])
    expect(caption).to_contain_text(f"{WORDS['learned']} was not tried on this task.")
