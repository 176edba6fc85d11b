"""The figures on serving: a moved cache against the package's layers, worn keys against torch."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import rms_norm

from rope_minimal import RotarySelfAttention, apply_rope, inverse_frequencies, rope_table
from tests.tools.node import run_tests

PAIRS, DIM, KEYS = 64, 128, 16
TYPES = {"fp16": np.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
BLOCKS = ["q8_0", "q4_0"]
KINDS = [*TYPES, *BLOCKS]
HADAMARD = torch.ones(1, 1, dtype=torch.float64)
while len(HADAMARD) < DIM:
    HADAMARD = torch.kron(torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64), HADAMARD)
HADAMARD = HADAMARD / DIM**0.5
CHANGES = ["words dropped", "chunk spliced", "all moved"]
TREATMENTS = ["moved", "as they are", "stored raw"]


# ---- the worn key -------------------------------------------------------------------------------


def stored(keys: torch.Tensor, kind: str) -> torch.Tensor:
    """Store keys (n, 128) as torch or NumPy does, or at the nearest level of a block of ggml."""
    if kind == "fp16":  # torch rounds to float32 first
        return torch.tensor(keys.numpy().astype(np.float16)).double()
    if kind in TYPES:
        return keys.to(TYPES[kind]).double()
    blocks = keys.reshape(-1, 32)
    largest = blocks.gather(1, blocks.abs().argmax(1, keepdim=True))
    least, most = (-127, 127) if kind == "q8_0" else (-8, 7)
    scale = largest.abs() / 127 if kind == "q8_0" else largest / -8
    levels = torch.bucketize(blocks / scale, torch.arange(least, most).double() + 0.5) + least
    return (levels * scale.half().double()).reshape(keys.shape)


def mixed(keys: torch.Tensor, kind: str) -> torch.Tensor:
    """Store keys in the Hadamard basis, and go back."""
    return stored(keys @ HADAMARD, kind) @ HADAMARD


def moved(keys: torch.Tensor, by: int) -> torch.Tensor:
    """Turn keys of any shape (..., D) by the angles of one position."""
    table = rope_table(torch.tensor([by]), keys.shape[-1], dtype=torch.float64)
    return apply_rope(keys.unsqueeze(-2), *table).squeeze(-2)


def worn(
    keys: torch.Tensor, kind: str, moves: int, step: int, store=stored
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the keys after all moves, and the share of numbers that moves left as they were."""
    now, same = store(keys, kind), torch.zeros(PAIRS)
    for _ in range(moves):
        before, now = now, store(moved(now, step), kind)
        same += (before == now).double().mean(0).unflatten(-1, (2, PAIRS)).mean(0)
    return now, same / moves


def errors(keys: torch.Tensor, exact: torch.Tensor) -> tuple[float, np.ndarray]:
    """Return the error of all and by pair, root mean square, of the length."""
    pairs = lambda x: x.unflatten(-1, (2, PAIRS)).square().sum((0, 1))  # noqa: E731
    off, length = pairs(keys - exact), pairs(exact)
    return (off.sum() / length.sum()).sqrt().item(), (off / length).sqrt().numpy()


@pytest.fixture(scope="module")
def start(node):
    keys = torch.tensor(node.call("worn_key.js", "startKeys"), dtype=torch.float64)
    return keys.reshape(KEYS, DIM)


@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_stored_as_torch_stores_them(node, start, kind):
    small = torch.logspace(-12, 1, DIM, base=2.0, dtype=torch.float64) / 3  # fp8 has no such digits
    for keys in (start, torch.stack([small, -small])):
        ours = node.call("worn_key.js", "store", keys.flatten().tolist(), kind)
        np.testing.assert_allclose(ours, stored(keys, kind).flatten(), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks_are_those_of_ggml(node, start, kind):
    gguf = pytest.importorskip("gguf")
    levels = getattr(gguf.GGMLQuantizationType, kind.upper())
    keys = torch.cat((start, 1e-3 * start, 300 * start)).numpy().astype(np.float32)
    packed = gguf.quants.quantize(keys, levels)
    ours = node.call("worn_key.js", "store", keys.astype(float).flatten().tolist(), kind)
    theirs = gguf.quants.dequantize(packed, levels).flatten()
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-12)


def test_the_hadamard_basis_is_that_of_the_matrix_and_its_own_inverse(node, start):
    once = node.call("worn_key.js", "hadamard", start.flatten().tolist())
    np.testing.assert_allclose(once, (start @ HADAMARD).flatten(), atol=1e-12)
    np.testing.assert_allclose(
        node.call("worn_key.js", "hadamard", once), start.flatten(), atol=1e-12
    )


