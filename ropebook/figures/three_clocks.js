// A text with an image and a video in it: where each token stands in time, row and column, and which pairs belong to which axis.
import { level, line, scale, text, upright } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, TURN } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { inverseFrequencies, wavelengths } from "./rope.js";

const DIM = 128;
const PAIRS = DIM / 2;
const BASE = 1000000;
const THETA = inverseFrequencies(DIM, BASE);
const WAVES = wavelengths(THETA);
const AXES = ["t", "h", "w"];
const NAMES = ["time", "row", "column"];

// ---- positions ----------------------------------------------------------------------------------

const IMAGE = { name: "image", frames: 1, rows: 4, columns: 6 };
const VIDEO = { name: "video", frames: 2, rows: 2, columns: 3 };
const FRAME = { name: "frame", frames: 1, rows: 2, columns: 3 };

/** The text as each plan's model reads it: words, marks, and what is seen. */
const TEXTS = {
  chunked: ["Look", "‹", IMAGE, "›", "now", "‹", VIDEO, "›", "same?"],
  "dealt out": ["Look", "‹", IMAGE, "›", "now", "0 s", "‹", FRAME, "›", "1 s", "‹", FRAME, "›", "same?"],
};

/**
 * The tokens of a list of words and grids, in order: { word, grid, at: [t, h, w] }, where one of word
 * and grid is null. A word stands at the same place on all axes; a grid begins where the next word
 * would stand, and the word after it stands beyond its longer side.
 */
export function positionIds(parts) {
  const tokens = [];
  let next = 0;
  parts.forEach((part, index) => {
    if (typeof part === "string") {
      tokens.push({ word: part, grid: null, at: [next, next, next] });
      next += 1;
      return;
    }
    const { frames, rows, columns } = part;
    for (let t = 0; t < frames; t++)
      for (let h = 0; h < rows; h++)
        for (let w = 0; w < columns; w++)
          tokens.push({ word: null, grid: { ...part, index }, at: [next + t, next + h, next + w] });
    next += Math.max(rows, columns);
  });
  return tokens;
}

/** The tokens of a plan's text. */
export const tokensOf = (plan) => positionIds(TEXTS[plan]);

// ---- pairs --------------------------------------------------------------------------------------

const SECTIONS = { chunked: [16, 24, 24], "dealt out": [24, 20, 20] };

/** The axis (0 t, 1 h, 2 w) that each pair belongs to: in one chunk an axis, or dealt out t, h, w, t, h, w, ... */
export function axisOfPairs(plan, sections = SECTIONS[plan]) {
  if (plan === "chunked") return sections.flatMap((many, axis) => Array(many).fill(axis));
  const pairs = sections.reduce((sum, many) => sum + many, 0);
  return Array.from({ length: pairs }, (_, i) => (i < 3 * sections[i % 3] ? i % 3 : 0));
}

/** By axis its pairs, fast to slow, and the shortest and longest of their wavelengths. */
export function pairsByAxis(plan) {
  const axes = axisOfPairs(plan);
  return AXES.map((_, axis) => {
    const pairs = [...axes.keys()].filter((i) => axes[i] === axis);
    return { pairs, shortest: WAVES[pairs[0]], longest: WAVES[pairs.at(-1)] };
  });
}

// ---- what is said -------------------------------------------------------------------------------

const long = (x) => num(x, x < 100 ? 1 : 0);
const HANDS = {
  chunked: (shortest) => `In chunks, columns get no hand faster than **${long(shortest)}** positions a turn.`,
  "dealt out": (shortest) => `Dealt out, columns get hands from **${long(shortest)}** positions a turn on.`,
};

/** Where the token stands, and what came before it. */
function place(token, { word, grid, at }, before) {
  if (grid) {
    const owner = grid.name === "frame" ? "a frame" : `the ${grid.name}`;
    return (
      `Token **${token}**, in ${owner}, stands at three positions: ` +
      `time **${at[0]}**, row **${at[1]}**, column **${at[2]}**.`
    );
  }
  const named = word === "‹" || word === "›" ? `the mark ${word}` : `“${word}”`;
  if (!before.length)
    return (
      `Before any image, position and token number agree: ${named} is token **${token}**, ` +
      `at position **${at[0]}**.`
    );
  const [{ name, rows, columns }] = before;
  const seen = before.length > 1 ? `an image and a ${before[1].name}` : `an ${name} of ${rows} × ${columns} tokens`;
  return `After ${seen} ${named} stands at position **${at[0]}**, though it is token **${token}**.`;
}

