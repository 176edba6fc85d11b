"""The cell that gets the repository where the package is missing: everywhere alike, idle here."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest

import rope_minimal
from ropebook.timing import recorded
from tests.tools import first_cell

NOTEBOOKS = first_cell.notebooks()
CLONE = f"rope-v{rope_minimal.__version__}"


def run(code: str) -> None:
    """Run the cell in a namespace of its own."""
    exec(compile(code, "<first cell>", "exec"), {})


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path) -> list:
    """Catch what the cell would run, in an empty folder."""
    calls = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
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


def test_it_clones_the_tag_of_this_version_and_installs_that(calls, without_the_package, tmp_path):
    run("".join(first_cell.cell("somebody/rope")["source"]))
    clone, tag = str(tmp_path / CLONE), f"--branch=v{rope_minimal.__version__}"
    git = ["git", "clone", "--quiet", "--depth=1", tag, "https://github.com/somebody/rope", clone]
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    book = f"{clone}/ropebook[experiments,figures,proofs,timing]"
    for package in (clone, f"{clone}/ropescope", f"{clone}/atlas", book):
        pip += ["--editable", package]
    assert calls == [git, pip]
    assert sys.path[0] == clone


def test_a_clone_that_is_there_is_not_made_again(calls, without_the_package, tmp_path) -> None:
    (tmp_path / CLONE).mkdir()
    run("".join(first_cell.cell("somebody/rope")["source"]))
    assert [command[1] for command in calls] == ["-m"]


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


@pytest.fixture
def colab(tmp_path):
    """Return a way to run code in an empty folder; GitHub is a repository on this disk."""
    origin, folder = tmp_path / "github" / "somebody" / "rope", tmp_path / "content"
    kept = shutil.ignore_patterns("__pycache__", "weights")
    for part in ("rope_minimal", "ropebook", "experiments", "benchmarks"):
        shutil.copytree(first_cell.ROOT / part, origin / part, ignore=kept)
    folder.mkdir()
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    commit = ["commit", "--quiet", "--no-gpg-sign", "--message", "released"]
    for command in (["init", "--quiet"], ["add", "."], commit, ["tag", CLONE.partition("-")[2]]):
        subprocess.run(["git", *who, *command], cwd=origin, check=True)
    address = (tmp_path / "github").as_uri()
    git = {"COUNT": "1", "KEY_0": f"url.{address}/.insteadOf", "VALUE_0": "https://github.com/"}
    env = os.environ | {f"GIT_CONFIG_{name}": value for name, value in git.items()}

    def python(code: str, path: str = "") -> str:
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, cwd=folder, env=env | {"PYTHONPATH": path}, check=True, stdout=-1, text=True
        ).stdout

    return python, folder / CLONE


# what Colab lacks, and pip, which would ask a registry
LIKE_COLAB = """
import importlib.util, subprocess
really, find = subprocess.run, importlib.util.find_spec
subprocess.run = lambda command, **how: None if "pip" in command else really(command, **how)
importlib.util.find_spec = lambda name, *rest: find(name, *rest) if name != "ropebook" else None
exec({cell!r})
subprocess.run, importlib.util.find_spec = really, find
"""
READ = """
exec({search!r})
import experiments.summary, ropebook.timing
print(ropebook.timing.recorded()["date"], len(experiments.summary.load("copy")) > 0)
print(rope_minimal.__file__, experiments.__file__, sep="\\n")
"""


@pytest.mark.drawn(3, among="long")
def test_chapters_that_read_records_have_them_from_the_clone(colab) -> None:
    python, clone = colab
    cells = json.loads((first_cell.ROOT / "notebooks/08-does-it-matter.ipynb").read_text("utf8"))
    search = next(c for c in cells["cells"] if c["id"] == "does-it-matter-01")
    read = READ.format(search="".join(search["source"]))
    cell = "".join(first_cell.cell("somebody/rope")["source"])
    wanted = f"{recorded()['date']} True\n"
    wanted += f"{clone}/rope_minimal/__init__.py\n{clone}/experiments/__init__.py\n"
    assert python(LIKE_COLAB.format(cell=cell) + read) == wanted
    # the kernel is restarted: pip has made the clone known, and the cell finds the package
    assert python(cell + read, path=str(clone)) == wanted
