"""The instrument recovers what was built, names faults blind, and survives any function.

Rows of the tables below are a function and what its report must hold. Functions are built from
complex numbers, or from other code than the instrument's.
"""

import itertools
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from rope_minimal import rescaled_frequencies, rotate_complex
from ropebook import bugs
from ropescope import Report, Severity, identify
from ropescope.formulas import fit_formulas, name_arrangement
from ropescope.hypotheses import SENTENCES
from ropescope.picture import pairs_ring
from ropescope.precision import synthesize

Rotate = Callable[[Any, Any], Any]
ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


def rotation(pairs: Any, waves: Any, factor: float = 1.0, out: Any = None) -> Rotate:
    """Rotate each pair by position times wave; write it to the channels ``out``."""
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


def series(n: int, base: float = 1e4) -> np.ndarray:
    return base ** (-np.arange(n) / n)


def names(report: Report, least: int = INFO) -> set[str]:
    """Return the hypotheses that fail, of a severity at least."""
    return {finding.hypothesis for finding in report.findings if finding.severity >= least}


# ---- what was built is recovered ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["half-split", "interleaved", "mixed", "permuted"])
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize(("rest", "start"), [(0, 0), (16, 0), (37, 5), (16, 16)])
def test_layout_direction_width_and_place_are_recovered(
    kind: str, direction: int, rest: int, start: int
) -> None:
    """Refuted if one of the layouts, directions, widths or places comes out as another."""
    width, theta = 32, series(16, 5e5)
    pairs = out = layout_of(kind, width, start)
    if kind == "mixed":
        pairs, out = (layout_of(name, width, start) for name in ("interleaved", "half-split"))
    if kind == "permuted":
        order = np.random.default_rng(rest).permutation(width + rest)[:width].tolist()
        pairs = out = [(order[2 * i], order[2 * i + 1]) for i in range(16)]
    report = identify(rotation(pairs, direction * theta, 1.25, out), width + rest)
    wanted = {tuple(sorted(p)): w if p[0] < p[1] else -w for p, w in
              zip(pairs, direction * theta, strict=True)}  # fmt: skip
    assert report.pairs == tuple(sorted(wanted))
    signed = report.inv_freq * (report.direction or 1)
    assert np.abs(signed / [wanted[p] for p in report.pairs] - 1).max() < 1e-9
    assert (report.is_rotation, report.width) == (True, width)
    assert report.attention_factor == pytest.approx(1.25, rel=1e-12)
    assert report.relative_error < 1e-9
    assert not names(report, ERROR)
    if kind != "permuted":
        name = "read interleaved, written half-split" if kind == "mixed" else kind
        place = "all" if not rest else "first" if not start else "last"
        place = "elsewhere" if rest == 37 else place
        assert (report.layout, report.direction, report.place) == (name, direction, place)
        assert report.base == 5e5


