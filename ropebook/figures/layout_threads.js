// Threads lead every row of W_q and W_k from its place in the file to its place in code of the other
// layout; beside them, the scores that the file means and the scores that the code makes.
import { make } from "./kit/dom.js";
import { disc, paintCells, text } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { inverseFrequencies, normals, score } from "./rope.js";

// [head width, rotated width, the file is interleaved, +1 counter-clockwise], as in layout_threads.py
export const FAMILIES = {
  "a small head, 16 channels": [16, 16, true, 1],
  "Llama, Meta's files: 128": [128, 128, true, 1],
  "Llama, Hugging Face's files: 128": [128, 128, false, 1],
  "GPT-J: 64 of 256": [256, 64, true, 1],
  "GPT-NeoX: 24 of 96": [96, 24, false, 1],
  "GLM-4: 64 of 128": [128, 64, true, 1],
  "Phi: 32 of 64": [64, 32, false, 1],
  "nanochat, clockwise: 128": [128, 128, false, -1],
};
const TOKENS = 12;
const NAME = { true: "interleaved", false: "half-split" };

/** The pair of a channel in a layout, or -1 where the channel is not rotated. */
export function pairOf(channel, rotated, interleaved) {
  if (channel >= rotated) return -1;
  return interleaved ? Math.floor(channel / 2) : channel % (rotated / 2);
}

/** The other channel of the pair, or -1 where the channel is not rotated. */
export function partnerOf(channel, rotated, interleaved) {
  if (channel >= rotated) return -1;
  return interleaved ? channel ^ 1 : (channel + rotated / 2) % rotated;
}

/** Old row of each new row, from the file's layout to the other one: new[j] = old[order[j]]. */
export function rowOrder(dim, rotated, interleaved) {
  const half = rotated / 2;
  return Array.from({ length: dim }, (_, j) => {
    if (j >= rotated) return j;
    if (interleaved) return j < half ? 2 * j : 2 * (j - half) + 1;
    return j % 2 ? (j - 1) / 2 + half : j / 2;
  });
}

/** Where each old row goes: place[order[j]] = j. */
export function places(order) {
  const place = [];
  order.forEach((old, j) => (place[old] = j));
  return place;
}

/** Scores of all tokens with each other, row after row, channels beyond the rotated ones included. */
export function scoreMatrix(q, k, theta, interleaved) {
  const rotated = 2 * theta.length;
  const out = new Float64Array(q.length * k.length);
  q.forEach((a, m) =>
    k.forEach((b, n) => {
      let sum = score(a, b, m, n, theta, interleaved);
      for (let c = rotated; c < a.length; c++) sum += a[c] * b[c];
      out[m * k.length + n] = sum;
    }),
  );
  return out;
}

/** What the file means (truth), what the other layout's code makes of it, and how far off it is. */
export function compare(dim, rotated, interleaved, sign, permuteQ, permuteK) {
  const theta = inverseFrequencies(rotated).map((t) => sign * t);
  const order = rowOrder(dim, rotated, interleaved);
  const heads = (seed) => Array.from({ length: TOKENS }, (_, t) => normals(dim, seed + 7919 * t));
  const moved = (vectors) => vectors.map((v) => Float64Array.from(order, (old) => v[old]));
  const [q, k] = [heads(1), heads(2)];
  const truth = scoreMatrix(q, k, theta, interleaved);
  const made = scoreMatrix(permuteQ ? moved(q) : q, permuteK ? moved(k) : k, theta, !interleaved);
  const norm = (values) => Math.sqrt(values.reduce((sum, v) => sum + v * v, 0));
  const spread = norm(truth) / TOKENS;
  const wrong = Array.from(truth.keys()).filter((i) => Math.abs(made[i] - truth[i]) > 1e-9 * spread);
  const itself = wrong.filter((i) => i % (TOKENS + 1) === 0).length; // of a token with itself
  return { truth, made, error: norm(made.map((v, i) => v - truth[i])) / norm(truth), wrong, itself };
}

/** The permutation as Python, for the rows of a weight of shape (heads * dim, in_features); short lines. */
export function pythonCode(dim, rotated, interleaved) {
  const shape = interleaved ? "-1, 2" : "2, -1";
  return [
    `# ${NAME[interleaved]} to ${NAME[!interleaved]}:`,
    "# new row j of a head = old row order[j]",
    `order = torch.arange(${rotated})`,
    `order = order.view(${shape}).T.flatten()`,
    ...(rotated < dim ? [`rest = torch.arange(${rotated}, ${dim})`, "order = torch.cat((order, rest))"] : []),
    "# for W_q and W_k and their biases only",
    `heads = weight.unflatten(0, (-1, ${dim}))`,
    "weight = heads[:, order].flatten(0, 1)",
  ].join("\n");
}

