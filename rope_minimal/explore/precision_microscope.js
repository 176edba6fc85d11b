// Computed minus true over positions x pairs, and the worst of all pairs over the positions.
import { distinctPositions, roundingError, roundTo, unitRoundoff } from "./aliasing.js";
import { axes, cellAt, colorBar, crosshair, curve, disc, paintCells, pairAxis, text, upright } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, decades, num, superscript } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { inverseFrequencies } from "./rope.js";

const DIM = 128;
const PAIRS = DIM / 2;
const COLUMNS = 240; // as in precision_microscope.py
const TYPE = { fp32: "float32", fp16: "float16", bf16: "bfloat16" };
const POWER = { fp32: 24, fp16: 11, bf16: 8 };
const FLOOR = -10; // log10 of the smallest error that has a colour of its own
const CEILING = 3;

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

/** |computed - true| of all cells, [column * 64 + pair], and the worst: { errors, worst, positions }. */
export function errorMap(dtype, stage, show, count) {
  const theta = inverseFrequencies(DIM, 10000);
  const positions = columnPositions(count);
  const shown = shownError(stage, show);
  const errors = new Float64Array(COLUMNS * PAIRS);
  let worst = { error: -1 };
  positions.forEach((position, column) => {
    for (let pair = 0; pair < PAIRS; pair++) {
      const error = Math.abs(roundingError(position, theta[pair], TYPE[dtype], stage, shown));
      errors[column * PAIRS + pair] = error;
      if (error > worst.error) worst = { error, position, pair, column };
    }
  });
  return { errors, worst, positions };
}

/** The largest error that one rounding of a number of this size can make: position * 2^-24 in fp32. */
export function predicted(position, dtype) {
  return position * unitRoundoff(TYPE[dtype]);
}

/** Where an error lies on the colour scale, 0..1. */
export function errorScale(error) {
  if (!(error > 0)) return 0;
  return clamp((Math.log10(error) - FLOOR) / (CEILING - FLOOR), 0, 1);
}

function spoken(error) {
  if (!Number.isFinite(error)) return "∞ (the type overflows)";
  if (error === 0) return "0";
  return num(error, error >= 100 ? 0 : error >= 1 ? 2 : error >= 0.001 ? 4 : 9);
}

const rounds = (stage, name) => stage === name || stage === "everything";
const bound = (dtype) => `position × 2${superscript(-POWER[dtype])}`;

/** The caption: the traits, and the errors of the selected cell and of the worst one. */
export function words({ dtype, stage, show }, count, { position, pair, error }, worst, distinct) {
  const unit = shownError(stage, show) === "angle" ? " rad" : "";
  const exact =
    stage === "table" && show === "angle" ? "A rounded table has exact angles, so this is the cosine. " : "";
  const counts = rounds(stage, "positions");
  const held = roundTo(position, TYPE[dtype]);
  const instead = Number.isFinite(held) ? num(held, 0) : "infinity";
  const holds = counts && held !== position ? ` (${dtype} holds ${instead})` : "";
  const different = counts
    ? ` The ${num(count, 0)} positions have **${num(distinct, 0)}** different values in ${dtype}.`
    : "";
  return (
    `${exact}Position **${num(position, 0)}**${holds}, pair **${pair}**: error **${spoken(error)}**${unit}; ` +
    `${bound(dtype)} is ${spoken(predicted(position, dtype))}. ` +
    `The worst cell is position **${num(worst.position, 0)}**, pair **${worst.pair}**, ` +
    `with **${spoken(worst.error)}**${unit}.${different}`
  );
}

const LABEL =
  "Heatmap of the rounding error over positions (across, by equal factors) and pairs (down, fastest first), and " +
  "below it the worst error of all pairs over the positions with the predicted line";
const NOTICE =
  "A rounded table is off by a little everywhere, and never by more. A rounded angle is off in proportion to its " +
  "size: late positions and fast pairs suffer first, in fp32 by about position × 2⁻²⁴. Rounded positions are the " +
  "same everywhere until the type runs out of whole numbers: 256 in bf16, 2,048 in fp16, 16,777,216 in fp32.";

const LEFT = 52; // margins, in pixels
const RIGHT = 14;
const TOP = 48;
const mapHeight = (width) => clamp(Math.round(width * 0.36), 190, 260);
const narrow = (width) => width < 480;

