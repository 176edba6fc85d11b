"""Links that need to know where the repository lives: launch buttons, edit and source links.

The address comes from the environment, ``GITHUB_REPOSITORY`` (owner/name) and
``GITHUB_REF_NAME`` (branch or tag) as GitHub Actions sets them, so that a fork's site launches
the fork's notebooks and a local build shows no dead button.
"""

import os

from sphinx.application import Sphinx
from sphinx.config import Config

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


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("config-inited", add_repository, priority=1)
    app.connect("source-read", badges)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
