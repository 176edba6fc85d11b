"""The numbers of the built book on one page: ``make report``, or ``python -m tests.tools.report``.

Sizes are bytes as a plain file server sends them, uncompressed; ``gzip`` says what a host that
compresses (GitHub Pages does) sends instead. Times are this machine's, in headless Chromium. The
command fails when a byte budget is broken or a page has an accessibility violation.

Options: ``--files`` skips what needs the browser, ``--memory`` measures the notebooks' memory,
``--only 06`` looks at the pages with that in their name.
"""

import argparse
import copy
import gzip
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import claims  # noqa: E402

SITE = ROOT / "_build" / "html"
PAGE_BUDGET = 1_500_000  # HTML, style and scripts of a page, before any widget
SITE_BUDGET = 27_500_000  # everything but Python for the live cells
TRANSFER_BUDGET = 1_000_000  # what a page read to its end asks for, compressed
HTML_BUDGET = 60_000  # HTML of a page with figures, compressed, on average
STYLE_BUDGET = 40_000  # the one style sheet, compressed
ELEMENTS_BUDGET = 4_000  # of a page as it comes
LONG_TABLES = {  # pages that are a list of everything
    "book/api.html": 15_000,
    "book/claims.html": 6_500,
    "notebooks/B-proposal-trained.html": 17_000,
}
START_BUDGET = 600  # milliseconds from load to the last figure; reported, not enforced

WIDGET_DATA = "application/vnd.jupyter.widget-state+json"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
CHECKS_OF_SOURCES = "notebooks/A-sources.html"
REFERENCES = "book/references.html"
LAST_RUN = ROOT / "_build" / "tests.xml"  # of `make test` without ARGS


def page_names() -> list[str]:
    """Return the book's pages, without the indexes that Sphinx adds."""
    folders = (SITE / "book", SITE / "notebooks")
    return sorted(p.relative_to(SITE).as_posix() for f in folders for p in f.glob("*.html"))


@cache
def document(name: str) -> BeautifulSoup:
    """Return a parsed page."""
    return BeautifulSoup((SITE / name).read_text("utf8"), "lxml")


@cache
def compressed(path: Path) -> int:
    """Return how many bytes of a file a host that compresses sends."""
    return len(gzip.compress(path.read_bytes(), 6))


def linked_files(name: str) -> list[Path]:
    """Return the style sheets and scripts that a page names."""
    links = [tag["href"] for tag in document(name).find_all("link", rel="stylesheet")]
    links += [tag["src"] for tag in document(name).find_all("script", src=True)]
    folder = (SITE / name).parent
    return sorted({(folder / urlsplit(link).path).resolve() for link in links})


def is_widget_code(path: Path) -> bool:
    """Tell whether a script or a style sheet is there for the figures alone."""
    return path.parent == SITE / "_static" / "figures"


def widget_data(name: str) -> bytes:
    """Return what a page holds of its widgets: their states."""
    states = document(name).find_all("script", type=WIDGET_DATA)
    return b"".join(state.decode_contents().encode() for state in states)


@cache
def weight(name: str) -> dict[str, int]:
    """Return the bytes of a page's HTML, style and scripts: before widgets, and all."""
    files = {path: path.stat().st_size for path in linked_files(name)}
    before = sum(size for path, size in files.items() if not is_widget_code(path))
    html = (SITE / name).stat().st_size
    return {
        "before": html - len(widget_data(name)) + before,
        "all": html + sum(files.values()),
    }


def compressed_weight(name: str) -> int:
    """Return the bytes before widgets as a host that compresses sends them."""
    html, data = (SITE / name).read_bytes(), widget_data(name)
    own = len(gzip.compress(html, 6)) - len(gzip.compress(data, 6)) * bool(data)
    return own + sum(compressed(path) for path in linked_files(name) if not is_widget_code(path))


def elements(name: str) -> int:
    """Return how many elements a page has where scripts run, before they do."""
    page = copy.copy(document(name))
    for inert in page.find_all("noscript"):
        inert.clear()
    return len(page.find_all(True))


