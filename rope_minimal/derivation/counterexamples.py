"""Where a statement fails: models, random settings, the search, and the error that tells it.

A model gives formulas for undefined functions and matrices. With these, a statement has numbers on
both sides at every setting of its symbols; a setting at which it fails is a counterexample.
"""

import functools
import operator
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction
from sympy.core.relational import Relational
from sympy.matrices.matrixbase import MatrixBase

from .statements import MatrixAt, MatrixFunction, Statement, is_matrix, relations, unknowns

Model = Mapping[Any, Any]

DIGITS = 30
MANY_DIGITS = 1000
TOLERANCE = mpmath.mpf(10) ** -15
SCREEN_POINTS = 12
NUMERIC_POINTS = 60
# division by zero, infinity or too large; a pole; a sum without an end
UNDEFINED = (ArithmeticError, ValueError, mpmath.mp.NoConvergence)


class DerivationError(ValueError):
    """A step of a derivation is false, or is not what its premises give.

    Attributes
    ----------
    step : str
        Name of the step.
    sides : tuple
        The two sides as printed.
    counterexample : dict or None
        Values of the symbols at which the two sides differ.
    values : tuple or None
        The two sides there, as numbers.
    """

    def __init__(
        self,
        step: str,
        problem: str,
        sides: tuple = (),
        counterexample: dict[str, complex] | None = None,
        values: tuple | None = None,
    ):
        self.step = step
        self.sides = sides
        self.counterexample = counterexample
        self.values = values
        lines = [f"step {step!r}: {problem}"]
        lines += [
            f"  {label:<6}{side}" for label, side in zip(("left", "right"), sides, strict=False)
        ]
        if counterexample is not None and values is not None:
            at = ", ".join(f"{name} = {short(v)}" for name, v in counterexample.items())
            lines.append(f"  at    {at or 'every setting'}")
            lines.append(f"  left  = {short(values[0])}")
            lines.append(f"  right = {short(values[1])}")
        super().__init__("\n".join(lines))


# ------------------------------------------------------------------------------------------------
# Models


def definitions(premises: Iterable[Statement]) -> dict:
    """Read ``f(x, m) = formula`` and ``a = formula`` among the premises as replacements."""
    found: dict = {}
    for premise in premises:
        if not isinstance(premise, sp.Eq):
            continue
        left, right = premise.lhs, premise.rhs
        if isinstance(left, sp.Symbol | sp.MatrixSymbol):
            found[left] = right
        elif isinstance(left, MatrixAt) and left.args[1].is_Symbol:
            key = MatrixFunction(left.args[0].name, int(left.args[2]))
            found[key] = sp.Lambda(left.args[1], right)
        elif isinstance(left, AppliedUndef) and all(a.is_Symbol for a in left.args):
            found[left.func] = sp.Lambda(left.args, right)
    return found


def concrete(expression: Any, model: Model) -> Any:
    """Put the model's formulas in the place of the undefined functions and matrices."""
    for _ in range(6):
        before = expression
        for key, value in model.items():
            if isinstance(key, MatrixFunction):
                expression = expression.replace(
                    lambda e, key=key: isinstance(e, MatrixAt) and e.args[0].name == key.name,
                    lambda e, value=value: value(e.args[1]),
                )
            elif isinstance(key, UndefinedFunction):
                expression = expression.replace(key, value)
            else:
                expression = expression.xreplace({key: sp.sympify(value)})
        if expression == before:
            break
    # matrices stay factored: multiplied out they would be slow to print and to evaluate
    factored = is_matrix(expression) or expression.has(sp.Determinant)
    return expression if factored else expression.doit()


# ------------------------------------------------------------------------------------------------
# Settings


def _sorted_symbols(*expressions: Any) -> list[sp.Symbol]:
    return sorted(set().union(*(e.free_symbols for e in expressions)), key=lambda s: s.name)


