"""Other runtimes' rotations, asked as they are: what ``make engines`` hears, and its record.

``python -m engines`` runs in an environment of its own, asks each runtime that is installed there
through the few lines of `engines.runtimes`, and writes ``atlas/results/engines.json``, which
`engines.record` describes.
"""

from pathlib import Path

__all__ = ["RESULT", "RUNTIMES"]

RESULT = Path(__file__).parents[1] / "atlas" / "results" / "engines.json"

RUNTIMES: dict[str, dict[str, str]] = {
    "ggml": {},
    "mlx": {},
    "onnx": {},
    "vllm": {},
    "sglang": {},
    "megatron": {},
    "litgpt": {},
    "torchtune": {},
    "torchtitan": {},
    "fms": {},
    "mistral": {},
    "executorch": {},
    "keras_hub": {"KERAS_BACKEND": "jax"},
    "gemma": {},
    "diffusers": {},
    "liger": {"TRITON_INTERPRET": "1"},
    "flash_attn": {"TRITON_INTERPRET": "1"},
    "transformer_engine": {},
    "xformers": {"TRITON_INTERPRET": "1"},
    "openvino": {},
    "ncnn": {},
    "tvm": {},
    "tinygrad": {"DEV": "PYTHON"},
}
"""Modules of `engines.runtimes`, and what they need in their environment."""
