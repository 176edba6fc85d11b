"""A model is trained in the page: by its buttons, in a worker, and without one from a file."""

import pytest

from tests.tools.browser import wait_for
from tests.tools.on_page import OnPage

from .conftest import SITE

PAGE = "notebooks/train-it-yourself.html"
LONG = 180_000  # milliseconds, for a machine that is busy

SHOWS = """([figure, wanted]) => {
    const { phase, step, scores } = JSON.parse(figure.dataset.values);
    return phase === wanted.phase && step >= (wanted.step ?? 0)
        && scores.length === (wanted.scores ?? 0);
}"""


class Trainer(OnPage):
    """The figure, and how one waits for it."""

    def __init__(self, page):
        super().__init__(page, "train-it")

    def until(self, **wanted):
        """Wait for a phase, and at least a step."""
        wait_for(self.page, SHOWS, [self.figure.element_handle(), wanted], timeout=LONG)
        return self.values()


def read(ours, node):
    """Return what a node says once the figure has drawn."""
    ours.values()
    return node.inner_text()


def wait_until(page, found):
    """Wait until a list holds something."""
    for _ in range(100):
        if found:
            return
        page.wait_for_timeout(50)


def asked_for(seen):
    return [url for url in seen.requests if "training.js" in url]


@pytest.mark.parametrize("width", [1280, 390])
def test_it_trains_pauses_resumes_stretches_and_goes_back(visit, width):
    seen = visit(width=width)
    page = seen.open(PAGE)
    ours = Trainer(page)
    page.wait_for_timeout(300)
    assert asked_for(seen) == []
    assert page.workers == []

    ours.figure.get_by_role("button", name="Start", exact=True).dblclick()  # is one start
    ours.until(phase="training", step=5)
    assert len(asked_for(seen)) == len(page.workers) == 1
    answer = ours.figure.locator(".rope-answer")
    ours.choose("Encoding", "T5 bias")
    assert "RoPE trains, step" in (said := read(ours, answer))
    assert "You can start T5 bias when it is done." in said
    ours.choose("Encoding", "RoPE")
    ours.button("Pause")
    rests = ours.until(phase="paused", step=5)["step"]
    page.wait_for_timeout(600)
    assert ours.values()["step"] <= rests + 20, "a report may be on its way"
    rests = ours.values()["step"]
    page.wait_for_timeout(600)
    assert ours.values()["step"] == rests
    ours.button("Resume")
    ours.until(phase="done", step=200)

    ours.button("Stretch")
    scores = ours.until(phase="done", step=200, scores=4)["scores"]
    assert scores[0] > 0.9
    assert "texts 8 times as long" in ours.figure.locator(".rope-answer").inner_text()
    ours.choose("Encoding", "ALiBi")
    ours.button("Start")
    assert ours.until(phase="training", step=1)["runs"] == 2
    ours.button("Pause")
    ours.choose("Encoding", "no encoding")
    assert "Start drops it and trains no encoding on copy." in read(ours, answer)
    ours.button("Start")
    ours.until(phase="training", step=1)
    ours.press("Task", "find")
    assert "Start drops it and trains no encoding on find." in read(ours, answer)
    ours.button("Start")
    ours.until(phase="training", step=1)
    assert "No encoding trains, step" in read(ours, answer)
    ours.button("Reset")
    assert ours.until(phase="none")["runs"] == 0
    page.wait_for_timeout(600)
    assert ours.values()["phase"] == "none", "what was on its way is not taken"
    assert (len(asked_for(seen)), seen.problems, seen.foreign) == (1, [], [])


def test_a_pause_before_the_trainer_comes_is_kept_and_there_is_one_trainer(visit):
    seen = visit()
    page = seen.open(PAGE)
    held = []
    page.route("**/training.js*", lambda route: held.append(route))
    workers = []
    page.on("worker", lambda worker: workers.append(worker))
    ours = Trainer(page)
    ours.button("Start")
    ours.button("Pause")
    assert ours.until(phase="paused")["step"] == 0
    ours.button("Resume")
    ours.until(phase="training")
    ours.button("Pause")
    wait_until(page, held)
    for one in held:
        one.continue_()
    page.wait_for_timeout(1500)
    assert ours.until(phase="paused")["step"] <= 3
    ours.button("Resume")
    ours.until(phase="training", step=5)
    assert (len(held), len(workers), seen.problems) == (1, 1, [])


def test_the_keyboard_alone_starts_and_pauses(visit):
    page = visit().open(PAGE)
    ours = Trainer(page)
    ours.box.locator("select").first.focus()
    page.keyboard.press("n")  # no encoding
    start = ours.figure.get_by_role("button", name="Start", exact=True)
    start.focus()
    page.keyboard.press("Enter")
    ours.until(phase="training", step=1)
    assert "Pause" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Space")
    ours.until(phase="paused", step=1)


def test_a_page_that_was_opened_as_a_file_trains_beside_the_page(browser):
    page = browser.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((SITE / PAGE).as_uri())
    page.locator("[data-figure='train-it'][data-drawn]").wait_for()
    ours = Trainer(page)
    ours.button("Start")
    ours.until(phase="training", step=3)
    ours.button("Reset")
    ours.until(phase="none")
    assert (page.workers, problems) == ([], [])
    page.close()


def test_a_trainer_that_does_not_come_is_told_and_asked_for_again(visit):
    seen = visit()
    page = seen.open(PAGE)
    page.route("**/training.js*", lambda route: route.abort())
    ours = Trainer(page)
    ours.button("Start")
    ours.figure.get_by_text("The trainer did not come").first.wait_for()
    page.unroute("**/training.js*")
    ours.button("Start")
    ours.until(phase="training", step=1)
