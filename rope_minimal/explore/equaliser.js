// Sixty-four faders: the multiplier of every frequency, and meters for what they do.
import { figure, curve, disc, num, pairColor, text } from "./kit.js";
import { codeDistance, inverseFrequencies } from "./rope.js";
import { nearestCode, rescaledFrequencies, unseenPairs } from "./aliasing.js";

const DIM = 128;
const PAIRS = DIM / 2;
const BASE = 10000;
const TRAINED = 4096;
const FACTOR = 16; // of every preset: 4,096 to 65,536 tokens
const ASKED = TRAINED * FACTOR;
const LOW = -5; // log2 of the lowest multiplier on the scale; below it there is only 0
const HIGH = 1;

const STRETCH = { factor: FACTOR, original_max_position_embeddings: TRAINED };

/** Divisors in the manner of LongRoPE's searched lists: 1 for fast pairs, above the factor for slow. */
export function longDivisors() {
  return Array.from({ length: PAIRS }, (_, i) => {
    const t = Math.min(Math.max((i - 8) / 40, 0), 1);
    return 1 + (1.1 * FACTOR - 1) * t * t * (3 - 2 * t);
  });
}

/** Name of a preset to kind and parameters, as rescaled_frequencies takes them. */
export function presets() {
  return {
    "as trained": ["default", {}],
    PI: ["linear", { factor: FACTOR }],
    NTK: ["ntk", { factor: FACTOR }],
    "dynamic NTK (α = 2)": ["dynamic", { factor: 2, max_position_embeddings: TRAINED, seq_len: ASKED }],
    "by parts": ["by_parts", STRETCH],
    "YaRN, paper": ["yarn_paper", STRETCH],
    "YaRN, code": ["yarn", STRETCH],
    "Llama 3": ["llama3", { ...STRETCH, low_freq_factor: 1, high_freq_factor: 4 }],
    "LongRoPE (illustration)": ["longrope", { ...STRETCH, short_factor: Array(PAIRS).fill(1), long_factor: longDivisors(), seq_len: ASKED }],
    "p-RoPE (46 of 64)": ["proportional", { partial_rotary_factor: 46 / 64 }],
    "monotone (reconstruction A)": ["monotone", { max_positions: ASKED }],
  };
}

const cache = {};
/** The 64 multipliers of a preset and its attention factor. */
export function setting(name) {
  if (cache[name]) return cache[name];
  const plain = inverseFrequencies(DIM, BASE);
  const { invFreq, attention } = rescaledFrequencies(presets()[name][0], DIM, BASE, presets()[name][1]);
  cache[name] = { multipliers: Array.from(invFreq, (theta, i) => theta / plain[i]), attention };
  return cache[name];
}

/** What the meters show for 64 multipliers and a length. */
export function meters(multipliers, length) {
  const plain = inverseFrequencies(DIM, BASE);
  const invFreq = plain.map((theta, i) => theta * multipliers[i]);
  const unseen = unseenPairs(invFreq, length, plain, TRAINED);
  return { unseen, count: unseen.filter(Boolean).length, contrast: codeDistance(1, invFreq), nearest: nearestCode(invFreq, length) };
}

/** Where a multiplier stands between the bottom (0) and the top (1) of its fader. */
export function faderPart(multiplier) {
  const floor = 0.07; // the strip at the bottom: stands still, or off the scale
  if (multiplier <= 0) return 0;
  const part = (Math.log2(multiplier) - LOW) / (HIGH - LOW);
  return part < 0 ? floor * 0.5 : floor + (1 - floor) * Math.min(part, 1);
}

/** The multiplier at a part of the fader; it catches at 1 and at 1/16, and the bottom is 0. */
export function faderMultiplier(part, catching = true) {
  const floor = 0.07;
  if (part < floor * 0.75) return 0;
  const octaves = Math.min(Math.max(LOW + ((part - floor) / (1 - floor)) * (HIGH - LOW), LOW), HIGH);
  if (catching) for (const stop of [0, -Math.log2(FACTOR)]) if (Math.abs(octaves - stop) < 0.12) return 2 ** stop;
  return 2 ** octaves;
}

const over = (x) => (x <= 0 ? "0" : x >= 0.9995 ? num(x, 2).replace(/\.?0+$/, "") : `1/${num(1 / x, 1 / x < 100 ? 1 : 0).replace(/\.0$/, "")}`);

