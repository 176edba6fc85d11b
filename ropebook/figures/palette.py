"""The colours of the book: the Python twin of the moving figures' palette.

``palette.js`` holds the tables once for both languages. Hue is the pair index (fast to slow)
everywhere; a phase has a cyclic map, a true angle a sequential one, a cosine its own.

========  ======================  ==================================
colormap  registered name         shows
========  ======================  ==================================
PAIR      ``rope.pair``           the pair index, fast to slow
PHASE     ``rope.phase``          one turn, 0 to 2 pi, cyclic
ANGLE     ``rope.angle``          a true angle, small to large
COSINE    ``rope.cosine``         a cosine, -1 to 1
========  ======================  ==================================
"""

import json
from importlib.resources import files

import matplotlib
from matplotlib.colors import LinearSegmentedColormap, to_hex

__all__ = ["ANGLE", "COSINE", "PAIR", "PHASE", "TABLES", "pair_color", "pair_colors"]


def _read_tables() -> dict[str, list[str]]:
    source = files(__package__).joinpath("palette.js").read_text(encoding="utf-8")
    return json.loads(source[source.index("{") : source.rindex("}") + 1])


TABLES: dict[str, list[str]] = _read_tables()
"""The colours of each table, at equal steps, as ``#rrggbb``."""


def _colormap(name: str) -> LinearSegmentedColormap:
    table = TABLES[name]
    colors = [*table, table[0]] if name == "phase" else table
    colormap = LinearSegmentedColormap.from_list(f"rope.{name}", colors, N=1024)
    matplotlib.colormaps.register(colormap, force=True)
    return colormap


PAIR = _colormap("pair")
PHASE = _colormap("phase")
ANGLE = _colormap("angle")
COSINE = _colormap("cosine")


def pair_color(i: int, pairs: int) -> str:
    """Return the colour of pair ``i`` of ``pairs``, fastest pair warm, slowest cool.

    Parameters
    ----------
    i
        Pair index, 0 <= i < pairs.
    pairs
        Number of pairs, dim/2.

    Returns
    -------
    str
        ``#rrggbb``.

    Raises
    ------
    ValueError
        If there is no pair ``i``.
    """
    if not 0 <= i < pairs:
        raise ValueError(f"i must be in 0 .. {pairs - 1} (pairs - 1), got {i}")
    return to_hex(PAIR(i / (pairs - 1) if pairs > 1 else 0.0))


def pair_colors(pairs: int) -> list[str]:
    """Return the colours of all pairs, for instance for matplotlib's ``set_prop_cycle``."""
    return [pair_color(i, pairs) for i in range(pairs)]
