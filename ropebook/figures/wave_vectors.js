// A wave vector a pair over its wave, the mean of all over (dx, dy), the best A(dx) + B(dy), and what that misses.
import { colorBar, curve, disc, line, paintCells, text } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, short, TURN } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";

const PAIRS = 8;
const LONGEST = 1.25; // rad a patch: the edge of the half plane

// ---- the mathematics ----------------------------------------------------------------------------

/** So many frequencies, base^0, base^(-1/count), base^(-2/count), ... */
const frequencies = (base, count) => Array.from({ length: count }, (_, i) => base ** (-i / count));

/** One of each of two lists in turn. */
const dealt = (a, b) => a.flatMap((vector, i) => [vector, b[i]]);

const PLANS = {
  axial: () => turnedAxes(100, 0),
  Pixtral: () => frequencies(10000, PAIRS).map((freq, i) => (i % 2 ? [freq, 0] : [0, freq])),
  // two turns from edge to edge: slower a patch, the more patches there are
  DINOv3: (size) => turnedAxes(100, 0).map((vector) => vector.map((value) => (value * 2 * TURN) / size)),
  mixed: () => turnedAxes(10, TURN / 8),
};

const along = (freq, angle) => [freq * Math.cos(angle), freq * Math.sin(angle)];

/** The same frequencies along two axes at right angles, turned by an angle. */
function turnedAxes(base, angle) {
  const each = frequencies(base, PAIRS / 2);
  const column = each.map((freq) => along(freq, angle));
  return dealt(
    column,
    column.map(([x, y]) => rightHalf([-y, x])),
  );
}

/** Of k and -k, which give the same cosines, the one that is drawn. */
export const rightHalf = ([x, y]) => (x < -1e-12 || (Math.abs(x) <= 1e-12 && y < 0) ? [-x, -y] : [x, y]);

/** The wave vectors of a plan in an image so many patches wide, radians per column and per row, fast to slow. */
export function planVectors(plan, size) {
  return PLANS[plan](size).map((vector) => vector.map((value) => (Math.abs(value) < 1e-12 ? 0 : value)));
}

/** The vector nearest to (x, y) that the half plane has. */
export function held([x, y]) {
  const [right, down] = [clamp(x, 0, LONGEST), clamp(y, -LONGEST, LONGEST)];
  const size = Math.hypot(right, down);
  const part = size > LONGEST ? LONGEST / size : 1;
  return [right, down].map((value) => (Math.abs(value) < 1e-9 ? 0 : value * part)); // steps leave a rounding error
}

/** Mean over the pairs of cos(k . (dx, dy)): the score of equal vectors. */
export function meanCosine2(dx, dy, vectors) {
  return vectors.reduce((sum, [x, y]) => sum + Math.cos(x * dx + y * dy), 0) / vectors.length;
}

/** D, the root mean square over the pairs of |1 - exp(i k . (dx, dy))|. */
export function codeDistance2(dx, dy, vectors) {
  const sum = vectors.reduce((all, [x, y]) => all + Math.sin((x * dx + y * dy) / 2) ** 2, 0);
  return 2 * Math.sqrt(sum / vectors.length);
}

const average = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

/** A map less the best A(dx) + B(dy), by least squares: the means of its rows and of its columns. */
export function leftOver(map) {
  const rows = map.map(average);
  const columns = map[0].map((_, column) => average(map.map((row) => row[column])));
  const all = average(rows);
  return map.map((row, i) => row.map((value, j) => value - rows[i] - columns[j] + all));
}

/**
 * All offsets within an image of so many patches a side: { reach, mean, left, most, nearest, distance,
 * turned, off }. mean and left: rows of the map S, dy from -reach to reach, and of what the best
 * A(dx) + B(dy) leaves over, which is `most` at most; nearest: the offsets of the nearest code, which is
 * at this distance; turned: how much S(dx, dy) and S(dy, dx) differ at most; off: the vectors that lie
 * on no axis.
 */
