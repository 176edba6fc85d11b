"""Every figure's picture is read: known values stand where the numbers beside them say.

The figures are drawn without a browser, on a canvas that writes down what is drawn. A point is read
by the ticks of its axis, and compared with what the package computes.
"""

import itertools
import json
import math
import re

import numpy as np
import pytest

from experiments.figure import recent_methods_data, train_it_data, trained_models_data
from experiments.real import heads as real_heads
from experiments.real.model import Change
from rope_minimal import inverse_frequencies, reference, rescaled_frequencies
from ropebook import aliasing, figures
from ropebook.atlas import card_data
from ropebook.figures import palette
from ropebook.figures.byte_budget import FORMS, SHAPES
from ropebook.figures.recent_methods import METHODS
from ropebook.figures.trained_models import ENTRIES
from tests.tools.pictures import angles, shown

TURN = 2 * math.pi
WIDTHS = pytest.mark.parametrize("width", [680, 330])


def pair_color(i, pairs):
    """The colour of a pair as JavaScript writes it, from the package's own table."""
    table = [tuple(int(c[k : k + 2], 16) for k in (1, 3, 5)) for c in palette.TABLES["pair"]]
    at = (i / (pairs - 1) if pairs > 1 else 0) * (len(table) - 1)
    low = min(int(at), len(table) - 2)
    mixed = [a + (b - a) * (at - low) for a, b in zip(table[low], table[low + 1], strict=True)]
    return f"rgb({', '.join(str(math.floor(c + 0.5)) for c in mixed)})"


def below(height):
    return lambda x, y: y > height


