"""Recording: what the attention modules of a transformers model do, each as a function to ask.

A model that takes tokens runs as a whole (`hear`). Towers that want pictures or sound are heard in
cells: an attention module with the table that tells it positions (`hear_cells`). `listen` hears all
that a configuration has. How a model runs without weights stands in `opening`.
"""

import importlib
import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, product
from typing import Any

import torch
from torch import Tensor, nn

from ropescope.asking import named

from .opening import (
    ATTENTION,
    MIXERS,
    NO_SCORES,
    TABLES,
    Record,
    Recorder,
    arguments,
    build,
    in_float32,
)

__all__ = ["Heard", "hear", "hear_cell", "hear_cells", "listen", "parts_of", "tables_of"]

ROTARY = re.compile("Rotary|Rope|RoPE")
AT_REST = re.compile("^_|^training$|dropout")  # attributes that say nothing of a turn
UNTURNED = re.compile(  # nor do these parts of a configuration
    "^_|dropout|dtype|quantization|use_cache|return_dict|^output_|_token_id$|label|vocab_size"
    "|architectures|_version$"
)
FAST = re.compile("Sdpa|FlashAttention2")  # classes that a model is made with on demand
LINEAR = re.compile("Linear|Conv1D")  # projections, which adapters and quantisers replace
TOKENS = 4096  # in one run: more would take much memory
FEW = 5  # positions that are heard first
FAR = (0, 401, 6402, 6803, 102404)  # as many, where layers, or queries and keys, may part


@dataclass(frozen=True)
class Heard:
    """Attention modules of one model whose queries come out alike.

    Attributes
    ----------
    part
        The class of the model that ran.
    names
        The modules, in order.
    head_dim, axes
        Channels of a head; numbers that make a position.
    turned
        Whether queries depend on the position.
    rotate
        ``rotate(x, positions)`` from the projection of a query to its score in the first head,
        norms left out.
    norm
        Where a norm stands: ``before`` the turn, ``after`` it, ``part`` of it elsewhere, or None.
    gains
        Whether that norm has learned gains.
    queries_scaled, queries_kept
        What queries have more than keys, a factor; None where keys come out otherwise. Whether it
        is keys that have other lengths; else it is left out of what ``rotate`` returns.
    keys_otherwise, keys_turned
        Whether keys that are a multiple of queries at the first position are none at others;
        whether they depend on the position.
    keys_ahead
        1 or -1 where a key is turned as a query at the next position or at the one before.
    deviation
        By how much a score of two unit vectors changes under a common shift, where keys are no
        multiple of queries.
    ids_ignored
        Whether the model takes ``position_ids`` and counts tokens whatever these are.
    values_turned, output_turned
        Whether values depend on their position, and whether the output of attention to a constant
        depends on the position of the query.
    kind
        The type of these layers where the configuration tells types apart.
    ends
        How many positions there are along each axis, where that is known.
    where, note
        What is turned; what has to be known besides.
    """

    part: str
    names: tuple[str, ...]
    head_dim: int
    axes: int
    turned: bool
    rotate: Callable[[Tensor, Tensor], Tensor]
    norm: str | None = None
    gains: bool = False
    queries_scaled: float | None = None
    queries_kept: bool = False
    keys_otherwise: bool = False
    keys_turned: bool = False
    keys_ahead: int = 0
    deviation: float = 0.0
    ids_ignored: bool = False
    values_turned: bool = False
    output_turned: bool = False
    kind: str | None = None
    ends: tuple[int, ...] | None = None
    where: str = "queries and keys"
    note: str | None = None

    def positions(self) -> int | tuple[int, ...]:
        """Return how many positions to ask along each axis."""
        if self.axes == 1:
            return self.ends[0] if self.ends else 2**17
        return self.ends or (256,) * self.axes


# ---- one model -----------------------------------------------------------------------------------


