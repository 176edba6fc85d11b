"""Execute the notebooks that have changed, before Sphinx reads them.

A notebook is executed again when its code has changed, or a file of this project that it opened the
last time. What came out is kept in ``_build/.executed``, named by a hash of the code. MyST-NB
executes nothing: it reads each notebook through `read`, which fills in the kept outputs.

As a script, ``execution.py PROJECT FOLDER SECONDS NOTEBOOK...`` executes notebooks into a folder,
as many at a time as there are cores. Importing torch, Matplotlib and sympy takes longer than most
chapters compute, so on Linux the kernels are forked from a process that has imported them. A
notebook that measures time says ``"execution": {"alone": true}`` in its metadata: it runs after the
others, by itself, with all cores.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import source_from_cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

# jsonschema, which nbformat brings, would read a grammar of addresses for two seconds at import
sys.modules.setdefault("rfc3987_syntax", None)

import nbformat
from jupyter_client import KernelManager
from jupyter_client.provisioning import LocalProvisioner
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config
    from sphinx.environment import BuildEnvironment

IMPORTED_ONCE = [
    "__main__",
    "IPython.core.completer",
    "anywidget",
    "ipykernel.kernelapp",
    "ipywidgets",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "numpy",
    "sympy",
    "torch",
]
SIDE_BY_SIDE = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
INLINE = "module://matplotlib_inline.backend_inline"
PICTURES = [  # vector graphics; without a date, they stay the same
    "--InlineBackend.figure_formats={'svg'}",
    "--InlineBackend.print_figure_kwargs={'bbox_inches': 'tight', 'metadata': {'Date': None}}",
]
UNWATCHED = ("_build", ".venv", "node_modules", ".git")

# ---- in a kernel --------------------------------------------------------------------------------


def watch(project: str, log: str) -> None:
    """Write down every file of the project that is opened from now on, and every folder listed.

    Python raises an audit event for both, whoever asks: imports, too.
    """
    inside = project + os.sep
    apart = tuple(inside + name + os.sep for name in UNWATCHED)
    seen = {project, os.getcwd()}  # every import lists these

    def hook(event: str, arguments: tuple) -> None:
        if event not in ("open", "os.listdir", "os.scandir") or not isinstance(arguments[0], str):
            return
        path = os.path.realpath(arguments[0])
        path = source_from_cache(path) if path.endswith(".pyc") else path
        if path not in seen and path.startswith(inside) and not path.startswith(apart):
            seen.add(path)
            with open(log, "a", encoding="utf8") as file:
                file.write(path.removeprefix(inside) + "\n")

    sys.addaudithook(hook)


def kernel(arguments: list[str], folder: str, project: str, log: str) -> None:
    """Be a Jupyter kernel, as ``python -m ipykernel_launcher`` is."""
    sys.path.remove(str(Path(__file__).parent))  # no notebook imports from here
    os.chdir(folder)
    watch(project, log)
    from ipykernel.kernelapp import launch_new_instance

    end = f"--IPKernelApp.parent_handle={os.getppid()}"  # with its parent
    launch_new_instance([*arguments, end, *PICTURES])


# ---- the script ---------------------------------------------------------------------------------


class Child:
    """A started process of multiprocessing, with the interface of ``subprocess.Popen``."""

    stdin = stdout = stderr = None

    def __init__(self, method: str, *arguments: Any) -> None:
        process = get_context(method).Process(target=kernel, args=arguments, daemon=True)
        process.start()
        self.pid, self.wait, self.kill = process.pid, process.join, process.kill
        self.poll = lambda: process.exitcode
        self.send_signal = partial(os.kill, process.pid)


class Launcher(LocalProvisioner):
    """Starts a kernel by a method of multiprocessing."""

    method = "spawn"
    watched = ("", "")

    async def launch_kernel(self, cmd: list[str], **options: Any) -> dict[str, Any]:
        """Start the kernel and return where to find it."""
        self.process = Child(self.method, cmd[3:], str(options["cwd"]), *self.watched)
        return self.connection_info


class Client(NotebookClient):
    """Runs a notebook in a kernel that tells what it reads."""

    launcher: Launcher
    folder: str

    def create_kernel_manager(self) -> KernelManager:
        """Let the kernel be started by the launcher, and spoken to through sockets in a folder."""
        manager = super().create_kernel_manager()
        manager.provisioner = self.launcher
        self.launcher.parent, self.launcher.kernel_spec = manager, manager.kernel_spec
        if os.name == "posix":
            manager.transport = "ipc"
        manager.connection_file = f"{self.folder}/kernel.json"
        return manager


def digest(path: Path) -> str:
    """Return a hash of a file, or of the names in a folder; "" for what is not there."""
    if path.is_dir():
        names = sorted(name for name in os.listdir(path) if not name.startswith((".", "__pycache")))
        data = "\n".join(names).encode()
    elif path.is_file():
        data = path.read_bytes()
    else:
        return ""
    return hashlib.sha256(data).hexdigest()[:16]


def execute(path: Path, project: Path, store: Path, timeout: int, method: str) -> str:
    """Execute a notebook and keep it; return what went wrong, or ""."""
    start = time.perf_counter()
    notebook = nbformat.read(path, 4)
    kept = store / f"{key(notebook)}.ipynb"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "reads.txt")
        log.touch()
        resources = {"metadata": {"path": str(path.parent)}}
        client = Client(notebook, timeout=timeout, resources=resources, coalesce_streams=True)
        client.shutdown_kernel = "immediate"
        client.folder, client.launcher = folder, Launcher()
        client.launcher.method = method
        client.launcher.watched = str(project), str(log)
        try:
            client.execute()
        except (CellExecutionError, CellTimeoutError) as error:
            return f"{path}:\n{error}"
        reads = log.read_text("utf8").splitlines()
    notebook.metadata["reads"] = {name: digest(project / name) for name in reads}
    nbformat.write(notebook, kept)
    print(f"{path.stem}: {time.perf_counter() - start:.1f} s", flush=True)
    return ""


def main(project: str, store: str, timeout: str, *paths: str) -> None:
    """Execute notebooks; exit with what went wrong."""
    one = partial(execute, project=Path(project), store=Path(store), timeout=int(timeout))
    longest_first = sorted(map(Path, paths), key=lambda path: -path.stat().st_size)
    alone = [path for path in longest_first if is_alone(nbformat.read(path, 4))]
    others = [path for path in longest_first if path not in alone]
    many = sys.platform == "linux" and len(others) > 1
    beside = partial(one, method="forkserver" if many else "spawn")
    get_context("spawn").set_forkserver_preload(IMPORTED_ONCE)
    os.environ["MPLBACKEND"] = INLINE  # read when Matplotlib is imported, whatever the shell's is
    with mock.patch.dict(os.environ, SIDE_BY_SIDE), ThreadPoolExecutor(cores()) as pool:
        wrong = [*pool.map(beside, others)]
    wrong += [one(path, method="spawn") for path in alone]
    sys.exit("\n\n".join(filter(None, wrong)) or 0)


def cores() -> int:
    """Return how many notebooks run at a time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def is_alone(notebook: NotebookNode) -> bool:
    """Tell whether a notebook asks for the machine to itself."""
    return notebook.metadata.get("execution", {}).get("alone", False)