/** Edges of the rows of a loom, from y0 to y1; channels that are not rotated share the last fifth. */
export function rowEdges(dim, rotated, y0, y1) {
  const turn = rotated === dim ? y1 : y0 + 0.8 * (y1 - y0);
  return Float64Array.from({ length: dim + 1 }, (_, c) =>
    c <= rotated ? y0 + ((turn - y0) * c) / rotated : turn + ((y1 - turn) * (c - rotated)) / (dim - rotated),
  );
}

/** The row at height y, kept inside the loom. */
export function rowAt(y, edges) {
  let row = 0;
  while (row < edges.length - 2 && y >= edges[row + 1]) row++;
  return row;
}

/** Move two labels apart, so that they are at least `gap` from each other. */
export function apart(a, b, gap = 12) {
  const missing = gap - Math.abs(b - a);
  if (missing <= 0) return [a, b];
  const push = (a <= b ? -1 : 1) * (missing / 2);
  return [a + push, b - push];
}

/** Boxes of the two looms and the two matrices for a figure of this width. */
export function arrangement(width) {
  const wide = width >= 600;
  const gap = wide ? 44 : 30;
  const room = wide ? width - 190 - gap : width;
  const each = (room - gap) / 2;
  const [top, tall] = [42, wide ? 340 : 200];
  const edge = 22; // for the numbers of the channels
  const loom = (x) => ({ x0: x + edge, x1: x + each - edge, y0: top, y1: top + tall });
  const side = wide ? 142 : Math.min((width - gap) / 2 - 8, 96);
  const square = (x, y) => ({ x0: x, y0: y, x1: x + side, y1: y + side });
  const below = top + tall + 46;
  return {
    looms: [loom(0), loom(each + gap)],
    matrices: wide
      ? [square(width - side - 12, top), square(width - side - 12, top + tall - side - 6)]
      : [square(4, below), square(width / 2 + gap / 2, below)],
    height: wide ? top + tall + 22 : below + side + 24,
  };
}

/** The answer: what has moved, and how many scores are wrong now. */
export function answer(permuteQ, permuteK, { wrong, itself }) {
  const all = TOKENS ** 2;
  if (!wrong.length) return `The rows of **both matrices** have moved: all ${all} scores are as trained.`;
  const moved = permuteQ ? "Only the rows of W_q have moved" : "Only the rows of W_k have moved";
  const but = itself === 0 ? ", all but those of a token with itself" : "";
  const now = `: **${wrong.length} of ${all}** scores are wrong${but}.`;
  if (permuteQ || permuteK) return moved + now;
  return `No row has moved${now}`;
}

/**
 * The caption: `state` is what is shown, with the place of every row in the other layout; `scores`
 * what has become of the scores.
 */
export function words({ rotated, interleaved, sign, permuteQ, permuteK, channel, place }, scores) {
  const partner = partnerOf(channel, rotated, interleaved);
  const own = answer(permuteQ, permuteK, scores);
  const size =
    scores.error === 0 ? "" : ` Errors: **${num(100 * scores.error, 0)}%** of the scores' size (root mean squares).`;
  if (partner < 0)
    return `${own}\nChannel **${channel}** is not rotated: it has no partner and stays where it is.${size}`;
  const where = (name, moved) => {
    const [one, other] = moved ? [place[channel], place[partner]] : [channel, partner];
    const pair = partnerOf(one, rotated, !interleaved) === other ? "a pair" : "**no** pair";
    return `**${one}** and **${other}** of ${name}, ${pair} of the code`;
  };
  const theta = inverseFrequencies(rotated)[pairOf(channel, rotated, interleaved)];
  const turned = `${num(theta, theta < 0.01 ? 5 : 3)} rad a position${sign < 0 ? " clockwise" : ""}`;
  return (
    `${own}\nChannels **${channel}** and **${partner}** are a pair, turned by ${turned}. They come to places ` +
    `${where("W_q", permuteQ)}, and ${where("W_k", permuteK)}.${size}`
  );
}

const LABEL =
  "Two looms, one for the rows of W_q and one for the rows of W_k: threads from the order in the file to the order " +
  "in the code, and two score matrices. The arrow keys walk over the channels; left and right jump to the partner";
const NOTICE = "W_v has no loom: no row of it is ever turned.";

