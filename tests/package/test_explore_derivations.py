"""The mirror of a derivation and the axioms: the page computes what Python computes."""

import itertools
import math
import random

import numpy as np
import pytest
import sympy as sp

from rope_minimal import explore
from rope_minimal.derivation import Derivation, MatrixFunction
from rope_minimal.explore.axioms import AXIOMS, KINDS
from tests.tools.node import Node

# ---- derivations with everything that a chapter's step may hold ---------------------------------


def turn(angle):
    return sp.ImmutableMatrix([[sp.cos(angle), -sp.sin(angle)], [sp.sin(angle), sp.cos(angle)]])


def complex_derivation():
    q, k = sp.symbols("q k", complex=True)
    m, n = sp.symbols("m n", integer=True)
    theta, zeta = sp.Symbol("theta", real=True), sp.Symbol("zeta", positive=True)
    x, t = sp.symbols("x t")
    f_q, f_k = sp.symbols("f_q f_k", cls=sp.Function)
    size = sp.Function("R", positive=True)
    rope = sp.Lambda((x, t), x * sp.exp(sp.I * t * theta))
    model = {f_q: rope, f_k: rope, size: sp.Lambda((x, t), sp.Abs(x))}
    grown = {
        f_q: sp.Lambda((x, t), x * zeta**t * sp.exp(sp.I * t * theta)),
        f_k: sp.Lambda((x, t), x * zeta**-t * sp.exp(sp.I * t * theta)),
    }
    d = Derivation("waves", "Waves", model)
    score = f_q(q, m) * sp.conjugate(f_k(k, n))
    d.given("start", (f_q(q, 0), q), "position 0 changes nothing")
    d.chosen(
        "alike", (f_k(q, m), f_q(q, m)), "the same rule", otherwise="xPos", rival=("xPos", grown)
    )
    d.given("size", (size(q, m), sp.sqrt(q * sp.conjugate(q))), "the length")
    relative = q * sp.conjugate(k) * sp.exp(sp.I * (m - n) * theta)
    d.derived("product", (score, relative), "angles add", follows=["start", "alike"])
    d.derived("score", (sp.re(score), sp.re(relative)), "real parts", follows=["product"])
    d.given("polar", (q, sp.Abs(q) * sp.exp(sp.I * sp.arg(q))), "length and angle")
    ratio = zeta**m / zeta ** (m - 1)
    d.given("ratio", (ratio, zeta), "equal factors")
    d.given("bound", sp.Le(sp.re(score), sp.Abs(q) * sp.Abs(k)), "no score is longer")
    return d


def matrix_derivation():
    m, n = sp.symbols("m n", integer=True)
    theta, x = sp.symbols("theta x", real=True)
    rotation = MatrixFunction("R", 2)
    q = sp.ImmutableMatrix(sp.symbols("q_0 q_1", real=True))
    d = Derivation("turns", "Turns", {rotation: lambda p: turn(p * theta)})
    d.given("add", (rotation(m) * rotation(n), rotation(m + n)), "angles add")
    d.given("column", (turn(x) * q, turn(-x).T * q), "a column")
    d.given("row", (q.T * turn(x), q.T * turn(-x).T), "a row")
    d.given("lone", (turn(x).det(), 1), "its determinant is 1")
    either = sp.Or(sp.Eq(x, x + 0, evaluate=False), sp.Eq(x, -x, evaluate=False), evaluate=False)
    d.given("either", either, "has no two sides")
    return d


MADE = {d.name: d for d in (complex_derivation(), matrix_derivation())}
DATA = {name: explore.mirror(d).children[-1] for name, d in MADE.items()}
STEPS = [(name, step["name"]) for name in MADE for step in DATA[name]._data["steps"]]


def row_of(name, step):
    return next(s for s in DATA[name]._data["steps"] if s["name"] == step)


def random_values(names, rng):
    whole = {"m", "n"}
    return {
        v: rng.randint(0, 30) if v in whole else rng.uniform(0.8, 1.2) if v == "zeta"
        # 0.05 away from zero, where an angle has no direction
        else rng.choice([-1, 1]) * rng.uniform(0.05, 2.0)
        for v in names
    }  # fmt: skip


def in_python(values):
    """Join the channels q_x and q_y to the complex number that Python's evaluate takes."""
    joined = {v: value for v, value in values.items() if not v.endswith(("_x", "_y"))}
    for v in values:
        if v.endswith("_x"):
            joined[v[:-2]] = complex(values[v], values[f"{v[:-2]}_y"])
    return joined


