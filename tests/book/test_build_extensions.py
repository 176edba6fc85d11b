"""The book's own Sphinx extensions: links, execution when code changed, the line in the footer."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from sphinx.errors import ExtensionError

from tests.tools import first_cell

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import built_from  # noqa: E402
import claims  # noqa: E402
import freshness  # noqa: E402
import plain_markdown  # noqa: E402
import repository  # noqa: E402
import theme_fixes  # noqa: E402


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


def git(folder, *words):
    """Run git with an author of its own."""
    who = ("-c", "user.name=reader", "-c", "user.email=reader@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repo(tmp_path, monkeypatch):
    """Return a repository of one commit that holds a notebook which knows its address."""
    for name in ("GITHUB_REPOSITORY", "GITHUB_SHA", "GITHUB_REF_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    folder = tmp_path / "repo"
    folder.mkdir()
    notebook = folder / "intro.ipynb"
    notebook.write_bytes((ROOT / "book" / "intro.ipynb").read_bytes())
    first_cell.give(notebook, "somebody/rope")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    return folder


def launch(repo, name, monkeypatch):
    """Return the launch buttons that the page is left with."""
    monkeypatch.setenv("GITHUB_REPOSITORY", name)
    url = f"https://colab.example/github/{name}/blob/main/intro.ipynb"
    buttons = [{"text": "Binder", "url": ""}, {"text": "Colab", "url": url}]
    context = {"header_buttons": [{"label": "launch-buttons", "buttons": buttons}]}
    env = SimpleNamespace(doc2path=lambda page, base: "intro.ipynb")
    repository.colab_where_it_works(
        SimpleNamespace(env=env, srcdir=repo), "intro", "", context, None
    )
    return {b["text"]: b["url"] for b in context["header_buttons"][0]["buttons"]}


def test_colab_is_offered_at_the_tag_that_knows_this_repository(repo, monkeypatch):
    assert set(launch(repo, "somebody/rope", monkeypatch)) == {"Binder"}  # not released yet
    git(repo, "tag", repository.TAG)
    found = launch(repo, "somebody/rope", monkeypatch)
    assert found["Colab"].endswith(f"/somebody/rope/blob/{repository.TAG}/intro.ipynb")
    assert set(launch(repo, "fork/rope", monkeypatch)) == {"Binder"}


def test_a_page_says_its_commit_and_day_and_links_it_where_it_can(repo, monkeypatch):
    sha = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repo, capture_output=True, text=True, check=True
    ).stdout[:7]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1609459200")
    plain = f'<span class="built-from">Built from commit {sha} on <time>2021-01-01</time>.</span>'
    assert built_from.line(repo) == plain
    monkeypatch.setenv("GITHUB_REPOSITORY", "somebody/rope")
    link = f'<a href="https://github.com/somebody/rope/commit/{sha}">{sha}</a>'
    assert built_from.line(repo) == plain.replace(sha, link)
    (repo / "intro.ipynb").write_text("{}")
    assert " with changes on <time>2021" in built_from.line(repo)


def test_without_git_the_environment_names_the_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    monkeypatch.setenv("GITHUB_SHA", "0123456789abcdef")
    assert "commit 0123456 on" in built_from.line(tmp_path)
    monkeypatch.delenv("GITHUB_SHA")
    assert "commit" not in built_from.line(tmp_path)


def test_a_new_line_is_written_into_finished_pages_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1609459200")
    page, other = tmp_path / "page.html", tmp_path / "other.html"
    page.write_text(f"<p>a</p>{built_from.EMPTY}<p>b</p>")
    other.write_text("<p>c</p>")
    app = SimpleNamespace(builder=SimpleNamespace(format="html"), srcdir=tmp_path, outdir=tmp_path)
    built_from.write(app, None)
    first = page.read_text()
    assert first.startswith("<p>a</p><span")
    assert "on <time>2021-01-01</time>.</span><p>b</p>" in first
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1609545600")
    built_from.write(app, None)
    assert page.read_text() == first.replace("2021-01-01", "2021-01-02")
    assert other.read_text() == "<p>c</p>"


def test_a_formula_and_the_full_stop_after_it_stay_together():
    formula = r'<span class="math notranslate nohighlight">\(m &lt; n\)</span>'
    context = {"body": f"<p>Where {formula}, and {formula} or ({formula}).</p>"}
    theme_fixes.glued_punctuation(None, "page", "page.html", context, None)
    glued = '<span class="glued">'
    assert context["body"] == (
        f"<p>Where {glued}{formula},</span> and {formula} or {glued}({formula}).</span></p>"
    )


def test_a_long_name_breaks_between_its_words():
    name, short = "test_a.py::test_of_it", "max_seq_len"
    code = '<code class="docutils literal"><span class="pre">{}</span></code>'
    context = {"body": code.format(name) + code.format(short)}
    theme_fixes.breakable_names(None, "page", "page.html", context, None)
    broken = "test_a.py::<wbr>test_<wbr>of_<wbr>it"
    assert context["body"] == code.format(broken) + code.format(short)


# what plain Markdown means on the site -----------------------------------------------------------


@pytest.mark.parametrize(
    ("plain", "myst"),
    [
        (
            "Before.\n\n> **Claim 4.1**\n>\n> One.\n>\n>     code\n\nAfter.",
            "Before.\n\n::::{admonition} Claim 4.1\n:class: claim\n:name: claim-4-1\n"
            "One.\n\n    code\n::::\n\nAfter.",
        ),
        (
            '> **Claim 4.1** [second check](../tests/book/test_x.py "test_a test_b")\n>\n> One.\n',
            "::::{admonition} Claim 4.1 {ref}`second check <claim-4-1-check>`\n:class: claim\n"
            ":name: claim-4-1\nOne.\n::::\n",
        ),
        (
            '> **Myth: "It is."**\n> No.',
            '::::{admonition} Myth: "It is."\n:class: myth\nNo.\n::::\n',
        ),
        (
            "> **What we do not say**\n> $x$",
            "::::{admonition} What we do not say\n:class: warning\n$x$\n::::\n",
        ),
        ("> A quotation.\n", "> A quotation.\n"),
        ("> **Bold** words\n> go on.\n", "> **Bold** words\n> go on.\n"),
        ("a [head](../book/glossary.md)", "a {term}`head <head>`"),
        ('two [hands](../book/glossary.md "hand")', "two {term}`hands <hand>`"),
        ("the [glossary](glossary.md)", "the [glossary](glossary.md)"),
        ("as in [[Su et al., 2021]](../book/references.bib)", "as in {cite}`su2021roformer`"),
        ("[[Nobody, 1900]](../book/references.bib)", "{cite}`Nobody, 1900`"),
    ],
)
def test_plain_markdown_means_more_on_the_site(plain, myst):
    assert plain_markdown.as_myst(plain, {"Su et al., 2021": "su2021roformer"}) == myst


def test_only_chapters_are_rewritten():
    source = ["> **Claim**\n> text"]
    plain_markdown.read(None, "book/notation", source)
    assert source == ["> **Claim**\n> text"]


# all claims on one page --------------------------------------------------------------------------

CLAIM = """# Many planes

