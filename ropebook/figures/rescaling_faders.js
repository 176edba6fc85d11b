// Sixty-four faders: the multiplier of every frequency, and meters for what they do.
import { rescaledFrequencies, unseenPairs } from "./aliasing.js";
import { curve, level, text, upright } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, short } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { BASE, codeDistance, inverseFrequencies, ownFrequencies } from "./rope.js";

const DIM = 128;
const PAIRS = DIM / 2;
const TRAINED = 4096;
const FACTOR = 16; // of every preset: 4,096 to 65,536 tokens
const LENGTH = TRAINED * FACTOR;

const STRETCH = { factor: FACTOR, original_max_position_embeddings: TRAINED };

/** Divisors in the manner of LongRoPE's searched lists: 1 for fast pairs, above the factor for slow. */
export function longDivisors() {
  return Array.from({ length: PAIRS }, (_, i) => {
    const t = clamp((i - 8) / 40, 0, 1);
    return 1 + (1.1 * FACTOR - 1) * t * t * (3 - 2 * t);
  });
}

/** Name of a preset to kind and parameters, as rescaled_frequencies takes them. */
export function presets() {
  return {
    "as trained": ["default", {}],
    PI: ["linear", { factor: FACTOR }],
    NTK: ["ntk", { factor: FACTOR }],
    "dynamic NTK (κ = 2)": ["dynamic", { factor: 2, max_position_embeddings: TRAINED, seq_len: LENGTH }],
    "by parts": ["by_parts", STRETCH],
    "YaRN, paper": ["yarn_paper", STRETCH],
    "YaRN, code": ["yarn", STRETCH],
    "Llama 3": ["llama3", { ...STRETCH, low_freq_factor: 1, high_freq_factor: 4 }],
    "LongRoPE (illustration)": [
      "longrope",
      { ...STRETCH, short_factor: Array(PAIRS).fill(1), long_factor: longDivisors(), seq_len: LENGTH },
    ],
    "p-RoPE (46 of 64)": ["proportional", { partial_rotary_factor: 46 / 64 }],
    "monotone (reconstruction A)": ["monotone", { max_positions: LENGTH }],
  };
}

const cache = {};
/** The 64 multipliers of a preset and its attention factor. */
export function setting(name) {
  if (cache[name]) return cache[name];
  const plain = inverseFrequencies(DIM, BASE);
  const [kind, parameters] = presets()[name];
  const { invFreq, attention } = rescaledFrequencies(kind, DIM, BASE, parameters);
  cache[name] = { multipliers: Array.from(invFreq, (theta, i) => theta / plain[i]), attention };
  return cache[name];
}

/**
 * What the faders stand for: a plain series, the tokens it was trained on, the factor to those wanted, the ends
 * of the scale, and its rescalings by name. adjacent: D(1); arc: which pairs meet angles at the tokens wanted
 * that training never showed, unless they are slowed by the factor.
 */
export function headOf({ plain, trained, factor, bottom, top, setting }) {
  const length = trained * factor;
  const arc = unseenPairs(plain, length, plain, trained);
  const ends = { low: Math.log2(bottom), high: Math.log2(top) };
  return { plain, trained, length, factor, ...ends, setting, arc, adjacent: codeDistance(1, plain) };
}

const EXAMPLE = headOf({
  ...{ plain: inverseFrequencies(DIM, BASE), trained: TRAINED, factor: FACTOR, bottom: 1 / 32, top: 2 },
  setting,
});

/** The head of the reader's own model, as `rescaling_faders` in Python describes it. */
export function ownHead({ plain, settings, ...rest }) {
  const setting = (name) => settings[name];
  return { ...headOf({ plain: Float64Array.from(plain), setting, ...rest }), own: true };
}

/** What the meters show for the multipliers; kept: the contrast of adjacent positions against that of the plain series. */
export function meters(multipliers, { plain, trained, length, adjacent } = EXAMPLE) {
  const invFreq = plain.map((theta, i) => theta * multipliers[i]);
  const unseen = unseenPairs(invFreq, length, plain, trained);
  const contrast = codeDistance(1, invFreq);
  return { unseen, count: unseen.filter(Boolean).length, contrast, kept: contrast / adjacent };
}

