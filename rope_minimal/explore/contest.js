// Trained models: score against length with intervals, and the hands that one head uses.
import { figure, axes, curve, disc, num, pairColor, text } from "./kit.js";
import { rescaledFrequencies } from "./aliasing.js";

const TURN = 2 * Math.PI;
const BASE = 10000;
const T_975 = 2.7764451051977987; // Student's t with four degrees of freedom, as experiments/summary.py

/** The mean of five values, the ends of its 95 % interval, and whether that holds zero. */
export function interval(values) {
  const mean = values.reduce((sum, v) => sum + v, 0) / values.length;
  const deviation = Math.sqrt(values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / (values.length - 1));
  const half = (T_975 * deviation) / Math.sqrt(values.length);
  return { mean, low: mean - half, high: mean + half, withinNoise: mean - half <= 0 && 0 <= mean + half };
}

/** The interval of a - b, each seed compared with itself. */
export function difference(a, b) {
  return interval(a.map((value, i) => value - b[i]));
}

/** The head of an entry: its own, or, for a stretch, that of RoPE with other frequencies. */
export function headOf(task, name, times) {
  const entry = task.entries[name];
  const model = task.entries[entry.model ?? name];
  const dim = 2 * model.inv_freq.length;
  const invFreq =
    entry.stretch && times > 1
      ? Array.from(rescaledFrequencies(entry.stretch, dim, BASE, { factor: times, original_max_position_embeddings: task.window }).invFreq)
      : model.inv_freq;
  return { layer: model.head[0], number: model.head[1], loudness: model.loudness, usage: model.usage, attention: model.attention, invFreq };
}

/** The pair with the largest share, and the distance with the most attention. */
export function strongest(head) {
  const top = (values) => values.indexOf(Math.max(...values));
  return { pair: top(head.usage), distance: top(head.attention) };
}

const speed = (theta) => (theta === 0 ? "which stands still" : `which turns once in ${num(TURN / theta, TURN / theta < 10 ? 1 : 0)} tokens`);

export default figure((fig) => {
  const data = fig.model.get("data");
  const taskNow = () => data.tasks.find(({ words }) => words === fig.traits.task);
  const names = () => [fig.traits.encoding, fig.traits.against];
  const wide = (width) => width >= 560;
  const keep = (m) => Math.min(Math.max(m, 0), 64);
  let field = null; // the axes of the attention, for the pointer

  const chart = fig.canvas({
    label: "Score against the length of the text for the chosen encodings: filled points in float32, rings in bfloat16, bars are 95 % intervals over five seeds",
    height: (width) => (wide(width) ? 270 : 266),
  });
  const inside = fig.canvas({
    label: "One trained head: its hands on a dial, sized by how much the head uses each pair, and its attention by distance",
    help: "Point at the attention, or focus it and use the left and right arrow keys, to turn the hands to a distance.",
    height: (width) => (wide(width) ? 292 : 500),
    point({ x, y }) {
      if (field && y > field.box.y0 - 16) fig.set({ m: keep(Math.round(field.invX(x))) });
    },
    keys: ({ dx }) => fig.set({ m: keep(fig.traits.m + dx) }),
  });

  fig.draw(() => {
    const task = taskNow();
    const times = Number(fig.traits.times);
    const at = data.times.indexOf(times);
    const { m } = fig.traits;
    const [name, other] = names();
    const colors = [fig.colors.accent, fig.colors.warm];
    const shown = [name, other].map((one, i) => ({ name: one, color: colors[i], entry: task.entries[one] }));
    drawScores(chart, data.times, task, shown, times);
    field = drawHead(inside, task, shown, times, m, wide);

    const [a, b] = shown.map(({ entry }) => entry && { float32: interval(entry.float32[at]), bfloat16: interval(entry.bfloat16[at]) });
    const unit = task.unit === "bits" ? "bits a byte" : "right";
    const said = ({ mean, low, high }) => `**${num(mean, 3)}** (${num(low, 3)} to ${num(high, 3)})`;
    const absent = (one) => `**${one}** was not trained on this task: without a mask the answer is in plain sight.`;
    const parts = [`${times === 1 ? "At the training length" : `At ${times} windows`}, ${num(times * task.window, 0)} tokens:`];
    parts.push(a ? `**${name}** ${said(a.float32)} ${unit} in fp32, **${num(a.bfloat16.mean, 3)}** in bf16.` : absent(name));
    let apart = null;
    if (b) parts.push(`**${other}** ${said(b.float32)}, **${num(b.bfloat16.mean, 3)}** in bf16.`);
    else if (other !== "nothing") parts.push(absent(other));
    if (a && b && name !== other) {
      apart = difference(task.entries[name].float32[at], task.entries[other].float32[at]);
      parts.push(`Seed by seed they differ by ${said(apart)}: ${apart.withinNoise ? "**within noise**" : "more than noise"}.`);
    }
    let head = null;
    if (a) {
      head = headOf(task, name, times);
      const { pair, distance } = strongest(head);
      const seen = m < head.attention.length ? ` At distance **${m}** it has **${num(100 * head.attention[m], 1)}%** of its attention.` : "";
      parts.push(
        `The head shown looks most at distance **${distance}** and uses pair **${pair}** most (${num(100 * head.usage[pair], 0)}%), ${speed(head.invFreq[pair])}. All its |q||k| add up to **${num(head.loudness, 0)}**.${seen}`,
      );
      head = { ...head, pair, distance };
    }
    fig.say(parts.join(" "));
    fig.root.dataset.values = JSON.stringify({
      task: task.words, encoding: name, against: other, times, m,
      encodingScores: a ?? null, againstScores: b ?? null, difference: apart, head,
    });
  });

  fig.showMe(async () => {
    const [copy, , , language] = data.tasks.map(({ words }) => words);
    const scenes = [
      [{ task: copy, encoding: "one frequency for all pairs", against: "RoPE", times: "1", m: 7 }, 2600],
      [{ times: "4" }, 2600],
      [{ encoding: "the proposal, half a turn", times: "1" }, 2600],
      [{ task: language, encoding: "RoPE, PI", times: "8", m: 1 }, 2600],
      [{ encoding: "RoPE, YaRN" }, 0],
    ];
    for (const [values, ms] of scenes) {
      fig.set(values);
      await fig.pause(ms);
      if (values.m === 7) await fig.glide({ m: 51 }, 2600);
    }
  });
  fig.notice(
    "Within the window most encodings solve the first three tasks; they part in English, in longer texts, and in which hands their heads use. Filled points are float32, rings the same weights in bfloat16; a bar is the 95% interval of the mean over five seeds. A point at 2, 4 or 8 windows is scored where no position of the training was. On the dial each pair has its ring, fast ones outside; a larger disc is a pair that the head uses more.",
  );
});

