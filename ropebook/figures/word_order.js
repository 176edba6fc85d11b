// Four words in any order: the scores of one attention layer for them, and its outputs, with and without positions.
import { arrow, level, line, text, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num } from "./kit/numbers.js";
import { cssColor } from "./kit/theme.js";
import { BASE, inverseFrequencies, normals, rotate } from "./rope.js";

export const WORDS = ["from", "Beijing", "to", "Shanghai"];
const COUNT = WORDS.length;
const DIM = 8;
const THETA = inverseFrequencies(DIM, BASE);
const SEED = 1304; // of it no two scores look the same, and none that changes looks unchanged

// ---- the layer ----------------------------------------------------------------------------------

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const apply = (matrix, vector) => matrix.map((row) => dot(row, vector));
const turned = (vector, position) => Array.from(rotate(vector, position, THETA));

/** Fixed random weights: a vector for every word, and the matrices q, k and v. */
export function makeModel(seed = SEED) {
  const all = normals((COUNT + 3 * DIM) * DIM, seed);
  const rows = (from, count, size) =>
    Array.from({ length: count }, (_, r) => Array.from({ length: DIM }, (_, c) => size * all[(from + r) * DIM + c]));
  const [q, k, v] = [0, 1, 2].map((which) => rows(COUNT + which * DIM, DIM, 1 / 4));
  return { words: rows(0, COUNT, 1), q, k, v };
}

export const MODEL = makeModel();

/**
 * What the layer makes of words by their places: { scores, outputs }, where scores[i][j] is what word i
 * has for word j, and outputs[i] the channels of the output at word i, wherever they stand.
 */
export function attend(places, positions, { words, q, k, v } = MODEL) {
  const placed = (matrix) =>
    words.map((word, i) => (positions ? turned(apply(matrix, word), places[i]) : apply(matrix, word)));
  const [queries, keys] = [placed(q), placed(k)];
  const values = words.map((word) => apply(v, word));
  const scores = queries.map((query) => keys.map((key) => dot(query, key)));
  const outputs = scores.map((row) => {
    const weights = row.map((score) => Math.exp(score / Math.sqrt(DIM)));
    const sum = weights.reduce((all, weight) => all + weight, 0);
    return values[0].map((_, c) => weights.reduce((all, weight, j) => all + (weight * values[j][c]) / sum, 0));
  });
  return { scores, outputs };
}

const SAME = 1e-9; // sums in another order differ by less
const FIRST = [0, 1, 2, 3]; // the places of the words of the first ticket

/** Beside attend(): `before`, the scores of the first ticket, and which scores and outputs are not among its own. */
export function compare(places, positions) {
  const [first, now] = [attend(FIRST, positions), attend(places, positions)];
  const fresh = now.scores.map((row, i) => row.map((score, j) => Math.abs(score - first.scores[i][j]) > SAME));
  const moved = now.outputs.map((output, i) => output.some((x, c) => Math.abs(x - first.outputs[i][c]) > SAME));
  return { ...now, before: first.scores, fresh, moved };
}

// ---- the order ----------------------------------------------------------------------------------

/** Words in their order as places by word. */
export const placesOf = (order) => WORDS.map((word) => order.split(" ").indexOf(word));

/** The order after the words at two places have changed places. */
export function swapped(order, from, to) {
  const words = order.split(" ");
  [words[from], words[to]] = [words[to], words[from]];
  return words.join(" ");
}

// ---- what is said -------------------------------------------------------------------------------

/** What is said of an order: whether it is the first, whether words are turned, how much is new. */
export function words(order, positions, numbers, outputs) {
  const still = order === WORDS.join(" ");
  if (still && !positions)
    return (
      "Sixteen scores: how much each word (row) asks for each word (column). " +
      "Drag **Shanghai** to Beijing’s place, and look for a new number."
    );
  if (still)
    return "Each query and key is turned by its position now. Drag **Shanghai** to Beijing’s place, and count what is new.";
  if (!positions)
    return (
      "**None of the 16 numbers is new**: each stands where its two words stand, each output beside its word. " +
      "The layer sees no order."
    );
  return (
    `**${numbers} of the 16 numbers are new**: those of words farther apart, nearer or the other way round. So are ` +
    `**${outputs}** of 4 outputs: the layer sees the order.`
  );
}

