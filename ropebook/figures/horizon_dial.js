// One slider that slows all pairs, and two meters that move against each other.
import { cosineHorizon, neighbourSnr } from "./aliasing.js";
import { line, scale, text } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, decades, num, short, TURN } from "./kit/numbers.js";
import { BASE, inverseFrequencies } from "./rope.js";

const DIM = 128;
const WINDOW = 2048; // of the paper's example
const TYPES = { float32: "fp32", float16: "fp16", bfloat16: "bf16" };

/** The settings with a name: [name, the same in full, factor], fastest first. */
export const PLACES = [
  ["RoPE", "RoPE", 1],
  ["PI ×16", "PI ×16", 16],
  ["B", "one turn (B)", WINDOW / TURN],
  ["A", "half a turn (A)", (2 * WINDOW) / TURN],
];

/** Both meters, all pairs slowed by a factor: where the fastest turns back, and how loud one step is. */
export function meters(slower) {
  const invFreq = inverseFrequencies(DIM, BASE).map((freq) => freq / slower);
  const snr = Object.fromEntries(Object.keys(TYPES).map((type) => [type, neighbourSnr(invFreq, type)]));
  return { cosine: cosineHorizon([invFreq[0]]), snr };
}

const ratio = (snr) => (snr >= 1e6 ? `${num(snr / 1e6, 1)} million` : num(snr, snr >= 100 ? 0 : snr >= 10 ? 1 : 2));

/** What the meters say, all pairs slowed by a factor. */
export function words(slower, { cosine, snr }) {
  const setting =
    slower === 1
      ? "With no hand slowed"
      : `With all hands slowed **${num(slower, slower < 1.0095 ? 4 : slower < 10 ? 2 : 0)}** times`;
  const loud = `one step is **${ratio(snr.bfloat16)}** times as loud as the rounding of bf16`;
  const answer =
    cosine >= WINDOW
      ? `${setting}, no hand turns back in the window. The price: ${loud}.`
      : `${setting}, ${loud}, but the fastest hand turns back at **${num(cosine, 0)}** tokens.`;
  const ratios = Object.entries(TYPES).map(([type, short]) => `${short} **${ratio(snr[type])}**`);
  return (
    `${answer}\nThe fastest hand turns by **${num(1 / slower, slower < 100 ? 4 : 6)}** rad a token, ` +
    `**${num(WINDOW / slower / TURN, 2)}** times around in ${num(WINDOW, 0)} tokens. ` +
    `One step against the rounding, for a query and a key in random directions: ${ratios.join(", ")}.`
  );
}

const LABEL =
  "Two meters: the distance at which the fastest hand turns back, with the window of 2,048 tokens as a mark, and how " +
  "loud one step is against the rounding of bf16, with a mark where it is as loud; named settings stand above both";
const NOTICE =
  "What the upper meter gains, the lower one loses. A and B reconstruct a proposal whose formula is lost: the " +
  "fastest hand makes half a turn, or one, in the window. PI ×16 is position interpolation by 16.";

const METER = 132; // height of one

export default figure((fig) => {
  const plot = fig.canvas({ label: LABEL, height: 2 * METER });

  fig.draw(() => {
    const { slower } = fig.traits;
    const now = meters(slower);
    plot.clear();
    drawMeter(plot, 0, {
      title: "Fastest hand turns back at",
      range: [1, 10000],
      value: now.cosine,
      said: `${num(now.cosine, 0)} tokens`,
      goal: WINDOW,
      goalSaid: `window ${num(WINDOW, 0)}`,
      good: now.cosine >= WINDOW,
      places: PLACES.map(([short, long, factor]) => [short, long, cosineHorizon([1 / factor])]),
    });
    drawMeter(plot, METER, {
      title: "One step against bf16's rounding",
      range: [0.1, 1000],
      value: now.snr.bfloat16,
      said: `× ${ratio(now.snr.bfloat16)}`,
      goal: 1,
      goalSaid: "as loud as the rounding",
      good: now.snr.bfloat16 >= 1,
      places: PLACES.map(([short, long, factor]) => [short, long, meters(factor).snr.bfloat16]),
    });
    fig.say(words(slower, now));
    fig.root.dataset.values = JSON.stringify({ slower, ...now });
  });

  fig.showMe(async () => {
    fig.set({ slower: 1 });
    await fig.pause(1400);
    for (const [, , slower] of PLACES.slice(1)) {
      await fig.glide({ slower }, 1800);
      await fig.pause(1400);
    }
  });
  fig.notice(NOTICE);
});

/** A meter: title and value, a bar on a logarithmic scale, its goal, and the named settings above it. */
function drawMeter(plot, top, { title, range, value, said, goal, goalSaid, good, places }) {
  const { ctx, colors, width } = plot;
  const [x0, x1] = [10, width - 10];
  const [at] = scale(range, x0, x1, true);
  const color = good ? colors.accent : colors.warm;
  const small = width < 480;
  text(plot, title, x0, top + 14, { color: colors.ink, size: 14, bold: true });
  text(plot, said, x1, top + 14, { color, size: small ? 18 : 22, bold: true, align: "right" });

  const bar = top + 56;
  ctx.fillStyle = colors.rule;
  ctx.fillRect(x0, bar, x1 - x0, 30);
  ctx.fillStyle = color;
  ctx.fillRect(x0, bar, Math.max(at(clamp(value, ...range)) - x0, 2), 30);
  for (const v of decades(...range)) {
    const align = at(v) < x0 + 1 ? "left" : at(v) > x1 - 1 ? "right" : "center";
    text(plot, short(v, 1), at(v), bar + 42, { align, size: 11.5 });
  }

  ctx.save();
  ctx.strokeStyle = colors.muted;
  const rises = places[0][2] < places.at(-1)[2];
  for (const [short, long, place] of places) {
    const x = at(place);
    line(ctx, x, bar - 6, x, bar);
    const last = short === "A" || short === "B";
    const align = x < x0 + 20 ? "left" : last ? ((short === "A") === rises ? "left" : "right") : "center";
    text(
      plot,
      small ? short : long,
      small && last ? x : x + (align === "left" ? -3 : align === "right" ? 3 : 0),
      bar - 15,
      {
        align: small && last ? "center" : align,
      },
    );
  }
  ctx.strokeStyle = colors.ink;
  ctx.lineWidth = 2;
  line(ctx, at(goal), bar - 2, at(goal), bar + 34);
  ctx.restore();
  const fits = at(goal) > width / 2 ? "right" : "left";
  text(plot, goalSaid, at(goal), bar + 60, { align: fits, color: colors.ink });
}