# ---- waves --------------------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize("pairs", [2, 8, 64])
def test_waves(node, pairs, width):
    made = figures.waves(aim=60, distance=21, pairs=pairs, content="slow half")
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    content = np.zeros((pairs, 2))
    for i in range(pairs // 2, pairs):
        content[i] = np.sqrt(4) * np.array([math.cos(i), math.sin(i)])
    vector = content.reshape(1, -1)
    at = lambda x, p: reference.rotate_complex(x, np.array([p]), interleaved=True)  # noqa: E731
    key = at(vector, 60)
    scores = np.array([(at(vector, s) @ at(key, 0).T).item() for s in range(201)])
    height = np.linalg.norm(content, axis=1) @ np.linalg.norm(content, axis=1)

    end = 260 if width > 560 else 150
    x, y = plot.x_axis(below(end + 10)), plot.y_axis(below(end + 10))
    line = plot.curve(seen.colors["ink"], below(end + 10), width=1.75)
    assert len(line) == 201
    x.agrees(line[:, 0], np.arange(201))
    y.agrees(line[:, 1], scores / height)
    x.agrees([plot.discs(seen.colors["ink"], 5)[0, 0]], [21])
    y.agrees([plot.discs(seen.colors["ink"], 5)[0, 1]], [scores[21] / height])
    x.agrees([plot.discs(seen.colors["muted"], 3)[0, 0]], [60])

    # every wave stands where its pair's product does, crests upwards
    theta = inverse_frequencies(2 * pairs)
    for i in {pairs // 2, pairs - 1}:
        wave = plot.curve(pair_color(i, pairs), lambda x, y: y < end)
        wanted = np.cos((x.read(wave[:, 0]) - 60) * theta[i])
        row = (end - 42) / pairs
        middle = 34 + (i + 0.5) * row
        tall = min(row / 2 - 1, 42) if pairs <= 8 else 9
        np.testing.assert_allclose((middle - wave[:, 1]) / tall, wanted, atol=0.05)

    # the arrows, tip to tail, end above the sum; a phone has no room for them
    if width < 560:
        assert plot.arcs(seen.colors["rule"]) == []
        return
    center = plot.discs(seen.colors["muted"], 3)[-1]
    (circle,) = plot.arcs(seen.colors["rule"])
    tips = [
        plot.curve(pair_color(i, pairs), lambda x, y: y > 0, width=2 if pairs > 8 else 3)
        for i in range(pairs)
    ]
    tip = tips[-1][1]
    scale = circle["radius"] / height
    assert tip[0] - center[0] == pytest.approx(scale * scores[21], abs=0.5)
    assert tips[0][0] == pytest.approx(center)
    last = angles(np.array([tips[-1][1]]), tuple(tips[-1][0]))
    assert math.remainder(last[0] - (21 - 60) * theta[-1], TURN) == pytest.approx(0, abs=1e-6)


# ---- rotor --------------------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize(
    ("m", "n", "theta", "computed"),
    [
        (5, 1, 15, "4 × 15° = 60°"),
        (1, 5, 15, "4 × 15° = 60°"),
        (3, 3, 15, "0 × 15° = 0°"),
        (11, 2, 40, "9 × 40° = 360° + 0°"),
        (10, 2, 50, "8 × 50° = 360° + 40°"),
        (8, 0, 40, "8 × 40° = 360° − 40°"),
        (11, 0, 180, "11 × 180° = 2,160° − 180°"),
        (4, 3, 1, "1 × 1° = 1°"),
    ],
)
def test_rotor(node, m, n, theta, computed, width):
    seen = shown(node, figures.rotor(m=m, n=n, theta=theta), width=width)
    (plot,) = seen.plots
    ring = plot.arcs(seen.colors["rule"])[0]
    tips = []
    for name, turns in (("q", m), ("k", n)):
        heads = [one["lines"][0] for one in plot.kind("fill", color=seen.colors[name], alpha=1)]
        tip = next(line for line in heads if len(line) == 3)[0]
        vector = (np.array(tip) - ring["center"]) * [1, -1]
        # counter-clockwise by theta a position, from one common start
        start, angle = np.array([[1.0, 0.0]]), np.array([turns * math.radians(theta)])
        exact = reference.rotate_complex(start, angle, interleaved=True)[0]
        assert vector / np.linalg.norm(vector) == pytest.approx(exact, abs=1e-9)
        tips.append(vector)
    lengths = np.linalg.norm(tips, axis=1)
    assert lengths[0] == pytest.approx(lengths[1])
    assert lengths[0] <= ring["radius"]

    wedge = plot.arcs(seen.colors["accent"])[0]
    swept = abs(wedge["to"] - wedge["from"])
    between = math.acos(np.clip(tips[0] @ tips[1] / lengths.prod(), -1, 1))
    assert swept == pytest.approx(between, abs=1e-6), "the short way, at most half a turn"
    assert [text for text, _ in plot.texts("×")] == [computed]

    right = lambda x, y: x > ring["center"][0] + ring["radius"] + 12  # noqa: E731
    x, y = plot.x_axis(right), plot.y_axis(right)
    score = math.cos(math.radians((m - n) * theta))
    point = plot.discs(seen.colors["accent"], 6)[0]
    x.agrees(point[0], abs(m - n))
    y.agrees(point[1], score)
    (bar,) = plot.rects(seen.colors["accent"])
    y.agrees(np.sort([bar[1], bar[1] + bar[3]])[::-1], np.sort([0, score]))
    said = node.call("rotor.js", "words", m, n, theta)
    written = re.search(r"score of \*\*(.*?)\*\*", said)[1]
    assert written in [text for text, _ in plot.texts("")], "as many digits as the sentence"
    dots = plot.discs(seen.colors["muted"], 3)
    dots = dots[dots[:, 0] > x.pixels[0] - 1]
    x.agrees(dots[:, 0], np.arange(12))
    y.agrees(dots[:, 1], np.cos(np.radians(theta * np.arange(12))))


def test_the_rotor_plays_both_words_and_comes_back(node):
    before = shown(node, figures.rotor())
    during = shown(node, figures.rotor(), press=["Move both"], ms=1500)
    after = shown(node, figures.rotor(), press=["Move both"], ms=6500)
    colors = before.colors
    tip = lambda seen: seen.plots[0].kind("fill", color=colors["q"], alpha=1)[0]["lines"]  # noqa: E731
    assert tip(during) != tip(before)
    assert "4 words make 60°" in during.says
    assert tip(after) == tip(before)
    assert after.says == before.says


# ---- clock --------------------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize(("m", "pairs"), [(710, 64), (84823, 2), (1, 1), (44, 4)])
def test_clock(node, m, pairs, width):
    seen = shown(node, figures.clock(m=m, pairs=pairs), width=width)
    (plot,) = seen.plots
    theta = inverse_frequencies(2 * pairs)
    D = lambda m: aliasing.code_distance(m, theta)  # noqa: E731
    split = 262 if width > 480 else 188
    chart = lambda x, y: y <= split + 20  # noqa: E731
    x, y = plot.x_axis(chart, log=True), plot.y_axis(chart)
    neighbour = plot.curve(seen.colors["ink"], chart, width=1.75)
    y.agrees(neighbour[:, 1], [D(1)] * 2)
    assert y.values.tolist() == [0, 0.5, 1, 1.5, 2], "the axis stays as it is"

    # the chosen distance, and the numbers beside the dots
    (chosen,) = plot.discs(seen.colors["accent"], 7)
    x.agrees([chosen[0]], [m])
    y.agrees([chosen[1]], [D(m)])
    for mark in (44, 710, 103_993):
        at = [d for d in plot.discs() if abs(d[0] - np.interp(np.log10(mark), *_line(x))) < 1]
        assert min(abs(y.read(d[1]) - D(mark)) for d in at) < 0.02, mark
    assert plot.texts(f"^{m:,}$", chart)

    # the columns from the lowest to the highest, red under the line of the neighbour
    every = D(np.arange(1, 131_073))
    bars = [one for one in plot.kind("rect") if one["rect"][2] == 1.05]
    of = lambda color: np.array([one["rect"] for one in bars if one["color"] == color])  # noqa: E731
    grey, red = of(seen.colors["muted"]), of(seen.colors["warm"])
    assert (grey[:, 1] + grey[:, 3] <= neighbour[0, 1] + 1.5).all()
    assert (len(red) > 0) == (pairs < 8)
    if len(red):
        assert (red[:, 1] >= neighbour[0, 1] - 1e-6).all()
    both = np.concatenate([grey, red]) if len(red) else grey
    for first in both[both[:, 0] > 200][::97, 0]:
        low, high = 10 ** x.read([first - 1, first + 2])
        here = every[math.ceil(low) - 1 : math.floor(high)]
        ends = both[both[:, 0] == first]
        lowest, highest = y.read([(ends[:, 1] + ends[:, 3]).max(), ends[:, 1].min()])
        assert here.min() - 0.03 <= lowest <= highest <= here.max() + 0.03

    # eight dials at most, each hand where it stands at distance m
    dials = [arc for arc in plot.arcs(seen.colors["rule"]) if arc["radius"] > 12]
    assert len(dials) == min(pairs, 8)
    for i, dial in enumerate(dials):
        hand = plot.curve(pair_color(i, max(pairs, 2)), below(split + 30), width=3)
        hands = [
            line
            for one in plot.kind("stroke", color=pair_color(i, max(pairs, 2)), width=3)
            for line in one["lines"]
        ]
        ((_, tip),) = [line for line in hands if math.dist(line[0], dial["center"]) < 1e-6]
        assert len(hand) == 2
        turned = angles(np.array([tip]), tuple(dial["center"]))[0]
        assert math.remainder(turned - m * theta[i], TURN) == pytest.approx(0, abs=1e-6)


def _line(axis):
    """Values and pixels of an axis, for np.interp."""
    ends = np.array([0.0, 2000.0])
    return axis.read(ends), ends


# ---- heatmaps -----------------------------------------------------------------------------------

COLOURS = {"wrapped angle": "phase", "true angle": "angle", "cosine": "cosine"}


@WIDTHS
@pytest.mark.parametrize("show", ["wrapped angle", "cosine"])
def test_angle_heatmap(node, show, width):
    made = figures.angle_heatmap(dim=32, first=100, count=48, show=show, pair=3)
    made.position = 130
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    theta = inverse_frequencies(32)
    angle = np.outer(theta, np.arange(100, 148))  # fast pairs above, positions to the right
    scales = {
        "wrapped angle": np.floor(angle % TURN / TURN * 256) / 256,
        "true angle": np.round(np.log1p(angle / 0.01) / np.log1p(147 / 0.01) * 255) / 255,
        "cosine": np.floor((np.cos(angle) + 1) * 127.5 + 0.5) / 255,
    }
    plotted = {
        "wrapped angle": angle[3] % TURN,
        "true angle": angle[3],
        "cosine": np.cos(angle[3]),
    }
    curve = 92 if width > 560 else 38
    boxes = [plot.image(side)[1] for side in (0, 1)]
    assert (boxes[0][1] == boxes[1][1]) == (width > 560), "side by side where there is room"
    for side, shows in enumerate(("true angle", show)):
        table = getattr(palette, COLOURS[shows].upper())
        pixels, (x0, y0, wide, tall) = plot.image(side)
        assert np.abs(pixels - 255 * table(scales[shows])[..., :3]).max() <= 2.5
        bottom = y0 + tall
        beside = lambda x, low, high: x0 - 20 < x < x0 + wide + 12 and low < high  # noqa: E731, B023
        under = lambda x, y: beside(x, bottom, y) and y < bottom + 11 + curve  # noqa: E731, B023
        ticks = lambda x, y: beside(x, bottom + 12 + curve, y)  # noqa: E731, B023
        if side == 0:
            rows = plot.texts(r"^\d+$", lambda x, y: x < x0 and y < y0 + tall)  # noqa: B023
            assert [label for label, _ in rows] == ["0", "5", "10", "15"]
            for label, (_, height) in rows:
                assert height == pytest.approx(y0 + (int(label) + 0.5) / 16 * tall)
        points = np.array([d for d in plot.discs(pair_color(3, 16), 2.5) if under(*d)])
        (cursor,) = [d for d in plot.discs(pair_color(3, 16), 4.5) if under(*d)]
        if width > 560:
            plot.y_axis(under).agrees(points[:, 1], plotted[shows])
            plot.y_axis(under).agrees([cursor[1]], [plotted[shows][30]])
        if side == 1 or width > 560:
            x = plot.x_axis(ticks)
            x.agrees([x0 + (30 + 0.5) / 48 * wide, cursor[0]], [130, 130])
            x.agrees(points[:, 0], np.arange(100, 148))


def test_the_key_of_a_heatmap_stands_below_its_own_colours(node):
    (plot,) = shown(node, figures.angle_heatmap(dim=32, show="wrapped angle")).plots
    right = plot.image(1)[1][0]
    bars = [one for one in plot.kind("rect") if one["rect"][3] == 8 and one["rect"][0] > right]
    for label, turn in (("0", 0), ("π", 0.5), ("2π", 1)):
        ((_, (x, _)),) = plot.texts(f"^{label}$", lambda x, y: y < 40 and x > right)
        nearest = min(bars, key=lambda one: abs(one["rect"][0] - x))
        rgb = [int(c) for c in nearest["color"][4:-1].split(",")]
        assert np.abs(rgb - 255 * np.array(palette.PHASE(turn)[:3])).max() <= 6


@pytest.mark.parametrize(("width", "marks"), [(572, "0 π 2π"), (760, "0 π/2 π 3π/2 2π")])
def test_the_marks_of_a_short_key_do_not_meet(node, width, marks):
    (plot,) = shown(node, figures.angle_heatmap(), width=width).plots
    right = plot.image(1)[1][0]
    found = plot.texts("^(0|3?π/2|2?π)$", lambda x, y: 20 < y < 40 and x > right)
    assert [label for label, _ in found] == marks.split()


@pytest.mark.parametrize("show", ["angle", "cosine"])
def test_precision_microscope(node, show):
    made = figures.precision_microscope(dtype="bf16", stage="positions", show=show)
    seen = shown(node, made)
    (plot,) = seen.plots
    torch = pytest.importorskip("torch")
    count = 131_072
    positions = np.array(node.call("precision_microscope.js", "columnPositions", count))
    held = torch.tensor(positions, dtype=torch.float64).to(torch.bfloat16).double().numpy()
    angle, computed = (
        np.outer(inverse_frequencies(128), [positions, held]).reshape(64, 2, -1).swapaxes(0, 1)
    )
    errors = np.abs(np.cos(computed) - np.cos(angle))
    if show == "angle":  # the short way round: 3 pi / 2 is pi / 2
        errors = np.abs(np.angle(np.exp(1j * (computed - angle))))
    assert errors.max() <= (math.pi if show == "angle" else 2)
    with np.errstate(divide="ignore"):
        scale = np.clip((np.log10(errors) + 10) / (math.log10(math.pi) + 10), 0, 1)
    pixels, (x0, y0, wide, tall) = plot.image()
    off = np.abs(pixels - 255 * palette.ANGLE(np.round(255 * scale) / 255)[..., :3]).max(axis=-1)
    known = errors > 1e-9  # below, two ways to compute a cosine differ
    assert off[known].max() <= 2.5
    bare = [r for r in plot.rects(seen.colors["paper"]) if r[3] == tall]
    assert len(bare) == (errors.max(axis=0) == 0).sum() > 100, "columns without an error are bare"

    x = plot.x_axis(below(y0 + tall), log=True)
    y = plot.y_axis(below(y0 + tall), log=True)
    law = plot.curve(seen.colors["accent"], below(y0 + tall), dash=[6, 4])
    wrong = positions > 256
    x.agrees(law[:, 0], positions[wrong])
    most = math.pi if show == "angle" else 2
    y.agrees(law[:, 1], np.minimum(positions[wrong] * 2.0**-8, most))
    worst = plot.curve(seen.colors["ink"], below(y0 + tall), width=1.2)
    y.agrees(worst[:, 1], np.clip(errors.max(axis=0), 1e-9, None))
    assert plot.texts("^whole numbers end at 256$")
    lines = plot.kind("stroke", color="#ffffff", dash=[6, 4])
    at = (lines[0]["lines"][0][0][0] - x0) / wide * 240 - 0.5
    assert (count - 1) ** (at / 239) == pytest.approx(256, rel=1e-6)


def test_where_no_number_is_left_the_microscope_is_red(node):
    seen = shown(node, figures.precision_microscope("fp16", "product", "angle", 1048576))
    (plot,) = seen.plots
    _, (x0, _, wide, tall) = plot.image()
    positions = np.array(node.call("precision_microscope.js", "columnPositions", 1048576))
    red = plot.rects(seen.colors["warm"])
    columns = np.round((red[:, 0] - x0) / wide * 240).astype(int)
    with np.errstate(over="ignore"):
        lost = np.isinf(np.outer(inverse_frequencies(128), positions).astype(np.float16))
    assert columns.tolist() == np.flatnonzero(lost.any(axis=0)).tolist()
    np.testing.assert_allclose(red[:, 3] / tall * 64, lost.sum(axis=0)[columns])
    assert plot.texts("^lost$")


# ---- horizons -----------------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize(
    ("theta", "dim"), [(1.0, 128), (0.001, 256), (math.pi / 2048, 64), (3.1, 2)]
)
def test_wrap_explorer(node, theta, dim, width):
    seen = shown(node, figures.wrap_explorer(theta=theta, dim=dim), width=width)
    (plot,) = seen.plots
    hands = theta * inverse_frequencies(dim)
    tall = 104 if width > 480 else 72
    inside = [lambda x, y, k=k: 0 <= y - 22 - k * (tall + 26) <= tall for k in range(3)]
    x = plot.x_axis(below(3 * (tall + 26)), log=True)
    assert x.values.tolist() == [1, 10, 100, 1000, 10000], "the axis stays as it is"
    dots = np.arange(1, 12 if width > 480 else 5)
    values = [dots * theta % TURN, np.cos(dots * theta), aliasing.mean_cosine(dots, hands)]
    colors = [pair_color(0, 64), pair_color(0, 64), seen.colors["accent"]]
    horizons = [aliasing.angle_horizon(theta), *map(aliasing.cosine_horizon, ([theta], hands))]
    for panel, wanted, color, horizon in zip(inside, values, colors, horizons, strict=True):
        drawn = np.array([d for d in plot.discs(color, 3.2) if panel(*d)])
        x.agrees(drawn[:, 0], dots)
        plot.y_axis(panel).agrees(drawn[:, 1], wanted)
        line = plot.curve(seen.colors["warm"], panel, width=1.8)
        x.agrees(line[:, 0], [float(horizon)] * 2)
        assert 1 < horizon < 10_000, "the mark stays in the picture"

    # far away the mean is a bar from its lowest to its highest in each pixel
    bars = plot.rects(seen.colors["accent"])
    y = plot.y_axis(inside[2])
    every = aliasing.mean_cosine(np.arange(1, 10_001), hands)
    for left, top, _, high in bars[-40::13]:
        first, last = np.round(10 ** x.read([left - 1, left + 2])).astype(int)
        near = every[first - 1 : min(last, 10_000)]
        lowest, highest = y.read([top + high - 0.9, top + 0.9])
        assert near.min() - 0.05 <= lowest <= highest <= near.max() + 0.05
        assert highest - lowest >= 0.5 * np.ptp(near) - 0.05
    # and no hand is a solid slab
    for one in plot.kind("rect", color=pair_color(0, 64)):
        assert one["alpha"] < 0.2