const STRIP = 0.07; // the part at the bottom of a fader: stands still, or off the scale

/** Where a multiplier stands between the bottom (0) and the top (1) of its fader. */
export function faderPart(multiplier, { low, high } = EXAMPLE) {
  if (multiplier <= 0) return 0;
  const part = (Math.log2(multiplier) - low) / (high - low);
  return part < 0 ? STRIP / 2 : STRIP + (1 - STRIP) * Math.min(part, 1);
}

/** The multiplier at a part of the fader; it catches at 1 and at 1/factor, and the bottom is 0. */
export function faderMultiplier(part, { low, high, factor } = EXAMPLE) {
  if (part < STRIP * 0.75) return 0;
  const octaves = clamp(low + ((part - STRIP) / (1 - STRIP)) * (high - low), low, high);
  for (const stop of [0, -Math.log2(factor)]) if (Math.abs(octaves - stop) < 0.12) return 2 ** stop;
  return 2 ** octaves;
}

/** The multiplier a quarter of an octave above or below, for the arrow keys; below the scale a step down leads to 0. */
export function nextMultiplier(multiplier, up, { low, high } = EXAMPLE) {
  if (multiplier <= 0 && up < 0) return 0;
  const octaves = (multiplier > 0 ? Math.log2(multiplier) : low - 0.25) + up / 4;
  return octaves < low - 1e-9 && up < 0 ? 0 : 2 ** clamp(octaves, low, high);
}

/** Where two lists of multipliers differ most; `still`: how many pairs stand still in one of them alone. */
export function apart(now, other) {
  const ratios = now.map((m, i) => (m === other[i] ? 1 : Math.max(m, other[i]) / Math.min(m, other[i])));
  const most = Math.max(...ratios) * (1 - 1e-9);
  const pair = ratios.findIndex((ratio) => ratio >= most);
  const alike = ratios.filter((ratio) => ratio >= most).length;
  const still = ratios.filter((ratio) => ratio === Infinity).length;
  return { pair, ratio: ratios[pair], first: now[pair], second: other[pair], still, alike, pairs: now.length };
}

/** A part as a percentage; what is not quite all, or a little more, is not rounded to it. */
function share(part, over = "over ") {
  const percent = 100 * part;
  const off = Math.abs(percent - 100);
  if (off > 0 && off < 0.1) return `${over}${part < 1 ? 99.9 : 100}%`;
  return `${short(percent, percent < 0.1 ? 3 : percent < 10 || off < 1 ? 1 : 0)}%`;
}

/** Which pairs must turn more slowly: those of the arc. */
function slowest({ arc, trained }) {
  const many = arc.filter(Boolean).length;
  if (!many) return `None: within ${num(trained, 0)} tokens each pair of the plain series goes round. `;
  if (many === 1) return `The slowest, pair ${arc.indexOf(true)}. `;
  return `The **${many}** slowest, ${arc.indexOf(true)} to ${arc.lastIndexOf(true)}. `;
}

/** What is said: of the traits shown, the meters, the factor on the scores and the difference, or null. */
export function words(shown, { count, contrast, kept }, head = EXAMPLE) {
  const { title, compare, pair, multiplier, attention, difference } = shown;
  const unseen = head.own
    ? `angles that ${num(head.trained, 0)} tokens of the plain series never show`
    : "angles that training never showed";
  const them = head.arc.filter(Boolean).length === 1 ? "it" : `**${count}** of them`;
  const meet = count ? `${them} meet${count === 1 ? "s" : ""}` : "no pair meets";
  return (
    slowest(head) +
    `**${title}**: ${meet} ${unseen}, ` +
    `and one step keeps **${share(kept)}** of its size.\n` +
    `One step is D(1) = **${num(contrast, 4)}**, in ${head.own ? "the plain series" : "training"} ` +
    `${num(head.adjacent, 4)}; ` +
    `scores are multiplied by **${num(attention ** 2, 3)}**. ` +
    `Pair **${pair}** turns at × **${fraction(multiplier)}**.${difference ? against(compare, difference) : ""}`
  );
}