def hear(model_class: Any, config: Any) -> list[Heard]:
    """Return the attention modules of a model, in groups whose queries come out alike.

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
    called = any(record.sure for record in first.values())
    modules = dict(recorder.model.named_modules())
    widths = {  # an indexer makes scores of its own, by a plain product
        name: record.query.shape[-1]
        for name, record in first.items()
        if record.sure or not called or "Indexer" in type(modules[name]).__name__
    }
    recorder.products = {name for name in widths if not first[name].sure}
    groups: dict[Any, Heard] = {}
    names: dict[Any, list[str]] = {}
    for width in sorted(set(widths.values())):
        x = _vectors(width)
        far = _far(recorder, x, at)
        records, moved = recorder.run(x, at), recorder.run(x, at.flip(0))
        for name, record in records.items():
            query = record.query
            if widths.get(name) != width or query.ndim != 4 or query[:, 0].shape != x.shape:
                continue
            if not query.any():
                raise ValueError(
                    f"{name}: queries come out as zeros: a weight stands before the score"
                )
            turned = _moves(query)
            recorder.counts |= turned and torch.equal(query, moved[name].query)
            there = far.get(name)
            heard_so = [r.query[:, 0].numpy().tobytes() for r in (record, there) if r]
            key = (re.sub(r"\d+", "*", name), turned, *heard_so)
            names.setdefault(key, []).append(name)
            if key not in groups:
                part = type(recorder.model).__name__
                groups[key] = _heard(recorder, name, record, x, at, part, turned)
                if there and groups[key].queries_scaled:
                    groups[key] = replace(groups[key], **_far_keys(there))
    types = getattr(config, "layer_types", None)
    return [
        replace(heard, names=tuple(names[key]), kind=_kind(names[key], types))
        for key, heard in groups.items()
    ]


def _far(recorder: Recorder, x: Tensor, at: Tensor) -> dict[str, Record]:
    """Return what every module scores far out, nothing where it counts tokens or refuses."""
    if recorder.counts:
        return {}
    with suppress(Exception):
        return recorder.run(x, torch.tensor(FAR)[:, None].expand(-1, at.shape[1]))
    return {}


def _far_keys(record: Record) -> dict[str, Any]:
    """Return what is heard of keys that point elsewhere than queries at some of `FAR`.

    There queries may be longer by design.
    """
    both = record.query[:, 0], record.key[:, 0]
    query, key = (torch.nn.functional.normalize(x, dim=-1) for x in both)
    apart = query - key * (query[:, :1] * key[:, :1]).sum(-1, keepdim=True).sign()
    if apart.abs().max() < 1e-3:
        return {}
    return {
        "keys_otherwise": True,
        "queries_scaled": None,
        "deviation": _deviation(query, key, torch.tensor(FAR)[:, None]),
    }


def _first_run(model_class: Any, config: Any) -> tuple[Recorder, dict[str, Record], Tensor]:
    """Return a recorder that runs, what it heard in zeros, and the positions.

    The most is left out that the model can do without.
    """
    refusal: Exception | None = None
    for few_heads, left_out, by_ids in product((True, False), ("", MIXERS), (True, False)):
        try:
            recorder = build(model_class, config, few_heads, left_out)
            recorder.by_ids &= by_ids or "inputs_embeds" not in recorder.wanted
            at = torch.arange(FEW)[:, None].expand(-1, 3 if _has_sections(recorder.model) else 1)
            return recorder, recorder.run(torch.zeros(3, FEW, 2), at), at
        except Exception as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _has_sections(model: Any) -> bool:
    """Whether a position has three numbers: for time, row and column."""
    rope = getattr(model.config, "rope_parameters", None) or {}
    known = (getattr(module, "mrope_section", None) for module in model.modules())
    return "mrope_section" in str(rope) or any(section is not None for section in known)


def _kind(names: list[str], types: Any) -> str | None:
    """Return the one type that all these layers have."""
    places = [int(number[0]) for name in names if (number := re.search(r"\d+", name))]
    if not types or len(places) < len(names) or max(places) >= len(types):
        return None
    kinds = {types[place] for place in places}
    return kinds.pop() if len(kinds) == 1 else None


def _vectors(width: int) -> Tensor:
    """Return three vectors, each the same at every position, (3, T, D)."""
    x = torch.randn(3, 1, width, generator=torch.Generator().manual_seed(width))
    return x.expand(-1, FEW, -1)


def _moves(x: Tensor) -> bool:
    """Whether x (N, heads, T, D) depends on the position."""
    return bool((x - x[:, :, :1]).abs().max() > 1e-4)


def _heard(
    recorder: Recorder, name: str, record: Record, x: Tensor, at: Tensor, part: str, turned: bool
) -> Heard:
    """Return a module as a function to ask, with what can be heard beside its queries."""
    query, values = record.query[:, 0], record.value
    found: dict[str, Any] = {
        "values_turned": values is not None and values.ndim == 4 and _moves(values),
        "ends": (_runs(recorder.model.config),) if recorder.counts else None,
        "ids_ignored": recorder.counts and "position_ids" in recorder.wanted,
    }
    output = record.output
    if output is not None and output.numel() % (len(x) * len(at)) == 0:
        found["output_turned"] = _moves(output.reshape(len(x), 1, len(at), -1))
    scale = 1.0
    if record.key.ndim == 4 and record.key[:, 0].shape == query.shape:
        key = record.key[:, 0]
        found["keys_turned"] = _moves(record.key)
        ratio = _ratio(query, key)
        if ratio is None:
            found["keys_otherwise"] = _ratio(query[:, 0], key[:, 0]) is not None
            found["keys_ahead"] = _ahead(query, key, at)
            found["deviation"] = _deviation(query, key, at)
        else:
            found["queries_scaled"] = round(ratio, 6)
            kept = torch.allclose(query.norm(dim=-1), x.norm(dim=-1), rtol=1e-5)
            found["queries_kept"] = kept  # then keys are longer or shorter
            # and is left out when it is asked
            scale = 1.0 if kept or abs(ratio - 1.0) < 1e-5 else ratio
    gain = 1.0 + torch.rand(x.shape[-1], generator=torch.Generator().manual_seed(1))
    heard = recorder.run(x, at, name, gain)[name].query[:, 0]
    if not torch.allclose(heard, query, atol=1e-4):
        found["gains"] = any(True for n in recorder.normed[name] for _ in n.parameters())
        before = recorder.run(x * gain, at, name)[name].query[:, 0]
        near = partial(torch.allclose, heard, atol=1e-3)
        found["norm"] = "before" if near(before) else "after" if near(query * gain) else "part"
    rotate = partial(_asked, recorder, name, scale)
    return Heard(part, (), x.shape[-1], at.shape[1], turned, rotate, **found)


def _runs(config: Any) -> int:
    """Return how many tokens a model that counts them is run with, one more than it is made for."""
    return max(512, min(getattr(config, "max_position_embeddings", 0) + 1, 2048))


def _ratio(query: Tensor, key: Tensor) -> float | None:
    """Return how many times as long queries are as keys; None where they are no multiple."""
    ratio = float((query * key).sum() / key.square().sum())
    return ratio if torch.allclose(query, ratio * key, atol=1e-4) else None


def _ahead(query: Tensor, key: Tensor, at: Tensor) -> int:
    """Return 1 or -1 where keys (N, T, D) are queries one position further or back, else 0."""
    for step in (1, -1):
        here, there = (at - at[:, None] == step).all(dim=-1).nonzero(as_tuple=True)
        if len(here) and _ratio(query[:, there], key[:, here]) is not None:
            return step
    return 0


def _deviation(query: Tensor, key: Tensor, at: Tensor) -> float:
    """Return by how much scores of unit vectors change where the distance is the same.

    Queries and keys have shape (N, T, D), each vector the same at all positions (T, axes).
    """
    q, k = (x / x[:, :1].norm(dim=-1, keepdim=True) for x in (query, key))
    scores = torch.einsum("nid, mjd -> nmij", q, k).flatten(-2)
    distances = (at[:, None] - at).flatten(0, 1)
    same = (distances[:, None] == distances).all(dim=-1)
    return float((scores[..., None] - scores[..., None, :])[..., same].abs().max())


def _asked(recorder: Recorder, name: str, scale: float, x: Tensor, at: Tensor) -> Tensor:
    """Return x (..., T, D) as its module scores it at positions (T,) or (T, axes)."""
    at = at.reshape(len(at), -1)
    rows = x.reshape(-1, *x.shape[-2:])
    taken = torch.arange(len(at))
    if recorder.counts:
        taken = at[:, 0]
        whole = rows.new_zeros(len(rows), int(taken.max()) + 1, rows.shape[-1])
        whole[:, taken] = rows
        rows, at = whole, torch.arange(whole.shape[1])[:, None]
    heard = []
    few = max(1, TOKENS // len(at))
    if len(at) in (few, len(rows) % few):  # CSM takes as many rows as tokens for something else
        few = max(1, few - 1)
    for some in rows.split(few):
        heard.append(recorder.run(some, at, name)[name].query[:, 0, taken])
    return torch.cat(heard).reshape(x.shape) / scale


def altered(model: Any) -> list[str] | None:
    """Return what in a model is not as transformers makes it from its configuration.

    Modules that attend or make tables are compared by their class, numbers and plain attributes;
    what holds modules that attend, and what stands inside them, by its class, but for that of a
    projection; all of these by the configuration that they hold, hooks, and a ``forward`` of their
    own. None where the model cannot be made anew.
    """
    model = getattr(model, "_orig_mod", model)  # of torch.compile
    of_theirs = (c for c in type(model).__mro__ if c.__module__.startswith("transformers.models."))
    try:
        fresh = build(next(of_theirs), model.config, few_heads=False).model
    except Exception:  # StopIteration, too
        return None
    made = dict(fresh.named_modules())
    given = {
        name.replace("._orig_mod", ""): getattr(module, "_orig_mod", module)
        for name, module in model.named_modules()
    }
    kinds = {name: type(module).__name__ for name, module in made.items()}
    attending = {n for n, kind in kinds.items() if ATTENTION.search(kind)}
    attending -= {n for n in attending if NO_SCORES.search(kinds[n])}
    found = {}
    for name in dict.fromkeys([*given, *made]):
        above = accumulate(name.split(".")[:-1], "{}.{}".format)
        inside = not attending.isdisjoint(above)
        module = given.get(name)
        if module is None:  # one that stands in two places is listed in one
            with suppress(AttributeError):
                module = model.get_submodule(name)
        found[name] = _unlike(module, made.get(name), inside)
    names = sorted(found, key=lambda name: not TABLES.search(kinds.get(name, "")))  # these first
    return [f"{name or type(model).__name__} ({found[name]})" for name in names if found[name]]


def _unlike(module: Any, made: Any, inside: bool) -> str | None:
    """Say in what a module differs from the one in its place, None where in nothing that turns.

    ``inside`` says that it is part of a module that attends. Either module may be None.
    """
    wanted, kinds = type(made).__name__, f"{type(module).__name__} {type(made).__name__}"
    scoreless = ATTENTION.search(wanted) and NO_SCORES.search(wanted)
    turns = (ATTENTION.search(kinds) or TABLES.search(kinds)) and not scoreless
    parts = (made if module is None else module).modules()
    holds = any(ATTENTION.search(type(m).__name__) for m in parts)
    if not (turns or holds or inside):
        return None
    free = inside and not turns and (made is None or LINEAR.search(wanted))
    if module is None:
        return None if free else "no module"
    if not _runs_its_class(module):
        return "a forward of its own"
    if own := _own_methods(module):
        return f"a {own[0]} of its own"
    hooks = (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
    if any(not _made_by(hook, "transformers.", "torch.") for hook in hooks):
        return "a hook"
    if not free and (kind := _class(module)) is not _class(made):
        return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
    why = _other_numbers(module, made) if turns else None
    why = why or _other_settings(module, made)
    return why or (_foreign_scores(module) if ATTENTION.search(kinds) else None)


def _runs_its_class(module: Any) -> bool:
    """Whether a module runs the forward of its class, in what accelerate and torch.compile lay."""
    forward = module.forward
    for _ in range(3):
        if inspect.ismethod(forward) and forward.__self__ is module:
            return forward.__func__ is getattr(type(module), "forward", None)
        if isinstance(forward, partial) and _made_by(forward.func, "accelerate."):
            forward = module._old_forward
        forward = getattr(forward, "_torchdynamo_orig_callable", forward)
    return False


def _own_methods(module: Any) -> list[str]:
    """Return methods of its class that a module has replaced by others, beside its forward."""
    kind = type(module)
    return [
        name
        for name, value in vars(module).items()
        if name != "forward" and inspect.isfunction(getattr(kind, name, None)) and callable(value)
    ]


def _made_by(function: Any, *packages: str) -> bool:
    return str(getattr(function, "__module__", "")).startswith(packages)


def _class(module: Any) -> Any:
    """Return the class of a module, without what is derived from it to shard or to attend fast."""
    for kind in type(module).__mro__:
        fast = kind.__module__.startswith("transformers.") and FAST.search(kind.__name__)
        if issubclass(kind, nn.Module) and not (fast or kind.__module__.startswith("torch.")):
            return kind
    return type(module)


def _other_numbers(module: Any, made: Any) -> str | None:
    """Say which buffers, weights of a table or plain attributes differ."""
    changed = []
    for kind in ("buffer", "parameter"):
        own, theirs = (dict(getattr(m, f"named_{kind}s")(recurse=False)) for m in (module, made))
        for name, wanted in theirs.items():
            if name not in own:
                return f"no {kind} {name}"
            if own[name].is_meta or wanted.is_meta or not wanted.is_floating_point():
                continue
            same = own[name].shape == wanted.shape
            if not same or not torch.equal(own[name].cpu().to(wanted), wanted):
                changed.append(name)
    if changed:  # a copy that is kept beside is told alone
        told = [name for name in changed if "original" not in name] or changed
        return f"other numbers in {' and '.join(sorted(told))}"
    other = _differing(_plain(module), _plain(made))
    return f"another {other}" if other else None


def _other_settings(module: Any, made: Any) -> str | None:
    """Say what differs in the configuration that a module holds."""
    held, wanted = (getattr(m, "config", None) for m in (module, made))
    if not (hasattr(held, "to_dict") and hasattr(wanted, "to_dict")):
        return None
    other = _differing(_settings(held), _settings(wanted))
    return f"another {other} in its configuration" if other else None


def _foreign_scores(module: Any) -> str | None:
    """Say whether a function that is not of transformers makes the scores of a module."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    name = getattr(getattr(module, "config", None), "_attn_implementation", None)
    function = ALL_ATTENTION_FUNCTIONS.get(name) if isinstance(name, str) else None
    function = getattr(function, "func", function)  # of a partial
    if function is None or _made_by(function, "transformers."):
        return None
    return f"scores by {name!r}, which is not of transformers"


