// Stored keys, moved many times by a little: how far off they get, why, and which pairs stay behind.
import { arrow, axes, curve, disc, level, line, text, wide } from "./kit/draw.js";
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
  const out = keys.map((x) => x / Math.sqrt(DIM));
  for (let half = 1; half < DIM; half *= 2) {
    for (let from = 0; from < out.length; from += 2 * half) {
      for (let c = from; c < from + half; c++) {
        const a = out[c];
        out[c] = a + out[c + half];
        out[c + half] = a - out[c + half];
      }
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
/** The first key where it belongs after so many positions. */
const belongs = (positions) => rotate(START.slice(0, DIM), positions, THETA);

/** What a cache goes through, as far as it was asked for: of every storing all keys, errors, and numbers left as they were. */
function begin(kind, step, mixed) {
  const put = mixed ? storeMixed : store;
  let codes = new Float64Array(START.length);
  const keys = [put(START, kind, codes)];
  const [trail, same] = [[distance(keys[0], START)], [new Float64Array(PAIRS)]];
  const move = () => {
    const before = codes;
    codes = new Float64Array(START.length);
    keys.push(put(turn(keys.at(-1), step), kind, codes));
    trail.push(distance(keys.at(-1), turn(START, trail.length * step)));
    const stay = same.at(-1).slice();
    for (let c = 0; c < codes.length; c++) if (codes[c] === before[c]) stay[c % PAIRS] += 1;
    same.push(stay);
  };
  return { keys, trail, same, move };
}

const lives = new Map(); // of the latest settings: a drag goes on where it was

/**
 * Keys stored, then moved and stored again, some times. By pair: error (of the length) and angle (rad)
 * beside its place, both rms over the keys, and the share of stored numbers that a move left as they
 * were; error of all, and after each move before; path: the first key after each storing.
 */
export function wear(kind, moves, step, mixed = false) {
  const key = `${kind} ${step} ${mixed}`;
  if (!lives.has(key)) {
    if (lives.size > 1) lives.clear();
    lives.set(key, begin(kind, step, mixed));
  }
  const { keys, trail, same, move } = lives.get(key);
  while (keys.length <= moves) move();
  return {
    ...compare(keys[moves], turn(START, moves * step)),
    same: Array.from(same[moves], (n) => n / (2 * KEYS * moves)),
    path: keys.slice(0, moves + 1).map((all) => all.subarray(0, DIM)),
    trail: trail.slice(0, moves + 1),
  };
}

/** ||keys - exact|| / ||exact|| */
function distance(keys, exact) {
  let [off, length] = [0, 0];
  for (let x = 0; x < keys.length; x++) {
    off += (keys[x] - exact[x]) ** 2;
    length += exact[x] ** 2;
  }
  return Math.sqrt(off / length);
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
  const one = compare(store(turn(store(START, kind), moves * step), kind), turn(START, moves * step));
  const worst = many.errors.indexOf(Math.max(...many.errors));
  return { many, mixed: wear(kind, moves, step, true), one, worst };
}

/** A part as a percentage; errors that have grown beyond the keys hang on the keys that were drawn. */
function share(x) {
  if (x >= 10) return "over 1,000%";
  if (x >= 2) return `about ${num(Number(x.toPrecision(1)) * 100, 0)}%`;
  return percent(x, x === 0 || x >= 0.0995 ? 0 : x >= 0.00995 ? 1 : 2);
}
const tokens = (n) => `${num(n, 0)} ${n === 1 ? "token" : "tokens"}`;
const small = (x) => num(Math.abs(x) < 1e-9 ? 0 : Math.abs(x), Math.abs(x) >= 0.01 ? 2 : 4);

/** The answer, and the numbers: those of the pair that is drawn last. */
export function words({ kept, moves, step, pair, other }, { many, mixed, one, worst, walk, stays }) {
  const sum = num(moves * step, 0);
  const instead =
    other === "one move" ? `one move by ${sum}: **${share(one.all)}**` : `in a Hadamard basis: **${share(mixed.all)}**`;
  const answer =
    moves === 1
      ? `One move by ${tokens(step)} leaves keys **${share(many.all)}** off. Move them again.`
      : `${moves} moves by ${tokens(step)} leave keys **${share(many.all)}** off, ${instead}.`;
  const capped = many.errors[worst] > 1 ? " A red cap stands on a pair that is off by more than its length." : "";
  return (
    `${answer}\nErrors are root mean squares over ${KEYS} keys in ${kept}; over 100%, their scale is logarithmic. The worst pair is **${worst}**, ` +
    `${share(many.errors[worst])} off.${capped} In a Hadamard basis keys are ${share(mixed.all)} off, and roundings that know ` +
    `nothing of each other would leave ${share(walk)}. A move turns pair **${pair}** by ${small(step * THETA[pair])} ` +
    `rad and leaves **${share(many.same[pair])}** of its stored numbers as they are; it ends ` +
    `**${small(many.beside[pair])} rad** beside its place, **${share(many.errors[pair])}** off. ` +
    `One that never moved would be ${share(stays[pair])} off.`
  );
}

const LABEL =
  "A chart of how far keys are off after so many moves, with a handle at its end; a pair of a stored key as a hand of " +
  "a clock, and dashed where it belongs; a lens on its tip, with the numbers that can be stored as dots and the next " +
  "move as an arrow; and how far each pair is off, from fast to slow. " +
  "The left and right arrow keys change the number of moves, up and down the pair";

const MOST = 256; // moves
const BEYOND = 0.4; // of the height of 100%: from there to 1,000%, on a logarithmic scale
const TITLE = 24;
const TICKS = 40; // below the chart
const STRIP = 44; // how high the pairs' bars are
const GRIP = 24; // pixels from the handle where it can be taken

/** Where the chart, the clock, the lens and the pairs lie: the chart beside the others where there is room. */
function layout(width) {
  const beside = wide(width);
  const side = beside ? Math.min(0.25 * width, 216) : (width - 16) / 2;
  const box = (x0, y0, across, high) => ({ x0, x1: x0 + across, y0, y1: y0 + high });
  const from = beside ? width - 2 * side - 16 : 0;
  const chart = beside ? box(50, TITLE, from - 88, side + 30 + STRIP) : box(50, TITLE, width - 64, 140);
  const top = beside ? TITLE : chart.y1 + TICKS + TITLE;
  const strip = box(from, top + side + 30, width - from, STRIP);
  return {
    chart,
    clock: box(from, top, side, side),
    lens: box(from + side + 16, top, side, side),
    strip,
    height: strip.y1 + (beside ? TICKS : 20),
  };
}

export default figure((fig) => {
  let field = null; // the axes of the chart, for the pointer
  let known = {};
  const keep = (pair) => clamp(pair, 0, PAIRS - 1);
  const grips = (x, y) => Math.hypot(x - field.handle[0], y - field.handle[1]) <= GRIP;

  const plot = fig.canvas({
    label: LABEL,
    help: "Drag the green disc. Point at a pair, or tap it.",
    height: (width) => layout(width).height,
    point({ x, y }) {
      const { x0, x1, y0 } = layout(plot.width).strip;
      plot.canvas.style.cursor = grips(x, y) ? "grab" : "";
      if (x >= x0 && y >= y0 - 6) fig.set({ pair: keep(Math.floor(((x - x0) / (x1 - x0)) * PAIRS)) });
    },
    sideways: true,
    drag({ x, y, begins }) {
      if (begins) return grips(x, y);
      fig.set({ moves: clamp(Math.round(field.invX(x)), 1, MOST) });
      return true;
    },
    keys({ dx, dy }) {
      fig.set({ moves: clamp(fig.traits.moves + dx, 1, MOST), pair: keep(fig.traits.pair + dy) });
    },
  });

  fig.draw(() => {
    const { kept, moves, step, pair } = fig.traits;
    const key = [kept, moves, step].join();
    if (known.key !== key) known = { key, ...reading(kept, moves, step), ...laws(kept, moves, step) };
    const { width } = plot.clear();
    const { clock, lens, chart, strip } = layout(width);
    const is = known.many.path.at(-1);
    const tip = drawClock(plot, clock, pair, known.many.path, belongs(moves * step));
    const rounded = drawLens(plot, lens, fig.traits, is, tip);
    field = drawTrails(plot, chart, known, fig.traits);
    drawPairs(plot, strip, known.many.errors, pair);
    fig.say(words(fig.traits, known));
    const { many, mixed, one, worst } = known;
    const off = { many: many.all, mixed: mixed.all, one: one.all };
    fig.root.dataset.values = JSON.stringify({ kept, moves, step, pair, ...off, worst, rounded });
  });

  fig.showMe(async () => {
    fig.set({ moves: 1, step: 1 });
    await fig.glide({ moves: 256 }, 5000);
    for (const moves of [64, 16, 4, 1, 256]) {
      await fig.pause(1500);
      fig.set({ moves, step: 256 / moves });
    }
  });
});

const part = (key, pair) => [key[pair], key[pair + PAIRS]];
const titled = (plot, { x0, y0 }, title) =>
  text(plot, title, x0, y0 - 15, { color: plot.colors.ink, size: 12.5, bold: true });

/** One pair of the first key: where it should point, all that was stored on the way, and its tip, which is returned. */
function drawClock(plot, box, pair, path, exact) {
  const { ctx, colors } = plot;
  const [cx, cy, radius] = [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, 0.42 * (box.x1 - box.x0)];
  const [is, should] = [path.at(-1), exact].map((key) => part(key, pair));
  const length = Math.hypot(...should);
  const on = ([x, y], most = 1.15) => {
    const by = (radius * Math.min(1, (most * length) / Math.hypot(x, y) || 1)) / length;
    return [cx + by * x, cy - by * y];
  };
  titled(plot, box, `pair ${pair} of a key`);
  ctx.lineWidth = 1;
  ctx.strokeStyle = colors.rule;
  ctx.beginPath();
  ctx.arc(cx, cy, radius, 0, TURN);
  ctx.stroke();
  const angle = ([x, y]) => Math.atan2(y, x);
  const gap = shortWay(angle(is) - angle(should));
  ctx.beginPath();
  ctx.moveTo(cx, cy);
  ctx.arc(cx, cy, radius, -angle(should), -(angle(should) + gap), gap > 0);
  ctx.closePath();
  ctx.fillStyle = colors.warm;
  ctx.globalAlpha = 0.2;
  ctx.fill();
  ctx.globalAlpha = 1;
  for (const key of path) {
    const [x, y] = on(part(key, pair));
    ctx.fillStyle = colors.muted;
    ctx.fillRect(x - 1, y - 1, 2, 2);
  }
  arrow(plot, cx, cy, ...on(should), colors.k, { width: 2, dash: [4, 4] });
  arrow(plot, cx, cy, ...on(is), colors.k, { width: 3.5 });
  disc(plot, cx, cy, 3.5, colors.muted);
  const named = (said, y, look) => {
    level(plot, y, { x0: box.x0, x1: box.x0 + 14 }, colors.k, look);
    text(plot, said, box.x0 + 18, y, { size: 11.5, color: colors.ink, halo: true });
  };
  named("stored", box.y0 + 4, { width: 3.5 });
  named("exact", box.y1 - 4, { width: 2, dash: [4, 3] });
  return on(is);
}

/** How far apart the numbers are that can be stored about a channel of a key. */
function spacing(key, channel, kind) {
  if (kind in FLOATS) {
    const [bits, lowest] = FLOATS[kind];
    return 2 ** (Math.max(Math.floor(Math.log2(Math.abs(key[channel]))), lowest) - bits + 1);
  }
  const from = channel - (channel % BLOCK);
  return Math.max(...key.subarray(from, from + BLOCK).map(Math.abs)) / Math.abs(LEVELS[kind][0]);
}

const CELLS = 1.7; // that the lens shows on each side

/** The numbers that can be stored about the tip, `from` there, and the next move; returns whether it is rounded away. */
function drawLens(plot, box, { kept, step, pair }, is, from) {
  const { ctx, colors } = plot;
  const tip = part(is, pair);
  const turned = rotate(is, step, THETA);
  const moved = part(turned, pair);
  const steps = [pair, pair + PAIRS].map((channel) => spacing(is, channel, kept));
  const half = Math.max(CELLS * Math.max(...steps), 1.3 * Math.hypot(moved[0] - tip[0], moved[1] - tip[1]));
  const [cx, cy, radius] = [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, (box.x1 - box.x0) / 2];
  const on = ([x, y]) => [cx + ((x - tip[0]) / half) * radius, cy - ((y - tip[1]) / half) * radius];
  const next = part(store(turned, kept), pair);
  const rounded = next.every((x, c) => Math.abs(x - tip[c]) < steps[c] / 2);
  const [x, y] = from;
  for (const corner of [box.y0, box.y1]) curve(plot, [x, box.x0], [y, corner], colors.rule, { width: 1 });
  titled(plot, box, rounded ? "next: rounded away" : "next: it follows");
  ctx.save();
  ctx.beginPath();
  ctx.roundRect(box.x0, box.y0, 2 * radius, 2 * radius, 6);
  ctx.strokeStyle = colors.rule;
  ctx.lineWidth = 1;
  ctx.stroke();
  ctx.clip();
  const [wideCell, highCell] = steps.map((size) => (size / half) * radius);
  ctx.fillStyle = rounded ? colors.warm : colors.accent;
  ctx.globalAlpha = 0.15;
  ctx.fillRect(cx - wideCell / 2, cy - highCell / 2, wideCell, highCell);
  ctx.globalAlpha = 1;
  const dots = Math.min(wideCell, highCell) > 5;
  const [xs, ys] = steps.map((size, c) => {
    const many = dots ? Math.ceil(half / size) : 0;
    const all = Array.from({ length: 2 * many + 1 }, (_, i) => tip[c] + (i - many) * size);
    return kept in FLOATS ? toFloats(all, FLOATS[kept]) : all;
  });
  for (const x of xs) for (const y of ys) disc(plot, ...on([x, y]), 2, colors.muted, { ring: colors.muted });
  disc(plot, cx, cy, 5, colors.k);
  arrow(plot, cx, cy, ...on(moved), rounded ? colors.warm : colors.accent, { width: 3 });
  ctx.fillStyle = colors.paper;
  ctx.fillRect(box.x0 + 1, box.y1 - 20, 2 * radius - 2, 19); // no dot behind the words
  ctx.restore();
  text(plot, dots ? "dots: what can be stored" : "what can be stored is denser", cx, box.y1 - 10, {
    align: "center",
    size: 11.5,
  });
  return rounded;
}

/** The height of an error in the chart; none of 256 moves is over 1,000%. */
const tall = (error) => (error > 1 ? 1 + BEYOND * Math.log10(error) : error);

/** How far keys were off after every move up to here, and what that is compared with; the axes, and the handle. */
function drawTrails(plot, box, { many, mixed, one }, { moves, step, other }) {
  const { ctx } = plot;
  const { accent, muted, warm, paper } = plot.colors;
  const at = axes(plot, {
    x: [-0.035 * MOST, MOST], // room for the handle at its left end
    xTicks: [0, 64, 128, 192, 256],
    xLabel: `moves, each by ${tokens(step)}`,
    y: [-0.07, tall(10)],
    yTicks: [0, 0.5, 1, 3, 10].map(tall),
    yFormat: (v) => `${num(100 * (v > 1 ? 10 ** ((v - 1) / BEYOND) : v), 0)}%`,
    box: { left: box.x0, right: plot.width - box.x1, top: box.y0, bottom: plot.height - box.y1 },
  });
  titled(plot, box, "how far keys are off");
  const high = (error) => at.y(tall(error));
  ctx.globalAlpha = 0.08;
  ctx.fillStyle = warm;
  ctx.fillRect(box.x0, box.y0, box.x1 - box.x0, high(1) - box.y0);
  ctx.globalAlpha = 1;
  text(plot, "over 100%: log scale", box.x0 + 6, box.y0 + 11, { size: 11.5 });
  ctx.strokeStyle = muted;
  ctx.lineWidth = 1.5;
  for (const by of [-5, -1]) line(ctx, box.x0 - 4, high(1) + by + 2, box.x0 + 4, high(1) + by - 2); // a break
  const xs = many.trail.map((_, n) => at.x(n));
  const [x, y] = [at.x(moves), high(many.all)];
  const instead = other === "one move" ? one : mixed;
  const low = high(instead.all);
  if (moves > 1) {
    if (other === "one move") curve(plot, [xs[0], x], [high(many.trail[0]), low], accent, { width: 2, dash: [5, 4] });
    else curve(plot, xs, mixed.trail.map(high), accent, { width: 2 });
    disc(plot, x, low, 4, paper, { ring: accent });
  }
  curve(plot, xs, many.trail.map(high), warm, { width: 2.5 });
  disc(plot, x, y, 10, accent);
  text(plot, "↔", x, y, { align: "center", color: paper, size: 14, bold: true });
  // beside the handle and over the curves, both over the upper one where there is no room between
  const left = moves > MOST / 2;
  const beside = { align: left ? "right" : "left", bold: true, size: 13, halo: true };
  const from = left ? x - 16 : x + 16;
  const close = Math.abs(low - y) < 40;
  const over = Math.max(close ? Math.min(y, low) - 31 : y - 13, box.y0 + 8);
  text(plot, `${moves === 1 ? "1 move" : `${moves} moves`}: ${share(many.all)}`, from, over, {
    ...beside,
    color: warm,
  });
  const said = other === "one move" ? "one move" : "Hadamard basis";
  const under = close ? over + 18 : low - 13;
  if (moves > 1) text(plot, `${said}: ${share(instead.all)}`, from, under, { ...beside, color: accent });
  if (!left && many.all < 0.4)
    text(plot, `${MOST} moves: ?`, box.x1 - 4, high(1) + 14, { align: "right", bold: true, size: 13 });
  return { ...at, handle: [x, y] };
}

/** How far each pair is off, as bars from fast to slow; those that are off by more than they are long have a red cap. */
function drawPairs(plot, box, errors, pair) {
  const { ctx, colors } = plot;
  const across = (box.x1 - box.x0) / PAIRS;
  const capped = errors.some((error) => error > 1) ? " (red: over 100%)" : "";
  text(plot, `how far each pair is off${capped}`, box.x0, box.y0 - 13, { color: colors.ink, size: 12.5, bold: true });
  ctx.fillStyle = colors.rule;
  ctx.fillRect(box.x0 + pair * across, box.y0, across, box.y1 - box.y0);
  errors.forEach((error, i) => {
    const tall = Math.max(1, Math.min(error, 1) * (box.y1 - box.y0));
    ctx.fillStyle = pairColor(i, PAIRS);
    ctx.fillRect(box.x0 + i * across, box.y1 - tall, across - 0.75, tall);
    ctx.fillStyle = colors.warm;
    if (error > 1) ctx.fillRect(box.x0 + i * across, box.y0, across - 0.75, 3);
  });
  level(plot, box.y1 + 0.5, box, colors.muted, { width: 1 });
  const x = box.x0 + (pair + 0.5) * across;
  text(plot, "▲", x, box.y1 + 8, { align: "center", size: 11, color: colors.ink });
  if (x > box.x0 + 40) text(plot, "fast", box.x0, box.y1 + 11, { size: 11.5 });
  if (x < box.x1 - 40) text(plot, "slow", box.x1, box.y1 + 11, { align: "right", size: 11.5 });
}
