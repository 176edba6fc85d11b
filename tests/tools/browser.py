"""The browser of the site's tests: found, or fetched, or a clear instruction. Never skipped.

Run as a script it makes sure that one is there (``make test`` does so first).
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HELP = """\
No Chrome or Chromium was found and none could be installed, so the site cannot be tested.
Any one of these helps:
  - install Chromium or Chrome with your system's package manager
  - run: .venv/bin/python -m playwright install chromium
  - set CHROME to the path of the browser
"""


def find(playwright: Playwright) -> str | None:
    """Return the path of an installed browser, the user's choice first."""
    if "CHROME" in os.environ:
        return os.environ["CHROME"]
    candidates = [*(shutil.which(name) for name in NAMES), MAC, playwright.chromium.executable_path]
    return next((path for path in candidates if path and Path(path).exists()), None)


def launch(playwright: Playwright) -> Browser:
    """Start the browser headless."""
    path = find(playwright)
    if path is None:
        raise RuntimeError(HELP)
    return playwright.chromium.launch(executable_path=path, args=ARGS)


WAIT = """async ([arg, ms]) => {
    const stands = STANDS;
    for (const end = performance.now() + ms; !stands(arg); ) {
        if (performance.now() > end) throw new Error(`not after ${ms} ms: ${stands}`);
        await new Promise(go => setTimeout(go, 20));
    }
}"""


def wait_for(page: Page, stands: str, arg: object = None, timeout: int = 30_000) -> None:
    """Wait until a JavaScript function of ``arg`` is true on a page.

    Playwright's ``wait_for_function`` compiles its text again at every look, which the policy of
    the book's pages forbids.
    """
    page.evaluate(WAIT.replace("STANDS", stands), [arg, timeout])


def install() -> None:
    """Fetch Playwright's own Chromium; on Debian as root the distribution's package."""
    commands = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if shutil.which("apt-get") and os.geteuid() == 0:
        commands = [["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"]]
    for command in commands:
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
            break


def main() -> None:
    """Make sure that there is a browser, and that it starts."""
    with sync_playwright() as playwright:
        if find(playwright) is None:
            print("no browser found: installing Chromium ...", flush=True)
            install()
        if find(playwright) is None:
            sys.exit(HELP)
        browser = launch(playwright)
        print(f"the site is tested with {find(playwright)} {browser.version}")
        browser.close()


if __name__ == "__main__":
    main()
