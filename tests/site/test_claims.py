"""Every claim of the book leads to its second check, and from there back."""

import re

import pytest

from tests.tools.boxes import boxes_with_checks
from tests.tools.report import AXE, READ_TO_THE_END, document, violations

from .conftest import PAGES, ROOT

pytestmark = pytest.mark.drawn(1)

LIST = "book/claims.html"


def test_every_claim_leads_to_the_source_of_its_second_check_and_back():
    found = {
        box["id"]: (page, box) for page in PAGES for box in document(page).select(".claim[id]")
    }
    assert len(found) == len(document(LIST).select(".second-check")) >= 50
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for title, check, *_ in boxes_with_checks(notebook, "Claim"):
            page, box = found.pop(re.sub(r"\W+", "-", title.lower()))
            assert page == f"notebooks/{notebook.stem}.html"
            assert box.p.text == f"{title} second check cite#"
            there = box.p.a["href"]
            assert there == f"../{LIST}#{box['id']}-check"
            entry = document(LIST).find(id=there.partition("#")[2])
            assert entry.p.a["href"] == f"../{page}#{box['id']}"
            names = re.findall(r"test_\w+(?!\w|\.py)", check)
            assert [code.text for code in entry.select("summary code")] == names
            assert re.findall(r"^def (\w+)", entry.pre.text, re.MULTILINE) == names
    assert found == {}


@pytest.mark.parametrize("page_name", [page for page in PAGES if page.startswith("notebooks/")])
def test_every_claim_myth_and_exercise_has_an_address_and_can_be_cited(page_name):
    for box in document(page_name).select(".admonition:is(.claim, .exercise, .myth, .theorem)"):
        links = [link["href"] for link in box.p.select(".cite, .headerlink")]
        assert links == [f"#{box['id']}"] * 2


def test_what_cite_copies_names_the_claim_the_chapter_the_book_and_the_address(visit):
    seen = visit()
    page = seen.open("notebooks/04-many-planes.html")
    cite = page.get_by_role("link", name="Cite Claim 4.2")
    cite.click()
    page.get_by_role("link", name="Cite Claim 4.2: copied").wait_for()
    place = f"{seen.site}notebooks/04-many-planes.html#claim-4-2"
    title = page.locator("h1").first.inner_text().removesuffix("#")
    assert page.evaluate("navigator.clipboard.readText()") == (
        f"Claim 4.2. In: {title}. Rotary Position Embedding. {place}"
    )
    assert page.url == place
    assert seen.problems == []


def test_a_second_check_is_found_open_and_every_fold_is_accessible(visit):
    seen = visit()
    page = seen.open("notebooks/04-many-planes.html")
    page.evaluate(READ_TO_THE_END)  # a picture that is on its way would be broken off
    page.locator("#claim-4-2 .admonition-title a").first.click()
    page.wait_for_url("**/claims.html#claim-4-2-check")
    page.locator("#claim-4-2-check pre").wait_for(state="visible")
    assert page.locator(".second-check details[open]").count() == 1
    page.evaluate(
        "document.querySelectorAll('.second-check details').forEach(fold => { fold.open = true })"
    )
    page.evaluate(AXE)
    assert violations(page, "light") + violations(page, "dark") == []
    assert seen.problems == []
