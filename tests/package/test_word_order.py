"""The figure of words in any order: its layer against the package and torch, in all 24 orders."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

from rope_minimal import rotate_complex
from ropebook import figures
from tests.tools.node import run_tests

ORDERS = list(permutations(range(4)))  # which word stands at each place


@pytest.fixture(scope="module")
def weights(node):
    return {name: np.array(matrix) for name, matrix in node.call("word_order.js", "MODEL").items()}


def layer(weights, order, positions):
    """Return scores and outputs by words, from one layer that reads them in their order."""
    x = weights["words"][list(order)]
    q, k, v = (x @ weights[name].T for name in "qkv")
    if positions:
        q, k = (rotate_complex(rows, np.arange(4)) for rows in (q, k))
    outputs = torch.nn.functional.scaled_dot_product_attention(
        *(torch.tensor(rows)[None] for rows in (q, k, v))
    )[0].numpy()
    back = np.argsort(order)
    return (q @ k.T)[np.ix_(back, back)], outputs[back]


@pytest.mark.parametrize("positions", [False, True])
def test_the_layer_is_that_of_the_package_in_every_order(node, weights, positions):
    before, _ = layer(weights, range(4), positions)
    for order in ORDERS:
        places = np.argsort(order).tolist()
        seen = node.call("word_order.js", "compare", places, positions)
        scores, outputs = layer(weights, order, positions)
        np.testing.assert_allclose(seen["scores"], scores, atol=1e-12)
        np.testing.assert_allclose(seen["outputs"], outputs, atol=1e-12)
        np.testing.assert_allclose(seen["before"], before, atol=1e-12)


def test_a_number_is_new_where_a_distance_is_and_looks_new(node):
    for order in ORDERS:
        places = np.argsort(order)
        distance = np.subtract.outer(places, places)
        changed = distance != np.subtract.outer(range(4), range(4))
        seen = node.call("word_order.js", "compare", places.tolist(), True)
        assert np.array_equal(seen["fresh"], changed), order
        look = np.round(seen["scores"], 1) != np.round(seen["before"], 1)
        assert np.array_equal(look, changed), "none that is new looks old"
        assert seen["moved"] == 4 * [order != ORDERS[0]]
        plain = node.call("word_order.js", "compare", places.tolist(), False)
        assert not np.any(plain["fresh"])
        assert not np.any(plain["moved"])
    assert len(np.unique(np.round(plain["scores"], 1))) == 16, "no two numbers look the same"


def test_orders_are_words_at_places(node):
    orders = figures.word_order()._options["order"]
    assert len(set(orders)) == 24
    words = node.call("word_order.js", "WORDS")
    for order, text in zip(ORDERS, orders, strict=True):
        assert text == " ".join(words[i] for i in order)
        assert node.call("word_order.js", "placesOf", text) == np.argsort(order).tolist()


def test_words_are_moved_by_hand_and_by_keys():
    run_tests(Path(__file__).with_name("word_order.test.mjs"))
