"""Derivations that a machine checks: named steps, each an equation that sympy verifies.

A `Derivation` is a list of `Step`. A step is *given* (what we start from), *chosen* (we could have
gone another way) or *derived*. A derived step is checked the moment it is written down, in the
strongest of three ways that applies:

``produced``
    A sympy operation is run on the premises and its result is compared with what is printed.
``symbolic``
    sympy reduces left minus right to zero, using the definitions among the premises.
``numeric``
    Both sides agree at many random settings in 30-digit arithmetic.

A false step raises `DerivationError` with its name, both sides and a numeric counterexample.

Only sympy and the standard library are imported, so this file also runs in the browser.
"""

import functools
import html
import operator
import random
import re as regex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction
from sympy.core.relational import Relational
from sympy.matrices.expressions import MatrixExpr
from sympy.matrices.matrixbase import MatrixBase
from sympy.printing.latex import LatexPrinter

__all__ = [
    "Derivation",
    "DerivationError",
    "MatrixFunction",
    "Relativity",
    "Step",
    "both_sides",
    "check_relative",
    "equation",
    "isolate",
    "replace_factors",
    "substitute",
]

Model = Mapping[Any, Any]
Statement = Any  # a sympy relational or an Or of them

DIGITS = 30
TOLERANCE = mpmath.mpf(10) ** -15
SCREEN_POINTS = 12
NUMERIC_POINTS = 60


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
            at = ", ".join(f"{name} = {_short(v)}" for name, v in counterexample.items())
            lines.append(f"  at    {at or 'every setting'}")
            lines.append(f"  left  = {_short(values[0])}")
            lines.append(f"  right = {_short(values[1])}")
        super().__init__("\n".join(lines))


# ------------------------------------------------------------------------------------------------
# Equations


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


def _factors(product: Any) -> list:
    product = product.doit() if not isinstance(product, MatrixBase) else product
    return list(product.args) if isinstance(product, sp.MatMul) else [product]


def _as_statement(statement: Any, name: str) -> Statement:
    """Turn a pair into an unevaluated equation; refuse what cannot be checked."""
    if isinstance(statement, tuple) and len(statement) == 2:
        return equation(*statement)
    if isinstance(statement, sp.Or) and all(isinstance(a, Relational) for a in statement.args):
        return statement
    if isinstance(statement, Relational):
        return statement
    if statement is sp.false or statement is False:
        raise DerivationError(name, "the statement is false as written")
    if statement is sp.true or statement is True:
        raise ValueError(
            f"statement of step {name!r} was evaluated to True before it could be checked: "
            "write it as a pair (left, right)"
        )
    raise TypeError(
        f"statement of step {name!r} must be a pair (left, right), a sympy relation or an Or of "
        f"relations, got {statement!r}"
    )


def _relations(statement: Statement) -> tuple[Relational, ...]:
    return statement.args if isinstance(statement, sp.Or) else (statement,)


def _parts(expression: Any) -> list:
    """Entries of a matrix without unknowns, or the one scalar."""
    if not isinstance(expression, MatrixBase):
        expression = expression.doit()
    if isinstance(expression, MatrixExpr):
        expression = expression.as_explicit()
    return list(expression) if isinstance(expression, MatrixBase) else [expression]


# ------------------------------------------------------------------------------------------------
# From expressions to numbers


def _concrete(expression: Any, model: Model) -> Any:
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
    factored = _is_matrix(expression) or expression.has(sp.Determinant)
    return expression if factored else expression.doit()


def _is_matrix(expression: Any) -> bool:
    """Tell whether a side is a matrix, the exponential of one included."""
    if isinstance(expression, sp.exp):
        return isinstance(expression.args[0], MatrixBase | MatrixExpr)
    return isinstance(expression, MatrixBase | MatrixExpr)


def _shape(expression: Any) -> tuple:
    inner = expression.args[0] if isinstance(expression, sp.exp) else expression
    return tuple(inner.shape) if _is_matrix(expression) else ()


def _unknown(expression: Any) -> set:
    """Undefined functions and matrices that no number can be given to."""
    return expression.atoms(AppliedUndef, MatrixAt, sp.MatrixSymbol)


def _sorted_symbols(*expressions: Any) -> list[sp.Symbol]:
    return sorted(set().union(*(e.free_symbols for e in expressions)), key=lambda s: s.name)


def _random_value(symbol: sp.Symbol, rng: random.Random) -> Any:
    """Draw a short number of the symbol's kind: an integer, a tenth, or a complex of tenths."""
    if symbol.is_integer:
        low = 1 if symbol.is_positive else 0 if symbol.is_nonnegative else -12
        return sp.Integer(rng.randint(low, 12))
    if symbol.is_positive:
        return sp.Rational(rng.randint(1, 24), 10)
    signed = [*range(-24, 0), *range(1, 25)]
    x, y = (sp.Rational(rng.choice(signed), 10) for _ in "xy")
    return x if symbol.is_real else x + sp.I * y


def _settings(symbols: Sequence[sp.Symbol], count: int, seed: int) -> Iterator[list]:
    rng = random.Random(seed)
    for _ in range(count if symbols else 1):
        yield [_random_value(symbol, rng) for symbol in symbols]


