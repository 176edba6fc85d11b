"""What the page reads of a file that is dropped (checkpoint_file.js), against ropescope.files."""

import json
import struct
from pathlib import Path

import pytest

from ropescope.card import specification
from ropescope.configuration import load_rules
from ropescope.files import read
from ropescope.translation import Translation
from tests.tools import broken_files
from tests.tools.broken_files import BROKEN, GGUF_LLAMA, LLAMA, gguf, llama3_divisors
from tests.tools.public_files import GGUFS, PARAMS_JSON

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
    "a tower": gguf({"general.architecture": "clip", "clip.vision.block_count": 24}),
    "version 2": gguf(GGUF_LLAMA, version=2),
    "gpt-oss": gguf(
        {k.replace("llama", "gpt-oss"): v for k, v in GGUF_LLAMA.items()}
        | {k.replace("qwen2", "gpt-oss"): v for k, v in YARN.items()}
        | {"general.architecture": "gpt-oss"}
    ),
    "a long vocabulary": gguf(GGUF_LLAMA | {"x": ["word" * 9] * 60_000}),
}


def dropped(node, name: str, data: bytes) -> dict:
    """What the page makes of a file."""
    return node.ask(TWIN, "dropped", name, data.hex())


def same(ours, twin: dict, rows: str) -> None:
    """Assert that the page and the command put a file into the same words."""
    told = ours.told or Translation(ours.config, {}, ())
    assert twin["config"] == ours.config
    assert twin["of"]["rows"] == rows
    assert twin["of"]["notes"] == [note.message for note in told.notes]
    assert twin["of"]["said"] == told.said


@pytest.mark.parametrize("name", [*FILES, *GGUFS])
def test_a_gguf_is_read_as_the_command_reads_it(node, tmp_path, name):
    path = tmp_path / "model.gguf"
    data = FILES[name] if name in FILES else gguf(*GGUFS[name])
    path.write_bytes(data + bytes(10_000_000))  # weights
    ours, twin = read(path), dropped(node, "model.gguf", path.read_bytes())
    same(ours, twin, ours.layout or "")
    assert twin["read"] < 0.4 * path.stat().st_size, "weights stay where they are"


