"""ropebook.proofs: what is true is accepted, what is false is refused with numbers."""

import copy
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path

import mpmath
import pytest
import sympy as sp

from ropebook.proofs import (
    Derivation,
    DerivationError,
    MatrixFunction,
    Step,
    both_sides,
    cancel,
    check_relative,
    equate,
    equation,
    replace_factors,
    substitute,
)
from ropebook.proofs.counterexamples import find_counterexample
from ropebook.proofs.equality import is_zero

q, k = sp.symbols("q k", complex=True)
m, n = sp.symbols("m n", integer=True)
theta = sp.Symbol("theta", real=True)
zeta = sp.Symbol("zeta", positive=True)
R_q, R_k, R_g = (sp.Function(name, positive=True) for name in ("R_q", "R_k", "R_g"))
x, y, t = sp.symbols("x y t")

LENGTHS = {
    R_q: sp.Lambda((x, t), sp.Abs(x)),
    R_k: sp.Lambda((x, t), sp.Abs(x)),
    R_g: sp.Lambda((x, y, t), sp.Abs(x * y)),
}
XPOS = {
    R_q: sp.Lambda((x, t), sp.Abs(x) * zeta**t),
    R_k: sp.Lambda((x, t), sp.Abs(x) * zeta**-t),
    R_g: sp.Lambda((x, y, t), sp.Abs(x * y) * zeta**t),
}


def turn(angle):
    return sp.ImmutableMatrix([[sp.cos(angle), -sp.sin(angle)], [sp.sin(angle), sp.cos(angle)]])


def radial():
    """Lengths: the smallest derivation that has a given, a choice and two derived steps."""
    d = Derivation("radial", "Lengths", LENGTHS)
    d.given("product", (R_q(q, m) * R_k(k, n), R_g(q, k, m - n)), "take moduli, $R > 0$")
    d.given("start-q", (R_q(q, 0), sp.Abs(q)), "position 0 changes nothing")
    d.given("start-k", (R_k(k, 0), sp.Abs(k)), "position 0 changes nothing")
    d.derived(
        "same-place",
        (R_q(q, m) * R_k(k, m), R_g(q, k, 0)),
        "two tokens at one place",
        follows=["product"],
        by=lambda product: substitute(product, {n: m}),
        words="put n = m",
    )
    d.chosen(
        "same-f",
        (R_q(q, m), R_k(q, m)),
        "one function for both",
        otherwise="xPos",
        rival=("xPos", XPOS),
    )
    return d


# --- derived steps ------------------------------------------------------------------------------


def test_produced_step_records_how_and_on_what_it_rests():
    step = radial()["same-place"]
    assert (step.method, step.follows, step.choices) == ("produced", ("product",), ())


def test_step_true_in_the_model_but_not_given_by_the_premises_is_refused():
    d = radial()
    # R does not depend on m in the solution, so no number of the solution betrays this slip;
    # xPos, which satisfies the premises, does
    with pytest.raises(DerivationError) as caught:
        d.derived(
            "slip",
            (R_q(q, m) * R_k(k, -m), R_g(q, k, 0)),
            "wrong",
            follows=["product"],
            by=lambda product: substitute(product, {n: m}),
        )
    assert caught.value.step == "slip"
    assert caught.value.counterexample["zeta"] != 1
    assert caught.value.values[0] != pytest.approx(caught.value.values[1])
    assert "slip" in str(caught.value)
    assert "R_k(k, -m)" in str(caught.value)


def test_false_step_is_refused_with_both_sides_and_numbers_that_differ():
    d = Derivation("dot", "Dot")
    d.given("start", (sp.Abs(q) ** 2, q * sp.conjugate(q)), "length squared")
    with pytest.raises(DerivationError) as caught:
        d.derived(
            "no-conjugate", (sp.re(q * k), sp.re(q * sp.conjugate(k))), "wrong", follows=["start"]
        )
    error = caught.value
    assert error.sides == (sp.re(q * k), sp.re(q * sp.conjugate(k)))
    at = error.counterexample
    assert (at["q"] * at["k"]).real == pytest.approx(error.values[0])
    assert (at["q"] * at["k"].conjugate()).real == pytest.approx(error.values[1])
    assert error.values[0] != pytest.approx(error.values[1])
    assert [s.name for s in d] == ["start"]


def test_symbolic_step_uses_the_definitions_among_its_premises():
    f, s = sp.Function("f"), sp.Function("s", real=True)
    model = {
        f: sp.Lambda((x, t), x * sp.exp(sp.I * t * theta)),
        s: sp.Lambda((x, y, t), sp.re(x * sp.conjugate(y) * sp.exp(sp.I * t * theta))),
    }
    d = Derivation("back", "Back", model)
    d.given("f", (f(x, m), x * sp.exp(sp.I * m * theta)), "definition")
    score = sp.re(f(q, m) * sp.conjugate(f(k, n)))
    relative = sp.re(q * sp.conjugate(k) * sp.exp(sp.I * (m - n) * theta))
    assert d.derived("score", (score, relative), "put f in", follows=["f"]).method == "symbolic"


