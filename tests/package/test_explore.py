"""The moving figures: their mathematics against the package, their colours, their traits."""

import base64
import itertools
import math
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipywidgets.widgets.widget import _instances

from experiments.figure import recent_methods_data, train_it_data, trained_models_data
from experiments.real import heads as real_heads
from rope_minimal import inverse_frequencies, reference, wavelengths
from ropebook import aliasing, figures
from ropebook.atlas import card_data
from ropebook.figures import palette
from ropebook.figures.bundle import bundle
from ropebook.figures.figure import Choice, Even, Figure, Flag, Real, Whole
from tests.tools.node import FOLDER

from .test_words import SENTENCES

SCRIPTS = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.js"))
FIGURES = {
    name: figure
    for name in figures.__all__
    if isinstance(figure := getattr(figures, name), type)
    and issubclass(figure, Figure)
    and figure is not Figure
}


STATES = itertools.product([True, False], repeat=4)
PROVED = [{"axioms": state, "kind": "rope", "certificate": "checked"} for state in STATES]
GIVEN = {  # what a figure cannot be without
    "axioms": lambda: {"families": PROVED},
    "model_card": lambda: {"data": card_data()},
    "real_head": lambda: {"data": real_heads.load()},
    "recent_methods": lambda: {"data": recent_methods_data()},
    "train_it": lambda: {"data": train_it_data()},
    "trained_models": lambda: {"data": trained_models_data()},
}

# ---- the mathematics ----------------------------------------------------------------------------

dims = st.integers(1, 128).map(lambda pairs: 2 * pairs)
bases = st.floats(2.0, 1e8)
positions = st.integers(0, 131072)
seeds = st.integers(0, 2**32 - 1)
many = settings(max_examples=80, deadline=None)


@many
@given(dim=dims, base=bases)
def test_frequencies_and_wavelengths_are_those_of_the_package(node, dim, base):
    ours = node.call("rope.js", "inverseFrequencies", dim, base)
    np.testing.assert_allclose(ours, inverse_frequencies(dim, base), rtol=1e-14)
    np.testing.assert_allclose(
        node.call("rope.js", "wavelengths", ours), wavelengths(np.array(ours)), rtol=1e-15
    )


