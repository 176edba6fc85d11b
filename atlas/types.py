"""Ask a class what it does with values of other types, and which other fields reach a rotation.

`types_of` completes a rule that was found (`rules`): what its evaluation neither refuses, warns of,
nor predicts.
"""

import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from typing import Any

from ropescope.configuration import DICTS, LAYERWISE, evaluate
from ropescope.layers import unrolled

from .asking import Family, RefusedError, disagreement, raw_of, value_of

__all__ = ["kind_names", "types_of", "words_of"]

ABOUT = re.compile(
    r"layer|pattern|interval|block_type|head|_dim|rope|rotary|window|position|hidden_size|alibi|theta|partial"
    r"|pct|every|dense|context_len"
)
"""Names of fields that may reach a rotation."""

LEFT = re.compile(r"dropout|drop_?path|norm|init|_token|model_type|^index_topk_pattern$")
"""Names that are about something else, or take a text that is not asked for."""

POPPED = re.compile(r"""kwargs\.(?:pop|get)\(\s*["'](\w+)""")
"""Fields that a class takes without having them."""

HEARD = re.compile(
    r"layer|pattern|interval|block_type|dense|window|every|rope|rotary|theta|alibi|position_embedding|interleave"
    r"|^head_dim$"
)
"""Names of fields with which a class is not only loaded, but heard."""

LAYERS = ("types", "switch")
KNOWN = ("rotation", "rest", "absent")
FRACTIONS = (5 / 16, 11 / 32, 0.3, 0.26)
"""Parts of a head that make odd widths."""


def kind_names() -> list[str]:
    """Return the types of layers that any class of configurations takes, in all spellings."""
    from transformers import configuration_utils as made

    return sorted({*made.ALLOWED_ATTN_LAYER_TYPES, *made._LEGACY_LAYER_TYPE_REMAP})


def words_of(family: Family, rule: dict[str, Any]) -> dict[str, Any]:
    """Return ``words``, the types of layers with which a class runs, and as its pattern says.

    None of these where they are all, or where it does not run with its own. And ``wants``: the
    fields without which a model with layers of such a type alone fails; their defaults are added.
    """
    types, layers = value_of(family.loaded(family.raw()), "layer_types"), rule["layers"]
    if not types:
        return {}
    names = {one.name: one.default for one in fields(family.made)}
    windows = {name: value for name, (value, _) in WINDOWS.items() if name in names}
    lefts = ((), ("num_key_value_heads",), ("num_key_value_heads", "head_dim"))  # some fail with
    sizes = [dict.fromkeys(own, "leave out") for own in lefts]
    asked = [one for one in sizes if family.works(**windows, **one, layer_types=types)][:1]

    def works(types: list[str], **more: Any) -> bool:
        return family.works(**asked[0], **{**windows, **more}, layer_types=types)

    def fine(kind: str) -> bool:
        changed = {**windows, "layer_types": [kind, *types[1:]]}
        if asked and not works(changed["layer_types"]):
            return False
        if "types" not in layers:
            return family.runs(**changed)
        try:
            return disagreement(rule, raw_of(family, **changed), family.hear(**changed)) is None
        except RefusedError:
            return False

    runs = fine(types[0])
    known = {*types, *(k for one in KNOWN for k in layers.get(one, ()))}
    words = [kind for kind in kind_names() if kind in known or (runs and fine(kind))]
    found = {"words": words} if words != kind_names() and (runs or "types" in layers) else {}
    lists = {kind: [kind] * len(types) for kind in words} if asked else {}
    lists = {k: v for k, v in lists.items() if works(v)}
    for name in windows:
        fails = [k for k, v in lists.items() if not works(v, **{name: WINDOWS[name][1]})]
        for kind in fails if len(fails) < len(lists) else ():
            found.setdefault("wants", {}).setdefault(kind, []).append(name)
            rule["defaults"][name] = names[name]
    return found


LINEAR = {"rope_type": "linear", "rope_theta": 5000.0, "factor": 3.0}
WINDOWS = {"sliding_window": (4, None), "use_sliding_window": (True, False)}
"""Fields that layers of some types need: a value, and what is none."""


