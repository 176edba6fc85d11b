// A head of a released model over a sentence: the words that a word reads, as released and as changed,
// what is left of that without one pair after the other, the use of each, and two maps of attention.
import { roundTo } from "./aliasing.js";
import { curve, disc, level, line, text, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, percent } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { inverseFrequencies, pairChannels } from "./rope.js";

const WIDTH = 64; // channels of a head
const PAIRS = WIDTH / 2;
const BEGIN = 8; // queries before it have few keys to choose from, and are not counted
export const RELEASED = { first: 0, out: 0, factor: 1, base: 1e5, paired: "as trained", rounded: "nothing", start: 0 };

// ---- the mathematics ----------------------------------------------------------------------------

const bytes = (packed) => Uint8Array.from(atob(packed), (one) => one.charCodeAt(0)).buffer;

/** Queries and keys of a head before the rotation, token after token: every byte times its channel's step. */
export function unpack({ q, k, scale }) {
  const scales = new Float32Array(bytes(scale));
  const vectors = (packed, from) =>
    Float64Array.from(new Int8Array(bytes(packed)), (whole, at) => {
      const channel = from + (at % WIDTH);
      return whole * scales[channel] + scales[channel + WIDTH];
    });
  return { q: vectors(q, 0), k: vectors(k, 2 * WIDTH) };
}

/** Vectors turned, each by its position, as the settings say. */
function turned(vectors, { factor, base, paired, rounded, start }) {
  const theta = inverseFrequencies(WIDTH, base);
  const round = (x, what) => (rounded === what ? roundTo(x, "bfloat16") : x);
  const out = new Float64Array(vectors.length);
  for (let at = 0; at < vectors.length; at += WIDTH) {
    const position = round(start + at / WIDTH, "positions");
    for (let i = 0; i < PAIRS; i++) {
      const angle = round((position * theta[i]) / factor, "angles");
      const [c, s] = [round(Math.cos(angle), "table"), round(Math.sin(angle), "table")];
      const [a, b] = pairChannels(i, WIDTH, paired === "as trained").map((channel) => at + channel);
      out[a] = c * vectors[a] - s * vectors[b];
      out[b] = s * vectors[a] + c * vectors[b];
    }
  }
  return out;
}

/** The weights of every query on every key, row after row; the pairs left out are those that were trained. */
export function attention({ q, k }, settings) {
  const kept = k.map((x, at) => {
    const pair = Math.floor((at % WIDTH) / 2);
    return pair >= settings.first && pair < settings.first + settings.out ? 0 : x;
  });
  const [queries, keys] = [turned(q, settings), turned(kept, settings)];
  const n = q.length / WIDTH;
  const weights = new Float64Array(n * n);
  for (let m = 0; m < n; m++) {
    const row = weights.subarray(m * n, m * n + m + 1); // the causal mask
    for (let key = 0; key <= m; key++) {
      let sum = 0;
      for (let c = 0; c < WIDTH; c++) sum += queries[m * WIDTH + c] * keys[key * WIDTH + c];
      row[key] = sum / Math.sqrt(WIDTH);
    }
    const most = Math.max(...row);
    const powers = row.map((score) => Math.exp(score - most));
    const all = powers.reduce((sum, power) => sum + power, 0);
    row.set(powers.map((power) => power / all));
  }
  return weights;
}

/** Of each pair, mean length of the queries' part times that of the keys', as a share of all. */
export function usage({ q, k }) {
  const lengths = (vectors) => {
    const sums = new Float64Array(PAIRS);
    for (let at = 0; at < vectors.length; at += 2) sums[(at % WIDTH) / 2] += Math.hypot(vectors[at], vectors[at + 1]);
    return sums;
  };
  const keys = lengths(k);
  const products = lengths(q).map((length, i) => length * keys[i]);
  const all = products.reduce((sum, product) => sum + product, 0);
  return products.map((product) => product / all);
}

/** Whether a key is among those whose share is counted: a function of query and key. */
function counted(share, tokens, weights) {
  const n = tokens.length;
  if (share === "loud") {
    const read = tokens.map((_, key) =>
      tokens.reduce((sum, _token, m) => sum + (m >= BEGIN) * weights[m * n + key], 0),
    );
    const third = [...read].sort((a, b) => b - a)[2];
    return (_, key) => read[key] >= third;
  }
  return {
    before: (m, key) => m - key === 1,
    first: (_, key) => key === 0,
    itself: (m, key) => m === key,
    near: (m, key) => m - key >= 2 && m - key <= 6,
    same: (m, key) => key < m && tokens[key] === tokens[m],
    next: (m, key) => key > 0 && key < m && tokens[key - 1] === tokens[m],
    far: (m, key) => key > 0 && m - key >= 16,
  }[share];
}

