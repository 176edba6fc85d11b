"""The page of all claims, each with the source of its second check.

``<!-- claims -->`` in a page becomes the claims of every chapter in ``_toc.yml``: number, sentence
and, folded, the tests that the claim's box names. The number leads to the box, and the link in the
box leads here. A test that does not exist fails the build.

There is more code on this page than on any other. So names, operators and numbers, which come one
by one, have no colour of their own here: that is half of the page.
"""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from book_map import parts
from pygments.lexers import PythonLexer
from pygments.token import Name, Number, Operator, Punctuation, Text, Whitespace
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

PLACE = "<!-- claims -->"
CHECK = re.compile(r'\.\./tests/(\w+/test_\w+\.py) "(test_\w+(?: test_\w+)*)"')
BESIDE = re.compile(r"\]\((?=[\w-]+\.ipynb)")  # a link to another chapter
BOX = re.compile(
    r"^> \*\*(Claim .+)\*\*(?: \[second check\]\((.*)\))?\n((?:^>.*(?:\n|\Z))+)", re.MULTILINE
)
QUIET = {Name, Name.Namespace, Number.Float, Number.Integer, Operator, Punctuation, Whitespace}


class QuietPython(PythonLexer):
    """Python in fewer colours."""

    def get_tokens_unprocessed(self, text: str, stack: tuple = ("root",)) -> Iterator[tuple]:
        """Yield place, kind and text of each part."""
        for at, kind, part in super().get_tokens_unprocessed(text, stack):
            yield at, Text if kind in QUIET else kind, part


def chapters(root: Path) -> list[Path]:
    """Return the notebooks of the table of contents in its order."""
    pages = [page for _, pages in parts(root / "_toc.yml") for page in pages]
    return [path for page in pages if (path := root / f"{page}.ipynb").exists()]


@cache
def functions(file: Path) -> dict[str, str]:
    """Return the source of every function at the top of a file, decorators included."""
    text = file.read_text("utf8") if file.exists() else ""
    lines = text.splitlines()
    found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    starts = [min(part.lineno for part in (node, *node.decorator_list)) for node in found]
    return {
        node.name: "\n".join(lines[start - 1 : node.end_lineno])
        for node, start in zip(found, starts, strict=True)
    }


def fold(title: str, check: str, tests: Path) -> str:
    """Write the tests that a claim names, folded."""
    if not (link := CHECK.fullmatch(check)):
        raise ExtensionError(f'{title}: write ../tests/book/test_x.py "test_a test_b", not {check}')
    file, names = link[1], link[2].split()
    known = functions(tests / file)
    if missing := [name for name in names if name not in known]:
        raise ExtensionError(f"{title} names tests that tests/{file} does not have: {missing}")
    shown = " ".join(f'<code class="literal">{name}</code>' for name in names)
    refuted = "".join(f"- {line}\n" for name in names if (line := refutation(known[name])))
    refuted = f"Refuted if\n\n{refuted}\n" if refuted else ""
    code = "\n\n\n".join(known[name] for name in names)
    block = f"::::{{code-block}} quiet-python\n# tests/{file}\n{code}\n::::"
    return f"{refuted}<details><summary>{shown}</summary>\n\n{block}\n\n</details>\n"


def refutation(code: str) -> str:
    """Return what would make a test fail, from a docstring that begins with "Refuted if"."""
    node = ast.parse(code).body[0]
    words = (ast.get_docstring(node) or "").partition("\n\n")[0]
    return " ".join(words.split()).removeprefix("Refuted if ") if words[:10] == "Refuted if" else ""


def entry(title: str, check: str, text: str, tests: Path) -> str:
    """Write one claim as MyST."""
    name = re.sub(r"\W+", "-", title.lower())
    words = f"{{ref}}`{title} <{name}>` {BESIDE.sub('](../notebooks/', text)}\n"
    tested = fold(title, check, tests) if check else ""
    return f":::::{{container}} second-check\n:name: {name}-check\n\n{words}\n{tested}:::::\n"


def prose(notebook: Path) -> str:
    """Return the text of a notebook."""
    cells = json.loads(notebook.read_text("utf8"))["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def claims(notebook: Path, tests: Path) -> Iterator[str]:
    """Yield the claims of a notebook under its title; nothing where it has none."""
    text = prose(notebook)
    boxes = BOX.findall(text)
    if boxes:
        number = notebook.name.partition("-")[0].lstrip("0")
        yield f"## {number}. {re.search(r'^# (.+)', text, re.MULTILINE)[1]}\n"
    for title, check, quoted in boxes:
        yield entry(title, check, re.sub(r"^> ?", "", quoted, flags=re.MULTILINE).strip(), tests)


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Write the claims where a page asks for them."""
    if PLACE not in source[0]:
        return
    root = Path(app.srcdir)
    tests = root / "tests"
    for path in [root / "_toc.yml", *chapters(root), *tests.glob("*/test_*.py")]:
        app.env.note_dependency(str(path))
    found = [text for notebook in chapters(root) for text in claims(notebook, tests)]
    source[0] = source[0].replace(PLACE, "\n".join(found))


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("source-read", read)
    app.add_lexer("quiet-python", QuietPython)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 2}