function drawScores(plot, lengths, task, shown, times) {
  const { ctx, colors, width } = plot.clear();
  const there = shown.filter(({ entry }) => entry);
  const bits = task.unit === "bits";
  const all = there.flatMap(({ entry }) => ["float32", "bfloat16"].flatMap((dtype) => entry[dtype].flatMap((seeds) => [interval(seeds).low, interval(seeds).high])));
  const top = bits ? Math.max(4, Math.ceil(Math.max(...all, 0))) : 1;
  const at = axes(plot, {
    x: [0.82, 10.2],
    xLog: true,
    y: bits ? [1.5, top] : [0, 1],
    xTicks: lengths,
    xFormat: (v) => (v === 1 ? `${task.window}, as trained` : num(v * task.window, 0)),
    yFormat: (v) => num(v, bits ? 1 : 2).replace(/0$/, "").replace(/\.$/, ""),
    xLabel: "length of the text (tokens)",
    box: { left: 46, top: width < 560 ? 56 : 40, right: 12, bottom: 42 },
  });
  text(plot, bits ? "bits a byte: less is better" : "share of right answers: more is better", at.box.x0, 10, { color: colors.ink, size: 12, halo: false });

  ctx.fillStyle = colors.accent;
  ctx.globalAlpha = colors.dark ? 0.16 : 0.09;
  ctx.fillRect(at.x(times * 0.86), at.box.y0 - 4, at.x(times * 1.24) - at.x(times * 0.86), at.box.y1 - at.box.y0 + 4);
  ctx.globalAlpha = 1;

  const y = (value) => at.y(Math.min(Math.max(value, bits ? 1.5 : 0), top));
  there.forEach(({ name, entry, color }, i) => {
    const shift = (i - (there.length - 1) / 2) * 14;
    const points = lengths.map((length, k) => ({ x: at.x(length) + shift, ...interval(entry.float32[k]) }));
    const rings = lengths.map((length, k) => ({ x: at.x(length) + shift + 7, ...interval(entry.bfloat16[k]) }));
    curve(plot, points.map((p) => p.x), points.map((p) => y(p.mean)), color, { width: 1.6, alpha: 0.75, dash: i ? [6, 4] : [] });
    for (const [set, filled] of [[rings, false], [points, true]]) {
      for (const p of set) {
        curve(plot, [p.x, p.x], [y(p.low), y(p.high)], color, { width: filled ? 2 : 1.2 });
        if (filled) disc(plot, p.x, y(p.mean), 4.5, color);
        else disc(plot, p.x, y(p.mean), 3.2, colors.paper, { ring: color });
      }
    }
    const [across, down] = width < 560 ? [0, 16 * i] : [((at.box.x1 - at.box.x0) / 2) * i, 0];
    disc(plot, at.box.x0 + 5 + across, 26 + down, 4.5, color);
    text(plot, name, at.box.x0 + 15 + across, 26 + down, { color, size: 12, bold: true, halo: false });
  });
}

