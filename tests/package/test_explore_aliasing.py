"""The figures on aliasing, longer contexts and precision: their mathematics and their meters.

Every number is compared with the package, or with an oracle that rounds in another way.
"""

import functools
import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rope_minimal import inverse_frequencies, rescaled_frequencies
from ropebook import aliasing, figures
from ropebook.figures.precision_microscope import COLUMNS
from ropebook.figures.rescaling_faders import PRESETS

few = settings(max_examples=25, deadline=None)
many = settings(max_examples=60, deadline=None)
dims = st.integers(2, 64).map(lambda pairs: 2 * pairs)
bases = st.floats(100.0, 1e7)
thetas = st.floats(4e-5, 3.1)
TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
types = st.sampled_from(sorted(TYPES.values()))


@pytest.fixture(scope="module")
def ask(node):
    """Call a function of aliasing.js; infinities come back as such."""

    def call(name, *args):
        return _numbers(node.call("aliasing.js", name, *args))

    return call


def _numbers(value):
    if isinstance(value, str) and value.startswith("#"):
        return float(value[1:])
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    return [_numbers(item) for item in value] if isinstance(value, list) else value


def _bank(dim, base, theta=1.0):
    return theta * inverse_frequencies(dim, base)


# ---- one hand and the bank ----------------------------------------------------------------------


@many
@given(theta=thetas, last=st.integers(1, 10**9))
def test_near_repeats_are_those_of_the_package(ask, theta, last):
    ours = ask("nearRepeats", theta, last)
    exact = aliasing.near_repeats(theta, last)
    assert [(r["distance"], r["turns"]) for r in ours] == [(r.distance, r.turns) for r in exact]
    np.testing.assert_allclose([r["error"] for r in ours], [r.error for r in exact], rtol=1e-13)


def test_near_repeats_of_one_radian_are_the_famous_ones(ask):
    distances = [record["distance"] for record in ask("nearRepeats", 1.0, 131072)]
    assert distances == [1, 6, 19, 25, 44, 333, 710, 103993]


@many
@given(theta=thetas, dim=dims, base=bases)
def test_horizons_are_those_of_the_package(ask, theta, dim, base):
    assert ask("angleHorizon", theta) == float(aliasing.angle_horizon(theta))
    assert ask("cosineHorizon", [theta]) == aliasing.cosine_horizon(theta)
    bank = _bank(dim, base, max(theta, 0.01))
    assert ask("cosineHorizon", bank.tolist()) == aliasing.cosine_horizon(bank)


def test_a_bank_that_stands_still_has_no_horizon(ask):
    assert ask("cosineHorizon", [0.0, 0.0]) == math.inf == aliasing.cosine_horizon([0.0, 0.0])
    assert ask("angleHorizon", 0.0) == math.inf


@few
@given(dim=dims, base=bases, theta=thetas, last=st.integers(0, 3000))
def test_the_sums_of_cosines_are_those_of_the_package(ask, dim, base, theta, last):
    bank = _bank(dim, base, theta)
    sums = np.array(ask("cosineSums", bank.tolist(), last))
    exact = aliasing.mean_cosine(np.arange(last + 1), bank)
    assert np.abs(sums / len(bank) - exact).max() < 1e-10


@many
@given(dim=dims, base=bases, theta=thetas, dtype=types)
def test_signal_to_noise_is_that_of_the_package(ask, dim, base, theta, dtype):
    bank = _bank(dim, base, theta)
    assert ask("neighbourSnr", bank.tolist(), dtype) == pytest.approx(
        aliasing.neighbour_snr(bank, dtype), rel=1e-12
    )


@many
@given(
    dim=dims,
    base=bases,
    factor=st.floats(0.5, 40.0),
    trained=st.integers(1, 9999),
    asked=st.integers(1, 99999),
)
def test_unseen_pairs_are_those_of_the_package(ask, dim, base, factor, trained, asked):
    before = _bank(dim, base)
    now = before / factor
    ours = ask("unseenPairs", now.tolist(), asked, before.tolist(), trained)
    assert ours == aliasing.unseen_pairs(now, asked, before, trained).tolist()


# ---- rescalings ---------------------------------------------------------------------------------