def _near(symbol: sp.Symbol, rng: random.Random) -> Any:
    """Draw a short number of the symbol's kind: an integer, a tenth, or a complex of tenths."""
    if symbol.is_integer:
        low = 1 if symbol.is_positive else 0 if symbol.is_nonnegative else -12
        return sp.Integer(rng.randint(low, 12))
    if symbol.is_positive:
        return sp.Rational(rng.randint(1, 24), 10)
    signed = [*range(-24, 0), *range(1, 25)]
    x, y = (sp.Rational(rng.choice(signed), 10) for _ in "xy")
    return x if symbol.is_real else x + sp.I * y


def _far(symbol: sp.Symbol, rng: random.Random) -> Any:
    """Draw a number up to ten times as large, a fraction with another denominator each time."""
    if symbol.is_integer:
        low = 1 if symbol.is_positive else 0 if symbol.is_nonnegative else -40
        return sp.Integer(rng.randint(low, 40))
    bottoms = (rng.randint(11, 97) for _ in "xy")
    low = 0 if symbol.is_positive else -24
    x, y = (sp.Rational(rng.randint(low * b + 1, 24 * b), b) for b in bottoms)
    return x if symbol.is_real else x + sp.I * y


def _settings(symbols: Sequence[sp.Symbol], count: int, seed: int) -> Iterator[list]:
    """Yield ``count`` settings: near ones, far ones, some with zeros; then as many spare ones.

    The near ones come first, so that a counterexample is short where there is a short one. Zeros
    come last: all symbols at once, then one after the other.
    """
    rng = random.Random(seed)
    if not symbols:
        yield []
        return
    zeros = min(count // 6, len(symbols) + 1)
    far = count // 3
    for _ in range(count - far - zeros):
        yield [_near(symbol, rng) for symbol in symbols]
    for _ in range(far):
        yield [_far(symbol, rng) for symbol in symbols]
    for chosen in [symbols, *([symbol] for symbol in symbols)][:zeros]:
        yield [
            sp.S.Zero if symbol in chosen and symbol.is_zero is None else _near(symbol, rng)
            for symbol in symbols
        ]
    for _ in range(count):
        yield [_near(symbol, rng) for symbol in symbols]


# ------------------------------------------------------------------------------------------------
# The search


@dataclass(frozen=True)
class Witness:
    """Where a statement fails: the settings and both sides there."""

    setting: dict[str, complex]
    left: complex
    right: complex


def find_counterexample(
    statement: Statement, model: Model, points: int, seed: int = 20210420
) -> tuple[Witness | None, int]:
    """Return the first setting at which the statement fails (or None), and the points tried."""
    filled = [
        (relation, concrete(relation.lhs, model), concrete(relation.rhs, model))
        for relation in relations(statement)
    ]
    sides = [side for _, left, right in filled for side in (left, right)]
    unknown = set().union(*(unknowns(side) for side in sides))
    if unknown:
        raise ValueError(f"the model gives no formula for {', '.join(map(str, unknown))}")
    symbols = _sorted_symbols(*sides)
    names = [symbol.name for symbol in symbols]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two different symbols are called {', '.join(twice)}")
    functions = [(relation, _compile(left), _compile(right)) for relation, left, right in filled]

    def failures(setting: list, digits: int) -> list:
        """Return where each relation fails, as a pair of numbers, or None where it holds."""
        with mpmath.workdps(digits):
            numbers = {s: _to_mp(v) for s, v in zip(symbols, setting, strict=True)}
            found = []
            for relation, left, right in functions:
                pairs = zip(_entries(left(numbers)), _entries(right(numbers)), strict=True)
                found.append(next((p for p in pairs if not _holds(relation, *p)), None))
            return found

    done = 0
    for setting in _settings(symbols, points, seed):
        if done == points:
            break
        try:
            failed = failures(setting, DIGITS)
            if all(failed) and not _same(failed, failures(setting, MANY_DIGITS)):
                continue  # rounding, not the statement, made the difference
            if all(failed) and (first := failed[0]):
                at = {s.name: plain(v) for s, v in zip(symbols, setting, strict=True)}
                return Witness(at, plain(first[0]), plain(first[1])), done + 1
        except UNDEFINED:
            continue
        done += 1
    if not done:
        raise ValueError("no setting could be evaluated")
    return None, done


def _same(ones: list, others: list) -> bool:
    return all(
        one and other and all(map(_close, one, other))
        for one, other in zip(ones, others, strict=True)
    )


def _close(left: Any, right: Any, tolerance: Any = TOLERANCE) -> bool:
    return bool(abs(left - right) <= tolerance * (1 + abs(left) + abs(right)))


def _holds(relation: Relational, left: Any, right: Any) -> bool:
    digits = mpmath.mp.dps
    close = _close(left, right, TOLERANCE * mpmath.mpf(10) ** (DIGITS - digits))
    if isinstance(relation, sp.Eq):
        return close
    if isinstance(relation, sp.Ne):
        return not close
    ordered = bool(relation.func(sp.Float(left.real, digits), sp.Float(right.real, digits)))
    return ordered if isinstance(relation, sp.Gt | sp.Lt) else close or ordered


# ------------------------------------------------------------------------------------------------
# From expressions to numbers


def _angle(y: Any, x: Any) -> Any:
    if x == y == 0:
        raise ZeroDivisionError("zero has no angle")
    return mpmath.atan2(y, x)


def _bounded(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Refuse arguments so large that the function would take its time or all memory."""

    def bounded(x: Any) -> Any:
        if mpmath.mag(x) > 10_000:
            raise OverflowError("too large")
        return function(x)

    return bounded


# mpmath's functions, a few of them with care
_FUNCTIONS: list = [
    {
        **{name: _bounded(getattr(mpmath, name)) for name in ("exp", "cos", "sin", "cosh", "sinh")},
        "atan2": _angle,
        "arg": lambda z: _angle(mpmath.im(z), mpmath.re(z)),
    },
    "mpmath",
]


@functools.lru_cache(maxsize=2048)
def _compile(expression: Any) -> Callable[[dict], Any]:
    """Turn an expression into a function of the symbols' values; matrices stay factored."""
    symbols = _sorted_symbols(expression)
    if isinstance(expression, MatrixBase):
        entries = sp.lambdify(symbols, list(expression), _FUNCTIONS)
        rows, columns = expression.shape

        def explicit(values: dict) -> Any:
            numbers = iter(entries(*(values[s] for s in symbols)))
            return mpmath.matrix([[next(numbers) for _ in range(columns)] for _ in range(rows)])

        return explicit
    if not (is_matrix(expression) or isinstance(expression, sp.Determinant)):
        scalar = sp.lambdify(symbols, expression, _FUNCTIONS)
        return lambda values: scalar(*(values[s] for s in symbols))
    if isinstance(expression, sp.Identity):
        return lambda _: mpmath.eye(int(expression.shape[0]))
    parts = [_compile(argument) for argument in expression.args]
    for kind, combine in _MATRIX_OPERATIONS:
        if isinstance(expression, kind):
            return lambda values: combine(*(part(values) for part in parts))
    return _compile(expression.doit().as_explicit())


_MATRIX_OPERATIONS: tuple = (
    (sp.Transpose, lambda a: a.T),
    (sp.Determinant, mpmath.det),
    (sp.exp, mpmath.expm),
    (sp.MatMul, lambda *factors: functools.reduce(operator.mul, factors)),
    (sp.MatAdd, lambda *terms: functools.reduce(operator.add, terms)),
    (sp.MatPow, lambda a, power: a ** int(power.real)),
)


def _entries(value: Any) -> list:
    numbers = list(value) if isinstance(value, mpmath.matrix) else [mpmath.mpmathify(value)]
    if not all(map(mpmath.isfinite, numbers)):
        raise OverflowError("infinite, or not a number")
    return numbers


def _to_mp(value: Any) -> Any:
    real, imaginary = (mpmath.mpf(part.p) / part.q for part in value.as_real_imag())
    return mpmath.mpc(real, imaginary) if imaginary else real


def plain(value: Any) -> complex | float | int:
    """Return a number of mpmath or sympy as the simplest of Python's that holds it."""
    number = complex(value)
    if number.imag:
        return number
    return int(number.real) if number.real == int(number.real) else number.real


def short(value: Any) -> str:
    """Write a number with six digits at most; whole ones and texts as they are."""
    if isinstance(value, complex):
        return f"{value.real:.6g}{value.imag:+.6g}i"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