/** The part of attention that the counted keys get, mean over the queries that have one. */
export function shareOf(share, tokens, released, weights) {
  const counts = counted(share, tokens, released);
  const n = tokens.length;
  const found = [];
  for (let m = BEGIN; m < n; m++) {
    const keys = tokens.map((_, key) => key).filter((key) => key <= m && counts(m, key));
    if (keys.length) found.push(keys.reduce((sum, key) => sum + weights[m * n + key], 0));
  }
  return found.reduce((sum, part) => sum + part, 0) / found.length;
}

/** The part of attention that has moved to other keys, mean over the queries. */
export function moved(released, weights) {
  const n = Math.sqrt(weights.length);
  const apart = weights
    .subarray(BEGIN * n)
    .reduce((sum, weight, i) => sum + Math.abs(weight - released[BEGIN * n + i]), 0);
  return apart / 2 / (n - BEGIN);
}

/** The key that a query reads most: { key, word, back, weight }. */
function most(tokens, weights, query) {
  const n = tokens.length;
  const row = weights.subarray(query * n, query * n + query + 1);
  const key = row.indexOf(Math.max(...row));
  return { key, word: tokens[key].trim(), back: query - key, weight: row[key] };
}

const opened = new WeakMap();

/** Of a head as the data have it what no setting changes, found once: { vectors, used, released }. */
function open(head) {
  if (!opened.has(head)) {
    const vectors = unpack(head);
    opened.set(head, { vectors, used: usage(vectors), released: attention(vectors, RELEASED) });
  }
  return opened.get(head);
}

/** What a head does in a setting. */
function measured({ tokens, heads }, traits) {
  const one = heads.find(({ name }) => name === traits.head);
  const { name, share, layer, head } = one;
  const { vectors, used, released } = open(one);
  const settings = Object.fromEntries(Object.keys(RELEASED).map((key) => [key, traits[key]]));
  settings.out = Math.min(settings.out, PAIRS - settings.first);
  const weights = [released, attention(vectors, settings)];
  return {
    settings,
    head: { name, share, layer, head },
    weights,
    usage: used,
    loudest: used.indexOf(Math.max(...used)),
    shares: weights.map((now) => shareOf(share, tokens, released, now)),
    moved: moved(...weights),
  };
}

/** The share that is left with the window of left out pairs elsewhere, by its first pair: found once each. */
function makeSweep({ tokens, heads }) {
  let known = {};
  return (traits, first) => {
    const { query: _query, tried: _tried, first: _first, ...rest } = traits;
    const key = JSON.stringify(rest);
    if (known.key !== key) known = { key, found: new Map() };
    if (!known.found.has(first)) {
      const head = heads.find(({ name }) => name === traits.head);
      const { vectors, released } = open(head);
      const weights = attention(vectors, { ...traits, first });
      known.found.set(first, shareOf(head.share, tokens, released, weights));
    }
    return known.found.get(first);
  };
}

/** What a query reads: its word, and the key that it reads most, as released and now. */
const asked = (tokens, weights, query) => ({
  query: { at: query, word: tokens[query].trim() },
  most: weights.map((one) => most(tokens, one, query)),
});

/** Everything that is said and drawn. */
export function reading(data, traits) {
  const found = measured(data, traits);
  return { ...found, ...asked(data.tokens, found.weights, traits.query) };
}

// ---- the words ----------------------------------------------------------------------------------

const READS = {
  before: "the token before",
  first: "the first token",
  itself: "the token itself",
  near: "tokens two to six back",
  same: "the same word further back",
  next: "what followed the same word",
  far: "tokens 16 or more back",
  loud: "three keys, whoever asks",
};

