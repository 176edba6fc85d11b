"""Examine whole layers and models: what surrounds a rotation may be wrong where that is right.

Positions are lost while decoding, padding counts as tokens, norm weights follow the rotation. Seven
checks with known outcomes run on random weights, and again with random norm weights in attention.
"""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from rope_minimal.checks import check_count
from ropescope import Finding, Severity

from .recorder import TABLES, is_attention
from .recording import summary

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
"""What is changed. Outputs must stay the same, but for the last two, which must change them."""

CHANGING = ("order", "doubled")
"""Checks that must change outputs."""

SHIFT = 499
"""Default shift of positions: a prime, which few periods divide."""

TOLERANCE = 1e-3
"""Relative to the typical output: far above rounding of float32 tables, far below a failure."""

MOST, FEW = 0.1, 4.0
"""Changes that always have a finding; how many times its noise 16 bits may change outputs."""

NO_WEIGHTS = re.compile(rf"Linear|Conv|Embedding|{TABLES.pattern}")
"""Classes inside attention whose parameters are no norm weights."""

CHAPTERS = {"shift": "why-position", "order": "why-position", "doubled": "why-position"}


@dataclass(frozen=True)
class Examination:
    """What `examine` measured.

    Attributes
    ----------
    errors
        By check of `CHECKS`, the largest change of an output relative to their root mean square.
    weighted
        The same with random norm weights inside attention; empty where there are none.
    refused
        By check that did not run, the error.
    shift
        By how much positions moved.
    in_float32
        Where a model of another dtype fails, the same in float32.
    excuses
        By check that the model may fail by design, what it would be.
    noise
        Change of outputs, in the same units, if the vectors of the tokens change by the rounding
        of their dtype or by that of the largest angle in float32, whichever is more; the second
        with the random norm weights.
    dtype
        What it computed in.
    """

    errors: dict[str, float]
    weighted: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    shift: int = SHIFT
    in_float32: "Examination | None" = None
    excuses: dict[str, str] = field(default_factory=dict)
    noise: tuple[float, float] = (0.0, 0.0)
    dtype: torch.dtype = torch.float32

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One finding for each check that failed."""
        found = (self._finding(key, weighted) for weighted in (False, True) for key in CHECKS)
        return tuple(finding for finding in found if finding)

    def _measured(self, key: str, weighted: bool) -> tuple[float | None, float]:
        """Return the error of a check, None where it did not run, and the noise."""
        return (self.weighted if weighted else self.errors).get(key), self.noise[weighted]

    def _passes(self, key: str, weighted: bool) -> bool:
        """Return whether a check passed or did not run; NaN does not pass."""
        error, noise = self._measured(key, weighted)
        if error is None:
            return True
        # in 16 bits, what noise explains has a finding of its own
        step = 0.0 if self.dtype.itemsize == 2 else noise / _farthest(self.shift)
        if key in CHANGING:
            return error > min(TOLERANCE, 16.0 * step or TOLERANCE)  # roundings of float32
        # checks without far positions are rounded no more for a larger shift
        explained = step * _farthest(self.shift if key == "shift" else min(self.shift, SHIFT))
        return error <= max(TOLERANCE, min(explained, MOST))

    def _finding(self, key: str, weighted: bool) -> Finding | None:
        """Return the finding on a check; with norm weights only if it passes without."""
        if self._passes(key, weighted) or (weighted and not self._passes(key, False)):
            return None
        error, _ = self._measured(key, weighted)
        words = f"{self._name(key)}{' with norm weights that are not 1' * weighted}: "
        words += f"outputs change by {error:.2g} of their size; it must change "
        words += "something" if key in CHANGING else "nothing"
        severity, chapter, cause = self._rounding(key, weighted) or self._cause(key, weighted)
        return Finding(severity, f"{words}{cause}.", chapter)

    def _cause(self, key: str, weighted: bool) -> tuple[int, str, str]:
        """Return how severe a failure is, its chapter and its cause where that is no rounding."""
        chapter, (error, _) = CHAPTERS.get(key, "attention"), self._measured(key, weighted)
        if key in CHANGING and key in self.weighted and self._passes(key, True):
            return Severity.WARNING, chapter, ", and does with random norm weights"
        if key in self.excuses and (key != "doubled" or (error or 0.0) <= TOLERANCE):
            return Severity.WARNING, chapter, f", unless {self.excuses[key]}"
        if key == "cached" and not self._passes("later", weighted):
            return Severity.ERROR, chapter, ", and what later tokens change cannot be cached"
        lost = ": either positions are lost, or `position_ids` do not reach them"
        return Severity.ERROR, chapter, lost if key == "doubled" else ""

    def _rounding(self, key: str, weighted: bool) -> tuple[int, str, str] | None:
        """Return the same of a failure by rounding; None of others."""
        judge = self.in_float32 or self
        exact, limit = judge._measured(key, weighted)
        if self.in_float32 and exact is not None and judge._passes(key, weighted):
            severity, why = self._in_16_or_64_bits(*self._measured(key, weighted))
            return severity, "precision", f", and does in float32, to {exact:.1g}: {why}"
        if key in CHANGING or (exact or math.inf) > 2.0 * limit:
            return None
        part = f"{_rounded(judge.dtype, self.shift):.0e}"
        words = f", but a change of {part} in the inputs changes them by {limit:.2g}: "
        return (
            Severity.WARNING,
            "precision",
            f"{words}such weights amplify rounding, smaller ones decide",
        )

    def _in_16_or_64_bits(self, error: float | None, noise: float) -> tuple[int, str]:
        """Return the severity and cause of what fails in this dtype and passes in float32."""
        if self.dtype.itemsize > 2:
            if math.isnan(error or 0.0):
                return Severity.INFO, "masks may overflow in float64"
            return Severity.ERROR, "something differs in float64"
        if (error or 0.0) <= FEW * noise:
            return Severity.INFO, "this is rounding to 16 bits"
        why = f"to round the tokens' vectors to 16 bits changes outputs by {noise:.2g}"
        return Severity.ERROR, f"{why}, so something else is rounded, such as positions"

    def _name(self, key: str) -> str:
        return CHECKS[key].format(shift=self.shift)

    def __str__(self) -> str:
        lines = []
        for key, error in self.errors.items():
            more = f", random norm weights {self.weighted[key]:.2g}" if key in self.weighted else ""
            lines.append(f"{self._name(key):<50} {error:.2g}{more}")
        lines += [f"{self._name(key):<50} not run: {why}" for key, why in self.refused.items()]
        return "\n".join([*lines, *(f"- {finding}" for finding in self.findings)])


def _farthest(shift: int) -> int:
    """Return the largest position of all checks."""
    return max(2 * TOKENS, TOKENS + shift)


def _rounded(dtype: torch.dtype, shift: int) -> float:
    """Return the relative rounding of a dtype, or that of the largest angle in float32 if more."""
    return max(torch.finfo(dtype).eps / 2.0, 2.0**-24 * _farthest(shift))


def examine(model: nn.Module, *, shift: int = SHIFT) -> Examination:
    """Run the seven checks of `CHECKS` on a causal layer or model.

    Parameters
    ----------
    model
        A causal language model of transformers, or a layer of this package
        (`rope_minimal.RotarySelfAttention`). Best a tiny one with large random weights, whose
        attention is sharp: see `tiny_model`. It runs in its own dtype without gradients, and is
        left as it was.
    shift
        By how much all positions move, at least 1; by default a prime, which few periods divide.

    Returns
    -------
    Examination

    Raises
    ------
    TypeError, ValueError
        If ``model`` is neither, does not run, returns zeros or what is not finite, or was made
        under `torch.inference_mode`, outside of which its weights cannot change for a while.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    shift = check_count("shift", shift)
    subject = _Layer(model) if hasattr(model, "new_cache") else _Model(model)
    frozen = any(weight.is_inference() for weight in model.parameters())
    if frozen and not torch.is_inference_mode_enabled():
        raise ValueError("model must not be made under torch.inference_mode and examined outside")
    device, dtype = subject.vectors.device.type, subject.vectors.dtype
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            found = _examined(subject, shift, dtype)
    finally:
        for module, mode in modes:
            module.training = mode
    if found.findings and dtype != torch.float32:
        # it may run in its own dtype only
        with suppress(Exception), _in_float32(model), torch.autocast(device, enabled=False):
            found = replace(found, in_float32=examine(model, shift=shift))
    return found


