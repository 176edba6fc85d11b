// One knob for the speed of the fastest hand; two meters that move against each other.
import { figure, angleColor, curve, disc, num, text } from "./kit.js";
import { codeDistance, inverseFrequencies } from "./rope.js";
import { angleHorizon, cosineHorizon, neighbourSnr } from "./aliasing.js";

const DIM = 128;
const BASE = 10000;
const STRETCH = 16; // of the pin for position interpolation
const LOWEST = 10 ** -4.5; // as in c3_dial.py
const TYPES = [["float32", "fp32"], ["float16", "fp16"], ["bfloat16", "bf16"]];
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
    { name: "B: 2π/n", short: "B", theta: (2 * Math.PI) / n },
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
  const part = (Math.min(Math.max(angle, -SWEEP), SWEEP) / SWEEP + 1) / 2;
  return Math.exp(part * Math.log(LOWEST));
}

const loudness = (snr) => (snr >= 1e6 ? `${num(snr / 1e6, 1)} million` : num(snr, snr >= 100 ? 0 : 2));

export default figure((fig) => {
  const wide = (width) => width >= 600;
  const dialHeight = 304;
  const metersHeight = 240;
  let dial = { x: 0, y: 0, r: 1 };

  const plot = fig.canvas({
    label: "A knob with named settings around it, from RoPE's speed down to a quarter turn in the window; beside it a meter for the horizon and one for the signal to noise of neighbours in three number types, for queries and keys in random directions",
    help: "Turn the knob with the pointer, or focus it and use the arrow keys.",
    height: (width) => (wide(width) ? dialHeight : dialHeight + metersHeight),
    keys({ dx, dy }) {
      const step = Number.isFinite(dx) ? dx - dy : Math.sign(dx) * 1e6;
      fig.set({ theta: knobTheta(knobAngle(fig.traits.theta) + step * 0.02) });
    },
  });
  let held = false;
  const turn = (event) => {
    const frame = plot.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left - dial.x, event.clientY - frame.top - dial.y];
    const far = Math.hypot(x, y);
    if (event.type === "pointerdown") held = far > 12 && far < dial.r + 26;
    if (held) fig.set({ theta: knobTheta(Math.atan2(x, -y)) });
  };
  plot.canvas.addEventListener("pointerdown", (event) => {
    turn(event);
    if (!held) return;
    plot.canvas.setPointerCapture(event.pointerId);
    event.preventDefault();
    plot.canvas.focus({ preventScroll: true });
  });
  plot.canvas.addEventListener("pointermove", turn);
  for (const type of ["pointerup", "pointercancel"]) plot.canvas.addEventListener(type, () => (held = false));
  // a finger on the knob turns it; anywhere else it scrolls the page
  plot.canvas.addEventListener("touchmove", (event) => held && event.preventDefault(), { passive: false });

  fig.draw(() => {
    const { theta } = fig.traits;
    const n = Number(fig.traits.window);
    const now = meters(theta);
    const { width } = plot.clear();
    dial = { x: wide(width) ? Math.min(width * 0.27, 190) : width / 2, y: 156, r: 104 };
    drawKnob(plot, dial, theta, n);
    const x0 = wide(width) ? dial.x * 2 + 18 : 8;
    drawMeters(plot, { x0, x1: width - 14, top: wide(width) ? 8 : dialHeight }, now, n);

    const where = now.cosine > n ? "beyond the window: no hand turns back" : `inside the window of ${num(n, 0)}`;
    const lost = TYPES.filter(([type]) => now.snr[type] < 1).map(([, short]) => short);
    const cost = lost.length ? `Below 1: there is more rounding than step in **${lost.join(" and ")}**.` : "Above 1 in all three: neighbours stand out.";
    fig.say(
      `The fastest hand turns by **${num(theta, theta < 0.01 ? 6 : 4)}** rad a token. Its cosine turns back at **${num(now.cosine, 0)}** tokens, ${where}. ` +
        `Signal to noise of a neighbour, random query and key: fp32 **${loudness(now.snr.float32)}**, fp16 **${loudness(now.snr.float16)}**, bf16 **${loudness(now.snr.bfloat16)}**. ${cost}`,
    );
    fig.root.dataset.values = JSON.stringify({ theta, window: n, ...now, mean: Number.isFinite(now.mean) ? now.mean : null });
  });

  fig.showMe(async () => {
    const n = Number(fig.traits.window);
    fig.set({ theta: 1 });
    await fig.pause(700);
    const from = knobAngle(1);
    const to = knobAngle(Math.PI / n);
    // equal steps of the knob, not of theta
    const steps = fig.calm ? 1 : 200;
    for (let k = 1; k <= steps; k++) {
      fig.set({ theta: knobTheta(from + ((to - from) * k) / steps) });
      await fig.pause(18);
    }
    fig.set({ theta: Math.PI / n });
  });
  pins(2048).forEach(({ name }, k) => {
    fig.button(name, () =>
      fig.set({ theta: Math.max(pins(Number(fig.traits.window))[k].theta, LOWEST) }),
    );
  });
  fig.notice(
    "The meters move against each other: a longer horizon is paid for with the contrast of neighbours. A and B are reconstructions of a formula that is lost in the paper's translated text; they reach the window and fall below the rounding of bf16, for queries and keys in random directions. RoPE has both: its slow hands turn less than half way in the window, and its fast ones tell neighbours apart.",
  );
});

