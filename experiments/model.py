"""Small transformers, a batch of one per seed, that differ only in their position encoding."""

import math

import numpy as np
import torch
from torch import Tensor, nn

from rope_minimal import apply_rope, rope_table

from .encodings import Encoding

T5_BUCKETS = 32

Watched = tuple[Tensor, Tensor, Tensor]
"""q, k and attention weights of one layer of `Transformers`, each (S, B, H, T, ...)."""


def t5_bucket(distance: Tensor, farthest: int = 128) -> Tensor:
    """Return T5's bucket of a distance: 16 single ones, then 16 logarithmic ones, to farthest."""
    exact = T5_BUCKETS // 2
    ratio = distance.clamp(min=1) / exact
    logarithmic = exact + (ratio.log() / math.log(farthest / exact) * exact).long()
    return torch.where(distance < exact, distance, logarithmic.clamp(max=T5_BUCKETS - 1))


def initial_weights(
    seed: int, vocabulary: int, longest: int, width: int, heads: int, layers: int, hidden: int
) -> dict[str, Tensor]:
    """Return the initial weights of a seed; those shared by all encodings are drawn first.

    Matrices have shape (in, out), uniform within 1/sqrt(in).
    """
    generator = torch.Generator().manual_seed(seed)

    def uniform(rows: int, columns: int) -> Tensor:
        return (2 * torch.rand(rows, columns, generator=generator) - 1) / rows**0.5

    weights = {"embed": 0.5 * torch.randn(vocabulary, width, generator=generator)}
    for i in range(layers):
        for name in ("q", "k", "v", "o"):
            weights[f"{i}.{name}"] = uniform(width, width)
        weights[f"{i}.up"], weights[f"{i}.down"] = uniform(width, hidden), uniform(hidden, width)
        weights[f"{i}.up_bias"], weights[f"{i}.down_bias"] = torch.zeros(hidden), torch.zeros(width)
    weights["head"] = uniform(width, vocabulary)
    for norm in [f"{i}.{part}" for i in range(layers) for part in ("attention", "mlp")] + ["last"]:
        weights[f"{norm}.gain"], weights[f"{norm}.shift"] = torch.ones(width), torch.zeros(width)
    weights["learned"] = 0.5 * torch.randn(longest, width, generator=generator)
    weights["t5"] = torch.zeros(heads, T5_BUCKETS)
    return weights


