"""The Triton kernel against the formula and against `apply_rope`, on a GPU or interpreted.

Without a GPU, ``test_fused_kernel.py`` runs this file in a process with TRITON_INTERPRET=1. Of the
same test in many types and shapes each run then draws some.
"""

import os

import pytest
import torch
from torch import Tensor

from rope_minimal import apply_rope, rope_table

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if not (INTERPRETED or torch.cuda.is_available()):
    pytest.skip("no GPU here, and TRITON_INTERPRET=1 is not set", allow_module_level=True)
fused = pytest.importorskip(
    "ropebook.timing.fused", reason="triton is not installed", exc_type=ImportError
)
apply_rope_fused = fused.apply_rope_fused

DEVICE = "cpu" if INTERPRETED else "cuda"
LAYOUTS = pytest.mark.parametrize("interleaved", [False, True], ids=["half", "interleaved"])
DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str
)
DRAWN = pytest.mark.drawn(30)
WIDTHS = pytest.mark.parametrize("width", [16, 12])  # of 16 channels; 12 / 2 is no power of two
# 11 positions are more than a block of 8 and less than two; 3 heads more than a block of 2
SHAPE = (2, 3, 11, 16)


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    generator = torch.manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator).to(DEVICE, dtype)


def table(positions, width: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    cos, sin = rope_table(positions, width, dtype=dtype)
    return cos.to(DEVICE), sin.to(DEVICE)


def formula(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Return the rotation as it is written on paper, each product rounded."""
    exact, width = torch.promote_types(x.dtype, torch.float32), 2 * cos.shape[-1]
    z, rest, cos, sin = x[..., :width].to(exact), x[..., width:], cos.to(exact), sin.to(exact)
    a, b = (z[..., 0::2], z[..., 1::2]) if interleaved else z.chunk(2, dim=-1)
    pair = (a * cos - b * sin, b * cos + a * sin)
    y = torch.stack(pair, dim=-1).flatten(-2) if interleaved else torch.cat(pair, dim=-1)
    return torch.cat((y.to(x.dtype), rest), dim=-1)


def assert_rounded_once(y: Tensor, x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> None:
    """Assert that y is x rotated, in x's own type, to half a step of its last bit."""
    assert y.dtype == x.dtype
    assert y.shape == x.shape
    width, finfo = 2 * cos.shape[-1], torch.finfo(x.dtype)
    assert torch.equal(y[..., width:], x[..., width:])
    want = apply_rope(x.double(), cos.double(), sin.double(), interleaved=interleaved)
    step = finfo.eps * torch.exp2(torch.frexp(want).exponent.double() - 1).clamp(min=finfo.tiny)
    # the interpreter cuts bfloat16's last bits off where a GPU rounds them
    half_steps = 2 if INTERPRETED and x.dtype == torch.bfloat16 else 1
    inside = 1e-15 if x.dtype == torch.float64 else 3e-7  # of the arithmetic before that rounding
    length = x[..., :width].double().norm(dim=-1, keepdim=True)
    assert ((y.double() - want).abs() <= 0.5 * half_steps * step + inside * length).all()
    if INTERPRETED and x.dtype != torch.bfloat16:  # nothing contracts the products here
        assert torch.equal(y, formula(x, cos, sin, interleaved))


MEMORY = {
    "contiguous": lambda x: x,
    "transposed heads and sequence": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "cut from a wider projection": lambda x: torch.cat((x, x), dim=-1)[..., :16],
}
STRANGE = {
    "odd storage offset": lambda x: torch.cat((x.new_zeros(1), x.flatten()))[1:].view(x.shape),
    "every second position": lambda x: x.repeat_interleave(2, dim=-2)[..., ::2, :],
    "last axis strided": lambda x: x.repeat_interleave(2, dim=-1)[..., ::2],
    "last axis first": lambda x: x.movedim(-1, 0).contiguous().movedim(0, -1),
}


@DRAWN
@LAYOUTS
@DTYPES
@WIDTHS
@pytest.mark.parametrize("make", MEMORY.values(), ids=MEMORY)
def test_any_type_width_and_order_in_memory(make, width, dtype, interleaved: bool) -> None:
    x, (cos, sin) = random(*SHAPE, dtype=dtype), table(range(11), width)
    strange, before = make(x), x.clone()
    assert torch.equal(strange, x)
    y = apply_rope_fused(strange, cos, sin, interleaved=interleaved)
    assert_rounded_once(y, x, cos, sin, interleaved)
    assert torch.equal(strange, before)


@LAYOUTS
@pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE)
def test_a_stranger_order_in_memory_does_not_matter_either(make, interleaved: bool) -> None:
    x, (cos, sin) = random(*SHAPE, dtype=torch.float16), table(range(11), 2)
    y = apply_rope_fused(make(x), cos, sin, interleaved=interleaved)
    assert_rounded_once(y, x, cos, sin, interleaved)


def test_a_transposed_view_is_not_copied() -> None:
    x = random(2, 11, 3, 16).transpose(1, 2)
    assert apply_rope_fused(x, *table(range(11), 16)).stride() == x.stride()


@LAYOUTS
def test_an_expanded_or_overlapping_input_is_rotated(interleaved: bool) -> None:
    cos, sin = table(range(11), 16)
    for x in (
        random(1, 1, 1, 16).expand(SHAPE),
        random(64).as_strided((2, 3, 11, 16), (0, 9, 1, 1)),
    ):
        y = apply_rope_fused(x, cos, sin, interleaved=interleaved)
        assert_rounded_once(y, x, cos, sin, interleaved)


@LAYOUTS
@pytest.mark.parametrize(
    "shape", [(11, 16), (3, 11, 16), (2, 2, 2, 11, 16), (2, 40, 1, 16), (2, 3, 11, 12)], ids=str
)
def test_any_number_and_size_of_axes(shape, interleaved: bool) -> None:
    x, (cos, sin) = random(*shape), table(range(shape[-2]), shape[-1])
    y = apply_rope_fused(x, cos, sin, interleaved=interleaved)
    assert_rounded_once(y, x, cos, sin, interleaved)


@DRAWN
@LAYOUTS
@pytest.mark.parametrize("leading", [(2, 1), (1, 3), (2, 3), (1, 1)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_a_table_may_differ_between_rows_and_heads(leading, dtype, interleaved: bool) -> None:
    positions = torch.randint(1000, (*leading, 11), generator=torch.manual_seed(0))
    x, (cos, sin) = random(*SHAPE), table(positions, 12, dtype)
    y = apply_rope_fused(x, cos, sin, interleaved=interleaved)
    assert_rounded_once(y, x, cos, sin, interleaved)
    strided = [t.mT.contiguous().mT for t in (cos, sin)]  # the same numbers in another order
    for tables in (strided, (cos, strided[1])):
        assert torch.equal(apply_rope_fused(x, *tables, interleaved=interleaved), y)


@LAYOUTS
@pytest.mark.parametrize("shape", [(0, 3, 4, 8), (2, 0, 4, 8), (2, 3, 0, 8)])
def test_empty_axes_give_empty_results(shape, interleaved: bool) -> None:
    x, (cos, sin) = random(*shape).requires_grad_(), table(range(shape[-2]), 4)
    y = apply_rope_fused(x, cos, sin, interleaved=interleaved)
    y.sum().backward()
    assert y.shape == x.grad.shape == shape
    ids = torch.zeros(shape[0], shape[2], dtype=torch.long, device=DEVICE)
    rows = table(range(9), 4)
    assert apply_rope_fused(x, *rows, interleaved=interleaved, positions=ids).shape == shape


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_nan_and_inf_stay_in_their_pair(dtype: torch.dtype, interleaved: bool) -> None:
    x, (cos, sin) = random(2, 3, 11, 16, dtype=dtype), table(range(11), 12)
    x[0, 1, 2, 3], x[1, 2, 10, 0], x[1, 0, 0, 1], x[0, 0, 5, 13] = torch.tensor(
        [float("nan"), float("inf"), -float("inf"), float("nan")]
    )
    y = apply_rope_fused(x, cos, sin, interleaved=interleaved)
    want = formula(x, cos, sin, interleaved)
    assert want.isnan().any()
    assert want.isinf().any()
    tolerance = 1e-6 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(y, want, rtol=tolerance, atol=tolerance, equal_nan=True)


# Positions


@LAYOUTS
@pytest.mark.parametrize("offset", [0, 1, 20])
def test_an_offset_takes_later_rows(offset: int, interleaved: bool) -> None:
    x, (cos, sin) = random(*SHAPE), table(range(31), 12)
    y = apply_rope_fused(x, cos, sin, interleaved=interleaved, positions=offset)
    end = offset + 11
    assert_rounded_once(y, x, cos[offset:end], sin[offset:end], interleaved)


@DRAWN
@LAYOUTS
@pytest.mark.parametrize(
    ("batch", "dtype"), [((), torch.uint8), ((1,), torch.int32), ((2,), torch.int64)], ids=str
)
@pytest.mark.parametrize("shape", [SHAPE, (2, 11, 16), (2, 2, 3, 11, 16)], ids=str)
def test_every_token_may_have_its_own_row(shape, batch, dtype, interleaved: bool) -> None:
    x, (cos, sin) = random(*shape), table(range(200), 12)
    ids = torch.randint(200, (*batch, 11), generator=torch.manual_seed(0)).to(DEVICE)
    y = apply_rope_fused(x, cos, sin, interleaved=interleaved, positions=ids.to(dtype))
    rows = ids.expand(2, 11).reshape(2, *(1,) * (len(shape) - 3), 11)
    assert_rounded_once(y, x, cos[rows], sin[rows], interleaved)


def test_one_sequence_without_a_batch_axis_has_rows_too() -> None:
    x, (cos, sin) = random(3, 16), table(range(9), 16)
    ids = torch.tensor([8, 0, 8], device=DEVICE)
    assert_rounded_once(apply_rope_fused(x, cos, sin, positions=ids), x, cos[ids], sin[ids], False)


@LAYOUTS
@pytest.mark.parametrize("bad", [-1, 9, 10**12])
def test_where_nobody_looks_a_row_outside_the_table_gives_nan(bad, interleaved, monkeypatch):
    monkeypatch.setattr("ropebook.timing.fused.check_range", lambda *_: None)  # as on a GPU
    x, (cos, sin) = random(1, 2, 3, 8), table(range(9), 4)
    ids = torch.tensor([[8, bad, 0]], device=DEVICE)
    y = apply_rope_fused(x, cos, sin, interleaved=interleaved, positions=ids)
    assert y[:, :, 1, :4].isnan().all()
    assert y[:, :, [0, 2]].isfinite().all()
    assert torch.equal(y[..., 4:], x[..., 4:])


# Gradients


@DRAWN
@LAYOUTS
@DTYPES
@WIDTHS
def test_the_gradient_is_that_of_apply_rope(width, dtype, interleaved: bool) -> None:
    x, (cos, sin) = random(*SHAPE, dtype=dtype).requires_grad_(), table(range(11), width)
    grad = random(*SHAPE, dtype=dtype, seed=1)
    apply_rope_fused(x, cos, sin, interleaved=interleaved).backward(grad)
    assert_rounded_once(x.grad, grad, cos, -sin, interleaved)
    exact = x.detach().double().requires_grad_()
    apply_rope(exact, cos, sin, interleaved=interleaved).backward(grad.double())
    tolerance = {8: 1e-14, 4: 1e-6, 2: 4e-2}[dtype.itemsize]
    torch.testing.assert_close(x.grad.double(), exact.grad, rtol=0, atol=tolerance)


@LAYOUTS
def test_the_gradient_follows_the_rows_and_an_expanded_loss(interleaved: bool) -> None:
    x, (cos, sin) = random(*SHAPE), table(range(99), 12)
    ids = torch.randint(99, (2, 11), generator=torch.manual_seed(0)).to(DEVICE)
    x = x.transpose(0, 1).contiguous().transpose(0, 1).requires_grad_()
    apply_rope_fused(x, cos, sin, interleaved=interleaved, positions=ids).sum().backward()
    rows = ids.unsqueeze(1)
    assert_rounded_once(x.grad, torch.ones_like(x), cos[rows], -sin[rows], interleaved)


@LAYOUTS
def test_first_and_second_derivatives_in_float64(interleaved: bool) -> None:
    x, (cos, sin) = random(1, 2, 3, 5, dtype=torch.float64), table(range(3), 4, torch.float64)

    def rotate(x: Tensor) -> Tensor:
        return apply_rope_fused(x, cos, sin, interleaved=interleaved)

    assert torch.autograd.gradcheck(rotate, [x.requires_grad_()], fast_mode=True)
    assert torch.autograd.gradgradcheck(rotate, [x], fast_mode=True)


# Bad input

X, COS, SIN = random(2, 3, 4, 8), *table(range(4), 8)


@pytest.mark.parametrize(
    "arguments",
    [
        (X.long(), COS, SIN),
        (X[0, 0, 0], COS, SIN),
        (X, COS.long(), SIN),
        (X, COS, None),
        (X, COS, SIN[:, :2]),
        (X, COS[None], SIN[None]),
        (X[..., :6], COS, SIN),
        (X, COS[:0, :0], SIN[:0, :0]),
        (X[:, :, :3], COS, SIN),
        (X, COS.expand(3, 1, 4, 4), SIN.expand(3, 1, 4, 4)),
    ],
)
def test_bad_input_is_refused_in_the_words_of_apply_rope(arguments) -> None:
    with pytest.raises((TypeError, ValueError)) as plain:
        apply_rope(*arguments)
    with pytest.raises(plain.type) as fused:
        apply_rope_fused(*arguments)
    assert str(fused.value) == str(plain.value)


def test_a_table_on_another_device_is_named() -> None:
    for table in ((COS.to("meta"), SIN), (COS, SIN.to("meta"))):
        for positions in (None, 0, IDS):
            with pytest.raises(ValueError, match=r"(cos|sin) must be on one device, got .* meta"):
                apply_rope_fused(X, *table, positions=positions)


def test_a_flag_is_a_flag() -> None:
    with pytest.raises(TypeError, match="interleaved must be True or False, got 'no'"):
        apply_rope_fused(X, COS, SIN, interleaved="no")


IDS = torch.arange(4, device=DEVICE)
OUTSIDE = (
    [] if DEVICE == "cuda" else [(IDS - 1, ValueError, "got -1"), (IDS + 1, ValueError, "got 4")]
)


@pytest.mark.parametrize(
    ("positions", "kind", "said"),
    [
        (-1, ValueError, "positions must be >= 0, got -1"),
        (1, ValueError, r"1\.\.5 exceed the table's 4 rows"),
        (1.0, TypeError, "positions must be integers, got torch.float32"),
        (IDS.float(), TypeError, "positions must be integers, got torch.float32"),
        (IDS[:3], ValueError, r"\(T,\) = \(4,\) or \(B, T\) = \(2, 4\), got \(3,\)"),
        (IDS.expand(3, 4), ValueError, r"got \(3, 4\)"),
        (IDS.to("meta"), ValueError, "x and positions must be on one device, got .* and meta"),
        *OUTSIDE,
    ],
)
def test_bad_positions_are_named(positions, kind, said: str) -> None:
    with pytest.raises(kind, match=said):
        apply_rope_fused(X, COS, SIN, positions=positions)


@pytest.mark.parametrize(
    ("cos", "sin", "said"),
    [
        (COS[None, None], SIN, r"cos must be a table \(P, R/2\) .* got shape \(1, 1, 4, 4\)"),
        (COS, SIN[:0], r"sin must be a table \(P, R/2\) .* got shape \(0, 4\)"),
        (COS, SIN[:3], r"cos and sin must have the same shape, got \(4, 4\) and \(3, 4\)"),
        (COS.repeat(1, 2), SIN.repeat(1, 2), r"rotated width .* got 16"),
    ],
)
def test_a_bad_table_of_rows_is_named(cos, sin, said: str) -> None:
    for positions in (0, IDS):
        with pytest.raises(ValueError, match=said):
            apply_rope_fused(X, cos, sin, positions=positions)


def test_a_table_that_wants_a_gradient_is_refused() -> None:
    learned = COS.clone().requires_grad_()
    for table in ((learned, SIN), (COS, learned)):
        with pytest.raises(ValueError, match=r"must not require a gradient.*apply_rope has"):
            apply_rope_fused(X, *table)
    with torch.no_grad():
        assert apply_rope_fused(X, learned, SIN).shape == X.shape
