"""What a reader has to read before touching a figure: at most forty words."""

import json

import pytest

from tests.tools import gallery

from .conftest import SITE

MOST = 40
# Words are runs of letters that are seen in the figure's box: question, answer, how to use it, and
# what else it says. No such words are the names of controls, what the picture itself bears (axes,
# labels, the sentence whose words the rotor turns), the cells of a table, and code to copy with
# the name of its program.
APART = (
    "button, select, input, textarea, label, legend, summary, .rope-controls, .rope-seek, "
    ".rope-line, table, pre, .rope-over, .rope-spoken"
)
WORDS = """apart => {
    const box = document.querySelector('.rope-box');
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) {
        const { data, parentElement: at } = walker.currentNode;
        if (at.closest(apart) || !at.checkVisibility() || !at.getClientRects().length) continue;
        found.push(...(data.match(/\\p{L}[\\p{L}'’-]*/gu) ?? []));
    }
    return found;
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_a_figure_says_at_most_forty_words_at_the_start(browser, site, width):
    names = json.loads(gallery.TABLE.read_text("utf8"))
    assert len(names) > 20
    said = {}
    for name in names:
        assert (SITE / "figures" / f"{name}.html").exists()
        page = gallery.open_figure(browser, f"{site}figures/{name}.html", width)
        said[name] = page.evaluate(WORDS, APART)
        page.close()
    assert min(map(len, said.values())) > 10, "a question and an answer are counted"
    assert {name: words for name, words in said.items() if len(words) > MOST} == {}
