"""What constraints.txt pins: one version of every package for each system and Python."""

from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def lines(name: str) -> list[Requirement]:
    """Return the requirements of a file, and of those it names, without editable ones."""
    found = []
    for line in (ROOT / name).read_text("utf8").splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("-r"):
            found += lines(line.split()[1])
        elif line and not line.startswith("-"):
            found.append(Requirement(line))
    return found


def pinned() -> dict[str, str]:
    """Return the version that constraints.txt has of each package, here."""
    return {
        canonicalize_name(wanted.name): str(wanted.specifier).removeprefix("==")
        for wanted in lines("constraints.txt")
        if wanted.marker is None or wanted.marker.evaluate()
    }
