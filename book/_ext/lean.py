"""Let a page carry what it needs and nothing else, in the order in which a reader needs it.

The theme is made for every kind of site. Of what it puts on a page, this book drops

* the script of all icons of Font Awesome (the theme's style sheets draw the same icons);
* MathJax on a page without formulas;
* the settings of Thebe, which would ask another host for a kernel;
* style sheets that an output repeats, and marks of the code highlighter that have no colour;
* rules of style sheets that name a class which no page and no script of the site knows;
* maps for debuggers, translations and fonts that no page asks for.

The moving figures, their data and their code come after the text, so that text is on the screen
before they are there.
"""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import tinycss2
from sphinx.application import Sphinx

HERE = Path(__file__).parent

THEBE = re.compile(
    r'<script type="text/x-thebe-config">.*?</script>\s*<script>kernelName = [^<]*</script>',
    re.DOTALL,
)
ICON_SCRIPT = re.compile(r'<script src="[^"]*/scripts/fontawesome\.js[^"]*"></script>')
WIDGET_DATA = re.compile(
    r'<script type="application/vnd\.jupyter\.widget-state\+json">.*?</script>', re.DOTALL
)
WIDGET_CODE = re.compile(
    r'<script src="[^"]*_static/(?:vendor/require|widgets-amd|vendor/html-manager/embed-amd)\.js'
    r'[^"]*"></script>'
)
MATHJAX = re.compile(
    r"<script>window\.MathJax = [^<]*</script>\s*<script[^>]*_static/vendor/mathjax/[^>]*></script>"
)
# a formula in the text, or a figure that typesets one
FORMULA = re.compile(
    r'class="[^"]*\b(?:math|tex2jax_process|mathjax_process|text_latex)\b|window\.MathJax\b'
)
STYLE = re.compile(r"<style>.*?</style>\s*", re.DOTALL)
# names, modules, brackets and spaces have the colour of the text in both of the book's code styles
PLAIN_CODE = re.compile(r'<span class="(?:n|nn|p|w)">([^<]*)</span>')

UNASKED = ("*.map", "*.ttf", "locales", "scripts/fontawesome.js*", "*webpack-macros.html")
# Bootstrap makes these names at run time
MADE_BY_SCRIPTS = re.compile(r"(bs-|tooltip|popover|modal|dropdown|collapsing)")
KEPT_WHOLE = ("book.css", "live-cells.css")  # the book's own


def forget_old_pages(app: Sphinx) -> None:
    """Write every page again after a change of the code that changes pages: Sphinx cannot know."""
    if app.builder.format != "html":
        return
    code = [*HERE.glob("*.py"), *(HERE.parent / "_templates").glob("*.html")]
    now = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(code))).hexdigest()
    stamp = Path(app.doctreedir) / "pages.stamp"
    if stamp.exists() and stamp.read_text() == now:
        return
    for page in Path(app.outdir).rglob("*.html"):
        page.unlink()
    stamp.write_text(now)


def after_rendering(app: Sphinx, change: Callable[[str], str]) -> None:
    """Pass the HTML of every page through a function just before it is written."""
    if app.builder.format != "html":
        return
    templates = app.builder.templates
    render = templates.render

    def changed(name: str, context: dict) -> str:
        text = render(name, context)
        return change(text) if "</html>" in text else text  # parts of pages are rendered too

    templates.render = changed


def text_first(page: str) -> str:
    """Move the data and the code of the figures behind the text."""
    moved = [*WIDGET_DATA.findall(page), *WIDGET_CODE.findall(page)]
    if not moved:
        return page
    page = WIDGET_CODE.sub("", WIDGET_DATA.sub("", page))
    moved = "\n".join(tag.replace("<script src", "<script defer src") for tag in moved)
    before, end, after = page.rpartition("</body>")
    return f"{before}{moved}\n{end}{after}"


def said_once(page: str) -> str:
    """Keep a style sheet where it stands first; drop its copies."""
    seen: set[str] = set()

    def once(match: re.Match[str]) -> str:
        copy = match[0] in seen
        seen.add(match[0])
        return "" if copy else match[0]

    return STYLE.sub(once, page)


def formulas_only(page: str) -> str:
    """Drop MathJax where there is no formula."""
    without = MATHJAX.sub("", page)
    return page if FORMULA.search(without) else without


def tidy(page: str) -> str:
    """Return a page without what nobody needs."""
    page = THEBE.sub("", ICON_SCRIPT.sub("", page))
    page = PLAIN_CODE.sub(r"\1", page)
    return text_first(said_once(formulas_only(page)))


def selectors(prelude: list) -> list[list]:
    """Split the part of a rule before its brace at the commas."""
    parts: list[list] = [[]]
    for token in prelude:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def wanted_names(selector: list) -> set[str]:
    """Return the classes and ids that a page must have for a selector to match."""
    names = set()
    before = None
    for token in selector:
        if token.type == "hash" or (token.type == "ident" and before == "."):
            names.add(token.value)
        # of :is(...) and :not(...) any part may match: they decide nothing
        before = token
    return names


def lean_rules(rules: list, known: set[str]) -> list:
    """Return the rules that can match something, those in @media too."""
    kept = []
    for rule in rules:
        if rule.type == "qualified-rule":
            alive = [
                part
                for part in selectors(rule.prelude)
                if all(n in known or MADE_BY_SCRIPTS.match(n) for n in wanted_names(part))
            ]
            if not alive:
                continue
            text = ",".join(tinycss2.serialize(part) for part in alive)
            kept.append(f"{text}{{{tinycss2.serialize(rule.content)}}}")
        elif rule.type == "at-rule" and rule.lower_at_keyword in ("media", "supports"):
            inner = lean_rules(tinycss2.parse_rule_list(rule.content, True, True), known)
            if inner:
                head = f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}"
                kept.append(f"{head}{{{''.join(inner)}}}")
        elif rule.type == "error":
            raise ValueError(f"a style sheet cannot be read: {rule.message}")
        else:
            kept.append(rule.serialize())
    return kept


def lean_sheet(text: str, known: set[str]) -> str:
    """Return a style sheet without the rules that can match nothing."""
    rules = tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True)
    return "".join(lean_rules(rules, known))


def tidy_static(app: Sphinx, error: Exception | None) -> None:
    """Drop files and rules that no page asks for."""
    if error or app.builder.format != "html":
        return
    site = Path(app.outdir)
    static = site / "_static"
    for pattern in UNASKED:
        for path in sorted(static.rglob(pattern), reverse=True):
            for file in sorted(path.rglob("*"), reverse=True):
                file.rmdir() if file.is_dir() else file.unlink()
            path.rmdir() if path.is_dir() else path.unlink()
    texts = [*site.rglob("*.html")]
    # what lies in vendor brings its own style
    texts += [path for path in static.rglob("*.js") if "vendor" not in path.parts]
    known = {w for path in texts for w in re.findall(r"[\w-]+", path.read_text("utf8"))}
    for sheet in static.rglob("*.css"):
        if sheet.name not in KEPT_WHOLE:
            sheet.write_text(lean_sheet(sheet.read_text("utf8"), known), "utf8")


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("builder-inited", forget_old_pages)
    app.connect("builder-inited", lambda app: after_rendering(app, tidy), priority=700)
    app.connect("build-finished", tidy_static, priority=900)  # after the theme wrote its own
    return {"parallel_read_safe": True, "parallel_write_safe": True}
