"""``python -m tests.tools.memory`` prints the peak of memory of each notebook in MiB, as JSON.

Every notebook runs in a kernel of its own, in the folder where readers run it. The peak is that
of the largest process, which is the kernel; Binder ends a session whose processes pass 2 GB.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.tools.first_cell import notebooks

# the kernel is the only child of this process, and has ended when its peak is read
RUN = """
import resource, sys, nbclient, nbformat
path, folder = sys.argv[1:]
book = nbformat.read(path, as_version=4)
nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": folder}}).execute()
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak(path: Path) -> float:
    """Return the peak of one notebook's kernel in MiB; raise where a cell raises."""
    command = [sys.executable, "-c", RUN, str(path), str(path.parent)]
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, encoding="utf8", check=True
    )
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, KiB on Linux
    return int(done.stdout.split()[-1]) / unit


if __name__ == "__main__":
    paths = [Path(name) for name in sys.argv[1:]] or notebooks()
    print(json.dumps({path.stem: round(peak(path)) for path in paths}, indent=2))
