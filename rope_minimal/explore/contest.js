// Trained models: every seed's score by length, by distance and by aid; the hands that a head uses.
import { figure, axes, curve, disc, num, pairColor, text } from "./kit.js";

const TURN = 2 * Math.PI;
const SIGNIFICANT = 0.05;
const COUNT = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight"];

/** The median of some values, the second smallest and the second largest: experiments/summary.py. */
export function spread(values) {
  const ordered = [...values].sort((a, b) => a - b);
  const n = ordered.length;
  const median = (ordered[Math.floor((n - 1) / 2)] + ordered[Math.ceil((n - 1) / 2)]) / 2;
  return { median, low: ordered[1], high: ordered[n - 2] };
}

/** The exact two-sided p of paired differences: the share of all changes of sign that get as far. */
export function signFlip(differences) {
  const far = Math.abs(differences.reduce((sum, d) => sum + d, 0)) - 1e-12;
  const ways = 2 ** differences.length;
  let as = 0;
  for (let way = 0; way < ways; way++) {
    const sum = differences.reduce((total, d, i) => total + ((way >> i) & 1 ? -d : d), 0);
    if (Math.abs(sum) >= far) as += 1;
  }
  return as / ways;
}

/** Compare a with b, each seed with itself; `less`: whether less is better. */
export function compare(a, b, less) {
  const differences = a.map((value, i) => value - b[i]);
  const gains = differences.map((d) => (less ? -d : d));
  const n = gains.length;
  const better = gains.filter((d) => d > 0).length;
  const worse = gains.filter((d) => d < 0).length;
  const p = signFlip(differences);
  const mean = gains.reduce((sum, d) => sum + d, 0);
  let verdict = `undecided: ${COUNT[better]} of ${COUNT[n]} seeds better, ${COUNT[worse]} worse`;
  if (better === n || worse === n) verdict = `${better ? "better" : "worse"} in all ${COUNT[n]} seeds`;
  else if (better + worse === 0) verdict = `the same in all ${COUNT[n]} seeds`;
  else if (p < SIGNIFICANT) verdict = `${mean > 0 ? "better" : "worse"} in ${COUNT[mean > 0 ? better : worse]} of ${COUNT[n]} seeds`;
  return { ...spread(differences), better, worse, p, verdict };
}

/** What was done before the long test to at least one of these entries, in groups. */
export const rowsOf = (done, entries) =>
  done.map((group) => group.filter((words) => entries.some((entry) => entry?.aids[words]))).filter((group) => group.length);

const top = (values) => values.indexOf(Math.max(...values));
const speed = (theta) => (theta === 0 ? "which rests" : `which turns once in ${num(TURN / theta, TURN / theta < 10 ? 1 : 0)} tokens`);
const between = ({ low, high }) => `(${num(low, 3)} to ${num(high, 3)})`;

