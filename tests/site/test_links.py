"""No internal link or anchor of the built site leads nowhere."""

from collections import Counter
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from .conftest import PAGES, SITE

LEADS = {"a": "href", "link": "href", "img": "src", "script": "src"}
LOST = SITE / "404.html"


class Tags(HTMLParser):
    """The tags of a page with their attributes, and no tree of them, which takes long to make."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@cache
def tags(path):
    return Tags(path.read_text("utf8")).found


@cache
def anchors(path):
    names = {given["id"] for _, given in tags(path) if "id" in given}
    return names | {given["name"] for tag, given in tags(path) if tag == "a" and "name" in given}


def test_every_internal_link_and_anchor_exists():
    pages = [p for p in SITE.rglob("*.html") if "_static" not in p.parts and p != LOST]
    assert len(pages) >= 5
    checked, broken = 0, []
    for page in pages:
        for tag, given in tags(page):
            address = given.get(LEADS.get(tag))
            if address is None:
                continue
            url = urlsplit(address)
            if url.scheme or url.netloc:
                continue
            target = page if not url.path else (page.parent / unquote(url.path)).resolve()
            if target.is_dir():
                target = target / "index.html"
            missing = not target.exists()
            if not missing and url.fragment and target.suffix == ".html":
                missing = unquote(url.fragment) not in anchors(target)
            if missing:
                broken.append(f"{page.relative_to(SITE)}: {address}")
            checked += 1
    print(f"{checked} links on {len(pages)} pages")
    assert broken == []


def test_what_a_cell_answers_as_a_table_is_one():
    for path in (SITE / "notebooks").glob("*.html"):
        assert "<p>|" not in path.read_text("utf8"), path.name


def test_no_two_parts_of_a_page_share_an_id():
    for name in PAGES:
        ids = Counter(given["id"] for _, given in tags(SITE / name) if "id" in given)
        assert [key for key, times in ids.items() if times > 1] == [], name


def test_the_page_for_wrong_addresses_leads_to_every_chapter_from_anywhere():
    links = [given["href"] for tag, given in tags(LOST) if tag == "a"]
    assert all(link.startswith("/") for link in links)  # a wrong address can be of any depth
    led_to = {"/".join(link.split("/")[-2:]) for link in links}
    assert led_to >= set(PAGES)
