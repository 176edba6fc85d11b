"""Links that need to know where the repository lives: launch buttons, edit and source links.

The address comes from the environment, ``GITHUB_REPOSITORY`` (owner/name) and
``GITHUB_REF_NAME`` (branch or tag) as GitHub Actions sets them, so that a fork's site launches
the fork's notebooks and a local build shows no dead button.

Colab gets a notebook alone, which then clones the repository from the address and at the tag that
it carries (tests/tools/first_cell.py). So the button leads to the notebook of that tag, and a page
has it only where the tag holds the notebook with this repository's address.
"""

import os
import subprocess

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

import rope_minimal

TAG = f"v{rope_minimal.__version__}"
BINDER = "https://mybinder.org"


def add_repository(app: Sphinx, config: Config) -> None:
    """Fill the theme's options when the repository is known."""
    name = os.environ.get("GITHUB_REPOSITORY", "")
    branch = os.environ.get("GITHUB_REF_NAME", "main")
    known = bool(name)
    config.html_theme_options.update(
        use_repository_button=known,
        use_edit_page_button=known,
        use_issues_button=known,
        use_source_button=known,
    )
    if not known:
        return
    config.html_theme_options.update(
        repository_url=f"https://github.com/{name}",
        repository_branch=branch,
        path_to_docs="",
        launch_buttons={
            "binderhub_url": BINDER,
            "colab_url": "https://colab.research.google.com",
            "notebook_interface": "jupyterlab",
        },
    )


def badges(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace ``<!-- launch badges -->`` with links, or with nothing without a repository."""
    marker = "<!-- launch badges -->"
    if marker not in source[0]:
        return
    name = os.environ.get("GITHUB_REPOSITORY", "")
    branch = os.environ.get("GITHUB_REF_NAME", "main")
    links = (
        f"[Open in Binder]({BINDER}/v2/gh/{name}/{branch}?urlpath=lab/tree/notebooks) · "
        f"[Source on GitHub](https://github.com/{name})"
        if name
        else ""
    )
    source[0] = source[0].replace(marker, links)


def at_tag(root: str, path: str) -> str:
    """Return the text of a file at the tag of this version, "" where there is none."""
    command = ["git", "show", f"{TAG}:./{path}"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, encoding="utf8", check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout


def colab_where_it_works(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Lead to the notebook of the tag, or take the button away."""
    name = os.environ.get("GITHUB_REPOSITORY", "")
    branch = os.environ.get("GITHUB_REF_NAME", "main")
    for group in context.get("header_buttons", []):
        if group.get("label") != "launch-buttons":
            continue
        path = str(app.env.doc2path(page, base=False))
        knows = f'REPOSITORY, TAG = \\"{name}\\", \\"{TAG}\\"' in at_tag(app.srcdir, path)
        group["buttons"] = [b for b in group["buttons"] if b["text"] != "Colab" or knows]
        for button in group["buttons"]:
            if button["text"] == "Colab":
                button["url"] = button["url"].replace(f"/blob/{branch}/", f"/blob/{TAG}/")


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("config-inited", add_repository, priority=1)
    app.connect("source-read", badges)
    app.connect("html-page-context", colab_where_it_works, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
