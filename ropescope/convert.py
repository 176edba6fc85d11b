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

from . import gguf_file
from .configuration import Caution, rope_of
from .files import INDEX, Checkpoint, read
from .layers import unrolled
from .names import ACTIVATIONS, ALWAYS, ARCHITECTURES, BIASES, CLASSES, name_of, rows_of, stems
from .safetensors_file import SIZES, Stored, broken
from .weights import layout_of_weights

__all__ = ["TARGETS", "NothingToDoError", "convert"]

TARGETS = ("hf", "meta", "gguf", "mlx")
PIECE = 1 << 23
"""Bytes that are copied at once."""

TABLE = re.compile(
    r"(^rope\.freqs|^rope_\w+\.weight|rotary_emb\.inv_freq|attention\.(masked_)?bias)$"
)
"""Tables of frequencies, and masks that old files keep."""
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
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
FILE_TYPES = {"F32": 0, "F16": 1, "BF16": 32}
"""llama.cpp's numbers for a file whose weights are of a type."""


class NothingToDoError(ValueError):
    """A checkpoint is already as it is wanted."""


@dataclass(frozen=True)
class _Entry:
    """A tensor to be written: its name, its type, which of its heads move, and their order."""

    name: str
    tensor: Stored
    kind: str
    role: str = ""
    moves: tuple[bool, ...] = ()
    order: tuple[int, ...] = ()
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
        for i in self.order:
            rows = one.rows(i * self.head_dim, self.head_dim)
            width = self.width if self.moves[i] else 0
            if width:
                yield self._numbers(permute_qk(rows[:width], 1, inverse=self.inverse))
            if width < len(rows):
                yield self._numbers(rows[width:])

    def _numbers(self, rows: np.ndarray, kind: str | int | None = None) -> np.ndarray:
        """Return rows in the type that is written; in block formats a row is whole blocks."""
        kind = self.tensor.kind if kind is None else kind
        if kind == self.kind:
            return rows
        if isinstance(kind, str):
            return _floats(np.ascontiguousarray(rows), kind).view(np.uint8)
        gguf = gguf_file.package()
        found = gguf.dequantize(rows, gguf.GGMLQuantizationType(kind))
        return np.asarray(found, "<f4").view(np.uint8)

    def lengths(self, stored: Stored) -> np.ndarray | None:
        """Return the lengths of the rows that move, as stored there, (rows, 1)."""
        matrix = len(stored.shape) == 2 and self.role and "norm" not in self.role
        if self.kind not in TYPES or not matrix:
            return None
        found, step = [], max(1, PIECE // max(4 * stored.shape[1], 1))
        for first in range(0, stored.shape[0], step):
            rows = stored.rows(first, min(step, stored.shape[0] - first))
            rows = _floats(self._numbers(rows, stored.kind), self.kind)
            found.append(np.linalg.norm(rows.astype(np.float64), axis=1))
        return np.concatenate(found)[np.repeat(self.moves, self.head_dim), None]


def _floats(rows: np.ndarray, kind: str) -> np.ndarray:
    """Return rows of bytes as numbers, float32 where float16 or bfloat16 is stored."""
    found = rows.view(TYPES[kind])
    if kind == "BF16":
        return (found.astype("<u4") << 16).view("<f4")
    return found if kind == "F64" else found.astype("<f4")


def _spelled_out(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration that says what is in ``rope_parameters`` as older files do, too."""
    if isinstance(inner := config.get("text_config"), dict):
        return config | {"text_config": _spelled_out(inner)}
    rope = dict(config.get("rope_parameters") or {})
    if any(isinstance(one, dict) for one in rope.values()):  # one for each kind of layer
        return config
    names = gguf_file.SPELLED.get(str(config.get("model_type")), {})
    known = {names.get(field, field): rope.pop(field)
             for field in ("rope_theta", "partial_rotary_factor") if field in rope}  # fmt: skip
    if rope.get("rope_type", "default") != "default":
        known["rope_scaling"] = rope
    return config | known


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
        ``hf``: rows as transformers has them, and its names; ``mlx``: the same for mlx-lm, most
        of whose classes leave ``rope_parameters`` unread; ``meta``: interleaved, with Meta's names;
        ``gguf``: rows, names and numbers as llama.cpp's converter writes them, for the families in
        `ropescope.names.ARCHITECTURES`.
    output
        A new ``.safetensors`` file, or a new folder; for ``gguf`` a new ``.gguf`` file.
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
        Where nothing is to be done (`NothingToDoError`), or it is not known how, or the rows as
        written speak for another layout than they should have. Then nothing is left behind.
    """
    if to not in TARGETS:
        raise ValueError(f"to must be one of {', '.join(TARGETS)}, got {to!r}")
    output, ends = Path(output), Path(output).suffix
    one = ends if ends in (".safetensors", ".gguf") else ""
    if (to == "gguf") != (one == ".gguf"):
        raise ValueError(
            f"output must end with .gguf where to is gguf, and only there, got {ends!r}"
        )
    if os.path.lexists(output):
        raise FileExistsError(f"{output}: exists already, and is not overwritten")
    plan, parent = _Plan(read(source), to, bool(one)), output.absolute().parent
    plan.asked(plan.source, plan.was)
    if (free := shutil.disk_usage(parent).free) < plan.nbytes:
        raise OSError(f"{output}: needs {plan.nbytes:,} bytes, and {free:,} are free")
    work = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=parent))
    try:
        written = work / f"model{one}" if one else work
        write = plan.write_gguf if to == "gguf" else plan.write
        write(work, bool(one), progress)
        plan.turns(read(written))
        said = plan.asked(read(written), plan.layout)
        work.chmod(0o755)
        os.replace(written, output)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return [*plan.said, said]


