"""Opening: a model of transformers without its weights, whose attention writes down what it scores.

The family's own code runs: tables, layers, cuts of the head, norms. Its weights have no storage.
What a weight touches becomes zeros, except that projections inside an attention module answer with
the vectors that are asked about; and the function that makes scores is replaced by one that writes
down its arguments. All that stands between a projection and a score is therefore the family's own.
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

__all__ = ["ATTENTION", "MIXERS", "Record", "Recorder", "arguments", "build", "in_float32"]

NAME = "rope_minimal_recorder"
ATTENTION = re.compile(r"Attention|Attn|MLA|Indexer")
TABLES = re.compile(r"Sinusoidal|Rotary|Rope")
NO_SCORES = re.compile(r"Delta|Linear|Lightning|Mamba|GatedMLP")
MIXERS = r"(mlp|moe|feed_forward|ffn|ff|experts|mixer|mamba|conv|linear_attn)$"
SCORES = {"matmul", "__matmul__", "bmm", "baddbmm", "einsum", "scaled_dot_product_attention"}
PROJECTIONS = {"linear", "addmm", "matmul", "__matmul__", "conv1d"}


@contextmanager
def in_float32() -> Iterator[None]:
    """Let new tensors be of float32, whatever the default of the session is."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


@dataclass(frozen=True)
class Record:
    """What one attention module scored: (N, heads, T, channels) each, where it can be seen so.

    ``sure`` says that it was the function that makes scores, not any product inside attention;
    ``output`` is what its last projection was given.
    """

    query: Tensor
    key: Tensor
    value: Tensor | None
    sure: bool
    output: Tensor | None = None


class _HeardEnoughError(Exception):
    """The module that was asked about has been heard."""


