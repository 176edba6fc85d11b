"""Record what the attention modules of transformers models do, each as a function to probe.

A model that takes tokens runs as a whole (`record_model`). Vision and audio towers are recorded in
cells: one attention module with the table that gives it positions (`record_cell`). `record_all`
records every part of a configuration. How a model runs without weights stands in `recorder`.
"""

import importlib
import inspect
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from .recorder import (
    ATTENTION,
    MIXERS,
    Recorder,
    Scored,
    build,
    in_float32,
    parameters_of,
)

__all__ = [
    "AttentionRecord", "classes_of_tables", "parts_of", "record_all", "record_cell",
    "record_cells", "record_model", "rope_fault", "summary",
]  # fmt: skip

ROTARY = re.compile("Rotary|Rope|RoPE")
TOKENS = 4096  # of one run, to limit memory
FEW = 11  # positions of the first run: no model has as many heads
FAR = (0, 401, 6402, 6803, 102404)  # where layers, or queries and keys, may differ
SCALED = {"linear", "dynamic", "yarn", "llama3"}  # rescalings that need a factor
BASE_LOST = (
    " (the base is lost where a legacy rope_scaling is assigned to a loaded configuration; assign "
    "rope_parameters with rope_theta instead)"
)


def summary(error: BaseException, longest: int = 120) -> str:
    """Return an error's type and the beginning of its message, on one line."""
    message = ""
    with suppress(Exception):  # its message may fail, too
        message = " ".join(str(error).split())[:longest]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


@dataclass(frozen=True)
class AttentionRecord:
    """Attention modules of one model that give the same queries.

    Attributes
    ----------
    model
        The class that ran.
    modules
        Their names, in order.
    head_dim, axes
        Channels of a head; numbers in a position.
    rotated
        Whether queries depend on the position.
    rotate
        ``rotate(x, positions)``: from the projection of a query to its score in the first head,
        norms left out.
    norm
        Where a norm stands: ``before`` the rotation, ``after`` it, ``part`` of it elsewhere, or
        None.
    norm_weights
        Whether that norm has learned weights.
    query_factor
        Length of queries over that of keys; None where keys are no multiple of queries.
    factor_on_keys
        Whether it is keys that change length; else ``rotate`` divides queries by the factor.
    keys_differ
        Whether keys that are a multiple of queries at the first position are none at others.
    keys_rotated
        Whether keys depend on the position.
    key_offset
        1 or -1 where a key is rotated as a query at the next position or the one before.
    deviation
        Largest change of a score of two unit vectors under a common shift, where keys are no
        multiple of queries.
    ignores_ids
        Whether the model takes ``position_ids`` and counts tokens instead.
    values_rotated
        Whether values depend on their position.
    kind
        The type of these layers where the configuration distinguishes types.
    sizes
        Number of positions along each axis, where known.
    where, note
        What is rotated; what a reader has to know besides.
    """

    model: str
    modules: tuple[str, ...]
    head_dim: int
    axes: int
    rotated: bool
    rotate: Callable[[Tensor, Tensor], Tensor]
    norm: str | None = None
    norm_weights: bool = False
    query_factor: float | None = None
    factor_on_keys: bool = False
    keys_differ: bool = False
    keys_rotated: bool = False
    key_offset: int = 0
    deviation: float = 0.0
    ignores_ids: bool = False
    values_rotated: bool = False
    kind: str | None = None
    sizes: tuple[int, ...] | None = None
    where: str = "queries and keys"
    note: str | None = None

    def positions(self) -> int | tuple[int, ...]:
        """Return the ``positions`` argument of `ropescope.identify`."""
        if self.axes == 1:
            return self.sizes[0] if self.sizes else 2**17
        return self.sizes or (256,) * self.axes


# ---- one model -----------------------------------------------------------------------------------


