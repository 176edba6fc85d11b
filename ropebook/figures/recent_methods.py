"""Small models with encodings of 2024 to 2026: two methods side by side, in every task."""

from typing import Any

import traitlets

from .figure import Choice, Figure, Whole

__all__ = ["LENGTHS", "METHODS", "TASKS", "RecentMethods", "recent_methods"]

TASKS = ["copy", "find", "induction", "language", "parity", "recall"]
"""The tasks, by the names of ``experiments.recent``."""

METHODS = [
    "RoPE",
    "learned frequencies",
    "CoPE (clipped)",
    "FoPE (Fourier)",
    "RoPE++",
    "PoPE",
    "GRAPE, multiplicative",
    "Selective RoPE",
    "RePo",
    "GRAPE, additive",
    "ALiBi",
    "T5 bias",
    "TAPA",
    "two bases",
    "local RoPE, then none",
    "RoPE, then none",
    "DroPE",
    "no encoding",
]
"""What can be compared: fixed angles, angles from data, no angles, and mixtures."""

LENGTHS = [1, 2, 4, 8]
"""Lengths of the texts, in training windows."""


class RecentMethods(Figure):
    """Two of eighteen methods, seed by seed (``recent_methods.js``)."""

    question = "Where do two encodings part, how surely, and at what price?"

    first = Choice(METHODS, default="PoPE", help="the chosen row")
    length = Whole(1, low=1, high=8, label="Length", unit="windows", per_decade=3.321928094887362)
    second = Choice(METHODS, default="RoPE", label="Compared with")
    task = Choice(TASKS, default="language", help="the task that is read")

    @traitlets.validate("data")
    def _check_data(self, given: Any) -> dict[str, Any]:
        """Let the data hold every method in every task, and what each pays."""
        value = given["value"]
        names = [task.get("name") for task in value.get("tasks") or []]
        if names != TASKS:
            raise ValueError(f"data must hold the tasks {', '.join(TASKS)}; got {names!r}")
        if value.get("methods") != METHODS:
            raise ValueError(f"data must hold the methods of METHODS, got {value.get('methods')!r}")
        for held in (*(task.get("scores", {}) for task in value["tasks"]), value.get("pays", {})):
            if set(held) != set(METHODS):
                raise ValueError(f"data must hold the methods of METHODS, got {list(held)!r}")
        return value


def recent_methods(
    data: dict[str, Any],
    first: str = "PoPE",
    second: str = "RoPE",
    length: int = 1,
    task: str = "language",
) -> RecentMethods:
    """Return the encodings of 2024 to 2026, two of them compared.

    Parameters
    ----------
    data
        What ``experiments.figure.recent_methods_data()`` returns.
    first, second
        Two of ``METHODS`` of this module.
    length
        The length of the texts in training windows, 1 to 8; 1, 2, 4 and 8 were measured, and the
        figure shows the nearest of them.
    task
        One of ``TASKS`` of this module.

    Returns
    -------
    RecentMethods
        It has buttons for the task; the first method and the task are also chosen on the map, by
        the pointer or the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it.
    """
    figure = RecentMethods(first=first, second=second, length=length, task=task)
    figure.data = data
    return figure
