"""A GGUF's header: its metadata, and where its tensors lie; and how one is written.

Written by the package gguf, and read by hand, because gguf 0.19's reader makes Python objects of
the whole vocabulary: 2.5 s for 49,152 tokens, where skipping them takes 0.05 s.
"""

import math
import mmap
import struct
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np

from .safetensors_file import SIZES, Stored, broken

__all__ = [
    "BLOCKS",
    "LAYOUTS",
    "begin",
    "header",
    "metadata_of",
    "package",
    "shapes_of",
]

LAYOUTS = {
    name: layout
    for layout, names in {
        "interleaved": "arcee chameleon chatglm cohere2 command-r deepseek2 ernie4_5 ernie4_5-moe "
        "glm-dsa glm4 granite granitehybrid granitemoe llama llama4 mistral3 mistral4 olmo smollm3",
        "half-split": "afmoe apertus bitnet dbrx dots1 eurobert exaone-moe exaone4 falcon "
        "falcon-h1 gemma gemma-embedding gemma2 gemma3 gemma3n gemma4 glm4moe gpt-oss gptneox "
        "hunyuan-dense hunyuan-moe hunyuan_vl jais2 jina-bert-v3 lfm2 lfm2moe mimo2 minicpm3 "
        "minimax-m2 modern-bert nemotron nomic-bert olmo2 olmoe phi2 phi3 phimoe qwen2 qwen2moe "
        "qwen2vl qwen3 qwen35 qwen35moe qwen3moe qwen3next qwen3vl qwen3vlmoe seed_oss stablelm "
        "starcoder2",
    }.items()
    for name in names.split()
}
"""The layout in which llama.cpp rotates an architecture, and so that of its rows in the file.

Read in `llama_model_rope_type` (NORM is interleaved) at llama.cpp's commit 0034230, and in a copy
of 2026 for names that came later.
"""

FIELDS = {
    "num_hidden_layers": ("block_count", int), "max_position_embeddings": ("context_length", int),
    "hidden_size": ("embedding_length", int), "intermediate_size": ("feed_forward_length", int),
    "num_attention_heads": ("attention.head_count", int),
    "num_key_value_heads": ("attention.head_count_kv", int), "vocab_size": ("vocab_size", int),
    "rms_norm_eps": ("attention.layer_norm_rms_epsilon", float),
    "layer_norm_eps": ("attention.layer_norm_epsilon", float),
    "use_parallel_residual": ("use_parallel_residual", bool),
}  # fmt: skip
"""Fields of a `config.json`, and the same number's key in a GGUF, after the architecture."""
NEEDED = (*list(FIELDS)[:5], "vocab_size")

SPELLED: dict[str, dict[str, str]] = {
    "falcon": {"head_dim": "", "num_key_value_heads": "num_kv_heads",
               "layer_norm_eps": "layer_norm_epsilon", "intermediate_size": "ffn_hidden_size"},
    "gpt_neox": {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"},
    "modernbert": {"sliding_window_pattern": "global_attn_every_n_layers"},
    "starcoder2": {"layer_norm_eps": "norm_epsilon"},
}  # fmt: skip
"""What a family's `config.json` calls these fields, or nothing if its class refuses one."""

PLAIN = {0: "F32", 1: "F16", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 30: "BF16"}
BLOCKS = {2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
          11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18),
          23: (256, 136), 39: (32, 17)}  # fmt: skip
"""Numbers, and bytes, in a block of ggml's formats, from Q4_0 to MXFP4."""

NUMBERS = dict(zip((*range(8), 10, 11, 12), "BbHhIif?Qqd", strict=True))
TEXT, ARRAY, LONG = 8, 9, 1024