> **Claim 4.1** [second check](../tests/book/CHECK)
>
> As in [Aliasing](06-aliasing.ipynb#a), a [head](../book/glossary.md).
"""
TWO_TESTS = """def test_a():
    assert f(1)


@pytest.mark.parametrize("x", [1, 2])
def test_b(x):
    assert f(x)"""


def listed(folder, text):
    """Return what the page of claims says of a chapter with this text."""
    (folder / "book").mkdir()
    (folder / "book" / "test_x.py").write_text(
        f"import pytest\n\n\n{TWO_TESTS}\n\n\ndef f(x):\n    return x\n"
    )
    cells = [{"cell_type": "markdown", "source": [text]}, {"cell_type": "code", "source": ["1"]}]
    notebook = folder / "04-many-planes.ipynb"
    notebook.write_text(json.dumps({"cells": cells}))
    return list(claims.claims(notebook, folder, {}))


def test_a_claim_is_listed_with_the_source_of_its_tests_and_nothing_else(tmp_path):
    heading, entry = listed(tmp_path, CLAIM.replace("CHECK", 'test_x.py "test_a test_b"'))
    assert heading == "## 4. Many planes\n"
    assert ":name: claim-4-1-check\n" in entry
    words = "As in [Aliasing](../notebooks/06-aliasing.ipynb#a), a {term}`head <head>`."
    assert f"{{ref}}`Claim 4.1 <claim-4-1>` {words}\n" in entry
    source = entry.partition("{code-block} python\n")[2].partition("\n::::")[0]
    assert source == f"# tests/book/test_x.py\n{TWO_TESTS}"


@pytest.mark.parametrize("check", ['test_x.py "test_c"', 'test_y.py "test_a"', "test_x.py"])
def test_a_second_check_that_does_not_exist_stops_the_build(tmp_path, check):
    with pytest.raises(ExtensionError, match=r"Claim 4\.1"):
        listed(tmp_path, CLAIM.replace("CHECK", check))


def test_a_notebook_without_claims_is_not_listed(tmp_path):
    assert listed(tmp_path, "# Many planes") == []