def types_of(family: Family, rule: dict[str, Any]) -> dict[str, Any]:
    """Return ``takes``, ``when``, ``unset``, ``reaches``, ``rotating`` and ``uneven`` of a rule."""
    found: dict[str, Any] = {"takes": {}, "when": {}, "unset": {}}
    found["reaches"] = dict(rule.get("reaches", {}))
    for name in _names(family, rule):
        own = _own(family, name) if name not in DICTS else "d"
        if rule["rope"].get("yields") and name in rule["rope"].get("listed", ()):
            own = ""  # lists alone
        values = _values(family, rule, name)
        answers = {k: _answer(family, rule, name, v) for k, v in values.items() if k not in own}
        heard = rule["part"] == "text" and name not in rule["read"] and HEARD.search(name)
        plain = rule["rescalings"].get("linear") == "linear" and not rule["rope"]["nested"]
        scaled = [{"rope_parameters": LINEAR}] if plain and "scaling" in name else []
        reaches = bool(heard) and any(
            _answer(family, rule, name, value, **more) == "other"
            for value in _varied(family, name, own) for more in ({}, *scaled)
        )  # fmt: skip
        bad = [k for k, v in answers.items() if v == "bad" or (v == "other" and not reaches)]
        if bad:
            fine = [k for k, answer in answers.items() if answer and k not in bad]
            found["takes"][name] = ["".join([*own, *fine]), "".join(bad)]
            met = {k: _types_met(family, rule, name, values[k]) for k in bad}
            if met := {k: types for k, types in met.items() if types is not None}:
                found["when"][name] = met
        others: list[dict[str, Any]] = [{}, *({one: 8} for one in _fellows(rule, name))]
        if unset := "".join(
            letter for letter, answer in answers.items() if answer == "unset" and name not in DICTS
            and all(_answer(family, rule, name, values[letter], **one) == answer for one in others)
        ):  # fmt: skip
            found["unset"][name] = unset
        if reaches:
            found["reaches"][name] = _neutral(family, rule, name)
    found["rotating"] = [*_numbering(family, rule)]
    found["null_is"] = {name: 1.0 for name in _fractions(rule) if _whole(family, rule, name)}
    if rule["part"] == "text" and _uneven(family, rule):
        found["uneven"] = 4 if _by_fours(family, rule) else True
    return {k: v for k, v in found.items() if v}


def _by_fours(family: Family, rule: dict[str, Any]) -> bool:
    """Return whether a class takes widths that are multiples of 4 alone."""
    seen = {True: [], False: []}
    for width in (16, 24, 32, 40):
        try:
            spec = evaluate(raw_of(family, head_dim=width), {family.made.model_type: rule})
        except ValueError:  # of a width that has to be that of another field
            continue
        seen[family.takes(head_dim=width)].append(any(part.width % 4 for part in spec.parts))
    return bool(seen[False]) and all(seen[False]) and not any(seen[True])


def _fractions(rule: dict[str, Any]) -> set[str]:
    """Return fields that tell the part of a head that rotates, and count if they are null."""
    told = [one for made in rule["rotations"] for one in (made["partial"] or {}).get("fields", ())]
    return {one for one in told if " / " not in one}.difference(rule.get("unset", ()))


def _whole(family: Family, rule: dict[str, Any], name: str) -> bool:
    """Return whether null stands for 1 in a field, and a model with weights runs so."""
    if rule["part"] != "text" or (family.works() and not family.works(**{name: None})):
        return False
    with suppress(RefusedError):
        heard = family.hear(**{name: None})
        same = disagreement(rule, raw_of(family, **{name: 1.0}), heard) is None
        return same and disagreement(rule, raw_of(family, **{name: 0.5}), heard) is not None
    return False


def _names(family: Family, rule: dict[str, Any]) -> list[str]:
    """Return fields that a class reads, or that are named as what may reach a rotation."""
    names = {one.name for one in fields(family.made)}
    with suppress(OSError, TypeError):
        names |= set(POPPED.findall(inspect.getsource(family.made)))
    names |= {"head_dim"}
    names = {name for name in names if ABOUT.search(name)} - {LAYERWISE}
    names |= {name for name in rule["read"] if re.fullmatch(r"\w+", name)}
    plain = {family.plain(name) for name in names} - {*rule.get("parts", ())}
    return sorted(name for name in plain if not LEFT.search(name))


