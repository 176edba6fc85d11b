"""The bug bench: twelve real bugs, and the test of this suite that catches each of them."""

import importlib.util
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import hypothesis
import numpy as np
import pytest

import rope_minimal
from rope_minimal import rotation
from ropebook import bugs as bugs
from ropebook.bugs import BUGS, EXAMINATIONS, Bug, examine, mutant

ROOT = Path(__file__).parents[2]
BY_KEY = {bug.key: bug for bug in BUGS}
EACH = pytest.mark.parametrize("bug", BUGS, ids=BY_KEY)
TOLERANCE = 3e-5
"""Errors of a float32 layer that computes the same in another order are some ten times smaller."""


def cases(test: Callable[..., None]) -> Iterator[dict]:
    """Yield the arguments of every case of a parametrised test function."""
    axes = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args[:2]
            names = [n.strip() for n in names.split(",")] if isinstance(names, str) else names
            rows = [v.values if hasattr(v, "values") and hasattr(v, "marks") else v for v in values]
            axes.append(
                [dict(zip(names, [r] if len(names) == 1 else r, strict=True)) for r in rows]
            )
    for combination in itertools.product(*axes):
        yield {name: value for part in combination for name, value in part.items()}


def run(node: str, package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run one test of the suite, all its cases, as if ``package`` were rope_minimal."""
    path, name = node.split("::")
    with monkeypatch.context() as patch:
        for module in [m for m in sys.modules if m.split(".")[0] == "rope_minimal"]:
            patch.delitem(sys.modules, module)
        patch.setitem(sys.modules, "rope_minimal", package)
        for part in bugs.PARTS:
            patch.setitem(sys.modules, f"rope_minimal.{part}", getattr(package, part))
        spec = importlib.util.spec_from_file_location(f"_bench_{Path(path).stem}", ROOT / path)
        tests = importlib.util.module_from_spec(spec)
        with quick_hypothesis():
            spec.loader.exec_module(tests)
            test = getattr(tests, name)
            for arguments in cases(test):
                test(**arguments)


class quick_hypothesis:  # noqa: N801
    """Neither remember nor simplify the failures that this file asks for."""

    def __enter__(self) -> None:
        quick = hypothesis.settings(
            database=None,
            derandomize=True,
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        )
        hypothesis.settings.register_profile("bench", quick)
        self.before = hypothesis.settings.get_current_profile_name()
        hypothesis.settings.load_profile("bench")

    def __exit__(self, *_: object) -> None:
        hypothesis.settings.load_profile(self.before)


# The suite catches all twelve


@EACH
def test_the_named_test_fails_on_the_bug(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuted if the named test of this project passes with the bug in place."""
    with pytest.raises(AssertionError):
        run(bug.caught_by, mutant(bug), monkeypatch)


@pytest.mark.parametrize("node", sorted({bug.caught_by for bug in BUGS}))
def test_the_named_test_passes_on_a_faithful_copy(node: str, monkeypatch) -> None:
    run(node, mutant(), monkeypatch)


def test_relativity_alone_sees_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a property test sees, and what needs a comparison with other people's numbers."""
    relativity = "tests/package/test_properties.py::test_scores_depend_on_the_distance_alone"
    run(relativity, mutant(BY_KEY["inv_freq"]), monkeypatch)  # a wrong frequency passes
    for key in ("halves", "positions"):
        with pytest.raises(AssertionError):
            run(relativity, mutant(BY_KEY[key]), monkeypatch)


# The list


def test_there_are_twelve_and_each_can_be_told_apart() -> None:
    assert len(BUGS) == len(BY_KEY) == len({b.name for b in BUGS}) == 12
    assert len({(b.module, b.new) for b in BUGS}) == 12
    for bug in BUGS:
        assert len({*bug.unlike, bug.key}) == 4
        assert set(bug.unlike) <= BY_KEY.keys()
        assert "\n" not in bug.old + bug.new


@EACH
def test_each_names_a_public_thread_and_an_existing_test(bug: Bug) -> None:
    assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", bug.thread)
    path, name = bug.caught_by.split("::")
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE)
    for text in (bug.story, bug.look, bug.why):
        assert text.endswith((".", "?"))


