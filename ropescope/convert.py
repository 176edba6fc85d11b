"""Move the rows of query and key weights from one layout to another, from file to file.

A head's rows are read, permuted by `permute_qk` and written before the next head's are read; what
does not move is copied in pieces. So memory does not grow with the model. What was written is read
again, and `layout_of_weights` is asked about it, before it gets its name.
"""

import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rope_minimal import permute_qk

from .configuration import Caution, rope_of, unrolled
from .files import INDEX, Checkpoint, read
from .gguf_file import BLOCKS
from .safetensors_file import SIZES, Stored, broken
from .weights import layout_of_weights

__all__ = ["TARGETS", "convert"]

TARGETS = ("hf", "meta", "gguf", "mlx")
PIECE = 1 << 23
"""Bytes that are copied at once."""

NAMES = [
    {"hf": "model.embed_tokens", "meta": "tok_embeddings", "gguf": "token_embd"},
    {"hf": "model.norm", "meta": "norm", "gguf": "output_norm"},
    {"hf": "lm_head", "meta": "output", "gguf": "output"},
    *(
        {"hf": f"model.layers.{{}}.{hf}", "meta": f"layers.{{}}.{meta}", "gguf": f"blk.{{}}.{gguf}"}
        for hf, meta, gguf in (
            ("self_attn.q_proj", "attention.wq", "attn_q"),
            ("self_attn.k_proj", "attention.wk", "attn_k"),
            ("self_attn.v_proj", "attention.wv", "attn_v"),
            ("self_attn.o_proj", "attention.wo", "attn_output"),
            ("self_attn.q_norm", "attention.q_norm", "attn_q_norm"),
            ("self_attn.k_norm", "attention.k_norm", "attn_k_norm"),
            ("mlp.gate_proj", "feed_forward.w1", "ffn_gate"),
            ("mlp.down_proj", "feed_forward.w2", "ffn_down"),
            ("mlp.up_proj", "feed_forward.w3", "ffn_up"),
            ("input_layernorm", "attention_norm", "attn_norm"),
            ("post_attention_layernorm", "ffn_norm", "ffn_norm"),
        )
    ),
]
TABLE = re.compile(r"(^rope\.freqs|^rope_freqs\.weight|rotary_emb\.inv_freq)$")
ROLE = re.compile(
    r"(?:^|\.)([qk]_proj|w[qk]|attn_[qk]|(?:attn_)?[qk]_(?:layer)?norm|qkv_proj|Wqkv|attn_qkv|"
    r"query_key_value|linear_qkv|wqkv)\.(.+)$"
)
NOT_TEXT = re.compile(r"vision|visual|audio|speech|cross")
IN_ROWS = ("weight", "bias", "scales", "biases", "weight_scale")
BY_GROUP = ("query_key_value", "linear_qkv", "wqkv")
"""Fused as NeoX, Falcon and Megatron do: the queries of a key head, it, its value, and the next.
Others have all queries first, then all keys, then all values."""
QUERIES = ("num_attention_heads", "n_head", "n_heads", "num_heads")
ONLY_ROWS = ("llama", "qwen2", "qwen3")
"""Architectures of which llama.cpp's converter changes names and rows alone, and no number."""


