"""A pytest plugin: ``pytest --lab N FILE...`` asks the answers of a class to lab N.

A file is a notebook or a Python file, a folder all of them in it. Its code runs here, as any test's
does, in an empty namespace; then each part of the lab is a test, of the name that the answer has
there. The variant is drawn from the name in the file's ``labs.begin(N, name)``, once more.
Installing `ropebook` makes pytest know the option.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ropebook.labs import Lab

__all__ = ["LabFile", "LabPart", "run_file"]


class NotSo(Exception):  # noqa: N818
    """An answer that is not right, in words."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("labs of the book on RoPE").addoption(
        "--lab", type=int, metavar="N", help="check the answers to lab N in notebooks or .py files"
    )


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


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "LabFile | None":
    """Take a file as a student's where a lab is asked for."""
    number = parent.config.getoption("lab")
    if number is None or file_path.suffix not in (".ipynb", ".py"):
        return None
    return LabFile.from_parent(parent, path=file_path, number=number)


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


def _cells(path: Path) -> list[str]:
    """Return the code of a file in the pieces in which it runs, without IPython's commands."""
    text = path.read_text("utf8")
    if path.suffix == ".py":
        return [text]
    cells = json.loads(text)["cells"]
    return [
        "\n".join(
            "" if line.lstrip().startswith(("%", "!")) else line
            for line in "".join(cell["source"]).splitlines()
        )
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def run_file(path: Path) -> tuple[dict[str, Any], str]:
    """Run a student's file; return its namespace, and the first error in words, "" where none.

    A cell of a notebook that fails does not keep those after it from running.
    """
    space: dict[str, Any] = {"__name__": path.stem, "display": print}
    first = ""
    for number, code in enumerate(_cells(path), 1):
        try:
            exec(compile(code, f"{path.name}, code cell {number}", "exec"), space)
        except Exception as error:
            where = f"code cell {number}" if path.suffix == ".ipynb" else "the file"
            first = first or f"{where} raises {type(error).__name__}: {error}"
    return space, first


class LabFile(pytest.File):
    """A student's file."""

    def __init__(self, number: int, **options: Any) -> None:
        super().__init__(**options)
        self.number = number
        self.ran: tuple[dict[str, Any], str] | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test for each part of the lab."""
        from ropebook.labs import LABS

        for part in LABS[self.number].parts:
            yield LabPart.from_parent(self, name=part)

    def answers(self) -> "tuple[Lab, dict[str, Any], str]":
        """Return the lab in this student's variant, the answers by name, and the first error."""
        from ropebook.labs import Lab, begin

        self.ran = self.ran or run_file(self.path)
        space, error = self.ran
        labs = [one for one in space.values() if isinstance(one, Lab) and one.number == self.number]
        if not labs:
            why = f" ({error})" if error else ""
            raise NotSo(f"no labs.begin({self.number}, name) in this file{why}")
        return begin(self.number, labs[-1].who), space, error


class LabPart(pytest.Item):
    """One part of a lab."""

    def runtest(self) -> None:
        """Fail with the diagnosis where the answer is not right."""
        lab, space, error = self.parent.answers()  # type: ignore[union-attr]
        words = lab.diagnose(self.name, space.get(self.name))
        if words:
            why = f" ({error})" if error and self.name not in space else ""
            raise NotSo(f"{lab.who}: {self.name}: {words}{why}")
        if lab.missing_name:
            raise NotSo(f"solved, but by nobody: {lab.missing_name}")

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Return the diagnosis, without a traceback."""
        if isinstance(excinfo.value, NotSo):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the file, and the part."""
        return self.path, None, self.name
