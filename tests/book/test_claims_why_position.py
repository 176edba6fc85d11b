"""The claims of chapter 01, "Why position": asked of models that other people wrote.

Most of them are run in transformers, which the tests alone need: without it they skip.
"""

import importlib
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from rope_minimal import apply_rope, rope_table, rotate_complex, rotation_matrix

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "01-why-position.ipynb"
WIDTH, LENGTH, REACH = 16, 24, 4
CLS, THERE, BACK = 0, [1, 2, 3, 4], [1, 4, 3, 2]  # <cls>, from Beijing to Shanghai, and back
ORDERS = list(itertools.permutations(THERE))


@pytest.fixture(autouse=True)
def _no_gradients():
    torch.manual_seed(4)
    with torch.no_grad():
        yield


def embedding(dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(5, WIDTH, dtype=dtype, generator=torch.Generator().manual_seed(3))


def encoder(layers: int) -> nn.Module:
    torch.manual_seed(4)
    layer = nn.TransformerEncoderLayer(
        WIDTH, 2, dim_feedforward=32, dropout=0, batch_first=True, dtype=torch.float64
    )
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval()


def peer(family: str, kind: str, *args, **settings):
    """Return a module of transformers, one head wide unless told otherwise, with random weights."""
    transformers = pytest.importorskip("transformers")
    modeling = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    config = getattr(transformers, re.sub("(Self)?(Attention|Model)$", "Config", kind))(**settings)
    config._attn_implementation = "eager"  # which returns the weights
    module = getattr(modeling, kind)(config, *args).eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=2 / parameter.shape[-1] ** 0.5)
    return module


def stack(family: str, layers: int, width: int = WIDTH, length: int = LENGTH):
    """Return a whole BERT, GPT-2 or Llama, without words: it takes vectors."""
    small = {"vocab_size": 3, "bos_token_id": 0, "eos_token_id": 0}
    if family == "gpt2":
        size = {"n_embd": width, "n_head": 1, "n_layer": layers, "n_positions": length}
        return peer(family, "GPT2Model", **size, **small)
    size = {"hidden_size": width, "num_attention_heads": 1, "num_hidden_layers": layers}
    small |= {"intermediate_size": 8, "max_position_embeddings": length, "pad_token_id": 0}
    return peer(family, {"bert": "BertModel", "llama": "LlamaModel"}[family], **size, **small)


# Claim 1.1 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [[3, 0, 4, 2, 1], [4, 3, 2, 1, 0], [1, 0, 2, 3, 4]])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-14), (torch.float32, 1e-6)])
def test_attention_without_positions_is_permutation_equivariant(order, dtype, tolerance):
    """Refuted if torch's own attention, without positions and mask, gives a shuffled text
    something else than its shuffled outputs."""
    attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True, dtype=dtype).eval()
    x = embedding(dtype)[None]
    plain, shuffled = attention(x, x, x)[0], attention(*(x[:, order],) * 3)[0]
    assert torch.allclose(shuffled, plain[:, order], rtol=0, atol=tolerance)
    assert not torch.allclose(shuffled, plain, rtol=0, atol=1e-3)  # it is not invariant


def test_attention_with_a_mask_or_with_rotary_positions_is_not_equivariant():
    order, x = [3, 0, 4, 2, 1], embedding()
    cos, sin = rope_table(range(5), WIDTH, dtype=torch.float64)

    def rotary(x):
        turned = apply_rope(x, cos, sin)
        return (turned @ turned.T / 4).softmax(1) @ x

    def causal(x):
        return (x @ x.T / 4 + torch.full((5, 5), -torch.inf).triu(1)).softmax(1) @ x

    for attend in (rotary, causal):
        assert (attend(x[order]) - attend(x)[order]).abs().max() > 1e-2


# Claim 1.2 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [1, 3])
def test_encoder_gives_cls_one_output_for_all_orders(layers):
    """Refuted if torch's TransformerEncoder gives `<cls>` a different output for any two of the
    24 orders."""
    outputs = torch.stack([encoder(layers)(embedding()[[CLS, *o]][None])[0, 0] for o in ORDERS])
    assert len(outputs) == 24
    assert torch.allclose(outputs, outputs[0].expand_as(outputs), rtol=0, atol=1e-12)