def test_step_that_sympy_cannot_prove_is_checked_at_many_points():
    d = Derivation("abel", "An identity that sympy has no rule for")
    d.given("start", (sp.cos(theta) ** 2 + sp.sin(theta) ** 2, 1), "circle")
    golden = sp.log(zeta) * sp.log(1 - zeta / 3)
    five = sp.polylog(2, zeta / 3) + sp.polylog(2, 1 - zeta / 3)
    reflected = sp.pi**2 / 6 - sp.log(zeta / 3) * sp.log(1 - zeta / 3)
    step = d.derived("dilogarithm", (five, reflected), "Euler's reflection", follows=["start"])
    assert (step.kind, step.method, step.points) == ("found", "numeric", 60)
    found = d.verdict("dilogarithm")
    assert found.startswith("Found true, not derived: it holds to 20 digits")
    assert found.endswith("at 60 random settings of numbers up to 40.")
    with pytest.raises(DerivationError):
        d.derived("wrong", (five, sp.pi**2 / 6 - golden), "slip", follows=["start"])


# --- every model that satisfies what a step names ------------------------------------------------

GROWS = {R_q: sp.Lambda((x, t), sp.Abs(x) * (1 + t**2))}
GROWS |= {R_k: sp.Lambda((x, t), sp.Abs(x) / (1 + t**2))}


def start_only(others=None):
    d = Derivation("start", "What the start says", LENGTHS, others=others)
    d.given("start", (R_q(q, 0), sp.Abs(q)), "position 0 changes nothing")
    d.given("same", (R_q(q, m), R_k(q, m)), "one function for both")
    return d


@pytest.mark.parametrize("by", [None, lambda _: (R_q(q, m), sp.Abs(q))])
def test_step_that_a_rival_of_any_choice_refutes_is_refused(by):
    d = radial()
    with pytest.raises(DerivationError, match="it does not follow: xPos satisfies all") as caught:
        d.derived("bogus", (R_q(q, m), sp.Abs(q)), "no reason", follows=["product"], by=by)
    assert "zeta" in caught.value.counterexample
    assert [s.name for s in d][-1] == "same-f"


def test_step_that_another_model_refutes_is_refused_unless_it_names_enough():
    d = start_only({"one that grows": GROWS})
    constant = (R_q(q, m), sp.Abs(q))
    with pytest.raises(DerivationError, match="one that grows satisfies all that it rests on"):
        d.derived("bogus", constant, "no reason", follows=["start"])
    # with both named there is no model left to refute it; and still nothing shows that it follows
    step = d.derived("length", constant, "who knows", follows=["start", "same"])
    assert (step.kind, step.method) == ("found", "numeric")
    assert "No other model known here satisfies what it rests on." in d.verdict("length")


def test_a_rival_that_refutes_an_earlier_step_is_told_as_such():
    d = start_only()
    d.derived("length", (R_q(q, m), sp.Abs(q)), "no rival yet", follows=["start"])
    rival = ("one that grows", {**GROWS, R_k: GROWS[R_q]})
    with pytest.raises(DerivationError, match="'length': it does not follow: one that grows"):
        d.chosen("slow", (R_q(q, 1), sp.Abs(q)), "?", otherwise="it grows", rival=rival)


def test_a_card_that_rests_on_what_was_only_found_says_so():
    d = start_only({"the same": {R_q: LENGTHS[R_q]}})
    d.derived("length", (R_q(q, m), sp.Abs(q)), "who knows", follows=["start"])
    assert d.verdict("length").endswith("of the solution, and of the same.")
    d.derived("key", (R_k(q, m), sp.Abs(q)), "put in", follows=["length", "same"], by=lambda a, b: (
        b.rhs, a.rhs))  # fmt: skip
    cards = d._repr_html_()
    assert "Tried with" in cards
    assert "what was only found true: <a" in cards
    assert "Forced" not in cards
    assert (d["key"].kind, d["key"].choices) == ("derived", ())


def test_an_identity_may_rest_on_nothing_but_not_what_only_a_model_knows():
    d = Derivation("alone", "Alone", {q: 1 + sp.I * theta, **LENGTHS})
    circle = d.derived("circle", (sp.cos(theta) ** 2, 1 - sp.sin(theta) ** 2), "Pythagoras")
    assert (circle.method, circle.follows, circle.choices) == ("symbolic", (), ())
    length = (sp.re(q * sp.conjugate(q)), sp.Abs(q) ** 2)  # of any q, the model's included
    assert d.derived("length", length, "the length").method == "symbolic"
    assert "Rests on no other step." in d._repr_html_()
    assert "Forced" not in d._repr_html_()
    for statement in [(R_q(k, m), sp.Abs(k)), (q, 1 + sp.I * theta)]:
        for by in [None, lambda statement=statement: statement]:
            with pytest.raises(ValueError, match="must name its premises"):
                d.derived("known", statement, "the model says so", by=by)


def test_a_rival_may_be_one_of_the_others_but_no_third_model_of_that_name():
    d = Derivation("radial", "Lengths", LENGTHS, others={"xPos": XPOS})
    d.given("product", (R_q(q, m) * R_k(k, n), R_g(q, k, m - n)), "take moduli")
    d.chosen("same", (R_q(q, m), R_k(q, m)), "?", otherwise="xPos", rival=("xPos", XPOS))
    with pytest.raises(ValueError, match="already has another model 'xPos'"):
        d.chosen("kept", (R_q(q, m), sp.Abs(q)), "?", otherwise="?", rival=("xPos", GROWS))


