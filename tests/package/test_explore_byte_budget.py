"""The byte budget: what Python hands over, and what its script makes of it."""

import re

import pytest
import torch

from rope_minimal import rope_table
from ropebook import figures, timing
from ropebook.figures.byte_budget import FORMS, MACHINES, SHAPES, budget_data, passes

SCRIPT = "byte_budget.js"
TEXTBOOK, COMPLEX, FUSED = (list(FORMS)[i] for i in (0, 7, -1))
PROMPT, TOKEN = next(iter(SHAPES)), list(SHAPES)[-1]


def case(shape, dtype, floor_us, **more):
    """One recorded case of two forms."""
    rows = [
        {
            "form": "rotate_half",
            "mode": "eager",
            "status": "ok",
            "us": 5.5 * floor_us,
            "ratio": 5.4,
        },
        {"form": "view_as_complex", "mode": "eager", "status": "wrong", "us": None, "ratio": None},
    ]
    usual = {"allocator": "reused", "direction": "forward", "memory": "contiguous"}
    return {"shape": list(shape), "dtype": dtype, "floor_us": floor_us, "rows": rows} | usual | more


RECORD = {
    "machine": {"processor": "some processor", "gpu": None},
    "date": "2026-01-01",
    "cases": [
        case(SHAPES[PROMPT], "float32", 3000.0),
        case(SHAPES[TOKEN], "float32", 2.0),
        case(SHAPES[PROMPT], "float32", 9000.0, allocator="fresh"),
        case(SHAPES[PROMPT], "float32", 6000.0, direction="forward+backward"),
    ],
}


def budget(node, record, shape=PROMPT, dtype="float32", form=TEXTBOOK):
    setting = {"shape": shape, "dtype": dtype, "form": form, "machine": "CPU"}
    return node.call(SCRIPT, "budget", budget_data({"CPU": record}), setting)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_blocks_add_up_to_the_bytes_that_are_moved(dtype):
    x = torch.zeros(1, 64, 256, 64, dtype=getattr(torch, dtype))
    table = rope_table(torch.arange(256), 64)
    for form, mode in FORMS.values():
        total = sum(read + written for _, read, written in passes(form, dtype, mode))
        if mode == "eager":
            moved = timing.moved_bytes(timing.FORMS[form].bind(x, *table)) / x.nbytes
            assert total == pytest.approx(moved, abs=0.3), form
        else:
            assert total == 2


def test_every_form_is_one_of_the_measured_ones():
    known = set(timing.FORMS) | {"apply_rope_fused, half-split"}
    assert {form for form, _ in FORMS.values()} <= known


def test_ten_blocks_against_two(node):
    textbook, product, fused = (budget(node, RECORD, form=f) for f in (TEXTBOOK, COMPLEX, FUSED))
    assert [each["passes"] for each in (textbook, product, fused)] == [10, 2, 2]
    assert textbook["bytes"] == 2**26
    assert textbook["steps"][-1] == ["add", 2, 1]


def test_predictions_are_the_bytes_over_the_rate_of_the_recorded_copy(node):
    said = budget(node, RECORD)
    assert said["rate"] == pytest.approx(2 * 2**26 / 3e-3)
    assert said["floor"] == pytest.approx(3000)
    assert said["predicted"] == pytest.approx(15_000)
    assert said["copies"] == pytest.approx(5.5)
    assert said["measured"] == 5.5 * 3000  # not the fresh one, nor the one with a gradient
    assert budget(node, RECORD, form=COMPLEX)["measured"] is None  # a wrong result has no time
    token = budget(node, RECORD, shape=TOKEN)
    assert token["predicted"] == pytest.approx(10)
    large = budget(node, RECORD, shape=list(SHAPES)[1])  # not recorded: the largest of its type
    assert large["rate"] == said["rate"]
    assert large["measured"] is None


def test_each_machine_has_its_own_copies_and_times(node):
    faster = case(SHAPES[PROMPT], "float32", 40.0, allocator="cuda")
    records = {"CPU": RECORD, "GPU": {**RECORD, "cases": [faster]}}
    for machine, floor in (("CPU", 3000.0), ("GPU", 40.0)):
        setting = {"shape": PROMPT, "dtype": "float32", "form": TEXTBOOK, "machine": machine}
        said = node.call(SCRIPT, "budget", budget_data(records), setting)
        assert (said["floor"], said["measured"]) == (floor, 5.5 * floor)
        assert said["predicted"] == 5 * floor


def test_nothing_recorded_is_not_measured_yet(node):
    for said in (budget(node, None), budget(node, RECORD, dtype="bfloat16")):
        assert said["rate"] is said["floor"] is said["predicted"] is said["measured"] is None


def number_of(said):
    """A printed time in microseconds."""
    value, unit = said.split(" ")
    return float(value.replace(",", "")) * {"µs": 1, "ms": 1000}[unit]


def bytes_of(said):
    return float(said[:-4].replace(",", "")) * {"MiB": 2**20, "KiB": 2**10}[said[-3:]]


