"""The command: ``ropescope FILE``, ``ropescope compare A B``, ``ropescope convert A --to hf -o B``.

Exit codes: 0 fine, 1 warnings, 2 wrong; those of compare stand in ``CODES``.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from . import card
from .convert import TARGETS, NothingToDoError, convert

USAGE = """ropescope FILE_OR_FOLDER [--json | --html]
       ropescope compare A B [--json]
       ropescope convert A --to {hf,meta,gguf,mlx} -o B"""

ABOUT = """Tell how a checkpoint rotates queries and keys (RoPE), from config.json, params.json,
safetensors, GGUF or a folder; compare two; move rows of weights from one layout to another.
In place of a file, a model_type stands for that family as its class is by default (a few do not run
so, and what they lack is named), and the name of a public checkpoint, such as Qwen/Qwen2.5-72B, for
what public sources show of its config.json; on the book's page, a name that is both is the
checkpoint. The card says what the rotary embedding does if the model runs with this file; whether
everything else in the file is accepted, transformers alone can say."""


CODES = """Exit codes: 0 fine, 1 warnings, 2 wrong. Of compare: 0 where both rotate alike in the
layers that both have (one may have more), 1 where they do after rows are moved, negated or
multiplied, 2 where they do not, one has a part that rotates and the other lacks, a part has no
rule, one is wrong as it stands, or neither of two types rotates; what scores are divided by, norms
and gains, and queries that grow with their position are not compared. Of convert: 0 where there was
nothing to do, too, and then nothing is written; parallel parts (consolidated.00.pth,
consolidated.01.pth and so on) have to be joined before."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 where all is fine, 1 with warnings, 2 where something is wrong."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words[0] if words and words[0] in ("compare", "convert") else "card"
    parser = argparse.ArgumentParser(
        "ropescope", USAGE, ABOUT, CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    if command != "card":
        parser.add_argument("command", choices=[command])
    parser.add_argument("source", metavar="A" if command != "card" else "FILE_OR_FOLDER")
    if command == "compare":
        parser.add_argument("other", metavar="B")
        parser.add_argument("--json", action="store_true", help="print messages as JSON")
    elif command == "convert":
        parser.add_argument("--to", required=True, choices=TARGETS, help="whose layout and names")
        parser.add_argument("-o", "--output", required=True, metavar="B", help="a new folder, "
                            "file.safetensors, or, for gguf, file.gguf; beside the weights, "
                            "config.json alone is written, in a folder for hf or mlx: no "
                            "params.json for meta, and no tokenizer but in a GGUF")  # fmt: skip
    else:
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="print the specification as JSON")
        form.add_argument("--html", action="store_true", help="print the card as a page")
    options = parser.parse_args(words)
    try:
        return {"card": _card, "compare": _compare, "convert": _convert}[command](options)
    except OSError as error:
        print(f"ropescope: {_words(error)}", file=sys.stderr)
    except (ValueError, ImportError) as error:
        print(f"ropescope: {error}", file=sys.stderr)
    return 2


def _say(words: str) -> None:
    """Print; whoever reads, such as ``head``, may have gone."""
    try:
        print(words, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _words(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.strerror else str(error)


def _card(options: argparse.Namespace) -> int:
    found = card.specification(options.source)
    form = card.as_json if options.json else card.page if options.html else card.text
    _say(form(found))
    return card.exit_code(found)


def _compare(options: argparse.Namespace) -> int:
    one, two = map(card.specification, (options.source, options.other))
    said, code = card.compare(one, two)
    sides = {"first": one["source"], "second": two["source"]}
    if options.json:
        _say(json.dumps({**sides, "messages": said, "code": code}))
    else:
        _say("\n".join([*(f"The {which} is {source}." for which, source in sides.items()), *said]))
    return code


def _convert(options: argparse.Namespace) -> int:
    shown = -1

    def progress(done: int, total: int) -> None:
        nonlocal shown
        part = 100 * done // max(total, 1)
        if part // 5 > shown:
            shown = part // 5
            print(f"{part:3} % of {total / 1e9:.2f} GB", file=sys.stderr)

    try:
        said = convert(options.source, options.to, options.output, progress=progress)
    except NothingToDoError as done:
        _say(str(done))
        return 0
    lines = [*(f"- {one}" for one in card.sentences(said)), f"{options.output} is written."]
    _say("\n".join(lines))
    return max(one.severity for one in said)


if __name__ == "__main__":
    sys.exit(main())
