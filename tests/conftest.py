"""What holds for all tests."""

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)  # no test fails because it takes its time
settings.load_profile("patient")

# The files that take longest begin, so that none of them is left alone at the end.
LONG = ("claims_training", "live_cells", "fast_forms", "rotation", "mutations", "claims_timing")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give the tests of a file to one process: they share what they open and what they train."""
    shared = config.pluginmanager.hasplugin("xdist")
    for item in items:
        if shared and not item.get_closest_marker("xdist_group"):
            params = item.callspec.params if hasattr(item, "callspec") else {}
            name = params.get("page_name", item.path.stem)
            item.add_marker(pytest.mark.xdist_group(str(name)))
    order = [f"test_{name}" for name in LONG]
    items.sort(key=lambda i: order.index(i.path.stem) if i.path.stem in order else len(order))
