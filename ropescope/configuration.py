"""From a published configuration to its rotary embedding, by rules found by asking each class.

`rope_of` evaluates ``rules.json``, which ``python -m atlas --rules`` writes, for what ``json.load``
returns of a model's ``config.json``: NumPy, no model code and no weights.
"""

import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .fields import BASE, Fields, Json, dotted, letters, positive
from .layers import layers_of, runs_of, unrolled
from .series import SECTIONED, Series, arranged

__all__ = [
    "Caution", "RotatedPart", "Specification", "evaluate", "given_part", "load_rules", "rope_of",
]  # fmt: skip

PARAMETERS: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "ntk": ("alpha",),
    "yarn": ("factor", "original_max_position_embeddings", "attention_factor", "beta_fast",
             "beta_slow", "mscale", "mscale_all_dim", "truncate"),
    "llama3": ("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"),
    "longrope": ("short_factor", "long_factor", "original_max_position_embeddings", "factor",
                 "attention_factor"),
    "proportional": ("factor",),
}  # fmt: skip
"""Parameters that each type of rescaling reads, with Hugging Face's names."""

ANY = frozenset().union(*PARAMETERS.values())
"""Those of any type."""

ORIGINAL = ("yarn", "llama3", "longrope")
"""Types that are relative to the length in training."""

REQUIRED: dict[str, tuple[str, ...]] = {
    "default": (), "linear": ("factor",), "dynamic": ("factor",), "ntk": ("alpha",),
    "yarn": ("factor",), "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "longrope": ("short_factor", "long_factor"), "proportional": (),
}  # fmt: skip
"""Parameters without which a type is refused."""

ZERO = ("beta_fast", "beta_slow", "mscale", "mscale_all_dim")
"""Parameters of which 0 counts as none, as released."""

BACKWARDS = ("beta_slow", "beta_fast"), ("low_freq_factor", "high_freq_factor")
"""Ends of a ramp; where the first is the larger, transformers only warns."""

LISTS = ("short_factor", "long_factor")
DEFAULT = "the class's default"
WHOLE = {"fields": ["partial_rotary_factor"], "default": 1.0, "whole": True}
PLAIN = ("default", "ntk")
"""Where a class rotates whole heads, all rescalings but these read the fraction nevertheless."""

IDLE = "has no effect on the rotation"
SWITCH = re.compile("use_ro|rotary($|_emb)")
"""Names of fields that turn rotation on, harmless where they are true; others, where false."""

LAYERWISE = "per_layer_config"
"""A field with fields of single layers, which transformers takes for any class."""

DICTS = ("rope_scaling", "rope_parameters")
MOST_CHANNELS = 2**16
SUM = re.compile(r"\w+( \+ \w+)+")

TYPES = {
    "n": "null", "b": "true or false", "i": "an integer", "f": "a float", "s": "a text",
    "d": "a dict", "e": "an empty list", "N": "a list of nulls", "B": "a list of true and false",
    "I": "a list of integers", "F": "a list of floats", "S": "a list of texts",
    "D": "a list of dicts", "L": "a list of lists",
}  # fmt: skip
"""Types of a field's value, by the letters with which ``takes`` of a rule names them."""

ABOUT = re.compile(
    r"rope|rotary|theta|nope|ntk|yarn|alibi|^base$|freq_base|partial_|kv_channels|^compress_pos"
    r"|^(attention_|global_|swa_|qk_(rope_|nope_)?)?head_(dims?|dimension|size)$|^position_embeddings?_type"
    r"|^position_encoding|^positional_|^pos_emb|xpos|neox_style|interleaved?$|^rot_|^d_(head|kv)$|dim_head$"
    r"|^attn_head_dim$|wavelength|(^|_)base_freq|frequency_base|embedding_base|position_interpol|condense"
    r"|^scaling_(factor|type)$|^dual_chunk|^sliding_window_pattern$|^full_attention_int|attn_every_n"
    r"|^(max_)?seq(uence)?_len|context_len|^model_max_len|^n_(ctx|positions)$|_freq_factor$|^attn_fa"
    rf"|^beta_|^({'|'.join(sorted(ANY))})$"
)
TURNS = re.compile(r"rope|rotary|theta")
"""Names of fields that speak of a rotation; of one whatever the model."""

QUANTITIES = {
    "base": BASE, "fraction": re.compile(r"partial|pct|percent|fraction"),
    "length": re.compile(r"max_pos|len|n_ctx|n_pos"), "width": re.compile(r"dim|channels|size"),
}  # fmt: skip
"""What a field without effect may be about: harmless where the model has that value anyway."""


@dataclass(frozen=True)
class Caution:
    """What a reader has to know of a configuration: 0 a note, 1 a warning, 2 wrong."""

    code: str
    severity: int
    field: str
    message: str


@dataclass(frozen=True)
class RotatedPart:
    """The rotary embedding of some layers of one part of a model.

    Attributes
    ----------
    part, model_type, path, kind
        ``text``, ``vision``, ``audio`` or ``other``; the type whose class reads it; where its
        fields stand; the type of the layers where types differ.
    layers, without
        Runs ``[first, last, step]`` of layers that rotate so, and of layers that do not rotate.
    head_dim, width, place, layout, direction, base
        As in `ropescope.Report`; ``_from`` names the fields.
    rescaling, attention_factor, table_factor
        ``[type, parameters]`` or None; the factor on rotated queries and keys: that on cos and sin,
        times one that the attention applies to both after the rotation; that on cos and sin alone.
    inv_freq
        Radians per position, (pairs,), or (pairs, axes) where a position has several numbers.
    sections
        Runs ``[axis, pairs]``; None with one axis.
    trained_length, max_length
        Positions in training, where told, and at most; None where no field tells.
    dynamic
        Whether frequencies change with the length; here they are those of a short text.
    """

    part: str
    model_type: str
    path: str
    kind: str | None
    layers: list[list[int]]
    without: list[list[int]]
    head_dim: int
    head_dim_from: str
    width: int
    width_from: str
    place: str
    layout: str
    direction: int | None
    base: float
    base_from: str
    rescaling: list[Any] | None
    attention_factor: float
    table_factor: float
    inv_freq: list[Any]
    sections: list[list[int]] | None
    trained_length: int | None
    max_length: int | None
    dynamic: bool


@dataclass(frozen=True)
class Specification:
    """How a configuration rotates.

    Attributes
    ----------
    family, known
        Its ``model_type``; whether there is a rule for it.
    parts
        One for each kind of layer of each part that rotates.
    read, without_effect, others
        Fields that decide, fields about rotation by their names and not seen to change any, and all
        others, which are taken to be about something else or belong to a part without a rule. If a
        field of yours stands there, no rotation follows from it. Of a dict that stands in none, its
        own fields do.
    warnings
        The most severe first.
    """

    family: str | None
    known: bool
    parts: tuple[RotatedPart, ...]
    read: tuple[str, ...]
    without_effect: tuple[str, ...]
    others: tuple[str, ...]
    warnings: tuple[Caution, ...]

    def to_dict(self) -> Json:
        """Return it as JSON's types."""
        return json.loads(json.dumps(asdict(self)))


