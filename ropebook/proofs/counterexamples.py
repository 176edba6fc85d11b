"""Search for counterexamples: a statement is evaluated in a model at random values of its symbols.

A model gives formulas for undefined functions and matrices, so that both sides of a statement have
numeric values once its symbols have (a *setting*). A setting at which the statement is false is a
counterexample.
"""

import functools
import operator
import random
import threading
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
AGREED = 20  # digits in which two sides must agree
MANY_DIGITS = 400
LARGEST = 40  # the largest number drawn
EXACT_POINTS = 3  # where two sides that agree must do so to any number of digits
SCREEN_POINTS = 12
NUMERIC_POINTS = 60
# division by zero, infinity or too large; a pole; a sum without an end
UNDEFINED = (ArithmeticError, ValueError, mpmath.mp.NoConvergence)
_PRECISION = threading.Lock()  # mpmath has one precision for all threads


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
        self._arguments = (step, problem, sides, counterexample, values)
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

    def __reduce__(self) -> tuple:
        """Support copying and pickling."""
        return type(self), self._arguments


# ------------------------------------------------------------------------------------------------
# Models


def definitions(premises: Iterable[Statement], fixed: Iterable = ()) -> dict:
    """Return premises of the form ``f(x, m) = formula`` or ``a = formula`` as replacement rules.

    Where ``m`` is one of the ``fixed`` symbols, or is itself defined, ``f(x, m)`` is one value of
    the function and defines no other.
    """
    equations = [p for p in premises if isinstance(p, sp.Eq)]
    found: dict = {p.lhs: p.rhs for p in equations if isinstance(p.lhs, _VARIABLES)}
    constants = {*found, *fixed}
    for equation in equations:
        left = equation.lhs
        if isinstance(left, MatrixAt):
            function, where = MatrixFunction(left.name, *left.shape), left.where
        elif isinstance(left, AppliedUndef):
            function, where = left.func, left.args
        else:
            continue
        variables = {v for v in where if isinstance(v, _VARIABLES) and v not in constants}
        if len(variables) == len(where):
            found[function] = _rule(where, equation)
    return found


_VARIABLES = sp.Symbol | sp.MatrixSymbol
_KINDS = ["integer", "even", "odd", "rational", "extended_real", "nonzero"]
_KINDS += ["positive", "negative", "nonnegative", "nonpositive"]


def _rule(variables: Sequence, equation: sp.Eq) -> Callable:
    """Return ``f`` as a function; it stays as it is where a value is not of its variable's kind."""

    def rule(*values: Any) -> Any:
        put = {v: sp.sympify(value) for v, value in zip(variables, values, strict=True)}
        return (equation.rhs if all(map(_is_a, put, put.values())) else equation.lhs).xreplace(put)

    return rule


def _is_a(variable: Any, value: Any) -> bool:
    """Whether a value has the shape of a variable, or satisfies its assumptions (real, ...)."""
    if isinstance(variable, sp.MatrixSymbol):
        return getattr(value, "shape", None) == variable.shape
    return all(getattr(value, f"is_{k}") for k in _KINDS if getattr(variable, f"is_{k}"))


def concrete(expression: Any, model: Model) -> Any:
    """Substitute the model's formulas for undefined functions and matrices."""
    symbols = {k: sp.sympify(v) for k, v in model.items() if isinstance(k, sp.Symbol)}
    functions = {
        k: v for k, v in model.items() if isinstance(k, MatrixFunction | UndefinedFunction)
    }
    others = {
        k.xreplace(symbols): sp.sympify(v)  # a symbol may be the size of a matrix
        for k, v in model.items()
        if k not in symbols and k not in functions
    }
    for _ in range(6):
        before = expression
        expression = expression.xreplace(symbols).xreplace(others)
        for key, value in functions.items():
            if isinstance(key, UndefinedFunction):
                expression = expression.replace(key, value)
            else:
                expression = expression.replace(
                    lambda e, key=key: isinstance(e, MatrixAt) and e.name == key.name,
                    lambda e, value=value: value(*e.where),
                )
        if expression == before:
            break
    # matrices stay factored: multiplied out they would be slow to print and to evaluate
    factored = is_matrix(expression) or expression.has(sp.Determinant)
    return expression if factored else expression.doit()


