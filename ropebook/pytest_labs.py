"""A pytest plugin: ``pytest --lab N FILE...`` asks the answers of a class to lab N.

A file is a notebook or a Python file, a folder all of them in it. Each runs in a process of its
own, in an empty namespace and for a limited time. pytest itself loads none of them, and no
``conftest.py`` or ``__init__.py`` either, unless a ``pytest.ini`` among them, which it reads, says
otherwise. Then each part of the lab is a test, of the answer that the file gave last to
``lab.check``, or else of what stands under the part's name. The
variant is drawn from the name in the file's ``labs.begin(N, name)``, once more. Two files of one
name are told. Installing `ropebook` makes pytest know the option, and so does
``-p ropebook.pytest_labs``.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

__all__ = ["LabFile", "LabPart", "run_file"]

FILES = pytest.StashKey[list["LabFile"]]()


class NotSo(Exception):  # noqa: N818
    """An answer that is not right, in words."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("labs of the book on RoPE")
    group.addoption(
        "--lab", type=int, metavar="N", help="check the answers to lab N in notebooks or .py files"
    )
    group.addoption(
        "--lab-limit", type=float, default=120, metavar="SECONDS",
        help="how long a file and its answers may take (%(default)s)",
    )  # fmt: skip


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Let pytest load no ``conftest.py``: it may have been handed in."""
    given = early_config.known_args_namespace
    given.noconftest |= given.lab is not None


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a lab without files, and one that does not exist."""
    number = config.getoption("lab")
    if number is None:
        return
    from ropebook.labs import LABS

    if number not in LABS:
        raise pytest.UsageError(f"--lab must be 1 to {max(LABS)}, got {number}")
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        raise pytest.UsageError("--lab needs the files or folders to check")
    config.stash[FILES] = []


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "LabFile | None":
    """Take a file as a student's where a lab is asked for."""
    number = parent.config.getoption("lab")
    if number is None or file_path.suffix not in (".ipynb", ".py"):
        return None
    return LabFile.from_parent(parent, path=file_path, number=number)


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> "pytest.Dir | None":
    """Let no folder be a package, whose ``__init__.py`` pytest would run."""
    if parent.config.getoption("lab") is None:
        return None
    folder: pytest.Dir = pytest.Dir.from_parent(parent, path=path)
    return folder


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> Any:
    """Let no file be read as tests at the same time."""
    return (
        _Nothing.from_parent(parent, path=module_path) if parent.config.getoption("lab") else None
    )


class _Nothing(pytest.File):
    """A file that is read by `LabFile`."""

    def collect(self) -> Iterator[pytest.Item]:
        """Return no tests."""
        return iter(())


# ---- a student's file, in the process of its own -------------------------------------------------


def _compiled(code: str | bytes, name: str) -> Any:
    """Compile code; a cell that is no Python without its lines that are IPython's commands.

    Those begin with ``%``, ``!`` or ``?``, or are a name and a question mark.
    """
    try:
        return compile(code, name, "exec")
    except SyntaxError:
        if isinstance(code, bytes):
            raise
        command = r"(?m)^([ \t]*)([%!?].*|[\w.]+\?\??[ \t]*)$"
        return compile(re.sub(command, r"\1pass", code), name, "exec")


def run_file(path: Path) -> tuple[dict[str, Any], str]:
    """Run a student's file; return its namespace, and the first error in words, "" where none.

    A cell of a notebook that fails does not keep those after it from running.
    """
    space: dict[str, Any] = {"__name__": "__main__", "display": print}
    first, notebook = "", path.suffix == ".ipynb"
    try:
        cells: list[str | bytes] = [path.read_bytes()] if not notebook else [
            "".join(cell["source"])
            for cell in json.loads(path.read_text("utf-8-sig"))["cells"]
            if cell["cell_type"] == "code"
        ]  # fmt: skip
    except (ValueError, TypeError, KeyError):
        return space, "the file is no notebook: it cannot be read as one"
    for number, code in enumerate(cells, 1):
        try:
            exec(_compiled(code, f"{path.name}, code cell {number}"), space)
        except (Exception, SystemExit) as error:
            where = f"code cell {number}" if notebook else "the file"
            first = first or f"{where} raises {type(error).__name__}: {error}"
    return space, first


