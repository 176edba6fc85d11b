"""Both sides of a derivation's step as numbers and arrows, at settings of the reader's choice."""

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from . import controls
from .figure import Choice, Figure, Real, Whole

if TYPE_CHECKING:
    from rope_minimal.derivation import Derivation

__all__ = ["Mirror", "mirror"]

AS_PRINTED = "as printed"

# name of a variable -> label of its slider and unit; the order is that of the sliders
LABELS = {
    "m": ("Query position m", ""),
    "n": ("Key position n", ""),
    "i": ("Query position i", ""),
    "j": ("Key position j", ""),
    "s": ("Distance s", ""),
    "theta": ("Turn per position θ", "rad"),
    "omega": ("Turn per position ω", "rad"),
    "phi": ("Angle ϕ", "rad"),
    "x": ("Angle x", "rad"),
    "y": ("Angle y", "rad"),
    "zeta": ("Factor per position ζ", ""),
    "q_x": ("Query q, first channel", ""),
    "q_y": ("Query q, second channel", ""),
    "k_x": ("Key k, first channel", ""),
    "k_y": ("Key k, second channel", ""),
    "q_0": ("Query q, first channel", ""),
    "q_1": ("Query q, second channel", ""),
    "k_0": ("Key k, first channel", ""),
    "k_1": ("Key k, second channel", ""),
}
STEPWISE = {"theta", "omega"}  # radians per position: 0 to half a turn
TURNS = {"phi", "x", "y"}  # radians: half a turn either way
START = {"q_0": 1.2, "q_1": 0.5, "k_0": 0.6, "k_1": -0.9, "i": 5, "j": 2}
START |= {"zeta": 0.95, "omega": 0.3}
FARTHEST = 30  # position on a slider
PARTS = {"_x": "real part", "_y": "imaginary part"}


class Mirror(Figure):
    """The two sides of a step, with numbers in (``mirror.js``).

    `mirror` makes a subclass that has one more trait for each variable, named ``at_`` and the
    variable's name.
    """

    step = Choice([""], help="the step shown")
    variant = traitlets.Unicode(AS_PRINTED, help="as printed, with a slip, or a rival's").tag(
        sync=True
    )
    _data = traitlets.Dict().tag(sync=True)


def mirror(
    derivation: "Derivation", *, step: str | None = None, steps: Sequence[str] | None = None
) -> ipywidgets.VBox:
    """Return the numeric mirror of a derivation, with its controls.

    Parameters
    ----------
    derivation
        A `rope_minimal.derivation.Derivation`. Its undefined functions get the formulas of its
        model.
    step
        Name of the step shown first; by default the last one that has numbers.
    steps
        Names of the steps offered; by default every step that can be evaluated.

    Returns
    -------
    VBox
        A choice of the steps, one slider for every variable that the step has, the statement,
        both sides as numbers (a small table for a matrix) and as arrows in the plane, and their
        difference. The reader may put a slip into the right side, or the formulas of a choice's
        rival into both.

    Raises
    ------
    TypeError
        If ``derivation`` is no Derivation.
    ValueError
        If a step does not exist, or none can be evaluated.
    """
    if not hasattr(derivation, "numeric"):
        raise TypeError(f"derivation must be a Derivation, got {derivation!r}")
    numbers = {s.name: number for number, s in enumerate(derivation, start=1)}
    wanted = list(numbers) if steps is None else list(steps)
    for name in [*wanted, *([step] if step is not None else [])]:
        if name not in numbers:
            raise ValueError(f"step must be a step of {derivation.name!r}, got {name!r}")
    rows = [row for name in wanted if (row := _row(derivation, name, numbers[name]))]
    if not rows:
        raise ValueError(f"derivation {derivation.name!r} has no step that can be evaluated")
    names = [row["name"] for row in rows]
    step = names[-1] if step is None else step
    if step not in names:
        raise ValueError(f"step must have two sides that can be evaluated, got {step!r}")

    labels = [f"{row['number']}. {row['name'].replace('-', ' ')}" for row in rows]
    variables = _ordered(row["variables"] for row in rows)
    traits: dict[str, Any] = {f"at_{v['name']}": _trait(v) for v in variables}
    traits["step"] = Choice(labels, default=labels[names.index(step)])
    figure = type("Mirror", (Mirror,), traits)()
    figure._data = {
        "derivation": derivation.name,
        "steps": [{**row, "variables": [v["name"] for v in row["variables"]]} for row in rows],
    }
    figure.start_here()
    chosen = controls.choice(figure, "step", "Step")
    sliders = [_slider(figure, v).add_class(f"rope-var-{v['name']}") for v in variables]
    return controls.box(
        figure, [chosen, *sliders], question=f"{derivation.title}: do both sides agree?"
    ).add_class("rope-many")


def _row(derivation: "Derivation", name: str, number: int) -> dict | None:
    numeric = derivation.numeric(name)
    if numeric is None:
        return None
    rivals = []
    reached = False
    for step in derivation:
        reached = reached or step.name == name
        # a rival is only known to satisfy the steps above the choice that it is a rival to
        if not reached or step.rival is None:
            continue
        rival = copy.copy(derivation)
        rival.model = {**derivation.model, **step.rival[1]}
        other = rival.numeric(name)
        if other is not None and other != numeric:
            rivals.append(
                {
                    "name": step.rival[0],
                    "left": other["left"],
                    "right": other["right"],
                    "variables": other["variables"],
                }
            )
    variables = {v["name"]: v for v in numeric["variables"]}
    for entry in rivals:
        variables |= {v["name"]: v for v in entry.pop("variables")}
    return {
        "name": name,
        "number": number,
        "anchor": derivation.anchor(name),
        "kind": derivation[name].kind,
        "latex": derivation.latex(name),
        "relation": numeric["relation"],
        "shape": numeric["shape"],
        "left": numeric["left"],
        "right": numeric["right"],
        "own": [v["name"] for v in _ordered([numeric["variables"]])],
        "variables": _ordered([list(variables.values())]),
        "rivals": rivals,
    }


def _ordered(groups: Iterable[list[dict]]) -> list[dict]:
    found = {v["name"]: v for group in groups for v in group}
    known = list(LABELS)
    order = {name: known.index(name) if name in known else len(known) for name in found}
    return sorted(found.values(), key=lambda v: (order[v["name"]], v["name"]))


def _trait(variable: dict) -> Real | Whole:
    name = variable["name"]
    start = START.get(name, variable["start"])
    if variable["integer"]:
        return Whole(int(start), low=0, high=FARTHEST)
    if variable["positive"]:
        return Real(start, low=0.8, high=1.2)
    if name in STEPWISE:
        return Real(start, low=0.0, high=3.14)
    if name in TURNS:
        return Real(start, low=-3.14, high=3.14)
    return Real(start, low=-2.0, high=2.0)


def _slider(figure: Figure, variable: dict) -> ipywidgets.Widget:
    name = variable["name"]
    label, unit = LABELS.get(name, (_plain_label(name), ""))
    step = None if variable["integer"] else 0.01
    return controls.slider(figure, f"at_{name}", label, unit=unit, step=step)


def _plain_label(name: str) -> str:
    base, part = name[:-2], PARTS.get(name[-2:])
    return f"{base}, {part}" if base and part else name
