"""Every figure alone: its page, in frames of other sites and as a file, and the gallery of all."""

import json
import re
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from PIL import ImageChops, ImageStat
from playwright.sync_api import expect

from tests.tools import gallery
from tests.tools.report import AXE, violations

from .conftest import PAGES, ROOT, SITE, served
from .figures import move, settle, state

sys.path.insert(0, str(ROOT / "book" / "_ext"))

import alone

NAMES = sorted(path.stem for path in gallery.FIGURES.glob("*.html"))
THREE = "clock", "angle-heatmap", "axioms"
SEEN = json.loads(gallery.TABLE.read_text("utf8"))
MEASURE = "build, run `.venv/bin/python -m tests.tools.gallery`, and build again"
WIDTHS = pytest.mark.parametrize("width", [1280, 390])
PIXELS = 40, 30
LED = re.compile('<p class="alone"><a href="([^"]*)"')
# a slider one stop down, also one that lies in a fold
STEP = "e => { e[e.value > 0 ? 'stepDown' : 'stepUp'](); e.dispatchEvent(new Event('input')); }"
FOLLOWS = re.search(
    r"```html\n(.*?)```", (ROOT / "book" / "gallery.md").read_text("utf8"), re.DOTALL
)[1]


def document(name):
    return BeautifulSoup((SITE / name).read_text("utf8"), "html.parser")


def open_alone(seen, name, query=""):
    seen.page.goto(f"{seen.site}figures/{name}.html{query}")
    seen.page.locator(gallery.STANDS).wait_for()
    return seen.page


def copied(page, words):
    """Return what a button copies."""
    page.get_by_role("button", name=words).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    return page.evaluate("navigator.clipboard.readText()")


# ---- the gallery --------------------------------------------------------------------------------


def test_every_figure_of_a_chapter_has_a_page_and_a_card():
    led = [href for name in PAGES for href in LED.findall((SITE / name).read_text("utf8"))]
    cards = document("book/gallery.html").select(".gallery-cards > li")
    assert {f"../figures/{name}.html" for name in NAMES} == set(led)
    assert sorted(card["id"] for card in cards) == NAMES
    for card in cards:
        opens, chapter = card.select("a")
        assert opens["href"] == f"../figures/{card['id']}.html"
        assert (SITE / "book" / opens.select_one("img")["src"]).is_file()
        assert opens.select_one(".gallery-question").text.endswith("?")
        assert chapter["href"].partition("#")[0].removeprefix("../") in PAGES
        assert card.select_one("p").text.endswith(".")


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", NAMES)
def test_what_the_gallery_tells_of_a_figure_is_so(browser, site, name):
    page = gallery.open_figure(browser, f"{site}figures/{name}.html", 420)
    assert gallery.answer(page) == SEEN[name]["answer"], MEASURE
    with gallery.Image.open(gallery.PICTURES / f"{name}.webp") as kept:
        both = [each.convert("L").resize(PIXELS) for each in (kept, gallery.picture(page))]
    assert ImageStat.Stat(ImageChops.difference(*both)).mean[0] < 6, MEASURE
    for now, before in zip(gallery.heights(page), SEEN[name]["heights"], strict=True):
        assert abs(now - before) <= 60, MEASURE
    page.close()


@WIDTHS
@pytest.mark.parametrize("name", ["book/gallery.html", f"figures/{THREE[0]}.html"])
def test_gallery_and_figure_are_accessible_and_fit(visit, name, width):
    seen = visit(width=width)
    page = seen.page
    page.goto(seen.site + name)
    page.wait_for_load_state("networkidle")
    page.evaluate(AXE)
    assert [v for theme in ("light", "dark") for v in violations(page, theme)] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert seen.problems == seen.foreign == []


# ---- a page of its own --------------------------------------------------------------------------


def test_an_address_says_where_a_figure_begins_and_is_copied_as_it_stands(visit):
    seen = visit()
    page = open_alone(seen, "clock", "?m=44&pairs=8&theme=dark")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    track = page.locator(".rope-track").first
    assert track.get_attribute("aria-valuetext") == "8"
    move(track)
    address = copied(page, "Copy address")
    assert re.search(r"/figures/clock\.html\?(m=44&pairs=\d+|pairs=\d+&m=44)&theme=dark$", address)
    before = state(page.locator(".rope-figure"))
    page.goto(address)
    page.locator(gallery.STANDS).wait_for()
    settle(page)
    assert state(page.locator(".rope-figure")) == before
    assert seen.problems == seen.foreign == []


