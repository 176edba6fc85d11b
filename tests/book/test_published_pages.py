"""What the build does to every page before a reader gets it: weight, policy, address."""

import base64
import hashlib
import re
import sys
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import lean  # noqa: E402
import policy  # noqa: E402
import published  # noqa: E402

HEAD = '<html><head>\n    <meta charset="utf-8" />\n</head><body>'


def test_rules_that_no_page_can_match_are_dropped():
    sheet = """
        /* a comment */
        .kept, .gone { color: red }
        .kept .gone { color: red }
        #gone:hover, a:not(.gone) { color: blue }
        .bs-tooltip-auto { top: 0 }
        @media (min-width: 10px) { .gone { top: 0 } .kept > p { top: 1px } }
        @media print { .gone { top: 0 } }
        @font-face { font-family: f; src: url(f.woff2) }
    """
    found = re.sub(r"\s+", "", lean.lean_sheet(sheet, {"kept"}))
    assert found == (
        ".kept{color:red}a:not(.gone){color:blue}.bs-tooltip-auto{top:0}"
        "@media(min-width:10px){.kept>p{top:1px}}@font-face{font-family:f;src:url(f.woff2)}"
    )


def test_a_broken_style_sheet_is_named():
    with pytest.raises(ValueError, match="cannot be read"):
        lean.lean_sheet(".a { color: red } .b", {"a"})


def test_text_comes_first_and_repeated_style_once():
    data = '<script type="application/vnd.jupyter.widget-state+json">{"a": 1}</script>'
    code = '<script src="../_static/vendor/require.js?v=1"></script>'
    page = (
        f"<head>{data}{code}</head><body><style>a</style>x<style>a</style><style>b</style></body>"
    )
    late = code.replace("<script", "<script defer")
    assert lean.tidy(page) == (
        f"<head></head><body><style>a</style>x<style>b</style>{data}\n{late}\n</body>"
    )


def test_a_policy_allows_the_scripts_of_its_page_by_their_text():
    text = "let a = 1;"
    page = f'{HEAD}<script>{text}</script><script type="text/json">2</script></body></html>'
    allowed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    assert policy.inline_hashes(page) == [f"'sha256-{allowed}'"]
    assert "unsafe" not in policy.policy(page).replace("style-src 'self' 'unsafe-inline'", "")
    figures = page + policy.WIDGETS
    assert "blob: 'unsafe-eval'" in policy.policy(figures)


def test_handlers_in_attributes_are_handed_to_the_books_script():
    page = f'{HEAD}<p>a onb="c"</p><button class="d" onclick="window.print()">e</button>'
    assert '<p>a onb="c"</p>' in policy.with_policy(page)
    assert '<button class="d" data-onclick="window.print()">' in policy.with_policy(page)
    script = (ROOT / "book" / "_static" / "book.js").read_text("utf8")
    assert '"window.print()":' in script


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ""),
        ({"GITHUB_REPOSITORY": "Somebody/rope"}, "https://somebody.github.io/rope/"),
        ({"GITHUB_REPOSITORY": "a/a.github.io"}, "https://a.github.io/"),
        ({"SITE_URL": "http://b.example/c"}, "http://b.example/c/"),
    ],
)
def test_the_address_comes_from_the_environment(monkeypatch, environment, expected):
    for name in ("GITHUB_REPOSITORY", "SITE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert published.address() == expected


def test_an_address_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("SITE_URL", "book")
    with pytest.raises(ValueError, match="SITE_URL must start with http"):
        published.address()


def book(folder, base):
    (folder / "_static" / "vendor").mkdir(parents=True)
    titles = {"book/intro": "Intro", "notebooks/a": "A & B"}
    env = SimpleNamespace(
        toctree_includes={"book/intro": ["notebooks/a"]},
        titles={k: SimpleNamespace(astext=lambda v=v: v) for k, v in titles.items()},
    )
    config = SimpleNamespace(html_baseurl=base, html_title="Rotary", root_doc="book/intro")
    builder = SimpleNamespace(format="html")
    return SimpleNamespace(outdir=folder, srcdir=ROOT, config=config, env=env, builder=builder)


@pytest.mark.parametrize("base", ["", "https://somebody.github.io/rope/"])
def test_the_files_beside_the_pages(tmp_path, monkeypatch, base):
    monkeypatch.setattr(published, "social_card", lambda: b"card")
    published.lead(book(tmp_path, base), None)
    lost = (tmp_path / "404.html").read_text("utf8")
    root = "/rope/" if base else "/"
    assert f'<a href="{root}notebooks/a.html">A &amp; B</a>' in lost
    assert not re.search(r"\bsrc=|<link", lost)  # nothing to look for beside a wrong address
    assert "url=book/intro.html" in (tmp_path / "index.html").read_text("utf8")
    assert (tmp_path / "sitemap.xml").exists() == bool(base)
    assert ("Sitemap:" in (tmp_path / "robots.txt").read_text("utf8")) == bool(base)
    if base:
        assert f"<loc>{base}notebooks/a.html</loc>" in (tmp_path / "sitemap.xml").read_text("utf8")


@pytest.mark.parametrize("base", ["", "https://somebody.github.io/rope/"])
def test_a_page_says_what_a_link_to_it_shows(base):
    context = {"title": "Two <em>layouts</em>", "metatags": ""}
    published.describe(book_config(base), "notebooks/a", "page.html", context, None)
    tags = context["metatags"]
    assert '<meta property="og:title" content="Two layouts" />' in tags
    assert published.SENTENCE in tags
    for name in ("og:url", "og:image"):
        assert (f'property="{name}"' in tags) == bool(base)
    assert (f'content="{base}{published.CARD}"' in tags) == bool(base)


def book_config(base):
    return SimpleNamespace(config=SimpleNamespace(html_baseurl=base, html_title="Rotary"))


def test_the_social_card_is_a_small_picture_of_the_usual_size():
    drawn = published.social_card()
    assert len(drawn) < 150_000
    assert Image.open(BytesIO(drawn)).size == (1200, 630)
