"""Heads of a released model over a sentence: what each reads, and which pairs it needs for that."""

from typing import Any

import traitlets

from .figure import Choice, Figure, Real, Whole

__all__ = ["HEADS", "ROUNDED", "RealHead", "real_head"]

HEADS = [
    "the token before",
    "the first token",
    "the token itself",
    "a few tokens back",
    "the same word",
    "what followed that word",
    "far and near alike",
    "the loudest keys",
]
"""The heads, by what each is chosen for."""

ROUNDED = ["nothing", "positions", "angles", "table"]
"""What can be rounded to bfloat16; the table is cosines and sines."""


class RealHead(Figure):
    """A real head's attention, its rotation open to change (``real_head.js``)."""

    question = "A real head turns 32 pairs of channels: which does it need for what it reads?"

    head = Choice(HEADS, label="A head that reads")
    factor = Real(
        1, low=1, high=4, label="Positions divided by (PI)", every=0.1, digits=1, fold=True
    )
    first = Whole(25, low=0, high=31, label="First pair left out", fold=True)
    out = Whole(1, low=0, high=32, label="Pairs left out", fold=True)
    base = Real(1e5, low=1e3, high=1e7, label="Base", per_decade=10, fold=True)
    paired = Choice(["as trained", "the other layout"], label="Channels paired", fold=True)
    rounded = Choice(ROUNDED, label="Rounded to bfloat16", fold=True)
    start = Whole(0, low=0, high=8000, label="First position", every=100, fold=True)
    query = Whole(60, low=0, high=67, help="the token that reads")
    tried: traitlets.List[int] = traitlets.List(
        traitlets.Int(), help="the first pairs of windows that were left out before"
    ).tag(sync=True)

    @traitlets.validate("data")
    def _check_data(self, given: Any) -> dict[str, Any]:
        names = [head.get("name") for head in given["value"].get("heads") or []]
        if names != HEADS:
            raise ValueError(f"data must hold the heads {', '.join(HEADS)}; got {names!r}")
        return given["value"]


def real_head(
    data: dict[str, Any],
    head: str = HEADS[0],
    first: int = 25,
    out: int = 1,
    factor: float = 1.0,
    base: float = 100_000.0,
    paired: str = "as trained",
    rounded: str = "nothing",
    start: int = 0,
    query: int = 60,
) -> RealHead:
    """Return one of eight heads of SmolLM2-135M-Instruct, over a sentence of Carroll's.

    Parameters
    ----------
    data
        What ``experiments.real.heads.load()`` returns.
    head
        One of ``HEADS`` of this module.
    first, out
        The first pair that is left out of the scores, 0 to 31, and how many are, 0 to 32.
    factor
        By what positions are divided, 1 to 4.
    base
        The base of the frequencies, 1,000 to 10,000,000; the model's is 100,000.
    paired
        How channels are paired: ``"as trained"`` or in ``"the other layout"``.
    rounded
        What is rounded to bfloat16: one of ``ROUNDED`` of this module.
    start
        The position of the first token, 0 to 8,000.
    query
        The number of the token that reads, 0 to 67.

    Returns
    -------
    RealHead
        The pairs that are left out are dragged, and what is left without each that was tried stays;
        the token that is pressed is the one that reads.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind, unknown or out of range; the message names it.
    """
    figure = RealHead(
        head=head,
        first=first,
        out=out,
        factor=factor,
        base=base,
        paired=paired,
        rounded=rounded,
        start=start,
        query=query,
    )
    figure.data = data
    return figure