function drawKnob(plot, { x, y, r }, theta, n) {
  const { ctx, colors } = plot;
  const at = (angle, radius) => [x + radius * Math.sin(angle), y - radius * Math.cos(angle)];
  const arc = (from, to, radius) => {
    ctx.beginPath();
    ctx.arc(x, y, radius, from - Math.PI / 2, to - Math.PI / 2);
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
    ctx.beginPath();
    ctx.moveTo(...at(angle, r - 14));
    ctx.lineTo(...at(angle, r - 19));
    ctx.stroke();
    const [tx, ty] = at(angle, r - 30 - 6 * Math.abs(Math.sin(angle)));
    text(plot, power ? `10${["", "⁻¹", "⁻²", "⁻³", "⁻⁴"][-power]}` : "1", tx, ty, { align: "center", size: 10.5, halo: false });
  }

  // the named settings
  for (const pin of pins(n)) {
    if (pin.theta < LOWEST) continue;
    const angle = knobAngle(pin.theta);
    const active = Math.abs(Math.log(theta / pin.theta)) < 0.004;
    const color = active ? colors.accent : colors.muted;
    ctx.strokeStyle = color;
    ctx.lineWidth = active ? 2.5 : 1.5;
    ctx.beginPath();
    ctx.moveTo(...at(angle, r + 5));
    ctx.lineTo(...at(angle, r + 12));
    ctx.stroke();
    const [tx, ty] = at(angle, r + 18);
    const side = Math.sin(angle);
    text(plot, pin.short, tx, ty, { align: side > 0.25 ? "left" : side < -0.25 ? "right" : "center", size: 12.5, bold: active, color: active ? colors.accent : colors.ink, halo: false });
  }

  // the knob itself
  const shade = ctx.createLinearGradient(x, y - 46, x, y + 46);
  shade.addColorStop(0, colors.dark ? "#3a4753" : "#ffffff");
  shade.addColorStop(1, colors.dark ? "#232c34" : "#e3e9ee");
  ctx.beginPath();
  ctx.arc(x, y, 44, 0, 2 * Math.PI);
  ctx.fillStyle = shade;
  ctx.fill();
  ctx.lineWidth = 1.25;
  ctx.strokeStyle = colors.dark ? "#56636f" : "#aab5bf";
  ctx.stroke();
  const angle = knobAngle(theta);
  ctx.lineCap = "round";
  ctx.lineWidth = 4;
  ctx.strokeStyle = colors.accent;
  ctx.beginPath();
  ctx.moveTo(...at(angle, 18));
  ctx.lineTo(...at(angle, 38));
  ctx.stroke();
  ctx.restore();
  disc(plot, ...at(angle, r), 7, colors.accent);
  text(plot, num(theta, theta < 0.01 ? 5 : theta < 0.1 ? 4 : 3), x, y, { align: "center", size: 12, bold: true, color: colors.ink, halo: false });
  text(plot, "θ₀ (rad per token)", x, y + r + 8, { align: "center", halo: false });
}