def _holds(relation: Relational, left: Any, right: Any) -> bool:
    close = abs(left - right) <= TOLERANCE * (1 + abs(left) + abs(right))
    if isinstance(relation, sp.Eq):
        return bool(close)
    if isinstance(relation, sp.Ne):
        return not close
    if isinstance(relation, sp.Gt | sp.Lt):
        return bool(relation.func(sp.Float(left.real, DIGITS), sp.Float(right.real, DIGITS)))
    return bool(close or relation.func(sp.Float(left.real, DIGITS), sp.Float(right.real, DIGITS)))


@dataclass(frozen=True)
class _Witness:
    """Where a statement fails: the settings and both sides there."""

    setting: dict[str, complex]
    left: complex
    right: complex


def _find_counterexample(
    statement: Statement, model: Model, points: int, seed: int = 20210420
) -> tuple[_Witness | None, int]:
    """Return the first setting at which the statement fails (or None), and the points tried."""
    concrete = [
        (relation, _concrete(relation.lhs, model), _concrete(relation.rhs, model))
        for relation in _relations(statement)
    ]
    sides = [side for _, left, right in concrete for side in (left, right)]
    unknown = set().union(*(_unknown(side) for side in sides))
    if unknown:
        raise ValueError(f"the model gives no formula for {', '.join(map(str, unknown))}")
    symbols = _sorted_symbols(*sides)
    functions = [(relation, _compile(left), _compile(right)) for relation, left, right in concrete]
    done = 0
    with mpmath.workdps(DIGITS):
        for setting in _settings(symbols, points, seed):
            numbers = {s: _to_mp(v) for s, v in zip(symbols, setting, strict=True)}
            failures = []
            try:
                for relation, left, right in functions:
                    pairs = zip(_entries(left(numbers)), _entries(right(numbers)), strict=True)
                    failures.append(
                        next(((x, y) for x, y in pairs if not _holds(relation, x, y)), None)
                    )
            except ZeroDivisionError:
                continue
            done += 1
            if all(failures) and (first := failures[0]):
                at = {s.name: _plain(v) for s, v in zip(symbols, setting, strict=True)}
                return _Witness(at, _plain(first[0]), _plain(first[1])), done
    if not done:
        raise ValueError("no setting could be evaluated")
    return None, done


@functools.lru_cache(maxsize=2048)
def _compile(expression: Any) -> Callable[[dict], Any]:
    """Turn an expression into a function of the symbols' values; matrices stay factored."""
    symbols = _sorted_symbols(expression)
    if isinstance(expression, MatrixBase):
        entries = sp.lambdify(symbols, list(expression), "mpmath")
        rows, columns = expression.shape

        def explicit(values: dict) -> Any:
            numbers = iter(entries(*(values[s] for s in symbols)))
            return mpmath.matrix([[next(numbers) for _ in range(columns)] for _ in range(rows)])

        return explicit
    if not (_is_matrix(expression) or isinstance(expression, sp.Determinant)):
        scalar = sp.lambdify(symbols, expression, "mpmath")
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
    return list(value) if isinstance(value, mpmath.matrix) else [mpmath.mpmathify(value)]


def _to_mp(value: Any) -> Any:
    real, imaginary = (mpmath.mpf(part.p) / part.q for part in value.as_real_imag())
    return mpmath.mpc(real, imaginary) if imaginary else real


def _plain(value: Any) -> complex | float | int:
    number = complex(value)
    if number.imag:
        return number
    return int(number.real) if number.real == int(number.real) else number.real


def _short(value: Any) -> str:
    if isinstance(value, complex):
        return f"{value.real:.6g}{value.imag:+.6g}i"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# ------------------------------------------------------------------------------------------------
# Symbolic equality


class _CannotSplitError(Exception):
    """An expression whose real and imaginary parts this module does not know."""