@WIDTHS
@pytest.mark.parametrize("slower", [1.0, 16.0, 2048 / math.pi, 2000.0])
def test_the_meters_of_the_dial(node, slower, width):
    seen = shown(node, figures.horizon_dial(slower=slower), width=width)
    (plot,) = seen.plots
    hands = inverse_frequencies(128) / slower
    horizon = aliasing.cosine_horizon(hands[0])
    loud = aliasing.neighbour_snr(hands, "bfloat16")
    bars = [one for one in plot.kind("rect") if one["rect"][3] == 30]
    for k, (value, goal, good) in enumerate(
        [(horizon, 2048, horizon >= 2048), (loud, 1, loud >= 1)]
    ):
        ground, bar = bars[2 * k : 2 * k + 2]
        meter = lambda x, y, k=k: k * 132 <= y < (k + 1) * 132  # noqa: E731
        axis = plot.x_axis(lambda x, y, k=k: k * 132 + 90 < y < k * 132 + 105, log=True)
        axis.agrees([bar["rect"][0] + bar["rect"][2]], [value], within=2.5)
        assert bar["color"] == seen.colors["accent" if good else "warm"]
        assert ground["rect"][2] > bar["rect"][2]
        line = plot.curve(seen.colors["ink"], meter, width=2)
        axis.agrees(line[:, 0], [goal] * 2)
        # RoPE's tick stands where RoPE is
        rope = (
            aliasing.cosine_horizon([1.0])
            if k == 0
            else aliasing.neighbour_snr(inverse_frequencies(128), "bfloat16")
        )
        ((_, (label, _)),) = plot.texts("^RoPE$", meter)
        axis.agrees([label], [rope], within=2.5)


# ---- faders -------------------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize(("preset", "kind"), [("YaRN, code", "yarn"), ("NTK", "ntk")])
def test_the_faders_and_their_meters(node, preset, kind, width):
    plain = inverse_frequencies(128)
    pi = rescaled_frequencies("linear", 128, factor=16.0)[0]
    inv_freq, attention = rescaled_frequencies(
        kind,
        128,
        factor=16.0,
        **({} if kind == "ntk" else {"original_max_position_embeddings": 4096}),
    )
    made = figures.rescaling_faders(preset=preset, compare="PI")
    seen = shown(node, made, width=width)
    plot, gauges = seen.plots
    y = plot.y_axis(log=True)  # × 2, × 1, 1/2 ... 1/32
    assert y.values.min() == 1 / 32
    caps = [one["rect"] for one in plot.kind("fill") if one.get("rect")]
    assert len(caps) == 64
    middle = np.array([[x + wide / 2, top + 3.5] for x, top, wide, _ in caps])
    assert (np.diff(middle[:, 0]) > 0).all(), "fast hands are on the left"
    y.agrees(middle[:, 1], inv_freq / plain)
    other = plot.curve(seen.colors["ink"], width=2)
    y.agrees(other[::2, 1], pi / plain)

    # a red field over the pairs that have seen an arc, above 1/16; darker where one is in it
    low = y.pixels[np.argmin(np.abs(y.values - 1 / 16))]
    field, *shaded = plot.rects(seen.colors["warm"])
    step = (middle[-1, 0] - middle[0, 0]) / 63
    pairs = lambda x: round((x - middle[0, 0]) / step + 0.5)  # noqa: E731
    arc = np.flatnonzero(aliasing.unseen_pairs(plain, 65536, plain, 4096))
    assert (pairs(field[0]), pairs(field[0] + field[2])) == (arc[0], arc[-1] + 1)
    assert field[1] + field[3] == pytest.approx(low, abs=1)
    unseen = aliasing.unseen_pairs(inv_freq, 65536, plain, 4096)
    assert {pairs(one[0]) for one in shaded} == set(np.flatnonzero(unseen))
    texts = [text for text, _ in gauges.texts()]
    assert str(int(unseen.sum())) in texts
    assert f"× {attention**2:.2f}" in texts
    bars = [one["rect"][2] for one in gauges.kind("fill") if one["color"] != seen.colors["rule"]]
    ground = [one["rect"][2] for one in gauges.kind("fill", color=seen.colors["rule"])]
    kept = aliasing.neighbour_contrast(inv_freq) / aliasing.neighbour_contrast(plain)
    wanted = [unseen.sum() / 64, kept, attention**2 - 1]
    for bar, whole, part in zip(bars, ground, wanted, strict=True):
        assert bar / whole == pytest.approx(part, abs=0.01)


# ---- layouts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("move", [(False, False), (True, False), (True, True)])
def test_the_threads_lead_every_row_to_its_place(node, move):
    made = figures.layout_threads("GPT-NeoX: 24 of 96", *move)
    seen = shown(node, made)
    (plot,) = seen.plots
    order = (
        np.arange(24).reshape(2, 12).T.ravel()
    )  # half-split in the file, interleaved in the code
    place = np.argsort(order)
    threads = [one for one in plot.kind("stroke") if one["alpha"] < 1 or one["width"] == 3.6]
    for loom, moved in enumerate(move):
        left = [one["lines"][0] for one in threads[loom * 24 : loom * 24 + 24]]
        starts = sorted(line[0][1] for line in left)
        assert len(set(starts)) == 24
        rows = {round(height, 6): row for row, height in enumerate(starts)}
        for line in left:
            old, new = rows[round(line[0][1], 6)], rows[round(line[-1][1], 6)]
            assert new == (place[old] if moved else old)
    truth, made_of = (plot.image(i)[0] for i in (0, 1))
    equal = (truth == made_of).all(axis=-1)
    assert equal.all() == (move == (True, True))
    if not any(move):
        assert equal.diagonal().all(), "a token's score with itself needs no angle"
    dots = plot.discs(seen.colors["warm"])
    assert (len(dots) == 0) == (move == (True, True))


