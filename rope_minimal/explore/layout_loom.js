// Threads lead every row of W_q and W_k from its place in the file to its place in code of the other
// layout; beside them, the scores that the file means and the scores that the code makes.
import { figure, num, pairColor, paintCells, text } from "./kit.js";
import { inverseFrequencies, score } from "./rope.js";

// [head width, rotated width, the file is interleaved, +1 counter-clockwise], as in layout_loom.py
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

/** Normal random numbers, always the same ones for a seed. */
export function randomNumbers(count, seed) {
  let state = seed;
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return Float64Array.from({ length: count }, () => {
    const radius = Math.sqrt(-2 * Math.log(1 - uniform()));
    return radius * Math.cos(2 * Math.PI * uniform());
  });
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
  const heads = (seed) => Array.from({ length: TOKENS }, (_, t) => randomNumbers(dim, seed + 7919 * t));
  const moved = (vectors) => vectors.map((v) => Float64Array.from(order, (old) => v[old]));
  const [q, k] = [heads(1), heads(2)];
  const truth = scoreMatrix(q, k, theta, interleaved);
  const made = scoreMatrix(permuteQ ? moved(q) : q, permuteK ? moved(k) : k, theta, !interleaved);
  const norm = (values) => Math.sqrt(values.reduce((sum, v) => sum + v * v, 0));
  return { truth, made, error: norm(made.map((v, i) => v - truth[i])) / norm(truth) };
}

/** The permutation as Python, for the rows of a weight of shape (heads * dim, in_features). */
export function pythonCode(dim, rotated, interleaved) {
  const half = rotated / 2;
  const turned = interleaved
    ? `torch.cat((torch.arange(0, ${rotated}, 2), torch.arange(1, ${rotated}, 2)))`
    : `torch.stack((torch.arange(${half}), torch.arange(${half}, ${rotated})), 1).flatten()`;
  return [
    `# ${NAME[interleaved]} to ${NAME[!interleaved]}: new row j of a head is old row order[j]`,
    `order = ${turned}`,
    ...(rotated < dim ? [`order = torch.cat((order, torch.arange(${rotated}, ${dim})))  # not rotated: stays`] : []),
    `weight = weight.unflatten(0, (-1, ${dim}))[:, order].flatten(0, 1)  # W_q and W_k, biases too`,
  ].join("\n");
}

/** The channel whose row is nearest to a point of a loom. */
export function channelAt(y, box, dim) {
  const row = Math.floor(((y - box.y0) / (box.y1 - box.y0)) * dim);
  return Math.min(Math.max(row, 0), dim - 1);
}

/** Boxes of the two looms and the two matrices for a figure of this width. */
export function arrangement(width) {
  const wide = width >= 600;
  const gap = wide ? 44 : 30;
  const room = wide ? width - 190 - gap : width;
  const each = (room - gap) / 2;
  const [top, tall] = [42, wide ? 372 : 330];
  const edge = 22; // for the numbers of the channels
  const loom = (x) => ({ x0: x + edge, x1: x + each - edge, y0: top, y1: top + tall });
  const side = wide ? 156 : (width - gap) / 2 - 8;
  const square = (x, y) => ({ x0: x, y0: y, x1: x + side, y1: y + side });
  const below = top + tall + 46;
  return {
    looms: [loom(0), loom(each + gap)],
    matrices: wide
      ? [square(width - side - 12, top), square(width - side - 12, top + tall - side)]
      : [square(4, below), square(width / 2 + gap / 2, below)],
    height: wide ? top + tall + 12 : below + side + 8,
  };
}

