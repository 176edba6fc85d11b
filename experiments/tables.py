"""All recorded numbers as Markdown tables."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from .encodings import AIDS, ENCODINGS, RAMPS, SIGHTS
from .run import AIDED, BINS, TIMES
from .summary import Spread, by_bin, measured, runs, spread

KINDS = {"none": "nothing", **AIDS, **RAMPS, **SIGHTS}
SHORT = {"stored": "q, k in bfloat16", "bfloat16": "all in bfloat16"}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(values: Sequence[float | None]) -> str:
    """Format the median and the interval of eight values, or two values."""
    found = [v for v in values if v is not None]
    if len(found) < len(values):
        return "lost"  # a diverged training run
    if len(found) < 6:
        return ", ".join(f"{v:.2f}" for v in found)
    return said(spread(found))


def said(found: Spread) -> str:
    """Format a median with its interval; the median alone if they are equal to two digits."""
    median, low, high = (f"{v:.2f}" for v in found[:3])
    return median if low == high else f"{median} ({low} to {high})"


def scores(record: dict[str, Any], what: str) -> str:
    """Return the scores of the measured models at every length, and in 16 bits."""
    head = ["encoding", "rate", *(f"{n} x" for n in TIMES)]
    head += [f"{words}, {n} x" for words in SHORT.values() for n in (1, 2)]
    return table(head, (_score_row(record, name, what) for name in encodings(record)))


def _score_row(record: dict[str, Any], name: str, what: str) -> list[str]:
    run = measured(record, name)
    test = run["test"]
    row = [cell(test["none"][str(n)][what]) for n in TIMES]
    row += [cell(test[kind][str(n)][what]) for kind in SHORT for n in (1, 2)]
    return [ENCODINGS[name].words, f"{run['learning_rate']:g}", *row]


def aids(record: dict[str, Any], what: str) -> str:
    """Return the scores with every rescaling, at the length of `AIDED`."""

    def rows() -> Iterable[list[str]]:
        for name in encodings(record):
            test = measured(record, name)["test"]
            if "temperature" in test:
                shown = (cell(test[k][str(AIDED)][what]) if k in test else "" for k in KINDS)
                yield [ENCODINGS[name].words, *shown]

    return table(["encoding", *KINDS.values()], rows())


def rates(record: dict[str, Any], what: str) -> str:
    """Return the results of every learning rate on two seeds, and of twice the steps."""
    head = ["encoding", "steps", "rate", "loss (validation, bits)", *(f"{n} x" for n in TIMES)]

    def rows() -> Iterable[list[str]]:
        for name in encodings(record):
            found = [*runs(record, name, "choose"), *runs(record, name, "twice")]
            for run in sorted(found, key=lambda r: (r["steps"], r["learning_rate"])):
                shown = [cell(run["test"]["none"][str(n)][what]) for n in TIMES]
                numbers = [f"{run['steps']:,}", f"{run['learning_rate']:g}"]
                yield [ENCODINGS[name].words, *numbers, cell(run["valid_bits"]), *shown]

    return table(head, rows())


def by_distance(record: dict[str, Any]) -> str:
    """Return the accuracy at distances from one edge of `BINS` to the next, in every test."""
    head = ["encoding", "windows", *(f"{a} to {b - 1}" for a, b in itertools.pairwise(BINS))]

    def rows() -> Iterable[list[str]]:
        for name in encodings(record):
            for kind, tests in measured(record, name)["test"].items():
                for times, found in tests.items():
                    done = "" if kind == "none" else f", {(KINDS | SHORT)[kind]}"
                    medians = [f"{one.median:.2f}" for one in by_bin(found["bins"])]
                    short = [""] * (len(BINS) - 1 - len(medians))  # of distances in a short text
                    yield [ENCODINGS[name].words, times + done, *medians, *short]

    return table(head, rows())


def encodings(record: dict[str, Any]) -> list[str]:
    """Return the encodings of a record, in its order."""
    return list(record["settings"]["encodings"])
