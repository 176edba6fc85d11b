"""The oldest versions that the packages promise, as pins: ``pip install $(python -m ...)``.

The dependencies of every package here and of its extras are meant, without ``dev``, which only
tests use, and without one another.
"""

import tomllib
from pathlib import Path


def promises() -> list[str]:
    """Return the requirements of the packages and of their extras, ``dev`` left out."""
    root = Path(__file__).parents[2]
    files = [root / "pyproject.toml", *sorted(root.glob("*/pyproject.toml"))]
    projects = [tomllib.loads(file.read_text("utf8"))["project"] for file in files]
    own = {project["name"] for project in projects}
    lines: list[str] = []
    for project in projects:
        extras = project["optional-dependencies"]
        lines += [line for line in project["dependencies"] if line not in own]
        lines += [line for name, group in extras.items() if name != "dev" for line in group]
    return list(dict.fromkeys(lines))


if __name__ == "__main__":
    print(*(line.replace(">=", "==") for line in promises()))
