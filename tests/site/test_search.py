"""Search: what people type leads to the place that answers, as one types, from every page."""

import re

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import expect

from tests.tools.browser import wait_for
from tests.tools.report import AXE, compressed, violations

from .conftest import SITE

START = "book/notation.html"
HITS = "#pst-search-dialog .hits-list a"
SEARCH = SITE / "_static" / "search"

# a query, and what the address of one of its first three places contains
QUERIES = {
    "extrapolate": "does-rope-extrapolate|term-extrapolation",
    "does rope extrapolate": "does-rope-extrapolate",
    "fine-tune": "fine-tune-for-a-longer",
    "continued pre-training": "term-continued-pre-training",
    "RULER": "term-needle",
    "needle": "term-needle",
    "NIAH": "term-needle",
    "GGUF": "term-GGUF|gguf-whose",
    "--rope-scaling": "how-do-i-set-yarn",
    "--hf-overrides": "how-do-i-set-yarn",
    "max_model_len": "how-do-i-set-yarn",
    "rope_scaling": "term-rope_parameters",
    "rope_parameters": "term-rope_parameters",
    "mscale": "term-mscale",
    "is_neox_style": "term-is_neox_style",
    "prefix cache": "term-prefix-cache",
    "rotate_half": "term-rotate_half",
    "partial_rotary_factor": "partial-rotary",
    "10000": "term-base|which-base",
    "why 10000": "term-base",
    "500000": "term-base|what-a-larger-base",
    "1e6": "term-base",
    "rope_theta": "which-base-rope-theta",
    "yarn": "term-YaRN",
    "yarn vllm": "how-do-i-set-yarn",
    "qwen2.5 131072": "how-do-i-set-yarn",
    "dynamic ntk": "07-longer-contexts.html#ntk-tilt",
    "longrope": "term-LongRoPE",
    "bfloat16": "term-bf16",
    "left padding": "term-left-padding",
    "packed sequences position_ids": "packed",
    "permute weights": "so-move-the-weights",
    "convert checkpoint": "so-move-the-weights",
    "llama.cpp": "how-do-i-set-yarn",
    "sliding window": "sliding-window",
    "NoPE layers": "term-NoPE",
    "attention sink": "term-attention-sink",
    "mrope": "text-in-between|term-plan",
    "qk-norm": "term-QK-norm",
    "quantized kv cache": "12-serving|cached-keys",
    "context shift": "term-context-shift",
    "cross-attention": "does-rotation-work-in-cross-attention",
    "timestamps": "timestamps",
    "deepseek mla": "a-head-in-two-parts",
    "gemma3": "figures/atlas.html",
    "qwen2.5": "check-your-model.html#model=",
    "glm-4.5": "check-your-model.html#model=",
    "llama 3.1": "check-your-model.html#model=",
    "log n": "attention-scale-and-length",
    "Su et al. 2021": "references.html",
    "apply_rope": "api.html#rope_minimal.rotation.apply_rope",
    "extrapolte": "does-rope-extrapolate|term-extrapolation",  # a slip of the finger
}


def open_dialog(seen, name=START):
    page = seen.open(name)
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog[open] input").wait_for()
    return page


def ask(page, query):
    """Type a query into the dialog; return the addresses that it shows, best first."""
    page.locator("#pst-search-dialog input").fill(query)
    wait_for(
        page,
        """query => {
            const all = document.querySelector('#pst-search-dialog .hits-all');
            return all.href.endsWith(`?q=${encodeURIComponent(query)}`);
        }""",
        query,
    )
    return page.locator(HITS).evaluate_all("all => all.map(e => e.href)")


@pytest.fixture(scope="module")
def dialog(new_visit):
    with new_visit() as seen:
        open_dialog(seen)
        yield seen


@pytest.mark.parametrize("query", QUERIES)
def test_what_people_type_leads_to_the_right_place(dialog, query):
    first = ask(dialog.page, query)[:3]
    assert any(re.search(QUERIES[query], address) for address in first), first
    assert dialog.foreign == []
    assert dialog.problems == []


def test_every_place_is_there(dialog):
    """Every page, every anchor, and no attribute of a figure."""
    places = dialog.page.evaluate(
        """() => {
            const take = window.bookSearch.fill;
            let places;
            window.bookSearch.fill = (_, given) => { places = given; };
            const script = document.createElement('script');
            script.src = document.querySelector('script[src*="_static/search/index"]').src;
            document.head.append(script);
            return new Promise(go => {
                script.onload = () => { window.bookSearch.fill = take; go(places); };
            });
        }"""
    )
    text = {}
    for url, *_ in places:
        name, _, anchor = url.partition("#")
        name = name.partition("?")[0]
        text.setdefault(name, (SITE / name).read_text("utf8"))
        state = anchor.startswith("model=")  # of a figure, not a place
        assert not anchor or state or f'id="{anchor}"' in text[name], url
    kinds = [kind for *_, kind in places]
    assert kinds.count("question") == 23
    assert kinds.count("family") > 190
    assert kinds.count("word") > 80
    assert len(text) >= 27
    api = BeautifulSoup(text["book/api.html"], "lxml")
    attributes = {term["id"] for term in api.select("dl:is(.attribute, .property, .data) > dt[id]")}
    assert any("figures" in name for name in attributes)
    assert not attributes & {url.partition("#")[2] for url, *_ in places}


