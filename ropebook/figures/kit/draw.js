// draw.js: axes, curves, arrows and maps on a plot of figure.js, in CSS pixels.
import { clamp, decades, TURN, ticks, tickText } from "./numbers.js";
import { cssColor, lookup, pairColor } from "./theme.js";

/** The ticks of one turn in radians, upwards. */
export const TURN_TICKS = { yTicks: [0, TURN / 2, TURN], yFormat: (v) => ["0", "π", "2π"][Math.round((2 * v) / TURN)] };

/** Whether there is room for two pictures side by side. */
export const wide = (width) => width >= 560;

/** Write on the plot. options: color, size, align, baseline, bold, angle, halo (true, or its pixels). */
export function text(plot, content, x, y, options = {}) {
  const { ctx, colors } = plot;
  ctx.save();
  ctx.font = `${options.bold ? "600 " : ""}${options.size ?? 12}px ${colors.font}`;
  ctx.textAlign = options.align ?? "left";
  ctx.textBaseline = options.baseline ?? "middle";
  ctx.translate(x, y);
  ctx.rotate(options.angle ?? 0);
  if (options.halo) {
    ctx.lineJoin = "round";
    ctx.lineWidth = options.halo === true ? 3 : options.halo;
    ctx.strokeStyle = colors.paper;
    ctx.strokeText(content, 0, 0);
  }
  ctx.fillStyle = options.color ?? colors.muted;
  ctx.fillText(content, 0, 0);
  ctx.restore();
}

/** The same, upwards along the left edge between two heights. */
function textUpwards(plot, content, y0, y1) {
  text(plot, content, 9, (y0 + y1) / 2, { align: "center", angle: -TURN / 4 });
}

/** [f, g]: f takes data in low .. high to pixels in from .. to, g takes them back. */
export function scale([low, high], from, to, log) {
  const [f, g] = log ? [Math.log, Math.exp] : [(v) => v, (v) => v];
  const [a, b] = [f(low), f(high)];
  return [
    (v) => from + ((f(v) - a) / (b - a || 1)) * (to - from),
    (p) => g(a + ((p - from) / (to - from || 1)) * (b - a)),
  ];
}

/**
 * Draw axes and return { x, y, invX, box }: data to CSS pixels, and back.
 * options: x, y: [low, high]; xLabel, yLabel; xTicks, yTicks: values, or [] for none;
 * xLog, yLog; xFormat, yFormat: value to text; box: { left, top, right, bottom } margins.
 */
export function axes(plot, options) {
  const { ctx, width, height, colors } = plot;
  const margin = { left: 46, top: 10, right: 10, bottom: 38, ...options.box };
  const box = { x0: margin.left, y0: margin.top, x1: width - margin.right, y1: height - margin.bottom };
  const [x, invX] = scale(options.x, box.x0, box.x1, options.xLog);
  const [y] = scale(options.y, box.y1, box.y0, options.yLog); // upwards, against the pixels
  const marks = (range, log, pixels) => (log ? decades(...range) : ticks(...range, pixels));
  const xTicks = options.xTicks ?? marks(options.x, options.xLog, (box.x1 - box.x0) / 80);
  const yTicks = options.yTicks ?? marks(options.y, options.yLog, (box.y1 - box.y0) / 40);
  ctx.save();
  ctx.lineWidth = 1;
  ctx.strokeStyle = colors.rule;
  for (const v of yTicks) {
    const at = Math.round(y(v)) + 0.5;
    line(ctx, box.x0, at, box.x1, at);
    text(plot, (options.yFormat ?? tickText)(v), box.x0 - 7, at, { align: "right", size: 11.5 });
  }
  for (const v of xTicks) {
    const at = Math.round(x(v)) + 0.5;
    line(ctx, at, box.y1, at, box.y1 + 4);
    text(plot, (options.xFormat ?? tickText)(v), at, box.y1 + 13, { align: "center", size: 11.5 });
  }
  ctx.restore();
  if (options.xLabel) text(plot, options.xLabel, (box.x0 + box.x1) / 2, box.y1 + 30, { align: "center" });
  if (options.yLabel) textUpwards(plot, options.yLabel, box.y0, box.y1);
  return { x, y, invX, box };
}