def record_model(model_class: Any, config: Any) -> list[AttentionRecord]:
    """Return the attention modules of a model, grouped by the queries they give.

    Parameters
    ----------
    model_class
        A class of transformers that takes token ids or embeddings.
    config
        Its configuration.

    Raises
    ------
    Exception
        Whatever the model raises.
    """
    recorder, first, at = _first_run(model_class, config)
    widths = _score_widths(recorder, first)
    recorder.products = {name for name in widths if not first[name].explicit}
    groups: dict[Any, AttentionRecord] = {}
    modules: dict[Any, list[str]] = {}
    for width in sorted(set(widths.values())):
        x = _vectors(width)
        far = _run_far(recorder, x, at)
        scored, flipped = recorder.run(x, at), recorder.run(x, at.flip(0))
        for name in [name for name in scored if widths.get(name) == width]:
            one, there = scored[name], far.get(name)
            if one.query.ndim != 4 or one.query[:, 0].shape != x.shape:
                continue
            if not one.query.any():
                raise ValueError(f"{name}: queries are zero: a parameter stands before the score")
            rotated = _moves(one.query)
            recorder.counts_tokens |= rotated and torch.equal(one.query, flipped[name].query)
            values = [s.query[:, 0].numpy().tobytes() for s in (one, there) if s]
            key = (re.sub(r"\d+", "*", name), rotated, *values)
            modules.setdefault(key, []).append(name)
            if key not in groups:
                groups[key] = _record(recorder, name, one, x, at, rotated, _far_keys(there))
    types = getattr(config, "layer_types", None)
    return [
        replace(one, modules=tuple(modules[key]), kind=_kind(modules[key], types))
        for key, one in groups.items()
    ]


def _score_widths(recorder: Recorder, first: dict[str, Scored]) -> dict[str, int]:
    """Return the width of a head in each module whose scores count.

    Where some modules call an attention function, products in others are none, but for an indexer.
    """
    explicit = any(one.explicit for one in first.values())
    kinds = {name: type(module).__name__ for name, module in recorder.model.named_modules()}
    return {
        name: one.query.shape[-1]
        for name, one in first.items()
        if one.explicit or not explicit or "Indexer" in kinds[name]
    }


def _run_far(recorder: Recorder, x: Tensor, at: Tensor) -> dict[str, Scored]:
    """Return scores at `FAR`; nothing where the model counts tokens or refuses."""
    if recorder.counts_tokens:
        return {}
    with suppress(Exception):
        return recorder.run(x[:, : len(FAR)], torch.tensor(FAR)[:, None].expand(-1, at.shape[1]))
    return {}


def _far_keys(one: Scored | None) -> dict[str, Any]:
    """Return fields of keys whose direction differs from that of queries at some of `FAR`.

    Queries may be longer there by design.
    """
    if one is None or one.key[:, 0].shape != one.query[:, 0].shape:
        return {}
    both = one.query[:, 0], one.key[:, 0]
    query, key = (torch.nn.functional.normalize(x, dim=-1) for x in both)
    apart = query - key * (query[:, :1] * key[:, :1]).sum(-1, keepdim=True).sign()
    if apart.abs().max() < 1e-3:
        return {}
    deviation = _deviation(query, key, torch.tensor(FAR)[:, None])
    return {"keys_differ": True, "query_factor": None, "deviation": deviation}


def _first_run(model_class: Any, config: Any) -> tuple[Recorder, dict[str, Scored], Tensor]:
    """Return a recorder that runs, its records of zeros, and the positions.

    As much is skipped as the model can do without.
    """
    refusal: Exception | None = None
    for few_heads, skipped, by_ids in product((True, False), ("", MIXERS), (True, False)):
        try:
            recorder = build(model_class, config, few_heads, skipped)
            recorder.by_ids &= by_ids or "inputs_embeds" not in recorder.takes
            at = torch.arange(FEW)[:, None].expand(-1, 3 if _has_sections(recorder.model) else 1)
            return recorder, recorder.run(torch.zeros(3, FEW, 2), at), at
        except Exception as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _has_sections(model: Any) -> bool:
    """Return whether a position has three numbers: time, row and column (M-RoPE)."""
    rope = getattr(model.config, "rope_parameters", None) or {}
    known = (getattr(module, "mrope_section", None) for module in model.modules())
    return "mrope_section" in str(rope) or any(section is not None for section in known)


def _kind(modules: list[str], types: Any) -> str | None:
    """Return the layer type that all these modules have."""
    places = [int(number[0]) for name in modules if (number := re.search(r"\d+", name))]
    if not types or len(places) < len(modules) or max(places) >= len(types):
        return None
    kinds = {types[place] for place in places}
    return kinds.pop() if len(kinds) == 1 else None