/** What differs from the released model but for the pairs left out, each in a few words. */
function changes({ factor, base, paired, rounded, start }) {
  const table = rounded === "table" ? "cosines and sines" : rounded;
  return [
    factor !== RELEASED.factor && `positions divided by ${num(factor, 1)}`,
    base !== RELEASED.base && `base ${num(base, 0)}`,
    paired !== RELEASED.paired && "pairs of the other layout",
    rounded !== RELEASED.rounded && `${table} in bfloat16`,
    start > 0 && `positions from ${num(start, 0)} on`,
  ].filter(Boolean);
}

/** Whether the head keeps what it read, for the beginning of an answer. */
function verdict({ first, out }, others, [released, now], loudest) {
  const named = first === loudest ? `pair ${first}, the loudest` : `pair ${first}`;
  const pairs = out === 1 ? named : `pairs ${first} to ${first + out - 1}`;
  const list = others.length > 2 ? `${others.length} changes` : others.join(" and ");
  if (others.length) return `With ${list}${out ? `, without ${pairs}` : ""}`;
  const some = lack(now, released) === "needs it" && out > 1 ? "some of " : "";
  return `It ${lack(now, released).replace(" it", "")} ${some}${pairs}`;
}

/** How a head fares without what is left out, from the share that is left and that as released. */
const LACKS = ["does without it", "is weaker without it", "needs it"];
const lack = (now, released) => LACKS[now >= 0.9 * released ? 0 : now >= 0.5 * released ? 1 : 2];

const named = ({ key, word, back, weight }) => {
  const which = back === 0 ? "itself" : key === 0 ? "the first token" : `“${word}”, ${back} back`;
  return `${which} (**${percent(weight)}**)`;
};

/** What is said, from a reading: the answer, and after a line's end the numbers. */
export function words({ settings, head, shares, moved: elsewhere, query, most: [before, now], loudest }) {
  const others = changes(settings);
  const change = others.length > 0 || settings.out > 0;
  const to = READS[head.share];
  const answer = change
    ? `${verdict(settings, others, shares, loudest)}: **${percent(shares[1])}** of its attention goes to ${to}, **${percent(shares[0])}** as released.`
    : `**${percent(shares[0])}** of its attention goes to ${to}. Leave some pairs out.`;
  const reads = `“${query.word}” reads mostly ${named(before)}`;
  const changed = change
    ? `, changed ${named(now)}. In all, **${percent(elsewhere)}** of the attention is elsewhere.`
    : ".";
  const all = others.length > 2 ? ` (${others.join(", ")})` : "";
  return `${answer}\nLayer ${head.layer}, head ${head.head}${change ? `, changed alone${all}` : ""}: ${reads}${changed}`;
}

const LABEL =
  "A sentence: tinted what the chosen word reads, with arcs to words of its line, underlined what it read as " +
  "released; a chart of the attention that is left without one of 32 pairs, for those that were tried; bars for the loudness of " +
  "each; and two maps of attention, as released and now";

// ---- the picture --------------------------------------------------------------------------------

/** Where each token stands, [{ x, y, width }], and below what height all do: lines of a width. */
export function setLines(tokens, width, size, measure) {
  const space = measure(" ");
  const high = Math.round(1.45 * size) + MARKS;
  let [x, y] = [2, high / 2];
  const places = tokens.map((token, at) => {
    const long = measure(token.trim());
    if (token.startsWith(" ")) x += space;
    const follows = tokens[at + 1] && !tokens[at + 1].startsWith(" ") ? measure(tokens[at + 1]) : 0;
    if (x > 2 && token.startsWith(" ") && x + long + follows > width - 2) [x, y] = [2, y + high];
    const place = { x, y, width: long, high };
    x += long;
    return place;
  });
  return { places, bottom: y + high / 2 };
}

const TOP = 20; // below the legend
const MARKS = 12; // height of the line under a word, and of an arc over the next one

const KNOB = 11; // radius of the handle
const REACH = 22; // pixels from its middle where it can be taken

/** Boxes of chart, bars and maps below the text, the height of the handle's track, and that of all. */
function arrangement(width, bottom) {
  const broad = wide(width);
  const top = TOP + bottom + (broad ? 44 : 42);
  const side = broad ? Math.min(160, 0.19 * width) : Math.min(104, (width - 18) / 2);
  const x0 = 36;
  const x1 = broad ? width - 2 * side - 54 : width - 6;
  const chart = { x0, x1, y0: top, y1: top + (broad ? 104 : 78) };
  const bars = { x0, x1, y0: chart.y1 + 28, y1: chart.y1 + (broad ? 82 : 64) };
  const track = bars.y1 + 16;
  const below = track + 30;
  const maps = [0, 1].map((i) => {
    const left = broad ? width - 2 * side - 19 + i * (side + 18) : width / 2 - side - 20 + i * (side + 40);
    const from = broad ? top : below + 18;
    return { x0: left, x1: left + side, y0: from, y1: from + side };
  });
  const panel = { x0, x1, y0: chart.y0, y1: track + 30 };
  return { chart, bars, track, panel, maps, height: broad ? below : maps[0].y1 + 6 };
}

