"""The oldest versions that pyproject.toml promises, as pins: ``pip install $(python -m ...)``.

The package's dependencies and its extras are meant, without ``dev``, which only its tests use.
"""

import tomllib
from pathlib import Path


def promises() -> list[str]:
    """Return the requirements of the package and of its extras, ``dev`` left out."""
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf8")
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    lines = (line for name, group in extras.items() if name != "dev" for line in group)
    return list(dict.fromkeys([*project["dependencies"], *lines]))


if __name__ == "__main__":
    print(*(line.replace(">=", "==") for line in promises()))