def _vectors(width: int) -> Tensor:
    """Return three random vectors, each the same at every position, (3, T, D)."""
    x = torch.randn(3, 1, width, generator=torch.Generator().manual_seed(width))
    return x.expand(-1, FEW, -1)


def _moves(x: Tensor) -> bool:
    """Return whether x (N, heads, T, D) depends on the position."""
    return bool((x - x[:, :, :1]).abs().max() > 1e-4)


def _record(
    recorder: Recorder,
    name: str,
    one: Scored,
    x: Tensor,
    at: Tensor,
    rotated: bool = True,
    far: dict[str, Any] | None = None,
) -> AttentionRecord:
    """Return a module as a function to probe, with what its other arguments show.

    ``far`` is what holds of keys far out, if they are a multiple of queries nearby.
    """
    query, values = one.query[:, 0], one.value
    size = (_length(recorder.model.config),) if recorder.counts_tokens else None
    found: dict[str, Any] = {
        "values_rotated": values is not None and values.ndim == 4 and _moves(values),
        "sizes": size,
        "ignores_ids": recorder.counts_tokens and "position_ids" in recorder.takes,
    }
    if one.key.ndim == 4 and one.key[:, 0].shape == query.shape:
        found |= {"keys_rotated": _moves(one.key)} | _compared(query, one.key[:, 0], x, at)
    factor = found.get("query_factor") or 1.0
    scale = 1.0 if found.get("factor_on_keys") or abs(factor - 1.0) < 1e-5 else factor
    found |= {"query_factor": round(factor, 6)} if found.get("query_factor") else {}
    found |= _norm_of(recorder, name, query, x, at)
    found |= far if far and found.get("query_factor") else {}
    rotate = partial(_rotate, recorder, name, scale)
    model = type(recorder.model).__name__
    return AttentionRecord(model, (), x.shape[-1], at.shape[1], rotated, rotate, **found)


def _compared(query: Tensor, key: Tensor, x: Tensor, at: Tensor) -> dict[str, Any]:
    """Return what keys (N, T, D) are beside queries, both projected to x."""
    factor = _factor(query, key)
    if factor is not None:
        kept = torch.allclose(query.norm(dim=-1), x.norm(dim=-1), rtol=1e-5)
        return {"query_factor": factor, "factor_on_keys": kept}
    return {
        "keys_differ": _factor(query[:, 0], key[:, 0]) is not None,
        "key_offset": _offset(query, key, at),
        "deviation": _deviation(query, key, at),
    }


def _norm_of(recorder: Recorder, name: str, query: Tensor, x: Tensor, at: Tensor) -> dict[str, Any]:
    """Return where a norm stands and whether it has weights, by letting random weights act."""
    weight = 1.0 + torch.rand(x.shape[-1], generator=torch.Generator().manual_seed(1))
    weighted = recorder.run(x, at, name, weight)[name].query[:, 0]
    if torch.allclose(weighted, query, atol=1e-4):
        return {}
    learned = any(True for norm in recorder.norms[name] for _ in norm.parameters())
    before = recorder.run(x * weight, at, name)[name].query[:, 0]
    same = partial(torch.allclose, weighted, atol=1e-3)
    place = "before" if same(before) else "after" if same(query * weight) else "part"
    return {"norm": place, "norm_weights": learned}


def _length(config: Any) -> int:
    """Return how many tokens to give a model that counts them: one more than it is made for."""
    return max(512, min(getattr(config, "max_position_embeddings", 0) + 1, 2048))


def _factor(query: Tensor, key: Tensor) -> float | None:
    """Return the factor of queries over keys; None where they are no multiple."""
    factor = float((query * key).sum() / key.square().sum())
    return factor if torch.allclose(query, factor * key, atol=1e-4) else None


def _offset(query: Tensor, key: Tensor, at: Tensor) -> int:
    """Return 1 or -1 where keys (N, T, D) are queries one position further or back, else 0."""
    for step in (1, -1):
        here, there = (at - at[:, None] == step).all(dim=-1).nonzero(as_tuple=True)
        if len(here) and _factor(query[:, there], key[:, here]) is not None:
            return step
    return 0


