"""Make what is missing of the record: ``python -m experiments.real [SECTION]``."""

import argparse
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import torch
from tqdm import tqdm

from . import questions
from .model import Model, path
from .texts import SOURCE, fingerprint, long_texts, short_texts

HERE = Path(__file__).parent
RECORD, JOURNAL = HERE / "record.json", HERE / "journal.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.real", description=__doc__)
    parser.add_argument("section", nargs="?", default="", help="only the jobs that begin so")
    parser.add_argument("--archive", type=Path, default=HERE / "weights" / SOURCE, help="the texts")
    parser.add_argument("--device", default="cpu", help="torch's name of the device")
    args = parser.parse_args()
    if args.device != "cpu":
        torch.set_default_device(args.device)
    file = path()
    if file is None:
        parser.error("the model is not installed: `make real` installs it")
    texts, long = short_texts(file, args.archive), long_texts(file, args.archive)
    mark = fingerprint(texts | {name: text for name, (text, _) in long.items()})
    done = {}
    if JOURNAL.exists():
        lines = [json.loads(line) for line in JOURNAL.read_text().splitlines()]
        done = {line["job"]: line for line in lines if line["texts"] == mark}
    model = Model(file)
    jobs = [j for j in questions.jobs(texts, long) if j[0].startswith(args.section)]
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
    if not args.section:
        write(done, mark)


def write(done: dict, mark: str) -> None:
    """Write the record: section, change, text."""
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
    RECORD.write_text(json.dumps(rounded, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
