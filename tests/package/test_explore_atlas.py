"""The atlas as a figure: its script against the reports, and what can be searched and sorted."""

import itertools
import json
import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atlas import BY_HEAD, NOT_RUN
from atlas.rows import report_row as packed
from rope_minimal import rotate_complex, to_half
from ropebook import figures
from ropebook.atlas import Row, compact, read_atlas, record
from ropebook.figures.atlas import COLUMNS, SHOW, Atlas
from ropescope import Report, identify
from tests.tools.node import FOLDER, run_tests
from tests.tools.pictures import shown as page_of

from .test_pictures import pair_color

START = {"show": "all rotations", "search": "", "sort": "family", "down": False}


def rotation(interleaved=False, first=0, width=16, base=1e4, sign=1, factor=1.0, linear=1.0) -> Any:
    """Return a function that turns `width` of 16 channels."""

    def rotate(x, at):
        freq = base ** (-np.arange(0, width, 2) / width) / linear
        part = x[..., first : first + width]
        turned = rotate_complex(part, sign * at, inv_freq=freq, interleaved=interleaved)
        return np.concatenate((x[..., :first], factor * turned, x[..., first + width :]), axis=-1)

    return rotate


def dealt_out(x, at):
    return to_half(rotate_complex(x, at, interleaved=True))


def shuffled(x, at):
    order = np.random.default_rng(3).permutation(16)
    return rotate_complex(x[..., order], at)[..., np.argsort(order)]


def singular(x, at):
    c, s = (np.tile(f(np.outer(at, 10.0 ** -np.arange(8))), 2) for f in (np.cos, np.sin))
    return x * c + np.stack((-x[..., 1::2], x[..., ::2]), -1).reshape(x.shape) * s


def two_axes(x, at):
    freq = np.kron(np.eye(2), 10.0 ** -np.arange(4)[:, None] / 4)
    angle = at @ freq.T
    a, b = x[..., :8], x[..., 8:]
    c, s = np.cos(angle), np.sin(angle)
    return np.concatenate((a * c - b * s, a * s + b * c), axis=-1)


def of_16_bits(x, at):
    return rotate_complex(x, at, inv_freq=(1e4 ** (-np.arange(8) / 8)).astype(np.float16))


def with_a_hole(x, at):
    return rotate_complex(x, np.where(at == 500, 3, at))


def times(x, at, turning, resting):
    """Turn 8 of 16 channels; each kind has a factor of its own."""
    return rotation(width=8)(x, at) * np.repeat([turning, resting], 8)


STRANGERS = {
    "llama": rotation(),
    "cohere": rotation(interleaved=True),
    "nanochat": rotation(sign=-1),
    "glm": rotation(interleaved=True, width=8),
    "neox": rotation(width=8),
    "deepseek: last": rotation(interleaved=True, first=8, width=8),
    "gemma: full": rotation(base=1e6),
    "gemma: sliding": rotation(),
    "oss": rotation(factor=1.3466),
    "pi": rotation(linear=4.0),
    "dealt": dealt_out,
    "shuffled": shuffled,
    "vision": two_axes,
    "singular": singular,
}

FAULTY = {
    "rounded": of_16_bits,
    "hole": with_a_hole,
    "rest: grown": partial(times, turning=1.0, resting=1.5),
    "rest: lost": partial(times, turning=1.0, resting=0.0),
    "longer": lambda x, at: rotate_complex(x, at) * (1 + 0.1 * np.log1p(at))[:, None],
    "root": rotation(factor=0.5),  # 16^(-1/4)
    "angles: none": lambda x, at: rotate_complex(x, np.log1p(at)),
}


NEIGHBOURHOOD = {
    "neox": {"norm": {"place": "after", "weights": True}},
    "oss": {"norm": {"place": "after", "weights": False}},
    "glm": {"norm": {"place": "before", "weights": True}},
}


def asked(strangers: dict[str, Any]) -> dict[str, Report]:
    return {
        name: identify(
            rotate, 16, positions=(64, 64) if rotate is two_axes else 2**10, dtype=np.float64
        )
        for name, rotate in strangers.items()
    }


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    return asked(STRANGERS)