def test_a_configuration_and_that_of_meta_are_read(node, tmp_path):
    params = {"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "rope_theta": 500000.0}
    for given in (LLAMA, params, params | {"use_scaled_rope": True}, *PARAMS_JSON.values()):
        path = tmp_path / "params.json"
        path.write_text(json.dumps(given))
        ours, twin = read(path), dropped(node, "params.json", path.read_bytes())
        same(ours, twin, ours.layout or "interleaved" * ("dim" in given))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_configuration_may_be_written_in_another_encoding(node, tmp_path, encoding):
    """UTF-16 with its mark is what a redirection of PowerShell writes."""
    path = tmp_path / "config.json"
    path.write_bytes(json.dumps(LLAMA).encode(encoding))
    same(read(path), dropped(node, "config.json", path.read_bytes()), "")


OTHERS = {
    "adapter_config.json": (
        {"peft_type": "LORA", "r": 16, "base_model_name_or_path": "Qwen/Qwen3-8B"},
        "a LoRA adapter: what its base_model_name_or_path names, 'Qwen/Qwen3-8B', rotates",
    ),
    "tokenizer_config.json": (
        {"tokenizer_class": "T"},
        "a tokenizer's file",
    ),
    "preprocessor_config.json": ({"image_processor_type": "I"}, "a preprocessor's file"),
    "generation_config.json": ({"do_sample": True, "eos_token_id": 2}, "a file for generation"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_beside_a_configuration_is_told_by_its_own_keys(node, tmp_path, name):
    found, words = OTHERS[name]
    (tmp_path / name).write_text(json.dumps(found))
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(ValueError, match=f"{name}: by its .* this is {words}") as told:
            read(path)
    twin = dropped(node, name, json.dumps(found).encode())["refused"]
    assert str(told.value).endswith(twin.removesuffix("."))


def test_a_name_that_stands_twice_is_told(node, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"rope_theta": 1e4, "b": [{"c": 1, "c": 2}], "a": 1, "rope_theta": 1e6}')
    ours, twin = read(path), dropped(node, "config.json", path.read_bytes())
    same(ours, twin, "")
    assert twin["of"]["notes"] == [
        "Twice in one object of this file: c, rope_theta; the last counts."
    ]
    assert ours.config["rope_theta"] == 1e6
    path.write_text('{"dim": 64, "n_layers": 2, "n_heads": 4, "n_heads": 8}')
    assert [note.code for note in read(path).told.notes] == ["twice"]
    path.write_text('{"a": {"c": 1}, "b": {"c": 1}}')
    assert read(path).told is None


def test_a_gguf_of_a_family_that_does_not_rotate_says_nothing_of_a_base(node, tmp_path):
    path = tmp_path / "model.gguf"
    bare = {k.replace("llama", "gpt2"): v for k, v in GGUF_LLAMA.items() if "rope" not in k}
    path.write_bytes(gguf(bare | {"general.architecture": "gpt2"}))
    ours = read(path)
    assert ours.told.notes == ()
    assert "rope_theta" not in ours.config
    assert specification(path)["warnings"] == []
    types = {"gpt2": load_rules()["types"]["gpt2"]}
    same(ours, node.ask(TWIN, "dropped", "model.gguf", path.read_bytes().hex(), types), "")


def test_a_folder_of_an_adapter_is_told_and_a_tokenizer_beside_weights_is_not(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(weights(*HF))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "T"}')
    assert read(tmp_path).config is None
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(ValueError, match="LoRA adapter"):
        read(tmp_path)


def test_a_configuration_beside_missing_shards_is_named(tmp_path):
    for name, data in TWO.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=r"is not there; config\.json alone says"):
        read(tmp_path)
    assert read(tmp_path / "config.json").config == LLAMA


HF = "model.layers.0.self_attn.q_proj.weight", "model.layers.1.self_attn.q_proj.weight"
META = ("layers.0.attention.wq.weight",)
SHARDS = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
INDEX = "model.safetensors.index.json"
PARAMS = {"dim": 64, "n_layers": 2, "n_heads": 4, "rope_theta": 5e5}
WEIGHTS = 200_000


def weights(*names: str) -> bytes:
    """Return a safetensors file with a tensor of each name."""
    ends = [(i * WEIGHTS, (i + 1) * WEIGHTS) for i in range(len(names))]
    entries = {name: {"dtype": "F32", "shape": [WEIGHTS // 4], "data_offsets": list(at)}
               for name, at in zip(names, ends, strict=True)}  # fmt: skip
    return broken_files.safetensors(entries, bytes(WEIGHTS * len(names)))


def index(**files: str) -> bytes:
    return json.dumps({"weight_map": files}).encode()


CONFIG = json.dumps(LLAMA).encode()
TWO = {"config.json": CONFIG, INDEX: index(**dict(zip(HF, SHARDS, strict=True)))}
SHARDED = {**TWO, SHARDS[0]: weights(HF[0]), SHARDS[1]: weights(HF[1])}
FOLDERS = {
    "shards with an index": (SHARDED, "2 tensors in 2 files, in Hugging Face's names"),
    "one file": (
        {"config.json": CONFIG, "model.safetensors": weights(*HF)},
        "2 tensors in 1 file, in Hugging Face's names",
    ),
    "Meta's names": (
        {"params.json": json.dumps(PARAMS).encode(), "consolidated.00.safetensors": weights(*META)},
        "1 tensor in 1 file, in Meta's names",
    ),
    "Meta's copy beside shards": (
        {**SHARDED, "consolidated.safetensors": weights(*META)},
        "2 tensors in 2 files, in Hugging Face's names",
    ),
}


def as_folder(node, files: dict[str, bytes], **more: bytes) -> dict:
    """What the page makes of a folder that is dropped."""
    named = [[f"model/{name}", data.hex()] for name, data in {**files, **more}.items()]
    return node.ask(TWIN, "folder", named, True)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_read_as_the_command_reads_it(node, tmp_path, name):
    files, said = FOLDERS[name]
    for file, data in files.items():
        (tmp_path / file).write_bytes(data)
    ours, twin = read(tmp_path), as_folder(node, files)
    assert twin["config"] == ours.config
    assert twin["name"] == "model"
    assert twin["weights"] == said
    assert int(said.split()[0]) == len(ours.tensors)
    assert twin["rows"] == (ours.layout or "")
    assert twin["notes"] == []
    assert twin["read"] < 0.05 * sum(map(len, files.values())), "weights stay where they are"


def test_what_is_wrong_with_the_weights_is_told_and_the_card_stays(node):
    lacks = {name: data for name, data in SHARDED.items() if name != SHARDS[1]}
    for files, said in (
        (lacks, f"{SHARDS[1]}, which the index names, is not beside it."),
        (SHARDED | {SHARDS[1]: weights(META[0])}, f"{HF[1]} is not in {SHARDS[1]}"),
        (SHARDED | {SHARDS[1]: weights(HF[1])[:-9]}, f"{SHARDS[1]}: the file ends before"),
        (SHARDED | {INDEX: b"[]"}, f"{INDEX}: expected a weight_map"),
        (SHARDED | {SHARDS[0]: b"x"}, f"{SHARDS[0]}: expected safetensors with a header"),
    ):
        twin = as_folder(node, files)
        assert twin["config"] == LLAMA
        assert [note for note in twin["notes"] if note.startswith(said)], twin["notes"]


def test_of_folders_in_a_folder_the_nearest_configuration_is_taken(node):
    other = json.dumps({"model_type": "qwen2"}).encode()
    inside = {"snapshots/abc/config.json": CONFIG, "snapshots/abc/original/config.json": other}
    twin = as_folder(node, inside, **{".git/config.json": other})
    assert (twin["name"], twin["config"], twin["notes"]) == ("abc", LLAMA, [])
    twin = as_folder(node, {"a/config.json": CONFIG, "b/config.json": other})
    assert (twin["name"], twin["config"]) == ("a", LLAMA)
    assert twin["notes"] == ["Of 2 configurations model/a/config.json was taken."]
    assert (
        "config.json beside it" in as_folder(node, {"model.safetensors": weights(*HF)})["refused"]
    )


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
            assert twin["config"] == ours, number
