"""Keys that are already turned: moved, dropped, rolled back, stored raw, split between ranks."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import prune
from transformers import DeepseekV3Config
from transformers.models.deepseek_v3.modeling_deepseek_v3 import (
    DeepseekV3Attention,
    DeepseekV3RotaryEmbedding,
)

from rope_minimal import (
    KVCache,
    LatentAttention,
    RotaryEmbedding,
    RotarySelfAttention,
    document_mask,
    move_keys,
    rotate_by_matrix,
    rotate_complex,
    zigzag_indices,
)

EXACT = {"rtol": 0, "atol": 1e-12}
LAYOUTS = pytest.mark.parametrize("interleaved", [False, True], ids=["half", "interleaved"])
RAW = pytest.mark.parametrize("raw", [False, True], ids=["turned", "raw"])


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.manual_seed(seed), dtype=torch.float64)


def rope(dim: int = 8, size: int = 64, **options: Any) -> RotaryEmbedding:
    return RotaryEmbedding(dim, size, **options).double()


def drawn(layer: RotarySelfAttention) -> Any:
    """The layer in float64 with weights large enough to make attention sharp."""
    layer.double().requires_grad_(False)
    for i, weight in enumerate(layer.parameters()):
        weight.copy_(0.3 * random(*weight.shape, seed=i + 1) + (weight.ndim == 1))
    return layer


def plain(**options: Any) -> RotarySelfAttention:
    return drawn(RotarySelfAttention(16, 4, **{"num_kv_heads": 2, "max_seq_len": 64, **options}))


def latent(**options: Any) -> LatentAttention:
    widths = {"kv_lora_rank": 10, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 5}
    return drawn(LatentAttention(16, 3, max_seq_len=64, **widths | options))


KINDS: dict[str, Callable[[], RotarySelfAttention]] = {
    "half": plain,
    "interleaved, part of a head": lambda: plain(head_dim=8, rotary_dim=6, interleaved=True),
    "latent": lambda: latent(q_lora_rank=7),
    "latent, absorbed": lambda: latent(absorb=True),
}
ALL = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())


def turned(k: Tensor, positions: Any, width: int, interleaved: bool, base: float = 1e4) -> Tensor:
    """The oracle: the matrix of each position times each key, in NumPy float64."""
    want = k.double().numpy().copy()
    want[..., :width] = rotate_by_matrix(
        want[..., :width], np.asarray(positions), base, interleaved=interleaved
    )
    return torch.tensor(want)


def state(cache: KVCache) -> dict[str, Any]:
    """All that a cache holds, copied."""
    return {n: v.clone() if isinstance(v, Tensor) else v for n, v in vars(cache).items()}


def unchanged(cache: KVCache, before: dict[str, Any]) -> bool:
    now = vars(cache)
    return now.keys() == before.keys() and all(
        torch.equal(v, before[n]) if isinstance(v, Tensor) else v == before[n]
        for n, v in now.items()
    )


# A key can be moved


@LAYOUTS
@pytest.mark.parametrize("width", [8, 4])
@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 63), min_size=1, max_size=5), st.data())
def test_a_moved_key_is_the_key_turned_where_it_goes(interleaved, width, at, data) -> None:
    delta = data.draw(st.integers(-min(at), 63 - max(at)))
    k, table = random(2, 3, len(at), 8), rope(width, base=500.0, interleaved=interleaved)
    there = [m + delta for m in at]
    start, want = (turned(k, m, width, interleaved, 500.0) for m in (at, there))
    torch.testing.assert_close(move_keys(start, delta, table), want, **EXACT)


@LAYOUTS
def test_every_row_and_every_token_may_move_by_its_own(interleaved) -> None:
    k, table = random(2, 3, 4, 8), rope(interleaved=interleaved)
    at = torch.tensor([[9, 3, 20, 5], [7, 8, 9, 60]])
    for delta in ([[-3], [2]], [[5, -3, 0, 1]], [[-9, 60, 1, 0], [3, 2, 1, -60]], [[4]]):
        there = at + torch.tensor(delta)
        start, want = (
            torch.stack([turned(row, m, 8, interleaved) for row, m in zip(k, ids, strict=True)])
            for ids in (at, there)
        )
        torch.testing.assert_close(move_keys(start, torch.tensor(delta), table), want, **EXACT)


@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 8), (1, 2, 2, 3, 8), (2, 0, 8), (0, 2, 3, 8)])
def test_keys_of_any_rank_move(shape) -> None:
    k = random(*shape)
    torch.testing.assert_close(
        move_keys(k, 7, rope()), turned(k, [7] * shape[-2], 8, False), **EXACT
    )


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_move_rounds_once(interleaved, dtype) -> None:
    """In every type, the rounded exact answer, but for float32's own last digits."""
    k, table = random(1, 2, 40, 8).to(dtype), RotaryEmbedding(8, 4096, interleaved=interleaved)
    moved, want = move_keys(k, -3000, table), turned(k, [-3000] * 40, 8, interleaved)
    assert moved.dtype == dtype
    half_a_step = torch.finfo(dtype).eps / 2 * want.abs() + 1e-6
    assert ((moved.double() - want).abs() <= half_a_step).all()


