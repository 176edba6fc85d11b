"""The claims of chapter 12, each checked another way than in the chapter.

Where transformers is named, its own classes run, on small random models. Where models are trained,
they are trained here, from seeds that the record does not have.
"""

import json
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from experiments import serving
from rope_minimal import (
    LatentAttention,
    RotaryEmbedding,
    RotarySelfAttention,
    inverse_frequencies,
    move_keys,
    rotate_by_matrix,
    rotate_complex,
    zigzag_indices,
)
from ropebook.aliasing import code_distance

CHAPTER = Path(__file__).parents[2] / "notebooks" / "12-serving.ipynb"
SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "vocab_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
}


def off(one: Any, other: Any) -> float:
    """The difference of two tensors by the size of the second."""
    return float((one - other).norm() / other.norm())


def tokens_of(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(64, (1, count), generator=torch.Generator().manual_seed(seed))


def llama(layers: int = 2, **parameters: Any) -> Any:
    """A small Llama of transformers with random weights, in float64."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    rope = parameters or {"rope_type": "default", "rope_theta": 1e4}
    config = {**SMALL, "num_hidden_layers": layers, "rope_parameters": rope}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**config)).double().eval()


def filled(model: Any, tokens: torch.Tensor, first: int = 0) -> Any:
    """The cache of transformers after some tokens at positions from ``first`` on."""
    transformers = pytest.importorskip("transformers")
    cache = transformers.DynamicCache(config=model.config)
    ids = torch.arange(first, first + tokens.shape[1])[None]
    model(tokens, position_ids=ids, past_key_values=cache, use_cache=True)
    return cache


# Moving ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("width", [16, 6])
def test_a_moved_key_is_the_key_of_the_other_place(interleaved: bool, width: int) -> None:
    """Refuted if a key moved by a rotation written here differs from one made at the other
    place.

    By matrices, and each token by a number of its own.
    """
    rng = np.random.default_rng(width)
    raw = rng.normal(size=(3, 9, 16))
    rope = RotaryEmbedding(width, 400, interleaved=interleaved).double()

    def at(positions: np.ndarray) -> torch.Tensor:
        turned = raw.copy()
        for row in range(3):
            for t, m in enumerate(positions):
                part = raw[row, t : t + 1, :width]
                turned[row, t, :width] = rotate_by_matrix(part, [m], interleaved=interleaved)[0]
        return torch.from_numpy(turned)

    here = rng.integers(100, 200, size=9)
    for delta in (7, -60, rng.integers(-90, 90, size=9)):
        given = delta if isinstance(delta, int) else torch.from_numpy(delta)[None]
        moved = move_keys(at(here)[:, None], given, rope)[:, 0]
        torch.testing.assert_close(moved, at(here + delta), rtol=0, atol=1e-12)


@torch.no_grad()
def test_the_cache_of_a_llama_moves_as_a_whole() -> None:
    """Refuted if a Llama of transformers whose cache was moved as a whole, with the tokens to
    come, goes on otherwise.

    Keys of transformers' cache, moved by this package, are those of a text that starts later.
    """
    model, text, more = llama(), tokens_of(30), tokens_of(4, 1)
    rope = RotaryEmbedding(16, 128).double()
    cache, wanted = filled(model, text), filled(model, text, 60)
    for layer, other in zip(cache.layers, wanted.layers, strict=True):
        layer.keys = move_keys(layer.keys, 60, rope)
        assert off(layer.keys, other.keys) < 1e-5  # transformers' table is float32
        assert off(layer.values, other.values) < 1e-5
    ids = torch.arange(90, 94)[None]
    got, want = (model(more, position_ids=ids, past_key_values=c).logits for c in (cache, wanted))
    assert off(got, want) < 1e-5
    stays = filled(model, text)  # and unmoved keys are not
    assert off(model(more, position_ids=ids, past_key_values=stays).logits, want) > 0.1


@torch.no_grad()
def test_after_a_drop_only_the_first_layer_is_as_if_made_again() -> None:
    """Refuted if keys above the first layer are those of a fresh reading after a drop, or those
    of the first are not.

    In transformers' cache: the oldest 12 of 30 tokens go, the others move to the front.
    """
    model, text = llama(layers=3), tokens_of(30)
    rope = RotaryEmbedding(16, 128).double()
    kept, again = filled(model, text), filled(model, text[:, 12:])
    gaps = [
        (off(move_keys(a.keys[:, :, 12:], -12, rope), b.keys), off(a.values[:, :, 12:], b.values))
        for a, b in zip(kept.layers, again.layers, strict=True)
    ]
    assert max(gaps[0]) < 1e-5
    assert min(*gaps[1], *gaps[2]) > 0.1


# A trained model ---------------------------------------------------------------------------------

NEW = (3000, 3001, 3002, 3003)


@cache
def trained(name: str) -> Any:
    """Four new models of a kind, trained once, at the rate that the record chose."""
    torch.set_num_threads(1)
    kind = serving.KINDS[name]
    with torch.enable_grad():
        return kind, serving.train(kind, NEW, serving.load()[name]["rate"])


@pytest.mark.drawn(1)
@torch.no_grad()
def test_a_trained_model_keeps_what_it_has_seen() -> None:
    """Refuted if new models of one layer differ after a drop, those of two or four do not, or
    four layers differ less by the median.

    New models of one, two and four layers, with caches, drop and shift.
    """
    apart: dict[str, list[float]] = {}
    for name in ("one layer", "two layers", "four layers"):
        kind, models = trained(name)
        texts = serving.drawn(kind, NEW, 32, 64)[0]
        apart[name] = []
        for i, tokens in enumerate(texts):
            reader = serving.Reader(kind, models, i)
            kept, again = reader.new_caches(32), reader.new_caches(32)
            reader(tokens[:, :48], kept)
            for one in kept:
                one.drop(0, 32)
                one.shift(-32)
            reader(tokens[:, 32:48], again)
            gaps = [off(a.keys, b.keys) for a, b in zip(kept, again, strict=True)]
            assert gaps[0] < 1e-5
            assert min(gaps[1:], default=1.0) > 0.01
            one, other = (reader(tokens[:, 48:], c).log_softmax(-1) for c in (kept, again))
            apart[name].append(((other.exp() * (other - one)).sum(-1).mean() / math.log(2)).item())
    assert max(map(abs, apart["one layer"])) < 1e-6
    assert min(apart["two layers"] + apart["four layers"]) > 1e-5
    assert np.median(apart["four layers"]) > np.median(apart["two layers"])


# Wear --------------------------------------------------------------------------------------------


def as_stored(kind: str) -> Callable[[np.ndarray], np.ndarray]:
    """What is read again: by the types of torch, or by the formats of llama.cpp's own gguf."""
    if kind in ("bfloat16", "float16"):
        dtype = getattr(torch, kind)
        return lambda z: torch.from_numpy(z).to(dtype).double().numpy()
    gguf = pytest.importorskip("gguf")
    levels = gguf.GGMLQuantizationType[kind.removesuffix("_mixed").upper()]

    def stored(z: np.ndarray) -> np.ndarray:
        packed = gguf.quants.quantize(z.astype(np.float32), levels)
        return gguf.quants.dequantize(packed, levels).astype(float)

    if not kind.endswith("_mixed"):
        return stored
    bits = np.arange(128)[:, None] & np.arange(128)
    mix = (-1.0) ** np.array([[int(n).bit_count() for n in row] for row in bits]) / 128**0.5
    np.testing.assert_allclose(mix @ mix, np.eye(128), atol=1e-12)
    return lambda z: stored(z @ mix) @ mix


def wear(
    kind: str, times: int, by: int, empty: int = 0, base: float = 1e4, count: int = 60
) -> tuple[float, np.ndarray]:
    """The error of other keys, turned as complex numbers: of all, and of each pair.

    The ``empty`` fastest pairs of the keys hold as good as nothing.
    """
    stored = as_stored(kind)
    keys = np.random.default_rng(12).normal(size=(count, 128))
    keys.reshape(count, 2, 64)[:, :, :empty] *= 1e-3
    z = stored(keys)
    for _ in range(times):
        z = stored(rotate_complex(z, np.full(count, by), base=base, interleaved=False))
    wanted = rotate_complex(keys, np.full(count, times * by), base=base, interleaved=False)
    gap, size = ((x.reshape(count, 2, 64) ** 2).sum((0, 1)) for x in (z - wanted, wanted))
    return float(np.sqrt(gap.sum() / size.sum())), np.sqrt(gap / size)


@pytest.mark.parametrize(
    ("kind", "often", "once"),
    [("q8_0", 0.38, 0.0076), ("bfloat16", 0.127, 0.0023), ("float16", 0.02, 3e-4)],
)
def test_many_small_moves_wear_keys_out_and_one_large_move_does_not(
    kind: str, often: float, once: float
) -> None:
    """Refuted if keys in ggml's own formats, or in 16 bits, wear by other amounts."""
    assert wear(kind, 256, 1)[0] == pytest.approx(often, rel=0.12)
    assert wear(kind, 1, 256)[0] == pytest.approx(once, rel=0.12)
    for four in ("q4_0", "q4_0_mixed"):
        assert wear(four, 256, 1)[0] > 1
        assert wear(four, 1, 256)[0] < 0.15


def test_a_hadamard_basis_leaves_independent_roundings_while_fast_pairs_shake_it() -> None:
    """Refuted if ggml's own format in a Hadamard basis wears by another amount, by pair, base
    or empty pairs."""
    often, by_pair = wear("q8_0_mixed", 256, 1, count=400)
    once = wear("q8_0_mixed", 0, 1)[0]
    assert often == pytest.approx(0.086, rel=0.08)
    assert often == pytest.approx(once * math.sqrt(257), rel=0.08)
    assert 0.75 * often < by_pair.min() < by_pair.max() < 1.3 * often
    assert wear("q8_0", 256, 1)[1].max() > 0.8
    # with another base, too; and not where the fast pairs are missing
    assert wear("q8_0_mixed", 256, 1, base=5e5)[0] == pytest.approx(often, rel=0.08)
    mixed, plain = (wear(k, 256, 1, empty=32, count=400)[0] for k in ("q8_0_mixed", "q8_0"))
    assert mixed > 0.95 * plain > 0.4
    # nor in 4 bits, where a larger base makes it worse
    plain, mixed = (wear(kind, 256, 1, base=5e5)[0] for kind in ("q4_0", "q4_0_mixed"))
    assert mixed > 2 * plain > 2


def test_a_hand_on_a_grid_stays_where_a_move_is_less_than_half_a_step() -> None:
    """Refuted if a hand on a grid moves where a step is less than half a grid step, or stays
    where it is more.

    Whole numbers only: a hand of length 100 on the grid of whole numbers.
    """
    for degrees in range(0, 360, 7):
        x, y = (round(100 * f(math.radians(degrees))) for f in (math.cos, math.sin))
        if min(abs(x), abs(y)) < 20:
            continue  # along an axis one channel hardly feels the turn
        largest = max(abs(x), abs(y))
        for share, stays in ((0.9, True), (2.5, False)):  # of half a step, by the larger channel
            theta = share * 0.5 / largest
            a, b = x, y
            for _ in range(200):
                c, s = math.cos(theta), math.sin(theta)
                a, b = round(a * c - b * s), round(a * s + b * c)
            assert ((a, b) == (x, y)) == stays


def test_most_slow_pairs_stay_on_their_multiples_of_a_scale_that_moves() -> None:
    """Refuted if slow pairs in a block leave their multiples of the scale.

    Blocks of 32 half-split channels in 8 bits, 256 turns of one token, in NumPy.
    """
    keys = np.random.default_rng(7).normal(size=(300, 128))

    def worn(base: float, fixed: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The share of keys that keep a pair's multiples, and the error by the pair's size."""
        theta = base ** (-np.arange(64) / 64)
        c, s = np.cos(theta), np.sin(theta)

        def whole(z: np.ndarray) -> np.ndarray:
            return np.abs(z.reshape(-1, 4, 32)).max(-1, keepdims=True) / 127

        step = whole(keys)
        first = number = np.round(keys.reshape(-1, 4, 32) / step)
        for _ in range(256):
            a, b = np.split((number * step).reshape(-1, 128), 2, axis=1)
            turned = np.concatenate([a * c - b * s, b * c + a * s], axis=1)
            step = step if fixed else whole(turned)
            number = np.round(turned.reshape(-1, 4, 32) / step)
        (a, b), (x, y) = (np.split(z.reshape(-1, 128), 2, axis=1) for z in (number * step, keys))
        error = abs(a + 1j * b - (x + 1j * y) * np.exp(256j * theta)) ** 2
        same = (number == first).reshape(-1, 2, 64).all(1).mean(0)
        return same, np.sqrt(error.mean(0) / (x**2 + y**2).mean(0))

    same, lost = worn(1e4)
    assert same[:30].max() < 0.2
    assert same[44:].min() > 0.8
    assert same[44:].max() < 0.98
    assert 0.02 < same[36] < 0.6
    # fast pairs move the scale of their blocks, and that shakes slow ones of these blocks loose
    assert lost[31] < 0.4 < 0.6 < lost[32]
    _, still = worn(1e4, fixed=True)
    assert min(still[31], still[32]) > 0.6
    assert worn(5e5)[0][26:32].max() < 0.1
    assert worn(5e5, fixed=True)[0][26:32].min() > 0.6
    # the far end: what it loses it loses with the scale
    assert lost[60:].mean() > 1.5 * lost[:16].mean()
    assert lost[63] > 3 * still[63]


# Raw keys ----------------------------------------------------------------------------------------


@torch.no_grad()
def test_raw_keys_give_the_same_and_do_not_wear() -> None:
    """Refuted if a cache of raw keys gives other outputs, or its keys change when moved.

    A cache in float16, moved 60 times: raw keys are bit for bit what a cache never moved has.
    """
    torch.manual_seed(1)
    layer = RotarySelfAttention(32, 2, max_seq_len=256).half()
    x = torch.randn(1, 40, 32).half()
    once, raw, turned = (layer.new_cache(1, 64, raw=r) for r in (True, True, False))
    for one, first in ((once, 60), (raw, 0), (turned, 0)):
        layer(x, cache=one, position_ids=torch.arange(first, first + 40)[None])
    exact = turned.keys.double()
    for _ in range(60):
        raw.shift(1)
        turned.shift(1)
    assert torch.equal(raw.position_ids, once.position_ids)
    assert torch.equal(raw.keys, once.keys)
    worn = off(turned.keys.double(), once.keys.double())
    assert worn > 5 * off(exact.half().double(), exact) + 1e-3
    new = torch.randn(1, 1, 32).half()
    assert torch.equal(layer(new, cache=raw), layer(new, cache=once))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_sink_takes_a_share_and_passes_nothing_on(share: float) -> None:
    """Refuted if a head without its sink reads another multiple.

    Weights set by hand: an exact share for the sink, the others drawn.
    """
    rng = np.random.default_rng(9)
    others, values = rng.dirichlet(np.ones(20)) * (1 - share), rng.normal(size=(20, 8))
    logits = np.log(np.append(share, others))
    with_sink = np.exp(logits) / np.exp(logits).sum() @ np.vstack((np.zeros(8), values))
    without = np.exp(logits[1:]) / np.exp(logits[1:]).sum() @ values
    np.testing.assert_allclose(without, with_sink / (1 - share), rtol=1e-12)


@pytest.mark.drawn(1)
@torch.no_grad()
def test_the_models_of_english_have_no_sink_among_their_first_tokens() -> None:
    """Refuted if new models gain 0.02 bits by keeping four first tokens, or give them a tenth
    of their attention.

    New models, 512 bytes; one of them also token by token, with a cache of 64 slots.
    """
    for name in ("two layers", "four layers", "marked, four layers"):
        kind, models = trained(name)
        found = serving.streamed(kind, models, NEW)
        gain = np.subtract(found["last"], found["first 4, as in the cache"])
        assert np.median(gain) < 0.02
        assert np.sum(found["share of the first four"], axis=-1).max() < 0.1
        if name != "two layers":
            continue
        reader = serving.Reader(kind, models)
        tokens, targets = (part[0] for part in serving.drawn(kind, NEW, 8, 512))
        costs = []
        for first in (0, 4):
            caches, lost = reader.new_caches(8, max_seq_len=64), []
            for t in range(512):
                logs = reader(tokens[:, t : t + 1], caches).log_softmax(-1)[:, 0]
                lost.append(-logs.gather(1, targets[:, t : t + 1]).mean().item() / math.log(2))
                for one in caches:
                    if one.length > 63:
                        one.drop(first, first + 1)
                        one.shift(-1, start=first)
            costs.append(float(np.mean(lost[-64:])))
        assert costs[0] - costs[1] < 0.02
        assert costs[0] == pytest.approx(found["last"][0], abs=0.02)


# Pieces from elsewhere ---------------------------------------------------------------------------


@torch.no_grad()
def test_spliced_keys_of_the_first_layer_are_exact_and_deeper_ones_are_not() -> None:
    """Refuted if a spliced piece has other keys in the first layer, or the same above it.

    In transformers' cache: a second piece read alone, moved behind a first one.
    """
    model, text = llama(layers=3), tokens_of(30)
    rope = RotaryEmbedding(16, 128).double()
    whole, alone = filled(model, text), filled(model, text[:, 14:])
    for number, (a, b) in enumerate(zip(alone.layers, whole.layers, strict=True)):
        gap = off(move_keys(a.keys, 14, rope), b.keys[:, :, 14:])
        assert gap < 1e-5 if number == 0 else gap > 0.1
        assert number or off(a.keys, b.keys[:, :, 14:]) > 0.1  # not without the move


@torch.no_grad()
def test_a_seam_that_one_token_repairs() -> None:
    """Refuted if new models answer across the seam without help, or not when one token is made
    again.

    An induction head built by hand, from the package's layers and caches, with no training.

    The first layer looks at the token before by its angle and writes down who that was; the second
    asks, by channels that rest, which token has the present one for its predecessor.
    """
    symbols, width = 12, 36  # who I am | who was before me | what I answer
    before = RotarySelfAttention(width, 1, head_dim=64, rotary_dim=16, base=30.0).double()
    content = RotarySelfAttention(width, 1, head_dim=64, rotary_dim=2).double()
    for layer in (before, content):
        for weight in layer.parameters():
            weight.zero_()
    eye = torch.eye(symbols, dtype=torch.float64)
    key = torch.zeros(1, 1, 1, 64, dtype=torch.float64)
    key[..., :8] = 12.0
    query = before.rope(key, position_ids=torch.tensor([[1]]))  # R_1 k: highest one token back
    query, key = (torch.cat((key, query)).flatten(1)[i] for i in (0, 1))
    # the score R_m k . R_n q is highest where n = m - 1, so query and key change places
    before.q_proj.weight[:, :symbols] = query[:, None]
    before.k_proj.weight[:, :symbols] = key[:, None]
    before.v_proj.weight[:symbols, :symbols] = eye
    before.o_proj.weight[symbols : 2 * symbols, :symbols] = eye
    content.q_proj.weight[16 : 16 + symbols, :symbols] = 20 * eye
    content.k_proj.weight[16 : 16 + symbols, symbols : 2 * symbols] = 20 * eye
    content.v_proj.weight[:symbols, :symbols] = eye
    content.o_proj.weight[2 * symbols :, :symbols] = eye

    def read(tokens: list[int], caches: Any) -> list[int]:
        x = torch.zeros(1, len(tokens), width, dtype=torch.float64)
        x[0, range(len(tokens)), tokens] = 1.0
        for layer, one in zip((before, content), caches, strict=True):
            x = x + layer(x, cache=one)
        return x[0, :, 2 * symbols :].argmax(-1).tolist()

    def new() -> Any:
        return [layer.new_cache(1, 64) for layer in (before, content)]

    a, b = [3, 1, 4, 0, 5], [9, 2, 6, 8, 7, 10]
    assert read([*a, *b, 5], new())[-1] == 9  # read as one: after 5 came 9
    assert read([*a, *b, 6], new())[-1] == 8

    def spliced(question: int, made_again: int) -> int:
        talk, alone = new(), new()
        read(a + b[:made_again], talk)
        read(b, alone)
        for one, piece in zip(talk, alone, strict=True):
            piece.shift(len(a))
            piece.drop(0, made_again)
            one.append(piece.keys, piece.values, piece.position_ids)
        return read([question], talk)[-1]

    assert [spliced(6, n) for n in (0, 1)] == [8, 8]  # within b
    assert [spliced(1, n) for n in (0, 1)] == [4, 4]  # within a
    assert spliced(5, 0) != 9
    assert spliced(5, 1) == 9


# Packing -----------------------------------------------------------------------------------------


def test_only_the_mask_keeps_documents_apart() -> None:
    """Refuted if positions keep packed documents apart without a mask, or matter under one.

    By gradients: what of the first document reaches the second at all.
    """
    torch.manual_seed(2)
    stack = [RotarySelfAttention(16, 2).double() for _ in range(2)]
    same = torch.zeros(1, 9, 9, dtype=torch.bool)
    same[:, :4, :4], same[:, 4:, 4:] = True, True
    anew = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]])
    for options, reaches in (
        ({}, True),
        ({"position_ids": anew}, True),
        ({"attn_mask": same}, False),
        ({"attn_mask": same, "position_ids": anew}, False),
    ):
        x = torch.randn(1, 9, 16, dtype=torch.float64, requires_grad=True)
        y = x
        for layer in stack:
            y = y + layer(y, **options)
        (gradient,) = torch.autograd.grad(y[:, 4:].square().sum(), x)
        assert (gradient[:, :4].abs().max() > 1e-6) == reaches
        assert reaches or not gradient[:, :4].any()


@torch.no_grad()
def test_a_packed_row_of_transformers() -> None:
    """Refuted if a packed row of a real model under a document mask differs from its documents
    alone.

    Where positions do not go up by one: a new document, without a mask and without a cache.
    """
    transformers = pytest.importorskip("transformers")
    from transformers.modeling_flash_attention_utils import prepare_fa_kwargs_from_position_ids

    model, row = llama(), tokens_of(14)
    alone = model(row[:, 6:]).logits
    anew = torch.tensor([[*range(6), *range(8)]])
    skip = torch.tensor([[*range(6), *range(7, 15)]])
    on = torch.arange(14)[None]
    apart = torch.full((14, 14), -torch.inf, dtype=torch.float64)
    for a, b in ((0, 6), (6, 14)):
        apart[a:b, a:b] = torch.zeros(b - a, b - a).masked_fill(
            torch.ones(b - a, b - a).triu(1).bool(), -torch.inf
        )

    def second(ids: torch.Tensor, **options: Any) -> float:
        return off(model(row, position_ids=ids, **options).logits[:, 6:], alone)

    for implementation in ("eager", "sdpa"):
        model.set_attn_implementation(implementation)
        for ids in (anew, skip):
            assert second(ids, use_cache=False) < 1e-5  # read as two documents
            assert second(ids, use_cache=True) > 0.1
            assert second(ids, use_cache=False, attention_mask=torch.ones_like(row)) > 0.1
        assert second(on, use_cache=False) > 0.1
        for ids in (anew, skip, on):  # a mask that is given decides, whatever the positions
            assert second(ids, use_cache=False, attention_mask=apart[None, None]) < 1e-5
    assert transformers.LlamaConfig().use_cache  # the default
    (starts, _), (longest, _) = prepare_fa_kwargs_from_position_ids(anew)
    assert starts.tolist() == [0, 6, 14]
    assert longest == 8
    cuts = {"skip": (skip, [0, 14]), "from 5": (anew + 5, [0, 6, 14])}  # by the smallest position
    for ids, wanted in cuts.values():
        (starts, _), _ = prepare_fa_kwargs_from_position_ids(ids)
        assert starts.tolist() == wanted


# Shards ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_zigzag_shards_are_one_device(ranks: int) -> None:
    """Refuted if attention over zigzag shards differs from one device, or counting from 0 does
    not matter.

    A head in NumPy: softmax of each query over keys that were turned on their own ranks.
    """
    rng = np.random.default_rng(ranks)
    length = 16 * ranks
    q, k, v = rng.normal(size=(3, length, 8))

    def head(queries: np.ndarray, own: np.ndarray, keys: np.ndarray, at: np.ndarray) -> np.ndarray:
        scores = queries @ keys.T / np.sqrt(8)
        scores = np.where(own[:, None] >= at, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v[at]

    everywhere = np.arange(length)
    turned = rotate_complex(k, everywhere)
    one = head(rotate_complex(q, everywhere), everywhere, turned, everywhere)
    shards = [zigzag_indices([0, length], ranks, r).numpy() for r in range(ranks)]
    at = np.concatenate(shards)  # the order in which the ranks' keys come together
    gathered = np.concatenate([rotate_complex(k[own], own) for own in shards])
    assert sorted(at.tolist()) == everywhere.tolist()
    for own in shards:
        np.testing.assert_allclose(head(rotate_complex(q[own], own), own, gathered, at), one[own])
        if ranks > 1 and own[0]:
            counted = rotate_complex(q[own], np.arange(len(own)))
            assert np.abs(head(counted, own, gathered, at) - one[own]).max() > 0.1


def test_every_rank_has_the_same_work() -> None:
    """Refuted if counting by hand gives two ranks of the zigzag different work.

    Counted one by one, in a packed row too; and plain slices differ by more than six.
    """
    assert zigzag_indices([0, 4, 8], 2, 0).tolist() == [0, 3, 4, 7]
    for ends in ([0, 32], [0, 16, 48, 64]):
        seen = [
            sum(i - max(e for e in ends if e <= i) + 1 for i in zigzag_indices(ends, 4, r).tolist())
            for r in range(4)
        ]
        assert len(set(seen)) == 1
    first, last = sum(range(1, 9)), sum(range(25, 33))
    assert last > 6 * first


# Drafts ------------------------------------------------------------------------------------------


@torch.no_grad()
def test_a_tree_of_drafts_is_as_many_texts() -> None:
    """Refuted if a path of the tree differs from the same text alone, or positions by slot give
    the same.

    Against transformers: random trees in this package's layer order, paths in a Llama.
    """
    model, rng = llama(), np.random.default_rng(3)
    prompt, drafts = tokens_of(7), tokens_of(6, 5)
    for _ in range(3):
        parents = [-1, *(int(rng.integers(-1, i)) for i in range(1, 6))]
        chains: list[list[int]] = []
        for i, parent in enumerate(parents):
            chains.append([*(chains[parent] if parent >= 0 else []), i])
        ids = torch.tensor([[7 + len(chain) - 1 for chain in chains]])
        mask = torch.full((6, 13), -torch.inf, dtype=torch.float64)
        mask[:, :7] = 0
        for i, chain in enumerate(chains):
            mask[i, [7 + j for j in chain]] = 0
        together = model(
            drafts,
            past_key_values=filled(model, prompt),
            position_ids=ids,
            attention_mask=mask[None, None],
        ).logits
        for i, chain in enumerate(chains):
            path = torch.cat((prompt, drafts[:, chain]), dim=1)
            assert off(together[:, i], model(path).logits[:, -1]) < 1e-5


@torch.no_grad()
def test_taking_back_leaves_no_trace() -> None:
    """Refuted if decoding after rejected guesses differs from decoding without them.

    Drafts of random length, rejected from a random place on, many times over.
    """
    torch.manual_seed(4)
    rng = np.random.default_rng(4)
    stack = [RotarySelfAttention(16, 2, max_seq_len=64).double() for _ in range(2)]
    text = torch.randn(1, 40, 16, dtype=torch.float64)

    def read(x: torch.Tensor, caches: Any) -> torch.Tensor:
        for layer, one in zip(stack, caches, strict=True):
            x = x + layer(x, cache=one)
        return x

    plain = read(text, [layer.new_cache(1, 64) for layer in stack])
    caches, done = [layer.new_cache(1, 64) for layer in stack], 0
    while done < 40:
        good = min(int(rng.integers(1, 5)), 40 - done)
        bad = int(rng.integers(0, 4))
        draft = torch.cat((text[:, done : done + good], torch.randn(1, bad, 16).double()), dim=1)
        got = read(draft, caches)[:, :good]
        torch.testing.assert_close(got, plain[:, done : done + good], rtol=0, atol=1e-12)
        for one in caches:
            one.roll_back(bad)
        done += good
        assert caches[0].next_position.item() == done


def test_an_image_takes_more_slots_than_positions() -> None:
    """Qwen2-VL of transformers: three tokens, 8 by 8 patches in 16 tokens, three more."""
    pytest.importorskip("transformers")
    from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen

    text = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 64}
    text |= {"num_attention_heads": 2, "num_key_value_heads": 2}
    text["rope_parameters"] = {"rope_type": "default", "mrope_section": [2, 3, 3]}
    vision = {"depth": 1, "embed_dim": 16, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 1}
    config = qwen.Qwen2VLConfig(text_config=text, vision_config=vision, image_token_id=60)
    row = torch.tensor([[1, 2, 3, *[60] * 16, 4, 5, 6]])
    ids, delta = qwen.Qwen2VLModel(config).get_rope_index(
        row, mm_token_type_ids=(row == 60).int(), image_grid_thw=torch.tensor([[1, 8, 8]])
    )
    assert ids[:, 0, -3:].tolist() == [[7, 8, 9]] * 3  # after 0, 1, 2 and four positions
    assert row.shape[1] + delta.item() == 10  # the next position: 22 slots, 12 fewer positions


# MLA ---------------------------------------------------------------------------------------------


def test_the_merged_matrix_changes_by_the_code_distance() -> None:
    """Refuted if sampled merged matrices change by another amount than D(m).

    Entry by entry from matrices of the rotation, for another head and other latents.
    """
    rng = np.random.default_rng(6)
    W_q, W_k = rng.normal(size=(2, 64, 300))
    base = rotate_by_matrix(W_k.T, np.zeros(300, dtype=int)).T
    merged = W_q.T @ base
    for distance in (1, 3, 9, 60):
        turned = rotate_by_matrix(W_k.T, np.full(300, distance)).T
        change = np.linalg.norm(W_q.T @ turned - merged) / np.linalg.norm(merged)
        wanted = code_distance(distance, inverse_frequencies(64)).item()
        assert change == pytest.approx(wanted, rel=0.06)
    assert code_distance(1, inverse_frequencies(128)).item() == pytest.approx(0.244, abs=2e-3)
    assert code_distance(9, inverse_frequencies(128)).item() == pytest.approx(0.789, abs=2e-3)


@torch.no_grad()
def test_latent_attention_is_deepseeks() -> None:
    """Refuted if transformers' DeepSeek layer with the same weights gives other outputs.

    Weights of transformers' DeepseekV3Attention, head by head and merged; the cache is its.
    """
    transformers = pytest.importorskip("transformers")
    from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek

    torch.manual_seed(7)
    sizes: dict[str, Any] = {"kv_lora_rank": 24, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8}
    sizes |= {"v_head_dim": 12, "q_lora_rank": 20}
    config = transformers.DeepseekV3Config(
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=4,
        attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        **sizes,
    )
    theirs = deepseek.DeepseekV3Attention(config, 0).double().eval()
    ours = LatentAttention(32, 4, **sizes).double()
    ours.load_state_dict(theirs.state_dict())
    x, ids = torch.randn(2, 9, 32, dtype=torch.float64), torch.arange(9)[None]
    table = deepseek.DeepseekV3RotaryEmbedding(config)(x, ids)
    mask = torch.zeros(9, 9).double().masked_fill(torch.ones(9, 9).triu(1).bool(), -torch.inf)
    stored = transformers.DynamicCache()
    wanted = theirs(x, table, mask[None, None], past_key_values=stored)[0]
    layer = stored.layers[0]
    assert layer.keys[0, :, 0].numel() + layer.values[0, :, 0].numel() == 24 + 8
    for absorb in (False, True):
        ours.absorb = absorb
        assert off(ours(x), wanted) < 1e-5  # transformers' table is float32
    v3 = transformers.DeepseekV3Config()
    assert v3.kv_lora_rank + v3.qk_rope_head_dim == 576
    assert v3.num_attention_heads * (v3.qk_nope_head_dim + v3.v_head_dim) == 32_768


# Fewer bits --------------------------------------------------------------------------------------


def test_channels_far_from_zero_want_a_grid_before_the_turn() -> None:
    """Refuted if synthetic keys are rounded as well after the turn with a grid per channel, or
    not with one per token.

    Other keys, turned by matrices; the reason by itself: how far a channel's grid must reach.
    """
    rng = np.random.default_rng(8)
    at, means = np.arange(200), 3 * rng.normal(size=32)
    k, q = rng.normal(size=(200, 32)) + means, rng.normal(size=(200, 32))
    turned = rotate_by_matrix(k, at)

    def grid(z: np.ndarray, bits: int, axis: int) -> np.ndarray:
        low, high = z.min(axis, keepdims=True), z.max(axis, keepdims=True)
        return low + np.rint((z - low) / (high - low) * (2**bits - 1)) * (high - low) / (
            2**bits - 1
        )

    true = rotate_by_matrix(q, at) @ turned.T
    for axis, more in ((0, True), (1, False)):
        for bits in (4, 3, 2):
            keys = rotate_by_matrix(grid(k, bits, axis), at), grid(turned, bits, axis)
            before, after = (np.std(rotate_by_matrix(q, at) @ z.T - true) for z in keys)
            assert after > 1.5 * before if more else abs(after / before - 1) < 0.15
    reach = np.ptp(turned, axis=0) / np.ptp(k, axis=0)
    size = np.hypot(means[:16], means[16:])
    fast = (200 * inverse_frequencies(32) > 2 * np.pi) & (size > 3)
    assert reach[:16][fast].min() > 1.4  # pairs that go round
    slow = 200 * inverse_frequencies(32) < 0.1
    assert np.abs(reach[:16][slow] - 1).max() < 0.25


@pytest.mark.drawn(1)
@torch.no_grad()
@pytest.mark.parametrize("name", ["two layers", "four layers", "base 500,000"])
def test_trained_keys_want_a_grid_before_the_turn(name: str) -> None:
    """Refuted if two of four new models have a layer whose keys are rounded better after the
    turn.

    Four new models of each kind; one exception is allowed in a layer.
    """
    kind, models = trained(name)
    found = serving.quantised(kind, models, NEW)
    for bits in (4, 3, 2):
        before, after = (
            np.array(found[f"{when}, channel, {bits} bits"]["score error"])
            for when in ("before", "after")
        )
        assert before.shape == (kind.layers, len(NEW))
        assert ((after > before).sum(1) >= 3).all()


# A lost base -------------------------------------------------------------------------------------


@pytest.mark.drawn(1)
@torch.no_grad()
def test_a_lost_base_is_fine_near_and_gone_far() -> None:
    """Refuted if new models lose on the first 64 bytes, do not lose beyond, or still lose with
    near keys alone.

    Four new models, read by the package's layers with either base.
    """
    kind, models = trained("base 500,000")
    texts = zip(*serving.drawn(kind, NEW, 32, 256), strict=True)
    near = torch.ones(256, 256, dtype=torch.bool).tril().triu(-63)
    first, rest, windowed = [], [], []
    for i, (tokens, targets) in enumerate(texts):

        def costs(base: float, *, i: int = i, tokens=tokens, targets=targets, **options: Any):
            reader = serving.Reader(kind._replace(base=base), models, i)
            logs = reader(tokens, **options).log_softmax(-1)
            return (-logs.gather(-1, targets[..., None])[..., 0] / math.log(2)).numpy().mean(0)

        worse = costs(1e4) - costs(5e5)
        first.append(worse[:64].mean())
        rest.append(worse[64:].mean())
        masked = {"attn_mask": near[None]}
        windowed.append((costs(1e4, **masked) - costs(5e5, **masked))[128:].mean())
    assert abs(np.median(first)) < 0.1
    assert min(rest) > 0.3
    assert sum(gap < 0.1 for gap in windowed) >= 3


def test_who_asks_for_rope_theta_gets_the_default() -> None:
    """transformers 5: the base has moved, whichever way the configuration was written."""
    transformers = pytest.importorskip("transformers")
    for given in ({"rope_theta": 5e5}, {"rope_parameters": {"rope_theta": 5e5}}):
        config = transformers.LlamaConfig(**given)
        assert getattr(config, "rope_theta", 10_000.0) == 10_000.0
        assert config.rope_parameters["rope_theta"] == 5e5
    stretched = {"rope_type": "linear", "factor": 2.0}
    config = transformers.LlamaConfig(
        rope_parameters={"rope_theta": 5e5}, rope_scaling={**stretched}
    )
    assert config.rope_parameters == {**stretched, "rope_theta": 10_000.0}  # lost in writing
    other = transformers.MixtralConfig(rope_scaling={**stretched})
    assert other.rope_parameters == {**stretched, "rope_theta": 1e6}  # the class's own
    config = transformers.LlamaConfig(rope_theta=5e5, rope_scaling={**stretched})
    assert config.rope_parameters["rope_theta"] == 5e5  # as version 4 wrote it


@torch.no_grad()
def test_a_switch_under_a_living_cache() -> None:
    """Refuted if a real model that switches while it decodes gives the same as one pass.

    transformers, token by token and in one pass over 40 tokens; the trained length is 32.
    """
    transformers = pytest.importorskip("transformers")
    text = tokens_of(40)

    def gap(length: int, **rope: Any) -> float:
        torch.manual_seed(0)
        sizes = {**SMALL, "max_position_embeddings": length, "num_hidden_layers": 2}
        config = transformers.LlamaConfig(**sizes, rope_parameters={"rope_theta": 1e4, **rope})
        models = [transformers.LlamaForCausalLM(config).double().eval() for _ in range(2)]
        models[1].load_state_dict(models[0].state_dict())  # dynamic NTK remembers: one for each way
        stored = transformers.DynamicCache(config=config)
        for t in range(40):
            last = models[0](text[:, t : t + 1], past_key_values=stored).logits[:, -1]
        return off(last, models[1](text).logits[:, -1])

    lists = {"short_factor": [1.0] * 8, "long_factor": [4.0] * 8}
    assert gap(128, rope_type="default") < 1e-5
    assert gap(128, rope_type="linear", factor=4.0) < 1e-5
    assert gap(32, rope_type="dynamic", factor=4.0) > 0.1
    longrope = {"factor": 4.0, "original_max_position_embeddings": 32, **lists}
    assert gap(128, rope_type="longrope", **longrope) > 0.1

    sizes = {**SMALL, "max_position_embeddings": 128, "original_max_position_embeddings": 32}
    sizes |= {"num_hidden_layers": 2, "pad_token_id": 0, "eos_token_id": None}
    rope = {"rope_type": "longrope", "rope_theta": 1e4, **longrope}
    phi = transformers.Phi3ForCausalLM(transformers.Phi3Config(**sizes, rope_parameters=rope))
    phi = phi.double().eval()
    options = {"max_new_tokens": 20, "do_sample": False, "output_logits": True}
    options |= {"return_dict_in_generate": True, "attention_mask": torch.ones_like(text[:, :20])}
    made = phi.generate(text[:, :20], **options)
    assert off(made.logits[-1], phi(made.sequences[:, :-1]).logits[:, -1]) < 1e-5
    stored = transformers.DynamicCache(config=phi.config)
    for token in made.sequences[0, :-1]:  # the same, without generate
        last = phi(token[None, None], past_key_values=stored).logits[:, -1]
    assert off(last, made.logits[-1]) > 0.1


@torch.no_grad()
@pytest.mark.parametrize("seed", range(3))
def test_a_short_prompt_gets_the_frequencies_of_a_long_one(seed: int) -> None:
    """Refuted if a real model gives a short prompt the same logits beside a long row, or with
    frequencies chosen once.

    transformers; and frequencies chosen once, for the longest text.
    """
    transformers = pytest.importorskip("transformers")
    short, long, head, factor, trained_on = tokens_of(20), tokens_of(100, 1), 32, 4.0, 64
    both = torch.cat((torch.cat((short, torch.zeros_like(long[:, 20:])), 1), long))
    padded = torch.ones_like(both)
    padded[0, 20:] = 0
    divisors = np.geomspace(1, 64, head // 2).tolist()

    def model(family: str, **rope: Any) -> Any:
        torch.manual_seed(seed)
        sizes = {**SMALL, "hidden_size": 64, "head_dim": head, "num_hidden_layers": 2}
        sizes |= {"max_position_embeddings": trained_on, "pad_token_id": 0, "eos_token_id": None}
        if family == "Phi3":
            del sizes["head_dim"]
            rope |= {"rope_type": "longrope", "factor": factor, "long_factor": divisors}
            rope |= {"original_max_position_embeddings": trained_on}
            sizes |= {"original_max_position_embeddings": trained_on}
            sizes["max_position_embeddings"] = int(factor * trained_on)
        config = getattr(transformers, f"{family}Config")(
            **sizes, rope_parameters={"rope_theta": 1e4, **rope}
        )
        return getattr(transformers, f"{family}ForCausalLM")(config).double().eval()

    raised = 1e4 * (factor * factor - (factor - 1)) ** (head / (head - 2))
    for family, by_call, once in (
        (
            "Llama",
            {"rope_type": "dynamic", "factor": factor},
            {"rope_type": "default", "rope_theta": raised},
        ),
        ("Phi3", {"short_factor": [1.0] * (head // 2)}, {"short_factor": divisors}),
    ):
        alone = model(family, **by_call)(short).logits
        beside = model(family, **by_call)(both, attention_mask=padded).logits[:1, :20]
        assert off(beside, alone) > 0.25
        fixed = model(family, **once)
        assert off(fixed(both, attention_mask=padded).logits[:1, :20], fixed(short).logits) < 1e-5
        assert off(fixed(short).logits, alone) > 0.25
        if family == "Llama":  # the two rules meet at the longest text
            longest = tokens_of(int(factor * trained_on), 2)
            assert off(fixed(longest).logits, model(family, **by_call)(longest).logits) < 1e-5


@torch.no_grad()
@pytest.mark.parametrize("seed", range(3))
def test_dynamic_ntk_remembers_the_longest_call(seed: int) -> None:
    """Refuted if a call beyond the trained length gives the same logits before and after a longer
    one, or a shorter call does not, or LongRoPE remembers, too.

    transformers, without a cache; the trained length is 64.
    """
    transformers = pytest.importorskip("transformers")
    lists = {"short_factor": [1.0] * 8, "long_factor": [4.0] * 8}
    lists["original_max_position_embeddings"] = 64
    for kind, more in (("dynamic", {}), ("longrope", lists)):
        torch.manual_seed(seed)
        sizes = {**SMALL, "max_position_embeddings": 64, "num_hidden_layers": 2}
        rope = {"rope_type": kind, "rope_theta": 1e4, "factor": 4.0, **more}
        config = transformers.LlamaConfig(**sizes, rope_parameters=rope)
        model = transformers.LlamaForCausalLM(config).double().eval()
        for count in (20, 63, 64, 100):
            text = tokens_of(count)
            model(tokens_of(63, 1))  # forget
            before = model(text).logits
            model(tokens_of(250, 2))
            after = model(text).logits
            if kind == "dynamic" and count >= 64:
                assert off(after, before) > 0.25
            else:
                assert off(after, before) < 1e-5
            model(tokens_of(63, 3))
            assert off(model(text).logits, before) < 1e-5


# Layers that differ ------------------------------------------------------------------------------


@torch.no_grad()
def test_layers_that_rest_and_layers_with_another_base_move_in_their_own_way() -> None:
    """Refuted if caches of real models move right with one rotation for all layers, or wrong
    with each layer's own.

    SmolLM3, whose fourth layer rests, and Gemma 3, whose sixth has another base.
    """
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    smol = transformers.SmolLM3Config(
        **SMALL,
        num_hidden_layers=4,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        rope_parameters={"rope_type": "default", "rope_theta": 5e4},
    )
    gemma = transformers.Gemma3TextConfig(**SMALL, num_hidden_layers=6, sliding_window=64)
    assert smol.no_rope_layers == [1, 1, 1, 0]  # 1 means that it rotates
    own = gemma.rope_parameters
    assert [own[kind]["rope_theta"] for kind in gemma.layer_types] == [1e4] * 5 + [1e6]
    for model, bases in (
        (transformers.SmolLM3ForCausalLM(smol), [5e4, 5e4, 5e4, None]),
        (transformers.Gemma3ForCausalLM(gemma), [1e4] * 5 + [1e6]),
    ):
        model.double().eval()
        text = tokens_of(30)
        here, there = filled(model, text), filled(model, text, 17)
        for base, a, b in zip(bases, here.layers, there.layers, strict=True):
            right = RotaryEmbedding(16, 64, base).double() if base else None
            moved = move_keys(a.keys, 17, right) if right else a.keys
            assert off(moved, b.keys) < 1e-5
            alike = move_keys(a.keys, 17, RotaryEmbedding(16, 64, bases[0]).double())
            assert (off(alike, b.keys) > 0.3) == (base != bases[0])


# The record --------------------------------------------------------------------------------------


def test_every_rate_of_the_record_lies_inside_those_tried() -> None:
    record = serving.load()
    assert list(record) == list(serving.KINDS)
    for one in record.values():
        tried = {float(rate): loss for rate, loss in one["tried"].items()}
        assert serving.chosen(tried) == one["rate"]
        assert len(one["seeds"]) == 8


def test_six_of_sixteen_predictions_held() -> None:
    found = serving.judged(serving.load())
    assert [one["id"] for one in serving.predictions()] == list(found)
    assert [name for name, held in found.items() if held] == ["2", "4", "5", "9", "10", "12"]


def test_the_chapter_quotes_no_number_that_training_again_would_change() -> None:
    """Decimals in the prose are set by hand or computed; what was trained is said in words."""
    cells = json.loads(CHAPTER.read_text("utf8"))["cells"]
    prose = " ".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    prose = re.sub(r"\d+\.\d+-|\(#?[\w./#:-]+\)|(Claim|Exercise) 12\.\d+|`[^`]*`", "", prose)
    known = {"0.8", "0.2", "8.6", "0.01", "0.02", "0.05", "0.1", "0.3", "5.23", "3.5"}
    known |= {"0.25", "1.1"}  # of vLLM, of a released model (test_claims_real.py)
    assert set(re.findall(r"\d+\.\d+", prose)) <= known
