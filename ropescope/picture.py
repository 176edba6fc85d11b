"""The card in HTML: the lines of the text, and the pairs as a ring of channels.

A curve joins the two channels of a pair in the pair's hue, rose for the fastest to violet for the
slowest, as everywhere in the book.
"""

import html
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .report import Report

__all__ = ["card", "pairs_ring"]

SIZE, RADIUS = 240.0, 100.0


COLORS = (
    "#d42e54", "#d32f60", "#d1306c", "#cf3278", "#cc3483", "#c9378e", "#c53a99", "#c13da3",
    "#bc40ad", "#b744b7", "#b147c0", "#ab4bc8", "#a54fd0", "#9e53d8", "#9657de", "#8e5be4",
    "#855fe9",
)  # fmt: skip
"""Of the pairs, fast to slow, as in the book's figures."""


def card(report: "Report") -> str:
    """Return the card as HTML: the ring, the lines, and the findings."""
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(value)}</td></tr>'
        for name, value in report.rows()
    )
    found = "".join(f"<li>{html.escape(str(finding))}</li>" for finding in report.findings)
    listed = f"<ul>{found}</ul>" if found else ""
    return (
        '<div class="rope-report" style="display:flex;flex-wrap:wrap;gap:1em;align-items:start">'
        f'{pairs_ring(report)}<div style="flex:1 1 16em"><table>{rows}</table>{listed}</div></div>'
    )


def pairs_ring(report: "Report") -> str:
    """Return the ring as SVG: channel 0 at the top, then clockwise, a curve for each pair."""
    n, middle = report.head_dim, SIZE / 2.0
    turn = 2.0 * math.pi * np.arange(n) / n
    x, y = middle + RADIUS * np.sin(turn), middle - RADIUS * np.cos(turn)
    dot = max(0.7, min(3.0, 1.2 * math.pi * RADIUS / n / 2.0))
    hues = _hues(report)
    of_channel = {c: hue for pair, hue in zip(report.pairs, hues, strict=True) for c in pair}
    chords = []
    for (a, b), hue in zip(report.pairs, hues, strict=True):  # neighbours bend inwards, to be seen
        bend = [middle + 0.6 * ((at[a] + at[b]) / 2.0 - middle) for at in (x, y)]
        path = f"M{x[a]:.1f} {y[a]:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {x[b]:.1f} {y[b]:.1f}"
        chords.append(f'<path d="{path}" stroke="{hue}"/>')
    dots = [
        f'<circle cx="{x[c]:.1f}" cy="{y[c]:.1f}" r="{dot:.1f}" '
        f'fill="{of_channel.get(c, "#808080")}"/>'
        for c in range(n)
    ]
    name = html.escape(report.layout or "no named layout", quote=True)
    label = f"{n} channels on a ring; {name}: {len(report.pairs)} pairs"
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {SIZE:.0f} {SIZE:.0f}" '
        f'width="{SIZE:.0f}" height="{SIZE:.0f}" fill="none" stroke-width="1.2">'
        f"<title>{label}</title>{''.join(chords)}"
        f'<g stroke="none">{"".join(dots)}</g>'
        f'<text x="{middle:.0f}" y="{middle - RADIUS - 8:.0f}" text-anchor="middle" '
        f'font-size="11" fill="currentColor">channel 0</text></svg>'
    )


def _hues(report: "Report") -> list[str]:
    """Return the colour of each pair by the rank of its frequency, mixed linearly in sRGB."""
    n, speed = len(report.pairs), -np.arange(len(report.pairs))
    if report.inv_freq.size:
        speed = np.abs(report.inv_freq.reshape(n, -1)).max(axis=1)
    places = np.argsort(np.argsort(-speed, kind="stable")) / max(n - 1, 1)
    table = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in COLORS], float)
    stops = np.linspace(0.0, 1.0, len(table))
    mixed = np.array([np.interp(places, stops, channel) for channel in table.T]).T
    return ["#" + "".join(f"{round(v):02x}" for v in colour) for colour in mixed.tolist()]
