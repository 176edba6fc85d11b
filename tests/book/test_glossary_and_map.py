"""The glossary and the map: every word leads somewhere, every page has its place."""

import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import book_map  # noqa: E402


def entries():
    """Return the glossary as a list of (words, definition)."""
    text = (ROOT / "book" / "glossary.md").read_text("utf8")
    found = []
    for block in re.findall(r"^:::\{glossary\}\n(.*?)^:::$", text, re.MULTILINE | re.DOTALL):
        for entry in block.strip().split("\n\n"):
            lines = entry.splitlines()
            words = [line for line in lines if not line.startswith(" ")]
            found.append((words, " ".join(lines[len(words) :])))
    return found


def linked():
    """Return every word that a page of the book links to the glossary."""
    pages = [p for p in (ROOT / "book").glob("*.md") if p.name != "glossary.md"]
    texts = [page.read_text("utf8") for page in pages]
    for path in [ROOT / "book" / "intro.ipynb", *(ROOT / "notebooks").glob("*.ipynb")]:
        cells = json.loads(path.read_text("utf8"))["cells"]
        texts += ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    texts = "\n".join(texts)
    links = re.findall(r'\[([^][]+)\]\(\.\./book/glossary\.md(?: "([^"]+)")?\)', texts)
    roles = [re.sub(r"^.*<(.+)>$", r"\1", role) for role in re.findall(r"\{term\}`([^`]+)`", texts)]
    return {*roles, *(word or text for text, word in links)}


def test_every_word_is_defined_with_a_link_in_at_most_three_sentences():
    assert len(entries()) >= 35
    for words, definition in entries():
        assert words, definition
        assert re.search(r"\]\(\S+\.(ipynb|md)(#[\w-]+)?\)", definition), words
        sentences = re.split(r"(?<=[.?])\s+(?=[A-Z\[])", definition.strip())
        assert len(sentences) <= 3, words


def test_every_word_is_linked_from_the_book_and_no_other_is():
    assert [words for words, _ in entries() if not set(words) & linked()] == []
    assert linked() - {word for words, _ in entries() for word in words} == set()


def stops(pages, numbered):
    return [
        book_map.Stop(page, f"{page}.html", "Some longer title", str(i) if numbered else "", "Why?")
        for i, page in enumerate(pages, 1)
    ]


def boxes(svg):
    space = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '))
    for link in root.iter(f"{space}a"):
        box = link.find(f"{space}rect").attrib
        lines = [span.text for span in link.iter(f"{space}tspan")]
        yield link.attrib["href"], {k: float(box[k]) for k in ("x", "y", "width", "height")}, lines


# a part may get a fourth chapter, and with it a fourth box in its row
@pytest.mark.parametrize("more", [[], ["notebooks/12-another"]])
def test_the_map_has_one_box_for_each_page_of_the_table_of_contents(more):
    parts = book_map.parts(ROOT / "_toc.yml")
    known = [page for _, pages in parts for page in pages]
    parts[-2][1].extend(more)
    rows = [(caption, stops(pages, caption != "Appendices")) for caption, pages in parts]
    found = list(boxes(book_map.draw(rows)))
    assert [href for href, _, _ in found] == [f"{p}.html" for _, pages in parts for p in pages]
    assert len(found) >= len(known) >= 15
    for _, box, lines in found:
        assert 0 <= box["x"] < box["x"] + box["width"] <= book_map.WIDTH
        assert max(map(len, lines)) * book_map.LETTER <= box["width"]
        assert len(lines) * 15 <= box["height"]
    for (_, a, _), (_, b, _) in pairwise(found):
        assert b["x"] >= a["x"] + a["width"] or b["y"] >= a["y"] + a["height"]


def test_every_title_fits_into_its_box():
    for number, title in (("10", "How fast can it be: bytes"), ("2", "From one plane to many")):
        stop = book_map.Stop("a", "a.html", title, number)
        (_, box, lines) = next(boxes(book_map.draw([("Part", [stop] * 3)])))
        assert lines[0] == number
        assert len(lines) * 15 <= box["height"]


def test_titles_are_cut_at_the_first_pause_and_escaped():
    assert book_map.short("Rosetta: one score in many notations") == "Rosetta"
    stop = book_map.Stop("a", "a.html", "Q & K", "1", "Is 1 < 2?")
    svg = book_map.draw([("Part", [stop])])
    assert 'aria-label="1 Q &amp; K. Is 1 &lt; 2?"' in svg
    assert "Is 1 &lt; 2?" in book_map.questions([("Part", [stop])])