class Transformers(nn.Module):
    """S transformers in one module: tokens (S, B, T) to logits (S, B, T, vocabulary).

    Models of one seed differ only in their encoding: their common weights start equal, whatever
    other seeds are in the batch.
    """

    def __init__(
        self,
        how: Encoding,
        vocabulary: int,
        window: int,
        seeds: tuple[int, ...],
        *,
        longest: int,
        width: int,
        heads: int,
        layers: int,
        hidden: int,
    ) -> None:
        super().__init__()
        self.how, self.window, self.heads, self.layers = how, window, heads, layers
        self.head_dim = width // heads
        each = [
            initial_weights(seed, vocabulary, longest, width, heads, layers, hidden)
            for seed in seeds
        ]
        unused = {"learned", "t5"} - {how.added, how.bias}
        self.weights = nn.ParameterDict(
            {
                name.replace(".", "_"): nn.Parameter(torch.stack([one[name] for one in each]))
                for name in each[0]
                if name not in unused
            }
        )
        self.bank = None if how.inv_freq is None else how.inv_freq(self.head_dim, window)
        self.configure()

    def configure(
        self,
        bank: np.ndarray | None = None,
        attention_factor: float = 1.0,
        *,
        sight: str | None = None,
        pairs: slice = slice(None),
        stored: bool = False,
    ) -> None:
        """Change the evaluation; without arguments, restore that of training.

        Other inverse frequencies; a factor on q and k; ``near`` or ``clamp`` (see `SIGHTS`) for
        keys a window or more away, and the pairs that ``clamp`` affects; q and k in bfloat16.
        """
        self.inv_freq = self.bank if bank is None else bank
        self.attention_factor, self.sight, self.stored = attention_factor, sight, stored
        self.clamped = torch.zeros(self.head_dim // 2, 2, dtype=torch.bool)
        self.clamped[pairs] = True
        self._tables: dict[int, tuple[Tensor, Tensor]] = {}

    def forward(self, tokens: Tensor, watch: list[Watched] | None = None) -> Tensor:
        w, (models, size, length) = self.weights, tokens.shape
        offset = torch.arange(models)[:, None, None] * w["embed"].shape[1]
        x = nn.functional.embedding(tokens + offset, w["embed"].flatten(0, 1)).flatten(1, 2)
        if self.how.added is not None:
            x = (x.unflatten(1, (size, length)) + self._positions(length, x)).flatten(1, 2)
        for i in range(self.layers):
            normed = self._norm(x, f"{i}_attention")
            x = x.baddbmm(self._attention(normed, i, size, watch), w[f"{i}_o"])
            normed = self._norm(x, f"{i}_mlp")
            hidden = w[f"{i}_up_bias"][:, None].baddbmm(normed, w[f"{i}_up"]).relu()
            x = x + w[f"{i}_down_bias"][:, None].baddbmm(hidden, w[f"{i}_down"])
        return (self._norm(x, "last") @ w["head"]).unflatten(1, (size, length))

    def _norm(self, x: Tensor, name: str) -> Tensor:
        normed = nn.functional.layer_norm(x, x.shape[-1:])
        return torch.addcmul(
            self.weights[f"{name}_shift"][:, None], normed, self.weights[f"{name}_gain"][:, None]
        )

    def _positions(self, length: int, x: Tensor) -> Tensor:
        if self.how.added == "learned":
            return self.weights["learned"][:, None, :length]
        cos, sin = rope_table(torch.arange(length), x.shape[-1])
        return torch.stack((sin, cos), dim=-1).flatten(-2).to(x.dtype)

    def _table(self, length: int) -> tuple[Tensor, Tensor]:
        if length not in self._tables:
            positions = torch.arange(length)
            self._tables[length] = rope_table(positions, self.head_dim, inv_freq=self.inv_freq)
        return self._tables[length]

    def _attention(self, x: Tensor, layer: int, size: int, watch: list[Watched] | None) -> Tensor:
        how, models, length = self.how, x.shape[0], x.shape[1] // size

        def heads(y: Tensor) -> Tensor:
            return y.view(models, size, length, self.heads, self.head_dim).transpose(2, 3)

        tables = None
        if self.inv_freq is not None and layer not in how.unrotated_layers:
            tables = self._table(length)
        source = x
        if tables is not None and how.before_projection:
            turned = apply_rope(heads(x), *tables, interleaved=True)
            source = turned.transpose(2, 3).reshape(x.shape)
        q = heads(self._project(source, layer, "q"))
        if self.attention_factor != 1.0:
            q = q * self.attention_factor**2
        k = heads(self._project(source, layer, "k"))
        v = heads(x @ self.weights[f"{layer}_v"])
        raw = q, k
        if tables is not None and not how.before_projection:
            q = apply_rope(q, *tables, interleaved=True)
            k = apply_rope(k, *tables, interleaved=not how.mixed_layouts)
        if self.stored:
            q, k = q.bfloat16().to(q.dtype), k.bfloat16().to(k.dtype)
        scores = q @ k.transpose(-1, -2)
        distance = torch.arange(length)[:, None] - torch.arange(length)
        if self.sight == "clamp" and tables is not None:
            far = self.window - 1
            table = rope_table(torch.tensor([far]), self.head_dim, inv_freq=self.inv_freq)
            late = apply_rope(raw[0], *(t.expand(length, -1) for t in table), interleaved=True)
            clamped = self.clamped.flatten()
            beyond = (late * clamped) @ raw[1].mT + (q * ~clamped) @ k.mT
            scores = torch.where(distance > far, beyond, scores)
        scores = scores / self.head_dim**0.5 + self._bias(distance, layer, scores.dtype)
        weights = scores.softmax(dim=-1)
        if watch is not None:
            watch.append((q, k, weights))
        return (weights @ v).transpose(2, 3).reshape(x.shape)

    def _project(self, x: Tensor, layer: int, name: str) -> Tensor:
        return x @ self.weights[f"{layer}_{name}"]

    def _bias(self, distance: Tensor, layer: int, dtype: torch.dtype) -> Tensor:
        bias = torch.zeros(distance.shape, dtype=dtype)
        hidden = distance < 0 if self.how.causal else torch.zeros_like(distance, dtype=torch.bool)
        if self.sight == "near":
            hidden = hidden | (distance.abs() >= self.window)
        bias = bias.masked_fill(hidden, float("-inf"))
        if self.how.bias == "alibi":
            bias = bias - self.how.slopes[layer] * distance.abs().to(dtype)
        elif self.how.bias == "t5":
            bucket = t5_bucket(distance.clamp(min=0), self.how.farthest)
            bias = bias + self.weights["t5"][:, None, :, bucket]
        return bias


def pair_usage(q: Tensor, k: Tensor) -> Tensor:
    """Return mean(|q_i|) mean(|k_i|) for each head and pair, (..., H, dim/2).

    q and k are (..., B, H, T, dim). The product is the most that pair i adds to a score of mean
    size; Barbero et al. 2024 look at the same norms.
    """
    norms = [x.unflatten(-1, (-1, 2)).norm(dim=-1).mean(dim=(-4, -2)) for x in (q, k)]
    return norms[0] * norms[1]


def attention_by_distance(weights: Tensor) -> Tensor:
    """Return the mean attention at distances 0 .. T/2 for each head, (..., H, T/2 + 1).

    The weights are (..., B, H, T, T). Only queries of the second half are counted: all of them can
    see that far back.
    """
    half = weights.shape[-1] // 2
    rows = torch.arange(half, weights.shape[-1])
    mean = weights.mean(dim=-4)
    return torch.stack([mean[..., rows, rows - m].mean(-1) for m in range(half + 1)], dim=-1)
