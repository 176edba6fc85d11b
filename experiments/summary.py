"""Statistics of the recorded runs: medians, intervals, exact tests, predictions.

Eight seeds are few, and accuracies pile up at 0 and 1, so nothing here assumes a normal law. The
interval runs from the second smallest to the second largest of the eight values: it covers the
median of whatever law they come from with 93 %, and cannot leave the range of the values.
Two encodings are compared seed by seed with all 2 ** 8 changes of sign of the differences.
"""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .tasks import TASKS

RESULTS = Path(__file__).parent / "results"
PREDICTIONS = Path(__file__).parent / "predictions.json"

SIGNIFICANT = 0.05


class Spread(NamedTuple):
    """Median, second smallest and second largest of some values, and all values."""

    median: float
    low: float
    high: float
    values: tuple[float, ...]


def spread(values: Sequence[float]) -> Spread:
    """Return the median and the interval of at least six values, one per seed."""
    if len(values) < 6:
        raise ValueError(f"values must be at least six, one a seed, got {len(values)}")
    ordered = sorted(values)
    return Spread(float(np.median(ordered)), ordered[1], ordered[-2], tuple(values))


def by_bin(bins: Sequence[Sequence[float | None]]) -> list[Spread]:
    """Return the `spread` of each distance bin over the seeds that have targets there."""
    return [spread([v for v in row if v is not None]) for row in bins]


def coverage(count: int) -> float:
    """Return the coverage of the interval of `spread` for the median of the distribution."""
    return 1.0 - 2.0 * (1 + count) / 2**count


def sign_flip(differences: Sequence[float]) -> float:
    """Return the exact one-sided p-value of a paired sign-flip test for a positive mean.

    Under the null hypothesis each difference could have the other sign: p is the share of all sign
    patterns whose sum is at least the observed one; with eight differences, 1/256 or more.
    """
    d = np.asarray(differences, dtype=float)
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(d))))
    return float(np.mean(signs @ d >= d.sum() - 1e-12))


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values with Holm's correction."""
    corrected, so_far = [0.0] * len(p), 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        so_far = max(so_far, min(1.0, (len(p) - rank) * p[i]))
        corrected[i] = so_far
    return corrected


def load(task: str) -> dict[str, Any]:
    """Load the record of a task."""
    path = RESULTS / f"{task}.json"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: python -m experiments")
    return json.loads(path.read_text("utf8"))


def runs(record: dict[str, Any], encoding: str, purpose: str) -> list[dict[str, Any]]:
    """Return the runs of an encoding for ``choose``, ``measure`` or ``twice``."""
    known = record["settings"]["encodings"]
    if encoding not in known:
        raise ValueError(f"encoding must be one of {', '.join(known)}; got {encoding!r}")
    return [r for r in record["runs"] if (r["purpose"], r["encoding"]) == (purpose, encoding)]


def measured(record: dict[str, Any], encoding: str) -> dict[str, Any]:
    """Return the main run of an encoding, with eight seeds; raise if it is not recorded."""
    found = runs(record, encoding, "measure")
    if not found:
        raise LookupError(f"{record['task']} of {encoding} is not recorded: python -m experiments")
    return found[0]


def values(
    record: dict[str, Any],
    encoding: str,
    what: str = "accuracy",
    *,
    times: int = 1,
    kind: str = "none",
) -> list[float]:
    """Return one number per seed: ``accuracy`` (a fraction) or ``bits`` (per target).

    ``times`` is the length of the test in windows; ``kind`` is its variant: ``none``, a rescaling,
    ``stored`` or ``bfloat16``, or an intervention on distant keys.
    """
    return measured(record, encoding)["test"][kind][str(times)][what]


def score(record: dict[str, Any], encoding: str, what: str = "accuracy", **test: Any) -> Spread:
    """Return the median over the seeds with its interval; the arguments are those of `values`."""
    return spread(values(record, encoding, what, **test))


# ---- predictions --------------------------------------------------------------------------------


def predictions(path: Path = PREDICTIONS) -> list[dict[str, Any]]:
    """Load the predictions; the file was committed before the runs."""
    return json.loads(path.read_text("utf8"))["predictions"]


def unit(task: str) -> str:
    """Return the unit of a task's score; accuracy for those of `patches`."""
    return TASKS[task].unit if task in TASKS else "accuracy"


def side(records: dict[str, dict[str, Any]], task: str, one: dict[str, Any]) -> list[float]:
    """Return the numbers of one side of a prediction."""
    test = {name: value for name, value in one.items() if name != "encoding"}
    return values(records[task], one["encoding"], unit(task), **test)


