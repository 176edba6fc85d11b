"""Find, by asking, how the rotation of each family follows from its configuration.

For each class of configurations that rotates, small ones are loaded as a published ``config.json``
is, and the family's own code is heard with them (`recording`, `ropescope.identify`). A rule is
chosen part by part from a small grammar: the candidate with which `ropescope.configuration`
predicts what was heard. Then configurations drawn at random test it. `write` keeps the rules, the
table of agreement with them.

A rule
------
``family``, ``part``
    Its folder in transformers; ``text``, ``vision``, ``audio`` or ``other``.
``null``
    Instead of all below: why there is no rule.
``parts``, ``flat``
    Fields that hold configurations of their own: ``{"type": model_type, "any": bool}``, where
    ``any`` says that their own ``model_type`` counts; those whose fields may stand outside.
``aliases``, ``defaults``
    Other spellings of fields; values of the class where a field is not given.
``rope``
    ``dict``: whether ``rope_parameters`` and ``rope_scaling`` are read; ``nested``: an entry for
    each kind of layer; ``fills``: a missing entry is filled. ``kinds``, by kind (``""`` if one):
    ``outside``: ``original_max_position_embeddings`` outside overrules that of the dict.
    ``theta``, fields of the base outside; ``default``, the base without any; ``scaling``, whether
    a legacy ``rope_scaling`` counts; ``absent``, what stands for ``rope_parameters`` if none.
``rescalings``
    By ``rope_type``: the published rescaling that it is, ``default`` if it has no effect, or
    ``refused``.
``rotations``
    Each ``kind``, ``layout``, ``direction``, ``place`` (of a part of a head), ``head_dim`` and
    ``dim`` (expressions; the first whose fields are known counts), ``partial`` (``fields`` and
    ``default`` of the fraction of ``dim``, or null), ``axes`` and ``power`` (the factor has
    ``head_dim`` to this power).
``layers``
    ``count``; ``types`` or ``switch``, fields with an entry for each layer, and the pattern if none
    is given: ``then`` where ``(layer + offset) % every`` is 0, else ``else``; ``first``, ``last``.
    ``rotation`` by type; types that ``rest`` (``unless`` a field is null) or are ``absent``;
    ``except``, a field with numbers of layers that attend to something else.
``on``, ``alone``
    Fields that have to have one of these values, else nothing rotates; whether attention modules
    were heard alone, so that their layers are not known.
``lengths``, ``read``
    Whether ``max_position_embeddings`` is known; fields of the rule.
``agreement``
    ``[agreeing, drawn]``; and ``why`` the first that did not agree.
"""

import copy
import json
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from importlib.metadata import version
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ropescope
from ropescope import Report
from ropescope.configuration import PARAMETERS, RotatedPart, evaluate

from . import load
from .families import configurations, families, report_on
from .recording import AttentionRecord, parts_of, record_all, summary
from .rows import part_of
from .special import CHOSEN, TABLES, of_table

RULES = Path(ropescope.__file__).parent / "rules.json"
DRAWN = 20
EXACT = 1e-6
"""Largest relative error of a frequency; float32 has 1e-7 of its own, of what a ramp divides."""

HEADS = (
    ["head_dim", "hidden_size // num_attention_heads"],
    ["hidden_size // num_attention_heads"],
    ["head_dim"],
    ["qk_nope_head_dim + qk_rope_head_dim"],
    ["qk_rope_head_dim"],
    ["index_head_dim"],
    ["2 * hidden_size // num_attention_heads"],
    ["attention_head_dim"],
    ["global_head_dim", "512"],
    ["rotary_dim"],
    ["embed_dim // num_attention_heads"],
    ["d_kv"],
    ["32"],
)  # fmt: skip
"""Expressions of a width."""

LOOSE = ("head_dim", "global_head_dim", "num_key_value_heads")
"""Fields that a class may read without having them."""

BASES = (
    "rope_theta", "rotary_emb_base", "rope_local_base_freq", "global_rope_theta",
    "local_rope_theta", "swa_rope_theta", "compress_rope_theta", "memory_attention_rope_theta",
    "rope_base", "rotary_base",
)  # fmt: skip
EVERY = (
    "sliding_window_pattern", "global_attn_every_n_layers", "full_attention_interval",
    "no_rope_layer_interval", "layer_group_size", "attn_layer_period",
)  # fmt: skip
SIZES = {
    "hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "num_hidden_layers": 6, "intermediate_size": 32,
    "max_position_embeddings": 640,
    "embed_dim": 128, "qk_rope_head_dim": 12, "qk_nope_head_dim": 20, "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "v_head_dim": 16, "index_head_dim": 28, "rotary_dim": 12, "n_routed_experts": 4,
    "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8,
    "n_group": 1, "topk_group": 1, "kv_channels": 16, "global_head_dim": 24,
}  # fmt: skip
"""Small sizes; those that a class refuses are left out."""

SWITCHES: dict[str, list[Any]] = {
    "position_embedding_type": ["rope", "rotary"],
    "position_embeddings_type": ["rotary"],
    "alibi": [False],
    "use_mem_rope": [True],
}
"""Fields that turn rotation on, and with which values."""

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