def test_there_and_back_no_move_and_moves_in_turn() -> None:
    k, table = random(2, 3, 5, 8), rope()
    torch.testing.assert_close(move_keys(move_keys(k, 40, table), -40, table), k, **EXACT)
    in_turn = move_keys(move_keys(k, 40, table), -25, table)
    torch.testing.assert_close(in_turn, move_keys(k, 15, table), **EXACT)
    assert torch.equal(move_keys(k, 0, table), k)
    before = k.clone()
    move_keys(k, 5, table)
    assert torch.equal(k, before)


def test_a_move_has_its_gradient() -> None:
    k, table = random(1, 2, 3, 8).requires_grad_(), rope(4, interleaved=True)
    assert torch.autograd.gradcheck(lambda k: move_keys(k, torch.tensor([[-3, 0, 9]]), table), k)


@pytest.mark.parametrize("delta", [-3, torch.tensor([[-2], [7]])], ids=["one", "by row"])
@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_a_compiled_move_is_the_move(delta) -> None:
    table, k = rope(interleaved=isinstance(delta, int)), random(2, 3, 5, 8)
    compiled = torch.compile(move_keys, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(k, delta, table), move_keys(k, delta, table), **EXACT)


def test_shapes_are_moved_on_the_meta_device() -> None:
    moved = move_keys(torch.empty(2, 3, 5, 8, device="meta"), -3, RotaryEmbedding(8).to("meta"))
    assert (moved.shape, moved.device.type) == ((2, 3, 5, 8), "meta")
    cache = KVCache(2, 3, 8, 8, device="meta", rope=RotaryEmbedding(8).to("meta"))
    cache.append(moved, moved, torch.empty(1, 5, dtype=torch.long, device="meta"))
    cache.drop(0, 2)
    cache.shift(-2)
    cache.roll_back(1)
    assert (cache.keys.shape, cache.next_position.shape) == ((2, 3, 2, 8), (2, 1))


# The cache against a pass from scratch


@RAW
@ALL
def test_after_a_drop_one_layer_is_a_pass_over_what_is_left(make, raw) -> None:
    """Of one layer: its keys and values come from the tokens alone."""
    layer, x = make(), random(2, 20, 16)
    cache = layer.new_cache(2, raw=raw)
    layer(x[:, :12], cache=cache)
    cache.drop(4, 9)  # four sinks stay
    left = torch.cat((x[:, :4], x[:, 9:]), dim=1)
    ids = torch.tensor([[*range(4), *range(9, 20)]])
    assert cache.position_ids.tolist() == [ids[0, :7].tolist()] * 2
    step = layer(x[:, 12:15], cache=cache)  # positions in the text
    torch.testing.assert_close(step, layer(left, position_ids=ids)[:, 7:10], **EXACT)
    cache.shift(-5, start=4)  # positions in the cache
    assert cache.position_ids.tolist() == [list(range(10))] * 2
    step = layer(x[:, 15:], cache=cache)
    torch.testing.assert_close(step, layer(left)[:, 10:], **EXACT)


def two(layers: list, x: Tensor, caches: tuple = (None, None)) -> Tensor:
    for layer, cache in zip(layers, caches, strict=True):
        x = x + layer(x, cache=cache)
    return x


def test_deeper_keys_have_seen_what_was_dropped() -> None:
    layers, x = [plain(), plain(interleaved=True)], random(1, 12, 16)
    caches = tuple(layer.new_cache(1) for layer in layers)
    two(layers, x[:, :10], caches)
    for cache in caches:
        cache.drop(0, 5)
        cache.shift(-5)
    fresh = tuple(layer.new_cache(1) for layer in layers)
    two(layers, x[:, 5:10], fresh)
    torch.testing.assert_close(caches[0].keys, fresh[0].keys, **EXACT)
    assert (caches[1].keys - fresh[1].keys).abs().max() > 0.1
    step, again = (two(layers, x[:, 10:], each) for each in (caches, fresh))
    assert (step - again).abs().max() > 0.01


@RAW
@ALL
def test_a_rejected_draft_leaves_no_trace(make, raw) -> None:
    layer, x, draft = make(), random(2, 12, 16), random(2, 4, 16, seed=5)
    cache, straight = (layer.new_cache(2, raw=raw) for _ in range(2))
    for used in (cache, straight):
        layer(x[:, :7], cache=used)
    layer(torch.cat((x[:, 7:9], draft), dim=1), cache=cache)  # two are right, four are not
    cache.roll_back(4)
    layer(x[:, 7:9], cache=straight)
    assert cache.length == 9
    assert cache.next_position.tolist() == [[9], [9]]
    steps = [layer(x[:, 9:], cache=used) for used in (cache, straight)]
    torch.testing.assert_close(*steps, **EXACT)
    torch.testing.assert_close(steps[0], layer(x)[:, 9:], **EXACT)


