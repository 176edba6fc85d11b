// Computed minus true over positions x pairs, and the worst of all pairs over the positions.
import { distinctPositions, roundingError, roundTo, unitRoundoff } from "./aliasing.js";
import { axes, cellAt, colorBar, crosshair, curve, disc, paintCells, pairAxis, text, upright } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, decades, num, superscript } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { inverseFrequencies, shortWay } from "./rope.js";

const DIM = 128;
const PAIRS = DIM / 2;
const COLUMNS = 240; // as in precision_microscope.py
const TYPE = { fp32: "float32", fp16: "float16", bf16: "bfloat16" };
const POWER = { fp32: 24, fp16: 11, bf16: 8 };
const MOST = { angle: Math.PI, cosine: 2 }; // no angle and no cosine can be off by more
const MOST_TEXT = { angle: "π", cosine: "2" };
const OVERFLOW = 65520; // from here on fp16 has no number
const FLOOR = -10; // log10 of the smallest error that has a colour of its own
const CEILING = Math.log10(Math.PI);
const HURTS = 0.01;

/** The positions of the columns: from 1 to just below `count`, by equal factors, all odd. */
export function columnPositions(count) {
  return Array.from({ length: COLUMNS }, (_, k) =>
    Math.min(2 * Math.floor((count - 1) ** (k / (COLUMNS - 1)) / 2) + 1, count - 1),
  );
}

/** Which error is shown: a rounded table has exact angles, so there it is the cosine's. */
export function shownError(stage, show) {
  return stage === "table" ? "cosine" : show;
}

/** |computed - true|, of an angle the short way round; infinite where no number is left. */
export function cellError(position, theta, dtype, stage, show) {
  const error = roundingError(position, theta, TYPE[dtype], stage, show);
  return Math.abs(show === "angle" && Number.isFinite(error) ? shortWay(error) : error);
}

/** The errors of all cells, [column * 64 + pair], and the worst: { errors, worst, positions }. */
export function errorMap(dtype, stage, show, count) {
  const theta = inverseFrequencies(DIM, 10000);
  const positions = columnPositions(count);
  const shown = shownError(stage, show);
  const errors = new Float64Array(COLUMNS * PAIRS);
  let worst = { error: -1 };
  positions.forEach((position, column) => {
    for (let pair = 0; pair < PAIRS; pair++) {
      const error = cellError(position, theta[pair], dtype, stage, shown);
      errors[column * PAIRS + pair] = error;
      if (error > worst.error) worst = { error, position, pair, column };
    }
  });
  return { errors, worst, positions };
}

const ANGLE_STAGES = ["positions", "inverse frequencies", "product"];
const rounds = (stage, name) => stage === name || stage === "everything";

/** How many roundings an angle has been through at this position: whole numbers are exact at first. */
function roundings(position, dtype, stage) {
  const exact = position <= 2 ** POWER[dtype];
  return ANGLE_STAGES.filter((name) => rounds(stage, name) && !(name === "positions" && exact)).length;
}

/**
 * The law: no pair's error is larger at this position. Each rounding before the cosine moves an angle
 * by at most 2^-24 of itself (in fp32), the table's own moves a cosine by half of that, and a cosine
 * moves no further than its angle. Infinite where the fastest pair has no number.
 */
function law(position, dtype, stage, show) {
  const lost = dtype === "fp16" && position >= OVERFLOW && (rounds(stage, "positions") || rounds(stage, "product"));
  if (lost) return Infinity;
  const u = unitRoundoff(TYPE[dtype]);
  const shown = shownError(stage, show);
  const table = shown === "cosine" && rounds(stage, "table") ? u / 2 : 0;
  return Math.min(roundings(position, dtype, stage) * position * u + table, MOST[shown]);
}

/** The law at each position. */
export const laws = (positions, dtype, stage, show) => positions.map((p) => law(p, dtype, stage, show));

/** The position from which on some pair is off by more than a hundredth, of those shown; or null. */
export function hurtsFrom({ errors, positions }) {
  const column = positions.findIndex((_, c) => errors.subarray(c * PAIRS, (c + 1) * PAIRS).some((e) => e > HURTS));
  return column < 0 ? null : positions[column];
}

/** Where an error lies on the colour scale, 0..1. */
export function errorScale(error) {
  if (!(error > 0)) return 0;
  return clamp((Math.log10(error) - FLOOR) / (CEILING - FLOOR), 0, 1);
}

