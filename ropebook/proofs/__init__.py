"""Derivations that a machine checks: named steps, each an equation that sympy verifies.

A `Derivation` is a list of `Step`. A step is *given* (what we start from), *chosen* (we could have
gone another way) or *derived*. A derived step is checked the moment it is written down, in the
strongest of three ways that applies:

``produced``
    A sympy operation is run on the premises and its result is compared with what is printed.
``symbolic``
    sympy reduces left minus right to zero, using the definitions among the premises.
``numeric``
    Both sides agree at many random settings in 30-digit arithmetic. That shows the step true where
    it was tried, not that it follows: its kind is then *found*, and its card says so.

However it is shown, a step must also hold in every known model (the solution, other models, rivals
of choices) that satisfies the steps it names: where it does not, it does not follow from them. A
false step raises `DerivationError` with its name, both sides and a numeric counterexample.

Each module imports from those above it only:

===================  =====================================================================
``statements``       Matrices at a position, equations, and what one may do to them
``counterexamples``  Models, random settings, and where a statement fails
``equality``         Real and imaginary part, and what counts as equal
``writing``          LaTeX, plain text and the cards of the page
``steps``            A step, a derivation, and what each kind of step must pass
``relativity``       Propose your own: does a score depend on the distance only?
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