@pytest.fixture(scope="module")
def rows(reports) -> list[Row]:
    return written(reports)


def written(reports: dict[str, Report]) -> list[Row]:
    """Return reports as the atlas writes them down."""
    found = []
    for name, report in reports.items():
        family, _, part = name.partition(": ")
        lists: list[Any] = []
        rotation = packed(report, lists) | NEIGHBOURHOOD.get(name, {})
        rotation |= {"model": family, "layers": {"layers.*": [[0, 3, 1]]}}
        speeds = np.array(lists[0] if lists else [])
        rests = "1 of 4" if name == "glm" else None
        found.append(Row(name, family, part, rotation, speeds, rests))
    return found


@pytest.fixture(scope="module")
def shown(node, rows):
    """The rows as the script has them."""
    return node.call("atlas.js", "unpack", compact(rows))


def names(node, shown, **traits) -> list[str]:
    return [shown[i]["name"] for i in node.call("atlas.js", "choose", shown, START | traits)]


def test_the_script_has_the_pairs_and_frequencies_of_the_reports(rows, reports, shown):
    for report, seen in zip(reports.values(), shown, strict=True):
        assert [tuple(pair) for pair in seen["pairs"]] == list(report.pairs), seen["name"]
        if report.inv_freq.size:
            ours = np.reshape(seen["waves"], report.inv_freq.shape)
            np.testing.assert_allclose(ours, report.inv_freq, rtol=1e-6, atol=1e-15)
    listed = [i for i, values in enumerate(compact(rows)["rows"]) if values[8] is not None]
    assert [rows[i].name for i in listed] == ["shuffled"]  # most need no list of pairs


def test_both_sides_know_the_same_filters_and_columns():
    script = (FOLDER / "atlas.js").read_text("utf8")
    for name, wanted in (("SHOW", SHOW), ("COLUMNS", COLUMNS)):
        listed = re.search(rf"export const {name} = {{\n(.*?)\n}};", script, re.DOTALL)[1]
        assert [a or b for a, b in re.findall(r'(?m)^  (?:"([^"]+)"|(\w+)):', listed)] == wanted


NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]\d+)?")


def test_what_leads_from_one_to_another_is_what_the_report_says(node, reports):
    """Word for word; numbers to the six digits that the figure writes."""
    reports = reports | asked(FAULTY)
    shown = node.call("atlas.js", "unpack", compact(written(reports)))
    convertible = 0
    for (i, one), (j, two) in itertools.product(enumerate(reports), repeat=2):
        wanted = reports[one].differs_from(reports[two])
        found = node.call("atlas.js", "differs", shown[i], shown[j])
        pair = one, two
        assert found["converts"] == (wanted.convert is not None), pair
        convertible += found["converts"]
        assert len(found["words"]) == len(wanted.messages), pair
        for ours, theirs in zip(found["words"], wanted.messages, strict=True):
            assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
            if "the most: " in ours:  # which of several that differ alike is left open
                ours, theirs = (text.split(", pair")[0] for text in (ours, theirs))
            ours, theirs = (re.sub(r"that of pair .*\)\.", "", text) for text in (ours, theirs))
            values = [[float(v) for v in NUMBER.findall(text)] for text in (ours, theirs)]
            assert values[0] == pytest.approx(values[1], rel=1e-5)
    assert convertible > 2 * len(reports)


