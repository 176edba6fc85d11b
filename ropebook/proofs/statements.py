"""Statements: sympy relations, matrix functions of a position, and operations on equations.

A statement is a sympy relation, usually an unevaluated equation, or an ``Or`` of relations.
"""

from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational
from sympy.core.symbol import Str
from sympy.matrices.expressions import MatrixExpr
from sympy.matrices.matrixbase import MatrixBase
from sympy.printing.latex import LatexPrinter

Statement = Any  # a sympy relational or an Or of them


class MatrixFunction:
    """An undefined matrix-valued function: ``R = MatrixFunction("R", 2)``, then ``R(m)``.

    It may take more arguments: ``f = MatrixFunction("f", d, 1)`` is vector-valued, and ``f(x, m)``
    is its value for the vector ``x`` at position ``m``.

    Parameters
    ----------
    name
        Printed name.
    rows, columns
        Positive integers, or positive integer symbols. Square if only one is given.
    """

    def __init__(self, name: str, rows: Any, columns: Any = None):
        if not isinstance(name, str) or not name:
            raise ValueError(f"name must be a text, got {name!r}")
        self.name = name
        self.shape = tuple(
            _size(argument, value)
            for argument, value in (
                ("rows", rows),
                ("columns", rows if columns is None else columns),
            )
        )

    def __call__(self, *where: Any) -> "MatrixAt":
        """Return the matrix at a position, as an expression."""
        if not where:
            raise ValueError(f"{self.name} needs a position")
        return MatrixAt(self.name, where[0] if len(where) == 1 else where, *self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatrixFunction) and self.name == other.name

    def __hash__(self) -> int:
        return hash(("MatrixFunction", self.name))

    def __repr__(self) -> str:
        return self.name


def _size(argument: str, value: Any) -> Any:
    size = None if isinstance(value, bool | str) else sp.sympify(value)
    if not (getattr(size, "is_integer", False) and getattr(size, "is_positive", False)):
        raise ValueError(
            f"{argument} must be a positive integer, or a symbol declared so, got {value!r}"
        )
    return size


class MatrixAt(MatrixExpr):
    """The value of a `MatrixFunction` at one position, for example ``R(m - n)``."""

    def __new__(cls, name: Any, where: Any, rows: Any, columns: Any = None) -> "MatrixAt":
        """Create the expression; ``where`` is a position, or a tuple of all arguments."""
        name = Str(name) if isinstance(name, str) else name
        columns = rows if columns is None else columns
        return super().__new__(cls, name, *map(sp.sympify, (where, rows, columns)))

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.args[0].name

    @property
    def where(self) -> tuple:
        """The arguments of the function, the position last."""
        return tuple(self.args[1]) if isinstance(self.args[1], sp.Tuple) else (self.args[1],)

    @property
    def shape(self) -> tuple:
        """Rows and columns."""
        return self.args[2:]

    def at(self, *where: Any) -> "MatrixAt":
        """Return the same function at other arguments."""
        return MatrixAt(self.args[0], where[0] if len(where) == 1 else where, *self.shape)

    def _entry(self, i: Any, j: Any, **_: Any) -> Any:
        return sp.Function(f"{self.name}_{i}{j}")(*self.where)

    def _latex(self, printer: LatexPrinter) -> str:
        name, *where = map(printer._print, (sp.Symbol(self.name), *self.where))
        if len(where) == 1:
            return f"{name}_{{{where[0]}}}"
        return rf"{name}{{\left({', '.join(where)}\right)}}"

    def _sympystr(self, printer: Any) -> str:
        return f"{self.name}[{', '.join(map(printer._print, self.where))}]"


def equation(left: Any, right: Any) -> sp.Eq:
    """Return the unevaluated equation ``left = right``."""
    return sp.Eq(sp.sympify(left), sp.sympify(right), evaluate=False)


def substitute(statement: Statement, values: Mapping) -> Statement:
    """Substitute symbols simultaneously (``{n: m}``), without evaluating the equation."""
    matrices = {old: new for old, new in values.items() if isinstance(old, MatrixExpr)}
    scalars = {old: new for old, new in values.items() if old not in matrices}

    def replaced(side: Any) -> Any:
        side = side.subs(scalars, simultaneous=True) if scalars else side
        return side.xreplace(matrices)

    return both_sides(equation(*statement) if isinstance(statement, tuple) else statement, replaced)