@RAW
def test_a_tree_of_drafts_repeats_positions(raw) -> None:
    """Two branches after one stem, in one call, each as if it were alone."""
    layer, stem = plain(), random(1, 5, 16)
    first, second = random(1, 3, 16, seed=2), random(1, 2, 16, seed=3)
    cache = layer.new_cache(1, raw=raw)
    layer(stem, cache=cache)
    branch = torch.tensor([0] * 5 + [1] * 3 + [2] * 2)
    sees = (branch[5:, None] == branch) | (branch == 0)
    drafts, ids = torch.cat((first, second), dim=1), torch.tensor([[5, 6, 7, 5, 6]])
    y = layer(drafts, cache=cache, position_ids=ids, attn_mask=sees[None])
    alone = [layer(torch.cat((stem, each), dim=1))[:, 5:] for each in (first, second)]
    torch.testing.assert_close(y, torch.cat(alone, dim=1), **EXACT)
    assert cache.next_position.item() == 8  # position is not slot: ten slots are in use
    assert cache.length == 10
    cache.drop(5, 8)  # the second branch is taken
    assert cache.next_position.item() == 7
    after = random(1, 1, 16, seed=4)
    whole = layer(torch.cat((stem, second, after), dim=1))
    torch.testing.assert_close(layer(after, cache=cache), whole[:, 7:], **EXACT)


@RAW
@ALL
def test_raw_keys_give_what_turned_keys_give(make, raw) -> None:
    layer, x = make(), random(2, 9, 16)
    cache = layer.new_cache(2, raw=raw)
    parts = [layer(part, cache=cache) for part in x.split([4, 1, 4], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), layer(x), **EXACT)
    _, k, _ = layer._project(x)
    want = torch.tensor(
        np.concatenate(
            (
                rotate_complex(
                    k[..., : layer.rope.dim].numpy(),
                    np.arange(9),
                    interleaved=layer.rope.interleaved,
                ),
                k[..., layer.rope.dim :].numpy(),
            ),
            axis=-1,
        )
    )
    torch.testing.assert_close(cache.keys, want, **EXACT)
    torch.testing.assert_close(cache._keys[:, :, :9], k if raw else want, **EXACT)


def test_a_move_of_raw_keys_rounds_nothing() -> None:
    layer = RotarySelfAttention(16, 2, max_seq_len=64).bfloat16().requires_grad_(False)
    cache = layer.new_cache(1, raw=True)
    layer(random(1, 5, 16).bfloat16(), cache=cache)
    stored = cache._keys.clone()
    for _ in range(40):
        cache.shift(1)
    assert torch.equal(cache._keys, stored)
    assert cache.position_ids.tolist() == [[40, 41, 42, 43, 44]]


@RAW
@ALL
def test_padding_on_any_side_then_drop_and_move(make, raw) -> None:
    """Rows of different length; each is moved by what it lost itself."""
    layer = make()
    padding = torch.tensor([[1, 1, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0, 0, 0]]).bool()
    x, after = random(2, 8, 16), random(2, 2, 16, seed=3)
    cache = layer.new_cache(2, raw=raw)
    layer(x, cache=cache, key_padding_mask=padding)
    cache.drop(0, 4)
    cache.shift(torch.tensor([[-2], [-4]]))
    assert cache.position_ids.tolist() == [[0, 1, 0, 0], [0, 1, 2, 3]]
    assert cache.next_position.tolist() == [[2], [4]]
    step = layer(after, cache=cache)
    for row, text in enumerate((x[0, 4:6], x[1, 4:8])):
        alone = layer(torch.cat((text, after[row]))[None])
        torch.testing.assert_close(step[row], alone[0, -2:], **EXACT)


@RAW
def test_a_row_with_nothing_but_padding_left_begins_again(raw) -> None:
    layer, after = plain(), random(2, 2, 16, seed=3)
    cache = layer.new_cache(2, raw=raw)
    padding = torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0]]).bool()
    layer(random(2, 4, 16), cache=cache, key_padding_mask=padding)
    cache.drop(0, 2)
    assert cache.next_position.tolist() == [[0], [4]]
    torch.testing.assert_close(layer(after, cache=cache)[0], layer(after)[0], **EXACT)


