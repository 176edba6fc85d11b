"""How the build finds the figures of a page, and what it writes for each."""

import json
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import alone  # noqa: E402


def figure(kind, **state):
    state = {"_own_model": "", "_again": False, **state}
    state = {"_anywidget_id": f"a.b.{kind}", "_esm": "", **state}
    return {"model_name": "AnyModel", "state": {"_question": "Is it < 2?", **state}}


MODELS = {
    "x": figure("OneHand"),
    "y": {"model_name": "VBoxModel", "state": {"children": ["IPY_MODEL_z"]}},
    "z": figure("TwoHands"),
    "q": figure("ChoiceQuestion", _question=""),
}


def test_figures_are_found_in_the_order_of_the_page_without_questions():
    one, two = alone.figures_of("notebooks/a", [MODELS[name]["state"] for name in "qzx"])
    assert (one.name, two.name) == ("two-hands", "one-hand")
    assert (one.place, two.place) == ("notebooks/a.html#figure-1", "notebooks/a.html#figure-2")
    assert not one.own
    for own in ({"_own_model": "Mine"}, {"_again": True}):
        assert alone.Standing("a", 1, figure("OneHand", **own)["state"]).own


def test_a_chapter_leads_from_every_figure_to_its_page():
    views = "".join(
        '<div class="cell_output docutils container">\n'
        f'<script type="application/vnd.jupyter.widget-view+json">{{"model_id": "{name}"}}</script>'
        "</div>"
        for name in "xqy"
    )
    named = "<script>DOCUMENTATION_OPTIONS.pagename = 'notebooks/a';</script>"
    data = json.dumps({"state": MODELS})
    page = f'{named}{views}<script type="application/vnd.jupyter.widget-state+json">{data}</script>'
    linked = alone.link_alone(page)
    links = [linked.index(f'href="../figures/{name}.html"') for name in ("one-hand", "two-hands")]
    views = [linked.index(f'"model_id": "{name}"') for name in "xqy"]
    assert links[0] < views[0] < views[1] < links[1] < views[2]
    assert linked.count('aria-label="open alone: Is it &lt; 2?"') == 2
    assert alone.link_alone(named) == named


@pytest.mark.parametrize("base", ["", "https://a.example/rope/"])
def test_a_file_of_a_release_links_the_published_book_or_nothing(monkeypatch, tmp_path, base):
    monkeypatch.setenv("SITE_URL", base)
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    link = '<a class="chapter" href="../notebooks/a.html#figure-1">4. Planes</a>'
    (tmp_path / "site" / "figures").mkdir(parents=True)
    (tmp_path / "site" / "figures" / "clock.html").write_text(f"From {link} in")
    (file,) = alone.release(tmp_path / "site", tmp_path)
    led = f'<a class="chapter" href="{base}notebooks/a.html#figure-1">4. Planes</a>'
    assert file.read_text() == f"From {led if base else '4. Planes'} in"
    with zipfile.ZipFile(tmp_path / "rope-figures.zip") as bundle:
        assert bundle.namelist() == ["rope-figures/clock.html"]
        assert bundle.read("rope-figures/clock.html").decode() == file.read_text()