@cache
def load_rules() -> Json:
    """Return the rules, by ``model_type``."""
    return json.loads((Path(__file__).parent / "rules.json").read_text(encoding="utf-8"))


def rope_of(config: Json) -> Specification:
    """Return the rotary embeddings of a model, from its published configuration.

    Parameters
    ----------
    config
        What ``json.load`` returns of its ``config.json``, in an old spelling (``rope_theta``,
        ``rope_scaling``) or the new one (``rope_parameters``).

    Returns
    -------
    Specification
        As transformers' own class of this ``model_type`` computes it: what the rotary embedding
        does if the model runs with this file. Whether everything else in the file is accepted,
        transformers alone can say; look through ``others`` for fields that should have counted.

    Raises
    ------
    TypeError
        If ``config`` is no dict.
    ValueError
        If a field has a value that its class refuses, a ramp of YaRN or Llama 3's rule runs
        backwards, of which transformers only warns, or an odd number of channels meets a rescaling
        other than ``linear``; the message names the field.
    """
    if not isinstance(config, dict):
        kind = type(config).__name__
        raise TypeError(f"config must be a dict, as json.load returns config.json, got {kind}")
    rules = load_rules()
    return evaluate(config, rules["types"], *(frozenset(rules[k]) for k in ("fields", "kinds")))


def evaluate(
    config: Json,
    rules: Json,
    names: frozenset[str] = frozenset(),
    kinds: frozenset[str] = frozenset(),
) -> Specification:
    """Return the specification of a configuration by these rules; `rope_of` has the arguments.

    ``names`` are fields of any class, which are no misspellings; ``kinds``, types of layers of any
    class, others than which are refused.
    """
    family = config.get("model_type")
    study = _Study(rules, names, kinds)
    known = family if isinstance(family, str) else ""
    if family == "mistral" and "layer_types" in config and "ministral" in rules:
        known = "ministral"  # as AutoConfig does
    rule = rules.get(known)
    if rule is None or rule.get("null"):
        return Specification(family, False, (), (), (), (), (_no_rule(config, rule, rules),))
    study.read["model_type"] = None
    study.part(config, known, "")
    said = tuple(sorted(study.warnings, key=lambda one: -one.severity))
    unread = tuple(name for name in study.unread if name not in study.read)
    left = tuple(where for where in _leaves(config) if not study.met(where))
    return Specification(family, True, tuple(study.parts), tuple(study.read), unread, left, said)


OWN_CODE = {
    "baichuan", "chatglm", "deepseek", "internlm", "internlm2", "kimi_k2", "mimo", "minicpm",
    "nemotron-nas", "phi3_v", "qwen",
}  # fmt: skip
"""Types of public checkpoints for which transformers has no class."""


def _no_rule(config: Json, rule: Any, rules: Json) -> Caution:
    family = config.get("model_type")
    if rule is not None:
        return Caution("no-rule", 1, "model_type", f"{family} has no rule: {rule['null']}.")
    if family is None and (made := config.get("_class_name")):
        told = [f"{k} {v!r}" for k, v in config.items() if ABOUT.search(k)]
        words = f"Of its rotation it says: {', '.join(told) or 'nothing'}."
        words = f"{made} is a class of diffusers, for which there is no rule. {words}"
        return Caution("no-rule", 1, "_class_name", words)
    if not isinstance(family, str):
        whole = "" if "model_type" in config else ": most whole files have one"
        words = f"model_type must name a family, such as 'llama', got {family!r}{whole}."
        return Caution("no-rule", 2, "model_type", words)
    near = difflib.get_close_matches(family, rules, 1)
    hint = f": did you mean {near[0]!r}?" if near else "."
    if family in OWN_CODE or config.get("auto_map"):  # no slip of the pen
        hint = ": transformers has no class for it, and its code comes with the checkpoint."
    for whole, one in rules.items():
        if inner := [s["as"][family] for s in one.get("parts", {}).values()
                     if family in s.get("as", {})]:  # fmt: skip
            hint = f": inside {whole}, transformers reads its fields as those of {inner[0]}. With "
            hint += f"{inner[0]!r} as its model_type, the card is how that class turns."
    return Caution("no-rule", 1, "model_type", f"No rule for model_type {family!r}{hint}")


def given_part(config: Json, rule: Json, name: str) -> tuple[Json | None, str, bool]:
    """Return a part as given, a dict, its ``model_type``, and whether it stands outside of it."""
    own, spec = config.get(name), rule["parts"][name]
    outside = own is None and name in rule.get("flat", ())
    if outside:
        left = {"model_type", *rule["parts"], *spec.get("left", ())}
        own = {k: v for k, v in config.items() if k not in left}
    if not isinstance(own, dict | None):
        raise ValueError(f"{name} must be a dict, got {type(own).__name__}")
    named = (own or {}).get("model_type") if spec["any"] else None
    if not isinstance(named, str | None):
        raise ValueError(f"{name}.model_type must be a text, got {named!r}")
    return own, spec.get("as", {}).get(named, named) or spec["type"], outside


