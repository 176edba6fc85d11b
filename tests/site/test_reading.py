"""What a reader does: open the menu, switch the theme, copy a cell, take the notebook."""

import json
import re
from itertools import pairwise

import pytest

from tests.tools.browser import wait_for
from tests.tools.report import document

from .conftest import PAGES, ROOT, SITE, pages_with
from .figures import settle

pytestmark = pytest.mark.drawn(5)


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


CHAPTERS = pages_with('class="openings')


def test_every_chapter_opens_with_its_question_and_says_how_long_it_takes():
    assert len(CHAPTERS) >= 11
    for name in CHAPTERS:
        title, time, question, *_ = document(name).select("article section > :is(h1, p)")
        assert re.fullmatch(r"\d+ minutes", time.text)
        assert title.find_next_siblings(["p", "div"])[:2] == [time, question]
        assert question.em.text == question.text
        asked = [p.text for p in document(name).select(".figures-here li")]
        assert len(asked) == len(document(name).select(".skip-figure"))
        assert all(words.endswith("?") for words in asked)
        folds = document(name).select(".openings > details")
        assert [fold.get("open") for fold in folds] in ([None] * 2, [None] * 3)


def test_right_under_the_question_of_a_chapter_stands_its_moving_figure():
    for name in CHAPTERS:
        question = document(name).select("article section > p")[1]
        cell, words, *_ = question.find_next_siblings(["p", "div", "h2"])
        assert cell.select_one(".skip-figure#figure-1"), name
        assert cell.select_one("script[type$='widget-view+json']"), name
        assert words.name == "p", name


@pytest.mark.parametrize("page_name", CHAPTERS)
def test_on_a_phone_the_figure_begins_on_the_first_screen(visit, page_name):
    page = visit(width=390, height=844, has_touch=True).open(page_name)
    figure = page.locator(".rope-place").first
    assert figure.bounding_box()["y"] < 0.6 * 844


def test_every_picture_of_a_notebook_is_on_its_page():
    """A kernel that does not know where pictures go shows none, and says nothing."""
    for name in PAGES:
        notebook = ROOT / name.replace(".html", ".ipynb")
        if not notebook.exists():
            continue
        cells = json.loads(notebook.read_text("utf8"))["cells"]
        drawn = [c["metadata"]["mystnb"]["image"]["alt"] for c in cells if drawing(c)]
        shown = document(name).select(".cell_output img")
        assert [picture["alt"] for picture in shown] == drawn


def test_every_column_of_a_table_has_a_name():
    for name in PAGES:
        assert all(head.text.strip() for head in document(name).select("th")), name


def drawing(cell):
    return "image" in cell["metadata"].get("mystnb", {})


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_keeps_its_place_wears_the_theme_and_leads_to_the_whole_of_it(visit, theme):
    page = visit(theme=theme).open("notebooks/04-many-planes.html")
    for picture in page.locator(".cell_output img").all():
        style = picture.get_attribute("style")
        assert re.fullmatch(r"width: [\d.]+px; height: [\d.]+px;", style)
        assert picture.locator("..").get_attribute("href") == picture.get_attribute("src")
        worn = picture.evaluate("e => getComputedStyle(e).filter")
        assert ("invert" in worn) == (theme == "dark")


def test_on_a_phone_the_words_in_a_picture_are_eleven_pixels_high(visit):
    """The smallest have 9 points: 18 pixels in a file of 144 dots to an inch."""
    page = visit(width=390, height=844).open("notebooks/04-many-planes.html")
    shares = page.locator(".cell_output img").evaluate_all(
        """all => Promise.all(all.map(async e => {
            e.loading = 'eager';
            await e.decode();
            return e.getBoundingClientRect().width / e.naturalWidth;
        }))"""
    )
    assert min(shares) * 18 > 11


def test_on_paper_a_chapter_has_its_number_and_nothing_to_press(visit):
    page = visit().open("notebooks/06-aliasing.html")
    shapes = "all => all.map(e => e.clientWidth / e.clientHeight)"
    before = page.locator("canvas").evaluate_all(shapes)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": int(A4_INSIDE), "height": 1000})
    settle(page)
    after = page.locator("canvas").evaluate_all("all => all.map(e => e.width / e.height)")
    assert page.locator("canvas").evaluate_all(shapes) == pytest.approx(after, rel=0.02)
    assert len(before) >= 3
    title = page.locator("h1:visible")
    assert re.match(r"\d+\. Aliasing", title.inner_text())
    pressed = "article :is(button, summary, .rope-track, input[type=text], .cite, .copybtn)"
    shown = "all => all.filter(e => e.checkVisibility()).map(e => e.outerHTML.slice(0, 80))"
    assert page.locator(pressed).evaluate_all(shown) == []
    cut = "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText)"
    assert page.locator("article pre:visible").evaluate_all(cut) == []


def test_a_copy_button_says_which_code_it_copies(visit):
    page = visit().open("notebooks/04-many-planes.html")
    found = page.locator("button.copybtn").evaluate_all(
        """all => all.map(e => [
            e.getAttribute('aria-label'),
            e.closest('.highlight').querySelector('pre').textContent.trim().split('\\n')[0],
        ])"""
    )
    assert len(found) > 20
    for label, line in found:
        assert label == f"Copy the code that begins: {line[:60]}"


def test_the_tab_key_stops_at_code_only_where_it_scrolls(visit):
    page = visit().open("notebooks/04-many-planes.html")
    stops = page.locator("article pre").evaluate_all(
        "all => all.filter(e => e.tabIndex === 0 && e.scrollWidth <= e.clientWidth).length"
    )
    assert stops == 0


