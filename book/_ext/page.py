"""What happens to a page between the theme and the reader: everything, and in this order.

The theme is made for every kind of site. The functions of `BODY` change the text of a page, those
of `PAGE` the whole: each takes HTML and returns it changed, or as it was. One that changed no page
of a whole build has lost what it looks for, as after a new version of the theme, and fails the
build. A build that writes a few pages again proves nothing and fails nothing.

The moving figures, their data and their code come after the text, so that text is on the screen
before they are there. The policy comes last, because it names every script by its hash.
"""

import hashlib
import re
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

from alone import link_alone
from built_from import say_commit
from chapter import fold_opening, link_boxes, link_heads, say_time
from colours import colour_code_late
from docutils import nodes
from execution import cores
from figures import (
    BOOK_STYLE,
    OPENINGS,
    STATE,
    hold_pictures,
    hold_places,
    list_figures,
    load_pictures_late,
    share_code,
    skip_figures,
)
from formulas import load_mathjax_late, typeset_formulas
from policy import FIRST_SCRIPT, add_policy, hand_over_events, leave_foreign_frames
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

from ropebook.figures import alone

HERE = Path(__file__).parent

# ---- the text -----------------------------------------------------------------------------------

SPAN = '<span class="math notranslate nohighlight">[^<]*</span>'
PUNCTUATED = re.compile(rf"\({SPAN}[.,;:!?)]*|{SPAN}[.,;:!?)]+")
CODE = re.compile(r'<code class="[^"]*literal[^"]*">.*?</code>|<td>.*?</td>', re.DOTALL)
NAME = re.compile(r"(?<=>)(?!\\\()[^<>]{16,}(?=<)")  # and no formula
BETWEEN = re.compile(r"(?<=\w\w)(_+|::)(?=\w\w)")


def name_folds_by_their_words(body: str) -> str:
    """Let a fold be named by what is written on it."""
    return body.replace(' aria-label="Toggle hidden content"', "")


def unlist_bibliography(body: str) -> str:
    """Let the bibliography be no ARIA list: its items are none."""
    return body.replace('<div role="list" class="citation', '<div class="citation').replace(
        ' role="doc-biblioentry"', ""
    )


def keep_punctuation_with_formula(body: str) -> str:
    """Keep a formula on one line with the bracket before it and the full stop after it."""
    return PUNCTUATED.sub(r'<span class="glued">\g<0></span>', body)


def break_long_names(body: str) -> str:
    """Let a long name break after its underscores and colons, in code and in tables."""
    return CODE.sub(
        lambda code: NAME.sub(lambda name: BETWEEN.sub(r"\1<wbr>", name[0]), code[0]), body
    )


# ---- the whole ----------------------------------------------------------------------------------

ICON_SCRIPT = re.compile(r'<script src="[^"]*/scripts/fontawesome\.js[^"]*"></script>')
STYLE = re.compile(r"<style>.*?</style>\s*", re.DOTALL)
SIDEBAR = '<div id="pst-primary-sidebar"'
FOLD = '<summary><span class="toctree-toggle"'
PRINTED = re.compile(r'<div id="jb-print-docs-body".*?(?=<div id="searchbox">|<article)', re.DOTALL)
ARTICLE = '<div class="bd-article-container">'
WIDE_PAGE = 'id="rosetta-one-rotation-in-many-runtimes-and-notations"'
WAITED_FOR = re.compile(r'<script (?![^>]*\bdefer\b)((?:[\w-]+="[^"]*" )*src="[^"]*_static/)')
PAGE_IN_OPTIONS = re.compile(r"<script>DOCUMENTATION_OPTIONS\.pagename = [^<]*</script>\s*")
AHEAD = re.compile(r'<link rel="preload" as="script"[^>]*>\s*')  # what is deferred is found in time
FONTS = ("fonts/source-serif-4.woff2", "fonts/source-serif-4-italic.woff2")
FORMULA_FONTS = tuple(
    f"mathjax/output/chtml/fonts/woff-v2/MathJax_{font}.woff"
    for font in ("Zero", "Math-Italic", "Main-Regular")
)
SHEET = re.compile(
    r'\s*<link (?=[^>]*rel="stylesheet")[^>]*?'
    r'href="([^"?]*_static/)([^"?]+\.css)([^"]*)"[^>]*>'
)
SHEETS = (  # the parts of one sheet, in order
    "basic.css",
    "styles/theme.css",  # imports it
    "styles/pydata-sphinx-theme.css",
    "pygments.css",
    "styles/sphinx-book-theme.css",
    "togglebutton.css",
    "copybutton.css",
    "mystnb.*.css",
    "sphinx-thebe.css",
    "sphinx-design.min.css",
    "book.css",
    "figures/figure.css",
    "live-cells.css",
)
ONE_SHEET = "style.css"
THEME = 'localStorage.getItem("theme") || "auto"'
KNOWN = 'matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"'
PRELOAD = """if (location.protocol !== "file:") for (const href of %s) {
    const link = document.createElement("link");
    Object.assign(link, { rel: "preload", as: "font", crossOrigin: "", href });
    document.head.append(link);
  }"""

