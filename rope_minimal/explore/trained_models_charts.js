// The pictures of the trained models: scores by length and by distance, aids, one head.
import { axes, curve, disc, level, line, text, upright, wide } from "./kit/draw.js";
import { num, short, TURN } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { shortWay } from "./rope.js";
import { spread } from "./seeds.js";

const GUESS = { width: 1, dash: [2, 3] };
const dash = (second) => (second ? [6, 4] : []); // of the second encoding
const percent = (share) => `${num(100 * share, 0)}%`;

/** The range of all scores of a task, for its axes. */
export function rangeOf(task, there) {
  if (task.unit !== "bits") return [-0.03, 1.03];
  const all = there.flatMap(({ entry }) =>
    [entry.scores, entry.bfloat16, entry.stored, entry.twice ?? [], Object.values(entry.aids)].flat(2),
  );
  if (!all.length) return [0, 4];
  return [Math.floor(2 * Math.min(...all) - 0.1) / 2, Math.ceil(2 * Math.max(...all) + 0.1) / 2];
}

const scoreTicks = (task) => (task.unit === "bits" ? undefined : [0, 0.25, 0.5, 0.75, 1]);

/** The points of eight seeds, the interval and the median; place(value, across) gives pixels. */
function drawSeeds(plot, values, place, color, second, reach) {
  const { ctx, colors } = plot;
  const { median, low, high } = spread(values);
  const stroke = (from, to, width) => curve(plot, [from[0], to[0]], [from[1], to[1]], color, { width });
  values.forEach((value, i) => {
    const [x, y] = place(value, (((i * 3) % values.length) / (values.length - 1) - 0.5) * 2 * reach);
    ctx.beginPath();
    ctx.arc(x, y, 2.6, 0, TURN);
    ctx.globalAlpha = second ? 0.9 : 0.6;
    ctx.fillStyle = second ? colors.paper : color;
    ctx.fill();
    ctx.lineWidth = 1;
    ctx.strokeStyle = color;
    if (second) ctx.stroke();
    ctx.globalAlpha = 1;
  });
  stroke(place(low, 0), place(high, 0), 2);
  stroke(place(median, -reach - 1.5), place(median, reach + 1.5), 3);
}

const R = 3.4;
const MARKS = {
  triangle: [[0, -R, R, R, -R, R, 0, -R]],
  cross: [
    [-R, -R, R, R],
    [-R, R, R, -R],
  ],
  plus: [
    [-R, 0, R, 0],
    [0, -R, 0, R],
  ],
};

function drawMark(plot, kind, x, y, color) {
  for (const corners of MARKS[kind]) {
    const [xs, ys] = [0, 1].map((axis) => corners.filter((_, i) => i % 2 === axis));
    const [right, down] = [xs.map((dx) => x + dx), ys.map((dy) => y + dy)];
    curve(plot, right, down, color, { width: 1.4 });
  }
}

/** Which encoding has which colour; place(i) gives pixels. */
function drawNames(plot, there, place) {
  there.forEach(({ name, color, second }, i) => {
    const [x, y] = place(i);
    disc(plot, x, y, 4, second ? plot.colors.paper : color, { ring: color });
    text(plot, name, x + 10, y, { color, bold: true });
  });
}

/** A band behind what is chosen. */
function drawBand(plot, x0, y0, x1, y1) {
  const { ctx, colors } = plot;
  ctx.fillStyle = colors.accent;
  ctx.globalAlpha = colors.dark ? 0.16 : 0.09;
  ctx.fillRect(x0, y0, x1 - x0, y1 - y0);
  ctx.globalAlpha = 1;
}

// ---- the scores ---------------------------------------------------------------------------------