const NOTES = {
  chunked: "A video counts its frames along t.",
  "dealt out": "The time of a frame stands before it as text, here one token; t rests within it.",
};

/** What is said of a token of a plan: its number, itself, the grids before it, the pairs of each axis. */
export function words(plan, token, chosen, before, axes) {
  const ranges = axes.map(
    ({ pairs, shortest, longest }, axis) =>
      `${AXES[axis]}: **${pairs.length}** pairs, ${long(shortest)} to ${long(longest)}`,
  );
  return (
    `${place(token, chosen, before)} ${HANDS[plan](axes[2].shortest)}\n${ranges.join("; ")} positions a turn ` +
    `(128 channels, base 1,000,000). ${NOTES[plan]} ‹ and ›, the marks around an image, are tokens like words.`
  );
}

/** The different grids before a token: frames count as one, a video once none is to come. */
export function gridsBefore(tokens, token) {
  const names = new Map();
  const whole = !tokens.slice(token).some(({ grid }) => grid?.name === "frame");
  for (const { grid } of tokens.slice(0, token)) {
    const name = grid?.name === "frame" && whole ? "video" : grid?.name;
    if (grid && !names.has(name)) names.set(name, { ...grid, name });
  }
  return [...names.values()];
}

const LABEL =
  "The tokens of a text with an image and a video in it, columns across and rows down: words on the diagonal, " +
  "those of images in rectangles. Beside it three clocks, one an axis, with the hands of the pairs that listen to " +
  "it, and all their wavelengths";
const NOTICE =
  "After an image of several rows and columns the next position is smaller than the number of tokens: a cache that " +
  "counts tokens puts the next word elsewhere. A word stands at one place on all three clocks.";

// ---- the picture --------------------------------------------------------------------------------

const PLACES = 23; // positions along each side of the picture, under both plans
const LEFT = 22;
const TOP = 34;
const FAR = 16; // pixels from the chosen token where it can be taken
const FRAME_STEP = 0.45; // of a cell, from one frame of a video to the next
const abreast = (width) => width >= 560;

/** Where the text, the clocks and the wavelengths lie on a canvas of this width. */
function layout(width) {
  if (abreast(width)) {
    const cell = Math.floor(Math.min((width - LEFT) * 0.48, 340) / PLACES);
    const side = cell * PLACES;
    const row = side / 3;
    const x = LEFT + side + 62;
    const centers = [0, 1, 2].map((axis) => [x, TOP + (axis + 0.5) * row]);
    const strips = { x0: x + 104, x1: width - 22, ys: centers.map(([, y]) => y), y0: TOP, y1: TOP + side };
    return { cell, side, radius: 32, centers, strips, height: TOP + side + 40 };
  }
  const cell = Math.floor(Math.min((width - LEFT) * 0.56, 230) / PLACES);
  const side = cell * PLACES;
  const x = LEFT + side + 34;
  const centers = [0, 1, 2].map((axis) => [x, TOP + ((axis + 0.5) * side) / 3]);
  const top = TOP + side + 10;
  const strips = {
    x0: LEFT + 4,
    x1: width - 22,
    ys: [0, 1, 2].map((axis) => top + 9 + 18 * axis),
    y0: top,
    y1: top + 54,
  };
  return { cell, side, radius: 24, centers, strips, height: strips.y1 + 38 };
}

/** The middle of a token's cell: w across, h down, a video's later frames up and to the right. */
function middle({ at: [t, h, w], grid }, tokens, cell) {
  const first = grid && tokens.find((token) => token.grid?.index === grid.index).at[0];
  const step = grid ? FRAME_STEP * (t - first) : 0;
  return [LEFT + (w + 0.5 + step) * cell, TOP + (h + 0.5 - step) * cell];
}

