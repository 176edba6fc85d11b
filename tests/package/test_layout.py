"""Which two channels form a pair, and how weights move from one layout to the other."""

import numpy as np
import pytest
import torch

from rope_minimal import apply_rope, permute_qk, rope_table, rotate_complex, to_half, to_interleaved

KINDS = pytest.mark.parametrize("array", [np.array, torch.tensor], ids=["numpy", "torch"])


@KINDS
def test_eight_channels_written_out(array) -> None:
    assert to_half(array([0, 1, 2, 3, 4, 5, 6, 7])).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert to_interleaved(array([0, 1, 2, 3, 4, 5, 6, 7])).tolist() == [0, 4, 1, 5, 2, 6, 3, 7]


@KINDS
@pytest.mark.parametrize("shape", [(2,), (3, 4), (2, 3, 5, 6), (0, 4), (2, 0, 4)])
def test_the_two_orders_undo_each_other(array, shape: tuple[int, ...]) -> None:
    x = array(np.random.default_rng(0).standard_normal(shape).tolist()).reshape(shape)
    for y in (to_half(to_interleaved(x)), to_interleaved(to_half(x))):
        assert type(y) is type(x)
        assert y.shape == x.shape
        assert y.tolist() == x.tolist()


def test_conversion_carries_one_rotation_into_the_other() -> None:
    x, positions = np.random.default_rng(0).standard_normal((5, 12)), np.arange(5)
    y = rotate_complex(x, positions, interleaved=True)
    assert np.array_equal(rotate_complex(to_half(x), positions), to_half(y))


def test_a_strided_tensor_is_converted_like_its_copy() -> None:
    x = torch.arange(48).reshape(8, 6).t()
    assert torch.equal(to_half(x), to_half(x.contiguous()))


@KINDS
def test_rows_move_within_their_head(array) -> None:
    heads, dim, columns = 3, 8, 5
    weight = np.arange(heads * dim * columns).reshape(heads * dim, columns)
    new = np.asarray(permute_qk(array(weight.tolist()), heads))
    for h in range(heads):
        for j in range(dim // 2):
            assert np.array_equal(new[h * dim + j], weight[h * dim + 2 * j])
            assert np.array_equal(new[h * dim + dim // 2 + j], weight[h * dim + 2 * j + 1])


@KINDS
@pytest.mark.parametrize("shape", [(24,), (24, 5), (24, 24)])
@pytest.mark.parametrize("heads", [1, 3, 12])
def test_inverse_undoes_the_permutation(array, shape: tuple[int, ...], heads: int) -> None:
    weight = array(np.random.default_rng(0).standard_normal(shape).tolist())
    there = permute_qk(weight, heads)
    for back in (
        permute_qk(there, heads, inverse=True),
        permute_qk(permute_qk(weight, heads, inverse=True), heads),
    ):
        assert back.shape == weight.shape
        assert back.tolist() == weight.tolist()
    assert heads == 12 or there.tolist() != weight.tolist()  # a head of one pair has one order


def test_a_bias_moves_with_the_rows_of_its_weight() -> None:
    weight, x = torch.randn(24, 5), torch.randn(7, 5)
    bias = torch.randn(24)
    y = torch.nn.functional.linear(x, weight, bias).unflatten(-1, (3, 8))
    new = torch.nn.functional.linear(x, permute_qk(weight, 3), permute_qk(bias, 3))
    assert torch.allclose(new.unflatten(-1, (3, 8)), to_half(y), atol=1e-6)


@pytest.mark.parametrize(("query_heads", "key_heads"), [(4, 4), (8, 2), (6, 1)])
def test_scores_stay_when_weights_and_rotation_change_together(
    query_heads: int, key_heads: int
) -> None:
    torch.manual_seed(0)
    width, dim, length = 20, 16, 9
    x = torch.randn(2, length, width, dtype=torch.float64)
    w_q = torch.randn(query_heads * dim, width, dtype=torch.float64)
    w_k = torch.randn(key_heads * dim, width, dtype=torch.float64)
    cos, sin = rope_table(range(length), dim, dtype=torch.float64)

    def scores(w_q: torch.Tensor, w_k: torch.Tensor, interleaved: bool) -> torch.Tensor:
        q, k = ((x @ w.T).unflatten(-1, (-1, dim)).transpose(1, 2) for w in (w_q, w_k))
        q, k = (apply_rope(z, cos, sin, interleaved=interleaved) for z in (q, k))
        return q @ k.repeat_interleave(query_heads // key_heads, dim=1).transpose(-1, -2)

    want = scores(w_q, w_k, interleaved=True)
    got = scores(permute_qk(w_q, query_heads), permute_qk(w_k, key_heads), interleaved=False)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-11)
    assert (scores(w_q, w_k, interleaved=False) - want).abs().max() > 1  # the weights matter
