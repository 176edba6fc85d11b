"""Six labs, one for each lesson of the teachers' page: tasks for the reader's own code, checked.

``lab = begin(1, "your name")`` draws the reader's own variant of lab 1, and ``lab.check(rotate=f)``
says what is right, what is wrong and how. Once all parts are right, ``lab.certificate()`` prints a
line, which ``python -m ropebook.labs LINE`` verifies. ``pytest --lab 1 FILE...`` asks the notebooks
or Python files of a class, see `ropebook.pytest_labs`.

==============  ==================================================================================
`lab`           `Lab`: parts, checks, certificate; a name becomes a number, and that a variant
`turns`         A rotation by its parameters, and which of them an answer got wrong
`rotation`      Lab 1: write the rotation
`stranger`      Lab 2: find the layout of a stranger
`context`       Lab 3: extend a context
`cache`         Lab 4: mend a cache
`bits`          Lab 5: count bits
`checkpoint`    Lab 6: convert a checkpoint
==============  ==================================================================================

NumPy is all that they need.
"""

from .bits import CountBits
from .cache import MendACache
from .checkpoint import ConvertACheckpoint
from .context import ExtendAContext
from .lab import Lab, verify
from .rotation import WriteTheRotation
from .stranger import FindTheLayout

__all__ = ["LABS", "Lab", "begin", "verify"]

LABS: dict[int, type[Lab]] = {
    one.number: one
    for one in (
        *(WriteTheRotation, FindTheLayout, ExtendAContext),
        *(MendACache, CountBits, ConvertACheckpoint),
    )
}
"""The labs by number."""


def begin(number: int, who: str | int) -> Lab:
    """Return a lab, in the variant of one reader.

    Parameters
    ----------
    number
        Which lab, 1 to 6.
    who
        The reader's name or number. Case does not matter, nor how many spaces are between words.

    Raises
    ------
    TypeError, ValueError
        If there is no such lab, or ``who`` is empty or neither a name nor a number.
    """
    if isinstance(number, bool) or number not in LABS:
        raise ValueError(f"number must be one of the labs 1 to {max(LABS)}, got {number!r}")
    return LABS[number](who)
