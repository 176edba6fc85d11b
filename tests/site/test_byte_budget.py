"""The byte budget on the published page: rows, words and times follow the controls."""

import pytest

from ropebook.figures.byte_budget import FORMS, SHAPES
from tests.tools.on_page import OnPage

from .figures import state

pytestmark = pytest.mark.drawn(1)

PAGE = "notebooks/11-gpu-timing.html"
TEXTBOOK, COMPLEX = (list(FORMS)[i] for i in (0, 7))


def test_every_control_changes_picture_and_words(visit):
    seen = visit()
    budget = OnPage(seen.open(PAGE), "byte-budget")
    figure = budget.figure
    answer, numbers = (figure.locator(f".rope-{what}") for what in ("answer", "caption"))
    assert budget.values(form=TEXTBOOK)["passes"] == 10
    shown = [state(figure)]
    for _ in range(7):
        figure.locator("canvas").press("ArrowDown")
    budget.values(form=COMPLEX, passes=2)
    shown.append(state(figure))
    budget.box.get_by_role("button", name="More settings").click()
    for control, label, name, option, machine, said in (
        (budget.press, "Number type", "dtype", "bfloat16", "NVIDIA H100", "5.9"),
        (budget.choose, "Shape of x", "shape", next(iter(SHAPES)), "NVIDIA H100", "6.5"),
        (budget.press, "Machine", "machine", "CPU", "AMD EPYC", "5.2"),
    ):
        control(label, option)
        budget.values(**{name: option})
        shown.append(state(figure))
        assert machine in numbers.inner_text()
        assert f"took {said} times as long" in answer.inner_text()
    assert len(set(shown)) == len(shown)
    budget.button("Reset")
    budget.values(form=TEXTBOOK, dtype="float32", machine="GPU", passes=10)
    assert seen.problems == []


def test_a_row_is_chosen_where_it_is_touched_and_show_me_walks_from_ten_passes_to_two(visit):
    seen = visit(width=390, height=900, has_touch=True, theme="dark", reduced_motion="reduce")
    page = seen.open(PAGE)
    budget = OnPage(page, "byte-budget")
    budget.figure.locator("canvas").tap(position={"x": 30, "y": 58 + 3 * 30 + 16})
    budget.values(form=list(FORMS)[3])
    budget.button("Show me")
    assert budget.values(form=TEXTBOOK)["passes"] == 10
    assert budget.values(form=list(FORMS)[-1])["passes"] == 2
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(overflow) <= 0
    assert seen.problems == []