def test_a_definition_counts_only_for_values_of_its_kind():
    g = sp.Function("g")
    # true for whole m, and the solution could not tell; for other numbers nothing was said
    d = Derivation("whole", "Whole positions", {g: sp.Lambda(t, 1)})
    d.given("g", (g(m), 1), "for every position")
    assert d.derived("sum", (g(m + n), 1), "a position", follows="g").method == "symbolic"
    assert d.derived("half", (g(theta), 1), "no position", follows="g").kind == "found"
    # one value of a function is no definition of the function
    one = sp.Symbol("one", positive=True)
    d = Derivation("value", "One value", {g: sp.Lambda(t, 1), one: 1})
    d.given("one", (g(one), one), "at 1 it is 1")
    assert d.derived("all", (g(zeta), 1), "everywhere", follows="one").kind == "found"


# --- matrices of any size ------------------------------------------------------------------------

d_size = sp.Symbol("d", integer=True, positive=True)
f_q, f_k = (MatrixFunction(name, d_size, 1) for name in ("f_q", "f_k"))
A, B = (MatrixFunction(name, d_size) for name in "AB")
vx, vy, e_j = (sp.MatrixSymbol(name, d_size, 1) for name in ("x", "y", "e_j"))
score = sp.Function("s", real=True)
j = sp.Symbol("j", integer=True)


def in_channels(query, key, size):
    """An encoding by matrices, of vectors with ``size`` channels."""
    return {
        d_size: size,
        A: query,
        B: key,
        f_q: lambda v, p: query(p) * v,
        f_k: lambda v, p: key(p) * v,
        score: lambda v, w, p: (v.T * query(p).T * w)[0, 0],
        e_j: sp.ImmutableMatrix([sp.KroneckerDelta(sp.Mod(j, size), row) for row in range(size)]),
    }


def two_channels_and_a_mirror(p):
    return sp.diag(turn(p * theta), (-1) ** p).as_immutable()


def shear(p):
    return sp.ImmutableMatrix([[zeta**p, p * zeta**p], [0, zeta**p]])


def linearity():
    """Whatever keeps the promise is linear: in any number of channels, tried with 3 and with 2."""
    solution = in_channels(two_channels_and_a_mirror, two_channels_and_a_mirror, 3)
    growing = in_channels(shear, lambda p: shear(-p).T, 2)
    d = Derivation("main", "In d channels", solution, others={"a shear": growing})
    d.given("promise", (f_q(vx, m).T * f_k(vy, n), score(vx, vy, m - n)), "the distance only")
    d.given("start-q", (f_q(vx, 0), vx), "position 0 changes nothing")
    d.given("start-k", (f_k(vy, 0), vy), "position 0 changes nothing")
    d.derived(
        "one-place",
        (f_q(vx, m).T * f_k(vy, m), vx.T * vy),
        "at distance 0 both are the same number",
        follows=["promise", "start-q", "start-k"],
        by=lambda e, of_q, of_k: substitute(
            equate(substitute(e, {n: m}), substitute(e, {m: 0, n: 0})),
            {of_q.lhs: of_q.rhs, of_k.lhs: of_k.rhs},
        ),
    )
    d.given("columns-q", (A(m) * e_j, f_q(e_j, m)), "the columns of $A$")
    d.given("columns-k", (B(m) * e_j, f_k(e_j, m)), "the columns of $B$")
    d.derived(
        "rows",
        (B(m).T * f_q(vx, m), vx),
        "compare row by row",
        follows=["one-place", "columns-k"],
        by=lambda e, columns: both_sides(
            cancel(substitute(substitute(e, {vy: e_j}), {columns.rhs: columns.lhs}), e_j),
            lambda side: side.T.doit(),
        ),
    )
    d.derived(
        "inverse",
        (B(m).T * A(m), sp.Identity(d_size)),
        "column by column",
        follows=["rows", "columns-q"],
        by=lambda e, columns: cancel(
            substitute(substitute(e, {vx: e_j}), {columns.rhs: columns.lhs}), e_j
        ),
    )
    return d


def test_a_theorem_in_d_channels():
    d = linearity()
    d.given("square", (A(m) * B(m).T, sp.Identity(d_size)), "of square matrices, so the other way")
    step = d.derived(
        "linear",
        (f_q(vx, m), A(m) * vx),
        "**linear**",
        follows=["rows", "square"],
        by=lambda e, inverse: (replace_factors(A(m) * e.lhs, inverse), A(m) * e.rhs),
    )
    assert (step.kind, step.method, step.choices) == ("derived", "produced", ())
    assert d.refuters(step.follows) == ("a shear",)
    assert r"f_{q}{\left(x, m\right)}" in d.latex("linear")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ((A(m).T * A(m), sp.Identity(d_size)), "a shear satisfies all"),  # true in the solution
        ((A(m) * A(n), A(m - n)), "the two sides differ"),
        ((A(m) * vx, vx.T), "differ in shape"),
        ((vx.T * vy, vx), "differ in shape"),
        ((vx.T * vy, score(vx, vy, 1)), "the two sides differ"),
    ],
    ids=str,
)
def test_a_false_step_in_d_channels_is_refused(statement, words):
    with pytest.raises(DerivationError, match=words):
        linearity().derived("wrong", statement, "wrong", follows=["inverse"])


def test_definitions_of_a_vector_function_are_put_in():
    d = Derivation("put", "Put in", in_channels(shear, lambda p: shear(-p).T, 2))
    d.given("linear", (f_q(vx, m), A(m) * vx), "linear")
    doubled = (f_q(2 * vx + vy, n), 2 * (A(n) * vx) + A(n) * vy)
    assert d.derived("twice", doubled, "linear", follows="linear").method == "symbolic"


