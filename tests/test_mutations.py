"""Break every derived step of every derivation in the book: each break must be noticed.

The notebooks are executed as they are, without their pictures and widgets. Every derivation that
they make is collected. Each derived step is then written down wrong in every way listed in
``mutants``, and must be refused. A wrong step that is still true is named in ``EQUIVALENT``.
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

from rope_minimal import derivation
from rope_minimal.derivation import Derivation, DerivationError, equation
from rope_minimal.derivation.statements import MatrixAt

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
PICTURES_AND_TORCH = {"plt", "explore", "torch", "palette", "ax", "fig"}

# derivation/step/mutation -> why the mutant says the same thing
COMMUTE = "planes without a common channel commute, so do turns in one plane: the step says so"
EQUIVALENT = {
    "dot-product/real-part/left: swap q and k": "the dot product is symmetric",
    "requirement-c2/difference/left: reverse product in I[x]*I[y].T": COMMUTE,
    "rows-and-columns/both-reversed/right: drop transpose in F.T": "the flip is a diagonal matrix",
    "rows-and-columns/one-reversed/left: swap m and n": "the score depends on m + n: its point",
    "planes/block-diagonal/left: reverse product in P[x]*S[y]": COMMUTE,
    "planes/commute/left: reverse product in P[x]*S[y]": COMMUTE,
    "planes/commute/right: reverse product in S[y]*P[x]": COMMUTE,
    "planes/add/left: reverse product in P[x]*P[y]": COMMUTE,
    "planes/add/left: swap x and y": COMMUTE,
    "planes/relative/left: reverse product in "
    "P[i*theta_1]*S[i*theta_2]*S[j*theta_2].T*P[j*theta_1].T": COMMUTE,
    "planes/relative/right: reverse product in P[theta_1*(i - j)]*S[theta_2*(i - j)]": COMMUTE,
    "families/parity/right: flip exponent in (-1)**s": "(-1)^-s = (-1)^s for whole s",
}


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

    original, derivation.Derivation = derivation.Derivation, Recorded
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
        derivation.Derivation = original
    return [d for d in made if any(step.kind == "derived" for step in d)]


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


# --- the test -----------------------------------------------------------------------------------


def is_mutant(statement, original):
    return isinstance(statement, Relational | sp.Or) and statement != original


@pytest.mark.parametrize("notebook", with_derivations(), ids=lambda path: path.stem)
def test_every_mutant_of_every_derived_step_is_refused(notebook, capsys):
    derivations = derivations_of(notebook)
    assert derivations
    tried, equivalent, survivors, steps = 0, [], [], 0
    for d in derivations:
        for step in d:
            if step.kind != "derived":
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
