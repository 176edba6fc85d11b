"""The claims of chapter 04, "From one plane to many", checked apart from the chapter's code."""

import math

import mpmath
import numpy as np
import pytest
import torch

from rope_minimal import (
    apply_rope,
    inverse_frequencies,
    rope_table,
    rotate_by_matrix,
    rotate_complex,
    rotation_matrix,
    wavelengths,
)

THETA = 10_000.0 ** (-np.arange(64) / 64)  # d = 128, written out: no function of the package
# token 3, d = 512, degrees, as Stojanovski prints them
PRINTED = [171.8873, 165.8131, 159.9536, 154.3011, 148.8483]
PRINTED += [143.5883, 138.5141, 133.6192, 128.8973, 124.3423]


def contents(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw h_i = q_i conj(k_i) of 64 pairs for standard normal q and k."""
    q, k = rng.normal(size=(2, *shape, 64)) + 1j * rng.normal(size=(2, *shape, 64))
    return q * k.conj()


def abel_sum(distance: int) -> float:
    """Sum |S_j| over j = 1 .. 64, by its definition."""
    waves = [np.exp(1j * distance * t) for t in THETA]
    return sum(abs(sum(waves[:j])) for j in range(1, 65))


# Claim 4.1 ------------------------------------------------------------------------------------


def test_one_plane_score_depends_on_the_distance_only():
    q, k = np.array([0.6, 0.8]), np.array([1.0, -0.4])
    phi = math.atan2(0.8, 0.6) - math.atan2(-0.4, 1.0)
    for m, n in [(5, 3), (1005, 1003), (3, 5), (0, 0), (100_000, 99_000)]:
        rotated = rotate_by_matrix(np.stack((q, k)), np.array([m, n]))
        expected = np.linalg.norm(q) * np.linalg.norm(k) * math.cos(phi + (m - n))
        assert rotated[0] @ rotated[1] == pytest.approx(expected, abs=1e-10)


def test_one_hand_takes_distance_44_for_distance_0():
    assert round(44 - 14 * math.pi, 4) == 0.0177
    assert round(math.cos(44), 5) == 0.99984


# Claim 4.2 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 4, 8, 64, 128])
@pytest.mark.parametrize("interleaved", [True, False])
def test_block_matrices_compose_to_the_difference(dim, interleaved):
    for m, n in [(37, 41), (0, 9), (4096, 1), (100_000, 99_999)]:
        r_m, r_n, r_difference = (
            rotation_matrix(p, dim, interleaved=interleaved) for p in (m, n, n - m)
        )
        assert np.allclose(r_m.T @ r_m, np.eye(dim), rtol=0, atol=1e-12)
        assert np.allclose(r_m.T @ r_n, r_difference, rtol=0, atol=1e-10)


def test_the_opposite_sign_of_the_difference_is_wrong():
    wrong = rotation_matrix(37 - 41, 8)
    product = rotation_matrix(37, 8).T @ rotation_matrix(41, 8)
    assert np.abs(product - wrong).max() > 1


# Claim 4.3 ------------------------------------------------------------------------------------


def test_elementwise_complex_and_matrix_forms_agree():
    x = np.random.default_rng(0).normal(size=(5, 128))
    positions = np.array([0, 1, 44, 4096, 100_000])
    angle = positions[:, None] * THETA
    cos, sin = np.repeat(np.cos(angle), 2, axis=1), np.repeat(np.sin(angle), 2, axis=1)
    swapped = np.empty_like(x)
    swapped[:, 0::2], swapped[:, 1::2] = -x[:, 1::2], x[:, 0::2]
    elementwise = x * cos + swapped * sin
    assert np.allclose(
        elementwise, rotate_by_matrix(x, positions, interleaved=True), rtol=0, atol=1e-10
    )
    assert np.allclose(
        elementwise, rotate_complex(x, positions, interleaved=True), rtol=0, atol=1e-10
    )
    table = rope_table(positions, 128, dtype=torch.float64)
    ours = apply_rope(torch.tensor(x), *table, interleaved=True)
    assert np.allclose(elementwise, ours, rtol=0, atol=1e-10)


def test_the_matrix_is_zero_but_for_two_entries_a_row():
    matrix = rotation_matrix(1, 128, interleaved=True)
    assert (matrix.size, np.count_nonzero(matrix)) == (16384, 256)
    assert (np.count_nonzero(matrix, axis=1) == 2).all()
    assert 4096 * matrix.size * 4 == 256 * 2**20  # bytes of one matrix a position
    assert 4096 * 2 * 64 * 4 == 2 * 2**20  # bytes of one cos and one sin a pair


# Claim 4.4 ------------------------------------------------------------------------------------


def test_wavelengths_form_a_geometric_series():
    theta = inverse_frequencies(128)
    assert np.allclose(theta[:-1] / theta[1:], 10_000 ** (1 / 64), rtol=1e-12)
    assert round(10_000 ** (1 / 64), 4) == 1.1548
    wavelength = wavelengths(theta)
    assert round(wavelength[0], 2) == 6.28
    assert round(wavelength[-1]) == 54410
    assert round(float(2 * mpmath.pi * mpmath.mpf(10_000) ** (mpmath.mpf(126) / 128))) == 54410
    for decade in (10, 100, 1000):
        assert np.sum((wavelength >= decade) & (wavelength < 10 * decade)) == 16


@pytest.mark.parametrize(("base", "hands"), [(10_000, 46), (500_000, 32)])
def test_hands_that_turn_once_in_4096_tokens(base, hands):
    assert np.sum(wavelengths(inverse_frequencies(128, base)) <= 4096) == hands


# Claim 4.5 ------------------------------------------------------------------------------------


def test_angles_of_token_3_are_the_printed_ones():
    with mpmath.workdps(30):
        exact = [
            float(mpmath.degrees(3 * mpmath.mpf(10_000) ** (-mpmath.mpf(2 * i) / 512)))
            for i in range(10)
        ]
    ours = np.rad2deg(3 * inverse_frequencies(512))[:10]
    assert np.allclose(ours, exact, rtol=0, atol=1e-10)
    assert np.allclose(ours, PRINTED, rtol=0, atol=1e-4)
    assert [i for i in range(10) if round(exact[i], 4) != PRINTED[i]] == [5]
    assert 143.58824 < exact[5] < 143.58825


def test_float32_as_in_the_post_prints_the_same_digits():
    theta = 1.0 / (10_000.0 ** (torch.arange(0, 512, 2).float() / 512))
    turned = torch.polar(torch.ones(256), 3 * theta)
    degrees = torch.rad2deg(torch.angle(turned))[:10]
    assert np.allclose(degrees, PRINTED, rtol=0, atol=5e-5)


# Claim 4.6 ------------------------------------------------------------------------------------


def test_true_angles_are_monotone_and_wrapped_ones_are_not():
    true = np.outer(np.arange(128), inverse_frequencies(512))
    wrapped = np.angle(np.exp(1j * true))
    assert (np.diff(true, axis=0) > 0).all()
    assert (np.diff(true[1:], axis=1) < 0).all()
    turns = (true - wrapped) / (2 * np.pi)
    assert np.allclose(turns, turns.round(), rtol=0, atol=1e-12)
    monotone = (np.diff(wrapped, axis=1) <= 0).all(axis=1) | (np.diff(wrapped, axis=1) >= 0).all(
        axis=1
    )
    assert np.flatnonzero(~monotone).tolist() == list(range(4, 128))
    assert len(range(4, 128)) == 124


# Claim 4.7 ------------------------------------------------------------------------------------


def test_sinusoidal_encoding_is_the_rope_table():
    length, dim = 128, 64
    p = np.zeros((length, dim))
    for m in range(length):
        for t in range(dim // 2):
            p[m, 2 * t] = math.sin(m / 10_000 ** (2 * t / dim))
            p[m, 2 * t + 1] = math.cos(m / 10_000 ** (2 * t / dim))
    cos, sin = rope_table(range(length), dim, dtype=torch.float64)
    assert np.allclose(p, torch.stack((sin, cos), dim=-1).flatten(1), rtol=0, atol=1e-12)
    for m, n in [(0, 0), (3, 100), (127, 5)]:
        waves = sum(math.cos((m - n) * t) for t in inverse_frequencies(dim))
        assert p[m] @ p[n] == pytest.approx(waves, abs=1e-10)
    turned = rotate_by_matrix(p[:118], np.full(118, -10), interleaved=True)
    assert np.allclose(turned, p[10:], rtol=0, atol=1e-12)


# Claim 4.8 ------------------------------------------------------------------------------------


def test_abel_factor_falls_as_a_trend():
    values = [round(abel_sum(distance) / 64, 2) for distance in (0, 1, 10, 100, 1000)]
    assert values == [32.5, 31.54, 17.95, 10.23, 4.47]
    waves = np.exp(1j * np.outer(np.arange(256), THETA))
    factor = np.abs(np.cumsum(waves, axis=1)).mean(axis=1)
    assert np.sum(np.diff(factor) > 0) == 115


# Claim 4.9 ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("distance", "low", "high"), [(1, 130, 155), (10, 70, 90), (1000, 18, 23)])
def test_abel_bound_never_beats_the_trivial_one_on_random_heads(distance, low, high):
    h = contents(np.random.default_rng(distance), 800)
    roughness = np.abs(np.diff(h, append=0, axis=1)).max(axis=1)
    ratio = roughness * abel_sum(distance) / np.abs(h).sum(axis=1)
    assert ratio.min() > 10
    assert low < np.median(ratio) < high


@pytest.mark.parametrize("distance", [1, 10, 100, 1000])
def test_abel_bound_holds_and_bites_on_a_smooth_ramp(distance):
    ramp = np.arange(64.0, 0.0, -1.0)
    score = abs(np.sum(ramp * np.exp(1j * distance * THETA)).real)
    assert score <= abel_sum(distance) < ramp.sum()  # its roughness is 1


def test_abel_bound_is_a_bound():
    h = contents(np.random.default_rng(5), 50)
    roughness = np.abs(np.diff(h, append=0, axis=1)).max(axis=1)
    for distance in (1, 7, 300):
        score = np.abs((h * np.exp(1j * distance * THETA)).sum(axis=1).real)
        assert (score <= roughness * abel_sum(distance)).all()


# Claim 4.10 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [0, 10, 1000, 100_000])
def test_score_decays_only_for_aligned_content(distance):
    h = contents(np.random.default_rng(2), 20_000)
    scores = (h * np.exp(1j * distance * THETA)).sum(axis=1).real
    assert abs(scores.mean()) < 0.35  # 4 standard errors of sqrt(128 / 20000)
    assert scores.std() == pytest.approx(math.sqrt(128), rel=0.02)


def test_aligned_score_falls_from_its_peak_at_distance_0():
    aligned = np.cos(np.outer(np.arange(1001), THETA)).mean(axis=1)
    assert aligned.argmax() == 0
    assert aligned[1:].max() < 0.98
    assert aligned[800:].max() < 0.4


@pytest.mark.parametrize("peak", [1, 44, 500])
def test_a_key_can_be_aimed_at_any_distance(peak):
    q = np.random.default_rng(3).normal(size=128)
    k = rotation_matrix(peak, 128) @ q
    keys = rotate_complex(np.tile(k, (1001, 1)), np.arange(1001))
    scores = keys @ (rotation_matrix(1000, 128) @ q)
    assert 1000 - scores.argmax() == peak
    assert scores.max() == pytest.approx(q @ q)
