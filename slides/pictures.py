"""Draw the slides: one function per picture."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle, Wedge

from rope_minimal import (
    inverse_frequencies,
    mrope_positions,
    rescaled_frequencies,
    rope_table,
    rotate_complex,
    rotation_matrix,
    wave_vectors,
)
from ropebook.aliasing import mean_cosine, unseen_pairs, wrapped_angle
from ropebook.figures import palette

THETA = inverse_frequencies(128)
"""Radians per token of the 64 pairs that most pictures show."""
TRAINED, LENGTH = 4096, 65_536
BOLD = {"size": 28, "weight": "bold"}


class Ink(NamedTuple):
    """The colours of a picture, those of the moving figures."""

    text: str
    faint: str
    query: str
    key: str
    good: str
    wrong: str
    one: str
    other: str


INKS = {
    "light": Ink(
        "#1d2630", "#a9b4be", "#bd5608", "#1467a3", "#15764a", "#b3261e", "#8a4fc4", "#52606d"
    ),
    "dark": Ink(
        "#eef2f5", "#5d6b78", "#f3a866", "#6cb6f0", "#62d49a", "#ff8f87", "#c7a3f2", "#a3afba"
    ),
}


def style(ink: Ink) -> dict[str, object]:
    """Return Matplotlib's settings for a projector: 16:9 and large type."""
    named = ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.labelcolor")
    return {
        **dict.fromkeys((*named, "ytick.labelcolor"), ink.text),
        **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), ink.faint),
        **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), 24),
        **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 21),
        "figure.figsize": (40 / 3, 7.5),
        "figure.titlesize": 32,
        "figure.constrained_layout.h_pad": 0.15,
        "figure.constrained_layout.w_pad": 0.15,
        "axes.facecolor": "none",
        "axes.grid": False,
        "axes.labelpad": 10,
        "axes.linewidth": 1.5,
        "lines.linewidth": 4,
        "lines.markersize": 14,
        "mathtext.fontset": "dejavusans",
        "savefig.bbox": None,
        "svg.fonttype": "path",
        **dict.fromkeys(("xtick.major.width", "ytick.major.width"), 1.5),
        **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 6),
    }


def rotor(fig: Figure, ink: Ink) -> None:
    """Draw two words that move together."""
    step = np.radians(15)
    for ax, (m, n) in zip(fig.subplots(1, 2), ((5, 1), (9, 5)), strict=True):
        tips = rotate_complex(np.array([[1.0, 0], [1, 0]]), np.array([m, n]), inv_freq=[step])
        ax.add_patch(Circle((0, 0), 1, fill=False, color=ink.faint, lw=2))
        between = Wedge((0, 0), 0.45, 15 * n, 15 * m, color=ink.good, alpha=0.45, lw=0)
        ax.add_patch(between)
        for tip, name, color in zip(tips, "qk", (ink.query, ink.key), strict=True):
            arrow = {"arrowstyle": "-|>,head_width=0.6,head_length=1", "color": color, "lw": 6}
            ax.annotate("", tip, (0, 0), arrowprops=arrow | {"shrinkA": 0, "shrinkB": 0})
            ax.text(
                *(1.18 * tip), name, color=color, size=34, weight="bold", ha="center", va="center"
            )
        across = np.radians(15 * (m + n) / 2)
        ax.text(
            0.68 * np.cos(across),
            0.68 * np.sin(across),
            f"{15 * (m - n)}°",
            size=30,
            ha="center",
            va="center",
        )
        ax.set(xlim=(-1.5, 1.5), ylim=(-1.75, 1.3), aspect="equal")
        ax.set_axis_off()
        ax.text(0, -1.28, f"query at word {m}, key at word {n}", size=26, ha="center")
        said = f"score {tips[0] @ tips[1]:.2f}"
        ax.text(0, -1.58, said, color=ink.good, ha="center", **BOLD)


