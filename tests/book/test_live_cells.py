"""Live cells without a browser: what the page's Python does, and what the build refuses."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import sympy

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import live_cells  # noqa: E402
import live_runner  # noqa: E402

from tests.tools.node import run_tests  # noqa: E402


@pytest.fixture
def page(monkeypatch):
    """Return an interpreter that lists what it sends, and leaves nothing behind."""
    for name in ("__main__", "IPython", "IPython.display"):
        monkeypatch.setitem(sys.modules, name, sys.modules.get(name))
    monkeypatch.setattr("builtins.input", input)
    monkeypatch.setattr("builtins.display", None, raising=False)
    sent = []
    page = live_runner.Page(lambda kind, value: sent.append((kind, value)))
    page.sent = sent
    return page


def run(page, code):
    """Run a cell; return its error and what it sent."""
    page.sent.clear()
    return page.run(code, "live cell 1"), list(page.sent)


def test_only_a_last_expression_is_shown_and_not_after_a_semicolon(page):
    assert run(page, "a = 6\na * 7") == (None, [("data", {"text/plain": "42"})])
    assert run(page, "a * 7;") == (None, [])
    assert run(page, "a * 7\nb = 1") == (None, [])
    assert run(page, "None") == (None, [])


def test_sympy_shows_latex_and_a_table_shows_html(page):
    _, sent = run(page, "import sympy\nsympy.pi / 2")
    assert sent == [
        ("data", {"text/latex": (sympy.pi / 2)._repr_latex_(), "text/plain": "pi/2"}),
    ]
    _, sent = run(page, "class T:\n    def _repr_html_(self): return '<b>t</b>'\nT()")
    assert sent[0][1]["text/html"] == "<b>t</b>"


def test_printing_and_displaying_keep_their_order(page):
    _, sent = run(page, "print('a')\ndisplay(1)\nprint('b')\n2")
    assert [value if kind == "text" else value["text/plain"] for kind, value in sent] == [
        "a\n",
        "1",
        "b\n",
        "2",
    ]


def test_a_cell_can_use_what_it_would_import_from_ipython(page):
    _, sent = run(page, "from IPython.display import Math\nMath(r'\\theta \\% 2')")
    assert sent[0][1]["text/latex"] == r"$\displaystyle \theta \% 2$"


def test_an_error_names_its_line_and_leaves_out_the_runner(page):
    error, _ = run(page, "def f():\n    return 1 / 0\n\nf()")
    assert error["message"] == "ZeroDivisionError: division by zero"
    assert error["line"] == 2
    assert 'File "live cell 1", line 4' in error["text"]
    assert "return 1 / 0" in error["text"]
    assert "live_runner" not in error["text"] + error["full"]


def test_an_error_inside_a_library_points_at_the_cell_and_keeps_the_rest_apart(page):
    error, _ = run(page, "import json\n\njson.loads('{')")
    assert error["line"] == 3
    assert "decoder.py" not in error["text"]
    assert "decoder.py" in error["full"]


def test_a_syntax_error_names_its_line(page):
    error, _ = run(page, "a = 1\nb = (")
    assert error["line"] == 2
    assert error["message"].startswith("SyntaxError")


def test_a_missing_library_is_answered_with_what_there_is(page):
    error, _ = run(page, "import no_such_library")
    assert "no_such_library is not here" in error["text"]
    assert "sympy" in error["text"]


def test_a_cell_cannot_wait_for_input(page):
    error, _ = run(page, "input()")
    assert error["message"].startswith("EOFError: a cell on this page cannot ask")


def test_output_without_end_is_cut(page):
    error, sent = run(page, "for i in range(100_000): print('0123456789')")
    text = "".join(value for _, value in sent)
    assert error is None
    assert text.startswith("0123456789\n0123456789\n")
    assert live_runner.MOST_CHARACTERS <= len(text) <= live_runner.MOST_CHARACTERS + 60
    assert text.endswith("[cut after 60,000 characters]\n")
    assert len(sent) < 200, "every message costs the page time"
    _, sent = run(page, "print('after')")
    assert sent == [("text", "after\n")], "the next cell has room again"


def test_names_stay_and_dataclasses_work(page):
    run(page, "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int")
    assert run(page, "A(3)")[1] == [("data", {"text/plain": "A(x=3)"})]


@pytest.mark.parametrize(
    "code",
    [
        "import sympy as sp, math, mpmath",
        "from sympy.matrices import Matrix",
        "from ropebook.proofs import check_relative",
        "from ropebook import proofs",
    ],
)
def test_what_the_page_has_can_be_imported(code):
    assert live_cells.unavailable(code) == []


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import numpy as np", "numpy"),
        ("def f():\n    import torch.nn", "torch.nn"),
        ("from rope_minimal.rotation import apply_rope", "rope_minimal.rotation"),
        ("from ropebook import figures", "figures"),
        ("from rope_minimal import apply_rope", "rope_minimal"),
        ("%matplotlib inline", "plain Python"),
    ],
)
def test_the_build_refuses_a_live_cell_that_cannot_run(code, reason):
    (problem,) = live_cells.unavailable(code)
    assert reason in problem


def test_the_archive_leaves_out_tests_and_keeps_what_sympy_imports_and_its_licence():
    files = live_cells.library_files("sympy")
    assert "sympy/physics/units/__init__.py" in files, "simplify imports it"
    assert "licences/sympy.txt" in files
    assert not [name for name in files if "/tests/" in name]
    assert 500 < len(files) < 1000


def test_the_packages_own_files_are_all_that_a_live_cell_needs_beside_sympy(tmp_path):
    files = live_cells.package_files(ROOT)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import mpmath, sympy\n"
        "before = set(sys.modules)\n"
        "from ropebook.proofs import check_relative\n"
        "assert check_relative(lambda q, m: q * sympy.exp(sympy.I * m))\n"
        "new = [sys.modules[name] for name in set(sys.modules) - before]\n"
        "print(*(f.__file__ for f in new if f.__name__.startswith('ropebook')), sep='\\n')\n"
        "print(*{m.__name__.split('.')[0] for m in new} - sys.stdlib_module_names)\n"
    )
    out = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    *loaded, others = out.stdout.splitlines()
    assert set(loaded) == {str(tmp_path / name) for name in files}
    assert set(others.split()) <= {"ropebook", "sympy", "mpmath"}


def test_an_archive_depends_on_its_content_only(tmp_path):
    files = {"b.py": b"b = 1\n", "a/__init__.py": b""}
    for name in ("one.zip", "two.zip"):
        live_cells.write_archive(tmp_path / name, dict(reversed(files.items())))
        files = dict(reversed(files.items()))
    one, two = ((tmp_path / name).read_bytes() for name in ("one.zip", "two.zip"))
    assert one == two
    assert zipfile.ZipFile(io.BytesIO(one)).read("b.py") == b"b = 1\n"


def test_the_editor_and_the_client_of_python_do_what_their_own_tests_say():
    run_tests(Path(__file__).with_name("live.test.mjs"))
