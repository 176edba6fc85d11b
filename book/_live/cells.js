// "Edit and run" for the cells tagged `live`. How authors use it: book/_ext/live_cells.py, which makes
// one script of this file and what it imports. Nothing of Python is asked for before a press.
import { make } from "../../ropebook/figures/kit/dom.js";
import { Editor } from "./editor.js";
import { megabytes, Python } from "./python.js";

const script = document.currentScript;
const promised = JSON.parse(script.dataset.python); // python, sympy (versions), bytes
const seconds = (s) => (s < 10 ? `${s.toFixed(2)} s` : `${s.toFixed(0)} s`);
const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

// ---- the page -----------------------------------------------------------------------------------

const cells = [];
const announcer = make("div", { className: "live-announcer", role: "status", "aria-live": "polite" });

const python = new Python(promised, script.src, {
  changed: refresh,
  announced: announce,
  ended() {
    for (const cell of cells) cell.ran = null;
  },
  failed(message) {
    for (const cell of cells) if (cell.open) cell.setStatus("failed", message);
    announce(message);
    refresh();
  },
});

function announce(text) {
  announcer.textContent = "";
  setTimeout(() => {
    announcer.textContent = text;
  }, 50);
}

function refresh() {
  for (const cell of cells) cell.refresh();
}

// ---- one cell -----------------------------------------------------------------------------------

class Cell {
  constructor(element, number) {
    this.element = element;
    this.number = number; // among those that can be edited
    this.editable = element.classList.contains("tag_live");
    this.name = this.editable ? `live cell ${number}` : "the setup";
    this.source = element.querySelector(".cell_input .highlight pre");
    this.original = this.source.textContent.replace(/\n$/, "");
    this.ran = null; // the text with which it ran last in this interpreter
    this.open = false;
    element.id ||= `live-cell-${cells.length + 1}`;
    if (this.editable) this.offer();
  }

  get code() {
    return this.open ? this.editor.code : this.original;
  }

  get state() {
    return this.element.dataset.live;
  }

  button(text, label, onclick) {
    return make(
      "button",
      { type: "button", className: "live-button", "aria-label": `${label} ${this.name}`, onclick },
      text,
    );
  }

  /** Put the button "Edit and run" below the cell. */
  offer() {
    this.element.dataset.live = "closed";
    this.input = this.element.querySelector(".cell_input");
    this.printed = this.element.querySelector(".cell_output");
    const edit = this.button("Edit and run", "Edit and run", () => this.edit());
    edit.classList.add("live-edit");
    const size = `Python runs in this page; ${megabytes(promised.bytes)} MB, loaded once`;
    this.note = make("span", { className: "live-note" }, size);
    this.bar = make("div", { className: "live-bar" }, edit, this.note);
    this.input.after(this.bar);
  }

  /** Open the editor, and ask for Python. */
  edit() {
    this.open = true;
    const hint = `live-hint-${this.number}`;
    const named = { "aria-label": `Code of ${this.name}`, "aria-describedby": hint };
    this.editor = new Editor(this.original, this.source, named, {
      run: () => this.run(),
      leave: () => this.runButton.focus(),
    });
    this.editor.area.addEventListener("input", refresh);
    for (const child of this.input.children) child.hidden = true;
    this.input.append(this.editor.element);
    this.runButton = this.button("Run", "Run", () => this.run());
    this.runButton.classList.add("live-run");
    this.stopButton = this.button("Stop", "Stop", () => this.stop());
    this.restoreButton = this.button("Restore the original", "Restore the original of", () => this.restore());
    this.meter = make("progress", { max: 1, value: 0, hidden: true, "aria-label": "Loading Python" });
    this.status = make("span", { className: "live-status" });
    this.bar.replaceChildren(this.runButton, this.stopButton, this.restoreButton, this.meter, this.status);
    this.result = make("div", {
      className: "cell_output docutils container live-result",
      hidden: true,
      role: "region",
      "aria-label": `Result of ${this.name}`,
    });
    this.bar.after(keysHint(hint), this.result);
    this.editor.area.focus({ preventScroll: true });
    this.editor.area.setSelectionRange(0, 0);
    python.start();
    if (python.state !== "failed") this.setStatus("loading");
  }

