// Angle, wrapped angle and cosine of one pair, and the mean cosine of its head, over all distances at once.
import { angleHorizon, cosineHorizon, cosineSums } from "./aliasing.js";
import { axes, curve, disc, TURN_TICKS, text, upright } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, TURN } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { BASE, inverseFrequencies, meanCosine, shortWay, wrappedAngle } from "./rope.js";

const FARTHEST = 10000;
const WINDOW = 2048; // of the paper's example

/** The frequencies of a head whose fastest pair rotates by theta a token. */
export function handsOf(theta, dim) {
  return inverseFrequencies(dim, BASE).map((freq) => theta * freq);
}

/** What is read at a distance: angle, wrapped angle, cosine, mean cosine of the head. */
export function reading(distance, theta, dim) {
  const angle = distance * theta;
  return {
    angle,
    wrapped: wrappedAngle(angle),
    cosine: Math.cos(angle),
    mean: meanCosine(distance, handsOf(theta, dim)),
  };
}

/** The three horizons: the angle wraps, the cosine turns, the mean cosine of the head turns. */
export function horizons(theta, dim) {
  return { wrap: angleHorizon(theta), cosine: cosineHorizon([theta]), mean: cosineHorizon(handsOf(theta, dim)) };
}

/** What is said: the three horizons of a head, and the reading at a distance. */
export function words(distance, dim, { angle, wrapped, cosine, mean }, { wrap, cosine: turns, mean: all }) {
  const pairs = dim / 2;
  const whole = Math.abs(shortWay(wrapped)) < 1e-9; // turns, but for rounding
  const together = pairs === 2 ? "Both hands" : `All **${pairs}** hands`;
  const there = all > turns ? `later, at **${num(all, 0)}**` : "there, too";
  const others = pairs === 1 ? "This head has no other." : `${together} together turn back ${there}.`;
  const answer = `By one hand, yes: its score rises again at distance **${num(turns, 0)}**. ${others}`;
  return (
    `${answer}\nThe angle wraps first at **${num(wrap, 0)}**. Distance **${num(distance, 0)}**: ` +
    `angle **${num(angle, 3)}** rad, wrapped **${num(whole ? 0 : wrapped, 3)}** rad, ` +
    `its cosine **${num(tidy(cosine), 3)}**, mean cosine of the head **${num(tidy(mean), 3)}**.`
  );
}
const tidy = (x) => (Math.abs(x) < 5e-4 ? 0 : x);

const LABEL =
  "Three panels over the distances 1 to 10,000 on a logarithmic axis: the wrapped angle of the fastest hand, its " +
  "cosine, and the mean cosine of all hands, with a mark where each first turns back";
const NOTICE =
  "Attention sees the cosine, not the angle. Slow the hands, and the upper two curves move to the right as they are: " +
  "flat where neighbours must be told apart.";

const COSINE = { y: [-1.08, 1.08], yTicks: [-1, 0, 1] };
const FINEST = 4; // pixels that a turn needs to be drawn
const narrow = (width) => width < 480;
const panel = (width) => (narrow(width) ? 72 : 104);

export default figure((fig) => {
  let shown = null; // axes of a panel, for the pointer
  const plot = fig.canvas({
    label: LABEL,
    help: "Point at a distance, or use the arrow keys.",
    height: (width) => 3 * (panel(width) + 26) + 44,
    point({ x }) {
      if (shown) fig.set({ distance: clamp(Math.round(shown.invX(x)), 1, FARTHEST) });
    },
    keys({ dx, dy }) {
      fig.set({ distance: clamp(fig.traits.distance + dx - dy, 1, FARTHEST) });
    },
  });

  fig.draw(() => {
    const { theta, dim, distance } = fig.traits;
    const now = reading(distance, theta, dim);
    const turns = horizons(theta, dim);
    const { width, height } = plot.clear();
    const { ink, muted, accent } = fig.colors;
    const color = pairColor(0, 64);
    const row = (index, options) => {
      const top = 22 + index * (panel(width) + 26);
      return axes(plot, {
        x: [1, FARTHEST],
        xLog: true,
        xTicks: index < 2 ? [] : undefined,
        xLabel: index < 2 ? "" : "distance between query and key (tokens)",
        ...options,
        box: { left: 40, right: 24, top, bottom: height - top - panel(width) },
      });
    };

    // what the paper looked at, what attention looks at, and all pairs
    const upper = row(0, { y: [0, TURN], ...TURN_TICKS });
    const middle = row(1, COSINE);
    const lower = row(2, COSINE);
    shown = lower;
    drawAngle(plot, upper, theta, color);
    drawCosine(plot, middle, theta, color);
    drawMean(plot, lower, handsOf(theta, dim), accent);

    const title = (at, said) => text(plot, said, at.box.x0, at.box.y0 - 12, { color: ink, size: 12.5, bold: true });
    title(upper, narrow(width) ? "wrapped angle (rad)" : "wrapped angle of the fastest hand (rad)");
    title(middle, "its cosine");
    title(lower, dim === 2 ? "mean cosine: one hand only" : `mean cosine of all ${dim / 2} hands`);
    drawHorizon(plot, upper, "wraps", turns.wrap);
    drawHorizon(plot, middle, "turns", turns.cosine);
    drawHorizon(plot, lower, "turns", turns.mean);

    const x = upper.x(distance);
    upright(plot, x, { y0: upper.box.y0, y1: lower.box.y1 }, muted, { width: 1 });
    disc(plot, x, upper.y(now.wrapped), 5.5, color, { ring: ink });
    disc(plot, x, middle.y(now.cosine), 5.5, color, { ring: ink });
    disc(plot, x, lower.y(now.mean), 5.5, accent, { ring: ink });

    fig.say(words(distance, dim, now, turns));
    fig.root.dataset.values = JSON.stringify({ theta, dim, distance, ...now, horizons: turns });
  });

  fig.showMe(async () => {
    fig.set({ theta: 1, dim: 128, distance: 1 });
    for (const distance of [4, 7, 12]) {
      await fig.glide({ distance }, 1200);
      await fig.pause(1000);
    }
    await fig.glide({ theta: 0.4096 }, 1800);
    await fig.pause(1400);
    await fig.glide({ theta: 0.03 }, 1800);
    await fig.glide({ theta: Math.PI / WINDOW }, 2200);
  });
  fig.button("1 rad", () => fig.set({ theta: 1, distance: 7 }));
  fig.button("0.4096", () => fig.set({ theta: 0.4096, distance: 16 }));
  fig.button("π/2,048", () => fig.set({ theta: Math.PI / WINDOW, distance: WINDOW }));
  fig.button("2π/2,048", () => fig.set({ theta: TURN / WINDOW, distance: WINDOW }));
  fig.notice(NOTICE);
});

