"""Derivations on the page: step through them, hold a mirror to them, choose their axioms."""

import itertools
import random
import re

import pytest

from .conftest import PAGES, SITE

HTML = {name: (SITE / name).read_text("utf8") for name in PAGES}
WITH_STEPS = [name for name, text in HTML.items() if 'class="derivation ' in text]
CHAPTERS = ["notebooks/02-complex-numbers.html", "notebooks/03-linear-algebra.html"]
MIRROR = ".rope-figure[data-figure='mirror']"
AXIOMS = ".rope-figure[data-figure='axioms']"


def test_the_derivation_chapters_are_there():
    assert set(CHAPTERS) <= set(WITH_STEPS)


def derivations(page):
    """Every derivation of the page: its id and the names of its steps."""
    page.wait_for_selector(".derivation.stepper")
    return page.eval_on_selector_all(
        ".derivation",
        "all => all.map(d => [d.id, [...d.querySelectorAll('.derivation-step')]"
        ".map(s => s.dataset.step)])",
    )


def shown(page, name):
    return page.eval_on_selector_all(
        f"#{name} .derivation-step",
        "cards => cards.filter(c => c.offsetParent !== null).map(c => c.dataset.step)",
    )


def mirrored(page):
    """The step that each mirror shows, by the name of its derivation, and the steps it can show."""
    return page.evaluate(
        f"""() => Object.fromEntries([...document.querySelectorAll("{MIRROR}")].map(f => {{
            const options = [...f.closest('.rope-box').querySelectorAll(
              '.rope-controls select option, .rope-controls .widget-toggle-button')];
            return [f.dataset.derivation, [f.dataset.step, options.map(o => o.textContent)]];
        }}))"""
    )


def plain(label):
    """``9. one place`` -> ``one-place``."""
    return re.sub(r"^\d+\. ", "", label).replace(" ", "-")


@pytest.mark.parametrize("name", WITH_STEPS)
def test_every_card_is_reached_by_keyboard_and_by_button_and_the_mirror_follows(visit, name):
    seen = visit()
    page = seen.open(name)
    for title, steps in derivations(page):
        bar = page.locator(f"#{title} .stepper-bar")
        where = bar.locator(".stepper-where")
        assert where.get_attribute("aria-live") == "polite"
        following, last = mirrored(page).get(title), None
        assert shown(page, title) == steps[:1]
        bar.locator(".stepper-next").focus()
        for number, step in enumerate(steps, start=1):
            assert shown(page, title) == [step]
            assert f"Step {number} of {len(steps)}: {step.replace('-', ' ')}" in where.inner_text()
            if following and number > 1 and step in map(plain, following[1]):
                last = step
                page.wait_for_function(
                    "([d, s]) => document.querySelector("
                    f'"{MIRROR}[data-derivation=\'" + d + "\']").dataset.step === s',
                    arg=[title, step],
                )
            if number < len(steps):
                page.keyboard.press("ArrowRight")
        if following:
            assert last, f"the mirror of {title} followed nowhere"
        for step in reversed(steps[:-1]):
            bar.locator(".stepper-previous, .stepper-button").first.click()
            assert shown(page, title) == [step]
        focused = page.evaluate("() => document.activeElement.className")
        assert "stepper-button" in focused, "the focus is lost at the first card"
        page.keyboard.press("End")
        assert shown(page, title) == steps[-1:]
        bar.locator(".stepper-all").click()
        assert shown(page, title) == steps
        bar.locator(".stepper-all").click()
        assert shown(page, title) == steps[-1:]
    assert seen.problems == []
    assert seen.foreign == []


def test_a_link_to_a_card_opens_it_and_so_do_the_links_between_cards(visit):
    seen = visit()
    page = seen.open(f"{CHAPTERS[0]}#all-solutions-length")
    page.wait_for_function(
        "() => document.querySelector('#all-solutions')?.dataset.at === 'length'"
    )
    assert shown(page, "all-solutions") == ["length"]
    assert page.locator("#all-solutions-length").bounding_box()["y"] < 900
    # back to the same card by the same link, after moving on
    premise = page.locator("#all-solutions .stepper-premise").first
    target = premise.get_attribute("href")
    premise.click()
    assert shown(page, "all-solutions") == [target.removeprefix("#all-solutions-")]
    assert page.evaluate("() => location.hash") == target
    focused = page.evaluate("() => document.activeElement.id")
    assert focused == target.removeprefix("#"), "the focus follows the link"
    page.go_back()
    page.wait_for_function("() => document.querySelector('#all-solutions').dataset.at === 'length'")
    assert seen.problems == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_without_javascript_every_card_is_on_the_page(browser, site, name):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site + name)
    cards = page.locator(".derivation-step")
    assert cards.count() > 20
    assert all(card.is_visible() for card in cards.all())
    context.close()