# ---- bytes --------------------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [list(SHAPES)[i] for i in (0, 2)])
def test_all_forms_of_a_byte_budget_stand_on_one_axis(node, shape, dtype, width):
    made = figures.byte_budget(shape=shape, dtype=dtype, form="roll, signed sine")
    data = json.loads(json.dumps(made.data, sort_keys=True))  # as a cache hands it on
    made.data = data
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    x = plot.x_axis(below(370))
    ((said, _),) = plot.texts("^time")
    unit = {"time (ms)": 1000, "time (µs)": 1}[said]
    cases = data["machines"]["CPU"]["cases"]
    (case,) = (c for c in cases if (c["dtype"], c["shape"]) == (dtype, [*SHAPES[shape]]))
    a_pass = case["floor_us"] / 2 / unit
    rows = {text: at[1] for text, at in plot.texts() if text in FORMS}
    assert list(rows) == list(FORMS), "every form has its row"
    pitch = (max(rows.values()) - min(rows.values())) / (len(rows) - 1)
    ticks = [one["lines"][0] for one in plot.kind("stroke", color=seen.colors["ink"], width=1.5)]
    for i, (name, height) in enumerate(rows.items()):
        here = [one for one in plot.kind("rect") if -14 < one["rect"][1] - height < pitch - 12]
        bars = {
            color: [(one["rect"], one["alpha"]) for one in here if one["color"] == value]
            for color, value in seen.colors.items()
        }
        steps = data["forms"][name][dtype]
        for alpha, which in ((0.35, 1), (0.85, 2)):
            chosen = "accent" if name == "roll, signed sine" else "muted"
            blocks = [rect[2] for rect, own in bars[chosen] if own == alpha]
            wanted = sum(step[which] for step in steps) * a_pass / x.slope
            assert sum(blocks) == pytest.approx(wanted, abs=len(blocks) + 1), (name, which)
        passes = sum(read + written for _, read, written in steps)
        x.agrees([ticks[i][0][0]], [passes * a_pass])
        measured = case["us"].get(name, 0) / unit
        ends = [
            rect[0] + rect[2]
            for color in ("ink", "warm")
            for rect, _ in bars[color]
            if rect[3] < 10
        ]
        x.agrees([max(ends, default=x.pixels[0])], [measured])
        late = [rect for rect, _ in bars["warm"] if rect[2] > 1]
        assert bool(late) == (measured > passes * a_pass + x.slope), name


@WIDTHS
def test_the_axis_of_a_byte_budget_stays_where_it_is(node, width):
    read = []
    for form in ("rotate_half (textbook, Hugging Face)", "one complex product (Meta)"):
        for dtype in ("float32", "bfloat16"):
            seen = shown(node, figures.byte_budget(form=form, dtype=dtype), width=width)
            x = seen.plots[0].x_axis(below(370))
            read.append((x.start, x.slope))
    np.testing.assert_allclose(read, [read[0]] * 4)


# ---- bugs ---------------------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize("patient", [1, 3, 6, 9])
def test_the_charts_of_a_patient(node, patient, width):
    made = figures.bug_bench(patient)
    data = made.data
    seen = shown(node, made, width=width)
    (chart,) = seen.plots
    case = data["patients"][patient - 1]
    places, high = len(data["rows"]), 29 if width > 520 else 34
    under = below(24 + places * high + 30)
    scores = (
        (lambda x, y: under(x, y) and x < 0.6 * width) if width > 560 and patient == 6 else under
    )
    curves = {  # only those that differ
        1: {},
        3: {"muted": data["healthy"], "warm": case["far"]},
        6: {"muted": data["healthy"], "warm": case["near"], "ink": case["far"]},
        9: {"muted": data["healthy"], "warm": case["near"]},
    }[patient]
    top = lambda x, y: scores(x, y) and (width > 560 or y < 24 + places * high + 38 + 168)  # noqa: E731
    assert bool(chart.texts("^healthy")) == bool(curves)
    for color, values in curves.items():
        y, x = chart.y_axis(top), chart.x_axis(top)
        line = chart.curve(seen.colors[color], top)
        y.agrees(line[:, 1], values)
        x.agrees(line[:, 0], np.arange(len(values)))
    if patient == 6:
        lengths = lambda x, y: under(x, y) and not top(x, y)  # noqa: E731
        line = chart.curve(seen.colors["warm"], lengths)
        chart.y_axis(lengths).agrees(line[:, 1], case["length"])
    else:
        assert not chart.texts("^length")

    tokens = chart.x_axis(lambda x, y: not under(x, y))
    frames = [one["rect"] for one in chart.kind("frame", color=seen.colors["rule"])]
    assert len(frames) == len(data["rows"])
    cells = chart.kind("rect", color=seen.colors["warm"])
    found = np.zeros((len(data["rows"]), len(case["errors"][0])))
    for cell in cells:
        cx, cy, wide, _ = cell["rect"]
        row = next(i for i, f in enumerate(frames) if abs(f[1] - cy) <= 1)
        found[row, round(tokens.read(cx + wide / 2).item())] = cell["alpha"]
    for row, errors in enumerate(case["errors"]):
        wrong = np.array(errors) > 3e-5
        assert ((found[row, : len(errors)] > 0) == wrong).all()
    known = np.array([e for errors in case["errors"] for e in errors])
    dark = np.concatenate([found[i, : len(e)] for i, e in enumerate(case["errors"])])
    order = np.argsort(known)
    assert (np.diff(dark[order]) > -1e-9).all(), "a worse error is darker"


# ---- the complete list --------------------------------------------------------------------------


def families():
    states = itertools.product([True, False], repeat=4)
    kinds = {
        (True,) * 4: "rope",
        (False, True, True, True): "oblique",
        (False, False, True, True): "growth",
        (False, True, False, True): "counting",
    }
    return [{"axioms": s, "kind": kinds.get(s, "none"), "certificate": "checked"} for s in states]


@WIDTHS
@pytest.mark.parametrize("kind", ["rope", "oblique", "growth", "counting"])
def test_the_path_and_the_score_of_a_family(node, kind, width):
    made = figures.axioms(families())
    (state,) = [family["axioms"] for family in families() if family["kind"] == kind]
    for name, value in zip(("rule", "circle", "diagonalisable", "orientation"), state, strict=True):
        setattr(made, name, value)
    seen = shown(node, made, width=width)
    *small, plot = seen.plots
    assert len(small) == 10
    matrix = np.array(node.call("axioms.js", "matrix", kind, 0.3, 0.95))
    query, key = (
        np.array(node.call("axioms.js", name)[str(len(matrix))]) for name in ("QUERY", "KEY")
    )
    power = lambda s: np.linalg.matrix_power(matrix, s)  # noqa: E731
    chart = lambda x, y: x > (195 if width > 520 else 120)  # noqa: E731
    distances = np.arange(-12, 49)
    size = 2.6 if width > 520 else 2
    dots = np.array([d for d in plot.discs(seen.colors["accent"], size) if chart(*d)])
    x, y = plot.x_axis(chart), plot.y_axis(chart)
    x.agrees(dots[:, 0], distances)
    scores = [query @ power(s) @ key for s in distances]
    y.agrees(dots[:, 1], scores)

    # the path of the key's arrow: its first two channels, the second one upwards
    path = [power(s)[:2] @ key for s in range(25)]
    start = plot.discs(seen.colors["k"], 5)
    drawn = np.concatenate([start, plot.discs(seen.colors["accent"], 3)])
    circle = plot.arcs(seen.colors["rule"])[0]
    first = next(p for p in path if np.hypot(*p) > 0)
    unit = circle["radius"] / np.hypot(*first)
    seen_at = (drawn - circle["center"]) / unit * [1, -1]
    np.testing.assert_allclose(seen_at, path, atol=1e-6)


# ---- trained models -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models():
    return trained_models_data()


@WIDTHS
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("task", [0, 2, 3])
def test_every_encoding_stands_in_its_row_and_every_task_in_its_column(
    node, models, task, half, width
):
    data = models["tasks"][task]
    name = "the proposal, half a turn"
    made = figures.trained_models(models, task=data["name"], encoding=name, half=half)
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    rows = {text: at[1] for text, at in plot.texts() if text in ENTRIES and at[0] < 10}
    order = node.call("trained_models.js", "ranked", data)
    assert [row for row in rows if row in data["entries"]] == order
    assert (len(rows) == len(ENTRIES)) == (width > 560 or task == 0)
    assert list(rows.values()) == sorted(rows.values())

    heights = list(rows.values())
    ticks = plot.texts("^[0-9.]+$", lambda x, y: y < heights[1])
    places = plot.texts("^[1248]$", lambda x, y: y > heights[-1])
    own = [
        one for one in plot.kind("stroke", color=seen.colors["ink"]) if one["width"] in (1.6, 2.5)
    ]
    for column in models["tasks"] if width > 560 else [data]:
        (best, high), (worst, low) = (
            (float(text), at[1]) for text, at in (ticks.pop(0), ticks.pop(0))
        )
        assert (best < worst) == (column["unit"] == "bits")
        across = [places.pop(0) for _ in models["times"]]
        assert [text for text, _ in across] == ["1", "2", "4", "8"]
        for row, height in rows.items():
            if row not in column["entries"]:
                continue
            drawn = own.pop(0)
            assert (drawn["width"] == 2.5) == (row == name)
            scores = column["entries"][row]["bfloat16" if half else "scores"]
            line = np.array(drawn["lines"][0])
            middles = [at[0] for _, at in across[: len(scores)]]
            np.testing.assert_allclose(line[:, 0], middles, atol=1e-6)
            up = (low - (line[:, 1] - height + heights[0])) / (low - high)
            medians = [np.median(values) for values in scores]
            np.testing.assert_allclose(worst + up * (best - worst), medians, atol=1e-6)
    assert ticks == places == own == []


