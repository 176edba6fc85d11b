"""Measurements that ``make bench`` recorded, one file a machine.

Chapter 11 tells of the GPU's; `BOOK` is the first of three CPUs in the appendix *Timing on a CPU*.
"""

import json
from pathlib import Path
from typing import Any

BOOK = "amd-epyc-2-core"


def recorded(machine: str = BOOK, start: Path | None = None) -> dict[str, Any] | None:
    """Return one of the measurements in ``benchmarks/results``, None where there is none.

    Parameters
    ----------
    machine
        The name of the file.
    start
        A folder or file in the repository. By default this module, and then the working folder:
        the package may be installed somewhere else.
    """
    for place in (start,) if start else (Path(__file__), Path.cwd()):
        for folder in (place.resolve(), *place.resolve().parents):
            file = folder / "benchmarks" / "results" / f"{machine}.json"
            if file.is_file():
                return json.loads(file.read_text(encoding="utf-8"))
    return None
