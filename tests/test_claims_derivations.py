"""The claims of chapters 02 and 03, checked with numbers where the chapters derive."""

import itertools
import math

import numpy as np
import pytest
import torch

from rope_minimal import apply_rope, rope_table, rotate_complex

TWELFTHS = 2 * np.pi * np.arange(12) / 12
PLACES = range(5)


def unit(angle):
    return np.exp(1j * np.asarray(angle))


def relative(queries, keys):
    """Whether the product of two encodings of one token depends on the distance only."""
    seen = {}
    for m, n in itertools.product(PLACES, PLACES):
        seen.setdefault(m - n, []).append(queries[m] * np.conj(keys[n]))
    return all(np.allclose(group, group[0], rtol=0, atol=1e-9) for group in seen.values())


def scores(query, key, powers):
    """Every score of one query and one key, by a matrix for each position."""
    return np.array([[(A @ query) @ (B @ key) for B in powers] for A in powers])


def diagonals_are_constant(matrix):
    size = len(matrix)
    return all(np.ptp(matrix.diagonal(d)) < 1e-9 for d in range(1 - size, size))


# Claim 2.1 ---------------------------------------------------------------------------------------


def test_a_dot_product_of_pairs_is_a_real_part():
    q, k = np.random.default_rng(0).normal(size=(2, 1000, 2))
    product = q.view(complex) * k.view(complex).conj()
    np.testing.assert_allclose(product.real[:, 0], (q * k).sum(1), rtol=0, atol=1e-12)


# Claim 2.2 ---------------------------------------------------------------------------------------


def test_of_all_angles_on_a_dial_only_equal_steps_are_relative():
    """Every way to give four positions one of twelve directions, position 0 left as it is."""
    found = []
    for steps in itertools.product(range(12), repeat=4):
        turns = unit(TWELFTHS[[0, *steps]])
        if relative(turns, turns):
            found.append(steps)
    assert found == [tuple(np.arange(1, 5) * step % 12) for step in range(12)]


def test_lengths_stay_only_where_query_and_key_have_one_rule():
    lengths = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 1 / 8, 1 / 16]
    found = {}
    for rest in itertools.product(lengths, repeat=4):
        query = np.array([1.0, *rest])
        if relative(query, 1 / query):
            found[rest[0]] = query  # a key's lengths are one over the query's, from m = n
    assert sorted(found) == [0.5, 1.0, 2.0]  # more would leave the list
    for factor, query in found.items():
        np.testing.assert_allclose(query, factor ** np.arange(5))
        assert relative(query, query) == (factor == 1)


# Claim 2.3 ---------------------------------------------------------------------------------------


def test_a_turn_and_a_factor_are_all_that_keeps_the_complex_promise():
    """Encodings of positions 1 and 2 by numbers of a grid, the key's forced by the query's."""
    grid = (2.0 ** np.arange(-2, 3)[:, None] * unit(TWELFTHS)).ravel()
    one, two = np.meshgrid(grid, grid, indexing="ij")
    # product of query at 2 and key at 1 must be that of query at 1 and key at 0
    keeps = np.isclose(two / one, one)
    assert keeps.sum() == 3 * 12  # factors 1/2, 1, 2 and any of the twelve turns
    for first, second in zip(one[keeps], two[keeps], strict=True):
        powers = first ** np.arange(5)
        assert np.isclose(second, powers[2])
        keys = 1 / powers.conj()
        assert relative(powers, keys)
        assert relative(powers, powers) == bool(np.isclose(abs(first), 1))


# Claim 3.1 ---------------------------------------------------------------------------------------


def test_rotations_are_relative_exactly_for_equal_steps():
    def turn(angle):
        return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    query, key = np.array([1.0, 0.3]), np.array([-0.4, 0.8])
    turns = [turn(angle) for angle in TWELFTHS]
    for dials in itertools.product(range(12), repeat=3):
        found = scores(query, key, [turns[dial] for dial in dials])
        equal_steps = (dials[2] - 2 * dials[1] + dials[0]) % 12 == 0
        assert diagonals_are_constant(found) == equal_steps, dials


