"""The record of other runtimes: ``atlas/results/engines.json``.

``heard``
    By runtime. ``name``, ``version``, ``licence``, ``megabytes`` installed, ``seconds`` to ask it;

    ``rotations``
        One for each function and set of options that was asked: ``function`` and ``options`` as one
        calls it, the kind of array that was ``given``, a ``note``, the fields of a rotation of
        `atlas`, and ``far``: at each position the radians by which the angle misses position times
        frequency in float64, or what the runtime said instead; ``apart_at_2_24``: whether 2**24
        and the position after it are rotated differently, None where they are not rotated.
    ``rules``
        What the rules of `engines.asking.RULES` become there, and in which ``layout``:
        ``frequencies_off`` is the largest
        relative difference from transformers, ``factor`` the attention factor that was heard and
        ``factor_there`` transformers', or ``refused`` the runtime's own words. Of dynamic NTK and
        LongRoPE ``when`` the frequencies are chosen, with the speeds of one pair in parts of the
        plain one; a table that ends gives its words in place of those of the long call.
    ``facts``
        ``topic``, ``says``: what one more call showed, with its ``line`` and ``value`` where one
        line reproduces it.
``findings``
    By name: the ``runtime``, the ``lines`` of `engines.findings` and the ``value`` of the last.
``read``
    The same in words, of what was read in public source: ``source``, ``commit``, ``date``.
``obstacles``
    What was not asked: ``name``, and ``why``.
"""

import json
from importlib.metadata import distribution
from typing import Any

from . import RESULT
from .read import OBSTACLES, READ

__all__ = ["described", "write"]


def described(module: Any) -> dict[str, Any]:
    """Return name, version, licence and installed size of what a runtime's module asks."""
    if hasattr(module, "described"):
        return module.described()
    found = [distribution(name) for name in module.PACKAGES]
    size = sum(file.size or 0 for one in found for file in one.files or [])
    return {
        "name": module.NAME,
        "version": {one.name: one.version for one in found},
        "licence": module.LICENCE,
        "megabytes": round(size / 1e6),
    }


def write(heard: dict[str, Any], found: dict[str, Any]) -> None:
    """Write the record, a line for each thing."""
    lines = ["{", '  "heard": {']
    parts = []
    for name, entry in sorted(heard.items()):
        head = [
            f'      "{k}": {json.dumps(v)}' for k, v in entry.items() if not isinstance(v, list)
        ]
        for key in ("rotations", "rules", "facts"):
            inside = ",\n".join(f"        {json.dumps(one)}" for one in entry[key])
            head.append(f'      "{key}": [\n{inside}\n      ]' if inside else f'      "{key}": []')
        parts.append(f'    "{name}": {{\n' + ",\n".join(head) + "\n    }")
    lines += [",\n".join(parts), "  },"]
    inside = ",\n".join(f'    "{key}": {json.dumps(one)}' for key, one in found.items())
    lines.append(f'  "findings": {{\n{inside}\n  }},')
    for key, rows in (("read", READ), ("obstacles", OBSTACLES)):
        inside = ",\n".join(f"    {json.dumps(one)}" for one in rows)
        lines.append(f'  "{key}": [\n{inside}\n  ]' + ("," if key == "read" else ""))
    RESULT.write_text("\n".join([*lines, "}", ""]), encoding="utf-8")
