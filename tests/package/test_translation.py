"""A ``params.json`` and a GGUF of public models: the card says of them what it says of their
``config.json``, which is public, too, and what it does not read is named."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from ropescope.card import _rows, specification
from ropescope.convert import convert
from ropescope.files import read
from tests.tools.broken_files import GGUF_LLAMA, gguf
from tests.tools.public_files import GGUFS, PARAMS_JSON

Json = dict[str, Any]


def written(folder: Path, name: str, **more: Any) -> Path:
    """Write a public file, changed so."""
    if name in PARAMS_JSON:
        path = folder / "params.json"
        path.write_text(json.dumps(PARAMS_JSON[name] | more))
    else:
        metadata, tensors = GGUFS[name]
        path = folder / "model.gguf"
        path.write_bytes(gguf(metadata | more, tensors))
    return path


def warned(found: Json) -> list[str]:
    return [one["message"] for one in found["warnings"] if one["severity"]]


PUBLIC = {
    "Devstral Small 2": "mistralai/Devstral-Small-2-24B-Instruct-2512",
    "Devstral Small 2 24B": "mistralai/Devstral-Small-2-24B-Instruct-2512",
    "Mistral 7B v0.1": "mistralai/Mistral-7B-v0.1",
    "Llama 4 Scout": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "Gemma 4 E2B": "google/gemma-4-E2B",
}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_file_rotates_as_the_public_configuration_of_its_model(tmp_path, name: str) -> None:
    ours = specification(written(tmp_path, name))
    theirs = specification(PUBLIC[name])
    known = {(one["part"], one["kind"]): one for one in theirs["parts"]}
    assert [one for one in ours["parts"] if one["part"] == "text"]
    for part in ours["parts"]:
        other = known[part["part"], part["kind"]]
        same = ["head_dim", "width", "place", "base", "attention_factor", "layers", "without"]
        assert [part[key] for key in same] == [other[key] for key in same]
        np.testing.assert_allclose(part["inv_freq"], other["inv_freq"], rtol=1e-12)
        if part["rescaling"]:
            assert part["trained_length"] == other["trained_length"]


def test_mistral_large_3_rotates_as_its_class_does(tmp_path) -> None:
    torch = pytest.importorskip("torch")
    code = pytest.importorskip("transformers.models.mistral4.modeling_mistral4")
    path = written(tmp_path, "Mistral Large 3, with its tower")
    text, tower = specification(path)["parts"]
    config = read(path).config["text_config"]
    table = code.Mistral4RotaryEmbedding(code.Mistral4Config.from_dict(config))
    assert (text["head_dim"], text["width"], text["place"]) == (192, 64, "last")
    assert torch.allclose(torch.tensor(text["inv_freq"]), table.inv_freq, rtol=1e-6)
    assert text["attention_factor"] == table.attention_scaling == 1.0
    assert (tower["head_dim"], tower["base_from"]) == (104, "vision_encoder.rope_theta")
    assert {text["layout"], tower["layout"]} == {"interleaved"}, "as Mistral's files have them"


def test_layers_of_lfm_that_convolve_have_no_rotation(tmp_path) -> None:
    (part,) = specification(written(tmp_path, "LFM2.5 1.2B"))["parts"]
    assert part["layers"] == [[2, 8, 3], [10, 14, 2]]
    assert part["head_dim_from"] == "lfm2.embedding_length // lfm2.attention.head_count"


FROM = {
    "Mistral Large 3": ("rope_theta",),
    "Mistral 7B v0.1": ("the default of Mistral's code",),
    "Llama 4 Scout": ("rope_theta", "the class's default"),
    "Gemma 4 E2B": ("gemma4.rope.freq_base_swa", "gemma4.rope.freq_base"),
    "Devstral Small 2 24B": ("mistral3.rope.freq_base",),
}


@pytest.mark.parametrize("name", FROM)
def test_a_base_comes_from_where_the_file_has_it(tmp_path, name: str) -> None:
    found = specification(written(tmp_path, name))
    assert tuple(part["base_from"] for part in found["parts"]) == FROM[name]


def test_a_base_that_is_in_no_file_comes_from_none(tmp_path) -> None:
    path = tmp_path / "params.json"
    path.write_text(json.dumps({"dim": 4096, "n_layers": 32, "n_heads": 32}))
    (part,) = specification(path)["parts"]
    assert (part["base"], part["base_from"]) == (10000.0, "the default of Meta's code")
    keys = {key: one for key, one in GGUF_LLAMA.items() if "freq_base" not in key}
    (tmp_path / "m.gguf").write_bytes(gguf(keys))
    (part,) = specification(tmp_path / "m.gguf")["parts"]
    assert part["base_from"] == "the default of llama.cpp"


SILENT = {"Mistral Large 3", "Mistral Large 3, with its tower", "Devstral Small 2", *GGUFS}
SAID = {
    "Voxtral Mini Realtime": ["multimodal: not read here; what that changes of the rotation is "
                              "not known."],
    "Mistral 7B v0.1": ["rope_theta is not in the file: Mistral's code takes 10,000 beside a "
                        "sliding window, and 1,000,000 without."],
    "Llama 4 Scout": ["use_scaled_rope gives not all numbers: what is missing is as in Llama 4's "
                      "code."],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*SILENT, *SAID}))
def test_what_a_public_file_leaves_open_is_said_and_nothing_else(tmp_path, name: str) -> None:
    assert warned(specification(written(tmp_path, name))) == SAID.get(name, [])


NEW = [
    ("Mistral Large 3", "rope_new", 3, "rope_new"),
    ("Devstral Small 2", "yarn", {"factor": 48, "beta": 32, "alpha": 1, "apply_scale": False,
                                  "original_max_position_embeddings": 8192, "gamma": 2},
     "yarn.gamma"),
    ("Devstral Small 2", "llama_4_scaling",
     {"beta": 0.1, "original_max_position_embeddings": 16384},
     "llama_4_scaling.original_max_position_embeddings"),
    ("Devstral Small 2 24B", "mistral3.rope.scaling.yarn_attn_factor", 2.0,
     "mistral3.rope.scaling.yarn_attn_factor"),
    ("Devstral Small 2 24B", "mistral3.attention.key_length_swa", 64,
     "mistral3.attention.key_length_swa"),
    ("Gemma 4 E2B", "gemma4.rope.dimension_count_swa", 64, "gemma4.rope.dimension_count_swa"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "key", "value", "field"), NEW)
def test_a_key_that_is_not_read_is_named(tmp_path, name, key, value, field) -> None:
    found = specification(written(tmp_path, name, **{key: value}))
    (one,) = [one for one in found["warnings"] if one["code"] == "not-known"]
    assert (one["severity"], one["field"]) == (1, field)
    assert one["message"].startswith(f"{field}: not read here")


def test_a_refusal_names_the_key_of_the_file(tmp_path) -> None:
    path = written(tmp_path, "Devstral Small 2", yarn={"factor": -1, "beta": 32, "alpha": 1})
    with pytest.raises(ValueError, match=r"yarn\.factor must be a number > 0"):
        specification(path)
    path = written(tmp_path, "Devstral Small 2", yarn=[1])
    with pytest.raises(ValueError, match=r"params\.json: yarn must be an object"):
        specification(path)


def test_a_pointer_of_git_lfs_is_called_one(tmp_path) -> None:
    data = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 4096\n"
    for name in ("config.json", "model.gguf", "model.safetensors"):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match="pointer of Git LFS"):
            read(tmp_path / name)


def weights(folder: Path, name: str, **more: Any) -> Path:
    """Write a small model in Mistral's words and names."""
    small = {"dim": 64, "n_layers": 1, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16,
             "hidden_dim": 48}  # fmt: skip
    folder.mkdir()
    written(folder, name, **small, **more)
    rng = np.random.default_rng(0)
    rows = {"tok_embeddings": 50, "output": 50, "layers.0.attention.wq": 64,
            "layers.0.attention.wk": 32, "layers.0.attention.wv": 32,
            "layers.0.attention.wo": 64, "layers.0.feed_forward.w1": 48,
            "layers.0.feed_forward.w3": 48}  # fmt: skip
    tensors = {f"{key}.weight": rng.normal(size=(n, 64)).astype("<f4") for key, n in rows.items()}
    tensors["layers.0.feed_forward.w2.weight"] = rng.normal(size=(64, 48)).astype("<f4")
    norms = ("norm", "layers.0.attention_norm", "layers.0.ffn_norm")
    tensors |= {f"{key}.weight": np.ones(64, "<f4") for key in norms}
    save_file(tensors, folder / "consolidated.safetensors")
    return folder


