"""Execute a notebook again when a file that it reads has changed, and only then.

Jupyter's cache knows a notebook by its code cells alone, and Sphinx knows it by its file alone:
both would show old output after an edit in ``rope_minimal``. So the kernel writes down which files
of this project a notebook opens (watched_kernel.py), and their hashes are kept beside the cache. A
notebook is executed again when one of them has changed, and when a file is new or gone anywhere in
`WATCHED`, for what a notebook finds may depend on that, too.
"""

import hashlib
import json
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment

WATCHED = (
    "rope_minimal/*.*",
    "ropescope/*.py",
    "ropebook/**/*.*",
    "atlas/*.py",
    "atlas/results/*.json",
    "experiments/*.py",
    "experiments/**/*.json",
    "benchmarks/results/*.json",
)


def digest(data: bytes) -> str:
    """Return a short hash."""
    return hashlib.sha256(data).hexdigest()[:16]


def watched(root: Path) -> list[str]:
    """Return every file that a notebook is likely to import or read."""
    found = {path for pattern in WATCHED for path in root.glob(pattern) if path.suffix != ".pyc"}
    return sorted(path.relative_to(root).as_posix() for path in found if path.is_file())


def state(root: Path, paths: list[str]) -> dict[str, str]:
    """Return the hash of every path, "" for one that is gone; under "*", which files there are."""
    every = watched(root)
    found = {"*": digest("\n".join(every).encode())}
    for path in every if "*" in paths else paths:
        found[path] = digest((root / path).read_bytes()) if (root / path).is_file() else ""
    return found


def fingerprint(root: Path) -> str:
    """Return one hash of all that is watched."""
    return digest(json.dumps(state(root, ["*"])).encode())


def sources(lines: list[str]) -> list[str]:
    """Return what a kernel wrote down, a module in place of its compiled copy."""
    return sorted(
        {
            f"{head}{tail.split('.')[0]}.py" if cached else line
            for line in lines
            for head, cached, tail in [line.partition("__pycache__/")]
        }
    )


class Reads:
    """What each notebook read when it was executed last, kept beside Jupyter's cache."""

    def __init__(self, app: Sphinx) -> None:
        self.root = Path(app.srcdir)
        self.folder = Path(app.config.nb_execution_cache_path) / "reads"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / "reads.json"
        self.known = json.loads(self.file.read_text("utf8")) if self.file.exists() else {}

    def is_fresh(self, page: str) -> bool:
        """Tell whether all that a notebook read is as it was."""
        known = self.known.get(page)
        return known is not None and known == state(self.root, [p for p in known if p != "*"])

    def keep(self, page: str, lines: list[str]) -> None:
        """Remember what a notebook has read."""
        self.known[page] = state(self.root, sources(lines))
        self.file.write_text(json.dumps(self.known, indent=1), "utf8")


def place_cache(app: Sphinx, config: Config) -> None:
    """Keep the cache beside the site."""
    config.nb_execution_cache_path = str(Path(app.outdir).parent / ".jupyter_cache")


def outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Name the notebooks of which something that they read has changed."""
    reads = Reads(app)
    pages = [page for page in env.found_docs - added if env.doc2path(page).endswith(".ipynb")]
    return [page for page in pages if not reads.is_fresh(page)]


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("config-inited", place_cache, priority=900)
    app.connect("env-get-outdated", outdated)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 2}
