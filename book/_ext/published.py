"""What a published site needs beside its pages, made for the address at which it will stand.

* ``index.html`` leads to the book; ``404.html`` to its chapters, from any depth of a wrong address.
* ``robots.txt`` welcomes everybody, and ``sitemap.xml`` lists the pages.
* Every page says what a link to it should show, in the words of sphinxext-opengraph; the picture,
  the social card, is drawn here from the package's own frequencies.

The address is ``SITE_URL`` where that is set, or the GitHub Pages of ``GITHUB_REPOSITORY``. A
sitemap, canonical links and the card's address must be absolute: without an address there are none.

The sitemap and the page for wrong addresses are our own: sphinx-sitemap would save ten lines and
list the indexes, too, and the page of sphinx-notfound-page would need scripts at any depth.
"""

import hashlib
import html
import io
import os
from pathlib import Path
from urllib.parse import urlsplit

import matplotlib
import numpy as np
from PIL import Image
from policy import CHARSET, META
from sphinx.application import Sphinx
from sphinx.config import Config

from rope_minimal import frequencies
from ropebook.figures import palette

CARD = "_static/social-card.png"
WIDTH, HEIGHT = 1200, 630
SENTENCE = "Rotary position embedding, derived twice, checked step by step, with figures that move."
BARE_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'none'; base-uri 'none'; "
    "form-action 'none'"
)
STYLE = """\
:root { color-scheme: light dark; }
body { margin: 0; display: grid; place-items: center; min-height: 100vh;
  font: 1.1rem/1.6 Georgia, serif; color: #1d2630; background: #ffffff; }
main { max-width: 34rem; padding: 2rem; }
h1 { line-height: 1.2; }
a { color: #15764a; }
li { margin-block: 0.3rem; }
@media (prefers-color-scheme: dark) {
  body { color: #dfe5ea; background: #12171c; }
  a { color: #62d49a; }
}
"""


def address() -> str:
    """Return where the site will stand, with a slash at its end; empty when nobody knows."""
    given = os.environ.get("SITE_URL", "")
    owner, _, name = os.environ.get("GITHUB_REPOSITORY", "").partition("/")
    if not given and name:
        host = f"{owner.lower()}.github.io"
        given = f"https://{host}/" if name.lower() == host else f"https://{host}/{name}/"
    if given and urlsplit(given).scheme not in ("http", "https"):
        raise ValueError(f"SITE_URL must start with http:// or https://, got {given}")
    return given and given.rstrip("/") + "/"


def set_address(app: Sphinx, config: Config) -> None:
    """Give Sphinx the address for its canonical links, and the links their picture."""
    base = address()
    config.html_baseurl = config.ogp_site_url = base
    if base:
        config.ogp_image = base + CARD
        size = {"og:image:width": WIDTH, "og:image:height": HEIGHT}
        tags = [f'<meta property="{name}" content="{value}" />' for name, value in size.items()]
        config.ogp_custom_meta_tags = [*config.ogp_custom_meta_tags, *tags]


def social_card() -> bytes:
    """Draw the picture that a link to the book shows: the pairs' cosines along positions."""
    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    cosines = np.cos(np.outer(frequencies.inverse_frequencies(128), np.arange(200)))
    with plt.rc_context({"font.family": "serif", "savefig.bbox": None}):
        figure = plt.figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor="#12171c")
        picture = figure.add_axes((0, 0, 1, 0.62))
        picture.imshow(cosines, cmap=palette.COSINE, aspect="auto", interpolation="nearest")
        picture.axis("off")
        figure.text(0.05, 0.83, "Rotary Position Embedding", fontsize=52, color="#ffffff")
        figure.text(0.05, 0.72, SENTENCE.split(", ", 1)[1], fontsize=21, color="#c8d2da")
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=100)
        plt.close(figure)
    small = io.BytesIO()
    Image.open(drawn).convert("RGB").quantize(96).save(small, "png", optimize=True)
    return small.getvalue()


def bare_page(title: str, body: str, head: str = "") -> str:
    """Return a page that needs no other file."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{CHARSET}\n{META.format(BARE_PAGE_POLICY)}\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1" />\n'
        f"<title>{html.escape(title)}</title>\n{head}<style>\n{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def pages(app: Sphinx) -> list[str]:
    """Return the book's pages in reading order."""
    order, waiting = [], [app.config.root_doc]
    while waiting:
        page = waiting.pop(0)
        order.append(page)
        waiting = app.env.toctree_includes.get(page, []) + waiting
    return order


def write_entry_files(app: Sphinx, error: Exception | None) -> None:
    """Write the files that lead to the book's pages."""
    if error or app.builder.format != "html":
        return
    site, base, book = Path(app.outdir), app.config.html_baseurl, app.config.html_title
    names = pages(app)
    start = f"{names[0]}.html"

    refresh = f'<meta http-equiv="refresh" content="0; url={start}" />\n'
    canonical = f'<link rel="canonical" href="{base}{start}" />\n' if base else ""
    body = f'<h1>{book}</h1>\n<p><a href="{start}">Read the book</a></p>'
    (site / "index.html").write_text(bare_page(book, body, refresh + canonical), "utf8")

    # a wrong address can be of any depth, so links from here start at the root of the host
    root = urlsplit(base).path or "/"
    links = "\n".join(
        f'<li><a href="{root}{name}.html">{html.escape(app.env.titles[name].astext())}</a></li>'
        for name in names
    )
    lost = f"<h1>There is no such page</h1>\n<p>The book has these:</p>\n<ul>\n{links}\n</ul>"
    (site / "404.html").write_text(bare_page(f"Not found: {book}", lost), "utf8")

    robots = "User-agent: *\nAllow: /\n"
    sitemap = site / "sitemap.xml"
    sitemap.unlink(missing_ok=True)
    if base:
        robots += f"Sitemap: {base}sitemap.xml\n"
        urls = "\n".join(f"<url><loc>{base}{name}.html</loc></url>" for name in names)
        sitemap.write_text(
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}\n</urlset>\n',
            "utf8",
        )
    (site / "robots.txt").write_text(robots, "utf8")

    # drawn again when what draws it has changed
    sources = (Path(__file__), Path(frequencies.__file__), Path(palette.__file__))
    now = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp = site / "_static" / "vendor" / "social-card"
    if not (site / CARD).exists() or not stamp.exists() or stamp.read_text() != now:
        (site / CARD).write_bytes(social_card())
        stamp.write_text(now)


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("config-inited", set_address)
    app.connect("build-finished", write_entry_files, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
