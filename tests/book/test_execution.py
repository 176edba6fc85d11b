"""Notebooks run side by side, and again when something that they read has changed."""

import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import execution  # noqa: E402

USE = "import sys; sys.path.insert(0, '.')\nfrom rope_minimal.layout import name\nprint(name)"
LOOK = "from pathlib import Path\n[path.read_text() for path in Path('rope_minimal').glob('*.txt')]"
STREAM = """import sys, time
for i in range(40):
    print(i, end=" ", flush=True)
    time.sleep(0.01)
print("end")"""
THREADS = "import os; print('threads', os.environ.get('OMP_NUM_THREADS'))"


def write(book: Path, name: str, *cells: str, **metadata: object) -> None:
    """Write a notebook."""
    kernel = {"name": "python3", "display_name": "Python", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel, **metadata})
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(notebook, book / f"{name}.ipynb")


def executed(book: Path) -> set[str]:
    """Execute what a build would; return its names."""
    config = SimpleNamespace(nb_execution_timeout=60)
    app = SimpleNamespace(srcdir=book, outdir=book / "_build" / "html", config=config)
    found = {path.stem for path in book.glob("*.ipynb")}
    env = SimpleNamespace(found_docs=found, doc2path=lambda page: book / f"{page}.ipynb")
    return set(execution.execute_changed(app, env, set(), set(), set()))


def output(book: Path, name: str) -> str:
    """Return what the cells of a notebook gave, as a page reads it."""
    store = str(book / "_build" / ".executed")
    notebook = execution.read((book / f"{name}.ipynb").read_text("utf8"), store)
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    return "".join(output.text if "text" in output else str(output.data) for output in outputs)


@pytest.mark.drawn(3, among="long")
def test_notebooks_run_when_they_must_and_give_what_each_gives_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    package = tmp_path / "rope_minimal"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "layout.py").write_text("name = 'old'\n")
    (package / "a.txt").write_text("one")
    write(tmp_path, "use", USE)
    write(tmp_path, "look", LOOK)
    write(tmp_path, "many", STREAM, THREADS)
    write(tmp_path, "alone", THREADS, execution={"alone": True})
    assert executed(tmp_path) == {"use", "look", "many", "alone"}
    assert output(tmp_path, "many") == f"{' '.join(map(str, range(40)))} end\nthreads 1\n"
    assert output(tmp_path, "alone") == "threads None\n"
    assert executed(tmp_path) == set()

    (package / "layout.py").write_text("name = 'new'\n")
    assert executed(tmp_path) == {"use"}
    assert output(tmp_path, "use") == "new\n"
    (package / "a.txt").write_text("two")
    assert executed(tmp_path) == {"look"}
    (package / "b.txt").write_text("three")  # an import lists the folder, too
    assert executed(tmp_path) == {"use", "look"}
    assert "three" in output(tmp_path, "look")

    write(tmp_path, "use", "1 / 0")
    write(tmp_path, "look", "2 / 0")
    with pytest.raises(ExtensionError):
        executed(tmp_path)
    said = capfd.readouterr().err
    for words in ("use.ipynb", "look.ipynb", "ZeroDivisionError"):
        assert words in said
    write(tmp_path, "use", USE)
    write(tmp_path, "look", LOOK)
    assert executed(tmp_path) == set()  # what had come out is still there
    assert len(list((tmp_path / "_build" / ".executed").iterdir())) == 4