FROM_TOP = """{
    const [opened] = performance.getEntriesByType("navigation");
    if (!location.hash && !["reload", "back_forward"].includes(opened?.type))
      document.documentElement.classList.add("from-top");
  }"""


def drop_icon_script(page: str) -> str:
    """Drop Font Awesome's script, half a megabyte: the style sheets draw the same icons."""
    return ICON_SCRIPT.sub("", page)


def drop_repeated_styles(page: str) -> str:
    """Keep a style sheet where it stands first; outputs repeat theirs."""
    seen: set[str] = set()

    def once(match: re.Match[str]) -> str:
        copy = match[0] in seen
        seen.add(match[0])
        return "" if copy else match[0]

    return STYLE.sub(once, page)


def move_state_to_end(page: str) -> str:
    """Move the data of the figures behind the text."""
    found = STATE.search(page)
    if not found:
        return page
    before, end, after = (page[: found.start()] + page[found.end() :]).rpartition("</body>")
    return f"{before}{found[0]}\n{end}{after}"


def name_sidebar(page: str) -> str:
    """Make the sidebar a landmark, and name the folds in its list of chapters.

    The book's sign stands in it, outside of that list.
    """
    page = page.replace(SIDEBAR, f'{SIDEBAR} role="region" aria-label="The book"')
    return page.replace(FOLD, FOLD.replace("<summary", '<summary aria-label="Pages below"'))


def widen_page_of_notations(page: str) -> str:
    """Widen a page with a wide table from the start, by a class: what has been shown stays."""
    return page.replace(ARTICLE, f'{ARTICLE[:-2]} wide-page">') if WIDE_PAGE in page else page


def preload_fonts(page: str) -> str:
    """Ask for the fonts of text and formulas at once: the browser waits for them only a moment.

    A script asks, because a page that was opened as a file may not.
    """
    found = BOOK_STYLE.search(page)
    if not found:
        return page
    wanted = FONTS + FORMULA_FONTS if "<mjx-container" in page else FONTS
    fonts = [f"{found[1]}vendor/{font}" for font in wanted]
    return page.replace(FIRST_SCRIPT, f"<script>{PRELOAD % fonts}</script>\n  {FIRST_SCRIPT}", 1)


def say_who_begins_at_the_top(page: str) -> str:
    """Let sections wait to be laid out (book.css) where no reader goes down to one at once."""
    if OPENINGS not in page:
        return page
    return page.replace(FIRST_SCRIPT, f"<script>{FROM_TOP}</script>\n  {FIRST_SCRIPT}", 1)


def drop_printed_contents(page: str) -> str:
    """Drop the second title, without its number, and the contents that the theme prints."""
    return PRINTED.sub("", page)


def load_one_sheet(page: str) -> str:
    """Load the style of the site as one file.

    static_files.py puts it together when its parts have been made small.
    """
    found = list(SHEET.finditer(page))
    if not found:
        return page
    static, names = found[0][1], [sheet[2] for sheet in found]
    if unknown := [name for name in names if not any(fnmatch(name, one) for one in SHEETS)]:
        raise ExtensionError(f"book/_ext/page.py: no place is known for the style in {unknown}")
    digest = hashlib.sha256("".join(sheet[3] for sheet in found).encode()).hexdigest()[:8]
    one = f'\n  <link rel="stylesheet" href="{static}{ONE_SHEET}?v={digest}" />'
    return SHEET.sub(lambda sheet: one if sheet[0] == found[0][0] else "", page)


def know_theme_at_once(page: str) -> str:
    """Put a page into the reader's theme before it is laid out.

    The theme's own script says so at the end only, and every element then gets its style again.
    """
    return page.replace(THEME, f'localStorage.getItem("theme") || ({KNOWN})')


def run_scripts_after_the_text(page: str) -> str:
    """Let no script of the theme hold up the first paint."""
    page = WAITED_FOR.sub(r"<script defer \1", PAGE_IN_OPTIONS.sub("", page))
    return AHEAD.sub("", page)


# ---- the hook -----------------------------------------------------------------------------------