@dataclass(frozen=True)
class _Entry:
    """A tensor to be written: its name, its type, and which of its heads move."""

    name: str
    tensor: Stored
    kind: str
    role: str = ""
    moves: tuple[bool, ...] = ()
    head_dim: int = 0
    width: int = 0
    inverse: bool = False

    @property
    def nbytes(self) -> int:
        """Its size as written."""
        return math.prod(self.tensor.shape) * SIZES[self.kind]

    def pieces(self) -> Iterator[np.ndarray]:
        """Yield its bytes as they are to be written, some rows or a head at a time."""
        count, one = self.tensor.shape[0] if self.tensor.shape else 1, self.tensor
        if not self.moves:
            step = max(1, PIECE * count // max(self.nbytes, 1))
            for first in range(0, count, step):
                yield self._numbers(one.rows(first, min(step, count - first)))
        if len(one.shape) == 2 and one.shape[0] != len(self.moves) * self.head_dim:
            one = one.flat()  # gains: a row for each head
        for i, moves in enumerate(self.moves):
            rows = one.rows(i * self.head_dim, self.head_dim)
            width = self.width if moves else 0
            if width:
                yield self._numbers(permute_qk(rows[:width], 1, inverse=self.inverse))
            if width < len(rows):
                yield self._numbers(rows[width:])

    def _numbers(self, rows: np.ndarray, kind: str | int | None = None) -> np.ndarray:
        """Return rows, of ggml's block formats as float32: a row is whole blocks."""
        kind = self.tensor.kind if kind is None else kind
        if isinstance(kind, str):
            return rows
        try:
            from gguf import GGMLQuantizationType, dequantize
        except ImportError as error:
            words = "the block formats of a GGUF need gguf, the extra ropescope[gguf]"
            raise ImportError(words) from error
        return np.asarray(dequantize(rows, GGMLQuantizationType(kind)), "<f4").view(np.uint8)

    def lengths(self, stored: Stored) -> np.ndarray | None:
        """Return the lengths of the rows that move, as stored there, (rows, 1)."""
        types = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
        if self.kind not in types or len(stored.shape) != 2 or not self.role or "norm" in self.role:
            return None
        found, step = [], max(1, PIECE // max(4 * stored.shape[1], 1))
        for first in range(0, stored.shape[0], step):
            rows = stored.rows(first, min(step, stored.shape[0] - first))
            rows = self._numbers(rows, stored.kind).view(types[self.kind])
            if self.kind == "BF16":
                rows = (rows.astype("<u4") << 16).view("<f4")
            found.append(np.linalg.norm(rows.astype(np.float64), axis=1))
        return np.concatenate(found)[np.repeat(self.moves, self.head_dim), None]


def convert(
    source: str | Path,
    to: str,
    output: str | Path,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Caution]:
    """Write a checkpoint with the rows of its query and key weights in another layout.

    Parameters
    ----------
    source
        Weights, as `read` takes them, and their configuration.
    to
        ``hf``: rows as transformers has them, and its names; ``mlx``: the same, which mlx-lm
        loads; ``meta``: interleaved, with Meta's names. ``gguf`` is refused: llama.cpp's converter
        writes that.
    output
        A new ``.safetensors`` file, or a new folder.
    progress
        Called with the bytes written, and all there will be.

    Returns
    -------
    list of Caution
        What was done, and what to look at: names that were kept, numbers that were assumed.

    Raises
    ------
    OSError
        If ``output`` exists, or the disk is too small.
    ValueError
        Where nothing is to be done, or it is not known how, or the rows as written speak for
        another layout than they should have. Then nothing is left behind.
    """
    if to not in TARGETS:
        raise ValueError(f"to must be one of {', '.join(TARGETS)}, got {to!r}")
    if to == "gguf":
        raise ValueError(
            "to: a GGUF is not written here, as it needs the tokenizer and ggml's formats; "
            "llama.cpp's convert_hf_to_gguf.py writes it from a folder in layout and names hf, "
            "and moves the rows itself"
        )
    output, one = Path(output), Path(output).suffix == ".safetensors"
    if os.path.lexists(output):
        raise FileExistsError(f"{output}: exists already, and is not overwritten")
    plan, parent = _Plan(read(source), to), output.absolute().parent
    plan.asked(plan.source, plan.was)
    if (free := shutil.disk_usage(parent).free) < plan.nbytes:
        raise OSError(f"{output}: needs {plan.nbytes:,} bytes, and {free:,} are free")
    work = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=parent))
    try:
        plan.write(work, one, progress)
        said = plan.asked(read(work), plan.layout)
        work.chmod(0o755)
        os.replace(work / "model.safetensors" if one else work, output)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return [*plan.said, said]


