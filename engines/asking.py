"""Ask one function of a runtime: what it rotates, how far it holds, what a rule becomes there."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atlas.rows import report_row, short
from ropescope import Report, identify

__all__ = [
    "BASE", "FAR", "HEAD_DIM", "LONG", "ORIGINAL", "RULES", "Case", "call", "compared", "hear",
    "reference", "said",
]  # fmt: skip

FAR = (2_047, 2_049, 4_097, 32_769, 131_071, 1_000_003)
"""Positions at which angles are compared with position times frequency in float64."""

HEAD_DIM, BASE, ORIGINAL, LONG = 64, 1e4, 4096, 16384
"""Rules are asked of a head of 64 with base 10,000, trained on 4,096 positions, up to 16,383."""

_YARN: dict[str, Any] = {"rope_type": "yarn", "factor": 4.0}
_WAVES = np.linspace(1.0, 3.0, HEAD_DIM // 2)

RULES: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "llama3": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    },
    "yarn": _YARN,
    "yarn, attention_factor 1": _YARN | {"attention_factor": 1.0},
    "yarn, mscale 0.707": _YARN | {"mscale": 0.707},
    "yarn, mscale 1 over 1": _YARN | {"mscale": 1.0, "mscale_all_dim": 1.0},
    "yarn, mscale 1 over 0.707": _YARN | {"mscale": 1.0, "mscale_all_dim": 0.707},
    "yarn, no truncation": _YARN | {"truncate": False},
    "yarn, beta 16 and 2": _YARN | {"beta_fast": 16.0, "beta_slow": 2.0},
    "longrope": {
        "rope_type": "longrope", "factor": 4.0,
        "short_factor": _WAVES.tolist(), "long_factor": (_WAVES * 2.0).tolist(),
    },
}  # fmt: skip
"""Rules as a ``config.json`` has them, without base and trained length."""


@dataclass(frozen=True)
class Case:
    """One function with one set of options.

    Attributes
    ----------
    function, options
        As one calls it.
    rotate
        ``rotate(x, positions)`` as `ropescope.identify` asks it.
    head_dim, positions, dtype
        As `identify` takes them.
    note
        What has to be known besides.
    """

    function: str
    options: str
    rotate: Callable[[Any, Any], Any]
    head_dim: int = HEAD_DIM
    positions: int | tuple[int, ...] = 2**17
    dtype: Any = np.float32
    note: str | None = None


def hear(case: Case, lists: list[Any]) -> dict[str, Any]:
    """Return a case and the report on it as a row; its frequencies are added to ``lists``."""
    began = time.perf_counter()
    report = identify(case.rotate, case.head_dim, positions=case.positions, dtype=case.dtype)
    return {
        "function": case.function,
        "options": case.options,
        "given": report.probed.split(",")[0],
        "note": case.note,
        **report_row(report, lists),
        "far": far_off(case, report),
        "apart_at_2_24": apart(case, report),
        "seconds": round(time.perf_counter() - began, 1),
    }


def call(rotate: Callable[..., Any], x: np.ndarray, at: Sequence[int], dtype: Any) -> np.ndarray:
    """Return x (N, D), each row rotated at T positions, (N, T, D) in float64."""
    where = np.asarray(at, np.int64)
    x = np.repeat(x[:, None], len(where), axis=1)
    if "torch" not in str(dtype):
        return np.asarray(rotate(x.astype(dtype), where), np.float64)
    import torch

    y = rotate(torch.tensor(x, dtype=dtype), torch.tensor(where))
    return y.detach().double().numpy()


def said(error: BaseException) -> str:
    """Return an exception's type and the beginning of its message."""
    words = " ".join(str(error).split())[:140]
    return f"{type(error).__name__}{': ' * bool(words)}{words}"