def test_rows_of_the_atlas_are_compared_as_python_compares_them(node):
    """Two rows of every kind there is; those with something wrong among them."""

    def wrong(row: Row) -> bool:
        return any(severity == 3 for severity, *_ in row.found["findings"])

    rows = read_atlas()
    shown = node.call("atlas.js", "unpack", compact(rows))
    kinds = {(r.layout, r.direction, r.axes, wrong(r)): i for i, r in enumerate(rows)}
    faulty = [i for i, row in enumerate(rows) if wrong(row)]
    assert faulty
    reordered = {"glm_ocr: vision", "sam3: window"}  # axis after axis, axes by turns
    others = [i for i, row in enumerate(rows) if row.name in reordered]
    chosen = sorted({*kinds.values(), *faulty, *others})
    said = set()
    for i, j in itertools.product(chosen, repeat=2):
        wanted = rows[i].report.differs_from(rows[j].report)
        found = node.call("atlas.js", "differs", shown[i], shown[j])
        assert found["converts"] == (wanted.convert is not None), (rows[i].name, rows[j].name)
        ours, theirs = (
            [NUMBER.sub("#", w) for w in words] for words in (found["words"], wanted.messages)
        )
        assert ours == theirs, (rows[i].name, rows[j].name)
        said |= set(ours)
    assert len(said) > 10
    assert any("where pairs stand in another order" in words for words in said)


@pytest.mark.parametrize("value", [1.0, 0.5, 1.3465736, 2.455e-06, -0.126, 150000.0, 1e10, 0.0])
@pytest.mark.parametrize("digits", [2, 6])
def test_numbers_are_written_as_python_writes_them(node, value, digits):
    assert node.call("atlas.js", "digits", value, digits) == f"{value:.{digits}g}"


@pytest.mark.parametrize(
    ("show", "fits"),
    [
        ("half-split", lambda r: r.layout == "half-split"),
        ("interleaved", lambda r: r.layout == "interleaved"),
        ("another layout", lambda r: r.layout not in ("half-split", "interleaved")),
        ("clockwise", lambda r: r.name == "nanochat"),
        ("part of the head", lambda r: r.width < 16),
        ("the last channels", lambda r: r.name == "deepseek: last"),
        ("base 10,000", lambda r: r.base == 1e4),
        ("another base", lambda r: r.base not in (None, 1e4)),
        ("rescaled frequencies", lambda r: r.rescaling is not None),
        ("a factor on cos and sin", lambda r: r.name == "oss"),
        ("several axes", lambda r: r.name == "vision"),
        ("norm before the turn", lambda r: r.name == "glm"),
        ("norm after the turn", lambda r: r.name in ("neox", "oss")),
        ("layers that do not turn", lambda r: r.name == "glm"),
        ("two bases in a model", lambda r: r.family == "gemma"),
        ("promise broken", lambda r: not r.kept),
    ],
)
def test_a_filter_shows_what_it_says(node, rows, shown, show, fits):
    wanted = {row.name for row in rows if fits(row)}
    assert set(names(node, shown, show=show)) == wanted
    assert wanted
    assert show in SHOW


def test_two_bases_are_counted_within_a_model_and_not_within_a_family(node, rows):
    sliding, full = (row for row in rows if row.family == "gemma")
    tower = replace(full, found=full.found | {"model": "a tower of pictures"})
    for second, wanted in ((full, ["gemma: full", "gemma: sliding"]), (tower, [])):
        shown = node.call("atlas.js", "unpack", compact([sliding, second]))
        assert names(node, shown, show="two bases in a model") == wanted


def test_a_note_says_what_was_set_against_the_defaults():
    rows = {row.family: row for row in read_atlas()}
    assert rows["llama"].chosen is None
    assert "set in EsmConfig: {position_embedding_type: rotary, " in rows["esm"].findings[0]
    first, alone, second = rows["hunyuan_vl"].findings[0].split("; ")
    assert first.startswith("Note: the tokens of an image")
    assert alone == NOT_RUN
    assert second == "set in HunYuanVLTextConfig: {mrope_section: [16, 16, 16, 16]}."
    assert "position_embeddings_type is set to rotary" in rows["wav2vec2_bert"].findings[0]
    towers = [row for row in read_atlas() if row.found["part"] != "text"]
    assert {row.chosen for row in towers} == {None}  # what was set is in configurations of text
    whys = [str(entry["why"]) for entry in record()["families"].values()]
    towers_set = re.findall(r"set in (\w*(?:Vision|Audio)\w*)", " ".join(whys))
    assert not towers_set


