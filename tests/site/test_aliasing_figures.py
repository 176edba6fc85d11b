"""The figures of chapters 6, 7 and 10 say on the page what the package says."""

import math

import numpy as np
import pytest
from playwright.sync_api import expect

from rope_minimal import aliasing, inverse_frequencies, rescaled_frequencies
from tests.tools.on_page import OnPage

ALIASING = "notebooks/06-aliasing.html"
CONTEXTS = "notebooks/07-longer-contexts.html"
PRECISION = "notebooks/10-precision.html"

NEAR = {"rel": 1e-9, "abs": 1e-9}


@pytest.fixture
def rng():
    """Settings that nobody chose, the same ones at every run."""
    return np.random.default_rng(0)


@pytest.fixture
def on_page(opened_once):
    def open_figure(name: str, figure: str) -> OnPage:
        return OnPage(opened_once(name).page, figure)

    return open_figure


def test_the_clock_on_the_page_reads_the_package(on_page, rng):
    clock = on_page(ALIASING, "clock")
    for dim in ("2", "4", "8", "128"):
        clock.press("Head width", dim)
        m = int(rng.integers(0, 131073))
        clock.write("Distance m", m)
        says = clock.values(m=m, dim=int(dim))
        bank = inverse_frequencies(int(dim))
        hand = float(aliasing.code_distance(m, bank[:1]))
        assert says["hand"] == pytest.approx(hand, **NEAR)
        assert says["bank"] == pytest.approx(float(aliasing.code_distance(m, bank)), **NEAR)
        assert says["neighbour"] == pytest.approx(aliasing.neighbour_contrast(bank), **NEAR)


def test_the_hunt_ends_at_the_neighbour(on_page):
    clock = on_page(ALIASING, "clock")
    clock.button("84,823 with d = 4")
    assert clock.values(m=84823, dim=4)["bank"] < 0.0012
    clock.press("Head width", "128")
    clock.values(dim=128)
    clock.button("Find the nearest")
    says = clock.values(m=1)
    exact = aliasing.nearest_code(inverse_frequencies(128), 131072)
    assert says["found"]["distance"] == exact.distance == 1
    assert says["found"]["codeDistance"] == pytest.approx(exact.code_distance, **NEAR)
    caption = clock.figure.locator(".rope-caption")
    expect(caption).to_contain_text("Searched all 131,072 distances")
    clock.figure.locator(".rope-canvas").press("ArrowRight")
    clock.values(m=2)
    clock.button("Reset")
    clock.values(m=44, dim=128)


def test_the_wrap_explorer_on_the_page_reads_the_package(on_page, rng):
    wrap = on_page(ALIASING, "wrap-explorer")
    assert wrap.values()["wrapped"] == pytest.approx(7.0 - 2.0 * math.pi, **NEAR)  # 0.7168
    for _ in range(3):
        dim = 2 * int(rng.integers(1, 129))
        window = int(rng.integers(20, 2049))
        theta = float(np.exp(rng.uniform(np.log(0.001), np.log(3.0))))
        wrap.write("Head width", dim)
        wrap.write("Largest distance", window)
        wrap.write("Turn per token", theta)
        says = wrap.values(dim=dim, window=window, distance=7)
        theta = says["theta"]  # as the slider took it
        bank = theta * inverse_frequencies(dim)
        assert says["angle"] == pytest.approx(7 * theta, **NEAR)
        assert says["wrapped"] == pytest.approx(float(aliasing.wrapped_angle(7 * theta)), **NEAR)
        assert says["cosine"] == pytest.approx(math.cos(7 * theta), **NEAR)
        assert says["mean"] == pytest.approx(float(aliasing.mean_cosine(7, bank)), **NEAR)
        horizons = {
            "wrap": float(aliasing.angle_horizon(theta)),
            "cosine": aliasing.cosine_horizon(theta),
            "mean": aliasing.cosine_horizon(bank),
        }
        assert says["horizons"] == {k: v if v < math.inf else None for k, v in horizons.items()}


