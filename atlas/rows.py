"""From records and reports to the rows of a results file."""

import re
from typing import Any

import numpy as np

from ropescope import Report
from ropescope.layers import runs_of
from ropescope.series import axis_runs

from . import runs
from .recording import AttentionRecord

PLAIN = (
    "head_dim", "axes", "layout", "place", "width", "direction", "base", "attention_factor",
    "unrotated_factor", "is_rotation", "singular_values", "relative_error", "numbers",
    "angle_error", "angle_error_at", "shared_position", "table_end", "past_end",
)  # fmt: skip


def short(value: Any, digits: int = 6) -> Any:
    """Return a value with every number in it rounded to so many digits."""
    if isinstance(value, dict):
        return {key: short(inside, digits) for key, inside in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [short(inside, digits) for inside in value]
    if isinstance(value, (float, np.floating)):
        rounded = float(f"{value:.{digits - 1}e}")
        return int(rounded) if rounded == int(rounded) and abs(rounded) < 2**53 else rounded
    return value.item() if isinstance(value, np.generic) else value


def row(one: AttentionRecord, report: Report, lists: list[Any]) -> dict[str, Any]:
    """Return a record and its report as a row; its frequencies are added to ``lists``."""
    return {
        "part": part_of(one.model),
        "model": one.model,
        "kind": one.kind,
        "layers": layers(one.modules),
        "norm": {"place": one.norm, "weights": one.norm_weights} if one.norm else None,
        "query_factor": one.query_factor,
        "values_rotated": one.values_rotated,
        "where": one.where,
        "note": one.note,
        **report_row(report, lists),
    }


def report_row(report: Report, lists: list[Any]) -> dict[str, Any]:
    """Return what a row has of the report."""
    found: dict[str, Any] = {name: short(getattr(report, name)) for name in PLAIN}
    for name in ("relative_error", "angle_error"):  # rounding: its order of magnitude
        found[name] = short(getattr(report, name), 1)
    found["pairs"] = runs(report.pairs)
    if report.written != report.pairs:
        found["written"] = runs(report.written)
    found["rescaling"] = short(report.rescaling, 7)
    found["equally"] = [str(e) for e in report.formulas[1:3]]
    found["frequencies"] = None
    if report.inv_freq.size:
        frequencies = short(report.inv_freq)
        if frequencies not in lists:
            lists.append(frequencies)
        found["frequencies"] = lists.index(frequencies)
        if report.axes > 1:
            found["sections"] = sections(report.inv_freq)
    found["findings"] = [
        [int(f.severity), f.message, f.chapter, f.hypothesis] for f in report.findings
    ]
    return found


def sections(waves: np.ndarray) -> list[list[int]] | None:
    """Return the axis of each pair as runs ``[axis, pairs]``; None where a pair has several."""
    if ((waves != 0).sum(axis=1) != 1).any():
        return None
    return axis_runs((waves != 0).argmax(1))


PARTS = {
    "text": "Text|HiggsAudio",  # what takes tokens, whatever they stand for
    "vision": "Vision|ViT|Image|Video|Pixel|Pixtral|DINO|MLCD|Sam|VJEPA|Sapiens|Eomt|LoFTR"
    "|LightGlue",
    "audio": "Audio|[Cc]odec|Speech|Wav2Vec|Mimi|Conformer|Asr|ASR|Token2Wav|Code2Wav|Lasr|DiT",
    "other": "EsmFold|TimesFm",
}
"""Names of classes by what these read; the first that fits counts, else text."""


def part_of(model: str) -> str:
    """Return what a class of models reads, by its name."""
    return next((part for part, words in PARTS.items() if re.search(words, model)), "text")


def layers(modules: tuple[str, ...]) -> dict[str, list[list[int]]]:
    """Return names of modules as runs ``[first, last, step]`` of their first number."""
    numbers: dict[str, list[int]] = {}
    for name in modules:
        found = re.search(r"\d+", name)
        pattern = name if found is None else f"{name[: found.start()]}*{name[found.end() :]}"
        numbers.setdefault(pattern, []).extend([int(found[0])] if found else [])
    return {pattern: runs_of(values) for pattern, values in numbers.items()}
