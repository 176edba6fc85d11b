"""The byte budget on the published page: its rows by finger and by keyboard."""

import pytest

from ropebook.figures.byte_budget import FORMS
from tests.tools.on_page import OnPage

pytestmark = pytest.mark.drawn(1)

PAGE = "notebooks/11-gpu-timing.html"


def test_a_row_is_chosen_where_it_is_touched_and_show_me_walks_from_ten_passes_to_two(visit):
    seen = visit(width=390, height=900, has_touch=True, theme="dark", reduced_motion="reduce")
    page = seen.open(PAGE)
    budget = OnPage(page, "byte-budget")
    budget.figure.locator("canvas").tap(position={"x": 30, "y": 58 + 3 * 30 + 16})
    budget.values(form=list(FORMS)[3])
    budget.figure.locator("canvas").press("ArrowDown")
    budget.values(form=list(FORMS)[4])
    budget.button("Show me")
    assert budget.values(form=next(iter(FORMS)))["passes"] == 10
    assert budget.values(form=list(FORMS)[-1])["passes"] == 2
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(overflow) <= 0
    assert seen.problems == []
