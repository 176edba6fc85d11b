"""The moving figures: their mathematics against the package, their colours, their traits."""

import base64
import math

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rope_minimal import inverse_frequencies, reference, wavelengths
from ropebook import aliasing, figures
from ropebook.figures import controls, palette
from ropebook.figures.bundle import bundle
from ropebook.figures.figure import Choice, Even, Figure, Flag, Real, Whole
from tests.tools.node import FOLDER, Node
from tests.tools.widgets import links

SCRIPTS = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.js"))
FIGURES = {
    name: figure
    for name in figures.__all__
    if isinstance(figure := getattr(figures, name), type)
    and issubclass(figure, Figure)
    and figure is not Figure
}


@pytest.fixture(scope="module")
def node():
    process = Node()
    yield process
    process.close()


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


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: figures.AngleHeatmap(dim=7), ValueError, "dim .* got 7"),
        (lambda: figures.AngleHeatmap(dim=0), ValueError, "dim .* got 0"),
        (lambda: figures.AngleHeatmap(dim=1000), ValueError, "dim .* got 1000"),
        (lambda: figures.AngleHeatmap(dim=64.0), TypeError, r"dim .* got 64\.0"),
        (lambda: figures.AngleHeatmap(base=0), ValueError, "base .* got 0"),
        (lambda: figures.AngleHeatmap(base=math.nan), ValueError, "base .* got nan"),
        (lambda: figures.AngleHeatmap(base=True), TypeError, "base .* got True"),
        (lambda: figures.AngleHeatmap(base="1e4"), TypeError, "base .* got '1e4'"),
        (lambda: figures.AngleHeatmap(first=-1), ValueError, "first .* got -1"),
        (lambda: figures.AngleHeatmap(count=513), ValueError, "count .* got 513"),
        (lambda: figures.AngleHeatmap(show="sine"), ValueError, "show .* got 'sine'"),
        (lambda: figures.AngleHeatmap(show=3), ValueError, "show .* got 3"),
        (lambda: figures.AngleHeatmap(show=None), TypeError, "show .* got None"),
        (lambda: figures.AngleHeatmap(bse=2.0), TypeError, "no trait 'bse'"),
        (lambda: figures.angle_heatmap(dim=8, pair=4), ValueError, "pair .* got 4"),
        (lambda: figures.rotor(m=12), ValueError, "m must .* got 12"),
        (lambda: figures.rotor(n=1.5), TypeError, r"n must .* got 1\.5"),
        (lambda: figures.rotor(theta=181), ValueError, "theta .* got 181"),
        (lambda: figures.rotor(plays="no"), TypeError, "plays .* got 'no'"),
        (lambda: figures.choice("?", ["a"], "a", "w"), ValueError, r"options .* got \['a'\]"),
        (lambda: figures.choice("?", ["a", "a"], 0, "w"), ValueError, "options .* got"),
        (lambda: figures.choice("?", "yes", 0, "w"), TypeError, "options .* got 'yes'"),
        (lambda: figures.choice("?", {"a", "b"}, 0, "w"), TypeError, "options must be a seq"),
        (lambda: figures.choice("?", None, 0, "w"), TypeError, "options .* got None"),
        (lambda: figures.choice("?", ["a", "b"], "c", "w"), ValueError, "answer .* got 'c'"),
        (lambda: figures.choice("?", ["a", "b"], 2, "w"), ValueError, "answer .* got 2"),
        (lambda: figures.choice("?", ["a", "b"], 0.0, "w"), TypeError, r"answer .* got 0\.0"),
        (lambda: figures.choice("", ["a", "b"], 0, "w"), ValueError, "prompt .* got ''"),
        (lambda: figures.number("?", math.nan, 0, "w"), ValueError, "answer .* got nan"),
        (lambda: figures.number("?", 1, -0.1, "w"), ValueError, r"tolerance .* got -0\.1"),
        (lambda: figures.number("?", 10**400, 0, "w"), ValueError, "answer must be finite, got 10"),
        (lambda: figures.rotor(m=10**400), ValueError, "m must be finite, got 10"),
        (lambda: figures.number("?", "1", 0, "w"), TypeError, "answer .* got '1'"),
        (lambda: figures.number("?", 1, 0, None), TypeError, "why .* got None"),
    ],
)
def test_a_bad_value_raises_an_error_that_names_it(make, error, message):
    with pytest.raises(error, match=message):
        make()


