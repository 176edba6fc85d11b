"""A checkpoint's rotation as its configuration says it: as text, as HTML, and beside another one's.

What is shown is the dictionary that `Specification.to_dict` gives, and ``--json`` prints.
"""

import difflib
import html
import json
import textwrap
from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from .configuration import Caution, load_rules, rope_of
from .differences import Difference
from .elsewhere import VERDICTS, elsewhere
from .files import Checkpoint, read
from .formulas import fit_formulas
from .layers import runs_of, unrolled
from .names import rows_of
from .picture import pairs_ring
from .report import Report
from .translation import Translation, renamed

__all__ = ["compare", "exit_code", "lines", "page", "report_of", "sentences",
           "specification", "text"]  # fmt: skip

WORDS = ("note", "warning", "wrong")
TUNED = ("instruct", "chat", "base", "it")
"""Ends of names that say how a model was trained further."""


def specification(source: str | Path) -> dict[str, Any]:
    """Return how a checkpoint rotates.

    Parameters
    ----------
    source
        A path that `read` takes. Where nothing has it: a ``model_type``, for what its class does by
        default, or the name of a public checkpoint, such as ``Qwen/Qwen2.5-72B`` or ``llama 3.1``.

    Raises
    ------
    OSError, ValueError, ImportError
        As `read`, and where a checkpoint has no configuration.
    """
    if not str(source).strip() or Path(source).exists():
        return _of(read(source))
    try:
        found = rope_of({"model_type": str(source)}).to_dict()
    except ValueError as error:
        raise ValueError(f"{source}, as its class is by default, has no card: {error}") from error
    if found["known"] or str(source) in load_rules()["types"]:
        for part in found["parts"]:
            part["elsewhere"] = elsewhere(part)
        for one in found["warnings"]:  # the class's own widths were asked for
            one["severity"] *= not one["code"].endswith("-guessed")
        return {"source": f"{source}, as its class is by default", **found}
    found = _of(row := _row(str(source)))
    if row.told:  # of a public file, nobody here can see more
        gaps = [o for o in found["warnings"] if o["code"].endswith(("assumed", "-guessed"))]
        for one in gaps:
            one["severity"] = 0
    return found


def _row(name: str) -> Checkpoint:
    """Return a public checkpoint by its name, the end of it, or an alias."""
    found = matches(name)
    if not found:
        word = _plain(name)
        bare = [word.removesuffix(end) for end in TUNED if word.endswith(end)]
        found = [(3, row) for _, row in matches(bare[0])] if bare and bare[0] else []
    if not found:
        word = _plain(name.split("/")[-1])
        rows = {_plain(row["name"].split("/")[-1]): row for row in _rows()}
        found = [(3, rows[near]) for near in difflib.get_close_matches(word, rows, 3)]
    if found and found[0][0] == 0:
        row = found[0][1]
        unseen = " or ".join(row.get("unseen", ()))
        unseen = unseen.replace("config.json", "the whole config.json", 1)
        words = (
            f"Public sources quote this checkpoint and do not show {unseen}. What is missing is "
            "left out or taken from its class; to be sure, give its own config.json in place of "
            "its name."
        )
        told = Translation(row["config"], {}, (Caution("assumed", 0, "", words),))
        return Checkpoint(Path(row["name"]), row["config"], told=told if unseen else None)
    names = " or ".join(repr(row["name"]) for _, row in found[:3])
    hint = f"; did you mean {names}?" if names else ""
    raise ValueError(f"{name}: no file, model_type or public checkpoint has this name{hint}")


def matches(name: str) -> list[tuple[int, dict[str, Any]]]:
    """Return public checkpoints that fit a name, the best first, as ``search`` in model_card.js.

    Each with a rank: 0 where it is its name, the end of it, or an alias, 1 where one of these
    begins so, 2 where one holds it, 3 where one fits without the owner that is asked for. Case,
    spaces, hyphens, underscores and dots do not count.
    """
    word = _plain(name)
    ranked = []
    for row in _rows():
        keys = [_plain(key) for key in (row["name"].split("/")[1], row["name"], *row["aliases"])]
        starts, holds = (
            any(key.startswith(word) for key in keys),
            any(word in key for key in keys),
        )
        if holds:
            ranked.append((0 if word in keys else 1 if starts else 2, row))
    if not ranked and "/" in name:
        return [(3, row) for _, row in matches(name.split("/")[-1])]
    return sorted(ranked, key=lambda one: one[0])


