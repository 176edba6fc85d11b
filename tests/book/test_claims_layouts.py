"""The claims of chapter 05, each against an oracle of its own: plain loops over the definition."""

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves

from rope_minimal import (
    RotaryEmbedding,
    apply_rope,
    permute_qk,
    rope_table,
    rotate_complex,
    rotation_matrix,
    to_half,
    to_interleaved,
)
from tests.tools.boxes import boxes_with_checks
from tests.tools.cells import read_cells, read_probe, run_cells

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "05-layouts.ipynb"
POSITIONS = np.array([0, 1, 2, 255, 257, 4_096, 131_071])
EVEN = range(2, 258, 2)


def rotate_by_loop(x, m, dim, interleaved):
    """Turn each pair of x (dim,) with scalar arithmetic, straight from the definition."""
    y = [0.0] * dim
    for i in range(dim // 2):
        u, v = (2 * i, 2 * i + 1) if interleaved else (i, i + dim // 2)
        angle = float(m) * 10000.0 ** (-2 * i / dim)
        y[u] = x[u] * math.cos(angle) - x[v] * math.sin(angle)
        y[v] = x[u] * math.sin(angle) + x[v] * math.cos(angle)
    return np.array(y)


def test_every_claim_has_its_number_and_a_second_check_that_exists():
    claims = list(boxes_with_checks(NOTEBOOK, "Claim"))
    assert [title for title, *_ in claims] == [f"Claim 5.{n}" for n in range(1, 7)]
    for title, check, text, code in claims:
        file, names = re.fullmatch(r'\.\./(tests/\w+/\w+\.py) "([\w ]+)"', check).groups()
        source = (NOTEBOOK.parent.parent / file).read_text(encoding="utf-8")
        assert all(f"def {name}(" in source for name in names.split()), title
        assert text.count(". ") <= 1, title  # one sentence or two
        assert "assert" in code, title


# ---- one vector, two answers ---------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True])
def test_the_vector_of_the_first_section(interleaved):
    x = np.arange(1.0, 9.0)
    wanted = rotate_by_loop(x, 1, 8, interleaved)
    assert np.allclose(rotate_complex(x[None], [1], interleaved=interleaved)[0], wanted, atol=1e-15)
    assert np.allclose(rotation_matrix(1, 8, interleaved=interleaved) @ x, wanted, atol=1e-15)
    other = rotate_by_loop(x, 1, 8, not interleaved)
    assert not np.isclose(wanted, other).any()


def test_two_rows_of_the_layout_note_use_wrong_indices():
    """At d = 6 the note prints every row: 1 to 4 and the last two, d - 1 and d."""
    q = np.array([0.3, -1.2, 0.7, 2.0, -0.4, 1.1])
    (c1, s1), (c2, s2), (c3, s3) = ((math.cos(t), math.sin(t)) for t in (0.9, 0.4, 0.2))
    printed = np.array([
        [c1, -s1, 0, 0, 0, 0],
        [s1, c1, 0, 0, 0, 0],
        [0, c2, -s2, 0, 0, 0],
        [0, s2, c2, 0, 0, 0],
        [0, 0, 0, 0, c3, -s3],
        [0, 0, 0, 0, s3, c3],
    ])  # fmt: skip
    matrix = rotation_matrix(1, 6, inv_freq=np.array([0.9, 0.4, 0.2]), interleaved=True)
    wrong = [True, True, False, False, True, True]
    assert np.isclose(printed @ q, matrix @ q).tolist() == wrong
    assert (printed[:, 3] == 0).all()  # q4 is lost, so this is no rotation
    assert np.linalg.det(printed) == 0


@pytest.mark.parametrize("dim", [2, 4, 6, 64, 128, 256])
def test_rotate_half_is_the_half_split_rotation(dim):
    x = np.random.default_rng(dim).normal(size=dim)
    for m in (0, 1, 7, 4_095):
        angle = m * 10000.0 ** (-2 * np.arange(dim // 2) / dim)
        cos, sin = np.tile(np.cos(angle), 2), np.tile(np.sin(angle), 2)
        note = x * cos + np.concatenate([-x[dim // 2 :], x[: dim // 2]]) * sin
        assert np.allclose(note, rotation_matrix(m, dim) @ x, atol=1e-14)


# ---- Claim 5.1: the permutation and its inverse --------------------------------------------------


def test_laying_out_two_rows_and_the_perfect_shuffle_undo_each_other():
    for dim in EVEN:
        pack = list(range(dim))
        rows = pack[0::2] + pack[1::2]
        assert to_half(np.array(pack)).tolist() == rows
        half = dim // 2
        shuffled = [c for pair in zip(rows[:half], rows[half:], strict=True) for c in pair]
        assert shuffled == pack
        assert to_interleaved(np.array(rows)).tolist() == shuffled
        assert shuffled[0] == 0  # the top card stays on top


@pytest.mark.parametrize("dim", [2, 4, 6, 8, 10, 16, 64])
def test_a_conversion_in_the_wrong_direction_is_hidden_at_widths_2_and_4_only(dim):
    """Refuted if a layer converted by the inverse is right in a head wider than 4, or wrong at
    2 or 4.

    The scores of a layer of two heads, converted by the inverse of what it needs.
    """
    rng = np.random.default_rng(dim)
    x, w_q, w_k = rng.normal(size=(12, 24)), *rng.normal(size=(2, 2 * dim, 24))

    def scores(w_q, w_k, interleaved):
        q, k = ((x @ w.T).reshape(12, 2, dim).swapaxes(0, 1) for w in (w_q, w_k))
        turned = (rotate_complex(v, np.arange(12), interleaved=interleaved) for v in (q, k))
        q, k = turned
        return q @ k.swapaxes(-1, -2)

    truth = scores(w_q, w_k, True)
    for inverse in (False, True):
        moved = (permute_qk(w, 2, inverse=inverse) for w in (w_q, w_k))
        off = np.linalg.norm(scores(*moved, False) - truth) / np.linalg.norm(truth)
        if dim in (2, 4) or not inverse:
            assert off < 1e-12
        else:
            assert off > 0.1


# ---- Claim 5.2: the theorem ----------------------------------------------------------------------


@pytest.mark.parametrize("dim", EVEN)
def test_half_of_the_permuted_is_the_permuted_interleaved(dim):
    x = np.random.default_rng(dim).normal(size=(len(POSITIONS), dim))
    left = rotate_complex(to_half(x), POSITIONS)
    right = to_half(rotate_complex(x, POSITIONS, interleaved=True))
    assert np.array_equal(left, right)

    cos, sin = rope_table(POSITIONS, dim, dtype=torch.float64)
    z = torch.tensor(x)
    left = apply_rope(to_half(z), cos, sin)
    right = to_half(apply_rope(z, cos, sin, interleaved=True))
    assert torch.allclose(left, right, rtol=0, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(
    dim=st.integers(1, 64).map(lambda n: 2 * n),
    m=st.integers(0, 131_071),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_theorem_against_scalar_loops(dim, m, seed):
    """Refuted if loops over single numbers give other bits on one side than on the other."""
    x = np.random.default_rng(seed).normal(size=dim)
    order = [2 * i for i in range(dim // 2)] + [2 * i + 1 for i in range(dim // 2)]
    left = rotate_by_loop(x[order], m, dim, interleaved=False)
    right = rotate_by_loop(x, m, dim, interleaved=True)[order]
    assert np.array_equal(left, right)
    assert np.allclose(left, rotate_complex(to_half(x)[None], [m])[0], atol=1e-10)


# ---- Claim 5.3: what attention sees --------------------------------------------------------------


def errors_from_matrices(T, dim, causal=False, base=10_000.0):
    """Return the expected errors of the scores over T tokens, without a vector.

    For independent entries of variance 1 the mean of (q^T A k)^2 is the sum of the squares of A.
    The pairs are read off the definition: no function of the package makes these matrices.
    """
    order = [*range(0, dim, 2), *range(1, dim, 2)]
    theta = base ** (-np.arange(0, dim, 2) / dim)
    squares = {"truth": 0.0, "both": 0.0, "neither": 0.0, "only q": 0.0, "only k": 0.0}
    for distance in range(0 if causal else -T + 1, T):
        half, inter = np.zeros((2, dim, dim))
        for i, angle in enumerate(distance * theta):
            c, s = math.cos(angle), math.sin(angle)
            half[np.ix_([i, i + dim // 2], [i, i + dim // 2])] = [[c, -s], [s, c]]
            inter[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, -s], [s, c]]
        back = np.argsort(order)  # (P^T A)[j] = A[back[j]]
        made = {
            "truth": inter * 0,
            "both": half[back][:, back],
            "neither": half,
            "only q": half[back],
            "only k": half[:, back],
        }
        for name, matrix in made.items():
            squares[name] += (T - abs(distance)) * ((matrix - inter) ** 2).sum()
    return {name: math.sqrt(value / squares["truth"]) for name, value in squares.items()}


@pytest.mark.parametrize(("T", "percent"), [(2, 23), (8, 58), (32, 91), (64, 103), (256, 121)])
def test_the_error_of_a_forgotten_conversion_from_the_matrices_alone(T, percent):
    """Refuted if errors computed from the matrices, without random vectors, are other than
    stated."""
    error = errors_from_matrices(T, 128)
    assert error["both"] < 1e-14
    assert round(100 * error["neither"]) == percent
    assert round(100 * error["only q"]) == round(100 * error["only k"]) == 140
    assert math.isclose(error["only q"], math.sqrt(2 - 4 / 128))


def test_with_nothing_converted_the_error_goes_on_towards_141_percent():
    """In two layouts a channel has two partners, so only the diagonals meet: cosine by cosine."""
    theta = 10_000.0 ** (-np.arange(0, 128, 2) / 128)

    def error(T):
        t = np.arange(T)
        cosines = np.cos(np.outer(theta, t))
        meet = sum(cosines[c % 64] * cosines[c // 2] for c in range(128))
        weight = np.where(t == 0, T, 2.0 * (T - t)) / T**2  # how many pairs stand t apart
        return math.sqrt(2 - 2 * (weight @ meet) / 128)

    assert math.isclose(error(64), errors_from_matrices(64, 128)["neither"], rel_tol=1e-12)
    found = [error(T) for T in (256, 4_096, 65_536)]
    assert [round(100 * e) for e in found] == [121, 134, 140]
    # in the end every product averages 0, but for the first and the last channel, which have the
    # same angle in both layouts: 1/2 each
    assert found[-1] < math.sqrt(2 - 2 / 128) < 1.41


@pytest.mark.parametrize(("T", "percent"), [(2, 19), (8, 55), (256, 121)])
def test_the_error_of_a_forgotten_conversion_under_a_causal_mask(T, percent):
    assert round(100 * errors_from_matrices(T, 128, causal=True)["neither"]) == percent
    assert "19, 55 and 121 % for $T$ = 2, 8, 256" in read_cells()["claim-3"]


@pytest.mark.parametrize("dim", [8, 64, 128])
def test_the_diagonal_is_exact_if_nothing_is_converted_and_wrong_if_one_is(dim):
    t = np.arange(256)
    q, k = np.random.default_rng(dim).normal(size=(2, len(t), dim))
    left, right = rotate_complex(to_half(q), t), rotate_complex(q, t, interleaved=True)
    keys_left, keys_right = rotate_complex(to_half(k), t), rotate_complex(k, t, interleaved=True)
    for m, n in ((0, 0), (3, 250), (255, 1), (100, 99)):  # summed exactly: not a bit differs
        assert math.fsum(left[m] * keys_left[n]) == math.fsum(right[m] * keys_right[n])

    truth = right @ keys_right.T
    wrong = {
        "neither": rotate_complex(q, t) @ rotate_complex(k, t).T,
        "only q": left @ rotate_complex(k, t).T,
        "only k": rotate_complex(q, t) @ keys_left.T,
    }
    for name, scores in wrong.items():
        assert np.linalg.norm(scores - truth) > 0.9 * np.linalg.norm(truth), name
        exact = np.allclose(np.diagonal(scores), np.diagonal(truth), atol=1e-10)
        assert exact == (name == "neither")  # a token with itself: no angle, no layout


# ---- Claim 5.4: the symptom (and, in a whole model, tests/book/test_layouts_peers.py) ------------


def test_the_first_token_hides_a_forgotten_conversion():
    x = torch.randn(12, 24, generator=torch.Generator().manual_seed(0)).double()
    generator = torch.Generator().manual_seed(1)
    w = {name: torch.randn(16, 24, generator=generator).double() for name in "qkv"}
    cos, sin = rope_table(torch.arange(12), 16, dtype=torch.float64)

    def attend(w_q, w_k, interleaved):
        q, k = (apply_rope(x @ m.T, cos, sin, interleaved=interleaved) for m in (w_q, w_k))
        mask = torch.full((12, 12), -torch.inf, dtype=torch.float64).triu(1)
        return (q @ k.T / 4 + mask).softmax(-1) @ (x @ w["v"].T)

    truth = attend(w["q"], w["k"], True)
    assert torch.allclose(attend(permute_qk(w["q"], 1), permute_qk(w["k"], 1), False), truth)
    for w_q, w_k in ((w["q"], w["k"]), (permute_qk(w["q"], 1), w["k"])):
        off = (attend(w_q, w_k, False) - truth).norm(dim=-1) / truth.norm(dim=-1)
        assert off[0] < 1e-12
        assert off[2:].mean() > 0.1


def test_keys_that_serve_as_values_show_it_at_the_first_token():
    """With one matrix for both, converting it reorders what the first token passes on."""
    q, k = np.random.default_rng(0).normal(size=(2, 12, 128))
    t = np.arange(12)

    def attend(q, k, interleaved=False):
        turned_q, turned_k = (rotate_complex(z, t, interleaved=interleaved) for z in (q, k))
        weights = np.exp(turned_q @ turned_k.T / math.sqrt(128)) * np.tri(12)
        return weights @ k / weights.sum(-1, keepdims=True)

    right = attend(q, k, True)[0]
    assert np.linalg.norm(attend(q, to_half(k))[0] - right) > np.linalg.norm(right)
    assert np.allclose(attend(to_half(q), k)[0], right)


# ---- Claim 5.5: a real layer (and, in whole models, tests/book/test_layouts_peers.py) ------------


def test_values_stay():
    generator = torch.Generator().manual_seed(0)
    values, w_v, w_o = (torch.randn(*s, generator=generator) for s in ((6, 16), (16, 16), (16, 16)))
    weights = torch.randn(6, 6, generator=generator).softmax(-1)
    truth = weights @ values @ w_v.T @ w_o.T
    alone = weights @ values @ permute_qk(w_v, 2).T @ w_o.T
    both = weights @ values @ permute_qk(w_v, 2).T @ permute_qk(w_o.T, 2)
    assert torch.allclose(both, truth, atol=1e-5)
    assert (alone - truth).norm() > 0.5 * truth.norm()


@pytest.mark.parametrize("R", [4, 8, 16])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_the_chapters_conversion_of_a_whole_layer(R, kv_heads):
    chapter = run_cells("imports", "imports-package", "layer", "convert")
    scores, convert = chapter["scores"], chapter["convert"]
    generator = torch.Generator().manual_seed(R + kv_heads)
    layer = {"head_dim": 16, "rotary_dim": R}
    for kind, heads in (("q", 4), ("k", kv_heads)):
        layer["W_" + kind] = torch.randn(heads * 16, 32, generator=generator).double()
        layer["b_" + kind] = torch.randn(heads * 16, generator=generator).double()
        layer["g_" + kind] = 1 + torch.randn(16, generator=generator).double() / 2
    x = torch.randn(20, 32, generator=generator).double()
    truth = scores(x, layer, interleaved=True)
    assert torch.allclose(scores(x, convert(layer), interleaved=False), truth, rtol=0, atol=1e-12)
    # at R = 4 the permutation is its own inverse, but still not the identity
    for name in ("W_q", "W_k", "b_q", "b_k", "g_q", "g_k"):
        wrong = scores(x, convert(layer, forget=[name]), interleaved=False)
        assert (wrong - truth).norm() > 0.01 * truth.norm(), name


def test_conversion_moves_each_row_once_and_leaves_the_unrotated_ones():
    convert = run_cells("imports", "imports-package", "convert")["convert"]
    rows = torch.arange(3 * 10.0)
    layer = {"head_dim": 10, "rotary_dim": 6} | {
        name: (rows[:, None] if name[0] == "W" else rows[:10] if name[0] == "g" else rows)
        for name in ("W_q", "W_k", "b_q", "b_k", "g_q", "g_k")
    }
    new = convert(layer)
    head = [0, 2, 4, 1, 3, 5, 6, 7, 8, 9]
    assert new["b_q"].tolist() == [10 * h + j for h in range(3) for j in head]
    assert new["W_k"][:, 0].tolist() == new["b_k"].tolist()
    assert new["g_q"].tolist() == head


def test_a_new_layer_hides_each_forgotten_gain_and_bias_and_no_matrix():
    chapter = run_cells("imports", "imports-package", "layer", "convert")
    scores, convert = chapter["scores"], chapter["convert"]
    generator = torch.Generator().manual_seed(0)
    layer = {"head_dim": 16, "rotary_dim": 8}
    for kind, heads in (("q", 4), ("k", 2)):
        layer["W_" + kind] = torch.randn(heads * 16, 32, generator=generator).double()
        layer["b_" + kind] = torch.zeros(heads * 16).double()
        layer["g_" + kind] = torch.ones(16).double()
    x = torch.randn(20, 32, generator=generator).double()
    truth = scores(x, layer, interleaved=True)
    for name in ("W_q", "W_k", "b_q", "b_k", "g_q", "g_k"):
        made = scores(x, convert(layer, forget=[name]), interleaved=False)
        assert ((made - truth).norm() < 1e-12 * truth.norm()) == (name[0] in "bg"), name


def test_the_rows_of_loras_b_and_of_the_scales_move_with_the_matrix():
    generator = torch.Generator().manual_seed(0)
    w, b, a = (torch.randn(*s, generator=generator) for s in ((16, 12), (16, 2), (2, 12)))
    wanted = permute_qk(w + b @ a, 2)
    assert torch.allclose(permute_qk(w, 2) + permute_qk(b, 2) @ a, wanted, atol=1e-5)
    assert not torch.allclose(permute_qk(w, 2) + b @ a, wanted, atol=0.1)
    scale = w.abs().amax(dim=1, keepdim=True) / 127  # one for each row
    whole = (w / scale).round()
    wanted = permute_qk(whole * scale, 2)
    assert torch.equal(permute_qk(whole, 2) * permute_qk(scale, 2), wanted)
    assert not torch.allclose(permute_qk(whole, 2) * scale, wanted, atol=0.1)


# ---- the probe -----------------------------------------------------------------------------------


def turned(x, width, start, sign=1, at=1, **layout):
    """Rotate ``width`` channels from ``start`` on."""
    cos, sin = rope_table([at], width)
    before, part, after = x.split((start, width, x.shape[-1] - start - width), dim=-1)
    return torch.cat((before, apply_rope(part, cos, sign * sin, **layout), after), dim=-1)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(
    ("width", "start", "dim"), [(8, 0, 8), (6, 0, 16), (64, 0, 64), (8, 4, 12), (4, 1, 9)]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_probe_reads_layout_direction_and_channels(interleaved, width, start, dim, sign):
    found = read_probe()(lambda x: turned(x, width, start, sign, interleaved=interleaved), dim)
    layout = "interleaved" if interleaved else "half-split"
    assert found == (layout, "+mθ" if sign > 0 else "−mθ", range(start, start + width))


def two_directions(x):
    """Neighbours, the first pair counter-clockwise, the second clockwise."""
    return torch.cat((turned(x[..., :2], 2, 0), turned(x[..., 2:], 2, 0, sign=-1)), dim=-1)


def pairs_with_a_gap(x):
    """Channels 0 with 4 and 1 with 5 of a head of 8; 2, 3, 6, 7 stay (two frequencies are 0)."""
    freq = np.array([1.0, 0.1, 0.0, 0.0])
    cos, sin = rope_table([1], 8, inv_freq=freq)
    return apply_rope(x, cos, sin)


@pytest.mark.parametrize(
    ("rotate", "dim"),
    [
        (lambda x: turned(x, 8, 0, at=0), 8),  # a sine of 0
        (lambda x: x, 8),
        (lambda x: turned(x, 2, 0), 8),  # one pair has both layouts
        (lambda x: to_half(turned(x, 8, 0, interleaved=True)), 8),
        (lambda x: x.flip(-1), 8),
        (two_directions, 4),
        (pairs_with_a_gap, 8),
    ],
    ids=["position 0", "no rotation", "one pair", "reordered", "flipped", "two ways", "gap"],
)
def test_the_probe_refuses_what_fits_no_layout(rotate, dim):
    with pytest.raises(ValueError, match="no layout fits"):
        read_probe()(rotate, dim)


def by_tables(cos_of=None, sin_of=None):
    """Return x cos + rotate_half(x) sin for a head of 16, with tables made from angles (8,)."""
    angle = torch.tensor(10_000.0 ** (-np.arange(8) / 8)).float()
    cos = torch.cat((angle, angle)).cos() if cos_of is None else cos_of(angle)
    sin = torch.cat((angle, angle)).sin() if sin_of is None else sin_of(angle)
    return lambda x: x * cos + torch.cat((-x[..., 8:], x[..., :8]), dim=-1) * sin


def twice(angle):
    return torch.cat((angle, angle))


def pass_through_times(factor):
    return lambda x: torch.cat((turned(x[..., :8], 8, 0), factor * x[..., 8:]), dim=-1)


def xpos(x):
    """Grow each pair by a power of its own, as xPos does for queries at position 1."""
    growth = ((torch.arange(8) / 8 + 0.4) / 1.4) ** (1 / 512)
    return by_tables()(x) * twice(growth)


NO_ROTATION = {
    "pass-through set to 0": (pass_through_times(0), "lengths or angles"),
    "pass-through negated": (pass_through_times(-1), "comes back changed"),
    "pass-through doubled": (pass_through_times(2), "lengths or angles"),
    "cosine forgotten": (by_tables(cos_of=lambda a: 1), "lengths or angles"),
    "sine alone": (by_tables(cos_of=lambda a: 0), "lengths or angles"),
    "two ways to repeat": (
        by_tables(cos_of=lambda a: a.repeat_interleave(2).cos()),
        "lengths or angles",
    ),
    "sine and cosine swapped": (
        by_tables(lambda a: twice(a).sin(), lambda a: twice(a).cos()),
        "turns faster",
    ),
    "minus the rotation": (lambda x: -turned(x, 16, 0), "cosine is not positive"),
    "xPos growth": (xpos, "lengths or angles"),
}


@pytest.mark.parametrize(("rotate", "reason"), NO_ROTATION.values(), ids=NO_ROTATION)
def test_the_probe_refuses_what_is_no_rotation(rotate, reason):
    with pytest.raises(ValueError, match=f"no layout fits: .*{reason}"):
        read_probe()(rotate, 16)


def test_the_probe_asks_for_the_pairs_and_not_for_the_speeds():
    probe, found = read_probe(), ("half-split", "+mθ", range(16))
    assert probe(by_tables(), 16) == found
    slow = rope_table([1], 16, base=500.0)
    assert probe(lambda x: apply_rope(x, *slow), 16) == found
    assert probe(lambda x: 1.35 * turned(x, 16, 0), 16) == found  # YaRN's attention factor
    assert probe(lambda x: turned(x, 16, 0) * x.norm(dim=-1, keepdim=True), 16) == found
    part = torch.cat((torch.full((8,), 1.35), torch.ones(8)))
    assert probe(lambda x: part * turned(x, 8, 0), 16) == ("half-split", "+mθ", range(8))


def test_the_probe_must_be_asked_in_float32():
    cos, sin = rope_table([1], 128, base=1e9)
    assert read_probe()(lambda x: apply_rope(x, cos, sin), 128)[0] == "half-split"
    cos, sin = cos.half(), sin.half()
    assert (sin == 0).any()  # underflow
    with pytest.raises(ValueError, match="no layout fits"):
        read_probe()(lambda x: apply_rope(x.half(), cos, sin).float(), 128)


# ---- a length it was not built for ---------------------------------------------------------------


def test_one_token_against_a_fixed_table_becomes_many():
    table = run_cells("imports", "imports-package", "lengths-code")["FixedTable"](
        dim=64, max_len=16
    )
    x = torch.randn(1, 2, 16, 64)
    assert torch.allclose(table(x), apply_rope(x, *rope_table(torch.arange(16), 64)), atol=1e-6)
    assert table(x[..., :1, :]).shape == (1, 2, 16, 64)
    for length in (2, 15, 17):
        with pytest.raises(RuntimeError):
            table(torch.randn(1, 2, length, 64))
    rotary = RotaryEmbedding(64, max_seq_len=16)
    assert rotary(x[..., :1, :], offset=15).shape == (1, 2, 1, 64)
    with pytest.raises(ValueError, match=r"0\.\.max_seq_len = 0\.\.16, got 16\.\.17"):
        rotary(x[..., :1, :], offset=16)


# ---- Claim 5.6: bytes ----------------------------------------------------------------------------


def test_the_meter_counts_a_copy_twice_and_a_view_not_at_all():
    chapter = run_cells("imports", "imports-package", "meter")
    with chapter["ByteMeter"]() as meter:
        y = torch.zeros(32, 256, 64)
        before = meter.total
        y.view(-1).unflatten(0, (32, 256, 64)).transpose(0, 1)
        assert meter.total == before
        y.clone()
        assert meter.total - before == 2 * y.nbytes


def traced_bytes(form, *tensors):
    """Return what the operators of the traced graph read and write, told from their storage.

    No dispatch mode counts here: the graph is traced once, then run node by node. An operator
    whose results lie in the storage of its arguments made views, unless it wrote to that place.
    """
    total, given, values = 0, iter(tensors), {}
    for node in make_fx(lambda *each: form(*each))(*tensors).graph.nodes:
        if node.op == "placeholder":
            values[node] = next(given)
        elif node.op == "call_function":
            args, kwargs = map_arg((node.args, dict(node.kwargs)), values.get)
            values[node] = node.target(*args, **kwargs)
            inputs = {key: value for key, value in kwargs.items() if key != "out"}
            read, made = tree_leaves((args, inputs)), tree_leaves(values[node])
            read = [leaf for leaf in read if isinstance(leaf, torch.Tensor)]
            places = {tensor.untyped_storage().data_ptr() for tensor in read}
            new = any(tensor.untyped_storage().data_ptr() not in places for tensor in made)
            in_place = "out" in kwargs or "_." in str(node.target)
            if (new or in_place) and "empty" not in str(node.target):
                total += sum(tensor.nbytes for tensor in (*read, *made))
    return total


@pytest.mark.parametrize("shape", [(1, 32, 256, 64), (2, 16, 256, 128)])
def test_bytes_by_tracing_the_operators(shape):
    """Refuted if tracing torch's operators counts other bytes than stated.

    Of the chapter, only the forms: this test makes x and the tables, and counts otherwise.
    """
    chapter = run_cells("imports", "imports-package", "formulations")
    x, (cos, sin) = torch.randn(shape), rope_table(torch.arange(shape[-2]), shape[-1])
    assert traced_bytes(torch.clone, x) == 2 * x.nbytes
    forms = {
        chapter["textbook_half"]: 10,
        chapter["textbook_interleaved"]: 10,
        chapter["slices_half"]: 9,
        apply_rope: 5,
        lambda *xcs: apply_rope(*xcs, interleaved=True): 2,
    }
    for form, wanted in forms.items():
        assert round(traced_bytes(form, x, cos, sin) / x.nbytes) == wanted, form


@pytest.mark.parametrize(
    ("dtype", "wanted"), [(torch.float32, (10, 10, 5, 2)), (torch.bfloat16, (15, 15, 16, 10))]
)
@pytest.mark.parametrize("shape", [(1, 32, 256, 64), (4, 16, 256, 64)])
def test_the_count_of_bytes_at_other_types_and_sizes(dtype, wanted, shape):
    """Refuted if another count of bytes, at other types and sizes, differs.

    Of the chapter, only the forms: this test makes x, the tables and the count itself.
    """
    chapter = run_cells("imports", "imports-package", "formulations")
    x, tables = torch.randn(shape).to(dtype), rope_table(torch.arange(shape[-2]), shape[-1])
    forms = (
        chapter["textbook_half"],
        chapter["textbook_interleaved"],
        apply_rope,
        lambda *xcs: apply_rope(*xcs, interleaved=True),
    )
    counted = tuple(round(metered_bytes(form, x, *tables) / x.nbytes) for form in forms)
    assert counted == wanted


def test_a_partly_rotated_head_costs_more():
    """The channels that are not turned are copied: the claim is about whole heads."""
    x, tables = torch.randn(1, 32, 256, 128), rope_table(torch.arange(256), 64)
    product = metered_bytes(lambda *xcs: apply_rope(*xcs, interleaved=True), x, *tables)
    assert product / x.nbytes > 2.9


def test_beyond_one_tile_the_count_of_the_half_split_form_rises():
    x, tables = torch.randn(1, 32, 1_024, 64), rope_table(torch.arange(1_024), 64)
    assert x.numel() > 2**20
    assert round(metered_bytes(apply_rope, x, *tables) / x.nbytes) == 8
    one_product = metered_bytes(lambda *xcs: apply_rope(*xcs, interleaved=True), x, *tables)
    assert round(one_product / x.nbytes) == 2


def metered_bytes(form, *tensors):
    """Return what the chapter's meter counts."""
    with run_cells("imports", "imports-package", "meter")["ByteMeter"]() as meter:
        form(*tensors)
    return meter.total


# ---- the exercises -------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [8, 64, 96, 128, 256])
def test_conversions_until_nothing_has_moved_is_the_order_of_two(dim):
    count = run_cells("imports", "imports-package", "answer-1")["conversions_until_back"](dim)
    powers = [pow(2, n, dim - 1) for n in range(1, count + 1)]
    assert powers.index(1) == count - 1


def test_the_answers_of_the_exercises_run():
    run_cells("imports", "imports-package", "answer-3", "answer-3-check")
    run_cells("imports", "imports-package", "answer-4", "answer-4-check")
    run_cells("imports", "imports-package", "answer-5")
    run_cells("imports", "imports-package", "answer-6")


def test_the_chapter_runs_without_the_peers(monkeypatch, capsys):
    """The book's build has neither transformers nor rotary-embedding-torch."""
    for peer in ("transformers", "rotary_embedding_torch"):
        monkeypatch.setitem(sys.modules, peer, None)
    cells = "imports", "imports-package", "peers-onnx", "peers-functions", "peers-run"
    assert run_cells(*cells, "llama-make", "llama-three", "llama-run")["installed"] == {}
    said = capsys.readouterr().out
    assert "tests/book/test_layouts_peers.py runs them" in said
    assert "test_tiny_llama_in_the_other_layout runs this" in said
