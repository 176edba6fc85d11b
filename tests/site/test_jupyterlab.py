"""A chapter in JupyterLab: it opens, runs from top to bottom, and its figure follows its slider."""

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, expect

from .conftest import ROOT
from .figures import move, state

CHAPTER = ROOT / "notebooks" / "04-many-planes.ipynb"
PATIENCE = 120_000  # milliseconds; the machine may be busy
# a figure with a formula: there is no MathJax for it here, so the kernel writes it
FORMULA = """\
import itertools

states = itertools.product([True, False], repeat=4)
figures.axioms([{"axioms": s, "kind": "rope", "certificate": "not asked"} for s in states])
"""
QUIET = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def lab(folder: Path) -> Iterator[tuple[str, str]]:
    """Run JupyterLab on a folder, with settings of its own; yield its address and its token."""
    port, token = free_port(), secrets.token_hex(16)
    home = folder / ".home"
    settings = home / "config" / "labconfig"
    settings.mkdir(parents=True)
    (settings / "page_config.json").write_text(json.dumps(QUIET))
    # cells out of view stay in the document, where the test finds them
    tracker = home / "settings" / "@jupyterlab" / "notebook-extension"
    tracker.mkdir(parents=True)
    (tracker / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    own = {
        "HOME": home,
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": home / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": home / "workspaces",
        "JUPYTER_TOKEN": token,
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYTHONPATH": ROOT,
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}"]
    log = folder / "lab.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **{name: str(value) for name, value in own.items()}},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(f"{address}/api/status?token={token}", server, log)
            yield address, token
        finally:
            # Ctrl-C, as at a terminal: the server ends its kernels and goes
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    """Return as soon as the server answers; raise with its log if it ends or never does."""
    end = time.monotonic() + PATIENCE / 1000
    while server.poll() is None and time.monotonic() < end:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(address, timeout=5).close()
            return
        time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text('utf8')}")


@pytest.fixture
def chapter(tmp_path: Path, browser: Browser) -> Iterator:
    """Open a copy of the chapter, with two more cells, in JupyterLab and yield the page."""
    notebook = nbformat.read(CHAPTER, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(FORMULA))
    notebook.cells.append(nbformat.v4.new_markdown_cell("# The end"))  # active, it wants the arrows
    nbformat.write(notebook, tmp_path / CHAPTER.name)
    with lab(tmp_path) as (address, token):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"{address}/lab/tree/{CHAPTER.name}?token={token}")
        yield page
        context.close()


@pytest.mark.skipif(
    "JUPYTERLAB" not in os.environ,
    reason="it wants a machine to itself, after the others: JUPYTERLAB=1",
)
def test_a_chapter_runs_in_jupyterlab_and_its_slider_moves_its_figure(chapter) -> None:
    page = chapter
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    # asked to run before its kernel is there, JupyterLab opens a dialog and runs nothing
    page.get_by_text("Python 3 (ipykernel) | Idle", exact=True).wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    # sliders of ipywidgets move the heatmap, and those of the kit another figure
    output = page.locator(".jp-OutputArea-output:has([data-figure='angle-heatmap'])").first
    output.wait_for(state="attached")
    output.scroll_into_view_if_needed()
    figure = output.locator("[data-figure='angle-heatmap'][data-drawn]")
    figure.wait_for()
    assert output.locator(".rope-track").count() == 0
    expect(output.locator(".widget-slider")).to_have_count(4)
    before = state(figure)
    for key in ("ArrowRight", "ArrowLeft", "ArrowLeft"):
        output.locator(".noUi-handle").nth(0).press(key)
    assert state(figure) != before
    waves = page.locator(".rope-box:has([data-figure='waves'][data-drawn])").first
    waves.scroll_into_view_if_needed()
    before = state(waves.locator(".rope-figure"))
    move(waves.locator(".rope-track").first)
    assert state(waves.locator(".rope-figure")) != before
    # every cell came to its end, and none of them in an error
    expect(page.locator(".jp-InputPrompt", has_text="[*]")).to_have_count(0, timeout=PATIENCE)
    assert page.locator("[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    assert page.locator(".jp-RenderedText[data-mime-type*='error']").count() == 0
    formula = page.locator("[data-figure='axioms'] .rope-statement math")
    expect(formula).to_have_text("Ms=Rsθ")
