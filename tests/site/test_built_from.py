"""Every page of the built book says what it was built from."""

import re

from .conftest import SITE

LINE = re.compile(
    r'<span class="built-from">Built (from commit .{7,120}? )?'
    r"on <time>20\d\d-\d\d-\d\d</time>\.</span>"
)


def test_a_page_says_what_it_was_built_from(page_name: str) -> None:
    assert len(LINE.findall((SITE / page_name).read_text("utf8"))) == 1