L = {"original_max_position_embeddings": 4096}
NAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("default", {}),
    "linear": ("linear", {"factor": 2.5}),
    "ntk": ("ntk", {"factor": 1.5}),
    "dynamic": ("ntk", {"factor": 7.0}),  # at one length, it is a fixed stretch
    "llama 3.1": (
        "llama3", {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 8192},
    ),
    "llama 4": (
        "llama3", {"factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0,
                   "original_max_position_embeddings": 8192},
    ),
    "by parts": ("by_parts", {"factor": 16.0, **L}),
    "as printed": ("yarn_paper", {"factor": 16.0, **L}),
    "qwen": ("yarn", {"factor": 4.0, "original_max_position_embeddings": 32768}),
    "gpt-oss": ("yarn", {"factor": 32.0, "truncate": False, **L}),
    "past the last pair": ("yarn", {"factor": 4.0, "original_max_position_embeddings": 2**22}),
    "odd length": ("by_parts", {"factor": 40.0, "original_max_position_embeddings": 6000}),
    "half of a series": ("proportional", {"partial_rotary_factor": 0.25}),
    "monotone": ("monotone", {"max_positions": 5000}),
    "longrope": (
        "longrope",
        {"short_factor": [1.0 + 0.07 * i for i in range(32)], "factor": 1.0,
         "long_factor": [1.0 + 0.07 * i for i in range(32)], **L},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("single", [False, True])
def test_every_rescaling_is_named_with_its_parameters(name: str, single: bool) -> None:
    """Refuted if a published rescaling gets another name or parameters."""
    kind, given = NAMED[name]
    theta, factor = rescaled_frequencies(kind, 64, 5e5, **given)
    theta = theta[theta > 0].astype(np.float32 if single else float)
    report = identify(rotation(layout_of("half-split", 2 * len(theta)), theta, factor), 64)
    fitting = [one for one in report.formulas if one.kind == kind]
    assert any(
        one.base == 5e5 and all(one.parameters.get(k) == pytest.approx(v) for k, v in given.items())
        for one in fitting
    ), str(report)
    for one in report.formulas:
        assert np.allclose(np.sort(one.inv_freq()), np.sort(report.inv_freq), rtol=5e-6)


@pytest.mark.parametrize("base", [1.5, 100.0, 77777.0, 1e8, 500003.0])
@pytest.mark.parametrize("half", [2, 9, 40])
def test_any_base_and_width_are_recovered(base: float, half: int) -> None:
    """Refuted if a drawn base or width comes out as another."""
    report = identify(rotation(layout_of("interleaved", 2 * half), series(half, base)), 2 * half)
    assert report.base == pytest.approx(base, rel=1e-6)
    assert (np.abs(report.inv_freq - series(half, base)) <= report.inv_freq_error + 1e-15).all()


def test_kimi_k2_s_step_is_yarn_with_both_knees_at_1() -> None:
    given = {"factor": 32.0, "beta_fast": 1.0, "beta_slow": 1.0, **L}
    theta, scale = rescaled_frequencies("yarn", 64, 5e4, **given)
    found = fit_formulas(theta, theta * 1e-9, (64,), (scale, 0.0))
    assert any(
        "factor=32, original_max_position_embeddings=4096, beta_fast=1" in str(f) for f in found
    )


DRAWN = np.sort(np.random.default_rng(0).uniform(1e-4, 1, 32))[::-1]
ODD = series(32) * np.where(np.arange(32) == 5, 1.1, 1.0)  # but for one pair, base 10,000


@pytest.mark.parametrize("theta", [DRAWN, DRAWN.astype(np.float16), ODD])
def test_frequencies_without_a_formula_say_so(theta: np.ndarray) -> None:
    report = identify(rotation(layout_of("half-split", 64), theta), 64)
    assert (report.base, report.rescaling, report.formulas) == (None, None, ())
    assert names(report) == {"formula"}


def test_a_series_of_float16_has_its_base_where_the_slowest_are_subnormal() -> None:
    few = np.float16(series(32, 5e5)).astype(float)
    assert str(fit_formulas(few, 1e-12 * few, (64,))[0]) == "default over 64 channels: base 500000"


USUAL = {
    "twice": (2 * series(32), "usual factor", "applied 2 times"),
    "degrees": (np.deg2rad(series(32)), "usual factor", "taken for degrees"),
    "late": (1e4 ** (-np.arange(1, 33) / 32), "usual factor", "begins one pair late"),
    "repeated": (np.repeat(series(16), 2), "distinct frequencies", "32 pairs have 16"),
    "last pair": (series(32) * (np.arange(32) < 31), "all pairs", "1 of 32 pairs do not"),
}


@pytest.mark.parametrize("name", USUAL)
def test_what_formulas_for_longer_contexts_do_not_do_is_a_warning(name: str) -> None:
    theta, hypothesis, message = USUAL[name]
    report = identify(lambda x, at: rotate_complex(x, at, inv_freq=theta), 64)
    (finding,) = [f for f in report.findings if f.severity == WARNING]
    assert finding.hypothesis == hypothesis
    assert message in finding.message


# ---- several axes ------------------------------------------------------------------------------


def sections(axes: Any, base: float = 1e6) -> Rotate:
    """Deal one series out: each pair follows its axis, as in M-RoPE."""
    waves = np.zeros((len(axes), 3))
    waves[np.arange(len(axes)), axes] = series(len(axes), base)
    return rotation(layout_of("half-split", 2 * len(axes)), waves)


BLOCKS = [0] * 16 + [1] * 24 + [2] * 24  # Qwen2-VL
TURNS = [i % 3 for i in range(60)] + [0] * 4  # Qwen3-VL
ARRANGED = {
    tuple(BLOCKS): "in blocks: 16 of axis 0, 24 of axis 1, 24 of axis 2",
    tuple(TURNS): "interleaved, axes 0, 1, 2 by turns: 24 of axis 0, 20 of axis 1, 20 of axis 2",
    (1, 1, 0, 0): "in blocks: 2 of axis 1, 2 of axis 0",
    (1, 0, 1, 0): "interleaved, axes 1, 0 by turns: 2 of axis 1, 2 of axis 0",
    (*(1, 2) * 22, *(0,) * 20): "interleaved, axes 1, 2 by turns: 22 of axis 1, 22 of axis 2, 20 "
                                "of axis 0",
    (0, 1, 1, 0, 1, 0, 0): "neither in blocks nor by turns: 4 of axis 0, 3 of axis 1",
}  # fmt: skip


@pytest.mark.parametrize("axes", ARRANGED)
def test_how_pairs_are_dealt_out_to_axes_is_named(axes: tuple[int, ...]) -> None:
    assert name_arrangement(axes) == ARRANGED[axes]


def test_blocks_are_told_from_interleaved_sections_and_rows_from_columns() -> None:
    blocks, turns = (identify(sections(a), 128, positions=(64,) * 3) for a in (BLOCKS, TURNS))
    assert (blocks.base, turns.base) == (1e6, 1e6)
    assert blocks.sections == tuple(BLOCKS)
    assert dict(blocks.rows())["axes"] == blocks.arrangement == ARRANGED[tuple(BLOCKS)]
    difference = blocks.differs_from(turns)
    assert difference.convert is None
    assert difference.messages[0] == (
        f"Pairs are dealt out to axes {blocks.arrangement}; there {turns.arrangement}."
    )
    waves = np.kron(np.eye(2), series(8)[:, None])
    one, two = (
        identify(rotation(layout_of("half-split", 32), w), 32, positions=(64, 64))
        for w in (waves, waves[:, ::-1])
    )
    difference = one.differs_from(two)
    assert difference.messages[0].startswith(
        "Pairs are dealt out to axes in blocks: 8 of axis 0, 8"
    )
    assert difference.convert is not None


def test_wave_vectors_of_any_direction_are_recovered() -> None:
    waves = np.random.default_rng(0).uniform(-0.9, 0.9, (8, 2))
    waves[0, 1] = 0.0
    report = identify(rotation(layout_of("half-split", 16), waves), 16, positions=(64, 300))
    assert np.abs(report.inv_freq - waves).max() < 1e-9
    assert (report.direction, report.sections, report.arrangement) == (None, None, None)
    assert "one axis for each pair" in names(report)
    assert np.allclose(report.wavelengths, 2 * np.pi / np.linalg.norm(waves, axis=1))


@pytest.mark.parametrize(
    ("waves", "hypothesis"),
    [
        (np.outer(series(8), [1, 1]), "axes apart"),
        (np.outer(series(8), [1, 0]), "axis used"),
        (np.kron(np.eye(2), series(4)[:, None]) * [1.0, 0.7], "one formula"),
    ],
)
def test_axes_that_are_not_independent_are_a_warning(waves: Any, hypothesis: str) -> None:
    report = identify(rotation(layout_of("half-split", 16), waves), 16, positions=(64, 64))
    assert hypothesis in names(report, WARNING)


def test_of_two_axes_that_end_the_nearest_end_is_told() -> None:
    rotate = rotation(layout_of("half-split", 16), np.kron(np.eye(2), series(4)[:, None]))
    report = identify(lambda x, at: rotate(x, np.minimum(at, [40, 20])), 16, positions=(64, 64))
    assert report.table_end == 20
    assert report.past_end == "every position is rotated like the last along axis 1"


def test_axes_that_do_not_add_are_an_error() -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return rotate_complex(x, np.hypot(*at.T))

    assert {"axes add"} == names(identify(rotate, 16, positions=(64, 64)), ERROR)


# ---- precision: what is rounded is found by synthesis --------------------------------------------


def in_type(dtype: torch.dtype, where: str) -> Rotate:
    """Rotate 64 channels with one stage rounded to a type; the others in float64."""

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        cast = lambda t, stage: t.to(dtype).double() if stage in where.split() else t  # noqa: E731
        theta, x = cast(torch.tensor(series(32)), "frequencies"), cast(x.double(), "inputs")
        angle = cast(cast(at.double(), "positions")[:, None] * theta, "products")
        cos, sin = cast(angle.cos(), "table"), cast(angle.sin(), "table")
        a, b = x.chunk(2, -1)
        return cast(torch.cat((a * cos - b * sin, b * cos + a * sin), -1), "outputs")

    return lambda x, at: rotate(x, at).to(x.dtype)


@pytest.mark.parametrize("few", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("stage", "hypothesis"),
    [
        ("frequencies", "stored frequencies"), ("positions", "stored positions"),
        ("products", "stored products"), ("table", "stored table"), ("inputs", "full inputs"),
        ("outputs", "stored outputs"), ("frequencies positions products", "stored products"),
    ],
)  # fmt: skip
def test_the_stage_that_is_rounded_to_16_bits_is_named(
    stage: str, hypothesis: str, few: torch.dtype
) -> None:
    report = identify(in_type(few, stage), 64, positions=2**15, dtype=torch.float32)
    assert hypothesis in names(report, ERROR), str(report)
    assert not names(report, ERROR) - {hypothesis, "distinct positions"}, str(report)
    assert report.base == 1e4
    if stage != "inputs":
        assert str(few)[6:] in next(
            f.message for f in report.findings if f.hypothesis == hypothesis
        )


def test_bfloat16_is_told_where_x_is_float16() -> None:
    report = identify(in_type(torch.bfloat16, "table"), 64, positions=512, dtype=torch.float16)
    assert names(report, ERROR) == {"stored outputs"}


@pytest.mark.parametrize("stage", ["frequencies", "positions", "table"])
def test_float32_is_no_fault_at_any_stage(stage: str) -> None:
    assert identify(in_type(torch.float32, stage), 64, dtype=torch.float64).findings == ()


def test_the_first_position_that_shares_its_rotation() -> None:
    for dtype, first in ((torch.bfloat16, 257), (torch.float16, 2049), (torch.float32, None)):
        report = identify(in_type(dtype, "positions"), 64, positions=2**15, dtype=torch.float32)
        assert report.shared_position == first


@pytest.mark.parametrize("factor", [2.0, 4.0])
def test_positions_divided_and_then_rounded_hide_no_factor(factor: float) -> None:
    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return in_type(torch.float64, "none")(x, (at / factor).bfloat16())

    report = identify(rotate, 64, positions=8192, dtype=torch.float64)
    assert report.rescaling == ("linear", {"factor": factor})
    assert "stored positions" in names(report, ERROR)
    assert "divided by" in str(report)


def test_angles_of_float32_lose_digits_far_out_and_are_no_error() -> None:
    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angle = at.float()[:, None] * torch.tensor(series(32)).float()
        a, b = x.chunk(2, -1)
        return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)

    report = identify(rotate, 64, positions=2**20, dtype=torch.float32)
    assert names(report) == {"exact angles"}
    assert 3e-3 < report.angle_error < 2**20 * 2**-24
    assert identify(rotate, 64, positions=512, dtype=torch.float32).findings == ()
    late = identify(lambda x, at: rotate(x, at + 1000), 64, positions=512, dtype=torch.float32)
    assert names(late) == {"origin"}
    lost = identify(rotate, 64, positions=2**24, dtype=torch.float32)
    assert lost.angle_error > 0.05
    assert lost.differs_from(lost).convert is None


