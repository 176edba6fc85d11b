"""The exact version of every package that the requirements bring in, those they need included.

``make constraints`` writes them to constraints.txt: run it in an environment that passes all tests.
"""

import re
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
HEAD = """\
# Written by `make constraints`; used by every `pip install -c constraints.txt`.
# What the requirements bring in on Linux with Python 3.11, at the versions that passed all tests.
"""


def requirements(name: str = "requirements-dev.txt") -> list[Requirement]:
    """Return the lines of a requirements file, and of those it names, that this system needs."""
    found = []
    for line in (ROOT / name).read_text("utf8").splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("-r"):
            found += requirements(line.split()[1])
        elif line and not line.startswith("-"):
            found.append(Requirement(line))
    return [wanted for wanted in found if wanted.marker is None or wanted.marker.evaluate()]


def installed() -> dict[str, str]:
    """Return canonical name and public version of every installed package in the closure."""
    versions: dict[str, str] = {}
    todo = [(wanted.name, frozenset(wanted.extras)) for wanted in requirements()]
    done = set()
    while todo:
        name, extras = key = todo.pop()
        if key in done:
            continue
        done.add(key)
        package = distribution(name)
        # 2.13.0+cpu and 2.13.0 are the same release of torch
        versions[canonicalize_name(name)] = Version(package.version).public
        for line in package.requires or []:
            needs = Requirement(line)
            if any(
                needs.marker is None or needs.marker.evaluate({"extra": extra})
                for extra in ("", *extras)
            ):
                todo.append((needs.name, frozenset(needs.extras)))
    return dict(sorted(versions.items()))


def written() -> dict[str, str]:
    """Return canonical name and version of every line of constraints.txt."""
    text = (ROOT / "constraints.txt").read_text("utf8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE))


if __name__ == "__main__":
    lines = [f"{name}=={version}" for name, version in installed().items()]
    (ROOT / "constraints.txt").write_text(HEAD + "\n".join(lines) + "\n", "utf8")
