"""The claims of chapters 06 and 07, checked apart from the chapters' code."""

import ast
import math
import re
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy as sp
import torch

from rope_minimal import rescaled_frequencies
from rope_minimal.aliasing import (
    angle_horizon,
    circle_gaps,
    code_distance,
    cosine_horizon,
    mean_cosine,
    near_repeats,
    nearest_code,
    neighbour_contrast,
    neighbour_snr,
    unseen_pairs,
    wrapped_angle,
)

from .boxes import boxes

TURN = 2 * math.pi
THETA = 10_000.0 ** (-np.arange(64) / 64)  # d = 128, written out: no function of the package
WINDOW = 2048
A = math.pi / WINDOW * THETA  # the two reconstructions, written out
B = 2 * math.pi / WINDOW * THETA
TESTS = Path(__file__).parent
CHAPTERS = [
    TESTS.parent / "notebooks" / f"{name}.ipynb" for name in ("06-aliasing", "07-longer-contexts")
]


def bank(dim, base=10_000.0):
    """Inverse frequencies, written out."""
    return base ** (-np.arange(0, dim, 2) / dim)


def distances_of_codes(bank, last):
    """D(1) .. D(last) from unit complex numbers: another formula than the package's."""
    blocks = np.array_split(np.arange(1, last + 1), max(1, last * len(bank) // 2**20))
    codes = (np.exp(1j * m[:, None] * bank) for m in blocks)
    return np.concatenate([np.sqrt((np.abs(1 - code) ** 2).mean(1)) for code in codes])


# The chapters and this file belong together ------------------------------------------------------


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_claim_is_numbered_and_names_a_test_that_exists(path):
    claims = list(boxes(path, "Claim"))
    number = str(int(path.name[:2]))
    assert [title for title, *_ in claims] == [
        f"Claim {number}.{i + 1}" for i in range(len(claims))
    ]
    for title, text, code in claims:
        (file, name), *_ = re.findall(r"`(test_\w+\.py)::(test_\w+)`", text) or [(None, None)]
        assert file, title
        functions = ast.walk(ast.parse((TESTS / file).read_text("utf8")))
        assert name in {f.name for f in functions if isinstance(f, ast.FunctionDef)}, title
        assert "assert" in code or "def " in code, title


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_myth_is_followed_by_its_failing_assertion(path):
    myths = list(boxes(path, "Myth"))
    assert len(myths) >= 2
    for title, _, code in myths:
        assert title.startswith('Myth: "')
        assert "except AssertionError" in code, title


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_test_named_in_a_chapter_exists(path):
    for file, name in re.findall(r"(test_\w+\.py)::(test_\w+)", path.read_text("utf8")):
        assert f"def {name}(" in (TESTS / file).read_text("utf8")


# 06 Aliasing -------------------------------------------------------------------------------------


def test_the_angle_of_the_fastest_hand_wraps_at_7():
    assert [round(math.fmod(m, TURN), 4) for m in (5, 6, 7)] == [5, 6, 0.7168]
    assert wrapped_angle(np.array([5.0, 6.0, 7.0])) == pytest.approx([5, 6, 7 - TURN])
    assert angle_horizon(1.0) == 7


def test_the_cosine_turns_at_4_before_the_angle_wraps():
    cosines = [math.cos(m) for m in range(8)]
    assert [b > a for a, b in pairwise(cosines)].index(True) + 1 == 4 == cosine_horizon(1.0)
    assert [round(cosines[m], 3) for m in (1, 3, 4, 6)] == [0.540, -0.990, -0.654, 0.960]


def test_the_printed_caption_wraps_three_times_before_50():
    caption = 2 * 2048 / 10_000
    turns = [math.floor(m * caption / TURN) for m in range(2049)]
    wraps = [m for m in range(1, 2049) if turns[m] > turns[m - 1]]
    assert wraps[:3] == [16, 31, 47]
    assert wraps[3] > 50
    assert len(wraps) == 133
    assert cosine_horizon(caption) == 9


def test_which_reconstruction_meets_which_wish():
    m = np.arange(WINDOW)
    for theta, angle_grows, cosine_falls in (
        (A[0], True, True),
        (B[0], True, False),
        (0.4096, False, False),
        (1.0, False, False),
    ):
        assert (np.diff(wrapped_angle(m * theta)) > 0).all() == angle_grows
        assert (np.diff(np.cos(m * theta)) < 0).all() == cosine_falls
    assert np.argmax(np.diff(np.cos(np.arange(2000) * B[0])) > 0) + 1 == 1025
    for turns, own in ((0.5, A), (1.0, B)):
        assert rescaled_frequencies("monotone", 128, max_positions=WINDOW, turns=turns)[
            0
        ] == pytest.approx(own, rel=1e-14)


@pytest.mark.parametrize(("dim", "base"), [(8, 10_000), (64, 10_000), (64, 500_000)])
def test_every_rope_frequency_is_a_root_of_a_whole_polynomial(dim, base):
    assert 6 * sp.acos(sp.Rational(1, 2)) == 2 * sp.pi  # no pi in the formula, and it repeats
    for i in range(0, dim // 2, 5):
        theta = sp.Integer(base) ** sp.Rational(-2 * i, dim)
        assert sp.simplify(base ** (2 * i) * theta**dim - 1) == 0
        assert float(theta) == pytest.approx(bank(dim, base)[i])


def test_near_repeats_are_the_convergents_of_two_pi():
    with mpmath.workdps(40):
        x, convergents, (h, k, h_old, k_old) = 2 * mpmath.pi, [], (1, 0, 0, 1)
        while h < 131_072:
            whole = int(mpmath.floor(x))
            h, k, h_old, k_old = whole * h + h_old, whole * k + k_old, h, k
            convergents.append((h, k))
            x = 1 / (x - whole)
    assert [h for h, _ in convergents[:-1]] == [6, 19, 25, 44, 333, 710, 103_993]
    records = near_repeats(1.0, 131_072)
    assert [(r.distance, r.turns) for r in records[1:]] == convergents[:-1]
    errors = {r.distance: r.error for r in records}
    assert round(errors[44], 4) == 0.0177
    assert round(errors[710], 7) == 0.0000603


def test_2048_positions_leave_three_gaps():
    marks = sorted(m % TURN for m in range(2048))
    gaps = [b - a for a, b in pairwise([*marks, TURN])]
    kinds = {
        length: sum(abs(g - length) < 5e-8 for g in gaps)
        for length in (0.0000603, 0.0087007, 0.0087610)
    }
    assert list(kinds.values()) == [1338, 295, 415]
    assert sorted(gaps) == pytest.approx(circle_gaps(1.0, 2048), abs=1e-9)


def test_no_distance_of_a_full_head_is_nearer_than_a_neighbour():
    D = distances_of_codes(THETA, 131_072)
    assert D.argmin() == 0
    assert round(D[0], 3) == 0.244
    assert (D[999:].argmin() + 1000, round(D[999:].min(), 3)) == (1030, 1.165)
    assert round(D[709], 3) == 1.244
    assert (D[1:] > D[0]).all()
    assert math.floor(131_072 / TURN) == 20_860
    assert nearest_code(THETA, 131_072) == (1, pytest.approx(D[0]))


def test_how_many_hands_are_enough():
    nearest = {dim: nearest_code(bank(dim), 131_072) for dim in (2, 4, 8, 16, 32, 64)}
    assert [near.distance for near in nearest.values()] == [103_993, 84_823, 100_531, 1, 1, 1]
    assert [round(nearest[dim].code_distance, 5) for dim in (2, 4, 8)] == [
        0.00002,
        0.00116,
        0.01763,
    ]
    positions = torch.arange(131_072, dtype=torch.float64)[:, None]
    for dim, codes in ((2, 8_409), (4, 120_768), (8, 131_072)):
        angle = positions * torch.from_numpy(bank(dim))
        table = torch.cat((angle.cos(), angle.sin()), dim=1).bfloat16().float()
        assert len(torch.unique(table, dim=0)) == codes


def test_the_slowest_wavelength_does_not_bound_the_context():
    turning = 1e6 ** (-np.arange(0, 128, 2) / 512)  # Gemma 4, global layers
    assert round(TURN / turning[-1]) == 188
    near = nearest_code(turning, 262_144, min_distance=200)
    assert round(near.code_distance, 3) == 1.135
    assert round(float(code_distance(1, turning)), 3) == 0.382
    proportional, _ = rescaled_frequencies("proportional", 512, 1e6, partial_rotary_factor=0.25)
    assert proportional[:64] == pytest.approx(turning, rel=1e-14)


def test_the_mean_cosine_of_a_full_head_rises_at_12():
    C = np.array([np.cos(m * THETA).mean() for m in range(2049)])
    assert np.argmax(np.diff(C) > 0) + 1 == 12 == cosine_horizon(THETA)
    assert round((np.diff(C) > 0).mean(), 3) == 0.487
    assert (C.argmin(), round(C.min(), 4)) == (1970, -0.0285)


def test_a_bank_falls_until_half_a_turn_and_comes_back():
    rng = np.random.default_rng(60)
    for _ in range(50):
        own = rng.uniform(0.01, 1.0, size=rng.integers(1, 65))
        safe = math.floor(math.pi / own.max())
        C = np.array([np.cos(m * own).mean() for m in range(safe + 1)])
        assert (np.diff(C) < 0).all()
        assert cosine_horizon(own) > safe
    D = distances_of_codes(bank(4), 131_072)
    assert (D.argmin() + 1, round(D.min(), 4)) == (84_823, 0.0012)


def test_the_price_of_a_monotone_code():
    D = {name: math.sqrt((2 - 2 * np.cos(own)).mean()) for name, own in (("RoPE", THETA), ("A", A))}
    assert round(D["RoPE"], 3) == 0.244
    assert round(D["A"], 6) == 0.000383
    assert round(D["RoPE"] / D["A"]) == 637
    noise = {"bfloat16": 2**-8, "float16": 2**-11, "float32": 2**-24}  # half a unit, times
    for dtype, rope, own in (
        ("bfloat16", 104, 0.16),
        ("float16", 832, 1.31),
        ("float32", 6_818_441, 10_711),
    ):
        epsilon = noise[dtype] * math.sqrt(1 / (8 * math.log(2)))
        assert D["RoPE"] / epsilon / math.sqrt(2) == pytest.approx(rope, rel=1e-3)
        assert D["A"] / epsilon / math.sqrt(2) == pytest.approx(own, abs=0.005, rel=1e-4)
        assert neighbour_snr(THETA, dtype) == pytest.approx(rope, rel=1e-3)
        assert neighbour_snr(B, dtype) == pytest.approx(2 * neighbour_snr(A, dtype), rel=1e-5)


@pytest.mark.parametrize(
    ("own", "low", "high"), [(THETA, 0.99, 1.0), (B, 0.70, 0.76), (A, 0.64, 0.70)]
)
def test_neighbours_cannot_be_ranked_in_bf16_after_the_fix(own, low, high):
    generator = torch.Generator().manual_seed(7)
    q, k = torch.randn(2, 8000, 64, dtype=torch.complex128, generator=generator)
    hands = torch.from_numpy(own)

    def steps(dtype):
        turned = [
            torch.view_as_real(z * torch.exp(1j * p * hands)).to(dtype).double()
            for z, p in ((q, 501), (k, 500), (k, 501))
        ]
        return (turned[0] * (turned[1] - turned[2])).sum((-1, -2))

    right = ((steps(torch.bfloat16) > 0) == (steps(torch.float64) > 0)).double().mean().item()
    assert low < right <= high


def test_the_proposal_is_position_interpolation_by_652():
    assert round(WINDOW / math.pi) == 652
    assert pytest.approx(THETA / (WINDOW / math.pi), rel=1e-14) == A
    assert round(WINDOW * WINDOW / math.pi, -5) == 1.3e6
    linear, _ = rescaled_frequencies("linear", 128, factor=WINDOW / math.pi)
    assert linear == pytest.approx(A, rel=1e-14)


def test_eighteen_standard_hands_are_already_monotone():
    slow = [i for i, theta in enumerate(THETA) if theta * WINDOW <= math.pi]
    assert slow == list(range(46, 64))
    C = mean_cosine(np.arange(4047), THETA[46:])
    assert np.argmax(np.diff(C) > 0) + 1 == 4046 == cosine_horizon(THETA[46:])
    assert round(neighbour_contrast(THETA[:46]), 3) == 0.288
    assert round(neighbour_contrast(THETA[46:]), 4) == 0.0006


# 07 Longer contexts ------------------------------------------------------------------------------

TRAINED, ASKED, FACTOR = 4096, 65_536, 16
STRETCH = {"factor": FACTOR, "original_max_position_embeddings": TRAINED}


def unseen(own):
    """How many pairs go further than in training without having made a turn."""
    return sum(
        TRAINED * before < TURN and ASKED * now > TRAINED * before * (1 + 1e-9)
        for now, before in zip(own, THETA, strict=True)
    )


def test_the_18_slow_pairs_of_llama2_meet_new_angles():
    assert (THETA * TRAINED >= TURN).sum() == 46
    assert unseen(THETA) == 18
    flags = unseen_pairs(THETA, ASKED, THETA, TRAINED)
    assert flags.nonzero()[0].tolist() == list(range(46, 64))


@pytest.mark.parametrize(
    ("base", "length", "channels"), [(1e4, 2048, 82), (1e4, 4096, 92), (5e5, 8192, 70)]
)
def test_critical_dimensions_of_three_llamas(base, length, channels):
    assert 2 * math.ceil(64 * math.log(length / TURN, base)) == channels
    assert 2 * sum(TURN * base ** (i / 64) <= length for i in range(64)) == channels


def test_interpolation_sees_nothing_new_and_pays_in_contrast():
    interpolated, _ = rescaled_frequencies("linear", 128, factor=FACTOR)
    assert unseen(interpolated) == 0
    contrast = math.sqrt((2 - 2 * np.cos(THETA / 16)).mean())
    assert round(contrast, 4) == 0.0156
    assert neighbour_contrast(interpolated) == pytest.approx(contrast)
    assert round(neighbour_snr(interpolated, "bfloat16"), 1) == 6.7
    assert round(neighbour_contrast(THETA) / contrast, 1) == 15.6


def test_ntk_leaves_17_pairs_unseen():
    new_base = 10_000 * FACTOR ** (128 / 126)
    tilted = new_base ** (-np.arange(64) / 64)
    assert round(new_base) == 167_199
    assert rescaled_frequencies("ntk", 128, factor=FACTOR)[0] == pytest.approx(tilted)
    assert (tilted / THETA)[[0, 63]] == pytest.approx([1, 1 / 16])
    assert unseen(tilted) == 17
    assert round(ASKED * tilted[46] / (TRAINED * THETA[46]), 1) == 2.1
    assert round(neighbour_contrast(tilted) / neighbour_contrast(THETA), 2) == 0.89


def test_dynamic_ntk_invalidates_cached_keys():
    def base_at(length):
        return 10_000 * (length / TRAINED) ** (128 / 126)

    assert [round(base_at(n)) for n in (4096, 8192, 16_384)] == [10_000, 20_221, 40_890]
    own = {"factor": 1, "max_position_embeddings": TRAINED, "seq_len": 5000}
    now, _ = rescaled_frequencies("dynamic", 128, **own)
    assert now == pytest.approx(base_at(5000) ** (-np.arange(64) / 64))
    # For random q and k the correlation of the scores is the mean cosine of the angle errors.
    correlation = np.cos(4000 * (now - THETA)).mean()
    assert correlation == pytest.approx(0.32, abs=0.02)


def test_by_parts_presses_only_the_slow_faders():
    expected = []
    for theta in THETA:
        turns = TRAINED * theta / TURN
        keep = min(max((turns - 1) / (32 - 1), 0), 1)
        expected.append((1 - keep) * theta / FACTOR + keep * theta)
    got, attention = rescaled_frequencies("by_parts", 128, **STRETCH)
    assert got == pytest.approx(expected)
    assert attention == 1
    turns = TRAINED * THETA / TURN
    assert ((turns >= 32).sum(), ((turns > 1) & (turns < 32)).sum(), (turns <= 1).sum()) == (
        21,
        25,
        18,
    )
    assert unseen(got) == 0
    assert 0.999 < neighbour_contrast(got) / neighbour_contrast(THETA) < 1


def test_yarn_in_the_code_is_not_yarn_in_the_paper():
    paper, _ = rescaled_frequencies("yarn_paper", 128, **STRETCH)
    code, _ = rescaled_frequencies("yarn", 128, **STRETCH)
    low = math.floor(64 * math.log(TRAINED / (32 * TURN), 10_000))
    high = math.ceil(64 * math.log(TRAINED / TURN, 10_000))
    assert (low, high) == (20, 46)
    keep = 1 - np.clip((np.arange(64) - low) / (high - low), 0, 1)
    assert code == pytest.approx((1 - keep) * THETA / FACTOR + keep * THETA)
    ratio = code / paper
    assert (ratio.argmax(), round(ratio.max(), 2)) == (38, 3.04)
    assert round(TRAINED * THETA[38] / TURN, 1) == 2.7
    assert (round(THETA[38] / paper[38], 1), round(THETA[38] / code[38], 1)) == (8.7, 2.8)
    assert ratio[:20] == pytest.approx(1)
    assert ratio[46:] == pytest.approx(1)


def test_llama3_is_by_parts_with_knees_at_1_and_4():
    theta = bank(128, 5e5)
    expected = []
    for t in theta:
        wave = TURN / t
        smooth = (8192 / wave - 1) / 3
        blend = (1 - smooth) * t / 8 + smooth * t
        expected.append(t if wave < 2048 else t / 8 if wave > 8192 else blend)
    own = {"factor": 8, "original_max_position_embeddings": 8192}
    knees = {"low_freq_factor": 1, "high_freq_factor": 4}
    assert rescaled_frequencies("llama3", 128, 5e5, **own, **knees)[0] == pytest.approx(expected)
    by_parts, _ = rescaled_frequencies("by_parts", 128, 5e5, beta_slow=1, beta_fast=4, **own)
    assert by_parts == pytest.approx(expected)
    kept, full = (TURN / theta < 2048).sum(), (TURN / theta > 8192).sum()
    assert (kept, 64 - kept - full, full) == (29, 6, 29)


def test_longrope_contains_the_others():
    ones = np.ones(64)
    for kind, own in (
        ("linear", {"factor": FACTOR}),
        ("ntk", {"factor": FACTOR}),
        ("by_parts", STRETCH),
        ("llama3", STRETCH | {"low_freq_factor": 1, "high_freq_factor": 4}),
    ):
        target, _ = rescaled_frequencies(kind, 128, **own)
        lists = {"short_factor": ones, "long_factor": THETA / target}
        got, _ = rescaled_frequencies("longrope", 128, seq_len=ASKED, **lists, **STRETCH)
        assert got == pytest.approx(target)
    lists = {"short_factor": ones, "long_factor": ones, "factor": 32}
    _, attention = rescaled_frequencies(
        "longrope", 128, original_max_position_embeddings=4096, **lists
    )
    assert attention == pytest.approx(math.sqrt(1 + 5 / 12))  # ln 32 / ln 4096 = 5/12


def test_two_meanings_of_a_quarter():
    proportional = [1e6 ** (-2 * i / 512) for i in range(64)] + [0.0] * 192
    classic = [1e6 ** (-2 * i / 128) for i in range(64)]
    own = {"partial_rotary_factor": 0.25}
    assert rescaled_frequencies("proportional", 512, 1e6, **own)[0] == pytest.approx(proportional)
    assert rescaled_frequencies("default", 512, 1e6, **own)[0] == pytest.approx(classic)
    assert round(TURN / proportional[63]) == 188
    assert round(TURN / classic[-1], -4) == 5.06e6


def test_the_temperature_takes_back_part_of_the_entropy():
    _, attention = rescaled_frequencies("yarn", 128, **STRETCH)
    assert attention == pytest.approx(0.1 * math.log(16) + 1)
    sharper = attention**2
    assert (round(attention, 3), round(sharper, 3)) == (1.277, 1.631)
    gained, taken_back = math.log(16), (sharper**2 - 1) / 2
    assert (round(gained, 2), round(taken_back, 2)) == (2.77, 0.83)
    assert round(taken_back / gained, 2) == 0.30
    assert round(math.sqrt(gained / taken_back), 2) == 1.83
    scores = np.random.default_rng(3).normal(size=ASKED)

    def entropy(x):
        log_weights = x - np.logaddexp.reduce(x)
        return -(np.exp(log_weights) * log_weights).sum()

    assert entropy(scores) - entropy(scores[:TRAINED]) == pytest.approx(gained, abs=0.06)
    assert entropy(scores) - entropy(sharper * scores) == pytest.approx(taken_back, abs=0.06)


def test_a_larger_base_buys_range_and_pays_resolution():
    small, large = bank(128, 1e4), bank(128, 5e5)
    assert round(TURN / small[-1]) == 54_410
    assert round(TURN / large[-1], -4) == 2.56e6
    steps = [np.linalg.norm(np.exp(1j * own) - 1) * math.sqrt(2) for own in (small, large)]
    assert np.round(steps, 2).tolist() == [2.76, 2.38]
    m = np.array([1, 10, 100, 1000, 10_000])
    D = [code_distance(m, own) for own in (small, large)]
    assert np.round([D[0][0], D[1][0]], 3).tolist() == [0.244, 0.210]
    assert (D[1] < D[0]).all()
    near, far = np.arange(1, 10_001), np.arange(10_001, 131_073)
    gains = [code_distance(m, large) > code_distance(m, small) for m in (near, far)]
    assert gains[0].mean() < 0.001  # at nearly every distance the codes move closer together
    assert 0.1 < gains[1].mean() < 0.3  # farther out some gain


def test_the_good_bases_are_not_an_interval():
    C = np.array([np.cos(m * THETA).mean() for m in range(2048)])
    assert ((C < 0).argmax(), (C < 0).sum()) == (1707, 16)
    window = np.arange(2048)[:, None]
    good = [
        base
        for base in range(11_500, 13_001, 50)
        if (np.cos(window * bank(128, base)).mean(1) >= 0).all()
    ]
    assert good == [11_600, 12_450]
