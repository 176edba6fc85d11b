"""Symbolic equality: two expressions are equal if sympy reduces their difference to zero."""

import functools
import math
from collections.abc import Iterable
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from .statements import MatrixAt, Statement, entries, is_matrix, relations, shape_of, unknowns


class CannotSplitError(Exception):
    """Raised for an expression that `split` cannot split."""


def split(expression: Any) -> tuple[Any, Any]:
    """Return the real and the imaginary part; a complex symbol ``q`` becomes ``q_x + i q_y``.

    Parameters
    ----------
    expression
        A scalar sympy expression of symbols, elementary functions, conjugates, Re, Im, |.|, arg.

    Returns
    -------
    tuple of two sympy expressions in real symbols only
    """
    e = sp.sympify(expression)
    if e is sp.I:
        return sp.S.Zero, sp.S.One
    if e.is_Symbol and not e.is_extended_real:
        return _real_part_and_imaginary(e)
    if e.is_Symbol or (e.is_number and e.is_extended_real) or not e.args:
        return e, sp.S.Zero
    if isinstance(e, AppliedUndef):
        if e.is_extended_real:
            return e, sp.S.Zero
        raise CannotSplitError(e)
    parts = [split(argument) for argument in e.args]
    if e.is_Add:
        return sp.Add(*(p[0] for p in parts)), sp.Add(*(p[1] for p in parts))
    if e.is_Mul:
        return _product(parts)
    if isinstance(e, sp.exp):
        a, b = parts[0]
        return sp.exp(a) * sp.cos(b), sp.exp(a) * sp.sin(b)
    if e.is_Pow:
        return _power(parts[0], parts[1])
    return _function(e, parts)


@functools.cache
def _real_part_and_imaginary(symbol: sp.Symbol) -> tuple[sp.Dummy, sp.Dummy]:
    x, y = (sp.Dummy(f"{symbol.name}_{axis}", real=True) for axis in "xy")
    return x, y  # of their own kind: no symbol that is called q_x is meant


def _product(parts: Iterable[tuple]) -> tuple:
    x, y = sp.S.One, sp.S.Zero
    for a, b in parts:
        x, y = x * a - y * b, x * b + y * a
    return x, y


def _power(base: tuple, exponent: tuple) -> tuple:
    (a, b), (n, extra) = base, exponent
    if extra == 0 and b == 0 and (n.is_integer or a.is_nonnegative):
        return a**n, sp.S.Zero
    if extra == 0 and n.is_Integer and abs(n) <= 8:
        x, y = _product([base] * abs(int(n)))
        return (x, y) if n > 0 else (x / (x**2 + y**2), -y / (x**2 + y**2))
    log_size, angle = sp.log(a**2 + b**2) / 2, sp.atan2(b, a)
    size, turn = sp.exp(n * log_size - extra * angle), n * angle + extra * log_size
    return size * sp.cos(turn), size * sp.sin(turn)


def _function(e: Any, parts: list[tuple]) -> tuple:
    a, b = parts[0]
    if isinstance(e, sp.conjugate):
        return a, -b
    if isinstance(e, sp.re | sp.im):
        return (a if isinstance(e, sp.re) else b), sp.S.Zero
    if isinstance(e, sp.Abs):
        return (sp.Abs(a) if b == 0 else sp.sqrt(a**2 + b**2)), sp.S.Zero
    if isinstance(e, sp.arg):
        return sp.atan2(b, a), sp.S.Zero
    if all(p[1] == 0 for p in parts):
        value = e.func(*(p[0] for p in parts))
        if value.is_extended_real:  # the logarithm of a real number may not be
            return value, sp.S.Zero
    if isinstance(e, sp.cos):
        return sp.cos(a) * sp.cosh(b), -sp.sin(a) * sp.sinh(b)
    if isinstance(e, sp.sin):
        return sp.sin(a) * sp.cosh(b), sp.cos(a) * sp.sinh(b)
    raise CannotSplitError(e)


# ------------------------------------------------------------------------------------------------
# The comparison


MOST_TERMS = 10_000


def is_zero(expression: Any) -> bool:
    """Return True only if sympy reduces the scalar to zero."""
    if _terms(expression) > MOST_TERMS:
        return False  # it would not come back for hours
    expression = sp.expand(expression)
    if expression == 0:
        return True
    try:
        parts = split(expression)
    except CannotSplitError:
        return sp.simplify(expression) == 0
    # sums of exponentials decide what is a polynomial in cosines and sines, and quickly
    return all(sp.expand(p.rewrite(sp.exp)) == 0 or sp.simplify(p) == 0 for p in parts)


def _terms(e: Any) -> int:
    """Upper bound on the number of terms of an expanded scalar."""
    inner = [_terms(a) for a in e.args]
    if e.is_Add:
        return sum(inner)
    if e.is_Mul:
        return math.prod(inner)
    if e.is_Pow and e.exp.is_Integer:
        return inner[0] ** min(abs(int(e.exp)), 100)
    return max(inner, default=1)


def equal(left: Any, right: Any) -> bool:
    """Return True only if sympy shows two scalars, or two matrices, to be equal."""
    if left == right:
        return True
    if shape_of(left) != shape_of(right):
        return False
    if _is_symbolic(left) or _is_symbolic(right):
        forms = {_matrix_form(right)}
        if is_matrix(right) and not shape_of(right):
            forms.add(_matrix_form(right.T))  # a number is its own transpose
        return _matrix_form(left) in forms
    return all(is_zero(a - b) for a, b in zip(entries(left), entries(right), strict=True))


def _is_symbolic(side: Any) -> bool:
    """Whether a matrix has no explicit entries: it is a named one, or its size is symbolic."""
    return is_matrix(side) and bool(unknowns(side) or sp.Tuple(*shape_of(side)).free_symbols)


def _matrix_form(expression: Any) -> Any:
    """Return a normal form of products, transposes and inverses of symbolic matrices."""
    expression = expression.replace(
        lambda e: isinstance(e, MatrixAt),
        lambda e: e.at(*(_matrix_form(v) if is_matrix(v) else sp.expand(v) for v in e.where)),
    )
    return sp.expand(expression.doit()).doit()


def same_statement(first: Statement, second: Statement) -> bool:
    """Compare two statements up to simplification, swapped sides and the order of an ``Or``."""
    ones, others = relations(first), list(relations(second))
    if len(ones) != len(others):
        return False
    for one in ones:
        match = next((other for other in others if _same_relation(one, other)), None)
        if match is None:
            return False
        others.remove(match)
    return True


def _same_relation(one: Relational, other: Relational) -> bool:
    pairs = [(one.func, other, other.lhs, other.rhs)]
    if isinstance(other, Relational):
        turned = other.reversed if not isinstance(other, sp.Eq) else other
        pairs.append((one.func, turned, other.rhs, other.lhs))
    return any(
        isinstance(candidate, kind) and equal(one.lhs, left) and equal(one.rhs, right)
        for kind, candidate, left, right in pairs
    )
