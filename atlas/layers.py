"""Whole layers and models, from outside: whether what surrounds a rotation keeps the promise.

A rotation may be right and the model wrong: positions forgotten while decoding, padding counted as
tokens, gains that act after the turn. Seven questions with known answers are asked of random
weights, and once more with random gains inside attention.
"""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from rope_minimal.checks import check_count
from ropescope.asking import named
from ropescope.report import LOOK, NOTE, WRONG, Finding

from .opening import ATTENTION, NO_SCORES, TABLES

__all__ = ["CHECKS", "Examination", "examine", "tiny_model"]

CHECKS = {
    "shift": "all positions moved by {shift}",
    "later": "another token at the end, to those before it",
    "cached": "a prompt, then the rest in pieces",
    "padded": "a row padded on the left, also while decoding",
    "packed": "two documents in one row under a document mask",
    "order": "earlier tokens in another order",
    "doubled": "all distances doubled",
}
"""What is done. All but the last two must change nothing, a token at the end nothing before it."""

CHANGING = ("order", "doubled")
"""What must change something."""

SHIFT = 499
"""By how much positions move, if nothing else is said: a prime, which few periods divide."""

TOLERANCE = 1e-3
"""Of the output's typical size: far above what float32 tables round off, far below a failure."""

MOST, FEW = 0.1, 4.0
"""What is never taken for rounding in silence; how many times its noise 16 bits may do."""

NO_GAINS = re.compile(rf"Linear|Conv|Embedding|{TABLES.pattern}")
"""Classes inside attention whose weights are no gains."""

CHAPTERS = {"shift": "why-position", "order": "why-position", "doubled": "why-position"}