export default figure((fig) => {
  const data = fig.model.get("data");
  const taskNow = () => data.tasks.find(({ words }) => words === fig.traits.task);
  const shownNow = () => {
    const { encoding, against } = fig.traits;
    const names = against === encoding ? [encoding] : [encoding, against];
    return names.map((name, i) => ({ name, second: i > 0, color: i ? fig.colors.warm : fig.colors.accent, entry: taskNow().entries[name] }));
  };
  const groupsNow = () => rowsOf(data.done, shownNow().map(({ entry }) => entry));
  const byDistance = () => Object.values(taskNow().entries).some(({ bins }) => bins);
  const wide = (width) => width >= 560;
  const keep = (value, low, high) => Math.min(Math.max(value, low), high);
  let field = null; // the axes of the attention, for the pointer
  let bands = []; // the rows of the aids, for the pointer

  const chart = fig.canvas({
    label: "Every seed's score against the length of the text for the chosen encodings, with median and interval; for two tasks also against the distance of the answer",
    height: (width) => (wide(width) || !byDistance() ? 306 : 572),
  });
  const strip = fig.canvas({
    label: `The same at ${data.aided_times} windows after each thing that was done before the test, for both encodings`,
    help: "Point at a row, or focus the rows and use the up and down arrow keys: the caption reads it.",
    height: (width) => rowsTop(width) + (1 + groupsNow().flat().length) * pitch(width) + 6 * groupsNow().length + 40,
    point({ y }) {
      const row = bands.find(({ words, from, to }) => words && from <= y && y < to);
      if (row) fig.set({ aid: row.words });
    },
    keys({ dx, dy }) {
      const rows = groupsNow().flat();
      if (rows.length) fig.set({ aid: rows[keep(rows.indexOf(fig.traits.aid) + (dy || dx), 0, rows.length - 1)] });
    },
  });
  const inside = fig.canvas({
    label: "One trained head: its hands on a dial, sized by how much the head uses each pair, and its attention by distance",
    help: "Point at the attention, or focus it and use the left and right arrow keys, to turn the hands to a distance.",
    height: (width) => (wide(width) ? 304 : 512),
    point({ x, y }) {
      if (field && y > field.box.y0 - 16) fig.set({ m: keep(Math.round(field.invX(x)), 0, 64) });
    },
    keys: ({ dx }) => fig.set({ m: keep(fig.traits.m + dx, 0, 64) }),
  });

  fig.draw(() => {
    const task = taskNow();
    const times = Number(fig.traits.times);
    const at = data.times.indexOf(times);
    const { m, aid } = fig.traits;
    const shown = shownNow();
    const there = shown.filter(({ entry }) => entry);
    const range = rangeOf(task, there);
    const less = task.unit === "bits";
    const apart = there.length === 2 ? compare(...there.map(({ entry }) => entry.scores[at]), less) : null;
    drawScores(chart, data, task, there, times, range, wide, byDistance(), apart);
    bands = drawAids(strip, data, task, there, groupsNow(), aid, range, wide);
    field = drawHead(inside, there, m, wide);

    const parts = [];
    const scores = there.map(({ name, entry }) => ({ name, ...spread(entry.scores[at]) }));
    if (there.length) {
      const where = times === 1 ? "At the training length" : `At ${times} windows`;
      const said = scores.map(({ name, ...s }) => `**${name}** **${num(s.median, 3)}** ${between(s)}`);
      parts.push(`${where}, ${num(times * task.window, 0)} tokens, ${less ? "bits a byte" : "accuracy"} in the median: ${said.join(", ")}.`);
    }
    for (const { name, entry } of shown) {
      if (entry || name === "nothing") continue;
      const seen = name.includes("no causal mask") && less ? ": without a mask the next byte is in plain sight" : "";
      parts.push(`**${name}** was not tried on this task${seen}.`);
    }
    if (apart) {
      parts.push(
        `Seed by seed, **${there[0].name}** against ${there[1].name}: **${apart.verdict}**; the median difference is **${num(apart.median, 3)}** ${between(apart)}, p = ${num(apart.p, 3)} (two-sided; one of many, p before any correction).`,
      );
    }
    const medians = (what) => there.map(({ entry }) => num(spread(entry[what][at]).median, 3)).join(" and ");
    if (there.length && times <= 2) parts.push(`In bfloat16 ${medians("bfloat16")}; with only q and k stored so, ${medians("stored")}.`);
    const longer = there.filter(({ entry }) => entry.twice);
    if (longer.length) {
      const said = longer.map(({ name, entry }) => `${entry.twice[at].map((v) => num(v, 3)).join(" and ")} (${name})`);
      parts.push(`After twice the steps, two other seeds: ${said.join(", ")}.`);
    }

    const aided = there
      .filter(({ entry }) => entry.aids[aid])
      .map(({ name, entry }) => {
        const before = entry.scores[data.times.indexOf(data.aided_times)];
        return { name, before: spread(before).median, ...spread(entry.aids[aid]), change: compare(entry.aids[aid], before, less) };
      });
    let aidedApart = null;
    if (aided.length) {
      const said = aided.map((one) => `**${one.name}** from ${num(one.before, 3)} to **${num(one.median, 3)}** (${one.change.verdict})`);
      parts.push(`At ${data.aided_times} windows, “${aid}” takes ${said.join(", and ")}.`);
      if (aided.length === 2) {
        aidedApart = compare(...there.map(({ entry }) => entry.aids[aid]), less);
        parts.push(`So aided, the first against the second: **${aidedApart.verdict}**.`);
      }
    }
    let head = null;
    if (there.length) {
      const { layer, usage, attention, inv_freq: invFreq } = there[0].entry;
      head = { layer, pair: top(usage), distance: top(attention), invFreq };
      const rests = invFreq.every((theta) => theta === 0);
      const seen = m < attention.length ? ` At distance **${m}** it has **${num(100 * attention[m], 1)}%** of its attention.` : "";
      parts.push(
        `The head shown, in layer ${layer + 1}, looks most at distance **${head.distance}** and uses pair **${head.pair}** most (${num(100 * usage[head.pair], 0)}%)${rests ? "; none of its pairs turns with the distance, so the hands rest" : `, ${speed(invFreq[head.pair])}`}.${seen}`,
      );
    }
    fig.say(parts.join(" "));
    const [encodingScores, againstScores] = shown.map(({ name }) => scores.find((one) => one.name === name) ?? null);
    fig.root.dataset.values = JSON.stringify({
      task: task.words, encoding: fig.traits.encoding, against: fig.traits.against, times, aid, m,
      encodingScores, againstScores: againstScores ?? null, difference: apart, aided, aidedDifference: aidedApart, head,
    });
  });

  fig.showMe(async () => {
    const [copy, find, induction] = data.tasks.map(({ words }) => words);
    const scenes = [
      [{ task: copy, encoding: "the proposal, half a turn", against: "RoPE", times: "1", m: 7 }, 3000],
      [{ encoding: "one pair turns, fifteen rest" }, 3000],
      [{ task: find, encoding: "no encoding", times: "8" }, 3000],
      [{ task: induction, encoding: "RoPE", against: "the proposal, half a turn", times: "4", aid: "PI", m: 1 }, 3000],
      [{ aid: "by parts, knees 4 and 1" }, 0],
    ];
    for (const [values, ms] of scenes) {
      fig.set(values);
      const { canvas } = values.aid ? strip : chart; // the figure is taller than a screen
      canvas.scrollIntoView({ block: "center", behavior: fig.calm ? "auto" : "smooth" });
      await fig.pause(ms);
    }
  });
  fig.notice(
    "A point is one of eight seeds; the bar runs from the second smallest to the second largest (an interval of 93% for the median, which is the stroke). The first encoding has full points, the second rings. Triangles: two other seeds with twice the steps. At one and two windows × is the median in bfloat16, + with only q and k stored so. On the dial each pair has its ring, fast ones outside; a larger disc is a pair that the head uses more.",
  );
});

