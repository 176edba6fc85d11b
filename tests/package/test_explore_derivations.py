"""The axioms: the page computes what Python computes."""

import itertools
import math
import re

import numpy as np
import pytest

from ropebook import figures
from ropebook.figures.axioms import AXIOMS, KINDS


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: figures.axioms([]), ValueError, "16 states once, got 0"),
        (lambda: figures.axioms([_family(kind="alibi"), *_families()]), ValueError, "got 'alibi'"),
        (lambda: figures.axioms([*_families(), _family()]), ValueError, "once, got"),
        (lambda: figures.axioms([_family(certificate="")]), ValueError, "certificate of"),
        (lambda: figures.axioms([{"kind": "rope"}]), ValueError, "families must give axioms"),
        (lambda: figures.axioms([_family(axioms=["no"] * 4)]), TypeError, "axioms .* got 'no'"),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def properties(matrix):
    """The four answers about a numeric M, by NumPy alone."""
    rule = np.allclose(matrix.T @ matrix, np.eye(len(matrix)))
    values, vectors = np.linalg.eig(matrix)
    circle = np.allclose(abs(values), 1, atol=1e-5)  # of a double eigenvalue half the digits
    # a matrix is diagonalisable when its eigenvectors span the space
    spanned = np.linalg.matrix_rank(vectors, tol=1e-6) == len(matrix)
    return rule, circle, bool(spanned), bool(np.linalg.det(matrix) > 0)


STATES = {
    "rope": (True, True, True, True),
    "rope-mirror": (True, True, True, False),
    "oblique": (False, True, True, True),
    "oblique-mirror": (False, True, True, False),
    "growth": (False, False, True, True),
    "growth-mirror": (False, False, True, False),
    "counting": (False, True, False, True),
    "counting-mirror": (False, True, False, False),
    "counting-growth": (False, False, False, True),
    "counting-growth-mirror": (False, False, False, False),
}


def _families():
    kinds = {state: kind for kind, state in STATES.items()}
    for state in itertools.product([True, False], repeat=4):
        yield {"axioms": state, "kind": kinds.get(state, "none"), "certificate": "checked"}


def _family(**values):
    return {"axioms": (True,) * 4, "kind": "rope", "certificate": "checked", **values}


