"""Every figure's picture is read: known values stand where the numbers beside them say.

The figures are drawn without a browser, on a canvas that writes down what is drawn. A point is read
by the ticks of its axis, and compared with what the package computes.
"""

import itertools
import math

import numpy as np
import pytest

from experiments.figure import trained_models_data
from rope_minimal import aliasing, explore, inverse_frequencies, reference, rescaled_frequencies
from rope_minimal.explore import palette
from rope_minimal.explore.byte_budget import FORMS
from tests.tools.node import Node
from tests.tools.pictures import angles, shown

TURN = 2 * math.pi
WIDTHS = pytest.mark.parametrize("width", [680, 330])


@pytest.fixture(scope="module")
def node():
    process = Node()
    yield process
    process.close()


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
    made = explore.waves(aim=60, distance=21, pairs=pairs, content="slow half")
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
    ],
)
def test_rotor(node, m, n, theta, computed, width):
    seen = shown(node, explore.rotor(m=m, n=n, theta=theta), width=width)
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
    dots = plot.discs(seen.colors["muted"], 3)
    dots = dots[dots[:, 0] > x.pixels[0] - 1]
    x.agrees(dots[:, 0], np.arange(12))
    y.agrees(dots[:, 1], np.cos(np.radians(theta * np.arange(12))))


def test_the_rotor_plays_both_words_and_comes_back(node):
    before = shown(node, explore.rotor())
    during = shown(node, explore.rotor(), press=["Move both"], ms=1500)
    after = shown(node, explore.rotor(), press=["Move both"], ms=6500)
    colors = before.colors
    tip = lambda seen: seen.plots[0].kind("fill", color=colors["q"], alpha=1)[0]["lines"]  # noqa: E731
    assert tip(during) != tip(before)
    assert "4 words make 60°" in during.says
    assert tip(after) == tip(before)
    assert after.says == before.says


# ---- clock --------------------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize(("m", "dim"), [(44, 128), (17, 8), (710, 4), (0, 128)])
def test_clock(node, m, dim, width):
    seen = shown(node, explore.clock(m=m, dim=dim), width=width)
    (plot,) = seen.plots
    pairs, theta = dim // 2, inverse_frequencies(dim)
    dial = plot.arcs(seen.colors["rule"])[0]
    hands = np.array([plot.discs(pair_color(i, pairs))[0] for i in range(pairs)])
    drawn = angles(hands, dial["center"])
    off = [math.remainder(a - m * t, TURN) for a, t in zip(drawn, theta, strict=True)]
    assert np.abs(off).max() < 1e-6
    far = np.linalg.norm(hands - dial["center"], axis=1)
    assert (np.diff(far) < 0).all(), "fast hands are outside"

    side = (lambda x, y: x > 380) if width > 560 else below(330)
    x, y = plot.x_axis(side), plot.y_axis(side)
    first = max(m - 40, 0)
    bars = np.array([r for r in plot.rects(seen.colors["accent"]) if r[3] != 10])[:81]
    distances = np.arange(first, first + 81)
    x.agrees(bars[:, 0] + bars[:, 2] / 2, distances)
    y.agrees(bars[:, 1], aliasing.code_distance(distances, theta))
    y.agrees(bars[:, 1] + bars[:, 3], np.zeros(81))
    if pairs > 1:
        alone = plot.curve(pair_color(0, pairs), side, width=1.3)
        y.agrees(alone[:, 1], 2 * np.abs(np.sin(distances / 2)))
    neighbour = plot.curve(seen.colors["ink"], side, width=1.25)
    y.agrees(neighbour[:, 1], [aliasing.code_distance(1, theta)] * 2)


# ---- heatmaps -----------------------------------------------------------------------------------

COLOURS = {"wrapped angle": "phase", "true angle": "angle", "cosine": "cosine"}


