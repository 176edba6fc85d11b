"""Ask a class of configurations: load one as a file is, and hear what the family's code does.

`Family` asks, `disagreement` says whether a rule predicts the answer.
"""

import copy
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ropescope import Report
from ropescope.configuration import RotatedPart, evaluate
from ropescope.layers import unrolled

from .families import report_on
from .recording import AttentionRecord, models_of, record_all, recordable, summary
from .special import ALONE, ASKED, CHOSEN, ENOUGH, SMALL, TABLES

__all__ = [
    "NOT_REACHED",
    "SIZES",
    "SWITCHES",
    "Family",
    "Heard",
    "RefusedError",
    "disagreement",
    "factor_of",
    "raw_of",
    "value_of",
]

EXACT = 1e-6
"""Largest relative error of a frequency; float32 has 1e-7 of its own, of what a ramp divides."""

SIZES = {
    "hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "num_hidden_layers": 6, "intermediate_size": 32,
    "max_position_embeddings": 640,
    "embed_dim": 128, "qk_rope_head_dim": 12, "qk_nope_head_dim": 20, "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "v_head_dim": 16, "index_head_dim": 28, "rotary_dim": 12, "n_routed_experts": 4,
    "image_size": 160, "patch_size": 16, "memory_attention_hidden_size": 96,
    "memory_attention_num_attention_heads": 2, "window_size": 8, "decoder_hidden_size": 128,
    "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8,
    "n_group": 1, "topk_group": 1, "kv_channels": 16, "global_head_dim": 24,
}  # fmt: skip
"""Small sizes; those that a class refuses are left out."""

SWITCHES: dict[str, list[Any]] = {
    "position_embedding_type": ["rope", "rotary"],
    "position_embeddings_type": ["rotary"],
    "alibi": [False, None],
    "use_mem_rope": [True],
}
"""Fields that turn rotation on, and with which values."""

NOT_REACHED = "nothing was reached"
"""Of a class for which no attention runs."""

LOOSE = ("head_dim", "global_head_dim", "num_key_value_heads")
"""Fields that a class may read without having them."""


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
    labels
        The entries of ``rope_parameters`` by type of layer, where their names differ.
    working
        A class of models with weights that ran, and the name of what it was given.
    """

    def __init__(self, made: Any, name: str) -> None:
        self.made, self.name, self.alone = made, name, False
        self.labels: dict[str, str] = {}
        self.working: tuple[Any, str] | None = None
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
        self.small |= SMALL.get(made.__name__, {})
        for key, value in (*SIZES.items(), *SIZES.items()):  # one may wait for another
            twice = self.plain(key) in map(self.plain, self.small.keys() - {key})
            twice |= key in SMALL.get(made.__name__, {})
            if not twice and (value_of(self.default, key) is not None or key in LOOSE):
                with suppress(Exception):
                    self.loaded(self.raw(**{key: value}))
                    self.small[key] = value

    def loaded(self, raw: dict[str, Any]) -> Any:
        """Return the configuration as loaded from a file; raise where its class refuses it."""
        try:
            return self.made.from_dict(_parted(copy.deepcopy(raw)))
        except Exception as error:  # whatever it raises
            raise RefusedError(summary(error)) from error

    def takes(self, **more: Any) -> bool:
        """Return whether the class takes a small configuration, changed so."""
        with suppress(RefusedError):
            self.loaded(self.raw(**more))
            return True
        return False

    def hear(self, **more: Any) -> list[Heard]:
        """Return what the family's code does with a small configuration, changed so."""
        config = self.loaded(self.raw(**more))
        torch.manual_seed(0)  # routers and experts of random weights
        try:
            if self.made.__name__ == ASKED.get(self.name):
                run = self.name in TABLES and self.name not in ENOUGH
                whole = record_all([config], self.name)[0] if run else []
                fine = any(one.rotated and one.modules for one in whole)
                records, refusals = whole if fine else ALONE[self.name](config), []
            elif self.name in ENOUGH:
                records, refusals = [], []
            else:
                records, refusals = record_all([config], self.name)
        except Exception as error:  # whatever it raises
            raise RefusedError(summary(error)) from error
        own = {c.__name__: c.config_class is self.made for c, _ in recordable(config)}
        if self.made.sub_configs_defaults and any(own.values()):  # not what its parts do
            records = [one for one in records if own.get(one.model, True)]
        fine = any(one.rotated and (one.modules or self.alone) for one in records)
        if refusals and not fine:
            raise RefusedError(refusals[0])
        if not records:
            raise RefusedError(NOT_REACHED)
        records = [one for one in records if not re.search("cross|encoder_attn", str(one.modules))]
        types = value_of(config, "layer_types") or []
        return [Heard(*self._place(one, types), _turning(one)) for one in records]

    def runs(self, **more: Any) -> bool:
        """Return whether something is heard of a small configuration, changed so."""
        try:
            self.hear(**more)
        except RefusedError:
            return False
        return True

    def works(self, **more: Any) -> bool:
        """Return whether a model with weights runs with a small configuration, changed so.

        It is the first that runs with any; images are asked before tokens.
        """
        models = [self.working[0]] if self.working else models_of(self.made)
        for model in (one for one in models if not one.__name__.endswith("PreTrainedModel")):
            with suppress(Exception), torch.no_grad():  # whatever it raises
                torch.manual_seed(0)
                made = model(self.loaded(self.raw(**more))).eval()
                size = getattr(made.config, "image_size", None) or 32
                inputs = {
                    "pixel_values": torch.zeros(1, 3, size, size),
                    "input_ids": torch.ones(1, 3, dtype=torch.long),
                    "inputs_embeds": torch.zeros(1, 3, made.config.hidden_size),
                }
                for name in [self.working[1]] if self.working else inputs:
                    with suppress(Exception):
                        made(**{name: inputs[name]})
                        self.working = model, name
                        return True
        return False

    def _place(
        self, one: AttentionRecord, types: list[str]
    ) -> tuple[str | None, tuple[int, ...] | None]:
        """Return the kind of a record and its layers."""
        numbers = [re.search(r"\d+", name) for name in one.modules]
        known = None if not one.modules else tuple(sorted({int(n[0]) for n in numbers if n}))
        inner = "indexer" if one.modules and "ndexer" in one.modules[0] else None
        own = {self.labels.get(types[n]) for n in known or ()} if self.labels else {one.kind}
        return inner or (own.pop() if len(own) == 1 else None), known

    def plain(self, name: str) -> str:
        """Return the name of a field that has another spelling."""
        return self.made.attribute_map.get(name, name)

    def raw(self, **more: Any) -> dict[str, Any]:
        """Return the small configuration, changed so; what is changed stands in one spelling."""
        changed = {self.plain(name) for name in more}
        kept = {
            k: v
            for k, v in self.small.items()
            if self.plain(k) not in changed and k.split(".")[0] not in changed
        }
        return {k: v for k, v in {**kept, **more}.items() if v != "leave out"}

    def resolved(self, **more: Any) -> dict[str, Any]:
        """Return ``rope_parameters`` as its class completes them, none given but in ``more``."""
        plain = self.raw(**{"rope_parameters": "leave out", **more})
        return getattr(self.loaded(plain), "rope_parameters", None) or {}


