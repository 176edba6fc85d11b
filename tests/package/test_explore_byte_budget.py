"""The byte budget: what Python hands over, and what its script makes of it."""

import pytest
import torch

from rope_minimal import explore, rope_table, speed
from rope_minimal.explore.byte_budget import FORMS, SHAPES, budget_data, passes
from tests.tools.node import Node

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


@pytest.fixture(scope="module")
def node():
    process = Node()
    yield process
    process.close()


def budget(node, records, shape=PROMPT, dtype="float32", form=TEXTBOOK, machine="recorded CPU"):
    setting = {"shape": shape, "dtype": dtype, "form": form, "machine": machine}
    return node.call(SCRIPT, "budget", budget_data(records), setting)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_blocks_add_up_to_the_bytes_that_are_moved(dtype):
    x = torch.zeros(1, 64, 256, 64, dtype=getattr(torch, dtype))
    table = rope_table(torch.arange(256), 64)
    for form, mode in FORMS.values():
        total = sum(read + written for _, read, written in passes(form, dtype, mode))
        if mode == "eager":
            moved = speed.moved_bytes(speed.FORMS[form].bind(x, *table)) / x.nbytes
            assert total == pytest.approx(moved, abs=0.3), form
        else:
            assert total == 2


def test_every_form_is_one_of_the_measured_ones():
    known = set(speed.FORMS) | {"apply_rope_fused, half-split"}
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
    assert said["copies"] == 5.4
    assert said["measured"] == 5.5 * 3000  # not the fresh one, nor the one with a gradient
    assert budget(node, RECORD, form=COMPLEX)["measured"] is None  # a wrong result has no time
    token = budget(node, RECORD, shape=TOKEN)
    assert token["predicted"] == pytest.approx(10)
    large = budget(node, RECORD, shape=list(SHAPES)[1])  # not recorded: the largest of its type
    assert large["rate"] == said["rate"]
    assert large["measured"] is None


def test_a_gpu_is_a_prediction_from_the_data_sheet(node):
    said = budget(node, RECORD, machine="H200, predicted", dtype="bfloat16")
    assert said["rate"] == 4.8e12
    assert said["predicted"] == pytest.approx(1e6 * 10 * 2**25 / 4.8e12)
    assert said["measured"] is None


def test_nothing_recorded_is_not_measured_yet(node):
    for said in (budget(node, None), budget(node, RECORD, dtype="bfloat16")):
        assert said["rate"] is said["floor"] is said["predicted"] is said["measured"] is None
    assert node.call(SCRIPT, "duration", None) == "not measured yet"


@pytest.mark.parametrize(
    ("us", "said"), [(0.5, "0.50 µs"), (17.7, "17.7 µs"), (400, "400 µs"), (16_691, "16.7 ms")]
)
def test_durations_are_said_as_people_do(node, us, said):
    assert node.call(SCRIPT, "duration", us) == said


def test_four_labelled_controls_and_a_question():
    title, figure, row = explore.byte_budget(form=COMPLEX, machine="H200, predicted").children
    assert title.value.count("?") == 1
    labels = [control.description for control in row.children]
    assert labels == ["Way of writing", "Shape of x", "Number type", "Machine"]
    assert set(figure._start) == {"shape", "dtype", "form", "machine"}
    assert figure.data["forms"].keys() == FORMS.keys()


@pytest.mark.parametrize("name", ["shape", "dtype", "form", "machine"])
def test_a_bad_value_raises_an_error_that_names_it(name):
    with pytest.raises(ValueError, match=f"{name} must be one of .* got 'other'"):
        explore.byte_budget(**{name: "other"})


def test_records_are_found_from_any_folder_of_the_repository(tmp_path):
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (tmp_path / "notebooks").mkdir()
    assert speed.recorded(start=tmp_path / "notebooks") is None
    (results / f"{speed.BOOK}.json").write_text('{"date": "2026-01-01"}', encoding="utf-8")
    assert speed.recorded(start=tmp_path / "notebooks") == {"date": "2026-01-01"}
