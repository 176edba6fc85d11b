"""More than one axis: the wave vectors of published plans, and the places of a text with images.

A patch has a row and a column, a frame has a time as well. A pair of channels then has a *wave
vector*, one number of radians per position for each axis, and turns by its dot product with the
position. With one axis it is the inverse frequency. `rope_table` and the distances of
`ropebook.aliasing` take a matrix ``K`` of wave vectors, one column for each pair and one row
for each axis, wherever they take inverse frequencies.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .checks import (
    check_count,
    check_dim,
    check_flag,
    check_frequencies,
    check_parameter_names,
    check_positive,
)
from .frequencies import inverse_frequencies

__all__ = ["mrope_positions", "wave_vectors"]


def wave_vectors(kind: str, dim: int, base: float | None = None, **parameters: Any) -> np.ndarray:
    """Return the wave vectors of a published plan.

    Parameters
    ----------
    kind
        One of the names in the table below.
    dim
        Rotated width of one head, a positive even integer; for all plans but ``mrope``, a multiple
        of twice the number of axes.
    base
        The base of the geometric series, finite and > 0. By default that of the plan.
    **parameters
        What the plan needs, by Hugging Face's names (required ones in **bold**).

        ======== ======= ============== =========================================================
        kind     base    axes           wave vectors and parameters
        ======== ======= ============== =========================================================
        axial    10,000  row, column    The first ``dim/4`` pairs listen to the row, the others to
                                        the column, both at the speeds of a head of half the
                                        width. axes=2: with 3, thirds (time, row, column)
        pixtral  10,000  row, column    As axial, but at the even and at the odd speeds of one
                                        head of the whole width
        kimi     10,000  row, column    The speeds of axial by turns, column first
        dinov3   100     row, column    As axial, measured in sizes of the image
        mixed    10      row, column    As axial, both axes turned by one angle, which seed=0
                                        draws; training then moves each vector by itself
        mrope    1e6     time, row,     Every pair of one head listens to one axis: in chunks of
                         column         **mrope_section** (three numbers of pairs), or, with
                                        mrope_interleaved=True, dealt out by turns
        ======== ======= ============== =========================================================

    Returns
    -------
    ndarray of shape (A, dim/2), float64
        Radians per position, one row for each axis, in the order of the positions' last axis.
        ``dinov3``: radians per height and per width of the image, for ``(row + 1/2) / rows - 1/2``.

    Raises
    ------
    ValueError
        If the kind is unknown or a value is out of its range.
    TypeError
        If a parameter is missing, unknown for this kind, or of a wrong type.

    Notes
    -----
    Which channels a pair occupies is another matter, and the argument ``interleaved`` of
    `apply_rope`. Neighbours: EVA-02 and SAM 2 and 3 (axial), RoPE-ViT (mixed). Halves: the vision
    towers of Qwen2-VL and its relatives (axial), Pixtral, Kimi K2.5, DINOv3, M-RoPE, and MiniMax M3
    (axial with axes=3, on 78 channels of 80). Gemma 4 (axial, base 100) splits each half of the
    head into halves of its own, and each axis turns one. SAM and Gemma 4 count the column first:
    there the two axes are column and row.

    Heo et al. 2024 (mixed); Agrawal et al. 2024 (Pixtral); Siméoni et al. 2025 (DINOv3); Wang et
    al. 2024 (Qwen2-VL, M-RoPE); Bai et al. 2025 (Qwen3-VL, dealt out).
    """
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(sorted(_KINDS))}; got {kind!r}")
    dim, rule = check_dim(dim), _KINDS[kind]
    check_parameter_names(kind, rule, parameters)
    if base is not None:
        check_positive("base", base)
        parameters["base"] = float(base)
    return rule(dim, **parameters)


def _axial(dim: int, base: float = 10000.0, *, axes: int = 2) -> np.ndarray:
    """EVA-02, and the vision towers of Qwen2-VL, SAM 2 and 3, Gemma 4 and MiniMax M3."""
    axes = check_count("axes", axes)
    _check_multiple(dim, 2 * axes)
    return np.kron(np.eye(axes), inverse_frequencies(dim // axes, base))


def _pixtral(dim: int, base: float = 10000.0) -> np.ndarray:
    """Pixtral: rows take the first speed of every two, columns the second."""
    _check_multiple(dim, 4)
    row, column = inverse_frequencies(dim, base).reshape(-1, 2).T
    still = np.zeros_like(row)
    return np.block([[row, still], [still, column]])


def _kimi(dim: int, base: float = 10000.0) -> np.ndarray:
    """Kimi K2.5: column and row by turns, the column first."""
    _check_multiple(dim, 4)
    return np.kron(inverse_frequencies(dim // 2, base), [[0.0, 1.0], [1.0, 0.0]])


def _dinov3(dim: int, base: float = 100.0) -> np.ndarray:
    """DINOv3: the fastest pair makes two turns from one edge of the image to the other."""
    with np.errstate(over="ignore"):
        vectors = 4.0 * math.pi * _axial(dim, base)
    if not np.isfinite(vectors).all():
        raise ValueError(f"base must give finite wave vectors, got {base}")
    return vectors


def _mixed(dim: int, base: float = 10.0, *, seed: int = 0) -> np.ndarray:
    """RoPE-ViT before its training: one random direction for a head, and the one square to it."""
    _check_multiple(dim, 4)
    angle = np.random.default_rng(check_count("seed", seed, least=0)).uniform(0.0, 2.0 * math.pi)
    row, column = math.sin(angle), math.cos(angle)
    return np.kron([[row, column], [column, -row]], inverse_frequencies(dim // 2, base))


def _mrope(
    dim: int, base: float = 1e6, *, mrope_section: Sequence[int], mrope_interleaved: bool = False
) -> np.ndarray:
    """M-RoPE: chunks as in Qwen2-VL and Qwen2.5-VL, or dealt out as in Qwen3-VL and Qwen3.5."""
    section = _three("mrope_section", mrope_section, least=0)
    check_flag("mrope_interleaved", mrope_interleaved)
    if sum(section) != dim // 2:
        raise ValueError(f"mrope_section must add up to dim/2 = {dim // 2}, got {section}")
    axis = np.repeat(range(3), section)
    if mrope_interleaved:
        axis = np.zeros(dim // 2, dtype=int)  # what is not dealt to the others is time's
        for other in (1, 2):
            axis[other : 3 * section[other] : 3] = other
        if (dealt := np.bincount(axis, minlength=3).tolist()) != section:
            raise ValueError(f"mrope_section dealt out by turns gives {dealt}, got {section}")
    return np.eye(3)[:, axis] * inverse_frequencies(dim, base)


_KINDS: dict[str, Callable[..., np.ndarray]] = {
    "axial": _axial,
    "pixtral": _pixtral,
    "kimi": _kimi,
    "dinov3": _dinov3,
    "mixed": _mixed,
    "mrope": _mrope,
}


def mrope_positions(
    parts: Sequence[int | Sequence[int]],
    *,
    spatial_merge_size: int = 2,
    time_interval: float | Sequence[float] = 1.0,
) -> np.ndarray:
    """Return the three positions of every token of a text with images and videos in it.

    Parameters
    ----------
    parts
        In the order of the text, a number of text tokens, or the grid ``(t, h, w)`` of an image
        (t = 1) or a video, in patches. A grid makes ``t (h/s) (w/s)`` tokens.
    spatial_merge_size
        The patches on each side that one token stands for, ``s``.
    time_interval
        Positions from one step of a video to the next: 1 in Qwen2-VL, ``tokens_per_second *
        second_per_grid_ts`` in Qwen2.5-VL. One number, or one for each grid.

    Returns
    -------
    ndarray of shape (T, 3), int64
        Time, row and column. Text has three equal positions. A grid begins at the next position on
        all axes, and the text after it goes on ``max(h, w)/s`` positions later.

    Notes
    -----
    `get_rope_index` of Hugging Face's Qwen2-VL and Qwen2.5-VL. Qwen3-VL writes the time of each
    step of a video as text: give every step as a grid of its own, with t = 1. A product of a step
    and ``time_interval`` is rounded to float32 and cut, as it is there. The text after a video does
    not wait for its last step: where a video has more steps than rows and columns, positions come
    twice. Wang et al. 2024 (Qwen2-VL), section 2.1, has the text go on after the largest position.
    """
    if isinstance(parts, (str, bytes)) or not isinstance(parts, Sequence):
        raise TypeError(f"parts must be a list of numbers and grids, got {parts!r}")
    if not parts:
        raise ValueError("parts must hold at least one part, got none")
    side = check_count("spatial_merge_size", spatial_merge_size)
    grids = sum(not isinstance(part, (int, np.integer)) for part in parts)
    steps = check_frequencies("time_interval", time_interval)
    if steps.shape not in ((), (grids,)):
        raise ValueError(
            f"time_interval must be one number, or one for each of {grids} grids, got {steps.shape}"
        )
    intervals = iter(np.broadcast_to(steps, grids).tolist())
    start = 0
    found: list[np.ndarray] = []
    for part in parts:
        if isinstance(part, (int, np.integer)):
            length = check_count("parts", part)
            found.append(np.repeat(start + np.arange(length)[:, None], 3, axis=1))
        else:
            t, h, w = _three("parts", part, least=1)
            if h % side or w % side:
                raise ValueError(f"parts must have h and w divisible by {side}, got {part}")
            interval = next(intervals)
            if not start + t * interval < 2**62:
                raise ValueError(f"time_interval must give times < 2**62, got {interval}")
            place = np.indices((t, h // side, w // side)).reshape(3, -1)
            place[0] = place[0].astype(np.float32) * np.float32(interval)
            found.append(start + place.T)
            length = max(h, w) // side
        start += length
    return np.concatenate(found)


def _three(name: str, value: Any, least: int) -> list[int]:
    """Return three whole numbers, one for each axis."""
    array = isinstance(value, np.ndarray) and value.ndim
    if isinstance(value, (str, bytes)) or not (isinstance(value, Sequence) or array):
        raise TypeError(f"{name} must hold three integers, got {value!r}")
    if len(value) != 3:
        raise ValueError(f"{name} must hold three integers, got {len(value)}: {value!r}")
    return [check_count(name, number, least) for number in value]


def _check_multiple(dim: int, of: int) -> None:
    """Raise unless the axes get equal numbers of pairs."""
    if dim % of:
        raise ValueError(f"dim must be a multiple of {of} for these axes, got {dim}")