def html_weight() -> int:
    """Return the bytes of HTML of a page with figures, compressed, on average."""
    sizes = [compressed(SITE / name) for name in page_names() if widget_data(name)]
    return round(sum(sizes) / len(sizes))


def transfer(requests: list[str], site: str) -> int:
    """Return the bytes of what a page asked for at an address, each file once and compressed."""
    own = {urlsplit(url).path for url in requests if url.startswith(site)}
    return sum(compressed(SITE / path.removeprefix(urlsplit(site).path)) for path in own)


def site_size() -> dict[str, int]:
    """Return the bytes of the site without, and of, Python for the live cells."""
    python = SITE / "_static" / "vendor" / "python"
    every = {path: path.stat().st_size for path in SITE.rglob("*") if path.is_file()}
    inside = sum(size for path, size in every.items() if python in path.parents)
    return {"site": sum(every.values()) - inside, "python": inside}


@cache
def contents(name: str) -> dict[str, int]:
    """Count what a page offers to a reader."""
    page = document(name)
    return {
        "figures": len(page.find_all("script", type=WIDGET_VIEW)),
        "exercises": len(page.select(".admonition.exercise")),
        "claims": len(page.select(".admonition.claim[id]")),  # the first page shows an example
        "live cells": len(page.select(".cell.tag_live")),
        "sources": len(page.select(".citation")) if name == REFERENCES else 0,
        "sentences of sources checked": (
            len(page.select("table tbody tr")) if name == CHECKS_OF_SOURCES else 0
        ),
        "words": words(name),
    }


def words(name: str) -> int:
    """Return how many words a page has to read: formulas count as they are written, code not."""
    article = copy.copy(document(name).find("article"))
    for other in article.select("pre, script, style, mjx-container, .skip-figure, .headerlink"):
        other.decompose()
    return len(article.get_text(" ").split())


KINDS = {
    "it trains models": r"\btrain\w*\(|\bexperiments\b|\bcontest\b",
    "it evaluates records": r"\brecords?\b|\brecorded\b",
    "it asks another package": r"\btransformers\b|\btimm\b|\bonnx|rotary_embedding_torch",
    "it calculates with letters": r"\bsp\.|\bsympy\b|\bmpmath\b|\bmp\.",
    "it draws cases": r"@given|default_rng|manual_seed|random",
    "it computes the thing another way": "",
}
"""What tells the kinds of second checks apart, in their code and in what that calls."""


def whole_code(name: str, known: dict[str, str]) -> str:
    """Return the source of a test, with that of the functions and fixtures of its file it names."""
    found: dict[str, str] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        found[one] = known[one]
        waiting += [
            other for other in re.findall(r"\w+", found[one]) if other in known.keys() - found
        ]
    return "\n".join(found.values())


def second_checks() -> dict[str, int]:
    """Count the second checks of the claims by kind, each once."""
    tests = set()
    for notebook in claims.chapters(ROOT):
        for box in claims.BOX.findall(claims.prose(notebook)):
            if link := claims.CHECK.fullmatch(box[1]):
                tests |= {(ROOT / "tests" / link[1], name) for name in link[2].split()}
    counts = dict.fromkeys(KINDS, 0)
    for file, name in tests:
        code = whole_code(name, claims.functions(file))
        counts[next(kind for kind, sign in KINDS.items() if re.search(sign, code))] += 1
    return counts


def families() -> dict[str, int]:
    """Return how many model families of transformers the atlas asked, and how many rotations."""
    counts = json.loads((ROOT / "atlas/results/transformers.json").read_text("utf8"))["counts"]
    return {"families in the atlas": counts["recorded"], "their rotations": counts["rotations"]}


