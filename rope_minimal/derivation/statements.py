"""What a step states: matrices at a position, equations, and what one may do to them.

A statement is a relation of sympy, mostly an equation that it does not evaluate, or an ``Or`` of
relations.
"""

from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational
from sympy.matrices.expressions import MatrixExpr
from sympy.matrices.matrixbase import MatrixBase
from sympy.printing.latex import LatexPrinter

Statement = Any  # a sympy relational or an Or of them


class MatrixFunction:
    """A square matrix that depends on a position: ``R = MatrixFunction("R", 2)``, then ``R(m)``.

    Parameters
    ----------
    name
        Printed name.
    size
        Rows and columns, a positive integer.
    """

    def __init__(self, name: str, size: int):
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"size must be a positive integer, got {size!r}")
        self.name, self.size = name, size

    def __call__(self, position: Any) -> "MatrixAt":
        """Return the matrix at a position, as an expression."""
        return MatrixAt(self.name, position, self.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatrixFunction) and self.name == other.name

    def __hash__(self) -> int:
        return hash(("MatrixFunction", self.name))

    def __repr__(self) -> str:
        return self.name


class MatrixAt(MatrixExpr):
    """The value of a `MatrixFunction` at one position, for example ``R(m - n)``."""

    def __new__(cls, name: Any, position: Any, size: Any) -> "MatrixAt":
        """Make the expression; ``name`` is kept as a symbol so that sympy can rebuild it."""
        name = sp.Symbol(name) if isinstance(name, str) else name
        return super().__new__(cls, name, sp.sympify(position), sp.sympify(size))

    @property
    def shape(self) -> tuple:
        """Rows and columns."""
        return self.args[2], self.args[2]

    def _entry(self, i: Any, j: Any, **_: Any) -> Any:
        return sp.Function(f"{self.args[0]}_{i}{j}")(self.args[1])

    def _latex(self, printer: LatexPrinter) -> str:
        name = printer._print(self.args[0])
        return f"{name}_{{{printer._print(self.args[1])}}}"

    def _sympystr(self, printer: Any) -> str:
        return f"{self.args[0]}[{printer._print(self.args[1])}]"


def equation(left: Any, right: Any) -> sp.Eq:
    """Return ``left = right`` as written: sympy does not evaluate it to True or False."""
    return sp.Eq(sp.sympify(left), sp.sympify(right), evaluate=False)


def substitute(statement: Statement, values: Mapping) -> Statement:
    """Replace symbols on both sides at once (``{n: m}``), without evaluating the equation."""
    matrices = {old: new for old, new in values.items() if isinstance(old, MatrixExpr)}
    scalars = {old: new for old, new in values.items() if old not in matrices}

    def replaced(side: Any) -> Any:
        side = side.subs(scalars, simultaneous=True) if scalars else side
        return side.xreplace(matrices)

    return both_sides(equation(*statement) if isinstance(statement, tuple) else statement, replaced)


def both_sides(statement: Statement, function: Callable[[Any], Any]) -> Statement:
    """Apply a function to both sides of an equation, or of each alternative of an ``Or``."""
    if isinstance(statement, sp.Or):
        return sp.Or(*(both_sides(part, function) for part in statement.args), evaluate=False)
    left, right = function(statement.lhs), function(statement.rhs)
    return statement.func(left, right, evaluate=False)


def isolate(statement: sp.Eq, part: Any) -> sp.Eq:
    """Solve an equation for a part that occurs linearly, such as ``R(q, m)``.

    Raises
    ------
    ValueError
        If the part does not occur, or occurs in another way.
    """
    unknown = sp.Dummy()
    balance = (statement.lhs - statement.rhs).xreplace({part: unknown})
    slope = sp.simplify(sp.diff(balance, unknown))
    if slope == 0 or slope.has(unknown):
        raise ValueError(f"part must occur linearly in the equation, got {part}")
    return equation(part, sp.expand(-balance.subs(unknown, 0) / slope))


def replace_factors(product: Any, rule: sp.Eq) -> Any:
    """Replace a run of factors in a matrix product: with ``Q^T Q = I``, cancel ``Q^T Q``.

    Raises
    ------
    ValueError
        If the left side of the rule does not occur.
    """
    factors, run = _factors(product), _factors(rule.lhs)
    for at in range(len(factors) - len(run) + 1):
        if factors[at : at + len(run)] == run:
            factors[at : at + len(run)] = _factors(rule.rhs)
            return sp.MatMul(*factors).doit()
    raise ValueError(f"product must contain {rule.lhs}, got {product}")


def for_every(statement: sp.Eq, vector: Any) -> sp.Eq:
    """Drop a vector that stands last in both products: ``X v = Y v`` for every v, so ``X = Y``.

    It is enough that the equation holds for the vectors of one basis. A transposed vector that
    stands first is dropped in the same way.

    Raises
    ------
    ValueError
        If the vector does not stand there on both sides, or stands elsewhere, too.
    """
    for at, wanted in ((-1, vector), (0, vector.T)):
        sides = [_factors(side) for side in (statement.lhs, statement.rhs)]
        if all(factors[at] == wanted for factors in sides):
            for factors in sides:
                del factors[at]
            left, right = (
                sp.MatMul(*factors).doit() if factors else sp.Identity(vector.shape[0])
                for factors in sides
            )
            if not (left.has(vector) or right.has(vector)):
                return equation(left, right)
    raise ValueError(f"{vector} must stand last, or transposed first, on both sides and only there")


def _factors(product: Any) -> list:
    product = product.doit() if not isinstance(product, MatrixBase) else product
    return list(product.args) if isinstance(product, sp.MatMul) else [product]


# ------------------------------------------------------------------------------------------------
# What a statement is made of


def relations(statement: Statement) -> tuple[Relational, ...]:
    """Return the alternatives of an ``Or``, or the one relation."""
    return statement.args if isinstance(statement, sp.Or) else (statement,)


def shapes(statement: Statement) -> set:
    """Shapes of all sides; more than one means that a relation compares unlike things."""
    return {shape_of(side) for r in relations(statement) for side in (r.lhs, r.rhs)}


def shape_of(expression: Any) -> tuple:
    """Return rows and columns of a matrix; a scalar has none."""
    inner = expression.args[0] if isinstance(expression, sp.exp) else expression
    return tuple(inner.shape) if is_matrix(expression) else ()


def is_matrix(expression: Any) -> bool:
    """Tell whether a side is a matrix, the exponential of one included."""
    if isinstance(expression, sp.exp):
        return isinstance(expression.args[0], MatrixBase | MatrixExpr)
    return isinstance(expression, MatrixBase | MatrixExpr)


def unknowns(expression: Any) -> set:
    """Undefined functions and matrices that no number can be given to."""
    return expression.atoms(AppliedUndef, MatrixAt, sp.MatrixSymbol)


def entries(expression: Any) -> list:
    """Entries of a matrix without unknowns, or the one scalar."""
    if not isinstance(expression, MatrixBase):
        expression = expression.doit()
    if isinstance(expression, MatrixExpr):
        expression = expression.as_explicit()
    return list(expression) if isinstance(expression, MatrixBase) else [expression]
