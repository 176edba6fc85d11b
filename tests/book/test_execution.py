"""Notebooks run side by side, and again when something that they read has changed."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
CONF = f"""
import sys
sys.path.insert(0, {str(ROOT / "book" / "_ext")!r})
extensions = ["myst_nb", "freshness", "execution"]
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
exclude_patterns = ["_build"]
"""


def write(path: Path, *cells: str, **metadata: object) -> None:
    """Write a notebook with a title and code cells."""
    kernel = {"name": "python3", "display_name": "Python", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel, **metadata})
    notebook.cells = [nbformat.v4.new_markdown_cell(f"# {path.stem}")]
    notebook.cells += [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(notebook, path)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """Return a book of three notebooks, of which two import a module of the package."""
    (tmp_path / "conf.py").write_text(CONF)
    (tmp_path / "index.md").write_text("# Book\n\n```{toctree}\na\nb\nc\n```\n")
    package = tmp_path / "rope_minimal"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "layout.py").write_text("name = 'old'\n")
    (package / "data.json").write_text("[1]\n")
    use = "import sys; sys.path.insert(0, '.')\n"
    write(tmp_path / "a.ipynb", f"{use}from rope_minimal.layout import name\nprint('name', name)")
    write(tmp_path / "b.ipynb", "print(open('rope_minimal/data.json').read())")
    streamed = "import sys, time\nfor i in range(40):\n    print(i, end=' ', flush=True)\n"
    streamed += "    time.sleep(0.01)\nprint('end')\nprint('next')\nprint('err', file=sys.stderr)"
    write(tmp_path / "c.ipynb", "import os", streamed, "os.environ['OMP_NUM_THREADS']")
    return tmp_path


def build(book: Path) -> tuple[int, str]:
    """Build the book; return the exit code and what was said."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", ".", "_build/html"]
    done = subprocess.run(command, cwd=book, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def logs(book: Path) -> dict[str, int]:
    """Return when each notebook was executed last."""
    files = (book / "_build" / ".jupyter_cache" / "reads").glob("*.txt")
    return {file.stem: file.stat().st_mtime_ns for file in files}


def executed(book: Path) -> set[str]:
    """Build the book and return the notebooks that were executed."""
    before = logs(book)
    code, said = build(book)
    assert code == 0, said
    return {name for name, time in logs(book).items() if time != before.get(name)}


def test_a_notebook_runs_again_when_what_it_reads_has_changed(book: Path) -> None:
    assert executed(book) == {"a", "b", "c"}
    assert executed(book) == set()
    (book / "rope_minimal" / "layout.py").write_text("name = 'new'\n")
    assert executed(book) == {"a"}
    assert "name new" in (book / "_build" / "html" / "a.html").read_text()
    (book / "rope_minimal" / "data.json").write_text("[2]\n")
    assert executed(book) == {"b"}
    (book / "rope_minimal" / "added.py").write_text("")
    assert executed(book) == {"a", "b", "c"}


def test_the_output_is_that_of_the_notebook_alone(book: Path) -> None:
    executed(book)
    page = (book / "_build" / "html" / "c.html").read_text()
    numbers = " ".join(map(str, range(40)))
    assert f"{numbers} end\nnext\n" in page
    assert "</span>err\n" in page
    assert "</span>'1'\n" in page  # one thread for each notebook


def test_an_error_is_told_and_nothing_more_is_executed(book: Path) -> None:
    write(book / "b.ipynb", "1 / 0")
    code, said = build(book)
    assert code != 0
    assert "ZeroDivisionError" in said
    assert "b.ipynb" in said
