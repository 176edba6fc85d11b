"""Draw configurations at random, and test the rules of all families with them; write these."""

import copy
import inspect
import json
import random
import re
from contextlib import suppress
from dataclasses import fields
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

import ropescope
from ropescope.configuration import evaluate
from ropescope.series import SECTIONED

from . import RESULTS, load
from .asking import NOT_REACHED, SIZES, Family, RefusedError, disagreement, raw_of, value_of
from .families import borrowers, configurations
from .recording import parts_of, summary
from .rules import BASES, FAR, NOT_ROTATED, STYLES, rule_of
from .special import CONVOLUTIONS, WHY
from .types import WINDOWS, kind_names, types_of, words_of

__all__ = ["found", "renew", "write"]

RULES = Path(ropescope.__file__).parent / "rules.json"
DRAWN = 20
"""Configurations of each class."""


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
    own = raw.get("head_dim", family.small.get("head_dim"))
    if rule.get("foreign", [""])[0].startswith("hidden_size") and own:
        raw["head_dim"] = raw["hidden_size"] // heads  # else a model fails
    if {"head_dim", "qk_rope_head_dim"} <= raw.keys() and rng.random() < 0.5:
        raw["head_dim"] = raw["qk_rope_head_dim"]
    if "whole" in (rule["rotations"][0]["partial"] or ()):
        raw["partial_rotary_factor"] = 1.0  # else a model fails, or repeats its only pair
    if rng.random() < 0.2 and len(rule["layers"]) == 1:
        raw["num_hidden_layers"] = family.small.get("num_hidden_layers", "leave out")
    kinds = [kind for kind in rope["kinds"] if kind]
    for name in sorted({name for one in rope["kinds"].values() for name in one["theta"]}):
        if rng.random() < 0.7:
            raw[name] = pick(several := (1e4, 5e5, 1e6, 12345.0))
            if name in rope.get("listed", ()) and (rope.get("yields") or rng.random() < 0.5):
                raw[name] = [pick(several) for _ in range(raw["num_hidden_layers"])]
    if rope["dict"] and rng.random() < 0.8:
        spelt = pick(("rope_parameters", "rope_scaling"))
        if kinds and (spelt == "rope_parameters" or "d" in rope.get("replaces", "")):
            raw[spelt] = {kind: _rescaling(rule, raw, rng, True) for kind in kinds}
        elif not kinds or any(one["scaling"] for one in rope["kinds"].values()):
            raw[spelt] = _rescaling(rule, raw, rng, spelt == "rope_parameters")
    longs = [kind for kind, own in rule["rescalings"].items() if own == "longrope"]
    if re.search(
        f"'({'|'.join(['dynamic', 'longrope', 'su', *longs])})'", str(raw)
    ):  # frequencies of a short text are heard
        raw["max_position_embeddings"] = FAR
        if "original_max_position_embeddings" in {*raw, *rule["defaults"]}:
            raw["original_max_position_embeddings"] = FAR
    layers = rule["layers"]
    for name in ("types", "switch"):
        if name in layers and (not layers[name]["every"] or rng.random() < 0.5):
            kinds = (layers.get(one, ()) for one in ("rotation", "rest", "absent"))
            choices = [one for own in kinds for one in own] or [0, 1]
            raw[layers[name]["field"]] = [pick(choices) for _ in range(raw["num_hidden_layers"])]
        elif name in layers:
            raw[layers[name]["field"]] = "leave out"
        if name in layers and isinstance(layers[name]["every"], str) and rng.random() < 0.5:
            raw[layers[name]["every"]] = rng.randint(2, 4)
    for kind, names in layers.get("wants", {}).items():
        if kind in str(raw.get("layer_types")):
            raw |= {name: WINDOWS[name][0] for name in names}
    if "numbers" in layers and rng.random() < 0.5:
        raw[layers["numbers"]["field"]] = rng.sample(range(8), 3)
        raw.pop("layer_types", None)
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
    "image_size": (128, 160, 256), "patch_size": (8, 16), "window_size": (6, 8),
    "memory_attention_hidden_size": (64, 128), "memory_attention_downsample_rate": (1, 2),
    "memory_attention_num_attention_heads": (1, 2, 4), "speech_encoder_attention_heads": (2, 4),
}  # fmt: skip
"""What to draw widths from."""


