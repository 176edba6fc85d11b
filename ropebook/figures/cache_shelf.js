// A small model's cache: a shelf of keys a layer, each as far off as it is from the key of a fresh run.
import { arrow, disc, level, text, upright, wide } from "./kit/draw.js";
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

const RIGHT = 1e-9; // what is less off is right
const percent = (x) => `${num(x < RIGHT ? 0 : 100 * x, 0)}%`;
const count = (n, name) => `${n} ${name}${n === 1 ? "" : "s"}`;
const DEEPER = {
  "words dropped": (one) => `have seen ${one ? "a word that is" : "words that are"} gone`,
  "chunk spliced": (one) => `never saw the ${one ? "word" : "words"} before them`,
};

/** The answer: which layers are right. */
export function answer(change, treatment, words, layers) {
  const [top, deepest] = [layers[0], layers.at(-1)];
  if (words === 0) return "All of them, **0%** off: nothing has changed yet.";
  if (treatment === "left")
    return `None, where words are counted afresh: **${percent(top.off)}** off in layer 0, **${percent(deepest.off)}** in layer 2.`;
  if (change === "all moved") return `All of them, **${percent(deepest.off)}** off: the text is whole.`;
  return `Those of layer 0. Deeper ones ${DEEPER[change](words === 1)}: layer 2 is **${percent(deepest.off)}** off.`;
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
  const off = (what) => layers.map((layer) => percent(layer[what])).join(", ");
  return (
    `${answer(change, treatment, count_, layers)}\n` +
    `${count(kept, "word")} × ${LAYERS} layers × ${HEADS} heads = ${keys} keys: ${cost(treatment, count_, keys)}. ` +
    `Layer by layer they are ${off("off")} off, left as they are ${off("left")}; their values, which are never ` +
    `turned, ${off("valuesOff")}. Numbers are root mean squares of both heads, against a fresh run; arrows show one ` +
    "pair of one head. The weights are fixed, drawn at random."
  );
}

const LABEL =
  "A row of words with the places of their cached keys, and under each word a tile for each of three layers that says " +
  "how far its key is off; the keys of one word as arrows, beside those of a fresh run. The left and right arrow keys " +
  "choose the word, up and down move the cut";
const NOTICE =
  "Positions can be repaired, contexts cannot. After a drop keys may as well be left, if queries count on from " +
  "their places: the distances are the same.";

// ---- the picture --------------------------------------------------------------------------------

const HEAD = 84; // pixels above the tiles
const LEFT = 56;

/** Where things lie on a canvas of this width: tiles, and beside or below them the discs of one word. */
function layout(width) {
  const beside = wide(width);
  const slot = (width - LEFT - (beside ? 170 : 2)) / COUNT;
  const row = beside ? 78 : 38;
  const radius = beside ? 35 : Math.min((width - 30) / 6, 60);
  const below = HEAD + LAYERS * row;
  const centers = Array.from({ length: LAYERS }, (_, layer) =>
    beside
      ? [width - 80, HEAD + (layer + 0.5) * row - 2]
      : [radius + 2 + (layer * (width - 2 * radius - 4)) / (LAYERS - 1), below + 48 + radius],
  );
  const height = beside ? below : below + 52 + 2 * radius;
  return { beside, slot, row, radius, centers, below, height, x: (word) => LEFT + (word + 0.5) * slot };
}