@pytest.fixture(scope="module")
def node():
    process = Node()
    yield process
    process.close()


# ---- the mirror ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_the_two_sides_are_those_of_python_and_agree_on_a_true_step(node, name, step):
    row, rng = row_of(name, step), random.Random(f"{name} {step}")
    for _ in range(25):
        values = random_values(row["variables"], rng)
        ours = node.call("mirror.js", "sides", row, values)
        exact = MADE[name].evaluate(step, in_python(values))
        for side, wanted in zip(("left", "right"), exact, strict=True):
            np.testing.assert_allclose(
                [complex(*entry) for entry in ours[side]], wanted, rtol=1e-9, atol=1e-9
            )
        assert node.call("mirror.js", "holds", row["relation"], ours["left"], ours["right"])
        if row["relation"] == "==":
            assert node.call("mirror.js", "difference", ours["left"], ours["right"]) <= 1e-9


def test_every_kind_of_side_was_tried():
    shapes = {tuple(row_of(*at)["shape"]) for at in STEPS}
    assert shapes == {(1, 1), (2, 2), (2, 1), (1, 2)}
    assert ("turns", "either") not in STEPS  # an "or" has no two sides
    assert row_of("waves", "bound")["relation"] == "<="


FALSE = [
    ("waves", "product", "m and n swapped on the right"),
    ("waves", "product", "θ turned round on the right"),
    ("waves", "product", "conjugate of k forgotten on the right"),
    ("waves", "ratio", "ζ turned into 1/ζ on the right"),
    ("waves", "score", "m and n swapped on the right"),
    ("waves", "alike", "xPos"),
    ("turns", "column", "x turned round on the right"),
    ("turns", "row", "x turned round on the right"),
]


@pytest.mark.parametrize(("name", "step", "variant"), FALSE)
def test_a_false_step_differs(node, name, step, variant):
    row, rng = row_of(name, step), random.Random(3)
    assert variant in node.call("mirror.js", "variants", row)
    apart = []
    for _ in range(10):
        values = random_values(row["variables"], rng)
        ours = node.call("mirror.js", "sides", row, values, variant)
        apart.append(node.call("mirror.js", "difference", ours["left"], ours["right"]))
        fits = node.call("mirror.js", "holds", "==", ours["left"], ours["right"])
        assert fits == (apart[-1] <= 1e-6)
    assert max(apart) > 0.1


def test_a_slip_is_offered_only_where_the_right_side_has_room_for_it(node):
    assert node.call("mirror.js", "variants", row_of("turns", "lone")) == ["as printed"]
    lengths = node.call("mirror.js", "variants", row_of("waves", "size"))
    assert lengths == ["as printed"]


def test_a_rival_satisfies_the_steps_above_its_choice_and_breaks_the_choice(node):
    for step, true in (("start", True), ("alike", False)):
        row = row_of("waves", step)
        if not row["rivals"]:
            assert true  # the rival's formulas give the very same sides
            continue
        values = random_values(row["variables"], random.Random(5))
        ours = node.call("mirror.js", "sides", row, values, "xPos")
        assert node.call("mirror.js", "holds", "==", ours["left"], ours["right"]) is true
    assert row_of("waves", "alike")["rivals"]
    for later in ("size", "product", "score", "polar", "ratio"):
        assert row_of("waves", later)["rivals"] == []


@pytest.mark.parametrize(
    ("relation", "left", "right", "fits"),
    [
        ("==", 1.0, 1.0 + 1e-12, True),
        ("==", 1.0, 1.001, False),
        ("!=", 1.0, 1.0, False),
        ("<=", 1.0, 1.0, True),
        ("<=", 1.1, 1.0, False),
        (">=", 1.1, 1.0, True),
        ("<", 1.0, 1.0, False),
        (">", 1.1, 1.0, True),
    ],
)
def test_relations(node, relation, left, right, fits):
    assert node.call("mirror.js", "holds", relation, [[left, 0]], [[right, 0]]) is fits


def test_arrows_are_the_columns_of_a_matrix(node):
    entries = [[1, 0], [2, 0], [3, 0], [4, 0]]
    assert node.call("mirror.js", "arrowsOf", entries, [2, 2]) == [[1, 3], [2, 4]]
    assert node.call("mirror.js", "arrowsOf", entries[:2], [1, 2]) == [[1, 2]]
    assert node.call("mirror.js", "arrowsOf", entries[:2], [2, 1]) == [[1, 2]]
    assert node.call("mirror.js", "arrowsOf", [[1, 5]], [1, 1]) == [[1, 5]]


