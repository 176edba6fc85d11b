// The waves of one head over the distance, their sum, and an arrow for every pair tip to tail.
import { axes, curve, disc, level, text, upright, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, percent, TURN } from "./kit/numbers.js";
import { pairColor } from "./kit/theme.js";
import { BASE, inverseFrequencies, normals, rotate, waveSum, waves } from "./rope.js";

const FARTHEST = 200; // of the distances, as in waves.py
const TOP = 34; // pixels above the waves
const wavesEnd = (width) => (wide(width) ? 260 : 150); // pixels, and the sum stands below
const SUM = 160;
const DISTANCES = Array.from({ length: FARTHEST + 1 }, (_, s) => s);

/** Query and key, interleaved, before any turn. All but the random ones have the length sqrt(dim). */
export function contents(kind, pairs, draw) {
  if (kind === "random") {
    const both = normals(4 * pairs, 64 * draw + pairs);
    return { q: both.slice(0, 2 * pairs), k: both.slice(2 * pairs) };
  }
  const half = Math.ceil(pairs / 2);
  const held = (i) => kind === "key = query" || (kind === "fast half" ? i < half : i >= pairs - half);
  const q = new Float64Array(2 * pairs);
  const length = Math.sqrt((2 * pairs) / (kind === "key = query" ? pairs : half));
  for (let i = 0; i < pairs; i++) if (held(i)) [q[2 * i], q[2 * i + 1]] = [length * Math.cos(i), length * Math.sin(i)];
  return { q, k: q };
}

/** The waves of a setting: heights, starts, frequencies, and the score at distances 0 .. FARTHEST. */
export function score(content, pairs, aim, draw) {
  const invFreq = inverseFrequencies(2 * pairs, BASE);
  const { q, k } = contents(content, pairs, draw);
  const parts = waves(q, rotate(k, aim, invFreq, true), true);
  return { ...parts, invFreq, sums: DISTANCES.map((s) => waveSum(parts, s, invFreq)) };
}

/** What the figure says: the sum here, all heights together, the peak, and how many others come near. */
export function reading({ heights, sums }, distance) {
  const height = heights.reduce((all, h) => all + h, 0);
  const best = sums.indexOf(Math.max(...sums));
  const near = sums.filter((sum) => sum > sums[best] - 0.1 * height).length - 1;
  return { score: sums[distance], height, best, peak: sums[best], near };
}

const HELD = { "fast half": "held by the fast half of the pairs", "slow half": "held by the slow half of the pairs" };

/** What query and key hold, in words. */
function contentText(content, pairs) {
  if (content === "random") return "Query and key drawn at random";
  return `Equal content, ${pairs === 1 ? "in the only pair" : (HELD[content] ?? "all pairs of one length")}`;
}

const MEET = 0.9999; // of all heights

/** How many waves have a crest: of half a content half of them are flat. */
const crests = (content, pairs) => (pairs > 1 && content.endsWith("half") ? pairs / 2 : pairs);

/** The answer: where the crests meet, or come nearest to it, and how many distances come near that. */
export function answer(content, pairs, { height, best, peak, near }) {
  const share = percent(peak / height);
  const meet = peak > MEET * height;
  const count = crests(content, pairs);
  const only = pairs === 1 ? "The only wave" : "The one wave that is not flat";
  const waves = { 1: `${only} has a crest`, 2: "Both crests meet" }[count] ?? `All ${count} crests meet`;
  const first = meet
    ? `${waves} at distance **${best}**`
    : `No whole distance up to ${FARTHEST} is a crest of ${count === 1 ? "the wave" : "all"}: at best ` +
      `${count === 1 ? `it is **${share}** of its height` : `the sum is **${share}** of all heights`}, ` +
      `at distance **${best}**`;
  const others =
    near === 1
      ? "**1** other distance comes"
      : `**${near || "no"}** other ${near ? "distances come" : "distance comes"}`;
  return `${first}; ${others} near that.`;
}