function amount(error, show) {
  const unit = show === "angle" ? " rad" : "";
  return `${error === 0 ? "0" : num(error, error >= 1 ? 2 : error >= 0.001 ? 4 : 9)}${unit}`;
}

/** 2 to the minus bits of the type, and minus `more`, in print. */
const powerText = (dtype, more) => `2${superscript(-POWER[dtype] - more)}`;

/** The law at a position, in words. */
function lawText(position, { dtype, stage, show }) {
  const shown = shownError(stage, show);
  const allowed = law(position, dtype, stage, show);
  if (allowed === 0) return "Nothing is rounded so far.";
  if (!Number.isFinite(allowed)) {
    return rounds(stage, "positions") ? "No pair has a number here." : "The fastest pair has no number here.";
  }
  if (allowed === MOST[shown]) return `The law excludes no error here, up to ${MOST_TEXT[shown]}.`;
  const power = (more) => powerText(dtype, more);
  const times = roundings(position, dtype, stage);
  const angle = times && `${times > 1 ? `${times} × ` : ""}position × ${power(0)}`;
  const table = shown === "cosine" && rounds(stage, "table") && power(1);
  return `No pair is off by more than ${[angle, table].filter(Boolean).join(" + ")} = ${amount(allowed, shown)} here.`;
}

/** The answer: from where on it hurts, and how much. */
export function answer({ dtype, stage, show }, count, worst, from) {
  const shown = shownError(stage, show);
  const end = num(2 ** POWER[dtype], 0);
  const lost = !Number.isFinite(worst.error);
  const off = `**${amount(worst.error, shown)}**`;
  const most = worst.error > HURTS ? ` of at most ${MOST_TEXT[shown]}` : "";
  if (stage === "table")
    return `A rounded table is off by as little at far positions as at near ones: **${powerText(dtype, 1)}** at most.`;
  if (stage === "positions") {
    if (worst.error === 0) return `${dtype} counts to **${end}**, so all ${num(count, 0)} positions are exact.`;
    const then = lost
      ? `from ${num(OVERFLOW, 0)} on it has **no number at all**`
      : `the worst ${shown} shown is off by ${off}${most}`;
    return `${dtype} counts to **${end}** without a gap; ${then}.`;
  }
  if (from === null)
    return `The error grows with the position, and stays small here: the worst ${shown} shown is off by ${off}.`;
  const then = lost
    ? `from ${num(OVERFLOW, 0)} on fp16 has **no number** ${stage === "everything" ? "at all" : "for the fastest pair"}`
    : `the worst ${shown} shown is off by ${off}${most}`;
  return `The error grows with the position and passes 0.01 no later than at **${num(from, 0)}**; ${then}.`;
}

/** The caption: the answer, then the selected cell, the law there, and how the type counts. */
export function words(setting, count, { position, pair, error }, { worst, from, distinct }) {
  const { dtype, stage, show } = setting;
  const shown = shownError(stage, show);
  const exact =
    stage === "table" && show === "angle" ? "A rounded table has exact angles, so this is the cosine. " : "";
  const counts = rounds(stage, "positions");
  const held = roundTo(position, TYPE[dtype]);
  const instead = Number.isFinite(held) ? num(held, 0) : "infinity";
  const holds = counts && held !== position ? ` (${dtype} holds ${instead})` : "";
  const ends = !Number.isFinite(roundTo(count - 1, TYPE[dtype])); // one of the values is infinity
  const values = `**${num(distinct - ends, 0)}** different values in ${dtype}${ends ? ", and infinity" : ""}`;
  const different = counts ? ` ${num(count, 0)} positions have ${values}.` : "";
  const off = Number.isFinite(error) ? `off by **${amount(error, shown)}**` : "**no number** is left";
  return (
    `${answer(setting, count, worst, from)}\n${exact}` +
    `Position **${num(position, 0)}**${holds}, pair **${pair}**: ${off}. ` +
    `${lawText(position, setting)}${different}`
  );
}

const LABEL =
  "Heatmap of the rounding error over positions (across, by equal factors) and pairs (down, fastest first), and " +
  "below it the worst error of all pairs over the positions with the line that it cannot pass. The arrow keys move " +
  "the cell that is read";
const NOTICE = "Round late: what is rounded before the cosine is off in proportion to the position, a table is not.";

