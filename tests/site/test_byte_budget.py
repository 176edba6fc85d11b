"""The byte budget on the published page: blocks, words and times follow the controls."""

from rope_minimal.explore.byte_budget import FORMS, SHAPES
from tests.tools.on_page import OnPage

from .figures import state

PAGE = "notebooks/11-gpu-timing.html"
TEXTBOOK, COMPLEX = (list(FORMS)[i] for i in (0, 7))


def test_every_control_changes_picture_and_words(visit):
    seen = visit()
    budget = OnPage(seen.open(PAGE), "byte-budget")
    figure = budget.figure
    caption = figure.locator(".rope-caption")
    assert budget.values(form=TEXTBOOK)["passes"] == 10
    shown = [state(figure)]
    for control, label, name, option in (
        (budget.choose, "Way of writing", "form", COMPLEX),
        (budget.choose, "Shape of x", "shape", list(SHAPES)[1]),
        (budget.press, "Number type", "dtype", "bfloat16"),
        (budget.press, "Machine", "machine", "H200, predicted"),
    ):
        control(label, option)
        budget.values(**{name: option})
        shown.append(state(figure))
    assert len(set(shown)) == len(shown)
    assert "4,800 GB/s" in caption.inner_text()
    assert "Not measured yet." in caption.inner_text()
    budget.button("Reset")
    budget.values(form=TEXTBOOK, dtype="float32", machine="recorded CPU", passes=10)


def test_show_me_walks_from_ten_passes_to_two(visit):
    seen = visit(width=390, theme="dark", reduced_motion="reduce")
    budget = OnPage(seen.open(PAGE), "byte-budget")
    budget.button("Show me")
    assert budget.values(form=TEXTBOOK)["passes"] == 10
    assert budget.values(form=list(FORMS)[-1])["passes"] == 2
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert budget.page.evaluate(overflow) <= 0
    assert seen.problems == []