def _rescaling(
    rule: dict[str, Any], raw: dict[str, Any], rng: random.Random, new: bool
) -> dict[str, Any]:
    """Return parameters of a rescaling that is not refused, at random."""
    names = [
        name for name, kind in rule["rescalings"].items() if kind not in ("refused", "unknown")
    ]
    name = rng.choice(names)
    style = "longrope" if rule["rescalings"][name] == "longrope" else name
    told = dict(STYLES.get(style, {}))
    if "factor" in told:
        told["factor"] = rng.choice((1.5, 2.0, 4.0, 8.0, 32.0))
    if name == "dynamic" and rule["rope"].get("alpha") and rng.random() < 0.5:
        told["alpha"] = rng.choice((50.0, 1000.0))
    if style == "yarn":
        for key, values in YARN.items():
            if rng.random() < 0.3:
                told[key] = rng.choice(values)
    if style in ("yarn", "llama3"):
        told["original_max_position_embeddings"] = rng.choice((160, 512, 4096))
    if style == "longrope":
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
    axes = [
        one["axes"] for one in rule["rotations"] if one["axes"] and one["axes"]["mode"] in SECTIONED
    ]
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
    simple = copy.deepcopy(raw)
    for name in ("rope_scaling", "rope_parameters"):
        told = simple.get(name) or {}
        for inner in (told, *(value for value in told.values() if isinstance(value, dict))):
            inner["factor"] = 2.0
    plain["rope"]["kinds"] = {
        kind: {**one, "absent": {**(one["absent"] or {}), "factor": 2.0}}
        for kind, one in plain["rope"]["kinds"].items()
    }
    return evaluate(simple, {raw["model_type"]: plain}).parts[-1].width // 2


def verified(family: Family, rule: dict[str, Any], count: int = DRAWN) -> dict[str, Any]:
    """Return how many configurations drawn at random agree, and why the first does not."""
    rng, fine, refused, why = random.Random(family.made.model_type), 0, 0, None
    heard_count = 0
    for _ in range(16 * count):
        if heard_count == count:
            break
        raw = raw_of(family, **drawn(family, rule, rng))
        completed(rule, raw, rng)
        left = {k: "leave out" for k in family.small if "." not in k}
        try:
            heard = family.hear(**left | {k: v for k, v in raw.items() if k != "model_type"})
        except RefusedError:
            refused += 1
            continue
        heard_count += 1
        fault = disagreement(rule, raw, heard)
        fine += fault is None
        if fault and not why:
            small = family.raw()
            changed = {k: v for k, v in raw.items() if small.get(k) != v}
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
    parts: dict[str, Any] = {}
    flat = []
    alone: Any = None
    with suppress(Exception):
        alone = made.from_dict({})
    for name, own in made.sub_configs_defaults.items():
        anything = not hasattr(own.config_class, "model_type")
        parts[name] = {"type": own.model_type, "any": anything}
        preset = copy.deepcopy(getattr(own, "init_kwargs", None) or {})
        if alone and getattr(alone, name, 0) is None:
            parts[name]["optional"] = True
        if anything:
            told = re.findall(r"[\"']([a-z][\w.-]+)[\"']", inspect.getsource(made))
            kinds = dict.fromkeys(("none such", *other_types(), *sorted(told)))
            others = {kind: _type_of_part(made, name, kind) for kind in kinds}
            if others.pop("none such"):
                parts[name]["any"] = False
            elif renamed := {k: v for k, v in others.items() if v not in (None, k)}:
                parts[name]["as"] = renamed
        if preset:  # other types may have left a key in its dicts
            own.init_kwargs.update(copy.deepcopy(preset))
        preset = {k: v for k, v in preset.items() if k in PRESET and v is not None}
        if preset:
            parts[name]["defaults"] = preset
            with suppress(Exception):  # do they count beside what is given?
                given = getattr(made.from_dict({name: {"model_type": own.model_type}}), name)
                plain, told = type(given).from_dict({}).to_dict(), given.to_dict()
                parts[name]["always"] = any(told[k] != plain[k] for k in PRESET & plain.keys())
        with suppress(Exception):
            inner = getattr(made.from_dict({"hidden_size": 96, "num_attention_heads": 4}), name)
            plain = getattr(made.from_dict({}), name)
            if plain.hidden_size != inner.hidden_size == 96 and not hasattr(inner, "depth"):
                flat.append(name)
                left = [
                    k for k in LOOSE if value_of(getattr(made.from_dict({k: 24}), name), k) != 24
                ]
                told = {"rope_parameters": {"rope_type": "default", "rope_theta": 777.0}}
                if getattr(made.from_dict(told), name).rope_parameters["rope_theta"] != 777.0:
                    left.append("rope_parameters")
                parts[name] |= {"left": left} if left else {}
        if anything and _typed(made, name, own.model_type):
            parts[name]["typed"] = True
        if sets := {} if name in flat else _sets(made, name):
            parts[name]["sets"] = sets
    names = {*re.findall(r"\b\w+_config\b", inspect.getsource(made)), *made.attribute_map}
    also = [name for name in sorted(names) if _is_a_part(made, name)]
    return {"parts": parts} | {k: v for k, v in {"flat": flat, "also": also}.items() if v}