stretches = {
    "factor": st.floats(1.0, 64.0),
    "original_max_position_embeddings": st.integers(64, 9999),
}
kinds = st.one_of(
    st.tuples(st.just("default"), st.just({})),
    st.tuples(
        st.sampled_from(["linear", "ntk"]), st.fixed_dictionaries({"factor": st.floats(1, 64)})
    ),
    st.tuples(
        st.just("dynamic"),
        st.fixed_dictionaries(
            {
                "factor": st.floats(1.0, 8.0),
                "max_position_embeddings": st.integers(64, 9999),
                "seq_len": st.integers(1, 99999),
            }
        ),
    ),
    st.tuples(
        st.sampled_from(["by_parts", "yarn", "yarn_paper"]), st.fixed_dictionaries(stretches)
    ),
    st.tuples(
        st.just("llama3"),
        st.fixed_dictionaries(
            {**stretches, "low_freq_factor": st.floats(0.5, 2), "high_freq_factor": st.floats(3, 9)}
        ),
    ),
    st.tuples(
        st.just("proportional"),
        st.fixed_dictionaries(
            {"partial_rotary_factor": st.floats(0.1, 1.0), "factor": st.floats(1.0, 16.0)}
        ),
    ),
    st.tuples(
        st.just("monotone"),
        st.fixed_dictionaries(
            {"max_positions": st.integers(1, 99999), "turns": st.floats(0.1, 1.0)}
        ),
    ),
)


@settings(max_examples=200, deadline=None)
@given(dim=dims, base=bases, rule=kinds)
def test_rescalings_are_those_of_the_package(ask, dim, base, rule):
    kind, parameters = rule
    assume(parameters.get("partial_rotary_factor", 1.0) * dim >= 2)  # one pair turns
    ours = ask("rescaledFrequencies", kind, dim, base, parameters)
    inv_freq, attention = rescaled_frequencies(kind, dim, base, **parameters)
    np.testing.assert_allclose(ours["invFreq"], inv_freq, rtol=1e-9, atol=1e-300)
    assert ours["attention"] == pytest.approx(attention, rel=1e-12)


@few
@given(factor=st.floats(1.0, 64.0), seq_len=st.integers(1, 9999), seed=st.integers(0, 999))
def test_longrope_takes_the_list_of_the_package(ask, factor, seq_len, seed):
    short, long = np.random.default_rng(seed).uniform(1.0, 20.0, (2, 32)).tolist()
    own = {
        "short_factor": short,
        "long_factor": long,
        "original_max_position_embeddings": 4096,
        "factor": factor,
        "seq_len": seq_len,
    }
    ours = ask("rescaledFrequencies", "longrope", 64, 10000.0, own)
    inv_freq, attention = rescaled_frequencies("longrope", 64, 10000.0, **own)
    np.testing.assert_allclose(ours["invFreq"], inv_freq, rtol=1e-12)
    assert ours["attention"] == pytest.approx(attention, rel=1e-12)


def test_an_unknown_rescaling_is_named(ask):
    with pytest.raises(RuntimeError, match=r"kind must be one of .* got bogus"):
        ask("rescaledFrequencies", "bogus", 8, 10000.0)


# ---- rounding -----------------------------------------------------------------------------------

BITS = {"float32": (24, -126), "float16": (11, -14), "bfloat16": (8, -126)}
LARGEST = {
    "float32": (2 - 2**-23) * 2.0**127,
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
}


def _rounded(x: float, dtype: str) -> float:
    """Round in exact fractions: Python's own rounding is to nearest, ties to even."""
    if x == 0.0:
        return x
    bits, lowest = BITS[dtype]
    unit = Fraction(2) ** (max(math.frexp(x)[1] - 1, lowest) - bits + 1)
    value = float(round(Fraction(x) / unit) * unit)
    return math.copysign(math.inf, x) if abs(value) > LARGEST[dtype] else value


@settings(max_examples=300, deadline=None)
@given(x=st.one_of(st.floats(-1e6, 1e6), st.integers(-(2**20), 2**20).map(float)), dtype=types)
def test_rounding_is_to_nearest_ties_to_even(ask, x, dtype):
    assert ask("roundTo", x, dtype) == _rounded(x, dtype)


@many
@given(x=st.floats(-1e5, 1e5, width=32), dtype=types)
def test_rounding_is_that_of_torch(ask, x, dtype):
    assert ask("roundTo", x, dtype) == torch.tensor(x).to(getattr(torch, dtype)).item()