@RAW
def test_positions_that_jump_or_go_back_are_taken_at_their_word(raw) -> None:
    layer, x = plain(), random(2, 9, 16)
    ids = torch.tensor([[5, 9, 2, 2, 40, 0, 1, 63, 7], [0, 0, 0, 0, 1, 1, 1, 1, 1]])
    cache = layer.new_cache(2, raw=raw)
    parts = [
        layer(part, cache=cache, position_ids=at)
        for part, at in zip(x.split([3, 1, 5], 1), ids.split([3, 1, 5], 1), strict=True)
    ]
    torch.testing.assert_close(torch.cat(parts, dim=1), layer(x, position_ids=ids), **EXACT)
    assert torch.equal(cache.position_ids, ids)
    assert cache.next_position.tolist() == [[64], [2]]
    with pytest.raises(ValueError, match=r"position_ids must be in .* = 0\.\.63, got 2\.\.64"):
        layer(x[:, :1], cache=cache)


@RAW
def test_what_was_stored_elsewhere_is_spliced_in(raw) -> None:
    layer, x = plain(), random(1, 11, 16)
    here, there = layer.new_cache(1, raw=raw), layer.new_cache(1, raw=raw)
    layer(x[:, :4], cache=here)
    layer(x[:, 4:9], cache=there)
    there.shift(4)
    here.append(there.stored_keys, there.values, there.position_ids)
    assert here.position_ids.tolist() == [list(range(9))]
    torch.testing.assert_close(layer(x[:, 9:], cache=here), layer(x)[:, 9:], **EXACT)


@RAW
def test_padded_rows_are_spliced_with_their_padding(raw) -> None:
    layer, x, after = plain(), random(2, 6, 16), random(2, 2, 16, seed=3)
    here, there = layer.new_cache(2, raw=raw), layer.new_cache(2, raw=raw)
    padding = torch.tensor([[1, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]]).bool()
    layer(x, cache=there, key_padding_mask=padding)
    here.append(there.stored_keys, there.values, there.position_ids, there.padding)
    assert torch.equal(here.padding, padding)
    assert here.next_position.tolist() == [[3], [6]]
    step = layer(after, cache=here)
    for row, text in enumerate((x[0, 2:5], x[1])):
        alone = layer(torch.cat((text, after[row]))[None])
        torch.testing.assert_close(step[row], alone[0, -2:], **EXACT)


# Any sequence of calls, against a plain list


class Listed:
    """One row of a cache as a list of (key as projected, position, padding)."""

    def __init__(self) -> None:
        self.slots: list[tuple[Tensor, int, bool]] = []

    @property
    def next_position(self) -> int:
        return max((m for _, m, padded in self.slots if not padded), default=-1) + 1