def _differing(one: dict[str, Any], two: dict[str, Any]) -> str | None:
    """Return the first name, by the alphabet, whose values differ."""
    return min((n for n in one.keys() | two.keys() if one.get(n) != two.get(n)), default=None)


def _settings(config: Any) -> dict[str, Any]:
    """Return what a configuration says, but for its parts and what says nothing of a turn."""
    parts = getattr(config, "sub_configs", {})
    return {k: v for k, v in config.to_dict().items() if k not in parts and not UNTURNED.search(k)}


def _plain(module: Any) -> dict[str, Any]:
    """Return the attributes of a module that are numbers, words or flags."""
    kinds = (bool, int, float, str)
    given = {name: value for name, value in vars(module).items() if isinstance(value, kinds)}
    return {name: value for name, value in given.items() if not AT_REST.search(name)}


# ---- an attention module and its table -----------------------------------------------------------

IDS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda at: at,
    lambda at: at.T,
    lambda at: at[None],
    lambda at: at.T[:, None],
)
"""How positions (T, axes) go into a table of cosines and sines; those of one axis as (1, T)."""


class _Cell(nn.Module):
    """An attention module with what tells it positions; a batch is laid in one row.

    The arguments are those of `hear_cell`.
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
        more = {"layer_idx": 0} if "layer_idx" in arguments(attention_class.__init__) else {}
        self.attention = attention_class(config, **more)
        self.wanted = arguments(self.attention.forward)
        self.batched = True

    def forward(self, n: int, at: Tensor) -> None:
        """Attend once from n rows at positions (T, axes)."""
        every = at.repeat(n, 1)
        count = len(every)
        first = next(m for m in self.attention.modules() if isinstance(m, nn.Linear))
        x = torch.zeros(1, count, first.in_features)
        x = x if self.batched else x[0]
        inputs: dict[str, Any] = {
            "cu_seqlens": torch.tensor([0, count], dtype=torch.int32),
            "attention_mask": None,
            "position_ids": every[:, 0][None] if at.shape[1] == 1 else every[None],
            **dict.fromkeys(self.takes, self.embed(every)),
        }
        inputs = {key: value for key, value in inputs.items() if key in self.wanted}
        for key, argument in self.wanted.items():
            free = argument.kind is argument.POSITIONAL_OR_KEYWORD and key not in inputs
            if free and argument.default is argument.empty:
                inputs[key] = x
        self.attention(**inputs)


def hear_cell(
    config: Any,
    attention_class: Any,
    embed: Callable[[Tensor], Any],
    axes: int,
    takes: tuple[str, ...] = ("position_embeddings",),
) -> Heard | None:
    """Return what one attention module does; None where it mixes up rows or turns nothing.

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
        How many numbers make a position.
    takes
        Names of arguments of the module.
    """
    cell = build(lambda c: _Cell(c, attention_class, embed, takes), config, False, one_row=True)
    for batched in (True, False):
        cell.model.batched = batched
        with suppress(Exception):  # the next way
            return replace(_hear_cell(cell, axes), part=attention_class.__name__)
    return None


def _hear_cell(cell: Recorder, axes: int) -> Heard:
    """Return what is heard with positions of so many numbers; raise where rows get mixed up."""
    name = "attention"
    at = torch.stack([torch.tensor([0, 1, 2, 5, 3 * a + 1]) for a in range(axes)], dim=-1)
    record = cell.run(torch.zeros(3, FEW, 2), at)[name]
    cell.products = set() if record.sure else {name}
    x = _vectors(record.query.shape[-1])
    heard = _heard(cell, name, cell.run(x, at)[name], x, at, "", True)
    together, alone = heard.rotate(x, at), heard.rotate(x[:1, 1:2], at[1:2])
    origin, *moved = (heard.rotate(x[:1, :1], at[:1] + s) for s in (0, *torch.eye(axes).long()))
    if not torch.allclose(together[:1, 1:2], alone, atol=1e-4):
        raise ValueError("rows are mixed up")
    if any(torch.allclose(there, origin, atol=1e-5) for there in moved):
        raise ValueError("nothing turns along an axis")
    return heard


def hear_cells(part: Any, annotated: bool = True) -> list[Heard]:
    """Return what attention modules do with tables that they are given, each pair alone.

    For towers whose models want pictures or sound. A table and an attention module belong together
    where both are made from the same class of configuration and the second can use what the first
    gives: every row turned by its own position, and by no other. Where annotations say another
    class of configuration than is used, ``annotated=False`` tries all.
    """
    try:
        module = modeling_of(part)
    except ImportError:
        return []
    known = (type(part).__name__, "")
    classes = [
        (c, wants)
        for c in _classes(module, nn.Module)
        if (wants := _wants(c)) is not None and (wants in known or not annotated)
    ]
    tables = [
        c
        for c, wants in classes
        if wants and ROTARY.search(c.__name__) and "position_ids" in arguments(c.forward)
    ]
    attentions = [
        c
        for c, _ in classes
        if ATTENTION.search(c.__name__) and "position_embeddings" in arguments(c.forward)
    ]
    cells = (_cell(table, attention, part) for attention in attentions for table in tables)
    return [cell for cell in cells if cell is not None]


def _wants(value: Any) -> str | None:
    """Return the name of the class of configuration that a class is made from; "" if any."""
    wanted = arguments(value.__init__).get("config")
    if wanted is None:
        return None
    if wanted.annotation is wanted.empty:
        return ""
    return getattr(wanted.annotation, "__name__", str(wanted.annotation))


def _cell(table_class: Any, attention_class: Any, config: Any) -> Heard | None:
    """Return what an attention module does with a table; None where it can do nothing with it.

    The most axes come first: a table of three takes two as well, and turns less.
    """
    with suppress(Exception):
        table, like = table_class(config).eval(), torch.zeros(1, 1, 1)
        for axes in (3, 2, 1):
            for ids in IDS if axes > 1 else (lambda at: at.T,):
                with suppress(Exception):
                    embed = partial(_embed, table, like, ids)
                    if heard := hear_cell(config, attention_class, embed, axes):
                        part = f"{table_class.__name__} + {attention_class.__name__}"
                        return replace(heard, part=part)
    return None


def _embed(table: Any, like: Tensor, ids: Callable[[Tensor], Tensor], at: Tensor) -> Any:
    return table(like, ids(at))


def tables_of(config: Any) -> list[str]:
    """Return the names of classes that make tables of angles for parts that take no tokens."""
    taking = {type(part) for _, part in recordable(config)}
    found: dict[str, None] = {}
    for part in parts_of(config):
        with suppress(ImportError):
            for value in _classes(modeling_of(part), nn.Module) if type(part) not in taking else ():
                of_it = _wants(value) in (None, "", type(part).__name__)
                if of_it and ROTARY.search(value.__name__):
                    found[value.__name__] = None
    return list(found)


# ---- which models --------------------------------------------------------------------------------


def modeling_of(config: Any) -> Any:
    """Return the file with the models of a configuration."""
    return importlib.import_module(type(config).__module__.replace("configuration_", "modeling_"))


def _classes(module: Any, base: type) -> list[Any]:
    """Return the classes of one file that are made from another."""
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
    ]


def parts_of(config: Any) -> list[Any]:
    """Return a configuration's parts, each below the whole, and the whole."""
    found = []
    for name, make in getattr(config, "sub_configs", {}).items():
        part = getattr(config, name, None)
        if part is None:
            try:
                part = make()
            except Exception:  # a part that only its user can choose
                continue
        if hasattr(part, "to_dict"):
            found += parts_of(part)
    return [*found, config]


