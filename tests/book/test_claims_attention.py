"""The claims of chapter 9, each checked another way than in the chapter."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from rope_minimal import (
    RotarySelfAttention,
    apply_rope,
    rope_table,
    rotate_by_matrix,
    rotate_complex,
)


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Causal attention of one head in NumPy."""
    scores = q @ k.T / np.sqrt(q.shape[-1])
    return softmax(np.where(np.tri(len(q), dtype=bool), scores, -np.inf)) @ v


def test_one_rotary_layer_tells_the_tickets_apart() -> None:
    """Refuted if a head written in NumPy gives two of the 24 orders one output with the
    rotation, or two outputs without.

    All 24 orders of the four words, with a head written in NumPy.
    """
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
    """Refuted if a common shift changes a layer written here that the claim calls harmless, or
    leaves one that it calls harmful."""
    rng = np.random.default_rng(1)
    x, (W_q, W_k, W_v) = rng.normal(size=(20, 8)), rng.normal(size=(3, 8, 8))
    by_channel = np.arange(1.0, 9.0)
    by_pair = np.repeat(np.arange(1.0, 5.0), 2)

    def layer(start: int, where: str = "") -> np.ndarray:
        positions = np.arange(start, start + 20)

        def turn(z: np.ndarray) -> np.ndarray:
            return rotate_by_matrix(z, positions, interleaved=True)

        def norm(z: np.ndarray) -> np.ndarray:
            return z / np.linalg.norm(z, axis=-1, keepdims=True)

        q, k, v = x @ W_q, x @ W_k, x @ W_v
        if where == "before the projection":
            return attend(turn(x) @ W_q, turn(x) @ W_k, v)
        if where == "values too":
            v = turn(v)
        if where == "LayerNorm":  # no gains, but the mean of the channels goes
            q, k = (norm(z - z.mean(axis=-1, keepdims=True)) for z in (turn(q), turn(k)))
            return attend(8**0.5 * q, 8**0.5 * k, v)
        unequal = dict.fromkeys(("unequal gains", "gains that agree"), by_channel)
        gains = (unequal | {"gains equal in a pair": by_pair}).get(where, 1.0)
        if where.startswith("norm first"):
            return attend(turn(by_channel * norm(q)), turn(by_channel * norm(k)), v)
        if "gains" in where:
            back = by_pair / by_channel if where == "gains that agree" else gains
            return attend(gains * norm(turn(q)), back * norm(turn(k)), v)
        return attend(turn(q), turn(k), v)

    for shift in (1, 77, 5000):
        for harmless in (
            "",
            "gains equal in a pair",
            "gains that agree",  # unequal in a pair, but not their products
            "norm first, unequal gains",
        ):
            np.testing.assert_allclose(layer(shift, harmless), layer(0, harmless), atol=1e-9)
        for harmful in (
            "before the projection",
            "unequal gains",
            "LayerNorm",
        ):  # values are not turned here
            assert np.abs(layer(shift, harmful) - layer(0, harmful)).max() > 0.01
        turned = rotate_by_matrix(layer(0, "values too"), np.full(20, shift), interleaved=True)
        np.testing.assert_allclose(layer(shift, "values too"), turned, atol=1e-9)
        assert np.abs(turned - layer(0, "values too")).max() > 0.1


def random_weights(module: torch.nn.Module) -> torch.nn.Module:
    """Fill every parameter with numbers of a size that makes attention sharp."""
    generator = torch.Generator().manual_seed(8)
    for weight in module.parameters():
        scale = weight.shape[-1] ** -0.5 if weight.ndim > 1 else 1.0
        weight.copy_(scale * torch.randn(weight.shape, generator=generator))
    return module.eval()


def causal(tokens: int) -> torch.Tensor:
    allowed = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    return torch.zeros(1, 1, tokens, tokens).masked_fill(~allowed, -torch.inf)


