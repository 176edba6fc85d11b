"""See what the gallery tells of every figure: a picture, what it answers first, how high it is.

The gallery and the code of a frame show it (book/_ext/alone.py): run this on the built pages after
a change of a figure's looks or words, when a test of `tests/site/test_gallery.py` says so, and
build again.
"""

import io
import json
import math

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.site.conftest import ROOT, SITE, served
from tests.tools.browser import launch

FIGURES = SITE / "figures"
TABLE = ROOT / "book" / "_ext" / "alone.json"
PICTURES = ROOT / "book" / "_static" / "gallery"
DESK, PHONE = (640, 720, 960), (340, 390)  # how wide frames are, in pixels
SLACK = 20  # for an answer that is a line longer
STANDS = ".rope-figure[data-drawn]"
HEIGHT = "() => document.body.getBoundingClientRect().height"
SIZE = 640, 480
SCALE = 1.6
QUIET = ".rope-help { display: none !important; }"


def open_figure(browser: Browser, address: str, width: int) -> Page:
    """Return the page of a figure when it is drawn."""
    page = browser.new_page(
        viewport={"width": width, "height": 900},
        device_scale_factor=SCALE,
        color_scheme="light",
        reduced_motion="reduce",
    )
    page.goto(address)
    page.locator(STANDS).wait_for()
    return page


def answer(page: Page) -> str:
    """Return what a figure answers."""
    return page.locator(".rope-answer").inner_text().strip()


def heights(page: Page) -> list[int]:
    """Return how high a frame has to be, on a desk and on a phone."""
    found = []
    for widths in (DESK, PHONE):
        seen = []
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            draws = "() => new Promise(go => setTimeout(() => requestAnimationFrame(go), 60))"
            page.evaluate(draws)
            seen.append(page.evaluate(HEIGHT))
        found.append(10 * math.ceil((max(seen) + SLACK) / 10))
    return found


def picture(page: Page) -> Image.Image:
    """Return the upper part of a figure's picture."""
    page.add_style_tag(content=QUIET)
    page.wait_for_timeout(150)  # what its going moves is drawn again
    page.evaluate("document.querySelectorAll('.rope-list').forEach(e => { e.scrollTop = 0; })")
    shot = page.locator(".rope-body").screenshot(animations="disabled")
    seen = Image.open(io.BytesIO(shot)).convert("RGB")
    width, height = SIZE
    margin = 16
    seen = seen.resize(
        (width - 2 * margin, round(seen.height * (width - 2 * margin) / seen.width)),
        Image.Resampling.LANCZOS,
    )
    shown = Image.new("RGB", SIZE, "#ffffff")
    above = max(margin, (height - seen.height) // 2)
    shown.paste(seen, (margin, above))
    return shown


def main() -> None:
    """Write the table and the pictures."""
    PICTURES.mkdir(exist_ok=True)
    rows = []
    with sync_playwright() as playwright, served(SITE) as address:
        browser = launch(playwright)
        names = sorted(path.stem for path in FIGURES.glob("*.html"))
        for old in PICTURES.glob("*.webp"):
            if old.stem not in names:
                old.unlink()
        for name in names:
            page = open_figure(browser, f"{address}figures/{name}.html", 420)
            seen = {"answer": answer(page)}
            picture(page).save(PICTURES / f"{name}.webp", quality=72, method=6)
            seen["heights"] = heights(page)
            rows.append(f"  {json.dumps(name)}: {json.dumps(seen, ensure_ascii=False)}")
            page.close()
        browser.close()
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf8")


if __name__ == "__main__":
    main()