  /** What the status line says; "loading" and "running" are kept up to date by refresh(). */
  setStatus(state, text = "") {
    this.element.dataset.live = state;
    this.message = text;
    refresh();
  }

  run() {
    if (["waiting", "running"].includes(this.state)) return;
    python.start();
    if (python.state === "failed") return;
    // the cells above that have not run with their present text, from the first such on
    const above = cells.slice(0, cells.indexOf(this));
    const stale = above.findIndex((cell) => cell.ran !== cell.code);
    const before = stale < 0 ? [] : above.slice(stale);
    this.requested = performance.now();
    this.began = null;
    this.first = before.filter((cell) => cell.editable).map((cell) => cell.number);
    this.setStatus("waiting");
    announce(python.state === "loading" ? "Loading Python." : "Running.");
    python.enqueue(...[...before, this].map((cell) => new Step(cell, this)));
  }

  stop() {
    const loading = python.state === "loading";
    const took = (performance.now() - (this.began ?? this.requested)) / 1000;
    python.terminate("absent");
    for (const cell of cells) {
      if (["loading", "waiting"].includes(cell.state)) cell.setStatus("ready");
    }
    this.setStatus("stopped", loading ? "Cancelled." : `Stopped after ${seconds(took)}.`);
    announce(this.message);
    if (!loading) python.start(); // ready again by the time the cell is mended
    this.editor.area.focus();
  }

  restore() {
    this.editor.code = this.original;
    this.result.hidden = true;
    if (this.printed) this.printed.hidden = false;
    this.setStatus("ready", "This is the original again.");
    announce(this.message);
    this.editor.area.focus();
  }

  clear() {
    this.result.replaceChildren();
    this.result.hidden = false;
    if (this.printed) this.printed.hidden = true;
    this.editor.paint();
  }

  write(text, kind = "stream") {
    const last = this.result.lastElementChild;
    if (kind === "stream" && last?.classList.contains("live-stream")) {
      last.querySelector("pre").append(text);
      return;
    }
    const className = `output live-${kind} highlight-myst-ansi notranslate`;
    this.result.append(make("div", { className }, make("div", { className: "highlight" }, scrollable(text))));
  }

  show(data) {
    const box = make("div", { className: "output tex2jax_process mathjax_process live-value" });
    if (data["text/html"] !== undefined) {
      box.classList.add("text_html");
      box.innerHTML = data["text/html"];
    } else if (data["text/latex"] !== undefined && window.MathJax?.typesetPromise) {
      box.classList.add("text_latex");
      box.textContent = `\\[${data["text/latex"].replace(/^\$+|\$+$/g, "")}\\]`;
    } else {
      this.write(data["text/plain"], "plain");
      return;
    }
    this.result.append(box);
    window.MathJax?.typesetPromise?.([box]).catch(() => {
      box.replaceChildren(make("pre", {}, data["text/plain"]));
    });
  }

  showError(error, failedCell) {
    const box = make("div", { className: "output live-error" });
    if (failedCell !== this) {
      const link = make("a", { href: `#${failedCell.element.id}` }, failedCell.name);
      box.append(make("p", {}, "This cell did not run, because ", link, " above it failed:"));
    }
    box.append(scrollable(error.text));
    if (error.full) {
      box.append(make("details", {}, make("summary", {}, "The whole traceback"), scrollable(error.full)));
    }
    this.result.append(box);
    if (failedCell === this && error.line) this.editor.paint(error.line);
  }

