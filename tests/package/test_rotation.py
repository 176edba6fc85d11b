"""The torch rotation against the float64 oracle, in every type, layout, shape and memory order."""

import copy
import pickle

import mpmath
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rope_minimal import (
    RotaryEmbedding,
    RotarySelfAttention,
    apply_rope,
    rope_table,
    rotate_complex,
)
from rope_minimal.frequencies import inverse_frequencies

LAYOUTS = pytest.mark.parametrize("interleaved", [False, True], ids=["half", "interleaved"])
SPOTS = [0, 1, 255, 256, 257, 258, 2047, 2048, 2049, 32767, 65535, 131071, 999_999]


def random(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.manual_seed(seed)).to(dtype)


def oracle(x: Tensor, positions, interleaved: bool, dim: int | None = None, base=10000.0) -> Tensor:
    """Rotate the first ``dim`` channels of x (..., T, D) by the definition, in float64."""
    y = x.detach().double().numpy().copy()
    dim = dim or y.shape[-1]
    y[..., :dim] = rotate_complex(
        y[..., :dim], np.asarray(positions), base, interleaved=interleaved
    )
    return torch.from_numpy(y)


# The table


@pytest.mark.parametrize(("dim", "base"), [(64, 10000.0), (128, 10000.0), (128, 5e5), (6, 100.0)])
def test_the_table_is_right_in_its_last_bit_far_out(dim: int, base: float) -> None:
    pairs = sorted({0, 1, dim // 2 - 1})
    # one half of float32's step below 1 is 3e-8; float64 angles of 10**6 are right to 1e-10
    for dtype, bound in ((torch.float32, 6e-8), (torch.float64, 1e-9)):
        cos, sin = rope_table(SPOTS, dim, base, dtype=dtype)
        worst = 0.0
        with mpmath.workdps(50):
            for row, m in enumerate(SPOTS):
                for i in pairs:
                    angle = m * mpmath.mpf(base) ** (mpmath.mpf(-2 * i) / dim)
                    for entry, exact in ((cos, mpmath.cos(angle)), (sin, mpmath.sin(angle))):
                        worst = max(worst, float(abs(entry[row, i].item() - exact)))
        assert worst <= bound


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_table_of_any_type_is_the_float64_table_rounded_once(dtype: torch.dtype) -> None:
    exact = rope_table(SPOTS, 64, dtype=torch.float64)
    for table, want in zip(rope_table(SPOTS, 64, dtype=dtype), exact, strict=True):
        assert table.dtype == dtype
        assert torch.equal(table, want.to(dtype))


KINDS = {
    "list": list,
    "array": np.array,
    "every second": lambda p: np.repeat(p, 2, axis=0)[::2],
    "uint16": lambda p: np.array(p, np.uint16),
    "tensor": torch.tensor,
    "uint8 tensor": lambda p: torch.tensor(p, dtype=torch.uint8),
    "int32 tensor": lambda p: torch.tensor(p, dtype=torch.int32),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_positions_come_as_any_integers(kind) -> None:
    cos, sin = rope_table(kind([3, 1, 4]), 8)
    want_cos, want_sin = rope_table(torch.arange(5)[[3, 1, 4]], 8)
    assert cos.shape == (3, 4)
    assert torch.equal(cos, want_cos)
    assert torch.equal(sin, want_sin)
    rope, attention, x = RotaryEmbedding(8, 8), RotarySelfAttention(8, 2), torch.ones(1, 3, 8)
    for rotate in (rope, attention):
        y = rotate(x, position_ids=kind([[3, 1, 4]]))
        assert torch.equal(y, rotate(x, position_ids=torch.tensor([[3, 1, 4]])))


def test_a_table_keeps_the_axes_of_its_positions() -> None:
    positions = torch.tensor([[0, 1, 2], [7, 8, 9]])
    cos, sin = rope_table(positions, 8)
    assert cos.shape == sin.shape == (2, 3, 4)
    assert torch.equal(cos[1], rope_table([7, 8, 9], 8)[0])
    assert rope_table(torch.empty(2, 0, dtype=torch.long), 8)[0].shape == (2, 0, 4)


class _NoFloat64(TorchDispatchMode):
    """Refuse float64 off the CPU, as Apple's GPUs do."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in tree_leaves((args, kwargs, out)):
            if isinstance(t, Tensor) and t.dtype == torch.float64 and t.device.type == "mps":
                raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        return out


def test_a_device_without_float64_gets_its_table_from_the_cpu() -> None:
    """Simulated with tensors that have a device and no memory: no such device is at hand."""
    with FakeTensorMode(), _NoFloat64():
        with pytest.raises(TypeError, match="float64"):
            torch.arange(4, device="mps").double()  # the simulation refuses what it should
        cos, sin = rope_table(torch.arange(4, device="mps"), 8)
        rope = RotaryEmbedding(8, max_seq_len=4)
        rope._apply(lambda t: torch.empty_like(t, device="mps"))  # what .to("mps") does
    for t in (cos, sin, rope.cos, rope.sin):
        assert (t.device.type, t.dtype) == ("mps", torch.float32)


@pytest.mark.filterwarnings("error")
def test_given_frequencies_replace_the_base() -> None:
    theta = inverse_frequencies(8, 77.0)
    want = rope_table([131_071], 8, 77.0, dtype=torch.float64)
    for inv_freq in (theta, theta.tolist(), torch.from_numpy(theta)):
        got = rope_table([131_071], 8, inv_freq=inv_freq, dtype=torch.float64)
        assert torch.equal(got[0], want[0])
        assert torch.equal(got[1], want[1])


# The rotation


@LAYOUTS
@pytest.mark.parametrize("shape", [(6, 8), (3, 6, 8), (2, 3, 6, 8), (2, 3, 6, 2), (1, 2, 2, 6, 64)])
def test_float64_is_the_definition_to_a_part_in_1e15(shape, interleaved: bool) -> None:
    x, positions = random(*shape), [0, 1, 5, 300, 2048, 131071]
    cos, sin = rope_table(positions, shape[-1], dtype=torch.float64)
    y = apply_rope(x, cos, sin, interleaved=interleaved)
    assert y.dtype == torch.float64
    torch.testing.assert_close(y, oracle(x, positions, interleaved), rtol=0, atol=4e-15)


@LAYOUTS
@pytest.mark.parametrize("dim", [2, 4, 10])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_channels_past_the_rotated_width_pass_bit_for_bit(
    dim: int, dtype: torch.dtype, interleaved: bool
) -> None:
    x = random(2, 5, 11, dtype=dtype)  # an odd width, too: the rotated part alone must be even
    x[..., -1] = float("nan")
    cos, sin = rope_table(range(5), dim)
    y = apply_rope(x, cos, sin, interleaved=interleaved)
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    assert torch.equal(y[..., dim:].view(bits), x[..., dim:].view(bits))
    tolerance = {2: 2e-2, 4: 1e-6, 8: 3e-7}[dtype.itemsize]  # the table is float32
    want = oracle(x[..., :dim], range(5), interleaved)
    torch.testing.assert_close(y[..., :dim].double(), want, rtol=0, atol=tolerance)


@LAYOUTS
def test_float32_is_right_to_its_own_rounding(interleaved: bool) -> None:
    x = random(2, 3, len(SPOTS), 128, dtype=torch.float32)
    y = apply_rope(x, *rope_table(SPOTS, 128), interleaved=interleaved)
    error = (y.double() - oracle(x, SPOTS, interleaved)).abs()
    assert (error <= 3e-7 * pair_length(x, interleaved)).all()


def pair_length(x: Tensor, interleaved: bool) -> Tensor:
    """The length of the pair to which each channel belongs, in the shape of x."""
    half, x = x.shape[-1] // 2, x.double()
    if interleaved:
        return x.unflatten(-1, (half, 2)).norm(dim=-1).repeat_interleave(2, dim=-1)
    return torch.cat(2 * [x.unflatten(-1, (2, half)).norm(dim=-2)], dim=-1)


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits_are_rounded_once(dtype: torch.dtype, interleaved: bool) -> None:
    x = random(2, 3, len(SPOTS), 128, dtype=dtype)
    cos, sin = rope_table(SPOTS, 128)
    y = apply_rope(x, cos, sin, interleaved=interleaved)
    assert y.dtype == dtype
    assert torch.equal(y, apply_rope(x.float(), cos, sin, interleaved=interleaved).to(dtype))
    want = oracle(x, SPOTS, interleaved)
    finfo = torch.finfo(dtype)
    ulp = finfo.eps * torch.exp2(torch.frexp(want).exponent.double() - 1).clamp(min=finfo.tiny)
    error = (y.double() - want).abs()
    assert (error <= 0.5 * ulp + 3e-7 * pair_length(x, interleaved)).all()


@LAYOUTS
@pytest.mark.parametrize("x_dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("table_dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_type_of_x_decides_the_type_of_the_result(x_dtype, table_dtype, interleaved) -> None:
    x = random(3, 5, 8, dtype=x_dtype)
    y = apply_rope(x, *rope_table(range(5), 8, dtype=table_dtype), interleaved=interleaved)
    assert y.dtype == x_dtype
    torch.testing.assert_close(y.double(), oracle(x, range(5), interleaved), rtol=0, atol=3e-2)


@LAYOUTS
def test_autocast_does_not_round_float32(interleaved: bool) -> None:
    x, table = random(3, 5, 8, dtype=torch.float32), rope_table(range(5), 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = apply_rope(x, *table, interleaved=interleaved)
    assert torch.equal(y, apply_rope(x, *table, interleaved=interleaved))


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dim", [4, 8])
def test_nothing_given_is_changed_and_the_result_is_new(dtype, dim, interleaved: bool) -> None:
    x, (cos, sin) = random(3, 5, 8, dtype=dtype), rope_table(range(5), dim)
    before = [t.clone() for t in (x, cos, sin)]
    apply_rope(x, cos, sin, interleaved=interleaved).fill_(7)
    for now, then in zip((x, cos, sin), before, strict=True):
        assert torch.equal(now, then)


@LAYOUTS
def test_a_table_may_differ_between_batch_rows(interleaved: bool) -> None:
    positions = torch.tensor([[0, 1, 2, 3], [9, 4, 4, 70]])
    x = random(2, 3, 4, 8)
    cos, sin = (t.unsqueeze(1) for t in rope_table(positions, 8, dtype=torch.float64))
    y = apply_rope(x, cos, sin, interleaved=interleaved)
    for b in range(2):
        want = oracle(x[b], positions[b], interleaved)
        torch.testing.assert_close(y[b], want, rtol=0, atol=4e-15)


@LAYOUTS
def test_an_axis_of_size_one_may_have_any_stride(interleaved: bool) -> None:
    x = random(64).as_strided((1, 1, 4, 8), (7, 5, 8, 1))
    table = rope_table(range(4), 8, dtype=torch.float64)
    want = oracle(x, range(4), interleaved)
    torch.testing.assert_close(apply_rope(x, *table, interleaved=interleaved), want)


@LAYOUTS
@pytest.mark.parametrize("shape", [(0, 3, 4, 8), (2, 0, 4, 8), (2, 3, 0, 8)])
@pytest.mark.parametrize("dim", [4, 8])
def test_empty_axes_give_empty_results(shape, dim: int, interleaved: bool) -> None:
    x = torch.empty(shape)
    assert apply_rope(x, *rope_table(range(shape[-2]), dim), interleaved=interleaved).shape == shape
    rope = RotaryEmbedding(dim, 16, interleaved=interleaved)
    assert rope(x, offset=16 - shape[-2]).shape == shape
    ids = torch.zeros(shape[0], shape[2], dtype=torch.long)
    assert rope(x, position_ids=ids).shape == shape


# Gradients


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_gradient_is_turned_back(dtype: torch.dtype, interleaved: bool) -> None:
    x = random(2, 3, 4, 8, dtype=dtype).requires_grad_()
    grad = random(2, 3, 4, 8, dtype=dtype, seed=1)
    apply_rope(x, *rope_table(range(4), 8), interleaved=interleaved).backward(grad)
    assert x.grad.dtype == dtype
    back = oracle(grad, -np.arange(4), interleaved)
    tolerance = {8: 3e-7, 4: 1e-6, 2: 2e-2}[dtype.itemsize]
    torch.testing.assert_close(x.grad.double(), back, rtol=0, atol=tolerance)


@LAYOUTS
def test_what_was_rotated_may_be_written_into_before_the_gradient_is_taken(
    interleaved: bool,
) -> None:
    x, rope = random(2, 4, 8).requires_grad_(), RotaryEmbedding(8, 16, interleaved=interleaved)
    for rotate in (
        lambda x: apply_rope(x, rope.cos[:4], rope.sin[:4], interleaved=interleaved),
        rope,
    ):
        (want,) = torch.autograd.grad(rotate(x).sin().sum(), x)
        (got,) = torch.autograd.grad(rotate(x).sin_().sum(), x)
        assert torch.equal(got, want)
        y = rotate(x)
        y[..., 0] = 0
        y.sum().backward()


@LAYOUTS
def test_a_gradient_reaches_learned_frequencies(interleaved: bool) -> None:
    theta = torch.from_numpy(inverse_frequencies(4)).requires_grad_()
    x = random(3, 4)

    def rotate(theta: Tensor) -> Tensor:
        table = rope_table(range(3), 4, inv_freq=theta, dtype=torch.float64)
        return apply_rope(x, *table, interleaved=interleaved)

    assert torch.autograd.gradcheck(rotate, [theta])


# The compiler


@pytest.mark.drawn(1)
@LAYOUTS
def test_the_module_compiles_as_one_graph(interleaved: bool) -> None:
    torch.compiler.reset()
    rope = RotaryEmbedding(8, 64, interleaved=interleaved)
    compiled = torch.compile(rope, fullgraph=True, backend="aot_eager", dynamic=True)
    for length, offset in ((5, 0), (7, 3), (1, 63), (1, 62)):
        x = random(2, 3, length, 8, dtype=torch.bfloat16)
        torch.testing.assert_close(compiled(x, offset), rope(x, offset), rtol=0, atol=2e-2)
        ids = torch.randint(0, 64, (2, length))
        torch.testing.assert_close(
            compiled(x, position_ids=ids), rope(x, position_ids=ids), rtol=0, atol=2e-2
        )


@pytest.mark.drawn(1)
@LAYOUTS
def test_where_a_default_device_is_set_a_layer_compiles_as_one_graph(interleaved: bool) -> None:
    """torch's compiler then knows the function `torch.unflatten`, and not the method."""
    torch.compiler.reset()
    layer = RotarySelfAttention(16, 2, interleaved=interleaved)
    x = random(1, 3, 16, dtype=torch.float32)
    with torch.device("cpu"):
        y = torch.compile(layer, backend="eager", fullgraph=True)(x)
    torch.testing.assert_close(y, layer(x))


@pytest.mark.parametrize("position", [-1, 64])
def test_compiled_code_still_refuses_a_position_outside_the_table(position: int) -> None:
    rope = torch.compile(RotaryEmbedding(8, 64), fullgraph=True, backend="aot_eager")
    with pytest.raises(IndexError):
        rope(torch.ones(1, 2, 8), position_ids=torch.tensor([[0, position]]))


# The module


@LAYOUTS
@pytest.mark.parametrize("width", [8, 13])
def test_the_module_rotates_by_the_definition(width: int, interleaved: bool) -> None:
    rope = RotaryEmbedding(8, 32, 500.0, interleaved=interleaved).double()
    x = random(2, 3, 10, width)
    want = oracle(x, np.arange(10), interleaved, dim=8, base=500.0)
    torch.testing.assert_close(rope(x), want, rtol=0, atol=4e-15)


@LAYOUTS
def test_every_token_may_have_its_own_position(interleaved: bool) -> None:
    rope, x = RotaryEmbedding(8, 20, interleaved=interleaved).double(), random(3, 2, 5, 8)
    padded_left = [0, 0, 0, 1, 2]
    packed = [0, 1, 2, 0, 1]
    far = [19, 18, 0, 7, 7]
    y = rope(x, position_ids=torch.tensor([padded_left, packed, far]))
    for row, positions in enumerate((padded_left, packed, far)):
        want = oracle(x[row], positions, interleaved)
        torch.testing.assert_close(y[row], want, rtol=0, atol=4e-15)


@pytest.mark.parametrize("shape", [(2, 5, 8), (2, 3, 5, 8), (2, 3, 4, 5, 8)])
def test_position_ids_follow_the_first_axis_of_x(shape) -> None:
    rope, x = RotaryEmbedding(8, 20), random(*shape, dtype=torch.float32)
    one_row = torch.arange(3, 8)[None]
    for ids in (one_row, one_row.expand(2, 5)):
        assert torch.equal(rope(x, position_ids=ids), rope(x, offset=3))


CASTS = {
    "bfloat16": lambda m: m.bfloat16(),
    "to float16 and back": lambda m: m.to(torch.float16).to(torch.float32),
    "double and half": lambda m: m.double().half(),
    "deepcopy": copy.deepcopy,
    "cast, then deepcopy": lambda m: copy.deepcopy(m.bfloat16()),
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
    "meta and back": lambda m: m.to("meta").to_empty(device="cpu"),
    "meta in bfloat16 and back": lambda m: m.bfloat16().to("meta").to_empty(device="cpu"),
    "inside a model": lambda m: nn.Sequential(nn.Linear(2, 2), nn.Sequential(m)).bfloat16()[1][0],
}


@pytest.mark.parametrize("cast", CASTS.values(), ids=CASTS)
def test_no_cast_degrades_the_table(cast) -> None:
    rope = cast(RotaryEmbedding(64, 400))
    for table, want in zip((rope.cos, rope.sin), rope_table(range(400), 64), strict=True):
        assert table.dtype == torch.float32
        assert torch.equal(table, want)
    x = random(2, 400, 64, dtype=torch.bfloat16)
    assert torch.equal(rope(x), RotaryEmbedding(64, 400)(x))


def test_in_float64_the_table_is_exact() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        by_default = RotaryEmbedding(64, 400)
    finally:
        torch.set_default_dtype(torch.float32)
    for rope in (by_default, RotaryEmbedding(64, 400).double()):
        for table, want in zip(
            (rope.cos, rope.sin), rope_table(range(400), 64, dtype=torch.float64), strict=True
        ):
            assert torch.equal(table, want)


def test_a_layer_loaded_over_the_meta_device_gets_its_table_alone() -> None:
    real = nn.Sequential(nn.Linear(8, 8), RotaryEmbedding(8, 400))
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(8, 8), RotaryEmbedding(8, 400))
    assert model[1].cos.is_meta
    model.load_state_dict(real.state_dict(), assign=True)
    model[1].to_empty(device="cpu")
    x = random(2, 3, 8, dtype=torch.float32)
    assert torch.equal(model(x), real(x))


def test_what_lies_on_another_device_is_not_read() -> None:
    """A read stalls an accelerator; the meta device, which holds no values, raises."""
    with torch.device("meta"):
        ids = torch.arange(4)[None]
        tables = rope_table(ids[0], 8, inv_freq=torch.ones(4))
        rope, attention = RotaryEmbedding(8, 16), RotarySelfAttention(32, 4).requires_grad_(False)
        x, padding = torch.ones(2, 4, 32), torch.zeros(2, 4, dtype=torch.bool)
        heads = torch.ones(2, 3, 4, 8)
        made = [*tables, apply_rope(heads, *tables), rope(heads, position_ids=ids)]
        cache = attention.new_cache(2)
        made += [attention(x, cache=cache, position_ids=ids, key_padding_mask=padding)]
        made += [attention(x[:, :1], cache=cache), cache.next_position]
    assert all(t.is_meta for t in made)


def test_modules_share_nothing_and_save_nothing() -> None:
    one, other = RotaryEmbedding(8, 16, 100.0), RotaryEmbedding(8, 16, 10000.0)
    assert not torch.equal(one.cos, other.cos)
    assert one.state_dict() == {}
    assert list(one.parameters()) == []
    other.load_state_dict({}, strict=True)


def test_the_module_says_what_it_is() -> None:
    text = repr(RotaryEmbedding(8, 16, 100.0, interleaved=True))
    assert text == "RotaryEmbedding(dim=8, max_seq_len=16, base=100.0, interleaved=True)"


def test_lists_of_frequencies_and_positions_take_no_notice_of_a_default_device() -> None:
    rope, x, ids = RotaryEmbedding(8, 16), random(1, 3, 8, dtype=torch.float32), [[5, 0, 9]]
    positions, theta = torch.tensor(ids[0]), inverse_frequencies(8)
    want, table = rope(x, position_ids=ids), rope_table(positions, 8)
    with torch.device("meta"):
        assert torch.equal(rope(x, position_ids=ids), want)
        for given in (theta, theta.tolist()):
            assert torch.equal(rope_table(positions, 8, inv_freq=given)[0], table[0])
        assert all(t.is_meta for t in rope_table(ids[0], 8, inv_freq=theta.tolist()))


@LAYOUTS
@pytest.mark.parametrize("kept", [torch.float32, torch.float64])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_module_takes_x_of_another_type_than_its_table(
    dtype: torch.dtype, kept: torch.dtype, interleaved: bool
) -> None:
    rope = RotaryEmbedding(8, 32, interleaved=interleaved).to(kept)
    x = random(2, 5, 12, dtype=dtype)
    want = apply_rope(x, rope.cos[3:8], rope.sin[3:8], interleaved=interleaved)
    got = rope(x, offset=3)
    assert got.dtype == dtype
    assert torch.equal(got, want)