def ask(number: int, path: Path, tell: Callable[[str, str], None]) -> None:
    """Run a file and tell its reader and what is wrong with each part, or why it has none."""
    from ropebook.labs import Lab, begin
    from ropebook.labs.lab import OPEN

    space, error = run_file(path)
    why = f" ({error})" if error else ""
    mine = [one for one in space.values() if isinstance(one, Lab) and one.number == number]
    names = list(dict.fromkeys(one.who for one in mine))
    if not mine:
        return tell("file", f"labs.begin({number}, name) was not reached outside of functions{why}")
    if len({one.seed for one in mine}) > 1:
        return tell("file", f"more than one reader in this file: {', '.join(names)}")
    lab = begin(number, names[-1])
    tell("who", lab.who)
    tell("seed", str(lab.seed))
    for part in lab.parts:
        for answer in (mine[-1].given.get(part), space.get(part)):
            try:
                words = lab.diagnose(part, answer)
            except Exception as error:  # so that the other parts are asked
                words = f"the check fails with {type(error).__name__}: {error}"
            if words != OPEN:
                break
        if words == OPEN:
            words += why
        tell(part, words or (f"right, but by nobody: {lab.missing_name}" * bool(lab.missing_name)))
    return None


# ---- the tests -----------------------------------------------------------------------------------


class LabFile(pytest.File):
    """A student's file."""

    def __init__(self, number: int, **options: Any) -> None:
        super().__init__(**options)
        self.number = number

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test for each part of the lab."""
        from ropebook.labs import LABS

        self.config.stash[FILES].append(self)  # here, where no file beside those named comes
        for part in LABS[self.number].parts:
            yield LabPart.from_parent(self, name=part)

    @cached_property
    def told(self) -> dict[str, str]:
        """What the file's own process told; for each part that it did not reach, why."""
        from ropebook.labs import LABS

        limit = self.config.getoption("lab_limit")
        path = os.pathsep.join(filter(None, sys.path))
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "told"
            out.touch()
            try:
                done = subprocess.run(
                    [sys.executable, "-P", "-m", "ropebook.pytest_labs", str(self.number),
                     str(self.path), str(out)],
                    env=os.environ | {"PYTHONPATH": path, "MPLBACKEND": "agg"}, timeout=limit,
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )  # fmt: skip
                end = f"ended its process (code {done.returncode})"
            except subprocess.TimeoutExpired:
                end = f"did not end in {limit:g} seconds"
            told = dict(json.loads(line) for line in out.read_text("utf8").splitlines())
        left = [part for part in LABS[self.number].parts if part not in told]
        if "who" not in told:
            return {"file": f"the file {end}"} | told
        first = " ".join(left[:1])
        return told | {
            part: end if part == first else f"not asked, because {first} {end}" for part in left
        }

    def words(self, part: str) -> str:
        """Return what is wrong with a part, "" where it is right."""
        if "file" in self.told:
            return self.told["file"]
        who, words = self.told["who"], self.told[part]
        files = [file for file in self.config.stash[FILES] if file is not self]
        if not words and (
            same := [one.nodeid for one in files if one.told.get("seed") == self.told["seed"]]
        ):
            words = f"right, but another file has this name: {', '.join(same)}"
        return f"{who}: {part}: {words}" if words else ""


class LabPart(pytest.Item):
    """One part of a lab."""

    def runtest(self) -> None:
        """Fail with the diagnosis where the answer is not right."""
        if words := self.parent.words(self.name):  # type: ignore[union-attr]
            raise NotSo(words)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Return the diagnosis, without a traceback."""
        if isinstance(excinfo.value, NotSo):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the file, and what stands above a failure: its name, and the part."""
        return self.path, None, f"{self.path.name}: {self.name}"


if __name__ == "__main__":
    with Path(sys.argv[3]).open("w", encoding="utf8") as out:
        ask(
            int(sys.argv[1]),
            Path(sys.argv[2]),
            lambda key, words: print(json.dumps([key, words]), file=out, flush=True),
        )
