"""Ask public configurations at their own sizes, and compare what the code does with the rule.

Of a model with many layers, the first few are heard; widths and lengths stay as they are.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

from ropescope.configuration import given_part

from . import RESULTS
from .asking import Family, RefusedError, disagreement
from .rules import FAR
from .special import CHOSEN

__all__ = ["checkpoints", "fault", "parts_of_row"]

MOST = 8
"""Layers to hear."""


def checkpoints() -> list[dict[str, Any]]:
    """Return the public configurations, with their names and sources."""
    return json.loads((RESULTS / "checkpoints.json").read_text("utf-8"))


def parts_of_row(
    config: dict[str, Any], rules: dict[str, Any], kind: str | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ``model_type`` and fields of each part of a configuration that a rule is about.

    Parts of which no field was seen are left out.
    """
    name = kind or config.get("model_type")
    rule = rules.get(str(name), {})
    for field in rule.get("parts", ()):
        own, named, _ = given_part(config, rule, field)
        if own:
            yield from parts_of_row(own, rules, named)
    if rule.get("rotations"):
        yield str(name), {k: v for k, v in config.items() if k != "model_type"}


def shortened(raw: dict[str, Any], rule: dict[str, Any], made: Any) -> dict[str, Any]:
    """Return a configuration of the first layers: lists with an entry for each are cut, too."""
    field, aliases = rule["layers"]["count"][0].split()[0], made.attribute_map
    plain = aliases.get(field, field)
    spelt = next((k for k in raw if aliases.get(k, k) == plain), field)
    count = raw.get(spelt) or getattr(made(), plain)
    if count <= MOST:
        return raw
    found = {k: v[:MOST] if isinstance(v, list) and len(v) >= count else v for k, v in raw.items()}
    return {**found, spelt: MOST}


def fault(kind: str, raw: dict[str, Any], rule: dict[str, Any]) -> str | None:
    """Return how a rule's prediction differs from what the code does; None where it does not.

    Raises
    ------
    RefusedError
        If the class refuses the configuration, or its code does not run.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    family = Family(CONFIG_MAPPING[kind], rule["family"])
    chosen = CHOSEN.get(family.made.__name__, {})
    family.small = {k: v for k, v in chosen.items() if "rope" not in k and "rotary" not in k}
    if hasattr(family.made, "vocab_size_per_layer_input"):  # a table of gigabytes
        family.small["vocab_size_per_layer_input"] = 64
    family.alone = rule.get("alone", False)
    family.labels = {
        k: v for k, v in rule["layers"].get("rotation", {}).items() if v not in (None, k)
    }
    if "'longrope'" in str(raw):  # frequencies of a short text are heard: all texts are short
        original, longest = raw["original_max_position_embeddings"], raw["max_position_embeddings"]
        more = {"max_position_embeddings": FAR * longest // original}
        raw = {**raw, "original_max_position_embeddings": FAR, **more}
    short = shortened(copy.deepcopy(raw), rule, family.made)
    try:
        heard = family.hear(**short)
    except RefusedError:  # layers that use what others keep
        short, heard = raw, family.hear(**raw)
    return disagreement(rule, {"model_type": kind, **short}, heard)
