// The hands of a head at distance m, each on a ring of its own, and D(m) around that distance.
import { handError, nearestCode, nearRepeats } from "./aliasing.js";
import { axes, curve, disc, level, line, text, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, TURN } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { BASE, codeDistance, inverseFrequencies, shortWay } from "./rope.js";

const FARTHEST = 131072;
const AROUND = 40; // distances shown on each side of m

/** What the figure says about a distance: one hand, all hands, and the neighbour to beat. */
export function reading(m, dim) {
  const invFreq = inverseFrequencies(dim, BASE);
  return { hand: handError(m * invFreq[0]), bank: codeDistance(m, invFreq), neighbour: codeDistance(1, invFreq) };
}

/** The nearest of all distances 1 .. FARTHEST for a head of this width. */
export function winner(dim) {
  return nearestCode(inverseFrequencies(dim, BASE), FARTHEST);
}

/**
 * The caption: `now` is the reading at m; `record` the fastest hand's near repeat there, if it is
 * one; `found` the nearest of all distances, if they were searched.
 */
export function words(m, dim, now, record, found) {
  const pairs = dim / 2;
  const near = record ? ` (${num(record.turns, 0)} turns, nearer than ever before)` : "";
  const hands = { 1: "the only hand", 2: "both hands together" }[pairs] ?? `all ${pairs} hands together`;
  const fine = (d) => num(d, d < 0.01 ? 5 : 3);
  const search = found
    ? ` Searched all ${num(FARTHEST, 0)} distances: the nearest is **${num(found.distance, 0)}**, ` +
      `with D = **${fine(found.codeDistance)}**.`
    : "";
  return (
    `Distance **${num(m, 0)}**: the fastest hand is **${num(now.hand, now.hand < 0.01 ? 6 : 4)}** from its start` +
    `${near}, ${hands} D = **${fine(now.bank)}**. ${verdict(m, now)}${search}`
  );
}

function verdict(m, { bank, neighbour }) {
  if (m === 0) return "Distance 0 is the start itself.";
  if (m === 1) return "This is the neighbour, the distance to beat.";
  const beat = num(neighbour, 3);
  if (bank < neighbour) return `That is **nearer than a neighbour**, which has D(1) = ${beat}.`;
  return `A neighbour is nearer: D(1) = ${beat}.`;
}

const LABEL =
  "A dial with one ring for every hand, fast hands outside; an arc on each ring leads from the start to the hand. " +
  "Beside it one hand's error and the distance D of all hands over the distances nearby";
const NOTICE =
  "At 44, 710 and 103,993 the fastest hand is almost back, because 2π is almost 44/7, 710/113 and 103,993/16,551. " +
  "With one or two hands that is a collision. With 64 hands the others are elsewhere at that moment: to a head " +
  "that weighs all 64 alike, no distance up to 131,072 is nearer than the immediate neighbour. A head that reads a " +
  "few hands only has the clock with a few hands.";

const dialSize = (width) => (wide(width) ? Math.min(width * 0.5, 360) : Math.min(width, 330));

export default figure((fig) => {
  const records = nearRepeats(1, FARTHEST); // of the fastest hand, which turns by 1 rad a token
  const keep = (m) => clamp(m, 0, FARTHEST);
  let found = null; // { dim, distance, codeDistance } of the last search

  const plot = fig.canvas({
    label: LABEL,
    help: "With the picture in focus, the arrow keys move by one token, with Shift by ten.",
    height: (width) => (wide(width) ? dialSize(width) : dialSize(width) + 250),
    keys({ dx, dy }) {
      fig.set({ m: keep(fig.traits.m + dx - dy) });
    },
  });

  fig.draw(() => {
    const { m } = fig.traits;
    const dim = Number(fig.traits.dim);
    const invFreq = inverseFrequencies(dim, BASE);
    const now = reading(m, dim);
    const { width } = plot.clear();
    const size = dialSize(width);
    drawDial(plot, wide(width) ? size / 2 : width / 2, size / 2, size / 2 - 8, m, invFreq);
    const box = wide(width) ? { left: size + 62, top: 34, bottom: 42 } : { left: 46, top: size + 36, bottom: 42 };
    drawNearby(plot, box, m, invFreq, now);
    const record = records.find(({ distance }) => distance === m && distance > 1);
    fig.say(words(m, dim, now, record, found?.dim === dim ? found : null));
    fig.root.dataset.values = JSON.stringify({ m, dim, ...now, found });
  });

  const search = () => {
    const dim = Number(fig.traits.dim);
    found = { dim, ...winner(dim) };
    fig.root.dataset.found = String(found.distance);
    fig.redraw();
    return fig.glide({ m: found.distance }, 1200);
  };
  fig.showMe(async () => {
    for (const dim of ["2", "4", "128"]) {
      fig.set({ dim, m: 0 });
      await fig.pause(300);
      await fig.glide({ m: 44 }, 2200);
      await fig.pause(900);
      await search();
      await fig.pause(2200);
    }
  });
  fig.button("− 1", () => fig.set({ m: keep(fig.traits.m - 1) }));
  fig.button("+ 1", () => fig.set({ m: keep(fig.traits.m + 1) }));
  for (const m of [44, 710, 103993]) fig.button(num(m, 0), () => fig.set({ m }));
  fig.button("84,823 with d = 4", () => fig.set({ m: 84823, dim: "4" }));
  fig.button("Find the nearest", search);
  fig.notice(NOTICE);
});

