// The live cells without a browser: the colours and the keys of the editor, and the client of the
// worker that Python runs in.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Editor, tokens } from "../../book/_live/editor.js";
import { Python } from "../../book/_live/python.js";
import { openPage } from "../tools/stage.mjs";

// ---- the editor ---------------------------------------------------------------------------------

test("the pieces of some code are the code, and names, texts and numbers have their classes", () => {
  const code = '@once\ndef θ_1(x):  # a turn\n    """Two\n    lines."""\n    return not max(x, 0.5e-3) == f"{x}\\""\n';
  const found = tokens(code);
  assert.equal(found.map(([, text]) => text).join(""), code);
  const kinds = Object.fromEntries(found.map(([kind, text]) => [text, kind]));
  const wanted = { "@": "o", once: "n", def: "k", θ_1: "nf", x: "n", "# a turn": "c1", "0.5e-3": "mi", max: "nb" };
  for (const [text, kind] of Object.entries({ ...wanted, not: "ow", return: "k", "==": "o" })) {
    assert.equal(kinds[text], kind, text);
  }
  assert.equal(kinds['"""Two\n    lines."""'], "s2");
  assert.equal(kinds['f"{x}\\""'], "s2");
  const classes = Object.fromEntries(tokens("class A: pass; import b; None; self").map(([kind, text]) => [text, kind]));
  assert.deepEqual([classes.A, classes.import, classes.None, classes.self], ["nc", "kn", "kc", "bp"]);
});

/** What a browser does to the text area that has the focus. */
function execCommand(_command, _shown, text = "") {
  const { value, selectionStart: from, selectionEnd: to } = document.activeElement;
  document.activeElement.value = value.slice(0, from) + text + value.slice(to);
  document.activeElement.setSelectionRange(from + text.length, from + text.length);
  document.activeElement.dispatchEvent(new window.Event("input"));
  return true;
}

/** An editor with some code, where | stands for the caret or for both ends of the selection. */
function edit(code) {
  openPage();
  document.execCommand = execCommand;
  const [from, to = from] = [...code.matchAll(/\|/g)].map(({ index }, i) => index - i);
  const told = [];
  const actions = { run: () => told.push("run"), leave: () => told.push("leave") };
  const editor = new Editor(code.replaceAll("|", ""), document.body, { "aria-label": "Code" }, actions);
  document.body.append(editor.element);
  editor.area.focus();
  editor.area.setSelectionRange(from, to);
  const press = (key, more = {}) => {
    const event = new window.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
    editor.area.dispatchEvent(event);
    return event.defaultPrevented;
  };
  const shown = () => {
    const { value, selectionStart, selectionEnd } = editor.area;
    const ends = [...new Set([selectionStart, selectionEnd])].reverse();
    return ends.reduce((text, at) => `${text.slice(0, at)}|${text.slice(at)}`, value);
  };
  return { editor, press, shown, told };
}

test("Enter keeps the indent, adds one after a colon and takes one back after a return", () => {
  for (const [before, after] of [
    ["a = 1|", "a = 1\n|"],
    ["    a = 1|", "    a = 1\n    |"],
    ["  if a:  # why|", "  if a:  # why\n      |"],
    ["        return a|", "        return a\n    |"],
    ["returned = 1|", "returned = 1\n|"],
    ["ab|c|d", "ab\n|d"],
  ]) {
    const { press, shown } = edit(before);
    assert.equal(press("Enter"), true);
    assert.equal(shown(), after);
  }
});

test("Tab and Backspace move by stops of four, and lines together", () => {
  for (const [before, key, after] of [
    ["|a", "Tab", "    |a"],
    ["ab|", "Tab", "ab  |"],
    ["      |a", "Backspace", "    |a"],
    ["    |a", "Backspace", "|a"],
    ["a\n|b\nc|\nd", "Tab", "a\n|    b\n    c|\nd"],
  ]) {
    const { press, shown } = edit(before);
    assert.equal(press(key), true);
    assert.equal(shown(), after);
  }
  const { press, shown } = edit("|    a\n  b\nc|");
  press("Tab", { shiftKey: true });
  assert.equal(shown(), "|a\nb\nc|");
  assert.equal(edit("ab|").press("Backspace"), false, "the browser's own");
  assert.equal(edit("a|  |b").press("Backspace"), false);
});

test("a comment comes before all lines of the selection, and goes from all", () => {
  const { press, shown, editor } = edit("|if a:\n\n    b|");
  press("/", { ctrlKey: true });
  assert.equal(shown(), "|# if a:\n\n    # b|");
  press("/", { metaKey: true });
  assert.equal(editor.code, "if a:\n\n    b");
});

test("the keys that run and leave, and the ones that are left to the browser", () => {
  const { press, told, editor } = edit("a|");
  press("Enter", { ctrlKey: true });
  press("Enter", { shiftKey: true });
  press("Escape");
  assert.deepEqual(told, ["run", "run", "leave"]);
  assert.deepEqual([press("c", { ctrlKey: true }), press("Tab", { altKey: true }), press("x")], [false, false, false]);
  assert.equal(press("Enter", { isComposing: true }), false);
  assert.equal(editor.code, "a");
});