@many
@given(dim=dims, base=bases, at=st.lists(positions, min_size=1, max_size=5))
def test_angles_are_within_1e_9_of_the_package(node, dim, base, at):
    theta = node.call("rope.js", "inverseFrequencies", dim, base)
    bank = np.reshape(node.call("rope.js", "angleBank", at, theta), (len(at), dim // 2))
    exact = np.outer(at, inverse_frequencies(dim, base))
    assert np.abs(bank - exact).max() <= 1e-9


@many
@given(angle=st.floats(-1e6, 1e6))
def test_wrapped_angle_is_that_of_the_package(node, angle):
    ours = node.call("rope.js", "wrappedAngle", angle)
    assert 0.0 <= ours < 2.0 * math.pi
    apart = abs(ours - float(aliasing.wrapped_angle(angle)))
    assert min(apart, 2.0 * math.pi - apart) <= 1e-9


@pytest.mark.parametrize("angle", [0.0, -1e-17, 2.0 * math.pi, -2.0 * math.pi, 1e-300])
def test_wrapped_angle_never_reaches_a_full_turn(node, angle):
    assert 0.0 <= node.call("rope.js", "wrappedAngle", angle) < 2.0 * math.pi


def test_a_frequency_of_zero_never_turns(node):
    assert node.call("rope.js", "wavelengths", [0.0]) == ["#Infinity"]


@many
@given(dim=dims, base=bases, m=positions, interleaved=st.booleans(), seed=seeds)
def test_rotation_is_that_of_the_reference(node, dim, base, m, interleaved, seed):
    x = np.random.default_rng(seed).standard_normal(dim)
    theta = node.call("rope.js", "inverseFrequencies", dim, base)
    ours = node.call("rope.js", "rotate", x.tolist(), m, theta, interleaved)
    exact = reference.rotate_complex(x[None], np.array([m]), base, interleaved=interleaved)[0]
    assert np.abs(np.array(ours) - exact).max() <= 1e-9 * max(1.0, np.abs(x).max())


@many
@given(dim=dims, base=bases, m=positions, n=positions, interleaved=st.booleans(), seed=seeds)
def test_score_is_the_dot_product_of_the_rotated_vectors(node, dim, base, m, n, interleaved, seed):
    q, k = np.random.default_rng(seed).standard_normal((2, dim))
    theta = node.call("rope.js", "inverseFrequencies", dim, base)
    ours = node.call("rope.js", "score", q.tolist(), k.tolist(), m, n, theta, interleaved)
    turned_q, turned_k = (
        reference.rotate_complex(x[None], np.array([p]), base, interleaved=interleaved)[0]
        for x, p in ((q, m), (k, n))
    )
    assert ours == pytest.approx(turned_q @ turned_k, abs=1e-9 * dim)


@many
@given(dim=dims, base=bases, distance=positions)
def test_code_distance_and_mean_cosine_are_those_of_the_package(node, dim, base, distance):
    inv_freq = inverse_frequencies(dim, base)
    arguments = distance, inv_freq.tolist()
    assert node.call("rope.js", "codeDistance", *arguments) == pytest.approx(
        float(aliasing.code_distance(distance, inv_freq)), abs=1e-9
    )
    assert node.call("rope.js", "meanCosine", *arguments) == pytest.approx(
        float(aliasing.mean_cosine(distance, inv_freq)), abs=1e-9
    )


# ---- the figures' own functions -----------------------------------------------------------------


words = st.integers(0, 11)


@many
@given(m=words, n=words, theta=st.integers(0, 180))
def test_rotor_angle_and_score_depend_on_the_distance_only(node, m, n, theta):
    low = min(m, n)
    here = node.call("rotor.js", "apart", m, n, theta)
    assert here == node.call("rotor.js", "apart", m - low, n - low, theta)
    assert here == node.call("rotor.js", "apart", n, m, theta)
    q, k = (
        reference.rotate_complex(
            np.array([[1.0, 0.0]]), np.array([p]), inv_freq=np.array([math.radians(theta)])
        )[0]
        for p in (m, n)
    )
    assert here["score"] == pytest.approx(q @ k, abs=1e-8)
    assert 0 <= here["short"] <= 180
    assert math.cos(math.radians(here["short"])) == pytest.approx(q @ k, abs=1e-8)


@pytest.mark.parametrize(
    ("m", "n", "by", "expected"),
    [(5, 1, 3, 3), (9, 3, 5, 2), (11, 3, 5, 0), (5, 1, -5, -1), (7, 0, -5, 0), (1, 5, -11, -1)],
)
def test_shifting_both_stays_in_range_and_keeps_the_distance(node, m, n, by, expected):
    assert node.call("rotor.js", "shift", m, n, by) == expected


@pytest.mark.parametrize(
    ("angle", "show", "expected"),
    [
        (0.0, "wrapped angle", 0),
        (math.pi, "wrapped angle", 128),
        (2.0 * math.pi - 1e-9, "wrapped angle", 255),
        (44.0, "wrapped angle", math.floor((44.0 - 14.0 * math.pi) / (2 * math.pi) * 256)),
        (0.0, "cosine", 255),
        (math.pi, "cosine", 0),
        (0.0, "true angle", 0),
        (511.0, "true angle", 255),
    ],
)
def test_heatmap_colours_an_angle(node, angle, show, expected):
    assert node.call("angle_heatmap.js", "colorIndex", angle, show, 511.0) == expected


@many
@given(angles=st.tuples(st.floats(0, 1e5), st.floats(0, 1e5)).map(sorted), largest=st.just(1e5))
def test_true_angles_keep_their_order_on_the_colour_scale(node, angles, largest):
    low, high = (node.call("angle_heatmap.js", "angleScale", angle, largest) for angle in angles)
    assert 0.0 <= low <= high <= 1.0


def test_cells_under_the_pointer(node):
    box = {"x0": 50, "y0": 44, "x1": 562, "y1": 172}

    def at(x, y):
        return node.call("kit/draw.js", "cellAt", x, y, box, 256, 64)

    assert at(50, 44) == {"column": 0, "row": 0}
    assert at(53.9, 47.9) == {"column": 1, "row": 1}
    assert at(561.9, 171.9) == {"column": 255, "row": 63}
    assert at(-5, 1000) == {"column": 0, "row": 63}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("0.5", 0.5),
        (" 1e4 ", 10000.0),
        ("10,000", 10000.0),
        ("54,410.2", 54410.2),
        ("0,5", 0.5),
        ("0,505", 0.505),
        ("−3", -3.0),
        ("3/4", 0.75),
        (".5", 0.5),
        ("", None),
        ("two", None),
        ("1/0", None),
        ("1,00,0", None),
        ("1/2/3", None),
        ("0x10", None),
    ],
)
def test_numbers_are_read_as_people_write_them(node, written, expected):
    assert node.call("number_question.js", "readNumber", written) == expected


