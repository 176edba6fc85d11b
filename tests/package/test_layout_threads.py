"""The mathematics of the threads, against the package and against the chapter's table."""

import numpy as np
import pytest
import torch

from rope_minimal import apply_rope, permute_qk, rope_table
from ropebook.figures.layout_threads import FAMILIES
from tests.tools.cells import read_cells

SCRIPT = "layout_threads.js"
each_family = pytest.mark.parametrize("family", list(FAMILIES.values()), ids=list(FAMILIES))


@pytest.fixture(scope="module")
def loom(node):
    return lambda name, *args: node.call(SCRIPT, name, *args)


def test_both_languages_know_the_same_families(loom):
    assert {name: tuple(values) for name, values in loom("FAMILIES").items()} == FAMILIES


@pytest.mark.parametrize(
    ("family", "row"),
    [
        ("Llama, Meta's files: 128", "Meta's own Llama code"),
        ("Llama, Hugging Face's files: 128", "Llama 1 to 3"),
        ("GPT-J: 64 of 256", "GPT-J"),
        ("GPT-NeoX: 24 of 96", "GPT-NeoX"),
        ("GLM-4: 64 of 128", "GLM-4"),
        ("Phi: 32 of 64", "Phi"),
        ("nanochat, clockwise: 128", "nanochat"),
    ],
)
def test_families_are_those_of_the_chapters_table(family, row):
    lines = [
        line for line in read_cells()["families"].splitlines() if line.startswith(f"| {row} |")
    ]
    _, layout, turns, rotated = (cell.strip(" *") for cell in lines[0].strip("| ").split(" | ")[:4])
    dim, width, interleaved, sign = FAMILIES[family]
    assert layout == ("interleaved" if interleaved else "half-split")
    assert turns == ("+mθ" if sign > 0 else "−mθ")
    assert rotated in (f"{width} of {dim}", "all")


@each_family
def test_the_order_of_the_rows_is_permute_qk(loom, family):
    dim, rotated, interleaved, _ = family
    order = loom("rowOrder", dim, rotated, interleaved)
    head = np.arange(dim)
    head[:rotated] = permute_qk(head[:rotated], 1, inverse=not interleaved)
    assert order == head.tolist()
    assert [loom("places", order)[old] for old in order] == list(range(dim))


@each_family
def test_partners_stay_partners(loom, family):
    dim, rotated, interleaved, _ = family
    place = loom("places", loom("rowOrder", dim, rotated, interleaved))
    for channel in {0, 1, rotated // 2, rotated - 1}:
        partner = loom("partnerOf", channel, rotated, interleaved)
        pair = loom("pairOf", channel, rotated, interleaved)
        cos, sin = rope_table([1], rotated)
        one = torch.eye(dim)[channel][None]
        turned = apply_rope(one, cos, sin, interleaved=interleaved)[0].abs()
        assert sorted(turned.topk(2).indices.tolist()) == sorted([channel, partner])
        there = loom("partnerOf", place[channel], rotated, not interleaved)
        assert there == place[partner]
        assert loom("pairOf", place[channel], rotated, not interleaved) == pair
    if rotated < dim:
        assert loom("partnerOf", rotated, rotated, interleaved) == -1


@each_family
def test_scores_are_the_packages_and_equal_only_if_both_are_permuted(node, loom, family):
    dim, rotated, interleaved, sign = family
    errors = {}
    for move_q in (False, True):
        for move_k in (False, True):
            found = loom("compare", *family, move_q, move_k)
            errors[move_q, move_k] = found["error"]
    assert errors[True, True] == 0  # the figure adds pair by pair, in the same order
    assert min(errors[False, False], errors[True, False], errors[False, True]) > 0.3

    q, k = (
        torch.tensor([node.call("rope.js", "normals", dim, seed + 7919 * t) for t in range(12)])
        for seed in (1, 2)
    )
    cos, sin = rope_table(torch.arange(12), rotated, dtype=torch.float64)
    options = {"interleaved": interleaved}
    exact = apply_rope(q.double(), cos, sign * sin, **options)
    exact = exact @ apply_rope(k.double(), cos, sign * sin, **options).T
    assert np.allclose(np.reshape(found["truth"], (12, 12)), exact, atol=1e-4)


@each_family
def test_the_copied_code_does_what_permute_qk_does(loom, family):
    dim, rotated, interleaved, _ = family
    weight = torch.arange(3.0 * dim)[:, None] * torch.ones(2)
    names = {"torch": torch, "weight": weight}
    exec(loom("pythonCode", dim, rotated, interleaved), names)
    rows = weight.view(3, dim, 2).clone()
    turning = permute_qk(rows[:, :rotated].flatten(0, 1), 3, inverse=not interleaved)
    rows[:, :rotated] = turning.view(3, rotated, 2)
    assert torch.equal(names["weight"], rows.flatten(0, 1))


@each_family
def test_a_row_is_found_where_it_is_drawn(loom, family):
    dim, rotated = family[:2]
    edges = loom("rowEdges", dim, rotated, 42.0, 414.0)
    assert edges[0] == 42.0
    assert edges[-1] == pytest.approx(414.0)
    assert (np.diff(edges) > 0).all()
    for row in {0, rotated - 1, dim - 1, dim // 2}:
        assert loom("rowAt", (edges[row] + edges[row + 1]) / 2, edges) == row
    assert loom("rowAt", -5, edges) == 0
    assert loom("rowAt", 1e4, edges) == dim - 1


@pytest.mark.parametrize(("a", "b"), [(10, 11), (11, 10), (5, 40), (7, 7)])
def test_labels_keep_apart_and_in_order(loom, a, b):
    low, high = loom("apart", a, b)
    assert abs(high - low) >= 12
    assert (low <= high) == (a <= b)
    assert low + high == a + b


@pytest.mark.parametrize("width", [280, 328, 560, 640, 900])
def test_looms_and_matrices_stay_inside_and_apart(loom, width):
    found = loom("arrangement", width)
    boxes = found["looms"] + found["matrices"]
    for box in boxes:
        assert 0 <= box["x0"] < box["x1"] <= width
        assert 0 <= box["y0"] < box["y1"] <= found["height"]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            beside = a["x0"] >= b["x1"] or b["x0"] >= a["x1"]
            assert beside or a["y0"] >= b["y1"] or b["y0"] >= a["y1"]
