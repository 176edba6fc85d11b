"""``python -m ropebook.labs LINE...``: verify certificates; without arguments, standard input's."""

import sys

from .lab import verify


def main(lines: list[str]) -> int:
    """Print a verdict for each line; return 1 if one of them is wrong, or there is none."""
    verdicts = [verify(line) for line in lines if line.strip()]
    for _, words in verdicts:
        print(words)
    return 0 if verdicts and all(right for right, _ in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or sys.stdin.read().splitlines()))
