// A text with an image and a video in it: where each token stands in time, row and column, and which pairs belong to which axis.
import { axes, disc, level, line, text, upright, wide } from "./kit/draw.js";
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
    return `Token **${token}**, in ${owner}, stands at time **${at[0]}**, row **${at[1]}**, column **${at[2]}**.`;
  }
  const named = word === "‹" || word === "›" ? `the mark ${word}` : `“${word}”`;
  if (!before.length) return `Before any image, ${named} is token **${token}**, at position **${at[0]}**.`;
  const [{ name, rows, columns }] = before;
  const seen = before.length > 1 ? `an image and a ${before[1].name}` : `an ${name} of ${rows} × ${columns} tokens`;
  return `After ${seen} ${named} stands at position **${at[0]}**, though it is token **${token}**.`;
}

const NOTES = {
  chunked: "A video counts its frames along t.",
  "dealt out": "The time of a frame stands before it as text, here one token; t rests within it.",
};

/** What is said of a token of a plan: its number, itself, the grids before it, the pairs of each axis. */
export function words(plan, token, chosen, before, heard) {
  const ranges = heard.map(
    ({ pairs, shortest, longest }, axis) =>
      `${AXES[axis]}: **${pairs.length}** pairs, ${long(shortest)} to ${long(longest)}`,
  );
  return (
    `${place(token, chosen, before)}\n${HANDS[plan](heard[2].shortest)} ${ranges.join("; ")} positions a turn ` +
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
  "The tokens of a text with an image and a video in it, in a line; under them the position of each in time, row and " +
  "column, up to the one that is chosen; beside that three clocks, one an axis, with the hands of the pairs that " +
  "listen to it";
const NOTICE =
  "After an image of several rows and columns the next position is smaller than the number of tokens: a cache that " +
  "counts tokens puts the next word elsewhere. A word stands at one place on all three clocks.";

// ---- the picture --------------------------------------------------------------------------------

const TOKENS = 47; // of the longer text
const PLACES = 23; // positions, under both plans
const HANDLE = 9; // radius
const REACH = 22; // pixels from its middle where it can be taken
const HUES = [0, PAIRS / 2, PAIRS - 1].map((pair) => pairColor(pair, PAIRS)); // of time, row and column

/** Where line of tokens, chart and clocks lie on a canvas of this width. */
function layout(width) {
  const broad = wide(width);
  const chart = broad ? { x0: 40, x1: width - 176, y0: 94, y1: 290 } : { x0: 30, x1: width - 6, y0: 80, y1: 240 };
  const step = (chart.x1 - chart.x0) / TOKENS;
  const rise = (chart.y1 - chart.y0) / PLACES;
  const centers = [0, 1, 2].map((axis) =>
    broad ? [chart.x1 + 62, chart.y0 + (axis + 0.5) * 66] : [30 + (axis * (width + 6)) / 3, chart.y1 + 70],
  );
  return {
    ...{ broad, chart, step, centers, line: chart.y0 - 24, patch: broad ? 13 : 9, radius: broad ? 28 : 24 },
    height: broad ? chart.y1 + 40 : chart.y1 + 100,
    x: (token) => chart.x0 + (token + 0.5) * step,
    y: (position) => chart.y1 - (position + 0.5) * rise,
  };
}

export default figure((fig) => {
  const shown = () => {
    const tokens = tokensOf(fig.traits.plan);
    return { tokens, token: Math.min(fig.traits.token, tokens.length - 1) };
  };
  const under = (x) => {
    const { chart, step } = layout(plot.width);
    return clamp(Math.floor((x - chart.x0) / step), 0, shown().tokens.length - 1);
  };
  const plot = fig.canvas({
    label: LABEL,
    help: "Drag the green token, tap another, or use the arrow keys.",
    height: (width) => layout(width).height,
    point({ x, y, type }) {
      const { chart } = layout(plot.width);
      if (type === "pointerdown" && y < chart.y1 && x > chart.x0 && x < chart.x1) fig.set({ token: under(x) });
    },
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
    plot.clear();
    const at = layout(plot.width);
    drawLine(plot, at, tokens, token);
    drawPositions(plot, at, tokens, token);
    drawClocks(plot, at, tokens[token], heard);
    fig.say(words(plan, token, tokens[token], gridsBefore(tokens, token), heard));
    const { at: position, word } = tokens[token];
    fig.root.dataset.values = JSON.stringify({ plan, token, word, at: position, count: tokens.length });
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

/** The tokens in a line, words named above it, and every grid as it is seen. */
function drawLine(plot, { broad, line: y, x, step, patch }, tokens, token) {
  const { ctx, colors } = plot;
  const high = broad ? 14 : 12;
  const paint = (left, top, width, height, is, alpha) => {
    ctx.globalAlpha = is ? 1 : alpha;
    ctx.fillStyle = is ? colors.accent : colors.muted;
    ctx.fillRect(left, top, width, height);
    ctx.globalAlpha = 1;
  };
  tokens.forEach(({ word, grid, at }, i) => {
    const first = grid && tokens.findIndex((one) => one.grid?.index === grid.index);
    const row = grid && at[1] - tokens[first].at[1];
    paint(x(i) - step / 2 + 0.5, y - high / 2, step - 1, high, i === token, grid ? (row % 2 ? 0.3 : 0.5) : 0.85);
    if (/[a-z]/.test(word ?? "")) {
      const align = i === tokens.length - 1 ? "right" : i ? "center" : "left";
      const side = { left: -step / 2, center: 0, right: step / 2 }[align];
      const above = broad || align === "left" ? 16 : align === "right" ? -17 : 30; // clear of a video on a phone
      text(plot, word, x(i) + side, y - above, { align, color: i === token ? colors.accent : colors.ink, bold: true });
    }
    if (!grid) return;
    const frame = at[0] - tokens[first].at[0];
    const many = grid.frames * grid.rows * grid.columns;
    const wide_ = grid.frames * (grid.columns * patch + 4) - 4;
    const left = x(first + (many - 1) / 2) - wide_ / 2 + frame * (grid.columns * patch + 4);
    const top = y - 14 - grid.rows * patch;
    const column = at[2] - tokens[first].at[2];
    paint(left + column * patch, top + row * patch, patch - 1, patch - 1, i === token, 0.35);
  });
  disc(plot, x(token), y, HANDLE, colors.accent);
}

/** The positions of the tokens up to the chosen one, in time, row and column, over their numbers. */
function drawPositions(plot, { chart, line: top, x, y }, tokens, token) {
  const { ctx, colors, width, height } = plot;
  axes(plot, {
    x: [-0.5, TOKENS - 0.5],
    y: [-0.5, PLACES - 0.5],
    box: { left: chart.x0, right: width - chart.x1, top: chart.y0, bottom: height - chart.y1 },
    xTicks: [0, 10, 20, 30, 40],
    yTicks: [0, 5, 10, 15, 20],
    xLabel: "token number",
  });
  text(plot, "position", chart.x0 - 30, chart.y0 - 4, { size: 12 });
  ctx.strokeStyle = colors.muted;
  ctx.setLineDash([4, 4]);
  line(ctx, x(0), y(0), x(PLACES - 1), y(PLACES - 1));
  ctx.setLineDash([]);
  text(plot, "as in a text of words", x(PLACES - 1) + 6, y(PLACES - 1) + 2, { size: 12 });
  tokens.slice(0, token + 1).forEach(({ grid, at }, i) => {
    at.forEach((position, axis) => {
      if (grid) disc(plot, x(i), y(position), 2.5, HUES[axis]);
      else if (!axis) disc(plot, x(i), y(position), 3.5, colors.ink);
    });
  });
  const { grid, at } = tokens[token];
  upright(plot, x(token), { y0: top, y1: y(Math.min(...at)) }, colors.accent, { width: 1.5, dash: [3, 3] });
  const right = x(token) < plot.width / 2;
  const align = right ? "left" : "right";
  const beside = x(token) + (right ? 9 : -9);
  if (!grid) {
    level(plot, y(at[0]), { x0: chart.x0, x1: x(token) }, colors.accent, { width: 1.5, dash: [3, 3] });
    disc(plot, x(token), y(at[0]), 5, colors.accent);
    const said = `token ${token}, position ${at[0]}`;
    text(plot, said, beside, y(at[0]) - 12, { align, size: 15, bold: true, color: colors.accent, halo: true });
    return;
  }
  // the three names one below the other, however near their positions are
  const order = [0, 1, 2].sort((a, b) => at[b] - at[a] || b - a);
  const middle = y(at.reduce((sum, position) => sum + position, 0) / 3);
  order.forEach((axis, place) => {
    disc(plot, x(token), y(at[axis]), 4, HUES[axis]);
    const said = `${NAMES[axis]} ${at[axis]}`;
    const height_ = Math.min(middle, chart.y1 - 20) + 15 * (place - 1);
    text(plot, said, beside, height_, { align, size: 13, bold: true, color: HUES[axis], halo: true });
  });
}

/** A clock an axis, with the hands of its pairs at the token's position. */
function drawClocks(plot, { centers, radius }, { at }, heard) {
  const { ctx, colors } = plot;
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
    text(plot, NAMES[axis], cx + radius + 8, cy - 9, { color: HUES[axis], bold: true });
    text(plot, `${AXES[axis]} = ${at[axis]}`, cx + radius + 8, cy + 8, { size: 13, bold: true, color: colors.accent });
  });
}
