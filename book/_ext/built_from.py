"""Say at the foot of every page which commit it was built from, and when.

The words are put into the finished pages, so that a new commit or a new day renders no page again.
"""

import html
import os
import re
import subprocess
import time
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

EMPTY = '<span class="built-from"></span>'
LINE = re.compile(r'<span class="built-from">.*?</span>', re.DOTALL)


def commit(root: Path) -> str:
    """Return the commit as HTML: short, linked where the repository is known, "" if unknown."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=7"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        name = done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        name = os.environ.get("GITHUB_SHA", "")[:7]
    sha, changed = name.removesuffix("+"), name.endswith("+")
    repository = os.environ.get("GITHUB_REPOSITORY", "")
    text = html.escape(sha)
    if repository and sha:
        address = html.escape(f"https://github.com/{repository}/commit/{sha}")
        text = f'<a href="{address}">{text}</a>'
    return text + (" with changes" if changed else "")


def line(root: Path) -> str:
    """Return the line: commit and day, in UTC; SOURCE_DATE_EPOCH overrides the clock."""
    now = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    day = time.strftime("%Y-%m-%d", time.gmtime(now))
    what = commit(root)
    source = f"from commit {what} " if what else ""
    return f'<span class="built-from">Built {source}on <time>{day}</time>.</span>'


def reserve(app: Sphinx, config: Config) -> None:
    """Give every page an empty line in its footer."""
    config.html_theme_options["extra_footer"] = EMPTY


def write(app: Sphinx, error: Exception | None) -> None:
    """Fill the lines, also of the pages that were not rendered this time."""
    if error or app.builder.format != "html":
        return
    now = line(Path(app.srcdir))
    for path in Path(app.outdir).rglob("*.html"):
        before = path.read_text("utf8")
        after = LINE.sub(lambda _: now, before)
        if after != before:
            path.write_text(after, "utf8")


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("config-inited", reserve, priority=1)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