def test_synthesis_tells_stages_apart_where_a_product_is_exact_at_powers_of_two() -> None:
    """Rounded products and rounded frequencies are one at powers of two, and not beside them."""
    from ropescope.precision import Noise, rounded

    at, w, noise = np.arange(300)[:, None], series(16, 5e5)[:, None], Noise.of("float32")
    few = rounded(w, "bfloat16").T
    for start in (0, 5):  # the position that 0 is rotated like
        m = at + start
        for stage, angles in (
            ("frequencies", m @ few), ("products", rounded(m @ w.T, "bfloat16")),
            ("positions", rounded(m, "bfloat16") @ w.T),
            ("all", rounded(rounded(m, "bfloat16") @ few, "bfloat16")),
        ):  # fmt: skip
            best = max(synthesize(angles - angles[0], at, w, noise, start))
            assert best == (1.0, (stage, "bfloat16"))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("base", [1e4, 5e5])
def test_a_model_of_16_bits_is_right_in_its_own_type(dtype: torch.dtype, base: float) -> None:
    theta = torch.tensor(series(32, base)).float()

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angle = at.float()[:, None] * theta
        cos, sin, (a, b) = angle.cos().to(x.dtype), angle.sin().to(x.dtype), x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    report = identify(rotate, 64, positions=4096, dtype=dtype)
    assert (report.is_rotation, report.base, report.rescaling) == (True, base, None)
    assert not names(report, ERROR), str(report)
    assert (np.abs(report.inv_freq - theta.numpy()) <= report.inv_freq_error).all()
    longer = torch.ones(64)
    longer[[5, 37]] += 5 * torch.finfo(dtype).eps  # one pair, by more than rounding explains
    faulty = lambda x, at: rotate(x * longer, at).to(dtype)  # noqa: E731
    assert names(identify(faulty, 64, positions=512, dtype=dtype), ERROR) == {"exact lengths"}


