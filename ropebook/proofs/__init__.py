"""Derivations in named steps, each an equation that sympy verifies.

A `Derivation` is a list of `Step` objects. A step is *given* (an assumption), *chosen* (another
choice is possible) or *derived*. A derived step is verified when it is added, by the strongest of
three methods that applies:

``produced``
    A sympy operation on the premises returns a statement, which must equal the printed one.
``symbolic``
    sympy reduces left minus right to zero, using the definitions among the premises.
``numeric``
    Both sides agree at many random values of the symbols in 30-digit arithmetic. This shows that
    the step is true there, not that it follows: its kind is then *found*, and its card says so.

By any method, a step must also hold in every known model (the solution, other models, rivals of
choices) that satisfies its premises: otherwise it does not follow from them. A false step raises
`DerivationError` with its name, both sides and a numeric counterexample.

Each module imports only from those above it:

===================  =====================================================================
``statements``       Equations, matrix functions of a position, and operations on them
``counterexamples``  Models, random values, and the search for a counterexample
``equality``         Real and imaginary parts, and symbolic equality
``writing``          LaTeX, plain text and HTML cards
``steps``            `Step`, `Derivation`, and the checks of each kind of step
``relativity``       `check_relative`: does a score depend on the distance only?
===================  =====================================================================

Only sympy and the standard library are imported, so all of it also runs in the browser.
"""

from .counterexamples import DerivationError
from .relativity import Relativity, check_relative
from .statements import (
    MatrixFunction,
    both_sides,
    cancel,
    equate,
    equation,
    isolate,
    replace_factors,
    substitute,
)
from .steps import Derivation, Step

__all__ = [
    "Derivation",
    "DerivationError",
    "MatrixFunction",
    "Relativity",
    "Step",
    "both_sides",
    "cancel",
    "check_relative",
    "equate",
    "equation",
    "isolate",
    "replace_factors",
    "substitute",
]
