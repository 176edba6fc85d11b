// Stored keys, moved many times by a little and once by the sum: the error of every pair.
import { arrow, axes, curve, disc, line, text, upright, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, percent, TURN } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { BASE, inverseFrequencies, normals, rotate, shortWay } from "./rope.js";

const DIM = 128;
const PAIRS = DIM / 2;
const KEYS = 16;
const BLOCK = 32; // neighbouring channels that have a scale in common
const LEVELS = { q8_0: [127, -127, 127], q4_0: [-8, -8, 7] }; // ggml: of the largest entry, least, most
const FLOATS = { fp16: [11, -14], bf16: [8, -126], fp8: [4, -6] }; // bits, least exponent of a normal number
const THETA = inverseFrequencies(DIM, BASE);

const LARGE = 1.5 * 2 ** 52; // added and taken away, it leaves a whole number, ties to even

/** Numbers to some significant bits (Veltkamp's splitting); no key comes near the largest of a type. */
function toFloats(numbers, [bits, lowest]) {
  const [normal, unit, split] = [2 ** lowest, 2 ** (lowest - bits + 1), 2 ** (53 - bits) + 1];
  return numbers.map((x) => {
    if (Math.abs(x) < normal) return (x / unit + LARGE - LARGE) * unit;
    const large = x * split;
    return large - (large - x);
  });
}

/** A float32 as float16, ties to even, as the scale of a block is stored. */
function toHalf(x) {
  const unit = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(x))), -14) - 10);
  return (x / unit + LARGE - LARGE) * unit;
}

/** Keys of DIM channels one after another, half-split, as they are read back; `codes` gets what is stored. */
export function store(keys, kind, codes = new Float64Array(keys.length)) {
  if (kind in FLOATS) {
    const read = toFloats(keys, FLOATS[kind]);
    codes.set(read);
    return read;
  }
  const read = new Float64Array(keys.length);
  const [top, least, most] = LEVELS[kind];
  for (let from = 0; from < keys.length; from += BLOCK) {
    let largest = 0; // by size, with its sign
    for (let c = from; c < from + BLOCK; c++) if (Math.abs(keys[c]) > Math.abs(largest)) largest = keys[c];
    const scale = kind === "q8_0" ? Math.abs(largest) / top : largest / top;
    const stored = toHalf(Math.fround(scale));
    for (let c = from; c < from + BLOCK; c++) {
      codes[c] = scale ? clamp(Math.floor(keys[c] / scale + 0.5), least, most) : 0;
      read[c] = codes[c] * stored;
    }
  }
  return read;
}

/** Every key in the Hadamard basis, which is its own inverse: sums and differences of all channels, over sqrt(DIM). */
export function hadamard(keys) {
  const out = Float64Array.from(keys, (x) => x / Math.sqrt(DIM));
  for (let half = 1; half < DIM; half *= 2) {
    for (let c = 0; c < out.length; c++) {
      if (c & half) continue;
      const [a, b] = [out[c], out[c + half]];
      [out[c], out[c + half]] = [a + b, a - b];
    }
  }
  return out;
}

/** As `store`, but what is rounded are the numbers in the Hadamard basis. */
const storeMixed = (keys, kind, codes) => hadamard(store(hadamard(keys), kind, codes));

/** All keys, each pair turned by positions * theta. */
function turn(keys, positions) {
  const out = new Float64Array(keys.length);
  for (let i = 0; i < PAIRS; i++) {
    const [c, s] = [Math.cos(positions * THETA[i]), Math.sin(positions * THETA[i])];
    for (let x = i; x < keys.length; x += DIM) {
      const y = x + PAIRS;
      out[x] = c * keys[x] - s * keys[y];
      out[y] = s * keys[x] + c * keys[y];
    }
  }
  return out;
}

const START = normals(KEYS * DIM, 18);
export const startKeys = () => START;

/**
 * Keys stored, then moved and stored again, some times. By pair: error (of the length) and angle (rad)
 * beside its place, both rms over the keys, and the share of stored numbers that a move left as they
 * were; error of all; path: the first key after each storing.
 */
export function wear(kind, moves, step, mixed = false) {
  const put = mixed ? storeMixed : store;
  let codes = new Float64Array(START.length);
  let before = new Float64Array(START.length);
  let keys = put(START, kind, codes);
  const same = new Float64Array(PAIRS);
  const path = [keys.slice(0, DIM)];
  for (let n = 0; n < moves; n++) {
    [codes, before] = [before, codes];
    keys = put(turn(keys, step), kind, codes);
    path.push(keys.slice(0, DIM));
    for (let c = 0; c < codes.length; c++) if (codes[c] === before[c]) same[c % PAIRS] += 1;
  }
  return { ...compare(keys, turn(START, moves * step)), same: same.map((n) => n / (2 * KEYS * moves)), path };
}