def _examined(subject: "_Layer | _Model", shift: int, dtype: torch.dtype) -> Examination:
    """Measure all checks in evaluation mode."""
    part, excuses = _rounded(dtype, shift), _excuses(subject.model)
    make = partial(_Checks, subject, shift, 1 if "packed" in excuses else AT_ONCE)
    try:
        plain = make()
    except Exception as error:  # whatever a model raises
        words = f"model must run on {TOKENS} tokens and return logits, got {summary(error)}"
        raise ValueError(words) from error
    errors, refused = plain.all()
    noise = weighted_noise = plain.noise(part)
    weighted: dict[str, float] = {}
    with _random_norm_weights(subject.model) as count:
        if count:
            varied = make()
            (weighted, _), weighted_noise = varied.all(), varied.noise(part)
    if errors.get("shift", 0.0) > TOLERANCE > plain.late_shift():
        excuses["shift"] = "position 0 starts a recurrence: from 1 on, a shift changes nothing"
    return Examination(
        errors, weighted, refused, shift, None, excuses, (noise, weighted_noise), dtype
    )


def _excuses(model: nn.Module) -> dict[str, str]:
    """Return by check what a model may be by design if it fails it."""
    config, excuses = getattr(model, "config", None), {}
    if switch := _unrotated(config):
        excuses["doubled"] = f"it has no positions but its own count, as {switch} may mean"
    types = getattr(config, "layer_types", None) or ()
    beside = ["linear attention"] if "linear_attention" in types else []
    beside += ["convolutions"] if any(isinstance(m, nn.Conv1d) for m in model.modules()) else []
    if beside:
        words = " and ".join(beside)
        excuses["packed"] = f"its {words} do it, which no mask of attention reaches"
    return excuses