def split(expression: Any) -> tuple[Any, Any]:
    """Return real and imaginary part; a complex symbol ``q`` becomes ``q_x + i q_y``.

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
        return tuple(sp.Symbol(f"{e.name}_{axis}", real=True) for axis in "xy")
    if e.is_Symbol or (e.is_number and e.is_extended_real) or not e.args:
        return e, sp.S.Zero
    if isinstance(e, AppliedUndef):
        if e.is_extended_real:
            return e, sp.S.Zero
        raise _CannotSplitError(e)
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
        return e.func(*(p[0] for p in parts)), sp.S.Zero
    if isinstance(e, sp.cos):
        return sp.cos(a) * sp.cosh(b), -sp.sin(a) * sp.sinh(b)
    if isinstance(e, sp.sin):
        return sp.sin(a) * sp.cosh(b), sp.cos(a) * sp.sinh(b)
    raise _CannotSplitError(e)


def _is_zero(expression: Any) -> bool:
    """Return True only if sympy reduces the scalar to zero."""
    expression = sp.expand(expression)
    if expression == 0:
        return True
    try:
        parts = split(expression)
    except _CannotSplitError:
        return sp.simplify(expression) == 0
    # sums of exponentials decide what is a polynomial in cosines and sines, and quickly
    return all(sp.expand(p.rewrite(sp.exp)) == 0 or sp.simplify(p) == 0 for p in parts)


def _equal(left: Any, right: Any) -> bool:
    """Return True only if sympy shows that two scalars, or two matrices, are the same."""
    if left == right:
        return True
    if _shape(left) != _shape(right):
        return False
    if _is_matrix(left) and (_unknown(left) or _unknown(right)):
        return _matrix_form(left) == _matrix_form(right)
    return all(_is_zero(a - b) for a, b in zip(_parts(left), _parts(right), strict=True))


def _matrix_form(expression: Any) -> Any:
    """Bring products, transposes and inverses of symbolic matrices into one form."""
    expression = expression.replace(
        lambda e: isinstance(e, MatrixAt),
        lambda e: MatrixAt(e.args[0], sp.expand(e.args[1]), e.args[2]),
    )
    return sp.expand(expression.doit()).doit()


def _same_statement(first: Statement, second: Statement) -> bool:
    """Compare up to simplification, exchange of the sides and the order of an ``Or``."""
    ones, others = _relations(first), list(_relations(second))
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
        isinstance(candidate, kind) and _equal(one.lhs, left) and _equal(one.rhs, right)
        for kind, candidate, left, right in pairs
    )


def _definitions(premises: Iterable[Statement]) -> dict:
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


# ------------------------------------------------------------------------------------------------
# Steps and derivations


@dataclass(frozen=True, repr=False)
class Step:
    """One step of a derivation.

    Attributes
    ----------
    name
        Short, unique in its derivation; part of the anchor on the page.
    kind
        ``"given"``, ``"chosen"`` or ``"derived"``.
    statement
        A sympy relation, or an ``Or`` of relations. A pair means an equation.
    reason
        Why, in words; ``$...$`` is mathematics.
    follows
        Names of the steps it rests on.
    by
        For a produced step: a function of the premises (in the order of ``follows``) that returns
        the statement.
    words
        What ``by`` does, in words.
    otherwise
        For a chosen step: the other choice and what it would give.
    rival
        For a chosen step: ``(name, model)``, formulas that satisfy every earlier step but not this.
    method, points
        Filled in by the check: how it was checked and at how many settings.
    choices
        Filled in: names of the chosen steps among everything it rests on.
    home
        Filled in: the derivation that holds the step. As the last value of a notebook cell, a step
        shows every card of its derivation that no cell has shown yet.
    """

    name: str
    kind: str
    statement: Statement
    reason: str
    follows: tuple[str, ...] = ()
    by: Callable[..., Any] | None = None
    words: str = ""
    otherwise: str = ""
    rival: tuple[str, Model] | None = None
    method: str = ""
    points: int = 0
    choices: tuple[str, ...] = ()
    home: "Derivation | None" = field(default=None, compare=False, repr=False)

    @property
    def sides(self) -> tuple[Any, Any]:
        """Both sides; for an ``Or`` those of the first alternative."""
        relation = _relations(self.statement)[0]
        return relation.lhs, relation.rhs

    def __str__(self) -> str:
        rests = f" (from {', '.join(self.follows)})" if self.follows else ""
        return f"[{self.kind}] {self.name}: {_plain_text(self.statement)}{rests}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str | None:
        return None if self.home is None else self.home._new_cards(self)


class Derivation:
    """A named list of checked steps.

    Parameters
    ----------
    name
        Short identifier: letters, digits and dashes; the first part of every anchor.
    title
        Heading on the page.
    model
        Formulas for the undefined functions and matrices of the derivation: the solution. Every
        statement must hold in it, so the assumptions are known not to contradict each other, and
        every false step has a numeric counterexample.

    Examples
    --------
    >>> import sympy as sp
    >>> q, k = sp.symbols("q k")
    >>> d = Derivation("dot", "The dot product")
    >>> _ = d.given("start", (sp.Abs(q) ** 2, q * sp.conjugate(q)), "length squared")
    """

    def __init__(self, name: str, title: str, model: Model | None = None):
        if not regex.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", name):
            raise ValueError(f"name must be letters, digits and dashes, got {name!r}")
        self.name, self.title = name, title
        self.model: dict = dict(model or {})
        self._steps: dict[str, Step] = {}
        self._fits: dict[tuple, bool] = {}
        self._shown = 0

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps.values())

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, name: str) -> Step:
        if name not in self._steps:
            raise KeyError(f"derivation {self.name!r} has no step {name!r}")
        return self._steps[name]

    def given(self, name: str, statement: Any, reason: str) -> Step:
        """Add what the derivation starts from."""
        return self.add(Step(name, "given", statement, reason))

    def chosen(
        self,
        name: str,
        statement: Any,
        reason: str,
        *,
        otherwise: str,
        rival: tuple[str, Model] | None = None,
    ) -> Step:
        """Add a choice; ``otherwise`` names the other one, ``rival`` proves that there is one."""
        step = Step(name, "chosen", statement, reason, otherwise=otherwise, rival=rival)
        return self.add(step)

    def derived(
        self,
        name: str,
        statement: Any,
        reason: str,
        *,
        follows: Sequence[str],
        by: Callable[..., Any] | None = None,
        words: str = "",
    ) -> Step:
        """Add a step that follows from earlier ones; it is checked at once."""
        follows = (follows,) if isinstance(follows, str) else tuple(follows)
        return self.add(Step(name, "derived", statement, reason, follows, by, words))

    def add(self, step: Step) -> Step:
        """Check a step and append it.

        Raises
        ------
        DerivationError
            If the step is false or is not what its premises give.
        ValueError
            If its name is taken, a premise is unknown, or a field is missing.
        """
        if step.name in self._steps:
            raise ValueError(f"derivation {self.name!r} already has a step {step.name!r}")
        if not regex.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", step.name):
            raise ValueError(f"step name must be letters, digits and dashes, got {step.name!r}")
        checked = replace(self.check(step), home=self)
        self._steps[step.name] = checked
        return checked

    def check(self, step: Step) -> Step:
        """Return the step with ``method``, ``points`` and ``choices`` filled in, or raise."""
        if step.kind not in ("given", "chosen", "derived"):
            raise ValueError(f"kind must be given, chosen or derived, got {step.kind!r}")
        if not step.reason:
            raise ValueError(f"step {step.name!r} needs a reason in words")
        step = replace(step, statement=_as_statement(step.statement, step.name))
        if step.kind == "chosen":
            self._check_choice(step)
            return step
        if step.kind == "given":
            self._screen(step, self.model, "the model of this derivation breaks it")
            return step
        return self._check_derived(step)

    def _screen(self, step: Step, model: Model, problem: str, points: int = SCREEN_POINTS) -> int:
        witness, done = _find_counterexample(step.statement, model, points)
        if witness is not None:
            raise DerivationError(
                step.name, problem, step.sides, witness.setting, (witness.left, witness.right)
            )
        return done

    def _check_choice(self, step: Step) -> None:
        if not step.otherwise:
            raise ValueError(f"chosen step {step.name!r} must say what the other choice gives")
        self._screen(step, self.model, "the model of this derivation breaks it")
        if step.rival is None:
            return
        name, rival = step.rival
        model = {**self.model, **rival}
        for earlier in self:
            problem = f"the rival {name!r} of step {step.name!r} breaks it"
            self._screen(earlier, model, problem)
        if _find_counterexample(step.statement, model, SCREEN_POINTS)[0] is None:
            raise DerivationError(
                step.name, f"it is no choice: the rival {name!r} satisfies it too", step.sides
            )

    def _check_derived(self, step: Step) -> Step:
        if not step.follows:
            raise ValueError(f"derived step {step.name!r} must name the steps it rests on")
        premises = [self[name].statement for name in step.follows]
        if len(_parts_shape(step.statement)) > 1:
            raise DerivationError(step.name, "the two sides differ in shape", step.sides)
        self._screen(step, self.model, "the two sides differ")
        if step.by is not None:
            self._check_produced(step, step.by, premises)
            method, points = "produced", SCREEN_POINTS
        elif self._proved(step, premises):
            method, points = "symbolic", SCREEN_POINTS
        else:
            facts = {**self.model, **_definitions(premises)}
            points = self._screen(step, facts, "the two sides differ", NUMERIC_POINTS)
            method = "numeric"
        return replace(step, method=method, points=points, choices=self._choices(step.follows))

    def _check_produced(
        self, step: Step, by: Callable[..., Any], premises: list[Statement]
    ) -> None:
        result = _as_statement(by(*premises), step.name)
        if _same_statement(result, step.statement):
            return
        problem = f"the premises give {_plain_text(result)} instead"
        for model in self._models(step.follows):
            witness, _ = _find_counterexample(step.statement, model, SCREEN_POINTS)
            if witness is not None:
                values = (witness.left, witness.right)
                raise DerivationError(step.name, problem, step.sides, witness.setting, values)
        raise DerivationError(step.name, problem, step.sides)

    def _proved(self, step: Step, premises: list[Statement]) -> bool:
        facts = _definitions(premises)
        for relation in _relations(step.statement):
            left, right = _concrete(relation.lhs, facts), _concrete(relation.rhs, facts)
            if isinstance(relation, sp.Eq):
                if _equal(left, right):
                    return True
            elif sp.simplify(relation.func(left, right)) is sp.true:
                return True
        return False

    def _models(self, follows: Sequence[str]) -> Iterator[dict]:
        """Every model that satisfies the premises: the solution and the rivals of later choices."""
        premises = tuple(self._closure(follows))
        yield self.model
        for step in self:
            if step.rival is None:
                continue
            model = {**self.model, **step.rival[1]}
            if (step.name, premises) not in self._fits:
                self._fits[step.name, premises] = all(
                    _find_counterexample(self[p].statement, model, 4)[0] is None for p in premises
                )
            if self._fits[step.name, premises]:
                yield model

    def _closure(self, names: Iterable[str]) -> list[str]:
        """Names of everything that the named steps rest on, themselves included, in order."""
        wanted = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in wanted:
                wanted.add(name)
                pending += self[name].follows
        return [step.name for step in self if step.name in wanted]

    def _choices(self, follows: Iterable[str]) -> tuple[str, ...]:
        return tuple(n for n in self._closure(follows) if self[n].kind == "chosen")

    # --- what the page shows -------------------------------------------------------------------

    def anchor(self, step: str) -> str:
        """Return the id of a step's card on the page."""
        return f"{self.name}-{self[step].name}"

    def latex(self, step: str) -> str:
        """Return the statement in LaTeX."""
        return " ".join(tex for _, tex in _tex_parts(self[step].statement))

    def verdict(self, step: str) -> str:
        """Return one sentence: how the step was checked."""
        s = self[step]
        if s.kind == "given":
            return "Nothing to prove; it agrees with the solution at random numbers."
        if s.kind == "chosen":
            if s.rival is None:
                return "Nothing to prove."
            return (
                f"Really a choice: {s.rival[0]} satisfies every step above, but not this one "
                "(checked at random numbers)."
            )
        if s.method == "produced":
            return f"Produced: {s.words or 'sympy works it out'}; the result is what is printed."
        if s.method == "symbolic":
            return "Verified symbolically: sympy reduces left minus right to zero."
        places = "once" if s.points == 1 else f"at {s.points} random settings"
        return f"Verified numerically: both sides agree to 15 digits {places}."

    def numeric(self, step: str) -> dict | None:
        """Return both sides as JavaScript expressions of real variables, or None.

        Returns
        -------
        dict
            ``variables``: ``name``, ``latex``, ``integer``, ``positive`` and a ``start`` value;
            ``relation``; ``left`` and ``right``: lists (one entry, or the entries of a matrix row
            by row) of ``{"re": code, "im": code}``; ``shape`` of the matrix or ``[1, 1]``.
            Undefined functions have the formulas of the model. None for an ``Or``.
        """
        return _numeric(self[step].statement, self.model)

    def evaluate(self, step: str, values: Mapping[str, complex]) -> tuple[list, list]:
        """Return both sides as numbers at a setting ``{"q": 1 + 2j, "m": 3, ...}``."""
        return _evaluate(self[step].statement, self.model, values)

    def to_dict(self) -> dict:
        """Return everything the page needs, as plain JSON data."""
        steps = [{**self._described(s), "numeric": self.numeric(s.name)} for s in self]
        return {"name": self.name, "title": self.title, "steps": steps}

    def _described(self, s: Step) -> dict:
        """Return what a card shows of a step, as plain JSON data."""
        return {
            "name": s.name,
            "anchor": self.anchor(s.name),
            "kind": s.kind,
            "latex": self.latex(s.name),
            "reason": s.reason,
            "follows": list(s.follows),
            "method": s.method,
            "verdict": self.verdict(s.name),
            "otherwise": s.otherwise,
            "choices": list(s.choices),
        }

    def __repr__(self) -> str:
        return f"Derivation({self.name!r}, {len(self)} steps)"

    def __str__(self) -> str:
        lines = [self.title]
        lines += [f"{number:>2}. {s}" for number, s in enumerate(self, start=1)]
        return "\n".join(lines)

    def _repr_latex_(self) -> str:
        rows = [rf"\text{{{s.name}}} && {self.latex(s.name)} && \text{{{s.kind}}}" for s in self]
        return "$$\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}$$"

    def _repr_html_(self) -> str:
        self._shown = len(self)
        cards = [self._card(number, s) for number, s in enumerate(self, start=1)]
        return _all_cards(self.name, self.title, cards)

    def _new_cards(self, last: Step) -> str:
        """Cards up to a step that no cell has shown yet; without ids, the full list has those."""
        steps = list(self)
        stop = list(self._steps).index(last.name) + 1
        first = self._shown if self._shown < stop else stop - 1
        self._shown = max(self._shown, stop)
        cards = [self._card(i + 1, steps[i], anchored=False) for i in range(first, stop)]
        return _some_cards(first + 1, cards)

    def _card(self, number: int, s: Step, anchored: bool = True) -> str:
        premises = [self[name].statement for name in s.follows]
        parts = _tex_parts(s.statement, premises)
        return _card(number, self._described(s), parts, self.name, anchored)