/** Error of all, and by pair error and angle, between stored keys and exact ones. */
function compare(keys, exact) {
  const [off, length, angle] = [0, 1, 2].map(() => new Float64Array(PAIRS));
  for (let x = 0; x < keys.length; x++) {
    const i = x % DIM;
    if (i >= PAIRS) continue;
    const [a, b, c, d] = [keys[x], keys[x + PAIRS], exact[x], exact[x + PAIRS]];
    off[i] += (a - c) ** 2 + (b - d) ** 2;
    length[i] += c * c + d * d;
    angle[i] += Math.atan2(a * d - b * c, a * c + b * d) ** 2 / KEYS;
  }
  const sum = (values) => values.reduce((all, value) => all + value, 0);
  return {
    all: Math.sqrt(sum(off) / sum(length)),
    errors: Array.from(off, (square, i) => Math.sqrt(square / length[i])),
    beside: Array.from(angle, Math.sqrt),
  };
}

/** What is expected by pair of roundings that know nothing of each other, and of a key that stays where it was. */
export function laws(kind, moves, step) {
  const once = compare(store(START, kind), START).all;
  return {
    walk: once * Math.sqrt(moves + 1),
    stays: Array.from(THETA, (theta) => 2 * Math.abs(Math.sin((moves * step * theta) / 2))),
  };
}

/** Many moves, the same stored in the Hadamard basis, one move by the sum, and the pair that the many wear most. */
export function reading(kind, moves, step) {
  const many = wear(kind, moves, step);
  const worst = many.errors.indexOf(Math.max(...many.errors));
  return { many, mixed: wear(kind, moves, step, true), one: wear(kind, 1, moves * step), worst };
}

/** A part as a percentage; errors that have grown beyond the keys hang on the keys that were drawn. */
function share(x) {
  if (x >= 10) return "over 1,000%";
  if (x >= 2) return `about ${num(Number(x.toPrecision(1)) * 100, 0)}%`;
  return percent(x, x === 0 || x >= 0.0995 ? 0 : x >= 0.00995 ? 1 : 2);
}
const tokens = (n) => `${num(n, 0)} ${n === 1 ? "token" : "tokens"}`;
const small = (x) => num(Math.abs(x) < 1e-9 ? 0 : Math.abs(x), Math.abs(x) >= 0.01 ? 2 : 4);

/** The answer, and under it the pair that is read. */
export function words(kind, moves, step, pair, { many, mixed, one, worst }) {
  const turned = `**${share(mixed.all)}** in a Hadamard basis`;
  const answer =
    moves === 1
      ? `In ${kind}, one move by ${tokens(step)} leaves keys **${share(many.all)}** off, ${turned}.`
      : `In ${kind}, ${moves} moves by ${tokens(step)} leave keys **${share(many.all)}** off, ${turned}; one ` +
        `move by ${num(moves * step, 0)}, **${share(one.all)}**.`;
  const then = moves === 1 ? "then" : `after ${moves} moves`;
  return (
    `${answer}\nWorst is pair **${worst}**, ${share(many.errors[worst])} off. ` +
    `A move turns pair **${pair}** by ${small(step * THETA[pair])} rad and leaves ` +
    `**${share(many.same[pair])}** of its stored numbers as they are; ${then} it points ` +
    `**${small(many.beside[pair])} rad** beside its place, **${share(many.errors[pair])}** off. ` +
    `Root mean squares of ${KEYS} keys.`
  );
}

const LABEL =
  "Two charts over the pairs, fast to slow: how far each pair of a key is off after many moves, after the same stored " +
  "in a Hadamard basis and after one, on a logarithmic axis, and the share of its stored numbers that a move leaves as they are; where there is room, one " +
  "pair of one key as a dial. The left and right arrow keys change the pair, up and down the number of moves";
const NOTICE =
  "A turn well below half a rounding step is mostly rounded away. In a Hadamard basis each stored number mixes all " +
  "channels, so no pair stands still, and only independent roundings add up.";

const LEAST = 1e-4; // of the axis, which is the same for all settings
const MOST = 10;
const TOP = 62;
const SHARE = 40; // pixels of the lower chart
const chartHeight = (width) => (wide(width) ? 210 : 124);
const dialSize = (width) => (wide(width) ? Math.min(0.32 * width, 220) : 0);

