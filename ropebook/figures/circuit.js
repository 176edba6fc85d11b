// circuit.js: the channels of a head on a ring, and a chord for each pair in the pair's hue.
import { text } from "./kit/draw.js";
import { TURN } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";

/** The rank of each pair, fastest first: its hue. A pair is as fast as the largest part of its wave vector. */
export function ranks(waves) {
  const fastest = waves.map((wave) => Math.max(...wave.map(Math.abs)));
  const order = waves.map((_, i) => i).sort((a, b) => fastest[b] - fastest[a] || a - b);
  const rank = [];
  order.forEach((pair, place) => {
    rank[pair] = place;
  });
  return rank;
}

/** Where channel c of `channels` stands on a ring: channel 0 at the top, then clockwise. */
export function onRing(c, channels, { x, y, radius }) {
  const turn = (TURN * c) / channels;
  return [x + radius * Math.sin(turn), y - radius * Math.cos(turn)];
}

/** A chord, straight across the middle, and bent inwards where its ends are near: or it would hide in the rim. */
function chord(ctx, from, to, { x, y, radius }) {
  const [dx, dy] = [x - (from[0] + to[0]) / 2, y - (from[1] + to[1]) / 2];
  const bend = (0.4 * Math.hypot(dx, dy)) / radius;
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.bezierCurveTo(from[0] + bend * dx, from[1] + bend * dy, to[0] + bend * dx, to[1] + bend * dy, ...to);
  ctx.stroke();
}

/** The hue of each pair: by how fast it is, or by its number where that is not known. */
function hues({ pairs, waves }) {
  const rank = ranks(waves);
  return pairs.map((_, i) => pairColor(rank[i] ?? i, pairs.length));
}

const FEW = 16; // chords of a small wheel

/** What a small wheel needs of a row: some of its chords, each with its hue. */
export function wheelOf(row) {
  const colors = hues(row);
  const every = Math.ceil(row.pairs.length / FEW);
  return row.pairs.map((pair, i) => ({ pair, color: colors[i] })).filter((_, i) => i % every === 0);
}

/** Draw such a wheel of a head's channels into a ring { x, y, radius }. */
export function drawWheel({ ctx, colors }, wheel, head, ring) {
  ctx.lineWidth = ring.radius > 24 ? 1.4 : 0.9;
  ctx.strokeStyle = colors.rule;
  ctx.beginPath();
  ctx.arc(ring.x, ring.y, ring.radius, 0, TURN);
  ctx.stroke();
  for (const { pair, color } of wheel) {
    ctx.strokeStyle = color;
    chord(ctx, onRing(pair[0], head, ring), onRing(pair[1], head, ring), ring);
  }
}

/** Draw the circuit of { name, head, pairs, waves, direction } into a ring { x, y, radius } on the plot. */
export function drawCircuit(plot, { name, head, pairs, waves, direction }, ring) {
  const { ctx, colors } = plot;
  const own = hues({ pairs, waves });
  const hue = new Map();
  const dot = Math.max(0.8, Math.min(3, (0.6 * Math.PI * ring.radius) / head));
  ctx.save();
  ctx.lineWidth = Math.max(0.8, Math.min(1.6, (80 * dot) / 100));
  pairs.forEach(([a, b], i) => {
    hue.set(a, own[i]).set(b, own[i]);
    ctx.strokeStyle = own[i];
    chord(ctx, onRing(a, head, ring), onRing(b, head, ring), ring);
  });
  for (let c = 0; c < head; c++) {
    ctx.fillStyle = hue.get(c) ?? colors.muted;
    ctx.beginPath();
    ctx.arc(...onRing(c, head, ring), dot, 0, TURN);
    ctx.fill();
  }
  ctx.restore();
  const way = { 1: "↺", "-1": "↻" }[direction] ?? "";
  text(plot, `${name} ${way}`, ring.x, ring.y - ring.radius - 10, { align: "center", size: 12, color: colors.ink });
}
