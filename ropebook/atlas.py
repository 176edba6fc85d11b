"""What the book shows of the atlas: its rotations as rows, and as compact data for the figure."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from atlas import (
    BY_COUNT,
    BY_HEAD,
    FIRST_HEAD,
    INNER_WIDTH,
    RESULTS,
    TABLE_ALONE,
    all_pairs,
    load,
)
from ropebook.figures.atlas import FIELDS
from ropescope import Finding, Report, Severity
from ropescope.configuration import load_rules
from ropescope.differences import LOST
from ropescope.elsewhere import load_engines

__all__ = ["AFTER", "Row", "atlas_data", "card_data", "compact", "read_atlas", "record"]

SEEN = ("exact angles", "counter-clockwise", "unit factor", "written layout")
"""Hypotheses whose findings a card shows in other words, or that nearly all rotations have."""

AFTER, BEFORE = "after, with gains", "before the projection"


@dataclass(frozen=True, eq=False)
class Row:
    """One rotation of one family: what ``atlas/results`` holds, and a name.

    Attributes
    ----------
    name
        The family, and what tells this rotation from its others, after a colon.
    family, part
        The same apart.
    found
        The rotation, as `atlas` describes it.
    frequencies
        Radians per position, (pairs,), or (pairs, axes).
    rests
        How many of the same model's layers of such attention do not turn, in words; None where all
        of them do.
    chosen
        What was set against the defaults, in words; None where nothing was.
    """

    name: str
    family: str
    part: str
    found: dict[str, Any]
    frequencies: np.ndarray
    rests: str | None = None
    chosen: str | None = None

    def __getattr__(self, key: str) -> Any:
        """Return what the rotation has under this name: ``row.layout``, ``row.base``."""
        try:
            return self.found[key]
        except KeyError:
            raise AttributeError(f"Row has no {key!r}") from None

    @property
    def report(self) -> Report:
        """What is needed to compare it with another: numbers in six digits, and the findings."""
        known = {f.name for f in fields(Report)} & set(self.found) - {"rescaling"}
        values = {key: self.found[key] for key in known}
        values["pairs"] = tuple(map(tuple, all_pairs(self.found["pairs"]).tolist()))
        written = self.found.get("written", self.found["pairs"])
        values["written"] = tuple(map(tuple, all_pairs(written).tolist()))
        rescaling = self.found["rescaling"] and tuple(self.found["rescaling"])
        return Report(
            probed="what the atlas holds",
            inv_freq=self.frequencies,
            inv_freq_error=1e-6 * np.abs(self.frequencies),
            rescaling=rescaling,
            more=tuple(Finding(*found) for found in self.found["findings"]),
            **values,
        )

    @property
    def norm(self) -> str | None:
        """Where queries and keys are normalised."""
        where = self.found.get("norm")
        if where is None:
            return None
        return AFTER if where["place"] == "after" and where["weights"] else str(where["place"])

    @property
    def broken(self) -> str | None:
        """What breaks the promise, or by how much; None where scores depend on the distance alone.

        Gains after the turn are counted as what they can be and not as what they start from, 1.
        """
        if self.found.get("where") == BEFORE:
            return "a projection after the turn"
        if self.norm == AFTER and self.found["is_rotation"]:
            return "gains after the turn"
        if _chooses(self.found) and BY_COUNT in (self.found.get("note") or ""):
            return "keys turned by a count of their own"
        failed = {hypothesis for *_, hypothesis in self.found["findings"]}
        if "lengths keep" in failed:  # its keys do not
            return "queries that grow with their position"
        if not self.found["is_rotation"]:
            return "a turn that is no rotation"
        if "relative" not in failed:
            return None
        change = self.found["relative_error"]
        return "an unknown size" if change is None else f"some {change:.1g}"

    @property
    def kept(self) -> bool:
        """Whether scores depend on the distance alone, as far as the numbers carry."""
        return self.broken is None

    @property
    def findings(self) -> list[str]:
        """What is worth saying beside the card, the gravest first."""
        said = [words for _, words, _, name in self.found["findings"] if name not in SEEN]
        if self.norm == AFTER:
            said.insert(0, "Learned gains act after the turn: unless they are alike in each pair, "
                        "scores depend on the place.")  # fmt: skip
        if notes := [note for note in (self.found.get("note"), self.chosen) if note]:
            said.insert(0, f"Note: {'; '.join(notes)}.")
        if self.found.get("values_rotated"):
            said.insert(0, "Values are turned, too.")
        return said


def record() -> dict[str, Any]:
    """Return all that was found in transformers, as `atlas` describes it."""
    return load("transformers")


def read_atlas() -> list[Row]:
    """Return every rotation of transformers, by family and in the order in which it was heard."""
    whole = record()
    rows = []
    for family, entry in whole["families"].items():
        found = entry.get("rotations", [])
        for rotation, part in zip(found, _parts(found), strict=True):
            index = rotation["frequencies"]
            speeds = np.array([] if index is None else whole["frequencies"][index], float)
            name = f"{family}: {part}" if part else family
            rests = _rests(rotation, entry)
            chosen = _chosen(entry) if rotation["part"] == "text" else None
            rows.append(Row(name, family, part, rotation, speeds, rests, chosen))
    return rows


def _chosen(entry: dict[str, Any]) -> str | None:
    """Return what was set against a family's defaults, all of it for text, in words."""
    said = [words for words in (entry["why"] or "").split("; ") if words.startswith("set in ")]
    return "; ".join(said).replace('"', "") or None


