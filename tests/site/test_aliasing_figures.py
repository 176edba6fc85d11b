"""The figures of chapters 6, 7 and 10 by keyboard, pointer and their controls."""

import math

import pytest
from playwright.sync_api import expect

from rope_minimal import inverse_frequencies
from ropebook import aliasing
from tests.tools.browser import wait_for
from tests.tools.on_page import OnPage

from .figures import unfold

pytestmark = pytest.mark.drawn(5)

ALIASING = "notebooks/06-aliasing.html"
CONTEXTS = "notebooks/07-longer-contexts.html"
PRECISION = "notebooks/10-precision.html"


@pytest.fixture
def on_page(opened_once):
    def open_figure(name: str, figure: str) -> OnPage:
        return OnPage(opened_once(name).page, figure)

    return open_figure


def test_what_is_typed_chosen_and_pressed_reaches_the_figures(on_page):
    """What they make of it is compared with the package where there is no browser."""
    clock = on_page(ALIASING, "clock")
    clock.write("Hands", 7)
    clock.values(pairs=7, m=710, count=4, nearest=49_769)
    expect(clock.figure.locator(".rope-answer")).to_contain_text("yes:")

    wrap = on_page(ALIASING, "wrap-explorer")
    wrap.write("Head width", 6)
    wrap.write("Turn per token", 0.4096)
    mean = float(aliasing.mean_cosine(7, 0.4096 * inverse_frequencies(6)))
    assert wrap.values(dim=6, distance=7, theta=0.4096)["mean"] == pytest.approx(mean)

    dial = on_page(ALIASING, "horizon-dial")
    dial.write("All hands slowed", 1000.0)
    slowest = aliasing.cosine_horizon(inverse_frequencies(128)[0] / 1000)
    dial.values(slower=1000, cosine=slowest)

    faders = on_page(CONTEXTS, "rescaling-faders")
    faders.choose("Rescaling", "PI")
    assert set(faders.values(preset="PI", count=0)["multipliers"]) == {1 / 16}
    faders.button("YaRN: paper against code")
    assert faders.values(preset="YaRN, paper", compare="YaRN, code")["difference"]["ratio"] > 1

    scope = on_page(PRECISION, "precision-microscope")
    unfold(scope.box)
    scope.press("Number type", "fp16")
    scope.choose("What is rounded", "everything")
    scope.press("Error of the", "angle")
    frame = scope.figure.locator(".rope-canvas").bounding_box()
    for x in (60, frame["width"] - 22):
        scope.figure.locator(".rope-canvas").hover(position={"x": x, "y": 150})
        says = scope.values(dtype="fp16", stage="everything", show="angle")
        assert (says["error"] == "infinite") == (x > 60)  # fp16 ends at 65,504


def test_a_tap_and_the_arrow_keys_choose_a_distance(on_page):
    clock = on_page(ALIASING, "clock")
    clock.write("Hands", 64)
    canvas = clock.figure.locator(".rope-canvas")
    canvas.press("ArrowRight")
    clock.values(m=103_993)
    canvas.press("ArrowLeft")
    canvas.press("ArrowLeft")
    clock.values(m=333)
    canvas.press("ArrowUp")
    clock.values(m=334)
    canvas.press("Home")
    clock.values(m=1)
    frame = canvas.bounding_box()
    left, right = 44, frame["width"] - 26
    D = float(aliasing.code_distance(44, inverse_frequencies(128)))
    x = left + (right - left) * math.log(44) / math.log(131_072)
    canvas.click(position={"x": x + 3, "y": 22 + (262 - 22) * (1 - D / 2) - 3})
    clock.values(m=44)
    clock.button("Reset")
    clock.values(m=710, pairs=1)


def test_faders_move_by_keyboard_and_by_their_handles(on_page):
    faders = on_page(CONTEXTS, "rescaling-faders")
    faders.choose("Rescaling", "as trained")
    canvas = faders.figure.locator(".rope-canvas").first
    canvas.press("End")
    faders.values(pair=63)
    canvas.press("ArrowDown")
    wait_for(
        faders.page,
        "figure => JSON.parse(figure.dataset.values).multipliers[63] < 1",
        arg=faders.figure.element_handle(),
    )
    assert faders.values()["multipliers"] == pytest.approx([1.0] * 63 + [2.0**-0.25])

    def stroke(start, end):
        """Draw from a height of the faders to another, from the first fader to the last."""
        frame = canvas.bounding_box()
        high = lambda part: frame["y"] + 24 + (1 - part) * (frame["height"] - 64)  # noqa: E731
        faders.page.mouse.move(frame["x"] + 46, high(start))
        faders.page.mouse.down()
        faders.page.mouse.move(frame["x"] + 46, high(end))
        faders.page.mouse.move(frame["x"] + frame["width"] - 10, high(end), steps=4)
        faders.page.mouse.up()

    canvas.scroll_into_view_if_needed()
    before = faders.values()["multipliers"]
    stroke(0.15, 0.1)  # there is no handle
    assert faders.values()["multipliers"] == before
    stroke(0.845, 0.15)  # × 1 stands at 0.07 + 0.93 · 5/6
    says = faders.values(count=0, pair=63)
    assert len(set(says["multipliers"])) == 1
    assert says["multipliers"][0] < 1 / 16
    faders.button("Reset")
    assert faders.values(preset="as trained")["multipliers"][0] == 1


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        (
            ALIASING,
            {
                "horizon-dial": {"slower": 2048 / math.pi},
                "wrap-explorer": {"theta": math.pi / 2048},
                "clock": {"pairs": 64, "m": 710},
            },
        ),
        (CONTEXTS, {"rescaling-faders": {"compare": "YaRN, code"}}),
        (PRECISION, {"precision-microscope": {"stage": "positions", "show": "cosine"}}),
    ],
)
def test_show_me_ends_where_it_says_also_with_motion_reduced(on_page, name, ends):
    for figure, expected in ends.items():
        shown = on_page(name, figure)
        shown.page.emulate_media(reduced_motion="reduce")
        shown.button("Show me")
        shown.values(**expected)
        shown.page.emulate_media(reduced_motion="no-preference")