/** The caption: the answer, and what a reading says of a content at a distance. */
export function words(content, pairs, distance, reading) {
  const { score, height } = reading;
  const count = crests(content, pairs);
  const only = pairs === 1 ? "the only wave is" : "the one wave that is not flat is";
  const waves = { 1: only, 2: "both waves add up to" }[count] ?? `the ${count} waves add up to`;
  const whole = count === 1 ? "its height" : "all heights together";
  return (
    `${answer(content, pairs, reading)}\n${contentText(content, pairs)}. At distance **${distance}** ${waves} ` +
    `**${num(score, 2)}**, ${percent(score / height)} of ${whole}. ` +
    `Near: lower by a tenth of all heights at most, of the distances 0 to ${FARTHEST}.`
  );
}

const LABEL =
  "One wave over the distance for every pair of channels, fast pairs on top; below them their sum, the score; where " +
  "there is room, one arrow for every pair at one distance, laid tip to tail. The left and right arrow keys change " +
  "the distance, up and down turn the key";
const NOTICE = "Content decides how high each wave is and where it starts; how fast it runs is fixed.";

const chainSize = (width) => Math.min(0.36 * width, 250);

export default figure((fig) => {
  let field = null; // the axes of the sum, for the pointer
  const keep = (s) => clamp(s, 0, FARTHEST);
  const now = () => {
    const { content, pairs, aim, draw } = fig.traits;
    return score(content, Number(pairs), aim, draw);
  };

  const plot = fig.canvas({
    label: LABEL,
    height: (width) => wavesEnd(width) + SUM,
    point({ x }) {
      if (field && x < field.box.x1 + 16) fig.set({ distance: keep(Math.round(field.invX(x))) });
    },
    keys({ dx, dy }) {
      fig.set({ distance: keep(fig.traits.distance + dx), aim: keep(fig.traits.aim - dy) });
    },
  });

  fig.draw(() => {
    const { distance, aim, content, draw } = fig.traits;
    const pairs = Number(fig.traits.pairs);
    const shown = now();
    const says = reading(shown, distance);
    const { width } = plot.clear();
    const beside = wide(width);
    const size = chainSize(width);
    field = drawSum(plot, shown, says, distance, { left: 66, right: beside ? size + 34 : 14, bottom: 40 });
    drawWaves(plot, shown, distance, field);
    if (beside) drawChain(plot, shown, says, distance, [width - size / 2, TOP + size / 2], size / 2);
    fig.say(words(content, pairs, distance, says));
    fig.root.dataset.values = JSON.stringify({ distance, aim, content, draw, pairs, ...says });
  });

  fig.showMe(async () => {
    fig.set({ content: "key = query", pairs: "1", aim: 0, distance: 0 });
    await fig.pause(900);
    await fig.glide({ aim: 60, distance: 60 }, 2600);
    for (const pairs of ["2", "8", "64"]) {
      await fig.pause(1400);
      fig.set({ pairs });
    }
    for (const content of ["slow half", "fast half", "random", "key = query"]) {
      await fig.pause(1900);
      fig.set({ content });
    }
  });
  fig.button("Random content", () => {
    const { content, draw } = fig.traits;
    fig.set({ content: "random", draw: content === "random" ? draw + 1 : draw });
  });
  fig.notice(NOTICE);
});

function drawSum(plot, { sums }, { best, height, peak }, distance, box) {
  const { ink, muted } = plot.colors;
  const at = axes(plot, {
    x: [0, FARTHEST],
    y: [-1, 1],
    xLabel: "distance s (tokens)",
    yTicks: [-1, 0, 1],
    box: { top: wavesEnd(plot.width) + 26, ...box },
  });
  const heights = sums.map((sum) => at.y(sum / height));
  curve(plot, DISTANCES.map(at.x), heights, ink);
  disc(plot, at.x(best), at.y(peak / height), 3, muted);
  upright(plot, at.x(distance), { y0: TOP - 8, y1: at.box.y1 }, muted, { width: 1 });
  disc(plot, at.x(distance), heights[distance], 5, ink);
  text(plot, "the score, 1 = all crests together", at.box.x0, at.box.y0 - 15, { color: ink, size: 12.5, halo: true });
  return at;
}