@pytest.mark.parametrize("positions", [False, True])
def test_bert_without_its_table_gives_cls_one_output_for_all_orders(positions):
    """Refuted if a BERT whose position table is set to zero tells any two orders apart, or one
    with its table tells none apart."""
    bert = stack("bert", layers=3).double()
    bert.embeddings.position_embeddings.weight.mul_(positions)
    texts = torch.stack([embedding()[[CLS, *order]] for order in ORDERS])
    outputs = bert(inputs_embeds=texts).last_hidden_state[:, 0]
    gaps = (outputs - outputs[0]).abs().amax(1)
    assert gaps[1:].min() > 1e-6 if positions else gaps.max() < 1e-12


# Claim 1.3 ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layers", "causal", "told_apart"),
    [(1, False, False), (2, False, False), (1, True, False), (2, True, True), (3, True, True)],
)
def test_order_comes_in_through_the_causal_mask_from_the_second_layer_on(
    layers, causal, told_apart
):
    """Refuted if one causal layer of torch tells the two tickets apart at the last token, or
    two layers do not."""
    mask = torch.full((5, 5), -torch.inf, dtype=torch.float64).triu(1) if causal else None
    there, back = (
        encoder(layers)(embedding()[[*order, CLS]][None], mask=mask)[0, -1]
        for order in (THERE, BACK)
    )
    gap = (there - back).abs().max()
    assert gap > 1e-3 if told_apart else gap < 1e-12


@pytest.mark.parametrize(("layers", "told_apart"), [(1, False), (2, True), (3, True)])
def test_gpt2_without_its_table_sees_order_from_the_second_layer_on(layers, told_apart):
    """Refuted if a GPT-2 of one layer without its position table sees the order, or one of two
    layers does not."""
    gpt2 = stack("gpt2", layers).double()
    gpt2.wpe.weight.zero_()
    texts = torch.stack([embedding()[[*order, CLS]] for order in (THERE, BACK)])
    there, back = gpt2(inputs_embeds=texts).last_hidden_state[:, -1]
    gap = (there - back).abs().max()
    assert gap > 1e-6 if told_apart else gap < 1e-12


def test_cls_in_front_of_a_causal_sequence_sees_nothing_but_itself():
    gpt2 = stack("gpt2", layers=3).double()
    texts = torch.stack([embedding()[[CLS, *order]] for order in (THERE, BACK)])
    there, back = gpt2(inputs_embeds=texts).last_hidden_state[:, 0]
    assert (there - back).abs().max() < 1e-12


def test_tickets_that_end_in_different_words_are_told_apart_by_one_causal_layer():
    """So the claim speaks of a common last token."""
    gpt2 = stack("gpt2", layers=1).double()
    gpt2.wpe.weight.zero_()
    texts = torch.stack([embedding()[list(order)] for order in (THERE, BACK)])
    there, back = gpt2(inputs_embeds=texts).last_hidden_state[:, -1]
    assert (there - back).abs().max() > 1e-2


# Claim 1.4 ------------------------------------------------------------------------------------


def of_stack(family: str, table: Callable | None = None):
    """Weights of one layer of GPT-2 or Llama, perhaps with another table of positions."""
    model = stack(family, layers=1)
    if table:
        model.wpe.weight.copy_(table(LENGTH, WIDTH))
    return lambda x: model(inputs_embeds=x, output_attentions=True).attentions[0]


def marian_table(length: int, width: int) -> torch.Tensor:
    pytest.importorskip("transformers")
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    table = MarianSinusoidalPositionalEmbedding(length, width)
    return table.create_weight() if hasattr(table, "create_weight") else table.weight


def t5():
    size = {"d_model": WIDTH, "d_kv": WIDTH, "num_heads": 1}
    layer = peer("t5", "T5Attention", True, 0, **size)  # with its table, layer 0
    return layer, lambda x: layer(x)[-1]


