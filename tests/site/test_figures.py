"""The moving figures move, on the static page, with no kernel."""

import hashlib

import pytest

from .conftest import PAGES, SITE

WITH_WIDGETS = [n for n in PAGES if "widget-view+json" in (SITE / n).read_text("utf8")]

# pixels of every canvas and the words of a figure: what a control claims to drive
STATE = """figure => JSON.stringify([
    figure.innerText,
    [...figure.querySelectorAll('svg')].map(s => s.outerHTML),
    [...figure.querySelectorAll('canvas')].map(c => c.toDataURL()),
])"""


def state(figure):
    figure.page.wait_for_timeout(120)
    return hashlib.sha256(figure.evaluate(STATE).encode()).hexdigest()


def test_there_are_pages_with_moving_figures():
    assert "notebooks/04-many-planes.html" in WITH_WIDGETS


def move(handle):
    """Move a slider by keyboard, away from the end it may stand at."""
    handle.focus()
    before = handle.get_attribute("aria-valuetext")
    for key in ("ArrowRight", "ArrowLeft"):
        for _ in range(3):
            handle.press(key)
        if handle.get_attribute("aria-valuetext") != before:
            return
    raise AssertionError("the slider does not move by keyboard")


@pytest.mark.parametrize("name", WITH_WIDGETS)
def test_every_slider_moved_by_keyboard_changes_its_figure(visit, name):
    seen = visit()
    page = seen.open(name)
    handles = page.locator(".rope-box .noUi-handle:visible")
    for i in range(handles.count()):
        handle = handles.nth(i)
        assert handle.get_attribute("aria-label"), "a slider without a name"
        figure = handle.locator("xpath=ancestor::*[contains(@class,'rope-box')][1]").locator(
            ".rope-figure"
        )
        before = state(figure.first)
        move(handle)
        assert state(figure.first) != before, handle.get_attribute("aria-label")
    assert seen.problems == []
    assert seen.foreign == []


@pytest.mark.parametrize("name", WITH_WIDGETS)
def test_every_choice_and_button_changes_its_figure(visit, name):
    seen = visit()
    page = seen.open(name)
    buttons = page.locator(".rope-box .widget-toggle-buttons button")
    for i in range(buttons.count()):
        button = buttons.nth(i)
        if "mod-active" in button.get_attribute("class"):
            continue
        figure = button.locator("xpath=ancestor::*[contains(@class,'rope-box')][1]").locator(
            ".rope-figure"
        )
        before = state(figure.first)
        button.focus()
        button.press("Enter")
        assert state(figure.first) != before, button.inner_text()
    assert seen.problems == []


def test_the_heatmap_works_from_a_file(browser):
    page = browser.new_page()
    page.goto((SITE / "notebooks" / "04-many-planes.html").as_uri())
    figure = page.locator("[data-figure='angle-heatmap'][data-drawn]").first
    figure.wait_for()
    before = state(figure)
    move(page.locator(".rope-box:has([data-figure='angle-heatmap']) .noUi-handle").first)
    assert state(figure) != before
    page.close()
