"""Write the pictures: ``python -m slides [FOLDER]``."""

import argparse
from pathlib import Path

from .pictures import INKS, PICTURES, write


def main() -> None:
    """Write every picture in both inks."""
    parser = argparse.ArgumentParser(prog="python -m slides", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("_build/slides"))
    folder = parser.parse_args().folder
    for theme in INKS:
        (folder / theme).mkdir(parents=True, exist_ok=True)
        for name in PICTURES:
            write(name, theme, folder / theme / f"{name}.svg")
    print(f"{len(PICTURES)} pictures in {folder}, for {' and for '.join(INKS)} slides")


if __name__ == "__main__":
    main()
