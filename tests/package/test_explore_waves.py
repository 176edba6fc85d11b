"""The waves of one head: the figure's mathematics against the package, its words at the edges."""

import math

import numpy as np
import pytest

from rope_minimal import inverse_frequencies, reference
from ropebook.figures.waves import FARTHEST

SCRIPT = "waves.js"
KINDS = ["key = query", "fast half", "slow half", "random"]
PAIRS = [1, 2, 8, 64]


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("dim", [2, 16, 128])
def test_the_waves_add_up_to_the_score_of_the_reference(node, dim, interleaved):
    rng = np.random.default_rng(dim)
    q, k = rng.normal(size=(2, dim))
    theta = inverse_frequencies(dim)
    waves = node.call("rope.js", "waves", q.tolist(), k.tolist(), interleaved)
    assert len(waves["heights"]) == len(waves["starts"]) == dim // 2
    for m, n in [(0, 0), (5, 3), (3, 5), (4096, 1)]:
        turned = [
            reference.rotate_complex(x[None], np.array([p]), interleaved=interleaved)[0]
            for x, p in ((q, m), (k, n))
        ]
        ours = node.call("rope.js", "waveSum", waves, m - n, theta.tolist())
        assert ours == pytest.approx(turned[0] @ turned[1], abs=1e-9)


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_picture_shows_the_score_of_its_query_and_its_turned_key(node, kind, pairs):
    q, k = (np.array(part) for part in node.call(SCRIPT, "contents", kind, pairs, 3).values())
    shown = node.call(SCRIPT, "score", kind, pairs, 17, 3)
    aimed = reference.rotate_complex(k[None], np.array([17]), interleaved=True)
    keys = reference.rotate_complex(np.tile(aimed, (2, 1)), np.array([0, 5]), interleaved=True)
    for distance in (0, 17, FARTHEST):
        query = reference.rotate_complex(q[None], np.array([distance + 5]), interleaved=True)[0]
        assert shown["sums"][distance] == pytest.approx(query @ keys[1], abs=1e-9)


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("kind", KINDS[:3])
def test_equal_contents_have_one_length_and_peak_where_the_key_aims(node, kind, pairs):
    q, k = (np.array(part) for part in node.call(SCRIPT, "contents", kind, pairs, 0).values())
    assert np.array_equal(q, k)
    assert np.linalg.norm(q) == pytest.approx(math.sqrt(2 * pairs))
    held = np.hypot(q[0::2], q[1::2]) > 0
    half = math.ceil(pairs / 2)
    expected = {"key = query": range(pairs), "fast half": range(half)}
    assert set(np.flatnonzero(held)) == set(expected.get(kind, range(pairs - half, pairs)))
    for aim in (0, 60, FARTHEST):
        shown = node.call(SCRIPT, "score", kind, pairs, aim, 0)
        said = node.call(SCRIPT, "reading", shown, aim)
        assert said["best"] == aim
        assert said["score"] == pytest.approx(said["height"]) == pytest.approx(2 * pairs)
        near = np.array(shown["sums"]) > 0.9 * said["height"]
        assert said["near"] == near.sum() - 1


def test_fast_waves_make_the_peak_narrow_and_slow_ones_wide(node):
    near = {
        kind: node.call(SCRIPT, "reading", node.call(SCRIPT, "score", kind, 64, 60, 0), 60)["near"]
        for kind in KINDS[:3]
    }
    assert near["fast half"] <= near["key = query"] < 10 < 100 < near["slow half"]


def test_random_contents_are_normal_and_each_draw_is_another(node):
    numbers = np.array([node.call("rope.js", "normals", 256, seed) for seed in range(60)])
    assert abs(numbers.mean()) < 0.03
    assert numbers.std() == pytest.approx(1, abs=0.03)
    assert np.mean(np.abs(numbers) < 1) == pytest.approx(0.6827, abs=0.015)
    assert abs(np.corrcoef(numbers)[np.triu_indices(60, 1)]).max() < 0.35
    assert node.call("rope.js", "normals", 4, 5) == node.call("rope.js", "normals", 4, 5)