export default figure((fig) => {
  let field = null; // the axes, for the pointer
  let known = {};
  const keep = (pair) => clamp(pair, 0, PAIRS - 1);

  const plot = fig.canvas({
    label: LABEL,
    height: (width) => TOP + chartHeight(width) + 30 + SHARE + 40,
    point({ x }) {
      if (field && x < field.box.x1 + 12) fig.set({ pair: keep(Math.round(field.invX(x))) });
    },
    keys({ dx, dy }) {
      fig.set({ pair: keep(fig.traits.pair + dx), moves: clamp(fig.traits.moves - dy, 1, 512) });
    },
  });

  fig.draw(() => {
    const { kept, moves, step, pair } = fig.traits;
    const key = [kept, moves, step].join();
    if (known.key !== key) known = { key, ...reading(kept, moves, step), ...laws(kept, moves, step) };
    const { width } = plot.clear();
    const right = wide(width) ? dialSize(width) + 40 : 12;
    field = drawErrors(plot, known, moves, step, pair, right);
    drawShare(plot, known.many.same, pair, right);
    if (wide(width)) drawDial(plot, known.many, moves * step, pair);
    fig.say(words(kept, moves, step, pair, known));
    const { many, mixed, one, worst } = known;
    const values = { kept, moves, step, pair, many: many.all, mixed: mixed.all, one: one.all, worst };
    fig.root.dataset.values = JSON.stringify(values);
  });

  fig.showMe(async () => {
    fig.set({ moves: 256, step: 1 });
    for (const moves of [64, 16, 4, 1]) {
      await fig.pause(1500);
      fig.set({ moves, step: 256 / moves });
    }
    await fig.pause(1800);
    fig.set({ step: 1 });
    await fig.glide({ moves: 256 }, 3000);
  });
  fig.button("Half as often", () => {
    const { moves, step } = fig.traits;
    if (moves % 2 === 0 && step <= 128) fig.set({ moves: moves / 2, step: 2 * step });
  });
  fig.notice(NOTICE);
});

const PERCENTS = [1e-4, 1e-3, 1e-2, 0.1, 1, 10];

function drawErrors(plot, { many, mixed, one, walk, stays }, moves, step, pair, right) {
  const { ink, muted, accent, warm } = plot.colors;
  const top = TOP;
  const at = axes(plot, {
    x: [-0.5, PAIRS - 0.5],
    xTicks: [],
    y: [LEAST, MOST],
    yLog: true,
    yTicks: PERCENTS,
    yFormat: (v) => `${num(100 * v, v < 1e-3 ? 2 : v < 1e-2 ? 1 : 0)}%`,
    box: { left: 54, right, top, bottom: plot.height - top - chartHeight(plot.width) },
  });
  const kept = (error) => at.y(clamp(error, LEAST, MOST));
  const xs = many.errors.map((_, i) => at.x(i));
  curve(plot, xs, stays.map(kept), muted, { width: 1.5, dash: [6, 4] });
  curve(plot, [at.box.x0, at.box.x1], [kept(walk), kept(walk)], muted, { width: 1.5, dash: [2, 3] });
  upright(plot, at.x(pair), at.box, muted, { width: 1 });
  curve(plot, xs, mixed.errors.map(kept), accent, { width: 3 });
  if (moves > 1) {
    curve(plot, xs, one.errors.map(kept), accent, { width: 1, alpha: 0.5 });
    one.errors.forEach((error, i) => disc(plot, xs[i], kept(error), 2.2, accent, { ring: accent }));
  }
  many.errors.forEach((error, i) => {
    const ring = error > MOST ? warm : i === pair ? ink : undefined;
    disc(plot, xs[i], kept(error), i === pair ? 5 : 3.5, pairColor(i, PAIRS), { ring });
  });
  const beyond = many.errors.filter((error) => error > MOST).length;
  if (beyond)
    text(plot, `${beyond} beyond`, at.box.x1, top + 14, { align: "right", color: warm, bold: true, halo: true });
  drawLegend(plot, at.box, moves, step);
  return at;
}

