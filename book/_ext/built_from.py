"""Say at the foot of every page which commit it was built from, and when.

The words are put into a page when it is written (page.py), so a new commit or day renders no page
again that has not changed.
"""

import html
import os
import subprocess
import time
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

EMPTY = '<span class="built-from"></span>'
ROOT = Path(__file__).parents[2]


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


@cache
def own_line() -> str:
    """Return the line of this repository: git is asked once, and not for every page."""
    return line(ROOT)


def say_commit(page: str) -> str:
    """Fill the line of a page."""
    return page.replace(EMPTY, own_line())


def reserve(app: Sphinx, config: Config) -> None:
    """Give every page an empty line in its footer."""
    config.html_theme_options["extra_footer"] = EMPTY


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("config-inited", reserve, priority=1)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