def test_a_line_that_is_not_there_is_refused() -> None:
    gone = Bug(**{**vars(BUGS[0]), "old": "no such line"})
    with pytest.raises(ValueError, match="must have the line once, got 0: no such line"):
        mutant(gone)


def test_making_a_mutant_leaves_the_package_as_it_is() -> None:
    package = mutant(BY_KEY["positions"])
    assert rope_minimal.rotation is rotation is sys.modules["rope_minimal.rotation"]
    assert package.rotation is not rotation
    assert package.apply_rope is package.rotation.apply_rope
    assert package.apply_rope is not rope_minimal.apply_rope


# The symptoms


@pytest.fixture(scope="module")
def charts() -> dict[str | None, dict]:
    return {None: examine(mutant())} | {bug.key: examine(mutant(bug)) for bug in BUGS}


def failed(chart: dict) -> set[str]:
    return {name for name, errors in chart["errors"].items() if max(errors) > TOLERANCE}


def test_the_healthy_package_has_no_symptom(charts) -> None:
    chart = charts[None]
    assert chart["errors"].keys() == EXAMINATIONS.keys()
    assert failed(chart) == set()
    assert 0 < max(chart["errors"]["decoding"]) < TOLERANCE / 3  # the measure is not blind
    assert np.allclose(chart["near"], chart["far"], atol=1e-6)
    assert np.allclose(chart["length"], 1, atol=1e-6)
    assert chart["near"][0] == pytest.approx(1)
    assert min(chart["near"]) < 0.7


EVERYWHERE = set(EXAMINATIONS)
FAILS = {
    "offset": {"decoding", "padded"},
    "inv_freq": EVERYWHERE,
    "sign": EVERYWHERE,
    "permute": {"converted"},
    "cache_key": {"decoding", "padded"},
    "halves": EVERYWHERE - {"interleaved"},
    "padding": {"padded"},
    "layouts": {"interleaved"},
    "heads": EVERYWHERE,
    "table": {"cast"},
    "positions": {"far"},
    "base": {"decoding", "padded"},
}


@EACH
def test_the_symptoms_are_where_the_answer_says(bug: Bug, charts) -> None:
    chart, healthy = charts[bug.key], charts[None]
    assert failed(chart) == FAILS[bug.key]
    relative = np.abs(np.subtract(chart["near"], chart["far"])).max() < 1e-6
    assert relative == (bug.key not in {"sign", "halves", "positions"})
    assert np.allclose(chart["length"], 1, atol=1e-6) == (bug.key != "halves")
    right = np.allclose(chart["near"], healthy["near"], atol=1e-6)
    assert right == (bug.key not in {"inv_freq", "halves", "heads"})


def first_wrong(chart: dict, name: str) -> int:
    return next(t for t, error in enumerate(chart["errors"][name]) if error > TOLERANCE)


def test_the_first_wrong_token_tells_bugs_of_decoding_apart(charts) -> None:
    assert first_wrong(charts["offset"], "decoding") == bugs.PROMPT
    assert first_wrong(charts["cache_key"], "decoding") == bugs.PROMPT + 1
    assert first_wrong(charts["base"], "decoding") == 24
    assert first_wrong(charts["padding"], "padded") == bugs.PROMPT - bugs.PADDING


def test_a_wrong_layout_leaves_the_first_token_right(charts) -> None:
    for key, name in (("layouts", "interleaved"), ("permute", "converted")):
        assert charts[key]["errors"][name][0] < TOLERANCE
        assert first_wrong(charts[key], name) == 1


def test_other_symptoms_are_as_described(charts) -> None:
    assert np.ptp(charts["heads"]["near"]) < 1e-6  # the distance plays no part
    assert 1e-3 < max(charts["table"]["errors"]["cast"]) < 0.1
    steps = np.abs(np.diff(charts["positions"]["far"])) > 1e-6
    assert np.flatnonzero(steps).size <= bugs.DISTANCES / 16 + 1  # a staircase
    inv_freq = np.abs(np.subtract(charts["inv_freq"]["near"], charts[None]["near"]))
    assert inv_freq[64:].max() > 2 * inv_freq[:16].max()  # grows with the distance