export default figure((fig) => {
  let looms = []; // where they lie, and which channel arrives in each row
  let cache = {}; // the scores compared last
  const shown = { q: null, k: null, at: 0 }; // how far the threads have moved, 0 to 1

  const now = () => {
    const { family, channel, permute_q: permuteQ, permute_k: permuteK } = fig.traits;
    const [dim, rotated, interleaved, sign] = FAMILIES[family];
    return { dim, rotated, interleaved, sign, permuteQ, permuteK, channel: Math.min(channel, dim - 1) };
  };
  const plot = fig.canvas({
    label: LABEL,
    height: (width) => arrangement(width).height,
    point({ x, y, type }) {
      const box = looms.find((b) => x > b.x0 - 26 && x < b.x1 + 26 && y > b.y0 - 6 && y < b.y1 + 6);
      if (!box) return;
      const row = rowAt(y, box.edges);
      const right = x > (box.x0 + box.x1) / 2;
      const channel = right ? box.arrives[row] : row;
      if (type === "pointerdown" || channel !== now().channel) fig.set({ channel });
    },
    keys({ dx, dy }) {
      const { dim, rotated, interleaved, channel } = now();
      const partner = partnerOf(channel, rotated, interleaved);
      if (Number.isFinite(dx) && dx) fig.set({ channel: partner < 0 ? channel : partner });
      else fig.set({ channel: clamp(channel + (dx || dy), 0, dim - 1) });
    },
  });
  const code = make("pre", { className: "rope-code" });
  fig.element("details", {}, make("summary", {}, "The permutation as Python"), code);

  const compared = ({ dim, rotated, interleaved, sign, permuteQ, permuteK }) => {
    const setting = [dim, rotated, interleaved, sign, permuteQ, permuteK];
    if (cache.key !== String(setting)) cache = { key: String(setting), ...compare(...setting) };
    return cache;
  };

  /** Move the threads a little towards where they belong; true once they are there. */
  const settle = (permuteQ, permuteK) => {
    const time = performance.now();
    const step = fig.reducedMotion || shown.q === null ? 1 : Math.min((time - shown.at) / 700, 0.06);
    shown.at = time;
    let still = true;
    for (const [name, wanted] of [
      ["q", Number(permuteQ)],
      ["k", Number(permuteK)],
    ]) {
      const gap = wanted - (shown[name] ?? wanted);
      shown[name] = Math.abs(gap) <= step ? wanted : shown[name] + Math.sign(gap) * step;
      still &&= shown[name] === wanted;
    }
    return still;
  };

  fig.draw(() => {
    const state = now();
    const { dim, rotated, interleaved, permuteQ, permuteK, channel } = state;
    const { looms: boxes, matrices } = arrangement(plot.clear().width);
    const order = rowOrder(dim, rotated, interleaved);
    const place = places(order);
    const partner = partnerOf(channel, rotated, interleaved);
    const still = settle(permuteQ, permuteK);
    looms = ["q", "k"].map((name, i) => {
      const moved = name === "q" ? permuteQ : permuteK;
      const eased = shown[name] ** 2 * (3 - 2 * shown[name]);
      const edges = rowEdges(dim, rotated, boxes[i].y0, boxes[i].y1);
      const box = { ...boxes[i], edges, arrives: moved ? order : order.map((_, j) => j) };
      drawLoom(plot, box, { ...state, place, partner, eased, title: `rows of W_${name}` });
      return box;
    });
    const scores = compared(state);
    const { truth, made, error, wrong } = scores;
    const { muted, accent, warm } = fig.colors;
    const [verdict, color] = wrong.length
      ? [`${wrong.length} scores are wrong`, warm]
      : ["all scores are right", accent];
    drawMatrix(plot, matrices[0], { values: truth, truth, wrong: [] }, "scores, as trained", muted);
    drawMatrix(plot, matrices[1], { values: made, truth, wrong }, verdict, color);
    fig.say(words({ ...state, place }, scores));
    code.textContent = pythonCode(dim, rotated, interleaved);
    Object.assign(fig.root.dataset, { channel, partner, error });
    if (!still) fig.redraw();
  });

  fig.showMe(async () => {
    const { dim, rotated, interleaved, channel } = now();
    fig.set({ permute_q: false, permute_k: false, channel: channel < rotated ? channel : 2 });
    await fig.pause(1300);
    fig.set({ permute_q: true });
    await fig.pause(2000);
    fig.set({ permute_k: true });
    await fig.pause(1600);
    fig.set({ channel: Math.min(partnerOf(2, rotated, interleaved), dim - 1) });
  });
  const copy = fig.button("Copy the permutation", async () => {
    const done = await copyText(code);
    copy.textContent = done ? "Copied" : "Selected: copy with Ctrl+C";
    setTimeout(() => {
      copy.textContent = "Copy the permutation";
    }, 2500);
  });
  fig.notice(NOTICE);
});

