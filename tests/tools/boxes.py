"""The boxes of a chapter: claims, myths and exercises, as its notebook has them."""

import json
import re
from collections.abc import Iterator
from itertools import dropwhile, takewhile
from pathlib import Path


def boxes(path: Path, kind: str) -> Iterator[tuple[str, str, str]]:
    """Yield title and text of every box of a kind ("Claim"), and the code cells after it."""
    for title, _, text, code in boxes_with_checks(path, kind):
        yield title, text, code


def boxes_with_checks(path: Path, kind: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield title, link to the second check (or ""), text and following code of every box.

    The code is that of the next code cell and of those that follow it without a text between.
    """
    cells = json.loads(path.read_text("utf8"))["cells"]
    box = rf"^> \*\*({kind}\b[^*]*)\*\*(?: \[second check\]\(([^)]*)\))?\n((?:>.*\n?)+)"
    for i, cell in enumerate(cells):
        after = dropwhile(lambda c: c["cell_type"] != "code", cells[i:])
        code = ["".join(c["source"]) for c in takewhile(lambda c: c["cell_type"] == "code", after)]
        for title, check, quoted in re.findall(box, "".join(cell["source"]), re.M):
            yield title, check, re.sub("^> ?", "", quoted, flags=re.M), "\n".join(code)