@pytest.mark.parametrize(
    ("x", "digits", "expected"),
    [
        (1234567.891, 1, "1,234,567.9"),
        (-0.0004, 3, "−4.0·10⁻⁴"),
        (-0.5, 1, "−0.5"),
        (0, 2, "0.00"),
        (44, 0, "44"),
    ],
)
def test_numbers_are_written_for_reading(node, x, digits, expected):
    assert node.call("kit/numbers.js", "num", x, digits) == expected


# ---- the scripts --------------------------------------------------------------------------------


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_is_a_module_that_node_imports(node, script):
    assert node.call(script, None)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_one_module_that_can_render(node, name):
    source = FIGURES[name]._esm
    url = "data:text/javascript;base64," + base64.b64encode(source.encode()).decode()
    assert node.ask(url, "default") == ["render"]


@pytest.mark.parametrize("name", FIGURES)
def test_no_figure_asks_the_network(name):
    for word in ("http:", "https:", "fetch(", "XMLHttpRequest", "import(", "WebSocket"):
        assert word not in FIGURES[name]._esm


def test_every_script_belongs_to_a_figure_or_is_shared():
    used = {
        script for script in SCRIPTS if any(_uses(figure, script) for figure in FIGURES.values())
    }
    assert set(SCRIPTS) == used | {"host.js"}  # which draws figures on pages without Jupyter


def _uses(figure: type, script: str) -> bool:
    body = (FOLDER / script).read_text(encoding="utf-8").splitlines()[0]
    return body in figure._esm


def test_bundle_names_a_missing_file():
    with pytest.raises(FileNotFoundError, match=r"no_such\.js"):
        bundle(FOLDER / "no_such.js")


def test_bundle_refuses_an_import_that_it_cannot_inline(tmp_path):
    for line in ('import x from "./x.js";', 'import { x } from "elsewhere";', 'import "./x.js";'):
        (tmp_path / "main.js").write_text(f"{line}\n")
        with pytest.raises(ValueError, match=r"main\.js must import as"):
            bundle(tmp_path / "main.js")


# ---- colours ------------------------------------------------------------------------------------

COLORMAPS = {
    "pair": palette.PAIR,
    "phase": palette.PHASE,
    "angle": palette.ANGLE,
    "cosine": palette.COSINE,
}


def _rgb(color: str) -> np.ndarray:
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0


def _linear(rgb: np.ndarray) -> np.ndarray:
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _luminance(color: str) -> float:
    return float(_linear(_rgb(color)) @ [0.2126, 0.7152, 0.0722])


def _contrast(a: str, b: str) -> float:
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_both_languages_read_the_same_tables(node):
    assert node.call("palette.js", "PALETTE") == palette.TABLES
    assert set(COLORMAPS) == set(palette.TABLES)


@many
@given(name=st.sampled_from(sorted(COLORMAPS)), t=st.floats(0.0, 1.0))
def test_both_languages_mix_the_same_colour(node, name, t):
    ours = node.call("kit/theme.js", "paletteColor", name, t)
    assert np.abs(np.array(ours) - 255.0 * np.array(COLORMAPS[name](t)[:3])).max() <= 1.5