def test_the_dial_on_the_page_reads_the_package(on_page, rng):
    dial = on_page(ALIASING, "horizon-dial")
    settings = [("RoPE", 1.0), ("A: π/n", math.pi / 8192), ("B: 2π/n", 2.0 * math.pi / 8192)]
    dial.press("Window n", "8192")
    for name, theta in [*settings, (None, float(np.exp(rng.uniform(np.log(0.002), 0.0))))]:
        if name:
            dial.button(name)
        else:
            dial.write("Turn per token", theta)
        dial.page.wait_for_function(
            """([figure, theta]) =>
                Math.abs(JSON.parse(figure.dataset.values).theta / theta - 1) < 0.05""",
            arg=[dial.figure.element_handle(), theta],
        )
        says = dial.values(window=8192)
        theta = says["theta"]
        bank = theta * inverse_frequencies(128)
        assert says["cosine"] == aliasing.cosine_horizon(theta)
        assert says["wrap"] == float(aliasing.angle_horizon(theta))
        assert says["mean"] == aliasing.cosine_horizon(bank)
        for dtype, snr in says["snr"].items():
            assert snr == pytest.approx(aliasing.neighbour_snr(bank, dtype), **NEAR)


def test_the_knob_turns_by_pointer_and_by_keyboard(on_page):
    dial = on_page(ALIASING, "horizon-dial")
    canvas = dial.figure.locator(".rope-canvas")
    canvas.press("ArrowRight")
    before = dial.values()["theta"]
    assert 0.9 < before < 1.0
    canvas.scroll_into_view_if_needed()
    frame = canvas.bounding_box()
    x, y = frame["x"] + min(frame["width"] * 0.27, 190), frame["y"] + 156
    dial.page.mouse.click(x, y - 70)  # upright: the middle of the scale
    middle = 10**-2.25
    dial.page.wait_for_function(
        "([figure, at]) => Math.abs(JSON.parse(figure.dataset.values).theta / at - 1) < 0.1",
        arg=[dial.figure.element_handle(), middle],
    )


FIXED = {
    "as trained": ("default", {}),
    "PI": ("linear", {"factor": 16}),
    "NTK": ("ntk", {"factor": 16}),
    "YaRN, code": ("yarn", {"factor": 16, "original_max_position_embeddings": 4096}),
    "p-RoPE (46 of 64)": ("proportional", {"partial_rotary_factor": 46 / 64}),
    "monotone (reconstruction A)": ("monotone", {"max_positions": 65536}),
}


def test_the_faders_on_the_page_reads_the_package(on_page, rng):
    faders = on_page(CONTEXTS, "rescaling-faders")
    plain = inverse_frequencies(128)
    for name, (kind, parameters) in FIXED.items():
        length = int(rng.choice([8192, 16384, 32768, 65536]))
        faders.press("Asked for", str(length))
        faders.choose("Rescaling", name)
        says = faders.values(preset=name, length=length)
        inv_freq, attention = rescaled_frequencies(kind, 128, **parameters)
        np.testing.assert_allclose(says["multipliers"], inv_freq / plain, rtol=1e-9)
        assert says["count"] == aliasing.unseen_pairs(inv_freq, length, plain, 4096).sum()
        exact = aliasing.nearest_code(inv_freq, length)
        assert says["nearest"]["codeDistance"] == pytest.approx(exact.code_distance, **NEAR)
        assert says["contrast"] == pytest.approx(aliasing.neighbour_contrast(inv_freq), **NEAR)
        assert says["attention"] == pytest.approx(attention, **NEAR)


def test_yarn_in_the_paper_is_not_yarn_in_the_code(on_page):
    faders = on_page(CONTEXTS, "rescaling-faders")
    faders.button("YaRN: paper against code")
    says = faders.values(preset="YaRN, paper", compare="YaRN, code")["difference"]
    own = {"factor": 16, "original_max_position_embeddings": 4096}
    paper, code = (rescaled_frequencies(kind, 128, **own)[0] for kind in ("yarn_paper", "yarn"))
    ratio = np.maximum(paper / code, code / paper)
    assert says["pair"] == ratio.argmax()
    assert says["ratio"] == pytest.approx(ratio.max(), **NEAR)


