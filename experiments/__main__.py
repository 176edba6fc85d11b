"""Run all experiments, or what is left of them: ``python -m experiments``.

Every finished job is written to ``experiments/results/<task>.json`` at once, so that an
interrupted run goes on where it was cut. A file made with other settings is refused; ``--fresh``
deletes it.
"""

import argparse
import json
import math
import multiprocessing
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from .run import BINS, SIZES, TEXTS, TIMES, WARMUP, Job, run
from .summary import RESULTS
from .tasks import APART, LAG, MARKS, QUERIES, RARE, TASKS, Task

SEEDS = tuple(range(8))
CHOOSING_SEEDS = (1000, 1001)
GRID = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
FIRST = (3e-3, 1e-2, 3e-2)
"""Learning rates tried for every encoding; the grid is extended until the best is interior."""

CORE = [
    "rope",
    "monotone_a",
    "monotone_b",
    "slow_half",
    "fast_half",
    "one_plane",
    "one_hand",
    "nope",
    "layers",
    "alibi",
    "t5",
    "rope_unmasked",
]
OTHERS = ["mixed", "sinusoidal", "learned", "before", "literal"]
LATER = ["alibi_steep", "t5_window", "slow_plane", "slow_hand"]
"""Constants fitted to the window, added after the others' results were seen."""
ENGLISH = ["rope", "monotone_a", "slow_half", "one_plane", "nope", "alibi", "t5", "mixed"]
TRIED = {
    "copy": CORE + OTHERS + LATER,
    "find": CORE,
    "induction": CORE + LATER,
    "language": ENGLISH + LATER[:3],
}
"""Encodings of each task, in order of priority. Language needs the causal mask."""


OWN = {
    "copy": {"lag": LAG},
    "find": {"queries": QUERIES, "marks": MARKS},
    "induction": {"rare": RARE},
    "language": {"apart": APART},
}


def settings(
    task: Task,
    more: Mapping[str, Mapping[str, Any]] = OWN,
    encodings: Mapping[str, Sequence[str]] = TRIED,
) -> dict[str, Any]:
    """Return the settings that determine the results of a task; ``more`` are its own."""
    own = {name: getattr(task, name) for name in ("vocabulary", "window", "steps", "batch")}
    return {
        **own,
        **SIZES,
        **more[task.name],
        "warmup": WARMUP,
        "times": list(TIMES),
        "texts": list(TEXTS.values()),
        "distances": list(BINS),
        "grid": list(GRID),
        "seeds": list(SEEDS),
        "choosing_seeds": list(CHOOSING_SEEDS),
        "encodings": encodings[task.name],
    }


def load(task: Task, folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Load the record of a task, or an empty one; raise if its settings differ."""
    path = folder / f"{task.name}.json"
    if not path.exists():
        return {"task": task.name, "words": task.words, "settings": wanted, "runs": []}
    record = json.loads(path.read_text("utf8"))
    if record["settings"] != wanted:
        raise SystemExit(f"{path} was made with other settings; --fresh begins anew")
    return record


def save(record: dict[str, Any], folder: Path) -> None:
    """Write the record of a task atomically."""
    order = record["settings"]["encodings"]
    record["runs"].sort(
        key=lambda r: (order.index(r["encoding"]), r["purpose"], r["learning_rate"])
    )
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


def tried(record: dict[str, Any], encoding: str) -> dict[float, float]:
    """Return the mean validation loss in bits of each learning rate tried so far."""
    found = {}
    for r in record["runs"]:
        if (r["purpose"], r["encoding"]) == ("choose", encoding):
            bits = r["valid_bits"]
            found[r["learning_rate"]] = math.inf if None in bits else sum(bits) / len(bits)
    return dict(sorted(found.items()))


def chosen(record: dict[str, Any], encoding: str) -> float | None:
    """Return the best learning rate; None while it is at the edge of the grid."""
    losses = tried(record, encoding)
    if not set(FIRST) <= set(losses):
        return None
    best = min(losses, key=losses.__getitem__)
    inside = min(losses) < best < max(losses)
    return best if inside or best in (GRID[0], GRID[-1]) else None


def jobs_of(task: Task, encoding: str, record: dict[str, Any]) -> list[Job]:
    """Return the jobs of an encoding that are done or can run now."""

    def job(purpose: str, rate: float, seeds: tuple[int, ...], longer: int = 1) -> Job:
        return Job(purpose, task.name, encoding, rate, longer * task.steps, seeds)

    losses, best = tried(record, encoding), chosen(record, encoding)
    rates = list(FIRST)
    if best is None and set(FIRST) <= set(losses):
        lowest, highest = (GRID.index(end(losses)) for end in (min, max))
        outermost = min(losses, key=losses.__getitem__)
        rates.append(GRID[lowest - 1] if outermost == min(losses) else GRID[highest + 1])
    found = [job("choose", rate, CHOOSING_SEEDS) for rate in rates]
    if best is not None:
        found += [job("measure", best, SEEDS), job("twice", best, CHOOSING_SEEDS, 2)]
    return found


def left(
    records: dict[str, Any],
    tasks: Mapping[str, Task] = TASKS,
    encodings: Mapping[str, Sequence[str]] = TRIED,
) -> Iterator[Job]:
    """Yield the jobs that can run now and are not done, in order of priority."""
    have = {
        (r["purpose"], name, r["encoding"], r["learning_rate"])
        for name, record in records.items()
        for r in record["runs"]
    }
    pairs = [(i, n, name) for n, name in enumerate(records) for i, _ in enumerate(encodings[name])]
    for last in (False, True):
        for i, _, name in sorted(pairs):
            for job in jobs_of(tasks[name], encodings[name][i], records[name]):
                if (job.purpose == "twice") == last and job[:4] not in have:
                    yield job


def work(
    records: dict[str, Any],
    folder: Path,
    workers: int,
    do: Callable[[Job], dict[str, Any]],
    remaining: Callable[[dict[str, Any]], Iterable[Job]] = left,
) -> None:
    """Run the remaining jobs and record each result."""
    context = multiprocessing.get_context("spawn")
    running: dict[Future, Job] = {}
    with (
        ProcessPoolExecutor(workers, mp_context=context) as pool,
        tqdm(desc="trainings", smoothing=0) as bar,
    ):
        while True:
            for job in remaining(records):
                if len(running) < workers and job not in running.values():
                    running[pool.submit(do, job)] = job
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                record = records[running.pop(future).task]
                record["runs"].append(future.result())
                save(record, folder)
                bar.update()


def command(
    parser: argparse.ArgumentParser,
    tasks: Mapping[str, Task],
    folder: Path,
    wanted: Callable[[Task], dict[str, Any]],
    do: Callable[[Job], dict[str, Any]],
    remaining: Callable[[dict[str, Any]], Iterable[Job]] = left,
) -> None:
    """Run what is left of the tasks that are named, all if none is."""
    parser.add_argument("tasks", nargs="*", metavar="task", help=f"of {', '.join(tasks)}")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    if unknown := set(arguments.tasks) - set(tasks):
        parser.error(f"task must be of {', '.join(tasks)}, got {', '.join(sorted(unknown))}")
    folder.mkdir(exist_ok=True)
    names = arguments.tasks or list(tasks)
    if arguments.fresh:
        for name in names:
            (folder / f"{name}.json").unlink(missing_ok=True)
    records = {name: load(tasks[name], folder, wanted(tasks[name])) for name in names}
    work(records, folder, arguments.workers, do, remaining)


def main() -> None:
    """Select learning rates, then train and evaluate."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    command(parser, TASKS, RESULTS, settings, run)


if __name__ == "__main__":
    main()