def test_the_settings_are_spoken_with_two_channels_as_one_number(node):
    values = {"m": 3, "theta": 0.5, "q_x": 1, "q_y": -2}
    said = node.call("mirror.js", "spoken", list(values), values)
    assert said == ["m = **3**", "θ = **0.50**", "q = **1.00 − 2.00 i**"]


def test_a_slider_for_every_variable_and_no_other():
    title, row, figure = explore.mirror(MADE["waves"]).children
    assert "Waves" in title.value
    choice, *sliders = row.children
    assert [s.description for s in sliders][:3] == [
        "Query position m",
        "Key position n",
        "Turn per position θ (rad)",
    ]
    driven = {cls for s in sliders for cls in s._dom_classes}
    used = {v for step in figure._data["steps"] for v in step["variables"]}
    assert driven == {f"rope-var-{v}" for v in used}
    assert len(choice.options) == len(figure._data["steps"])
    assert figure._start["step"] == len(choice.options) - 1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: explore.mirror("waves"), TypeError, "derivation must be .* got 'waves'"),
        (lambda: explore.mirror(MADE["waves"], step="gone"), ValueError, "step .* got 'gone'"),
        (lambda: explore.mirror(MADE["waves"], steps=["gone"]), ValueError, "step .* got 'gone'"),
        (lambda: explore.mirror(MADE["turns"], step="either"), ValueError, "step .* got 'either'"),
        (lambda: explore.mirror(MADE["turns"], steps=["either"]), ValueError, "no step"),
        (lambda: explore.axioms([]), ValueError, "16 states once, got 0"),
        (lambda: explore.axioms([_family(kind="alibi"), *_families()]), ValueError, "got 'alibi'"),
        (lambda: explore.axioms([*_families(), _family()]), ValueError, "once, got"),
        (lambda: explore.axioms([_family(certificate="")]), ValueError, "certificate of"),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---- the axioms ---------------------------------------------------------------------------------


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


def test_a_state_is_empty_exactly_when_it_has_a_conflict(node):
    for family in _families():
        state = list(family["axioms"])
        conflict = node.call("axioms.js", "conflict", state)
        assert (conflict is not None) == (family["kind"] == "none")


def test_looking_up_a_state_names_every_family_that_has_at_least_its_axioms(node):
    families = explore.axioms(list(_families())).children[-1]._families
    everything = node.call("axioms.js", "lookUp", families, [False] * 4)
    assert (everything["kind"], everything["atLeast"]) == (
        "counting-growth-mirror",
        list(STATES),
    )
    strict = node.call("axioms.js", "lookUp", families, [True] * 4)
    assert (strict["kind"], strict["atLeast"]) == ("rope", ["rope"])
    empty = node.call("axioms.js", "lookUp", families, [True, False, True, False])
    assert (empty["kind"], empty["atLeast"]) == ("none", ["rope", "rope-mirror"])


def test_the_name_is_that_of_the_setting(node):
    for kind, theta, zeta, wanted in [
        ("rope", 0.3, 0.95, "RoPE"),
        ("rope", 0, 0.95, "No encoding at all"),
        ("growth", 0.3, 1, "ζ = 1 neither grows nor decays: RoPE"),
        ("growth-mirror", 0.3, 1, "ζ = 1 neither grows nor decays: RoPE with a mirror"),
        ("counting-growth", 0.3, 1, "ζ = 1 neither grows nor decays: Counts the distance"),
        ("counting", 0.3, 1, "Counts the distance"),
        ("counting", 0, 1, "Linear bias"),
        ("none", 0, 1, "None"),
    ]:
        assert node.call("axioms.js", "title", kind, theta, zeta).startswith(wanted)


def test_a_linear_bias_is_linear_in_the_distance(node):
    scores = [node.call("axioms.js", "score", "counting", 0, 1, s) for s in range(20)]
    np.testing.assert_allclose(np.diff(scores), scores[1] - scores[0], atol=1e-12)
    assert not math.isclose(scores[0], scores[1])


def test_four_switches_and_two_sliders():
    _, row, figure = explore.axioms(list(_families())).children
    assert [type(c).__name__ for c in row.children] == ["Checkbox"] * 4 + ["FloatSlider"] * 2
    assert set(AXIOMS) | {"theta", "zeta"} == set(figure.figure_traits())
    assert set(KINDS) == {*STATES, "none"}