def shaw():
    size = {"hidden_size": WIDTH, "num_attention_heads": 1}
    reach = {"left_max_position_embeddings": REACH, "right_max_position_embeddings": REACH}
    kind = {"position_embeddings_type": "relative_key"}
    layer = peer("wav2vec2_bert", "Wav2Vec2BertSelfAttention", **size, **reach, **kind)
    return layer, lambda x: layer(x)[1]


def conformer(kind: str):
    size = {"hidden_size": WIDTH, "num_attention_heads": 1, "max_source_positions": 2 * LENGTH}
    size |= {"position_embeddings_type": kind}
    layer = peer("wav2vec2_conformer", "Wav2Vec2ConformerSelfAttention", **size)
    name = "Rel" if kind == "relative" else "Rotary"
    module = importlib.import_module(type(layer).__module__)
    table = getattr(module, f"Wav2Vec2Conformer{name}PositionalEmbedding")(layer.config)
    return layer, lambda x: layer(x, relative_position_embeddings=table(x))[1]


def mpt(heads: int = 1):
    layer = peer("mpt", "MptAttention", 0, d_model=WIDTH * heads, n_heads=heads)
    build = importlib.import_module(type(layer).__module__).build_mpt_alibi_tensor

    def weights(x):
        future = torch.ones(x.shape[1], x.shape[1], dtype=bool).triu(1)
        return layer(x, build(heads, x.shape[1]), attention_mask=future)[1]

    return layer, weights


def bloom():
    layer = peer("bloom", "BloomAttention", 0, hidden_size=WIDTH, n_head=1)
    build = importlib.import_module(type(layer).__module__).build_alibi_tensor

    def weights(x):
        bias = build(torch.ones(x.shape[:2]), 1, x.dtype)
        return layer(x, x, bias, torch.full((x.shape[1],) * 2, -torch.inf).triu(1))[1]

    return layer, weights


ENCODINGS = {
    "learned": lambda: of_stack("gpt2"),
    "sinusoidal": lambda: of_stack("gpt2", marian_table),
    "shaw": lambda: shaw()[1],
    "transformer_xl": lambda: conformer("relative")[1],
    "t5": lambda: t5()[1],
    "alibi": lambda: mpt()[1],
    "bloom": lambda: bloom()[1],
    "rope": lambda: of_stack("llama"),
    "turned first": lambda: conformer("rotary")[1],
}
RELATIVE_UP_TO_THE_QUERY = ["shaw", "transformer_xl", "t5", "alibi", "bloom", "rope"]


def log_odds(weights: Callable, text: torch.Tensor) -> torch.Tensor:
    """Return how much more a query scores each key than itself.

    Weights show scores only up to one number for each query, which softmax takes away: Bloom, whose
    bias is no function of the distance, passes with the others.
    """
    logs = weights(text[None])[0, 0].log()
    return logs - logs.diagonal()[:, None]


@pytest.mark.parametrize("name", ENCODINGS)
def test_which_encodings_are_relative_as_installed_models_compute_them(name):
    """Refuted if the attention of an installed model with one of the relative encodings changes
    under a common shift, or that of learned or sinusoidal vectors does not."""
    weights, text = ENCODINGS[name](), torch.randn(LENGTH, WIDTH)
    text[2:8] = text[15:21]  # one phrase, twice
    found = log_odds(weights, text)
    first, second = (found[i : i + 6, i : i + 6][np.tril_indices(6)] for i in (2, 15))
    gap = (first - second).abs().max()
    assert gap < 1e-4 if name in RELATIVE_UP_TO_THE_QUERY else gap > 0.05


