"""The chapters as cards, on the first page: for each its question, its title and its time.

The directive ``book-map`` stands for them, and its content is the list of the reading paths: an
item names its path in emphasis, and its links are the path's pages. Nothing else is typed in:
which pages there are and in which order comes from ``_toc.yml``, what they are called and ask from
the pages, and how long they take to read from their notebooks.
"""

from html import escape
from pathlib import Path
from typing import NamedTuple

import yaml
from chapter import HOW, minutes
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Stop(NamedTuple):
    """One page on the map."""

    href: str
    title: str
    number: str = ""
    question: str = ""
    minutes: int = 0


def parts(toc: Path) -> list[tuple[str, list[str]]]:
    """Return the captions of the table of contents, each with its pages."""
    found = yaml.safe_load(toc.read_text("utf8"))["parts"]
    return [(part["caption"], [page["file"] for page in part["chapters"]]) for part in found]


def short(title: str) -> str:
    """Return a title up to its first colon or comma."""
    return title.split(":")[0].split(",")[0]


def buttons(paths: list[str]) -> str:
    """Return a button for each reading path."""
    made = "".join(
        f'<button type="button" aria-pressed="false">{escape(path)}</button>' for path in paths
    )
    return f'<div class="map-paths" role="group" aria-label="Reading paths">{made}</div>'


def cards(chapters: list[Stop]) -> str:
    """Return the chapters, each as a card that is one link."""
    made = "".join(
        f'<li><a href="{stop.href}"><span class="map-question">'
        f"{escape(stop.question or stop.title)}</span> "
        f'<span class="map-chapter">{stop.number}. {escape(short(stop.title))} · '
        f"{stop.minutes} min</span></a></li>"
        for stop in chapters
    )
    return f'<ol class="map-cards">{made}</ol>'


def behind(appendices: list[Stop]) -> str:
    """Return the appendices in one line."""
    links = (f'<a href="{stop.href}">{escape(short(stop.title))}</a>' for stop in appendices)
    return f'<p class="map-behind">Behind the chapters: {" · ".join(links)}</p>'


class BookMap(SphinxDirective):
    """Mark the place of the map."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return a node to be filled when all pages are read."""
        toc = Path(self.env.srcdir) / "_toc.yml"
        self.env.note_dependency(str(toc))
        for _, pages in parts(toc):
            for page in pages:
                self.env.note_dependency(str(self.env.doc2path(page)))
        place = nodes.container(classes=["book-map"])
        self.state.nested_parse(self.content, self.content_offset, place)
        return [place]


def fill(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put the buttons, the cards and the appendices around the list of the paths."""
    for place in doctree.findall(nodes.container):
        if "book-map" not in place["classes"]:
            continue
        *chapters, (_, appendices) = parts(Path(app.srcdir) / "_toc.yml")
        (paths,) = place.findall(nodes.bullet_list)
        paths["classes"].append("reading-paths")
        names = [next(item.findall(nodes.emphasis)).astext() for item in paths]
        numbered = cards([chapter(app, other, page) for _, pages in chapters for other in pages])
        last = behind([appendix(app, other, page) for other in appendices])
        above = f'<nav aria-label="Chapters">{buttons(names)}'
        below = f'{numbered}{last}<p class="map-how">{HOW}</p></nav>'
        place.insert(0, nodes.raw("", above, format="html"))
        place.append(nodes.raw("", below, format="html"))


def appendix(app: Sphinx, page: str, seen_from: str) -> Stop:
    """Return the title of a page and the way there."""
    return Stop(app.builder.get_relative_uri(seen_from, page), app.env.titles[page].astext())


def chapter(app: Sphinx, page: str, seen_from: str) -> Stop:
    """Return the same with the chapter's number, the question under its title and its time."""
    numbers = app.env.toc_secnumbers[page][""]
    asked = (
        paragraph.astext()
        for paragraph in app.env.get_doctree(page).findall(nodes.paragraph)
        if [type(child) for child in paragraph.children] == [nodes.emphasis]
    )
    return appendix(app, page, seen_from)._replace(
        number=str(numbers[0]),
        question=next(asked, ""),
        minutes=minutes(Path(app.env.doc2path(page))),
    )


def load_script(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Load the script of the reading paths on the page with the map."""
    if 'class="map-paths"' in context.get("body", ""):
        app.add_js_file("book-map.js", loading_method="defer")


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.add_directive("book-map", BookMap)
    app.connect("doctree-resolved", fill)
    app.connect("html-page-context", load_script, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