def filled_in(expression: Any, model: Model) -> Any:
    """Substitute the model's formulas, and a matrix of symbols for each arbitrary vector."""
    expression = concrete(expression, model)
    anything = expression.atoms(sp.MatrixSymbol)
    sized = anything | expression.atoms(MatrixAt, sp.Identity, sp.ZeroMatrix, sp.OneMatrix)
    if missing := {s for matrix in sized for size in matrix.shape for s in size.free_symbols}:
        raise ValueError(f"the model gives no number for the size {', '.join(map(str, missing))}")
    expression = concrete(expression.xreplace({v: _any_matrix(v) for v in anything}), model)
    if unknown := unknowns(expression):
        raise ValueError(f"the model gives no formula for {', '.join(map(str, unknown))}")
    return expression


def _any_matrix(matrix: sp.MatrixSymbol) -> sp.ImmutableMatrix:
    rows, columns = map(int, matrix.shape)
    index = (lambda i, j: f"{i}") if columns == 1 else (lambda i, j: f"{i}{j}")
    return sp.ImmutableMatrix(rows, columns, lambda i, j: _entry(f"{matrix.name}_{index(i, j)}"))


@functools.cache
def _entry(name: str) -> sp.Dummy:
    return sp.Dummy(name, real=True)  # no symbol of the same name is meant


# ------------------------------------------------------------------------------------------------
# Settings


def _sorted_symbols(*expressions: Any) -> list[sp.Symbol]:
    return sorted(set().union(*(e.free_symbols for e in expressions)), key=lambda s: s.name)


def _near(symbol: sp.Symbol, rng: random.Random) -> Any:
    """Draw a small value: an integer, a multiple of 0.1, or a complex number of these."""
    if symbol.is_integer:
        low = 1 if symbol.is_positive else 0 if symbol.is_nonnegative else -12
        return sp.Integer(rng.randint(low, 12))
    if symbol.is_positive:
        return sp.Rational(rng.randint(1, 24), 10)
    signed = [*range(-24, 0), *range(1, 25)]
    x, y = (sp.Rational(rng.choice(signed), 10) for _ in "xy")
    return x if symbol.is_real else x + sp.I * y


def _far(symbol: sp.Symbol, rng: random.Random) -> Any:
    """Draw a value up to ten times as large, a fraction with a random denominator."""
    if symbol.is_integer:
        low = 1 if symbol.is_positive else 0 if symbol.is_nonnegative else -LARGEST
        return sp.Integer(rng.randint(low, LARGEST))
    bottoms = (rng.randint(11, 97) for _ in "xy")
    low = 0 if symbol.is_positive else -24
    x, y = (sp.Rational(rng.randint(low * b + 1, 24 * b), b) for b in bottoms)
    return x if symbol.is_real else x + sp.I * y