def hands(fig: Figure, ink: Ink) -> None:
    """Draw eight of 64 pairs as hands at the near repeat of the fastest."""
    distance = 710
    for ax, i in zip(fig.subplots(2, 4).flat, range(0, 64, 9), strict=True):
        tip = np.array([np.cos(distance * THETA[i]), np.sin(distance * THETA[i])])
        color = palette.pair_color(i, 64)
        ax.add_patch(Circle((0, 0), 1, fill=False, color=ink.faint, lw=2))
        ax.plot([0, 1], [0, 0], color=ink.faint, lw=4, dashes=(1, 1))
        ax.plot(*np.transpose([(0, 0), tip]), color=color, lw=8)
        ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal")
        ax.set_axis_off()
        ax.set_title(f"pair {i}", color=ink.text, loc="center", weight="normal")


def score(fig: Figure, ink: Ink) -> None:
    """Draw the score of one pair, and of all pairs, over the distance."""
    ax = fig.subplots()
    hue, whole, between = palette.pair_color(0, 64), np.arange(51), np.linspace(0, 50, 1001)
    ax.plot(between, np.cos(between * THETA[0]), color=hue, lw=2, alpha=0.6)
    ax.plot(whole, mean_cosine(whole, THETA[:1]), "o", color=hue, ms=10)
    ax.plot(whole, mean_cosine(whole, THETA), color=ink.text, lw=7)
    ax.plot([44], mean_cosine([44], THETA[:1]), "o", color=ink.wrong, ms=24, gid="one-hand-at-44")
    ax.text(44, 1.13, "44", color=ink.wrong, size=30, weight="bold", ha="center")
    ax.text(51, mean_cosine(50, THETA), "64 hands", **BOLD, va="center")
    ax.text(51, np.cos(50), "one hand", **BOLD, va="center", color=hue)
    ax.axhline(0, color=ink.faint, lw=1.5, zorder=0)
    ax.set(xlabel="distance in tokens", ylabel="score of equal vectors")
    ax.set(xlim=(0, 50), ylim=(-1.1, 1.3), xticks=range(0, 51, 10), yticks=(-1, 0, 1))


def layouts(fig: Figure, ink: Ink) -> None:
    """Draw the two matrices of one rotation."""
    for ax, interleaved in zip(fig.subplots(1, 2), (True, False), strict=True):
        matrix = rotation_matrix(20, 8, interleaved=interleaved)
        for row, column in np.argwhere(np.abs(matrix) > 1e-12):
            pair = row // 2 if interleaved else row % 4
            ax.add_patch(Rectangle((column, row), 1, 1, color=palette.pair_color(pair, 4), lw=0))
            word = {0: "cos", 1: "−sin", -1: "sin"}[np.sign(column - row)]
            ax.text(column + 0.5, row + 0.5, word, size=17, color="white", ha="center", va="center")
        ax.set(xlim=(0, 8), ylim=(8, 0), aspect="equal")
        ax.set_xticks(np.arange(8) + 0.5, range(8))
        ax.set_yticks(np.arange(8) + 0.5, range(8))
        ax.spines[:].set(visible=True)
        ax.tick_params(length=0)
        name, example = ("interleaved", "0 with 1") if interleaved else ("half-split", "0 with 4")
        ax.set_title(f"{name}: {example}", loc="center")


def horizon(fig: Figure, ink: Ink) -> None:
    """Draw where the angle of the fastest pair wraps, and where its cosine has its minimum."""
    distance = np.arange(13)
    left, right = fig.subplots(1, 2)
    for ax, values, back in (
        (left, wrapped_angle(distance * THETA[0]), 7),
        (right, np.cos(distance * THETA[0]), 4),
    ):
        ax.vlines(distance, min(0, values.min()), values, color=ink.faint, lw=2)
        ax.plot(distance, values, "o", color=palette.pair_color(0, 64))
        ax.plot(distance[back], values[back], "o", color=ink.wrong, ms=24)
        ax.set(xticks=range(0, 13, 2), xlabel="distance in tokens")
    left.set_yticks([0, np.pi, 2 * np.pi], ["0", "π", "2π"])
    left.set_title("the angle, without whole turns", weight="normal")
    right.set_yticks([-1, 0, 1])
    right.set_title("its cosine", weight="normal")
    for ax, back, words in ((left, 7, "falls back at 7"), (right, 4, "turns at 4")):
        ax.text(back + 0.6, ax.get_ylim()[0] * 0.5, words, color=ink.wrong, weight="bold")