def both_sides(statement: Statement, function: Callable[[Any], Any]) -> Statement:
    """Apply a function to both sides of a relation, or of each alternative of an ``Or``."""
    if isinstance(statement, sp.Or):
        return sp.Or(*(both_sides(part, function) for part in statement.args), evaluate=False)
    left, right = function(statement.lhs), function(statement.rhs)
    return statement.func(left, right, evaluate=False)


def isolate(statement: sp.Eq, part: Any) -> sp.Eq:
    """Solve an equation for a subexpression that occurs linearly, such as ``R(q, m)``.

    Raises
    ------
    ValueError
        If the subexpression does not occur, or not linearly.
    """
    unknown = sp.Dummy()
    balance = (statement.lhs - statement.rhs).xreplace({part: unknown})
    slope = sp.simplify(sp.diff(balance, unknown))
    if slope == 0 or slope.has(unknown):
        raise ValueError(f"part must occur linearly in the equation, got {part}")
    return equation(part, sp.expand(-balance.subs(unknown, 0) / slope))


def equate(first: sp.Eq, second: sp.Eq) -> sp.Eq:
    """Combine ``a = c`` and ``b = c`` into ``a = b``.

    Raises
    ------
    ValueError
        If the right sides are not the same expression.
    """
    if first.rhs != second.rhs:
        raise ValueError(f"the right sides must be the same, got {first.rhs} and {second.rhs}")
    return equation(first.lhs, second.lhs)


def replace_factors(product: Any, rule: sp.Eq) -> Any:
    """Replace consecutive factors of a matrix product: ``Q^T Q`` by the rule ``Q^T Q = I``.

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


def cancel(statement: sp.Eq, vector: sp.MatrixSymbol) -> sp.Eq:
    """Return ``A = B`` from ``A v = B v``, which holds for all vectors ``v`` (or for a basis).

    The vector, or its transpose, must be the first or the last factor on both sides. Nothing else
    may depend on it.

    Raises
    ------
    ValueError
        If it is not, or does.
    """
    sides = [_factors(side) for side in (statement.lhs, statement.rhs)]
    for end, rest in ((-1, slice(None, -1)), (0, slice(1, None))):
        if sides[0][end] == sides[1][end] in (vector, vector.T):
            unit = sp.Identity(vector.rows)
            left, right = (sp.MatMul(unit, *side[rest]).doit() for side in sides)
            if vector not in left.free_symbols | right.free_symbols:
                return equation(left, right)
    raise ValueError(f"{vector} must be the last or the first factor on both sides, and only there")


def _factors(product: Any) -> list:
    product = product.doit() if not isinstance(product, MatrixBase) else product
    return list(product.args) if isinstance(product, sp.MatMul) else [product]


# ------------------------------------------------------------------------------------------------
# What a statement is made of


def relations(statement: Statement) -> tuple[Relational, ...]:
    """Return the alternatives of an ``Or``, or the single relation."""
    return statement.args if isinstance(statement, sp.Or) else (statement,)


def shapes(statement: Statement) -> set:
    """Return the shapes of all sides; more than one means a shape mismatch."""
    return {shape_of(side) for r in relations(statement) for side in (r.lhs, r.rhs)}


def shape_of(expression: Any) -> tuple:
    """Return (rows, columns) of a matrix, and () for a scalar or a 1 x 1 matrix."""
    if not is_matrix(expression):
        return ()
    inner = expression.args[0] if isinstance(expression, sp.exp) else expression
    return () if inner.shape == (1, 1) else tuple(inner.shape)


def is_matrix(expression: Any) -> bool:
    """Whether an expression is a matrix or a matrix exponential."""
    if isinstance(expression, sp.exp):
        return isinstance(expression.args[0], MatrixBase | MatrixExpr)
    return isinstance(expression, MatrixBase | MatrixExpr)


def unknowns(expression: Any) -> set:
    """Return the undefined functions and matrices of an expression."""
    return expression.atoms(AppliedUndef, MatrixAt, sp.MatrixSymbol)


def entries(expression: Any) -> list:
    """Return the entries of an explicit matrix, or the scalar as a list of one."""
    if not isinstance(expression, MatrixBase):
        expression = expression.doit()
    if isinstance(expression, MatrixExpr):
        expression = expression.as_explicit()
    return list(expression) if isinstance(expression, MatrixBase) else [expression]
