"""The pictures for slides: ten of them, well-formed, each value where its axes say."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.text import Text

from slides.pictures import INKS, PICTURES, figure

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Run the command; return its pictures by theme and name, as trees."""
    folder = tmp_path_factory.mktemp("slides")
    subprocess.run([sys.executable, "-m", "slides", str(folder)], cwd=ROOT, check=True)
    found = {
        (path.parent.name, path.stem): ElementTree.parse(path).getroot()
        for path in folder.glob("*/*.svg")
    }
    assert found.keys() == {(theme, name) for theme in INKS for name in PICTURES}
    return found


def part(tree, name):
    """Return the group of this name."""
    (found,) = tree.iterfind(f".//{SVG}g[@id='{name}']")
    return found


def points(group):
    """Return the places that a path passes, or where a mark stands."""
    mark = group.find(f".//{SVG}use")
    if mark is not None:
        return np.array([[float(mark.get("x")), float(mark.get("y"))]])
    (path,) = group.iterfind(f"{SVG}path")
    return np.array(re.findall(r"[ML] (\S+) (\S+)", path.get("d")), float)


def scale(tree, axis, values):
    """Return what turns a place into a value: the ticks stand at these values."""
    ends = [points(part(tree, f"{axis}tick_{i}"))[0]["xy".index(axis)] for i in (1, len(values))]
    slope = (values[-1] - values[0]) / (ends[1] - ends[0])
    return lambda at: values[0] + (at - ends[0]) * slope


def test_ten_pictures_say_in_words_what_they_show(made):
    assert len(PICTURES) == 10
    for (_, name), tree in made.items():
        x, y, width, height = map(float, tree.get("viewBox").split())
        assert (x, y) == (0, 0)
        assert width / height == pytest.approx(16 / 9, rel=1e-3)
        assert tree.find(f"{SVG}title").text == PICTURES[name].says


def test_letters_are_curves_and_nothing_is_fetched(made):
    for tree in made.values():
        assert not list(tree.iter(f"{SVG}text"))
        links = [e.get(LINK) for e in tree.iter() if e.get(LINK)]
        assert links
        assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)


def test_the_ground_is_transparent_and_the_ink_fits_the_slide(made):
    for (theme, _), tree in made.items():
        ground = part(tree, "patch_1").find(f"{SVG}path")
        style = ground.get("style")
        assert "fill: none" in style or "opacity: 0" in style
        assert any(INKS[theme].text in mark.get("style", "") for mark in tree.iter())


@pytest.mark.parametrize("name", PICTURES)
def test_nothing_is_cut_and_no_word_is_small(name):
    fig = figure(name, "light")
    fig.draw_without_rendering()
    box, (width, height) = fig.get_tightbbox(), fig.get_size_inches()
    assert min(box.x0, box.y0) > 0.05
    assert box.x1 < width - 0.05
    assert box.y1 < height - 0.05
    words = [text for text in fig.findobj(Text) if text.get_text() and text.get_visible()]
    assert min(text.get_size() for text in words) >= 17  # of 540 points


@pytest.mark.parametrize("theme", INKS)
def test_one_hand_at_distance_44_has_its_cosine(made, theme):
    tree = made[theme, "score"]
    ((x, y),) = points(part(tree, "one-hand-at-44"))
    assert scale(tree, "x", range(0, 51, 10))(x) == pytest.approx(44)
    assert scale(tree, "y", (-1, 0, 1))(y) == pytest.approx(np.cos(44), abs=1e-3)


@pytest.mark.parametrize("theme", INKS)
def test_the_rescalings_end_where_their_formulas_do(made, theme):
    tree = made[theme, "rescalings"]
    value = scale(tree, "y", (0, 1 / 16, 0.5, 1))
    assert value(points(part(tree, "linear"))[:, 1]) == pytest.approx(1 / 16, abs=1e-3)
    ntk = value(points(part(tree, "ntk"))[:, 1])
    assert ntk[[0, -1]] == pytest.approx([1, 1 / 16], abs=1e-3)
    by_parts = value(points(part(tree, "by_parts"))[:, 1])
    assert by_parts[[0, -1]] == pytest.approx([1, 1 / 16], abs=1e-3)


def test_the_word_after_the_image_stands_at_position_9(made):
    tree = made["light", "mrope"]
    corners = points(part(tree, "token-27"))
    column, row = (corners.min(axis=0) + corners.max(axis=0)) / 2
    assert scale(tree, "x", range(11))(column) == pytest.approx(9, abs=0.1)
    assert scale(tree, "y", range(11))(row) == pytest.approx(9, abs=0.1)
