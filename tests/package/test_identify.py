"""The instrument recovers what was built, names bugs blind, and survives any function.

The rotations asked here are built by `turner` below, of complex numbers, or by `reference.py`.
"""

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from rope_minimal import rescaled_frequencies, rotate_complex
from ropebook import bugs
from ropescope import Report, identify
from ropescope.naming import explain, follows_but
from ropescope.picture import circuit

QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # to shrink an example takes minutes
Rotate = Callable[[np.ndarray, np.ndarray], np.ndarray]


def turner(
    pairs: list[tuple[int, int]],
    waves: np.ndarray,
    factor: float = 1.0,
    out: list[tuple[int, int]] | None = None,
) -> Rotate:
    """Turn each pair counter-clockwise by position times wave; write it to the channels ``out``."""
    waves = np.asarray(waves, float).reshape(len(pairs), -1)
    (a, b), (c, d) = np.array(pairs).T, np.array(out or pairs).T

    def rotate(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        y = x.copy()
        angle = positions.reshape(len(positions), -1).astype(float) @ waves.T
        z = (x[..., a] + 1j * x[..., b]) * (factor * np.exp(1j * angle))
        y[..., c], y[..., d] = z.real, z.imag
        return y

    return rotate


def layout_of(name: str, width: int, start: int = 0) -> list[tuple[int, int]]:
    half = width // 2
    if name == "interleaved":
        return [(start + 2 * i, start + 2 * i + 1) for i in range(half)]
    return [(start + i, start + i + half) for i in range(half)]


# ---- what was built is recovered ---------------------------------------------------------------

WIDE = {
    "default": st.just({}),
    "linear": st.fixed_dictionaries({"factor": st.sampled_from([2.0, 4.0, 8.0, 2.5])}),
    "ntk": st.fixed_dictionaries({"factor": st.sampled_from([2.0, 4.0, 8.0, 1.5])}),
    "dynamic": st.fixed_dictionaries(
        {
            "factor": st.sampled_from([2.0, 4.0]),
            "max_position_embeddings": st.just(4096),
            "seq_len": st.sampled_from([8192, 16384]),
        }
    ),
    "llama3": st.fixed_dictionaries(
        {
            "factor": st.sampled_from([8.0, 32.0, 4.0]),
            "low_freq_factor": st.just(1.0),
            "high_freq_factor": st.sampled_from([2.0, 4.0, 8.0]),
            "original_max_position_embeddings": st.sampled_from([4096, 8192, 10000]),
        }
    ),
    "by_parts": st.fixed_dictionaries(
        {
            "factor": st.sampled_from([2.0, 16.0, 40.0]),
            "original_max_position_embeddings": st.sampled_from([2048, 4096, 6000]),
        }
    ),
    "yarn_paper": st.fixed_dictionaries(
        {
            "factor": st.sampled_from([2.0, 16.0, 40.0]),
            "original_max_position_embeddings": st.sampled_from([2048, 4096, 6000]),
        }
    ),
    "yarn": st.fixed_dictionaries(
        {
            "factor": st.sampled_from([2.0, 16.0, 40.0]),
            "original_max_position_embeddings": st.sampled_from([2048, 4096, 32768]),
            "truncate": st.booleans(),
        }
    ),
    "proportional": st.fixed_dictionaries(
        {"partial_rotary_factor": st.sampled_from([0.25, 0.5, 0.75])}
    ),
    "monotone": st.fixed_dictionaries({"max_positions": st.sampled_from([1024, 4096, 5000])}),
    "longrope": st.just({}),
}


@st.composite
def rescalings(draw: Any) -> tuple[str, int, float, dict[str, Any]]:
    kind = draw(st.sampled_from(sorted(WIDE)))
    dim = draw(st.sampled_from([64, 96]))
    base = draw(st.sampled_from([1e4, 5e5, 1e6]))
    parameters = dict(draw(WIDE[kind]))
    if kind == "longrope":
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        one = sorted((rng.choice(np.arange(100, 3000), dim // 2, replace=False) / 100).tolist())
        parameters = {
            "short_factor": one, "long_factor": one, "original_max_position_embeddings": 4096,
            "factor": 1.0,
        }  # fmt: skip
    return kind, dim, base, parameters


@st.composite
def placed(draw: Any, width: int) -> tuple[int, list[tuple[int, int]], list[tuple[int, int]], str]:
    """Draw the width of a head, the pairs, where they are written, and the layout's name."""
    rest = draw(st.sampled_from([0, 0, 2, 16, 37]))
    start = draw(st.integers(0, rest))
    kind = draw(st.sampled_from(["interleaved", "half-split", "mixed", "permuted"]))
    if kind == "permuted":
        order = draw(st.permutations(range(width + rest)))[:width]
        pairs = [(order[2 * i], order[2 * i + 1]) for i in range(width // 2)]
        return width + rest, pairs, pairs, kind
    if kind == "mixed":
        read, written = layout_of("interleaved", width, start), layout_of("half", width, start)
        return width + rest, read, written, "read interleaved, written half-split"
    pairs = layout_of(kind, width, start)
    return width + rest, pairs, pairs, kind


@settings(max_examples=16, phases=QUICK)
@given(st.data())
def test_every_layout_direction_width_place_and_rescaling_is_recovered(data: Any) -> None:
    kind, dim, base, parameters = data.draw(rescalings())
    theta, factor = rescaled_frequencies(kind, dim, base, **parameters)
    turning = theta[theta > 0]
    head_dim, pairs, out, layout = data.draw(placed(2 * len(turning)))
    direction = data.draw(st.sampled_from([1, -1]))
    if kind == "proportional":  # its width is told by the head alone
        head_dim = max(head_dim, dim)
        assume(head_dim == dim)
    report = identify(turner(pairs, direction * turning, factor, out), head_dim)

    assert report.is_rotation
    assert report.width == 2 * len(turning)
    assert report.attention_factor == pytest.approx(factor, rel=1e-12)
    wanted = {
        (min(p), max(p)): (speed if p[0] < p[1] else -speed, o)
        for p, o, speed in zip(pairs, out, direction * turning, strict=True)
    }
    assert report.pairs == tuple(sorted(wanted))
    signed = report.inv_freq * (report.direction or 1)
    speeds = np.array([wanted[pair][0] for pair in report.pairs])
    assert np.abs(signed / speeds - 1).max() < 1e-9
    assert (np.abs(signed - speeds) <= report.inv_freq_error + 1e-15).all()
    if layout != "permuted":
        assert report.layout == layout
        assert report.direction == direction
        assert report.written == tuple(wanted[pair][1] for pair in report.pairs)
        low, high = min(map(min, pairs)), max(map(max, pairs))
        place = {(0, head_dim - 1): "all"}.get((low, high)) or (
            "first" if low == 0 else "last" if high == head_dim - 1 else "elsewhere"
        )
        assert report.place == place
    assert report.deviation is not None
    assert report.deviation < 1e-9
    assert not [f for f in report.findings if f.gravity == 3], report
    if layout != "permuted":
        check_named(report, kind, base, parameters)


@settings(max_examples=30, phases=QUICK)
@given(
    width=st.sampled_from([4, 6, 8, 16, 64, 128]),
    power=st.floats(0.001, 20.0),
    positions=st.integers(4, 17),
    layout=st.sampled_from(["interleaved", "half-split"]),
    wide=st.booleans(),
)
def test_a_base_is_recovered_where_the_slowest_pair_can_be_measured(
    width: int, power: float, positions: int, layout: str, wide: bool
) -> None:
    base, dtype = float(f"{10**power:.3g}"), np.float64 if wide else np.float32
    flag = layout == "interleaved"
    report = identify(
        lambda x, at: rotate_complex(x, at, base=base, interleaved=flag).astype(dtype),
        width, positions=2**positions, dtype=dtype,
    )  # fmt: skip
    assert (report.width, report.direction, report.layout) == (width, 1, layout)
    theta = base ** (-2.0 * np.arange(width // 2) / width)
    assert len(report.inv_freq) == len(theta)
    if (report.inv_freq_error <= 1e-4 * theta).all():
        assert report.base == pytest.approx(base, rel=1e-3), str(report)


def check_named(report: Report, kind: str, base: float, parameters: dict[str, Any]) -> None:
    """The formula is among those given, and the plainest is either it or the same numbers."""
    same = [e for e in report.explanations if e.kind == kind]
    if kind == "dynamic":  # at one length, nobody can tell it from a fixed stretch
        same = [e for e in report.explanations if e.kind == "ntk"]
        grown = parameters["seq_len"] / parameters["max_position_embeddings"] - 1
        parameters = {"factor": parameters["factor"] * grown + 1}
    assert same, str(report)
    assert any(
        e.base == base and all(e.parameters.get(k, True) == v for k, v in parameters.items())
        for e in same
    ), str(report)
    for explanation in report.explanations:
        assert np.allclose(np.sort(explanation.inv_freq()), np.sort(report.inv_freq), rtol=1e-9)


TRAINED = {"original_max_position_embeddings": 4096}
NAMED = {
    "default": {},
    "linear": {"factor": 2.5},
    "ntk": {"factor": 1.5},
    "dynamic": {"factor": 2.0, "max_position_embeddings": 4096, "seq_len": 16384},
    "llama3": {"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **TRAINED},
    "by_parts": {"factor": 16.0, **TRAINED},
    "yarn_paper": {"factor": 16.0, **TRAINED},
    "yarn": {"factor": 16.0, "truncate": False, **TRAINED},
    "proportional": {"partial_rotary_factor": 0.25},
    "monotone": {"max_positions": 5000},
}


@pytest.mark.parametrize("kind", NAMED)
def test_every_rescaling_is_named_with_its_parameters(kind: str) -> None:
    theta, factor = rescaled_frequencies(kind, 64, 5e5, **NAMED[kind])
    turning = theta[theta > 0]
    pairs = layout_of("interleaved", 2 * len(turning))
    check_named(identify(turner(pairs, turning, factor), 64), kind, 5e5, NAMED[kind])


@settings(max_examples=15, phases=QUICK)
@given(
    base=st.floats(1.5, 1e8),
    half=st.integers(2, 40),
    layout=st.sampled_from(["interleaved", "half-split"]),
)
def test_any_base_and_width_are_recovered(base: float, half: int, layout: str) -> None:
    theta = base ** (-np.arange(half) / half)
    report = identify(turner(layout_of(layout, 2 * half), theta), 2 * half)
    assert np.abs(report.inv_freq / theta - 1).max() < 1e-9
    named = [e for e in report.explanations if e.kind == "default"]
    assert [e.base for e in named] == [pytest.approx(base, rel=1e-6)]


def test_frequencies_that_no_formula_gives_are_called_so() -> None:
    theta = np.sort(np.random.default_rng(0).uniform(1e-4, 1, 32))[::-1]
    report = identify(turner(layout_of("half", 64), theta), 64)
    assert report.base is report.rescaling is None
    assert report.explanations == ()
    assert "No formula that I know" in report.findings[0].words
    assert np.abs(report.inv_freq / theta - 1).max() < 1e-9


def test_a_series_in_each_block_is_one_series() -> None:
    theta = 1e4 ** (-np.arange(4) / 4)
    pairs = layout_of("half", 8) + layout_of("half", 8, 8)
    report = identify(turner(pairs, np.concatenate((theta, theta))), 16)
    assert report.layout == "half-split in 2 blocks"
    assert (report.base, report.explanations[0].dim, report.findings) == (1e4, 8, ())


@pytest.mark.parametrize(("kind", "parameters"), [("default", {}), ("linear", {"factor": 4.0})])
def test_a_series_of_which_every_speed_occurs_twice_is_told(
    kind: str, parameters: dict[str, float]
) -> None:
    speeds = np.repeat(rescaled_frequencies(kind, 8, 1e4, **parameters)[0], 2)
    report = identify(turner(layout_of("half-split", 16), speeds), 16)
    assert [len(report.inv_freq), len(report.explanations[0].inv_freq())] == [8, 4]
    (finding,) = report.findings
    assert finding.gravity == 2
    assert "Each speed occurs 2 times: the 8 pairs turn at 4 speeds only" in finding.words
    assert f"{kind} over 8 channels: base 10000" in finding.words


def test_two_frequencies_have_no_far_fetched_formula() -> None:
    report = identify(turner(layout_of("half", 4), [1.0, 0.009]), 4)
    assert [e.kind for e in report.explanations] == ["default"]


def test_a_pair_slower_than_rounding_is_seen() -> None:
    """The last pair turns by 1e-15 rad in all: exact zeros elsewhere tell that it does."""
    report = identify(turner(layout_of("half", 4), [1.0, 1e-20]), 4)
    assert (report.width, report.pairs) == (4, ((0, 2), (1, 3)))


def test_two_positions_are_enough_for_a_base() -> None:
    assert identify(rotate_complex, 8, positions=2).base == 1e4

    def of_two_rows(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return rotate_complex(x, np.arange(2)[at])

    report = identify(of_two_rows, 8)
    assert (report.table_end, report.base) == (1, 1e4)


def test_rounding_between_channels_joins_no_pairs() -> None:
    """Multiplied by a matrix and its inverse, every channel leaves 1e-16 in every other."""
    report = identify(lambda x, at: rotate_complex(x @ MIX @ MIX.T, at), 8, positions=512)
    assert (report.layout, report.base, report.is_rotation) == ("half-split", 1e4, True)


def test_a_permutation_has_no_name_and_a_place_may_be_in_the_middle() -> None:
    theta = rescaled_frequencies("default", 8)[0]
    shuffled = identify(turner([(0, 5), (1, 3), (2, 7), (4, 6)], theta), 8)
    assert (shuffled.layout, shuffled.place) == (None, "all")
    places = [report_of(start=start).place for start in (0, 2, 4)]
    assert places == ["first", "elsewhere", "last"]


@settings(max_examples=10, phases=QUICK)
@given(st.data())
def test_several_axes_give_wave_vectors(data: Any) -> None:
    axes, n = data.draw(st.integers(2, 3)), data.draw(st.integers(2, 12))
    waves = data.draw(
        st.lists(
            st.lists(st.floats(0.01, 0.9), min_size=axes, max_size=axes), min_size=n, max_size=n
        )
    )
    sizes = data.draw(st.lists(st.integers(5, 300), min_size=axes, max_size=axes))
    report = identify(turner(layout_of("half", 2 * n), waves), 2 * n, positions=tuple(sizes))
    assert report.is_rotation
    assert report.axes == axes
    assert np.abs(report.inv_freq - waves).max() < 1e-9
    assert report.deviation < 1e-9
    assert np.allclose(report.wavelengths, 2 * np.pi / np.linalg.norm(waves, axis=1))


def test_axes_that_do_not_commute_break_the_promise() -> None:
    """Rows turn in one plane, columns in another that shares a channel."""

    def rotate(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        first = turner([(0, 1), (2, 3)], [[0.7, 0.0], [0.3, 0.0]])(x, positions)
        return turner([(1, 2)], [[0.0, 0.5]])(first, positions)

    report = identify(rotate, 4, positions=(8, 8))
    assert not report.is_rotation
    assert report.deviation > 0.1
    assert "channels mix in groups of [4]; lengths are kept" in report.findings[0].words


def test_a_series_dealt_out_to_axes_is_one_series() -> None:
    theta = 1e6 ** (-np.arange(12) / 12)
    waves = np.zeros((12, 3))
    waves[np.arange(12), np.arange(12) % 3] = theta
    report = identify(turner(layout_of("half", 24), waves), 24, positions=(4096,) * 3)
    assert report.base == 1e6
    assert report.rescaling is None


def test_whole_turns_that_positions_cannot_know_are_told() -> None:
    """A picture measured in pixels: 16 speeds for each axis, evenly spaced up to 11 rad."""
    speeds = np.linspace(1, 112, 16) * np.pi * 2 / 63
    waves = np.concatenate([np.outer(speeds, axis) for axis in np.eye(2)])
    report = identify(turner(layout_of("interleaved", 64), waves), 64, positions=(64, 64))
    assert report.direction is report.base is None
    turns = (waves - report.inv_freq) / (2 * np.pi)
    assert np.allclose(turns, turns.round(), atol=1e-9)
    assert turns.round().max() == 2
    words = "evenly spaced, by 0.738 rad from pair to pair and over 11.07 rad in all"
    assert words in report.findings[0].words


def test_wave_vectors_in_directions_of_their_own_have_no_sense_of_turning() -> None:
    waves = np.random.default_rng(0).uniform(-0.9, 0.9, (8, 2))
    report = identify(turner(layout_of("half", 16), waves), 16, positions=(64, 64))
    assert np.abs(report.inv_freq - waves).max() < 1e-9
    assert report.direction is None
    assert any("wave vectors of their own" in f.words for f in report.findings)


# ---- precision and tables ----------------------------------------------------------------------


def in_type(dtype: torch.dtype, where: str) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Turn 64 channels with the positions, frequencies or tables rounded to a type."""

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        theta = torch.tensor(10000.0 ** (-np.arange(32) / 32))
        at = at.to(dtype).double() if where == "positions" else at.double()
        theta = theta.to(dtype).double() if where == "inv_freq" else theta
        cos, sin = (at[:, None] * theta).cos(), (at[:, None] * theta).sin()
        if where == "table":
            cos, sin = cos.to(dtype).double(), sin.to(dtype).double()
        a, b = x.double().chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)

    return rotate


@pytest.mark.parametrize(
    ("dtype", "shared"), [(torch.bfloat16, 257), (torch.float16, 2049), (torch.float32, None)]
)
def test_the_first_position_that_is_lost(dtype: torch.dtype, shared: int | None) -> None:
    report = identify(in_type(dtype, "positions"), 64, positions=2**15, dtype=torch.float32)
    assert report.shared_position == shared
    assert bool(report.findings) == (shared is not None)


def rotate_in_float32(speeds: np.ndarray, layout: str) -> Rotate:
    """Turn pairs by cos and sin of a product, all of it in float32."""
    a, b = np.array(layout_of(layout, 2 * len(speeds))).T

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        angle = at[:, None].astype(np.float32) * speeds.astype(np.float32)
        c, s, y = np.cos(angle), np.sin(angle), x.copy()
        y[..., a], y[..., b] = x[..., a] * c - x[..., b] * s, x[..., b] * c + x[..., a] * s
        return y

    return rotate


@pytest.mark.parametrize(
    ("dim", "base", "layout", "positions"),
    [(32, 104400.0, "half-split", 2**20), (64, 14121400.0, "interleaved", 2**17)],
)
def test_a_product_made_in_float32_is_no_wrong_position(
    dim: int, base: float, layout: str, positions: int
) -> None:
    """Beside powers of two it may lose less than at the last position."""
    rotate = rotate_in_float32(base ** (-np.arange(0, dim, 2) / dim), layout)
    report = identify(rotate, dim, positions=positions)
    assert not [finding for finding in report.findings if finding.gravity > 1]
    last = positions - 1
    slipped = identify(lambda x, at: rotate(x, at - (at == last)), dim, positions=positions)
    assert slipped.table_end == last - 1


def test_no_base_is_fitted_to_what_float32_rounds() -> None:
    """One pair is known to eleven digits; the others, to fewer, would follow 500,000.012, too."""
    report = identify(rotate_in_float32(5e5 ** (-np.arange(4) / 4), "half-split"), 8)
    assert report.base == 5e5
    assert report.explanations[0].made_in == "float32"


@pytest.mark.parametrize(("dtype", "off"), [(torch.bfloat16, 2**-9), (torch.float16, 2**-11)])
def test_rounded_frequencies_are_found_and_the_base_is_still_known(
    dtype: torch.dtype, off: float
) -> None:
    report = identify(in_type(dtype, "inv_freq"), 64, dtype=torch.float32)
    exact = 10000.0 ** (-np.arange(32) / 32)
    rounded = torch.tensor(exact).to(dtype).double().numpy()
    assert np.abs(report.inv_freq / rounded - 1).max() < 1e-6
    assert np.abs(rounded / exact - 1).max() > off / 4
    assert report.base == 10000
    assert "inverse frequencies are rounded to 16 bits" in report.findings[0].words
    assert report.deviation < 1e-6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_rounded_table_is_found(dtype: torch.dtype) -> None:
    report = identify(in_type(dtype, "table"), 64, dtype=torch.float32)
    assert report.numbers == str(dtype).removeprefix("torch.")
    assert f"cos and sin are rounded to {report.numbers}" in report.findings[0].words
    assert report.base == 10000
    fine = identify(in_type(torch.float32, "table"), 64, dtype=torch.float64)
    assert (fine.numbers, fine.findings) == ("float32", ())


def test_angles_made_in_float32_lose_their_digits_far_out() -> None:
    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angle = at.float()[:, None] * torch.tensor(10000.0 ** (-np.arange(32) / 32)).float()
        cos, sin = angle.cos(), angle.sin()
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    report = identify(rotate, 64, positions=2**20, dtype=torch.float32)
    assert 3e-3 < report.angle_error < 2**20 * 2**-24
    assert report.angle_error_at == 3 * 2**18
    assert "as if the product were made in float32" in report.findings[0].words
    assert identify(rotate, 64, positions=512, dtype=torch.float32).findings == ()


def table_of(end: int) -> np.ndarray:
    return np.exp(1j * np.outer(np.arange(end), 10000.0 ** (-np.arange(4) / 4)))


@pytest.mark.parametrize(
    ("row", "past"),
    [
        (lambda at, end: at, "raises IndexError: index 1000 is out of bounds"),
        (lambda at, end: np.minimum(at, end - 1), "every position gets the rotation of the last"),
        (lambda at, end: at % end, "it starts again from position 0"),
    ],
)
@pytest.mark.parametrize("end", [1000, 1024, 1025])
def test_the_end_of_a_table(end: int, row: Any, past: str) -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        z = (x[..., :4] + 1j * x[..., 4:]) * table_of(end)[row(at, end)]
        return np.concatenate([z.real, z.imag], axis=-1)

    report = identify(rotate, 8, positions=5000)
    assert report.table_end == end - 1
    assert str(report.past_end).startswith(past.replace("1000", str(end)))
    assert report.base == 10000


def test_a_table_that_is_long_enough_has_no_end() -> None:
    assert identify(rotate_complex, 8).table_end is None


# ---- bugs, blind -------------------------------------------------------------------------------

BLIND = {
    None: (True, None),
    "inv_freq": (True, "inverse frequencies are rounded to 16 bits"),
    "halves": (False, "Not a rotation"),
    "table": (True, "cos and sin are rounded to bfloat16"),
    "positions": (True, "Position 257 shares its rotation with 256"),
    "cache_key": (True, "it remembers an answer"),
}


@pytest.mark.parametrize("key", BLIND)
def test_the_bugs_of_a_function_are_named_blind(key: str | None) -> None:
    bug = next((bug for bug in bugs.BUGS if bug.key == key), None)
    rope = bugs.mutant(bug).rotation.RotaryEmbedding(64, 4096)
    if key == "table":
        rope = rope.bfloat16().float()
    report = identify(lambda x, at: rope(x, position_ids=at[None]), 64, dtype=torch.float32)
    rotation, words = BLIND[key]
    assert report.is_rotation == rotation
    if words is None:
        assert report.findings == ()
    else:
        assert report.findings[0].gravity == 3
        assert words in report.findings[0].words


# ---- functions that are none -------------------------------------------------------------------


def fail(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    raise RuntimeError("no such\nkernel")


def in_place(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    y = rotate_complex(x, at)
    x[:] = y
    return y


def forgetful() -> Rotate:
    calls = iter(range(10**6))

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        if next(calls) > 2:
            raise MemoryError("enough")
        return rotate_complex(x, at)

    return rotate


def growing(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Rotate by a base that grows with the longest position of the call."""
    theta, _ = rescaled_frequencies(
        "dynamic", 8, factor=2.0, max_position_embeddings=64, seq_len=int(at.max()) + 1
    )
    return rotate_complex(x, at, inv_freq=theta)


def shifted(at: np.ndarray) -> np.ndarray:
    at += 1
    return at


def turned(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    return turner(layout_of("half", 8), 10000.0 ** (-np.arange(4) / 4))(x, at)


def signs(x: np.ndarray, at: np.ndarray, table: str) -> np.ndarray:
    """Apply ((p, q), (r, s)) with p to s among c, s and their opposites C, S to each pair."""
    angle = at[:, None] * 10000.0 ** (-np.arange(4) / 4)
    c, s = np.cos(angle), np.sin(angle)
    p, q, r, t = ({"c": c, "s": s, "C": -c, "S": -s}[name] for name in table)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate((p * a + q * b, r * a + t * b), axis=-1)


def unsigned(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    return signs(x, at, "cssc")


def exchanged(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    return signs(x, at, "sCcs")


def part(x: np.ndarray, at: np.ndarray, gain: Any) -> np.ndarray:
    return np.concatenate((rotate_complex(x[..., :4], at), x[..., 4:] * gain), axis=-1)


RNG = np.random.default_rng(0)
STRANGE = {
    "fails": (fail, "raises RuntimeError: no such kernel"),
    "leaves": (lambda x, at: sys.exit("gone"), "raises SystemExit: gone"),
    "another shape": (lambda x, at: x[..., :-1], "returns shape (8, 2, 7) where (8, 2, 8)"),
    "no array": (lambda x, at: (x, x), "returns tuple where ndarray"),
    "not finite": (lambda x, at: x / 0.0, "not finite"),
    "in place": (in_place, "writes into the x"),
    "random": (lambda x, at: x + 0.01 * RNG.normal(size=x.shape), "It is random"),
    "fails later": (forgetful(), "answers once and later raises MemoryError"),
    "nothing": (lambda x, at: x, "turns nothing"),
    "not linear": (lambda x, at: rotate_complex(np.abs(x), at), "not linear"),
    "grows": (growing, "depends on what else is in the call"),
    "zeros": (lambda x, at: 0.0 * x, "returns nothing but zeros"),
    "scaled": (lambda x, at: x * (1.0 + at[:, None]), "channels are scaled alone"),
    "longer": (
        lambda x, at: 1.001 ** at[:, None] * rotate_complex(x, at), "Lengths were seen to change",
    ),
    "counts from 1": (lambda x, at: rotate_complex(x, at + 1), "turned as position 1 should be"),
    "squares": (lambda x, at: rotate_complex(x, at**2 % 7919), "promise is broken"),
    "positions in place": (lambda x, at: rotate_complex(x, shifted(at)), "into the positions"),
    "another type": (lambda x, at: rotate_complex(x, at).astype(np.float32), "returns float32"),
    "complex": (lambda x, at: x + 0j, "returns complex128 where float64"),
    "adds": (lambda x, at: rotate_complex(x, at) + 0.1, "adds a vector of its own: zeros come out"),
    "absolute": (lambda x, at: x + 0.1 * at[:, None], "turns nothing"),
    "neighbours": (lambda x, at: x + 0.1 * np.roll(x, 1, -2), "vectors at other positions"),
    "place": (lambda x, at: rotate_complex(x, np.arange(len(at))), "place in the call"),
    "sorts": (lambda x, at: rotate_complex(x, np.sort(at)), "Asked in another order, positions"),
    "smallest": (lambda x, at: rotate_complex(x, at - at.min()), "Asked one after another, pos"),
    "halves positions": (lambda x, at: rotate_complex(x, at // 2), "Position 1 shares"),
    "groups": (lambda x, at: rotate_complex(x, at // 8), "turned by 0 rad at 4 and by 1 at 8"),
    "a row early": (lambda x, at: rotate_complex(x, (at - 1) % 4096), "Position 0 is not turned"),
    "logarithm": (lambda x, at: turned(x, np.log1p(at)), "do not grow in proportion"),
    "one slip": (lambda x, at: rotate_complex(x, np.where(at == 77, 3, at)), "1 of the positions"),
    "window": (
        lambda x, at: rotate_complex(x, np.where(at < 99, at, 99 + at // 4)),
        "its frequencies to position 98 only",
    ),
    "a row twice": (
        lambda x, at: rotate_complex(x, at - (at > 98)),
        "position 98 without a word: after it, each position gets the rotation that the one before",
    ),
    "forgets": (
        lambda x, at: rotate_complex(x, np.where(at < 99, at, 0)),
        "every position gets the rotation of position 0",
    ),
    "zeros later": (
        lambda x, at: rotate_complex(x, at) * (at < 99)[:, None],
        "ends at position 98 without a word: after it, it returns nothing but zeros",
    ),
    "not finite later": (
        lambda x, at: np.where((at < 99)[:, None], rotate_complex(x, at), np.nan),
        "after it, it returns numbers that are not finite",
    ),
    "gain before": (lambda x, at: rotate_complex(x * GAIN, at), "before the turn: the"),
    "gain after": (lambda x, at: rotate_complex(x, at) * GAIN, "after the turn: the"),
    "pairs of gains": (lambda x, at: rotate_complex(x, at) * np.tile(GAIN[:4], 2), "Pairs carry"),
    "decays": (
        lambda x, at: rotate_complex(x, at) * np.tile(0.5 + GAIN[:4] / 2, 2) ** (at[:, None] / 512),
        "in each pair by its own factor",
    ),
    "a minus": (lambda x, at: unsigned(x, at), "a minus is missing"),
    "quarter turn": (lambda x, at: exchanged(x, at), "as where cos and sin are exchanged"),
    "mirrored": (lambda x, at: rotate_complex(x, at)[..., SWAP], "4 of 4 pairs are mirrored"),
    "grows from 0": (
        lambda x, at: part(x, at, 1.0) * np.where(np.arange(8) < 4, at[:, None], 1),
        "Lengths were seen to change with the position alone",
    ),
    "rest lost": (lambda x, at: part(x, at, 0.0), "4 channels that do not turn are lost"),
    "rest uneven": (lambda x, at: part(x, at, GAIN[4:]), "channels that do not turn are not left"),
    "rest elsewhere": (lambda x, at: part(x[..., [0, 1, 2, 3, 5, 4, 7, 6]], at, 1.0), "come out"),
    "upside down": (
        lambda x, at: rotate_complex(x, at, inv_freq=np.array([0.001, 0.01, 0.1, 1.0])),
        "Speeds do not fall from pair to pair: (0, 4) turns by 0.001",
    ),
    "an odd pair": (
        lambda x, at: rotate_complex(x, at, inv_freq=np.array([1.0, 0.1, 0.01002, 0.001])),
        "base 10000 but for 1 of 4 pairs: (2, 6) turns by 0.01002 a position instead of 0.01.",
    ),
    "a chain": (
        lambda x, at: np.cos(at)[:, None] * x + np.sin(at)[:, None] * np.roll(x, 1, -1),
        "channels mix in groups of [8]; lengths",
    ),
    "mixes all": (
        lambda x, at: rotate_complex(x @ MIX, at) @ MIX.T, "channels mix in groups of [8]; lengths"
    ),
}  # fmt: skip
GAIN = np.array([0.5, 0.6, 0.7, 0.8, 1.1, 1.2, 1.3, 1.4])
SWAP = [4, 5, 6, 7, 0, 1, 2, 3]
MIX = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))[0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_function_gets_a_finding_and_no_traceback(name: str) -> None:
    rotate, words = STRANGE[name]
    report = identify(rotate, 8, positions=512, dtype=np.float64)
    assert any(words in finding.words for finding in report.findings), str(report)
    assert str(report)
    assert report._repr_html_()
    assert Report.from_json(report.to_json()).to_json() == report.to_json()


def test_pairs_with_factors_of_their_own_have_no_one_factor() -> None:
    assert identify(STRANGE["pairs of gains"][0], 8, positions=512).attention_factor is None
    assert identify(STRANGE["longer"][0], 8, positions=512).attention_factor == 1


def test_what_is_added_is_set_apart_from_what_turns() -> None:
    report = identify(STRANGE["adds"][0], 8, positions=512)
    assert (report.base, report.is_rotation, len(report.findings)) == (1e4, True, 1)


def test_a_kept_promise_has_no_finding_and_a_broken_one_says_where() -> None:
    assert identify(rotate_complex, 8).findings == ()
    report = identify(STRANGE["squares"][0], 8, positions=512)
    assert report.deviation_at is not None
    m, n, s = (at[0] for at in report.deviation_at)
    rotate = STRANGE["squares"][0]
    eye = np.eye(8)[:, None].repeat(4, 1)
    a, b, c, d = rotate(eye, np.array([m, n, m + s, n + s])).transpose(1, 2, 0)
    assert np.linalg.norm(a.T @ b - c.T @ d, 2) == pytest.approx(report.deviation)


def test_one_pair_of_four_breaks_the_promise_whatever_the_factor() -> None:
    def rotate(x: np.ndarray, at: np.ndarray, factor: float = 1.0) -> np.ndarray:
        y = rotate_complex(x, at)
        y[..., [3, 7]] = turner([(3, 7)], [[0.3]])(x, at**2 % 17)[..., [3, 7]]
        return factor * y

    one, two = (identify(lambda x, at, f=f: rotate(x, at, f), 8, positions=64) for f in (1, 2))
    assert one.deviation == pytest.approx(two.deviation)
    assert 1 < one.deviation <= 2
    assert (one.attention_factor, two.attention_factor) == pytest.approx((1, 2))
    assert [finding.gravity for finding in two.findings] == [3, 3, 1]  # the gravest first


def test_numpy_and_torch_are_told_apart_without_being_asked() -> None:
    def tensors_only(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return in_type(torch.float32, "table")(x.contiguous(), at)

    assert identify(tensors_only, 64).asked.startswith("torch float64")
    assert identify(rotate_complex, 64).asked.startswith("NumPy float64")


SPEEDS = 10000.0 ** (-np.arange(4) / 4)


def keeping() -> Rotate:
    """Rotate by a base that grows with the longest position of all calls, and never shrinks."""
    seen = [0]

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        seen.append(max(seen.pop(), int(at.max()) + 1))
        theta = (1e4 * max(1.0, seen[0] / 64) ** (4 / 3)) ** (-np.arange(4) / 4)
        return rotate_complex(x, at, inv_freq=theta)

    return rotate


def test_what_was_answered_first_is_asked_again() -> None:
    """Nothing but the first call tells: all later ones agree."""
    calls = iter([True])
    first = identify(lambda x, at: x if next(calls, False) else rotate_complex(x, at), 8)
    for report in (identify(keeping(), 8, positions=512, dtype=np.float64), first):
        assert report.findings[0].gravity == 3
        assert report.findings[0].words.startswith("It remembers: what it was asked first")


def test_a_base_that_a_short_call_sets_back_is_remembered_and_not_random() -> None:
    """As in transformers' dynamic NTK: a base grows with a long call, and a short one resets it."""
    kept = {"length": 64}

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        length = int(at.max()) + 1
        kept["length"] = 64 if length < 64 else max(kept["length"], length)
        theta, _ = rescaled_frequencies(
            "dynamic", 8, 1e4, factor=3.0, max_position_embeddings=64, seq_len=kept["length"]
        )
        return rotate_complex(x, at, inv_freq=theta)

    report = identify(rotate, 8, positions=1000)
    grave, look = report.findings
    assert (grave.gravity, look.gravity) == (3, 2)
    assert grave.words.startswith("It remembers: after other calls the same call is answered oth")
    assert "depends on what else is in the call" in look.words
    theta, _ = rescaled_frequencies(
        "dynamic", 8, 1e4, factor=3.0, max_position_embeddings=64, seq_len=1000
    )
    assert report.inv_freq == pytest.approx(theta, rel=1e-9)


def slow_turns(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    return rotate_complex(x, at, inv_freq=1e-5 * SPEEDS)


@pytest.mark.parametrize(
    ("row", "end", "past"),
    [
        (lambda at: np.minimum(at, 777), 777, "every position gets the rotation of the last"),
        (lambda at: at % 5000, 4999, "it starts again from position 0"),
    ],
)
def test_the_end_of_a_table_of_small_angles(row: Any, end: int, past: str) -> None:
    """Less than a tenth of a radian in all: no angle is off by as much as a wrong one usually."""
    report = identify(lambda x, at: slow_turns(x, row(at)), 8)
    assert (report.table_end, report.past_end) == (end, past)
    assert np.abs(report.inv_freq / (1e-5 * SPEEDS) - 1).max() < 1e-6
    assert identify(slow_turns, 8).findings == ()


def test_one_slow_pair_that_stops_is_seen() -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        y = rotate_complex(x, at, inv_freq=np.array([1.0, 0.1, 0.01, 1e-6]))
        y[..., [3, 7]] = turner([(3, 7)], [[1e-6]])(x, np.minimum(at, 20000))[..., [3, 7]]
        return y

    report = identify(rotate, 8)
    assert report.table_end == 20000
    assert report.past_end == "angles no longer follow them"
    assert report.inv_freq == pytest.approx([1.0, 0.1, 0.01, 1e-6])


def of_16_bits(base: float, dim: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    theta = (base ** (-torch.arange(0, dim, 2) / dim)).bfloat16().float()

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angle = at[:, None] * theta
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

    return rotate


@pytest.mark.parametrize(
    ("base", "dim", "named"), [(5e5, 64, 5e5), (1e5, 128, 1e5), (1e7, 64, 1e7), (77777.0, 64, None)]
)
def test_frequencies_of_16_bits_tell_known_bases_and_no_others(
    base: float, dim: int, named: float | None
) -> None:
    report = identify(of_16_bits(base, dim), dim, dtype=torch.bfloat16)
    assert (report.base, report.rescaling) == (named, None)


def coarse_table(speeds: np.ndarray, dtype: torch.dtype, factor: float = 1.0) -> Rotate:
    """Rotate by angles made in float32 and a table of 16 bits, in float64."""
    theta = torch.tensor(speeds, dtype=torch.float32)

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        angle = torch.from_numpy(at).float()[:, None] * theta
        c, s = ((factor * f(angle).to(dtype).double()).numpy() for f in (torch.cos, torch.sin))
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate((a * c - b * s, a * s + b * c), axis=-1)

    return rotate


@pytest.mark.parametrize(
    ("dtype", "dim", "base", "factor", "positions"),
    [
        (torch.bfloat16, 128, 5e5, 1.0, 2048),
        (torch.bfloat16, 64, 5e5, 1.0, 1024),
        (torch.bfloat16, 128, 1e6, 1.0, 4096),
        (torch.float16, 128, 5e5, 1.0, 1024),
        (torch.float16, 64, 1e6, 1.0, 64),
        (torch.float16, 32, 1e4, 2.0, 64),
        (torch.bfloat16, 16, 1e6, 1.0, 32),
        (torch.bfloat16, 64, 5e5, 4.0, 64),
        (torch.bfloat16, 128, 1e6, 1.0, 64),
    ],
)
def test_pairs_that_rounding_hides_do_not_stand_still(
    dtype: torch.dtype, dim: int, base: float, factor: float, positions: int
) -> None:
    """Their speeds come out as 0, give or take an error: a plain series is no proportional one."""
    speeds = base ** (-np.arange(0, dim, 2) / dim) / factor
    report = identify(coarse_table(speeds, dtype), dim, positions=positions)
    assert report.base == base
    assert report.rescaling == (("linear", {"factor": factor}) if factor > 1 else None)
    assert [finding.chapter for finding in report.findings] == ["precision"]


@pytest.mark.parametrize(("factor", "positions"), [(16.0, 1024), (12.0, 1024), (24.0, 4096)])
def test_yarn_s_factor_is_the_one_that_cos_and_sin_tell(factor: float, positions: int) -> None:
    """Slow pairs alone do not tell 16 from 20 in float16; the factor on cos and sin does."""
    parameters = {"factor": factor, "original_max_position_embeddings": 32768}
    theta, scale = rescaled_frequencies("yarn", 64, 1e4, **parameters)
    report = identify(coarse_table(theta, torch.float16, scale), 64, positions=positions)
    assert (report.base, report.rescaling) == (1e4, ("yarn", parameters))


@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize(
    ("fast", "slow", "truncate"),
    [
        (32.0, 2.0, True), (32.0, 4.0, True), (16.0, 4.0, True), (64.0, 4.0, True),
        (16.0, 1.0, True), (32.0, 2.0, False), (20.0, 4.0, False),
    ],
)  # fmt: skip
def test_yarn_between_other_knees_is_named(
    dim: int, fast: float, slow: float, truncate: bool
) -> None:
    """Length over turns is all that counts: what was built is one of several that are equal."""
    parameters: dict[str, Any] = {"factor": 16.0, "original_max_position_embeddings": 4096}
    parameters |= {} if fast == 32.0 else {"beta_fast": fast}
    parameters |= {} if slow == 1.0 else {"beta_slow": slow}
    parameters |= {} if truncate else {"truncate": False}
    theta, scale = rescaled_frequencies("yarn", dim, 1e4, **parameters)
    report = identify(turner(layout_of("half-split", dim), theta, scale), dim)
    assert parameters in [one.parameters for one in report.explanations]
    assert {one.kind for one in report.explanations} == {"yarn"}
    assert report.findings[0].words.startswith("cos and sin carry a factor")


def test_a_factor_known_to_few_digits_is_a_power_of_two_first() -> None:
    parameters = {
        "factor": 16.0, "original_max_position_embeddings": 4096,
        "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    }  # fmt: skip
    theta, _ = rescaled_frequencies("llama3", 16, 1e4, **parameters)
    report = identify(coarse_table(theta, torch.float16), 16, positions=256)
    best = report.explanations[0]
    assert (best.kind, best.parameters) == ("llama3", parameters)
    assert report.rescaling is None  # other factors fit the slow pairs
    assert "hides the speeds of slow pairs" in str(report)


def test_pairs_known_to_few_digits_are_not_compared() -> None:
    """In bfloat16, asked to position 511, the slowest hands have hardly left where they began."""
    dtype = torch.bfloat16
    one = identify(of_16_bits(5e5, 128), 128, positions=512, dtype=dtype)
    difference = one.differs_from(one)
    assert difference.convert is None
    assert "pairs turn too slowly to be compared" in difference.words[-1]


def test_an_almost_known_series_is_not_one_of_16_bits() -> None:
    noise = 1.0 + 2e-5 * np.array([1, -1, 1, -1])
    report = identify(lambda x, at: rotate_complex(x, at, inv_freq=SPEEDS * noise), 8)
    assert not [f for f in report.findings if f.gravity == 3]
    assert "are near those of default over 8 channels: base 10000" in report.findings[0].words


def test_a_series_that_every_pair_follows_has_no_odd_ones() -> None:
    report = identify(in_type(torch.float32, "none"), 64, positions=32, dtype=torch.bfloat16)
    assert not [f for f in report.findings if "but for" in f.words]


def test_odd_pairs_are_those_of_the_base_that_most_pairs_follow() -> None:
    """A pair known to few digits follows nothing, and a base that all follow has no odd ones."""
    assert follows_but(1e6 ** (-np.arange(8) / 8), np.full(8, 5e-4)) is None
    assert follows_but(5e5 ** (-np.arange(32) / 32) / 4, np.full(32, 2e-4)) is None
    speeds = 6e5 ** (-np.arange(8) / 8)
    speeds[3] *= 1.1
    base, off = follows_but(speeds, 3e-3 * speeds) or (None, None)
    assert base == 6e5
    assert np.flatnonzero(off).tolist() == [3]


def test_halves_tell_the_width_of_the_series() -> None:
    """Eight pairs of which each reaches over 16 channels: half of a series over 32."""
    pairs = [(i, i + 16) for i in range(8)]
    report = identify(turner(pairs, 10000.0 ** (-np.arange(8) / 16)), 32)
    assert (report.base, report.explanations[0].kind) == (1e4, "proportional")
    assert report.explanations[0].parameters == {"partial_rotary_factor": 0.5}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("count", [1, 3, 8, 16])
def test_the_others_are_described_where_the_first_positions_are_out(
    count: int, dtype: torch.dtype
) -> None:
    """A table of float32 that is read so many rows early, as left of padding: first its end."""
    theta = 1e4 ** (-torch.arange(32) / 32)
    angles = torch.arange(32_768).float()[:, None] * theta
    rotate = lambda x, at: by_angles(x, angles[at - count])  # noqa: E731
    report = identify(rotate, 64, positions=32_768, dtype=dtype)
    (gravest,) = (f for f in report.findings if f.gravity == 3)
    who = f"The first {count} positions are" if count > 1 else "Position 0 is"
    assert gravest.words.startswith(f"{who} not turned as those after need: the score of positions")
    assert report.asked.endswith(f"counted from {count}")
    assert (report.base, report.table_end) == (1e4, None)
    border, after = angles[0].double() - angles[-1].double(), theta.double()
    change = abs(torch.exp(1j * border) - torch.exp(1j * after)).max()
    told = float(re.search(r"changes by up to ([\d.]+) when", gravest.words)[1])
    assert told == pytest.approx(float(change), rel=0.05)
    off = np.abs(report.inv_freq - theta.numpy())
    assert (off <= report.inv_freq_error + 2.0**-24 * theta.numpy()).all()


@pytest.mark.parametrize(
    "at", [lambda at: at**2 % 7919, lambda at: np.where(at < 16, at, 16 + (at - 16) // 4)]
)
def test_what_never_gets_steady_has_no_false_start(at: Callable[[Any], Any]) -> None:
    assert "as those after need" not in str(identify(lambda x, p: rotate_complex(x, at(p)), 16))


def test_the_rotation_of_the_first_positions_may_be_that_of_one() -> None:
    report = identify(lambda x, at: rotate_complex(x, at.clip(1)), 16, positions=600)
    assert "Position 0 is not turned as those after need" in str(report)
    assert report.base == 1e4


FAULTY = {
    "adds": (lambda x, at: rotate_complex(x, at) + 1.0, 512),
    "starts again": (lambda x, at: rotate_complex(x, at % 7), 512),
    "one slip": (lambda x, at: rotate_complex(x, np.where(at == 77, 3, at)), 512),
    "smallest": (lambda x, at: rotate_complex(x, at - at[0]), 512),
    "by size": (lambda x, at: rotate_complex(x, at) * (1 + (x**2).sum(-1, keepdims=True)), 512),
    "places rounded": (lambda x, at: rotate_complex(x, at // 257 * 256 + at % 257), 512),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_repeated_where_it_is_compared(name: str) -> None:
    rotate, size = FAULTY[name]
    faulty, plain = identify(rotate, 8, positions=size), identify(rotate_complex, 8)
    for difference, which in (
        (faulty.differs_from(plain), "first"), (plain.differs_from(faulty), "second")
    ):  # fmt: skip
        assert difference.convert is None
        assert any(
            words.startswith(f"The {which}") and not words.startswith("They")
            for words in difference.words
        )


def test_rounding_is_repeated_and_still_converted() -> None:
    rounded = identify(in_type(torch.bfloat16, "inv_freq"), 64, dtype=torch.float32)
    difference = rounded.differs_from(rounded)
    assert difference.words[0].startswith("Both: The inverse frequencies are rounded to 16 bits")
    assert difference.convert is not None


def test_lost_channels_lose_lengths() -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return rotate_complex(x, at) * (np.arange(8) < 4)

    report = identify(rotate, 8, positions=512)
    assert report.singular_values is not None
    assert report.singular_values[0] == 0
    assert "lengths times 0 to 1." in report.findings[0].words


def test_mixing_that_keeps_the_promise_is_not_called_wrong() -> None:
    (finding,) = identify(STRANGE["mixes all"][0], 8, positions=512).findings
    assert finding.gravity == 2
    assert "lengths are kept, and so is the promise, to" in finding.words


def test_the_order_of_pairs_alone_is_no_layout_of_its_own() -> None:
    report = identify(lambda x, at: rotate_complex(x, at)[..., ::-1], 8, positions=512)
    assert report.layout == "half-split"
    assert any("pairs come out in other places" in f.words for f in report.findings)


def test_small_gains_are_gains_and_small_decays_no_wrong_positions() -> None:
    gains = 1.0 + 0.004 * np.cos(np.arange(8))
    report = identify(lambda x, at: rotate_complex(x * gains, at), 8, positions=512)
    assert report.findings[0].words.startswith("Channels carry gains")
    report = identify(lambda x, at: 1.0005 ** at[:, None] * rotate_complex(x, at), 8, positions=512)
    assert not [f for f in report.findings if "of the positions below" in f.words]
    assert "unless keys get the inverse factor" in report.findings[0].words


def test_a_slow_decay_of_all_pairs_is_no_rounding() -> None:
    report = identify(lambda x, at: rotate_complex(x, at) * (1 - 7e-8 * at)[:, None], 8)
    said = report.findings[0].words
    assert said.startswith("Lengths were seen to change with the position alone")


@pytest.mark.parametrize("factor", [1.03, 1.1])
def test_a_small_factor_in_bfloat16_is_said(factor: float) -> None:
    report = identify(
        lambda x, at: (factor * in_type(torch.float32, "none")(x.double(), at)).to(x.dtype),
        64, dtype=torch.bfloat16,
    )  # fmt: skip
    assert any("cos and sin carry a factor of" in f.words for f in report.findings)


@pytest.mark.parametrize("start", [4, -5, 100])
def test_where_it_counts_from_is_known_beyond_a_turn(start: int) -> None:
    (finding,) = identify(lambda x, at: rotate_complex(x, at + start), 8).findings
    assert f"turned as position {start} should be" in finding.words


def test_a_turn_at_the_origin_is_seen_along_any_axis() -> None:
    waves = np.array([[0.0, 1.0], [0.5, 0.0], [0.0, 0.25], [0.1, 0.0]])
    rotate = turner(layout_of("half", 8), waves)
    report = identify(lambda x, at: rotate(x, at + np.array([3, 5])), 8, positions=(100, 100))
    assert any("Position 0 is turned already" in f.words for f in report.findings)


def test_channels_at_rest_do_not_make_pairs_wrong() -> None:
    gains = np.array([1.0, 1.0, 1.0, 0.5])
    (finding,) = identify(lambda x, at: part(x, at, gains), 8, positions=512).findings
    assert "channels that do not turn are not left alone" in finding.words
    assert finding.gravity == 2, "it is a gain"


@pytest.mark.parametrize(
    ("table", "factor", "numbers"),
    [
        (torch.float32, 1.2, "float32"),
        (torch.bfloat16, 1.3466, "bfloat16"),
        (torch.float16, 1.2, "float16"),
    ],
)
def test_a_factor_on_a_rounded_table_leaves_a_rotation(
    table: torch.dtype, factor: float, numbers: str
) -> None:
    rotate = in_type(table, "table")
    report = identify(lambda x, at: factor * rotate(x, at), 64, dtype=torch.float64)
    assert (report.is_rotation, report.numbers, report.base) == (True, numbers, 1e4)
    assert bool([f for f in report.findings if f.gravity == 3]) == (numbers != "float32")


def test_a_half_of_what_attention_divides_by_is_told_from_a_factor() -> None:
    report = identify(lambda x, at: 8**-0.25 * rotate_complex(x, at), 8, positions=512)
    assert "It is 1 times 8^(-1/4)" in report.findings[0].words


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("rotate", "words"),
    [
        (
            lambda x, at: torch.empty(x.shape, dtype=x.dtype, device="meta"),
            "cannot be read: NotImp",
        ),
        (lambda x, at: x.to_sparse(), "cannot be read: "),
        (lambda x, at: np.ma.array(x), "returns MaskedArray where ndarray was given"),
        (lambda x, at: 1e160 * rotate_complex(x, at), "returns numbers of size 1e+160"),
        (lambda x, at: 1e-320 * rotate_complex(x, at), "returns numbers of size 1e-320"),
        (
            lambda x, at: np.where(
                (at == 0)[:, None] & (np.arange(8) % 4 == 3), 0, rotate_complex(x, at)
            ),
            "Lengths were seen to change with the position, in each pair by its own factor",
        ),
    ],
)
def test_no_answer_makes_a_traceback(rotate: Any, words: str) -> None:
    report = identify(rotate, 8, positions=512)
    assert words in str(report)


def test_calls_that_may_be_short_only_are_made_short() -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        if len(at) > 100:
            raise MemoryError("too many")
        return rotate_complex(x, at)

    report = identify(rotate, 8, dtype=np.float64)
    assert (report.base, report.layout, report.is_rotation) == (1e4, "half-split", True)
    (finding,) = report.findings
    assert finding.gravity == 2
    assert finding.words.endswith("positions in one call, it raises MemoryError: too many.")


def test_a_hole_is_told_with_its_place() -> None:
    report = identify(lambda x, at: rotate_complex(x, at) * (at != 777)[:, None], 8)
    assert report.base == 1e4
    assert "returns nothing but zeros, asked for position 777" in report.findings[0].words


# ---- what is easily said falsely ---------------------------------------------------------------


def tables(
    x: np.ndarray, at: np.ndarray, cos: Any = np.float64, sin: Any = np.float64
) -> np.ndarray:
    """Turn by tables that were rounded, each by a function or to a type."""
    angle = np.outer(at, SPEEDS)
    c, s = (np.asarray(t).astype(float) for t in (cos(np.cos(angle)), sin(np.sin(angle))))
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate((a * c - b * s, a * s + b * c), axis=-1)


@pytest.mark.parametrize(
    "rotate",
    [
        lambda x, at: tables(x * 8**-0.25, at, np.float32, np.float32),
        lambda x, at: tables(x, at, sin=np.float32),
        lambda x, at: tables(tables(x, at, np.float32, np.float32), at, np.float32, np.float32),
    ],
)
def test_rounding_of_float32_anywhere_leaves_a_linear_rotation(rotate: Rotate) -> None:
    report = identify(rotate, 8, dtype=np.float64)
    assert report.is_rotation
    assert not [f for f in report.findings if f.gravity == 3]


def test_frequencies_of_float16_are_known_where_its_digits_run_out() -> None:
    theta = (5e5 ** (-np.arange(32) / 32)).astype(np.float16).astype(float)
    report = identify(turner(layout_of("half", 64), theta), 64)
    assert report.base == 5e5
    assert "inverse frequencies are rounded to 16 bits" in report.findings[0].words


def test_a_table_of_8_bits_is_found() -> None:
    def rounded(table: np.ndarray) -> np.ndarray:
        return torch.tensor(table).to(torch.float8_e4m3fn).double().numpy()

    for factor in (1.0, 1.3):
        report = identify(lambda x, at, f=factor: f * tables(x, at, rounded, rounded), 8)
        assert "cos and sin are rounded to 8 bits" in report.findings[0].words


@pytest.mark.parametrize("steps", [127, 1023, 32767])
@pytest.mark.parametrize("base", [1e4, 5e5])
def test_cos_and_sin_on_a_grid_still_tell_the_base(steps: int, base: float) -> None:
    """What rounds lengths rounds angles as much: small ones do not double exactly."""
    theta = base ** (-np.arange(8) / 8)

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        angle = np.outer(at, theta)
        c, s = (np.round(f(angle) * steps) / steps for f in (np.cos, np.sin))
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate((a * c - b * s, a * s + b * c), axis=-1)

    report = identify(rotate, 16)
    assert (report.base, report.rescaling) == (base, None)
    (finding,) = report.findings
    assert "as where cos and sin, or what comes out, are rounded coarsely" in finding.words
    assert (np.abs(report.inv_freq - theta) <= 4.0 * report.inv_freq_error).all()


def one_direction(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    angle = np.outer(at, SPEEDS)
    c, s, (a, b) = np.cos(angle), np.sin(angle), np.split(x, 2, axis=-1)
    return np.concatenate(((a + b) * c, (a + b) * s), axis=-1)


COUNT = iter(range(10**9))
UNLIKE = {
    "rows": (lambda x, at: np.stack([turned(y[None], at + n)[0] for n, y in enumerate(x)]), "row"),
    "their mean": (lambda x, at: turned(x - 0.1 * x.mean(0), at), "the row of the batch, or on th"),
    "first row": (lambda x, at: np.concatenate((x[:1], turned(x[1:], at))), "the row of the batch"),
    "some calls": (
        lambda x, at: turned(x, at) * (1.0 if next(COUNT) % 7 else 1.5),
        "It is random, or its calls leave something behind",
    ),
    "long calls": (
        lambda x, at: turned(x, at if len(at) < 512 else 2 * at), "it depends on how long the call"
    ),
    "rank one": (one_direction, "4 of 4 pairs lose a direction at every position"),
    "mirrored": (lambda x, at: signs(x, at, "cssC"), "4 of 4 pairs are mirrored as well as turned"),
    "whole turns": (
        lambda x, at: rotate_complex(x, at, inv_freq=np.full(4, 2 * np.pi)), "or whole turns, which"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNLIKE)
def test_what_is_unlike_a_rotation_has_its_own_words(name: str) -> None:
    rotate, words = UNLIKE[name]
    report = identify(rotate, 8, positions=2048, dtype=np.float64)
    assert any(words in finding.words for finding in report.findings), str(report)
    assert not any("not linear" in finding.words for finding in report.findings)


def test_a_ramp_that_rises_is_none_and_makes_no_traceback() -> None:
    speeds = 100.0 ** (-np.arange(3) / 3) * [1.0, 1.0, 1.01]
    for factor in (1.0, 0.25):
        report = identify(turner(layout_of("half", 6), factor * speeds), 8)
        assert np.abs(report.inv_freq / (factor * speeds) - 1).max() < 1e-9


def late(what: str) -> Rotate:
    """Do something else from position 1,500 on, or at some in between."""

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        y, after = part(x, at, 1.0), at >= 1500
        if what == "rest":
            y[:, after, 5] *= 1.03
        elif what == "lengths":
            y[:, after] *= 0.97
        elif what == "wrap":
            y = part(x, at % 70000, 1.0)
        elif what == "place":
            y[:, at == 6144] = x[:, at == 6144]
        elif what == "some":
            y[:, (at > 700) & (at < 710)] *= 1.05
        elif what in ("company", "both") and len(at) > 8 and at.min() >= 512:
            y[:, at != 1536] = part(x, at + 1, 1.0)[:, at != 1536]
        if what == "both":
            y[:, at == 6144] = x[:, at == 6144]
        return y

    return rotate


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("rest", "ends at position 1,499 without a word"),
        ("lengths", "1,499 without a word: after it, vectors come out with other lengths"),
        ("wrap", "69,999 without a word: after it, it starts again from position 0"),
        ("place", "at position 6,144 the angle is off by 1.4 rad"),
        ("some", "9 of the positions below 1,024 are not rotated"),
        ("company", "what else is in the call: 21 of 22 far positions, such as 512, get"),
        ("both", "at position 6,144 the angle is off by 1.4 rad"),
    ],
)
def test_what_begins_late_is_seen(what: str, words: str) -> None:
    size = 2048 if what in ("rest", "lengths") else 2**17
    assert identify(late("none"), 8, positions=size).findings == ()
    report = identify(late(what), 8, positions=size)
    assert words in report.findings[0].words


def test_a_slip_between_the_axes_is_seen() -> None:
    waves = np.array([[0.0, 1.0], [0.5, 0.0], [0.0, 0.25], [0.1, 0.0]])
    plain = turner(layout_of("half", 8), waves)
    rotate = lambda x, at: plain(x, at + (at > 44).all(axis=1, keepdims=True))  # noqa: E731
    assert (
        "points drawn between the axes" in identify(rotate, 8, positions=(64, 64)).findings[0].words
    )


def test_mixing_before_the_turn_is_no_slip_of_positions() -> None:
    report = identify(lambda x, at: turned(x + np.roll(x, 4, -1) * (np.arange(8) < 4), at), 8)
    assert not [f for f in report.findings if "of the positions below" in f.words]


def test_arrays_are_given_in_one_piece() -> None:
    """As views of complex numbers want them."""

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return (x.view(complex) * np.exp(1j * np.outer(at, SPEEDS))).view(float)

    report = identify(rotate, 8, positions=512)
    assert (report.layout, report.findings) == ("interleaved", ())


def test_an_answer_that_is_written_over_is_told() -> None:
    kept: dict[Any, np.ndarray] = {}

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        y = kept.setdefault(x.shape, np.empty_like(x))
        y[:] = rotate_complex(x, at)
        return y

    report = identify(rotate, 8, positions=512)
    assert "writes into the answer of an earlier call" in report.findings[0].words


def test_a_bound_on_large_numbers_is_not_linear() -> None:
    report = identify(lambda x, at: np.clip(rotate_complex(x, at), -30, 30), 8, positions=512)
    assert "It is not linear" in report.findings[0].words


def test_positions_remembered_from_the_call_before_are_told() -> None:
    last: dict[int, np.ndarray] = {}

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        before = last.get(len(at), at)
        last[len(at)] = at.copy()
        return rotate_complex(x, before)

    assert "it remembers an answer" in identify(rotate, 8, positions=512).findings[0].words


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("stride", [2, 3, 4])
def test_channels_left_out_between_make_no_wider_series(layout: str, stride: int) -> None:
    pairs = [(stride * a, stride * b) for a, b in layout_of(layout, 6)]
    theta = 1e4 ** (-np.arange(3) / 3)
    assert identify(turner(pairs, theta), 6 * stride).base == 1e4


def test_no_factor_is_beyond_all_contexts() -> None:
    for speeds in ([2 * np.pi] * 4, [1.0, 0.1, 1e-9, 1e-12]):
        assert identify(turner(layout_of("half", 8), speeds), 8).rescaling is None


def test_a_factor_of_rounding_is_not_said() -> None:
    assert identify(lambda x, at: (1 + 1e-9) * rotate_complex(x, at), 8).findings == ()


@pytest.mark.parametrize("axis", [0, 1])
def test_the_end_of_one_of_several_axes_is_told(axis: int) -> None:
    waves = np.array([[0.0, 1.0], [0.5, 0.0], [0.0, 0.25], [0.1, 0.0]])
    plain, ends = turner(layout_of("half", 8), waves), np.array([1000, 1000])
    ends[axis] = 50

    def silent(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return plain(x, np.minimum(at, ends))

    def loud(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        if (at > ends).any():
            raise IndexError("no such row")
        return plain(x, at)

    first, second = (identify(r, 8, positions=(100, 100)) for r in (silent, loud))
    assert first.table_end == second.table_end == 50
    assert f"the rotation of the last along axis {axis}" in first.findings[0].words
    assert str(second.past_end) == f"raises IndexError: no such row along axis {axis}"
    hole = identify(
        lambda x, at: plain(x, at) * (at[:, axis] != 77)[:, None], 8, positions=(100, 100)
    )
    assert (hole.width, hole.is_rotation) == (8, True)
    assert "Not every position is answered" in hole.findings[0].words
    both = identify(lambda x, at: plain(x, np.minimum(at, 50)), 8, positions=(100, 100))
    assert [f.words for f in both.findings if "along axis" in f.words][1:]
    assert both.inv_freq == pytest.approx(waves)


def test_a_failure_is_that_of_the_kind_of_array_that_is_taken() -> None:
    def arrays(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        raise KeyError(f"of mine, {np.zeros(1, dtype=x.dtype)}")

    def tensors(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.relu(x)[0]

    for rotate, mine, other in ((arrays, "of mine", "torch"), (tensors, "shape", "NumPy")):
        (finding,) = identify(rotate, 8).findings
        assert mine in finding.words
        assert other not in finding.words


def table_at(
    start: float, table: Any = np.float64, factor: float = 1.0, base: float = 1e4, half: int = 32
) -> Rotate:
    """Turn halves by a table of rounded cos and sin times a factor, counting from ``start``."""
    theta = base ** (-np.arange(half) / half)

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        angle = torch.tensor(np.outer(at + start, theta))
        table_of = getattr(torch, np.dtype(table).name) if table != "bfloat16" else torch.bfloat16
        c, s = (factor * f(angle).to(table_of).double().numpy() for f in (torch.cos, torch.sin))
        c, s, (a, b) = c.astype(x.dtype), s.astype(x.dtype), np.split(x, 2, axis=-1)
        return np.concatenate((a * c - b * s, a * s + b * c), axis=-1)

    return rotate


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("base", "half", "positions"), [(5e5, 8, 2**15), (1e4, 32, 4096)])
def test_gains_before_the_turn_leave_the_frequencies_and_the_promise(
    dtype: type, base: float, half: int, positions: int
) -> None:
    gains, theta = (
        np.random.default_rng(0).uniform(0.8, 1.2, 2 * half),
        base ** (-np.arange(half) / half),
    )
    plain = (
        rotate_in_float32(theta, "half")
        if dtype == np.float32
        else table_at(0, np.float64, 1.0, base, half)
    )
    report = identify(
        lambda x, at: plain(x * gains.astype(dtype), at), 2 * half, positions=positions, dtype=dtype
    )
    assert (np.abs(report.inv_freq - theta.astype(dtype)) <= report.inv_freq_error + 1e-15).all()
    assert report.angle_error < (1e-10 if dtype == np.float64 else 1e-3)
    assert report.base == base
    (finding,) = report.findings
    assert finding.gravity == 2
    assert "before the turn: the promise is kept" in finding.words


def test_gains_before_a_turn_that_keeps_no_promise_are_not_its_fault() -> None:
    report = identify(lambda x, at: rotate_complex(x * GAIN, at**2 % 7919), 8, positions=512)
    assert "before the turn: the promise is broken, but not by them" in str(report)


@pytest.mark.parametrize("start", [1, 2, 7])
@pytest.mark.parametrize("factor", [1.0, 1.3465735902799727])
@pytest.mark.parametrize(
    ("table", "numbers"),
    [("bfloat16", "bfloat16"), (np.float16, "float16"), (np.float32, "float32")],
)
def test_a_rounded_table_from_another_start_is_known(
    table: Any, numbers: str, factor: float, start: int
) -> None:
    report = identify(table_at(start, table, factor), 64, positions=4096, dtype=np.float64)
    assert (report.is_rotation, report.numbers, report.base) == (True, numbers, 1e4)
    assert report.attention_factor == pytest.approx(factor, rel=1e-3)
    words = [finding.words for finding in report.findings]
    assert any(f"Position 0 is turned as position {start} should be" in said for said in words)
    assert any(f"rounded to {numbers}" in said for said in words) == (numbers != "float32")
    assert any(re.search(r"carry a factor of 1\.3[45]", said) for said in words) == (factor > 1)


@pytest.mark.parametrize("positions", [1024, 2**17])
def test_where_lengths_wobble_frequencies_are_known_less_well(positions: int) -> None:
    report = identify(lambda x, at: tables(x, at, sin=lambda s: 1.01 * s), 8, positions=positions)
    assert (np.abs(report.inv_freq - SPEEDS) <= report.inv_freq_error).all()
    assert "rounded coarsely" in report.findings[0].words
    assert not [finding for finding in report.findings if "but for" in finding.words]


@pytest.mark.parametrize("speed", [6e-4, 2e-4])
def test_a_small_turn_that_one_vector_does_not_show_is_no_share(speed: float) -> None:
    """The first two positions that share one are those whose matrices are equal."""

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angle = at[:, None] * torch.tensor(speed, dtype=torch.float64)
        (c, s), (a, b) = (f(angle).to(x.dtype) for f in (torch.cos, torch.sin)), x.chunk(2, -1)
        return torch.cat((a * c - b * s, a * s + b * c), -1)

    report = identify(rotate, 2, positions=4096, dtype=torch.bfloat16)
    y = rotate(torch.eye(2).bfloat16()[:, None].expand(2, 1024, 2), torch.arange(1024))
    equal = (y[:, 1:] == y[:, :-1]).all(-1).all(0)
    assert report.shared_position == 1 + int(equal.int().argmax()) > 50


def test_a_shared_position_hides_no_others_that_are_wrong() -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        wrong = (at >= 300) & (at < 600) & (at != 512) & (at != 513)
        return rotate_complex(x, np.where(at == 68, 67, at + 9 * wrong))

    words = [finding.words for finding in identify(rotate, 8, positions=1024).findings]
    assert any("Position 68 shares its rotation with 67" in said for said in words)
    assert any("299 of the positions below 1,024 are not rotated" in said for said in words)


@pytest.mark.parametrize(
    ("row", "past"),
    [
        (lambda at: np.minimum(at, 71), "every position gets the rotation of the last"),
        (lambda at: np.where(at > 71, 0, at), "every position gets the rotation of position 0"),
        (lambda at: at % 72, "it starts again from position 0"),
    ],
)
def test_the_end_of_a_table_beyond_the_last_power_of_two(row: Any, past: str) -> None:
    report = identify(lambda x, at: rotate_complex(x, row(at)), 8, positions=100)
    assert (report.table_end, report.past_end, len(report.findings)) == (71, past, 1)


def test_zeros_beside_channels_at_rest_are_the_end_of_a_table() -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return part(x, at, 1.0) * ((at < 393)[:, None] | (np.arange(8) > 3))

    report = identify(rotate, 8)
    assert (report.table_end, report.base, report.is_rotation) == (392, 1e4, True)
    assert "nothing but zeros at position 393 where channels turn" in report.findings[0].words
    assert len(report.findings) == 1


@pytest.mark.parametrize("length", [1975, 2000])
def test_yarn_with_one_pair_between_its_knees_is_named(length: int) -> None:
    theta, factor = rescaled_frequencies(
        "yarn", 16, 5e6, factor=2.0, original_max_position_embeddings=length
    )
    for speeds, made_in in (
        (theta, "float64"),
        (theta.astype(np.float32).astype(float), "float32"),
    ):
        report = identify(turner(layout_of("half", 16), speeds, factor), 16)
        assert (report.explanations[0].kind, report.base) == ("yarn", 5e6)
        assert report.explanations[0].made_in == made_in


def test_frequencies_rounded_to_16_bits_are_not_a_few_odd_ones() -> None:
    report = identify(of_16_bits(1e4, 8), 8, positions=4096, dtype=torch.bfloat16)
    assert "The inverse frequencies are rounded to 16 bits" in report.findings[0].words
    assert not [finding for finding in report.findings if "but for" in finding.words]


def test_scores_that_do_not_depend_on_the_distance_alone_are_not_said_to() -> None:
    theta = (100.0 ** (-np.arange(8) / 8)).astype(np.float16).astype(float)
    plain = turner(layout_of("half", 16), theta)
    report = identify(lambda x, at: plain(x, at.astype(np.float16)), 16, positions=4096)
    words = " ".join(finding.words for finding in report.findings)
    assert "The inverse frequencies are rounded to 16 bits" in words
    assert "Position 2,049 shares" in words
    assert "distance alone" not in words


def test_what_is_rounded_at_the_end_is_told_from_a_rounded_table() -> None:
    report = identify(
        lambda x, at: torch.tensor(rotate_complex(x, at)).bfloat16().double().numpy(), 8
    )
    assert report.findings[0].words.startswith("What comes out is rounded to bfloat16")
    assert "cos and sin are rounded" not in str(report)


# ---- the report --------------------------------------------------------------------------------


def report_of(
    layout: str = "half", direction: int = 1, factor: float = 1.0, start: int = 0, **more: Any
) -> Report:
    theta, _ = rescaled_frequencies("default", 8, **more)
    return identify(turner(layout_of(layout, 8, start), direction * theta, factor), 12)


@settings(max_examples=15, phases=QUICK)
@given(
    st.tuples(
        st.sampled_from(["half", "interleaved"]),
        st.sampled_from([1, -1]),
        st.sampled_from([1.0, 1.25]),
        st.integers(0, 4),
    ),
    st.permutations(range(12)),
    st.booleans(),
    st.booleans(),
)
def test_converted_weights_give_the_same_scores(
    first: Any, order: list[int], mirrored: bool, tensors: bool
) -> None:
    """From any layout to any permutation of channels; heads, biases, NumPy and torch."""
    theta, _ = rescaled_frequencies("default", 8)
    layout, direction, factor, start = first
    one = turner(layout_of(layout, 8, start), direction * theta, factor)
    pairs = [(order[2 * i], order[2 * i + 1]) for i in range(4)]
    two = turner(pairs, -theta if mirrored else theta)
    difference = identify(one, 12).differs_from(identify(two, 12))
    assert difference.convert is not None
    rng = np.random.default_rng(0)
    w_q, w_k = rng.normal(size=(2, 24, 5))
    x, at = rng.normal(size=(2, 5)), np.array([3, 11])

    def scores(rotate: Rotate, *weights: np.ndarray) -> np.ndarray:
        q, k = (rotate((x @ w.T).reshape(2, 2, 12).swapaxes(0, 1), at) for w in weights)
        return q @ k.swapaxes(-1, -2)

    given = [torch.tensor(w) if tensors else w for w in (w_q, w_k)]
    converted = [difference.convert(w, 2) for w in given]
    assert all(type(a) is type(b) for a, b in zip(given, converted, strict=True))
    wanted = scores(one, w_q, w_k)
    assert np.allclose(scores(two, *map(np.asarray, converted)), wanted, atol=1e-9)
    bias = difference.convert(w_q[:, 0], 2)
    assert np.array_equal(bias, np.asarray(converted[0])[:, 0])


def test_what_stands_still_is_rescaled_as_well() -> None:
    """One carries its factor on all channels, the other on those that turn."""
    one, two = (lambda x, at, g=g: part(1.5 * x, at, g) for g in (1.0, 2 / 3))
    difference = identify(one, 8).differs_from(identify(two, 8))
    assert difference.words[0].startswith("Multiply the rows that do not turn by 1.5:")
    assert difference.convert is not None
    q, k = np.random.default_rng(0).normal(size=(2, 8, 1))
    at = np.array([4])
    wanted = one(q.T, at) @ one(k.T, at).T
    moved = two(difference.convert(q, 1).T, at) @ two(difference.convert(k, 1).T, at).T
    assert moved == pytest.approx(wanted)
    assert not identify(STRANGE["rest uneven"][0], 8).is_rotation
    lost = identify(lambda x, at: part(x, at, 0.0), 8)
    assert identify(one, 8).differs_from(lost).convert is None


def test_what_has_no_frequencies_is_not_compared() -> None:
    broken = identify(STRANGE["logarithm"][0], 8, positions=64)
    assert broken.inv_freq.size == 0
    assert broken.differs_from(broken).convert is None


def test_a_difference_is_said_in_words() -> None:
    plain = report_of()
    assert plain.differs_from(report_of()).words == ()
    assert str(plain.differs_from(report_of())) == "They give the same scores."
    assert plain.differs_from(report_of("interleaved")).words == (
        "Permute the rows of each head of W_q and W_k: "
        "from half-split (first) to interleaved (first).",
    )
    assert plain.differs_from(report_of(direction=-1)).words == (
        "Negate the second row of 4 of 4 pairs: they turn the other way.",
    )
    (words,) = plain.differs_from(report_of(factor=1.25)).words
    assert words.startswith("Multiply the rows that turn by 0.8:")
    assert "1 against 1.25 there" in words
    other = plain.differs_from(report_of(base=5e5))
    assert other.convert is None
    words = "3 of 4 pairs turn at another speed than there, pair (3, 7) the most: 0.001 against"
    assert words in other.words[0]
    assert plain.differs_from(report_of(base=10010.0)).convert is None
    narrow = identify(rotate_complex, 12)
    assert plain.differs_from(narrow).words == ("8 channels turn against 12.",)
    broken = identify(lambda x, at: 0 * x, 12)
    assert plain.differs_from(broken).words == ("The second is no rotation.",)
    waves = np.outer(0.1 ** np.arange(6), [1, 1])
    wide = identify(turner(layout_of("half", 12), waves), 12, positions=(64, 64))
    assert narrow.differs_from(wide).words == ("1 axis against 2.",)
    assert wide.differs_from(narrow).words == ("2 axes against 1.",)
    small = identify(rotate_complex, 8)
    assert small.differs_from(narrow).words == ("Heads of 8 channels against 12.",)
    assert small.differs_from(wide).words == ("Heads of 8 channels against 12, 1 axis against 2.",)


def test_a_table_that_ends_sooner_is_told_and_converts() -> None:
    """The other way round, too; tables that end in the same place are not told."""
    cos, sin = np.cos(np.outer(range(300), SPEEDS)), np.sin(np.outer(range(300), SPEEDS))

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        a, b = x[..., :4], x[..., 4:8]
        return np.concatenate((a * cos[at] - b * sin[at], b * cos[at] + a * sin[at]), axis=-1)

    short, endless = identify(rotate, 8), identify(turner(layout_of("half", 8), SPEEDS), 8)
    for difference, which in (
        (short.differs_from(endless), "first"), (endless.differs_from(short), "second")
    ):  # fmt: skip
        (words,) = difference.words
        assert words.startswith(f"The table of the {which} ends at 299, then raises IndexError")
        assert difference.convert is not None
    assert short.differs_from(short).words == ()


@pytest.mark.parametrize("dtype", [np.float16, torch.float16, torch.bfloat16])
def test_a_factor_is_multiplied_before_it_is_rounded(dtype: Any) -> None:
    """1.0959 is 1.0957 in float16 and 1.0938 in bfloat16."""
    convert = report_of(factor=1.0959).differs_from(report_of()).convert
    assert convert is not None
    values = np.linspace(0.5, 1.5, 12 * 64).reshape(12, 64)
    if isinstance(dtype, torch.dtype):
        weight = torch.tensor(values, dtype=dtype)
        wanted, found = weight.double(), convert(weight, 1)
        wanted[:8] *= 1.0959
        assert found.dtype == dtype
        assert torch.equal(found, wanted.to(dtype))
    else:
        weight = values.astype(dtype)
        wanted, found = weight.astype(np.float64), convert(weight, 1)
        wanted[:8] *= 1.0959
        assert found.dtype == dtype
        assert np.array_equal(found, wanted.astype(dtype))


def test_equal_wave_vectors_are_matched_before_others_are_told() -> None:
    """By size, a pair of another axis would set all that follow it beside the wrong ones."""
    along = np.array([[1, 0], [0.1, 0], [0.01, 0], [0, 0.001]])
    across = along[:, ::-1]
    one, two = (
        identify(turner(layout_of("half", 8), waves), 8, positions=(256, 256))
        for waves in (along, np.where(np.arange(4)[:, None] == 1, across, along))
    )
    difference = one.differs_from(two)
    assert difference.convert is None
    (words,) = difference.words
    assert words.startswith(
        "1 of 4 wave vectors have no equal there, that of pair (1, 5) for one: (0.1, 0). "
    )
    assert words.endswith("the pairs must turn as there, with its axes, base and rescaling.")


@pytest.mark.parametrize("start", [0, 0.5, 1])
def test_wave_vectors_are_matched_whatever_noise_orders_them(start: float) -> None:
    """Pairs share the first number of their wave vectors, but for what a table's rounding left."""
    steps = np.repeat(0.1 ** np.arange(4), 2)
    waves = np.stack((0.5 * steps, np.tile([0.3, -0.7], 4) * steps), axis=1)
    plain = turner(layout_of("half", 16), waves)

    def rounded(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        y = plain(x.astype(float), at + start)  # each vector is a unit vector, or as good
        return y.astype(np.float32)

    one = identify(rounded, 16, positions=(256, 256), dtype=np.float32)
    two = identify(plain, 16, positions=(256, 256))
    for difference in (one.differs_from(two), two.differs_from(one)):
        assert difference.words == ()
        assert difference.convert is not None


def test_the_order_of_pairs_is_no_way_from_a_layout_to_itself() -> None:
    one, two = (identify(turner(layout_of("half", 8), w), 8) for w in (SPEEDS, SPEEDS[::-1]))
    (words,) = one.differs_from(two).words
    assert words.endswith("from one order of pairs to another.")


@pytest.mark.parametrize("axes", [1, 2])
def test_another_layout_and_another_order_of_pairs_are_told_both(axes: int) -> None:
    """As from Qwen2-VL's halves, axis after axis, to MoonViT's neighbours, axes by turns."""
    waves = np.kron(np.eye(axes), SPEEDS[:, None])  # axis after axis
    by_turns = waves.reshape(axes, 4, axes).swapaxes(0, 1).reshape(-1, axes)
    other = waves[::-1] if axes == 1 else by_turns
    width = 8 * axes
    half, even = (layout_of(name, width) for name in ("half", "interleaved"))
    one, same, two = (
        identify(turner(pairs, turning), width, positions=(64,) * axes)
        for pairs, turning in ((half, waves), (even, waves), (even, other))
    )
    said = (
        "Permute the rows of each head of W_q and W_k: from half-split (all) to interleaved (all)"
    )
    assert one.differs_from(same).words == (f"{said}.",)
    assert one.differs_from(two).words == (f"{said}, where pairs stand in another order.",)
    standard = np.eye(width).reshape(2, -1, width).swapaxes(0, 1).reshape(-1, width)
    for there, plainly in ((same, True), (two, False)):
        convert = one.differs_from(there).convert
        assert convert is not None
        assert np.array_equal(convert(np.eye(width), 1), standard) == plainly


def test_a_small_difference_of_frequencies_is_told_and_converted() -> None:
    near = identify(turner(layout_of("half", 8), SPEEDS * [1 + 8e-7, 1, 1, 1]), 8)
    difference = near.differs_from(identify(turner(layout_of("half", 8), SPEEDS), 8))
    (words,) = difference.words
    assert words.startswith("Frequencies differ by up to 8e-07 of themselves, which is 0.1 rad")
    assert difference.convert is not None


def test_lost_angles_are_a_reason_not_to_convert() -> None:
    rotate = rotate_in_float32(10000.0 ** (-np.arange(32) / 32), "half")
    report = identify(rotate, 64, positions=2**24, dtype=np.float32)
    assert report.angle_error > 0.05
    difference = report.differs_from(report)
    assert difference.convert is None
    assert "Angles of the first miss position times frequency" in difference.words[0]


def test_json_holds_everything() -> None:
    report = report_of(factor=1.25)
    text = report.to_json()
    again = Report.from_json(text)
    assert again.to_json() == text
    assert json.loads(text)["attention_factor"] == 1.25
    assert again.pairs == report.pairs
    assert again.explanations == report.explanations
    assert again.findings == report.findings
    assert np.array_equal(again.inv_freq, report.inv_freq)
    assert str(again) == str(report)
    assert again.differs_from(report).words == ()
    older = {k: v for k, v in json.loads(text).items() if k != "rest_factor"}
    assert Report.from_json(json.dumps(older)).to_json() == text


def test_the_card_says_it_in_text() -> None:
    lines = dict(re.split(r" {2,}", line, maxsplit=1) for line in str(report_of()).splitlines())
    assert lines["layout"] == "half-split"
    assert lines["channels"] == "8 of 12, first"
    assert lines["direction"] == "counter-clockwise (+1)"
    assert lines["formula"] == "default over 8 channels: base 10000"
    assert lines["wavelengths"] == "6.28319 to 6,283.19 positions"


def test_the_circuit_joins_each_pair_in_its_hue() -> None:
    from ropebook.figures.palette import pair_color

    report = report_of()
    root = ElementTree.fromstring(circuit(report))
    dots, lines = root.findall("g/circle"), root.findall("path")
    place = [(dot.get("cx"), dot.get("cy")) for dot in dots]
    assert len(place) == 12
    assert place[0] == ("120.0", "20.0")  # channel 0 at the top
    assert float(str(place[1][0])) > 120  # and on, clockwise
    for i, (line, (a, b)) in enumerate(zip(lines, report.pairs, strict=True)):
        start, end = re.fullmatch("M(.*)Q.* .* (.* .*)", str(line.get("d"))).groups()
        assert tuple(start.split()) == place[a]
        assert tuple(end.split()) == place[b]
        assert line.get("stroke") == dots[a].get("fill") == pair_color(i, 4)
    assert dots[11].get("fill") == "#808080"


def test_the_html_card_escapes_what_strangers_say() -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        raise ValueError("<script>alert(1)</script>")

    html = identify(rotate, 8, dtype=np.float64)._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    ElementTree.fromstring(html)


def test_every_finding_names_a_chapter_that_exists() -> None:
    chapters = {path.stem.split("-", 1)[1] for path in Path("notebooks").glob("[0-9]*.ipynb")}
    source = "".join(path.read_text("utf8") for path in Path("ropescope").glob("*.py"))
    named = set(re.findall(r'Finding\(\s*\w[^"]*"([a-z-]+)"\)', source))
    assert {"precision", "attention", "layouts", "why-position"} <= named
    assert named <= chapters


def test_the_precision_of_a_frequency_is_what_it_says() -> None:
    """In float32, from 512 positions: the error stated bounds the true one, and not by far."""
    theta = 10000.0 ** (-np.arange(16) / 16)
    rotate = turner(layout_of("half", 32), theta)
    report = identify(
        lambda x, at: rotate(x.astype(float), at).astype(np.float32), 32, positions=512,
        dtype=np.float32,
    )  # fmt: skip
    error = np.abs(report.inv_freq - theta)
    assert (error <= report.inv_freq_error).all()
    assert report.inv_freq_error.max() < 1e-8
    assert math.isclose(report.base or 0, 10000)


def test_the_precision_covers_angles_that_wobble() -> None:
    """Angles off by up to 0.02 rad leave speeds off by more than what rounding would explain."""

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return turner([(0, 1)], [[1.0]])(x, 0.7 * at + 0.02 * np.sin(at))

    report = identify(rotate, 2, positions=512)
    error = abs(report.inv_freq[0] - 0.7)
    assert 1e-6 < error <= report.inv_freq_error[0] < 1e-3
    assert "more than the rounding of that product explains" in report.findings[0].words


# what a fourth round of strangers found


def one_bad_row(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    if (at == 4).any():
        raise IndexError("bad row")
    return part(x, at, 1.0)


def one_nan(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    return np.where((at == 64)[:, None], np.nan, part(x, at, 1.0))


@pytest.mark.parametrize(
    ("rotate", "said"),
    [
        (one_bad_row, "raises IndexError: bad row, asked for position 4."),
        (one_nan, "returns numbers that are not finite, asked for position 64."),
    ],
)
def test_a_position_that_is_not_answered_is_named_where_calls_meet_it(rotate, said) -> None:
    (finding,) = identify(rotate, 16).findings
    assert finding.words == f"Not every position is answered: it {said}"


def test_a_mean_taken_away_is_no_end_of_a_table() -> None:
    def centred(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return part(x - x.mean(axis=-1, keepdims=True), at, 1.0)

    report = identify(centred, 16)
    assert report.table_end is None
    assert report.asked.endswith(f"positions 0..{2**17 - 1:,}")
    assert report.is_rotation is False


def test_an_error_whose_words_fail_is_named_by_its_type() -> None:
    class SpeechlessError(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        raise SpeechlessError

    assert "raises SpeechlessError" in identify(rotate, 4).findings[0].words


@pytest.mark.parametrize(
    ("row", "positions", "words"),
    [
        (lambda at: at + 7 * (at == 513), 4096, "1 of the positions below 1,024 is not rotated"),
        (lambda at: at + 0.3 * (at == 2049), 4096, "at position 2,049 the angle is off by 0.3 rad"),
        (lambda at: at % 2049, 4096, "ends at position 2,048 without a word: after it, it starts"),
        (lambda at: np.where(at < 2049, at, 0), 4096, "ends at position 2,048 without a word"),
        (
            lambda at: np.where(at < 2049, at, 2048 + (at - 2048) / 8),
            4096,
            "turns by its frequencies to position 2,048 only",
        ),
        (lambda at: at % 65, 100, "ends at position 64 without a word"),
    ],
)
@pytest.mark.parametrize("table", [np.float64, np.float32])
def test_a_wrong_position_beside_a_power_of_two_is_no_rounding(
    row: Any, positions: int, words: str, table: type
) -> None:
    plain = table_at(0, table, half=8)
    report = identify(lambda x, at: plain(x, row(at)), 16, positions=positions)
    assert any(words in f.words and f.gravity == 3 for f in report.findings), str(report)
    assert "lose their digits" not in str(report)


def rounded_to(table: str, numbers: np.ndarray) -> np.ndarray:
    return torch.tensor(numbers).to(getattr(torch, table)).double().numpy()


@pytest.mark.parametrize("table", ["float64", "bfloat16", "float16"])
@pytest.mark.parametrize("made", ["bfloat16", "float16"])
@pytest.mark.parametrize("half", [1, 8, 32])
@pytest.mark.parametrize("positions", [100, 4096])
def test_products_made_in_16_bits_are_called_so_and_no_wrong_positions(
    table: str, made: str, half: int, positions: int
) -> None:
    theta = 0.7 * 1e4 ** (-np.arange(half) / half)

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        angle = rounded_to(made, np.outer(at, theta))
        c, s = (rounded_to(table, f(angle)) for f in (np.cos, np.sin))
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate((a * c - b * s, a * s + b * c), axis=-1)

    report = identify(rotate, 2 * half, positions=positions)
    assert report.table_end is None
    assert "no rounding does that" not in str(report)
    if report.angle_error > 0.1 and report.shared_position is None:
        assert f"as if the product were made in {made}" in str(report)


@pytest.mark.parametrize("side", [1024, 4096])
def test_axes_that_add_but_for_float32_are_not_said_not_to(side: int) -> None:
    """Wave vectors in directions of their own: points between the axes have the largest angles."""
    for seed in range(6):
        turn = np.random.default_rng(seed).uniform(0, 2 * np.pi, 8)
        waves = np.float32((10.0 ** (-np.arange(8) / 8) * [np.cos(turn), np.sin(turn)]).T)

        def rotate(x: np.ndarray, at: np.ndarray, waves: np.ndarray = waves) -> np.ndarray:
            angle = (np.float32(at)[:, None] * waves).sum(-1, dtype=np.float32)
            return turner(layout_of("half", 16), np.eye(8))(x, angle)

        exact = turner(layout_of("half", 16), waves)
        one, two = (identify(f, 16, positions=(side, side)) for f in (rotate, exact))
        assert "Axes do not add" not in str(one)
        assert one.differs_from(two).convert is not None


def test_a_promise_kept_but_for_what_float64_rounds_is_not_broken() -> None:
    plain = turner(layout_of("half", 16), 4 * np.pi * 10007.0 ** (-np.arange(8) / 8), -1.0)
    report = identify(lambda x, at: plain(x, at - 3), 16, positions=100)
    assert "promise is broken" not in str(report)


@pytest.mark.parametrize(("start", "positions"), [(100, 64), (100, 1000), (4096, 64), (4096, 1000)])
def test_the_precision_covers_angles_of_float32_that_start_far_out(
    start: int, positions: int
) -> None:
    """Two of them may lie on one grid, and agree by chance."""
    theta = np.float32(1e4 ** (-np.arange(32) / 32))
    pairs = layout_of("half", 64)

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        angle = np.float32(at + start)[:, None] * theta
        return turner(pairs, np.eye(32))(x, angle)

    report = identify(rotate, 64, positions=positions)
    assert (np.abs(report.inv_freq - theta) <= report.inv_freq_error).all()
    assert report.inv_freq_error.max() < 1e-4
    assert report.base == 1e4
    assert "but for" not in str(report)


def test_a_slow_decay_of_each_pair_is_no_rounding() -> None:
    scale = np.tile(np.linspace(0.999, 0.99999, 4), 2)
    report = identify(lambda x, at: turned(x, at) * scale ** (at[:, None] / 512), 8, positions=4096)
    said = report.findings[0].words
    assert said.startswith("Lengths were seen to change with the position, in each pair by")
    assert "rounded coarsely" not in str(report)


@pytest.mark.parametrize(("base", "slower", "positions"), [(1e6, 8, 64), (1e4, 1, 64)])
def test_rounded_angles_are_not_called_rounded_frequencies_alone(
    base: float, slower: int, positions: int
) -> None:
    """At powers of two both are the same numbers."""
    theta, pairs = base ** (-np.arange(64) / 64) / slower, layout_of("half", 128)

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return turner(pairs, np.eye(64))(x, rounded_to("bfloat16", np.outer(at, theta)))

    report = identify(rotate, 128, positions=positions)
    words = report.findings[0].words
    said = "The inverse frequencies, or the angles, are rounded to 16 bits: within "
    assert words.startswith(said)
    told = float(words.removeprefix(said).split("%")[0]) / 100
    off = np.abs(rounded_to("bfloat16", theta) / theta - 1).max()
    assert off <= told < off + 0.002
    assert "distance alone" not in words


@pytest.mark.parametrize("start", [1, 5, 7, 11])
def test_a_factor_that_rounding_makes_is_not_multiplied_in(start: int) -> None:
    one, two = (identify(table_at(start, table, half=1), 2) for table in ("bfloat16", np.float64))
    for difference in (one.differs_from(two), two.differs_from(one)):
        assert not [words for words in difference.words if words.startswith("Multiply")]
        assert difference.convert is not None
        assert (difference.convert(np.ones((2, 1)), 1) == 1).all()


def test_what_comes_out_in_8_bits_is_told_from_a_table_of_8_bits() -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        digits, power = np.frexp(turned(x, at))
        return np.ldexp(np.round(digits * 16) / 16, power)

    report = identify(rotate, 8, positions=4096)
    assert "What comes out is rounded to 8 bits, as in float8: lengths are" in str(report)
    assert "cos and sin are" not in str(report)


def test_few_numbers_of_float16_are_not_read_as_bfloat16() -> None:
    for fastest in np.linspace(0.3, 1.0, 40):
        plain = turner([(0, 1)], [fastest])
        rotate = lambda x, at: plain(x, at).astype(np.float16).astype(float)  # noqa: B023, E731
        assert identify(rotate, 2, positions=4).numbers == "float16"


def test_a_formula_that_holds_to_float32_is_not_called_near() -> None:
    """Its parameters are found by numbers of 16 bits alone."""
    theta, _ = rescaled_frequencies(
        "llama3", 32, 1000.0, factor=3.0, original_max_position_embeddings=4096,
        low_freq_factor=1.0, high_freq_factor=8.0,
    )  # fmt: skip
    report = identify(rotate_in_float32(theta, "half-split"), 32, positions=2**20)
    assert (report.base, report.rescaling and report.rescaling[0]) == (1000, "llama3")
    assert report.explanations[0].made_in == "float32"
    assert "are near those" not in str(report)


# numbers of few digits, tables that end, gains and series of their own


def by_angles(
    x: torch.Tensor, angle: torch.Tensor, factor: float = 1.0, wide: bool = False
) -> torch.Tensor:
    """Turn halves by angles (T, D/2), cos and sin as x is, or left so wide."""
    c, s = (factor * f(torch.cat((angle, angle), -1)) for f in (torch.cos, torch.sin))
    c, s = (c, s) if wide else (c.to(x.dtype), s.to(x.dtype))
    a, b = x.chunk(2, -1)
    return x * c + torch.cat((-b, a), -1) * s


def halves(
    x: torch.Tensor, at: Any, theta: Any, factor: float = 1.0, wide: bool = False
) -> torch.Tensor:
    """Turn halves as models do: angles in float32, cos and sin as x is, or left so wide."""
    angle = torch.as_tensor(at).float()[:, None] * torch.as_tensor(theta).float()
    return by_angles(x, angle, factor, wide)


def sinusoid(at: torch.Tensor) -> torch.Tensor:
    return torch.cat(((at[:, None] * SERIES).sin(), (at[:, None] * SERIES).cos()), -1).float()


LENGTH = {"original_max_position_embeddings": 32768}
SERIES = 1e4 ** (-torch.arange(0, 64, 2) / 64)
GPT_OSS = torch.tensor(
    rescaled_frequencies(
        "yarn", 64, 150000.0, factor=32.0, original_max_position_embeddings=4096, truncate=False
    )[0]
)
GAINS = torch.linspace(0.9, 1.1, 64)
BIAS = torch.linspace(-2.7, 2.5, 64)
HALF, SINGLE = torch.bfloat16, torch.float32
FIFTH: dict[str, Any] = {  # rotation, type, positions, findings, and what else is known
    **{
        f"wide tables, {size}": (
            lambda x, at: halves(x, at, SERIES, wide=True),
            HALF,
            size,
            [(2, "It returns float32 where bfloat16 was given.")],
            {"table_end": None, "base": 1e4},
        )
        for size in (64, 1024, 1025, 4096)
    },
    "gains after, bfloat16": (
        lambda x, at: halves(x, at, SERIES) * GAINS.to(HALF),
        HALF,
        4096,
        [(3, "Channels carry gains, 0.896 to 1.1, after the turn: the promise is broken.")],
        {"attention_factor": None},
    ),
    "gains before, bfloat16": (
        lambda x, at: halves(x * GAINS.to(HALF), at, SERIES),
        HALF,
        4096,
        [(2, "Channels carry gains, 0.896 to 1.1, before the turn: the promise is kept: a gain")],
        {"attention_factor": None},
    ),
    **{
        f"gains within {part}, bfloat16": (
            lambda x, at, gains=1.0 + part * (GAINS - 1.0) / 0.1: (
                halves(x, at, SERIES) * gains.to(HALF)
            ),
            HALF,
            4096,
            [(3, "after the turn: the promise is broken.")],
            {"is_rotation": False},
        )
        for part in (0.05, 0.03)
    },
    "sinusoids added": (
        lambda x, at: x + sinusoid(at),
        SINGLE,
        4096,
        [(3, "It adds a vector of its own"), (3, "It turns nothing")],
        {"numbers": "float32"},
    ),
    "bias before": (
        lambda x, at: halves(x + BIAS, at, SERIES),
        SINGLE,
        4096,
        [(3, "It adds a vector of its own")],
        {"numbers": "float32", "is_rotation": True},
    ),
    "bias after, bfloat16": (
        lambda x, at: halves(x, at, SERIES) + BIAS.to(HALF),
        HALF,
        4096,
        [(3, "It adds a vector of its own")],
        {"numbers": "bfloat16", "is_rotation": True},
    ),
    **{
        f"{rows} rows, clamped": (
            lambda x, at, last=rows - 1: halves(x, at.clamp(max=last), SERIES),
            SINGLE,
            positions,
            [(3, f"ends at position {rows - 1:,} without a word: after it, every position gets")],
            {"table_end": rows - 1, "base": 1e4},
        )
        for rows, positions in ((257, 512), (2049, 4096), (257, 1024))
    },
    "positions in bfloat16": (
        lambda x, at: halves(x, at.to(HALF), SERIES),
        SINGLE,
        512,
        [(3, "Position 257 shares its rotation with 256")],
        {"table_end": None, "shared_position": 257},
    ),
    "a factor for each pair": (
        lambda x, at: halves(x * torch.linspace(0.9, 1.1, 32).repeat(2), at, SERIES),
        SINGLE,
        4096,
        [(2, "Pairs carry different factors at every position: 0.9 to 1.1; the promise is kept.")],
        {"attention_factor": None, "is_rotation": False},
    ),
    "by the last position": (
        lambda x, at: halves(x, at.float() / 16383, SERIES),
        SINGLE,
        2**14,
        [],
        {"base": 1e4, "rescaling": ("linear", {"factor": 16383.0})},
    ),
    "from -1 to 1": (
        lambda x, at: halves(x, 2 * at.float() / 16383 - 1, SERIES),
        SINGLE,
        2**14,
        [(1, "Position 0 is turned as position -8191.5 should be")],
        {"base": 1e4, "rescaling": ("linear", {"factor": 8191.5})},
    ),
    "from a half": (
        lambda x, at: halves(x, at + 0.5, SERIES),
        HALF,
        2**14,
        [(1, "Position 0 is turned as position 0.5 should be")],
        {"base": 1e4},
    ),
    "from 2,048": (
        lambda x, at: halves(x, at + 2048, SERIES),
        SINGLE,
        4096,
        [(1, "Position 0 is turned as position 2048 should be")],
        {"base": 1e4},
    ),
    "degrees": (
        lambda x, at: halves(x, at, 180 / math.pi * SERIES),
        SINGLE,
        8192,
        [
            (2, "pairs turn clockwise"),
            (2, "No formula that I know"),
            (1, "Speeds do not fall"),
            (1, "as if the product were made in float32"),
        ],
        {"base": None},
    ),
    "degrees, far out": (
        lambda x, at: halves(x, at, 180 / math.pi * SERIES),
        SINGLE,
        2**17,
        [
            (2, "pairs turn clockwise"),
            (2, "No formula that I know"),
            (1, "Speeds do not fall"),
            (1, "as if the product were made in float32"),
        ],
        {"base": None, "table_end": None},
    ),
    "whole turns more": (
        lambda x, at: halves(x, at, 2 * math.pi * SERIES),
        SINGLE,
        2**17,
        [
            (2, "pairs turn clockwise"),
            (2, "No formula that I know"),
            (1, "Speeds do not fall"),
            (1, "made in float32"),
        ],
        {"base": None, "table_end": None},
    ),
    **{
        f"positions in 16 bits, {size}": (
            lambda x, at: halves(x, at.to(torch.bfloat16), SERIES),
            torch.float64,
            size,
            [(3, "Position 257 shares its rotation with 256")],
            {"table_end": None, "base": 1e4},
        )
        for size in (4096, 32768)
    },
    "a series beyond floats": (
        lambda x, at: halves(x, at, 1e4 ** -torch.arange(0, 64, 2).double()),
        torch.float64,
        4096,
        [(2, "No formula that I know")],
        {"base": None},
    ),
    **{
        f"clamped at {last:,}, slowly": (
            lambda x, at, last=last: halves(x, at.clamp(max=last), SERIES / 32),
            HALF,
            2 * last + 48,
            findings,
            {"table_end": last},
        )
        for last, findings in (
            (1000, [(3, "ends at position 1,000 without")]),
            (20000, [(3, "ends at position 20,000 without")]),
        )
    },
    **{
        f"counted from {start:,}": (
            lambda x, at, start=start: halves(x, at + start, SERIES),
            SINGLE,
            2**17,
            [(1, f"turned as position {start} should"), (1, "the product were made in float32")],
            {"base": 1e4},
        )
        for start in (500, 1000, 5000)
    },
    "counted down": (
        lambda x, at: halves(x, 2**17 - 1 - at, SERIES),
        SINGLE,
        2**17,
        [(1, "It turns clockwise"), (1, "turned already"), (1, "product were made in float32")],
        {"base": 1e4, "direction": -1},
    ),
    "hundredths of thirds": (
        lambda x, at: halves(x, (at.double() / 3).mul(100).round() / 100, SERIES),
        SINGLE,
        1024,
        [(3, "Angles are not those of a frequency")],
        {"base": 1e4},
    ),
    "gpt-oss, cast": (
        lambda x, at: halves(x, at, GPT_OSS.to(HALF).float(), 1.3465735902799727),
        SINGLE,
        2**17,
        [
            (2, "No formula that I know"),
            (2, "Each of these frequencies is a number of 16 bits"),
            (1, "cos and sin carry a factor"),
        ],
        {"base": None},
    ),
    "a series that ends in zeros": (
        lambda x, at: halves(x, at, 1e4 ** -torch.arange(0, 64, 2).float()),
        SINGLE,
        4096,
        [(2, "No formula that I know")],
        {"base": None},
    ),
    "one speed": (
        lambda x, at: halves(x, at, 1e4 ** -(torch.arange(0, 64, 2) // 64).float()),
        SINGLE,
        4096,
        [(2, "All 32 pairs turn by 1 rad a position: there is one speed.")],
        {},
    ),
}


@pytest.mark.parametrize("name", FIFTH)
def test_what_a_function_of_rounded_numbers_does_is_told_as_such(name: str) -> None:
    rotate, dtype, positions, findings, known = FIFTH[name]
    report = identify(rotate, 64, positions=positions, dtype=dtype)
    assert len(report.findings) == len(findings), str(report)
    for finding, (gravity, words) in zip(report.findings, findings, strict=True):
        assert finding.gravity == gravity, str(report)
        assert words in finding.words
    assert {key: getattr(report, key) for key in known} == known


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("positions", [2**17, 4096])
@pytest.mark.parametrize(
    ("base", "dim", "factor", "length", "more"),
    [
        (150000.0, 64, 32.0, 4096, {"truncate": False}),
        (1e6, 128, 4.0, 32768, {}),
        (1e6, 128, 10.0, 32768, {}),
        (1e4, 64, 40.0, 4096, {}),
        (1e4, 128, 2.5, 4096, {}),
    ],
)
def test_yarn_s_factor_is_round_where_its_root_is_rounded(
    dtype: torch.dtype, positions: int, base: float, dim: int, factor: float, length: int, more: Any
) -> None:
    parameters = {"factor": factor, "original_max_position_embeddings": length, **more}
    theta, scale = rescaled_frequencies("yarn", dim, base, **parameters)
    report = identify(
        lambda x, at: halves(x, at, theta, scale), dim, positions=positions, dtype=dtype
    )
    assert (report.base, report.rescaling) == (base, ("yarn", parameters))


@pytest.mark.parametrize(
    ("sizes", "dim"), [((32, 48), 64), ((32, 48), 128), ((32, 32), 64), ((64, 64), 64)]
)
def test_axes_that_lose_their_slowest_pairs_to_rounding_share_a_base(sizes: Any, dim: int) -> None:
    series = 1e4 ** (-torch.arange(0, dim // 2, 2) / (dim // 2))

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angle = torch.cat((at[:, :1] * series, at[:, 1:] * series), -1)
        c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)

    report = identify(rotate, dim, positions=sizes, dtype=HALF)
    assert (report.base, report.rescaling) == (1e4, None), str(report)


MROPE = ((16, 24, 24), 1e6, False), ((24, 20, 20), 5e6, True)


def dealt(x: torch.Tensor, at: torch.Tensor, axis_of: torch.Tensor, base: float) -> torch.Tensor:
    """Turn halves, each pair by the axis that it was dealt, all of one series."""
    n = len(axis_of)
    angle = at[:, axis_of].float() * base ** (-torch.arange(n) / n)
    return by_angles(x, angle)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("sizes", [(64, 64, 64), (4096, 64, 64)])
@pytest.mark.parametrize(("sections", "base", "in_turn"), MROPE)
def test_sections_are_one_series_in_any_format(
    sections: Any, base: float, in_turn: bool, sizes: Any, dtype: torch.dtype
) -> None:
    """As Qwen's vision models deal their pairs out: in sections, or in turn."""
    axis_of = torch.tensor([axis for axis, n in enumerate(sections) for _ in range(n)])
    if in_turn:
        axis_of = torch.zeros(64, dtype=torch.long)
        axis_of[1 : 3 * sections[1] : 3], axis_of[2 : 3 * sections[2] : 3] = 1, 2
    report = identify(lambda x, at: dealt(x, at, axis_of, base), 128, positions=sizes, dtype=dtype)
    assert (report.base, report.rescaling) == (base, None), str(report)


@pytest.mark.parametrize(
    ("sizes", "ends"),
    [((258, 300), [256, 256]), ((514, 600), [256, 256]), ((258, 258), []), ((258, 64), [])],
)
def test_a_table_of_a_power_of_two_and_one_is_no_rounding(sizes: Any, ends: list[int]) -> None:
    """Where nothing beyond can be asked, both are said."""
    axis_of = torch.arange(32) // 16
    report = identify(
        lambda x, at: dealt(x, at.clamp(max=256), axis_of, 1e4),
        64, positions=sizes, dtype=torch.float32,
    )  # fmt: skip
    told = [finding.words for finding in report.findings if finding.gravity == 3]
    for end, words in zip(ends, told, strict=False):
        assert f"ends at position {end} without" in words
    assert len(told) == max(1, len(ends)), str(report)
    if not ends:
        (words,) = told
        assert words.endswith("as if positions were held in bfloat16, or a table ended before it.")


@pytest.mark.parametrize("sizes", [(258, 300), (514, 600), (4096, 64)])
def test_positions_of_several_axes_in_16_bits_are_wrong(sizes: Any) -> None:
    axis_of = torch.arange(32) // 16
    report = identify(
        lambda x, at: dealt(x, at.to(torch.bfloat16), axis_of, 1e4),
        64, positions=sizes, dtype=torch.float32,
    )  # fmt: skip
    (finding,) = report.findings
    assert finding.gravity == 3
    assert finding.words.endswith("as if positions were held in bfloat16.")


@pytest.mark.parametrize("dim", [64, 128, 256])
@pytest.mark.parametrize("positions", [512, 2**17])
@pytest.mark.parametrize("turns", [1, 2])
def test_whole_turns_in_float64_are_rounding_and_no_error(
    dim: int, positions: int, turns: int
) -> None:
    theta = turns * 2.0 * np.pi * 1e4 ** (-np.arange(0, dim, 2) / dim)
    report = identify(turner(layout_of("half-split", dim), theta), dim, positions=positions)
    assert report.is_rotation
    assert report.base is None


@pytest.mark.parametrize(
    ("sizes", "dtype"), [((16, 224), "float16"), ((128, 256), "float16"), ((2, 1000), "float64")]
)
def test_a_series_of_both_axes_is_one_however_well_each_tells_it(sizes: Any, dtype: str) -> None:
    """As DINOv3 turns: places in an image are measured from -1 to 1."""
    series = 2 * math.pi * 100.0 ** -torch.arange(0, 1, 4 / 64).double()

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angle = ((2 * (at + 0.5) / 14 - 1)[:, :, None] * series).flatten(1)
        return by_angles(x, angle)

    report = identify(rotate, 64, positions=sizes, dtype=getattr(torch, dtype))
    assert report.base == 100, str(report)
    assert "series of their own" not in str(report)


@pytest.mark.parametrize("bases", [(1e3, 1e4, 1e4), (1e4, 1.1e4, 1e4)])
def test_series_of_their_own_stay_so(bases: tuple[float, ...]) -> None:
    parts = [base ** (-np.arange(n) / n) for base, n in zip(bases, (20, 22, 22), strict=True)]
    waves = np.zeros((64, 3))
    for axis, (first, series) in enumerate(zip((0, 20, 42), parts, strict=True)):
        waves[first : first + len(series), axis] = series
    report = identify(turner(layout_of("half-split", 128), waves), 128, positions=(512, 64, 64))
    assert report.base is None
    assert "The axes have series of their own" in str(report)


@pytest.mark.parametrize("sizes", [(2, 64, 64), (3, 128, 128), (4, 64, 64)])
def test_of_a_short_axis_no_formula_is_told_that_is_none(sizes: Any) -> None:
    axis_of = torch.zeros(64, dtype=torch.long)
    axis_of[1:60:3], axis_of[2:60:3] = 1, 2
    report = identify(lambda x, at: dealt(x, at, axis_of, 5e6), 128, positions=sizes, dtype=HALF)
    told = [finding.words for finding in report.findings]
    assert report.base == 5e6 or "Some pairs turn too slowly along a short axis" in str(told)
    assert "series of their own" not in str(told)


@pytest.mark.parametrize(("dim", "positions"), [(32, 4096), (64, 4096), (128, 4800)])
def test_a_base_that_stays_longer_is_told_in_few_digits(dim: int, positions: int) -> None:
    base = 1e4

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """Rebuild the table at the base of a longer call, and keep it."""
        nonlocal base
        length = max(2048, int(at.max()) + 1)
        base = max(base, 1e4 * (2 * length / 2048 - 1) ** (dim / (dim - 2)))
        return halves(x, at, base ** (-torch.arange(0, dim, 2) / dim))

    report = identify(rotate, dim, positions=positions, dtype=HALF)
    assert "It remembers: what it was asked first" in str(report)


@pytest.mark.parametrize("precision", [1e-15, 1e-9])
def test_kimi_k2_s_knees_are_both_1(precision: float) -> None:
    knees = {"beta_fast": 1.0, "beta_slow": 1.0}
    theta, scale = rescaled_frequencies(
        "yarn", 64, 5e4, factor=32.0, original_max_position_embeddings=4096, **knees
    )
    found = explain(theta, theta * precision, (64,), (scale, 0.0))
    wanted = "factor=32, original_max_position_embeddings=4096, beta_fast=1"
    assert any(wanted in str(one) for one in found), found


def axis_without_formula(seed: int, most: float) -> Any:
    """Return a rotation of two axes: one has a series of base 10,000, one speeds drawn up to it."""
    series = 1e4 ** (-torch.arange(16) / 16)
    drawn = torch.rand(16, generator=torch.Generator().manual_seed(seed)) * most + 0.05
    return lambda x, at: by_angles(x, torch.cat((at[:, :1] * series, at[:, 1:] * drawn), -1))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("sizes", [(32, 32), (128, 128), (16, 224)])
def test_an_axis_that_follows_no_formula_is_none_too_short(sizes: Any, dtype: torch.dtype) -> None:
    report = identify(axis_without_formula(3, 1.0), 64, positions=sizes, dtype=dtype)
    assert "none that I know" in str(report), str(report)
    assert "too slowly" not in str(report)


@pytest.mark.parametrize("inside", ["bfloat16", "float16", "float8_e4m3fn"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_vector_that_is_rounded_on_its_way_in_is_told(inside: str, dtype: torch.dtype) -> None:
    few = getattr(torch, inside)
    report = identify(lambda x, at: halves(x.to(few).to(x.dtype), at, SERIES), 64, dtype=dtype)
    first = report.findings[0].words
    assert first.startswith(("What goes in is rounded", "It is not linear")), str(report)
    assert "are not rotated" not in str(report)
    assert report.base == 1e4


@pytest.mark.parametrize("sizes", [(64, 64), (256, 32)])
def test_axes_that_turn_all_pairs_alike_are_told(sizes: Any) -> None:
    waves = np.repeat(SERIES.double().numpy()[:, None], 2, axis=1)
    report = identify(turner(layout_of("half-split", 64), waves), 64, positions=sizes)
    assert "All axes turn all pairs alike" in str(report)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("sizes", [(15, 1024), (10, 500)])
def test_a_short_axis_hides_nothing_of_a_long_one(sizes: Any, dtype: torch.dtype) -> None:
    report = identify(axis_without_formula(7, 0.9), 64, positions=sizes, dtype=dtype)
    assert "none that I know" in str(report), str(report)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ((1, 0.5), "in one proportion, 2 : 1"),
        ((2, 1, 1), "in one proportion, 2 : 1 : 1"),
        ((1, -1), "in one proportion, 1 : -1"),
        ((1, 1, 1), "turn all pairs alike: points whose places have one sum"),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_axes_in_one_proportion_share_rotations_by_it(
    weights: Any, says: str, dtype: torch.dtype
) -> None:
    along = torch.tensor(weights, dtype=torch.float64)
    sizes = (64, 256) if len(weights) == 2 else (64, 32, 32)
    rotate = lambda x, at: by_angles(x, (at.double() @ along)[:, None] * SERIES)  # noqa: E731
    report = identify(rotate, 64, positions=sizes, dtype=dtype)
    assert says in str(report), str(report)
    assert "wave vectors of their own" not in str(report)
    assert "clockwise, the others" not in str(report)
    assert "proportional" not in str(report)


@pytest.mark.parametrize("few", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("rounded", "says"),
    [
        ("turned", "What comes out of channels that turn is rounded"),
        ("still", "What comes out of 32 of the 32 channels that do not turn is rounded"),
        ("half", "What comes out of 16 of the 32 channels that do not turn is rounded"),
        ("both", "What comes out is rounded"),
        ("table", "cos and sin are rounded"),
    ],
)
@pytest.mark.parametrize("factor", [1.0, 1.1386294])
def test_what_is_rounded_of_a_part_is_told(
    factor: float, rounded: str, says: str, dtype: torch.dtype, few: torch.dtype
) -> None:
    theta = 1e4 ** (-torch.arange(16, dtype=torch.float64) / 16)

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angle = at.double()[:, None] * theta
        a, b, rest = x[..., :16], x[..., 16:32], x[..., 32:]
        c, s = angle.cos(), angle.sin()
        if rounded == "table":
            c, s = c.to(few), s.to(few)
        c, s = c.to(x.dtype), s.to(x.dtype)
        part = torch.cat((a * c - b * s, b * c + a * s), -1)
        part = part.to(few) if rounded in ("turned", "both") else part
        rest = rest.to(few) if rounded in ("still", "both") else rest
        if rounded == "half":
            rest = torch.cat((rest[..., :16].to(few).to(x.dtype), rest[..., 16:]), -1)
        return torch.cat((part, rest), -1).to(x.dtype) * factor

    grave = [f.words for f in identify(rotate, 64, dtype=dtype).findings if f.gravity == 3]
    assert any(words.startswith(says) for words in grave), grave
    assert not any(w.startswith(("What goes in", "It is not linear")) for w in grave), grave


def test_a_cache_that_a_refused_call_broke_is_thought_of() -> None:
    kept: dict[str, Any] = {"length": 0}

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        if (length := int(at.max()) + 1) > kept["length"]:
            kept["length"] = length  # before the tables, which then fail for NumPy
            angle = torch.outer(torch.arange(length).double(), SERIES.double())
            kept["table"] = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x.chunk(2, -1)
        c, s = (t[at] for t in kept["table"])
        return torch.cat((a * c - b * s, b * c + a * s), -1)

    assert "the first of them may have broken it: make it anew" in str(identify(rotate, 64))
    kept = {"length": 0}
    assert identify(rotate, 64, dtype=torch.float64).base == 1e4


@pytest.mark.parametrize("positions", [64, 128, 1024])
@pytest.mark.parametrize("dim", [32, 64, 128])
def test_positions_in_hundredths_are_no_product(positions: int, dim: int) -> None:
    theta = 1e4 ** (-torch.arange(dim // 2, dtype=torch.float64) / (dim // 2))

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return by_angles(x, (at.double() / 3).mul(100).round()[:, None] / 100 * theta)

    report = identify(rotate, dim, positions=positions, dtype=torch.float32)
    assert "the product were made in" not in str(report), str(report)


@pytest.mark.parametrize(("factor", "told"), [(1.0, True), (1.1386294, False), (1.2964769, True)])
def test_yarn_without_its_factor_or_with_it_twice_is_told(factor: float, told: bool) -> None:
    theta, _ = rescaled_frequencies(
        "yarn", 64, 1e4, factor=4.0, original_max_position_embeddings=4096
    )
    report = identify(turner(layout_of("half-split", 64), theta, factor), 64)
    assert report.rescaling is not None
    assert report.rescaling[0] == "yarn"
    said = f"would be 1.13863 for a stretch by 4; here it is {factor:.6g}"
    assert (said in str(report)) == told, str(report)


@pytest.mark.parametrize("dim", [3, 15, 35, 63])
def test_one_channel_at_rest_is_no_number_of_few_digits(dim: int) -> None:
    report = identify(turner(layout_of("half-split", dim - 1), 0.5 ** np.arange(dim // 2)), dim)
    assert report.is_rotation
    assert "is rounded" not in str(report)


@pytest.mark.parametrize("sizes", [(256, 256), (64, 4096), (4096, 4096)])
def test_a_product_of_matrices_is_no_other_rotation_in_another_order(sizes: Any) -> None:
    series = SERIES.double()
    waves = torch.stack((series, series.flip(0)), -1)
    rotate = lambda x, at: by_angles(x, at.double() @ waves.T)  # noqa: E731
    report = identify(rotate, 64, positions=sizes, dtype=torch.float64)
    assert report.is_rotation
    assert "in another order" not in str(report)


def test_pairs_that_turn_along_two_axes_the_same_way_are_counted() -> None:
    series = SERIES.double()[::2]

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        row, column = at.double().T[..., None]
        return by_angles(x, torch.cat((row * series, (row + column) * series), -1))

    report = identify(rotate, 64, positions=(64, 64), dtype=torch.float32)
    assert "16 of 32 pairs turn along several axes at once" in str(report)


@pytest.mark.parametrize("far", [lambda t: t.amax(-1), lambda t: t.square().sum(-1).sqrt()])
def test_axes_that_do_not_add_share_nothing_by_their_sum(far: Any) -> None:
    rotate = lambda x, at: by_angles(x, far(at.double())[:, None] * SERIES)  # noqa: E731
    report = identify(rotate, 64, positions=(64, 64), dtype=torch.float64)
    assert "Axes do not add" in str(report)
    assert "have one sum" not in str(report)


@pytest.mark.parametrize("rest", ["turned again", "not turned again", "of gains"])
def test_channels_that_are_lost_are_told_of_what_is_no_rotation_too(rest: str) -> None:
    gains = np.linspace(0.5, 1.5, 8)

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        y = turner(layout_of("half-split", 8), 0.1 ** np.arange(4))(x[..., :8] * gains, at)
        if rest == "of gains":
            return np.concatenate((y, np.zeros_like(y)), -1)
        y = turner(layout_of("half-split", 8), 0.1 ** np.arange(4))(x[..., :8], at)
        return np.concatenate((y, y if rest == "turned again" else x[..., :8]), -1)

    report = identify(rotate, 16)
    words = [f.words for f in report.findings if f.gravity == 3]
    assert "The 8 channels that do not turn are lost: nothing of them comes out." in words
    assert "lengths are kept" not in str(report)


def test_lengths_in_words_have_their_factor() -> None:
    def mirrored(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        angle = at[:, None] * 0.1 ** np.arange(4)
        c, s, (a, b) = np.cos(angle), np.sin(angle), np.split(x, 2, axis=-1)
        return 1.35 * np.concatenate((a * c + b * s, b * c + a * s), -1)

    words = next(
        f.words for f in identify(mirrored, 8).findings if "a vector of length 1" in f.words
    )
    longest = float(re.search(r"length [\d.e-]+ to ([\d.]+)", words)[1])
    assert longest == pytest.approx(1.35 * 2**0.5, rel=0.01)


@pytest.mark.parametrize(("dim", "base"), [(64, 1e4), (16, 1e2)])
def test_products_in_16_bits_at_few_positions_are_products(dim: int, base: float) -> None:
    few = torch.float16
    theta = base ** (-torch.arange(0, dim, 2) / dim)
    rotate = lambda x, at: by_angles(x, (at.to(few)[:, None] * theta.to(few)).float())  # noqa: E731
    report = identify(rotate, dim, positions=128, dtype=torch.float32)
    assert "no rounding does that" not in str(report), str(report)


@pytest.mark.parametrize(("base", "factor"), [(4e4, 1.0), (1e4, 4.0)])
def test_in_16_bits_a_formula_may_be_hidden(base: float, factor: float) -> None:
    base = base * factor ** (128 / 126)
    theta = base ** (-torch.arange(0, 128, 2) / 128)
    report = identify(lambda x, at: halves(x, at, theta), 128, dtype=torch.bfloat16)
    assert "No formula that I know gives" not in str(report)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, np.float32])
@pytest.mark.parametrize("dim", [32, 64, 128])
@pytest.mark.parametrize("factor", [2**-0.5, 2**0.5, 1.5**0.5, 0.1**0.5, 8**-0.5])
def test_a_factor_of_a_root_is_no_rounding(factor: float, dim: int, dtype: Any) -> None:
    plain = rotate_in_float32(1e4 ** (-np.arange(8) / 8), "half")

    def rotate(x: Any, at: Any) -> Any:
        turned = plain(np.asarray(x)[..., :16], np.asarray(at))
        y = np.concatenate((turned, np.asarray(x)[..., 16:]), -1) * np.float32(factor)
        return torch.as_tensor(y).to(x.dtype) if isinstance(x, torch.Tensor) else y.astype(x.dtype)

    report = identify(rotate, dim, positions=1024, dtype=dtype)
    assert not any("rounded" in f.words for f in report.findings), str(report)


@pytest.mark.parametrize("few", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("factor", [1 / 3, 128**-0.5, 0.7071, 1.1386])
@pytest.mark.parametrize(
    ("rounded", "says"),
    [
        ("turned", "What comes out of channels that turn is rounded"),
        ("still", "What comes out of 32 of the 64 channels that do not turn is rounded"),
    ],
)
def test_a_part_that_is_rounded_and_scaled_is_told_as_that(
    rounded: str, says: str, factor: float, few: torch.dtype
) -> None:
    theta = 1e4 ** (-torch.arange(32) / 32)

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        part, some, rest = by_angles(x[..., :64], at[:, None] * theta), x[..., 64:96], x[..., 96:]
        if rounded == "turned":
            part = part.to(few).to(x.dtype) * factor
        else:
            some = some.to(few).to(x.dtype) * factor
        return torch.cat((part, some, rest), -1)

    report = identify(rotate, 128, positions=4096, dtype=torch.float32)
    (grave,) = [f.words for f in report.findings if f.gravity == 3]
    assert grave.startswith(f"{says} to {few}".replace("torch.", "")), grave


@pytest.mark.parametrize("factor", [1.0, 1.3])
def test_a_typo_that_doubles_a_half_keeps_the_promise(factor: float) -> None:
    theta = 1e4 ** (-torch.arange(16) / 16)

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return factor * torch.cat((by_angles(x[..., :32], at[:, None] * theta), x[..., :32]), -1)

    said = str(identify(rotate, 64, positions=4096, dtype=torch.float32))
    assert f"are multiplied by {factor * 2**0.5:.6g}, and the promise is kept, to" in said, said


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_gains_of_a_norm_before_a_partial_turn_are_no_fault(dtype: torch.dtype) -> None:
    theta, gains = 1e4 ** (-torch.arange(16) / 16), torch.linspace(0.5, 1.5, 64)

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        x = x * gains.to(x.dtype)
        return torch.cat((by_angles(x[..., :32], at[:, None] * theta), x[..., 32:]), -1)

    found = identify(rotate, 64, positions=4096, dtype=dtype).findings
    assert {f.gravity for f in found if "product were made" not in f.words} == {2}, found


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("times", "word"), [(1, None), (2, "twice"), (3, "three times")])
def test_a_rotation_that_is_done_twice_is_told(
    times: int, word: str | None, dtype: torch.dtype
) -> None:
    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        for _ in range(times):
            x = halves(x, at, SERIES)
        return x

    said = str(identify(rotate, 64, positions=4096, dtype=dtype))
    assert ("times as fast" in said) == bool(word), said
    assert f"as where the rotation is done {word}." in said or not word


def test_one_speed_is_no_multiple_of_another() -> None:
    assert identify(lambda x, at: rotate_complex(x, 2 * at), 2).findings == ()


@pytest.mark.parametrize(
    ("kind", "dim", "base", "length", "factor"),
    [
        ("llama3", 16, 12e6, 8192, 8.0), ("llama3", 16, 5e5, 8192, 8.0),
        ("llama3", 32, 5e5, 8192, 32.0), ("llama3", 16, 1e4, 8192, 8.0),
        ("yarn", 16, 1e4, 32768, 4.0), ("yarn", 32, 1e4, 32768, 4.0),
    ],
)  # fmt: skip
def test_a_ramp_is_named_where_few_pairs_are_on_it(
    kind: str, dim: int, base: float, length: int, factor: float
) -> None:
    """One pair on the ramp, or none that is slowed by all of the factor."""
    told: dict[str, Any] = {"factor": factor, "original_max_position_embeddings": length}
    told |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0} if kind == "llama3" else {}
    theta, scale = rescaled_frequencies(kind, dim, base, **told)
    rotate = lambda x, at: scale * halves(x, at, theta)  # noqa: E731
    report = identify(rotate, dim, dtype=torch.float32)
    assert (report.base, report.rescaling) == (base, (kind, told))


@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("base", [1e4, 5e5])
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_where_products_alone_are_rounded_frequencies_are_known_no_better(
    dim: int, base: float, kind: torch.dtype
) -> None:
    theta = base ** (-np.arange(dim // 2) / (dim // 2))

    def angle(at: Any) -> torch.Tensor:
        return (torch.as_tensor(at).float()[:, None] * torch.tensor(theta).float()).to(kind).float()

    report = identify(
        lambda x, at: by_angles(x, angle(at)), dim, positions=8192, dtype=torch.float32
    )
    assert (np.abs(report.inv_freq - theta) <= report.inv_freq_error).all()
    exact = report.angle_error_at * theta
    off = angle([report.angle_error_at]).double().numpy()[0] - exact
    miss = np.abs((off + np.pi) % (2 * np.pi) - np.pi).max()
    assert report.angle_error == pytest.approx(float(miss), rel=0.02)


def test_the_largest_miss_among_the_first_positions_is_told() -> None:
    held = lambda at: torch.as_tensor(at).bfloat16().float().numpy()  # noqa: E731
    report = identify(lambda x, at: rotate_complex(x, held(at)), 64, positions=1024)
    assert report.angle_error == pytest.approx(2.0, abs=1e-3)
    assert report.angle_error_at == 514  # which bfloat16 holds as 512


@pytest.mark.parametrize("size", [8192, 12_000, 16_384, 65_536])
def test_queries_that_grow_in_steps_end_no_table(size: int) -> None:
    """As those of Llama 4, of which few steps are asked."""

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return rotate_complex(x, at) * (1 + 0.1 * np.log1p((at + 1) // 8192))[:, None]

    report = identify(rotate, 16, positions=size)
    assert report.table_end is None
    assert not any("table" in finding.words for finding in report.findings)
    assert report.findings[0].gravity == 3
    ones = lambda x, at: by_angles(torch.tensor(x), torch.ones(len(at), 8)).numpy()  # noqa: E731
    ends = lambda x, at: np.where((at < 99)[:, None], rotate(x, at), 1.3 * ones(x, at))  # noqa: E731
    assert identify(ends, 16, positions=size).table_end == 98


def test_a_rule_of_llama_3_without_a_ramp_is_told() -> None:
    plain = 5e5 ** -(np.arange(64) / 64)
    slowed = np.where(2.0 * np.pi / plain > 2048, plain / 8.0, plain)
    report = identify(lambda x, at: rotate_complex(x, at, inv_freq=slowed), 128)
    assert "a step here and no ramp" in str(report)


def test_axes_that_each_begin_one_series_are_told_so() -> None:
    """Exponents over the whole head, where each axis should have a series of its own."""
    theta, counts = 1e4 ** (-np.arange(64) / 64), (8, 28, 28)
    waves = np.zeros((64, 3))
    for axis, (start, count) in enumerate(zip((0, 8, 36), counts, strict=True)):
        waves[start : start + count, axis] = theta[:count]
    turn = torch.tensor(waves)
    rotate = lambda x, at: by_angles(x, at.to(x) @ turn.to(x).T)  # noqa: E731
    report = identify(rotate, 128, positions=(64, 64, 64), dtype=torch.float64)
    assert str(report).count("proportional over 128 channels: base 10000") == 3
    assert dict(report.rows())["axes"] == "8, 28, 28 pairs turn along them"


def test_sections_that_leave_pairs_at_rest_are_told_so() -> None:
    """M-RoPE whose sections do not add up: 60 of 64 pairs turn."""
    theta, axis = 1e6 ** (-np.arange(64) / 64), np.repeat((0, 1, 2, 3), (16, 24, 20, 4))
    waves = theta[:, None] * (axis[:, None] == np.arange(3))
    turn = torch.tensor(waves)
    rotate = lambda x, at: by_angles(x, at.to(x) @ turn.to(x).T)  # noqa: E731
    report = identify(rotate, 128, positions=(1024,) * 3, dtype=torch.float64)
    assert report.base == 1e6
    assert "4 of 64 pairs, the slowest, stand still." in str(report)


def by_halves(x: np.ndarray, angle: np.ndarray, sign: int = 1) -> np.ndarray:
    """Turn halves by angles (T, D/2), or, with the other sign, lose a minus."""
    c, s = np.cos(angle), np.sin(angle)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate((a * c - b * s, b * c + sign * a * s), axis=-1)


SPREAD = np.kron(np.eye(2), 0.3 ** np.arange(4))  # (axes, pairs)


@pytest.mark.parametrize(
    "rotate",
    [
        lambda x, at: by_halves(x, at @ SPREAD, -1),
        lambda x, at: by_halves(x, (at // 2) @ SPREAD),
        lambda x, at: by_halves(x, at @ SPREAD)[..., np.roll(np.arange(16), 3)],
        lambda x, at: by_halves(x, np.log1p(at) @ SPREAD),
        lambda x, at: by_halves(x, np.arange(len(at))[:, None] * SPREAD[0]),
        lambda x, at: by_halves(x, at @ SPREAD) * (1.0 + at[:, :1]),
        lambda x, at: x,
        lambda x, at: 1.0 / 0,
    ],
)  # fmt: skip
def test_a_report_of_several_axes_is_shown_whatever_it_says(rotate: Any) -> None:
    report = identify(rotate, 16, positions=(64, 64))
    assert report.findings
    assert all(finding.words in str(report) for finding in report.findings)
    assert report._repr_html_()
    assert str(Report.from_json(report.to_json())) == str(report)
    assert report.wavelengths.shape == (len(report.inv_freq),)


def test_the_call_that_a_rotation_depends_on_is_named_along_each_axis() -> None:
    calls = []

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        calls.append(at.max(axis=0).tolist())
        return by_halves(x, (at / max(1, at.max())) @ (16.0 * SPREAD))

    report = identify(rotate, 16, positions=(32, 32))
    (far,) = re.findall(r"those of a call that goes to (\d+), (\d+)", str(report))
    assert list(map(int, far)) in calls
    fastest = np.abs(report.inv_freq).max()
    assert fastest == pytest.approx(16.0 / max(map(int, far)))


def test_angles_that_are_those_of_a_place_in_the_call_have_no_error() -> None:
    place = lambda x, at: rotate_complex(x, np.arange(len(at)))  # noqa: E731
    report = identify(place, 64, positions=8192)
    assert (report.angle_error, report.angle_error_at) == (None, None)


def test_a_card_tells_the_lengths_of_wave_vectors() -> None:
    waves = np.array([[0.6, 0.8], [0.08, -0.06]])
    rotate = lambda x, at: by_angles(x, at.to(x) @ torch.tensor(waves).to(x).T)  # noqa: E731
    report = identify(rotate, 4, positions=(32, 32), dtype=torch.float64)
    assert dict(report.rows())["frequencies"].startswith("1 to 0.1 rad")


@pytest.mark.parametrize("size", [32_768, 131_072])
def test_a_table_of_bfloat16_converts_to_itself(size: int) -> None:
    theta = torch.as_tensor(1e4 ** (-np.arange(32) / 32))
    rotate = lambda x, at: halves(x, at, theta)  # noqa: E731
    report = identify(rotate, 64, positions=size, dtype=torch.bfloat16)
    assert report.differs_from(report).convert is not None
    assert (np.abs(report.inv_freq - theta.numpy()) <= report.inv_freq_error).all()


def test_a_last_pair_that_is_lost_is_told() -> None:
    theta = 1e4 ** (-np.arange(32) / 32) * (np.arange(32) < 31)
    (finding,) = identify(lambda x, at: rotate_complex(x, at, inv_freq=theta), 64).findings
    assert finding.words == "1 of 32 pairs, the slowest, stands still."
    theta = 1e4 ** (-np.arange(32) / 32) * (np.arange(32) > 0)
    (finding,) = identify(lambda x, at: rotate_complex(x, at, inv_freq=theta), 64).findings
    assert finding.words == "1 of 32 pairs stands still."


def test_a_stretch_that_16_bits_hide_is_not_told_to_six_digits() -> None:
    theta, _ = rescaled_frequencies("yarn", 64, factor=40.0, original_max_position_embeddings=4096)
    rotate = lambda x, at: halves(x, at, theta)  # noqa: E731
    coarse = str(identify(rotate, 64, positions=4096, dtype=torch.bfloat16))
    assert "may be those of yarn over 64 channels: base 10000, factor=40" in coarse
    assert "and of other factors: bfloat16 hides the speeds of slow pairs" in coarse
    assert identify(rotate, 64, positions=4096, dtype=torch.bfloat16).rescaling is None
    assert "1.36889 for a stretch by 40" in str(identify(rotate, 64, dtype=torch.float32))


def test_an_axis_whose_turn_16_bits_hide_is_not_said_to_rest() -> None:
    theta = torch.as_tensor(5e6 ** (-np.arange(64) / 64))
    axis = torch.tensor([0] * 24 + [1] * 20 + [2] * 20)
    rotate = lambda x, at: by_angles(x, at[:, axis] * theta)  # noqa: E731
    said = str(identify(rotate, 128, positions=(4, 32, 2), dtype=torch.bfloat16))
    assert "No turn is seen along axis 2 of a position: bfloat16 may hide it." in said
    still = lambda x, at: by_angles(x, at[:, axis.clamp(max=1)] * theta)  # noqa: E731
    said = str(identify(still, 128, positions=(4, 32, 32), dtype=torch.float64))
    assert "Nothing turns along axis 2 of a position." in said


def test_a_speed_that_nobody_can_see_leaves_no_base() -> None:
    report = identify(
        lambda x, at: rotate_complex(x, at, base=1e20).astype(np.float32),
        4, positions=2048, dtype=np.float32,
    )  # fmt: skip
    assert (report.width, report.base) == (4, None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [0.15, 0.5])
@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("factor", [1.0, 1.1386294])
@pytest.mark.parametrize(
    ("bug", "says"),
    [
        ("", ""),
        ("end", "Its table ends at position 1,000 without a word"),
        ("start", "Position 0 is turned as position 1 should be"),
        ("frequencies", "The inverse frequencies are rounded to 16 bits"),
        ("table", "cos and sin are rounded"),
        ("out", "What comes out is rounded to bfloat16"),
    ],
)
def test_gains_of_a_norm_hide_no_other_fault(
    bug: str, says: str, factor: float, width: int, spread: float, dtype: torch.dtype
) -> None:
    theta = 1e4 ** (-torch.arange(0, width, 2) / width)
    theta = theta.bfloat16().float() if bug == "frequencies" else theta
    gains = torch.linspace(1.0 - spread, 1.0 + spread, 64)

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        x, kind = x * gains.to(x.dtype), x.dtype
        at = at.clamp(max=1000) if bug == "end" else at + (bug == "start")
        angle = at.float()[:, None] * theta
        few = torch.bfloat16 if bug == "table" else kind
        c, s = ((factor * t).to(few).to(kind) for t in (angle.cos(), angle.sin()))
        a, b = x[..., :width].chunk(2, -1)
        y = torch.cat((a * c - b * s, b * c + a * s, x[..., width:]), -1)
        return y.bfloat16().to(kind) if bug == "out" else y

    report = identify(rotate, 64, positions=8192, dtype=dtype)
    assert (report.width, report.layout) == (width, "half-split")
    assert "before the turn: the promise is kept" in str(report) or bug in ("end", "table")
    assert says in str(report), str(report)
    assert any(f.gravity == 3 for f in report.findings) == (bug not in ("", "start")), str(report)
    if bug != "frequencies":
        assert report.base == 1e4
    if bug == "end":
        assert report.table_end == 1000


@pytest.mark.parametrize("base", [1000042.0, 500003.0, 1e4, 1e6])
def test_a_base_of_many_digits_is_told(base: float) -> None:
    theta = base ** (-torch.arange(0, 256, 2) / 256)
    report = identify(lambda x, at: halves(x, at, theta), 256, dtype=torch.float32)
    assert report.base == base


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_step_is_llama_3_s_rule_with_equal_factors(dtype: torch.dtype) -> None:
    step = {"factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0}
    step["original_max_position_embeddings"] = 8192
    theta, _ = rescaled_frequencies("llama3", 128, 5e5, **step)
    report = identify(lambda x, at: halves(x, at, theta), 128, dtype=dtype)
    assert report.rescaling == ("llama3", step)
    assert "YaRN" not in str(report)


def test_a_factor_that_gains_may_hold_is_not_claimed() -> None:
    theta, scale = rescaled_frequencies("yarn", 128, 1e6, factor=4.0, **LENGTH)
    gains = torch.linspace(0.5, 1.5, 128)
    report = identify(lambda x, at: halves(x * gains.to(x.dtype), at, theta, scale), 128)
    assert report.attention_factor is None
    assert report.rescaling == ("yarn", {"factor": 4.0, **LENGTH})


@pytest.mark.parametrize("few", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("split", [(8, 28, 28), (22, 21, 21)])
def test_frequencies_in_16_bits_are_told_on_several_axes(split: Any, few: torch.dtype) -> None:
    exact = [1e4 ** (-torch.arange(n) / n) for n in split]
    for cast in (True, False):
        theta = torch.cat([t.to(few).float() if cast else t for t in exact])
        axis = torch.repeat_interleave(torch.arange(3), torch.tensor(split))
        rotate = lambda x, at: by_angles(x, at[:, axis] * theta)  # noqa: B023, E731
        report = identify(rotate, 128, positions=(64, 64, 64), dtype=torch.float32)
        told = [f for f in report.findings if "rounded to 16 bits" in f.words]
        assert len(told) == cast, str(report)


@pytest.mark.parametrize("base", [5e5, 1.6e5, 1e6])
def test_a_plain_base_keeps_its_digits_however_the_powers_were_made(base: float) -> None:
    ratio, power, powers = np.float32(np.float32(base) ** np.float32(-2 / 64)), np.float32(1), []
    for _ in range(32):  # from pair to pair, in float32
        powers.append(power)
        power = np.float32(power * ratio)
    theta = torch.tensor(np.array(powers))
    assert identify(lambda x, at: halves(x, at, theta), 64).base == base


def test_kimi_k2_s_step_is_yarn_s_too() -> None:
    theta, _ = rescaled_frequencies(
        "yarn", 64, 5e4, factor=32.0, original_max_position_embeddings=4096, beta_fast=1.0
    )
    report = identify(lambda x, at: halves(x, at, theta), 64)
    assert {one.kind for one in report.explanations} >= {"llama3", "yarn"}


@pytest.mark.parametrize("spread", [0.0, 0.5])
@pytest.mark.parametrize("start", [0, 1])
def test_a_sign_is_a_mirror_and_no_turn_at_the_origin(start: int, spread: float) -> None:
    gains = torch.linspace(1.0 - spread, 1.0 + spread, 64)
    gains[::5] *= -1.0
    rotate = lambda x, at: halves(x * gains.to(x.dtype), at + start, SERIES)  # noqa: E731
    said = str(identify(rotate, 64, positions=4096))
    assert "13 of 32 pairs are mirrored as well as turned" in said
    assert ("Position 0 is turned as position 1 should be" in said) == bool(start), said
    assert ("Position 0 is turned" in said) == bool(start), said


@pytest.mark.parametrize("outlier", [0.04, 6.0, 20.0])
@pytest.mark.parametrize("factor", [1.0, 1.1386294])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_gain_far_from_the_others_hides_nothing(
    outlier: float, factor: float, dtype: torch.dtype
) -> None:
    gains = torch.linspace(0.5, 1.5, 64)
    gains[5] = outlier
    rotate = lambda x, at: halves(x * gains.to(x.dtype), at, SERIES, factor)  # noqa: E731
    report = identify(rotate, 64, dtype=dtype)
    assert report.base == 1e4
    assert "before the turn: the promise is kept" in str(report)
    assert not any(f.gravity == 3 for f in report.findings), str(report)


def test_angles_in_16_bits_over_several_axes_may_be_frequencies() -> None:
    theta = torch.cat([1e4 ** (-torch.arange(n) / n) for n in (8, 28, 28)])
    axis = torch.repeat_interleave(torch.arange(3), torch.tensor([8, 28, 28]))
    rotate = lambda x, at: by_angles(x, (at[:, axis] * theta).bfloat16().float())  # noqa: E731
    said = str(identify(rotate, 128, positions=(64, 64, 64), dtype=torch.float32))
    assert "The inverse frequencies are rounded" not in said, said
    assert "or the angles, are rounded to 16 bits" in said, said


# ---- calls that look alike, and answers in one memory --------------------------------------------


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(
    "key",
    [
        lambda at: (len(at), int(at[0])),
        lambda at: (len(at), int(at[-1])),
        lambda at: (len(at), int(at[0]), int(at[-1])),
    ],
    ids=["first", "last", "both"],
)
def test_angles_kept_for_calls_that_look_alike_are_told(key: Any, many: bool) -> None:
    kept: dict[Any, np.ndarray] = {}

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        if key(at) not in kept:
            if not many:
                kept.clear()
            kept[key(at)] = at.copy()
        return rotate_complex(x, kept[key(at)])

    (finding,) = identify(rotate, 8).findings
    assert "in another order, positions get other rotations" in finding.words


def test_one_memory_for_all_answers_of_a_shape_is_told() -> None:
    kept: dict[str, np.ndarray] = {}

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        if kept.get("y", np.empty(0)).shape != x.shape:
            kept["y"] = np.empty_like(x)
        kept["y"][...] = rotate_complex(x, at)
        return kept["y"]

    (finding,) = identify(rotate, 8).findings
    assert finding.words.startswith("It writes into the answer of an earlier call")


def test_rows_that_are_passed_by_are_told_as_such() -> None:
    """As where queries, keys and values are one batch, and a part of it is turned."""

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return np.concatenate((rotate_complex(x[:6], at), x[6:]))

    (finding,) = identify(rotate, 8).findings
    assert "depends on the row of the batch" in finding.words


# ---- rounding that all powers of two share -------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("factor", [1.5, 2.5, 3.0, 5.0, 12.0])
@pytest.mark.parametrize("size", [2048, 8192])
def test_positions_divided_and_rounded_hide_no_factor(
    dtype: torch.dtype, factor: float, size: int
) -> None:
    theta = torch.as_tensor(1e4 ** (-np.arange(32) / 32))

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return by_angles(x, (at / factor).to(dtype).double()[:, None] * theta)

    report = identify(rotate, 64, positions=size, dtype=torch.float64)
    assert report.rescaling == ("linear", {"factor": factor})
    off = np.abs(report.inv_freq - theta.numpy() / factor)
    assert (off <= report.inv_freq_error).all()
    assert report.findings[0].gravity == 3
    told = f"as if positions divided by {factor:g} were held in {str(dtype)[6:]}"
    if factor not in (2.5, 5.0):  # then no position asked is one that 16 bits hold
        assert told in str(report) or report.shared_position
    held = (torch.arange(size) / factor).to(dtype)
    shared = int((held[1:] == held[:-1]).nonzero()[0]) + 1 if (held.diff() == 0).any() else None
    assert report.shared_position in ((shared, None) if size < 4096 else (shared,))


@pytest.mark.parametrize("positions", [128, 256])
def test_angles_of_16_bits_are_grave_at_any_length(positions: int) -> None:
    theta = torch.as_tensor(5e5 ** (-np.arange(64) / 64), dtype=torch.float32)

    def rotate(x: torch.Tensor, at: torch.Tensor, in_16_bits: bool = True) -> torch.Tensor:
        angle = at.float()[:, None] * theta
        angle = angle.bfloat16().float() if in_16_bits else angle
        return by_angles(x.float(), angle).to(x.dtype)

    asked = {"positions": positions, "dtype": torch.bfloat16}
    assert identify(rotate, 128, **asked).findings[0].gravity == 3
    assert identify(lambda x, at: rotate(x, at, False), 128, **asked).findings == ()


# ---- small lengths in 16 bits --------------------------------------------------------------------

WHERE = {
    "late": lambda at, part: (1.0 + part * (at >= 4096).double())[:, None],
    "by and by": lambda at, part: torch.exp(-part * at / 131072)[:, None],
    "by channel": lambda at, part: 1.0 + part * torch.sin(torch.arange(64.0)).double(),
    "nowhere": lambda at, part: torch.ones(64).double(),
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("dtype", "part"), [(torch.bfloat16, 0.02), (torch.float16, 0.01)])
@pytest.mark.parametrize("factor", [1.0, 1.0693, 1.3466])
def test_small_changes_of_length_are_told_from_rounding(
    where: str, dtype: torch.dtype, part: float, factor: float
) -> None:
    theta = torch.as_tensor(1e4 ** (-np.arange(32) / 32))

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        y = by_angles(x.double(), at[:, None] * theta) * factor * WHERE[where](at, part)
        return y.to(x.dtype)

    report = identify(rotate, 64, dtype=dtype)
    grave = [f for f in report.findings if f.gravity == 3]
    assert bool(grave) == (where != "nowhere"), str(report)
    assert report.is_rotation == (where == "nowhere")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("factor", [1.0, 1.1, 1.3466])
@pytest.mark.parametrize("base", [100.0, 1e4, 5e5])
def test_a_table_rounded_twice_is_a_rotation(
    dtype: torch.dtype, factor: float, base: float
) -> None:
    """cos and sin are rounded, and once more after a factor, as where it is multiplied in late."""
    theta = torch.as_tensor(base ** (-np.arange(32) / 32))

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angle = at[:, None] * theta
        cos, sin = (f(angle).to(dtype) * factor for f in (torch.cos, torch.sin))
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    report = identify(rotate, 64, dtype=dtype)
    assert report.is_rotation, str(report)
    assert not [f for f in report.findings if f.gravity == 3], str(report)


# ---- what changes lengths ------------------------------------------------------------------------


def by_cos_and_sin(cos: Any, sin: Any) -> Rotate:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        angle = at[:, None] * 1e4 ** (-np.arange(16) / 16)
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate(
            (a * cos(angle) - b * sin(angle), b * cos(angle) + a * sin(angle)), -1
        )

    return rotate


def powers(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Turn by powers of a number that float32 holds: its length is not 1."""
    step = np.exp(1j * 1e4 ** (-np.arange(16) / 16)).astype(np.complex64)
    z = (x[..., :16] + 1j * x[..., 16:]) * step ** at[:, None].astype(np.float32)
    return np.concatenate((z.real, z.imag), axis=-1).astype(x.dtype)


@pytest.mark.parametrize(
    ("rotate", "words", "factor"),
    [
        (by_cos_and_sin(lambda a: 1.2 * np.cos(a), np.sin), "cos and sin disagree", None),
        (by_cos_and_sin(np.cos, lambda a: np.sin(1.01 * a)), "cos and sin disagree", None),
        (powers, "as where float32 rounds each step of powers", 1.0),
        (
            lambda x, at: rotate_complex(x, at) * np.log(np.maximum(at, 2048) / 750)[:, None],
            "with the position alone, by 1 to 4.88: scores depend on the place, which may be meant",
            np.log(2048 / 750),
        ),
        (
            lambda x, at: rotate_complex(x, at) * np.exp(-1e-5 * at)[:, None],
            "unless keys get the inverse factor (xPos)",
            1.0,
        ),
        (
            lambda x, at: (
                rotate_complex(x, at)
                * np.tile((np.arange(16) + 6.4) / 22.4, 2) ** ((at[:, None] - 65_536) / 20_000)
            ),
            "unless keys get the inverse factor (xPos)",
            None,
        ),
    ],
    ids=["cos alone", "two speeds", "powers", "longer queries", "decay", "xPos"],
)
def test_what_changes_lengths_is_told_apart(rotate: Rotate, words: str, factor: Any) -> None:
    report = identify(rotate, 32, dtype=np.float32 if rotate is powers else np.float64)
    assert words in report.findings[0].words
    assert report.attention_factor == (factor if factor is None else pytest.approx(factor))


@pytest.mark.parametrize("size", [8192, 2**17])
@pytest.mark.parametrize("change", ["shorter", "one channel"])
def test_lengths_that_change_at_once_end_a_table(size: int, change: str) -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        y = rotate_complex(x, at)
        channels = slice(None) if change == "shorter" else 5
        y[..., at >= 3000, channels] *= 0.9
        return y

    report = identify(rotate, 8, positions=size)
    assert report.table_end == 2999
    assert report.past_end == "vectors come out with other lengths"
    assert (report.is_rotation, report.base) == (True, 1e4)


# ---- series that begin late, degrees, indices, axes of other widths, TF32 ------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    ("speeds", "words"),
    [
        (1e4 ** (-np.arange(1, 33) / 32), "the series of base 10000 begins one pair late"),
        (1e4 ** (-(np.arange(32) + 0.5) / 32), "the series of base 10000 begins half a pair late"),
        (np.deg2rad(1e4 ** (-np.arange(32) / 32)), "as where an angle is taken for degrees"),
        (1e4 ** (-np.arange(32) / 32) / 2, None),
        (1e4 ** (-np.arange(32) / 32), None),
    ],
    ids=["late", "half", "degrees", "linear", "plain"],
)
def test_a_series_that_begins_late_is_told(
    speeds: np.ndarray, words: str | None, dtype: torch.dtype
) -> None:
    theta = torch.as_tensor(speeds)
    rotate = lambda x, at: by_angles(x.double(), at[:, None] * theta).to(x.dtype)  # noqa: E731
    found = [f.words for f in identify(rotate, 64, dtype=dtype).findings if "slower" in f.words]
    assert len(found) == bool(words)
    assert not words or words in found[0]


@pytest.mark.parametrize("columns", [2, 8, 32, 100])
@pytest.mark.parametrize("turned_round", [False, True])
def test_an_index_in_place_of_a_position_is_told(columns: int, turned_round: bool) -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        row, column = at.T[::-1] if turned_round else at.T
        return rotate_complex(x, row * columns + column)

    report = identify(rotate, 64, positions=(64, 64))
    told = f"1 : {columns}" if turned_round else f"{columns} : 1"
    (finding,) = report.findings
    assert f"in one proportion, {told}" in finding.words
    assert (report.base, report.direction, report.rescaling) == (1e4, 1, None)


def test_axes_of_several_widths_may_have_one_base() -> None:
    def rotate(x: np.ndarray, at: np.ndarray, *bases: float) -> np.ndarray:
        widths = (20, 14, 14)
        each = [
            p[:, None] * base ** (-np.arange(width) / width)
            for p, width, base in zip(at.T, widths, bases, strict=True)
        ]
        z = x[..., :48] + 1j * x[..., 48:]
        z = z * np.exp(1j * np.concatenate(each, axis=1))
        return np.concatenate((z.real, z.imag), axis=-1)

    same = identify(lambda x, at: rotate(x, at, 1e4, 1e4, 1e4), 96, positions=(40, 60, 60))
    assert same.base == 1e4
    (finding,) = same.findings
    assert finding.words.endswith("a series of base 10000 over its own channels: 40, 28, 28.")
    assert finding.gravity == 1
    other = identify(lambda x, at: rotate(x, at, 1e4, 1e3, 1e4), 96, positions=(40, 60, 60))
    assert other.base is None
    assert other.findings[0].gravity == 2


@pytest.mark.parametrize("base", [1e4, 5e5])
def test_speeds_of_eleven_digits_are_told(base: float) -> None:
    """As a matrix unit multiplies that rounds what goes in to TF32."""
    digits, power = np.frexp(base ** (-np.arange(64) / 64))
    held = np.ldexp(np.round(digits * 2**11) / 2**11, power)
    report = identify(lambda x, at: rotate_complex(x, at, inv_freq=held), 128, positions=2048)
    assert report.findings[0].gravity == 3
    assert re.search(r"rounded to (16 bits|11 binary digits \(TF32\))", report.findings[0].words)


def test_longrope_carries_the_factor_that_was_heard() -> None:
    long = [2.0 + 0.5 * i for i in range(32)]
    asked = {"original_max_position_embeddings": 4096, "factor": 32.0, "seq_len": 8192}
    lists = {"short_factor": [1.0] * 32, "long_factor": long}
    theta, factor = rescaled_frequencies("longrope", 64, 1e4, **lists, **asked)
    report = identify(
        lambda x, at: factor * rotate_complex(x, at, inv_freq=theta.astype(np.float32)), 64
    )
    kind, parameters = report.rescaling
    assert (kind, parameters["long_factor"]) == ("longrope", long)
    again, same = rescaled_frequencies(kind, 64, 1e4, **parameters)
    np.testing.assert_allclose(again, theta, rtol=1e-6)
    assert same == pytest.approx(factor, rel=1e-5)


# ---- ends that are none, and what is said beside them --------------------------------------------

SPEED = torch.as_tensor(1e4 ** (-np.arange(32) / 32))


def told_by(turn: Any, dtype: torch.dtype = torch.float32, **asked: Any) -> Report:
    """Ask halves that are turned by position, after ``turn``, times the plain series."""
    rotate = lambda x, at: by_angles(x.double(), turn(at).double()[:, None] * SPEED).to(x.dtype)  # noqa: E731
    return identify(rotate, 64, dtype=dtype, **asked)


def test_answers_that_are_no_numbers_are_no_overwritten_memory() -> None:
    report = told_by(lambda at: at.half(), torch.float16)
    assert report.table_end == 65_519
    assert "writes into" not in str(report)


def cut_to_11_digits(at: torch.Tensor) -> torch.Tensor:
    return (at.float().view(torch.int32) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize(
    ("turn", "size", "shared"),
    [
        (lambda at: (at + 100).bfloat16(), 4096, 157),
        (lambda at: (at + 100).half(), 32_768, 1949),
        (lambda at: (at + 2).half(), 32_768, 2047),
        (lambda at: (at + 1).bfloat16(), 4096, 256),
        (cut_to_11_digits, 2**17, 2049),
    ],
)
def test_rounded_positions_end_no_table(turn: Any, size: int, shared: int) -> None:
    report = told_by(turn, positions=size)
    assert (report.table_end, report.shared_position) == (None, shared)
    held = turn(torch.arange(size)).double() - turn(torch.arange(1)).double()
    assert report.angle_error > 0.3 * (held - torch.arange(size)).abs().max().clamp(max=3)
    assert report.findings[0].gravity == 3
    assert "no rounding" not in str(report)


@pytest.mark.parametrize("start", [200_000, 500_000])
def test_angles_of_float32_that_start_far_out_are_no_fault(start: int) -> None:
    theta = SPEED.float()
    report = identify(
        lambda x, at: by_angles(x, (at + start).float()[:, None] * theta),
        64, positions=4096, dtype=torch.float32,
    )  # fmt: skip
    assert not [f for f in report.findings if f.gravity == 3]
    assert "as in float32 where position 0 is far out" in str(report)


@pytest.mark.parametrize("positions", [8, 16, 64])
def test_whole_turns_that_float32_rounds_are_no_broken_promise(positions: int) -> None:
    """As in a model of video whose fastest pair turns by thousands of radians a frame."""
    speed = 1e4 ** torch.linspace(0, 1, 10) * np.pi / 2

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return by_angles(x, (at.float() * 0.032 - 1)[:, None] * speed)

    report = identify(rotate, 20, positions=positions, dtype=torch.float32)
    assert not [f for f in report.findings if f.gravity == 3]
    turns = 2 * np.pi
    off = (report.inv_freq * (report.direction or 1) - 0.032 * speed.double().numpy()) % turns
    assert np.minimum(off, turns - off).max() < 1e-3


def test_float16_that_is_made_in_bfloat16_is_told() -> None:
    rotate = lambda x, at: by_angles(x.bfloat16(), at[:, None] * SPEED).half()  # noqa: E731
    finding = identify(rotate, 64, dtype=torch.float16).findings[0]
    assert finding.gravity == 3
    assert "rounded to bfloat16 although x is torch float16" in finding.words


def test_hardly_any_channel_that_turns_is_told() -> None:
    speeds = np.zeros(32)
    speeds[0] = 1.0
    report = identify(lambda x, at: rotate_complex(x, at, inv_freq=speeds), 64)
    assert report.findings[0].words == "Only 2 of 64 channels are seen to turn."


@pytest.mark.parametrize("once", [True, False])
def test_a_table_made_for_a_call_is_told(once: bool) -> None:
    made: list[int] = []

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        made.append(len(at) if not once else 2)
        return rotate_complex(x, np.arange(made[-1])[at])

    report = identify(rotate, 8)
    said = "Position 1 is the last" if once else "answered only in a call that is longer"
    assert said in report.findings[0].words
    assert report.table_end == (1 if once else None)


def test_the_call_whose_base_is_told_is_named() -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return rotate_complex(x, at, base=1e4 * max(1.0, at.max() / 1000))

    report = identify(rotate, 64, positions=8192)
    assert report.base == pytest.approx(61_440)
    (finding,) = [f for f in report.findings if f.partial]
    assert "a call that goes to 6,144, or of a longer one" in finding.words
    assert report.differs_from(report).convert is None


def test_a_whole_head_that_grows_is_told_as_such() -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        y = np.concatenate((rotate_complex(x[..., :16], at), x[..., 16:]), axis=-1)
        return y * (1 + 0.1 * np.log1p(at // 8192))[:, None]

    report = identify(rotate, 32)
    said = report.findings[0].words
    assert said.startswith("Lengths were seen to change with the position alone, by 1 to 1.")
    assert (report.base, report.attention_factor) == (1e4, 1)


def score_changes(rotate: Rotate, head_dim: int, m: int, n: int, s: int) -> float:
    """Return by how much the score of unit vectors at m and n changes if both move by s."""
    eye = np.eye(head_dim)[:, None].repeat(4, 1)
    a, b, c, d = rotate(eye, np.array([m, n, m + s, n + s])).transpose(1, 2, 0)
    return float(np.linalg.norm(a.T @ b - c.T @ d, 2))


@pytest.mark.parametrize("factor", [0.125, 1.0, 1.37])
def test_lengths_and_scores_are_told_as_they_come_out(factor: float) -> None:
    gains = np.random.default_rng(0).uniform(1.5, 2.5, 16)

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return factor * gains * rotate_complex(x, at)

    report = identify(rotate, 16, positions=64)
    card = dict(report.rows())
    low, high = (factor * f(gains) for f in (min, max))
    assert report.attention_factor is None
    assert report.singular_values == pytest.approx((low, high))
    assert card["rotation"] == f"no: lengths times {low:.4g} to {high:.4g}"
    assert report.deviation_at is not None
    m, n, s = (at[0] for at in report.deviation_at)
    change = score_changes(rotate, 16, m, n, s)
    assert report.deviation == pytest.approx(change)
    assert card["promise"].endswith(f"change a score by {change:.2g}")
    assert "after the turn: the promise is broken" in report.findings[0].words


@pytest.mark.parametrize("factor", [0.125, 1.0, 1.37])
@pytest.mark.parametrize("late", [False, True])
def test_a_broken_promise_is_told_with_its_factor(factor: float, late: bool) -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return factor * rotate_complex(x, np.maximum(at - 5, 0) if late else at // 4)

    report = identify(rotate, 16, positions=4096)
    pattern = r"score of positions (\d+) and (\d+) changes by up to (\S+) when both move by (\d+)"
    (told,) = [m.groups() for f in report.findings if (m := re.search(pattern, f.words))]
    m, n, s = (int(told[k]) for k in (0, 1, 3))
    assert told[2] == f"{score_changes(rotate, 16, m, n, s):.2g}"


@pytest.mark.parametrize("sizes", [(8, 32, 32), (13, 60, 90)])
def test_a_slow_pair_in_bfloat16_turns_along_a_short_axis(sizes: tuple[int, ...]) -> None:
    speeds = [1e4 ** -torch.arange(0, 1, 2 / k) for k in (16, 24, 24)]

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angle = [at[:, k, None] * speed for k, speed in enumerate(speeds)]
        return by_angles(x.float(), torch.cat(angle, dim=-1)).bfloat16()

    report = identify(rotate, 64, positions=sizes, dtype=torch.bfloat16)
    true = torch.block_diag(*(speed[:, None] for speed in speeds)).numpy()
    moves = true > 0
    assert np.array_equal(report.inv_freq > 0, moves)
    assert (np.abs(report.inv_freq - true)[moves] < 0.02 * true[moves]).all()
    card = dict(report.rows())
    assert card["axes"] == "8, 12, 12 pairs turn along them"
    assert card["formula"] == "a series of base 10000 along each axis"
    assert report.angle_error is not None
    assert report.angle_error < 2**-8  # as cos and sin are rounded


def test_pairs_too_slow_to_be_seen_are_counted() -> None:
    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angle = torch.cat([at[:, k, None] * SPEED[k::2] for k in (0, 1)], dim=-1)
        return by_angles(x.float(), angle).bfloat16()

    report = identify(rotate, 64, positions=(2, 64), dtype=torch.bfloat16)
    counts = [int((w != 0).sum()) for w in report.inv_freq.T]
    assert counts[0] < 16 == counts[1]
    said = f"{counts[0]}, 16 pairs turn along them, {16 - counts[0]} too slowly to be seen"
    assert dict(report.rows())["axes"] == said


def test_a_factor_is_told_beside_other_speeds() -> None:
    """No change of rows is enough there, and it is part of what differs all the same."""
    one = identify(rotate_complex, 32)
    two = identify(lambda x, at: 1.25 * rotate_complex(x, at, base=5e5), 32)
    difference = one.differs_from(two)
    assert difference.convert is None
    assert any("No weight makes up for that" in words for words in difference.words)
    told = "Multiply the rows that turn by 0.8: the rotations carry 1 against 1.25 there."
    assert told in difference.words


@pytest.mark.parametrize("place", [2047, 4095, 65_535])
def test_a_wrong_position_before_a_power_of_two_is_told(place: int) -> None:
    """The last row of a table stands there."""

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return rotate_complex(x, np.where(at == place, 0, at))

    report = identify(rotate, 16)
    (finding,) = [f for f in report.findings if f.gravity == 3]
    assert f"{place:,}" in finding.words
    assert report.table_end is None