/** Every seed's score by length, and, where it was asked, by the distance of the answer. */
export function drawScores(plot, data, { task, there, times, range, distances, difference }) {
  const { colors, width, height } = plot.clear();
  const broad = wide(width);
  const beside = distances && broad;
  const top = broad ? 66 : 52 + 16 * there.length;
  const right = beside ? width * 0.44 : 12;
  const at = axes(plot, {
    x: [0.72, 11.2],
    xLog: true,
    y: range,
    xTicks: data.times,
    xFormat: (v) => num(v * task.window, 0),
    yTicks: scoreTicks(task),
    yFormat: short,
    xLabel: "length of the text (tokens)",
    box: { left: 40, top, right, bottom: distances && !beside ? height - 292 : 42 },
  });
  const { x0, y0, y1 } = at.box;
  const title = task.unit === "bits" ? "bits a byte: less is better" : "accuracy: more is better";
  text(plot, title, x0, 10, { color: colors.ink });
  drawNames(plot, there, (i) => (broad ? [x0 + 5 + (width / 2 - 30) * i, 28] : [x0 + 5, 27 + 16 * i]));
  const tokens = `${num(times * task.window, 0)} tokens`;
  if (difference) {
    const verdict = broad ? difference.verdict : difference.verdict.split(":")[0];
    text(plot, `at ${tokens}: ${verdict}`, x0, top - 18, { color: colors.ink, bold: true });
  }
  drawBand(plot, at.x(times * 0.73), y0, at.x(times * 1.37), y1);
  if (task.chance !== null) {
    level(plot, at.y(task.chance), at.box, colors.muted, GUESS);
    const x = at.x(Math.sqrt(data.times[0] * data.times[1]));
    text(plot, "guessing", x, at.y(task.chance) - 8, { align: "center", size: 11, halo: true });
  }
  drawLengths(plot, data, there, at);
  if (!distances) return;
  const box = beside ? { left: width * 0.56 + 40, top } : { left: 40, top: 370 };
  drawDistances(plot, data, { task, there, times, range, tokens }, { ...box, right: 12, bottom: 42 });
}

function drawLengths(plot, data, there, at) {
  const room = (at.box.x1 - at.box.x0) / data.times.length;
  const reach = Math.min(6, room / 14);
  there.forEach(({ entry, color, second }, i) => {
    const middles = data.times.map((n) => at.x(n) + (there.length > 1 ? (i - 0.5) * room * 0.42 : 0) - reach);
    const medians = entry.scores.map((values) => at.y(spread(values).median));
    curve(plot, middles, medians, color, { width: 1.3, alpha: 0.6, dash: dash(second) });
    entry.scores.forEach((values, k) => {
      drawSeeds(plot, values, (value, across) => [middles[k] + across, at.y(value)], color, second, reach);
      const aside = middles[k] + reach + 7;
      for (const value of entry.twice?.[k] ?? []) drawMark(plot, "triangle", aside, at.y(value), color);
      const mark = (kind, seeds) => seeds && drawMark(plot, kind, aside, at.y(spread(seeds).median), color);
      mark("cross", entry.bfloat16[k]);
      mark("plus", entry.stored[k]);
    });
  });
}

function drawDistances(plot, data, { task, there, times, range, tokens }, box) {
  const { ctx, colors } = plot;
  const edges = data.bins;
  const at = axes(plot, {
    x: [edges[0], edges.at(-1)],
    xLog: true,
    y: range,
    xTicks: edges.filter((_, i) => i % 2 === 0),
    xFormat: (v) => num(v, 0),
    yTicks: scoreTicks(task),
    yFormat: short,
    xLabel: "distance of the answer (tokens)",
    box,
  });
  const { x0, y0 } = at.box;
  text(plot, `by distance, in ${tokens}`, x0, box.top < 100 ? 10 : y0 - 22, { color: colors.ink });
  const edge = at.x(task.window);
  upright(plot, edge, at.box, colors.muted, GUESS);
  text(plot, "trained", edge - 5, y0 - 7, { align: "right", size: 11, halo: true });
  text(plot, "new", edge + 5, y0 - 7, { size: 11, halo: true });
  if (task.chance !== null) level(plot, at.y(task.chance), at.box, colors.muted, GUESS);
  for (const { entry, color, second } of there) {
    const rows = entry.bins[data.times.indexOf(times)];
    const xs = rows.map((_, i) => at.x(Math.sqrt(edges[i] * edges[i + 1])));
    const [medians, lows, highs] = [0, 1, 2].map((which) => rows.map((row) => at.y(row[which])));
    ctx.beginPath();
    xs.forEach((x, i) => ctx.lineTo(x, lows[i]));
    xs.toReversed().forEach((x, i) => ctx.lineTo(x, highs.at(-1 - i)));
    ctx.globalAlpha = colors.dark ? 0.22 : 0.14;
    ctx.fillStyle = color;
    ctx.fill();
    ctx.globalAlpha = 1;
    curve(plot, xs, medians, color, { width: 2, dash: dash(second) });
    xs.forEach((x, i) => disc(plot, x, medians[i], 3.4, second ? colors.paper : color, { ring: color }));
  }
}

