"""Write into every page what it may load, as a Content-Security-Policy.

A static host lets nobody set headers, so the policy is a ``meta`` element at the head of the
page: it holds for readers, not in tests only. Each page gets the strictest one it can live with.

* Nothing comes from another host: pictures, fonts, data and frames are the site's own. Pictures
  may also be ``data:``, which the style sheets use for small signs.
* Scripts are the site's own, and the few that the theme writes into the page are allowed one by
  one, by the hash of their text. ``onclick`` and the like are not: ``book.js`` does their work.
* A page with live cells adds the worker that Python runs in. A worker obeys the policy of its own
  file, not the page's; a static host sends none.
* Style may stand in elements and attributes: MathJax and the figures write it there.

Figures alone (alone.py) may stand in anybody's frame, the pages of the book in nobody's. Only a
header could say so (``frame-ancestors``, see CONTRIBUTING.md), so a page looks for itself: in a
foreign frame it shows a line with a link to itself.
"""

import base64
import hashlib
import re
from pathlib import Path

from sphinx.errors import ExtensionError
from vendor import small

SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.DOTALL)
HANDLER = re.compile(r'(<[a-zA-Z][^<>]*?)\son([a-z]+)="([^"]*)"')
LIVE = "live-cells.js"
CHARSET = '<meta charset="utf-8" />'
FIRST_SCRIPT = '<script data-cfasync="false">'
FRAMED = Path(__file__).with_suffix(".js")
META = '<meta http-equiv="Content-Security-Policy" content="{}" />'


def inline_hashes(page: str) -> list[str]:
    """Return the sources that allow the page's own inline scripts, and no other."""
    sources = []
    for attributes, text in SCRIPT.findall(page):
        kind = re.search(r'\btype="([^"]*)"', attributes)
        runs = kind is None or kind[1] in ("", "text/javascript", "module")
        if runs and "src=" not in attributes:
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            sources.append(f"'sha256-{digest}'")
    return sorted(set(sources))


def policy(page: str) -> str:
    """Return the strictest policy that a page can live with."""
    parts = {
        "default-src": ["'self'"],  # not 'none': Firefox fetches the next page ahead
        "object-src": ["'none'"],
        "script-src": ["'self'", *inline_hashes(page)],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "frame-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
    }
    if LIVE in page:
        parts["worker-src"] = ["'self'"]
    return "; ".join(f"{name} {' '.join(sources)}" for name, sources in parts.items())


def hand_over_events(page: str) -> str:
    """Write ``onclick="..."`` as ``data-onclick="..."``, which ``book.js`` reads."""
    page = HANDLER.sub(r'\1 data-on\2="\3"', page)
    if HANDLER.search(page):
        raise ExtensionError("an element of a page has two event handlers: see book/_ext/policy.py")
    return page


def leave_foreign_frames(page: str) -> str:
    """Let a page look whether it stands in a foreign frame before anything else is loaded."""
    script = f"<script>{small(FRAMED.read_text('utf8'), 'js')}</script>\n  {FIRST_SCRIPT}"
    return page.replace(FIRST_SCRIPT, script, 1)


def add_policy(page: str) -> str:
    """Return the page under its policy."""
    head, charset, rest = page.partition(CHARSET)  # which must stand in the first 1024 bytes
    if not charset:
        raise ExtensionError(f"a page has no {CHARSET}, after which its policy would stand")
    return f"{head}{charset}\n    {META.format(policy(page))}{rest}"
