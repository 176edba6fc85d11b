"""`import rope_minimal` is cheap, and its names arrive when they are asked for."""

import subprocess
import sys

import pytest

import rope_minimal


def test_import_loads_none_of_the_heavy_libraries() -> None:
    code = (
        "import sys, rope_minimal;"
        "heavy = {'torch', 'triton', 'sympy', 'matplotlib', 'anywidget', 'ipywidgets'};"
        "print(*heavy & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


@pytest.mark.parametrize("module", ["frequencies", "reference", "layout", "axes", "rescaling"])
def test_the_numpy_floors_do_not_load_torch(module: str) -> None:
    code = f"import sys, rope_minimal.{module}; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_every_public_name_loads_and_is_listed() -> None:
    assert set(rope_minimal.__all__) <= set(dir(rope_minimal))
    for name in rope_minimal.__all__:
        assert getattr(rope_minimal, name).__doc__


def test_an_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'rope_minimal' has no attribute 'apply_rop'"):
        _ = rope_minimal.apply_rop