def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(
        (Path(__file__).parent / "checkpoints.json").read_text("utf8")
    )
    return rows


def _plain(name: str) -> str:
    """Return a name without what people spell in several ways."""
    return "".join(name.lower().translate(str.maketrans("-_.", "   ")).split())


def _of(checkpoint: Checkpoint) -> dict[str, Any]:
    if checkpoint.config is None:
        raise ValueError(f"{checkpoint.path}: no config.json or params.json is beside the weights")
    told = checkpoint.told or Translation(checkpoint.config, {}, ())
    try:
        found = rope_of(checkpoint.config).to_dict()
        unsure = any(one["code"] == "not-known" for one in found["warnings"])
        assumed = told.said.get("max_position_embeddings") == "use_scaled_rope"
        for part in found["parts"]:
            part["window"] = _window(part, checkpoint.config)
            part["unsure"] = unsure
            part["assumed"] = "Llama 3.1" if assumed else ""
        found = renamed(found, told.said)
    except ValueError as error:
        raise ValueError(renamed(str(error), told.said)) from error
    warnings = [asdict(note) for note in told.notes]
    for part in found["parts"]:
        if checkpoint.layout and rows_of(part["layout"]) == checkpoint.layout:
            part["layout"] = checkpoint.layout
        elif checkpoint.layout:
            where = f" of {part['path']}" if part["part"] != "text" else ""
            warnings.append({"code": "other-rows", "severity": 0, "field": "", "message":
                f"The rows of this file are {checkpoint.layout}; those{where} of a Hugging Face "
                f"checkpoint of this family are {part['layout']}."})  # fmt: skip
            part["layout"] = checkpoint.layout
        part["elsewhere"] = elsewhere(part)
    found["warnings"] = [*found["warnings"], *warnings]
    return {"source": str(checkpoint.path), **found}


def _window(part: dict[str, Any], config: dict[str, Any]) -> str:
    """Return what is known of a window of layers that are not told apart; "" where none is."""
    own: Any = config
    for name in filter(None, part["path"].split(".")):
        own = own.get(name) or {}
    defaults = load_rules()["types"][part["model_type"]].get("defaults", {})
    slides = defaults.get("use_sliding_window")  # None where a class does not read it
    if slides is not None and own.get("use_sliding_window") is not None:
        slides = own["use_sliding_window"]
    if part["part"] != "text" or part["kind"] or slides is False:
        return ""
    for field in ("sliding_window", "attention_chunk_size"):
        size = own.get(field)
        if type(size) is int and size > 0:
            words = "layers that look back no further meet no new distance in a longer text"
            return f"{field} is {size:,}: {words}; which do is not read"
    return ""


def exit_code(found: dict[str, Any]) -> int:
    """Return 0 if all is fine, 1 where there are warnings, 2 where something is wrong."""
    return max((one["severity"] for one in found["warnings"]), default=0)