@pytest.mark.parametrize(
    ("x", "dtype", "expected"),
    [
        (257.0, "bfloat16", 256.0),
        (259.0, "bfloat16", 260.0),
        (2049.0, "float16", 2048.0),
        (65519.9, "float16", 65504.0),
        (65520.0, "float16", math.inf),
        (-70000.0, "float16", -math.inf),
        (3e-8, "float16", 2.0**-24 if 3e-8 > 2.0**-25 else 0.0),
        (1e-9, "float16", 0.0),
        (16777217.0, "float32", 16777216.0),
        (0.1, "float64", 0.1),
    ],
)
def test_rounding_at_the_edges(ask, x, dtype, expected):
    assert ask("roundTo", x, dtype) == expected


@pytest.mark.parametrize(
    ("count", "dtype", "expected"),
    [
        (4096, "bfloat16", 769),
        (131072, "bfloat16", 1409),
        (2048, "bfloat16", 641),
        (512, "bfloat16", 385),  # 511 is rounded upwards
        (7, "bfloat16", 7),
        (65520, "float16", 7168),
        (131072, "float16", 7169),  # infinity is one
        (131072, "float32", 131072),
    ],
)
def test_how_many_positions_differ(ask, count, dtype, expected):
    held = torch.arange(count, dtype=torch.float32).to(getattr(torch, dtype))
    assert ask("distinctPositions", count, dtype) == held.unique().numel() == expected


def _entry(position, theta, dtype, stage):
    def at(name, x):
        return _rounded(x, dtype) if stage in (name, "everything") and math.isfinite(x) else x

    angle = at("product", at("positions", position) * at("inverse frequencies", theta))
    return angle, at("table", math.cos(angle)) if math.isfinite(angle) else math.nan


STAGES = ["positions", "inverse frequencies", "product", "table", "everything"]
stages = st.sampled_from(STAGES)


@settings(max_examples=150, deadline=None)
@given(
    position=st.integers(0, 1048575),
    pair=st.integers(0, 63),
    dtype=types,
    stage=stages,
    show=st.sampled_from(["angle", "cosine"]),
)
def test_the_error_of_an_entry_is_that_of_exact_rounding(ask, position, pair, dtype, stage, show):
    theta = float(inverse_frequencies(128)[pair])
    angle, cosine = _entry(position, theta, dtype, stage)
    error = angle - position * theta if show == "angle" else cosine - math.cos(position * theta)
    ours = ask("roundingError", position, theta, dtype, stage, show)
    if math.isfinite(error):
        assert ours == pytest.approx(error, rel=1e-9, abs=1e-9)
    else:
        assert ours == math.inf


# ---- the figures --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def far():
    """Return D(m) of the distances 1 to 131,072 for a head with so many pairs."""
    distances = np.arange(1, 131_073)
    return lambda pairs: aliasing.code_distance(distances, inverse_frequencies(2 * pairs))


@pytest.mark.parametrize(
    ("pairs", "count", "nearest"),
    [(1, 41_720, 103_993), (2, 10_151, 84_823), (4, 420, 100_531), (7, 4, 49_769), (8, 0, 1)],
)
def test_the_clock_surveys_every_distance(node, far, pairs, count, nearest):
    ours = node.call("clock.js", "survey", pairs, 300)
    D = far(pairs)
    assert ours["count"] == (D[1:] <= D[0]).sum() == count
    assert ours["nearest"] == D.argmin() + 1 == nearest
    assert ours["neighbour"] == pytest.approx(D[0], abs=1e-12)
    lowest = np.minimum.accumulate(D)
    assert ours["records"] == [1, *(np.flatnonzero(np.diff(lowest) < 0) + 2)]

    # each distance belongs to the column that its logarithm is nearest to
    column = np.round(299 * np.log(np.arange(1, 131_073)) / np.log(131_072)).astype(int)
    for k, seen in enumerate(ours["columns"]):
        here = D[column == k]
        assert (seen is None) == (len(here) == 0)
        if seen:
            assert (seen["low"], seen["high"]) == pytest.approx((here.min(), here.max()), abs=1e-6)
            assert D[seen["at"] - 1] == pytest.approx(here.min(), abs=1e-9)


def test_from_eight_hands_on_no_distance_is_as_near_as_the_neighbour(node):
    assert [p for p in range(1, 65) if node.call("clock.js", "survey", p, 10)["count"]] == [
        *range(1, 8)
    ]


