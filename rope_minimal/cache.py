"""The cache that decoding needs, and what may be done with the keys in it: keep, drop, move.

A cached key has been turned by its position, ``R_m k``. Positions add where rotations multiply, so
it can be moved without its token: ``R_delta R_m k = R_{m+delta} k``. A *slot* is a place in the
cache and a *position* an angle: the two need not agree. A drop, a move, padding or given positions
part them.
"""

import weakref
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from .checks import (
    check_count,
    check_flag,
    check_float,
    check_floating_dtype,
    check_mask,
    check_range,
    check_x,
    integers,
    moved_to,
)
from .checks import values_may_be_read as may_be_read
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
        (B or 1, T or 1) for keys of shape (B, ..., T, D); in size at most ``max_seq_len - 1``.
        An integer is always checked, a tensor where it lies on the CPU and nothing is compiled.
    rope
        The rotation of the keys, whose table is read: none is made.

    Returns
    -------
    Tensor of the shape and type of ``keys``
        As exact as one rotation: 16-bit keys are moved in float32 and rounded once more. Keys in
        float64 want a ``rope`` in float64.
    """
    check_rope(rope)
    check_x(keys, "keys")
    if keys.device != rope.table.device:
        raise ValueError(f"keys must be on {rope.table.device} as rope is, got {keys.device}")
    if keys.shape[-1] < rope.dim:
        raise ValueError(f"keys must have >= {rope.dim} channels as rope has, got {keys.shape[-1]}")
    delta = _delta(delta, keys, rope)
    cos, sin = rope.at(delta.abs())
    sin = sin * delta.sign().unsqueeze(-1)  # R_{-delta} is R_delta with the other sine
    lead = (*delta.shape[:1], *(1,) * (keys.ndim - 3))[: keys.ndim - 2]
    cos, sin = (t.reshape(*lead, *t.shape[-2:]) for t in (cos, sin))
    return apply_rope(keys, cos, sin, interleaved=rope.interleaved)


class KVCache:
    """Keys and values of one layer for the tokens so far, in memory of a fixed size.

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
        Channels of a value; ``head_dim`` where not given.
    dtype, device
        As those of the keys that will be stored.
    rope
        The rotation of the keys: what `shift` moves them by. Keys in float64 want a ``rope`` in
        float64: one in float32 is exact to seven digits.
    raw
        Store keys as projected, and turn them by ``rope`` whenever they are read (StreamingLLM).

    Notes
    -----
    A call that raises leaves the cache as it was. A cache belongs to the layer that first wrote
    into it, until it is `reset`; a deep copy and a pickled one belong to none. The range of
    positions is checked on the CPU. On an accelerator, and in compiled code, they are not read:
    there `append` and `shift` may store what an eager call refuses.
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
        given = {"batch_size": batch_size, "num_kv_heads": num_kv_heads, "max_seq_len": max_seq_len}
        rows, heads, slots = (check_count(name, size) for name, size in given.items())
        width = check_count("head_dim", head_dim)
        v_width = width if v_head_dim is None else check_count("v_head_dim", v_head_dim)
        check_floating_dtype(dtype)
        check_flag("raw", raw)
        if raw or rope is not None:
            check_count("head_dim", width, least=check_rope(rope).dim)
        self._keys = torch.zeros(rows, heads, slots, width, dtype=dtype, device=device)
        self._values = self._keys.new_zeros(rows, heads, slots, v_width)
        self._position_ids = torch.zeros(rows, slots, dtype=torch.long, device=device)
        self._padding = torch.zeros(rows, slots, dtype=torch.bool, device=device)
        if rope is not None and rope.table.device != self._keys.device:
            raise ValueError(
                f"rope must be on {self._keys.device} as the cache is, got {rope.table.device}"
            )
        self._rope, self._raw = rope, bool(raw)
        self.reset()

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the layer: what is copied or pickled belongs to none."""
        return self.__dict__ | {"_layer": None}

    def __copy__(self) -> NoReturn:
        """Refuse a copy that would write into the same memory."""
        raise TypeError("a copy of a cache would share its memory: use copy.deepcopy")

    @property
    def max_seq_len(self) -> int:
        """Slots of a row."""
        return self._keys.shape[2]

    @property
    def rope(self) -> RotaryEmbedding | None:
        """The rotation of the keys, None where it is not known."""
        return self._rope

    @property
    def raw(self) -> bool:
        """Whether keys are stored as projected."""
        return self._raw

    @property
    def length(self) -> int:
        """Slots in use, padding included. It cannot be set: see `roll_back`."""
        return self._length

    @property
    def keys(self) -> Tensor:
        """The rotated keys, (batch_size, num_kv_heads, length, head_dim); raw ones turned now.

        Otherwise a view, valid until the next call: ``clone`` it to keep it. What this returns is
        turned, and does not go into a raw cache: `stored_keys` do.
        """
        return self._rotated(self.length)

    @property
    def stored_keys(self) -> Tensor:
        """The keys as they are stored, not rotated where ``raw``: a view, as `values` is."""
        return self._keys[:, :, : self.length]

    @property
    def values(self) -> Tensor:
        """The values stored, (batch_size, num_kv_heads, length, v_head_dim).

        A view, valid until the next call: ``clone`` it to keep it.
        """
        return self._values[:, :, : self.length]

    @property
    def position_ids(self) -> Tensor:
        """A copy of the position of every slot, (batch_size, length), int64; 0 for padding."""
        return self._position_ids[:, : self.length].clone()

    @property
    def padding(self) -> Tensor:
        """A copy of what is padding, (batch_size, length), True where a slot holds none."""
        return self._padding[:, : self.length].clone()

    @property
    def next_position(self) -> Tensor:
        """One past the largest position in each row, 0 in an empty one: (batch_size, 1), int64."""
        ids = self._position_ids[:, : self.length].masked_fill(self._padding[:, : self.length], -1)
        return nn.functional.pad(ids, (1, 0), value=-1).amax(dim=-1, keepdim=True) + 1

    def reset(self) -> None:
        """Forget every token, and whose they were; the memory stays."""
        self._length, self._padded = 0, False
        self._layer: weakref.ref[nn.Module] | None = None

    def append(
        self,
        keys: Tensor,
        values: Tensor,
        position_ids: Tensor,
        key_padding_mask: Tensor | None = None,
    ) -> None:
        """Store keys and values that were made elsewhere: no other slot is read or changed.

        Parameters
        ----------
        keys, values
            Shapes (batch_size, num_kv_heads, T, head_dim) and (.., v_head_dim). Keys are rotated
            by ``position_ids``, or not at all where the cache is ``raw``. From another cache of
            the layer take its `keys`, or from raw to raw its `stored_keys`: what `keys` returns is
            turned, and does not go into a raw cache.
        position_ids
            Integers of shape (batch_size or 1, T), >= 0.
        key_padding_mask
            True where a slot is padding, (batch_size, T): the `padding` of another cache.
        """
        ids, padding = integers("position_ids", position_ids, "cpu"), key_padding_mask
        rows, heads, _, width = self._keys.shape
        if ids.ndim != 2 or ids.shape[0] not in (1, rows):
            raise ValueError(
                f"position_ids must have shape (batch_size or 1, T) for batch_size = {rows}, "
                f"got {tuple(ids.shape)}"
            )
        n = ids.shape[1]
        for name, value, wide in (
            ("keys", keys, width),
            ("values", values, self._values.shape[-1]),
        ):
            check_float(name, value)
            if tuple(value.shape) != (rows, heads, n, wide):
                raise ValueError(
                    f"{name} must have shape {(rows, heads, n, wide)} for position_ids (.., {n}), "
                    f"got {tuple(value.shape)}"
                )
        self.check_storable(keys=keys, values=values)
        if padding is not None:
            shapes = [(rows, n)]
            check_mask("key_padding_mask", padding, "(B, T)", shapes, self._keys, "the cache")
        self._check_positions("position_ids", ids)
        self.check_room(n)
        ids = moved_to(self._keys.device, "position_ids", ids)
        self._write(keys, values, ids, padding)
        self._advance(n, padding)

    def roll_back(self, n: int) -> None:
        """Forget the ``n`` newest slots of every row, as when a draft is rejected.

        The next token then gets the position after the largest that is left.
        """
        n = check_count("n", n, least=0)
        if n > self.length:
            raise ValueError(f"n must be <= length = {self.length}, got {n}")
        self._length -= n

    def drop(self, start: int, stop: int) -> None:
        """Forget the slots ``start .. stop - 1`` of every row; what is after them moves up.

        What is left keeps its positions: keys are copied, not turned. `shift` closes the gap.
        The oldest n are ``drop(0, n)``.
        """
        start, stop = self._span(start, stop)
        end = self.length - (stop - start)
        memory = (self._keys, self._values, self._position_ids, self._padding)
        kept = [m.narrow(_slots(m), stop, self.length - stop).clone() for m in memory]
        for m, rest in zip(memory, kept, strict=True):
            m.narrow(_slots(m), start, end - start).copy_(rest)
        self._length = end

    def shift(self, delta: int | Tensor, start: int = 0, stop: int | None = None) -> None:
        """Move the slots ``start .. stop - 1`` by ``delta`` positions, and their keys with them.

        Turned keys are turned once more, and rounded once more, by `move_keys`; for raw ones only
        the count changes.

        Parameters
        ----------
        delta
            An integer, or integers of shape (batch_size or 1, stop - start or 1).
        start, stop
            Slots, to the end where ``stop`` is not given. What is padding has no position to move.
        """
        start, stop = self._span(start, self.length if stop is None else stop)
        if self.rope is None:
            raise ValueError(
                "shift needs the rotation of the keys: give the cache rope=..., got None"
            )
        keys, ids = self._keys[:, :, start:stop], self._position_ids[:, start:stop]
        delta = _delta(delta, keys, self.rope)
        moved_ids = (ids + delta).masked_fill(self._padding[:, start:stop], 0)
        self._check_positions("positions moved by delta", moved_ids)
        if not self.raw:
            moved = move_keys(keys, delta, self.rope)
            self.check_storable(keys=moved)  # a table that learns brings a gradient
            keys.copy_(moved)
        ids.copy_(moved_ids)

    def check_room(self, n: int) -> None:
        """Raise unless ``n`` more tokens fit."""
        if self.length + n > self.max_seq_len:
            raise ValueError(
                f"cache holds {self.length} of max_seq_len = {self.max_seq_len} tokens: "
                f"no room for {n} more"
            )

    def check_storable(self, **tensors: Tensor) -> None:
        """Raise unless the tensors have the cache's type and device, and bring no gradient."""
        for name, tensor in tensors.items():
            if (tensor.dtype, tensor.device) != (self._keys.dtype, self._keys.device):
                raise ValueError(
                    f"cache holds {self._keys.dtype} on {self._keys.device}, "
                    f"but the {name} are {tensor.dtype} on {tensor.device}"
                )
            if tensor.requires_grad:
                made = torch.is_grad_enabled() and not tensor.is_leaf
                do = "decode under torch.no_grad()" if made else "detach them"
                raise ValueError(f"cache holds no gradient: the {name} require a gradient: {do}")

    def _span(self, start: int, stop: int) -> tuple[int, int]:
        """Return the slots as ints; raise unless they are in use, in this order."""
        start, stop = check_count("start", start, least=0), check_count("stop", stop, least=0)
        if not start <= stop <= self.length:
            raise ValueError(
                f"start and stop must be in order, up to length = {self.length}, "
                f"got {start} and {stop}"
            )
        return start, stop

    def _check_positions(self, name: str, ids: Tensor) -> None:
        """Raise unless the positions are counted from 0, and within the table of ``rope``."""
        if self.rope is not None:
            check_range(name, ids, self.rope.max_seq_len, "max_seq_len-1")
        else:  # how far it goes is not known; the count of the next one must not wrap
            check_range(name, ids, 2**62, "2**62-1")

    def _rotated(self, end: int) -> Tensor:
        """Return the first slots' keys as attention reads them."""
        keys = self._keys[:, :, :end]
        if not self.raw:
            return keys
        assert self.rope is not None
        return self.rope(keys, position_ids=self._position_ids[:, :end])

    def _write(
        self, k: Tensor, v: Tensor, position_ids: Tensor, padding: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Write past the end, and return all keys, values and padding up to the new end."""
        new = slice(self.length, self.length + k.shape[-2])
        self._keys[:, :, new], self._values[:, :, new] = k, v
        self._position_ids[:, new] = position_ids.long()
        self._padding[:, new] = False if padding is None else padding
        if padding is not None:
            self._position_ids[:, new].masked_fill_(padding, 0)
        padded = self._padded or padding is not None
        return (
            self._rotated(new.stop),
            self._values[:, :, : new.stop],
            self._padding[:, : new.stop] if padded else None,
        )

    def _advance(self, n: int, padding: Tensor | None, layer: nn.Module | None = None) -> None:
        """Make what was written part of the cache: the last step of a call that succeeded."""
        self._length += n
        self._padded = self._padded or padding is not None
        if layer is not None:
            self._layer = weakref.ref(layer)


def check_cache(cache: Any, x: Tensor, layer: Any) -> None:
    """Raise unless ``cache`` is one for ``x``, and for keys as ``layer`` makes and turns them."""
    if not isinstance(cache, KVCache):
        raise TypeError(f"cache must be a KVCache, got {type(cache).__name__}")
    if cache._layer is not None and cache._layer() is not layer:
        raise ValueError("cache belongs to another layer: one cache per layer")
    if cache._keys.device != x.device:
        raise ValueError(f"cache must be on {x.device} as x is, got {cache._keys.device}")
    names = ("batch size", "num_kv_heads", "head_dim", "v_head_dim")
    sizes = (*cache._keys.shape[:2], cache._keys.shape[-1], cache._values.shape[-1])
    for name, has, needs in zip(names, sizes, (len(x), *layer.cache_shape), strict=True):
        if has != needs:
            raise ValueError(f"cache has {name} {has}, but the call needs {needs}")
    if cache.rope is not None and cache.rope is not layer.rope:
        _check_alike(cache.rope, layer.rope)


def _check_alike(rope: RotaryEmbedding, other: RotaryEmbedding) -> None:
    """Raise unless ``rope``, that of a cache, turns keys as the layer's ``other`` does."""
    has, needs = (
        f"dim={each.dim}, base={float(each.base)}, interleaved={bool(each.interleaved)}, "
        f"max_seq_len={each.max_seq_len}"
        for each in (rope, other)
    )
    if has != needs:
        raise ValueError(f"cache has the rotation {has}, but the call needs {needs}")
    # the angles of position 1
    rows = [torch.cat([t[1:2] for t in each.buffers()], -1).float() for each in (rope, other)]
    same_table = not all(map(may_be_read, rows)) or torch.equal(*rows)
    if type(rope) is not type(other) or not same_table:
        raise ValueError(
            f"cache has a rotation of another type or table than the layer's, {rope} and {other}"
        )


def check_rope(rope: Any) -> RotaryEmbedding:
    """Return ``rope``; raise unless it is a rotation."""
    if not isinstance(rope, RotaryEmbedding):
        raise TypeError(f"rope must be a RotaryEmbedding, got {type(rope).__name__}")
    return rope


def _delta(delta: Any, keys: Tensor, rope: RotaryEmbedding) -> Tensor:
    """Return ``delta`` of shape (1 or B, T) on the device of ``keys``; raise if it misfits them."""
    given, delta = delta, integers("delta", delta, "cpu")
    shape, length = tuple(delta.shape), keys.shape[-2]
    fits = len(shape) == 2 and keys.ndim > 2 and shape[0] in (1, len(keys))
    if shape and not (fits and shape[1] in (1, length)):
        raise ValueError(
            "delta must be an integer, or integers of shape (B or 1, T or 1) for keys "
            f"(B, ..., T, D) of shape {tuple(keys.shape)}, got shape {shape}"
        )
    ends, most = [], rope.max_seq_len - 1
    if isinstance(given, int):  # compiled code too knows it
        ends = [given]
    elif may_be_read(delta) and delta.numel():
        ends = [delta.min().item(), delta.max().item()]
    for end in ends:
        if not -most <= end <= most:
            raise ValueError(
                f"delta must be in {-most}..{most}, for max_seq_len = {rope.max_seq_len}, got {end}"
            )
    delta = moved_to(keys.device, "delta", delta).long()
    return delta.expand(shape[0] if shape else 1, length)


def _slots(memory: Tensor) -> int:
    """Return the axis of a memory that counts slots: (B, H, slots, D) or (B, slots)."""
    return 2 if memory.ndim == 4 else 1