@dataclass(frozen=True)
class Heard:
    """One attention of a model as its code computes it: layers None where no model ran."""

    kind: str | None
    layers: tuple[int, ...] | None
    report: Report | None


def value_of(config: Any, name: str) -> Any:
    """Return a field of a configuration; None where it has none, or one for each layer."""
    try:
        return getattr(config, name, None)
    except Exception:  # a field that differs from layer to layer
        return None


class RefusedError(Exception):
    """A class refuses a configuration."""


class Family:
    """A class of configurations, to be asked.

    Attributes
    ----------
    made
        The class.
    name
        Its folder.
    small
        Fields of a small configuration.
    alone
        Whether attention modules are heard alone where no model of the class runs.
    """

    def __init__(self, made: Any, name: str) -> None:
        self.made, self.name, self.alone = made, name, False
        self.small: dict[str, Any] = {}
        chosen = dict(CHOSEN.get(made.__name__, {}))
        inside = {
            k: chosen.pop(k) for k in ("partial_rotary_factor", "mrope_section") if k in chosen
        }
        if inside:
            chosen["rope_parameters"] = {"rope_type": "default", "rope_theta": 10000.0, **inside}
        self.default = self.loaded(chosen)
        self.small = {**chosen}
        for key, values in SWITCHES.items():
            if value_of(self.default, key) not in (None, *values):
                self.small[key] = values[0]
        for key, value in (*SIZES.items(), *SIZES.items()):  # one may wait for another
            if value_of(self.default, key) is not None or key in LOOSE:
                with suppress(Exception):
                    self.loaded({**self.small, key: value})
                    self.small[key] = value

    def loaded(self, raw: dict[str, Any]) -> Any:
        """Return the configuration as loaded from a file; raise where its class refuses it."""
        try:
            return self.made.from_dict(copy.deepcopy(raw))
        except Exception as error:  # whatever it raises
            raise RefusedError(summary(error)) from error

    def hear(self, **more: Any) -> list[Heard]:
        """Return what the family's code does with a small configuration, changed so."""
        raw = {k: v for k, v in {**self.small, **more}.items() if v != "leave out"}
        config = self.loaded(raw)
        try:
            if self.name in TABLES:
                records, refusals = of_table(self.name, config), []
            else:
                records, refusals = record_all([config], self.name)
        except Exception as error:  # whatever it raises
            raise RefusedError(summary(error)) from error
        fine = any(one.rotated and (one.modules or self.alone) for one in records)
        if refusals and not fine:
            raise RefusedError(refusals[0])
        if not records:
            raise RefusedError("nothing was reached")
        records = [one for one in records if not re.search("cross|encoder_attn", str(one.modules))]
        return [Heard(*_place(one), report_on(one) if one.rotated else None) for one in records]

    def resolved(self, **more: Any) -> dict[str, Any]:
        """Return ``rope_parameters`` as its class completes them, none given but in ``more``."""
        plain = {k: v for k, v in self.small.items() if k != "rope_parameters"}
        return getattr(self.loaded({**plain, **more}), "rope_parameters", None) or {}


def _place(one: AttentionRecord) -> tuple[str | None, tuple[int, ...] | None]:
    """Return the kind of a record and its layers."""
    numbers = [re.search(r"\d+", name) for name in one.modules]
    known = None if not one.modules else tuple(sorted({int(n[0]) for n in numbers if n}))
    inner = "indexer" if one.modules and "ndexer" in one.modules[0] else None
    return inner or one.kind, known


def raw_of(family: Family, **more: Any) -> dict[str, Any]:
    """Return the small configuration, changed so, as a file has it."""
    changed = {k: v for k, v in {**family.small, **more}.items() if v != "leave out"}
    return {"model_type": family.made.model_type, **changed}


# ---- does a rule predict what was heard? ---------------------------------------------------------


def disagreement(rule: dict[str, Any], raw: dict[str, Any], heard: list[Heard]) -> str | None:
    """Return how a rule's prediction differs from what was heard; None where it does not."""
    try:
        told = evaluate(raw, {raw["model_type"]: rule}).parts
    except (ValueError, KeyError, TypeError) as error:
        return summary(error)
    if not told and all(one.layers is None for one in heard):
        return None  # none of the layers attends: modules were heard alone
    matched: set[int] = set()
    for one in heard:
        if one.report is None:
            known = {n for part in told for n in _numbers(part.without)}
            rests = set(one.layers or ()) - known
            if rests and one.kind != "indexer" and told:
                return f"layers {sorted(rests)} rest"
            continue
        for layer in one.layers or (None,):
            own = [part for part in told if _covers(part, one, layer)]
            found = [fault_of(part, one.report) for part in own]
            if not own or all(found):
                return next(filter(None, found), f"no part for layer {layer}")
            matched |= {id(part) for part, fault in zip(own, found, strict=True) if not fault}
    missing = [part for part in told if id(part) not in matched]
    return f"{missing[0].kind or 'a part'} was not heard" if missing else None


def _numbers(runs: list[list[int]]) -> set[int]:
    return {n for a, b, step in runs for n in range(a, b + 1, step)}