const inside = ({ x0, x1, y0, y1 }, x, y, by = 0) => x >= x0 - by && x <= x1 + by && y >= y0 - by && y <= y1 + by;

export default figure((fig) => {
  const { tokens, heads } = fig.model.get("data");
  const tallest = Math.max(...heads.flatMap((head) => [...usage(unpack(head))]));
  let lies = null; // where words, bars and maps lie
  let held = 0; // where in the window it was taken
  const sweep = makeSweep({ tokens, heads });
  let known = {}; // the setting that was read last

  const linesOf = (width) => {
    const size = wide(width) ? 17 : 13.5;
    const { ctx } = plot;
    ctx.font = `${size}px ${fig.colors.font}`;
    return { size, ...setLines(tokens, width, size, (part) => ctx.measureText(part).width) };
  };
  const keep = (query) => clamp(query, 0, tokens.length - 1);
  /** Leave out the window that begins with a pair; what lies between the last one and it has been tried, too. */
  const leaveOut = (pair, between = false) => {
    const { first: from, tried, out } = fig.traits;
    const first = clamp(pair, 0, PAIRS - Math.max(out, 1));
    const passed = between ? Array.from({ length: Math.abs(first - from) }, (_, i) => Math.min(first, from) + i) : [];
    fig.set({ first, out: Math.max(out, 1), tried: [...new Set([...tried, ...passed, from, first])] });
  };
  const pairAt = (x) => {
    const { x0, x1 } = lies.bars;
    return clamp(Math.floor(((x - x0) / (x1 - x0)) * PAIRS), 0, PAIRS - 1);
  };
  const middle = () => {
    const { first, out } = fig.traits;
    const { x0, x1 } = lies.bars;
    return x0 + ((first + Math.max(out, 1) / 2) / PAIRS) * (x1 - x0);
  };
  const plot = fig.canvas({
    label: LABEL,
    help: "Drag the red handle. Tap a word.",
    height: (width) => arrangement(width, linesOf(width).bottom).height,
    point({ x, y, type }) {
      if (!lies) return;
      const word = lies.places.findIndex((at) =>
        inside({ x0: at.x, x1: at.x + at.width, y0: at.y, y1: at.y }, x, y, at.high / 2),
      );
      const map = lies.maps.find((box) => inside(box, x, y));
      const grip = inside(lies.panel, x, y, 14) && Math.abs(x - middle()) <= REACH;
      plot.canvas.style.cursor = grip ? "grab" : word >= 0 || map ? "pointer" : "";
      if (type !== "pointerdown") return;
      if (word >= 0) fig.set({ query: word });
      else if (map) fig.set({ query: keep(Math.floor(((y - map.y0) / (map.y1 - map.y0)) * tokens.length)) });
      else if (inside(lies.panel, x, y, 8) && !grip) leaveOut(pairAt(x) - Math.floor(fig.traits.out / 2));
    },
    sideways: true,
    drag({ x, y, begins }) {
      if (begins) {
        if (!lies || !inside(lies.panel, x, y, 14) || Math.abs(x - middle()) > REACH) return false;
        held = x - middle();
        return true;
      }
      const { x0, x1 } = lies.bars;
      const out = Math.max(fig.traits.out, 1);
      leaveOut(Math.round(((x - held - x0) / (x1 - x0)) * PAIRS - out / 2), true);
      return true;
    },
    keys({ dx, dy }) {
      const { query, first } = fig.traits;
      if (dx) leaveOut(clamp(first + dx, 0, PAIRS - 1));
      if (dy) fig.set({ query: keep(query + dy) });
    },
  });
  fig.whenChanged("first", () => fig.set({ tried: [...new Set([...fig.traits.tried, fig.traits.first])] }));
  for (const name of ["head", "factor", "out", "base", "paired", "rounded", "start"])
    fig.whenChanged(name, () => fig.set({ tried: [] }));

  fig.draw(() => {
    const { query, tried, ...rest } = fig.traits;
    const key = JSON.stringify(rest);
    if (known.key !== key) known = { key, ...measured({ tokens, heads }, rest) };
    const now = { ...known, ...asked(tokens, known.weights, query) };
    const { width } = plot.clear();
    const { size, places, bottom } = linesOf(width);
    const { chart, bars, track, panel, maps } = arrangement(width, bottom);
    lies = { bars, panel, maps, places: places.map((at) => ({ ...at, y: at.y + TOP })) };
    drawLegend(plot);
    drawWords(plot, tokens, lies.places, size, now);
    drawBand(plot, { ...panel, y1: track }, now.settings);
    const left = [...new Set([...tried, now.settings.first])].sort((a, b) => a - b);
    const part = (first) => (first === now.settings.first ? now.shares[1] : sweep(fig.traits, first));
    drawLeft(plot, chart, now, now.settings.out ? left.map((first) => [first, part(first)]) : []);
    drawUsage(plot, bars, tallest, now);
    drawHandle(plot, { ...bars, y: track }, middle(), now.settings);
    ["as released", "now"].forEach((title, i) => {
      drawMap(plot, maps[i], `${title}: ${percent(now.shares[i])}`, now.weights[i], now.query.at);
    });
    fig.say(words(now));
    const { weights: _, usage: _bars, key: _key, ...values } = now;
    fig.root.dataset.values = JSON.stringify(values);
  });

  fig.showMe(async () => {
    const [before, start] = [heads[0].name, heads[1].name];
    fig.set({ ...RELEASED, head: before, query: 60, first: PAIRS - 1, out: 1 });
    await fig.pause(1200);
    await fig.glide({ first: 0 }, 5000);
    await fig.pause(2400);
    fig.set({ head: start });
    await fig.pause(1200);
    await fig.glide({ first: PAIRS - 1 }, 5000);
  });
});

