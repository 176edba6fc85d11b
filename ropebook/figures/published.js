// published.js: JSON as Python's json.load reads it, and values as Python's repr writes them.
// A float that is whole stays one (Real), objects have no prototype, and an error says where it is.

/** A whole number that was written with a point or an exponent: 10000.0 is no integer. */
export class Real extends Number {}

/** What is wrong with what a reader gave, in a sentence. */
export class Refused extends Error {}

export const isReal = (x) => x instanceof Real || typeof x === "number" || typeof x === "boolean";
export const isWhole = (x) => typeof x === "number" && Number.isInteger(x);
export const isDict = (x) => typeof x === "object" && x !== null && !Array.isArray(x) && !(x instanceof Real);

/** Whether Python takes a value for true. */
export function truthy(x) {
  if (x instanceof Real) return Number(x) !== 0;
  if (Array.isArray(x)) return x.length > 0;
  return isDict(x) ? Object.keys(x).length > 0 : Boolean(x);
}

/** Whether Python takes two numbers, texts or flags for equal. */
export const equal = (a, b) => (isReal(a) && isReal(b) ? Number(a) === Number(b) : a === b);

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|-?Infinity|NaN/y;
const WORDS = { true: true, false: false, null: null };
const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
const DEEPEST = 500;

/** The value of a JSON text; a Refused says in which line it ends being one. Names twice in an object go into a list. */
export function parse(text, twice = []) {
  let at = 0;
  let depth = 0;
  const fail = (wanted) => {
    const line = text.slice(0, at).split("\n").length;
    const found =
      at < text.length ? `“${[...text.slice(at, at + 20)].slice(0, 12).join("").trim() || " "}”` : "the end";
    const python = /^('|True\b|False\b|None\b)/.test(text.slice(at));
    const more = python ? " This is how Python writes it: json.dumps writes JSON." : "";
    throw new Refused(`No JSON: in line ${line} ${wanted} was expected, and there is ${found}.${more}`);
  };
  const space = () => {
    while (at < text.length && " \t\n\r".includes(text[at])) at += 1;
  };
  const take = (mark) => {
    space();
    if (text[at] !== mark) return false;
    at += 1;
    return true;
  };
  const string = () => {
    let out = "";
    for (at += 1; text[at] !== '"'; ) {
      const mark = text[at];
      if (mark === undefined || mark < " ") fail("the end of a text in quotes");
      at += 1;
      if (mark !== "\\") {
        out += mark;
      } else if (text[at] in ESCAPES) {
        out += ESCAPES[text[at]];
        at += 1;
      } else if (/^u[\da-fA-F]{4}$/.test(text.slice(at, at + 5))) {
        out += String.fromCharCode(Number.parseInt(text.slice(at + 1, at + 5), 16));
        at += 5;
      } else fail("an escape such as \\n");
    }
    at += 1;
    return out;
  };
  const list = () => {
    const out = [];
    if (take("]")) return out;
    do out.push(value());
    while (take(","));
    if (!take("]")) fail("a comma or ]");
    return out;
  };
  const object = () => {
    const out = Object.create(null);
    if (take("}")) return out;
    do {
      space();
      if (text[at] === "}") fail("no comma before the closing bracket, or one more name");
      if (text[at] !== '"') fail("a name in double quotes");
      const name = string();
      if (!take(":")) fail("a colon");
      if (name in out) twice.push(name);
      out[name] = value();
    } while (take(","));
    if (!take("}")) fail("a comma or }");
    return out;
  };
  const nested = (inner) => {
    at += 1;
    depth += 1;
    if (depth > DEEPEST) fail(`an end after ${DEEPEST} brackets`);
    const out = inner();
    depth -= 1;
    return out;
  };
  const value = () => {
    space();
    const mark = text[at];
    if (mark === "{") return nested(object);
    if (mark === "[") return nested(list);
    if (mark === '"') return string();
    for (const [word, meant] of Object.entries(WORDS)) {
      if (!text.startsWith(word, at)) continue;
      at += word.length;
      return meant;
    }
    NUMBER.lastIndex = at;
    const found = NUMBER.exec(text);
    if (!found) fail("a value");
    at += found[0].length;
    const number = Number(found[0]);
    return (found[1] || found[2]) && Number.isInteger(number) ? new Real(number) : number;
  };
  const out = value();
  space();
  if (at < text.length) fail("nothing more");
  return out;
}

// ---- values in words ----------------------------------------------------------------------------

/** The digits of a number as Python writes a float: 10000.0, 1e-06. */
function float(x) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf";
  const [digits, power] = x.toExponential().split("e").map(String);
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    const sign = exponent < 0 ? "-" : "+";
    return `${digits}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  const plain = exponent < 0 ? x.toFixed(Math.max(0, digits.replace(/[-.]/g, "").length - 1 - exponent)) : String(x);
  return plain.includes(".") ? plain : `${plain}.0`;
}

const number = (x) => (isWhole(x) ? String(x) : float(Number(x)));

/** A number with commas, as Python's format(x, ",") writes it. */
export const grouped = (x) => number(x).replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));

/** A number in six significant digits, as Python's %g writes it. */
export function general(value) {
  const x = Number(value);
  if (x === 0) return "0";
  const tie = /^(-?\d\.\d{4}[02468])50*(e.*)$/.exec(x.toExponential(40)); // goes to the even digit
  const rounded = tie ? tie[1] + tie[2] : x.toExponential(5);
  const [mantissa, power] = rounded.split("e");
  const exponent = Number(power);
  const bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (exponent >= -4 && exponent < 6) return bare(Number(rounded).toFixed(5 - exponent));
  return `${bare(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

const MARKS = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A value as Python's repr writes it. */
export function repr(x) {
  if (x === null || x === undefined) return "None";
  if (typeof x === "boolean") return x ? "True" : "False";
  if (typeof x === "number" || x instanceof Real) return number(x);
  if (Array.isArray(x)) return `[${x.map(repr).join(", ")}]`;
  if (isDict(x)) {
    const entries = Object.entries(x).map(([name, value]) => `${repr(name)}: ${repr(value)}`);
    return `{${entries.join(", ")}}`;
  }
  const quote = x.includes("'") && !x.includes('"') ? '"' : "'";
  const inside = [...x].map((mark) => {
    const code = mark.codePointAt(0);
    if (mark === quote) return `\\${mark}`;
    if (mark in MARKS) return MARKS[mark];
    return code < 32 || (code > 126 && code < 161) || code === 173 ? `\\x${code.toString(16).padStart(2, "0")}` : mark;
  });
  return quote + inside.join("") + quote;
}

/** A value as JSON, or in other words: a name a line, and a float that is whole with its point. */
export function written(x, indent = "", word = JSON.stringify) {
  if (x instanceof Real) return float(Number(x));
  if (Array.isArray(x)) return `[${x.map((one) => written(one, "", word)).join(", ")}]`;
  if (!isDict(x)) return word(x);
  const entries = Object.entries(x).map(
    ([name, value]) => `${JSON.stringify(name)}: ${written(value, `${indent}  `, word)}`,
  );
  if (!entries.length) return "{}";
  return `{\n${indent}  ${entries.join(`,\n${indent}  `)}\n${indent}}`;
}

/** A value as JSON on one line. */
export const compact = (x) => written(x).replace(/\n\s*/g, (_, at, all) => (all[at - 1] === "," ? " " : ""));

/** The name of a value's type in Python. */
export function kindOf(x) {
  if (x === null) return "NoneType";
  if (typeof x === "boolean") return "bool";
  if (typeof x === "string") return "str";
  if (Array.isArray(x)) return "list";
  return isWhole(x) ? "int" : isReal(x) ? "float" : "dict";
}

// ---- names that are near ------------------------------------------------------------------------

/** How alike two texts are, 0 to 1: twice the matching characters over all, as Python's difflib counts. */
function likeness(a, b) {
  const places = new Map();
  for (let j = 0; j < b.length; j++) places.set(b[j], [...(places.get(b[j]) ?? []), j]);
  const matching = (a0, a1, b0, b1) => {
    let [best, ai, bj] = [0, a0, b0];
    let lengths = new Map();
    for (let i = a0; i < a1; i++) {
      const next = new Map();
      for (const j of places.get(a[i]) ?? []) {
        if (j < b0 || j >= b1) continue;
        const length = (lengths.get(j - 1) ?? 0) + 1;
        next.set(j, length);
        if (length > best) [best, ai, bj] = [length, i - length + 1, j - length + 1];
      }
      lengths = next;
    }
    if (!best) return 0;
    return best + matching(a0, ai, b0, bj) + matching(ai + best, a1, bj + best, b1);
  };
  const all = a.length + b.length;
  return all ? (2 * matching(0, a.length, 0, b.length)) / all : 1;
}

/** The known name that is nearest to a word, or null; as difflib's get_close_matches(word, known, 1, cutoff). */
export function nearest(word, known, cutoff = 0.6) {
  let [best, found] = [cutoff, null];
  for (const name of known) {
    const longest = (2 * Math.min(name.length, word.length)) / (name.length + word.length);
    if (longest < best) continue;
    const like = likeness(name, word);
    if (like > best || (like === best && (found === null || name > found))) [best, found] = [like, name];
  }
  return found;
}