def _parts_shape(statement: Statement) -> set:
    """Shapes of all sides; more than one means that a relation compares unlike things."""
    return {_shape(side) for r in _relations(statement) for side in (r.lhs, r.rhs)}


# ------------------------------------------------------------------------------------------------
# Printing

_RELATIONS = {"==": "=", "!=": r"\neq", "<": "<", "<=": r"\leq", ">": ">", ">=": r"\geq"}

_STYLE = """<style>
.derivation { margin: 1rem 0; container-type: inline-size; }
html[data-theme=dark] .bd-content div.cell_output .text_html.text_html:has(.derivation-steps) {
  background: none; color: inherit; padding: 0; }
.derivation-title { font-weight: 600; margin: 0 0 .5rem; }
ol.derivation-steps { list-style: none; margin: 0; padding: 0; }
.derivation-step { border: 1px solid color-mix(in srgb, currentColor 25%, transparent);
  border-inline-start-width: 4px; border-radius: .4rem; padding: .6rem .9rem; margin: 0 0 .6rem;
  scroll-margin-top: 5rem; }
.derivation-step[data-kind="given"] { border-inline-start-color: #5c7cfa; }
.derivation-step[data-kind="chosen"] { border-inline-start-color: #e8890c; }
.derivation-step[data-kind="derived"] { border-inline-start-color: #2b9a66; }
.derivation-step:target { outline: 2px solid currentColor; outline-offset: 2px; }
.derivation-step p { margin: .25rem 0; }
.derivation-number { font-variant-numeric: tabular-nums; opacity: .75; }
.derivation-name { color: inherit; font-weight: 600; text-decoration: none; }
.derivation-name:hover, .derivation-name:focus { text-decoration: underline; }
.derivation-kind { border: 1px solid currentColor; border-radius: 1rem; font-size: .8em;
  padding: 0 .5em; }
.derivation-statement { overflow-x: auto; overflow-y: hidden; padding: .35rem 0; }
.derivation-statement > span { display: inline-block; padding: .12em .35em .12em 0; }
.derivation-new { border-bottom: .08em solid #2b9a66; }
.derivation-verdict, .derivation-follows, .derivation-choices { font-size: .9em; }
</style>
"""


