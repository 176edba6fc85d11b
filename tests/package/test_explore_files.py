"""What the page reads of a file that is dropped (checkpoint_file.js), against ropescope.files."""

import json
import struct
from pathlib import Path

import pytest

from ropescope.files import read
from tests.tools import broken_files
from tests.tools.broken_files import BROKEN, GGUF_LLAMA, LLAMA, gguf, llama3_divisors

TWIN = (Path(__file__).parents[1] / "tools" / "dropped.mjs").as_uri()
QWEN = {key.replace("llama.", "qwen2."): value for key, value in GGUF_LLAMA.items()}
QWEN["general.architecture"] = "qwen2"
LONG = {f"rope_factors_{which}.weight": [1.0, 2.0] for which in ("long", "short")}
YARN = {
    "qwen2.rope.scaling.type": "yarn",
    "qwen2.rope.scaling.factor": 4.0,
    "qwen2.rope.scaling.original_context_length": 512,
}
FILES = {
    "plain": gguf(GGUF_LLAMA),
    "half-split": gguf(QWEN),
    "YaRN": gguf(QWEN | YARN),
    "YaRN's factor": gguf(QWEN | YARN | {"qwen2.rope.scaling.attn_factor": 1.25}),
    "NeoX": gguf(
        {
            k.replace("llama", "gptneox"): v.replace("llama", "gptneox") if v == "llama" else v
            for k, v in GGUF_LLAMA.items()
        }
    ),
    "Llama 3": gguf(GGUF_LLAMA, {"rope_freqs.weight": llama3_divisors(16, 1e4, 8.0, 256)}),
    "no rescaling": gguf(GGUF_LLAMA, {"rope_freqs.weight": [1.0] * 8}),
    "unknown divisors": gguf(GGUF_LLAMA, {"rope_freqs.weight": [1.0, 1.5, 1.0, 7.0] * 2}),
    "LongRoPE": gguf(GGUF_LLAMA, LONG),
    "partial": gguf(GGUF_LLAMA | {"llama.rope.dimension_count": 8}),
    "no base": gguf({k: v for k, v in GGUF_LLAMA.items() if "freq_base" not in k}),
    "unknown architecture": gguf(GGUF_LLAMA | {"general.architecture": "marvin"}),
    "version 2": gguf(GGUF_LLAMA, version=2),
    "a long vocabulary": gguf(GGUF_LLAMA | {"x": ["word" * 9] * 60_000}),
}


def dropped(node, name: str, data: bytes) -> dict:
    """What the page makes of a file."""
    return node.ask(TWIN, "dropped", name, data.hex())


@pytest.mark.parametrize("name", FILES)
def test_a_gguf_is_read_as_the_command_reads_it(node, tmp_path, name):
    path = tmp_path / "model.gguf"
    path.write_bytes(FILES[name] + bytes(10_000_000))  # weights
    ours, twin = read(path), dropped(node, "model.gguf", path.read_bytes())
    assert json.loads(twin["text"]) == ours.config
    assert twin["rows"] == (ours.layout or "")
    assert twin["notes"] == list(ours.notes)
    assert twin["read"] < 0.4 * path.stat().st_size, "weights stay where they are"


def test_a_configuration_and_that_of_meta_are_read(node, tmp_path):
    params = {"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "rope_theta": 500000.0}
    for given in (LLAMA, params, params | {"use_scaled_rope": True}):
        path = tmp_path / "params.json"
        path.write_text(json.dumps(given))
        ours, twin = read(path), dropped(node, "params.json", path.read_bytes())
        assert twin["config"] == ours.config
        assert twin["of"]["rows"] == (ours.layout or "interleaved" * ("dim" in given))
        assert twin["of"]["notes"] == list(ours.notes)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.name)
def test_a_broken_file_is_refused_in_a_sentence(node, broken):
    twin = dropped(node, broken.file, broken.data)
    said = twin["refused"]
    assert said.startswith(f"{broken.file}: ")
    assert said.endswith((".", "?"))
    kinds = {"str": "str", "int": "int"}
    assert kinds.get(broken.word, broken.word) in said


def test_weights_alone_ask_for_their_configuration(node):
    entry = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
    data = broken_files.safetensors({"a": entry}, bytes(16))
    assert "config.json" in dropped(node, "model.safetensors", data)["refused"]
    index = json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}).encode()
    said = dropped(node, "model.safetensors.index.json", index)["refused"]
    assert "2 files of weights" in said
    assert "PyTorch" in dropped(node, "model.pth", b"PK\x03\x04" + bytes(99))["refused"]
    assert "config.json" in dropped(node, "x.bin", struct.pack("<Q", 7) * 9)["refused"]


@pytest.mark.parametrize("seed", range(20))
def test_changed_files_are_read_or_refused_as_the_command_does(node, tmp_path, seed):
    for number in range(20 * seed, 20 * seed + 20):
        name = list(FILES)[number % 11]
        path = tmp_path / "model.gguf"
        path.write_bytes(broken_files.mutated(FILES[name], number))
        twin = dropped(node, path.name, path.read_bytes())
        try:
            ours = json.loads(json.dumps(read(path).config))
        except ValueError:
            assert "refused" in twin, number
        else:
            assert json.loads(twin["text"]) == ours, number
