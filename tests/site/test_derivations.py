"""Derivations on the page: step through them, hold a mirror to them, choose their axioms."""

import itertools
import json
import random
import re
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from rope_minimal.explore.figure import Figure

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
    """``9. one place`` -> ``one-place``; ipywidgets writes options with hard spaces."""
    return re.sub(r"^\d+\. ", "", label.replace("\xa0", " ")).replace(" ", "-")


# the cards shown, what is announced, and the step of the mirror, once it is drawn
LOOK = """async name => {
  await new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)));
  const d = document.getElementById(name);
  const cards = [...d.querySelectorAll('.derivation-step')].filter(c => c.offsetParent);
  const mirror = document.querySelector(`.rope-figure[data-derivation='${name}']`);
  return [cards.map(c => c.dataset.step), d.querySelector('.stepper-where').textContent,
          mirror?.dataset.step];
}"""
BACK = """name => {
  const d = document.getElementById(name);
  const shown = () => [...d.querySelectorAll('.derivation-step')].filter(c => !c.hidden);
  const seen = [];
  for (const previous = d.querySelector('.stepper-button'); !previous.disabled;) {
    previous.click();
    seen.push(shown().map(c => c.dataset.step));
  }
  return seen;
}"""


@pytest.mark.parametrize("name", WITH_STEPS)
def test_every_card_is_reached_by_keyboard_and_by_button_and_the_mirror_follows(visit, name):
    seen = visit()
    page = seen.open(name)
    for title, steps in derivations(page):
        assert page.locator(f"[id='{title}']").count() == 1, f"a heading too is called {title}"
        bar = page.locator(f"#{title} .stepper-bar")
        assert bar.locator(".stepper-where").get_attribute("aria-live") == "polite"
        start, options = mirrored(page).get(title, (None, []))
        offered = set(map(plain, options))
        bar.locator(".stepper-next").focus()
        expected = start
        for number, step in enumerate(steps, start=1):
            if number > 1:
                page.keyboard.press("ArrowRight")
                expected = step if step in offered else expected
            cards, announced, mirror = page.evaluate(LOOK, title)
            assert cards == [step]
            words = step.replace("-", " ")
            assert announced.startswith(f"Step {number} of {len(steps)}: {words}")
            assert mirror == expected
        assert not options or offered & set(steps[1:]), "the mirror has nothing to follow"
        assert page.evaluate(BACK, title) == [[step] for step in reversed(steps[:-1])]
        for key, there in [("End", -1), ("Home", 0), ("End", -1)]:
            bar.locator("button:enabled").first.press(key)
            assert shown(page, title) == [steps[there]]
            focused = page.evaluate("() => document.activeElement.className")
            assert "stepper-button" in focused or len(steps) == 1, "the focus is lost at an end"
        bar.locator(".stepper-all").press("Enter")
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
    page.wait_for_function(
        """() => {
          const { top } = document.querySelector("#all-solutions-length").getBoundingClientRect();
          return 0 < top && top < 900;
        }"""
    )
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
        menu.select_option(index=menu.locator("option").all_text_contents().index(label))
    else:
        box.locator(".rope-controls .widget-toggle-button", has_text=label).click()
    box.page.wait_for_function(
        "([f, s]) => f.dataset.step === s",
        arg=[box.locator(".rope-figure").element_handle(), plain(label)],
    )