const LEFT = 52; // margins, in pixels
const RIGHT = 14;
const TOP = 46;
const narrow = (width) => width < 480;
const mapHeight = (width) => (narrow(width) ? 116 : 230);
const chartHeight = (width) => (narrow(width) ? 84 : 130);
const FURTHEST = 10; // of the lower picture's axis, which is the same for all settings
const LEAST = 1e-9;

export default figure((fig) => {
  let map = null; // where the heatmap lies, in CSS pixels
  let known = {}; // the errors computed last

  const plot = fig.canvas({
    label: LABEL,
    height: (width) => TOP + mapHeight(width) + 36 + chartHeight(width) + 40,
    point({ x, y, type }) {
      if (!map || (type === "pointermove" && (y > map.y1 + 8 || y < map.y0 - 8))) return;
      const { column, row } = cellAt(x, y, map, COLUMNS, PAIRS);
      fig.set(y <= map.y1 ? { column, pair: row } : { column });
    },
    keys({ dx, dy }) {
      const { column, pair } = fig.traits;
      fig.set({ column: clamp(column + dx, 0, COLUMNS - 1), pair: clamp(pair + dy, 0, PAIRS - 1) });
    },
  });

  fig.draw(() => {
    const { dtype, stage, show, last, column, pair } = fig.traits;
    const count = Number(last.replaceAll(",", ""));
    const key = [dtype, stage, show, count].join();
    if (known.key !== key) {
      const found = errorMap(dtype, stage, show, count);
      known = { key, ...found, from: hurtsFrom(found), distinct: distinctPositions(count, TYPE[dtype]) };
    }
    const { errors, worst, positions, distinct } = known;
    const cell = { position: positions[column], pair, error: errors[column * PAIRS + pair] };
    const { width } = plot.clear();
    map = { x0: LEFT, y0: TOP, x1: width - RIGHT, y1: TOP + mapHeight(width) };

    drawKey(plot, map, shownError(stage, show));
    paintCells(plot, map, COLUMNS, PAIRS, "angle", (c, i) => Math.round(errorScale(errors[c * PAIRS + i]) * 255));
    drawBare(plot, map, errors);
    const yOf = pairAxis(plot, map, PAIRS, [0, 20, 40, 63]);
    const xOf = (c) => map.x0 + ((c + 0.5) * (map.x1 - map.x0)) / COLUMNS;
    if (rounds(stage, "positions")) drawLimit(plot, map, dtype, count, xOf);
    crosshair(plot, map, xOf(column), yOf(pair), pairColor(pair, PAIRS));
    drawWorst(plot, map.y1, { dtype, stage, show, count, errors, positions }, cell);

    fig.say(words({ dtype, stage, show }, count, cell, known));
    const plain = (x) => (Number.isFinite(x) ? x : "infinite");
    const shown = { dtype, stage, show, last: count, ...cell, error: plain(cell.error), distinct };
    fig.root.dataset.values = JSON.stringify({ ...shown, worst: { ...worst, error: plain(worst.error) } });
  });

  fig.showMe(async () => {
    const steps = [
      ["fp32", "everything", 1800],
      ["bf16", "table", 2200],
      ["bf16", "inverse frequencies", 2200],
      ["bf16", "positions", 2600],
    ];
    for (const [dtype, stage, ms] of steps) {
      fig.set({ dtype, stage, show: "cosine" });
      await fig.pause(ms);
    }
  });
  fig.notice(NOTICE);
});

const POWERS = { "-9": "10⁻⁹", "-6": "10⁻⁶", "-3": "10⁻³", 0: "1" };

function drawKey(plot, map, shown) {
  const { width, colors } = plot;
  const unit = shown === "angle" && !narrow(width) ? " (rad)" : "";
  text(plot, `error of the ${shown}${unit}`, map.x0, 12, { color: colors.ink, size: 12.5 });
  const long = Math.min(260, map.x1 - map.x0 - (narrow(width) ? 122 : 150));
  const marks = [-9, -6, -3, 0].map((p) => [errorScale(10 ** p), POWERS[p]]);
  colorBar(plot, map.x1 - long, 8, long, "angle", marks);
}