def _covers(part: RotatedPart, one: Heard, layer: int | None) -> bool:
    """Return whether a part is about a layer of what was heard; None where no model ran."""
    if (part.kind == "indexer") != (one.kind == "indexer"):
        return False
    return layer in _numbers(part.layers) if layer is not None else one.kind in (None, part.kind)


def fault_of(part: RotatedPart, report: Report) -> str | None:
    """Return what differs between a part and a report, or None."""
    for name in ("head_dim", "width", "layout", "place", "direction"):
        if getattr(part, name) != getattr(report, name):
            return f"{name} {getattr(part, name)!r}, heard {getattr(report, name)!r}"
    waves, told = report.inv_freq, np.array(part.inv_freq)
    ramp = (part.rescaling or ["", {}])[1].get("factor", 1.0)
    exact = max(EXACT, 1e-7 * ramp)
    if waves.shape != told.shape or not np.allclose(told, waves, rtol=exact, atol=1e-12):
        apart = "shapes" if waves.shape != told.shape else f"{np.abs(told / waves - 1).max():.1e}"
        return f"frequencies differ: {apart}"
    if abs(part.attention_factor / (report.attention_factor or 1.0) - 1.0) > 1e-5:
        return f"factor {part.attention_factor:.6g}, heard {report.attention_factor:.6g}"
    return None


# ---- a rule, part by part ------------------------------------------------------------------------


def rule_of(family: Family) -> dict[str, Any]:
    """Return the rule of a class that rotates; raise RefusedError where none is found."""
    names = {f.name: f.default for f in fields(family.made)}
    aliases = dict(family.made.attribute_map)
    known = {k: v for k, v in names.items() if v is not MISSING and isinstance(v, int | str | None)}
    cross = value_of(family.default, "cross_attention_layers")
    known |= {"cross_attention_layers": cross} if isinstance(cross, list) else {}
    heard = _first(family)
    rule: dict[str, Any] = {
        "family": family.name,
        "part": part_of(family.made.__name__),
        "aliases": {k: v for k, v in aliases.items() if v in names},
        "defaults": known,
        "lengths": "max_position_embeddings" in names or "max_position_embeddings" in aliases,
        "rescalings": {"default": "default"},
        "alone": not any(one.layers for one in heard),
    }
    rule["on"] = {name: on for name, on in SWITCHES.items() if hasattr(family.default, name)}
    nested = _nested(family)
    rule["layers"] = layers_of(family, heard, nested)
    if list(rule["layers"]) == ["count"]:  # all alike
        with suppress(RefusedError):
            family.loaded({**family.small, "num_hidden_layers": 2})
            family.small["num_hidden_layers"] = 2
    rule["rope"] = rope_rule(family, nested, heard)
    rule["rotations"] = rotations_of(family, rule, heard, nested)
    rule["rescalings"] = rescalings_of(family, rule, nested)
    rule["rope"]["outside"] = outside(family, rule)
    return trimmed(rule)


def _first(family: Family) -> list[Heard]:
    """Return what is heard of a small configuration, made so that its head has one width."""
    why = "nothing rotates"
    small = dict(family.small)
    sizes = {"head_dim", "hidden_size", "num_attention_heads", "num_key_value_heads"}
    lefts = (set(), {"head_dim"}, {"head_dim", "num_key_value_heads"}, sizes, set(small))
    for family.alone, left in product((False, True), lefts):
        family.small = {k: v for k, v in small.items() if k not in left or k not in SIZES}
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


def _nested(family: Family) -> list[str]:
    """Return the kinds of layer for which ``rope_parameters`` has an entry each."""
    found = family.resolved()
    return [k for k, v in found.items() if isinstance(v, dict)]


def layers_of(family: Family, heard: list[Heard], nested: list[str]) -> dict[str, Any]:
    """Return the rule for layers, from a model in which each type of layer stands."""
    config = family.loaded(family.small)
    if not any(one.layers for one in heard):
        rule = {"count": ["num_hidden_layers"]}
        if nested and value_of(config, "layer_types"):
            rule["types"] = {"field": "layer_types", **pattern_of(family, "layer_types")}
            rule["rotation"] = {kind: kind for kind in nested}
            rule["absent"] = sorted(set(config.layer_types) - set(nested))
        return rule
    count = config.num_hidden_layers
    turning = {n for one in heard if one.report and one.layers for n in one.layers}
    resting = {n for one in heard if not one.report and one.layers for n in one.layers} - turning
    rule: dict[str, Any] = {"count": ["num_hidden_layers"]}
    if value_of(config, "num_layers") == len(turning | resting) != count:
        rule["count"], count = ["num_layers"], config.num_layers
    types = getattr(config, "layer_types", None)
    cross = value_of(config, "cross_attention_layers")
    if cross and turning == set(range(count)) - set(cross):
        return {**rule, "except": "cross_attention_layers"}
    if not nested and turning == set(range(count)):
        return rule
    switch = getattr(config, "no_rope_layers", None)
    if switch and {n for n, on in enumerate(switch) if on} == turning:
        rule["switch"] = {"field": "no_rope_layers", **pattern_of(family, "no_rope_layers")}
        return rule
    if not types:
        raise RefusedError(f"layers {sorted(turning)} of {count} rotate by another rule")
    by_type = {t: {n for n in range(count) if types[n] == t} for t in set(types)}
    rule["types"] = {"field": "layer_types", **pattern_of(family, "layer_types")}
    if rule["types"]["every"] is None:
        family.small["layer_types"] = list(types)
    rule["rotation"] = {t: t if nested else None for t, own in by_type.items() if own <= turning}
    rule["rest"] = sorted(t for t, own in by_type.items() if own <= resting)
    rule["absent"] = sorted(t for t, own in by_type.items() if not own & (turning | resting))
    if set(rule["rotation"]) | set(rule["rest"]) | set(rule["absent"]) != set(by_type):
        raise RefusedError("layers rotate by another rule than their type")
    if rule["rest"] and getattr(config, "sliding_window", None) is not None:
        with suppress(RefusedError):
            if not any(one.report is None for one in family.hear(sliding_window=None)):
                rule["unless"] = "sliding_window"
    return rule