export function survey(vectors, size) {
  const reach = size - 1;
  const steps = Array.from({ length: 2 * reach + 1 }, (_, i) => i - reach);
  const mean = steps.map((dy) => steps.map((dx) => meanCosine2(dx, dy, vectors)));
  const at = (dx, dy) => mean[dy + reach][dx + reach];
  const left = leftOver(mean);
  const half = steps.flatMap((dy) => steps.filter((dx) => dx > 0 || (dx === 0 && dy > 0)).map((dx) => ({ dx, dy })));
  const all = half.map((offset) => ({ ...offset, distance: codeDistance2(offset.dx, offset.dy, vectors) }));
  const distance = Math.min(...all.map((offset) => offset.distance));
  const most = Math.max(...left.flat().map(Math.abs));
  const turned = Math.max(...half.map(({ dx, dy }) => Math.abs(at(dx, dy) - at(dy, dx))));
  const near = all.filter((offset) => offset.distance < distance + 1e-9);
  const nearest = near.map(({ dx, dy }) => [dx, dy]).sort(([a, b], [c, d]) => Math.hypot(a, b) - Math.hypot(c, d));
  const off = vectors.filter(([x, y]) => Math.abs(x) > 1e-9 && Math.abs(y) > 1e-9).length;
  return { reach, mean, left, most, nearest, distance, turned, off };
}

// ---- what is said -------------------------------------------------------------------------------

const sized = (x) => num(x, x && Math.abs(x) < 0.01 ? 4 : 2);
const offset = ([dx, dy]) => `(${num(dx, 0)}, ${num(dy, 0)})`;

function nearestWords(nearest, distance) {
  const d = `D = **${sized(distance)}**`;
  if (nearest.length > 2) return `**${nearest.length}** offsets, ${offset(nearest[0])} the shortest, ${d}`;
  return `${nearest.map(offset).join(" and ")}, ${d}`;
}

/** What is said of a survey of a plan's vectors (null: the reader's own), an image of so many patches a side, and a pair and its vector. */
export function words(plan, size, pair, [x, y], { most, nearest, distance, turned, off }) {
  const whose = plan ? ` (${plan})` : "";
  const answer = off
    ? `Together${whose}: **${off}** of ${PAIRS} arrows ${off === 1 ? "lies" : "lie"} off the axes; ` +
      `a row + column sum misses up to **${sized(most)}**.`
    : `Apart${whose}: all **${PAIRS}** arrows lie on the axes, and a row + column sum misses nothing.`;
  const same = turned < 1e-9 ? "the same map" : `a map that differs by up to **${sized(turned)}**`;
  const freq = Math.hypot(x, y);
  const wave = freq < 1e-9 ? "it stands still" : `one turn in **${num(TURN / freq, 1)}** patches along its arrow`;
  return (
    `${answer}\nThe score is that of equal vectors, the mean cosine of all ${PAIRS} pairs; the sum is A(dx) + B(dy), the best by least squares. ` +
    `Nearest code in an image of ${size} × ${size} patches: ${nearestWords(nearest, distance)}. ` +
    `Rows and columns exchanged: ${same}. Pair **${pair}** turns by **${sized(x)}** rad a column, ` +
    `**${sized(y)}** a row: ${wave}.`
  );
}

const LABEL =
  "The wave vector of each of 8 pairs as an arrow, over the wave of the chosen one; then three maps over the offset of " +
  "two patches, columns across and rows down: their score, the best sum A(dx) + B(dy), and what that misses";
const NOTICE =
  "On the axes, ridges run along the row and the column only, whatever a query and a key hold: a pair on an axis " +
  "does not see the other number.";

// ---- the picture --------------------------------------------------------------------------------

const FAR = 22; // pixels from an arrow's head where it can be taken
const NEAR = 3; // pixels within which an arrow's head lies on an axis
const TITLE = 24;
const UNDER = 48; // ticks and the colours' meaning
const LEFT = 24; // ticks beside a map
const [LOW, HIGH] = [-0.5, 1]; // of all three maps

/** Where the plane { x, y, radius, box } and the three maps lie: in a row, or in two. */
function layout(width) {
  const box = (x0, y0, side) => ({ x0, x1: x0 + side, y0, y1: y0 + side });
  const row = width >= 560;
  const side = row ? Math.min((width - 3 * LEFT - 34) / 4, 250) : (width - 2 * LEFT - 18) / 2;
  const right = width - side - 8; // the last map of a row
  const lower = 2 * TITLE + side + 18;
  const maps = row
    ? [2, 1, 0].map((back) => box(right - back * (side + LEFT + 8), TITLE, side))
    : [box(right, TITLE, side), box(LEFT, lower, side), box(right, lower, side)];
  const own = box(row ? 2 : LEFT, TITLE, side);
  const plane = { x: own.x0 + side / 2, y: TITLE + side / 2, radius: side / 2, box: own };
  return { plane, maps, bottom: maps[2].y1 + UNDER };
}