def _numbering(family: Family, rule: dict[str, Any]) -> Iterator[str]:
    """Yield lists that a class makes and saves, with the numbers of the layers that rotate.

    Given by itself, such a list has to be the same: its class fails with another.
    """
    told = family.loaded(family.raw()).to_dict()
    lists = {k: v for k, v in told.items() if "layer" in k and isinstance(v, list) and v}
    names = {one.name for one in fields(family.made)} | {*rule["read"]}
    for name, own in ((k, v) for k, v in lists.items() if k not in names):
        parts = evaluate(raw_of(family), {family.made.model_type: rule}).parts
        layers = sorted(n for part in parts for n in unrolled(part.layers))
        if own == layers != [0] and family.works() and not family.works(**{name: [0]}):
            yield name


def _fellows(rule: dict[str, Any], name: str) -> set[str]:
    """Return the other fields that tell the fraction that this one tells."""
    told = [one for made in rule["rotations"] for one in (made["partial"] or {}).get("fields", ())]
    return {one.split(" / ")[0] for one in told} - {name} if name in told else set()


def _own(family: Family, name: str) -> str:
    """Return the letters of the types that a field has by its class."""
    value = _default(family, name)
    told = next((str(one.type) for one in fields(family.made) if one.name == name), "int | None")
    if value is not None:
        letter = _letter(value)
        if letter == "l":
            return "".join(sorted({_letter(one).upper() for one in value})) or "I"
        return letter
    inner = {"int": "i", "float": "f", "bool": "b", "str": "s"}
    listed = re.findall(r"list\[([\w |]+)\]", told)
    words = [inner[w].upper() for one in listed for w in re.findall(r"\w+", one) if w in inner]
    told = re.sub(r"list\[.*?\]", "", told)
    words += [inner[word] for word in re.findall(r"\w+", told) if word in inner]
    words += ["d"] if "dict" in told.lower() else []
    words += ["S"] if "list" in told and not listed else []
    return "".join(dict.fromkeys(words)) or "i"


def _default(family: Family, name: str) -> Any:
    """Return a field of the small configuration; None where it is of none of these types."""
    value = family.small.get(name, value_of(family.default, name))
    return value if isinstance(value, tuple(KINDS.values())) else None


KINDS: dict[str, Any] = {"b": bool, "i": int, "f": float, "s": str, "d": dict, "l": list}


def _letter(value: Any) -> str:
    return next((k for k, one in KINDS.items() if isinstance(value, one)), "n")