class _Cursor:
    """Reads values one after another."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 0

    def numbers(self, code: str, count: int = 1) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{count}{code}", self.data, self.at)
        self.at += struct.calcsize(f"<{count}{code}")
        return found

    def text(self) -> str:
        return self.data[self.skip(*self.numbers("Q")) : self.at].decode("utf8", "replace")

    def skip(self, count: int) -> int:
        """Go on; return the place before."""
        if count > len(self.data) - self.at:
            raise struct.error(f"{count:,} bytes are to follow")
        self.at += count
        return self.at - count

    def value(self, kind: int) -> Any:
        """Return a value; None for an array longer than LONG, as no configuration has."""
        if kind == TEXT:
            return self.text()
        if kind != ARRAY:
            return self.numbers(NUMBERS[kind])[0]
        (inner,), (count,) = self.numbers("I"), self.numbers("Q")
        if count <= LONG:
            return [self.value(inner) for _ in range(count)]
        if inner in NUMBERS:
            self.skip(count * struct.calcsize(f"<{NUMBERS[inner]}"))
        else:
            for _ in range(count):
                self.skip(*self.numbers("Q")) if inner == TEXT else self.value(inner)
        return None


def header(path: Path) -> tuple[dict[str, Any], dict[str, Stored]]:
    """Return the metadata of a GGUF file of version 2 or 3, and its tensors by name.

    Arrays of more than 1,024 values, as of a vocabulary, are None.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        cursor = _Cursor(data)
        try:
            _, version = cursor.numbers("I", 2)
            if version not in (2, 3):
                raise broken(path, f"expected little-endian GGUF of version 2 or 3, got {version}")
            count, keys = cursor.numbers("Q", 2)
            metadata = {cursor.text(): cursor.value(*cursor.numbers("I")) for _ in range(keys)}
            rows = [(cursor.text(), cursor.numbers("Q", *cursor.numbers("I"))[::-1],
                     *cursor.numbers("I"), *cursor.numbers("Q")) for _ in range(count)]  # fmt: skip
        except (struct.error, KeyError, RecursionError, MemoryError, OverflowError) as error:
            raise broken(path, f"the GGUF breaks off at byte {cursor.at:,}: {error}") from error
        align, size = metadata.get("general.alignment", 32), len(data)
    if not isinstance(align, int) or align < 1:
        raise broken(path, f"general.alignment must be a positive integer, got {align!r}")
    begin, tensors = -(-cursor.at // align) * align, {}
    for name, shape, kind, offset in rows:
        plain = PLAIN.get(kind, kind)
        numbers, nbytes = BLOCKS.get(kind, (1, SIZES.get(str(plain), 0)))
        nbytes *= math.prod(shape) // numbers
        if begin + offset + nbytes > size:
            raise broken(path, f"the file ends before {name} does")
        tensors[name] = Stored(name, shape, plain, path, begin + offset, nbytes)
    if not isinstance(metadata.get("general.architecture"), str):
        raise broken(path, "expected a text in general.architecture")
    return metadata, tensors


def shapes_of(metadata: dict[str, Any], family: str) -> dict[str, Any]:
    """Return those fields of a ``config.json`` that do not concern rotation."""
    name, spelled = metadata["general.architecture"], SPELLED.get(family, {})
    found = {spelled.get(f, f): metadata.get(f"{name}.{key}") for f, (key, _) in FIELDS.items()}
    known = {field: value for field, value in found.items() if value is not None}
    ids = {"bos": "bos", "eos": "eos", "pad": "padding"}
    return known | {
        f"{ours}_token_id": metadata.get(f"tokenizer.ggml.{key}_token_id")
        for ours, key in ids.items()
    }


def package() -> ModuleType:
    """Return the package gguf."""
    try:
        import gguf
    except ImportError as error:
        words = "GGUFs are written, and their block formats read, by gguf: ropescope[gguf]"
        raise ImportError(words) from error
    return gguf


def metadata_of(
    config: dict[str, Any], part: dict[str, Any], name: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the keys of a GGUF, and small tensors that it has beside the weights.

    Parameters
    ----------
    config, part
        A ``config.json``, and the part of its specification that rotates.
    name
        GGUF's name for the family.

    Raises
    ------
    ValueError
        Where a number is missing, or llama.cpp has no such rescaling.
    """
    spelled, found = SPELLED.get(config["model_type"], {}), dict[str, Any]()
    tensors = dict[str, np.ndarray]()
    for field, (key, kind) in FIELDS.items():
        value = config.get(spelled.get(field, field))
        if value is not None:
            found[key] = kind(value)
        elif field in NEEDED:
            raise ValueError(f"{spelled.get(field, field)} is missing, which a GGUF must say")
    if not any("epsilon" in key for key in found):
        raise ValueError("the epsilon of the norms is missing, which a GGUF must say")
    found |= {
        "attention.key_length": part["head_dim"],
        "attention.value_length": part["head_dim"],
        "rope.dimension_count": part["width"],
        "rope.freq_base": float(part["base"]),
    }
    rule, numbers = part["rescaling"] or ("default", dict[str, Any]())
    scaling, usual = dict[str, Any](), 1.0
    if rule in ("linear", "yarn"):
        scaling = {"type": rule, "factor": float(numbers["factor"])}
        scaling |= {f"yarn_{beta}": float(numbers[beta])
                    for beta in ("beta_fast", "beta_slow") if beta in numbers}  # fmt: skip
    elif rule == "llama3":
        waves = part["base"] ** (-np.arange(0, part["width"], 2) / part["width"])
        tensors["rope_freqs.weight"] = (waves / part["inv_freq"]).astype("<f4")
    elif rule == "longrope":
        scaling["type"] = rule
        for length in ("long", "short"):
            tensors[f"rope_factors_{length}.weight"] = np.array(numbers[f"{length}_factor"], "<f4")
    elif rule not in ("default", "dynamic"):
        raise ValueError(f"llama.cpp has no rescaling of the kind {rule!r}")
    if rule in ("yarn", "longrope"):
        scaling["original_context_length"] = part["trained_length"]
    if rule == "yarn":  # llama.cpp multiplies by this, and leaves yarn_attn_factor unread
        usual += 0.1 * math.log(scaling["factor"])
    if abs(part["attention_factor"] / usual - 1.0) > 1e-6:
        scaling["attn_factor"] = part["attention_factor"] / usual
    found |= {f"rope.scaling.{key}": value for key, value in scaling.items()}
    if name == "falcon":
        found["tensor_data_layout"] = "jploski"  # queries, keys, values
    return {f"{name}.{key}": value for key, value in found.items()}, tensors


def begin(
    path: Path,
    metadata: dict[str, Any],
    tensors: Iterable[tuple[str, tuple[int, ...], str, int]],
    tokenizer: Path | None,
) -> tuple[Any, IO[bytes]]:
    """Write a GGUF up to where its first tensor begins.

    Parameters
    ----------
    path
        A new file.
    metadata
        Its keys, with ``general.architecture``.
    tensors
        Names, shapes, types and sizes in bytes.
    tokenizer
        A GGUF whose ``tokenizer`` keys are taken over, or None.

    Returns
    -------
    writer, file
        The package's ``GGUFWriter``, whose ``write_padding(file, size)`` follows each tensor; and
        what it writes to.
    """
    gguf = package()
    writer = gguf.GGUFWriter(path, metadata["general.architecture"])
    add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32,
           str: writer.add_string}  # fmt: skip
    for key, value in metadata.items():
        if key != "general.architecture":  # the writer says it by itself
            add[type(value)](key, value)
    for field in gguf.GGUFReader(tokenizer).fields.values() if tokenizer else ():
        if field.name.startswith("tokenizer."):
            kind, *inner = field.types
            writer.add_key_value(
                field.name, field.contents(), kind, sub_type=next(iter(inner), None)
            )
    for name, shape, kind, nbytes in tensors:
        code = gguf.GGMLQuantizationType[kind]
        writer.add_tensor_info(name, shape, np.dtype(np.float32), nbytes, raw_dtype=code)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    (file,) = writer.fout
    writer.write_padding(file, file.tell())
    return writer, file
