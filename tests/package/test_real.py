"""The record of the released model, the forward pass behind it, and what was predicted."""

import random

import numpy as np
import pytest
import torch

from experiments.real import doubts, questions, summary, texts
from experiments.real.__main__ import WEIGHTS, differs
from experiments.real.doubts import FOUR, TurnedInPart, fading
from experiments.real.model import (
    KEY_HEADS,
    LAYERS,
    PAIRS,
    WIDTH,
    Change,
    Model,
    as_complex,
    frequencies,
)
from rope_minimal import rope_table
from tests.tools.released import MISSING, king_james, loaded

DUMMY = {name: torch.zeros(4096, dtype=torch.long) for name in summary.TEXTS}
LONG = {name: (torch.zeros(12_288, dtype=torch.long), []) for name in summary.LONG_TEXTS}


def test_the_record_answers_every_question_and_no_other() -> None:
    asked = {name for name, _ in questions.jobs(DUMMY, LONG)}
    record = {key: value for key, value in summary.load().items() if key != "about"}
    assert asked == {f"{a}/{b}/{c}" for a, x in record.items() for b, y in x.items() for c in y}


def test_the_record_says_where_it_was_made() -> None:
    about = summary.load()["about"].copy()
    later = about.pop("asked afterwards", None)  # gone where all was made on one machine
    assert set(about) == {"texts", "seconds", "device", "numbers", "torch", "threads", "date"}
    assert about["numbers"] == "float32"
    if later:
        assert set(later) == {"sections", "seconds", "device", "torch", "threads", "date"}
        assert set(later["sections"]) < set(summary.load())


def test_every_loss_of_the_record_is_that_of_a_model() -> None:
    """Between nothing and twice what somebody loses who knows no word, ln(49,152)."""

    def losses(entry):
        for name, value in entry.items():
            if name in ("loss", "second half"):
                yield from value if isinstance(value, list) else [value]
            elif isinstance(value, dict):
                yield from losses(value)

    found = list(losses(summary.load()))
    assert len(found) > 1000
    assert 0 < min(found) < max(found) < 2 * np.log(49_152)


def test_some_predictions_held_and_the_others_are_told() -> None:
    held = summary.judged()
    assert list(held) == [one["id"] for one in summary.predictions()]
    failed = {name for name, so in held.items() if not so}
    assert failed == {
        "2",
        "4",
        "8",
        "9",
        "12",
        "15",
        "16",
        "17",
        "21",
        "27",
        "28",
        "37",
        "38",
        "39",
        "41",
    }


# The forward pass ---------------------------------------------------------------------------------


def attended(change: Change, n: int = 24) -> torch.Tensor:
    """What one layer's attention makes of random queries, keys and values."""
    draw = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(h, n, WIDTH, generator=draw) for h in (9, KEY_HEADS, KEY_HEADS))
    table = rope_table(range(n), WIDTH, inv_freq=change.frequencies, dtype=torch.float32)
    return Model.attend(object.__new__(Model), 3, q, k, v, [table, table], change, None)