def far_off(case: Case, report: Report) -> dict[str, Any]:
    """Return by how many radians angles miss position times frequency, at each of `FAR`.

    Frequencies are those of the plain series that was identified, in float64: what a runtime
    rounds its own to counts, too. Where a call fails, its message stands in place of the number.
    """
    if report.rescaling or not report.base or report.axes > 1 or not report.is_rotation:
        return {}
    exact = report.base ** (-2.0 * np.arange(report.width // 2) / report.width)
    if not np.allclose(exact, report.inv_freq, rtol=1e-2, atol=0.0):
        return {}
    pairs, written = np.array(report.pairs), np.array(report.written)
    x = np.zeros((1, case.head_dim))
    x[0, pairs[:, 0]] = 1.0
    found: dict[str, Any] = {}
    for position in FAR:
        try:
            y = call(case.rotate, x, [position], case.dtype)[0, 0]
        except Exception as error:  # whatever a runtime raises
            found[str(position)] = said(error)
            continue
        angles = np.arctan2(y[written[:, 1]], y[written[:, 0]]) * (report.direction or 1)
        off = (angles - position * exact + math.pi) % (2 * math.pi) - math.pi
        most = float(np.abs(off).max())
        found[str(position)] = short(most, 2) if math.isfinite(most) else "not a number"
    return found


def apart(case: Case, report: Report) -> bool | None:
    """Return whether positions 2**24 and 2**24 + 1 are rotated differently; None if not at all."""
    if report.axes > 1 or not report.is_rotation:
        return None
    x = np.eye(case.head_dim)[report.pairs[0][0]][None]
    try:
        one, two = (call(case.rotate, x, [2**24 + n], case.dtype) for n in (0, 1))
    except Exception:  # whatever a runtime raises
        return None
    return bool(np.isfinite(one).all()) and bool(np.abs(one - two).max() > 0.1)


def reference(name: str) -> tuple[np.ndarray, float]:
    """Return transformers' frequencies and attention factor for a rule."""
    import torch
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rule = RULES[name] | {"rope_theta": BASE, "original_max_position_embeddings": ORIGINAL}
    config = LlamaConfig(
        hidden_size=4 * HEAD_DIM, num_attention_heads=4, rope_parameters=rule,
        max_position_embeddings=ORIGINAL if name == "dynamic" else LONG,
    )  # fmt: skip
    length = LONG if name in ("dynamic", "longrope") else None
    waves, factor = ROPE_INIT_FUNCTIONS[rule["rope_type"]](config, torch.device("cpu"), length)
    return waves.double().numpy(), float(factor)


def compared(name: str, make: Callable[[dict[str, Any]], Case]) -> dict[str, Any]:
    """Return what a rule becomes in a runtime, against transformers.

    Parameters
    ----------
    name
        A key of `RULES`.
    make
        Returns the case of a rule's parameters, or raises where the runtime has no such rule.
    """
    began = time.perf_counter()
    try:
        case = make(RULES[name])
        if name in ("dynamic", "longrope"):
            return {"rule": name, **_by_length(case, name)}
        report = identify(case.rotate, case.head_dim, positions=LONG, dtype=case.dtype)
    except Exception as error:  # whatever a runtime raises
        return {"rule": name, "refused": said(error)}
    if not report.inv_freq.size:
        return {"rule": name, "refused": report.findings[0].message}
    waves, factor = reference(name)
    off = np.abs(report.inv_freq / waves - 1.0)
    return {
        "rule": name,
        "layout": report.layout,
        "frequencies_off": short(float(off.max()), 2),
        "factor": short(report.attention_factor),
        "factor_there": short(factor),
        "unrotated_factor": short(report.unrotated_factor) if report.width < HEAD_DIM else None,
        "named": str(report.formulas[0]) if report.formulas else None,
        "options": case.options,
        "seconds": round(time.perf_counter() - began, 1),
    }


def _by_length(case: Case, name: str) -> dict[str, Any]:
    """Return which frequencies turn near and far positions, in a short call and in a long one.

    Each is the frequency of the second pair in parts of the plain one. A table that ends before
    the far position was made at start; what the runtime says of its end stands for the long call.
    """
    report = identify(case.rotate, case.head_dim, positions=64, dtype=case.dtype)
    a, b = report.pairs[1]
    plain = BASE ** (-2.0 / HEAD_DIM)
    x = np.zeros((1, case.head_dim))
    x[0, a] = 1.0

    def speeds(at: list[int]) -> list[float]:
        """Return the speed between positions 2 n and 2 n + 1 of a list."""
        y = call(case.rotate, x, at, case.dtype)[0]
        angles = np.arctan2(y[:, b], y[:, a]) * (report.direction or 1)
        steps = (np.diff(angles)[::2] + math.pi) % (2 * math.pi) - math.pi
        return [short(float(step / plain), 4) for step in steps]

    near, far = [100, 101], [LONG - 2, LONG - 1]
    (alone,) = speeds(near)
    long: list[Any]
    try:
        long = with_far, out = speeds(near + far)
    except IndexError as error:  # it has a table, which ends before
        with_far = out = alone
        long = [said(error)]
    (again,) = speeds(near)
    apart = lambda one, two: abs(one - two) > 1e-3 * abs(two)  # noqa: E731
    if apart(alone, with_far):
        when = "by the length of the call"
    else:
        when = "by the position" if apart(out, with_far) else "at start"
    length = call(case.rotate, np.eye(case.head_dim), [100], case.dtype)[:, 0]
    return {
        "layout": report.layout,
        "when": when,
        "short_call": alone,
        "long_call": long,
        "short_call_after": again,
        "there": short(float(reference(name)[0][1] / plain), 4),
        "factor": short(float(np.linalg.norm(length[a])), 5),
        "factor_there": short(reference(name)[1]),
        "options": case.options,
    }
