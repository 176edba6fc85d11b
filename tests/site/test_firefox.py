"""The figures in a second browser, where one is installed: Firefox, driven over WebDriver BiDi."""

from functools import partial

import pytest

from . import firefox
from .conftest import FIGURES_STAND, WITH_WIDGETS
from .figures import STATE

pytestmark = pytest.mark.skipif(
    firefox.find() is None, reason="Firefox is not installed, a second browser for the figures"
)

# the first slider of every figure in sight, or else its first choice that is not made
CONTROLS = """[...document.querySelectorAll('.rope-box')].map(box => {
    const figure = box.querySelector('.rope-figure');
    const handles = [...box.querySelectorAll('.rope-track')];
    const control = handles.find(handle => handle.checkVisibility())
        ?? box.querySelector('.rope-choice button[aria-pressed=false]');
    if (!figure || !control) return null;
    window.rope ??= [];
    window.rope.push([figure, control]);
    return control.matches('.rope-track') ? 'slider' : 'choice';
}).filter(Boolean)"""


@pytest.fixture(scope="module")
def fox(tmp_path_factory):
    fox = firefox.Firefox(firefox.find(), tmp_path_factory.mktemp("firefox"))
    yield fox
    fox.close()


@pytest.mark.parametrize("name", WITH_WIDGETS)
def test_one_control_of_every_figure_moves_it_in_firefox(fox, site, name):
    fox.problems.clear()
    fox.open(site + name)
    fox.wait(f"({FIGURES_STAND})()")
    kinds = fox.evaluate(CONTROLS)
    for i, kind in enumerate(kinds):
        figure, control = f"window.rope[{i}][0]", f"window.rope[{i}][1]"
        before = fox.evaluate(f"({STATE})({figure})")
        fox.evaluate(f"{control}.focus()")
        # a button wants a window in the foreground before it obeys the space bar
        turns = [partial(fox.press, key) for key in ("ArrowRight", "ArrowLeft", "ArrowLeft")]
        for turn in turns if kind == "slider" else [partial(fox.click, control)]:
            turn()
            if any(fox.evaluate(f"({STATE})({figure})") != before for _ in range(20)):
                break
        else:
            raise AssertionError(f"figure {i + 1} of {name} does not move")
    assert fox.problems == []