def test_a_number_is_its_own_transpose():
    d = Derivation("turned", "Turned", in_channels(shear, lambda p: shear(-p).T, 2))
    d.given("linear", (f_q(vx, m), A(m) * vx), "linear")
    turned = (vy.T * f_q(vx, m), vx.T * A(m).T * vy)
    assert d.derived("turned", turned, "transposed", follows="linear").method == "symbolic"


def test_cancel_asks_for_the_vector_at_one_end_and_nowhere_else():
    assert cancel(equation(A(m) * vx, B(m) * vx), vx) == equation(A(m), B(m))
    assert cancel(equation(vx.T * A(m), vx.T), vx) == equation(A(m), sp.Identity(d_size))
    for left, right in [
        (A(m) * vx, B(m) * vy),
        (A(m) * vx, f_q(vx, m)),
        (f_q(vx, m) * vx.T * vx, vy * vx.T * vx),
    ]:
        with pytest.raises(ValueError, match="x must be the last or the first factor"):
            cancel(equation(left, right), vx)


def test_equate_asks_for_the_same_right_side():
    promise = equation(f_q(vx, m).T * f_k(vy, n), score(vx, vy, m - n))
    there, start = substitute(promise, {n: m}), substitute(promise, {m: 0, n: 0})
    assert equate(there, start) == equation(there.lhs, start.lhs)
    wrong = equation(promise.lhs, score(vx, vy, m + n))  # one place is then not like another
    with pytest.raises(ValueError, match="the right sides must be the same"):
        equate(substitute(wrong, {n: m}), substitute(wrong, {m: 0, n: 0}))


def test_a_size_without_a_number_is_named():
    d = Derivation("sizeless", "No size", {A: shear})
    with pytest.raises(ValueError, match="no number for the size d"):
        d.given("unit", (sp.Identity(d_size) * vx, vx), "the identity")


# --- what the numbers of a statement may be ------------------------------------------------------


def from_theta():
    d = Derivation("far", "Near, far and zero")
    d.given("start", (theta, theta), "a number")
    return d


