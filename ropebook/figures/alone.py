"""A figure alone: one HTML file that works from a disk, offline, and in a frame of another page.

It holds the figure's state, its code and its style, and ``host.js``, which draws it. Nothing else
is asked for, and nothing of it is anybody else's.
"""

import base64
import functools
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import ipywidgets
from ipywidgets.embed import dependency_state
from latex2mathml.converter import convert

from .bundle import bundle, script

__all__ = [
    "Alone",
    "document",
    "figure_name",
    "figure_script",
    "host_script",
    "mathml",
    "page",
    "slim",
]

FOLDER = Path(__file__).parent
SLIDER = ("value", "min", "max", "step", "readout_format", "description", "_dom_classes")
CHOOSER = ("index", "_options_labels", "description", "_dom_classes")
# what host.js draws, and what of its state it reads; of a figure all that is its own
KINDS: dict[str, tuple[str, ...]] = {
    "AnyModel": (),
    "BoxModel": ("children", "_dom_classes"),
    "CheckboxModel": ("value", "description", "_dom_classes"),
    "DropdownModel": CHOOSER,
    "FloatLogSliderModel": (*SLIDER, "base"),
    "FloatSliderModel": SLIDER,
    "HTMLModel": ("value", "_dom_classes"),
    "IntSliderModel": SLIDER,
    "LinkModel": ("source", "target"),
    "ToggleButtonsModel": CHOOSER,
    "VBoxModel": ("children", "_dom_classes"),
}
UNDRAWN = re.compile(r"Layout|StyleModel$")
OF_JUPYTER = re.compile(r"_(model|view)_|_esm$|_css$|_dom_classes$|layout$|tabbable$|tooltip$")
LATEX = re.compile(r'\blatex: ("(?:[^"\\]|\\.)*")')

PAGE = """<!doctype html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'sha256-{digest}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="{description}">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main></main>
{foot}<script type="application/json" id="rope-state">{state}</script>
<script>{code}</script>
</body>
</html>
"""
STYLE = """html { color-scheme: light dark; }
html[data-theme="light"] { color-scheme: light; }
html[data-theme="dark"] { color-scheme: dark; background: #171d23; }
body { margin: 0; padding: 8px; }
main { max-width: 62rem; margin: 0 auto; }
"""


class Alone:
    """A widget that can be written into one HTML file."""

    def save(self, path: str | Path) -> None:
        """Write one HTML file that shows this, by itself and offline, in light and dark.

        Values in its address are where it starts: ``heatmap.html?dim=64``; ``theme=dark`` or
        ``theme=light`` says what it wears.

        Parameters
        ----------
        path
            Where: ``"heatmap.html"``. A file that is there is written again.
        """
        Path(path).write_text(page(self), encoding="utf-8")


def page(box: Any, *, title: str | None = None, description: str = "", lang: str = "en") -> str:
    """Return an HTML page that shows one figure, or a question, and asks for nothing else.

    Parameters
    ----------
    box
        What a function of `ropebook.figures` returns.
    title
        Of the page; by default the figure's question.
    description
        What search engines show; the title by default.
    lang
        The language of the page.

    Raises
    ------
    TypeError
        If ``box`` is no widget.
    ValueError
        If it holds a kind of widget that ``host.js`` does not draw; the message names it.
    """
    if not isinstance(box, ipywidgets.Widget):
        raise TypeError(f"box must be a widget, got {box!r}")
    return document(
        dependency_state([box], drop_defaults=False),
        box.model_id,
        title=question(box) if title is None else title,
        description=description,
        lang=lang,
    )


