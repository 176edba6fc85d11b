// A text with an image and a video in it: its tokens in a line, and under them where each stands in time, row and
// column; and which pairs belong to which axis.
import { curve, disc, line, text, wide } from "./kit/draw.js";
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

/** Where the token stands, and why; `next` is the word after its image, which is still to be placed. */
function place(token, { word, grid, at }, before, next) {
  if (grid) {
    const owner = grid.name === "frame" ? "a frame" : `the ${grid.name}`;
    const ask = next ? ` Where will “${next}” stand? Tap it.` : "";
    return `Token **${token}**, in ${owner}, stands at time **${at[0]}**, row **${at[1]}**, column **${at[2]}**.${ask}`;
  }
  const named = word === "‹" || word === "›" ? `The mark ${word}` : `“${word}”`;
  const stands = `${named}, token **${token}**, stands at position **${at[0]}**`;
  if (!before.length) return `${stands}: no image is before it.`;
  const taken = Math.max(before[0].rows, before[0].columns);
  return before.length > 1
    ? `${stands}: pictures take fewer positions than tokens.`
    : `${stands}: the image takes **${taken}** positions, its longer side.`;
}

const NOTES = {
  chunked: "A video counts its frames along t.",
  "dealt out": "The time of a frame stands before it as text, here one token; t rests within it.",
};