// ---- what is done before a longer text ----------------------------------------------------------

const pitch = (width) => (wide(width) ? 25 : 40);
const rowsTop = (width) => (wide(width) ? 50 : 66);

/** The height of the rows of these groups. */
export const aidsHeight = (width, groups) =>
  rowsTop(width) + (1 + groups.flat().length) * pitch(width) + 6 * groups.length + 40;

/** Every seed's score after each aid, in rows; returns [{ words, from, to }, ...]. */
export function drawAids(plot, data, { task, there, groups, aid, range }) {
  const { colors, width } = plot.clear();
  if (!there.length) return [];
  const broad = wide(width);
  const left = broad ? 236 : 12;
  const rows = placed(groups, width);
  const at = axes(plot, {
    x: range,
    y: [0, 1],
    xTicks: scoreTicks(task),
    xFormat: short,
    yTicks: [],
    xLabel: task.unit === "bits" ? "bits a byte" : "accuracy",
    box: { left, top: rowsTop(width), right: 14, bottom: 40 },
  });
  const done = rows.length > 1 ? "what was done before the test" : "nothing else was tried";
  text(plot, `at ${data.aided_times} windows: ${done}`, broad ? 4 : left, 18, { color: colors.ink });
  drawNames(plot, there, (i) => (broad ? [left + ((width - left) / 2) * i, 35] : [left + 5, 35 + 16 * i]));
  for (const { words, first, from } of rows) {
    const between = { x0: 4, x1: at.box.x1 };
    if (first || (words && !broad)) level(plot, from - 3, between, colors.rule, { width: 1 });
  }
  if (task.chance !== null) upright(plot, at.x(task.chance), at.box, colors.muted, GUESS);
  const plain = ({ entry }) => entry.scores[data.times.indexOf(data.aided_times)];
  for (const one of there) {
    const x = at.x(spread(plain(one)).median);
    upright(plot, x, at.box, one.color, { width: 1, alpha: 0.5, dash: dash(one.second) });
  }
  for (const { words, from, to } of rows) {
    const chosen = words === aid;
    if (chosen) drawBand(plot, 0, from, width, to);
    const [x, y, align] = broad ? [left - 12, (from + to) / 2, "right"] : [left, from + 8, "left"];
    const color = chosen ? colors.ink : colors.muted;
    text(plot, words ?? "nothing", x, y, { align, color, bold: chosen, halo: true });
    there.forEach((one, i) => {
      const values = words ? one.entry.aids[words] : plain(one);
      const lane = (broad ? y : from + 26) + (there.length > 1 ? (i - 0.5) * 12 : 0);
      const place = (value, across) => [at.x(value), lane + across];
      if (values) drawSeeds(plot, values, place, one.color, one.second, 3);
    });
  }
  return rows;
}

/** The rows with their heights: one for nothing, and then the groups, a little apart. */
function placed(groups, width) {
  let y = rowsTop(width);
  const row = (words, first) => {
    if (first) y += 6;
    const from = y;
    y += pitch(width);
    return { words, first, from, to: y };
  };
  return [row(null, false), ...groups.flatMap((group) => group.map((words, i) => row(words, i === 0)))];
}

// ---- one head -----------------------------------------------------------------------------------

