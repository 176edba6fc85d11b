"""Jupyter kernels that start at once and write down what their notebooks read.

Importing torch, Matplotlib and sympy takes longer than most chapters compute. So one process, this
file run with ``serve``, imports them once, and every kernel is a fork of it. (Only on Linux: other
systems do not promise that a fork of such a process works, and there a kernel is this file run
alone.) What is imported before is nobody's but these libraries': the package itself never is.

Python raises an audit event for every file that it opens, whoever asks: an import, the compiled
copy of a module, ``open`` or ``Path.read_text``. A line of the file ``ROPE_READS`` is a path below
``ROPE_ROOT``, or ``*``: the notebook started another Python, which may read anything.
"""

import importlib
import json
import os
import signal
import sys

BEFORE = (
    "IPython.core.completer",
    "anywidget",
    "ipykernel.kernelapp",
    "ipywidgets",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "numpy",
    "sympy",
    "torch",
)
BUILT = ("_build", ".venv", "node_modules", ".git")
PICTURES = (  # drawings, light and sharp at every size; without a date, they stay the same
    "--InlineBackend.figure_formats={'svg'}",
    "--InlineBackend.print_figure_kwargs={'bbox_inches': 'tight', 'metadata': {'Date': None}}",
)
PROGRAMS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system")


def watch(root: str, reads: str) -> None:
    """Note from now on each file of the project that is opened, and if another Python starts."""
    root += os.sep
    built = tuple(root + name + os.sep for name in BUILT)
    seen: set[str] = set()

    def note(line: str) -> None:
        if line not in seen:
            seen.add(line)
            with open(reads, "a", encoding="utf8") as file:  # so may a forked child
                file.write(f"{line}\n")

    def hook(event: str, arguments: tuple) -> None:
        if event == "open" and isinstance(arguments[0], str):
            path = os.path.realpath(arguments[0])
            if path.startswith(root) and not path.startswith(built) and os.path.isfile(path):
                note(path.removeprefix(root))
        elif event in PROGRAMS and "python" in str(arguments[:2]):
            note("*")

    sys.addaudithook(hook)


def kernel() -> None:
    """Be a kernel, as ``ipykernel_launcher`` is."""
    watch(os.environ["ROPE_ROOT"], os.environ["ROPE_READS"])
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance([*sys.argv[1:], *PICTURES])


def serve() -> None:
    """Start a kernel for every line of standard input and answer with its process number."""
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # a kernel ends when this process has
    # Matplotlib asks once, when it is imported, where pictures go: a kernel's go into the notebook
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    for name in BEFORE:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever ends is forgotten
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            become_kernel(**json.loads(line))
        print(pid, flush=True)


def become_kernel(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be a kernel in a process of its own, and end with it."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        os.chdir(folder)
        os.environ.update(environment)
        sys.argv[1:] = arguments
        kernel()
    finally:
        os._exit(0)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file: no notebook imports from it
    serve() if sys.argv[1:] == ["serve"] else kernel()