def broken_budgets() -> list[str]:
    """Name every byte budget that is broken."""
    broken = [
        f"{name}: {weight(name)['before']:,} bytes before widgets, budget {PAGE_BUDGET:,}"
        for name in page_names()
        if weight(name)["before"] > PAGE_BUDGET
    ]
    if (size := site_size()["site"]) > SITE_BUDGET:
        broken.append(f"the site: {size:,} bytes without Python, budget {SITE_BUDGET:,}")
    if (size := html_weight()) > HTML_BUDGET:
        broken.append(f"HTML of a page with figures: {size:,} bytes, budget {HTML_BUDGET:,}")
    return broken


# ---- in the browser -----------------------------------------------------------------------------

TIMES = """
window.ropeTimes = {};
new PerformanceObserver(list => {
    for (const entry of list.getEntriesByName('first-contentful-paint')) {
        ropeTimes.paint = entry.startTime;
    }
}).observe({ type: 'paint', buffered: true });
addEventListener('load', () => {
    ropeTimes.load = performance.now();
    const stand = STAND;
    const look = () => {
        if (stand()) ropeTimes.figures = performance.now();
        else requestAnimationFrame(look);
    };
    look();
});
"""


READ_TO_THE_END = """async () => {
    for (let y = 0; y < document.body.scrollHeight; y += 900) {
        window.scrollTo(0, y);
        await new Promise(requestAnimationFrame);
    }
    await Promise.all([...document.images].map(picture => {
        picture.loading = 'eager'; // those that came near for a moment only
        return picture.decode().catch(() => {});
    }));
}"""
COLOURS_STAND = """() => document.getAnimations()
    .filter(each => each instanceof CSSTransition)
    .forEach(each => each.finish())"""


def violations(page: object, theme: str) -> list[str]:
    """Return what axe-core finds on an open page: of every level, and in the dark of colours."""
    page.evaluate("t => { document.documentElement.dataset.theme = t }", theme)
    page.evaluate("window.scrollTo(0, 0)")  # further down, the header may cover half a control
    page.evaluate(COLOURS_STAND)
    options = COLOURS if theme == "dark" else EVERYTHING
    found = page.evaluate("([where, options]) => axe.run(where, options)", [WHERE, options])
    return [
        f"{theme}: {v['impact']} {v['id']}: {v['help']} at {[n['target'] for n in v['nodes'][:5]]}"
        for v in found["violations"]
    ]


AXE = (ROOT / "node_modules" / "axe-core" / "axe.min.js").read_text("utf8")

# Typeset formulas are hidden from assistive technology, which gets MathML beside them. The size of
# targets (WCAG 2.2) is the one rule of level AA that axe leaves out by itself.
WHERE = {"exclude": [["mjx-math"]]}
EVERYTHING = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
# What can be other in the dark, where nothing but colours is.
COLOURS = {"resultTypes": ["violations"], "runOnly": ["color-contrast", "link-in-text-block"]}


def in_browser(names: list[str]) -> dict[str, dict]:
    """Read pages to their end; return first paint, start of the figures, bytes, axe's findings."""
    from playwright.sync_api import sync_playwright

    from tests.site.conftest import FIGURES_STAND, served
    from tests.tools.browser import launch, wait_for

    seen = {}
    with served(SITE) as address, sync_playwright() as playwright:
        browser = launch(playwright)
        for name in names:
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            context.add_init_script(TIMES.replace("STAND", FIGURES_STAND))
            context.set_default_timeout(120_000)
            page = context.new_page()
            requests: list[str] = []
            page.on("request", lambda request, seen=requests: seen.append(request.url))
            page.goto(address + name)
            wait_for(page, "() => window.ropeTimes?.figures")
            page.evaluate(READ_TO_THE_END)
            page.wait_for_load_state("networkidle")
            seen[name] = page.evaluate("window.ropeTimes")
            seen[name]["transfer"] = transfer(requests, address)
            page.evaluate(AXE)
            seen[name]["axe"] = [v for t in ("light", "dark") for v in violations(page, t)]
            context.close()
        browser.close()
    return seen


# ---- on paper -----------------------------------------------------------------------------------