def choose(box, label):
    """Choose a step of a mirror in its list or among its buttons."""
    menu = box.locator(".rope-controls select")
    if menu.count():
        menu.select_option(label=label)
    else:
        box.locator(".rope-controls .widget-toggle-button", has_text=label).click()
    box.page.wait_for_function(
        "([f, s]) => f.dataset.step === s",
        arg=[box.locator(".rope-figure").element_handle(), plain(label)],
    )


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_two_sides_agree_on_every_step_at_random_settings(visit, name):
    seen = visit()
    page = seen.open(name)
    rng = random.Random(name)
    boxes = page.locator(f".rope-box:has({MIRROR})")
    assert boxes.count() >= 3
    for b in range(boxes.count()):
        box = boxes.nth(b)
        figure = box.locator(".rope-figure")
        title = figure.get_attribute("data-derivation")
        for label in mirrored(page)[title][1]:
            choose(box, label)
            handles = box.locator(".noUi-handle:visible")
            if handles.count():  # one slider a step: the settings stay from step to step
                handle = handles.nth(rng.randrange(handles.count()))
                for key in rng.sample(["Home", "End", "PageUp", "PageDown", "ArrowRight"], 2):
                    handle.press(key)
            page.evaluate("() => new Promise(go => requestAnimationFrame(() => setTimeout(go)))")
            state = figure.evaluate("f => [f.dataset.holds, Number(f.dataset.difference)]")
            assert state[0] == "true", (title, label)
            if "≤" not in figure.locator(".rope-relation").inner_text():
                assert state[1] <= 1e-9, (title, label)
    assert seen.problems == []
    assert seen.foreign == []


def test_a_slip_and_a_rival_come_apart_and_the_cards_follow_the_mirror(visit):
    seen = visit()
    page = seen.open(CHAPTERS[0])
    box = page.locator(f".rope-box:has({MIRROR}[data-derivation='all-solutions'])")
    figure = box.locator(".rope-figure")
    for label, chip in [("kept", "m and n swapped"), ("same length", "xPos")]:
        options = mirrored(page)["all-solutions"][1]
        choose(box, next(o for o in options if o.endswith(f". {label}")))
        assert shown(page, "all-solutions") == [label.replace(" ", "-")]
        button = figure.locator(".rope-chip", has_text=chip)
        button.press("Enter")
        figure.locator(".rope-relation.rope-off").wait_for()
        assert button.get_attribute("aria-pressed") == "true"
        assert "They differ" in figure.locator(".rope-caption").inner_text()
        assert float(figure.get_attribute("data-difference")) > 0.01
    box.locator(".rope-reset").click()
    figure.locator(".rope-relation.rope-fits").wait_for()
    assert seen.problems == []


EXACTLY = {
    (True, True, True, True): "RoPE",
    (True, True, False, True): "Parity reflection",
    (False, False, True, True): "xPos",
    (False, False, False, True): "xPos with a mirror",
    (False, False, True, False): "Jordan block",
    (False, False, False, False): "Jordan block with a mirror",
}


def test_each_of_the_sixteen_switch_states_shows_its_family(visit):
    seen = visit()
    page = seen.open(CHAPTERS[1])
    box = page.locator(f".rope-box:has({AXIOMS})")
    figure = box.locator(".rope-figure")
    switches = box.locator(".rope-controls input[type=checkbox]")
    assert switches.count() == 4
    pictures = set()
    for state in itertools.product([True, False], repeat=4):
        for i, wanted in enumerate(state):
            if switches.nth(i).is_checked() != wanted:
                switches.nth(i).press("Space")
        code = "".join(str(int(wanted)) for wanted in state)
        page.wait_for_function(
            "([f, s]) => f.dataset.state === s", arg=[figure.element_handle(), code]
        )
        name = figure.locator(".rope-family").inner_text()
        assert name == EXACTLY.get(state, "None"), state
        proof = figure.locator(".rope-certificate")
        if state in EXACTLY:
            pictures.add(figure.evaluate("f => f.querySelector('canvas').toDataURL()"))
            assert "depends on m - n only" in proof.inner_text()
        else:
            card = proof.locator("a").get_attribute("href")
            assert page.locator(card).get_attribute("data-kind") == "derived"
    assert len(pictures) == len(EXACTLY)
    assert seen.problems == []


def test_the_linear_bias_is_where_nothing_turns_or_decays(visit):
    seen = visit()
    page = seen.open(CHAPTERS[1])
    box = page.locator(f".rope-box:has({AXIOMS})")
    box.locator(".rope-chip", has_text="Jordan block").first.click()
    turn, factor = (box.locator(f".rope-var-{name} .noUi-handle") for name in ("theta", "zeta"))
    turn.press("Home")
    for _ in range(10):
        factor.press("ArrowRight")
    assert box.locator(".rope-family").inner_text() == "Linear bias"
    assert seen.problems == []