# ---- where a table ends --------------------------------------------------------------------------


@pytest.mark.parametrize("end", [1000, 1024, 1025, 3000])
@pytest.mark.parametrize(
    ("row", "past"),
    [
        (lambda at, end: np.arange(end)[at], "raises IndexError"),
        (lambda at, end: np.minimum(at, end - 1), "every position is rotated like the last"),
        (lambda at, end: at % end, "it starts again from position 0"),
        (lambda at, end: np.where(at < end, at, 0), "every position is rotated like position 0"),
    ],
)
def test_the_end_of_a_table(row: Any, past: str, end: int) -> None:
    report = identify(lambda x, at: rotate_complex(x, row(at, end)), 8, positions=5000)
    assert (report.table_end, report.base) == (end - 1, 1e4)
    assert report.past_end.startswith(past)
    assert names(report, ERROR) == (set() if past.startswith("raises") else {"no silent end"})
    assert past.startswith("raises") or f"position {end - 1:,}, then {past}" in str(report)


def test_a_table_that_ends_one_position_before_the_last() -> None:
    report = identify(lambda x, at: rotate_complex(x, np.minimum(at, 4998)), 8, positions=5000)
    assert report.table_end == 4998


@pytest.mark.parametrize("place", [77, 2047, 4095, 65_535])
def test_one_wrong_row_is_an_error_and_no_end(place: int) -> None:
    report = identify(lambda x, at: rotate_complex(x, np.where(at == place, 0, at)), 16)
    (finding,) = [f for f in report.findings if f.severity == ERROR]
    assert finding.hypothesis == "angles"
    assert f"{place:,}" in finding.message
    assert report.table_end is None


# ---- faults, blind -------------------------------------------------------------------------------

BLIND = {
    None: (True, set()),
    "inv_freq": (True, {"stored frequencies"}),
    "halves": (False, {"block rotations"}),
    "table": (True, {"stored table"}),
    "positions": (True, {"stored positions", "distinct positions"}),
    "cache_key": (True, {"order"}),
}


@pytest.mark.parametrize("key", BLIND)
def test_the_bugs_of_a_function_are_named_blind(key: str | None) -> None:
    bug = next((bug for bug in bugs.BUGS if bug.key == key), None)
    rope = bugs.mutant(bug).rotation.RotaryEmbedding(64, 4096)
    if key == "table":
        rope = rope.bfloat16().float()
    report = identify(lambda x, at: rope(x, position_ids=at[None]), 64, dtype=torch.float32)
    rotates, wanted = BLIND[key]
    assert report.is_rotation == rotates
    assert names(report, ERROR) == wanted, str(report)
    assert bool(report.findings) == bool(wanted)


def part(x: np.ndarray, at: np.ndarray, weight: Any = 1.0) -> np.ndarray:
    return np.concatenate((rotate_complex(x[..., :4], at), x[..., 4:] * weight), axis=-1)


