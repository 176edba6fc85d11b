"""ggml, the library under llama.cpp, through ctypes: `ggml_rope_ext` and `ggml_rope_multi`."""

import ctypes
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from engines.asking import ORIGINAL, Case

FOLDER = Path(__file__).parents[1] / "node_modules/@node-llama-cpp/linux-x64"

NORM, NEOX, MROPE, VISION, IMROPE = 0, 2, 8, 24, 40
F32, F16, I32 = 0, 1, 26


class _Memory(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))


@cache
def library() -> tuple[Any, Any]:
    """Return the library's functions and its processor; with them, llama.cpp's are loaded."""
    home = FOLDER / "bins/linux-x64"
    base = ctypes.CDLL(str(home / "libggml-base.so"), mode=ctypes.RTLD_GLOBAL)
    (top,) = home.glob("libggml.v*.so")
    loader = ctypes.CDLL(str(top), mode=ctypes.RTLD_GLOBAL)
    loader.ggml_backend_load_all_from_path(str(home).encode())
    for name in (
        "ggml_init", "ggml_new_tensor_4d", "ggml_new_tensor_1d", "ggml_new_graph", "ggml_rope_ext",
        "ggml_rope_multi", "ggml_backend_alloc_ctx_tensors",
    ):  # fmt: skip
        getattr(base, name).restype = ctypes.c_void_p
    base.ggml_version.restype = base.ggml_commit.restype = ctypes.c_char_p
    loader.ggml_backend_init_by_type.restype = ctypes.c_void_p
    return base, ctypes.c_void_p(loader.ggml_backend_init_by_type(0, None))


def rope(
    x: np.ndarray,
    positions: np.ndarray,
    mode: int = NORM,
    n_dims: int | None = None,
    *,
    freq_factors: Any = None,
    sections: Any = None,
    n_ctx_orig: int = 0,
    freq_base: float = 1e4,
    freq_scale: float = 1.0,
    ext_factor: float = 0.0,
    attn_factor: float = 1.0,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
) -> np.ndarray:
    """Return x (N, T, D) rotated at positions (T,), or (T, axes): axes are stored one by one."""
    g, processor = library()
    kind = F16 if x.dtype == np.float16 else F32
    memory = g.ggml_init(_Memory(1 << 20, None, True))
    context = ctypes.c_void_p(memory)
    n, t, d = x.shape
    sizes = [ctypes.c_int64(size) for size in (d, n, t, 1)]
    a = ctypes.c_void_p(g.ggml_new_tensor_4d(context, kind, *sizes))
    where = np.ascontiguousarray(positions.T if sections is None else _four(positions), np.int32)
    b = ctypes.c_void_p(g.ggml_new_tensor_1d(context, I32, ctypes.c_int64(where.size)))
    c = None
    if freq_factors is not None:
        factors = np.ascontiguousarray(freq_factors, np.float32)
        c = ctypes.c_void_p(g.ggml_new_tensor_1d(context, F32, ctypes.c_int64(factors.size)))
    numbers = (freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow)
    rest = (ctypes.c_int(n_ctx_orig), *map(ctypes.c_float, numbers))
    width = ctypes.c_int(n_dims or d)
    if sections is None:
        y = g.ggml_rope_ext(context, a, b, c, width, ctypes.c_int(mode), *rest)
    else:
        each = (ctypes.c_int * 4)(*sections)
        y = g.ggml_rope_multi(context, a, b, c, width, each, ctypes.c_int(mode), *rest)
    y = ctypes.c_void_p(y)
    graph = ctypes.c_void_p(g.ggml_new_graph(context))
    g.ggml_build_forward_expand(graph, y)
    buffer = ctypes.c_void_p(g.ggml_backend_alloc_ctx_tensors(context, processor))
    _set(g, a, np.ascontiguousarray(x.transpose(1, 0, 2), np.float16 if kind else np.float32))
    _set(g, b, where)
    if c is not None:
        _set(g, c, factors)
    status = g.ggml_backend_graph_compute(processor, graph)
    out = np.empty((t, n, d), np.float16 if kind else np.float32)
    data = out.ctypes.data_as(ctypes.c_void_p)
    g.ggml_backend_tensor_get(y, data, ctypes.c_size_t(0), ctypes.c_size_t(out.nbytes))
    g.ggml_backend_buffer_free(buffer)
    g.ggml_free(context)
    if status:
        raise RuntimeError(f"ggml returned status {status}")
    return out.transpose(1, 0, 2)


