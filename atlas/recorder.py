"""Run a transformers model without weights and record what its attention modules score.

Parameters are on the ``meta`` device, without storage. What they touch becomes zeros, except that
projections inside an attention module return the vectors under test, and the attention function is
replaced by one that records queries, keys and values. Everything between a projection and a score
(tables, reshapes, norms) is the family's own code.
"""

import copy
import inspect
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

__all__ = ["MIXERS", "Recorder", "Scored", "build", "in_float32", "is_attention", "parameters_of"]

NAME = "rope_minimal_recorder"
ATTENTION = re.compile(r"Attention|Attn|MLA|Indexer")
TABLES = re.compile(r"Sinusoidal|Rotary|Rope")
NO_SCORES = re.compile(r"Delta|Linear|Lightning|Mamba|GatedMLP")
MIXERS = r"(mlp|moe|feed_forward|ffn|ff|experts|mixer|mamba|conv|linear_attn)$"
PRODUCTS = {"matmul", "__matmul__", "bmm", "baddbmm", "einsum", "scaled_dot_product_attention"}
PROJECTIONS = {"linear", "addmm", "matmul", "__matmul__", "conv1d"}


def is_attention(class_name: str) -> bool:
    """Return whether a class, by its name, computes attention scores."""
    return bool(ATTENTION.search(class_name)) and not NO_SCORES.search(class_name)


