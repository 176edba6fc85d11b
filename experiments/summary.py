"""Read the recorded runs: means with intervals, and paired differences.

An interval is the 95 % interval of a mean over five seeds, by Student's t. Two encodings are
compared seed by seed: a seed fixes the weights at the start, the batches and the test, so that the
differences have less noise than the values themselves.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).parent / "results"

T_975 = 2.7764451051977987
"""The 97.5 % point of Student's t with four degrees of freedom: five seeds."""


class Interval(NamedTuple):
    """A mean, the ends of its 95 % interval, and the values that it is the mean of."""

    mean: float
    low: float
    high: float
    values: tuple[float, ...]

    @property
    def within_noise(self) -> bool:
        """Whether the interval holds zero: of a difference, that nothing was shown."""
        return self.low <= 0.0 <= self.high


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of five values with its 95 % interval; raise if there are not five."""
    if len(values) != 5:
        raise ValueError(f"values must be five, one a seed, got {len(values)}")
    mean = math.fsum(values) / 5
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / 4)
    half = T_975 * deviation / math.sqrt(5)
    return Interval(mean, mean - half, mean + half, tuple(values))


def load(task: str) -> dict[str, Any]:
    """Return what is recorded of a task."""
    path = RESULTS / f"{task}.json"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: make experiments")
    return json.loads(path.read_text("utf8"))


def runs(record: dict[str, Any], encoding: str) -> list[dict[str, Any]]:
    """Return the measured runs of an encoding, by seed."""
    if encoding not in record["settings"]["encodings"]:
        raise ValueError(
            f"encoding must be one of {', '.join(record['settings']['encodings'])}; "
            f"got {encoding!r}"
        )
    found = [r for r in record["runs"] if (r["purpose"], r["encoding"]) == ("measure", encoding)]
    return sorted(found, key=lambda r: r["seed"])


def values(
    record: dict[str, Any],
    encoding: str,
    what: str = "accuracy",
    *,
    times: int = 1,
    stretch: str = "none",
    dtype: str = "float32",
) -> list[float]:
    """Return one number a seed: ``accuracy`` (a fraction) or ``bits`` (a target).

    ``times`` is the length of the test in windows, ``stretch`` what was done to the frequencies
    for it, and ``dtype`` the type of the weights and activations in the test.
    """
    return [r["test"][dtype][stretch][str(times)][what] for r in runs(record, encoding)]


def mean(record: dict[str, Any], encoding: str, what: str = "accuracy", **test: Any) -> Interval:
    """Return the mean over the seeds with its interval; the arguments are those of `values`."""
    return interval(values(record, encoding, what, **test))


def difference(
    record: dict[str, Any], a: str, b: str, what: str = "accuracy", **test: Any
) -> Interval:
    """Return the mean of ``a - b`` over the seeds, each seed compared with itself."""
    pairs = zip(values(record, a, what, **test), values(record, b, what, **test), strict=True)
    return interval([x - y for x, y in pairs])
