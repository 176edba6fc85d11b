"""Self-attention: against the definition, against Llama and GPT-J, and against itself in pieces."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn.functional import scaled_dot_product_attention as sdpa
from transformers import GPTJConfig, LlamaConfig
from transformers.models.gptj.modeling_gptj import GPTJAttention
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

from rope_minimal import (
    KVCache,
    RotarySelfAttention,
    apply_rope,
    permute_qk,
    rope_table,
    rotate_complex,
)

CLOSE = {"rtol": 0, "atol": 1e-5}
SAME = {"rtol": 0, "atol": 4e-6}
VARIANTS = {
    "half": {},
    "interleaved": {"interleaved": True},
    "grouped": {"num_kv_heads": 2},
    "one key head": {"num_kv_heads": 1, "interleaved": True},
    "partial": {"rotary_dim": 4},
    "wide heads": {"head_dim": 16, "num_kv_heads": 2, "interleaved": True, "rotary_dim": 6},
    "bias and base": {"bias": True, "base": 500.0},
}
ALL = pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS.keys())


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.manual_seed(seed))


def layer(**options: Any) -> RotarySelfAttention:
    """A layer of width 32 with 4 heads and weights large enough to make attention sharp."""
    attention = RotarySelfAttention(32, 4, **{"max_seq_len": 64, **options})
    with torch.no_grad():
        for i, weight in enumerate(attention.parameters()):
            weight.copy_(0.25 * random(*weight.shape, seed=i + 1))
    return attention.requires_grad_(False)


def by_definition(attention: RotarySelfAttention, x: Tensor, options: dict[str, Any]) -> Tensor:
    """Attention token by token in NumPy float64: project, rotate, weigh, sum, project."""
    weight = {name: w.double().numpy() for name, w in attention.named_parameters()}
    head_dim = options.get("head_dim", 8)
    width, kv_heads = options.get("rotary_dim", head_dim), options.get("num_kv_heads", 4)
    out = []
    for tokens in x.double().numpy():
        q, k, v = (
            (tokens @ weight[f"{n}_proj.weight"].T + weight.get(f"{n}_proj.bias", 0.0))
            .reshape(len(tokens), -1, head_dim)
            .swapaxes(0, 1)
            for n in "qkv"
        )
        for rows in (q, k):
            rows[..., :width] = rotate_complex(
                rows[..., :width],
                np.arange(len(tokens)),
                options.get("base", 10000.0),
                interleaved=options.get("interleaved", False),
            )
        heads = []
        for h in range(4):
            g = h * kv_heads // 4
            rows = []
            for t in range(len(tokens)):
                score = k[g, : t + 1] @ q[h, t] / math.sqrt(head_dim)
                share = np.exp(score - score.max())
                rows.append(share @ v[g, : t + 1] / share.sum())
            heads.append(rows)
        y = np.concatenate(heads, axis=-1) @ weight["o_proj.weight"].T
        out.append(y + weight.get("o_proj.bias", 0.0))
    return torch.tensor(np.array(out), dtype=x.dtype)


# Against the definition, and against other people's layers


@ALL
def test_the_layer_computes_its_definition(options: dict[str, Any]) -> None:
    attention, x = layer(**options), random(2, 9, 32)
    torch.testing.assert_close(attention(x), by_definition(attention, x, options), **CLOSE)


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("bias", [False, True])
def test_a_llama_layer_loads_and_gives_the_same_numbers(kv_heads: int, bias: bool) -> None:
    """Refuted if the state dict of transformers' Llama attention does not load, or outputs
    differ beyond 1e-5."""
    config = LlamaConfig(
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=kv_heads,
        attention_bias=bias,
        attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": 5e5},
    )
    theirs = LlamaAttention(config, layer_idx=0).requires_grad_(False)
    ours = RotarySelfAttention(32, 4, kv_heads, max_seq_len=64, base=5e5, bias=bias)
    ours.requires_grad_(False)
    source = layer(num_kv_heads=kv_heads, bias=bias)
    theirs.load_state_dict(source.state_dict())
    ours.load_state_dict(theirs.state_dict())  # unchanged, nothing missing, nothing left over
    x = random(2, 40, 32)
    table = LlamaRotaryEmbedding(config)(x, torch.arange(40)[None])
    future = torch.full((40, 40), -math.inf).triu(1)
    want, _ = theirs(x, position_embeddings=table, attention_mask=future[None, None])
    torch.testing.assert_close(ours(x), want, **CLOSE)


def test_the_eight_lines_are_a_llama_layer_of_base_10_000() -> None:
    """Refuted if the eight lines differ from transformers' Llama layer of base 10,000, or agree
    with one of another base.

    The cell of chapter 9 itself; the base is not in the state dict.
    """
    notebook = Path(__file__).parents[2] / "notebooks" / "09-attention.ipynb"
    cells = ("".join(c["source"]) for c in json.loads(notebook.read_text("utf8"))["cells"])
    source = next(cell for cell in cells if "def attend(layer, x):" in cell).split("\n\n\n")[0]
    assert len(source.splitlines()) == 1 + 8
    names = {"rope_table": rope_table, "apply_rope": apply_rope, "sdpa": sdpa}
    exec(source, names)
    ours, x, future = layer(), random(2, 40, 32), torch.full((40, 40), -math.inf).triu(1)
    for base, close in ((1e4, True), (5e5, False)):
        config = LlamaConfig(
            hidden_size=32,
            num_attention_heads=4,
            attn_implementation="eager",
            rope_parameters={"rope_type": "default", "rope_theta": base},
        )
        theirs = LlamaAttention(config, layer_idx=0).requires_grad_(False)
        theirs.load_state_dict(ours.state_dict())  # whatever the base
        table = LlamaRotaryEmbedding(config)(x, torch.arange(40)[None])
        want, _ = theirs(x, position_embeddings=table, attention_mask=future[None, None])
        assert torch.allclose(names["attend"](ours, x), want, **CLOSE) == close
        assert torch.allclose(ours(x), want, **CLOSE) == close


def test_a_gpt_j_layer_interleaved_and_partly_rotated_gives_the_same_numbers() -> None:
    config = GPTJConfig(n_embd=32, n_head=4, rotary_dim=4, attn_implementation="eager")
    theirs = GPTJAttention(config, layer_idx=0).eval().requires_grad_(False)
    ours = layer(rotary_dim=4, interleaved=True)
    for name, weight in ours.state_dict().items():
        theirs.get_parameter(name.replace("o_proj", "out_proj")).copy_(weight)
    x, ids = random(2, 20, 32), torch.arange(20)[None].expand(2, -1)
    future = torch.full((20, 20), -math.inf).triu(1)
    want = theirs(x, attention_mask=future[None, None], position_ids=ids)[0]
    torch.testing.assert_close(ours(x), want, **CLOSE)


def test_permuted_weights_give_the_same_numbers_in_the_other_layout() -> None:
    source, x = layer(num_kv_heads=2, interleaved=True), random(2, 20, 32)
    state = source.state_dict()
    state["q_proj.weight"] = permute_qk(state["q_proj.weight"], 4)
    state["k_proj.weight"] = permute_qk(state["k_proj.weight"], 2)
    converted = layer(num_kv_heads=2)
    assert not torch.allclose(converted(x), source(x), atol=0.1)
    converted.load_state_dict(state)
    torch.testing.assert_close(converted(x), source(x), **SAME)


# Against itself in pieces


@ALL
def test_decoding_token_by_token_is_the_full_pass(options: dict[str, Any]) -> None:
    attention, x = layer(**options), random(2, 30, 32)
    full, cache = attention(x), attention.new_cache(2, 30)
    for t in range(30):
        step = attention(x[:, t : t + 1], cache=cache)
        torch.testing.assert_close(step, full[:, t : t + 1], **SAME)
        assert cache.length == t + 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.booleans())
def test_any_cut_into_pieces_is_the_full_pass(pieces: list[int], interleaved: bool) -> None:
    attention, x = layer(interleaved=interleaved), random(2, sum(pieces), 32)
    cache = attention.new_cache(2)
    parts = [attention(part, cache=cache) for part in x.split(pieces, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), attention(x), **SAME)


def test_the_cache_holds_rotated_keys_and_values_as_projected() -> None:
    attention, x = layer(), random(2, 7, 32)
    cache = attention.new_cache(2)
    attention(x[:, :4], cache=cache)
    attention(x[:, 4:], cache=cache)
    k, v = (
        p(x).unflatten(-1, (4, 8)).transpose(1, 2) for p in (attention.k_proj, attention.v_proj)
    )
    torch.testing.assert_close(cache.keys, attention.rope(k), **SAME)
    torch.testing.assert_close(cache.values, v, **SAME)
    assert cache.next_position.tolist() == [[7], [7]]
    cache.reset()
    assert cache.length == 0
    assert cache.keys.shape == (2, 4, 0, 8)
    torch.testing.assert_close(attention(x, cache=cache), attention(x), **SAME)


def test_a_row_of_padding_alone_has_not_begun() -> None:
    attention = layer()
    cache, padding = attention.new_cache(2), torch.tensor([[True] * 3, [False] * 3])
    attention(random(2, 3, 32), cache=cache, key_padding_mask=padding)
    assert cache.next_position.tolist() == [[0], [3]]
    x = random(2, 1, 32, seed=5)
    torch.testing.assert_close(attention(x, cache=cache)[0], attention(x)[0], **SAME)


@ALL
def test_a_left_padded_batch_is_its_sequences_alone(options: dict[str, Any]) -> None:
    attention, lengths = layer(**options), (5, 9, 1)
    alone = [random(1, n + 4, 32, seed=n) for n in lengths]
    x, padding = random(3, 9, 32, seed=99), torch.zeros(3, 9, dtype=torch.bool)
    for row, n in enumerate(lengths):
        x[row, 9 - n :], padding[row, : 9 - n] = alone[row][0, :n], True
    cache = attention.new_cache(3)
    y = attention(x, key_padding_mask=padding, cache=cache)
    assert y.isfinite().all()
    assert cache.next_position.flatten().tolist() == list(lengths)
    for row, n in enumerate(lengths):
        torch.testing.assert_close(y[row, 9 - n :], attention(alone[row])[0, :n], **SAME)
    for t in range(4):  # and goes on so, with each row at its own position
        new = torch.cat(
            [tokens[:, n + t : n + t + 1] for tokens, n in zip(alone, lengths, strict=True)]
        )
        step = attention(new, cache=cache)
        for row, n in enumerate(lengths):
            torch.testing.assert_close(step[row, 0], attention(alone[row])[0, n + t], **SAME)


@pytest.mark.parametrize("ids", [None, torch.arange(9)[None], torch.arange(9).expand(3, 9)])
def test_a_right_padded_batch_goes_on_where_each_row_ended(ids: Tensor | None) -> None:
    attention, lengths = layer(), (5, 9, 1)
    alone, x = random(3, 13, 32), random(3, 9, 32, seed=99)
    padding = torch.arange(9) >= torch.tensor(lengths)[:, None]
    x[~padding] = alone[:, :9][~padding]
    cache = attention.new_cache(3)
    y = attention(x, cache=cache, position_ids=ids, key_padding_mask=padding)
    torch.testing.assert_close(y[~padding], attention(alone)[:, :9][~padding], **SAME)
    assert cache.next_position.flatten().tolist() == list(lengths)
    for t in range(4):
        at = torch.tensor(lengths) + t
        step = attention(alone[range(3), at][:, None], cache=cache)
        torch.testing.assert_close(step[:, 0], attention(alone)[range(3), at], **SAME)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=9), st.integers(1, 9))
def test_decoding_goes_on_after_padding_anywhere(padded: list[bool], first: int) -> None:
    attention, padding = layer(), torch.tensor([padded])
    x, after = random(1, len(padded), 32), random(1, 3, 32, seed=1)
    cache = attention.new_cache(1)
    for part, hidden in zip(x.split(first, 1), padding.split(first, 1), strict=True):
        attention(part, cache=cache, key_padding_mask=hidden)
    step = attention(after, cache=cache)
    alone = attention(torch.cat((x[~padding][None], after), dim=1))
    torch.testing.assert_close(step, alone[:, -3:], **SAME)


def test_padding_anywhere_is_not_seen() -> None:
    attention, x = layer(), random(1, 8, 32)
    padding = torch.tensor([[False, True, False, False, True, True, False, True]])
    y = attention(x, key_padding_mask=padding)
    torch.testing.assert_close(y[~padding], attention(x[~padding][None])[0], **SAME)
    x[padding] = 1e3  # whatever stands there
    torch.testing.assert_close(
        attention(x, key_padding_mask=padding)[~padding], y[~padding], **SAME
    )


# What positions mean


@given(st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=20, deadline=None)
def test_a_common_shift_of_a_row_changes_nothing(first: int, second: int) -> None:
    attention, x = layer(rotary_dim=4), random(2, 12, 32)
    ids = torch.arange(12) + torch.tensor([[first], [second]])
    torch.testing.assert_close(attention(x, position_ids=ids), attention(x), **CLOSE)


def test_positions_given_once_are_continued() -> None:
    attention, x = layer(), random(2, 10, 32)
    ids = torch.tensor([[3, 4, 5, 8, 9, 10], [0, 2, 4, 6, 8, 10]])
    cache = attention.new_cache(2)
    attention(x[:, :6], position_ids=ids, cache=cache)
    step = attention(x[:, 6:], cache=cache)
    whole = torch.cat((ids, torch.arange(11, 15).expand(2, -1)), dim=1)
    torch.testing.assert_close(step, attention(x, position_ids=whole)[:, 6:], **SAME)


def test_one_row_of_positions_serves_every_row() -> None:
    attention, x = layer(), random(3, 6, 32)
    ids = [[0, 1, 2, 10, 11, 12]]
    cache = attention.new_cache(3)
    y = attention(x, position_ids=ids, cache=cache)
    torch.testing.assert_close(y, attention(x, position_ids=torch.tensor(ids * 3)), **SAME)
    assert cache.next_position.tolist() == [[13]] * 3


def test_the_order_of_the_tokens_matters_and_the_future_does_not() -> None:
    attention, x = layer(), random(1, 8, 32)
    y = attention(x)
    swapped = attention(x[:, [1, 0, *range(2, 8)]])
    assert (swapped[:, 2:] - y[:, 2:]).abs().amax(dim=-1).min() > 1e-2
    later = x.clone()
    later[:, 5:] += 1
    assert torch.equal(attention(later)[:, :5], y[:, :5])


# Types, gradients, empty input


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_every_type_stays_itself_and_the_table_stays_exact(dtype: torch.dtype) -> None:
    attention, x = layer(), random(2, 60, 32)
    want, table = attention(x), attention.rope.cos.clone()
    attention.to(dtype)
    y = attention(x.to(dtype))
    assert y.dtype == dtype
    assert attention.rope.cos.dtype == (dtype if dtype == torch.float64 else torch.float32)
    assert torch.equal(attention.rope.cos.float(), table)
    eps = max(torch.finfo(dtype).eps, 1e-6)
    torch.testing.assert_close(y.float(), want, rtol=0, atol=20 * eps)
    cache = attention.new_cache(2)
    assert cache.keys.dtype == dtype
    torch.testing.assert_close(
        torch.cat([attention(t, cache=cache) for t in x.to(dtype).split(20, 1)], 1),
        y,
        rtol=0,
        atol=20 * eps,
    )


def test_gradients_flow_to_the_input_and_to_every_weight() -> None:
    attention = layer(num_kv_heads=2, rotary_dim=4).double().requires_grad_(True)
    x = random(1, 4, 32).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: attention(x).sum(dim=-1), x, atol=1e-6)
    attention(x).square().sum().backward()
    assert all(w.grad is not None and w.grad.abs().sum() > 0 for w in attention.parameters())


def test_autocast_computes_in_its_own_type() -> None:
    attention, x = layer(), random(2, 6, 32)
    with torch.autocast("cpu", torch.bfloat16):
        y = attention(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), attention(x), rtol=0, atol=0.1)


@pytest.mark.parametrize("shape", [(2, 0, 32), (0, 5, 32), (0, 0, 32)])
def test_nothing_in_nothing_out(shape: tuple[int, ...]) -> None:
    assert layer()(torch.ones(shape)).shape == shape


def test_no_token_leaves_a_cache_as_it_was() -> None:
    attention, cache = layer(), KVCache(2, 4, 8, 8)
    attention(random(2, 3, 32), cache=cache)
    keys = cache.keys.clone()
    assert attention(random(2, 0, 32), cache=cache).shape == (2, 0, 32)
    assert cache.length == 3
    assert torch.equal(cache.keys, keys)
    assert cache.next_position.tolist() == [[3], [3]]


# Bad input


X = torch.ones(2, 3, 32)
MASK = torch.zeros(2, 3, dtype=torch.bool)
CALLS = {
    "two axes": ({"x": X[0]}, ValueError, "x must have shape (B, T, embed_dim = 32), got (3, 32)"),
    "other width": ({"x": X[..., :8]}, ValueError, "embed_dim = 32), got (2, 3, 8)"),
    "integers": ({"x": X.long()}, TypeError, "x must be a floating-point torch.Tensor, got Tensor"),
    "other type": ({"x": X.half()}, RuntimeError, "dtype"),
    "mask of numbers": (
        {"key_padding_mask": MASK.float()},
        TypeError,
        "key_padding_mask must be a tensor of torch.bool, got torch.float32",
    ),
    "mask of one row": (
        {"key_padding_mask": MASK[:1]},
        ValueError,
        "key_padding_mask must have shape (B, T) = (2, 3), got (1, 3)",
    ),
    "mask without the cache": (
        {"attn_mask": torch.ones(1, 3, 3, dtype=torch.bool)},
        ValueError,
        "attn_mask must have shape (B or 1, T, S) = (2, 3, 5), got (1, 3, 3)",
    ),
    "a tuple as cache": ({"cache": (X, X)}, TypeError, "cache must be a KVCache, got tuple"),
    "other batch": (
        {"cache": KVCache(3, 4, 8, 8)},
        ValueError,
        "cache has batch size 3, but the call needs 2",
    ),
    "other head width": (
        {"cache": KVCache(2, 4, 8, 16)},
        ValueError,
        "cache has head_dim 16, but the call needs 8",
    ),
    "no room": (
        {"x": torch.ones(2, 9, 32)},
        ValueError,
        "cache holds 2 of max_seq_len = 8 tokens: no room for 9 more",
    ),
    "other cache type": (
        {"cache": KVCache(2, 4, 8, 8, dtype=torch.float64)},
        ValueError,
        "cache holds torch.float64, but the keys are torch.float32",
    ),
    "float positions": (
        {"position_ids": torch.zeros(2, 3)},
        TypeError,
        "position_ids must be integers, got torch.float32",
    ),
    "positions of another shape": (
        {"position_ids": torch.arange(4)[None]},
        ValueError,
        "position_ids must have shape (B or 1, T)",
    ),
    "positions past the table": (
        {"position_ids": torch.tensor([[62, 63, 64]])},
        ValueError,
        "position_ids must be in 0..max_seq_len-1 = 0..63, got 62..64",
    ),
}


@pytest.mark.parametrize(("call", "error", "says"), CALLS.values(), ids=CALLS.keys())
def test_a_bad_call_is_named_and_changes_nothing(call: dict, error: type, says: str) -> None:
    attention, cache = layer(), KVCache(2, 4, 8, 8)
    attention(random(2, 2, 32), cache=cache)
    given = {"x": X, "cache": cache, **call}
    used = given["cache"]
    before = {name: _copy(value) for name, value in vars(cache).items()}
    with pytest.raises(error) as caught:
        attention(**given)
    assert says in str(caught.value)
    assert vars(cache).keys() == before.keys()
    assert all(_equal(value, before[name]) for name, value in vars(cache).items())
    assert not isinstance(used, KVCache) or used is cache or used.length == 0


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _equal(a: Any, b: Any) -> bool:
    return torch.equal(a, b) if isinstance(a, Tensor) else a == b


@pytest.mark.parametrize("name", ["q_proj", "k_proj", "v_proj"])
def test_a_cache_under_gradients_is_refused(name: str) -> None:
    """Queries, too: what their gradient needs, the next call overwrites."""
    attention = layer()
    attention.get_submodule(name).requires_grad_(True)
    cache = attention.new_cache(2)
    with pytest.raises(ValueError, match=r"no gradient, but .* decode under torch\.no_grad\(\)"):
        attention(X, cache=cache)
    assert cache.length == 0
    with torch.no_grad():
        attention(X, cache=cache)
    assert cache.length == 3


def test_projections_may_be_wrapped_or_quantised() -> None:
    attention, want = layer(), layer()(X)
    attention.q_proj, attention.k_proj = Wrapped(attention.q_proj), Wrapped(attention.k_proj)
    torch.testing.assert_close(attention(X, cache=attention.new_cache(2)), want, **SAME)
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        setattr(attention, name, WithoutParameters())
    assert attention(X, cache=attention.new_cache(2)).shape == X.shape


class Wrapped(torch.nn.Module):
    """A projection that has no weight of its own, like an adapter."""

    def __init__(self, base: torch.nn.Module) -> None:
        super().__init__()
        self.base = base

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x)


class WithoutParameters(torch.nn.Module):
    """A projection whose weight is no parameter, like a quantised one."""

    def weight(self) -> None: ...

    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


@pytest.mark.parametrize("interleaved", [False, True])
def test_compiled_gradients_of_every_sample(interleaved: bool) -> None:
    attention = layer(interleaved=interleaved)
    parameters = dict(attention.named_parameters())

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(attention, parameters, (x[None],)).square().sum()

    of_each = vmap(grad(loss), (None, 0))
    got = torch.compile(of_each, backend="eager")(parameters, random(3, 5, 32))
    for name, want in of_each(parameters, random(3, 5, 32)).items():
        torch.testing.assert_close(got[name], want, rtol=1e-4, atol=1e-4)


def test_a_failure_after_the_keys_were_made_leaves_the_cache_as_it_was() -> None:
    attention, cache, x = layer(), KVCache(2, 4, 8, 8), random(2, 5, 32)
    padding = torch.tensor([[True, True, False], [False, False, False]])
    attention(x[:, :3], cache=cache, key_padding_mask=padding)
    keys, values = cache.keys.clone(), cache.values.clone()

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    handle = attention.o_proj.register_forward_hook(fail)
    with pytest.raises(KeyboardInterrupt):
        attention(x[:, 3:], cache=cache, key_padding_mask=~padding[:, 1:])
    handle.remove()
    assert torch.equal(cache.keys, keys)
    assert torch.equal(cache.values, values)
    assert cache.next_position.tolist() == [[1], [3]]
    whole = attention(x, key_padding_mask=torch.nn.functional.pad(padding, (0, 2)))
    torch.testing.assert_close(attention(x[:, 3:], cache=cache), whole[:, 3:], **SAME)
