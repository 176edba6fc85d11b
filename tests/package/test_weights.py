"""Layouts read from weights alone, on a released model's rows and on rows that say nothing."""

import json
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.layouts import results
from experiments.real.lengths import LENGTHS, lengths
from rope_minimal import permute_qk, to_half
from ropescope.weights import layout_of_weights
from tests.tools.released import loaded

HEADS = {"q": 9, "k": 3}
LAYERS = 30


def released(name: str) -> np.ndarray:
    """Return the lengths of the rows as the GGUF holds them, one column, (layers, rows, 1)."""
    return np.load(LENGTHS)[name].astype(np.float64)[..., None]


def named(weights: np.ndarray, heads: int, **options) -> list[str | None]:
    return [layout_of_weights(layer, heads, **options).layout for layer in weights]


def converted(name: str) -> np.ndarray:
    """Return the rows as a converter to half-split writes them."""
    return np.stack([permute_qk(w, HEADS[name]) for w in released(name)])


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("layout", ["interleaved", "half-split"])
def test_no_layer_of_a_released_model_is_misread(name: str, layout: str) -> None:
    weights = released(name) if layout == "interleaved" else converted(name)
    found = named(weights, HEADS[name])
    assert set(found) <= {layout, None}
    assert found.count(layout) >= 26
    whole = layout_of_weights(weights, HEADS[name])
    assert whole.layout == layout
    assert whole.margin > 300


@pytest.mark.parametrize(("heads", "width", "inputs"), [(1, 32, 32), (4, 64, 256), (3, 128, 64)])
def test_weights_that_were_never_trained_decide_nothing(heads, width, inputs) -> None:
    draw = np.random.default_rng(0)
    fresh = [draw.normal(size=(heads * width, inputs)) for _ in range(60)]
    assert named(fresh, heads) == [None] * 60


def test_rows_of_equal_length_decide_nothing() -> None:
    assert layout_of_weights(np.eye(128), 2).layout is None


LINES = {
    "queries": (180, 57, 2),
    "keys": (50, 52, 2),
    "queries and keys together": (240, 60, 2),
    "32 of 64 channels rotated": (140, 56, 2),
    "16 of 64 channels rotated": (8, 40, 2),
    "queries or keys converted": (0, 52, 2),
    "3 key heads permuted as 6": (60, 50, 2),
    "3 key heads permuted as 12": (55, 36, 2),
    "small models: copy": (0, 0, 0),
    "small models: find": (0, 0, 3),
    "small models: induction": (6, 6, 7),
    "small models: English": (0, 3, 11),
    "small models: half the width": (0, 0, 0),
    "small models: biases": (0, 3, 9),
    "the biases alone": (0, 0, 0),
    "small models: gains": (0, 3, 9),
    "the gains alone": (0, 1, 3),
    "small models: no rotation": (0, 0, 0),
    "small models: queries or keys converted": (0, 0, 0),
    "small models: one key head permuted as two": (0, 5, 10),
    "never trained": (0, 0, 0),
}
"""Of each line of the chapter's table, the least that is told rightly by head, layer and model."""


@pytest.mark.drawn(3, among="long")
def test_nothing_in_the_table_is_told_wrongly_but_what_was_not_asked() -> None:
    found = results()
    blind = found.pop("the same, `query_heads` not given")
    assert set(found) == set(LINES)
    for words, least in LINES.items():
        told = found[words]
        assert [one.wrong for one in told] == [0, 0, 0], words
        assert all(one.right >= few for one, few in zip(told, least, strict=True)), words
    assert [one.right for one in blind] == [0, 0, 0]
    assert all(one.wrong > 0 for one in blind)
    assert blind[2].wrong == 2


def test_asked_together_half_converted_weights_get_one_name() -> None:
    """Which is why queries and keys are asked apart, and layers one by one."""
    sides = np.concatenate((converted("q"), released("k")), 1)
    assert layout_of_weights(sides, 12).layout == "half-split"
    layers = np.concatenate((released("q")[:15], converted("q")[15:]))
    assert layout_of_weights(layers, 9).layout is not None
    assert set(named(layers[:15], 9)) <= {"interleaved", None}
    assert set(named(layers[15:], 9)) <= {"half-split", None}


