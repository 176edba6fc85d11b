"""The claims of chapter 04, "From one plane to many", checked apart from the chapter's code."""

import json
import math
from pathlib import Path

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

CHAPTER = Path(__file__).parents[2] / "notebooks" / "04-many-planes.ipynb"
THETA = 10_000.0 ** (-np.arange(64) / 64)  # d = 128, written out: no function of the package


def scores(q, k, query_at, key_at, inv_freq=THETA):
    """Scores of rows of q and k (..., d) at one position each, by the package's torch code."""
    both = torch.as_tensor(np.stack((q, k), axis=-2))
    table = rope_table([query_at, key_at], both.shape[-1], inv_freq=inv_freq, dtype=both.dtype)
    return apply_rope(both, *table, interleaved=True).prod(-2).sum(-1).numpy()


def channels(z):
    """Complex pairs (..., d/2) as interleaved channels (..., d)."""
    return np.stack((z.real, z.imag), axis=-1).reshape(*z.shape[:-1], -1)


def contents(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw h_i = q_i conj(k_i) of 64 pairs for standard normal q and k."""
    q, k = rng.normal(size=(2, *shape, 64)) + 1j * rng.normal(size=(2, *shape, 64))
    return q * k.conj()


def abel_sum(distance: int) -> float:
    """Sum |S_j| over j = 1 .. 64, by its definition."""
    waves = [np.exp(1j * distance * t) for t in THETA]
    return sum(abs(sum(waves[:j])) for j in range(1, 65))


# One hand -------------------------------------------------------------------------------------


def test_one_hand_takes_distance_44_for_distance_0():
    assert round(44 - 14 * math.pi, 4) == 0.0177
    assert round(math.cos(44), 5) == 0.99984


# Claim 4.1 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 8, 128])
def test_scores_of_the_package_depend_on_the_distance_for_any_speeds(dim):
    """Refuted if a score by the package at one distance, for random speeds, changes with the
    place."""
    rng = np.random.default_rng(dim)
    speeds = rng.uniform(0, 3.2, size=dim // 2)
    q, k = rng.normal(size=(2, dim))
    for distance in (0, 1, -7, 4095):
        found = [scores(q, k, key_at + distance, key_at, speeds) for key_at in (7, 8, 1003, 50_000)]
        assert np.ptp(found) < 1e-8
        h = (q[0::2] + 1j * q[1::2]) * (k[0::2] - 1j * k[1::2])
        assert found[0] == pytest.approx(np.sum(h * np.exp(1j * distance * speeds)).real, abs=1e-8)


@pytest.mark.parametrize("dim", [2, 4, 8, 64, 128])
@pytest.mark.parametrize("interleaved", [True, False])
def test_block_matrices_compose_to_the_difference(dim, interleaved):
    """Refuted if a block matrix is not orthogonal, or the product of two is not that of the
    difference."""
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


# Claim 4.2 ------------------------------------------------------------------------------------


def test_elementwise_complex_and_matrix_forms_agree():
    """Refuted if an element-wise form written here, the complex form and the matrix form differ
    by more than rounding."""
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


class Counted(float):
    """A number that counts the multiplications it takes part in."""

    multiplications = 0

    def __mul__(self, other):
        Counted.multiplications += 1
        return Counted(float(self) * float(other))

    __rmul__ = __mul__

    def __add__(self, other):
        return Counted(float(self) + float(other))

    __radd__ = __add__

    def __neg__(self):
        return Counted(-float(self))


@pytest.mark.parametrize("dim", [8, 128])
def test_multiplications_are_counted(dim):
    """Refuted if numbers that count their own multiplications count other than 2d and d
    squared."""
    cells = json.loads(CHAPTER.read_text("utf8"))["cells"]
    source = next(s for c in cells if "def rotate_elementwise" in (s := "".join(c["source"])))
    shown = {"np": np}
    exec(source[: source.index("\n\n\nx = ")], shown)  # the chapter's own function
    x = np.random.default_rng(0).normal(size=dim)
    counted = np.array([Counted(value) for value in x], dtype=object)
    matrix = rotation_matrix(3, dim, interleaved=True)
    results = []
    for product, multiplications in (
        (lambda: shown["rotate_elementwise"](counted, 3, inverse_frequencies(dim)), 2 * dim),
        (lambda: matrix.astype(object) @ counted, dim**2),
    ):
        Counted.multiplications = 0
        results.append(product().astype(float))
        assert Counted.multiplications == multiplications
    assert np.allclose(*results, rtol=0, atol=1e-12)


def test_the_matrix_is_zero_but_for_two_entries_a_row():
    matrix = rotation_matrix(1, 128, interleaved=True)
    assert (matrix.size, np.count_nonzero(matrix)) == (16384, 256)
    assert (np.count_nonzero(matrix, axis=1) == 2).all()
    assert 4096 * matrix.size * 4 == 256 * 2**20  # bytes of one matrix a position
    assert 4096 * 2 * 64 * 4 == 2 * 2**20  # bytes of one cos and one sin a pair


# Claim 4.3 ------------------------------------------------------------------------------------


def test_wavelengths_form_a_geometric_series():
    """Refuted if the ratio or the ends of the wavelengths, also with 30 digits, are other than
    stated."""
    theta = inverse_frequencies(128)
    assert np.allclose(theta[:-1] / theta[1:], 10_000 ** (1 / 64), rtol=1e-12)
    assert round(10_000 ** (1 / 64), 4) == 1.1548
    wavelength = wavelengths(theta)
    assert round(wavelength[0], 2) == 6.28
    assert round(wavelength[-1]) == 54410
    assert round(float(2 * mpmath.pi * mpmath.mpf(10_000) ** (mpmath.mpf(126) / 128))) == 54410


def test_any_factor_of_ten_holds_sixteen_hands():
    """Refuted if one of 1,000 random factors of ten between the ends holds more or fewer than
    16 hands."""
    wavelength = wavelengths(inverse_frequencies(128))
    for shortest in np.random.default_rng(0).uniform(wavelength[0], wavelength[-1] / 10, 1000):
        assert np.sum((wavelength >= shortest) & (wavelength < 10 * shortest)) == 16


@pytest.mark.parametrize(("base", "hands"), [(10_000, 46), (500_000, 32)])
def test_hands_that_turn_once_in_4096_tokens(base, hands):
    assert np.sum(wavelengths(inverse_frequencies(128, base)) <= 4096) == hands


# The zebra ------------------------------------------------------------------------------------


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


def test_float32_prints_the_ten_angles_of_token_3_as_stojanovski_does():  # appendix A says so
    printed = [171.8873, 165.8131, 159.9536, 154.3011, 148.8483]
    printed += [143.5883, 138.5141, 133.6192, 128.8973, 124.3423]
    theta = 1.0 / (10_000.0 ** (torch.arange(0, 512, 2).float() / 512))
    degrees = torch.rad2deg(torch.angle(torch.polar(torch.ones(256), 3 * theta)))[:10]
    assert np.allclose(degrees, printed, rtol=0, atol=5e-5)
    exact = float(mpmath.degrees(3 * mpmath.mpf(10_000) ** (-mpmath.mpf(10) / 512)))
    assert round(exact, 4) == 143.5882  # the sixth is rounded up by float32


# Claim 4.4 ------------------------------------------------------------------------------------


def vaswani(length, dim):
    """Section 3.5 of Vaswani et al. (2017), entry by entry."""
    p = np.zeros((length, dim))
    for m in range(length):
        for t in range(dim // 2):
            p[m, 2 * t] = math.sin(m / 10_000 ** (2 * t / dim))
            p[m, 2 * t + 1] = math.cos(m / 10_000 ** (2 * t / dim))
    return p


def test_sinusoidal_encoding_is_the_rope_table_of_its_width():
    """Refuted if the formula of 2017 gives other numbers than the table, or the product of two
    rows is not the sum of cosines."""
    p = vaswani(128, 64)
    cos, sin = rope_table(range(128), 64, dtype=torch.float64)
    assert np.allclose(p, torch.stack((sin, cos), dim=-1).flatten(1), rtol=0, atol=1e-12)
    for m, n in [(0, 0), (3, 100), (127, 5)]:
        waves = sum(math.cos((m - n) * t) for t in inverse_frequencies(64))
        assert p[m] @ p[n] == pytest.approx(waves, abs=1e-10)
    turned = rotate_by_matrix(p[:118], np.full(118, -10), interleaved=True)
    assert np.allclose(turned, p[10:], rtol=0, atol=1e-12)


def test_the_table_of_a_head_is_a_part_of_the_table_of_the_model():
    """Refuted if every eighth pair of a model's table is not the table of one head."""
    model, head = vaswani(128, 512), vaswani(128, 64)
    assert not np.allclose(model[:, :64], head, atol=0.5)  # not its first channels
    pairs = model.reshape(128, 256, 2)[:, ::8]
    assert np.allclose(pairs.reshape(128, 64), head, rtol=0, atol=1e-12)


def test_added_and_projected_two_positions_are_no_longer_a_function_of_the_distance():
    p = vaswani(40, 64)
    w_q, w_k = np.random.default_rng(0).normal(size=(2, 64, 64)) / 8
    term = (p @ w_q) @ (p @ w_k).T
    assert np.ptp(np.diagonal(p @ p.T, 5)) < 1e-9 < 5 < np.ptp(np.diagonal(term, 5))


# Claim 4.5 ------------------------------------------------------------------------------------


def test_heights_and_starts_are_read_off_the_scores_and_predict_others():
    """Refuted if waves fitted to some scores do not predict the others, have other heights or
    starts than stated, or fit as well at other speeds.

    Fit the waves to scores of the package at some distances; ask for the others.
    """
    rng = np.random.default_rng(0)
    theta = 10_000.0 ** (-np.arange(8) / 8)
    some, others = np.split(rng.choice(20_000, 300, replace=False), [200])
    for _ in range(3):
        q, k = rng.normal(size=(2, 8, 2)) @ [1, 1j]

        def at(distances, both=(q, k)):
            return np.array([scores(*map(channels, both), s + 3, 3, theta) for s in distances])

        def waves(distances, speeds):
            angle = np.outer(distances, speeds)
            return np.concatenate((np.cos(angle), -np.sin(angle)), axis=1)

        fitted = np.linalg.lstsq(waves(some, theta), at(some), rcond=None)[0]
        assert np.allclose(waves(others, theta) @ fitted, at(others), rtol=0, atol=1e-8)
        heights, starts = np.hypot(*fitted.reshape(2, 8)), np.arctan2(fitted[8:], fitted[:8])
        assert np.allclose(heights, np.abs(q) * np.abs(k))
        assert np.allclose(np.exp(1j * starts), np.exp(1j * (np.angle(q) - np.angle(k))))
        other_speeds = np.linalg.lstsq(waves(some, 0.9 * theta), at(some), rcond=None)[0]
        assert np.abs(waves(others, 0.9 * theta) @ other_speeds - at(others)).max() > 1


# Claim 4.6 ------------------------------------------------------------------------------------


def mean_scores_of_agreeing_contents(distances, inv_freq):
    """Mean scores of 20,000 correlated queries and keys, divided by that at distance 0."""
    rng = np.random.default_rng(6)
    q, other = rng.normal(size=(2, 20_000, 128))
    k = 0.6 * q + 0.8 * other  # any two channels of a pair correlate by 0.6
    return np.array([scores(q, k, 5 + s, 5, inv_freq).mean() for s in distances]) / (0.6 * 128)


def test_expected_scores_of_agreeing_contents_follow_the_kernel():
    """Refuted if mean scores of sampled contents that agree miss the line by more than stated,
    or follow it at other speeds, too."""
    distances = np.unique(np.geomspace(1, 1000, 40).round().astype(int))
    found = mean_scores_of_agreeing_contents(distances, THETA)
    line = 1 - (np.log(distances) + 0.5772) / math.log(10_000)
    assert np.abs(found - line).max() < 0.14
    assert np.sqrt(np.mean((found - line) ** 2)) < 0.05
    cauchy = np.tan(np.pi / 2 * (np.arange(64) + 0.5) / 64) / 100  # another list, another kernel
    found = mean_scores_of_agreeing_contents(distances, cauchy)
    assert np.abs(found - np.exp(-distances / 100)).max() < 0.11
    assert np.abs(found - line).max() > 0.3


def test_the_kernel_of_many_geometric_hands_is_the_integral():
    """Refuted if the mean cosine of many hands does not approach the integral by quadrature."""
    base = mpmath.mpf(10_000)

    def formula(s):
        return float((mpmath.ci(s) - mpmath.ci(s / base)) / mpmath.log(base))

    for s in (1, 2, 7, 30):
        waves = lambda u, s=s: mpmath.cos(s * base**-u)  # noqa: E731
        by_quadrature = mpmath.quad(waves, mpmath.linspace(0, 1, 9))
        assert formula(s) == pytest.approx(float(by_quadrature), abs=1e-9)
    distances = np.arange(1, 1001)
    integral = np.array([formula(int(s)) for s in distances])
    worst = {}
    for hands in (64, 1024, 4096):
        theta = 10_000.0 ** (-np.arange(hands) / hands)
        worst[hands] = np.abs(np.cos(np.outer(distances, theta)).mean(axis=1) - integral).max()
    assert worst[4096] < 0.001 < worst[1024] < 0.013 < 0.13 < worst[64] < 0.14
    line = 1 - (np.log(distances) + 0.5772) / math.log(10_000)
    many = np.cos(np.outer(distances, 10_000.0 ** (-np.arange(1024) / 1024))).mean(axis=1)
    assert np.sqrt(np.mean((many - line) ** 2)) < 0.006  # most of 0.05 is that of 64 hands
    assert np.abs(integral - line)[9:].max() < 0.01  # from distance 10 on
    assert formula(56) == pytest.approx(0.5, abs=0.001)


def test_the_even_list_is_near_zero_and_back_at_402():
    kernel = np.cos(np.outer(np.arange(403), np.arange(1, 65) / 64)).mean(axis=1)
    assert np.abs(kernel[3:390]).max() < 0.25
    assert np.abs(kernel[10:390]).max() < 0.1
    assert round(kernel[402], 3) == 0.997


def test_kernels_of_lists_are_positive_definite_and_an_edge_is_not():
    rng = np.random.default_rng(0)
    away = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
    for hands in (1, 3, 64):
        kernel = np.cos(np.outer(np.arange(60), rng.uniform(0, np.pi, hands))).mean(axis=1)
        assert np.linalg.eigvalsh(kernel[away]).min() > -1e-9
    assert np.linalg.eigvalsh((away <= 10).astype(float)).min() < -1


# Claim 4.7 ------------------------------------------------------------------------------------


def test_abel_factor_falls_as_a_trend():
    values = [round(abel_sum(distance) / 64, 2) for distance in (0, 1, 10, 100, 1000)]
    assert values == [32.5, 31.54, 17.95, 10.23, 4.47]
    waves = np.exp(1j * np.outer(np.arange(256), THETA))
    factor = np.abs(np.cumsum(waves, axis=1)).mean(axis=1)
    assert np.sum(np.diff(factor) > 0) == 115
    assert [round(1 / value, 2) for value in (31.54, 4.47)] == [0.03, 0.22]


@pytest.mark.parametrize(("distance", "low", "high"), [(1, 130, 155), (10, 70, 90), (1000, 18, 23)])
def test_abel_bound_lies_far_above_the_trivial_one_on_random_heads(distance, low, high):
    """Refuted if the bound is less than 10 times the trivial one for one of 800 random
    contents."""
    h = contents(np.random.default_rng(distance), 800)
    roughness = np.abs(np.diff(h, append=0, axis=1)).max(axis=1)
    ratio = roughness * abel_sum(distance) / np.abs(h).sum(axis=1)
    assert ratio.min() > 10
    assert low < np.median(ratio) < high


def test_smooth_contents_of_any_direction_get_below_the_trivial_bound():
    """Refuted if smooth contents of any direction get below the trivial bound elsewhere than
    the size of their steps says.

    Smooth random walks over the pairs that end in small steps, complex, of no direction.
    """
    rng = np.random.default_rng(0)
    below = {1: 0, 1000: 0}
    for _ in range(50):
        knots = rng.normal(size=4) + 1j * rng.normal(size=4)
        at = np.linspace(0, 4, 65)
        h = np.interp(at, range(5), [*knots, 0])[:64]  # the last knot: down to nothing
        for distance in below:
            roughness = np.abs(np.diff(h, append=0)).max()
            bites = roughness * abel_sum(distance) < np.abs(h).sum()
            assert bites == (roughness < np.abs(h).mean() / (abel_sum(distance) / 64))
            below[distance] += bites
    assert below[1000] >= 40
    assert below[1] == 0  # at distance 1 the steps must be below 3% of the mean
    jump = np.ones(64)  # as smooth as can be, but for the step down to nothing at its end
    assert abel_sum(1000) > np.abs(jump).sum()


@pytest.mark.parametrize("distance", [1, 10, 100, 1000])
def test_abel_bound_holds_and_bites_on_a_smooth_ramp(distance):
    for ramp, bites in ((np.arange(64.0, 0, -1), True), (np.arange(1.0, 65), False)):
        roughness = np.abs(np.diff(ramp, append=0)).max()
        score = abs(np.sum(ramp * np.exp(1j * distance * THETA)).real)
        assert score <= roughness * abel_sum(distance)
        assert (roughness * abel_sum(distance) < ramp.sum()) == bites


def test_abel_bound_is_a_bound():
    """Refuted if a score exceeds the bound."""
    h = contents(np.random.default_rng(5), 50)
    roughness = np.abs(np.diff(h, append=0, axis=1)).max(axis=1)
    for distance in (1, 7, 300):
        waves = np.exp(1j * distance * THETA)
        partial = np.cumsum(waves)  # S_1 .. S_64
        by_parts = (-np.diff(h, append=0, axis=1) * partial).sum(axis=1)
        assert np.allclose(by_parts, (h * waves).sum(axis=1))
        assert (np.abs(by_parts.real) <= roughness * abel_sum(distance)).all()


# Claim 4.8 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [0, 10, 1000, 100_000])
def test_distance_acts_through_the_means(distance):
    """Refuted if mean scores of 20,000 sampled pairs miss the formula of the means, or contents
    of mean 0 have a mean score.

    Random means in all pairs, scores by the package at far positions.
    """
    rng = np.random.default_rng(7)
    mean_q, mean_k = rng.normal(size=(2, 64, 2)) @ [1, 1j]
    q, k = channels(np.stack((mean_q, mean_k)))[:, None] + rng.normal(size=(2, 20_000, 128))
    found = scores(q, k, distance + 11, 11)
    expected = np.sum(mean_q * mean_k.conj() * np.exp(1j * distance * THETA)).real
    assert abs(found.mean() - expected) < 4.5 * found.std() / math.sqrt(20_000)
    without = scores(*rng.normal(size=(2, 20_000, 128)), distance + 11, 11)
    assert abs(without.mean()) < 4.5 * math.sqrt(128 / 20_000)
    assert without.std() == pytest.approx(math.sqrt(128), rel=0.03)


def test_independent_pairs_without_a_preferred_direction_keep_the_spread():
    """Refuted if the spread of sampled scores follows the distance under both conditions, or
    does not when one is dropped.

    Both conditions are needed: give one of them up, and the spread follows the distance.
    """
    rng = np.random.default_rng(8)
    size = rng.uniform(0.2, 2, size=(2, 1, 64))  # pairs vary by different amounts
    free = rng.normal(size=(2, 20_000, 64, 2)) @ [1, 1j]
    heads = {
        "as the claim says": free,
        "one direction in each pair": free.real + 0j,
        "all pairs alike": np.broadcast_to(free[..., :1], free.shape),
    }
    mean = rng.normal(size=(2, 1, 64))
    widest = {}
    for name, noise in heads.items():
        q, k = channels(mean + size * noise)
        spreads = [scores(q, k, s + 2, 2).std() for s in (0, 3, 30, 300, 3000)]
        widest[name] = max(spreads) / min(spreads)
    assert widest.pop("as the claim says") < 1.03
    assert min(widest.values()) > 1.2


def test_a_projection_with_a_bias_gives_its_queries_a_mean():
    """Refuted if the biased projection of transformers' Qwen 2 gives queries another mean than
    its bias.

    Qwen 2 has such a bias in its projections of queries and keys.
    """
    qwen2 = pytest.importorskip("transformers.models.qwen2.modeling_qwen2")
    config = qwen2.Qwen2Config(hidden_size=64, num_attention_heads=2, num_key_value_heads=2)
    attention = qwen2.Qwen2Attention(config, layer_idx=0)
    assert attention.q_proj.bias is not None
    assert attention.k_proj.bias is not None
    with torch.no_grad():
        attention.q_proj.bias.normal_(generator=torch.Generator().manual_seed(0))
        x = torch.randn(4000, 64, generator=torch.Generator().manual_seed(1))
        mean = attention.q_proj(torch.cat((x, -x))).mean(dim=0)  # inputs of mean 0
    assert torch.allclose(mean, attention.q_proj.bias, atol=1e-4)


# The myth of far tokens -----------------------------------------------------------------------


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
    found = keys @ (rotation_matrix(1000, 128) @ q)
    assert 1000 - found.argmax() == peak
    assert found.max() == pytest.approx(q @ q)


# Claim 4.9 ------------------------------------------------------------------------------------


def attention_on_the_aimed_key(pairs, gain=1.0):
    """One query at position 4,095, 4,096 equal keys, torch's own attention in float64."""
    rng = np.random.default_rng(9)
    z = np.zeros(64, dtype=complex)
    z[pairs] = np.exp(2j * np.pi * rng.random(len(pairs)))  # one length, any directions
    q = channels(z) * math.sqrt(128 / len(pairs))
    assert np.linalg.norm(q) == pytest.approx(math.sqrt(128))
    k = rotate_by_matrix(q[None], np.array([500]), interleaved=True)[0]
    cos, sin = rope_table(range(4096), 128, dtype=torch.float64)
    keys = apply_rope(torch.tensor(k).expand(4096, 128), cos, sin, interleaved=True)
    query = apply_rope(torch.tensor(q)[None], cos[-1:], sin[-1:], interleaved=True)
    mark = torch.zeros(4096, 1, dtype=torch.float64)
    mark[4095 - 500] = 1
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(gain * query[None], keys[None], mark[None]).item()


HEADS = [(range(64), 0.18, 2.5), (range(16), 0.54, 0.96), (range(4), 0.06, 9.2)]
HEADS += [(range(32, 64), 0.004, 11_000)]


@pytest.mark.parametrize(("pairs", "share", "price"), HEADS)
def test_attention_of_a_layer_on_an_aimed_key(pairs, share, price):
    """Refuted if a softmax over 4,096 keys gives the aimed key another share than stated."""
    digits = 2 if share > 0.01 else 3
    assert round(attention_on_the_aimed_key(list(pairs)), digits) == share


def test_four_hands_have_near_repeats_and_sixteen_have_none():
    away = np.arange(1, 3596)  # from the aimed distance, up to 4,095
    four, sixteen = (np.cos(np.outer(away, THETA[:n])).mean(axis=1) for n in (4, 16))
    assert four[0] < 0.7 < 0.99 < four.max()
    assert sixteen.argmax() == 0  # its nearest rival is the neighbour


@pytest.mark.parametrize(("pairs", "share", "price"), HEADS)
def test_half_of_the_attention_costs_what_the_table_says(pairs, share, price):
    """Refuted if scores a little smaller than stated already give one half, or a little larger
    do not.

    A little less than the printed price gives less than one half, a little more gives more.
    """
    less, more = (attention_on_the_aimed_key(list(pairs), price * by) for by in (0.97, 1.03))
    assert less < 0.5 < more
