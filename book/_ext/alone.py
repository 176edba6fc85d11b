"""Each moving figure on a page of its own, figures/NAME.html, and the gallery of them all.

A figure is taken from the chapter that shows it, in the state that its notebook was executed to.
Its page is one file that asks for nothing (ropebook/figures/alone.py); below the figure stands
where it comes from, and what copies its address (alone.js). It may stand in anybody's frame.

The directive ``figure-gallery`` lists the figures with what each asks, what it answers at first,
and a picture. Answers, and the heights that frames need, are in alone.json, the pictures in
``_static/gallery``: ``tests.tools.gallery`` takes them from the built pages.

Run as a script this makes the files of a release from the built pages: ``make figures``.
"""

import html
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

from book_map import parts, short
from chapter import PAGE_NAME
from docutils import nodes
from figures import SHOWN, boxes, question
from myst_nb.sphinx_ import NbMetadataCollector
from PIL import Image
from published import address
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from vendor import small

from ropebook.figures import alone

ROOT = Path(__file__).parents[2]
SEEN = Path(__file__).with_suffix(".json")
SCRIPT = Path(__file__).with_suffix(".js")
SHEET = Path(__file__).with_suffix(".css")
FOLDER = "figures"
DEFAULT = 800, 900  # the height of a frame for a figure that has not been measured
PICTURES = "_static/gallery"
CHAPTER = re.compile(r'<a class="chapter" href="\.\./([^"]*)">(.*?)</a>')
FOOT = """<footer>
<p>From <a class="chapter" href="../{href}">{chapter}</a> in <cite>{book}</cite></p>
<p data-desk="{desk}" data-phone="{phone}">
<button type="button" data-copies="frame">Copy embed code</button>
<button type="button" data-copies="address">Copy address of this state</button>
</p>
</footer>
"""
CARD = """<li id="{name}">
<a href="{href}">{picture}<span class="gallery-question">{question}</span></a>
<p>{answer}</p>
<p class="gallery-chapter">In <a href="{there}">{chapter}</a></p>
</li>
"""
PICTURE = (
    '<img src="{src}" alt="" aria-hidden="true" width="{width}" height="{height}" loading="lazy" />'
)


class Standing(NamedTuple):
    """A figure where a chapter shows it."""

    page: str
    number: int
    """Which figure of its page it is, from 1: it stands at ``#figure-1``."""
    state: dict

    @property
    def name(self) -> str:
        """Return its name in hyphens."""
        return alone.figure_name(self.state["_anywidget_id"])

    @property
    def own(self) -> bool:
        """Tell whether it draws a model of the reader's or has a question of its chapter's.

        Then it has no page of its own.
        """
        return bool(self.state["_own_model"] or self.state["_again"])

    @property
    def place(self) -> str:
        """Return the address of the figure in its chapter, from the root of the site."""
        return f"{self.page}.html#figure-{self.number}"


def figures_of(page: str, states: list[dict]) -> list[Standing]:
    """Return the figures of a page, questions apart, from their states."""
    shown = (state for state in states if state["_question"])
    return [Standing(page, number, state) for number, state in enumerate(shown, 1)]


def chapters(app: Sphinx) -> list[str]:
    """Return the pages of the table of contents, without the first: its figure is a chapter's."""
    return [page for _, pages in parts(Path(app.srcdir) / "_toc.yml") for page in pages]


def figures(app: Sphinx) -> list[Standing]:
    """Return the book's figures in reading order; of those of one name the first."""
    found: dict[str, Standing] = {}
    for page in chapters(app):
        files = NbMetadataCollector.get_js_files(app.env, page)
        if page not in app.env.all_docs or "ipywidgets_state" not in files:
            continue
        models = json.loads(files["ipywidgets_state"][1]["body"])["state"]
        raw = "".join(node.astext() for node in app.env.get_doctree(page).findall(nodes.raw))
        states = [alone.figure_of(models, root) for root in SHOWN.findall(raw)]
        for figure in figures_of(page, states):
            if not figure.own:
                found.setdefault(figure.name, figure)
    return list(found.values())


def chapter_name(app: Sphinx, page: str) -> str:
    """Return the number and the title of a chapter, up to its first colon or comma."""
    title = short(app.env.titles[page].astext())
    numbers = app.env.toc_secnumbers.get(page, {}).get("")
    return f"{numbers[0]}. {title}" if numbers else title


def seen() -> dict[str, dict]:
    """Return what the browser saw of the figures: what each answers first, and how high it is."""
    return json.loads(SEEN.read_text("utf8"))


# ---- the gallery --------------------------------------------------------------------------------


