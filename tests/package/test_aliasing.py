"""One hand and sixty-four: wrapping, horizons, near repeats, code distances, contrast and noise."""

import math
import tracemalloc

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rope_minimal import inverse_frequencies, rescaled_frequencies
from ropebook import aliasing
from ropebook.aliasing import (
    angle_horizon,
    circle_gaps,
    code_distance,
    cosine_horizon,
    mean_cosine,
    near_repeats,
    nearest_code,
    neighbour_contrast,
    neighbour_snr,
    rounding_noise,
    unseen_pairs,
    wrapped_angle,
)

FULL_HEAD = inverse_frequencies(128)
frequencies = st.floats(1e-4, 3.0)


# One hand ------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.floats(-1e6, 1e6))
def test_wrapped_angle_is_in_the_circle_and_points_the_same_way(angle):
    wrapped = wrapped_angle(angle)
    assert 0.0 <= wrapped < 2 * math.pi
    assert math.cos(wrapped) == pytest.approx(math.cos(angle), abs=1e-9)
    assert math.sin(wrapped) == pytest.approx(math.sin(angle), abs=1e-9)


def test_wrapped_angle_never_returns_a_full_turn():
    assert wrapped_angle(-1e-20) == 0.0
    assert wrapped_angle(np.array([[7.0, -1.0]])).shape == (1, 2)


@settings(deadline=None)
@given(st.floats(0.01, 3.0))
def test_angle_horizon_is_the_first_drop_of_the_wrapped_angle(theta):
    horizon = int(angle_horizon(theta))
    angles = wrapped_angle(np.arange(horizon + 1) * theta)
    drops = np.flatnonzero(np.diff(angles) < 0) + 1
    assert drops.tolist() == [horizon]


def test_a_hand_faster_than_a_turn_wraps_like_what_is_left_of_it():
    for theta in (6.5, 7.0, 10.0, 20.0):
        angles = wrapped_angle(np.arange(100) * theta)
        assert angle_horizon(theta) == np.flatnonzero(np.diff(angles) < 0)[0] + 1
    assert angle_horizon(2 * math.pi) == math.inf


def test_a_hand_that_stands_still_never_wraps():
    assert angle_horizon(np.array([1.0, 0.4096, 0.0])).tolist() == [7, 16, math.inf]


def brute_records(theta, limit):
    """Distances whose angle comes closer to a full turn than all before (float oracle)."""
    angles = np.arange(1, limit + 1) * theta
    errors = np.abs(angles - 2 * np.pi * np.round(angles / (2 * np.pi)))
    best = np.minimum.accumulate(errors)
    return [1, *(np.flatnonzero(np.diff(best) < 0) + 2).tolist()]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 200_000).map(lambda n: n / 10_007))
def test_near_repeats_are_the_records_of_a_brute_force_search(theta):
    limit = 3000
    assert [r.distance for r in near_repeats(theta, limit)] == brute_records(theta, limit)


@pytest.mark.parametrize("theta", [1.0, 0.4096, *inverse_frequencies(8)[1:], 5.9, 40.0])
def test_near_repeat_errors_agree_with_80_digit_arithmetic(theta):
    records = near_repeats(theta, 10**15)
    assert len(records) > 10
    with mpmath.workdps(80):
        for distance, turns, error in records:
            exact = distance * mpmath.mpf(theta) - 2 * mpmath.pi * turns
            assert error == pytest.approx(float(exact), rel=1e-15, abs=0)


@pytest.mark.parametrize(("theta", "far"), [(1.0, 10**200), (1.7e308, 10**15), (5e-324, 10**330)])
def test_near_repeats_are_records_at_any_size(theta, far):
    """Each record is nearer than the one before, and on the other side of the start."""
    with mpmath.workdps(1200):
        turn = 2 * mpmath.pi
        for record in near_repeats(theta, far):
            exact = record.distance * mpmath.mpf(theta) - record.turns * turn
            assert record.error == float(exact)
    errors = [abs(record.error) for record in near_repeats(theta, far)]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16])
def test_the_largest_number_of_a_type_is_a_limit_like_any_other(kind):
    most = int(np.iinfo(kind).max)
    bank, limit = [1.0, 0.3], kind(most)
    assert nearest_code(bank, limit) == nearest_code(bank, most)
    assert cosine_horizon(bank, limit) == cosine_horizon(bank, most)
    assert near_repeats(0.3, limit) == near_repeats(0.3, most)
    assert circle_gaps(0.3, limit).tolist() == circle_gaps(0.3, most).tolist()
    seen = unseen_pairs(bank, limit, bank, limit)
    assert seen.tolist() == [False, False]


