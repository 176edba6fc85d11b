// A small model's cache: a shelf of keys a layer, each as far off as it is from the key of a fresh run.
import { arrow, curve, disc, level, text, upright, wide } from "./kit/draw.js";
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
      "as they are": () => stored,
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
  "words dropped": (one) => `saw ${one ? "a word that is" : "words that are"} gone`,
  "chunk spliced": (one) => `never saw the ${one ? "word" : "words"} before them`,
};

const keysOf = (layers) => layers[0].used.length * LAYERS * HEADS;

/** The answer: which layers are right, and by what. */
export function answer(change, treatment, words, layers) {
  const [top, deepest] = [layers[0], layers.at(-1)];
  if (words === 0) return "All of them, **0%** off: nothing has changed yet.";
  const own = change === "chunk spliced"; // words before the chunk, whose keys are right
  if (treatment === "as they are") {
    const right = own ? "Those of the text’s own words. The chunk’s" : "None: keys";
    const off = `**${percent(top.off)}** off in layer 0, **${percent(deepest.off)}** in layer 2`;
    return `${right} are turned for old places, ${off}. Move them.`;
  }
  const how = treatment === "moved" ? `after **${keysOf(layers)}** turns` : "turned at every reading";
  if (change === "all moved") return `All of them, **${percent(deepest.off)}** off, ${how}: the text is whole.`;
  const right = own ? "Those of the text’s own words, and layer 0 of the chunk" : "Those of layer 0";
  return `${right}, ${how}. Deeper ones ${DEEPER[change](words === 1)}: layer 2 is **${percent(deepest.off)}** off.`;
}

/** What the turns cost. */
function cost(treatment, words, keys) {
  if (treatment === "stored raw") return `**${keys}** turns again for every next word`;
  if (treatment === "as they are" || words === 0) return "no turn";
  return `**${keys}** turns, once`;
}

