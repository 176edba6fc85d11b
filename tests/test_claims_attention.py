"""The claims of chapter 8, each checked another way than in the chapter."""

import itertools

import numpy as np
import torch

from rope_minimal import RotarySelfAttention, rotate_by_matrix, rotate_complex


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Causal attention of one head in NumPy."""
    scores = q @ k.T / np.sqrt(q.shape[-1])
    return softmax(np.where(np.tri(len(q), dtype=bool), scores, -np.inf)) @ v


def test_one_rotary_layer_tells_the_tickets_apart() -> None:
    """All 24 orders of the four words, with a head written in NumPy."""
    rng = np.random.default_rng(0)
    words, (W_q, W_k, W_v) = rng.normal(size=(5, 16)), rng.normal(size=(3, 16, 16)) / 4

    def closing(order: tuple[int, ...], positions: np.ndarray) -> np.ndarray:
        x = words[[*order, 0]]
        q, k = (rotate_by_matrix(x @ W, positions) for W in (W_q, W_k))
        return attend(q, k, x @ W_v)[-1]

    orders = list(itertools.permutations([1, 2, 3, 4]))
    flat = np.array([closing(order, np.zeros(5)) for order in orders])
    assert np.ptp(flat, axis=0).max() < 1e-14
    turned = np.array([closing(order, np.arange(5)) for order in orders])
    gaps = np.linalg.norm(turned[:, None] - turned[None], axis=-1)
    assert gaps[~np.eye(24, dtype=bool)].min() > 1e-3


def test_only_rotated_queries_and_keys_leave_the_output_alone() -> None:
    rng = np.random.default_rng(1)
    x, (W_q, W_k, W_v) = rng.normal(size=(20, 8)), rng.normal(size=(3, 8, 8))

    def layer(start: int, *, before: bool = False, values: bool = False) -> np.ndarray:
        positions = np.arange(start, start + 20)

        def turn(z: np.ndarray) -> np.ndarray:
            return rotate_by_matrix(z, positions, interleaved=True)

        if before:
            return attend(turn(x) @ W_q, turn(x) @ W_k, x @ W_v)
        return attend(turn(x @ W_q), turn(x @ W_k), turn(x @ W_v) if values else x @ W_v)

    for shift in (1, 77, 5000):
        np.testing.assert_allclose(layer(shift), layer(0), atol=1e-9)
        assert np.abs(layer(shift, before=True) - layer(0, before=True)).max() > 0.1
        by_shift = rotate_by_matrix(layer(0, values=True), np.full(20, shift), interleaved=True)
        np.testing.assert_allclose(layer(shift, values=True), by_shift, atol=1e-9)
        assert np.abs(by_shift - layer(0, values=True)).max() > 0.1


def test_a_base_changed_after_caching_breaks_relativity() -> None:
    rng = np.random.default_rng(2)
    q = rng.normal(size=16)
    k, n = q + rng.normal(size=16), np.arange(0, 500, 7)

    def scores(query_base: float, key_base: float) -> np.ndarray:
        many_q, many_k = (np.tile(z, (len(n), 1)) for z in (q, k))
        turned_q = rotate_complex(many_q, n + 8, query_base)
        return np.sum(turned_q * rotate_complex(many_k, n, key_base), axis=-1)

    assert np.ptp(scores(10_000.0, 10_000.0)) < 1e-11
    assert np.ptp(scores(80_000.0, 80_000.0)) < 1e-11
    assert np.ptp(scores(80_000.0, 10_000.0)) > 5


@torch.no_grad()
def test_a_common_shift_is_harmless_and_a_jump_is_not() -> None:
    torch.manual_seed(3)
    layer = RotarySelfAttention(16, 2, max_seq_len=512).double()
    text, pad = torch.randn(1, 9, 16).double(), torch.randn(1, 4, 16).double()
    want = layer(text)
    mask = torch.arange(13)[None] < 4
    for first in (0, 1, 4, 400):
        ids = torch.arange(first, first + 13)[None]
        got = layer(torch.cat((pad, text), 1), position_ids=ids, key_padding_mask=mask)
        torch.testing.assert_close(got[:, 4:], want, rtol=0, atol=1e-12)
    for jump in range(1, 9):  # the prompt at 0 .. 7, the last token not at 8
        ids = torch.cat((torch.arange(8), torch.tensor([8 + jump])))[None]
        got = layer(text, position_ids=ids)
        torch.testing.assert_close(got[:, :8], want[:, :8], rtol=0, atol=1e-12)
        assert (got[:, 8] - want[:, 8]).abs().max() > 1e-4


def test_ratios_of_weights_survive_the_causal_mask_and_weights_do_not() -> None:
    rng = np.random.default_rng(4)
    q, k = (np.tile(z, (40, 1)) for z in rng.normal(size=(2, 12)))
    positions = np.arange(40)
    scores = rotate_by_matrix(q, positions) @ rotate_by_matrix(k, positions).T
    weights = softmax(np.where(np.tri(40, dtype=bool), scores, -np.inf))
    for m, n in itertools.combinations(range(5, 40), 2):
        for a, b in ((0, 1), (1, 4), (5, 2)):
            here = weights[m, m - a] / weights[m, m - b]
            assert np.isclose(here, weights[n, n - a] / weights[n, n - b], rtol=1e-9)
            assert np.isclose(here, np.exp(scores[m, m - a] - scores[m, m - b]), rtol=1e-9)
        assert weights[n, n - 1] < weights[m, m - 1]  # later rows share among more
