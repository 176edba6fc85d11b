"""Promises that every page of the published book keeps. The tests of a page share one visit."""

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.tools.report import AXE, READ_TO_THE_END, TRANSFER_BUDGET, transfer, violations

from .conftest import WITH_WIDGETS, pages_with
from .figures import move, settle, state, unfold

each_page_with = partial(pytest.mark.parametrize, "page_name", scope="module")

# Put a button before a figure and note what the Tab key reaches from there.
TAB_FROM_HERE = """figure => {
    const before = document.createElement('button');
    figure.before(before);
    before.focus({ preventScroll: true });
    window.reached = new Map();
    figure.addEventListener('focusin', ({ target }) => {
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(target);
        const ring = outlineStyle !== 'none' && parseFloat(outlineWidth) > 0;
        window.reached.set(target, ring || boxShadow !== 'none');
    });
    window.reachable = [...figure.querySelectorAll(
        'button, select, input, textarea, summary, a[href], [contenteditable], [tabindex]',
    )].filter(e => e.tabIndex >= 0 && !e.disabled)
        .filter(e => e.type !== 'radio' || e === figure.querySelector(`[name="${e.name}"]`))
        .filter(e => e.checkVisibility({ visibilityProperty: true }));
    return window.reachable.length;
}"""
MISSED = """figure => {
    figure.previousElementSibling.remove();
    const name = e => e.getAttribute('aria-label') || e.innerText || e.outerHTML.slice(0, 80);
    return {
        unreached: window.reachable.filter(e => !window.reached.has(e)).map(name),
        unseen: window.reachable.filter(e => window.reached.get(e) === false).map(name),
        trapped: figure.contains(document.activeElement),
    };
}"""
NOTHING_MISSED = {"unreached": [], "unseen": [], "trapped": False}


@pytest.fixture(scope="module")
def opened(page_name, new_visit):
    """Return a page that was opened once, read to its end, and what went wrong on the way."""
    with new_visit() as seen:
        page = seen.open(page_name)
        page.evaluate(READ_TO_THE_END)
        page.wait_for_load_state("networkidle")
        page.evaluate(AXE)
        yield seen


def turn(page, theme):
    """Press the theme's button until the page wears the theme."""
    for _ in range(3):
        if page.evaluate("document.documentElement.dataset.theme") == theme:
            page.mouse.move(0, 0)  # off the button, whose tooltip goes
            page.locator(".tooltip").wait_for(state="detached")
            return
        page.locator(".theme-switch-button").first.click()
    raise AssertionError(f"the button does not lead to the {theme} theme")


def test_page_asks_nobody_else_and_breaks_nothing(opened):
    assert opened.foreign == []
    assert opened.problems == []


def test_page_read_to_its_end_is_at_most_a_megabyte(opened):
    assert transfer(opened.requests, opened.site) <= TRANSFER_BUDGET


def test_page_is_accessible(opened):
    assert violations(opened.page, "light") == []


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


@each_page_with(pages_with("cell_input"))
def test_the_copy_button_copies_a_cell_beside_figures(opened):
    page = opened.page
    page.locator("details.hide").evaluate_all("all => all.forEach(fold => { fold.open = true; })")
    cell = page.locator("div.cell_input:visible div.highlight").first
    cell.hover()
    button = cell.locator("button.copybtn")
    button.click()
    expect(button).to_have_class(re.compile(r"\bsuccess\b"))
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == cell.locator("pre").inner_text().strip()
    assert opened.problems == []


def figure_of(control):
    box = control.locator("xpath=ancestor::*[contains(@class,'rope-box')][1]")
    return box.locator(".rope-figure").first


WITH_CONTROLS = pages_with('"_controls":[{')