def rescalings(fig: Figure, ink: Ink) -> None:
    """Draw the multipliers of three rescalings."""
    ax = fig.subplots()
    pair, factor = np.arange(64), LENGTH // TRAINED
    stretch = {"factor": factor, "original_max_position_embeddings": TRAINED}
    new = unseen_pairs(THETA, LENGTH, THETA, TRAINED)
    ax.fill_between(pair, 1 / factor, 1.1, where=new, color=ink.wrong, alpha=0.18, lw=0)
    ax.text(54.5, 0.86, "angles never\nseen in training", color=ink.wrong, ha="center", va="center")
    drawn = (
        ("linear", {"factor": factor}, ink.one, "PI", (4, 0.11)),
        ("ntk", {"factor": factor}, ink.other, "NTK", (6, 0.53)),
        ("by_parts", stretch, ink.good, "by parts", (25, 0.93)),
    )
    for kind, own, color, name, at in drawn:
        bank, _ = rescaled_frequencies(kind, 128, **own)
        ax.plot(pair, bank / THETA, color=color, lw=6, gid=kind)
        ax.text(*at, name, color=color, **BOLD)
    ax.set(xlabel="pair, fast to slow", ylabel="part of its speed", xlim=(0, 63), ylim=(0, 1.1))
    ax.set_yticks([0, 1 / factor, 0.5, 1], ["", "1/16", "1/2", "1"])
    ax.set_xticks([0, 16, 32, 46, 63])


def rounding(fig: Figure, ink: Ink) -> None:
    """Draw how far angles are off that are made from positions in bfloat16."""
    ax = fig.subplots()
    position = torch.arange(2**17)
    off = (position.bfloat16().double() - position).abs().cummax(0).values.numpy()
    seen = np.r_[np.flatnonzero(np.diff(off, prepend=0)), 2**17 - 1]
    for i in (0, 16, 32):
        hue, error = palette.pair_color(i, 64), off[seen] * THETA[i]
        ax.step(seen, error, where="post", color=hue, lw=6)
        ax.text(2**17 * 1.15, error[-1], f"pair {i}", color=hue, va="center", **BOLD)
    ax.axhline(np.pi, color=ink.wrong, lw=3)
    ax.text(70, np.pi * 1.25, "half a turn", color=ink.wrong, **BOLD)
    ax.set(xscale="log", yscale="log", xlim=(64, 2**17), ylim=(5e-3, 500), xlabel="position")
    ax.set_ylabel("largest error, radians")
    ax.set_xticks([256, 4096, 65_536], ["256", "4,096", "65,536"])
    ax.set_yticks([0.01, 1, 100], ["0.01", "1", "100"])
    ax.minorticks_off()


def table(fig: Figure, ink: Ink) -> None:
    """Draw the cosines and the sines that a model keeps."""
    axes = fig.subplots(1, 2, sharey=True)
    values = rope_table(range(256), 128, dtype=torch.float64)
    for ax, part, name in zip(axes, values, ("cosine", "sine"), strict=True):
        image = ax.imshow(part.numpy().T, cmap=palette.COSINE, vmin=-1, vmax=1, aspect="auto")
        ax.set(xlabel="position", xticks=(0, 100, 200), yticks=(0, 21, 42, 63))
        ax.set_title(name, loc="center", weight="normal")
    axes[0].set_ylabel("pair, fast to slow")
    fig.colorbar(image, ax=axes, ticks=[-1, 0, 1], pad=0.02)


