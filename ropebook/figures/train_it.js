// Train it: a model of the contest learns in the page, and then reads texts longer than it knows.
import { make } from "./kit/dom.js";
import { axes, curve, disc, level, text, upright, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { num, percent, short } from "./kit/numbers.js";
// on the site a file of its own, which comes with the first start, for a worker: then this is empty
import { serve } from "./training.js";

const TIMES = [1, 2, 4, 8];
const GUESS = 16; // symbols to guess from
const LAG = 7; // of the task copy
const KEPT = 4; // runs that are compared
const RECORD = "as in the record"; // RATES[0] of train_it.py
const PARTS = {
  "q and k in different layouts": { mixed: true },
  "keys turn backwards": { backwards: true },
  "positions begin again every 16": { restart: 16 },
};

/** An encoding with a bug in its rotation; with none where nothing rotates. */
export function broken(how, bug) {
  if (!how.theta || bug === "none") return how;
  const lost = () => ({ theta: how.theta.map((bank) => bank.map((theta) => (theta ? 1 : 0))) }); // 1^(-2i/d)
  const other = bug === "the base is lost" ? lost() : PARTS[bug];
  if (how.before && (other.mixed || other.backwards)) return how; // q and k come from one rotated x
  return Object.entries(other).every(([key, value]) => String(how[key]) === String(value)) ? how : { ...how, ...other };
}

/** What is to be trained: its name, its settings, and what training.js wants. */
export function plan(data, { encoding, bug, task, rate: choice, seed }) {
  const { steps, record } = data.tasks[task];
  const rate = choice === RECORD ? (record[encoding] ?? record.RoPE).rate : Number(choice);
  const how = broken(data.encodings[encoding], bug);
  const works = how !== data.encodings[encoding];
  const own = [choice !== RECORD && `rate ${choice}`, seed && `seed ${seed}`].filter(Boolean);
  const name = [encoding, ...(works ? [bug] : []), ...own].join(", ");
  const known = works || choice !== RECORD ? null : (record[encoding]?.range ?? null);
  const borrowed = choice === RECORD && !record[encoding]; // the record has no such run
  return { name, how, task, rate, borrowed, seed, steps, known, idle: bug !== "none" && !works };
}

const bold = (name) => `**${name}**${name.includes(",") ? "," : ""}`;
const capital = (name) => (name[1] === " " ? name : name[0].toUpperCase() + name.slice(1));
const share = (part) => `**${percent(part)}**`;

/** The first length at which fewer than half of the answers are left; 0 if there is none. */
export const breaks = (scores) => TIMES.find((_, i) => scores[i] < scores[0] / 2) ?? 0;

/** What is said: of a run that goes on with another task, of the plan while there is no run, else of the run. */
export function words({ phase, wanted, run, read, known, other, busy, ready }) {
  const settings = ({ steps, rate, borrowed, seed }) =>
    `\n${num(steps, 0)} steps, rate ${rate}${borrowed ? " (RoPE's in the record)" : ""}, seed ${seed}.`;
  const instead = (what) => `**Start** drops ${what} and trains ${bold(wanted.name)} on ${wanted.task}.`;
  const idle = wanted.idle ? ` The bug changes nothing in **${wanted.name}**.` : "";
  if (busy)
    return (
      `${bold(capital(busy.name))} is **not done on ${busy.task}** yet: choose ${busy.task} to see it. ` +
      `${instead("it")}${idle}${settings(busy)}`
    );
  if (phase === "none") {
    const task = `to train ${bold(wanted.name)} on ${wanted.task}, with texts of 64 tokens`;
    return `Press **Start** ${task}, and predict what it does with 512.${idle}${settings(wanted)}`;
  }
  const { losses, steps, scores } = run;
  const guess = num(Math.log(GUESS), 2);
  const step = `step **${num(losses.length, 0)} of ${num(steps, 0)}**`;
  const loss = losses.length
    ? `its loss is **${num(losses.at(-1), 2)}** nats, where guessing costs ${guess}`
    : "it begins";
  const name = bold(capital(run.name));
  const differs = wanted.name !== run.name;
  if (phase === "training") {
    const next = differs ? ` You can start ${bold(wanted.name)} when it is done.` : "";
    return `${name} trains, ${step}: ${loss}.${next}${idle}${settings(run)}`;
  }
  if (phase === "paused")
    return `${name} rests at ${step}: ${loss}.${differs ? ` ${instead("it")}` : ""}${idle}${settings(run)}`;
  if (phase === "stretching")
    return `${name} reads longer and longer texts: **${percent(read)}** are read. ${instead("the stretch")}${idle}${settings(run)}`;
  if (!scores.length) {
    const next = ready ? "Now stretch the text: will it break?" : "Its weights are gone: train it again to stretch it.";
    return `${name} is trained: ${loss}. ${next}${idle}${settings(run)}`;
  }
  const at = breaks(scores);
  const verdict =
    scores[0] < 2 / GUESS
      ? "it has hardly learned the task"
      : at
        ? `it **breaks at ${at} times the length**`
        : "it keeps at least half";
  const far = other ? ` ${bold(capital(other.name))} got ${share(other.scores.at(-1))} at 8 times.` : "";
  const asked = run.task === "copy" ? "in the last 64 places of" : "of those a training text away or more, in";
  const ranges = known?.map(([low, high]) => `${percent(low)} to ${percent(high)}`).join(", ");
  return (
    `${name} gives ${share(scores[0])} right answers in texts as long as in training, and ${share(scores.at(-1))} ` +
    `${asked} texts 8 times as long: ${verdict}.${far}${idle}\nAt 1, 2, 4 and 8 times: ${scores.map((s) => percent(s)).join(", ")}. ` +
    `Guessing gives ${percent(1 / GUESS)}.${known ? ` Eight seeds of the record: ${ranges}.` : ""}`
  );
}

const LABEL =
  "Three plots: the loss against the step of training, the mean attention of both layers against distance, and " +
  "the accuracy in texts of 1, 2, 4 and 8 times the trained length, of the last models that were trained";
const NOTICE = "One seed gives every encoding the same first weights and texts. Gray bars: the record's eight seeds.";
const ROW = 18; // of the key
const CALM = 1000; // ms between two pictures of a run, with motion reduced

export default figure((fig) => {
  const data = fig.model.get("data");
  const address = fig.model.get("_worker"); // of training.js on the site
  let now = null; // what goes on: { run, phase, read }, the phase training, paused or stretching
  let coming = null; // the trainer, from the first start on
  let tell = null; // and once it is there
  let failed = false;
  let drawn = 0; // when, in milliseconds

  const same = (one, other) => one.name === other.name && one.task === other.task;
  const wanted = () => plan(data, fig.traits);
  const last = () => fig.traits.runs.at(-1);
  const ready = () => Boolean(tell) && !now && last()?.task === fig.traits.task && !last().scores.length;
  /** What is compared: the runs of the task, the present one at the end. */
  function shown() {
    const all = now ? [...fig.traits.runs.filter((one) => !same(one, now.run)), now.run] : fig.traits.runs;
    return all.filter(({ task }) => task === fig.traits.task);
  }
  const height = (width) => (wide(width) ? 196 : 300) + ROW * Math.max(1, shown().length);

  const plot = fig.canvas({ label: LABEL, height });
  const progress = fig.element("progress", { className: "rope-progress", "aria-label": "Progress", max: 1, value: 0 });

  const keep = (run) => fig.set({ runs: [...fig.traits.runs.filter((one) => !same(one, run)), run].slice(-KEPT) });

  function hear({ step, losses, attention, trained, read, scores }) {
    if (!fig.root.isConnected) tell({ stop: true });
    if (!now) return; // it was reset meanwhile
    const { length } = now.run.losses;
    const due = step
      ? step === length + losses.length
      : trained
        ? length === now.run.steps
        : now.phase === "stretching";
    if (!due) return; // of a run before
    if (step) {
      now.run = {
        ...now.run,
        losses: [...now.run.losses, ...losses.map(rounded)],
        attention: attention.map((row) => Array.from(row, rounded)),
      };
    }
    if (read) now.read = read;
    const { run } = now;
    if (trained || scores) now = null;
    if (trained) keep(run);
    if (scores) keep({ ...run, scores: scores.map(rounded) });
    if (fig.reducedMotion && performance.now() < drawn + CALM) return;
    drawn = performance.now();
    fig.redraw();
  }

  async function start() {
    const { how, idle, ...settings } = wanted();
    const run = { ...settings, losses: [], attention: [], scores: [] };
    now = { run, phase: "training" };
    failed = false;
    drawn = performance.now();
    fig.redraw();
    try {
      coming ??= connect(address, hear);
      tell = await coming;
    } catch {
      [coming, now, failed] = [null, null, true];
      return fig.redraw();
    }
    if (now?.run !== run) return;
    tell({ start: { how, ...settings } });
    if (now.phase === "paused") tell({ pause: true });
  }
  function stretch() {
    now = { run: last(), phase: "stretching", read: 0 };
    tell({ stretch: true });
    fig.redraw();
  }
  function stop() {
    if (now) tell?.({ stop: true });
    now = null;
    fig.redraw();
  }

  const main = fig.button("Start", () => {
    if (now?.phase === "training" && now.run.task === wanted().task) {
      tell?.({ pause: true });
      now.phase = "paused";
    } else if (now?.phase === "paused" && same(now.run, wanted())) {
      tell?.({ resume: true });
      now.phase = "training";
    } else return start();
    fig.redraw();
  });
  main.addEventListener("click", (event) => event.detail > 1 && event.stopImmediatePropagation(), true); // one of two
  const longer = fig.button("Stretch", () => ready() && stretch());
  fig.root.querySelector(".rope-reset").addEventListener("click", stop);

  fig.draw(() => {
    const { width } = plot.clear();
    const plans = wanted();
    const all = shown();
    const here = now?.run.task === plans.task ? now : null;
    const run = here?.run ?? all.at(-1);
    const phase = here?.phase ?? (run ? "done" : "none");
    const resumes = phase === "paused" && same(run, plans);
    main.textContent = phase === "training" ? "Pause" : resumes ? "Resume" : "Start";
    longer.disabled = !ready();
    progress.value = phase === "stretching" ? now.read : run ? run.losses.length / run.steps : 0;
    const other = all.filter(({ scores }) => scores.length).findLast((one) => one !== run);
    const busy = here ? null : now?.run;
    fig.say(
      failed
        ? "The trainer did not come. Press **Start** to try once more."
        : words({ phase, wanted: plans, run, read: now?.read, known: run?.known, other, busy, ready: ready() }),
    );
    fig.root.dataset.values = JSON.stringify({
      phase,
      step: run?.losses.length ?? 0,
      runs: all.length,
      scores: run?.scores ?? [],
    });
    drawLosses(plot, all, run, plans.steps, wide(width) ? [0, width * 0.33, 190] : [0, width / 2, 142]);
    drawAttention(plot, run, plans.task, wide(width) ? [width * 0.34, width * 0.62, 190] : [width / 2, width, 142]);
    drawScores(plot, all, run, wide(width) ? [width * 0.63, width, 0, 190] : [0, width, 146, 290]);
    drawKey(plot, all, run, plot.height - ROW * Math.max(1, all.length));
  });

  fig.showMe(async () => {
    for (const encoding of ["RoPE", "local RoPE, then no encoding"]) {
      fig.set({ encoding, bug: "none", task: "copy", rate: RECORD, seed: 0 });
      await start();
      while (now) await fig.pause(200);
      await fig.pause(1500);
      if (ready()) stretch();
      while (now) await fig.pause(200);
      await fig.pause(1500);
    }
  });
  fig.notice(NOTICE);
});

const rounded = (value) => Number(value.toPrecision(4));

/** A trainer that one tells: in a worker, or, where a page has none (it was opened as a file), beside the page. */
async function connect(address, hear) {
  if (!address) return serve(hear);
  try {
    return await new Promise((go, refuse) => {
      const worker = new Worker(address);
      worker.onerror = refuse;
      worker.onmessage = ({ data }) => (data.ready ? go((message) => worker.postMessage(message)) : hear(data));
    });
  } catch {
    const script = make("script", { src: address });
    const loaded = new Promise((go, refuse) => Object.assign(script, { onload: go, onerror: refuse }));
    document.body.append(script);
    await loaded;
    return window.ropeTraining.serve(hear);
  }
}

// ---- the picture --------------------------------------------------------------------------------

const DASHES = [[], [7, 3], [2, 3], [8, 3, 2, 3]];
/** How a run is drawn: the last in green, those before it in gray, each with dashes of its own. */
const styleOf = (plot, all, one, run) => {
  const { accent, muted } = plot.colors;
  return one === run ? [accent, { width: 2.5 }] : [muted, { width: 1.6, dash: DASHES[all.indexOf(one) % 4] }];
};
const within = (plot, [x0, x1, low, high]) => ({
  left: x0 + 40,
  right: plot.width - x1 + 12,
  top: low + 22,
  bottom: plot.height - high + 40,
});

function drawLosses(plot, all, run, steps, [x0, x1, high]) {
  const labels = { xLabel: "step", xTicks: [0, steps / 2, steps], yTicks: [0, 1, 2, 3, 4] };
  const at = axes(plot, { x: [0, steps], y: [0, 4.5], ...labels, box: within(plot, [x0, x1, 0, high]) });
  text(plot, "loss, nats", x0 + 4, 9, { size: 11.5 });
  level(plot, at.y(Math.log(GUESS)), at.box, plot.colors.muted, { width: 1, dash: [1, 3] });
  text(plot, "guessing", at.box.x1, at.y(Math.log(GUESS)) - 8, { align: "right", size: 11, halo: true });
  for (const one of all) {
    const ys = one.losses.map((loss) => at.y(Math.min(loss, 4.5)));
    const [color, style] = styleOf(plot, all, one, run);
    curve(
      plot,
      ys.map((_, i) => at.x(i + 1)),
      ys,
      color,
      { ...style, width: 1.5 },
    );
  }
}

function drawAttention(plot, run, task, [x0, x1, high]) {
  const labels = { xLabel: "distance", xTicks: [0, 16, 32], yTicks: [0, 0.5, 1] };
  const at = axes(plot, { x: [0, 32], y: [0, 1], ...labels, box: within(plot, [x0, x1, 0, high]) });
  text(plot, "attention, by layer", x0 + 4, 9, { size: 11.5 });
  if (task === "copy") {
    upright(plot, at.x(LAG), at.box, plot.colors.muted, { width: 1, dash: [1, 3] });
    text(plot, `${LAG} back`, at.x(LAG) + 5, at.box.y0 + 6, { size: 11 });
  }
  run?.attention.forEach((row, layer) => {
    const color = layer ? plot.colors.ink : plot.colors.accent;
    const top = row.indexOf(Math.max(...row));
    curve(
      plot,
      row.map((_, far) => at.x(far)),
      row.map(at.y),
      color,
      { dash: layer ? [4, 3] : [] },
    );
    text(plot, String(layer + 1), at.x(top) + 6, Math.max(at.y(row[top]), at.box.y0 + 18), {
      color,
      bold: true,
      halo: true,
    });
  });
}

function drawScores(plot, all, run, [x0, x1, low, high]) {
  const labels = {
    xLabel: "times the trained length",
    xTicks: TIMES,
    yTicks: [0, 0.5, 1],
    xLog: true,
    yFormat: (v) => percent(v),
  };
  const at = axes(plot, { x: [0.9, 8.9], y: [0, 1], ...labels, box: within(plot, [x0, x1, low, high]) });
  text(plot, "right answers, far out", x0 + 4, low + 9, { size: 11.5 });
  level(plot, at.y(1 / GUESS), at.box, plot.colors.muted, { width: 1, dash: [1, 3] });
  if (!all.some(({ scores }) => scores.length)) {
    text(plot, "not stretched yet", (at.box.x0 + at.box.x1) / 2, at.y(0.75), { align: "center" });
  }
  if (run?.scores.length && run.known) {
    plot.ctx.globalAlpha = 0.3;
    run.known.forEach(([bottom, top], i) => {
      plot.ctx.fillStyle = plot.colors.muted;
      plot.ctx.fillRect(at.x(TIMES[i]) - 5, at.y(top) - 1, 10, at.y(bottom) - at.y(top) + 2);
    });
    plot.ctx.globalAlpha = 1;
  }
  for (const one of all.filter(({ scores }) => scores.length)) {
    const [xs, ys] = [TIMES.map(at.x), one.scores.map(at.y)];
    const [color, style] = styleOf(plot, all, one, run);
    curve(plot, xs, ys, color, style);
    const broke = breaks(one.scores);
    xs.forEach((x, i) => disc(plot, x, ys[i], 3.5, broke && TIMES[i] >= broke ? plot.colors.warm : color));
  }
}

function drawKey(plot, all, run, top) {
  if (!all.length) text(plot, "No model yet.", 4, top + ROW / 2, { size: 12 });
  all.forEach((one, i) => {
    const y = top + (i + 0.5) * ROW;
    const [color, style] = styleOf(plot, all, one, run);
    curve(plot, [4, 30], [y, y], color, style);
    const told = one.scores.length
      ? one.scores.map((s) => percent(s)).join(" · ")
      : `loss ${short(one.losses.at(-1) ?? 0, 2)}`;
    text(plot, told, plot.width - 2, y, { align: "right", size: 11.5 });
    const room = plot.width - 44 - plot.ctx.measureText(told).width - 10;
    let name = one.name;
    while (plot.ctx.measureText(name).width > room) name = `${name.slice(0, -2)}…`;
    text(plot, name, 38, y, { size: 11.5, color: plot.colors.ink, bold: one === run });
  });
}