def test_the_arrow_keys_walk_the_records_of_one_hand_and_of_all(node):
    records = node.call("clock.js", "survey", 2, 10)["records"]
    marks = node.call("clock.js", "landmarks", records)
    of_one = [r.distance for r in aliasing.near_repeats(1.0, 131_072)]
    assert marks == sorted({*of_one, *records})

    def walk(m, step):
        return node.call("clock.js", "walk", marks, m, step)

    assert [walk(m, 1) for m in (1, 100, 84_823, 131_072)] == [6, 333, 103_993, 131_072]
    assert [walk(m, -1) for m in (710, 700, 2, 1)] == [622, 622, 1, 1]
    assert (walk(44, 10**9), walk(44, -10), walk(44, "#Infinity")) == (103_993, 1, 103_993)


@given(angle=st.floats(-1e5, 1e5))
@many
def test_the_short_way_ends_at_the_same_hand(node, angle):
    way = node.call("rope.js", "shortWay", angle)
    assert abs(way) <= math.pi + 1e-9
    assert math.cos(way) == pytest.approx(math.cos(angle), abs=1e-9)
    assert math.sin(way) == pytest.approx(math.sin(angle), abs=1e-9)


@many
@given(distance=st.integers(1, 10000), theta=st.floats(0.001, math.pi), dim=dims)
def test_the_wrap_explorer_reads_the_package(node, distance, theta, dim):
    bank = _bank(dim, 10000.0, theta)
    ours = node.call("wrap_explorer.js", "reading", distance, theta, dim)
    apart = abs(ours["wrapped"] - float(aliasing.wrapped_angle(distance * theta)))
    assert min(apart, 2.0 * math.pi - apart) <= 1e-9
    assert ours["cosine"] == pytest.approx(math.cos(distance * theta), abs=1e-9)
    assert ours["mean"] == pytest.approx(float(aliasing.mean_cosine(distance, bank)), abs=1e-9)


@pytest.mark.parametrize("theta", [1.0, 0.4096, math.pi / 2048, 2.0 * math.pi / 2048])
def test_a_stop_of_the_slider_reads_as_its_button_does(theta):
    """A slider shows its nearest stop; 500 stops to a factor of 10 showed 0.409 for 0.4096."""
    figure = figures.wrap_explorer()
    ends, control = figure._limits["theta"], figure._controls[0]
    place = round(math.log10(theta / ends[0]) * control["per_decade"])
    assert f"{ends[0] * 10 ** (place / control['per_decade']):.4g}" == f"{theta:.4g}"


@pytest.mark.parametrize("theta", [0.001, 0.4096, 1.0, math.pi])
@pytest.mark.parametrize("dim", [2, 4, 128, 256])
def test_every_mark_of_the_wrap_explorer_stays_in_its_picture(node, theta, dim):
    turns = node.call("wrap_explorer.js", "horizons", theta, dim)
    bank = _bank(dim, 10000.0, theta)
    assert turns["wrap"] == float(aliasing.angle_horizon(theta))
    assert turns["cosine"] == aliasing.cosine_horizon(theta)
    assert turns["mean"] == aliasing.cosine_horizon(bank)
    assert 1 < min(turns.values()) <= max(turns.values()) < 10_000
    assert turns["cosine"] <= turns["mean"], "it is said to be there, too, or later"


@many
@given(slower=st.floats(1.0, 2000.0))
def test_the_dial_reads_the_package(node, slower):
    bank = inverse_frequencies(128) / slower
    ours = node.call("horizon_dial.js", "meters", slower)
    assert ours["cosine"] == aliasing.cosine_horizon(bank[0])
    for dtype, snr in ours["snr"].items():
        assert snr == pytest.approx(aliasing.neighbour_snr(bank, dtype), rel=1e-9)


@many
@given(low=st.floats(1.0, 1900.0), ratio=st.floats(1.05, 3.0))
def test_the_meters_of_the_dial_move_against_each_other(node, low, ratio):
    fast, slow = (
        node.call("horizon_dial.js", "meters", s) for s in (low, min(low * ratio, 2000.0))
    )
    assert slow["cosine"] >= fast["cosine"]
    assert all(slow["snr"][dtype] < fast["snr"][dtype] for dtype in slow["snr"])


def test_the_places_of_the_dial_are_published_and_reconstructed_settings(node):
    places = {name: slower for name, _, slower in node.call("horizon_dial.js", "PLACES")}
    half, whole = (
        rescaled_frequencies("monotone", 128, max_positions=2048, turns=turns)[0][0]
        for turns in (0.5, 1.0)
    )
    interpolated = rescaled_frequencies("linear", 128, factor=16)[0][0]
    expected = {"RoPE": 1, "PI ×16": 1 / interpolated, "B": 1 / whole, "A": 1 / half}
    assert places == pytest.approx(expected, rel=1e-12)
    assert figures.horizon_dial().slower == pytest.approx(places["A"], rel=1e-12)