def test_near_repeats_take_a_numpy_number():
    half = np.float32(0.5)  # as exact in either type
    assert aliasing.near_repeats(half, 1000) == aliasing.near_repeats(0.5, 1000)


def test_near_repeats_at_one_radian_are_the_convergents_of_two_pi():
    records = [(r.distance, r.turns) for r in near_repeats(1.0, 103_993)]
    assert records == [
        (1, 0), (6, 1), (19, 3), (25, 4), (44, 7), (333, 53), (710, 113), (103_993, 16_551),
    ]  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(frequencies, st.integers(1, 3000))
def test_circle_gaps_fill_the_circle_with_at_most_three_lengths(theta, positions):
    gaps = circle_gaps(theta, positions)
    assert gaps.shape == (positions,)
    assert gaps.sum() == pytest.approx(2 * math.pi)
    assert 1 + (np.diff(gaps) > 1e-9).sum() <= 3


# The bank ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 4, 8, 128])
def test_code_distance_is_the_distance_of_unit_complex_codes(dim):
    inv_freq = inverse_frequencies(dim)
    distance = np.random.default_rng(dim).integers(-9000, 9000, (3, 50))
    codes = np.exp(1j * distance[..., None] * inv_freq)
    expected = np.sqrt((np.abs(1 - codes) ** 2).mean(-1))
    assert np.allclose(code_distance(distance, inv_freq), expected, atol=1e-12)
    assert np.allclose(mean_cosine(distance, inv_freq), codes.real.mean(-1), atol=1e-12)
    assert np.allclose(expected**2, 2 - 2 * mean_cosine(distance, inv_freq), atol=1e-12)


def test_code_distance_of_a_hand_that_hardly_moves_keeps_its_digits():
    assert code_distance(1, 1e-12) == pytest.approx(1e-12, rel=1e-14)
    assert code_distance(0, FULL_HEAD) == 0.0


@settings(deadline=None, max_examples=40)
@given(st.lists(frequencies, min_size=1, max_size=5), st.integers(1, 4000), st.integers(0, 2000))
def test_nearest_code_is_the_minimum_of_a_plain_search(bank, low, span):
    bank = np.array(bank)
    distances = np.arange(low, low + span + 1)
    codes = np.exp(1j * distances[:, None] * bank)
    plain = np.sqrt((np.abs(1 - codes) ** 2).mean(-1))
    found = nearest_code(bank, low + span, low)
    assert found.code_distance == pytest.approx(plain.min(), rel=1e-6, abs=1e-9)
    assert low <= found.distance <= low + span
    assert code_distance(found.distance, bank) == pytest.approx(found.code_distance, abs=1e-12)


def test_searches_do_not_depend_on_the_block_size(monkeypatch):
    whole = nearest_code(inverse_frequencies(4), 90_000, 2)
    assert whole.distance == 84_823
    monkeypatch.setattr(aliasing, "_BLOCK", 1000)
    assert nearest_code(inverse_frequencies(4), 90_000, 2) == whole
    assert cosine_horizon(FULL_HEAD) == 12


def test_nearest_code_takes_the_shortest_distance_on_a_tie(monkeypatch):
    assert nearest_code(np.zeros(2), 50, 7) == (7, 0.0)
    monkeypatch.setattr(aliasing, "_BLOCK", 8)  # ties between blocks as well
    assert nearest_code(np.zeros(2), 50, 7) == (7, 0.0)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(5, 3000).map(lambda n: n / 1000), min_size=1, max_size=6))
def test_cosine_horizon_is_the_first_rise_of_the_mean_cosine(bank):
    horizon = int(cosine_horizon(np.array(bank)))
    with mpmath.workdps(40):
        angles = [[mpmath.mpf(m) * t for t in bank] for m in range(horizon + 1)]
        mean = [mpmath.fsum(mpmath.cos(a) for a in row) for row in angles]
    rises = [m for m in range(1, len(mean)) if mean[m] > mean[m - 1]]
    assert rises == [horizon]


@pytest.mark.parametrize("turns", [1, 2, 7])
def test_the_rounding_of_whole_turns_is_no_rise(turns):
    assert cosine_horizon(2 * math.pi * turns, 120) == math.inf
    assert cosine_horizon([2 * math.pi * turns, 0.0], 120) == math.inf
    assert cosine_horizon(10 * math.pi / 3, 120) == 3.0
    assert cosine_horizon(5e-324) == math.inf


@settings(deadline=None)
@given(st.floats(-49, -30))
def test_the_slowest_pairs_turn_back_a_position_late_at_most(power):
    """The first whole m with (m - 1/2) theta > pi."""
    with mpmath.workdps(60):
        first = int(mpmath.floor(mpmath.pi / 2**power + 0.5)) + 1
    assert cosine_horizon(2**power) - first in (0, 1)


