"""What a reader does: open the menu, search, switch the theme, copy a cell, take the notebook."""

import json

import pytest

from .conftest import PAGES, SITE

CHAPTERS = [name for name in PAGES if name.startswith("notebooks/")]
WITH_WIDGETS = [n for n in PAGES if "widget-view+json" in (SITE / n).read_text("utf8")]


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


@pytest.mark.parametrize("name", WITH_WIDGETS)
def test_the_copy_button_copies_the_cell_on_pages_with_widgets(visit, site, name):
    seen = visit()
    page = seen.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site)
    seen.open(name)
    cell = page.locator("div.cell_input:visible div.highlight").first
    if cell.count() == 0:
        pytest.skip("no visible code cell on this page")
    cell.hover()
    cell.locator("button.copybtn").click()
    page.wait_for_timeout(200)
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == cell.locator("pre").inner_text().strip()
    assert seen.problems == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_notebook_downloads_as_a_file(visit, name):
    page = visit(accept_downloads=True).open(name)
    page.locator("button[aria-label='Download this page']").click()
    with page.expect_download() as download:
        page.locator("a.btn-download-source-button").click()
    assert download.value.suggested_filename == name.split("/")[-1].replace(".html", ".ipynb")
    with open(download.value.path()) as file:
        assert json.load(file)["nbformat"] == 4
