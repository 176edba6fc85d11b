// Trained models: every encoding in every task, as the texts grow; each beside RoPE.
import { make } from "./kit/dom.js";
import { curve, level, line, scale, text, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, short } from "./kit/numbers.js";
import { compare, spread } from "./seeds.js";

const REFERENCE = "RoPE"; // as in trained_models.py
const WELL = 0.9; // what the answer counts
/** In two digits; what is not quite 1 is not rounded to it. */
const two = (value) => (value < 1 && num(value, 2) === "1.00" ? num(Math.min(value, 0.999), 3) : num(value, 2));
const seen = (value) => Number(value.toFixed(2));
const medians = (seeds) => seeds.map((values) => spread(values).median);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const listed = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : `${words[0]}`);
/** With a capital, but for a word of one letter: q is not Q. */
const capital = (words) => (words[1] === " " ? words[0] : words[0].toUpperCase()) + words.slice(1);
/** A name inside a sentence: some have a comma of their own, and want another. */
const bold = (name) => `**${name}**${name.includes(",") ? "," : ""}`;

/** The encodings of a task, best first: by the mean of their medians over the lengths. */
export function ranked({ unit, entries }) {
  const better = unit === "bits" ? 1 : -1;
  const score = (name) => better * mean(medians(entries[name].scores));
  return Object.keys(entries).sort((a, b) => score(a) - score(b));
}

/** All encodings, those that were not tried on this task last. */
function rowsOf(data, task) {
  const names = [...new Set(data.tasks.flatMap(({ entries }) => Object.keys(entries)))];
  return [...new Set([...ranked(task), ...names])];
}

/** Everything that is said, as numbers. */
export function reading(data, { task: name, encoding, half }) {
  const task = data.tasks.find((one) => one.name === name);
  const less = task.unit === "bits";
  const which = half ? "bfloat16" : "scores";
  const all = ranked(task).map((one) => {
    const { scores, bfloat16 } = task.entries[one];
    const [full, rounded] = [medians(scores), medians(bfloat16)];
    return { name: one, full, half: rounded, lost: (seen(full[0]) - seen(rounded[0])) * (less ? -1 : 1) };
  });
  const best = (at) => [...all].sort((a, b) => (less ? 1 : -1) * (a.full.at(at) - b.full.at(at)))[0];
  const own = task.entries[encoding];
  const anywhere = own ?? data.tasks.map(({ entries }) => entries[encoding]).find(Boolean);
  const against = own && encoding !== REFERENCE && !half;
  return {
    task: name,
    unit: task.unit,
    half,
    encoding,
    times: data.times.slice(0, anywhere?.[which].length),
    tried: all.length,
    well: [0, -1].map((at) => all.filter(({ full }) => seen(full.at(at)) >= WELL).length),
    best: [0, -1].map((at) => ({ name: best(at).name, value: best(at).full.at(at) })),
    kept: all.filter(({ lost }) => Math.abs(lost) < 0.011).length,
    worst: [...all].sort((a, b) => b.lost - a.lost)[0],
    own: all.find((one) => one.name === encoding) ?? null,
    reference: all.find((one) => one.name === REFERENCE),
    rows: data.tasks.map((one) => ({
      task: one.name,
      unit: one.unit,
      medians: one.entries[encoding] ? medians(one.entries[encoding][which]) : null,
    })),
    verdicts: against ? own.scores.map((s, i) => compare(s, task.entries[REFERENCE].scores[i], less).verdict) : [],
  };
}

/** What is said, from a reading: the answer, and after a line's end the numbers. */
export const words = (now) => `${now.half ? answerInHalf(now) : answer(now)} ${rowWords(now)}\n${numbers(now)}`;

function answer({ task, unit, tried, well: [near, far], best: [first, last] }) {
  if (unit === "bits") {
    return (
      `On ${task}, ${bold(first.name)} needs the fewest bits a byte within the window, ${two(first.value)}, ` +
      `and ${bold(last.name)} at 8 windows, ${two(last.value)}.`
    );
  }
  return (
    `On ${task}, **${near} of ${tried}** encodings reach ${two(WELL)}, rounded, within the window, ` +
    `and **${far || "none"}** at 8 windows.`
  );
}