APART = {
    "base": lambda r: r["base"] and f"base {r['base']:,.0f}",
    "axes": lambda r: f"{r['axes']} axes" if r["axes"] > 1 else "1 axis",
    "head": lambda r: f"heads of {r['head_dim']}",
    "layout": lambda r: r["layout"],
    "model": lambda r: r["model"],
    "stack": lambda r: next(iter(r["layers"]), "").split(".")[0],
}
"""What may tell rotations of one family and one part apart, the best first."""


def _parts(rotations: list[dict[str, Any]]) -> list[str]:
    """Return what tells the rotations of a family apart, in as few words as do."""
    if len(rotations) == 1:  # a tower of a model whose text may not turn
        part = rotations[0]["part"]
        return [part if part in ("vision", "audio") else ""]
    mixed = len({r["part"] for r in rotations}) > 1
    parts = []
    for r in rotations:
        kind = (r["kind"] or "").removesuffix("_attention").replace("_", " ")
        kind = "indexer" if _chooses(r) else kind
        parts.append(" ".join(filter(None, [r["part"] if mixed else "", kind])))
    for part in [part for part, count in Counter(parts).items() if count > 1]:
        same = [n for n, other in enumerate(parts) if other == part]
        words = [str(n + 1) for n in range(len(same))]
        for say in APART.values():
            said = [say(rotations[n]) for n in same]
            if all(said) and len(set(said)) == len(said):
                words = said
                break
        for n, word in zip(same, words, strict=True):
            parts[n] = f"{part} {word}".strip()
    return parts


def _chooses(rotation: dict[str, Any]) -> bool:
    """Whether it is that of a module which chooses keys, beside attention."""
    return any("indexer" in pattern for pattern in rotation["layers"])