def test_a_place_is_shown_with_its_page_and_the_words_found(dialog):
    page = dialog.page
    ask(page, "padding")
    titles = page.locator(f"{HITS} .hit-title").all_inner_texts()
    shown = page.locator(f"{HITS} .hit-text").all_inner_texts()
    assert len(shown) == len(titles) == 8
    for title, text in zip(titles, shown, strict=True):
        assert re.search("padd(ing|ed)", (title + text).lower())
        assert not re.search(r"\\\(|plt\.|import |After this chapter you can", text)
    assert page.locator(f"{HITS} mark").first.inner_text().lower().startswith("pad")
    assert page.locator(f"{HITS} .hit-page").first.inner_text()


def test_nothing_found_is_said(dialog):
    ask(dialog.page, "zxqvzxqv")
    expect(dialog.page.locator("#pst-search-dialog [role=status]")).to_contain_text("Nothing found")
    assert dialog.page.locator(HITS).count() == 0


def test_the_arrows_lead_through_the_places_and_enter_opens_one(visit):
    seen = visit()
    page = open_dialog(seen)
    first = ask(page, "left padding")[0]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.href") == first
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.tagName") == "INPUT"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(first)


def test_enter_in_the_field_leads_to_all_places(visit):
    page = open_dialog(visit())
    ask(page, "wavelength")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=wavelength")
    hits = page.locator("main .hits-list a")
    hits.first.wait_for()
    assert hits.count() > 8
    page.locator("main input").fill("needle")
    page.wait_for_url("**/search.html?q=needle")
    expect(hits.first).to_have_attribute("href", re.compile("term-needle"))


def test_a_place_on_the_same_page_closes_the_dialog(visit):
    page = open_dialog(visit(), "book/glossary.html")
    ask(page, "RULER")
    page.locator(HITS).first.click()
    expect(page.locator("#pst-search-dialog")).not_to_be_visible()
    assert page.url.endswith("glossary.html#term-needle-in-a-haystack")


def test_a_row_of_the_atlas_opens_in_the_atlas(visit):
    seen = visit()
    page = open_dialog(seen)
    ask(page, "glm4_moe")
    page.locator(HITS).first.click()
    page.wait_for_url("**/figures/atlas.html?row=*")
    page.locator(".rope-table > summary").click()
    chosen = page.locator("[aria-selected=true], tr.chosen").first
    expect(chosen).to_contain_text("glm4_moe")
    assert seen.problems == []


def test_nothing_is_loaded_before_somebody_searches(visit):
    seen = visit()
    seen.open(START)
    assert not any("_static/search/" in url for url in seen.requests)
    assert not any("searchindex" in url or "searchtools" in url for url in seen.requests)


def test_the_index_stays_light_and_sphinxs_own_is_gone():
    assert sum(compressed(SEARCH / f"{name}.js") for name in ("engine", "index", "texts")) < 490_000
    assert not (SITE / "searchindex.js").exists()
    assert not list((SITE / "_static").glob("*searchtools*"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_dialog_and_page_of_results_are_accessible(visit, theme):
    page = open_dialog(visit(theme=theme))
    ask(page, "yarn")
    page.evaluate(AXE)
    assert violations(page, theme) == []
    page = visit(theme=theme).open("search.html?q=yarn")
    page.locator("main .hits-list a").first.wait_for()
    page.evaluate(AXE)
    assert violations(page, theme) == []


def test_on_a_phone_the_places_fit_and_scroll(visit):
    page = visit(width=390, height=700, has_touch=True).open(START)
    page.locator("button.search-button").last.click()
    ask(page, "rope_theta")
    box = page.locator("#pst-search-dialog").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert box["y"] + box["height"] <= 700
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_pages_opened_as_files_search_too(browser):
    page = browser.new_page()
    page.goto((SITE / START).as_uri())
    page.keyboard.press("Control+k")
    assert any("term-GGUF" in address for address in ask(page, "GGUF"))
    page.close()


def test_an_index_that_does_not_come_is_said(visit):
    page = visit().open(START)
    page.route("**/_static/search/index.js", lambda route: route.abort())
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input").fill("yarn")
    expect(page.locator("#pst-search-dialog [role=status]")).to_contain_text("did not load")