@pytest.mark.parametrize(
    "statement",
    [
        (sp.arg(sp.exp(sp.I * theta)), theta),
        (sp.atan2(sp.sin(theta), sp.cos(theta)), theta),
        (sp.log(sp.exp(sp.I * theta)), sp.I * theta),
        (sp.acos(sp.cos(theta)), sp.Abs(theta)),
        (sp.sin(10 * sp.pi * theta), 0),
        (sp.exp(20 * sp.pi * sp.I * theta), 1),
        sp.Ne(theta, 0),
        (sp.Heaviside(theta - 3), 0),
        (sp.Heaviside(m - 20), 0),
        (sp.Heaviside(zeta - 3), 0),
        sp.Ne(theta + sp.Abs(q), 0),
        (sp.exp(sp.exp(theta)) * sp.sin(10 * sp.pi * theta), 0),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["given", "derived"])
def test_statement_that_fails_only_far_away_or_at_zero_is_refused(kind, statement):
    step = Step("wrong", kind, statement, "wrong", follows=("start",))
    with pytest.raises(DerivationError) as caught:
        from_theta().add(step)
    left, right = caught.value.values
    assert (left == pytest.approx(right)) == isinstance(statement, sp.Ne)
    # what is shown is a counterexample: each side has its value there
    at = {s: caught.value.counterexample.get(s.name, 0) for s in (theta, zeta, m, q)}
    for side, value in zip(caught.value.sides, (left, right), strict=True):
        assert complex(sp.N(side.subs(at))) == pytest.approx(complex(value), abs=1e-6)
    assert "  at    " in str(caught.value)


HUGE = sp.exp(sp.exp(sp.exp(theta)))


@pytest.mark.parametrize(
    "statement",
    [
        sp.Gt(zeta, 0, evaluate=False),  # a positive symbol is never 0
        # undefined at 0: no angle, division by zero, infinity
        equation(sp.Abs(q) * sp.exp(sp.I * sp.arg(q)), q),
        equation(sp.exp(sp.I * sp.arg(q)), q / sp.Abs(q)),
        equation(sp.exp(2 * sp.I * sp.atan2(sp.im(q), sp.re(q))), q / sp.conjugate(q)),
        sp.Ne(sp.arg(-q), sp.arg(q)),
        sp.Ne(sp.atan2(-sp.im(q), -sp.re(q)), sp.atan2(sp.im(q), sp.re(q))),
        equation(sp.Abs(theta) * sp.sign(theta) / theta, 1),
        equation(sp.log(sp.Abs(theta * zeta)), sp.log(sp.Abs(theta)) + sp.log(zeta)),
        equation(sp.gamma(theta + 1), theta * sp.gamma(theta)),
        # large: the digits cancel, do not suffice, or are too many
        equation(sp.cosh(theta) ** 2 - sp.sinh(theta) ** 2, 1),
        equation(sp.cosh(m * theta) ** 2 - sp.sinh(m * theta) ** 2, 1),
        sp.Ne(sp.exp(-(theta**2)), 0, evaluate=False),
        sp.Lt(sp.tanh(2 * theta), 1, evaluate=False),
        equation(sp.cos(HUGE) ** 2 + sp.sin(HUGE) ** 2, 1),
    ],
    ids=str,
)
def test_points_without_a_number_are_no_counterexample_and_are_made_up_for(statement):
    assert find_counterexample(statement, {}, 60) == (None, 60)


def test_infinity_is_no_agreement():
    nothing = sp.floor(sp.cos(theta) ** 2 / 2)  # 0, but sympy does not see it
    with pytest.raises(ValueError, match="no setting could be evaluated"):
        find_counterexample(sp.Lt(sp.log(nothing), theta**2), {}, 12)


@pytest.mark.parametrize(
    "statement",
    [equation(theta**3, theta), equation(sp.re(q), q), equation(zeta, sp.cos(zeta))],
    ids=str,
)
def test_counterexample_is_short_where_there_is_a_short_one(statement):
    found, _ = find_counterexample(statement, {}, 60)
    for value in found.setting.values():
        for part in (complex(value).real, complex(value).imag):
            assert abs(part) <= 2.4
            assert 10 * part == pytest.approx(round(10 * part))


LATE = [
    (theta, theta + sp.Rational(1, 10**16)),
    (10**20 + theta, sp.Integer(10) ** 20),
    (sp.exp(100 * theta) - sp.sinh(100 * theta), sp.cosh(100 * theta) + sp.Rational(1, 10**16)),
]


@pytest.mark.parametrize("statement", LATE, ids=str)
def test_statement_that_fails_in_a_late_digit_only_is_refused(statement):
    with pytest.raises(DerivationError, match="differ"):
        from_theta().derived("wrong", statement, "wrong", follows="start")


@pytest.mark.parametrize(
    "statement",
    [
        sp.Le(theta, theta - sp.Rational(1, 10**25), evaluate=False),
        sp.Ge(theta, theta + sp.Rational(1, 10**25), evaluate=False),
    ],
    ids=str,
)
def test_an_inequality_that_fails_in_a_late_digit_only_is_refused(statement):
    with pytest.raises(DerivationError, match="differ"):
        from_theta().derived("wrong", statement, "wrong", follows="start")


def test_an_inequality_of_equal_sides_is_not_refused_for_its_rounding():
    bell = sp.cosh(theta) - sp.sinh(theta)
    for relation in (sp.Le, sp.Ge):
        equal = relation(bell, sp.exp(-theta), evaluate=False)
        assert from_theta().derived("equal", equal, "true", follows="start")


def test_true_statement_whose_digits_cancel_is_not_refused():
    statement = (sp.cosh(100 * theta) ** 2 - sp.sinh(100 * theta) ** 2, 1)
    assert from_theta().derived("circle", statement, "true", follows="start").kind == "derived"


@pytest.mark.parametrize("power", [sp.Rational(1, 2), sp.Rational(5, 2), m + sp.Rational(1, 2), t])
def test_power_of_a_matrix_that_is_no_integer_is_refused(power):
    root = sp.MatPow(turn(theta), power, evaluate=False)
    with pytest.raises(ValueError, match="the power of a matrix must be an integer, got"):
        from_theta().derived("root", (root, sp.eye(2)), "truncated", follows="start")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ((sp.zoo + theta, theta), "has no numbers"),
        ((sp.nan, theta), "has no numbers"),
        ((sp.zeros(0, 0), sp.zeros(0, 0)), "has no numbers"),
        ((sp.DiracDelta(theta) + theta, theta), "DiracDelta"),
        ((sp.Sum(1 / t**2, (t, 1, 10**9)), sp.pi**2 / 6), "more terms than can be added up"),
    ],
    ids=str,
)
def test_statement_without_numbers_is_named(statement, words):
    with pytest.raises(ValueError, match=words):
        from_theta().derived("odd", statement, "?", follows="start")


def test_statement_too_long_to_multiply_out_is_not_called_derived():
    factors = sp.prod([sp.cos(i * theta) + sp.I * sp.sin(i * theta) for i in range(25)])
    step = from_theta().derived("long", (factors, sp.exp(300 * sp.I * theta)), "?", follows="start")
    assert step.kind == "found"


def test_parts_of_a_complex_symbol_are_no_symbol_of_the_reader():
    q_x = sp.Symbol("q_x", real=True)
    assert is_zero(sp.re(q) - (q + sp.conjugate(q)) / 2)
    assert not is_zero(sp.re(q) - q_x)
    assert not is_zero(sp.re(sp.log(theta)) - sp.log(theta))  # the logarithm of -1 is not real


def test_two_symbols_of_one_name_are_refused():
    other = sp.Symbol("theta", positive=True)
    with pytest.raises(ValueError, match="two different symbols are called theta"):
        from_theta().given("both", (theta, other), "which?")


def test_matrix_statement_with_a_position_matrix():
    R = MatrixFunction("R", 2)
    d = Derivation("group", "Group", {R: lambda p: turn(p * theta)})
    d.given("relative", (R(m).T * R(n), R(n - m)), "requirement")
    d.derived(
        "orthogonal",
        (R(m).T * R(m), R(0)),
        "put n = m",
        follows=["relative"],
        by=lambda e: substitute(e, {n: m}),
    )
    with pytest.raises(DerivationError):
        d.derived(
            "no-transpose",
            (R(m) * R(m), R(0)),
            "wrong",
            follows=["relative"],
            by=lambda e: substitute(e, {n: m}),
        )