class _Plan:
    """Which tensors are written, under which names, and which of their heads move."""

    def __init__(self, source: Checkpoint, to: str, one: bool) -> None:
        if source.config is None or not source.tensors:
            lacks = "weights" if source.config else "a config.json or params.json beside them"
            raise broken(source.path, f"expected weights and their configuration, lacks {lacks}")
        if source.names == "gguf" and source.architecture not in ARCHITECTURES.values():
            known = ", ".join(sorted({*ARCHITECTURES.values()}))
            raise broken(source.path, f"for {source.architecture}, llama.cpp's converter changes "
                         f"more than rows; only {known} lead back")  # fmt: skip
        self.source = source
        self.said = list(source.told.notes if source.told else ())
        lost = [one.field for one in self.said if one.code == "not-known"]
        lost = [*dict.fromkeys([*(source.told.unwritten if source.told else ()), *lost])]
        if lost and to != "meta":
            raise broken(source.path, f"{', '.join(lost)}: not put into other words here, and the "
                         "model is not the same without")  # fmt: skip
        self.names, self.to = "hf" if to == "mlx" else to, to
        self.config: dict[str, Any] = source.config.get("text_config") or source.config
        self.parts = [p for p in rope_of(source.config).to_dict()["parts"] if p["part"] == "text"]
        if not self.parts:
            name = self.config.get("model_type")
            raise broken(source.path, f"no rotation of text is known for model_type {name!r}")
        self.family = str(self.config.get("model_type"))
        self.keys, self.small = dict[str, Any](), dict[str, np.ndarray]()
        self.tokenizer: Path | None = None
        layout = str(self.parts[0]["layout"])
        layout = rows_of(layout)
        self.was = source.layout or layout
        if to == "gguf":
            layout = self._to_gguf()
        self.layout = "interleaved" if to == "meta" else layout
        if len({self.was, self.layout} | {"half-split", "interleaved"}) > 2 and self.moving:
            raise broken(source.path, f"from {self.was} to {self.layout}: not known here")
        tensors, renamed = source.tensors, self._renamed()
        self.entries = [self._entry(new, tensors[name]) for name, new in renamed.items()]
        moved = sum(any(entry.moves) for entry in self.entries)
        others = sum(name != new for name, new in renamed.items())
        if self.moving and not moved:
            raise broken(source.path, "no query or key rows are found in it by name")
        spelled = to == "mlx" and not one and _spelled_out(source.config) != source.config
        if not (self.moving or others or spelled) or (source.names, to) == ("gguf", "gguf"):
            words = f"nothing is to be done: rows are {self.was} already, as files with such names "
            words += "have them, and no name would change"
            raise NothingToDoError(f"{source.path}: {words}; nothing is written")
        counts = {f"tensors went from {self.was} to {self.layout}": moved,
                  "have new names": others,
                  "frequency tables are left out": len(tensors) - len(renamed)}  # fmt: skip
        words = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        words = f"{words or 'No tensor is changed'}."
        if to == "meta":
            words += (" No params.json is written: it needs ffn_dim_multiplier and multiple_of, "
                      "which a config.json does not tell.")  # fmt: skip
        if to != "gguf":
            words += " No tokenizer is written."
            if to == "hf" and source.config.get("eos_token_id") is None:
                words += (" Nor are ids of the tokens that begin and end a text, for which a class "
                          "then has its own: copy tokenizer.json, tokenizer_config.json and "
                          "generation_config.json from the model's page at Hugging Face."
                )  # fmt: skip
        if spelled:
            words += " rope_parameters is said as rope_theta and rope_scaling, too, for mlx-lm."
        self.said.append(Caution("moved", 0, "", words))
        self.nbytes = sum(entry.nbytes for entry in self.entries)
        self.nbytes += sum(array.nbytes for array in self.small.values())

    def _in_gguf(self) -> dict[str | None, Stored]:
        """Return the tensors by the names that GGUF has for them."""
        old, new = (stems(names, self.family) for names in (self.source.names, "gguf"))
        return {name_of(name, old, new): one for name, one in self.source.tensors.items()}

    def _to_gguf(self) -> str:
        """Find what a GGUF says beside its weights; return the layout that it has rows in."""
        path, architecture = self.source.path, ARCHITECTURES.get(self.family, "")
        if not architecture:
            raise broken(path, f"a GGUF of {self.family!r} is not written here, only of "
                         f"{', '.join(ARCHITECTURES)}; llama.cpp's converter is")  # fmt: skip
        (part, *more), config = self.parts, self.config
        rests = {i for p in self.parts for i in unrolled(p["without"])}
        every = range(3, int(config.get("num_hidden_layers") or 0), 4)
        if more or rests != (set(every) if self.family == "smollm3" else set()):
            raise broken(path, "its layers rotate otherwise than llama.cpp lets them")
        usual = ACTIVATIONS.get(self.family, "silu")
        found = config.get("hidden_act", config.get("activation", usual))
        if found != usual:
            raise broken(path, f"hidden_act is {found!r}, where llama.cpp computes {usual!r}")
        if window := config.get("use_sliding_window", True) and config.get("sliding_window"):
            words = f"sliding_window is not written: beyond {window} tokens, scores differ."
            self.said.append(Caution("window", 1, "sliding_window", words))
        if part["dynamic"] and part["rescaling"][0] == "dynamic":
            words = "llama.cpp does not rescale dynamically: past the trained length scores differ."
            self.said.append(Caution("dynamic", 1, "rope_scaling", words))
        ours, folder = self._in_gguf(), path if path.is_dir() else path.parent
        if lacks := {"token_embd.weight", "blk.0.ffn_down.weight"} - set(ours):
            raise broken(path, f"a GGUF is of a whole model, this lacks {', '.join(sorted(lacks))}")
        shapes = {"vocab_size": ours["token_embd.weight"].shape[0],
                  "intermediate_size": ours["blk.0.ffn_down.weight"].shape[1]}  # fmt: skip
        try:
            keys, self.small = gguf_file.metadata_of(shapes | config, part, architecture)
        except ValueError as error:
            raise broken(path, str(error)) from error
        kinds = [str(t.kind) for t in ours.values() if len(t.shape) == 2]
        self.keys = {
            "general.architecture": architecture,
            "general.type": "model",
            "general.name": folder.resolve().name,
            "general.quantization_version": 2,
            "general.file_type": FILE_TYPES.get(max(kinds, key=kinds.count), 0),
        } | keys
        for file in sorted(folder.glob("*.gguf")):
            if "tokenizer.ggml.model" in gguf_file.header(file)[0]:
                self.tokenizer = file
                break
        else:
            self.keys["tokenizer.ggml.model"] = "none"
            words = ("No tokenizer is written, and llama.cpp takes numbers of tokens only: put a "
                     "GGUF that its convert_hf_to_gguf.py writes with --vocab-only beside the "
                     "weights, and convert again.")  # fmt: skip
            self.said.append(Caution("no-tokenizer", 1, "", words))
        return gguf_file.LAYOUTS[architecture]

    @property
    def moving(self) -> bool:
        """Whether rows move."""
        return self.was != self.layout

    def _renamed(self) -> dict[str, str]:
        """Return each tensor's new name. Tables of frequencies have none where names change."""
        names, found = (self.source.names, self.names), dict[str, str]()
        if names[0] == names[1]:
            return {name: name for name in self.source.tensors}
        old, new = (stems(one, self.family if "gguf" in names else "") for one in names)
        for name in self.source.tensors:
            other = name_of(name, old, new)
            if other:
                found[name] = other
            elif not TABLE.search(name):
                if "gguf" in names:
                    raise broken(
                        self.source.path, f"{name} has no name that is known in {names[1]}"
                    )
                words = f"Names are kept: {name} has none that is known in {names[1]}. Nothing in "
                words += f"the new file tells that its rows are {self.layout}: write it down."
                self.said.append(Caution("names-kept", 1, name, words))
                return {name: name for name in self.source.tensors}
        return found

    def _entry(self, name: str, tensor: Stored) -> _Entry:
        """Return what is written for a tensor."""
        kind = tensor.kind if isinstance(tensor.kind, str) else "F32"
        if kind not in SIZES or (kind != tensor.kind and tensor.kind not in gguf_file.BLOCKS):
            raise broken(tensor.path, f"{tensor.name} has type {tensor.kind}, not known here")
        if self.names == "gguf":
            if kind not in FILE_TYPES:
                raise broken(tensor.path, f"{tensor.name} has type {kind}, expected one of "
                             f"{', '.join(FILE_TYPES)}")  # fmt: skip
            kind = "F32" if len(tensor.shape) < 2 else kind  # as llama.cpp's converter does
        match, new = ROLE.search(tensor.name), ROLE.search(name)
        grouped = [m is not None and m[1] in BY_GROUP for m in (match, new)]
        still = not self.moving and grouped[0] == grouped[1]
        if still or not match or NOT_TEXT.search(tensor.name):
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
        moves, order = self._moves(match[1], tensor, rows // size, grouped)
        inverse = self.layout == "interleaved"
        return _Entry(name, tensor, kind, match[1], moves, order, size, part["width"], inverse)

    def _moves(
        self, role: str, tensor: Stored, heads: int, grouped: list[bool]
    ) -> tuple[tuple[bool, ...], tuple[int, ...]]:
        """Return of each head of a tensor whether it rotates, and the order they are written in.

        Values in a fused one do not rotate.
        """
        if "qkv" not in role and role != "query_key_value":
            return (True,) * heads, tuple(range(heads))
        queries = self._number(*QUERIES)
        keys = self._number("num_key_value_heads", "num_kv_heads")
        if self.config.get("multi_query") and not self.config.get("new_decoder_architecture"):
            keys = 1
        keys = keys or queries
        if not queries or queries + 2 * keys != heads:
            raise broken(tensor.path, f"{tensor.name}: {heads} heads are not {queries} of queries "
                         f"and {keys} of keys and values each")  # fmt: skip
        many, apart = queries // keys, list(range(heads))
        groups = [
            i
            for k in range(keys)
            for i in (*apart[k * many :][:many], queries + k, queries + keys + k)
        ]
        here, there = (groups if one else apart for one in grouped)
        moves = tuple(self.moving and i < queries + keys for i in here)
        return moves, tuple(here.index(i) for i in there)

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

    def write_gguf(self, folder: Path, one: bool, progress: Callable[[int, int], None]) -> None:
        """Write a GGUF into a folder: small tensors that it has beside the weights, and these."""
        all_of_them = [
            *((name, x.shape, "F32", x.nbytes, iter([x])) for name, x in self.small.items()),
            *((e.name, e.tensor.shape, e.kind, e.nbytes, e.pieces()) for e in self.entries),
        ]
        heads = [(name, shape, kind, nbytes) for name, shape, kind, nbytes, _ in all_of_them]
        done, path = 0, folder / "model.gguf"
        writer, file = gguf_file.begin(path, self.keys, heads, self.tokenizer)
        try:
            for *_, nbytes, pieces in all_of_them:
                for piece in pieces:
                    file.write(np.ascontiguousarray(piece).data)
                    progress(done := done + piece.nbytes, self.nbytes)
                writer.write_padding(file, nbytes)
        finally:
            writer.close()

    def _config(self) -> dict[str, Any]:
        """Return the configuration; to Meta's and GGUF's, metadata and shapes add the rest."""
        config, ours = self.source.config or {}, self._in_gguf()
        if self.to == "mlx":
            config = _spelled_out(config)
        if self.source.names == "hf" or "token_embd.weight" not in ours:
            return config
        name = CLASSES.get(self.family, self.family.capitalize())
        config |= {
            "architectures": [f"{name}ForCausalLM"],
            "intermediate_size": ours["blk.0.ffn_down.weight"].shape[1],
            "vocab_size": ours["token_embd.weight"].shape[0],
            "tie_word_embeddings": "output.weight" not in ours,
            **{field: bias in ours for field, bias in BIASES.get(self.family, {}).items()},
        }
        if self.source.names == "gguf":
            metadata, _ = gguf_file.header(self.source.path)
            config |= gguf_file.shapes_of(metadata, self.family) | ALWAYS.get(self.family, {})
        return config

    def turns(self, there: Checkpoint) -> None:
        """Raise ValueError unless a GGUF's numbers ask for the rotation that the source has."""
        if there.names != "gguf":
            return
        ours, (found, *_) = self.parts[0], rope_of(there.config or {}).to_dict()["parts"]
        for key in () if ours["dynamic"] else ("head_dim", "width", "attention_factor", "inv_freq"):
            was, is_now = (np.asarray(one[key]) for one in (ours, found))
            if was.shape != is_now.shape or not np.allclose(was, is_now, rtol=1e-5, atol=0.0):
                words = f"{key} is {was}, and would be {is_now} in the GGUF. Nothing is written"
                raise broken(self.source.path, words)

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
