"""A figure in a file of its own, opened from the disk: `save` of what `ropebook.figures` makes.

Nothing of the site is here but its browser.
"""

import itertools
import re

import pytest
from playwright.sync_api import expect

from ropebook import figures
from tests.tools.browser import wait_for
from tests.tools.report import AXE, violations

from .figures import move, settle, state, unfold

PROVED = [
    {"axioms": axioms, "kind": "rope", "certificate": "not asked"}
    for axioms in itertools.product([True, False], repeat=4)
]
MADE = {
    "angle-heatmap": figures.angle_heatmap,
    "clock": figures.clock,
    "axioms": lambda: figures.axioms(PROVED),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    for name, make in MADE.items():
        make().save(folder / f"{name}.html")
    figures.choice("Which?", ["this", "that"], "that", "Because.").save(folder / "choice.html")
    return folder


@pytest.fixture
def opened(browser, files):
    """Return a function that opens a file offline; nothing may go wrong, and nobody is asked."""
    context = browser.new_context(viewport={"width": 1000, "height": 900}, offline=True)
    problems, said, asked = [], [], []

    def open_(name, query="", **media):
        page = context.new_page()
        page.on(
            "console", lambda message: message.type == "error" and problems.append(message.text)
        )
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.emulate_media(**media)
        page.goto((files / f"{name}.html").as_uri() + query)
        page.locator(".rope-figure[data-drawn], .rope-ask").first.wait_for()
        return page

    open_.problems, open_.said = problems, said
    yield open_
    assert [url for url in asked if not url.startswith(files.as_uri())] == []
    context.close()


def axis(page):
    """The value that a slider of the clock speaks."""
    return page.locator(".rope-track").get_attribute("aria-valuetext")


@pytest.mark.parametrize("name", MADE)
def test_a_figure_alone_moves_by_its_slider_and_breaks_nothing(opened, name):
    page = opened(name)
    figure = page.locator(f"[data-figure='{name}'][data-drawn]")
    unfold(page.locator(".rope-box"))
    before = state(figure)
    move(page.locator(".rope-track:visible").first)
    assert state(figure) != before
    page.evaluate("document.querySelectorAll('.rope-reset').forEach(e => e.click())")
    settle(page)
    assert state(figure) == before
    assert opened.problems == []


@pytest.mark.parametrize("name", MADE)
def test_a_figure_alone_is_accessible_and_fits_a_phone(opened, name):
    page = opened(name)
    unfold(page.locator(".rope-box"))
    page.evaluate(AXE)
    assert violations(page, "light") == []
    assert violations(page, "dark") == []
    page.set_viewport_size({"width": 390, "height": 700})
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.title() == page.locator(".rope-question").inner_text().replace("\n", " ")


def test_a_figure_alone_wears_the_readers_theme_or_that_of_its_address(opened):
    worn = "document.querySelector('.rope-box').dataset.ropeTheme"
    page = opened("clock", color_scheme="dark")
    assert page.evaluate(worn) == "dark"
    page.emulate_media(color_scheme="light")
    wait_for(page, f"() => {worn} === 'light'")
    page = opened("clock", "?theme=light", color_scheme="dark")
    assert page.evaluate(worn) == "light"


def test_a_figure_alone_starts_where_its_address_says_and_tells_it_again(opened):
    page = opened("clock", "?m=7&pairs=8")
    assert axis(page) == "8"
    assert "7" in re.findall(r"\d+", page.locator(".rope-figure").text_content())
    address = "window.ropeHost.shown.address()"
    assert page.evaluate(address) == "m=7&pairs=8"
    page.locator(".rope-track").press("ArrowRight")
    assert page.evaluate(address) == "m=7&pairs=9"
    page.locator(".rope-reset").click()
    assert page.evaluate(address) == "m=7&pairs=8"
    assert opened.problems == []
    page = opened("clock", "?m=many&hands=3")
    said = [text for text in opened.said if "the address was not followed" in text]
    assert len(said) == 2
    assert page.evaluate(address) == ""


def test_the_formulas_of_a_figure_alone_are_typeset(opened):
    page = opened("axioms")
    expect(page.locator(".rope-statement math")).to_have_text("Ms=Rsθ")


def test_a_question_alone_is_answered(opened):
    page = opened("choice")
    page.get_by_label("that").check()
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".rope-verdict")).to_have_text("Yes. Because.")
    assert opened.problems == []
