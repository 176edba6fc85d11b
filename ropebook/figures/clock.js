// All distances at once: how far the code of a head is from its start, and the hands at one of them.
import { cosineSums, nearRepeats } from "./aliasing.js";
import { drawDial } from "./hands.js";
import { axes, disc, level, text } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, TURN } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { BASE, codeDistance, inverseFrequencies, ownFrequencies, shortWay } from "./rope.js";

const FARTHEST = 131072;
const LABELLED = [44, 710, 103993];
const DIALS = 8;

/** The frequencies of a head with so many pairs, or those of the reader's own model. */
const freqOf = (hands) => (typeof hands === "number" ? inverseFrequencies(2 * hands, BASE) : hands);

const SLOW = 1e-3; // rad a token: where the fastest pair is slower, a sum of cosines loses the digits

/** -D(m)^2 of the distances m = 0 .. FARTHEST: the larger, the nearer the code. */
function nearness(theta) {
  if (theta[0] < SLOW) return Float64Array.from({ length: FARTHEST + 1 }, (_, m) => -(codeDistance(m, theta) ** 2));
  return cosineSums(theta, FARTHEST).map((sum) => (2 * sum) / theta.length - 2);
}

/** The last distance of each of `columns` columns of a logarithmic axis from 1 to FARTHEST. */
function columnEnds(columns) {
  return Array.from({ length: columns }, (_, k) =>
    k === columns - 1 ? FARTHEST : Math.floor(FARTHEST ** ((k + 0.5) / (columns - 1))),
  );
}

/**
 * D(m) of all distances 1 .. FARTHEST for so many pairs, or those of given frequencies: { neighbour, count, nearest,
 * records, columns }. count: the distances beyond 1 that are no farther than the neighbour; records:
 * those nearer than all before them; columns: { low, high, at } of the distances in each column of a
 * logarithmic axis (at: the distance of low), or null where there is none.
 */
export function survey(hands, columns) {
  const sums = nearness(freqOf(hands));
  const far = (m) => Math.sqrt(Math.max(-sums[m], 0));
  const records = [1];
  let count = 0;
  let m = 1;
  const found = columnEnds(columns).map((end) => {
    if (m > end) return null;
    let [least, most] = [m, m];
    for (; m <= end; m++) {
      if (sums[m] > sums[least]) least = m;
      if (sums[m] < sums[most]) most = m;
      if (sums[m] >= sums[1] && m > 1) count += 1;
      if (sums[m] > sums[records.at(-1)]) records.push(m);
    }
    return { low: far(least), high: far(most), at: least };
  });
  return { neighbour: far(1), count, nearest: records.at(-1), records, columns: found };
}

/** The distances that the arrow keys walk: where the fastest hand, or all, come nearer than ever before. */
export function landmarks(records, fastest = 1) {
  const ofOne = nearRepeats(fastest, FARTHEST).map(({ distance }) => distance);
  return [...new Set([...ofOne, ...records])].sort((a, b) => a - b);
}

/** The three distances that have their numbers: where a fastest hand of such a frequency comes nearest to its start. */
function labelled(fastest) {
  if (Math.abs(fastest - 1) < 1e-6) return LABELLED; // a measured frequency is off by a rounding
  const records = nearRepeats(fastest, FARTHEST);
  return records.slice(-3).map(({ distance }) => distance);
}

/** So many landmarks on from m, or back, or the last there is. */
export function walk(marks, m, step) {
  const ahead = step < 0 ? marks.filter((mark) => mark < m).reverse() : marks.filter((mark) => mark > m);
  return ahead[Math.abs(step) - 1] ?? ahead.at(-1) ?? m;
}

const fine = (x) => (x < 1e-9 ? "0" : num(x, x < 0.01 ? 6 : 3));

/** What is said of so many pairs, or those of given frequencies, of which the survey is given, and of a distance m. */
export function words(m, given, { neighbour, count, nearest }) {
  const theta = freqOf(given);
  const still = theta.filter((freq) => freq === 0).length;
  const standing = still ? ` (${still === 1 ? "1 stands" : `${still} stand`} still)` : "";
  const hands = theta.length === 1 ? "one hand" : `${theta.length} hands${standing}`;
  const answer = count
    ? `With **${hands}**, yes: **${num(count, 0)}** ${count === 1 ? "distance is" : "distances are"} ` +
      `as near as a neighbour or nearer, ` +
      `**${num(nearest, 0)}** the nearest.`
    : `With **${hands}**, no: no distance from 2 to ${num(FARTHEST, 0)} comes as near as a neighbour.`;
  const d = codeDistance(m, theta);
  const here =
    m === 1
      ? `Distance **1**, the neighbour: D(1) = **${fine(neighbour)}**`
      : `Distance **${num(m, 0)}**: D = **${fine(d)}**, a neighbour has ${fine(neighbour)}`;
  const angle = m * theta[0];
  const off = Math.abs(shortWay(angle));
  const turns = Math.round(angle / TURN);
  const side = angle > turns * TURN ? "past" : "short of";
  const after = turns && off < 0.3 && off > 1e-9 ? `, ${side} ${num(turns, 0)} turn${turns === 1 ? "" : "s"}` : "";
  return `${answer}\n${here}. The fastest hand is **${fine(off)}** rad from its start${after}.`;
}

