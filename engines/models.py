"""Whole models, run by other engines on the files that a conversion wrote.

Each function takes a path and tokens (n,), and returns logits (n, vocabulary), float32.
"""

import contextlib
import ctypes
import functools
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from ropescope.names import name_of, stems

LIBRARY = Path(__file__).parent / "node_modules/@node-llama-cpp/linux-x64/bins/linux-x64"
"""llama.cpp's library, as npm's package brings it."""


def _tensors(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def _config(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text())


def transformers(folder: Path, tokens: np.ndarray, *, table: bool = False) -> np.ndarray:
    """Run a folder in Hugging Face's form.

    With ``table``, GELU is what llama.cpp looks up: its tanh form of float16, rounded to float16.
    """
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()

    def gelu(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x.half().float(), approximate="tanh").half().float()

    for module in model.modules() if table else ():
        if "GELU" in type(module).__name__:
            module.forward = gelu
    with torch.no_grad():
        return model(torch.tensor(tokens)[None]).logits[0].float().numpy()


# llama.cpp ----------------------------------------------------------------------------------------


class _Batch(ctypes.Structure):
    _fields_ = (
        ("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.c_void_p), ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    )  # fmt: skip


class _Parameters(ctypes.Structure):
    """Room for llama.cpp's structures of parameters, which it fills with what is usual."""

    _fields_ = (("numbers", ctypes.c_int32 * 128),)


SIZES, THREADS, FLASH, TYPES = (0, 1, 2), (7, 8), 13, (26, 27)
"""Where in `llama_context_params` of llama.cpp 0.5.0, in numbers of 32 bits: lengths of context and
batches; threads; whether attention is flash; the types of cached keys and values."""


@functools.cache
def _library() -> tuple[Any, list[str]]:
    """Load llama.cpp; return it, and what it says."""
    everywhere = {"mode": ctypes.RTLD_GLOBAL}
    ctypes.CDLL(str(LIBRARY / "libggml-base.so"), **everywhere)
    ggml = ctypes.CDLL(str(next(LIBRARY.glob("libggml.v*.so"))), **everywhere)
    found = ctypes.CDLL(str(next(LIBRARY.glob("libllama.v*.so"))), **everywhere)
    said: list[str] = []
    listener = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    hear = listener(lambda level, text, _: said.append((text or b"").decode("utf8", "replace")))
    found.llama_log_set(hear, None)
    found.heard = hear  # or it would be freed
    ggml.ggml_backend_load_all_from_path(str(LIBRARY).encode())
    for name in ("llama_model_default_params", "llama_context_default_params"):
        getattr(found, name).restype = _Parameters
    for name in ("llama_model_load_from_file", "llama_init_from_model"):
        getattr(found, name).restype = ctypes.c_void_p
    found.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
    found.llama_batch_init.restype = _Batch
    return found, said


def llama_cpp(file: Path, tokens: np.ndarray, vocabulary: int) -> np.ndarray:
    """Run a GGUF, its cache in float32 and without flash attention."""
    library, said = _library()
    said.clear()

    def checked(pointer: int | None) -> ctypes.c_void_p:
        if not pointer:
            raise RuntimeError("".join(said[-3:]))
        return ctypes.c_void_p(pointer)

    usual = library.llama_model_default_params()
    model = checked(library.llama_model_load_from_file(str(file).encode(), usual))
    options = library.llama_context_default_params()
    for place in SIZES:
        options.numbers[place] = len(tokens)
    for place in THREADS:
        options.numbers[place] = 1
    for place in (FLASH, *TYPES):
        options.numbers[place] = 0
    context = checked(library.llama_init_from_model(model, options))
    batch = library.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = int(token), i, 1, 1
        batch.seq_id[i][0] = 0
    if library.llama_decode(context, batch):
        raise RuntimeError("".join(said[-3:]))
    rows = (library.llama_get_logits_ith(context, i) for i in range(len(tokens)))
    found = np.stack([np.ctypeslib.as_array(row, (vocabulary,)).copy() for row in rows])
    library.llama_batch_free(batch)
    library.llama_free(context)
    library.llama_model_free(model)
    return found


# Engines that read Hugging Face's form ------------------------------------------------------------


def mlx_lm(folder: Path, tokens: np.ndarray) -> np.ndarray:
    """Run a folder in Hugging Face's form, as mlx-lm loads it."""
    import mlx.core as mx
    from mlx_lm.utils import load_model

    model, _ = load_model(folder)
    return np.array(model(mx.array(tokens)[None]).astype(mx.float32))[0]


def ctranslate2(folder: Path, tokens: np.ndarray) -> np.ndarray:
    """Run a folder in Hugging Face's form, converted by CTranslate2's own converter."""
    import torch
    from ctranslate2 import Generator
    from ctranslate2.converters.transformers import _MODEL_LOADERS
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        spec = _MODEL_LOADERS[type(model.config).__name__].get_model_spec(model)
    words = [str(i) for i in range(model.config.vocab_size)]
    spec.register_vocabulary(words)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = words[:3]
    spec.config.layer_norm_epsilon = model.config.rms_norm_eps
    spec.validate()
    with tempfile.TemporaryDirectory() as new:
        spec.save(new)
        engine = Generator(new, device="cpu", compute_type="float32", intra_threads=1)
        return np.array(engine.forward_batch([tokens.tolist()]))[0]


def litgpt(folder: Path, tokens: np.ndarray) -> np.ndarray:
    """Run a folder of Llama or GPT-NeoX, its names and rows changed by litgpt's own script."""
    import torch
    from litgpt.config import Config
    from litgpt.model import GPT
    from litgpt.scripts import convert_hf_checkpoint as script

    config = _config(folder)
    heads, rope = config["num_attention_heads"], config.get("rope_parameters") or config
    llama = config["model_type"] == "llama"
    more = (
        {"rotary_percentage": 1.0, "norm_class_name": "RMSNorm", "mlp_class_name": "LLaMAMLP",
         "bias": False, "parallel_residual": False, "norm_eps": config["rms_norm_eps"],
         "n_query_groups": config.get("num_key_value_heads", heads)}
        if llama else
        {"parallel_residual": config["use_parallel_residual"], "norm_eps": config["layer_norm_eps"],
         "rotary_percentage": rope.get("partial_rotary_factor", config.get("rotary_pct"))}
    )  # fmt: skip
    found = Config(
        name="any", block_size=config["max_position_embeddings"], vocab_size=config["vocab_size"],
        padded_vocab_size=config["vocab_size"], n_layer=config["num_hidden_layers"], n_head=heads,
        n_embd=config["hidden_size"], intermediate_size=config["intermediate_size"],
        rope_base=rope.get("rope_theta", config.get("rotary_emb_base")), **more,
    )  # fmt: skip
    model, state = GPT(found).eval(), dict[str, Any]()
    if llama:
        script.copy_weights_hf_llama(found, {}, state, _tensors(folder))
    else:
        script.copy_weights_gpt_neox(found, state, _tensors(folder))
    model.load_state_dict(state)
    with torch.no_grad():
        return model(torch.tensor(tokens)[None])[0].numpy()


# Engines that read Meta's form --------------------------------------------------------------------


def executorch(folder: Path, tokens: np.ndarray) -> np.ndarray:
    """Run Meta's names and rows in ExecuTorch's Llama, which descends from Meta's own."""
    import torch
    from executorch.examples.models.llama.llama_transformer import construct_transformer
    from executorch.examples.models.llama.model_args import ModelArgs

    config = _config(folder)
    rope = config.get("rope_parameters") or config
    model = construct_transformer(ModelArgs(
        dim=config["hidden_size"], hidden_dim=config["intermediate_size"],
        n_layers=config["num_hidden_layers"], n_heads=config["num_attention_heads"],
        n_kv_heads=config["num_key_value_heads"], vocab_size=config["vocab_size"],
        norm_eps=config["rms_norm_eps"], rope_theta=rope["rope_theta"], generate_full_logits=True,
        use_scaled_rope=rope.get("rope_type") == "llama3", max_context_len=len(tokens),
        rope_scale_factor=int(rope.get("factor", 8)), max_seq_len=len(tokens),
    )).eval()  # fmt: skip
    model.load_state_dict(_tensors(folder))
    with torch.no_grad():
        found = model(torch.tensor(tokens)[None])
    return (found[0] if isinstance(found, tuple) else found)[0].numpy()


# Engines that take a graph or a layout as a setting -----------------------------------------------


def onnxruntime(folder: Path, tokens: np.ndarray, *, interleaved: bool) -> np.ndarray:
    """Run a Llama as a graph of ONNX's standard operators, of RotaryEmbedding among them.

    Names are Hugging Face's or Meta's, rows in either layout.
    """
    import onnx
    import onnxruntime as ort
    from onnx import helper, numpy_helper

    config, meta, hf = _config(folder), stems("meta", "llama"), stems("hf", "llama")
    weights = {name_of(name, meta, hf) or name: x for name, x in _tensors(folder).items()}
    heads, keys = config["num_attention_heads"], config["num_key_value_heads"]
    size = config["hidden_size"] // heads
    rope = config.get("rope_parameters") or config
    angles = np.outer(np.arange(len(tokens)), rope["rope_theta"] ** (-np.arange(0, size, 2) / size))
    constants = {"cos": np.cos(angles), "sin": np.sin(angles)}
    constants |= {name: x.numpy() if x.ndim == 1 else x.numpy().T for name, x in weights.items()}
    constants["model.embed_tokens.weight"] = weights["model.embed_tokens.weight"].numpy()
    nodes: list[Any] = []

    def call(kind: str, *inputs: str, **options: Any) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [name := f"t{len(nodes)}"], **options))
        return name

    def norm(x: str, name: str) -> str:
        return call("RMSNormalization", x, f"{name}.weight", epsilon=config["rms_norm_eps"])

    x = call("Gather", "model.embed_tokens.weight", "tokens")
    for layer in (f"model.layers.{i}." for i in range(config["num_hidden_layers"])):
        y = norm(x, f"{layer}input_layernorm")
        q, k, v = (call("MatMul", y, f"{layer}self_attn.{one}_proj.weight") for one in "qkv")
        q, k = (
            call("RotaryEmbedding", one, "cos", "sin", "positions", num_heads=many,
                 interleaved=int(interleaved)) for one, many in ((q, heads), (k, keys))
        )  # fmt: skip
        y = call("Attention", q, k, v, is_causal=1, q_num_heads=heads, kv_num_heads=keys)
        x = call("Add", x, call("MatMul", y, f"{layer}self_attn.o_proj.weight"))
        y = norm(x, f"{layer}post_attention_layernorm")
        gate, up = (call("MatMul", y, f"{layer}mlp.{one}_proj.weight") for one in ("gate", "up"))
        y = call("Mul", call("Mul", gate, call("Sigmoid", gate)), up)
        x = call("Add", x, call("MatMul", y, f"{layer}mlp.down_proj.weight"))
    out = call("MatMul", norm(x, "model.norm"), "lm_head.weight")
    graph = helper.make_graph(
        nodes, "llama",
        [helper.make_tensor_value_info(name, onnx.TensorProto.INT64, (1, len(tokens)))
         for name in ("tokens", "positions")],
        [helper.make_tensor_value_info(out, onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ascontiguousarray(x, np.float32), name)
         for name, x in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    fed = {"tokens": tokens[None].astype(np.int64), "positions": np.arange(len(tokens))[None]}
    return session.run(None, fed)[0][0]


def megatron(folder: Path, tokens: np.ndarray, *, interleaved: bool) -> np.ndarray:
    """Run a Llama in Megatron-core, without Transformer Engine, on a CPU.

    The tensors of queries, keys and values are one, `linear_qkv`, in the order of its groups.
    """
    import torch
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer import TransformerConfig

    if not torch.distributed.is_initialized():
        os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
        torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        parallel_state.initialize_model_parallel()
    config, weights = _config(folder), _tensors(folder)
    rope = config.get("rope_parameters") or config
    model = GPTModel(
        TransformerConfig(
            num_layers=config["num_hidden_layers"], hidden_size=config["hidden_size"],
            num_attention_heads=config["num_attention_heads"], normalization="RMSNorm",
            num_query_groups=config["num_key_value_heads"], add_bias_linear=False,
            ffn_hidden_size=config["intermediate_size"], gated_linear_unit=True,
            activation_func=torch.nn.functional.silu, use_cpu_initialization=True,
            rotary_interleaved=interleaved, layernorm_epsilon=config["rms_norm_eps"],
            hidden_dropout=0.0, attention_dropout=0.0, apply_rope_fusion=False,
            bias_dropout_fusion=False, masked_softmax_fusion=False, bias_activation_fusion=False,
        ),
        get_gpt_layer_local_spec(normalization="RMSNorm"), config["vocab_size"],
        config["max_position_embeddings"], position_embedding_type="rope",
        rotary_base=int(rope["rope_theta"]), share_embeddings_and_output_weights=False,
        parallel_output=False,
    ).eval()  # fmt: skip
    state = {name: x for name, x in weights.items() if "_extra_state" not in name}
    model.load_state_dict(state, strict=False)
    n = len(tokens)
    mask = ~torch.ones(n, n, dtype=torch.bool).tril()[None, None]
    # it asks for the present GPU, whatever the processor is, and for that one's random numbers
    on_cpu = mock.patch.object(torch.cuda, "current_device", return_value="cpu")
    tracker = mock.Mock(fork=contextlib.nullcontext)
    undrawn = mock.patch.object(tensor_parallel, "get_cuda_rng_tracker", return_value=tracker)
    with torch.no_grad(), on_cpu, undrawn:
        return model(torch.tensor(tokens)[None], torch.arange(n)[None], mask)[0].numpy()


ENGINES: dict[str, Callable[..., np.ndarray]] = {
    "transformers": transformers, "llama.cpp": llama_cpp, "mlx-lm": mlx_lm, "litgpt": litgpt,
    "ctranslate2": ctranslate2,
    "executorch": executorch, "onnxruntime": onnxruntime, "megatron-core": megatron,
}  # fmt: skip
