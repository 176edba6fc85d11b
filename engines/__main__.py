"""``python -m engines [RUNTIME ...]``: ask runtimes, and write ``atlas/results/engines.json``.

With names, only these are renewed. ``--print`` prints what is heard and writes nothing. Each
runtime is asked in a process of its own; the command fails if one of them does.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from importlib import import_module
from typing import Any

from . import RESULT, RUNTIMES, record
from .asking import RULES, compared, hear
from .findings import FINDINGS, again


def ask(name: str) -> dict[str, Any]:
    """Return the entry of a runtime, asked in this process."""
    module = import_module(f"engines.runtimes.{name}")
    lists: list[Any] = []
    rotations = [hear(case, lists) for case in module.cases()]
    for one in rotations:
        del one["frequencies"]  # formula, base and rescaling say them
    asked = RULES if hasattr(module, "rescaled") else ()
    rules = [compared(rule, module.rescaled) for rule in asked]
    return {
        **record.described(module),
        "rotations": rotations,
        "rules": [one for one in rules if "NotImplementedError" not in one.get("refused", "")],
        "facts": list(module.facts()) if hasattr(module, "facts") else [],
    }


def main() -> None:
    """Ask and write."""
    parser = argparse.ArgumentParser(prog="python -m engines", description=__doc__)
    parser.add_argument("runtimes", nargs="*", choices=[[], *RUNTIMES], help="all if none is named")
    parser.add_argument("--print", action="store_true", help="print JSON, and write nothing")
    chosen = parser.parse_args()
    names = chosen.runtimes or list(RUNTIMES)
    if chosen.print:
        print(json.dumps({name: ask(name) for name in names}))
        return
    before = json.loads(RESULT.read_text("utf8")) if RESULT.exists() else {}
    entries, found = before.get("heard", {}), before.get("findings", {})
    failed = []
    for name in names:
        began = time.perf_counter()
        run = subprocess.run(
            [sys.executable, "-m", "engines", "--print", name],
            env=os.environ | RUNTIMES[name],
            stdout=subprocess.PIPE,
            encoding="utf8",
        )
        seconds = time.perf_counter() - began
        if run.returncode:
            failed.append(name)
            continue
        entries |= json.loads(run.stdout.splitlines()[-1])
        entries[name]["seconds"] = round(seconds, 1)
        print(
            f"{name:<14}{len(entries[name]['rotations']):>3} rotations{seconds:>7.1f} s", flush=True
        )
    for name, (runtime, lines) in FINDINGS.items():
        if runtime in names:
            found[name] = {"runtime": runtime, "lines": lines.strip(), "value": again(name)}
    record.write(entries, found)
    if failed:
        sys.exit(f"failed, and left as they were: {', '.join(failed)}")


if __name__ == "__main__":
    main()
