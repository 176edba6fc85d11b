"""Rotary position embedding: the rotation, what it is made of, and what can be asked about it.

`checks`, `tensors`, `frequencies`, `reference`, `layout`, `rotation` and `attention`, in this
order, are one sitting; `fast`, which eager calls run, is one more page, and so are `axes`, places
in images and video, `cache`, what may be done with keys that are already turned, and `serving`,
which stands on it.

The public names are handed out lazily: ``import rope_minimal`` loads neither torch nor sympy nor
anywidget; each arrives with the first name that needs it.

An argument that is not as a docstring describes it raises TypeError (of a wrong kind) or ValueError
(a wrong value) that names the argument and says what came; docstrings list further errors only.
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

_HOME = {
    "inverse_frequencies": "frequencies",
    "rescaled_frequencies": "rescaling",
    "wavelengths": "frequencies",
    "mrope_positions": "axes",
    "wave_vectors": "axes",
    "angle_horizon": "aliasing",
    "circle_gaps": "aliasing",
    "code_distance": "aliasing",
    "cosine_horizon": "aliasing",
    "mean_cosine": "aliasing",
    "near_repeats": "aliasing",
    "nearest_code": "aliasing",
    "nearest_offset": "aliasing",
    "neighbour_contrast": "aliasing",
    "neighbour_snr": "aliasing",
    "rounding_noise": "aliasing",
    "unseen_pairs": "aliasing",
    "wrapped_angle": "aliasing",
    "rotate_by_matrix": "reference",
    "rotate_complex": "reference",
    "rotation_matrix": "reference",
    "permute_qk": "layout",
    "to_half": "layout",
    "to_interleaved": "layout",
    "RotaryEmbedding": "rotation",
    "apply_rope": "rotation",
    "rope_table": "rotation",
    "KVCache": "cache",
    "move_keys": "cache",
    "RotarySelfAttention": "attention",
    "LatentAttention": "serving",
    "document_mask": "serving",
    "zigzag_indices": "serving",
    "Derivation": "derivation",
    "DerivationError": "derivation",
    "MatrixFunction": "derivation",
    "Step": "derivation",
    "check_relative": "derivation",
}

_EXTRA = {
    "torch": "torch",
    "mpmath": "proofs",
    "sympy": "proofs",
    "anywidget": "explore",
    "ipywidgets": "explore",
    "matplotlib": "explore",
    "traitlets": "explore",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Load a public name from its module the first time it is asked for.

    Raises
    ------
    ImportError
        If the name needs a library that is not installed; it says what to install.
    """
    try:
        if name in _HOME:
            value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
            return value
        if name in ("explore", "identify"):
            return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        raise ImportError(
            f"rope_minimal.{name} needs {error.name}, which is not installed: install it, or this "
            f"package with its extra, rope_minimal[{_EXTRA[error.name]}]",
            name=error.name,
        ) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