function answerInHalf({ task, tried, kept, worst, unit }) {
  const start = `On ${task}, in 16 bits **${kept === tried ? "all" : `${kept} of`} ${tried}** encodings`;
  const rest = `, and ${bold(worst.name)} loses most, ${two(worst.lost)}${unit === "bits" ? " bits" : ""}`;
  return `${start} keep their printed score within the window to 0.01${kept === tried ? "" : rest}.`;
}

function rowWords({ task, unit, half, encoding, own, reference }) {
  const name = bold(capital(encoding));
  if (!own) {
    const sight = encoding.includes("no causal mask") && unit === "bits";
    return `${name} was not tried on ${task}${sight ? ": without a mask the next byte is in plain sight" : ""}.`;
  }
  if (half) return `${name} gets ${two(own.half[0])} where it gets ${two(own.full[0])} in 32 bits.`;
  const way = ({ full }) => `from ${two(full[0])} to ${two(full.at(-1))}`;
  return `${name} goes ${way(own)}${encoding === REFERENCE ? "" : `, ${REFERENCE} ${way(reference)}`}.`;
}

function numbers({ task, half, encoding, times, rows, verdicts }) {
  const there = rows.filter((row) => row.medians);
  const said = there.map(
    (row) => `${row.task} ${row.medians.map(two).join(", ")}${row.unit === "bits" ? " bits a byte" : ""}`,
  );
  const parts = [
    `**${capital(encoding)}**, medians of eight seeds${half ? " in 16 bits" : ""} at ${listed(times)} windows: ` +
      `${said.join("; ")}.`,
  ];
  if (verdicts.length) {
    const heads = verdicts.map((verdict) => verdict.split(":")[0]);
    const groups = [...new Set(heads)].map((verdict) => {
      const where = times.filter((_, i) => heads[i] === verdict);
      return `${verdict} at ${listed(where)}`;
    });
    parts.push(`Against ${REFERENCE} on ${task}, seed by seed: ${groups.join("; ")}.`);
  }
  return parts.join(" ");
}

const LABEL =
  "Small charts, a row for each encoding and a column for each task: the score at 1, 2, 4 and 8 windows, " +
  "with the score of RoPE and that of guessing; in 16 bits at 1 and 2 windows, with its own score in 32 bits";
const HELP = "Tap a row, or use the arrow keys: ← → sort.";
const NOTICE =
  "Sorted by the mean of the four medians. Green is ahead of RoPE (in 16 bits, of itself in 32), red behind; points " +
  "are the eight seeds. A difference is decided where all seeds agree, or an exact test gives less than 1 in 20, " +
  "uncorrected.";

const SIZES = {
  broad: { left: 200, gap: 30, top: 20, row: 28, size: 13 },
  slim: { left: 182, gap: 30, top: 20, row: 20, size: 12 },
};
const sizesOf = (width) => (wide(width) ? SIZES.broad : SIZES.slim);

export default figure((fig) => {
  const data = fig.model.get("data");
  const names = data.tasks.map(({ name }) => name);
  const most = Math.max(...data.tasks.map((task) => rowsOf(data, task).length));
  const taskNow = () => data.tasks[names.indexOf(fig.traits.task)];
  // where there is room for one column, the rows of what was not tried make room
  const rowsNow = () => (wide(plot.width) ? rowsOf(data, taskNow()) : ranked(taskNow()));
  const height = (width) => {
    const { top, row } = sizesOf(width);
    return top + most * row + (wide(width) ? 56 : 70);
  };
  const pitch = () => (most * sizesOf(plot.width).row) / rowsNow().length;

  const tab = (words, action) => make("button", { type: "button", className: "rope-tab", onclick: action }, words);
  const tabs = names.map((task) => tab(task, () => fig.set({ task })));
  const half = tab("in 16 bits", () => fig.set({ half: !fig.traits.half }));
  const head = { className: "rope-tabs", role: "group", "aria-label": "Sort by a task, and show 16 bits" };
  const bar = fig.element("div", head, ...tabs, half);
  const plot = fig.canvas({
    label: LABEL,
    help: HELP,
    height,
    point({ y }) {
      const encoding = rowsNow()[Math.floor((y - sizesOf(plot.width).top) / pitch())];
      if (encoding) fig.set({ encoding });
    },
    keys({ dx, dy }) {
      if (dx) fig.set({ task: names[clamp(names.indexOf(fig.traits.task) + dx, 0, names.length - 1)] });
      const rows = rowsNow();
      if (dy) fig.set({ encoding: rows[clamp(rows.indexOf(fig.traits.encoding) + dy, 0, rows.length - 1)] });
    },
  });

  fig.draw(() => {
    const { traits } = fig;
    const { width } = plot.clear();
    const { left, gap } = sizesOf(width);
    for (const one of tabs) one.setAttribute("aria-pressed", String(one.textContent === traits.task));
    half.setAttribute("aria-pressed", String(traits.half));
    bar.style.cssText = wide(width) ? `grid-template-columns: ${left}px repeat(4, 1fr); column-gap: ${gap}px` : "";
    bar.classList.toggle("rope-broad", wide(width));
    drawTable(plot, data, { rows: rowsNow(), pitch: pitch(), ...traits });
    const now = reading(data, traits);
    fig.say(words(now));
    fig.root.dataset.values = JSON.stringify(now);
  });

  fig.showMe(async () => {
    const scenes = [
      { task: "copy", encoding: "the proposal, half a turn", half: false },
      { encoding: "one frequency for all pairs" },
      { task: "find" },
      { task: "induction", encoding: "one pair turns, fifteen rest" },
      { task: "language", encoding: "ALiBi" },
      { task: "copy", encoding: "the proposal, one turn", half: true },
    ];
    for (const values of scenes) {
      fig.set(values);
      await fig.pause(3000);
    }
  });
  fig.notice(NOTICE);
});