class _Printer(LatexPrinter):
    """sympy's LaTeX, with Re and Im upright and what is new in a class."""

    def __init__(self, fresh: set | None = None):
        super().__init__({"mat_delim": "(", "mat_str": "matrix", "fold_func_brackets": False})
        self._fresh = fresh or set()

    def _print(self, expr: Any, **kwargs: Any) -> str:
        tex = super()._print(expr, **kwargs)
        if isinstance(expr, sp.Basic) and expr in self._fresh:
            return rf"\class{{derivation-new}}{{{tex}}}"
        return tex

    def _print_re(self, expr: Any, exp: Any = None) -> str:
        return rf"\operatorname{{Re}}\left({self._print(expr.args[0])}\right)"

    def _print_im(self, expr: Any, exp: Any = None) -> str:
        return rf"\operatorname{{Im}}\left({self._print(expr.args[0])}\right)"

    def _as_ordered_terms(self, expr: Any, order: Any = None) -> list:
        terms = super()._as_ordered_terms(expr, order)  # n - m, not -m + n
        return sorted(terms, key=lambda term: term.could_extract_minus_sign())

    def _print_Function(self, expr: Any, exp: Any = None) -> str:  # noqa: N802
        self._settings["fold_func_brackets"] = isinstance(expr, sp.sin | sp.cos)
        tex = super()._print_Function(expr, exp)
        self._settings["fold_func_brackets"] = False
        return tex

    def _print_Identity(self, expr: Any) -> str:  # noqa: N802
        return "I"

    def _print_Transpose(self, expr: Any) -> str:  # noqa: N802
        inner = self.parenthesize(expr.arg, 100, strict=True) if expr.arg.args else ""
        return rf"{inner or self._print(expr.arg)}^{{\top}}"

    def _print_MatrixAt(self, expr: Any) -> str:  # noqa: N802
        return expr._latex(self)


