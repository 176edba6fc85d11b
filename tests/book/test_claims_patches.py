"""What one head can single out on the plane: other packages, exact cases, models trained here."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from experiments import patches

NEW = (2000, 2001, 2002)
SIDE = 15
OFFSETS = torch.cartesian_prod(torch.arange(SIDE), torch.arange(SIDE)) - 7  # (dy, dx)


def scores_of(family: str, q: torch.Tensor, k: torch.Tensor) -> np.ndarray:
    """Score of one query at (0, 0) with one key at each offset, by a family's own code."""
    module: Any = pytest.importorskip(f"transformers.models.{family}.modeling_{family}")
    keys, queries = (z.expand(1, 1, len(OFFSETS), -1) for z in (k, q))
    zero = torch.zeros_like(OFFSETS)
    if family == "qwen2_vl":
        config = module.Qwen2VLVisionConfig(embed_dim=32, num_heads=1)
        config.num_attention_heads, config.head_dim = 1, 32
        table = module.Qwen2VLVisionRotaryEmbedding(config)

        def turned(z, places):
            z = z[0].transpose(0, 1)
            return module.apply_rotary_pos_emb_vision(z, z, *table(z, places))[0][:, 0]
    else:
        config = module.LightGlueConfig(descriptor_dim=32, num_attention_heads=1)
        torch.manual_seed(0)
        table = module.LightGluePositionalEncoder(config)

        def turned(z, places):
            cos, sin = table(places[None].float())[0]
            return module.apply_rotary_pos_emb(z, z, cos, sin)[0][0, 0]

    with torch.no_grad():
        found = (turned(queries, zero) * turned(keys, OFFSETS)).sum(-1)
    return found.view(SIDE, SIDE).numpy()


@pytest.mark.parametrize(("family", "sums"), [("qwen2_vl", True), ("lightglue", False)])
def test_an_axial_head_of_transformers_adds_and_a_mixed_one_does_not(family, sums):
    """Refuted if scores of a real axial tower are no sum of a row's and a column's part, or
    those of a mixed one are.

    Qwen2-VL's vision tower turns by row or by column, LightGlue by learned wave vectors.
    """
    for seed in range(5):
        q, k = torch.randn(2, 32, generator=torch.Generator().manual_seed(seed))
        s = scores_of(family, q, k)
        corners = s[:-1, :-1] + s[1:, 1:] - s[:-1, 1:] - s[1:, :-1]  # of every square of offsets
        assert (abs(corners).max() < 1e-4) == sums
        assert np.ptp(s) > 1


def test_a_sum_is_a_coin_between_the_ends_of_two_diagonals():
    """Refuted if random sums tell the ends of the two diagonals apart.

    Heads that see all marks alike, and heads that treat every symbol in a way of its own.
    """
    rng = np.random.default_rng(0)
    cases = list(itertools.product((1, -1), repeat=2))  # the end with the answer, and the other

    def of(head, symbol, dx, dy):
        return head[0, symbol, dx] + head[1, symbol, dy]  # index -1 and 1

    for loud in np.geomspace(0.1, 30, 100):
        head = loud * rng.normal(size=(2, 4, 3))
        alike = [of(head, 0, a, a) - of(head, 0, b, -b) for a, b in cases]
        assert np.mean(1 / (1 + np.exp(-np.array(alike)))) == pytest.approx(0.5, abs=1e-12)
        more = [
            of(head, s, a, a) - of(head, t, b, -b)
            for s, t in itertools.permutations(range(4), 2)
            for a, b in cases
        ]
        assert np.mean(more) == pytest.approx(0.0, abs=1e-9 * loud)


def test_contents_can_raise_a_coin_to_three_of_four_and_no_higher():
    """Refuted if some content is right in more than three of four cases, or none in three.

    Symbols on steps of their own: the larger of two scores is then right in three cases.
    """
    depth = 3.0 ** -np.arange(16)
    ends = np.stack((0 * depth, -2 * depth), axis=1)  # s(1, 1) and s(-1, -1) of each symbol
    others = np.stack((-depth, -depth), axis=1)  # s(1, -1) and s(-1, 1): the sums are the same
    assert ends.sum(1) == pytest.approx(others.sum(1))

    def right(ends, others):
        above = ends[:, None, :, None] > others[None, :, None, :]
        return above[~np.eye(len(ends), dtype=bool)].mean()

    assert right(ends, others) == 0.75
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b = rng.normal(size=(2, 4, 2)) * rng.choice([1, 10], size=(2, 4, 1))
        both = a[:, [0, 1, 0, 1]] + b[:, [0, 1, 1, 0]]
        assert right(both[:, :2], both[:, 2:]) <= 0.75


# ---- models trained here ------------------------------------------------------------------------


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("name", "plan", "least", "most"),
    [
        ("row", "axial", 0.95, 1.0),
        ("row", "turned", 0.2, 0.45),
        ("row", "mixed", 0.9, 1.0),
        ("diagonal", "turned", 0.95, 1.0),
        ("diagonal", "axial", 0.2, 0.45),
        ("diagonal", "mixed", 0.9, 1.0),
        ("corner", "mixed", 0.95, 1.0),
        ("corner", "axial", 0.35, 0.667),
        ("corner", "two_heads", 0.667, 1.0),
    ],
)
def test_what_one_head_can_single_out(name, plan, least, most):
    """Refuted if new models find more than the claim allows, or two of three find less.

    Three new seeds; one of them may be lost, as some are in the record, but none finds more.
    """
    torch.set_num_threads(1)
    models = patches.train(name, plan, NEW, patches.CALM)
    found = sorted(patches.score(models, patches.TASKS[name], "test", NEW)["accuracy"])
    assert found[1] >= least
    assert found[-1] <= most
