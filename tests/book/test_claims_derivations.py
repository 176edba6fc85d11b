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


def pairs_of_functions(table):
    """All pairs of functions f, g on a finite set with table[f(q), g(k)] = table[q, k] throughout.

    Whatever f is, nothing is assumed of it: its values are tried one after the other, and g has for
    each k the values that are still possible.
    """
    size = len(table)

    def search(f, possible):
        if len(f) == size:
            yield from ((tuple(f), g) for g in itertools.product(*possible))
            return
        q = len(f)
        for value in range(size):
            left = [
                [v for v in options if table[value, v] == table[q, k]]
                for k, options in enumerate(possible)
            ]
            if all(left):
                yield from search([*f, value], left)

    yield from search([], [range(size)] * size)


def relative_encodings(table):
    """Query and key at position 1 and query at 2, of all relative encodings of a finite set."""
    at_one_place = list(pairs_of_functions(table))
    everything = np.arange(len(table))
    for (q_1, k_1), (q_2, _) in itertools.product(at_one_place, repeat=2):
        if (table[np.ix_(q_2, k_1)] == table[np.ix_(q_1, everything)]).all():
            yield q_1, k_1, q_2


def diagonals_are_constant(matrix):
    size = len(matrix)
    return all(np.ptp(matrix.diagonal(d)) < 1e-9 for d in range(1 - size, size))


# Claim 2.1 ---------------------------------------------------------------------------------------


def test_a_dot_product_of_pairs_is_a_real_part():
    """Refuted if the dot product of random pairs misses the real part of Python's own complex
    product."""
    q, k = np.random.default_rng(0).normal(size=(2, 1000, 2))
    product = q.view(complex) * k.view(complex).conj()
    np.testing.assert_allclose(product.real[:, 0], (q * k).sum(1), rtol=0, atol=1e-12)


# Claim 2.2 ---------------------------------------------------------------------------------------


def test_a_turn_and_a_factor_are_all_that_keeps_the_complex_promise():
    """Refuted if a grid search over factors and turns finds a relative encoding that is not a
    power of one number, or misses one that is.

    Encodings of positions 1 and 2 by numbers of a grid, the key's forced by the query's.
    """
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


def test_of_all_functions_on_nine_numbers_only_multiplications_are_relative():
    """Refuted if among all pairs of functions on a field of nine numbers some relative one is
    not multiplication by powers of one number.

    The complex numbers with parts 0, 1, 2 and 1 + 2 = 0: every pair of functions is tried.
    """
    numbers = list(itertools.product(range(3), repeat=2))

    def times(x, y):
        return ((x[0] * y[0] - x[1] * y[1]) % 3, (x[0] * y[1] + x[1] * y[0]) % 3)

    def bar(x):
        return (x[0], -x[1] % 3)

    index = {number: i for i, number in enumerate(numbers)}
    table = np.array([[index[times(x, bar(y))] for y in numbers] for x in numbers])
    found = list(relative_encodings(table))
    one = index[1, 0]
    assert len(found) == 8  # as many as there are numbers other than 0
    for q_1, k_1, q_2 in found:
        z = numbers[q_1[one]]
        assert all(times(bar(z), numbers[k_1[i]]) == x for i, x in enumerate(numbers))
        assert (q_1 == k_1) == (times(z, bar(z)) == (1, 0))  # one rule: |z| = 1
        assert q_1 == tuple(index[times(z, x)] for x in numbers)
        assert q_2 == tuple(index[times(z, times(z, x))] for x in numbers)


# Claim 2.3 ---------------------------------------------------------------------------------------


def test_of_all_angles_on_a_dial_only_equal_steps_are_relative():
    """Refuted if of all ways to give four positions one of twelve directions one with unequal
    steps is relative.

    Every way to give four positions one of twelve directions, position 0 left as it is.
    """
    found = []
    for steps in itertools.product(range(12), repeat=4):
        turns = unit(TWELFTHS[[0, *steps]])
        if relative(turns, turns):
            found.append(steps)
    assert found == [tuple(np.arange(1, 5) * step % 12) for step in range(12)]


