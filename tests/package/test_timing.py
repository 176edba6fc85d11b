"""The forms of the speed chapter are right, and the bytes they are said to move are counted."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from rope_minimal import rope_table, rotate_complex
from ropebook.timing import FORMS, Timing, clock, compare, moved_bytes, peak_extra_bytes

TYPES = (torch.float32, torch.bfloat16, torch.float16)
# A 16-bit form rounds the table, two products and a sum: a few half steps of a value near 5.
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 5 * 2**-7, torch.float16: 5 * 2**-10}


def example(dtype=torch.float32, batch=2, heads=3, length=24, width=16):
    draw = torch.manual_seed(0)
    x = torch.randn(batch, heads, length, width, generator=draw).to(dtype)
    return x, *rope_table(range(length), width)


def right(x, interleaved):
    exact = x.double().numpy()
    if interleaved is None:
        return exact
    return rotate_complex(exact, np.arange(x.shape[-2]), interleaved=interleaved)


# the forms


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_is_the_rotation(form, dtype):
    x, cos, sin = example(dtype)
    before = x.clone()
    want = right(x, form.interleaved)
    for y in (form.run(x, cos, sin), form.bind(x, cos, sin)()):
        assert y.shape == x.shape
        assert y.data_ptr() != x.data_ptr()
        assert abs(y.double().numpy() - want).max() < TOLERANCE[dtype]
    assert torch.equal(x, before)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_takes_a_transposed_view(form):
    x, cos, sin = example()
    view = x.transpose(1, 2).contiguous().transpose(1, 2)
    assert not view.is_contiguous()
    torch.testing.assert_close(form.run(view, cos, sin), form.run(x, cos, sin))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_passes_are_the_bytes_of_every_operation(form, dtype):
    """What one more batch adds has no tables in it, so the count is exact."""
    counts = []
    for batch in (1, 2):
        x, cos, sin = example(dtype, batch)
        counts.append((moved_bytes(form.bind(x, cos, sin)), x.numel() * x.element_size()))
    (moved, size), (moved_more, size_more) = counts
    passes = (moved_more - moved) / (size_more - size)
    assert passes >= 2  # nothing is faster than a copy
    if form.passes is not None:
        assert passes == form.passes_for(dtype)


def test_a_dense_matrix_also_reads_its_matrices():
    x, cos, sin = example(batch=1, heads=4, length=8, width=32)
    size = x.numel() * x.element_size()
    assert moved_bytes(FORMS["dense matrix"].bind(x, cos, sin)) == (2 + 32 / 4) * size


def test_the_forms_have_their_names_and_two_floors():
    assert all(name == form.name for name, form in FORMS.items())
    floors = [form.name for form in FORMS.values() if form.interleaved is None]
    assert floors == ["copy_", "clone"]
    assert {form.interleaved for form in FORMS.values()} == {None, False, True}


def test_a_compiled_form_says_so_and_does_not_claim_a_count():
    form = FORMS["view_as_complex"].compiled()
    assert (form.mode, form.passes_for(torch.float32), form.passes_for(torch.float16)) == (
        "compiled",
        None,
        None,
    )
    assert FORMS["view_as_complex"].passes_for(torch.float16) == 10


# bytes


@pytest.mark.parametrize(
    ("operation", "tensors"),
    [
        (lambda x: x, 0),
        (lambda x: x[..., 1:].transpose(0, 1), 0),
        (lambda x: torch.empty_like(x), 0),
        (lambda x: x.clone(), 2),
        (lambda x: x.new_zeros(x.shape).copy_(x), 3),  # zeros are written once, then copied to
        (lambda x: x * 2, 2),
        (lambda x: x + x, 3),
        (lambda x: x.mul_(2), 2),
        (lambda x: torch.add(x, x, out=torch.empty_like(x)), 3),
        (lambda x: torch.empty_like(x).normal_(), 1),
        (lambda x: x.double(), 3),
        (lambda x: x.expand(5, *x.shape).sum(0), 2),  # one copy of x is read
    ],
)
def test_moved_bytes(operation, tensors):
    x = torch.ones(8, 16)
    assert moved_bytes(lambda: operation(x)) == tensors * x.numel() * x.element_size()


def test_an_operation_that_hides_its_inside_is_not_counted():
    x, cos, sin = example()
    with pytest.raises(ValueError, match="call must use PyTorch's own operations, got onnx::"):
        moved_bytes(lambda: torch.onnx.ops.rotary_embedding(x[:1], cos[None], sin[None]))


@pytest.mark.parametrize(
    ("operation", "tensors"),
    [
        (lambda x: x[1:], 0),
        (lambda x: x.mul_(1), 0),
        (lambda x: x.clone(), 1),
        (lambda x: (x * x) + (x * x), 3),  # both products live when the sum is made
        (lambda x: (x * x) * x * x, 2),  # only the last product does
    ],
)
def test_peak_extra_bytes(operation, tensors, monkeypatch):
    monkeypatch.setenv("KINETO_LOG_LEVEL", "99")
    x = torch.ones(64, 1024)
    peak = peak_extra_bytes(lambda: operation(x))
    # the profiler also sees a few numbers of eight bytes
    assert peak == pytest.approx(tensors * x.numel() * x.element_size(), abs=1000)


# compare


class Fake:
    """Calls that take the time they are told to, and a clock that knows."""

    def __init__(self, **costs):
        self.now, self.log = 0, []
        self.costs = {name: itertools.cycle(cost) for name, cost in costs.items()}

    def clock(self):
        return self.now

    def calls(self):
        return {name: lambda name=name: self.call(name) for name in self.costs}

    def call(self, name):
        self.log.append(name)
        self.now += next(self.costs[name])


def test_compare_goes_round_and_starts_each_round_with_the_next():
    fake, seen = Fake(a=[2_000], b=[4_000], c=[9_000]), []
    calls = fake.calls()
    on_round = lambda: (seen.append(list(fake.log)), fake.log.clear())  # noqa: E731
    compare(calls, "a", rounds=4, sample_us=1e-3, clock=fake.clock, on_round=on_round)
    first, *later = seen
    assert first[-3:] == ["a", "b", "c"]
    assert first[:-3] == [*"aaabbbccc"]  # one to warm up and two to see how long it takes
    assert later == [["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]]


def test_compare_takes_ratios_round_by_round():
    """The machine is ten times slower in every second round; no ratio knows."""
    drift = [1_000, 1_000, 1_000, 1_000, 10_000]
    fake = Fake(floor=drift, slow=[3 * t for t in drift])
    found = compare(fake.calls(), "floor", rounds=10, sample_us=1e-3, clock=fake.clock)
    assert list(found) == ["floor", "slow"]
    assert found["slow"].us_high > 3
    slow = replace(found["slow"], us_high=0)
    assert slow == Timing(3.0, 3.0, 0, 3.0, 3.0, 3.0, rounds=10, repeats=1)
    assert found["floor"].ratio == 1


def test_compare_gives_quantiles():
    costs = [1_000 * t for t in range(11)]
    fake = Fake(floor=[1_000], form=[1_000, 1_000, 1_000, *costs])
    found = compare(fake.calls(), "floor", rounds=11, sample_us=1e-3, clock=fake.clock)["form"]
    assert (found.ratio_low, found.ratio, found.ratio_high) == pytest.approx((2, 5, 8))
    assert (found.us_low, found.us, found.us_high) == pytest.approx((2, 5, 8))
    assert found.rounds == 11


def test_compare_repeats_a_short_call():
    fake = Fake(short=[2_000], long=[5_000_000])
    found = compare(fake.calls(), "short", rounds=3, sample_us=1000, clock=fake.clock)
    assert (found["short"].repeats, found["long"].repeats) == (500, 1)
    assert found["long"].ratio == 2500  # of one call, not of a sample
    assert fake.log.count("short") == 3 + 3 * 500


def test_compare_times_a_cold_call_alone_after_a_flush(monkeypatch):
    fake = Fake(short=[2_000], long=[3_000])
    flush = lambda self: fake.log.append("flush")  # noqa: E731
    monkeypatch.setattr(torch.Tensor, "sum", flush)
    sizes = []
    ones = torch.ones
    monkeypatch.setattr(torch, "ones", lambda n, **more: sizes.append(n) or ones(1, **more))
    kinds = {"sample_us": 5, "clock": fake.clock, "cold": True}
    found = compare(fake.calls(), "short", rounds=2, **kinds)
    assert sizes == [2**26]
    assert (found["short"].repeats, found["short"].us, found["long"].us) == (3, 2, 3)
    assert fake.log[::2] == ["flush"] * (len(fake.log) // 2)
    assert fake.log[1::2].count("short") == 3 + 2 * 3


def test_on_cuda_events_time_each_call_after_a_flush_or_many_in_a_row(monkeypatch):
    log = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            log.append("record")

        def synchronize(self):
            log.append("wait")

        def elapsed_time(self, end):
            return 0.25  # milliseconds

    class Flush:
        def __init__(self, size):
            self.numel = lambda: size

        def sum(self):
            log.append("flush")

    monkeypatch.setattr(torch.cuda, "Event", Event)
    assert clock._cuda_ns(lambda: log.append("call"), 2, Flush(2**26)) == 250_000
    head = clock.HEAD_START * ["flush"]
    assert log == 2 * [*head, "record", "call", "record", "wait"]
    log.clear()
    assert clock._cuda_ns(lambda: log.append("call"), 2, Flush(0)) == 125_000
    assert log == ["record", "call", "call", "record", "wait"]