def _unrotated(config: Any) -> str:
    """Return what in a configuration may mean that no layer rotates, or nothing."""
    if config is None:
        return ""
    if not getattr(config, "rope_parameters", None):
        return "the lack of rope_parameters"
    rotates = {
        "no_rope_layers": any(getattr(config, "no_rope_layers", None) or [True]),
        "layer_rope_theta": any(getattr(config, "layer_rope_theta", None) or [True]),
        "use_mem_rope": getattr(config, "use_mem_rope", True),
        "position_embedding_type": getattr(config, "position_embedding_type", "rope") == "rope",
        "alibi": not getattr(config, "alibi", False),
    }
    for name, on in rotates.items():
        if not on:
            return name
    kinds, known = set(getattr(config, "layer_types", None) or ()), set[str]()
    with suppress(Exception):  # a class may have no defaults
        known = set(type(config)().layer_types)
    # of several kinds, those that are left out may be those that rotate
    return "layer_types" if kinds < known or kinds == {"linear_attention"} else ""


TOKENS, PROMPT, AT_ONCE, PADDING, CUT = 32, 9, 7, 5, 13


class _Layer:
    """A layer of this package, its vectors from a table of random ones."""

    words = 101

    def __init__(self, layer: Any) -> None:
        self.model, weight = layer, next(layer.parameters())
        random = torch.Generator().manual_seed(0)
        shape = (self.words, layer.embed_dim)
        self.vectors = torch.randn(shape, generator=random, dtype=torch.float64).to(weight)

    def __call__(
        self, ids: Tensor, at: Any = None, mask: Any = None, cache: Any = None, cached: bool = False
    ) -> tuple[Tensor, Any]:
        """Return outputs and the cache; the layer counts the tokens of padded rows itself."""
        more: dict[str, Any] = {"position_ids": at}
        if mask is not None and mask.ndim == 2:
            more = {"key_padding_mask": ~mask[:, -ids.shape[1] :]}
        elif mask is not None:
            more["attn_mask"] = mask[:, 0]
        cache = cache or (self.model.new_cache(len(ids), 2 * TOKENS) if cached else None)
        return self.model(self.vectors[ids], cache=cache, **more), cache