@pytest.mark.parametrize("pairs", [1, 2, 64])
def test_both_languages_agree_on_the_colour_of_a_pair(node, pairs):
    for i in {0, pairs // 2, pairs - 1}:
        spelled = node.call("kit/theme.js", "pairColor", i, pairs)
        ours = np.array([int(c) for c in spelled[4:-1].split(",")])
        assert np.abs(ours - 255.0 * _rgb(palette.pair_color(i, pairs))).max() <= 1.5


@pytest.mark.parametrize("background", ["#ffffff", "#12171c"])
def test_every_pair_colour_stands_out_on_the_page(background):
    assert min(_contrast(color, background) for color in palette.pair_colors(64)) >= 3.0


# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB
VISION = {
    "full": [1, 0, 0, 0, 1, 0, 0, 0, 1],
    "protanopia": [
        *(0.152286, 1.052583, -0.204868),
        *(0.114503, 0.786281, 0.099216),
        *(-0.003882, -0.048116, 1.051998),
    ],
    "deuteranopia": [
        *(0.367322, 0.860646, -0.227968),
        *(0.280085, 0.672501, 0.047413),
        *(-0.011820, 0.042940, 0.968881),
    ],
    "tritanopia": [
        *(1.255528, -0.076749, -0.178779),
        *(-0.078411, 0.930809, 0.147602),
        *(0.004733, 0.691367, 0.303900),
    ],
}


def _oklab(linear: np.ndarray) -> np.ndarray:
    """Linear RGB to OKLab (Ottosson 2020), where equal steps look equal."""
    to_cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    to_lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.array(to_lab) @ np.cbrt(np.array(to_cones) @ np.clip(linear, 0.0, None))


@pytest.mark.parametrize("vision", VISION)
def test_fast_middle_and_slow_pairs_differ_for_every_eye(vision):
    seen = [
        _oklab(np.reshape(VISION[vision], (3, 3)) @ _linear(_rgb(c)))
        for c in palette.pair_colors(5)
    ]
    apart = [np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]]
    assert min(apart) >= 0.035  # about twice what an eye can just tell


def test_the_phase_map_closes_and_its_lightness_follows_the_cosine():
    turn = np.linspace(0.0, 2.0 * np.pi, 65)
    light = [_oklab(_linear(np.array(palette.PHASE(p / (2 * np.pi))[:3])))[0] for p in turn]
    assert np.corrcoef(light, np.cos(turn))[0, 1] > 0.99
    assert palette.PHASE(0.0) == palette.PHASE(1.0)


@pytest.mark.parametrize(("name", "sign"), [("angle", -1), ("cosine", 1)])
def test_sequential_maps_change_their_lightness_one_way(name, sign):
    light = [_oklab(_linear(_rgb(color)))[0] for color in palette.TABLES[name]]
    assert np.all(sign * np.diff(light) > 0)


@pytest.mark.parametrize(("i", "pairs"), [(-1, 4), (4, 4), (0, 0)])
def test_a_pair_that_does_not_exist_has_no_colour(i, pairs):
    with pytest.raises(ValueError, match=rf"got {i}"):
        palette.pair_color(i, pairs)


def test_the_matplotlib_style_is_opaque_and_fits_the_column():
    with plt.style.context("ropebook.book"):
        assert plt.rcParams["figure.facecolor"] == plt.rcParams["savefig.facecolor"] == "white"
        assert not plt.rcParams["savefig.transparent"]
        assert plt.rcParams["figure.figsize"][0] <= 7.0
        for color in plt.rcParams["axes.prop_cycle"].by_key()["color"]:
            assert _contrast(f"#{color.lstrip('#')}", "#ffffff") >= 4.0


# ---- traits -------------------------------------------------------------------------------------

