"""Measurements recorded by ``make bench``, one file per machine.

Chapter 11 shows the GPU's; `BOOK` is the first of three CPUs in the appendix *Timing on a CPU*.
"""

import json
from pathlib import Path
from typing import Any

BOOK = "amd-epyc-2-core"


def recorded(machine: str = BOOK, start: Path | None = None) -> dict[str, Any] | None:
    """Load a measurement from ``benchmarks/results``; None if there is none.

    Parameters
    ----------
    machine
        File name without its ending.
    start
        A folder or file in the repository. By default this module, then the working directory,
        because the package may be installed elsewhere.
    """
    for place in (start,) if start else (Path(__file__), Path.cwd()):
        for folder in (place.resolve(), *place.resolve().parents):
            file = folder / "benchmarks" / "results" / f"{machine}.json"
            if file.is_file():
                return json.loads(file.read_text(encoding="utf-8"))
    return None