def test_faders_move_by_keyboard_and_by_pointer(on_page):
    faders = on_page(CONTEXTS, "rescaling-faders")
    canvas = faders.figure.locator(".rope-canvas").first
    canvas.press("End")
    faders.values(pair=63)
    canvas.press("ArrowDown")
    says = faders.values(pair=63)
    faders.page.wait_for_function(
        "figure => JSON.parse(figure.dataset.values).multipliers[63] < 1",
        arg=faders.figure.element_handle(),
    )
    says = faders.values()
    assert says["multipliers"] == pytest.approx([1.0] * 63 + [2.0**-0.25])

    # one stroke over all faders, a little above the strip where they stand still
    canvas.scroll_into_view_if_needed()
    frame = canvas.bounding_box()
    y = frame["y"] + frame["height"] - 40 - 0.15 * (frame["height"] - 64)
    faders.page.mouse.move(frame["x"] + 46, y)
    faders.page.mouse.down()
    faders.page.mouse.move(frame["x"] + frame["width"] - 10, y, steps=4)
    faders.page.mouse.up()
    says = faders.values(count=0, pair=63)
    assert len(set(says["multipliers"])) == 1
    assert says["multipliers"][0] < 1 / 16

    faders.choose("Rescaling", "PI")
    assert set(faders.values(preset="PI")["multipliers"]) == {1 / 16}
    faders.button("Reset")
    assert set(faders.values(preset="as trained")["multipliers"]) == {1}


def rounded(x: float, dtype: str) -> float:
    """Round by NumPy, and to bfloat16 by cutting a float32's bits with the tie rule."""
    if dtype == "fp32":
        return float(np.float32(x))
    if dtype == "fp16":
        with np.errstate(over="ignore"):
            return float(np.float16(x))
    mantissa, exponent = np.frexp(x)
    return float(np.ldexp(np.round(np.ldexp(mantissa, 8)), int(exponent) - 8))


def entry(position: int, theta: float, dtype: str, stage: str) -> tuple[float, float]:
    """Return the angle and the cosine that such a table holds."""

    def at(name: str, x: float) -> float:
        return rounded(x, dtype) if stage in (name, "everything") else x

    angle = at("product", at("positions", position) * at("inverse frequencies", theta))
    return angle, at("table", math.cos(angle)) if math.isfinite(angle) else math.nan


def test_the_microscope_on_the_page_reads_exact_rounding(on_page, rng):
    scope = on_page(PRECISION, "precision-microscope")
    stages = ["positions", "inverse frequencies", "product", "table", "everything"]
    canvas = scope.figure.locator(".rope-canvas")
    for stage in stages:
        dtype = str(rng.choice(["fp32", "fp16", "bf16"]))
        show = str(rng.choice(["angle", "cosine"]))
        scope.press("Number type", dtype)
        scope.choose("What is rounded", stage)
        scope.press("Error of the", show)
        frame = canvas.bounding_box()
        canvas.hover(
            position={"x": rng.uniform(60, frame["width"] - 20), "y": rng.uniform(60, 230)}
        )
        says = scope.values(dtype=dtype, stage=stage, show=show)
        for cell in (says, says["worst"]):
            theta = float(inverse_frequencies(128)[cell["pair"]])
            angle, cosine = entry(cell["position"], theta, dtype, stage)
            true = cell["position"] * theta
            by_angle = show == "angle" and stage != "table"
            error = abs(angle - true if by_angle else cosine - math.cos(true))
            expected = error if math.isfinite(error) else "infinite"
            assert cell["error"] == (
                expected if isinstance(expected, str) else pytest.approx(expected, **NEAR)
            )
    distinct = {rounded(float(p), "bf16") for p in range(131072)}
    scope.press("Number type", "bf16")
    assert scope.values(dtype="bf16")["distinct"] == len(distinct) == 1409


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        (
            ALIASING,
            {
                "horizon-dial": {"theta": math.pi / 2048},
                "wrap-explorer": {"theta": math.pi / 2048, "window": 2048},
            },
        ),
        (CONTEXTS, {"rescaling-faders": {"compare": "YaRN, code"}}),
        (PRECISION, {"precision-microscope": {"stage": "positions", "show": "cosine"}}),
    ],
)
def test_show_me_ends_where_it_says_also_with_motion_reduced(on_page, name, ends):
    for figure, expected in ends.items():
        shown = on_page(name, figure)
        shown.page.emulate_media(reduced_motion="reduce")
        shown.button("Show me")
        shown.values(**expected)
        shown.page.emulate_media(reduced_motion="no-preference")
