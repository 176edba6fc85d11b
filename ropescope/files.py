"""What is in a checkpoint: its configuration, and where each tensor lies. Weights are not read."""

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import gguf_file, safetensors_file
from .configuration import Caution
from .safetensors_file import Stored, broken
from .translation import Translation, of_gguf, of_params

__all__ = ["Checkpoint", "read"]

INDEX = "model.safetensors.index.json"

OTHERS = {
    "peft_type": "a LoRA adapter: what its base_model_name_or_path names rotates; check that",
    "tokenizer_class": "a tokenizer's file",
    **dict.fromkeys(("image_processor_type", "feature_extractor_type", "processor_class"),
                    "a preprocessor's file"),
    **dict.fromkeys(("_from_model_config", "do_sample", "temperature"), "a file for generation"),
}  # fmt: skip
"""What a file without a model_type is that has such a key."""
NAMES = (
    "config.json", "params.json", "adapter_config.json", "model_index.json",
    "tokenizer_config.json", "preprocessor_config.json", "generation_config.json",
)  # fmt: skip
"""Files of a folder that may say what is in it, the first there first."""


@dataclass(frozen=True)
class Checkpoint:
    """What was found at a path.

    Attributes
    ----------
    path
        The file or folder.
    config
        As a ``config.json``; None where there is none.
    tensors
        By name; empty for a configuration alone.
    names
        Whose names tensors and configuration have: ``hf``, ``meta`` or ``gguf``.
    layout
        The layout of query and key rows where the file says so, as GGUF and Meta's do, or None.
    architecture
        GGUF's name for the family.
    told
        How a file that has no ``config.json`` was put into its words, or None.
    """

    path: Path
    config: dict[str, Any] | None
    tensors: dict[str, Stored] = field(default_factory=dict)
    names: str = "hf"
    layout: str | None = None
    architecture: str | None = None
    told: Translation | None = None


def read(path: str | Path) -> Checkpoint:
    """Return what is in a file or folder: configuration and tensors.

    Parameters
    ----------
    path
        A ``config.json`` or Meta's ``params.json``; a ``.safetensors``, ``.gguf`` or, with torch,
        ``.pth``; or a folder of one model. Beside weights a configuration is looked for.

    Raises
    ------
    OSError, ImportError
        Where it cannot be read, or needs torch.
    ValueError
        Where it is none of these, or broken: the message says what was expected.
    """
    if not str(path).strip():  # Path("") would be this folder
        raise ValueError(f"path must name a file or a folder, got {str(path)!r}")
    path = Path(path)
    if path.is_dir():
        return _folder(path)
    with path.open("rb") as file:
        start = file.read(9)
    if start[:4] == b"GGUF":
        metadata, tensors = gguf_file.header(path)
        try:
            told = of_gguf(metadata, tensors)
        except ValueError as error:
            raise broken(path, str(error)) from error
        name = metadata["general.architecture"]
        layout = gguf_file.LAYOUTS.get(name)
        return Checkpoint(path, told.config, tensors, "gguf", layout, name, told)
    if path.name == INDEX:
        return _folder(path.parent)
    if start[8:] == b"{" and path.suffix != ".json":
        return _with_config(path, path.parent, safetensors_file.header(path))
    if start[:2] == b"PK":
        return _with_config(path, path.parent, _torch_tensors([path]))
    return _with_config(path, path, {})


def _folder(path: Path) -> Checkpoint:
    """Return what is in a folder: an index names its parts, or they are ``model*.safetensors``."""
    index = dict[str, str]()
    parts = sorted(path.glob("model*.safetensors")) or sorted(path.glob("*.safetensors"))
    if (path / INDEX).exists():
        index = _json(path / INDEX).get("weight_map", {})
        if not isinstance(index, dict) or not all(isinstance(n, str) for n in index.values()):
            raise broken(path / INDEX, "expected a 'weight_map' from tensors to file names")
        parts = [path / name for name in sorted(set(index.values()))]
        if missing := [part.name for part in parts if not part.exists()]:
            alone = "; config.json alone says how it rotates" * (path / NAMES[0]).exists()
            words = f"{', '.join(missing)}, which it names, is not there{alone}"
            raise broken(path / INDEX, words)
    tensors = {name: t for part in parts for name, t in safetensors_file.header(part).items()}
    if lost := sorted(set(index) - set(tensors)):
        raise broken(path / INDEX, f"{lost[0]}, which it names, is in none of its files")
    old = sorted([*path.glob("*.pth"), *path.glob("pytorch_model*.bin")])
    return _with_config(path, path, tensors or (_torch_tensors(old) if old else {}))