export default figure((fig) => {
  const vectors = () =>
    fig.traits.vectors.length ? fig.traits.vectors : planVectors(fig.traits.plan, fig.traits.size);
  const move = (pair, vector) => fig.set({ vectors: vectors().with(pair, held(vector)), pair });
  const vectorAt = (x, y) => {
    const { plane } = layout(plot.width);
    const onAxis = (pixels) => (Math.abs(pixels) < NEAR ? 0 : pixels);
    return [x - plane.x, y - plane.y].map((pixels) => (onAxis(pixels) / plane.radius) * LONGEST);
  };
  /** The pair whose head is near enough to be taken; -1: none. */
  const headAt = (x, y) => {
    const [kx, ky] = vectorAt(x, y);
    const away = vectors().map(([ax, ay]) => Math.hypot(ax - kx, ay - ky));
    const least = Math.min(...away);
    return (least / LONGEST) * layout(plot.width).plane.radius > FAR ? -1 : away.indexOf(least);
  };
  const plot = fig.canvas({
    label: LABEL,
    help: "Drag the head of an arrow.",
    height: (width) => layout(width).bottom,
    point({ x, y }) {
      plot.canvas.style.cursor = headAt(x, y) < 0 ? "default" : "grab";
    },
    drag({ x, y, begins }) {
      const pair = begins ? headAt(x, y) : fig.traits.pair;
      if (pair < 0) return false;
      if (begins) fig.set({ pair });
      else move(pair, vectorAt(x, y));
      return true;
    },
    keys({ dx, dy }) {
      const [x, y] = vectors()[fig.traits.pair];
      move(fig.traits.pair, [x + 0.05 * dx, y + 0.05 * dy]);
    },
  });
  // a plan puts all vectors back, the one that was chosen before, too
  const back = () => fig.set({ vectors: [] });
  const choices = () => fig.controls.plan?.querySelectorAll("button") ?? [];
  fig.whenChanged("plan", back);
  for (const button of choices()) button.addEventListener("click", back);

  fig.draw(() => {
    const { plan, size, pair } = fig.traits;
    const now = vectors();
    const own = fig.traits.vectors.length > 0;
    for (const button of choices()) button.setAttribute("aria-pressed", String(!own && button.textContent === plan));
    const seen = survey(now, size);
    plot.clear();
    const { plane, maps } = layout(plot.width);
    const { reach, mean, left } = seen;
    drawPlane(plot, plane, now, pair, reach, !own);
    drawMap(plot, maps[0], "score of two patches", reach, (dx, dy) => mean[dy][dx]);
    drawMap(plot, maps[1], "= best row + column", reach, (dx, dy) => mean[dy][dx] - left[dy][dx]);
    if (seen.most < 1e-9) drawMap(plot, maps[2], "+ what that misses", reach);
    else drawMap(plot, maps[2], `+ missed, up to ${sized(seen.most)}`, reach, (dx, dy) => left[dy][dx]);
    const { x0, x1, y1 } = maps[2];
    colorBar(plot, (x0 + x1) / 2, y1 + 22, (x1 - x0) / 2, "cosine", [
      [0, "≤ −½"],
      [1, "1"],
    ]);
    fig.say(words(own ? null : plan, size, pair, now[pair], seen));
    const { most, nearest, distance, turned, off } = seen;
    fig.root.dataset.values = JSON.stringify({ plan, size, pair, vectors: now, most, nearest, distance, turned, off });
  });

  fig.showMe(async () => {
    fig.set({ plan: "axial", vectors: [], pair: 0, size: 16 });
    await fig.pause(1200);
    for (const pair of [0, 1, 2, 3]) {
      const [x, y] = vectors()[pair];
      for (let step = 1; step <= 24; step++) {
        if (fig.reducedMotion && step < 24) continue;
        const angle = ((TURN / 8) * step) / 24;
        const turn = pair % 2 ? angle : -angle; // both towards the same diagonal
        move(pair, [x * Math.cos(turn) + y * Math.sin(turn), y * Math.cos(turn) - x * Math.sin(turn)]);
        await fig.pause(30);
      }
      await fig.pause(900);
    }
    for (const plan of ["Pixtral", "DINOv3", "mixed"]) {
      fig.set({ plan, vectors: [], pair: 0 });
      await fig.pause(2200);
    }
  });
  fig.notice(NOTICE);
});

