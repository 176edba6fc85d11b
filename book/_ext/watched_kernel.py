"""A Jupyter kernel that writes down which files of this project its notebook reads.

Python raises an audit event for every file that it opens, whoever asks: an import, the compiled
copy of a module, ``open`` or ``Path.read_text``. A line of the file ``ROPE_READS`` is a path below
``ROPE_ROOT``, or ``*``: the notebook started another Python, which may read anything.
"""

import os
import sys

ROOT, READS = os.environ["ROPE_ROOT"] + os.sep, os.environ["ROPE_READS"]
BUILT = tuple(ROOT + name + os.sep for name in ("_build", ".venv", "node_modules", ".git"))
PROGRAMS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system")

seen: set[str] = set()


def note(line: str) -> None:
    """Append a line once; a forked child writes into the same file."""
    if line not in seen:
        seen.add(line)
        with open(READS, "a", encoding="utf8") as file:
            file.write(f"{line}\n")


def watch(event: str, arguments: tuple) -> None:
    """Note a file of the project that is opened, and another Python that is started."""
    if event == "open" and isinstance(arguments[0], str):
        path = os.path.realpath(arguments[0])
        if path.startswith(ROOT) and not path.startswith(BUILT) and os.path.isfile(path):
            note(path.removeprefix(ROOT))
    elif event in PROGRAMS and "python" in str(arguments[:2]):
        note("*")


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file: no notebook imports from it
    sys.addaudithook(watch)
    from ipykernel.kernelapp import launch_new_instance

    launch_new_instance()
