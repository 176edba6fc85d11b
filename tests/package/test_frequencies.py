"""Inverse frequencies against 50-digit arithmetic."""

import mpmath
import numpy as np
import pytest

from rope_minimal import inverse_frequencies, wavelengths


@pytest.mark.parametrize("base", [2.0, 100.0, 10000.0, 5e5, 1e-3])
@pytest.mark.parametrize("dim", [2, 4, 6, 64, 100, 128, 512])
def test_each_frequency_is_the_power_of_the_base(dim: int, base: float) -> None:
    theta = inverse_frequencies(dim, base)
    with mpmath.workdps(50):
        exact = [mpmath.mpf(base) ** (mpmath.mpf(-2 * i) / dim) for i in range(dim // 2)]
        error = max(abs(t / e - 1) for t, e in zip(map(mpmath.mpf, theta), exact, strict=True))
    assert error < 2e-15
    assert theta.dtype == np.float64
    assert theta.shape == (dim // 2,)


def test_the_base_is_10000_where_none_is_given() -> None:
    assert inverse_frequencies(4).tolist() == pytest.approx([1.0, 0.01], rel=1e-15)


def test_wavelength_is_the_number_of_positions_for_one_turn() -> None:
    theta = inverse_frequencies(128)
    assert wavelengths(theta) * theta == pytest.approx(np.full(64, 2 * np.pi), rel=1e-15)
    assert wavelengths(theta)[0] == pytest.approx(6.283185307179586, rel=1e-15)
    assert wavelengths(theta)[-1] == pytest.approx(2 * np.pi * 10000 ** (126 / 128), rel=1e-14)


def test_a_frequency_of_zero_never_turns() -> None:
    with np.errstate(all="raise"):  # and says so without a warning
        assert wavelengths([0.0, 5e-324]).tolist() == [np.inf] * 2
