"""A JavaScript file and the files that it imports, as one module."""

import re
from pathlib import Path

__all__ = ["bundle", "script"]

_IMPORT = re.compile(r'^import\s+\{([^}]*)\}\s+from\s+"(\.{1,2}/[\w/-]+\.js)";', re.MULTILINE)
_EXPORT = re.compile(r"^export\s+((?:async\s+)?(?:function|const|class)\s+(\w+))", re.MULTILINE)
_DEFAULT = re.compile(r"^export\s+default\s+", re.MULTILINE)


def bundle(main: Path) -> str:
    """Return a file and the files that it imports as one JavaScript module.

    Every imported file becomes a scope of its own, so that private names never collide.

    Parameters
    ----------
    main
        The file, for instance ``Path(__file__).with_name("angle_heatmap.js")``. Whatever it imports
        lies in its folder, or below it.

    Returns
    -------
    str
        Each file once, the imported ones first.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If an import is not of the form ``import { a, b } from "./file.js";``.
    """
    scopes: dict[str, str] = {}

    def inlined(path: Path) -> str:
        if not path.is_file():
            raise FileNotFoundError(f"{path.parent.name} has no file {path.name}")

        def scope(match: re.Match[str]) -> str:
            names, source = match.groups()
            imported = (path.parent / source).resolve()
            name = "$" + re.sub(r"\W", "_", str(imported.relative_to(main.parent.resolve())))
            if name not in scopes:
                scopes[name] = ""  # reserve the place: a file that imports itself must not loop
                code = inlined(imported)
                exported = ", ".join(found[1] for found in _EXPORT.findall(code))
                code = _EXPORT.sub(r"\1", code)
                del scopes[name]  # what it imports itself comes first
                scopes[name] = (
                    f"const {name} = (() => {{\n{code}\nreturn {{ {exported} }};\n}})();\n"
                )
            return f"const {{{names.replace(' as ', ': ')}}} = {name};"

        code = _IMPORT.sub(scope, path.read_text(encoding="utf-8"))
        if re.search(r"^import\b", code, re.MULTILINE):
            raise ValueError(f'{path.name} must import as: import {{ a, b }} from "./file.js";')
        return code

    last = inlined(main)
    return "\n".join([*scopes.values(), last])


def script(module: str, name: str) -> str:
    """Return a bundled module as a classic script, which also a page opened as a file may load.

    Parameters
    ----------
    module
        What `bundle` returns.
    name
        What the script gives the module's default export to: ``window.ropeHost``.

    Raises
    ------
    ValueError
        If the module has no default export, or more than one.
    """
    code, count = _DEFAULT.subn(f"{name} = ", _EXPORT.sub(r"\1", module))
    if count != 1:
        raise ValueError(f"module must have one default export, got {count}")
    return f"(() => {{\n{code}\n}})();\n"
