"""One file that shows a figure: what it holds, and what it asks for."""

import base64
import hashlib
import html
import itertools
import json
import re
from pathlib import Path

import ipywidgets
import pytest

from ropebook import figures
from ropebook.figures import alone
from ropebook.figures.bundle import script
from tests.tools.node import run_tests

STATES = itertools.product([True, False], repeat=4)
PROVED = [{"axioms": s, "kind": "rope", "certificate": "</script> & so"} for s in STATES]
MADE = {
    "clock": lambda: figures.clock(m=7),
    "heatmap": figures.angle_heatmap,
    "axioms": lambda: figures.axioms(PROVED),
    "choice": lambda: figures.choice("**Which** of `a` & b?", ["a", "b"], "a", "Look."),
    "number": lambda: figures.number("How many?", 4, 0, "Count."),
}
EACH = pytest.mark.parametrize("name", MADE)


def parts(page: str) -> tuple[str, dict, str]:
    """Return the policy, the data and the code of a page."""
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    [data] = re.findall(r'<script type="application/json" id="rope-state">(.*?)</script>', page)
    [code] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    return policy, json.loads(data), code


def test_the_host_does_what_its_own_tests_say():
    run_tests(Path(__file__).with_name("host.test.mjs"))


@EACH
def test_a_page_asks_for_nothing_and_runs_nothing_but_its_own_script(name):
    page = alone.page(MADE[name]())
    policy, _, code = parts(page)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert page.count("</script>") == 2
    assert not re.search(r'\b(?:src|href)="|@import|url\(', page.replace(code, ""))


@EACH
def test_a_page_holds_what_the_host_reads_and_no_random_name(name):
    page = alone.page(MADE[name]())
    _, data, _ = parts(page)
    assert data["root"] in data["state"]
    assert page == alone.page(MADE[name]())
    for model in data["state"].values():
        assert not {"_esm", "_css", "layout", "_view_name"} & set(model["state"])


@EACH
def test_a_page_has_one_script_for_each_figure_and_one_host(name):
    code = parts(alone.page(MADE[name]()))[2]
    assert len(re.findall(r"\(window\.ropeFigures \?\?= \{\}\)\[", code)) == 1
    assert code.count("window.ropeHost = ") == 1


def test_the_title_of_a_page_is_the_question():
    title = re.compile("<title>(.*?)</title>")
    for name, asked in (("choice", "Which of a & b?"), ("number", "How many?")):
        assert html.unescape(title.search(alone.page(MADE[name]()))[1]) == asked
    assert title.search(alone.page(MADE["heatmap"]()))[1].endswith("ever turn backwards?")
    page = alone.page(MADE["clock"](), title="A < B", description='"Hands"')
    assert title.search(page)[1] == "A &lt; B"
    assert '<meta name="description" content="&quot;Hands&quot;">' in page


def test_the_formulas_of_a_figure_are_in_its_page_as_mathml():
    formulas = parts(alone.page(MADE["axioms"]()))[1]["formulas"]
    assert len(formulas) > 5
    assert all(mathml.startswith("<math") for mathml in formulas.values())
    assert parts(alone.page(MADE["clock"]()))[1]["formulas"] == {}


def test_save_writes_the_page(tmp_path):
    for path in (tmp_path / "a.html", str(tmp_path / "b.html")):
        figures.clock(m=7).save(path)
        assert Path(path).read_text("utf8") == alone.page(MADE["clock"]())


def test_links_of_another_figure_stay_out():
    one, other = figures.clock(), figures.clock()
    _, data, _ = parts(alone.page(one))
    assert [m["model_name"] for m in data["state"].values()].count("LinkModel") == 1
    assert other.children


def test_what_the_host_does_not_draw_is_refused():
    with pytest.raises(ValueError, match="no widget of the kind Accordion"):
        alone.page(ipywidgets.VBox([ipywidgets.Accordion()]))
    with pytest.raises(TypeError, match="box must be a widget, got 'clock'"):
        alone.page("clock")
    binary = {"a": {"model_name": "AnyModel", "state": {}, "buffers": [{"data": ""}]}}
    with pytest.raises(ValueError, match="no binary data"):
        alone.slim(binary)


def test_a_script_has_one_default_export():
    code = script("export const a = 1;\nexport default { a };\n", "window.b")
    assert "\nconst a = 1;\nwindow.b = { a };\n" in code
    for module in ("const a = 1;", "export default 1;\nexport default 2;"):
        with pytest.raises(ValueError, match="one default export"):
            script(module, "window.b")


def test_limits_of_traits_are_told_to_the_browser():
    figure = figures.AngleHeatmap()
    assert figure._limits["dim"] == [2, 256, 2]
    low, high, step = figures.NumberQuestion()._limits["tolerance"]
    assert (low, high, step) == (0.0, None, 0)
