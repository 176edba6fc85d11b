// The atlas: every model family's rotation as a wheel on a wall, to search and filter; two of them side by side.
import { drawCircuit, drawWheel, wheelOf } from "./circuit.js";
import { make, setRich } from "./kit/dom.js";
import { disc, text, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, TURN } from "./kit/numbers.js";

// ---- the rows -----------------------------------------------------------------------------------

const NAMED = {
  "half-split": (i, width) => [i, i + width / 2],
  interleaved: (i) => [2 * i, 2 * i + 1],
};

/** The channels of each pair: listed where they have no plain rule, else by layout and place. */
export function pairsOf({ pairs, layout, place, width, head }) {
  if (pairs) return pairs;
  const start = place === "last" ? head - width : 0;
  const rule = NAMED[layout.replace("read ", "").split(",")[0]];
  return Array.from({ length: width / 2 }, (_, i) => rule(i, width).map((channel) => channel + start));
}

/** The wave vector of each pair: from a list, or base^(-2i/width) along one axis. */
function wavesOf({ series, base, width, axes }, lists) {
  if (series !== null) return lists[series].map((wave) => (Array.isArray(wave) ? wave : [wave]));
  if (base === null || axes !== 1) return [];
  return Array.from({ length: width / 2 }, (_, i) => [base ** ((-2 * i) / width)]);
}

/** The rows as the figure uses them, each with its pairs and its waves. */
export const unpack = ({ columns, rows, series }) =>
  rows.map((values) => {
    const row = Object.fromEntries(columns.map((name, i) => [name, values[i]]));
    const kept = row.broken === null;
    return { ...row, kept, pairs: row.width ? pairsOf(row) : [], waves: row.width ? wavesOf(row, series) : [] };
  });

// ---- searching, filtering, sorting --------------------------------------------------------------

/** What can be shown, as in atlas.py, and which rows that is. */
export const SHOW = {
  "all rotations": () => true,
  "half-split": ({ layout }) => layout === "half-split",
  interleaved: ({ layout }) => layout === "interleaved",
  "another layout": ({ layout }) => !(layout in NAMED),
  clockwise: ({ direction }) => direction === -1,
  "part of the head": ({ width, head }) => width < head,
  "the last channels": ({ place }) => place === "last",
  "base 10,000": ({ base }) => base === 1e4,
  "another base": ({ base }) => base !== null && base !== 1e4,
  "rescaled frequencies": ({ scaling }) => scaling !== null,
  "a factor on cos and sin": ({ factor }) => factor !== null && !plain(factor),
  "several axes": ({ axes }) => axes > 1,
  "norm before the turn": ({ norm }) => norm === "before",
  "norm after the turn": ({ norm }) => norm?.startsWith("after") ?? false,
  "layers that do not turn": ({ rests }) => rests !== null,
  "two bases in a model": ({ bases }) => bases > 1,
  "promise broken": ({ kept }) => !kept,
};

const plain = (factor) => Math.abs(factor - 1) < 1e-6;

const missing = "–";
const baseWords = (base) => (base === null ? missing : num(base, Number.isInteger(base) ? 0 : 1));
const layoutWords = ({ layout, direction }) =>
  (layout ?? "no name").replace(/^read (.*), written (.*)$/, "$1 → $2") + (direction === -1 ? " ↻" : "");
const turnWords = ({ width, head, place }) =>
  width === head
    ? `all ${head}`
    : `${place === "last" ? "last " : ""}${width} of ${head}${place === "elsewhere" ? ", apart" : ""}`;

/** The columns: their head, what stands in a cell, and by what they are sorted. */
export const COLUMNS = {
  family: { cell: ({ family, part }) => `${family}${part ? ` · ${part}` : ""}`, key: ({ name }) => name },
  layout: { cell: layoutWords, key: layoutWords },
  turns: { cell: turnWords, key: ({ width, head }) => [width, head] },
  base: { cell: ({ base }) => baseWords(base), key: ({ base }) => base ?? Infinity },
  scaling: { cell: ({ scaling }) => scaling ?? missing, key: ({ scaling }) => scaling ?? "~" },
  axes: { cell: ({ axes }) => String(axes), key: ({ axes }) => axes },
  promise: { cell: ({ kept }) => (kept ? "kept" : "broken"), key: ({ kept }) => Number(kept) },
};

/** All that a search looks through. */
const haystack = (row) =>
  [
    row.name,
    row.norm && `norm ${row.norm}`,
    row.rests && `${row.rests} layers at rest`,
    row.direction === -1 ? "clockwise" : "",
    ...Object.values(COLUMNS).map(({ cell }) => cell(row)),
  ]
    .map((words) => String(words ?? "").toLowerCase())
    .join(" ");

/** The numbers of the rows to show, in order: every word of the search must occur somewhere in a row. */
export function choose(rows, { show, search, sort, down }) {
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = SHOW[show];
  const { key } = COLUMNS[sort];
  const keys = rows.map((row) => [key(row)].flat());
  const order = (a, b) => {
    const at = keys[a].findIndex((value, i) => value !== keys[b][i]);
    if (at < 0) return rows[a].name < rows[b].name ? -1 : 1;
    return (keys[a][at] < keys[b][at] ? -1 : 1) * (down ? -1 : 1);
  };
  return rows
    .map((_, i) => i)
    .filter((i) => fits(rows[i]) && wanted.every((word) => haystack(rows[i]).includes(word)))
    .sort(order);
}