def _fresh(statement: Statement, premises: Sequence[Statement]) -> set:
    """Find the smallest compound expressions that no premise contains: what a step changed."""
    known = {node for premise in premises for node in sp.preorder_traversal(premise)}

    def is_known(node: Any) -> bool:
        return not node.args or node in known or -node in known or node.is_number

    return {
        node
        for node in sp.preorder_traversal(statement)
        if isinstance(node, sp.Expr)
        and known
        and not is_known(node)
        and all(is_known(a) for a in node.args if isinstance(a, sp.Expr))
    }


def _tex_parts(statement: Statement, premises: Sequence[Statement] = ()) -> list[tuple[str, str]]:
    """Return the sides and signs of a statement in LaTeX; what no premise contains is marked."""
    printer = _Printer(_fresh(statement, premises))
    parts: list[tuple[str, str]] = []
    for relation in _relations(statement):
        if parts:
            parts.append(("or", r"\quad\text{or}\quad"))
        parts += [
            ("left", printer.doprint(relation.lhs)),
            ("relation", _RELATIONS[relation.rel_op]),
            ("right", printer.doprint(relation.rhs)),
        ]
    return parts


def _plain_text(statement: Statement) -> str:
    signs = {"==": "="}
    return " or ".join(
        f"{r.lhs} {signs.get(r.rel_op, r.rel_op)} {r.rhs}" for r in _relations(statement)
    )


def _text(text: str) -> str:
    """Escape for HTML; ``$...$`` becomes inline mathematics, ``*...*`` and ``**...**`` emphasis."""
    pieces = text.split("$")
    for i, piece in enumerate(pieces):
        piece = html.escape(piece)
        if i % 2:
            pieces[i] = rf"\({piece}\)"
        else:
            piece = regex.sub(r"`([^`]+)`", r"<code>\1</code>", piece)
            piece = regex.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", piece)
            pieces[i] = regex.sub(r"\*([^*]+)\*", r"<em>\1</em>", piece)
    return "".join(pieces)


def _all_cards(derivation: str, title: str, cards: Iterable[str]) -> str:
    """Return a whole derivation as HTML, under its title."""
    body = "\n".join(cards)
    return (
        f'{_STYLE}<section class="derivation tex2jax_process" id="{derivation}" '
        f'data-derivation="{derivation}" aria-labelledby="{derivation}-title">\n'
        f'<p class="derivation-title" id="{derivation}-title">{_text(title)}</p>\n'
        f'<ol class="derivation-steps">\n{body}\n</ol>\n</section>'
    )


def _some_cards(start: int, cards: Iterable[str]) -> str:
    """Return a part of a derivation as HTML; ``start`` is the number of its first card."""
    body = "\n".join(cards)
    return (
        f'{_STYLE}<ol class="derivation-steps derivation-new-steps tex2jax_process" '
        f'start="{start}">\n{body}\n</ol>'
    )


