"""Twelve packages with one wrong line each: name the bug from its symptoms."""

import random
from copy import deepcopy
from functools import cache
from typing import Any

import traitlets

from ropebook.bugs import BUGS, EXAMINATIONS, examine, mutant

from .figure import Figure, Whole

__all__ = ["BugBench", "bug_bench", "cases"]

TOKENS = 48


class BugBench(Figure):
    """The chart of one patient, four names, the truth after two guesses (``bug_bench.js``)."""

    question = "One line of this package is wrong. Which bug is it?"

    patient = Whole(1, low=1, high=len(BUGS), label="Patient", fold=True)
    token = Whole(20, low=0, high=TOKENS - 1, help="the token that is read out")
    guesses = traitlets.List(
        traitlets.List(traitlets.Int()), help="of each patient, the options chosen: two at most"
    ).tag(sync=True)
    hint = Whole(0, low=0, high=len(BUGS), help="the patient whose hint is shown, or 0")


@cache
def cases() -> dict[str, Any]:
    """Examine all twelve packages and return what the figure shows of them.

    Returns
    -------
    dict
        ``rows``: the names of the examinations; ``healthy``: score against distance of the real
        package; ``patients``: for each bug its name and chart, four options (places in this list),
        which of them is right, and what is shown afterwards. Takes about two seconds; the result is
        kept.
    """
    places = {bug.key: place for place, bug in enumerate(BUGS)}
    patients = []
    for number, bug in enumerate(BUGS):
        chart = examine(mutant(bug))
        options = [bug.key, *bug.unlike]
        random.Random(number).shuffle(options)
        patients.append(
            {
                "name": bug.name,
                "near": _short(chart["near"]),
                "far": _short(chart["far"]),
                "length": _short(chart["length"]),
                "errors": [
                    [float(f"{error:.1e}") for error in chart["errors"][name]]
                    for name in EXAMINATIONS
                ],
                "options": [places[key] for key in options],
                "right": options.index(bug.key),
                "look": bug.look,
                "story": bug.story,
                "why": bug.why,
                "diff": bug.diff,
                "thread": bug.thread,
                "test": bug.caught_by,
            }
        )
    healthy = _short(examine(mutant())["near"])
    return {"rows": list(EXAMINATIONS.values()), "healthy": healthy, "patients": patients}


def bug_bench(patient: int = 1) -> BugBench:
    """Return the bench: symptoms first, then a name, then the line, the thread and the test.

    Parameters
    ----------
    patient
        The package on the bench at first, 1 to 12.

    Returns
    -------
    BugBench
        There are two guesses for each patient.

    Raises
    ------
    TypeError, ValueError
        If ``patient`` is not an integer in range; the message names it.
    """
    figure = BugBench(patient=patient, guesses=[[]] * len(BUGS))
    figure.data = deepcopy(cases())  # the figure is the reader's to change
    return figure


def _short(values: list[float]) -> list[float]:
    return [round(value, 4) for value in values]
