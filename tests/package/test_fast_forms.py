"""The fast eager forms of the rotation, and compiled code, against the formula.

The formula itself is compared with the definition in test_rotation.py. What is claimed bit for bit
is asserted bit for bit, NaN for NaN: half-split tiles against the same kernels over all of x, and
compiled code against the formula.
"""

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.autograd import forward_ad
from torch.func import grad, jacfwd, jacrev, jvp, vjp, vmap

from rope_minimal import RotaryEmbedding, apply_rope, fast, rope_table
from rope_minimal.rotation import formula
from ropebook.timing import peak_extra_bytes

LAYOUTS = pytest.mark.parametrize("interleaved", [False, True], ids=["half", "interleaved"])
SIXTEEN = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
FLOATS = pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16]
)
WIDTH, LENGTH = 8, 12
TABLE = rope_table(range(LENGTH), WIDTH)
# a table of its own for every text, for every head (None: as many as x has), for both
TABLES_OF_ROWS = pytest.mark.parametrize("own", [(2, 1), (1, None), (2, None)])
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.manual_seed(seed)).to(dtype)


def angles_of_rows(own: tuple, heads: int) -> Tensor:
    return random(own[0], own[1] or heads, LENGTH, WIDTH // 2, seed=1)


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether a and b are NaN in the same places and equal in all bits elsewhere."""
    bits = INTEGERS[a.dtype.itemsize]
    nan = a.isnan()
    return (
        a.dtype == b.dtype
        and torch.equal(nan, b.isnan())
        and torch.equal(a.masked_fill(nan, 0).view(bits), b.masked_fill(nan, 0).view(bits))
    )


def fill(whole: tuple, places: tuple, parts: tuple) -> list:
    """Return ``whole`` with ``parts`` in ``places``."""
    return [parts[places.index(i)] if i in places else t for i, t in enumerate(whole)]


def bound(x: Tensor) -> float:
    """What two right ways may differ by: a rounding of float32, and one of 16 bits that it tips."""
    size = 2 * x[x.isfinite()].abs().max().item()
    return size * torch.finfo(x.dtype).eps


def every_number(dtype: torch.dtype) -> Tensor:
    """All 65,536 numbers of a 16-bit type (NaN, infinities, subnormals), in an order by chance."""
    order = torch.randperm(2**16, generator=torch.manual_seed(0)) - 2**15
    return order.to(torch.int16).view(dtype).view(-1, 1, LENGTH + 4, WIDTH)


# What x may look like in memory

VIEWS = {
    "contiguous": lambda x: x,
    "heads after positions": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "last axis strided": lambda x: x.repeat_interleave(2, dim=-1)[..., ::2],
    "odd row stride": lambda x: nn.functional.pad(x, (0, 1))[..., :-1],
    "even row stride": lambda x: nn.functional.pad(x, (0, 6))[..., :-6],
    "even storage offset": lambda x: nn.functional.pad(x, (2, 0))[..., 2:],
    "odd storage offset": lambda x: torch.cat((x.new_zeros(1), x.flatten()))[1:].view(x.shape),
    "every second position": lambda x: x.repeat_interleave(2, dim=-2)[..., ::2, :],
    "expanded": lambda x: x[:, :1].expand_as(x),
}


@pytest.fixture
def small_tiles(monkeypatch):
    """Make the tiles so small that 2 * 3 * 12 * 8 numbers take three, the last one shorter."""
    monkeypatch.setattr(fast, "TILE", 2 * 3 * 5 * WIDTH)


@pytest.mark.usefixtures("small_tiles")
@LAYOUTS
@FLOATS
@pytest.mark.parametrize("tail", [0, 2, 3])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_tiles_give_the_numbers_of_the_kernels_over_all_of_x(
    view, tail, dtype, interleaved, monkeypatch
) -> None:
    x = view(random(2, 3, LENGTH, WIDTH + tail, dtype=dtype))
    before = x.clone()
    y = apply_rope(x, *TABLE, interleaved=interleaved)
    with monkeypatch.context() as patch:
        patch.setattr(fast, "TILE", x.numel())
        whole = apply_rope(x, *TABLE, interleaved=interleaved)
    if not interleaved:  # torch's complex product rounds differently at the end of a vector
        assert same_bits(y, whole)
    torch.testing.assert_close(y, whole, rtol=0, atol=bound(x))
    assert torch.equal(x, before)
    want = formula(x, *TABLE, interleaved)
    torch.testing.assert_close(y, want, rtol=0, atol=bound(x))
    assert torch.equal(y[..., WIDTH:], x[..., WIDTH:])


@pytest.mark.usefixtures("small_tiles")
@LAYOUTS
@TABLES_OF_ROWS
def test_tiles_follow_a_table_of_its_own_for_every_row(own, interleaved: bool) -> None:
    x, angle = random(2, 3, LENGTH, WIDTH, dtype=torch.bfloat16), angles_of_rows(own, heads=3)
    y = apply_rope(x, angle.cos(), angle.sin(), interleaved=interleaved)
    want = formula(x, angle.cos(), angle.sin(), interleaved)
    torch.testing.assert_close(y, want, rtol=0, atol=bound(x))


@LAYOUTS
@SIXTEEN
def test_tiles_of_one_position_are_the_smallest(dtype, interleaved: bool, monkeypatch) -> None:
    x = random(2, 3, LENGTH, WIDTH, dtype=dtype)
    want = apply_rope(x, *TABLE, interleaved=interleaved)
    monkeypatch.setattr(fast, "TILE", 1)
    y = apply_rope(x, *TABLE, interleaved=interleaved)
    torch.testing.assert_close(y, want, rtol=0, atol=bound(x))
    empty = x[:, :, :0]
    assert apply_rope(empty, *(t[:0] for t in TABLE), interleaved=interleaved).shape == empty.shape


@LAYOUTS
@SIXTEEN
def test_every_number_of_16_bits_is_rotated_as_the_formula_says(dtype, interleaved: bool) -> None:
    x = every_number(dtype)
    table = rope_table(range(x.shape[-2]), WIDTH)
    y, want = apply_rope(x, *table, interleaved=interleaved), formula(x, *table, interleaved)
    assert torch.equal(y.isfinite(), want.isfinite())
    finite = want.isfinite()
    assert finite.double().mean() > 0.9
    # Both compute in float32 and round once; their float32 differ in the last place of the larger
    # channel of the pair, which tips a rounding now and then, and by more where terms cancel.
    pair = (
        (lambda t: t.unflatten(-1, (-1, 2)))
        if interleaved
        else lambda t: t.unflatten(-1, (2, -1)).mT
    )
    size = pair(x[..., :WIDTH].float().abs()).amax(-1, keepdim=True).expand_as(pair(x[..., :WIDTH]))
    off = pair((y - want)[..., :WIDTH].float()).abs()
    exact = 2**-22 * size + torch.finfo(dtype).eps * pair(want[..., :WIDTH].float()).abs()
    tiny = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    here = pair(finite[..., :WIDTH])
    assert (off <= exact + tiny)[here].all()


@LAYOUTS
@FLOATS
def test_what_is_not_finite_stays_in_its_pair(dtype: torch.dtype, interleaved: bool) -> None:
    for bad in (float("nan"), float("inf"), -float("inf")):
        x = random(2, LENGTH, WIDTH, dtype=dtype)
        x[0, 3, 2] = bad
        y = apply_rope(x, *TABLE, interleaved=interleaved)
        want = formula(x, *TABLE, interleaved)
        assert torch.equal(y.isfinite(), want.isfinite())
        assert (~y.isfinite()).sum() == 2


@LAYOUTS
def test_subnormal_numbers_are_not_flushed_to_zero(interleaved: bool) -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.full((1, LENGTH, WIDTH), torch.finfo(dtype).smallest_normal / 4, dtype=dtype)
        y = apply_rope(x, *TABLE, interleaved=interleaved)
        want = apply_rope(x.double(), *TABLE, interleaved=interleaved)
        step = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
        torch.testing.assert_close(y.double(), want, rtol=0, atol=2 * step)
        assert (y != 0).any()


# Gradients


@pytest.mark.usefixtures("small_tiles")
@LAYOUTS
@FLOATS
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_the_gradient_is_that_of_the_formula(view, dtype, interleaved: bool) -> None:
    leaves = [random(2, 3, LENGTH, WIDTH + 3, dtype=dtype).requires_grad_() for _ in range(2)]
    back = view(random(2, 3, LENGTH, WIDTH + 3, dtype=dtype, seed=1))
    for leaf, rotate in zip(leaves, (apply_rope, formula), strict=True):
        rotate(view(leaf), *TABLE, interleaved=interleaved).backward(back)
    # Copies of one number in x add up their gradients in the order of the sum, each rounded.
    spread = 3 * 3 if view is VIEWS["expanded"] else 1
    torch.testing.assert_close(
        leaves[0].grad, leaves[1].grad, rtol=0, atol=spread * bound(leaves[1].grad)
    )


@LAYOUTS
def test_second_gradients_of_tiles_and_tables(interleaved: bool, monkeypatch) -> None:
    monkeypatch.setattr(fast, "TILE", 2 * WIDTH)  # one position each

    def curved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return apply_rope(x, cos, sin, interleaved=interleaved)[..., :3, ::3] ** 3

    x = random(1, 2, 3, WIDTH, dtype=torch.float64).requires_grad_()
    rows = [t[:3].double() for t in TABLE]
    assert torch.autograd.gradcheck(lambda x: curved(x, *rows), x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda x: curved(x, *rows), x)
    learned = [t.clone().requires_grad_() for t in rows]
    assert torch.autograd.gradcheck(curved, (x, *learned))
    assert torch.autograd.gradcheck(lambda cos: curved(x.detach(), cos, rows[1]), learned[0])


@LAYOUTS
@pytest.mark.parametrize("tail", [0, 3])
def test_forward_derivatives_see_the_table_where_x_has_a_gradient(tail, interleaved: bool) -> None:
    x = random(2, 3, LENGTH, WIDTH + tail, dtype=torch.float64).requires_grad_()
    inputs = (x, *(t.double() for t in TABLE))
    directions = [random(*t.shape, dtype=torch.float64, seed=1) for t in inputs]
    for along in ((0,), (1,), (1, 2), (0, 1, 2)):
        got, want = (
            jvp(
                lambda *some, f=f, along=along: f(
                    *fill(inputs, along, some), interleaved=interleaved
                ),
                tuple(inputs[i] for i in along),
                tuple(directions[i] for i in along),
            )[1]
            for f in (apply_rope, formula)
        )
        assert (want != 0).any()
        torch.testing.assert_close(got, want)

    def slope(cos: Tensor, f) -> Tensor:
        return grad(lambda x: (f(x, cos, inputs[2], interleaved=interleaved) ** 3).sum())(x)

    mixed = [jacfwd(lambda cos, f=f: slope(cos, f))(inputs[1]) for f in (apply_rope, formula)]
    torch.testing.assert_close(*mixed)


@LAYOUTS
def test_gradients_are_turned_back_in_batches(interleaved: bool) -> None:
    x, back = random(2, LENGTH, WIDTH).requires_grad_(), random(3, 2, LENGTH, WIDTH, seed=1)
    y = apply_rope(x, *TABLE, interleaved=interleaved)
    got = torch.autograd.grad(y, x, back, is_grads_batched=True)[0]
    want = [formula(each, TABLE[0], -TABLE[1], interleaved) for each in back]
    torch.testing.assert_close(got, torch.stack(want), rtol=0, atol=bound(back))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@LAYOUTS
def test_batches_of_gradients_pass_through_tiles(
    dtype: torch.dtype, interleaved: bool, monkeypatch
) -> None:
    """Of the whole width: a slice of all channels would take no batch."""
    monkeypatch.setattr(fast, "TILE", 3 * WIDTH)
    x, back = random(2, LENGTH, WIDTH, dtype=dtype).requires_grad_(), random(3, 2, LENGTH, WIDTH)
    y = apply_rope(x, *TABLE, interleaved=interleaved)
    batch = back.to(dtype)
    got = torch.autograd.grad(y, x, batch, is_grads_batched=True, retain_graph=True)[0]
    want = [torch.autograd.grad(y, x, each, retain_graph=True)[0] for each in batch]
    assert torch.equal(got, torch.stack(want))


@LAYOUTS
def test_batches_of_gradients_have_gradients(interleaved: bool) -> None:
    x, back = random(2, LENGTH, WIDTH).requires_grad_(), random(3, 2, LENGTH, WIDTH, seed=1)
    found = []
    for rotate in (apply_rope, formula):
        y = rotate(x, *TABLE, interleaved=interleaved) ** 3
        one = torch.autograd.grad(y, x, back, is_grads_batched=True, create_graph=True)[0]
        found.append(torch.autograd.grad((one**2).sum(), x)[0])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-3)


@LAYOUTS
def test_a_graph_made_outside_is_differentiated_inside_a_transform(interleaved: bool) -> None:
    x = random(2, LENGTH, WIDTH, dtype=torch.float64).requires_grad_()
    table = [t.double() for t in TABLE]
    y = apply_rope(x, *table, interleaved=interleaved)
    v = random(2, LENGTH, WIDTH, dtype=torch.float64, seed=1)
    want = formula(v, table[0], -table[1], interleaved)

    def turned_back(v: Tensor) -> Tensor:
        return torch.autograd.grad(y, x, v, retain_graph=True, create_graph=True)[0]

    torch.testing.assert_close(jvp(turned_back, (v,), (v,))[1], want)
    torch.testing.assert_close(vmap(turned_back)(v[None])[0], want)
    torch.testing.assert_close(grad(lambda v: (turned_back(v) ** 2).sum())(v), 2 * v)
    with forward_ad.dual_level():
        dual = turned_back(forward_ad.make_dual(v, 2 * v))
        torch.testing.assert_close(forward_ad.unpack_dual(dual).tangent, 2 * want)


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace")
@LAYOUTS
def test_a_trace_takes_the_formula(interleaved: bool) -> None:
    x = random(2, LENGTH, WIDTH)
    traced = torch.jit.trace(lambda x: apply_rope(x, *TABLE, interleaved=interleaved), x)
    assert same_bits(traced(x), formula(x, *TABLE, interleaved))


@pytest.mark.usefixtures("small_tiles")
@LAYOUTS
@FLOATS
def test_forward_mode_sees_the_tiles(dtype, interleaved: bool) -> None:
    x, t = (random(2, 3, LENGTH, WIDTH, dtype=dtype, seed=seed) for seed in (0, 1))
    with forward_ad.dual_level():
        y = apply_rope(forward_ad.make_dual(x, t), *TABLE, interleaved=interleaved)
        tangent = forward_ad.unpack_dual(y).tangent
    want = formula(t, *TABLE, interleaved)
    torch.testing.assert_close(tangent, want, rtol=0, atol=bound(t))


@LAYOUTS
def test_nothing_but_the_table_is_kept_for_the_gradient(interleaved: bool) -> None:
    kept = []
    x = random(2, 3, LENGTH, WIDTH).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        apply_rope(x, *TABLE, interleaved=interleaved)
    assert {t.data_ptr() for t in kept} <= {t.data_ptr() for t in TABLE}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_transforms_of_torch_func_see_the_rotation(dtype, interleaved: bool) -> None:
    x, t = random(4, 2, LENGTH, WIDTH, dtype=dtype), random(2, LENGTH, WIDTH, dtype=dtype, seed=1)
    cos, sin = TABLE

    def rotate(x: Tensor, cos: Tensor = cos, sin: Tensor = sin) -> Tensor:
        return apply_rope(x, cos, sin, interleaved=interleaved)

    def close(a: Tensor, b: Tensor) -> None:
        torch.testing.assert_close(a, b, rtol=0, atol=bound(x))

    close(vmap(rotate)(x), rotate(x))
    tables = [torch.stack((t, t)) for t in TABLE]
    close(vmap(rotate, (None, 0, 0))(x, *tables)[1], rotate(x))
    close(jvp(rotate, (x[0],), (t,))[1], rotate(t))
    turned_back = vmap(grad(lambda x: (rotate(x) * t).sum().float()))(x)
    close(turned_back[2], apply_rope(t, cos, -sin, interleaved=interleaved))
    row = x[0, 0, 5].float()
    rows = [t[5:6] for t in TABLE]
    twice = jacfwd(jacrev(lambda x: (rotate(x[None], *rows) ** 2).sum()))(row)
    close(twice, 2 * torch.eye(WIDTH))


def test_vmap_takes_positions() -> None:
    rope, x = RotaryEmbedding(WIDTH, 16), random(4, 2, 3, LENGTH, WIDTH)
    ids = torch.stack([torch.arange(LENGTH).expand(2, -1) + i for i in range(4)])
    got = vmap(lambda x, ids: rope(x, position_ids=ids))(x, ids)
    want = torch.stack([rope(*each) for each in zip(x, range(4), strict=True)])
    torch.testing.assert_close(got, want, rtol=0, atol=2e-6)


# Memory


def test_the_meter_of_memory_sees_a_copy_and_a_temporary() -> None:
    x = torch.ones(2**20)
    assert peak_extra_bytes(lambda: x.clone()) == x.nbytes
    assert 0 <= peak_extra_bytes(lambda: (x + 1) * 2) - 2 * x.nbytes < 64  # the scalars


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("tail", [0, 64])
def test_memory_is_the_output_and_two_tiles(dtype, tail: int, interleaved: bool) -> None:
    x = torch.ones(1, 32, 512, 128, dtype=dtype)
    cos, sin = rope_table(range(512), 128 - tail)
    scratch = peak_extra_bytes(lambda: apply_rope(x, cos, sin, interleaved=interleaved)) - x.nbytes
    if interleaved and not tail and dtype == torch.float32:
        assert scratch <= cos.nbytes + sin.nbytes
    else:  # a tile in float32, and what it becomes
        assert 0 < scratch <= 2 * 4 * fast.TILE + 3 * cos.nbytes


# The compiler


def compiled(dynamic: bool | None = None, backend: str = "inductor"):
    torch.compiler.reset()
    counter = CompileCounterWithBackend(backend)
    return torch.compile(apply_rope, fullgraph=True, dynamic=dynamic, backend=counter), counter


@pytest.mark.drawn(1)
@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_compiled_code_gives_the_bits_of_the_formula(dtype, interleaved: bool) -> None:
    rotate, counter = compiled(dynamic=True)
    xs = [random(5, 2, t, WIDTH, dtype=dtype, seed=t) for t in (LENGTH, 5, 37)]
    subnormal = xs[0] * torch.finfo(dtype).smallest_normal / 8
    for x in (*xs, subnormal):
        table = rope_table(range(x.shape[-2]), WIDTH)
        want = formula(x, *table, interleaved)
        assert same_bits(rotate(x, *table, interleaved=interleaved), want)
    assert counter.frame_count == 1  # one compilation for all lengths
    if dtype != torch.float32:
        x = every_number(dtype)
        table = rope_table(range(x.shape[-2]), WIDTH)
        want = formula(x, *table, interleaved)
        assert same_bits(rotate(x, *table, interleaved=interleaved), want)


@pytest.mark.drawn(12)
@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_compiled_graphs_take_x_as_it_lies_in_memory(view, dtype, interleaved: bool) -> None:
    rotate, _ = compiled(backend="aot_eager")
    x = view(random(2, 3, LENGTH, WIDTH + 3, dtype=dtype)).detach()
    want = formula(x, *TABLE, interleaved)
    assert same_bits(rotate(x, *TABLE, interleaved=interleaved), want)
    back = random(*x.shape, dtype=dtype, seed=1)
    leaf = x.requires_grad_()
    got = torch.autograd.grad(rotate(leaf, *TABLE, interleaved=interleaved), leaf, back)[0]
    want = formula(back, TABLE[0], -TABLE[1], interleaved)
    torch.testing.assert_close(got, want, rtol=0, atol=bound(back))


@pytest.mark.drawn(1)
@LAYOUTS
def test_compiled_code_takes_x_from_an_odd_place_in_memory(interleaved: bool) -> None:
    rotate, counter = compiled()
    x = random(2, LENGTH, WIDTH, dtype=torch.bfloat16)
    want = formula(x, *TABLE, interleaved)
    for view in ("contiguous", "odd storage offset"):
        assert same_bits(rotate(VIEWS[view](x), *TABLE, interleaved=interleaved), want)
    assert counter.frame_count == 1


@pytest.mark.drawn(2)
@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_exported_program_takes_x_as_it_lies_in_memory(dtype, interleaved: bool) -> None:
    rope = RotaryEmbedding(WIDTH, LENGTH, interleaved=interleaved)
    x = random(2, 4, LENGTH, WIDTH, dtype=dtype)
    program = torch.export.export(rope, (x,)).module()
    for name, view in VIEWS.items():
        want = formula(view(x), *TABLE, interleaved)
        assert same_bits(program(view(x)), want), name


@pytest.mark.drawn(12)
@LAYOUTS
def test_compiled_gradients_of_a_table_that_learns(interleaved: bool) -> None:
    rotate, _ = compiled(backend="aot_eager")
    x, back = random(2, 3, LENGTH, WIDTH), random(2, 3, LENGTH, WIDTH, seed=1)
    gradients = []
    for f in (apply_rope, rotate):
        inputs = [t.clone().requires_grad_() for t in (x, *TABLE)]
        y = f(*inputs, interleaved=interleaved)
        gradients.append(torch.autograd.grad(y, inputs, back))
    for eager, traced in zip(*gradients, strict=True):
        torch.testing.assert_close(traced, eager, rtol=1e-5, atol=1e-5)


def size(rotate):
    return lambda x: rotate(x).square().sum()


TRANSFORMS = {  # each takes a rotation and a direction t, and returns a function of x
    "grad": lambda rotate, t: grad(size(rotate)),
    "jacrev": lambda rotate, t: jacrev(size(rotate)),
    "vmap": lambda rotate, t: vmap(rotate),
    "vmap of grad": lambda rotate, t: vmap(grad(size(rotate))),
    "jvp": lambda rotate, t: lambda x: jvp(rotate, (x,), (t,))[1],
    "vjp": lambda rotate, t: lambda x: vjp(rotate, x)[1](t)[0],
    "jacfwd": lambda rotate, t: lambda x: jacfwd(size(rotate))(x[0, 0]),
    "grad of compiled": lambda rotate, t: grad(torch.compile(size(rotate), backend="aot_eager")),
}


@pytest.mark.drawn(12)
@pytest.mark.filterwarnings("ignore:There is a performance drop")
@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_compiled_transforms_of_torch_func_see_the_rotation(transform, dtype, interleaved) -> None:
    """Integers in place of pairs would cut the gradient off, and the compiler would not tell."""
    torch.compiler.reset()
    x, t = (random(2, 2, LENGTH, WIDTH, dtype=dtype, seed=seed) for seed in (0, 1))

    def rotate(x: Tensor) -> Tensor:
        return apply_rope(x, *TABLE, interleaved=interleaved)

    transformed = transform(rotate, t)
    got = torch.compile(transformed, backend="eager")(x)
    torch.testing.assert_close(got, transformed(x), rtol=0, atol=4 * bound(x))


@pytest.mark.drawn(12)
@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_forward_mode_sees_the_rotation(dtype, interleaved: bool) -> None:
    torch.compiler.reset()
    x, t = (random(2, 2, LENGTH, WIDTH, dtype=dtype, seed=seed) for seed in (0, 1))

    def rotate(x: Tensor) -> Tensor:
        return apply_rope(x, *TABLE, interleaved=interleaved)

    with forward_ad.dual_level():
        y = torch.compile(rotate, backend="eager")(forward_ad.make_dual(x, t))
        tangent = forward_ad.unpack_dual(y).tangent
    torch.testing.assert_close(tangent, rotate(t), rtol=0, atol=bound(t))