def test_lengths_stay_only_where_query_and_key_have_one_rule():
    """Refuted if an encoding by factors other than 1 is relative although query and key share
    one rule."""
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


# Claim 3.1 ---------------------------------------------------------------------------------------


def test_in_a_world_of_three_numbers_only_powers_of_one_matrix_are_relative():
    """Refuted if among all pairs of functions on vectors over three numbers a relative one is
    not powers of one invertible matrix.

    Vectors of two channels, each 0, 1 or 2 with 1 + 2 = 0: every pair of functions is tried.
    """
    vectors = np.array(list(itertools.product(range(3), repeat=2)))
    found = list(relative_encodings(vectors @ vectors.T % 3))
    assert len(found) == 48  # as many as there are invertible 2 by 2 matrices
    for q_1, k_1, q_2 in found:
        step = vectors[list(q_1)][[3, 1]].T  # its columns: where (1, 0) and (0, 1) go
        np.testing.assert_array_equal(vectors[list(q_1)], vectors @ step.T % 3)
        np.testing.assert_array_equal(vectors[list(q_2)], vectors @ step.T @ step.T % 3)
        # M = step^T takes the encoded key back, and with one rule it is orthogonal
        np.testing.assert_array_equal(vectors[list(k_1)] @ step % 3, vectors)
        assert (q_1 == k_1) == np.array_equal(step.T @ step % 3, np.eye(2))
    assert sum(q_1 == k_1 for q_1, k_1, _ in found) == 8  # four turns, four reflections


@pytest.mark.parametrize("seed", range(10))
def test_a_rule_that_is_not_linear_breaks_the_promise(seed):
    """Refuted if a query rule bent at one place keeps every score relative.

    Bend the query's rule of a relative encoding a little, at one place: some key notices.
    """
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    step = rng.normal(size=(size, size))
    bend = rng.normal(size=size)

    def encode(query, m, curved):
        return np.linalg.matrix_power(step, m).T @ query + curved * bend * np.sin(query).sum() * m

    def moved(curved):
        """How much some score changes when a pair is moved from (1, 0) to (2, 1)."""
        queries, keys = rng.normal(size=(2, 50, size))
        near = [encode(q, 1, curved) @ k for q, k in zip(queries, keys, strict=True)]
        far = [
            encode(q, 2, curved) @ (np.linalg.inv(step) @ k)
            for q, k in zip(queries, keys, strict=True)
        ]
        return np.abs(np.subtract(near, far)).max()

    assert moved(0) < 1e-9
    assert moved(0.01) > 1e-4


# Claim 3.2 ---------------------------------------------------------------------------------------


def orthogonal(size, determinant, seed):
    """A random orthogonal matrix, from a QR decomposition."""
    matrix, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))
    matrix[:, 0] *= determinant * np.linalg.det(matrix)
    return matrix


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_any_rotation_gives_the_scores_of_rope_in_its_own_basis(size):
    """Refuted if a random rotation matrix has scores that RoPE in its eigenbasis does not give."""
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


