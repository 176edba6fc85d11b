"""Break every derived step of every derivation in the book: each break must be noticed.

The notebooks are executed as they are, without their pictures and widgets. Every derivation that
they make is collected. Each derived step is then written down wrong in every way listed in
``mutants``, and must be refused. A wrong step that is still true is named in ``EQUIVALENT``.

The same is done to what the step rests on: from a false version of a premise the step must not
come out. A premise of which no false version does any harm is idle: the step does not need it. It
is named in ``IDLE``, or there is no reason to name it in the step.
"""

import ast
import contextlib
import dataclasses
import functools
import io
import json
from pathlib import Path

import pytest
import sympy as sp
from sympy.core.relational import Relational
from sympy.matrices.matrixbase import MatrixBase

from ropebook import proofs
from ropebook.proofs import Derivation, DerivationError, equation
from ropebook.proofs.statements import MatrixAt, is_matrix

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
PICTURES_AND_TORCH = {"plt", "figures", "torch", "palette", "ax", "fig"}

# derivation/step/mutation -> why the mutant says the same thing
COMMUTE = "turns in one plane commute"
EQUIVALENT = {
    "dot-product/real-part/left: swap q and k": "the dot product is symmetric",
    "rows-and-columns/both-reversed/left: reverse product in R[-m*theta].T*R[-n*theta]": COMMUTE,
    "rows-and-columns/both-reversed/right: reverse product in F*R[m*theta].T*R[n*theta]*F": COMMUTE,
    "rows-and-columns/one-reversed/left: reverse product in R[m*theta].T*R[-n*theta]": COMMUTE,
    "rows-and-columns/one-reversed/left: swap m and n": "the score depends on m + n: its point",
}

# derivation/step/premise -> why the step names it though it comes out without it
IDLE: dict[str, str] = {}


# --- collecting ---------------------------------------------------------------------------------


def code_cells(notebook):
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"])


def without_pictures(source):
    """Drop the statements that draw, show widgets or need torch; keep the sympy ones."""
    kept = []
    for statement in ast.parse(source).body:
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if isinstance(statement, ast.Import | ast.ImportFrom):
            statement.names = [
                alias
                for alias in statement.names
                if (alias.asname or alias.name).split(".")[0] not in PICTURES_AND_TORCH
            ]
            if not statement.names or getattr(statement, "module", "").startswith("torch"):
                continue
        elif names & PICTURES_AND_TORCH:
            continue
        kept.append(statement)
    return ast.Module(kept, [])


@functools.cache
def derivations_of(notebook):
    """Execute a notebook's cells; return the derivations that have a derived step, in order."""
    made = []

    class Recorded(Derivation):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            made.append(self)

    original, proofs.Derivation = proofs.Derivation, Recorded
    namespace = {"__name__": notebook.stem}
    try:
        for source in code_cells(notebook):
            if "torch" not in source or "Derivation" in source or "import" in source:
                with contextlib.redirect_stdout(io.StringIO()):
                    try:
                        exec(compile(without_pictures(source), notebook.stem, "exec"), namespace)
                    except NameError:
                        # a cell that works on what a torch cell computed; never a derivation
                        if "derived(" in source:
                            raise
    finally:
        proofs.Derivation = original
    return [d for d in made if any(step.method for step in d)]


def with_derivations():
    return [
        path
        for path in sorted(NOTEBOOKS.glob("*.ipynb"))
        if any("Derivation(" in source for source in code_cells(path))
    ]


# --- mutating -----------------------------------------------------------------------------------


def local_changes(node):
    """Yield (label, wrong version) of one node of an expression."""
    if isinstance(node, sp.Add):
        for term in node.args:
            yield f"flip sign of {term}", sp.Add(node, -2 * term)
    if isinstance(node, sp.conjugate):
        yield "drop conjugate", node.args[0]
    if isinstance(node, sp.re):
        yield "drop Re", node.args[0]
        yield "Im for Re", sp.im(node.args[0])
    if isinstance(node, sp.Abs):
        yield "drop modulus", node.args[0]
    if isinstance(node, sp.cos):
        yield "sin for cos", sp.sin(node.args[0])
    if isinstance(node, sp.sin):
        yield "flip sine", -node
        yield "cos for sin", sp.cos(node.args[0])
    if isinstance(node, sp.exp) and not isinstance(node.args[0], MatrixBase):
        yield "flip exponent", sp.exp(-node.args[0])
    if isinstance(node, sp.exp) and isinstance(node.args[0], MatrixBase):
        yield "flip exponent", sp.exp(-node.args[0], evaluate=False)
    if isinstance(node, sp.Transpose):
        yield "drop transpose", node.arg
    if isinstance(node, sp.MatMul) and len({factor.shape for factor in node.args}) == 1:
        yield "reverse product", sp.MatMul(*reversed(node.args))
    if isinstance(node, MatrixAt):
        *vectors, position = node.where
        yield "next position", node.at(*vectors, position + 1)
        yield "opposite position", node.at(*vectors, -position)
        if node.is_square:
            yield "transpose", node.T
    if isinstance(node, MatrixBase) and node.shape[0] == node.shape[1]:
        yield "transpose", node.T
    if isinstance(node, sp.Pow) and node.exp.is_Symbol:
        yield "flip exponent", node.base**-node.exp
    if isinstance(node, sp.core.function.AppliedUndef):
        last = node.args[-1]
        yield "next position", node.func(*node.args[:-1], last + 1)
        yield "opposite position", node.func(*node.args[:-1], -last)