BAD = {
    ("angle_heatmap", ValueError): [
        *(("dim", 7), ("dim", 0), ("dim", 1000), ("base", 0), ("base", math.nan), ("first", -1)),
        *(("count", 513), ("show", "sine"), ("show", 3)),
    ],
    ("angle_heatmap", TypeError): [
        *(("dim", 64.0), ("base", True), ("base", "1e4"), ("show", None)),
    ],
    ("bug_bench", ValueError): [("patient", 0), ("patient", 13)],
    ("bug_bench", TypeError): [("patient", 2.0), ("patient", True)],
    ("byte_budget", ValueError): [
        *(("shape", "?"), ("dtype", "?"), ("form", "?"), ("machine", "?"), ("record", {"x": 1})),
    ],
    ("cache_shelf", ValueError): [("change", "cut"), ("cached", "raw"), ("words", 9), ("word", 12)],
    ("cache_shelf", TypeError): [("words", True)],
    ("clock", ValueError): [("m", 0), ("pairs", 65)],
    ("horizon_dial", ValueError): [("slower", 0.5)],
    ("horizon_dial", TypeError): [("slower", "A")],
    ("layout_threads", ValueError): [("family", "Bert")],
    ("layout_threads", TypeError): [("permute_q", 1)],
    ("model_card", ValueError): [("model", "gpt-5"), ("wanted", 7), ("wanted", 2**30)],
    ("model_card", TypeError): [("wanted", 4096.5)],
    ("precision_microscope", ValueError): [("dtype", "fp8"), ("last", 5), ("last", "4096")],
    ("precision_microscope", TypeError): [("last", None)],
    ("real_head", ValueError): [
        *(("head", "a sink"), ("out", 33), ("factor", 0.5), ("rounded", "fp8"), ("query", 68)),
    ],
    ("real_head", TypeError): [("first", 0.5), ("start", True)],
    ("recent_methods", ValueError): [
        ("first", "xPos"),
        ("length", 0),
        ("length", 9),
        ("task", "a"),
    ],
    ("recent_methods", TypeError): [("length", 1.5)],
    ("rescaling_faders", ValueError): [("preset", "boost")],
    ("rotor", ValueError): [("m", 12), ("theta", 181), ("m", 10**400)],
    ("rotor", TypeError): [("n", 1.5), ("plays", "no")],
    ("three_clocks", ValueError): [("plan", "shuffled"), ("token", 47)],
    ("three_clocks", TypeError): [("token", True)],
    ("train_it", ValueError): [("encoding", "xPos"), ("task", "language"), ("bug", "all")],
    ("train_it", TypeError): [("task", None)],
    ("trained_models", ValueError): [("task", "chess"), ("encoding", "xPos")],
    ("trained_models", TypeError): [("half", 2)],
    ("wave_vectors", ValueError): [("plan", "learned"), ("size", 33), ("pair", 8)],
    ("wave_vectors", TypeError): [("size", 16.5)],
    ("waves", ValueError): [("distance", 201), ("aim", -1), ("pairs", 3), ("content", "equal")],
    ("waves", TypeError): [("aim", 1.5)],
    ("word_order", ValueError): [("order", "from Beijing"), ("word", "London"), ("word", 4)],
    ("word_order", TypeError): [("order", None), ("positions", 1)],
    ("worn_key", ValueError): [
        *(("moves", 0), ("moves", 257), ("step", 257), ("kept", "int8"), ("other", "none")),
        ("pair", 64),
    ],
    ("worn_key", TypeError): [("step", 0.5)],
    ("wrap_explorer", ValueError): [("theta", 0.0), ("dim", 7), ("distance", 0)],
    ("RescalingFaders", ValueError): [("faders", [1.0]), ("faders", [3.0] * 64), ("pair", 64)],
    ("WaveVectors", ValueError): [("vectors", [[1.0, 0.0]]), ("vectors", [[2.0, 0.0]] * 8)],
}


@pytest.mark.parametrize(
    ("make", "error", "name", "value"),
    [(make, error, *case) for (make, error), cases in BAD.items() for case in cases],
)
def test_a_bad_value_raises_an_error_that_names_it(make, error, name, value):
    given = GIVEN.get(make, dict)()
    with pytest.raises(error, match=f"{name} must .*got '?{re.escape(str(value)[:20])}"):
        getattr(figures, make)(**given, **{name: value})


QUESTION = {"prompt": "?", "options": ["a", "b"], "answer": "a", "why": "w"}
NUMBER = {"prompt": "?", "answer": 1, "tolerance": 0, "why": "w"}


