"""The real head on the published page: its data come when it comes near, and it is taken apart."""

import re

import pytest
from playwright.sync_api import expect

from experiments.real import heads
from experiments.real.model import Change, frequencies
from ropebook.figures.real_head import HEADS
from tests.tools.on_page import OnPage

PAGE = "notebooks/14-ask-a-real-model.html"


def shares(number: int, change: Change) -> list[float]:
    """What a head gives to its kind of key, as released and changed."""
    kept = heads.load()
    q, k = heads.unpacked(kept["heads"][number])
    released, now = heads.attention(q, k)[0], heads.attention(q, k, change)[0]
    keys = heads.mask(kept["heads"][number]["share"], kept["tokens"], released)
    return [float(heads.share_of(w, keys)) for w in (released, now)]


def test_its_data_are_loaded_when_a_reader_comes_near(visit):
    seen = visit(width=390, height=844)
    seen.page.goto(seen.site + PAGE)
    seen.page.wait_for_load_state("networkidle")
    data = lambda: [url for url in seen.requests if "real-head-" in url]  # noqa: E731
    assert data() == []
    assert seen.page.locator("[data-figure='real-head']").count() == 0
    seen.page.goto(f"{seen.site}{PAGE}#eight-heads-at-work")
    seen.page.locator("[data-figure='real-head'][data-drawn]").wait_for()
    assert len(data()) == 1
    assert seen.problems == []


def test_a_head_is_taken_apart_by_finger_and_keyboard_on_a_phone(visit):
    seen = visit(width=390, height=900, theme="dark", reduced_motion="reduce")
    head = OnPage(seen.open(PAGE), "real-head")
    canvas = head.figure.locator("canvas")
    says = head.values()
    assert says["shares"] == pytest.approx(shares(0, Change(left_out=(24, 25, 26, 27))), abs=1e-4)
    canvas.press("ArrowLeft")
    expect(head.figure).to_have_attribute("data-values", re.compile('"at":59,"word":"same"'))
    for _ in range(24):
        canvas.press("ArrowUp")
    expect(head.figure.locator(".rope-answer")).to_contain_text("It needs some of pairs 0 to 3: 0%")

    canvas.scroll_into_view_if_needed()
    frame = canvas.bounding_box()
    bars = canvas.evaluate("e => e.parentElement.clientWidth")
    left, wide = 26, (bars - 4 - 26) / 32
    low = next(y for y in range(140, 340, 4) if drags(head, frame, left + 29.5 * wide, y))
    page = seen.page
    page.mouse.move(frame["x"] + left + 29.5 * wide, frame["y"] + low)
    page.mouse.down()
    page.mouse.move(frame["x"] + left + 31.5 * wide, frame["y"] + low, steps=4)
    page.mouse.up()
    expect(head.figure.locator(".rope-answer")).to_contain_text("pairs 29 to 31")
    page.mouse.move(frame["x"] + left + 30.5 * wide, frame["y"] + low)
    page.mouse.down()
    page.mouse.move(frame["x"] + left + 10.5 * wide, frame["y"] + low, steps=4)
    expect(head.figure.locator(".rope-answer")).to_contain_text("pairs 9 to 11")  # a window moves
    page.mouse.move(frame["x"] + left + 30.5 * wide, frame["y"] + low, steps=4)
    page.mouse.up()
    head.choose("A head that reads", HEADS[1])
    expect(head.figure.locator(".rope-answer")).to_contain_text("some of pairs 29 to 31: 1%")
    says = head.values()
    assert says["shares"] == pytest.approx(shares(1, Change(left_out=(29, 30, 31))), abs=1e-4)

    head.button("Reset")
    head.box.locator(".rope-unfold").click()
    head.write("Positions divided by (PI)", 2)
    head.write("Pairs left out", 0)
    expect(head.figure.locator(".rope-answer")).to_contain_text("With positions divided by 2.0: 9%")
    halved = Change(frequencies=frequencies() / 2)
    assert head.values()["shares"] == pytest.approx(shares(0, halved), abs=1e-4)
    head.press("Channels paired", "the other layout")
    head.press("Rounded to bfloat16", "angles")
    expect(head.figure.locator(".rope-answer")).to_contain_text("With 3 changes")
    head.button("Reset")
    expect(head.figure.locator(".rope-answer")).to_contain_text(
        "It does without pairs 24 to 27: 89%"
    )
    assert seen.problems == []


def drags(head, frame, x, y):
    """Whether a press at a place leaves out one pair."""
    head.page.mouse.click(frame["x"] + x, frame["y"] + y)
    head.page.wait_for_timeout(60)
    return head.values()["settings"]["out"] == 1