def replaced(expression, old, new):
    """One side with one node replaced, not evaluated further than sympy must."""
    if expression == old:
        return new
    if isinstance(expression, MatrixBase):
        return expression.applyfunc(lambda entry: entry.xreplace({old: new}))
    return expression.xreplace({old: new})


def side_mutants(side):
    nodes = set(sp.preorder_traversal(side))
    if isinstance(side, MatrixBase):
        nodes |= {node for entry in side for node in sp.preorder_traversal(entry)}
    for node in sorted(nodes, key=str):
        for label, wrong in local_changes(node):
            with contextlib.suppress(ValueError, TypeError, NotImplementedError):
                yield f"{label} in {node}", replaced(side, node, wrong)
    if not isinstance(side, sp.exp) or not isinstance(side.args[0], MatrixBase):
        yield "flip side", -side
        yield "double side", 2 * side
    if isinstance(side, sp.Expr) and not is_matrix(side):
        yield "one more", side + 1
    for one, other in [("m", "n"), ("i", "j"), ("q", "k"), ("x", "y"), ("theta_1", "theta_2")]:
        symbols = {s.name: s for s in side.free_symbols if isinstance(s, sp.Symbol)}
        if one in symbols and other in symbols:
            swap = {symbols[one]: symbols[other], symbols[other]: symbols[one]}
            yield f"swap {one} and {other}", side.subs(swap, simultaneous=True)


def mutants(statement):
    """Yield (label, statement) for every way of writing the statement down wrong."""
    if isinstance(statement, sp.Or):
        for index, part in enumerate(statement.args):
            for label, wrong in mutants(part):
                rest = [p for k, p in enumerate(statement.args) if k != index]
                yield f"alternative {index}: {label}", sp.Or(wrong, *rest, evaluate=False)
            yield f"drop alternative {index}", statement.args[1 - index]
        return
    for name, side, other in [
        ("left", statement.lhs, statement.rhs),
        ("right", statement.rhs, statement.lhs),
    ]:
        for label, wrong in side_mutants(side):
            if wrong != side:
                pair = (wrong, other) if name == "left" else (other, wrong)
                yield f"{name}: {label}", equation(*pair)


# --- the tests ----------------------------------------------------------------------------------


def is_mutant(statement, original):
    return isinstance(statement, Relational | sp.Or) and statement != original


@pytest.mark.drawn(1)
@pytest.mark.parametrize("notebook", with_derivations(), ids=lambda path: path.stem)
def test_every_mutant_of_every_derived_step_is_refused(notebook, capsys):
    derivations = derivations_of(notebook)
    assert derivations
    tried, equivalent, survivors, steps = 0, [], [], 0
    for d in derivations:
        for step in d:
            if step.kind not in ("derived", "found"):
                continue
            steps += 1
            count = 0
            for label, statement in mutants(step.statement):
                if not is_mutant(statement, step.statement):
                    continue
                count += 1
                name = f"{d.name}/{step.name}/{label}"
                try:
                    d.check(dataclasses.replace(step, statement=statement))
                except DerivationError:
                    continue
                (equivalent if name in EQUIVALENT else survivors).append(name)
            assert count >= 2, f"{d.name}/{step.name}: nothing to break"
            tried += count
    with capsys.disabled():
        caught = tried - len(equivalent) - len(survivors)
        print(
            f"\n{notebook.stem}: {steps} derived steps, {tried} mutants tried, {caught} caught, "
            f"{len(equivalent)} equivalent, {len(survivors)} survivors"
        )
        for name in equivalent:
            print(f"  equivalent: {name}: {EQUIVALENT[name]}")
    assert not survivors, "\n".join(["survivors:", *survivors])
    own = {name for name in EQUIVALENT if name.split("/")[0] in {d.name for d in derivations}}
    assert set(equivalent) == own, "EQUIVALENT lists a mutant that is caught or not tried"


def comes_out(d, step, premises):
    """Whether the step is shown from these premises as it was from its own."""
    try:
        method, problem = d._method(step, premises)
    except Exception:  # whatever the step's own function raises on a false premise
        return False
    return method == step.method and not problem


