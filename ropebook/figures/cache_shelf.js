// A small model's cache: a shelf of keys a layer, beside the keys that a fresh run would store.
import { arrow, disc, level, line, scale, text, upright, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, TURN } from "./kit/numbers.js";
import { BASE, inverseFrequencies, normals, rotate, shortWay } from "./rope.js";

export const TEXT = "The cat lay in bed: it had a cold and no hat".split(" ");
const COUNT = TEXT.length;
const LAYERS = 3;
const HEADS = 2;
const DIM = 8; // of a head
const WIDTH = HEADS * DIM;
const THETA = inverseFrequencies(DIM, BASE);
const SEED = 1;

// ---- the model ----------------------------------------------------------------------------------

const apply = (matrix, vector) => matrix.map((row) => row.reduce((sum, w, j) => sum + w * vector[j], 0));
const heads = (vector) => Array.from({ length: HEADS }, (_, h) => vector.slice(h * DIM, (h + 1) * DIM));
const turned = (vectors, position) => vectors.map((vector) => Array.from(rotate(vector, position, THETA)));
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const plus = (a, b) => a.map((x, i) => x + b[i]);

/** Fixed random weights: a vector for every word, and of every layer the matrices q, k, v and o. */
export function makeModel(seed = SEED) {
  const all = normals((COUNT + 4 * LAYERS * WIDTH) * WIDTH, seed);
  let used = 0;
  const row = (size) => {
    used += WIDTH;
    return Array.from(all.subarray(used - WIDTH, used), (x) => x * size);
  };
  const rows = (count, size) => Array.from({ length: count }, () => row(size));
  const words = rows(COUNT, 1);
  const size = 1 / Math.sqrt(WIDTH);
  const layer = () => Object.fromEntries(["q", "k", "v", "o"].map((name) => [name, rows(WIDTH, size)]));
  return { words, layers: Array.from({ length: LAYERS }, layer) };
}

const MODEL = makeModel();

/** The words from `from` on, read at positions start, start + 1, ...: by layer, word and head raw keys and values. */
export function run(from, start, { words, layers } = MODEL) {
  let xs = words.slice(from);
  return layers.map(({ q, k, v, o }) => {
    const inputs = xs.map((x) => x.map((value) => value / Math.sqrt(dot(x, x) / WIDTH)));
    const [queries, keys, values] = [q, k, v].map((matrix) => inputs.map((x) => heads(apply(matrix, x))));
    const placed = keys.map((key, j) => turned(key, start + j));
    xs = xs.map((x, i) => {
      const query = turned(queries[i], start + i);
      const read = query.map((one, h) => attend(one, placed.slice(0, i + 1), values, h));
      return plus(x, apply(o, read.flat()));
    });
    return { keys, values };
  });
}

/** What one query of a head reads: the mean of the values, weighed by softmax. */
function attend(query, keys, values, head) {
  const weights = keys.map((key) => Math.exp(dot(query, key[head]) / Math.sqrt(DIM)));
  const sum = weights.reduce((all, weight) => all + weight, 0);
  return query.map((_, c) => weights.reduce((all, weight, j) => all + (weight * values[j][head][c]) / sum, 0));
}

// ---- the cache ----------------------------------------------------------------------------------

/**
 * What a change means: keys of the words from `first` on are kept. They come from a run that began with
 * word `from`; the fresh run begins with word `freshFrom`. The place of the first kept word is `old` in
 * the one and `fresh` in the other.
 */
export function placesOf(change, words) {
  if (change === "words dropped") return { first: words, from: 0, old: words, fresh: 0, freshFrom: words };
  if (change === "chunk spliced") return { first: words, from: words, old: 0, fresh: words, freshFrom: 0 };
  return { first: 0, from: 0, old: 0, fresh: words, freshFrom: 0 };
}

/** ||a - b|| / ||b|| over nested lists of numbers. */
function apart(a, b) {
  const [x, y] = [a.flat(3), b.flat(3)];
  const off = x.reduce((sum, value, i) => sum + (value - y[i]) ** 2, 0);
  return Math.sqrt(off / dot(y, y));
}

