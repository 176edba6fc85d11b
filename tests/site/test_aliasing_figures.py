"""The figures of chapters 6, 7 and 10 say on the page what the package says."""

import math

import numpy as np
import pytest
from playwright.sync_api import expect

from rope_minimal import inverse_frequencies, rescaled_frequencies
from ropebook import aliasing
from tests.tools.browser import wait_for
from tests.tools.on_page import OnPage

from .figures import unfold

pytestmark = pytest.mark.drawn(5)

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


@pytest.mark.parametrize("pairs", [1, 2, 7, 8])
def test_the_clock_on_the_page_reads_the_package(on_page, pairs):
    clock = on_page(ALIASING, "clock")
    clock.write("Hands", pairs)
    says = clock.values(pairs=pairs, m=710)
    D = aliasing.code_distance(np.arange(1, 131_073), inverse_frequencies(2 * pairs))
    assert says["count"] == (D[1:] <= D[0]).sum()
    assert says["nearest"] == D.argmin() + 1
    assert says["neighbour"] == pytest.approx(D[0], **NEAR)
    assert says["now"] == pytest.approx(D[709], **NEAR)
    expect(clock.figure.locator(".rope-answer")).to_contain_text("no:" if pairs == 8 else "yes:")


def test_a_tap_and_the_arrow_keys_choose_a_distance(on_page):
    clock = on_page(ALIASING, "clock")
    canvas = clock.figure.locator(".rope-canvas")
    canvas.press("ArrowRight")
    clock.values(m=103_993)
    canvas.press("ArrowLeft")
    canvas.press("ArrowLeft")
    clock.values(m=333)
    canvas.press("ArrowUp")
    clock.values(m=334)
    canvas.press("Home")
    clock.values(m=1)
    frame = canvas.bounding_box()
    left, right = 44, frame["width"] - 26
    D = float(aliasing.code_distance(44, inverse_frequencies(128)))
    x = left + (right - left) * math.log(44) / math.log(131_072)
    canvas.click(position={"x": x + 3, "y": 22 + (262 - 22) * (1 - D / 2) - 3})
    clock.values(m=44)
    clock.button("Reset")
    clock.values(m=710, pairs=64)


def test_the_wrap_explorer_on_the_page_reads_the_package(on_page, rng):
    wrap = on_page(ALIASING, "wrap-explorer")
    assert wrap.values()["wrapped"] == pytest.approx(7.0 - 2.0 * math.pi, **NEAR)  # 0.7168
    for _ in range(3):
        dim = 2 * int(rng.integers(1, 129))
        theta = float(np.exp(rng.uniform(np.log(0.001), np.log(3.0))))
        wrap.write("Head width", dim)
        wrap.write("Turn per token", theta)
        says = wrap.values(dim=dim, distance=7)
        theta = says["theta"]  # as the slider took it
        bank = theta * inverse_frequencies(dim)
        assert says["angle"] == pytest.approx(7 * theta, **NEAR)
        assert says["wrapped"] == pytest.approx(float(aliasing.wrapped_angle(7 * theta)), **NEAR)
        assert says["cosine"] == pytest.approx(math.cos(7 * theta), **NEAR)
        assert says["mean"] == pytest.approx(float(aliasing.mean_cosine(7, bank)), **NEAR)
        assert says["horizons"] == {
            "wrap": float(aliasing.angle_horizon(theta)),
            "cosine": aliasing.cosine_horizon(theta),
            "mean": aliasing.cosine_horizon(bank),
        }