function against(compare, { pair, ratio, first, second, still, alike = 1, pairs }) {
  if (ratio - 1 < 1e-9) return ` All pairs turn as in **${compare}**.`;
  if (!Number.isFinite(ratio)) {
    const many = still && still === pairs ? "all pairs" : "some pairs";
    const [some, turn] = still === 1 ? ["one pair stands", "turns"] : [`${many} stand`, "turn"];
    return ` Against **${compare}** ${some} still in one and ${turn} in the other.`;
  }
  if (ratio < 1.005) return ` Against **${compare}** no pair differs by more than half a percent.`;
  const there = alike === 1 ? "most in" : "nowhere more than in";
  const where = alike === pairs ? "all pairs differ alike" : `it differs ${there} pair **${pair}**`;
  return (
    ` Against **${compare}** ${where}: ` +
    `× ${fraction(first)} here, × ${fraction(second)} there, a factor of **${num(ratio, ratio < 100 ? 2 : 0)}**.`
  );
}

function fraction(x) {
  if (x <= 0) return "0";
  return x > 0.5 ? short(x, 3) : `1/${short(1 / x, 1 / x < 100 ? 1 : 0)}`;
}

const FADERS =
  "Sixty-four faders from the fastest pair on the left to the slowest on the right; the height is the multiplier " +
  "of the frequency; in the red field, above 1/16 over the slowest pairs, a fader meets angles that " +
  "training never showed";
const GAUGES = "Meters: pairs that meet new angles, how much of a step is left, the factor on the scores";
const NOTICE =
  "Only the slow pairs have to come down to 1/16. PI pulls down all 64, the fast ones too, and neighbours move " +
  "together. LongRoPE is drawn as an illustration: its published lists are searched, model by model.";

/** What the canvas shows and what is to be noticed, of the reader's own model. */
export function textsOf({ plain, factor }) {
  const down = fraction(1 / factor);
  return {
    label:
      `${plain.length} faders from the fastest pair on the left to the slowest on the right; the height is the ` +
      "frequency as a multiple of that in the plain series of the same base; in the red field, above " +
      `${down} over the slowest pairs, a fader meets angles that the plain series never shows in so few tokens`,
    notice:
      "The line × 1 is the plain series of the base. The other rescalings are the published ones of that series, " +
      `each for a text ${short(factor, 3)} times as long.`,
  };
}

const REACH = 18; // pixels above and below a fader's handle where it can be taken

const narrow = (width) => width < 480;

