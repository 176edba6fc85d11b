"""Chapters in plain Markdown: what the site makes of it.

JupyterLab, VS Code, Colab and GitHub show MyST's roles and directives as raw text. So the notebooks
are written in Markdown that any of them can show, and three of its forms mean more on the site:

``> **Claim 4.1** [second check](../tests/test_x.py "test_name")`` and the rest of that quotation
    is a box. Its class is the title's first word if that is claim, exercise or myth, else warning.
    The link, which only claims have, names the test that asks the claim in another way.
``[hands](../book/glossary.md "hand")``
    is a word of the glossary; without the title in quotes, the text itself is the word.
``[[Su et al., 2021]](../book/references.bib)``
    is a citation of the entry with that label.

A word or a label that does not exist fails the build.
"""

import json
import re

from bibliography import cited_as
from sphinx.application import Sphinx

BOX = re.compile(
    r"^> \*\*(.+)\*\*(?: \[second check\]\(.*\))?\n((?:^>.*(?:\n|\Z))+)", re.MULTILINE
)
WORD = re.compile(r'\[([^][]+)\]\(\.\./book/glossary\.md(?: "([^"]+)")?\)')
CITATION = re.compile(r"\[\[([^][]+)\]\]\(\.\./book/references\.bib\)")
KINDS = ("claim", "exercise", "myth")


def box(found: re.Match) -> str:
    """Write a quotation with a bold first line as a directive."""
    title, quoted = found.groups()
    first = re.match(r"\w+", title)[0].lower()
    kind = first if first in KINDS else "warning"
    body = re.sub(r"^> ?", "", quoted, flags=re.MULTILINE).strip("\n")
    return f"::::{{admonition}} {title}\n:class: {kind}\n{body}\n::::\n"


def word(found: re.Match) -> str:
    """Write a link to the glossary as a role."""
    text, entry = found.groups()
    return f"{{term}}`{text} <{entry or text}>`"


def as_myst(text: str, keys: dict[str, str]) -> str:
    """Return a Markdown cell as MyST reads it; ``keys`` has the key of every label."""

    def citation(found: re.Match) -> str:
        return f"{{cite}}`{keys.get(found[1], found[1])}`"

    return CITATION.sub(citation, WORD.sub(word, BOX.sub(box, text)))


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Rewrite the Markdown cells of a notebook before it is parsed."""
    if not docname.startswith("notebooks/"):
        return
    entries = app.env.get_domain("cite").bibdata.data.entries
    keys = {cited_as(entry): key for key, entry in entries.items()}
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = as_myst("".join(cell["source"]), keys)
            cell["source"] = text.splitlines(keepends=True)
    source[0] = json.dumps(notebook)


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
