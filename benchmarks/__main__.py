"""Command line: measure the cases in child processes, print a table, write the results."""

import argparse
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from . import angles, layer, machine, moves
from .measure import Case, measure

RESULTS = Path(__file__).parent / "results"
PREFILL, SMALL, DECODE = (1, 32, 4096, 128), (1, 8, 1024, 64), (8, 32, 1, 128)
LARGE, MANY = (8, 32, 4096, 128), (256, 32, 1, 128)
# glibc returns blocks over 32 MiB to the system at once and pays for fresh pages in every call
# ("fresh"). Set to keep them ("reused"), it behaves as the allocators of PyTorch on CUDA do.
KEEP = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776"


def cases(allocator: str, quick: bool = False) -> list[Case]:
    """Return the cases of one process."""
    shapes = [SMALL] if quick else [PREFILL, SMALL, DECODE]
    if allocator == "cuda" and not quick:
        shapes = [LARGE, PREFILL, DECODE, MANY]
    if allocator == "fresh" and not quick:
        shapes = [PREFILL, SMALL]  # the blocks of one token are small: no difference
    made = []
    for shape in shapes:
        for dtype in ("float32",) if quick else ("float32", "bfloat16"):
            made.append(Case(shape, dtype, allocator))
            if shape[2] > 1 and not quick:
                made.append(Case(shape, dtype, allocator, "forward+backward"))
            if shape == PREFILL and allocator != "fresh":
                made.append(Case(shape, dtype, allocator, memory="transposed"))
    return made


def work(allocator: str, seconds: float, quick: bool, cache: bool) -> None:
    """Measure in this process; print one line of JSON per case."""
    device = "cuda" if allocator == "cuda" else "cpu"
    if cache:
        for entry in moves.measure(device, seconds, quick):
            print(json.dumps(entry), flush=True)
        return
    for case in cases(allocator, quick):
        print(json.dumps(measure(case, device, seconds)), flush=True)


def start(
    allocator: str, options: argparse.Namespace, cache: bool = False
) -> Iterator[dict[str, Any]]:
    """Measure in a child process with the given allocator setting; yield each case."""
    given = ["--work", allocator, "--seconds", str(options.seconds)]
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks", *given]
    environment = {**os.environ, "KINETO_LOG_LEVEL": "99"}  # the profiler reports every start
    if allocator == "reused":
        environment["GLIBC_TUNABLES"] = KEEP
    with subprocess.Popen(
        command + ["--quick"] * options.quick + ["--cache"] * cache,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        yield from map(json.loads, child.stdout)
    if child.returncode:
        raise SystemExit(f"the process for {allocator!r} ended with {child.returncode}")


def table(case: dict[str, Any]) -> str:
    """Format one case."""
    names = ("dtype", "allocator", "direction", "memory")
    head = f"{tuple(case['shape'])} {' '.join(case[n] for n in names)}"
    floor = "two copies" if case["direction"] != "forward" else case["floor"]
    lines = [f"\n{head}, {floor} {case['floor_us']:.1f} us"]
    for row in case["rows"]:
        name = f"  {row['form']:40} {row['mode']:9}"
        if row["status"] != "ok":
            lines.append(f"{name} {row['status']}: {row['reason']}")
            continue
        passes = "" if row["passes"] is None else f"{row['passes']:g} N"
        span = f"{row['ratio_low']:.2f} to {row['ratio_high']:.2f}"
        lines.append(f"{name} {row['us']:12.1f} us {row['ratio']:8.2f} ({span}) {passes}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--name", help="name of the results file, without .json")
    parser.add_argument("--cpu", action="store_true", help="measure the CPU even beside a GPU")
    parser.add_argument("--seconds", type=float, default=9, help="time for the rounds of a case")
    parser.add_argument("--quick", action="store_true", help="one small case; writes no file")
    parser.add_argument("--work", choices=("reused", "fresh", "cuda"), help=argparse.SUPPRESS)
    parser.add_argument("--cache", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.work:
        work(options.work, options.seconds, options.quick, options.cache)
        return
    device = "cuda" if torch.cuda.is_available() and not options.cpu else "cpu"
    allocators = ["reused", "fresh"] if machine.has_glibc() else ["fresh"]
    allocators = ["cuda"] if device == "cuda" else allocators
    about = machine.describe(device)
    about["name"] = machine.slug(options.name) if options.name else about["name"]
    results = {
        "schema": 1,
        "machine": about,
        "versions": machine.versions(),
        "date": datetime.date.today().isoformat(),
        "command": "make bench",
        "cases": [],
        "moves": [],
    }
    total = sum(len(cases(each, options.quick)) for each in allocators)
    with tqdm(total=total, unit="case", disable=None) as bar:
        for allocator in allocators:
            for case in start(allocator, options):
                results["cases"].append(case)
                bar.write(table(case))
                bar.update()
    for entry in start(allocators[0], options, cache=True):
        results["moves"].append(entry)
        print(moves.table(entry))
    if device == "cuda" and not options.quick:
        results["layer"] = layer.measure(device)
        results["angles"] = {"date": results["date"], "rows": angles.measure(device)}
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{about['name']}.json"
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        print(f"\nwritten: benchmarks/results/{path.name}")


if __name__ == "__main__":
    main()
