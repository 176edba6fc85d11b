"""The texts that the model reads: prose and code of one pinned source package, brotli 1.2.1."""

import functools
import hashlib
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .model import FILE
from .questions import LONG

SOURCE = "brotli-1.2.1.tar.gz"
PROSE = {"Carroll": "alice29.txt", "workshop": "lcet10.txt", "Milton": "plrabn12.txt"}
CODE = {"encode.c": "encode.c", "bit stream": "brotli_bit_stream.c", "metablock": "metablock.c"}
START = 4000
"""Characters left out at the beginning: licences, prefaces, tables of contents."""
CITIES = ("Paris", "Cairo", "Lima", "Oslo", "Delhi", "Quito", "Rome", "Tokyo", "Accra", "Perth",
          "Dublin", "Havana", "Berlin", "Madrid", "Vienna", "Athens", "Lisbon", "Moscow", "Boston",
          "Sydney", "Dallas", "Geneva", "Prague", "Seoul")  # fmt: skip


def read(archive: Path) -> dict[str, str]:
    """Return the six texts, by name."""
    with tarfile.open(archive) as tar:
        members = {Path(m.name).name: m for m in tar if m.isfile()}
        texts = {}
        for name, file in (PROSE | CODE).items():
            stored = tar.extractfile(members[file])
            assert stored
            texts[name] = stored.read().decode("latin1").replace("\r\n", "\n")[START:]
    return texts


@functools.cache
def tokenizer(file: Path) -> Any:
    """Return the tokenizer that the GGUF holds."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(file.parent, gguf_file=FILE)


def tokens(file: Path, words: str) -> Tensor:
    return torch.tensor(tokenizer(file)(words).input_ids)


def short_texts(file: Path, archive: Path) -> dict[str, Tensor]:
    """Return the texts' tokens, the first thousands of each."""
    return {name: tokens(file, text[:12_000]) for name, text in read(archive).items()}


def long_texts(file: Path, archive: Path) -> dict[str, tuple[Tensor, list[Any]]]:
    """Return a text of prose and one of code with codes strewn in, and the questions for them."""
    found = {}
    for name in ("workshop", "encode.c"):
        words = tokens(file, read(archive)[name])
        draw = np.random.default_rng(0)
        codes = ["".join(map(str, draw.integers(0, 10, 4))) for _ in CITIES]
        notes = [tokens(file, f"\n\nThe secret code of {city} is {code}.\n\n")
                 for city, code in zip(CITIES, codes, strict=True)]  # fmt: skip
        room = LONG - sum(map(len, notes))
        cuts = np.linspace(0.02, 0.98, len(CITIES)) * room
        parts, start, places = [], 0, []
        for cut, note in zip(cuts.astype(int), notes, strict=True):
            parts += [words[start:cut], note]
            start = int(cut)
            places.append(sum(map(len, parts)) - len(note))
        text = torch.cat([*parts, words[start:room]])
        assert len(text) == LONG
        asked = [(place, tokens(file, f"\n\nThe secret code of {city} is "), tokens(file, code))
                 for place, city, code in zip(places, CITIES, codes, strict=True)]  # fmt: skip
        found[name] = (text, asked)
    return found


def fingerprint(texts: dict[str, Tensor]) -> str:
    """Return a hash of all tokens, so that a record cannot mix two versions of the texts."""
    whole = b"".join(name.encode() + t.numpy().tobytes() for name, t in sorted(texts.items()))
    return hashlib.sha256(whole).hexdigest()[:16]