def test_the_presets_of_both_languages_have_the_same_names(node):
    assert list(node.call("rescaling_faders.js", "presets")) == PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_the_faders_reads_the_package(node, name):
    kind, parameters = node.call("rescaling_faders.js", "presets")[name]
    inv_freq, attention = rescaled_frequencies(kind, 128, 10000.0, **parameters)
    plain = inverse_frequencies(128)
    ours = node.call("rescaling_faders.js", "setting", name)
    np.testing.assert_allclose(ours["multipliers"], inv_freq / plain, rtol=1e-9)
    assert ours["attention"] == pytest.approx(attention, rel=1e-12)
    meters = node.call("rescaling_faders.js", "meters", ours["multipliers"])
    assert meters["unseen"] == aliasing.unseen_pairs(inv_freq, 65536, plain, 4096).tolist()
    assert meters["count"] == sum(meters["unseen"])
    contrast = aliasing.neighbour_contrast(inv_freq)
    assert meters["contrast"] == pytest.approx(contrast, abs=1e-9)
    assert meters["kept"] == pytest.approx(contrast / aliasing.neighbour_contrast(plain), rel=1e-6)


@pytest.mark.parametrize("name", PRESETS)
def test_the_multiplier_of_every_pair_is_said(node, name):
    ours = node.call("rescaling_faders.js", "setting", name)
    meters = node.call("rescaling_faders.js", "meters", ours["multipliers"])
    for pair, multiplier in enumerate(ours["multipliers"]):
        shown = {"pair": pair, "multiplier": multiplier, "attention": 1, "difference": None}
        said = node.call("rescaling_faders.js", "words", {"title": name, **shown}, meters)
        over, number = re.search(r"turns at × \*\*(1/)?([\d.,]+)\*\*", said).groups()
        number = float(number.replace(",", ""))
        assert (1 / number if over else number) == pytest.approx(multiplier, rel=0.026), pair
    assert ("**100%** of its size" in said) == (meters["kept"] == 1)


def test_a_key_raises_a_fader_that_stands_below_the_scale(node):
    step = functools.partial(node.call, "rescaling_faders.js", "nextMultiplier")
    assert step(1 / 20_861, 1) == step(0, 1) == 1 / 32
    assert step(1 / 20_861, -1) == step(1 / 32, -1) == 0


def test_one_fader_at_the_bottom_is_one_pair_that_stands_still(node):
    now = [1.0] * 64
    for fader, many in [(63, 1), (62, 2)]:
        now[fader] = 0.0
        assert node.call("rescaling_faders.js", "apart", now, [1.0] * 64)["still"] == many
    assert node.call("rescaling_faders.js", "apart", now, now)["still"] == 0
    # rounding does not choose the pair where many differ alike
    slowed = [0.25 * (1 + 1e-13 * (i == 12)) for i in range(64)]
    found = node.call("rescaling_faders.js", "apart", slowed, [1.0] * 64)
    assert (found["pair"], found["alike"]) == (0, 64)
    found = node.call("rescaling_faders.js", "apart", [1.0] * 46 + [0.25] * 18, [1.0] * 64)
    assert (found["pair"], found["alike"]) == (46, 18)


@few
@given(seed=st.integers(0, 9999))
def test_the_faders_reads_any_faders(node, seed):
    faders = np.exp2(np.random.default_rng(seed).uniform(-5, 1, 64))
    inv_freq = inverse_frequencies(128) * faders
    meters = node.call("rescaling_faders.js", "meters", faders.tolist())
    unseen = aliasing.unseen_pairs(inv_freq, 65536, inverse_frequencies(128), 4096)
    assert meters["unseen"] == unseen.tolist()
    assert meters["contrast"] == pytest.approx(aliasing.neighbour_contrast(inv_freq), abs=1e-9)


def test_the_slow_faders_alone_remove_every_unseen_angle(node):
    faders = [1.0] * 46 + [1 / 16] * 18
    before = node.call("rescaling_faders.js", "meters", [1.0] * 64)
    after = node.call("rescaling_faders.js", "meters", faders)
    assert (before["count"], after["count"]) == (18, 0)
    assert after["contrast"] == pytest.approx(before["contrast"], abs=1e-5)