def _values(family: Family, rule: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a value of each type for a field."""
    value = _default(family, name)
    if name in DICTS:  # what stands in them is asked elsewhere (`rules.rope_rule`)
        return {"n": None}
    number = value if isinstance(value, int | float) else 1
    count = value_of(family.loaded(family.raw()), rule["layers"]["count"][0]) or 6
    return {
        "n": None, "b": True, "i": int(number), "f": float(number), "s": str(value or 4), "e": [],
        "d": {}, "N": [None] * count, "B": [True] * count, "I": [1] * count, "F": [1.0] * count,
        "S": ["1"] * count,
    }  # fmt: skip


def _varied(family: Family, name: str, own: str) -> Iterator[Any]:
    """Yield other values of a field, of its own type."""
    config = family.loaded(family.raw())
    value, count = value_of(config, name), value_of(config, "num_hidden_layers") or 6
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int) or own == "i":
        yield from {0, 1, 3} - {value}
    elif isinstance(value, float) or own == "f":
        yield 2.0 * (value or 0.5)
    elif isinstance(value, str) or own == "s":
        yield from ("nope", "none", "alibi")
    elif isinstance(value, list) and value and isinstance(value[0], str):
        yield from (value[::-1], [value[0]] * len(value), [value[-1]] * len(value))
        if set(value) <= {"dense", "sparse"}:
            yield from ([one] * len(value) for one in ("dense", "sparse"))
    elif isinstance(value, list) or set(own) & {"I", "F", "B"}:
        yield from ([0] * count, [1] * count, [777.0] * count, [1e4] * (count - 1) + [0])


def _neutral(family: Family, rule: dict[str, Any], name: str) -> Any:
    """Return a value with which a field changes nothing: of each entry, where it is a list.

    It is ``"base"`` for that of the rotation, and None where there is none.
    """
    config = family.loaded(family.raw())
    own = value_of(config, name)
    if isinstance(own, list) and own and own == value_of(family.made(), name):
        return own  # whatever the number of layers
    if isinstance(own, list) and len({*own}) == 1:
        value, changed = own[0], {name: own}
        if not isinstance(value, str):
            value, changed = "base", {name: [777.0] * len(own), "rope_theta": 777.0}
        fine = _answer(family, rule, name, changed.pop(name), **changed) == "fine"
        return value if fine else None
    defaults = (value_of(family.default, name), 0, 1)
    plain = (one for one in defaults if isinstance(one, bool | int | float | str))
    return next((one for one in plain if _answer(family, rule, name, one) == "fine"), None)


def _answer(family: Family, rule: dict[str, Any], name: str, value: Any, **more: Any) -> str | None:
    """Return what a class does with a value of a field.

    ``"fine"`` if the rule predicts it; ``"unset"`` if the field is as if not given and the rule
    says something else; ``"bad"`` if it fails, ``"other"`` if it does something else; None where
    the rule refuses it or says so.
    """
    raw = raw_of(family, **more, **{name: value})
    names = frozenset(one.name for one in fields(family.made))
    try:
        spec = evaluate(raw, {raw["model_type"]: rule}, names)
    except (ValueError, KeyError, TypeError, AttributeError):
        spec = None
    own = [one for one in spec.warnings if one.code != "no-effect"] if spec else []
    if any(one.severity and one.field == name for one in own):
        return None
    if spec is None and value is not None and value != []:
        return None
    try:
        config = family.loaded({k: v for k, v in raw.items() if k != "model_type"}).to_dict()
        plain = family.loaded(family.raw(**more, **{name: "leave out"})).to_dict()
    except Exception:  # whatever it raises
        return "bad" if spec else None
    if config == plain and (value is None or value == []):
        left = raw_of(family, **more, **{name: "leave out"})
        same = spec and spec.parts == evaluate(left, {raw["model_type"]: rule}).parts
        return "fine" if same else "unset"
    if spec is None or rule["part"] != "text" or not (name in rule["read"] or HEARD.search(name)):
        return None
    try:
        heard = family.hear(**more, **{name: value})
    except RefusedError:
        return "bad"
    return "fine" if disagreement(rule, raw, heard) is None else "other"


def _types_met(family: Family, rule: dict[str, Any], name: str, value: Any) -> list[Any] | None:
    """Return the types of layers with which a class fails; None where it does so with all."""
    layers = rule["layers"]
    listing = next((layers[own]["field"] for own in LAYERS if own in layers), name)
    if listing == name:
        return None
    types = [*layers.get("rotation", ()), *layers.get("rest", ()), *layers.get("absent", ())]
    count = value_of(family.loaded(family.raw()), layers["count"][0])
    types = types if "types" in layers else [1]
    met = [
        one for one in types
        if _answer(family, rule, name, value, **{listing: [one] * count}) not in ("fine", "unset")
    ]  # fmt: skip
    return met if len(met) < len(types) else None


def _uneven(family: Family, rule: dict[str, Any]) -> bool:
    """Return whether a class fails with an odd number of channels that rotate."""
    trial = {**rule, "uneven": True}
    changes: list[dict[str, Any]] = [
        {name: value}
        for name in sorted({"partial_rotary_factor", "rotary_pct"} & {*rule["read"]})
        for value in FRACTIONS
    ]
    changes += [{name: 7} for name in ("rotary_dim", "qk_rope_head_dim") if name in rule["read"]]
    kinds = [kind for kind in rule["rope"]["kinds"] if kind]
    if rule["rope"]["dict"] and any(one["partial"] for one in rule["rotations"]):
        for value in FRACTIONS:
            told = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": value}
            changes.append({"rope_parameters": dict.fromkeys(kinds, told) if kinds else told})
    for change in changes:
        raw = raw_of(family, **change)
        with suppress(ValueError):
            spec = evaluate(raw, {raw["model_type"]: trial})
            if any(one.code == "width-odd" for one in spec.warnings):
                try:
                    return disagreement(rule, raw, family.hear(**change)) is not None
                except RefusedError:
                    return True
    return False
