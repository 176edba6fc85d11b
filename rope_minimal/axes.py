"""Positions with several axes: the wave vectors of published schemes, and M-RoPE's positions.

An image patch has a row and a column, a video frame has a time as well. A pair of channels then has
a *wave vector*, in radians per position along each axis, and its angle is the dot product of wave
vector and position. With one axis it is the inverse frequency. `rope_table` takes a matrix of wave
vectors, one row for each axis and one column for each pair, in place of inverse frequencies.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .checks import check_count, check_dim, check_flag, check_frequencies, check_positive
from .frequencies import inverse_frequencies

__all__ = ["mrope_positions", "wave_vectors"]


def wave_vectors(kind: str, dim: int, base: float | None = None, **parameters: Any) -> np.ndarray:
    """Return the wave vectors of a published scheme.

    Parameters
    ----------
    kind
        One of the names in the table below.
    dim
        Rotated width of one head, a positive even integer; except for ``mrope``, a multiple of
        twice the number of axes.
    base
        The base of the geometric series, finite and > 0; by default that of the scheme.
    **parameters
        Parameters of the scheme, with Hugging Face's names (required ones in **bold**).

        ======== ======= ============== =========================================================
        kind     base    axes           wave vectors and parameters
        ======== ======= ============== =========================================================
        axial    10,000  row, column    The first ``dim/4`` pairs encode the row, the others the
                                        column, both with the frequencies of a head of half the
                                        width. axes=2: with 3, thirds (time, row, column)
        pixtral  10,000  row, column    As axial, with the even and the odd frequencies of one
                                        head of the whole width
        kimi     10,000  row, column    As axial, the two axes alternating, column first
        dinov3   100     row, column    As axial, in units of the image's height and width
        mixed    10      row, column    As axial, both axes rotated by one angle, drawn from
                                        seed=0; training then moves each vector by itself
        mrope    1e6     time, row,     Every pair of one head encodes one axis: contiguous
                         column         sections **mrope_section** (three numbers of pairs), or,
                                        with mrope_interleaved=True, alternating axes
        ======== ======= ============== =========================================================

    Returns
    -------
    ndarray of shape (A, dim/2), float64
        Radians per position, one row for each axis, in the order of the positions' last axis.
        ``dinov3``: radians per height and per width of the image, for ``(row + 1/2) / rows - 1/2``.

    Notes
    -----
    Which channels form a pair is the argument ``interleaved`` of `apply_rope`. Interleaved: EVA-02
    and SAM 2 and 3 (axial), RoPE-ViT (mixed). Half-split: the vision towers of Qwen2-VL and its
    relatives (axial), Pixtral, Kimi K2.5, DINOv3, M-RoPE, and MiniMax M3 (axial with axes=3, on 78
    channels of 80). Gemma 4 (axial, base 100) splits each half of the head into halves of its own,
    one for each axis. In SAM and Gemma 4 the first axis is the column.

    Heo et al. 2024 (mixed); Agrawal et al. 2024 (Pixtral); Siméoni et al. 2025 (DINOv3); Wang et
    al. 2024 (Qwen2-VL, M-RoPE); Bai et al. 2025 (Qwen3-VL, interleaved sections).
    """
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(sorted(_KINDS))}; got {kind!r}")
    dim, rule = check_dim(dim), _KINDS[kind]
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
    """Pixtral: even frequencies for rows, odd ones for columns."""
    _check_multiple(dim, 4)
    row, column = inverse_frequencies(dim, base).reshape(-1, 2).T
    zero = np.zeros_like(row)
    return np.block([[row, zero], [zero, column]])


def _kimi(dim: int, base: float = 10000.0) -> np.ndarray:
    """Kimi K2.5: column and row alternate, column first."""
    _check_multiple(dim, 4)
    return np.kron(inverse_frequencies(dim // 2, base), [[0.0, 1.0], [1.0, 0.0]])


def _dinov3(dim: int, base: float = 100.0) -> np.ndarray:
    """DINOv3: pair 0 rotates twice from one edge of the image to the other."""
    return 4.0 * math.pi * _axial(dim, base)


def _mixed(dim: int, base: float = 10.0, *, seed: int = 0) -> np.ndarray:
    """RoPE-ViT as initialized: one random direction per head, and the one orthogonal to it."""
    _check_multiple(dim, 4)
    angle = np.random.default_rng(check_count("seed", seed, least=0)).uniform(0.0, 2.0 * math.pi)
    row, column = math.sin(angle), math.cos(angle)
    return np.kron([[row, column], [column, -row]], inverse_frequencies(dim // 2, base))


def _mrope(
    dim: int, base: float = 1e6, *, mrope_section: Sequence[int], mrope_interleaved: bool = False
) -> np.ndarray:
    """M-RoPE: contiguous sections (Qwen2-VL, Qwen2.5-VL) or interleaved (Qwen3-VL, Qwen3.5)."""
    section = _three("mrope_section", mrope_section, least=0)
    check_flag("mrope_interleaved", mrope_interleaved)
    if sum(section) != dim // 2:
        raise ValueError(f"mrope_section must add up to dim/2 = {dim // 2}, got {section}")
    axis = np.repeat(range(3), section)
    if mrope_interleaved:
        axis = np.zeros(dim // 2, dtype=int)  # the remaining pairs encode time
        for other in (1, 2):
            axis[other : 3 * section[other] : 3] = other
        if (counts := np.bincount(axis, minlength=3).tolist()) != section:
            raise ValueError(f"mrope_section interleaved gives {counts}, got {section}")
    return np.eye(3)[:, axis] * inverse_frequencies(dim, base)


_KINDS: dict[str, Callable[..., np.ndarray]] = {
    rule.__name__[1:]: rule for rule in (_axial, _pixtral, _kimi, _dinov3, _mixed, _mrope)
}


def mrope_positions(
    parts: Sequence[int | Sequence[int]],
    *,
    spatial_merge_size: int = 2,
    time_interval: float | Sequence[float] = 1.0,
) -> np.ndarray:
    """Return M-RoPE's three positions of every token of a text with images and videos.

    Parameters
    ----------
    parts
        In the order of the text: a number of text tokens, or the grid ``(t, h, w)`` of an image
        (t = 1) or a video, in patches. A grid has ``t (h/s) (w/s)`` tokens.
    spatial_merge_size
        Patches along each side of one token, ``s``.
    time_interval
        Positions from one frame of a video to the next: 1 in Qwen2-VL, ``tokens_per_second *
        second_per_grid_ts`` in Qwen2.5-VL. One number, or one for each grid.

    Returns
    -------
    ndarray of shape (T, 3), int64
        Time, row and column. Text has three equal positions. A grid begins at the next position on
        all axes, and the text after it continues ``max(h, w)/s`` positions later.

    Notes
    -----
    As `get_rope_index` of Hugging Face's Qwen2-VL and Qwen2.5-VL. Qwen3-VL writes the time of each
    frame as text: pass every frame as a grid of its own, with t = 1. The product of a frame and
    ``time_interval`` is rounded to float32 and truncated, as there. A video with more frames than
    rows and columns shares positions with the text after it; Wang et al. 2024 (Qwen2-VL), section
    2.1, continue the text after the largest position instead.
    """
    side = check_count("spatial_merge_size", spatial_merge_size)
    grids = sum(not isinstance(part, (int, np.integer)) for part in parts)
    given = check_frequencies("time_interval", time_interval)
    if given.shape not in ((), (grids,)):
        raise ValueError(
            f"time_interval must be one number, or one for each of {grids} grids, got {given.shape}"
        )
    intervals = iter(np.broadcast_to(given, grids).tolist())
    start = 0
    positions: list[np.ndarray] = []
    for part in parts:
        if isinstance(part, (int, np.integer)):
            length = check_count("parts", part)
            positions.append(np.repeat(start + np.arange(length)[:, None], 3, axis=1))
        else:
            t, h, w = _three("parts", part, least=1)
            if h % side or w % side:
                raise ValueError(f"parts must have h and w divisible by {side}, got {part}")
            interval = next(intervals)
            grid = np.indices((t, h // side, w // side)).reshape(3, -1)
            grid[0] = grid[0].astype(np.float32) * np.float32(interval)
            positions.append(start + grid.T)
            length = max(h, w) // side
        start += length
    return np.concatenate(positions)


def _three(name: str, value: Any, least: int) -> list[int]:
    """Return three integers, one for each axis."""
    if not isinstance(value, (Sequence, np.ndarray)) or len(value) != 3:
        raise ValueError(f"{name} must hold three integers, got {value!r}")
    return [check_count(name, number, least) for number in value]


def _check_multiple(dim: int, of: int) -> None:
    """Raise unless the axes get equal numbers of pairs."""
    if dim % of:
        raise ValueError(f"dim must be a multiple of {of} for these axes, got {dim}")
