"""Labs 2 and 5, short: they live in the page, without a kernel."""

import traitlets

from .figure import Figure

__all__ = ["PageLab", "page_lab"]


class PageLab(Figure):
    """A lab whose variant is drawn from the reader's name in the browser (``page_lab.js``)."""

    lab = traitlets.Enum((2, 5), 2).tag(sync=True)


def page_lab(number: int) -> PageLab:
    """Return a short form of a lab of `ropebook.labs`, in the same variants.

    Parameters
    ----------
    number
        2, find the layout of a stranger, or 5, count bits.

    Raises
    ------
    ValueError
        If it is another.
    """
    if isinstance(number, bool) or number not in (2, 5):
        raise ValueError(f"number must be 2 or 5, got {number!r}")
    return PageLab(lab=number)
