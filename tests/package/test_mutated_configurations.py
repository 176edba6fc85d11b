"""Public configurations with one thing changed, as a hand or a tool might, against transformers.

Of each, transformers' own class and rotary embedding are asked. A card is wrong if its frequencies
or its factor are others. It is silent if transformers raises, or warns of more than advice, or
leaves out of account what the change says of the rotation, and the card has no refusal, no warning,
and no note that the value is harmless, for it is the model's anyway.
"""

import copy
import importlib
import inspect
import json
import logging
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import atlas
from ropescope.configuration import Specification, load_rules, rope_of

transformers = pytest.importorskip("transformers")
pytest.importorskip("torch")

ROWS = json.loads((atlas.RESULTS / "checkpoints.json").read_text("utf8"))
DRAWN = 400

ADVICE = re.compile(
    r"Unrecognized keys|Please set the `factor` field|must be an integer, got \d+\.0$"
    r"|attention_factor field must be a float greater than 0, got 1$|layer_types. Consider"
)
"""Warnings after which transformers computes what was asked for; of keys, the card's notes tell."""

Config = dict[str, Any]
Tables = dict[tuple[str, str | None], tuple[np.ndarray, float]]
Answer = tuple[str | None, list[str], Tables]


def text_of(config: Config) -> Config:
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) else config


def length_of(config: Config) -> int:
    return text_of(config).get("max_position_embeddings") or 4096


def fields(**changed: Any) -> Callable[[Config], None]:
    return lambda config: text_of(config).update(copy.deepcopy(changed))


def rope(where: str = "rope_scaling", **told: Any) -> Callable[[Config], None]:
    """A dict of a rescaling instead of the configuration's own; "max" is the model's length."""

    def change(config: Config) -> None:
        text, length = text_of(config), length_of(config)
        own = text.pop("rope_parameters", None) or text.pop("rope_scaling", None) or {}
        text.pop("rope_scaling", None)
        text[where] = {k: length if v == "max" else copy.deepcopy(v) for k, v in told.items()}
        text[where] |= {k: own[k] for k in ("mrope_section",) if k in own}

    return change


def beside(name: str, **told: Any) -> Callable[[Config], None]:
    """A part with fields of its own, or a dict that is no part."""
    return lambda config: config.update({name: {**(config.get(name) or {}), **told}})


def renamed(name: str, other: str, value: Any) -> Callable[[Config], None]:
    def change(config: Config) -> None:
        text = text_of(config)
        text[other] = text.pop(name, None) or value

    return change


