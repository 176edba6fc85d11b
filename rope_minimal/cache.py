"""A key-value cache for decoding, and the operations on rotated keys: keep, drop, move.

A cached key is already rotated by its position, ``R_m k``. Because ``R_delta R_m k = R_{m+delta}
k``, it can be moved without the token that it came from. A *slot* is an index into the cache, a
*position* an angle: they differ after a drop, a move, padding or positions that the caller gave.
"""

from typing import Any

import torch
from torch import Tensor, nn

from .checks import (
    check_count,
    check_flag,
    check_float,
    check_mask,
    check_range,
    check_x,
    integers,
)
from .rotation import RotaryEmbedding, apply_rope

__all__ = ["KVCache", "move_keys"]


def move_keys(keys: Tensor, delta: int | Tensor, rope: RotaryEmbedding) -> Tensor:
    """Move rotated keys by ``delta`` positions: ``R_delta R_m k = R_{m + delta} k``.

    Parameters
    ----------
    keys
        Keys that ``rope`` has rotated, floating point, shape (..., T, D). They are not changed.
    delta
        Positions to move by, negative towards the start: an integer, or integers of shape
        (B or 1, T or 1) for keys of shape (B, ..., T, D); absolute value < ``max_seq_len``.
    rope
        The rotation of the keys; its table is used.

    Returns
    -------
    Tensor of the shape and type of ``keys``
        16-bit keys are moved in float32 and rounded once more. For keys in float64 use a ``rope``
        in float64.
    """
    check_rope(rope)
    check_x(keys, "keys", rope.dim)
    delta = _delta(delta, keys)
    cos, sin = rope.gather("abs(delta)", delta.abs())
    sin = sin * delta.sign().unsqueeze(-1)  # R_{-delta} has the opposite sine
    return apply_rope(keys, cos, sin, interleaved=rope.interleaved)


