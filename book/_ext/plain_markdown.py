"""Chapters in plain Markdown: what the site makes of it.

JupyterLab, VS Code, Colab and GitHub show MyST's roles and directives as raw text. So the notebooks
are written in Markdown that any of them can show, and three of its forms mean more on the site:

``> **Claim 4.1** [second check](../tests/book/test_x.py "test_a test_b")``
    and the rest of that quotation is a box. Its class is the title's first word if that is claim,
    exercise or myth, else warning. A claim has an id, ``claim-4-1``; its link, which names the
    tests that ask it in another way, leads to the claim's place among all claims (claims.py).
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
    r"^> \*\*(.+)\*\*(?: \[second check\]\((.*)\))?\n((?:^>.*(?:\n|\Z))+)", re.MULTILINE
)
WORD = re.compile(r'\[([^][]+)\]\(\.\./book/glossary\.md(?: "([^"]+)")?\)')
CITATION = re.compile(r"\[\[([^][]+)\]\]\(\.\./book/references\.bib\)")
KINDS = ("claim", "exercise", "myth", "theorem")


def unquoted(lines: str) -> str:
    """Return the text of a quotation."""
    return re.sub(r"^> ?", "", lines, flags=re.MULTILINE).strip("\n")


def box(found: re.Match) -> str:
    """Write a quotation with a bold first line as a directive."""
    title, check, quoted = found.groups()
    first = re.match(r"\w+", title)[0].lower()
    options = f":class: {first if first in KINDS else 'warning'}\n"
    if first == "claim":
        name = re.sub(r"\W+", "-", title.lower())
        options += f":name: {name}\n"
        title += f" {{ref}}`second check <{name}-check>`" if check else ""
    return f"::::{{admonition}} {title}\n{options}{unquoted(quoted)}\n::::\n"


def word(found: re.Match) -> str:
    """Write a link to the glossary as a role."""
    text, entry = found.groups()
    return f"{{term}}`{text} <{entry or text}>`"


def as_myst(text: str, keys: dict[str, str]) -> str:
    """Return a Markdown cell as MyST reads it; ``keys`` has the key of every label."""

    def citation(found: re.Match) -> str:
        return f"{{cite}}`{keys.get(found[1], found[1])}`"

    return CITATION.sub(citation, WORD.sub(word, BOX.sub(box, text)))


def keys_of(app: Sphinx) -> dict[str, str]:
    """Return the key of every label in the bibliography."""
    entries = app.env.get_domain("cite").bibdata.data.entries
    return {cited_as(entry): key for key, entry in entries.items()}


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Rewrite the Markdown cells of a notebook before it is parsed."""
    if not docname.startswith("notebooks/"):
        return
    keys = keys_of(app)
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = as_myst("".join(cell["source"]), keys)
            cell["source"] = text.splitlines(keepends=True)
    source[0] = json.dumps(notebook)


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 2}