// ---- the picture --------------------------------------------------------------------------------

/** The scores of a task from the worst to the best, round, for the height of its charts. */
export function rangeOf({ unit, entries }) {
  if (unit !== "bits") return [0, 1];
  const all = Object.values(entries).flatMap(({ scores, bfloat16 }) => [...scores, ...bfloat16].flat());
  return [Math.ceil(2 * Math.max(...all)) / 2, Math.floor(2 * Math.min(...all)) / 2];
}

function drawTable(plot, data, { rows, pitch, task: chosen, encoding, half }) {
  const { ctx, colors, width } = plot;
  const broad = wide(width);
  const { left, gap, top, size } = sizesOf(width);
  const tasks = data.tasks.filter(({ name }) => broad || name === chosen);
  const pace = (width - left) / tasks.length;
  const there = data.tasks.find(({ name }) => name === chosen).entries;
  rows.forEach((name, i) => {
    const y = top + i * pitch;
    if (name === encoding) {
      ctx.fillStyle = colors.ink;
      ctx.globalAlpha = colors.dark ? 0.13 : 0.07;
      ctx.fillRect(0, y, width, pitch);
      ctx.globalAlpha = 1;
      ctx.fillStyle = colors.accent;
      ctx.fillRect(0, y, 4, pitch);
    }
    const strong = name === encoding || name === REFERENCE;
    text(plot, name, 9, y + pitch / 2, { size, bold: strong, color: there[name] ? colors.ink : colors.muted });
  });
  ctx.strokeStyle = colors.rule;
  for (let i = 0; i <= rows.length; i++) line(ctx, 0, top + i * pitch, width, top + i * pitch);

  tasks.forEach((task, column) => {
    const [x0, x1] = [left + column * pace + gap, left + (column + 1) * pace];
    drawColumn(plot, data.times, task, { x0, x1, rows, pitch, encoding, half });
  });
  const bottom = top + rows.length * pitch;
  text(plot, "length in windows", left + gap - 8, bottom + 12, { align: "right", size: 11.5 });
  drawKey(plot, bottom + 34, half);
}

function drawColumn(plot, times, task, { x0, x1, rows, pitch, encoding, half }) {
  const { top } = sizesOf(plot.width);
  const bits = task.unit === "bits";
  const [worst, best] = rangeOf(task);
  const middles = times.map((_, i) => x0 + 7 + (i * (x1 - x0 - 14)) / (times.length - 1));
  text(plot, bits ? "fewer bits on top" : "accuracy", x0, 9, { size: 11 });
  rows.forEach((name, i) => {
    const [y0, y1] = [top + i * pitch + 4, top + (i + 1) * pitch - 4];
    const [y] = scale([worst, best], y1, y0);
    if (i === 0) {
      for (const end of [best, worst]) text(plot, short(end), x0 - 4, y(end), { align: "right", size: 11 });
    }
    if (task.entries[name]) drawCell(plot, task, name, { y, middles, x0, x1, half, chosen: name === encoding });
    else text(plot, "not tried", (x0 + x1) / 2, (y0 + y1) / 2, { align: "center", size: 11 });
  });
  middles.forEach((x, i) => {
    text(plot, num(times[i], 0), x, top + rows.length * pitch + 12, { align: "center", size: 11.5 });
  });
}