class _Study:
    """Evaluates rules on a configuration and its parts."""

    def __init__(self, rules: Json, names: frozenset[str], kinds: frozenset[str]) -> None:
        self.rules, self.names, self.kinds = rules, names, kinds
        self.parts: list[RotatedPart] = []
        self.read: dict[str, None] = {}
        self.unread: dict[str, None] = {}
        self.warnings: dict[Caution, None] = {}
        self.places: dict[str, str] = {}

    def warn(self, code: str, severity: int, field: str, message: str) -> None:
        self.warnings[Caution(code, severity, field, message)] = None

    def met(self, where: str) -> bool:
        """Return whether a field, or a dict that it stands in, is read or without effect."""
        names = [where[: end.start()] for end in re.finditer(r"\.|$", where)]
        whole = (name for name in names if name == where or name.rsplit(".")[-1] not in DICTS)
        return any(name in self.read for name in whole) or any(n in self.unread for n in names)

    def part(self, config: Json, family: str, path: str, preset: Json | None = None) -> None:
        """Add the rotations of a part, of this ``model_type``, and of its own parts."""
        rule = self.rules.get(family, {})
        flat, lacks, start = [], False, len(self.parts)
        for name, spec in rule.get("parts", {}).items():
            own, named, outside = given_part(config, rule, name)
            if outside:
                flat.append(name)
                for field in spec.get("left", ()):
                    if config.get(field) is not None:
                        self.unused(dotted(path, field), field, config[field], set())
            inner = self.rules.get(named, {})
            where = path if name in flat else dotted(path, name)
            rests = spec.get("optional") or not inner.keys() & {"rotations", "parts", "null"}
            if own is None and rests:
                continue
            if spec.get("typed") and own and "model_type" not in own and not rests:
                text = f"{dotted(where, 'model_type')} must be given: its class fails without it"
                raise ValueError(text)
            if config.get(name, 0) is None:  # defaults stand for it
                self.read[dotted(path, name)] = None
            elif spec["any"] and own and "model_type" in own:
                self.read[dotted(where, "model_type")] = None
            if inner.get("null") or named not in self.rules:
                lacks = True
                why = (
                    f"{named!r} is no known model_type" if named else "its class has no model_type"
                )
                why = inner.get("null", why)
                self.warn("no-rule", 1, where, f"{where or named} has no rule: {why}.")
            defaults = spec.get("defaults", {}) if spec.get("always") or own is None else {}
            given, forced = self.overruled(config, own or {}, spec, (path, where), preset or {})
            try:
                self.part(given, named, where, {**defaults, **forced})
            except ValueError as error:
                astray = [one for one in inner.get("read", ()) if config.get(one) is not None]
                if own is not None or not astray:
                    raise
                words = f"{error}; outside of {where}, {', '.join(astray)} are not read"
                raise ValueError(words) from error
        fields = Fields(config, rule, path, preset or {}, self.places)
        for name in rule.get("also", ()):
            if config.get(name):
                self.unknown(dotted(path, name), "without it")
                fields.read[dotted(path, name)] = None
        turns, idle = bool(rule.get("rotations")), None
        if turns:
            fields.check(rule)
            idle = next((k for k, v in rule["on"].items() if not self.on(fields, k, v)), None)
            turns = idle is None
        if turns:
            self.rotations(fields, rule, family)
        if rule.get("rotations"):
            self.values(fields, rule, self.parts[start:])
        if rule.get("rotations") and len(self.parts) == start:
            whose, where = f"the layers of {path}" if path else "its layers", path or "model_type"
            why = f": {fields.name(idle)} is {fields.get(idle)!r}" if idle else ""
            self.warn("none-rotates", int(turns), where, f"None of {whose} rotates{why}.")
        if rule.get("by_head") and len(self.parts) > start:
            text = (
                "A position is the number of the head here, not that of the token: attention does"
            )
            self.warn("by-head", 1, path or "model_type", f"{text} not know the order of tokens.")
        if rule.get("indexer") and len(self.parts) > start:
            text = f"The indexer of {family} rotates, too, in the layers that have one"
            where = path or "model_type"
            self.warn("indexer", 0, where, f"{text}: it is not on this card.")
        self.read.update(fields.read)
        for name, value in fields.twice.items():
            self.unused(dotted(path, name), name, value, set(), value == fields.get(name))
        if rule and not (flat or lacks or rule.get("null")):
            self.silent(fields, rule, self.parts[start:], bool(rule.get("rotations")) > turns)

    def overruled(
        self, config: Json, own: Json, spec: Json, paths: tuple[str, str], preset: Json
    ) -> tuple[Json, Json]:
        """Return the fields of a part with those that its model sets in it, and such defaults."""
        forced: Json = {}
        given = dict(own)
        for name, default in spec.get("sets", {}).items():
            value = config.get(name, preset.get(name, default))
            if value is None:
                continue
            (place, inside), lost = (dotted(path, name) for path in paths), given.pop(name, None)
            self.places[inside] = place = self.places.get(place, place)
            (given if name in config else forced)[name] = value
            if lost == value:
                self.read[inside] = None
            elif lost is not None:
                says = "and overrules it" if name in config else "as its class sets it"
                self.unused(inside, name, lost, set(), False, f": {place} is {value}, {says}")
        return given, forced

    def on(self, fields: Fields, name: str, values: list[Any]) -> bool:
        """Return whether a field has a value with which something rotates; name a misspelt one."""
        value, where = fields.get(name), fields.name(name)
        if isinstance(value, str) and value not in values and TURNS.search(value.lower()):
            text = f"{where} is {value!r}, with which nothing rotates: did you mean {values[0]!r}?"
            self.warn("spelling", 2, where, text)
        return value in values

    def values(self, fields: Fields, rule: Json, made: list[RotatedPart]) -> None:
        """Warn of values of a type that a class does not take, and of effects not known."""
        layers, given = rule["layers"], fields.given
        listed = given.get((layers.get("types") or layers.get("switch") or {}).get("field"))
        listed = listed if isinstance(listed, list) else []
        yields = rule["rope"].get("yields") and any(given.get(name) for name in DICTS)
        for name, (takes, fails) in rule.get("takes", {}).items():
            if yields and name in fields.listed:
                continue
            where, met = fields.name(name), rule.get("when", {}).get(name, {})
            for one in sorted(letters(given[name]) & {*fails}) if name in given else ():
                if not listed or one not in met or any(kind in met[one] for kind in listed):
                    wanted = " or ".join(TYPES[own] for own in takes)
                    text = f"{where} must be {wanted}: with {TYPES[one]} a small model of its class"
                    more = "failed, or did something else."
                    self.warn("other-type", 2, where, f"{text} {more}")
                    fields.read[where] = None
        bases = {one.base for one in made}
        runs = [run for one in made for run in one.layers + one.without]
        count = 1 + max(unrolled(runs), default=-1)
        for name, value in {**rule.get("reaches", {}), LAYERWISE: None}.items():
            own, where = given.get(name), fields.name(name)
            same = bases if value == "base" and len(bases) == 1 else [value]
            fine = own == value
            if isinstance(own, list) and len(own) >= count:  # shorter ones run out of entries
                fine |= all(one in same for one in own)
            if not (
                fine
                or own in (None, {})
                or (name == LAYERWISE and _as_made(own, fields, rule, made))
            ):
                without = "without it" if value in (None, "base") else f"with {value!r}"
                self.unknown(where, without)
            if own is not None:
                fields.read[where] = None

        turning = sorted(n for one in made for n in unrolled(one.layers))
        for name in rule.get("rotating", ()):
            if made and name in given:
                fields.read[where := fields.name(name)] = None
                if given[name] != turning:
                    text = f"{where} must be the numbers of the layers that rotate, or left out: "
                    text += "its class fails, or does something else."
                    self.warn("layers-differ", 2, where, text)

    def by_layers(self, fields: Fields, one: Json, layers: list[int]) -> Json:
        """Return a rotation whose width is that of fields of single layers, where there are any."""
        given = fields.given.get(LAYERWISE, 0)
        if not one.get("by_layer") or not isinstance(given, dict | None):
            return one
        fields.get(LAYERWISE)
        some = [own for own in _entries_of(given or {}, layers) if isinstance(own, dict)]
        whole = fields.known("head_dim")
        widths = [str(own["head_dim"]) for own in some if own.get("head_dim", whole) != whole]
        if len({*widths}) > 1 or len(widths) not in (0, len(layers)):
            return one  # its class fails
        found = {**one, **dict.fromkeys(("head_dim", "dim"), widths[:1] or ["head_dim"])}
        return found | ({"from": fields.name(LAYERWISE)} if widths else {})

    def alike(self, fields: Fields, kind: str, layers: list[int]) -> None:
        """Warn of layers of a kind of which one has fields of its own that another has not."""
        given = fields.given.get(LAYERWISE)
        entries = _entries_of(given, layers) if isinstance(given, dict) else []
        some = [
            {k: repr(v) for k, v in own.items() if repr(fields.known(k, fields)) != repr(v)}
            for own in entries if isinstance(own, dict)
        ]  # fmt: skip
        if any(own != some[0] for own in some) or (some and some[0] and len(some) < len(layers)):
            where = fields.name(LAYERWISE)
            text = f"{where} gives some {kind} layers fields that others have not: its class fails."
            self.warn("layers-differ", 2, where, text)

    def entries(self, fields: Fields, kind: str | None, layers: list[int], made: Json) -> None:
        """Warn of entries for layers of a kind that turn by another value."""
        base, head, width = (made[key] for key in ("base", "head_dim", "width"))
        for name in fields.entry_lists:
            given, bases = fields.given.get(name), bool(BASE.search(name))
            due = base if bases else width
            some = [given[i] for i in layers if i < len(given)] if isinstance(given, list) else []
            for value in filter(positive, some):
                makes = value if bases else (int(head * value) + 1) // 2 * 2
                if makes == due or (bases and value == 1):  # a switch
                    continue
                whose = f"the {kind} layers" if kind else "the layers"
                used = f"{base:,.15g}" if bases else f"{width} of {head} channels"
                text = f"{fields.name(name)} has {value:,.15g} for one of {whose}, which turn by"
                self.warn("entries-differ", 1, fields.name(name), f"{text} {used}.")
                break

    def unknown(self, where: str, instead: str) -> None:
        """Warn of a value of which it is not known what it does."""
        text = f"{where} changes what rotates by a rule that is not known: this is the card"
        self.warn("not-known", 1, where, f"{text} {instead}.")

    def rotations(self, fields: Fields, rule: Json, family: str) -> None:
        """Add the rotations of a part."""
        layers = layers_of(fields, rule["layers"], self.kinds)
        types = rule["layers"].get("types", {})
        given = fields.given.get(types.get("field"))
        if types.get("forced") and given and given[-1] != types["last"][-1]:
            where = fields.name(types["field"])
            text = f"{where} ends with {given[-1]!r}: its class takes {types['last'][-1]!r} for it."
            self.warn("layer-forced", 1, where, text)
        rests, found = unrolled(layers["rests"]), []
        for one in rule["rotations"]:
            if own := layers.get(None if one["kind"] == "indexer" else one["kind"]):
                layer = max(unrolled(own)) if rule["rope"].get("final") else own[0][0]
                told = self.parameters(fields, rule["rope"], one["kind"], layer, {*layers})
                if told is None:
                    rests |= unrolled(own)
                    continue
                turning = sorted(unrolled(own))
                made = self.rotation(fields, rule, self.by_layers(fields, one, turning), *told)
                self.entries(fields, one["kind"], turning, made)
                if any(own.get("by_layer") for own in rule["rotations"]):
                    self.alike(fields, one["kind"], turning)
                made |= {"part": rule["part"], "model_type": family, "path": fields.path}
                own = self.own_indexers(fields, one["shared"], turning) if "shared" in one else own
                found.append({"kind": one["kind"], "layers": own, **made})
        self.parts += [RotatedPart(without=runs_of(sorted(rests)), **one) for one in found]

    def own_indexers(self, fields: Fields, name: str, layers: list[int]) -> list[list[int]]:
        """Return the layers that have an indexer of their own; none where it is not told which."""
        given = fields.get(name)
        if given is None:
            return []
        if not isinstance(given, list) or len(given) < len(layers):
            words = f"{fields.name(name)} must be a list with an entry for each of {len(layers)} "
            raise ValueError(f"{words}layers, got {given!r}")
        return runs_of([layer for layer in layers if given[layer] != "shared"])

    def parameters(
        self, fields: Fields, rope: Json, kind: str | None, layer: int, kinds: set[Any]
    ) -> tuple[Json, str] | None:
        """Return what layers, ``layer`` first, are told, and their base's place; None at rest.

        ``kinds`` are those that layers have.
        """
        dicts, may = {}, rope["kinds"].get("", {}).get("scaling")  # be false, and so on
        for field in DICTS if rope["dict"] else ():
            dicts[field] = fields.get(field)
            if not isinstance(dicts[field], dict | None):
                words = f"{fields.name(field)} must be a dict or null, got {dicts[field]!r}"
                if dicts[field] or field != DICTS[0] or not may:
                    raise ValueError(words)
                self.warn("taken-as-null", 1, fields.name(field), f"{words}: it is taken as null.")
                dicts[field] = None
        legacy, given = dicts.get("rope_scaling"), dicts.get("rope_parameters")
        due = kinds & {*rope["kinds"]} if rope.get("apart") else ()
        if given is not None and not all(isinstance(given.get(own), dict) for own in due):
            more = ": it counts with an entry for each kind of layer alone"
            self.unused(fields.name(DICTS[1]), DICTS[1], given, set(), not given, more)
            fields.read.pop(fields.name(DICTS[1]))
            given = None
        label, both = "rope_parameters", (legacy, given) if legacy and given else ()
        replaces = rope.get("replaces", "") if fields.has("rope_scaling") else ""
        if "n" in replaces and legacy is None:
            words = f"{fields.name('rope_scaling')} must be left out, for null replaces"
            raise ValueError(f"{words} rope_parameters, got null")
        if "d" in replaces and (legacy or "n" in replaces):
            label, given, legacy = "rope_scaling", legacy, None
        own = rope["kinds"][kind if rope["nested"] and kind != "indexer" else min(rope["kinds"])]
        apart = bool(given and rope.get("apart"))  # from fields outside, which do not count
        legacy = legacy if own["scaling"] and not apart else None
        name = fields.name(label)
        if rope["nested"]:
            entry = None if given is None else given.get(kind)
            lacks = legacy is not None and kind not in (given if given is not None else {kind})
            there = own["absent"] is None if given is None else kind in given
            if rope.get("rests") and entry is None and there:
                return None
            nulled = kind in (given or ()) and rope.get("nulls") is False
            fills = rope["fills"] and not (lacks or nulled)
            if given is not None and entry is None and not fills:
                raise ValueError(f"{name} must have an entry for {kind!r}")
            name = f"{name}.{kind}"
            for key, value in (given or {}).items():
                if rope.get("strict") and key not in rope["kinds"]:
                    words = f"entries for {', '.join(rope['kinds'])} alone, got one for {key!r}"
                    raise ValueError(f"{fields.name(label)} must have {words}")
                if key not in kinds:
                    one = rope["kinds"].get(key, {})
                    made = {"rope_theta": one.get("default"), **(one.get("absent") or {})}
                    fits = bool(one) and (value is None or value == made)  # as its class saves it
                    more = ": no layer is of this kind" if one else ""
                    where = f"{fields.name(label)}.{key}"
                    self.unused(where, key, value, set(rope["kinds"]), fits, more)
        else:
            entry, legacy = legacy or given, None
            name = fields.name("rope_scaling") if entry is not given else name
        if not isinstance(entry, dict | None):
            raise ValueError(f"{name} must be a dict, got {entry!r}")
        told = {**(entry or {}), **(legacy or {})}
        found = {**((own["absent"] or {}) if entry is None else {}), **told}
        theta = () if apart or (given and rope.get("yields")) else own["theta"]
        source = f"{name}.rope_theta" if "rope_theta" in told else DEFAULT
        known = {**fields.preset, **fields.given}
        over = next((field for field in own.get("over", ()) if field in known), None)
        at = over or next((field for field in theta if field in known), None)
        outside = at is not None and rope.get("yields") and "rope_theta" not in told
        if over is not None or outside or "rope_theta" not in found:
            found["rope_theta"] = own["default"] if at is None else fields.at(at, layer)
            if at and fields.has(at):
                source = fields.name(at)
            elif found["rope_theta"] is None:
                raise ValueError(f"{name} must have rope_theta: its class has no default")
        base = found["rope_theta"]
        if not (positive(base) and 2.0**-126 <= base < 2.0**128):
            raise ValueError(f"{source} must be a positive number (else no base), got {base!r}")
        if over is not None and told.get("rope_theta") not in (None, base):
            where, words = f"{name}.rope_theta", f"{fields.name(over)} is {base:,.15g}"
            self.warn("base-lost", 2, where, f"{where} is not read: {words}, and overrules it.")
        joins = label == "rope_parameters" and (rope["nested"] or entry is given)
        if not (both and self.two(fields, *both, joins, source, base)) and source == DEFAULT:
            at = fields.name("rope_scaling") if legacy and not entry else name
            self.lost(fields, told or given, name, base, list(rope["kinds"].values()), at)
        origin = dict.fromkeys(entry or {}, name)
        origin |= dict.fromkeys(legacy or {}, fields.name("rope_scaling"))
        kept = _type_in(own["absent"] or {}) if entry is None else "default"
        for field in DICTS if kept != "default" else ():
            if fields.has(field) and fields.get(field) is None:
                text = f"{fields.name(field)} is null, and its class's own {kept} stays."
                self.warn("own-rescaling", 1, fields.name(field), text)
        if kept != "default" and not any(map(fields.has, DICTS)):
            text = f"{name} is not given: its class's own {kept} is taken."
            self.warn("own-rescaling", 0, name, text)
        found |= {"_name": name, "_from": origin, "_layer": layer, "_given": entry is not None,
                  "_apart": apart}  # fmt: skip
        return found, source

    def two(
        self, fields: Fields, read: Json, lost: Json, joins: bool, source: str, base: float
    ) -> bool:
        """Name what is lost where both spellings are given; return whether a base is."""
        one, other, found = *map(fields.name, DICTS), False
        kinds = [_type_in(read), _type_in(lost)]
        alike = kinds[0] == kinds[1] and all(read.get(k, v) == v for k, v in lost.items())
        if "default" not in kinds and not alike:
            text = f"{one} names {kinds[0]!r}, {other} {kinds[1]!r}: a model has one rescaling."
            self.warn("rescaling-of-rescaling", 2, one, text)
        elif joins:
            self.warn("two-spellings", 1, other, f"{one} and {other} are both given.")
        for key, own in {} if joins else lost.items():
            for name, value in own.items() if isinstance(own, dict) else [("", own)]:
                where = f"{key}.{name}".rstrip(".")
                text, gone = f"{other} is not read beside {one}; its {where}", "rope_theta" in where
                self.unread[f"{other}.{where}"] = None
                if gone and positive(value) and value != base:
                    text = f"{text} {value:,.15g} is lost: the base is {source} {base:,.15g}."
                    self.warn("base-lost", 2, f"{other}.{where}", text)
                    found = True
                else:
                    fits = value in (None, "default", base if gone else read.get(key))
                    text = f"{text} has no effect."
                    self.warn("no-effect", 0 if fits else 1, f"{other}.{where}", text)
        return found

    def lost(
        self, fields: Fields, entry: Any, name: str, base: float, kinds: list[Json], at: str
    ) -> None:
        """Warn where the default is taken for a base that was given or forgotten, in a field."""
        apart = {field for one in kinds if one["default"] != base for field in one["theta"]}
        others = [k for k, v in fields.given.items() if BASE.search(k) and positive(v)]
        others = [k for k in others if k not in apart]  # another kind of layer has those
        words = f"the base is the class's default {base:g}."
        if others and base not in (fields.given[field] for field in others):
            field, where = fields.name(others[0]), name.rsplit(".")[-1]
            text = f"{field} is not read{f' for {where}' if len(kinds) > 1 else ''}: {words}"
            self.warn("base-lost", 2, field, text)
        elif entry:
            kind = name.rsplit(".")[-1]
            if at != name:
                words = f"{kind} layers take the class's default {base:,.15g}."
            self.warn("base-lost", 1, at, f"{at} has no rope_theta: {words}")

    def rotation(
        self, fields: Fields, rule: Json, one: Json, parameters: Json, source: str
    ) -> Json:
        """Return all of a `RotatedPart` but its place in the model."""
        head_dim, head_from = fields.first(one["head_dim"])
        if "//" in head_from:
            self.guessed(fields, head_from, head_dim)
        dim, width_from = fields.first(one["dim"])
        odd = width_from if dim % 2 else ""
        at = fields.name(width_from.split()[0])
        if max(head_dim, dim) > MOST_CHANNELS:
            raise ValueError(f"{at} must be at most {MOST_CHANNELS:,}, got {max(head_dim, dim):,}")
        kind, told = self.type_of(parameters, rule["rescalings"], rule["rope"])
        if partial := one["partial"] or (WHOLE if kind not in PLAIN else None):
            fraction, words = self.fraction(fields, partial, parameters, kind)
            if fraction != 1.0:
                width_from, at = SUM.sub(r"(\g<0>)", f"{width_from} x {words}"), words
            if kind == "proportional":
                told["partial_rotary_factor"] = fraction
            elif "whole" in partial and fraction != 1.0:
                text = f"{words} must be 1 with rope_type {kind!r}, for its class rotates whole "
                raise ValueError(f"{text}heads, got {fraction:g}")
            else:
                dim = int(dim * fraction)
        if dim % 2 and rule.get("uneven"):
            text = f"{at} makes {dim} channels, an odd number: its class fails."
            self.warn("width-odd", 2, at, text)
        elif dim % 4 and rule.get("uneven") == 4:
            text = f"{at} makes {dim} channels, not a multiple of 4: its class fails."
            self.warn("width-odd", 2, at, text)
        longest = fields.count("max_position_embeddings") if rule["lengths"] else None
        if kind in rule.get("needs", ()) and fields.known("head_dim", 0) is None:
            where = fields.name("head_dim")
            text = f"{where} must be given with rope_type {kind!r}: its class fails without it."
            self.warn("head-width-missing", 2, where, text)
        due, words = fields.first(rule["foreign"] if "foreign" in rule else one["dim"])
        if "foreign" in rule and fields.get("head_dim") not in (due, None):
            words = f"{fields.name('head_dim')} must be {due}, as {words}"
            raise ValueError(f"{words}, got {fields.get('head_dim')!r}")
        if kind in ORIGINAL:
            told = self.original(fields, told, rule, parameters, longest)
        if kind == "yarn" and "factor" not in told:
            told["factor"] = (longest or 0) / told["original_max_position_embeddings"]
            where = f"{parameters['_name']}.factor"
            text = f"{where} is null: the quotient of the two lengths is taken."
            self.warn("factor-null", 1, where, text)
        for low, high in BACKWARDS:
            if told.get(low, 0) > (told.get(high) or told.get(low, 0)):
                words = (
                    f"{told[low]:g} is more than {high}, {told[high]:g}: transformers only warns"
                )
                text = (
                    f"{parameters['_name']}.{low} {words}, and turns by a ramp that runs backwards"
                )
                raise ValueError(f"{text}; there is no card of that here")
        if dim % 2 and kind not in ("default", "linear"):
            text = f"{at} makes {dim} channels, an odd number: with {kind} there is no card here"
            raise ValueError(text)
        series = Series(kind, float(parameters["rope_theta"]), told, longest)
        try:
            inv_freq, sections = arranged(one["axes"], dim, parameters, series)
        except (TypeError, ArithmeticError) as error:
            raise ValueError(f"{parameters['_name']} does not fit: {error}") from error
        if one["axes"] and one["axes"]["mode"] == "interleaved":
            given = parameters.get("mrope_section", one["axes"].get("sections"))
            counts = np.count_nonzero(inv_freq, axis=0).tolist()
            where = f"{parameters['_name']}.mrope_section"
            text = f"{where} is {given}, and the {len(inv_freq)} pairs of a head make it "
            if given != counts:
                self.warn("sections-differ", 1, where, f"{text}{counts}.")
        inv_freq = inv_freq * self.scale(fields, one)
        rotated = inv_freq.reshape(len(inv_freq), -1).any(axis=1)
        width = 2 * int(rotated.sum())
        seen = bool(one["axes"]) and rule["part"] != "text"  # two axes share no odd number
        if odd and (seen or width > head_dim):
            names = [w for w in odd.split() if w.isidentifier()]
            values = " ".join(str(fields.get(w)) if w in names else w for w in odd.split())
            absent = " and ".join(fields.name(w) for w in names if not fields.has(w))
            text = f"{fields.spelt(odd)}, {values}, is an odd number of channels"
            raise ValueError(f"{text}; {absent} not given" if absent else text)
        if width > head_dim:
            raise ValueError(f"{width_from} makes {width} channels, more than a head's {head_dim}")
        place = "all" if width == head_dim else one["place"] if rotated.all() else "elsewhere"
        if kind != "default":
            given = longest if fields.has("max_position_embeddings") else None
            self.advise(series, told, parameters["_name"], given)
        self.keys(fields, parameters, kind, one, rule)
        told_length = fields.has("max_position_embeddings")
        trained = longest if told_length and kind not in ORIGINAL else None
        return {
            "head_dim": head_dim, "head_dim_from": one.get("from", self.told(fields, head_from)),
            "width": width, "width_from": one.get("from", self.told(fields, width_from)),
            "place": place,
            "layout": self.layout(fields, one), "direction": one["direction"],
            "base": float(parameters["rope_theta"]), "base_from": source,
            "rescaling": None if kind == "default" else [kind, told],
            "attention_factor": series.factor * head_dim ** one["power"],
            "table_factor": series.factor,
            "inv_freq": inv_freq[rotated].tolist(), "sections": sections,
            "trained_length": _whole(told.get("original_max_position_embeddings", trained)),
            "max_length": longest if told_length else None,
            "dynamic": kind in ("dynamic", "longrope"),
        }  # fmt: skip

    def told(self, fields: Fields, words: str) -> str:
        """Return an expression of fields, or whose default it is where none of them is given."""
        names = re.findall(r"[a-z_]\w*", words)
        given = "//" in words or " x " in words or any(map(fields.has, names))
        return words if given else DEFAULT

    def scale(self, fields: Fields, one: Json) -> float:
        """Return how far a coordinate goes from one patch to the next; 1 where it counts them."""
        if "scale" not in one:
            return 1.0
        told = one["scale"]
        (by, _), (over, words) = fields.first(told["by"]), fields.first(told["over"])
        size = words.split()[0]
        if over > 1 and not fields.has(size):
            text = f"{fields.name(size)} not given: frequencies are for images of {over} patches "
            self.warn("image-size-guessed", 1, fields.name(size), f"{text}a side.")
        return told["times"] * by / over

    def layout(self, fields: Fields, one: Json) -> str:
        """Return the layout, which a field may choose."""
        if "flag" not in one:
            return one["layout"]
        value = fields.get(one["flag"]["field"])
        return one["flag"]["true" if value or value is None else "false"]

    def type_of(self, parameters: Json, rescalings: Json, rope: Json) -> tuple[str, Json]:
        """Return the type of rescaling and its parameters that are told."""
        name = parameters["_name"]
        field = "rope_type" if "rope_type" in parameters or "type" not in parameters else "type"
        asked = parameters.get(field, "default")
        kind = rescalings.get(asked) if isinstance(asked, str) else None
        if kind in (None, "refused"):
            near = difflib.get_close_matches(str(asked), rescalings, 1)
            hint = f" (did you mean {near[0]!r}?)" if near and near[0] != asked else ""
            known = ", ".join(k for k, v in rescalings.items() if v != "refused")
            raise ValueError(f"{name}.{field} must be one of {known}, got {asked!r}{hint}")
        for key in rope.get("scaled", ()) if asked != "default" else ():
            if type(parameters.get(key)) not in (int, float):
                raise ValueError(f"{name} must have {key}, a number, for {field} {asked!r}")
        if kind == "unknown":
            self.unknown(f"{name}.{field}", "with 'default'")
            kind = "default"
        if field == "rope_type" and parameters.get("type", asked) != asked:
            words = f"{name}.type {parameters['type']!r} is not read: rope_type is {asked!r}."
            self.warn("no-effect", 1, f"{name}.type", words)
        if {"rope_type", "type"}.isdisjoint(parameters) and (given := self.scales(parameters)):
            text = f"{name} has {given} and no rope_type: it is read as 'default'."
            self.warn("type-missing", 1, name, text)
        for key in PARAMETERS[kind]:
            may = key in (*ZERO, "attention_factor", "truncate")  # be null, or what lengths tell
            may |= key == "factor" and kind in ("yarn", "longrope")
            absent = key in REQUIRED[kind] and key not in parameters
            if absent or (parameters.get(key, 0) is None and not may):
                same = "" if kind == asked else f", which its class reads as {kind!r}"
                raise ValueError(f"{name} must have {key} for {field} {asked!r}{same}")
        if kind == "dynamic" and rope.get("alpha") and parameters.get("alpha"):
            kind = "ntk"
        keys = [k for k in PARAMETERS[kind] if k != "truncate" or not rope["nested"]]
        if "truncate" in keys and "truncate" in parameters:  # null is false, too
            parameters = {**parameters, "truncate": parameters["truncate"] or False}
        told = {k: parameters[k] for k in keys if parameters.get(k) is not None}
        for key, value in told.items():
            if key in LISTS:
                fine, wanted = isinstance(value, list) and all(map(positive, value)), "numbers > 0"
            elif key == "truncate":
                fine, wanted = isinstance(value, bool), "true or false"
            else:
                fine, wanted = positive(value) or (key in ZERO and value == 0), "a number > 0"
            if not fine:
                raise ValueError(f"{name}.{key} must be {wanted}, got {value!r}")
        return kind, told

    def fraction(
        self, fields: Fields, rule: Json, parameters: Json, kind: str
    ) -> tuple[float, str]:
        """Return the part of a head that rotates, and the field that tells."""
        value: Any = parameters.get("partial_rotary_factor")
        words = f"{parameters['_name']}.partial_rotary_factor"
        if "partial_rotary_factor" not in parameters:
            value, words = rule.get("default", 1.0), DEFAULT
            value = value if kind == "default" else rule.get("rescaled", value)
            for name in () if parameters["_apart"] else rule.get("fields", ()):
                if " / " in name:
                    over, under = map(fields.value, name.split(" / "))
                    if over and under:
                        value, words = over / under if over % under else over // under, name
                        break
                elif fields.has(name) and not ("whole" in rule and fields.get(name) is None):
                    value, words = fields.at(name, parameters["_layer"]), fields.name(name)
                    break
        if not (positive(value) and value <= 1):
            raise ValueError(f"{words} must be a number in (0, 1], got {value!r}")
        return float(value), words

    def original(
        self, fields: Fields, told: Json, rule: Json, parameters: Json, longest: int | None
    ) -> Json:
        """Return the parameters with the length in training, which a field outside overrules."""
        name, field = parameters["_name"], "original_max_position_embeddings"
        counts = rule["rope"].get("outside", True) and not rule["rope"]["nested"]
        value = fields.count(field) if counts else None
        if counts and fields.has(field) and value is None:
            words = f"{fields.name(field)} must be left out or a positive integer"
            raise ValueError(f"{words} with a rescaling, got None")
        if field not in told and _type_in(parameters) not in ORIGINAL:
            text = f"{name} must have {field} with {_type_in(parameters)!r}: its class fails."
            self.warn("original-length-missing", 2, name, text)
        if value is not None:
            if told.get(field, value) != value:
                text = f"{name}.{field} is not read: {fields.name(field)} is {value:,}."
                self.warn("no-effect", 1, f"{name}.{field}", text)
            elif field not in told and not fields.has(field):
                text = f"{name} has no {field}: the class's default, {value:,}, is taken for it."
                self.warn("original-length-forgotten", 1, name, text)
            return told | {field: value}
        if field not in told and longest is None:
            raise ValueError(f"{name} must have {field}, or the model max_position_embeddings")
        if field not in told:
            words = f"{name} has no {field}: max_position_embeddings, {longest:,}, is taken for it."
            self.warn("original-length-forgotten", 1, name, words)
        return {field: longest} | told

    def guessed(self, fields: Fields, words: str, head_dim: int) -> None:
        """Warn where a quotient is no whole number, or one of its fields is a default."""
        names = [name for name in words.split() if name.isidentifier()]
        unknown = [name for name in names if not fields.has(name)]
        over, under = map(fields.count, names[:2])
        if unknown:
            named = " and ".join(map(fields.name, unknown))
            text = f"{named} not given: the head width {head_dim} is a guess."
            self.warn("head-width-guessed", 1, fields.name(unknown[0]), text)
        elif over and under and over % under:
            text = (
                f"{fields.spelt(words)} is no whole number: the head width {head_dim} is a guess."
            )
            self.warn("head-width-guessed", 1, fields.name(names[0]), text)

    def advise(self, series: "Series", told: Json, name: str, longest: int | None) -> None:
        """Warn of parameters that do nothing, or contradict each other."""
        kind, factor = series.kind, told.get("factor")
        original = told.get("original_max_position_embeddings")
        grows = "nothing changes up to max_position_embeddings; beyond it frequencies do."
        words = {"dynamic": grows if factor == 1 else "", "longrope": ""}
        if series.idle and (text := words.get(kind, f"{kind} changes nothing.")):
            text = f"{name}.factor is {factor or 1:g}: {text}"
            self.warn("factor-one", 1, f"{name}.factor", text)
        elif factor is not None and factor < 1:
            text = f"{name}.factor {factor:g} is less than 1: {kind} makes the context shorter."
            self.warn("factor-below-one", 1, f"{name}.factor", text)
        lone = [key for key in ("mscale", "mscale_all_dim") if told.get(key)]
        if lone and ("attention_factor" in told or len(lone) < 2):
            other = {"mscale": "mscale_all_dim", "mscale_all_dim": "mscale"}[lone[0]]
            beside = "attention_factor" in told
            why = "with attention_factor" if beside else f"without {other}"
            text = f"{name}.{lone[0]} {IDLE} {why}."
            self.warn("no-effect", 1, f"{name}.{lone[0]}", text)
        if kind == "llama3" and told["low_freq_factor"] == told["high_freq_factor"]:
            text = f"{name}.high_freq_factor is low_freq_factor: the rule is a step without a ramp."
            self.warn("no-ramp", 0, f"{name}.high_freq_factor", text)
        if longest and original:
            field = f"{name}.original_max_position_embeddings"
            ratio = longest / original
            if kind == "yarn" and ratio not in (factor, 1):
                text = (
                    f"{name}.factor is {factor:g}, and counts; max_position_embeddings / original"
                )
                self.warn("lengths-differ", 1, field, f"{text} is {ratio:.6g}.")
            elif ratio < 1 or (kind == "llama3" and ratio == 1):
                text = f"{field} {original!r} is not less than max_position_embeddings {longest}."
                self.warn("lengths-differ", 1, field, text)

    def scales(self, parameters: Json) -> str | None:
        """Return the first parameter of a rescaling that is given."""
        return next((key for key in parameters["_from"] if key in ANY), None)

    def keys(self, fields: Fields, parameters: Json, kind: str, one: Json, rule: Json) -> None:
        """Note keys of ``rope_parameters`` that are read and those that are not."""
        rope = rule["rope"]
        used = {"rope_theta", "rope_type", "type", *PARAMETERS[kind]}
        used |= {*rope.get("keeps", ()), *rope.get("wants", ())}
        used -= {"truncate"} if rope["nested"] else set()
        wants = [
            *rope.get("wants", ()),
            *(rope.get("wants_plain", ()) if kind == "default" else ()),
        ]
        wants = wants if parameters["_given"] else []
        for key in (
            *wants,
            *(rope.get("old", ()) if parameters["_name"] == fields.name(DICTS[0]) else ()),
        ):
            lacks = key not in parameters["_from"] or parameters[key] is None
            if lacks and key not in PARAMETERS[kind]:
                text = f"{parameters['_name']} must have {key}: its class fails without it."
                self.warn("key-missing", 2, parameters["_name"], text)
        if one["partial"] is not None or kind != "default":
            used.add("partial_rotary_factor")
        used |= {"mrope_section"} if (one["axes"] or {}).get("mode") in SECTIONED else set()
        if rule["rescalings"].get(_type_in(parameters)) == "unknown":
            used |= {*parameters["_from"]}
            fields.get("original_max_position_embeddings")
        known = {*used, *ANY}
        for key, name in parameters["_from"].items():
            where, value = f"{name}.{key}", parameters[key]
            fits = None
            if key == "beta_fast" and value == 32:  # as where it is not given
                fits = True
            elif key in ("mrope_interleaved", "interleaved"):
                fits = value in (None, (one["axes"] or {}).get("mode") == "interleaved")
            elif key == "truncate" and rope["nested"]:
                fits = value in (None, True)
            if key in used and fits is not False:
                fields.read[where] = None
            elif isinstance(value, dict) or key in self.kinds:
                text = f"{where} is not read, or fails: one rotation for all these layers is due."
                self.warn("no-effect", 2, where, text)
            else:
                self.unused(where, key, value, known, fits)

    def unused(
        self, where: str, key: str, value: Any, known: set[str], fits: bool | None = None,
        more: str = "",
    ) -> None:  # fmt: skip
        """Note a field without effect, and the name that was perhaps meant."""
        self.unread[where] = None
        if near := self.near(key, known):
            text = f"{where} is no field that is read: did you mean {near!r}?"
            self.warn("spelling", 2, where, text)
        else:
            if fits is None:
                fits = value in (1, None, "rope", "rotary", "default") and value is not True
                fits = fits or value in ([], {}) or value is bool(SWITCH.match(key))
            self.warn("no-effect", 0 if fits else 1, where, f"{where} {IDLE}{more}.")

    def near(self, key: str, known: set[str]) -> str | None:
        """Return the known name that a field is the singular, the plural or a misspelling of."""
        other = key.removesuffix("s") if key.endswith("s") else f"{key}s"
        if key not in known and other in known:
            return other
        if key in known or key in self.names:
            return None
        if _snake(key) in known:
            return _snake(key)
        found = difflib.get_close_matches(key, known, 1, 0.84)
        return found[0] if found and abs(len(found[0]) - len(key)) <= 2 else None

    def silent(self, fields: Fields, rule: Json, made: list[RotatedPart], off: bool) -> None:
        """Note fields about rotation that were given and not read; where it is off, no more."""
        known = {*rule.get("read", ()), *fields.defaults, *rule.get("aliases", ())}
        layers = rule.get("layers", {})
        every = {layers[name]["every"] for name in ("types", "switch") if name in layers}
        listed = layers.get("types", {}).get("field", "layer_types")
        about = ABOUT if "rotations" in rule or made else TURNS
        rope = rule.get("rope", {"dict": False, "kinds": {}})
        scales = rope.get("replaces") or any(one["scaling"] for one in rope["kinds"].values())
        here: dict[str, set[float]] = {
            "base": {one.base for one in made},
            "fraction": {one.width / one.head_dim for one in made},
            "length": {n for one in made for n in (one.trained_length, one.max_length) if n},
            "width": {n for one in made for n in (one.head_dim, one.width)},
        }
        for field, value in fields.given.items():
            where = fields.name(field)
            if field in DICTS:
                if value and not (made and rope["dict"] and (scales or field == DICTS[1])):
                    plain = isinstance(value, dict) and _type_in(value) == "default"
                    more = "" if plain else ", and its class may refuse the file"
                    self.unused(where, field, value, {field}, off or None, more)
                    self.read.pop(where, None)  # it was only looked for
            elif where in fields.read or field in rule.get("parts", ()) or (
                field[:1] == "_" and (field[1:] not in every or fields.has(listed))
            ):  # fmt: skip
                continue
            elif not (made or off) and isinstance(value, str) and TURNS.fullmatch(value.lower()):
                self.unused(where, field, value, known, False)  # nothing turns, and it is asked to
            elif (
                (field.lstrip("_") in every and type(value) is int)
                or about.search(_snake(field))
                or (field == "type" and made and value in ("su", *PARAMETERS))
                or self.near(field, known)
            ):
                words = _snake(field)
                same = next((here[k] for k, v in QUANTITIES.items() if v.search(words)), set())
                fits = value in same if same and type(value) in (int, float) else off or None
                if not made and QUANTITIES["width"].search(words):
                    fits = True
                if made and "interleave" in field:
                    fits = value == any("interleaved" in one.layout for one in made)
                if fields.has(listed) and re.search("pattern|interval|every", field):
                    fits = True  # layers are listed beside it
                self.unused(where, field, value, known, fits)
            elif isinstance(value, dict):
                none = off or value.get("rope") is False or None  # as in MPT's
                for key in filter(value.get, value):
                    if key in ("rope_theta", *DICTS) or (not made and TURNS.search(str(key))):
                        self.unused(f"{where}.{key}", key, value[key], {key}, none)


