"""The oracle itself, against matrices written by hand and the matrix exponential."""

import numpy as np
import pytest
import torch

from rope_minimal import inverse_frequencies, rotate_by_matrix, rotate_complex, rotation_matrix

LAYOUTS = pytest.mark.parametrize("interleaved", [False, True])


def test_one_pair_turns_counter_clockwise() -> None:
    quarter = rotation_matrix(1, 2, inv_freq=[np.pi / 2])
    assert quarter @ [1.0, 0.0] == pytest.approx([0.0, 1.0], abs=1e-15)
    c, s = np.cos(3.0), np.sin(3.0)
    assert rotation_matrix(3, 2).tolist() == [[c, -s], [s, c]]


def test_four_channels_written_out() -> None:
    c, s = np.cos([2.0, 0.02]), np.sin([2.0, 0.02])
    neighbours = [
        [c[0], -s[0], 0, 0],
        [s[0], c[0], 0, 0],
        [0, 0, c[1], -s[1]],
        [0, 0, s[1], c[1]],
    ]
    halves = [
        [c[0], 0, -s[0], 0],
        [0, c[1], 0, -s[1]],
        [s[0], 0, c[0], 0],
        [0, s[1], 0, c[1]],
    ]
    assert rotation_matrix(2, 4, interleaved=True) == pytest.approx(np.array(neighbours), abs=1e-15)
    assert rotation_matrix(2, 4, interleaved=False) == pytest.approx(np.array(halves), abs=1e-15)


@LAYOUTS
@pytest.mark.parametrize("position", [0, 1, 17, -5, 2.5])
def test_the_matrix_is_the_exponential_of_its_generator(position: float, interleaved: bool) -> None:
    dim, base = 12, 500.0
    generator = np.zeros((dim, dim))
    for i, theta in enumerate(inverse_frequencies(dim, base)):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + dim // 2)
        generator[a, b], generator[b, a] = -theta, theta
    exponential = torch.linalg.matrix_exp(torch.from_numpy(position * generator)).numpy()
    assert rotation_matrix(position, dim, base, interleaved=interleaved) == pytest.approx(
        exponential, abs=1e-13
    )


@LAYOUTS
def test_the_matrix_is_a_rotation(interleaved: bool) -> None:
    matrix = rotation_matrix(1234, 16, interleaved=interleaved)
    assert matrix @ matrix.T == pytest.approx(np.eye(16), abs=1e-15)
    assert np.linalg.det(matrix) == pytest.approx(1.0, abs=1e-13)


@LAYOUTS
@pytest.mark.parametrize("shape", [(5, 2), (5, 8), (2, 5, 8), (2, 3, 5, 64), (0, 5, 8), (2, 0, 8)])
def test_the_matrix_and_the_complex_product_agree(
    shape: tuple[int, ...], interleaved: bool
) -> None:
    rng = np.random.default_rng(0)
    x, positions = rng.standard_normal(shape), rng.integers(0, 10**6, shape[-2])
    options = {"base": 300.0, "interleaved": interleaved}
    y = rotate_complex(x, positions, **options)
    assert y.shape == x.shape
    assert y == pytest.approx(rotate_by_matrix(x, positions, **options), abs=1e-14)


@LAYOUTS
def test_each_vector_gets_the_matrix_of_its_own_position(interleaved: bool) -> None:
    x, positions = np.random.default_rng(1).standard_normal((2, 3, 8)), [4, 0, 7]
    y = rotate_by_matrix(x, positions, interleaved=interleaved)
    for t, m in enumerate(positions):
        for b in range(2):
            row = rotation_matrix(m, 8, interleaved=interleaved) @ x[b, t]
            assert y[b, t] == pytest.approx(row, abs=1e-15)


@pytest.mark.parametrize("rotate", [rotate_by_matrix, rotate_complex])
def test_given_frequencies_are_used_and_the_input_is_left_alone(rotate) -> None:
    x = np.array([[1.0, 2.0, 3.0, 4.0]], dtype=np.float32)
    before = x.copy()
    y = rotate(x, [1], inv_freq=[np.pi, np.pi / 2], interleaved=True)
    assert y == pytest.approx(np.array([[-1.0, -2.0, -4.0, 3.0]]), abs=1e-15)
    assert y.dtype == np.float64
    assert np.array_equal(x, before)