export default figure((fig) => {
  const keep = (value, low, high) => Math.min(Math.max(value, low), high);
  const multipliers = () => (fig.traits.faders.length ? fig.traits.faders : setting(fig.traits.preset).multipliers);
  const attention = () => setting(fig.traits.preset).attention;
  let area = { x0: 0, x1: 1, y0: 0, y1: 1 };
  let measured = null; // the meters of the faders last drawn
  let last = null; // the fader and height of a stroke so far

  const plot = fig.canvas({
    label: "Sixty-four faders from the fastest pair on the left to the slowest on the right; the height is the multiplier of the frequency; shaded faders meet angles that training never showed",
    help: "Draw over the faders, or focus them: left and right choose a pair, up and down move it.",
    height: (width) => (width < 480 ? 258 : 300),
    keys({ dx, dy }) {
      const { pair } = fig.traits;
      if (dx) fig.set({ pair: keep(pair + dx, 0, PAIRS - 1) });
      if (!dy) return;
      const next = [...multipliers()];
      const part = faderPart(next[pair]);
      const up = -dy;
      const octaves = next[pair] > 0 ? Math.log2(next[pair]) : LOW - 0.25;
      next[pair] = part === 0 && up < 0 ? 0 : octaves + up / 4 < LOW - 1e-9 ? 0 : 2 ** keep(octaves + up / 4, LOW, HIGH);
      fig.set({ faders: next });
    },
  });
  const stroke = (event) => {
    const frame = plot.canvas.getBoundingClientRect();
    const pair = keep(Math.floor(((event.clientX - frame.left - area.x0) / (area.x1 - area.x0)) * PAIRS), 0, PAIRS - 1);
    const part = keep((area.y1 - (event.clientY - frame.top)) / (area.y1 - area.y0), 0, 1);
    const from = last ?? { pair, part };
    const next = [...multipliers()];
    const steps = Math.abs(pair - from.pair);
    for (let k = 0; k <= steps; k++) {
      const t = steps ? k / steps : 1;
      next[from.pair + Math.sign(pair - from.pair) * k] = faderMultiplier(from.part + (part - from.part) * t);
    }
    last = { pair, part };
    fig.set({ faders: next, pair });
  };
  plot.canvas.style.touchAction = "none"; // a finger on the faders draws
  plot.canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const frame = plot.canvas.getBoundingClientRect();
    const y = event.clientY - frame.top;
    if (y < area.y0 - 12 || y > area.y1 + 12) return;
    plot.canvas.setPointerCapture(event.pointerId);
    last = null;
    stroke(event);
    plot.canvas.dataset.drawing = "true";
    event.preventDefault();
    plot.canvas.focus({ preventScroll: true });
  });
  plot.canvas.addEventListener("pointermove", (event) => plot.canvas.dataset.drawing && stroke(event));
  for (const type of ["pointerup", "pointercancel"]) {
    plot.canvas.addEventListener(type, () => delete plot.canvas.dataset.drawing);
  }
  // another rescaling puts all faders back
  fig.model.on("change:preset", () => fig.set({ faders: [] }));

  const gauges = fig.canvas({
    label: "Meters: pairs that meet unseen angles, the smallest distance between position codes, the factor on the scores",
    height: (width) => (width < 480 ? 134 : 66),
  });

  fig.draw(() => {
    const { preset, compare, pair } = fig.traits;
    const length = Number(fig.traits.length);
    const now = multipliers();
    const key = `${length} ${now}`;
    if (measured?.key !== key) measured = { key, ...meters(now, length) };
    const { unseen, count, contrast, nearest } = measured;
    const other = compare === "nothing" ? null : setting(compare);
    area = { x0: 44, x1: plot.width - 8, y0: other ? 38 : 24, y1: plot.height - 40 };
    drawFaders(plot, area, now, other?.multipliers, unseen, pair, length);
    if (other) text(plot, `faders: ${preset}   line: ${compare}`, area.x0, 10, { size: 12, color: fig.colors.ink, halo: false });
    drawGauges(gauges, { count, contrast, nearest, attention: attention(), length });

    const title = fig.traits.faders.length ? `${preset}, moved by hand` : preset;
    let difference = null;
    if (other) {
      const ratios = now.map((m, i) => (m === other.multipliers[i] ? 1 : Math.max(m, other.multipliers[i]) / Math.min(m, other.multipliers[i])));
      const at = ratios.indexOf(Math.max(...ratios));
      difference = { pair: at, ratio: ratios[at], first: now[at], second: other.multipliers[at] };
    }
    const diff = !difference ? ""
      : difference.ratio - 1 < 1e-9 ? ` It is the same as **${compare}**.`
      : !Number.isFinite(difference.ratio) ? ` Against **${compare}** some pairs stand still in one and turn in the other.`
      : ` Against **${compare}** it differs most in pair **${difference.pair}**: × ${over(difference.first)} here, × ${over(difference.second)} there, a factor of **${num(difference.ratio, 2)}**.`;
    fig.say(
      `**${title}**, ${num(length, 0)} tokens: **${count}** of 64 pairs meet angles that training never showed. ` +
        `The nearest code is at distance **${num(nearest.distance, 0)}** with D = **${num(nearest.codeDistance, 4)}**; neighbours are D(1) = **${num(contrast, 4)}** apart. ` +
        `Scores are multiplied by **${num(attention() ** 2, 3)}**. Pair **${pair}** turns at × **${over(now[pair])}**.${diff}`,
    );
    fig.root.dataset.values = JSON.stringify({
      preset, compare, length, pair, multipliers: Array.from(now), count, contrast, nearest, attention: attention(),
      difference: difference && { ...difference, ratio: Number.isFinite(difference.ratio) ? difference.ratio : null },
    });
  });

  fig.showMe(async () => {
    fig.set({ preset: "as trained", compare: "nothing", length: String(ASKED), faders: [], pair: PAIRS - 1 });
    await fig.pause(900);
    const faders = [...setting("as trained").multipliers];
    for (let i = PAIRS - 1; i >= 46; i--) {
      for (const m of [0.5, 0.25, 0.125, 1 / FACTOR]) {
        faders[i] = m;
        if (fig.calm) continue;
        fig.set({ faders: [...faders], pair: i });
        await fig.pause(i > 58 ? 90 : 35);
      }
    }
    fig.set({ faders, pair: 46 });
    await fig.pause(1500);
    fig.set({ preset: "PI", faders: [] });
    await fig.pause(2600);
    fig.set({ preset: "YaRN, paper", faders: [], compare: "YaRN, code" });
  });
  fig.button("YaRN: paper against code", () => fig.set({ preset: "YaRN, paper", faders: [], compare: "YaRN, code", pair: 30 }));
  fig.notice(
    "Shaded faders are the hands that meet new angles. Pull down only those to 1/16: the first meter falls to zero and neighbours stay as far apart as they were. PI pulls down all 64, the fast ones too, and neighbours move together. YaRN's paper and its released code draw two different ramps. The LongRoPE curve is an illustration of its shape: its published lists are searched, model by model.",
  );
});

