"""Small corrections to the theme, so that the published pages keep the book's promises."""

import re

from docutils import nodes
from lean import after_rendering
from sphinx.application import Sphinx


def own_scripts_only(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Drop Thebe, which would ask another host for its code: figures here need no kernel."""
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if "thebe" not in str(getattr(script, "filename", "") or "")
        and "THEBE_JS_URL" not in getattr(script, "attributes", {}).get("body", "")
    ]


def download_as_file(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Offer the source as a file to keep, not as JSON in a new tab."""
    for button in context.get("header_buttons", []):
        if button.get("label") == "download-buttons":
            button["buttons"] = [b for b in button["buttons"] if b["type"] == "link"] + [
                {
                    "type": "javascript",
                    "javascript": "window.print()",
                    "text": "Print",
                    "tooltip": "Print this page, or save it as PDF",
                    "icon": "fas fa-print",
                    "label": "print-button",
                }
            ]


def honest_roles(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Let a fold be named by the words on it, and let a bibliography be no ARIA list."""
    if "body" in context:
        context["body"] = (
            context["body"]
            .replace(' aria-label="Toggle hidden content"', "")
            .replace('<div role="list" class="citation', '<div class="citation')
            .replace(' role="doc-biblioentry"', "")
        )


SPAN = '<span class="math notranslate nohighlight">[^<]*</span>'
FORMULA = re.compile(rf"\({SPAN}[.,;:!?)]*|{SPAN}[.,;:!?)]+")


def glued_punctuation(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Keep a formula on one line with the bracket before it and the full stop after it."""
    if "body" in context:
        glued = r'<span class="glued">\g<0></span>'
        context["body"] = FORMULA.sub(glued, context["body"])


CODE = re.compile(r'<code class="[^"]*literal[^"]*">.*?</code>|<td>.*?</td>', re.DOTALL)
NAME = re.compile(r"(?<=>)(?!\\\()[^<>]{16,}(?=<)")  # and no formula
BETWEEN = re.compile(r"(?<=\w\w)(_+|::)(?=\w\w)")


def breakable_names(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Let a long name break after its underscores and colons, in code and in tables."""
    if "body" in context:
        context["body"] = CODE.sub(
            lambda code: NAME.sub(lambda name: BETWEEN.sub(r"\1<wbr>", name[0]), code[0]),
            context["body"],
        )


def named_sidebar(page: str) -> str:
    """Make the sidebar a landmark: the book's sign stands in it, outside the list of chapters."""
    sidebar = '<div id="pst-primary-sidebar"'
    return page.replace(sidebar, f'{sidebar} role="region" aria-label="The book"')


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("builder-inited", lambda app: after_rendering(app, named_sidebar), priority=700)
    app.add_js_file("book.js", loading_method="defer")
    app.connect("html-page-context", own_scripts_only, priority=950)
    app.connect("html-page-context", download_as_file, priority=950)
    app.connect("html-page-context", honest_roles, priority=950)
    app.connect("html-page-context", glued_punctuation, priority=950)
    app.connect("html-page-context", breakable_names, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