function drawDial(plot, cx, cy, radius, m, invFreq) {
  const { ctx, colors } = plot;
  const pairs = invFreq.length;
  const inner = radius * (pairs > 8 ? 0.16 : 0.3);
  const gap = pairs > 1 ? (radius - 14 - inner) / (pairs - 1) : 0;
  const ring = (i) => radius - 14 - i * gap;
  const thick = pairs > 8 ? Math.max(gap * 0.86, 1) : 7;

  ctx.save();
  ctx.lineWidth = 1;
  ctx.strokeStyle = colors.rule;
  ctx.beginPath();
  ctx.arc(cx, cy, radius - 4, 0, TURN);
  ctx.stroke();
  for (let hour = 0; hour < 24; hour++) {
    const [c, s] = [Math.cos((hour * TURN) / 24), Math.sin((hour * TURN) / 24)];
    const length = hour % 6 ? 4 : 8;
    const inside = radius - 12 + length;
    line(ctx, cx + (radius - 4) * c, cy - (radius - 4) * s, cx + inside * c, cy - inside * s);
  }
  if (pairs <= 8) {
    for (let i = 0; i < pairs; i++) {
      ctx.beginPath();
      ctx.arc(cx, cy, ring(i), 0, TURN);
      ctx.stroke();
    }
  }

  // each arc leads from the start to the hand, the short way
  for (let i = 0; i < pairs; i++) {
    const angle = shortWay(m * invFreq[i]);
    ctx.beginPath();
    ctx.arc(cx, cy, ring(i), 0, -angle, angle > 0);
    ctx.lineWidth = thick;
    ctx.strokeStyle = pairColor(i, pairs);
    ctx.globalAlpha = pairs > 8 ? 0.55 : 0.4;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;

  // the start: where every hand would have to be
  ctx.strokeStyle = colors.ink;
  ctx.lineWidth = 1.5;
  line(ctx, cx + inner - (pairs > 1 ? 6 : inner), cy, cx + radius - 4, cy);

  for (let i = 0; i < pairs; i++) {
    const angle = m * invFreq[i];
    const [x, y] = [cx + ring(i) * Math.cos(angle), cy - ring(i) * Math.sin(angle)];
    if (pairs <= 8) {
      ctx.strokeStyle = pairColor(i, pairs);
      ctx.lineWidth = 2.5;
      line(ctx, cx, cy, x, y);
    }
    disc(plot, x, y, pairs > 8 ? Math.max(2.6, gap * 0.7) : 6, pairColor(i, pairs), { ring: colors.paper });
  }
  if (pairs <= 8) disc(plot, cx, cy, 4, colors.muted);
  ctx.restore();
}

function drawNearby(plot, margin, m, invFreq, now) {
  const { ctx, colors } = plot;
  const first = clamp(m - AROUND, 0, FARTHEST - 2 * AROUND);
  const distances = Array.from({ length: 2 * AROUND + 1 }, (_, k) => first + k);
  const at = axes(plot, {
    x: [first - 0.5, first + 2 * AROUND + 0.5],
    y: [0, 2],
    xLabel: "distance m (tokens)",
    yTicks: [0, 0.5, 1, 1.5, 2],
    xTicks: [first, first + AROUND, first + 2 * AROUND],
    box: { right: 26, ...margin },
  });
  const one = pairColor(0, invFreq.length);
  const step = (at.box.x1 - at.box.x0) / distances.length;
  const bar = (distance, d, width) => {
    ctx.fillStyle = colors.accent;
    ctx.fillRect(at.x(distance) - (step * width) / 2, at.y(d), step * width, at.box.y1 - at.y(d));
  };
  // one hand, thin; all hands, bars
  for (const distance of distances) {
    ctx.globalAlpha = distance === m ? 1 : colors.dark ? 0.34 : 0.28;
    bar(distance, codeDistance(distance, invFreq), 0.72);
  }
  ctx.globalAlpha = 1;
  if (invFreq.length > 1) {
    const heights = distances.map((d) => at.y(handError(d * invFreq[0])));
    curve(plot, distances.map(at.x), heights, one, { width: 1.3, alpha: colors.dark ? 0.9 : 0.6 });
    bar(m, now.bank, 0.84);
    disc(plot, at.x(m), at.y(now.hand), 4.5, one);
  }
  const neighbour = at.y(now.neighbour);
  level(plot, neighbour, at.box, colors.ink, { width: 1.25, dash: [5, 4] });
  const beside = { align: "right", size: 11.5, color: colors.ink, halo: true };
  text(plot, "a neighbour, D(1)", at.box.x1 - 2, neighbour - 9, beside);
  const y = at.box.y0 - 20;
  ctx.fillStyle = colors.accent;
  ctx.fillRect(at.box.x0, y - 5, 8, 10);
  text(plot, "all hands, D(m)", at.box.x0 + 14, y, { color: colors.ink });
  if (invFreq.length > 1) {
    disc(plot, at.box.x0 + 128, y, 4.5, one);
    text(plot, "fastest hand alone", at.box.x0 + 138, y, { color: colors.ink });
  }
}
