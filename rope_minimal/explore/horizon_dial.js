// One knob for the speed of the fastest hand; two meters that move against each other.
import { angleHorizon, cosineHorizon, neighbourSnr } from "./aliasing.js";
import { curve, disc, line, scale, text } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, decades, num, short, superscript, TURN } from "./kit/numbers.js";
import { angleColor } from "./kit/theme.js";
import { BASE, codeDistance, inverseFrequencies } from "./rope.js";

const DIM = 128;
const STRETCH = 16; // of the pin for position interpolation
const LOWEST = 10 ** -4.5; // as in horizon_dial.py
const TYPES = [
  ["float32", "fp32"],
  ["float16", "fp16"],
  ["bfloat16", "bf16"],
];
const SWEEP = 0.75 * Math.PI; // the knob turns by this much to each side of upright

/** The bank whose fastest hand turns by theta a token. */
export function bank(theta) {
  return inverseFrequencies(DIM, BASE).map((speed) => theta * speed);
}

/** The settings with a name, for a window of n tokens: [{ name, short, theta }], fastest first. */
export function pins(n) {
  return [
    { name: "RoPE", short: "RoPE", theta: 1 },
    { name: "Literal 0.4096", short: "0.4096", theta: 0.4096 },
    { name: `PI, 16 times`, short: "PI 16×", theta: 1 / STRETCH },
    { name: "B: 2π/n", short: "B", theta: TURN / n },
    { name: "A: π/n", short: "A", theta: Math.PI / n },
    { name: "EleutherAI: π/(2n)", short: "π/(2n)", theta: Math.PI / (2 * n) },
  ];
}

/** Both meters: the three horizons in tokens, the contrast of neighbours and its signal to noise. */
export function meters(theta) {
  const invFreq = bank(theta);
  return {
    wrap: angleHorizon(theta),
    cosine: cosineHorizon([theta]),
    mean: cosineHorizon(invFreq),
    contrast: codeDistance(1, invFreq),
    snr: Object.fromEntries(TYPES.map(([type]) => [type, neighbourSnr(invFreq, type)])),
  };
}

/** Where theta stands on the knob: radians clockwise from upright. */
export function knobAngle(theta) {
  return SWEEP * (1 - 2 * (Math.log(theta) / Math.log(LOWEST))) * -1;
}

/** The theta under a knob angle, kept on the scale. */
export function knobTheta(angle) {
  const part = (clamp(angle, -SWEEP, SWEEP) / SWEEP + 1) / 2;
  return Math.exp(part * Math.log(LOWEST));
}

const ratio = (snr) => (snr >= 1e6 ? `${num(snr / 1e6, 1)} million` : num(snr, snr >= 100 ? 0 : 2));

/** The caption: what the meters say at theta, for a window of n tokens. */
export function words(theta, n, { cosine, snr }) {
  const where = cosine > n ? "beyond the window: no hand turns back" : `inside the window of ${num(n, 0)}`;
  const lost = TYPES.filter(([type]) => snr[type] < 1).map(([, abbreviated]) => abbreviated);
  const cost = lost.length
    ? `Below 1: there is more rounding than step in **${lost.join(" and ")}**.`
    : "Above 1 in all three: neighbours stand out.";
  const ratios = TYPES.map(([type, abbreviated]) => `${abbreviated} **${ratio(snr[type])}**`);
  return (
    `The fastest hand turns by **${num(theta, theta < 0.01 ? 6 : 4)}** rad a token. ` +
    `Its cosine turns back at **${num(cosine, 0)}** tokens, ${where}. ` +
    `Signal to noise of a neighbour, random query and key: ${ratios.join(", ")}. ${cost}`
  );
}

const LABEL =
  "A knob with named settings around it, from RoPE's speed down to a quarter turn in the window; beside it a meter " +
  "for the horizon and one for the signal to noise of neighbours in three number types, for queries and keys in " +
  "random directions";
const NOTICE =
  "The meters move against each other: a longer horizon is paid for with the contrast of neighbours. A and B are " +
  "reconstructions of a formula that is lost in the paper's translated text; they reach the window and fall below " +
  "the rounding of bf16, for queries and keys in random directions. RoPE has both: its slow hands turn less than " +
  "half way in the window, and its fast ones tell neighbours apart.";

const DIAL_HEIGHT = 304;
const METERS_HEIGHT = 240;
const beside = (width) => width >= 600; // the meters beside the knob

