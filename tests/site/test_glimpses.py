"""The three small panels of the first page: what they say, and what a press changes."""

import json
import math

import numpy as np
import pytest

from experiments.real import heads
from rope_minimal import inverse_frequencies, rotate_complex

HOME = "book/intro.html"


@pytest.fixture(params=[{}, {"width": 390, "height": 844, "theme": "dark"}], ids=["desk", "phone"])
def panels(request, visit):
    seen = visit(**request.param)
    figure = seen.open(HOME).locator(".rope-glimpses")
    figure.scroll_into_view_if_needed()
    yield figure
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= request.param.get(
        "width", 1280
    )
    assert seen.problems == []
    assert seen.foreign == []


def says(figure) -> dict:
    return json.loads(figure.get_attribute("data-values"))


def test_a_model_is_chosen_and_its_pairs_are_counted(panels):
    waves = 2 * math.pi / inverse_frequencies(128, 1e6)
    before = panels.locator("svg").first.inner_html()
    panels.get_by_role("button", name="Qwen2.5").click()
    assert says(panels)["unfinished"] == (waves > 32_768).sum()
    assert panels.locator("svg").first.inner_html() != before
    panels.get_by_role("button", name="DeepSeek-V3").click()
    assert "64 of 192 channels" in panels.locator("p").first.inner_text()


def test_a_word_reads_the_word_before_until_the_fastest_pairs_are_left_out(panels):
    """By a softmax written here, with rotations as complex numbers."""
    q, k = (x[0].double().numpy() for x in heads.unpacked(heads.load()["heads"][0]))
    shares = []
    for first in (0, 4):
        one, other = (
            rotate_complex(x, np.arange(len(x)), base=1e5, interleaved=True)[:, 2 * first :]
            for x in (q, k)
        )
        scores = other[:61] @ one[60] / 8
        weights = np.exp(scores - scores.max())
        shares.append((weights / weights.sum()).max() * 100)
    panels.get_by_role("button", name="all 32 pairs").click()
    assert says(panels)["share"] == pytest.approx(shares[0], abs=0.6)
    assert "the word before" in panels.locator("p[role=status]").nth(1).inner_text()
    panels.get_by_role("button", name="4 fastest left out").click()
    assert says(panels)["share"] == pytest.approx(shares[1], abs=0.6)
    assert "the first token" in panels.locator("p[role=status]").nth(1).inner_text()


def test_a_bug_is_named(panels):
    answer = panels.locator("p[role=status]").nth(2)
    pictures = set()
    for name, verdict in (
        ("Keys are rotated the other way", "Not so."),
        ("Positions made in bfloat16", "Yes."),
    ):
        panels.get_by_role("button", name=name).click()
        assert answer.inner_text().startswith(verdict)
        pictures.add(panels.locator("svg").nth(1).inner_html())
        pressed = panels.get_by_role("group", name="Bugs").locator("[aria-pressed=true]")
        assert pressed.all_inner_texts() == [name]
    assert len(pictures) == 2