/** A straight line in the context's own stroke. */
export function line(ctx, x0, y0, x1, y1) {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

/** A line through pixel points. options: width, dash, alpha. */
export function curve(plot, xs, ys, color, options = {}) {
  const { ctx } = plot;
  ctx.save();
  ctx.beginPath();
  for (let i = 0; i < xs.length; i++) ctx.lineTo(xs[i], ys[i]);
  ctx.strokeStyle = color;
  ctx.globalAlpha = options.alpha ?? 1;
  ctx.lineWidth = options.width ?? 1.75;
  ctx.lineJoin = "round";
  ctx.setLineDash(options.dash ?? []);
  ctx.stroke();
  ctx.restore();
}

/** A straight line over the height of a box. */
export const upright = (plot, x, box, color, options) => curve(plot, [x, x], [box.y0, box.y1], color, options);

/** A straight line over the width of a box. */
export const level = (plot, y, box, color, options) => curve(plot, [box.x0, box.x1], [y, y], color, options);

/** An arrow in pixels, its head at (x1, y1). options: width, label, dash, alpha. */
export function arrow(plot, x0, y0, x1, y1, color, options = {}) {
  const { ctx } = plot;
  const width = options.width ?? 2.5;
  const length = Math.hypot(x1 - x0, y1 - y0);
  const head = Math.min(6 + 2.2 * width, length);
  const angle = Math.atan2(y1 - y0, x1 - x0);
  ctx.save();
  ctx.globalAlpha = options.alpha ?? 1;
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = width;
  ctx.lineCap = "round";
  ctx.setLineDash(options.dash ?? []);
  line(ctx, x0, y0, x1 - 0.8 * head * Math.cos(angle), y1 - 0.8 * head * Math.sin(angle));
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  for (const side of [-1, 1]) {
    const a = angle + side * 0.38;
    ctx.lineTo(x1 - head * Math.cos(a), y1 - head * Math.sin(a));
  }
  ctx.fill();
  ctx.restore();
  if (options.label) {
    const [x, y] = [x1 + 13 * Math.cos(angle), y1 + 13 * Math.sin(angle)];
    text(plot, options.label, x, y, { color, bold: true, size: 15, align: "center", halo: true });
  }
}

/** A filled disc in pixels. options: ring (stroke colour). */
export function disc(plot, x, y, radius, color, options = {}) {
  const { ctx, colors } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, TURN);
  ctx.fillStyle = color;
  ctx.fill();
  ctx.lineWidth = 1.5;
  ctx.strokeStyle = options.ring ?? colors.paper;
  ctx.stroke();
  ctx.restore();
}

/** Paint columns x rows cells into box; index(column, row) says which of 256 colours of `name`. */
export function paintCells(plot, box, columns, rows, name, index) {
  const table = lookup(name);
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let row = 0, at = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) pixels[at++] = table[index(column, row)];
  }
  plot.scratch ??= document.createElement("canvas");
  plot.scratch.width = columns;
  plot.scratch.height = rows;
  plot.scratch.getContext("2d").putImageData(image, 0, 0);
  const { ctx } = plot;
  const shrinks = columns > (box.x1 - box.x0) * plot.ratio || rows > (box.y1 - box.y0) * plot.ratio;
  ctx.imageSmoothingEnabled = shrinks;
  ctx.imageSmoothingQuality = "high";
  ctx.drawImage(plot.scratch, box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
}

/** Beside a map whose rows are pairs: their hues, the numbers of some; returns where a pair's row lies. */
export function pairAxis(plot, box, pairs, marked) {
  const rowHeight = (box.y1 - box.y0) / pairs;
  const yOf = (pair) => box.y0 + (pair + 0.5) * rowHeight;
  for (let i = 0; i < pairs; i++) {
    plot.ctx.fillStyle = pairColor(i, pairs);
    plot.ctx.fillRect(box.x0 - 8, box.y0 + i * rowHeight, 5, rowHeight + 0.5);
  }
  for (const i of marked) text(plot, String(i), box.x0 - 13, yOf(i), { align: "right", size: 11.5 });
  textUpwards(plot, "pair, fast to slow", box.y0, box.y1);
  return yOf;
}

/** The column and row under a point of the box, kept inside the map. */
export function cellAt(x, y, box, columns, rows) {
  const cell = (at, from, to, n) => clamp(Math.floor(((at - from) / (to - from)) * n), 0, n - 1);
  return { column: cell(x, box.x0, box.x1, columns), row: cell(y, box.y0, box.y1, rows) };
}

/** The cursor of a map: a cross over it that is seen on every colour, and a disc where it meets. */
export function crosshair(plot, box, x, y, center) {
  const { ctx } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
  ctx.clip();
  for (const [color, width] of [
    ["rgba(0,0,0,0.55)", 3],
    ["#ffffff", 1.25],
  ]) {
    level(plot, y, box, color, { width });
    upright(plot, x, box, color, { width });
  }
  ctx.restore();
  disc(plot, x, y, 4.5, center, { ring: "#ffffff" });
}

/** A horizontal key for a palette table; marks: [[t, text], ...] with t in 0..1. */
export function colorBar(plot, x, y, width, name, marks) {
  const height = 8;
  const { ctx, colors } = plot;
  for (let p = 0; p < width; p++) {
    ctx.fillStyle = cssColor(name, p / (width - 1));
    ctx.fillRect(x + p, y, 1.5, height);
  }
  for (const [t, label] of marks) {
    ctx.fillStyle = colors.muted;
    ctx.fillRect(x + t * (width - 1), y + height, 1, 3);
    const align = t < 0.02 ? "left" : t > 0.98 ? "right" : "center";
    text(plot, label, x + t * width, y + height + 11, { align, size: 11.5 });
  }
}
