"""Where a chapter gives its reader something to move: early, and again and again."""

from itertools import pairwise

import pytest

from .test_reading import CHAPTERS

SCREEN = 800  # pixels, of a window of 1280 by 800
APART = 10_000
# from where to where each moving figure and each living cell stands, and where the chapter ends
PLACES = """() => {
    const all = [...document.querySelectorAll('.skip-figure + .cell_output, .cell.tag_live')];
    const end = document.querySelector('.bd-article').getBoundingClientRect().bottom;
    return [...all.map(place => place.getBoundingClientRect()), { top: end, bottom: end }]
        .map(({ top, bottom }) => [top + scrollY, bottom + scrollY])
        .sort(([one], [other]) => one - other);
}"""


@pytest.mark.parametrize("page_name", CHAPTERS)
def test_a_chapter_moves_on_its_second_screen_at_the_latest_and_then_again(visit, page_name):
    page = visit(width=1280, height=SCREEN).open(page_name)
    places = page.evaluate(PLACES)
    assert len(places) > 2
    assert places[0][0] < 2 * SCREEN
    between = [top - bottom for (_, bottom), (top, _) in pairwise(places)]
    assert max(between) < APART, [round(gap) for gap in between]