def test_kept_and_reversed_directions_stand_beside_the_planes():
    """Refuted if an encoding with a plane, a kept and two reversed directions is not relative,
    or its scores are not those of its parts.

    Five channels in a random basis: one plane, one direction kept, two reversed.
    """
    basis, angle = orthogonal(5, 1, 8), 0.7
    plane = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    inside = np.eye(5)
    inside[:2, :2], inside[3, 3], inside[4, 4] = plane, -1, -1
    step = basis @ inside @ basis.T
    query, key = np.random.default_rng(9).normal(size=(2, 5))
    at = [np.linalg.matrix_power(step, m) for m in range(6)]
    assert diagonals_are_constant(scores(query, key, at))
    q, k = basis.T @ query, basis.T @ key
    for m, n in itertools.product(range(6), repeat=2):
        first = rotate_complex(q[None, :2], np.array([m]), inv_freq=np.array([angle]))
        second = rotate_complex(k[None, :2], np.array([n]), inv_freq=np.array([angle]))
        reversed_too = (-1) ** (m + n) * (q[3:] @ k[3:])
        expected = (first @ second.T).item() + q[2] * k[2] + reversed_too
        assert math.isclose((at[m] @ query) @ (at[n] @ key), expected, abs_tol=1e-9)
    # and two reversed directions are a plane that turns by half a turn
    half = rotate_complex(q[None, 3:], np.array([3]), inv_freq=np.array([math.pi]))
    np.testing.assert_allclose(half[0], -q[3:], atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_random_orthogonal_matrix_of_odd_size_keeps_or_reverses_a_direction(seed):
    """Refuted if a random orthogonal matrix of odd size has no real eigenvalue, or one that is
    neither 1 nor -1."""
    step = orthogonal(5, (-1) ** seed, seed)
    values = np.linalg.eigvals(step)
    real = values.real[abs(values.imag) < 1e-9]
    np.testing.assert_allclose(abs(real), 1, atol=1e-9)
    assert len(real) == 1


def test_a_mirror_is_relative_and_no_rope():
    """Refuted if a generic orthogonal matrix with determinant -1 is not relative, or turns in
    every direction.

    Of a generic orthogonal matrix with determinant -1, two directions never turn.
    """
    step = orthogonal(4, -1, 5)
    values = np.linalg.eigvals(step)
    real = np.sort(values.real[abs(values.imag) < 1e-9])
    np.testing.assert_allclose(real, [-1, 1], rtol=0, atol=1e-9)
    powers = [np.linalg.matrix_power(step, m) for m in PLACES]
    query, key = np.random.default_rng(6).normal(size=(2, 4))
    assert diagonals_are_constant(scores(query, key, powers))


def test_rotations_are_relative_exactly_for_equal_steps():
    def turn(angle):
        return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    query, key = np.array([1.0, 0.3]), np.array([-0.4, 0.8])
    turns = [turn(angle) for angle in TWELFTHS]
    for dials in itertools.product(range(12), repeat=3):
        found = scores(query, key, [turns[dial] for dial in dials])
        equal_steps = (dials[2] - 2 * dials[1] + dials[0]) % 12 == 0
        assert diagonals_are_constant(found) == equal_steps, dials


def test_planes_without_a_common_channel_turn_on_their_own():
    steps = np.random.default_rng(2).uniform(-3, 3, size=5)
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    generator = torch.block_diag(*(step * quarter for step in steps))
    for m in (1, 7, 100):
        expected = torch.linalg.matrix_exp(m * generator).numpy()
        at = np.full(10, m)
        ours = rotate_complex(np.eye(10), at, inv_freq=steps, interleaved=True).T
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-9)