@contextmanager
def in_float32() -> Iterator[None]:
    """Set the default dtype to float32 inside the block."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


@dataclass(frozen=True)
class Scored:
    """Arguments of one attention module's scores, (N, heads, T, channels) each where recognised.

    ``explicit``: from an attention function, not from a bare matrix product.
    """

    query: Tensor
    key: Tensor
    value: Tensor | None
    explicit: bool


class _StopError(Exception):
    """The module of interest has been recorded."""


class Recorder(TorchFunctionMode):
    """A model on the meta device whose attention modules are recorded; made by `build`.

    Attributes
    ----------
    model
        What runs.
    packed : bool
        Whether the model takes N and the positions, and lays all N rows in one.
    by_ids : bool
        Whether it takes token ids; embeddings otherwise.
    counts_tokens : bool
        Whether it counts tokens, whatever positions it is given.
    products : set of str
        Modules recorded at their first matrix product, because they call no attention function.
    records, norms
        Of the last run, by module: what it scored, and the norms inside.
    """

    def __init__(self, model: Any, packed: bool = False) -> None:
        super().__init__()
        self.model, self.packed = model, packed
        self.takes = parameters_of(model.forward)
        self.by_ids = "input_ids" in self.takes
        self.counts_tokens = not packed and "position_ids" not in self.takes
        self.products: set[str] = set()
        self.outputs: dict[str, int] = {}  # length of a module's output tuple, 0 for a tensor
        self.swapped: dict[tuple[str, bool, str], bool] = {}  # whether positions precede heads
        self._start(torch.empty(0, 0, 0), None, None)
        for name, module in model.named_modules():
            kind = type(module).__name__
            if is_attention(kind):
                module.forward = partial(self._attend, name, module.forward)
            elif kind != "Identity" and ("Norm" in kind or "norm" in name.rsplit(".", 1)[-1]):
                module.forward = partial(self._norm, module)

    def _start(self, x: Tensor, stop: str | None, norm_weight: Tensor | None) -> None:
        self.x, self.stop, self.norm_weight = x, stop, norm_weight
        self.inside: list[str] = []
        self.records: dict[str, Scored] = {}
        self.norms: dict[str, list[nn.Module]] = {}

    @in_float32()
    def run(
        self, x: Tensor, at: Tensor, stop: str | None = None, norm_weight: Tensor | None = None
    ) -> dict[str, Scored]:
        """Run the model on N rows of T tokens; return what each attention module scored.

        Parameters
        ----------
        x
            What projections return, (N, T, D).
        at
            Positions, (T, axes).
        stop
            The module at which to stop.
        norm_weight
            Weight of each norm inside attention, (D,), in place of the norm; without it, norms
            are skipped.
        """
        self._start(x, stop, norm_weight)
        _RECORDERS.append(self)
        try:
            with torch.no_grad(), self:
                self.model(**self._inputs(len(x), at))
        except _StopError:
            pass
        finally:
            _RECORDERS.pop()
        return self.records

    def _inputs(self, n: int, at: Tensor) -> dict[str, Any]:
        if self.packed:
            return {"n": n, "at": at}
        ids = torch.ones(n, len(at), dtype=torch.long)
        positions = at.T[:, None].expand(-1, n, -1)
        positions = positions[0] if len(positions) == 1 else positions
        inputs: dict[str, Any] = {"input_ids": ids}
        if not self.by_ids:
            inputs = {"inputs_embeds": torch.zeros(n, len(at), self.model.config.hidden_size)}
        more = {
            "position_ids": positions,
            "decoder_input_ids": ids,
            "decoder_position_ids": positions,
            "use_cache": False,
        }
        return inputs | {key: value for key, value in more.items() if key in self.takes}

    def _attend(self, name: str, forward: Any, *args: Any, **kwargs: Any) -> Any:
        """Run an attention module; return its input if another module is the one of interest."""
        if self.stop is not None and name in self.outputs and not self.stop.startswith(name):
            first = next(_tensors((args, kwargs)))
            return (first, *[None] * (self.outputs[name] - 1)) if self.outputs[name] else first
        self.inside.append(name)
        try:
            output = forward(*args, **kwargs)
        finally:
            self.inside.pop()
        taken, made = next(_tensors((args, kwargs))), next(_tensors(output), None)
        if made is not None and made.shape == taken.shape:  # else its input cannot stand for it
            self.outputs[name] = len(output) if isinstance(output, tuple) else 0
        return output

    def _norm(self, module: nn.Module, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Skip a norm, or apply its weight alone."""
        if not x.is_floating_point():  # an embedding that is normalised
            return type(module).forward(module, x, *args, **kwargs)
        if not self.inside or self.inside[-1] in self.records:
            return x
        self.norms.setdefault(self.inside[-1], []).append(module)
        if self.norm_weight is None or x.shape[-1] % len(self.norm_weight):
            return x
        return x * self.norm_weight.repeat(x.shape[-1] // len(self.norm_weight))

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run torch's function; where a parameter takes part, return a stand-in of its result."""
        kwargs = kwargs or {}
        given = list(_tensors((args, kwargs)))
        name = getattr(func, "__name__", "")
        if str(kwargs.get("device")) == "meta":
            kwargs = {**kwargs, "device": "cpu"}  # what would go to the parameters' device
        real = [t for t in given if not t.is_meta]
        if len(real) == len(given):
            if name == "to" and "meta" in map(str, args[1:]):
                return args[0]
            self._product(name, given)
            return func(*args, **kwargs)
        if name.startswith("__get__") or not (real or name in PROJECTIONS):
            return func(*args, **kwargs)
        output = func(*_mapped(args, _to_meta), **_mapped(kwargs, _to_meta))
        n, count, width = self.x.shape
        channels = output.shape[-1] if self.inside and name in PROJECTIONS else 0
        if not channels or output.numel() != n * count * channels:
            return _mapped(output, _to_zeros)
        return self.x.repeat(1, 1, -(-channels // width))[..., :channels].reshape(output.shape)

    def _product(self, name: str, given: list[Tensor]) -> None:
        """Record the scores that a matrix product inside attention makes."""
        given = [t for t in given if t.ndim >= 3] if self.inside and name in PRODUCTS else []
        if len(given) >= 3 and name == "scaled_dot_product_attention":
            self.write(given[0], given[1], given[2], explicit=True)
        elif len(given) >= 2:
            self.write(given[-2], given[-1].mT, None, explicit=False)

    def write(self, query: Tensor, key: Tensor, value: Tensor | None, explicit: bool) -> None:
        """Record the first scores of a module; those of an attention function come first."""
        name = self.inside[-1]
        known = self.records.get(name)
        if known is None or (explicit and not known.explicit):
            more = None if value is None else self._rows(value, explicit, "value")
            q, k = self._rows(query, explicit, "query"), self._rows(key, explicit, "key")
            self.records[name] = Scored(q, k, more, explicit)
        elif not explicit and not known.explicit and known.value is None:
            values = self._rows(key.mT, explicit, "value")  # weights times values
            if values.shape[:-1] == known.key.shape[:-1]:
                self.records[name] = replace(known, value=values)
        if self.stop == name and (explicit or name in self.products):
            raise _StopError

    def _rows(self, scored: Tensor, explicit: bool, what: str) -> Tensor:
        """Return scored vectors as (N, heads, T, D); unchanged where their shape is another."""
        n, count, _ = self.x.shape
        *before, length, width = scored.shape
        if self.packed:
            fits = length == n * count
            return scored.reshape(-1, n, count, width).transpose(0, 1) if fits else scored
        if len(before) == 1 and before[0] % n == 0:
            return scored.reshape(n, -1, length, width)
        if len(before) != 2 or count not in (before[1], length):
            return scored
        key = (self.inside[-1], explicit, what)
        if before[1] != length:  # else the first run has distinguished them
            self.swapped[key] = before[1] == count
        return scored.transpose(1, 2) if self.swapped.get(key) else scored


_RECORDERS: list[Recorder] = []


def _score(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> Any:
    """Stand in for the attention function; every query gets the same output."""
    _RECORDERS[-1].write(query, key, value, explicit=True)
    n, heads, count = query.shape[:3]
    steps = torch.arange(1.0, value.shape[-1] + 1.0)
    return steps.expand(n, count, heads, -1).clone(), None


def _no_mask(*args: Any, q_length: Any = None, kv_length: Any = None, **kwargs: Any) -> Tensor:
    """Return a mask that hides nothing and takes no memory."""
    batch = kwargs.get("batch_size", args[0] if args else 1)
    sizes = [int(v) if isinstance(v, int) else len(v) for v in (q_length, kv_length) if v]
    rows, columns = sizes if len(sizes) == 2 else (1, 1)
    return torch.zeros(1, 1, 1, 1).expand(int(batch), 1, rows, columns)


# ---- a model without weights ---------------------------------------------------------------------


@in_float32()
def build(
    make: Callable[[Any], Any],
    config: Any,
    few_heads: bool = True,
    skipped: str = "",
    packed: bool = False,
) -> Recorder:
    """Return a model without weights, to be recorded.

    Parameters
    ----------
    make
        Makes the model from a configuration.
    config
        Its configuration; it is copied.
    few_heads
        Whether to make fewer heads, of the same width.
    skipped
        Pattern of the names of a layer's parts that return their input.
    packed
        See `Recorder`.
    """
    from transformers.initialization import no_init_weights
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(NAME, _score)
    ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, _no_mask)
    config = _with_few_heads(config) if few_heads else copy.deepcopy(config)
    with _without_storage(), no_init_weights(), torch.no_grad():
        config._attn_implementation = "eager"
        model = make(config).eval()
    for module in model.modules():
        if TABLES.search(type(module).__name__) and hasattr(model, "_init_weights"):
            model._init_weights(module)  # tables that are parameters, as initialised
        if hasattr(getattr(module, "config", None), "_attn_implementation_internal"):
            module.config._attn_implementation_internal = NAME
        for child in module.children() if isinstance(module, nn.ModuleList) else ():
            _skip_mixers(child, skipped)
    return Recorder(model, packed)


@contextmanager
def _without_storage() -> Iterator[None]:
    """Make parameters on the meta device; buffers, such as frequencies, stay as they are."""
    register = nn.Module.register_parameter

    def on_meta(self: nn.Module, name: str, weight: Any) -> None:
        if weight is not None and not weight.is_meta and not TABLES.search(type(self).__name__):
            weight = nn.Parameter(weight.detach().to("meta"), requires_grad=False)
        register(self, name, weight)

    nn.Module.register_parameter = on_meta  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        nn.Module.register_parameter = register  # type: ignore[method-assign]


class _TensorOrPair(Tensor):
    """A tensor that unpacks into itself and None, for callers that expect a pair."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.as_subclass(Tensor), None))


def _identity(*args: Any, **kwargs: Any) -> Tensor:
    """Return the first tensor given."""
    return next(_tensors((args, kwargs))).as_subclass(_TensorOrPair)


def _skip_mixers(layer: nn.Module, pattern: str) -> None:
    """Let parts of a layer with such a name, neither attention nor norm, return their input."""
    for name, part in layer.named_children():
        kinds = [type(m).__name__ for m in part.modules()]
        plain = isinstance(part, (nn.Linear, nn.ModuleList)) or "orm" in kinds[0] + name
        if plain or any(map(is_attention, kinds)) or next(part.parameters(), None) is None:
            continue
        if re.search(pattern, name) or NO_SCORES.search(kinds[0]):
            part.forward = _identity


def _with_few_heads(config: Any) -> Any:
    """Return a copy with fewer heads of the same width; what one head does stays the same."""
    small = copy.deepcopy(config)
    try:
        heads, keys = config.num_attention_heads, getattr(config, "num_key_value_heads", None)
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
        if isinstance(heads, int) and isinstance(head_dim, int) and heads > 8:
            small.num_attention_heads, small.hidden_size = 2, 2 * head_dim
            if isinstance(getattr(config, "q_lora_rank", None), int):
                _keep_proportion(config, small)
            if isinstance(keys, int):
                small.num_key_value_heads = 2 if keys == heads else 1
    except Exception:  # heads that differ from layer to layer
        return copy.deepcopy(config)
    return small


def _keep_proportion(config: Any, small: Any) -> None:
    """Keep hidden size over query rank, of which LongCat makes a factor on its queries."""
    rank = config.q_lora_rank
    whole = math.gcd(config.hidden_size, rank)
    part = max((p for p in range(2, whole + 1) if whole % p == 0 and rank >= 8 * p), default=1)
    small.hidden_size, small.q_lora_rank = config.hidden_size // part, rank // part


# ---- arguments and results -----------------------------------------------------------------------


def parameters_of(function: Any) -> dict[str, inspect.Parameter]:
    """Return a function's parameters by name."""
    return dict(inspect.signature(function).parameters)


def _tensors(values: Any) -> Iterator[Tensor]:
    """Yield every tensor in nested tuples, lists and dicts."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _tensors(value)
    elif isinstance(values, dict):
        yield from _tensors(list(values.values()))


def _mapped(values: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return nested values with every tensor changed."""
    if isinstance(values, Tensor):
        return change(values)
    if isinstance(values, dict):
        return {key: _mapped(value, change) for key, value in values.items()}
    if isinstance(values, (list, tuple)) and not isinstance(values, torch.Size):
        changed = [_mapped(value, change) for value in values]
        return type(values)(*changed) if hasattr(values, "_fields") else type(values)(changed)
    return values


def _to_meta(x: Tensor) -> Tensor:
    return x.to("meta")


def _to_zeros(x: Tensor) -> Tensor:
    return torch.zeros(x.shape, dtype=x.dtype) if x.is_meta else x