def mrope(fig: Figure, ink: Ink) -> None:
    """Draw where the tokens of the book's text with an image in it stand."""
    ax = fig.subplots()
    before, image, after = 2, (1, 8, 12), 3  # 4 by 6 tokens
    places = mrope_positions([before, image, after])
    grid, word = range(before, before + 24), len(places) - 2
    for token, (_, row, column) in enumerate(places):
        color = ink.good if token == word else ink.one if token in grid else ink.other
        at = (column - 0.46, row - 0.46)
        ax.add_patch(Rectangle(at, 0.92, 0.92, color=color, lw=0, gid=f"token-{token}"))
        written = "#171d23" if ink is INKS["dark"] else "white"
        ax.text(column, row, token, color=written, size=19, weight="bold", ha="center", va="center")
    ax.set(xlim=(-0.6, 10.6), ylim=(10.6, -0.6), aspect="equal")
    ax.set(xticks=range(11), yticks=range(11), xlabel="column position", ylabel="row position")
    ax.text(11.2, 0, "words", color=ink.other, **BOLD, va="center")
    ax.text(11.2, 3.5, "an image of\n4 × 6 tokens", color=ink.one, **BOLD, va="center")
    ax.text(11.2, 9, "the next word", color=ink.good, **BOLD, va="center")


def axial(fig: Figure, ink: Ink) -> None:
    """Draw how alike two patches are, by their offset, under two plans."""
    offset = np.arange(-12, 13)
    grid = np.stack(np.meshgrid(offset, offset, indexing="ij"), axis=-1)
    plan = wave_vectors("axial", 64, base=10.0)
    mixed = plan.copy()
    mixed[:, 1::2] = rotation_matrix(1, 2, inv_freq=[np.pi / 4]) @ plan[:, 1::2]  # every other pair
    axes = fig.subplots(1, 2, sharey=True)
    for ax, name, vectors in zip(axes, ("axial", "mixed"), (plan, mixed), strict=True):
        ends = (-12.5, 12.5, 12.5, -12.5)
        alike = mean_cosine(grid, vectors)
        image = ax.imshow(alike, cmap=palette.COSINE, vmin=-0.4, vmax=0.8, extent=ends)
        ax.set(xlabel="columns apart", xticks=(-10, 0, 10), yticks=(-10, 0, 10))
        ax.set_title(name, loc="center", weight="normal")
    axes[0].set_ylabel("rows apart")
    fig.colorbar(
        image, ax=axes, ticks=[0, 0.8], pad=0.02, extend="max", label="mean cosine", format="%g"
    )


class Picture(NamedTuple):
    """A picture and the sentence over it."""

    says: str
    paint: Callable[[Figure, Ink], None]


PICTURES = {
    "rotor": Picture("Move both words: the angle stays", rotor),
    "hands": Picture("After 710 tokens one hand is back, not the clock", hands),
    "score": Picture("One hand comes back, 64 hands do not", score),
    "layouts": Picture("One rotation, two orders of the channels", layouts),
    "horizon": Picture("The angle falls back at 7, the cosine turns at 4", horizon),
    "rescalings": Picture("From 4,096 tokens to 65,536: who slows down?", rescalings),
    "rounding": Picture("bfloat16 counts to 256, then angles go wrong", rounding),
    "table": Picture("A cosine and a sine for every position and pair", table),
    "mrope": Picture("After an image, token 27 stands at position 9", mrope),
    "axial": Picture("Axial: a row part plus a column part", axial),
}
"""The pictures by the names of their files."""


def figure(name: str, theme: str) -> Figure:
    """Return a picture in the ink for ``light`` or for ``dark`` slides."""
    picture, ink = PICTURES[name], INKS[theme]
    with plt.style.context(["ropebook.book", style(ink)]):
        fig = plt.figure()
        fig.get_layout_engine().set(rect=(0.01, 0.03, 0.98, 0.97))
        fig.suptitle(picture.says, x=0.03, ha="left")
        picture.paint(fig, ink)
        plt.close(fig)
    return fig


def write(name: str, theme: str, path: Path) -> None:
    """Write a picture as SVG: transparent, letters as curves, alike whenever it is made."""
    with plt.style.context(["ropebook.book", style(INKS[theme])]):
        metadata = {"Title": PICTURES[name].says, "Creator": None, "Date": None}
        figure(name, theme).savefig(path, format="svg", transparent=True, metadata=metadata)
