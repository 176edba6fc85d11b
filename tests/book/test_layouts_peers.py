"""What chapter 05 says about other libraries, run on those libraries.

transformers and rotary-embedding-torch are needed by the tests only: without them, tests skip.
"""

import importlib
import inspect
import re

import numpy as np
import pytest
import torch

from rope_minimal import apply_rope, inverse_frequencies, permute_qk, rope_table, to_half
from tests.tools.cells import read_cells, read_probe, run_cells

# families whose rotary module returns cos and sin for apply_rotary_pos_emb(q, k, cos, sin)
GENERIC = {
    *("llama", "mistral", "qwen3", "qwen3_next", "gemma3", "olmo2", "gpt_oss", "falcon", "phi"),
    *("stablelm", "nemotron", "gpt_neox", "modernbert", "esm", "nanochat", "cohere", "glm4"),
    *("ernie4_5", "helium"),
}


def modeling(name):
    """Return the module in which transformers models a family, and its default configuration."""
    pytest.importorskip("transformers")
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    configuration = importlib.import_module(f"transformers.models.{name}.configuration_{name}")
    classes = {
        key.lower().replace("_", ""): value
        for key, value in vars(configuration).items()
        if inspect.isclass(value) and value.__module__ == configuration.__name__
    }
    flat = name.replace("_", "")
    return module, (classes.get(f"{flat}textconfig") or classes[f"{flat}config"])()