def test_alternatives_are_compared_as_a_set():
    c, s = sp.cos(theta), sp.sin(theta)
    A = sp.MatrixSymbol("A", 2, 2)
    flip = sp.ImmutableMatrix([[c, s], [s, -c]])
    either = sp.Or(equation(A, turn(theta)), equation(A, flip), evaluate=False)
    d = Derivation("o2", "O(2)", {A: turn(theta)})
    d.given("orthogonal", (A * A.T, sp.eye(2)), "c1")
    make = lambda _: sp.Or(equation(A, flip), equation(A, turn(theta)), evaluate=False)  # noqa: E731
    assert d.derived("two", either, "solve", follows=["orthogonal"], by=make).method == "produced"
    wrong = sp.Or(equation(A, turn(theta)), equation(A, -flip), evaluate=False)
    with pytest.raises(DerivationError):
        d.derived("wrong", wrong, "solve", follows=["orthogonal"], by=make)


def test_unlike_shapes_are_refused():
    d = Derivation("shapes", "Shapes")
    d.given("start", (q, q), "q")
    with pytest.raises(DerivationError, match="shape"):
        d.derived("row", (turn(theta)[0, :], turn(theta)[:, 0]), "wrong", follows=["start"])


# --- given and chosen ---------------------------------------------------------------------------


def test_contradictory_assumptions_are_refused():
    d = radial()
    with pytest.raises(DerivationError, match="breaks it"):
        d.given("too-much", (R_q(q, m), sp.Abs(q) + m), "grows")


def test_choice_whose_rival_is_no_rival_is_refused():
    d = Derivation("radial", "Lengths", LENGTHS)
    d.given("start-q", (R_q(q, 0), sp.Abs(q)), "position 0 changes nothing")
    with pytest.raises(DerivationError, match="no choice"):
        d.chosen("empty", (R_q(q, m), R_q(q, m)), "?", otherwise="nothing", rival=("xPos", XPOS))


def test_rival_that_breaks_an_earlier_step_is_refused():
    d = Derivation("radial", "Lengths", LENGTHS)
    d.given("product", (R_q(q, m) * R_k(k, n), R_g(q, k, m - n)), "take moduli")
    lonely = {R_q: sp.Lambda((x, t), sp.Abs(x) * zeta**t)}
    with pytest.raises(DerivationError, match="'half xPos'"):
        d.chosen(
            "half",
            (R_q(q, m), sp.Abs(q)),
            "norm kept",
            otherwise="?",
            rival=("half xPos", lonely),
        )


def test_choice_without_an_alternative_is_refused():
    with pytest.raises(ValueError, match="must say what the other choice gives"):
        radial().add(Step("free", "chosen", (R_q(q, m), sp.Abs(q)), "norm kept"))


def test_step_lists_the_choices_it_depends_on():
    d = radial()
    step = d.derived(
        "square",
        (R_q(q, m) * R_q(k, m), R_g(q, k, 0)),
        "one function",
        follows=["same-place", "same-f"],
        by=lambda e, same: substitute(e, {R_k(k, m): R_q(k, m)}),
    )
    assert step.choices == ("same-f",)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda d: d.given("product", (q, q), "again"), ValueError, "already has a step"),
        (lambda d: d.given("a b", (q, q), "space"), ValueError, "letters, digits and dashes"),
        (lambda d: d.given("new", (q, q), ""), ValueError, "needs a reason"),
        (lambda d: d.given("new", (q, q), 3), ValueError, "needs a reason"),
        (lambda d: d.given("new", sp.Eq(q, q), "true"), ValueError, "evaluated to True"),
        (lambda d: d.given("new", sp.Eq(1, 2), "false"), DerivationError, "false as written"),
        (lambda d: d.given("new", 3, "?"), TypeError, "got 3"),
        (
            lambda d: d.derived("new", (R_q(q, m), R_q(q, 0)), "?"),
            ValueError,
            "must name its premises",
        ),
        (lambda d: d.derived("new", (q, q), "?", follows=["none"]), KeyError, "none"),
        (lambda d: d.derived("new", (q, q), "?", follows=3), TypeError, "follows must be names"),
        (lambda d: d.derived("new", (q, q), "?", by="no"), TypeError, "by must be a function"),
        (
            lambda d: d.chosen("new", (q, q), "?", otherwise="x", rival="ab"),
            TypeError,
            "rival must be a name and its formulas, got 'ab'",
        ),
        (
            lambda d: d.chosen("new", (q, q), "?", otherwise=3),
            ValueError,
            "must say what the other",
        ),
        (lambda d: d.add("s"), TypeError, "step must be a Step, got 's'"),
        (lambda d: d.given(None, (q, q), "?"), ValueError, "step name must be letters"),
        (lambda d: d.given([1], (q, q), "?"), ValueError, "step name must be letters"),
        (lambda d: Derivation("name", "?", 3), TypeError, "model must give formulas, got 3"),
        (lambda d: MatrixFunction("R", "2"), ValueError, "rows must be a positive integer"),
        (lambda d: d.given("new", (sp.Function("h")(q), q), "?"), ValueError, "no formula for h"),
        (lambda d: d.add(Step("new", "guess", (q, q), "?")), ValueError, "got 'guess'"),
        (lambda d: Derivation("bad name", "?"), ValueError, "'bad name'"),
        (lambda d: Derivation(None, "?"), ValueError, "got None"),
        (lambda d: Derivation("name", None), ValueError, "title must be a text, got None"),
        (lambda d: Derivation("name", "?", others={"x": 3}), TypeError, "for 'x', got 3"),
        (lambda d: Derivation("name", "?", others=[1]), TypeError, "others must be models"),
        (lambda d: MatrixFunction(None, 2), ValueError, "name must be a text, got None"),
        (lambda d: MatrixFunction("R", 2, 0.5), ValueError, "columns must be a positive integer"),
        (lambda d: MatrixFunction("R", m), ValueError, "rows must be a positive integer"),
        (lambda d: MatrixFunction("R", 2)(), ValueError, "R needs a position"),
        (lambda d: MatrixFunction("R", 0), ValueError, "got 0"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=re.escape(words)):
        call(radial())


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda x: 10**25 + x, lambda x: sp.Integer(10) ** 25),
        (lambda x: x / 10**30, lambda x: 2 * x / 10**30),
        (lambda x: sp.exp(-100 - x**2), lambda x: sp.Integer(0)),
        (lambda x: sp.exp(sp.pi * sp.sqrt(163)), lambda x: sp.Integer(262537412640768744)),
    ],
    ids=["large", "small", "almost zero", "almost an integer"],
)
def test_sides_that_differ_past_twenty_digits_or_below_them_are_not_equal(left, right):
    x = sp.Symbol("x", real=True)
    with pytest.raises(DerivationError, match="the two sides differ"):
        Derivation("d", "?").derived("new", (left(x), right(x)), "false")


