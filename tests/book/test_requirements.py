"""What the book's code imports is what requirements.txt brings, and no more: no test's package."""

import ast
import json
import re
import sys
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
OWN = {"rope_minimal", "ropescope", "ropebook", "experiments", "atlas", "slides"}
CODE = [
    *sorted((ROOT / "notebooks").glob("*.ipynb")),
    ROOT / "book" / "intro.ipynb",
    *sorted((ROOT / "experiments").glob("*.py")),
    *sorted((ROOT / "slides").glob("*.py")),
    ROOT / "atlas" / "__init__.py",
    ROOT / "ropebook" / "atlas.py",
]


@cache
def brought(file: Path) -> set[str]:
    """Return the distributions that a file of requirements brings, those of its own included."""
    lines = (line.split("#")[0].strip() for line in file.read_text("utf8").splitlines())
    waiting = [Requirement(line) for line in lines if line and not line.startswith("-")]
    found = set()
    while waiting:
        name = canonicalize_name(waiting.pop().name)
        if name in found:
            continue
        found.add(name)
        needed = map(Requirement, distribution(name).requires or [])
        waiting += [one for one in needed if not one.marker or one.marker.evaluate({"extra": ""})]
    return found


@cache
def owners_of_packages() -> dict[str, list[str]]:
    """Return the distributions that install each package, asked once: there are hundreds."""
    return dict(packages_distributions())


def imported(code: str) -> set[str]:
    """Return the packages that code imports, without those that it first asks for."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.split(".")[0])
    return found - set(re.findall(r'find_spec\("(\w+)', code))


def source(path: Path) -> str:
    """Return the code of a module or of a notebook."""
    if path.suffix == ".py":
        return path.read_text("utf8")
    cells = json.loads(path.read_text("utf8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


@pytest.mark.parametrize("path", CODE, ids=lambda path: path.stem)
def test_the_book_imports_nothing_that_its_requirements_do_not_bring(path: Path) -> None:
    names = imported(source(path)) - sys.stdlib_module_names - OWN
    known = brought(ROOT / "requirements.txt")
    owners = owners_of_packages()
    missing = {n for n in names if not known & {canonicalize_name(o) for o in owners.get(n, [])}}
    assert missing == set()


def test_what_code_asks_for_first_need_not_be_there() -> None:
    code = 'import a.b\nif find_spec("c"):\n    import c.d\nfrom . import e\nclass F:\n  import g'
    assert imported(code) == {"a", "g"}