def layers(*kinds: str, cut: int = 0) -> Callable[[Config], None]:
    def change(config: Config) -> None:
        count = text_of(config).get("num_hidden_layers") or 32
        text_of(config)["layer_types"] = (list(kinds) * count)[: count - cut]

    return change


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": "max"}
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 1024,
}  # fmt: skip
LINEAR = {"rope_type": "linear", "factor": 4.0}
NESTED = {
    "full_attention": {"rope_type": "default", "rope_theta": 5e5},
    "sliding_attention": {"rope_type": "default", "rope_theta": 3e4},
}
ODD: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("rope_theta", (2e4, 0, "1e6", None, [1e4], True)),
    ("partial_rotary_factor", (0.5, 50, "50%", 0, None)),
    ("head_dim", (96, 33, 0, "128", 64.0, None)),
    ("hidden_size", (4100, "4096", None, 0)),
    ("num_attention_heads", (3, 0, "32", None)),
    ("num_key_value_heads", ("8", 0)),
    ("num_hidden_layers", (3, "32", 0)),
    ("max_position_embeddings", (10**7, "4096", None)),
    ("original_max_position_embeddings", (512, None, "4096")),
    ("rope_scaling", ("yarn", 4.0, [], {}, {"yarn": {"factor": 4.0}}, {"factor": 4.0}, NESTED)),
    ("rope_parameters", ("linear", {}, NESTED, {"full_attention": None})),
    ("rope_freq_base", (3e6,)), ("rotary_base", (3e6,)), ("base", (3e6,)), ("rotary_pct", (0.3,)),
    ("rope_freq_scale", (0.25,)), ("ropeScaling", (LINEAR,)), ("rope_scalling", (LINEAR,)),
    ("headDim", (96,)), ("rope_thetta", (3e6,)), ("use_rope", (False,)), ("alibi", (True,)),
    ("rope_scaling_factor", (8.0,)), ("use_dynamic_ntk", (True,)), ("attn_factor", (1.2,)),
    ("mscale", (0.7,)), ("long_factor", ([2.0],)), ("swa_head_dim", (48,)), ("type", ("yarn",)),
)  # fmt: skip
INSIDE: tuple[Config, ...] = (
    YARN, LLAMA3, LINEAR, {"type": "yarn", "factor": 4.0}, YARN | {"type": "linear"},
    YARN | {"factor": "4.0"}, YARN | {"factor": None}, YARN | {"factor": 0.5}, YARN | {"facter": 2},
    YARN | {"rope_theta": 5e5}, YARN | {"truncate": None}, YARN | {"attention_factor": "auto"},
    YARN | {"mscale": 0.7}, YARN | {"finetuned": True}, YARN | {"beta_fast": 1, "beta_slow": 32},
    YARN | {"original_max_position_embeddings": 1234}, YARN | {"partial_rotary_factor": 0.5},
    LLAMA3 | {"high_freq_factor": 1.0}, LLAMA3 | {"original_max_position_embeddings": 10**7},
    LLAMA3 | {"low_freq_facter": 1.0}, LINEAR | {"factor": 1}, LINEAR | {"factor": 0.25},
    LINEAR | {"beta_fast": 16}, {"type": "dynamic", "factor": 2.0}, {"type": "ntk", "factor": 4.0},
    {"type": "dynamic", "alpha": 8.0}, {"type": "YaRN", "factor": 4.0}, {"type": None},
    {"rope_type": "default", "factor": 4.0}, {"type": "linear", "scale": 4.0},
    {"rope_type": "proportional", "partial_rotary_factor": 0.5}, YARN | {"attention_factor": 1.5},
    {"rope_type": "proportional", "factor": None}, {"type": "dynamic", "factor": 1.0},
    YARN | {"original_max_position_embeddings": None},
    YARN | {"factor": 1, "attention_factor": 1.5},
    {"type": "su", "short_factor": [1.0] * 64, "long_factor": [2.0] * 64},
    {"rope_type": "longrope", "short_factor": [1.0] * 64, "long_factor": [2.0] * 64, "factor": 4.0,
     "original_max_position_embeddings": 1024},
)  # fmt: skip
CHANGES: list[tuple[str, Callable[[Config], None]]] = [
    *((f"{name}={value!r}", fields(**{name: value})) for name, own in ODD for value in own),
    *((f"{where} {told}", rope(where, **told)) for told in INSIDE for where in (
        "rope_scaling", "rope_parameters")),
    ("both", fields(rope_scaling=LINEAR, rope_parameters={**LINEAR, "rope_theta": 3e4})),
    ("saved, and YaRN", fields(
        rope_scaling={**LINEAR}, rope_parameters={"rope_type": "default", "rope_theta": 3e5})),
    ("in a tower", beside("vision_config", rope_scaling=LINEAR)),
    ("in a text_config", beside("text_config", rope_theta=5e5, rope_scaling=LINEAR)),
    ("in another dict", beside("attn_config", rope_theta=5e5)),
    ("outside", lambda config: config.update(rope_scaling=LINEAR)),
    ("ropeTheta", renamed("rope_theta", "ropeTheta", 2e6)),
    ("rope_base", renamed("rope_theta", "rope_base", 2e6)),
    ("layers short", layers("full_attention", cut=1)), ("layers global", layers("global")),
    ("layers empty", fields(layer_types=[])), ("layers full", layers("full_attention")),
    ("layers in turn", layers("sliding_attention", "full_attention")),
]  # fmt: skip
HARMLESS = re.compile(
    r"(hidden_size|num_attention_heads|num_key_value_heads|max_pos\w+|num_hidden_layers)=\d|layers "
)
"""Changes that need not change a rotation, where a class takes them."""