CALLS = st.one_of(
    st.tuples(st.just("call"), st.lists(st.booleans(), min_size=1, max_size=3)),
    st.tuples(st.just("append"), st.lists(st.integers(0, 31), min_size=1, max_size=3)),
    st.tuples(st.just("drop"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("shift"), st.integers(-6, 6), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("roll_back"), st.integers(0, 4)),
    st.tuples(st.just("reset")),
)


@RAW
@settings(max_examples=25, deadline=None)
@given(st.lists(CALLS, min_size=3, max_size=14), st.booleans())
def test_any_sequence_of_calls_is_what_happens_to_a_list(raw, calls, interleaved) -> None:
    layer, model = plain(interleaved=interleaved, max_seq_len=32), Listed()
    cache, seed = layer.new_cache(1, 10, raw=raw), 0
    for name, *asked in calls:
        seed, before, slots = seed + 1, state(cache), list(model.slots)
        try:
            act(layer, cache, model, name, asked, seed)
        except ValueError:
            assert unchanged(cache, before)
            model.slots = slots
            assert not fits(model, name, asked)
            continue
        agree(cache, model, interleaved)


def act(layer, cache, model, name, asked, seed) -> None:
    if name == "call":
        padded, x = asked[0], random(1, len(asked[0]), 16, seed=seed)
        mask = torch.tensor([padded]) if any(padded) else None
        y = layer(x, cache=cache, key_padding_mask=mask)
        _, k, _ = layer._project(x)
        m = model.next_position
        for t, hidden in enumerate(padded):
            model.slots.append((k[0, :, t], 0 if hidden else m, hidden))
            m += not hidden
        assert y.isfinite().all()
    elif name == "append":
        k = random(1, 2, len(asked[0]), 4, seed=seed)
        stored = k if cache.raw else turned(k, asked[0], 4, layer.rope.interleaved)
        cache.append(stored, k, torch.tensor(asked))
        model.slots += [(k[0, :, t], m, False) for t, m in enumerate(asked[0])]
    elif name == "drop":
        cache.drop(*asked)
        del model.slots[asked[0] : asked[1]]
    elif name == "shift":
        delta, start, stop = asked
        cache.shift(delta, start, stop)
        model.slots[start:stop] = [
            (k, m if hidden else m + delta, hidden) for k, m, hidden in model.slots[start:stop]
        ]
    elif name == "roll_back":
        cache.roll_back(*asked)
        del model.slots[len(model.slots) - asked[0] :]
    else:
        cache.reset()
        model.slots = []


def fits(model: Listed, name: str, asked: list) -> bool:
    """Whether the call asks for what can be done: said from the list alone."""
    n = len(model.slots)
    if name == "call":
        return n + len(asked[0]) <= 10 and model.next_position + asked[0].count(False) <= 32
    if name == "append":
        return n + len(asked[0]) <= 10
    if name == "drop":
        return asked[0] <= asked[1] <= n
    if name == "shift":
        delta, start, stop = asked
        moved = [m + delta for _, m, hidden in model.slots[start:stop] if not hidden]
        return start <= stop <= n and all(0 <= m < 32 for m in moved)
    return name == "reset" or asked[0] <= n


def agree(cache: KVCache, model: Listed, interleaved: bool) -> None:
    assert cache.length == len(model.slots)
    assert cache.next_position.tolist() == [[model.next_position]]
    assert cache.position_ids.tolist() == [[m for _, m, _ in model.slots]]
    for i, (k, m, hidden) in enumerate(model.slots):
        if not hidden:
            want = turned(k[:, None], [m], 4, interleaved)[:, 0]
            torch.testing.assert_close(cache.keys[0, :, i], want, **EXACT)


# A call that cannot succeed


def filled(**options: Any) -> KVCache:
    cache = KVCache(2, 3, 8, 8, dtype=torch.float64, **{"rope": rope(8, 16)} | options)
    cache.append(random(2, 3, 5, 8), random(2, 3, 5, 8), torch.arange(5)[None])
    return cache


K = random(2, 3, 2, 8)
BAD: dict[str, tuple[Callable[[KVCache], Any], type, str]] = {
    "back too far": (lambda c: c.roll_back(6), ValueError, "n must be <= length = 5, got 6"),
    "back by less than nothing": (lambda c: c.roll_back(-1), ValueError, "n must be >= 0, got -1"),
    "past the end": (lambda c: c.drop(3, 6), ValueError, "<= length = 5, got 3 and 6"),
    "the wrong way": (lambda c: c.drop(3, 2), ValueError, "must be in order and <= length = 5"),
    "before the start": (lambda c: c.drop(-1, 2), ValueError, "start must be >= 0, got -1"),
    "no such slot": (lambda c: c.shift(1, 0, 6), ValueError, "length = 5, got 0 and 6"),
    "below zero": (
        lambda c: c.shift(-2, 1),
        ValueError,
        "positions moved by delta must be in 0..15, got -1",
    ),
    "past the table": (lambda c: c.shift(12), ValueError, "must be in 0..15, got 16"),
    "half a position": (lambda c: c.shift(0.5), TypeError, "delta must be integers, got torch"),
    "three rows": (
        lambda c: c.shift(torch.ones(3, 1, dtype=torch.long)),
        ValueError,
        "delta must be an integer, or integers of shape (B or 1, T or 1)",
    ),
    "no room": (
        lambda c: c.append(random(2, 3, 4, 8), random(2, 3, 4, 8), torch.arange(4)[None]),
        ValueError,
        "cache holds 5 of max_seq_len = 8 tokens: no room for 4 more",
    ),
    "keys of another width": (
        lambda c: c.append(K[..., :4], K, [[5, 6]]),
        ValueError,
        "keys must have shape (2, 3, 2, 8), got (2, 3, 2, 4)",
    ),
    "values without heads": (
        lambda c: c.append(K, K[:, 0], [[5, 6]]),
        ValueError,
        "values must have shape (2, 3, 2, 8), got (2, 2, 8)",
    ),
    "keys of integers": (lambda c: c.append(K.long(), K, [[5, 6]]), TypeError, "keys must be a fl"),
    "values of another type": (
        lambda c: c.append(K, K.float(), [[5, 6]]),
        ValueError,
        "cache holds torch.float64, but the values are torch.float32",
    ),
    "a gradient": (
        lambda c: c.append(K.clone().requires_grad_() * 2, K, [[5, 6]]),
        ValueError,
        "the keys require one: decode under torch.no_grad()",
    ),
    "padding for one row": (
        lambda c: c.append(K, K, [[5, 6]], torch.zeros(1, 2, dtype=torch.bool)),
        ValueError,
        "key_padding_mask must have shape (B, T) = (2, 2), got (1, 2)",
    ),
    "positions for three rows": (
        lambda c: c.append(K, K, [[5, 6]] * 3),
        ValueError,
        "(batch_size or 1, T) for batch_size = 2, got (3, 2)",
    ),
    "a position below zero": (
        lambda c: c.append(K, K, [[-1, 6]]),
        ValueError,
        "position_ids must be in 0..15, got -1",
    ),
    "real positions": (lambda c: c.append(K, K, [[5.0, 6.0]]), TypeError, "position_ids must be"),
}


@RAW
@pytest.mark.parametrize(("call", "error", "says"), BAD.values(), ids=BAD.keys())
def test_a_call_that_cannot_succeed_changes_nothing(call, error, says, raw) -> None:
    cache = filled(raw=raw)
    before = state(cache)
    with pytest.raises(error) as caught:
        call(cache)
    assert says in str(caught.value)
    assert unchanged(cache, before)


def test_a_table_that_learns_leaves_no_gradient_in_the_cache() -> None:
    cache = filled()
    cache.rope.cos.requires_grad_(True)
    before = state(cache)
    with pytest.raises(ValueError, match=r"no gradient, but .* decode under torch\.no_grad\(\)"):
        cache.shift(2)
    assert unchanged(cache, before)
    with torch.no_grad():
        cache.shift(2)
    assert cache.position_ids[0].tolist() == [2, 3, 4, 5, 6]
    assert not cache.stored_keys.requires_grad


def test_where_torch_makes_its_tensors_changes_nothing() -> None:
    """Numbers and lists go where the other tensors are, and a shard's indices to the CPU."""
    layer, x, table, cache = plain(), random(1, 2, 16), rope(), filled()
    want = layer(x, position_ids=[[4, 5]]), move_keys(K, 3, table)
    with torch.device("meta"):
        got = layer(x, position_ids=[[4, 5]]), move_keys(K, 3, table)
        cache.append(K, K, [[6, 7]])
        cache.shift(-1, 5)
        shards = [zigzag_indices(ends, 2, 0) for ends in ([0, 8], np.array([0, 8]), [0])]
    assert all(map(torch.equal, got, want))
    assert cache.position_ids[0].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert [shard.tolist() for shard in shards] == [[0, 1, 6, 7]] * 2 + [[]]


def test_a_cache_that_knows_no_rotation_moves_nothing() -> None:
    cache = filled(rope=None)
    before = state(cache)
    with pytest.raises(ValueError, match="shift needs the rotation of the keys"):
        cache.shift(1)
    with pytest.raises(ValueError, match=r"position_ids must be in 0\.\..*, got -1"):
        cache.append(K, K, [[-1, 0]])
    assert unchanged(cache, before)
    cache.drop(0, 2)
    cache.append(K, K, [[10**6, 7]])  # how far its table goes, it cannot know
    assert cache.position_ids[0].tolist() == [2, 3, 4, 10**6, 7]


@pytest.mark.parametrize(
    "options", [{"base": 500.0}, {"interleaved": True}, {"rotary_dim": 2}, {"max_seq_len": 32}]
)
def test_a_cache_of_another_rotation_is_refused(options) -> None:
    """Two bases in one model: what one layer's cache would do in another."""
    cache = plain(**options).new_cache(1)
    with pytest.raises(ValueError, match=r"cache has the rotation Rot.*, but the call needs Rot"):
        plain()(random(1, 2, 16), cache=cache)
    assert cache.length == 0
    plain()(random(1, 2, 16), cache=copy.deepcopy(plain()).new_cache(1))  # the same one is not


def test_a_latent_cache_is_no_other() -> None:
    cache = KVCache(1, 1, 8, 4, dtype=torch.float64)
    with pytest.raises(ValueError, match="cache has v_head_dim 4, but the call needs 10"):
        latent()(random(1, 2, 16), cache=cache)


@RAW
def test_a_call_that_breaks_off_leaves_the_cache_as_it_was(raw) -> None:
    layer = plain(max_seq_len=16)
    cache = layer.new_cache(1, raw=raw)
    layer(random(1, 4, 16), cache=cache)
    keys, ids = cache.keys.clone(), cache.position_ids
    with pytest.raises(ValueError, match="attn_mask"):
        layer(random(1, 2, 16), cache=cache, attn_mask=torch.ones(1, 2, 2, dtype=torch.bool))
    with pytest.raises(ValueError, match="position_ids"):
        layer(random(1, 2, 16), cache=cache, position_ids=[[15, 16]])
    assert torch.equal(cache.keys, keys)
    assert torch.equal(cache.position_ids, ids)


# Packing


@RAW
@ALL
def test_documents_in_one_row_are_documents_alone(make, raw) -> None:
    layer, x = make(), random(2, 12, 16)
    ids = torch.tensor([[3, 3, 3, 3, 3, 1, 1, 7, 7, 7, 7, 3], [0] * 12])
    mask = document_mask(ids)
    pieces = [(0, 0, 5), (0, 5, 7), (0, 7, 11), (1, 0, 12)]
    again = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 0, 1, 2, 3, 5], [*range(12)]])
    for positions in (None, again):  # whether counted through or begun anew
        y = layer(x, attn_mask=mask, position_ids=positions)
        for row, start, stop in pieces:
            alone = layer(x[row, start:stop][None])
            torch.testing.assert_close(y[row, start:stop], alone[0], **EXACT)
    one, both = mask[:1], mask[[0, 0]]  # one mask serves every row
    torch.testing.assert_close(layer(x, attn_mask=one), layer(x, attn_mask=both), **EXACT)
    unmasked = layer(x, position_ids=again)
    assert (unmasked - layer(x, attn_mask=mask)).abs().max() > 0.1
    cache = layer.new_cache(2, raw=raw)
    parts = [
        layer(x[:, a:b], cache=cache, attn_mask=mask[:, a:b, :b]) for a, b in ((0, 6), (6, 12))
    ]
    torch.testing.assert_close(torch.cat(parts, 1), layer(x, attn_mask=mask), **EXACT)