def _typed(made: Any, name: str, kind: str) -> bool:
    """Return whether a class fails with a part that does not tell its ``model_type``."""

    def takes(**own: Any) -> bool:
        with suppress(Exception):  # whatever it raises
            made.from_dict({name: {"hidden_size": 128, **own}})
            return True
        return False

    return takes(model_type=kind) and not takes()


def _sets(made: Any, name: str) -> dict[str, Any]:
    """Return fields that overrule those of a part, with what does so where none is given."""
    found: dict[str, Any] = {}
    plain = None
    with suppress(Exception):
        plain = getattr(made.from_dict({}), name)
    for field in sorted({*SIZES, *BASES, *WIDTHS}):
        with suppress(Exception):  # it may refuse them
            if not hasattr(plain, field):
                continue
            inner = {name: {"model_type": plain.model_type, field: 48}}
            both = getattr(made.from_dict({**inner, field: 96}), name)
            if value_of(both, field) == 96 != value_of(plain, field):
                own = value_of(getattr(made.from_dict(inner), name), field)
                found[field] = None if own == 48 else own
    return found


def _is_a_part(made: Any, name: str) -> bool:
    """Return whether a class takes a field that it does not have for one of its parts."""
    for part in () if name in made.sub_configs_defaults else made.sub_configs_defaults:
        with suppress(Exception):
            sizes = {"hidden_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2}
            inner = getattr(made.from_dict({name: sizes}), part)
            if inner.hidden_size == 96 != getattr(made.from_dict({}), part).hidden_size:
                return True
    return False


def _type_of_part(made: Any, name: str, told: str) -> str | None:
    """Return as which ``model_type`` a class takes a part of another one; None if it refuses."""
    with suppress(Exception):
        return getattr(made.from_dict({name: {"model_type": told}}), name).model_type
    return None


@cache
def other_types() -> list[str]:
    """Return the types of parts of public checkpoints that no class of configurations has."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    text = (RESULTS / "checkpoints.json").read_text("utf-8")
    return sorted(set(re.findall(r'"model_type": "(.+?)"', text)) - {*CONFIG_MAPPING})


LOOSE = ("head_dim", "original_max_position_embeddings", "partial_rotary_factor", "rotary_dim")
"""Fields that a part may read without having them, and that may not reach it from outside."""

PRESET = {*SIZES, *BASES, "rope_parameters", "rope_scaling", "partial_rotary_factor"}
"""Fields about rotation that a model may set for its parts."""


def rotates(made: Any, name: str) -> bool:
    """Return whether a rotation of a class is recorded, by its name."""
    rows = load("transformers")["families"].get(name, {"rotations": ()})["rotations"]
    prefix = made.__name__.removesuffix("Config")
    return any(row["model"].startswith(prefix) for row in rows)


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
        if made.model_type in WHY:
            rules[made.model_type] = {"family": name, "null": WHY[made.model_type]}
            continue
        if made.model_type in CONVOLUTIONS:
            rules[made.model_type] = {"family": name, "parts": {}}
            continue
        try:
            family = Family(made, name)
            rule |= rule_of(family)
            rule["layers"] |= words_of(family, rule)
            rule |= types_of(family, rule)
            rule |= verified(family, rule)
            agreeing, count = rule["agreement"]
            if not count or agreeing < count:
                print(name, made.model_type, rule.get("why"), flush=True)
                why = f"the rule that was found holds for {agreeing} of {count} drawn"
                rule = {"family": name, "null": why if count else "it refused all that were drawn"}
        except RefusedError as error:
            nothing = str(error) in (NOT_REACHED, NOT_ROTATED) and not rotates(made, name)
            there = {"parts": {}} if nothing else {"null": str(error)}
            rule = rule or {"family": name, **there}
        except Exception as error:  # whatever a family's code raises
            if "rotations" in rule:
                raise
            rule = rule or {"family": name, "null": summary(error)}
        rules[made.model_type] = rule
    return rules


def composites(rules: dict[str, Any]) -> dict[str, Any]:
    """Return rules for names that were not asked: those of their class or of its parts, or why not.

    A family that rotates no head makes a rule without parts.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    records, found = load("transformers")["families"], {}
    rotating = {name for name, one in records.items() if one["status"] in ("recorded", "refused")}
    for name in CONFIG_MAPPING:
        if name not in rules:
            with suppress(Exception):  # a class that cannot be imported
                made = CONFIG_MAPPING[name]
                if made.model_type in rules:  # a second name of a class
                    found[name] = rules[made.model_type]
                    continue
                family = made.__module__.split(".")[2]
                own = {"null": "it has not been asked"} if family in rotating else parts_rule(made)
                if own.get("parts") == {} and hasattr(made(), "rope_parameters"):
                    own = {"null": "it has not been asked"}
                found[name] = {"family": family, **own}

    def may_rotate(part: dict[str, Any]) -> bool:
        """Return whether a part, or one of its own, has a rule, or may be of any type."""
        inner = found.get(part["type"], {}).get("parts", {})
        return part["any"] or part["type"] in rules or any(map(may_rotate, inner.values()))

    for one in found.values():
        if parts := one.get("parts"):
            one["parts"] = {k: v for k, v in parts.items() if may_rotate(v)}
    return found


def renew(names: list[str], workers: int) -> None:
    """Find the rules of families, of all recorded ones where none is named, and write them."""
    kept = json.loads(RULES.read_text("utf-8"))["types"] if names and RULES.exists() else {}
    records = load("transformers")["families"]
    recorded = [name for name, one in records.items() if one["status"] == "recorded"]
    names = names or [*recorded, *borrowers()]
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
    head = {"schema": 1, "versions": versions, "fields": field_names(), "kinds": kind_names()}
    lines = ["{", *(f'  "{key}": {json.dumps(value)},' for key, value in head.items())]
    own = (f'    "{name}": {json.dumps(rules[name])}' for name in sorted(rules))
    lines += ['  "types": {', ",\n".join(own), "  }", "}", ""]
    RULES.write_text("\n".join(lines), encoding="utf-8")