class Recorder(TorchFunctionMode):
    """A model without weights, its attention opened; see `build`.

    Attributes
    ----------
    model
        What runs.
    one_row : bool
        Whether the model is called with N and positions, and lays all N rows in one.
    by_ids : bool
        Whether token ids go in, or embeddings.
    counts : bool
        Whether the model counts tokens, whatever positions it is given.
    products : set of str
        Modules that are heard by their first product, no function that makes scores being called.
    records, normed
        Of the last run, for each module: what it scored, and its norms.
    """

    def __init__(self, model: Any, one_row: bool = False) -> None:
        super().__init__()
        self.model, self.one_row = model, one_row
        self.wanted = arguments(model.forward)
        self.by_ids = "input_ids" in self.wanted
        self.counts = not one_row and "position_ids" not in self.wanted
        self.products: set[str] = set()
        self.shapes: dict[str, int] = {}  # how many things a module answers with, 0 for a tensor
        self.stop: str | None = None
        self.gain: Tensor | None = None
        self.x = torch.empty(0, 0, 0)
        self.swapped: dict[tuple[str, bool, str], bool] = {}  # whether positions precede heads
        self._forget()
        for name, module in model.named_modules():
            kind = type(module).__name__
            if ATTENTION.search(kind) and not NO_SCORES.search(kind):
                module.forward = partial(self._attend, name, module.forward)
            elif kind != "Identity" and ("Norm" in kind or "norm" in name.rsplit(".", 1)[-1]):
                module.forward = partial(self._norm, module)

    def _forget(self) -> None:
        self.inside: list[str] = []
        self.records: dict[str, Record] = {}
        self.normed: dict[str, list[nn.Module]] = {}
        self.unclear: set[tuple[str, bool, str]] = set()

    @in_float32()
    def run(
        self, x: Tensor, at: Tensor, stop: str | None = None, gain: Tensor | None = None
    ) -> dict[str, Record]:
        """Run the model on N rows of T tokens; return what each module scored.

        Parameters
        ----------
        x
            What projections answer, (N, T, D).
        at
            Positions, (T, axes).
        stop
            The module after which nothing is wanted.
        gain
            Gains of all norms inside attention, (D,).
        """
        self.x, self.stop, self.gain = x, stop, gain
        self._forget()
        _RECORDERS.append(self)
        try:
            with torch.no_grad(), self:
                self.model(**self._inputs(len(x), at))
        except _HeardEnoughError:
            pass
        finally:
            _RECORDERS.pop()
        if self.unclear:  # as many heads as positions: one position more tells which is which
            self.swapped |= dict.fromkeys(self.unclear, False)
            more = [*range(len(at)), -1]
            self.run(x[:, more], at[more], stop, gain)
            return self.run(x, at, stop, gain)
        return self.records

    def _inputs(self, n: int, at: Tensor) -> dict[str, Any]:
        if self.one_row:
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
        return inputs | {key: value for key, value in more.items() if key in self.wanted}

    def _attend(self, name: str, forward: Any, *args: Any, **kwargs: Any) -> Any:
        """Attend, unless another module is asked about: then hand on what comes in."""
        if self.stop is not None and name in self.shapes and not self.stop.startswith(name):
            first = next(_tensors((args, kwargs)))
            return (first, *[None] * (self.shapes[name] - 1)) if self.shapes[name] else first
        self.inside.append(name)
        try:
            answer = forward(*args, **kwargs)
        finally:
            self.inside.pop()
        self.shapes[name] = len(answer) if isinstance(answer, tuple) else 0
        return answer

    def _norm(self, module: nn.Module, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Leave a norm out, or let gains alone act."""
        if not x.is_floating_point():  # an embedding that is normed
            return type(module).forward(module, x, *args, **kwargs)
        if not self.inside or self.inside[-1] in self.records:
            return x
        self.normed.setdefault(self.inside[-1], []).append(module)
        if self.gain is None or x.shape[-1] % len(self.gain):
            return x
        return x * self.gain.repeat(x.shape[-1] // len(self.gain))

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run torch's function; where a weight takes part, return what stands for its answer."""
        kwargs = kwargs or {}
        given = list(_tensors((args, kwargs)))
        name = getattr(func, "__name__", "")
        if str(kwargs.get("device")) == "meta":
            kwargs = {**kwargs, "device": "cpu"}  # what goes where the weights are stays here
        real = [t for t in given if not t.is_meta]
        if len(real) == len(given):
            if self.inside and name in SCORES:
                self._heard_product(name, [t for t in given if t.ndim >= 3])
            if name == "to" and any(str(value) == "meta" for value in args[1:]):
                return args[0]
            return func(*args, **kwargs)
        if name.startswith("__get__") or not (real or name in PROJECTIONS):
            return func(*args, **kwargs)
        record = self.records.get(self.inside[-1]) if self.inside else None
        if real and record is not None and record.output is None:
            self.records[self.inside[-1]] = replace(record, output=real[0])
        answer = func(*_mapped(args, _to_meta), **_mapped(kwargs, _to_meta))
        if self.inside and name in PROJECTIONS:
            n, count, width = self.x.shape
            channels = answer.shape[-1]
            if answer.numel() == n * count * channels:
                answered = self.x.repeat(1, 1, -(-channels // width))[..., :channels]
                return answered.reshape(answer.shape)
        return _mapped(answer, _to_zeros)

    def _heard_product(self, name: str, given: list[Tensor]) -> None:
        if len(given) >= 3 and name == "scaled_dot_product_attention":
            self.write(given[0], given[1], given[2], sure=True)
        elif len(given) >= 2:
            self.write(given[-2], given[-1].mT, None, sure=False)

    def write(self, query: Tensor, key: Tensor, value: Tensor | None, sure: bool) -> None:
        """Write down the first score of a module: a score that calls itself one comes first."""
        name = self.inside[-1]
        known = self.records.get(name)
        if known is None or (sure and not known.sure):
            more = None if value is None else self._rows(value, sure, "value")
            q, k = self._rows(query, sure, "query"), self._rows(key, sure, "key")
            self.records[name] = Record(q, k, more, sure)
        elif not sure and not known.sure and known.value is None:
            values = self._rows(key.mT, sure, "value")  # weights times values
            if values.shape[:-1] == known.key.shape[:-1]:
                self.records[name] = replace(known, value=values)
        if self.stop == name and (sure or name in self.products):
            raise _HeardEnoughError

    def _rows(self, scored: Tensor, sure: bool, what: str) -> Tensor:
        """Return what was scored as (N, heads, T, D); as it is where it has other numbers."""
        n, count, _ = self.x.shape
        *before, length, width = scored.shape
        if self.one_row:
            fits = length == n * count
            return scored.reshape(-1, n, count, width).transpose(0, 1) if fits else scored
        if len(before) == 1 and before[0] % n == 0:
            return scored.reshape(n, -1, length, width)
        if len(before) != 2 or count not in (before[1], length):
            return scored
        key = (self.inside[-1], sure, what)
        if before[1] != length:
            self.swapped[key] = before[1] == count
        elif key not in self.swapped and count > 1:  # sizes alone do not tell
            self.unclear.add(key)
        return scored.transpose(1, 2) if self.swapped.get(key) else scored


_RECORDERS: list[Recorder] = []


def _score(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> Any:
    """Stand where attention is computed; every query gets the same answer."""
    _RECORDERS[-1].write(query, key, value, sure=True)
    n, heads, count = query.shape[:3]
    steps = torch.arange(1.0, value.shape[-1] + 1.0)
    return steps.expand(n, count, heads, -1).clone(), None


def _no_mask(*args: Any, q_length: Any = None, kv_length: Any = None, **kwargs: Any) -> Tensor:
    """Return a mask that hides nothing and takes no space."""
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
    left_out: str = "",
    one_row: bool = False,
) -> Recorder:
    """Return a model without weights, opened.

    Parameters
    ----------
    make
        Makes the model from a configuration.
    config
        Its configuration; it is copied.
    few_heads
        Whether fewer heads are made, of the same width.
    left_out
        Names of the parts of a layer that hand on what they get.
    one_row
        See `Recorder`.
    """
    from transformers.initialization import no_init_weights
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(NAME, _score)
    ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, _no_mask)
    config = _of_few_heads(config) if few_heads else copy.deepcopy(config)
    with _weightless(), no_init_weights(), torch.no_grad():
        config._attn_implementation = "eager"
        model = make(config).eval()
    for module in model.modules():
        if TABLES.search(type(module).__name__) and hasattr(model, "_init_weights"):
            model._init_weights(module)  # weights of a table as in the beginning
        if hasattr(getattr(module, "config", None), "_attn_implementation_internal"):
            module.config._attn_implementation_internal = NAME
        for child in module.children() if isinstance(module, nn.ModuleList) else ():
            _leave_out_mixers(child, left_out)
    return Recorder(model, one_row)


@contextmanager
def _weightless() -> Iterator[None]:
    """Let parameters be made without storage; buffers, such as frequencies, stay as they are."""
    register = nn.Module.register_parameter

    def without_storage(self: nn.Module, name: str, weight: Any) -> None:
        if weight is not None and not weight.is_meta and not TABLES.search(type(self).__name__):
            weight = nn.Parameter(weight.detach().to("meta"), requires_grad=False)
        register(self, name, weight)

    nn.Module.register_parameter = without_storage  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        nn.Module.register_parameter = register  # type: ignore[method-assign]


class _Handed(Tensor):
    """A tensor that is a pair as well, for callers that expect one."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.as_subclass(Tensor), None))


def _hand_on(*args: Any, **kwargs: Any) -> Tensor:
    """Return what comes in, as a tensor or, if the caller unpacks it, with None beside it."""
    return next(_tensors((args, kwargs))).as_subclass(_Handed)


def _leave_out_mixers(layer: nn.Module, named: str) -> None:
    """Let what is named so in a layer, and is neither attention nor norm, hand on what it gets."""
    for name, part in layer.named_children():
        kinds = [type(m).__name__ for m in part.modules()]
        scores = any(ATTENTION.search(k) and not NO_SCORES.search(k) for k in kinds)
        plain = isinstance(part, (nn.Linear, nn.ModuleList)) or "orm" in kinds[0] + name
        if scores or plain or not (re.search(named, name) or NO_SCORES.search(kinds[0])):
            continue
        if any(True for _ in part.parameters()):
            part.forward = _hand_on


def _of_few_heads(config: Any) -> Any:
    """Return a copy with fewer heads of the same width: what a head does is not changed by it."""
    small = copy.deepcopy(config)
    try:
        heads, keys = config.num_attention_heads, getattr(config, "num_key_value_heads", None)
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
        if isinstance(heads, int) and isinstance(head_dim, int) and heads > 2:
            small.num_attention_heads, small.hidden_size = 2, 2 * head_dim
            rank = getattr(config, "q_lora_rank", None)
            if isinstance(rank, int):  # LongCat's queries have a factor made of the proportion
                whole = math.gcd(config.hidden_size, rank)
                parts = [p for p in range(2, whole + 1) if whole % p == 0 and rank >= 8 * p]
                part = max(parts, default=1)
                small.hidden_size, small.q_lora_rank = config.hidden_size // part, rank // part
            if isinstance(keys, int):
                small.num_key_value_heads = 2 if keys == heads else 1
    except Exception:  # heads that differ from layer to layer
        return copy.deepcopy(config)
    return small


# ---- what goes in and comes out ------------------------------------------------------------------


def arguments(function: Any) -> dict[str, inspect.Parameter]:
    """Return the arguments that a function takes, by name."""
    return dict(inspect.signature(function).parameters)


def _tensors(values: Any) -> Iterator[Tensor]:
    """Yield every tensor in whatever holds it."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _tensors(value)
    elif isinstance(values, dict):
        yield from _tensors(list(values.values()))


def _mapped(values: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return the same with every tensor in it changed."""
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