def test_green_is_ahead_of_rope_and_red_behind(node, models):
    data = models["tasks"][1]
    seen = shown(node, figures.trained_models(models, task="find"), width=330)
    (plot,) = seen.plots
    rows = {text: at[1] for text, at in plot.texts() if text in ENTRIES and at[0] < 10}
    pitch = (max(rows.values()) - min(rows.values())) / (len(rows) - 1)
    rope = [np.median(values) for values in data["entries"]["RoPE"]["scores"]]
    for name, height in rows.items():
        mine = [np.median(values) for values in data["entries"][name]["scores"]]
        for color, sign in (("accent", 1), ("warm", -1)):
            areas = [one["lines"][0] for one in plot.kind("fill", color=seen.colors[color])]
            tall = [
                abs(ours[1] - theirs[1])
                for line in areas
                for ours, theirs in (line[::3], line[1:3])
                if len(line) == 4 and abs(ours[1] - height) < pitch / 2
            ]
            wanted = max(0, *(sign * (a - b) for a, b in zip(mine, rope, strict=True)))
            assert max(tall, default=0) == pytest.approx(wanted * (pitch - 8), abs=1e-6), name


def test_the_heads_of_the_columns_sort_and_the_switch_shows_16_bits(node, models):
    made = figures.trained_models(models, encoding="RoPE")
    seen = shown(node, made, press=("find", "in 16 bits"))
    assert (seen.values["task"], seen.values["half"]) == ("find", True)
    assert seen.says.startswith("On find, in 16 bits ")
    assert "gained" in dict(seen.plots[0].texts())
    assert "in 16 bits at 1 and 2 windows, with its own score in 32 bits" in seen.plots[0].label
    again = shown(node, made, press=("find", "in 16 bits", "in 16 bits"))
    assert again.values["half"] is False
    assert "ahead" in dict(again.plots[0].texts())


# ---- encodings of 2024 to 2026 ------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize("length", [1, 8])
@pytest.mark.parametrize("task", ["language", "recall"])
def test_every_seed_of_a_recent_method_stands_at_its_score(node, task, length, width):
    data = recent_methods_data()
    made = figures.recent_methods(data, "TAPA", "no encoding", length, task)
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    rows = {text: at[1] for text, at in plot.texts() if text in METHODS}
    assert list(rows) == METHODS
    low = max(rows.values())
    ticks = plot.texts(r"^[\d.]+$", below(low))
    columns = [one for one in data["tasks"] if width > 560 or one["name"] == task]
    assert len(ticks) == 2 * len(columns)
    colors = dict.fromkeys(METHODS, seen.colors["muted"])
    colors |= {"TAPA": seen.colors["accent"], "no encoding": seen.colors["ink"]}
    for i, column in enumerate(columns):
        (worst, (x0, _)), (best, (x1, _)) = ((float(t), at) for t, at in ticks[2 * i : 2 * i + 2])
        assert (worst > best) == (column["unit"] == "bits")
        for name, height in rows.items():
            found = plot.discs(colors[name], 2.4)
            own = found[(abs(found[:, 1] - height) < 2) & (found[:, 0] > x0 - 9)]
            own = own[own[:, 0] < x1 + 9]
            at = column["scores"][name][data["times"].index(length)]
            wanted = x0 + (np.array(at) - worst) / (best - worst) * (x1 - x0)
            np.testing.assert_allclose(sorted(own[:, 0]), sorted(wanted), atol=1e-6)
        sign = -1 if column["unit"] == "bits" else 1
        a, b = (
            np.array(column["scores"][n][data["times"].index(length)])
            for n in ("TAPA", "no encoding")
        )
        gains = sign * (a - b)
        middle, half = (x0 + x1) / 2, (x1 - x0) / 2
        for color, of in (("accent", gains[gains > 0]), ("warm", gains[gains < 0])):
            found = plot.discs(seen.colors[color], 3).reshape(-1, 2)
            own = found[(found[:, 0] > x0 - 9) & (found[:, 0] < x1 + 9), 0]
            back = (own - middle) / half
            np.testing.assert_allclose(
                sorted(np.sign(back) * back**2 * abs(best - worst)), sorted(of), atol=1e-6
            )


# ---- a model in training ------------------------------------------------------------------------


@WIDTHS
def test_runs_stand_at_their_losses_their_attention_and_their_scores(node, width):
    made = figures.train_it(train_it_data())
    run = {"name": "RoPE", "task": "copy", "rate": 0.1, "seed": 0, "steps": 200, "known": None}
    run |= {"losses": [3.5 * 0.98**i for i in range(200)], "scores": [1.0, 0.9, 0.4, 0.1]}
    run["attention"] = [[0.5 * math.exp(-m) for m in range(33)], [1 / 33] * 33]
    spread = [[0.9, 1.0], [0.8, 0.95], [0.3, 0.5], [0.0, 0.2]]
    known = {**run, "name": "ALiBi", "known": spread, "scores": [1.0, 1.0, 0.9, 0.8]}
    known["losses"] = [2.0] * 200
    made.runs = [run, known]
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    wide = width > 560
    top, third = (190, 0.62) if wide else (142, 1.0)
    losses = lambda x, y: y < top and x < (0.33 if wide else 0.5) * width  # noqa: E731
    attention = lambda x, y: y < top and not losses(x, y) and x < third * width + 1  # noqa: E731
    scores = lambda x, y: x > third * width if wide else top < y < 290  # noqa: E731
    muted, accent, warm = (seen.colors[name] for name in ("muted", "accent", "warm"))

    for color, one in ((muted, run), (accent, known)):
        line = plot.curve(color, losses, dash=[])
        plot.y_axis(losses).agrees(line[:, 1], one["losses"])
        plot.x_axis(losses).agrees(line[:, 0], np.arange(1, 201))
        heights = plot.curve(color, scores, dash=[])
        plot.y_axis(scores).agrees(heights[:, 1], one["scores"])
    for color, row in zip((accent, seen.colors["ink"]), known["attention"], strict=True):
        line = plot.curve(color, attention)
        plot.y_axis(attention).agrees(line[:, 1], row)
        plot.x_axis(attention).agrees(line[:, 0], np.arange(33))
    places = {tick: x for tick, (x, _) in plot.texts("^[1248]$", scores)}
    assert sorted(places) == ["1", "2", "4", "8"]
    np.testing.assert_allclose(heights[:, 0], sorted(places.values()), atol=1)
    broken = plot.discs(warm)
    assert broken[:, 0] == pytest.approx([places["4"], places["8"]], abs=1)  # below half of 1
    bars = plot.rects(muted)
    plot.y_axis(scores).agrees(bars[:, 1] + 1, [high for _, high in spread])
    plot.y_axis(scores).agrees(bars[:, 1] + bars[:, 3] - 1, [low for low, _ in spread])
    assert [text for text, _ in plot.texts("·")] == [
        "100% · 90% · 40% · 10%",
        "100% · 100% · 90% · 80%",
    ]


@WIDTHS
def test_before_a_start_nothing_is_trained(node, width):
    made = figures.train_it(train_it_data(), "no encoding", "find")
    seen = shown(node, made, width=width)
    assert seen.says.startswith("Press Start to train no encoding on find")
    assert seen.values["phase"] == "none"
    (plot,) = seen.plots
    assert plot.texts("not stretched yet")


def test_what_was_trained_elsewhere_or_before_another_task_is_not_to_be_stretched(node):
    """Its weights are not here; the words say so."""
    run = {"name": "RoPE", "task": "copy", "rate": 0.1, "seed": 0, "steps": 200, "known": None}
    run |= {"losses": [0.1] * 200, "scores": [], "attention": [[1 / 33] * 33] * 2}
    made = figures.train_it(train_it_data())
    for made.runs in ([run], [run, {**run, "task": "find"}]):
        says = shown(node, made, width=680).says
        assert "Its weights are gone: train it again" in says
        assert "stretch the text" not in says


# ---- a real head --------------------------------------------------------------------------------


