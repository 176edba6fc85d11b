"""The row lengths of the released model's projections: ``python -m experiments.real.lengths``."""

from pathlib import Path

import numpy as np

from .model import HEADS, KEY_HEADS, LAYERS, WIDTH, Model, path

LENGTHS = Path(__file__).parent / "row-lengths.npz"


def lengths(model: Model) -> dict[str, np.ndarray]:
    """Return the Euclidean length of every row of W_q and W_k, (30, heads * 64) each."""
    found = {}
    for name, heads in (("q", HEADS), ("k", KEY_HEADS)):
        rows = [model.weights[f"blk.{i}.attn_{name}"].norm(dim=1) for i in range(LAYERS)]
        found[name] = np.stack(rows).astype(np.float16)
        assert found[name].shape == (LAYERS, heads * WIDTH)
    return found


if __name__ == "__main__":
    file = path()
    if file is None:
        raise SystemExit("the model is not installed: `make real` installs it")
    np.savez_compressed(LENGTHS, **lengths(Model(file)))
