"""The figures' kit, by tests of its own language; and what holds for all JavaScript of the book."""

from pathlib import Path

import pytest

from tests.tools.node import run_tests

ROOT = Path(__file__).parents[2]
SCRIPTS = [
    path.relative_to(ROOT)
    for folder in ("rope_minimal", "book", "tests")
    for ending in ("js", "mjs")
    for path in sorted((ROOT / folder).rglob(f"*.{ending}"))
]


def test_the_kit_does_what_its_own_tests_say():
    run_tests(Path(__file__).with_name("kit.test.mjs"))


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_no_line_of_javascript_is_longer_than_120_characters(script):
    lines = (ROOT / script).read_text("utf8").splitlines()
    assert [number for number, line in enumerate(lines, 1) if len(line) > 120] == []