function drawFaders(plot, area, now, other, unseen, pair, length) {
  const { ctx, colors } = plot.clear();
  const { x0, x1, y0, y1 } = area;
  const step = (x1 - x0) / PAIRS;
  const x = (i) => x0 + (i + 0.5) * step;
  const y = (multiplier) => y1 - faderPart(multiplier) * (y1 - y0);

  // hands that meet unseen angles
  for (let i = 0; i < PAIRS; i++) {
    if (!unseen[i]) continue;
    ctx.fillStyle = colors.warm;
    ctx.globalAlpha = colors.dark ? 0.2 : 0.13;
    ctx.fillRect(x0 + i * step, y0 - 4, step + 0.3, y1 - y0 + 4);
  }
  ctx.globalAlpha = 1;
  const first = unseen.indexOf(true);
  if (first >= 0) {
    const to = unseen.lastIndexOf(true) + 1;
    const words = plot.width < 480 ? "unseen angles" : "these hands meet unseen angles";
    const middle = keepIn(x0 + ((first + to) / 2) * step, x0 + 90, x1 - (plot.width < 480 ? 44 : 92));
    text(plot, words, middle, y0 - 11, { align: "center", size: 12, color: colors.warm, halo: false });
  }

  // the scale
  for (let octave = LOW; octave <= HIGH; octave++) {
    const at = Math.round(y(2 ** octave)) + 0.5;
    ctx.strokeStyle = colors.rule;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(x0, at);
    ctx.lineTo(x1, at);
    ctx.stroke();
    text(plot, octave > 0 ? "× 2" : octave === 0 ? "× 1" : `1/${2 ** -octave}`, x0 - 7, at, { align: "right", size: 11.5, bold: octave === 0, color: octave === 0 ? colors.ink : colors.muted, halo: false });
  }
  text(plot, "still", x0 - 7, y1 + 4, { align: "right", size: 11.5, halo: false });
  const enough = y(TRAINED / length);
  curve(plot, [x0, x1], [enough, enough], colors.warm, { width: 1.25, dash: [5, 4] });

  // the faders
  for (let i = 0; i < PAIRS; i++) {
    const color = pairColor(i, PAIRS);
    ctx.strokeStyle = colors.dark ? "#3b4753" : "#d6dce2";
    ctx.lineWidth = Math.min(2, step * 0.28);
    ctx.beginPath();
    ctx.moveTo(x(i), y0);
    ctx.lineTo(x(i), y1);
    ctx.stroke();
    const tall = y1 - y(now[i]);
    ctx.fillStyle = color;
    ctx.globalAlpha = 0.32;
    ctx.fillRect(x(i) - step * 0.3, y1 - tall, step * 0.6, tall);
    ctx.globalAlpha = 1;
    const cap = Math.max(step * 0.84, 3);
    ctx.beginPath();
    ctx.roundRect(x(i) - cap / 2, y1 - tall - 3.5, cap, 7, 2);
    ctx.fill();
  }

  // the other rescaling and what lies between the two
  if (other) {
    for (let i = 0; i < PAIRS; i++) {
      const [a, b] = [y(now[i]), y(other[i])];
      if (Math.abs(a - b) < 1) continue;
      ctx.fillStyle = colors.ink;
      ctx.globalAlpha = 0.2;
      ctx.fillRect(x0 + i * step + step * 0.12, Math.min(a, b), step * 0.76, Math.abs(a - b));
    }
    ctx.globalAlpha = 1;
    const xs = other.flatMap((_, i) => [x0 + i * step, x0 + (i + 1) * step]);
    const ys = other.flatMap((m) => [y(m), y(m)]);
    curve(plot, xs, ys, colors.paper, { width: 4.5 });
    curve(plot, xs, ys, colors.ink, { width: 2 });
  }

  // the pair that the keyboard moves
  ctx.beginPath();
  ctx.moveTo(x(pair), y1 + 4);
  ctx.lineTo(x(pair) - 5, y1 + 11);
  ctx.lineTo(x(pair) + 5, y1 + 11);
  ctx.fillStyle = colors.ink;
  ctx.fill();
  for (const i of [0, 16, 32, 48, 63]) {
    if (Math.abs(i - pair) * step > 14) text(plot, String(i), x(i), y1 + 13, { align: "center", size: 11.5, halo: false });
  }
  text(plot, String(pair), x(pair), y1 + 20, { align: "center", size: 11.5, bold: true, color: colors.ink, halo: false });
  text(plot, "pair, fast to slow", (x0 + x1) / 2, y1 + 33, { align: "center", halo: false });
}