// ---- the scores ---------------------------------------------------------------------------------

function rangeOf(task, there) {
  if (task.unit !== "bits") return [-0.03, 1.03];
  const all = there.flatMap(({ entry }) => [entry.scores, entry.bfloat16, entry.stored, entry.twice ?? [], Object.values(entry.aids)].flat(2));
  if (!all.length) return [0, 4];
  return [Math.floor(2 * Math.min(...all) - 0.1) / 2, Math.ceil(2 * Math.max(...all) + 0.1) / 2];
}

const shareTicks = (task) => (task.unit === "bits" ? {} : { ticks: [0, 0.25, 0.5, 0.75, 1] });
const short = (v) => num(v, 2).replace(/0$/, "").replace(/\.?0$/, "");

/** The points of eight seeds, the interval and the median; place(value, across) gives pixels. */
function drawSeeds(plot, values, place, color, second, reach) {
  const { ctx, colors } = plot;
  const { median, low, high } = spread(values);
  const stroke = (from, to, width) => curve(plot, [from[0], to[0]], [from[1], to[1]], color, { width });
  values.forEach((value, i) => {
    const [x, y] = place(value, (((i * 3) % values.length) / (values.length - 1) - 0.5) * 2 * reach);
    ctx.beginPath();
    ctx.arc(x, y, 2.6, 0, TURN);
    ctx.globalAlpha = second ? 0.9 : 0.6;
    ctx.fillStyle = second ? colors.paper : color;
    ctx.fill();
    ctx.lineWidth = 1;
    ctx.strokeStyle = color;
    if (second) ctx.stroke();
    ctx.globalAlpha = 1;
  });
  stroke(place(low, 0), place(high, 0), 2);
  stroke(place(median, -reach - 1.5), place(median, reach + 1.5), 3);
}

