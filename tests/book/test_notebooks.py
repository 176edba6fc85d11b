"""What every chapter keeps: no stored outputs, short cells, described pictures, the frame."""

import ast
import json
import re
from itertools import pairwise
from pathlib import Path

import nbclient
import nbformat
import pytest

from tests.tools.boxes import boxes

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CHAPTERS = [path for path in NOTEBOOKS if re.match(r"\d\d-", path.name)]
LONGEST_CELL = 18


def cells(path, kind=None):
    notebook = json.loads(path.read_text("utf8"))
    return [c for c in notebook["cells"] if kind in (None, c["cell_type"])]


def source(cell):
    return "".join(cell["source"])


each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def test_there_are_chapters():
    assert CHAPTERS


@each_notebook
def test_outputs_are_stripped_and_cells_have_ids(path):
    notebook = json.loads(path.read_text("utf8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert "widgets" not in notebook["metadata"]
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(ids) == len(set(ids))
    for cell in cells(path, "code"):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


def lines_to_read(code):
    """Lines that hold code, without the import statements at the top of a cell."""
    tree = ast.parse(code)
    imports = {
        line
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for line in range(node.lineno, node.end_lineno + 1)
    }
    lines = enumerate(code.splitlines(), start=1)
    return sum(bool(line.strip()) and number not in imports for number, line in lines)


def read_alone(code):
    """Split a list of checks (``@claim`` over a function) or of a derivation's steps into items."""
    return re.split(r"\n(?=@claim\(|\w+\.(?:given|chosen|derived)\()", code)


@each_notebook
def test_no_code_cell_is_too_long_to_read(path):
    code = [part for cell in cells(path, "code") for part in read_alone(source(cell))]
    assert [text for text in code if lines_to_read(text) > LONGEST_CELL] == []


@each_notebook
def test_every_picture_is_described_in_words(path):
    for cell in cells(path, "code"):
        if re.search(r"plt\.(subplots|figure|plot|imshow)\(", source(cell)):
            image = cell["metadata"].get("mystnb", {}).get("image", {})
            assert len(image.get("alt", "")) > 40, source(cell)


@each_chapter
def test_chapter_has_the_frame(path):
    text = "\n".join(source(cell) for cell in cells(path, "markdown"))
    headings = re.findall(r"^(#+) (.+)$", text, re.MULTILINE)
    assert [level for level, _ in headings].count("#") == 1
    for wanted in ("After this chapter you can", "What you need first", "Summary", "Where next"):
        assert wanted in text
    assert len(list(boxes(path, "Exercise"))) >= 4
    folded = [c for c in cells(path, "code") if "hide-cell" in c["metadata"].get("tags", [])]
    assert sum("assert" in source(cell) for cell in folded) >= 4


@each_chapter
def test_the_chapters_figure_stands_under_what_it_needs(path):
    """After what one needs first and the imports: a few sentences, then a moving figure."""
    head = [c for c in cells(path) if "remove-cell" not in c["metadata"].get("tags", [])]
    needs = next(i for i, c in enumerate(head) if "## What you need first" in source(c))
    prose = needs + 1
    while head[prose]["cell_type"] == "code" and source(head[prose]).startswith(("from", "import")):
        prose += 1
    words, figure = head[prose], head[prose + 1]
    assert words["cell_type"] == "markdown"
    assert not source(words).startswith("#")
    assert 20 < len(source(words).split()) < 110
    assert figure["metadata"]["tags"] == ["remove-input"]  # on the site it leads
    assert moving(figure)


def moving(cell):
    """Return the kind of the moving figure that a cell shows, if it shows one."""
    return re.findall(r"^(?:\w+ = )?figures\.(?!choice|number)(\w+)\(", source(cell), re.MULTILINE)


@each_chapter
def test_a_figure_that_stands_again_asks_something_else(path):
    """And words before it say what to touch."""
    asked = []
    for above, cell in pairwise(cells(path)):
        question = re.search(r'\.asks\(\s*"([^"]+)"\s*\)', source(cell))
        for kind in moving(cell) if cell["cell_type"] == "code" else ():
            asked.append((kind, question and question[1]))
        if question:
            assert question[1].endswith("?")
            assert above["cell_type"] == "markdown"
    assert len(asked) == len(set(asked))


def graded_exercises(path):
    """Count the exercises that ask for a number or a choice and check it in the page."""
    graded, asked = 0, False
    for cell in cells(path):
        if cell["cell_type"] == "markdown":
            asked = "> **Exercise" in source(cell)
        elif asked and source(cell).startswith(("figures.choice(", "figures.number(")):
            graded, asked = graded + 1, False
    return graded


@each_chapter
def test_some_exercises_are_graded_in_the_page(path):
    assert graded_exercises(path) >= 2


@each_notebook
def test_it_reads_well_where_nobody_knows_myst(path):
    """A role or a directive would stand as raw text in JupyterLab, VS Code, Colab and GitHub."""
    for cell in cells(path, "markdown"):
        assert not re.search(r"\{[\w-]+\}`|^(:::|```)|^\(\w+\)=", source(cell), re.MULTILINE)


@each_notebook
def test_what_the_page_folds_or_leaves_out_is_folded_in_jupyter_too(path):
    """Above all the answers of questions, which stand in their code."""
    for cell in cells(path, "code"):
        tags, folds = set(cell["metadata"].get("tags", [])), cell["metadata"].get("jupyter", {})
        hidden = bool(tags & {"hide-input", "hide-cell", "remove-input", "remove-cell"})
        assert folds.get("source_hidden", False) == hidden, source(cell)
        if source(cell).startswith(("figures.choice(", "figures.number(")):
            assert hidden, source(cell)


@each_notebook
def test_words_that_talk_down_are_absent(path):
    text = "\n".join(source(cell) for cell in cells(path, "markdown"))
    assert not re.search(r"\b(clearly|obviously|trivially)\b", text, re.IGNORECASE)


def until_its_last_file(path):
    """Return the code cells up to the last one that reads a file."""
    code, last = cells(path, "code"), 0
    for number, cell in enumerate(code, 1):
        if re.search(r"\b(Path|open|load|loadtxt)\(|\bread_(csv|text|bytes)\(", source(cell)):
            last = number
    return code[:last]


# The build runs all of them in notebooks/. Only a cell that reads a file could need that.
@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "path", [path for path in NOTEBOOKS if until_its_last_file(path)], ids=lambda path: path.stem
)
def test_its_files_are_found_from_the_root_of_the_repository_too(path):
    code = until_its_last_file(path)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source(c)) for c in code])
    place = {"metadata": {"path": str(ROOT)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=place).execute()


@each_chapter
def test_what_to_remember_stands_in_the_first_screen_and_closes_the_summary(path):
    text = "\n\n".join(source(cell) for cell in cells(path, "markdown"))
    first, last = re.findall(r"^(?:- )?\*\*To remember\.\*\* (.+)$", text, re.MULTILINE)
    assert first == last
    assert text.index(first) < text.index("## After this chapter you can")
    assert re.search(re.escape(f"- **To remember.** {last}") + r"\n\n+## Where next", text)