export default figure((fig) => {
  const keep = (words) => clamp(words, 0, 8);
  const cuts = () => fig.traits.change !== "all moved";
  const plot = fig.canvas({
    label: LABEL,
    help: "Drag the cut. Point at a word.",
    height: (width) => layout(width).height,
    point({ x, y }) {
      const { slot, below } = layout(plot.width);
      const word = Math.floor((x - LEFT) / slot);
      if (word >= 0 && word < COUNT && y > 24 && y < below) fig.set({ word });
    },
    drag({ x, y, begins }) {
      const { slot } = layout(plot.width);
      const place = (x - LEFT) / slot;
      if (begins && !(cuts() && Math.abs(place - fig.traits.words) * slot < 22 && y < 40)) return false;
      fig.set({ words: keep(Math.round(place)) });
      return true;
    },
    keys({ dx, dy }) {
      fig.set({ word: clamp(fig.traits.word + dx, 0, COUNT - 1), words: keep(fig.traits.words - dy) });
    },
  });

  fig.draw(() => {
    const { change, cached, words: many, pair, word } = fig.traits;
    const layers = shelf(change, cached, many);
    const { first } = placesOf(change, many);
    const seen = change === "words dropped" ? Math.max(word, first) : word; // one that is there
    plot.clear();
    drawWords(plot, change, cached, many);
    const errors = layers.map((layer, index) => drawTiles(plot, index, layer, first, seen));
    layers.forEach((layer, index) => drawDisc(plot, index, layer, seen - first, Number(pair)));
    drawTitle(plot, seen);
    if (cuts()) drawCut(plot, many);
    fig.say(words(change, cached, many, layers));
    const [off, left] = ["off", "left"].map((name) => layers.map((layer) => layer[name]));
    fig.root.dataset.values = JSON.stringify({ change, cached, words: many, word: seen, off, left, errors });
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
  const size = beside ? 13.5 : 11;
  const row = (said, y) => text(plot, said, LEFT - 10, y, { align: "right", size: 11.5 });
  row("stored at", 52);
  row("used at", 69);
  TEXT.forEach((word, j) => {
    const own = j >= first;
    const gone = !own && change === "words dropped";
    text(plot, word, x(j), 32, { align: "center", size, color: gone ? colors.muted : colors.ink, bold: own && beside });
    if (gone) level(plot, 32, { x0: x(j) - 0.4 * slot, x1: x(j) + 0.4 * slot }, colors.muted, { width: 1 });
    if (gone) return;
    const places = own ? [old + j - first, now + j - first] : [j, j];
    const color = places[0] === places[1] ? colors.muted : colors.accent;
    text(plot, treatment === "stored raw" ? "raw" : String(places[0]), x(j), 52, {
      align: "center",
      size: 11.5,
    });
    text(plot, String(places[1]), x(j), 69, { align: "center", size: 11.5, color, bold: color === colors.accent });
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
  const { x, below } = layout(plot.width);
  const at = x(many - 0.5);
  upright(plot, at, { y0: 18, y1: below - 4 }, plot.colors.accent, { width: 2 });
  disc(plot, at, 18, 9, plot.colors.accent);
  text(plot, "↔", at, 18, { align: "center", color: plot.colors.paper, size: 13, bold: true });
}

/** One layer: a tile for every cached key, red as it is off; returns by how much each is. */
function drawTiles(plot, index, { own, used, wanted, off }, first, seen) {
  const { ctx, colors } = plot;
  const { x, row, slot, beside } = layout(plot.width);
  const y = HEAD + index * row;
  const tall = row - 4;
  const good = off < RIGHT;
  const label = { align: "right", size: 12, color: colors.ink };
  text(plot, `layer ${index}`, LEFT - 10, y + tall / 2 - 8, label);
  text(plot, good ? "right" : percent(off), LEFT - 10, y + tall / 2 + 8, {
    ...label,
    size: 14,
    bold: true,
    color: good ? colors.accent : colors.warm,
  });
  const errors = [...own.map(() => 0), ...used.map((key, j) => apart(key, wanted[j]))];
  errors.forEach((error, j) => {
    const at = x(first - own.length + j);
    const right = error < RIGHT;
    ctx.fillStyle = right ? colors.accent : colors.warm;
    ctx.globalAlpha = right ? 0.25 : 0.1 + 0.35 * Math.min(error, 1);
    ctx.fillRect(at - slot / 2 + 1.5, y, slot - 3, tall);
    ctx.globalAlpha = 1;
    const said = right ? "✓" : slot > 42 ? percent(error) : num(100 * error, 0);
    text(plot, said, at, y + tall / 2, { align: "center", size: beside ? 13 : 11, color: colors.ink });
  });
  ctx.strokeStyle = colors.ink;
  ctx.lineWidth = 2;
  ctx.strokeRect(x(seen - 0.5) + 1.5, y, slot - 3, tall);
  return errors;
}

/** What the discs show. */
function drawTitle(plot, seen) {
  const { beside, below } = layout(plot.width);
  const title = { color: plot.colors.ink, size: 12.5, bold: true };
  const legend = "solid: cached, dashed: fresh";
  const said = `keys of “${TEXT[seen].replace(":", "")}”`;
  if (beside) {
    text(plot, said, plot.width - 80, 52, { ...title, align: "center" });
    text(plot, legend, plot.width - 80, 69, { align: "center", size: 11.5 });
  } else {
    text(plot, said, 2, below + 14, title);
    text(plot, legend, plot.width - 2, below + 14, { align: "right", size: 11.5 });
  }
}

/** One pair of the key of a word in a layer, and of a fresh run's: a large disc. */
function drawDisc(plot, index, { own, used, wanted }, j, pair) {
  const { ctx, colors } = plot;
  const { radius, centers, beside } = layout(plot.width);
  const [cx, cy] = centers[index];
  const keys = j < 0 ? [own.at(j), own.at(j)] : [used[j], wanted[j]];
  const [is, should] = keys.map((key) => [key[0][pair], key[0][pair + DIM / 2]]);
  const angle = ([a, b]) => Math.atan2(b, a);
  const by = (radius - 1) / Math.max(Math.hypot(...is), Math.hypot(...should));
  const tip = ([a, b]) => [cx + by * a, cy - by * b];
  const gap = shortWay(angle(is) - angle(should));
  const same = Math.hypot(is[0] - should[0], is[1] - should[1]) * by < 0.3;
  ctx.beginPath();
  ctx.arc(cx, cy, radius, 0, TURN);
  ctx.fillStyle = same ? colors.accent : colors.warm;
  ctx.globalAlpha = 0.1;
  ctx.fill();
  ctx.beginPath();
  ctx.moveTo(cx, cy);
  ctx.arc(cx, cy, radius, -angle(should), -(angle(should) + gap), gap > 0);
  ctx.closePath();
  ctx.globalAlpha = 0.3;
  if (!same) ctx.fill();
  ctx.globalAlpha = 1;
  if (!same) arrow(plot, cx, cy, ...tip(should), colors.k, { width: 1.5, dash: [3, 3] });
  arrow(plot, cx, cy, ...tip(is), colors.k, { width: 2.5 });
  if (!beside) text(plot, `layer ${index}`, cx, cy - radius - 10, { align: "center", size: 11.5 });
}