export default figure((fig) => {
  const plotted = { looms: [], dim: 16 };
  const shown = { q: null, k: null, at: 0 }; // how far the threads have moved, 0 to 1

  const now = () => {
    const { family, channel, permute_q: permuteQ, permute_k: permuteK } = fig.traits;
    const [dim, rotated, interleaved, sign] = FAMILIES[family];
    return { dim, rotated, interleaved, sign, permuteQ, permuteK, channel: Math.min(channel, dim - 1) };
  };
  const plot = fig.canvas({
    label:
      "Two looms, one for the rows of W_q and one for the rows of W_k: threads from the order in the file to the order in the code, and two score matrices",
    help: "Point at a thread, or focus the picture and walk with the arrow keys; left and right jump to the partner.",
    height: (width) => arrangement(width).height,
    point({ x, y, type }) {
      const box = plotted.looms.find((b) => x > b.x0 - 26 && x < b.x1 + 26 && y > b.y0 - 6 && y < b.y1 + 6);
      if (!box) return;
      const row = channelAt(y, box, plotted.dim);
      const right = x > (box.x0 + box.x1) / 2;
      const channel = right ? box.arrives[row] : row;
      if (type === "pointerdown" || channel !== now().channel) fig.set({ channel });
    },
    keys({ dx, dy }) {
      const { dim, rotated, interleaved, channel } = now();
      const partner = partnerOf(channel, rotated, interleaved);
      if (Number.isFinite(dx) && dx) fig.set({ channel: partner < 0 ? channel : partner });
      else fig.set({ channel: Math.min(Math.max(channel + (dx || dy), 0), dim - 1) });
    },
  });
  const code = fig.element("pre", { tabIndex: 0 });
  code.setAttribute("aria-label", "The permutation as Python code");
  code.setAttribute("role", "region");
  Object.assign(code.style, {
    margin: "0.6rem 0 0", padding: "0.55rem 0.7rem", overflowX: "auto", fontSize: "12.5px",
    lineHeight: "1.5", color: "var(--rope-ink)", background: "var(--rope-accent-soft)",
    border: "0", borderRadius: "6px",
  });

  let cache = {};
  const compared = (state) => {
    const key = JSON.stringify([state.dim, state.rotated, state.interleaved, state.sign, state.permuteQ, state.permuteK]);
    if (cache.key !== key) {
      const { dim, rotated, interleaved, sign, permuteQ, permuteK } = state;
      cache = { key, ...compare(dim, rotated, interleaved, sign, permuteQ, permuteK) };
    }
    return cache;
  };

  const settle = (permuteQ, permuteK) => {
    // move the threads a little towards where they belong; true once they are there
    const time = performance.now();
    const quiet = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const step = quiet || shown.q === null ? 1 : Math.min((time - shown.at) / 700, 0.06);
    shown.at = time;
    let still = true;
    for (const [name, wanted] of [["q", Number(permuteQ)], ["k", Number(permuteK)]]) {
      const gap = wanted - (shown[name] ?? wanted);
      shown[name] = Math.abs(gap) <= step ? wanted : shown[name] + Math.sign(gap) * step;
      still &&= shown[name] === wanted;
    }
    return still;
  };

  fig.draw(() => {
    const state = now();
    const { dim, rotated, interleaved, sign, permuteQ, permuteK, channel } = state;
    const { looms, matrices } = arrangement(plot.clear().width);
    const order = rowOrder(dim, rotated, interleaved);
    const place = places(order);
    const partner = partnerOf(channel, rotated, interleaved);
    const still = settle(permuteQ, permuteK);
    Object.assign(plotted, { looms, dim });
    ["q", "k"].forEach((name, i) => {
      const moved = name === "q" ? permuteQ : permuteK;
      const eased = shown[name] ** 2 * (3 - 2 * shown[name]);
      looms[i].arrives = moved ? order : order.map((_, j) => j);
      drawLoom(plot, looms[i], { ...state, place, partner, eased, title: `rows of W_${name}` });
    });
    const { truth, made, error } = compared(state);
    const largest = Math.max(...truth.map(Math.abs));
    const right = error === 0;
    drawMatrix(plot, matrices[0], truth, largest, "scores the file means", fig.colors.muted);
    drawMatrix(plot, matrices[1], made, largest, right ? "equal to the last bit" : `off by ${num(100 * error, 0)} %`, right ? fig.colors.accent : fig.colors.warm, true);

    const lands = (moved) => [channel, partner].map((c) => (moved ? place[c] : c));
    const meets = (moved) => partnerOf(lands(moved)[0], rotated, !interleaved) === lands(moved)[1];
    const theta = partner < 0 ? 0 : inverseFrequencies(rotated)[pairOf(channel, rotated, interleaved)];
    const where = (name, moved) =>
      `In ${name} they come to places **${lands(moved)[0]}** and **${lands(moved)[1]}**, ${meets(moved) ? "a pair" : "**not** a pair"} of the code.`;
    fig.say(
      (partner < 0
        ? `Channel **${channel}** is not rotated: it has no partner and stays where it is. `
        : `Channel **${channel}** is turned with channel **${partner}**, by **${num(theta, theta < 0.01 ? 5 : 3)}** rad a position${sign < 0 ? " clockwise" : ""}. ` +
          `${where("W_q", permuteQ)} ${where("W_k", permuteK)} `) +
        (right ? "The scores are **equal to the last bit**." : `The scores are off by **${num(100 * error, 0)} %**.`),
    );
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
    setTimeout(() => (copy.textContent = "Copy the permutation"), 2500);
  });
  fig.notice(
    "With nothing permuted, the scores on the diagonal are right and the others wrong: a token's score with itself needs no angle. With one matrix permuted nothing is right. With both, nothing differs, not by a bit. W_v has no loom: no row of it is ever turned.",
  );
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
  const tall = (box.y1 - box.y0) / dim;
  const yOf = (row) => box.y0 + (row + 0.5) * tall;
  const color = (pair) => (pair < 0 ? colors.rule : pairColor(pair, rotated / 2));
  const slot = 9;
  const chosen = (c) => c === channel || c === partner;

  text(plot, title, (box.x0 + box.x1) / 2, 10, { align: "center", color: colors.ink, bold: true, size: 13, halo: false });
  text(plot, NAME[interleaved], box.x0 - 20, 28, { size: 11.5, halo: false });
  text(plot, NAME[!interleaved], box.x1 + 20, 28, { align: "right", size: 11.5, halo: false });
  for (let c = 0; c < dim; c++) {
    const [y, tallSlot] = [box.y0 + c * tall, Math.max(tall - (tall > 4 ? 1.5 : 0), 0.8)];
    ctx.fillStyle = color(pairOf(c, rotated, interleaved));
    ctx.fillRect(box.x0, y, slot, tallSlot);
    ctx.fillStyle = color(pairOf(c, rotated, !interleaved));
    ctx.fillRect(box.x1 - slot, y, slot, tallSlot);
  }
  const thread = (c, width, alpha) => {
    const from = yOf(c);
    const to = yOf(c + (place[c] - c) * eased);
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
  const thin = Math.min(Math.max(tall * 0.3, 0.8), 2.2);
  for (let c = 0; c < dim; c++) if (!chosen(c)) thread(c, thin, dim > 32 ? 0.45 : 0.6);
  const labelled = tall >= 12.5;
  for (let c = 0; c < dim; c++) {
    if (!labelled && !chosen(c)) continue;
    const options = { size: 11, halo: !labelled, color: chosen(c) ? colors.ink : colors.muted, bold: chosen(c) };
    text(plot, String(c), box.x0 - 5, yOf(c), { ...options, align: "right" });
    const row = Math.round(c + (place[c] - c) * eased);
    text(plot, String(labelled ? c : row), box.x1 + 5, yOf(labelled ? c : row), labelled ? { ...options, bold: false, color: colors.muted } : options);
  }
  for (const c of [channel, partner]) if (c >= 0) thread(c, 3.6, 1);
}

function drawMatrix(plot, box, values, largest, title, color, marked = false) {
  const { ctx, colors } = plot;
  const level = (v) => Math.round((Math.min(Math.max(v / largest, -1), 1) + 1) * 127.5);
  paintCells(plot, box, TOKENS, TOKENS, "cosine", (column, row) => level(values[row * TOKENS + column]));
  ctx.lineWidth = marked ? 2.5 : 1;
  ctx.strokeStyle = marked ? color : colors.rule;
  ctx.strokeRect(box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
  text(plot, title, box.x0, box.y0 - 12, { color, size: 12.5, bold: marked, halo: false });
}
