"""Promises that every page of the published book keeps. The tests of a page share one visit."""

import pytest

from .conftest import ROOT
from .figures import move, state

AXE = (ROOT / "node_modules" / "axe-core" / "axe.min.js").read_text("utf8")


@pytest.fixture(scope="module")
def opened(page_name, new_visit):
    """Return a page that was opened once, read to its end, and what went wrong on the way."""
    with new_visit(permissions=["clipboard-read", "clipboard-write"]) as seen:
        page = seen.open(page_name)
        page.evaluate(
            """async () => {
                for (let y = 0; y < document.body.scrollHeight; y += 600) {
                    window.scrollTo(0, y);
                    await new Promise(requestAnimationFrame);
                }
            }"""
        )
        page.wait_for_load_state("networkidle")
        page.evaluate(AXE)
        yield seen


def serious_violations(page, options):
    # typeset formulas are hidden from assistive technology, which gets MathML beside them
    where = {"exclude": [["mjx-math"]]}
    found = page.evaluate("([where, options]) => axe.run(where, options)", [where, options])
    return [
        f"{v['impact']} {v['id']}: {v['help']} at {[n['target'] for n in v['nodes'][:5]]}"
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]


def turn(page, theme):
    """Press the theme's button until the page wears the theme."""
    for _ in range(3):
        if page.evaluate("document.documentElement.dataset.theme") == theme:
            return
        page.locator(".theme-switch-button").first.click()
    raise AssertionError(f"the button does not lead to the {theme} theme")


def test_page_asks_nobody_else_and_breaks_nothing(opened):
    assert opened.foreign == []
    assert opened.problems == []


def test_page_is_accessible(opened):
    assert serious_violations(opened.page, {"resultTypes": ["violations"]}) == []


def test_every_image_says_what_it_shows(opened):
    silent = opened.page.evaluate(
        """() => {
            const named = e => (e.getAttribute('alt') || e.getAttribute('aria-label') || '').trim();
            return [...document.querySelectorAll('article :is(img, canvas, svg[role=img])')]
                .filter(e => !e.closest('[aria-hidden=true]'))
                .filter(e => named(e).length < 12 && !e.getAttribute('aria-labelledby'))
                .map(e => e.outerHTML.slice(0, 120));
        }"""
    )
    assert silent == []


def test_the_copy_button_copies_a_cell_beside_figures(opened):
    page = opened.page
    cell = page.locator("div.cell_input:visible div.highlight").first
    if not cell.count():
        return  # a page without code has nothing to copy
    cell.hover()
    cell.locator("button.copybtn").click()
    page.wait_for_timeout(150)
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == cell.locator("pre").inner_text().strip()
    assert opened.problems == []


def figure_of(control):
    box = control.locator("xpath=ancestor::*[contains(@class,'rope-box')][1]")
    return box.locator(".rope-figure").first


def test_every_slider_moved_by_keyboard_changes_its_figure(opened):
    handles = opened.page.locator(".rope-box .noUi-handle:visible")
    for i in range(handles.count()):
        handle = handles.nth(i)
        assert handle.get_attribute("aria-label"), "a slider without a name"
        figure = figure_of(handle)
        before = state(figure)
        move(handle)
        assert state(figure) != before, handle.get_attribute("aria-label")
    assert opened.problems == []
    assert opened.foreign == []


def test_every_choice_changes_its_figure(opened):
    buttons = opened.page.locator(".rope-box .widget-toggle-buttons button")
    for i in range(buttons.count()):
        button = buttons.nth(i)
        if "mod-active" in button.get_attribute("class"):
            continue
        figure = figure_of(button)
        before = state(figure)
        button.focus()
        button.press("Enter")
        assert state(figure) != before, button.inner_text()
    assert opened.problems == []


def test_page_has_contrast_in_the_dark(opened):
    turn(opened.page, "dark")
    opened.page.wait_for_timeout(150)
    only = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}
    assert serious_violations(opened.page, only) == []
    turn(opened.page, "light")


def test_page_fits_a_phone(opened):
    page = opened.page
    page.set_viewport_size({"width": 360, "height": 740})
    page.wait_for_timeout(150)
    too_wide = page.evaluate(
        """() => {
            const box = document.documentElement;
            if (box.scrollWidth <= window.innerWidth) return [];
            return [...document.querySelectorAll('body *')]
                .filter(e => e.getBoundingClientRect().right > window.innerWidth + 1)
                .slice(0, 5).map(e => e.tagName + '.' + e.className);
        }"""
    )
    page.set_viewport_size({"width": 1280, "height": 900})
    assert too_wide == []
    assert opened.foreign == []
    assert opened.problems == []
