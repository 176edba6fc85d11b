"""Files of every form that a checkpoint's reader takes, small ones, and forty that are broken.

Each broken one has a name, the name of its file, its bytes, and a word that an answer has to say.
"""

import json
import math
import random
import struct
from typing import Any, NamedTuple

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "rope_theta": 10000.0,
         "max_position_embeddings": 2048}  # fmt: skip


class Broken(NamedTuple):
    """A file that is not as it should be."""

    name: str
    file: str
    data: bytes
    word: str


def safetensors(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    """Return a safetensors file, its length and header as they are given."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _value(value: Any) -> bytes:
    """Return a value with its type before it, as GGUF has them."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    kinds = b"".join(_value(one)[4:] for one in value)
    return struct.pack("<I", 9) + _value(value[0])[:4] + struct.pack("<Q", len(value)) + kinds


def gguf(
    metadata: dict[str, Any],
    tensors: dict[str, list[float]] | None = None,
    *,
    version: int = 3,
) -> bytes:
    """Return a GGUF file with float32 tensors of one axis."""
    tensors = tensors or {}
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    out += b"".join(_text(key) + _value(value) for key, value in metadata.items())
    at, data = 0, b""
    for name, numbers in tensors.items():
        out += _text(name) + struct.pack("<IQIQ", 1, len(numbers), 0, at)
        data += struct.pack(f"<{len(numbers)}f", *numbers)
        data += bytes(-len(data) % 32)
        at = len(data)
    return out + bytes(-len(out) % 32) + data


GGUF_LLAMA = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.context_length": 2048,
    "llama.embedding_length": 64, "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2, "llama.rope.freq_base": 10000.0,
    "llama.rope.dimension_count": 16,
    "tokenizer.ggml.tokens": [f"<{i}>" for i in range(2000)],
    "tokenizer.ggml.scores": [0.5] * 2000,
}  # fmt: skip


def llama3_divisors(width: int, base: float, factor: float, original: int) -> list[float]:
    """Return the divisors of the frequencies as llama.cpp's converter keeps them."""
    found = []
    for i in range(0, width, 2):
        turns = original * base ** (-i / width) / (2 * math.pi)
        share = min(max((turns - 1.0) / 3.0, 0.0), 1.0)
        found.append(1.0 / ((1.0 - share) / factor + share))
    return found


def mutated(data: bytes, seed: int) -> bytes:
    """Return bytes with some changed, left out, put in or overwritten, as a seed draws."""
    draw, out = random.Random(seed), bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 5, 20))):
        at, how = draw.randrange(len(out) + 1), draw.randrange(5)
        if how == 0:
            out[at : at + 1] = draw.randbytes(1)
        elif how == 1:
            del out[at : at + draw.randrange(1, 9)]
        elif how == 2:
            out[at:at] = draw.randbytes(draw.randrange(9))
        elif how == 3:
            out[at : at + 8] = draw.choice((bytes(8), b"\xff" * 8, struct.pack("<Q", 2**40)))
        else:
            out[at : at + 1] = bytes([draw.choice(b'0123456789-.eE"[]{}:,')])
    return bytes(out)


def _one(**change: Any) -> bytes:
    entry = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]} | change
    return safetensors({"a": {k: v for k, v in entry.items() if v is not None}}, bytes(16))


def _config(**change: Any) -> bytes:
    return json.dumps(LLAMA | change).encode()


_GOOD = gguf(GGUF_LLAMA, {"rope_freqs.weight": [1.0] * 8})
_NO_ARCHITECTURE = {k: v for k, v in GGUF_LLAMA.items() if k != "general.architecture"}

BROKEN = [
    Broken(name, file, data, word)
    for file, rows in {
        "config.json": [
            ("nothing", b"", "JSON"),
            ("white space", b" \n", "JSON"),
            ("a web page", b"<!doctype html><title>404</title>", "JSON"),
            ("cut in two", _config()[:40], "JSON"),
            ("a comma too many", b'{"model_type": "llama",}', "JSON"),
            ("a list", b"[1, 2]", "list"),
            ("a text", b'"llama"', "str"),
            ("a number", b"7", "int"),
            ("null", b"null", "NoneType"),
            ("noise", bytes(range(128, 256)), "JSON"),
            ("UTF-16 cut in a letter", '{"model_type": "llama"}'.encode("utf-16")[:-1], "JSON"),
            ("a pointer of Git LFS", b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
            ("deep as a well", b"[" * 100_000, "JSON"),
            ("YAML", b"model_type: llama\nrope_theta: 10000\n", "JSON"),
        ],
        "model.safetensors": [
            ("six bytes", b"\x02\0\0\0\0\0", "safetensors"),
            ("a length alone", struct.pack("<Q", 2) + b"{", "header"),
            ("a header longer than the file", safetensors({}, length=10**6), "header"),
            ("a header of exabytes", safetensors({}, length=2**63), "header"),
            ("a header that is no JSON", safetensors(b"{nonsense}"), "header"),
            ("a header in two halves", safetensors(b'{"a": {"dtype": "F32"'), "header"),
            ("a tensor that is a number", safetensors({"a": 7}), "header"),
            ("no shape", _one(shape=None), "shape"),
            ("no offsets", _one(data_offsets=None), "data_offsets"),
            ("three offsets", _one(data_offsets=[0, 8, 16]), "header"),
            ("a shape in words", _one(shape=["two", 2]), "header"),
            ("a negative shape", _one(shape=[-2, -2]), "a"),
            ("offsets the wrong way", _one(data_offsets=[16, 0]), "a"),
            ("an offset before the data", _one(data_offsets=[-16, 0]), "a"),
            ("fewer bytes than numbers", _one(shape=[4, 4]), "16"),
            ("the end is missing", _one()[:-4], "ends"),
        ],
        "model.gguf": [
            ("four letters", b"GGUF", "GGUF"),
            ("version 1", gguf(GGUF_LLAMA, version=1), "version"),
            ("from a big-endian machine", gguf(GGUF_LLAMA, version=3 << 24), "version"),
            ("cut in the metadata", _GOOD[:100], "breaks off"),
            ("cut in the vocabulary", _GOOD[:20_000], "breaks off"),
            ("cut in the weights", _GOOD[:-32], "ends"),
            ("a text of exabytes", _GOOD[:24] + b"\xff" * 8 + _GOOD[32:], "breaks off"),
            ("more metadata than there is", _GOOD[:16] + b"\xff" * 8 + _GOOD[24:], "breaks off"),
            ("a type that is none", _GOOD.replace(struct.pack("<I", 8), struct.pack("<I", 99), 1),
             "breaks off"),
            ("no architecture", gguf(_NO_ARCHITECTURE), "architecture"),
        ],
    }.items()
    for name, data, word in rows
]  # fmt: skip
"""Forty files that no reader may take for a checkpoint."""
