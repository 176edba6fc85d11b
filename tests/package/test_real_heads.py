"""The released model's heads that a figure turns: which they are, and what it makes of them."""

import numpy as np
import pytest
import torch

from experiments.real import heads
from experiments.real.model import HEADS, KEY_HEADS, Change, frequencies
from tests.tools.released import loaded

AT = torch.arange(68)
SETTINGS = {"first": 0, "out": 0, "factor": 1, "base": 1e5, "paired": "as trained",
            "rounded": "nothing", "start": 0}  # fmt: skip
CHANGES = {  # as the figure says it, and as the model does
    "released": ({}, Change()),
    "0 to 3 left out": ({"out": 4}, Change(left_out=(0, 1, 2, 3))),
    "22 to 25 left out": ({"first": 22, "out": 4}, Change(left_out=(22, 23, 24, 25))),
    "29 to 31 left out": ({"first": 29, "out": 32}, Change(left_out=(29, 30, 31))),
    "PI": ({"factor": 2}, Change(frequencies=frequencies() / 2)),
    "base": ({"base": 1e4}, Change(frequencies=frequencies(10_000))),
    "layout": ({"paired": "the other layout"}, Change(interleaved=False)),
    "start": ({"start": 7000}, Change(positions=AT + 7000)),
    "table": ({"rounded": "table", "start": 7000},
              Change(table=torch.bfloat16, positions=AT + 7000)),
    "positions": ({"rounded": "positions", "start": 7000},
                  Change(positions=(AT + 7000).bfloat16().long())),
    "all": ({"first": 22, "out": 2, "factor": 1.5, "base": 1e4, "paired": "the other layout",
             "rounded": "positions", "start": 300},
            Change(left_out=(22, 23), frequencies=frequencies(10_000) / 1.5, interleaved=False,
                   positions=(AT + 300).bfloat16().long())),
}  # fmt: skip
each_change = pytest.mark.parametrize("change", CHANGES)


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


# What the figure makes of them ---------------------------------------------------------------


def drawn(node, kept, head, settings, query=60):
    traits = {**SETTINGS, **settings, "head": head["name"], "query": query}
    found = node.call("real_head.js", "reading", kept, traits)
    n = len(kept["tokens"])
    return {**found, "weights": [torch.tensor(w).view(n, n) for w in found["weights"]]}


@each_change
def test_the_figure_reads_as_the_model_s_own_attention_does(node, change, kept, read) -> None:
    """To what a byte costs: no weight by more than 0.03, and of all attention less than 0.01."""
    settings, exactly = CHANGES[change]
    for head in kept["heads"]:
        q, k = read[1][head["layer"]]
        exact = heads.attention(q, k, exactly)[head["head"]]
        shown = drawn(node, kept, head, settings)["weights"][1]
        assert (exact - shown).abs().max() < 0.03, head["name"]
        assert heads.moved(exact, shown) < 0.01, head["name"]


@each_change
def test_the_figure_reads_the_file_as_torch_does(node, change, kept) -> None:
    settings, exactly = CHANGES[change]
    for head in kept["heads"]:
        q, k = heads.unpacked(head)
        released, now = heads.attention(q, k)[0], heads.attention(q, k, exactly)[0]
        found = drawn(node, kept, head, settings)
        for ours, theirs in zip(found["weights"], (released, now), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0, check_dtype=False)
        keys = heads.mask(head["share"], kept["tokens"], released)
        shares = [float(heads.share_of(w, keys)) for w in (released, now)]
        assert found["shares"] == pytest.approx(shares, abs=1e-4)
        assert found["moved"] == pytest.approx(float(heads.moved(released, now)), abs=1e-4)
        a, b = (x[0].unflatten(-1, (32, 2)).norm(dim=-1).mean(0) for x in (q, k))
        assert found["usage"] == pytest.approx((a * b / (a * b).sum()).tolist(), abs=1e-5)
        assert found["usage"] == pytest.approx(heads.usage(q, k).tolist(), abs=1e-5)


def test_angles_are_rounded_where_the_figure_says_so(node, kept) -> None:
    angles = (torch.outer(AT.double() + 300, frequencies() / 1.5)).bfloat16().double()
    turn = torch.exp(1j * angles)
    for head in kept["heads"]:
        q, k = (torch.view_as_complex(x[0].double().unflatten(-1, (32, 2))) * turn
                for x in heads.unpacked(head))  # fmt: skip
        scores = (q @ k.mH).real / 8
        exact = scores.masked_fill(AT[:, None] < AT, -torch.inf).softmax(-1)
        settings = {"rounded": "angles", "start": 300, "factor": 1.5}
        shown = drawn(node, kept, head, settings)["weights"][1]
        torch.testing.assert_close(shown, exact, atol=1e-4, rtol=0, check_dtype=False)


@each_change
def test_every_handle_moves_attention_but_where_a_text_begins(node, change, kept) -> None:
    settings, _ = CHANGES[change]
    moves = [drawn(node, kept, head, settings)["moved"] for head in kept["heads"]]
    if change in ("released", "start"):
        assert max(moves) < 1e-9
    else:
        assert max(moves) > (0.001 if change == "table" else 0.15)


def test_what_a_word_reads_most_is_named(node, kept) -> None:
    found = drawn(node, kept, kept["heads"][0], {"out": 4})
    before, now = found["most"]
    assert found["query"] == {"at": 60, "word": "thing"}
    assert (before["word"], before["back"], now["key"]) == ("same", 1, 0)
    for most, weights in zip((before, now), found["weights"], strict=True):
        assert most["weight"] == weights[60].max() == weights[60, most["key"]]