def _deviation(query: Tensor, key: Tensor, at: Tensor) -> float:
    """Return the largest difference of scores of unit vectors at equal distances.

    Queries and keys have shape (N, T, D), each vector the same at all positions (T, axes).
    """
    q, k = (x / x[:, :1].norm(dim=-1, keepdim=True) for x in (query, key))
    scores = torch.einsum("nid, mjd -> nmij", q, k).flatten(-2)
    distances = (at[:, None] - at).flatten(0, 1)
    same = (distances[:, None] == distances).all(dim=-1)
    return float((scores[..., None] - scores[..., None, :])[..., same].abs().max())


def _rotate(recorder: Recorder, name: str, scale: float, x: Tensor, at: Tensor) -> Tensor:
    """Return x (..., T, D) as its module scores it at positions (T,) or (T, axes)."""
    at = at.reshape(len(at), -1)
    rows = x.reshape(-1, *x.shape[-2:])
    taken = torch.arange(len(at))
    if recorder.counts_tokens:
        taken = at[:, 0]
        whole = rows.new_zeros(len(rows), int(taken.max()) + 1, rows.shape[-1])
        whole[:, taken] = rows
        rows, at = whole, torch.arange(whole.shape[1])[:, None]
    few = max(1, TOKENS // len(at))
    if len(at) in (few, len(rows) % few):  # CSM reads as many rows as tokens as something else
        few = max(1, few - 1)
    scored = [recorder.run(some, at, name)[name].query[:, 0, taken] for some in rows.split(few)]
    return torch.cat(scored).reshape(x.shape) / scale


# ---- an attention module and its table -----------------------------------------------------------

IDS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda at: at,
    lambda at: at.T,
    lambda at: at[None],
    lambda at: at.T[:, None],
)
"""How positions (T, axes) may go into a table of cosines and sines; one axis goes as (1, T)."""


class _Cell(nn.Module):
    """An attention module with what gives it positions; all rows of a batch are laid in one.

    The arguments are those of `record_cell`.
    """

    def __init__(
        self,
        config: Any,
        attention_class: Any,
        embed: Callable[[Tensor], Any],
        takes: tuple[str, ...],
    ) -> None:
        super().__init__()
        self.config, self.embed, self.takes = config, embed, takes
        more = {"layer_idx": 0} if "layer_idx" in parameters_of(attention_class.__init__) else {}
        self.attention = attention_class(config, **more)
        self.wanted = parameters_of(self.attention.forward)
        self.batched = True

    def forward(self, n: int, at: Tensor) -> None:
        """Attend once from n rows at positions (T, axes)."""
        every = at.repeat(n, 1)
        first = next(m for m in self.attention.modules() if isinstance(m, nn.Linear))
        x = torch.zeros(1, len(every), first.in_features)
        known: dict[str, Any] = {
            "cu_seqlens": torch.tensor([0, len(every)], dtype=torch.int32),
            "attention_mask": None,
            "position_ids": every[:, 0][None] if at.shape[1] == 1 else every[None],
            **dict.fromkeys(self.takes, self.embed(every)),
        }
        inputs = {}
        for key, argument in self.wanted.items():
            positional = argument.kind is argument.POSITIONAL_OR_KEYWORD
            if key in known:
                inputs[key] = known[key]
            elif positional and argument.default is argument.empty:
                inputs[key] = x if self.batched else x[0]
        self.attention(**inputs)


def record_cell(
    config: Any,
    attention_class: Any,
    embed: Callable[[Tensor], Any],
    axes: int,
    takes: tuple[str, ...] = ("position_embeddings",),
) -> AttentionRecord | None:
    """Return what one attention module does; None where it mixes rows or rotates nothing.

    Parameters
    ----------
    config
        Of the module.
    attention_class
        Its class.
    embed
        ``embed(positions)`` for positions of shape (L, axes) returns what the module takes as
        ``takes``: cosines and sines, complex numbers or the positions themselves.
    axes
        Numbers in a position.
    takes
        Names of parameters of the module.
    """
    cell = build(lambda c: _Cell(c, attention_class, embed, takes), config, False, packed=True)
    for batched in (True, False):
        cell.model.batched = batched
        with suppress(Exception):  # try the next way
            return replace(_record_cell(cell, axes), model=attention_class.__name__)
    return None