def test_an_error_can_be_copied_and_sent_to_another_process():
    with pytest.raises(DerivationError) as caught:
        radial().given("new", (sp.cos(2 * m), 2 * sp.cos(m) ** 2), "false")
    for again in (copy.copy(caught.value), pickle.loads(pickle.dumps(caught.value))):
        assert str(again) == str(caught.value)
        assert again.step == "new"
        assert again.counterexample == caught.value.counterexample


def test_threads_leave_the_precision_of_mpmath_as_it_was():
    x, before = sp.Symbol("x", real=True), mpmath.mp.dps

    def check(number):
        step = (sp.cos(number * x), sp.cos(number * x) + sp.Rational(1, 10**19))
        with pytest.raises(DerivationError):
            Derivation("d", "?").derived("new", step, "false")

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(check, range(1, 25))) == [None] * 24
    assert mpmath.mp.dps == before


# --- rendering ----------------------------------------------------------------------------------


class Cards(HTMLParser):
    """Collects ids, links and whether every element is closed."""

    def __init__(self):
        super().__init__()
        self.ids, self.links, self.open, self.kinds = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.open.append(tag)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if "href" in attrs:
            self.links.append(attrs["href"])
        if "data-kind" in attrs:
            self.kinds.append(attrs["data-kind"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_is_well_formed_with_stable_anchors_and_no_dead_link():
    cards = Cards()
    cards.feed(radial()._repr_html_())
    assert cards.open == []
    assert len(set(cards.ids)) == len(cards.ids)
    assert {"radial", "radial-product", "radial-same-place"} <= set(cards.ids)
    assert {link[1:] for link in cards.links} <= set(cards.ids)
    assert cards.kinds == ["given", "given", "given", "derived", "chosen"]


def test_html_tells_the_whole_story_without_a_script():
    text = radial()._repr_html_()
    assert "<script" not in text
    for words in ("two tokens at one place", "put n = m", "xPos", "Forced", r"\(R &gt; 0\)"):
        assert words in text


def shown(*values):
    """What a page with these last values of cells holds, and its cards' names in order."""
    text = "\n".join(value._repr_html_() for value in values)
    cards = Cards()
    cards.feed(text)
    assert cards.open == []
    assert len(set(cards.ids)) == len(cards.ids)
    assert {link[1:] for link in cards.links} <= set(cards.ids)
    return text, re.findall(r'data-step="([\w-]+)"', text)


def test_page_has_each_card_once_beside_its_prose_or_in_one_list():
    names = [s.name for s in radial()]
    assert shown(radial())[1] == names
    d = radial()
    assert shown(d["start-q"], d["same-place"], d["same-f"])[1] == names
    d = radial()
    text, cards = shown(d["start-q"], d)
    assert cards == names
    assert text.count('class="derivation-title"') == text.count("<style>") - 1 == 1
    assert '<a href="#radial">Lengths</a>: steps 1 to 2 stand above' in text
    assert 'start="3"' in text
    d = radial()
    text, cards = shown(d["same-f"], d)
    assert cards == names
    assert "steps 1 to 5 stand above" in text


def test_list_shown_again_is_whole_and_a_step_shown_again_has_no_anchor():
    d = radial()
    assert d._repr_html_() == d._repr_html_()  # a cell of Jupyter that is run again
    text, cards = shown(d["start-q"], d["start-q"], d["product"])
    assert cards == ["product", "start-q", "start-q", "product"]
    assert text.count('id="radial-product"') == text.count('id="radial-start-q"') == 1
    assert "R_q(q, m) = R_k(q, m)" in repr(d["same-f"])


def test_html_marks_what_the_step_changed():
    assert r"\class{derivation-new}" in radial()["same-place"]._repr_html_()


def test_latex_and_plain_text():
    d = radial()
    assert r"\class" not in d._repr_latex_()
    assert d.latex("start-q") == r"R_{q}{\left(q,0 \right)} = \left|{q}\right|"
    assert "[derived] same-place" in str(d)


# --- propose your own ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        (lambda v, p: v * sp.exp(sp.I * p * theta),) * 2,
        (
            lambda v, p: v * zeta**p * sp.exp(sp.I * p * theta),
            lambda v, p: v * zeta**-p * sp.exp(sp.I * p * theta),
        ),
        (lambda v, p: sp.re(v) + sp.I * (-1) ** p * sp.im(v),) * 2,
        (lambda v, p: v * sp.exp(sp.I * p * sp.Symbol("w")),) * 2,
    ],
    ids=["RoPE", "xPos", "parity", "undeclared symbol"],
)
def test_relative_encodings_are_recognised(f):
    answer = check_relative(*f)
    assert answer
    assert answer.method == "symbolic"
    assert not answer.trivial


