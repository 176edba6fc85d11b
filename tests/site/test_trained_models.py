"""The trained models on the published page, by finger and by keyboard."""

from functools import partial

import numpy as np
import pytest
from playwright.sync_api import expect

from experiments import summary
from experiments.encodings import ENCODINGS
from experiments.run import TIMES
from tests.tools.on_page import OnPage

pytestmark = pytest.mark.drawn(1)

PAGE = "notebooks/08-does-it-matter.html"
WORDS = {name: how.words for name, how in ENCODINGS.items()}


def test_rows_and_tasks_are_chosen_by_finger_and_keyboard_on_a_phone(visit):
    page = visit(width=390, height=900, theme="dark", reduced_motion="reduce").open(PAGE)
    models = OnPage(page, "trained-models")
    canvas = models.figure.locator("canvas")
    canvas.scroll_into_view_if_needed()
    frame = canvas.bounding_box()
    page.mouse.click(frame["x"] + 60, frame["y"] + 20 + 10)
    best = models.values(task="copy")["encoding"]
    assert best == WORDS["rope_unmasked"]
    canvas.press("ArrowRight")
    models.values(task="find", encoding=best)
    canvas.press("End")
    models.values(task="language", encoding=best)
    expect(models.figure.locator(".rope-answer")).to_contain_text("in plain sight")
    models.button("in 16 bits")
    models.values(half=True)
    models.button("copy")
    canvas.press("ArrowDown")
    says = models.values(task="copy", half=True)
    name = next(one for one, words in WORDS.items() if words == says["encoding"])
    record = partial(summary.values, summary.load("copy"), name, "accuracy", kind="bfloat16")
    medians = [np.median(record(times=times)) for times in TIMES[:2]]
    assert says["own"]["half"] == pytest.approx(medians)
    models.button("Show me")
    models.values(encoding=WORDS["monotone_b"], task="copy", half=True)
    models.button("Reset")
    models.values(encoding=WORDS["rope"], task="copy", half=False)
