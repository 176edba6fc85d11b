"""A bad argument is named, with its value, before any number is computed from it."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch

from rope_minimal import (
    RotaryEmbedding,
    apply_rope,
    inverse_frequencies,
    permute_qk,
    rope_table,
    rotate_by_matrix,
    rotate_complex,
    rotation_matrix,
    to_half,
    to_interleaved,
)

X = torch.ones(2, 3, 4, 8)  # (B, H, T, D)
COS, SIN = rope_table(range(4), 8)
IDS = torch.arange(4).expand(2, 4)
NAN, INF = float("nan"), float("inf")


def rope(**arguments):
    return RotaryEmbedding(8, 16)(X, **arguments)


Case = tuple[Callable[[], object], type[Exception], list[str]]

HUGE = 10**400  # no float holds it

# what is done, what it raises, what the message must contain: the argument and what came
CASES: dict[str, Case] = {
    # dim
    "odd dim": (lambda: inverse_frequencies(7), ValueError, ["dim", "got 7"]),
    "dim zero": (lambda: inverse_frequencies(0), ValueError, ["dim", "got 0"]),
    "negative dim": (lambda: inverse_frequencies(-8), ValueError, ["dim", "got -8"]),
    "fractional dim": (lambda: inverse_frequencies(8.0), TypeError, ["dim", "got 8.0"]),
    "dim as text": (lambda: inverse_frequencies("8"), TypeError, ["dim", "got '8'"]),
    "dim as bool": (lambda: inverse_frequencies(True), TypeError, ["dim", "got True"]),
    "table, odd dim": (lambda: rope_table([0], 7), ValueError, ["dim", "got 7"]),
    "module, odd dim": (lambda: RotaryEmbedding(7), ValueError, ["dim", "got 7"]),
    "module, dim None": (lambda: RotaryEmbedding(None), TypeError, ["dim", "got None"]),
    "matrix, odd dim": (lambda: rotation_matrix(1, 7), ValueError, ["dim", "got 7"]),
    "matrix, odd dim, given frequencies": (
        lambda: rotation_matrix(1, 7, inv_freq=[1, 1, 1]),
        ValueError,
        ["dim", "got 7"],
    ),
    # base
    "base zero": (lambda: inverse_frequencies(8, 0), ValueError, ["base", "got 0"]),
    "negative base": (lambda: inverse_frequencies(8, -1e4), ValueError, ["base", "got -10000.0"]),
    "infinite base": (lambda: inverse_frequencies(8, INF), ValueError, ["base", "got inf"]),
    "base nan": (lambda: inverse_frequencies(8, NAN), ValueError, ["base", "got nan"]),
    "complex base": (lambda: inverse_frequencies(8, 1j), TypeError, ["base", "got 1j"]),
    "base as text": (lambda: RotaryEmbedding(8, 16, "1e4"), TypeError, ["base", "got '1e4'"]),
    "table, base zero": (lambda: rope_table([0], 8, 0.0), ValueError, ["base", "got 0.0"]),
    "module, base nan": (lambda: RotaryEmbedding(8, 16, NAN), ValueError, ["base", "got nan"]),
    "huge base": (lambda: inverse_frequencies(8, HUGE), ValueError, ["base", f"got {HUGE}"]),
    "a base that is 0 as a float": (
        lambda: rope_table([1], 8, Fraction(1, HUGE)),
        ValueError,
        ["base", "got 1/"],
    ),
    "a base with infinite frequencies": (
        lambda: rope_table([1], 64, 1e-320),
        ValueError,
        ["base must give finite frequencies", "got 1e-320"],
    ),
    # the table
    "positions that wrap": (
        lambda: rope_table(np.array([2**63], dtype=np.uint64), 8),
        ValueError,
        ["positions must be < 2**63", "got [9223372036854775808]"],
    ),
    "float positions": (
        lambda: rope_table(torch.arange(4.0), 8),
        TypeError,
        ["positions", "got torch.float32"],
    ),
    "bfloat16 positions": (
        lambda: rope_table(torch.arange(4).bfloat16(), 8),
        TypeError,
        ["positions", "got torch.bfloat16"],
    ),
    "list of float positions": (
        lambda: rope_table([0.5, 1.0], 8),
        TypeError,
        ["positions", "got torch.float64"],
    ),
    "bool positions": (
        lambda: rope_table([True, False], 8),
        TypeError,
        ["positions", "got torch.bool"],
    ),
    "positions as text": (lambda: rope_table("0123", 8), TypeError, ["positions", "got '0123'"]),
    "positions None": (lambda: rope_table(None, 8), TypeError, ["positions", "got None"]),
    "one bare position": (lambda: rope_table(5, 8), ValueError, ["positions", "got shape ()"]),
    "table of integers": (
        lambda: rope_table([0], 8, dtype=torch.int64),
        TypeError,
        ["dtype", "got torch.int64"],
    ),
    "table, NumPy type": (
        lambda: rope_table([0], 8, dtype=np.float32),
        TypeError,
        ["dtype", "got <class 'numpy.float32'>"],
    ),
    "frequencies of another width": (
        lambda: rope_table([0], 8, inv_freq=torch.ones(3)),
        ValueError,
        ["inv_freq", "(4,)", "got (3,)"],
    ),
    "integer frequencies": (
        lambda: rope_table([0], 8, inv_freq=torch.ones(4, dtype=torch.long)),
        TypeError,
        ["inv_freq", "got torch.int64"],
    ),
    "complex frequencies": (
        lambda: rope_table([0], 8, inv_freq=torch.ones(4) * 1j),
        TypeError,
        ["inv_freq", "got torch.complex64"],
    ),
    "infinite frequency": (
        lambda: rope_table([0], 4, inv_freq=[1.0, INF]),
        ValueError,
        ["inv_freq", "got [1.0, inf]"],
    ),
    "ragged positions": (
        lambda: rope_table([[0], [1, 2]], 8),
        TypeError,
        ["positions", "got [[0], [1, 2]]"],
    ),
    "frequencies as text": (
        lambda: rope_table([0], 8, inv_freq="fast"),
        TypeError,
        ["inv_freq", "got 'fast'"],
    ),
    # x
    "integer x": (lambda: apply_rope(X.long(), COS, SIN), TypeError, ["x ", "got torch.int64"]),
    "complex x": (lambda: apply_rope(X + 0j, COS, SIN), TypeError, ["x ", "got torch.complex64"]),
    "NumPy x": (lambda: apply_rope(X.numpy(), COS, SIN), TypeError, ["x ", "got ndarray"]),
    "1-D x": (lambda: apply_rope(X[0, 0, 0], COS, SIN), ValueError, ["x ", "got shape (8,)"]),
    "module, 1-D x": (
        lambda: RotaryEmbedding(8)(X[0, 0, 0]),
        ValueError,
        ["x ", "got shape (8,)"],
    ),
    "module, integer x": (
        lambda: RotaryEmbedding(8)(X.int()),
        TypeError,
        ["x ", "got torch.int32"],
    ),
    "module, x None": (lambda: RotaryEmbedding(8)(None), TypeError, ["x ", "got NoneType"]),
    # flags
    "layout as text": (
        lambda: apply_rope(X, COS, SIN, interleaved="half"),
        TypeError,
        ["interleaved must be True or False", "got 'half'"],
    ),
    "module, layout as text": (
        lambda: RotaryEmbedding(8, interleaved="half"),
        TypeError,
        ["interleaved", "got 'half'"],
    ),
    "reference, layout as text": (
        lambda: rotate_complex(np.ones((1, 8)), [0], interleaved="half"),
        TypeError,
        ["interleaved", "got 'half'"],
    ),
    "inverse as text": (
        lambda: permute_qk(torch.ones(8), 2, inverse="no"),
        TypeError,
        ["inverse", "got 'no'"],
    ),
    # cos and sin
    "wider than x": (
        lambda: apply_rope(X[..., :6], COS, SIN),
        ValueError,
        ["width", "cos", "= 2..6", "got 8"],
    ),
    "module wider than x": (
        lambda: RotaryEmbedding(16)(X),
        ValueError,
        ["x must", "dim = 16", "8)"],
    ),
    "table of no width": (
        lambda: apply_rope(X, COS[:, :0], SIN[:, :0]),
        ValueError,
        ["width", "cos", "got 0"],
    ),
    "cos and sin differ": (
        lambda: apply_rope(X, COS, SIN[:, :2]),
        ValueError,
        ["cos", "sin", "(4, 4)", "(4, 2)"],
    ),
    "integer cos": (
        lambda: apply_rope(X, COS.long(), SIN),
        TypeError,
        ["cos", "got torch.int64"],
    ),
    "complex sin": (
        lambda: apply_rope(X, COS, SIN + 0j),
        TypeError,
        ["sin", "got torch.complex64"],
    ),
    "cos as a list": (lambda: apply_rope(X, [[1.0]], SIN), TypeError, ["cos", "got list"]),
    "too few positions": (
        lambda: apply_rope(X, COS[:3], SIN[:3]),
        ValueError,
        ["cos has 3 positions", "x has 4"],
    ),
    "one position for many": (  # broadcasting would accept it
        lambda: apply_rope(X, COS[:1], SIN[:1]),
        ValueError,
        ["cos has 1 positions", "x has 4"],
    ),
    "one vector for many positions": (  # broadcasting would return four
        lambda: apply_rope(X[:, :, :1], COS, SIN),
        ValueError,
        ["cos has 4 positions", "x has 1"],
    ),
    "head and sequence axes swapped": (
        lambda: apply_rope(X.transpose(1, 2), COS, SIN),
        ValueError,
        ["cos has 4 positions", "x has 3", "(..., T, D)"],
    ),
    "cos of one axis": (lambda: apply_rope(X, COS[0], SIN[0]), ValueError, ["cos", "(4,)"]),
    "a batch of tables without the head axis": (  # right only where B = H, and wrong there
        lambda: apply_rope(X, COS.expand(2, 4, 4), SIN.expand(2, 4, 4)),
        ValueError,
        ["cos", "(2, 4, 4)", "(2, 3, 4, 8)"],
    ),
    "tables of another batch": (
        lambda: apply_rope(X, COS.expand(5, 1, 4, 4), SIN.expand(5, 1, 4, 4)),
        ValueError,
        ["cos", "(5, 1, 4, 4)", "(2, 3, 4, 8)"],
    ),
    "a table larger than x": (
        lambda: apply_rope(X[:1], COS.expand(2, 1, 4, 4), SIN.expand(2, 1, 4, 4)),
        ValueError,
        ["cos", "(2, 1, 4, 4)", "(1, 3, 4, 8)"],
    ),
    "another device": (
        lambda: apply_rope(X, COS.to("meta"), SIN.to("meta")),
        ValueError,
        ["x, cos and sin", "cpu", "meta"],
    ),
    # the module's positions
    "length zero": (lambda: RotaryEmbedding(8, 0), ValueError, ["max_seq_len", "got 0"]),
    "fractional length": (lambda: RotaryEmbedding(8, 16.0), TypeError, ["max_seq_len", "16.0"]),
    "negative offset": (lambda: rope(offset=-1), ValueError, ["offset", "got -1"]),
    "fractional offset": (lambda: rope(offset=1.0), TypeError, ["offset", "got 1.0"]),
    "tensor offset": (
        lambda: rope(offset=torch.tensor([1, 2])),
        TypeError,
        ["offset", "got tensor([1, 2])"],
    ),
    "past max_seq_len": (
        lambda: rope(offset=13),
        ValueError,
        ["offset", "13..17", "max_seq_len = 16"],
    ),
    "longer than max_seq_len": (
        lambda: RotaryEmbedding(8, 3)(X),
        ValueError,
        ["0..4", "max_seq_len = 3"],
    ),
    "float position_ids": (
        lambda: rope(position_ids=IDS.bfloat16()),
        TypeError,
        ["position_ids", "got torch.bfloat16"],
    ),
    "bool position_ids": (
        lambda: rope(position_ids=IDS.bool()),
        TypeError,
        ["position_ids", "got torch.bool"],
    ),
    "position_ids without a batch": (
        lambda: rope(position_ids=IDS[0]),
        ValueError,
        ["position_ids", "(2, 4)", "got (4,)"],
    ),
    "position_ids too short": (
        lambda: rope(position_ids=IDS[:, :3]),
        ValueError,
        ["position_ids", "(2, 4)", "got (2, 3)"],
    ),
    "position_ids transposed": (
        lambda: rope(position_ids=IDS.T),
        ValueError,
        ["position_ids", "(2, 4)", "got (4, 2)"],
    ),
    "position_ids of another batch": (
        lambda: rope(position_ids=IDS[:1].expand(3, 4)),
        ValueError,
        ["position_ids", "(2, 4)", "got (3, 4)"],
    ),
    "position_ids for x without a batch": (
        lambda: RotaryEmbedding(8)(X[0, 0], position_ids=IDS),
        ValueError,
        ["position_ids", "(B, ..., T, D)", "got (4, 8)"],
    ),
    "negative position_ids": (  # indexing would take the end of the table
        lambda: rope(position_ids=IDS - 1),
        ValueError,
        ["position_ids", "0..15", "got -1"],
    ),
    "position_ids past max_seq_len": (
        lambda: rope(position_ids=IDS + 13),
        ValueError,
        ["position_ids", "0..15", "got 16"],
    ),
    "offset and position_ids": (
        lambda: rope(offset=2, position_ids=IDS),
        ValueError,
        ["offset", "position_ids", "got offset = 2"],
    ),
    "bad offset and position_ids": (
        lambda: rope(offset=None, position_ids=IDS),
        TypeError,
        ["offset", "got None"],
    ),
    # layouts
    "odd width": (lambda: to_half(X[..., :7]), ValueError, ["x.shape[-1]", "got 7"]),
    "odd width back": (lambda: to_interleaved(np.ones(7)), ValueError, ["x.shape[-1]", "got 7"]),
    "no axis": (lambda: to_half(np.array(1.0)), ValueError, ["x ", "got shape ()"]),
    "a list": (lambda: to_half([1, 2]), TypeError, ["x ", "got list"]),
    "indivisible weight": (
        lambda: permute_qk(torch.ones(100, 4), 8),
        ValueError,
        ["weight", "num_heads = 8", "got 100"],
    ),
    "heads of odd width": (
        lambda: permute_qk(torch.ones(24, 4), 8),
        ValueError,
        ["weight", "num_heads = 8", "got 24"],
    ),
    "no rows": (lambda: permute_qk(np.ones((0, 4)), 8), ValueError, ["weight", "got 0 rows"]),
    "3-D weight": (
        lambda: permute_qk(torch.ones(4, 2, 2), 1),
        ValueError,
        ["weight", "got shape (4, 2, 2)"],
    ),
    "0-D weight": (lambda: permute_qk(torch.ones(()), 1), ValueError, ["weight", "got shape ()"]),
    "weight as a list": (lambda: permute_qk([1, 2], 1), TypeError, ["weight", "got list"]),
    "no heads": (lambda: permute_qk(torch.ones(8), 0), ValueError, ["num_heads", "got 0"]),
    "negative heads": (lambda: permute_qk(torch.ones(8), -2), ValueError, ["num_heads", "got -2"]),
    "fractional heads": (
        lambda: permute_qk(torch.ones(8), 2.0),
        TypeError,
        ["num_heads", "got 2.0"],
    ),
    # the reference
    "position as text": (lambda: rotation_matrix("1", 8), TypeError, ["position", "got '1'"]),
    "infinite position": (lambda: rotation_matrix(INF, 8), ValueError, ["position", "got inf"]),
    "huge position": (lambda: rotation_matrix(HUGE, 8), ValueError, ["position", f"got {HUGE}"]),
    "position times frequency": (
        lambda: rotation_matrix(1e308, 2, inv_freq=[1e308]),
        ValueError,
        ["positions * inv_freq must be finite", "got [inf]"],
    ),
    "reference, complex frequencies": (
        lambda: rotation_matrix(1, 2, inv_freq=np.array([1 + 1j])),
        TypeError,
        ["inv_freq", "got dtype complex128"],
    ),
    "reference, frequencies as text": (
        lambda: rotation_matrix(1, 2, inv_freq=["1.0"]),
        TypeError,
        ["inv_freq", "got dtype <U3"],
    ),
    "reference, bfloat16 x": (
        lambda: rotate_complex(X.bfloat16(), [0]),
        TypeError,
        ["x must be real numbers", "bfloat16"],
    ),
    "reference, 1-D x": (
        lambda: rotate_complex(np.ones(8), [0]),
        ValueError,
        ["x ", "got shape (8,)"],
    ),
    "reference, odd width": (
        lambda: rotate_by_matrix(np.ones((1, 7)), [0]),
        ValueError,
        ["x.shape[-1]", "got 7"],
    ),
    "reference, complex x": (
        lambda: rotate_complex(np.ones((1, 8)) * 1j, [0]),
        TypeError,
        ["x ", "got dtype complex128"],
    ),
    "reference, complex positions": (
        lambda: rotate_by_matrix(np.ones((1, 8)), [1j]),
        TypeError,
        ["positions", "got dtype complex128"],
    ),
    "reference, position nan": (
        lambda: rotate_complex(np.ones((1, 8)), [NAN]),
        ValueError,
        ["positions", "got [nan]"],
    ),
    "reference, too many positions": (
        lambda: rotate_by_matrix(np.ones((2, 3, 8)), [0, 1]),
        ValueError,
        ["positions", "(3,)", "got (2,)"],
    ),
    "reference, frequencies of another width": (
        lambda: rotate_complex(np.ones((1, 8)), [0], inv_freq=[1.0]),
        ValueError,
        ["inv_freq", "(4,)", "got (1,)"],
    ),
    "reference, infinite frequency": (
        lambda: rotation_matrix(0, 2, inv_freq=[INF]),
        ValueError,
        ["inv_freq", "got [inf]"],
    ),
}


@pytest.mark.parametrize(("call", "error", "named"), CASES.values(), ids=CASES)
def test_bad_input_is_named(
    call: Callable[[], object], error: type[Exception], named: list[str]
) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert caught.type is error
    for part in named:
        assert part in str(caught.value)


def test_the_good_neighbours_of_the_bad_cases_are_accepted() -> None:
    """The checks refuse no more than they say."""
    rope(offset=12)
    rope(offset=np.int64(12))
    rope(offset=0, position_ids=IDS + 12)
    RotaryEmbedding(8, 4)(X)
    apply_rope(X, COS[..., :1], SIN[..., :1])
    apply_rope(X, COS.expand(2, 1, 4, 4), SIN.expand(2, 1, 4, 4))
    permute_qk(torch.ones(24, 4), 12)
    permute_qk(torch.ones(256, 4), np.int8(64), inverse=np.bool_(True))
    RotaryEmbedding(np.int8(8), 512)(torch.ones(10, 8), np.uint8(250))
    rope_table([-5], 2, 1e-3)
    rotation_matrix(-2.5, 2)
    rotation_matrix(np.uint64(3), np.uint64(8))