def test_every_kind_has_its_answers():
    assert set(KINDS) == {*STATES, "none"}
    assert figures.Axioms.figure_traits() == [*AXIOMS, "theta", "zeta", "large"]


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize(("theta", "zeta"), [(0.3, 0.95), (1.2, 1.1), (2.5, 0.9)])
def test_each_family_has_exactly_its_axioms(node, kind, theta, zeta):
    matrix = np.array(node.call("axioms.js", "matrix", kind, theta, zeta))
    assert properties(matrix) == STATES[kind]


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("s", [-9, -1, 0, 1, 2, 7, 48])
def test_the_powers_of_a_family_are_those_of_its_matrix(node, kind, s):
    matrix = np.array(node.call("axioms.js", "matrix", kind, 0.7, 1.05))
    ours = node.call("axioms.js", "power", kind, 0.7, 1.05, s)
    np.testing.assert_allclose(ours, np.linalg.matrix_power(matrix, s), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", STATES)
def test_the_score_sees_the_distance_only(node, kind):
    """q^T M^m M^-n k, computed from the positions, is the plotted score at m - n."""
    matrix = np.array(node.call("axioms.js", "matrix", kind, 0.4, 0.97))
    query, key = (node.call("axioms.js", name, *[]) for name in ("QUERY", "KEY"))
    q, k = (np.array(table[str(len(matrix))]) for table in (query, key))
    power = np.linalg.matrix_power
    for m, n in [(0, 0), (5, 2), (31, 28), (40, 3), (2, 9)]:
        encoded = (power(matrix, m).T @ q) @ (power(matrix, -n) @ k)
        assert node.call("axioms.js", "score", kind, 0.4, 0.97, m - n) == pytest.approx(encoded)


def test_no_random_matrix_lands_in_an_empty_state():
    """Six of sixteen states are empty: thousands of matrices of all kinds never reach them."""
    rng, seen = np.random.default_rng(0), set()
    for size in (2, 3, 4):
        for _ in range(300):
            basis = rng.normal(size=(size, size))
            orthogonal = np.linalg.qr(basis)[0]
            flip = np.diag([*np.ones(size - 1), rng.choice([-1.0, 1.0])])
            block = np.eye(size)
            block[0, 1] = 1.0
            factor = rng.uniform(0.5, 2)
            for matrix in (basis, orthogonal, orthogonal @ flip, block, block @ flip):
                seen |= {properties(matrix), properties(factor * matrix)}
            turned = np.linalg.inv(basis) @ orthogonal @ basis
            if np.linalg.cond(basis) < 50:
                seen |= {properties(turned), properties(factor * turned)}
    assert seen == set(STATES.values())


def test_what_is_required_holds_of_all_that_remain_and_fewer_demands_leave_more(node):
    families = figures.axioms(list(_families()))._families
    found = {}
    for required in itertools.product([True, False], repeat=4):
        left = node.call("axioms.js", "lookUp", families, required)
        found[required] = left
        exact = STATES[left["kind"]]
        assert all(has for has, wanted in zip(exact, required, strict=True) if wanted)
        assert left["kind"] in left["remain"], "the freest is one of them"
        assert set(left["remain"]) == {
            kind
            for kind, state in STATES.items()
            if all(has for has, wanted in zip(state, required, strict=True) if wanted)
        }
        for kind in left["remain"]:  # and none of them is freer
            assert all(has for has, here in zip(STATES[kind], exact, strict=True) if here)
        for kind, state in STATES.items():  # what is shut out says why, and nothing else does
            why = node.call("axioms.js", "reasons", families, kind, required)
            missed = [wanted and not has for has, wanted in zip(state, required, strict=True)]
            assert len(why) == sum(missed)
            assert bool(why) == (kind not in left["remain"])
        # where one rule brings more than was asked, the machine says why
        assert (left["forced"] is not None) == (exact != required)
    for required, left in found.items():
        for i in range(4):
            fewer = (*required[:i], False, *required[i + 1 :])
            assert set(left["remain"]) <= set(found[fewer]["remain"])
    assert found[(True,) * 4]["remain"] == ["rope"]
    assert found[(False,) * 4]["remain"] == list(STATES)


def test_the_words_of_a_family_follow_its_sliders(node):
    """What is said of the score is read off the scores."""

    def scores(kind, theta, zeta):
        return np.array([node.call("axioms.js", "score", kind, theta, zeta, s) for s in range(49)])

    for kind, theta, zeta in itertools.product(
        STATES, [0, 0.01, 0.3, 1.5, 2.9, 3.13, 3.14, math.pi], [0.85, 0.95, 1, 1.05, 1.15]
    ):
        said = node.call("axioms.js", "meaning", kind, theta, zeta)
        name = node.call("axioms.js", "title", kind, theta, zeta)
        score = scores(kind, theta, zeta)
        if "the same at every distance" in said:
            assert np.ptp(score) < 1e-12
            assert "No encoding" in name
        elif not kind.startswith("counting") and "growth" not in kind:
            assert np.ptp(score) > 0.01
        if "linear in the distance" in said:
            np.testing.assert_allclose(np.diff(score, 2), 0, atol=1e-9)
            assert ("a product of contents, plus s times another" in said) == (score[0] != 0)
        if "changes its sign at every step" in said and not kind.startswith("counting"):
            assert (score[1:] * score[:-1] < 0).all()
        if "odd from even distances" in said and not kind.startswith("counting"):
            plain = score / (zeta ** np.arange(49) if "growth" in kind else 1)
            np.testing.assert_allclose(plain[2:], plain[:-2], atol=1e-9)
        if (wave := re.search(r"a wave of \*{0,2}([\d,.]+)", said)) and kind in ("rope", "oblique"):
            close = math.tau / theta < 2.5
            within = 0.006 if close else 0.06
            assert float(wave[1].replace(",", "")) == pytest.approx(math.tau / theta, abs=within)
            assert "always as high" in said
            highest = np.abs(score[1:]) > 0.98 * np.abs(score).max()
            assert ("seldom meet its crests" in said) == close
            assert not close or highest.mean() < 0.4
        factor = re.search(r"\*\*([\d.,]+)(%?)\*\* (?:times|of it|at dist)", said)
        assert (factor is not None) == ("growth" in kind and zeta != 1)
        if factor:
            size = float(factor[1].replace(",", "")) / (100 if factor[2] else 1)
            power = 47 if kind.startswith("counting") else 48  # s zeta^(s - 1) is what counts
            assert size == pytest.approx(zeta**power, rel=0.04)
            waves = not kind.startswith("counting")
            assert ("grows it" in said, "fades it" in said) == (
                waves and zeta > 1,
                waves and zeta < 1,
            )


@pytest.mark.parametrize(
    ("zeta", "said"),
    [
        (0.9999, "ζ < 1 fades it: **99.5%** of it is left"),
        (0.99999, "ζ < 1 fades it: **99.9%** of it is left"),
        (1.0005, "ζ > 1 grows it: **1.02** times as high"),
        (1.00001, "ζ > 1 grows it: under **1.01** times as high"),
        (1.05, "ζ > 1 grows it: **10.4** times as high"),
    ],
)
def test_what_is_almost_1_is_not_rounded_to_it(node, zeta, said):
    assert said in node.call("axioms.js", "meaning", "growth", 0.3, zeta)


def test_the_name_is_that_of_the_setting(node):
    for kind, theta, zeta, wanted in [
        ("rope", 0.3, 0.95, "RoPE"),
        ("rope", 0, 0.95, "No encoding at all"),
        ("growth", 0.3, 1, "ζ = 1: RoPE"),
        ("growth-mirror", 0.3, 1, "ζ = 1: RoPE with a mirror"),
        ("counting-growth", 0.3, 1, "ζ = 1: Counting"),
        ("counting", 0.3, 1, "Counting"),
        ("counting", 0, 1, "Linear bias"),
        ("growth", 0, 1, "ζ = 1: No encoding at all"),
        ("growth", 0, 0.95, "Growth or decay"),
        ("rope", 3.14, 1, "Half a turn: odd and even only"),
        ("counting-growth", 0, 1, "ζ = 1: Linear bias"),
    ]:
        assert node.call("axioms.js", "title", kind, theta, zeta).startswith(wanted)


def test_a_linear_bias_is_linear_in_the_distance(node):
    scores = [node.call("axioms.js", "score", "counting", 0, 1, s) for s in range(20)]
    np.testing.assert_allclose(np.diff(scores), scores[1] - scores[0], atol=1e-12)
    assert not math.isclose(scores[0], scores[1])