def lines(part: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of the card of one part: a name, and what is known."""
    waves = np.abs(np.array(part["inv_freq"], float))
    speed = waves if waves.ndim < 2 else np.linalg.norm(waves, axis=1)
    speed = speed[speed > 0]
    kind = f", {part['kind']}" if part["kind"] else ""
    rows = [("part", f"{part['path'] or part['part']}{kind}, layers {_layers(part['layers'])}")]
    if part["without"]:
        rows.append(("rest", f"layers {_layers(part['without'])} do not rotate"))
    rows += [
        ("layout", part["layout"]),
        ("head", f"{part['head_dim']} channels, from {part['head_dim_from']}"),
        ("rotate", f"{part['width']}, {part['place']}, from {part['width_from']}"),
        ("base", f"{part['base']:,.10g}, from {part['base_from']}" if part["base"] else "none"),
        ("rescaling", _rescaling(part)),
    ]
    if part["attention_factor"] not in (None, 1.0):
        rows.append(("factor", f"{part['attention_factor']:.10g} on rotated queries and keys"))
    if part["sections"]:
        rows.append(("axes", _axes(part["sections"])))
    if len(speed):
        turn = 2.0 * np.pi / speed
        unit = "tokens" if part["part"] == "text" else "positions"
        rows.append(("wavelengths", f"{turn.min():,.6g} to {turn.max():,.6g} {unit}, "
                                    f"{len(speed)} pairs"))  # fmt: skip
        if trained := part["trained_length"]:
            slow = int((turn > trained).sum())
            words = f": {slow} of {len(speed)} pairs make less than a turn, and turn to new angles "
            words = words if slow else ": every pair makes a turn" * (part["part"] == "text")
            near = any(word in (part["kind"] or "") for word in ("sliding", "chunked", "local"))
            if slow:
                words += "beyond" + ", where a layer looks so far back" * bool(part.get("window"))
            words = "" if part["rescaling"] or near or part.get("unsure") else words
            if part["rescaling"] and "original_max_position_embeddings" in part["rescaling"][1]:
                words = " before the rescaling"
            elif part["rescaling"] and part["rescaling"][0] in ("linear", "ntk"):
                words = ", before or after the rescaling, the file does not say"
            rows.append(("trained for", f"{trained:,} tokens{words}"))
    if part.get("window"):
        rows.append(("window", part["window"]))
    if reach := _reach(part):
        rows.append(("may reach", reach))
    if part["dynamic"]:
        rows.append(("dynamic", "frequencies change with the length of the text"))
    return rows + _elsewhere(part.get("elsewhere", []), bool(part["rescaling"]))


def _reach(part: dict[str, Any]) -> str:
    """Return the longest text in words, where it is not the trained length; YaRN may go farther."""
    trained, longest = part["trained_length"], part["max_length"]
    kind, told = part["rescaling"] or ("", dict[str, Any]())
    by_yarn = int(trained * told["factor"]) if kind == "yarn" and trained else 0
    found = []
    if longest not in (None, trained):
        whose = f", as assumed of {part['assumed']}" if part.get("assumed") else ""
        found.append(f"{longest:,} tokens{whose}")
    if by_yarn > max(longest or 0, trained or 0):
        found = [f"{one}, as the file says" for one in found]
        found.append(f"{by_yarn:,} {'' if found else 'tokens '}by its YaRN")
    return "; ".join(found)


def _elsewhere(found: list[dict[str, str]], rescaled: bool) -> list[tuple[str, str]]:
    """Return the lines on other runtimes: those of which the same is said in one."""
    if not found:
        return []
    words = f"who turns so, of {len(found)} runtimes heard with a head of 64 and base 10,000"
    words += ", stretched by 4 (llama3 by 8)" * rescaled
    words += "; a server's class of your model may tell them otherwise"
    rows = [("elsewhere", f"{words}; their calls: --json")]
    for verdict in VERDICTS:
        said: dict[str, list[str]] = {}
        for one in found:
            if one["verdict"] == verdict:
                said.setdefault(one["words"], []).append(one["runtime"])
        rows += [
            (verdict, f"{', '.join(names)}{' – ' * bool(words)}{words}")
            for words, names in said.items()
        ]
    return rows


def _layers(ranges: list[list[int]]) -> str:
    """Return layers in words: 0 to 31, or 3 to 31 in steps of 4."""
    words: list[str] = []
    for a, b, step in ranges:
        if a == b or (step > 1 and b - a == step):
            words += map(str, sorted({a, b}))
        else:
            words.append(f"{a} to {b}" + (f" in steps of {step}" if step > 1 else ""))
    return ", ".join(words) or "unknown"


def _axes(sections: list[list[int]]) -> str:
    """Return how many pairs each axis has: of axes that take turns, counted."""
    axes = sorted({axis for axis, _ in sections})
    if len(sections) == len(axes):
        return ", ".join(f"axis {axis}: {pairs} pairs" for axis, pairs in sections)
    sums = [sum(pairs for axis, pairs in sections if axis == one) for one in axes]
    return f"axes {', '.join(map(str, axes))} in turn: {', '.join(map(str, sums))} pairs"


def _rescaling(part: dict[str, Any]) -> str:
    found = part["rescaling"]
    if not found:
        return "none" + ", but for what the warning names" * bool(part.get("unsure"))
    values = [f"{name} {_value(value)}" for name, value in found[1].items()]
    return f"{found[0]}: {', '.join(values)}" if values else str(found[0])


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{value[0]:.6g}, ..., {value[-1]:.6g}]" if value else "[]"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _ordered(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts with attention before what chooses for it."""
    return sorted(parts, key=lambda part: part["kind"] == "indexer")


def _head(found: dict[str, Any]) -> list[tuple[str, str]]:
    known = "" if found["known"] else ", for which no rule is known"
    rows = [("source", found["source"]), ("family", f"{found['family'] or 'not named'}{known}")]
    if found["known"] and not found["parts"]:
        rows.append(("rotation", "not known, see below" if _no_rules(found) else "none"))
    if found["without_effect"]:
        rows.append(("no effect", ", ".join(found["without_effect"])))
    return rows


def _no_rules(found: dict[str, Any], codes: tuple[str, ...] = ("no-rule",)) -> list[str]:
    """Return what is said of parts that have no rule."""
    return [one["message"] for one in found["warnings"] if one["code"] in codes]


def sentences(found: Iterable[Caution]) -> list[str]:
    """Return cautions in words, the gravest first."""
    ordered = sorted(found, key=lambda one: -one.severity)
    return [f"{WORDS[one.severity]}: {one.message}" for one in ordered]


def _said(found: dict[str, Any]) -> list[str]:
    return sentences(Caution(**one) for one in found["warnings"])


def text(found: dict[str, Any]) -> str:
    """Return the card as text."""
    blocks = [_head(found), *map(lines, _ordered(found["parts"]))]
    cards = ["\n".join(f"{name:<12} {value}" for name, value in block) for block in blocks]
    cards.append("\n".join(f"- {one}" for one in _said(found)))
    if found["others"]:
        cards.append(textwrap.fill(": ".join(_others(found)), 100, break_on_hyphens=False))
    return "\n\n".join(one for one in cards if one)


def _others(found: dict[str, Any]) -> tuple[str, str]:
    """Return how many fields were not used, and their names."""
    count = len(found["others"])
    head = f"{count} other field{'s'[: count > 1]}, taken to be about something else"
    head += ", or of a part without a rule" * bool(_no_rules(found))
    return head, ", ".join(found["others"])


def page(found: dict[str, Any]) -> str:
    """Return the card as an HTML page of its own, with the pairs of each part as a ring."""

    def table(rows: list[tuple[str, str]]) -> str:
        return "<table>" + "".join(
            f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(value)}</td></tr>'
            for name, value in rows
        ) + "</table>"  # fmt: skip

    parts = "".join(
        f"<section>{pairs_ring(report_of(part))}{table(lines(part))}</section>"
        for part in _ordered(found["parts"])
    )
    said = "".join(f"<li>{html.escape(one)}</li>" for one in _said(found))
    head, names = _others(found)
    others = f"<details><summary>{head}</summary><p>{html.escape(names)}</p></details>" * bool(
        names
    )
    title = html.escape(Path(found["source"]).name)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light dark}'
        "body{font:16px/1.5 system-ui,sans-serif;margin:1em auto;max-width:60em;padding:0 1em}"
        "section{display:flex;flex-wrap:wrap;gap:1em}table{flex:1 1 16em}"
        "td,p{overflow-wrap:anywhere}th{text-align:left;vertical-align:top;padding-right:1em;white-space:nowrap}"
        f"</style><h1>{title}</h1>{table(_head(found))}{parts}<ul>{said}</ul>{others}</html>\n"
    )


