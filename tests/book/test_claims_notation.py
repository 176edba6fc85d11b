"""The conventions that book/notation.md states, checked against the package."""

import math

import numpy as np
import pytest
import torch

from rope_minimal import apply_rope, inverse_frequencies, rope_table, rotation_matrix, wavelengths


def test_a_quarter_turn_takes_1_0_to_0_1_for_columns_and_back_for_rows():
    quarter = rotation_matrix(1, 2, inv_freq=np.array([math.pi / 2]))
    assert np.allclose(quarter @ [1, 0], [0, 1])
    assert np.allclose([1, 0] @ quarter, [0, -1])


def test_score_has_n_minus_m_in_the_matrix_and_m_minus_n_in_the_exponent():
    q, k = np.random.default_rng(0).normal(size=(2, 8))
    m, n = 9, 4
    score = (rotation_matrix(m, 8, interleaved=True) @ q) @ (
        rotation_matrix(n, 8, interleaved=True) @ k
    )
    q_i, k_i = q[0::2] + 1j * q[1::2], k[0::2] + 1j * k[1::2]
    phase = np.exp(1j * (m - n) * inverse_frequencies(8))
    assert score == pytest.approx(q @ rotation_matrix(n - m, 8, interleaved=True) @ k)
    assert score == pytest.approx((q_i * k_i.conj() * phase).sum().real)
    assert score != pytest.approx((q_i * k_i * phase).sum().real, abs=1e-3)
    step = rotation_matrix(1, 8, interleaved=True).T
    assert score == pytest.approx(q @ np.linalg.matrix_power(step, m - n) @ k)


def test_counting_pairs_from_1_gives_the_same_frequencies():
    roformer = [10000 ** (-2 * (i - 1) / 128) for i in range(1, 65)]
    assert np.allclose(inverse_frequencies(128), roformer, rtol=1e-14)
    assert np.allclose(wavelengths(inverse_frequencies(128)), 2 * math.pi / np.array(roformer))


def test_layouts_pair_the_channels_that_the_page_names():
    for interleaved, partners in ((True, {0: 1, 6: 7}), (False, {0: 4, 3: 7})):
        matrix = rotation_matrix(3, 8, interleaved=interleaved)
        for first, second in partners.items():
            assert np.flatnonzero(matrix[first]).tolist() == [first, second]
    assert np.array_equal(rotation_matrix(3, 8), rotation_matrix(3, 8, interleaved=False))


def test_tables_have_one_entry_a_pair_and_the_tail_passes_through():
    x = torch.randn(2, 3, 5, 16)
    cos, sin = rope_table(range(5), 12)
    assert cos.shape == sin.shape == (5, 6)
    assert torch.equal(apply_rope(x, cos, sin)[..., 12:], x[..., 12:])