def halves(x: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    p, q = np.split(x, 2, axis=-1)
    return np.concatenate((a * p + b * q, c * p + d * q), axis=-1)


def angles(at: np.ndarray) -> np.ndarray:
    return at[:, None] * series(4)


def in_place(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    x[:] = rotate_complex(x, at)
    return x.copy()


def outputs(count: int) -> Rotate:
    """Write each output into the next of so many pieces of memory."""
    memory = itertools.cycle(np.empty((count, 2**17)))

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        y = next(memory)[: x.size].reshape(x.shape)
        y[:] = rotate_complex(x, at)
        return y

    return rotate


def cached(key: Callable[[Any], Any]) -> Rotate:
    kept: dict[Any, np.ndarray] = {}
    return lambda x, at: rotate_complex(x, kept.setdefault(key(at), at.copy()))


def growing(at_least: list[int]) -> Rotate:
    """Rotate by a base that grows with the longest call so far, or, without one, with each."""

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        length = max(64, int(at.max()) + 1, *at_least)
        at_least[:] = at_least and [length]
        theta, _ = rescaled_frequencies(
            "dynamic", 8, factor=2.0, max_position_embeddings=64, seq_len=length
        )
        return rotate_complex(x, at, inv_freq=theta)

    return rotate


def fail(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    raise RuntimeError("no such\nkernel")


RNG = np.random.default_rng(0)
W = np.array([0.5, 0.6, 0.7, 0.8, 1.1, 1.2, 1.3, 1.4])
MIX = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))[0]
C, S = np.cos, np.sin
FAULTS: dict[str, tuple[Rotate, int, str, str]] = {  # function, severity, hypothesis, message
    "fails": (fail, ERROR, "answers", "raises RuntimeError: no such kernel"),
    "leaves": (lambda x, at: sys.exit("gone"), ERROR, "answers", "raises SystemExit: gone"),
    "another shape": (lambda x, at: x[..., :-1], ERROR, "answers", "returns shape (8, 2, 7)"),
    "no array": (lambda x, at: (x, x), ERROR, "answers", "returns tuple for ndarray"),
    "masked": (lambda x, at: np.ma.array(x), ERROR, "answers", "returns MaskedArray for ndarray"),
    "complex": (lambda x, at: x + 0j, ERROR, "answers", "returns complex128 for float64"),
    "zeros": (lambda x, at: 0.0 * x, ERROR, "answers", "returns only zeros"),
    "huge": (lambda x, at: 1e160 * x, ERROR, "answers", "whose squares overflow float64"),
    "not finite": (
        lambda x, at: np.where((at < 99)[:, None], rotate_complex(x, at), np.nan),
        ERROR, "no silent end", "at position 98, then returns numbers that are not finite",
    ),
    "hole": (
        lambda x, at: rotate_complex(x, at) * (at != 64)[:, None],
        ERROR, "every position", "returns only zeros at position 64",
    ),
    "hole in a long call": (
        lambda x, at: rotate_complex(x, at) * (at != 100)[:, None],
        ERROR, "every position", "returns only zeros at position 100",
    ),
    "short calls": (
        lambda x, at: fail(x, at) if len(at) > 500 else rotate_complex(x, at),
        ERROR, "one call", "in one call it raises RuntimeError",
    ),
    "long calls": (
        lambda x, at: rotate_complex(x, at // 2 if len(at) > 500 else at),
        ERROR, "angles", "not rotated by position times frequency",
    ),
    "zeros of a part": (
        lambda x, at: part(x, at) * np.where(np.arange(8) < 4, (at < 393)[:, None], 1.0),
        ERROR, "no silent end", "position 392, then vectors come out with other lengths",
    ),
    "read early": (
        lambda x, at: rotate_complex(x, (at - 3) % 512), ERROR, "no silent end", "at position 2, ",
    ),
    "clamped below": (
        lambda x, at: rotate_complex(x, np.maximum(at, 20)), ERROR, "proportional", "rotated by 0",
    ),
    "in place": (in_place, ERROR, "arguments kept", "writes into the x"),
    "one output": (outputs(1), ERROR, "arguments kept", "output of an earlier call"),
    "two outputs": (outputs(2), ERROR, "arguments kept", "output of an earlier call"),
    "random": (
        lambda x, at: x + 0.01 * RNG.normal(size=x.shape), ERROR, "deterministic", "max change",
    ),
    "rows": (
        lambda x, at: np.stack([rotate_complex(v[None], at + n)[0] for n, v in enumerate(x)]),
        ERROR, "independent rows", "equal vectors come out different",
    ),
    "passed by": (
        lambda x, at: np.concatenate((rotate_complex(x[:6], at), x[6:])),
        ERROR, "independent rows", "depending on their row",
    ),
    "other positions": (
        lambda x, at: rotate_complex(x + 0.1 * np.roll(x, 1, -2), at),
        ERROR, "independent positions", "with the vectors at others",
    ),
    "not linear": (lambda x, at: rotate_complex(np.abs(x), at), ERROR, "linear", "Not linear"),
    "clipped": (lambda x, at: rotate_complex(np.clip(x, -30, 30), at), ERROR, "linear", "by"),
    "place": (
        lambda x, at: rotate_complex(x, np.arange(len(at))), ERROR, "order", "index in the call",
    ),
    "sorts": (lambda x, at: rotate_complex(x, np.sort(at)), ERROR, "order", "permuted"),
    "from the first": (
        lambda x, at: rotate_complex(x, at - at[0]), ERROR, "order", "one at a time",
    ),
    "cached by ends": (
        cached(lambda at: (len(at), int(at[0]), int(at[-1]))), ERROR, "order", "permuted",
    ),
    "dynamic": (growing([]), WARNING, "call", "as in dynamic NTK and LongRoPE"),
    "keeps its longest": (growing([64]), ERROR, "stateless", "repeating the first call"),
    "adds": (lambda x, at: rotate_complex(x, at) + 0.1, ERROR, "no offset", "up to 0.1"),
    "absolute": (lambda x, at: x + 0.1 * at[:, None], ERROR, "rotates", "Nothing rotates"),
    "type": (
        lambda x, at: rotate_complex(x, at).astype(np.float32),
        WARNING, "dtype kept", "It returns float32 for float64.",
    ),
    "logarithm": (
        lambda x, at: rotate_complex(x, np.log1p(at)), ERROR, "proportional", "not proportional",
    ),
    "squares": (
        lambda x, at: rotate_complex(x, at**2 % 7919), ERROR, "relative", "when both move by",
    ),
    "halved": (
        lambda x, at: rotate_complex(x, at // 2), ERROR, "proportional",
        "rotated by 0 rad at 1 and by 1 rad at 2",
    ),
    "counts from 1": (
        lambda x, at: rotate_complex(x, at + 1), INFO, "origin", "counts from position 1",
    ),
    "quarter turn": (
        lambda x, at: halves(x, S(angles(at)), -C(angles(at)), C(angles(at)), S(angles(at))),
        INFO, "origin", "as where cos and sin are exchanged",
    ),
    "a minus": (
        lambda x, at: halves(x, C(angles(at)), S(angles(at)), S(angles(at)), C(angles(at))),
        ERROR, "block rotations", "a sign is missing",
    ),
    "one direction lost": (
        lambda x, at: halves(x, C(angles(at)), C(angles(at)), S(angles(at)), S(angles(at))),
        ERROR, "full rank", "4 of 4 pairs lose a direction",
    ),
    "weights before": (
        lambda x, at: rotate_complex(x * W, at), WARNING, "weights before", "0.5 to 1.4",
    ),
    "weights after": (
        lambda x, at: rotate_complex(x, at) * W, ERROR, "weights after", "depend on the place",
    ),
    "pairs' weights": (
        lambda x, at: rotate_complex(x, at) * np.tile(W[:4], 2),
        WARNING, "one factor", "0.5 to 0.8",
    ),
    "decays": (
        lambda x, at: 1.001 ** at[:, None] * rotate_complex(x, at),
        ERROR, "lengths keep", "the inverse factor (xPos)",
    ),
    "decays by pair": (
        lambda x, at: rotate_complex(x, at) * np.tile(W[:4], 2) ** (at[:, None] / 512),
        ERROR, "lengths keep in each pair", "by its own factor",
    ),
    "table of 7 bits": (
        lambda x, at: halves(
            x, *(np.round(127 * f(angles(at))) / 127 for f in (C, lambda a: -S(a), S, C))
        ),
        ERROR, "exact lengths", "low precision or disagree",
    ),
    "mixes all": (
        lambda x, at: rotate_complex(x @ MIX, at) @ MIX.T,
        WARNING, "pairs, relative", "channels mix in groups of [8]",
    ),
    "a chain": (
        lambda x, at: C(at)[:, None] * x + S(at)[:, None] * np.roll(x, 1, -1),
        ERROR, "pairs", "channels mix in groups of [8]",
    ),
    "rest lost": (lambda x, at: part(x, at, 0.0), ERROR, "unrotated kept", "4 channels"),
    "rest weighted": (lambda x, at: part(x, at, W[4:]), WARNING, "unrotated weights", "1.1 to 1.4"),
    "rest scaled": (lambda x, at: part(x, at, 1.5), INFO, "unrotated factor", "by 1.5"),
    "rest mixed": (
        lambda x, at: part(x @ np.kron([[1, 0], [0, 1]], np.ones((4, 4)) / 2), at),
        ERROR, "unrotated channels", "4 channels that do not rotate",
    ),
    "rest moved": (
        lambda x, at: part(x[..., [0, 1, 2, 3, 5, 4, 7, 6]], at), INFO, "unrotated places", "(4)",
    ),
    "mirrored": (
        lambda x, at: rotate_complex(x, at)[..., [4, 5, 6, 7, 0, 1, 2, 3]],
        INFO, "not mirrored", "4 of 4 pairs are mirrored",
    ),
    "moved": (
        lambda x, at: rotate_complex(x, at)[..., ::-1], INFO, "written places", "in other places",
    ),
    "upside down": (
        lambda x, at: rotate_complex(x, at, inv_freq=series(4)[::-1].copy()),
        INFO, "falling frequencies", "(0, 4) rotates by 0.001",
    ),
    "whole turns": (
        lambda x, at: rotate_complex(x, at, inv_freq=np.full(4, 2 * np.pi)),
        WARNING, "fast enough", "whole turns, which",
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_and_its_report_is_whole(name: str) -> None:
    rotate, severity, hypothesis, message = FAULTS[name]
    report = identify(rotate, 8, positions=512, dtype=np.float64)
    (found,) = [f for f in report.findings if f.hypothesis == hypothesis] or [None]
    assert found, str(report)
    assert (found.severity, message in found.message) == (severity, True), str(report)
    assert bool(names(report, ERROR)) == (severity == ERROR), str(report)
    assert report._repr_html_()
    again = Report.from_json(report.to_json())
    assert (str(again), again.to_json()) == (str(report), report.to_json())


def test_every_sentence_has_a_chapter_and_no_sentence_is_read() -> None:
    chapters = {path.stem.split("-", 1)[1] for path in Path("notebooks").glob("[0-9]*.ipynb")}
    assert {chapter for _, chapter, _ in SENTENCES.values()} <= chapters
    names = (
        "configuration",
        "convert",
        "fields",
        "names",
        "translation",
    )  # they read names of fields and of tensors
    files = [path for path in Path("ropescope").glob("*.py") if path.stem not in names]
    source = "".join(path.read_text("utf8") for path in files)
    assert "import re\n" not in source
    assert ".message." not in source
    for name in SENTENCES:
        assert f'"{name}"' in source.replace(f'    "{name}": (', "", 1), f"{name} is never tested"


def test_residuals_and_limits_are_the_report() -> None:
    report = identify(rotate_complex, 64)
    assert len(report.hypotheses) > 20
    assert all(one.holds and one.residual <= one.limit for one in report.hypotheses)
    assert report.findings == ()
    assert len({one.name for one in report.hypotheses}) == len(report.hypotheses)


def test_a_violated_distance_is_where_and_as_large_as_it_says() -> None:
    rotate = FAULTS["squares"][0]
    report = identify(rotate, 8, positions=512)
    m, n, s = (at[0] for at in report.relative_error_at)
    eye = np.eye(8)[:, None].repeat(4, 1)
    a, b, c, d = rotate(eye, np.array([m, n, m + s, n + s])).transpose(1, 2, 0)
    assert np.linalg.norm(a.T @ b - c.T @ d, 2) == pytest.approx(report.relative_error)


def test_numpy_and_torch_are_found_out() -> None:
    tensors = lambda x, at: in_type(torch.float32, "table")(x.contiguous(), at)  # noqa: E731
    assert identify(tensors, 64).probed.startswith("torch float64")
    assert identify(rotate_complex, 64).probed.startswith("NumPy float64")


# ---- the report ----------------------------------------------------------------------------------


def report_of(
    layout: str = "half-split", sign: int = 1, factor: float = 1.0, start: int = 0, **more: Any
) -> Report:
    theta, _ = rescaled_frequencies("default", 8, **more)
    return identify(rotation(layout_of(layout, 8, start), sign * theta, factor), 12)


@pytest.mark.parametrize("layout", ["half-split", "interleaved"])
@pytest.mark.parametrize(("sign", "factor", "start"), [(1, 1.0, 0), (-1, 1.25, 3), (1, 1.25, 4)])
@pytest.mark.parametrize("tensors", [False, True])
def test_converted_weights_give_the_same_scores(
    layout: str, sign: int, factor: float, start: int, tensors: bool
) -> None:
    """From any layout to a permutation of channels; heads, biases, NumPy and torch."""
    theta = series(4)
    order = np.random.default_rng(start).permutation(12).tolist()
    one = rotation(layout_of(layout, 8, start), sign * theta, factor)
    two = rotation([(order[2 * i], order[2 * i + 1]) for i in range(4)], -theta)
    difference = identify(one, 12).differs_from(identify(two, 12))
    assert difference.convert is not None
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(2, 24, 5))
    x, at = rng.normal(size=(2, 5)), np.array([3, 11])

    def scores(rotate: Rotate, w_q: np.ndarray, w_k: np.ndarray) -> np.ndarray:
        q, k = (rotate((x @ w.T).reshape(2, 2, 12).swapaxes(0, 1), at) for w in (w_q, w_k))
        return q @ k.swapaxes(-1, -2)

    given = [torch.tensor(w) if tensors else w for w in weights]
    converted = [difference.convert(w, 2) for w in given]
    assert all(type(a) is type(b) for a, b in zip(given, converted, strict=True))
    wanted = scores(one, *weights)
    assert np.allclose(scores(two, *map(np.asarray, converted)), wanted, atol=1e-9)
    bias = difference.convert(weights[0][:, 0], 2)
    assert np.array_equal(bias, np.asarray(converted[0])[:, 0])


@pytest.mark.parametrize("dtype", [np.float16, torch.float16, torch.bfloat16])
def test_a_factor_is_multiplied_before_it_is_rounded(dtype: Any) -> None:
    convert = report_of(factor=1.0959).differs_from(report_of()).convert
    values = np.linspace(0.5, 1.5, 12 * 64).reshape(12, 64)
    factors = np.where(np.arange(12) < 8, 1.0959, 1.0)[:, None]
    if isinstance(dtype, torch.dtype):
        weight = torch.tensor(values, dtype=dtype)
        wanted = (weight.double() * torch.tensor(factors)).to(dtype)
        assert torch.equal(convert(weight, 1), wanted)
    else:
        weight = values.astype(dtype)
        wanted = (weight.astype(float) * factors).astype(dtype)
        assert np.array_equal(convert(weight, 1), wanted)


PERMUTE = "Permute the rows of each head of W_q and W_k: from "
DIFFERENCES: list[tuple[Any, Any, tuple[str, ...], bool]] = [
    ({}, {}, (), True),
    ({}, {"layout": "interleaved"}, (f"{PERMUTE}half-split (first) to interleaved (first).",), 1),
    ({}, {"sign": -1}, ("Negate the second row of 4 of 4 pairs: they rotate the other way.",), 1),
    ({}, {"factor": 1.25}, ("Multiply the rows that rotate by 0.8: ",), True),
    ({}, {"base": 5e5}, ("3 of 4 pairs have another frequency than there, pair (3, 7) the ",), 0),
    ({}, {"start": 2}, (f"{PERMUTE}half-split (first) to half-split (elsewhere).",), True),
]  # fmt: skip


@pytest.mark.parametrize(("one", "two", "messages", "converts"), DIFFERENCES)
def test_a_difference_is_said_in_words(one: Any, two: Any, messages: Any, converts: bool) -> None:
    difference = report_of(**one).differs_from(report_of(**two))
    assert len(difference.messages) == len(messages), str(difference)
    assert all(a.startswith(b) for a, b in zip(difference.messages, messages, strict=True))
    assert (difference.convert is not None) == bool(converts)
    assert messages or str(difference) == "They give the same scores."


def test_partial_rotations_of_equal_width_and_other_pairs_are_compared() -> None:
    """The halves of 8 of 16 channels, and pairs eight apart, of which four rotate."""
    near, far = layout_of("half-split", 8), [(i, i + 8) for i in range(4)]
    one, two = (identify(rotation(pairs, series(4)), 16) for pairs in (near, far))
    (message,) = one.differs_from(two).messages
    assert message == f"{PERMUTE}half-split (first) to half-split (elsewhere)."
    assert one.differs_from(two).convert is not None
    apart = [(i, i + 6) for i in (0, 1, 2, 3)]
    three = identify(rotation(apart, series(4)), 16)
    (message,) = two.differs_from(three).messages
    assert message == f"{PERMUTE}pairs such as (0, 8) to pairs such as (0, 6)."
    assert two.differs_from(three).convert is not None


def test_what_cannot_be_compared_says_why() -> None:
    plain, narrow = report_of(), identify(rotate_complex, 12)
    wide = identify(
        rotation(layout_of("half-split", 12), np.outer(series(6), [1, 1])), 12, positions=(64, 64)
    )
    assert plain.differs_from(narrow).messages == ("8 channels rotate against 12.",)
    assert narrow.differs_from(wide).messages == ("1 axis against 2.",)
    small = identify(rotate_complex, 8)
    assert small.differs_from(wide).messages == (
        "Heads of 8 channels against 12, 1 axis against 2.",
    )
    broken = identify(lambda x, at: 0 * x, 12)
    assert plain.differs_from(broken).messages == ("The second was not measured.",)
    unsteady = identify(FAULTS["logarithm"][0], 8, positions=64)
    assert unsteady.inv_freq.size == 0
    assert unsteady.differs_from(unsteady).convert is None


@pytest.mark.parametrize("name", ["adds", "from the first", "hole", "weights after"])
def test_a_fault_is_repeated_where_it_is_compared(name: str) -> None:
    faulty, plain = identify(FAULTS[name][0], 8, positions=512), identify(rotate_complex, 8)
    for difference, which in (
        (faulty.differs_from(plain), "first"), (plain.differs_from(faulty), "second")
    ):  # fmt: skip
        assert difference.convert is None
        assert any(message.startswith(f"The {which}") for message in difference.messages)


def test_rounding_and_a_shorter_table_are_told_and_converted() -> None:
    rounded = identify(in_type(torch.bfloat16, "frequencies"), 64, dtype=torch.float32)
    difference = rounded.differs_from(rounded)
    assert difference.messages[0].startswith("Both: Inverse frequencies are rounded to bfloat16")
    assert difference.convert is not None
    short = identify(lambda x, at: rotate_complex(x, np.arange(300)[at]), 8)
    (message,) = short.differs_from(identify(rotate_complex, 8)).messages
    assert message.startswith("The table of the first ends at 299, then raises IndexError")
    assert short.differs_from(short).messages == ()


@pytest.mark.parametrize("axes", [1, 2])
def test_another_order_of_pairs_is_told_beside_another_layout(axes: int) -> None:
    waves = np.kron(np.eye(axes), series(4)[:, None])
    by_turns = waves.reshape(axes, 4, axes).swapaxes(0, 1).reshape(-1, axes)
    width = 8 * axes
    half, even = (layout_of(name, width) for name in ("half-split", "interleaved"))
    one, two = (
        identify(rotation(pairs, w), width, positions=(64,) * axes)
        for pairs, w in ((half, waves), (even, waves[::-1] if axes == 1 else by_turns))
    )
    assert one.differs_from(two).messages[-1] == (
        f"{PERMUTE}half-split (all) to interleaved (all), where pairs stand in another order."
    )


def test_equal_wave_vectors_are_matched_before_others_are_told() -> None:
    along = np.array([[1, 0], [0.1, 0], [0.01, 0], [0, 0.001]])
    other = np.where(np.arange(4)[:, None] == 1, along[:, ::-1], along)
    one, two = (
        identify(rotation(layout_of("half-split", 8), w), 8, positions=(256, 256))
        for w in (along, other)
    )
    message = one.differs_from(two).messages[-1]
    assert message.startswith(
        "1 of 4 wave vectors have no equal there, that of pair (1, 5) for one"
    )
    double = rotation(layout_of("half-split", 8), along[[0, 0, 1, 1]])  # each has an equal
    report = identify(double, 8, positions=(256, 256))
    assert report.differs_from(report).convert(np.arange(8.0), 1).tolist() == [*range(8)]


def test_json_holds_everything_and_text_the_main_thing() -> None:
    report = report_of(factor=1.25)
    again = Report.from_json(report.to_json())
    assert again.to_json() == report.to_json()
    assert (again.pairs, again.formulas) == (report.pairs, report.formulas)
    assert again.hypotheses == report.hypotheses
    assert json.loads(report.to_json())["attention_factor"] == 1.25
    lines = dict(line.split(maxsplit=1) for line in str(report_of()).splitlines())
    assert lines["layout"] == "half-split"
    assert lines["channels"] == "8 of 12, first"
    assert lines["direction"] == "counter-clockwise (+1)"
    assert lines["formula"] == "default over 8 channels: base 10000"
    assert lines["wavelengths"] == "6.28319 to 6,283.19 positions"


def test_the_ring_joins_each_pair_in_its_colour() -> None:
    from ropebook.figures.palette import pair_color

    report = report_of()
    root = ElementTree.fromstring(pairs_ring(report))
    dots, lines = root.findall("g/circle"), root.findall("path")
    place = [(dot.get("cx"), dot.get("cy")) for dot in dots]
    assert place[0] == ("120.0", "20.0")  # channel 0 at the top
    for i, (line, (a, b)) in enumerate(zip(lines, report.pairs, strict=True)):
        start, end = line.get("d")[1:].split("Q")
        assert tuple(start.split()) == place[a]
        assert tuple(end.split()[2:]) == place[b]
        assert line.get("stroke") == dots[a].get("fill") == pair_color(i, 4)
    assert dots[11].get("fill") == "#808080"


def test_the_html_escapes_what_external_code_says() -> None:
    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        raise ValueError("<script>alert(1)</script>")

    html = identify(rotate, 8, dtype=np.float64)._repr_html_()
    assert "<script" not in html
    ElementTree.fromstring(html)


def test_the_precision_of_a_frequency_bounds_its_error() -> None:
    theta, exact = series(16), rotation(layout_of("half-split", 32), series(16))
    single = lambda x, at: exact(x.astype(float), at).astype(np.float32)  # noqa: E731
    report = identify(single, 32, positions=512, dtype=np.float32)
    assert (np.abs(report.inv_freq - theta) <= report.inv_freq_error).all()
    assert report.inv_freq_error.max() < 1e-7
    assert math.isclose(report.base or 0, 10000)


@pytest.mark.parametrize("slip", [0.0, 0.01])
def test_a_running_product_in_float32_is_rounding_and_no_fault(slip: float) -> None:
    """As in ggml: each pair's angle is that of the pair before times a constant."""

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        step = np.float32(1e4 ** (-1.0 / 32))
        angle = at.astype(np.float32) + np.float32(slip) * (at == 417)
        angles = []
        for _ in range(32):
            angles.append(angle)
            angle = angle * step
        turn = np.stack(angles, axis=-1)
        cos, sin = np.cos(turn), np.sin(turn)
        a, b = x[..., :32], x[..., 32:]
        return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

    report = identify(rotate, 64, dtype=np.float32)
    assert report.base == 1e4
    told = [f.message for f in report.findings if f.severity == ERROR]
    assert len(told) == bool(slip)
    assert all("are not rotated by position times frequency" in message for message in told)