def _parted(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration whose dotted names stand in dicts of their own."""
    found = {k: v for k, v in raw.items() if "." not in k}
    for name, value in raw.items():
        if "." in name:
            outer, inner = name.split(".")
            found.setdefault(outer, {})[inner] = value
    return found


def _turning(one: AttentionRecord) -> Report | None:
    """Return the report on a record; None where queries get longer far out at most."""
    report = report_on(one) if one.rotated else None
    return report if report and (report.width or not report.attention_factor) else None


def raw_of(family: Family, **more: Any) -> dict[str, Any]:
    """Return the small configuration, changed so, as a file has it."""
    return {"model_type": family.made.model_type, **_parted(family.raw(**more))}


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
            known = {n for part in told for n in unrolled(part.without)}
            rests = set(one.layers or ()) - known
            if rests and one.kind != "indexer" and told:
                return f"layers {sorted(rests)} rest"
            continue
        for layer in one.layers or (None,):
            own = [part for part in told if _covers(part, one, layer)]
            if not own and layer is None and "numbers" in rule["layers"]:
                continue  # no layer is of this kind
            found = [fault_of(part, one.report) for part in own]
            if not own or all(found):
                return next(filter(None, found), f"no part for layer {layer}")
            matched |= {id(part) for part, fault in zip(own, found, strict=True) if not fault}
    turning = {n for one in heard if one.report for n in one.layers or ()}
    more = {n for part in told if part.kind != "indexer" for n in unrolled(part.layers)} - turning
    if turning and more:
        return f"layers {sorted(more)} do not rotate"
    missing = [part for part in told if id(part) not in matched]
    return f"{missing[0].kind or 'a part'} was not heard" if missing else None


def _covers(part: RotatedPart, one: Heard, layer: int | None) -> bool:
    """Return whether a part is about a layer of what was heard; None where no model ran."""
    if (part.kind == "indexer") != (one.kind == "indexer"):
        return False
    if part.kind == "indexer" and not part.layers:  # those that share another's are not told
        return True
    return layer in unrolled(part.layers) if layer is not None else one.kind in (None, part.kind)


def fault_of(part: RotatedPart, report: Report) -> str | None:
    """Return what differs between a part and a report, or None."""
    for name in ("head_dim", "width", "layout", "place", "direction"):
        pair = name == "layout" and part.width == 2  # one pair has all layouts
        if getattr(part, name) != getattr(report, name) and not pair:
            return f"{name} {getattr(part, name)!r}, heard {getattr(report, name)!r}"
    waves, told = report.inv_freq, np.array(part.inv_freq)
    ramp = (part.rescaling or ["", {}])[1].get("factor", 1.0)
    exact = max(EXACT, 1e-7 * ramp)
    if waves.shape != told.shape or not np.allclose(told, waves, rtol=exact, atol=1e-12):
        apart = "shapes" if waves.shape != told.shape else f"{np.abs(told - waves).max():.1e}"
        return f"frequencies differ: {apart}"
    if abs(part.attention_factor / factor_of(report) - 1.0) > 1e-5:
        return f"factor {part.attention_factor:.6g}, heard {factor_of(report):.6g}"
    return None


def factor_of(report: Report) -> float:
    """Return the factor of the pairs that rotate over that of the channels that do not."""
    return (report.attention_factor or 1.0) / (report.unrotated_factor or 1.0)
