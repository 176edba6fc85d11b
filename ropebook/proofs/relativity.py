"""Check whether the attention score of a position encoding depends on the distance only."""

import html
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import sympy as sp

from .counterexamples import NUMERIC_POINTS, Witness, find_counterexample, short
from .equality import is_zero
from .statements import equation, is_matrix


@dataclass(frozen=True)
class Relativity:
    """The result of `check_relative`.

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
                f"{name} = {short(v)}"
                for name, v in c.items()
                if name not in ("m", "n", "shift", "before", "after")
            )
            m, n, s = c["m"], c["n"], c["shift"]
            where = textwrap.fill(f"Not relative. At {rest}:", 80, subsequent_indent="  ")
            return (
                f"{where}\n"
                f"  score(m = {m}, n = {n}) = {short(c['before'])}\n"
                f"  score(m = {m + s}, n = {n + s}) = {short(c['after'])}\n"
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
    """Check whether the score of a position encoding depends on m - n only.

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
        Seed of the random trials.

    Returns
    -------
    Relativity
        True or false, with a proof or a counterexample (m, n, shift).

    Raises
    ------
    TypeError
        If a function does not return a sympy expression (or a column of length ``dim``), or the
        seed is no integer.
    ValueError
        If a symbol of your own is called m, n, shift, q or k (with ``dim``: q0, q1, ...).
    """
    f_k = f_q if f_k is None else f_k
    for name, function in (("f_q", f_q), ("f_k", f_k)):
        if not callable(function):
            raise TypeError(f"{name} must be a function, got {function!r}")
    if not isinstance(seed, Integral) or isinstance(seed, bool):
        raise TypeError(f"seed must be an integer, got {seed!r}")
    m, n = (sp.Dummy(name, integer=True, nonnegative=True) for name in "mn")
    s = sp.Dummy("shift", integer=True, positive=True)
    q, k = _query_and_key(dim)
    score = _real_parameters(_score(f_q(q, m), f_k(k, n), dim))
    _check_names(score, {m, n, s, *sp.sympify((q, k)).free_symbols})
    moved = score.subs({m: m + s, n: n + s}, simultaneous=True)
    witness, _ = find_counterexample(equation(score, moved), {}, NUMERIC_POINTS, int(seed))
    shown = score.xreplace({d: sp.Symbol(d.name, **d.assumptions0) for d in score.atoms(sp.Dummy)})
    if witness is not None:
        return Relativity(False, "counterexample", shown, _positions(witness), False)
    zero = score.count_ops() < 300 and is_zero(score - moved)
    trivial = find_counterexample(equation(score, score.subs(m, s)), {}, 12, int(seed))[0] is None
    return Relativity(True, "symbolic" if zero else "numeric", shown, None, trivial)


def _query_and_key(dim: int | None) -> tuple[Any, Any]:
    if dim is None:
        return sp.Dummy("q", complex=True), sp.Dummy("k", complex=True)
    if not isinstance(dim, Integral) or isinstance(dim, bool) or dim < 1:
        raise ValueError(f"dim must be a positive integer or None, got {dim!r}")
    return tuple(
        sp.Matrix([sp.Dummy(f"{name}{index}", real=True) for index in range(dim)]) for name in "qk"
    )


def _score(query: Any, key: Any, dim: int | None) -> Any:
    for name, value in (("f_q", query), ("f_k", key)):
        try:
            value = sp.sympify(value, strict=True)
        except sp.SympifyError as error:
            raise TypeError(f"{name} must return a sympy expression, got {value!r}") from error
        if dim is None and (is_matrix(value) or not isinstance(value, sp.Expr)):
            raise TypeError(f"{name} must return a sympy expression, got {value!r}")
        if dim is not None and getattr(value, "shape", None) != (dim, 1):
            raise TypeError(f"{name} must return a column of length {dim}, got {value!r}")
    if dim is None:
        return sp.re(sp.sympify(query) * sp.conjugate(key), evaluate=False)
    return (sp.Matrix(query).T * sp.Matrix(key))[0]


def _real_parameters(score: Any) -> Any:
    """Treat symbols without assumptions as real."""
    undeclared = [s for s in score.free_symbols if s.is_complex is None]
    return score.xreplace({s: sp.Symbol(s.name, real=True) for s in undeclared})


def _check_names(score: Any, ours: set[Any]) -> None:
    taken = {symbol.name for symbol in ours} | {"before", "after"}
    if clash := sorted({s.name for s in score.free_symbols - ours} & taken):
        raise ValueError(
            f"the name {clash[0]} is taken by check_relative, call your own symbol something else"
        )


def _positions(witness: Witness) -> dict[str, Any]:
    found = {name: witness.setting.get(name, 0) for name in ("m", "n", "shift")}
    rest = {name: v for name, v in witness.setting.items() if name not in found}
    return {**found, **rest, "before": witness.left, "after": witness.right}