def recordable(config: Any) -> list[tuple[Any, Any]]:
    """Return classes that take tokens, each with the part of a configuration that it wants."""
    from transformers import PreTrainedModel

    found: dict[Any, Any] = {}
    for part in parts_of(config):
        with suppress(ImportError):
            for value in _classes(modeling_of(part), PreTrainedModel):
                if (
                    "forward" in vars(value)
                    and value.config_class is type(part)
                    and not re.search(r"For[A-Z]", value.__name__)
                    and {"input_ids", "inputs_embeds"} & set(arguments(value.forward))
                ):
                    found.setdefault(value, part)
    alone = [(c, p) for c, p in found.items() if not getattr(p, "sub_configs", {})]
    return alone or list(found.items())


@in_float32()
def listen(configs: list[Any], family: str | None = None) -> tuple[list[Heard], list[str]]:
    """Return all that is heard in models of some configurations, and why a class was not.

    Parameters
    ----------
    configs
        Configurations of transformers, with their parts.
    family
        Only classes in the files of this one, where given.
    """

    def belongs(value: Any) -> bool:
        return family is None or family in value.__module__.split(".")

    heard: list[Heard] = []
    refusals: list[str] = []
    known: set[Any] = set()  # parts whose model was heard, whether it turns anything or not
    models: dict[Any, Any] = {}
    for model_class, part in (pair for config in configs for pair in recordable(config)):
        if belongs(model_class):
            models.setdefault(model_class, part)
    for model_class, part in models.items():
        try:
            found = hear(model_class, part)
        except Exception as error:  # whatever a family's code raises
            sizes = part.to_dict() if hasattr(part, "to_dict") else {}
            unset = [k for k, v in sizes.items() if v is None and re.match("n_|num_|head_dim", k)]
            told = f" (its configuration leaves {', '.join(unset)} unset)" if unset else ""
            refusals.append(f"{model_class.__name__}: {named(error, 120)}{told}")
            continue
        heard += found
        if found:
            known.add(type(part))
    parts = [part for config in configs for part in parts_of(config) if belongs(type(part))]
    for part in parts:
        if type(part) not in known:
            known.add(type(part))
            heard += hear_cells(part)
    for part in parts if not heard else ():
        heard += hear_cells(part, annotated=False)
    return heard, refusals