def chapter(*functions: str) -> dict:
    """Run the chapter's cells that define these functions, and return all names they define."""
    cells = json.loads(NOTEBOOK.read_text("utf8"))["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    names = {"np": np, "rotate_complex": rotate_complex}
    for function in ("unevenness", *functions):  # the first cell has the sizes, too
        (source,) = (s for s in sources if re.search(rf"^def {function}\(", s, re.MULTILINE))
        exec(source, names)
    return names


@pytest.mark.parametrize("seed", range(5))
def test_which_scores_of_the_chapter_are_relative(seed):
    """The scores themselves, of a random text in which one phrase stands twice."""
    kinds = ["learned", "sinusoidal", "shaw", "transformer_xl", "t5", "alibi", "rope"]
    names = chapter("waves", *kinds)
    text = np.random.default_rng(seed).normal(size=(names["length"], names["d"]))
    text[2:8] = text[15:21]
    for kind in kinds:
        score = names[kind](text)
        gap = np.abs(score[2:8, 2:8] - score[15:21, 15:21]).max()
        assert gap > 0.05 if kind in ("learned", "sinusoidal") else gap < 1e-9, kind


def projections(layer: nn.Module, *names: str) -> list[np.ndarray]:
    """Return weights that a row is multiplied with, and take their biases away."""
    for name in names:
        if getattr(layer, name).bias is not None:
            getattr(layer, name).bias.zero_()
    return [getattr(layer, name).weight.T.double().numpy() for name in names]


def same_weights(score: np.ndarray, weights: torch.Tensor, causal: bool = False) -> bool:
    past = np.triu(np.full(score.shape, -np.inf), 1) if causal else 0
    ours = torch.tensor(score + past).softmax(1)
    return torch.allclose(ours, weights.double(), rtol=0, atol=1e-5)


def test_the_chapters_shaw_and_transformer_xl_are_those_of_installed_models():
    """Refuted if Shaw's or Transformer-XL's scores of the chapter give other weights than an
    installed model that uses them."""
    names, x = chapter("waves", "shaw", "transformer_xl"), torch.randn(1, LENGTH, WIDTH)
    names |= {"d": WIDTH, "theta": 10_000 ** (-2 * np.arange(WIDTH // 2) / WIDTH)}
    row, scale = x[0].double().numpy(), WIDTH**-0.5

    layer, weights = shaw()
    W_q, W_k = projections(layer, "linear_q", "linear_k")
    offsets = layer.distance_embedding.weight.flip(0).double().numpy()  # it counts n - m
    names |= {"W_q": W_q, "W_k": W_k, "offsets": offsets, "reach": REACH}
    assert same_weights(scale * names["shaw"](row), weights(x)[0, 0])

    layer, weights = conformer("relative")
    W_q, W_k, W_r = projections(layer, "linear_q", "linear_k", "linear_pos")
    u, v = (bias[0].double().numpy() for bias in (layer.pos_bias_u, layer.pos_bias_v))
    names |= {"W_q": W_q, "W_k": W_k, "W_r": W_r, "u": u, "v": v}
    assert same_weights(scale * names["transformer_xl"](row), weights(x)[0, 0])


def test_transformer_xl_is_one_product_with_the_wave_of_its_place_appended_to_the_key():
    names = chapter("waves", "transformer_xl")
    text = np.random.default_rng(2).normal(size=(names["length"], names["d"]))
    q, k = text @ names["W_q"], text @ names["W_k"]
    place = np.arange(len(text))
    waves = names["waves"](place)
    near = names["waves"](np.subtract.outer(place, place)) @ names["W_r"]
    both = (q + names["u"]) @ k.T + np.einsum("md,mnd->mn", q + names["v"], near)
    np.testing.assert_allclose(names["transformer_xl"](text), both, atol=1e-9)
    # a query's row over all distances is a fixed combination of the waves at the keys' places
    found = np.linalg.lstsq(waves, (both - (q + names["u"]) @ k.T).T, rcond=None)[0]
    one = np.hstack([q + names["u"], found.T]) @ np.hstack([k, waves]).T
    np.testing.assert_allclose(one, both, atol=1e-7)


def test_t5_of_the_chapter_is_that_of_an_installed_model():
    """Refuted if T5's bias of the chapter differs from that of transformers' T5."""
    names, m = chapter("t5"), np.arange(300)
    names["distance"] = np.subtract.outer(m, m)
    layer, weights = t5()
    W_q, W_k = projections(layer, "q", "k")
    numbers = layer.relative_attention_bias.weight[:, 0].double().numpy()
    names |= {"W_q": W_q, "W_k": W_k, "numbers": numbers}

    x = 0.3 * torch.randn(300, WIDTH)
    theirs = log_odds(weights, x).double().numpy()
    # at these three a logarithm is whole, and its last bit the processor's: see the next test
    sure = ~np.isin(np.abs(names["distance"]), (16, 32, 64))
    for last, same in ((91, True), (92, False)):
        names["edges"] = [*names["edges"][:-1], last]
        ours = names["t5"](x.double().numpy())
        ours = ours - ours.diagonal()[:, None]
        assert np.allclose(ours[sure], theirs[sure], rtol=0, atol=1e-3) == same


def test_ranges_of_t5_grow_by_the_root_of_two():
    """Range 8 + j, j < 8, begins at 8 * 2^(j/2); in whole numbers, s^2 >= 64 * 2^j."""
    wide = [min(s for s in range(200) if s * s >= 64 * 2**j) for j in range(8)]
    assert chapter("t5")["edges"] == [*range(1, 8), *wide]


@pytest.mark.parametrize("length", [LENGTH, 300])
def test_alibi_of_the_chapter_is_that_of_an_installed_model(length):
    """Refuted if ALiBi's scores of the chapter give other weights than an installed model with
    ALiBi."""
    names, m, heads = chapter("alibi"), np.arange(length), 8
    names["distance"] = np.subtract.outer(m, m)
    layer, weights = mpt(heads)
    x = torch.randn(1, length, WIDTH * heads)
    W = layer.Wqkv.weight.T.double().numpy().reshape(-1, 3, heads, WIDTH)
    found = weights(x)[0]
    for h in range(heads):  # slopes 1/2, 1/4, ..., 1/256
        names |= {"W_q": W[:, 0, h] / WIDTH**0.5, "W_k": W[:, 1, h], "slope": 0.5 ** (h + 1)}
        assert same_weights(names["alibi"](x[0].double().numpy()), found[h], causal=True)


def test_tables_of_positions_as_installed_models_keep_them():
    """BERT and GPT-2: a vector for each position. T5: 32 numbers a head, in the first layer."""
    for table in (
        stack("bert", 2).embeddings.position_embeddings.weight,
        stack("gpt2", 2).wpe.weight,
    ):
        assert table.shape == (LENGTH, WIDTH)
    size = {"d_model": WIDTH, "d_kv": 8, "num_heads": 2, "d_ff": 8, "vocab_size": 3}
    t5 = peer("t5", "T5Model", **size, num_layers=3)
    tables = {n: p for n, p in t5.encoder.named_parameters() if "relative_attention_bias" in n}
    assert [(name[:7], table.shape) for name, table in tables.items()] == [("block.0", (32, 2))]


# Claim 1.5 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RELATIVE_UP_TO_THE_QUERY)
def test_only_rope_lets_the_distance_change_which_of_two_keys_is_preferred(name):
    """Refuted if the lead of one key over another changes with the distance in an additive
    encoding, or under RoPE never changes its sign."""
    weights, (query, *keys) = ENCODINGS[name](), torch.randn(9, WIDTH)

    def scores(key):
        """Score of the key, s tokens back, over that of the query with itself."""
        found = []
        for s in range(1, LENGTH):
            text = torch.zeros(LENGTH, WIDTH)
            text[-1], text[-1 - s] = query, key
            found.append(log_odds(weights, text)[-1, -1 - s])
        return torch.stack(found)

    leads = torch.stack([scores(a) - scores(b) for a, b in itertools.pairwise(keys)])
    spread = leads.amax(1) - leads.amin(1)
    if name == "rope":
        assert spread.min() > 0.1
        assert ((leads.amin(1) < -0.1) & (leads.amax(1) > 0.1)).any()  # the preference turns round
    else:
        assert spread.max() < 1e-4
        assert leads.abs().max() > 0.1


def test_a_rotary_score_is_a_sum_of_one_cosine_for_each_pair():
    q, k = np.random.default_rng(0).normal(size=(2, WIDTH))
    half = WIDTH // 2
    for m, n in ((0, 0), (3, 7), (11, 2), (1000, 13)):
        total = 0.0
        for i in range(half):
            lengths = np.hypot(q[i], q[i + half]) * np.hypot(k[i], k[i + half])
            phi = np.arctan2(q[i + half], q[i]) - np.arctan2(k[i + half], k[i])
            total += lengths * np.cos(phi + (m - n) * 10_000 ** (-i / half))
        turned = rotation_matrix(m, WIDTH) @ q, rotation_matrix(n, WIDTH) @ k
        assert total == pytest.approx(turned[0] @ turned[1], abs=1e-12)


# Claim 1.6 ------------------------------------------------------------------------------------


def kernel(equations: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis, as rows, of what the equations send to zero."""
    _, sizes, rows = np.linalg.svd(equations)
    return rows[(sizes > 1e-9).sum() :]


@pytest.mark.parametrize(
    ("speeds", "dimension"), [((1.0, 0.3), 4), ((1.0, 1.0), 8), ((0.5, -0.5), 8), ((1.0, 0.0), 6)]
)
def test_turned_first_scores_are_relative_for_the_commuting_weights_and_no_others(
    speeds, dimension
):
    """Refuted if linear algebra finds a matrix between the turns that keeps all scores relative
    and does not commute with the rotations, or a commuting one that does not keep them.

    All matrices between the turns that keep scores relative, found by linear algebra.
    """
    R = [rotation_matrix(m, 4, inv_freq=np.array(speeds)) for m in range(7)]
    basis = np.eye(16).reshape(16, 4, 4)
    relative, commuting = (
        kernel(np.stack([np.concatenate(equations(M), axis=None) for M in basis], axis=1))
        for equations in (
            lambda M: [
                R[m + 1].T @ M @ R[n + 1] - R[m].T @ M @ R[n] for m in range(6) for n in range(6)
            ],
            lambda M: [M @ R[m] - R[m] @ M for m in range(7)],
        )
    )
    assert len(relative) == len(commuting) == dimension
    assert np.linalg.matrix_rank(np.concatenate([relative, commuting]), tol=1e-9) == dimension


def test_wav2vec2_conformer_turns_first_and_its_scores_are_not_relative():
    """Refuted if transformers' Wav2Vec2-Conformer computes other weights than turning before
    the projection gives, or its scores are relative."""
    layer, weights = conformer("rotary")
    text = torch.randn(LENGTH, WIDTH)
    found = weights(text[None])[0, 0]
    for first in (True, False):
        x = text.double().numpy()
        W_q, W_k = projections(layer, "linear_q", "linear_k")
        m = np.arange(LENGTH)
        q, k = (rotate_complex(x, m) @ W if first else rotate_complex(x @ W, m) for W in (W_q, W_k))
        found = weights(text[None])[0, 0]  # now without biases
        assert same_weights(q @ k.T / WIDTH**0.5, found) == first
    odds = log_odds(weights, torch.randn(WIDTH).expand(LENGTH, WIDTH))  # one token, repeated
    assert np.ptp(np.diagonal(odds.numpy(), -2)) > 0.5


# Exercises 1.3 and 1.5 ------------------------------------------------------------------------


def test_a_sinusoidal_table_alone_is_relative_and_projected_it_is_not():
    table = marian_table(LENGTH, WIDTH).double().numpy()
    W = np.random.default_rng(0).normal(size=(WIDTH, WIDTH))
    assert np.ptp(np.diagonal(table @ table.T, 3)) < 1e-5  # a float32 table
    assert np.ptp(np.diagonal(table @ W @ table.T, 3)) > 1


def test_bloom_and_mpt_add_slope_times_n_and_the_weights_are_those_of_alibi():
    pytest.importorskip("transformers")
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    n, slopes = torch.arange(LENGTH), 0.5 ** torch.arange(1, 9)[:, None, None]
    from_bloom = build_alibi_tensor(torch.ones(1, LENGTH), 8, torch.float32)
    from_mpt = build_mpt_alibi_tensor(8, LENGTH)
    assert torch.allclose(from_bloom, slopes * n)
    assert torch.allclose(from_mpt, slopes * (n - LENGTH + 1))  # the same, up to one number a head
    past = torch.full((LENGTH, LENGTH), -torch.inf).triu(1)
    content, alibi = torch.randn(8, LENGTH, LENGTH), -slopes * (n[:, None] - n)
    for bias in (from_bloom, from_mpt):
        ours, theirs = ((content + b + past).softmax(-1) for b in (alibi, bias))
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-6)
