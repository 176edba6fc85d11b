"""``python -m atlas [FAMILY ...]``: ask and write. With families, only these are asked again."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from difflib import get_close_matches
from importlib.metadata import version
from multiprocessing import get_context
from os import cpu_count
from queue import SimpleQueue
from typing import Any

from . import RESULTS, load
from . import transformers as of_transformers
from .others import PEERS
from .rows import heard_row, row
from .transformers import TOO_MUCH, report_on, timed


def write(peer: str, packages: list[str], entries: dict[str, Any]) -> None:
    """Write a file: entries refer to lists of frequencies that are written once."""
    lists: list[Any] = []
    for name in sorted(entries):
        entry, own = entries[name]
        for rotation in entry.get("rotations", []):
            if rotation["frequencies"] is not None:
                speeds = own[rotation["frequencies"]]
                if speeds not in lists:
                    lists.append(speeds)
                rotation["frequencies"] = lists.index(speeds)
    families = {name: entries[name][0] for name in sorted(entries)}
    counts: dict[str, int] = {}
    for entry in families.values():
        counts[entry["status"]] = counts.get(entry["status"], 0) + 1
    counts["rotations"] = sum(len(e.get("rotations", [])) for e in families.values())
    head = {
        "peer": peer,
        "versions": {p: version(p).split("+")[0] for p in packages},
        "counts": dict(sorted(counts.items())),
    }
    lines = [f'  "{key}": {json.dumps(value)},' for key, value in head.items()]
    lines.append('  "families": {')
    lines.append(",\n".join(f'    "{k}": {json.dumps(v)}' for k, v in families.items()))
    lines.append("  },")
    lines.append('  "frequencies": [')
    lines.append(",\n".join(f"    {json.dumps(speeds)}" for speeds in lists))
    lines.append("  ]")
    RESULTS.mkdir(exist_ok=True)
    text = "\n".join(["{", *lines, "}"]) + "\n"
    (RESULTS / f"{peer}.json").write_text(text, encoding="utf-8")


def main() -> None:
    """Ask and write."""
    parser = argparse.ArgumentParser(prog="python -m atlas", description=__doc__)
    parser.add_argument("families", nargs="*", help="all where none is named")
    parser.add_argument("--workers", type=int, default=cpu_count())
    chosen = parser.parse_args()
    known = of_transformers.families()
    names = chosen.families or known
    for name in names:
        if name in known:
            continue
        near = " or ".join(get_close_matches(name, known))
        hint = f": did you mean {near}?" if near else ""
        parser.error(f"argument families: {name!r} is no family of transformers that rotates{hint}")
    entries: dict[str, Any] = {}
    if chosen.families and (RESULTS / "transformers.json").exists():
        before = load("transformers")
        entries = {k: (v, before["frequencies"]) for k, v in before["families"].items()}
    began = time.perf_counter()
    for family, entry, lists, seconds in asked(names, chosen.workers):
        entries[family] = (entry, lists)
        count = len(entry["rotations"])
        print(f"{family:<28}{entry['status']:<10}{count:>3}{seconds:>7.1f} s  {entry['why']}")
        sys.stdout.flush()
        if len(entries) % 10 == 0:
            save(entries)
    save(entries)
    for peer in () if chosen.families else PEERS:
        ask_other(peer)
    print(f"{len(names)} families in {time.perf_counter() - began:.0f} s")


def ask_other(peer: str) -> None:
    """Ask a package of which only functions are asked; without it, its file stays as it is."""
    try:
        made = PEERS[peer]()
    except (ImportError, AttributeError) as error:
        print(f"{peer} is not asked: {error}")
        return
    entries = {}
    for name, heard in made.items():
        lists: list[Any] = []
        rows = [heard_row(one) | row(report_on(one), lists) for one in heard]
        entries[name] = [{"status": "asked", "why": None, "rotations": rows, "without": []}, lists]
    write(peer, [peer.replace("_", "-"), "torch"], entries)


def asked(names: list[str], workers: int) -> Iterator[tuple[str, dict[str, Any], list[Any], float]]:
    """Yield each family's name, entry, lists of frequencies and seconds."""
    pools = SimpleQueue[Any]()
    for _ in range(workers):
        pools.put(new_pool())
    with ThreadPoolExecutor(workers) as threads:
        yield from threads.map(lambda name: alone(name, pools), names)
    while not pools.empty():
        pools.get().shutdown()


def new_pool() -> ProcessPoolExecutor:
    """Return a process that asks."""
    return ProcessPoolExecutor(1, get_context("spawn"))


def alone(family: str, pools: SimpleQueue[Any]) -> tuple[str, dict[str, Any], list[Any], float]:
    """Ask one family in a process that it may bring down."""
    pool = pools.get()
    try:
        for _ in range(2):  # once more in a fresh process: the peak may be another family's
            try:
                return pool.submit(timed, family).result()
            except BrokenProcessPool:
                pool = new_pool()
        entry = {"status": "refused", "why": TOO_MUCH, "rotations": [], "without": []}
        return family, entry, [], 0.0
    finally:
        pools.put(pool)


def save(entries: dict[str, Any]) -> None:
    """Write what is known so far; `write` numbers the lists anew, so it gets a copy."""
    copied = json.loads(json.dumps({k: list(v) for k, v in entries.items()}))
    write("transformers", ["transformers", "torch"], copied)


if __name__ == "__main__":
    main()