def test_a_mask_widens_nothing_and_padding_stays_hidden() -> None:
    layer, x = plain(), random(1, 6, 16)
    everything = torch.ones(1, 6, 6, dtype=torch.bool)
    torch.testing.assert_close(layer(x, attn_mask=everything), layer(x), **EXACT)
    padding = torch.tensor([[True, False, False, True, False, False]])
    y = layer(x, attn_mask=everything, key_padding_mask=padding)
    torch.testing.assert_close(y[~padding], layer(x[~padding][None])[0], **EXACT)
    assert layer(x, attn_mask=~everything).isfinite().all()


# Latent attention


def config(**changed: Any) -> DeepseekV3Config:
    sizes = {"kv_lora_rank": 10, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 5}
    return DeepseekV3Config(
        hidden_size=16,
        num_attention_heads=3,
        num_key_value_heads=3,
        **{"q_lora_rank": None, **sizes, **changed},
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        attn_implementation="eager",
    )


@pytest.mark.parametrize("rank", [None, 7])
@pytest.mark.parametrize("absorb", [False, True])
def test_a_layer_of_deepseek_v3_loads_and_gives_the_same_numbers(rank, absorb) -> None:
    theirs = DeepseekV3Attention(config(q_lora_rank=rank), layer_idx=0).requires_grad_(False)
    ours = latent(q_lora_rank=rank, base=500.0, absorb=absorb).float()
    theirs.load_state_dict(ours.state_dict())  # nothing missing, nothing left over
    x = random(2, 30, 16).float()
    table = DeepseekV3RotaryEmbedding(theirs.config)(x, torch.arange(30)[None])
    future = torch.full((30, 30), -math.inf).triu(1)[None, None]
    for y in (1e-3 * x, x):  # the first is so small that the epsilon of the norms counts
        want, _ = theirs(y, position_embeddings=table, attention_mask=future)
        torch.testing.assert_close(ours(y), want, rtol=0, atol=2e-5)
    halves = latent(q_lora_rank=rank, base=500.0, interleaved=False).float()
    assert (halves(x) - want).abs().max() > 0.01  # this config reads neighbours


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 7), st.integers(1, 7), st.booleans())
def test_absorbed_is_naive(heads, pairs, resting, width, interleaved) -> None:
    layer = drawn(
        LatentAttention(
            16,
            heads,
            kv_lora_rank=9,
            qk_nope_head_dim=resting,
            qk_rope_head_dim=2 * pairs,
            v_head_dim=width,
            max_seq_len=64,
            interleaved=interleaved,
        )
    )
    x, padding = random(2, 8, 16), torch.zeros(2, 8, dtype=torch.bool)
    padding[1, :3] = True
    naive = layer(x), layer(x, key_padding_mask=padding)[~padding]
    layer.absorb = True
    torch.testing.assert_close(layer(x), naive[0], **EXACT)
    torch.testing.assert_close(layer(x, key_padding_mask=padding)[~padding], naive[1], **EXACT)


