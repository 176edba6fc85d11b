"""Promises that every page of the published book keeps."""

import pytest

from .conftest import ROOT

AXE = (ROOT / "node_modules" / "axe-core" / "axe.min.js").read_text("utf8")


def scroll_through(page):
    """Scroll to the end, so that everything lazy happens."""
    page.evaluate(
        """async () => {
            for (let y = 0; y < document.body.scrollHeight; y += 600) {
                window.scrollTo(0, y);
                await new Promise(requestAnimationFrame);
            }
        }"""
    )
    page.wait_for_load_state("networkidle")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_asks_nobody_else_breaks_nothing_and_is_accessible(visit, page_name, theme):
    seen = visit(theme=theme)
    page = seen.open(page_name)
    scroll_through(page)
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert seen.foreign == []
    assert seen.problems == []

    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        f"{v['impact']} {v['id']}: {v['help']} at {[n['target'] for n in v['nodes'][:5]]}"
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_page_fits_a_phone(visit, page_name):
    page = visit(width=360, height=740, has_touch=True).open(page_name)
    too_wide = page.evaluate(
        """() => {
            const box = document.documentElement;
            if (box.scrollWidth <= window.innerWidth) return [];
            return [...document.querySelectorAll('body *')]
                .filter(e => e.getBoundingClientRect().right > window.innerWidth + 1)
                .slice(0, 5).map(e => e.tagName + '.' + e.className);
        }"""
    )
    assert too_wide == []


def test_every_image_says_what_it_shows(visit, page_name):
    page = visit().open(page_name)
    silent = page.evaluate(
        """() => {
            const named = e => (e.getAttribute('alt') || e.getAttribute('aria-label') || '').trim();
            return [...document.querySelectorAll('article :is(img, canvas, svg[role=img])')]
                .filter(e => !e.closest('[aria-hidden=true]'))
                .filter(e => named(e).length < 12 && !e.getAttribute('aria-labelledby'))
                .map(e => e.outerHTML.slice(0, 120));
        }"""
    )
    assert silent == []
