"""Every fast form of the rotation against the formula that it stands for.

The formula itself is compared with the definition in test_rotation.py. What is claimed bit for bit
is asserted bit for bit, NaN for NaN: half-split tiles against the same passes over all of x, and
compiled code against the formula.
"""

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.autograd import forward_ad
from torch.func import grad, jacfwd, jacrev, jvp, vjp, vmap

from rope_minimal import RotaryEmbedding, apply_rope, rope_table, rotation
from rope_minimal.timing import peak_extra_bytes

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


def formula(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    return rotation._with_tail(rotation._formula, x, cos, sin, interleaved)


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
    monkeypatch.setattr(rotation, "_TILE", 2 * 3 * 5 * WIDTH)


@pytest.mark.usefixtures("small_tiles")
@LAYOUTS
@FLOATS
@pytest.mark.parametrize("tail", [0, 2, 3])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_tiles_give_the_numbers_of_the_passes_over_all_of_x(view, tail, dtype, interleaved) -> None:
    x = view(random(2, 3, LENGTH, WIDTH + tail, dtype=dtype))
    before = x.clone()
    y = apply_rope(x, *TABLE, interleaved=interleaved)
    whole = rotation._with_tail(rotation._in_passes, x, *TABLE, interleaved)
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
    monkeypatch.setattr(rotation, "_TILE", 1)
    y = apply_rope(x, *TABLE, interleaved=interleaved)
    torch.testing.assert_close(y, want, rtol=0, atol=bound(x))
    empty = x[:, :, :0]
    assert apply_rope(empty, *(t[:0] for t in TABLE), interleaved=interleaved).shape == empty.shape


@LAYOUTS
@SIXTEEN
def test_every_number_of_16_bits_is_rotated_as_the_formula_says(dtype, interleaved: bool) -> None:
    x = every_number(dtype)
    table = rope_table(range(x.shape[-2]), WIDTH)
    y, want = (f(x, *table, interleaved) for f in (rotation._in_passes, formula))
    # A complex product of infinity is not the formula's in every bit: its own test is below.
    finite = want.isfinite() & y.isfinite()
    ulp = torch.finfo(dtype).eps * want.abs().clamp(min=torch.finfo(dtype).tiny)
    assert ((y - want).abs() <= ulp.to(dtype))[finite].double().mean() > 0.999
    assert finite.double().mean() > 0.9
    assert torch.equal(y.isfinite(), want.isfinite())


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


# Integers for pairs. Run here without the compiler, bit for bit; compiled further down.


def test_rounding_to_upper_bits_is_the_cast() -> None:
    """Nearest, ties to even, subnormal, overflow to infinity, signed zeros, any NaN."""
    dtype = torch.bfloat16
    x = every_number(dtype).float().flatten()
    x = x[x.isfinite()].sort().values
    ties = x[:-1] + (x[1:] - x[:-1]) / 2  # exact in float32
    largest = torch.tensor([torch.finfo(dtype).max])
    past = largest * (1 + torch.finfo(dtype).eps / 4)  # the tie beyond the largest number
    beyond = [past, past.nextafter(largest), 2 * past.clamp(max=1e38), largest * torch.inf]
    nan = torch.tensor([0x7F800001, 0x7FC00000, 0x7FFFFFFF, -1, -(2**22)], dtype=torch.int32)
    anything = torch.randint(-(2**31), 2**31, (200_000,), generator=torch.manual_seed(0))
    zeros = torch.tensor([0.0, -0.0, 1e-45, -1e-45])
    near = [ties, ties.nextafter(ties + 1), ties.nextafter(ties - 1)]
    rest = [nan.view(torch.float32), anything.to(torch.int32).view(torch.float32), zeros]
    numbers = torch.cat([*near, *beyond, *(-b for b in beyond), *rest])
    got = (rotation._bfloat16_bits(numbers) >> 16).to(torch.int16).view(dtype)
    assert same_bits(got, numbers.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_words_give_the_bits_of_the_formula(dtype: torch.dtype) -> None:
    xs = [random(2, 3, LENGTH, WIDTH, dtype=dtype), random(2, 3, 5, 2, dtype=dtype)]
    if dtype != torch.float32:
        xs.append(every_number(dtype))
    for x in xs:
        table = rope_table(range(x.shape[-2]), x.shape[-1])
        assert same_bits(rotation._in_words(x, *table), rotation._formula(x, *table, True))


@SIXTEEN
def test_halves_give_the_bits_of_the_formula(dtype: torch.dtype) -> None:
    for x in (random(2, 4, LENGTH, WIDTH, dtype=dtype), every_number(dtype).transpose(0, 1)):
        table = rope_table(range(x.shape[-2]), WIDTH)
        assert same_bits(rotation._in_halves(x, *table), rotation._formula(x, *table, False))


def test_two_heads_share_a_row_of_the_table_where_they_can() -> None:
    seen = []
    x = random(2, 4, LENGTH, WIDTH)

    def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        seen.append(x.shape[-3])
        return x + 0

    rows = [t.expand(2, 1, -1, -1) for t in TABLE], [t.expand(1, 4, -1, -1) for t in TABLE]
    for each, table in ((x, TABLE), (x, rows[0]), (x, rows[1]), (x[:, :3], TABLE)):
        assert torch.equal(rotation._by_two_heads(rotate, each, *table), each)
    assert seen == [2, 2, 2, 2, 4, 3]
    rotation._by_two_heads(rotate, VIEWS["heads after positions"](x), *TABLE)
    assert seen[6:] == [4]  # one row of the table stands beside all heads in memory


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
    monkeypatch.setattr(rotation, "_TILE", 2 * WIDTH)  # one position each

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
def test_memory_is_the_output_and_at_16_bits_a_tile(dtype, tail: int, interleaved: bool) -> None:
    x = torch.ones(1, 32, 512, 128, dtype=dtype)
    cos, sin = rope_table(range(512), 128 - tail)
    scratch = peak_extra_bytes(lambda: apply_rope(x, cos, sin, interleaved=interleaved)) - x.nbytes
    # A tile of 16 bits is rotated as float32; half-split, one of the halves is kept until the end.
    tiles = (dtype != torch.float32) + 0.5 * (not interleaved)
    assert 0 < scratch <= tiles * 4 * rotation._TILE + cos.nbytes + sin.nbytes


# The compiler


def compiled(dynamic: bool | None = None, backend: str = "inductor"):
    torch.compiler.reset()
    counter = CompileCounterWithBackend(backend)
    return torch.compile(apply_rope, fullgraph=True, dynamic=dynamic, backend=counter), counter


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_compiled_code_gives_the_bits_of_the_formula(dtype, interleaved: bool) -> None:
    rotate, counter = compiled(dynamic=True)
    xs = [random(5, 2, t, WIDTH, dtype=dtype, seed=t) for t in (LENGTH, 5, 37)]
    subnormal = xs[0] * torch.finfo(dtype).smallest_normal / 8
    for x in (*xs, subnormal):
        table = rope_table(range(x.shape[-2]), WIDTH)
        want = rotation._formula(x, *table, interleaved)
        assert same_bits(rotate(x, *table, interleaved=interleaved), want)
    assert counter.frame_count == 1  # one compilation for all lengths
    if dtype != torch.float32:
        x = every_number(dtype)
        table = rope_table(range(x.shape[-2]), WIDTH)
        want = rotation._formula(x, *table, interleaved)
        assert same_bits(rotate(x, *table, interleaved=interleaved), want)


@LAYOUTS
@pytest.mark.parametrize("tail", [0, 3])
@pytest.mark.parametrize("heads", [3, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_graphs_take_x_as_it_lies_in_memory(
    dtype, heads: int, tail: int, interleaved: bool
) -> None:
    rotate, _ = compiled(backend="aot_eager")
    for name in set(VIEWS) - {"odd storage offset"}:
        torch.compiler.reset()
        x = VIEWS[name](random(2, heads, LENGTH, WIDTH + tail, dtype=dtype)).detach()
        want = formula(x, *TABLE, interleaved)
        assert same_bits(rotate(x, *TABLE, interleaved=interleaved), want), name
        back = random(*x.shape, dtype=dtype, seed=1)
        leaf = x.requires_grad_()
        got = torch.autograd.grad(rotate(leaf, *TABLE, interleaved=interleaved), leaf, back)[0]
        assert same_bits(got, formula(back, TABLE[0], -TABLE[1], interleaved)), name


@LAYOUTS
@pytest.mark.parametrize("heads", [3, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@TABLES_OF_ROWS
def test_compiled_graphs_follow_a_table_of_its_own_for_every_row(
    own, dtype, heads: int, interleaved: bool
) -> None:
    rotate, _ = compiled(backend="aot_eager")
    x = random(2, heads, LENGTH, WIDTH, dtype=dtype)
    angle = angles_of_rows(own, heads)
    want = rotation._formula(x, angle.cos(), angle.sin(), interleaved)
    for view in ("contiguous", "heads after positions"):
        y = rotate(VIEWS[view](x), angle.cos(), angle.sin(), interleaved=interleaved)
        assert same_bits(y, want), view


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_interleaved_pairs_must_begin_at_an_even_offset(dtype: torch.dtype) -> None:
    """The one thing that compiled code cannot see: better an error than a wrong number."""
    rotate, _ = compiled(backend="aot_eager")
    x = random(2, LENGTH, WIDTH, dtype=dtype)
    rotate(x, *TABLE, interleaved=True)
    with pytest.raises(RuntimeError, match="storage_offset"):
        rotate(VIEWS["odd storage offset"](x), *TABLE, interleaved=True)
    rotate(VIEWS["odd storage offset"](x), *TABLE)


def test_a_clone_before_the_compiled_call_begins_at_an_even_offset() -> None:
    rotate, _ = compiled()
    x = VIEWS["odd storage offset"](random(2, LENGTH, WIDTH))
    want = rotation._formula(x, *TABLE, True)
    assert same_bits(rotate(x.clone(), *TABLE, interleaved=True), want)


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_exported_program_takes_x_as_it_lies_in_memory(dtype, interleaved: bool) -> None:
    rope = RotaryEmbedding(WIDTH, LENGTH, interleaved=interleaved)
    x = random(2, 4, LENGTH, WIDTH, dtype=dtype)
    program = torch.export.export(rope, (x,)).module()
    for name, view in VIEWS.items():
        want = formula(view(x), *TABLE, interleaved)
        assert same_bits(program(view(x)), want), name


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


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_transforms_of_torch_func_see_the_rotation(dtype, interleaved: bool) -> None:
    """Integers in place of pairs would cut the gradient off, and the compiler would not tell."""
    x, t = (random(2, 2, LENGTH, WIDTH, dtype=dtype, seed=seed) for seed in (0, 1))

    def rotate(x: Tensor) -> Tensor:
        return apply_rope(x, *TABLE, interleaved=interleaved)

    def size(x: Tensor) -> Tensor:
        return rotate(x).square().sum()

    for transformed in (
        grad(size),
        jacrev(size),
        vmap(rotate),
        vmap(grad(size)),
        lambda x: jvp(rotate, (x,), (t,))[1],
        lambda x: vjp(rotate, x)[1](t)[0],
        lambda x: jacfwd(size)(x[0, 0]),
        grad(torch.compile(size, backend="aot_eager")),
    ):
        torch.compiler.reset()
        got = torch.compile(transformed, backend="eager")(x)
        torch.testing.assert_close(got, transformed(x), rtol=0, atol=4 * bound(x))
    torch.compiler.reset()
    with forward_ad.dual_level():
        y = torch.compile(rotate, backend="eager")(forward_ad.make_dual(x, t))
        tangent = forward_ad.unpack_dual(y).tangent
    torch.testing.assert_close(tangent, rotate(t), rtol=0, atol=bound(t))