/** By layer: keys as used and as a fresh run has them, how far off they are and were if left; `own`: before a chunk. */
export function shelf(change, treatment, words) {
  const { first, from, old, fresh, freshFrom } = placesOf(change, words);
  const cached = run(from, 0);
  const again = run(freshFrom, fresh - (first - freshFrom));
  return cached.map(({ keys, values }, layer) => {
    const raw = keys.slice(first - from);
    const stored = raw.map((key, j) => turned(key, old + j));
    const used = {
      moved: () => stored.map((key) => turned(key, fresh - old)),
      left: () => stored,
      "stored raw": () => raw.map((key, j) => turned(key, fresh + j)),
    }[treatment]();
    const wanted = again[layer].keys.slice(first - freshFrom).map((key, j) => turned(key, fresh + j));
    const valuesOff = apart(values.slice(first - from), again[layer].values.slice(first - freshFrom));
    const own = again[layer].keys.slice(0, first - freshFrom).map((key, j) => turned(key, j));
    return { own, used, wanted, off: apart(used, wanted), left: apart(stored, wanted), valuesOff };
  });
}

// ---- what is said -------------------------------------------------------------------------------

const percent = (x) => `${num(x < 1e-9 ? 0 : 100 * x, 0)}%`;
const count = (n, name) => `${n} ${name}${n === 1 ? "" : "s"}`;
const REPAIRED = { moved: "Moving repairs", "stored raw": "Turning raw keys when read repairs" };
const MISSED = {
  "words dropped": (one) => `deeper keys have seen the ${one ? "word that is" : "words that are"} gone`,
  "chunk spliced": (one) => `deeper keys have never seen the ${one ? "word" : "words"} before them`,
};

/** The answer: which layers are right. */
export function answer(change, treatment, words, layers) {
  const [top, deepest] = [layers[0], layers.at(-1)];
  if (words === 0) return "Nothing has changed yet: the keys of every layer are right, **0%** off.";
  if (treatment === "left")
    return (
      `Left as they are, keys stand at old places: **${percent(top.off)}** off in layer 0, ` +
      `${percent(deepest.off)} in layer 2.`
    );
  if (change === "all moved") {
    const how = treatment === "moved" ? "moving" : "turning raw keys when read";
    return `The text is whole, so ${how} makes the keys of every layer right: **${percent(deepest.off)}** off.`;
  }
  return (
    `${REPAIRED[treatment]} layer 0 alone: ${MISSED[change](words === 1)}, and those of layer 2 stay ` +
    `**${percent(deepest.off)}** off.`
  );
}

/** What the turns cost. */
function cost(treatment, words, keys) {
  if (treatment === "stored raw") return `**${keys}** turns again for every next word`;
  if (treatment === "left" || words === 0) return "no turn";
  return `**${keys}** turns, once`;
}

/** The answer, and under it the cost and the values. */
export function words(change, treatment, count_, layers) {
  const kept = layers[0].used.length;
  const keys = kept * LAYERS * HEADS;
  const off = layers.map(({ valuesOff }) => percent(valuesOff)).join(", ");
  return (
    `${answer(change, treatment, count_, layers)}\n` +
    `${count(kept, "word")} × ${LAYERS} layers × ${HEADS} heads = ${keys} keys: ${cost(treatment, count_, keys)}. ` +
    `Their values, which are never turned, are ${off} off, layer by layer. Arrows show one pair, meters all: ` +
    "the root mean square, against a fresh run. The weights are fixed, drawn at random."
  );
}

const LABEL =
  "Three shelves, one a layer, with the cached key of every word as an arrow and the key of a fresh run as a dashed " +
  "one; beside each shelf a meter says how far the kept keys are off. The left and right arrow keys move the cut";
const NOTICE =
  "Positions can be repaired, contexts cannot. After a drop keys may as well be left, if queries count on from " +
  "their places: the distances are the same.";

// ---- the picture --------------------------------------------------------------------------------

const HEAD = 84; // pixels above the shelves
const LEFT = 52;
const MOST = 1.5; // end of the meters: keys that know nothing of each other are about 1.4 apart

