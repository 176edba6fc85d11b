"""The cells of the chapter on layouts, read and run by its tests."""

import json
from pathlib import Path

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "05-layouts.ipynb"


def read_cells():
    """Return the chapter's cells as {id: source}."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return {cell["id"]: "".join(cell["source"]) for cell in cells}


def run_cells(*ids):
    """Run cells of the chapter and return the names they define."""
    names = {}
    for each in ids:
        exec(read_cells()[each], names)
    return names


def read_probe():
    return run_cells("imports", "imports-package", "probe-rotation", "probe-code")["probe"]
