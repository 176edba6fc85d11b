// Computed minus true over positions x pairs, and the worst of all pairs over the positions.
import { figure, axes, colorBar, crosshair, curve, disc, num, pairAxis, pairColor, paintCells, text } from "./kit.js";
import { inverseFrequencies } from "./rope.js";
import { distinctPositions, roundTo, roundingError, unitRoundoff } from "./aliasing.js";

const DIM = 128;
const PAIRS = DIM / 2;
const COLUMNS = 240; // as in precision_microscope.py
const TYPE = { fp32: "float32", fp16: "float16", bf16: "bfloat16" };
const POWER = { fp32: 24, fp16: 11, bf16: 8 };
const FLOOR = -10; // log10 of the smallest error that has a colour of its own
const CEILING = 3;

/** The positions of the columns: from 1 to just below `count`, by equal factors, all odd. */
export function columnPositions(count) {
  return Array.from({ length: COLUMNS }, (_, k) => Math.min(2 * Math.floor((count - 1) ** (k / (COLUMNS - 1)) / 2) + 1, count - 1));
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
  return Math.min(Math.max((Math.log10(error) - FLOOR) / (CEILING - FLOOR), 0), 1);
}

const power = (n) => [...String(n)].map((d) => (d === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[d])).join("");
const said = (error) => {
  if (!Number.isFinite(error)) return "∞ (the type overflows)";
  if (error === 0) return "0";
  return num(error, error >= 100 ? 0 : error >= 1 ? 2 : error >= 0.001 ? 4 : 9);
};