def document(
    models: dict[str, dict],
    root: str,
    *,
    title: str,
    description: str = "",
    lang: str = "en",
    foot: str = "",
    style: str = "",
    code: str = "",
    small: Callable[[str, str], str] = lambda text, kind: text,
) -> str:
    """Return such a page of what ipywidgets has written of a box, as a notebook holds it.

    Parameters
    ----------
    models
        The widgets of the box by their ids, and no others.
    root
        The id of the box.
    title, description, lang
        As for `page`.
    foot, style, code
        HTML below the figure, its style, and a script that runs when the figure stands.
    small
        Makes a text of a kind, ``"js"`` or ``"css"``, small.
    """
    state = slim(models)
    figures = [model["state"] for model in models.values() if "_esm" in model["state"]]
    latex = sorted({text for figure in figures for text in _latex(figure)})
    data = {"root": root, "state": state, "formulas": {text: mathml(text) for text in latex}}
    modules = {figure_name(figure["_anywidget_id"]): figure["_esm"] for figure in figures}
    scripts = [figure_script(name, module) for name, module in modules.items()]
    start = "window.ropeHost.drawAlone();\n"
    code = small("\n".join(["", *scripts, host_script(), start, code]), "js")
    code = code.replace("</script", r"<\/script")
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    styles = [STYLE, *{figure["_css"] for figure in figures}, style]
    return PAGE.format(
        lang=html.escape(lang),
        title=html.escape(title, quote=False),
        description=html.escape(description or title),
        digest=digest,
        style=small("".join(styles), "css"),
        state=renumbered(as_script(data), state),
        foot=foot,
        code=code,
    )


def slim(state: dict[str, dict]) -> dict[str, dict]:
    """Return what ``host.js`` reads of the state that ipywidgets writes.

    Raises
    ------
    ValueError
        If a kind of widget is none that it draws, or carries binary data; the message names it.
    """
    kept = {}
    for key, model in state.items():
        name = model["model_name"]
        if UNDRAWN.search(name):
            continue
        if name not in KINDS:
            raise ValueError(f"host.js draws no widget of the kind {name.removesuffix('Model')}")
        if model.get("buffers"):
            raise ValueError(f"host.js reads no binary data, got some of {name}")
        values = {
            trait: value
            for trait, value in model["state"].items()
            if (trait in KINDS[name] if KINDS[name] else not OF_JUPYTER.match(trait))
        }
        kept[key] = {"model_name": name, "state": values}
    return kept


def renumbered(text: str, ids: Iterable[str]) -> str:
    """Return a text in which numbers stand for the random ids of widgets: it is the same again."""
    numbers = {key: str(number) for number, key in enumerate(ids)}
    return re.sub("|".join(numbers), lambda found: numbers[found[0]], text)


def as_script(data: Any) -> str:
    """Return JSON that may stand in a script element of a page."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", r"\u003c")


def figure_name(identity: str) -> str:
    """Return the name of a figure's class in hyphens, as ``figureName`` of the kit does."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", identity.rpartition(".")[2]).lower()


def figure_script(name: str, module: str) -> str:
    """Return the code of a figure as a classic script that registers it under its name."""
    return script(module, f"(window.ropeFigures ??= {{}})[{json.dumps(name)}]")


@functools.cache
def host_script() -> str:
    """Return ``host.js`` as a classic script: ``window.ropeHost``."""
    return script(bundle(FOLDER / "host.js"), "window.ropeHost")


def question(box: Any) -> str:
    """Return what a figure or a question asks, as plain text."""
    if hasattr(box, "prompt"):
        return re.sub(r"\*\*|`", "", box.prompt)
    for widget in _inside(box):
        if isinstance(widget, ipywidgets.HTML):
            return html.unescape(re.sub("<[^>]*>", "", widget.value))
    return type(box).__name__


def mathml(latex: str) -> str:
    """Return LaTeX as MathML."""
    known = latex.replace(r"\arg", r"\operatorname{arg}")  # the converter does not know \arg
    return convert(known)


def _inside(widget: ipywidgets.Widget) -> Iterator[ipywidgets.Widget]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from _inside(child)


def _latex(figure: dict[str, Any]) -> Iterator[str]:
    """Yield the formulas of a figure's state: those in its code, and those in its data."""
    yield from map(json.loads, LATEX.findall(figure["_esm"]))
    waiting: list[Any] = [figure]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if formula := value.get("latex"):
                yield formula
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