CHANGES = {
    "a bias": lambda m: setattr(m, "kv_b_proj", torch.nn.Linear(10, 33).double()),
    "an adapter": lambda m: setattr(m, "kv_b_proj", torch.nn.Sequential(m.kv_b_proj)),
    "another forward": lambda m: setattr(
        m.kv_b_proj, "forward", lambda v: v.new_zeros(*v.shape[:-1], 33)
    ),
    "a hook after": lambda m: m.kv_b_proj.register_forward_hook(lambda _, given, y: 2 * y),
    "pruned by a hook before": lambda m: prune.l1_unstructured(m.kv_b_proj, "weight", 0.3),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_absorbed_needs_a_plain_matrix(change) -> None:
    """What it adds to the weight would be lost without a word."""
    layer, x = latent(), random(1, 3, 16)
    change(layer)
    layer.requires_grad_(False)(x)
    layer.absorb, cache = True, layer.new_cache(1)
    with pytest.raises(TypeError, match="absorb=True needs kv_b_proj to be an nn"):
        layer(x, cache=cache)
    assert cache.length == 0
    layer.absorb = "no"
    with pytest.raises(TypeError, match="absorb must be True or False, got 'no'"):
        layer(x)


def test_one_cache_serves_both_ways_and_is_small() -> None:
    layer, x = latent(), random(2, 9, 16)
    cache = layer.new_cache(2)
    parts, made = [], []
    b = layer.kv_b_proj
    hook = register_module_forward_hook(lambda m, *_: made.append(len(parts)) if m is b else None)
    for t, part in enumerate(x.split(1, dim=1)):
        layer.absorb = bool(t % 2)
        parts.append(layer(part, cache=cache))
    hook.remove()
    assert made == [0, 2, 4, 6, 8]  # absorbed, no head's keys and values are made
    torch.testing.assert_close(torch.cat(parts, 1), layer(x), **EXACT)
    assert (cache.keys.shape, cache.values.shape) == ((2, 1, 9, 4), (2, 1, 9, 10))


def test_latent_attention_knows_the_distance_only_and_the_order() -> None:
    layer, x = latent(), random(1, 8, 16)
    shifted = layer(x, position_ids=torch.arange(8)[None] + 30)
    torch.testing.assert_close(shifted, layer(x), **EXACT)
    spread = layer(x, position_ids=2 * torch.arange(8)[None])
    assert (spread - layer(x)).abs().max() > 1e-3
    later = x.clone()
    later[:, 5:] += 1
    assert torch.equal(layer(later)[:, :5], layer(x)[:, :5])


def test_latent_gradients_agree_both_ways() -> None:
    layer, x = latent(q_lora_rank=7).requires_grad_(True), random(1, 5, 16)
    made = []
    for layer.absorb in (False, True):
        layer.zero_grad()
        layer(x).square().sum().backward()
        made.append([w.grad.clone() for w in layer.parameters()])
    for one, other in zip(*made, strict=True):
        assert one.abs().sum() > 0
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("absorb", [False, True])
@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
def test_latent_attention_in_other_types_and_compiled(absorb) -> None:
    layer, x = latent(absorb=absorb), random(2, 6, 16)
    want = layer(x)
    torch.testing.assert_close(torch.compile(layer, backend="eager")(x), want, **EXACT)
    layer.bfloat16()
    cache = layer.new_cache(2)
    y = torch.cat([layer(part, cache=cache) for part in x.bfloat16().split(3, 1)], 1)
    assert y.dtype == cache.values.dtype == torch.bfloat16
    torch.testing.assert_close(y.double(), want, rtol=0, atol=0.05 * want.abs().max().item())
    with torch.autocast("cpu", torch.bfloat16):
        assert layer.float()(x.float()).dtype == torch.bfloat16


# Shards of a context


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(1, 4))
def test_every_token_is_on_one_rank_and_all_work_alike(pieces, size) -> None:
    lengths = [2 * size * n for n in pieces]
    ends = np.cumsum([0, *lengths])
    held = [zigzag_indices(ends, size, rank) for rank in range(size)]
    assert sorted(torch.cat(held).tolist()) == list(range(ends[-1]))
    starts = np.repeat(ends[:-1], lengths)
    seen = [sum(i - starts[i] + 1 for i in each.tolist()) for each in held]
    assert len(set(seen)) == 1  # scores of a causal pass over each document


