// Angle, wrapped angle and cosine of one hand, and the mean cosine of its bank, over the distances.
import { angleHorizon, cosineHorizon } from "./aliasing.js";
import { axes, curve, disc, TURN_TICKS, text, upright } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, TURN, ticks } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { BASE, inverseFrequencies, meanCosine, wrappedAngle } from "./rope.js";

const WINDOW = 2048; // of the paper's example

/** The bank whose fastest hand turns by theta a token. */
export function bank(theta, dim) {
  return inverseFrequencies(dim, BASE).map((speed) => theta * speed);
}

/** What is read at a distance: angle, wrapped angle, cosine, mean cosine of the bank. */
export function reading(distance, theta, dim) {
  const angle = distance * theta;
  return {
    angle,
    wrapped: wrappedAngle(angle),
    cosine: Math.cos(angle),
    mean: meanCosine(distance, bank(theta, dim)),
  };
}

/** The three horizons: the angle wraps, the cosine turns, the mean cosine of the bank turns. */
export function horizons(theta, dim) {
  return { wrap: angleHorizon(theta), cosine: cosineHorizon([theta]), mean: cosineHorizon(bank(theta, dim)) };
}

/** The caption: the reading at a distance, and the three horizons. */
export function words(distance, { angle, wrapped, cosine, mean }, { wrap, cosine: turns, mean: all }) {
  return (
    `Distance **${num(distance, 0)}**: angle **${num(angle, 4)}** rad, wrapped **${num(wrapped, 4)}** rad, ` +
    `its cosine **${num(Math.abs(cosine) < 1e-12 ? 0 : cosine, 3)}**, mean cosine of the bank **${num(mean, 3)}**. ` +
    `The angle wraps first at **${num(wrap, 0)}**, the cosine turns at **${num(turns, 0)}**, ` +
    `the mean cosine at **${num(all, 0)}**.`
  );
}

const LABEL =
  "Three panels over the distance: the wrapped angle of the fastest hand, its cosine, and the mean cosine of all " +
  "hands, with a mark where each first turns back";
const NOTICE =
  "The angle wraps at 7, but attention does not see the angle: it sees the cosine, which already turns at 4. And a " +
  "head has many hands: the mean of all turns later, at 12, and does not climb back to where it began in any window " +
  "shown here. Slow the hands until nothing turns in the window, and the curve is almost flat where neighbours must " +
  "be told apart.";

const COSINE = { y: [-1.08, 1.08], yTicks: [-1, 0, 1] };
const narrow = (width) => width < 480;
const panel = (width) => (narrow(width) ? 104 : 118);

