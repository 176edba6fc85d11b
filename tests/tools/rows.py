"""Writes the rows of public checkpoints that the command knows by name: names and fields alone.

``python -m tests.tools.rows`` takes them from the atlas, which has the sources, too.
"""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = ("name", "aliases", "config", "unseen")


def rows() -> str:
    """Return the file: a row on each line."""
    found = json.loads((ROOT / "atlas" / "results" / "checkpoints.json").read_text("utf8"))
    kept = [{key: row[key] for key in KEPT if key in row} for row in found]
    return "[\n" + ",\n".join(json.dumps(row) for row in kept) + "\n]\n"


if __name__ == "__main__":
    (ROOT / "ropescope" / "checkpoints.json").write_text(rows(), "utf8")