export default figure((fig) => {
  let map = null;
  let known = {};
  const keep = (value, low, high) => Math.min(Math.max(value, low), high);
  const mapHeight = (width) => keep(Math.round(width * 0.36), 190, 260);

  const plot = fig.canvas({
    label: "Heatmap of the rounding error over positions (across, by equal factors) and pairs (down, fastest first), and below it the worst error of all pairs over the positions with the predicted line",
    help: "Point at the map, or focus it and use the arrow keys, to read a cell.",
    height: (width) => 48 + mapHeight(width) + 34 + 140 + 42,
    point({ x, y, type }) {
      if (!map || (type === "pointermove" && (y > map.y1 + 8 || y < map.y0 - 8))) return;
      const column = keep(Math.floor(((x - map.x0) / (map.x1 - map.x0)) * COLUMNS), 0, COLUMNS - 1);
      const pair = keep(Math.floor(((y - map.y0) / (map.y1 - map.y0)) * PAIRS), 0, PAIRS - 1);
      fig.set(y <= map.y1 ? { column, pair } : { column });
    },
    keys({ dx, dy }) {
      const { column, pair } = fig.traits;
      fig.set({ column: keep(column + dx, 0, COLUMNS - 1), pair: keep(pair + dy, 0, PAIRS - 1) });
    },
  });

  fig.draw(() => {
    const { dtype, stage, show, last, column, pair } = fig.traits;
    const count = Number(last);
    const key = [dtype, stage, show, count].join();
    if (known.key !== key) known = { key, ...errorMap(dtype, stage, show, count), distinct: distinctPositions(count, TYPE[dtype]) };
    const { errors, worst, positions, distinct } = known;
    const shown = shownError(stage, show);
    const unit = shown === "angle" ? " rad" : "";
    const position = positions[column];
    const error = errors[column * PAIRS + pair];
    const { ctx, width } = plot.clear();
    const { ink, accent } = fig.colors;
    const left = 52;
    const top = 48;
    map = { x0: left, y0: top, x1: width - 14, y1: top + mapHeight(width) };

    // key
    const keyWidth = Math.min(260, map.x1 - map.x0 - (width < 480 ? 122 : 150));
    text(plot, `error of the ${shown}${unit && width >= 480 ? " (rad)" : ""}`, map.x0, 12, { color: ink, size: 12.5, halo: false });
    const powers = keyWidth < 220 ? [-9, -6, -3, 3] : [-9, -6, -3, 0, 3];
    const marks = powers.map((p) => [errorScale(10 ** p), p === 0 ? "1" : p > 0 ? "1000" : `10${power(p)}`]);
    colorBar(plot, map.x1 - keyWidth, 8, keyWidth, "angle", marks);

    paintCells(plot, map, COLUMNS, PAIRS, "angle", (c, i) => Math.round(errorScale(errors[c * PAIRS + i]) * 255));
    const yOf = pairAxis(plot, map, PAIRS, [0, 20, 40, 63]);

    const xOf = (c) => map.x0 + ((c + 0.5) * (map.x1 - map.x0)) / COLUMNS;
    const columnOf = (p) => ((COLUMNS - 1) * Math.log(p)) / Math.log(count - 1);
    // the first position that the type cannot hold
    const limit = 2 ** POWER[dtype];
    if ((stage === "positions" || stage === "everything") && limit < count) {
      const x = xOf(columnOf(limit));
      curve(plot, [x, x], [map.y0, map.y1], "rgba(0,0,0,0.55)", { width: 3.2, dash: [6, 4] });
      curve(plot, [x, x], [map.y0, map.y1], "#ffffff", { width: 1.5, dash: [6, 4] });
      text(plot, `whole numbers end at ${num(limit, 0)}`, keep(x, map.x0 + 84, map.x1 - 88), map.y0 - 8, { align: "center", size: 11.5, color: ink, halo: false });
    }
    if (worst.error === 0) text(plot, "no error anywhere", (map.x0 + map.x1) / 2, (map.y0 + map.y1) / 2, { align: "center", size: 15, color: "#1d2630", halo: false });

    crosshair(plot, map, xOf(column), yOf(pair), pairColor(pair, PAIRS));

    // the worst of all pairs over the positions
    const low = dtype === "fp32" ? 1e-9 : 1e-5;
    const at = axes(plot, {
      x: [positions[0], count - 1],
      xLog: true,
      y: [low, 1e4],
      yLog: true,
      yTicks: [-9, -6, -3, 0, 3].map((p) => 10 ** p).filter((v) => v >= low),
      yFormat: (v) => (v === 1 ? "1" : v === 1000 ? "1000" : `10${power(Math.round(Math.log10(v)))}`),
      ...(width < 480 && { xFormat: (v) => (v === 1 ? "1" : `10${power(Math.round(Math.log10(v)))}`) }),
      xTicks: [1, 10, 100, 1000, 10000, 100000, 1000000].filter((v) => v < count),
      xLabel: "position",
      box: { left, right: 14, top: map.y1 + 36, bottom: 42 },
    });
    const kept = (value) => at.y(keep(value, low, 1e4));
    const worstOf = positions.map((_, c) => Math.max(...errors.subarray(c * PAIRS, (c + 1) * PAIRS)));
    ctx.save();
    ctx.beginPath();
    ctx.rect(at.box.x0, at.box.y0 - 2, at.box.x1 - at.box.x0, at.box.y1 - at.box.y0 + 2);
    ctx.clip();
    curve(plot, positions.map(at.x), positions.map((p) => at.y(predicted(p, dtype))), accent, { width: 1.75, dash: [6, 4] });
    curve(plot, positions.map((p) => at.x(Math.max(p, 1))), worstOf.map(kept), ink, { width: 1.2, alpha: 0.5 });
    positions.forEach((p, c) => {
      if (!worstOf[c]) return;
      ctx.fillStyle = ink;
      ctx.fillRect(at.x(p) - 1, kept(worstOf[c]) - 1, 2, 2);
    });
    curve(plot, positions.map(at.x), positions.map((_, c) => kept(errors[c * PAIRS + pair])), pairColor(pair, PAIRS), { width: 1.4 });
    ctx.restore();
    disc(plot, at.x(position), kept(error), 4.5, pairColor(pair, PAIRS));
    text(plot, "worst of all pairs", at.box.x0, at.box.y0 - 12, { color: ink, size: 12, bold: true, halo: false });
    text(plot, `position × 2${power(-POWER[dtype])}`, at.box.x0 + (width < 480 ? 108 : 122), at.box.y0 - 12, { color: accent, size: 12, bold: true, halo: false });
    text(plot, `pair ${pair}`, at.box.x0 + (width < 480 ? 196 : 226), at.box.y0 - 12, { color: pairColor(pair, PAIRS), size: 12, bold: true, halo: false });
    ctx.globalAlpha = 1;

    const exact = stage === "table" && show === "angle" ? "A rounded table has exact angles, so this is the cosine. " : "";
    const counting = stage === "positions" || stage === "everything" ? ` The ${num(count, 0)} positions have **${num(distinct, 0)}** different values in ${dtype}.` : "";
    const held = roundTo(position, TYPE[dtype]);
    fig.say(
      `${exact}Position **${num(position, 0)}**${counting && held !== position ? ` (${dtype} holds ${Number.isFinite(held) ? num(held, 0) : "infinity"})` : ""}, pair **${pair}**: error **${said(error)}**${unit}; position × 2${power(-POWER[dtype])} is ${said(predicted(position, dtype))}. ` +
        `The worst cell is position **${num(worst.position, 0)}**, pair **${worst.pair}**, with **${said(worst.error)}**${unit}.${counting}`,
    );
    const plain = (x) => (Number.isFinite(x) ? x : "infinite");
    fig.root.dataset.values = JSON.stringify({
      dtype, stage, show, last: count, position, pair, error: plain(error), distinct,
      worst: { ...worst, error: plain(worst.error) },
    });
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
  fig.notice(
    "A rounded table is off by a little everywhere, and never by more. A rounded angle is off in proportion to its size: late positions and fast pairs suffer first, in fp32 by about position × 2⁻²⁴. Rounded positions are the same everywhere until the type runs out of whole numbers: 256 in bf16, 2,048 in fp16, 16,777,216 in fp32.",
  );
});
