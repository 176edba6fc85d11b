// Python for the live cells of one page: a module worker, so that a runaway cell can be stopped.
// In:  {kind: "start", python}, {kind: "run", id, code, name}
// Out: {kind: "progress", step, loaded, total}, {kind: "ready", seconds, loaded},
//      {kind: "text" | "data", id, value}, {kind: "done", id, seconds, error},
//      {kind: "failed", message} when there is and will be no Python
let page; // the Python object that runs the cells
let cell; // the id of the cell that runs
let failed = false;

function fail(error) {
  if (failed) return;
  failed = true;
  postMessage({ kind: "failed", message: String(error?.message ?? error) });
}

// Count what arrives, and unpack the WebAssembly file, which the site keeps compressed.
function counted(sizes, base, total) {
  const loaded = new Map();
  let told = 0;
  const tell = (name, bytes) => {
    loaded.set(name, Math.min(bytes, sizes[name]));
    const sum = [...loaded.values()].reduce((a, b) => a + b, 0);
    if (sum - told > 200_000 || sum === total) {
      told = sum;
      postMessage({ kind: "progress", step: "loading", loaded: sum, total });
    }
  };
  const plainFetch = self.fetch.bind(self);
  self.fetch = async (address, options) => {
    const url = String(address?.url ?? address);
    const name = url.startsWith(base) ? url.slice(base.length) : null;
    if (!(name in sizes)) return plainFetch(address, options);
    let response;
    try {
      response = await plainFetch(address, options);
    } catch {
      response = { ok: false, status: "no answer" };
    }
    if (!response.ok) {
      fail(`${name}: ${response.status}`);
      throw new Error(`${name}: ${response.status}`);
    }
    let bytes = 0;
    let body = response.body.pipeThrough(
      new TransformStream({
        transform(chunk, out) {
          bytes += chunk.byteLength;
          tell(name, bytes);
          out.enqueue(chunk);
        },
      }),
    );
    const wasm = name.endsWith(".wasm");
    if (wasm) body = body.pipeThrough(new DecompressionStream("gzip"));
    return new Response(body, {
      headers: { "content-type": wasm ? "application/wasm" : "application/octet-stream" },
    });
  };
  return { tell, sum: () => [...loaded.values()].reduce((a, b) => a + b, 0) };
}

async function start(python) {
  const began = performance.now();
  const sizes = python.bytes;
  const total = Object.values(sizes).reduce((a, b) => a + b, 0);
  const runtime = python.base + python.runtime;
  const count = counted(sizes, python.base, total);
  // Pyodide only logs it when the WebAssembly file is damaged, and then waits for ever
  const instantiate = WebAssembly.instantiateStreaming;
  WebAssembly.instantiateStreaming = (...given) =>
    instantiate(...given).catch((error) => {
      fail(error);
      throw error;
    });
  const archives = python.archives.map((name) => fetch(python.base + name).then((response) => response.arrayBuffer()));
  archives.forEach((archive) => archive.catch(fail));
  // Pyodide imports its second module by itself, but only later
  const [{ loadPyodide }] = await Promise.all(
    ["pyodide.mjs", "pyodide.asm.mjs"].map(async (name) => {
      const module = await import(runtime + name);
      count.tell(python.runtime + name, sizes[python.runtime + name]);
      return module;
    }),
  );
  const pyodide = await loadPyodide({
    indexURL: runtime,
    stdLibURL: python.base + python.stdlib,
    packageBaseUrl: runtime, // there are no packages; never ask another host for one
    lockFileContents: JSON.stringify(python.lock),
    stdin: () => null,
  });
  for (const [i, archive] of archives.entries()) {
    pyodide.FS.writeFile(`/lib/live-${i}.zip`, new Uint8Array(await archive));
  }
  postMessage({ kind: "progress", step: "importing sympy", loaded: count.sum(), total });
  const send = (kind, value) =>
    postMessage({
      kind,
      id: cell,
      value: kind === "data" ? value.toJs({ dict_converter: Object.fromEntries }) : value,
    });
  pyodide.globals.set("send", send);
  page = pyodide.runPython(`
import sys
sys.path[:0] = [f"/lib/live-{i}.zip" for i in range(${archives.length})]
import live_runner, sympy
live_runner.Page(send)
`);
  postMessage({
    kind: "ready",
    seconds: (performance.now() - began) / 1000,
    loaded: count.sum(),
  });
}

function run({ id, code, name }) {
  const began = performance.now();
  cell = id;
  const result = page.run(code, name);
  const error = result?.toJs({ dict_converter: Object.fromEntries }) ?? null;
  result?.destroy();
  postMessage({ kind: "done", id, seconds: (performance.now() - began) / 1000, error });
}

self.onmessage = async ({ data }) => {
  try {
    if (data.kind === "start") await start(data.python);
    else run(data);
  } catch (error) {
    fail(error); // Pyodide itself broke (for example: out of memory, stack too deep)
  }
};