class _Model:
    """A causal language model of transformers: token ids in, logits out."""

    def __init__(self, model: Any) -> None:
        self.model = model
        try:
            self.words = model.get_input_embeddings().num_embeddings
            self.vectors = model.get_input_embeddings().weight
        except (AttributeError, NotImplementedError) as error:
            wanted = "a causal language model of transformers or a layer of this package"
            raise TypeError(f"model must be {wanted}, got {type(model).__name__}") from error

    def __call__(
        self, ids: Tensor, at: Any = None, mask: Any = None, cache: Any = None, cached: bool = False
    ) -> tuple[Tensor, Any]:
        """Return logits and the cache."""
        if mask is not None and mask.ndim == 2:
            mask = mask.long()
        elif mask is not None:
            dtype = next(self.model.parameters()).dtype
            hidden = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
            mask = hidden.masked_fill_(~mask, torch.finfo(dtype).min)
        more = {"position_ids": at, "attention_mask": mask, "past_key_values": cache}
        more = {key: value for key, value in more.items() if value is not None}
        output = self.model(input_ids=ids, use_cache=cached, **more)
        return output.logits, getattr(output, "past_key_values", None)


@dataclass
class _Checks:
    """The checks of a layer or model; each returns by how much outputs change."""

    subject: _Layer | _Model
    shift: int
    at_once: int  # tokens that a cache goes on by
    plain: Tensor = field(init=False)

    def __post_init__(self) -> None:
        random = torch.Generator().manual_seed(0)
        ids = torch.randint(3, self.subject.words, (1, TOKENS), generator=random)
        self.ids = ids.to(self.subject.vectors.device)
        self.at = torch.arange(TOKENS, device=self.ids.device)
        self.plain = self.run()

    def run(self, ids: Tensor | None = None, at: Tensor | None = None) -> Tensor:
        at = self.at if at is None else at
        return self.subject(self.ids if ids is None else ids, at[None])[0]

    def moved_by(self, shift: int, start: int = 0) -> Tensor:
        return self.run(at=self.at + start + shift) - self.run(at=self.at + start)

    def late_shift(self) -> float:
        """Return the error of a shift if no token is at position 0."""
        return float(self.moved_by(self.shift, start=1).abs().max()) / _size(self.plain)

    def later(self) -> Tensor:
        other = torch.cat((self.ids[:, :-1], self.ids[:, :1]), dim=1)
        return (self.run(other) - self.plain)[:, :-1]

    def order(self) -> Tensor:
        other = torch.cat((self.ids[:, :-1].flip(1), self.ids[:, -1:]), dim=1)
        return (self.run(other) - self.plain)[:, -1:]

    def cached(self) -> Tensor:
        """A prompt, then several tokens at once, then one at a time; the model counts."""
        rest = TOKENS - PROMPT - self.at_once
        cache, outputs = None, []
        for part in self.ids.split((PROMPT, self.at_once, *[1] * rest), dim=1):
            output, cache = self.subject(part, cache=cache, cached=True)
            outputs.append(output)
        return torch.cat(outputs, dim=1) - self.plain

    def padded(self) -> Tensor:
        """A batch of a padded row and a longer one, at once and decoded; both must not change."""
        row = torch.cat((self.ids[:, :PADDING], self.ids), dim=1)
        ids = torch.cat((row, row.flip(1)))
        mask = torch.ones_like(ids, dtype=torch.bool)
        mask[0, :PADDING] = False
        alone = self._masked(ids[1:], mask[1:])
        runs = [self._masked(ids, mask)]
        with suppress(Exception):  # what cannot decode fails another check
            runs.append(self._masked(ids, mask, PADDING + PROMPT))
        off = [d for a, b in runs for d in (a[PADDING:] - self.plain[0], b - alone[0])]
        return torch.cat(off)

    def _masked(self, ids: Tensor, mask: Tensor, prompt: int | None = None) -> Tensor:
        """Run at once, or a prompt and then token by token, each with all of the mask so far."""
        at, cache, outputs, start = (mask.long().cumsum(1) - 1).clamp(min=0), None, [], 0
        for end in range(prompt or ids.shape[1], ids.shape[1] + 1):
            given = ids[:, start:end], at[:, start:end], mask[:, :end]
            output, cache = self.subject(*given, cache, cached=prompt is not None)
            outputs.append(output)
            start = end
        return torch.cat(outputs, dim=1)

    def packed(self) -> Tensor:
        return torch.stack([self._packed(cached) for cached in (True, False)])

    def _packed(self, cached: bool) -> Tensor:
        """Two documents in one row under a mask, with a cache or without, and each alone."""
        # without a cache, transformers makes a mask of positions that start again
        at = torch.where(self.at < CUT, self.at, self.at - CUT) if cached else self.at
        row = self._seen(self.ids, self.at >= CUT, at, cached)
        sizes = CUT, TOKENS - CUT
        parts = zip(self.ids.split(sizes, dim=1), at.split(sizes), strict=True)
        # alone under a mask as well, which takes the place of a window
        return row - torch.cat([self._seen(part, p < 0, p, cached) for part, p in parts], dim=1)

    def doubled(self) -> Tensor:
        # without a mask, a gap may be taken for another document
        far, near = (self._seen(self.ids, self.at < 0, step * self.at) for step in (2, 1))
        return far - near

    def _seen(self, ids: Tensor, document: Tensor, at: Tensor, cached: bool = False) -> Tensor:
        """Run under a mask by which a token sees the earlier ones of its document."""
        seen = (document[:, None] == document).tril()[None, None]
        return self.subject(ids, at[None], seen, cached=cached)[0]

    def all(self) -> tuple[dict[str, float], dict[str, str]]:
        """Return the error of each check, and the exception of each that did not run."""
        size = _size(self.plain)
        if not 0.0 < size < math.inf:
            raise ValueError(f"model must return finite numbers, not all 0, got a size of {size}")
        errors, refused = {}, {}
        for key in CHECKS:
            check = partial(self.moved_by, self.shift) if key == "shift" else getattr(self, key)
            try:
                errors[key] = float(check().abs().max()) / size
            except Exception as error:  # whatever a model raises
                refused[key] = summary(error)
        return errors, refused

    def noise(self, part: float) -> float:
        """Return the change of outputs if the tokens' vectors change by up to this part of them."""
        vectors = self.subject.vectors
        before = vectors.clone()
        random = torch.rand(vectors.shape, generator=torch.Generator().manual_seed(0))
        try:
            vectors.copy_(before * (1.0 + part * (2.0 * random.to(vectors.device) - 1.0)))
            return float((self.run() - self.plain).abs().max()) / _size(self.plain)
        finally:
            vectors.copy_(before)