def pattern_of(family: Family, field: str) -> dict[str, Any]:
    """Return the pattern of a list of layers that its class makes if none is given."""

    def made(**more: Any) -> list[Any]:
        raw = {**family.small, "num_hidden_layers": 30, **more}
        return list(getattr(family.loaded({k: v for k, v in raw.items() if k != field}), field))

    try:
        found = made()
    except (RefusedError, TypeError):
        return {"every": None}
    fits = _fit(found)
    for name in EVERY:
        with suppress(RefusedError, TypeError):
            for n in (3, 7):
                if value_of(family.default, name) is not None or made(**{name: n}) != found:
                    other = _fit(made(**{name: n}))
                    if other and other["every"] == n and other != fits:
                        default = getattr(family.default, name, (fits or {}).get("every"))
                        return {**other, "every": name, "or": default}
    return fits or {"every": None}


def _fit(found: list[Any]) -> dict[str, Any] | None:
    """Return the pattern of a list, but for its ends; None where there is none."""
    inner = range(1, len(found) - 1)
    for every, offset in ((n, k) for n in range(1, 13) for k in range(n)):
        on = [(i + offset) % every == 0 for i in range(len(found))]
        then = {found[i] for i in inner if on[i]}
        other = {found[i] for i in inner if not on[i]} or then
        if len(then) == len(other) == 1:
            rule = {"every": every, "offset": offset, "then": min(then), "else": min(other)}
            for end, name in ((0, "first"), (-1, "last")):
                if found[end] != rule["then" if on[end] else "else"]:
                    rule[name] = found[end]
            return rule
    return None


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
    for kind in kinds:
        own = (bare.get(kind) or {}) if nested else bare
        base = own.get("rope_theta")
        if base is None:
            of_kind = [one.report for one in heard if one.report and one.kind in (kind, None)]
            base = value_of(family.default, "rope_theta") or of_kind[0].base
        theta = [name for name in BASES if ask(kind, "rope_theta", **{name: 777.0}) == 777.0]
        if not has:
            theta = _heard_bases(family)
        legacy = {"rope_type": "default", "rope_theta": 555.0}
        extra = set(own) - {"rope_theta", "rope_type", "partial_rotary_factor"}
        told = extra or own.get("rope_type", "default") not in ("default", "axial") or not theta
        left = {"rope_theta"} if theta else set()
        part = "partial_rotary_factor"
        if ask(kind, part, qk_rope_head_dim=20) != own.get(part):  # it follows from sizes
            left.add(part)
        absent = {k: v for k, v in own.items() if k not in left}
        if nested:  # another base may stand for one that an entry lacks
            bare_dict = {kind: {"rope_type": "default"} for kind in nested}
            filled = ask(kind, "rope_theta", rope_parameters=bare_dict)
            base = filled if filled or "rope_theta" in absent else base
        rule["kinds"][kind] = {
            "theta": theta,
            "default": base,
            "scaling": ask(kind, "rope_theta", rope_scaling=legacy) == 555.0,
            "absent": absent if has and (nested or told) else None,
        }
    if len(nested) > 1:
        one, other = nested[:2]
        only = {one: {"rope_type": "default", "rope_theta": 777.0}}
        with suppress(RefusedError):
            rule["fills"] = bool(family.resolved(rope_parameters=only).get(other))
    return rule


