"""The package alone: what its wheel holds, and that it works where only NumPy is installed."""

import ast
import json
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rope_minimal
from tests import constraints, oldest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
HEAVY = (".*", "_build", "build", "node_modules", "*.egg-info", "__pycache__")


def run(*command: object, cwd: Path) -> str:
    """Run a command to its end and return what it prints; its errors are the test's message."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the sources, with what is installed and no network."""
    source = tmp_path_factory.mktemp("source") / "book"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*HEAVY))
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--quiet")
    run(sys.executable, "-m", "pip", "wheel", ".", *options, "-w", source / "dist", cwd=source)
    (path,) = (source / "dist").glob("rope_minimal-*.whl")
    return path


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel beside NumPy alone and return the interpreter."""
    folder = tmp_path_factory.mktemp("bare")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / "bin" / "python"
    install = ("pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet", wheel)
    run(sys.executable, "-m", *install, cwd=folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in ("numpy", "numpy.libs"):
        if (there := Path(np.__file__).parents[1] / name).exists():
            (packages / name).symlink_to(there)
    return python


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    suffixes = ("py", "pyi", "js", "css", "mplstyle", "typed")
    wanted = {
        path.relative_to(ROOT).as_posix()
        for suffix in suffixes
        for path in (ROOT / "rope_minimal").rglob(f"*.{suffix}")
    }
    assert {"rope_minimal/book.mplstyle", "rope_minimal/explore/figure.css"} < wanted
    info = f"rope_minimal-{rope_minimal.__version__}.dist-info/"
    assert {name for name in names if not name.startswith(info)} == wanted
    assert f"{info}licenses/LICENSE" in names


def test_it_works_beside_numpy_alone(bare: Path) -> None:
    code = """
        import json, rope_minimal as r
        print(json.dumps([r.__file__, list(r.inverse_frequencies(8))]))
    """
    where, theta = json.loads(run(bare, "-I", "-c", textwrap.dedent(code), cwd=bare.parent))
    assert bare.parents[1] in Path(where).parents
    assert theta == list(rope_minimal.inverse_frequencies(8))


@pytest.mark.parametrize(
    ("statement", "name", "needs", "extra"),
    [
        ("from rope_minimal import apply_rope", "apply_rope", "torch", "torch"),
        ("from rope_minimal import Derivation", "Derivation", "mpmath", "proofs"),
        ("from rope_minimal import explore", "explore", "ipywidgets", "explore"),
    ],
)
def test_a_name_that_needs_more_says_what(bare, statement, name, needs, extra) -> None:
    code = f"try:\n    {statement}\nexcept ImportError as error:\n    print(error)"
    assert run(bare, "-I", "-c", code, cwd=bare.parent).strip() == (
        f"rope_minimal.{name} needs {needs}, which is not installed: install it, or this package "
        f"with its extra, rope_minimal[{extra}]"
    )
    assert extra in PROJECT["project"]["optional-dependencies"]


def test_type_checkers_see_every_public_name_where_it_lives() -> None:
    stub = ast.parse((ROOT / "rope_minimal" / "__init__.pyi").read_text("utf8"))
    seen = {
        alias.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == rope_minimal._HOME


def test_pins_agree_with_each_other_and_with_what_is_installed() -> None:
    written, installed = constraints.written(), constraints.installed()
    both = written.keys() & installed.keys()  # other systems and versions need a few others
    assert {name: written[name] for name in both} == {name: installed[name] for name in both}
    if sys.platform == "linux" and sys.version_info[:2] == (3, 11):
        assert written.keys() == installed.keys(), "run `make constraints` once the tests pass"
    build = [Requirement(line) for line in PROJECT["build-system"]["requires"]]
    for wanted in (*constraints.requirements(), *build):
        assert str(wanted.specifier) == f"=={written[canonicalize_name(wanted.name)]}", wanted.name


def test_the_oldest_versions_promised_are_not_newer_than_the_pins() -> None:
    written = constraints.written()
    for line in oldest.promises():
        wanted = Requirement(line)
        assert re.fullmatch(r">=[\d.]+", str(wanted.specifier)), line
        assert wanted.specifier.contains(written[canonicalize_name(wanted.name)]), line