class KVCache:
    """Keys and values of one attention layer for the tokens so far, in preallocated memory.

    Parameters
    ----------
    batch_size
        Rows of the memory: tensors of shape (batch_size, num_kv_heads, max_seq_len, head_dim).
    num_kv_heads
        Heads of keys and values.
    max_seq_len
        Slots of a row: tokens that it can hold.
    head_dim
        Channels of a key.
    v_head_dim
        Channels of a value; ``head_dim`` by default.
    dtype, device
        Type and device of the keys that will be stored.
    rope
        The rotation of the keys, which `shift` and ``raw`` need. For keys in float64 use a ``rope``
        in float64.
    raw
        Store keys before their rotation, and rotate them whenever they are read (StreamingLLM).

    Notes
    -----
    A call that raises leaves the cache as it was. Its tensors are views, valid until the next call.
    Use one cache for each layer. The range of positions is checked in eager calls on the CPU only.
    """

    def __init__(
        self,
        batch_size: int,
        num_kv_heads: int,
        max_seq_len: int,
        head_dim: int,
        *,
        v_head_dim: int | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
        rope: RotaryEmbedding | None = None,
        raw: bool = False,
    ) -> None:
        check_flag("raw", raw)
        rows, slots = check_count("batch_size", batch_size), check_count("max_seq_len", max_seq_len)
        heads = check_count("num_kv_heads", num_kv_heads)
        least = check_rope(rope).dim if raw or rope is not None else 1
        width = check_count("head_dim", head_dim, least)
        v_width = width if v_head_dim is None else check_count("v_head_dim", v_head_dim)
        self._keys = torch.zeros(rows, heads, slots, width, dtype=dtype, device=device)
        self._values = self._keys.new_zeros(rows, heads, slots, v_width)
        self._position_ids = self._keys.new_zeros(rows, slots, dtype=torch.long)
        self._padding = self._keys.new_zeros(rows, slots, dtype=torch.bool)
        self.max_seq_len, self.rope, self.raw = slots, rope, raw
        self.reset()

    @property
    def keys(self) -> Tensor:
        """The rotated keys, (batch_size, num_kv_heads, length, head_dim)."""
        return self._rotated(self.length)

    @property
    def stored_keys(self) -> Tensor:
        """The keys in memory, of the shape of `keys`; not rotated where ``raw``."""
        return self._keys[:, :, : self.length]

    @property
    def values(self) -> Tensor:
        """The values, (batch_size, num_kv_heads, length, v_head_dim)."""
        return self._values[:, :, : self.length]

    @property
    def position_ids(self) -> Tensor:
        """The position of every slot, (batch_size, length), int64; 0 for padding."""
        return self._position_ids[:, : self.length]

    @property
    def padding(self) -> Tensor:
        """True where a slot is padding, (batch_size, length)."""
        return self._padding[:, : self.length]

    @property
    def next_position(self) -> Tensor:
        """One past the largest position in each row, 0 in an empty one: (batch_size, 1), int64."""
        ids = self.position_ids.masked_fill(self.padding, -1)
        return nn.functional.pad(ids, (1, 0), value=-1).amax(dim=-1, keepdim=True) + 1

    def reset(self) -> None:
        """Remove every token; the memory stays."""
        self.length = 0  # slots in use, padding included
        self._padded = False

    def append(
        self,
        keys: Tensor,
        values: Tensor,
        position_ids: Tensor,
        key_padding_mask: Tensor | None = None,
    ) -> None:
        """Store keys and values that were computed elsewhere.

        Parameters
        ----------
        keys, values
            Shapes (batch_size, num_kv_heads, T, head_dim) and (..., v_head_dim). Keys are rotated
            by ``position_ids``, or not at all where the cache is ``raw``: copy `keys` of another
            cache into one that is not raw, and its `stored_keys` from raw to raw.
        position_ids
            Integers of shape (batch_size or 1, T), >= 0.
        key_padding_mask
            True where a slot is padding, (batch_size, T): the `padding` of another cache.
        """
        ids = integers("position_ids", position_ids, self._keys.device)
        rows, n = len(self._keys), ids.shape[-1] if ids.ndim else 0
        if ids.ndim != 2 or len(ids) not in (1, rows):
            raise ValueError(
                f"position_ids must have shape (batch_size or 1, T) for batch_size = {rows}, "
                f"got {tuple(ids.shape)}"
            )
        for name, value, memory in (("keys", keys, self._keys), ("values", values, self._values)):
            check_float(name, value)
            shape = (*memory.shape[:2], n, memory.shape[-1])
            if tuple(value.shape) != shape:
                raise ValueError(f"{name} must have shape {shape}, got {tuple(value.shape)}")
        self.check_storable(keys=keys, values=values)
        if key_padding_mask is not None:
            check_mask("key_padding_mask", key_padding_mask, "(B, T)", [(rows, n)])
        check_range("position_ids", ids, self._positions)
        self.check_room(n)
        self._write(keys, values, ids, key_padding_mask)
        self._advance(n, key_padding_mask)

    def roll_back(self, n: int) -> None:
        """Remove the ``n`` newest slots of every row, as when a draft is rejected.

        The next token then gets the position after the largest that is left.
        """
        n = check_count("n", n, least=0)
        if n > self.length:
            raise ValueError(f"n must be <= length = {self.length}, got {n}")
        self.length -= n

    def drop(self, start: int, stop: int) -> None:
        """Remove the slots ``start .. stop - 1`` of every row; later slots move up.

        Positions do not change, and no key is rotated; `shift` closes the gap. The oldest n slots
        are ``drop(0, n)``.
        """
        start, stop = self._span(start, stop)
        end = self.length - (stop - start)
        for memory in (self._keys, self._values, self._position_ids, self._padding):
            slots = memory.movedim(2, 1) if memory.ndim == 4 else memory  # (B, slots, ...)
            slots[:, start:end] = slots[:, stop : self.length].clone()
        self.length = end

    def shift(self, delta: int | Tensor, start: int = 0, stop: int | None = None) -> None:
        """Move the slots ``start .. stop - 1`` by ``delta`` positions, and their keys with them.

        Rotated keys are rotated, and rounded, once more (`move_keys`); raw keys do not change.

        Parameters
        ----------
        delta
            An integer, or integers of shape (batch_size or 1, stop - start or 1).
        start, stop
            Slots; to the end by default. Padding has no position to move.
        """
        start, stop = self._span(start, self.length if stop is None else stop)
        if self.rope is None:
            raise ValueError("shift needs the rotation of the keys: make the cache with rope=...")
        keys, ids = self._keys[:, :, start:stop], self._position_ids[:, start:stop]
        moved = (ids + _delta(delta, keys).squeeze(1)).masked_fill(self._padding[:, start:stop], 0)
        check_range("positions moved by delta", moved, self._positions)
        if not self.raw:
            moved_keys = move_keys(keys, delta, self.rope)
            self.check_storable(keys=moved_keys)
            keys.copy_(moved_keys)
        ids.copy_(moved)

    def check_room(self, n: int) -> None:
        """Raise unless ``n`` more tokens fit."""
        if self.length + n > self.max_seq_len:
            raise ValueError(
                f"cache holds {self.length} of max_seq_len = {self.max_seq_len} tokens: "
                f"no room for {n} more"
            )

    def check_storable(self, **tensors: Tensor) -> None:
        """Raise unless the tensors have the cache's type and require no gradient."""
        for name, tensor in tensors.items():
            if tensor.dtype != self._keys.dtype:
                raise ValueError(
                    f"cache holds {self._keys.dtype}, but the {name} are {tensor.dtype}"
                )
            if tensor.requires_grad:
                raise ValueError(
                    f"cache holds no gradient, but the {name} require one: "
                    "decode under torch.no_grad(), or detach them"
                )

    @property
    def _positions(self) -> int:
        """Positions that a key may have."""
        return 2**62 if self.rope is None else self.rope.max_seq_len

    def _span(self, start: int, stop: int) -> tuple[int, int]:
        """Return the slots as ints; raise unless ``0 <= start <= stop <= length``."""
        start, stop = check_count("start", start, least=0), check_count("stop", stop, least=0)
        if not start <= stop <= self.length:
            raise ValueError(
                f"start and stop must be in order and <= length = {self.length}, "
                f"got {start} and {stop}"
            )
        return start, stop

    def _rotated(self, end: int) -> Tensor:
        """Return the rotated keys of the first slots."""
        if not self.raw:
            return self._keys[:, :, :end]
        assert self.rope is not None
        return self.rope(self._keys[:, :, :end], position_ids=self._position_ids[:, :end])

    def _write(
        self, k: Tensor, v: Tensor, position_ids: Tensor, padding: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Write past the end; return rotated keys, values and padding up to the new end."""
        end = self.length + k.shape[-2]
        new = slice(self.length, end)
        self._keys[:, :, new], self._values[:, :, new] = k, v
        self._position_ids[:, new] = position_ids
        self._padding[:, new] = False if padding is None else padding
        if padding is not None:
            self._position_ids[:, new].masked_fill_(padding, 0)
        all_padding = self._padding[:, :end] if self._padded or padding is not None else None
        return self._rotated(end), self._values[:, :, :end], all_padding

    def _advance(self, n: int, padding: Tensor | None) -> None:
        """Make what was written part of the cache: the last step of a call that succeeded."""
        self.length += n
        self._padded = self._padded or padding is not None


def check_cache(cache: Any, x: Tensor, layer: Any) -> None:
    """Raise unless ``cache`` has the sizes and the rotation that ``layer`` needs for ``x``."""
    if not isinstance(cache, KVCache):
        raise TypeError(f"cache must be a KVCache, got {type(cache).__name__}")
    names = ("batch size", "num_kv_heads", "head_dim", "v_head_dim")
    sizes = (*cache._keys.shape[:2], cache._keys.shape[-1], cache._values.shape[-1])
    for name, has, needs in zip(names, sizes, (len(x), *layer.cache_shape), strict=True):
        if has != needs:
            raise ValueError(f"cache has {name} {has}, but the call needs {needs}")
    if cache.rope is not None and str(cache.rope) != str(layer.rope):
        raise ValueError(f"cache has the rotation {cache.rope}, but the call needs {layer.rope}")


def check_rope(rope: Any) -> RotaryEmbedding:
    """Return ``rope``; raise unless it is a `RotaryEmbedding`."""
    if not isinstance(rope, RotaryEmbedding):
        raise TypeError(f"rope must be a RotaryEmbedding, got {type(rope).__name__}")
    return rope


def _delta(delta: Any, keys: Tensor) -> Tensor:
    """Return ``delta`` as an index for keys (B, ..., T, D): shape (B or 1, 1, ..., T)."""
    delta, lead, length = integers("delta", delta, keys.device), keys.shape[:-2], keys.shape[-2]
    if delta.ndim == 0:
        return delta.expand(*(1 for _ in lead), length)
    fits = lead and delta.ndim == 2 and len(delta) in (1, lead[0])
    if not fits or delta.shape[1] not in (1, length):
        raise ValueError(
            "delta must be an integer, or integers of shape (B or 1, T or 1) for keys "
            f"(B, ..., T, D), got shape {tuple(delta.shape)} and {tuple(keys.shape)}"
        )
    return delta.expand(-1, length).reshape(len(delta), *(1 for _ in lead[1:]), length)