def test_the_dial_on_the_page_reads_the_package(on_page, rng):
    dial = on_page(ALIASING, "horizon-dial")
    answer = dial.figure.locator(".rope-answer")
    expect(answer).to_contain_text("no hand turns back in the window")
    for slower in (1.0, 2000.0, float(np.exp(rng.uniform(0.0, np.log(600.0))))):
        dial.write("All hands slowed", slower)
        wait_for(
            dial.page,
            """([figure, slower]) =>
                Math.abs(JSON.parse(figure.dataset.values).slower / slower - 1) < 0.05""",
            arg=[dial.figure.element_handle(), slower],
        )
        says = dial.values()
        bank = inverse_frequencies(128) / says["slower"]
        assert says["cosine"] == aliasing.cosine_horizon(bank[0])
        for dtype, snr in says["snr"].items():
            assert snr == pytest.approx(aliasing.neighbour_snr(bank, dtype), **NEAR)
    expect(answer).to_contain_text("but the fastest hand turns back at")


FIXED = {
    "as trained": ("default", {}),
    "PI": ("linear", {"factor": 16}),
    "NTK": ("ntk", {"factor": 16}),
    "YaRN, code": ("yarn", {"factor": 16, "original_max_position_embeddings": 4096}),
    "p-RoPE (46 of 64)": ("proportional", {"partial_rotary_factor": 46 / 64}),
    "monotone (reconstruction A)": ("monotone", {"max_positions": 65536}),
}


def test_the_faders_on_the_page_reads_the_package(on_page):
    faders = on_page(CONTEXTS, "rescaling-faders")
    plain = inverse_frequencies(128)
    for name, (kind, parameters) in FIXED.items():
        faders.choose("Rescaling", name)
        says = faders.values(preset=name)
        inv_freq, attention = rescaled_frequencies(kind, 128, **parameters)
        np.testing.assert_allclose(says["multipliers"], inv_freq / plain, rtol=1e-9)
        assert says["count"] == aliasing.unseen_pairs(inv_freq, 65_536, plain, 4096).sum()
        contrast = aliasing.neighbour_contrast(inv_freq)
        assert says["contrast"] == pytest.approx(contrast, **NEAR)
        assert says["kept"] == pytest.approx(contrast / aliasing.neighbour_contrast(plain), **NEAR)
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


def test_faders_move_by_keyboard_and_by_their_handles(on_page):
    faders = on_page(CONTEXTS, "rescaling-faders")
    faders.choose("Rescaling", "as trained")
    canvas = faders.figure.locator(".rope-canvas").first
    canvas.press("End")
    faders.values(pair=63)
    canvas.press("ArrowDown")
    wait_for(
        faders.page,
        "figure => JSON.parse(figure.dataset.values).multipliers[63] < 1",
        arg=faders.figure.element_handle(),
    )
    assert faders.values()["multipliers"] == pytest.approx([1.0] * 63 + [2.0**-0.25])

    def stroke(start, end):
        """Draw from a height of the faders to another, from the first fader to the last."""
        frame = canvas.bounding_box()
        high = lambda part: frame["y"] + 24 + (1 - part) * (frame["height"] - 64)  # noqa: E731
        faders.page.mouse.move(frame["x"] + 46, high(start))
        faders.page.mouse.down()
        faders.page.mouse.move(frame["x"] + 46, high(end))
        faders.page.mouse.move(frame["x"] + frame["width"] - 10, high(end), steps=4)
        faders.page.mouse.up()

    canvas.scroll_into_view_if_needed()
    before = faders.values()["multipliers"]
    stroke(0.15, 0.1)  # there is no handle
    assert faders.values()["multipliers"] == before
    stroke(0.845, 0.15)  # × 1 stands at 0.07 + 0.93 · 5/6
    says = faders.values(count=0, pair=63)
    assert len(set(says["multipliers"])) == 1
    assert says["multipliers"][0] < 1 / 16

    faders.choose("Rescaling", "PI")
    assert set(faders.values(preset="PI")["multipliers"]) == {1 / 16}
    faders.button("Reset")
    assert faders.values(preset="YaRN, code")["multipliers"][0] == 1


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
    unfold(scope.box)
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
            if by_angle and math.isfinite(error):  # the short way round
                error = abs(math.remainder(error, math.tau))
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
                "horizon-dial": {"slower": 2048 / math.pi},
                "wrap-explorer": {"theta": math.pi / 2048},
                "clock": {"pairs": 64, "m": 710},
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