const LABEL =
  "Four words as cards in a row, a square of sixteen scores under them, a row for each word that asks and a column " +
  "for each word that is asked, and beside each row the output at its word. Left and right arrow keys move the " +
  "chosen word, up and down choose another";

// ---- the picture --------------------------------------------------------------------------------

const TOP = 22; // above the cards
const CARD = 40;
const GAP = 8;
const SETTLE = 420; // ms in which a word goes to its place

/** Where things lie on a canvas of this width. */
function layout(width) {
  const beside = wide(width);
  const left = beside ? 84 : 56;
  const cell = beside ? Math.min((width - left - 190) / COUNT, 104) : (width - left - 60) / COUNT;
  const tall = beside ? 50 : 48;
  const y0 = TOP + CARD + GAP;
  const end = left + COUNT * cell;
  const stripe = beside ? 18 : Math.floor((width - end - 10) / DIM);
  return { beside, left, cell, tall, y0, end, out: end + (beside ? 18 : 10), stripe, height: y0 + COUNT * tall + 4 };
}

export default figure((fig) => {
  let grabbed = null; // the order in which a word was taken, and its place then
  const plot = fig.canvas({
    label: LABEL,
    help: "Drag a word, or use the arrow keys.",
    height: (width) => layout(width).height,
    sideways: true,
    drag({ x, y, begins }) {
      const { left, cell } = layout(plot.width);
      const at = Math.floor((x - left) / cell);
      if (begins) {
        if (y < TOP || y > TOP + CARD || at < 0 || at >= COUNT) return false;
        const { order } = fig.traits;
        grabbed = { order, from: at };
        fig.set({ word: order.split(" ")[at] });
        return true;
      }
      fig.set({ order: swapped(grabbed.order, grabbed.from, clamp(at, 0, COUNT - 1)) });
      return true;
    },
    keys({ dx, dy }) {
      const { order, word } = fig.traits;
      const at = order.split(" ").indexOf(word);
      const next = clamp(at + dy, 0, COUNT - 1);
      if (dy) fig.set({ word: order.split(" ")[next] });
      else fig.set({ order: swapped(order, at, clamp(at + dx, 0, COUNT - 1)) });
    },
  });

  let flight = null; // { from, to, at }: where each word was, where it goes, since when
  /** Where each word is on its way, in places. */
  const onTheWay = (places) => {
    const now = performance.now();
    const part = ({ at }) => (fig.reducedMotion ? 1 : clamp((now - at) / SETTLE, 0, 1));
    const where = ({ from, to, at }) => {
      const gone = part({ at });
      const eased = gone * gone * (3 - 2 * gone);
      return from.map((start, i) => start + eased * (to[i] - start));
    };
    flight ??= { from: places, to: places, at: now };
    if (places.join() !== flight.to.join()) flight = { from: where(flight), to: places, at: now };
    if (part(flight) < 1 && flight.from.join() !== flight.to.join()) fig.redraw();
    return where(flight);
  };

  fig.draw(() => {
    const { order, positions, word } = fig.traits;
    const places = placesOf(order);
    const seen = compare(places, positions);
    const way = onTheWay(places);
    plot.clear();
    drawSquare(plot, way, seen);
    drawOutputs(plot, way, seen);
    drawWords(plot, way, places, positions, word);
    if (order === WORDS.join(" ")) drawHint(plot);
    const numbers = seen.fresh.flat().filter(Boolean).length;
    const outputs = seen.moved.filter(Boolean).length;
    fig.say(words(order, positions, numbers, outputs));
    fig.root.dataset.values = JSON.stringify({ order, positions, word, numbers, outputs });
  });

  fig.showMe(async () => {
    const [first, other] = [WORDS.join(" "), swapped(WORDS.join(" "), 1, 3)];
    for (const positions of [false, true]) {
      fig.set({ order: first, positions, word: "Shanghai" });
      await fig.pause(1600);
      fig.set({ order: other });
      await fig.pause(2800);
    }
  });
});

/** A score with one digit after the point, 0.0 if it is smaller than that. */
const tenths = (score) => num(Math.round(10 * score) / 10, 1);

/** Whole pixels, so that edges are sharp at rest. */
const sharp = (x) => Math.round(x);

