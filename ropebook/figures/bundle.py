"""JavaScript files and what they import, as one text: a module, or a classic script."""

import re
from pathlib import Path

__all__ = ["bundle", "scopes"]

_IMPORT = re.compile(r'^import\s+\{([^}]*)\}\s+from\s+"(\.{1,2}/[\w/-]+\.js)";', re.MULTILINE)
_EXPORT = re.compile(r"^export\s+((?:async\s+)?(?:function\*?|const|class)\s+(\w+))", re.MULTILINE)
_DEFAULT = re.compile(r"^export\s+default\s+", re.MULTILINE)


def scopes(folder: Path, *names: str) -> dict[str, str]:
    """Return files and the files that they import, each as a scope of its own.

    Parameters
    ----------
    folder
        Where they lie, or below it.
    names
        The files, for instance ``"angle_heatmap.js"``.

    Returns
    -------
    dict of str
        By the name of its constant, ``$angle_heatmap_js``, the code that makes it from what the
        file exports; imported files come first.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If an import is not of the form ``import { a, b } from "./file.js";``.
    """
    folder = folder.resolve()
    found: dict[str, str] = {}

    def add(path: Path) -> str:
        name = "$" + re.sub(r"\W", "_", str(path.relative_to(folder)))
        if name in found:
            return name
        if not path.is_file():
            raise FileNotFoundError(f"{path.parent.name} has no file {path.name}")
        found[name] = ""  # reserve the place: a file that imports itself must not loop

        def constants(match: re.Match[str]) -> str:
            imported = add((path.parent / match[2]).resolve())
            return f"const {{{match[1].replace(' as ', ': ')}}} = {imported};"

        code = _IMPORT.sub(constants, path.read_text(encoding="utf-8"))
        if re.search(r"^import\b", code, re.MULTILINE):
            raise ValueError(f'{path.name} must import as: import {{ a, b }} from "./file.js";')
        exported = [match[1] for match in _EXPORT.findall(code)]
        code, defaults = _DEFAULT.subn("const $default = ", _EXPORT.sub(r"\1", code))
        exported += ["default: $default"] * defaults
        del found[name]  # what it imports comes first
        found[name] = (
            f"const {name} = (() => {{\n{code}\nreturn {{ {', '.join(exported)} }};\n}})();\n"
        )
        return name

    for name in names:
        add(folder / name)
    return found


def bundle(main: Path) -> str:
    """Return a file with a default export, and the files that it imports, as one module.

    Parameters and errors are those of `scopes`.
    """
    code = scopes(main.parent, main.name)
    return "\n".join([*code.values(), f"export default {list(code)[-1]}.default;\n"])
