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

Each module imports from those above it only:

===================  =====================================================================
``statements``       Matrices at a position, equations, and what one may do to them
``counterexamples``  Models, random settings, and where a statement fails
``equality``         Real and imaginary part, and what counts as equal
``writing``          LaTeX, plain text and the cards of the page
``page``             Both sides as numbers and as JavaScript, for the page's mirror
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
    equation,
    for_every,
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
    "check_relative",
    "equation",
    "for_every",
    "isolate",
    "replace_factors",
    "substitute",
]
