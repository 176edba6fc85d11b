"""The fast eager forms of the rotation, and compiled code, against the formula.

The formula itself is compared with the definition in test_rotation.py. What is claimed bit for bit
is asserted bit for bit, NaN for NaN.
"""

from collections.abc import Callable
from itertools import product

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
FLOATS = pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16]
)
TWO_FLOATS = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
WIDTH, LENGTH = 8, 12
TABLE = rope_table(range(LENGTH), WIDTH)
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.manual_seed(seed)).to(dtype)


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether a and b are NaN in the same places and equal in all bits elsewhere."""
    bits = INTEGERS[a.dtype.itemsize]
    nan = a.isnan()
    return (
        a.dtype == b.dtype
        and torch.equal(nan, b.isnan())
        and torch.equal(a.masked_fill(nan, 0).view(bits), b.masked_fill(nan, 0).view(bits))
    )


def bound(x: Tensor) -> float:
    """What two right ways may differ by: a rounding of float32, and one of 16 bits that it tips."""
    size = 2 * x[x.isfinite()].abs().max().item()
    return size * torch.finfo(x.dtype).eps


def close(a: Tensor, b: Tensor, atol: float) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=atol)


def every_number(dtype: torch.dtype) -> Tensor:
    """All 65,536 numbers of a 16-bit type (NaN, infinities, subnormals), in an order by chance."""
    order = torch.randperm(2**16, generator=torch.manual_seed(0)) - 2**15
    return order.to(torch.int16).view(dtype).view(-1, 1, LENGTH + 4, WIDTH)


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {  # what x may look like in memory
    "contiguous": lambda x: x,
    "heads after positions": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "last axis strided": lambda x: x.repeat_interleave(2, dim=-1)[..., ::2],
    "last axis first": lambda x: x.movedim(-1, 0).contiguous().movedim(0, -1),
    "odd row stride": lambda x: nn.functional.pad(x, (0, 1))[..., :-1],
    "even row stride": lambda x: nn.functional.pad(x, (0, 6))[..., :-6],
    "even storage offset": lambda x: nn.functional.pad(x, (2, 0))[..., 2:],
    "odd storage offset": lambda x: torch.cat((x.new_zeros(1), x.flatten()))[1:].view(x.shape),
    "every second position": lambda x: x.repeat_interleave(2, dim=-2)[..., ::2, :],
    "expanded": lambda x: x[:, :1].expand_as(x),
}


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tiles so small that 2 * 3 * 12 * 8 numbers take three, the last one shorter."""
    monkeypatch.setattr(fast, "TILE", 2 * 3 * 5 * WIDTH)


@LAYOUTS
@FLOATS
@pytest.mark.parametrize("tail", [0, 2, 3])
@pytest.mark.parametrize("tile", [1, 2 * 3 * 5 * WIDTH, fast.TILE])
def test_any_tile_and_any_order_in_memory_is_the_formula(
    tile, tail, dtype, interleaved, monkeypatch
) -> None:
    monkeypatch.setattr(fast, "TILE", tile)
    for name, view in VIEWS.items():
        x = view(random(2, 3, LENGTH, WIDTH + tail, dtype=dtype))
        before = x.clone()
        y = apply_rope(x, *TABLE, interleaved=interleaved)
        assert torch.equal(x, before), name
        close(y, formula(x, *TABLE, interleaved), bound(x))
        assert same_bits(y[..., WIDTH:], x[..., WIDTH:]), name


