"""Numbers for the page: both sides of a statement as JavaScript, and their values."""

import re as regex
from collections.abc import Mapping
from typing import Any

import mpmath
import sympy as sp

from .counterexamples import Model, filled_in, plain
from .equality import CannotSplitError, split
from .statements import Statement, entries, relations, shape_of

# where the sliders of the numeric mirror begin, by name and then by kind
_START = {"m": 5, "n": 2, "theta": 0.3, "q_x": 1.2, "q_y": 0.5, "k_x": 0.6, "k_y": -0.9}


def _start_value(symbol: sp.Symbol) -> float:
    if symbol.name in _START:
        return _START[symbol.name]
    if symbol.is_integer:
        return 3
    return 1.1 if symbol.is_positive else 0.8


def numeric(statement: Statement, model: Model) -> dict | None:
    """Return both sides as JavaScript, with their variables; `Derivation.numeric` says how."""
    alternatives = relations(statement)
    if len(alternatives) != 1:
        return None
    left, right = (filled_in(side, model) for side in (alternatives[0].lhs, alternatives[0].rhs))
    shape = list(shape_of(left)) or [1, 1]
    if shape[0] * shape[1] > 4:
        return None
    try:
        sides = [[split(e) for e in entries(side)] for side in (left, right)]
    except CannotSplitError:
        return None
    codes, symbols = [], set()
    for side in sides:
        symbols |= set().union(*(x.free_symbols | y.free_symbols for x, y in side))
        codes.append([{"re": _javascript(x), "im": _javascript(y)} for x, y in side])
    ordered = sorted(symbols, key=lambda s: s.name)
    names = [_identifier(s.name) for s in ordered]
    if twice := sorted({s.name for s in ordered if names.count(_identifier(s.name)) > 1}):
        raise ValueError(f"the page has one name for {' and '.join(twice)}: call one another")
    variables = [
        {
            "name": _identifier(s.name),
            "latex": sp.latex(s),
            "integer": bool(s.is_integer),
            "positive": bool(s.is_positive),
            "start": _start_value(s),
        }
        for s in ordered
    ]
    return {
        "variables": variables,
        "relation": alternatives[0].rel_op,
        "shape": shape,
        "left": codes[0],
        "right": codes[1],
    }


def _identifier(name: str) -> str:
    return regex.sub(r"\W", "_", name)


def _javascript(expression: Any) -> str:
    names = {s: sp.Symbol(_identifier(s.name)) for s in expression.free_symbols}
    return sp.jscode(expression.xreplace(names))


def evaluate(
    statement: Statement, model: Model, values: Mapping[str, complex]
) -> tuple[list, list]:
    """Return the numbers of both sides at a setting of the symbols, by name."""
    relation = relations(statement)[0]
    results = []
    for side in (relation.lhs, relation.rhs):
        parts = entries(filled_in(side, model))
        symbols = sorted(set().union(*(p.free_symbols for p in parts)), key=lambda s: s.name)
        missing = [s.name for s in symbols if s.name not in values]
        if missing:
            raise ValueError(f"values must give {', '.join(missing)}, got {sorted(values)}")
        function = sp.lambdify(symbols, parts, "mpmath")
        numbers = function(*(mpmath.mpmathify(values[s.name]) for s in symbols))
        results.append([plain(number) for number in numbers])
    return results[0], results[1]