@pytest.mark.parametrize(
    ("make", "given", "error", "name", "value"),
    [
        *((figures.choice, QUESTION, ValueError, "options", bad) for bad in (["a"], ["a", "a"])),
        *((figures.choice, QUESTION, TypeError, "options", bad) for bad in ("yes", {"a"}, None)),
        *((figures.choice, QUESTION, ValueError, "answer", bad) for bad in ("c", 2)),
        (figures.choice, QUESTION, TypeError, "answer", 0.0),
        (figures.page_lab, {}, ValueError, "number", 3),
        (figures.choice, QUESTION, ValueError, "prompt", ""),
        *((figures.number, NUMBER, ValueError, "answer", bad) for bad in (math.nan, 10**400)),
        (figures.number, NUMBER, ValueError, "tolerance", -0.1),
        (figures.number, NUMBER, TypeError, "answer", "1"),
        (figures.number, NUMBER, TypeError, "why", None),
    ],
)
def test_a_question_refuses_a_bad_value_by_its_name(make, given, error, name, value):
    with pytest.raises(error, match=f"{name} must .*got '?{re.escape(str(value)[:20])}"):
        make(**given | {name: value})


def test_what_is_no_trait_is_refused_by_its_name():
    with pytest.raises(TypeError, match="no trait 'bse'; it has show, dim, base, first, count,"):
        figures.AngleHeatmap(bse=2.0)
    with pytest.raises(ValueError, match="pair must be below dim/2 = 4, got 4"):
        figures.angle_heatmap(dim=8, pair=4)


class _Lab(figures.Rotor):
    """A figure with one trait of every kind, drawn by the rotor's script."""

    _esm = figures.Rotor._esm
    question = "Which is <larger>?"
    width = Even(8, low=2, high=16, label="Width", unit="channels")
    size = Real(0.5, low=0.1, high=10.0, label="Size", per_decade=10)
    free = Real(0.5)
    steps = Whole(3, low=0, high=9)
    show = Choice(["a", "b", "c"], default="b", label="Show", fold=True)
    trail = Flag(False, label="Leave a trail")


def test_a_figure_asks_another_question_where_it_stands_again():
    figure = figures.rotor(theta=180)
    assert figure.asks("Is half a turn enough?") is figure
    assert figure._question == "Is half a turn enough?"
    assert figures.rotor()._question == figures.Rotor.question
    assert (figure._again, figures.rotor()._again) == (True, False)
    with pytest.raises(TypeError, match="question must be a str, got 5"):
        figure.asks(5)


def test_assigning_a_bad_value_keeps_the_old_one():
    lab = _Lab()
    for name, bad in [("width", 3), ("size", 20.0), ("steps", 1.5), ("show", "z"), ("trail", 1)]:
        before = getattr(lab, name)
        with pytest.raises((TypeError, ValueError), match=name):
            setattr(lab, name, bad)
        assert getattr(lab, name) == before


def test_numpy_scalars_become_plain_numbers():
    lab = _Lab(width=np.int64(4), size=np.float32(0.25))
    assert (type(lab.width), type(lab.size)) == (int, float)


def test_reset_goes_back_to_the_values_given():
    lab = _Lab(steps=7)
    lab.steps = 2
    assert lab._start["steps"] == 7
    assert list(lab._start) == _Lab.figure_traits()
    lab.start_here()
    assert lab._start["steps"] == 2


@pytest.mark.parametrize(
    ("make", "start"),
    [
        ("byte_budget", {"dtype": 0, "form": 0, "machine": 0, "shape": 0}),
        ("bug_bench", {"patient": 1, "token": 20, "guesses": [[]] * 12, "hint": 0}),
        ("trained_models", {"task": 0, "encoding": 1, "half": False}),
    ],
)
def test_reset_leaves_data_alone(make, start):
    figure = getattr(figures, make)(**GIVEN.get(make, dict)())
    assert figure._start == start
    assert figure.data


def test_the_browser_knows_limits_options_and_controls():
    lab = _Lab(show="c")
    assert lab.show == 2
    assert lab._options == {"show": ["a", "b", "c"]}
    assert lab._limits["width"] == [2, 16, 2]
    assert (lab._limits["free"], lab._limits["steps"]) == ([None, None, 0], [0, 9, 1])
    assert lab._controls[3:] == [  # after the rotor's
        {"name": "width", "label": "Width (channels)", "fold": False, "every": 2},
        {"name": "size", "label": "Size", "fold": False, "digits": 2, "per_decade": 10},
        {"name": "show", "label": "Show", "fold": True},
        {"name": "trail", "label": "Leave a trail", "fold": False},
    ]