def _type_in(parameters: Json) -> Any:
    """Return the type of rescaling as spelt in ``rope_parameters``."""
    return parameters.get("rope_type", parameters.get("type", "default"))


def _plain_layer(layer: str) -> str:
    """Return the number of a layer without zeros before it."""
    return layer.lstrip("0") or "0"


def _entries_of(given: Json, layers: list[int]) -> list[Any]:
    """Return the fields of single layers of these, where there are any."""
    told = {_plain_layer(layer): own for layer, own in given.items()}
    return [told[str(layer)] for layer in layers if str(layer) in told]


def _as_made(given: Any, fields: Fields, rule: Json, made: list[RotatedPart]) -> bool:
    """Return whether fields of single layers repeat the widths that their heads have."""
    wide = {str(n): one.head_dim for one in made for n in unrolled(one.layers)}
    count, _ = fields.first(rule["layers"]["count"])
    quotient = any("//" in one.head_dim_from + one.width_from for one in made)
    quotient |= any(one.rescaling is not None and one.rescaling[0] == "yarn" for one in made)
    fine = set() if fields.known("head_dim") is None else {"head_dim"}  # else its class fails
    fine |= set() if quotient else {"hidden_size", "num_attention_heads"}
    return isinstance(given, dict) and all(
        isinstance(own, dict) and n.isdecimal() and int(n) < count
        and own.get("head_dim", wide.get(n)) == wide.get(n)
        and not {key for key in own if key in rule["read"] or ABOUT.search(key)} - fine
        for n, own in ((_plain_layer(layer), own) for layer, own in given.items())
    )  # fmt: skip


def _snake(name: str) -> str:
    """Return a name such as headDim or head-dim with its words set apart by underscores."""
    return re.sub(r"[-. ]|(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _leaves(config: Json, path: str = "") -> Iterable[str]:
    """Return the dotted names of fields, and of those in dicts but for lists of labels."""
    for name, value in config.items():
        where, inside = dotted(path, name), isinstance(value, dict)
        named = inside and all(re.fullmatch("[A-Za-z_][A-Za-z_0-9]*", str(own)) for own in value)
        yield from _leaves(value, where) if named else [where]


def _whole(value: Any) -> Any:
    """Return a float without a fraction, such as 32768.0, as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
