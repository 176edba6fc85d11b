"""What a reader does: open the menu, search, switch the theme, copy a cell, take the notebook."""

import json
import re

import pytest
from bs4 import BeautifulSoup

from .conftest import ROOT, SITE
from .figures import settle


def test_the_phone_menu_opens_and_its_links_lead_on(visit):
    page = visit(width=390, height=844, has_touch=True).open("book/intro.html")
    menu = page.locator("#pst-primary-sidebar, .bd-sidebar-primary").first
    link = menu.locator("a", has_text="Notation").first
    assert not link.is_visible()
    page.locator(".primary-toggle").first.click()
    link.wait_for(state="visible")
    link.click()
    page.wait_for_url("**/notation.html")


def test_the_theme_button_turns_the_page_dark_and_back(visit):
    page = visit().open("book/intro.html")
    seen = set()
    for _ in range(3):
        page.locator(".theme-switch-button").first.click()
        seen.add(page.evaluate("document.documentElement.dataset.theme"))
    assert seen == {"light", "dark"}


def test_search_finds_a_chapter(visit):
    page = visit().open("search.html?q=wavelength")
    page.wait_for_selector("#search-results li a")
    assert "many-planes" in page.locator("#search-results").inner_html()


@pytest.mark.parametrize("name", ["notebooks/04-many-planes.html", "book/intro.html"])
def test_the_notebook_downloads_as_a_file(visit, name):
    page = visit().open(name)
    page.locator("button[aria-label='Download this page']").click()
    with page.expect_download() as download:
        page.locator("a.btn-download-source-button").click()
    assert download.value.suggested_filename == name.split("/")[-1].replace(".html", ".ipynb")
    with open(download.value.path()) as file:
        assert json.load(file)["nbformat"] == 4


def test_a_reading_path_marks_its_own_pages_on_the_map(visit):
    page = visit().open("book/intro.html")
    buttons = page.locator(".map-paths button")
    paths = page.locator(".reading-paths li")
    assert buttons.count() == paths.count() >= 5

    def marked():
        """Return the pages that stay lit in the picture and in the list, and whether any is dim."""
        return page.evaluate(
            """() => {
                const stops = [...document.querySelectorAll('nav.book-map .map-stop')];
                const lit = stops.filter(stop => !stop.classList.contains('map-off'));
                const page = stop => (stop.closest('a') || stop.querySelector('a'))
                    .getAttribute('href');
                return [lit.map(page), lit.length < stops.length];
            }"""
        )

    def state():
        return [button.get_attribute("aria-pressed") for button in buttons.all()]

    everything, dim = marked()
    assert not dim
    for i, path in enumerate(paths.all()):
        assert buttons.nth(i).inner_text() == path.locator("em").inner_text()
        links = {a.get_attribute("href").partition("#")[0] for a in path.locator("a").all()}
        buttons.nth(i).press("Enter" if i % 2 else "Space")
        assert state() == ["true" if j == i else "false" for j in range(buttons.count())]
        lit, dim = marked()
        assert dim
        assert set(lit) == links
        assert lit == [href for href in everything if href in links]
        assert page.locator(".reading-paths li.map-path").all_inner_texts() == [path.inner_text()]
    buttons.first.click()
    assert state().count("true") == 1
    buttons.first.click()  # a second press takes the path away
    assert (state().count("true"), marked()) == (0, [everything, False])


@pytest.mark.parametrize("width", [360, 1280])
def test_the_buttons_of_the_paths_stand_right_above_the_picture(visit, width):
    page = visit(width=width, height=900).open("book/intro.html")
    row, svg = (page.locator(f"nav.book-map {e}").bounding_box() for e in (".map-paths", "svg"))
    assert row["height"] < 200
    assert 0 <= svg["y"] - row["y"] - row["height"] < 60


A4_INSIDE = 192 / 25.4 * 96  # pixels between margins of 9 mm


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_cheat_sheet_is_printed_on_one_page_and_nothing_is_cut(visit, theme):
    page = visit(theme=theme).open("notebooks/cheat-sheet.html")
    page.evaluate(
        """() => window.addEventListener('beforeprint', () => {
            window.printed = document.documentElement.dataset.theme;
        })"""
    )
    pdf = page.pdf(format="A4")
    assert page.evaluate("window.printed") == "light"  # paper is white
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
    page.set_viewport_size({"width": int(A4_INSIDE), "height": 1000})
    page.emulate_media(media="print")
    settle(page)
    wide = page.evaluate(
        """() => [...document.querySelectorAll('#cheat-sheet :is(table, pre, h2, p)')]
            .filter(e => e.checkVisibility())
            .map(e => [e.tagName, e.getBoundingClientRect().width, e.parentElement.clientWidth])
            .filter(([, width, room]) => width > room + 1)"""
    )
    assert wide == []


def test_the_formulas_of_the_cheat_sheet_fit_a_phone(visit):
    page = visit(width=390, height=844).open("notebooks/cheat-sheet.html")
    tables = page.locator(".pst-scrollable-table-container")
    sizes = tables.evaluate_all("all => all.map(e => [e.scrollWidth, e.clientWidth])")
    assert [(wide, room) for wide, room in sizes if wide > room + 1] == []


def test_the_reference_says_what_every_field_holds():
    assert "Alias for field" not in (SITE / "book" / "api.html").read_text("utf8")


def test_every_checked_sentence_of_the_sources_is_a_row():
    checks = (ROOT / "notebooks" / "A-sources.ipynb").read_text("utf8").count('"@claim(')
    page = BeautifulSoup((SITE / "notebooks/A-sources.html").read_text("utf8"), "html.parser")
    assert checks > 80
    assert len(page.select("table tbody tr")) == checks


def test_what_is_wider_than_the_phone_fades_until_its_end(visit):
    page = visit(width=390).open("notebooks/04-many-planes.html")
    code = page.locator(".bd-article div.highlight pre.goes-on").first
    code.wait_for()
    assert "linear-gradient" in code.evaluate("e => getComputedStyle(e).maskImage")
    wide = code.element_handle()
    wide.evaluate("e => { e.scrollLeft = e.scrollWidth }")
    page.wait_for_function("e => !e.classList.contains('goes-on')", arg=wide)
    short = page.locator(".bd-article pre").filter(has_text="positions    5").last
    assert "goes-on" not in (short.get_attribute("class") or "")
