// hands.js: hands on a dial, and the border of their first full turn in a map, as several figures draw them.
import { curve, line } from "./kit/draw.js";
import { TURN } from "./kit/numbers.js";
import { wavelengths } from "./rope.js";

/**
 * A dial with a hand at an angle, counterclockwise from its start; sectors [from, to, color, alpha], and more
 * hands [angle, color] that are thin and dashed.
 */
export function drawDial(plot, [cx, cy], radius, angle, color, sectors, others = []) {
  const { ctx, colors } = plot;
  const hand = (at) => line(ctx, cx, cy, cx + (radius - 3) * Math.cos(at), cy - (radius - 3) * Math.sin(at));
  ctx.save();
  ctx.strokeStyle = colors.rule;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ctx.arc(cx, cy, radius, 0, TURN);
  ctx.stroke();
  for (const [from, to, fill, alpha] of sectors) {
    ctx.beginPath();
    ctx.moveTo(cx, cy);
    ctx.arc(cx, cy, radius, -from, -to, to > from);
    ctx.fillStyle = fill;
    ctx.globalAlpha = alpha;
    ctx.fill();
  }
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colors.ink;
  ctx.lineWidth = 1.25;
  line(ctx, cx + radius - 4, cy, cx + radius + 3, cy);
  ctx.lineCap = "round";
  ctx.lineWidth = 3;
  ctx.strokeStyle = color;
  hand(angle);
  ctx.lineWidth = 2;
  ctx.setLineDash([3, 3.5]);
  for (const [at, stroke] of others) {
    ctx.strokeStyle = stroke;
    hand(at);
  }
  ctx.restore();
}

/** The row, with a part, at which a pair makes its first full turn at a position; NaN where none does. */
export function firstTurnRow(waves, position) {
  const i = waves.findIndex((wave) => wave > position) - 1;
  const last = waves.length - 1;
  if (i === -2) return waves[last] === position ? last : NaN; // all have turned
  if (i === -1) return NaN;
  const part = Math.log(position / waves[i]) / Math.log(waves[i + 1] / waves[i]);
  return i + part;
}

/** The positions after which each pair has turned once: its wavelength, drawn as a curve. */
export function drawFullTurn(plot, theta, positions, rowOf, xOf) {
  const waves = wavelengths(theta);
  const xs = [];
  const ys = [];
  for (const position of positions) {
    const pair = firstTurnRow(waves, position);
    if (Number.isNaN(pair)) continue;
    xs.push(xOf(position));
    ys.push(rowOf(pair));
  }
  curve(plot, xs, ys, "rgba(0,0,0,0.6)", { width: 3.4, dash: [6, 4] });
  curve(plot, xs, ys, "#ffffff", { width: 1.6, dash: [6, 4] });
}
