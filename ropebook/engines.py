"""What the book shows of other runtimes: the record of `engines` as tables in Markdown."""

import re
from collections.abc import Sequence
from typing import Any

from atlas import load
from ropescope.formulas import name_arrangement

__all__ = [
    "axes_table", "brief", "finding", "lengths_table", "others", "record", "rotations",
    "rules_table",
]  # fmt: skip

FAR, FARTHEST = "131071", "1000003"

OWN_LENGTH = re.compile(r"llama3 .*, factor=8, original_max_position_embeddings=(\d+), low_.*")
"""What a rule was named, if its only difference may be the trained length."""


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


def _named(entry: dict[str, Any]) -> str:
    """Return a runtime's name, with the versions of another package that it names."""
    versions = entry["version"]
    name = re.sub(r"[\w-]+(?=\))", lambda m: " ".join((m[0], *_of(versions, m[0]))), entry["name"])
    return re.sub(r"(?= \(|$)", f" {_version(entry)}", name, count=1)


def _of(versions: dict[str, str], package: str) -> tuple[str, ...]:
    return tuple(version for name, version in versions.items() if name == package.lower())


def _version(entry: dict[str, Any]) -> str:
    return next(iter(entry["version"].values())).split(" ")[0]


def _as_given(entry: dict[str, Any]) -> bool:
    """Return whether a runtime fuses a graph, in which layout and direction are the caller's."""
    return "as given" in (_first(entry)["note"] or "")


def _layouts(entry: dict[str, Any]) -> str:
    """Return the layouts that a runtime has, each with the first call that had it."""
    if _as_given(entry):
        return "as the graph says (half-split was given)"
    found: dict[str, str] = {}
    for one in entry["rotations"]:
        if one["layout"] and one["axes"] == 1 and one["width"] == one["head_dim"]:
            found.setdefault(one["layout"], one["options"] or one["function"])
    for one in entry["rules"] if found else ():
        if one.get("layout"):
            found.setdefault(one["layout"], one["options"])
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
    first = _first(entry)
    if "grows" in (first["note"] or ""):
        return "it grows"
    for one in entry["rotations"]:
        if one["table_end"] is not None:
            raised = re.match(r"raises (\w+)", one["past_end"])
            return f"raises `{raised[1]}`" if raised else one["past_end"]
    if "caller makes" in (first["note"] or ""):
        return "the caller's"
    far = first["far"].get(FARTHEST)
    if isinstance(far, str):
        return f"raises `{far.split(':')[0]}`"
    return "–" if far is None else "no table"


def _off(entry: dict[str, Any], position: str) -> str:
    value = _first(entry)["far"].get(position)
    return f"{value:.1g}" if isinstance(value, (int, float)) else "raises" if value else "–"


def rotations() -> str:
    """Return what each runtime rotates: layout, width, precision, the end of its table."""
    head = (
        "Runtime", "Layout, and the first call that had it", "A narrower one rotates",
        "Angles off at 131,071", "at 1,000,003", "at 2,047 in 16 bits", "Past the table",
    )  # fmt: skip
    rows = [
        (
            _named(entry), _layouts(entry), _partial(entry), _off(entry, FAR),
            _off(entry, FARTHEST), _halves(entry), _end(entry),
        )
        for entry in record()["heard"].values()
    ]  # fmt: skip
    return _table(head, rows)


def _layout(one: dict[str, Any], entry: dict[str, Any]) -> str | None:
    """Return the layout of a rule, if the runtime turns so by this rule alone."""
    others = {rotation["layout"] for rotation in entry["rotations"]}
    return one["layout"] if one.get("layout") not in (None, *others) else None


def _cell(one: dict[str, Any] | None, layout: str | None = None) -> str:
    """Return what a rule has become, in words."""
    if one is None:
        return "–"
    if "refused" in one:
        return "no rotation" if one["refused"].startswith("Not a rotation") else "refused"
    said = [] if layout is None else [layout]
    if one["frequencies_off"] > 1e-5:
        percent = float(f"{100 * one['frequencies_off']:.2g}")
        said.append(f"frequencies off by {percent:g} %")
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
            one = found[0] if found and "when" not in found[0] else None
            cells.append(_cell(one, one and _layout(one, entry)))
        if any(cell != "–" for cell in cells):
            rows.append((name, *cells))
    return _table(("Rule", *map(_named, heard.values())), rows)


def _long_call(found: list[Any]) -> str:
    """Return the speeds of a near and a far position, or what was raised instead."""
    if isinstance(found[0], str):
        return f"raises `{found[0].split(':')[0]}`"
    return ", ".join(f"{speed:.4g}" for speed in found)