function drawMeters(plot, { x0: start, x1, top }, now, n) {
  let x0 = start;
  const { ctx, colors } = plot;
  const scale = (low, high) => (v) => x0 + ((Math.log(v) - Math.log(low)) / (Math.log(high) - Math.log(low))) * (x1 - x0);
  const bar = (y, tall, at, value, color) => {
    const end = Math.min(Math.max(at(value), x0), x1);
    ctx.fillStyle = colors.rule;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(x0, y, x1 - x0, tall);
    ctx.globalAlpha = 1;
    ctx.fillStyle = color;
    ctx.fillRect(x0, y, Math.max(end - x0, 1.5), tall);
    return end;
  };
  const rows = (at, y, values, format) => {
    for (const v of values) {
      ctx.fillStyle = colors.muted;
      ctx.fillRect(at(v), y, 1, 4);
      text(plot, format(v), at(v), y + 12, { align: at(v) < x0 + 12 ? "left" : "center", size: 11, halo: false });
    }
  };

  // horizon
  const far = scale(1, 262144);
  text(plot, "Horizon: where the cosine turns (tokens)", x0, top + 8, { color: colors.ink, size: 12.5, bold: true, halo: false });
  const reach = bar(top + 22, 22, far, now.cosine, colors.accent);
  const words = `${num(now.cosine, 0)} tokens`;
  const inside = reach - x0 > 110;
  text(plot, words, inside ? reach - 8 : reach + 8, top + 33, { align: inside ? "right" : "left", bold: true, size: 12.5, color: inside ? colors.paper : colors.ink, halo: false });
  rows(far, top + 45, [1, 10, 100, 1000, 10000], (v) => num(v, 0));
  curve(plot, [far(n), far(n)], [top + 17, top + 49], colors.warm, { width: 1.75 });
  text(plot, `window ${num(n, 0)}`, far(n), top + 74, { align: far(n) > x1 - 60 ? "right" : "center", size: 11.5, color: colors.warm, halo: false });
  curve(plot, [far(n), far(n)], [top + 60, top + 66], colors.warm, { width: 1.75 });

  // signal to noise
  const y = top + 100;
  const left = x0;
  x0 += 44; // the names of the types
  const loud = scale(0.001, 1e8);
  text(plot, "Neighbour's signal to noise (random q, k)", left, y + 4, { color: colors.ink, size: 12.5, bold: true, halo: false });
  const ends = TYPES.map(([type, short], k) => {
    text(plot, short, left, y + 29 + 27 * k, { color: colors.ink, size: 12.5, halo: false });
    return bar(y + 18 + 27 * k, 22, loud, now.snr[type], now.snr[type] < 1 ? colors.warm : angleColor(0.42 + 0.14 * k));
  });
  curve(plot, [loud(1), loud(1)], [y + 14, y + 18 + 81], colors.ink, { width: 1.5, dash: [4, 3] });
  TYPES.forEach(([type], k) => {
    const value = now.snr[type];
    const label = loudness(value);
    const room = ends[k] - Math.max(loud(1), x0) > 70;
    const x = room ? ends[k] - 8 : Math.max(ends[k], value < 1 ? loud(1) : 0) + 8;
    text(plot, label, x, y + 29 + 27 * k, { align: room ? "right" : "left", bold: true, size: 12.5, color: room ? "#10161b" : colors.ink, halo: false });
  });
  rows(loud, y + 18 + 81, [0.001, 0.01, 0.1, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter((_, k) => k % (x1 - x0 < 380 ? 3 : 2) === (x1 - x0 < 380 ? 0 : 1)), (v) => (v < 10000 ? num(v, v < 1 ? 3 : 0).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "") : `10${{ 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 4: "⁴" }[Math.round(Math.log10(v))]}`));
  text(plot, "1: as loud as the rounding", loud(1), y + 18 + 81 + 26, { align: x1 - x0 < 380 ? "left" : "center", size: 11.5, color: colors.ink, halo: false });
}