def report_of(part: dict[str, Any]) -> Report:
    """Return a part as the report that `identify` would give, to be compared and drawn."""
    waves = np.array(part["inv_freq"], float)
    axes = 1 if waves.ndim < 2 else waves.shape[1]
    pairs, written = _pairs(part)
    turning, factor = waves[waves > 0], part["attention_factor"] or 1.0
    known = (
        fit_formulas(turning, 1e-9 * turning, (part["width"],), (factor, 0.0)) if axes == 1 else ()
    )
    return Report(
        head_dim=part["head_dim"], axes=axes, probed="what the configuration says", pairs=pairs,
        written=written, layout=part["layout"], place=part["place"], is_rotation=True,
        singular_values=(1.0, 1.0), direction=part["direction"], inv_freq=waves,
        inv_freq_error=1e-9 * np.abs(waves), base=part["base"],
        rescaling=part["rescaling"] and tuple(part["rescaling"]),
        attention_factor=factor, numbers="float64", formulas=tuple(known),
    )  # fmt: skip


def _pairs(part: dict[str, Any]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the channels of each pair, as they are read and as they are written."""
    size, width, layout = part["head_dim"], part["width"], part["layout"]
    first = size - width if part["place"] == "last" else 0
    n, blocks = width // 2, 2 if layout.endswith("in 2 blocks") else 1
    i = np.arange(n)
    apart = n // blocks
    if part["place"] == "elsewhere":  # the first pairs of a head that is split in halves
        apart = size // 2
    halves = first + i + i // apart * apart
    split = np.stack((halves, halves + apart), 1)
    near = np.stack((first + 2 * i, first + 2 * i + 1), 1)
    read_near = "interleaved" in layout.split(",")[0]
    written = near if layout == "interleaved" else split
    return tuple(tuple(map(tuple, x.tolist())) for x in (near if read_near else split, written))


FOLLOWS = {
    "dynamic": ("factor",),
    "longrope": ("short_factor", "long_factor", "original_max_position_embeddings"),
}
"""Entries of a rescaling that choose frequencies by the length of a text."""


def compare(one: dict[str, Any], two: dict[str, Any]) -> tuple[list[str], int]:
    """Return what differs between two specifications, a sentence each, and the exit code.

    The code is 0 where both rotate alike in the layers that both have, 1 where a change of weights
    leads from the first to the second, and 2 where none does, one has a part that rotates and the
    other lacks, a part has no rule, or something is wrong with a configuration. Widths that were
    guessed are told beside what differs, and what was assumed or not seen of a side always.
    """
    ours, others = _merged(one["parts"]), _merged(two["parts"])
    if _kinds(ours) != _kinds(others) and _kinds(one["parts"]) == _kinds(two["parts"]):
        ours, others = one["parts"], [*two["parts"]]
    ours, others = _without_lone_kinds(ours, others), _without_lone_kinds(others, ours)
    said, code = [], 0
    ruled = [side["known"] and not _no_rules(side) for side in (one, two)]
    unknown = ("no-rule", "not-known")
    for part in ours:
        name = f"{part['part']}{', ' + part['kind'] if part['kind'] else ''}"
        alike = [o for o in others if (o["part"], o["kind"]) == (part["part"], part["kind"])]
        other = next((o for o in alike if o["path"] == part["path"]), alike[0] if alike else None)
        if other is None:
            if ruled[1]:
                said.append(f"{name}: the second has no such part.")
            code = 2
            continue
        others.remove(other)
        found: Difference = report_of(part).differs_from(report_of(other))
        said += [f"{name}: {message}" for message in found.messages]
        code = max(code, 2 if found.convert is None else int(bool(found.messages)))
        a, b = _follows(part), _follows(other)
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-6, atol=0.0):
            whose = [w for w, o in (("first", part), ("second", other)) if o["dynamic"]]
            alone = f" of the {whose[0]} alone" * (len(whose) == 1)
            words = f"frequencies{alone} change with the length of a text"
            said.append(f"{name}: {words}{', and not alike' * (len(whose) == 2)}.")
            code = 2
        if part["layers"] != other["layers"]:
            end = min(_end(side, one_of["path"]) for side, one_of in ((one, part), (two, other)))
            here, there = ({i for i in unrolled(o["layers"]) if i < end} for o in (part, other))
            said.append(f"{name}: layers {_layers(part['layers'])} against "
                        f"{_layers(other['layers'])}.")  # fmt: skip
            code = code if here == there else 2
    for part in others:
        kind = f", {part['kind']}" if part["kind"] else ""
        if ruled[0]:
            said.append(f"{part['part']}{kind}: the first has no such part.")
        code = 2
    more = " in the layers that both have" * bool(said)
    for which, side in (("first", one), ("second", two)):
        told = side["warnings"]
        guessed = [o["message"] for o in told if o["code"].endswith("-guessed")]
        guessed = guessed if any(" channels " in words for words in said) else []
        wrong = [o["message"] for o in told if o["severity"] == 2 and o["code"] != "no-rule"]
        assumed = [o["message"] for o in told if o["code"] == "assumed"]
        said += [f"Of the {which}: {words}" for words in (*guessed, *assumed, *wrong)]
        code = 2 if wrong else code
        if not side["known"]:
            why = " ".join(_no_rules(side))
            said.append(f"How the {which} rotates is not known: {why}")
        elif unheard := _no_rules(side, unknown):
            said += [f"How all of the {which} rotates is not known: {words}" for words in unheard]
        else:
            continue
        code = 2
    if not one["parts"] and not two["parts"] and code == 0:
        code = 0 if one["family"] == two["family"] else 2
        return [*said, "Neither rotates: their scores are not compared."], code
    if code == 0:
        said.append(f"They rotate alike{more}.")
    return said, code


def _kinds(parts: list[dict[str, Any]]) -> set[tuple[str, str | None]]:
    """Return the kinds of layers of each part."""
    return {(part["path"], part["kind"]) for part in parts}


def _merged(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts, with one in place of the kinds of layers of a model that rotate alike."""
    found: list[dict[str, Any]] = []
    told = {"kind", "layers", "head_dim_from", "width_from", "base_from", "elsewhere", "window"}
    for _, group in groupby(parts, key=lambda part: part["path"]):
        own = list(group)
        turns = [{k: v for k, v in part.items() if k not in told} for part in own]
        if len(own) > 1 and all(one == turns[0] for one in turns):
            layers = runs_of(sorted(set().union(*(unrolled(part["layers"]) for part in own))))
            own = [{**own[0], "kind": None, "layers": layers}]
        found += own
    return found


def _without_lone_kinds(
    parts: list[dict[str, Any]], others: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the parts, a single kind without its name where the other side's have none."""
    plain = {part["part"] for part in others if part["kind"] is None}
    paths = [part["path"] for part in parts]
    return [
        {**part, "kind": None} if part["part"] in plain and paths.count(part["path"]) == 1 else part
        for part in parts
    ]


def _end(found: dict[str, Any], path: str) -> int:
    """Return how many layers a part has, up to the last one of which it is told how it turns."""
    runs = [p["layers"] + p["without"] for p in found["parts"] if p["path"] == path]
    return 1 + max((i for one in runs for i in unrolled(one)), default=-1)


def _follows(part: dict[str, Any]) -> np.ndarray:
    """Return the numbers by which frequencies follow the length of a text, or none."""
    kind, told = part["rescaling"] if part["dynamic"] else ("", {})
    reach = [part["max_length"] or 0] if kind == "dynamic" else []
    return np.hstack([reach, *(told[name] for name in FOLLOWS.get(kind, ()))])


def as_json(found: dict[str, Any]) -> str:
    """Return the specification as JSON."""
    return json.dumps(found, indent=2)
