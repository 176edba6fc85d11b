"""Live cells in the built book: nothing before the reader asks, then Python, and it can be stopped.

The measurements (bytes, seconds) are printed at the end of the run.
"""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.tools.browser import wait_for
from tests.tools.report import AXE

from .conftest import SITE, pages_with

pytestmark = pytest.mark.drawn(6)

LIVE = pages_with("live-cells.js")
DERIVATIONS = ["notebooks/02-complex-numbers.html", "notebooks/03-linear-algebra.html"]
PATIENCE = 120_000  # milliseconds; for a machine that does much else
SETTLED = "cell => ['done', 'error', 'failed'].includes(cell.dataset.live)"

HEAD = """\
import sympy as sp
from ropebook.proofs import check_relative
theta = sp.Symbol("theta", real=True)
"""
TRUE = HEAD + "check_relative(lambda x, m: x * sp.exp(sp.I * m * theta))"
WRONG_SIGN = HEAD + (
    "check_relative(lambda q, m: q * sp.exp(sp.I * m * theta),"
    " lambda k, n: k * sp.exp(-sp.I * n * theta))"
)
STEP = """\
import sympy as sp
from ropebook.proofs import Derivation
a, b, c = sp.symbols("a b c", real=True)
trial = Derivation("trial", "Angle difference", {c: sp.cos(a - b)})
trial.given("cosine", sp.Eq(c, sp.cos(a - b)), "the cosine of a difference")
trial.derived(
    "addition",
    sp.Eq(c, sp.cos(a) * sp.cos(b) SIGN sp.sin(a) * sp.sin(b)),
    "the addition theorem",
    follows="cosine",
)
trial.verdict("addition")
"""


class LiveCell:
    """One live cell of an open page, handled as a reader does."""

    def __init__(self, page, index):
        self.box = page.locator(".cell.tag_live").nth(index)
        self.page = page
        self.area = self.box.locator("textarea")
        self.status = self.box.locator(".live-status")
        self.result = self.box.locator(".live-result")

    def edit(self):
        """Open the editor; this asks for Python."""
        self.box.locator(".live-edit").click()
        return self

    def run(self, code=None):
        """Run the cell, changed or as it is; return how it ended."""
        if code is not None:
            self.area.fill(code)
        self.area.press("Control+Enter")
        return self.settled()

    def settled(self):
        handle = self.box.element_handle()
        wait_for(self.page, SETTLED, arg=handle, timeout=PATIENCE)
        return self.box.get_attribute("data-live")


def number_of_cells(name):
    return len(re.findall(r'class="cell tag_live[ "]', (SITE / name).read_text("utf8")))


def python_requests(seen):
    return [url for url in seen.requests if "vendor/python/" in url or "live-worker" in url]


@pytest.fixture(scope="module")
def workbench(new_visit):
    """A page with Python loaded, shared by the tests that only edit its last cell."""
    with new_visit() as seen:
        page = seen.open(LIVE[0])
        seen.cell = LiveCell(page, page.locator(".cell.tag_live").count() - 1).edit()
        assert seen.cell.run() == "done"
        yield seen


@pytest.fixture
def cell(workbench):
    """The last live cell of the page, as it was written."""
    cell = workbench.cell
    yield cell
    if cell.box.locator("button", has_text="Restore").is_visible():
        cell.box.locator("button", has_text="Restore").click()
    assert workbench.foreign == []
    assert workbench.problems == []


@pytest.mark.parametrize("name", DERIVATIONS)
def test_a_derivation_has_at_least_three_live_cells(name):
    assert number_of_cells(name) >= 3


