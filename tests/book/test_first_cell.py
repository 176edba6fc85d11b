"""The cell that gets the package where it is missing: the same everywhere, idle here."""

import importlib.util
import json
import subprocess
import sys

import pytest

import rope_minimal
from tests.tools import first_cell

NOTEBOOKS = first_cell.notebooks()


def run(code: str) -> None:
    """Run the cell in a namespace of its own."""
    exec(compile(code, "<first cell>", "exec"), {})


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list:
    """Catch what the cell would run."""
    calls = []
    monkeypatch.setattr(subprocess, "run", lambda command, **options: calls.append(command))
    return calls


@pytest.fixture
def without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the package from the cell."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_has_it_before_its_other_code(path) -> None:
    cells = json.loads(path.read_text("utf8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code[0] == first_cell.cell(first_cell.address()), "run: python -m tests.tools.first_cell"
    assert sum(cell["id"] == first_cell.ID for cell in cells) == 1


def test_it_does_nothing_where_the_package_is(calls) -> None:
    run("".join(first_cell.cell("somebody/rope")["source"]))
    assert calls == []


def test_it_installs_the_tag_of_this_version_from_the_repository(calls, without_the_package):
    run("".join(first_cell.cell("somebody/rope")["source"]))
    wanted = f"git+https://github.com/somebody/rope@v{rope_minimal.__version__}"
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    assert calls == [[*pip, f"rope_minimal[explore,proofs,torch] @ {wanted}"]]


def test_a_copy_without_an_address_says_so(calls, without_the_package) -> None:
    with pytest.raises(ModuleNotFoundError, match="does not know where from"):
        run("".join(first_cell.cell("")["source"]))
    assert calls == []


def test_the_address_is_written_kept_and_read_back(tmp_path, monkeypatch) -> None:
    copy = tmp_path / "copy.ipynb"
    copy.write_bytes(NOTEBOOKS[0].read_bytes())
    monkeypatch.setattr(first_cell, "notebooks", lambda: [copy])
    first_cell.give(copy, "somebody/rope")
    assert first_cell.address() == "somebody/rope"
    once = copy.read_bytes()
    first_cell.give(copy, first_cell.address())
    assert copy.read_bytes() == once


@pytest.mark.parametrize("wrong", ["rope", "a/b/c", 'a/b"; print("', "https://somewhere/a/b"])
def test_only_owner_and_name_is_an_address(wrong) -> None:
    with pytest.raises(ValueError, match=r"must be owner/name, got"):
        first_cell.checked(wrong)
    assert first_cell.checked("some-body/rope.book") == "some-body/rope.book"
