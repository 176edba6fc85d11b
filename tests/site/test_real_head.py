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


def test_four_heads_of_a_page_share_their_data(visit):
    seen = visit(width=390, height=844)
    page = seen.open(PAGE)
    assert page.locator("[data-figure='real-head'][data-drawn]").count() == 4
    assert len({url for url in seen.requests if "real-head-" in url}) == 1
    assert seen.problems == []


def test_a_head_is_taken_apart_by_finger_and_keyboard_on_a_phone(visit):
    seen = visit(width=390, height=900, theme="dark", reduced_motion="reduce")
    head = OnPage(seen.open(PAGE), "real-head")
    canvas = head.figure.locator("canvas")
    answer = head.figure.locator(".rope-answer")
    says = head.values()
    assert says["shares"] == pytest.approx(shares(0, Change(left_out=(25,))), abs=1e-4)
    canvas.press("ArrowUp")
    expect(head.figure).to_have_attribute("data-values", re.compile('"at":59,"word":"same"'))
    for _ in range(25):
        canvas.press("ArrowLeft")
    expect(answer).to_contain_text("It needs pair 0: 2%")

    canvas.scroll_into_view_if_needed()
    frame = canvas.bounding_box()
    wide = canvas.evaluate("e => e.parentElement.clientWidth")
    middle = lambda pair: frame["x"] + 36 + (pair + 0.5) * (wide - 42) / 32  # noqa: E731
    low = frame["y"] + next(y for y in range(440, 200, -6) if taken(head, middle, frame["y"] + y))
    page = seen.page
    page.mouse.move(middle(0), low)
    page.mouse.down()
    page.mouse.move(middle(10), low, steps=4)
    expect(answer).to_contain_text("pair 10:")
    page.mouse.move(middle(31), low, steps=4)
    page.mouse.up()
    expect(answer).to_contain_text("pair 31:")
    page.mouse.click(middle(14), low - 40)  # a press elsewhere
    expect(answer).to_contain_text("pair 14:")
    head.choose("A head that reads", HEADS[1])
    expect(answer).to_contain_text("It does without pair 14: 99.9%")

    head.button("Reset")
    expect(answer).to_contain_text("It does without pair 25, the loudest: 89%")
    head.box.locator(".rope-unfold").click()
    head.write("Pairs left out", 3)
    head.write("First pair left out", 29)
    head.choose("A head that reads", HEADS[1])
    expect(answer).to_contain_text("some of pairs 29 to 31: 1%")
    says = head.values()
    assert says["shares"] == pytest.approx(shares(1, Change(left_out=(29, 30, 31))), abs=1e-4)

    head.button("Reset")
    head.write("Positions divided by (PI)", 2)
    head.write("Pairs left out", 0)
    expect(answer).to_contain_text("With positions divided by 2.0: 9%")
    halved = Change(frequencies=frequencies() / 2)
    assert head.values()["shares"] == pytest.approx(shares(0, halved), abs=1e-4)
    head.press("Channels paired", "the other layout")
    head.press("Rounded to bfloat16", "angles")
    expect(answer).to_contain_text("With 3 changes")
    head.button("Reset")
    expect(answer).to_contain_text("It does without pair 25, the loudest: 89%")
    assert seen.problems == []


def taken(head, middle, y):
    """Whether the mark of pair 0 can be taken at a height, and moved to pair 1 and back."""
    mouse = head.page.mouse
    mouse.move(middle(0), y)
    mouse.down()
    mouse.move(middle(1), y, steps=2)
    head.page.wait_for_timeout(60)
    moved = head.values()["settings"]["first"] == 1
    mouse.move(middle(0), y, steps=2)
    mouse.up()
    head.page.wait_for_timeout(60)
    return moved
