"""What rotary position embedding promises, for inputs that hypothesis chooses."""

import numpy as np
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from rope_minimal import (
    RotaryEmbedding,
    apply_rope,
    rope_table,
    rotation_matrix,
    to_half,
    to_interleaved,
)

# 255 to 258 and the like are where positions in 16 bits go wrong, and table sizes end.
EDGES = [0, 1, 255, 256, 257, 258, 2047, 2048, 2049, 32767, 65535, 131071, 999_999]
positions = st.one_of(st.sampled_from(EDGES), st.integers(-131_072, 131_072))
shifts = st.one_of(st.sampled_from(EDGES), st.integers(0, 131_072)).filter(lambda s: s <= 131_072)
dims = st.integers(1, 40).map(lambda pairs: 2 * pairs)
bases = st.sampled_from([1.5, 100.0, 10000.0, 5e5, 1e6])
lead = st.lists(st.integers(0, 3), max_size=3)
seeds = st.integers(0, 2**32 - 1)
exact = {"dtype": torch.float64}
quick = settings(deadline=None, max_examples=50)


def random(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.manual_seed(seed), **exact).to(dtype)


def at(x: Tensor, position: int, base: float, interleaved: bool, dtype=torch.float64) -> Tensor:
    """Rotate every vector of x (..., D) as if it stood at one position."""
    cos, sin = rope_table([position], x.shape[-1], base, dtype=dtype)
    return apply_rope(x.unsqueeze(-2), cos, sin, interleaved=interleaved).squeeze(-2)


def pairs(x: Tensor, interleaved: bool) -> Tensor:
    """View x (..., D) as (..., D/2, 2)."""
    half = x.shape[-1] // 2
    return x.unflatten(-1, (half, 2)) if interleaved else x.unflatten(-1, (2, half)).mT


def close(a: Tensor, b: Tensor, atol: float) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=atol)


@quick
@given(seeds, dims, positions, bases, st.booleans())
def test_every_pair_keeps_its_length(seed, dim, position, base, interleaved) -> None:
    x = random(seed, 5, dim)
    y = at(x, position, base, interleaved)
    lengths = (pairs(z, interleaved).norm(dim=-1) for z in (x, y))
    torch.testing.assert_close(*lengths, rtol=1e-14, atol=0)


@quick
@given(seeds, dims, bases, st.booleans(), st.sampled_from([torch.float64, torch.bfloat16]))
def test_position_zero_changes_nothing(seed, dim, base, interleaved, dtype) -> None:
    x = random(seed, 5, dim, dtype=dtype)
    assert torch.equal(at(x, 0, base, interleaved), x)


@quick
@given(seeds, dims, positions, positions, bases, st.booleans())
def test_two_rotations_are_the_rotation_by_the_sum(seed, dim, a, b, base, interleaved) -> None:
    x = random(seed, 5, dim)
    twice = at(at(x, a, base, interleaved), b, base, interleaved)
    close(twice, at(x, a + b, base, interleaved), 1e-8)
    close(at(at(x, a, base, interleaved), -a, base, interleaved), x, 1e-14)


@quick
@given(seeds, dims, st.integers(0, 4096), st.integers(0, 4096), shifts, bases, st.booleans())
@example(0, 64, 7, 0, 131_072, 10000.0, False)
@example(0, 64, 0, 7, 131_072, 10000.0, True)
def test_scores_depend_on_the_distance_alone(seed, dim, m, n, shift, base, interleaved) -> None:
    q, k = random(seed, 4, dim), random(seed + 1, 4, dim)

    def score(shift: int, dtype: torch.dtype) -> Tensor:
        rotated = [
            at(z.to(dtype), p + shift, base, interleaved, dtype).double()
            for z, p in ((q, m), (k, n))
        ]
        return torch.linalg.vecdot(*rotated) / (q.norm(dim=-1) * k.norm(dim=-1))

    close(score(shift, torch.float64), score(0, torch.float64), 1e-9)
    close(score(shift, torch.float32), score(0, torch.float32), 1e-6)


@quick
@given(seeds, dims, positions, positions, bases, st.booleans())
def test_the_score_is_the_matrix_of_the_distance(seed, dim, m, n, base, interleaved) -> None:
    q, k = random(seed, dim), random(seed + 1, dim)
    score = at(q, m, base, interleaved) @ at(k, n, base, interleaved)
    relative = rotation_matrix(n - m, dim, base, interleaved=interleaved)
    assert abs(score.item() - q.numpy() @ relative @ k.numpy()) < 1e-8 * dim