@WIDTHS
def test_the_words_the_use_and_the_maps_of_a_real_head(node, width):
    data = real_heads.load()
    made = figures.real_head(data, first=0, out=4, query=60)
    made.tried = [5, 9, 0]
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    q, k = real_heads.unpacked(data["heads"][0])
    both = [real_heads.attention(q, k, Change(left_out=out))[0] for out in ((), (0, 1, 2, 3))]
    released, now = (weights.numpy() for weights in both)
    blue = plot.kind("rect", color=seen.colors["k"])
    frames = {one["rect"][0]: one["rect"] for one in plot.kind("frame", color=seen.colors["rule"])}
    assert len(frames) == 2, "two maps"
    for (left, top, side, _), weights in zip(sorted(frames.values()), (released, now), strict=True):
        cells = np.zeros((68, 68))
        for one in blue:
            x, y, *_ = one["rect"]
            if left - 0.1 < x < left + side and top - 0.1 < y:
                cells[round((y - top) * 68 / side), round((x - left) * 68 / side)] = one["alpha"]
        np.testing.assert_allclose(cells**2, np.where(weights < 0.002, 0, weights), atol=2e-3)

    # words: shaded as they are read now, underlined as they were; the query is framed
    (query,) = plot.kind("frame", color=seen.colors["q"], width=2)[1:]
    _, place = plot.texts("^thing$")[-1]
    assert query["rect"][0] == pytest.approx(place[0] - 2)
    below_words = plot.rects(seen.colors["warm"])[0, 1]
    above = [one for one in blue[1:] if one["rect"][1] < below_words - 20]
    assert [one["alpha"] for one in above] == [pytest.approx(0.6 * math.sqrt(now[60, 0]))]
    lines = plot.rects(seen.colors["ink"])[1:]
    read = [(key, w) for key, w in enumerate(released[60]) if w >= 0.002]
    assert lines[:, 3] == pytest.approx([4 * math.sqrt(w) for _, w in read], abs=1e-3)

    # the shares stand over the maps
    keys = real_heads.mask("before", data["tokens"], both[0])
    shares = [real_heads.share_of(weights, keys).item() for weights in both]
    assert [text for text, _ in plot.texts("^(as released|now): ")] == [
        f"as released: {shares[0]:.0%}",
        f"now: {shares[1]:.0%}",
    ]

    # bars
    bars = [one for i in range(32) for one in plot.kind("rect", color=pair_color(i, 32))]
    a, b = (np.linalg.norm(x[0].unflatten(-1, (32, 2)), axis=-1).mean(0) for x in (q, k))
    high = np.array([one["rect"][3] for one in bars])
    np.testing.assert_allclose(high / high.max(), a * b / (a * b).max(), atol=1e-5)
    assert [one["alpha"] for one in bars] == [0.45] * 4 + [1] * 28

    # what is left without each window that was tried, over the middle of its bars
    y = plot.y_axis(lambda x, _: x < 36)
    assert y.values.tolist() == [0, 0.5, 1]
    level = plot.curve(seen.colors["ink"], width=1.25, dash=[4, 3])
    y.agrees(level[:, 1], [shares[0]] * 2)
    step = bars[1]["rect"][0] - bars[0]["rect"][0]
    hues = [seen.colors[colour] for colour in ("accent", "muted", "warm")]
    dots = {radius: [d for hue in hues for d in plot.discs(hue, radius)] for radius in (3.5, 7)}
    legend = ["does without it", "is weaker without it", "needs it"]
    assert [text for text, _ in plot.texts("without it$|^needs it$")] == legend
    assert [len(plot.discs(hue, 4)) for hue in hues] == [1, 1, 1]
    assert [len(found) for found in dots.values()] == [2, 1]
    for (left, high), first in zip(sorted(map(tuple, dots[7] + dots[3.5])), (0, 5, 9), strict=True):
        assert left == pytest.approx(bars[0]["rect"][0] - 0.12 * step + (first + 2) * step)
        out = Change(left_out=tuple(range(first, first + 4)))
        part = real_heads.share_of(real_heads.attention(q, k, out)[0], keys).item()
        y.agrees([high], [part])
    (handle,) = plot.discs(seen.colors["warm"], 11)
    assert handle[0] == pytest.approx(bars[0]["rect"][0] - 0.12 * step + 2 * step)
    marks = plot.texts("^[0-9]+$")
    assert [text for text, _ in marks] == ["0", "8", "16", "24", "31"]
    for text, (x, _) in marks:
        left, _, wide, _ = bars[int(text)]["rect"]
        assert x == pytest.approx(left + wide / 2)


@WIDTHS
@pytest.mark.parametrize(("first", "out"), [(0, 4), (25, 1)])
def test_arcs_lead_to_what_a_word_reads_in_its_line(node, first, out, width):
    data = real_heads.load()
    seen = shown(node, figures.real_head(data, first=first, out=out, query=57), width=width)
    (plot,) = seen.plots
    q, k = real_heads.unpacked(data["heads"][0])
    now = real_heads.attention(q, k, Change(left_out=tuple(range(first, first + out))))[0][57]
    words = plot.texts(".")[3:71]  # after the legend
    assert [text for text, _ in words] == [token.strip() for token in data["tokens"]]
    line = [key for key in range(57) if words[key][1][1] == words[57][1][1]]
    arcs = [one for one in plot.kind("stroke", color=seen.colors["k"]) if one["width"] > 1]
    wanted = [1 + 2 * now[key].item() for key in line if now[key] >= 0.05]
    assert [one["width"] for one in arcs] == pytest.approx(wanted)
    assert bool(arcs) == (out == 1)
    for one in arcs:
        ys = [y for _, y in one["lines"][0]]
        assert max(ys) < words[57][1][1] - 10, "above the words"
        assert ys[0] == ys[-1]


@WIDTHS
@pytest.mark.parametrize("tried", [[], [19, 20, 22, 23, 24, 25, 26, 27], [25, 22, 20, 5]])
def test_what_is_named_in_the_chart_of_a_head_covers_no_dot_and_no_line(node, tried, width):
    made = figures.real_head(real_heads.load(), first=21)
    made.tried = tried
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    dots = [d for c in ("accent", "muted", "warm") for d in plot.discs(seen.colors[c], 3.5)]
    assert len(dots) == len(tried)
    level = plot.curve(seen.colors["ink"], width=1.25, dash=[4, 3])[0, 1]
    answer, released = (plot.texts(said)[-1] for said in (r"^[\d.]+%$", "^as released [0-9]+%$"))
    for (said, (left, y)), size in ((answer, 16), (released, 12)):
        assert abs(y - level) > size / 2 + 3
        for dot in dots:
            beside = max(left - dot[0], dot[0] - left - 0.4 * size * len(said))
            assert beside > 4 or abs(dot[1] - y) > size / 2 + 4


