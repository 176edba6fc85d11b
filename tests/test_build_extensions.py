"""The book's own Sphinx extensions: links from the environment, and execution when code changed."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import freshness  # noqa: E402
import repository  # noqa: E402


@pytest.fixture
def project(tmp_path):
    (tmp_path / "rope_minimal").mkdir()
    (tmp_path / "rope_minimal" / "layout.py").write_text("a = 1\n")
    return SimpleNamespace(srcdir=tmp_path, outdir=tmp_path / "_build" / "html")


def environment():
    paths = {"book/notation": "book/notation.md", "notebooks/05-layouts": "05-layouts.ipynb"}
    return SimpleNamespace(found_docs=set(paths), doc2path=paths.get)


def test_notebooks_are_outdated_once_after_the_package_changed(project):
    env = environment()
    assert freshness.outdated(project, env, set(), set(), set()) == []
    assert freshness.outdated(project, env, set(), set(), set()) == []
    (project.srcdir / "rope_minimal" / "layout.py").write_text("a = 2\n")
    assert freshness.outdated(project, env, set(), set(), set()) == ["notebooks/05-layouts"]
    assert freshness.outdated(project, env, set(), set(), set()) == []


def test_each_state_of_the_package_has_its_own_execution_cache(project):
    config = SimpleNamespace()
    freshness.place_cache(project, config)
    first = config.nb_execution_cache_path
    (project.srcdir / "rope_minimal" / "figure.js").write_text("// new\n")
    freshness.place_cache(project, config)
    assert config.nb_execution_cache_path != first


@pytest.mark.parametrize("known", [True, False])
def test_links_appear_when_the_repository_is_known(monkeypatch, known):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    monkeypatch.setenv("GITHUB_REF_NAME", "v1")
    if known:
        monkeypatch.setenv("GITHUB_REPOSITORY", "somebody/rope")
    config = SimpleNamespace(html_theme_options={})
    repository.add_repository(None, config)
    options = config.html_theme_options
    assert options["use_edit_page_button"] is known
    assert ("launch_buttons" in options) is known
    if known:
        assert options["repository_url"] == "https://github.com/somebody/rope"
        assert options["repository_branch"] == "v1"

    source = ["before <!-- launch badges --> after"]
    repository.badges(None, "book/intro", source)
    assert "launch badges" not in source[0]
    assert ("somebody/rope/v1" in source[0]) is known