/** Columns without any error stay bare, and cells that hold no number are red. */
function drawBare(plot, map, errors) {
  const { ctx, colors } = plot;
  const wide = (map.x1 - map.x0) / COLUMNS;
  const tall = (map.y1 - map.y0) / PAIRS;
  let [exact, lost] = [0, 0];
  for (let c = 0; c < COLUMNS; c++) {
    const column = errors.subarray(c * PAIRS, (c + 1) * PAIRS);
    const infinite = column.filter((error) => !Number.isFinite(error)).length; // the fastest pairs
    const bare = column.every((error) => error === 0);
    ctx.fillStyle = bare ? colors.paper : colors.warm;
    const rows = bare ? PAIRS : infinite;
    const [from, to] = [c, c + 1].map((edge) => Math.round(map.x0 + edge * wide)); // whole pixels leave no seam
    if (rows) ctx.fillRect(from, map.y0, to - from, rows * tall);
    exact += bare;
    lost += infinite > 0;
  }
  ctx.strokeStyle = colors.rule;
  ctx.lineWidth = 1;
  ctx.strokeRect(map.x0 + 0.5, map.y0 + 0.5, map.x1 - map.x0 - 1, map.y1 - map.y0 - 1);
  const note = (words, x, y, color) => text(plot, words, x, y, { align: "center", size: 13, color });
  if (exact * wide > 60) note("exact", map.x0 + (exact * wide) / 2, (map.y0 + map.y1) / 2, colors.muted);
  if (lost * wide > 30) note("lost", map.x1 - (lost * wide) / 2, map.y0 + 12, colors.paper);
}

/** A line where the whole numbers end that the type can hold. */
function drawLimit(plot, map, dtype, count, xOf) {
  const limit = 2 ** POWER[dtype];
  if (limit >= count) return;
  const x = xOf(((COLUMNS - 1) * Math.log(limit)) / Math.log(count - 1));
  upright(plot, x, map, "rgba(0,0,0,0.55)", { width: 3.2, dash: [6, 4] });
  upright(plot, x, map, "#ffffff", { width: 1.5, dash: [6, 4] });
  const middle = clamp(x, map.x0 + 84, map.x1 - 88);
  const options = { align: "center", size: 11.5, color: plot.colors.ink };
  text(plot, `whole numbers end at ${num(limit, 0)}`, middle, map.y0 - 8, options);
}

/** The worst of all pairs over the positions, the selected pair, and the law. */
function drawWorst(plot, bottom, { dtype, stage, show, count, errors, positions }, { position, pair, error }) {
  const { ctx, colors } = plot;
  const small = narrow(plot.width);
  const color = pairColor(pair, PAIRS);
  const shown = shownError(stage, show);
  const at = axes(plot, {
    x: [positions[0], count - 1],
    xLog: true,
    xTicks: decades(1, count - 1),
    ...(small && { xFormat: (v) => (v === 1 ? "1" : `10${superscript(Math.round(Math.log10(v)))}`) }),
    xLabel: "position",
    y: [LEAST, FURTHEST],
    yLog: true,
    yTicks: [-9, -6, -3, 0].map((p) => 10 ** p),
    yFormat: (v) => POWERS[Math.round(Math.log10(v))],
    box: { left: LEFT, right: RIGHT, top: bottom + 36, bottom: 40 },
  });
  const { x0, y0, x1, y1 } = at.box;
  const kept = (value) => at.y(clamp(value, LEAST, FURTHEST));
  const xs = positions.map(at.x);
  const column = (c) => errors.subarray(c * PAIRS, (c + 1) * PAIRS);
  const worst = positions.map((_, c) => Math.max(...column(c)));
  const own = positions.map((_, c) => kept(column(c)[pair]));
  const most = laws(positions, dtype, stage, show);
  const begins = most.findIndex((value) => value > 0);
  ctx.save();
  ctx.beginPath();
  ctx.rect(x0, y0 - 2, x1 - x0, y1 - y0 + 2);
  ctx.clip();
  if (begins >= 0) curve(plot, xs.slice(begins), most.slice(begins).map(kept), colors.accent, { dash: [6, 4] });
  curve(plot, xs, worst.map(kept), colors.ink, { width: 1.2, alpha: 0.5 });
  ctx.fillStyle = colors.ink;
  worst.forEach((value, c) => value && ctx.fillRect(xs[c] - 1, kept(value) - 1, 2, 2));
  curve(plot, xs, own, color, { width: 1.4 });
  ctx.restore();
  disc(plot, at.x(position), kept(error), 4.5, color);
  const title = (content, x, ink) => text(plot, content, x0 + x, y0 - 12, { color: ink, bold: true });
  title("worst pair", 0, colors.ink);
  title("largest possible", 76, colors.accent);
  title(`pair ${pair}`, 182, color);
  if (!small) text(plot, `${MOST_TEXT[shown]}: as wrong as can be`, x1, y0 - 12, { align: "right", size: 11.5 });
}
