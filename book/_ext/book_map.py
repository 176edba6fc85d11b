"""The map of the book: a picture with a link for every page in ``_toc.yml``.

The directive ``book-map`` stands for it. Nothing is typed in twice: which pages there are and in
which order comes from the table of contents, what they are called and ask from the pages.
"""

import textwrap
from html import escape
from pathlib import Path
from typing import NamedTuple

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

WIDTH, EDGE, GAP = 380, 4, 14  # in the picture's own units, about a pixel each on a phone
HEIGHT, SMALL, CAPTION = 52, 34, 24
LETTER = 6.9  # of 12.5 units, on average


class Stop(NamedTuple):
    """One page on the map."""

    page: str
    href: str
    title: str
    number: str = ""
    question: str = ""


def parts(toc: Path) -> list[tuple[str, list[str]]]:
    """Return the captions of the table of contents, each with its pages."""
    found = yaml.safe_load(toc.read_text("utf8"))["parts"]
    return [(part["caption"], [page["file"] for page in part["chapters"]]) for part in found]


def short(title: str) -> str:
    """Return a title up to its first colon or comma."""
    return title.split(":")[0].split(",")[0]


def draw(rows: list[tuple[str, list[Stop]]]) -> str:
    """Return the map as SVG: a row for each part, a line through the numbered chapters."""
    shapes, road, y = [], [], 0.0
    for caption, stops in rows:
        numbered = bool(stops[0].number)
        columns, height = (len(stops), HEIGHT) if numbered else (3, SMALL)
        width = min((WIDTH - 2 * EDGE - GAP * (columns - 1)) / columns, 190)
        left = (WIDTH - width * columns - GAP * (columns - 1)) / 2
        if len(stops) > 1:  # a part of one chapter has nothing to add to its title
            at = f'x="{left:g}" y="{y + 16:g}"'
            shapes.append(f'<text class="map-caption" {at}>{escape(caption)}</text>')
        y += CAPTION if len(stops) > 1 else CAPTION / 2
        for i, stop in enumerate(stops):
            row, column = divmod(i, columns)
            x, top = left + column * (width + GAP), y + row * (height + GAP / 2)
            shapes.append(_stop(stop, x, top, width, height))
            if numbered:
                road.append((x + width / 2, top + height / 2))
        y += -(-len(stops) // columns) * (height + GAP / 2) + GAP / 2
    line = " ".join(f"{x:g},{y:g}" for x, y in road)
    return (
        f'<svg viewBox="0 0 {WIDTH} {y:g}" role="group" aria-labelledby="map-title map-desc">'
        '<title id="map-title">Map of the book</title>'
        '<desc id="map-desc">A line leads through the chapters in reading order, one row for each '
        "part. Below it stand the appendices. Every box is a link.</desc>"
        f'<polyline class="map-road" points="{line}"/>{"".join(shapes)}</svg>'
    )


def _stop(stop: Stop, x: float, y: float, width: float, height: float) -> str:
    words = textwrap.wrap(short(stop.title), max(int(width / LETTER), 8))
    lines = [stop.number, *words] if stop.number else words
    first = y + height / 2 - 15 * (len(lines) - 1) / 2 + 4.5
    spans = "".join(
        f'<tspan x="{x + width / 2:g}" y="{first + 15 * i:g}">{escape(line)}</tspan> '
        for i, line in enumerate(lines)
    )
    label = f"{stop.number} {' '.join(words)}".strip()
    name = escape(f"{label}. {stop.question}" if stop.question else label)
    return (
        f'<a class="map-stop" href="{stop.href}" aria-label="{name}">'
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7"/>'
        f"<text>{spans}</text></a>"
    )


def questions(rows: list[tuple[str, list[Stop]]]) -> str:
    """Return the questions of the chapters as a list of links."""
    asked = [stop for _, stops in rows for stop in stops if stop.question]
    items = "".join(
        f'<li class="map-stop" value="{stop.number}">'
        f'<a href="{stop.href}">{escape(stop.question)}</a></li>'
        for stop in asked
    )
    return f'<ol class="map-questions">{items}</ol>'


class BookMap(SphinxDirective):
    """Mark the place of the map."""

    def run(self) -> list[nodes.Node]:
        """Return a node to be filled when all pages are read."""
        toc = Path(self.env.srcdir) / "_toc.yml"
        self.env.note_dependency(str(toc))
        for _, pages in parts(toc):
            for page in pages:
                self.env.note_dependency(str(self.env.doc2path(page)))
        return [nodes.raw("", "", format="html", classes=["book-map"])]


def fill(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Draw the map where a page asks for it."""
    for place in doctree.findall(nodes.raw):
        if "book-map" not in place["classes"]:
            continue
        *chapters, (last, appendices) = parts(Path(app.srcdir) / "_toc.yml")
        rows = [(caption, [chapter(app, c, page) for c in pages]) for caption, pages in chapters]
        rows.append((last, [appendix(app, other, page) for other in appendices]))
        html = f'<nav class="book-map" aria-label="Map">{draw(rows)}{questions(rows)}</nav>'
        place.children = [nodes.Text(html)]


def appendix(app: Sphinx, page: str, seen_from: str) -> Stop:
    """Return the title of a page and the way there."""
    title = app.env.titles[page].astext()
    return Stop(page, app.builder.get_relative_uri(seen_from, page), title)


def chapter(app: Sphinx, page: str, seen_from: str) -> Stop:
    """Return the same with the chapter's number and the question under its title."""
    numbers = app.env.toc_secnumbers[page][""]
    asked = (
        paragraph.astext()
        for paragraph in app.env.get_doctree(page).findall(nodes.paragraph)
        if [type(child) for child in paragraph.children] == [nodes.emphasis]
    )
    return appendix(app, page, seen_from)._replace(number=str(numbers[0]), question=next(asked, ""))


def load_script(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Load the script of the reading paths on the page with the map."""
    if '<nav class="book-map"' in context.get("body", ""):
        app.add_js_file("book-map.js", loading_method="defer")


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.add_directive("book-map", BookMap)
    app.connect("doctree-resolved", fill)
    app.connect("html-page-context", load_script, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