export default figure((fig) => {
  let across = null; // where the panels lie, for the pointer
  const keep = (distance) => clamp(distance, 0, fig.traits.window);

  const plot = fig.canvas({
    label: LABEL,
    help: "Point at the picture, or focus it and use the arrow keys, to read a distance.",
    height: (width) => 3 * (panel(width) + 26) + 44,
    point({ x }) {
      if (across)
        fig.set({ distance: keep(Math.round(((x - across.x0) / (across.x1 - across.x0)) * fig.traits.window)) });
    },
    keys({ dx, dy }) {
      fig.set({ distance: keep(fig.traits.distance + dx - dy) });
    },
  });

  fig.draw(() => {
    const { theta, window, dim } = fig.traits;
    const distance = keep(fig.traits.distance);
    const now = reading(distance, theta, dim);
    const turns = horizons(theta, dim);
    const { width, height } = plot.clear();
    const { ink, muted, accent } = fig.colors;
    const hand = pairColor(0, 64);
    const hands = bank(theta, dim);
    const row = (index, options) => {
      const top = 22 + index * (panel(width) + 26);
      return axes(plot, {
        x: [0, window],
        xTicks: index < 2 ? [] : ticks(0, window, width / 90).filter(Number.isInteger),
        xLabel: index < 2 ? "" : "distance between query and key (tokens)",
        ...options,
        box: { left: 40, right: 14, top, bottom: height - top - panel(width) },
      });
    };
    const radius = window > 120 ? 0 : window > 50 ? 2.2 : 3.4; // of the dots of whole distances
    const faint = fig.colors.dark ? 0.75 : 0.45; // of the curves under them

    // what the paper looked at
    const upper = row(0, { y: [0, TURN], ...TURN_TICKS });
    across = upper.box;
    drawAngle(plot, upper, theta, window, hand, { radius, alpha: radius ? faint : 0.85 });

    // what attention looks at
    const middle = row(1, COSINE);
    const cosine = (m) => Math.cos(m * theta);
    drawCosine(plot, middle, cosine, window, hand, { radius, width: 1.6, alpha: radius ? faint : 0.9 });
    const lower = row(2, COSINE);
    const mean = (m) => meanCosine(m, hands);
    drawCosine(plot, lower, mean, window, accent, { radius, width: 1.8, alpha: radius ? 0.5 : 1 });

    const title = (at, words) => text(plot, words, at.box.x0, at.box.y0 - 12, { color: ink, size: 12.5, bold: true });
    title(upper, narrow(width) ? "wrapped angle (rad)" : "wrapped angle of the fastest hand (rad)");
    title(middle, "its cosine");
    title(lower, dim === 2 ? "mean cosine (there is one hand only)" : `mean cosine of all ${dim / 2} hands`);
    drawHorizon(plot, upper, "wraps", turns.wrap, window);
    drawHorizon(plot, middle, "turns", turns.cosine, window);
    drawHorizon(plot, lower, "turns", turns.mean, window);

    const x = upper.x(distance);
    upright(plot, x, { y0: upper.box.y0, y1: lower.box.y1 }, muted, { width: 1 });
    disc(plot, x, upper.y(now.wrapped), 5.5, hand, { ring: ink });
    disc(plot, x, middle.y(now.cosine), 5.5, hand, { ring: ink });
    disc(plot, x, lower.y(now.mean), 5.5, accent, { ring: ink });

    fig.say(words(distance, now, turns));
    const finite = Object.entries(turns).map(([name, value]) => [name, Number.isFinite(value) ? value : null]);
    const shown = { theta, window, dim, distance, ...now, horizons: Object.fromEntries(finite) };
    fig.root.dataset.values = JSON.stringify(shown);
  });

  fig.showMe(async () => {
    fig.set({ theta: 1, window: 20, dim: 128, distance: 0 });
    await fig.glide({ distance: 4 }, 1600);
    await fig.pause(1200);
    await fig.glide({ distance: 7 }, 1200);
    await fig.pause(1200);
    await fig.glide({ distance: 20 }, 1600);
    await fig.pause(600);
    await fig.glide({ theta: 0.4096, window: 50, distance: 16 }, 2200);
    await fig.pause(1800);
    fig.set({ window: WINDOW, distance: WINDOW, theta: 0.03 });
    await fig.glide({ theta: Math.PI / WINDOW }, 3200);
  });
  fig.button("Figure 1: θ₀ = 1", () => fig.set({ theta: 1, window: 20, distance: 7 }));
  fig.button("Figure 2's caption: 0.4096", () => fig.set({ theta: 0.4096, window: 50, distance: 16 }));
  fig.button("Reconstruction A: π/2048", () => fig.set({ theta: Math.PI / WINDOW, window: WINDOW, distance: 1024 }));
  fig.notice(NOTICE);
});

function drawDots(plot, at, value, window, color, radius) {
  for (let m = 0; radius && m <= window; m++) disc(plot, at.x(m), at.y(value(m)), radius, color);
}

function drawAngle(plot, at, theta, window, color, { radius, alpha }) {
  for (let run = 0; run * TURN <= window * theta && run < 400; run++) {
    const [from, to] = [(run * TURN) / theta, Math.min(((run + 1) * TURN) / theta, window)];
    const end = to * theta - run * TURN;
    curve(plot, [at.x(from), at.x(to)], [at.y(0), at.y(end)], color, { width: 1.4, alpha });
  }
  drawDots(plot, at, (m) => wrappedAngle(m * theta), window, color, radius);
  const limit = Math.min(window, TURN / theta);
  curve(plot, [at.x(0), at.x(limit)], [at.y(0), at.y(limit * theta)], color, { width: 2.6, alpha: 0.9 });
}

function drawCosine(plot, at, value, window, color, { radius, ...options }) {
  const fine = Array.from({ length: 601 }, (_, k) => (k * window) / 600);
  const height = (m) => at.y(value(m));
  curve(plot, fine.map(at.x), fine.map(height), color, options);
  drawDots(plot, at, value, window, color, radius);
}

/** Where a panel first turns back: a line, and words above it. */
function drawHorizon(plot, at, verb, horizon, window) {
  const { warm, muted } = plot.colors;
  const shown = horizon <= window;
  const beyond = shown || narrow(plot.width) ? "" : ", beyond the picture";
  const options = { align: "right", color: shown ? warm : muted };
  text(plot, `${verb} at ${num(horizon, 0)}${beyond}`, at.box.x1, at.box.y0 - 12, options);
  if (shown) upright(plot, at.x(horizon), at.box, warm, { width: 1.6, dash: [4, 3] });
}
