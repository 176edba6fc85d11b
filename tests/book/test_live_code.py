"""The cells that readers edit in the page: each stands alone and runs on sympy only."""

import ast
import contextlib
import io
import json
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
CHAPTERS = ["02-complex-numbers", "03-linear-algebra"]


def live_cells(chapter):
    cells = json.loads((NOTEBOOKS / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if "live" in c["metadata"].get("tags", [])]


def run(source):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "live cell", "exec"), {"__name__": "live"})
    return printed.getvalue()


ALL = [(chapter, i) for chapter in CHAPTERS for i in range(len(live_cells(chapter)))]


@pytest.mark.parametrize(("chapter", "index"), ALL)
def test_live_cell_stands_alone_and_answers(chapter, index):
    assert run(live_cells(chapter)[index]).strip()


@pytest.mark.parametrize(("chapter", "index"), ALL)
def test_live_cell_imports_only_what_the_browser_has(chapter, index):
    imported = set()
    for node in ast.walk(ast.parse(live_cells(chapter)[index])):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    assert imported <= {"sympy", "ropebook.proofs"}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_chapter_has_three_live_cells_and_ends_with_a_proposal(chapter):
    cells = live_cells(chapter)
    assert len(cells) >= 3
    assert "check_relative(f" in cells[-1]
    assert "def f(q, m):" in cells[-1]


@pytest.mark.parametrize(
    ("chapter", "index", "before", "after", "says"),
    [
        ("02-complex-numbers", 0, "", "", "False"),
        ("02-complex-numbers", 0, "conjugate = c + d", "conjugate = c - d", "True"),
        ("02-complex-numbers", 1, "", "", "True"),
        ("02-complex-numbers", 1, "at_n = k * sp.exp(sp.I", "at_n = k * sp.exp(-sp.I", "False"),
        ("02-complex-numbers", 1, "query * sp.conjugate(key)", "query * key", "False"),
        ("02-complex-numbers", -1, "", "", "Not relative"),
        ("02-complex-numbers", -1, "m**2", "m", "Relative"),
        ("03-linear-algebra", 1, "", "", "Not relative"),
        ("03-linear-algebra", 1, "theta * m + sp.cos(sp.pi * m)\n", "theta * m\n", "Relative"),
        ("03-linear-algebra", -1, "", "", "Relative"),
        ("03-linear-algebra", -1, "sp.cos(m * theta)", "sp.cos(m**2 * theta)", "Not relative"),
    ],
)
def test_an_edit_changes_the_verdict(chapter, index, before, after, says):
    source = live_cells(chapter)[index]
    assert before in source
    printed = run(source.replace(before, after) if before else source)
    assert printed.startswith(says)
    if says in ("False", "Not relative"):
        assert "at " in printed.lower()  # a counterexample in numbers


def test_the_matrix_cell_finds_both_families_at_any_size():
    source = live_cells("03-linear-algebra")[0]
    for size, determinants in [("1", ["-1", "1"]), ("2", ["-4", "4"])]:
        lines = run(source.replace("size = 1", f"size = {size}")).splitlines()
        assert sorted(line.split()[-1] for line in lines) == determinants
