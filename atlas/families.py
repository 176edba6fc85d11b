"""Every family of transformers: which files rotate, which classes run, and its entry."""

import ast
import importlib
import inspect
import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ropescope import Report, identify

from . import NOT_RUN, TABLE_ALONE
from .recording import AttentionRecord, parts_of, record_all, summary
from .rows import layers, row
from .special import ALONE, CHOSEN, ENOUGH, NOTES, NOTHING, REASONS, TABLES, complete

ROTATES = re.compile(
    r"^ *(def|class) \w*(rotat|rotary|rope|freqs_ci)", re.IGNORECASE | re.MULTILINE
)
"""A function or a class that rotates, by its name."""


def modeling_files(family: str) -> Iterator[Path]:
    """Yield the files with the models of a family; of ``*``, those of all."""
    import transformers

    home = Path(transformers.__file__).parent / "models"
    yield from home.glob(f"{family}/modeling_*.py")


@cache
def families() -> list[str]:
    """Return the families whose modeling files define a function or a class that rotates."""
    files = modeling_files("*")
    return sorted({f.parent.name for f in files if ROTATES.search(f.read_text("utf-8"))})


def has_indexer(family: str) -> bool:
    """Return whether a class for indexers in the modeling files of a family rotates."""
    trees = (ast.parse(file.read_text("utf-8")) for file in modeling_files(family))
    kinds = (one for tree in trees for one in tree.body if isinstance(one, ast.ClassDef))
    return any("Indexer" in one.name and "apply_rotary" in ast.unparse(one) for one in kinds)


@cache
def borrowers() -> list[str]:
    """Return the families without models of their own: AutoModel makes those of others of them."""
    from transformers import CONFIG_MAPPING, MODEL_MAPPING

    found = set()
    for name in CONFIG_MAPPING:
        with suppress(Exception):  # a class that cannot be imported, or has no model
            made = CONFIG_MAPPING[name]
            own, other = (one.__module__.split(".")[2] for one in (made, MODEL_MAPPING[made]))
            if other in families() and not [*modeling_files(own)]:
                found.add(own)
    return sorted(found)


def configurations(family: str) -> list[Any]:
    """Return every configuration of a family, with its defaults."""
    from transformers import PreTrainedConfig

    made = []
    home = importlib.import_module(f"transformers.models.{family}")
    for file in sorted(Path(home.__file__ or "").parent.glob("configuration_*.py")):
        module = importlib.import_module(f"transformers.models.{family}.{file.stem}")
        for value in vars(module).values():
            own = inspect.isclass(value) and value.__module__ == module.__name__
            if own and issubclass(value, PreTrainedConfig):
                try:
                    made.append(value())
                except Exception:  # a configuration that its user has to choose
                    continue
    return [complete(config) for config in made]


def entry_of(family: str, lists: list[Any]) -> dict[str, Any]:
    """Return a family's entry; its frequencies are added to ``lists``."""
    torch.manual_seed(0)
    configs = configurations(family)
    records, refusals = _records(family, configs)
    rotations, without = [], []
    for one in sorted(records, key=lambda one: one.rotated):
        report = report_on(one) if one.rotated else None
        if report is None:
            without.append(one)
        elif not report.width and report.attention_factor:  # queries get longer far out alone
            without.append(replace(one, note=report.findings[0].message))
        elif (found := row(_noted(one, family), report, lists)) not in rotations:
            rotations.append(found)  # a model may stand in two configurations
    kinds = sorted({type(p).__name__ for c in configs for p in parts_of(c)} & set(CHOSEN))
    chosen = [f"set in {kind}: {json.dumps(CHOSEN[kind])}" for kind in kinds]
    status, why = _status(family, bool(rotations), refusals)
    return {
        "status": status,
        "why": why or "; ".join(refusals + chosen) or None,
        "rotations": rotations,
        # where tables alone are known, attention was not reached
        "without": [] if family in TABLES else _without(without),
    }


def _without(records: list[AttentionRecord]) -> list[dict[str, Any]]:
    """Return the layers that do not rotate, but for cross-attention."""
    return [
        {"model": one.model, "kind": one.kind, "layers": layers(one.modules), "note": one.note}
        for one in records
        if not re.search("cross|encoder_attn|encoder_decoder", str(one.modules))
    ]


def _records(family: str, configs: list[Any]) -> tuple[list[AttentionRecord], list[str]]:
    """Return what is recorded of a family, and why classes could not be."""
    records, refusals = ([], []) if family in ENOUGH else record_all(configs, family)
    own: list[AttentionRecord] = []
    try:
        own = ALONE[family]() if family in ALONE else []
    except Exception as error:  # whatever a family's code raises
        refusals.append(summary(error))
    return [one for one in records if one.model not in {o.model for o in own}] + own, refusals


def _status(family: str, rotates: bool, refusals: list[str]) -> tuple[str, str | None]:
    """Return the status of a family, and the reason where it is not in what was tried."""
    if family in REASONS:
        return "refused", REASONS[family]
    if rotates:
        return "recorded", None
    made, used = _functions(family)
    if made and not made & used:
        return "dead code", "the function that rotates is called nowhere"
    if family in NOTHING and not made:
        return "none", NOTHING[family]
    if refusals:
        return "refused", None
    reached = "what it rotates was not reached"
    return "refused", reached if made else "no query that was recorded depends on its position"


def _noted(one: AttentionRecord, family: str) -> AttentionRecord:
    """Return a record with what is known of its family, and with what was not run."""
    note = NOTES.get(one.model, NOTES.get(family, one.note)) or ""
    alone = not one.modules and TABLE_ALONE not in note
    return replace(one, note="; ".join(filter(None, (note, NOT_RUN if alone else ""))) or None)


def _functions(family: str) -> tuple[set[str], set[str]]:
    """Return functions that apply a rotation, and all names that are read but by a decorator."""
    made: set[str] = set()
    used: set[str] = set()
    for file in modeling_files(family):
        nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
        decorators = [d for n in nodes for d in getattr(n, "decorator_list", [])]
        inside = {id(n) for d in decorators for n in ast.walk(d)}
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and re.search("apply.*(rot|rope)", node.name):
                made.add(node.name)
            elif isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.Name) and id(node) not in inside:
                used.add(node.id)
    return made, used


def report_on(one: AttentionRecord) -> Report:
    """Return the report on a record."""
    return identify(one.rotate, one.head_dim, positions=one.positions(), dtype=torch.float32)


def timed(family: str) -> tuple[str, dict[str, Any], list[Any], float]:
    """Return the entry of one family, with its lists of frequencies and seconds."""
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    began = time.perf_counter()
    lists: list[Any] = []
    try:
        entry = entry_of(family, lists)
    except Exception as error:  # whatever a family's code raises
        entry = {"status": "refused", "why": summary(error), "rotations": [], "without": []}
    return family, entry, lists, time.perf_counter() - began