def test_a_keyboard_passes_a_figure_or_goes_to_the_next(visit):
    page = visit(reduced_motion="reduce").open("notebooks/04-many-planes.html")
    first, second = page.locator(".rope-box").all()[:2]
    past, following = page.locator("#figure-1 a").all()
    within = "figure => figure.contains(document.activeElement)"
    for link, lands_in_second in ((past, False), (following, True)):
        link.focus()
        assert link.bounding_box()["width"] > 50  # seen while it has the focus
        link.press("Enter")
        for _ in range(4):  # the links before the figure, and its first control
            page.keyboard.press("Tab")
            assert not first.evaluate(within)
            if second.evaluate(within):
                break
        assert second.evaluate(within) == lands_in_second


def test_in_colours_of_the_readers_own_the_selected_button_and_the_track_are_seen(visit):
    page = visit().open("notebooks/04-many-planes.html")
    page.emulate_media(forced_colors="active")
    colour = "e => getComputedStyle(e).backgroundColor"
    group = page.locator(".rope-choice:has([aria-pressed=true])").first
    chosen, other = (group.locator(f"[aria-pressed={is_}]").first for is_ in ("true", "false"))
    assert chosen.evaluate(colour) != other.evaluate(colour)
    track = page.locator(".rope-box .rope-track").first
    look = "e => getComputedStyle(e).appearance"
    assert track.evaluate(look) == "auto"  # the browser's own slider, in these colours
    page.emulate_media(forced_colors="none")
    assert track.evaluate(look) == "none"


@pytest.mark.parametrize("name", ["notebooks/04-many-planes.html", "book/intro.html"])
def test_the_notebook_downloads_as_a_file(visit, name):
    page = visit().open(name)
    page.locator("button[aria-label='Download this page']").click()
    with page.expect_download() as download:
        page.locator("a.btn-download-source-button").click()
    assert download.value.suggested_filename == name.split("/")[-1].replace(".html", ".ipynb")
    with open(download.value.path()) as file:
        assert json.load(file)["nbformat"] == 4


def test_a_reading_path_leaves_its_own_chapters_and_says_what_for(visit):
    page = visit().open("book/intro.html")
    buttons = page.locator(".map-paths button")
    paths = page.locator(".reading-paths > li")
    assert buttons.count() == paths.count() >= 5
    hrefs = "all => all.filter(e => e.checkVisibility()).map(e => e.getAttribute('href'))"

    def cards():
        return page.locator(".map-cards a").evaluate_all(hrefs)

    def pressed():
        return [button.get_attribute("aria-pressed") for button in buttons.all()]

    everything = cards()
    assert len(everything) >= 11
    assert not any(path.is_visible() for path in paths.all())
    for i, path in enumerate(paths.all()):
        assert buttons.nth(i).inner_text() == path.locator("em").text_content()
        buttons.nth(i).press("Enter" if i % 2 else "Space")
        assert pressed() == ["true" if j == i else "false" for j in range(buttons.count())]
        assert [other.is_visible() for other in paths.all()] == [p == "true" for p in pressed()]
        links = {a.get_attribute("href").partition("#")[0] for a in path.locator("a").all()}
        assert cards() == [href for href in everything if href in links] != []
    buttons.last.click()  # a second press takes the path away
    assert (pressed().count("true"), cards()) == (0, everything)


BOXES = """() => Object.fromEntries(
    ['h1', 'h1 ~ p', '.home-doors', '.rope-box', '.rope-line', '.book-map'].map(name => {
        const { left, right, top, bottom } = document.querySelector(`article ${name}`)
            .getBoundingClientRect();
        return [name, { left, right, top, bottom }];
    })
)"""


def test_the_first_screen_of_a_desk_has_the_words_beside_the_figure(visit):
    boxes = visit(reduced_motion="reduce").open("book/intro.html").evaluate(BOXES)
    figure = boxes[".rope-box"]
    for name in ("h1", "h1 ~ p", ".home-doors"):
        assert boxes[name]["right"] <= figure["left"], name
        assert boxes[name]["bottom"] <= 700, name
    assert figure["bottom"] <= 700
    assert boxes[".book-map"]["left"] < figure["left"] < boxes[".book-map"]["right"]


def test_on_a_phone_title_doors_and_picture_follow_each_other(visit):
    page = visit(width=390, height=700, has_touch=True).open("book/intro.html")
    boxes = page.evaluate(BOXES)
    order = ("h1", "h1 ~ p", ".home-doors", ".rope-box", ".book-map")
    for one, two in pairwise(order):
        assert boxes[one]["bottom"] <= boxes[two]["top"], two
    assert boxes[".rope-line"]["top"] < 700


def test_who_comes_with_a_problem_finds_it_in_a_list(visit):
    page = visit().open("book/intro.html")
    links = page.locator(".home-doors li a")
    assert links.count() >= 8
    assert not links.first.is_visible()
    page.locator(".home-doors summary").press("Enter")
    links.filter(has_text="Left padding").click()
    page.wait_for_url("**/notebooks/*.html#left-padding")


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
    page = document("notebooks/A-sources.html")
    assert checks > 80
    assert len(page.select("table tbody tr")) == checks


def test_what_is_wider_than_the_phone_fades_until_its_end(visit):
    page = visit(width=390).open("notebooks/04-many-planes.html")
    code = page.locator(".bd-article div.highlight pre.goes-on").first
    code.wait_for()
    assert "linear-gradient" in code.evaluate("e => getComputedStyle(e).maskImage")
    wide = code.element_handle()
    wide.evaluate("e => { e.scrollLeft = e.scrollWidth }")
    wait_for(page, "e => !e.classList.contains('goes-on')", arg=wide)
    short = page.locator(".bd-article pre").filter(has_text="positions    5").last
    assert "goes-on" not in (short.get_attribute("class") or "")
