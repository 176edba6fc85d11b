// "Edit and run" for the cells tagged `live`. How authors use it: book/_ext/live_cells.py.
// Nothing of Python is asked for before the reader presses a button.
(() => {
  const script = document.currentScript;
  const promised = JSON.parse(script.dataset.python); // python, sympy (versions), bytes
  const INDENT = "    ";

  // --- small helpers -----------------------------------------------------------------------

  function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in element) element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  const seconds = (s) => (s < 10 ? `${s.toFixed(2)} s` : `${s.toFixed(0)} s`);
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

  // --- colours: the classes that Pygments gave the cell when the book was built --------------

  const KEYWORDS = new Set(
    (
      "and as assert async await break class continue def del elif else except finally for from " +
      "global if import in is lambda nonlocal not or pass raise return try while with yield " +
      "match case"
    ).split(" "),
  );
  const BUILTINS = new Set(
    (
      "abs all any bool complex dict display divmod enumerate float int isinstance len list map " +
      "max min pow print range repr reversed round set sorted str sum tuple type zip " +
      "AssertionError TypeError ValueError ZeroDivisionError"
    ).split(" "),
  );
  const TOKEN = new RegExp(
    [
      /(#[^\n]*)/, // 1 comment
      /([rbfuRBFU]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/, // 2
      /((?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?j?)/, // 3 number
      /([p{L}_][p{L}p{N}_]*)/, // 4 name
      /(@(?=[p{L}_]))|([-+*/%@&|^~<>=!:]+)/, // 5 decorator, 6 operator
    ]
      .map((part) => part.source)
      .join("|"),
    "gu",
  );

  function tokens(code) {
    const found = [];
    let end = 0;
    let before = "";
    for (const match of code.matchAll(TOKEN)) {
      if (match.index > end) found.push(["", code.slice(end, match.index)]);
      const [text, comment, string, number, name] = match;
      let kind = "o";
      if (comment) kind = "c1";
      else if (string) kind = "s2";
      else if (number) kind = "mi";
      else if (name) {
        if (["True", "False", "None"].includes(name)) kind = "kc";
        else if (["and", "or", "not", "in", "is"].includes(name)) kind = "ow";
        else if (["import", "from"].includes(name)) kind = "kn";
        else if (name === "self") kind = "bp";
        else if (KEYWORDS.has(name)) kind = "k";
        else if (before === "def") kind = "nf";
        else if (before === "class") kind = "nc";
        else if (BUILTINS.has(name)) kind = "nb";
        else kind = "n";
        before = name;
      }
      found.push([kind, text]);
      end = match.index + text.length;
    }
    found.push(["", code.slice(end)]);
    return found;
  }

  // One <span class="live-line"> a line, so that the line of an error can be marked.
  function coloured(code, markedLine) {
    let line = make("span", { className: "live-line" });
    const lines = [line];
    for (const [kind, text] of tokens(code)) {
      text.split("\n").forEach((piece, i) => {
        if (i) {
          line.append("\n");
          line = make("span", { className: "live-line" });
          lines.push(line);
        }
        if (piece) line.append(kind ? make("span", { className: kind }, piece) : piece);
      });
    }
    lines[markedLine - 1]?.classList.add("live-error-line");
    line.append("\n"); // room for the caret after a last empty line
    return lines;
  }

  // --- the editor: a text area over its own coloured copy ------------------------------------

  class Editor {
    constructor(code, label, hintId, like, onRun, onLeave) {
      this.copy = make("pre", { "aria-hidden": "true" });
      this.area = make("textarea", {
        value: code,
        spellcheck: false,
        autocapitalize: "off",
        wrap: "off",
        "aria-label": label,
        "aria-describedby": hintId,
      });
      this.area.setAttribute("autocomplete", "off");
      this.area.setAttribute("autocorrect", "off");
      this.element = make(
        "div",
        { className: "live-editor highlight" },
        make("div", { className: "live-sheet" }, this.copy, this.area),
      );
      const { fontSize, lineHeight } = getComputedStyle(like);
      this.element.style.setProperty("--live-size", fontSize);
      this.element.style.setProperty("--live-line", lineHeight);
      this.area.addEventListener("input", () => this.paint());
      this.area.addEventListener("keydown", (event) => this.key(event, onRun, onLeave));
      this.paint();
    }

    get code() {
      return this.area.value;
    }

    set code(value) {
      this.area.value = value;
      this.paint();
    }

    paint(markedLine = 0) {
      this.copy.replaceChildren(...coloured(this.code, markedLine));
    }

    // Replace from..to as typing would, so that the browser's undo knows of it.
    replace(from, to, text) {
      this.area.setSelectionRange(from, to);
      const typed = text
        ? document.execCommand("insertText", false, text)
        : from === to || document.execCommand("delete");
      if (!typed) {
        this.area.setRangeText(text, from, to, "end");
        this.paint();
      }
    }

    key(event, onRun, onLeave) {
      if (event.isComposing) return;
      const { area } = this;
      const { value, selectionStart: from, selectionEnd: to } = area;
      const command = event.ctrlKey || event.metaKey;
      const lineStart = value.lastIndexOf("\n", from - 1) + 1;
      const before = value.slice(lineStart, from);
      const handled = () => event.preventDefault();
      if (event.key === "Enter" && (command || event.shiftKey)) {
        handled();
        onRun();
      } else if (event.key === "Escape") {
        handled();
        onLeave();
      } else if (command && event.key === "/") {
        handled();
        this.lines(from, to, (lines) =>
          lines.every((l) => /^\s*(#|$)/.test(l))
            ? lines.map((l) => l.replace(/^(\s*)# ?/, "$1"))
            : lines.map((l) => (l.trim() ? l.replace(/^\s*/, "$&# ") : l)),
        );
      } else if (command || event.altKey) {
        return;
      } else if (event.key === "Enter") {
        handled();
        let indent = before.match(/^ */)[0];
        if (/:\s*(#.*)?$/.test(before)) indent += INDENT;
        else if (/^\s*(return|pass|break|continue|raise)\b/.test(before)) {
          indent = indent.slice(INDENT.length);
        }
        this.replace(from, to, `\n${indent}`);
      } else if (event.key === "Tab") {
        handled();
        if (event.shiftKey) {
          this.lines(from, to, (lines) => lines.map((l) => l.replace(/^ {1,4}/, "")));
        } else if (value.slice(from, to).includes("\n")) {
          this.lines(from, to, (lines) => lines.map((l) => (l ? INDENT + l : l)));
        } else {
          this.replace(from, to, INDENT.slice(before.length % INDENT.length));
        }
      } else if (event.key === "Backspace" && from === to && /^ +$/.test(before)) {
        handled();
        this.replace(from - (((before.length - 1) % INDENT.length) + 1), to, "");
      }
    }

    // Change the whole lines that the selection touches, and select them.
    lines(from, to, change) {
      const { value } = this.area;
      const start = value.lastIndexOf("\n", from - 1) + 1;
      const next = value.indexOf("\n", to > from ? to - 1 : to);
      const end = next < 0 ? value.length : next;
      const text = change(value.slice(start, end).split("\n")).join("\n");
      if (text === value.slice(start, end)) return;
      this.replace(start, end, text);
      if (to > from) this.area.setSelectionRange(start, start + text.length);
    }
  }

  // --- Python: one worker for the page --------------------------------------------------------

  const python = {
    state: "absent", // absent, loading, ready, running, failed
    worker: null,
    progress: "",
    share: 0,
    queue: [], // steps that wait: {cell, shownIn, show}
    current: null,

    start() {
      if (this.state !== "absent" && this.state !== "failed") return;
      if (location.protocol === "file:") {
        this.fail(
          "This page was opened as a file, and browsers do not let a file start Python. " +
            "Serve the book (make serve) and open it from there, or open the chapter in Jupyter.",
        );
        return;
      }
      this.state = "loading";
      this.step("starting", 0, promised.bytes);
      const attempt = Symbol("attempt");
      this.attempt = attempt;
      this.load(attempt).catch((error) => attempt === this.attempt && this.lost(error.message));
    },

    async load(attempt) {
      const base = new URL("vendor/python/", script.src).href;
      const answer = await fetch(`${base}contents.json`, { cache: "no-cache" });
      if (!answer.ok) throw new Error(`contents.json: ${answer.status}`);
      const contents = await answer.json();
      if (attempt !== this.attempt) return; // cancelled meanwhile
      this.worker = new Worker(new URL(contents.worker, script.src), { type: "module" });
      this.worker.onmessage = ({ data }) => this.hear(data);
      this.worker.onerror = (event) => this.lost(event.message || "the worker did not start");
      this.worker.postMessage({ kind: "start", python: { ...contents, base } });
    },

    step(step, loaded, total) {
      this.share = loaded / total;
      this.progress =
        step === "importing sympy"
          ? "Importing sympy …"
          : loaded < total
            ? `Loading Python: ${megabytes(loaded)} of ${megabytes(total)} MB`
            : "Starting Python …";
      refresh();
    },

    hear(message) {
      if (message.kind === "progress") this.step(message.step, message.loaded, message.total);
      else if (message.kind === "ready") {
        this.state = "ready";
        Object.assign(document.documentElement.dataset, {
          livePythonSeconds: message.seconds.toFixed(2),
          livePythonBytes: message.loaded,
        });
        if (!this.queue.length) say("Python is ready.");
        this.next();
      } else if (message.kind === "failed") this.lost(message.message);
      else this.current?.hear(message);
    },

    next() {
      if (this.state === "ready" && this.queue.length) {
        this.state = "running";
        this.current = this.queue.shift();
        this.current.begin((code, name) => this.worker.postMessage({ kind: "run", id: this.current.id, code, name }));
      }
      refresh();
    },

    finished(ok) {
      this.state = "ready";
      this.current = null;
      if (!ok) this.queue.length = 0;
      this.next();
    },

    // End the worker: a running cell stops at once, and all names are gone.
    end(state) {
      this.worker?.terminate();
      this.worker = this.attempt = null;
      this.state = state;
      this.queue.length = 0;
      this.current = null;
      for (const cell of cells) cell.ran = null;
    },

    lost(detail) {
      this.fail(
        navigator.onLine === false
          ? "Python could not be loaded: you seem to be offline. Everything else on the page works."
          : `Python could not be loaded, or broke off (${detail}). Press Run to try again.`,
      );
    },

    fail(message) {
      this.end("failed");
      this.progress = message;
      for (const cell of cells) if (cell.open) cell.tell("failed", message);
      say(message);
      refresh();
    },
  };

  // --- one cell ----------------------------------------------------------------------------------

  let count = 0;

  class Cell {
    constructor(element) {
      this.element = element;
      this.editable = element.classList.contains("tag_live");
      this.source = element.querySelector(".cell_input .highlight pre");
      this.original = this.source.textContent.replace(/\n$/, "");
      this.ran = null; // the text with which it ran last in this interpreter
      this.open = false;
      element.id ||= `live-cell-${cells.length + 1}`;
      if (!this.editable) return;
      this.number = ++count;
      this.name = `live cell ${this.number}`;
      element.dataset.live = "closed";
      this.edit = make(
        "button",
        { type: "button", className: "live-button live-edit", onclick: () => this.start() },
        "Edit and run",
      );
      this.edit.setAttribute("aria-label", `Edit and run ${this.name}`);
      this.note = make(
        "span",
        { className: "live-note" },
        `Python runs in this page; ${megabytes(promised.bytes)} MB, loaded once`,
      );
      this.bar = make("div", { className: "live-bar" }, this.edit, this.note);
      this.input = element.querySelector(".cell_input");
      this.input.after(this.bar);
      this.printed = element.querySelector(".cell_output");
    }

    get code() {
      return this.open ? this.editor.code : this.original;
    }

    start() {
      this.open = true;
      const hint = `live-hint-${this.number}`;
      this.editor = new Editor(
        this.original,
        `Code of ${this.name}`,
        hint,
        this.source,
        () => this.press(),
        () => this.run.focus(),
      );
      this.editor.area.addEventListener("input", () => refresh());
      this.input.querySelectorAll(":scope > *").forEach((child) => (child.hidden = true));
      this.input.append(this.editor.element);
      const button = (text, label, onclick) => {
        const made = make("button", { type: "button", className: "live-button", onclick }, text);
        made.setAttribute("aria-label", `${label} ${this.name}`);
        return made;
      };
      this.run = button("Run", "Run", () => this.press());
      this.run.classList.add("live-run");
      this.stop = button("Stop", "Stop", () => this.halt());
      this.restore = button("Restore the original", "Restore the original of", () => this.reset());
      this.meter = make("progress", { max: 1, value: 0, hidden: true });
      this.meter.setAttribute("aria-label", "Loading Python");
      this.status = make("span", { className: "live-status" });
      this.bar.replaceChildren(this.run, this.stop, this.restore, this.meter, this.status);
      this.hint = make(
        "p",
        { className: "live-hint", id: hint },
        make("kbd", {}, isMac ? "⌘ Enter" : "Ctrl Enter"),
        " runs, ",
        make("kbd", {}, "Esc"),
        ` leaves the editor. Python ${promised.python} with ` +
          `sympy ${promised.sympy}, no NumPy or torch; nothing leaves your device.`,
      );
      this.bar.after(this.hint);
      this.result = make("div", {
        className: "cell_output docutils container live-result",
        hidden: true,
      });
      this.result.setAttribute("role", "region");
      this.result.setAttribute("aria-label", `Result of ${this.name}`);
      this.hint.after(this.result);
      this.editor.area.focus({ preventScroll: true });
      this.editor.area.setSelectionRange(0, 0);
      python.start();
      if (python.state !== "failed") this.tell("loading");
    }

    // What the status line says; "loading" and "running" are kept up to date by refresh().
    tell(state, text = "") {
      this.element.dataset.live = state;
      this.message = text;
      refresh();
    }

    press() {
      if (["waiting", "running"].includes(this.element.dataset.live)) return;
      python.start();
      if (python.state === "failed") return;
      // the cells above that have not run with their present text, from the first such on
      const above = cells.slice(0, cells.indexOf(this));
      const stale = above.findIndex((cell) => cell.ran !== cell.code);
      const before = stale < 0 ? [] : above.slice(stale);
      this.pressed = performance.now();
      this.began = null;
      this.first = before.filter((cell) => cell.editable).map((cell) => cell.number);
      this.tell("waiting");
      say(python.state === "loading" ? "Loading Python." : "Running.");
      for (const cell of before) python.queue.push(new Step(cell, this));
      python.queue.push(new Step(this, this));
      python.next();
    }

    halt() {
      const loading = python.state === "loading";
      const took = (performance.now() - (this.began ?? this.pressed)) / 1000;
      python.end("absent");
      for (const cell of cells) {
        if (["loading", "waiting"].includes(cell.element.dataset.live)) cell.tell("ready");
      }
      this.tell("stopped", loading ? "Cancelled." : `Stopped after ${seconds(took)}.`);
      say(this.message);
      if (!loading) python.start(); // ready again by the time the cell is mended
      this.editor.area.focus();
    }

    reset() {
      this.editor.code = this.original;
      this.result.hidden = true;
      if (this.printed) this.printed.hidden = false;
      this.tell("ready", "This is the original again.");
      say(this.message);
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
      const pre = make("pre", {}, text);
      pre.tabIndex = 0;
      this.result.append(
        make(
          "div",
          { className: `output live-${kind} highlight-myst-ansi notranslate` },
          make("div", { className: "highlight" }, pre),
        ),
      );
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
        const link = make("a", { href: `#${failedCell.element.id}` }, failedCell.name ?? "the setup");
        box.append(make("p", {}, "This cell did not run, because ", link, " above it failed:"));
      }
      const pre = make("pre", {}, error.text);
      pre.tabIndex = 0;
      box.append(pre);
      if (error.full) {
        const full = make("pre", {}, error.full);
        full.tabIndex = 0;
        box.append(make("details", {}, make("summary", {}, "The whole traceback"), full));
      }
      this.result.append(box);
      if (failedCell === this && error.line) this.editor.paint(error.line);
    }

    done(took, error, failedCell) {
      const first = this.first.length
        ? ` Ran live cell${this.first.length > 1 ? "s" : ""} ${this.first.join(", ")} first.`
        : "";
      const line = error?.line && failedCell === this ? `, line ${error.line}` : "";
      const total = (performance.now() - this.pressed) / 1000;
      this.element.dataset.seconds = total.toFixed(3);
      if (error) {
        this.showError(error, failedCell);
        this.tell("error", `Error${line}.${failedCell === this ? first : ""}`);
        say(`${this.name}: ${error.message}${line}`);
      } else {
        if (!this.result.childElementCount) this.write("The cell ran; it shows nothing.", "plain");
        this.tell("done", `Done in ${seconds(took)}.${first}`);
        say(`${this.name}: done. ${this.result.innerText.slice(0, 400)}`);
      }
    }

    // Bring buttons and status in line with the state.
    refresh() {
      if (!this.open) {
        if (this.editable && python.state === "ready") this.note.textContent = "Python is loaded";
        return;
      }
      const state = this.element.dataset.live;
      const loading = python.state === "loading";
      const busy = state === "waiting" || state === "running";
      this.run.disabled = false;
      this.run.setAttribute("aria-disabled", String(busy));
      this.stop.hidden = !busy;
      this.restore.hidden = busy || (this.editor.code === this.original && this.result.hidden);
      this.meter.hidden = !(loading && (busy || state === "loading"));
      if (!this.meter.hidden) this.meter.value = python.share;
      let text = this.message;
      if (loading && (busy || state === "loading")) {
        text = `${python.progress}${busy ? "; your cell is next" : ""}`;
      } else if (state === "loading" && ["ready", "running"].includes(python.state)) {
        this.element.dataset.live = "ready";
        text = "Python is ready.";
        this.message = text;
      } else if (state === "waiting") {
        const { asked } = python.current ?? {};
        text = asked === this ? "Running the cells above first …" : `Waits for ${asked?.name} …`;
      } else if (state === "running") {
        const took = (performance.now() - this.began) / 1000;
        text = took < 2 ? "Running …" : `Running for ${took.toFixed(0)} s. Stop it if it hangs.`;
      }
      if (this.status.textContent !== text) this.status.textContent = text;
    }
  }

  // One run of one cell on behalf of the cell whose button was pressed.
  class Step {
    constructor(cell, asked) {
      Object.assign(this, { cell, asked, id: `${cells.indexOf(cell)}` });
    }

    begin(send) {
      const { cell, asked } = this;
      this.code = cell.code;
      // what runs now is news to every cell below
      for (const later of cells.slice(cells.indexOf(cell))) later.ran = null;
      if (cell.open) cell.clear();
      asked.began ??= performance.now();
      if (cell === asked) cell.tell("running");
      send(this.code, cell.name ?? "the setup");
    }

    hear({ kind, value, seconds: took, error }) {
      const { cell, asked } = this;
      if (kind === "text" && cell.open) cell.write(value);
      else if (kind === "data" && cell.open) cell.show(value);
      else if (kind === "done") {
        if (!error) cell.ran = this.code;
        if (error && cell !== asked) {
          asked.clear();
          if (cell.open) {
            cell.showError(error, cell);
            cell.tell("error", `Error${error.line ? `, line ${error.line}` : ""}.`);
          }
        }
        if (cell === asked || error) asked.done(took, error, cell);
        else if (cell.open) cell.tell("done", `Ran first, for ${asked.name}.`);
        python.finished(!error);
      }
    }
  }

  // --- the page --------------------------------------------------------------------------------

  const cells = [];
  const live = make("div", { className: "live-announcer" });
  live.setAttribute("role", "status");
  live.setAttribute("aria-live", "polite");

  function say(text) {
    live.textContent = "";
    setTimeout(() => (live.textContent = text), 50);
  }

  function refresh() {
    for (const cell of cells) cell.refresh();
  }

  function begin() {
    const tagged = document.querySelectorAll(".cell.tag_live, .cell.tag_live-setup");
    for (const element of tagged) cells.push(new Cell(element));
    document.body.append(live);
    setInterval(() => python.state === "running" && refresh(), 500);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
