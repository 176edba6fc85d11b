"""The claims of chapter 05, each against an oracle of its own: plain loops over the definition."""

import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

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

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "05-layouts.ipynb"
POSITIONS = np.array([0, 1, 2, 255, 257, 4_096, 131_071])
EVEN = range(2, 258, 2)


def read_cells():
    """Return the chapter's cells as {id: source}."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return {cell["id"]: "".join(cell["source"]) for cell in cells}


def run_cells(*ids):
    """Run cells of the chapter and return the names they define."""
    names = {}
    for each in ids:
        source = read_cells()[each]
        if each.startswith("imports"):  # no plot here, and no widget
            picture = r"(?m)^(plt\.|import matplotlib|from rope_minimal\.explore|    explore,).*$"
            source = re.sub(picture, "", source)
        exec(source, names)
    return names


def rotate_by_loop(x, m, dim, interleaved):
    """Turn each pair of x (dim,) with scalar arithmetic, straight from the definition."""
    y = [0.0] * dim
    for i in range(dim // 2):
        u, v = (2 * i, 2 * i + 1) if interleaved else (i, i + dim // 2)
        angle = float(m) * 10000.0 ** (-2 * i / dim)
        y[u] = x[u] * math.cos(angle) - x[v] * math.sin(angle)
        y[v] = x[u] * math.sin(angle) + x[v] * math.cos(angle)
    return np.array(y)


def test_names_of_guarding_tests_in_the_chapter_exist():
    here = Path(__file__).parent
    tests = "".join(p.read_text(encoding="utf-8") for p in here.glob("test_*layouts*.py"))
    named = set(re.findall(r"`(test_[a-z0-9_]+)`", "".join(read_cells().values())))
    assert len(named) >= 8
    assert {name for name in named if f"def {name}(" not in tests} == set()


@pytest.mark.parametrize("interleaved", [False, True])
def test_the_vector_of_the_first_section(interleaved):
    x = np.arange(1.0, 9.0)
    wanted = rotate_by_loop(x, 1, 8, interleaved)
    assert np.allclose(rotate_complex(x[None], [1], interleaved=interleaved)[0], wanted, atol=1e-15)
    assert np.allclose(rotation_matrix(1, 8, interleaved=interleaved) @ x, wanted, atol=1e-15)
    other = rotate_by_loop(x, 1, 8, not interleaved)
    assert not np.isclose(wanted, other).any()


def test_two_rows_of_the_layout_note_use_wrong_indices():
    q, a = np.array([0.3, -1.2, 0.7, 2.0]), (0.9, 0.4)
    (c1, s1), (c2, s2) = ((math.cos(t), math.sin(t)) for t in a)
    printed = np.array([
        [c1, -s1, 0, 0],
        [s1, c1, 0, 0],
        [0, c2, -s2, 0],
        [0, s2, c2, 0],
    ])  # fmt: skip
    matrix = rotation_matrix(1, 4, inv_freq=np.array(a), interleaved=True)
    assert np.isclose(printed @ q, matrix @ q).tolist() == [True, True, False, False]
    assert np.linalg.det(printed) == 0  # a rotation has determinant 1
    assert not np.isclose(np.linalg.norm(printed @ q), np.linalg.norm(q))


@pytest.mark.parametrize("dim", [2, 4, 6, 64, 128, 256])
def test_rotate_half_is_the_half_split_rotation(dim):
    x = np.random.default_rng(dim).normal(size=dim)
    for m in (0, 1, 7, 4_095):
        angle = m * 10000.0 ** (-2 * np.arange(dim // 2) / dim)
        cos, sin = np.tile(np.cos(angle), 2), np.tile(np.sin(angle), 2)
        note = x * cos + np.concatenate([-x[dim // 2 :], x[: dim // 2]]) * sin
        assert np.allclose(note, rotation_matrix(m, dim) @ x, atol=1e-14)


def test_only_widths_2_and_4_hide_the_direction_of_a_conversion():
    for dim in EVEN:
        order = np.arange(dim)
        assert np.array_equal(to_interleaved(to_half(order)), order)
        assert np.array_equal(to_half(to_half(order)), order) == (dim in (2, 4))


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
    x = np.random.default_rng(seed).normal(size=dim)
    order = [2 * i for i in range(dim // 2)] + [2 * i + 1 for i in range(dim // 2)]
    left = rotate_by_loop(x[order], m, dim, interleaved=False)
    right = rotate_by_loop(x, m, dim, interleaved=True)[order]
    assert np.array_equal(left, right)
    assert np.allclose(left, rotate_complex(to_half(x)[None], [m])[0], atol=1e-10)


@pytest.mark.parametrize("dim", [8, 64, 128])
def test_scores_agree_only_if_both_are_permuted(dim):
    t = np.arange(256)
    q, k = np.random.default_rng(dim).normal(size=(2, len(t), dim))
    left, right = rotate_complex(to_half(q), t), rotate_complex(q, t, interleaved=True)
    keys_left, keys_right = rotate_complex(to_half(k), t), rotate_complex(k, t, interleaved=True)
    for m, n in ((0, 0), (3, 250), (255, 1), (100, 99)):
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


def test_a_fresh_layer_hides_forgotten_gains_and_biases():
    assert torch.equal(permute_qk(torch.ones(16), 1), torch.ones(16))
    assert torch.equal(permute_qk(torch.zeros(16), 2), torch.zeros(16))


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(("width", "dim"), [(8, 8), (6, 16), (64, 64)])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_probe_reads_layout_direction_and_width(interleaved, width, dim, sign):
    probe = run_cells("imports", "imports-package", "probe-code")["probe"]
    cos, sin = rope_table([1], width)
    found = probe(lambda x: apply_rope(x, cos, sign * sin, interleaved=interleaved), dim)
    layout = "interleaved" if interleaved else "half-split"
    assert found == (layout, "+mθ" if sign > 0 else "−mθ", width)


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
    with pytest.raises(ValueError, match="max_seq_len = 16"):
        rotary(x[..., :1, :], offset=16)


def test_bytes_of_each_formulation():
    chapter = run_cells("imports", "imports-package", "meter", "formulations", "count")
    x_bytes, table = 32 * 256 * 64 * 4, 2 * 256 * 32 * 4
    with chapter["ByteMeter"]() as meter:  # a copy reads and writes, a view does nothing
        y = torch.zeros(32, 256, 64)
        before = meter.total
        y.view(-1).unflatten(0, (32, 256, 64)).transpose(0, 1)
        assert meter.total == before
        y.clone()
        assert meter.total - before == 2 * x_bytes
    assert chapter["moved"]["apply_rope, interleaved"] <= 2 + 3 * table / x_bytes
    assert [round(n) for n in chapter["moved"].values()] == [10, 10, 9, 5, 2]


@pytest.mark.parametrize("dim", [8, 64, 96, 128, 256])
def test_conversions_until_nothing_has_moved_is_the_order_of_two(dim):
    count = run_cells("imports", "imports-package", "answer-1")["conversions_until_back"](dim)
    powers = [pow(2, n, dim - 1) for n in range(1, count + 1)]
    assert powers.index(1) == count - 1


def test_the_answers_of_the_exercises_run():
    run_cells("imports", "imports-package", "answer-2", "answer-2-check")
    run_cells("imports", "imports-package", "answer-3", "answer-3-check")
    run_cells("imports", "imports-package", "answer-4")
    run_cells("imports", "imports-package", "answer-5")


def test_the_chapter_runs_without_the_peers(monkeypatch, capsys):
    """The book's build has neither transformers nor rotary-embedding-torch."""
    for peer in ("transformers", "rotary_embedding_torch"):
        monkeypatch.setitem(sys.modules, peer, None)
    cells = "imports", "imports-package", "peers-onnx", "peers-functions", "peers-run"
    assert run_cells(*cells, "llama-make", "llama-three", "llama-run")["installed"] == {}
    said = capsys.readouterr().out
    assert "tests/test_layouts_peers.py runs them" in said
    assert "test_tiny_llama_in_the_other_layout runs this" in said
