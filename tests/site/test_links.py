"""No internal link or anchor of the built site leads nowhere."""

from functools import cache
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

from .conftest import SITE


@cache
def document(path):
    return BeautifulSoup(path.read_text("utf8"), "html.parser")


@cache
def anchors(path):
    names = {tag["id"] for tag in document(path).find_all(id=True)}
    return names | {tag["name"] for tag in document(path).find_all("a", attrs={"name": True})}


def test_every_internal_link_and_anchor_exists():
    pages = [
        p for p in SITE.rglob("*.html") if "vendor" not in p.parts and "_static" not in p.parts
    ]
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