def by_hand(keep: torch.Tensor, n: int = 24) -> torch.Tensor:
    """The same, score by score: ``keep`` says which pairs of which scores count, (n, n, 32)."""
    draw = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(h, n, WIDTH, generator=draw) for h in (9, KEY_HEADS, KEY_HEADS))
    theta, out = frequencies().float(), torch.zeros(9, n, WIDTH)
    for head in range(9):
        a, b = (torch.view_as_complex(x.reshape(n, PAIRS, 2)) for x in (q[head], k[head // 3]))
        for m in range(n):
            turn = torch.exp(1j * theta * (m - torch.arange(m + 1))[:, None])
            scores = (a[m] * b[: m + 1].conj() * turn).real * keep[m, : m + 1]
            out[head, m] = (scores.sum(-1) / 8).softmax(-1) @ v[head // 3, : m + 1]
    return out


ALL = torch.ones(24, 24, PAIRS)
BACK = torch.arange(24)[:, None] - torch.arange(24)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (Change(), BACK < 0),
        (Change(left_out=(5, 7)), BACK >= 0),
        (Change(left_out=(5, 7), far=6), BACK < 6),
        (Change(left_out=(5, 7), near=6), BACK >= 6),
        (Change(left_out=(5, 7), first=True), (torch.arange(24) == 0).expand(24, 24)),
        (Change(left_out=(5, 7), first=False), (torch.arange(24) > 0).expand(24, 24)),
        (Change(left_out=(5, 7), layers=range(4, 9)), BACK < 0),
    ],
)
def test_pairs_are_left_out_of_the_scores_that_were_named(change: Change, where) -> None:
    keep = ALL.clone()
    keep[..., [5, 7]] = (~where).float()[..., None].expand(24, 24, 2)
    torch.testing.assert_close(attended(change), by_hand(keep), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("restored", ["spread", "first", "others"])
def test_what_was_not_taken_needs_no_restoring(restored: str) -> None:
    kept = Change(left_out=(5, 7), kept=1.0, restored=restored)
    torch.testing.assert_close(attended(kept), attended(Change()), atol=2e-5, rtol=1e-4)


def test_restored_weights_are_those_of_the_whole() -> None:
    """With values that are 1 at the first token and 0 elsewhere, a head's output is its weight."""
    draw = torch.Generator().manual_seed(0)
    q, k = (torch.randn(h, 24, WIDTH, generator=draw) for h in (9, KEY_HEADS))
    v = torch.zeros(KEY_HEADS, 24, WIDTH)
    v[:, 0] = 1
    table = rope_table(range(24), WIDTH, inv_freq=frequencies(), dtype=torch.float32)

    def first(**change):
        change = Change(left_out=(1, 2, 3), **change)
        return Model.attend(object.__new__(Model), 0, q, k, v, [table, table], change, None)

    whole, without = first(kept=1.0), first()
    torch.testing.assert_close(first(restored="first"), whole, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(first(restored="others"), without, atol=1e-5, rtol=1e-4)
    assert (whole - without).abs().max() > 0.1


@pytest.mark.parametrize(
    "kind", ["mean", "shuffled", "shuffled but the first", "previous", "random direction",
             "mean direction", "mean length"]
)  # fmt: skip
def test_replaced_pairs_are_what_they_are_called(kind: str) -> None:
    x = torch.randn(KEY_HEADS, 24, WIDTH, generator=torch.Generator().manual_seed(0))
    change = Change(left_out=(5, 7), replace_by=kind)
    y = Model.without(object.__new__(Model), 0, x, change)
    z, new = (torch.view_as_complex(t.unflatten(-1, (PAIRS, 2)).contiguous()) for t in (x, y))
    others = [i for i in range(PAIRS) if i not in (5, 7)]
    assert torch.equal(z[..., others], new[..., others])
    z, new = z[..., [5, 7]], new[..., [5, 7]]
    if kind == "mean":
        assert new.std(1).max() < 1e-5
        torch.testing.assert_close(new.mean(1), z.mean(1))
    elif kind in ("shuffled", "shuffled but the first", "previous"):
        assert torch.equal(z[:, 0], new[:, 0]) == (kind != "shuffled")
        assert not torch.equal(z[:, 1:], new[:, 1:])
        known = {complex(number) for number in z.flatten()}
        assert {complex(number) for number in new.flatten()} <= known
    elif kind == "mean length":
        torch.testing.assert_close(new.angle(), z.angle())
        assert new.abs().std(1).max() < 1e-5
    else:
        torch.testing.assert_close(new.abs(), z.abs())
        assert (new.angle().std(1).max() < 1e-4) == (kind == "mean direction")


def test_a_bad_replacement_is_named() -> None:
    with pytest.raises(ValueError, match="replace_by"):
        attended(Change(left_out=(5,), replace_by="noise"))


def test_pairs_can_be_named_head_by_head() -> None:
    table = torch.zeros(LAYERS, KEY_HEADS, PAIRS, dtype=torch.bool)
    table[3, :, [5, 7]] = True
    assert torch.equal(attended(Change(left_out=table)), attended(Change(left_out=(5, 7))))
    assert not torch.equal(attended(Change(left_out=table)), attended(Change()))


@pytest.mark.parametrize("pairs", [(0, 1, 2, 3), FOUR])
def test_noise_is_as_large_whichever_pairs_have_it(pairs: tuple[int, ...]) -> None:
    draw = torch.Generator().manual_seed(0)
    q, k = (torch.randn(h, 24, WIDTH, generator=draw) for h in (9, KEY_HEADS))
    model = object.__new__(Model)
    model.weights = {}
    new = doubts.Noised(model, pairs, 0.5).noised(0, q, k)
    q, k, new = (as_complex(x) for x in (q, k, new))
    noise, others = new - k, [i for i in range(PAIRS) if i not in pairs]
    assert noise[..., others].abs().max() == 0
    assert noise[:, 0].abs().max() == 0
    asking = q[:, 1:].abs().mean(1).view(KEY_HEADS, 3, PAIRS).mean(1)
    size = (asking * k[:, 1:].abs().mean(1))[:, list(FOUR)].sum(-1)
    of_noise = (asking * noise[:, 1:].abs().mean(1)).sum(-1)
    torch.testing.assert_close(of_noise, size / 2)


@pytest.mark.parametrize(("kind", "of"), list(zip(doubts.AS_LARGE, (28, 22, 6), strict=True)))
def test_pairs_as_large_as_the_four_are_as_few_as_can_be(kind: str, of: int) -> None:
    """Pairs 0 to 2 have products of 3, all others of 1: the four come to 4."""

    def model(text, watch) -> None:
        k = torch.ones(KEY_HEADS, 24, PAIRS, dtype=torch.complex64)
        k[..., :3] = 3
        q = torch.ones(9, 24, PAIRS, dtype=torch.complex64)
        for layer in range(LAYERS):
            watch(layer, *(torch.view_as_real(x).flatten(-2) for x in (q, k)))

    chosen, found = doubts.as_large(model, torch.zeros(24), kind)
    assert chosen.shape == found.shape == (LAYERS, KEY_HEADS, PAIRS)
    assert not chosen[..., list(FOUR)].any()
    if of == 6:
        assert chosen[..., 26:].sum(-1).unique().tolist() == [4]
    else:  # one of 3 is nearer to 4 than two
        assert (found * chosen).sum(-1).unique().tolist() == [3]


def in_part(change: Change, k: torch.Tensor, mean_turns: bool) -> torch.Tensor:
    """One layer's attention, of whose keys' four a part rests."""
    draw = torch.Generator().manual_seed(0)
    q, v = (torch.randn(h, 24, WIDTH, generator=draw) for h in (9, KEY_HEADS))
    table = rope_table(range(24), WIDTH, inv_freq=change.frequencies, dtype=torch.float32)
    model = object.__new__(Model)
    whole = Model.attend(model, 3, q, k, v, [table, table], change, None)
    model.weights = {}
    part = TurnedInPart(model, mean_turns).attend(3, q, k, v, [table, table], change, None)
    return (part - whole).abs().max()


@pytest.mark.parametrize("mean_turns", [True, False])
def test_the_two_parts_of_a_key_are_the_key(mean_turns: bool) -> None:
    """Where the four do not turn anyway, and where a key is the mean key and that one turns."""
    still, draw = questions.not_turned(FOUR), torch.Generator().manual_seed(1)
    k = torch.randn(KEY_HEADS, 24, WIDTH, generator=draw)
    assert in_part(still, k, mean_turns) < 1e-5
    fast = doubts.turning_as(tuple(range(4)))
    assert in_part(fast, k, mean_turns) > 0.01
    alike = k[:, 1:2].expand_as(k)
    assert (in_part(fast, alike, mean_turns) < 1e-5) == mean_turns


def test_fading_says_where_waves_start_and_how_far_they_fall() -> None:
    """All keys alike, each pair with a product of 8, a quarter turn from its crest."""

    def model(text, watch) -> None:
        one = torch.view_as_complex(torch.tensor([1.0, 0.0])).expand(1, 24, PAIRS)
        q, k = (torch.view_as_real(x.clone()).flatten(-2) for x in (8j * one, one))
        watch(0, q.expand(9, 24, WIDTH), k.expand(KEY_HEADS, 24, WIDTH))

    found = fading(model, torch.zeros(24))
    np.testing.assert_allclose(found["phase"], 90, atol=1e-3)
    lost = np.sin(8192 * frequencies()[list(FOUR)].numpy()).sum()
    for keys in ("all", "loud"):
        np.testing.assert_allclose(found[keys], [0, -lost], atol=1e-3)
    assert found["all fall"] == 1
    assert found["loud only fall"] == 0  # pair 22 comes back up


def test_how_far_two_records_differ_is_found_wherever_it_is() -> None:
    assert differs({"a": {"b": [1.0, 2.0]}}, {"a": {"b": [1.0, 2.5]}}) == 0.5


# The model itself ---------------------------------------------------------------------------------


def test_its_logits_are_those_that_transformers_computes() -> None:
    """The rows go back to half-split pairs first: transformers' own rotation then turns them."""
    model, transformers = loaded(), pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=49_152, hidden_size=576, intermediate_size=1536, num_hidden_layers=LAYERS,
        num_attention_heads=9, num_key_value_heads=KEY_HEADS, head_dim=WIDTH, rms_norm_eps=1e-5,
        max_position_embeddings=8192, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
    )  # fmt: skip
    names = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
             "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}  # fmt: skip
    state = {"model.embed_tokens.weight": model.weights["token_embd"],
             "model.norm.weight": model.weights["output_norm"]}  # fmt: skip
    for name, w in model.weights.items():
        if name.startswith("blk."):
            _, layer, part = name.split(".")
            if part in ("attn_q", "attn_k"):
                w = w.view(-1, PAIRS, 2, w.shape[1]).transpose(1, 2).reshape(w.shape)
            state[f"model.layers.{layer}.{names[part]}.weight"] = w
    with torch.device("meta"):
        other = transformers.LlamaForCausalLM(config)
    other = other.to_empty(device="cpu")
    other.model.rotary_emb = type(other.model.rotary_emb)(config)
    missing, unexpected = other.load_state_dict(state, strict=False)
    assert set(missing) <= {"lm_head.weight"}
    assert unexpected == []
    other.tie_weights()
    tokens = king_james(48)
    with torch.no_grad():
        ours = model(tokens) @ model.weights["token_embd"].T
        theirs = other.eval()(tokens[None]).logits[0]
    torch.testing.assert_close(ours, theirs, atol=2e-3, rtol=1e-4)


def test_a_drawn_part_of_the_record_comes_out_again() -> None:
    """Made here on the CPU; three short jobs and one that looks at all heads."""
    model, archive = loaded(), WEIGHTS / texts.SOURCE
    if not archive.exists():
        pytest.skip(MISSING)
    short = texts.short_texts(model.file, archive)
    jobs = dict(questions.jobs(short, LONG))
    slow = ("look", "sink", "shares", "2,048 tokens", "past the length", "needles near", "long")
    quick = [name for name in jobs if not name.startswith(slow)]
    for name in [*random.sample(quick, 2), "look/all heads/Milton"]:
        section, change, text = name.split("/")
        found = {name: {k: v for k, v in jobs[name](model).items() if "share of heads" not in k}}
        assert differs(found, {name: summary.load()[section][change][text]}) < 0.02, name
