"""The boxes of a chapter: claims, myths and exercises, as its notebook has them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path


def boxes(path: Path, kind: str) -> Iterator[tuple[str, str, str]]:
    """Yield title and text of every box of a kind ("Claim"), and the code of the next code cell."""
    for title, _, text, code in boxes_with_checks(path, kind):
        yield title, text, code


def boxes_with_checks(path: Path, kind: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield title, link to the second check (or ""), text and following code of every box."""
    cells = json.loads(path.read_text("utf8"))["cells"]
    box = rf"^> \*\*({kind}\b[^*]*)\*\*(?: \[second check\]\(([^)]*)\))?\n((?:>.*\n?)+)"
    for i, cell in enumerate(cells):
        text = "".join(cell["source"])
        for title, check, quoted in re.findall(box, text, re.M):
            code = next("".join(c["source"]) for c in cells[i:] if c["cell_type"] == "code")
            yield title, check, re.sub("^> ?", "", quoted, flags=re.M), code