function drawWaves(plot, { heights, starts, invFreq }, distance, { x, box }) {
  const pairs = invFreq.length;
  const few = pairs <= 8;
  const highest = Math.max(...heights);
  const end = wavesEnd(plot.width);
  const row = (end - 8 - TOP) / pairs;
  const tall = few ? Math.min(row / 2 - 1, 42) : 9;
  const middle = (i) => TOP + (i + 0.5) * row;
  const at = (i, s) => middle(i) - (tall * heights[i] * Math.cos(s * invFreq[i] + starts[i])) / highest;
  const title = pairs === 1 ? "one pair, one wave" : `${pairs} pairs, ${pairs} waves, fast to slow`;
  text(plot, title, box.x0, 12, { color: plot.colors.ink, size: 12.5 });
  for (let i = 0; i < pairs; i++) {
    const step = invFreq[i] > 0.15 ? 0.2 : 1;
    const some = Array.from({ length: Math.round(FARTHEST / step) + 1 }, (_, j) => j * step);
    const color = pairColor(i, pairs);
    if (few) level(plot, middle(i), box, plot.colors.rule, { width: 1 });
    const heightAt = (s) => at(i, s);
    curve(plot, some.map(x), some.map(heightAt), color, { width: few ? 1.75 : 1.1 });
    if (few) disc(plot, x(distance), at(i, distance), 4, color);
  }
  for (const i of few ? invFreq.keys() : [0, 16, 32, 48, 63]) {
    const freq = String(Number(invFreq[i].toPrecision(2)));
    text(plot, freq, box.x0 - 7, middle(i), { align: "right", size: 11, color: pairColor(i, pairs) });
  }
  text(plot, "radians per token", 7, (TOP + end) / 2, { align: "center", angle: -TURN / 4, size: 11.5 });
}

/** An arrow for every pair, each beginning where the one before it ends: the sum lies under their tip. */
function drawChain(plot, { heights, starts, invFreq }, { height: all, score: sum }, distance, [cx, cy], radius) {
  const { ctx, colors } = plot;
  const pairs = heights.length;
  const scale = (radius - 4) / all;
  const title = pairs === 1 ? "its arrow at distance" : "their arrows at distance";
  const end = pairs === 1 ? "" : ", tip to tail";
  text(plot, `${title} ${distance}${end}`, cx - radius, cy - radius - 22, { color: colors.ink, size: 12.5 });
  ctx.strokeStyle = colors.rule;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.arc(cx, cy, radius - 4, 0, TURN);
  ctx.stroke();
  level(plot, cy, { x0: cx - radius, x1: cx + radius }, colors.rule, { width: 1 });
  let [x, y] = [cx, cy];
  heights.forEach((height, i) => {
    const angle = distance * invFreq[i] + starts[i];
    const [nextX, nextY] = [x + scale * height * Math.cos(angle), y - scale * height * Math.sin(angle)];
    curve(plot, [x, nextX], [y, nextY], pairColor(i, pairs), { width: pairs > 8 ? 2 : 3 });
    if (pairs <= 8 && height > 0) disc(plot, nextX, nextY, 2.5, pairColor(i, pairs));
    [x, y] = [nextX, nextY];
  });
  upright(plot, x, { y0: y, y1: cy }, colors.muted, { width: 1, dash: [3, 3] });
  level(plot, cy + 9, { x0: cx, x1: cx + scale * sum }, colors.ink, { width: 4 });
  text(plot, "sum", cx + (scale * sum) / 2, cy + 22, { color: colors.ink, align: "center", halo: true });
  disc(plot, cx, cy, 3, colors.muted);
}