/** How dark a weight is: small ones are seen, too. */
const shade = (weight) => (weight < 0.002 ? 0 : Math.sqrt(weight));

function drawLegend(plot) {
  const { ctx, colors } = plot;
  const entry = (x, label) => text(plot, label, x + 22, 9, { size: 12 });
  frame(plot, 3, 3, 16, 12);
  entry(3, "reads");
  ctx.globalAlpha = 0.6;
  ctx.fillStyle = colors.k;
  ctx.fillRect(76, 3, 16, 12);
  ctx.globalAlpha = 1;
  entry(76, "is read");
  ctx.fillStyle = colors.ink;
  ctx.fillRect(154, 12, 16, 3.5);
  entry(154, "was read as released");
}

/** An orange frame: the query's. */
function frame(plot, x, y, width, height) {
  plot.ctx.strokeStyle = plot.colors.q;
  plot.ctx.lineWidth = 2;
  plot.ctx.strokeRect(x, y, width, height);
}

function drawWords(plot, tokens, places, size, { weights: [released, now], query }) {
  const { ctx, colors } = plot;
  const row = query.at * tokens.length;
  tokens.forEach((token, key) => {
    const { x, y, width, high } = places[key];
    const tall = high - MARKS;
    const top = y - tall / 2;
    ctx.globalAlpha = 0.6 * shade(now[row + key]);
    ctx.fillStyle = colors.k;
    if (ctx.globalAlpha) ctx.fillRect(x - 2, top, width + 4, tall);
    ctx.globalAlpha = 1;
    const line = 4 * shade(released[row + key]);
    ctx.fillStyle = colors.ink;
    if (line) ctx.fillRect(x, top + tall + 1, width, line);
    ctx.globalAlpha = key > query.at ? 0.75 : 1; // it does not see what comes later
    text(plot, token.trim(), x, y, { size, color: key > query.at ? colors.muted : colors.ink });
    ctx.globalAlpha = 1;
    if (key === query.at) frame(plot, x - 2, top, width + 4, tall);
  });
  const from = places[query.at];
  tokens.forEach((_, key) => {
    const weight = now[row + key];
    const to = places[key];
    if (weight < 0.05 || key >= query.at || to.y !== from.y) return; // to another line it would cross the words
    const [x0, x1] = [from, to].map(({ x, width }) => x + width / 2);
    const top = from.y - (from.high - MARKS) / 2 - 1;
    const parts = Array.from({ length: 25 }, (_, i) => i / 24);
    const bent = (a, b, c) => parts.map((t) => a * (1 - t) ** 2 + 2 * b * t * (1 - t) + c * t * t);
    const xs = bent(x0, (x0 + x1) / 2, x1);
    const ys = bent(top, top - 14, top);
    curve(plot, xs, ys, colors.k, { width: 1 + 2 * weight, alpha: 0.4 + 0.6 * weight });
  });
}