# ---- serving ------------------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize(
    ("kept", "moves", "step", "other"),
    [
        ("q8_0", 256, 1, "one move"),
        ("fp16", 1, 64, "one move"),
        ("q4_0", 256, 137, "Hadamard basis"),
    ],
)
def test_the_errors_of_a_worn_key(node, kept, moves, step, other, width):
    made = figures.worn_key(kept=kept, moves=moves, step=step, pair=40, other=other)
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    told = node.call("worn_key.js", "reading", kept, moves, step)
    ((_, (left, whole)),) = plot.texts("^100%$", lambda x, y: x < 100)
    ((_, foot),) = [at for text, at in plot.texts("^192$")]
    x = plot.x_axis(lambda x, y: y == foot)
    y = plot.y_axis(lambda x, y: x == left and y >= whole)
    beyond = plot.y_axis(lambda x, y: x == left and y <= whole, log=True)
    assert x.values.tolist() == [0, 64, 128, 192, 256], "the axes stay as they are"
    assert (y.values.tolist(), beyond.values.tolist()) == ([0, 0.5, 1], [1, 3, 10])

    def agree(heights, errors):
        for height, error in zip(heights, errors, strict=True):
            (beyond if error > 1 else y).agrees([height], [error])

    warm = plot.curve(seen.colors["warm"], dash=[])
    x.agrees(warm[:, 0], np.arange(moves + 1))
    some = (0, 1, moves // 2)
    agree(warm[some, 1], [node.call("worn_key.js", "wear", kept, n, step)["all"] for n in some])
    ((across, high),) = plot.discs(seen.colors["accent"], 10)
    x.agrees([across], [moves])
    agree([high], [told["many"]["all"]])
    ends = plot.discs(seen.colors["paper"], 4)
    assert len(ends) == (1 if moves > 1 else 0)
    if len(ends):
        agree(ends[:, 1], [told["one" if other == "one move" else "mixed"]["all"]])
    if other != "one move":
        agree(plot.curve(seen.colors["accent"], dash=[])[:, 1], told["mixed"]["trail"])

    bars = [plot.kind("rect", color=pair_color(i, 64))[0]["rect"] for i in range(64)]
    tall = np.array(bars)[:, 3]
    full = plot.rects(seen.colors["rule"])[0][3]
    np.testing.assert_allclose(tall, np.maximum(1, full * np.minimum(told["many"]["errors"], 1)))
    beyond = sum(error > 1 for error in told["many"]["errors"])
    ends = [rect for rect in plot.rects(seen.colors["warm"]) if rect[3] == 3]
    assert len(ends) == beyond


@WIDTHS
def test_the_hand_and_the_lens_show_one_pair_of_the_first_key(node, width):
    seen = shown(node, figures.worn_key("bf16", 256, 1, 42), width=width)
    (plot,) = seen.plots
    ring = plot.arcs(seen.colors["rule"])[0]
    key = np.array(node.call("worn_key.js", "startKeys"))[None, :128]
    turned = lambda key, by: reference.rotate_complex(key, np.array([by]), interleaved=False)[0]  # noqa: E731
    exact = turned(key, 256)
    is_ = np.array(node.call("worn_key.js", "wear", "bf16", 256, 1)["path"][-1])
    heads = [
        one["lines"][0][0] for one in plot.kind("fill", color=seen.colors["k"]) if "arc" not in one
    ]
    drawn = [(np.array(tip) - ring["center"]) * [1, -1] / ring["radius"] for tip in heads]
    length = np.hypot(exact[42], exact[106])
    assert drawn[0] == pytest.approx(np.array([exact[42], exact[106]]) / length, abs=1e-9)
    assert drawn[1] == pytest.approx(np.array([is_[42], is_[106]]) / length, abs=1e-9)
    path = [r for r in plot.rects(seen.colors["muted"]) if tuple(r[2:]) == (2, 2)]
    assert len(path) == 257


@pytest.mark.parametrize(
    ("kept", "pair", "step"), [("q8_0", 40, 1), ("bf16", 42, 1), ("bf16", 30, 1), ("q4_0", 36, 8)]
)
def test_a_move_that_ends_nearer_to_another_dot_is_followed(node, kept, pair, step):
    seen = shown(node, figures.worn_key(kept, 16, step, pair), width=680)
    (plot,) = seen.plots
    path = node.call("worn_key.js", "wear", kept, 17, step)["path"]
    tip, then = (np.array(key)[[pair, pair + 64]] for key in path[-2:])
    (said,) = [text for text, _ in plot.texts("^next: ")]
    rounded = seen.values["rounded"]
    assert said == ("next: rounded away" if rounded else "next: it follows")
    # stored again, the numbers are those of the dot that the arrow's head is nearest to
    dots = plot.discs(seen.colors["muted"], 2)
    (arrow,) = [
        one["lines"][0][0]
        for one in plot.kind("fill", color=seen.colors["warm" if rounded else "accent"])
        if one.get("lines") and len(one["lines"][0]) == 3
    ]
    (center,) = plot.discs(seen.colors["k"], 5)
    nearest = dots[np.argmin(np.hypot(*(dots - arrow).T))]
    assert bool(np.allclose(nearest, center)) == rounded
    # the scale of a block moves a little from storing to storing
    still = {"q8_0": 0.003, "q4_0": 0.03, "bf16": 0}[kept] * np.hypot(*tip)
    assert bool(np.abs(then - tip).max() <= still) == rounded


@WIDTHS
@pytest.mark.parametrize("pair", [0, 1])
@pytest.mark.parametrize(
    ("change", "cached", "words"),
    [
        ("words dropped", "moved", 4),
        ("words dropped", "stored raw", 8),
        ("chunk spliced", "as they are", 3),
        ("all moved", "moved", 5),
        ("chunk spliced", "moved", 0),
    ],
)
def test_the_tiles_and_arrows_of_a_shelf(node, change, cached, words, pair, width):
    made = figures.cache_shelf(change, cached, words, pair, word=9)
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    layers = node.call("cache_shelf.js", "shelf", change, cached, words)
    first = 0 if change == "all moved" else words
    own = first if change == "chunk spliced" else 0
    names = dict(plot.texts("^(hat|cold|and)$"))
    slot = (names["hat"][0] - names["cold"][0]) / 3
    left = names["hat"][0] - 11.5 * slot
    tiles = [
        *plot.kind("rect", color=seen.colors["accent"]),
        *plot.kind("rect", color=seen.colors["warm"]),
    ]
    assert len(tiles) == 3 * (own + len(layers[0]["used"]))
    for index, layer in enumerate(layers):
        keys = np.array([*layer["own"], *layer["used"]])
        rights = np.array([*layer["own"], *layer["wanted"]])
        gaps = np.sqrt(((keys - rights) ** 2).sum((1, 2)) / (rights**2).sum((1, 2)))
        tops = sorted({round(one["rect"][1], 3) for one in tiles})
        row = sorted(
            (one for one in tiles if one["rect"][1] == pytest.approx(tops[index], abs=0.01)),
            key=lambda one: one["rect"][0],
        )
        for j, (gap, tile) in enumerate(zip(gaps, row, strict=True)):
            x, y, across, tall = tile["rect"]
            assert x + across / 2 == pytest.approx(left + (first - own + j + 0.5) * slot)
            good = gap < 1e-9
            assert tile["color"] == seen.colors["accent" if good else "warm"]
            if not good:
                assert tile["alpha"] == pytest.approx(0.1 + 0.25 * min(gap, 1))
            at = lambda u, v, x=x, y=y: x < u < x + slot and y < v < y + tall  # noqa: B023, E731
            ((said, _),) = plot.texts("", at)
            assert said == ("✓" if good else f"{100 * gap:.0f}%" if width > 560 else "")
        # of the layer, at the left
        (_, (_, y)), *_ = plot.texts(f"^layer {index}$", lambda x, y: x < left)
        ((said, _),) = plot.texts("", lambda x, v, y=y: x < left and 0 < v - y < 20)
        assert said == ("right" if layer["off"] < 1e-9 else f"{100 * layer['off']:.0f}%")
    # the hands of every tile, and of a fresh run; on a phone those of one word once more, large
    tips = [
        np.array(one["lines"][0][0] if one["kind"] == "fill" else one["lines"][0][1])
        for one in plot.kind("fill", "stroke", color=seen.colors["k"])
        if one["kind"] == "fill" or len(one["lines"][0]) == 2
    ]
    discs = [one["arc"] for one in plot.kind("fill", color=seen.colors["paper"]) if one.get("arc")]
    hands = [(index, j) for index in range(3) for j in range(12 - (first - own))]
    if width < 560:
        hands += [(index, 9 - (first - own)) for index in range(3)]
    discs = [arc for arc in discs if arc["radius"] != 11]  # the handle
    for (index, j), arc in zip(hands, discs, strict=True):
        both = [
            np.array([*layers[index]["own"], *layers[index][what]])[j, 0, [pair, pair + 4]]
            for what in ("used", "wanted")
        ]
        longest = max(map(np.linalg.norm, both)) / (arc["radius"] - 1)
        drawn = both[:1] if np.allclose(*both, atol=1e-9) else both
        for vector in drawn:
            wanted_at = arc["center"] + vector * [1, -1] / longest
            assert min(np.hypot(*(tip - wanted_at)) for tip in tips) < 1e-6
    # places: of the word, and of the key
    row = lambda height: [  # noqa: E731
        int(t) for t, (_, y) in plot.texts(r"^\d+$") if y == pytest.approx(height)
    ]
    last = 12 - words
    old, new = {
        "words dropped": (range(words, 12), range(last)),
        "chunk spliced": ([*range(words), *range(last)], range(12)),
        "all moved": (range(12), range(words, 12 + words)),
    }[change]
    assert row(60) == list(new)
    assert row(77) == list(old if cached == "as they are" else new)


def test_the_cut_of_a_shelf_stands_between_two_words(node):
    for words in (0, 3, 8):
        seen = shown(node, figures.cache_shelf(words=words), width=680)
        (plot,) = seen.plots
        (handle,) = plot.discs(seen.colors["accent"], 11)
        names = dict(plot.texts(r"^(lay|in|bed:|The|cat|it|had|a|cold|and|no|hat)$"))
        text = ["The", "cat", "lay", "in", "bed:", "it", "had", "a", "cold", "and", "no", "hat"]
        assert all(names[word][0] < handle[0] for word in text[:words] if word != "a")
        assert all(names[word][0] > handle[0] for word in text[words:])
    seen = shown(node, figures.cache_shelf("all moved"), width=680)
    assert not len(seen.plots[0].discs(seen.colors["accent"], 11))


# ---- more than one axis -------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize(
    ("plan", "size"), [("axial", 16), ("Pixtral", 12), ("DINOv3", 31), ("mixed", 13)]
)
def test_the_vectors_of_a_plan_and_their_maps(node, plan, size, width):
    seen = shown(node, figures.wave_vectors(plan, size=size, pair=3), width=width)
    (plot,) = seen.plots
    vectors = np.array(node.call("wave_vectors.js", "planVectors", plan, size))
    half, one = sorted(plot.arcs(seen.colors["muted"]), key=lambda arc: arc["radius"])
    assert one["radius"] == pytest.approx(2 * half["radius"])
    heads = np.array([plot.discs(pair_color(i, 8))[0] for i in range(8)])
    np.testing.assert_allclose((heads - one["center"]) / one["radius"], vectors, atol=1e-9)
    assert [arc["center"] for arc in plot.arcs(seen.colors["ink"])] == [pytest.approx(heads[3])]
    hues = [pair_color(i, 8) for i in range(8)]
    order = [one["color"] for one in plot.kind("fill") if one.get("arc") and one["color"] in hues]
    lengths = np.hypot(*vectors.T)[[hues.index(color) for color in order]]
    assert (np.diff(lengths[:-1]) <= 1e-9).all(), "short arrows in front of long ones"
    assert order[-1] == hues[3], "and the chosen one in front of all"

    steps = np.arange(-(size - 1), size)
    dy, dx = np.meshgrid(steps, steps, indexing="ij")
    mean = np.cos(dx[..., None] * vectors[:, 0] + dy[..., None] * vectors[:, 1]).mean(axis=-1)
    left = mean - mean.mean(0) - mean.mean(1)[:, None] + mean.mean()
    own = np.cos(dx * vectors[3, 0] + dy * vectors[3, 1])
    shown_ = [np.clip((part + 0.5) / 1.5, 0, 1) for part in (mean, mean - left, left)]
    parts = [(own + 1) / 2, *shown_]
    on_axes = plan != "mixed"
    assert bool(plot.texts("^nothing$")) == on_axes
    if on_axes:
        assert np.abs(left).max() < 1e-12
        parts.pop()  # in its place stands what makes something appear there
    assert len(plot.kind("image")) == len(parts), "on a phone, too"
    corner, side = one["center"] - np.array(plot.image(0)[1][:2]), plot.image(0)[1][2]
    np.testing.assert_allclose(corner, side / 2)
    for index, part in enumerate(parts):
        pixels, (x0, y0, wide, tall) = plot.image(index)
        assert wide == pytest.approx(tall)
        off = np.abs(pixels - 255 * palette.COSINE(np.floor(255 * part + 0.5) / 255)[..., :3])
        assert off.max() <= 4
        if index == 0:
            continue  # behind the arrows
        cell = wide / len(steps)
        far = (size - 1) // 5 * 5
        for axis, start in enumerate((x0, y0)):
            beside = (lambda x, y: 0 < y - y0 - tall < 20) if axis == 0 else (lambda x, y: x < x0)  # noqa: B023
            ticks = {number: at[axis] for number, at in plot.texts(rf"^(−?{far}|0)$", beside)
                     if start <= at[axis] <= start + wide}  # fmt: skip
            for number, d in ((f"−{far}", -far), ("0", 0), (str(far), far)):
                assert ticks[number] == pytest.approx(start + (d + size - 0.5) * cell)
    assert [text for text, _ in plot.texts("^(1|≤ −½)$")] == ["≤ −½", "1"], "one scale for all"
    assert bool(plot.texts(rf"^\+ missed, up to {np.abs(left).max():.2f}$")) != on_axes
    nearest = [[1, 0]] if plan == "Pixtral" else [[0, 1], [1, 0]]
    assert sorted(seen.values["nearest"]) == nearest


