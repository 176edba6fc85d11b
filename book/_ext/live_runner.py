"""Run the live cells of one page. This file runs in the reader's browser, not in the build.

It imports the standard library only, so the tests run it without a browser too.
"""

import ast
import builtins
import io
import linecache
import sys
import time
import traceback
import types
from collections.abc import Callable
from typing import Any

MOST_CHARACTERS = 60_000
MOST_DISPLAYS = 200
PROMPT_WRITES = 50
SECONDS_BETWEEN_WRITES = 0.1


class Output(io.TextIOBase):
    """What a cell prints, sent on at once at first, later in bundles, and never without end.

    Parameters
    ----------
    send
        Called with one text.
    """

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self.reset()

    def reset(self) -> None:
        """Forget the last cell."""
        self._waiting: list[str] = []
        self._room = MOST_CHARACTERS
        self._writes = 0
        self._last = time.monotonic()

    def writable(self) -> bool:
        """Say yes, as a stream does."""
        return True

    def write(self, text: str) -> int:
        """Take a text; send it now, or with the next ones."""
        if self._room > 0:
            kept = text[: self._room]
            self._room -= len(kept)
            self._waiting.append(kept)
            if self._room == 0:
                self._waiting.append(f"\n[cut after {MOST_CHARACTERS:,} characters]\n")
            now = time.monotonic()
            early = self._writes < PROMPT_WRITES and "\n" in kept
            if early or now - self._last > SECONDS_BETWEEN_WRITES or self._room == 0:
                self._last = now
                self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what waits."""
        if self._waiting:
            self._writes += 1
            self._send("".join(self._waiting))
            self._waiting.clear()


def no_input(prompt: str = "") -> str:
    """Refuse; a cell that waited could not be answered."""
    raise EOFError("a cell on this page cannot ask with input(); write the value into the code")


def bundle(value: Any) -> dict[str, str]:
    """Return how a value shows itself, by MIME type, as IPython would ask for it.

    Parameters
    ----------
    value
        Any object.

    Returns
    -------
    dict
        ``text/plain`` always; ``text/html`` and ``text/latex`` where the value has them.
    """
    data: dict[str, str] = {}
    if not isinstance(value, type):
        for kind, method in (("text/html", "_repr_html_"), ("text/latex", "_repr_latex_")):
            if callable(own := getattr(value, method, None)) and isinstance(text := own(), str):
                data[kind] = text
    data["text/plain"] = repr(value)
    return data


class Page:
    """The one interpreter of a page: cells share its names.

    Parameters
    ----------
    send
        Called with a kind (``"text"`` or ``"data"``) and a text or a bundle.
    """

    def __init__(self, send: Callable[[str, Any], None]) -> None:
        self._send = send
        self._output = Output(lambda text: send("text", text))
        self._displays = 0
        self._module = types.ModuleType("__main__")
        sys.modules["__main__"] = self._module
        builtins.display = self.display
        builtins.input = no_input
        sys.modules["IPython"] = types.ModuleType("IPython")
        sys.modules["IPython.display"] = self._like_ipython()

    def _like_ipython(self) -> types.ModuleType:
        """Return a stand-in for IPython.display with what a sympy cell may use."""
        module = types.ModuleType("IPython.display")

        class Wrapped:
            def __init__(self, data: str) -> None:
                self.data = data

        def made(name: str, method: str, wrap: str) -> type:
            return type(name, (Wrapped,), {method: lambda self: wrap % self.data})

        module.display = self.display
        module.HTML = made("HTML", "_repr_html_", "%s")
        module.Latex = made("Latex", "_repr_latex_", "%s")
        module.Math = made("Math", "_repr_latex_", r"$\displaystyle %s$")
        return module

    def display(self, *values: Any) -> None:
        """Show values under the cell, as Jupyter's ``display`` does."""
        self._output.flush()
        for value in values:
            self._displays += 1
            if self._displays <= MOST_DISPLAYS:
                self._send("data", bundle(value))

    def run(self, code: str, name: str) -> dict[str, Any] | None:
        """Run a cell in the page's names and show its last expression.

        Parameters
        ----------
        code
            The cell's text.
        name
            What error messages call the cell, such as ``"live cell 2"``.

        Returns
        -------
        dict or None
            None when all went well; else ``message`` (one line), ``line`` (of the cell, or None),
            ``text`` (the traceback as far as it concerns the reader) and ``full``.
        """
        self._output.reset()
        self._displays = 0
        lines = code.splitlines(keepends=True)
        linecache.cache[name] = (len(code), None, lines, name)
        streams = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = self._output
        try:
            tree = ast.parse(code, name)
            last = None
            shown = tree.body and isinstance(tree.body[-1], ast.Expr)
            if shown and not code.rstrip().endswith(";"):
                last = ast.Expression(tree.body.pop().value)
            exec(compile(tree, name, "exec", dont_inherit=True), self._module.__dict__)
            if last is not None:
                value = eval(compile(last, name, "eval", dont_inherit=True), self._module.__dict__)
                if value is not None:
                    self._module._ = value
                    self.display(value)
        except BaseException as error:
            return describe(error, name)
        finally:
            self._output.flush()
            sys.stdout, sys.stderr = streams
        return None


def describe(error: BaseException, name: str) -> dict[str, Any]:
    """Return what a reader needs to know of an error in the cell called ``name``."""
    own = lambda frame: frame.filename == name  # noqa: E731
    told = traceback.TracebackException.from_exception(error)
    frames = list(told.stack)
    first = next((i for i, frame in enumerate(frames) if own(frame)), len(frames))
    told.stack = traceback.StackSummary.from_list(frames[first:])
    full = "".join(told.format())
    told.stack = traceback.StackSummary.from_list([f for f in frames if own(f)])
    short = "".join(told.format(chain=False))
    line = next((frame.lineno for frame in reversed(frames) if own(frame)), None)
    if isinstance(error, SyntaxError) and error.filename == name:
        line = error.lineno
    message = "".join(traceback.format_exception_only(error)).strip().splitlines()
    hint = ""
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name if error.name.startswith("rope_") else error.name.split(".")[0]
        hint = (
            f"\n\nThis page's Python has sympy, mpmath, ropebook.proofs and the standard "
            f"library; {missing} is not here. Open the chapter in Jupyter to use it."
        )
    return {
        "message": message[-1] if isinstance(error, SyntaxError) else message[0],
        "line": line,
        "text": short.rstrip() + hint,
        "full": full.rstrip() if full != short else "",
    }
