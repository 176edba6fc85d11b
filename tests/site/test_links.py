"""No internal link or anchor of the built site leads nowhere."""

from collections import Counter
from functools import cache
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

from .conftest import PAGES, SITE

LOST = SITE / "404.html"


@cache
def document(path):
    return BeautifulSoup(path.read_text("utf8"), "html.parser")


@cache
def anchors(path):
    names = {tag["id"] for tag in document(path).find_all(id=True)}
    return names | {tag["name"] for tag in document(path).find_all("a", attrs={"name": True})}


def test_every_internal_link_and_anchor_exists():
    pages = [p for p in SITE.rglob("*.html") if "_static" not in p.parts and p != LOST]
    assert len(pages) >= 5
    checked, broken = 0, []
    for page in pages:
        for tag, attribute in (("a", "href"), ("link", "href"), ("img", "src"), ("script", "src")):
            for element in document(page).find_all(tag, attrs={attribute: True}):
                url = urlsplit(element[attribute])
                if url.scheme or url.netloc:
                    continue
                target = page if not url.path else (page.parent / unquote(url.path)).resolve()
                if target.is_dir():
                    target = target / "index.html"
                missing = not target.exists()
                if not missing and url.fragment and target.suffix == ".html":
                    missing = unquote(url.fragment) not in anchors(target)
                if missing:
                    broken.append(f"{page.relative_to(SITE)}: {element[attribute]}")
                checked += 1
    print(f"{checked} links on {len(pages)} pages")
    assert broken == []


def test_no_two_parts_of_a_page_share_an_id():
    for name in PAGES:
        ids = Counter(tag["id"] for tag in document(SITE / name).find_all(id=True))
        assert [key for key, times in ids.items() if times > 1] == [], name


def test_the_page_for_wrong_addresses_leads_to_every_chapter_from_anywhere():
    links = [tag["href"] for tag in document(LOST).find_all("a")]
    assert all(link.startswith("/") for link in links)  # a wrong address can be of any depth
    led_to = {"/".join(link.split("/")[-2:]) for link in links}
    assert led_to >= set(PAGES)