export default figure((fig) => {
  const head = ownFrequencies(fig) ? ownHead(fig.model.get("data")) : EXAMPLE;
  const pairs = head.plain.length;
  const texts = head.own ? textsOf(head) : { label: FADERS, notice: NOTICE };
  const multipliers = () =>
    fig.traits.faders.length ? fig.traits.faders : head.setting(fig.traits.preset).multipliers;
  let area = { x0: 0, x1: 1, y0: 0, y1: 1 };
  let last = null; // the fader and height of a stroke so far

  const plot = fig.canvas({
    label: texts.label,
    help: "Draw over the handles, or use arrow keys.",
    height: (width) => (narrow(width) ? 236 : 290),
    keys({ dx, dy }) {
      const { pair } = fig.traits;
      if (dx) fig.set({ pair: clamp(pair + dx, 0, pairs - 1) });
      if (dy) fig.set({ faders: multipliers().with(pair, nextMultiplier(multipliers()[pair], -dy, head)) });
    },
    drag({ x, y, begins }) {
      const pair = clamp(Math.floor(((x - area.x0) / (area.x1 - area.x0)) * pairs), 0, pairs - 1);
      if (begins && Math.abs(y - heightOf(area, multipliers()[pair], head)) > REACH) return false;
      const part = clamp((area.y1 - y) / (area.y1 - area.y0), 0, 1);
      const from = begins ? { pair, part } : last;
      const next = [...multipliers()];
      const steps = Math.abs(pair - from.pair);
      for (let k = 0; k <= steps; k++) {
        const t = steps ? k / steps : 1;
        next[from.pair + Math.sign(pair - from.pair) * k] = faderMultiplier(from.part + (part - from.part) * t, head);
      }
      last = { pair, part };
      fig.set({ faders: next, pair });
      return true;
    },
  });
  // another rescaling puts all faders back
  fig.whenChanged("preset", () => fig.set({ faders: [] }));
  const gauges = fig.canvas({ label: GAUGES, height: 66 });

  fig.draw(() => {
    const { preset, compare, pair, faders } = fig.traits;
    const now = multipliers();
    const { attention } = head.setting(preset);
    const measured = meters(now, head);
    const other = compare === "nothing" ? null : head.setting(compare).multipliers;
    const difference = other && apart(now, other);
    area = { x0: 44, x1: plot.width - 8, y0: other ? 38 : 24, y1: plot.height - 40 };
    drawFaders(plot, area, head, now, other, measured.unseen, pair);
    if (other) text(plot, `faders: ${preset}   line: ${compare}`, area.x0, 10, { color: fig.colors.ink });
    drawGauges(gauges, head, { ...measured, attention });

    const name = preset[0].toUpperCase() + preset.slice(1);
    const title = `${head.own ? name : preset}${faders.length ? ", moved by hand" : ""}`;
    fig.say(words({ title, compare, pair, multiplier: now[pair], attention, difference }, measured, head));
    const { count, contrast, kept } = measured;
    const finite = difference && { ...difference, ratio: Number.isFinite(difference.ratio) ? difference.ratio : null };
    const shown = { preset, compare, pair, multipliers: now, count, contrast, kept, attention };
    fig.root.dataset.values = JSON.stringify({ ...shown, difference: finite });
  });

  fig.showMe(async () => {
    if (head.own) {
      for (const preset of ["plain series", "PI", "YaRN, code", "your model"]) {
        fig.set({ preset, compare: "nothing", faders: [] });
        await fig.pause(1800);
      }
      return;
    }
    fig.set({ preset: "as trained", compare: "nothing", faders: [], pair: PAIRS - 1 });
    await fig.pause(900);
    const faders = [...setting("as trained").multipliers];
    for (let i = PAIRS - 1; i >= 46; i--) {
      for (const m of [0.5, 0.25, 0.125, 1 / FACTOR]) {
        faders[i] = m;
        if (fig.reducedMotion) continue;
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
  fig.button("YaRN: paper against code", () =>
    fig.set({ preset: "YaRN, paper", faders: [], compare: "YaRN, code", pair: Math.min(30, pairs - 1) }),
  );
  fig.notice(texts.notice);
});

/** Where a multiplier stands on its fader, in pixels. */
const heightOf = ({ y0, y1 }, multiplier, head) => y1 - faderPart(multiplier, head) * (y1 - y0);

function drawFaders(plot, area, head, now, other, unseen, pair) {
  const { ctx, colors } = plot.clear();
  const { x0, x1, y1 } = area;
  const pairs = now.length;
  const step = (x1 - x0) / pairs;
  const x = (i) => x0 + (i + 0.5) * step;
  const y = (multiplier) => heightOf(area, multiplier, head);
  drawUnseen(plot, area, step, head, unseen);

  // the scale
  for (let octave = head.low; octave <= head.high; octave++) {
    const at = Math.round(y(2 ** octave)) + 0.5;
    level(plot, at, area, colors.rule, { width: 1 });
    const one = octave === 0;
    const label = octave < 0 ? `1/${2 ** -octave}` : `× ${2 ** octave}`;
    text(plot, label, x0 - 7, at, { align: "right", size: 11.5, bold: one, color: one ? colors.ink : colors.muted });
  }
  text(plot, "still", x0 - 7, y1 + 4, { align: "right", size: 11.5 });
  level(plot, y(1 / head.factor), area, colors.warm, { width: 1.25, dash: [5, 4] });

  // the faders
  const cap = Math.max(step * 0.84, 3);
  for (let i = 0; i < pairs; i++) {
    upright(plot, x(i), area, colors.dark ? "#3b4753" : "#d6dce2", { width: Math.min(2, step * 0.28) });
    const top = y(now[i]);
    ctx.fillStyle = pairColor(i, pairs);
    ctx.globalAlpha = 0.32;
    ctx.fillRect(x(i) - step * 0.3, top, step * 0.6, y1 - top);
    ctx.globalAlpha = 1;
    ctx.beginPath();
    ctx.roundRect(x(i) - cap / 2, top - 3.5, cap, 7, 2);
    ctx.fill();
  }

  // the other rescaling and what lies between the two
  if (other) {
    for (let i = 0; i < pairs; i++) {
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
  for (const i of [0, 0.25, 0.5, 0.75, 1].map((part) => Math.min(Math.round(part * pairs), pairs - 1))) {
    if (Math.abs(i - pair) * step > 14) text(plot, String(i), x(i), y1 + 13, { align: "center", size: 11.5 });
  }
  text(plot, String(pair), x(pair), y1 + 20, { align: "center", size: 11.5, bold: true, color: colors.ink });
  text(plot, "pair, fast to slow", (x0 + x1) / 2, y1 + 33, { align: "center" });
}

/** The field in which a fader meets angles that training never showed, darker where one does. */
function drawUnseen(plot, area, step, head, unseen) {
  const { ctx, colors, width } = plot;
  const { x0, y0 } = area;
  const { arc, factor } = head;
  if (!arc.includes(true)) return;
  const [first, end] = [arc.indexOf(true), arc.lastIndexOf(true) + 1];
  const low = heightOf(area, 1 / factor, head);
  ctx.fillStyle = colors.warm;
  ctx.globalAlpha = colors.dark ? 0.16 : 0.1;
  ctx.fillRect(x0 + first * step, y0 - 4, (end - first) * step, low - y0 + 4);
  ctx.globalAlpha = colors.dark ? 0.26 : 0.2;
  unseen.forEach((meets, i) => {
    if (meets) ctx.fillRect(x0 + i * step, y0 - 4, step + 0.3, low - y0 + 4);
  });
  ctx.globalAlpha = 1;
  const right = x0 + end * step;
  const title = narrow(width) ? "in here: new angles" : "in here a pair meets new angles";
  text(plot, title, right, y0 - 13, { align: "right", color: colors.warm });
}

function drawGauges(plot, { plain, own }, { count, kept, attention }) {
  const { ctx, colors, width } = plot.clear();
  const small = narrow(width);
  const gap = small ? 12 : 16;
  const wide = (width - 2 * gap) / 3;
  const bar = (left, long, color) => {
    ctx.fillStyle = color;
    ctx.beginPath();
    ctx.roundRect(left, 54, long, 8, 4);
    ctx.fill();
  };
  const gauge = (column, title, value, part, color, note) => {
    const left = column * (wide + gap);
    text(plot, title, left, 15, { color: colors.ink });
    text(plot, value, left, 37, { size: 20, bold: true, color });
    if (!small) text(plot, note, left + wide, 40, { size: 11, align: "right" });
    bar(left, wide, colors.rule);
    bar(left, Math.max(wide * clamp(part, 0, 1), part > 0 ? 6 : 0), color);
  };
  const { accent, warm } = colors;
  const factor = attention ** 2;
  const root = attention === 1 ? "no temperature" : `√ = ${num(attention, 3)}`;
  gauge(0, "pairs at new angles", String(count), count / plain.length, count ? warm : accent, `of ${plain.length}`);
  gauge(
    1,
    small ? "size of a step" : "size of one step, D(1)",
    share(kept, "> "),
    kept,
    accent,
    own ? "of plain" : "of training",
  );
  gauge(2, small ? "all scores" : "factor on all scores", `× ${num(factor, 2)}`, factor - 1, accent, root);
}