@dataclass(frozen=True)
class Examination:
    """What `examine` measured.

    Attributes
    ----------
    errors
        For each of `CHECKS` that could be asked, the largest change of an output in units of their
        typical size.
    with_gains
        The same with random gains inside attention, of norms and whatever is no projection; empty
        where there are none.
    refused
        For each check that could not be asked, what was said.
    exact
        Where a model of 16 or 64 bits fails, what was measured in float32.
    excuses
        For a check that the model may fail by design, what it would be.
    noise
        By how much outputs change, in the same units, if the vectors of the tokens change by as
        much as their type is rounded or float32 rounds the largest angle asked, whichever is more;
        the second with the random gains.
    dtype
        What it computed in.
    """

    errors: dict[str, float]
    with_gains: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    shift: int = SHIFT
    exact: "Examination | None" = None
    excuses: dict[str, str] = field(default_factory=dict)
    noise: tuple[float, float] = (0.0, 0.0)
    dtype: torch.dtype = torch.float32

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One finding for each check that failed."""
        found = (self._finding(key, gains) for gains in (False, True) for key in CHECKS)
        return tuple(finding for finding in found if finding)

    def _measured(self, key: str, gains: bool) -> tuple[float | None, float]:
        """Return the error of a check, None where it was not asked, and what noise does there."""
        errors = self.with_gains if gains else self.errors
        return errors.get(key), self.noise[gains]

    def _passes(self, key: str, gains: bool) -> bool:
        """Whether the answer is the right one, or there is none; what is no number is not right."""
        error, noise = self._measured(key, gains)
        if error is None:
            return True
        # of 16 bits, what noise explains is told as such
        step = 0.0 if self.dtype.itemsize == 2 else noise / _reach(self.shift)
        if key in CHANGING:
            least = 16.0 * step  # sixteen roundings of float32
            return error > min(TOLERANCE, least or TOLERANCE)
        # what asks no far position is rounded no more for a larger shift
        explained = step * _reach(self.shift if key == "shift" else min(self.shift, SHIFT))
        return error <= max(TOLERANCE, min(explained, MOST))

    def _finding(self, key: str, gains: bool) -> Finding | None:
        """Return what is to be said of a check, with gains if without them it is right."""
        if self._passes(key, gains) or (gains and not self._passes(key, False)):
            return None
        error, noise = self._measured(key, gains)
        words = f"{self._name(key)}{' with gains that are not 1' * gains}: "
        words += f"outputs change by {error:.2g} of their size; it must change "
        words += "something" if key in CHANGING else "nothing"
        gravity, chapter = WRONG, CHAPTERS.get(key, "attention")
        judged = self.exact or self
        exactly, limit = judged._measured(key, gains)
        if self.exact and exactly is not None and self.exact._passes(key, gains):
            explained, why = self._explained(error or 0.0, noise)
            gravity, chapter = NOTE if explained else WRONG, "precision"
            words += f", and does in float32, to {exactly:.1g}: {why}"
        elif key not in CHANGING and (exactly or math.inf) <= 2.0 * limit:
            gravity, chapter = LOOK, "precision"
            part = _part(judged.dtype, self.shift)
            words += f", but a change of {part:.0e} in what goes in changes them by {limit:.2g}: "
            words += "such weights enlarge rounding, smaller ones tell"
        elif key in CHANGING and key in self.with_gains and self._passes(key, True):
            gravity = LOOK
            words += ", and does with random gains inside attention"
        elif key in self.excuses and (key != "doubled" or (error or 0.0) <= TOLERANCE):
            gravity = LOOK
            words += f", unless {self.excuses[key]}"
        elif key == "cached" and not self._passes("later", gains):
            words += ", and what later tokens change cannot be kept"
        elif key == "doubled":
            words += ": either positions are lost, or `position_ids` do not reach them"
        return Finding(gravity, f"{words}.", chapter)

    def _explained(self, error: float, noise: float) -> tuple[bool, str]:
        """Return whether the type explains what float32 does not do, and what is to be said."""
        if self.dtype.itemsize > 2:
            why = "masks may not hold" if math.isnan(error) else "something differs"
            return math.isnan(error), f"{why} in float64"
        if error <= FEW * noise:
            return True, "this is rounding to 16 bits"
        why = f"to round the tokens' vectors to 16 bits changes outputs by {noise:.2g}"
        return False, f"{why}, so something else is rounded, such as positions"

    def _name(self, key: str) -> str:
        return CHECKS[key].format(shift=self.shift)

    def __str__(self) -> str:
        lines = []
        for key, error in self.errors.items():
            more = f", random gains {self.with_gains[key]:.2g}" if key in self.with_gains else ""
            lines.append(f"{self._name(key):<50} {error:.2g}{more}")
        lines += [f"{self._name(key):<50} not asked: {said}" for key, said in self.refused.items()]
        return "\n".join([*lines, *(f"- {finding}" for finding in self.findings)])


def _reach(shift: int) -> int:
    """Return the largest position that is asked."""
    return max(2 * TOKENS, TOKENS + shift)


def _part(dtype: torch.dtype, shift: int) -> float:
    """Return what is rounded off: of a number of this type, or by float32 of the largest angle."""
    return max(torch.finfo(dtype).eps / 2.0, 2.0**-24 * _reach(shift))


def examine(model: nn.Module, *, shift: int = SHIFT) -> Examination:
    """Ask a causal layer or model the seven questions of `CHECKS`.

    Parameters
    ----------
    model
        A causal language model of transformers, or a layer of this package
        (`rope_minimal.RotarySelfAttention`). Best a tiny one with large random weights, so that
        its attention aims: see `tiny_model`. It is examined in the type that it has, left as it
        was, and asked without gradients.
    shift
        By how much all positions move, at least 1; by default a prime, which few periods divide.

    Returns
    -------
    Examination

    Raises
    ------
    TypeError, ValueError
        If ``model`` is neither, does not run, answers with zeros or what is not finite, or was
        made under `torch.inference_mode`, outside of which its weights may not change for a while.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    shift = check_count("shift", shift)
    asked = _Layer(model) if hasattr(model, "new_cache") else _Model(model)
    frozen = any(weight.is_inference() for weight in model.parameters())
    if frozen and not torch.is_inference_mode_enabled():
        raise ValueError("model must not be made under torch.inference_mode and examined outside")
    place, dtype = asked.vectors().device.type, asked.vectors().dtype
    if torch.is_autocast_enabled(place):
        dtype = torch.get_autocast_dtype(place)
    part, modes = _part(dtype, shift), [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            errors, refused = _ask_all(asked, shift)
            noise = gains_noise = _noise(asked, part)
            gains: dict[str, float] = {}
            with _random_gains(model) as count:
                if count:
                    gains, _ = _ask_all(asked, shift)
                    gains_noise = _noise(asked, part)
            excuses, noises = _excuses(model), (noise, gains_noise)
            if errors.get("shift", 0.0) > TOLERANCE > _late(asked, shift):
                excuses["shift"] = "position 0 is a start to it: from 1 on, a shift changes nothing"
    finally:
        for module, mode in modes:
            module.training = mode
    found = Examination(errors, gains, refused, shift, None, excuses, noises, dtype)
    if found.findings and dtype != torch.float32:
        # it may run in its own type alone
        with suppress(Exception), _in_float32(model), torch.autocast(place, enabled=False):
            found = replace(found, exact=examine(model, shift=shift))
    return found


def _excuses(model: nn.Module) -> dict[str, str]:
    """Return what a model may be by design, and which check it fails then."""
    excuses, resting = {}, _resting(getattr(model, "config", None))
    if resting:
        excuses["doubled"] = (
            f"it knows no positions, or none but its own count, as {resting} may mean"
        )
    if beside := _beside(model):
        excuses["packed"] = f"its {beside} do it, which no mask of attention reaches"
    return excuses


def _resting(config: Any) -> str:
    """Return what in a configuration may mean that no layer turns anything."""
    if config is None:
        return ""
    if not getattr(config, "rope_parameters", None):
        return "the lack of rope_parameters"
    turning = {
        "no_rope_layers": any(getattr(config, "no_rope_layers", None) or [True]),
        "layer_rope_theta": any(getattr(config, "layer_rope_theta", None) or [True]),
        "use_mem_rope": getattr(config, "use_mem_rope", True),
        "position_embedding_type": getattr(config, "position_embedding_type", "rope") == "rope",
        "alibi": not getattr(config, "alibi", False),
    }
    for name, turns in turning.items():
        if not turns:
            return name
    kinds, known = set(getattr(config, "layer_types", None) or ()), set[str]()
    with suppress(Exception):  # a class may have no defaults
        known = set(type(config)().layer_types)
    # of several kinds, those that are left out may be those that turn
    return "layer_types" if kinds < known or kinds == {"linear_attention"} else ""


def _beside(model: nn.Module) -> str:
    """Return what a model has beside attention that makes tokens know of each other."""
    types = getattr(getattr(model, "config", None), "layer_types", None) or ()
    beside = {"linear attention": "linear_attention" in types}
    beside |= {"convolutions": any(isinstance(part, nn.Conv1d) for part in model.modules())}
    return " and ".join(name for name, there in beside.items() if there)


TOKENS, PROMPT, AT_ONCE, PADDING, CUT = 32, 9, 7, 5, 13


def _ask_all(asked: "_Layer | _Model", shift: int) -> tuple[dict[str, float], dict[str, str]]:
    """Return the error of each check, and what was said where one could not be asked."""
    try:
        plain = asked.run()
    except Exception as error:  # whatever a stranger's model raises
        words = f"model must answer {TOKENS} tokens, with logits, got {named(error, 120)}"
        raise ValueError(words) from error
    size = _size(plain)
    if not 0.0 < size < math.inf:
        raise ValueError(f"model must answer finite numbers, not all 0, got a size of {size}")
    rest = torch.arange(TOKENS)
    swapped = torch.cat((rest[:-1].flip(0), rest[-1:]))
    another = torch.cat((rest[:-1], rest[:1]))
    checks: dict[str, Callable[[], Tensor]] = {
        "shift": lambda: asked.run(positions=rest + shift) - plain,
        "later": lambda: (asked.run(tokens=another) - plain)[:, :-1],
        "cached": lambda: asked.run_cached() - plain,
        "padded": lambda: asked.run_padded(plain),
        "packed": lambda: torch.stack([asked.run_packed(way) for way in (True, False)]),
        "order": lambda: (asked.run(tokens=swapped) - plain)[:, -1:],
        "doubled": lambda: asked.run_apart(2) - asked.run_apart(1),
    }
    errors, refused = {}, {}
    for key, check in checks.items():
        try:
            errors[key] = float(check().abs().max()) / size
        except Exception as error:  # whatever a stranger's model raises
            refused[key] = named(error, 120)
    return errors, refused


def _late(asked: "_Layer | _Model", shift: int) -> float:
    """Return by how much a shift changes outputs if no token is at position 0."""
    plain = asked.run(positions=torch.arange(1, TOKENS + 1))
    moved = asked.run(positions=torch.arange(1, TOKENS + 1) + shift)
    return float((moved - plain).abs().max()) / _size(plain)


def _size(outputs: Tensor) -> float:
    """Return the typical size of outputs: the root of their mean square."""
    return float(outputs.float().square().mean().sqrt())


def _noise(asked: "_Layer | _Model", part: float) -> float:
    """Return the change of outputs if numbers of the tokens' vectors change by up to this part."""
    vectors = asked.vectors()
    plain, before = asked.run(), vectors.clone()
    random = torch.rand(vectors.shape, generator=torch.Generator().manual_seed(0))
    try:
        vectors.copy_(before * (1.0 + part * (2.0 * random.to(vectors.device) - 1.0)))
        return float((asked.run() - plain).abs().max()) / _size(plain)
    finally:
        vectors.copy_(before)


class _Layer:
    """A layer of this package: vectors in, cache and padding by its own arguments."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        weight = next(layer.parameters())
        random = torch.Generator().manual_seed(0)
        shape = (1, TOKENS, layer.embed_dim)
        self.x = torch.randn(shape, generator=random, dtype=torch.float64).to(weight)

    def vectors(self) -> Tensor:
        return self.x

    def run(self, tokens: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        x = self.x if tokens is None else self.x[:, tokens]
        ids = None if positions is None else positions[None]
        return self.layer(x, position_ids=ids)

    def run_apart(self, step: int) -> Tensor:
        return self.run(positions=step * torch.arange(TOKENS))

    def run_cached(self) -> Tensor:
        cache = self.layer.new_cache(1, TOKENS)
        return torch.cat(
            [self.layer(part, cache=cache) for part in _pieces(self.x, AT_ONCE)], dim=1
        )

    def run_padded(self, plain: Tensor) -> Tensor:
        """Return what a batch of a padded row and a longer one changes in both."""
        row = torch.cat((torch.ones_like(self.x[:, :PADDING]), self.x), dim=1)
        rows, cache = torch.cat((row, row.flip(1))), self.layer.new_cache(2, TOKENS + PADDING)
        first, *rest = rows.split((PADDING + PROMPT, *[1] * (TOKENS - PROMPT)), dim=1)
        mask = torch.zeros(first.shape[:2], dtype=torch.bool, device=rows.device)
        mask[0, :PADDING] = True
        parts = [self.layer(first, cache=cache, key_padding_mask=mask)]
        padded, longer = torch.cat(
            [*parts, *(self.layer(part, cache=cache) for part in rest)], dim=1
        ).split(1)
        return torch.cat((padded[:, PADDING:] - plain, longer - self.layer(rows[1:])), dim=1)

    def run_packed(self, cached: bool) -> Tensor:
        """Return what two documents in one row change, beside a cache or without."""
        place = torch.arange(TOKENS, device=self.x.device)
        ids, sizes = torch.where(place < CUT, place, place - CUT), (CUT, TOKENS - CUT)
        seen = (place < CUT)[:, None] == (place < CUT)
        cache = self.layer.new_cache(1, TOKENS) if cached else None
        packed = self.layer(self.x, position_ids=ids[None], cache=cache, attn_mask=seen[None])
        return packed - torch.cat([self.layer(part) for part in self.x.split(sizes, 1)], dim=1)


class _Model:
    """A causal language model of transformers: token ids in, logits out."""

    def __init__(self, model: Any) -> None:
        self.model = model
        random = torch.Generator().manual_seed(0)
        try:
            words = model.get_input_embeddings().num_embeddings
        except (AttributeError, NotImplementedError) as error:
            wanted = "a causal language model of transformers or a layer of this package"
            raise TypeError(f"model must be {wanted}, got {type(model).__name__}") from error
        self.place = self.vectors().device
        self.ids = torch.randint(3, words, (1, TOKENS), generator=random).to(self.place)

    def vectors(self) -> Tensor:
        return self.model.get_input_embeddings().weight

    def run(self, tokens: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        ids = self.ids if tokens is None else self.ids[:, tokens.to(self.place)]
        positions = torch.arange(TOKENS) if positions is None else positions
        at = positions[None].to(self.place)
        return self.model(input_ids=ids, position_ids=at, use_cache=False).logits

    def run_cached(self) -> Tensor:
        cache, logits = None, []
        at_once = 1 if _beside(self.model) else AT_ONCE  # a state may not go on by several
        for part in _pieces(self.ids, at_once):
            answer = self.model(input_ids=part, past_key_values=cache, use_cache=True)
            cache = answer.past_key_values
            logits.append(answer.logits)
        return torch.cat(logits, dim=1)

    def run_padded(self, plain: Tensor) -> Tensor:
        """Return what a batch of a padded row and a longer one changes in both."""
        row = torch.cat((self.ids[:, :PADDING], self.ids), dim=1)
        rows = torch.cat((row, row.flip(1)))
        mask = torch.ones_like(rows)
        mask[0, :PADDING] = 0
        alone = self._run_masked(rows[1:], mask[1:])
        runs = [self._run_masked(rows, mask)]
        with suppress(Exception):  # what cannot decode is told by another check
            runs.append(self._run_masked(rows, mask, PADDING + PROMPT))
        both = [run.split(1) for run in runs]
        off = [part for a, b in both for part in (a[:, PADDING:] - plain, b - alone)]
        return torch.cat(off, dim=1)

    def _run_masked(self, ids: Tensor, mask: Tensor, prompt: int | None = None) -> Tensor:
        """Run at once, or a prompt and then token by token, each with all of the mask so far."""
        positions, cache, logits, start = (mask.cumsum(dim=-1) - 1).clamp(min=0), None, [], 0
        for end in range(prompt or ids.shape[1], ids.shape[1] + 1):
            answer = self.model(
                input_ids=ids[:, start:end],
                attention_mask=mask[:, :end],
                position_ids=positions[:, start:end],
                past_key_values=cache,
                use_cache=prompt is not None,
            )
            cache, start = getattr(answer, "past_key_values", None), end
            logits.append(answer.logits)
        return torch.cat(logits, dim=1)

    def run_packed(self, cached: bool) -> Tensor:
        """Return what two documents in one row change, beside a cache, as decoded, or without."""
        place = torch.arange(TOKENS)
        # no mask of transformers' own: it makes one of positions that start again without a cache
        ids = torch.where(place < CUT, place, place - CUT) if cached else place
        packed = self._run_seen(self.ids, place >= CUT, ids, use_cache=cached)
        sizes = CUT, TOKENS - CUT
        parts = zip(self.ids.split(sizes, dim=1), ids.split(sizes), strict=True)
        # alone under a mask as well, which takes the place of a window
        alone = [self._run_seen(part, at < 0, at, use_cache=cached) for part, at in parts]
        return packed - torch.cat(alone, dim=1)

    def run_apart(self, step: int) -> Tensor:
        place = torch.arange(TOKENS)  # without a mask, a gap may be taken for another document
        return self._run_seen(self.ids, place < 0, step * place)

    def _run_seen(
        self, ids: Tensor, document: Tensor, positions: Tensor, use_cache: bool = False
    ) -> Tensor:
        """Run under a mask by which a token sees the earlier ones of its document."""
        seen = (document[:, None] == document).tril()
        mask = torch.zeros(1, 1, *seen.shape, dtype=next(self.model.parameters()).dtype)
        mask.masked_fill_(~seen, torch.finfo(mask.dtype).min)
        mask, at = mask.to(self.place), positions[None].to(self.place)
        answer = self.model(
            input_ids=ids, attention_mask=mask, position_ids=at, use_cache=use_cache
        )
        return answer.logits


def _pieces(x: Tensor, at_once: int) -> tuple[Tensor, ...]:
    """Return a prompt, then as many tokens as are given at once, then one at a time."""
    return x.split((PROMPT, at_once, *[1] * (TOKENS - PROMPT - at_once)), dim=1)


@contextmanager
def _in_float32(model: nn.Module) -> Iterator[None]:
    """Cast a model for a while; a copy might run what a closure keeps of the model itself."""
    weights = [(weight, weight.data, weight.grad) for weight in model.parameters()]
    buffers = [(module._buffers, dict(module._buffers)) for module in model.modules()]
    try:
        for weight, *_ in weights:
            weight.grad = None
        model.float()
        yield
    finally:
        for weight, data, grad in weights:
            weight.data, weight.grad = data, grad
        for own, kept in buffers:
            own.update(kept)


@contextmanager
def _random_gains(model: nn.Module) -> Iterator[int]:
    """Add random numbers to gains inside attention for a while; yield how many there are."""
    gains = _gains(model)
    before = [gain.clone() for gain in gains]
    random = torch.Generator().manual_seed(0)
    try:
        for gain in gains:
            gain.add_(torch.randn(gain.shape, generator=random).to(gain))
        yield len(gains)
    finally:
        for gain, old in zip(gains, before, strict=True):
            gain.copy_(old)


def _gains(model: nn.Module) -> list[Tensor]:
    """Return what may be gains inside attention, each once: weights of anything but projections."""
    gains: dict[int, Tensor] = {}
    for name, attention in model.named_modules():
        kinds = " ".join(kind.__name__ for kind in type(attention).__mro__)
        attends = ATTENTION.search(kinds) or re.fullmatch(r".*\b(self_)?(attn|attention)", name)
        if not attends or NO_SCORES.search(kinds):
            continue
        for part in attention.modules():
            if not NO_GAINS.search(type(part).__name__):
                own = dict(part.named_parameters(recurse=False))
                gains |= {id(own[key]): own[key] for key in own if not key.endswith("bias")}
    return list(gains.values())


SMALL: dict[str, Any] = {
    "hidden_size": 64, "n_embd": 64, "num_attention_heads": 4, "num_key_value_heads": 4,
    "n_head": 4, "head_dim": 16, "num_hidden_layers": 2, "n_layer": 2, "vocab_size": 101,
    "intermediate_size": 96, "moe_intermediate_size": 8, "shared_expert_intermediate_size": 8,
    "num_experts": 2, "num_local_experts": 2, "num_experts_per_tok": 1, "pad_token_id": 0,
    "n_routed_experts": 2, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
    "initializer_range": 0.3, "rotary_dim": 16, "n_positions": 4096,
    "max_position_embeddings": 4096,
    "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 8},
    "is_decoder": True,
}  # fmt: skip
"""What makes a model small, and its summaries those of fewer tokens than `TOKENS`."""


def tiny_model(family: str, **sizes: Any) -> Any:
    """Return a small random causal model of a family of transformers.

    Parameters
    ----------
    family
        Its ``model_type``, such as ``"llama"``.
    **sizes
        Parts of its configuration, before the small ones of this module.
    """
    import transformers

    default = transformers.AutoConfig.for_model(family)
    small = {key: value for key, value in SMALL.items() if hasattr(default, key)}
    if hasattr(default, "qk_rope_head_dim"):  # a head has parts, each of a width of its own
        small.pop("head_dim", None)
    for refused in (None, *small):  # a class may refuse one of them
        with suppress(Exception):
            few = {key: value for key, value in small.items() if key != refused}
            config = type(default)(**{**few, **sizes})
            break
    else:
        config = type(default)(**{**small, **sizes})  # says why
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    return model.eval()  # in float32: masks of a family may not hold in float64
