"""Every figure in the hand of a reader with a phone: 390 x 700 pixels, and a thumb."""

import pytest

from tests.tools.browser import wait_for

from .conftest import WITH_WIDGETS

# of the figures of a page: what is said, and where picture and controls lie in their box
BOXES = """() => [...document.querySelectorAll('.rope-box:has(.rope-canvas)')].map(box => {
    const span = node => {
        const { top, bottom } = node.getBoundingClientRect();
        return [top, bottom];
    };
    const inSight = [...box.querySelectorAll('.rope-controls:not([hidden]) > *')];
    return {
        name: box.querySelector('.rope-figure').dataset.figure,
        answer: box.querySelector('.rope-answer').textContent,
        picture: span(box.querySelector('.rope-canvas')),
        controls: inSight.map(span),
    };
})"""


@pytest.fixture(scope="module", params=WITH_WIDGETS)
def phone(request, new_visit):
    with new_visit(width=390, height=700, has_touch=True) as seen:
        seen.open(request.param)
        yield seen
        assert seen.problems == []


def test_the_answer_stands_first_and_is_a_sentence_or_two(phone):
    for box in phone.page.evaluate(BOXES):
        assert box["answer"].rstrip().endswith((".", "!")), box
        assert len(box["answer"]) < 220, box


def test_at_most_three_controls_are_in_sight_and_share_a_screen_with_the_picture(phone):
    for box in phone.page.evaluate(BOXES):
        assert len(box["controls"]) <= 3, box
        top, _ = box["picture"]
        for _, bottom in box["controls"]:
            assert bottom - top <= 700, box


def test_a_thumb_that_passes_over_a_picture_scrolls_the_page_and_changes_nothing(phone):
    page = phone.page
    hand = page.context.new_cdp_session(page)
    figures = page.locator(".rope-box .rope-figure:has(.rope-canvas)")
    for number in range(figures.count()):
        figure = figures.nth(number)
        name = figure.get_attribute("data-figure")
        canvas = figure.locator(".rope-canvas").first
        canvas.evaluate("e => window.scrollTo(0, scrollY + e.getBoundingClientRect().top - 300)")
        box, before = canvas.bounding_box(), page.evaluate("scrollY")
        values = figure.get_attribute("data-values")
        # near an edge, where no figure has a handle
        x, y = box["x"] + 0.04 * box["width"], box["y"] + min(box["height"] - 10, 250)
        for type_, up in [("touchStart", 0), *(("touchMove", 12 * n) for n in range(1, 16))]:
            points = [{"x": x, "y": y - up}]
            hand.send("Input.dispatchTouchEvent", {"type": type_, "touchPoints": points})
        hand.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        wait_for(page, "before => scrollY > before + 100", arg=before, timeout=5000)
        assert figure.get_attribute("data-values") == values, name
