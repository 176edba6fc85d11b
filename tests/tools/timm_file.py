"""timm's file of rotations alone: its other files want torchvision, which is large."""

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest


def timm_rotations() -> ModuleType:
    """Return ``timm.layers.pos_embed_sincos``; skip the test where timm is not installed."""
    spec = find_spec("timm")
    if spec is None or spec.origin is None:
        pytest.skip("timm is not installed")
    home = Path(spec.origin).parent
    with pytest.MonkeyPatch.context() as patch:
        for name, folder in (("timm", home), ("timm.layers", home / "layers")):
            patch.setitem(sys.modules, name, ModuleType(name))
            sys.modules[name].__path__ = [str(folder)]
        return importlib.import_module("timm.layers.pos_embed_sincos")