BODY = [
    name_folds_by_their_words,
    unlist_bibliography,
    keep_punctuation_with_formula,
    break_long_names,
    fold_opening,
    link_heads,
    link_boxes,
    hold_pictures,
    load_pictures_late,
    typeset_formulas,
    colour_code_late,
]
PAGE = [
    drop_icon_script,
    drop_repeated_styles,
    load_mathjax_late,
    drop_printed_contents,
    widen_page_of_notations,
    leave_foreign_frames,
    preload_fonts,
    say_who_begins_at_the_top,
    say_time,
    link_alone,
    skip_figures,
    list_figures,
    hold_places,
    move_state_to_end,
    share_code,
    load_one_sheet,
    know_theme_at_once,
    run_scripts_after_the_text,
    name_sidebar,
    say_commit,
    hand_over_events,
    add_policy,
]


def happened(app: Sphinx) -> Path:
    """Return the file of which pages were written and which steps changed one.

    A file, because several processes write pages.
    """
    return Path(app.doctreedir) / "pages.txt"


def wrote_all(app: Sphinx) -> bool:
    """Tell whether every page has been written in this build."""
    return app.env.found_docs <= set(happened(app).read_text("utf8").splitlines())


class Hook:
    """Changes the pages of one build, and knows which functions had nothing to do."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    def note(self, line: str) -> None:
        """Write down once, for all processes, what happened."""
        if line not in self.known:
            self.known.add(line)
            with self.file.open("a", encoding="utf8") as file:
                file.write(line + "\n")

    def change(self, steps: list[Callable[[str], str]], html: str) -> str:
        """Pass HTML through functions."""
        for step in steps:
            before, html = html, step(html)
            if html != before:
                self.note(step.__name__)
        return html

    def install(self, app: Sphinx) -> None:
        """Pass every page through `PAGE` just before it is written."""
        self.file = happened(app)
        self.file.write_text("")
        if app.builder.format != "html":
            return
        templates = app.builder.templates
        render = templates.render

        def changed(name: str, context: dict) -> str:
            text = render(name, context)  # parts of pages are rendered too
            return self.change(PAGE, text) if "</html>" in text else text

        templates.render = changed

    def prepare(
        self, app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
    ) -> None:
        """Pass the text of a page through `BODY`."""
        self.note(page)
        if "body" in context:
            context["body"] = self.change(BODY, context["body"])

    def finish(self, app: Sphinx, error: Exception | None) -> None:
        """Fail if all pages were written and something had nothing to do."""
        if error or app.builder.format != "html" or not wrote_all(app):
            return
        idle = {step.__name__ for step in (*BODY, *PAGE)} - set(self.file.read_text().splitlines())
        if idle:
            raise ExtensionError(f"book/_ext/page.py: no page was changed by {sorted(idle)}")


def offer_files(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Offer the source as a file to keep, not as JSON in a new tab; and to print."""
    buttons = {button.get("label"): button for button in context.get("header_buttons", [])}
    if doctree is None:
        return
    if "download-buttons" not in buttons:
        raise ExtensionError(f"book/_ext/page.py: the theme offers no download of {page}")
    group = buttons["download-buttons"]
    group["buttons"] = [button for button in group["buttons"] if button["type"] == "link"]
    group["buttons"].append(
        {
            "type": "javascript",
            "javascript": "window.print()",
            "text": "Print",
            "tooltip": "Print this page, or save it as PDF",
            "icon": "fas fa-print",
            "label": "print-button",
        }
    )


def write_again_after_a_change_of_this(app: Sphinx) -> None:
    """Write every page again after a change of the code that changes pages: Sphinx cannot know."""
    if app.builder.format != "html":
        return
    templates = HERE.parent / "_templates"
    code = [path for path in (*HERE.iterdir(), *templates.iterdir()) if path.is_file()]
    code += [alone.FOLDER / name for name in ("alone.py", "host.js")]
    now = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(code))).hexdigest()
    stamp = Path(app.doctreedir) / "pages.stamp"
    if stamp.exists() and stamp.read_text() == now:
        return
    for page in Path(app.outdir).rglob("*.html"):
        page.unlink()
    stamp.write_text(now)


def disconnect_thebe(app: Sphinx) -> None:
    """Drop Thebe, which jupyter-book always loads: it runs cells in a kernel on another host."""
    for listeners in app.events.listeners.values():
        listeners[:] = [one for one in listeners if one.handler.__module__ != "sphinx_thebe"]


def write_on_all_cores(app: Sphinx, env: BuildEnvironment) -> None:
    """Let Sphinx write pages in several processes: jupyter-book has no option for it.

    Not read them: not every extension says that it can.
    """
    app.parallel = cores()


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx, after every other extension."""
    hook = Hook()
    app.connect("env-updated", write_on_all_cores)
    app.add_js_file("book.js", loading_method="defer")
    app.connect("builder-inited", write_again_after_a_change_of_this)
    app.connect("builder-inited", hook.install)
    app.connect("builder-inited", disconnect_thebe, priority=1)
    app.connect("html-page-context", offer_files, priority=950)
    app.connect("html-page-context", hook.prepare, priority=950)
    app.connect("build-finished", hook.finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