# ---- in Sphinx ----------------------------------------------------------------------------------


def key(notebook: NotebookNode) -> str:
    """Return a hash of a notebook's code."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()[:20]


def read(text: str, store: str) -> NotebookNode:
    """Return a notebook with the outputs that were kept."""
    notebook = nbformat.reads(text, 4)
    done = nbformat.read(Path(store, f"{key(notebook)}.ipynb"), 4)
    kept = [cell for cell in done.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            source = kept.pop(0)
            cell.outputs, cell.execution_count = source.outputs, source.execution_count
    if "widgets" in done.metadata:
        notebook.metadata["widgets"] = done.metadata["widgets"]
    return notebook


def is_fresh(kept: Path, project: Path) -> bool:
    """Tell whether a notebook has been executed and all that it read is as it was."""
    if not kept.exists():
        return False
    reads = json.loads(kept.read_text("utf8"))["metadata"]["reads"]
    return all(digest(project / name) == was for name, was in reads.items())


def execute_changed(
    app: "Sphinx", env: "BuildEnvironment", added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Execute the notebooks that have changed, and let Sphinx read them again."""
    from sphinx.errors import ExtensionError

    project, store = Path(os.path.realpath(app.srcdir)), Path(store_of(app))
    store.mkdir(parents=True, exist_ok=True)
    paths = {page: Path(env.doc2path(page)) for page in env.found_docs}
    kept = {
        page: store / f"{key(nbformat.read(path, 4))}.ipynb"
        for page, path in paths.items()
        if path.suffix == ".ipynb"
    }
    stale = [page for page in sorted(kept) if not is_fresh(kept[page], project)]
    if stale:
        command = [sys.executable, __file__, project, store, str(app.config.nb_execution_timeout)]
        done = subprocess.run([*command, *(paths[page] for page in stale)], check=False)
        if done.returncode:
            raise ExtensionError("a notebook could not be executed")
    for old in set(store.iterdir()) - set(kept.values()):
        old.unlink()
    return stale


def store_of(app: "Sphinx") -> str:
    """Return where executed notebooks are kept: beside the site."""
    return str(Path(app.outdir).parent / ".executed")


def read_kept(app: "Sphinx", config: "Config") -> None:
    """Let MyST-NB read notebooks through `read`."""
    config.nb_execution_mode = "off"
    config.nb_custom_formats = {".ipynb": ["execution.read", {"store": store_of(app)}]}


def setup(app: "Sphinx") -> dict:
    """Connect to Sphinx."""
    app.connect("config-inited", read_kept, priority=400)
    app.connect("env-get-outdated", execute_changed)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 3}


if __name__ == "__main__":
    main(*sys.argv[1:])
