"""Execute a chapter again when the code or data under it changed, and only then.

Jupyter's cache knows a notebook by its code cells alone, and Sphinx knows it by its file alone.
Both would show old output after an edit in ``rope_minimal``. Here every notebook's cache carries
the hash of what a notebook can read, and a changed hash marks the notebooks as outdated.
"""

import hashlib
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment

WATCHED = (
    "rope_minimal/**/*.*",
    "experiments/*.py",
    "experiments/**/*.json",
    "benchmarks/results/*.json",
)


def fingerprint(root: Path) -> str:
    """Return a hash of every file that a notebook may import or read."""
    digest = hashlib.sha256()
    for pattern in WATCHED:
        for path in sorted(root.glob(pattern)):
            if path.suffix != ".pyc":
                digest.update(str(path.relative_to(root)).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def place_cache(app: Sphinx, config: Config) -> None:
    """Give each state of the watched files a cache of its own."""
    root = Path(app.srcdir)
    cache = Path(app.outdir).parent / ".jupyter_cache" / fingerprint(root)
    cache.parent.mkdir(parents=True, exist_ok=True)
    config.nb_execution_cache_path = str(cache)


def outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Name the notebooks that were last read in another state of the watched files."""
    now = fingerprint(Path(app.srcdir))
    before = getattr(env, "rope_fingerprint", None)
    env.rope_fingerprint = now
    if before in (None, now):
        return []
    return [name for name in env.found_docs if str(env.doc2path(name)).endswith(".ipynb")]


def setup(app: Sphinx) -> dict:
    """Connect to Sphinx."""
    app.connect("config-inited", place_cache, priority=900)
    app.connect("env-get-outdated", outdated)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
