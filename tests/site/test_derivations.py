"""Derivations on the page: their cards, and the axioms to choose."""

import itertools
import json
import re
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import expect

from ropebook.figures.figure import Figure
from tests.tools.browser import wait_for

from .conftest import PAGES, ROOT, SITE

pytestmark = pytest.mark.drawn(2)

EXPLORE = ROOT / "ropebook" / "figures"
HTML = {name: (SITE / name).read_text("utf8") for name in PAGES}
WITH_STEPS = [name for name, text in HTML.items() if 'class="derivation-step"' in text]
CHAPTERS = ["notebooks/02-complex-numbers.html", "notebooks/03-linear-algebra.html"]
AXIOMS = ".rope-figure[data-figure='axioms']"


def test_the_derivation_chapters_are_there():
    assert set(CHAPTERS) <= set(WITH_STEPS)


@pytest.mark.parametrize("name", WITH_STEPS)
def test_every_card_stands_once_in_its_order_and_every_link_to_one_leads_there(name):
    page = BeautifulSoup(HTML[name], "html.parser")
    sections = page.select(".derivation, .derivation-part")
    cards = [card["id"] for card in page.select(".derivation-step")]
    assert len(set(cards)) == len(cards)
    for title in {section["data-derivation"] for section in sections if section.select("ol")}:
        assert len(page.find_all(id=title)) == 1, "an anchor, and no heading is called so"
        own = [s for s in sections if s.get("data-derivation") == title]
        numbers = [number.text for s in own for number in s.select(".derivation-number")]
        assert numbers == [str(n) for n in range(1, len(numbers) + 1)]
    for link in page.select(".derivation-step a[href^='#'], .derivation-above a"):
        assert page.find(id=link["href"][1:]), link["href"]


IN_VIEW = """id => {
  const { top } = document.getElementById(id).getBoundingClientRect();
  return 0 < top && top < innerHeight;
}"""


@pytest.mark.parametrize("name", WITH_STEPS)
def test_a_link_to_a_card_leads_there_and_so_do_the_links_between_cards(visit, name):
    rests = BeautifulSoup(HTML[name], "html.parser").select(".derivation-step[data-follows]")
    last = [card for card in rests if card["data-follows"]][-1]
    seen = visit()
    page = seen.open(f"{name}#{last['id']}")
    wait_for(page, IN_VIEW, arg=last["id"])
    premise = page.locator(f"[id='{last['id']}'] .derivation-follows a").first
    premise.click()
    wait_for(page, IN_VIEW, arg=premise.get_attribute("href").removeprefix("#"))
    page.go_back()
    wait_for(page, IN_VIEW, arg=last["id"])
    assert seen.problems == []
    assert seen.foreign == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_without_javascript_every_card_is_on_the_page(browser, site, name):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site + name)
    cards = page.locator(".derivation-step")
    assert cards.count() > 15
    assert all(card.is_visible() for card in cards.all())
    context.close()


FREEST = {  # of those that have these properties
    (True, True, True, True): "RoPE",
    (True, True, True, False): "RoPE with a mirror",
    (False, True, True, True): "Oblique RoPE",
    (False, True, True, False): "Oblique mirror",
    (False, False, True, True): "Growth or decay",
    (False, False, True, False): "Growth, mirror",
    (False, True, False, True): "Counting",
    (False, True, False, False): "Counting, mirror",
    (False, False, False, True): "Counting, growth",
    (False, False, False, False): "All three at once",
}


def test_fewer_demands_leave_more_families_and_one_rule_says_what_it_brings(opened_once):
    seen = opened_once(CHAPTERS[1])
    page = seen.page
    box = page.locator(f".rope-box:has({AXIOMS})")
    figure = box.locator(".rope-figure")
    switches = figure.locator(".rope-require input")
    assert switches.count() == 4
    assert figure.locator(".rope-require :checked").count() == 1, "one step before the answer"
    assert figure.locator(".rope-kind:not(.rope-out)").count() == 2
    pictures, left = set(), {}
    for required in itertools.product([True, False], repeat=4):
        for i, wanted in enumerate(required):
            if switches.nth(i).is_checked() != wanted:
                switches.nth(i).press("Space")
        code = "".join(str(int(wanted)) for wanted in required)
        wait_for(page, "([f, s]) => f.dataset.state === s", arg=[figure.element_handle(), code])
        rule, circle, diagonalisable, orientation = required
        holds = (rule, circle or rule, diagonalisable or rule, orientation)
        assert figure.locator(".rope-family").inner_text() == FREEST[holds], required
        left[required] = figure.locator(".rope-kind:not(.rope-out)").count()
        assert figure.locator(".rope-kind[aria-pressed=true] > span").inner_text() == FREEST[holds]
        out = figure.locator(".rope-kind.rope-out > small")
        assert all(out.all_inner_texts()), "each says why"
        proof = figure.locator(".rope-certificate")
        assert "depends on m - n only" in proof.text_content()
        pictures.add(figure.evaluate("f => [...f.querySelectorAll('canvas')].at(-1).toDataURL()"))
        if holds != required:
            card = proof.locator("a").get_attribute("href")
            assert page.locator(card).get_attribute("data-kind") == "derived"
    assert (left[(True,) * 4], left[(False,) * 4]) == (1, 10)
    for required, count in left.items():
        for i in range(4):
            assert left[(*required[:i], False, *required[i + 1 :])] >= count
    assert len(pictures) == len(FREEST)
    assert seen.problems == []


def test_the_linear_bias_is_where_nothing_turns(opened_once):
    seen = opened_once(CHAPTERS[1])
    page = seen.page
    box = page.locator(f".rope-box:has({AXIOMS})")
    turn = box.get_by_label("Turn per position θ (rad)", exact=True)
    box.locator(".rope-kind", has_text="Counting").first.click()
    expect(box.locator(".rope-family")).to_have_text("Counting")
    turn.press("Home")
    expect(box.locator(".rope-family")).to_have_text("Linear bias")
    box.locator(".rope-kind", has_text="RoPE").first.click()
    expect(box.locator(".rope-family")).to_have_text("No encoding at all: a turn by θ = 0")
    turn.press("End")
    expect(box.locator(".rope-family")).to_have_text("Half a turn: odd and even only")
    assert seen.problems == []


def formulas(value):
    """Every LaTeX text in the state of a page's widgets."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "latex" and inner:
                yield inner
            else:
                yield from formulas(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from formulas(inner)


def test_every_formula_of_a_figure_can_be_written_where_there_is_no_mathjax():
    """In Jupyter the kernel writes it as MathML; a backslash would be a command left over."""
    states = [
        re.findall(r'widget-state\+json">(.*?)</script>', HTML[n], re.DOTALL) for n in CHAPTERS
    ]
    found = {latex for [state] in states for latex in formulas(json.loads(state))}
    scripts = "".join(path.read_text("utf8") for path in EXPLORE.glob("**/*.js"))
    found |= set(map(json.loads, re.findall(r'\blatex: ("(?:[^"\\]|\\.)*")', scripts)))
    found = sorted(found)
    assert len(found) > 10
    sent = []
    figure = SimpleNamespace(send=sent.append)
    for latex in found:
        Figure._typeset(figure, None, {"latex": latex}, [])
    assert [answer["latex"] for answer in sent] == found
    assert [answer for answer in sent if "\\" in answer["mathml"]] == []
    assert all(answer["mathml"].startswith("<math") for answer in sent)