def _heard_bases(family: Family) -> list[str]:
    """Return fields that change the base of a class without ``rope_parameters``."""
    before = family.hear()[0].report
    found = []
    for name in BASES:
        if value_of(family.default, name) is not None:
            with suppress(RefusedError):
                after = family.hear(**{name: 777.0})[0].report
                if before and after and not np.allclose(after.inv_freq, before.inv_freq):
                    found.append(name)
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
        if not all(name in FREE or hasattr(family.made, name) for name in change):
            continue  # of a name that its class does not have
        for more in ({}, *_sectioned(family, (4, 6, 8, 9, 10, 12, 16))):
            with suppress(RefusedError):
                asked.append(({**change, **more}, family.hear(**change, **more)))
                break
    told = {"rope_type": "default", "rope_theta": 5000.0}
    for more in ({}, {"partial_rotary_factor": 0.5}) if rule["rope"]["dict"] else ():
        inner = {kind: {**told, **more} for kind in nested} if nested else told | more
        with suppress(RefusedError):
            asked.append(({"rope_parameters": inner}, family.hear(rope_parameters=inner)))
    unset = None
    if any(one.report and one.report.axes == 3 for one in heard):
        unset = _unset_sections(family)
        if unset:
            asked.append((UNSET, family.hear(**UNSET)))
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
        for candidate in _candidates(family, report, one.kind if nested else None, unset):
            made = {**base, **candidate}
            trial = {**rule, "rotations": [made], "read": [], "rescalings": TYPES}
            faults = (disagreement(trial, raw, answer) for raw, answer in own)
            fault = next(filter(None, faults), None)
            if fault is None:
                if made["axes"] and not unset:  # they have to be told
                    made["axes"].pop("sections", None)
                found.append(made)
                break
        else:
            raise RefusedError(f"no expression of its width fits ({fault})")
    return found


UNSET = {k: "leave out" for k in (*SIZES, "rope_parameters") if k != "num_hidden_layers"}
"""The sizes of its class."""


def _unset_sections(family: Family) -> list[int] | None:
    """Return the pairs of each axis where a class is not told; None where it must be."""
    with suppress(RefusedError):
        report = next(one.report for one in family.hear(**UNSET) if one.report)
        if report.axes == 3:
            which = (report.inv_freq != 0).argmax(axis=1)
            return np.bincount(which, minlength=3).tolist()
    return None


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


TYPES = {kind: kind for kind in PARAMETERS}


def _kinds(family: Family, heard: list[Heard], nested: list[str]) -> list[Heard]:
    """Return one of what was heard for each kind of rotation."""
    types = value_of(family.loaded(family.small), "layer_types") or []
    found: dict[Any, Heard] = {}
    for one in (one for one in heard if one.report):
        own = {types[n] for n in one.layers or () if n < len(types)} or {one.kind}
        kinds = own & set(nested) if nested else {None}
        for kind in {one.kind} if one.kind == "indexer" else kinds:
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
    powers = (0.0,) if abs((report.attention_factor or 1.0) - 1.0) < 1e-5 else (0.0, -0.25)
    for partial, axes, power, head, dim in product(
        wholes, _axes(report, unset), powers, heads, heads
    ):
        yield {"head_dim": head, "dim": dim, "partial": partial, "axes": axes, "power": power}


def _known(family: Family, words: str) -> bool:
    """Return whether a class has all fields of an expression."""
    names = re.findall(r"[a-z_]+", words)
    return all(value_of(family.default, name) is not None or name in LOOSE for name in names)


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
        names.append("qk_rope_head_dim / qk_nope_head_dim + qk_rope_head_dim")
    for name, value in (
        ("partial_rotary_factor", 0.625),
        ("rotary_pct", 0.625),
        ("rotary_dim", 10),
    ):
        after = told(**{name: value})
        if after is not None and after != before:
            names.append(name if after == value else f"{name} / head_dim")
    default = 1.0 if before is None else before
    seen = round(report.width / report.head_dim, 4)
    orders = [names, names[::-1]] if len(names) > 1 else [names]
    defaults = dict.fromkeys((default, seen, 1.0, 0.334))
    return [{"fields": own, "default": d} for own in orders for d in defaults]


TOLD = ("chunks", "interleaved", "in turn")
"""Arrangements of axes that follow from ``mrope_section``."""


def _axes(report: Report, unset: list[int] | None) -> list[Any]:
    """Return arrangements of axes to try; ``unset`` are the pairs of each where it is not told."""
    if report.axes == 1:
        return [None]
    counts = np.bincount((report.inv_freq != 0).argmax(axis=1), minlength=report.axes).tolist()
    lists = [own for one in (unset, counts) if one for own in (one, [*one[1:], one[0]])]
    towers = ("blocks", "reversed blocks", "alternating", "reversed alternating", "every other")
    text = product(TOLD, lists)
    return [
        *({"mode": mode, "count": report.axes} for mode in towers),
        *({"mode": mode, "count": report.axes, "sections": own} for mode, own in text),
    ]


def rescalings_of(family: Family, rule: dict[str, Any], nested: list[str]) -> dict[str, str]:
    """Return what each ``rope_type`` is to a class: a published rescaling, default, or refused."""
    found = {"default": "default"}
    if not rule["rope"]["dict"]:
        return found
    own = [entry["absent"] for entry in rule["rope"]["kinds"].values()]
    for name, told in STYLES.items():
        rope = {"rope_type": name, "rope_theta": 5000.0, **told}
        found[name] = _answer(family, rule, rope, nested)
    found |= {
        one["rope_type"]: one["rope_type"]
        for one in own
        if one and "rope_type" in one and one["rope_type"] in TYPES
    }
    return {k: v for k, v in found.items() if v != "unknown"}


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