def _card(
    number: int, step: Mapping, parts: Iterable[tuple[str, str]], derivation: str, anchored: bool
) -> str:
    """Return one step as HTML: what `Derivation.to_dict` says of it, and its statement's parts."""
    anchor, name, kind = step["anchor"], step["name"], step["kind"]
    statement = "".join(
        f'<span class="derivation-{part}">\\(\\displaystyle {html.escape(tex)}\\)</span> '
        for part, tex in parts
    )
    rows = [
        f'<p class="derivation-head"><span class="derivation-number">{number}</span> '
        f'<a class="derivation-name" href="#{anchor}">{name.replace("-", " ")}</a> '
        f'<span class="derivation-kind derivation-kind-{kind}">{kind}</span></p>',
        f'<div class="derivation-statement">{statement}</div>',
        f'<p class="derivation-reason">{_text(step["reason"])}</p>',
    ]
    if step["otherwise"]:
        rows.append(
            f'<p class="derivation-otherwise"><b>Otherwise:</b> {_text(step["otherwise"])}</p>'
        )
    rows.append(
        f'<p class="derivation-verdict"><span aria-hidden="true">'
        f"{'&#10003;' if kind == 'derived' else '&#8226;'}</span> "
        f"{_text(step['verdict'])}</p>"
    )
    follows, choices = step["follows"], step["choices"]
    if follows:
        rows.append(f'<p class="derivation-follows">Rests on {_links(derivation, follows)}.</p>')
        forced = (
            f"Depends on the choice{'s' if len(choices) > 1 else ''} {_links(derivation, choices)}"
            if choices
            else "Forced: it depends on no choice made here"
        )
        rows.append(f'<p class="derivation-choices">{forced}.</p>')
    body = "\n".join(rows)
    identity = f' id="{anchor}"' if anchored else ""
    return (
        f'<li class="derivation-step"{identity} data-step="{name}" '
        f'data-kind="{kind}" data-method="{step["method"]}" '
        f'data-follows="{" ".join(follows)}">\n{body}\n</li>'
    )


def _links(derivation: str, names: Iterable[str]) -> str:
    return ", ".join(f'<a href="#{derivation}-{n}">{n.replace("-", " ")}</a>' for n in names)


# ------------------------------------------------------------------------------------------------
# Numbers for the page


# where the sliders of the numeric mirror begin, by name and then by kind
_START = {"m": 5, "n": 2, "theta": 0.3, "q_x": 1.2, "q_y": 0.5, "k_x": 0.6, "k_y": -0.9}


def _start_value(symbol: sp.Symbol) -> float:
    if symbol.name in _START:
        return _START[symbol.name]
    if symbol.is_integer:
        return 3
    return 1.1 if symbol.is_positive else 0.8


def _numeric(statement: Statement, model: Model) -> dict | None:
    relations = _relations(statement)
    if len(relations) != 1:
        return None
    left, right = (_concrete(side, model) for side in (relations[0].lhs, relations[0].rhs))
    shape = list(_shape(left)) or [1, 1]
    if shape[0] * shape[1] > 4:
        return None
    try:
        sides = [[split(e) for e in _parts(side)] for side in (left, right)]
    except _CannotSplitError:
        return None
    codes, symbols = [], set()
    for side in sides:
        symbols |= set().union(*(x.free_symbols | y.free_symbols for x, y in side))
        codes.append([{"re": _javascript(x), "im": _javascript(y)} for x, y in side])
    variables = [
        {
            "name": _identifier(s.name),
            "latex": sp.latex(s),
            "integer": bool(s.is_integer),
            "positive": bool(s.is_positive),
            "start": _start_value(s),
        }
        for s in sorted(symbols, key=lambda s: s.name)
    ]
    return {
        "variables": variables,
        "relation": relations[0].rel_op,
        "shape": shape,
        "left": codes[0],
        "right": codes[1],
    }


def _identifier(name: str) -> str:
    return regex.sub(r"\W", "_", name)


def _javascript(expression: Any) -> str:
    names = {s: sp.Symbol(_identifier(s.name)) for s in expression.free_symbols}
    return sp.jscode(expression.xreplace(names))


def _evaluate(
    statement: Statement, model: Model, values: Mapping[str, complex]
) -> tuple[list, list]:
    relation = _relations(statement)[0]
    results = []
    for side in (relation.lhs, relation.rhs):
        parts = _parts(_concrete(side, model))
        symbols = sorted(set().union(*(p.free_symbols for p in parts)), key=lambda s: s.name)
        missing = [s.name for s in symbols if s.name not in values]
        if missing:
            raise ValueError(f"values must give {', '.join(missing)}, got {sorted(values)}")
        function = sp.lambdify(symbols, parts, "mpmath")
        numbers = function(*(mpmath.mpmathify(values[s.name]) for s in symbols))
        results.append([_plain(number) for number in numbers])
    return results[0], results[1]


# ------------------------------------------------------------------------------------------------
# Propose your own


