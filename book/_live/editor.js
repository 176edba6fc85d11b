// The editor of a live cell: Python with the colours of the book, and the keys of an editor.
import { make } from "../../ropebook/figures/kit/dom.js";

const INDENT = "    ";

// ---- colours: the classes that Pygments gave the cell when the book was built ------------------

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
    /([\p{L}_][\p{L}\p{N}_]*)/u, // 4 name
    /(@(?=[\p{L}_]))|([-+*/%@&|^~<>=!:]+)/u, // 5 decorator, 6 operator
  ]
    .map((part) => part.source)
    .join("|"),
  "gu",
);

/** Some code in pieces: [[class, text], ...], where "" is a piece without a colour. */
export function tokens(code) {
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

/** The lines of some code as elements, coloured, and one of them marked. */
function colouredLines(code, markedLine) {
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

// ---- a text area over its own coloured copy ------------------------------------------------------

export class Editor {
  /**
   * An editor as `element`, with the looks of the element `like`. `attributes` are those of its text
   * area; run() and leave() are called by its keys.
   */
  constructor(code, like, attributes, { run, leave }) {
    this.copy = make("pre", { "aria-hidden": "true" });
    const plain = { spellcheck: false, autocapitalize: "off", autocomplete: "off", wrap: "off" };
    this.area = make("textarea", { value: code, ...plain, ...attributes });
    this.area.setAttribute("autocorrect", "off"); // its property is a truth value
    const sheet = make("div", { className: "live-sheet" }, this.copy, this.area);
    this.element = make("div", { className: "live-editor highlight" }, sheet);
    const { fontSize, lineHeight } = getComputedStyle(like);
    this.element.style.setProperty("--live-size", fontSize);
    this.element.style.setProperty("--live-line", lineHeight);
    this.area.addEventListener("input", () => this.paint());
    this.area.addEventListener("keydown", (event) => this.onKey(event, run, leave));
    this.paint();
  }

  get code() {
    return this.area.value;
  }

  set code(value) {
    this.area.value = value;
    this.paint();
  }

  /** Colour the copy, and mark the line of an error. */
  paint(markedLine = 0) {
    this.copy.replaceChildren(...colouredLines(this.code, markedLine));
  }

  /** Replace from..to as typing would, so that the browser's undo knows of it. */
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

  onKey(event, run, leave) {
    if (event.isComposing) return;
    const command = event.ctrlKey || event.metaKey;
    let handled = true;
    if (event.key === "Enter" && (command || event.shiftKey)) run();
    else if (event.key === "Escape") leave();
    else if (command && event.key === "/") this.toggleComment();
    else if (command || event.altKey) handled = false;
    else if (event.key === "Enter") this.breakLine();
    else if (event.key === "Tab") this.indent(event.shiftKey);
    else if (event.key === "Backspace") handled = this.outdent();
    else handled = false;
    if (handled) event.preventDefault();
  }

  /** The selection, and what stands before it on its line. */
  get selection() {
    const { value, selectionStart: from, selectionEnd: to } = this.area;
    return { from, to, text: value.slice(from, to), before: value.slice(value.lastIndexOf("\n", from - 1) + 1, from) };
  }

  toggleComment() {
    this.changeLines((lines) =>
      lines.every((line) => /^\s*(#|$)/.test(line))
        ? lines.map((line) => line.replace(/^(\s*)# ?/, "$1"))
        : lines.map((line) => (line.trim() ? line.replace(/^\s*/, "$&# ") : line)),
    );
  }

  breakLine() {
    const { from, to, before } = this.selection;
    let indent = before.match(/^ */)[0];
    if (/:\s*(#.*)?$/.test(before)) indent += INDENT;
    else if (/^\s*(return|pass|break|continue|raise)\b/.test(before)) indent = indent.slice(INDENT.length);
    this.replace(from, to, `\n${indent}`);
  }

  indent(backwards) {
    const { from, to, text, before } = this.selection;
    if (backwards) this.changeLines((lines) => lines.map((line) => line.replace(/^ {1,4}/, "")));
    else if (text.includes("\n")) this.changeLines((lines) => lines.map((line) => (line ? INDENT + line : line)));
    else this.replace(from, to, INDENT.slice(before.length % INDENT.length));
  }

  /** Back to the last stop of the indent, if there is nothing else before the caret; true if so. */
  outdent() {
    const { from, to, before } = this.selection;
    const alone = from === to && /^ +$/.test(before);
    if (alone) this.replace(from - (((before.length - 1) % INDENT.length) + 1), to, "");
    return alone;
  }

  /** Change the whole lines that the selection touches, and select them. */
  changeLines(change) {
    const { value } = this.area;
    const { from, to } = this.selection;
    const start = value.lastIndexOf("\n", from - 1) + 1;
    const next = value.indexOf("\n", to > from ? to - 1 : to);
    const end = next < 0 ? value.length : next;
    const text = change(value.slice(start, end).split("\n")).join("\n");
    if (text === value.slice(start, end)) return;
    this.replace(start, end, text);
    if (to > from) this.area.setSelectionRange(start, start + text.length);
  }
}
