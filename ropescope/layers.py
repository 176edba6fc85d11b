"""Layers of a part by kind, from lists with an entry for each or the pattern of a class."""

from collections.abc import Iterable
from typing import Any

from .fields import Fields, Json

__all__ = ["MOST_LAYERS", "layers_of", "pattern", "runs_of", "unrolled"]

MOST_LAYERS = 10_000


def layers_of(fields: Fields, rule: Json, types: frozenset[str]) -> dict[Any, list[list[int]]]:
    """Return runs of layers by kind, None for all, and ``rests`` for those that do not rotate."""
    count, name = fields.first(rule["count"])
    if count > MOST_LAYERS:
        raise ValueError(f"{fields.name(name)} must be at most {MOST_LAYERS:,}, got {count:,}")
    if windows := rule.get("types", {}).get("windows"):
        fields.made_of(windows, rule["types"]["field"])
    given = fields.given.get(fields.aliases.get("layer_types", "layer_types"))
    types = frozenset(rule.get("words", types))
    if given is not None and types:
        due = rule.get("types", {}).get("some_of")
        if due and isinstance(given, list) and due not in given:
            raise ValueError(f"{fields.name('layer_types')} must have {due!r}, got {given!r}")
        fine = _for_each(fields, given, count, rule.get("types", {}))
        if not (fine and all(isinstance(one, str) and one in types for one in given)):
            words = f"a list with one of {', '.join(sorted(types))} for each of {count} layers"
            raise ValueError(f"{fields.name('layer_types')} must be {words}, got {given!r}")
    for kind, wanted in rule.get("wants", {}).items():
        for one in wanted if isinstance(given, list) and kind in given else ():
            if not fields.get(one):
                words = f"must be set where {fields.name('layer_types')} has {kind!r}"
                raise ValueError(f"{fields.name(one)} {words}, got {fields.get(one)!r}")
    kinds = _listed(fields, rule["types"], count) if "types" in rule else [None] * count
    told = rule.get("numbers", {})
    own = fields.get(told["field"]) if told and given is None else None
    if own is not None:
        if not isinstance(own, list):
            raise ValueError(f"{fields.name(told['field'])} must be a list, got {own!r}")
        kinds = [told["then"] if layer in own else told["else"] for layer in range(count)]
    found: dict[Any, list[int]] = {"rests": []}
    switch = _listed(fields, rule["switch"], count) if "switch" in rule else [1] * count
    active = "unless" not in rule or fields.get(rule["unless"]) is not None
    left = fields.get(rule["except"]) or [] if "except" in rule else []
    if not isinstance(left, list):
        raise ValueError(f"{fields.name(rule['except'])} must be a list, got {left!r}")
    for layer, (kind, on) in enumerate(zip(kinds, switch, strict=True)):
        if kind in rule.get("absent", ()) or layer in left:
            continue
        rests = not on or (kind in rule.get("rest", ()) and active)
        own = rule.get("rotation", {}).get(kind) if kind else None
        found.setdefault("rests" if rests else own, []).append(layer)
    return {kind: runs_of(layers) for kind, layers in found.items()}


def _for_each(fields: Fields, given: Any, count: int, rule: Json) -> bool:
    """Return whether a list has an entry for each layer, or more where its class cuts it."""
    cut, more = rule.get("cut", False), len(given) - count if isinstance(given, list) else -1
    if isinstance(cut, str) and more > 0:
        return fields.get(cut) == more
    return more == 0 or (cut is True and more > 0)


def _listed(fields: Fields, rule: Json, count: int) -> list[Any]:
    """Return a field with an entry for each layer, or the pattern that its class makes."""
    given, every, told = fields.get(rule["field"]), rule["every"], None
    if given:
        if not _for_each(fields, given, count, rule):
            words = f"a list with an entry for each of {count} layers"
            raise ValueError(f"{fields.name(rule['field'])} must be {words}, got {given!r}")
        old = rule.get("old", {})
        told = [old.get(str(one), one) for one in given[:count]]
        told = [*told[: -len(rule["last"])], *rule["last"]][-count:] if "forced" in rule else told
        if not isinstance(every, str) or type(fields.given.get(every)) is not int:
            return told
    if isinstance(every, str):
        every = (fields.given[every] if told else fields.count(every)) or rule["or"]
    if every is None:
        raise ValueError(f"{fields.name(rule['field'])} must be given, one entry for each layer")
    found = pattern(rule, every, count)
    if found == told:
        fields.get(rule["every"])  # they agree
    return told or found


def pattern(rule: Json, every: int, count: int) -> list[Any]:
    """Return the entries for so many layers that a class makes where none are given."""
    one, other = rule["then"], rule["else"]
    found = [one if (i + rule["offset"]) % every == 0 else other for i in range(count)]
    if cycle := rule.get("cycle"):
        found = [cycle[i % len(cycle)] for i in range(count)]
    found = found[::-1] if rule.get("backwards") else found
    found = [*rule.get("first", ())[:count], *found[len(rule.get("first", ())) :]]
    if "last" in rule:
        found = [*found[: -len(rule["last"])], *rule["last"]][-count:]
    if "some" in rule and rule["some"] not in found:
        found[-1] = rule["some"]
    return found


def runs_of(layers: Iterable[int]) -> list[list[int]]:
    """Return numbers as runs ``[first, last, step]``; `unrolled` is the way back."""
    found: list[list[int]] = []
    for layer in layers:
        last = found[-1] if found else None
        if last and (last[0] == last[1] or layer - last[1] == last[2]):
            found[-1] = [last[0], layer, layer - last[1]]
        else:
            found.append([layer, layer, 1])
    return found


def unrolled(runs: list[list[int]]) -> set[int]:
    """Return the numbers in runs ``[first, last, step]``."""
    return {number for first, last, step in runs for number in range(first, last + 1, step)}