def last_run() -> dict[str, int]:
    """Return how many tests ran when all were asked for last, and how long they took."""
    if not LAST_RUN.exists():
        return {"tests in the last whole run": 0}
    suite = ElementTree.parse(LAST_RUN).getroot()[0]
    return {
        "tests in the last whole run": int(suite.get("tests")) - int(suite.get("skipped")),
        "seconds it took": round(float(suite.get("time"))),
    }


def tests_collected() -> int:
    """Return how many tests there are."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return int(re.search(r"(\d+) tests? collected", done.stdout)[1])


def memory() -> str:
    """Return what ``tests.tools.memory`` prints."""
    command = [sys.executable, "-m", "tests.tools.memory"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.dumps(json.loads(done.stdout), indent=1)


def table(rows: list[list]) -> str:
    """Align rows of texts and numbers; the first row is the head."""
    texts = [[f"{c:,}" if isinstance(c, int) else str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in texts) for i in range(len(texts[0]))]
    lines = []
    for row in texts:
        first, *rest = (text.rjust(width) for text, width in zip(row, widths, strict=True))
        lines.append("  ".join([first.strip().ljust(widths[0]), *rest]))
    return "\n".join(lines)


def main() -> None:
    """Print the report; exit with 1 when a budget is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true", help="skip what needs the browser")
    parser.add_argument("--memory", action="store_true", help="measure the notebooks' memory")
    parser.add_argument("--only", default="", help="report on pages with this in their name")
    options = parser.parse_args()
    names = [name for name in page_names() if options.only in name]
    if not names:
        sys.exit("there is no such page: is the book built? run `make book`")

    head = ["page", "elements", "before widgets", "gzip", "with widgets", "HTML gzip"]
    rows = [
        [
            name,
            elements(name),
            weight(name)["before"],
            compressed_weight(name),
            weight(name)["all"],
            compressed(SITE / name),
        ]
        for name in names
    ]
    seen = {} if options.files else in_browser(names)
    if seen:
        head += ["all gzip", "first paint ms", "load ms", "figures after load ms", "axe"]
        for name, row in zip(names, rows, strict=True):
            times = seen[name]
            started = round(times["figures"] - times["load"]) if contents(name)["figures"] else "-"
            row += [
                times["transfer"],
                round(times["paint"]),
                round(times["load"]),
                started,
                len(times["axe"]),
            ]
    print("HTML, style and scripts of every page, in bytes\n")
    print(table([head, *rows]))

    counts = [contents(name) for name in names]
    totals = {key: sum(count[key] for count in counts) for key in counts[0]}
    size = site_size()
    print()
    print(
        table(
            [
                ["the book", "number"],
                ["pages", len(names)],
                *([key, number] for key, number in totals.items()),
                *([f"second checks: {kind}", n] for kind, n in second_checks().items()),
                *([key, number] for key, number in families().items()),
                ["tests", tests_collected()],
                *([key, number] for key, number in last_run().items()),
                ["bytes of HTML of a page with figures, gzip", html_weight()],
                ["bytes of the site without Python", size["site"]],
                ["bytes of Python for live cells", size["python"]],
            ]
        )
    )
    if options.memory:
        print(f"\nmemory of the notebooks\n{memory()}")

    broken = broken_budgets()
    broken += [
        f"{name}: {times['transfer']:,} bytes in all, budget {TRANSFER_BUDGET:,}"
        for name, times in seen.items()
        if times["transfer"] > TRANSFER_BUDGET
    ]
    broken += [f"{name}: {v}" for name, times in seen.items() for v in times["axe"]]
    late = [
        name
        for name, times in seen.items()
        if contents(name)["figures"] and times["figures"] - times["load"] > START_BUDGET
    ]
    if late:
        print(f"\nfigures later than {START_BUDGET} ms after load (on an idle machine?):", *late)
    if broken:
        sys.exit("\n".join(["", "broken:", *broken]))


if __name__ == "__main__":
    main()
