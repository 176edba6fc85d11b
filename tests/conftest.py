"""What holds for all tests."""

import os
import random
import re
import secrets
import sys
from collections import defaultdict

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# jsonschema, which nbformat brings, would read a grammar of addresses for two seconds at import
sys.modules["rfc3987_syntax"] = None
# torch's compiler starts no processes beside the test: to start one takes longer than to compile
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

settings.register_profile("patient", deadline=None)  # no test fails because it takes its time
settings.load_profile("patient")

PAGES = 2  # so many of the book's pages are drawn for each run
PAGE = re.compile(r"(book|notebooks)/[\w-]+\.html")
# The files that take longest begin, then all that opens one page: none is left alone at the end.
LONG = ("claims_training", "live_cells", "fast_forms", "rotation", "mutations", "claims_timing")


def pytest_configure(config: pytest.Config) -> None:
    """Name the draw of this run, once for all its processes; what is asked for by name all runs."""
    words = "drawn(count, among=None): so many of a file (or group) are drawn for each run"
    config.addinivalue_line("markers", words)
    if not hasattr(config, "workerinput"):
        named = config.args_source is pytest.Config.ArgsSource.ARGS
        draw = "all" if named else secrets.token_hex(4)
        os.environ["DRAW"] = os.environ.get("DRAW") or draw


def pytest_report_header() -> str:
    """Say how the same tests are drawn again."""
    return f"DRAW={os.environ['DRAW']} draws the same of the tests that take long, DRAW=all all"


def page_of(item: pytest.Item) -> str | None:
    """Return the page that a test of many pages opens."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return next((value for value in values if PAGE.fullmatch(str(value))), None)


def not_drawn(items: list[pytest.Item], draw: str) -> set[pytest.Item]:
    """Return what stays out: tests of pages that are not drawn, and marked ones of a group."""
    pages = sorted({page for item in items if (page := page_of(item))})
    drawn = random.Random(f"{draw} pages").sample(pages, min(PAGES, len(pages)))
    groups = defaultdict(list)
    for item in items:
        if (mark := item.get_closest_marker("drawn")) and not page_of(item):
            groups[mark.kwargs.get("among", item.path.stem), mark.args[0]].append(item)
    out = {item for item in items if page_of(item) not in (None, *drawn)}
    for (file, count), some in groups.items():
        chance = random.Random(f"{draw} {file}")
        out.update(chance.sample(some, max(len(some) - count, 0)))
    return out


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not drawn, and let begin what takes long."""
    if (draw := os.environ["DRAW"]) != "all":
        out = not_drawn(items, draw)
        config.hook.pytest_deselected(items=list(out))
        items[:] = [item for item in items if item not in out]
    order = [f"test_{name}" for name in LONG]
    last = len(order)
    items.sort(
        key=lambda i: (order.index(i.path.stem) if i.path.stem in order else last, not page_of(i))
    )


class TogetherScheduling(LoadScopeScheduling):
    """The tests of one page, or else of one file, go to one process: they share what they open."""

    def _split_scope(self, nodeid: str) -> str:
        page = PAGE.search(nodeid)
        return page.group() if page else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Deal the tests to the processes (groups by mark are lost on pytest 9.2 with xdist 3.8)."""
    return TogetherScheduling(config, log)