def head_width(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def generic(name):
    """Return the rotation of most families, from their own tables and their own function."""
    module, config = modeling(name)
    tables = next(
        value
        for key, value in vars(module).items()
        if key.endswith("RotaryEmbedding") and value.__module__ == module.__name__
    )(config)

    def rotate(x):
        x, at = x[:, None], torch.ones(len(x), 1, dtype=torch.long)
        try:
            cos, sin = tables(x, position_ids=at)
        except TypeError:  # one table for each kind of layer
            cos, sin = tables(x, at, "full_attention")
        width = cos.shape[-1]
        try:
            y = module.apply_rotary_pos_emb(x, x, cos, sin)[0]
        except RuntimeError:  # the attention module slices the rotated part, not the function
            part = x[..., :width]
            part = module.apply_rotary_pos_emb(part, part, cos, sin)[0]
            y = torch.cat((part, x[..., width:]), dim=-1)
        return y[:, 0]

    return rotate, head_width(config)


def gptj_like(name):
    """GPT-J and CodeGen: x is (B, T, H, D), the attention module slices rotary_dim channels."""
    module, config = modeling(name)
    width, dim = config.rotary_dim, config.n_embd // config.n_head
    table = module.create_sinusoidal_positions(4, width)[1]

    def rotate(x):
        sin, cos = table[None, None].expand(len(x), 1, -1).chunk(2, dim=-1)
        part = module.apply_rotary_pos_emb(x[:, :, None, :width], sin, cos)[:, :, 0]
        return torch.cat((part, x[..., width:]), dim=-1)

    return rotate, dim


def roformer():
    module, config = modeling("roformer")
    dim = head_width(config)
    table = module.RoFormerSinusoidalPositionalEmbedding(8, dim)
    if hasattr(table, "create_weight"):  # filled when a model is initialised
        table.weight.data.copy_(table.create_weight())
    sincos = table.weight.detach()[1][None, None, None]
    apply = module.RoFormerSelfAttention.apply_rotary_position_embeddings
    return (lambda x: apply(sincos, x[:, None], x[:, None])[0][:, 0]), dim


def complex_pairs(name, dim):
    """Llama 4 and DeepSeek-V2: the table holds complex numbers, one for each pair."""
    module, _ = modeling(name)
    theta = torch.tensor(inverse_frequencies(dim), dtype=torch.float32)
    cis = torch.polar(torch.ones(dim // 2), theta)[None, None]

    def rotate(x):
        return module.apply_rotary_emb(x[:, :, None], x[:, :, None], cis)[0][:, :, 0]

    return rotate, dim


def rotation_of(name):
    """Return (rotate, head width) of a family, for the chapter's probe."""
    if name in GENERIC:
        return generic(name)
    if name in ("gptj", "codegen"):
        return gptj_like(name)
    if name == "roformer":
        return roformer()
    if name == "llama4":
        return complex_pairs(name, 128)
    return with_channels_before(*complex_pairs(name, 64), before=128)


def with_channels_before(rotate, width, before):
    """DeepSeek-V2's head: channels without a position, then those that are rotated.

    ``test_the_attention_module_rotates_the_channels_that_the_table_says`` looks whether it is so.
    """
    return (
        lambda x: torch.cat((x[..., :before], rotate(x[..., before:])), dim=-1),
        before + width,
    )


def table_rows():
    """Return the rows of the chapter's table of families as lists of cells."""
    lines = [line for line in read_cells()["families"].splitlines() if line.startswith("| ")]
    rows = [[cell.strip(" *") for cell in line.strip("| ").split(" | ")] for line in lines]
    return rows[1:]


CHECKED = [row for row in table_rows() if row[-1].startswith("`")]


def test_every_row_of_the_table_is_checked_or_linked():
    assert len(CHECKED) >= 20
    for row in table_rows():
        assert len(row) == 5
        assert row in CHECKED or re.search(
            r"\]\(https://github\.com/\S+/blob/[0-9a-f]{40}/", row[-1]
        )


def channels(rotated):
    """Return the channels that "32 of 64" or "last 64 of 192" names, and the head's width."""
    last, width, dim = re.fullmatch(r"(last )?(\d+) of (\d+)", rotated).groups()
    start = int(dim) - int(width) if last else 0
    return range(start, start + int(width)), int(dim)


@pytest.mark.parametrize("row", CHECKED, ids=[row[-1].strip("`") for row in CHECKED])
def test_families_are_as_the_chapter_says(row):
    family, layout, direction, rotated, key = row
    rotate, dim = rotation_of(key.strip("`"))
    moved, wanted = channels(rotated)
    assert dim == wanted, family
    assert read_probe()(rotate, dim) == (layout, direction, moved), family


SMALL = {
    "num_attention_heads": 4, "num_key_value_heads": 4, "n_head": 4, "num_hidden_layers": 1,
    "n_layer": 1, "vocab_size": 11, "intermediate_size": 32, "moe_intermediate_size": 8,
    "shared_expert_intermediate_size": 8, "num_experts": 2, "num_experts_per_tok": 1,
    "first_k_dense_replace": 1, "layer_types": ["full_attention"], "q_lora_rank": None,
    "kv_lora_rank": 16, "pad_token_id": None,
}  # fmt: skip
PARTIAL = [row for row in CHECKED if len(set(re.findall(r"\d+", row[3]))) > 1]


def small_model(name):
    """Return a random model of one layer with the head of the family's default configuration."""
    transformers = pytest.importorskip("transformers")
    _, default = modeling(name)
    width = head_width(default)
    sizes = SMALL | {"hidden_size": 4 * width, "n_embd": 4 * width, "head_dim": width}
    config = type(default)(**{key: sizes[key] for key in sizes if hasattr(default, key)})
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    return transformers.AutoModel.from_config(config).eval()


@pytest.mark.parametrize("row", PARTIAL, ids=[row[-1].strip("`") for row in PARTIAL])
def test_the_attention_module_rotates_the_channels_that_the_table_says(row, monkeypatch):
    """One token at two positions: see which channels of its query differ when scores are made."""
    name = row[-1].strip("`")
    model = small_model(name)
    module = importlib.import_module(type(model).__module__)
    queries = []

    def spy(original):
        def attend(layer, query, *args, **kwargs):
            queries.append(query.detach())
            return original(layer, query, *args, **kwargs)

        return attend

    if hasattr(module, "eager_attention_forward"):
        place = (module, "eager_attention_forward")
    else:  # GPT-J and CodeGen: a method
        classes = [c for key, c in vars(module).items() if key.endswith("Attention")]
        place = (next(c for c in classes if hasattr(c, "_attn")), "_attn")
    monkeypatch.setattr(*place, spy(getattr(*place)))
    for position in (0, 1):
        model(torch.tensor([[3]]), position_ids=torch.tensor([[position]]))
    at_0, at_1 = queries
    moved, dim = channels(row[3])
    assert at_0.shape[-1] == dim
    differs = (at_0 != at_1).flatten(0, -2).any(dim=0).nonzero().flatten().tolist()
    assert differs == list(moved)


def test_the_probe_finds_the_last_channels_of_deepseek_v4():
    """Its own function takes a whole head and rotates the end of it."""
    module, _ = modeling("deepseek_v4")
    cos, sin = rope_table([1], 64)
    found = read_probe()(
        lambda x: module.apply_rotary_pos_emb(x[:, :, None], cos, sin)[:, :, 0], 512
    )
    assert found == ("interleaved", "+mθ", range(448, 512))


# what the text says of the function `rotate_half`: where it takes channel 0
SWAPS = {"llama": "half-split"} | dict.fromkeys(
    ("cohere", "glm4", "ernie4_5", "helium"), "interleaved"
)


@pytest.mark.parametrize("name", SWAPS)
def test_rotate_half_is_two_functions_of_one_name(name):
    module, _ = modeling(name)
    one = torch.zeros(1, 1, 16)
    one[..., 0] = 1
    (went_to,) = module.rotate_half(one).flatten().nonzero().flatten().tolist()
    assert went_to == {"half-split": 8, "interleaved": 1}[SWAPS[name]]
    assert any(row[1] == SWAPS[name] for row in CHECKED if row[-1] == f"`{name}`")


@pytest.mark.parametrize("name", ["llama4", "deepseek_v2"])
def test_the_complex_tables_are_the_families_own(name):
    """The probe above made their complex table itself: compare it with what the model makes."""
    module, config = modeling(name)
    prefix = {"llama4": "Llama4Text", "deepseek_v2": "DeepseekV2"}[name]
    if name == "llama4":
        config.rope_parameters = {"rope_type": "default", "rope_theta": 10000.0}
    tables = getattr(module, prefix + "RotaryEmbedding")(config)
    cis = tables(torch.zeros(1, 1, 1), position_ids=torch.tensor([[1]]))
    cis = cis[0] if isinstance(cis, tuple) else cis
    dim = 2 * cis.shape[-1]
    assert dim == {"llama4": 128, "deepseek_v2": 64}[name]
    theta = torch.tensor(inverse_frequencies(dim)).float()
    assert torch.allclose(cis.flatten(), torch.polar(torch.ones(dim // 2), theta), atol=1e-6)


def test_deepseek_v3_reads_interleaved_and_writes_half_split():
    module, _ = modeling("deepseek_v3")
    x = torch.randn(1, 2, 16, 64, dtype=torch.float64)
    cos, sin = rope_table(torch.arange(16), 64, dtype=torch.float64)
    both = [torch.cat((t, t), dim=-1)[None] for t in (cos, sin)]
    theirs = module.apply_rotary_pos_emb_interleave(x, x, *both)[0]
    assert torch.allclose(theirs, to_half(apply_rope(x, cos, sin, interleaved=True)), atol=1e-14)
    at_1 = [t[..., 1:2, :] for t in both]
    rotate = module.apply_rotary_pos_emb_interleave
    with pytest.raises(ValueError, match="no layout fits"):
        read_probe()(lambda x: rotate(*[x.double()[:, None]] * 2, *at_1)[0][:, 0], 64)


def test_gains_of_a_new_layer_act_as_one_and_are_shared_by_the_heads_or_not():
    shapes = {"qwen3": "a head", "gemma3": "a head", "olmo2": "all heads"}
    for name, gain in shapes.items():
        module, config = modeling(name)
        config.hidden_size, config.num_attention_heads, config.num_key_value_heads = 64, 4, 2
        if hasattr(config, "head_dim"):
            config.head_dim = 16
        attention = next(c for key, c in vars(module).items() if key.endswith("Attention"))
        layer = attention(config, layer_idx=0)
        assert layer.q_norm.weight.shape == (16 if gain == "a head" else 64,), name
        assert layer.k_norm.weight.shape == (16 if gain == "a head" else 32,), name
        x = torch.randn(5, len(layer.q_norm.weight))
        plain = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        assert torch.allclose(layer.q_norm(x), plain, atol=1e-3), name  # its gains act as 1


@pytest.mark.parametrize("family", ["qwen3", "gemma3", "olmo2"])
def test_biases_of_a_new_model_are_zero(family):
    transformers = pytest.importorskip("transformers")
    _, default = modeling(family)
    config = type(default)(
        hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=16, vocab_size=11,
        attention_bias=True, num_hidden_layers=1, intermediate_size=96, pad_token_id=None,
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config)
    biases = [p for n, p in model.named_parameters() if re.search(r"[qk]_proj\.bias$", n)]
    assert len(biases) == 2
    assert not any(bias.any() for bias in biases)


def test_gemma_4_pairs_the_halves_of_a_whole_head_but_turns_a_part():
    module, config = modeling("gemma4")
    tables = module.Gemma4TextRotaryEmbedding(config)
    cos, sin = tables(torch.zeros(1), torch.ones(1, 1, dtype=torch.long), "full_attention")

    def rotate(x):
        return module.apply_rotary_pos_emb(x[:, None], cos, sin)[:, 0]

    image = rotate(torch.eye(512)[:, None])[:, 0]
    moved = (image != torch.eye(512)).any(dim=1).nonzero().flatten().tolist()
    assert moved == [*range(64), *range(256, 320)]
    with pytest.raises(ValueError, match="no layout fits"):
        read_probe()(rotate, 512)


# ---- the same x through every peer ---------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("width", [64, 32])
def test_onnx_operator(interleaved, width):
    x = torch.randn(2, 4, 32, 64, dtype=torch.float64)
    cos, sin = rope_table(torch.arange(32), width, dtype=torch.float64)
    theirs = torch.onnx.ops.rotary_embedding(
        x,
        cos.expand(2, -1, -1),
        sin.expand(2, -1, -1),
        interleaved=interleaved,
        rotary_embedding_dim=0 if width == 64 else width,
    )
    assert torch.allclose(theirs, apply_rope(x, cos, sin, interleaved=interleaved), atol=1e-14)


def test_rotary_embedding_torch_is_interleaved():
    peer = pytest.importorskip("rotary_embedding_torch")
    x = torch.randn(2, 4, 512, 64, generator=torch.Generator().manual_seed(0))
    cos, sin = rope_table(torch.arange(512), 64)
    theirs = peer.RotaryEmbedding(64).rotate_queries_or_keys(x)
    assert torch.allclose(theirs, apply_rope(x, cos, sin, interleaved=True), atol=4e-7 * 512)
    assert not torch.allclose(theirs, apply_rope(x, cos, sin), atol=1)


def test_transformers_llama_is_half_split_and_gptj_interleaved():
    pytest.importorskip("transformers")
    x = torch.randn(2, 4, 512, 64, generator=torch.Generator().manual_seed(0))
    cos, sin = rope_table(torch.arange(512), 64)
    llama, _ = modeling("llama")
    both = [torch.cat((t, t), dim=-1)[None] for t in (cos, sin)]
    assert torch.allclose(
        llama.apply_rotary_pos_emb(x, x, *both)[0], apply_rope(x, cos, sin), atol=1e-6
    )
    gptj, _ = modeling("gptj")
    theirs = gptj.apply_rotary_pos_emb(x.transpose(1, 2), sin[None], cos[None]).transpose(1, 2)
    assert torch.allclose(theirs, apply_rope(x, cos, sin, interleaved=True), atol=1e-6)


def test_gpt_neox_rotates_a_quarter_and_passes_the_rest():
    module, config = modeling("gpt_neox")
    x = torch.randn(1, 2, 16, head_width(config))
    tables = module.GPTNeoXRotaryEmbedding(config)(x, position_ids=torch.arange(16)[None])
    theirs = module.apply_rotary_pos_emb(x, x, *tables)[0]
    ours = apply_rope(x, *rope_table(torch.arange(16), 24))
    assert torch.allclose(theirs, ours, atol=1e-5)
    assert torch.equal(theirs[..., 24:], x[..., 24:])


# ---- the modules of the sources, as their authors ran them ---------------------------------------


def clays(interleaved, dim=64, length=1_024):
    return run_cells("imports", "imports-package", "answer-3")["Rebuilt"](dim, length, interleaved)


def test_clays_modules_equal_their_peers():
    """Clay: the first module equals rotary-embedding-torch exactly, the second one transformers."""
    x = torch.randn(1, 8, 1_024, 64, generator=torch.Generator().manual_seed(0))
    peer = pytest.importorskip("rotary_embedding_torch").RotaryEmbedding(64)
    assert torch.equal(clays(True)(x), peer.rotate_queries_or_keys(x))
    module, config = modeling("llama")
    config.head_dim = 64
    tables = module.LlamaRotaryEmbedding(config)(x, position_ids=torch.arange(1_024)[None])
    theirs = module.apply_rotary_pos_emb(x, x, *tables)[0]
    assert torch.equal(clays(False)(x), theirs)


def test_clays_example_of_dim_32_rotates_half_of_each_head():
    x = torch.randn(1, 2, 64, 64)
    peer = pytest.importorskip("rotary_embedding_torch").RotaryEmbedding(dim=32)
    theirs = peer.rotate_queries_or_keys(x)
    assert torch.equal(theirs[..., 32:], x[..., 32:])
    assert not torch.allclose(theirs, clays(True, 64, 64)(x), atol=0.1)
    assert torch.allclose(theirs[..., :32], clays(True, 32, 64)(x[..., :32]), atol=1e-4)


def test_the_decks_rotator_equals_transformers():
    rotator = run_cells("imports", "imports-package", "answer-4")["rotator"]
    x = torch.randn(1, 2, 64, 64)
    module, config = modeling("llama")
    config.head_dim = 64
    tables = module.LlamaRotaryEmbedding(config)(x, position_ids=torch.arange(64)[None])
    theirs = module.apply_rotary_pos_emb(x, x, *tables)[0]
    assert torch.allclose(rotator(x, torch.arange(64)), theirs, atol=1e-4)


# ---- whole models --------------------------------------------------------------------------------


def logits(model, tokens):
    with torch.no_grad():
        return model(tokens).logits


def check(built, forgotten, converted):
    """Converted: the same logits. Forgotten: the first token exact, the others far off."""
    assert (converted - built).abs().max() < 1e-4 * built.std()
    drift = ((forgotten - built).norm(dim=-1) / built.norm(dim=-1))[0]
    assert drift[0] < 1e-5
    assert drift[1:].mean() > 0.3
    assert (drift[1:] > 0.01).all()


def test_tiny_llama_in_the_other_layout():
    """Refuted if a tiny Llama whose rotation is exchanged for the other layout gives other
    outputs once both matrices are converted, or right ones beyond the first token when they are
    not."""
    pytest.importorskip("transformers")
    chapter = run_cells("imports", "imports-package", "llama-make", "llama-three")
    module, _ = modeling("llama")
    original = module.apply_rotary_pos_emb
    check(*chapter["logits_three_ways"](chapter["tiny_llama"](), torch.arange(3, 43)[None]))
    assert module.apply_rotary_pos_emb is original


def convert_projection(model, name, heads):
    """Reorder one projection of each layer, and its bias, from half-split to interleaved."""
    with torch.no_grad():
        for layer in model.model.layers:
            for tensor in getattr(layer.self_attn, name).parameters():
                tensor.copy_(permute_qk(tensor, heads, inverse=True))


def drift_by_token(made, built):
    return ((made - built).norm(dim=-1) / built.norm(dim=-1))[0]


@pytest.mark.parametrize(("name", "heads"), [("q_proj", 4), ("k_proj", 2)])
def test_tiny_llama_with_only_one_matrix_converted(name, heads, monkeypatch):
    """Refuted if with one matrix converted the first token of a tiny Llama is wrong, or the
    later ones are right."""
    pytest.importorskip("transformers")
    chapter = run_cells("imports", "imports-package", "llama-make")
    model, tokens = chapter["tiny_llama"](), torch.arange(3, 43)[None]
    built = logits(model, tokens)
    monkeypatch.setattr(
        modeling("llama")[0], "apply_rotary_pos_emb", chapter["interleaved_rotation"]
    )
    convert_projection(model, name, heads)
    drift = drift_by_token(logits(model, tokens), built)
    assert drift[0] < 1e-5
    assert drift[1:].mean() > 0.3


def test_a_sink_shows_the_first_token_that_one_matrix_was_forgotten(monkeypatch):
    """Refuted if in a tiny gpt-oss the first token hides one forgotten matrix, or shows both
    forgotten.

    gpt-oss: the softmax of a head runs over a learned sink as well.
    """
    transformers = pytest.importorskip("transformers")
    module, _ = modeling("gpt_oss")
    torch.manual_seed(0)
    config = transformers.GptOssConfig(
        hidden_size=64, intermediate_size=32, vocab_size=101, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, initializer_range=0.4,
        num_local_experts=2, num_experts_per_tok=2, pad_token_id=None,
        attn_implementation="eager",
    )  # fmt: skip
    model, tokens = module.GptOssForCausalLM(config).eval(), torch.arange(3, 43)[None]
    with torch.no_grad():
        for key, tensor in model.named_parameters():
            if re.search(r"sinks$|self_attn.*bias$", key):
                tensor.normal_()
    built = logits(model, tokens)

    def interleaved(q, k, cos, sin):
        return tuple(apply_rope(x, cos[:, None], sin[:, None], interleaved=True) for x in (q, k))

    monkeypatch.setattr(module, "apply_rotary_pos_emb", interleaved)
    nothing = drift_by_token(logits(model, tokens), built)
    convert_projection(model, "q_proj", 4)
    only_q = drift_by_token(logits(model, tokens), built)
    convert_projection(model, "k_proj", 2)
    both = drift_by_token(logits(model, tokens), built)
    assert nothing[0] < 1e-5
    assert only_q[0] > 0.1
    assert nothing[1:].mean() > 0.3
    assert only_q[1:].mean() > 0.3
    assert both.max() < 1e-4


def test_tiny_gptj_in_the_other_layout(monkeypatch):
    """Partial width: only the first rotary_dim rows of each head are dealt out."""
    transformers = pytest.importorskip("transformers")
    module, _ = modeling("gptj")
    torch.manual_seed(0)
    heads, dim, width = 4, 16, 8
    config = transformers.GPTJConfig(
        vocab_size=101, n_positions=64, n_embd=64, n_layer=2, n_head=heads, rotary_dim=width,
        initializer_range=0.4, attn_implementation="eager",
    )  # fmt: skip
    model, tokens = transformers.GPTJForCausalLM(config).eval(), torch.arange(3, 43)[None]
    built = logits(model, tokens)

    def half_split(tensor, sin, cos):
        return apply_rope(tensor.transpose(1, 2), cos[:, None], sin[:, None]).transpose(1, 2)

    monkeypatch.setattr(module, "apply_rotary_pos_emb", half_split)
    forgotten = logits(model, tokens)
    with torch.no_grad():
        for block in model.transformer.h:
            for linear in (block.attn.q_proj, block.attn.k_proj):
                rows = linear.weight.view(heads, dim, -1)
                turning = permute_qk(rows[:, :width].flatten(0, 1), heads)
                rows[:, :width] = turning.view(heads, width, -1)
    check(built, forgotten, logits(model, tokens))


@pytest.mark.parametrize("family", ["qwen3", "olmo2"])
def test_a_tiny_model_with_qk_norm_needs_every_tensor_and_no_other(family, monkeypatch):
    """Refuted if a tiny model with norms and biases is right with one of the tensors left out,
    or needs one more.

    Grouped heads, biases, gains: from half-split to interleaved, row by row.
    """
    transformers = pytest.importorskip("transformers")
    module, default = modeling(family)
    heads, kv_heads, dim = 4, 2, 16
    config = type(default)(
        hidden_size=heads * dim, num_attention_heads=heads, num_key_value_heads=kv_heads,
        head_dim=dim, attention_bias=True, num_hidden_layers=2, vocab_size=101,
        intermediate_size=96, initializer_range=0.2, pad_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).double().eval()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if re.search(r"self_attn.*(bias|norm\.weight)$", name):
                tensor.copy_(1 + torch.randn(tensor.shape) / 2)  # no fresh layer
    tokens = torch.arange(3, 43)[None]
    built = logits(model, tokens)
    other = run_cells("imports", "imports-package", "llama-make")["interleaved_rotation"]
    monkeypatch.setattr(module, "apply_rotary_pos_emb", other)

    def moved(tensor):
        """Reorder the first axis, each head on its own: even places get the first half."""
        rows = torch.empty_like(tensor)
        for start in range(0, len(tensor), dim):
            for i in range(dim // 2):
                rows[start + 2 * i] = tensor[start + i]
                rows[start + 2 * i + 1] = tensor[start + i + dim // 2]
        return rows

    def off(names):
        """Return the error of the logits after the tensors with these endings were reordered."""
        before = {name: tensor.clone() for name, tensor in model.named_parameters()}
        with torch.no_grad():
            for name, tensor in model.named_parameters():
                if name.endswith(tuple(names)):
                    tensor.copy_(moved(tensor))
            error = ((logits(model, tokens) - built).norm() / built.norm()).item()
            for name, tensor in model.named_parameters():
                tensor.copy_(before[name])
        return error

    kinds = ("q_proj.weight", "k_proj.weight", "q_proj.bias", "k_proj.bias", "q_norm.weight")
    kinds = {f"self_attn.{kind}" for kind in (*kinds, "k_norm.weight")}
    assert len([n for n, _ in model.named_parameters() if n.endswith(tuple(kinds))]) == 12
    assert off(kinds) < 1e-6  # transformers takes norms and tables in float32
    for kind in kinds:
        assert off(kinds - {kind}) > 0.01, kind
    for more in ("v_proj.weight", "v_proj.bias", "o_proj.weight"):
        assert off(kinds | {f"self_attn.{more}"}) > 0.01, more


def test_permute_qk_by_index():
    """New row i of a head is old row 2i, new row i + D/2 is old row 2i + 1."""
    heads, dim = 3, 8
    weight = np.arange(heads * dim * 2.0).reshape(heads * dim, 2)
    within = [2 * i + odd for odd in (0, 1) for i in range(dim // 2)]
    order = [head * dim + j for head in range(heads) for j in within]
    assert np.array_equal(permute_qk(weight, heads), weight[order])
    assert np.array_equal(permute_qk(weight[order], heads, inverse=True), weight)