@torch.no_grad()
@pytest.mark.parametrize(("kind", "rate"), [("compressed_sparse", 4), ("heavily_compressed", 8)])
def test_deepseek_v4_turns_summaries_by_a_count_of_its_own(kind: str, rate: int) -> None:
    """Refuted if the real layers do not change under a common shift, or still do when the count
    moves along.

    All positions move; outputs do not if what summaries are turned by is moved along.
    """
    pytest.importorskip("transformers")
    from transformers import DeepseekV4Config
    from transformers.models.deepseek_v4 import modeling_deepseek_v4 as deepseek

    config = DeepseekV4Config()
    assert len(config.layer_types) == 43
    assert set(config.layer_types) == {
        "compressed_sparse_attention", "heavily_compressed_attention",
    }  # fmt: skip
    assert config.compress_rates == {
        "compressed_sparse_attention": 4, "heavily_compressed_attention": 128,
    }  # fmt: skip
    small = DeepseekV4Config(
        attn_implementation="eager", hidden_size=32, num_attention_heads=2, head_dim=16,
        partial_rotary_factor=0.5, q_lora_rank=16, o_groups=1, o_lora_rank=16, num_hidden_layers=1,
        layer_types=[f"{kind}_attention"], index_n_heads=2, index_head_dim=16,
        compress_rates={f"{kind}_attention": rate},
    )  # fmt: skip
    table = deepseek.DeepseekV4RotaryEmbedding(small)
    layer = random_weights(deepseek.DeepseekV4Attention(small, 0))
    x = torch.randn(1, 40, 32, generator=torch.Generator().manual_seed(5))

    def out(shift: int, x: torch.Tensor = x) -> torch.Tensor:
        ids = torch.arange(40)[None] + shift
        tables = {name: table(x, ids, layer_type=name) for name in ("main", "compress")}
        return layer(x, tables, ids, causal(40))[0]

    here = out(0)
    assert (out(500) - here).abs().max() > 0.1 * here.std()
    later = torch.cat((x[:, :32], -x[:, 32:]), dim=1)  # seen early after a shift alone
    leaks = [(out(s)[:, :16] - out(s, later)[:, :16]).abs().max() for s in (0, 500)]
    assert leaks[0] == 0.0 < 0.1 * here.std() < leaks[1]
    summaries, shift = layer.compressor, 500

    def back(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*given[:2], given[2] - shift, *given[3:])  # which of them are seen

    summaries.register_forward_pre_hook(back)
    turn = summaries.rotary_emb.forward
    summaries.rotary_emb.forward = lambda y, position_ids, layer_type: turn(
        y, position_ids + shift, layer_type
    )
    assert (out(500) - here).abs().max() < 1e-4 * here.std()