test("the coloured copy has a line for every line, and marks the one of an error", () => {
  const { editor } = edit("a = 1\n# b\n|");
  editor.paint(2);
  const lines = [...editor.copy.querySelectorAll(".live-line")];
  assert.deepEqual(
    lines.map((line) => line.textContent),
    ["a = 1\n", "# b\n", "\n"],
  );
  assert.deepEqual(
    lines.map((line) => line.classList.contains("live-error-line")),
    [false, true, false],
  );
  editor.code = "new";
  assert.equal(editor.copy.textContent.trim(), "new");
});

// ---- the client of the worker -------------------------------------------------------------------

let page;
let worker;
class FakeWorker {
  constructor(address) {
    Object.assign(this, { address: String(address), sent: [], ended: false });
    worker = this;
  }
  postMessage(message) {
    this.sent.push(message);
  }
  terminate() {
    this.ended = true;
  }
}
const told = (kind, more) => worker.onmessage({ data: { kind, ...more } });
const turns = () => new Promise((done) => setImmediate(done));

async function start({
  answer = { ok: true, json: async () => ({ worker: "live-worker.js?v=1" }) },
  protocol = "https:",
} = {}) {
  page = { changes: 0, said: [], ends: 0, failures: [] };
  worker = null;
  Object.assign(globalThis, {
    Worker: FakeWorker,
    location: { protocol },
    fetch: async () => answer,
  });
  const python = new Python({ bytes: 2e6 }, "https://book.example/_static/live-cells.js", {
    changed: () => {
      page.changes += 1;
    },
    announced: (text) => page.said.push(text),
    ended: () => {
      page.ends += 1;
    },
    failed: (message) => page.failures.push(message),
  });
  python.start();
  await turns();
  return python;
}

/** A step that writes down what happens to it. */
function step(name, events) {
  return {
    id: name,
    begin: (send) => send(`code of ${name}`, name),
    onMessage: ({ kind }) => events.push(`${name} ${kind}`),
  };
}

beforeEach(() => openPage());

test("Python is loaded once, says how far it is, and runs what waits in its order", async () => {
  const python = await start();
  assert.equal(worker.address, "https://book.example/_static/live-worker.js?v=1");
  assert.equal(worker.sent[0].python.base, "https://book.example/_static/vendor/python/");
  python.start();
  assert.equal(python.state, "loading");
  const events = [];
  python.enqueue(step("one", events), step("two", events));
  told("progress", { step: "loading", loaded: 1e6, total: 2e6 });
  assert.deepEqual([python.share, python.progress], [0.5, "Loading Python: 1.0 of 2.0 MB"]);
  told("progress", { step: "loading", loaded: 2e6, total: 2e6 });
  assert.equal(python.progress, "Starting Python …");
  told("progress", { step: "importing sympy", loaded: 2e6, total: 2e6 });
  assert.equal(python.progress, "Importing sympy …");
  assert.deepEqual(worker.sent.slice(1), []);
  told("ready", { seconds: 3, loaded: 2e6 });
  assert.deepEqual(worker.sent.at(-1), { kind: "run", id: "one", code: "code of one", name: "one" });
  told("text", { value: "out" });
  told("done", {});
  assert.deepEqual(events, ["one text", "one done"]);
  assert.equal(python.state, "running");
  python.finish(true);
  assert.equal(worker.sent.at(-1).id, "two");
  python.finish(true);
  assert.deepEqual([python.state, python.queue.length, page.failures], ["ready", 0, []]);
});

test("ready with nothing to do is said", async () => {
  const python = await start();
  told("ready", { seconds: 3, loaded: 2e6 });
  assert.deepEqual([python.state, page.said], ["ready", ["Python is ready."]]);
  assert.equal(document.documentElement.dataset.livePythonBytes, "2000000");
});

test("after an error, the steps that wait for it are dropped", async () => {
  const python = await start();
  told("ready", { seconds: 3, loaded: 2e6 });
  python.enqueue(step("one", []), step("two", []));
  python.finish(false);
  assert.deepEqual([python.state, python.queue.length, worker.sent.length], ["ready", 0, 2]);
});

test("a worker that is ended stops, and all names are gone", async () => {
  const python = await start();
  const first = worker;
  told("ready", { seconds: 3, loaded: 2e6 });
  python.enqueue(step("one", []), step("two", []));
  python.terminate("absent");
  assert.deepEqual(
    [first.ended, python.state, python.queue.length, python.current, page.ends],
    [true, "absent", 0, null, 1],
  );
  python.start();
  await turns();
  assert.notEqual(worker, first);
});

test("a loading that was cancelled starts no worker, however late its answer comes", async () => {
  let arrive;
  const answer = { ok: true, json: () => new Promise((done) => (arrive = done)) };
  const python = await start({ answer });
  python.terminate("absent");
  arrive({ worker: "live-worker.js" });
  await turns();
  assert.equal(worker, null);
});

test("what cannot be loaded is said in words that help", async () => {
  await start({ protocol: "file:" });
  assert.match(page.failures[0], /opened as a file.*make serve/);
  const python = await start({ answer: { ok: false, status: 404 } });
  assert.match(page.failures[0], /could not be loaded, or broke off \(contents.json: 404\). Press Run/);
  assert.equal(python.state, "failed");
  await start();
  told("failed", { message: "out of memory" });
  assert.match(page.failures[0], /out of memory/);
  await start();
  worker.onerror({});
  assert.match(page.failures[0], /the worker did not start/);
  Object.defineProperty(globalThis, "navigator", { value: { onLine: false }, configurable: true });
  await start({ answer: { ok: false, status: 0 } });
  assert.match(page.failures[0], /you seem to be offline/);
});