@pytest.mark.parametrize("name", LIVE)
def test_no_python_before_the_reader_asks_then_every_cell_runs_as_written(visit, name, capsys):
    seen = visit()
    page = seen.open(name)
    page.mouse.wheel(0, 100_000)
    page.wait_for_load_state("networkidle")
    assert python_requests(seen) == []

    cells = [LiveCell(page, i) for i in range(number_of_cells(name))]
    printed = [c.box.locator(".output.stream pre").all_inner_texts() for c in cells]
    assert cells, name
    cells[0].edit()
    cells[0].box.locator(".live-run").click()
    assert cells[0].settled() == "done", cells[0].box.inner_text()
    first = float(cells[0].box.get_attribute("data-seconds"))
    loaded = int(page.evaluate("document.documentElement.dataset.livePythonBytes"))
    for other in cells[1:]:
        other.edit()
    assert cells[-1].run() == "done", cells[-1].result.inner_text()
    for number, (c, before) in enumerate(zip(cells, printed, strict=True), 1):
        assert c.box.get_attribute("data-live") == "done", f"live cell {number} of {name}"
        live = c.result.locator(".live-stream pre").all_inner_texts()
        assert "".join(live).split() == "".join(before).split(), f"live cell {number} of {name}"

    assert python_requests(seen), "the requests of the worker must be seen to be judged"
    assert seen.foreign == []
    assert seen.problems == []
    promised = json.loads(page.locator("script[data-python]").get_attribute("data-python"))
    assert loaded == promised["bytes"]
    assert loaded < 13_000_000
    with capsys.disabled():
        print(f"\n{name}: first answer {first:.1f} s after Run, {loaded / 1e6:.1f} MB loaded")


