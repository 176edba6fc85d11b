"""From what was heard and reported to the rows of a file."""

import re
from itertools import groupby
from typing import Any

import numpy as np

from atlas.recording import Heard
from ropescope import Report

from . import runs

PLAIN = (
    "head_dim", "axes", "layout", "place", "width", "direction", "base", "attention_factor",
    "rest_factor", "is_rotation", "singular_values", "deviation", "numbers", "angle_error",
    "angle_error_at", "shared_position", "table_end", "past_end",
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


def row(report: Report, frequencies: list[Any]) -> dict[str, Any]:
    """Return a report as a row; its list of frequencies is added to those known."""
    found = {name: short(getattr(report, name)) for name in PLAIN}
    for name in ("deviation", "angle_error"):  # rounding: its size is meant
        found[name] = short(getattr(report, name), 1)
    found["pairs"] = runs(report.pairs)
    if report.written != report.pairs:
        found["written"] = runs(report.written)
    found["rescaling"] = short(report.rescaling, 7)
    found["equally"] = [str(e) for e in report.explanations[1:3]]
    found["frequencies"] = None
    if report.inv_freq.size:
        speeds = short(report.inv_freq)
        if speeds not in frequencies:
            frequencies.append(speeds)
        found["frequencies"] = frequencies.index(speeds)
    if report.axes > 1 and report.inv_freq.size:
        found["sections"] = sections(report.inv_freq)
    found["findings"] = [[f.gravity, f.words, f.chapter] for f in report.findings]
    return found


def sections(waves: np.ndarray) -> list[list[int]] | None:
    """Return which axis each pair listens to, as runs ``[axis, pairs]``."""
    if ((waves != 0).sum(axis=1) != 1).any():
        return None
    listens = (waves != 0).argmax(axis=1).tolist()
    return [[axis, len(list(pairs))] for axis, pairs in groupby(listens)]


def heard_row(heard: Heard) -> dict[str, Any]:
    """Return what was heard beside the rotation."""
    return {
        "part": part_of(heard.part),
        "model": heard.part,
        "kind": heard.kind,
        "layers": layers(heard.names),
        "norm": {"place": heard.norm, "gains": heard.gains} if heard.norm else None,
        "queries_scaled": heard.queries_scaled,
        "values_turned": heard.values_turned,
        "output_turned": heard.output_turned,
        "where": heard.where,
        "note": heard.note,
    }


def part_of(name: str) -> str:
    """Return what a class of models reads, by its name."""
    for part, words in (
        ("text", "Text|HiggsAudio"),  # what takes tokens, whatever stands for them
        (
            "vision",
            "Vision|ViT|Image|Video|Pixel|Pixtral|DINO|MLCD|Sam|VJEPA|Sapiens|Eomt|LoFTR|LightGlue",
        ),
        (
            "audio",
            "Audio|[Cc]odec|Speech|Wav2Vec|Mimi|Conformer|Asr|ASR|Token2Wav|Code2Wav|Lasr|DiT",
        ),
        ("other", "EsmFold|TimesFm"),
    ):
        if re.search(words, name):
            return part
    return "text"


def layers(names: tuple[str, ...]) -> dict[str, list[list[int]]]:
    """Return names of modules as runs ``[first, last, step]`` of their first number."""
    numbers: dict[str, list[int]] = {}
    for name in names:
        found = re.search(r"\d+", name)
        pattern = name if found is None else f"{name[: found.start()]}*{name[found.end() :]}"
        numbers.setdefault(pattern, []).extend([int(found[0])] if found else [])
    return {pattern: _steps(values) for pattern, values in numbers.items()}


def _steps(values: list[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for value in values:
        if found and (found[-1][0] == found[-1][1] or value - found[-1][1] == found[-1][2]):
            found[-1] = [found[-1][0], value, value - found[-1][1]]
        else:
            found.append([value, value, 1])
    return found