def test_a_figure_wears_what_the_reader_of_the_book_has_chosen(visit):
    page = open_alone(visit(theme="dark"), "rotor")
    assert page.locator(".rope-box").get_attribute("data-rope-theme") == "dark"
    page.evaluate("localStorage.mode = 'light'")
    page.reload()
    page.locator(gallery.STANDS).wait_for()
    assert page.locator(".rope-box").get_attribute("data-rope-theme") == "light"


# ---- in the frames of others --------------------------------------------------------------------


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """Return a folder and the address at which it is served: another site."""
    folder = tmp_path_factory.mktemp("elsewhere")
    with served(folder) as address:
        yield folder, address


def embedding(elsewhere, name, body):
    folder, address = elsewhere
    (folder / name).write_text(
        f'<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<link rel="icon" href="data:,"><title>A blog</title><body>{body}</body>',
        "utf8",
    )
    return address + name


def test_three_figures_stand_in_a_page_of_another_site(visit, elsewhere):
    seen = visit()
    codes = []
    for name in THREE:
        codes.append(copied(open_alone(seen, name), "Copy embed code"))
    assert all('loading="lazy"' in code and "title=" in code for code in codes)
    codes[0] = codes[0].replace("clock.html", "clock.html?m=44&amp;pairs=8")
    plain = embedding(elsewhere, "plain.html", "".join(codes))
    follows = embedding(elsewhere, "follows.html", "".join(codes) + FOLLOWS)
    for address, width in ((plain, 375), (follows, 1280)):
        page = seen.page
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(address)
        for number, name in enumerate(THREE):
            place = page.locator("iframe").nth(number)
            place.scroll_into_view_if_needed()
            frame = place.element_handle().content_frame()
            frame.locator(gallery.STANDS).wait_for()
            assert f"/figures/{name}.html" in frame.url
            high = frame.evaluate(gallery.HEIGHT)
            if address == follows:
                told = "([e, high]) => Math.abs(e.clientHeight - high) < 2"
                page.wait_for_function(told, arg=[place.element_handle(), high])
            else:
                room = place.evaluate("e => e.clientHeight") - high
                assert -60 <= room < 130, (name, MEASURE)
        frame = page.frames[1]
        track = frame.locator(".rope-track").first
        assert track.get_attribute("aria-valuetext") == "8"
        move(track)
        assert track.get_attribute("aria-valuetext") != "8"
        assert frame.locator("footer a").get_attribute("target") == "_blank"
    assert seen.problems == []


def test_where_copying_is_not_allowed_the_text_is_shown(visit, elsewhere):
    seen = visit()
    body = f'<iframe src="{seen.site}figures/rotor.html" width="700" height="900"></iframe>'
    page = seen.page
    page.goto(embedding(elsewhere, "copy.html", body))
    frame = page.frame_locator("iframe")
    frame.locator(gallery.STANDS).wait_for()
    frame.get_by_role("button", name="Copy embed code").click()
    assert f'src="{seen.site}figures/rotor.html"' in frame.locator("textarea").input_value()


def test_a_page_of_the_book_leaves_a_foreign_frame(visit, elsewhere):
    seen = visit()
    page = seen.page
    address = f"{seen.site}notebooks/06-aliasing.html"
    page.goto(embedding(elsewhere, "page.html", f'<iframe src="{address}"></iframe>'))
    link = page.frame_locator("iframe").get_by_role("link", name="Read it on its own")
    expect(link).to_have_attribute("href", address)
    expect(link).to_have_attribute("target", "_blank")
    assert page.frame_locator("iframe").locator("article").count() == 0
    assert page.frames[1].evaluate("window.ropeHost ?? null") is None


def test_a_page_of_the_book_stays_in_a_frame_of_its_own_site(visit):
    page = visit().open("book/notation.html")
    page.evaluate(
        """() => document.body.append(
            Object.assign(document.createElement('iframe'), { src: 'glossary.html' }))"""
    )
    expect(page.frame_locator("iframe").locator("article h1")).to_be_visible()


# ---- as a file ----------------------------------------------------------------------------------


def test_three_files_of_a_release_work_from_a_disk(visit, tmp_path):
    written = alone.release(SITE, tmp_path)
    assert [path.stem for path in written] == NAMES
    seen = visit()
    page = seen.page
    for path in written:
        if path.stem not in THREE:
            continue
        seen.requests.clear()
        page.goto(f"{path.as_uri()}?theme=dark")
        page.locator(gallery.STANDS).wait_for()
        figure = page.locator(".rope-figure")
        before = state(figure)
        page.locator(".rope-track").first.evaluate(STEP)
        assert state(figure) != before
        assert seen.requests == [page.url]
        assert page.locator("footer a[href^='..']").count() == 0
        expect(page.get_by_role("button", name="Copy embed code")).to_be_hidden()
    assert seen.problems == []
    assert Path(tmp_path / "rope-figures.zip").stat().st_size < 2_000_000
