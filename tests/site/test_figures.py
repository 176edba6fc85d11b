"""The moving figures move, on the static page, with no kernel."""

from .conftest import SITE, WITH_WIDGETS
from .figures import move, state


def test_there_are_pages_with_moving_figures():
    assert "notebooks/04-many-planes.html" in WITH_WIDGETS


def test_the_heatmap_works_from_a_file(browser):
    page = browser.new_page()
    page.goto((SITE / "notebooks" / "04-many-planes.html").as_uri())
    figure = page.locator("[data-figure='angle-heatmap'][data-drawn]").first
    figure.wait_for()
    before = state(figure)
    box = page.locator(".rope-box:has([data-figure='angle-heatmap'])").first
    box.locator(".rope-unfold").click()
    move(box.locator(".rope-track").first)
    assert state(figure) != before
    page.close()
