"""The places of moving figures and of pictures in a page, before they are there.

A moving figure is drawn when all of its code has come, seconds after the text. Until then its place
is held open, as high as the figure was when `tests.tools.heights` measured it last, so that nothing
below it moves: first value for a desk, second for a phone. Without a value it has no place.
"""

import json
import re
from pathlib import Path

from chapter import PAGE_NAME
from docutils import nodes
from sphinx.application import Sphinx

HEIGHTS = Path(__file__).with_suffix(".json")
VIEW = re.compile(
    r'<div class="cell_output docutils container">(?=\s*'
    r'<script type="application/vnd\.jupyter\.widget-view\+json">[^<]*"model_id": "(\w+)")'
)
STATE = re.compile(
    r'<script type="application/vnd\.jupyter\.widget-state\+json">(.*?)</script>', re.S
)
END = "</script></div>"
OPENINGS = '<div class="openings">'
SCALE = 80  # per cent: the pictures have 144 dots to an inch


def hold_places(page: str) -> str:
    """Hold open the places of figures and questions."""
    name = PAGE_NAME.search(page)
    heights = json.loads(HEIGHTS.read_text("utf8")).get(name[1], []) if name else []
    sizes = iter(heights)

    def hold(view: re.Match[str]) -> str:
        if not (size := next(sizes, None)):
            return view[0]
        held = f' style="--desk: {size[0]}px; --phone: {size[1]}px"'
        return view[0].replace('container">', f'container place"{held}>')

    return VIEW.sub(hold, page)


def boxes(page: str) -> list[tuple[re.Match[str], str]]:
    """Return where a page's figures stand, questions apart, and what each asks, in HTML."""
    state = STATE.search(page)
    models = json.loads(state[1])["state"] if state else {}
    found = []
    for view in VIEW.finditer(page):
        box = models[view[1]]
        if box["model_name"] == "VBoxModel":
            title = models[box["state"]["children"][0].removeprefix("IPY_MODEL_")]
            found.append((view, re.sub("<[^>]*>", "", title["state"]["value"])))
    return found


def skip_figures(page: str) -> str:
    """Lead the Tab key past a figure, and on to the next."""
    found = boxes(page)
    for number, (view, _) in reversed(list(enumerate(found, 1))):
        links = f'<a href="#after-figure-{number}">Skip this figure</a>'
        if number < len(found):
            links += f' <a href="#figure-{number + 1}">Go to the next figure</a>'
        before = f'<p class="skip-figure" id="figure-{number}">{links}</p>\n'
        after = f'\n<span id="after-figure-{number}"></span>'
        end = page.index(END, view.end()) + len(END)
        parts = page[: view.start()], before, page[view.start() : end], after, page[end:]
        page = "".join(parts)
    return page


def list_figures(page: str) -> str:
    """List what the figures of a chapter ask, as links to them, under the chapter's question."""
    asked = [question for _, question in boxes(page)]
    links = "".join(
        f'<li><a href="#figure-{number}">{question}</a></li>\n'
        for number, question in enumerate(asked, 1)
    )
    if not links:
        return page
    return page.replace(OPENINGS, f'<ul class="figures-here">\n{links}</ul>\n{OPENINGS}')


def link_pictures(app: Sphinx, doctree: nodes.document) -> None:
    """Give every picture a size, which holds its place, and so Sphinx's link to the whole of it."""
    for picture in doctree.findall(nodes.image):
        picture.setdefault("scale", SCALE)


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("doctree-read", link_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
