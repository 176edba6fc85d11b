"""The glossary and the map: every word leads somewhere, every page has its place."""

import json
import re
import sys
from pathlib import Path

from bs4 import BeautifulSoup
from mdit_py_plugins.anchors.index import slugify

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


QUESTIONS = re.split(r"^#{2,3} ", (ROOT / "book" / "faq.md").read_text("utf8"), flags=re.MULTILINE)
ASKED = {int(text.split(".")[0]): text for text in QUESTIONS if re.match(r"\d+\. ", text)}


def test_questions_are_numbered_once_and_lead_to_headings():
    """Each with a link that finds its heading."""
    assert sorted(ASKED) == list(range(1, 24))
    for number, text in ASKED.items():
        question, _, answer = text.partition("\n")
        assert question.endswith("?"), number
        links = re.findall(r"\]\((\.\./notebooks/\S+\.ipynb)#([^)\s]+)\)", answer)
        assert links, number
        for file, anchor in links:
            assert anchor in headings(ROOT / "book" / file), (number, anchor)


def test_an_answer_is_read_in_a_minute():
    """At most 150 words, without code, tables and the threads at its end."""
    for number, text in ASKED.items():
        answer = text.partition("\n")[2].strip()
        answer = re.sub(r"```.*?```|^\|.*$", "", answer, flags=re.DOTALL | re.MULTILINE)
        answer = re.sub(r" \((?:[^()]|\([^()]*\))*\)$", "", answer)
        words = re.sub(r"\]\([^)]*\)", "]", answer).split()
        assert len(words) <= 150, (number, len(words))


# ---- the first page -----------------------------------------------------------------------------


def home():
    """Return the text of the first page."""
    cells = json.loads((ROOT / "book" / "intro.ipynb").read_text("utf8"))["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def headings(notebook):
    """Return the anchors of a notebook's headings."""
    cells = json.loads(notebook.read_text("utf8"))["cells"]
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return {slugify(title) for title in re.findall(r"^#{1,3} (.+)$", text, re.MULTILINE)}


def test_a_problem_leads_to_the_section_that_solves_it():
    inside = re.search(r"came with a problem</summary>(.*?)</details>", home(), re.DOTALL)[1]
    problems = re.findall(r"^- \[(.+)\]\((.+)#(.+)\)$", inside, re.MULTILINE)
    assert len(problems) == inside.count("\n- ") >= 8
    assert len({anchor for _, _, anchor in problems}) == len(problems)


def test_a_link_of_the_first_page_into_a_chapter_finds_its_heading():
    links = re.findall(r"\]\((\S+\.ipynb)#(\S+)\)", home())
    assert links
    missing = [link for link in links if link[1] not in headings(ROOT / "book" / link[0])]
    assert missing == []


def stop(number, title="Q & K: a title", question="Is 1 < 2?"):
    return book_map.Stop(f"{number}.html", title, str(number), question, 25)


def test_a_card_is_a_link_with_question_title_and_time():
    found = BeautifulSoup(book_map.cards([stop(1), stop(2, question="")]), "html.parser")
    one, two = found.select("ol > li > a")
    assert (one["href"], two["href"]) == ("1.html", "2.html")
    assert one.select_one(".map-question").text == "Is 1 < 2?"
    assert two.select_one(".map-question").text == "Q & K: a title"
    assert one.select_one(".map-chapter").text == "1. Q & K · 25 min"


def test_the_appendices_are_one_line_of_links():
    found = BeautifulSoup(book_map.behind([stop(1), stop(2, "Rosetta: one score")]), "html.parser")
    assert found.text == "Behind the chapters: Q & K · Rosetta"
    assert [link["href"] for link in found.select("p > a")] == ["1.html", "2.html"]


def test_every_path_has_a_button():
    found = BeautifulSoup(book_map.buttons(["I teach", "I <3 it"]), "html.parser")
    assert [button.text for button in found.select("button")] == ["I teach", "I <3 it"]
    assert {button["aria-pressed"] for button in found.select("button")} == {"false"}


def test_every_chapter_is_known_and_most_are_on_a_path():
    *chapters, (last, appendices) = book_map.parts(ROOT / "_toc.yml")
    assert last == "Appendices"
    pages = [page for _, part in chapters for page in part]
    assert len(pages) >= 11
    assert len(appendices) >= 8
    paths = re.search(r"```{book-map}\n(.*?)```", home(), re.DOTALL)[1]
    assert all(re.match(r"- \*[^*]+\*: .*\]\(", path) for path in paths.strip().splitlines())
    linked = set(re.findall(r"\.\./(notebooks/[\w-]+)\.ipynb", paths))
    assert len(linked & set(pages)) >= 0.9 * len(pages)