def _with_config(path: Path, beside: Path, tensors: dict[str, Stored]) -> Checkpoint:
    """Return tensors with the configuration that lies in a folder, or is a file."""
    names = NAMES[:3] if tensors else NAMES  # a tokenizer may lie beside weights
    files = [beside / name for name in names] if beside.is_dir() else [beside]
    file = next((file for file in files if file.exists()), None)
    if file is None:
        if not tensors:
            raise broken(path, "expected config.json, params.json, *.safetensors or *.pth in this "
                               "folder; a GGUF is named itself, not by its folder")  # fmt: skip
        return Checkpoint(path, None, tensors)
    twice: list[str] = []
    config, told, whose = _json(file, twice), None, "hf"
    key = next((key for key in OTHERS if key in config and "model_type" not in config), None)
    if key is not None:
        base = config.get("base_model_name_or_path")
        words = OTHERS[key].replace("names", f"names, {base!r}," if base else "names")
        raise broken(file, f"by its {key} this is {words}")
    if {"dim", "n_layers", "n_heads"} <= set(config):
        try:
            told = of_params(config)
        except ValueError as error:
            raise broken(file, str(error)) from error
        config, whose = told.config, "hf" if tensors else "meta"
    if twice:
        told = told or Translation(config, {}, ())
        words = f"Twice in one object of this file: {', '.join(sorted({*twice}))}; the last counts."
        told = replace(told, notes=(*told.notes, Caution("twice", 1, twice[0], words)))
    if any(".attention.wq." in name for name in tensors):
        whose = "meta"
    layout = "interleaved" if whose == "meta" else None
    return Checkpoint(path, config, tensors, whose, layout, None, told)


def _json(path: Path, twice: list[str] | None = None) -> dict[str, Any]:
    """Return the JSON object in a file; names that stand twice in an object are put into a list."""

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if twice is not None:
            twice.extend(name for name, n in Counter(key for key, _ in pairs).items() if n > 1)
        return dict(pairs)

    try:
        found = json.loads(path.read_bytes(), object_pairs_hook=object_of)
    except (ValueError, RecursionError) as error:
        raise broken(path, "expected config.json, safetensors, GGUF or .pth; it is none, and as "
                           f"JSON: {error}") from error  # fmt: skip
    if not isinstance(found, dict):
        raise broken(path, f"expected a JSON object, got {type(found).__name__}")
    return found


def _torch_tensors(paths: list[Path]) -> dict[str, Stored]:
    """Return the tensors of PyTorch files, parts of one model, by name; torch maps them."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"{paths[0]}: needs torch, the extra ropescope[torch]") from error
    kinds = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
    tensors: dict[str, Stored] = {}
    for path in paths:
        try:
            found = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
            named = {name: t for name, t in found.items() if isinstance(t, torch.Tensor)}
        except Exception as error:  # what torch raises is of many kinds
            words = (str(error).splitlines() or [repr(error)])[0]
            raise broken(path, f"expected tensors by name, from torch.save: {words}") from error
        for name, t in named.items():
            if name in tensors or t.dtype not in kinds:
                raise broken(path, f"{name} is in {tensors[name].path.name}, too: join parallel "
                             "parts first" if name in tensors else f"{name} has {t.dtype}, "
                             "expected float32, float16 or bfloat16")  # fmt: skip
            size = t.numel() * t.element_size()
            tensors[name] = Stored(
                name, tuple(t.shape), kinds[t.dtype], path, -1, size, torch.atleast_1d(t)
            )
    return tensors