def test_a_converted_model_keeps_its_rescaling(tmp_path) -> None:
    source = weights(tmp_path / "a", "Devstral Small 2")
    convert(source, "hf", tmp_path / "b")
    (ours,), (theirs,) = (specification(one)["parts"] for one in (source, tmp_path / "b"))
    assert ours["rescaling"] == theirs["rescaling"]
    assert theirs["layout"] == "half-split"
    config = json.loads((tmp_path / "b" / "config.json").read_text())
    assert config["rope_parameters"]["llama_4_scaling_beta"] == 0.1
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "b")
    table = model.model.rotary_emb
    np.testing.assert_allclose(table.inv_freq.numpy(), ours["inv_freq"], rtol=1e-6)
    assert table.attention_scaling == ours["attention_factor"] == 1.0


def test_what_has_no_other_words_is_not_converted(tmp_path) -> None:
    for key, value in (("moe", {"num_experts": 8}), ("vision_encoder", {"hidden_size": 64}),
                       ("sliding_window", [None, 4096]), ("rope_new", 1)):  # fmt: skip
        source = weights(tmp_path / key, "Devstral Small 2", **{key: value})
        with pytest.raises(ValueError, match=f"{key}: not put into other words"):
            convert(source, "hf", tmp_path / "new")
        assert not (tmp_path / "new").exists()


def test_a_gguf_of_which_a_key_is_not_read_is_not_converted(tmp_path) -> None:
    odd = {"rope_freqs.weight": [1.0, 3.0, 2.0, 5.0, 1.0, 4.0, 9.0, 2.0]}
    for more, tensors, name in ((dict[str, Any](), odd, "rope_freqs.weight"),
                                ({"llama.rope.scaling.alpha": 2.0},
                                 {"token_embd.weight": [1.0] * 64},
                                 "llama.rope.scaling.alpha")):  # fmt: skip
        path = tmp_path / "model.gguf"
        path.write_bytes(gguf(GGUF_LLAMA | more, tensors))
        with pytest.raises(ValueError, match=f"{name}: not put into other words"):
            convert(path, "hf", tmp_path / "new")


def test_a_container_of_towers_has_no_rule_and_no_base(tmp_path) -> None:
    path = tmp_path / "mmproj.gguf"
    path.write_bytes(gguf({"general.architecture": "clip", "clip.vision.block_count": 24}))
    found = specification(path)
    assert (found["known"], found["parts"], found["without_effect"]) == (False, [], [])
    assert warned(found) == [
        "No rule for general.architecture 'mmproj'.",
        "clip is a tower for pictures: its projector_type decides how it rotates, which is not "
        "read here.",
    ]


def test_public_rows_are_there() -> None:
    assert set(PUBLIC.values()) <= {row["name"] for row in _rows()}