def is_refuted_without(d, step, premise):
    """Whether a known model that satisfies the other premises breaks a step that was only found."""
    try:
        d.check(dataclasses.replace(step, follows=tuple(f for f in step.follows if f != premise)))
    except DerivationError:
        return True
    return False


def false_premises(d, step, premise):
    """Yield the premises of a step with false versions of one of them."""
    at, statements = step.follows.index(premise), [d[name].statement for name in step.follows]
    for _, wrong in mutants(statements[at]):
        if is_mutant(wrong, statements[at]):
            yield [*statements[:at], wrong, *statements[at + 1 :]]


def is_idle(d, step, premise):
    """Whether the step comes out however false the premise is; and how many versions it took."""
    if step.method == "numeric":
        return not is_refuted_without(d, step, premise), 1
    tried = 0
    for tried, premises in enumerate(false_premises(d, step, premise), start=1):
        if not comes_out(d, step, premises):
            return False, tried
    return True, tried


@pytest.mark.drawn(3, among="long")
@pytest.mark.parametrize("notebook", with_derivations(), ids=lambda path: path.stem)
def test_no_step_comes_out_whatever_a_premise_says(notebook, capsys):
    derivations = derivations_of(notebook)
    answers = {
        f"{d.name}/{step.name}/{premise}": is_idle(d, step, premise)
        for d in derivations
        for step in d
        for premise in step.follows
    }
    idle = [name for name, (found, _) in answers.items() if found]
    listed = [name for name in idle if name in IDLE]
    with capsys.disabled():
        print(
            f"\n{notebook.stem}: {len(answers)} premises, {sum(n for _, n in answers.values())} "
            f"false versions tried, {len(idle)} idle, {len(listed)} of them listed"
        )
        for name in listed:
            print(f"  idle: {name}: {IDLE[name]}")
    unlisted = [name for name in idle if name not in IDLE]
    assert not unlisted, "\n".join(["premises that change nothing:", *unlisted])
    own = {name for name in IDLE if name.split("/")[0] in {d.name for d in derivations}}
    assert set(idle) == own, "IDLE lists a premise that is needed or not named"


def test_nothing_is_listed_that_the_book_no_longer_has():
    names = {d.name for path in with_derivations() for d in derivations_of(path)}
    gone = [name for name in [*EQUIVALENT, *IDLE] if name.split("/")[0] not in names]
    assert not gone


def test_an_idle_premise_would_be_noticed():
    x, y = sp.symbols("x y", real=True)
    f = sp.Function("f", real=True)
    d = Derivation("idle", "One premise too many", {f: sp.Lambda(x, x**2), y: x**2})
    d.given("square", (f(x), x**2), "a definition")
    d.given("name", (y, f(x)), "another")
    both = ["name", "square"]
    d.derived("put-in", (f(x + 1), x**2 + 2 * x + 1), "put in", follows=both)
    d.derived("one", (y, x**2), "put in", follows=both, by=lambda a, _: (a.lhs, x**2))
    d.derived("none", (y, x**2), "put in", follows=both, by=lambda *_: (y, x**2))
    d.derived("both", (y, x**2), "put in", follows=both, by=lambda a, b: a.subs(b.lhs, b.rhs))
    idle = {
        step.name: [premise for premise in step.follows if is_idle(d, step, premise)[0]]
        for step in d
        if step.follows
    }
    assert idle == {"put-in": ["name"], "one": ["square"], "none": both, "both": []}


def test_a_found_step_needs_a_model_that_refutes_it_without_the_premise():
    x = sp.Symbol("x", real=True)
    f = sp.Function("f", real=True)
    others = {"a cube": {f: sp.Lambda(x, x**3)}}
    d = Derivation("found", "Found", {f: sp.Lambda(x, x**2)}, others=others)
    d.given("even", (f(-x), f(x)), "a cube is not")
    d.given("start", (f(0), 0), "but starts at 0, too")
    step = d.derived("square", (f(x), x**2), "who knows", follows=["even", "start"])
    assert step.kind == "found"
    assert not is_idle(d, step, "even")[0]
    assert is_idle(d, step, "start")[0]


def test_a_statement_that_cannot_fail_would_be_noticed():
    # the mutation test itself must be able to fail: an always-true check leaves survivors
    d = Derivation("lazy", "A check that cannot fail")
    x = sp.Symbol("x", real=True)
    d.given("start", (x, x), "nothing")
    step = d.derived("same", (sp.cos(x) ** 2, 1 - sp.sin(x) ** 2), "circle", follows="start")
    refused = 0
    for _, statement in mutants(step.statement):
        with pytest.raises(DerivationError):
            d.check(dataclasses.replace(step, statement=statement))
        refused += 1
    assert refused >= 6
