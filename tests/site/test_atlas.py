"""The atlas on the published page: by keyboard, by finger, and what breaks the promise."""

from playwright.sync_api import expect

from ropebook.atlas import read_atlas
from tests.tools.browser import wait_for
from tests.tools.on_page import OnPage

PAGE = "notebooks/15-atlas.html"


def test_the_atlas_says_what_the_record_says(visit):
    seen = visit()
    atlas = OnPage(seen.open(PAGE), "atlas")
    rows = read_atlas()
    lines = atlas.figure.locator(".rope-list tbody tr")
    expect(lines).to_have_count(0)  # the table is made when it is asked for
    says = atlas.values(total=len(rows), found=len(rows))
    assert says["kept"] == sum(row.kept for row in rows)
    atlas.button(f"Show the {len(rows) - says['kept']}")
    assert atlas.values(show="promise broken")["kept"] == 0
    atlas.button(f"Show the {len(rows) - says['kept']}")
    atlas.figure.get_by_text("As a table").click()
    expect(lines).to_have_count(len(rows))
    atlas.figure.locator("select").select_option("clockwise")
    clockwise = [row.name for row in rows if row.direction == -1]
    expect(lines).to_have_count(len(clockwise))
    lines.first.click()
    assert atlas.values(show="clockwise")["row"] in clockwise
    assert seen.problems == []
    assert seen.foreign == []


def test_rows_are_searched_and_walked_by_keyboard_on_a_phone(visit):
    page = visit(width=390, height=700, theme="dark", reduced_motion="reduce").open(PAGE)
    atlas = OnPage(page, "atlas")
    search = atlas.figure.locator("input[type=search]")
    search.fill("interleaved 10,000")
    first = atlas.values(search="interleaved 10,000")
    assert 1 < first["found"] < first["total"] / 2
    search.press("ArrowDown")
    rows = []
    for key in ("End", "Home", "ArrowDown"):
        page.keyboard.press(key)
        # a busy browser draws the new row later than it moves the focus
        wait_for(page, "() => document.activeElement.getAttribute('aria-selected') === 'true'")
        rows.append(atlas.values()["row"])
    assert len(set(rows)) == 3
    assert set(rows) <= {row.name for row in read_atlas()}
    atlas.button("Compare others with this one")
    row = atlas.values()["row"]
    atlas.values(other=row)
    atlas.button("Reset")
    atlas.values(search="", show="all rotations")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
