"""Measure how high every figure and question stands, on a desk and on a phone.

The built pages hold their places open (book/_ext/figures.py): run this after a change that makes
one much higher or lower, when a test of `tests/site/test_steady.py` says so, and build again.
"""

import json
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.site.conftest import FIGURES_STAND, ROOT, SITE, WITH_WIDGETS, served
from tests.tools.browser import launch, wait_for

TABLE = ROOT / "book" / "_ext" / "figures.json"
WIDTHS = 1280, 390
HEIGHTS = """() => [...document.querySelectorAll('.cell_output:has(> .rope-place)')]
    .map(place => Math.round(place.getBoundingClientRect().height))"""


def heights(browser: Browser, address: str, width: int) -> list[int]:
    """Return the heights of a page's figures and questions, in their order."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(address)
    wait_for(page, FIGURES_STAND)
    page.wait_for_load_state("networkidle")
    found = page.evaluate(HEIGHTS)
    page.close()
    return found


def measure(site: Path, names: list[str]) -> dict[str, list[list[int]]]:
    """Return the heights of all figures by page: for each a desk's and a phone's."""
    with sync_playwright() as playwright, served(site) as address:
        browser = launch(playwright)
        found = {
            name.removesuffix(".html"): [
                list(pair)
                for pair in zip(*(heights(browser, address + name, w) for w in WIDTHS), strict=True)
            ]
            for name in names
        }
        browser.close()
    return found


def main() -> None:
    """Write the table."""
    rows = [
        f"  {json.dumps(name)}: {json.dumps(sizes)}"
        for name, sizes in measure(SITE, WITH_WIDGETS).items()
    ]
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf8")


if __name__ == "__main__":
    main()