SETTINGS = [
    (shape, dtype, machine)
    for shape in SHAPES
    for dtype in ("float32", "bfloat16")
    for machine in MACHINES
]


def book_data():
    return budget_data({name: timing.recorded(file) for name, file in MACHINES.items()})


@pytest.fixture(scope="module")
def book(node):
    """What the figure says of every form in every setting, from the record of the book."""
    data = book_data()
    found = {}
    for shape, dtype, machine in SETTINGS:
        for form in FORMS:
            setting = {"shape": shape, "dtype": dtype, "form": form, "machine": machine}
            now = node.call(SCRIPT, "budget", data, setting)
            found[shape, dtype, machine, form] = now, node.call(SCRIPT, "words", data, setting, now)
    return found


def test_every_ratio_that_is_printed_follows_from_the_numbers_beside_it(book):
    for now, said in book.values():
        copy, half, same, predicted = re.search(
            r"A copy .*?take.*? \*\*(.+?)\*\* .*Predicted: (.+?) × (.+?) = \*\*(.+?)\*\*", said
        ).groups()
        assert copy == same
        passes = float(re.search(r"makes \*\*(.+?) pass", said)[1])
        assert float(half) == passes / 2 == pytest.approx(now["predicted"] / now["floor"])
        product = float(half) * number_of(copy)
        assert number_of(predicted) == pytest.approx(product, rel=5.1e-3)
        assert number_of(copy) == pytest.approx(2e6 * now["bytes"] / now["rate"], rel=5.1e-3)
        several = re.search(r"([\d.]+) times as many as a copy", said)
        assert float(several[1]) == passes / 2 if several else passes == 2
        count, block, total = re.search(
            r"written\): ([\d.]+) × ([\d.]+ .iB) = \*\*([\d,.]+ .iB)", said
        ).groups()
        assert float(count) * bytes_of(block) == pytest.approx(bytes_of(total), rel=0.005)
        took = re.search(r"took \*\*([\d.]+) times", said)
        assert bool(took) == ("measured **" in said) == (now["measured"] is not None)
        if took:
            measured = number_of(re.search(r"measured \*\*(.+?)\*\*", said)[1])
            assert float(took[1]) == pytest.approx(measured / number_of(copy), abs=0.0501)


@pytest.mark.parametrize(("machine", "share"), [("CPU", 0.07), ("GPU", 0.14)])
def test_the_texts_ratios_are_a_little_off_those_of_the_medians(book, machine, share):
    record, apart = timing.recorded(MACHINES[machine]), []
    for each in record["cases"]:
        allocator = "reused" if machine == "CPU" else "cuda"
        usual = {"allocator": allocator, "direction": "forward", "memory": "contiguous"}
        shape = next((n for n, s in SHAPES.items() if list(s) == each["shape"]), None)
        if shape is None or any(each[name] != value for name, value in usual.items()):
            continue
        ratios = {(r["form"], r["mode"]): r["ratio"] for r in each["rows"] if r["status"] == "ok"}
        for form, key in FORMS.items():
            now, _ = book[shape, each["dtype"], machine, form]
            if key in ratios:
                apart.append(abs(now["copies"] / ratios[key] - 1))
    assert len(apart) > 50
    assert share - 0.01 < max(apart) < share


def test_one_axis_holds_all_rows_of_a_shape_in_both_types(node, book):
    data = book_data()
    for shape, _, machine in SETTINGS:
        end = node.call(SCRIPT, "longest", data, {"shape": shape, "machine": machine})
        times = [
            now[name]
            for (own, _, where, _), (now, _) in book.items()
            for name in ("predicted", "measured")
            if (own, where) == (shape, machine) and now[name]
        ]
        assert end == max(times)


def test_another_record_has_its_own_name_and_times(node):
    gpu = RECORD | {"machine": {"processor": "some processor", "gpu": "some GPU"}}
    data = figures.byte_budget(record=gpu).data
    assert data["machines"]["GPU"]["name"] == "some GPU, 2026-01-01"
    assert data["machines"]["CPU"] == book_data()["machines"]["CPU"]
    other = figures.byte_budget(record=RECORD).data["machines"]
    assert other["CPU"]["name"] == "some processor, 2026-01-01"
    assert other["GPU"] == book_data()["machines"]["GPU"]


@pytest.mark.parametrize(
    ("us", "said"),
    [
        (0.0273, "0.0273 µs"),
        (0.5, "0.500 µs"),
        (17.7, "17.7 µs"),
        (400, "400 µs"),
        (16_691, "16.7 ms"),
    ],
)
def test_durations_are_said_as_people_do(node, us, said):
    assert node.call(SCRIPT, "duration", us) == said


def test_records_are_found_from_any_folder_of_the_repository(tmp_path):
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (tmp_path / "notebooks").mkdir()
    assert timing.recorded(start=tmp_path / "notebooks") is None
    (results / f"{timing.BOOK}.json").write_text('{"date": "2026-01-01"}', encoding="utf-8")
    assert timing.recorded(start=tmp_path / "notebooks") == {"date": "2026-01-01"}