function drawHead(plot, task, shown, times, m, wide) {
  const { colors, width } = plot.clear();
  const there = shown.filter(({ entry }) => entry);
  if (!there.length) return null;
  const heads = there.map(({ name, color }) => ({ ...headOf(task, name, times), name, color }));
  const [head] = heads;
  const size = wide(width) ? 236 : 210;
  const cx = wide(width) ? size / 2 + 4 : width / 2;
  text(plot, `a head of: ${head.name}`, wide(width) ? 4 : 46, 10, { color: head.color, size: 12, bold: true, halo: false });
  text(plot, `the hands after ${num(m, 0)} token${m === 1 ? "" : "s"}`, cx, size + 34, { align: "center", size: 12, halo: false });
  drawDial(plot, cx, 24 + size / 2, size / 2 - 4, head, m);

  const left = wide(width) ? size + 62 : 46;
  const from = wide(width) ? 0 : size + 44;
  const pairs = head.usage.length;
  const most = Math.max(...heads.flatMap(({ usage }) => usage));
  const bars = axes(plot, {
    x: [-0.6, pairs - 0.4],
    y: [0, most * 1.05],
    xTicks: [],
    yFormat: (v) => `${num(100 * v, 0)}%`,
    box: { left, top: from + 28, right: 12, bottom: plot.height - from - 112 },
  });
  text(plot, "share of |q||k| in each pair, fast to slow", bars.box.x0, from + 14, { color: colors.ink, size: 12, halo: false });
  const step = (bars.box.x1 - bars.box.x0) / pairs;
  heads.forEach(({ usage, color }, i) =>
    usage.forEach((share, pair) => {
      const { ctx } = plot;
      const x = bars.x(pair) - step * 0.36;
      if (i) {
        curve(plot, [x, x + step * 0.72], [bars.y(share), bars.y(share)], color, { width: 2 });
      } else {
        ctx.fillStyle = pairColor(pair, pairs);
        ctx.fillRect(x, bars.y(share), step * 0.72, bars.box.y1 - bars.y(share));
      }
    }),
  );

  const last = Math.max(...heads.map(({ attention }) => attention.length)) - 1;
  const peak = Math.max(...heads.flatMap(({ attention }) => attention));
  const field = axes(plot, {
    x: [0, Math.max(last, 32)],
    y: [0, peak * 1.05],
    yFormat: (v) => `${num(100 * v, 0)}%`,
    xLabel: "distance (tokens)",
    box: { left, top: from + 144, right: 12, bottom: 42 },
  });
  text(plot, `attention at the training length`, field.box.x0, from + 130, { color: colors.ink, size: 12, halo: false });
  [...heads].reverse().forEach(({ attention, color }) => {
    const second = color !== head.color;
    curve(plot, attention.map((_, d) => field.x(d)), attention.map((share) => field.y(share)), color, { width: second ? 1.4 : 2, dash: second ? [6, 4] : [] });
  });
  const x = field.x(Math.min(m, last));
  curve(plot, [x, x], [field.box.y0, field.box.y1], colors.ink, { width: 1, alpha: m > last ? 0 : 0.6 });
  if (m <= last) disc(plot, x, field.y(head.attention[m] ?? 0), 4.5, head.color);
  else text(plot, "not measured so far", field.box.x1, field.box.y0 + 4, { align: "right", size: 11.5 });
  return field;
}

function drawDial(plot, cx, cy, radius, head, m) {
  const { ctx, colors } = plot;
  const pairs = head.usage.length;
  const inner = radius * 0.16;
  const gap = (radius - 12 - inner) / (pairs - 1);
  const most = Math.max(...head.usage);
  ctx.save();
  ctx.strokeStyle = colors.rule;
  ctx.beginPath();
  ctx.arc(cx, cy, radius - 2, 0, TURN);
  ctx.stroke();
  const hands = head.usage.map((share, i) => ({ i, share, angle: m * head.invFreq[i], ring: radius - 12 - i * gap }));
  for (const { i, share, angle, ring } of hands) {
    const way = angle - TURN * Math.round(angle / TURN); // the short way
    ctx.beginPath();
    ctx.arc(cx, cy, ring, 0, -way, way > 0);
    ctx.lineWidth = 1 + 3 * (share / most);
    ctx.strokeStyle = pairColor(i, pairs);
    ctx.globalAlpha = 0.5;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colors.ink;
  ctx.lineWidth = 1.25;
  ctx.beginPath();
  ctx.moveTo(cx + inner - 6, cy);
  ctx.lineTo(cx + radius - 2, cy);
  ctx.stroke();
  for (const { i, share, angle, ring } of hands) {
    const size = 1.8 + 7.5 * Math.sqrt(share / most);
    disc(plot, cx + ring * Math.cos(angle), cy - ring * Math.sin(angle), size, pairColor(i, pairs), { ring: colors.paper });
  }
  ctx.restore();
}
