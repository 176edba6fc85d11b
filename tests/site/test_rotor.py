"""The rotor on the published page: its handles by mouse, finger and key, and what plays alone."""

import pytest
from playwright.sync_api import expect

from tests.tools.browser import wait_for

from .figures import settle

pytestmark = pytest.mark.drawn(3)

HOME = "book/intro.html"
CALM = {"reduced_motion": "reduce"}  # nothing plays, and the picture jumps


class Words:
    """The rotor of a page."""

    def __init__(self, page):
        self.page = page
        self.figure = page.locator("[data-figure='rotor'][data-drawn]").first
        self.answer = self.figure.locator(".rope-answer")

    def handle(self, name):
        return self.figure.get_by_role("slider", name=name, exact=True)

    @property
    def at(self):
        """The positions of query and key."""
        settle(self.page)
        return tuple(
            int(self.handle(name).get_attribute("aria-valuenow")) for name in ("Query", "Key")
        )

    def reach(self, node, words):
        """Return where a node is taken, and where some words further that is."""
        box = self.figure.locator(node).bounding_box()
        step = self.figure.locator(".rope-line").bounding_box()["width"] / 12
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        return (x, y), (x + words * step, y)

    def drag(self, node, words):
        start, end = self.reach(node, words)
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move(*end, steps=5)
        self.page.mouse.up()


@pytest.fixture
def words(visit):
    seen = visit(**CALM)
    yield Words(seen.open(HOME))
    assert seen.problems == []


def test_the_bar_moves_both_words_and_leaves_the_answer_alone(words):
    assert words.at == (5, 1)
    said = words.answer.inner_text()
    assert "4 words make 60° and a score of 0.50" in said
    words.drag(".rope-both-label", 3)
    assert words.at == (8, 4)
    assert words.answer.inner_text() == said
    words.drag(".rope-both-label", 9)  # no further than the last word
    assert words.at == (11, 7)
    assert words.answer.inner_text() == said


def test_one_word_alone_changes_the_answer(words):
    words.drag(".rope-q", -2)
    assert words.at == (3, 1)
    expect(words.answer).to_contain_text("2 words make 30° and a score of 0.87")
    words.drag(".rope-k", 2)
    assert words.at == (3, 3)
    expect(words.answer).to_contain_text("one and the same word")


def test_every_handle_is_moved_by_keys(words):
    words.handle("Query").press("ArrowRight")
    assert words.at == (6, 1)
    words.handle("Key").press("Home")
    assert words.at == (6, 0)
    words.handle("Both words").press("End")
    assert words.at == (11, 5)
    words.handle("Both words").press("ArrowLeft")
    assert words.at == (10, 4)
    said = "query at word 10, no; key at word 4, bed; 6 words apart"
    assert words.handle("Both words").get_attribute("aria-valuetext") == said


def test_both_words_rest_where_they_have_no_place_to_go(words):
    button = words.figure.get_by_role("button", name="Move both")
    expect(button).to_be_enabled()
    words.handle("Query").press("End")
    words.handle("Key").press("Home")
    assert words.at == (11, 0)
    expect(button).to_be_disabled()
    words.handle("Key").press("ArrowRight")
    expect(button).to_be_enabled()


def test_a_finger_on_a_handle_moves_it_and_not_the_page(visit):
    words = Words(visit(width=390, height=700, has_touch=True, **CALM).open(HOME))
    words.figure.scroll_into_view_if_needed()
    words.figure.evaluate("e => scrollBy(0, e.getBoundingClientRect().top - 100)")
    before = words.page.evaluate("scrollY")
    finger = words.page.context.new_cdp_session(words.page)

    def swipe(start, end):
        for part in range(11):
            x, y = (a + (b - a) * part / 10 for a, b in zip(start, end, strict=True))
            kind = "touchMove" if part else "touchStart"
            finger.send(
                "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]}
            )
        finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    start, end = words.reach(".rope-q", 3)
    swipe(start, (end[0], end[1] - 90))
    assert words.at == (8, 1)
    assert words.page.evaluate("scrollY") == before
    (x, y), _ = words.reach(".rope-line", 0)
    swipe((x, y - 40), (x, y - 190))  # the same on the words above scrolls
    wait_for(words.page, "before => scrollY > before + 100", arg=before)
    assert words.at == (8, 1)


PLAYS = """window.plays = 0;
new MutationObserver((seen) => seen.forEach(({ target, oldValue }) => {
  if (target.dataset.figure === "rotor" && target.dataset.playing && !oldValue) window.plays += 1;
})).observe(document, { subtree: true, attributes: true, attributeOldValue: true,
                        attributeFilter: ["data-playing"] });"""


def test_it_plays_once_on_the_first_page_and_ends_where_it_began(visit):
    seen = visit()
    seen.page.add_init_script(PLAYS)
    words = Words(seen.open(HOME))
    wait_for(words.page, "() => window.plays")
    wait_for(words.page, "e => !e.dataset.playing", arg=words.figure.element_handle())
    assert words.at == (5, 1)
    words.page.wait_for_timeout(1500)
    assert words.figure.get_attribute("data-playing") is None
    assert words.page.evaluate("window.plays") == 1


def test_it_does_not_play_where_motion_is_not_wanted(words):
    words.page.wait_for_timeout(1500)
    assert words.figure.get_attribute("data-playing") is None