/** The words as cards above the columns, and before the rows. */
function drawWords(plot, way, places, positions, chosen) {
  const { ctx, colors } = plot;
  const { left, cell, tall, y0, beside } = layout(plot.width);
  WORDS.forEach((word, i) => {
    const is = word === chosen;
    const [x, y] = [sharp(left + way[i] * cell) + 2, TOP];
    ctx.fillStyle = colors.paper;
    ctx.fillRect(x, y, sharp(cell) - 4, CARD);
    ctx.strokeStyle = is ? colors.accent : colors.muted;
    ctx.lineWidth = is ? 2 : 1;
    ctx.strokeRect(x, y, sharp(cell) - 4, CARD);
    const middle = x + (sharp(cell) - 4) / 2;
    const style = { align: "center", color: is ? colors.accent : colors.ink, bold: beside, size: beside ? 15 : 11.5 };
    text(plot, word, middle, y + (positions ? 14 : CARD / 2), style);
    if (positions) text(plot, `at ${places[i]}`, middle, y + 29, { align: "center", size: 11.5 });
    const row = y0 + (way[i] + 0.5) * tall;
    text(plot, word, left - 8, row, { align: "right", color: colors.ink, size: beside ? 14 : 11.5 });
  });
}

/** An arrow over the cards from the last word to the second. */
function drawHint(plot) {
  const { ctx, colors } = plot;
  const { left, cell } = layout(plot.width);
  const [from, to] = [left + 3.5 * cell, left + 1.5 * cell];
  level(plot, 8, { x0: to, x1: from }, colors.accent, { width: 2 });
  ctx.strokeStyle = colors.accent;
  ctx.lineWidth = 2;
  line(ctx, from, 8, from, TOP);
  arrow(plot, to, 8, to, TOP - 1, colors.accent, { width: 2 });
}

/** The scores, each where the row of its first word and the column of its second are. */
function drawSquare(plot, way, { scores, before, fresh }) {
  const { ctx, colors } = plot;
  const { left, cell, tall, y0, beside } = layout(plot.width);
  const most = Math.max(...scores.flat().map(Math.abs), ...before.flat().map(Math.abs));
  const all = scores.flatMap((row, i) => row.map((score, j) => ({ score, i, j })));
  const moves = ({ i, j }) => Math.abs(way[i] - sharp(way[i])) + Math.abs(way[j] - sharp(way[j]));
  for (const { score, i, j } of all.sort((a, b) => moves(a) - moves(b))) {
    const [x, y] = [sharp(left + way[j] * cell) + 1, sharp(y0 + way[i] * tall) + 1];
    const [w, h] = [sharp(cell) - 2, tall - 2];
    ctx.fillStyle = colors.paper;
    ctx.fillRect(x, y, w, h);
    ctx.globalAlpha = 0.06 + 0.36 * ((score / most + 1) / 2);
    ctx.fillStyle = colors.muted;
    ctx.fillRect(x, y, w, h);
    ctx.globalAlpha = 1;
    const is = fresh[i][j];
    const number = { align: "center", color: is ? colors.accent : colors.ink, bold: is, size: beside ? 16 : 15 };
    text(plot, tenths(score), x + w / 2, y + h / 2 - (is ? 7 : 0), number);
    if (!is) continue;
    text(plot, `was ${tenths(before[i][j])}`, x + w / 2, y + h / 2 + 12, {
      align: "center",
      size: 11.5,
      color: colors.ink,
    });
    ctx.strokeStyle = colors.accent;
    ctx.lineWidth = 2;
    ctx.strokeRect(x + 1, y + 1, w - 2, h - 2);
  }
}

/** Beside each row the output at its word, a stripe a channel. */
function drawOutputs(plot, way, { outputs, moved }) {
  const { ctx, colors } = plot;
  const { tall, y0, out, stripe, beside } = layout(plot.width);
  const most = Math.max(...outputs.flat().map(Math.abs));
  text(plot, beside ? "output at the word" : "output", out, TOP + CARD - 6, { size: beside ? 13 : 11.5 });
  outputs.forEach((output, i) => {
    const y = sharp(y0 + way[i] * tall) + 5;
    output.forEach((value, c) => {
      ctx.fillStyle = cssColor("cosine", (value / most + 1) / 2);
      ctx.fillRect(out + c * stripe, y, stripe, tall - 10);
    });
    if (!moved[i]) return;
    ctx.strokeStyle = colors.accent;
    ctx.lineWidth = 2;
    ctx.strokeRect(out - 1, y - 1, DIM * stripe + 2, tall - 8);
  });
}
