"""What holds for the claims and the myths of every chapter; what they say is tested elsewhere."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

from tests.tools.boxes import boxes, boxes_with_checks

TESTS = Path(__file__).parents[1]
CHAPTERS = sorted((TESTS.parent / "notebooks").glob("[0-9B-Z]*-*.ipynb"))
"""The chapters, and the appendices that have claims: theirs are numbered B.1, B.2, ..."""
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


@cache
def functions(file):
    """Return the functions of a test file by name."""
    path = TESTS / file
    tree = ast.parse(path.read_text("utf8") if path.exists() else "")
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def assertions(code):
    """Return the assertions in a piece of code whose truth is not written down in them."""
    nodes = [node for node in ast.walk(code) if isinstance(node, ast.Assert)]
    return [a for a in nodes if any(isinstance(part, ast.Name) for part in ast.walk(a.test))]


def asserted_as_myth(code):
    """Return the assertions that a cell makes under ``figures.myth_fails()``."""
    blocks = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.With)]
    calls = ["figures.myth_fails()"]
    myths = [b for b in blocks if [ast.unparse(i.context_expr) for i in b.items] == calls]
    return [assertion for block in myths for assertion in assertions(block)]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("with figures.myth_fails():\n    x = 1\n    assert x == 2", 1),
        ("with figures.myth_fails():\n    assert 1 == 2, message", 0),
        ("with figures.myth_fails():\n    raise AssertionError(x)", 0),
        ("try:\n    assert x == 2\nexcept AssertionError:\n    print(x)", 0),
    ],
)
def test_an_assertion_that_cannot_hold_is_none(code, expected):
    assert len(asserted_as_myth(code)) == expected


@each_chapter
def test_no_claim_and_no_myth_is_written_in_another_form(path):
    text = path.read_text("utf8")
    for kind in ("Claim", "Myth"):
        assert len(list(boxes(path, kind))) == len(re.findall(rf">\s*\*\*\s*{kind}\b", text))


@each_chapter
def test_claims_are_numbered_in_order_without_gaps(path):
    titles = [title for title, *_ in boxes(path, "Claim")]
    chapter = path.stem.partition("-")[0].lstrip("0")
    assert titles == [f"Claim {chapter}.{i + 1}" for i in range(len(titles))]
    assert titles


@each_chapter
def test_every_claim_names_tests_that_exist_and_assert_something(path):
    wrong = []
    for title, check, *_ in boxes_with_checks(path, "Claim"):
        link = re.fullmatch(r'\.\./tests/(\w+/test_\w+\.py) "(test_\w+(?: test_\w+)*)"', check)
        tests = [functions(link[1]).get(name) for name in link[2].split()] if link else [None]
        for test in tests:
            if not test or not re.search(r"\bassert|pytest\.raises", ast.unparse(test)):
                wrong.append(f"{title}: {check or 'no second check'}")
    assert wrong == []


@each_chapter
def test_the_code_after_every_claim_asserts_something(path):
    claims = boxes(path, "Claim")
    assert [title for title, _, code in claims if not assertions(ast.parse(code))] == []


@each_chapter
def test_every_myth_is_followed_by_its_assertion_which_fails(path):
    """That it fails is seen when the cell runs: myth_fails stops the build where it holds."""
    for title, text, code in boxes(path, "Myth"):
        assert re.fullmatch(r'Myth: ".+"', title)
        assert text.strip(), title
        assert asserted_as_myth(code), title


def test_there_are_myths():
    assert sum(len(list(boxes(path, "Myth"))) for path in CHAPTERS) >= 12


@each_chapter
def test_every_test_named_in_a_text_exists(path):
    for file, name in re.findall(r"tests/(\w+/test_\w+\.py)::(test_\w+)", path.read_text("utf8")):
        assert name in functions(file)


@each_chapter
def test_every_test_of_a_claim_says_what_would_refute_it(path, monkeypatch):
    monkeypatch.syspath_prepend(str(TESTS.parent / "book" / "_ext"))
    claims = importlib.import_module("claims")
    silent = []
    for title, check, *_ in boxes_with_checks(path, "Claim"):
        file, names = re.fullmatch(r'\.\./tests/(\S+) "(.+)"', check).groups()
        known = claims.functions(TESTS / file)
        silent += [
            f"{title}: {name}" for name in names.split() if not claims.refutation(known[name])
        ]
    assert silent == []


def test_what_would_refute_a_claim_is_read_from_its_tests(monkeypatch):
    """The page of claims prints it; a docstring of another kind says nothing there."""
    monkeypatch.syspath_prepend(str(TESTS.parent / "book" / "_ext"))
    refutation = importlib.import_module("claims").refutation
    words = "Refuted if a score moves\n    by more than rounding.\n\n    More."
    assert (
        refutation(f'def test_a():\n    """{words}"""\n') == "a score moves by more than rounding."
    )
    assert refutation('def test_a():\n    """Of three layers."""\n    assert x') == ""