def _record_cell(cell: Recorder, axes: int) -> AttentionRecord:
    """Return the record for positions of so many numbers; raise where rows are mixed."""
    name = "attention"
    at = torch.stack([torch.tensor([0, 1, 2, 5, 3 * a + 1]) for a in range(axes)], dim=-1)
    one = cell.run(torch.zeros(3, len(at), 2), at)[name]
    cell.products = set() if one.explicit else {name}
    x = _vectors(one.query.shape[-1])[:, : len(at)]
    found = _record(cell, name, cell.run(x, at)[name], x, at)
    together, alone = found.rotate(x, at), found.rotate(x[:1, 1:2], at[1:2])
    origin, *moved = (found.rotate(x[:1, :1], at[:1] + s) for s in (0, *torch.eye(axes).long()))
    if not torch.allclose(together[:1, 1:2], alone, atol=1e-4):
        raise ValueError("rows are mixed")
    if any(torch.allclose(there, origin, atol=1e-5) for there in moved):
        raise ValueError("nothing depends on one of the axes")
    return found


def record_cells(part: Any, annotated: bool = True) -> list[AttentionRecord]:
    """Return what attention modules do with tables of angles, each pair of classes alone.

    For towers whose models take images or sound. A table and an attention module belong together
    where both are made from the same class of configuration and the second can use what the first
    gives: every row is rotated by its own position and by no other. ``annotated=False`` tries all
    classes, for files whose annotations name another class than is used.
    """
    tables, attentions = [], []
    for c, wants in _configured(part):
        if wants not in (type(part).__name__, "") and annotated:
            continue
        takes = parameters_of(c.forward)
        if wants and ROTARY.search(c.__name__) and "position_ids" in takes:
            tables.append(c)
        if ATTENTION.search(c.__name__) and "position_embeddings" in takes:
            attentions.append(c)
    cells = (_paired(table, attention, part) for attention in attentions for table in tables)
    return [cell for cell in cells if cell is not None]


def _configured(part: Any) -> Iterator[tuple[Any, str]]:
    """Yield the modules in a configuration's file, and the configuration each is made from.

    That is the name of a class; "" if any.
    """
    with suppress(ImportError):
        for value in _classes(modeling_of(part), nn.Module):
            if wanted := parameters_of(value.__init__).get("config"):
                kind = wanted.annotation
                named = getattr(kind, "__name__", str(kind))
                yield value, "" if kind is wanted.empty else named


def _paired(table_class: Any, attention_class: Any, config: Any) -> AttentionRecord | None:
    """Return what an attention module does with a table; None where it can do nothing with it.

    The most axes come first: a table of three takes two as well, and rotates fewer channels.
    """
    with suppress(Exception):
        table, like = table_class(config).eval(), torch.zeros(1, 1, 1)
        for axes in (3, 2, 1):
            for ids in IDS if axes > 1 else (lambda at: at.T,):
                with suppress(Exception):
                    embed = partial(lambda ids, at: table(like, ids(at)), ids)
                    if found := record_cell(config, attention_class, embed, axes):
                        name = f"{table_class.__name__} + {attention_class.__name__}"
                        return replace(found, model=name)
    return None


def classes_of_tables(config: Any) -> list[str]:
    """Return the names of classes that make tables of angles for parts that take no tokens."""
    taking = {type(part) for _, part in recordable(config)}
    found: dict[str, None] = {}
    for part in parts_of(config):
        if type(part) in taking:
            continue
        with suppress(ImportError):
            for value in _classes(modeling_of(part), nn.Module):
                wanted = dict(_configured(part)).get(value, "")
                if wanted in ("", type(part).__name__) and ROTARY.search(value.__name__):
                    found[value.__name__] = None
    return list(found)


# ---- which models --------------------------------------------------------------------------------


def modeling_of(config: Any) -> Any:
    """Return the file with the models of a configuration."""
    return importlib.import_module(type(config).__module__.replace("configuration_", "modeling_"))


def models_of(kind: Any) -> list[Any]:
    """Return the classes of models of a class of configurations.

    They are those of its file, or, where it has none, the one of another family that AutoModel
    makes of it.
    """
    from transformers import MODEL_MAPPING, PreTrainedModel

    try:
        file = importlib.import_module(kind.__module__.replace("configuration_", "modeling_"))
    except ImportError:
        return [MODEL_MAPPING[kind]] if kind in MODEL_MAPPING else []
    return [one for one in _classes(file, PreTrainedModel) if one.config_class is kind]


