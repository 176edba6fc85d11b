"""The threads between the layouts on the published page: no kernel, keyboard, phone."""

import re

import pytest

from tests.tools.browser import wait_for

from .figures import settle

pytestmark = pytest.mark.drawn(3)

PAGE = "notebooks/05-layouts.html"
LOOM = ".rope-figure[data-figure='layout-threads']"


@pytest.fixture
def loom(visit, opened_once):
    def open_at(**options):
        seen = visit(**options) if options else opened_once(PAGE)
        if options:
            seen.open(PAGE)
        figure = seen.page.locator(LOOM).first
        figure.scroll_into_view_if_needed()
        box = seen.page.locator(f".rope-box:has({LOOM})").first
        return seen, figure, box

    return open_at


def wait_until(figure, name, wanted):
    wait_for(
        figure.page,
        "([f, name, wanted]) => f.dataset[name] === wanted",
        arg=[figure.element_handle(), name, wanted],
        timeout=10_000,
    )


def error(figure):
    return float(figure.get_attribute("data-error"))


def test_arrow_keys_walk_and_jump_to_the_partner(loom):
    _, figure, _ = loom()
    canvas = figure.locator("canvas")
    canvas.focus()
    assert figure.get_attribute("data-channel") == "2"
    canvas.press("ArrowRight")
    wait_until(figure, "channel", "3")
    canvas.press("ArrowDown")
    wait_until(figure, "channel", "4")
    canvas.press("Home")
    wait_until(figure, "channel", "0")


def test_a_touch_selects_a_thread_on_a_phone_in_the_dark(loom):
    _, figure, _ = loom(width=360, theme="dark", has_touch=True)
    canvas = figure.locator("canvas")
    frame = canvas.bounding_box()
    assert frame["width"] <= 360
    canvas.tap(position={"x": 60, "y": 42 + 200 * (9.5 / 16)})
    wait_until(figure, "channel", "9")
    assert figure.get_attribute("data-partner") == "8"
    figure.get_by_text("The permutation as Python").click()
    assert figure.locator("pre").evaluate("code => code.scrollWidth <= code.clientWidth")
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert figure.page.evaluate(overflow) <= 0


def test_show_me_ends_with_equal_scores_and_reset_goes_back(loom):
    _, figure, _ = loom()
    figure.page.emulate_media(reduced_motion="reduce")
    figure.get_by_role("button", name="Show me").click()
    wait_until(figure, "error", "0")
    figure.get_by_role("button", name="Reset").click()
    settle(figure.page)
    assert error(figure) > 0.5
    assert figure.get_attribute("data-channel") == "2"
    figure.page.emulate_media(reduced_motion="no-preference")


def test_the_permutation_can_be_copied(loom):
    _, figure, _ = loom()
    figure.get_by_role("button", name="Copy the permutation").click()
    figure.get_by_role("button", name="Copied").wait_for()
    copied = figure.page.evaluate("navigator.clipboard.readText()")
    assert re.search(r"^order = torch\.arange", copied, re.MULTILINE)
    assert copied == figure.locator("pre").text_content()
