// Encodings of 2024 to 2026: two methods in every task, seed by seed, and what each pays.
import { make } from "./kit/dom.js";
import { level, line, scale, text, upright, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, short } from "./kit/numbers.js";
import { compare, holm, spread } from "./seeds.js";

const SIGNIFICANT = 0.05;
const GUESS = { copy: 1 / 16, find: 1 / 16, induction: 1 / 16, parity: 1 / 2, recall: 1 / 16 };
/** In two digits; what is not quite 1 is not rounded to it. */
const two = (value) => (value < 1 && num(value, 2) === "1.00" ? num(Math.min(value, 0.999), 3) : num(value, 2));

/** The measured length that is nearest, by factors. */
export const nearest = (times, length) =>
  times.reduce((a, b) => (Math.abs(Math.log(b / length)) < Math.abs(Math.log(a / length)) ? b : a));

/** One task after the other: how the first method stands to the second, with Holm's correction. */
export function verdicts({ times, tasks }, { first, second, length }) {
  const at = times.indexOf(nearest(times, length));
  const found = tasks.map(({ unit, scores }) => compare(scores[first][at], scores[second][at], unit === "bits"));
  const p = holm(found.map((one) => one.p));
  return found.map(({ better, worse, median }, i) => {
    const ahead = (tasks[i].unit === "bits" ? -1 : 1) * median;
    const side = p[i] >= SIGNIFICANT ? "undecided" : ahead > 0 ? "ahead" : "behind";
    return { task: tasks[i].name, better, worse, p: p[i], side };
  });
}

/** Everything that is said, as numbers. */
export function reading(data, traits) {
  const { task: name, first, second, length } = traits;
  const task = data.tasks.find((one) => one.name === name);
  const times = nearest(data.times, length);
  const medians = [first, second].map((one) => spread(task.scores[one][data.times.indexOf(times)]).median);
  const all = verdicts(data, traits);
  const pays = [first, second].map((one) => data.pays[one]);
  return { task: name, unit: task.unit, times, first, second, medians, verdicts: all, pays };
}

/** What is said, from a reading: the answer, and after a line's end what both pay. */
export function words({ task, unit, times, first, second, medians, verdicts: all, pays }) {
  const [mine, other] = medians.map(two);
  const where = times === 1 ? "within the window" : `at ${times} windows`;
  if (first === second) return `On ${task} ${where}, **${first}** gets **${mine}**. Choose a second method.`;
  const { side, p } = all.find((one) => one.task === task);
  const bits = unit === "bits" ? " bits" : "";
  const price = ([name, { added, also }]) => `**${name}** pays ${added ? `${num(added, 0)} weights, ` : ""}${also}.`;
  return (
    `On ${task} ${where}, **${first}** gets **${mine}${bits}**, ${second} ${other}: ` +
    `**${side}**, p = ${num(p, p < 0.1 ? 3 : 2)} after Holm.\n` +
    [
      [first, pays[0]],
      [second, pays[1]],
    ]
      .map(price)
      .join(" ")
  );
}

const LABEL =
  "A map, a row for each method and a column for each task: eight dots, one a seed, better to the right, and a bar " +
  "at their median; below them the eight differences of the two chosen methods, their roots, better to the right of the line";
const HELP = "Tap a cell, or use arrow keys.";

const SIZES = {
  broad: { left: 158, gap: 14, top: 8, row: 21, size: 13 },
  slim: { left: 146, gap: 14, top: 8, row: 17, size: 12.5 },
};
const sizesOf = (width) => (wide(width) ? SIZES.broad : SIZES.slim);

export default figure((fig) => {
  const data = fig.model.get("data");
  const tasks = data.tasks.map(({ name }) => name);
  const { methods } = data; // the page sorts the keys of its data
  const bottom = (width) => sizesOf(width).top + methods.length * sizesOf(width).row;

  const tabs = tasks.map((task) => {
    const side = make("small", {});
    const onclick = () => fig.set({ task });
    return { task, side, node: make("button", { type: "button", className: "rope-tab", onclick }, `${task} `, side) };
  });
  const head = {
    className: "rope-tabs rope-tasks",
    role: "group",
    "aria-label": "The task, and how the first method stands",
  };
  const bar = fig.element("div", head, ...tabs.map(({ node }) => node));
  const shown = () => (wide(plot.width) ? tasks : [fig.traits.task]);
  const pace = () => (plot.width - sizesOf(plot.width).left) / shown().length;
  const plot = fig.canvas({
    label: LABEL,
    help: HELP,
    height: (width) => bottom(width) + 62,
    point({ x, y, type }) {
      if (type !== "pointerdown") return; // a mouse on its way to the slider chooses nothing
      const { left, top, row } = sizesOf(plot.width);
      const first = methods[Math.floor((y - top) / row)];
      const task = shown()[Math.floor((x - left) / pace())];
      if (first) fig.set(task ? { first, task } : { first });
    },
    keys({ dx, dy }) {
      const next = (all, one, step) => all[clamp(all.indexOf(one) + step, 0, all.length - 1)];
      if (dx) fig.set({ task: next(tasks, fig.traits.task, dx) });
      if (dy) fig.set({ first: next(methods, fig.traits.first, dy) });
    },
  });

  fig.draw(() => {
    const { traits } = fig;
    const { width } = plot.clear();
    const { left } = sizesOf(width);
    const now = reading(data, traits);
    tabs.forEach(({ task, side, node }, i) => {
      node.setAttribute("aria-pressed", String(task === traits.task));
      side.textContent = traits.first === traits.second ? "" : now.verdicts[i].side;
    });
    bar.style.cssText = wide(width)
      ? `grid-template-columns: repeat(${tasks.length}, 1fr); padding-left: ${left}px`
      : "";
    drawRows(plot, methods, traits);
    shown().forEach((name, i) => {
      const x0 = left + i * pace();
      const task = data.tasks.find((one) => one.name === name);
      const chosen = wide(width) && name === traits.task;
      drawColumn(plot, data.times, task, { ...traits, methods, chosen, x0, x1: x0 + pace(), y1: bottom(width) });
    });
    fig.say(words(now));
    fig.root.dataset.values = JSON.stringify(now);
  });

  fig.showMe(async () => {
    const scenes = [
      { task: "language", first: "PoPE", second: "RoPE", length: 1 },
      { length: 8 },
      { task: "recall", first: "FoPE (Fourier)" },
      { task: "copy", first: "local RoPE, then none", length: 8 },
    ];
    for (const values of scenes) {
      fig.set(values);
      await fig.pause(3000);
    }
  });
});