@pytest.mark.usefixtures("small_tiles")
@LAYOUTS
@pytest.mark.parametrize("own", [(2, 1), (1, 3), (2, 3)])
def test_tiles_follow_a_table_of_its_own_for_every_row(own, interleaved: bool) -> None:
    x, angle = random(2, 3, LENGTH, WIDTH), random(*own, LENGTH, WIDTH // 2, seed=1)
    y = apply_rope(x, angle.cos(), angle.sin(), interleaved=interleaved)
    close(y, formula(x, angle.cos(), angle.sin(), interleaved), bound(x))


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_every_number_of_16_bits_is_rotated_as_the_formula_says(dtype, interleaved: bool) -> None:
    x = every_number(dtype)
    table = rope_table(range(x.shape[-2]), WIDTH)
    y, want = apply_rope(x, *table, interleaved=interleaved), formula(x, *table, interleaved)
    assert torch.equal(y.isfinite(), want.isfinite())
    finite = want.isfinite()
    assert finite.double().mean() > 0.9
    # Both compute in float32 and round once; their float32 differ in the last place of the larger
    # channel of the pair, which tips a rounding now and then, and by more where terms cancel.

    def pair(t: Tensor) -> Tensor:
        return t.unflatten(-1, (-1, 2)) if interleaved else t.unflatten(-1, (2, -1)).mT

    size = pair(x.float().abs()).amax(-1, keepdim=True).expand_as(pair(x))
    off = pair((y - want).float()).abs()
    exact = 2**-22 * size + torch.finfo(dtype).eps * pair(want.float()).abs()
    tiny = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    assert (off <= exact + tiny)[pair(finite)].all()


# Gradients


@pytest.mark.usefixtures("small_tiles")
@LAYOUTS
@FLOATS
def test_the_gradient_is_that_of_the_formula(dtype, interleaved: bool) -> None:
    for name, view in VIEWS.items():
        leaves = [random(2, 3, LENGTH, WIDTH + 3, dtype=dtype).requires_grad_() for _ in range(2)]
        back = view(random(2, 3, LENGTH, WIDTH + 3, dtype=dtype, seed=1))
        for leaf, rotate in zip(leaves, (apply_rope, formula), strict=True):
            rotate(view(leaf), *TABLE, interleaved=interleaved).backward(back)
        # copies of one number add up their gradients in the order of the sum, each rounded
        spread = 9 if name == "expanded" else 1
        close(leaves[0].grad, leaves[1].grad, spread * bound(leaves[1].grad))


@LAYOUTS
def test_second_and_forward_gradients_of_tiles_and_tables(interleaved: bool, monkeypatch) -> None:
    monkeypatch.setattr(fast, "TILE", 2 * WIDTH)  # one position each

    def curved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return apply_rope(x, cos, sin, interleaved=interleaved)[..., :3, ::3] ** 3

    x = random(1, 2, 3, WIDTH, dtype=torch.float64).requires_grad_()
    rows = [t[:3].double() for t in TABLE]
    assert torch.autograd.gradcheck(lambda x: curved(x, *rows), x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda x: curved(x, *rows), x)
    learned = [t.clone().requires_grad_() for t in rows]
    assert torch.autograd.gradcheck(curved, (x, *learned), check_forward_ad=True)
    for i, given in product(range(2), (x, x.detach())):  # half of a table learns, with x or without

        def half(t: Tensor, i: int = i, x: Tensor = given) -> Tensor:
            return curved(x, *(t if j == i else rows[j] for j in range(2)))

        assert torch.autograd.gradcheck(half, learned[i], check_forward_ad=True)


@TWO_FLOATS
@LAYOUTS
def test_batches_of_gradients_pass_through_tiles_and_have_gradients(
    dtype: torch.dtype, interleaved: bool, monkeypatch
) -> None:
    monkeypatch.setattr(fast, "TILE", 3 * WIDTH)
    x, back = random(2, LENGTH, WIDTH, dtype=dtype).requires_grad_(), random(3, 2, LENGTH, WIDTH)
    back = back.to(dtype)
    y = apply_rope(x, *TABLE, interleaved=interleaved)
    got = torch.autograd.grad(y, x, back, is_grads_batched=True, retain_graph=True)[0]
    want = [torch.autograd.grad(y, x, each, retain_graph=True)[0] for each in back]
    assert torch.equal(got, torch.stack(want))
    twice = [
        torch.autograd.grad((one**2).sum(), x)[0]
        for z in (apply_rope(x, *TABLE, interleaved=interleaved), formula(x, *TABLE, interleaved))
        for one in torch.autograd.grad(z**3, x, back, is_grads_batched=True, create_graph=True)
    ]
    torch.testing.assert_close(*twice, rtol=20 * torch.finfo(dtype).eps, atol=100 * bound(twice[1]))


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


@LAYOUTS
def test_nothing_but_the_table_is_kept_for_the_gradient(interleaved: bool) -> None:
    kept = []
    x = random(2, 3, LENGTH, WIDTH).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        apply_rope(x, *TABLE, interleaved=interleaved)
    assert {t.data_ptr() for t in kept} <= {t.data_ptr() for t in TABLE}


# Transforms and the compiler


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
    "hessian": lambda rotate, t: lambda x: jacfwd(jacrev(size(rotate)))(x[0, 0]),
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@LAYOUTS
@TWO_FLOATS
@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_transforms_of_torch_func_see_the_rotation(name, dtype, interleaved) -> None:
    x, t = (random(2, 2, LENGTH, WIDTH, dtype=dtype, seed=seed) for seed in (0, 1))
    got, want = (
        TRANSFORMS[name](lambda x, f=f: f(x, *TABLE, interleaved=interleaved), t)(x)
        for f in (apply_rope, formula)
    )
    close(got, want, 4 * bound(x))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_vmap_takes_tables_and_positions() -> None:
    rope, x = RotaryEmbedding(WIDTH, 16), random(4, 2, 3, LENGTH, WIDTH)
    ids = torch.stack([torch.arange(LENGTH).expand(2, -1) + i for i in range(4)])
    got = vmap(lambda x, ids: rope(x, position_ids=ids))(x, ids)
    close(got, torch.stack([rope(*each) for each in zip(x, range(4), strict=True)]), 2e-6)
    angles = random(4, LENGTH, WIDTH // 2, seed=1)
    got = vmap(apply_rope, (None, 0, 0))(x[0], angles.cos(), angles.sin())
    close(got, torch.stack([apply_rope(x[0], a.cos(), a.sin()) for a in angles]), 2e-6)


def compiled(dynamic: bool | None = None, backend: str = "inductor"):
    torch.compiler.reset()
    counter = CompileCounterWithBackend(backend)
    return torch.compile(apply_rope, fullgraph=True, dynamic=dynamic, backend=counter), counter


@pytest.mark.drawn(1)
@LAYOUTS
@TWO_FLOATS
def test_compiled_code_gives_the_bits_of_the_formula(dtype, interleaved: bool) -> None:
    rotate, counter = compiled(dynamic=True)
    xs = [random(5, 2, t, WIDTH, dtype=dtype, seed=t) for t in (LENGTH, 5, 37)]
    odd_place = VIEWS["odd storage offset"](xs[0])
    subnormal = xs[0] * torch.finfo(dtype).smallest_normal / 8
    for x in (*xs, odd_place, subnormal):
        table = rope_table(range(x.shape[-2]), WIDTH)
        assert same_bits(
            rotate(x, *table, interleaved=interleaved), formula(x, *table, interleaved)
        )
    assert counter.frame_count == 1  # one compilation for all lengths
    if dtype == torch.bfloat16:
        x = every_number(dtype)
        table = rope_table(range(x.shape[-2]), WIDTH)
        assert same_bits(
            rotate(x, *table, interleaved=interleaved), formula(x, *table, interleaved)
        )


@pytest.mark.drawn(4)
@LAYOUTS
@TWO_FLOATS
def test_graphs_and_exported_programs_take_x_as_it_lies_in_memory(dtype, interleaved) -> None:
    rotate, _ = compiled(backend="aot_eager")
    rope = RotaryEmbedding(WIDTH, LENGTH, interleaved=interleaved)
    x = random(2, 3, LENGTH, WIDTH + 3, dtype=dtype)
    program = torch.export.export(rope, (x,)).module()
    back = random(*x.shape, dtype=dtype, seed=1)
    for name in ("contiguous", "heads after positions", "last axis strided", "odd storage offset"):
        leaf = VIEWS[name](x).detach().requires_grad_()
        want = formula(leaf, *TABLE, interleaved)
        assert same_bits(program(leaf.detach()), want), name
        y = rotate(leaf, *TABLE, interleaved=interleaved)
        assert same_bits(y, want), name
        got = torch.autograd.grad(y, leaf, back)[0]
        close(got, formula(back, TABLE[0], -TABLE[1], interleaved), bound(back))


@pytest.mark.drawn(4)
@pytest.mark.filterwarnings("ignore:There is a performance drop")
@LAYOUTS
@pytest.mark.parametrize("name", TRANSFORMS)
def test_compiled_transforms_see_the_rotation(name, interleaved) -> None:
    """Integers in place of pairs would cut the gradient off, and the compiler would not tell."""
    torch.compiler.reset()
    x, t = (random(2, 2, LENGTH, WIDTH, seed=seed) for seed in (0, 1))

    def rotate(x: Tensor) -> Tensor:
        return apply_rope(x, *TABLE, interleaved=interleaved)

    transformed = TRANSFORMS[name](rotate, t)
    close(torch.compile(transformed, backend="eager")(x), transformed(x), 4 * bound(x))


@pytest.mark.drawn(4)
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


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace")
@LAYOUTS
def test_a_trace_takes_the_formula(interleaved: bool) -> None:
    x = random(2, LENGTH, WIDTH)
    traced = torch.jit.trace(lambda x: apply_rope(x, *TABLE, interleaved=interleaved), x)
    assert same_bits(traced(x), formula(x, *TABLE, interleaved))


# Memory


@LAYOUTS
@TWO_FLOATS
@pytest.mark.parametrize("tail", [0, 64])
def test_memory_is_the_output_and_two_tiles(dtype, tail: int, interleaved: bool) -> None:
    x = torch.ones(1, 32, 512, 128, dtype=dtype)
    cos, sin = rope_table(range(512), 128 - tail)
    scratch = peak_extra_bytes(lambda: apply_rope(x, cos, sin, interleaved=interleaved)) - x.nbytes
    if interleaved and not tail and dtype == torch.float32:
        assert scratch <= cos.nbytes + sin.nbytes
    else:  # a tile in float32, and what it becomes
        assert 0 < scratch <= 2 * 4 * fast.TILE + 3 * cos.nbytes
