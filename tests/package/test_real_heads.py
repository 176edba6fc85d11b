"""The released model's heads that a figure turns: how they are chosen, and what a byte costs."""

import numpy as np
import pytest
import torch

from experiments.real import heads
from experiments.real.model import HEADS, KEY_HEADS, Change, frequencies
from tests.tools.released import loaded

CHANGES = {
    "released": Change(),
    "0 to 3 left out": Change(left_out=(0, 1, 2, 3)),
    "22 to 25 left out": Change(left_out=(22, 23, 24, 25)),
    "29 to 31 left out": Change(left_out=(29, 30, 31)),
    "PI": Change(frequencies=frequencies() / 2),
    "base": Change(frequencies=frequencies(10_000)),
    "layout": Change(interleaved=False),
    "table": Change(table=torch.bfloat16, positions=torch.arange(68) + 7000),
}


@pytest.fixture(scope="module")
def kept():
    return heads.load()


@pytest.fixture(scope="module")
def read():
    return heads.read_text(loaded())


def test_the_file_is_small_and_its_text_is_the_one_that_is_named(kept) -> None:
    assert 65_000 < heads.FILE.stat().st_size < 130_000
    assert "".join(kept["tokens"]) == heads.TEXT
    assert 64 <= len(kept["tokens"]) <= 128
    assert [(head["name"], head["share"]) for head in kept["heads"]] == list(heads.KINDS)
    for head in kept["heads"]:
        q, k = heads.unpacked(head)
        assert q.shape == k.shape == (1, len(kept["tokens"]), 64)


def counts(share: str, tokens: list[str], m: int, n: int, loud: list[int]) -> bool:
    """Whether query m's key n is counted, in the words of `heads.mask`."""
    back = m - n
    return (
        back >= 0
        and {
            "before": back == 1,
            "first": n == 0,
            "itself": back == 0,
            "near": 2 <= back <= 6,
            "same": back > 0 and tokens[n] == tokens[m],
            "next": n > 0 and back > 0 and tokens[n - 1] == tokens[m],
            "far": n > 0 and back >= 16,
            "loud": n in loud,
        }[share]
    )


def test_shares_count_the_keys_that_they_say(kept) -> None:
    tokens, n = kept["tokens"], len(kept["tokens"])
    for head in kept["heads"]:
        weights = heads.attention(*heads.unpacked(head))[0]
        read = weights[heads.BEGIN :].sum(0).tolist()
        loud = sorted(range(n), key=read.__getitem__)[-3:]
        wanted = [[counts(head["share"], tokens, m, key, loud) for key in range(n)]
                  for m in range(n)]  # fmt: skip
        found = heads.mask(head["share"], tokens, weights)
        assert (found & torch.ones(n, n).tril().bool()).tolist() == wanted, head["name"]
        rows = [m for m in range(heads.BEGIN, n) if any(wanted[m])]
        by_hand = np.mean([weights[m, wanted[m]].sum() for m in rows])
        assert float(heads.share_of(weights, found)) == pytest.approx(by_hand, abs=1e-6)


def test_every_head_is_most_of_its_kind_and_the_file_holds_the_model_s(kept, read) -> None:
    tokens, vectors = read
    assert tokens == kept["tokens"]
    found = heads.chosen(tokens, vectors)
    assert found == [(head["layer"], head["head"]) for head in kept["heads"]]
    for head in kept["heads"]:
        at = head["head"]
        own = vectors[head["layer"]][0][at], vectors[head["layer"]][1][at * KEY_HEADS // HEADS]
        for x, y in zip(own, heads.unpacked(head), strict=True):
            step = (x.amax(0) - x.amin(0)) / heads.LEVELS
            assert ((x - y[0]).abs() < 0.51 * step + 1e-3).all()


@pytest.mark.parametrize("change", CHANGES)
def test_a_byte_a_channel_moves_less_than_a_hundredth_of_attention(change, kept, read) -> None:
    """No weight by more than 0.03, and of attention on average less than 0.01, in each head."""
    for head in kept["heads"]:
        q, k = read[1][head["layer"]]
        exact = heads.attention(q, k, CHANGES[change])[head["head"]]
        rounded = heads.attention(*heads.unpacked(head), CHANGES[change])[0]
        assert (exact - rounded).abs().max() < 0.03, head["name"]
        assert heads.moved(exact, rounded) < 0.01, head["name"]