# ---- controls -----------------------------------------------------------------------------------

QUESTIONS = {"choice_question", "number_question", "page_lab", "glimpses"}
"""What a reader answers, and the first page's panels; they and the atlas have their own tests."""


def test_a_figure_stands_in_the_lists_of_the_tests():
    names = {re.sub("(?<!^)(?=[A-Z])", "_", name).lower() for name in FIGURES}
    names -= {*QUESTIONS, "atlas"}
    assert names == set(CONTROLS)
    assert names - {make for make, _ in BAD} == {"axioms"}, "which has numbers of any size"
    assert names == {start[0] for start, _ in SENTENCES}
    pictures = Path(__file__).with_name("test_pictures.py").read_text("utf8")
    assert [name for name in sorted(names) if name not in pictures] == []


CONTROLS = {  # in sight, and in the fold
    "angle_heatmap": "Beside the true angle | Head width (channels), Base, First position, "
    "Number of positions",
    "axioms": "Turn per position θ (rad), Factor per position ζ",
    "bug_bench": " | Patient",
    "byte_budget": "Number type | Machine, Shape of x",
    "cache_shelf": "The text, Cached keys | How many words, Pair that the arrows show",
    "clock": "Hands (pairs of channels)",
    "horizon_dial": "All hands slowed by a factor of",
    "layout_threads": "Permute the rows of W_q, Permute the rows of W_k | Weights of",
    "model_card": "Length wanted (tokens)",
    "precision_microscope": "Number type, What is rounded | Error of the, Positions up to",
    "real_head": "A head that reads | Positions divided by (PI), First pair left out, "
    "Pairs left out, Base, Channels paired, Rounded to bfloat16, First position",
    "recent_methods": "Length (windows), Compared with",
    "rescaling_faders": "Rescaling | Compare with",
    "rotor": " | Turn per word θ (degrees), Query at word m, Key at word n",
    "three_clocks": " | Pairs among the axes",
    "train_it": "Encoding, Bug in the rotation, Task | Learning rate, Seed",
    "trained_models": "",
    "wave_vectors": "Plan | Pair to move (fast to slow), Image (patches a side)",
    "waves": "Key turned beforehand by (tokens), Waves (pairs of channels) | "
    "Distance s (tokens), Content of query and key",
    "word_order": "Give each word its position (RoPE)",
    "worn_key": "Keys stored as | Moves, Each move by (tokens), Compared with",
    "wrap_explorer": "Turn per token θ₀ (rad), Head width d (channels)",
}


@pytest.mark.parametrize("make", CONTROLS)
def test_a_question_and_three_labelled_controls_at_most_in_sight(make):
    figure = getattr(figures, make)(**GIVEN.get(make, dict)())
    assert figure._question.count("?") == 1
    found = [[c["label"] for c in figure._controls if c["fold"] == fold] for fold in (False, True)]
    seen, _, folded = CONTROLS[make].partition(" | ")
    assert found == [seen.split(", ") if seen.strip() else [], folded.split(", ") if folded else []]
    assert len(found[0]) <= 3
    for control in figure._controls:
        low, high, _ = figure._limits.get(control["name"], (0, 1, 0))
        assert low < high, "a slider has two ends"
        assert control["name"] not in figure._limits or {"every", "per_decade"} & set(control)


def test_in_a_notebook_sliders_of_ipywidgets_move_the_heatmap():
    heatmap = figures.angle_heatmap(first=64)
    view = heatmap._repr_mimebundle_()["application/vnd.jupyter.widget-view+json"]
    figure, *sliders = _instances[view["model_id"]].children
    assert figure is heatmap
    assert heatmap._elsewhere == ["dim", "base", "first", "count"]
    assert [slider.value for slider in sliders] == [128, 10_000, 64, 256]
    ends = [[getattr(slider, name) for name in ("min", "max", "step")] for slider in sliders]
    assert ends == [[2, 256, 2], [1, 7, 0.1], [0, 131_072, 32], [8, 512, 8]]
    for slider, name in zip(sliders, heatmap._elsewhere, strict=True):
        assert (slider.link.source, slider.link.target) == ((slider, "value"), (heatmap, name))