@pytest.mark.parametrize(
    ("kind", "moves", "step"),
    [*((kind, 64, 1) for kind in KINDS), ("q8_0", 256, 1), ("bf16", 16, 16), ("fp8", 1, 9)],
)
def test_the_wear_of_every_pair_is_that_of_a_cache_in_torch(node, start, kind, moves, step):
    keys, same = worn(start, kind, moves, step)
    exact = moved(start, moves * step)
    overall, pairs = errors(keys, exact)
    ours = node.call("worn_key.js", "wear", kind, moves, step)
    assert ours["all"] == pytest.approx(overall, rel=1e-3)
    np.testing.assert_allclose(ours["errors"], pairs, rtol=0.02)
    complex_ = [torch.complex(*x.unflatten(-1, (2, PAIRS)).unbind(-2)) for x in (keys, exact)]
    beside = (complex_[1] * complex_[0].conj()).angle().square().mean(0).sqrt()
    np.testing.assert_allclose(ours["beside"], beside, rtol=0.02)
    if kind in TYPES:  # of a block the stored number is not what is read back
        np.testing.assert_allclose(ours["same"], same, atol=0.01)
    assert len(ours["path"]) == moves + 1
    np.testing.assert_allclose(ours["path"][-1], keys[0], rtol=1e-6)
    overall, pairs = errors(worn(start, kind, moves, step, mixed)[0], exact)
    ours = node.call("worn_key.js", "wear", kind, moves, step, True)
    # a number on the edge between two levels may go either way, and its key with it
    assert ours["all"] == pytest.approx(overall, rel=0.02)
    np.testing.assert_allclose(ours["errors"], pairs, rtol=0.15)


@pytest.mark.parametrize(
    ("kind", "often", "once", "within"),
    [
        ("fp16", 0.02, 0.0003, 0.1),
        ("bf16", 0.125, 0.0024, 0.15),
        ("fp8", 1.0, 0.038, 0.1),
        ("q8_0", 0.38, 0.0075, 0.1),
    ],
)
def test_many_moves_wear_other_keys_as_much(node, kind, often, once, within):
    keys = torch.randn(32, DIM, dtype=torch.float64, generator=torch.manual_seed(7))
    exact = moved(keys, 256)
    assert errors(worn(keys, kind, 256, 1)[0], exact)[0] == pytest.approx(often, rel=within)
    assert errors(worn(keys, kind, 1, 256)[0], exact)[0] == pytest.approx(once, rel=0.1)
    said = node.call("worn_key.js", "reading", kind, 256, 1)
    assert said["many"]["all"] == pytest.approx(often, rel=within)
    assert said["one"]["all"] == pytest.approx(once, rel=0.1)
    assert said["worst"] == int(np.argmax(said["many"]["errors"]))


def test_what_no_move_leaves_is_no_rounded_share(node):
    told = node.call("worn_key.js", "reading", "fp16", 32, 1)
    told |= node.call("worn_key.js", "laws", "fp16", 32, 1)
    assert told["many"]["same"][1] == 0 < told["many"]["same"][60]
    for pair, share in ((1, "**0%**"), (60, "%**")):
        traits = {"kept": "fp16", "moves": 32, "step": 1, "pair": pair, "other": "one move"}
        said = node.call("worn_key.js", "words", traits, told)
        assert f"{share} of its stored numbers as they are" in said
        assert "0.00%" not in said


def test_of_4_bits_nothing_is_left_and_the_scales_grow_with_the_errors(node, start):
    other = torch.randn(32, DIM, dtype=torch.float64, generator=torch.manual_seed(7))
    for keys in (start, other):
        assert errors(worn(keys, "q4_0", 256, 1)[0], moved(keys, 256))[0] > 1.5
        assert errors(worn(keys, "q4_0", 1, 256)[0], moved(keys, 256))[0] < 0.15
        assert errors(worn(keys, "q4_0", 256, 1, mixed)[0], moved(keys, 256))[0] > 1.2
    assert node.call("worn_key.js", "wear", "q4_0", 256, 1)["all"] > 1.5


@pytest.mark.parametrize("kind", ["fp16", "bf16", "q8_0"])
def test_in_the_hadamard_basis_roundings_add_up_as_if_independent_in_every_pair(node, kind):
    """No pair stands still, whatever the format."""
    keys = torch.randn(64, DIM, dtype=torch.float64, generator=torch.manual_seed(11))
    exact = moved(keys, 256)
    overall, pairs = errors(worn(keys, kind, 256, 1, mixed)[0], exact)
    once, _ = errors(mixed(keys, kind), keys)
    assert overall == pytest.approx(once * 257**0.5, rel=0.05)
    assert pairs.max() < 1.5 * overall
    plain, by_pair = errors(worn(keys, kind, 256, 1)[0], exact)
    assert plain > 3 * overall
    assert by_pair.max() > 2 * plain
    told = node.call("worn_key.js", "reading", kind, 256, 1)["mixed"]["all"]
    assert told == pytest.approx(overall, rel=0.1)


