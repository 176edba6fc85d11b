"""The recent methods on the published page, by finger and by keyboard."""

import re

import numpy as np
import pytest

from experiments import recent, summary
from experiments.figure import METHODS
from tests.tools.on_page import OnPage

pytestmark = pytest.mark.drawn(1)

PAGE = "notebooks/16-after-rope.html"
NAMES = {words: name for name, (words, _) in METHODS.items()}


def test_methods_and_tasks_are_chosen_by_finger_and_keyboard_on_a_phone(visit):
    page = visit(width=390, height=900, theme="dark", reduced_motion="reduce").open(PAGE)
    methods = OnPage(page, "recent-methods")
    canvas = methods.figure.locator("canvas")
    canvas.scroll_into_view_if_needed()
    frame = canvas.bounding_box()
    page.mouse.click(frame["x"] + 40, frame["y"] + 8 + 17 * 12.5)
    methods.values(first="TAPA")
    canvas.press("ArrowUp")
    methods.values(first="T5 bias")
    canvas.press("Home")
    methods.values(task="copy", first="T5 bias")
    methods.figure.get_by_role("button", name=re.compile("^recall")).click()
    methods.write("Length (windows)", 8)
    now = methods.values(task="recall", times=8)
    record = recent.records()["recall"]
    wanted = [
        np.median(summary.values(record, NAMES[now[n]], times=8)) for n in ("first", "second")
    ]
    assert now["medians"] == pytest.approx(wanted)
    methods.button("Show me")
    methods.button("Reset")
    methods.values(task="language", first="PoPE", second="RoPE", times=1)