def lengths_table() -> str:
    """Return when dynamic NTK and LongRoPE choose their frequencies."""
    rows = [
        (one["rule"], _named(entry), one["when"], f"{one['short_call']:.4g}",
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
                rows.append((_named(entry), f"{_code(one['function'])}, {options}", said))
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


ORDER = ("ggml", "mlx", "vllm", "sglang", "onnx", "litgpt", "torchtune", "torchtitan")
"""The runtimes that stand first in a card; the others follow in the order of the record."""


def brief(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """Return of a record what `ropescope.elsewhere` needs: runtimes that rotate text, in short."""
    heard = whole["heard"]
    found = []
    for entry in [heard[name] for name in dict.fromkeys((*ORDER, *heard))]:
        if _as_given(entry):
            continue
        turns: dict[tuple[str, str, str], list[Any]] = {}
        for one in filter(_plain, entry["rotations"]):
            said = "; ".join(text for grave, text, *_ in one["findings"] if grave > 1)
            turns.setdefault(key := _turn(one), [*key, _call(one), said])
        if turns:
            found.append({
                "name": _named(entry),
                "turns": list(turns.values()), "rules": _rules(entry), "ends": _ends(entry),
                "far": _far(entry),
            })  # fmt: skip
    return found


def _plain(one: dict[str, Any]) -> bool:
    """Return whether a rotation is of texts: one series, no rescaling but of channels."""
    grid = one["axes"] in (2, 4) or (one["axes"] == 3 and "Each axis" in str(one["findings"]))
    scaled = one["rescaling"] and one["rescaling"][0] != "proportional"
    return not grid and not scaled and bool(one["base"]) and one["attention_factor"] == 1


def _turn(one: dict[str, Any]) -> tuple[str, str, str]:
    """Return layout, whether a part of the head, and the order of axes."""
    order = {1: ""}.get(one["axes"], "blocks" if len(one.get("sections", "")) == 3 else "by turns")
    layout = one["layout"].replace("read interleaved, written half-split", "interleaved")
    return layout, "all" if order else one["place"], order


def _call(one: dict[str, Any]) -> str:
    return ": ".join(filter(None, (one["function"], one["options"])))


def _rules(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Return by rule what differs from transformers in words; its own trained length and layout."""
    if "caller makes" in (_first(entry)["note"] or ""):
        return None
    found: dict[str, Any] = {}
    for one in entry["rules"]:
        said = _chosen(one) if "when" in one else _cell(one).replace("same", "")
        own = OWN_LENGTH.fullmatch(one.get("named") or "") if said else None
        if own:
            said += f", for it was turned as trained on {int(own[1]):,}"
        layout = _layout(one, entry)
        more = [own and int(own[1]), layout]
        found[one["rule"]] = [said, *more] if any(more) else said
    if any(one["rescaling"] == ["linear", {"factor": 4}] for one in entry["rotations"]):
        found.setdefault("linear", "")
    return found


def _chosen(one: dict[str, Any]) -> str:
    """Return when frequencies are chosen, and the speeds, where transformers differs."""
    by_length = one["when"] == "by the length of the call"
    if by_length and abs(one["long_call"][-1] / one["there"] - 1.0) < 1e-3:
        return ""
    long = _long_call(one["long_call"]).split(", ")[-1].replace("`", "")
    return (
        f"chosen {one['when']}: the second pair at {one['short_call']:.4g} of its plain speed in a "
        f"short call, in a long one {long}, in transformers {one['there']:.4g}"
    )


def _far(entry: dict[str, Any]) -> str:
    off = _off(entry, FAR)
    standin = "stand-in" in (_first(entry)["note"] or "")  # its angles are not the runtime's
    return "" if standin or off == "raises" else f"angles off by {off} rad at {int(FAR):,}"


def _ends(entry: dict[str, Any]) -> str:
    """Return where positions end: those of a table, of 16 bits, and of float32."""
    said = _end(entry)
    alike = next((one for one in entry["rotations"] if one["shared_position"]), None)
    return "; ".join(filter(None, (
        f"past its table {said}".replace("`", "") if said.startswith("raises") else "",
        f"{alike['options']}, it turns positions {alike['shared_position'] - 1} and "
        f"{alike['shared_position']} alike" if alike else "",
        "positions in float32, whole to 16,777,216" if _first(entry)["apart_at_2_24"] is False
        else "",
    )))  # fmt: skip