@dataclass(frozen=True)
class Relativity:
    """The answer of `check_relative`.

    Attributes
    ----------
    relative
        True if the score depends on m - n only.
    method
        ``"symbolic"`` or ``"numeric"`` when relative, ``"counterexample"`` when not.
    score
        The score as sympy sees it.
    counterexample
        ``m``, ``n``, ``shift``, the values of all other symbols, and the two scores ``before``
        and ``after`` both positions were moved by ``shift``; None when relative.
    trivial
        True if the score ignores both positions.
    """

    relative: bool
    method: str
    score: Any
    counterexample: dict[str, Any] | None
    trivial: bool

    def __bool__(self) -> bool:
        return self.relative

    def __str__(self) -> str:
        if not self.relative:
            c = self.counterexample or {}
            rest = ", ".join(
                f"{name} = {_short(v)}"
                for name, v in c.items()
                if name not in ("m", "n", "shift", "before", "after")
            )
            m, n, s = c["m"], c["n"], c["shift"]
            where = textwrap.fill(f"Not relative. At {rest}:", 80, subsequent_indent="  ")
            return (
                f"{where}\n"
                f"  score(m = {m}, n = {n}) = {_short(c['before'])}\n"
                f"  score(m = {m + s}, n = {n + s}) = {_short(c['after'])}\n"
                f"The distance m - n = {m - n} is the same, the score is not."
            )
        how = (
            "sympy proves it for all m, n and shifts"
            if self.method == "symbolic"
            else f"not proved, but no counterexample in {NUMERIC_POINTS} random trials"
        )
        if self.trivial:
            return f"Relative, but it ignores position altogether ({how})."
        return f"Relative: the score depends on m - n only ({how})."

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        state = "true" if self.relative else "false"
        return (
            f'<pre class="relativity relativity-{state}" data-relative="{state}">'
            f"{html.escape(str(self))}</pre>"
        )


def check_relative(
    f_q: Callable[[Any, Any], Any],
    f_k: Callable[[Any, Any], Any] | None = None,
    *,
    dim: int | None = None,
    seed: int = 7,
) -> Relativity:
    """Tell whether the score of an encoding depends on m - n only.

    Parameters
    ----------
    f_q
        ``f_q(q, m)``: the query at position m, a sympy expression. A symbol of your own, such as
        ``theta``, stands for any number, a real one unless you declared it complex.
    f_k
        The same for the key; ``f_q`` when left out.
    dim
        None: q and k are complex numbers and the score is Re f_q(q, m) conj(f_k(k, n)). An
        integer: they are real column vectors of that length and the score is their dot product.
    seed
        Of the random trials.

    Returns
    -------
    Relativity
        True or false, with a proof or a counterexample (m, n, shift).

    Raises
    ------
    TypeError
        If a function does not return a sympy expression (or a column of length ``dim``).
    """
    f_k = f_q if f_k is None else f_k
    m, n = sp.symbols("m n", integer=True, nonnegative=True)
    s = sp.Symbol("shift", integer=True, positive=True)
    q, k = _query_and_key(dim)
    score = _real_parameters(_score(f_q(q, m), f_k(k, n), dim))
    moved = score.subs({m: m + s, n: n + s}, simultaneous=True)
    witness, _ = _find_counterexample(equation(score, moved), {}, NUMERIC_POINTS, seed)
    if witness is not None:
        return Relativity(False, "counterexample", score, _positions(witness), False)
    zero = score.count_ops() < 300 and _is_zero(score - moved)
    trivial = _find_counterexample(equation(score, score.subs(m, s)), {}, 12, seed)[0] is None
    return Relativity(True, "symbolic" if zero else "numeric", score, None, trivial)


def _query_and_key(dim: int | None) -> tuple[Any, Any]:
    if dim is None:
        return sp.symbols("q k", complex=True)
    if not isinstance(dim, int) or isinstance(dim, bool) or dim < 1:
        raise ValueError(f"dim must be a positive integer or None, got {dim!r}")
    return tuple(sp.Matrix(sp.symbols(f"{name}:{dim}", real=True)) for name in "qk")


def _score(query: Any, key: Any, dim: int | None) -> Any:
    for name, value in (("f_q", query), ("f_k", key)):
        try:
            value = sp.sympify(value)
        except sp.SympifyError as error:
            raise TypeError(f"{name} must return a sympy expression, got {value!r}") from error
        if dim is None and not isinstance(value, sp.Expr):
            raise TypeError(f"{name} must return a sympy expression, got {value!r}")
        if dim is not None and getattr(value, "shape", None) != (dim, 1):
            raise TypeError(f"{name} must return a column of length {dim}, got {value!r}")
    if dim is None:
        return sp.re(sp.sympify(query) * sp.conjugate(key), evaluate=False)
    return (sp.Matrix(query).T * sp.Matrix(key))[0]


def _real_parameters(score: Any) -> Any:
    """Read a symbol of which nothing was said as a real number."""
    undeclared = [s for s in score.free_symbols if s.is_complex is None]
    return score.xreplace({s: sp.Symbol(s.name, real=True) for s in undeclared})


def _positions(witness: _Witness) -> dict[str, Any]:
    found = {name: witness.setting.get(name, 0) for name in ("m", "n", "shift")}
    rest = {name: v for name, v in witness.setting.items() if name not in found}
    return {**found, **rest, "before": witness.left, "after": witness.right}