/** Where things lie on a canvas of this width. */
function layout(width) {
  const beside = wide(width);
  const right = beside ? 190 : 4;
  const slot = (width - LEFT - right) / COUNT;
  const radius = Math.min(slot / 2 - 1, 19);
  const row = beside ? 2 * radius + 24 : 2 * radius + 38;
  return { beside, slot, radius, row, x: (word) => LEFT + (word + 0.5) * slot, end: width - right };
}

export default figure((fig) => {
  const keep = (words) => clamp(words, 0, 8);
  const cuts = () => fig.traits.change !== "all moved";
  const plot = fig.canvas({
    label: LABEL,
    help: "Solid: a cached key; dashed: of a fresh run. Drag the cut.",
    height: (width) => HEAD + LAYERS * layout(width).row,
    drag({ x, y, begins }) {
      const { slot } = layout(plot.width);
      const place = (x - LEFT) / slot;
      if (begins && !(cuts() && Math.abs(place - fig.traits.words) * slot < 22 && y < HEAD)) return false;
      fig.set({ words: keep(Math.round(place)) });
      return true;
    },
    keys({ dx, dy }) {
      fig.set({ words: keep(fig.traits.words + dx - dy) });
    },
  });

  fig.draw(() => {
    const { change, cached, words: many, pair } = fig.traits;
    const layers = shelf(change, cached, many);
    plot.clear();
    drawWords(plot, change, cached, many);
    layers.forEach((layer, index) => drawShelf(plot, index, layer, placesOf(change, many).first, Number(pair)));
    if (cuts()) drawCut(plot, many);
    fig.say(words(change, cached, many, layers));
    const [off, left] = ["off", "left"].map((name) => layers.map((layer) => layer[name]));
    fig.root.dataset.values = JSON.stringify({ change, cached, words: many, off, left });
  });

  fig.showMe(async () => {
    fig.set({ change: "all moved", cached: "left", words: 4 });
    await fig.pause(1600);
    fig.set({ cached: "moved" });
    await fig.pause(2000);
    fig.set({ change: "words dropped", cached: "left", words: 0 });
    await fig.glide({ words: 4 }, 2000);
    await fig.pause(1000);
    fig.set({ cached: "moved" });
    await fig.pause(2400);
    fig.set({ change: "chunk spliced" });
    await fig.pause(1600);
    fig.set({ change: "words dropped" });
  });
  fig.notice(NOTICE);
});

const TITLES = { "words dropped": ["dropped", "kept"], "chunk spliced": ["own words", "chunk, read alone"] };

/** The words with the places that their keys were stored for and are used for, and what they are. */
function drawWords(plot, change, treatment, many) {
  const { colors } = plot;
  const { x, slot, beside } = layout(plot.width);
  const { first, old, fresh } = placesOf(change, many);
  const now = treatment === "left" ? old : fresh;
  const size = beside ? 13 : 11;
  const row = (said, y) => text(plot, said, LEFT - 8, y, { align: "right", size: 11.5 });
  row("stored", 52);
  row("used", 70);
  TEXT.forEach((word, j) => {
    const own = j >= first;
    const gone = !own && change === "words dropped";
    text(plot, word, x(j), 32, { align: "center", size, color: gone ? colors.muted : colors.ink, bold: own && beside });
    if (gone) level(plot, 32, { x0: x(j) - 0.4 * slot, x1: x(j) + 0.4 * slot }, colors.muted, { width: 1 });
    if (gone) return;
    const places = own ? [old + j - first, now + j - first] : [j, j];
    const color = places[0] === places[1] ? colors.muted : colors.accent;
    text(plot, String(places[0]), x(j), 52, { align: "center", size: 11.5 });
    text(plot, String(places[1]), x(j), 70, { align: "center", size: 11.5, color, bold: color === colors.accent });
  });
  const titles = TITLES[change] ?? ["", "the whole text, moved"];
  const spans = [
    [0, first],
    [first, COUNT],
  ];
  spans.forEach(([from, to], j) => {
    if (from === to) return;
    const [x0, x1] = [x(from - 0.5) + 3, x(to - 0.5) - 3];
    level(plot, 18, { x0, x1 }, j ? colors.ink : colors.muted, { width: 1.5 });
    const fits = x1 - x0 > 7 * titles[j].length;
    if (fits)
      text(plot, titles[j], (x0 + x1) / 2, 9, { align: "center", size: 11.5, color: j ? colors.ink : colors.muted });
  });
}

