"""Writes what the command knows in short: public checkpoints by name, and other runtimes.

``python -m tests.tools.rows`` takes both from the atlas, which has the sources, too.
"""

import json
from pathlib import Path

from ropebook.engines import brief, record

ROOT = Path(__file__).parents[2]
KEPT = ("name", "aliases", "config", "unseen")


def rows() -> str:
    """Return the file: a row on each line."""
    found = json.loads((ROOT / "atlas" / "results" / "checkpoints.json").read_text("utf8"))
    kept = [{key: row[key] for key in KEPT if key in row} for row in found]
    return "[\n" + ",\n".join(json.dumps(row) for row in kept) + "\n]\n"


def engines() -> str:
    """Return the file of other runtimes: one on each line."""
    return "[\n" + ",\n".join(json.dumps(one) for one in brief(record())) + "\n]\n"


if __name__ == "__main__":
    (ROOT / "ropescope" / "checkpoints.json").write_text(rows(), "utf8")
    (ROOT / "ropescope" / "engines.json").write_text(engines(), "utf8")