@WIDTHS
@pytest.mark.parametrize(
    ("plan", "token"),
    [("chunked", 25), ("chunked", 27), ("chunked", 38), ("dealt out", 12), ("dealt out", 46)],
)
def test_the_positions_and_the_hands_of_three_clocks(node, plan, token, width):
    seen = shown(node, figures.three_clocks(plan, token), width=width)
    (plot,) = seen.plots
    tokens = node.call("three_clocks.js", "tokensOf", plan)
    at = tokens[token]["at"]
    assert seen.values["at"] == at

    # two lines of one scale: above each token at its number, below up to the chosen one where it
    # stands, a patch below its column and as many cells down as it is rows from the first
    x = plot.x_axis(lambda x, y: y > 130)
    assert x.values.tolist() == [0, 10, 20, 30, 40]
    grey, green = (plot.rects(seen.colors[name]) for name in ("muted", "accent"))
    assert len(green) == 2, "the chosen token is green in both"
    cells = np.concatenate([grey, green])
    top = cells[:, 1].min()
    above = cells[cells[:, 1] == top]
    below = np.concatenate([grey[grey[:, 1] > top], green[green[:, 1] > top]])
    numbers = [*(i for i in range(len(tokens)) if i != token), token]
    x.agrees(above[:, 0] + above[:, 2] / 2, numbers)
    x.agrees(below[:, 0] + below[:, 2] / 2, [one["at"][2] for one in tokens[: token + 1]])
    line = below[:, 1].min()
    for (_, high, _, side), one in zip(below, tokens[: token + 1], strict=True):
        if not one["grid"]:
            assert high == line
            continue
        first = next(t for t in tokens if (t["grid"] or {}).get("index") == one["grid"]["index"])
        frame, row, _ = (a - b for a, b in zip(one["at"], first["at"], strict=True))
        down = (frame * one["grid"]["rows"] + row) * (side + 1) + 3 * frame
        assert high - line == pytest.approx(down)
    handle = plot.discs(seen.colors["accent"], 9)
    x.agrees(handle[:, 0], [token])

    # the chosen one is named where it stands; a word after an image also where counting puts it
    said = [text for text, _ in plot.texts("^(position|row|column) [0-9]")]
    counted = plot.kind("frame", color=seen.colors["muted"])
    asked = [
        one for one in plot.kind("frame", color=seen.colors["accent"]) if one["rect"][1] > line - 1
    ]
    if tokens[token]["grid"]:
        wanted = [f"column {at[2]}", f"row {at[1]}"]
        if token == 25 and width > 560:  # of the last row, so that the first has room for its name
            wanted.insert(1, "row 2")
        assert sorted(said) == wanted
        assert counted == []
        assert len(asked) == (tokens[token]["grid"]["name"] == "image")
        assert bool(plot.texts("^at 27[?]$")) == bool(asked)
    else:
        assert said == [f"position {at[0]}"]
        (ghost,) = counted
        x.agrees([ghost["rect"][0] + ghost["rect"][2] / 2], [token])
        assert plot.texts(f"^{token} if (tokens were )?counted$")
        assert plot.texts(f"^token {token}$")

    theta = inverse_frequencies(128, base=1e6)
    clocks = [arc for arc in plot.arcs(seen.colors["rule"]) if arc["radius"] in (21, 26)]
    heard = node.call("three_clocks.js", "pairsByAxis", plan)
    assert len(clocks) == 3
    for axis, (clock, listening) in enumerate(zip(clocks, heard, strict=True)):
        for pair in {listening["pairs"][0], listening["pairs"][5], listening["pairs"][-1]}:
            (hand,) = [
                one["lines"][0]
                for one in plot.kind("stroke", color=pair_color(pair, 64))
                if one["lines"][0][0] == clock["center"]
            ]
            turned = angles(np.array([hand[1]]), tuple(clock["center"]))[0]
            off = math.remainder(turned - at[axis] * theta[pair], TURN)
            assert off == pytest.approx(0, abs=1e-9)
        beside = [text for text, (cx, cy) in plot.texts("^[0-9]+$") if near(clock, cx, cy)]
        assert beside == [str(at[axis])]
    many = plot.texts("^[0-9]+ pairs$")
    assert [text for text, _ in many] == [f"{len(one['pairs'])} pairs" for one in heard]


def near(clock, x, y):
    """Whether a place lies right of a clock, beside it."""
    right, down = x - clock["center"][0], y - clock["center"][1]
    return 0 < right < clock["radius"] + 12 and abs(down) < clock["radius"]


# ---- the order of words -------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("order", ["from Beijing to Shanghai", "Shanghai to from Beijing"])
def test_the_scores_of_words_in_an_order(node, order, positions, width):
    made = figures.word_order(order, positions)
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    words, first = order.split(), figures.word_order().order
    first = made._options["order"][first].split()
    places = [words.index(word) for word in first]
    told = node.call("word_order.js", "compare", places, positions)
    below = lambda x, y: y > 60 and x > 60  # noqa: E731
    # a word heads the column and the row that its scores stand in
    columns = {t: x for t, (x, y) in plot.texts("^[A-Za-z]+$") if t in words and y < 60}
    rows = {t: y for t, (x, y) in plot.texts("^[A-Za-z]+$") if t in words and y > 60}
    assert sorted(columns, key=columns.get) == sorted(rows, key=rows.get) == words
    scores = plot.texts(r"^−?\d\.\d$", below)
    assert len(scores) == 16
    for text, (x, y) in scores:
        i = min(range(4), key=lambda i: abs(rows[first[i]] - y))
        j = min(range(4), key=lambda j: abs(columns[first[j]] - x))
        assert abs(columns[first[j]] - x) < 3
        score = float(text.replace("−", "-"))
        assert score == pytest.approx(told["scores"][i][j], abs=0.0501), (first[i], first[j])
    was = [float(t[4:].replace("−", "-")) for t, _ in plot.texts("^was ")]
    new = np.array(told["fresh"])
    assert sorted(was) == pytest.approx(sorted(np.array(told["before"])[new]), abs=0.0501)
    assert seen.values["numbers"] == len(was) == (10 if positions and words != first else 0)
    assert len(plot.kind("frame", color=seen.colors["accent"])) == (
        1 + len(was) + sum(told["moved"])  # the chosen card, too
    )
    assert [t for t, _ in plot.texts("^at ")] == [f"at {p}" for p in places if positions]


# ---- the card of a model ------------------------------------------------------------------------


def test_the_card_of_a_file_names_the_layout_of_its_rows_first(node):
    card = figures.model_card(card_data())
    meta = {"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "rope_theta": 500000.0}
    card.text, card.name = json.dumps(meta), "params.json"
    says = "turns all 128 channels, interleaved (half-split at Hugging Face), base 500,000."
    assert says in shown(node, card).says
    card.text = json.dumps({"model_type": "llama", "rope_theta": 500000.0})
    assert "channels, half-split, base 500,000." in shown(node, card).says
    card.rows = "interleaved"  # a GGUF, whose configuration is written out
    assert says in shown(node, card).says


@WIDTHS
def test_the_wavelengths_of_a_model_and_of_what_is_to_be_written(node, width):
    seen = shown(node, figures.model_card(card_data()), width=width)
    plot = seen.plots[0]  # the turning of its pairs, below, is held by test_explore_model_card
    inside = lambda x, y: y < plot.height - 30  # noqa: E731
    y = plot.y_axis(inside, log=True)
    now = inverse_frequencies(128, 1e6)
    yarn, _ = rescaled_frequencies(
        "yarn", 128, 1e6, factor=4.0, original_max_position_embeddings=32768
    )
    new = aliasing.unseen_pairs(now, 131_072, now, 32_768)
    red = plot.discs(seen.colors["warm"])
    assert len(red) == new.sum() == seen.values["fresh"] == 24
    y.agrees(red[:, 1], TURN / now[new])
    y.agrees([plot.discs(pair_color(0, 64))[0, 1]], [TURN])
    rings = plot.discs(seen.colors["paper"], 3.5)
    slowed = np.abs(yarn / now - 1) > 1e-6
    assert len(rings) == slowed.sum() == 40
    y.agrees(rings[:, 1], TURN / yarn[slowed])
    for color, length in (("ink", 32_768), ("accent", 131_072)):
        line = plot.curve(seen.colors[color], width=1.75)
        y.agrees(line[:, 1], [length] * 2)
    assert aliasing.unseen_pairs(yarn, 131_072, now, 32_768).sum() == 0