class Listening(logging.Handler):
    """Keeps transformers' warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage())


@pytest.fixture
def listening(monkeypatch) -> Listening:
    logger, handler = logging.getLogger("transformers"), Listening()
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "propagate", False)
    monkeypatch.setattr(logger, "level", logging.WARNING)
    once = lambda self, *args, **_: self.warning(*args)  # noqa: E731
    monkeypatch.setattr(logging.Logger, "warning_once", once, raising=False)
    return handler


def tables_of(config: Config) -> Tables:
    """Frequencies and factors of all rotary embeddings that take a configuration, by kind."""
    whole = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
    inner = [getattr(whole, name, None) for name in whole.sub_configs_defaults]
    found: Tables = {}
    for own in [one for one in inner if isinstance(one, transformers.PreTrainedConfig)] or [whole]:
        module = type(own).__module__.replace("configuration_", "modeling_")
        vision = "ision" in type(own).__name__
        for name, made in vars(importlib.import_module(module)).items():
            if not (inspect.isclass(made) and name.endswith("RotaryEmbedding")):
                continue
            takes = inspect.signature(made).parameters
            if made.__module__ != module or "config" not in takes or ("Vision" in name) != vision:
                continue
            table = made(own)
            for key, value in table.named_buffers():
                if key.endswith("inv_freq") and "original" not in key:
                    kind = key.removesuffix("inv_freq").rstrip("_") or None
                    factor = getattr(table, f"{kind}_attention_scaling" if kind else
                                     "attention_scaling", 1.0)  # fmt: skip
                    place = "vision" if vision else "text"
                    found[place, kind] = value.double().numpy(), float(factor)
            break
    return found


def asked(config: Config, listening: Listening) -> Answer:
    """What transformers raises, warns of, and computes."""
    listening.heard.clear()
    try:
        tables = tables_of(config)
        return None, list(listening.heard), tables
    except Exception as error:  # whatever it raises
        return f"{type(error).__name__}: {error}"[:200], list(listening.heard), {}


def difference(spec: Specification, tables: Tables) -> str | None:
    """What is wrong of a card."""
    for part in spec.parts:
        table = tables.get((part.part, part.kind)) or tables.get((part.part, None))
        if table is None or part.kind == "indexer" or part.part == "vision":
            continue
        told, own = np.array(part.inv_freq), table[0][table[0] != 0]
        told = told.max(axis=1) if told.ndim == 2 else told
        if told.shape != own.shape or not np.allclose(told, own, rtol=3e-5, atol=1e-12):
            return f"{part.kind}: frequencies {told[-3:]}, transformers {own[-3:]}"
        if spec.family != "phimoe" and abs(part.attention_factor / table[1] - 1) > 1e-4:
            return f"{part.kind}: factor {part.attention_factor}, transformers {table[1]}"
    return None


def leaves(config: Config, path: str = "") -> dict[str, Any]:
    """Values of a configuration by dotted names."""
    found = {}
    for name, value in config.items():
        inner = leaves(value, f"{path}{name}.") if isinstance(value, dict) and value else {}
        found |= inner or {f"{path}{name}": value}
    return found


def fault(
    name: str, config: Config, before: Answer, changed: Config, listening: Listening
) -> str | None:
    """What is wrong or silent of the card of a changed configuration."""
    try:
        spec = rope_of(copy.deepcopy(changed))
    except ValueError:
        return None
    if any(one.code == "no-rule" for one in spec.warnings):
        return None
    (base_error, base_heard, base_tables), warnings = before, rope_of(config).warnings
    old, new = leaves(config), leaves(changed)
    touched = {k for k, v in new.items() if repr(old.get(k, ...)) != repr(v)}
    told = [one for one in spec.warnings if one.severity and (
        one not in warnings or one.field in touched)]  # fmt: skip
    error, heard, tables = asked(changed, listening)
    if error or base_error:
        return None if told or error == base_error else f"silent: transformers raises {error}"
    if not tables:
        return None
    wrong = difference(spec, tables)
    if wrong:
        return f"wrong: {wrong}"
    warned = [one for one in heard if one not in base_heard and not ADVICE.search(one)]
    if told or not spec.parts:
        return None
    if warned and "no-ramp" not in {one.code for one in spec.warnings}:  # as Llama 4 is published
        return f"silent: transformers warns {warned[0]}"
    noted = {one.field for one in spec.warnings} | set(spec.read)
    same = tables.keys() == base_tables.keys() and all(
        np.array_equal(tables[k][0], base_tables[k][0]) and tables[k][1] == base_tables[k][1]
        for k in tables
    )
    unsaid = {k for k in touched - noted if new[k] is not None}
    return f"silent: {sorted(unsaid)} changes nothing" if (
        same and unsaid and not HARMLESS.match(name)) else None  # fmt: skip


@pytest.mark.parametrize("seed", [39])
def test_no_card_of_a_changed_configuration_is_wrong_or_silent(seed, listening):
    types = load_rules()["types"]
    rows = [
        row["config"] for row in ROWS
        if row["complete"] and types.get(row["config"].get("model_type"), {}).get("null") is None
        and row["config"].get("model_type") in transformers.CONFIG_MAPPING
    ]  # fmt: skip
    draw, faults = random.Random(seed), []
    rows = draw.sample([row for row in rows if rope_of(row).parts], 40)
    known = [asked(config, listening) for config in rows]
    for _ in range(DRAWN):
        which, (name, change) = draw.randrange(len(rows)), draw.choice(CHANGES)
        config = rows[which]
        changed = copy.deepcopy(config)
        change(changed)
        found = fault(name, config, known[which], changed, listening)
        if found:
            faults.append(f"{config['model_type']}, {name}: {found}")
    assert not faults, f"{len(faults)} of {DRAWN}:\n" + "\n".join(faults)
