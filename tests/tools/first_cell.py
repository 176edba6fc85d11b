"""The cell in which every notebook gets the book's code where it is missing, on Colab for example.

    python -m tests.tools.first_cell             gives it to all notebooks, with their address
    python -m tests.tools.first_cell owner/name  writes the address of the repository into all

A notebook on Colab comes alone: it knows no more about where it came from than it carries.
So the address stands in the notebooks, and the tag is that of the package's version: package and
notebook are of the same state. The cell clones the repository at that tag, because some chapters
read the records that lie beside the package, and installs the package from the clone, in place: it
is found there by this Python and by the next, after a restart. ``book/_ext/repository.py`` offers
Colab where that tag exists and carries the repository's own address, and nowhere else.
"""

import json
import re
import sys
from pathlib import Path

import rope_minimal

ROOT = Path(__file__).parents[2]
ID = "get-the-package"
CODE = """\
import importlib.util
import os
import subprocess
import sys

REPOSITORY, TAG = "{repository}", "v{version}"  # the book's own on GitHub, see CONTRIBUTING.md
if importlib.util.find_spec("ropebook") is None:  # on Colab, for example
    if not REPOSITORY:
        raise ModuleNotFoundError("install ropebook: this copy does not know where from")
    clone = os.path.abspath(f"{{os.path.basename(REPOSITORY)}}-{{TAG}}")
    if not os.path.isdir(clone):
        git = ["git", "clone", "--quiet", "--depth=1", f"--branch={{TAG}}"]
        subprocess.run([*git, f"https://github.com/{{REPOSITORY}}", clone], check=True)
    book = f"{{clone}}/ropebook[experiments,figures,proofs,timing]"
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    for package in (clone, f"{{clone}}/ropescope", f"{{clone}}/atlas", book):
        pip += ["--editable", package]
    subprocess.run(pip, check=True)
    sys.path.insert(0, clone)  # what pip has written takes effect in the next Python"""
OWNER_NAME = r"[\w.-]+/[\w.-]+"


def notebooks() -> list[Path]:
    """Return every notebook of the book."""
    return [*sorted((ROOT / "notebooks").glob("*.ipynb")), ROOT / "book" / "intro.ipynb"]


def address() -> str:
    """Return owner/name as the notebooks carry it, "" before there is a repository."""
    code = "".join(find(notebooks()[0])["source"])
    found = re.search(f'REPOSITORY, TAG = "({OWNER_NAME})"', code)
    return found[1] if found else ""


def find(path: Path) -> dict:
    """Return the cell as a notebook has it."""
    cells = json.loads(path.read_text("utf8"))["cells"]
    return next(c for c in cells if c["id"] == ID)


def cell(repository: str) -> dict:
    """Return the cell; the book does not show it, JupyterLab shows it folded."""
    code = CODE.format(repository=repository, version=rope_minimal.__version__)
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": ID,
        "metadata": {"jupyter": {"source_hidden": True}, "tags": ["remove-cell"]},
        "outputs": [],
        "source": code.splitlines(keepends=True),
    }


def give(path: Path, repository: str) -> None:
    """Put the cell before the notebook's first other code, in place of an older one."""
    notebook = json.loads(path.read_text("utf8"))
    others = [c for c in notebook["cells"] if c["id"] != ID]
    first = next(i for i, c in enumerate(others) if c["cell_type"] == "code")
    notebook["cells"] = [*others[:first], cell(repository), *others[first:]]
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf8")


def checked(repository: str) -> str:
    """Return the address; raise unless it is owner/name, or "" for none."""
    if repository and not re.fullmatch(OWNER_NAME, repository):
        raise ValueError(f"the repository must be owner/name, got {repository!r}")
    return repository


if __name__ == "__main__":
    repository = checked(sys.argv[1] if len(sys.argv) > 1 else address())
    for notebook in notebooks():
        give(notebook, repository)
