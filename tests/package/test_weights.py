"""Layouts read from weights alone, on a released model's rows and on rows that say nothing."""

import numpy as np
import pytest

from experiments.real.lengths import LENGTHS, lengths
from rope_minimal import permute_qk, to_half, to_interleaved
from ropescope.weights import layout_of_weights
from tests.tools.released import loaded

HEADS = {"q": 9, "k": 3}
LAYERS = 30


def released(name: str) -> np.ndarray:
    """Return the lengths of the rows as the GGUF holds them, one column, (layers, rows, 1)."""
    return np.load(LENGTHS)[name].astype(np.float64)[..., None]


def named(weights: np.ndarray, heads: int, **options) -> list[str | None]:
    return [layout_of_weights(layer, heads, **options).layout for layer in weights]


def converted(name: str, heads: int | None = None) -> np.ndarray:
    """Return the rows as a converter to half-split writes them, which takes them for ``heads``."""
    return np.stack([permute_qk(w, heads or HEADS[name]) for w in released(name)])


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


def test_a_single_head_is_never_named_wrongly_and_often_not_at_all() -> None:
    counts = {"right": 0, "wrong": 0, "open": 0}
    for name, heads in HEADS.items():
        for layout, weights in (("interleaved", released(name)), ("half-split", converted(name))):
            for layer in weights:
                for head in layer.reshape(heads, 64, 1):
                    found = layout_of_weights(head, 1).layout
                    key = "open" if found is None else "right" if found == layout else "wrong"
                    counts[key] += 1
    assert sum(counts.values()) == 720
    assert counts["wrong"] <= 7  # one in a hundred
    assert counts["right"] >= 150


@pytest.mark.parametrize(("heads", "width", "inputs"), [(1, 32, 32), (4, 64, 256), (3, 128, 64)])
def test_weights_that_were_never_trained_decide_nothing(heads, width, inputs) -> None:
    draw = np.random.default_rng(0)
    fresh = [draw.normal(size=(heads * width, inputs)) for _ in range(60)]
    assert named(fresh, heads) == [None] * 60


def test_rows_of_equal_length_decide_nothing() -> None:
    assert layout_of_weights(np.eye(128), 2).layout is None


def mistaken(ratio: int) -> list[int]:
    """Return where half-split channels stand if heads of 64 were permuted as ``ratio`` smaller."""
    channels = to_interleaved(np.arange(64))[:, None]  # as they stand in the original
    return permute_qk(channels, ratio)[:, 0].tolist()


def test_keys_permuted_by_a_wrong_number_of_heads_are_neither_layout() -> None:
    """A converter that takes the query heads' number for the keys halves or quarters the blocks."""
    for ratio in (2, 4):
        wrong = np.stack([permute_qk(w, HEADS["k"] * ratio) for w in released("k")])
        orders = {"permuted as smaller heads": mistaken(ratio)}
        assert layout_of_weights(wrong, 3, orders=orders).layout == "permuted as smaller heads"
        found = named(wrong, 3, orders=orders)
        assert set(found) <= {"permuted as smaller heads", None}
        right = layout_of_weights(released("k"), 3, orders=orders)
        assert right.layout == "interleaved"


def test_a_model_of_which_queries_alone_were_converted() -> None:
    assert layout_of_weights(converted("q"), 9).layout == "half-split"
    assert layout_of_weights(released("k"), 3).layout == "interleaved"


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
        (np.ones((64, 3)), 1, {"orders": {"odd": [0] * 64}}, "permutation"),
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
