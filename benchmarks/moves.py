"""Time of operations on a key cache, relative to a copy of the keys.

Every call is compared with the definition first; a wrong one is an error here, for all are ours.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from rope_minimal import KVCache, RotaryEmbedding, move_keys, rotate_complex
from ropebook.timing import compare

KEYS, SMALL = (1, 8, 4096, 128), (1, 2, 512, 64)
BY = 256  # positions that keys are moved by, and slots that are dropped
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 2**-5}


def calls(
    shape: tuple[int, ...], dtype: torch.dtype, device: str
) -> dict[str, tuple[Callable[[], Any], int]]:
    """Return the timed calls, each with its number of repetitions per call."""
    x = torch.randn(shape, generator=torch.manual_seed(0)).to(device, dtype)
    batch, heads, length, width = shape
    out = torch.empty_like(x)
    made = {"copy_": (lambda: out.copy_(x), 1)}
    at = torch.arange(BY, BY + length, device=device)[None]
    for layout in ("half-split", "interleaved"):
        rope = RotaryEmbedding(width, length + BY, interleaved=layout == "interleaved").to(device)
        turned, raw = (
            KVCache(batch, heads, length, width, dtype=dtype, device=device, rope=rope, raw=raw)
            for raw in (False, True)
        )
        for cache in (turned, raw):
            cache.append(x, x, at)
        _check(move_keys(x, -BY, rope), x, -BY * np.ones(length), rope)
        _check(raw.keys, x, at[0].cpu().numpy(), rope)

        def there_and_back(cache: KVCache = turned) -> None:
            cache.shift(-BY)
            cache.shift(BY)

        made |= {
            f"move_keys, {layout}": (lambda rope=rope: move_keys(x, -BY, rope), 1),
            f"KVCache.shift, {layout}": (there_and_back, 2),
            f"raw keys read, {layout}": (lambda cache=raw: cache.keys, 1),
        }

    def drop(cache: KVCache = raw) -> None:
        cache.drop(0, BY)
        cache.length = length  # the next call finds as many

    return made | {"KVCache.drop, keys and values": (drop, 1)}


def measure(device: str, seconds: float, quick: bool = False) -> list[dict[str, Any]]:
    """Return the entries of the results file, one per dtype."""
    shape, found = SMALL if quick else KEYS, []
    for dtype in (torch.float32,) if quick else (torch.float32, torch.bfloat16):
        made = calls(shape, dtype, device)
        run = {name: call for name, (call, _) in made.items()}
        start = time.perf_counter()
        for call in run.values():
            call()
        rounds = int(np.clip(seconds / (time.perf_counter() - start + 1e-3 * len(run)), 5, 25))
        timings = compare(run, "copy_", rounds=rounds, cold=not quick, device=device)
        rows = [_row(name, timings[name], times) for name, (_, times) in made.items()]
        found.append({"shape": list(shape), "dtype": str(dtype).split(".")[1], "rows": rows})
    return found


def table(entry: dict[str, Any]) -> str:
    """Format one entry."""
    lines = [f"\na cache of keys {tuple(entry['shape'])} {entry['dtype']}, in copies of its keys"]
    for row in entry["rows"]:
        span = f"{row['ratio_low']:.2f} to {row['ratio_high']:.2f}"
        lines.append(f"  {row['call']:40} {row['us']:12.1f} us {row['ratio']:8.2f} ({span})")
    return "\n".join(lines)


def _row(name: str, timing: Any, times: int) -> dict[str, Any]:
    names = ("us", "ratio", "ratio_low", "ratio_high")
    return {"call": name, **{n: round(getattr(timing, n) / times, 4) for n in names}}


def _check(y: torch.Tensor, x: torch.Tensor, by: np.ndarray, rope: RotaryEmbedding) -> None:
    """Raise unless ``y`` is ``x`` rotated by ``by`` positions."""
    given, made = (t[0, 0].double().cpu().numpy() for t in (x, y))
    error = abs(made - rotate_complex(given, by, interleaved=rope.interleaved)).max()
    if not error <= TOLERANCE[x.dtype] * abs(given).max():
        raise ArithmeticError(f"off by {error:.2g}: not timed")
