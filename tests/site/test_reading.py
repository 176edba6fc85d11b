"""What a reader does: open the menu, search, switch the theme, copy a cell, take the notebook."""

import json

import pytest


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
    page = visit(accept_downloads=True).open(name)
    page.locator("button[aria-label='Download this page']").click()
    with page.expect_download() as download:
        page.locator("a.btn-download-source-button").click()
    assert download.value.suggested_filename == name.split("/")[-1].replace(".html", ".ipynb")
    with open(download.value.path()) as file:
        assert json.load(file)["nbformat"] == 4