@pytest.mark.parametrize("show", COLOURS)
def test_angle_heatmap(node, show):
    made = explore.angle_heatmap(dim=32, first=100, count=64, show=show, pair=3)
    made.children[1].position = 130
    seen = shown(node, made)
    (plot,) = seen.plots
    theta = inverse_frequencies(32)
    angle = np.outer(theta, np.arange(100, 164))  # fast pairs above, positions to the right
    largest = 163.0
    at = {
        "wrapped angle": np.floor(angle % TURN / TURN * 256) / 256,
        "true angle": np.round(np.log1p(angle / 0.01) / np.log1p(largest / 0.01) * 255) / 255,
        "cosine": np.floor((np.cos(angle) + 1) * 127.5 + 0.5) / 255,
    }[show]
    table = getattr(palette, COLOURS[show].upper())
    pixels, (x0, y0, wide, tall) = plot.image()
    assert np.abs(pixels - 255 * table(at)[..., :3]).max() <= 2.5
    rows = plot.texts(r"^\d+$", lambda x, y: x < x0 and y < y0 + tall)
    assert [label for label, _ in rows] == ["0", "5", "10", "15"]
    for label, (_, height) in rows:
        assert height == pytest.approx(y0 + (int(label) + 0.5) / 16 * tall)
    x = plot.x_axis(below(y0 + tall))
    x.agrees([x0 + (30 + 0.5) / 64 * wide], [130])

    y = plot.y_axis(below(y0 + tall))
    values = {"wrapped angle": angle[3] % TURN, "true angle": angle[3], "cosine": np.cos(angle[3])}
    points = plot.discs(pair_color(3, 16), 2.5)
    y.agrees(points[:, 1], values[show])
    x.agrees(points[:, 0], np.arange(100, 164))
    (cursor,) = [d for d in plot.discs(pair_color(3, 16), 4.5) if d[1] > y0 + tall]
    y.agrees([cursor[1]], [values[show][30]])


def test_the_key_of_a_heatmap_stands_below_its_own_colours(node):
    (plot,) = shown(node, explore.angle_heatmap(dim=32, show="wrapped angle")).plots
    bars = [one for one in plot.kind("rect") if one["rect"][3] == 8]
    for label, turn in (("0", 0), ("π", 0.5), ("2π", 1)):
        ((_, (x, _)),) = plot.texts(f"^{label}$", lambda x, y: y < 40)
        nearest = min(bars, key=lambda one: abs(one["rect"][0] - x))
        rgb = [int(c) for c in nearest["color"][4:-1].split(",")]
        assert np.abs(rgb - 255 * np.array(palette.PHASE(turn)[:3])).max() <= 6


@pytest.mark.parametrize("show", ["angle", "cosine"])
def test_precision_microscope(node, show):
    made = explore.precision_microscope(dtype="bf16", stage="positions", show=show)
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
    seen = shown(node, explore.precision_microscope("fp16", "product", "angle", 1048576))
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
@pytest.mark.parametrize(("theta", "window"), [(1.0, 20), (0.4096, 50)])
def test_wrap_explorer(node, theta, window, width):
    seen = shown(node, explore.wrap_explorer(theta=theta, window=window), width=width)
    (plot,) = seen.plots
    hands = theta * inverse_frequencies(128)
    whole = np.arange(window + 1)
    tall = 118 if width > 480 else 104
    inside = [lambda x, y, k=k: 0 <= y - 22 - k * (tall + 26) <= tall for k in range(3)]
    x = plot.x_axis(below(400 if width > 480 else 380))
    values = [whole * theta % TURN, np.cos(whole * theta), aliasing.mean_cosine(whole, hands)]
    colors = [pair_color(0, 64), pair_color(0, 64), seen.colors["accent"]]
    horizons = [aliasing.angle_horizon(theta), *map(aliasing.cosine_horizon, ([theta], hands))]
    for panel, wanted, color, horizon in zip(inside, values, colors, horizons, strict=True):
        dots = np.array([d for d in plot.discs(color, 3.4) if panel(*d)])
        x.agrees(dots[:, 0], whole)
        plot.y_axis(panel).agrees(dots[:, 1], wanted)
        if horizon <= window:
            line = plot.curve(seen.colors["warm"], panel, width=1.6)
            x.agrees(line[:, 0], [float(horizon)] * 2)