# Claim 3.2 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True])
def test_a_direction_must_be_shared(interleaved):
    q, k = torch.randn(2, 1, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    cos, sin = rope_table(torch.arange(24), 16, dtype=torch.float64)

    def table(left, right):
        first, second = (
            apply_rope(vector.expand(24, 16), cos, sign * sin, interleaved=interleaved)
            for vector, sign in ((q, left), (k, right))
        )
        return (first @ second.T).numpy()

    assert diagonals_are_constant(table(1, 1))
    assert diagonals_are_constant(table(-1, -1))
    for mixed in (table(1, -1), table(-1, 1)):
        assert not diagonals_are_constant(mixed)
        assert diagonals_are_constant(mixed[:, ::-1])  # where the pair stands: m + n


# Claim 3.3 ---------------------------------------------------------------------------------------


def test_planes_without_a_common_channel_turn_on_their_own():
    steps = np.random.default_rng(2).uniform(-3, 3, size=5)
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    generator = torch.block_diag(*(step * quarter for step in steps))
    for m in (1, 7, 100):
        expected = torch.linalg.matrix_exp(m * generator).numpy()
        at = np.full(10, m)
        ours = rotate_complex(np.eye(10), at, inv_freq=steps, interleaved=True).T
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-9)


# Claim 3.4 ---------------------------------------------------------------------------------------


def orthogonal(size, determinant, seed):
    """A random orthogonal matrix, from a QR decomposition."""
    matrix, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))
    matrix[:, 0] *= determinant * np.linalg.det(matrix)
    return matrix


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_any_rotation_gives_the_scores_of_rope_in_its_own_basis(size):
    step = orthogonal(size, 1, size)
    values, vectors = np.linalg.eig(step)
    np.testing.assert_allclose(abs(values), 1, rtol=0, atol=1e-9)
    ahead = values.imag > 0  # one of each conjugate pair; none is real in a generic rotation
    assert ahead.sum() == size // 2
    basis, angles = vectors[:, ahead], np.angle(values[ahead])
    query, key = np.random.default_rng(3).normal(size=(2, size))

    def rope(vector, m):
        pairs = math.sqrt(2) * basis.conj().T @ vector  # read off as complex numbers
        real = pairs.view(float)[None]
        return rotate_complex(real, np.array([m]), inv_freq=angles, interleaved=True)[0]

    for m, n in [(0, 0), (1, 0), (5, 9), (40, 3)]:
        theirs = (np.linalg.matrix_power(step, m) @ query) @ (np.linalg.matrix_power(step, n) @ key)
        assert math.isclose(rope(query, m) @ rope(key, n), theirs, abs_tol=1e-8)


def test_a_mirror_is_relative_and_no_rope():
    """Of a generic orthogonal matrix with determinant -1, two directions never turn."""
    step = orthogonal(4, -1, 5)
    values = np.linalg.eigvals(step)
    real = np.sort(values.real[abs(values.imag) < 1e-9])
    np.testing.assert_allclose(real, [-1, 1], rtol=0, atol=1e-9)
    powers = [np.linalg.matrix_power(step, m) for m in PLACES]
    query, key = np.random.default_rng(6).normal(size=(2, 4))
    assert diagonals_are_constant(scores(query, key, powers))


# Claim 3.5 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_score_that_has_fallen_comes_back_far_away(seed):
    """Two hands with random speeds and contents: beyond distance 1,000 the score is back."""
    rng = np.random.default_rng(seed)
    content = rng.normal(size=2) + 1j * rng.normal(size=2)
    speeds = rng.uniform(0.01, np.pi, size=2)
    score = (content[:, None] * unit(np.outer(speeds, np.arange(200_000)))).real.sum(0)
    swing = abs(content).sum()
    assert score[1:1000].min() < score[0] - 0.01 * swing  # it falls ...
    assert score[1000:].max() > score[0] - 0.01 * swing  # ... and returns