@each_page_with(WITH_CONTROLS)
def test_every_control_moved_by_keyboard_changes_its_figure(opened):
    unfold(opened.page)
    one_pressed = ".rope-choice:has([aria-pressed=true])"  # as many are left when another is
    unpressed = f".rope-track, {one_pressed} [aria-pressed=false], select, [type=checkbox]"
    controls = opened.page.locator(f".rope-controls :is({unpressed}):visible").all()
    assert controls
    for control in controls:
        kind = control.evaluate("e => e.type")
        name = control.evaluate("e => (e.labels?.[0] ?? e).textContent.trim()")
        assert name, "a control without a name"
        figure = figure_of(control)
        before = state(figure)
        if kind == "range":
            move(control)
        else:
            control.focus()
            last = control.evaluate("e => e.matches(':has(> option:last-child:checked)')")
            along = "ArrowUp" if last else "ArrowDown"
            control.press({"button": "Enter", "select-one": along, "checkbox": " "}[kind])
        assert state(figure) != before, name
    assert opened.problems == []
    assert opened.foreign == []


@each_page_with(WITH_WIDGETS)
def test_every_figure_can_be_walked_through_with_the_tab_key(opened):
    page = opened.page
    figures = page.locator(".rope-place:visible")
    assert figures.count() > 0
    for i in range(figures.count()):
        figure = figures.nth(i)
        for _ in range(figure.evaluate(TAB_FROM_HERE)):
            page.keyboard.press("Tab")
        for _ in range(40):  # boxes that scroll are stops, too
            if not figure.evaluate("figure => figure.contains(document.activeElement)"):
                break
            page.keyboard.press("Tab")
        assert figure.evaluate(MISSED) == NOTHING_MISSED


def test_page_is_accessible_in_the_dark(opened):
    turn(opened.page, "dark")
    assert violations(opened.page, "dark") == []
    turn(opened.page, "light")


def test_page_fits_a_phone(opened):
    page = opened.page
    page.set_viewport_size({"width": 360, "height": 740})
    settle(page)
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


# From here on time passes in the page when the test says so, however busy the machine is.
TAKE_TIME = """() => {
    let time = performance.now();
    const waiting = [];
    performance.now = () => time;
    window.requestAnimationFrame = act => waiting.push(act);
    window.pass = async ms => {
        for (const end = time + ms; time < end; time += 16) {
            for (const act of waiting.splice(0)) act(time);
            await new Promise(go => setTimeout(go));
        }
    };
}"""
DRAWN = """() => Object.fromEntries(
    [...document.querySelectorAll('.rope-figure[data-drawn]:has(.rope-show)')]
        .map(figure => [
            figure.dataset.figure +
                (figure.closest('.rope-box').querySelector('.rope-model') ? ', own model' : ''),
            Number(figure.dataset.draws),
        ])
)"""
PRESS = "name => document.querySelectorAll(`[data-drawn] ${name}`).forEach(node => node.click())"
STEPPING = {
    "atlas",
    "axioms",
    "cache-shelf",
    "precision-microscope",
    "real-head",
    "recent-methods",
    "rescaling-faders, own model",
    "train-it",
    "trained-models",
    "wrap-explorer",
}  # they go by steps


def pictures_of_show_me(page):
    """Press every "Show me"; return how many pictures each figure takes in 2 s."""
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")  # where none must come into sight
    before = page.evaluate(DRAWN)
    page.evaluate(PRESS, ".rope-show")
    page.evaluate("pass(2000)")
    after = page.evaluate(DRAWN)
    page.evaluate(PRESS, ".rope-reset")
    page.evaluate("pass(2000)")
    return {name: after[name] - before[name] for name in before}


@each_page_with(WITH_CONTROLS)
def test_figures_move_and_with_motion_reduced_they_jump(opened):
    """A jump takes a picture or two; motion takes one in every frame. The last test of a page."""
    page = opened.page
    page.evaluate(PRESS, ".rope-reset")  # the tests before left a figure where it may have no way
    settle(page)
    page.evaluate(TAKE_TIME)
    moved = pictures_of_show_me(page)
    page.emulate_media(reduced_motion="reduce")
    jumped = pictures_of_show_me(page)
    assert jumped
    assert max(jumped.values()) <= 4
    assert [name for name in moved.keys() - STEPPING if moved[name] < 8] == []
    assert opened.problems == []
