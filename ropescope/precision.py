"""Number formats, the noise that they explain, and which stage of a rotation was rounded to one.

Every limit of the instrument comes from `Noise`: what rounding explains is no fault, and nothing
else is excused. What *is* rounded is found by synthesis: frequencies, positions, products, cos and
sin are simulated in each format, and the simulation that reproduces the measurement is the finding.
"""

from dataclasses import dataclass

import numpy as np

__all__ = [
    "DIGITS", "HALF", "ROUGH", "Noise", "rounded", "smallest_format", "stored_format", "synthesize",
]  # fmt: skip

DIGITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Significant binary digits: rounding to a format is off by 2**-digits of the number at most."""

HALF = ("bfloat16", "float16")
ROUGH = 0.02
"""Error of a length that cos and sin in low precision explain."""

STAGES = ("frequencies", "positions", "products", "all")


@dataclass(frozen=True)
class Noise:
    """The declared noise model: what rounding may do to a number and to an angle.

    Attributes
    ----------
    value
        Relative error of a number that comes out. Of 16 bits it was rounded twice at most (stored,
        and stored again after a factor: what lies between is computed wider), else eight times.
    angle
        Relative error of an angle: position times frequency, rounded at most four times in float32,
        as nearly every model computes it, whatever the format of x.
    turns
        Radians that frequencies may lack: whole turns per position leave no trace but rounding.
    start
        Positions that all angles may be ahead.
    """

    value: float
    angle: float = 2.0**-22
    turns: float = 0.0
    start: float = 0.0

    @classmethod
    def of(cls, name: str) -> "Noise":
        """Return the noise of numbers in a format."""
        return cls((2.0 if name in HALF else 8.0) * 2.0 ** -DIGITS[name])

    @property
    def lengths(self) -> float:
        """Limit of the ratio of two lengths, less 1: either may be off by ``value``."""
        return 2.0 * self.value

    def angles(self, positions: np.ndarray, waves: np.ndarray) -> np.ndarray:
        """Limit of the error of angles, (T, n), of positions (T, axes) and waves (n, axes)."""
        size = (np.abs(positions) + self.start) @ (np.abs(waves) + self.turns).T
        return 2.0 * self.value + self.angle * size


def rounded(x: np.ndarray, name: str) -> np.ndarray:
    """Return numbers as a format holds them; ``tf32`` has the digits of float16 in any range."""
    if name in ("bfloat16", "tf32"):
        digits, power = np.frexp(x)
        scale = 2.0 ** (8 if name == "bfloat16" else 11)
        return np.ldexp(np.round(digits * scale) / scale, power)
    with np.errstate(over="ignore"):
        return x.astype(name).astype(np.float64)


def smallest_format(x: np.ndarray) -> str:
    """Return the smallest format that holds every number exactly."""
    if not np.array_equal(single := x.astype(np.float32), x):
        return "float64"
    if not (single.view(np.uint32) & 0xFFFF).any():
        return "bfloat16"
    with np.errstate(over="ignore"):
        return "float16" if np.array_equal(single.astype(np.float16), single) else "float32"


def stored_format(x: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return for each column of x (..., columns) the smallest format before a factor came on top.

    Parameters
    ----------
    x
        Numbers ``factor * stored``, rounded once more.
    factors
        The factor of each column, known to a part of the format's spacing: it is refined by least
        squares on the numbers that it leads to, so many of them average its error.
    """
    outer, slack = smallest_format(x), 16.0
    found = np.full(x.shape[-1], outer, dtype=object)
    slack *= 2.0 ** -DIGITS[outer]
    for name in ("float32", "float16", "bfloat16"):  # the smallest one last
        left = np.arange(x.shape[-1]) if DIGITS[name] + 6 <= DIGITS[outer] else np.empty(0, int)
        for part in (x[:4], x):  # most fail at once
            flat = part.reshape(-1, x.shape[-1])[:, left]
            scale = np.where(factors[left] > 0, factors[left], 1.0)
            for _ in range(3):
                stored = rounded(flat / scale, name)
                norm = (stored * stored).sum(axis=0)
                scale = (flat * stored).sum(axis=0) / np.where(norm > 0, norm, 1.0)
                scale = np.where(scale > 0, scale, 1.0)
            near = np.abs(flat - scale * rounded(flat / scale, name)) <= slack * np.abs(flat)
            left = left[near.all(axis=0)]
        found[left] = name
    return found


def synthesize(
    angles: np.ndarray,
    positions: np.ndarray,
    waves: np.ndarray,
    noise: Noise,
    start: float = 0.0,
    divisor: float = 1.0,
) -> list[tuple[float, tuple[str, str]]]:
    """Return, for each stage and format, which part of the samples its rounding reproduces.

    Parameters
    ----------
    angles
        Measured against position 0, shape (T, n), up to whole turns.
    positions
        Shape (T, axes).
    waves
        Exact inverse frequencies, those of the formula where one is known, shape (n, axes).
    noise
        What the stages that are not rounded leave.
    start, divisor
        What is added to positions, and what they are divided by, before they are rounded.
    """
    limit = noise.angles(positions, waves)

    def product(at: np.ndarray, stage: str, name: str) -> np.ndarray:
        cast = lambda x, mine: rounded(x, name) if stage in (mine, "all") else x  # noqa: E731
        at = cast((at + start) / divisor, "positions") * divisor
        return cast(at @ cast(waves, "frequencies").T, "products")

    found = []
    for stage in STAGES:
        for name in (*HALF, "tf32") if stage == "frequencies" else HALF:
            with np.errstate(invalid="ignore"):
                made = product(positions, stage, name) - product(0 * positions[:1], stage, name)
                off = np.abs(wrapped(angles - made))
            found.append((float((off <= limit).all(axis=1).mean()), (stage, name)))
    return found


def wrapped(angles: np.ndarray) -> np.ndarray:
    """Return angles in [-pi, pi)."""
    return (angles + np.pi) % (2.0 * np.pi) - np.pi