/** A small mark: `triangle`, `cross` or `plus`. */
function drawMark(plot, kind, x, y, color) {
  const { ctx } = plot;
  const r = 3.4;
  const lines = { triangle: [[0, -r, r, r, -r, r, 0, -r]], cross: [[-r, -r, r, r], [-r, r, r, -r]], plus: [[-r, 0, r, 0], [0, -r, 0, r]] }[kind];
  ctx.save();
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.4;
  for (const line of lines) {
    ctx.beginPath();
    for (let i = 0; i < line.length; i += 2) ctx.lineTo(x + line[i], y + line[i + 1]);
    ctx.stroke();
  }
  ctx.restore();
}

function drawGuess(plot, task, from, to) {
  if (task.chance !== null) curve(plot, [from[0], to[0]], [from[1], to[1]], plot.colors.muted, { width: 1, dash: [2, 3] });
}

/** Which encoding has which colour; place(i) gives pixels. */
function drawNames(plot, there, place) {
  there.forEach(({ name, color, second }, i) => {
    const [x, y] = place(i);
    disc(plot, x, y, 4, second ? plot.colors.paper : color, { ring: color });
    text(plot, name, x + 10, y, { color, size: 12, bold: true, halo: false });
  });
}

function drawScores(plot, data, task, there, times, range, wide, distances, apart) {
  const { ctx, colors, width, height } = plot.clear();
  const beside = distances && wide(width);
  const legend = wide(width) ? 66 : 52 + 16 * there.length;
  const at = axes(plot, {
    x: [0.72, 11.2],
    xLog: true,
    y: range,
    xTicks: data.times,
    xFormat: (v) => num(v * task.window, 0),
    yTicks: shareTicks(task).ticks,
    yFormat: short,
    xLabel: "length of the text (tokens)",
    box: { left: 40, top: legend, right: beside ? width * 0.44 : 12, bottom: distances && !beside ? height - 292 : 42 },
  });
  const title = task.unit === "bits" ? "bits a byte: less is better" : "accuracy: more is better";
  text(plot, title, at.box.x0, 10, { color: colors.ink, size: 12, halo: false });
  drawNames(plot, there, (i) => (wide(width) ? [at.box.x0 + 5 + (width / 2 - 30) * i, 28] : [at.box.x0 + 5, 27 + 16 * i]));
  const verdict = wide(width) ? apart?.verdict : apart?.verdict.split(":")[0];
  if (apart) text(plot, `at ${num(times * task.window, 0)} tokens: ${verdict}`, at.box.x0, legend - 18, { color: colors.ink, size: 12, bold: true, halo: false });

  ctx.fillStyle = colors.accent;
  ctx.globalAlpha = colors.dark ? 0.16 : 0.09;
  ctx.fillRect(at.x(times * 0.73), at.box.y0, at.x(times * 1.37) - at.x(times * 0.73), at.box.y1 - at.box.y0);
  ctx.globalAlpha = 1;
  drawGuess(plot, task, [at.box.x0, at.y(task.chance)], [at.box.x1, at.y(task.chance)]);
  if (task.chance !== null) text(plot, "guessing", at.x(Math.sqrt(data.times[0] * data.times[1])), at.y(task.chance) - 8, { align: "center", size: 11 });

  const room = (at.box.x1 - at.box.x0) / data.times.length;
  const reach = Math.min(6, room / 14);
  there.forEach(({ entry, color, second }, i) => {
    const middle = (k) => at.x(data.times[k]) + (there.length > 1 ? (i - 0.5) * room * 0.42 : 0) - reach;
    const medians = entry.scores.map((values) => spread(values).median);
    curve(plot, medians.map((_, k) => middle(k)), medians.map(at.y), color, { width: 1.3, alpha: 0.6, dash: second ? [6, 4] : [] });
    entry.scores.forEach((values, k) => {
      drawSeeds(plot, values, (value, across) => [middle(k) + across, at.y(value)], color, second, reach);
      const aside = middle(k) + reach + 7;
      for (const value of entry.twice?.[k] ?? []) drawMark(plot, "triangle", aside, at.y(value), color);
      for (const [what, kind] of [["bfloat16", "cross"], ["stored", "plus"]]) {
        if (entry[what][k]) drawMark(plot, kind, aside, at.y(spread(entry[what][k]).median), color);
      }
    });
  });
  if (distances) drawDistances(plot, data, task, there, times, range, beside ? { left: width * 0.56 + 40, top: legend, right: 12, bottom: 42 } : { left: 40, top: 370, right: 12, bottom: 42 });
}