def _classes(module: Any, base: type) -> list[Any]:
    """Return the classes of one file that derive from another."""
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
    ]


def parts_of(config: Any) -> list[Any]:
    """Return a configuration and its parts, each before what it is a part of."""
    found = []
    for name, make in getattr(config, "sub_configs", {}).items():
        part = getattr(config, name, None)
        if part is None:
            try:
                part = make()
            except Exception:  # a part that its user has to choose
                continue
        if hasattr(part, "to_dict"):
            found += parts_of(part)
    return [*found, config]


def recordable(config: Any) -> list[tuple[Any, Any]]:
    """Return the classes that take tokens, each with its part of a configuration."""
    found: dict[Any, Any] = {}
    for part in parts_of(config):
        for value in models_of(type(part)):
            if (
                "forward" in vars(value)
                and not re.search(r"For[A-Z]", value.__name__)
                and {"input_ids", "inputs_embeds"} & set(parameters_of(value.forward))
            ):
                found.setdefault(value, part)
    alone = [
        (c, p)
        for c, p in found.items()
        if "Backbone" in c.__name__ or not getattr(p, "sub_configs", {})
    ]
    return alone or list(found.items())


@in_float32()
def record_all(
    configs: list[Any], family: str | None = None
) -> tuple[list[AttentionRecord], list[str]]:
    """Return all records of some configurations, and why classes could not be recorded.

    Parameters
    ----------
    configs
        Configurations of transformers, with their parts.
    family
        Where given, only classes in the files of this family.
    """
    records: list[AttentionRecord] = []
    refusals: list[str] = []
    known: set[Any] = set()  # parts whose model rotates something
    for model_class, part in _models(configs, family).items():
        if fault := rope_fault(part):
            refusals.append(f"{model_class.__name__}: {fault}")
            continue
        try:
            found = record_model(model_class, part)
        except Exception as error:  # whatever a family's code raises
            refusals.append(f"{model_class.__name__}: {summary(error)}{_unset(part)}")
            continue
        records += found
        known |= {type(part)} if found else set()
    parts = [
        part for config in configs for part in parts_of(config) if _belongs(type(part), family)
    ]
    for part in parts:
        if type(part) not in known:
            known.add(type(part))
            records += record_cells(part)
    if not records:
        records = [cell for part in parts for cell in record_cells(part, annotated=False)]
    return records, refusals


def _belongs(value: Any, family: str | None) -> bool:
    return family is None or family in value.__module__.split(".")


def _models(configs: list[Any], family: str | None) -> dict[Any, Any]:
    """Return the model classes of some configurations, each with the first part that it takes."""
    found: dict[Any, Any] = {}
    for model_class, part in (pair for config in configs for pair in recordable(config)):
        if _belongs(type(part), family):
            found.setdefault(model_class, part)
    return found


def rope_fault(config: Any) -> str | None:
    """Return why a configuration's ``rope_parameters`` give no rotation; None if nothing is wrong.

    The base is lost where a legacy ``rope_scaling`` is assigned to a loaded configuration:
    transformers puts it in the place of all ``rope_parameters``, with ``rope_theta`` None.
    """
    given = getattr(config, "rope_parameters", None) or {}
    nested = [value for value in given.values() if isinstance(value, dict)]
    for one in nested or filter(None, [given]):
        kind = one.get("rope_type", "default")
        for name in ("rope_theta", "factor") if kind in SCALED else ("rope_theta",):
            value = one.get(name)
            if not (isinstance(value, int | float) and 0.0 < value < math.inf):
                also = BASE_LOST if name == "rope_theta" else f" for rope_type {kind!r}"
                return f"{name} in rope_parameters must be a positive number{also}, got {value!r}"
    return None


def _unset(config: Any) -> str:
    """Return which sizes a configuration leaves unset, in parentheses, or nothing."""
    sizes = config.to_dict() if hasattr(config, "to_dict") else {}
    unset = [k for k, v in sizes.items() if v is None and re.match("n_|num_|head_dim", k)]
    return f" (its configuration leaves {', '.join(unset)} unset)" if unset else ""