function drawCell(plot, task, name, { y, middles, x0, x1, half, chosen }) {
  const { ctx, colors } = plot;
  const { scores, bfloat16 } = task.entries[name];
  const [seeds, others] = half ? [bfloat16, scores] : [scores, task.entries[REFERENCE].scores];
  const ours = medians(seeds).map(y);
  const theirs = medians(others).map(y);
  const xs = middles.slice(0, ours.length);
  if (task.chance !== null) level(plot, y(task.chance), { x0, x1 }, colors.muted, { width: 1, dash: [1, 3] });
  if (half) drop(plot, xs, ours, theirs);
  else shade(plot, xs, ours, theirs);
  curve(plot, middles, theirs, colors.muted, { width: 1, dash: [4, 3] });
  if (chosen) {
    ctx.fillStyle = colors.ink;
    ctx.globalAlpha = 0.45;
    seeds.forEach((values, i) => {
      for (const value of values) {
        ctx.beginPath();
        ctx.arc(xs[i], y(value), 1.6, 0, 7);
        ctx.fill();
      }
    });
    ctx.globalAlpha = 1;
  }
  curve(plot, xs, ours, colors.ink, { width: chosen ? 2.5 : 1.6 });
}

/** At each length a bar from one line to the other, in the colours of \`shade\`. */
function drop(plot, xs, ours, theirs) {
  xs.forEach((x, i) => {
    plot.ctx.fillStyle = ours[i] < theirs[i] ? plot.colors.accent : plot.colors.warm;
    plot.ctx.fillRect(x - 4, Math.min(ours[i], theirs[i]), 8, Math.abs(ours[i] - theirs[i]));
  });
}

/** The area between two lines: green where ours is above, red where it is below. */
function shade(plot, xs, ours, theirs) {
  const { ctx, colors } = plot;
  const above = ours.map((y, i) => theirs[i] - y);
  const points = xs.flatMap((x, i) => {
    const here = { x, ours: ours[i], theirs: theirs[i], above: above[i] };
    if (i + 1 === xs.length || above[i] * above[i + 1] >= 0) return [here];
    const part = above[i] / (above[i] - above[i + 1]);
    const y = ours[i] + part * (ours[i + 1] - ours[i]);
    return [here, { x: x + part * (xs[i + 1] - x), ours: y, theirs: y, above: 0 }];
  });
  ctx.globalAlpha = colors.dark ? 0.45 : 0.32;
  points.slice(1).forEach((to, i) => {
    const from = points[i];
    ctx.beginPath();
    ctx.moveTo(from.x, from.ours);
    ctx.lineTo(to.x, to.ours);
    ctx.lineTo(to.x, to.theirs);
    ctx.lineTo(from.x, from.theirs);
    ctx.fillStyle = from.above + to.above > 0 ? colors.accent : colors.warm;
    ctx.fill();
  });
  ctx.globalAlpha = 1;
}

function drawKey(plot, y, half) {
  const { ctx, colors, width } = plot;
  const entries = [
    [30, half ? "in 16 bits" : "the row's encoding", { color: colors.ink, width: 1.8 }],
    [30, half ? "the same in 32 bits" : REFERENCE, { color: colors.muted, width: 1, dash: [4, 3] }],
    [30, "guessing", { color: colors.muted, width: 1, dash: [1, 3] }],
    [14, half ? "gained" : "ahead", { fill: colors.accent }],
    [14, half ? "lost" : "behind", { fill: colors.warm }],
  ];
  let [x, row] = [4, y];
  for (const [long, label, { color, fill, ...how }] of entries) {
    const needs = long + 6 + ctx.measureText(label).width + 20;
    if (x + needs - 14 > width) [x, row] = [4, row + 18];
    if (fill) {
      ctx.fillStyle = fill;
      ctx.globalAlpha = 0.4;
      ctx.fillRect(x, row - 5, long, 10);
      ctx.globalAlpha = 1;
    } else {
      curve(plot, [x, x + long], [row, row], color, how);
    }
    text(plot, label, x + long + 6, row, { size: 11.5 });
    x += needs;
  }
}