@WIDTHS
@pytest.mark.parametrize("theta", [1.0, math.pi / 2048, 0.05])
def test_the_knob_and_its_meters(node, theta, width):
    seen = shown(node, explore.horizon_dial(theta=theta), width=width)
    (plot,) = seen.plots
    shade = next(one["arc"] for one in plot.kind("fill") if "arc" in one)
    center = np.array(shade["center"])
    clockwise = lambda point: np.arctan2(*((np.array(point) - center) * [1, -1]))  # noqa: E731
    ring = dict(plot.texts(r"^(1|10⁻[¹²³⁴])$", lambda *at: math.dist(at, center) < 104))
    (knob,) = plot.discs(seen.colors["accent"], 7)
    turns = [clockwise(ring[t]) for t in ("1", "10⁻¹", "10⁻²", "10⁻³", "10⁻⁴")]
    assert (np.diff(turns) > 0).all(), "slower is further clockwise"
    assert np.interp(clockwise(knob), turns, range(5)) == pytest.approx(
        -math.log10(theta), abs=0.01
    )

    right = (lambda x, y: x > 380) if width > 600 else below(304)
    top = 8 if width > 600 else 304
    far = plot.x_axis(lambda x, y: right(x, y) and y < top + 80, log=True)
    bar = plot.rects(seen.colors["accent"], alpha=1)[0]
    far.agrees([bar[0] + bar[2]], [aliasing.cosine_horizon([theta])], within=2.5)
    loud = plot.x_axis(lambda x, y: right(x, y) and y > top + 180, log=True)
    bars = [one for one in plot.kind("rect", alpha=1) if one["rect"][3] == 22][1:]
    ends = np.array([one["rect"][0] + one["rect"][2] for one in bars])
    hands = theta * inverse_frequencies(128)
    snr = [aliasing.neighbour_snr(hands, t) for t in ("float32", "float16", "bfloat16")]
    loud.agrees(ends, snr, within=2.5)
    for one, value in zip(bars, snr, strict=True):
        assert (one["color"] == seen.colors["warm"]) == (value < 1)


# ---- faders -------------------------------------------------------------------------------------


@WIDTHS
def test_the_faders_and_their_meters(node, width):
    plain = inverse_frequencies(128)
    pi = rescaled_frequencies("linear", 128, factor=16.0)[0]
    by_code = rescaled_frequencies("yarn", 128, factor=16.0, original_max_position_embeddings=4096)
    made = explore.rescaling_faders(preset="YaRN, code", compare="PI")
    seen = shown(node, made, width=width)
    plot, gauges = seen.plots
    y = plot.y_axis(log=True)  # × 2, × 1, 1/2 ... 1/32
    assert y.values.min() == 1 / 32
    caps = [one["rect"] for one in plot.kind("fill") if one.get("rect")]
    assert len(caps) == 64
    middle = np.array([[x + wide / 2, top + 3.5] for x, top, wide, _ in caps])
    assert (np.diff(middle[:, 0]) > 0).all(), "fast hands are on the left"
    y.agrees(middle[:, 1], by_code[0] / plain)
    other = plot.curve(seen.colors["ink"], width=2)
    y.agrees(other[::2, 1], pi / plain)

    shaded = plot.rects(seen.colors["warm"])
    unseen = aliasing.unseen_pairs(by_code[0], 65536, plain, 4096)
    step = (middle[-1, 0] - middle[0, 0]) / 63
    at = np.round((shaded[:, 0] - middle[0, 0]) / step + 0.5) if len(shaded) else []
    assert set(at) == set(np.flatnonzero(unseen))
    texts = [text for text, _ in gauges.texts()]
    assert str(int(unseen.sum())) in texts
    factor = by_code[1] ** 2
    assert f"× {factor:.2f}" in texts
    bars = [one["rect"][2] for one in gauges.kind("fill", color=seen.colors["accent"])]
    ground = [one["rect"][2] for one in gauges.kind("fill", color=seen.colors["rule"])]
    assert bars[-1] / ground[-1] == pytest.approx(factor - 1, abs=0.01)