BY_FUNCTION = {
    *(
        "dia: DiaRotaryEmbedding",
        "efficientloftr: vision",
        "esmfold2",
        "hy_v4",
        "jetmoe",
        "lightglue: vision",
    ),
    *(
        "moonshine_streaming",
        "moshi",
        "muse_glimmer_assistant",
        "muse_spark: text",
        "neucodec: audio",
    ),
    *(
        "qwen4_exp: text",
        "seamless_m4t: audio",
        "voxtral_realtime: heads of 128",
        "wav2vec2_bert: audio",
    ),
    *("wav2vec2_conformer: audio", "xcodec2: audio", "zamba2", "zaya"),
}
IN_CELLS = [
    "bamba",
    "idefics",
    "llama4: vision",
    "qwen2_vl: vision",
    "timesfm2_5",
    "vjepa2: vision",
]
WHOLE = ["llama", "llama4: text chunked", "qwen2_vl: text full", "smollm3"]


def test_the_atlas_tells_what_was_heard_and_which_heads_are_of_another_kind(node):
    rows = node.call("atlas.js", "unpack", compact(read_atlas()))
    by_name = {row["name"]: row for row in rows}
    assert {name for name, row in by_name.items() if not row["heard"]} == BY_FUNCTION
    known = {name: by_name[name]["ran"] for name in [*IN_CELLS, *BY_FUNCTION, *WHOLE]}
    assert [name for name, ran in known.items() if ran] == WHOLE
    unknown = [row for row in rows if not row["heard"]]
    assert not any(row["norm"] or row["values"] or row["ran"] for row in unknown)
    assert not any(row["rests"] for row in rows if not row["ran"])
    heads = {name for name, row in by_name.items() if row["heads"]}
    by_head = {"neucodec: audio", "xcodec2: audio"}
    assert heads == {"efficientloftr: vision", "qwen2_5_omni: audio"} | by_head
    told = {name for name, row in by_name.items() if BY_HEAD in " ".join(row["findings"])}
    assert told == by_head
    assert {row["family"] for row in rows if row["values"]} == {"clvp", "deepseek_v4"}


def test_what_is_no_rotation_breaks_the_promise_by_that(rows):
    (singular,) = (row for row in rows if row.name == "singular")
    assert singular.broken == "a turn that is no rotation"


def test_every_word_of_a_search_must_occur(node, shown):
    assert names(node, shown, search=" GEMMA  10,000 ") == ["gemma: sliding"]
    assert names(node, shown, search="clockwise") == ["nanochat"]
    assert names(node, shown, search="interleaved last") == ["deepseek: last"]
    assert names(node, shown, search="gemma nanochat") == []
    assert names(node, shown, search="gemma", show="another base") == ["gemma: full"]


def test_columns_sort_both_ways_and_ties_by_name(node, shown):
    every = sorted(row["name"] for row in shown)
    assert names(node, shown) == every
    assert names(node, shown, down=True) == every[::-1]
    bases = {row["name"]: row["base"] for row in shown}
    for down in (False, True):
        found = names(node, shown, sort="base", down=down)
        known = [bases[name] for name in found if bases[name] is not None]
        assert known == sorted(known, reverse=down)
    turns = names(node, shown, sort="turns")
    assert turns[:3] == ["deepseek: last", "glm", "neox"]
    assert names(node, shown, sort="promise")[:2] == ["neox", "singular"]


def said(node, shown, **traits) -> str:
    traits = START | {"row": 0, "other": 0} | traits
    return node.call("atlas.js", "words", node.call("atlas.js", "reading", shown, traits))