def _four(positions: np.ndarray) -> np.ndarray:
    """Return positions (T, axes) as ggml stores them: four runs of T."""
    return np.concatenate([positions.T, np.zeros((4 - positions.shape[1], len(positions)))]).ravel()


def _set(g: Any, tensor: Any, values: np.ndarray) -> None:
    data = values.ctypes.data_as(ctypes.c_void_p)
    g.ggml_backend_tensor_set(tensor, data, ctypes.c_size_t(0), ctypes.c_size_t(values.nbytes))


def described() -> dict[str, Any]:
    """Return what is asked: the library that llama.cpp's package for Node brings."""
    package = json.loads((FOLDER / "package.json").read_text("utf8"))
    g, _ = library()
    size = sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file())
    return {
        "name": "ggml (llama.cpp)",
        "version": {
            "ggml": f"{g.ggml_version().decode()} ({g.ggml_commit().decode()})",
            package["name"]: package["version"],
        },
        "licence": "MIT",
        "megabytes": round(size / 1e6),
    }


def asked(options: str, **more: Any) -> Case:
    """Return the case of some options of `rope`."""
    each = {"head_dim", "positions", "dtype", "note"}
    case = {key: more.pop(key) for key in each & more.keys()}
    function = "ggml_rope_multi" if "sections" in more else "ggml_rope_ext"
    return Case(function, options, lambda x, at: rope(x, at, **more), **case)


def cases() -> list[Case]:
    """Return what is asked of ggml."""
    return [
        asked("mode NORM (0)", mode=NORM),
        asked("mode NEOX (2)", mode=NEOX),
        asked("mode NEOX (2), n_dims 32", mode=NEOX, n_dims=32),
        asked("mode NORM (0), n_dims 32", mode=NORM, n_dims=32),
        asked("mode NEOX (2), float16", mode=NEOX, dtype=np.float16),
        asked("mode NEOX (2), freq_scale 0.25", mode=NEOX, freq_scale=0.25),
        asked("mode NEOX (2), freq_factors 4", mode=NEOX, freq_factors=[4.0] * 32),
        asked("mode NEOX (2), attn_factor 1.5", mode=NEOX, attn_factor=1.5),
        asked("mode MROPE (8), sections 16 8 8 0", mode=MROPE, sections=(16, 8, 8, 0),
              positions=(512, 512, 512)),
        asked("mode IMROPE (40), sections 12 10 10 0", mode=IMROPE, sections=(12, 10, 10, 0),
              positions=(512, 512, 512)),
        asked("mode IMROPE (40), sections 12 10 10 0, a fourth position", mode=IMROPE,
              sections=(12, 10, 10, 0), positions=(64, 64, 64, 64)),
        asked("mode VISION (24), sections 16 16 0 0, n_dims 32", mode=VISION, n_dims=32,
              sections=(16, 16, 0, 0), positions=(512, 512)),
    ]  # fmt: skip


def rescaled(rule: dict[str, Any]) -> Case:
    """Return the case of a rule in ggml's own parameters, as a GGUF's keys are handed over."""
    kind, factor = rule["rope_type"], rule["factor"]
    if kind == "linear":
        return asked(f"freq_scale 1/{factor:g}", mode=NEOX, freq_scale=1.0 / factor)
    if kind == "yarn":
        unknown = {"attention_factor", "mscale", "mscale_all_dim", "truncate"} & rule.keys()
        if unknown:
            raise NotImplementedError(unknown)
        betas = {key: rule[key] for key in ("beta_fast", "beta_slow") if key in rule}
        return asked(
            f"freq_scale 1/{factor:g}, ext_factor 1, n_ctx_orig {ORIGINAL}", mode=NEOX,
            freq_scale=1.0 / factor, ext_factor=1.0, n_ctx_orig=ORIGINAL, **betas,
        )  # fmt: skip
    raise NotImplementedError(kind)
