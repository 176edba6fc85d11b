"""Run all experiments, or what is left of them: ``python -m experiments`` or ``make experiments``.

Every finished run is written to ``experiments/results/<task>.json`` at once, so that an interrupted
run goes on where it was cut. A file made with other settings is refused; ``--fresh`` deletes it.
"""

import argparse
import json
import multiprocessing
import os
import platform
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from .encodings import ENCODINGS
from .run import LEARNING_RATES, SIZES, TIMES, WARMUP, run
from .summary import RESULTS
from .tasks import LAG, TASKS, Task

SEEDS = (0, 1, 2, 3, 4)
CHOOSING_SEED = 1000
UNMASKED_SAYS_SOMETHING = ("copy", "find")
"""Without a mask the answer of the other two tasks is in plain sight."""

Job = tuple[str, str, str, float, int]


def settings(task: Task) -> dict[str, Any]:
    """Return all that decides a result of this task, apart from the code."""
    own = {name: getattr(task, name) for name in ("vocabulary", "window", "steps", "batch")}
    return {
        **own,
        **SIZES,
        "lag": LAG,
        "warmup": WARMUP,
        "times": list(TIMES),
        "learning_rates": list(LEARNING_RATES),
        "seeds": list(SEEDS),
        "choosing_seed": CHOOSING_SEED,
        "encodings": encodings_of(task),
    }


def encodings_of(task: Task) -> list[str]:
    """Return the encodings that are tried on a task."""
    return [
        name
        for name, how in ENCODINGS.items()
        if how.causal or task.name in UNMASKED_SAYS_SOMETHING
    ]


def load(task: Task, folder: Path) -> dict[str, Any]:
    """Return what the file of a task holds, or an empty record; raise if it has other settings."""
    path = folder / f"{task.name}.json"
    wanted = settings(task)
    if not path.exists():
        return {"task": task.name, "words": task.words, "settings": wanted, "runs": []}
    record = json.loads(path.read_text("utf8"))
    if record["settings"] != wanted:
        raise SystemExit(f"{path} was made with other settings; --fresh begins anew")
    return record


def save(record: dict[str, Any], folder: Path) -> None:
    """Write the file of a task, whole or not at all."""
    record["runs"].sort(key=_key)
    record["versions"] = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    record["date"] = datetime.now(UTC).date().isoformat()
    runs = ",\n".join(json.dumps(one, separators=(",", ":")) for one in record["runs"])
    rest = {name: value for name, value in record.items() if name != "runs"}
    text = json.dumps(rest, indent=1)[:-2] + f',\n "runs": [\n{runs}\n ]\n}}\n'
    path = folder / f"{record['task']}.json"
    part = path.with_suffix(".part")
    part.write_text(text, "utf8")
    part.replace(path)


def _key(one: dict[str, Any]) -> tuple[Any, ...]:
    return one["purpose"], one["encoding"], one["learning_rate"], one["seed"]


def chosen(record: dict[str, Any], encoding: str) -> float:
    """Return the learning rate whose model had the smallest loss on the validation split."""
    tried = [r for r in record["runs"] if (r["purpose"], r["encoding"]) == ("choose", encoding)]
    return min(tried, key=lambda r: r["valid_bits"])["learning_rate"]


def _do(jobs: list[Job], records: dict[str, Any], folder: Path, workers: int, words: str) -> None:
    """Run the jobs that the records lack, and write each result down when it comes."""
    have = {(r["purpose"], t, *_key(r)[1:]) for t in records for r in records[t]["runs"]}
    left = [job for job in jobs if job not in have]
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(workers, mp_context=context) as pool,
        tqdm(total=len(jobs), initial=len(jobs) - len(left), desc=words, smoothing=0) as bar,
    ):
        waiting = {pool.submit(run, job): job for job in left}
        for done in as_completed(waiting):
            task = waiting[done][1]
            records[task]["runs"].append(done.result())
            save(records[task], folder)
            bar.update()


def main() -> None:
    """Choose the learning rates, then train and measure."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="task", help=f"of {', '.join(TASKS)}")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    if unknown := set(arguments.tasks) - set(TASKS):
        parser.error(f"task must be of {', '.join(TASKS)}, got {', '.join(sorted(unknown))}")
    RESULTS.mkdir(exist_ok=True)
    tasks = [TASKS[name] for name in arguments.tasks or TASKS]
    if arguments.fresh:
        for task in tasks:
            (RESULTS / f"{task.name}.json").unlink(missing_ok=True)
    records = {task.name: load(task, RESULTS) for task in tasks}
    pairs = [(task.name, name) for task in tasks for name in encodings_of(task)]
    choices = [("choose", *pair, lr, CHOOSING_SEED) for pair in pairs for lr in LEARNING_RATES]
    _do(choices, records, RESULTS, arguments.workers, "learning rates")
    runs = [
        ("measure", *pair, chosen(records[pair[0]], pair[1]), seed)
        for pair in pairs
        for seed in SEEDS
    ]
    _do(runs, records, RESULTS, arguments.workers, "trainings")


if __name__ == "__main__":
    main()
