"""Find, by asking, how the rotation of each family follows from its configuration.

For each class of configurations that rotates, small ones are loaded as a published ``config.json``
is, and the family's own code is heard with them (`recording`, `ropescope.identify`). A rule is
chosen part by part from a small grammar: the candidate with which `ropescope.configuration`
predicts what was heard. Then configurations drawn at random test it. (`drawn`).

A rule
------
``family``, ``part``
    Its folder in transformers; ``text``, ``vision``, ``audio`` or ``other``.
``null``
    Instead of all below: why there is no rule.
``parts``, ``flat``
    Fields that hold configurations of their own: ``{"type": model_type, "any": bool}``, where
    ``any`` says that their own ``model_type`` counts, ``as`` are other names of such; ``defaults``
    are those that the model has instead of that class's, ``always`` or where the part is not given;
    ``optional`` ones are none where they are not given; ``typed`` ones want their ``model_type``;
    ``sets``, fields of the model that overrule the part's own, with what does so where none is
    given, or null. ``also``, fields that a class takes for a part by another name; ``flat``, parts
    whose fields may stand outside, but for ``left``.
``aliases``, ``defaults``, ``inner``
    Other spellings of fields; values of the class where a field is not given; dicts whose fields
    have dotted names.
``sizes``, ``divides``
    Fields that have to be whole numbers, true where null is allowed; whether ``hidden_size`` has to
    be a multiple of ``num_attention_heads``.
``needs``, ``foreign``, ``refuses``, ``must``
    Rescalings that fail where ``head_dim`` is null; the expressions other than whose value
    ``head_dim`` makes the class fail; fields that a class takes from none, but for these values;
    fields without which it fails.
``rope``
    ``dict``: whether ``rope_parameters`` and ``rope_scaling`` are read; ``nested``: an entry for
    each kind of layer; ``fills``: a missing entry is filled; ``nulls``: one that is null, too;
    ``rests``: layers of a kind whose entry is null do not rotate; ``replaces``: the types of a
    ``rope_scaling`` that stands for ``rope_parameters`` (letters of
    `ropescope.configuration.TYPES`; an empty dict as null does); ``apart``: it
    counts with a dict for each kind of layer alone, and then nothing outside does; ``listed``:
    fields outside that may have an entry for each layer, of which the first of a kind counts, or
    the last where ``final``; ``yields``: nothing outside counts beside a dict; ``strict``: the
    class fails with entries for no kind of layer; ``keeps``, ``wants``, ``wants_plain``: their keys
    about something else, and those without which a class fails, or does so by default alone;
    ``old``: those without which it does in ``rope_scaling``.
    ``outside``: ``original_max_position_embeddings`` outside overrules that of the dict;
    ``scaled``: keys of numbers that any rescaling must have;
    ``alpha``: this key makes ``dynamic`` a fixed rescaling of a larger base.
    ``kinds``, by kind (``""`` if one):
    ``theta``, fields of the base outside; ``default``, the base without any; ``scaling``, whether
    a legacy ``rope_scaling`` counts; ``absent``, what stands for ``rope_parameters`` if null;
    ``over``, fields that overrule the dict's base.
``rescalings``
    By ``rope_type``: the published rescaling that it is, ``default`` if it has no effect,
    ``unknown`` if it is none of these, or ``refused``, also with the further keys that a class
    may want.
``rotations``
    Each ``kind``, ``layout``, ``direction``, ``place`` (of a part of a head), ``head_dim`` and
    ``dim`` (expressions; the first whose fields are known counts), ``partial`` (``fields`` and
    ``default`` of the fraction of ``dim``, ``rescaled`` that of published rescalings where it is
    another; or null; with ``whole`` the class reads one, and fails if it is not 1), ``by_layer``
    (fields of single layers take the place of ``head_dim``'s first expression), ``shared`` (the
    field that says which layers have no indexer of their own), ``axes`` (with
    ``sums``, all sections make up the pairs), ``power`` (the factor has ``head_dim`` to this power)
    and ``scale`` (``times`` ``by`` / ``over``: how far a coordinate goes from a patch to the next).
``layers``
    ``count``; ``types`` or ``switch``, fields with an entry for each layer, and the pattern if none
    is given: ``then`` where ``(layer + offset) % every`` is 0, else ``else``; ``backwards`` if it
    counts from the last; ``cycle``, entries that recur, instead of these two; ``first`` and
    ``last`` entries; ``some``, the last if there is none of it;
    ``windows``, a list of which the types are made where they are not given;
    ``some_of``, a type of which a list has to have one;
    whether the last are ``forced`` and longer lists ``cut``, any or those with so many entries more
    as this field says; ``old`` spellings of types; ``words``, the types that its class takes, where
    it does not take all, and ``wants``, fields that have to be set where one of these is given. Or
    ``numbers``: a field with numbers of layers of the kind ``then``, if no list is given.
    ``rotation`` by type; types that ``rest`` (``unless`` a field is null) or are ``absent``;
    ``except``, a field with numbers of layers that attend to something else.
``on``, ``alone``
    Fields that have to have one of these values, else nothing rotates; whether attention modules
    were heard alone, so that their layers are not known.
``lengths``, ``read``
    Whether ``max_position_embeddings`` is known; fields of the rule.
``indexer``
    True where the code has an indexer that rotates, too, and none was heard.
``by_head``
    True where the model passes the number of a head as the position (`atlas.special.TABLES`).
``takes``, ``when``, ``unset``
    By field: the types of value that its class takes, and those with which it fails or does
    something else (letters of `ropescope.configuration.TYPES`); where these do so with some types
    of layers alone, or only if the list of layers is not given; types that are as if not given.
``null_is``
    By field: what null stands for.
``reaches``, ``uneven``
    Fields that change what rotates by a rule that is not known, with the value (of each entry of a
    list, ``base`` for that of the rotation) that changes nothing; whether an odd number of channels
    that rotate makes the class fail, 4 where one that is no multiple of it does (`types`).
``rotating``
    Fields that, if given, have to be the numbers of the layers that rotate.
``agreement``
    ``[agreeing, drawn]``; and ``why`` the first that did not agree.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import MISSING, fields
from itertools import product
from typing import Any

import numpy as np

from ropescope import Report
from ropescope.configuration import LAYERWISE, PARAMETERS, TURNS, WHOLE, evaluate
from ropescope.layers import pattern
from ropescope.series import SECTIONED

from . import BY_HEAD
from .asking import (
    LOOSE,
    SIZES,
    SWITCHES,
    Family,
    Heard,
    RefusedError,
    disagreement,
    factor_of,
    raw_of,
    value_of,
)
from .families import has_indexer
from .rows import part_of
from .special import SMALL, TABLES
from .types import POPPED

__all__ = ["BASES", "FAR", "NOT_ROTATED", "STYLES", "rule_of"]

HEADS = (
    ["head_dim", "hidden_size // num_attention_heads"],
    ["hidden_size // num_attention_heads"],
    ["head_dim"],
    ["qk_nope_head_dim + qk_rope_head_dim"],
    ["qk_rope_head_dim"],
    ["index_head_dim"],
    ["2 * hidden_size // num_attention_heads"],
    ["attention_head_dim"],
    ["attention_head_dim", "2 * hidden_size // num_attention_heads"],
    ["global_head_dim", "512"],
    ["rotary_dim"],
    ["embed_dim // num_attention_heads"],
    ["memory_attention_hidden_size // memory_attention_downsample_rate // "
     "memory_attention_num_attention_heads"],
    ["hidden_size // speech_encoder_attention_heads"],
    ["hidden_size"],
    ["d_kv"],
    ["32"],
)  # fmt: skip
"""Expressions of a width."""

BASES = (
    "rope_theta", "rotary_emb_base", "rope_local_base_freq", "global_rope_theta",
    "local_rope_theta", "swa_rope_theta", "compress_rope_theta", "memory_attention_rope_theta",
    "rope_base", "rotary_base", "rotary_embedding_base", "attn_config.rope_theta",
)  # fmt: skip
COUNTS = (
    "speech_encoder_layers",
    "memory_attention_num_layers",
    "num_attention_layers",
    "num_hidden_layers",
    "depth",
    "num_layers",
)
"""Fields that may have the number of layers of modules that were heard alone."""

EVERY = (
    "sliding_window_pattern", "global_attn_every_n_layers", "full_attention_interval",
    "no_rope_layer_interval", "layer_group_size", "attn_layer_period",
)  # fmt: skip
NOT_ROTATED = "nothing rotates"
"""Of a class whose queries do not depend on their position."""

FAR = 2**18
"""A length beyond what is heard, where frequencies change with it."""

STYLES: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"factor": 3.0},
    "dynamic": {"factor": 3.0},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 160},
    "longrope": {"factor": 4.0, "original_max_position_embeddings": FAR},
    "llama3": {
        "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 160,
    },
    "proportional": {"partial_rotary_factor": 0.5},
    "su": {"factor": 4.0, "original_max_position_embeddings": FAR},
    "mrope": {},
    "axial": {},
}  # fmt: skip
"""Types of rescaling to ask for, with parameters."""

SCALED = ("linear", "dynamic", "yarn", "longrope", "llama3")
"""Those that are asked for again with further keys."""


def rule_of(family: Family) -> dict[str, Any]:
    """Return the rule of a class that rotates; raise RefusedError where none is found."""
    names = {f.name: f.default for f in fields(family.made)}
    aliases = dict(family.made.attribute_map)
    known = {k: v for k, v in names.items() if v is not MISSING and isinstance(v, int | str | None)}
    popped = _popped(family, names)
    aliases |= popped
    cross = value_of(family.default, "cross_attention_layers")
    known |= {"cross_attention_layers": cross} if isinstance(cross, list) else {}
    heard, numbers = mixed(family, _first(family))
    rule: dict[str, Any] = {
        "family": family.name,
        "part": part_of(family.made.__name__),
        "aliases": {
            k: v
            for k, v in aliases.items()
            if v in names or not (hasattr(family.made, v) or k in names)
        },
        "defaults": known,
        "lengths": "max_position_embeddings" in names or "max_position_embeddings" in aliases,
        "rescalings": {"default": "default"},
        "alone": not any(one.layers for one in heard),
    }
    switches = {k: v for k, v in SWITCHES.items() if hasattr(family.default, k)}
    rule["on"] = {k: [one for one in v if _turns(family, k, one)] or v for k, v in switches.items()}
    nested = _nested(family)
    heard = family.hear() if nested and "rope_parameters" in family.small else heard
    rule["layers"] = layers_of(family, heard, nested) | numbers
    heard = family.hear() if family.labels else heard
    if "or" in rule["layers"].get("numbers", {}):
        told = rule["layers"]["numbers"]
        known[told["field"]] = told.pop("or")
    if list(rule["layers"]) == ["count"]:  # all alike
        with suppress(RefusedError):
            family.loaded(family.raw(num_hidden_layers=2))
            family.small["num_hidden_layers"] = 2
    rule["rope"] = rope_rule(family, nested, heard)
    rule["rotations"] = rotations_of(family, rule, heard, nested)
    scaled(family, rule, nested)
    rule["rescalings"] = rescalings_of(family, rule, nested)
    rule["rope"]["outside"] = outside(family, rule)
    if stretches(family, rule):
        rule["rope"]["alpha"] = True
    if rule["rope"]["dict"] and not nested and (own := set(family.resolved()) - OWN):
        rule["rope"]["keeps"] = sorted(own | {*rule["rope"].get("keeps", ())})
    if inner := sorted({name.split(".")[0] for name in family.small if "." in name}):
        rule["inner"] = inner  # fields that stand in a dict of their own
    if BY_HEAD in TABLES.get(family.name, ()):
        rule["by_head"] = True
    alike = any(one["kind"] == "indexer" for one in rule["rotations"])
    if rule["part"] == "text" and not alike and has_indexer(family.name):
        rule["indexer"] = True
    rule |= checks_of(family, rule)
    if idle := {k: "n" for k, size in popped.items() if _sized(family, size, **{k: None})}:
        rule["unset"] = {**rule.get("unset", {}), **idle}
    return trimmed(rule)


def _popped(family: Family, names: Iterable[str]) -> dict[str, str]:
    """Return other names by which a class takes its sizes, without having such fields."""
    found = {}
    others = {*POPPED.findall(inspect.getsource(family.made))}.difference(names)
    for name, size in product(sorted(others), SHAPE):
        if _sized(family, size, 4, **{name: 4}) and not _sized(family, size, 4):
            found[name] = size
    return found


def _sized(family: Family, size: str, value: Any = None, **given: Any) -> bool:
    """Return whether a class takes these fields, and has this size then, or that of its default."""
    with suppress(Exception):  # whatever it raises
        due = value_of(family.made(), size) if value is None else value
        return bool(value_of(family.made.from_dict(given), size) == due)
    return False


SHAPE = ("hidden_size", "num_attention_heads", "num_hidden_layers")


def _first(family: Family) -> list[Heard]:
    """Return what is heard of a small configuration, made so that its head has one width."""
    why = NOT_ROTATED
    small, own = dict(family.small), SMALL.get(family.made.__name__, {})
    sizes = {"head_dim", "hidden_size", "num_attention_heads", "num_key_value_heads"}
    lefts = (set(), {"head_dim"}, {"head_dim", "num_key_value_heads"}, sizes, set(small))
    for family.alone, left in product((False, True), lefts):
        family.small = {
            k: v for k, v in small.items() if k not in left or k not in SIZES or k in own
        }
        for sections in ({}, *_sectioned(family, (8, 12, 16, 64, 32))):
            try:
                heard = family.hear(**sections)
            except RefusedError as error:
                why = str(error)
                continue
            if any(one.report for one in heard):
                family.small |= sections
                return heard
    raise RefusedError(why)


def _sectioned(family: Family, pairs: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Yield ``rope_parameters`` with sections of three axes for so many pairs."""
    if (
        "mrope_section" in getattr(family.made, "ignore_keys_at_rope_validation", ())
        or "mrope" in str(getattr(family.default, "rope_parameters", None))
        or "_vl" in family.name
        or "omni" in family.name
    ):
        before = family.small.get("rope_parameters") or {"rope_type": "default", "rope_theta": 1e4}
        for n in pairs:
            own = [n - 2 * (n // 3), n // 3, n // 3]
            for sections in (own, own[::-1]):
                yield {"rope_parameters": before | {"mrope_section": sections}}


def mixed(family: Family, heard: list[Heard]) -> tuple[list[Heard], dict[str, Any]]:
    """Return what is heard with layers of several types, where these do not rotate alike.

    The small configuration gets these layers, the rule a field with their numbers where there is
    one. What was heard is returned where a class has one type of layer, or makes several itself.
    """
    config = family.loaded(family.raw())
    types = value_of(config, "layer_types") or []
    if not types and any(one.name == "layer_types" for one in fields(family.made)):
        types = ["full_attention"] * config.num_hidden_layers
    if len({*types}) > 1 and any(one.layers for one in heard):
        return heard, {}
    before = family.alone, dict(family.small)
    family.alone = False
    for name in (one.name for one in fields(family.made) if NUMBERED.search(one.name)):
        if own := _parted_by(family, {name: [1, 3]}):
            config = family.loaded(family.raw(**{name: [1, 3]}))
            told = {"field": name, "then": config.layer_types[1], "else": config.layer_types[0]}
            family.small[name] = [1, 3]
            return own, {"numbers": told}
    for kind in (one for one in _kind_names() if types and one != types[0]):
        if own := _parted_by(family, {"layer_types": [kind, types[0]] * (len(types) // 2)}):
            family.small["layer_types"] = [kind, types[0]] * (len(types) // 2)
            return own, {}
    family.alone, family.small = before
    return heard, {}


def _turns(family: Family, name: str, value: Any) -> bool:
    """Return whether something rotates with a value of a field."""
    with suppress(RefusedError):
        return any(one.report for one in family.hear(**{name: value}))
    return False


NUMBERED = re.compile(r"^(full_)?att(entio)?n_.*(indices|idxs)$")
"""Names of fields with the numbers of layers that attend."""


def _kind_names() -> list[str]:
    """Return the types of layers that classes of configurations take."""
    from transformers.configuration_utils import ALLOWED_ATTN_LAYER_TYPES

    return sorted(ALLOWED_ATTN_LAYER_TYPES)


def _parted_by(family: Family, change: dict[str, Any]) -> list[Heard] | None:
    """Return what is heard with a change that has layers of two types rotate apart, or None."""
    try:
        heard = family.hear(**change)
        config = family.loaded(family.raw(**change))
        nested = sum(isinstance(one, dict) for one in family.resolved(**change).values()) > 1
    except RefusedError:
        return None
    turning = {n for one in heard if one.report for n in one.layers or ()}
    if not turning or len({*(value_of(config, "layer_types") or ())}) < 2:
        return None
    return heard if nested or len(turning) < config.num_hidden_layers else None


def _entry(value: Any) -> bool:
    """Return whether a value of ``rope_parameters`` is that of a kind of layer."""
    return value is None or isinstance(value, dict)


def _nested(family: Family) -> list[str]:
    """Return the kinds of layer for which ``rope_parameters`` has an entry each.

    Where one is null, whose layers rest, the small configuration gets entries for all.
    """
    found = family.resolved()
    kinds = sorted(k for k, v in found.items() if _entry(v))  # which may come from a set
    if not any(found[kind] for kind in kinds):
        return []
    if not all(found[kind] for kind in kinds):
        plain = {"rope_type": "default", "rope_theta": 10000.0}
        family.small["rope_parameters"] = {kind: dict(plain) for kind in kinds}
    return kinds


def layers_of(family: Family, heard: list[Heard], nested: list[str]) -> dict[str, Any]:
    """Return the rule for layers, from a model in which each type of layer stands."""
    config = family.loaded(family.raw())
    if not any(one.layers for one in heard):
        known = [name for name in COUNTS if isinstance(value_of(config, name), int)]
        rule = {"count": _kept_counts(family) + (known[:1] or ["num_hidden_layers"])}
        kinds = sorted({one.kind for one in heard if one.kind and one.report})
        numbers = value_of(config, "global_attn_indexes")
        if nested and value_of(config, "layer_types"):
            rule["types"] = {"field": "layer_types", **pattern_of(family, "layer_types")}
            rule["rotation"] = {kind: kind for kind in nested}
            rule["absent"] = sorted(set(config.layer_types) - set(nested))
        elif len(kinds) == 2 and numbers is not None:
            default = family.made().global_attn_indexes
            then, other = kinds
            rule["numbers"] = {
                "field": "global_attn_indexes", "then": then, "else": other, "or": default,
            }  # fmt: skip
            rule["rotation"] = {kind: kind for kind in kinds}
        return rule
    count = config.num_hidden_layers
    turning = {n for one in heard if one.report and one.layers for n in one.layers}
    resting = {n for one in heard if not one.report and one.layers for n in one.layers} - turning
    rule: dict[str, Any] = {"count": ["num_hidden_layers"]}
    if value_of(config, "num_layers") == len(turning | resting) != count:
        times = count // config.num_layers
        rule["count"] = [f"num_hidden_layers // {times}", "num_layers"]
        both = family.loaded(family.raw(num_hidden_layers=2 * times, num_layers=3))
        rule["count"] = rule["count"][:: -1 if both.num_layers == 3 else 1]
        count = config.num_layers
    types = getattr(config, "layer_types", None)
    cross = value_of(config, "cross_attention_layers")
    if cross and turning == set(range(count)) - set(cross):
        return {**rule, "except": "cross_attention_layers"}
    if not nested and turning == set(range(count)):
        return rule
    for name in ("no_rope_layers", "layer_rope_theta"):
        switch = value_of(config, name)
        if switch and {n for n, on in enumerate(switch) if on} == turning:
            rule["switch"] = {"field": name, **pattern_of(family, name)}
            return rule
    if not types:
        raise RefusedError(f"layers {sorted(turning)} of {count} rotate by another rule")
    by_type = {t: {n for n in range(count) if types[n] == t} for t in sorted(set(types))}
    rule["types"] = {"field": "layer_types", **pattern_of(family, "layer_types")}
    if rule["types"]["every"] is None:
        family.small["layer_types"] = list(types)
    if nested and not set(nested) & set(by_type):
        family.labels |= _labels(family, by_type, nested)
    rule["rotation"] = {
        t: family.labels.get(t, t) if nested else None
        for t, own in by_type.items()
        if own <= turning
    }
    from transformers.configuration_utils import _LEGACY_LAYER_TYPE_REMAP as LEGACY

    if old := {k: v for k, v in LEGACY.items() if v in by_type}:
        rule["types"]["old"] = rule["types"].get("old", {}) | old
    rule["rest"] = sorted(t for t, own in by_type.items() if own <= resting)
    rule["absent"] = sorted(t for t, own in by_type.items() if not own & (turning | resting))
    if set(rule["rotation"]) | set(rule["rest"]) | set(rule["absent"]) != set(by_type):
        raise RefusedError("layers rotate by another rule than their type")
    if rule["rest"] and getattr(config, "sliding_window", None) is not None:
        with suppress(RefusedError):
            types = rule["rest"][:1] * len(config.layer_types)
            heard = family.hear(sliding_window=None, layer_types=types)
            if not any(one.report is None for one in heard):
                rule["unless"] = "sliding_window"
    return rule


def _kept_counts(family: Family) -> list[str]:
    """Return fields in which a class keeps the number of layers that it was given, and changed."""
    with suppress(RefusedError):
        found = family.loaded(family.raw(num_hidden_layers=5)).to_dict()
        if found.get("num_hidden_layers", 5) != 5:
            return [k for k, v in found.items() if type(v) is int and v == 5 and "layers" in k]
    return []


def _labels(family: Family, by_type: dict[str, set[int]], nested: list[str]) -> dict[str, str]:
    """Return which entry of ``rope_parameters`` each type of layer reads, by bases of their own."""
    bases = {kind: 100.0 * 30**n for n, kind in enumerate(nested)}
    told = {kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()}
    heard = [one for one in family.hear(rope_parameters=told) if one.report]
    found = {}
    for name, layers in by_type.items():
        own = [
            one.report.inv_freq for one in heard if one.report and layers & {*(one.layers or ())}
        ]
        if own:
            found[name] = next(k for k, v in bases.items() if _is_series(own[0], v))
    return found


def _is_series(frequencies: np.ndarray, base: float) -> bool:
    """Return whether frequencies are the powers of a base."""
    return np.allclose(frequencies, base ** -(np.arange(len(frequencies)) / len(frequencies)))


LENGTHS = (*range(1, 10), *range(29, 38))
"""Numbers of layers to ask for patterns of."""

PREDICT = "num_nextn_predict_layers"
"""A field with the number of layers of heads that predict further."""

ATTENTION_WINDOWS = "attention_windows"
"""An older field of which types of layers are made: how far each layer looks, 0 without an end."""


def pattern_of(family: Family, field: str) -> dict[str, Any]:
    """Return the pattern of a list of layers that its class makes if none is given."""
    from transformers.configuration_utils import _LEGACY_LAYER_TYPE_REMAP as LEGACY

    numbers = dict.fromkeys(filter(NUMBERED.search, family.small), "leave out")

    def made(count: int, **more: Any) -> list[Any]:
        raw = family.raw(num_hidden_layers=count, **{field: "leave out", **numbers, **more})
        found = list(getattr(family.loaded(raw), field))
        return found if field == "layer_types" else [int(bool(one)) for one in found]

    def fitted(**more: Any) -> dict[str, Any] | None:
        lists = {}
        for count in LENGTHS:
            with suppress(RefusedError, TypeError, IndexError):
                lists[count] = made(count, **more)
        return _fit(lists) if len(lists) > 9 else None

    fits = fitted() or _listed(family, field)
    for name, n in product(EVERY, (3, 7)):
        other = fitted(**{name: n})
        if other and other["every"] == n and other != fits:
            default = getattr(family.default, name, fits["every"])
            fits = {**other, "every": name, "or": default}
            break
    if field != "layer_types":
        with suppress(RefusedError):  # a list that is too long
            family.hear(num_hidden_layers=6, **{field: [1] * 7})
            fits["cut"] = True
        return fits
    old = {k: v for k, v in LEGACY.items() if v in str(fits)}
    with suppress(RefusedError, TypeError):
        near, far, *more = made(6, **{ATTENTION_WINDOWS: [4, 0] * 3})
        if near != far and more == [near, far] * 2 != made(6)[2:]:
            fits["windows"] = {"field": ATTENTION_WINDOWS, "zero": far, "other": near}
    return {**fits, **_given(family, fits), **({"old": old} if old else {})}


def _listed(family: Family, field: str) -> dict[str, Any]:
    """Return the list that a class has, the same for any number of layers, as a pattern."""
    with suppress(RefusedError, TypeError):
        own = [*value_of(family.loaded(family.raw(**{field: "leave out"})), field)]
        if len(own) > len(LENGTHS):
            return {"every": 1, "offset": 0, "then": own[-1], "else": own[-1], "first": own}
    return {"every": None}


def _given(family: Family, fits: dict[str, Any]) -> dict[str, Any]:
    """Return what a class makes of types of layers that are given: whether it changes the last."""
    found: dict[str, Any] = {}
    if fits["every"] is not None:
        told = [fits["else"]] * 6
        with suppress(RefusedError):
            got = family.loaded(family.raw(num_hidden_layers=6, layer_types=told)).layer_types
            found |= {"forced": True, "last": [got[-1]]} if got[:5] == told[:5] != got[1:] else {}
        one = [*told[1:], fits["then"]]
        six = {"num_hidden_layers": 6}
        if family.takes(**six, layer_types=one) and not family.takes(**six, layer_types=told):
            found["some_of"] = fits["then"]
        with suppress(RefusedError):
            got = family.loaded(family.raw(num_hidden_layers=6, layer_types=[*told, told[0]]))
            found |= {"cut": True} if len(got.layer_types) == 6 else {}
        with suppress(RefusedError):  # layers of heads that predict further
            raw = family.raw(num_hidden_layers=6, layer_types=[*told, told[0]])
            got = family.loaded({**raw, PREDICT: 1}).layer_types
            found |= {"cut": PREDICT} if len(got) == 6 and "cut" not in found else {}
    return found


def _fit(lists: dict[int, list[Any]]) -> dict[str, Any] | None:
    """Return the pattern of the lists of so many layers, the simplest; None where there is none."""
    longest = lists[max(lists)]
    ends = sorted(product(range(4), range(3), (None, *sorted(set(longest)))), key=_size)
    for every, offset in ((n, k) for n in range(1, 13) for k in range(n)):
        for backwards in (False, True):
            found = longest[::-1] if backwards else longest
            inner = range(3, len(found) - 3)
            then = {found[i] for i in inner if (i + offset) % every == 0}
            other = {found[i] for i in inner if (i + offset) % every} or then
            if not len(then) == len(other) == 1:
                continue
            rule = {"every": every, "offset": offset, "then": min(then), "else": min(other)}
            rule |= {"backwards": True} if backwards else {}
            for head, tail, some in ends:
                full = rule | ({"first": longest[:head]} if head else {})
                full |= {"last": longest[-tail:]} if tail else {}
                full |= {"some": some} if some is not None else {}
                if all(pattern(full, every, n) == own for n, own in lists.items()):
                    return full
    for period, head in product(range(3, 13), range(4)):
        cycle = [longest[n + 12 - 12 % period] for n in range(period)]
        full = {"every": 1, "offset": 0, "then": cycle[0], "else": cycle[0], "cycle": cycle}
        full |= {"first": longest[:head]} if head else {}
        if all(pattern(full, 1, n) == own for n, own in lists.items()):
            return full
    return None


def _size(ends: tuple[int, int, Any]) -> int:
    """Return how much is said of the ends of a pattern."""
    return ends[0] + ends[1] + (ends[2] is not None)


def rope_rule(family: Family, nested: list[str], heard: list[Heard]) -> dict[str, Any]:
    """Return how a class makes its base and its ``rope_parameters``, by asking it alone."""
    has = hasattr(family.default, "rope_parameters")
    kinds = nested or [""]

    def ask(kind: str, key: str, **more: Any) -> Any:
        try:
            found = family.resolved(**more)
        except RefusedError:
            return None
        return (found.get(kind) or {} if nested else found).get(key)

    bare = family.resolved()
    rule: dict[str, Any] = {"dict": has, "nested": bool(nested), "fills": False, "kinds": {}}
    kept = set(family.made.ignore_keys_at_rope_validation or ()) - {"partial_rotary_factor"}
    plain = {"rope_type": "default", **{k: v for k, v in bare.items() if k in kept}}
    told = {kind: dict(plain) for kind in nested} or plain
    for kind in kinds:
        own = (bare.get(kind) or {}) if nested else bare
        part = "partial_rotary_factor"
        extra = set(own) - {"rope_theta", "rope_type", part}
        extra |= {own.get("rope_type", "default")} - {"default", "axial"}
        outer = [n for n in BASES if ask(kind, "rope_theta", **{n: 777.0}) == 777.0]
        left = {"rope_theta"} if outer else set()
        if ask(kind, part, qk_rope_head_dim=20) != own.get(part):  # it follows from sizes
            left.add(part)
        absent = {k: v for k, v in own.items() if k not in left}
        absent = absent if has and (nested or extra or not outer) else None
        if nested and bare.get(kind) is None:
            rule["rests"], absent = True, None
        given = {"rope_parameters": told} if has and absent else {}
        base = ask(kind, "rope_theta", **given)  # that of a dict that lacks it
        if base is None and not given:
            of_kind = [one.report for one in heard if one.report and one.kind in (kind, None)]
            base = value_of(family.default, "rope_theta") or (of_kind[0].base if of_kind else None)
        inner = [n for n in BASES if ask(kind, "rope_theta", **given, **{n: 777.0}) == 777.0]
        theta = outer or inner
        legacy = {**plain, "rope_theta": 555.0}
        rule["kinds"][kind] = {
            "theta": theta if has else _heard_bases(family),
            "default": base,
            "scaling": ask(kind, "rope_theta", rope_scaling=legacy) == 555.0,
            "absent": absent,
        }
        given = {"rope_parameters": {**own, "rope_theta": 555.0}}
        over = [
            name for name in theta if ask(kind, "rope_theta", **given, **{name: 777.0}) == 777.0
        ]
        if over and has and not nested:
            rule["kinds"][kind]["over"] = over
    for kind in (kind for kind in nested if rule["kinds"][kind]["scaling"]):
        scaled, given = {"rope_type": "linear", "factor": 3.0}, {"rope_theta": 5000.0}
        given = dict.fromkeys(nested, plain | given)
        if ask(kind, "factor", rope_parameters=given, rope_scaling=scaled) is None:
            one = {"rope_parameters": {kind: plain | {"rope_theta": 777.0}}, "rope_theta": 555.0}
            rule["apart"] = ask(kind, "rope_theta", **one) == 555.0
    scaled, part = {"rope_type": "linear", "factor": 3.0}, "partial_rotary_factor"
    new = {"rope_parameters": scaled | {"rope_theta": 5000.0}}
    old = {"rope_scaling": scaled, "rope_theta": 5000.0}
    if has and not nested and ask("", part, **new) is not None and ask("", part, **old) is None:
        rule["old"] = [part]
    types = value_of(family.loaded(family.raw()), "layer_types") or []
    for name, key in LISTED.items() if nested and set(types) <= set(nested) else ():
        lists = {name: [0.25 + nested.index(kind) for kind in types]}
        if all(ask(kind, key, **lists) == 0.25 + nested.index(kind) for kind in set(types)):
            rule.setdefault("listed", []).append(name)
            if name == "rope_theta":
                for kind in {*types}.intersection(rule["kinds"]):
                    rule["kinds"][kind]["theta"] = [*rule["kinds"][kind]["theta"], name][:1]
                both = {"rope_parameters": dict.fromkeys(nested, plain)}
                if not any(ask(kind, key, **both, **lists) == 0.25 for kind in nested[:1]):
                    rule["yields"] = True
            each = {name: [0.25 + n for n in range(len(types))]}
            ends = {kind: len(types) - 1 - types[::-1].index(kind) for kind in {*types}}
            if all(ask(kind, key, **each) == 0.25 + n for kind, n in ends.items()):
                rule["final"] = True
    flat = {"rope_parameters": {"rope_type": "default", "rope_theta": 777.0}}
    if nested and has and not family.takes(**flat):
        rule["strict"] = True
    if len(nested) > 1:
        one, other = nested[:2]
        only = {one: {"rope_type": "default", "rope_theta": 777.0}}
        with suppress(RefusedError):
            rule["fills"] = bool(family.resolved(rope_parameters=only).get(other))
            rule["nulls"] = False
            rule["nulls"] = bool(family.resolved(rope_parameters={**only, other: None}).get(other))
    if has:
        rule |= {"keeps": sorted(kept - {"mrope_section"})} if kept - {"mrope_section"} else {}
        replaces = ""
        other = {kind: plain | {"rope_theta": 555.0} for kind in nested}
        for letter, value in (("n", None), ("d", other)) if nested else ():
            with suppress(RefusedError):
                after = family.resolved(rope_parameters=told, rope_scaling=value)
                bases = {(after.get(kind) or {}).get("rope_theta") for kind in nested}
                replaces += letter * (bases == {None if value is None else 555.0})
        rule |= {"replaces": replaces} if replaces else {}
    return rule


def scaled(family: Family, rule: dict[str, Any], nested: list[str]) -> None:
    """Note what a class makes of less told than it fills in, in place.

    Published rescalings may take whole heads where no fraction is told. And a ``rope_scaling`` that
    stands for ``rope_parameters`` may do so by another rule: then it is one that is not known.
    """
    told = {"rope_type": "linear", "rope_theta": 5000.0, **STYLES["linear"]}
    parts = [one["partial"] for one in rule["rotations"] if one["partial"]]
    trial = {**rule, "read": [], "rescalings": TYPES}
    if rule["rope"]["dict"] and any(one["default"] != 1.0 for one in parts):
        more = {"rope_parameters": {kind: dict(told) for kind in nested} if nested else told}
        with suppress(RefusedError):
            heard = family.hear(**more)
            if disagreement(trial, raw_of(family, **more), heard):
                for one in parts:
                    one["rescaled"] = 1.0
                if disagreement(trial, raw_of(family, **more), heard):
                    for one in parts:
                        del one["rescaled"]
    if "d" in rule["rope"].get("replaces", ""):
        plain = {"rope_type": "default", "rope_theta": 5000.0}
        more = {"rope_scaling": {kind: dict(plain) for kind in nested}}
        if not family.runs(**more) or disagreement(
            trial, raw_of(family, **more), family.hear(**more)
        ):
            rule["rope"]["replaces"] = rule["rope"]["replaces"].replace("d", "")
            rule["reaches"] = {"rope_scaling": None}


OWN = {
    "rope_theta", "rope_type", "type", "partial_rotary_factor", "mrope_section",
    "mrope_interleaved", *sum(PARAMETERS.values(), ()),
}  # fmt: skip
"""Keys of ``rope_parameters`` that are not about something else."""

LISTED = {"rope_theta": "rope_theta", "partial_rotary_factors": "partial_rotary_factor"}
"""Fields that may have an entry for each layer, and what these are."""


def _heard_bases(family: Family) -> list[str]:
    """Return fields that change the base of a class without ``rope_parameters``."""
    before = family.hear()[0].report
    found = []
    for name in BASES:
        if value_of(family.default, name.split(".")[0]) is not None:
            for base in (777.0, 777):
                with suppress(RefusedError):
                    after = family.hear(**{name: base})[0].report
                    if before and after and not np.allclose(after.inv_freq, before.inv_freq):
                        found.append(name)
                        break
    return found


SHAPES: tuple[dict[str, Any], ...] = (
    {},
    {"head_dim": 32},
    {"head_dim": None},
    {"head_dim": "leave out"},
    {"hidden_size": 160},
    {"num_attention_heads": 8},
    {"embed_dim": 160},
    {"qk_rope_head_dim": 20},
    {"qk_nope_head_dim": 12},
    {"qk_rope_head_dim": 20, "head_dim": 20},
    {"qk_rope_head_dim": 8, "partial_rotary_factor": 1.0},
    {"index_head_dim": 40},
    {"partial_rotary_factor": 0.75},
    {"partial_rotary_factor": 0.5, "head_dim": 24},
    {"rotary_pct": 0.75},
    {"rotary_dim": 8},
    {"rotary_dim": 8, "partial_rotary_factor": 0.75},
    {"rotary_emb_fraction": 0.5},
    {"kv_channels": 20},
    {"attention_head_dim": 20},
    {"global_head_dim": 40},
)
"""Changes of the fields that a width may follow from."""

FREE = {
    "head_dim", "partial_rotary_factor", "rotary_pct", "rotary_dim", "hidden_size",
    "num_attention_heads", "global_head_dim",
}  # fmt: skip
"""Fields that are asked for whether or not a class names them."""


def rotations_of(
    family: Family, rule: dict[str, Any], heard: list[Heard], nested: list[str]
) -> list[dict[str, Any]]:
    """Return the rotations: as first heard, each with the first width that fits all changes."""
    asked = []
    for change in SHAPES:
        left = [name for name in change if family.small.get(name) == "leave out"]
        known = (name in FREE or value_of(family.default, name) is not None for name in change)
        if left or not all(known):
            continue  # of a name that its class does not have
        for more in ({}, *_sectioned(family, (4, 6, 8, 9, 10, 12, 16))):
            with suppress(RefusedError):
                asked.append(({**change, **more}, family.hear(**change, **more)))
                break
    told = {"rope_type": "default", "rope_theta": 5000.0}
    fraction, fails = "partial_rotary_factor", []
    for more in ({}, {fraction: 0.5}, {fraction: 1.0}) if rule["rope"]["dict"] else ():
        inner = {kind: {**told, **more} for kind in nested} if nested else told | more
        try:
            asked.append(({"rope_parameters": inner}, family.hear(rope_parameters=inner)))
        except RefusedError:
            fails.append(more)
    unset = None
    if any(one.report and one.report.axes == 3 for one in heard):
        unset, change = _unset_sections(family)
        if unset:
            asked.append((change, family.hear(**change)))
    found = []
    for one in _kinds(family, heard, nested):
        own = [(raw_of(family, **change), _same(answer, one)) for change, answer in asked]
        own = [(raw, answer) for raw, answer in own if answer]
        report = one.report
        assert report is not None
        partial = next(
            (a[0].report for _, a in own if a[0].report.place not in ("all", "elsewhere")), report
        )
        base = {
            "kind": one.kind,
            "layout": report.layout,
            "direction": report.direction,
            "place": "first" if partial.place in ("all", "elsewhere") else partial.place,
        }
        base |= _flag(family, one, report)
        if one.kind == "indexer" and nested:
            raise RefusedError("an indexer stands in layers of some types")
        label = one.kind if nested else None
        for candidate in _candidates(family, report, label, unset):
            made = {**base, **candidate}
            trial = {**rule, "rotations": [made], "read": [], "rescalings": TYPES}
            faults = (disagreement(trial, raw, answer) for raw, answer in own)
            fault = next(filter(None, faults), None)
            if fault is None:
                if made["axes"] and not unset:  # they have to be told
                    made["axes"].pop("sections", None)
                if (made["axes"] or {}).get("mode") == "interleaved" and _adds_up(family):
                    made["axes"]["sums"] = True
                if not made["partial"] and fails == [
                    {fraction: 0.5}
                ]:  # its attention rotates whole heads
                    made["partial"] = dict(WHOLE)
                if nested and _by_layer(family, one):
                    made["by_layer"] = True
                if one.kind == "indexer" and _shared(family):
                    made["shared"] = SHARED
                found.append(made)
                break
        else:
            raise RefusedError(f"no expression of its width fits ({fault})")
    return found


def _by_layer(family: Family, one: Heard) -> bool:
    """Return whether fields of single layers take the place of the width that its class has."""
    assert one.report is not None
    with suppress(RefusedError):
        (other, *_) = _same(family.hear(**{LAYERWISE: {}}), one)
        return other.report is not None and other.report.head_dim != one.report.head_dim
    return False


SHARED = "indexer_types"
"""A field that says which layers share the indexer of another one."""


def _shared(family: Family) -> bool:
    """Return whether a class has no indexer in layers that share another's."""
    kinds = ["full", *["shared"] * (family.small.get("num_hidden_layers", 2) - 1)]
    with suppress(RefusedError):
        heard = family.hear(**{SHARED: kinds})
        return any(one.kind == "indexer" and one.layers == (0,) for one in heard)
    return False


UNSET = {k: "leave out" for k in (*SIZES, "rope_parameters") if k != "num_hidden_layers"}
"""The sizes of its class."""


def _unset_sections(family: Family) -> tuple[list[int] | None, dict[str, Any]]:
    """Return the pairs of each axis where a class is not told, and how it was asked.

    They are None where it must be told.
    """
    part = family.resolved().get("partial_rotary_factor", 1.0)
    plain = {"rope_type": "default", "rope_theta": 1e4}
    wide = [
        {"hidden_size": 4 * n, "num_attention_heads": 4, "head_dim": n, "rope_parameters": plain}
        for n in (int(64 / part), 64, 128)
    ]
    for change in (UNSET, *wide):
        with suppress(RefusedError):
            report = next(one.report for one in family.hear(**change) if one.report)
            if report.axes == 3:
                which = (report.inv_freq != 0).argmax(axis=1)
                return np.bincount(which, minlength=3).tolist(), change
    return None, {}


def _adds_up(family: Family) -> bool:
    """Return whether a class fails with sections that are fewer than the pairs of a head."""
    rope = family.resolved(**{k: v for k, v in family.small.items() if k == "rope_parameters"})
    if not (own := rope.get("mrope_section")):
        return False
    less = {**rope, "mrope_section": [own[0] - 1, *own[1:]]}
    return _fine(family, rope) and not _fine(family, less)


def _flag(family: Family, one: Heard, report: Report) -> dict[str, Any]:
    """Return the field that chooses the layout, if there is one."""
    for name in (
        "rope_interleave",
        "rope_interleaved",
        "index_rope_interleave",
        "indexer_rope_interleave",
    ):
        value = value_of(family.default, name)
        if isinstance(value, bool):
            with suppress(RefusedError):
                other = _same(family.hear(**{name: not value}), one)[0].report
                if other and other.layout != report.layout:
                    layouts = {
                        str(value).lower(): report.layout,
                        str(not value).lower(): other.layout,
                    }
                    return {"flag": {"field": name, **layouts}}
    return {}


TYPES = {**{kind: kind for kind in PARAMETERS}, "axial": "default"}
"""What types are, to try rules with."""


def _kinds(family: Family, heard: list[Heard], nested: list[str]) -> list[Heard]:
    """Return one of what was heard for each kind of rotation."""
    types = value_of(family.loaded(family.raw()), "layer_types") or []
    found: dict[Any, Heard] = {}
    for one in (one for one in heard if one.report):
        own = {types[n] for n in one.layers or () if n < len(types)} or {one.kind}
        kinds = sorted(own & {*nested}) if nested else [None]
        if family.labels or (not nested and one.layers is None):
            kinds = [one.kind]
        for kind in [one.kind] if one.kind == "indexer" else kinds:
            found.setdefault(kind, Heard(kind, one.layers, one.report))
    return list(found.values())


def _same(heard: list[Heard], like: Heard) -> list[Heard]:
    """Return what was heard of the same kind, its layers left out."""
    return [
        Heard(like.kind, None, one.report)
        for one in heard
        if one.report
        and (one.kind == "indexer") == (like.kind == "indexer")
        and (like.kind is None or one.kind in (like.kind, None))
    ]


def _candidates(
    family: Family, report: Report, kind: str | None, unset: list[int] | None
) -> Iterator[dict[str, Any]]:
    """Yield widths of a head and of what rotates, with axes, the simplest first."""
    named = [[w for w in e if _known(family, w)] for e in HEADS]
    heads = [one for n, one in enumerate(named) if one and one not in named[:n]]
    wholes = [None, *_fractions(family, report, kind)]
    powers = (0.0,) if abs(factor_of(report) - 1.0) < 1e-5 else (0.0, -0.25)
    scales = [one for one in SCALES if report.axes == 2 and one and _known(family, str(one))]
    for scale, partial, axes, power, head, dim in product(
        (None, *scales), wholes, _axes(report, unset), powers, heads, heads
    ):
        found = {"head_dim": head, "dim": dim, "partial": partial, "axes": axes, "power": power}
        yield found | ({"scale": scale} if scale else {})


def _known(family: Family, words: str) -> bool:
    """Return whether a class has all fields of an expression."""
    names = set(re.findall(r"[a-z_]{5,}", words)) - {"times"}
    return all(value_of(family.default, name) is not None or name in LOOSE for name in names)


SIZED = ("qk_rope_head_dim", "rotary_dim", "partial_rotary_factor", "rotary_pct", "head_dim")
"""Fields that a fraction may follow from."""

SCALES = (
    {"times": 4.0 * np.pi, "by": ["1"], "over": ["image_size // patch_size"]},
    {"times": 1.0, "by": ["window_size"], "over": ["image_size // patch_size"]},
)
"""How far a coordinate goes from patch to patch: 1, 4 pi or a window's size over an image's."""


def _fractions(family: Family, report: Report, kind: str | None) -> list[dict[str, Any]]:
    """Return rules for the part of a head that rotates, by asking for ``rope_parameters``."""

    def told(**more: Any) -> Any:
        try:
            found = family.resolved(**more)
        except RefusedError:
            return None
        found = found.get(kind, found) if kind else found
        return (found or {}).get("partial_rotary_factor")

    before, names = told(), []
    if told(qk_rope_head_dim=20) != before:
        whole = "qk_nope_head_dim + qk_rope_head_dim"
        if told(qk_rope_head_dim=20, head_dim=25) == 20 / 25:
            whole = "head_dim"
        names.append(f"qk_rope_head_dim / {whole}")
    for name, value in (
        ("partial_rotary_factor", 0.625),
        ("rotary_pct", 0.625),
        ("rotary_dim", 10),
    ):
        after = told(**{name: value})
        if after is not None and after != before:
            names.append(name if after == value else f"{name} / head_dim")
    types = value_of(family.loaded(family.raw()), "layer_types") or []
    if kind and told(partial_rotary_factors=[0.625] * len(types)) == 0.625:
        names.append("partial_rotary_factors")
    default = 1.0 if before is None else before
    seen = round(report.width / report.head_dim, 4)
    orders = [names, names[::-1]] if len(names) > 1 else [names]
    unset = told(**dict.fromkeys(SIZED, "leave out")) or 1.0
    defaults = dict.fromkeys((unset, default, seen, 1.0, 0.334))
    return [{"fields": own, "default": d} for own in orders for d in defaults]


def _axes(report: Report, unset: list[int] | None) -> list[Any]:
    """Return arrangements of axes to try; ``unset`` are the pairs of each where it is not told."""
    if report.axes == 1:
        return [None]
    counts = np.bincount((report.inv_freq != 0).argmax(axis=1), minlength=report.axes).tolist()
    lists = [own for one in (unset, counts) if one for own in (one, [*one[1:], one[0]])]
    towers = ("blocks", "reversed blocks", "alternating", "reversed alternating", "every other")
    text = product(SECTIONED, lists) if report.axes == 3 else ()
    return [
        *({"mode": mode, "count": report.axes} for mode in towers),
        *({"mode": mode, "count": report.axes, "sections": own} for mode, own in text),
    ]


def rescalings_of(family: Family, rule: dict[str, Any], nested: list[str]) -> dict[str, str]:
    """Return what each ``rope_type`` is to a class: a published rescaling, default, or refused."""
    found = {"default": "default"}
    if not rule["rope"]["dict"]:
        return found

    def wanted(plain: dict[str, Any], **sizes: Any) -> None:
        """Note the keys without which a class fails, where it runs with all."""
        for key in (
            sorted({*plain} - {"rope_type", "factor"}) if _fine(family, plain, **sizes) else ()
        ):
            left = {k: v for k, v in plain.items() if k != key}
            if not _fine(family, left, **sizes):
                scaled = {**left, "rope_type": "linear", "factor": 3.0}
                runs = family.works(**sizes | {"rope_parameters": scaled, "rope_theta": 5000.0})
                name = "wants_plain" if runs else "wants"
                rule["rope"].setdefault(name, []).append(key)

    own = [entry["absent"] for entry in rule["rope"]["kinds"].values()]
    extras = {
        k: v for one in own for k, v in (one or {}).items() if k in rule["rope"].get("keeps", ())
    }
    if extras:  # keys that a class may fail without
        family.small["rope_parameters"] = {"original_max_position_embeddings": 160, **extras}
        for key in [*family.small["rope_parameters"]]:
            rope = {k: v for k, v in family.small["rope_parameters"].items() if k != key}
            try:
                family.hear(rope_parameters=rope | {"rope_type": "default", "rope_theta": 5000.0})
            except RefusedError:
                rule["rope"].setdefault("wants", []).append(key)
    if not nested and not extras:
        plain, sizes = family.resolved() | (family.small.get("rope_parameters") or {}), {}
        if (rule["rotations"][0]["axes"] or {}).get("sections"):  # that fit with these sizes
            unset, sizes = _unset_sections(family)
            plain = family.resolved() | {"mrope_section": unset}
        plain = {**plain, "rope_type": "default", "rope_theta": 5000.0}
        wanted(plain, **sizes)
    for name, told in STYLES.items():
        rope = {"rope_type": name, "rope_theta": 5000.0, **told}
        found[name] = _answer(family, rule, rope, nested)
        if found[name] == "refused" and name in SCALED and rule["part"] == "text":
            found[name] = _answer(family, rule, rope | FURTHER, nested)
    told = {"rope_type": "linear", "rope_theta": 5000.0, **STYLES["linear"], **FURTHER}
    if found["default"] == "refused" and found["linear"] == "linear" and not nested:
        wanted(told, head_dim="leave out")
    elif found["linear"] == "unknown" and _fine(family, told):
        keys = sorted({*FURTHER} - OWN)
        rule["rope"]["scaled"] = [k for k in keys if not _fine(family, {**told, k: None})]
    found |= {
        one["rope_type"]: one["rope_type"]
        for one in own
        if one and "rope_type" in one and one["rope_type"] in PARAMETERS
    }
    return found


def _fine(family: Family, parameters: dict[str, Any], **sizes: Any) -> bool:
    """Return whether a class runs with these parameters, its base being given outside, too."""
    with suppress(RefusedError):
        return bool(family.hear(**sizes | {"rope_parameters": parameters, "rope_theta": 5000.0}))
    return False


def outside(family: Family, rule: dict[str, Any]) -> bool:
    """Return whether ``original_max_position_embeddings`` outside overrules that of the dict."""
    if rule["rope"]["nested"] or rule["rescalings"].get("yarn") != "yarn":
        return True
    rope = family.small.get("rope_parameters", {}) | STYLES["yarn"]
    more = {"rope_parameters": rope | {"rope_type": "yarn", "rope_theta": 5000.0}}
    more |= {"original_max_position_embeddings": 1280}
    try:
        heard = family.hear(**more)
    except RefusedError:
        return True
    trial = {**rule, "read": [], "rope": {**rule["rope"], "outside": True}}
    return disagreement(trial, raw_of(family, **more), heard) is None


def stretches(family: Family, rule: dict[str, Any]) -> bool:
    """Return whether ``alpha`` makes a dynamic rescaling a fixed one, of a larger base."""
    if rule["rope"]["nested"] or rule["rescalings"].get("dynamic") != "dynamic":
        return False
    rope = family.small.get("rope_parameters", {}) | STYLES["dynamic"]
    rope |= {"rope_type": "dynamic", "rope_theta": 5000.0, "alpha": 50.0}
    try:
        heard = family.hear(rope_parameters=rope)
    except RefusedError:
        return False
    trial = {**rule, "read": [], "rope": {**rule["rope"], "alpha": True}}
    return disagreement(trial, raw_of(family, rope_parameters=rope), heard) is None


FURTHER = {
    "short_mscale": 1.25, "long_mscale": 1.5, "llama_4_scaling_beta": 0.1,
    "original_max_position_embeddings": FAR,
}  # fmt: skip
"""Further keys that classes want with a rescaling, also where it has no such key elsewhere."""


def _answer(family: Family, rule: dict[str, Any], rope: dict[str, Any], nested: list[str]) -> str:
    """Return as which type a class computes these parameters."""
    name, lists = rope["rope_type"], [({}, 0)]
    further = rope.keys() >= FURTHER.keys()  # lists for all types, and widths by other fields
    if name in ("longrope", "su") or further:
        own = {family.made.model_type: {**rule, "read": [], "rescalings": TYPES}}
        plain = evaluate(raw_of(family), own).parts
        if not plain:
            raise RefusedError("its layers' kinds are not those of its rope_parameters")
        lists = [({}, plain[-1].width // 2)]
        with suppress(ValueError, RefusedError):  # some classes look at another width first
            other = evaluate(raw_of(family, head_dim="leave out"), own).parts[-1].width // 2
            if other != lists[0][1] or further:
                lists = [({"head_dim": "leave out"}, other), *lists]
    for sizes, pairs in lists:
        if pairs:
            longer = {"short_factor": [1.0 + i / 9 for i in range(pairs)]}
            rope = {**rope, **longer, "long_factor": [2.0] * pairs}
        with suppress(RefusedError):
            return _heard_as(family, rule, rope, nested, sizes)
    return "refused"


def _heard_as(
    family: Family, rule: dict[str, Any], rope: dict[str, Any], nested: list[str], sizes: Any
) -> str:
    """Return as which type a class of these sizes computes these parameters."""
    name, more = rope["rope_type"], dict(sizes)
    rope = (family.small.get("rope_parameters") or {}) | rope if not nested else rope
    if family.labels:
        part = family.resolved()[nested[0]].get("partial_rotary_factor")
        rope["partial_rotary_factor"] = part
    more["rope_parameters"] = {k: dict(rope) for k in nested} if nested else rope
    if (name in ("dynamic", "longrope", "su") or rope.keys() >= FURTHER.keys()) and rule["lengths"]:
        more["max_position_embeddings"] = FAR
        more |= {
            k: FAR
            for k in ("original_max_position_embeddings",)
            if value_of(family.default, k) is not None
        }
    heard = family.hear(**more)
    raw = raw_of(family, **more)
    for kind in (name, "default", "longrope", *PARAMETERS):
        if kind in PARAMETERS:
            trial = {**rule, "rescalings": {name: kind}, "read": []}
            if disagreement(trial, raw, heard) is None:
                return kind
    return "unknown"


COUNTED = (
    "hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers", "head_dim",
    "max_position_embeddings", "original_max_position_embeddings",
)  # fmt: skip
"""Fields of sizes that a class may check."""


def checks_of(family: Family, rule: dict[str, Any]) -> dict[str, Any]:
    """Return what a class checks: its sizes, and what it fails without."""
    takes = family.takes
    sizes = {k: takes(**{k: None}) for k in COUNTED if not takes(**{k: "16"})}
    found: dict[str, Any] = {"sizes": sizes}
    both = {"hidden_size": 130, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
    if not takes(**both) and takes(**both | {"hidden_size": 128}):
        found["divides"] = True
    kinds = [k for k, v in rule["rescalings"].items() if k == v]
    null = sizes.get("head_dim", True) and any(
        "head_dim" in words.split() for one in rule["rotations"] for words in one["dim"]
    )
    needs = kinds  # where a class without a rescaling fails, too
    fits = ({}, *_sectioned(family, (4, 6, 8, 12, 16)))  # of heads of 16 and, with null, of 32
    runs = null and any(family.runs(head_dim=16, **more) for more in fits)
    if not runs or any(family.runs(head_dim=None, **more) for more in fits):
        kinds = [k for k in kinds if k != "default" and sizes.get("head_dim", True)]
        needs = [k for k in kinds if _needs_width(family, rule, k)]
    needs += ["ntk"] if rule["rope"].get("alpha") and "dynamic" in needs else []
    if needs:
        found["needs"] = needs
    kinds = value_of(family.default, "layer_types") or ["full_attention"]
    own = value_of(family.loaded(family.raw()), "layer_types") or []
    same = [kinds[0]] * family.small.get("num_hidden_layers", 2)
    width = value_of(family.loaded(family.raw()), "head_dim")
    told = {"head_dim": [16, width], "layer_types": [same, own]}
    refuses = [k for k, values in told.items() if not any(takes(**{k: v}) for v in values)]
    inner = [k for k in SMALL.get(family.made.__name__, ()) if "." in k and TURNS.search(k)]
    if must := [name for name in inner if not family.runs(**{name: "leave out"})]:
        found["must"] = must
    if refuses and takes():
        found["refuses"] = {k: [None] if takes(**{k: None}) else [] for k in refuses}
    elif due := _foreign(family, rule):
        found["foreign"] = due
    return found


def _foreign(family: Family, rule: dict[str, Any]) -> list[str] | None:
    """Return the expressions other than whose value ``head_dim`` makes a class fail."""
    one = rule["rotations"][0]
    if not any("head_dim" in words.split() for own in rule["rotations"] for words in own["dim"]):
        try:
            family.hear(head_dim=40)
        except RefusedError:
            return one["dim"]
        return None
    plain = rule["part"] != "text" or not (one["axes"] or one["partial"])
    if plain and [family.runs(head_dim=n) for n in ("leave out", 24, 40)] == [True, False, False]:
        return one["dim"][1:] or None
    if rule["part"] == "vision" or (rule["part"] == "text" and not one["axes"]):
        sizes = {"hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 4}
        rope = family.loaded(family.raw()).to_dict().get("qk_rope_head_dim")
        runs = [n for n in {16, 32, 64, rope} - {None} if family.works(**sizes, head_dim=n)]
        if runs in ([32], [rope]):
            family.small["head_dim"] = runs[0]
            if value_of(family.default, "head_dim") is None:
                del family.small["head_dim"]
            return ["hidden_size // num_attention_heads" if runs == [32] else "qk_rope_head_dim"]
    return None


def _needs_width(family: Family, rule: dict[str, Any], kind: str) -> bool:
    """Return whether a rescaling fails where ``head_dim`` is null, and not with 16 or without."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    nested = [name for name in rule["rope"]["kinds"] if name]
    layer = {"layer_type": nested[0]} if nested else {}
    lengths = ("max_position_embeddings", "original_max_position_embeddings")
    more = {k: FAR for k in lengths if value_of(family.default, k) is not None}

    def runs(width: int | str | None, pairs: int) -> bool:
        lists = {"short_factor": [1.0] * pairs, "long_factor": [2.0] * pairs}
        told = {"rope_type": kind, "rope_theta": 5000.0, **STYLES[kind], **lists}
        own = {name: dict(told) for name in nested} or told
        try:
            config = family.loaded(family.raw(**more, head_dim=width, rope_parameters=own))
            ROPE_INIT_FUNCTIONS[kind](config, None, **layer)
        except Exception:  # whatever it raises
            return False
        return True

    pairs = range(1, 33) if kind == "longrope" else (1,)
    works = any(runs(width, n) for width in (16, "leave out") for n in pairs)
    return works and not any(runs(None, n) for n in pairs)


def trimmed(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule with the fields that it reads, and their defaults."""
    words: set[str] = set()
    for one in rule["rotations"]:
        lists = [*one["head_dim"], *one["dim"], *(one["partial"] or {}).get("fields", ())]
        words |= set(re.findall(r"[a-z_][a-z_0-9]*", " ".join(lists)))
        words |= {one["flag"]["field"]} if "flag" in one else set()
        words |= {one.get("shared", "")}
    for entry in rule["rope"]["kinds"].values():
        words |= set(entry["theta"])
    layers = rule["layers"]
    words |= {*re.findall("[a-z_]{3,}", " ".join(layers["count"]))}
    words |= {layers.get("unless", ""), layers.get("except", ""), *rule["on"]}
    for name in ("types", "switch", "numbers"):
        if name in layers:
            words |= {layers[name]["field"], str(layers[name].get("every") or "")}
            words |= {layers[name].get("windows", {}).get("field", "")}
    for name in ("by", "over"):
        words |= {
            word
            for one in rule["rotations"]
            for word in re.findall("[a-z_]+", str(one.get("scale", {}).get(name, "")))
        }
    words |= {"max_position_embeddings"} if rule["lengths"] else set()
    words |= {"original_max_position_embeddings"} if len(rule["rescalings"]) > 1 else set()
    words |= {"rope_scaling", "rope_parameters"} if rule["rope"]["dict"] else set()
    places = {rule["aliases"].get(word, word) for word in words}
    places |= {"use_sliding_window"}  # whether a window counts, for the card's line on it
    return {
        **rule,
        "aliases": {k: v for k, v in rule["aliases"].items() if v in places},
        "defaults": {k: v for k, v in rule["defaults"].items() if k in places},
        "read": sorted(words - {""} - {w for w in words if w.isdigit()}),
    }