/** The hands of the first head, and what every head uses and attends to; returns the axes of the attention. */
export function drawHead(plot, there, m) {
  const { colors, width } = plot.clear();
  if (!there.length) return null;
  const broad = wide(width);
  const [{ name, color, entry: head }] = there;
  const size = broad ? 236 : 210;
  const cx = broad ? size / 2 + 4 : width / 2;
  const [left, top] = broad ? [size + 62, 12] : [46, size + 56];
  text(plot, `${name}: layer ${head.layer + 1}, seed 0`, broad ? 4 : 12, 22, { color, bold: true });
  text(plot, `the hands after ${num(m, 0)} token${m === 1 ? "" : "s"}`, cx, size + 46, { align: "center" });
  drawDial(plot, cx, 36 + size / 2, size / 2 - 4, head, m);
  drawUsage(plot, there, left, top);

  const last = Math.max(...there.map(({ entry }) => entry.attention.length)) - 1;
  const peak = Math.max(...there.flatMap(({ entry }) => entry.attention));
  const field = axes(plot, {
    x: [0, Math.max(last, 32)],
    y: [0, peak * 1.05],
    yFormat: percent,
    xLabel: "distance (tokens)",
    box: { left, top: top + 144, right: 12, bottom: 42 },
  });
  text(plot, "attention at the training length", field.box.x0, top + 130, { color: colors.ink });
  for (const [i, one] of [...there.entries()].reverse()) {
    const { attention } = one.entry;
    const xs = attention.map((_, d) => field.x(d));
    curve(plot, xs, attention.map(field.y), one.color, { width: i ? 1.4 : 2, dash: dash(i) });
  }
  const x = field.x(Math.min(m, last));
  upright(plot, x, field.box, colors.ink, { width: 1, alpha: m > last ? 0 : 0.6 });
  const missing = { align: "right", size: 11.5, halo: true };
  if (m <= last) disc(plot, x, field.y(head.attention[m] ?? 0), 4.5, color);
  else text(plot, "not measured so far", field.box.x1, field.box.y0 + 4, missing);
  return field;
}

function drawUsage(plot, there, left, top) {
  const pairs = there[0].entry.usage.length;
  const most = Math.max(...there.flatMap(({ entry }) => entry.usage));
  const bars = axes(plot, {
    x: [-0.6, pairs - 0.4],
    y: [0, most * 1.05],
    xTicks: [],
    yFormat: percent,
    box: { left, top: top + 28, right: 12, bottom: plot.height - top - 112 },
  });
  text(plot, "share of |q||k| in each pair, fast to slow", bars.box.x0, top + 14, { color: plot.colors.ink });
  const wide = ((bars.box.x1 - bars.box.x0) / pairs) * 0.72;
  there.forEach(({ entry, color }, i) =>
    entry.usage.forEach((share, pair) => {
      const [x, y] = [bars.x(pair) - wide / 2, bars.y(share)];
      if (i) {
        level(plot, y, { x0: x, x1: x + wide }, color, { width: 2 });
      } else {
        plot.ctx.fillStyle = pairColor(pair, pairs);
        plot.ctx.fillRect(x, y, wide, bars.box.y1 - y);
      }
    }),
  );
}

function drawDial(plot, cx, cy, radius, head, m) {
  const { ctx, colors } = plot;
  const pairs = head.usage.length;
  const inner = radius * 0.16;
  const gap = (radius - 12 - inner) / (pairs - 1);
  const most = Math.max(...head.usage);
  ctx.save();
  ctx.strokeStyle = colors.rule;
  ctx.beginPath();
  ctx.arc(cx, cy, radius - 2, 0, TURN);
  ctx.stroke();
  const hands = head.usage.map((share, i) => ({ i, share, angle: m * head.inv_freq[i], ring: radius - 12 - i * gap }));
  for (const { i, share, angle, ring } of hands) {
    const way = shortWay(angle);
    ctx.beginPath();
    ctx.arc(cx, cy, ring, 0, -way, way > 0);
    ctx.lineWidth = 1 + 3 * (share / most);
    ctx.strokeStyle = pairColor(i, pairs);
    ctx.globalAlpha = 0.5;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colors.ink;
  ctx.lineWidth = 1.25;
  line(ctx, cx + inner - 6, cy, cx + radius - 2, cy);
  for (const { i, share, angle, ring } of hands) {
    const size = 1.8 + 7.5 * Math.sqrt(share / most);
    disc(plot, cx + ring * Math.cos(angle), cy - ring * Math.sin(angle), size, pairColor(i, pairs));
  }
  ctx.restore();
}
