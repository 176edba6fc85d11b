"""The list of references, labelled as the text cites: author and year, in alphabetical order."""

from collections.abc import Iterator

from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.style.formatting.unsrt import Style
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.sorting import BaseSortingStyle
from sphinx.application import Sphinx


def cited_as(entry: Entry) -> str:
    """Return "Su et al., 2021", "He and Xu, 2023" or "Clay, 2024"."""
    names = [
        " ".join(map(str, [*person.rich_prelast_names, *person.rich_last_names]))
        for person in entry.persons["author"]
    ]
    if len(names) > 2:
        names = [f"{names[0]} et al."]
    return f"{' and '.join(names)}, {entry.fields['year']}"


class AuthorYear(BaseLabelStyle):
    """Author and year. Two entries called alike fail the build, which warns of them."""

    def format_labels(self, sorted_entries: list[Entry]) -> Iterator[str]:
        """Return the label of each entry."""
        return map(cited_as, sorted_entries)


class Alphabet(BaseSortingStyle):
    """By label, capital letters or not; the braces around a name in the file do not count."""

    def sorting_key(self, entry: Entry) -> tuple[str, str]:
        """Return what entries are compared by."""
        return cited_as(entry).lower(), entry.key


class BookStyle(Style):
    """The style of the book's list of references."""

    default_label_style = AuthorYear
    default_sorting_style = Alphabet


def setup(app: Sphinx) -> dict:
    """Give the style its name."""
    register_plugin("pybtex.style.formatting", "book", BookStyle, force=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
