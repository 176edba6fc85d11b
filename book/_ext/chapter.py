"""The head of a chapter, and the boxes that one can point at.

A chapter opens with its question and its figure. Under it stand what to try, what to remember and,
in a line each that unfolds, what the reader will be able to do, what he needs first and what the
cells import. In the notebook the figure follows these, because it needs the imports.
"""

import json
import math
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE_NAME = re.compile(r"DOCUMENTATION_OPTIONS\.pagename = '([^']*)'")
GOALS, NEEDS = "after-this-chapter-you-can", "what-you-need-first"
HEADING = r"\n<h2>([^<]*)<a class=\"headerlink\".*?</h2>\n"
OPENING = re.compile(
    rf'<section id="{GOALS}">{HEADING}(?P<goals>.*?)</section>\s*'
    rf'<section id="{NEEDS}">{HEADING}(?P<needs>.*?</table>\n</div>)\n(?P<cells>.*?)</section>',
    re.DOTALL,
)
IMPORTS = re.compile(
    r'<div class="cell docutils container">\n(?P<code><div class="cell_input docutils container">\n'
    r'<div class="highlight[^>]*><div class="highlight"><pre><span></span><span class="kn">.*?'
    r"</pre></div>\n</div>\n</div>)\n</div>\n",
    re.DOTALL,
)
CELL = '<div class="cell '
QUESTION = re.compile(r"</h1>\n<p><em>.*?</em></p>\n", re.DOTALL)
HEAD = re.compile(rf'(href="[^"]*)#{NEEDS}"')
BOX = re.compile(
    r'<div class="(claim|exercise|myth|theorem) admonition" id="([^"]+)">\n'
    r'<p class="admonition-title">(.*?)(?=</p>)',
    re.DOTALL,
)
TITLE = re.compile(r"(<article.*?</h1>\n)", re.DOTALL)
WORDS_A_MINUTE, SECONDS_A_LINE = 180, 3
FOLDED = {"hide-cell", "hide-input", "remove-cell", "remove-input"}
HOW = (
    f"Times: {WORDS_A_MINUTE} words a minute, {SECONDS_A_LINE} seconds a line of code that is "
    "shown, and a minute for each figure and question. Exercises come on top."
)


def fold(name: str, title: str, inside: str) -> str:
    """Return a line that unfolds."""
    return (
        f'<details class="opening" id="{name}">\n<summary>{title}</summary>\n{inside}\n</details>\n'
    )


def fold_opening(body: str) -> str:
    """Fold goals, needs and imports of a chapter into a line each, and let its figure lead."""
    found = OPENING.search(body)
    if not found:
        return body
    folds = fold(GOALS, found[1], found["goals"]) + fold(NEEDS, found[3], found["needs"])
    cells = found["cells"]
    imports = []
    while found_import := IMPORTS.match(cells):
        imports.append(found_import["code"])
        cells = cells[found_import.end() :]
    if imports:
        folds += fold("imports", "What the cells import", "\n".join(imports))
    words, figure, rest = split_first_figure(cells)
    question = QUESTION.search(body)
    lead = question.end() if question else found.start()
    told = body[lead : found.start()]
    opening = f'{told}<div class="openings">\n{folds}</div>\n{rest}'
    return body[:lead] + figure + words + opening + body[found.end() :]


def split_first_figure(cells: str) -> tuple[str, str, str]:
    """Return the words before the first figure of some cells, its own cell, and what follows."""
    at, depth = cells.find(CELL), 0
    for tag in re.finditer("<(/?)div", cells[max(at, 0) :]):
        depth += -1 if tag[1] else 1
        if not depth:
            end = cells.index("\n", at + tag.end()) + 1
            break
    else:
        return "", "", cells
    return cells[:at], cells[at:end], cells[end:]


def link_heads(body: str) -> str:
    """Let links to what stands under *What you need first* in a notebook lead to the figure."""
    return HEAD.sub(r'\1#figure-1"', body)


def link_boxes(body: str) -> str:
    """Give every box a permalink, and a link that copies how to cite it (book.js)."""

    def links(box: re.Match[str]) -> str:
        kind, name, title = box.groups()
        words = re.sub("<[^>]*>", "", title.partition(" <a ")[0])
        return (
            f'{box[0]} <a class="cite" href="#{name}" aria-label="Cite {words}">cite</a>'
            f'<a class="headerlink" href="#{name}" title="Link to this {kind}">#</a>'
        )

    return BOX.sub(links, body)


def words(prose: str) -> int:
    """Return how many words a reader reads: of links their text, and no answer that is folded."""
    prose = re.sub(r"<details.*?</details>|<!--.*?-->", "", prose, flags=re.DOTALL)
    return len(re.sub(r"\]\((?:[^()\"]|\"[^\"]*\")*\)", "]", prose).split())


def code_lines(code: str) -> int:
    """Return how many lines of a cell a reader reads: neither blank ones nor imports."""
    lines = [line.split() for line in code.splitlines()]
    return sum(bool(line) and line[0] not in ("import", "from") for line in lines)


def minutes(notebook: Path) -> int:
    """Return how long a chapter takes to read, as `HOW` says, in fives."""
    seconds = 0.0
    for cell in json.loads(notebook.read_text("utf8"))["cells"]:
        source, tags = "".join(cell["source"]), set(cell["metadata"].get("tags", []))
        if "remove-cell" in tags:
            continue
        if cell["cell_type"] == "markdown":
            seconds += 60 * words(source) / WORDS_A_MINUTE
            continue
        seconds += 60 * len(re.findall(r"^figures\.", source, re.MULTILINE))
        if not tags & FOLDED:
            seconds += SECONDS_A_LINE * code_lines(source)
    return 5 * math.ceil(seconds / 300)


def say_time(page: str) -> str:
    """Say under the title of a chapter how long it takes to read."""
    name = PAGE_NAME.search(page)
    if f'id="{GOALS}"' not in page or not name:
        return page
    time = f'<p class="time-to-read">{minutes(ROOT / f"{name[1]}.ipynb")} minutes</p>\n'
    return TITLE.sub(lambda title: title[0] + time, page, count=1)