def _settings(symbols: Sequence[sp.Symbol], count: int, seed: int) -> Iterator[list]:
    """Yield ``count`` settings (small values, large ones, some zeros), then as many spare ones.

    Small values come first, so that a counterexample is short where there is a short one. Zeros
    come last: all symbols at once, then one at a time.
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
    """A counterexample: the setting and both sides there."""

    setting: dict[str, complex]
    left: complex
    right: complex


def find_counterexample(
    statement: Statement, model: Model, points: int, seed: int = 20210420
) -> tuple[Witness | None, int]:
    """Return the first counterexample (or None) and the number of settings tried."""
    filled = [
        (relation, filled_in(relation.lhs, model), filled_in(relation.rhs, model))
        for relation in relations(statement)
    ]
    sides = [side for _, left, right in filled for side in (left, right)]
    symbols = _sorted_symbols(*sides)
    names = [symbol.name for symbol in symbols]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two different symbols are called {', '.join(twice)}")
    functions = [(relation, _compile(left), _compile(right)) for relation, left, right in filled]

    def pairs(setting: list) -> Iterator[tuple[Relational, list]]:
        """Yield each relation with the entries of its sides, in pairs of numbers."""
        numbers = {s: _to_mp(v) for s, v in zip(symbols, setting, strict=True)}
        for relation, left, right in functions:
            both = _entries(left(numbers)), _entries(right(numbers))
            yield relation, list(zip(*both, strict=True))

    def failures(setting: list, digits: int) -> list:
        """Return where each relation fails, as a pair of numbers, or None where it holds."""
        with _PRECISION, mpmath.workdps(digits):
            return [
                next((p for p in entries if not _holds(relation, *p)), None)
                for relation, entries in pairs(setting)
            ]

    def gaps(setting: list, digits: int) -> list:
        """Return the pair by which each =, <= and >= fails most, or None where it holds."""
        with _PRECISION, mpmath.workdps(digits):
            return [
                max(
                    ((a, b, abs(a - b)) for a, b in entries if _differ(relation, a, b)),
                    key=lambda found: found[2],
                    default=None,
                )
                for relation, entries in pairs(setting)
            ]

    def named(setting: list) -> dict[str, complex]:
        return {s.name: plain(v) for s, v in zip(symbols, setting, strict=True)}

    done = 0
    for setting in _settings(symbols, points, seed):
        if done == points:
            break
        try:
            if all(rough := failures(setting, DIGITS)):  # the statement does, or rounding
                failed = failures(setting, MANY_DIGITS)
                if all(failed) and not _same(rough, failed):
                    continue
                if all(failed) and (first := failed[0]):
                    return Witness(named(setting), plain(first[0]), plain(first[1])), done + 1
            elif done < EXACT_POINTS and all(near := gaps(setting, 2 * DIGITS)):
                nearer = gaps(setting, 4 * DIGITS)  # rounding shrinks with it, a difference stays
                if all(nearer) and all(b[2] > a[2] / 2 for a, b in zip(near, nearer, strict=True)):
                    left, right, _ = nearer[0]
                    return Witness(named(setting), plain(left), plain(right)), done + 1
        except UNDEFINED:
            continue
        except (NameError, TypeError) as error:
            raise ValueError(f"a side cannot be worked out in numbers: {error}") from error
        done += 1
    if not done:
        raise ValueError("no setting could be evaluated")
    return None, done


def _same(ones: list, others: list) -> bool:
    near = mpmath.mpf(10) ** -AGREED
    pairs = zip(ones, others, strict=True)
    return all(one and other and all(map(_close, one, other, (near, near))) for one, other in pairs)


def _close(left: Any, right: Any, tolerance: Any) -> bool:
    return bool(abs(left - right) <= tolerance * (1 + abs(left) + abs(right)))


def _holds(relation: Relational, left: Any, right: Any) -> bool:
    digits = mpmath.mp.dps
    # where more digits are taken, half of them are kept for what is lost on the way
    close = _close(left, right, mpmath.mpf(10) ** -(AGREED if digits == DIGITS else digits // 2))
    if isinstance(relation, sp.Eq):
        return close
    if isinstance(relation, sp.Ne):
        return not close
    ordered = bool(relation.func(sp.Float(left.real, digits), sp.Float(right.real, digits)))
    return ordered if isinstance(relation, sp.Gt | sp.Lt) else close or ordered


def _differ(relation: Relational, left: Any, right: Any) -> bool:
    """Whether two nearly equal sides violate =, <= or >=."""
    if isinstance(relation, sp.Eq):
        return left != right
    if isinstance(relation, sp.Le):
        return left.real > right.real
    return isinstance(relation, sp.Ge) and left.real < right.real


# ------------------------------------------------------------------------------------------------
# From expressions to numbers


def _angle(y: Any, x: Any) -> Any:
    if x == y == 0:
        raise ZeroDivisionError("zero has no angle")
    return mpmath.atan2(y, x)


def _bounded(name: str, growing: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Limit a function to arguments that are fast to evaluate; OverflowError beyond."""
    function = getattr(mpmath, name)

    def bounded(x: Any) -> Any:
        if mpmath.mag(x) > 10_000 or abs(growing(x)) > 200:
            raise OverflowError("too large")
        return function(x)

    return bounded


# mpmath's functions, a few of them with care
_FUNCTIONS: list = [
    {
        **{name: _bounded(name, mpmath.re) for name in ("exp", "cosh", "sinh")},
        **{name: _bounded(name, mpmath.im) for name in ("cos", "sin")},
        "atan2": _angle,
        "arg": lambda z: _angle(mpmath.im(z), mpmath.re(z)),
    },
    "mpmath",
]


@functools.lru_cache(maxsize=2048)
def _compile(expression: Any) -> Callable[[dict], Any]:
    """Compile an expression into a function of its symbols' values; matrices stay factored."""
    symbols = _sorted_symbols(expression)
    if expression.has(sp.Mod):  # written as %, which mpmath has for real numbers only
        expression = expression.replace(sp.Mod, lambda a, b: a - b * sp.floor(a / b))
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
    if isinstance(expression, sp.MatPow) and not expression.exp.is_integer:
        raise ValueError(f"the power of a matrix must be an integer, got {expression.exp}")
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
    """Convert an mpmath or sympy number to int, float or complex, the simplest that holds it."""
    number = complex(value)
    if number.imag:
        return number
    return int(number.real) if number.real == int(number.real) else number.real


def short(value: Any) -> str:
    """Format a number with at most six significant digits; integers and strings unchanged."""
    if isinstance(value, complex):
        return f"{value.real:.6g}{value.imag:+.6g}i"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