def _size(outputs: Tensor) -> float:
    """Return the root mean square of outputs."""
    return float(outputs.float().square().mean().sqrt())


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
def _random_norm_weights(model: nn.Module) -> Iterator[int]:
    """Add random numbers to norm weights inside attention; yield how many there are."""
    weights = _norm_weights(model)
    before = [weight.clone() for weight in weights]
    random = torch.Generator().manual_seed(0)
    try:
        for weight in weights:
            weight.add_(torch.randn(weight.shape, generator=random).to(weight))
        yield len(weights)
    finally:
        for weight, old in zip(weights, before, strict=True):
            weight.copy_(old)


def _attends(module: nn.Module) -> bool:
    """Return whether a module computes attention scores, by the names of its class and bases."""
    return is_attention(" ".join(kind.__name__ for kind in type(module).__mro__))


def _norm_weights(model: nn.Module) -> list[Tensor]:
    """Return weights inside attention, each once, of all modules that are no projections."""
    weights: dict[int, Tensor] = {}
    for attention in filter(_attends, model.modules()):
        for part in attention.modules():
            if not NO_WEIGHTS.search(type(part).__name__):
                own = dict(part.named_parameters(recurse=False))
                weights |= {id(own[key]): own[key] for key in own if not key.endswith("bias")}
    return list(weights.values())


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
"""Sizes that make a model small; summaries are those of fewer tokens than `TOKENS`."""


def tiny_model(family: str, **sizes: Any) -> Any:
    """Return a small causal model of a family of transformers with random weights, in float32.

    Parameters
    ----------
    family
        Its ``model_type``, such as ``"llama"``.
    **sizes
        Fields of its configuration, in place of the small ones of this module.
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