class _Plan:
    """Which tensors are written, under which names, and which of their heads move."""

    def __init__(self, source: Checkpoint, to: str) -> None:
        if source.config is None or not source.tensors:
            lacks = "weights" if source.config else "a config.json or params.json beside them"
            raise broken(source.path, f"expected weights and their configuration, lacks {lacks}")
        if source.names == "gguf" and source.architecture not in ONLY_ROWS:
            raise broken(source.path, f"for {source.architecture}, llama.cpp's converter changes "
                         f"more than rows; only {', '.join(ONLY_ROWS)} lead back")  # fmt: skip
        self.source = source
        self.said = [Caution("assumed", 1, "", note) for note in source.notes]
        self.names = "meta" if to == "meta" else "hf"
        self.config: dict[str, Any] = source.config.get("text_config") or source.config
        self.parts = [p for p in rope_of(source.config).to_dict()["parts"] if p["part"] == "text"]
        if not self.parts:
            name = self.config.get("model_type")
            raise broken(source.path, f"no rotation of text is known for model_type {name!r}")
        native = str(self.parts[0]["layout"])
        native = native.replace("read interleaved, written half-split", "interleaved")
        self.was, self.layout = source.layout or native, "interleaved" if to == "meta" else native
        if len({self.was, self.layout} | {"half-split", "interleaved"}) > 2 and self.moving:
            raise broken(source.path, f"from {self.was} to {self.layout}: not known here")
        renamed = self._renamed()
        tensors = source.tensors
        self.entries = [self._entry(new, tensors[name]) for name, new in renamed.items()]
        moved = sum(any(entry.moves) for entry in self.entries)
        others = sum(name != new for name, new in renamed.items())
        if self.moving and not moved:
            raise broken(source.path, "no query or key rows are found in it by name")
        if not self.moving and not others:
            raise broken(source.path, f"nothing is to be done: rows are {self.was} already, and "
                         f"names as {to} has them")  # fmt: skip
        words = (f"{moved} tensors went from {self.was} to {self.layout}, {others} have new names, "
                 f"{len(tensors) - len(renamed)} frequency tables are left out.")  # fmt: skip
        if source.names != "hf" and to != "meta":
            words += " No tokenizer is written."
        self.said.append(Caution("moved", 0, "", words))
        self.nbytes = sum(entry.nbytes for entry in self.entries)

    @property
    def moving(self) -> bool:
        """Whether rows move."""
        return self.was != self.layout

    def _renamed(self) -> dict[str, str]:
        """Return each tensor's new name. Tables of frequencies have none where names change."""
        old, new, found = self.source.names, self.names, {}
        table = {row[old]: row[new] for row in NAMES}
        if old == new:
            return {name: name for name in self.source.tensors}
        for name in self.source.tensors:
            stem, _, end = name.rpartition(".")
            number = re.findall(r"\.(\d+)\.", name)
            key = re.sub(r"\.\d+\.", ".{}.", stem, count=1)
            if key in table:
                found[name] = f"{table[key].format(*number[:1])}.{end}"
            elif not TABLE.search(name):
                if old == "gguf":
                    raise broken(self.source.path, f"{name} has no name that is known in {new}")
                words = f"Names are kept: {name} has none that is known in {new}."
                self.said.append(Caution("names-kept", 1, name, words))
                return {name: name for name in self.source.tensors}
        return found

    def _entry(self, name: str, tensor: Stored) -> _Entry:
        """Return what is written for a tensor."""
        kind = tensor.kind if isinstance(tensor.kind, str) else "F32"
        if kind not in SIZES or (kind != tensor.kind and tensor.kind not in BLOCKS):
            raise broken(tensor.path, f"{tensor.name} has type {tensor.kind}, not known here")
        match = ROLE.search(tensor.name)
        if not self.moving or not match or NOT_TEXT.search(tensor.name):
            return _Entry(name, tensor, kind)
        number = re.search(r"\.(\d+)\.", tensor.name)
        layer = int(number[1]) if number else 0
        here = [p for p in self.parts if layer in unrolled(p["layers"])]
        part = (here or self.parts)[0]
        if part["sections"] or part["place"] not in ("all", "first"):
            raise broken(tensor.path, f"{tensor.name}: only heads that rotate their first channels "
                         f"along one axis are converted, here {part['place']}")  # fmt: skip
        if match[2] not in IN_ROWS:
            raise broken(tensor.path, f"{tensor.name}: expected one of {', '.join(IN_ROWS)}, whose "
                         "rows are channels")  # fmt: skip
        size = part["head_dim"]
        rows = math.prod(tensor.shape) if "norm" in match[1] else tensor.shape[0]
        if rows % size or not rows:
            raise broken(tensor.path, f"{tensor.name}: {rows} rows are no heads of {size} channels")
        moves = self._moves(match[1], tensor, rows // size)
        inverse = self.layout == "interleaved"
        return _Entry(name, tensor, kind, match[1], moves, size, part["width"], inverse)

    def _moves(self, role: str, tensor: Stored, heads: int) -> tuple[bool, ...]:
        """Return of each head of a tensor whether it rotates; values in a fused one do not."""
        if "qkv" not in role and role != "query_key_value":
            return (True,) * heads
        queries = self._number(*QUERIES)
        keys = self._number("num_key_value_heads", "num_kv_heads")
        if self.config.get("multi_query") and not self.config.get("new_decoder_architecture"):
            keys = 1
        keys = keys or queries
        if not queries or queries + 2 * keys != heads:
            raise broken(tensor.path, f"{tensor.name}: {heads} heads are not {queries} of queries "
                         f"and {keys} of keys and values each")  # fmt: skip
        if role in BY_GROUP:
            return ((True,) * (queries // keys + 1) + (False,)) * keys
        return (True,) * (queries + keys) + (False,) * keys

    def _number(self, *names: str) -> int:
        return next((int(self.config[n]) for n in names if self.config.get(n)), 0)

    def write(self, folder: Path, one: bool, progress: Callable[[int, int], None]) -> None:
        """Write the files of a model into a folder: one, or as many as the source has."""
        parts: dict[Path, list[_Entry]] = {}
        for entry in self.entries:
            parts.setdefault(folder if one else entry.tensor.path, []).append(entry)
        done, index, many = 0, {}, len(parts)
        for i, entries in enumerate(parts.values(), 1):
            name = f"model-{i:05}-of-{many:05}.safetensors" if many > 1 else "model.safetensors"
            header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
            at = 0
            for entry in entries:
                index[entry.name], end = name, at + entry.nbytes
                header[entry.name] = {"dtype": entry.kind, "shape": entry.tensor.shape,
                                      "data_offsets": (at, end)}  # fmt: skip
                at = end
            text = json.dumps(header).encode()
            text += b" " * (-len(text) % 8)
            with (folder / name).open("wb") as file:
                file.write(len(text).to_bytes(8, "little") + text)
                for piece in (piece for entry in entries for piece in entry.pieces()):
                    file.write(np.ascontiguousarray(piece).data)
                    progress(done := done + piece.nbytes, self.nbytes)
        if many > 1:
            found = {"metadata": {"total_size": self.nbytes}, "weight_map": index}
            (folder / INDEX).write_text(json.dumps(found, indent=2))
        if not one and self.names == "hf":
            (folder / "config.json").write_text(json.dumps(self._config(), indent=2))

    def _config(self) -> dict[str, Any]:
        """Return the configuration; to Meta's and GGUF's, the shapes add the rest."""
        config = self.source.config or {}
        shapes = {entry.name: entry.tensor.shape for entry in self.entries}
        if self.source.names == "hf" or "model.embed_tokens.weight" not in shapes:
            return config
        return config | {
            "architectures": [f"{config['model_type'].capitalize()}ForCausalLM"],
            "intermediate_size": shapes["model.layers.0.mlp.up_proj.weight"][0],
            "vocab_size": shapes["model.embed_tokens.weight"][0],
            "tie_word_embeddings": "lm_head.weight" not in shapes,
        }

    def asked(self, there: Checkpoint, layout: str) -> Caution:
        """Ask the lengths of the rows which layout they are in, each layer, then all together.

        Raises ValueError if they speak for another than ``layout``.
        """
        found: dict[tuple[str, int], list[tuple[_Entry, np.ndarray]]] = {}
        for entry in self.entries if self.moving else ():
            name = entry.tensor.name if there is self.source else entry.name
            lengths = entry.lengths(there.tensors[name])
            if lengths is not None:
                self._told(name, lengths, entry, layout)
                found.setdefault((entry.role, len(lengths)), []).append((entry, lengths))
        told = [self._told(f"all {role}", np.stack([x for _, x in many]), many[0][0], layout)
                for (role, _), many in found.items()]  # fmt: skip
        if told and all(told):
            words = f"By their lengths, the rows are {layout}."
            return Caution("layout-told", 0, "", words)
        return Caution("layout-not-told", 0, "", "By their lengths, the rows may have any layout.")

    def _told(self, name: str, lengths: np.ndarray, entry: _Entry, layout: str) -> bool:
        """Return whether rows tell that they are in a layout; raise if they tell another."""
        heads, queries = lengths.shape[-2] // entry.head_dim, self._number(*QUERIES)
        keys = entry.role in ("k_proj", "wk", "attn_k") and entry.width == entry.head_dim
        try:
            found = layout_of_weights(
                lengths, heads, rotated=entry.width, query_heads=queries if keys else None
            ).layout
        except ValueError:  # a row of zeros, or less than eight channels
            return False
        if found not in (None, layout):
            raise broken(self.source.path, f"by their lengths, the rows of {name} are {found}, and "
                         f"not {layout}: they were moved before. Nothing is written")  # fmt: skip
        return found is not None
