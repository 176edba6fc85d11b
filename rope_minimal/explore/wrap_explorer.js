// Angle, wrapped angle and cosine of one hand, and the mean cosine of its bank, over the distances.
import { figure, axes, curve, disc, num, pairColor, text, ticks } from "./kit.js";
import { inverseFrequencies, meanCosine, wrappedAngle } from "./rope.js";
import { angleHorizon, cosineHorizon } from "./aliasing.js";

const BASE = 10000;
const TURN = 2 * Math.PI;
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

export default figure((fig) => {
  let left = 0;
  let right = 1;
  const keep = (distance) => Math.min(Math.max(distance, 0), fig.traits.window);
  const panel = (width) => (width < 480 ? 104 : 118);

  const plot = fig.canvas({
    label: "Three panels over the distance: the wrapped angle of the fastest hand, its cosine, and the mean cosine of all hands, with a mark where each first turns back",
    help: "Point at the picture, or focus it and use the arrow keys, to read a distance.",
    height: (width) => 3 * (panel(width) + 26) + 44,
    point({ x }) {
      fig.set({ distance: keep(Math.round(((x - left) / (right - left)) * fig.traits.window)) });
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
    const { ctx, width, height } = plot.clear();
    const { ink, muted, warm, accent } = fig.colors;
    const hand = pairColor(0, 64);
    const hands = bank(theta, dim);
    const tall = panel(width);
    const whole = Array.from({ length: window + 1 }, (_, m) => m);
    const fine = Array.from({ length: 601 }, (_, k) => (k * window) / 600);

    const row = (index, options) => {
      const top = 22 + index * (tall + 26);
      return axes(plot, {
        x: [0, window],
        xTicks: index < 2 ? [] : ticks(0, window, width / 90).filter(Number.isInteger),
        xLabel: index < 2 ? "" : "distance between query and key (tokens)",
        ...options,
        box: { left: 40, right: 14, top, bottom: height - top - tall },
      });
    };
    const cosineTicks = { y: [-1.08, 1.08], yTicks: [-1, 0, 1], yFormat: (v) => num(v, 0) };

    // what the paper looked at
    const upper = row(0, { y: [0, TURN], yTicks: [0, Math.PI, TURN], yFormat: (v) => ["0", "π", "2π"][Math.round(v / Math.PI)] });
    left = upper.box.x0;
    right = upper.box.x1;
    const radius = window > 120 ? 0 : window > 50 ? 2.2 : 3.4;
    const dots = (at, values, color) => {
      if (radius) whole.forEach((m) => disc(plot, at.x(m), at.y(values(m)), radius, color));
    };
    const faint = fig.colors.dark ? 0.75 : 0.45; // under its dots
    const wrapped = (m) => wrappedAngle(m * theta);
    for (let run = 0; run * TURN <= window * theta && run < 400; run++) {
      const [from, to] = [(run * TURN) / theta, Math.min(((run + 1) * TURN) / theta, window)];
      const end = (to * theta) - run * TURN;
      curve(plot, [upper.x(from), upper.x(to)], [upper.y(0), upper.y(end)], hand, { width: 1.4, alpha: radius ? faint : 0.85 });
    }
    dots(upper, wrapped, hand);
    const limit = Math.min(window, TURN / theta);
    curve(plot, [upper.x(0), upper.x(limit)], [upper.y(0), upper.y(limit * theta)], hand, { width: 2.6, alpha: 0.9 });

    // what attention looks at
    const middle = row(1, cosineTicks);
    curve(plot, fine.map(middle.x), fine.map((m) => middle.y(Math.cos(m * theta))), hand, { width: 1.6, alpha: radius ? faint : 0.9 });
    dots(middle, (m) => Math.cos(m * theta), hand);
    const lower = row(2, cosineTicks);
    curve(plot, fine.map(lower.x), fine.map((m) => lower.y(meanCosine(m, hands))), accent, { width: 1.8, alpha: radius ? 0.5 : 1 });
    dots(lower, (m) => meanCosine(m, hands), accent);

    const title = (at, words, color) => text(plot, words, at.box.x0, at.box.y0 - 12, { color, size: 12.5, bold: true, halo: false });
    title(upper, width < 480 ? "wrapped angle (rad)" : "wrapped angle of the fastest hand (rad)", ink);
    title(middle, "its cosine", ink);
    title(lower, dim === 2 ? "mean cosine (there is one hand only)" : `mean cosine of all ${dim / 2} hands`, ink);
    for (const [at, horizon, word] of [[upper, turns.wrap, "wraps at"], [middle, turns.cosine, "turns at"], [lower, turns.mean, "turns at"]]) {
      const words = horizon <= window ? `${word} ${num(horizon, 0)}` : `${word} ${num(horizon, 0)}${width < 480 ? "" : ", beyond the picture"}`;
      text(plot, words, at.box.x1, at.box.y0 - 12, { align: "right", size: 12, color: horizon <= window ? warm : muted, halo: false });
      if (horizon > window) continue;
      curve(plot, [at.x(horizon), at.x(horizon)], [at.box.y0, at.box.y1], warm, { width: 1.6, dash: [4, 3] });
    }

    // the cursor
    const cx = upper.x(distance);
    curve(plot, [cx, cx], [upper.box.y0, lower.box.y1], muted, { width: 1 });
    disc(plot, cx, upper.y(now.wrapped), 5.5, hand, { ring: ink });
    disc(plot, cx, middle.y(now.cosine), 5.5, hand, { ring: ink });
    disc(plot, cx, lower.y(now.mean), 5.5, accent, { ring: ink });
    ctx.globalAlpha = 1;

    fig.say(
      `Distance **${num(distance, 0)}**: angle **${num(now.angle, 4)}** rad, wrapped **${num(now.wrapped, 4)}** rad, its cosine **${num(Math.abs(now.cosine) < 1e-12 ? 0 : now.cosine, 3)}**, mean cosine of the bank **${num(now.mean, 3)}**. ` +
        `The angle wraps first at **${num(turns.wrap, 0)}**, the cosine turns at **${num(turns.cosine, 0)}**, the mean cosine at **${num(turns.mean, 0)}**.`,
    );
    const plain = Object.fromEntries(Object.entries(turns).map(([name, value]) => [name, Number.isFinite(value) ? value : null]));
    fig.root.dataset.values = JSON.stringify({ theta, window, dim, distance, ...now, horizons: plain });
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
  fig.notice(
    "The angle wraps at 7, but attention does not see the angle: it sees the cosine, which already turns at 4. And a head has many hands: the mean of all turns later, at 12, and does not climb back to where it began in any window shown here. Slow the hands until nothing turns in the window, and the curve is almost flat where neighbours must be told apart.",
  );
});