// ---- the picture --------------------------------------------------------------------------------

/** The scores of a task from the worst to the best, at every length. */
export function rangeOf({ unit, scores }) {
  if (unit !== "bits") return [0, 1];
  const all = Object.values(scores).flat(2);
  return [Math.ceil(2 * Math.max(...all)) / 2, Math.floor(2 * Math.min(...all)) / 2];
}

const colorOf = ({ colors }, name, { first, second }) =>
  name === first ? colors.accent : name === second ? colors.ink : colors.muted;

function drawRows(plot, methods, traits) {
  const { ctx, colors, width } = plot;
  const { top, row, size } = sizesOf(width);
  ctx.strokeStyle = colors.rule;
  methods.forEach((name, i) => {
    const y = top + i * row;
    const bold = name === traits.first || name === traits.second;
    line(ctx, 0, y, width, y);
    text(plot, name, 4, y + row / 2, { size, bold, color: bold ? colorOf(plot, name, traits) : colors.ink });
  });
  const y = top + methods.length * row;
  line(ctx, 0, y, width, y);
  if (traits.first !== traits.second) text(plot, "difference (root scale)", 4, y + 34, { size });
}

function drawColumn(plot, times, task, { first, second, length, methods, chosen, x0, x1, y1 }) {
  const { ctx, colors } = plot;
  const { gap, top, row } = sizesOf(plot.width);
  if (chosen) {
    ctx.fillStyle = colors.ink;
    ctx.globalAlpha = colors.dark ? 0.1 : 0.05;
    ctx.fillRect(x0, top, x1 - x0, y1 - top + 54);
    ctx.globalAlpha = 1;
  }
  const at = times.indexOf(nearest(times, length));
  const range = rangeOf(task);
  const [x] = scale(range, x0 + gap, x1 - gap);
  const guess = GUESS[task.name];
  if (guess) upright(plot, x(guess), { y0: top, y1 }, colors.muted, { width: 1, dash: [1, 3] });
  methods.forEach((name, i) => {
    const y = top + (i + 0.5) * row;
    const color = colorOf(plot, name, { first, second });
    const strong = name === first || name === second;
    dots(plot, task.scores[name][at].map(x), y, color, strong ? 0.75 : 0.45);
    const middle = x(spread(task.scores[name][at]).median);
    upright(plot, middle, { y0: y - 7, y1: y + 7 }, color, { width: strong ? 2.5 : 1.5 });
  });
  range.forEach((end, i) => {
    text(plot, short(end), x(end), y1 + 10, { align: "center", size: 11 });
    if (i && task.unit === "bits") text(plot, "bits", (x0 + x1) / 2, y1 + 10, { align: "center", size: 11 });
  });
  if (first === second) return;
  const most = Math.abs(range[1] - range[0]);
  const [root] = scale([-1, 1], x0 + gap, x1 - gap);
  const d = (gain) => root(Math.sign(gain) * Math.sqrt(Math.abs(gain) / most)); // or small ones lie on the line
  const sign = task.unit === "bits" ? -1 : 1;
  const gains = task.scores[first][at].map((value, i) => sign * (value - task.scores[second][at][i]));
  level(plot, y1 + 34, { x0: x0 + gap, x1: x1 - gap }, colors.rule, { width: 1 });
  upright(plot, d(0), { y0: y1 + 22, y1: y1 + 46 }, colors.ink, { width: 1 });
  for (const [color, sided] of [
    [colors.accent, (gain) => gain > 0],
    [colors.warm, (gain) => gain < 0],
    [colors.muted, (gain) => gain === 0],
  ]) {
    dots(plot, gains.filter(sided).map(d), y1 + 34, color, 0.75, 3);
  }
}

function dots(plot, xs, y, color, alpha, radius = 2.4) {
  const { ctx } = plot;
  ctx.fillStyle = color;
  ctx.globalAlpha = alpha;
  for (const x of xs) {
    ctx.beginPath();
    ctx.arc(x, y, radius, 0, 7);
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}
