"""The complete list: four questions about a matrix, and the encodings that answer them so."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import traitlets

from rope_minimal.checks import check_flag

from .figure import Choice, Figure, Flag, Real

__all__ = ["AXIOMS", "KINDS", "Axioms", "axioms"]

AXIOMS = ("rule", "circle", "diagonalisable", "orientation")
KINDS = (
    "rope",
    "rope-mirror",
    "oblique",
    "oblique-mirror",
    "growth",
    "growth-mirror",
    "counting",
    "counting-mirror",
    "counting-growth",
    "counting-growth-mirror",
    "none",
)


class Axioms(Figure):
    """The families of encodings, and four things to rule out (``axioms.js``)."""

    question = "Ten position encodings see distance alone: what must be ruled out to leave RoPE?"

    rule = Flag(True, help="require one rule for query and key, so that M is orthogonal")
    circle = Flag(False, help="require that all eigenvalues of M have size 1")
    diagonalisable = Flag(False, help="require it, over the complex numbers")
    orientation = Flag(False, help="require that the determinant of M is positive")
    theta = Real(0.3, low=0.0, high=math.pi, label="Turn per position θ", unit="rad", every=0.01)
    zeta = Real(0.95, low=0.85, high=1.15, label="Factor per position ζ", every=0.005, digits=3)
    large = Choice(["the freest", *KINDS[:-1]], help="the family that is drawn large")
    _families: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)


def axioms(families: Sequence[Mapping[str, Any]]) -> Axioms:
    """Return the families of encodings that see distance alone, with four things to rule out.

    What is not ruled out may hold or not, so fewer ticks leave more families; the freest is drawn.

    Parameters
    ----------
    families
        One entry for each of 16 states, in which a property holds or fails: ``axioms``, the four
        truth values in the order one rule for query and key, eigenvalues of size 1, diagonalisable,
        determinant positive; ``kind``, one of `KINDS`; ``certificate``, the words of the machine;
        and, where a step of a derivation on the page proves it, ``anchor``, the id of its card,
        and ``latex``, its statement.

    Returns
    -------
    Axioms
        Four switches, of which one is on at first, the scores of the ten families, those that are
        out with their reasons; of the freest that is left, or of one that is pressed, its name,
        formula and certificate, the path of an arrow, and the score against distance; sliders for
        the turn and the factor per position.

    Raises
    ------
    TypeError
        If one of ``axioms`` is not True or False.
    ValueError
        If a state is missing or given twice, a kind is not known, or a certificate is missing.
    """
    found: dict[tuple[bool, ...], dict] = {}
    for family in families:
        if missing := {"axioms", "kind"} - set(family):
            raise ValueError(f"families must give {', '.join(sorted(missing))}, got {family!r}")
        for value in family["axioms"]:
            check_flag("axioms", value)
        state = tuple(bool(value) for value in family["axioms"])
        if len(state) != len(AXIOMS) or state in found:
            raise ValueError(f"families must give each of 16 states once, got {family['axioms']}")
        if family["kind"] not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {family['kind']!r}")
        if not family.get("certificate"):
            raise ValueError(f"certificate of {family['axioms']} must not be empty")
        found[state] = {
            "axioms": list(state),
            "kind": family["kind"],
            "certificate": family["certificate"],
            "anchor": family.get("anchor", ""),
            "latex": family.get("latex", ""),
        }
    if len(found) != 2 ** len(AXIOMS):
        raise ValueError(f"families must give each of 16 states once, got {len(found)}")
    figure = Axioms()
    figure._families = list(found.values())
    return figure