/** The pairs that are left out, over chart and bars, down to the handle. */
function drawBand({ ctx, colors }, { x0, x1, y0, y1 }, { first, out }) {
  const step = (x1 - x0) / PAIRS;
  ctx.fillStyle = colors.warm;
  ctx.globalAlpha = 0.14;
  ctx.fillRect(x0 + first * step, y0, out * step, y1 - y0);
  ctx.globalAlpha = 1;
}

/** What is left of the attention without the pairs that were tried, [first, share] each; the present one is named. */
function drawLeft(plot, box, { head, shares: [released, share], settings: { first, out } }, left) {
  const { ctx, colors } = plot;
  const { x0, x1, y0, y1 } = box;
  const x = (pair) => x0 + ((pair + out / 2) / PAIRS) * (x1 - x0);
  const y = (part) => y1 - part * (y1 - y0);
  ctx.strokeStyle = colors.rule;
  ctx.lineWidth = 1;
  for (const part of [0, 0.5, 1]) {
    line(ctx, x0, Math.round(y(part)) + 0.5, x1, Math.round(y(part)) + 0.5);
    text(plot, percent(part), x0 - 5, y(part), { align: "right", size: 11 });
  }
  text(plot, `attention to ${READS[head.share]}`, x0, y0 - 30, { size: 13, bold: true, color: colors.ink });
  level(plot, y(released), box, colors.ink, { width: 1.25, dash: [4, 3] });
  for (let i = 1; i < left.length; i++) {
    const [[a, before], [b, now]] = [left[i - 1], left[i]];
    curve(plot, [x(a), x(b)], [y(before), y(now)], colors.muted, { width: 1.5, ...(b - a > 1 && { dash: [1, 4] }) });
  }
  const hues = [colors.accent, colors.muted, colors.warm];
  const colour = (part) => hues[LACKS.indexOf(lack(part, released))];
  ctx.font = `12px ${colors.font}`;
  let end = x0;
  for (const [i, said] of out ? LACKS.entries() : []) {
    disc(plot, end + 4, y0 - 13, 4, hues[i]);
    text(plot, said, end + 12, y0 - 13, { size: 12 });
    end += 26 + ctx.measureText(said).width;
  }
  for (const [pair, part] of left) if (pair !== first) disc(plot, x(pair), y(part), 3.5, colour(part));
  const tried = left.filter(([pair]) => pair !== first).map(([pair, part]) => [x(pair), y(part), 3.5]);
  const taken = [...tried];
  if (out) {
    const at = [x(first), y(share)];
    disc(plot, ...at, 7, colour(share));
    const heights = [0, -20, 20].map((by) => clamp(at[1] + by, y0 + 9, y1 - 9));
    const places = heights.flatMap((high) => [
      [at[0] + 12, high, "left"],
      [at[0] - 12, high, "right"],
    ]);
    const label = { bold: true, size: 16, color: colour(share), halo: 5 };
    const named = write(plot, percent(share), label, places, { box, taken: tried, gap: 4, line: y(released) });
    taken.push([...at, 7], [(named.x0 + named.x1) / 2, named.y, (named.x1 - named.x0) / 2]);
  }
  const ends = [
    [x1 - 2, "right"],
    [x0 + 4, "left"],
  ];
  if (first >= PAIRS / 2) ends.reverse(); // first away from the mark
  const places = [...ends, [(x0 + x1) / 2, "center"]].flatMap(([at, align]) =>
    (released > 0.88 ? [11] : [-10, 11]).map((by) => [at, y(released) + by, align]),
  );
  write(plot, `as released ${percent(released)}`, { size: 12, halo: 4 }, places, { box, taken, gap: 10 });
}

/**
 * Write a text at the first of some places, [x, y, align], that hides fewest discs, has fewest near and is off a level
 * line: discs that are taken are [x, y, radius], gap is what is kept from them. Returns where it stands: { x0, x1, y }.
 */