/** The arrows in their half plane, the chosen one in front; behind them its wave. */
function drawPlane(plot, { x, y, radius, box }, vectors, pair, reach, fresh) {
  const { ctx, colors } = plot;
  const scale = radius / LONGEST;
  text(plot, `arrows, wave of pair ${pair}`, box.x0, 10, { color: colors.ink, size: 12.5, bold: true });
  const [kx, ky] = vectors[pair];
  const count = 2 * reach + 1;
  ctx.globalAlpha = 0.3;
  paintCells(plot, box, count, count, "cosine", (column, row) =>
    Math.round((0.5 + 0.5 * Math.cos(kx * (column - reach) + ky * (row - reach))) * 255),
  );
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colors.muted;
  ctx.lineWidth = 1;
  for (const ring of [0.5, 1]) {
    ctx.beginPath();
    ctx.arc(x, y, ring * scale, -TURN / 4, TURN / 4);
    ctx.stroke();
    text(plot, ring === 1 ? "1 rad" : short(ring), x - 5, y - ring * scale, {
      size: 11.5,
      halo: true,
      align: "right",
      color: colors.ink,
    });
  }
  ctx.strokeStyle = colors.ink;
  line(ctx, x, y - radius, x, y + radius);
  line(ctx, x, y, x + radius, y);
  const long = (i) => Math.hypot(...vectors[i]) * scale;
  const order = [...vectors.keys()].filter((i) => i !== pair).sort((a, b) => long(b) - long(a)); // the short in front
  for (const i of [...order, pair]) {
    const [tipX, tipY] = [x + vectors[i][0] * scale, y + vectors[i][1] * scale];
    const color = pairColor(i, PAIRS);
    const radius = Math.min(3 + long(i) / 10, 6);
    curve(plot, [x, tipX], [y, tipY], color, { width: i === pair ? 3 : 2 });
    disc(plot, tipX, tipY, i === pair ? radius + 2 : radius, color, i === pair ? { ring: colors.ink } : {});
  }
  const said = { size: 11.5, halo: true, color: colors.ink };
  text(plot, "row ↓", x - 12, y + radius - 10, { ...said, align: "right" });
  text(plot, "column →", box.x1, box.y1 + 10, { size: 11.5, align: "right" });
  const [tipX, tipY] = [x + kx * scale, y + ky * scale];
  if (fresh) text(plot, "drag", tipX, tipY + 19, { ...said, align: "center", size: 12.5, bold: true });
}

/** A value of every offset; value(column, row) counts from the corner. Without one, a place where something can appear. */
function drawMap(plot, box, title, reach, value) {
  const { ctx, colors } = plot;
  const count = 2 * reach + 1;
  const at = (d, from) => from + ((d + reach + 0.5) / count) * (box.x1 - box.x0);
  const part = (column, row) => clamp((value(column, row) - LOW) / (HIGH - LOW), 0, 1);
  text(plot, title, box.x0, box.y0 - 14, { color: colors.ink, size: 12.5, bold: true });
  ctx.globalAlpha = colors.dark ? 0.8 : 1; // a pale map glares on a dark page
  if (value) paintCells(plot, box, count, count, "cosine", (column, row) => Math.round(part(column, row) * 255));
  ctx.globalAlpha = 1;
  if (!value) drawNothing(plot, box);
  const far = Math.floor(reach / 5) * 5;
  for (const d of [-far, 0, far]) {
    text(plot, num(d, 0), at(d, box.x0), box.y1 + 10, { align: "center", size: 11.5 });
    text(plot, num(d, 0), box.x0 - 5, at(d, box.y0), { align: "right", size: 11.5 });
  }
  text(plot, "dx", at(-far / 2, box.x0), box.y1 + 10, { align: "center", size: 11.5 });
  text(plot, "dy", box.x0 - 5, at(-far / 2, box.y0), { align: "right", size: 11.5 });
}

function drawNothing(plot, { x0, x1, y0, y1 }) {
  const [x, y] = [(x0 + x1) / 2, (y0 + y1) / 2];
  curve(plot, [x0, x1, x1, x0, x0], [y0, y0, y1, y1, y0], plot.colors.muted, { width: 1, dash: [4, 4] });
  text(plot, "nothing", x, y - 18, { align: "center", size: 15, color: plot.colors.ink, bold: true });
  text(plot, "until an arrow is", x, y + 4, { align: "center", size: 12 });
  text(plot, "dragged off its axis", x, y + 20, { align: "center", size: 12 });
}