# choose the step with this number in a mirror's list or among its buttons; what it says then
HOLDS = """async (figure, index) => {
  const menu = figure.closest('.rope-box').querySelector('.rope-controls select');
  if (menu) {
    menu.selectedIndex = index;
    menu.dispatchEvent(new Event('change', { bubbles: true }));
  } else figure.closest('.rope-box').querySelectorAll('.widget-toggle-button')[index].click();
  await new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)));
  const { step, holds, difference } = figure.dataset;
  return [step, holds, Number(difference), figure.querySelector('.rope-relation').textContent];
}"""


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_two_sides_agree_on_every_step_at_random_settings(visit, name):
    seen = visit()
    page = seen.open(name)
    rng = random.Random(name)
    boxes = page.locator(f".rope-box:has({MIRROR})")
    assert boxes.count() >= 3
    for b in range(boxes.count()):
        figure = boxes.nth(b).locator(".rope-figure")
        title = figure.get_attribute("data-derivation")
        options = mirrored(page)[title][1]
        handles = boxes.nth(b).locator(".noUi-handle:visible")
        for i in range(handles.count()):
            handles.nth(i).press(rng.choice(["Home", "End", "PageUp", "PageDown"]))
        for index, label in enumerate(options):
            step, holds, difference, sign = figure.evaluate(HOLDS, index)
            assert step == plain(label)
            assert holds == "true", (title, step)
            assert sign == "≤" or difference <= 1e-9, (title, step)
    assert seen.problems == []
    assert seen.foreign == []


def test_a_slip_and_a_rival_come_apart_and_the_cards_follow_the_mirror(visit):
    seen = visit()
    page = seen.open(CHAPTERS[0])
    box = page.locator(f".rope-box:has({MIRROR}[data-derivation='all-solutions'])")
    figure = box.locator(".rope-figure")
    for label, chip in [("same-length", "xPos"), ("kept", "m and n swapped")]:
        options = mirrored(page)["all-solutions"][1]
        choose(box, next(o for o in options if plain(o) == label))
        assert shown(page, "all-solutions") == [label]
        button = figure.locator(".rope-chip", has_text=chip)
        button.press("Enter")
        figure.locator(".rope-relation.rope-off").wait_for()
        assert button.get_attribute("aria-pressed") == "true"
        expect(figure.locator(".rope-caption")).to_contain_text("They differ")
        assert float(figure.get_attribute("data-difference")) > 0.01
    box.locator(".rope-reset").click()
    figure.locator(".rope-relation.rope-fits").wait_for()
    assert seen.problems == []


EXACTLY = {
    (True, True, True, True): "RoPE",
    (True, True, True, False): "RoPE with a mirror",
    (False, True, True, True): "RoPE in an oblique basis",
    (False, True, True, False): "Oblique mirror",
    (False, False, True, True): "Growth or decay",
    (False, False, True, False): "Growth or decay with a mirror",
    (False, True, False, True): "Counts the distance",
    (False, True, False, False): "Counts, beside a mirror",
    (False, False, False, True): "Counts, and grows or decays",
    (False, False, False, False): "All three at once",
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


def test_the_linear_bias_is_where_nothing_turns(visit):
    seen = visit()
    page = seen.open(CHAPTERS[1])
    box = page.locator(f".rope-box:has({AXIOMS})")
    box.locator(".rope-chip", has_text="Counts the distance").click()
    box.locator(".rope-var-theta .noUi-handle").press("Home")
    expect(box.locator(".rope-family")).to_have_text("Linear bias")
    assert seen.problems == []


def formulas(value):
    """Every LaTeX text in the state of a page's widgets, those in their scripts included."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "latex" and inner:
                yield inner
            elif name == "_esm":
                yield from map(json.loads, re.findall(r'\blatex: ("(?:[^"\\]|\\.)*")', inner))
            else:
                yield from formulas(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from formulas(inner)


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_formula_of_a_figure_can_be_written_where_there_is_no_mathjax(name):
    """In Jupyter the kernel writes it as MathML; a backslash would be a command left over."""
    (state,) = re.findall(r'widget-state\+json">(.*?)</script>', HTML[name], re.DOTALL)
    found = sorted(set(formulas(json.loads(state))))
    assert len(found) > 20
    sent = []
    figure = SimpleNamespace(send=sent.append)
    for latex in found:
        Figure._typeset(figure, None, {"latex": latex}, [])
    assert [answer["latex"] for answer in sent] == found
    assert [answer for answer in sent if "\\" in answer["mathml"]] == []
    assert all(answer["mathml"].startswith("<math") for answer in sent)