const LABEL =
  "Every distance from 1 to 131,072 on a logarithmic axis and how far its code is from that of distance 0; " +
  "what lies under the line of the neighbour is red. Below it the fastest hands at the chosen distance as dials";
const NOTICE =
  "With eight hands nothing is left below the line: when one hand is back, the others are elsewhere. That holds for " +
  "a head that weighs its hands alike; one that reads a few of them only has no such guarantee.";

/** What is to be noticed of the reader's own model: its survey counts what lies below the line. */
export const noticeOf = ({ count }) =>
  count
    ? "Below the line lie the distances that a head may take for a neighbour, if it weighs these hands alike."
    : "Nothing lies below the line: no distance is taken for a neighbour. That holds for a head that weighs its " +
      "hands alike; one that reads a few of them only has no such guarantee.";

const narrow = (width) => width < 480;
const chartHeight = (width) => (narrow(width) ? 226 : 300);
const dialsHeight = (width) => (narrow(width) ? 92 : 124);

export default figure((fig) => {
  const own = ownFrequencies(fig);
  const handsNow = () => own ?? fig.traits.pairs;
  const famous = labelled(own?.[0] ?? 1);
  let seen = null; // the survey last made, with its { key, marks }
  let chart = null; // axes of the picture
  const plot = fig.canvas({
    label: LABEL,
    help: "Tap a dot, or walk with the arrow keys.",
    height: (width) => chartHeight(width) + dialsHeight(width),
    point({ x, y, type }) {
      if (chart && type === "pointerdown" && y < chart.box.y1 + 8) fig.set({ m: under(x, y) });
    },
    keys({ dx, dy }) {
      const { m } = fig.traits;
      fig.set({ m: dx ? walk(seen.marks, m, dx) : clamp(m - dy, 1, FARTHEST) });
    },
  });

  /** The dot under a point, or the nearest code of the column there. */
  const under = (x, y) => {
    const theta = freqOf(handsNow());
    const away = (m) => Math.hypot(chart.x(m) - x, chart.y(codeDistance(m, theta)) - y);
    const mark = seen.marks.reduce((a, b) => (away(b) < away(a) ? b : a));
    if (away(mark) <= 22) return mark;
    const k = clamp(Math.round(x - chart.box.x0), 0, seen.columns.length - 1);
    const filled = (at) => seen.columns[at]?.at;
    for (let d = 0; ; d++) if (filled(k - d) ?? filled(k + d)) return filled(k - d) ?? filled(k + d);
  };

  fig.draw(() => {
    const { m } = fig.traits;
    const hands = handsNow();
    const theta = freqOf(hands);
    const pairs = theta.length;
    const { width, height } = plot.clear();
    chart = axes(plot, {
      x: [1, FARTHEST],
      y: [0, 2],
      xLog: true,
      xTicks: [1, 10, 100, 1000, 10000, 100000],
      xLabel: "distance (tokens)",
      yLabel: narrow(width) ? "D(m)" : "distance of the codes, D(m)",
      yTicks: [0, 0.5, 1, 1.5, 2],
      box: { left: 44, right: 26, top: 22, bottom: height - chartHeight(width) + 38 },
    });
    const columns = Math.round(chart.box.x1 - chart.box.x0) + 1;
    const key = `${pairs} ${columns}`;
    if (seen?.key !== key) {
      const found = survey(hands, columns);
      seen = { key, marks: landmarks(found.records, theta[0]), famous, ...found };
      if (own) fig.notice(noticeOf(found));
    }
    drawCloud(plot, chart, seen);
    drawMarks(plot, chart, seen, m, theta);
    drawDials(plot, chart.box.y1 + 56, m, theta);
    fig.say(words(m, hands, seen));
    const { neighbour, count, nearest } = seen;
    const now = codeDistance(m, theta);
    fig.root.dataset.values = JSON.stringify({ m, pairs, neighbour, count, nearest, now });
  });

  fig.showMe(async () => {
    if (own) {
      for (const m of [1, ...seen.famous, seen.nearest]) {
        await fig.glide({ m }, 1200);
        await fig.pause(1600);
      }
      return;
    }
    fig.set({ pairs: 1, m: 1 });
    for (const m of [44, 710]) {
      await fig.glide({ m }, 1200);
      await fig.pause(1600);
    }
    for (const [pairs, m] of [
      [2, 84823],
      [4, 100531],
      [8, 710],
    ]) {
      fig.set({ pairs, m });
      await fig.pause(1600);
    }
    await fig.glide({ pairs: 64 }, 2600);
  });
  if (!own) fig.notice(NOTICE);
});