# Claim 3.3 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_eigenvalues_can_be_read_off_the_scores(seed):
    """Refuted if Prony's method, on scores alone, finds other frequencies and decays than the
    eigenvalues of the step, or these do not predict far scores.

    Prony: from the scores alone, as a signal, come back the eigenvalues of the step.
    """
    rng = np.random.default_rng(seed)
    step = rng.normal(size=(4, 4))
    step /= abs(np.linalg.eigvals(step)).max()
    query, key = rng.normal(size=(2, 4))
    score = np.array([query @ np.linalg.matrix_power(step, s) @ key for s in range(40)])
    rows = np.lib.stride_tricks.sliding_window_view(score[:9], 5)
    weights = np.linalg.solve(rows[:4, :4], -rows[:4, 4])  # four scores predict the fifth
    found = np.roots([1, *weights[::-1]])
    np.testing.assert_allclose(
        np.sort_complex(found), np.sort_complex(np.linalg.eigvals(step)), atol=1e-5
    )
    waves = found[None] ** np.arange(12)[:, None]
    parts = np.linalg.lstsq(waves, score[:12].astype(complex), rcond=None)[0]
    far = (found[None] ** np.arange(12, 40)[:, None] @ parts).real  # never seen by the fit
    np.testing.assert_allclose(far, score[12:], atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_only_a_matrix_with_too_few_eigenvectors_counts(seed):
    """Refuted if scores of a diagonalisable step with eigenvalues of size 1 grow with the
    distance, or those of a defective one do not.

    Eigenvalues of size 1: in any basis the scores stay bounded, unless a block is defective.
    """
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(4, 4)) + 2 * np.eye(4)
    angle = rng.uniform(0.1, 3)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    other = np.diag([1.0, -1.0])
    enough = np.block([[turn, np.zeros((2, 2))], [np.zeros((2, 2)), other]])
    defective = np.block([[turn, np.eye(2)], [np.zeros((2, 2)), turn]])
    highest = {}
    for name, matrix in [("enough", enough), ("defective", defective)]:
        step = basis @ matrix @ np.linalg.inv(basis)
        np.testing.assert_allclose(abs(np.linalg.eigvals(step)), 1, atol=1e-5)
        powers = [np.linalg.matrix_power(step, s) for s in (*range(90, 110), *range(9990, 10010))]
        sizes = [abs(p).max() for p in powers]
        highest[name] = max(sizes[20:]) / max(sizes[:20])  # at 10,000 against at 100
    assert highest["enough"] < 3
    assert 50 < highest["defective"] < 200  # it counts: a hundred times as far, as much higher


@pytest.mark.parametrize("seed", range(6))
def test_terms_that_count_predict_scores_far_away(seed):
    """Refuted if plain waves fit the scores of a defective step, or waves times the distance do
    not predict its far scores.

    A matrix with too few eigenvectors: waves alone do not fit its scores, waves times s do.
    """
    rng = np.random.default_rng(seed)
    angle, size = rng.uniform(0.3, 2.8), rng.uniform(0.97, 1.0)
    turn = size * np.array(
        [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    )
    block = np.block([[turn, np.eye(2)], [np.zeros((2, 2)), turn]])
    basis = rng.normal(size=(4, 4)) + 2 * np.eye(4)
    step = basis @ block @ np.linalg.inv(basis)
    query, key = rng.normal(size=(2, 4))
    s = np.arange(200)
    score = np.array([query @ np.linalg.matrix_power(step, int(i)) @ key for i in s])
    waves = size**s * np.array([np.cos(angle * s), np.sin(angle * s)])
    for terms, fits in [(waves, False), (np.vstack([waves, s * waves]), True)]:
        heights = np.linalg.lstsq(terms[:, :20].T, score[:20], rcond=None)[0]
        error = abs(heights @ terms[:, 150:] - score[150:]).max() / abs(score[150:]).max()
        assert (error < 1e-6) == fits


# Claim 3.4 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True])
def test_a_direction_must_be_shared(interleaved):
    """Refuted if scores with one shared direction are not constant along a diagonal, or those
    with mixed directions are."""
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


# Claim 3.5 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_score_that_has_fallen_comes_back_far_away(seed):
    """Refuted if the score of two hands with random speeds, once fallen, does not come back
    within 200,000 positions.

    Two hands with random speeds and contents: beyond distance 1,000 the score is back.
    """
    rng = np.random.default_rng(seed)
    content = rng.normal(size=2) + 1j * rng.normal(size=2)
    speeds = rng.uniform(0.01, np.pi, size=2)
    score = (content[:, None] * unit(np.outer(speeds, np.arange(200_000)))).real.sum(0)
    swing = abs(content).sum()
    assert score[1:1000].min() < score[0] - 0.01 * swing  # it falls ...
    assert score[1000:].max() > score[0] - 0.01 * swing  # ... and returns
