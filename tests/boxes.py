"""The boxes of a chapter: claims, myths and exercises, as its notebook has them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path


def boxes(path: Path, kind: str) -> Iterator[tuple[str, str, str]]:
    """Yield title and text of every box of a kind ("Claim"), and the code of the next code cell."""
    cells = json.loads(path.read_text("utf8"))["cells"]
    for i, cell in enumerate(cells):
        text = "".join(cell["source"])
        for title, quoted in re.findall(rf"^> \*\*({kind}\b.*)\*\*\n((?:>.*\n?)+)", text, re.M):
            code = next("".join(c["source"]) for c in cells[i:] if c["cell_type"] == "code")
            yield title, re.sub("^> ?", "", quoted, flags=re.M), code