export default figure((fig) => {
  let dial = { x: 0, y: 0, r: 1 };
  const plot = fig.canvas({
    label: LABEL,
    help: "Turn the knob with the pointer, or focus it and use the arrow keys.",
    height: (width) => (beside(width) ? DIAL_HEIGHT : DIAL_HEIGHT + METERS_HEIGHT),
    drag({ x, y, begins }) {
      const far = Math.hypot(x - dial.x, y - dial.y);
      if (begins && (far <= 12 || far >= dial.r + 26)) return false;
      fig.set({ theta: knobTheta(Math.atan2(x - dial.x, dial.y - y)) });
      return true;
    },
    keys({ dx, dy }) {
      const step = Number.isFinite(dx) ? dx - dy : Math.sign(dx) * 1e6;
      fig.set({ theta: knobTheta(knobAngle(fig.traits.theta) + step * 0.02) });
    },
  });

  fig.draw(() => {
    const { theta } = fig.traits;
    const n = Number(fig.traits.window);
    const now = meters(theta);
    const { width } = plot.clear();
    dial = { x: beside(width) ? Math.min(width * 0.27, 190) : width / 2, y: 156, r: 104 };
    drawKnob(plot, dial, theta, n);
    const [x0, top] = beside(width) ? [dial.x * 2 + 18, 8] : [8, DIAL_HEIGHT];
    drawHorizon(plot, { x0, x1: width - 14, top }, now, n);
    drawNoise(plot, { x0, x1: width - 14, top: top + 100 }, now);
    fig.say(words(theta, n, now));
    const mean = Number.isFinite(now.mean) ? now.mean : null;
    fig.root.dataset.values = JSON.stringify({ theta, window: n, ...now, mean });
  });

  fig.showMe(async () => {
    const n = Number(fig.traits.window);
    fig.set({ theta: 1 });
    await fig.pause(700);
    const from = knobAngle(1);
    const to = knobAngle(Math.PI / n);
    // equal steps of the knob, not of theta
    const steps = fig.reducedMotion ? 1 : 200;
    for (let k = 1; k <= steps; k++) {
      fig.set({ theta: knobTheta(from + ((to - from) * k) / steps) });
      await fig.pause(18);
    }
    fig.set({ theta: Math.PI / n });
  });
  pins(2048).forEach(({ name }, k) => {
    fig.button(name, () => fig.set({ theta: Math.max(pins(Number(fig.traits.window))[k].theta, LOWEST) }));
  });
  fig.notice(NOTICE);
});

function drawKnob(plot, { x, y, r }, theta, n) {
  const { ctx, colors } = plot;
  const at = (angle, radius) => [x + radius * Math.sin(angle), y - radius * Math.cos(angle)];
  const spoke = (angle, from, to) => line(ctx, ...at(angle, from), ...at(angle, to));
  const arc = (from, to, radius) => {
    ctx.beginPath();
    ctx.arc(x, y, radius, from - TURN / 4, to - TURN / 4);
    ctx.stroke();
  };
  ctx.save();
  ctx.lineCap = "round";
  ctx.lineWidth = 6;
  ctx.strokeStyle = colors.rule;
  arc(-SWEEP, SWEEP, r);
  ctx.strokeStyle = colors.accent;
  if (theta < 0.999) arc(-SWEEP, knobAngle(theta), r);

  // where the fastest hand no longer turns back in the window
  ctx.lineCap = "butt";
  ctx.lineWidth = 3;
  ctx.strokeStyle = colors.warm;
  arc(knobAngle(Math.PI / n), SWEEP, r - 9);

  ctx.lineWidth = 1;
  ctx.strokeStyle = colors.muted;
  for (let power = 0; power >= -4; power--) {
    const angle = knobAngle(10 ** power);
    spoke(angle, r - 14, r - 19);
    const [tx, ty] = at(angle, r - 30 - 6 * Math.abs(Math.sin(angle)));
    text(plot, power ? `10${superscript(power)}` : "1", tx, ty, { align: "center", size: 10.5 });
  }

  // the named settings
  for (const pin of pins(n)) {
    if (pin.theta < LOWEST) continue;
    const angle = knobAngle(pin.theta);
    const active = Math.abs(Math.log(theta / pin.theta)) < 0.004;
    ctx.strokeStyle = active ? colors.accent : colors.muted;
    ctx.lineWidth = active ? 2.5 : 1.5;
    spoke(angle, r + 5, r + 12);
    const side = Math.sin(angle);
    const align = side > 0.25 ? "left" : side < -0.25 ? "right" : "center";
    const color = active ? colors.accent : colors.ink;
    text(plot, pin.short, ...at(angle, r + 18), { align, size: 12.5, bold: active, color });
  }

  // the knob itself
  const shade = ctx.createLinearGradient(x, y - 46, x, y + 46);
  shade.addColorStop(0, colors.dark ? "#3a4753" : "#ffffff");
  shade.addColorStop(1, colors.dark ? "#232c34" : "#e3e9ee");
  ctx.beginPath();
  ctx.arc(x, y, 44, 0, TURN);
  ctx.fillStyle = shade;
  ctx.fill();
  ctx.lineWidth = 1.25;
  ctx.strokeStyle = colors.dark ? "#56636f" : "#aab5bf";
  ctx.stroke();
  const angle = knobAngle(theta);
  ctx.lineCap = "round";
  ctx.lineWidth = 4;
  ctx.strokeStyle = colors.accent;
  spoke(angle, 18, 38);
  ctx.restore();
  disc(plot, ...at(angle, r), 7, colors.accent);
  const digits = theta < 0.01 ? 5 : theta < 0.1 ? 4 : 3;
  text(plot, num(theta, digits), x, y, { align: "center", bold: true, color: colors.ink });
  text(plot, "θ₀ (rad per token)", x, y + r + 8, { align: "center" });
}