def _answer(family: Family, rule: dict[str, Any], rope: dict[str, Any], nested: list[str]) -> str:
    """Return as which type a class computes these parameters."""
    name, more = rope["rope_type"], {}
    if name in ("longrope", "su"):
        own = {family.made.model_type: {**rule, "read": [], "rescalings": TYPES}}
        plain = evaluate(raw_of(family), own).parts
        if not plain:
            raise RefusedError("its layers' kinds are not those of its rope_parameters")
        pairs = plain[-1].width // 2
        with suppress(ValueError, RefusedError):  # some classes look at another width first
            other = evaluate(raw_of(family, head_dim="leave out"), own).parts[-1].width // 2
            if other != pairs:
                pairs, more = other, {"head_dim": "leave out"}
        rope |= {"short_factor": [1.0 + i / 9 for i in range(pairs)], "long_factor": [2.0] * pairs}
    rope = (family.small.get("rope_parameters") or {}) | rope if not nested else rope
    more["rope_parameters"] = {k: dict(rope) for k in nested} if nested else rope
    if name in ("dynamic", "longrope", "su") and rule["lengths"]:
        more["max_position_embeddings"] = FAR
        more |= {
            k: FAR
            for k in ("original_max_position_embeddings",)
            if value_of(family.default, k) is not None
        }
    try:
        heard = family.hear(**more)
    except RefusedError:
        return "refused"
    raw = raw_of(family, **more)
    for kind in (name, "default", "longrope", *PARAMETERS):
        if kind in PARAMETERS:
            trial = {**rule, "rescalings": {name: kind}, "read": []}
            if disagreement(trial, raw, heard) is None:
                return kind
    return "unknown"


