// Labs 2 and 5, short: the reader's variant is drawn from a name, as ropebook/labs draws it.
import { figureName, make, newId, setRich } from "./kit/dom.js";
import { followTheme } from "./kit/theme.js";
import { readNumber } from "./number_question.js";

// ---- a name becomes a number, and that a variant ------------------------------------------------

/** 32-bit FNV-1a of a text in UTF-8. */
export function seedOf(text) {
  let state = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) state = Math.imul(state ^ byte, 0x01000193) >>> 0;
  return state;
}

/** mulberry32: a function that returns one of some options. */
function drawing(seed) {
  let state = seed;
  return (options) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return options[Math.floor((((t ^ (t >>> 14)) >>> 0) * options.length) / 2 ** 32)];
  };
}

const below = (count) => Array.from({ length: count }, (_, i) => i);

/** A name without what does not count. */
export const plainName = (who) => who.normalize("NFC").replaceAll("·", " ").trim().split(/\s+/).join(" ");

/** Lab 2 of a reader: what the stranger does. */
export function stranger(who) {
  const seed = seedOf(`rope lab 2 for ${plainName(who).toLowerCase()}`);
  const one = drawing(seed);
  const headDim = one([16, 20, 24]);
  const width = headDim - one([4, 6, 8]);
  const base = one([300, 700, 3000, 20000, 80000]);
  const interleaved = one(below(2)) === 1;
  const [direction, first, factor] = [one([1, -1]), one([0, 1, 2]), one([1.1, 1.25, 0.8])];
  const start = one(below(2)) === 1 ? headDim - width : 0;
  const asked = start + 2 + (seed % (width - 4));
  return { seed, headDim, width, base, interleaved, direction, first, factor, start, asked };
}

/** Who turns with channel c, in one layout or the other; null for a channel that does not turn. */
export function partner({ width, start }, c, interleaved) {
  const i = c - start;
  if (i < 0 || i >= width) return null;
  return start + (interleaved ? i ^ 1 : (i + width / 2) % width);
}

/** What comes out for a one in channel c at a position: headDim numbers. */
export function answerOf(one, c, position) {
  const y = new Array(one.headDim).fill(0);
  const other = partner(one, c, one.interleaved);
  if (other === null) {
    y[c] = 1;
    return y;
  }
  const low = Math.min(c, other) - one.start;
  const pair = one.interleaved ? low / 2 : low;
  const angle = one.direction * (position + one.first) * one.base ** ((-2 * pair) / one.width);
  y[c] = one.factor * Math.cos(angle);
  y[other] = (c < other ? 1 : -1) * one.factor * Math.sin(angle);
  return y;
}

/** A number rounded to significant bits, halves to the even neighbour. */
export function toBits(x, bits) {
  if (x === 0) return 0;
  let exponent = Math.floor(Math.log2(Math.abs(x)));
  if (2 ** exponent > Math.abs(x)) exponent -= 1;
  if (2 ** (exponent + 1) <= Math.abs(x)) exponent += 1;
  const unit = 2 ** (exponent + 1 - bits);
  const down = Math.floor(x / unit);
  const rest = x / unit - down;
  return unit * (rest > 0.5 || (rest === 0.5 && down % 2 !== 0) ? down + 1 : down);
}

/** Lab 5 of a reader: a format, a token, a pair. */
export function format(who) {
  const seed = seedOf(`rope lab 5 for ${plainName(who).toLowerCase()}`);
  const one = drawing(seed);
  const bits = one([6, 7, 9, 10]);
  const octave = 2 ** (bits + 3); // in which the gap is 16; it is another beyond either end
  const token = octave + 16 + one(below(octave - 31));
  const last = 2 ** (bits + 4);
  let worst = 0;
  for (let m = 0; m <= last; m++) worst = Math.max(worst, Math.abs(toBits(m, bits) - m));
  const theta = (pair) => 10000 ** (-pair / 32);
  const byFrequency = (pair, kept) => Math.abs(toBits(theta(pair), kept) - theta(pair)) * last;
  const told = below(24)
    .map((i) => i + 4)
    .filter((pair) => {
      const byPlace = worst * theta(pair);
      return [byPlace, byFrequency(pair, 8)].every(
        (other) => Math.abs(other - byFrequency(pair, bits)) > 0.1 * byPlace,
      );
    });
  const pair = one(told);
  const mine = toBits(token, bits);
  const crowd = below(4 * token).filter((m) => toBits(m, bits) === mine).length;
  const gap = 2 ** (Math.floor(Math.log2(token)) + 1 - bits);
  return { seed, bits, token, last, pair, theta: theta(pair), crowd, gap, worst };
}

