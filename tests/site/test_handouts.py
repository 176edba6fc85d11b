"""The handouts on paper: with the answers or without, each sheet begins on a page of its own."""

import re

import pytest

SHEETS, QUESTIONS = 6, 24


def outline(pdf):
    """Return the page, from 0, and the height of every heading of a PDF that Chromium made."""
    pages = re.findall(rb"(\d+) 0 obj\s*<</Type /Page\b", pdf)
    found = re.findall(rb"/Dest \[(\d+) 0 R /XYZ \S+ (\S+) ", pdf)
    return [(pages.index(page), float(top)) for page, top in found]


@pytest.mark.parametrize(("words", "answers"), [("without", 0), ("with", QUESTIONS)])
def test_the_sheets_are_printed_with_all_the_answers_or_with_none(visit, words, answers):
    page = visit(theme="dark").open("book/handouts.html")
    page.evaluate("window.print = () => {}")
    page.get_by_role("button", name=f"Print {words} answers").click()
    assert page.locator("details.answer[open]").count() == answers
    pdf = page.pdf(format="A4", outline=True, tagged=True)
    links = re.findall(rb"/URI \((.*?)\)", pdf)  # an answer ends with the place that shows it
    assert len(links) >= answers
    assert bool(links) == bool(answers)
    assert page.locator("details.answer[open]").count() == 0  # as before it was printed
    tops = outline(pdf)
    assert len(tops) == SHEETS
    assert [number for number, _ in tops] == sorted({number for number, _ in tops})
    assert min(top for _, top in tops) > 780  # of 842 points: at the top of its page
    if not answers:
        assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == SHEETS


def test_without_answers_paper_has_room_to_write_and_with_them_none(visit):
    page = visit().open("book/handouts.html")
    page.emulate_media(media="print")
    text, room = page.locator("#handouts"), page.locator(".room >> visible=true")
    assert room.count() == QUESTIONS
    assert "0.72 radians" not in text.inner_text()
    page.locator("details.answer").evaluate_all("all => all.forEach(fold => fold.open = true)")
    assert room.count() == 0
    assert "0.72 radians" in text.inner_text()