class TestEditing:
    def test_a_true_formula_is_reported_true(self, cell):
        assert cell.run(TRUE) == "done"
        assert cell.result.locator("[data-relative=true]").count() == 1

    def test_a_wrong_sign_is_reported_false_with_a_counterexample(self, cell):
        assert cell.run(WRONG_SIGN) == "done"
        verdict = cell.result.locator("[data-relative=false]").inner_text()
        before, after = re.findall(r"score\(m = .*\) = (.+)", verdict)
        assert before != after
        assert "theta = " in verdict

    def test_a_false_step_of_a_derivation_is_refused_and_the_true_one_taken(self, cell):
        assert cell.run(STEP.replace("SIGN", "-")) == "error"
        message = cell.result.inner_text()
        assert "DerivationError" in message
        left, right = (re.search(rf"{side}\s+= (.+)", message)[1] for side in ("left", "right"))
        assert left != right
        assert cell.run(STEP.replace("SIGN", "+")) == "done"

    def test_an_error_is_shown_with_its_line_marked(self, cell):
        assert cell.run("a = 1\nb = a + missing_name\n") == "error"
        assert "NameError: name 'missing_name' is not defined" in cell.result.inner_text()
        assert "line 2" in cell.status.inner_text()
        marked = cell.box.locator(".live-error-line")
        assert marked.inner_text().strip() == "b = a + missing_name"

    def test_sympy_is_typeset(self, cell):
        assert cell.run("import sympy\nsympy.sqrt(sympy.Symbol('theta')) / 2") == "done"
        cell.result.locator("mjx-container").wait_for()

    def test_a_cell_above_runs_first_and_its_failure_is_named(self, workbench, cell):
        above = LiveCell(workbench.page, 0)
        if above.box.locator(".live-edit").is_visible():
            above.edit()
        above.area.fill("wanted = 41")
        assert cell.run("wanted + 1") in ("done", "error")
        above.area.fill("wanted = 1 / 0")
        assert cell.run() == "error"
        assert "live cell 1" in cell.result.inner_text()
        assert "ZeroDivisionError" in cell.result.inner_text()
        assert above.box.get_attribute("data-live") == "error"
        above.box.locator("button", has_text="Restore").click()
        cell.box.locator("button", has_text="Restore").click()
        assert cell.run() == "done", cell.result.inner_text()

    def test_restore_brings_back_the_code_and_the_printed_result(self, cell):
        original = cell.area.input_value()
        assert cell.run("6 * 7") == "done"
        assert cell.result.inner_text().strip() == "42"
        cell.box.locator("button", has_text="Restore").click()
        assert cell.area.input_value() == original
        assert cell.result.is_hidden()

    @pytest.mark.parametrize("code", ["while True: pass", "while True: print('more')"])
    def test_a_runaway_cell_is_stopped_and_runs_again(self, cell, code):
        cell.area.fill(code)
        cell.area.press("Control+Enter")
        cell.box.locator("button", has_text="Stop").wait_for()
        expect(cell.box).to_have_attribute("data-live", "running")
        cell.box.locator("button", has_text="Stop").click()
        assert "Stopped" in cell.status.inner_text()
        assert cell.run("2 + 3") == "done"
        assert cell.result.inner_text().strip() == "5"

    def test_keys_indent_and_escape_leaves_the_editor(self, cell):
        area = cell.area
        area.fill("")
        area.press_sequentially("if 1:\nx = 2\nx")
        assert area.input_value() == "if 1:\n    x = 2\n    x"
        area.press("Tab")
        area.press("Shift+Tab")
        area.press("Control+/")
        assert area.input_value().startswith("if 1:\n    x = 2\n")
        assert area.input_value().endswith("# x") or area.input_value().endswith("# x   ")
        area.press("Escape")
        focused = cell.page.evaluate("document.activeElement.innerText")
        assert focused == "Run"
        cell.page.keyboard.press("Shift+Tab")
        assert cell.page.evaluate("document.activeElement.tagName") == "TEXTAREA"

    def test_the_coloured_copy_says_what_the_text_area_says(self, cell):
        code = "# θ\ndef f(x):\n    '''two\n    lines'''\n    return x @ 1.5e-3j < \"<b>\" \n"
        cell.area.fill(code)
        shown = cell.box.locator(".live-sheet pre").evaluate("e => e.textContent")
        assert shown == code + "\n"
        assert cell.box.locator(".live-sheet pre .k").first.inner_text() == "def"

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_the_open_editor_is_accessible(self, cell, theme):
        page = cell.page
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert cell.run("print('x')\n1 / 0") == "error"
        page.evaluate(AXE)
        found = page.evaluate("axe.run('.cell.tag_live', {resultTypes: ['violations']})")
        serious = [
            f"{v['id']}: {[n['target'] for n in v['nodes'][:3]]}"
            for v in found["violations"]
            if v["impact"] in ("serious", "critical")
        ]
        assert serious == []

    def test_the_open_editor_fits_a_phone(self, cell):
        assert cell.run("'long ' * 100  # " + "long " * 60) == "done"
        cell.page.set_viewport_size({"width": 360, "height": 740})
        width = cell.page.evaluate("document.documentElement.scrollWidth")
        cell.page.set_viewport_size({"width": 1280, "height": 900})
        assert width <= 360


class TestWithoutTheNetwork:
    def test_offline_is_said_and_can_be_mended(self, visit):
        seen = visit(offline=False)  # in a context of its own, which has stored nothing yet
        page = seen.open(LIVE[0])
        page.context.set_offline(True)
        cell = LiveCell(page, 0).edit()
        assert cell.settled() == "failed"
        assert "offline" in cell.status.inner_text()
        page.context.set_offline(False)
        assert cell.run("1 + 1") == "done"
        assert cell.result.inner_text().strip() == "2"
        assert seen.foreign == []

    def test_a_missing_file_is_said(self, visit):
        seen = visit()
        page = seen.open(LIVE[0])
        page.route("**/libraries-*.zip", lambda route: route.fulfill(status=404))
        cell = LiveCell(page, 0).edit()
        assert cell.settled() == "failed"
        assert "could not be loaded" in cell.status.inner_text()
        assert "404" in cell.status.inner_text()

    def test_a_page_opened_as_a_file_says_why_there_is_no_python(self, browser):
        page = browser.new_page()
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((SITE / LIVE[0]).as_uri())
        cell = LiveCell(page, 0).edit()
        assert cell.settled() == "failed"
        assert "make serve" in cell.status.inner_text()
        assert problems == []
        page.close()
