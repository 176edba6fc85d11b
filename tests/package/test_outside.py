"""What the validators' findings become: errors with a name stay, all others are told."""

from tests.tools.outside import KNOWN, unknown


def test_an_error_without_a_name_is_told_and_so_is_a_name_without_an_error():
    table = ("book/api.html", 7, "No “p” element in scope but a “p” end tag seen.")
    elsewhere = ("book/faq.html", 3, table[2])
    lines = unknown([table, elsewhere])
    assert lines[0] == f"book/faq.html:3: {table[2]}"
    assert lines[1:] == [f"no page has {name} any more" for name in KNOWN if "table" not in name]
