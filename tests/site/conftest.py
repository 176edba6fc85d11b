"""The built book, served on this machine, and one headless browser for all tests of it."""

import contextlib
import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.tools.browser import launch, wait_for

from .figures import settle

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"
PAGES = sorted(
    str(path.relative_to(SITE))
    for folder in ("book", "notebooks")
    for path in (SITE / folder).glob("*.html")
)


def pages_with(*words: str) -> list[str]:
    """Return the pages in whose HTML one of these words stands."""
    html = {name: (SITE / name).read_text("utf8") for name in PAGES}
    return [name for name, text in html.items() if any(word in text for word in words)]


WITH_WIDGETS = pages_with("widget-view+json")
VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]'
# every widget has its place, every question its name, every picture has been drawn, also of
# figures that a reader has not come near to, and no part of the page waits to be laid out
FIGURES_STAND = """() => {
    window.ropeHost?.hurry();
    const figures = [...document.querySelectorAll('.rope-figure')];
    const places = document.querySelectorAll('.rope-place').length;
    const wanted = document.querySelectorAll('script[type$="widget-view+json"]').length;
    const pictures = figures.filter(figure => figure.querySelector('canvas'));
    return places >= wanted && figures.length >= wanted
        && pictures.every(figure => figure.dataset.drawn)
        && !document.querySelector('.openings ~ section[id]:not(.laid-out)');
}"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for ``page_name`` on every page of the book, or on those it names."""
    if "page_name" in metafunc.fixturenames:
        if not PAGES:
            pytest.exit("the book is not built: run `make book` first", returncode=1)
        named = metafunc.definition.iter_markers("parametrize")
        if not any(mark.args[0] == "page_name" for mark in named):
            metafunc.parametrize("page_name", PAGES, scope="module")


# A worker obeys the policy of its own file. Static hosts send none, so a reader's browser sets
# Python no bounds; here it gets the narrowest ones in which it works, and so asks for nothing more.
WORKER_POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """A static file server that prints nothing."""

    def end_headers(self) -> None:
        """Bound the worker of the live cells."""
        if self.path.partition("?")[0].endswith("worker.js"):
            self.send_header("Content-Security-Policy", WORKER_POLICY)
        super().end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free local port; yield its address."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of the book below /rope/, as project pages are served."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "rope").symlink_to(SITE)
    with served(folder) as address:
        yield f"{address}rope/"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One headless browser."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


class Visit:
    """A page being visited, and everything that went wrong on it."""

    def __init__(self, page: Page, site: str) -> None:
        self.page = page
        self.site = site
        self.requests: list[str] = []
        self.problems: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        page.on("requestfailed", lambda r: self.problems.append(f"failed: {r.url} {r.failure}"))

    def _console(self, message: object) -> None:
        if message.type == "error":
            self.problems.append(f"console: {message.text}")

    @property
    def foreign(self) -> list[str]:
        """Requests to any other host."""
        own = (self.site, "data:", "blob:")
        return [url for url in self.requests if not url.startswith(own)]

    def reset(self) -> None:
        """Bring every figure back to its start."""
        self.page.evaluate("document.querySelectorAll('.rope-reset').forEach(e => e.click())")
        settle(self.page)

    def open(self, name: str) -> Page:
        """Go to a page of the book and wait until its figures stand."""
        self.page.goto(self.site + name)
        self.page.wait_for_load_state("networkidle")
        if self.page.locator(VIEW).count():
            wait_for(self.page, FIGURES_STAND, timeout=10_000)
        return self.page


# A first-time reader has made no choice of a theme: what a page remembers ends with its tab.
ARRIVE = """if (!sessionStorage.here) {
    sessionStorage.here = "yes";
    localStorage.clear();
    localStorage.mode = localStorage.theme = "THEME";
}"""


@pytest.fixture(scope="session")
def contexts(browser: Browser) -> Callable:
    """Return a function that gives the context of some options: its pages share what they load."""
    made: dict[str, BrowserContext] = {}

    def context(**options: object) -> BrowserContext:
        key = str(sorted(options.items()))
        if key not in made:
            allowed = ["clipboard-read", "clipboard-write"]
            made[key] = browser.new_context(permissions=allowed, **options)
        return made[key]

    return context


@pytest.fixture(scope="session")
def new_visit(contexts: Callable, site: str) -> Callable:
    """Return a context manager that yields a new visit, with options of the browser's context."""

    @contextlib.contextmanager
    def new(
        width: int = 1280,
        height: int = 900,
        theme: str = "light",
        reduced_motion: str = "no-preference",
        **options: object,
    ) -> Iterator[Visit]:
        page = contexts(**options).new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=theme, reduced_motion=reduced_motion)
        page.add_init_script(ARRIVE.replace("THEME", theme))
        yield Visit(page, site)
        page.close()

    return new


@pytest.fixture
def visit(new_visit: Callable) -> Iterator[Callable]:
    """Return a function that opens a visit for one test: ``visit(width=360, theme="dark")``."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(new_visit(**options))


@pytest.fixture(scope="module")
def opened_once(new_visit: Callable) -> Iterator[Callable]:
    """Return a function that opens a page once for all tests of a file, and then resets it."""
    seen: dict[str, Visit] = {}
    with contextlib.ExitStack() as stack:

        def open_or_reset(name: str) -> Visit:
            if name in seen:
                seen[name].reset()
            else:
                seen[name] = stack.enter_context(new_visit())
                seen[name].open(name)
            return seen[name]

        yield open_or_reset