def test_the_answer_counts_what_is_shown(node, rows, shown):
    answer, counts = said(node, shown).split("\n")
    kept = sum(row.kept for row in rows)
    layouts = [row.layout for row in rows]
    numbers = [kept, len(rows), layouts.count("half-split"), layouts.count("interleaved")]
    assert [int(n) for n in re.findall(r"\d+", answer)] == [len(rows) - kept, len(rows)]
    assert [int(n) for n in re.findall(r"\d+", counts)][2:4] == numbers[2:]
    only = said(node, shown, show="interleaved").split("\n")[0]
    assert only == (
        f"Interleaved: **{numbers[3]} of {numbers[1]}** rotations. "
        f"The promise is kept by **{numbers[3] - 1}** of them."
    )
    assert said(node, shown, search="gemma").split("\n")[0] == (
        "Matching “gemma”: **2 of 14** rotations. The promise is kept by **all** of them."
    )
    assert "**1 of 14** rotations. It **keeps** the promise" in said(node, shown, show="clockwise")
    assert said(node, shown, show="promise broken").startswith("Promise broken: **2 of 14** rot")
    assert "\nShown: 1 rotation of 1 family, 1 half" in said(node, shown, show="clockwise")
    assert "\nShown: 2 rotations of 1 family, 2 half" in said(node, shown, search="gemma")
    nothing = said(node, shown, show="clockwise", search="gemma").split("\n")[0]
    assert nothing == "Clockwise, matching “gemma”: **none of 14** rotations."


def test_every_answer_is_short_enough_to_be_read_first(node, shown):
    for show in SHOW:
        for search in ("", "x" * 500, "gemma"):
            answer = said(node, shown, show=show, search=search).split("\n")[0]
            assert len(answer) < 220
            assert answer.endswith(".")


def test_the_bridge_names_both_rows(node, shown):
    by_name = {row["name"]: row for row in shown}
    over = node.call("atlas.js", "bridge", by_name["llama"], by_name["nanochat"])
    assert over.startswith("To run weights of **llama** with the rotation of **nanochat**: Negate")
    assert "The scores are then the same, but for" in over
    unheard = by_name["nanochat"] | {"heard": False}
    alone = node.call("atlas.js", "bridge", by_name["llama"], unheard)
    assert alone.endswith("What stands around the turn of **nanochat** was not heard.")
    inner = by_name["nanochat"] | {"heads": True}
    assert "the same" not in node.call("atlas.js", "bridge", by_name["llama"], inner)
    other = node.call("atlas.js", "bridge", by_name["llama"], by_name["gemma: sliding"])
    assert "rotate alike" in other
    same = node.call("atlas.js", "bridge", by_name["llama"], by_name["llama"])
    assert same.startswith("Tap a wheel, and see what leads there from **llama**")
    assert other.endswith("no row of W_q and W_k has to change for the turn.")
    none = node.call("atlas.js", "bridge", by_name["llama"], by_name["singular"])
    start = "Weights of **llama** cannot be run as "
    assert none == f"{start}**singular** turns them: **singular** is no rotation."
    larger = by_name["llama"] | {"name": "large", "head": 80, "axes": 2}
    for change, said in (
        ({}, "heads of 16 channels against 80, 1 axis against 2."),
        ({"axes": 1}, "heads of 16 channels against 80."),
        ({"head": 16}, "1 axis against 2."),
        ({"head": 16, "axes": 1, "width": 4}, "16 channels rotate against 4."),
    ):
        over = node.call("atlas.js", "bridge", by_name["llama"], larger | change)
        assert over == f"{start}**large** turns them: {said}"
    still = by_name["llama"] | {"name": "still", "waves": []}
    over = node.call("atlas.js", "bridge", by_name["llama"], still)
    assert over.startswith("**llama** cannot be compared with **still**: angles that")
    lost = by_name["nanochat"] | {"lost": True, "wrong": [["It slips.", False]]}
    over = node.call("atlas.js", "bridge", by_name["llama"], lost)
    assert "**nanochat**: **nanochat**: It slips. Angles of **nanochat** miss" in over


def test_equal_wave_vectors_are_no_difference(node):
    """Two text models: 21 pairs turn alike in both, and (16, 80) is one of them."""
    rows = {row["name"]: row for row in node.call("atlas.js", "unpack", compact(read_atlas()))}
    one, two = rows["qwen2_vl: text full"], rows["qwen3_omni_moe: text base 1,000,000"]
    over = node.call("atlas.js", "bridge", one, two)
    assert "43 of 64 wave vectors have no equal there, that of pair" in over
    assert "(16, 80)" not in over
    assert "Permute" not in over
    assert "with its axes, base and rescaling." in over


