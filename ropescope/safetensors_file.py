"""A tensor in a file, and the header of a safetensors file, without its weights.

The safetensors library gives NumPy no bfloat16 and no part of a tensor in its own bytes; the header
is a length (8 bytes, little-endian) and so much JSON.
"""

import json
import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["SIZES", "Stored", "broken", "header"]

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8,
         "U32": 4, "U16": 2, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}  # fmt: skip
LARGEST = 100_000_000
POINTER = b"version https://git-lfs"


def broken(path: Path, message: str) -> ValueError:
    """Return the error that a file is not as expected."""
    with suppress(OSError), path.open("rb") as file:
        if file.read(len(POINTER)) == POINTER:
            message = ("this is a pointer of Git LFS and not the file itself, which `git lfs pull` "
                       "brings")  # fmt: skip
    return ValueError(f"{path}: {message}")


@dataclass(frozen=True)
class Stored:
    """A tensor in a file.

    Attributes
    ----------
    name, shape
        As in the file; along the last axis numbers lie side by side.
    kind
        A safetensors type such as ``BF16``, or the number of one of ggml's block formats.
    path, start, nbytes
        Where its bytes are; or, of a file that torch maps, ``mapped`` holds them.
    """

    name: str
    shape: tuple[int, ...]
    kind: str | int
    path: Path
    start: int
    nbytes: int
    mapped: Any = field(default=None, compare=False, repr=False)

    def rows(self, first: int, count: int) -> np.ndarray:
        """Read ``count`` rows along the first axis; return (count, bytes in a row)."""
        width = self.nbytes // max(math.prod(self.shape[:1]), 1)
        if self.mapped is not None:
            import torch

            part = self.mapped[first : first + count].contiguous()
            return np.asarray(part.view(torch.uint8).numpy().reshape(count, width))
        with self.path.open("rb") as file:
            file.seek(self.start + first * width)
            return np.frombuffer(file.read(count * width), np.uint8).reshape(count, width)

    def flat(self) -> "Stored":
        """Return it as one column of numbers."""
        mapped = None if self.mapped is None else self.mapped.reshape(-1)
        return replace(self, shape=(math.prod(self.shape),), mapped=mapped)


def header(path: Path) -> dict[str, Stored]:
    """Return the tensors of a safetensors file by name; raise ValueError if it is broken."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(size - 8, LARGEST):
            raise broken(path, f"expected safetensors with a header of {length:,} bytes, the file "
                               f"has {size:,}")  # fmt: skip
        text, tensors = file.read(length), {}
    try:
        for name, one in json.loads(text).items():
            if name != "__metadata__":
                (begin, end), shape = map(int, one["data_offsets"]), tuple(map(int, one["shape"]))
                start = 8 + length + begin
                tensors[name] = Stored(name, shape, str(one["dtype"]), path, start, end - begin)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise broken(path, f"the header of this safetensors file is broken: {error!r}") from error
    for one in tensors.values():
        needed = math.prod(one.shape) * SIZES.get(str(one.kind), 0) or one.nbytes
        if min((*one.shape, one.start - length - 8, one.nbytes)) < 0 or needed != one.nbytes:
            raise broken(path, f"the header gives {one.name} {one.nbytes:,} bytes, which are not "
                               f"{list(one.shape)} numbers in {one.kind}")  # fmt: skip
        if one.start + one.nbytes > size:
            raise broken(path, f"the file ends before {one.name} does")
    return tensors