def _count(layers: dict[str, list[list[int]]]) -> int:
    """Return how many layers some runs name."""
    runs = [run for found in layers.values() for run in found]
    return sum((last - first) // (step or 1) + 1 for first, last, step in runs)


def _rests(rotation: dict[str, Any], entry: dict[str, Any]) -> str | None:
    """Return how many layers of a rotation's model do not turn, in words."""
    alike = lambda other: other["model"] == rotation["model"] and not _chooses(other)  # noqa: E731
    patterns = {p for r in filter(alike, entry["rotations"]) for p in r["layers"]}
    still = [
        {p: runs for p, runs in other["layers"].items() if p in patterns}
        for other in filter(alike, entry.get("without", []))
    ]
    resting = sum(map(_count, still))
    turning = sum(_count(r["layers"]) for r in filter(alike, entry["rotations"]))
    return f"{resting} of {resting + turning}" if resting else None


def atlas_data() -> dict[str, Any]:
    """Return the data of `ropebook.figures.atlas`."""
    return compact(read_atlas())


def compact(rows: Iterable[Row]) -> dict[str, Any]:
    """Return rows as the figure's data, each list of frequencies once."""
    rows = list(rows)
    known = {(row.family, row.model, row.base) for row in rows if row.base is not None}
    bases = Counter((family, model) for family, model, _ in known)
    lists: dict[str, int] = {}
    packed = [_pack(row, bases[row.family, row.model], lists) for row in rows]
    return {
        "columns": FIELDS,
        "rows": [[values[name] for name in FIELDS] for values in packed],
        "series": [json.loads(key) for key in lists],
    }


def _pack(row: Row, bases: int, lists: dict[str, int]) -> dict[str, Any]:
    """Return one row by field; lists of frequencies go into ``lists``, each once."""
    note = row.found.get("note") or ""
    return {
        "name": row.name,
        "family": row.family,
        "part": row.part,
        "head": row.head_dim,
        "axes": row.axes,
        "layout": row.layout,
        "place": row.place,
        "width": row.width,
        "pairs": None if _has_rule(row) else all_pairs(row.pairs).tolist(),
        "direction": row.direction,
        "base": row.base,
        "bases": bases,
        "scaling": row.rescaling and row.rescaling[0],
        "factor": row.attention_factor,
        "series": _series(row, lists),
        "rotation": row.is_rotation,
        "broken": row.broken,
        "deviation": row.relative_error,
        "norm": row.norm,
        "rests": row.rests,
        "heard": TABLE_ALONE not in note,
        "ran": bool(row.found.get("layers")),
        "heads": any(kind in note for kind in (INNER_WIDTH, FIRST_HEAD, BY_HEAD)),
        "values": bool(row.found.get("values_rotated")),
        "findings": row.findings[:2],
        "rest": row.unrotated_factor,
        "wrong": [
            [words, chapter == "precision", hypothesis]
            for severity, words, chapter, hypothesis in row.found["findings"]
            if severity == Severity.ERROR
        ],
        "lost": (row.angle_error or 0.0) > LOST,
        "dealt": row.report.arrangement,
    }


def _has_rule(row: Row) -> bool:
    """Whether layout and place say which channels are pairs, as the figure's script reads them."""
    start = row.head_dim - row.width if row.place == "last" else 0
    half, i = row.width // 2, range(row.width // 2)
    rules = {
        "half-split": [[start + n, start + n + half] for n in i],
        "interleaved": [[start + 2 * n, start + 2 * n + 1] for n in i],
    }
    read = (row.layout or "").removeprefix("read ").split(",")[0]
    return all_pairs(row.pairs).tolist() == rules.get(read)


def _series(row: Row, lists: dict[str, int]) -> int | None:
    """Return the number of the list of frequencies; None where base and width say them."""
    if not row.frequencies.size:
        return None
    if row.axes == 1 and row.base is not None:
        plain = row.base ** (-2.0 * np.arange(row.width // 2) / row.width)
        if np.allclose(row.frequencies, plain, rtol=2e-6, atol=0.0):
            return None
    return lists.setdefault(json.dumps(row.frequencies.tolist()), len(lists))


def card_data() -> dict[str, str]:
    """Return what `ropebook.figures.model_card` needs, each as JSON, in which 1.0 is no integer.

    ``rules`` are those that `ropescope.rope_of` evaluates; ``rows`` hold of each public checkpoint
    its name, its aliases, its configuration, and the names of what was not seen of it;
    ``engines`` are the runtimes of `ropescope.elsewhere`.
    """
    known = json.loads((RESULTS / "checkpoints.json").read_text("utf8"))
    rows = [[one["name"], one["aliases"], one["config"], one.get("unseen", [])] for one in known]
    return {
        "rules": _small(load_rules()), "rows": _small(rows), "engines": _small(load_engines()),
    }  # fmt: skip


def _small(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
