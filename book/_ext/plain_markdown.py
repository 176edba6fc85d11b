"""Chapters in plain Markdown: what the site makes of it.

JupyterLab, VS Code, Colab and GitHub show MyST's roles and directives as raw text. So the notebooks
are written in Markdown that any of them can show, and three of its forms mean more on the site:

``> **Claim 4.1** [second check](../tests/book/test_x.py "test_a test_b")``
    and the rest of that quotation is a box. Its class is the title's first word if that is claim,
    exercise, myth or theorem, else warning. Those four have an id: ``claim-4-1``, ``exercise-4-1``,
    or the first words of the title. A claim's link, which names the tests that ask it in another
    way, leads to the claim's place among all claims (claims.py).
``[hands](../book/glossary.md "hand")``
    is a word of the glossary; without the title in quotes, the text itself is the word.
``[[Su et al., 2021]](../book/references.bib)``
    is a citation of the entry with that label.

A word or a label that does not exist fails the build. The forms are looked for in what MyST has
read, so code that shows them stays code.
"""

import re
from itertools import takewhile

from bibliography import cited_as
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinxcontrib.bibtex.roles import CiteRole

KINDS = ("claim", "exercise", "myth", "theorem")
GLOSSARY, REFERENCES, CHECK = "book/glossary", "../book/references.bib", "second check"
PAGES = re.compile(r"notebooks/|book/claims$")  # of other pages a link to the glossary is a link


def box_name(title: str) -> str:
    """Return the id of a box: kind and number, or else the first words of its title."""
    numbered = re.match(r"\w+ \d+\.\d+", title)
    words = re.findall(r"\w+", (numbered[0] if numbered else title).lower())
    return "-".join(words[:8])


class PlainMarkdown(SphinxTransform):
    """Give the three forms their meaning."""

    default_priority = 200  # before targets are resolved and quotation marks curled

    def apply(self) -> None:
        """Change the document in place."""
        if not PAGES.match(self.env.docname):
            return
        for quotation in list(self.document.findall(nodes.block_quote)):
            self.box(quotation)
        for link in list(self.document.findall(addnodes.pending_xref)):
            if link.get("reftarget") == GLOSSARY and not link.get("reftargetid"):
                self.replace(link, "term", link.get("title", link.astext()))
        for link in list(self.document.findall(addnodes.download_reference)):
            if link["reftarget"] == REFERENCES:
                self.cite(link)

    def box(self, quotation: nodes.block_quote) -> None:
        """Make a box of a quotation whose first line is bold, but for the link of a claim."""
        first = quotation[0]
        children = [child for child in first.children if child.astext()]  # some texts are empty
        line = list(takewhile(lambda node: node.astext() != "\n", children))
        bold, *rest = line or [None]
        if not isinstance(bold, nodes.strong) or (rest and rest[-1].astext() != CHECK):
            return
        word = re.match(r"\w+", bold.astext())[0].lower()
        title = nodes.title(bold.rawsource, "", *bold.children)
        box = nodes.admonition("", title, classes=[word if word in KINDS else "warning"])
        box.source, box.line = title.source, title.line = quotation.source, quotation.line
        if word in KINDS:
            name = box_name(bold.astext())
            box["names"].append(name)
            self.document.note_explicit_target(box, box)
            if rest:
                title += [nodes.Text(" "), rest[-1]]
                self.replace(rest[-1], "ref", f"{name}-check")
        first.children = children[len(line) + 1 :]
        box += quotation.children if first.children else quotation.children[1:]
        quotation.replace_self(box)

    def replace(self, link: nodes.Element, kind: str, target: str) -> None:
        """Put a reference of Sphinx's own in the place of a link."""
        text = nodes.inline("", link.astext(), classes=["xref", "std", f"std-{kind}"])
        link.replace_self(self.reference(link, text, "std", kind, target))

    def cite(self, link: nodes.Element) -> None:
        """Put a citation in the place of a link whose text is a label in brackets."""
        label = link.astext()[1:-1]
        entries = self.env.get_domain("cite").bibdata.data.entries
        keys = {cited_as(entry): key for key, entry in entries.items()}
        role = CiteRole()
        role.target = keys.get(label, label)
        text = nodes.inline("", role.target, classes=["xref", "cite", "cite-p"])
        cited = self.reference(link, text, "cite", "p", role.target)
        link.replace_self(cited)
        role.result_nodes(self.document, self.env, cited, True)

    def reference(
        self, link: nodes.Element, text: nodes.inline, domain: str, kind: str, target: str
    ) -> addnodes.pending_xref:
        """Return what Sphinx resolves into a link once all pages are read."""
        found = addnodes.pending_xref("", text, refdomain=domain, reftype=kind, reftarget=target)
        found.attributes |= {"refdoc": self.env.docname, "refwarn": True}
        found["refexplicit"] = domain == "std"
        found.source, found.line = link.source, link.line
        return found


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.add_transform(PlainMarkdown)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 4}
