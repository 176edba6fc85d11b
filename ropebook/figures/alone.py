"""A figure alone: one HTML file that works from a disk, offline, and in a frame of another page.

It holds the figure's state, its code and its style, and ``host.js``, which draws it. It loads
nothing else, and nothing of it belongs to anybody else.
"""

import base64
import functools
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anywidget
from latex2mathml.converter import convert

from .bundle import scopes

__all__ = [
    "document",
    "figure_name",
    "figure_of",
    "figure_script",
    "host_script",
    "mathml",
    "page",
    "trainer_script",
]

FOLDER = Path(__file__).parent
OF_JUPYTER = re.compile(
    r"_(model|view)_|_esm$|_css$|_dom_classes$|_elsewhere$|layout$|tabbable$|tooltip$"
)
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


def page(figure: Any, *, title: str | None = None, description: str = "", lang: str = "en") -> str:
    """Return an HTML page that shows one figure, or a question, and loads nothing else.

    Parameters
    ----------
    figure
        A figure or a question of `ropebook.figures`.
    title
        Of the page; by default the figure's question.
    description
        What search engines show; the title by default.
    lang
        The language of the page.

    Raises
    ------
    TypeError
        If ``figure`` is none.
    """
    if not isinstance(figure, anywidget.AnyWidget):
        raise TypeError(f"figure must be a figure, got {figure!r}")
    state = figure.get_state()
    question = re.sub(r"\*\*|`", "", state.get("prompt") or state["_question"])
    return document(state, title=title or question, description=description, lang=lang)


def document(
    state: dict[str, Any],
    *,
    title: str,
    description: str = "",
    lang: str = "en",
    foot: str = "",
    style: str = "",
    code: str = "",
    small: Callable[[str, str], str] = lambda text, kind: text,
) -> str:
    """Return such a page from the state of a figure, as a notebook holds it.

    Parameters
    ----------
    state
        The values of its traits.
    title, description, lang
        As for `page`.
    foot, style, code
        HTML below the figure, its style, and a script that runs when the figure stands.
    small
        Minifies a text of a kind, ``"js"`` or ``"css"``.
    """
    module = figure_script(figure_name(state["_anywidget_id"]))
    formulas = {text: mathml(text) for text in sorted({*_latex(module, state)})}
    start = "window.ropeHost.drawAlone();\n"
    code = small("\n".join(["", host_script(), module, start, code]), "js")
    code = code.replace("</script", r"<\/script")
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return PAGE.format(
        lang=html.escape(lang),
        title=html.escape(title, quote=False),
        description=html.escape(description or title),
        digest=digest,
        style=small("".join([STYLE, state["_css"], style]), "css"),
        state=as_script({"state": slim(state), "formulas": formulas}),
        foot=foot,
        code=code,
    )


def figure_of(models: dict[str, dict], root: str) -> dict[str, Any]:
    """Return the state of the figure that a widget is, or holds beside widgets of ipywidgets.

    Parameters
    ----------
    models
        The widgets of a notebook by their ids, as ipywidgets writes them.
    root
        The id of the widget.

    Raises
    ------
    ValueError
        If there is none, or more than one, or it carries binary data, which `slim` does not keep.
    """
    state = models[root]["state"]
    inside = [key.removeprefix("IPY_MODEL_") for key in state.get("children", ())]
    found = [key for key in (root, *inside) if "_esm" in models[key]["state"]]
    if len(found) != 1:
        kind = models[root]["model_name"].removesuffix("Model")
        raise ValueError(f"a page shows figures, and this {kind} holds {len(found)} of them")
    if models[found[0]].get("buffers"):
        raise ValueError(f"host.js reads no binary data, got some of {state['_anywidget_id']}")
    return models[found[0]]["state"]


def slim(state: dict[str, Any]) -> dict[str, Any]:
    """Return what ``host.js`` reads of a figure's state."""
    return {trait: value for trait, value in state.items() if not OF_JUPYTER.match(trait)}


def as_script(data: Any) -> str:
    """Return JSON that may stand in a script element of a page."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", r"\u003c")


def figure_name(identity: str) -> str:
    """Return the name of a figure's class in hyphens, as ``figureName`` of the kit does."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", identity.rpartition(".")[2]).lower()


@functools.cache
def _kit() -> dict[str, str]:
    """Return the scopes of the kit, which figures and host share on a page."""
    return scopes(FOLDER, *(f"kit/{path.name}" for path in sorted((FOLDER / "kit").glob("*.js"))))


def figure_script(name: str, without: str = "") -> str:
    """Return the code of a figure as a classic script that registers it under its name.

    One of the files that it imports can be left out, for the figure to load it when it is wanted.
    """
    code = scopes(FOLDER, f"{name.replace('-', '_')}.js")
    if without:
        (scope,) = scopes(FOLDER, without)
        code[scope] = f"const {scope} = {{}};\n"
    kit = [scope for scope in code if scope in _kit()]
    own = "".join(text for scope, text in code.items() if scope not in kit)
    return (
        f"(() => {{\nconst {{ {', '.join(kit)} }} = window.ropeKit;\n{own}"
        f"(window.ropeFigures ??= {{}})[{json.dumps(name)}] = {list(code)[-1]}.default;\n}})();\n"
    )


def trainer_script(file: str) -> str:
    """Return what a figure leaves out as a script: a worker's, or ``window.ropeTraining``."""
    ((scope, code),) = scopes(FOLDER, file).items()
    return (
        f"(() => {{\n{code}if (self.document) self.ropeTraining = {scope};\nelse {{\n"
        f"const tell = {scope}.serve((found) => self.postMessage(found));\n"
        "self.onmessage = ({ data }) => tell(data);\nself.postMessage({ ready: true });\n}\n})();\n"
    )


@functools.cache
def host_script() -> str:
    """Return the kit and ``host.js`` as a classic script: ``window.ropeKit``, ``.ropeHost``."""
    code = "".join((_kit() | scopes(FOLDER, "host.js")).values())
    kit = f"window.ropeKit = {{ {', '.join(_kit())} }};\n"
    return f"(() => {{\n{code}{kit}window.ropeHost = $host_js.default;\n}})();\n"


def mathml(latex: str) -> str:
    """Return LaTeX as MathML."""
    known = latex.replace(r"\arg", r"\operatorname{arg}")  # the converter does not know \arg
    return convert(known)


def _latex(module: str, state: dict[str, Any]) -> Iterator[str]:
    """Yield the formulas of a figure: those in its code, and those in its data."""
    yield from map(json.loads, LATEX.findall(module))
    waiting: list[Any] = [state]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if formula := value.get("latex"):
                yield formula
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