def test_the_bridge_says_where_what_stands_around_the_turn_differs(node, shown):
    llama, cohere, oss = (
        next(row for row in shown if row["name"] == name) for name in ("llama", "cohere", "oss")
    )
    early = llama | {"name": "early", "broken": "a projection after the turn"}
    normed = llama | {"name": "normed", "norm": "before"}
    resting = llama | {"name": "resting", "rests": "8 of 32"}
    turned = llama | {"name": "turned", "values": True}
    for other in (early, normed, resting, turned):
        alike = node.call("atlas.js", "bridge", llama, other)
        assert alike.endswith(" rotate alike; what stands around the turn differs.")
    unheard = llama | {"name": "unheard", "heard": False, "ran": False}
    in_a_cell = llama | {"name": "in a cell", "ran": False}
    for pair in ((normed, unheard), (unheard, turned), (in_a_cell, resting)):
        alike = node.call("atlas.js", "bridge", *pair)
        assert alike.endswith("no row of W_q and W_k has to change for the turn.")
    assert "turn differs." in node.call("atlas.js", "bridge", in_a_cell, normed)
    differ = node.call("atlas.js", "bridge", llama, oss)
    assert re.search("Multiply the rows .* What stands around the turn differs, too.$", differ)
    gains = node.call("atlas.js", "bridge", normed, cohere | {"norm": "before"})
    assert gains.endswith("and its gains may have to follow.")
    for pair in ((early, cohere), (cohere, early)):
        over = node.call("atlas.js", "bridge", *pair)
        assert over.startswith("**early** turns before W_q and W_k")
        assert over.endswith("from **{}** to **{}**.".format(*(row["name"] for row in pair)))
        assert "Permute" not in over


def test_the_bridge_says_that_only_default_bases_differ(node, shown):
    llama, cohere = (
        next(row for row in shown if row["name"] == name) for name in ("llama", "cohere")
    )
    pairs = cohere["width"] // 2
    waves = [[5e5 ** (-i / pairs)] for i in range(pairs)]
    other = cohere | {"base": 5e5, "waves": waves, "series": None, "scaling": None}
    said = node.call("atlas.js", "bridge", llama, other)
    assert "of the configuration" in said
    assert said.endswith("with one base in both, these changes of rows are enough.")
    same = node.call("atlas.js", "bridge", llama, cohere)
    assert "Permute the rows" in same
    assert "configuration" not in same
    yarn = node.call("atlas.js", "bridge", llama, other | {"scaling": "yarn"})
    assert "of the configuration" in yarn
    assert "defaults of the classes" not in yarn


def test_a_pair_is_as_fast_as_the_largest_part_of_its_wave(node):
    waves = [[0.1, 0.0], [0.0, -1.0], [0.5, 0.0], [0.0, 0.5]]
    assert node.call("circuit.js", "ranks", waves) == [3, 0, 1, 2]


@pytest.mark.parametrize("width", [680, 330])
@pytest.mark.parametrize("name", ["llama", "cohere", "deepseek: last", "shuffled"])
def test_a_chord_joins_the_channels_of_a_pair_in_its_hue(node, rows, reports, name, width):
    """Channel 0 stands at the top, the others follow clockwise; the fastest is rose."""
    seen = page_of(node, figures.atlas(compact(rows), row=name, other="nanochat"), width=width)
    _, plot = seen.plots
    x0, y0 = next(at for text, at in plot.texts() if text.startswith(name))
    chords = [one for one in plot.kind("stroke") if len(one["lines"][0]) == 2]
    report = reports[name]
    own = chords[: len(report.pairs)]
    radius = max(np.hypot(*np.subtract(*one["lines"][0])) for one in chords) / 2
    order = np.argsort(-np.abs(report.inv_freq), kind="stable").tolist()
    for place, (pair, chord) in enumerate(zip(report.pairs, own, strict=True)):
        for channel, (x, y) in zip(pair, chord["lines"][0], strict=True):
            turn = math.atan2(x - x0, y0 + 10 + radius - y) % (2 * math.pi)
            assert turn == pytest.approx(2 * math.pi * channel / 16, abs=1e-6)
        assert chord["color"] == pair_color(order.index(place), len(report.pairs))
    dots = [one for one in plot.kind("fill") if one["arc"]]
    assert len(dots) == 32
    grey = sum(one["color"] == seen.colors["muted"] for one in dots)
    assert grey == 16 - report.width