def test_a_number_of_heads_by_which_no_converter_permutes_is_no_hypothesis() -> None:
    """This model's 192 key rows are not nine heads of whole pairs."""
    for number in (3, 9):
        found = layout_of_weights(released("k"), 3, query_heads=number)
        assert set(found.log_likelihood) == {"interleaved", "half-split"}


def test_the_chapters_lines_read_a_checkpoint_of_each_kind(tmp_path, monkeypatch) -> None:
    rows = np.load(LENGTHS)["q"][12].astype(np.float32)[:, None] * np.ones((1, 32), np.float32)
    name = "model.layers.0.self_attn.q_proj.weight"
    monkeypatch.chdir(tmp_path)
    torch.save({name: torch.nn.Parameter(torch.tensor(rows).bfloat16())}, "model.pt")
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file({name: torch.tensor(rows).bfloat16()}, "model.safetensors")
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter("model.gguf", "llama")
    blocks = gguf.quantize(rows, gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("blk.0.attn_q.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    for write in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{write}_to_file")()
    writer.close()
    chapter = next(Path(__file__).parents[2].glob("notebooks/14-*.ipynb"))
    cells = json.loads(chapter.read_text("utf8"))["cells"]
    code = next("".join(c["source"]) for c in cells if c["id"] == "real-layout-3")
    kinds = re.split(r"^# (?:a state dict|safetensors|GGUF):\n", code, flags=re.MULTILINE)[1:]
    assert len(kinds) == 3
    for kind in kinds:
        lines = re.match(r"(?:#   .*\n)+", kind)
        namespace = {"torch": torch, "gguf": gguf, "name": name,
                     "safetensors": __import__("safetensors.torch")}  # fmt: skip
        exec(textwrap.dedent(lines[0].replace("#", "")), namespace)
        assert layout_of_weights(namespace["w"], num_heads=9).layout == "interleaved"


def test_channels_that_do_not_rotate_are_left_out() -> None:
    draw = np.random.default_rng(0)
    rows = released("q").reshape(LAYERS, 9, 64, 1)
    still = np.exp(draw.normal(size=(LAYERS, 9, 64, 1)))
    partial = np.concatenate((rows, still), 2).reshape(LAYERS, -1, 1)
    assert layout_of_weights(partial, 9, rotated=64).layout == "interleaved"


def test_the_scale_of_a_head_does_not_matter() -> None:
    one = layout_of_weights(released("q"), 9)
    scaled = released("q").reshape(LAYERS, 9, 64, 1) * np.geomspace(1e-3, 1e3, 9)[:, None, None]
    other = layout_of_weights(scaled.reshape(LAYERS, -1, 1), 9)
    assert other.margin == pytest.approx(one.margin, rel=1e-6)


@pytest.mark.parametrize(
    ("weight", "heads", "options", "words"),
    [
        (np.ones((64, 3)), 3, {}, "weight must have shape"),
        (np.ones(64), 1, {}, "weight must have shape"),
        (np.zeros((64, 3)), 1, {}, "no row zero"),
        (np.full((64, 3), np.nan), 1, {}, "must be finite"),
        (np.ones((64, 3)), 0, {}, "num_heads"),
        (np.ones((64, 3)), 1, {"rotated": 6}, "rotated must be"),
        (np.ones((64, 3)), 1, {"rotated": 128}, "rotated must be"),
        (np.ones((128, 3)), 2, {"query_heads": 3}, "query_heads must be a multiple"),
        (np.ones((128, 3)), 2, {"query_heads": 4, "rotated": 32}, "rotated whole"),
    ],
)
def test_bad_input_is_named(weight, heads, options, words) -> None:
    with pytest.raises(ValueError, match=words):
        layout_of_weights(weight, heads, **options)


def test_the_recorded_lengths_are_those_of_the_package() -> None:
    for name, values in lengths(loaded()).items():
        assert np.allclose(values.astype(float), np.load(LENGTHS)[name].astype(float), rtol=2e-3)


def test_half_split_and_interleaved_are_each_others_image() -> None:
    one = layout_of_weights(released("q"), 9).log_likelihood["interleaved"]
    rows = released("q").reshape(LAYERS, 9, 64)
    other = layout_of_weights(to_half(rows).reshape(LAYERS, -1, 1), 9)
    assert other.log_likelihood["half-split"] == pytest.approx(one, rel=1e-9)