// ---- what is asked, and what is said of an answer: "" where it is right --------------------------

const LAYOUTS = ["interleaved", "half-split"];
const ROUND = ["counter-clockwise", "clockwise"];
const near = (a, b, tolerance = 1e-9) => Math.abs(a - b) <= tolerance * Math.abs(b);

/** The first slip that gives the same number, or else the last words. */
function slip(found, slips, otherwise, tolerance) {
  const known = slips.find(([, value]) => value !== null && near(found, value, tolerance));
  return known ? known[0] : otherwise;
}

export const LABS = {
  2: {
    name: "find the layout of a stranger",
    draw: stranger,
    task: (one) =>
      `A function turns vectors of ${one.headDim} channels, numbered from 0. Send in a one in one channel, at a ` +
      "position of yours, and see what comes out.",
    ask: [
      { name: "a one in channel", most: (one) => one.headDim - 1, start: 0 },
      { name: "at position", most: () => 100000, start: 1 },
    ],
    reply: (one, [channel, position]) => answerOf(one, channel, position),
    parts: {
      partner: {
        text: (one) => `Which channel turns with channel ${one.asked}?`,
        check(one, found) {
          const right = partner(one, one.asked, one.interleaved);
          if (found === right) return "";
          if (found === one.asked) return "A channel is no pair by itself: where else does it come out?";
          if (found === partner(one, one.asked, !one.interleaved)) {
            return `That is its partner in the ${LAYOUTS[+one.interleaved]} layout; this stranger's is another.`;
          }
          return `Send in a one in channel ${one.asked} and look where it comes out, at more than one position.`;
        },
      },
      layout: {
        text: () => "How are its pairs laid out?",
        options: LAYOUTS,
        check: (one, found) =>
          found === LAYOUTS[+!one.interleaved]
            ? ""
            : `Your pairs are ${found}, the stranger's are ${LAYOUTS[+!one.interleaved]}.`,
      },
      width: {
        text: () => "How many channels turn?",
        check(one, found) {
          if (found === one.width) return "";
          return slip(
            found,
            [
              ["Some channels come back as they were: send a one into each.", one.headDim],
              ["That is how many pairs turn; a pair has two channels.", one.width / 2],
              ["That is how many stay.", one.headDim - one.width],
              [
                one.start
                  ? "That is the number of the last; they do not begin at 0."
                  : "That is the number of the last; they are counted from 0, so there is one more.",
                one.start + one.width - 1,
              ],
            ],
            "Count the channels that come out changed.",
          );
        },
      },
      direction: {
        text: () => "Which way does a pair turn, from its lower channel to its higher one?",
        options: ROUND,
        check: (one, found) =>
          found === ROUND[+(one.direction < 0)]
            ? ""
            : "Direction reversed: which sign has the higher channel when the one is in the lower?",
      },
      first: {
        text: () => "It adds a number to each position. Which?",
        check(one, found) {
          if (found === one.first) return "";
          if (found === -one.first) return "The sign is reversed: take the direction into account.";
          return "Compare position 0 with 1 in the fastest pair: how many steps is it turned at 0?";
        },
      },
    },
  },
  5: {
    name: "count bits",
    draw: format,
    task: (one) =>
      `Your format keeps ${one.bits} significant bits, the leading one included; halves go to the even neighbour. Write ` +
      "a whole number, and see what becomes of it.",
    ask: [{ name: "the position", most: () => 1e6, start: 100 }],
    reply: (one, [m]) => toBits(m, one.bits),
    parts: {
      last: {
        text: () => "Which is the last position before one is skipped?",
        check(one, found) {
          const right = 2 ** one.bits;
          if (found === right) return "";
          return slip(
            found,
            [
              [`It goes on: ${right} is a power of two, and needs one bit.`, right - 1],
              ["That is the first that is missing; the one before it is asked for.", right + 1],
              ["The leading bit counts as well: twice as far.", right / 2],
              ["The leading bit is among yours: half as far.", right * 2],
              ["This is bfloat16; your format has other bits.", 256],
              ["This is float16; your format has other bits.", 2048],
            ],
            "Try whole numbers until one of them comes back as another.",
          );
        },
      },
      crowd: {
        text: (one) => `How many tokens stand where token ${one.token.toLocaleString("en")} does, itself included?`,
        check(one, found) {
          if (found === one.crowd) return "";
          return slip(
            found,
            [
              [
                `Every ${one.gap}th position exists there; but halves go to the even neighbour, so one crowd is ` +
                  "larger and the next smaller.",
                one.gap,
              ],
              ["The token itself is one of them.", one.crowd - 1],
              ["That is one too many.", one.crowd + 1],
              ["The gap is twice as wide there.", one.gap / 2],
              ["The gap is half as wide there.", one.gap * 2],
            ],
            "Look for the first and the last whole number that come back as the same.",
          );
        },
      },
      error: {
        text: (one) =>
          `A pair turns by ${one.theta.toFixed(6)} radians a position. If positions up to ${one.last.toLocaleString("en")} ` +
          "are rounded, by how many radians is the worst angle off? Three digits will do.",
        check(one, found) {
          const right = one.worst * one.theta;
          if (near(found, right, 5.1e-3)) return "";
          return slip(
            found,
            [
              ["That is how far the position is off, not the angle.", one.worst],
              ["That is in degrees; radians are wanted.", (right * 180) / Math.PI],
              [
                `Twice as much: below ${one.last.toLocaleString("en")} the step is 16, and the nearest number at most ` +
                  "half of it away.",
                2 * right,
              ],
              ["Half of what it is: how wide is the step at the far end?", right / 2],
            ],
            "How far is a position off at most, near the end? Times what one position turns.",
            5.1e-3,
          );
        },
      },
    },
  },
};

