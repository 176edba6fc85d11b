"""What validators from elsewhere say of the built site: ``make outside``.

The Nu checker reads every page, and Lighthouse opens some as a phone would (its mobile preset,
behind a server that compresses). Both are pinned in tests/outside. The command fails at an error
that `KNOWN` does not name, at a name there that fits nothing any more, and at a score that is below
that of `PERFORMANCE` or `SCORES` in all tries: a busy machine only lowers them. ``--nu`` and
``--lighthouse`` ask for one of them.
"""

import argparse
import functools
import gzip
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from io import BytesIO
from pathlib import Path

from playwright.sync_api import sync_playwright

from .browser import ARGS, find

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"
MODULES = ROOT / "tests" / "outside" / "node_modules"
NODE = ROOT / ".venv" / "bin" / "node"

KNOWN = {  # errors that stay: what the checker says, where, and why
    "paragraphs in the heading of a fold": (
        r"Element .p. not allowed as child of element .summary.",
        r".",
        "MyST-NB writes them for every cell that is hidden; browsers show them as they should",
    ),
    "a table in a list of arguments": (
        r"No .p. element in scope but a .p. end tag seen",
        r"book/api\.html$",
        "Sphinx puts a docstring's table into the paragraph of its argument",
    ),
    "a style that looks at the whole page": (
        r"^The selector .body:has\(#show-",
        r"notebooks/papers\.html$",
        "the filter of the cards is a cell of its notebook, and stands before all that it hides",
    ),
    "container queries": (
        r"container-type.: Property .container-type. doesn't exist",
        r".",
        "the checker's list of properties is older than every browser that is tested here",
    ),
}

SCORES = {"accessibility": 100, "best-practices": 100, "seo": 100}
PERFORMANCE = {
    "book/intro.html": 95,
    "notebooks/01-why-position.html": 90,
    "notebooks/04-many-planes.html": 90,
    "notebooks/07-longer-contexts.html": 90,
    "notebooks/08-does-it-matter.html": 90,
    "notebooks/12-serving.html": 90,
    "notebooks/14-ask-a-real-model.html": 90,
    "book/gallery.html": 90,
}
TRIES = 3

# ---- the Nu checker -----------------------------------------------------------------------------


def errors() -> list[tuple[str, int, str]]:
    """Return what the Nu checker finds wrong, as page, line and message."""
    java = shutil.which("java")
    if java is None:
        sys.exit("the Nu checker needs Java: install a runtime (17 or newer)")
    pages = sorted(page.relative_to(SITE).as_posix() for page in SITE.rglob("*.html"))
    pages = [page for page in pages if not page.startswith("_")]
    jar = MODULES / "vnu-jar" / "build" / "dist" / "vnu.jar"
    options = ["--errors-only", "--format", "json", "--exit-zero-always"]
    done = subprocess.run(
        [java, "-Xss8m", "-jar", str(jar), *options, *pages],
        cwd=SITE,
        capture_output=True,
        text=True,
        check=True,
    )
    at = f"{SITE.as_uri()}/"
    return [
        (one["url"].removeprefix(at), one.get("lastLine", 0), one["message"])
        for one in json.loads(done.stderr)["messages"]
    ]


def unknown(found: list[tuple[str, int, str]]) -> list[str]:
    """Return a line for every error that `KNOWN` does not name, and for every name without one."""
    lines, met = [], dict.fromkeys(KNOWN, 0)
    for page, line, message in found:
        for name, (says, where, _) in KNOWN.items():
            if re.search(says, message) and re.search(where, page):
                met[name] += 1
                break
        else:
            lines.append(f"{page}:{line}: {message}")
    for name, count in met.items():
        print(f"{count:6,} x {name}: {KNOWN[name][2]}")
    return lines + [f"no page has {name} any more" for name, count in met.items() if not count]


# ---- Lighthouse ---------------------------------------------------------------------------------


class Compressing(http.server.SimpleHTTPRequestHandler):
    """A static file server that compresses, as hosts do, and prints nothing."""

    protocol_version = "HTTP/1.1"

    def send_head(self) -> BytesIO | None:
        """Send the head of a file, and return what follows."""
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return None
        body = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if path.suffix not in (".woff", ".woff2", ".png", ".webp"):
            body = gzip.compress(body, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=3600")
        self.end_headers()
        return BytesIO(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def scores(address: str, chrome: str) -> dict[str, int]:
    """Return the scores that Lighthouse gives a page, of 100."""
    run = subprocess.run(
        [
            str(NODE),
            str(MODULES / "lighthouse" / "cli" / "index.js"),
            address,
            "--quiet",
            "--output=json",
            f"--only-categories=performance,{','.join(SCORES)}",
            f"--chrome-flags=--headless=new {' '.join(ARGS)}",
        ],
        env={**os.environ, "CHROME_PATH": chrome},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(f"Lighthouse could not read {address}:\n{run.stderr}")
    found = json.loads(run.stdout)["categories"]
    return {name: round(100 * (one["score"] or 0)) for name, one in found.items()}


def low() -> list[str]:
    """Return a line for every score that is too low in all tries."""
    with sync_playwright() as playwright:
        chrome = find(playwright)
    handler = functools.partial(Compressing, directory=str(SITE))
    lines = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, performance in PERFORMANCE.items():
            wanted = {"performance": performance, **SCORES}
            best = dict.fromkeys(wanted, 0)
            for _ in range(TRIES):
                found = scores(f"http://127.0.0.1:{server.server_port}/{name}", chrome)
                print(name, found, flush=True)
                best = {which: max(best[which], found[which]) for which in wanted}
                if all(best[which] >= least for which, least in wanted.items()):
                    break
            lines += [
                f"{name}: {which} {best[which]}, wanted {least}"
                for which, least in wanted.items()
                if best[which] < least
            ]
        server.shutdown()
    return lines


def main() -> None:
    """Ask both, or the one that was named; exit with 1 at what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nu", action="store_true", help="ask the Nu checker alone")
    parser.add_argument("--lighthouse", action="store_true", help="ask Lighthouse alone")
    asked = parser.parse_args()
    wrong = [] if asked.lighthouse else unknown(errors())
    wrong += [] if asked.nu else low()
    print("\n".join(wrong) or "nothing is wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