/** The line between what is gone, or comes from elsewhere, and the rest: a handle on top. */
function drawCut(plot, many) {
  const { x, row, radius } = layout(plot.width);
  const at = x(many - 0.5);
  upright(plot, at, { y0: 18, y1: HEAD - 8 }, plot.colors.accent, { width: 2 });
  for (let index = 0; index < LAYERS; index++) {
    const top = HEAD + index * row;
    upright(plot, at, { y0: top, y1: top + 2 * radius + 6 }, plot.colors.accent, { width: 2 });
  }
  disc(plot, at, 18, 8, plot.colors.accent);
  text(plot, "↔", at, 18, { align: "center", color: plot.colors.paper, size: 12, bold: true });
}

/** One layer: its arrows on a board, and its meter. */
function drawShelf(plot, index, { own, used, wanted, off, left }, first, pair) {
  const { ctx, colors } = plot;
  const { x, radius, row, beside, slot, end } = layout(plot.width);
  const top = HEAD + index * row;
  const y = top + radius + 2;
  const board = y + radius + 4;
  text(plot, `layer ${index}`, LEFT - 8, y, { align: "right", color: colors.ink, size: 12, bold: true });
  ctx.fillStyle = colors.rule;
  ctx.fillRect(LEFT, board, COUNT * slot, 3);
  const part = (key) => [key[0][pair], key[0][pair + DIM / 2]];
  const angle = ([a, b]) => Math.atan2(b, a);
  const all = [...own.map((key) => [key, key]), ...used.map((key, j) => [key, wanted[j]])].map((keys) =>
    keys.map(part),
  );
  all.forEach(([is, should], j) => {
    const at = x(first - own.length + j);
    const by = (radius - 1) / Math.max(Math.hypot(...is), Math.hypot(...should));
    const tip = ([a, b]) => [at + by * a, y - by * b];
    const gap = shortWay(angle(is) - angle(should));
    const same = Math.hypot(is[0] - should[0], is[1] - should[1]) * by < 0.3;
    ctx.beginPath();
    ctx.arc(at, y, radius, 0, TURN);
    ctx.fillStyle = same ? colors.accent : colors.warm;
    ctx.globalAlpha = 0.1;
    ctx.fill();
    ctx.beginPath();
    ctx.moveTo(at, y);
    ctx.arc(at, y, radius, -angle(should), -(angle(should) + gap), gap > 0);
    ctx.closePath();
    ctx.globalAlpha = 0.3;
    if (!same) ctx.fill();
    ctx.globalAlpha = 1;
    if (!same) arrow(plot, at, y, ...tip(should), colors.muted, { width: 1, dash: [2, 2] });
    arrow(plot, at, y, ...tip(is), colors.k, { width: beside ? 1.5 : 1 });
  });
  const box = beside
    ? { x0: end + 20, x1: plot.width - 62, y: y - 8, tall: 16 }
    : { x0: LEFT, x1: plot.width - 56, y: board + 8, tall: 10 };
  drawMeter(plot, box, index, off, left);
}

/** How far a layer's keys are off: a bar, and a mark where it would end were they left as they are. */
function drawMeter(plot, { x0, x1, y, tall }, index, off, left) {
  const { ctx, colors } = plot;
  const [place] = scale([0, MOST], x0, x1);
  const good = off < 1e-9;
  const color = good ? colors.accent : colors.warm;
  ctx.fillStyle = colors.rule;
  ctx.fillRect(x0, y, x1 - x0, tall);
  ctx.fillStyle = color;
  ctx.fillRect(x0, y, Math.max(place(off) - x0, 2), tall);
  ctx.strokeStyle = colors.ink;
  ctx.lineWidth = 2;
  if (left > 1e-9) line(ctx, place(left), y - 3, place(left), y + tall + 3);
  const said = good ? "right" : percent(off);
  text(plot, said, plot.width - 4, y + tall / 2, { align: "right", color, bold: true, size: 14 });
  const marked = index === 0 && left > 1e-9 && left !== off && wide(plot.width);
  if (marked) text(plot, "if left", place(left), y - 10, { align: "center", size: 11.5 });
}
