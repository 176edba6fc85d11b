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
from ropebook.figures.bundle import bundle, scopes
from tests.tools.node import run_tests

STATES = itertools.product([True, False], repeat=4)
PROVED = [{"axioms": s, "kind": "rope", "certificate": "</script> & so"} for s in STATES]
MADE = {
    "clock": lambda: figures.clock(m=7),
    "heatmap": figures.angle_heatmap,
    "axioms": lambda: figures.axioms(PROVED),
    "choice": lambda: figures.choice("**Which** of `a` & b?", ["a", "b"], "a", "Look."),
    "number": lambda: figures.number("How many?", 4, 0, "Count."),
    "page lab": lambda: figures.page_lab(5),
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
    figure = MADE[name]()
    figure._repr_mimebundle_()  # as in a notebook, where the heatmap gets sliders of ipywidgets
    page = alone.page(figure)
    assert page == alone.page(MADE[name]())
    _, data, code = parts(page)
    assert not {"_esm", "_css", "layout", "_view_name", "_elsewhere"} & set(data["state"])
    assert "_start" in data["state"]
    assert len(re.findall(r"\(window\.ropeFigures \?\?= \{\}\)\[", code)) == 1
    assert code.count("window.ropeHost = ") == code.count("const $kit_dom_js = (") == 1


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


def test_what_is_no_figure_is_refused():
    with pytest.raises(TypeError, match="figure must be a figure, got 'clock'"):
        alone.page("clock")
    with pytest.raises(TypeError, match="figure must be a figure, got VBox"):
        alone.page(ipywidgets.VBox([figures.clock()]))


def test_a_figure_is_found_in_its_box_beside_other_widgets():
    one, other = (
        {"state": {"_esm": "", "_anywidget_id": "a.B", "m": m}, "model_name": "AnyModel"}
        for m in (1, 2)
    )
    children = {"children": ["IPY_MODEL_a", "IPY_MODEL_b"]}
    box = {"model_name": "VBoxModel", "state": children}
    slider = {"model_name": "IntSliderModel", "state": {}}
    models = {"box": box, "a": one, "b": slider}
    assert alone.figure_of(models, "box") is alone.figure_of(models, "a") is one["state"]
    with pytest.raises(ValueError, match="shows figures, and this IntSlider holds 0 of them"):
        alone.figure_of(models, "b")
    with pytest.raises(ValueError, match="this VBox holds 2 of them"):
        alone.figure_of(models | {"b": other}, "box")
    with pytest.raises(ValueError, match="no binary data"):
        alone.figure_of({"a": one | {"buffers": [{"data": ""}]}}, "a")


def test_files_become_scopes_the_imported_ones_first(tmp_path):
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "b.js").write_text("export const b = 1;\n")
    (tmp_path / "a.js").write_text('import { b as c } from "./kit/b.js";\nexport default c;\n')
    first, second = scopes(tmp_path, "a.js").items()
    assert first == (
        "$kit_b_js",
        "const $kit_b_js = (() => {\nconst b = 1;\n\nreturn { b };\n})();\n",
    )
    assert second[0] == "$a_js"
    assert "const { b: c } = $kit_b_js;\nconst $default = c;" in second[1]
    assert bundle(tmp_path / "a.js").endswith("export default $a_js.default;\n")