const keepIn = (value, low, high) => Math.min(Math.max(value, low), high);

function drawGauges(plot, { count, contrast, nearest, attention, length }) {
  const { ctx, colors, width } = plot.clear();
  const narrow = width < 480;
  const gauge = (column, row, title, value, part, color, note) => {
    const wide = narrow && row === 1 ? width : (width - 16 * (narrow ? 1 : 2)) / (narrow ? 2 : 3);
    const left = narrow ? column * (wide + 16) : column * (wide + 16);
    const top = row * 68 + 13;
    text(plot, title, left, top + 2, { size: 12, color: colors.ink, halo: false });
    text(plot, value, left, top + 24, { size: 20, bold: true, color, halo: false });
    text(plot, note, left + wide, top + 27, { size: 11, align: "right", halo: false });
    ctx.fillStyle = colors.rule;
    ctx.beginPath();
    ctx.roundRect(left, top + 41, wide, 8, 4);
    ctx.fill();
    ctx.fillStyle = color;
    ctx.beginPath();
    ctx.roundRect(left, top + 41, Math.max(wide * keepIn(part, 0, 1), part > 0 ? 6 : 0), 8, 4);
    ctx.fill();
  };
  gauge(0, 0, "pairs with unseen angles", String(count), count / 64, count ? colors.warm : colors.accent, "of 64");
  const d = nearest.codeDistance;
  gauge(1, 0, narrow ? "nearest code, D" : `nearest code up to ${num(length, 0)}`, num(d, d < 0.1 ? 4 : 3), d / 0.3, colors.accent, `at ${num(nearest.distance, 0)}`);
  gauge(narrow ? 0 : 2, narrow ? 1 : 0, "factor on all scores", `× ${num(attention ** 2, 2)}`, attention ** 2 - 1, colors.accent, attention === 1 ? "no temperature" : `√ = ${num(attention, 3)}`);
}
