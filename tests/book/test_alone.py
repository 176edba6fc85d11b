"""How the build finds the figures of a page, and what it writes for each."""

import json
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import alone  # noqa: E402


def box(name, kind, *, control=True):
    """Return the widgets of a figure with a slider, or of a question."""
    models = {
        f"{name}f": {"model_name": "AnyModel", "state": {"_anywidget_id": f"a.b.{kind}"}},
        f"{name}t": {"model_name": "HTMLModel", "state": {"value": "<p>Is it &lt; 2?</p>"}},
        f"{name}s": {"model_name": "IntSliderModel", "state": {"value": 1}},
        f"{name}c": {"model_name": "BoxModel", "state": {"children": [f"IPY_MODEL_{name}s"]}},
        f"{name}l": {
            "model_name": "LinkModel",
            "state": {
                "source": [f"IPY_MODEL_{name}s", "value"],
                "target": [f"IPY_MODEL_{name}f", "m"],
            },
        },
    }
    children = [f"IPY_MODEL_{name}{part}" for part in "tfc"]
    return models | {name: {"model_name": "VBoxModel", "state": {"children": children}}}


MODELS = box("x", "OneHand") | box("y", "TwoHands")
MODELS["q"] = {"model_name": "AnyModel", "state": {"_anywidget_id": "a.ChoiceQuestion"}}


def test_figures_are_found_in_the_order_of_the_page_without_questions():
    one, two = alone.figures_of("notebooks/a", MODELS, ["q", "y", "x"])
    assert (one.name, two.name) == ("two-hands", "one-hand")
    assert (one.place, two.place) == ("notebooks/a.html#figure-1", "notebooks/a.html#figure-2")
    assert one.question == "Is it &lt; 2?"


def test_a_figure_takes_along_what_it_shows_and_its_links_and_nothing_else():
    assert alone.reached(MODELS, "x").keys() == box("x", "").keys()


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
