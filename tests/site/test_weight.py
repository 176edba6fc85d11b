"""Pages stay light: budgets, and nothing loaded where nothing asks for it."""

import contextlib
import re
from types import SimpleNamespace

import pytest

from ropebook.figures.alone import figure_name
from tests.tools.browser import launch, wait_for
from tests.tools.report import (
    ELEMENTS_BUDGET,
    LONG_TABLES,
    STYLE_BUDGET,
    WIDGET_DATA,
    broken_budgets,
    compressed,
    compressed_weight,
    contents,
    document,
    elements,
    is_widget_code,
    linked_files,
    site_size,
    weight,
    widget_data,
)

from .conftest import PAGES, SITE
from .figures import settle


def test_no_byte_budget_is_broken():
    assert broken_budgets() == []
    assert site_size()["python"] < 13_000_000


def test_a_weight_counts_the_page_and_its_style_and_scripts():
    name = "book/notation.html"
    files = linked_files(name)
    assert SITE / "_static" / "style.css" in files
    assert SITE / "_static" / "scripts" / "bootstrap.js" in files
    own = (SITE / name).stat().st_size
    assert weight(name)["before"] == own + sum(path.stat().st_size for path in files)
    assert compressed_weight(name) < 0.4 * weight(name)["before"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_only_what_it_uses(name):
    code = {path.name for path in linked_files(name) if is_widget_code(path)}
    kinds = set(re.findall(r'"_anywidget_id":"[\w.]+\.(\w+)"', widget_data(name).decode()))
    wanted = {f"{figure_name(kind)}.js" for kind in kinds}
    assert code == (wanted | {"host.js"} if contents(name)["figures"] else set())
    scripts = {path.name for path in linked_files(name)}
    live = bool(contents(name)["live cells"])
    writes = live or "figures.axioms" in widget_data(name).decode()
    assert "tex-chtml.js" not in scripts
    assert ("late-mathjax.js" in scripts) == writes
    assert ("live-cells.js" in scripts) == live


@pytest.mark.parametrize("name", PAGES)
def test_the_text_comes_before_the_figures_code_and_data(name):
    page = document(name)
    late = page.find_all("script", type=WIDGET_DATA)
    late += [tag for tag in page.find_all("script", src=True) if is_widget_code_tag(tag)]
    for tag in late:
        assert tag.find_parent("head") is None
        assert tag.find_next(["p", "article"]) is None
        assert tag.get("type") or tag.has_attr("defer")


@pytest.mark.parametrize("name", PAGES)
def test_the_first_paint_waits_for_one_style_sheet_and_no_script(name):
    page = document(name)
    (sheet,) = page.find_all("link", rel="stylesheet")
    assert sheet["href"].partition("?")[0].endswith("_static/style.css")
    at_once = [tag["src"] for tag in page.find_all("script", src=True) if not tag.has_attr("defer")]
    assert at_once == []
    assert compressed(SITE / "_static" / "style.css") < STYLE_BUDGET
    icons = list((SITE / "_static/vendor/fontawesome/webfonts").iterdir())
    assert sum(path.stat().st_size for path in icons) < 15_000
    inline = sum(len(tag.decode_contents()) for tag in page.head.find_all("script", src=False))
    assert inline < 3_000


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_few_elements_before_a_reader_moves(name):
    assert elements(name) < LONG_TABLES.get(name, ELEMENTS_BUDGET)


def test_formulas_and_colours_come_with_the_reader_and_nothing_moves(visit):
    page = visit(width=390, height=700).open("notebooks/03-linear-algebra.html")
    waiting = page.locator("mjx-container.later, pre[data-colours]")
    height = "document.querySelector('article').scrollHeight"
    words = page.locator("pre").all_text_contents()
    before, high = waiting.count(), page.evaluate(height)
    page.locator("mjx-container.later:visible").last.scroll_into_view_if_needed()
    wait_for(page, "n => document.querySelectorAll('.later, [data-colours]').length < n", before)
    assert waiting.count() > 0
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert waiting.count() == 0
    assert abs(page.evaluate(height) - high) <= 3
    assert page.locator("pre").all_text_contents() == words
    assert page.locator("pre span.mi").count() > 100


# in which frame each section of a chapter is laid out
FRAMES_OF_SECTIONS = """window.laid = [];
let frame = 0;
const count = () => {
    frame += 1;
    requestAnimationFrame(count);
};
count();
new MutationObserver(all => {
    for (const { target } of all) if (target.matches('SECTIONS')) laid.push(frame);
}).observe(document, { attributes: true, attributeFilter: ['class'], subtree: true });"""
SECTIONS = ".openings ~ section, .openings ~ section section"
STYLES_OF_SECTIONS = f"""[...document.querySelectorAll('{SECTIONS}')]
    .map(section => getComputedStyle(section).contentVisibility)"""


@pytest.mark.parametrize(
    ("width", "place", "first"),
    [(390, "", "auto"), (390, "#exercises", "visible"), (1280, "", "visible")],
)
def test_sections_wait_on_a_phone_unless_a_link_leads_into_them(visit, width, place, first):
    page = visit(width=width).page
    page.route("**/book.js*", lambda route: route.abort())
    page.goto(f"{visit().site}notebooks/03-linear-algebra.html{place}")
    styles = page.evaluate(STYLES_OF_SECTIONS)
    assert len(styles) > 10
    assert set(styles) == {first}


def test_sections_are_laid_out_one_a_frame(visit):
    seen = visit(width=390)
    seen.page.add_init_script(FRAMES_OF_SECTIONS.replace("SECTIONS", SECTIONS))
    page = seen.open("notebooks/03-linear-algebra.html")
    wait_for(page, "() => bootstrap.ScrollSpy.getInstance(document.body)")
    styles = page.evaluate(STYLES_OF_SECTIONS)
    assert set(styles) == {"visible"}
    assert len(set(page.evaluate("laid"))) == len(styles)


def is_widget_code_tag(tag):
    return is_widget_code(SITE / tag["src"].partition("?")[0].replace("../", ""))


@contextlib.contextmanager
def first_visit(browser):
    """Yield a page of a browser of its own: one that has shown many may note no first paint."""
    fresh = launch(SimpleNamespace(chromium=browser.browser_type))
    try:
        yield fresh.new_page()
    finally:
        fresh.close()


def test_text_is_painted_before_the_figures_stand(browser, visit):
    names = ["first-contentful-paint", "figures"]
    written = "names => names.every(name => performance.getEntriesByName(name).length)"
    with first_visit(browser) as page:
        page.goto(visit().site + "notebooks/04-many-planes.html")
        wait_for(page, written, names)
        paint, figures = (
            page.evaluate("name => performance.getEntriesByName(name)[0].startTime", name)
            for name in names
        )
    assert paint < figures


WORN = """window.worn = new Set();
new MutationObserver(() => document.body && worn.add(document.documentElement.dataset.theme))
    .observe(document, { attributes: true, childList: true, subtree: true });"""


def test_a_page_never_changes_the_theme_in_which_it_is_laid_out(browser, visit):
    for theme in ("light", "dark"):
        with first_visit(browser) as page:
            page.emulate_media(color_scheme=theme)
            page.add_init_script(WORN)
            page.goto(visit().site + "notebooks/04-many-planes.html")
            assert page.evaluate("[...worn]") == [theme]


DRAWN = """() => [...document.querySelectorAll('.cell_output > .rope-place')].map(place => [
    place.getBoundingClientRect().top < innerHeight + 800,
    place.childElementCount,
    Number(place.querySelector('[data-draws]')?.dataset.draws ?? 0),
])"""


@pytest.mark.parametrize("name", ["03-linear-algebra", "04-many-planes", "12-serving", "15-atlas"])
def test_what_a_reader_has_not_come_near_is_not_drawn_and_the_rest_once(visit, name):
    seen = visit(width=390, height=700)
    page = seen.page
    page.goto(f"{seen.site}notebooks/{name}.html")
    page.wait_for_load_state("networkidle")
    wait_for(page, f"() => ({DRAWN})().every(([near, made]) => !near || made)")
    settle(page)
    for near, made, draws in page.evaluate(DRAWN):
        assert (made, draws) == (1, 1) if near else (made, draws) == (0, 0)


def test_on_paper_every_figure_is_drawn(visit):
    seen = visit(width=390, height=700)
    page = seen.page
    page.goto(seen.site + "notebooks/04-many-planes.html")
    wait_for(page, "() => document.querySelector('[data-drawn]')")
    count, figures, pictures, drawn, hidden = page.evaluate(
        """() => {
            window.dispatchEvent(new Event('beforeprint'));
            const places = [...document.querySelectorAll('.rope-place')];
            const figures = [...document.querySelectorAll('.rope-figure')];
            const pictures = figures.filter(figure => figure.querySelector('canvas'));
            const drawn = pictures.filter(figure => figure.dataset.drawn);
            const hidden = places.filter(place => place.hidden);
            return [places, figures, pictures, drawn, hidden].map(all => all.length);
        }"""
    )
    assert (figures, drawn, hidden) == (count, pictures, 0)
    assert pictures > 1
