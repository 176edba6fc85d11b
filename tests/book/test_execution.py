"""Notebooks run side by side, and again when something that they read has changed."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import freshness  # noqa: E402

pytestmark = pytest.mark.drawn(1)

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


USE = "import sys; sys.path.insert(0, '.')\n"
STREAM = """import sys, time
for i in range(40):
    print(i, end=" ", flush=True)
    time.sleep(0.01)
print("end")
print("next")"""


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a book of three notebooks; the tests below build it one after another."""
    folder = tmp_path_factory.mktemp("book")
    (folder / "conf.py").write_text(CONF)
    (folder / "index.md").write_text("# Book\n\n```{toctree}\na\nb\nc\n```\n")
    package = folder / "rope_minimal"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "layout.py").write_text("name = 'old'\n")
    (package / "data.json").write_text("[1]\n")
    write(folder / "a.ipynb", f"{USE}from rope_minimal.layout import name\nprint('name', name)")
    write(folder / "b.ipynb", "print(open('rope_minimal/data.json').read())")
    write(folder / "c.ipynb", STREAM, "import os; print('threads', os.environ['OMP_NUM_THREADS'])")
    return folder


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


def html(book: Path, name: str) -> str:
    """Return a built page."""
    return (book / "_build" / "html" / f"{name}.html").read_text()


@pytest.fixture(scope="module")
def first(book: Path) -> set[str]:
    """Return what the first build executed: it comes first, whichever test is drawn."""
    return executed(book)


def test_the_output_of_notebooks_side_by_side_is_that_of_each_alone(
    book: Path, first: set[str]
) -> None:
    assert first == {"a", "b", "c"}
    assert f"{' '.join(map(str, range(40)))} end\nnext\n" in html(book, "c")
    assert "threads 1\n" in html(book, "c")


@pytest.mark.usefixtures("first")
def test_a_notebook_runs_again_when_what_it_reads_has_changed(book: Path) -> None:
    (book / "rope_minimal" / "layout.py").write_text("name = 'new'\n")
    assert executed(book) == {"a"}
    assert "name new" in html(book, "a")
    (book / "rope_minimal" / "data.json").write_text("[2]\n")
    assert executed(book) == {"b"}
    assert executed(book) == set()


def test_a_file_that_is_new_or_gone_may_concern_every_notebook(tmp_path: Path) -> None:
    package = tmp_path / "rope_minimal"
    package.mkdir()
    (package / "layout.py").write_text("1")
    known = freshness.state(tmp_path, ["rope_minimal/layout.py"])
    (package / "rotation.py").write_text("2")
    now = freshness.state(tmp_path, ["rope_minimal/layout.py"])
    assert {name for name in known if known[name] != now[name]} == {"*"}
    everything = freshness.state(tmp_path, ["*"])
    assert set(everything) == {"*", "rope_minimal/layout.py", "rope_minimal/rotation.py"}


def test_a_compiled_module_stands_for_its_source() -> None:
    lines = ["ropebook/figures/kit.js", "rope_minimal/__pycache__/layout.cpython-311.pyc"]
    assert freshness.sources(lines) == ["rope_minimal/layout.py", "ropebook/figures/kit.js"]


def test_an_error_is_told(book: Path) -> None:
    write(book / "b.ipynb", "1 / 0")
    code, said = build(book)
    assert code != 0
    assert "ZeroDivisionError" in said
    assert "b.ipynb" in said