@quick
@given(seeds, dims, positions, bases, st.booleans(), st.floats(-9, 9), st.floats(-9, 9))
def test_rotation_is_linear(seed, dim, position, base, interleaved, a, b) -> None:
    x, y = random(seed, 5, dim), random(seed + 1, 5, dim)
    whole = at(a * x + b * y, position, base, interleaved)
    parts = a * at(x, position, base, interleaved) + b * at(y, position, base, interleaved)
    close(whole, parts, 1e-12)


@quick
@given(seeds, dims, lead, st.lists(positions, max_size=6), bases)
def test_converting_the_layout_commutes_with_rotating(seed, dim, shape, places, base) -> None:
    x = random(seed, *shape, len(places), dim)
    table = rope_table(places, dim, base, **exact)
    interleaved = apply_rope(x, *table, interleaved=True)
    close(to_half(interleaved), apply_rope(to_half(x), *table), 1e-14)
    close(to_interleaved(apply_rope(to_half(x), *table)), interleaved, 1e-14)
    assert torch.equal(to_interleaved(to_half(x)), x)


@quick
@given(seeds, dims, st.integers(1, 9), lead, st.lists(positions, max_size=6), st.booleans())
def test_the_tail_passes_bit_for_bit(seed, dim, tail, shape, places, interleaved) -> None:
    bits = np.random.default_rng(seed).integers(-(2**31), 2**31, (*shape, len(places), dim + tail))
    x = torch.from_numpy(bits.astype(np.int32)).view(torch.float32)  # NaN and infinity among them
    y = apply_rope(x, *rope_table(places, dim), interleaved=interleaved)
    assert y.shape == x.shape
    assert torch.equal(y[..., dim:].view(torch.int32), x[..., dim:].view(torch.int32))
    alone = apply_rope(x[..., :dim].clone(), *rope_table(places, dim), interleaved=interleaved)
    assert torch.equal(y[..., :dim].isnan(), alone.isnan())


@quick
@given(
    seeds,
    st.tuples(*[st.integers(0, 4)] * 3),
    dims,
    st.permutations(range(4)),
    st.tuples(*[st.integers(1, 3)] * 4),
    st.integers(0, 3),
    st.booleans(),
)
def test_memory_order_does_not_matter(seed, shape, dim, order, steps, start, interleaved) -> None:
    shape = (*shape, dim)
    # x is a slice with any steps and start of a block whose axes lie in any order.
    sizes = [start + step * size for step, size in zip(steps, shape, strict=True)]
    inverse = np.argsort(order).tolist()
    block = random(seed, *(sizes[axis] for axis in order)).permute(inverse)
    x = block[tuple(slice(start, start + s * n, s) for s, n in zip(steps, shape, strict=True))]
    assert x.shape == shape
    table = rope_table(range(shape[-2]), dim, **exact)
    want = apply_rope(
        x.clone(memory_format=torch.contiguous_format), *table, interleaved=interleaved
    )
    close(apply_rope(x, *table, interleaved=interleaved), want, 1e-14)


@quick
@given(seeds, dims, st.integers(1, 4), st.integers(1, 4), st.integers(0, 6), st.booleans())
def test_expanded_heads_are_rotated_alike(seed, dim, batch, heads, length, interleaved) -> None:
    x = random(seed, batch, 1, length, dim)
    table = rope_table(range(length), dim, **exact)
    y = apply_rope(x.expand(-1, heads, -1, -1), *table, interleaved=interleaved)
    close(y, apply_rope(x, *table, interleaved=interleaved).expand(-1, heads, -1, -1), 1e-14)


@quick
@given(seeds, dims, st.integers(0, 3), st.integers(0, 3), st.integers(0, 9), st.booleans())
def test_batch_rows_and_heads_do_not_mix(seed, dim, batch, heads, length, interleaved) -> None:
    x = random(seed, batch, heads, length, dim)
    rope = RotaryEmbedding(dim, 9, interleaved=interleaved).double()
    whole = rope(x)
    assert whole.shape == x.shape
    for b in range(batch):
        for h in range(heads):
            close(whole[b, h], rope(x[b, h]), 1e-14)


@quick
@given(seeds, dims, st.integers(1, 12), st.data(), st.booleans())
def test_decoding_continues_the_sequence(seed, dim, length, data, interleaved) -> None:
    x = random(seed, 2, length, dim)
    rope = RotaryEmbedding(dim, length, interleaved=interleaved).double()
    split = data.draw(st.integers(0, length))
    parts = torch.cat((rope(x[:, :split]), rope(x[:, split:], offset=split)), dim=1)
    close(parts, rope(x), 1e-14)
    ids = torch.tensor([data.draw(st.permutations(range(length)))])
    close(rope(x[:, ids[0]], position_ids=ids), rope(x)[:, ids[0]], 1e-14)
