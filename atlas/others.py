"""timm and x-transformers: their rotations are modules with a function that applies them.

No other module needs these packages. timm's other files need torchvision, so only the file with
the rotations is imported.
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

from .recording import AttentionRecord

__all__ = ["PEERS"]

SIDE = 64
"""Rows and columns of the image."""

PARTS = f"an image of {SIDE} x {SIDE} patches: coordinates are fractions of its height and width"


def timm() -> dict[str, list[AttentionRecord]]:
    """Return timm's rotations of an image; the first axis is the row."""
    home = Path(find_spec("timm").origin or "").parent  # type: ignore[union-attr]
    for name, folder in (("timm", home), ("timm.layers", home / "layers")):
        sys.modules.setdefault(name, ModuleType(name)).__path__ = [str(folder)]
    module = importlib.import_module("timm.layers.pos_embed_sincos")
    in_patches = {"in_pixels": False, "feat_shape": None, "ref_feat_shape": None}
    made: tuple[tuple[str, int, dict[str, Any], bool, str | None], ...] = (
        ("RotaryEmbeddingCat", 64, in_patches, False,
         "as in EVA-02, without a reference size: coordinates count patches"),
        ("RotaryEmbeddingCat, in pixels", 64, {"in_pixels": True}, False, PARTS),
        ("RotaryEmbeddingDinoV3", 64, {}, True, PARTS),
        ("RotaryEmbeddingMRope", 72, {}, True, None),
        ("RotaryEmbeddingMixed", 64, {"depth": 1, "num_heads": 1}, False,
         "frequencies are learned; these are those of one head before training"),
    )  # fmt: skip
    found = {}
    for name, width, more, half, note in made:
        torch.manual_seed(0)
        rope = getattr(module, name.split(",")[0])(width, **more).eval()
        table = rope.get_embed([SIDE, SIDE]).detach()
        table = table.reshape(SIDE * SIDE, table.shape[-1])  # that of the one head where each has
        head_dim = table.shape[-1] // 2

        def rotate(x: Tensor, at: Tensor, table: Tensor = table, half: bool = half) -> Tensor:
            return module.apply_rot_embed_cat(x, table[at[:, 0] * SIDE + at[:, 1]], half=half)

        found[name] = [
            AttentionRecord(name, (), head_dim, 2, True, rotate, sizes=(SIDE, SIDE), note=note)
        ]
    return found


def x_transformers() -> dict[str, list[AttentionRecord]]:
    """Return the rotations of x-transformers."""
    module = importlib.import_module("x_transformers.x_transformers")
    made: tuple[tuple[str, dict[str, Any], str | None], ...] = (
        ("", {}, None),
        (", xPos", {"use_xpos": True}, "queries; keys get the inverse factor"),
        (", base rescaled", {"base_rescale_factor": 4.0}, "base_rescale_factor=4"),
        (", interpolated", {"interpolation_factor": 4.0}, "interpolation_factor=4"),
    )
    found = {}
    for way, more, note in made:
        rope = module.RotaryEmbedding(32, **more)

        def rotate(x: Tensor, at: Tensor, rope: Any = rope) -> Tensor:
            return module.apply_rotary_pos_emb(x[:, None], *rope(at))[:, 0]

        name = f"RotaryEmbedding{way}"
        found[name] = [AttentionRecord(name, (), 64, 1, True, rotate, sizes=(4096,), note=note)]
    return found


PEERS: dict[str, Callable[[], dict[str, list[AttentionRecord]]]] = {
    "timm": timm,
    "x_transformers": x_transformers,
}