@many
@given(multiplier=st.floats(2.0**-5, 2.0))
def test_a_fader_gives_back_the_multiplier_it_stands_at(node, multiplier):
    part = node.call("rescaling_faders.js", "faderPart", multiplier)
    assert 0.0 < part <= 1.0
    caught = [stop for stop in (1.0, 1 / 16) if abs(math.log2(multiplier / stop)) < 0.12]
    wanted = caught[0] if caught else multiplier
    assert node.call("rescaling_faders.js", "faderMultiplier", part) == pytest.approx(wanted)


def test_faders_catch_at_the_two_useful_places_and_stop_at_the_bottom(node):
    near = [node.call("rescaling_faders.js", "faderPart", m) for m in (1.04, 1 / 15.6, 0.0)]
    assert [node.call("rescaling_faders.js", "faderMultiplier", part) for part in near] == [
        1,
        1 / 16,
        0,
    ]


@pytest.mark.parametrize("count", [4096, 131072, 1048576])
def test_the_columns_of_the_microscope_are_odd_and_in_order(node, count):
    at = np.array(node.call("precision_microscope.js", "columnPositions", count))
    assert at.shape == (COLUMNS,)
    assert (at % 2 == 1).all()
    assert (np.diff(at) >= 0).all()
    assert (at[0], at[-1]) == (1, count - 1)


@settings(max_examples=12, deadline=None)
@given(
    short=st.sampled_from(sorted(TYPES)), stage=stages, show=st.sampled_from(["angle", "cosine"])
)
def test_the_microscope_finds_the_worst_cell(node, short, stage, show):
    ours = _numbers(node.call("precision_microscope.js", "errorMap", short, stage, show, 4096))
    shown = "cosine" if stage == "table" else show
    worst = 0.0
    theta = inverse_frequencies(128).tolist()
    for position in sorted(set(ours["positions"]))[::9]:
        for pair in range(0, 64, 3):
            angle, cosine = _entry(position, theta[pair], TYPES[short], stage)
            true = position * theta[pair]
            error = abs(angle - true if shown == "angle" else cosine - math.cos(true))
            if shown == "angle":  # the short way round
                error = abs(math.remainder(error, math.tau))
            column = ours["positions"].index(position)
            assert ours["errors"][column * 64 + pair] == pytest.approx(error, rel=1e-9, abs=1e-9)
            worst = max(worst, error)
    assert ours["worst"]["error"] == max(ours["errors"]) >= worst - 1e-9


@pytest.mark.parametrize("count", [4096, 1048576])
@pytest.mark.parametrize("short", sorted(TYPES))
def test_no_cell_of_the_microscope_passes_the_law(node, short, count):
    """At every setting the worst of all pairs stays below the dashed line, and not far below it."""
    for stage, show in itertools.product(STAGES, ["angle", "cosine"]):
        ours = _numbers(node.call("precision_microscope.js", "errorMap", short, stage, show, count))
        worst = np.reshape(ours["errors"], (COLUMNS, 64)).max(axis=1)
        asked = (ours["positions"], short, stage, show)
        law = np.array(_numbers(node.call("precision_microscope.js", "laws", *asked)))
        assert (worst <= law * (1 + 1e-9) + 1e-12).all(), (stage, show)
        assert (np.isinf(worst) == np.isinf(law)).all()
        finite = np.isfinite(law) & (law > 0)
        assert law[finite].max(initial=0) <= (
            2 if show == "cosine" or stage == "table" else math.pi
        )
        if finite.any():
            assert (worst[finite] / law[finite]).max() > 0.3, (stage, show)


def test_what_is_said_of_a_rounded_table_holds_at_positions_that_are_not_shown(node):
    cosines = np.cos(np.outer(np.arange(4096), inverse_frequencies(128)))
    worst = np.abs(cosines.astype(np.float16) - cosines).max()
    script, setting = "precision_microscope.js", ["fp16", "table", "cosine"]
    shown = node.call(script, "errorMap", *setting, 4096)["worst"]
    assert shown["error"] < worst <= 2.0**-12
    asked = dict(zip(["dtype", "stage", "show"], setting, strict=True))
    assert "**2⁻¹²** at most" in node.call(script, "answer", asked, 4096, shown, None)


# ---- traits and controls ------------------------------------------------------------------------

MAKERS = [
    figures.clock,
    figures.wrap_explorer,
    figures.horizon_dial,
    figures.rescaling_faders,
    figures.precision_microscope,
]