function drawDistances(plot, data, task, there, times, range, box) {
  const { ctx, colors } = plot;
  const edges = data.bins;
  const at = axes(plot, {
    x: [edges[0], edges.at(-1)],
    xLog: true,
    y: range,
    xTicks: edges.filter((_, i) => i % 2 === 0),
    xFormat: (v) => num(v, 0),
    yTicks: shareTicks(task).ticks,
    yFormat: short,
    xLabel: "distance of the answer (tokens)",
    box,
  });
  text(plot, `by distance, in ${num(times * task.window, 0)} tokens`, at.box.x0, box.top < 100 ? 10 : at.box.y0 - 22, { color: colors.ink, size: 12, halo: false });
  const edge = at.x(task.window);
  curve(plot, [edge, edge], [at.box.y0, at.box.y1], colors.muted, { width: 1, dash: [2, 3] });
  text(plot, "trained", edge - 5, at.box.y0 - 7, { align: "right", size: 11 });
  text(plot, "new", edge + 5, at.box.y0 - 7, { size: 11 });
  drawGuess(plot, task, [at.box.x0, at.y(task.chance)], [at.box.x1, at.y(task.chance)]);
  for (const { entry, color, second } of there) {
    const rows = entry.bins[data.times.indexOf(times)];
    const xs = rows.map((_, i) => at.x(Math.sqrt(edges[i] * edges[i + 1])));
    ctx.beginPath();
    rows.forEach(([, low], i) => ctx.lineTo(xs[i], at.y(low)));
    rows.toReversed().forEach(([, , high], i) => ctx.lineTo(xs[rows.length - 1 - i], at.y(high)));
    ctx.globalAlpha = colors.dark ? 0.22 : 0.14;
    ctx.fillStyle = color;
    ctx.fill();
    ctx.globalAlpha = 1;
    curve(plot, xs, rows.map(([median]) => at.y(median)), color, { width: 2, dash: second ? [6, 4] : [] });
    rows.forEach(([median], i) => disc(plot, xs[i], at.y(median), 3.4, second ? colors.paper : color, { ring: color }));
  }
}

// ---- what is done before a longer text ------------------------------------------------------------

const pitch = (width) => (width < 560 ? 40 : 25);
const rowsTop = (width) => (width < 560 ? 66 : 50);

