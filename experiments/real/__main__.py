"""Make what is missing of the record: ``python -m experiments.real [SECTION]``."""

import argparse
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from . import questions
from .model import Model, path
from .texts import SOURCE, fingerprint, long_texts, short_texts

HERE = Path(__file__).parent
WEIGHTS = HERE.parent / "weights"
RECORD, JOURNAL = HERE / "record.json", WEIGHTS / "real.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.real", description=__doc__)
    parser.add_argument("section", nargs="*", help="only the jobs that begin so")
    parser.add_argument("--archive", type=Path, default=WEIGHTS / SOURCE, help="the texts")
    args = parser.parse_args()
    section, file = " ".join(args.section), path()
    if file is None:
        parser.error("the model is not installed: `make real` installs it")
    if not args.archive.exists():
        parser.error(f"{args.archive} is missing: `make real` downloads it")
    texts, long = short_texts(file, args.archive), long_texts(file, args.archive)
    mark = fingerprint(texts | {name: text for name, (text, _) in long.items()})
    done = finished(mark)
    model = Model(file)
    jobs = [j for j in questions.jobs(texts, long) if j[0].startswith(section)]
    with JOURNAL.open("a") as journal:
        for name, job in tqdm(jobs, unit="job"):
            if name in done:
                continue
            began = time.perf_counter()
            found = job(model)
            line = {"job": name, "texts": mark, "s": round(time.perf_counter() - began, 2),
                    "found": found}  # fmt: skip
            journal.write(json.dumps(line) + "\n")
            journal.flush()
            done[name] = line
    if not section:
        write(done, mark)


def finished(mark: str) -> dict[str, Any]:
    """Return the jobs of the journal that read these texts; a line that was cut is dropped."""
    JOURNAL.parent.mkdir(exist_ok=True)
    text = JOURNAL.read_text("utf8") if JOURNAL.exists() else ""
    JOURNAL.write_text(text[: text.rfind("\n") + 1], "utf8")
    lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    return {line["job"]: line for line in lines if line["texts"] == mark}


def differs(one: Any, other: Any) -> float:
    """Return the largest difference of two losses in two records of one form."""
    if isinstance(one, dict):
        return max([differs(one[n], other[n]) for n in one if n in other], default=0.0)
    if isinstance(one, list):
        return max([differs(a, b) for a, b in zip(one, other, strict=True)], default=0.0)
    return abs(one - other) if isinstance(one, float) else 0.0


def write(done: dict, mark: str) -> None:
    """Write the record: section, change, text; say how far it is from the one that was there."""
    sections: dict = {}
    for name, line in done.items():
        section, change, text = name.split("/")
        sections.setdefault(section, {}).setdefault(change, {})[text] = line["found"]
    seconds = round(sum(line["s"] for line in done.values()))
    device = torch.get_default_device().type
    if device == "cuda":
        device = torch.cuda.get_device_name()
    about = {"texts": mark, "seconds": seconds, "device": device, "numbers": "float32",
             "torch": torch.__version__, "threads": torch.get_num_threads(),
             "date": datetime.now(UTC).date().isoformat()}  # fmt: skip
    rounded = json.loads(
        json.dumps({"about": about, **sections}), parse_float=lambda x: round(float(x), 4)
    )
    if RECORD.exists():
        old = json.loads(RECORD.read_text("utf8"))
        far = {n: differs(rounded[n], old[n]) for n in rounded if n in old and n != "about"}
        print("largest difference from the record that was there, by section:", far)
    RECORD.write_text(json.dumps(rounded, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
