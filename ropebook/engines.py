"""What the book shows of other runtimes: the record of `engines` as tables in Markdown."""

import re
from collections.abc import Sequence
from typing import Any

from atlas import load
from ropescope.formulas import name_arrangement

__all__ = ["axes_table", "finding", "lengths_table", "others", "record", "rotations", "rules_table"]

FAR, FARTHEST = "131071", "1000003"


def record() -> dict[str, Any]:
    """Return all that was heard and read of other runtimes, as ``atlas/results/engines.json``."""
    return load("engines")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(text: str) -> str:
    return f"`{text}`" if text else "default"


def _first(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the first rotation of a runtime."""
    return entry["rotations"][0]


def _layouts(entry: dict[str, Any]) -> str:
    """Return the layouts that a runtime has, each with the first call that had it."""
    found: dict[str, str] = {}
    for one in entry["rotations"]:
        if one["layout"] and one["axes"] == 1 and one["width"] == one["head_dim"]:
            found.setdefault(one["layout"], one["options"] or one["function"])
    if not found:  # of several axes only
        found = {one["layout"]: one["function"] for one in entry["rotations"][:1]}
    return "; ".join(f"{layout} ({_code(option)})" for layout, option in found.items())


def _partial(entry: dict[str, Any]) -> str:
    """Return which channels a narrower rotation leaves alone."""
    for one in entry["rotations"]:
        if one["axes"] == 1 and 0 < one["width"] < one["head_dim"]:
            pairs = "the first pairs of the whole head"
            return {"first": "the first channels", "elsewhere": pairs}[one["place"]]
    return "–"


def _halves(entry: dict[str, Any]) -> str:
    """Return how far angles are off at position 2,047 where outputs have 16 bits."""
    for one in entry["rotations"]:
        if one["numbers"] in ("float16", "bfloat16") and one["far"]:
            return f"{one['far']['2047']:.1g} ({one['numbers']})"
    return "–"


def _end(entry: dict[str, Any]) -> str:
    """Return what happens past a runtime's table."""
    for one in entry["rotations"]:
        if one["table_end"] is not None:
            raised = re.match(r"raises (\w+)", one["past_end"])
            return f"raises `{raised[1]}`" if raised else one["past_end"]
    first = _first(entry)
    if "caller makes" in (first["note"] or ""):
        return "the caller's"
    return "no table" if isinstance(first["far"].get(FARTHEST), float) else "–"


def _off(entry: dict[str, Any], position: str) -> str:
    value = _first(entry)["far"].get(position)
    return f"{value:.1g}" if isinstance(value, (int, float)) else "–"


def rotations() -> str:
    """Return what each runtime rotates: layout, width, precision, the end of its table."""
    head = (
        "Runtime", "Layout, and the first call that had it", "A narrower one rotates",
        "Angles off at 131,071", "at 1,000,003", "at 2,047 in 16 bits", "Past the table",
    )  # fmt: skip
    rows = [
        (
            f"{entry['name']} {next(iter(entry['version'].values()))}",
            _layouts(entry), _partial(entry), _off(entry, FAR), _off(entry, FARTHEST),
            _halves(entry), _end(entry),
        )
        for entry in record()["heard"].values()
    ]  # fmt: skip
    return _table(head, rows)


def _cell(one: dict[str, Any] | None) -> str:
    """Return what a rule has become, in words."""
    if one is None:
        return "–"
    if "refused" in one:
        return "refused"
    said = []
    if one["frequencies_off"] > 1e-5:
        said.append(f"frequencies off by {one['frequencies_off']:.2g}")
    if abs(one["factor"] / one["factor_there"] - 1.0) > 1e-4:
        said.append(f"factor {one['factor']:.4g}, not {one['factor_there']:.4g}")
    return "; ".join(said) or "same"


def rules_table() -> str:
    """Return what each rule becomes in each runtime that has it, against transformers."""
    heard = {key: entry for key, entry in record()["heard"].items() if entry["rules"]}
    names = dict.fromkeys(one["rule"] for entry in heard.values() for one in entry["rules"])
    rows = []
    for name in names:
        cells = []
        for entry in heard.values():
            found = [one for one in entry["rules"] if one["rule"] == name]
            cells.append(_cell(found[0] if found and "when" not in found[0] else None))
        if any(cell != "–" for cell in cells):
            rows.append((name, *cells))
    return _table(("Rule", *(entry["name"] for entry in heard.values())), rows)


def _long_call(found: list[Any]) -> str:
    """Return the speeds of a near and a far position, or what was raised instead."""
    if isinstance(found[0], str):
        return f"raises `{found[0].split(':')[0]}`"
    return ", ".join(f"{speed:.4g}" for speed in found)


def lengths_table() -> str:
    """Return when dynamic NTK and LongRoPE choose their frequencies."""
    rows = [
        (one["rule"], entry["name"], one["when"], f"{one['short_call']:.4g}",
         _long_call(one["long_call"]), f"{one['there']:.4g}")
        for entry in record()["heard"].values()
        for one in entry["rules"]
        if "when" in one
    ]  # fmt: skip
    head = ("Rule", "Runtime", "Chosen", "A short call", "A long call: near, far", "transformers")
    return _table(head, sorted(rows))


def axes_table() -> str:
    """Return how pairs are dealt out to several axes."""
    rows = []
    for entry in record()["heard"].values():
        for one in entry["rotations"]:
            if one["axes"] > 1:
                runs = one.get("sections") or []
                sections = tuple(axis for axis, count in runs for _ in range(count))
                said = name_arrangement(sections) if sections else "–"
                still = one["head_dim"] - one["width"]
                said += f"; {still} channels stay" if still else ""
                options = _code(one["options"])
                rows.append((entry["name"], f"{_code(one['function'])}, {options}", said))
    return _table(("Runtime", "Asked", "Pairs"), rows)


def finding(name: str) -> str:
    """Return the lines that reproduce a finding, and what they gave."""
    one = record()["findings"][name]
    return f"```python\n{one['lines']}\n```\n\ngave `{one['value']}`"


def others() -> str:
    """Return what was read and not heard, and what could not be asked."""
    whole = record()
    read = [(one["name"], one["says"], f"{one['source']}, {one['commit']}, {one['date']}")
            for one in whole["read"]]  # fmt: skip
    missing = [(one["name"], one["why"]) for one in whole["obstacles"]]
    return "\n\n".join(
        (_table(("Read", "What it says", "Where, commit, day"), read),
         _table(("Not asked", "Why"), missing))
    )  # fmt: skip
