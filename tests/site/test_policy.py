"""Every page carries a Content-Security-Policy, and the policy bites.

All tests of the site run under it: a page that breaks its own policy logs an error, which they see.
"""

import re

import pytest

from tests.tools.browser import wait_for

from .conftest import SITE

pytestmark = pytest.mark.drawn(3)

EVERY = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
HTML = [name for name in EVERY if not name.startswith("figures/")]
ALONE = [name for name in EVERY if name.startswith("figures/")]
BARE = ("index.html", "404.html")
PLAIN = "book/notation.html"
FIGURES = "book/intro.html"
FOREIGN = "https://elsewhere.example"

INTRUDE = """async foreign => {
    window.blocked = [];
    document.addEventListener('securitypolicyviolation', event =>
        window.blocked.push(`${event.effectiveDirective} ${event.blockedURI}`));
    const add = (tag, properties) =>
        document.body.append(Object.assign(document.createElement(tag), properties));
    add('img', { src: `${foreign}/pixel.png` });
    add('script', { src: `${foreign}/script.js` });
    add('script', { textContent: 'window.intruder = 1' });
    add('iframe', { src: `${foreign}/frame.html` });
    add('link', { rel: 'stylesheet', href: `${foreign}/style.css` });
    const button = document.createElement('button');
    button.setAttribute('onclick', 'window.intruder = 2');
    document.body.append(button);
    button.click();
    await document.fonts.load('10px intruder').catch(() => {});
    const font = new FontFace('intruder', `url(${foreign}/font.woff2)`);
    await font.load().catch(() => {});
    await fetch(`${foreign}/data.json`).catch(() => {});
}"""


def policy(name):
    text = (SITE / name).read_text("utf8")
    found = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert len(found) == 1, name
    parts = (part.split() for part in found[0].split(";"))
    return text, {part[0]: part[1:] for part in parts}


def test_every_page_allows_what_it_needs_and_no_more():
    assert len(HTML) > 20
    for name in HTML:
        text, rules = policy(name)
        assert text.index('<meta charset="utf-8" />') < 900, name  # or browsers guess
        assert rules["default-src"] == ["'none'" if name in BARE else "'self'"], name
        for source in (s for sources in rules.values() for s in sources):
            assert source.startswith("'") or source == "data:", f"{name}: {source}"
        if name in BARE:
            assert "script-src" not in rules
            continue
        for kind in ("connect-src", "font-src", "frame-src"):
            assert rules[kind] == ["'self'"], name
        assert rules["img-src"] == ["'self'", "data:"], name
        scripts = rules["script-src"]
        assert "'unsafe-inline'" not in scripts, name
        assert "'unsafe-eval'" not in scripts, name
        assert ("worker-src" in rules) == ("live-cells.js" in text), name
        assert not re.search(r"<[a-z][^<>]*\son[a-z]+=", text), name


def test_a_figure_alone_may_run_its_own_script_and_load_nothing():
    assert len(ALONE) > 15
    for name in ALONE:
        _, rules = policy(name)
        (script,) = rules.pop("script-src")
        assert re.fullmatch("'sha256-[\\w+/=]+'", script), name
        assert rules == {
            "default-src": ["'none'"],
            "style-src": ["'unsafe-inline'"],
            "base-uri": ["'none'"],
            "form-action": ["'none'"],
        }, name


@pytest.mark.parametrize("name", [PLAIN, FIGURES])
def test_what_comes_from_elsewhere_is_blocked(visit, name):
    seen = visit()
    page = seen.open(name)
    assert seen.problems == []
    page.evaluate(INTRUDE, FOREIGN)
    for wanted in (
        f"img-src {FOREIGN}/pixel.png",
        f"script-src-elem {FOREIGN}/script.js",
        "script-src-elem inline",
        "script-src-attr inline",
        f"frame-src {FOREIGN}",
        f"style-src-elem {FOREIGN}/style.css",
        f"font-src {FOREIGN}/font.woff2",
        f"connect-src {FOREIGN}/data.json",
    ):
        is_blocked = "wanted => window.blocked.some(found => found.startsWith(wanted))"
        wait_for(page, is_blocked, arg=wanted)
    assert page.evaluate("window.intruder ?? null") is None


@pytest.mark.parametrize("name", [PLAIN, FIGURES])
def test_a_page_compiles_no_text(visit, name):
    page = visit().open(name)
    # a script of the page, not of the test's own console, which no policy binds
    page.evaluate(
        """() => {
            document.addEventListener('securitypolicyviolation', event => {
                window.refused = event.blockedURI;
            });
            setTimeout('window.intruder = 1', 0);
        }"""
    )
    wait_for(page, "() => window.refused || window.intruder")
    assert page.evaluate("[window.refused, window.intruder ?? null]") == ["eval", None]


@pytest.mark.parametrize("name", ["search.html?q=pair", "genindex.html", "404.html", "index.html"])
def test_the_other_pages_keep_their_policy_too(visit, name):
    seen = visit()
    seen.open(name)
    assert seen.foreign == []
    assert seen.problems == []


def test_the_buttons_that_the_theme_wires_in_the_page_still_work(visit):
    page = visit().open(PLAIN)
    page.evaluate("window.print = () => { window.printed = true }")
    page.locator("button[aria-label='Download this page']").click()
    page.locator("[data-onclick='window.print()']").click()
    assert page.evaluate("window.printed")
    page.locator("[data-onclick='toggleFullScreen()']").click()
    wait_for(page, "() => document.fullscreenElement !== null")


@pytest.mark.parametrize("name", [PLAIN, FIGURES])
def test_a_page_opened_as_a_file_keeps_its_policy_and_its_looks(browser, name):
    page = browser.new_page()
    problems = []
    page.on("console", lambda m: m.type == "error" and problems.append(m.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((SITE / name).as_uri())
    page.wait_for_load_state("networkidle")
    if name == FIGURES:
        page.locator(".rope-figure[data-drawn]").first.wait_for()
    else:
        page.locator("mjx-container").first.wait_for()
    family = page.evaluate("getComputedStyle(document.querySelector('.bd-article')).fontFamily")
    assert "Source Serif" in family
    assert problems == []
    page.close()
