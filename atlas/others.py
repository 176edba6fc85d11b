"""timm and x-transformers: their rotations are modules with a function that applies them.

Neither package is needed by anything else here, and timm's other files want torchvision: only the
file with the rotations is imported.
"""

import importlib
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from atlas.recording import Heard

__all__ = ["PEERS"]

SIDE = 64
"""Rows and columns of the pictures that are asked about."""

PARTS = f"a picture of {SIDE} x {SIDE} patches: places are parts of its height and width"


def timm() -> dict[str, list[Heard]]:
    """Return timm's rotations of a picture; the first axis is the row."""
    home = Path(find_spec("timm").origin or "").parent  # type: ignore[union-attr]
    for name, folder in (("timm", home), ("timm.layers", home / "layers")):
        sys.modules.setdefault(name, ModuleType(name)).__path__ = [str(folder)]
    module = importlib.import_module("timm.layers.pos_embed_sincos")
    makers: dict[str, tuple[Callable[[], Any], bool, str | None]] = {
        "RotaryEmbeddingCat": (
            lambda: module.RotaryEmbeddingCat(
                64, in_pixels=False, feat_shape=None, ref_feat_shape=None
            ),
            False,
            "as EVA-02 makes it, without a size of reference: places count patches",
        ),
        "RotaryEmbeddingCat, in pixels": (
            lambda: module.RotaryEmbeddingCat(64, in_pixels=True),
            False,
            PARTS,
        ),
        "RotaryEmbeddingDinoV3": (
            lambda: module.RotaryEmbeddingDinoV3(64),
            True,
            PARTS,
        ),
        "RotaryEmbeddingMRope": (lambda: module.RotaryEmbeddingMRope(72), True, None),
    }
    found = {}
    for name, (make, half, note) in makers.items():
        rope = make().eval()
        table = rope.get_embed([SIDE, SIDE])
        rotate = _from_picture(table, half, module.apply_rot_embed_cat)
        heard = Heard(name, (), table.shape[-1] // 2, 2, True, rotate, note=note)
        found[name] = [_ending(heard)]
    torch.manual_seed(0)
    mixed = module.RotaryEmbeddingMixed(64, depth=1, num_heads=1).eval()
    table = mixed.get_embed([SIDE, SIDE])[0, 0].detach()
    rotate = _from_picture(table, False, module.apply_rot_embed_cat)
    note = "frequencies are weights; these are those of one head before training"
    name = "RotaryEmbeddingMixed"
    found[name] = [_ending(Heard(name, (), 64, 2, True, rotate, note=note))]
    return found


def _ending(heard: Heard) -> Heard:
    from dataclasses import replace

    return replace(heard, ends=(SIDE, SIDE))


def _from_picture(table: Tensor, half: bool, apply: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the rotation by rows of a table of a picture, row by row."""
    return lambda x, at: apply(x, table[at[:, 0] * SIDE + at[:, 1]], half=half)


def x_transformers() -> dict[str, list[Heard]]:
    """Return the rotations of x-transformers."""
    module = importlib.import_module("x_transformers.x_transformers")
    made = {
        "RotaryEmbedding": (module.RotaryEmbedding(32), None),
        "RotaryEmbedding, xPos": (
            module.RotaryEmbedding(32, use_xpos=True),
            "queries; keys get the inverse factor",
        ),
        "RotaryEmbedding, base rescaled": (
            module.RotaryEmbedding(32, base_rescale_factor=4.0),
            "base_rescale_factor=4",
        ),
        "RotaryEmbedding, interpolated": (
            module.RotaryEmbedding(32, interpolation_factor=4.0),
            "interpolation_factor=4",
        ),
    }

    def rotation(rope: Any) -> Callable[[Tensor, Tensor], Tensor]:
        def rotate(x: Tensor, at: Tensor) -> Tensor:
            freqs, scale = rope(at)
            return module.apply_rotary_pos_emb(x[:, None], freqs, scale)[:, 0]

        return rotate

    return {
        name: [Heard(name, (), 64, 1, True, rotation(rope), ends=(4096,), note=note)]
        for name, (rope, note) in made.items()
    }


PEERS: dict[str, Callable[[], dict[str, list[Heard]]]] = {
    "timm": timm,
    "x_transformers": x_transformers,
}