/** A bar from x0 to a value on its scale, kept before x1; returns where it ends. */
function drawBar(plot, { x0, x1 }, y, end, color) {
  const { ctx, colors } = plot;
  const last = clamp(end, x0, x1);
  ctx.fillStyle = colors.rule;
  ctx.globalAlpha = 0.6;
  ctx.fillRect(x0, y, x1 - x0, 22);
  ctx.globalAlpha = 1;
  ctx.fillStyle = color;
  ctx.fillRect(x0, y, Math.max(last - x0, 1.5), 22);
  return last;
}

function drawTicks(plot, x0, y, at, values, format) {
  for (const v of values) {
    plot.ctx.fillStyle = plot.colors.muted;
    plot.ctx.fillRect(at(v), y, 1, 4);
    text(plot, format(v), at(v), y + 12, { align: at(v) < x0 + 12 ? "left" : "center", size: 11 });
  }
}

function drawHorizon(plot, { x0, x1, top }, { cosine }, n) {
  const { accent, ink, paper, warm } = plot.colors;
  const [at] = scale([1, 262144], x0, x1, true);
  text(plot, "Horizon: where the cosine turns (tokens)", x0, top + 8, { color: ink, size: 12.5, bold: true });
  const end = drawBar(plot, { x0, x1 }, top + 22, at(cosine), accent);
  const inside = end - x0 > 110;
  const place = inside ? { align: "right", color: paper } : { align: "left", color: ink };
  text(plot, `${num(cosine, 0)} tokens`, inside ? end - 8 : end + 8, top + 33, { ...place, bold: true, size: 12.5 });
  drawTicks(plot, x0, top + 45, at, [1, 10, 100, 1000, 10000], (v) => num(v, 0));
  const x = at(n);
  curve(plot, [x, x], [top + 17, top + 49], warm);
  curve(plot, [x, x], [top + 60, top + 66], warm);
  const align = x > x1 - 60 ? "right" : "center";
  text(plot, `window ${num(n, 0)}`, x, top + 74, { align, size: 11.5, color: warm });
}

function drawNoise(plot, { x0: left, x1, top }, { snr }) {
  const { ink, warm } = plot.colors;
  const x0 = left + 44; // right of the names of the types
  const bottom = top + 99;
  const narrow = x1 - x0 < 380;
  const [at] = scale([0.001, 1e8], x0, x1, true);
  const one = at(1);
  text(plot, "Neighbour's signal to noise (random q, k)", left, top + 4, { color: ink, size: 12.5, bold: true });
  const ends = TYPES.map(([type, abbreviated], k) => {
    text(plot, abbreviated, left, top + 29 + 27 * k, { color: ink, size: 12.5 });
    const color = snr[type] < 1 ? warm : angleColor(0.42 + 0.14 * k);
    return drawBar(plot, { x0, x1 }, top + 18 + 27 * k, at(snr[type]), color);
  });
  curve(plot, [one, one], [top + 14, bottom], ink, { width: 1.5, dash: [4, 3] });
  TYPES.forEach(([type], k) => {
    const inside = ends[k] - Math.max(one, x0) > 70;
    const x = inside ? ends[k] - 8 : Math.max(ends[k], snr[type] < 1 ? one : 0) + 8;
    const place = inside ? { align: "right", color: "#10161b" } : { align: "left", color: ink };
    text(plot, ratio(snr[type]), x, top + 29 + 27 * k, { ...place, bold: true, size: 12.5 });
  });
  const values = decades(0.001, 1e8).filter((_, k) => (narrow ? k % 3 === 0 : k % 2 === 1));
  const format = (v) => (v < 10000 ? short(v, v < 1 ? 3 : 0) : `10${superscript(Math.round(Math.log10(v)))}`);
  drawTicks(plot, x0, bottom, at, values, format);
  const align = narrow ? "left" : "center";
  text(plot, "1: as loud as the rounding", one, bottom + 26, { align, size: 11.5, color: ink });
}
