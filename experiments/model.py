"""A small transformer in which the encoding of positions is the only thing that changes."""

import numpy as np
import torch
from torch import Tensor, nn

from rope_minimal import RotarySelfAttention, apply_rope, rope_table

from .encodings import Encoding


class Attention(RotarySelfAttention):
    """The book's attention, with the tables of cosines and sines given from outside.

    For the encoding ``rope`` it computes what its parent computes (a test says so).
    """

    def forward(self, x: Tensor, tables: tuple[Tensor, Tensor] | None, how: Encoding) -> Tensor:
        source = x
        if how.before_projection and tables is not None:
            heads = x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            source = apply_rope(heads, *tables, interleaved=True).transpose(1, 2).flatten(-2)
        q, k, v = (
            project(value).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for project, value in ((self.q_proj, source), (self.k_proj, source), (self.v_proj, x))
        )
        if tables is not None and not how.before_projection:
            q = apply_rope(q, *tables, interleaved=True)
            k = apply_rope(k, *tables, interleaved=not how.mixed_layouts)
        self.seen = (q, k) if self.watched else None
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=how.causal)
        return self.o_proj(y.transpose(1, 2).flatten(-2))

    watched = False
    """Keep the rotated q and k of the last call in ``seen``."""


class Block(nn.Module):
    """Attention and a two-layer network, each after a norm and added to the stream."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, max_seq_len=1)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor, tables: tuple[Tensor, Tensor] | None, how: Encoding) -> Tensor:
        x = x + self.attention(self.attention_norm(x), tables, how)
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """Tokens (B, T) to logits (B, T, vocabulary).

    Two models made from one seed differ in nothing but their encoding: the weights that both have
    are equal.
    """

    def __init__(
        self,
        how: Encoding,
        vocabulary: int,
        window: int,
        *,
        longest: int,
        width: int,
        heads: int,
        layers: int,
    ) -> None:
        super().__init__()
        self.how, self.window, self.head_dim = how, window, width // heads
        self.embed = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embed.weight, std=0.5)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        if how.added == "learned":
            self.positions = nn.Parameter(0.5 * torch.randn(longest, width))
        elif how.added == "sinusoidal":
            cos, sin = rope_table(torch.arange(longest), width)
            self.register_buffer("positions", torch.stack((sin, cos), dim=-1).flatten(-2))
        self.turn(None if how.inv_freq is None else how.inv_freq(self.head_dim, window))

    def turn(self, inv_freq: np.ndarray | None, attention_factor: float = 1.0) -> None:
        """Rotate with these inverse frequencies from now on, (head_dim/2,), or not at all."""
        self.inv_freq, self.attention_factor = inv_freq, attention_factor
        self._tables: tuple[Tensor, Tensor] | None = None

    def tables(self, length: int) -> tuple[Tensor, Tensor] | None:
        """Return cos and sin of the first ``length`` positions, each (length, head_dim/2)."""
        if self.inv_freq is None:
            return None
        if self._tables is None or len(self._tables[0]) != length:
            positions = torch.arange(length)
            cos, sin = rope_table(positions, self.head_dim, inv_freq=self.inv_freq)
            self._tables = cos * self.attention_factor, sin * self.attention_factor
        return self._tables

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        if self.how.added is not None:
            x = x + self.positions[: tokens.shape[-1]]
        tables = self.tables(tokens.shape[-1])
        for block in self.blocks:
            x = block(x, tables, self.how)
        return self.head(self.norm(x))


def pair_usage(q: Tensor, k: Tensor) -> Tensor:
    """Return the mean of ``|q_i| |k_i|`` over tokens for each head and pair, (H, head_dim/2).

    It is the most that pair i can add to a score: Barbero et al. 2024 look at the same norms.
    """
    norms = [x.unflatten(-1, (-1, 2)).norm(dim=-1).mean(dim=(0, 2)) for x in (q, k)]
    return norms[0] * norms[1]


def attention_by_distance(q: Tensor, k: Tensor, causal: bool) -> Tensor:
    """Return the mean attention weight at distances 0 .. T/2 for each head, (H, T/2 + 1).

    Only queries of the second half are counted: all of them can see that far back.
    """
    length = q.shape[-2]
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    weight = scores.softmax(dim=-1).mean(dim=0)[:, length // 2 :]
    rows = torch.arange(length // 2, length)
    return torch.stack(
        [weight[:, rows - length // 2, rows - m].mean(-1) for m in range(length // 2 + 1)], dim=-1
    )