/** What the marks mean, in three rows. */
function drawLegend(plot, { x0, x1 }, moves, step) {
  const { ctx, colors } = plot;
  const middle = x0 + 0.5 * (x1 - x0);
  const written = { size: 12, color: colors.ink };
  for (let j = 0; j < 3; j++) disc(plot, x0 + 4 + 7 * j, 10, 3.5, pairColor(32 * j, PAIRS + 1));
  text(plot, moves === 1 ? `1 move by ${num(step, 0)}` : `${moves} moves by ${num(step, 0)}`, x0 + 28, 10, written);
  if (moves > 1) {
    for (let j = 0; j < 3; j++) disc(plot, middle + 4 + 7 * j, 10, 2.2, colors.accent, { ring: colors.accent });
    text(plot, `1 move by ${num(moves * step, 0)}`, middle + 28, 10, { ...written, color: colors.accent, bold: true });
  }
  ctx.save();
  ctx.strokeStyle = colors.muted;
  ctx.lineWidth = 1.5;
  ctx.setLineDash([6, 4]);
  line(ctx, x0, 28, x0 + 22, 28);
  ctx.setLineDash([2, 3]);
  line(ctx, middle, 28, middle + 22, 28);
  ctx.restore();
  text(plot, "if never moved", x0 + 28, 28, { size: 12 });
  text(plot, `one storing × √${moves + 1}`, middle + 28, 28, { size: 12 });
  curve(plot, [x0, x0 + 22], [46, 46], colors.accent, { width: 3 });
  const basis = moves === 1 ? "the move" : `the ${moves} moves`;
  text(plot, `${basis}, stored in a Hadamard basis`, x0 + 28, 46, { ...written, color: colors.accent, bold: true });
}

/** The share of a pair's stored numbers that a move leaves as they are. */
function drawShare(plot, same, pair, right) {
  const { ctx, colors, width } = plot;
  const top = TOP + chartHeight(width) + 30;
  const at = axes(plot, {
    x: [-0.5, PAIRS - 0.5],
    xTicks: [0, 16, 32, 48, 63],
    xLabel: "pair, fast to slow",
    y: [0, 1],
    yTicks: [0, 1],
    yFormat: (v) => `${100 * v}%`,
    box: { left: 54, right, top, bottom: 40 },
  });
  text(plot, "stored numbers that a move leaves as they are", at.box.x0, top - 11, { color: colors.ink, size: 12 });
  const bar = at.x(1) - at.x(0);
  same.forEach((share, i) => {
    ctx.fillStyle = pairColor(i, PAIRS);
    ctx.fillRect(at.x(i) - 0.4 * bar, at.y(share), 0.8 * bar, at.y(0) - at.y(share));
  });
  upright(plot, at.x(pair), at.box, colors.muted, { width: 1 });
}

/** One pair of the first key: where it should point, where it points, and all that was stored on the way. */
function drawDial(plot, { path }, moved, pair) {
  const { ctx, colors, width } = plot;
  const size = dialSize(width);
  const radius = size / 2.6;
  const [cx, cy] = [width - size / 2, TOP + size / 2 + 8];
  const exact = rotate(START.slice(0, DIM), moved, THETA);
  const length = Math.hypot(exact[pair], exact[pair + PAIRS]);
  const on = ([x, y], most = 1.25) => {
    const by = (radius * Math.min(1, (most * length) / Math.hypot(x, y) || 1)) / length;
    return [cx + by * x, cy - by * y];
  };
  const part = (key) => [key[pair], key[pair + PAIRS]];
  text(plot, `pair ${pair} of one key`, cx, 10, { align: "center", color: colors.ink, size: 12.5, bold: true });
  text(plot, "dashed: where it belongs", cx, 28, { align: "center", size: 12 });
  ctx.lineWidth = 1;
  ctx.strokeStyle = colors.rule;
  ctx.beginPath();
  ctx.arc(cx, cy, radius, 0, TURN);
  ctx.stroke();

  const angle = ([x, y]) => Math.atan2(y, x);
  const [is, should] = [part(path.at(-1)), part(exact)];
  const gap = shortWay(angle(is) - angle(should));
  ctx.beginPath();
  ctx.moveTo(cx, cy);
  ctx.arc(cx, cy, 0.6 * radius, -angle(should), -(angle(should) + gap), gap > 0);
  ctx.closePath();
  ctx.fillStyle = colors.warm;
  ctx.globalAlpha = 0.22;
  ctx.fill();
  ctx.globalAlpha = 1;
  for (const key of path) {
    const [x, y] = on(part(key));
    ctx.fillStyle = colors.muted;
    ctx.fillRect(x - 1, y - 1, 2, 2);
  }
  arrow(plot, cx, cy, ...on(should), colors.k, { width: 2, dash: [4, 4] });
  arrow(plot, cx, cy, ...on(is), colors.k, { width: 3 });
  disc(plot, cx, cy, 3.5, colors.muted);
  const under = [`${small(gap)} rad beside`, `${num((100 * Math.hypot(...is)) / length, 0)}% of its length`];
  under.forEach((said, j) => text(plot, said, cx, cy + size / 2 + 16 + 17 * j, { align: "center", color: colors.ink }));
}