class Gallery(SphinxDirective):
    """Mark the place of the gallery."""

    def run(self) -> list[nodes.Node]:
        """Return a node to be filled when all pages are read."""
        for path in (SEEN, ROOT / "_toc.yml"):
            self.env.note_dependency(str(path))
        for page in chapters(self.env.app):
            self.env.note_dependency(str(self.env.doc2path(page)))
        return [nodes.container(classes=["gallery"])]


def picture(app: Sphinx, name: str, folder: str) -> str:
    """Return the picture of a figure; "" before there is one."""
    path = Path(app.srcdir) / "book" / PICTURES / f"{name}.webp"
    if not path.exists():
        return ""
    with Image.open(path) as file:
        width, height = file.size
    return PICTURE.format(src=f"{folder}{PICTURES}/{path.name}", width=width, height=height)


def card(app: Sphinx, figure: Standing, page: str) -> str:
    """Return a figure as an item of the gallery."""
    up = "../" * page.count("/")
    return CARD.format(
        name=figure.name,
        href=f"{up}{FOLDER}/{figure.name}.html",
        picture=picture(app, figure.name, up),
        question=question(figure.state),
        answer=html.escape(seen().get(figure.name, {}).get("answer", ""), quote=False),
        there=up + figure.place,
        chapter=html.escape(chapter_name(app, figure.page)),
    )


def fill(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put the figures into the gallery."""
    for place in doctree.findall(nodes.container):
        if "gallery" in place["classes"]:
            cards = "".join(card(app, figure, page) for figure in figures(app))
            place.append(nodes.raw("", f'<ul class="gallery-cards">\n{cards}</ul>', format="html"))


# ---- the pages ----------------------------------------------------------------------------------


def link_alone(page: str) -> str:
    """Lead from a figure of a chapter to its own page."""
    name = PAGE_NAME.search(page)
    if not name:
        return page
    found = boxes(page)
    here = figures_of(name[1], [figure for _, figure in found])
    for (view, _), figure in reversed(list(zip(found, here, strict=True))):
        if figure.own:
            continue
        href = f"{'../' * name[1].count('/')}{FOLDER}/{figure.name}.html"
        label = f"open alone: {question(figure.state)}".replace('"', "&quot;")
        link = f'<p class="alone"><a href="{href}" aria-label="{label}">open alone</a></p>\n'
        page = page[: view.start()] + link + page[view.start() :]
    return page


def own_page(app: Sphinx, figure: Standing) -> str:
    """Return the page of a figure."""
    desk, phone = seen().get(figure.name, {}).get("heights", DEFAULT)
    foot = FOOT.format(
        href=figure.place,
        chapter=html.escape(chapter_name(app, figure.page), quote=False),
        book=html.escape(app.config.html_title, quote=False),
        desk=desk,
        phone=phone,
    )
    return alone.document(
        figure.state,
        title=f"{figure.state['_question']} · {app.config.html_title}",
        description=seen().get(figure.name, {}).get("answer", ""),
        foot=foot,
        style=SHEET.read_text("utf8"),
        code=SCRIPT.read_text("utf8"),
        small=small,
    )


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the pages of the figures, and no others into their folder."""
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.html"):
        old.unlink()
    for figure in figures(app):
        (folder / f"{figure.name}.html").write_text(own_page(app, figure), "utf8")


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.add_directive("figure-gallery", Gallery)
    app.connect("doctree-resolved", fill)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# ---- a release ----------------------------------------------------------------------------------


def released(page: str) -> str:
    """Return the page of a figure as a file that stands by itself: no link beside the site."""
    base = address()
    return CHAPTER.sub(
        lambda link: (
            f'<a class="chapter" href="{base}{link[1]}">{link[2]}</a>' if base else link[2]
        ),
        page,
    )


def release(site: Path, build: Path) -> list[Path]:
    """Write the figures of a built site as files for slides, and all of them in one."""
    (build / FOLDER).mkdir(parents=True, exist_ok=True)
    written = []
    with zipfile.ZipFile(build / "rope-figures.zip", "w", zipfile.ZIP_DEFLATED) as bundle:
        for path in sorted((site / FOLDER).glob("*.html")):
            file = build / FOLDER / path.name
            file.write_text(released(path.read_text("utf8")), "utf8")
            bundle.write(file, f"rope-figures/{file.name}")
            written.append(file)
    return written


def main() -> None:
    """Write the files of a release from the built book."""
    build = ROOT / "_build"
    written = release(build / "html", build)
    if not written:
        sys.exit("there are no figures: is the book built? run `make book`")
    print(f"{len(written)} figures are in {build / FOLDER}, and all in {build}/rope-figures.zip")


if __name__ == "__main__":
    main()
