"""Where a notebook asks whether a package is there, it also runs without it."""

import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
ALONE = """
import json, sys
sys.modules |= dict.fromkeys(sys.argv[2].split(","))  # None: find_spec finds no such module
import matplotlib
matplotlib.use("agg")
scope = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1], encoding="utf8"))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), scope)
"""
ASKED = ["transformers", "rotary_embedding_torch"]


def asks(path):
    return any(f'find_spec(\\"{name}\\")' in path.read_text("utf8") for name in ASKED)


GUARDED = [path for path in sorted(NOTEBOOKS.glob("*.ipynb")) if asks(path)]


@pytest.mark.parametrize("path", GUARDED, ids=lambda path: path.stem)
def test_a_notebook_runs_without_what_it_asks_for(path):
    command = [sys.executable, "-c", ALONE, path.name, ",".join(ASKED)]
    run = subprocess.run(command, cwd=NOTEBOOKS, capture_output=True, encoding="utf8", check=False)
    assert run.returncode == 0, run.stderr[-2000:]