def ahead(task: str, a: Sequence[float], b: Sequence[float]) -> tuple[float, ...]:
    """Return the advantage of ``a`` over ``b`` per seed; for bits, less is better."""
    better = -1.0 if unit(task) == "bits" else 1.0
    return tuple(better * (x - y) for x, y in zip(a, b, strict=True))


def judge(records: dict[str, dict[str, Any]], path: Path = PREDICTIONS) -> list[dict[str, Any]]:
    """Return the predictions with what came of them.

    A level holds if at least seven of the eight seeds are on the predicted side of the threshold. A
    comparison holds if the exact test, corrected for all comparisons of the file, stays below 0.05.
    What has no runs yet has ``holds`` None.
    """
    judged: list[dict[str, Any]] = []
    for one in predictions(path):
        found = dict(one)
        try:
            a = side(records, one["task"], one["of"])
            if "over" in one:
                b = side(records, one["task"], one["over"])
                found["differences"] = ahead(one["task"], a, b)
                found["p"] = sign_flip(found["differences"])
            else:
                found["values"] = a
                right = [v >= one["least"] if "least" in one else v <= one["most"] for v in a]
                found["holds"] = sum(right) >= len(a) - 1
        except (KeyError, LookupError):
            found["holds"] = None
        judged.append(found)
    number = sum("over" in one for one in judged)
    tested = [one for one in judged if "p" in one]
    p = [one["p"] for one in tested] + [1.0] * (number - len(tested))  # what is missing counts
    for one, corrected in zip(tested, holm(p), strict=False):
        one["corrected"], one["holds"] = corrected, corrected < SIGNIFICANT
    return judged


# ---- comparisons that were not predicted --------------------------------------------------------


class Comparison(NamedTuple):
    """Differences between two encodings per seed; positive where the first is better."""

    measured: tuple[float, ...]
    """Eight seeds, each encoding at its best learning rate."""
    twice: tuple[float, ...]
    """With twice the steps, two seeds."""
    lower: tuple[float, ...] | None
    """Both at the next lower rate, two seeds; None if one was best at the lowest rate."""
    higher: tuple[float, ...] | None

    @property
    def wins(self) -> int:
        """Number of seeds in which the first is better."""
        return sum(d > 0 for d in self.measured)

    @property
    def p(self) -> float:
        """The p-value of `sign_flip`, not corrected for multiple comparisons."""
        return sign_flip(self.measured)

    @property
    def stands(self) -> bool:
        """Whether at least seven of eight seeds, twice the steps and both other rates agree."""
        others = [d for d in (self.twice, self.lower, self.higher) if d is not None]
        return self.wins >= len(self.measured) - 1 and all(sum(d) > 0 for d in others)


def compare(record: dict[str, Any], a: str, b: str, *, times: int = 1) -> Comparison:
    """Compare two encodings over seeds, training budgets and learning rates."""
    task = record["task"]

    def of(encoding: str, purpose: str, shift: int = 0) -> list[float] | None:
        found = sorted(runs(record, encoding, purpose), key=lambda r: r["learning_rate"])
        if purpose == "choose":
            best = measured(record, encoding)["learning_rate"]
            at = [r["learning_rate"] for r in found].index(best) + shift
            found = found[at : at + 1] if at >= 0 else []
        return found[0]["test"]["none"][str(times)][unit(task)] if found else None

    def minus(purpose: str, shift: int = 0) -> tuple[float, ...] | None:
        one, other = (of(encoding, purpose, shift) for encoding in (a, b))
        if one is None or other is None:
            return None
        return ahead(task, one, other)

    return Comparison(
        minus("measure") or (), minus("twice") or (), minus("choose", -1), minus("choose", 1)
    )


# ---- what a head selects ------------------------------------------------------------------------


def nearest_trained(bank: np.ndarray, weights: np.ndarray, window: int, distances: Any) -> Any:
    """Return the distance of each position code, weighted by pair, to the nearest trained one.

    The code of distance m is the vector of angles m theta; a head that uses pair i with weight w_i
    (they are normed to sum 1) sees two codes sqrt(sum_i w_i |e^(i m theta_i) - e^(i n theta_i)|^2)
    apart. Trained are the distances 0 .. window - 1. At most 2; between random angles about 1.41.
    """
    w = np.asarray(weights, dtype=float) / np.sum(weights)
    far = np.exp(1j * np.outer(distances, bank))
    trained = np.exp(1j * np.outer(np.arange(window), bank))
    overlap = ((far * w) @ trained.conj().T).real
    return np.sqrt(np.maximum(2.0 - 2.0 * overlap, 0.0)).min(axis=1)


def chance(task: str) -> float | None:
    """Return the accuracy of guessing, about one in sixteen; None for tasks without accuracy."""
    return None if TASKS[task].unit == "bits" else 1 / 16
