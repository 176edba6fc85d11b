"""The claims of chapters 06 and 07, checked apart from the chapters' code."""

import math
from itertools import combinations, pairwise

import mpmath
import numpy as np
import pytest
import sympy as sp
import torch

from rope_minimal import apply_rope, rescaled_frequencies, rope_table, rotation_matrix
from ropebook.aliasing import (
    angle_horizon,
    cosine_horizon,
    near_repeats,
    nearest_code,
    neighbour_contrast,
    unseen_pairs,
    wrapped_angle,
)

TURN = 2 * math.pi
THETA = 10_000.0 ** (-np.arange(64) / 64)  # d = 128, written out: no function of the package
WINDOW = 2048
A = math.pi / WINDOW * THETA  # the two reconstructions, written out
B = 2 * math.pi / WINDOW * THETA


def bank(dim, base=10_000.0):
    """Inverse frequencies, written out."""
    return base ** (-np.arange(0, dim, 2) / dim)


def distances_of_codes(bank, last):
    """D(1) .. D(last) from unit complex numbers: another formula than the package's."""
    blocks = np.array_split(np.arange(1, last + 1), max(1, last * len(bank) // 2**20))
    codes = (np.exp(1j * m[:, None] * bank) for m in blocks)
    return np.concatenate([np.sqrt((np.abs(1 - code) ** 2).mean(1)) for code in codes])


def turned(x, positions, own):
    """Vectors as the package rotates them by their positions, in float64."""
    cos, sin = rope_table(positions, 2 * len(own), inv_freq=own, dtype=torch.float64)
    x = torch.as_tensor(x, dtype=torch.float64)
    return apply_rope(x.expand(len(positions), -1), cos, sin)


def scores(q, k, distances, own):
    """Scores of a query at each distance and a key at 0."""
    parts = np.array_split(distances, max(1, len(distances) * len(own) // 2**20))
    return np.concatenate([(turned(q, part, own) @ torch.as_tensor(k)).numpy() for part in parts])


def with_lengths(lengths, seed=0):
    """A vector (halves) whose pairs have these lengths and point anywhere."""
    phase = np.random.default_rng(seed).uniform(0, TURN, len(lengths))
    return np.concatenate([lengths * np.cos(phase), lengths * np.sin(phase)])


def own_scores(distances, own, lengths=None):
    """Scores of a vector with itself over distances, 1 at distance 0."""
    x = with_lengths(np.sqrt(np.ones(len(own)) if lengths is None else lengths))
    return scores(x, x, distances, own) / (x @ x)


def angles_of_a_hand(theta, last):
    """Where the hand points at positions 0 .. last, read off a rotated vector: [0, 2 pi)."""
    x, y = turned([1.0, 0.0], np.arange(last + 1), np.array([theta])).T
    return np.mod(np.arctan2(y.numpy(), x.numpy()) + 1e-12, TURN) - 1e-12


# 06 Aliasing -------------------------------------------------------------------------------------


def test_the_angle_of_the_fastest_hand_wraps_at_7():
    """Refuted if angles by Python's own remainder wrap elsewhere or have other values."""
    angles = angles_of_a_hand(1.0, 7)
    assert np.round(angles, 4).tolist() == [0, 1, 2, 3, 4, 5, 6, 0.7168]
    assert wrapped_angle(np.arange(8.0)) == pytest.approx(angles, abs=1e-9)
    assert angle_horizon(1.0) == 7


def test_the_cosine_turns_at_4_before_the_angle_wraps():
    """Refuted if scores of the package at theta = 1 first rise elsewhere than at 4, or have
    other values."""
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=2)
        s = scores(x, x, np.arange(8), np.array([1.0])) / (x @ x)
        assert [b > a for a, b in pairwise(s)].index(True) + 1 == 4 == cosine_horizon(1.0)
        assert s[[1, 3, 4, 6]].round(3).tolist() == [0.540, -0.990, -0.654, 0.960]


def test_the_printed_caption_wraps_three_times_before_50():
    """Refuted if counting turns at 0.4096 finds other wraps, or the cosine first rises
    elsewhere."""
    caption = 2 * 2048 / 10_000
    wraps = np.flatnonzero(np.diff(angles_of_a_hand(caption, 2048)) < 0) + 1
    assert wraps[:3].tolist() == [16, 31, 47]
    assert wraps[3] > 50
    assert len(wraps) == 133
    assert np.flatnonzero(np.diff(own_scores(np.arange(20), np.array([caption]))) > 0)[0] + 1 == 9


def test_which_reconstruction_meets_which_wish():
    """Refuted if angles or scores of A, B or 0.4096 rise or wrap where the claim says not, or
    do not where it says so."""
    m = np.arange(WINDOW)
    for theta, angle_grows, cosine_falls in (
        (A[0], True, True),
        (B[0], True, False),
        (0.4096, False, False),
        (1.0, False, False),
    ):
        assert (np.diff(angles_of_a_hand(theta, WINDOW - 1)) > 0).all() == angle_grows
        assert (np.diff(own_scores(m, np.array([theta]))) < 0).all() == cosine_falls
    assert np.argmax(np.diff(own_scores(m, B[:1])) > 0) + 1 == 1025
    for turns, own in ((0.5, A), (1.0, B)):
        assert rescaled_frequencies("monotone", 128, max_positions=WINDOW, turns=turns)[
            0
        ] == pytest.approx(own, rel=1e-14)


@pytest.mark.parametrize(("dim", "base"), [(8, 10_000), (64, 10_000), (64, 500_000)])
def test_no_standard_hand_is_back_exactly(dim, base):
    """Refuted if the continued fraction of a hand's speed, in 200 digits, ends or comes within
    1e-60 of a whole number of turns.

    The nearest it comes in 10**30 steps, from its continued fraction in 200 digits.
    """
    with mpmath.workdps(200):
        for i in range(dim // 2):
            ratio = mpmath.power(base, -mpmath.mpf(2 * i) / dim) / (2 * mpmath.pi)
            x, (q, q_old), (p, p_old) = ratio, (0, 1), (1, 0)
            while q < 10**30:
                whole = int(mpmath.floor(x))
                p, p_old, q, q_old = whole * p + p_old, p, whole * q + q_old, q
                x = 1 / (x - whole)
            assert abs(q * ratio - p) > mpmath.mpf(10) ** -60  # far above 200 digits: not zero
    assert 6 * sp.acos(sp.Rational(1, 2)) == 2 * sp.pi  # no pi in its formula, and back exactly


def test_near_repeats_are_the_convergents_of_two_pi():
    """Refuted if the convergents of two pi up to 131,072 are other distances."""
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


def test_no_distance_of_a_full_head_is_nearer_than_a_neighbour():
    """Refuted if a score by the package at a distance up to 131,072 exceeds that of the
    neighbour.

    Scores of a head whose pairs are equally long, through the package's rotation.
    """
    s = own_scores(np.arange(1, 131_073), THETA)
    assert s.argmax() == 0
    assert (s[1:] < s[0]).all()
    D = np.sqrt(2 - 2 * s)
    assert round(D[0], 3) == 0.244
    assert (D[999:].argmin() + 1000, round(D[999:].min(), 3)) == (1030, 1.165)
    assert round(D[709], 3) == 1.244
    assert math.floor(131_072 / TURN) == 20_860
    assert nearest_code(THETA, 131_072) == (1, pytest.approx(D[0]))


def test_a_head_that_chooses_its_hands_can_be_fooled():
    # Hands 0 and 1 alone, as scores of the package: the far token beats the neighbour.
    """Refuted if the largest set of hands that is fooled, found by sorting, has another size,
    or the named examples are not fooled."""
    two = np.r_[1.0, 1.0, np.zeros(62)]
    s = own_scores(np.array([1, 72_753]), THETA, two)
    assert s[1] > 0.99999 > 0.6 > s[0]
    assert np.sqrt(2 - 2 * s).round(3).tolist() == [0.901, 0.003]

    def away(m, own):
        return np.abs(1 - np.exp(1j * np.multiply.outer(m, own))) ** 2

    # Every choice among nine hands, one after the other, against the sorted sum.
    few = THETA[::7][:9]
    m = np.arange(2, 1500)
    excess = away(m, few) - away(1, few)
    most = np.zeros(len(m), int)
    for size in range(1, 10):
        for chosen in combinations(range(9), size):
            most[excess[:, chosen].sum(1) <= 0] = size
    assert most.tolist() == (np.cumsum(np.sort(excess), axis=1) <= 0).sum(1).tolist()

    # At 7 hands 0 and 1 win and the 46 slowest lose, almost as much.
    at_7 = away(7, THETA) - away(1, THETA)
    assert (at_7[:2] < 0).all()
    assert (at_7[18:] > 0).all()
    assert 0.95 < at_7[18:].sum() / -at_7[:2].sum() < 1

    # All 64: 48 can be fooled, at 7; 49 and, beyond 1,000, 26 cannot, with weights up to 1/26.
    s = own_scores(np.array([1, 7]), THETA, np.r_[1.0, 1.0, np.zeros(16), np.ones(46)])
    assert s[1] > s[0]
    for start, size in ((2, 48), (1001, 25)):
        fooled = {size: False, size + 1: False}
        for part in np.array_split(np.arange(start, 131_073), 64):
            excess = away(part, THETA) - away(1, THETA)
            for n in fooled:
                fooled[n] |= (np.partition(excess, n - 1)[:, :n].sum(1) <= 0).any()
        assert fooled == {size: True, size + 1: False}
    rng = np.random.default_rng(8)
    for _ in range(20):
        weights = rng.permutation(np.r_[np.full(20, 1 / 26), rng.dirichlet(np.ones(44)) * 6 / 26])
        if weights.max() <= 1 / 26:
            s = own_scores(np.r_[1, rng.integers(1001, 131_073, 500)], THETA, weights)
            assert (s[1:] < s[0]).all()


def test_how_many_hands_are_enough():
    """Refuted if distinct rows of bfloat16 tables, or nearest codes by brute force, are other
    than stated."""
    nearest = {dim: nearest_code(bank(dim), 131_072) for dim in (2, 4, 8, 16, 32, 64)}
    assert [near.distance for near in nearest.values()] == [103_993, 84_823, 100_531, 1, 1, 1]
    assert [round(nearest[dim].code_distance, 5) for dim in (2, 4, 8)] == [
        0.00002,
        0.00116,
        0.01763,
    ]
    for dim in (2, 4, 8, 16):  # from complex numbers
        D = distances_of_codes(bank(dim), 131_072)
        assert D.argmin() + 1 == nearest[dim].distance
    off = np.outer(np.arange(2, 131_073), bank(8))  # all four hands back within a tenth
    back = np.abs(off - TURN * np.round(off / TURN)).max(axis=1) < 0.1
    assert (np.flatnonzero(back) + 2).tolist() == [31_416, 69_115, 100_531]
    assert round(16 * TURN / bank(8)[-1]) == 100_531
    assert round(131_072 * (0.2 / TURN) ** 4, 1) == 0.1  # what four lotteries would give
    still = np.outer([710], bank(128))
    assert (still < 0.72).sum() == 16
    for dim, codes in ((2, 8_409), (4, 120_768), (6, 131_072)):  # the package's own table
        table = rope_table(range(131_072), dim, dtype=torch.bfloat16)
        rows = torch.cat(table, dim=1).float()
        assert len(torch.unique(rows, dim=0)) == codes


def test_the_slowest_wavelength_does_not_bound_the_context():
    turning = 1e6 ** (-np.arange(0, 128, 2) / 512)  # Gemma 4, global layers
    assert round(TURN / turning[-1]) == 188
    D = distances_of_codes(turning, 262_144)
    assert round(D[199:].min(), 3) == 1.135
    assert round(D[0], 3) == 0.382
    proportional, _ = rescaled_frequencies("proportional", 512, 1e6, partial_rotary_factor=0.25)
    assert proportional[:64] == pytest.approx(turning, rel=1e-14)


def test_the_mean_cosine_of_a_full_head_rises_at_12():
    """Refuted if scores of a head with equal pairs first rise elsewhere, rise at another share
    of steps, or are lowest elsewhere."""
    s = own_scores(np.arange(2049), THETA)
    assert np.argmax(np.diff(s) > 0) + 1 == 12 == cosine_horizon(THETA)
    assert round((np.diff(s) > 0).mean(), 3) == 0.487
    assert (s.argmin(), round(s.min(), 4)) == (1970, -0.0285)


def test_a_bank_comes_back_as_near_as_the_pigeonhole_says():
    """Refuted if a bank is not back within one box in as many steps as there are boxes, or an
    own score rises before half a turn.

    With boxes of 2 pi / K, K**pairs steps bring all hands within one box of their start.
    """
    rng = np.random.default_rng(60)
    for pairs, boxes in ((1, 5000), (2, 150), (3, 40)):
        for _ in range(5):
            own = rng.uniform(0.01, 3.0, size=pairs)
            codes = np.abs(1 - np.exp(1j * np.outer(np.arange(1, boxes**pairs + 1), own)))
            assert codes.max(axis=1).min() <= TURN / boxes
    for _ in range(50):  # equal vectors: falls at least to half a turn of the fastest hand
        own = rng.uniform(0.01, 1.0, size=rng.integers(1, 65))
        safe = math.floor(math.pi / own.max())
        assert (np.diff(own_scores(np.arange(safe + 1), own)) < 0).all()
        assert cosine_horizon(own) > safe
    q, k = with_lengths(np.ones(64), 1), with_lengths(np.ones(64), 2)
    assert np.diff(scores(q, k, np.arange(2), THETA)) > 0  # other contents: it rises at once


TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def one_step(own, dtype, seed, aimed=False, rows=8000):
    """Steps from the key at its place to the key one nearer: exact, and as stored."""
    generator = torch.Generator().manual_seed(seed)
    hands = torch.from_numpy(own)
    q, k = torch.randn(2, rows, len(own), dtype=torch.complex128, generator=generator)
    at = torch.randint(2, 100_000, (rows, 1), generator=generator)
    if aimed:
        q = -1j * torch.exp(-0.5j * hands) * k
    vectors = [
        torch.view_as_real(z * torch.exp(1j * p * hands))
        for z, p in ((q, at), (k, at - 1), (k, at))
    ]
    stored = [x.to(dtype).double() for x in vectors]
    alike = (stored[1] == stored[2]).double().mean().item()
    return *((x * (b - c)).sum((-1, -2)) for x, b, c in (vectors, stored)), alike


def test_the_price_of_a_monotone_code():
    """Refuted if measured noise of rounded random vectors differs from the stated ratio by more
    than 5%."""
    s = {name: own_scores(np.array([1]), own)[0] for name, own in (("RoPE", THETA), ("A", A))}
    D = {name: math.sqrt(2 - 2 * score) for name, score in s.items()}
    assert round(D["RoPE"], 3) == 0.244
    assert round(D["A"], 6) == 0.000383
    assert round(D["RoPE"] / D["A"]) == 637
    for own, dtype, claimed in (
        (THETA, "bfloat16", 117),
        (THETA, "float16", 842),
        (THETA, "float32", 6.7e6),
        (A, "bfloat16", 0.54),
        (A, "float16", 2.4),
        (A, "float32", 10_700),
        (B, "bfloat16", 0.84),
    ):
        exact, stored, _ = one_step(own, TYPES[dtype], seed=3, rows=16_000)
        measured = (exact.square().mean() / (stored - exact).square().mean()).sqrt().item()
        assert claimed == pytest.approx(measured, rel=0.05)
    *_, alike = one_step(A, torch.bfloat16, seed=3)
    assert alike == pytest.approx(0.93, abs=0.01)


@pytest.mark.parametrize(
    ("own", "low", "high"), [(THETA, 0.99, 1.0), (B, 0.70, 0.76), (A, 0.64, 0.70)]
)
def test_random_heads_confuse_neighbours_in_bf16_and_aimed_ones_do_not(own, low, high):
    """Refuted if random vectors stored in bfloat16 rank neighbours rightly at another rate, or
    aimed ones wrongly."""
    exact, stored, _ = one_step(own, torch.bfloat16, seed=7)
    assert low < ((stored > 0) == (exact > 0)).double().mean() <= high
    for seed in range(3):
        exact, stored, _ = one_step(own, torch.bfloat16, seed, aimed=True)
        assert (exact > 0).all()
        assert (stored >= 0).all()
        assert (stored == 0).double().mean() < 1e-3


def test_the_proposal_is_position_interpolation_by_652():
    """Refuted if a score of A is not RoPE's at the interpolated distance, or the factor is
    another.

    A score of A at distance m is RoPE's score at the distance m pi / n between positions.
    """
    factor = WINDOW / math.pi
    assert round(factor) == 652
    assert round(WINDOW * factor, -5) == 1.3e6
    rng = np.random.default_rng(14)
    q, k, m = rng.normal(size=128), rng.normal(size=128), np.arange(0, WINDOW, 37)
    h = (q[:64] + 1j * q[64:]) * np.conj(k[:64] + 1j * k[64:])
    interpolated = (h * np.exp(1j * np.outer(m / factor, THETA))).real.sum(1)
    assert scores(q, k, m, A) == pytest.approx(interpolated, abs=1e-9)
    linear, _ = rescaled_frequencies("linear", 128, factor=factor)
    assert linear == pytest.approx(A, rel=1e-14)


def test_eighteen_standard_hands_are_already_monotone():
    """Refuted if other hands make less than half a turn, or their mean score rises before
    4,046."""
    slow = [i for i, theta in enumerate(THETA) if theta * WINDOW <= math.pi]
    assert slow == list(range(46, 64))
    s = own_scores(np.arange(4047), THETA, np.r_[np.zeros(46), np.ones(18)])
    assert np.argmax(np.diff(s) > 0) + 1 == 4046
    assert math.floor(math.pi / THETA[46]) == 2355
    for lengths, contrast, digits in (
        (np.r_[np.ones(46), np.zeros(18)], 0.288, 3),
        (np.r_[np.zeros(46), np.ones(18)], 0.0006, 4),
    ):
        s = own_scores(np.array([1]), THETA, lengths)
        assert round(math.sqrt(2 - 2 * s[0]), digits) == contrast
    # Pointing alike, with any lengths, they fall throughout the window; their SNR is A's.
    for lengths in np.random.default_rng(65).exponential(size=(20, 18)):
        s = own_scores(np.arange(WINDOW + 1), THETA, np.r_[np.zeros(46), lengths])
        assert (np.diff(s) < 0).all()
    exact, stored, _ = one_step(THETA[46:], torch.bfloat16, seed=3, rows=16_000)
    measured = (exact.square().mean() / (stored - exact).square().mean()).sqrt().item()
    assert measured == pytest.approx(0.52, rel=0.05)


# 07 Longer contexts ------------------------------------------------------------------------------

TRAINED, ASKED, FACTOR = 4096, 65_536, 16
STRETCH = {"factor": FACTOR, "original_max_position_embeddings": TRAINED}
LLAMA3_KNEES = {"low_freq_factor": 1, "high_freq_factor": 4}
FAST, SLOW = slice(46), slice(46, 64)


def farthest_from_trained(own, pair):
    """The largest angle between a new direction of a hand and the nearest one it has shown."""
    seen = np.sort(np.mod(np.arange(TRAINED) * THETA[pair], TURN))
    new = np.mod(np.arange(TRAINED, ASKED) * own[pair], TURN)
    around = np.concatenate([[seen[-1] - TURN], seen, [seen[0] + TURN]])
    at = np.searchsorted(around, new)
    return np.minimum(new - around[at - 1], around[at] - new).max()


def unseen(own):
    """Pairs that point farther from all trained directions than the gaps between those."""
    gaps = np.where(THETA * TRAINED >= TURN, 0.026, THETA)
    return [i for i in range(64) if farthest_from_trained(own, i) > gaps[i]]


def library(kind, dim=128, base=1e4, seq_len=None, **parameters):
    """Frequencies and attention factor as the transformers library computes them."""
    rope = pytest.importorskip("transformers.modeling_rope_utils")
    from transformers import LlamaConfig

    config = LlamaConfig(
        hidden_size=2 * dim,
        num_attention_heads=2,
        head_dim=dim,
        max_position_embeddings=ASKED,
        rope_parameters={"rope_type": kind, "rope_theta": base, **parameters},
    )
    own, attention = rope.ROPE_INIT_FUNCTIONS[kind](config, "cpu", seq_len=seq_len)
    return own.double().numpy(), attention


def test_the_18_slow_pairs_of_llama2_meet_new_angles():
    """Refuted if walking round the circle finds other pairs with new angles, or a fast pair
    with a wider gap."""
    assert unseen(THETA) == list(range(46, 64))
    assert max(farthest_from_trained(THETA, i) for i in range(46)) < 0.026
    assert min(farthest_from_trained(THETA, i) for i in range(46, 64)) > 0.4
    flags = unseen_pairs(THETA, ASKED, THETA, TRAINED)
    assert flags.nonzero()[0].tolist() == list(range(46, 64))


@pytest.mark.parametrize(
    ("base", "length", "channels"), [(1e4, 2048, 82), (1e4, 4096, 92), (5e5, 8192, 70)]
)
def test_critical_dimensions_of_three_llamas(base, length, channels):
    """Refuted if the published formula or a count of full turns gives another dimension."""
    assert 2 * math.ceil(64 * math.log(length / TURN, base)) == channels
    wrapped = [(np.diff(angles_of_a_hand(t, length)) < 0).any() for t in bank(128, base)]
    assert 2 * sum(wrapped) == channels


def test_the_joint_code_of_seen_pairs_is_new():
    """Refuted if a head tuned to a new distance scores high at a trained one.

    A head tuned to a new distance scores 1 there and little at all trained distances.
    """
    rng = np.random.default_rng(73)
    lengths = np.r_[np.ones(46), np.zeros(18)]
    k = with_lengths(lengths)
    for m in [TRAINED + 99, *rng.integers(TRAINED + 100, ASKED, 30)]:
        q = turned(k, [-m], THETA)[0]  # turned back, so that distance m brings it onto the key
        assert scores(q, k, np.array([m]), THETA)[0] == pytest.approx(46)
        heard = scores(q, k, np.arange(TRAINED), THETA).max() / 46
        assert heard < 1 - 1.13**2 / 2 + 1e-3
    assert round(distances_of_codes(THETA[FAST], ASKED)[99:].min(), 2) == 1.13
    assert max(farthest_from_trained(THETA, i) for i in range(46)) <= 0.026
    # New is not strange: inside the window codes are as far apart, and scores stay in range.
    assert round(distances_of_codes(THETA[FAST], TRAINED - 1)[100:].min(), 2) == 1.18
    at = np.r_[np.arange(TRAINED), rng.integers(TRAINED, ASKED, 500)]
    ranges = ((FAST, 0.001, 0.0025), (SLOW, 0.5, 0.7), (slice(40, 46), 0.14, 0.2))
    for own, low, high in ((THETA[pairs], *bounds) for pairs, *bounds in ranges):
        left = []
        for q, k in rng.normal(size=(100, 2, 2 * len(own))):
            s = scores(q, k, at, own)
            seen, new = s[:TRAINED], s[TRAINED:]
            left.append(((new > seen.max()) | (new < seen.min())).mean())
        assert low < np.mean(left) < high


def test_interpolation_sees_nothing_new_and_pays_in_contrast():
    """Refuted if an interpolated pair leaves its trained arc, or measured contrast and noise
    differ from those stated."""
    interpolated, _ = rescaled_frequencies("linear", 128, factor=FACTOR)
    assert unseen(interpolated) == []
    assert unseen_pairs(interpolated, ASKED, THETA, TRAINED).sum() == 0
    contrast = math.sqrt(2 - 2 * own_scores(np.array([1]), interpolated)[0])
    assert round(contrast, 4) == 0.0156
    assert round(neighbour_contrast(THETA) / contrast, 1) == 15.6
    exact, stored, _ = one_step(interpolated, torch.bfloat16, seed=4, rows=16_000)
    measured = (exact.square().mean() / (stored - exact).square().mean()).sqrt().item()
    assert measured == pytest.approx(9.7, rel=0.05)
    moved = own_scores(np.array([112]), interpolated)
    assert moved == pytest.approx(own_scores(np.array([7]), THETA))


def test_ntk_leaves_17_pairs_unseen():
    """Refuted if the arcs after NTK leave another number of pairs unseen, or its ends are other
    than stated."""
    new_base = 10_000 * FACTOR ** (128 / 126)
    tilted = new_base ** (-np.arange(64) / 64)
    assert round(new_base) == 167_199
    assert rescaled_frequencies("ntk", 128, factor=FACTOR)[0] == pytest.approx(tilted)
    assert (tilted / THETA)[[0, 63]] == pytest.approx([1, 1 / 16])
    assert unseen(tilted) == list(range(46, 63))
    assert unseen_pairs(tilted, ASKED, THETA, TRAINED).sum() == 17
    assert round(ASKED * tilted[46] / (TRAINED * THETA[46]), 1) == 2.1
    contrasts = [2 - 2 * own_scores(np.array([1]), own)[0] for own in (tilted, THETA)]
    assert round(math.sqrt(contrasts[0] / contrasts[1]), 2) == 0.89


def test_by_parts_presses_only_the_slow_faders():
    """Refuted if the published ramp, written again, keeps, ramps or divides other pairs, or
    leaves one unseen."""
    expected = []
    for theta in THETA:
        turns = TRAINED * theta / TURN
        keep = min(max((turns - 1) / (32 - 1), 0), 1)
        expected.append((1 - keep) * theta / FACTOR + keep * theta)
    got, attention = rescaled_frequencies("by_parts", 128, **STRETCH)
    assert got == pytest.approx(expected)
    assert attention == 1
    ratio = np.array(expected) / THETA
    kept, full = np.isclose(ratio, 1), np.isclose(ratio, 1 / FACTOR)
    assert (kept.sum(), (~kept & ~full).sum(), full.sum()) == (21, 25, 18)
    assert unseen(got) == []
    contrasts = [2 - 2 * own_scores(np.array([1]), own)[0] for own in (got, THETA)]
    assert 0.999 < math.sqrt(contrasts[0] / contrasts[1]) < 1


def test_yarn_in_the_code_is_not_yarn_in_the_paper():
    """Refuted if transformers' YaRN equals the paper's ramp, or differs by another factor or
    elsewhere."""
    turns = TRAINED * THETA / TURN
    keep = np.clip((turns - 1) / 31, 0, 1)
    paper = (1 - keep) * THETA / FACTOR + keep * THETA
    code, _ = library("yarn", **STRETCH)
    ratio = code / paper
    assert (ratio.argmax(), round(ratio.max(), 2)) == (38, 3.04)
    assert round(turns[38], 1) == 2.7
    assert (round(THETA[38] / paper[38], 1), round(THETA[38] / code[38], 1)) == (8.7, 2.8)
    assert ratio[:20] == pytest.approx(1, rel=1e-5)
    assert ratio[46:] == pytest.approx(1, rel=1e-5)
    for kind, own in (("yarn_paper", paper), ("yarn", code)):
        assert rescaled_frequencies(kind, 128, **STRETCH)[0] == pytest.approx(own, rel=1e-5)
    for s, largest in ((2, 1.3), (16, 3.0), (64, 5.1)):  # the factor grows with the stretch
        code, _ = library("yarn", **STRETCH | {"factor": s})
        assert round((code / ((1 - keep) * THETA / s + keep * THETA)).max(), 1) == largest
    unrounded, _ = library("yarn", truncate=False, **STRETCH)
    assert np.abs(unrounded / paper - 1).max() > 1  # without the rounding they differ as well


def test_yarn_is_two_methods_in_a_short_window():
    short = STRETCH | {"original_max_position_embeddings": 64}
    code, _ = library("yarn", **short)
    paper, _ = rescaled_frequencies("yarn_paper", 128, **short)
    assert code[0] == 1
    assert round(1 / paper[0], 1) == 2.9
    assert (paper < 0.99 * THETA).all()


def test_llama3_is_by_parts_with_knees_at_1_and_4():
    """Refuted if transformers' Llama 3 frequencies differ from by parts with knees 1 and 4, or
    split otherwise."""
    own = {"factor": 8, "original_max_position_embeddings": 8192}
    published, _ = library("llama3", base=5e5, **own, **LLAMA3_KNEES)
    turns = 8192 * bank(128, 5e5) / TURN
    keep = np.clip((turns - 1) / 3, 0, 1)
    by_parts = (1 - keep) * bank(128, 5e5) / 8 + keep * bank(128, 5e5)
    assert published == pytest.approx(by_parts, rel=1e-5)
    for kind, knees in (("llama3", LLAMA3_KNEES), ("by_parts", {"beta_slow": 1, "beta_fast": 4})):
        got, _ = rescaled_frequencies(kind, 128, 5e5, **own, **knees)
        assert got == pytest.approx(by_parts)
    assert ((keep == 1).sum(), ((keep > 0) & (keep < 1)).sum(), (keep == 0).sum()) == (29, 6, 29)


def test_longrope_contains_what_keeps_all_pairs_turning():
    """Refuted if transformers' LongRoPE with these lists gives other frequencies, or another
    attention factor."""
    ones = [1.0] * 64
    for kind, own in (
        ("linear", {"factor": FACTOR}),
        ("ntk", {"factor": FACTOR}),
        ("by_parts", STRETCH),
        ("llama3", STRETCH | LLAMA3_KNEES),
    ):
        target, _ = rescaled_frequencies(kind, 128, **own)
        lists = {"short_factor": ones, "long_factor": (THETA / target).tolist()}
        got, _ = library("longrope", seq_len=ASKED, **lists, **STRETCH)
        assert got == pytest.approx(target, rel=1e-5)
        got, _ = rescaled_frequencies("longrope", 128, seq_len=ASKED, **lists, **STRETCH)
        assert got == pytest.approx(target)
    at_rest, _ = rescaled_frequencies("proportional", 128, partial_rotary_factor=46 / 64)
    with np.errstate(divide="ignore"):
        lists = {"short_factor": ones, "long_factor": THETA / at_rest}
    assert np.isinf(lists["long_factor"]).sum() == 18
    with pytest.raises(ValueError, match="long_factor must be finite"):
        rescaled_frequencies("longrope", 128, seq_len=ASKED, **lists, **STRETCH)
    lists = {"short_factor": ones, "long_factor": ones, "original_max_position_embeddings": 4096}
    for _, attention in (
        library("longrope", factor=32, **lists),
        rescaled_frequencies("longrope", 128, factor=32, **lists),
    ):
        assert attention == pytest.approx(math.sqrt(1 + 5 / 12))  # ln 32 / ln 4096 = 5/12


def test_two_meanings_of_a_quarter():
    """Refuted if transformers' two kinds of partial rotation give other frequencies than
    stated."""
    proportional, _ = library("proportional", 512, 1e6, partial_rotary_factor=0.25)
    neox = pytest.importorskip("transformers.models.gpt_neox.modeling_gpt_neox")
    from transformers import GPTNeoXConfig

    rope = {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.25}
    config = GPTNeoXConfig(hidden_size=1024, num_attention_heads=2, rope_parameters=rope)
    classic = neox.GPTNeoXRotaryEmbedding(config).inv_freq.double().numpy()
    assert (len(proportional), (proportional > 0).sum(), len(classic)) == (256, 64, 64)
    own = {"partial_rotary_factor": 0.25}
    got = rescaled_frequencies("proportional", 512, 1e6, **own)[0]
    assert got == pytest.approx(proportional, rel=1e-5)
    assert rescaled_frequencies("default", 512, 1e6, **own)[0] == pytest.approx(classic, rel=1e-5)
    assert round(TURN / proportional[63]) == 188
    assert round(TURN / classic[-1], -4) == 5.06e6


def test_only_interpolation_brings_the_joint_code_home():
    """Refuted if mean distances of joint codes, from cosines and sines, are other than stated.

    Mean distance of new codes to the nearest trained one, from cosines and sines.
    """
    at = np.random.default_rng(711).integers(TRAINED, ASKED, 400)

    def features(positions, own):
        angle = np.outer(positions, own)
        return np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / math.sqrt(len(own))

    def away(own, pairs):
        nearest = features(at, own[pairs]) @ features(np.arange(TRAINED), THETA[pairs]).T
        return np.sqrt(np.clip(2 - 2 * nearest.max(axis=1), 0, None)).mean()

    banks = {
        kind: rescaled_frequencies(kind, 128, **own)[0]
        for kind, own in (
            ("linear", {"factor": FACTOR}),
            ("ntk", {"factor": FACTOR}),
            ("by_parts", STRETCH),
            ("yarn", STRETCH),
            ("llama3", STRETCH | LLAMA3_KNEES),
        )
    }
    everything = slice(64)
    assert away(banks["linear"], everything) < 0.1
    assert away(banks["linear"], FAST) < 0.1
    assert away(banks["by_parts"], SLOW) < 0.001
    assert away(banks["by_parts"], FAST) == pytest.approx(1.14, abs=0.02)
    assert away(THETA, FAST) == pytest.approx(1.17, abs=0.02)
    assert min(away(banks[kind], FAST) for kind in banks if kind != "linear") > 1.1
    step = np.r_[THETA[FAST], THETA[SLOW] / FACTOR]
    across = [away(own, slice(40, 52)) for own in (step, banks["by_parts"], banks["yarn"])]
    assert across == pytest.approx([0.90, 0.63, 0.93], abs=0.03)


def test_the_temperature_takes_back_part_of_the_entropy():
    """Refuted if the entropy of sampled softmaxes changes by another amount."""
    _, attention = library("yarn", **STRETCH)
    sharper = attention**2
    assert (round(attention, 3), round(sharper, 3)) == (1.277, 1.631)
    rng = np.random.default_rng(3)

    def entropy(x):
        log_weights = x - np.logaddexp.reduce(x)
        return -(np.exp(log_weights) * log_weights).sum()

    def measured(sigma, draws, sharper=sharper):
        rows = rng.normal(scale=sigma, size=(draws, ASKED))
        gained = np.mean([entropy(x) - entropy(x[:TRAINED]) for x in rows])
        return gained, np.mean([entropy(x) - entropy(sharper * x) for x in rows])

    gained, taken_back = measured(1.0, 8)
    assert gained == pytest.approx(2.77, abs=0.03)
    assert taken_back == pytest.approx(0.83, abs=0.02)
    assert taken_back / gained == pytest.approx(0.30, abs=0.01)
    gained, taken_back = measured(3.0, 80)
    assert taken_back > 1.2 * gained
    # The logarithm of the length, 4/3, is too little for flat scores and right at sigma = 3.
    gained, taken_back = measured(1.0, 8, sharper=4 / 3)
    assert (taken_back, gained) == (pytest.approx(0.4, abs=0.03), pytest.approx(2.77, abs=0.03))
    gained, taken_back = measured(3.0, 80, sharper=4 / 3)
    assert taken_back == pytest.approx(gained, abs=0.4)


def test_a_larger_base_buys_range_and_pays_resolution():
    """Refuted if wavelengths, steps or distances of codes of the two bases are other than
    stated."""
    small, large = bank(128, 1e4), bank(128, 5e5)
    assert round(TURN / small[-1]) == 54_410
    assert round(TURN / large[-1], -4) == 2.56e6
    steps = [np.linalg.norm(rotation_matrix(1, 128, base) - np.eye(128)) for base in (1e4, 5e5)]
    assert np.round(steps, 2).tolist() == [2.76, 2.38]
    D = [distances_of_codes(own, 131_072) for own in (small, large)]
    assert np.round([D[0][0], D[1][0]], 3).tolist() == [0.244, 0.210]
    at = np.array([1, 10, 100, 1000, 10_000]) - 1
    assert (D[1][at] < D[0][at]).all()
    gains = D[1] > D[0]
    assert gains[:10_000].sum() == 3
    assert round(gains.mean(), 2) == 0.16  # five out of six move closer
    arcs = [4096 * own for own in (small, large)]  # seen in training, either with its own base
    assert [(arc < TURN).sum() for arc in arcs] == [18, 32]
    assert (65_536 * large[arcs[0] < TURN] <= arcs[0][arcs[0] < TURN]).all()  # after the switch


def test_the_good_bases_are_not_an_interval():
    """Refuted if mean cosines at those bases have other signs."""
    s = own_scores(np.arange(2048), THETA)
    assert ((s < 0).argmax(), (s < 0).sum()) == (1707, 16)
    window = np.arange(2048)
    good = {
        base: (own_scores(window, bank(128, base)) >= 0).all()
        for base in [*range(11_500, 13_001, 50), 16_000, 16_500, *range(17_250, 25_001, 50)]
    }
    good_below = [base for base in good if good[base] and base < 17_250]
    assert good_below == [11_600, 12_450, 16_000]
    bad_above = [base for base in good if not good[base] and base > 17_000]
    assert bad_above == [17_250, *range(22_050, 22_751, 50)]
    # What the rule is about: random queries, a similar key and a random one.
    generator = torch.Generator().manual_seed(714)
    q, other, noise = torch.randn(3, 20_000, 128, generator=generator, dtype=torch.float64)
    for distance, similar_wins in ((1000, True), (1970, False)):
        there = turned(q, [distance] * len(q), THETA)
        preference = ((there * (q + noise)).sum(1) - (there * other).sum(1)).mean()
        assert (preference > 0) == similar_wins
