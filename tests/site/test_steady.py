"""Nothing jumps: a page stays where it is while it loads, and a link lands where it leads."""

import pytest

from tests.tools.browser import wait_for

from .conftest import FIGURES_STAND, WITH_WIDGETS
from .figures import settle

WIDTHS = pytest.mark.parametrize("width", [1280, 390])
# the largest sum of shifts within five seconds, with no pause of a second, as browsers report it
SHIFT = """async () => {
    const shifts = [];
    const observer = new PerformanceObserver(list => shifts.push(...list.getEntries()));
    observer.observe({ type: 'layout-shift', buffered: true });
    await new Promise(go => setTimeout(go, 200));
    let [worst, sum, start, last] = [0, 0, 0, -Infinity];
    for (const { value, startTime, hadRecentInput } of shifts) {
        if (hadRecentInput) continue;
        if (startTime - last > 1000 || startTime - start > 5000) [sum, start] = [0, startTime];
        sum += value;
        last = startTime;
        worst = Math.max(worst, sum);
    }
    return worst;
}"""
# by how much the height of a figure or a question differs from the place held open for it
BESIDE = """() => [...document.querySelectorAll('.cell_output:has(> .rope-place)')].map(at => {
    const held = at.style.getPropertyValue(innerWidth > 700 ? '--desk' : '--phone');
    return Math.abs(at.getBoundingClientRect().height - parseFloat(held || 0));
})"""
# the least part of its held height that any place of a figure has in a frame
LOWEST = """window.lowest = 1;
requestAnimationFrame(function look() {
    for (const at of document.querySelectorAll('.place')) {
        const held = parseFloat(getComputedStyle(at).getPropertyValue('--phone'));
        if (held) window.lowest = Math.min(window.lowest, at.offsetHeight / held);
    }
    requestAnimationFrame(look);
});"""
MEASURE = "build, run `.venv/bin/python -m tests.tools.heights`, and build again"
PLACES = """() => [...document.querySelectorAll(
    '.bd-article :is(section[id], .admonition[id]):not(:first-child)'
)].map(place => place.id)"""
# how far below the upper edge of the window, under the bar at its top, a place stands
ABOVE = """name => {
    const place = document.getElementById(name);
    const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    const bar = document.querySelector('.bd-header-article').getBoundingClientRect().bottom;
    return end ? 0 : place.getBoundingClientRect().top - Math.max(bar, 0);
}"""


@WIDTHS
def test_page_stays_where_it_is_while_it_loads(visit, page_name, width):
    for _ in range(3):  # a busy machine may show a font late
        page = visit(width=width, has_touch=width < 700).open(page_name)
        if (shift := page.evaluate(SHIFT)) < 0.1:
            break
    assert shift < 0.1
    assert max(page.evaluate(BESIDE), default=0) < 150, MEASURE


@pytest.mark.parametrize("page_name", ["notebooks/09-attention.html"])  # with a question in it
def test_a_place_stays_open_until_its_figure_is_drawn(visit, page_name):
    seen = visit(width=390, has_touch=True)
    seen.page.add_init_script(LOWEST)
    assert seen.open(page_name).evaluate("window.lowest") > 0.8


def test_the_fonts_of_the_text_are_asked_for_before_its_style(visit):
    page = visit().open("book/notation.html")
    asked = page.evaluate(
        """() => performance.getEntriesByType('resource')
            .map(entry => entry.name.split('/').pop())
            .filter(name => /source-serif|style\\.css/.test(name))"""
    )
    assert [name.partition(".")[0] for name in asked] == [
        "source-serif-4",
        "source-serif-4-italic",
        "style",
    ]


@WIDTHS
@pytest.mark.parametrize("page_name", WITH_WIDGETS)
def test_a_link_from_elsewhere_lands_where_it_leads(visit, page_name, width):
    seen = visit(width=width, has_touch=width < 700, reduced_motion="reduce")
    page = seen.open(page_name)
    places = page.evaluate(PLACES)
    landed = page.evaluate(
        f"names => names.map(name => {{ location.hash = name; return ({ABOVE})(name); }})", places
    )
    missed = dict(zip(places, landed, strict=True))
    assert {name: by for name, by in missed.items() if not -1 <= by <= 50} == {}
    for place in places[-2:][:1]:  # far down; the last of all may be where the page ends
        page.goto("about:blank")
        page.goto(f"{seen.site}{page_name}#{place}")
        page.wait_for_load_state("networkidle")
        wait_for(page, FIGURES_STAND)
        settle(page)
        assert -1 <= page.evaluate(ABOVE, place) <= 50, place
