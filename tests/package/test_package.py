"""The package alone: what its wheel holds, and that it works where only NumPy is installed."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rope_minimal
from tests.tools import oldest, pins

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
PROJECT = PYPROJECT["project"]
HEAVY = (".*", "_build", "build", "node_modules", "*.egg-info", "__pycache__")


def run(*command: object, cwd: Path) -> str:
    """Run a command apart from this checkout; return what it prints, or fail with its errors."""
    words = [str(word) for word in command]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
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


BARE = """
import json, rope_minimal
missing = {}
for name in json.loads(%r):
    try:
        exec(f"from rope_minimal import {name}")
    except ImportError as error:
        missing[name] = str(error)
theta = list(rope_minimal.inverse_frequencies(8))
print(json.dumps([rope_minimal.__file__, theta, missing]))
"""


def test_beside_numpy_alone_it_works_or_says_what_a_name_needs(bare: Path) -> None:
    names = [*rope_minimal.__all__, "explore"]
    out = run(bare, "-I", "-c", BARE % json.dumps(names), cwd=bare.parent)
    where, theta, missing = json.loads(out)
    assert bare.parents[1] in Path(where).parents
    assert theta == list(rope_minimal.inverse_frequencies(8))
    needs = {
        "torch": ("torch", ["rotation", "cache", "attention", "serving"]),
        "mpmath": ("proofs", ["derivation"]),
        "traitlets": ("explore", ["explore"]),  # the first of what it imports
    }
    for library, (extra, modules) in needs.items():
        assert extra in PROJECT["optional-dependencies"]
        for name in names:
            if rope_minimal._HOME.get(name, name) in modules:
                assert missing.pop(name) == (
                    f"rope_minimal.{name} needs {library}, which is not installed: install it, "
                    f"or this package with its extra, rope_minimal[{extra}]"
                )
    assert missing == {}


def test_type_checkers_see_every_public_name_where_it_lives() -> None:
    stub = ast.parse((ROOT / "rope_minimal" / "__init__.pyi").read_text("utf8"))
    seen = {
        alias.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == rope_minimal._HOME


def test_every_requirement_is_pinned_for_every_system_and_from_anywhere() -> None:
    text = (ROOT / "constraints.txt").read_text("utf8")
    assert "://" not in text  # whoever wrote it, from whichever index
    for pin in pins.lines("constraints.txt"):
        assert re.fullmatch(r"==[\w.]+", str(pin.specifier)), (
            pin
        )  # and no build of torch: 2.13.0+cpu
    names = {canonicalize_name(pin.name) for pin in pins.lines("constraints.txt")}
    assert {"appnope", "colorama", "nvidia-cublas"} < names  # macOS, Windows, CUDA
    build = [Requirement(line) for line in PYPROJECT["build-system"]["requires"]]
    for wanted in (*pins.lines("requirements-dev.txt"), *build):
        if wanted.marker is None or wanted.marker.evaluate():
            version = pins.pinned().get(canonicalize_name(wanted.name))
            assert str(wanted.specifier) == f"=={version}", f"{wanted}: run `make constraints`"


def test_the_oldest_versions_promised_are_not_newer_than_the_pins() -> None:
    written = pins.pinned()
    for line in oldest.promises():
        wanted = Requirement(line)
        assert re.fullmatch(r">=[\d.]+", str(wanted.specifier)), line
        assert wanted.specifier.contains(written[canonicalize_name(wanted.name)]), line
