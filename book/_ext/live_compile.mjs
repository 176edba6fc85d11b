// Compile the Python files of a zip file with the Python that will run them in the page.
//   node live_compile.mjs PYODIDE_FOLDER SOURCE.zip TARGET.zip [SOURCE.zip TARGET.zip ...]
// Docstrings go (a fifth of the bytes); everything else of the code stays, asserts too.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...archives] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide.mjs")));
const lock = JSON.parse(fs.readFileSync(path.join(folder, "pyodide-lock.json"), "utf8"));
const python = await loadPyodide({
  env: { PYTHONNODEBUGRANGES: "1", HOME: "/home/pyodide" },
  lockFileContents: JSON.stringify({ info: lock.info, packages: {} }),
});
python.runPython(`
import ast, warnings, zipfile
from importlib._bootstrap_external import _code_to_hash_pyc

warnings.simplefilter("ignore")
FIXED = (1980, 1, 1, 0, 0, 0)

def drop_docstrings(part):
    """Drop those of a module or a statement and of all statements in it."""
    if isinstance(part, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        if ast.get_docstring(part, clean=False) is not None:
            part.body = part.body[1:] or [ast.Pass(lineno=1, col_offset=0)]
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(part, name, ()):
            drop_docstrings(inner)

def compiled(source_path, target_path):
    with zipfile.ZipFile(source_path) as source, zipfile.ZipFile(target_path, "w") as target:
        for entry in source.infolist():
            if entry.is_dir():
                continue
            name, data = entry.filename, source.read(entry)
            if name.endswith(".py"):
                tree = ast.parse(data, name)
                drop_docstrings(tree)
                code = compile(tree, name, "exec", dont_inherit=True, optimize=0)
                name, data = name + "c", _code_to_hash_pyc(code, bytes(8), False)
            info = zipfile.ZipInfo(name, FIXED)
            info.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(info, data, compresslevel=9)
`);
const compiled = python.globals.get("compiled");
while (archives.length) {
  const [source, target] = archives.splice(0, 2);
  python.FS.writeFile("/source.zip", fs.readFileSync(source));
  compiled("/source.zip", "/target.zip");
  fs.writeFileSync(target, python.FS.readFile("/target.zip"));
}
