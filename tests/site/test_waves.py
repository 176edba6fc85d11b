"""The waves on the published page: picture, words and values follow the controls."""

import json

import pytest
from playwright.sync_api import expect

from .figures import state

PAGE = "notebooks/04-many-planes.html"


@pytest.fixture
def waves(visit):
    seen = visit()
    box = seen.open(PAGE).locator(".rope-box:has([data-figure='waves'])")
    yield box
    assert seen.problems == []
    assert seen.foreign == []


def values(box, **expected):
    """Wait until the figure shows these settings; return all that it says."""
    figure = box.locator(".rope-figure")
    figure.page.wait_for_function(
        """([figure, expected]) => {
            const values = JSON.parse(figure.dataset.values);
            return Object.entries(expected).every(([name, wanted]) => values[name] === wanted);
        }""",
        arg=[figure.element_handle(), expected],
        timeout=10_000,
    )
    return json.loads(figure.get_attribute("data-values"))


def press(box, label, option):
    control = box.locator(".rope-controls > *").filter(has_text=label).first
    control.get_by_role("button", name=option, exact=True).click()


def test_every_choice_changes_picture_and_words(waves):
    figure = waves.locator(".rope-figure")
    start = values(waves, pairs=64, content="key = query", aim=60, distance=60)
    assert (start["score"], start["best"]) == (pytest.approx(128), 60)
    shown = [state(figure)]
    for option in ("1", "2", "8"):
        press(waves, "Waves", option)
        values(waves, pairs=int(option))
        shown.append(state(figure))
    for option in ("fast half", "slow half", "random"):
        press(waves, "Content", option)
        values(waves, content=option)
        shown.append(state(figure))
    first = values(waves, content="random", draw=0)
    figure.get_by_role("button", name="Other random content").click()
    assert values(waves, draw=1)["height"] != first["height"]
    figure.get_by_role("button", name="Reset").click()
    values(waves, pairs=64, content="key = query", draw=0)
    assert len(set(shown)) == len(shown)


def test_arrow_keys_move_the_distance_and_turn_the_key(waves):
    picture = waves.locator("canvas")
    picture.focus()
    picture.press("Shift+ArrowRight")
    values(waves, distance=70, aim=60)
    picture.press("ArrowUp")
    assert values(waves, distance=70, aim=61)["best"] == 61
    picture.press("Home")
    values(waves, distance=0)
    waves.get_by_role("button", name="Go to the peak").click()
    assert values(waves, distance=61)["score"] == pytest.approx(128)


def test_one_wave_is_spoken_of_as_one(waves):
    press(waves, "Waves", "1")
    caption = waves.locator(".rope-caption")
    expect(caption).to_contain_text("the only wave is 2.00, 100% of its height")
    press(waves, "Waves", "2")
    expect(caption).to_contain_text("both waves add up to 4.00, 100% of all heights together")


def test_show_me_ends_where_it_began_with_motion_reduced(visit):
    seen = visit(width=390, theme="dark", reduced_motion="reduce")
    box = seen.open(PAGE).locator(".rope-box:has([data-figure='waves'])")
    box.get_by_role("button", name="Show me").click()
    for pairs in (1, 2, 8, 64):
        values(box, pairs=pairs, content="key = query")
    for content in ("slow half", "fast half", "random", "key = query"):
        values(box, content=content, pairs=64)
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert box.page.evaluate(overflow) <= 0
    assert seen.problems == []