function drawAids(plot, data, task, there, groups, aid, range, wide) {
  const { ctx, colors, width, height } = plot.clear();
  if (!there.length) return [];
  const rows = [{ words: null }];
  for (const group of groups) group.forEach((words, i) => rows.push({ words, first: i === 0 }));
  const left = wide(width) ? 236 : 12;
  const from = rowsTop(width);
  const at = axes(plot, {
    x: range,
    y: [0, 1],
    xTicks: shareTicks(task).ticks,
    xFormat: short,
    yTicks: [],
    xLabel: task.unit === "bits" ? "bits a byte" : "accuracy",
    box: { left, top: from, right: 14, bottom: 40 },
  });
  const title = `at ${data.aided_times} windows: ${rows.length > 1 ? "what was done before the test" : "nothing else was tried"}`;
  text(plot, title, wide(width) ? 4 : left, 18, { color: colors.ink, size: 12, halo: false });
  drawNames(plot, there, (i) => (wide(width) ? [left + ((width - left) / 2) * i, 35] : [left + 5, 35 + 16 * i]));
  const aided = data.times.indexOf(data.aided_times);
  let y = from;
  for (const row of rows) {
    if (row.first) y += 6;
    if (row.first || (row.words && !wide(width))) curve(plot, [4, at.box.x1], [y - 3, y - 3], colors.rule, { width: 1 });
    Object.assign(row, { from: y, to: y + pitch(width) });
    y = row.to;
  }
  drawGuess(plot, task, [at.x(task.chance), at.box.y0], [at.x(task.chance), at.box.y1]);
  for (const { entry, color, second } of there) {
    const x = at.x(spread(entry.scores[aided]).median);
    curve(plot, [x, x], [from, height - 40], color, { width: 1, alpha: 0.5, dash: second ? [6, 4] : [] });
  }
  for (const row of rows) {
    const chosen = row.words === aid;
    if (chosen) {
      ctx.fillStyle = colors.accent;
      ctx.globalAlpha = colors.dark ? 0.16 : 0.09;
      ctx.fillRect(0, row.from, width, row.to - row.from);
      ctx.globalAlpha = 1;
    }
    const label = wide(width) ? [left - 12, (row.from + row.to) / 2, "right"] : [left, row.from + 8, "left"];
    text(plot, row.words ?? "nothing", label[0], label[1], { align: label[2], size: 12, color: chosen ? colors.ink : colors.muted, bold: chosen });
    const middle = wide(width) ? (row.from + row.to) / 2 : row.from + 26;
    there.forEach(({ entry, color, second }, i) => {
      const values = row.words ? entry.aids[row.words] : entry.scores[aided];
      const lane = middle + (there.length > 1 ? (i - 0.5) * 12 : 0);
      if (values) drawSeeds(plot, values, (value, across) => [at.x(value), lane + across], color, second, 3);
    });
  }
  return rows;
}

// ---- one head -----------------------------------------------------------------------------------

function drawHead(plot, there, m, wide) {
  const { colors, width } = plot.clear();
  if (!there.length) return null;
  const heads = there.map(({ name, color, entry }) => ({ ...entry, name, color }));
  const [head] = heads;
  const size = wide(width) ? 236 : 210;
  const cx = wide(width) ? size / 2 + 4 : width / 2;
  text(plot, `${head.name}: layer ${head.layer + 1}, seed 0`, wide(width) ? 4 : 12, 22, { color: head.color, size: 12, bold: true, halo: false });
  text(plot, `the hands after ${num(m, 0)} token${m === 1 ? "" : "s"}`, cx, size + 46, { align: "center", size: 12, halo: false });
  drawDial(plot, cx, 36 + size / 2, size / 2 - 4, head, m);

  const left = wide(width) ? size + 62 : 46;
  const from = wide(width) ? 12 : size + 56;
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
  text(plot, "attention at the training length", field.box.x0, from + 130, { color: colors.ink, size: 12, halo: false });
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
  const hands = head.usage.map((share, i) => ({ i, share, angle: m * head.inv_freq[i], ring: radius - 12 - i * gap }));
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