@pytest.mark.parametrize(
    ("ends", "size", "want"),
    [
        ([0, 4], 2, [[0, 3], [1, 2]]),
        ([0, 4, 8], 2, [[0, 3, 4, 7], [1, 2, 5, 6]]),  # not 0, 3, 0, 3
        ([0, 8], 2, [[0, 1, 6, 7], [2, 3, 4, 5]]),
        ([0, 3], 1, None),
        ([0, 6], 3, [[0, 5], [1, 4], [2, 3]]),
        ([0], 2, [[], []]),
    ],
)
def test_shards_known_by_hand(ends, size, want) -> None:
    if want is None:
        with pytest.raises(ValueError, match="multiples of 2"):
            zigzag_indices(ends, size, 0)
        return
    assert [zigzag_indices(ends, size, rank).tolist() for rank in range(size)] == want


def test_ranks_together_compute_what_one_device_does() -> None:
    """Each rank turns its own tokens, and attends by position to the keys of all."""
    table, ends, size = rope(interleaved=True), [0, 8, 12, 16], 2
    q, k, v = (random(1, 3, 16, 8, seed=i) for i in range(3))
    starts = torch.tensor([0] * 8 + [8] * 4 + [12] * 4)
    at = torch.arange(16) - starts
    sees = (starts[:, None] == starts) & torch.ones(16, 16, dtype=torch.bool).tril()
    one = sdpa(table(q, position_ids=at[None]), table(k, position_ids=at[None]), v, attn_mask=sees)
    held = [zigzag_indices(ends, size, rank) for rank in range(size)]
    order = torch.cat(held)
    gathered = [torch.cat([t[:, :, i] for i in held], 2) for t in (k, v)]
    gathered[0] = table(gathered[0], position_ids=at[order][None])
    for mine in held:
        mask = (starts[mine][:, None] == starts[order]) & (mine[:, None] >= order)
        y = sdpa(table(q[:, :, mine], position_ids=at[mine][None]), *gathered, attn_mask=mask)
        torch.testing.assert_close(y, one[:, :, mine], **EXACT)