# ---- layouts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("move", [(False, False), (True, False), (True, True)])
def test_the_threads_lead_every_row_to_its_place(node, move):
    made = explore.layout_threads("GPT-NeoX: 24 of 96", *move)
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
@pytest.mark.parametrize("form", list(FORMS))
def test_the_blocks_and_bars_of_a_byte_budget(node, form, width):
    made = explore.byte_budget(form=form)
    data = made.children[1].data
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    steps = data["forms"][form]["float32"]
    blocks = {
        name: [r for r in plot.rects(seen.colors[name]) if r[1] > 40 and r[3] in (13, 15)]
        for name in ("k", "q")
    }
    unit = max(r[2] for r in [*blocks["k"], *blocks["q"]]) + 2
    for name, which in (("k", 1), ("q", 2)):
        rows = sorted({r[1] for both in blocks.values() for r in both})
        for row, step in zip(rows, steps, strict=True):
            width_of = sum(r[2] + 2 for r in blocks[name] if r[1] == row)
            assert width_of == pytest.approx(step[which] * unit, abs=3), (form, step)
    total = sum(read + written for _, read, written in steps)
    sums = [text for text, _ in plot.texts(r" N$")]
    assert sums[-1] == f"{total:g} N" or sums[-1] == f"{total:.2f} N"

    case = next(c for c in data["cases"] if c["dtype"] == "float32" and c["shape"][2] == 4096)
    times = {
        "muted": case["floor_us"],
        "accent": case["floor_us"] * total / 2,
        "warm": case["us"].get(form, 0.0),
    }
    longest, room = max(times.values()), width - (118 if width > 480 else 84) - 96
    for name, us in times.items():
        (bar,) = [r for r in plot.rects(seen.colors[name]) if r[3] == 20]
        assert bar[2] == pytest.approx(us / longest * room, abs=2)


# ---- bugs ---------------------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize("patient", [1, 3, 6, 9])
def test_the_charts_of_a_patient(node, patient, width):
    made = explore.bug_bench(patient)
    data = made.children[1].data
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
    made = explore.axioms(families())
    (state,) = [family["axioms"] for family in families() if family["kind"] == kind]
    for name, value in zip(("rule", "circle", "diagonalisable", "orientation"), state, strict=True):
        setattr(made.children[1], name, value)
    seen = shown(node, made, width=width)
    (plot,) = seen.plots
    matrix = np.array(node.call("axioms.js", "matrix", kind, 0.3, 0.95))
    query, key = (
        np.array(node.call("axioms.js", name)[str(len(matrix))]) for name in ("QUERY", "KEY")
    )
    power = lambda s: np.linalg.matrix_power(matrix, s)  # noqa: E731
    chart = lambda x, y: x > (225 if width > 520 else 120)  # noqa: E731
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

FIRST, SECOND = "the proposal, half a turn", "RoPE"


@pytest.fixture(scope="module")
def trained():
    return trained_models_data()