function write(plot, said, style, places, { box, taken, gap, line: high }) {
  const { ctx, colors } = plot;
  ctx.font = `${style.bold ? "600 " : ""}${style.size}px ${colors.font}`;
  const long = ctx.measureText(said).width;
  const half = style.size / 2;
  const found = places.map(([x, y, align]) => {
    const x0 = x - { left: 0, center: long / 2, right: long }[align];
    const near = taken.reduce((sum, [cx, cy, radius]) => {
      const apart = Math.hypot(cx - clamp(cx, x0, x0 + long), cy - clamp(cy, y - half, y + half)) - radius;
      return sum + (apart < 3 ? 10 : apart < gap ? 1 : 0); // hidden, or only near
    }, 0);
    const out = x0 < box.x0 || x0 + long > box.x1;
    return { x0, x1: x0 + long, y, crowd: near + (Math.abs(y - high) < half + 4 ? 4 : 0) + (out ? 100 : 0) };
  });
  const best = found.reduce((one, other) => (other.crowd < one.crowd ? other : one));
  text(plot, said, best.x0, best.y, style);
  return best;
}

/** How loud each pair is. */
function drawUsage(plot, { x0, x1, y0, y1 }, tallest, { usage: shares, settings: { first, out } }) {
  const { ctx, colors } = plot;
  const step = (x1 - x0) / PAIRS;
  text(plot, "loudness |q||k| of each pair, fast to slow", x0, y0 - 10, { size: 12 });
  shares.forEach((share, i) => {
    const high = ((y1 - y0) * share) / tallest;
    ctx.globalAlpha = i >= first && i < first + out ? 0.45 : 1;
    ctx.fillStyle = pairColor(i, PAIRS);
    ctx.fillRect(x0 + (i + 0.12) * step, y1 - high, 0.76 * step, high);
  });
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colors.rule;
  ctx.lineWidth = 1;
  line(ctx, x0, y1 + 0.5, x1, y1 + 0.5);
}

/** The track under the pairs, their numbers, and the handle of those that are left out. */
function drawHandle(plot, { x0, x1, y }, at, { first, out }) {
  const { ctx, colors } = plot;
  const step = (x1 - x0) / PAIRS;
  curve(plot, [x0, x1], [y, y], colors.rule, { width: 4 });
  for (const i of [0, 8, 16, 24, 31])
    text(plot, String(i), x0 + (i + 0.5) * step, y + 19, { align: "center", size: 11.5 });
  ctx.fillStyle = colors.warm;
  if (out > 1) ctx.fillRect(x0 + first * step, y - 2, out * step, 4);
  disc(plot, at, y, KNOB, colors.warm);
  text(plot, "↔", at, y + 0.5, { align: "center", size: 14, bold: true, color: colors.paper });
  const right = at < x1 - 70;
  const label = { align: right ? "left" : "right", size: 12.5, bold: true, color: colors.warm, halo: true };
  text(plot, out ? "left out" : "leave out", at + (right ? KNOB + 5 : -KNOB - 5), y, label);
}

function drawMap(plot, { x0, x1, y0, y1 }, title, weights, query) {
  const { ctx, colors } = plot;
  const n = Math.sqrt(weights.length);
  const cell = (x1 - x0) / n;
  text(plot, title, x0, y0 - 9, { size: 12.5, color: colors.ink, bold: true });
  ctx.fillStyle = colors.k;
  weights.forEach((weight, i) => {
    ctx.globalAlpha = shade(weight);
    if (ctx.globalAlpha) ctx.fillRect(x0 + (i % n) * cell, y0 + Math.floor(i / n) * cell, cell + 0.3, cell + 0.3);
  });
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colors.rule;
  ctx.lineWidth = 1;
  ctx.strokeRect(x0, y0, x1 - x0, y1 - y0);
  text(plot, "keys →", x1 - 5, y0 + 11, { align: "right", size: 11.5 });
  text(plot, "queries ↓", x1 - 5, y0 + 26, { align: "right", size: 11.5 });
  ctx.strokeStyle = colors.q;
  ctx.lineWidth = 1.5;
  for (const at of [query, query + 1]) line(ctx, x0, y0 + at * cell, x0 + (query + 1) * cell, y0 + at * cell);
}
