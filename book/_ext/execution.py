"""Execute notebooks side by side, each on a core of its own.

MyST-NB executes a notebook when Sphinx reads it: one after another. Here all that will be read and
are not in the cache are begun before, as many at a time as there are cores, and MyST-NB, when it
comes to one, gets what was begun. Cache, pages and errors are MyST-NB's as always; the kernels are
our own (kernels.py).

A notebook that measures time says so in its metadata: ``"execution": {"alone": true}``. It is read
and executed last, when no other runs, and has all cores.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple

import nbformat
from freshness import Reads
from jupyter_cache import get_cache
from jupyter_cache.executors.utils import ExecutionResult
from jupyter_client import KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner
from myst_nb.core.execute import cache as mystnb
from nbclient import NotebookClient
from nbclient.client import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

KERNEL = Path(__file__).with_name("kernels.py")
ONE_CORE = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}


class Server:
    """The process that the kernels of notebooks side by side are forked from."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.process: Popen | None = None

    def start(self, command: list[str], folder: str, environment: dict[str, str]) -> int:
        """Start a kernel and return its process number."""
        with self.lock:
            if self.process is None:
                serve = [sys.executable, str(KERNEL), "serve"]
                self.process = Popen(
                    serve, stdin=PIPE, stdout=PIPE, text=True, env=os.environ | ONE_CORE
                )
            asked = {"arguments": command[2:], "folder": folder, "environment": environment}
            print(json.dumps(asked), file=self.process.stdin, flush=True)
            return int(self.process.stdout.readline())

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


class Fork:
    """A kernel that is no child of this process, in the words of ``Popen``."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """Return None as long as it runs."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self) -> int:
        """Return at once: it has ended, or it is a fork that nobody waits for."""
        return 0

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)


class Forked(LocalProvisioner):
    """Has the kernel forked."""

    async def launch_kernel(self, cmd: list[str], **options: Any) -> dict[str, Any]:
        """Start the kernel and return where to find it."""
        self.process = Fork(SERVER.start(cmd, options["cwd"], options["env"]))
        self.pid = self.pgid = self.process.pid
        return self.connection_info


SERVER = Server()


class Client(NotebookClient):
    """Runs a notebook in a kernel of ours."""

    forked: bool
    environment: dict[str, str]

    def create_kernel_manager(self) -> KernelManager:
        """Put the kernel in the place of IPython's."""
        manager = super().create_kernel_manager()
        spec = manager.kernel_spec
        spec.argv = [spec.argv[0], str(KERNEL), "-f", "{connection_file}"]
        if self.forked:
            spec.metadata["kernel_provisioner"] = {"provisioner_name": "forked"}
        return manager

    async def async_start_new_kernel(self, **options: Any) -> None:
        """Start it in its environment."""
        await super().async_start_new_kernel(env=os.environ | self.environment, **options)

    async def async_start_new_kernel_client(self) -> Any:
        """Wait for its first word. One that dies before it, on a busy machine, is started again."""
        with suppress(RuntimeError):
            return await super().async_start_new_kernel_client()
        self.create_kernel_manager()
        await self.async_start_new_kernel()
        return await super().async_start_new_kernel_client()


class Task(NamedTuple):
    """A notebook to be executed."""

    page: str
    path: Path
    notebook: NotebookNode
    log: Path
    """Where the kernel writes down what it reads."""

    def run(self, root: Path, timeout: int, beside: bool) -> ExecutionResult:
        """Execute it: beside others, on one core in a forked kernel, or with all cores."""
        folder = str(self.path.parent)
        where = {"metadata": {"path": folder}}
        # MyST-NB would end a line at every flush
        client = Client(self.notebook, timeout=timeout, resources=where, coalesce_streams=True)
        client.environment = {"ROPE_ROOT": os.path.realpath(root), "ROPE_READS": str(self.log)}
        client.environment |= ONE_CORE if beside else {}
        client.forked = beside and sys.platform == "linux"
        self.log.write_text("", "utf8")
        error = text = None
        start = perf_counter()
        try:
            client.execute()
        except (CellExecutionError, CellTimeoutError) as raised:
            error, text = raised, traceback.format_exc()
        return ExecutionResult(self.notebook, folder, perf_counter() - start, error, text)


def is_alone(notebook: NotebookNode) -> bool:
    """Tell whether a notebook asks for the machine to itself."""
    return notebook.metadata.get("execution", {}).get("alone", False)


def code(notebook: NotebookNode) -> tuple[str, ...]:
    """Return what Jupyter's cache knows a notebook by, and so do we."""
    return tuple(cell.source for cell in notebook.cells if cell.cell_type == "code")


def tasks(app: Sphinx, pages: list[str], reads: Reads) -> Iterator[Task]:
    """Yield what of these pages has to be executed: what Jupyter's cache has not, or had before."""
    cache = get_cache(app.config.nb_execution_cache_path)
    for page in pages:
        path = Path(app.env.doc2path(page))
        if path.suffix != ".ipynb":
            continue
        notebook = nbformat.read(path, 4)
        with suppress(KeyError):
            record = cache.match_cache_notebook(notebook)
            if reads.is_fresh(page):
                continue
            cache.remove_cache(record.pk)
        yield Task(page, path, notebook, reads.folder / f"{page.replace('/', '-')}.txt")


def begin(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """Begin with the notebooks that are to be read, and let MyST-NB wait for them."""
    reads = Reads(app)
    found = list(tasks(app, pages, reads))
    alone = {task.page for task in found if is_alone(task.notebook)}
    pages.sort(key=lambda page: page in alone)
    pool = ThreadPoolExecutor(cores())
    begun: dict[tuple[str, ...], tuple[Task, Callable[[], ExecutionResult]]] = {}
    for task in found:
        beside = task.page not in alone and len(found) > 1
        result = partial(task.run, app.srcdir, app.config.nb_execution_timeout, beside)
        begun[code(task.notebook)] = task, pool.submit(result).result if beside else result

    def stop(*_: Any) -> None:
        pool.shutdown(wait=False, cancel_futures=True)
        SERVER.stop()

    def executed(notebook: NotebookNode, **options: Any) -> ExecutionResult:
        """Return what was begun, in the place of jupyter-cache's function."""
        task, result = begun[code(notebook)]
        try:
            done = result()
        except BaseException:  # Ctrl-C, too: no other notebook begins
            stop()
            raise
        for cell, own in zip(done.nb.cells, notebook.cells, strict=True):
            if cell.cell_type == "code":
                own.outputs, own.execution_count = cell.outputs, cell.execution_count
        notebook.metadata.update(done.nb.metadata)
        if not done.err:
            reads.keep(task.page, task.log.read_text("utf8").splitlines())
        return done

    mystnb.single_nb_execution = executed
    app.connect("build-finished", stop)


def cores() -> int:
    """Return how many notebooks run at a time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    found = KernelProvisionerFactory.instance().provisioners
    found["forked"] = EntryPoint("forked", "execution:Forked", KernelProvisionerFactory.GROUP_NAME)
    app.connect("env-before-read-docs", begin)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