export default figure((fig) => {
  let map = null; // where the heatmap lies, in CSS pixels
  let known = {}; // the errors computed last

  const plot = fig.canvas({
    label: LABEL,
    help: "Point at the map, or focus it and use the arrow keys, to read a cell.",
    height: (width) => TOP + mapHeight(width) + 34 + 140 + 42,
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
    const count = Number(last);
    const key = [dtype, stage, show, count].join();
    if (known.key !== key) {
      known = { key, ...errorMap(dtype, stage, show, count), distinct: distinctPositions(count, TYPE[dtype]) };
    }
    const { errors, worst, positions, distinct } = known;
    const cell = { position: positions[column], pair, error: errors[column * PAIRS + pair] };
    const { width } = plot.clear();
    map = { x0: LEFT, y0: TOP, x1: width - RIGHT, y1: TOP + mapHeight(width) };

    drawKey(plot, map, shownError(stage, show));
    paintCells(plot, map, COLUMNS, PAIRS, "angle", (c, i) => Math.round(errorScale(errors[c * PAIRS + i]) * 255));
    const yOf = pairAxis(plot, map, PAIRS, [0, 20, 40, 63]);
    const xOf = (c) => map.x0 + ((c + 0.5) * (map.x1 - map.x0)) / COLUMNS;
    if (rounds(stage, "positions")) drawLimit(plot, map, dtype, count, xOf);
    if (worst.error === 0) {
      const [x, y] = [(map.x0 + map.x1) / 2, (map.y0 + map.y1) / 2];
      text(plot, "no error anywhere", x, y, { align: "center", size: 15, color: "#1d2630" });
    }
    crosshair(plot, map, xOf(column), yOf(pair), pairColor(pair, PAIRS));
    drawWorst(plot, map.y1, { dtype, count, errors, positions }, cell);

    fig.say(words({ dtype, stage, show }, count, cell, worst, distinct));
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

const POWERS = { "-9": "10⁻⁹", "-6": "10⁻⁶", "-3": "10⁻³", 0: "1", 3: "1000" };

function drawKey(plot, map, shown) {
  const { width, colors } = plot;
  const unit = shown === "angle" && !narrow(width) ? " (rad)" : "";
  text(plot, `error of the ${shown}${unit}`, map.x0, 12, { color: colors.ink, size: 12.5 });
  const long = Math.min(260, map.x1 - map.x0 - (narrow(width) ? 122 : 150));
  const powers = long < 220 ? [-9, -6, -3, 3] : [-9, -6, -3, 0, 3];
  const marks = powers.map((p) => [errorScale(10 ** p), POWERS[p]]);
  colorBar(plot, map.x1 - long, 8, long, "angle", marks);
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

/** The worst of all pairs over the positions, the selected pair, and the bound of one rounding. */
function drawWorst(plot, bottom, { dtype, count, errors, positions }, { position, pair, error }) {
  const { ctx, colors } = plot;
  const small = narrow(plot.width);
  const color = pairColor(pair, PAIRS);
  const low = dtype === "fp32" ? 1e-9 : 1e-5;
  const at = axes(plot, {
    x: [positions[0], count - 1],
    xLog: true,
    xTicks: decades(1, count - 1),
    ...(small && { xFormat: (v) => (v === 1 ? "1" : `10${superscript(Math.round(Math.log10(v)))}`) }),
    xLabel: "position",
    y: [low, 1e4],
    yLog: true,
    yTicks: [-9, -6, -3, 0, 3].map((p) => 10 ** p).filter((v) => v >= low),
    yFormat: (v) => POWERS[Math.round(Math.log10(v))],
    box: { left: LEFT, right: RIGHT, top: bottom + 36, bottom: 42 },
  });
  const { x0, y0, x1, y1 } = at.box;
  const kept = (value) => at.y(clamp(value, low, 1e4));
  const xs = positions.map(at.x);
  const column = (c) => errors.subarray(c * PAIRS, (c + 1) * PAIRS);
  const worst = positions.map((_, c) => Math.max(...column(c)));
  const own = positions.map((_, c) => kept(column(c)[pair]));
  const bounds = positions.map((p) => at.y(predicted(p, dtype)));
  ctx.save();
  ctx.beginPath();
  ctx.rect(x0, y0 - 2, x1 - x0, y1 - y0 + 2);
  ctx.clip();
  curve(plot, xs, bounds, colors.accent, { dash: [6, 4] });
  curve(plot, xs, worst.map(kept), colors.ink, { width: 1.2, alpha: 0.5 });
  ctx.fillStyle = colors.ink;
  worst.forEach((value, c) => value && ctx.fillRect(xs[c] - 1, kept(value) - 1, 2, 2));
  curve(plot, xs, own, color, { width: 1.4 });
  ctx.restore();
  disc(plot, at.x(position), kept(error), 4.5, color);
  const title = (content, x, ink) => text(plot, content, x0 + x, y0 - 12, { color: ink, bold: true });
  title("worst of all pairs", 0, colors.ink);
  title(bound(dtype), small ? 108 : 122, colors.accent);
  title(`pair ${pair}`, small ? 196 : 226, color);
}