def test_a_turn_below_the_rounding_step_is_lost_and_a_larger_one_gathers_roundings(node):
    for kind, moves, step in [("bf16", 256, 1), ("fp8", 64, 1), ("q8_0", 64, 1)]:
        wear = node.call("worn_key.js", "wear", kind, moves, step)
        laws = node.call("worn_key.js", "laws", kind, moves, step)
        same, off, stays = (np.array(x) for x in (wear["same"], wear["errors"], laws["stays"]))
        turn = moves * step * inverse_frequencies(DIM)
        np.testing.assert_allclose(stays, np.abs(np.exp(1j * turn) - 1), atol=1e-12)
        stuck = (same > 0.85) & (stays > 2 * laws["walk"])
        assert stuck.sum() > 8
        np.testing.assert_allclose(off[stuck], stays[stuck], rtol=0.25)
        free = same < 0.06
        assert free.sum() > 3
        assert np.sqrt((off[free] ** 2).mean()) == pytest.approx(laws["walk"], rel=0.6)
        # stored numbers stand still where a turn is small beside the rounding, in order of speed
        assert same[-8:].mean() > 0.9 > 0.1 > same[:4].mean()


# ---- the cache shelf ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(node):
    weights = node.call("cache_shelf.js", "makeModel")
    layers = []
    for matrices in weights["layers"]:
        layer = RotarySelfAttention(16, 2).double()
        state = {f"{name}_proj.weight": torch.tensor(m).double() for name, m in matrices.items()}
        layer.load_state_dict(state)
        layers.append(layer)
    return torch.tensor(weights["words"]).double(), layers


@torch.no_grad()
def caches(model, first: int, start: int) -> list:
    """Run the words from ``first`` on at positions from ``start``; return the cache by layer."""
    words, layers = model
    x = words[None, first:]
    kept = []
    for layer in layers:
        kept.append(layer.new_cache(1))
        ids = torch.arange(start, start + x.shape[1])[None]
        x = x + layer(rms_norm(x, (16,), eps=0.0), cache=kept[-1], position_ids=ids)
    return kept


def by_word(cache_keys: torch.Tensor) -> np.ndarray:
    return cache_keys[0].transpose(0, 1).numpy()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("words", [0, 1, 4, 8])
def test_the_shelf_holds_what_the_layers_of_the_package_store(node, model, change, words):
    cached, fresh, by, kept = {
        CHANGES[0]: (caches(model, 0, 0), caches(model, words, 0), -words, slice(words, None)),
        CHANGES[1]: (caches(model, words, 0), caches(model, 0, 0), words, slice(None)),
        CHANGES[2]: (caches(model, 0, 0), caches(model, 0, words), words, slice(None)),
    }[change]
    wanted = slice(words, None) if change == CHANGES[1] else slice(None)
    for treatment in TREATMENTS:
        shelf = node.call("cache_shelf.js", "shelf", change, treatment, words)
        for layer, old, new in zip(shelf, cached, fresh, strict=True):
            stored_, right = by_word(old.keys)[kept], by_word(new.keys)[wanted]
            used = (
                stored_ if treatment == TREATMENTS[1] else moved(torch.tensor(stored_), by).numpy()
            )
            np.testing.assert_allclose(layer["used"], used, atol=1e-6)
            np.testing.assert_allclose(layer["wanted"], right, atol=1e-6)
            gap = np.linalg.norm(used - right) / np.linalg.norm(right)
            assert layer["off"] == pytest.approx(gap, abs=1e-6)
            values, others = by_word(old.values)[kept], by_word(new.values)[wanted]
            gap = np.linalg.norm(values - others) / np.linalg.norm(others)
            assert layer["valuesOff"] == pytest.approx(gap, abs=1e-6)


def test_moving_repairs_positions_and_no_contexts(node):
    for change, words in itertools.product(CHANGES, range(9)):
        shelves = {t: node.call("cache_shelf.js", "shelf", change, t, words) for t in TREATMENTS}
        off = {t: [layer["off"] for layer in shelf] for t, shelf in shelves.items()}
        assert off["moved"] == pytest.approx(off["stored raw"], abs=1e-12)
        assert off["moved"][0] < 1e-12
        whole = change == CHANGES[2] or words == 0
        assert [gap < 1e-12 for gap in off["moved"]] == (
            [True] * 3 if whole else [True, *[False] * 2]
        )
        if not whole:
            assert min(off["moved"][1:]) > 0.2
        if words:
            assert min(off[TREATMENTS[1]]) > 0.2
            for layer in shelves[TREATMENTS[1]]:  # none of them is right
                gaps = np.array(layer["used"]) - np.array(layer["wanted"])
                assert np.abs(gaps).max((1, 2)).min() > 0.01
        assert [layer["left"] for layer in shelves["moved"]] == off[TREATMENTS[1]]


# ---- controls -----------------------------------------------------------------------------------


def test_both_figures_obey_keys_and_pointers():
    run_tests(Path(__file__).with_name("serving.test.mjs"))