/** The line that a teacher verifies. */
export function certificate(number, who, seed) {
  const mark = seedOf(`rope lab ${number} in the page solved by ${plainName(who).toLowerCase()}`);
  return `RoPE lab ${number} in the page · ${plainName(who)} · ${seed} · ${mark.toString(16).toUpperCase().padStart(8, "0")}`;
}

/** What is said when a part is checked: right, wrong or missing, and the words. */
export function verdict(lab, one, part, given) {
  const { options, check } = lab.parts[part];
  const found = options ? given || null : readNumber(given);
  if (found === null) return ["missing", options ? "Choose one first." : "Write a number first."];
  const words = check(one, found);
  return words ? ["wrong", `**Not so.** ${words}`] : ["right", "**Right.**"];
}

/** The same by the number of the lab, for the tests. */
export const asked = (number, ...rest) => verdict(LABS[number], ...rest);

// ---- the page -----------------------------------------------------------------------------------

const NOBODY = "your name";

export default {
  render({ model, el }) {
    const number = model.get("lab");
    const lab = LABS[number];
    const solved = new Set();
    let who = NOBODY;
    let one = lab.draw(who);
    const [title, task, reply, bars, parts] = ["p", "p", "p", "div", "div"].map((tag) => make(tag));
    title.id = newId();
    reply.setAttribute("role", "status");
    bars.className = "rope-lab-bars";
    const end = make("p", { className: "rope-verdict", role: "status" });
    const form = make("div", { className: "rope-ask", role: "group", "aria-labelledby": title.id });
    const root = make("div", { className: "rope-figure", "data-figure": figureName(model) }, form);
    setRich(title, `**Lab ${number}, short: ${lab.name}.** Your variant is drawn from your name or number.`);

    const field = (words, value) => {
      const input = make("input", { type: "text", value, autocomplete: "off" });
      return [input, make("label", { className: "rope-lab-field" }, `${words} `, input)];
    };
    const [name, nameField] = field("Name or number", who);
    const asked = lab.ask.map(({ name: words, start }) => field(words, String(start)));
    for (const [input] of asked) input.inputMode = "numeric";

    const tell = () => {
      const given = asked.map(([input], k) => {
        const value = readNumber(input.value);
        return Number.isInteger(value) && value >= 0 && value <= lab.ask[k].most(one) ? value : null;
      });
      bars.replaceChildren();
      if (given.includes(null)) {
        const limits = lab.ask.map(({ name: words, most }) => `${words}: 0 to ${most(one).toLocaleString("en")}`);
        setRich(reply, `Whole numbers, please (${limits.join("; ")}).`);
        return;
      }
      const out = lab.reply(one, given);
      if (!Array.isArray(out)) {
        setRich(reply, `It becomes **${out.toLocaleString("en")}**.`);
        return;
      }
      const seen = out.flatMap((value, c) => (Math.abs(value) < 5e-5 ? [] : [[c, value.toFixed(4)]]));
      const told = seen.map(
        ([c, value], i) => `${i ? "channel" : "Channel"} ${c} ${i ? "" : "comes out "}as **${value}**`,
      );
      setRich(reply, `${told.join(", ")}, the others as 0 to four decimals.`);
      for (const value of out) {
        const bar = make("i");
        bar.style.height = `${Math.abs(value) * 26}px`;
        bar.style.transform = value < 0 ? "translateY(100%)" : "";
        bars.append(make("span", {}, bar));
      }
    };

    const finish = () => {
      const left = Object.keys(lab.parts).length - solved.size;
      if (left) setRich(end, "");
      else if (plainName(who).toLowerCase() === NOBODY)
        setRich(end, "All right. For a certificate, write your own name above.");
      else setRich(end, `Your certificate: \`${certificate(number, who, one.seed)}\``);
    };

    const part = (key) => {
      const { text, options } = lab.parts[key];
      const words = make("span", { id: newId() });
      setRich(words, text(one));
      const input = options
        ? make("select", {}, ...["", ...options].map((value) => make("option", { value }, value || "choose")))
        : make("input", { type: "text", inputMode: "decimal", autocomplete: "off" });
      input.setAttribute("aria-labelledby", words.id);
      const said = make("p", { className: "rope-verdict", role: "status" });
      const grade = () => {
        const [state, content] = verdict(lab, one, key, input.value);
        said.className = `rope-verdict rope-${state}`;
        setRich(said, content);
        solved[state === "right" ? "add" : "delete"](key);
        finish();
      };
      const button = make("button", { type: "button", className: "rope-button rope-show", onclick: grade }, "Check");
      button.setAttribute("aria-describedby", words.id);
      input.addEventListener("keydown", (event) => event.key === "Enter" && grade());
      return make(
        "div",
        { className: "rope-lab-part" },
        words,
        make("div", { className: "rope-answer-row" }, input, button),
        said,
      );
    };

    const begin = () => {
      who = plainName(name.value) || NOBODY;
      one = lab.draw(who);
      solved.clear();
      setRich(task, lab.task(one));
      parts.replaceChildren(...Object.keys(lab.parts).map(part));
      tell();
      finish();
    };
    name.addEventListener("change", begin);
    for (const [input] of asked) input.addEventListener("input", tell);
    form.addEventListener("keydown", (event) => event.stopPropagation()); // typing is no command to the notebook
    const asking = make("div", { className: "rope-answer-row" }, ...asked.map(([, label]) => label));
    form.append(title, nameField, task, asking, bars, reply, parts, end);
    begin();
    el.append(root);
    return followTheme(root);
  },
};