def test_cosine_horizon_of_known_banks():
    assert cosine_horizon(1.0) == 4
    assert cosine_horizon(0.4096) == 9
    assert cosine_horizon(FULL_HEAD) == 12
    assert cosine_horizon(np.zeros(3)) == math.inf
    assert cosine_horizon(FULL_HEAD, max_distance=11) == math.inf
    for turns, horizon in ((0.5, 2049), (1.0, 1025)):
        bank, _ = rescaled_frequencies("monotone", 128, max_positions=2048, turns=turns)
        assert cosine_horizon(bank[0]) == horizon


def test_cosine_horizon_looks_as_far_as_64_half_turns_of_the_fastest_pair():
    still = 2 * math.pi  # a whole turn a position, so the slower pair alone decides
    assert cosine_horizon([still, 0.1]) == 32
    assert cosine_horizon([still, 0.05]) == 64
    assert cosine_horizon([still, 0.04]) == math.inf
    assert cosine_horizon([still, 0.04], max_distance=100) == 80


@pytest.mark.parametrize(
    "search",
    [
        lambda far: mean_cosine(np.arange(far), FULL_HEAD),
        lambda far: code_distance(np.arange(far), FULL_HEAD),
        lambda far: nearest_code(FULL_HEAD, far),
        lambda far: cosine_horizon(np.full(64, 2 * math.pi), far),
    ],
)
def test_memory_stays_bounded_however_far_one_looks(search):
    tracemalloc.start()
    try:
        search(200_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40e6  # all angles at once would be 102 MB


# Contrast and noise ----------------------------------------------------------------------------

TORCH = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@pytest.mark.parametrize("dtype", TORCH)
def test_rounding_noise_is_what_rounding_does(dtype):
    generator = torch.Generator().manual_seed(0)
    octaves = 4 * torch.rand(400_000, generator=generator, dtype=torch.float64)
    x = torch.exp2(octaves)
    relative = (x.to(TORCH[dtype]).double() - x) / x
    assert relative.square().mean().sqrt().item() == pytest.approx(rounding_noise(dtype), rel=0.02)


@pytest.mark.parametrize("speed", [1.0, 1 / 16, 0.004, math.pi / 2048, math.pi / 32_768])
@pytest.mark.parametrize("dtype", TORCH)
def test_neighbour_snr_is_what_random_queries_and_keys_show(dtype, speed):
    """The step and its error, measured at random positions: within 5 % of the formula."""
    hands = torch.from_numpy(speed * FULL_HEAD)
    generator = torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 16_000, 64, generator=generator, dtype=torch.complex128)
    at = torch.randint(1, 100_000, (16_000, 1), generator=generator)

    def turned(z, position):
        return torch.view_as_real(z * torch.exp(1j * position * hands))

    query, here, back = turned(q, at), turned(k, at), turned(k, at - 1)
    step = (query * (back - here)).sum((1, 2))
    query, here, back = (x.to(TORCH[dtype]).double() for x in (query, here, back))
    noise = (query * (back - here)).sum((1, 2)) - step
    measured = (step.square().mean() / noise.square().mean()).sqrt().item()
    assert neighbour_snr(hands.numpy(), dtype) == pytest.approx(measured, rel=0.05)


def test_nothing_is_heard_of_a_bank_that_stands_still():
    assert neighbour_snr(np.zeros(3), "bfloat16") == 0.0
    assert neighbour_snr([1e-30], "bfloat16") < 1e-12


def test_what_hardly_moves_is_not_heard_either():
    assert neighbour_snr([1e-320], "float32") == 0.0


def test_neighbour_contrast_is_the_code_distance_of_one():
    assert neighbour_contrast(FULL_HEAD) == code_distance(1, FULL_HEAD)


# Unseen angles ---------------------------------------------------------------------------------


def test_unseen_pairs_are_those_that_have_not_made_a_turn_and_go_further_now():
    trained, asked = 64, 256
    inv_freq = inverse_frequencies(16, 500.0)
    flags = unseen_pairs(inv_freq, asked, inv_freq, trained)
    assert flags.tolist() == [trained * theta < 2 * math.pi for theta in inv_freq]
    assert 0 < flags.sum() < 8
    assert not unseen_pairs(inv_freq, trained, inv_freq, trained).any()


@given(st.integers(1, 10_000))
def test_what_is_pressed_together_meets_no_new_angle_by_rounding(factor):
    inv_freq = inverse_frequencies(16, 500.0)
    assert not unseen_pairs(inv_freq / factor, 64 * factor, inv_freq, 64).any()


def test_23_slow_pairs_of_a_full_head_meet_new_angles_from_2048_to_8192():
    assert unseen_pairs(FULL_HEAD, 8192, FULL_HEAD, 2048).sum() == 23