// ---- what leads from one rotation to another ----------------------------------------------------

/** A number in `n` significant digits, as Python's %g writes it. */
export function digits(value, n) {
  if (value === 0) return "0";
  const [mantissa, exponent] = Math.abs(value)
    .toExponential(n - 1)
    .split("e");
  const power = Number(exponent);
  const bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  const sign = value < 0 ? "-" : "";
  if (power >= -4 && power < n) return sign + bare(Math.abs(value).toFixed(n - 1 - power));
  return `${sign}${bare(mantissa)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/**
 * What to do with W_q and W_k of `one` so that they give the same scores in `two`: { words, converts, unlike },
 * the sentences of ropescope's Report.differs_from. No words: they rotate alike; unlike: of two kinds.
 */
export function differs(one, two) {
  const words = [];
  const growing = ([, , hypothesis]) => hypothesis === "lengths keep";
  const fault = ({ wrong }) => (wrong.some(growing) ? "changes lengths with the position" : "is no rotation");
  if (!one.rotation) words.push(`The first ${fault(one)}.`);
  if (!two.rotation) words.push(`The second ${fault(two)}.`);
  const unlike = [];
  if (one.head !== two.head) unlike.push(`heads of ${one.head} channels against ${two.head}`);
  if (one.axes !== two.axes) unlike.push(`${one.axes} ${one.axes === 1 ? "axis" : "axes"} against ${two.axes}`);
  if (unlike.length) {
    const said = unlike.join(", ");
    words.push(`${said[0].toUpperCase()}${said.slice(1)}.`);
  } else if (!words.length && one.width !== two.width) {
    words.push(`${one.width} channels rotate against ${two.width}.`);
  } else if (!words.length && !(one.waves.length && two.waves.length)) {
    words.push("Angles that are not proportional to the position have no frequencies.");
  }
  return words.length ? { words, converts: false, unlike: true } : { ...compare(one, two), unlike: false };
}

/** The pairs of a row from the fastest to the slowest: { pair, wave, up }, up the sign of its wave's first part. */
function inOrder({ pairs, waves, direction }) {
  const sorted = pairs.map((pair, i) => {
    const wave = waves[i].map((part) => part * (direction ?? 1));
    const up = (wave.find((part) => part !== 0) ?? 1) < 0 ? -1 : 1;
    return { pair, wave, up, key: wave.map((part) => Math.round(part * up * 1e12)) };
  });
  const before = (a, b) => {
    const at = a.key.findIndex((part, axis) => part !== b.key[axis]);
    return at < 0 ? 0 : a.key[at] - b.key[at];
  };
  return sorted.sort(before).reverse();
}

/** What is wrong with either in words; all of it may be rounding, or else no weight makes up for it. */
function faults(one, two) {
  const [first, second] = [one, two].map(({ wrong }) => wrong.map(([words]) => words));
  return [
    ...first.filter((words) => second.includes(words)).map((words) => `Both: ${words}`),
    ...first.filter((words) => !second.includes(words)).map((words) => `The first: ${words}`),
    ...second.filter((words) => !first.includes(words)).map((words) => `The second: ${words}`),
    ...["first", "second"]
      .filter((_, i) => [one, two][i].lost)
      .map((which) => `Angles of the ${which} miss position times frequency by more than 0.05 rad.`),
  ];
}

/** How two waves miss each other: { off, size }, size against that of the first. */
function gap(first, second) {
  const parts = first.wave.map((part, axis) => Math.abs(part * first.up - second.wave[axis] * second.up));
  const loose = first.wave.map((part, axis) => 3e-6 * Math.abs(part) + 2e-6 * Math.abs(second.wave[axis]));
  return {
    off: parts.some((part, axis) => part > loose[axis]), // as known to six digits
    size: Math.max(...parts.map((part, axis) => part / Math.max(Math.abs(first.wave[axis]), 1e-300))),
  };
}

/** The second pairs beside the first: each beside its equal, or, where none is left, one without. */
function equals(first, second) {
  const left = [...second];
  const found = first.map((pair) => {
    const at = left.findIndex((other) => !gap(pair, other).off);
    return at < 0 ? null : left.splice(at, 1)[0];
  });
  return found.map((other) => other ?? left.shift());
}

/** The second pairs beside the first: by size, but each beside itself where the same pairs have other frequencies. */
function inPlace(first, sorted) {
  const same = first.map(({ pair }) => sorted.find((other) => other.pair.join() === pair.join()));
  return same.every(Boolean) && first.some((pair, i) => gap(pair, sorted[i]).off) ? same : sorted;
}

/** Whether a row's first pair does not turn as the first there, its second as the second, and so on. */
function reordered(one, two, first, second) {
  const [here, there] = [first, second].map((pairs) => new Map(pairs.map((found) => [found.pair, found])));
  return one.pairs.some((pair, i) => gap(here.get(pair), there.get(two.pairs[i])).off);
}

/** What is said of a factor that one side may divide scores by, half of it on each side. */
function root(factor, head) {
  const sign = ["-", ""].find((sign) => Math.abs(factor / head ** Number(`${sign}0.25`) - 1) <= 1e-5);
  if (sign === undefined) return [];
  const say = `That is ${head}^(${sign}1/4): if one model divides queries and keys by it, and the other`;
  return [`${say} their scores by the root of ${head}, leave it out.`];
}

function compare(one, two) {
  const words = faults(one, two);
  let converts = [one, two].every(({ wrong, lost }) => !lost && wrong.every(([, rounding]) => rounding));
  if (!one.rest !== !two.rest) {
    converts = false;
    words.push("One of them loses the channels that do not rotate.");
  }
  const [first, sorted] = [inOrder(one), inOrder(two)];
  const second = one.axes > 1 ? equals(first, sorted) : inPlace(first, sorted); // by size, equals may miss
  const gaps = first.map((pair, i) => gap(pair, second[i]));
  const off = gaps.filter((gap) => gap.off).length;
  if (off) converts = false;
  if (one.dealt && two.dealt && one.dealt !== two.dealt) {
    words.push(`Pairs are dealt out to axes ${one.dealt}; there ${two.dealt}.`);
  }
  if (off && one.axes > 1) {
    const { pair, wave } = first[gaps.findIndex((gap) => gap.off)];
    words.push(
      `${off} of ${first.length} wave vectors have no equal there, that of pair (${pair.join(", ")}) for one: ` +
        `(${wave.map((part) => digits(part, 6)).join(", ")}). No weight makes up for that: ` +
        "the pairs must rotate as there, with its axes, base and rescaling.",
    );
  } else if (off) {
    const worst = gaps.reduce((best, { size }, i) => (size > gaps[best].size ? i : best), 0);
    const size = ({ wave }) => Math.abs(wave[0]);
    const times = first.map((pair, i) => size(pair) / Math.max(size(second[i]), 1e-300));
    const [least, most] = [Math.min(...times), Math.max(...times)];
    const alike = off === first.length && most - least <= 1e-5 * least;
    const shown = alike ? 0 : worst;
    const pair = `pair (${first[shown].pair.join(", ")})`;
    const said = alike
      ? `All ${first.length} pairs rotate ${digits(least, 6)} times as fast as there, ${pair} for one`
      : `${off} of ${first.length} pairs have another frequency than there, ${pair} the most`;
    words.push(
      `${said}: ${digits(size(first[shown]), 6)} against ${digits(size(second[shown]), 6)}. ` +
        "No weight makes up for that; base and rescaling are of the configuration: " +
        "give the second those of the first, and compare again.",
    );
  }
  const named = !off || one.axes === 1 || one.layout !== two.layout || one.place !== two.place;
  if (named && first.some(({ pair }, i) => pair.join() !== second[i].pair.join())) {
    const names = [one, two].map(({ layout, place }) => `${layout ?? "a layout without a name"} (${place})`);
    const other = one.layout && two.layout && !off && reordered(one, two, first, second);
    const there = `${names[1]}${other ? ", where pairs stand in another order" : ""}`;
    const sets = [one, two].map(({ pairs }) => pairs.map((pair) => pair.join()).sort());
    const alike = sets[0].join(";") === sets[1].join(";") ? ["one order of pairs", "another"] : null;
    const such = [first, second].map(([{ pair }]) => `pairs such as (${pair.join(", ")})`);
    const [from, to] = names[0] === names[1] ? (alike ?? such) : [names[0], there];
    words.push(`Permute the rows of each head of W_q and W_k: from ${from} to ${to}.`);
  }
  const beside = (i) => one.axes === 1 || !gaps[i].off; // of several axes, what has no equal stands beside any
  const flips = first.filter(({ up }, i) => beside(i) && up !== second[i].up).length;
  if (flips) words.push(`Negate the second row of ${flips} of ${first.length} pairs: they rotate the other way.`);
  const scale = (which, mine, other) => {
    const factor = mine && other ? mine / other : 1;
    if (Math.abs(factor - 1) <= 1e-6) return;
    const carry = `he rotations carry ${digits(mine, 6)} against ${digits(other, 6)} there`;
    if (off) words.push(`T${carry}: multiply no rows before frequencies agree.`);
    else words.push(`Multiply the rows that ${which} by ${digits(factor, 6)}: t${carry}.`, ...root(factor, one.head));
  };
  scale("rotate", one.factor, two.factor);
  if (one.width < one.head) scale("do not rotate", one.rest, two.rest);
  return { words, converts };
}

// ---- what is said -------------------------------------------------------------------------------

/** Everything that is said, as numbers. */
export function reading(rows, traits) {
  const found = choose(rows, traits);
  const count = (fits) => found.filter((i) => fits(rows[i])).length;
  const { name, broken } = rows[traits.row];
  return {
    total: rows.length,
    found: found.length,
    families: new Set(found.map((i) => rows[i].family)).size,
    kept: count(({ kept }) => kept),
    half: count(SHOW["half-split"]),
    interleaved: count(SHOW.interleaved),
    mostly: oftenest(found.map((i) => rows[i].broken)),
    show: traits.show,
    search: traits.search.trim(),
    row: name,
    other: rows[traits.other].name,
    broken: found.includes(traits.row) ? broken : null,
  };
}

/** By what promises are broken most often, [how many, by what]; null where no two are by the same. */
function oftenest(all) {
  const many = (one) => all.filter((other) => other === one).length;
  const [first] = [...new Set(all)].filter(Boolean).sort((a, b) => many(b) - many(a));
  return first && many(first) > 1 ? [many(first), first] : null;
}

/** What is said, from a reading: the answer, and after a line's end the numbers. */
export const words = (now) => `${answer(now)}\n${numbers(now)}`;

function answer({ total, found, kept, mostly, show, search, row, broken }) {
  const all = found === total || (show === "promise broken" && !search);
  if (all && broken) return `**${found - kept} of ${total}** do, **${row}** by ${how(broken)}.`;
  if (found === total) return `**${total - kept} of ${total}** do: the filled wheels. Tap one, and it says how.`;
  const that = [
    show !== "all rotations" && show,
    search && `matching “${search.replace(/[*`]/g, "").slice(0, 40)}”`,
  ].filter(Boolean);
  const which = that.join(", ");
  const start = `${which[0].toUpperCase()}${which.slice(1)}: **${found || "none"} of ${total}** rotations.`;
  if (show === "promise broken" && broken) return `${start.slice(0, -1)}, **${row}** by ${how(broken)}.`;
  if (found && show === "promise broken" && mostly)
    return `${start.slice(0, -1)}, **${mostly[0]}** of them by ${mostly[1]}.`;
  if (!found || show === "promise broken") return start;
  const who = kept === found ? "all" : kept || "none";
  if (found === 1) return `${start} ${kept ? "It **keeps**" : "It **breaks**"} the promise.`;
  return `${start} The promise is kept by **${who}** of them.`;
}

function numbers({ found, families, half, interleaved }) {
  const other = found - half - interleaved;
  const parts = [`${half} half-split`, `${interleaved} interleaved`, `${other} with another layout`];
  const some = (count, one, more) => `${count} ${count === 1 ? one : more}`;
  const shown = `${some(found, "rotation", "rotations")} of ${some(families, "family", "families")}`;
  return `Shown: ${shown}, ${parts.join(", ")}.`;
}

/** The lines of a card: a name, and what is known. */
export const LINES = {
  layout: (row) => layoutWords(row).replace("↻", "clockwise"),
  channels: turnWords,
  base: ({ base }) => baseWords(base),
  scaling: ({ scaling, factor }) =>
    `${scaling ?? "none"}${factor === null || plain(factor) ? "" : `, cos and sin × ${digits(factor, 6)}`}`,
  axes: ({ axes }) => String(axes),
  promise: ({ broken, deviation }) =>
    broken === null ? `kept to about ${digits(deviation ?? 0, 1)}` : `broken by ${broken}`,
  "norm of q": (row) => row.norm ?? (row.heard ? "none" : "not heard"),
  "at rest": ({ rests, ran }) => (rests ? `${rests} layers` : ran ? "none that was heard" : "not heard"),
};

/** What breaks the relative-position property where hidden vectors are rotated before W_q and W_k. */
const BEFORE = "a projection after the turn";

/** Whether what stands around two turns differs, as far as it is known of both. */
function differAround(held, chosen) {
  const differ = (name) => held[name] !== chosen[name];
  const both = (name) => held[name] && chosen[name];
  return differ("broken") || (both("heard") && ["norm", "values"].some(differ)) || (both("ran") && differ("rests"));
}

/** What leads from the row that is held to the one that is chosen, in words. */
export function bridge(held, chosen) {
  if (held.name === chosen.name) return `Tap a wheel, and see what leads there from **${held.name}**.`;
  const { words: found, converts, unlike } = differs(held, chosen);
  const whose = { first: `**${held.name}**`, second: `**${chosen.name}**` };
  const said = found.map((one) =>
    one.replace(
      /^(Angles of )?[Tt]he (first|second)(?=:| is no | miss | changes lengths )/,
      (_, of = "", which) => of + whose[which],
    ),
  );
  const around = differAround(held, chosen);
  const other = [held, chosen].find(({ heads }) => heads);
  if (other) return `**${other.name}** has heads of another kind: read its note. No change of rows is enough.`;
  if (!said.length) {
    const rows = ": no row of W_q and W_k has to change for the turn.";
    const end = around ? "; what stands around the turn differs." : rows;
    return `**${held.name}** and **${chosen.name}** rotate alike${end}`;
  }
  const early = [held, chosen].find(({ broken }) => broken === BEFORE);
  if (early) {
    const way = `from **${held.name}** to **${chosen.name}**`;
    return `**${early.name}** turns before W_q and W_k: no change of their rows leads ${way}.`;
  }
  if (unlike) {
    const still = said[0].startsWith("Angles"); // two that are not compared
    const start = still
      ? `**${held.name}** cannot be compared with **${chosen.name}**:`
      : `Weights of **${held.name}** cannot be run as **${chosen.name}** turns them:`;
    return `${start} ${said.map((one, i) => (i ? one : one[0].toLowerCase() + one.slice(1))).join(" ")}`;
  }
  const bases =
    held.base !== chosen.base && [held, chosen].every((row) => row.base && row.series === null && !row.scaling);
  if (bases) said.push(...sameBase(held, chosen));
  const start = said.every((one) => /^(\*\*|Both:)/.test(one))
    ? `No row of W_q and W_k has to change from **${held.name}** to **${chosen.name}**, but:`
    : `To run weights of **${held.name}** with the rotation of **${chosen.name}**:`;
  return [start, ...said, ...(converts ? [ending(held, chosen, around)] : [])].join(" ");
}

/** What is said where only defaults of two classes give them different bases. */
function sameBase(held, chosen) {
  const { words, converts } = differs(held, { ...chosen, waves: held.waves });
  const said = `Both bases are defaults of the classes, ${baseWords(held.base)} against ${baseWords(chosen.base)}`;
  if (!converts && words.length) return [`${said}.`];
  return [
    `${said}: with one base in both, ${words.length ? "these changes of rows are enough" : "they rotate alike"}.`,
  ];
}

/** What remains to be done once rows of W_q and W_k are converted. */
function ending(held, chosen, around) {
  const alone = [held, chosen].find(({ heard }) => !heard);
  if (alone) return `What stands around the turn of **${alone.name}** was not heard.`;
  if (around) return "What stands around the turn differs, too.";
  if (held.norm) return "A norm of queries stands beside the turn, and its gains may have to follow.";
  const scale = "but for the scale that attention gives them, and for norms of keys alone.";
  return `Biases follow their rows. The scores are then the same, ${scale}`;
}

// ---- the wall -----------------------------------------------------------------------------------

/** The groups of the wall, each with its filter. */
const GROUPS = { "half-split": "half-split", interleaved: "interleaved", "another layout": "in other ways" };
/** How many wheels are drawn large at most, with their names. */
export const most = (width) => (wide(width) ? 24 : 12);
const LINE = 13; // pixels of a line of these
const HEAD = 22; // pixels of a group's name
const KEY = 20; // of the line that says what a wheel is

/** What breaks the promise, in the few words for which a wheel has room. */
const WHY = {
  "gains after the turn": "gains after turn",
  "a projection after the turn": "late projection",
  "keys turned by a count of their own": "keys count apart",
  "queries that grow with their position": "queries grow",
  "a turn that is no rotation": "no rotation",
};
export const why = ({ broken }) => WHY[broken] ?? (broken && "scores differ");
const how = (broken) => (broken in WHY ? broken : `scores that differ by ${broken}`);

const EDGE = 2; // pixels left and right of the wall, for a ring around its last wheel
const cellOf = (width) => (wide(width) ? 32 : 22);

/** Where every row's wheel hangs: by layout, in the order of names: { spots: [{ row, x, y, radius }], heads, height }. */
export function hang(rows, width) {
  const cell = cellOf(width);
  const columns = Math.floor((width - 2 * EDGE) / cell);
  const across = (width - 2 * EDGE) / columns;
  const [spots, heads] = [[], []];
  let top = KEY;
  for (const [show, name] of Object.entries(GROUPS)) {
    const own = rows.map((_, i) => i).filter((i) => SHOW[show](rows[i]));
    heads.push({ words: `${own.length} ${name}`, y: top + HEAD / 2 });
    own.forEach((row, n) => {
      const [x, y] = [(n % columns) + 0.5, Math.floor(n / columns) + 0.5];
      spots.push({ row, x: EDGE + x * across, y: top + HEAD + y * cell, radius: cell / 2 - 2 });
    });
    top += HEAD + Math.ceil(own.length / columns) * cell;
  }
  return { spots, heads, height: top };
}

/** Where a few wheels hang, as large as there is room for them and their words on a wall of some height. */
export function hangLarge(found, width, wall) {
  const columns = Math.max(Math.floor(width / (wide(width) ? 150 : 112)), 3);
  const room = width / columns;
  const under = LINE * (wide(width) ? 3 : 4) + 7;
  const largest = Math.min(room / 2 - 4, 70);
  const height = Math.min((wall - KEY) / Math.ceil(found.length / columns), 2 * largest + 12 + under);
  const radius = Math.min((height - under) / 2 - 4, largest);
  const spots = found.map((row, n) => ({
    row,
    room,
    x: ((n % columns) + 0.5) * room,
    y: KEY + Math.floor(n / columns) * height + radius + 4,
    radius,
  }));
  return { spots, heads: [] };
}

const AT_ONCE = 8; // milliseconds that wheels are painted for before the page has its turn
const THUMB = 20; // pixels from a filled wheel where it is met rather than others
const KEPT = 0.7; // how strong the others are

/** All wheels on a canvas of their own, some in each frame: { show(width), painted }. */
function makeBoard(plot, rows, changed) {
  const board = { canvas: document.createElement("canvas"), ctx: null, width: 0, ratio: 0 };
  const wheels = [];
  let waiting = [];
  let key = "";
  const paint = () => {
    const { colors, ctx } = board;
    for (const end = performance.now() + AT_ONCE; waiting.length && performance.now() < end; ) {
      const at = waiting.shift();
      const { kept, head } = rows[at.row];
      wheels[at.row] ??= wheelOf(rows[at.row]);
      ctx.globalAlpha = colors.dark ? 1 : KEPT;
      if (kept) drawWheel(board, wheels[at.row], head, at);
      ctx.globalAlpha = 1;
      if (!kept) disc(board, at.x, at.y, at.radius, colors.warm, { ring: colors.warm });
    }
    if (waiting.length) requestAnimationFrame(paint);
    changed();
  };
  return {
    canvas: board.canvas,
    /** Paint these wheels, unless they are. */
    show(spots) {
      const { width, height, ratio, colors } = plot;
      const now = [width, ratio, colors.paper].join();
      if (key === now) return;
      key = now;
      board.canvas.width = Math.round(width * ratio);
      board.canvas.height = Math.round(height * ratio);
      Object.assign(board, { ctx: board.canvas.getContext("2d"), colors });
      board.ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      const idle = !waiting.length;
      waiting = [...spots];
      if (idle) paint();
    },
  };
}

/** The wall: { draw(found, traits), reveal() }. */
function makeWall(fig, rows) {
  let now = null; // what is shown
  let over = null; // the row under the mouse
  const near = (x, y) => {
    const found = now.spots.map(({ row, radius, ...at }) => {
      const filled = !rows[row].kept;
      const away = Math.hypot(at.x - x, at.y - y);
      const reach = filled ? Math.max(radius + 3, THUMB) : radius + 3;
      return { row, away: filled ? away - THUMB : away, far: away > reach };
    });
    return found.filter(({ far }) => !far).sort((a, b) => a.away - b.away)[0]?.row ?? null;
  };
  const plot = fig.canvas({
    label: "A wall of wheels, one a rotation, filled where it breaks the promise: a chord joins the channels of a pair",
    height: (width) => Math.max(hang(rows, width).height, 420),
    point({ x, y, type }) {
      const row = near(x, y);
      const moved = row !== over;
      over = row;
      plot.canvas.style.cursor = row === null ? "" : "pointer";
      if (type === "pointerdown" && row !== null) fig.set({ row });
      else if (moved) lay();
    },
    keys({ dx, dy }) {
      const { spots } = now;
      const at = spots.findIndex(({ row }) => row === fig.traits.row);
      const here = spots[at];
      over = null;
      if (dx || !here)
        return fig.set({ row: spots[clamp(at + (dx || 1), 0, spots.length - 1)]?.row ?? fig.traits.row });
      const far = (one) => 1e4 * Math.abs(one.y - here.y) + Math.abs(one.x - here.x);
      const there = spots.filter((one) => (one.y - here.y) * dy > 1).sort((a, b) => far(a) - far(b))[0];
      if (there) fig.set({ row: there.row });
    },
  });
  const filled = () => now.spots.filter(({ row }) => !rows[row].kept);
  const board = makeBoard(plot, rows, () => lay());
  const ring = ({ x, y, radius }, color) => {
    plot.ctx.strokeStyle = color;
    plot.ctx.lineWidth = 2.5;
    plot.ctx.beginPath();
    plot.ctx.arc(x, y, radius + 2, 0, TURN);
    plot.ctx.stroke();
  };
  /** What is painted, and over it what is chosen. */
  const lay = () => {
    const { ctx, width, height, colors } = plot.clear();
    const { spots, all, heads, row, other } = now;
    text(plot, "a line joins two channels of a head", 0, 8, { size: 12 });
    text(plot, "rose fast, violet slow", width, 8, { size: 12, align: "right" });
    for (const { words: said, y } of heads) text(plot, said, 0, y, { color: colors.ink, bold: true, size: 13 });
    if (heads.length) ctx.drawImage(board.canvas, 0, 0, width, height);
    else for (const at of spots) drawWheel(plot, wheelOf(rows[at.row]), rows[at.row].head, at);
    ctx.fillStyle = colors.paper;
    ctx.globalAlpha = 0.88;
    const seen = new Set(spots);
    for (const at of all)
      if (!seen.has(at)) ctx.fillRect(at.x - at.radius - 2, at.y - at.radius - 2, 2 * at.radius + 4, 2 * at.radius + 4);
    ctx.globalAlpha = 1;
    for (const at of all) if (at.row === other) ring(at, colors.muted);
    for (const at of all) if (at.row === row) ring(at, colors.ink);
    if (!heads.length) for (const at of spots) nameLarge(plot, rows[at.row], at);
    else for (const at of spots) if (at.row === (over ?? row)) nameSmall(plot, rows[at.row], at, filled());
  };
  const draw = (found, { row, other }) => {
    const { width, height } = plot;
    const large = found.length <= most(width);
    const { spots: all, heads } = large ? hangLarge(found, width, height) : hang(rows, width);
    const seen = new Set(found);
    now = { all, heads, row, other, spots: all.filter((at) => seen.has(at.row)) };
    if (!large) board.show(all);
    lay();
  };
  const reveal = () =>
    plot.canvas.scrollIntoView({ block: "nearest", behavior: fig.reducedMotion ? "auto" : "smooth" });
  return { draw, reveal };
}

/** A name in lines of so many letters at most, broken after "_" and at blanks; a longer part has a line of its own. */
export function inLines(name, letters) {
  const lines = [""];
  for (const part of name.match(/[^_ ]+[_ ]?|[_ ]/g)) {
    if (lines.at(-1) && (lines.at(-1) + part.trim()).length > letters) lines.push("");
    lines.push(lines.pop() + part);
  }
  return lines.map((line) => line.trim());
}

function nameLarge(plot, row, { x, y, radius, room }) {
  const { ink, warm } = plot.colors;
  const [align, size] = ["center", wide(plot.width) ? 12 : 11];
  const own = [row.family, row.part].filter(Boolean).flatMap((said) => inLines(said, room / (0.55 * size)));
  const lines = own.map((said) => [said, ink]);
  if (row.broken) lines.push([why(row), warm]);
  lines.forEach(([said, color], i) => {
    text(plot, said, x, y + radius + 11 + LINE * i, { align, size, color, bold: color === warm });
  });
}

/** On a plate above its wheel, or below where it would hide a filled one: whose it is, and how it breaks the promise. */
function nameSmall(plot, row, { x, y, radius }, filled) {
  const { ctx, width, colors } = plot;
  const lines = [[row.name, colors.ink], ...(row.broken ? [[why(row), colors.warm]] : [])];
  const wide = 8 * Math.max(...lines.map(([said]) => said.length)) + 16;
  const [tall, left] = [18 * lines.length + 6, clamp(x - wide / 2, 0, width - wide)];
  const above = y - radius - 6 - tall;
  const hides = (at) => Math.abs(at.x - left - wide / 2) < wide / 2 + radius && at.y > above - radius && at.y < y - 1;
  const top = above < KEY || filled.some(hides) ? y + radius + 6 : above;
  ctx.fillStyle = colors.paper;
  ctx.strokeStyle = row.broken ? colors.warm : colors.muted;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ctx.roundRect(left, top, wide, tall, 5);
  ctx.fill();
  ctx.stroke();
  lines.forEach(([said, color], i) => {
    text(plot, said, left + wide / 2, top + 12 + 18 * i, { align: "center", color, bold: true, size: 13 });
  });
}

// ---- the figure ---------------------------------------------------------------------------------

const HELP = "Walk through the rows with ↑ ↓; a column's head sorts by it. Search for several words at once.";
const NOTICE =
  "A rotation breaks the promise where scores depend on more than the distance. As each class behaves with its " +
  "defaults, or with a rotation chosen where these choose none that runs; a checkpoint may say otherwise.";
const KEYS = { ArrowUp: -1, ArrowDown: 1, PageUp: -8, PageDown: 8, Home: -Infinity, End: Infinity };

export default figure((fig) => {
  const rows = unpack(fig.model.get("data"));
  const wall = makeWall(fig, rows);
  const beside = fig.element("div", { className: "rope-beside" });
  const plot = fig.canvas({ label: "", height: (width) => width / 2 + 18 });
  const pictures = make("div", { className: "rope-rings" }, plot.canvas);
  const result = make("div", { className: "rope-result", "aria-live": "polite" });
  const hold = fig.button("Compare others with this one", () => {
    fig.set({ other: fig.traits.row });
    wall.reveal();
  });
  beside.append(pictures, make("div", {}, result, hold));
  const table = fig.element("details", { className: "rope-table" }, make("summary", {}, "As a table"));
  const cards = make("table", { className: "rope-cards" });
  table.append(cards);
  let list = null; // its many rows are made when they are asked for
  const showList = () => {
    list ??= makeList(fig, rows, cards);
    list.show(choose(rows, fig.traits), fig.traits);
  };
  table.addEventListener("toggle", () => table.open && showList());
  const seek = makeSeek(fig, rows, () => {
    table.open = true;
    showList();
    list.focus();
  });
  fig.root.querySelector(".rope-body").prepend(seek.node);
  seek.node.append(fig.root.querySelector(".rope-buttons"));

  fig.draw(() => {
    const { traits } = fig;
    const [chosen, held] = [rows[traits.row], rows[traits.other]];
    const broad = wide(fig.root.clientWidth);
    fig.root.classList.toggle("rope-broad", broad);
    plot.fit(); // the class says how wide it is: or it would be drawn once too high
    const found = choose(rows, traits);
    seek.show(traits);
    if (table.open) showList();
    wall.draw(found, traits);
    drawRings(plot, chosen, held);
    fillCards(cards, chosen, held);
    fillResult(result, chosen, held);
    hold.hidden = chosen === held;
    const now = reading(rows, traits);
    fig.say(words(now));
    fig.root.dataset.values = JSON.stringify({ ...now, bridge: bridge(held, chosen) });
  });

  const at = (name) =>
    Math.max(
      0,
      rows.findIndex((row) => row.name.startsWith(name)),
    );
  fig.showMe(async () => {
    const scenes = [
      { show: "all rotations", search: "", sort: "family", down: false, row: at("llama"), other: at("llama") },
      { row: at("ministral3") },
      { row: at("hunyuan_v1_dense") },
      { show: "promise broken" },
    ];
    for (const values of scenes) {
      fig.set(values);
      if (!values.row) fig.set({ row: choose(rows, fig.traits)[0] ?? fig.traits.row });
      await fig.pause(3200);
    }
  });
  fig.notice(NOTICE);
});

/** The search and the filter: { node, show(traits) }. */
function makeSeek(fig, rows, leave) {
  const input = make("input", { type: "search", placeholder: "a name, a base, …", "aria-label": "Search" });
  input.addEventListener("input", () => fig.set({ search: input.value }));
  const options = Object.keys(SHOW).map((name) => make("option", { value: name }, name));
  const select = make("select", { "aria-label": "Show" }, ...options);
  select.addEventListener("change", () => fig.set({ show: select.value }));
  const label = (name, control) => make("label", {}, make("span", {}, name), control);
  const broken = rows.filter(({ kept }) => !kept).length;
  const turn = () => fig.set({ show: fig.traits.show === "promise broken" ? "all rotations" : "promise broken" });
  const those = fig.button(`Show the ${broken}`, turn);
  const node = make("div", { className: "rope-seek" }, label("Search", input), label("Show", select));
  node.addEventListener("keydown", (event) => {
    event.stopPropagation(); // no command to the notebook
    if (event.target !== input || event.key !== "ArrowDown") return;
    event.preventDefault();
    leave();
  });
  return {
    node,
    show({ search, show }) {
      if (input.value !== search) input.value = search;
      select.value = show;
      those.setAttribute("aria-pressed", String(show === "promise broken"));
    },
  };
}

/** The table of the rows: { show(indices, traits), focus() }. */
function makeList(fig, rows, before) {
  const heads = Object.keys(COLUMNS).map((name) => {
    const sort = () => fig.set({ sort: name, down: fig.traits.sort === name && !fig.traits.down });
    const button = make("button", { type: "button", onclick: sort }, name);
    return make("th", { scope: "col", className: `rope-of-${name}` }, button);
  });
  const body = make("tbody");
  const head = make("thead", {}, make("tr", {}, ...heads));
  const table = make("table", { role: "grid", "aria-label": "Rotations", "aria-readonly": "true" }, head, body);
  const scroller = make("div", { className: "rope-list" }, table);
  before.before(scroller, make("p", { className: "rope-help" }, HELP));
  const lines = rows.map((row, i) => {
    const cells = Object.entries(COLUMNS).map(([name, { cell }]) =>
      make("td", { className: `rope-of-${name}`, title: cell(row) }, cell(row)),
    );
    const line = make("tr", { className: row.kept ? "" : "rope-wrong" }, ...cells);
    line.addEventListener("click", () => fig.set({ row: i }));
    return line;
  });
  let now = [];
  let key = "";

  const reveal = (line, centre) => {
    const top = line.offsetTop - head.offsetHeight;
    const bottom = line.offsetTop + line.offsetHeight - scroller.clientHeight;
    scroller.scrollTop = centre ? (top + bottom) / 2 : clamp(scroller.scrollTop, bottom, top);
  };
  body.addEventListener("keydown", (event) => {
    if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation(); // or the notebook moves to another cell
    const from = now.indexOf(lines.indexOf(event.target));
    const row = now[clamp(from + KEYS[event.key], 0, now.length - 1)];
    fig.set({ row });
    lines[row].focus({ preventScroll: true });
  });

  return {
    focus: () => body.querySelector("[tabindex='0']")?.focus(),
    show(found, { row, other, sort, down, ...filter }) {
      const next = JSON.stringify([filter.show, filter.search, sort, down]);
      const changed = key !== next;
      if (changed) {
        [key, now] = [next, found];
        body.replaceChildren(...found.map((i) => lines[i]));
        scroller.scrollTop = 0;
        heads.forEach((cell, i) => {
          const own = Object.keys(COLUMNS)[i] === sort;
          cell.setAttribute("aria-sort", own ? (down ? "descending" : "ascending") : "none");
        });
      }
      const entry = found.includes(row) ? row : found[0];
      for (const i of found) {
        lines[i].tabIndex = i === entry ? 0 : -1;
        lines[i].setAttribute("aria-selected", String(i === row));
        lines[i].classList.toggle("rope-held", i === other);
      }
      if (found.includes(row)) reveal(lines[row], changed);
    },
  };
}

function drawRings(plot, chosen, held) {
  const { width, height, ctx, colors } = plot.clear();
  const side = width / 2;
  const ring = { y: height / 2 + 6, radius: Math.min(side, height) / 2 - 22 };
  drawCircuit(plot, chosen, { ...ring, x: side / 2 });
  if (chosen !== held) drawCircuit(plot, held, { ...ring, x: 1.5 * side });
  else {
    ctx.strokeStyle = colors.muted;
    ctx.setLineDash([4, 5]);
    ctx.beginPath();
    ctx.arc(1.5 * side, ring.y, ring.radius, 0, TURN);
    ctx.stroke();
    ctx.setLineDash([]);
    text(plot, "tap a wheel", 1.5 * side, ring.y, { align: "center" });
  }
  const said = ({ name, head, pairs }) => `${name}: ${pairs.length} pairs of the ${head} channels of a head`;
  plot.canvas.setAttribute("aria-label", `Two rings of channels. ${said(chosen)}. ${said(held)}.`);
}

function fillCards(table, chosen, held) {
  const title = (row) => make("th", { scope: "col" }, row.name);
  const lines = Object.entries(LINES).map(([name, say]) => {
    const [a, b] = [say(chosen), say(held)];
    const cell = (words) => make("td", {}, words);
    const line = make("tr", {}, make("th", { scope: "row" }, name), cell(a), cell(b));
    line.classList.toggle("rope-apart", a !== b);
    return line;
  });
  const head = make("thead", {}, make("tr", {}, make("td"), title(chosen), title(held)));
  table.replaceChildren(head, make("tbody", {}, ...lines));
}

function fillResult(node, chosen, held) {
  const paragraph = (words) => {
    const p = make("p");
    setRich(p, words);
    return p;
  };
  const found = chosen.findings.map((words) => make("li", {}, words));
  node.replaceChildren(
    ...(chosen.broken ? [paragraph(`**${chosen.name}** breaks the promise by ${how(chosen.broken)}.`)] : []),
    paragraph(bridge(held, chosen)),
    ...(found.length ? [paragraph(`What the instrument finds in **${chosen.name}**:`), make("ul", {}, ...found)] : []),
  );
}