@torch.no_grad()
def test_published_layers_keep_or_break_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuted if a layer of transformers changes, or does not change, under a common shift
    otherwise than the claim says.

    Layers of the transformers library under a common shift of all positions by 500.
    """
    pytest.importorskip("transformers")
    from transformers import (
        DeepseekV4Config,
        HunYuanDenseV1Config,
        Qwen3Config,
        Wav2Vec2ConformerConfig,
    )
    from transformers.models.deepseek_v4 import modeling_deepseek_v4 as deepseek
    from transformers.models.hunyuan_v1_dense import modeling_hunyuan_v1_dense as hunyuan
    from transformers.models.qwen3 import modeling_qwen3 as qwen
    from transformers.models.wav2vec2_conformer import modeling_wav2vec2_conformer as conformer

    x = torch.randn(1, 12, 32, generator=torch.Generator().manual_seed(9))
    eager: dict[str, Any] = {"attn_implementation": "eager"}

    def changes(run: Any) -> list[float]:
        """By how much the output and the weights move."""
        pairs = zip(run(torch.arange(12)[None]), run(torch.arange(500, 512)[None]), strict=True)
        return [(a - b).abs().max().item() for a, b in pairs]

    # DeepSeek-V4 rotates values and turns the sum back; without that the output moves.
    config = DeepseekV4Config(
        hidden_size=32,
        num_attention_heads=2,
        head_dim=16,
        q_lora_rank=16,
        o_groups=1,
        o_lora_rank=16,
        num_hidden_layers=1,
        layer_types=["sliding_attention"],
        **eager,
    )
    rope = deepseek.DeepseekV4RotaryEmbedding(config)
    v4 = random_weights(deepseek.DeepseekV4Attention(config, 0))

    def run_v4(ids: torch.Tensor) -> Any:
        return v4(x, {"main": rope(x, ids, layer_type="main")}, ids, causal(12))

    turn = deepseek.apply_rotary_pos_emb
    assert max(changes(run_v4)) < 1e-4

    calls = []

    def only_inputs(z: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        calls.append(z.shape)
        return z if len(calls) % 3 == 0 else turn(z, cos, sin)  # q, key and value, the sum

    monkeypatch.setattr(deepseek, "apply_rotary_pos_emb", only_inputs)
    output_change, weights_change = changes(run_v4)
    assert len(calls) == 6
    assert weights_change < 1e-4 < 0.1 < output_change

    # Qwen3 normalises before the rotation: harmless, whatever the gains.
    config = Qwen3Config(
        hidden_size=32, num_attention_heads=2, num_key_value_heads=2, head_dim=16, **eager
    )
    first = random_weights(qwen.Qwen3Attention(config, 0))
    rotary = qwen.Qwen3RotaryEmbedding(config)
    assert max(changes(lambda ids: first(x, rotary(x, ids), causal(12)))) < 1e-4

    # HunYuan normalises after the rotation: harmless with equal gains, not with others.
    config = HunYuanDenseV1Config(
        hidden_size=32, num_attention_heads=2, num_key_value_heads=2, head_dim=16, **eager
    )
    table = hunyuan.HunYuanDenseV1RotaryEmbedding(config)
    attention = random_weights(hunyuan.HunYuanDenseV1Attention(config, 0))

    def run_hunyuan(ids: torch.Tensor) -> Any:
        return attention(x, table(x, ids), causal(12))

    assert changes(run_hunyuan)[1] > 0.01
    for norm in (attention.query_layernorm, attention.key_layernorm):
        norm.weight.fill_(1.0)
    assert max(changes(run_hunyuan)) < 1e-4

    # Wav2Vec2-Conformer rotates before the projection (its table starts at position 0).
    config = Wav2Vec2ConformerConfig(
        hidden_size=32, num_attention_heads=2, position_embeddings_type="rotary", **eager
    )
    whole = random_weights(conformer.Wav2Vec2ConformerSelfAttention(config))
    table = conformer.Wav2Vec2ConformerRotaryPositionalEmbedding(config)(torch.zeros(1, 600, 32))

    def run_conformer(ids: torch.Tensor) -> Any:
        return whole(x, relative_position_embeddings=table[:, ids[0]])

    assert changes(run_conformer)[1] > 0.1


def test_a_base_changed_after_caching_breaks_relativity() -> None:
    """Refuted if scores with one base move with the place, or those with two bases do not."""
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
def test_a_cached_key_can_be_turned_on() -> None:
    """Refuted if a cached key turned on by the difference differs from one turned there at
    once.

    One rotation by the difference of the angles; the same moves a key to another position.
    """
    k = torch.randn(30, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    at = np.arange(5, 35)
    old, new = (base ** (-np.arange(8) / 8) for base in (1e4, 7e4))
    cached = torch.from_numpy(rotate_by_matrix(k.numpy(), at, inv_freq=old))
    wanted = torch.from_numpy(rotate_by_matrix(k.numpy(), at, inv_freq=new))
    angle = torch.from_numpy(np.outer(at, new - old))
    torch.testing.assert_close(apply_rope(cached, angle.cos(), angle.sin()), wanted)

    moved = apply_rope(cached, *rope_table([7] * 30, 16, inv_freq=old, dtype=torch.float64))
    at_home = torch.from_numpy(rotate_by_matrix(k.numpy(), at + 7, inv_freq=old))
    torch.testing.assert_close(moved, at_home)


@torch.no_grad()
def test_scores_mended_after_a_change_of_base_are_not_one_pass_with_the_new_base() -> None:
    """Refuted if raw keys under a new base are inexact in one layer, or exact in two.

    Raw keys, and another base from token 24 on: exact in one layer, not in two.
    """
    x = torch.randn(1, 48, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    before, after = (
        [RotarySelfAttention(32, 4, base=base).double() for _ in range(2)] for base in (1e4, 8e4)
    )
    for old, new in zip(before, after, strict=True):
        new.load_state_dict(random_weights(old).state_dict())
    layers = zip(before, after, strict=True)
    decoded, one_pass = x, x  # what each layer reads: made as it came, and made anew
    for depth, (old, new) in enumerate(layers, 1):
        # raw keys are turned with the new base, but the first 24 rows were made with the old one
        decoded = decoded + torch.cat((old(decoded)[:, :24], new(decoded)[:, 24:]), dim=1)
        one_pass = one_pass + new(one_pass)
        off = (decoded - one_pass)[:, 24:].norm() / one_pass[:, 24:].norm()
        assert off < 1e-14 if depth == 1 else off > 1e-3


@torch.no_grad()
def test_a_common_shift_of_a_model_that_rescales_by_the_largest_position() -> None:
    """Refuted if transformers' models with fixed frequencies change under a common shift, or
    dynamic and LongRoPE do not.

    transformers, 20 tokens at 0 to 19 and at 30 to 49, trained length 32.
    """
    transformers = pytest.importorskip("transformers")
    ids = torch.arange(3, 23)[None]
    scaled = {"rope_theta": 1e4, "factor": 4.0}
    longrope = {"short_factor": [1.0] * 8, "long_factor": [4.0] * 8}
    longrope |= scaled | {"original_max_position_embeddings": 32}

    def change(length: int, **parameters: Any) -> float:
        config = transformers.LlamaConfig(
            hidden_size=64,
            intermediate_size=96,
            vocab_size=101,
            num_hidden_layers=2,
            num_attention_heads=4,
            head_dim=16,
            max_position_embeddings=length,
            rope_parameters=parameters,
        )
        model = random_weights(transformers.LlamaForCausalLM(config))
        here, there = (
            model(ids, position_ids=torch.arange(first, first + 20)[None]).logits
            for first in (0, 30)
        )
        return ((here - there).norm() / here.norm()).item()

    assert change(32, rope_type="default", rope_theta=1e4) < 1e-4
    assert change(32, rope_type="linear", **scaled) < 1e-4
    assert change(32, rope_type="dynamic", **scaled) > 0.1
    assert change(128, rope_type="longrope", **longrope) > 0.1


@torch.no_grad()
def test_a_common_shift_is_harmless_and_a_jump_is_not() -> None:
    """Refuted if a left-padded row with a common shift differs from its text alone, or one with
    a jump does not."""
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
    """Refuted if a ratio of two weights changes with the row, or a weight does not."""
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


@pytest.mark.parametrize("rotated", [False, True])
def test_the_mask_leaks_position_only_through_a_token_that_differs(rotated: bool) -> None:
    """Refuted if equal tokens come out different at two rows, or come out equal after one that
    differs."""
    rng = np.random.default_rng(5)
    W_q, W_k, W_v = rng.normal(size=(3, 12, 12)) / 4
    word, other = rng.normal(size=(2, 12))

    def rows(first: np.ndarray) -> np.ndarray:
        x = np.tile(word, (40, 1))
        x[0] = first
        positions = np.arange(40) if rotated else np.zeros(40)
        q, k = (rotate_by_matrix(x @ W, positions) for W in (W_q, W_k))
        return attend(q, k, x @ W_v)

    assert np.ptp(rows(word), axis=0).max() < 1e-13
    gaps = np.linalg.norm(rows(other)[:, None] - rows(other)[None], axis=-1)
    assert gaps[~np.eye(40, dtype=bool)].min() > 1e-6
    if not rotated:  # without positions the first token's share is 1/(1 + c t): it counts
        y = rows(other)
        share = (y[1:] - word @ W_v) @ (other @ W_v - word @ W_v)
        share /= np.sum((other @ W_v - word @ W_v) ** 2)
        assert np.diff(1 / share) == pytest.approx(np.diff(1 / share)[0])


def test_a_sink_leaks_position_through_equal_tokens() -> None:
    """Refuted if equal tokens come out equal at every row with a sink, or different without.

    An extra score in the softmax that passes nothing on: the weights no longer add up to 1.
    """
    q, k, v = np.random.default_rng(6).normal(size=(3, 12))
    at = np.arange(40)
    turned_q, turned_k = (rotate_by_matrix(np.tile(z, (40, 1)), at) for z in (q, k))
    scores = turned_q @ turned_k.T / np.sqrt(12)
    scores = np.where(np.tri(40, dtype=bool), scores, -np.inf)
    for sink, leaks in ((-np.inf, False), (1.0, True)):
        weights = softmax(np.column_stack((scores, np.full(40, sink))))[:, :-1]
        rows = weights @ np.tile(v, (40, 1))
        gaps = np.linalg.norm(rows[:, None] - rows[None], axis=-1)[~np.eye(40, dtype=bool)]
        assert gaps.min() > 1e-6 if leaks else gaps.max() < 1e-13