/** The answer, and under it the cost and the values. */
export function words(change, treatment, count_, layers) {
  const kept = layers[0].used.length;
  const keys = keysOf(layers);
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
  "A row of words with their places and those of their cached keys, and under each word a tile for each of three layers, " +
  "with its key as a hand beside that of a fresh run; of one word the tiles say how far keys are off. The left and right " +
  "arrow keys move the cut, up and down choose the word";
const NOTICE =
  "Positions can be repaired, contexts cannot. After a drop keys may as well be left, if queries count on from " +
  "their places: the distances are the same.";

// ---- the picture --------------------------------------------------------------------------------

const HEAD = 92; // pixels above the tiles
const WORDS = 41; // where the words stand
const LEFT = 51; // rows are named

/** Where things lie on a canvas of this width: tiles, and where these are small, below them the discs of one word. */
function layout(width) {
  const large = wide(width);
  const slot = (width - LEFT - 2) / COUNT;
  const row = large ? Math.min(slot, 70) + 18 : 40;
  const below = HEAD + LAYERS * row;
  const radius = large ? Math.min(slot, 70) / 2 - 4 : Math.min((width - 30) / 6, 56);
  const centers = Array.from({ length: LAYERS }, (_, layer) => [
    radius + 2 + (layer * (width - 2 * radius - 4)) / (LAYERS - 1),
    below + 54 + radius,
  ]);
  const height = large ? below + 22 : below + 80 + 2 * radius;
  return { large, slot, row, radius, centers, below, height, x: (word) => LEFT + (word + 0.5) * slot };
}

const TAP = "Tap a word.";
const HELP = `Drag the cut. ${TAP}`;

export default figure((fig) => {
  const keep = (words) => clamp(words, 0, 8);
  const cuts = () => fig.traits.change !== "all moved";
  const grips = (x, y) => cuts() && Math.abs(x - layout(plot.width).x(fig.traits.words - 0.5)) < 22 && y < 40;
  const first = fig.element("div", { className: "rope-controls" }, fig.controls.cached);
  first.style.marginBottom = "8px";
  const plot = fig.canvas({
    label: LABEL,
    help: HELP,
    height: (width) => layout(width).height,
    point({ x, y }) {
      const { slot, below } = layout(plot.width);
      const word = Math.floor((x - LEFT) / slot);
      plot.canvas.style.cursor = grips(x, y) ? "grab" : "";
      if (word >= 0 && word < COUNT && y > 24 && y < below) fig.set({ word });
    },
    sideways: true,
    drag({ x, y, begins }) {
      if (begins) return grips(x, y);
      fig.set({ words: keep(Math.round((x - LEFT) / layout(plot.width).slot)) });
      return true;
    },
    keys({ dx, dy }) {
      fig.set({ words: keep(fig.traits.words + dx), word: clamp(fig.traits.word + dy, 0, COUNT - 1) });
    },
  });

  let part = null; // of the turn to the new places that the hands show
  fig.draw(() => {
    const { change, cached, words: many, pair, word } = fig.traits;
    const layers = shelf(change, cached, many);
    const { first, old, fresh } = placesOf(change, many);
    const goal = cached === "as they are" ? 0 : 1;
    part = fig.reducedMotion || part === null || Math.abs(goal - part) < 0.01 ? goal : part + (goal - part) / 8;
    if (part !== goal) fig.redraw();
    fig.root.querySelector(".rope-help").textContent = cuts() ? HELP : TAP;
    const ahead = (fresh - old) * (part - goal);
    const seen = change === "words dropped" ? Math.max(word, first) : word; // one that is there
    plot.clear();
    drawWords(plot, change, cached, many);
    const at = { first, seen, pair: Number(pair), ahead };
    const errors = layers.map((layer, index) => drawTiles(plot, index, layer, at));
    if (!layout(plot.width).large) drawLarge(plot, layers, errors, at);
    drawKey(plot);
    if (cuts()) drawCut(plot, many);
    fig.say(words(change, cached, many, layers));
    const [off, left] = ["off", "left"].map((name) => layers.map((layer) => layer[name]));
    fig.root.dataset.values = JSON.stringify({ change, cached, words: many, word: seen, off, left, errors });
  });

  fig.showMe(async () => {
    fig.set({ change: "all moved", cached: "as they are", words: 4 });
    await fig.pause(1600);
    fig.set({ cached: "moved" });
    await fig.pause(2000);
    fig.set({ change: "words dropped", cached: "as they are", words: 0 });
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
  const { x, slot, large } = layout(plot.width);
  const { first, old, fresh } = placesOf(change, many);
  const now = treatment === "as they are" ? old : fresh;
  const size = large ? 13.5 : 11;
  const row = (said, y) => text(plot, said, LEFT - 6, y, { align: "right", size: 11.5 });
  row("word at", 60);
  row("key at", 77);
  TEXT.forEach((word, j) => {
    const own = j >= first;
    const gone = !own && change === "words dropped";
    text(plot, word, x(j), WORDS, {
      align: "center",
      size,
      color: gone ? colors.muted : colors.ink,
      bold: own && large,
    });
    if (gone) level(plot, WORDS, { x0: x(j) - 0.4 * slot, x1: x(j) + 0.4 * slot }, colors.muted, { width: 1 });
    if (gone) return;
    const [place, key] = own ? [fresh + j - first, now + j - first] : [j, j];
    const said = { align: "center", size: large ? 13 : 11.5 };
    text(plot, String(place), x(j), 60, { ...said, color: colors.ink });
    text(plot, String(key), x(j), 77, { ...said, bold: true, color: key === place ? colors.accent : colors.warm });
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
    const fits = x1 - x0 > 7 * titles[j].length + 14; // and the handle beside it
    if (fits)
      text(plot, titles[j], (x0 + x1) / 2, 9, { align: "center", size: 11.5, color: j ? colors.ink : colors.muted });
  });
}

/** The line between what is gone, or comes from elsewhere, and the rest: a handle on top, and a gap at the words. */
function drawCut(plot, many) {
  const { x, below } = layout(plot.width);
  const at = x(many - 0.5);
  upright(plot, at, { y0: WORDS + 10, y1: below - 4 }, plot.colors.accent, { width: 2 });
  disc(plot, at, 18, 11, plot.colors.accent);
  text(plot, "↔", at, 18, { align: "center", color: plot.colors.paper, size: 13, bold: true });
}

/** One layer: a tile for every cached key, red as it is off, and its hands; returns by how much each is. */
function drawTiles(plot, index, layer, { first, seen, pair, ahead }) {
  const { ctx, colors } = plot;
  const { x, row, slot, large } = layout(plot.width);
  const { own, used, wanted, off } = layer;
  const y = HEAD + index * row;
  const tall = row - 4;
  const good = off < RIGHT;
  const label = { align: "right", size: 12, color: colors.ink };
  text(plot, `layer ${index}`, LEFT - 6, y + tall / 2 - 8, label);
  text(plot, good ? "right" : percent(off), LEFT - 6, y + tall / 2 + 8, {
    ...label,
    size: 14,
    bold: true,
    color: good ? colors.accent : colors.warm,
  });
  const errors = [...own.map(() => 0), ...used.map((key, j) => apart(key, wanted[j]))];
  const radius = Math.min(slot, tall - 14) / 2 - 2;
  ctx.strokeStyle = colors.rule;
  ctx.lineWidth = 1;
  for (let word = 0; word < first - own.length; word++) ctx.strokeRect(x(word - 0.5) + 2, y + 0.5, slot - 4, tall - 1);
  errors.forEach((error, j) => {
    const word = first - own.length + j;
    const at = x(word);
    const right = error < RIGHT;
    ctx.fillStyle = right ? colors.accent : colors.warm;
    ctx.globalAlpha = right ? 0.2 : 0.1 + 0.25 * Math.min(error, 1);
    ctx.fillRect(at - slot / 2 + 1.5, y, slot - 3, tall);
    ctx.globalAlpha = 1;
    drawHands(plot, at, y + radius + 3, radius, handsOf(layer, j, pair, ahead));
    const said = right ? "✓" : large ? percent(error) : "";
    text(plot, said, at, y + tall - 8, { align: "center", size: 12, color: colors.ink, bold: right || word === seen });
  });
  ctx.strokeStyle = colors.ink;
  ctx.lineWidth = 2;
  ctx.strokeRect(x(seen - 0.5) + 1.5, y, slot - 3, tall);
  return errors;
}

/** What the hands mean. */
function drawKey(plot) {
  const { below, large, height } = layout(plot.width);
  const y = large ? below + 12 : height - 9;
  const from = large ? LEFT : 2;
  const blue = plot.colors.k;
  arrow(plot, from, y, from + 24, y, blue, { width: 2.5 });
  text(plot, "one pair of the cached key", from + 30, y, { size: 11.5 });
  arrow(plot, from + 180, y, from + 204, y, blue, { width: 1.5, dash: [3, 3] });
  text(plot, "of a fresh run", from + 210, y, { size: 11.5 });
}

/** The keys of one word, large, where tiles have no room for their numbers. */
function drawLarge(plot, layers, errors, { first, seen, pair, ahead }) {
  const { radius, centers, below } = layout(plot.width);
  const said = `keys of “${TEXT[seen].replace(":", "")}”: tap another word`;
  text(plot, said, 2, below + 16, { color: plot.colors.ink, size: 12.5, bold: true });
  layers.forEach((layer, index) => {
    const [x, y] = centers[index];
    const j = seen - first + layer.own.length;
    const error = errors[index][j];
    const right = error < RIGHT;
    drawHands(plot, x, y, radius, handsOf(layer, j, pair, ahead));
    text(plot, right ? `layer ${index} ✓` : `layer ${index}: ${percent(error)}`, x, y - radius - 11, {
      align: "center",
      size: 12,
      bold: true,
      color: right ? plot.colors.accent : plot.colors.warm,
    });
  });
}

/**
 * One pair of the key of a word in a layer, [as it is cached, as a fresh run has it], the first on its way
 * to where it is moved; own words before a chunk are right.
 */
function handsOf({ own, used, wanted }, j, pair, ahead) {
  const late = j - own.length;
  const keys = late < 0 ? [own[j], own[j]] : [turned(used[late], ahead), wanted[late]];
  return keys.map((key) => [key[0][pair], key[0][pair + DIM / 2]]);
}

/** Two hands on a disc, and the angle between them. */
function drawHands(plot, cx, cy, radius, [is, should]) {
  const { ctx, colors } = plot;
  const angle = ([a, b]) => Math.atan2(b, a);
  const by = (radius - 1) / Math.max(Math.hypot(...is), Math.hypot(...should));
  const tip = ([a, b]) => [cx + by * a, cy - by * b];
  const gap = shortWay(angle(is) - angle(should));
  const same = Math.hypot(is[0] - should[0], is[1] - should[1]) * by < 0.01 * radius;
  ctx.beginPath();
  ctx.arc(cx, cy, radius, 0, TURN);
  ctx.fillStyle = colors.paper;
  ctx.strokeStyle = colors.rule;
  ctx.lineWidth = 1;
  ctx.globalAlpha = 0.6;
  ctx.fill();
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(cx, cy);
  ctx.arc(cx, cy, radius, -angle(should), -(angle(should) + gap), gap > 0);
  ctx.closePath();
  ctx.fillStyle = colors.warm;
  ctx.globalAlpha = 0.3;
  if (!same) ctx.fill();
  ctx.globalAlpha = 1;
  const hand = radius > 16 ? arrow : (_, x0, y0, x1, y1, ...look) => curve(plot, [x0, x1], [y0, y1], ...look);
  const dash = radius > 16 ? [3, 3] : [2, 2];
  if (!same) hand(plot, cx, cy, ...tip(should), colors.k, { width: 1.5, dash });
  hand(plot, cx, cy, ...tip(is), colors.k, { width: same ? 4 : 2.5 });
  if (same) curve(plot, [cx, cx + 0.8 * by * is[0]], [cy, cy - 0.8 * by * is[1]], colors.paper, { width: 1.5, dash });
}
