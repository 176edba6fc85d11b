"""The byte budget on the published page: blocks, words and times follow the controls."""

import json

import pytest

from rope_minimal.explore.byte_budget import FORMS, SHAPES

from .figures import state

PAGE = "notebooks/11-gpu-timing.html"
TEXTBOOK, COMPLEX = (list(FORMS)[i] for i in (0, 7))


@pytest.fixture
def budget(visit):
    seen = visit()
    box = seen.open(PAGE).locator(".rope-box:has([data-figure='byte-budget'])")
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


def choose(box, label, option):
    control = box.locator(".rope-controls > *").filter(has_text=label).first
    if control.locator("select").count():
        control.locator("select").select_option(option)
    else:
        control.get_by_role("button", name=option, exact=True).click()


def test_every_control_changes_picture_and_words(budget):
    figure = budget.locator(".rope-figure")
    caption = figure.locator(".rope-caption")
    assert values(budget, form=TEXTBOOK)["passes"] == 10
    shown = [state(figure)]
    for label, name, option in (
        ("Way of writing", "form", COMPLEX),
        ("Shape of x", "shape", list(SHAPES)[1]),
        ("Number type", "dtype", "bfloat16"),
        ("Machine", "machine", "H200, predicted"),
    ):
        choose(budget, label, option)
        values(budget, **{name: option})
        shown.append(state(figure))
    assert len(set(shown)) == len(shown)
    assert "4,800 GB/s" in caption.inner_text()
    assert "Not measured yet." in caption.inner_text()
    figure.get_by_role("button", name="Reset").click()
    values(budget, form=TEXTBOOK, dtype="float32", machine="recorded CPU", passes=10)


def test_show_me_walks_from_ten_passes_to_two(visit):
    seen = visit(width=390, theme="dark", reduced_motion="reduce")
    box = seen.open(PAGE).locator(".rope-box:has([data-figure='byte-budget'])")
    box.get_by_role("button", name="Show me").click()
    assert values(box, form=TEXTBOOK)["passes"] == 10
    assert values(box, form=list(FORMS)[-1])["passes"] == 2
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert box.page.evaluate(overflow) <= 0
    assert seen.problems == []
