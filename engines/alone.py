"""Execute a few files of a package unchanged, without the rest of it.

vLLM's and SGLang's rotary modules import half of a server, most of which wants a GPU. Here the
files that are asked run as they are, and whatever else they import from their package is a stand-in
that is false, returns another and leaves what it decorates as it is.
"""

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["APART", "Standin", "alone"]

APART = str(Path(sys.prefix) / "apart")
"""A folder of packages that others would import, were they beside them."""


class Nothing:
    """A stand-in: false, callable, with every attribute."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else Nothing()

    def __bool__(self) -> bool:
        return False


class Standin(ModuleType):
    """A module whose attributes are all stand-ins."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class _Finder(MetaPathFinder, Loader):
    """Serve modules of one package: those below some names from their files, others not."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.keep: list[str] = []
        self.given: dict[str, dict[str, Any]] = {}

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        mine = self.home.name == name.split(".")[0]
        if not mine or any(name.startswith(one) for one in self.keep):
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = Standin(spec.name)
        module.__path__ = [str(self.home.joinpath(*spec.name.split(".")[1:]))]
        vars(module).update(self.given.get(spec.name, {}))
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


_FINDERS: dict[str, _Finder] = {}


def alone(keep: str, given: dict[str, dict[str, Any]] | None = None) -> ModuleType:
    """Import a module without the rest of its package.

    Parameters
    ----------
    keep
        Its full name; what lies below it is imported as it is, too.
    given
        Real values for attributes of the modules that stand in.
    """
    package = keep.split(".")[0]
    if package not in _FINDERS:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(package)
        _FINDERS[package] = _Finder(Path(spec.origin).parent)
        sys.meta_path.insert(0, _FINDERS[package])
    finder = _FINDERS[package]
    finder.keep.append(keep)
    finder.given |= given or {}
    return importlib.import_module(keep)