class _Lab(figures.Rotor):
    """A figure with one trait of every kind, drawn by the rotor's script."""

    _esm = figures.Rotor._esm
    width = Even(8, low=2, high=16)
    size = Real(0.5, low=0.0, high=1.0)
    free = Real(0.5)
    steps = Whole(3, low=0, high=9)
    show = Choice(["a", "b", "c"], default="b")
    kind = Choice(["a", "b", "c", "d", "e"])
    trail = Flag(False)


def test_assigning_a_bad_value_keeps_the_old_one():
    lab = _Lab()
    for name, bad in [("width", 3), ("size", 2.0), ("steps", 1.5), ("show", "z"), ("trail", 1)]:
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
    assert set(lab._start) == set(_Lab.figure_traits())
    lab.start_here()
    assert lab._start["steps"] == 2


def test_a_choice_takes_its_text_and_tells_the_script_the_texts():
    lab = _Lab(show="c")
    assert lab.show == 2
    assert lab._options == {"show": ["a", "b", "c"], "kind": ["a", "b", "c", "d", "e"]}


def test_the_script_is_told_which_numbers_stay_whole():
    numbers = {"size", "free", "steps", "width"}
    assert numbers & set(_Lab()._whole) == {"steps", "width"}


# ---- controls -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [figures.angle_heatmap, figures.rotor])
def test_every_control_is_labelled_and_linked_to_a_trait_of_its_value(make):
    title, figure, *rows = make().children
    assert "rope-question" in title.value
    assert rows
    linked = links()
    for control in (control for row in rows for control in row.children):
        name = "index" if hasattr(control, "index") else "value"
        target, trait = linked[control, name]
        assert target is figure
        assert trait in figure.figure_traits()
        assert getattr(figure, trait) == pytest.approx(getattr(control, name))
        assert control.description.strip()


def test_controls_know_every_kind_of_trait():
    lab = _Lab()
    made = [
        controls.slider(lab, "width", "Width", step=2, unit="channels"),
        controls.slider(lab, "size", "Size"),
        controls.log_slider(lab, "free", "Free", low=0.1, high=10.0),
        controls.choice(lab, "show", "Show"),
        controls.choice(lab, "kind", "Kind"),
        controls.checkbox(lab, "trail", "Leave a trail"),
    ]
    assert [type(control).__name__ for control in made] == [
        "IntSlider",
        "FloatSlider",
        "FloatLogSlider",
        "ToggleButtons",
        "Dropdown",
        "Checkbox",
    ]
    assert made[0].description == "Width (channels)"
    assert (made[0].min, made[0].max, made[0].step) == (2, 16, 2)
    box = controls.box(lab, made, question="Which is <larger>?")
    assert "&lt;larger&gt;" in box.children[0].value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda lab: controls.slider(lab, "nothing", "?"), "Rotor|_Lab, got 'nothing'"),
        (lambda lab: controls.slider(lab, "trail", "?"), "got 'trail'"),
        (lambda lab: controls.choice(lab, "size", "?"), "got 'size'"),
        (lambda lab: controls.checkbox(lab, "size", "?"), "got 'size'"),
        (lambda lab: controls.slider(lab, "free", "?"), "low and high .* got -inf"),
        (lambda lab: controls.slider(lab, "steps", "?", low=-100), r"in 0 \.\. 9, got -100 and 9"),
        (lambda lab: controls.slider(lab, "size", "?", high=1000), "low and high must be in"),
        (lambda lab: controls.slider(lab, "steps", "?", step=0), "step must be finite and > 0"),
        (lambda lab: controls.slider(lab, "steps", "?", step=math.nan), "step must be finite"),
        (lambda lab: controls.slider(lab, "steps", "?", step=0.5), r"step .* whole .* got 0\.5"),
        (lambda lab: controls.slider(lab, "steps", "?", low=0.5), r"low .* whole .* got 0\.5"),
        (lambda lab: controls.log_slider(lab, "size", "?", stops=0), "stops must be finite and"),
        (lambda lab: controls.slider(lab, "size", "?", low=0.6), r"size .* got 0\.5"),
        (lambda lab: controls.log_slider(lab, "size", "?"), r"low must be > 0.*got 0\.0"),
    ],
)
def test_a_control_that_cannot_be_linked_raises(make, message):
    with pytest.raises(ValueError, match=message):
        make(_Lab())
