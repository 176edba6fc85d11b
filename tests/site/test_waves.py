"""The waves on the published page: picture, words and values follow the controls."""

import pytest
from playwright.sync_api import expect

from tests.tools.on_page import OnPage

pytestmark = pytest.mark.drawn(2)

PAGE = "notebooks/04-many-planes.html"


@pytest.fixture
def waves(opened_once):
    seen = opened_once(PAGE)
    yield OnPage(seen.page, "waves")
    assert seen.problems == []
    assert seen.foreign == []


def test_each_draw_of_random_content_is_another(waves):
    waves.button("Random content")
    first = waves.values(content="random", draw=0)
    waves.button("Random content")
    assert waves.values(draw=1)["height"] != first["height"]
    waves.button("Reset")
    waves.values(pairs=64, content="key = query", draw=0)


def test_arrow_keys_move_the_distance_and_turn_the_key(waves):
    picture = waves.figure.locator("canvas")
    picture.focus()
    picture.press("Shift+ArrowRight")
    waves.values(distance=70, aim=60)
    picture.press("ArrowUp")
    assert waves.values(distance=70, aim=61)["best"] == 61
    picture.press("Home")
    waves.values(distance=0)
    expect(waves.figure.locator(".rope-answer")).to_contain_text("crests meet at distance 61;")


def test_show_me_ends_where_it_began_with_motion_reduced(visit):
    seen = visit(width=390, theme="dark", reduced_motion="reduce")
    seen.page.clock.install()  # a reader gets time for each picture, a test need not take it
    waves = OnPage(seen.open(PAGE), "waves")
    waves.button("Show me")
    for pairs in (1, 2, 8, 64):
        waves.values(pairs=pairs, content="key = query")
        seen.page.clock.fast_forward(2000)
    for content in ("slow half", "fast half", "random", "key = query"):
        waves.values(content=content, pairs=64)
        seen.page.clock.fast_forward(2000)
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert waves.page.evaluate(overflow) <= 0
    assert seen.problems == []