/** What is said of a token of a plan: its number, itself, the grids before it, the pairs of each axis, the word to come. */
export function words(plan, token, chosen, before, heard, next) {
  const ranges = heard.map(
    ({ pairs, shortest, longest }, axis) =>
      `${AXES[axis]}: **${pairs.length}** pairs, ${long(shortest)} to ${long(longest)}`,
  );
  return (
    `${place(token, chosen, before, next)}\n${HANDS[plan](heard[2].shortest)} ${ranges.join("; ")} positions a turn ` +
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

/** The number of the word that follows the image in which a token lies; null elsewhere. */
export function wordAfter(tokens, token) {
  if (tokens[token].grid?.name !== "image") return null;
  const found = tokens.findIndex(({ word }, i) => i > token && isText(word));
  return found < 0 ? null : found;
}

const isText = (word) => /[a-z]/.test(word ?? "");

const LABEL =
  "The tokens of a text with an image and a video in it, in a line; under them, as wide, a line of positions, with " +
  "every token up to the chosen one where it stands; and three clocks, time, row and column, with the hands of the " +
  "pairs that listen to each";
const NOTICE =
  "After an image of several rows and columns the next position is smaller than the number of tokens: a cache that " +
  "counts tokens puts the next word elsewhere. A word stands at one place on all three clocks.";

// ---- the picture --------------------------------------------------------------------------------

const TOKENS = 47; // of the longer text; both lines are as long
const ROWS = 4; // of the image
const HANDLE = 9; // radius
const REACH = 22; // pixels from its middle where it can be taken
const TAP = 14; // pixels from a cell where it can be tapped
const APART = 8; // pixels between a picture's name and the next word

/** Where the line of tokens, that of positions and the clocks lie on a canvas of this width. */
function layout(width) {
  const broad = wide(width);
  const [x0, x1] = broad ? [4, width - 150] : [2, width - 2];
  const step = (x1 - x0) / TOKENS;
  const [high, fall, radius] = broad ? [16, 92, 26] : [14, 76, 21];
  const top = broad ? 26 : 24; // of the tokens
  const below = top + high + fall; // of the positions
  const axis = below + Math.max(ROWS * step + 3, high) + 7;
  const centers = [0, 1, 2].map((at) =>
    broad ? [x1 + 52, 62 + at * 60] : [22 + (at * (width - 98)) / 2, axis + 70 + radius],
  );
  return {
    ...{ broad, x0, x1, step, high, top, below, axis, centers, radius },
    line: top + high / 2,
    height: broad ? Math.max(axis + 44, 216) : axis + 74 + 2 * radius,
    x: (place) => x0 + (place + 0.5) * step,
  };
}

export default figure((fig) => {
  const shown = () => {
    const tokens = tokensOf(fig.traits.plan);
    return { tokens, token: Math.min(fig.traits.token, tokens.length - 1) };
  };
  const under = (x) => {
    const { x0, step } = layout(plot.width);
    return clamp(Math.floor((x - x0) / step), 0, shown().tokens.length - 1);
  };
  /** The token under a place; a word's name belongs to it. */
  const tapped = (x, y) => {
    const at = layout(plot.width);
    if (y > at.top) return under(x);
    const names = shown().tokens.flatMap(({ word }, i) => (isText(word) ? [i] : []));
    return names.reduce((best, i) => (Math.abs(at.x(i) - x) < Math.abs(at.x(best) - x) ? i : best));
  };
  /** The token that stands nearest to a place among the positions, or would if tokens were counted; undefined far off. */
  const placed = (x, y) => {
    const at = layout(plot.width);
    const { tokens, token } = shown();
    const stand = tokens.slice(0, token + 1).map((_, i) => [i, cellOf(at, tokens, i)]);
    const next = wordAfter(tokens, token);
    if (next !== null) stand.push([next, countedAt(at, next)]);
    const away = ([, [left, top, width, height]]) =>
      Math.hypot(x - clamp(x, left, left + width), y - clamp(y, top, top + height));
    const nearest = stand.reduce((best, one) => (away(one) < away(best) ? one : best));
    return away(nearest) < TAP ? nearest[0] : undefined;
  };
  const plot = fig.canvas({
    label: LABEL,
    help: "Drag the green token, or tap another.",
    height: (width) => layout(width).height,
    point({ x, y, type }) {
      const at = layout(plot.width);
      const above = y < at.below - 8 && x > at.x0 && x < at.x1;
      const token = above ? tapped(x, y) : placed(x, y);
      const grip = Math.hypot(x - at.x(shown().token), y - at.line) < REACH;
      plot.canvas.style.cursor = grip ? "grab" : token === undefined ? "" : "pointer";
      if (type === "pointerdown" && token !== undefined) fig.set({ token });
    },
    sideways: true,
    drag({ x, y, begins }) {
      const at = layout(plot.width);
      if (begins) return Math.hypot(x - at.x(shown().token), y - at.line) < REACH;
      fig.set({ token: under(x) });
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
    const heard = pairsByAxis(plan);
    const next = wordAfter(tokens, token);
    plot.clear();
    const at = layout(plot.width);
    drawFall(plot, at, tokens, token);
    drawTokens(plot, at, tokens, token, next);
    drawPositions(plot, at, tokens, token);
    drawCounted(plot, at, tokens, token, next);
    drawClocks(plot, at, tokens[token], heard);
    fig.say(words(plan, token, tokens[token], gridsBefore(tokens, token), heard, next && tokens[next].word));
    const { at: position, word } = tokens[token];
    fig.root.dataset.values = JSON.stringify({ plan, token, word, at: position, count: tokens.length });
  });

  fig.showMe(async () => {
    fig.set({ plan: "chunked", token: 0 });
    await fig.glide({ token: 25 }, 3600);
    await fig.pause(1800);
    await fig.glide({ token: 27 }, 600);
    await fig.pause(2400);
    await fig.glide({ token: 42 }, 2400);
    await fig.pause(1800);
    fig.set({ plan: "dealt out", token: 27 });
    await fig.pause(2400);
    fig.set({ plan: "chunked" });
  });
  fig.notice(NOTICE);
});

/** Of a token that is part of a grid, the place in it: { frame, row, column, first }. */
function within(tokens, { grid, at }) {
  const first = tokens.findIndex((one) => one.grid?.index === grid.index);
  const [frame, row, column] = at.map((position, axis) => position - tokens[first].at[axis]);
  return { frame, row, column, first };
}

/** Where a token's cell lies among the positions: [left, top, width, height]. Frames hang one below the other. */
function cellOf({ step, x, below, high }, tokens, token) {
  const { grid, at } = tokens[token];
  if (!grid) return [x(at[0]) - step / 2, below, step, high];
  const { frame, row } = within(tokens, tokens[token]);
  return [x(at[2]) - step / 2, below + (frame * grid.rows + row) * step + 3 * frame, step, step];
}

/** Where a token would stand if tokens were counted. */
const countedAt = ({ step, x, below, high }, token) => [x(token) - step / 2, below, step, high];

/** From every placed token to its position: a line for a word, a funnel for a grid. */
function drawFall(plot, at, tokens, token) {
  const { ctx, colors } = plot;
  const [from, to] = [at.top + at.high, at.below];
  const grids = new Map();
  tokens.slice(0, token + 1).forEach(({ word, grid, at: [position, , column] }, i) => {
    if (!grid) {
      const alpha = i === token ? 0 : isText(word) ? 0.8 : 0.35;
      curve(plot, [at.x(i), at.x(position)], [from, to], colors.muted, { width: 1, alpha });
      return;
    }
    const seen = grids.get(grid.index) ?? { first: i, columns: [] };
    grids.set(grid.index, { ...seen, last: i, columns: [...seen.columns, column] });
  });
  for (const { first, last, columns } of grids.values()) {
    const half = at.step / 2;
    ctx.beginPath();
    ctx.moveTo(at.x(first) - half, from);
    ctx.lineTo(at.x(last) + half, from);
    ctx.lineTo(at.x(Math.max(...columns)) + half, to);
    ctx.lineTo(at.x(Math.min(...columns)) - half, to);
    ctx.closePath();
    ctx.globalAlpha = 0.14;
    ctx.fillStyle = colors.muted;
    ctx.fill();
    ctx.globalAlpha = 1;
  }
}

/** How dark a token's cell is: rows of a grid alternate, above and below. */
function shade(tokens, one) {
  if (!one.grid) return isText(one.word) ? 0.9 : 0.6;
  return within(tokens, one).row % 2 ? 0.3 : 0.5;
}

function paint({ ctx, colors }, [left, top, width, height], chosen, alpha) {
  ctx.globalAlpha = chosen ? 1 : alpha;
  ctx.fillStyle = chosen ? colors.accent : colors.muted;
  ctx.fillRect(left + 0.5, top + 0.5, width - 1, height - 1);
  ctx.globalAlpha = 1;
}

/** The names over the tokens, left to right: { said, color, size, bold, framed, left, right }. */
function namesOf({ ctx, colors }, { broad, x, step }, tokens, token, next) {
  const small = broad ? 12.5 : 12;
  const measured = (name, at, align) => {
    ctx.font = `${name.bold ? "600 " : ""}${name.size}px ${colors.font}`;
    const long = ctx.measureText(name.said).width;
    const left = at - { left: 0, center: long / 2, right: long }[align];
    return { ...name, left, right: left + long };
  };
  return tokens.flatMap((one, i) => {
    const { word, grid } = one;
    if (grid && within(tokens, one).first === i && (broad || grid.name !== "frame")) {
      const many = grid.frames * grid.rows * grid.columns;
      const counted = grid.name === "image" || (broad && grid.name === "video");
      const said = counted ? `${grid.name}, ${many} tokens` : grid.name;
      return measured({ said, color: colors.muted, size: small }, x(i + 0.45 * many - 0.5), "center");
    }
    if (!isText(word)) return [];
    const seconds = /^\d/.test(word);
    const align =
      i === 0 || isText(tokens[i - 1].word) ? "left" : isText(tokens[i + 1]?.word ?? "a") ? "right" : "center";
    const side = { left: -step / 2 + (seconds ? 2 : 0), center: 0, right: step / 2 }[align];
    const size = seconds ? { size: small } : { size: 14, bold: true };
    const color = i === next || i === token ? colors.accent : seconds ? colors.muted : colors.ink;
    return measured({ said: word, word, color, framed: i === next, ...size }, x(i) + side, align);
  });
}

/** Whether a name has room: a picture's stays away from the words beside it, and what is no word from the frame. */
function hasRoom(name, names) {
  if (name.bold) return true;
  return names.every(({ bold, framed, left, right }) => {
    const apart = framed ? APART : name.word ? 0 : APART;
    return !bold || name.right + apart < left || right + apart < name.left;
  });
}

/** The tokens in a line, with names above; that of the next word is framed, to be tapped. */
function drawTokens(plot, at, tokens, token, next) {
  const { x, step, top, high, line: middle } = at;
  const { ctx, colors } = plot;
  tokens.forEach((one, i) => {
    paint(plot, [x(i) - step / 2, top, step, high], i === token, shade(tokens, one));
  });
  const names = namesOf(plot, at, tokens, token, next);
  for (const { said, left, right, framed, ...style } of names.filter((name) => hasRoom(name, names))) {
    text(plot, said, left, top - 12, style);
    if (!framed) continue;
    ctx.strokeStyle = colors.accent;
    ctx.lineWidth = 1.5;
    ctx.strokeRect(left - 6, top - 22, right - left + 12, 19);
  }
  disc(plot, x(token), middle, HANDLE, colors.accent);
}

/** The line of positions, up to the chosen token, which is named there. */
function drawPositions(plot, at, tokens, token) {
  const { ctx, colors } = plot;
  const { x, x0, x1, axis, below, broad } = at;
  ctx.strokeStyle = colors.rule;
  ctx.lineWidth = 1;
  line(ctx, x0, axis + 0.5, x1, axis + 0.5);
  for (const position of [0, 10, 20, 30, 40]) {
    line(ctx, x(position), axis, x(position), axis + 4);
    text(plot, String(position), x(position), axis + 13, { align: "center", size: 11.5 });
  }
  text(plot, "position", x1, axis + 31, { align: "right" });
  tokens.slice(0, token + 1).forEach((one, i) => {
    paint(plot, cellOf(at, tokens, i), i === token, shade(tokens, one));
  });
  const [left, top, width, height] = cellOf(at, tokens, token);
  const [cx, cy] = [left + width / 2, top + height / 2];
  const from = at.top + at.high / 2 + HANDLE;
  curve(plot, [x(token), cx], [from, tokens[token].grid ? cy : below], colors.accent, { width: 2 });
  const { grid, at: stands } = tokens[token];
  if (!grid && token > 1) {
    // right of the line to its position, below the disc where there is no room beside it
    const label = { color: colors.accent, size: 13, bold: true, halo: true };
    if (besideDisc(at, token)) text(plot, `token ${token}`, x(token) + 14, from + 5, label);
    else text(plot, `token ${token}`, x1, from + 18, { ...label, align: "right" });
  }
  const name = { color: colors.accent, size: broad ? 16 : 15, bold: true, halo: true };
  const said = grid ? `column ${stands[2]}` : `position ${stands[0]}`;
  const align = cx < 44 ? "left" : "center";
  text(plot, said, align === "left" ? x0 : cx, axis + 31, { ...name, align });
  if (!grid) return;
  const { row, column, first } = within(tokens, tokens[token]);
  const beside = x(stands[2] - column + grid.columns) + 3;
  text(plot, `row ${stands[1]}`, beside, cy, name);
  const [, upper] = cellOf(at, tokens, first);
  if (broad && row * at.step > 18) text(plot, `row ${tokens[first].at[1]}`, beside, upper + at.step / 2);
}

/** Whether there is room for a token's number right of its disc. */
const besideDisc = ({ broad, x, x1 }, token) => x(token) + 80 < x1 + (broad ? 24 : 0);

/** Straight under a word, where it would stand if tokens were counted; under the next one, with a question mark. */
function drawCounted(plot, at, tokens, token, next) {
  const { ctx, colors } = plot;
  const asked = next ?? token;
  if (next === null && (tokens[token].grid || tokens[token].at[0] === token)) return;
  const color = next === null ? colors.muted : colors.accent;
  const cx = at.x(asked);
  const begins = at.top + at.high + (next !== null ? 1 : besideDisc(at, token) ? 14 : 30);
  curve(plot, [cx, cx], [begins, at.below], color, { width: 1.5, dash: [4, 4] });
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.5;
  ctx.setLineDash([3, 2]);
  ctx.strokeRect(...countedAt(at, asked));
  ctx.setLineDash([]);
  const right = cx < plot.width * 0.62;
  const beside = { align: right ? "left" : "right", color, size: 13 };
  const x = cx + (right ? 1 : -1) * (at.step / 2 + 6);
  if (next === null)
    text(plot, at.broad ? `${asked} if tokens were counted` : `${asked} if counted`, x, at.below + at.high / 2, beside);
  else text(plot, `at ${asked}?`, x, at.below + at.high / 2, { ...beside, bold: true, size: 15 });
}

/** A clock an axis, with the hands of its pairs at the token's position. */
function drawClocks(plot, { broad, centers, radius }, { at }, heard) {
  const { ctx, colors } = plot;
  const said = broad ? ["one hand a pair,", "rose fast, violet slow"] : ["one hand a pair, rose fast, violet slow"];
  const [left, top] = [centers[0][0] - radius, centers[0][1] - radius];
  said.forEach((part, i) => text(plot, part, left, top - 11 - 14 * (said.length - 1 - i), { size: 12 }));
  heard.forEach(({ pairs }, axis) => {
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
    text(plot, NAMES[axis], cx + radius + 9, cy - 17, { size: 12.5 });
    text(plot, String(at[axis]), cx + radius + 9, cy, { size: 16, bold: true, color: colors.ink });
    text(plot, `${pairs.length} pairs`, cx + radius + 9, cy + 17, { size: 12 });
  });
}