/** Put the text of a node on the clipboard, or select it; true if it was copied. */
async function copyText(node) {
  try {
    await navigator.clipboard.writeText(node.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(node);
    return document.execCommand?.("copy") ?? false;
  }
}

function drawLoom(plot, box, { dim, rotated, interleaved, place, partner, channel, eased, title }) {
  const { ctx, colors } = plot;
  const { edges } = box;
  const middle = (row) => (edges[row] + edges[row + 1]) / 2;
  const color = (pair) => (pair < 0 ? colors.rule : pairColor(pair, rotated / 2));
  const tall = edges[1] - edges[0];
  const slot = 9;
  const chosen = [channel, partner].filter((c) => c >= 0);

  text(plot, title, (box.x0 + box.x1) / 2, 10, { align: "center", color: colors.ink, bold: true, size: 13 });
  text(plot, NAME[interleaved], box.x0 - 20, 28, { size: 11.5 });
  text(plot, NAME[!interleaved], box.x1 + 20, 28, { align: "right", size: 11.5 });
  for (let c = 0; c < dim; c++) {
    const high = edges[c + 1] - edges[c];
    const filled = high > 4 ? high - 1.5 : high + 0.3;
    ctx.fillStyle = color(pairOf(c, rotated, interleaved));
    ctx.fillRect(box.x0, edges[c], slot, filled);
    ctx.fillStyle = color(pairOf(c, rotated, !interleaved));
    ctx.fillRect(box.x1 - slot, edges[c], slot, filled);
  }
  const thread = (c, width, alpha) => {
    const from = middle(c);
    const to = from + (middle(place[c]) - from) * eased;
    const [x0, x1] = [box.x0 + slot, box.x1 - slot];
    const bend = (x1 - x0) * 0.45;
    ctx.beginPath();
    ctx.moveTo(x0, from);
    ctx.bezierCurveTo(x0 + bend, from, x1 - bend, to, x1, to);
    ctx.strokeStyle = color(pairOf(c, rotated, interleaved));
    ctx.lineWidth = width;
    ctx.globalAlpha = alpha;
    ctx.stroke();
    ctx.globalAlpha = 1;
  };
  const thin = clamp(tall * 0.3, 0.8, 2.2);
  for (let c = 0; c < rotated; c++) if (!chosen.includes(c)) thread(c, thin, rotated > 32 ? 0.45 : 0.6);
  if (rotated < dim) {
    const y = (edges[rotated] + edges[dim]) / 2;
    text(plot, `${dim - rotated} not`, (box.x0 + box.x1) / 2, y - 8, { align: "center", size: 11.5 });
    text(plot, "rotated", (box.x0 + box.x1) / 2, y + 8, { align: "center", size: 11.5 });
  }
  const label = (row, y, x, align, bold) =>
    text(plot, String(row), x, y, { size: 11, align, bold, color: bold ? colors.ink : colors.muted });
  const right = chosen.map((c) => Math.round(c + (place[c] - c) * eased));
  for (const [rows, x, align] of [
    [chosen, box.x0 - 5, "right"],
    [right, box.x1 + 5, "left"],
  ]) {
    if (tall >= 12.5) {
      for (let c = 0; c < rotated; c++) label(c, middle(c), x, align, rows.includes(c));
      rows.filter((c) => c >= rotated).forEach((c) => label(c, middle(c), x, align, true));
    } else {
      const heights = rows.length === 2 ? apart(middle(rows[0]), middle(rows[1])) : rows.map(middle);
      rows.forEach((c, i) => label(c, heights[i], x, align, true));
    }
  }
  for (const c of chosen) thread(c, 3.6, 1);
}

/** A dot marks every score that differs from the true one by more than rounding. */
function drawMatrix(plot, box, { values, truth, wrong }, title, color) {
  const { ctx, colors } = plot;
  const spread = Math.sqrt(truth.reduce((sum, v) => sum + v * v, 0) / truth.length);
  const level = (v) => Math.round((clamp(v / (2 * spread), -1, 1) + 1) * 127.5);
  paintCells(plot, box, TOKENS, TOKENS, "cosine", (column, row) => level(values[row * TOKENS + column]));
  const side = (box.x1 - box.x0) / TOKENS;
  for (const i of wrong) {
    const [x, y] = [box.x0 + ((i % TOKENS) + 0.5) * side, box.y0 + (Math.floor(i / TOKENS) + 0.5) * side];
    disc(plot, x, y, Math.max(side * 0.2, 2), colors.warm);
  }
  const own = color !== colors.muted;
  ctx.lineWidth = own ? 2.5 : 1;
  ctx.strokeStyle = own ? color : colors.rule;
  ctx.strokeRect(box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
  text(plot, title, box.x0, box.y0 - 12, { color, size: 12, bold: own });
  const note = own && wrong.length ? "dot: a wrong score" : `${TOKENS} queries × ${TOKENS} keys`;
  text(plot, note, box.x0, box.y1 + 11, { size: 11.5 });
}