export default figure((fig) => {
  const shown = () => {
    const tokens = tokensOf(fig.traits.plan);
    return { tokens, token: Math.min(fig.traits.token, tokens.length - 1) };
  };
  const nearest = (x, y) => {
    const { tokens } = shown();
    const { cell } = layout(plot.width);
    const away = tokens.map((one) => {
      const [cx, cy] = middle(one, tokens, cell);
      return Math.hypot(cx - x, cy - y);
    });
    const least = Math.min(...away);
    return { token: away.indexOf(least), least };
  };
  const plot = fig.canvas({
    label: LABEL,
    help: "Tap a token, drag the green one, or use the arrow keys.",
    height: (width) => layout(width).height,
    point({ x, y, type }) {
      const { token, least } = nearest(x, y);
      if (type === "pointerdown" && least < FAR) fig.set({ token });
    },
    drag({ x, y, begins }) {
      const { token, least } = nearest(x, y);
      if (begins) return least < FAR && token === shown().token;
      fig.set({ token });
      return true;
    },
    keys({ dx, dy }) {
      const { tokens, token } = shown();
      fig.set({ token: clamp(token + dx + dy, 0, tokens.length - 1) });
    },
  });

  fig.draw(() => {
    const { plan } = fig.traits;
    const { tokens, token } = shown();
    const axes = pairsByAxis(plan);
    plot.clear();
    drawText(plot, tokens, token);
    drawClocks(plot, tokens[token], axes);
    fig.say(words(plan, token, tokens[token], gridsBefore(tokens, token), axes));
    const { at, word } = tokens[token];
    fig.root.dataset.values = JSON.stringify({ plan, token, word, at, count: tokens.length });
  });

  fig.showMe(async () => {
    fig.set({ plan: "chunked", token: 0 });
    await fig.glide({ token: 27 }, 3600);
    await fig.pause(1800);
    await fig.glide({ token: 42 }, 2400);
    await fig.pause(1200);
    fig.set({ plan: "dealt out", token: 27 });
    await fig.pause(2400);
    fig.set({ plan: "chunked" });
  });
  fig.notice(NOTICE);
});

/** The tokens where they stand: w across, h down. */
function drawText(plot, tokens, token) {
  const { ctx, colors } = plot;
  const { cell, side } = layout(plot.width);
  const box = { x0: LEFT, x1: LEFT + side, y0: TOP, y1: TOP + side };
  const edge = (p) => (p + 0.5) * cell;
  text(plot, "column (w) →", LEFT, 8, { size: 12, color: colors.ink });
  text(plot, "row (h) ↓", LEFT + 90, 8, { size: 12, color: colors.ink });
  const chosen = tokens[token];
  for (const p of [0, 5, 10, 15, 20]) {
    const free = (axis) => Math.abs(chosen.at[axis] - p) * cell > 20;
    if (free(2)) text(plot, String(p), LEFT + edge(p), TOP - 9, { align: "center", size: 11.5 });
    if (free(1)) text(plot, String(p), LEFT - 5, TOP + edge(p), { align: "right", size: 11.5 });
  }
  ctx.strokeStyle = colors.rule;
  ctx.lineWidth = 1;
  ctx.strokeRect(box.x0, box.y0, side, side);
  line(ctx, box.x0, box.y0, box.x1, box.y1);

  // the chosen token's lines to both axes
  const [cx, cy] = middle(chosen, tokens, cell);
  const [atW, atH] = [LEFT + edge(chosen.at[2]), TOP + edge(chosen.at[1])];
  upright(plot, atW, { y0: TOP, y1: cy }, colors.accent, { width: 1.5, dash: [3, 3] });
  level(plot, atH, { x0: LEFT, x1: cx }, colors.accent, { width: 1.5, dash: [3, 3] });
  const bold = { color: colors.accent, bold: true, size: 12.5 };
  text(plot, String(chosen.at[2]), atW, TOP - 9, { ...bold, align: "center" });
  text(plot, String(chosen.at[1]), LEFT - 4, atH, { ...bold, align: "right" });

  // later frames first, or they hide the earlier ones
  const order = [...tokens.keys()].sort((a, b) => tokens[b].at[0] - tokens[a].at[0]);
  const inset = cell > 10 ? 1 : 0.5;
  const paint = (index) => {
    const one = tokens[index];
    const [x, y] = middle(one, tokens, cell);
    const is = index === token;
    ctx.fillStyle = colors.paper; // hides what lies behind
    ctx.fillRect(x - cell / 2 - inset, y - cell / 2 - inset, cell + 2 * inset, cell + 2 * inset);
    ctx.globalAlpha = is ? 1 : one.grid ? 0.35 : 0.6;
    ctx.fillStyle = is ? colors.accent : colors.muted;
    ctx.fillRect(x - cell / 2 + inset, y - cell / 2 + inset, cell - 2 * inset, cell - 2 * inset);
    ctx.globalAlpha = 1;
  };
  for (const index of order) paint(index);
  paint(token);

  drawCounts(plot, tokens, cell);
  tokens.forEach((one, index) => {
    const is = index === token;
    if (!one.word || (!is && !/[a-z]/.test(one.word))) return; // a mark alone needs no name
    const [x, y] = middle(one, tokens, cell);
    const right = one.at[2] < PLACES - 7 && !one.word.endsWith(" s");
    const place = right ? [x + 0.8 * cell, "left"] : [x - 0.8 * cell, "right"];
    const said = is ? `${one.word}  token ${index}` : one.word;
    const color = is ? colors.accent : colors.ink;
    text(plot, said, place[0], y, { align: place[1], color, bold: is, halo: true });
  });
}

