"""Moving figures: their scripts, once for the whole site, and their places in a page.

A page carries the state of its figures alone. ``host.js``, with the figures' kit, draws them from
it, with the script of each figure and the style of all, which `write_scripts` puts into
``_static/figures``: classic scripts, because a page that was opened as a file loads no modules.
The data of figures in `APART` are many, or stand on a page more than once: they lie in a script of
their own, which ``host.js`` loads when the figure's place comes near. What a figure of `LATE`
imports stands in a script, too, which the figure loads for a worker when its reader starts
something.

A moving figure is drawn when its code has come, after the text. Until then its place
is held open, as high as the figure was when `tests.tools.heights` measured it last, so that nothing
below it moves: first value for a desk, second for a phone. Without a value it has no place.
"""

import hashlib
import html
import json
import re
import tempfile
from pathlib import Path

from chapter import PAGE_NAME
from docutils import nodes
from sphinx.application import Sphinx
from vendor import esbuild

from ropebook import figures
from ropebook.figures import alone

HEIGHTS = Path(__file__).with_suffix(".json")
VIEW = re.compile(
    r'<div class="cell_output docutils container">(?=\s*'
    r'<script type="application/vnd\.jupyter\.widget-view\+json">[^<]*"model_id": "(\w+)")'
)
SHOWN = re.compile(r'widget-view\+json">[^<]*"model_id": "(\w+)"')
STATE = re.compile(
    r'<script type="application/vnd\.jupyter\.widget-state\+json">(.*?)</script>', re.S
)
END = "</script></div>"
OPENINGS = '<div class="openings">'
SCALE = 120  # per cent: the words of a picture are then 17 to 18 px high
BOOK_STYLE = re.compile(r'<link rel="stylesheet"[^>]* href="([^"]*_static/)book\.css[^"]*" />')
PICTURE = re.compile(r"<img (?=[^>]*_images/)")
SIZE = re.compile(r'style="width: ([\d.]+)px; height: ([\d.]+)px;"')
APART = {"bug-bench", "model-card", "real-head", "recent-methods", "trained-models"}
LATE = {"train-it": "training.js"}
addresses: dict[str, str] = {}  # of the scripts and the style, below _static
outputs: list[Path] = []  # where they lie


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


def boxes(page: str) -> list[tuple[re.Match[str], dict]]:
    """Return where a page's figures stand, questions apart, and the state of each."""
    state = STATE.search(page)
    models = json.loads(state[1])["state"] if state else {}
    found = [(view, alone.figure_of(models, view[1])) for view in VIEW.finditer(page)]
    return [(view, figure) for view, figure in found if figure["_question"]]


def question(figure: dict) -> str:
    """Return what a figure answers, in HTML."""
    return html.escape(figure["_question"], quote=False)


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
    links = "".join(
        f'<li><a href="#figure-{number}">{question(figure)}</a></li>\n'
        for number, (_, figure) in enumerate(boxes(page), 1)
    )
    if not links:
        return page
    return page.replace(OPENINGS, f'<ul class="figures-here">\n{links}</ul>\n{OPENINGS}')


def texts() -> dict[str, str]:
    """Return the scripts of all figures, of their kit and host, and their style, by file name."""
    classes = [getattr(figures, name) for name in figures.__all__]
    kinds = [one for one in classes if isinstance(one, type) and issubclass(one, figures.Figure)]
    names = [alone.figure_name(one.__name__) for one in kinds if one is not figures.Figure]
    start = 'document.addEventListener("DOMContentLoaded", () => window.ropeHost.drawPage());\n'
    return {
        **{f"{name}.js": alone.figure_script(name, LATE.get(name, "")) for name in names},
        **{late: alone.trainer_script(late) for late in LATE.values()},
        "host.js": alone.host_script() + start,
        "figure.css": figures.Figure._css,
    }


def write_scripts(app: Sphinx) -> None:
    """Write the scripts and the style, made small, into the site."""
    if app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "figures"
    outputs[:] = [target]
    with tempfile.TemporaryDirectory() as folder:
        files = {Path(folder, name): text for name, text in texts().items()}
        for path, text in files.items():
            path.write_text(text, "utf8")
        esbuild("--minify", f"--outdir={target}", *map(str, files))
    for path in files:
        digest = hashlib.sha256((target / path.name).read_bytes()).hexdigest()
        addresses[path.name] = f"figures/{path.name}?v={digest[:8]}"


def set_apart(state: dict, static: str) -> dict:
    """Return a figure's state as its page carries it, and write its data into a script."""
    name = alone.figure_name(state["_anywidget_id"])
    if name in LATE:
        return {**state, "_worker": f"{static}{addresses[LATE[name]]}"}
    if name not in APART:
        return state
    text = alone.as_script(state["data"])
    data = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.js"
    code = f"(window.ropeData ??= {{}})[document.currentScript.src] = {text};\n"
    (outputs[0] / data).write_text(code, "utf8")
    return {**state, "data": {}, "_data": f"{static}figures/{data}"}


def share_code(page: str) -> str:
    """Let a page carry what the host reads of its figures' state, and load their code.

    Another kind of widget fails the build. Numbers stand for the random ids of widgets, so that a
    page that is built again is the same.
    """
    found = STATE.search(page)
    style = BOOK_STYLE.search(page)
    if not found or not style:
        return page
    models = json.loads(found[1])["state"]
    shown = {root: alone.figure_of(models, root) for root in SHOWN.findall(page)}
    numbers = {root: str(number) for number, root in enumerate(shown)}
    state = {
        numbers[root]: set_apart(alone.slim(figure), style[1]) for root, figure in shown.items()
    }
    start, end = found.span(1)
    page = page[:start] + alone.as_script({"state": state}) + page[end:]
    page = re.sub("|".join(numbers), lambda root: numbers[root[0]], page)
    wanted = {f"{alone.figure_name(one['_anywidget_id'])}.js" for one in shown.values()}
    scripts = "".join(
        f'<script defer src="{style[1]}{addresses[name]}"></script>\n'
        for name in ["host.js", *sorted(wanted)]
    )
    before, body_end, after = page.rpartition("</body>")
    return f"{before}{scripts}{body_end}{after}"


def hold_pictures(body: str) -> str:
    """Say each picture's size as attributes: by their ratio a narrow page holds its place."""
    return SIZE.sub(
        lambda size: f'width="{float(size[1]):.0f}" height="{float(size[2]):.0f}" {size[0]}', body
    )


def load_pictures_late(body: str) -> str:
    """Load a picture when its place comes near; the first of a page may be on the first screen."""
    first, *others = PICTURE.split(body)
    if not others:
        return body
    return f"{first}<img " + '<img loading="lazy" '.join(others)


def link_pictures(app: Sphinx, doctree: nodes.document) -> None:
    """Give every picture a size, which holds its place, and so Sphinx's link to the whole of it."""
    for picture in doctree.findall(nodes.image):
        picture.setdefault("scale", SCALE)


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("builder-inited", write_scripts)
    app.add_css_file("figures/figure.css")
    app.connect("doctree-read", link_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