@pytest.mark.parametrize(
    "f",
    [
        lambda v, p: v * sp.exp(sp.I * p**2 * theta),
        lambda v, p: v * zeta**p,
        lambda v, p: v + p,
        lambda v, p: v * sp.exp(sp.I * p * theta) + p,
        lambda v, p: v * sp.exp(sp.I * sp.sin(p)),
        lambda v, p: v * sp.exp(sp.I * sp.Mod(p, 5)),  # Mod(i m, 5 i), for sympy
        lambda v, p: v * sp.exp(sp.I * theta * sp.Mod(p, 3)),
    ],
)
def test_counterexample_really_is_one(f):
    answer = check_relative(f)
    assert not answer
    at = answer.counterexample
    values = {symbol: at[symbol.name] for symbol in (theta, zeta) if symbol.name in at}

    def score(a, b):
        left = f(sp.sympify(at["q"]), sp.Integer(a))
        right = f(sp.sympify(at["k"]), sp.Integer(b))
        return float(sp.N(sp.re(sp.N((left * sp.conjugate(right)).subs(values)))))

    assert at["shift"] != 0
    assert score(at["m"], at["n"]) == pytest.approx(at["before"])
    after = score(at["m"] + at["shift"], at["n"] + at["shift"])
    assert after == pytest.approx(at["after"])
    assert at["before"] != pytest.approx(at["after"])
    assert "Not relative" in str(answer)


@pytest.mark.drawn(3, among="long")
def test_positions_that_wrap_with_the_turn_are_relative():
    assert check_relative(lambda v, p: v * sp.exp(2 * sp.pi * sp.I * sp.Mod(p, 5) / 5))


def test_no_encoding_is_relative_but_called_trivial():
    assert check_relative(lambda v, p: v).trivial
    assert "ignores position" in str(check_relative(lambda v, p: v))


def test_matrices_turning_one_side_the_other_way_fails():
    assert check_relative(lambda v, p: turn(p * theta) * v, dim=2)
    assert check_relative(lambda v, p: turn(-p * theta) * v, dim=2)
    one_sided = check_relative(
        lambda v, p: turn(p * theta) * v, lambda v, p: turn(-p * theta) * v, dim=2
    )
    assert not one_sided


def test_bad_proposals_are_named():
    with pytest.raises(TypeError, match="f_q must return a sympy expression"):
        check_relative(lambda v, p: None)
    with pytest.raises(TypeError, match="f_q must be a function, got 3"):
        check_relative(3)
    with pytest.raises(TypeError, match="f_q must return a sympy expression"):
        check_relative(lambda v, p: sp.Matrix([v, v]))
    with pytest.raises(TypeError, match="column of length 2"):
        check_relative(lambda v, p: v.T, dim=2)
    for seed in (None, True, "abc", [1], 7.0):
        with pytest.raises(TypeError, match="seed must be an integer, got"):
            check_relative(lambda v, p: v, seed=seed)
    with pytest.raises(ValueError, match="dim must be a positive integer or None, got 0"):
        check_relative(lambda v, p: v, dim=0)


@pytest.mark.parametrize("dim", [None, 2])
def test_text_is_no_proposal(dim):
    with pytest.raises(TypeError, match=r"f_q must return .*, got 'q"):
        check_relative(lambda v, p: "q*exp(I*m**2)", dim=dim)
    with pytest.raises(TypeError, match=r"f_k must return .*, got 'k"):
        check_relative(lambda v, p: v, lambda v, p: "k", dim=dim)


@pytest.mark.parametrize("name", ["m", "n", "shift", "q", "k", "before"])
@pytest.mark.parametrize(
    "own", [{}, {"integer": True, "nonnegative": True}, {"positive": True}, {"complex": True}]
)
def test_own_symbol_with_a_taken_name_is_named(name, own):
    with pytest.raises(ValueError, match=f"the name {name} is taken"):
        check_relative(lambda v, p: v * sp.exp(sp.I * sp.Symbol(name, **own) * p))
    with pytest.raises(ValueError, match="the name q1 is taken"):
        check_relative(lambda v, p: v * sp.Symbol("q1", **own), dim=2)


def test_answer_shows_plain_symbols():
    answer = check_relative(lambda v, p: v * sp.exp(sp.I * p**2 * sp.Symbol("w")))
    assert sorted(map(str, answer.score.free_symbols)) == ["k", "m", "n", "q", "w"]
    assert "_" not in str(answer)
    assert re.search(r"At k = \S+, q = \S+, w = \S+:\n  score\(m = \d+, n = \d+\)", str(answer))


def test_only_sympy_and_the_standard_library_are_imported():
    root = Path(__file__).resolve().parents[2]
    code = (
        "import sys, ropebook.proofs;"
        "print([m for m in ('numpy', 'torch', 'matplotlib', 'anywidget') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert out.stdout.strip() == "[]"


def test_both_sides_keeps_the_equation_unevaluated():
    assert both_sides(equation(q, q), sp.conjugate) == equation(sp.conjugate(q), sp.conjugate(q))