/** Beside every grid how many tokens it is, and how many positions: where the diagonal leaves room. */
function drawCounts(plot, tokens, cell) {
  const firsts = new Map();
  for (const one of tokens) if (one.grid && !firsts.has(one.grid.index)) firsts.set(one.grid.index, one);
  for (const first of firsts.values()) {
    const { frames, rows, columns, name } = first.grid;
    const [x, y] = middle(first, tokens, cell);
    const right = name === "image";
    const at = right ? x + (columns - 0.5) * cell + 7 : x - cell / 2 - 6;
    const named = abreast(plot.width) ? `${name}: ` : "";
    const lines = [`${named}${frames * rows * columns} tokens,`, `${Math.max(rows, columns)} positions`];
    lines.forEach((said, i) => {
      const height = y + ((rows - 1) / 2) * cell + 14 * (i - 0.5) + (right ? 0 : 5);
      text(plot, said, at, height, { align: right ? "left" : "right", size: 11.5, halo: true });
    });
  }
}

/** A clock an axis, with the hands of its pairs at the token's position; and the wavelengths of the pairs. */
function drawClocks(plot, { at }, axes) {
  const { ctx, colors } = plot;
  const { radius, centers, strips } = layout(plot.width);
  const [x] = scale([1, 1e7], strips.x0, strips.x1, true);
  for (const value of [1, 100, 1e4, 1e6]) {
    upright(plot, x(value), strips, colors.rule, { width: 1 });
    text(plot, num(value, 0), x(value), strips.y1 + 11, { align: "center", size: 11.5 });
  }
  text(plot, "positions a turn", (strips.x0 + strips.x1) / 2, strips.y1 + 28, { align: "center" });
  const broad = abreast(plot.width);
  axes.forEach(({ pairs, shortest, longest }, axis) => {
    const [cx, cy] = centers[axis];
    ctx.strokeStyle = colors.rule;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.arc(cx, cy, radius, 0, TURN);
    ctx.stroke();
    ctx.strokeStyle = colors.ink;
    line(ctx, cx + radius - 4, cy, cx + radius + 3, cy);
    for (const i of [...pairs].reverse()) {
      const angle = at[axis] * THETA[i];
      const fastest = i === pairs[0];
      ctx.strokeStyle = pairColor(i, PAIRS);
      ctx.lineWidth = fastest ? 3 : 1.25;
      ctx.globalAlpha = fastest ? 1 : 0.55;
      line(ctx, cx, cy, cx + (radius - 3) * Math.cos(angle), cy - (radius - 3) * Math.sin(angle));
    }
    ctx.globalAlpha = 1;
    text(plot, NAMES[axis], cx + radius + 9, cy - 9, { color: colors.ink });
    text(plot, `${AXES[axis]} = ${at[axis]}`, cx + radius + 9, cy + 8, { size: 13, bold: true, color: colors.accent });
    const y = strips.ys[axis];
    level(plot, y, strips, colors.rule, { width: 1 });
    if (!broad) text(plot, AXES[axis], strips.x0 - 14, y, { color: colors.ink, bold: true });
    if (broad) text(plot, `${long(shortest)} to ${long(longest)}`, strips.x0 + 4, y - 24, { halo: true });
    const half = broad ? 11 : 6;
    const tick = { y0: y - half, y1: y + half };
    for (const i of pairs) upright(plot, x(WAVES[i]), tick, pairColor(i, PAIRS), { width: 2 });
  });
}
