"""Let code stand in a page as plain text, and get its colours when a reader comes near.

A chapter's code is thousands of coloured words, each an element that a phone would have to lay out
before it shows anything, most of them in folds. So a block is its text alone, and says in an
attribute how its words are coloured: ``4 2nf`` is four letters without a colour and two of the kind
``nf``. ``book.js`` reads it. Without scripts, and until then, code is as readable, in one colour.
"""

import html
import re

BLOCK = re.compile(r'<div class="highlight"><pre>(?:<span></span>)?(.*?)</pre>', re.DOTALL)
WORD = re.compile(r'<span class="([a-z]\w?)">([^<]*)</span>|([^<]+)')
PLAIN = {"n", "nn", "p", "w"}  # kinds that have the colour of the text


def length(text: str) -> int:
    """Return how long a text is for JavaScript."""
    return len(text.encode("utf-16-le")) // 2


def plain(block: re.Match[str]) -> str:
    """Return a block as text with its colours in an attribute; one with other marks stays."""
    if WORD.sub("", block[1]) or block[1].startswith("\n"):
        return block[0]
    text, runs = "", []
    for kind, coloured, bare in WORD.findall(block[1]):
        word = coloured + bare
        kind = "" if kind in PLAIN else kind
        if runs and runs[-1][1] == kind:
            runs[-1][0] += length(html.unescape(word))
        else:
            runs.append([length(html.unescape(word)), kind])
        text += word
    if not any(kind for _, kind in runs):
        return f'<div class="highlight"><pre>{text}</pre>'
    colours = " ".join(f"{count}{kind}" for count, kind in runs)
    return f'<div class="highlight"><pre data-colours="{colours}">{text}</pre>'


def colour_code_late(body: str) -> str:
    """Let every block of code be one piece of text."""
    return BLOCK.sub(plain, body)