def trimmed(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule with the fields that it reads, and no others among its defaults."""
    words: set[str] = set()
    for one in rule["rotations"]:
        lists = [*one["head_dim"], *one["dim"], *(one["partial"] or {}).get("fields", ())]
        words |= set(re.findall(r"[a-z_][a-z_0-9]*", " ".join(lists)))
        words |= {one["flag"]["field"]} if "flag" in one else set()
    for entry in rule["rope"]["kinds"].values():
        words |= set(entry["theta"])
    layers = rule["layers"]
    words |= {*layers["count"], layers.get("unless", ""), layers.get("except", ""), *rule["on"]}
    for name in ("types", "switch"):
        if name in layers:
            words |= {layers[name]["field"], str(layers[name]["every"])}
    words |= {"max_position_embeddings"} if rule["lengths"] else set()
    words |= {"original_max_position_embeddings"} if len(rule["rescalings"]) > 1 else set()
    words |= {"rope_scaling", "rope_parameters"} if rule["rope"]["dict"] else set()
    places = {rule["aliases"].get(word, word) for word in words}
    return {
        **rule,
        "aliases": {k: v for k, v in rule["aliases"].items() if v in places},
        "defaults": {k: v for k, v in rule["defaults"].items() if k in places},
        "read": sorted(words - {""} - {w for w in words if w.isdigit()}),
    }


# ---- configurations drawn at random --------------------------------------------------------------


def drawn(family: Family, rule: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return changes of the small configuration: sizes, spelling, base, rescaling, layers."""
    read, pick, rope = set(rule["read"]), rng.choice, rule["rope"]
    heads = pick((2, 4, 8))
    raw: dict[str, Any] = {"num_attention_heads": heads, "hidden_size": heads * pick((16, 32, 40))}
    raw["num_hidden_layers"] = rng.randint(1, 7 if len(rule["layers"]) > 1 else 3)
    raw["max_position_embeddings"] = pick((512, 640, 4096))
    for name, values in WIDTHS.items():
        if name in read and rng.random() < 0.7:
            raw[name] = pick(values)
    if "head_dim" in read and rng.random() < 0.3:
        raw["head_dim"] = raw["hidden_size"] // heads
    if rng.random() < 0.2 and len(rule["layers"]) == 1:
        raw["num_hidden_layers"] = family.small.get("num_hidden_layers", "leave out")
    kinds = [kind for kind in rope["kinds"] if kind]
    for name in sorted({name for one in rope["kinds"].values() for name in one["theta"]}):
        if rng.random() < 0.7:
            raw[name] = pick((1e4, 5e5, 1e6, 12345.0))
    if rope["dict"] and rng.random() < 0.8:
        spelt = pick(("rope_parameters", "rope_scaling"))
        if kinds and spelt == "rope_parameters":
            raw[spelt] = {kind: _rescaling(rule, raw, rng, True) for kind in kinds}
        elif not kinds or any(one["scaling"] for one in rope["kinds"].values()):
            raw[spelt] = _rescaling(rule, raw, rng, spelt == "rope_parameters")
    if re.search("'(dynamic|longrope|su)'", str(raw)):  # frequencies of a short text are heard
        raw["max_position_embeddings"] = FAR
        if "original_max_position_embeddings" in {*raw, *rule["defaults"]}:
            raw["original_max_position_embeddings"] = FAR
    layers = rule["layers"]
    for name in ("types", "switch"):
        if name in layers and (not layers[name]["every"] or rng.random() < 0.5):
            choices = [*layers.get("rotation", ()), *layers.get("rest", ())] or [0, 1]
            raw[layers[name]["field"]] = [pick(choices) for _ in range(raw["num_hidden_layers"])]
        if name in layers and isinstance(layers[name]["every"], str) and rng.random() < 0.5:
            raw[layers[name]["every"]] = rng.randint(2, 4)
    if "flag" in rule["rotations"][0] and rng.random() < 0.5:
        raw[rule["rotations"][0]["flag"]["field"]] = pick((True, False))
    for name in ("rope_traditional", "use_mrope"):
        if rng.random() < 0.2:
            raw[name] = True  # without effect
    return raw


WIDTHS: dict[str, tuple[Any, ...]] = {
    "embed_dim": (128, 160), "head_dim": (16, 24, 32, None),
    "qk_rope_head_dim": (8, 12, 16), "qk_nope_head_dim": (8, 20),
    "index_head_dim": (24, 32), "rotary_dim": (8, 12, 16), "kv_channels": (16, 24),
    "attention_head_dim": (16, 24), "global_head_dim": (24, 32),
    "partial_rotary_factor": (0.25, 0.5, 0.75, 1.0), "rotary_pct": (0.25, 0.5, 0.75, 1.0),
    "original_max_position_embeddings": (256, 1024),
}  # fmt: skip
"""What to draw widths from."""


def _rescaling(
    rule: dict[str, Any], raw: dict[str, Any], rng: random.Random, new: bool
) -> dict[str, Any]:
    """Return parameters of a rescaling that is not refused, at random."""
    names = [name for name, kind in rule["rescalings"].items() if kind != "refused"]
    name = rng.choice(names)
    told = dict(STYLES.get(name, {}))
    if "factor" in told:
        told["factor"] = rng.choice((1.5, 2.0, 4.0, 8.0, 32.0))
    if name == "yarn":
        for key, values in YARN.items():
            if rng.random() < 0.3:
                told[key] = rng.choice(values)
    if name in ("yarn", "llama3"):
        told["original_max_position_embeddings"] = rng.choice((160, 512, 4096))
    if rule["rescalings"][name] == "longrope":
        told |= {"short_factor": None, "long_factor": None}  # as many as pairs: set later
    if rule["rotations"][0]["partial"] is not None and rng.random() < 0.3:
        told["partial_rotary_factor"] = rng.choice((0.25, 0.5, 0.75, 1.0))
    if not new:
        return {rng.choice(("type", "rope_type")): name, **told}
    if rng.random() < 0.9:
        told["rope_theta"] = rng.choice((1e4, 3e4, 5e5, 1e6))
    return {"rope_type": name, **told}


YARN: dict[str, tuple[Any, ...]] = {
    "beta_fast": (16.0, 64.0), "beta_slow": (0.5, 2.0), "attention_factor": (1.0, 1.25),
    "mscale": (0.7, 1.0), "mscale_all_dim": (0.5, 1.0), "truncate": (True, False),
}  # fmt: skip


def completed(rule: dict[str, Any], raw: dict[str, Any], rng: random.Random) -> None:
    """Set lists with a number for each pair, and sections, in place, to a length that fits."""
    value = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    dicts = [one for one in value.values() if isinstance(one, dict)] or [value]
    axes = [one["axes"] for one in rule["rotations"] if one["axes"] and one["axes"]["mode"] in TOLD]
    with suppress(ValueError, KeyError, IndexError):
        pairs = _pairs(rule, raw)
        for one in dicts:
            if "short_factor" in one:
                one["short_factor"] = [round(1.0 + rng.random(), 2) for _ in range(pairs)]
                one["long_factor"] = [round(1.0 + 9 * rng.random(), 2) for _ in range(pairs)]
        if axes:
            share = rng.randint(1, pairs // 3)
            own = [pairs - 2 * share, share, share]
            own = [share, share, pairs - 2 * share] if axes[0]["mode"] == "in turn" else own
            name = "rope_scaling" if raw.get("rope_scaling") else "rope_parameters"
            before = raw.get(name) or {"rope_type": "default"}
            raw[name] = {**before, "mrope_section": own}


def _pairs(rule: dict[str, Any], raw: dict[str, Any]) -> int:
    """Return the pairs that rotate, whatever the rescaling."""
    plain = copy.deepcopy(rule)
    for one in plain["rotations"]:
        one["axes"] = None
    plain["rescalings"] = dict.fromkeys([*plain["rescalings"]], "linear")
    plain = json.loads(json.dumps(plain).replace('"refused"', '"linear"'))
    simple = json.loads(json.dumps(raw))
    for name in ("rope_scaling", "rope_parameters"):
        for inner in (
            simple.get(name) or {},
            *(v for v in (simple.get(name) or {}).values() if isinstance(v, dict)),
        ):
            if "rope_type" in inner or "type" in inner:
                inner["factor"] = 2.0
    return evaluate(simple, {raw["model_type"]: plain}).parts[-1].width // 2


def verified(family: Family, rule: dict[str, Any], count: int = DRAWN) -> dict[str, Any]:
    """Return how many configurations drawn at random agree, and why the first does not."""
    rng, fine, refused, why = random.Random(family.made.model_type), 0, 0, None
    heard_count = 0
    for _ in range(8 * count):
        if heard_count == count:
            break
        raw = raw_of(family, **drawn(family, rule, rng))
        completed(rule, raw, rng)
        try:
            heard = family.hear(**{k: v for k, v in raw.items() if k != "model_type"})
        except RefusedError:
            refused += 1
            continue
        heard_count += 1
        fault = disagreement(rule, raw, heard)
        fine += fault is None
        if fault and not why:
            changed = {k: v for k, v in raw.items() if family.small.get(k) != v}
            why = f"{fault}: {json.dumps(changed)}"
    found = {"agreement": [fine, heard_count], "refused": refused}
    return found | ({"why": why} if why else {})


# ---- all families --------------------------------------------------------------------------------


def classes(name: str) -> list[Any]:
    """Return the classes of configurations in a family's folder, the innermost first."""
    found: dict[str, Any] = {}
    for config in configurations(name):
        for part in parts_of(config):
            if f".models.{name}." in type(part).__module__ and type(part).model_type:
                found.setdefault(type(part).model_type, type(part))
    return list(found.values())


def parts_rule(made: Any) -> dict[str, Any]:
    """Return which fields of a class hold configurations of their own."""
    parts, flat = {}, []
    for name, own in made.sub_configs_defaults.items():
        anything = not hasattr(own.config_class, "model_type")
        parts[name] = {"type": own.model_type, "any": anything}
        with suppress(Exception):
            inner = getattr(made.from_dict({"hidden_size": 96, "num_attention_heads": 4}), name)
            if inner.hidden_size == 96 and not hasattr(inner, "depth"):
                flat.append(name)
    return {"parts": parts, **({"flat": flat} if flat else {})}


def found(name: str) -> dict[str, Any]:
    """Return the rules of a family by ``model_type``."""
    import transformers

    transformers.logging.set_verbosity(50)  # a class may refuse what it is asked
    torch.set_num_threads(1)
    rules: dict[str, Any] = {}
    try:
        own = classes(name)
    except Exception as error:  # whatever it raises
        return {name: {"family": name, "null": summary(error)}}
    for made in own:
        rule: dict[str, Any] = {}
        if made.sub_configs_defaults:
            rule = {"family": name, **parts_rule(made)}
        try:
            family = Family(made, name)
            rule |= rule_of(family)
            rule |= verified(family, rule)
        except RefusedError as error:
            rule = rule or {"family": name, "null": str(error)}
        except Exception as error:  # whatever a family's code raises
            if "rotations" in rule:
                raise
            rule = rule or {"family": name, "null": summary(error)}
        rules[made.model_type] = rule
    return rules


def composites(rules: dict[str, Any]) -> dict[str, Any]:
    """Return rules for classes of other families: whose parts have rules, or whose file has none.

    A file without any function or class that rotates makes a rule without parts.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    found, rotating = {}, set(families())
    for name in CONFIG_MAPPING:
        if name not in rules:
            with suppress(Exception):  # a class that cannot be imported
                made = CONFIG_MAPPING[name]
                own, family = parts_rule(made), made.__module__.split(".")[2]
                own["parts"] = {k: v for k, v in own["parts"].items() if v["type"] in rules}
                if own["parts"] or family not in rotating:
                    found[name] = {"family": family, **own}
    return found


def renew(names: list[str], workers: int) -> None:
    """Find the rules of families, of all recorded ones where none is named, and write them."""
    kept = json.loads(RULES.read_text("utf-8"))["types"] if names and RULES.exists() else {}
    records = load("transformers")["families"]
    names = names or [name for name, one in records.items() if one["status"] == "recorded"]
    kept = {k: v for k, v in kept.items() if v["family"] not in names}
    with get_context("spawn").Pool(workers, maxtasksperchild=10) as pool:
        for rules in pool.imap(found, names):
            kept |= rules
            for name, rule in rules.items():
                told = rule.get("null") or rule.get("agreement") or "its parts"
                print(f"{name:<28} {told}  {rule.get('why', '')}", flush=True)
            write(kept)
    write(kept | composites(kept))


def field_names() -> list[str]:
    """Return the names of all fields of all classes of configurations, in all spellings."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    found: set[str] = set()
    for name in CONFIG_MAPPING:
        with suppress(Exception):  # a class that cannot be imported
            made = CONFIG_MAPPING[name]
            found |= {f.name for f in fields(made)} | set(made.attribute_map)
    return sorted(found)


def write(rules: dict[str, Any]) -> None:
    """Write the rules, sorted, a line for each ``model_type``."""
    versions = {p: version(p).split("+")[0] for p in ("transformers", "torch")}
    head = {"schema": 1, "versions": versions, "fields": field_names()}
    lines = ["{", *(f'  "{key}": {json.dumps(value)},' for key, value in head.items())]
    own = (f'    "{name}": {json.dumps(rules[name])}' for name in sorted(rules))
    lines += ['  "types": {', ",\n".join(own), "  }", "}", ""]
    RULES.write_text("\n".join(lines), encoding="utf-8")
