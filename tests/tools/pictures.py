"""Reading a figure's picture as a reader does: by the numbers that stand beside it.

``stage.mjs`` shows a figure on a page without a browser and writes down what is drawn. Here the
numbers of an axis are read from its ticks, and a point of the picture by them.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ropebook.figures.alone import slim
from tests.tools.node import FOLDER, Node

STAGE = Path(__file__).with_name("stage.mjs").as_uri()
POWER = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
Point = tuple[float, float]


def shown(node: Node, figure: Any, *, press: tuple = (), ms: float = 0, **page: Any) -> "Shown":
    """Show a figure; press its buttons, each for some milliseconds."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(figure).__mro__[1].__name__).lower()
    url = (FOLDER / f"{name}.js").as_uri()
    played = {"press": list(press), "pass": ms}
    return Shown(node.ask(STAGE, "draw", url, slim(figure.get_state()), page, played))


class Shown:
    """A figure on its page: its plots, its caption, its colours."""

    def __init__(self, answer: dict) -> None:
        self.plots = [Plot(plot) for plot in answer["plots"]]
        self.says: str = answer["says"]
        self.values: dict = answer["values"]
        self.colors: dict[str, str] = answer["colors"]


def number(text: str) -> float | None:
    """Read a tick: 1,200 and −0.5, 25% and 10⁻³, π and 2π, × 2 and 1/16; None if it is none."""
    plain = text.replace(",", "").replace("−", "-").replace("× ", "")
    if found := re.fullmatch(r"10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", plain):
        return 10.0 ** int(found[1].translate(POWER))
    if found := re.fullmatch(r"(\d?)π(?:/(\d+))?", plain):
        return int(found[1] or 1) * math.pi / int(found[2] or 1)
    if found := re.fullmatch(r"1/(\d+)", plain):
        return 1 / int(found[1])
    if found := re.fullmatch(r"(-?\d+(?:\.\d+)?)(%?)", plain):
        return float(found[1]) / (100 if found[2] else 1)
    return None


@dataclass
class Axis:
    """Ticks: pixels and the numbers beside them."""

    pixels: np.ndarray
    values: np.ndarray
    log: bool

    def __post_init__(self) -> None:
        assert len(self.values) > 1, "an axis has two ticks at least"
        scaled = np.log10(self.values) if self.log else self.values
        self.slope, self.start = np.polyfit(self.pixels, scaled, 1)
        # a tick stands on a whole pixel
        off = np.abs(self.start + self.slope * self.pixels - scaled) / abs(self.slope)
        assert off.max() < 1.01, f"the ticks {self.values} stand unevenly, {off.max():.2f} pixels"
        self.pixel = abs(self.slope)

    def read(self, pixel: Any) -> np.ndarray:
        """Return the value (its power of ten, if logarithmic) at a pixel."""
        return self.start + self.slope * np.asarray(pixel)

    def agrees(self, pixels: Any, wanted: Any, within: float = 1.5) -> None:
        """Fail unless every pixel is read as the value that is wanted, within some pixels."""
        exact = np.log10(wanted) if self.log else np.asarray(wanted)
        read = self.read(pixels)
        assert read.shape == exact.shape, (read.shape, exact.shape)
        off = np.abs(read - exact) / self.pixel
        worst = off.argmax()
        assert off.max() <= within, f"{off.max():.1f} pixels off at {worst}: {exact.flat[worst]}"


class Plot:
    """One canvas of a figure; places are (x, y) in CSS pixels, y downwards."""

    def __init__(self, plot: dict) -> None:
        self.label, self.width, self.height = plot["label"], plot["width"], plot["height"]
        self.drawn: list[dict] = plot["drawn"]

    def kind(self, *kinds: str, color: str | None = None, **wanted: Any) -> list[dict]:
        """Return what was drawn of some kinds, in a colour, with some properties."""
        return [
            one
            for one in self.drawn
            if one["kind"] in kinds
            and (color is None or one["color"] == color)
            and all(one.get(name) == value for name, value in wanted.items())
        ]

    def texts(
        self, pattern: str = "", inside: Callable = lambda x, y: True
    ) -> list[tuple[str, Point]]:
        """Return the texts that match, each with its place."""
        found = [(one["text"], tuple(one["at"])) for one in self.kind("text")]
        return [(text, at) for text, at in found if re.search(pattern, text) and inside(*at)]

    def _axis(self, along: int, align: str, inside: Callable, log: bool) -> Axis:
        ticks: dict[float, list[Point]] = {}
        for one in self.kind("text", align=align):
            value, place = number(one["text"]), one["at"]
            if value is not None and inside(*place):
                row = ticks.setdefault(round(place[1 - along], 2), [])
                row.append((place[along], value))
        pixels, values = np.array(max(ticks.values(), key=len)).T
        return Axis(pixels, values, log)

    def y_axis(self, inside: Callable = lambda x, y: True, *, log: bool = False) -> Axis:
        """Return the axis whose numbers stand right-aligned in a column; it grows upwards."""
        axis = self._axis(1, "right", inside, log)
        assert axis.slope < 0, "a larger number stands higher"
        return axis

    def x_axis(self, inside: Callable = lambda x, y: True, *, log: bool = False) -> Axis:
        """Return the axis whose numbers stand centred in a row; it grows to the right."""
        axis = self._axis(0, "center", inside, log)
        assert axis.slope > 0, "a larger number stands further right"
        return axis

    def curve(self, color: str, inside: Callable = lambda x, y: True, **wanted: Any) -> np.ndarray:
        """Return the longest line in a colour, as rows of (x, y)."""
        strokes = self.kind("stroke", color=color, **wanted)
        lines = [line for stroke in strokes for line in stroke["lines"] if inside(*line[0])]
        return np.array(max(lines, key=len))

    def arcs(self, color: str) -> list[dict]:
        """Return the circles that are drawn as lines, each with its center and its radius."""
        return [one["arc"] for one in self.kind("stroke", color=color) if "arc" in one]

    def discs(self, color: str | None = None, radius: float | None = None) -> np.ndarray:
        """Return the centres of filled discs as rows of (x, y), in the order of drawing."""
        arcs = [one["arc"] for one in self.kind("fill", color=color) if "arc" in one]
        return np.array([arc["center"] for arc in arcs if radius in (None, arc["radius"])])

    def rects(self, color: str, **wanted: Any) -> np.ndarray:
        """Return filled rectangles as rows of (x, y, width, height)."""
        return np.array([one["rect"] for one in self.kind("rect", color=color, **wanted)])

    def image(self, index: int = 0) -> tuple[np.ndarray, list[float]]:
        """Return a map's colours as rows x columns x (r, g, b) in 0..255, and its box."""
        one = self.kind("image")[index]
        pixels = np.array(one["pixels"], dtype=np.uint32).reshape(-1, one["columns"])
        return np.stack([(pixels >> shift) & 255 for shift in (0, 8, 16)], axis=-1), one["rect"]


def angles(points: np.ndarray, center: Point) -> np.ndarray:
    """Return the directions from a centre, counter-clockwise from the right."""
    dx, dy = (np.asarray(points) - center).T
    return np.arctan2(-dy, dx)
