"""Weights converted from one engine's form to another's, and run by the other engine itself.

``python -m engines.conversions`` draws tiny models of transformers, converts each with `ropescope`,
runs the result in the engine that it is for, and compares logits; then it makes slips on purpose,
and the same comparison must see them. It writes ``atlas/results/conversions.json``. ``--draw N``
asks N of the models again and prints what is found.
"""

import argparse
import importlib.metadata
import json
import logging
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from engines import models as engine
from ropescope import gguf_file
from ropescope.configuration import rope_of
from ropescope.convert import convert
from ropescope.names import ACTIVATIONS, ARCHITECTURES, name_of, stems

__all__ = ["RESULT", "TABLE", "asked", "main"]

_metadata_of = gguf_file.metadata_of
RESULT = Path(__file__).parents[1] / "atlas" / "results" / "conversions.json"
SHAPE = {"vocab_size": 96, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 4, "max_position_embeddings": 256, "pad_token_id": 0,
         "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
TOKENS = np.random.default_rng(3).integers(3, SHAPE["vocab_size"], 48)
TWO = {"num_key_value_heads": 2}
ROPE = {"rope_theta": 5e5, "original_max_position_embeddings": 64, "factor": 4.0}
MODELS: dict[str, dict[str, Any]] = {
    "llama, as many keys": {"num_key_value_heads": 4},
    "llama": TWO,
    "llama, biases": TWO | {"attention_bias": True, "mlp_bias": True},
    "llama, Llama 3's rescaling": TWO | {"rope_parameters": ROPE | {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}},
    "llama, linear": TWO | {"rope_parameters": ROPE | {"rope_type": "linear"}},
    "llama, YaRN": TWO | {"rope_parameters": ROPE | {"rope_type": "yarn"}},
    "llama, YaRN's factor 2": TWO | {
        "rope_parameters": ROPE | {"rope_type": "yarn", "attention_factor": 2.0}},
    "mistral": TWO | {"sliding_window": None},
    "qwen2": TWO,
    "qwen3": TWO | {"head_dim": 32},
    "qwen3, tied": TWO | {"head_dim": 16, "tie_word_embeddings": True},
    "gpt_neox": {"intermediate_size": 256, "rotary_pct": 0.25, "rotary_emb_base": 50000},
    "gpt_neox, serial": {"intermediate_size": 256, "rotary_pct": 0.5,
                         "use_parallel_residual": False},
    "falcon": {"new_decoder_architecture": True, "num_kv_heads": 2, "alibi": False,
               "ffn_hidden_size": 128},
    "phi": {"partial_rotary_factor": 0.5},
    "phi3": TWO | {"sliding_window": None},
    "phi3, LongRoPE": TWO | {"sliding_window": None, "max_position_embeddings": 1024,
        "original_max_position_embeddings": 256, "rope_parameters": {
            "rope_type": "longrope", "rope_theta": 1e4, "long_factor": [4.0] * 8,
            "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]}},
    "stablelm": TWO | {"partial_rotary_factor": 0.25, "use_qkv_bias": True},
    "starcoder2": TWO | {"sliding_window": None},
    "olmo2": TWO,
    "glm4": TWO | {"head_dim": 16, "attention_bias": True},
    "smollm3": TWO | {"num_hidden_layers": 4},
}  # fmt: skip
"""Fields of a configuration; the name begins with the `model_type`."""

LLAMAS = ("llama, as many keys", "llama", "llama, Llama 3's rescaling")
TABLE = {
    ("hf", "gguf", "llama.cpp"): tuple(MODELS),
    ("gguf", "hf", "transformers"): tuple(MODELS),
    ("hf", "mlx", "mlx-lm"): ("llama, Llama 3's rescaling", "llama, linear", "llama, YaRN", "phi",
        "gpt_neox", "stablelm", "glm4"),
    ("gguf", "mlx", "mlx-lm"): ("llama", "llama, biases", "llama, linear", "llama, YaRN",
        "llama, Llama 3's rescaling", "qwen2", "qwen3", "qwen3, tied", "gpt_neox",
        "gpt_neox, serial", "phi", "phi3", "stablelm", "starcoder2", "olmo2", "glm4", "smollm3"),
    ("gguf", "hf", "litgpt"): ("llama, as many keys", "llama", "gpt_neox", "gpt_neox, serial"),
    ("gguf", "hf", "ctranslate2"): ("llama, as many keys", "llama", "llama, biases",
        "llama, linear", "mistral", "qwen2", "qwen3"),
    ("hf", "meta", "executorch"): LLAMAS,
    ("hf", "meta", "onnxruntime"): LLAMAS[:2],
    ("meta", "mlx", "mlx-lm"): LLAMAS,
    ("Megatron's order", "meta", "megatron-core"): LLAMAS[:2],
}  # fmt: skip
"""From, to, and the engine that runs the result: which models go through it."""


def drawn(name: str, folder: Path) -> dict[str, Any]:
    """Write a model with weights of a seed, gains and biases too; return its configuration."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(name.split(",")[0], **SHAPE | MODELS[name])
    model, draw = AutoModelForCausalLM.from_config(config), torch.Generator().manual_seed(1)
    for one, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=draw)
        if weight.ndim == 1:
            weight.data = 1.0 + 0.2 * noise if one.endswith("weight") else 0.3 * noise
        else:  # scores must be far from even, or no slip of a rotation could be seen
            sharp = 2.0 if re.search("q_proj|k_proj|query_key|qkv", one) else 1.0
            weight.data = noise * sharp / weight.shape[-1] ** 0.5
    model.save_pretrained(folder)
    found: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return found


def residual(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return how far logits are apart, in standard deviations of the wanted ones."""
    return float(np.sqrt(np.mean((found - wanted) ** 2)) / wanted.std(axis=-1).mean())


# Slips --------------------------------------------------------------------------------------------


def rows(x: np.ndarray, heads: int, width: int, interleave: bool) -> np.ndarray:
    """Return rows of which each head's first ``width`` changed layout, by an index of its own."""
    order = np.array([i // 2 + width // 2 * (i % 2) for i in range(width)])
    order = order if interleave else np.argsort(order)
    split = x.reshape(heads, -1, *x.shape[1:])
    return np.concatenate((split[:, order], split[:, width:]), 1).reshape(x.shape)


def slips(config: dict[str, Any], moving: bool, interleave: bool) -> dict[str, Callable[..., Any]]:
    """Return slips by name: functions of queries or keys and their heads as they should be.

    Parameters
    ----------
    config
        The model's.
    moving, interleave
        Whether the right conversion moves rows, and whether the result is interleaved.
    """
    part = rope_of(config).to_dict()["parts"][0]
    size, width, queries = part["head_dim"], part["width"], config["num_attention_heads"]
    if not moving:
        return {"rows moved": lambda x, heads: rows(x, heads, width, not interleave)}

    def back(x: np.ndarray, heads: int) -> np.ndarray:
        return rows(x, heads, width, not interleave)

    def by_queries(x: np.ndarray, heads: int) -> np.ndarray:
        return rows(back(x, heads), queries, heads * size // queries, interleave)

    found: dict[str, Callable[..., Any]] = {
        "rows not moved": back,
        "rows moved in half their width":
            lambda x, heads: rows(back(x, heads), heads, size // 2, interleave),
    }  # fmt: skip
    grouped = config.get("num_key_value_heads", queries) != queries
    return found | ({"key rows moved by query heads": by_queries} if grouped else {})


def slipped(tensors: dict[str, np.ndarray], change: Callable[..., Any], size: int, queries: int,
            keys: int, grouped: bool) -> None:  # fmt: skip
    """Change the rows of queries and keys where they are."""
    heads = {"q": queries, "k": keys}
    for name, x in tensors.items():
        one = re.search(r"(?:^|\.)(?:([qk])_proj|w([qk])|attn_([qk]))\.(weight|bias)$", name)
        if one:
            x[...] = change(x, heads[next(filter(None, one.groups()))])
        elif re.search(r"(query_key_value|linear_qkv|qkv_proj|attn_qkv)\.(weight|bias)$", name):
            split = x.reshape(-1, size, *x.shape[1:])
            each = queries // keys + 2 if grouped else len(split)
            turning = [i for i in range(len(split)) if (i % each < queries // keys + 1 if grouped
                                                        else i < queries + keys)]  # fmt: skip
            some = split[turning].reshape(-1, *x.shape[1:])
            split[turning] = change(some, len(turning)).reshape(-1, size, *x.shape[1:])


def slips_of(
    path: Path, name: str, config: dict[str, Any], start: str, to: str, moving: bool, source: Path
) -> Iterator[tuple[str, Path]]:
    """Yield slips by name, each with a copy of what was written that has it."""
    import gguf
    from safetensors.numpy import load_file, save_file

    part = rope_of(config).to_dict()["parts"][0]
    keys = config.get("num_key_value_heads") or config.get("num_kv_heads")
    shape = (part["head_dim"], config["num_attention_heads"], keys or config["num_attention_heads"])
    native = str(part["layout"])
    interleave = native == "interleaved" or to == "meta" or (moving and to == "gguf")
    for slip, change in slips(config, moving, interleave).items():
        other = path.parent / f"slip{path.suffix}"
        shutil.rmtree(other) if other.is_dir() else other.unlink(missing_ok=True)
        if path.suffix == ".gguf":
            shutil.copy(path, other)
            found = {t.name: t.data for t in gguf.GGUFReader(other, "r+").tensors}
            slipped(found, change, *shape, grouped=False)
        else:
            shutil.copytree(path, other)
            found = load_file(other / "model.safetensors")
            slipped(found, change, *shape, grouped="qkv_proj" not in str(list(found)))
            save_file(found, other / "model.safetensors")
        yield slip, other
    if path.suffix == ".gguf":
        other = path.parent / "slip.gguf"
        width = f"{ARCHITECTURES[name.split(',')[0]]}.rope.dimension_count"
        if part["width"] < part["head_dim"]:  # where it must be the head, llama.cpp says so
            shutil.copy(path, other)
            gguf.GGUFReader(other, "r+").fields[width].parts[-1][0] *= 2
            yield "twice the width", other
        if "gpt_neox" in name or name == "falcon":
            shutil.copy(path, other)
            stored = load_file(source / "model.safetensors")
            for t in gguf.GGUFReader(other, "r+").tensors:
                if ".attn_qkv." in t.name:
                    new, old = stems("hf", name.split(",")[0]), stems("gguf", name.split(",")[0])
                    t.data[...] = stored[str(name_of(t.name, old, new))]
            yield "the order of fused heads kept", other
        if "factor" in name:
            other.unlink()
            no_check = mock.patch("ropescope.convert._Plan.turns")
            with no_check, mock.patch("ropescope.gguf_file.metadata_of", _as_llama_cpp_writes_it):
                convert(source, "gguf", other)
            yield "the factor in yarn_attn_factor", other
    elif part["width"] < part["head_dim"]:
        other = path.parent / "slip"
        shutil.rmtree(other)
        shutil.copytree(path, other)
        written = json.loads((path / "config.json").read_text())
        for field in ("partial_rotary_factor", "rotary_pct"):
            if field in written:
                written[field] *= 2.0
        (other / "config.json").write_text(json.dumps(written))
        yield "twice the width", other
    if to == "mlx" and start == "hf":
        other = path.parent / "slip"
        shutil.copy(source / "config.json", other / "config.json")
        yield "rope_parameters kept", other


def _as_llama_cpp_writes_it(*given: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a GGUF's metadata with YaRN's attention factor under the key of its converter."""
    keys, tensors = _metadata_of(*given)
    factor = given[1]["attention_factor"]
    rest = {key: value for key, value in keys.items() if not key.endswith("scaling.attn_factor")}
    return rest | {f"{given[2]}.rope.scaling.yarn_attn_factor": float(factor)}, tensors


# Conversions --------------------------------------------------------------------------------------


def in_megatrons_order(folder: Path, new: Path) -> Path:
    """Write a Llama under Megatron-core's names, queries, keys and values in one tensor."""
    from safetensors.numpy import load_file, save_file

    x = load_file(folder / "model.safetensors")
    top = {"embedding.word_embeddings": "model.embed_tokens", "output_layer": "lm_head",
           "decoder.final_layernorm": "model.norm"}  # fmt: skip
    layer = {"input_layernorm": "input_layernorm", "pre_mlp_layernorm": "post_attention_layernorm",
             "self_attention.linear_proj": "self_attn.o_proj",
             "mlp.linear_fc2": "mlp.down_proj"}  # fmt: skip
    config = json.loads((folder / "config.json").read_text())
    found = {f"{ours}.weight": x[f"{theirs}.weight"] for ours, theirs in top.items()}
    for i in range(config["num_hidden_layers"]):
        ours, theirs = f"decoder.layers.{i}.", f"model.layers.{i}."
        found |= {f"{ours}{a}.weight": x[f"{theirs}{b}.weight"] for a, b in layer.items()}
        apart = [x[f"{theirs}self_attn.{one}_proj.weight"] for one in "qkv"]
        apart = [w.reshape(config["num_key_value_heads"], -1, w.shape[1]) for w in apart]
        joined = np.concatenate(apart, 1).reshape(-1, config["hidden_size"])
        found[f"{ours}self_attention.linear_qkv.weight"] = joined
        gate = [x[f"{theirs}mlp.{one}_proj.weight"] for one in ("gate", "up")]
        found[f"{ours}mlp.linear_fc1.weight"] = np.concatenate(gate)
    new.mkdir()
    save_file(found, new / "model.safetensors")
    shutil.copy(folder / "config.json", new)
    return new


def converted(given: Path, start: str, to: str) -> tuple[Path, Path]:
    """Return what a conversion wrote, and what it was made from."""
    folder = given.parent
    if start == "Megatron's order":
        given = in_megatrons_order(given, folder / "megatron")
    elif start != "hf":  # first there, then on
        before = folder / ("before.gguf" if start == "gguf" else "before")
        convert(given, start, before)
        if start == "meta":
            shutil.copy(given / "config.json", before)
        given = before
    path = folder / ("out.gguf" if to == "gguf" else "out")
    convert(given, to, path)
    if to == "meta":
        shutil.copy(folder / "hf" / "config.json", path)
    return path, given


def asked(name: str, start: str, to: str, by: str, folder: Path) -> dict[str, Any]:
    """Convert a model, run it in an engine, and so with slips; return a row of the record."""
    config = drawn(name, folder / "hf")
    wanted = engine.transformers(folder / "hf", TOKENS)
    path, _ = converted(folder / "hf", start, to)
    interleaved = {"interleaved": True} if by in ("onnxruntime", "megatron-core") else {}
    vocabulary = {"vocabulary": SHAPE["vocab_size"]} if by == "llama.cpp" else {}

    def run(one: Path) -> float | str:
        try:
            found = engine.ENGINES[by](one, TOKENS, **interleaved, **vocabulary)
        except (RuntimeError, TypeError, ValueError):  # it says what is missing, or does not fit
            return "refused"
        return float(f"{residual(found, wanted):.3g}")

    moving = "meta" in (start, to) or ("gguf" in (start, to) and name.split(",")[0] in
                                       ("llama", "mistral", "smollm3"))  # fmt: skip
    row: dict[str, Any] = {"model": name, "from": start, "to": to, "engine": by}
    row["residual"] = run(path)
    if by == "llama.cpp" and name.split(",")[0] in ACTIVATIONS:
        found = engine.llama_cpp(path, TOKENS, **vocabulary)
        row["with its GELU"] = float(
            f"{residual(found, engine.transformers(folder / 'hf', TOKENS, table=True)):.3g}"
        )
    row["slips"] = {slip: run(one) for slip, one in
                    slips_of(path, name, config, start, to, moving, folder / "hf")}  # fmt: skip
    return row


def not_carried(folder: Path) -> dict[str, Any]:
    """Return how far CTranslate2 is from transformers with Llama 3's rule, and without it."""
    name, by = "llama, Llama 3's rescaling", "ctranslate2"
    config = drawn(name, folder)
    found = engine.ENGINES[by](folder, TOKENS)
    away = [residual(found, engine.transformers(folder, TOKENS))]
    plain = {"rope_type": "default", "rope_theta": config["rope_parameters"]["rope_theta"]}
    (folder / "config.json").write_text(json.dumps(config | {"rope_parameters": plain}))
    away.append(residual(found, engine.transformers(folder, TOKENS)))
    return {"model": name, "engine": by} | {
        key: float(f"{x:.3g}")
        for key, x in zip(("residual", "without the rule"), away, strict=True)
    }


def released(folder: Path) -> dict[str, Any] | None:
    """Return what engines make of a text with SmolLM2-135M, None where its package is missing."""
    import torch

    from experiments import tasks
    from experiments.real import model as real
    from experiments.real.texts import tokens

    file = real.path()
    if file is None:
        return None
    genesis = tasks.prose()[1]["train"][0].decode()  # from the package with the King James Bible
    text = tokens(file, genesis[20_000:22_000])[:256].numpy()
    convert(file, "hf", folder / "hf")
    convert(folder / "hf", "gguf", folder / "again.gguf")
    vocabulary = json.loads((folder / "hf" / "config.json").read_text())["vocab_size"]
    found = {
        "transformers": engine.transformers(folder / "hf", text),
        "mlx-lm": engine.mlx_lm(folder / "hf", text),
        "llama.cpp": engine.llama_cpp(folder / "again.gguf", text, vocabulary),
        "llama.cpp, blocks as released": engine.llama_cpp(file, text, vocabulary),
    }
    ours = found["transformers"]
    return {"file": real.FILE, "tokens": len(text), "engines": {
        name: {"loss": float(torch.nn.functional.cross_entropy(
                   torch.tensor(x[:-1]), torch.tensor(text[1:]))),
               "residual": residual(x, ours),
               "same next token": int((x.argmax(-1) == ours.argmax(-1)).sum()),
               "last next token": int(x[-1].argmax())}
        for name, x in found.items()}}  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Ask all, or some of them again."""
    parser = argparse.ArgumentParser("engines.conversions", description=__doc__)
    parser.add_argument("--draw", type=int, default=0, help="ask so many again, and print them")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    every = [(name, *key) for key, names in TABLE.items() for name in names]
    if options.draw:
        choice = np.random.default_rng(options.seed).permutation(len(every))[: options.draw]
        every = [every[i] for i in choice]
    begin, found = time.perf_counter(), []
    for one in every:
        with tempfile.TemporaryDirectory() as folder:
            found.append(asked(*one, Path(folder)))
    if options.draw:
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as folder:
        real = released(Path(folder)) or json.loads(RESULT.read_text())["released"]
        lost = not_carried(Path(folder) / "hf again")
    packages = ("transformers", "mlx-lm", "litgpt", "ctranslate2", "executorch", "onnxruntime",
                "megatron-core")  # fmt: skip
    versions = {name: importlib.metadata.version(name) for name in packages}
    build = json.loads((engine.LIBRARY / "_nlcBuildMetadata.json").read_text())["buildOptions"]
    versions["llama.cpp"] = build["llamaCpp"]["release"].removeprefix("v")
    record = {"versions": versions, "seconds": round(time.perf_counter() - begin), "rows": found,
              "a rule not carried": lost, "released": real}  # fmt: skip
    RESULT.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
