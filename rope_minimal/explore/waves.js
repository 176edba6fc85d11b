// The waves of one head over the distance, their sum, and the hands of all pairs tip to tail.
import { figure, axes, curve, disc, num, pairColor, text } from "./kit.js";
import { inverseFrequencies, rotate, waveSum, waves } from "./rope.js";

const FARTHEST = 200; // of the distances, as in waves.py
const BASE = 10000;
const TOP = 34; // pixels above the waves
const WAVES = 270; // down to their end
const SUM = 190; // and the sum below them
const DISTANCES = Array.from({ length: FARTHEST + 1 }, (_, s) => s);

/** Independent standard normal numbers, the same for the same seed (mulberry32, Box and Muller). */
export function normals(count, seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return Float64Array.from({ length: count }, () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()));
}

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

/** The waves of a setting: heights, starts, speeds, and the score at distances 0 .. FARTHEST. */
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

export default figure((fig) => {
  let field = null; // the axes of the sum, for the pointer
  const keep = (s) => Math.min(Math.max(s, 0), FARTHEST);
  const wide = (width) => width >= 560;
  const chainSize = (width) => Math.min(wide(width) ? 0.36 * width : width, 260);
  const now = () => {
    const { content, pairs, aim, draw } = fig.traits;
    return score(content, Number(pairs), aim, draw);
  };

  const plot = fig.canvas({
    label: "One wave over the distance for every pair of channels, fast pairs on top; below them their sum, the score; beside them the hands of all pairs at one distance, laid tip to tail",
    help: "Point at the waves, or focus them and use the left and right arrow keys, to change the distance; up and down turn the key.",
    height: (width) => WAVES + SUM + (wide(width) ? 0 : chainSize(width) + 30),
    point({ x, y }) {
      if (field && y < WAVES + SUM && x < field.box.x1 + 16) fig.set({ distance: keep(Math.round(field.invX(x))) });
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
    const { width, height } = plot.clear();
    const size = chainSize(width);
    field = drawSum(plot, shown, says, distance, { left: 66, right: wide(width) ? size + 34 : 14, top: WAVES + 26, bottom: height - WAVES - SUM + 40 });
    drawWaves(plot, shown, distance, field);
    if (wide(width)) drawChain(plot, shown, says, distance, width - size / 2, TOP + size / 2, size / 2);
    else drawChain(plot, shown, says, distance, width / 2, WAVES + SUM + 28 + size / 2, size / 2);

    const all = pairs === 1 ? "the only wave is" : pairs === 2 ? "both waves add up to" : `the ${pairs} waves add up to`;
    fig.say(
      `${CONTENT[content]} At distance **${distance}** ${all} **${num(says.score, 2)}**, **${share(says.score, says)}** of ${pairs === 1 ? "its height" : "all heights together"}. ` +
        `Of the distances 0 to ${FARTHEST} the sum is largest at **${says.best}** with **${share(says.peak, says)}**; ` +
        (says.near === 0 ? "no other comes within ten points of that." : `**${says.near}** ${says.near === 1 ? "other comes" : "others come"} within ten points of that.`),
    );
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
  fig.button("Go to the peak", () => fig.glide({ distance: reading(now(), 0).best }, 700));
  fig.button("Other random content", () => {
    const { content, draw } = fig.traits;
    fig.set({ content: "random", draw: content === "random" ? draw + 1 : draw });
  });
  fig.notice(
    "Query and key decide how high each wave is and where it starts; the speeds they cannot change. Turning the key beforehand slides all waves by the same number of tokens, so that equal content can peak at any distance. Fast waves make the peak narrow, though a few of them alone bring rivals; slow waves make it wide.",
  );
});

const CONTENT = {
  "key = query": "Equal content, all pairs of one length.",
  "fast half": "Equal content, held by the fast half of the pairs.",
  "slow half": "Equal content, held by the slow half of the pairs.",
  random: "Query and key drawn at random.",
};

const share = (sum, { height }) => `${num(Math.round((100 * sum) / height), 0)}%`;

function drawSum(plot, { sums }, { best, height, peak }, distance, box) {
  const { ink, muted } = plot.colors;
  const at = axes(plot, { x: [0, FARTHEST], y: [-1, 1], xLabel: "distance s (tokens)", yTicks: [-1, 0, 1], box });
  curve(plot, DISTANCES.map(at.x), sums.map((sum) => at.y(sum / height)), ink, { width: 1.75 });
  disc(plot, at.x(best), at.y(peak / height), 3, muted);
  curve(plot, [at.x(distance), at.x(distance)], [TOP - 8, at.box.y1], muted, { width: 1 });
  disc(plot, at.x(distance), at.y(sums[distance] / height), 5, ink);
  text(plot, "the score, 1 = all crests together", at.box.x0, at.box.y0 - 15, { color: ink, size: 12.5 });
  return at;
}

function drawWaves(plot, { heights, starts, invFreq }, distance, { x, box }) {
  const { ink, rule } = plot.colors;
  const pairs = invFreq.length;
  const few = pairs <= 8;
  const highest = Math.max(...heights);
  const row = (WAVES - 8 - TOP) / pairs;
  const tall = few ? Math.min(row / 2 - 2, 42) : 9;
  const at = (i, s) => TOP + (i + 0.5) * row - (tall * heights[i] * Math.cos(s * invFreq[i] + starts[i])) / highest;
  const title = pairs === 1 ? "one pair, one wave" : `${pairs} pairs, ${pairs} waves, fast to slow`;
  text(plot, title, box.x0, 12, { color: ink, size: 12.5, halo: false });
  for (let i = 0; i < pairs; i++) {
    const step = invFreq[i] > 0.15 ? 0.2 : 1;
    const count = Math.round(FARTHEST / step);
    const some = Array.from({ length: count + 1 }, (_, j) => j * step);
    const color = pairColor(i, pairs);
    if (few) {
      curve(plot, [box.x0, box.x1], [TOP + (i + 0.5) * row, TOP + (i + 0.5) * row], rule, { width: 1 });
      text(plot, speed(invFreq[i]), box.x0 - 7, TOP + (i + 0.5) * row, { align: "right", size: 11, color, halo: false });
    }
    curve(plot, some.map(x), some.map((s) => at(i, s)), color, { width: few ? 1.75 : 1.1 });
    if (few) disc(plot, x(distance), at(i, distance), 4, color);
  }
  text(plot, "radians per token", 7, (TOP + WAVES) / 2, { align: "center", angle: -Math.PI / 2, size: 11.5, halo: false });
  if (!few) for (const i of [0, 16, 32, 48, 63]) text(plot, speed(invFreq[i]), box.x0 - 7, TOP + (i + 0.5) * row, { align: "right", size: 11, color: pairColor(i, pairs), halo: false });
}

const speed = (theta) => String(Number(theta.toPrecision(2)));

/** The hands of all pairs, each beginning where the one before it ends: the sum lies under their tip. */
function drawChain(plot, { heights, starts, invFreq }, { height, score: sum }, distance, cx, cy, radius) {
  const { ctx, colors } = plot;
  const scale = (radius - 4) / height;
  text(plot, heights.length === 1 ? `its hand at distance ${distance}` : `their hands at distance ${distance}, tip to tail`, cx - radius, cy - radius - 22, { color: colors.ink, size: 12.5, halo: false });
  ctx.strokeStyle = colors.rule;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.arc(cx, cy, radius - 4, 0, 2 * Math.PI);
  ctx.stroke();
  curve(plot, [cx - radius, cx + radius], [cy, cy], colors.rule, { width: 1 });
  let [x, y] = [cx, cy];
  heights.forEach((height, i) => {
    const angle = distance * invFreq[i] + starts[i];
    const [nextX, nextY] = [x + scale * height * Math.cos(angle), y - scale * height * Math.sin(angle)];
    curve(plot, [x, nextX], [y, nextY], pairColor(i, heights.length), { width: heights.length > 8 ? 2 : 3 });
    if (heights.length <= 8 && height > 0) disc(plot, nextX, nextY, 2.5, pairColor(i, heights.length));
    [x, y] = [nextX, nextY];
  });
  curve(plot, [x, x], [y, cy], colors.muted, { width: 1, dash: [3, 3] });
  curve(plot, [cx, cx + scale * sum], [cy + 9, cy + 9], colors.ink, { width: 4 });
  text(plot, "sum", cx + (scale * sum) / 2, cy + 22, { color: colors.ink, align: "center", size: 12 });
  disc(plot, cx, cy, 3, colors.muted);
}