@pytest.mark.parametrize("width", [960, 714, 600, 344, 300])
def test_every_wheel_hangs_on_the_wall_and_none_over_another(node, width):
    rows = node.call("atlas.js", "unpack", compact(read_atlas()))
    wall = node.call("atlas.js", "hang", rows, width)
    walls, height = [wall["spots"]], max(wall["height"], 420)
    assert sorted(at["row"] for at in walls[0]) == list(range(len(rows)))
    for many in range(1, node.call("atlas.js", "most", width) + 1):
        walls.append(node.call("atlas.js", "hangLarge", list(range(many)), width, height)["spots"])
        assert [at["row"] for at in walls[-1]] == list(range(many))
        assert walls[-1][-1]["y"] + walls[-1][-1]["radius"] + 43 < height, "and its words"
    for spots in walls:
        at = np.array([(spot["x"], spot["y"]) for spot in spots])
        radius = spots[0]["radius"]
        assert radius >= 8
        assert (at >= radius).all()
        assert (at + radius <= [width, height]).all()
        apart = np.hypot(*(at[:, None] - at).T) + 9e9 * np.eye(len(at))
        assert apart.min() >= 2 * radius


@pytest.mark.parametrize("width", [348, 306, 300])
def test_the_twelve_hang_in_three_columns_of_large_wheels(node, width):
    rows = node.call("atlas.js", "unpack", compact(read_atlas()))
    height = node.call("atlas.js", "hang", rows, width)["height"]
    spots = node.call("atlas.js", "hangLarge", list(range(12)), width, height)["spots"]
    assert len({spot["x"] for spot in spots}) == 3
    assert 2 * spots[0]["radius"] >= 48


def test_every_broken_promise_has_a_few_words(node):
    broken = {row.broken for row in read_atlas() if row.broken}
    said = {one: node.call("atlas.js", "why", {"broken": one}) for one in broken}
    assert all(len(words) <= 20 for words in said.values())
    unnamed = {one for one, words in said.items() if words == "scores differ"}
    assert all(re.match("some |an unknown", one) for one in unnamed)
    assert node.call("atlas.js", "why", {"broken": None}) is None


def test_the_table_by_hand():
    """Keyboard, search, filter and heads, on a page without a browser."""
    run_tests(Path(__file__).with_name("atlas.test.mjs"))


def test_bad_values_are_named(rows):
    data = compact(rows)
    with pytest.raises(ValueError, match="row must be the name of a row, got 'lama'"):
        figures.atlas(data, row="lama")
    with pytest.raises(ValueError, match="other must be the name of a row, got 3"):
        figures.atlas(data, other=3)
    with pytest.raises(ValueError, match=r"show must be one of .* got 'all'"):
        figures.atlas(data, show="all")
    with pytest.raises(TypeError, match="search must be a str, got int"):
        figures.atlas(data, search=7)
    for wrong in ({}, {"columns": [], "rows": [[]]}, [], data | {"rows": []}):
        with pytest.raises(ValueError, match="data must hold rows with the columns name, family"):
            figures.atlas(wrong)


def test_reset_leaves_the_data_alone(rows):
    made = figures.atlas(compact(rows), row="cohere", other="llama")
    assert made._start == {**START, "show": 0, "sort": 0, "row": 1, "other": 0}
    assert "data" not in Atlas.figure_traits()
    json.dumps(made.data)
