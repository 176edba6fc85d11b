"""The claims of chapter 01, "Why position", checked apart from the chapter's code."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from rope_minimal import apply_rope, rope_table, rotation_matrix

WIDTH, LENGTH, REACH = 32, 24, 4
THERE = [1, 2, 3, 4]  # from Beijing to Shanghai
BACK = [1, 4, 3, 2]  # from Shanghai to Beijing
CLS = 0


@pytest.fixture
def embedding() -> torch.Tensor:
    return torch.randn(5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def encoder(layers: int) -> nn.TransformerEncoder:
    torch.manual_seed(4)
    layer = nn.TransformerEncoderLayer(
        16, 2, dim_feedforward=32, dropout=0, batch_first=True, dtype=torch.float64
    )
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval()


def gap_at(token: int, layers: int, first: list[int], second: list[int], table, causal: bool):
    """Return the largest difference of one token's output between two orders."""
    mask = torch.full((5, 5), -torch.inf, dtype=torch.float64).triu(1) if causal else None
    with torch.no_grad():
        outputs = [encoder(layers)(table[order][None], mask=mask)[0] for order in (first, second)]
    return (outputs[0][first.index(token)] - outputs[1][second.index(token)]).abs().max().item()


# Claim 1.1 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [[3, 0, 4, 2, 1], [4, 3, 2, 1, 0], [1, 0, 2, 3, 4]])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-14), (torch.float32, 1e-6)])
def test_attention_without_positions_is_permutation_equivariant(embedding, order, dtype, tolerance):
    torch.manual_seed(5)
    attention = nn.MultiheadAttention(16, 2, batch_first=True, dtype=dtype).eval()
    x = embedding.to(dtype)[None]
    with torch.no_grad():
        plain, shuffled = attention(x, x, x)[0], attention(*(x[:, order],) * 3)[0]
    assert torch.allclose(shuffled, plain[:, order], rtol=0, atol=tolerance)
    assert not torch.allclose(shuffled, plain, rtol=0, atol=1e-3)  # it is not invariant


def test_attention_with_rotary_positions_is_not_equivariant(embedding):
    order = [3, 0, 4, 2, 1]
    cos, sin = rope_table(range(5), 16, dtype=torch.float64)

    def attend(x):
        turned = apply_rope(x, cos, sin)
        return (turned @ turned.T / 4).softmax(1) @ x

    assert (attend(embedding[order]) - attend(embedding)[order]).abs().max() > 1e-2


# Claim 1.2 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [1, 3])
def test_encoder_gives_cls_one_output_for_all_orders(embedding, layers):
    with torch.no_grad():
        outputs = torch.stack(
            [
                encoder(layers)(embedding[[CLS, *rest]][None])[0, 0]
                for rest in itertools.permutations(range(1, 5))
            ]
        )
    assert len(outputs) == 24
    assert torch.allclose(outputs, outputs[0].expand_as(outputs), rtol=0, atol=1e-12)


def test_sinusoidal_vectors_give_cls_24_outputs(embedding):
    cos, sin = rope_table(range(5), 16, dtype=torch.float64)
    positions = torch.stack((sin, cos), dim=-1).flatten(1)
    with torch.no_grad():
        outputs = torch.stack(
            [
                encoder(2)((embedding[[CLS, *rest]] + positions)[None])[0, 0]
                for rest in itertools.permutations(range(1, 5))
            ]
        )
    assert (torch.cdist(outputs, outputs) + torch.eye(24)).min() > 1e-4


# Claim 1.3 ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layers", "causal", "told_apart"),
    [(1, False, False), (2, False, False), (1, True, False), (2, True, True), (3, True, True)],
)
def test_order_leaks_through_the_causal_mask_from_the_second_layer_on(
    embedding, layers, causal, told_apart
):
    gap = gap_at(CLS, layers, [*THERE, CLS], [*BACK, CLS], embedding, causal)
    assert gap > 1e-3 if told_apart else gap < 1e-12


def test_cls_in_front_of_a_causal_sequence_sees_nothing_but_itself(embedding):
    assert gap_at(CLS, 3, [CLS, *THERE], [CLS, *BACK], embedding, causal=True) < 1e-12


# Claim 1.4 ------------------------------------------------------------------------------------


def scores(name: str, seed: int) -> np.ndarray:
    """Return the score matrix of one token repeated, entry by entry from the published formula."""
    rng = np.random.default_rng(seed)
    c, u, v = rng.normal(size=(3, WIDTH))
    w_q, w_k, w_r = rng.normal(size=(3, WIDTH, WIDTH)) / np.sqrt(WIDTH)
    seats = rng.normal(size=(LENGTH, WIDTH))
    offsets = rng.normal(size=(2 * REACH + 1, WIDTH))
    q, k = w_q @ c, w_k @ c

    def wave(m: int) -> np.ndarray:
        angle = m / 10_000 ** (2 * np.arange(WIDTH // 2) / WIDTH)
        return np.stack((np.sin(angle), np.cos(angle)), axis=1).ravel()

    formula: dict[str, Callable[[int, int], float]] = {
        "learned": lambda m, n: (w_q @ (c + seats[m])) @ (w_k @ (c + seats[n])),
        "sinusoidal": lambda m, n: (w_q @ (c + wave(m))) @ (w_k @ (c + wave(n))),
        "shaw": lambda m, n: q @ (k + offsets[np.clip(m - n, -REACH, REACH) + REACH]),
        "transformer_xl": lambda m, n: (q + u) @ k + (q + v) @ (w_r @ wave(m - n)),
        "rope": lambda m, n: (rotation_matrix(m, WIDTH) @ q) @ (rotation_matrix(n, WIDTH) @ k),
        "rope_before": lambda m, n: (
            (w_q @ rotation_matrix(m, WIDTH) @ c) @ (w_k @ rotation_matrix(n, WIDTH) @ c)
        ),
        "rope_before_commuting": lambda m, n: (
            (rotation_matrix(m, WIDTH) @ c)
            @ rotation_matrix(2.5, WIDTH)
            @ rotation_matrix(n, WIDTH)
            @ c
        ),
        "waves_alone": lambda m, n: wave(m) @ wave(n),
        "waves_projected": lambda m, n: (w_q @ wave(m)) @ (w_k @ wave(n)),
    }
    return np.array([[formula[name](m, n) for n in range(LENGTH)] for m in range(LENGTH)])


def unevenness(score: np.ndarray) -> float:
    """Return the largest difference on one diagonal, as a share of the matrix's whole range."""
    ranges = [np.ptp(np.diagonal(score, offset)) for offset in range(1 - LENGTH, LENGTH)]
    return max(ranges) / np.ptp(score)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "constant"),
    [
        ("learned", False),
        ("sinusoidal", False),
        ("shaw", True),
        ("transformer_xl", True),
        ("rope", True),
        ("waves_alone", True),
        ("waves_projected", False),
    ],
)
def test_which_encodings_are_constant_along_diagonals(name, constant, seed):
    value = unevenness(scores(name, seed))
    assert value < 1e-12 if constant else value > 0.3


def test_shaw_is_blind_past_its_reach():
    row = scores("shaw", 0)[12]
    assert len(np.unique(row.round(9))) == 2 * REACH + 1
    assert row[12 - REACH - 1] == pytest.approx(row[0])


# Claim 1.5 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rotation_before_the_projection_is_not_relative(seed):
    assert unevenness(scores("rope_before", seed)) > 0.3
    assert unevenness(scores("rope", seed)) < 1e-12
    assert unevenness(scores("rope_before_commuting", seed)) < 1e-12
