"""Rotary position embedding (RoPE) for NumPy and PyTorch, with attention and a key-value cache.

==============  ==================================================================================
`frequencies`   Inverse frequencies and wavelengths
`reference`     The definition in NumPy float64, by matrix and by complex product
`layout`        Interleaved and half-split pairs, and the permutation between them
`rotation`      `rope_table`, `apply_rope`, `RotaryEmbedding`; `fast` is its eager path
`rescaling`     Frequencies for longer contexts: PI, NTK, YaRN, Llama 3, LongRoPE
`axes`          Positions with several axes: images, video, M-RoPE
`attention`     Self-attention with rotary queries and keys
`cache`         A key-value cache; moving keys that are already rotated
`serving`       Latent attention, packed documents, context parallel
==============  ==================================================================================

``import rope_minimal`` needs NumPy only; names that need torch load it on first use.

An argument of a wrong type, shape or range raises a TypeError or ValueError that names it and what
was passed; what NumPy and torch refuse with a clear message is left to them.
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
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    try:
        if name in _HOME:
            value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
            return value
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"rope_minimal.{name} needs torch, which is not installed: install it, or this "
            "package with its extra, rope_minimal[torch]",
            name="torch",
        ) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