  /** The run that this cell asked for has ended, well or in an error of one of its steps. */
  onDone(took, error, failedCell) {
    const many = this.first.length > 1 ? "s" : "";
    const first = this.first.length ? ` Ran live cell${many} ${this.first.join(", ")} first.` : "";
    this.element.dataset.seconds = ((performance.now() - this.requested) / 1000).toFixed(3);
    if (error) {
      const own = failedCell === this;
      const line = own && error.line ? `, line ${error.line}` : "";
      this.showError(error, failedCell);
      this.setStatus("error", `Error${line}.${own ? first : ""}`);
      announce(`${this.name}: ${error.message}${line}`);
      return;
    }
    if (!this.result.childElementCount) this.write("The cell ran; it shows nothing.", "plain");
    this.setStatus("done", `Done in ${seconds(took)}.${first}`);
    announce(`${this.name}: done. ${this.result.innerText.slice(0, 400)}`);
  }

  /** Bring buttons and status in line with the state. */
  refresh() {
    if (!this.open) {
      if (this.editable && python.state === "ready") this.note.textContent = "Python is loaded";
      return;
    }
    if (this.state === "loading" && ["ready", "running"].includes(python.state)) {
      this.element.dataset.live = "ready";
      this.message = "Python is ready.";
    }
    const busy = this.state === "waiting" || this.state === "running";
    const loading = python.state === "loading" && (busy || this.state === "loading");
    this.runButton.setAttribute("aria-disabled", String(busy));
    this.stopButton.hidden = !busy;
    this.restoreButton.hidden = busy || (this.editor.code === this.original && this.result.hidden);
    this.meter.hidden = !loading;
    if (loading) this.meter.value = python.share;
    const text = loading ? `${python.progress}${busy ? "; your cell is next" : ""}` : this.statusText();
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  statusText() {
    if (this.state === "waiting") {
      const { requestedBy } = python.current ?? {};
      return requestedBy === this ? "Running the cells above first …" : `Waits for ${requestedBy?.name} …`;
    }
    if (this.state !== "running") return this.message;
    const took = (performance.now() - this.began) / 1000;
    return took < 2 ? "Running …" : `Running for ${took.toFixed(0)} s. Stop it if it hangs.`;
  }
}

const scrollable = (text) => make("pre", { tabIndex: 0 }, text);

const keysHint = (id) =>
  make(
    "p",
    { className: "live-hint", id },
    make("kbd", {}, isMac ? "⌘ Enter" : "Ctrl Enter"),
    " runs, ",
    make("kbd", {}, "Esc"),
    ` leaves the editor. Python ${promised.python} with sympy ${promised.sympy}, no NumPy or torch; ` +
      "nothing leaves your device.",
  );

/** One run of one cell on behalf of the cell whose button was pressed. */
class Step {
  constructor(cell, requestedBy) {
    Object.assign(this, { cell, requestedBy, id: `${cells.indexOf(cell)}` });
  }

  begin(send) {
    const { cell, requestedBy } = this;
    this.code = cell.code;
    // what runs now is news to every cell below
    for (const later of cells.slice(cells.indexOf(cell))) later.ran = null;
    if (cell.open) cell.clear();
    requestedBy.began ??= performance.now();
    if (cell === requestedBy) cell.setStatus("running");
    send(this.code, cell.name);
  }

  onMessage({ kind, value, seconds: took, error }) {
    const { cell, requestedBy } = this;
    if (kind === "text" && cell.open) cell.write(value);
    else if (kind === "data" && cell.open) cell.show(value);
    else if (kind === "done") this.onDone(took, error, cell, requestedBy);
  }

  onDone(took, error, cell, requestedBy) {
    const own = cell === requestedBy;
    if (!error) cell.ran = this.code;
    if (error && !own) {
      requestedBy.clear();
      if (cell.open) {
        cell.showError(error, cell);
        cell.setStatus("error", `Error${error.line ? `, line ${error.line}` : ""}.`);
      }
    }
    if (own || error) requestedBy.onDone(took, error, cell);
    else if (cell.open) cell.setStatus("done", `Ran first, for ${requestedBy.name}.`);
    python.finish(!error);
  }
}

function begin() {
  let number = 0;
  for (const element of document.querySelectorAll(".cell.tag_live, .cell.tag_live-setup")) {
    if (element.classList.contains("tag_live")) number += 1;
    cells.push(new Cell(element, number));
  }
  document.body.append(announcer);
  setInterval(() => python.state === "running" && refresh(), 500);
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
