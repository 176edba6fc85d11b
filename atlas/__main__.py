"""``python -m atlas [FAMILY ...]``: record and write. With families, only these are renewed.

``--rules`` finds the rules of configurations instead (`rules`, `drawn`).
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches
from importlib.metadata import version
from multiprocessing import get_context
from os import cpu_count
from typing import Any

from . import RESULTS, drawn, families, load
from .others import PEERS
from .rows import row

Answer = tuple[str, dict[str, Any], list[Any], float]
"""A family, its entry, its lists of frequencies, seconds."""


def write(peer: str, packages: list[str], entries: dict[str, tuple[dict[str, Any], Any]]) -> None:
    """Write a file from entries with their lists of frequencies; it has each list once."""
    lists: list[Any] = []
    found = {}
    for name in sorted(entries):
        entry, own = entries[name]
        rotations = [dict(one) for one in entry["rotations"]]
        for one in rotations:
            if one["frequencies"] is not None:
                frequencies = own[one["frequencies"]]
                if frequencies not in lists:
                    lists.append(frequencies)
                one["frequencies"] = lists.index(frequencies)
        found[name] = entry | {"rotations": rotations}
    counts = Counter(entry["status"] for entry in found.values())
    counts["rotations"] = sum(len(entry["rotations"]) for entry in found.values())
    head = {
        "peer": peer,
        "versions": {p: version(p).split("+")[0] for p in packages},
        "counts": dict(sorted(counts.items())),
    }
    lines = ["{", *(f'  "{key}": {json.dumps(value)},' for key, value in head.items())]
    lines += ['  "families": {']
    lines += [",\n".join(f'    "{name}": {json.dumps(entry)}' for name, entry in found.items())]
    lines += ["  },", '  "frequencies": [']
    lines += [",\n".join(f"    {json.dumps(one)}" for one in lists), "  ]", "}", ""]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{peer}.json").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    """Record and write."""
    parser = argparse.ArgumentParser(prog="python -m atlas", description=__doc__)
    parser.add_argument("families", nargs="*", help="all where none is named")
    parser.add_argument("--rules", action="store_true", help="find the rules of configurations")
    parser.add_argument("--workers", type=int, default=cpu_count())
    chosen = parser.parse_args()
    known = families.families()
    asked = [*known, *families.borrowers()] if chosen.rules else known
    for name in set(chosen.families).difference(asked):
        near = " or ".join(get_close_matches(name, asked))
        hint = f": did you mean {near}?" if near else ""
        parser.error(f"argument families: {name!r} is no family of transformers that rotates{hint}")
    if chosen.rules:
        drawn.renew(chosen.families, chosen.workers)
        return
    entries: dict[str, Any] = {}
    if chosen.families and (RESULTS / "transformers.json").exists():
        before = load("transformers")
        entries = {k: (v, before["frequencies"]) for k, v in before["families"].items()}
    began, names = time.perf_counter(), chosen.families or known
    for family, entry, lists, seconds in recorded(names, chosen.workers):
        entries[family] = (entry, lists)
        count, why = len(entry["rotations"]), entry["why"] or ""
        print(f"{family:<28}{entry['status']:<10}{count:>3}{seconds:>7.1f} s  {why}", flush=True)
        if len(entries) % 10 == 0:
            save(entries)
    save(entries)
    for peer in () if chosen.families else PEERS:
        record_other(peer)
    print(f"{len(names)} families in {time.perf_counter() - began:.0f} s")


def save(entries: dict[str, Any]) -> None:
    """Write what is known so far of transformers."""
    write("transformers", ["transformers", "torch"], entries)


def record_other(peer: str) -> None:
    """Record a package of which only functions are probed; without it, its file stays as it is."""
    try:
        made = PEERS[peer]()
    except (ImportError, AttributeError) as error:
        print(f"{peer} is not recorded: {error}")
        return
    entries = {}
    for name, records in made.items():
        lists: list[Any] = []
        rows = [row(one, families.report_on(one), lists) for one in records]
        entry = {"status": "recorded", "why": None, "rotations": rows, "without": []}
        entries[name] = entry, lists
    write(peer, [peer.replace("_", "-"), "torch"], entries)


def recorded(names: list[str], workers: int) -> Iterator[Answer]:
    """Yield the answers on families, in order, from so many processes.

    These are renewed now and then, because they keep memory.
    """
    with get_context("spawn").Pool(workers, maxtasksperchild=20) as pool:
        yield from pool.imap(families.timed, names)


if __name__ == "__main__":
    main()