/** Distances from `low` to `high`, one a pixel of the panel. */
function along({ x, invX }, low, high) {
  const [from, to] = [x(Math.max(low, 1)), x(Math.min(high, FARTHEST))];
  const steps = Math.max(Math.ceil(to - from), 1);
  return Array.from({ length: steps + 1 }, (_, k) => invX(from + ((to - from) * k) / steps));
}

/** The pixels that a factor of e takes. */
const spread = ({ box }) => (box.x1 - box.x0) / Math.log(FARTHEST);

/** The distance beyond which a pair's turns are too narrow to draw. */
const drawable = (at, theta) => ((spread(at) / FINEST) * TURN) / theta;

/** A shade over what is too narrow to draw; returns where it begins. */
function drawBlur(plot, at, theta, color) {
  const { ctx } = plot;
  const from = drawable(at, theta);
  if (from >= FARTHEST) return FARTHEST;
  const { x1, y0, y1 } = at.box;
  const x = Math.max(at.x(from), at.box.x0);
  ctx.save();
  ctx.fillStyle = color;
  ctx.globalAlpha = 0.14;
  ctx.fillRect(x, y0, x1 - x, y1 - y0);
  ctx.restore();
  if (x1 - x > 130) text(plot, "too fast to draw", (x + x1) / 2, (y0 + y1) / 2, { align: "center", halo: true });
  return from;
}

function drawDots(plot, at, value, color) {
  for (let m = 1; spread(at) / m > 3; m++) disc(plot, at.x(m), at.y(value(m)), spread(at) / m > 6 ? 3.2 : 2, color);
}

function drawAngle(plot, at, theta, color) {
  const end = drawBlur(plot, at, theta, color);
  for (let run = 0; (run * TURN) / theta < end; run++) {
    const [from, to] = [(run * TURN) / theta, ((run + 1) * TURN) / theta];
    if (to <= 1) continue;
    const points = along(at, from, to);
    const height = (m) => at.y(m * theta - run * TURN);
    curve(plot, points.map(at.x), points.map(height), color, run ? { width: 1.4, alpha: 0.8 } : { width: 2.6 });
  }
  drawDots(plot, at, (m) => wrappedAngle(m * theta), color);
}

function drawCosine(plot, at, theta, color) {
  const points = along(at, 1, drawBlur(plot, at, theta, color));
  const cosine = (m) => Math.cos(m * theta);
  curve(plot, points.map(at.x), points.map(cosine).map(at.y), color, { width: 1.6, alpha: 0.8 });
  drawDots(plot, at, cosine, color);
}

/** As a curve while that can be drawn, then from the lowest to the highest in each pixel. */
function drawMean(plot, at, freq, color) {
  const { ctx } = plot;
  const fine = Math.floor(Math.min(spread(at), drawable(at, freq[0])));
  const points = along(at, 1, fine);
  const mean = (m) => meanCosine(m, freq);
  curve(plot, points.map(at.x), points.map(mean).map(at.y), color, { width: 1.8 });
  const sums = cosineSums(freq, FARTHEST);
  ctx.save();
  ctx.fillStyle = color;
  for (let m = fine, x = at.x(fine); m < FARTHEST; x++) {
    let [low, high] = [sums[m], sums[m]];
    for (; m < FARTHEST && at.x(m) < x + 1; m++) {
      low = Math.min(low, sums[m + 1]);
      high = Math.max(high, sums[m + 1]);
    }
    const [top, bottom] = [at.y(high / freq.length), at.y(low / freq.length)];
    ctx.globalAlpha = clamp(6 / (bottom - top), 0.2, 1); // tall bars are many waves side by side
    ctx.fillRect(x, top - 0.9, 1, bottom - top + 1.8);
  }
  ctx.restore();
  drawDots(plot, at, mean, color);
}

/** Where a panel first turns back: a line, and words above it. */
function drawHorizon(plot, at, verb, horizon) {
  const { warm } = plot.colors;
  text(plot, `${verb} at ${num(horizon, 0)}`, at.box.x1, at.box.y0 - 12, { align: "right", color: warm, bold: true });
  upright(plot, at.x(horizon), at.box, warm, { width: 1.8, dash: [4, 3] });
}