/** Each column's distances from the nearest to the farthest code: grey, and red under the neighbour's line. */
function drawCloud(plot, { x, y, box }, { neighbour, columns }) {
  const { ctx, colors } = plot;
  const border = y(neighbour);
  ctx.fillStyle = colors.warm;
  ctx.globalAlpha = colors.dark ? 0.16 : 0.09;
  ctx.fillRect(box.x0, border, box.x1 - box.x0, box.y1 - border);
  ctx.globalAlpha = 1;
  columns.forEach((column, k) => {
    if (!column) return;
    const { low, high, at } = column;
    const alone = columns[k - 1] === null || columns[k + 1] === null;
    const red = low <= neighbour && at > 1;
    if (alone) return disc(plot, x(at), y(low), 2.5, red ? colors.warm : colors.muted);
    const bar = (from, to, color, alpha) => {
      ctx.fillStyle = color;
      ctx.globalAlpha = alpha;
      ctx.fillRect(box.x0 + k - 0.5, from, 1.05, Math.max(to - from, 1));
    };
    if (high > neighbour || !red) bar(y(high), Math.min(y(low), border), colors.muted, 0.4);
    if (red) bar(Math.max(y(high), border), y(low), colors.warm, 0.55);
    ctx.globalAlpha = 1;
  });
  level(plot, border, box, colors.ink, { width: 1.75 });
}

/** The landmarks as dots, with numbers where there is room: the chosen one, the nearest, the famous three. */
function drawMarks(plot, { x, y, box }, { neighbour, nearest, marks, famous }, m, theta) {
  const { colors } = plot;
  const border = y(neighbour);
  const dot = (mark, radius, ring) => {
    const d = codeDistance(mark, theta);
    const color = mark === m ? colors.accent : d <= neighbour && mark > 1 ? colors.warm : colors.muted;
    disc(plot, x(mark), y(d), radius, color, { ring });
    return { color, at: y(d) };
  };
  for (const mark of marks) dot(mark, 4);
  const said = [];
  for (const mark of new Set([m, nearest, ...famous])) {
    const { color, at } = dot(mark, mark === m ? 7 : 5, mark === m ? colors.ink : colors.paper);
    const label = num(mark, 0);
    const half = 3.6 * label.length + 4;
    const place = clamp(x(mark), box.x0 + half, box.x1 - half);
    if (said.some((other) => Math.abs(other.place - place) < half + other.half && Math.abs(other.at - at) < 16))
      continue;
    said.push({ place, half, at });
    const options = { align: "center", bold: true, halo: true, color: mark === m ? colors.accent : colors.ink };
    text(plot, label, place, at < box.y0 + 20 ? at + 15 : at - 15, mark === m ? options : { ...options, color });
  }
  const line = { color: colors.ink, halo: true };
  text(plot, `as near as a neighbour: D(1) = ${num(neighbour, 2)}`, box.x0 + 6, border + 11, line);
}

/** The fastest hands at distance m, each on a dial of its own, with the way from its start. */
function drawDials(plot, top, m, theta) {
  const { colors, width } = plot;
  const pairs = theta.length;
  const shown = Math.min(pairs, DIALS);
  const cell = Math.min((width - 8) / DIALS, 92);
  const radius = Math.min(cell * 0.42, 30);
  const hands = { 1: "the hand", 2: "both hands" }[pairs] ?? `the ${shown} fastest hands`;
  const title = `At distance ${num(m, 0)}: ${hands}`;
  const whole = narrow(width) ? title : `${title}, and how far from the start`;
  text(plot, whole, 4, top - 8, { color: colors.ink, bold: true });
  for (let i = 0; i < shown; i++) {
    const [cx, cy] = [4 + (i + 0.5) * cell, top + 10 + radius];
    const off = shortWay(m * theta[i]);
    const color = pairColor(i, Math.max(pairs, 2));
    drawDial(plot, [cx, cy], radius, off, color, [[0, off, color, 0.22]]);
    const degrees = (Math.abs(off) * 360) / TURN;
    text(plot, degrees < 0.05 ? "0°" : `${num(degrees, degrees < 10 ? 1 : 0)}°`, cx, cy + radius + 12, {
      align: "center",
      color: colors.ink,
    });
  }
}
