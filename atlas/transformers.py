"""Every family of transformers: which files rotate, which classes run, what has to be told them."""

import ast
import importlib
import inspect
import json
import os
import re
import resource
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from atlas.recording import Heard, listen, parts_of
from ropescope import identify

from . import NOT_RUN, UNHEARD
from .rows import heard_row, layers, row
from .special import ALONE, CHOSEN, ENOUGH, FUNCTIONS, NOTES, NOTHING, REASONS, complete

ROTATES = re.compile(
    r"^ *(def|class) \w*(rotat|rotary|rope|freqs_ci)", re.IGNORECASE | re.MULTILINE
)
"""A function or a class that rotates, by its name."""


@cache
def families() -> list[str]:
    """Return the families whose modeling files define a function or a class that rotates."""
    import transformers

    home = Path(transformers.__file__).parent / "models"
    files = home.glob("*/modeling_*.py")
    return sorted({f.parent.name for f in files if ROTATES.search(f.read_text("utf-8"))})


def configurations(family: str) -> list[Any]:
    """Return every configuration of a family, with its defaults."""
    from transformers import PreTrainedConfig

    found = []
    home = importlib.import_module(f"transformers.models.{family}")
    for file in sorted(Path(home.__file__ or "").parent.glob("configuration_*.py")):
        module = importlib.import_module(f"transformers.models.{family}.{file.stem}")
        for value in vars(module).values():
            own = inspect.isclass(value) and value.__module__ == module.__name__
            if own and issubclass(value, PreTrainedConfig):
                found.append(value)
    made = []
    for make in found:
        try:
            made.append(make())
        except Exception:  # a configuration that only its user can choose
            continue
    return [complete(config) for config in made]


LIMIT, SECONDS = 4 << 30, 120
"""Bytes of memory for a process, and seconds of a processor for a family."""


def ask(family: str, frequencies: list[Any]) -> dict[str, Any]:
    """Return the family's entry; lists of frequencies are added to those known."""
    torch.manual_seed(0)
    configs = configurations(family)
    heard, refusals = ([], []) if family in ENOUGH else listen(configs, family)
    if family in ALONE:
        own = _tried(ALONE[family], refusals)
        heard = [one for one in heard if one.part not in {o.part for o in own}] + own
    rotations = []
    still = [one for one in heard if not one.turned]
    for one in (one for one in heard if one.turned):
        report = report_on(one)
        if report.width or not report.attention_factor:
            found = heard_row(noted(one, family)) | row(report, frequencies)
            if found not in rotations:  # a model may stand in two configurations
                rotations.append(found)
        else:  # queries get longer far out, and turn nowhere
            still.append(replace(one, note=report.findings[0].words))
    kinds = sorted({type(p).__name__ for c in configs for p in parts_of(c)} & set(CHOSEN))
    refusals += [f"set in {kind}: {json.dumps(CHOSEN[kind])}" for kind in kinds]
    entry: dict[str, Any] = {"status": "asked", "why": "; ".join(refusals) or None}
    if family in REASONS:
        entry = {"status": "refused", "why": REASONS[family]}
    elif not rotations and is_dead(family):
        entry = {"status": "dead code", "why": "the function that rotates is called nowhere"}
    elif not rotations and family in NOTHING and not _functions(family)[0]:
        entry = {"status": "none", "why": NOTHING[family]}
    elif not rotations and any(not said.startswith("set in") for said in refusals):
        entry["status"] = "refused"
    elif not rotations and calls_one(family):
        entry = {"status": "refused", "why": "what it rotates was not reached"}
    elif not rotations:
        entry = {"status": "refused", "why": "no query that was heard depends on its position"}
    entry["rotations"] = rotations
    entry["without"] = [
        {"model": one.part, "kind": one.kind, "layers": layers(one.names), "note": one.note}
        for one in still
        if not re.search("cross|encoder_attn|encoder_decoder", str(one.names))
        and family not in FUNCTIONS  # their attention was not reached
    ]
    return entry


def noted(one: Heard, family: str) -> Heard:
    """Return what was heard with what has to be known of its family, and with what was not run."""
    note = NOTES.get(one.part, NOTES.get(family, one.note)) or ""
    alone = not one.names and UNHEARD not in note
    return replace(one, note="; ".join(filter(None, (note, alone and NOT_RUN))) or None)


def _tried(make: Callable[[], list[Heard]], refusals: list[str]) -> list[Heard]:
    try:
        return make()
    except Exception as error:
        refusals.append(f"{type(error).__name__}: {' '.join(str(error).split())[:120]}")
        return []


def is_dead(family: str) -> bool:
    """Whether functions that rotate are defined in a family's files, and none of them is used."""
    made, used = _functions(family)
    return bool(made) and not made & used


def calls_one(family: str) -> bool:
    """Whether a function that rotates is defined in a family's files and used there."""
    made, used = _functions(family)
    return bool(made & used)


def _functions(family: str) -> tuple[set[str], set[str]]:
    """Return functions that apply a rotation, and all that is read but by a decorator, by name."""
    import transformers

    made: set[str] = set()
    used: set[str] = set()
    for file in (Path(transformers.__file__).parent / "models" / family).glob("modeling_*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
        functions = [n for n in nodes if isinstance(n, ast.FunctionDef)]
        made |= {n.name for n in functions if re.search("apply.*(rot|rope)", n.name)}
        above = [d for n in nodes for d in getattr(n, "decorator_list", [])]
        beside = {id(n) for d in above for n in ast.walk(d)}
        used |= {n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in beside}
        used |= {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    return made, used


def report_on(one: Heard) -> Any:
    """Return the report on what was heard."""
    return identify(one.rotate, one.head_dim, positions=one.positions(), dtype=torch.float32)


TOO_MUCH = f"it takes more than {LIMIT >> 30} GiB of memory or {SECONDS} s of a processor"


def _watch(until: float) -> None:
    """End this process before it ends others."""
    while not done.is_set():
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if memory > LIMIT >> 10 or time.process_time() > until:
            os._exit(1)
        done.wait(0.2)


done = threading.Event()


def timed(family: str) -> tuple[str, dict[str, Any], list[Any], float]:
    """Return the entry of one family, in a process of its own, with its lists of frequencies."""
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    done.clear()
    until = time.process_time() + SECONDS
    watch = threading.Thread(target=_watch, args=(until,), daemon=True)
    watch.start()
    began = time.perf_counter()
    frequencies: list[Any] = []
    try:
        entry = ask(family, frequencies)
    except Exception as error:
        said = " ".join(str(error).split())[:120]
        why = f"{type(error).__name__}: {said}"
        entry = {"status": "refused", "why": why, "rotations": [], "without": []}
    done.set()
    watch.join()
    return family, entry, frequencies, time.perf_counter() - began