@WIDTHS
@pytest.mark.parametrize("task", [0, 1, 3])
def test_the_scores_of_the_trained_models(node, trained, task, width):
    data = trained["tasks"][task]
    made = explore.trained_models(trained, task=data["words"], encoding=FIRST, against=SECOND)
    seen = shown(node, made, width=width)
    chart = seen.plots[0]
    colors = [seen.colors["accent"], seen.colors["warm"]]
    wide = width > 560
    bins = "bins" in data["entries"][FIRST]
    inside = (lambda x, y: x < width * 0.56) if wide and bins else (lambda x, y: y < 306)
    y, x = chart.y_axis(inside), chart.x_axis(inside, log=True)
    tokens = np.array(trained["times"]) * data["window"]
    for name, color, fill in ((FIRST, colors[0], colors[0]), (SECOND, colors[1], "#ffffff")):
        entry = data["entries"][name]
        medians = [np.median(values) for values in entry["scores"]]
        curve = chart.curve(color, inside, width=1.3)
        y.agrees(curve[:, 1], medians)
        assert np.abs(x.read(curve[:, 0]) - np.log10(tokens)).max() < 0.15
        points = np.array([p for p in chart.discs(fill, 2.6) if inside(*p)])
        y.agrees(points[:, 1], np.concatenate(entry["scores"]))
        line = sorted(entry["scores"][0])
        bars = [one["lines"][0] for one in chart.kind("stroke", color=color, width=2)]
        y.agrees([bars[0][0][1], bars[0][1][1]], [line[1], line[-2]])
        if bins:
            right = (lambda x, y: x > width * 0.56) if wide else below(340)
            far = chart.curve(color, right, width=2, dash=[] if name == FIRST else [6, 4])
            chart.y_axis(right).agrees(far[:, 1], [row[0] for row in entry["bins"][0]])
            edges = np.array(trained["bins"])
            middles = np.sqrt(edges[:-1] * edges[1:])[: len(far)]
            chart.x_axis(right, log=True).agrees(far[:, 0], middles)


@WIDTHS
def test_the_aids_stand_in_their_rows(node, trained, width):
    data = trained["tasks"][2]
    made = explore.trained_models(trained, task=data["words"], encoding=SECOND, against="nothing")
    seen = shown(node, made, width=width)
    plot = seen.plots[1]
    entry = data["entries"][SECOND]
    x = plot.x_axis()
    points = plot.discs(seen.colors["accent"], 2.6)
    at = trained["times"].index(trained["aided_times"])
    wanted = {"nothing": entry["scores"][at], **entry["aids"]}
    labels = dict(plot.texts())
    for words, values in wanted.items():
        height = labels[words][1] + (0 if width > 560 else 18)
        lane = points[np.abs(points[:, 1] - height) < 8]
        x.agrees(np.sort(lane[:, 0]), np.sort(values))


@WIDTHS
def test_the_hands_the_usage_and_the_attention_of_a_head(node, trained, width):
    data = trained["tasks"][0]
    made = explore.trained_models(trained, task=data["words"], encoding=SECOND, against="nothing")
    made.children[1].m = 11
    seen = shown(node, made, width=width)
    plot = seen.plots[2]
    entry = data["entries"][SECOND]
    usage, attention = np.array(entry["usage"]), np.array(entry["attention"])
    wide = width > 560
    chart = (lambda x, y: x > 260) if wide else below(266)
    split = 150 if wide else 405
    lower = lambda x, y: chart(x, y) and y > split  # noqa: E731
    bars = np.concatenate([plot.rects(pair_color(i, 16)) for i in range(16)])
    ((_, (_, ground)),) = plot.texts("^0%$", lambda x, y: chart(x, y) and y < split)
    np.testing.assert_allclose(bars[:, 1] + bars[:, 3], ground, atol=1)
    np.testing.assert_allclose(bars[:, 3] / bars[:, 3].max(), usage / usage.max(), atol=1e-6)
    assert bars[:, 3].max() > 60
    line = plot.curve(seen.colors["accent"], lower, width=2)
    plot.y_axis(lower).agrees(line[:, 1], attention)
    x = plot.x_axis(lower)
    x.agrees(line[:, 0], np.arange(len(attention)))
    x.agrees([plot.curve(seen.colors["ink"], lower, width=1)[0, 0]], [11])

    dial = plot.arcs(seen.colors["rule"])[0]
    hands = np.array([plot.discs(pair_color(i, 16))[0] for i in range(16)])
    turned = angles(hands, tuple(dial["center"]))
    off = [math.remainder(a - 11 * t, TURN) for a, t in zip(turned, entry["inv_freq"], strict=True)]
    assert np.abs(off).max() < 1e-6
