// Twelve packages with one wrong line each. The chart first; the line only after an answer.
import { make, setRich } from "./kit/dom.js";
import { axes, curve, disc, text, upright } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num } from "./kit/numbers.js";

const CLEAN = 3e-5; // errors below are the rounding of float32, as in tests/package/test_bug_bench.py
const WORST = 5;
const SYMPTOM = 1e-3; // of the two curves and of the lengths, as printed

/** How dark an error is on the chart: 0 for rounding, 1 for an output that has nothing to do with it. */
export function severity(error) {
  if (!(error > CLEAN)) return 0;
  return clamp(0.18 + (0.82 * Math.log(error / CLEAN)) / Math.log(WORST / CLEAN), 0, 1);
}

/** How many were answered, and how many rightly; an answer of -1 is none. */
export function tally(answers, patients) {
  const given = answers.filter((answer) => answer >= 0).length;
  const right = answers.filter((answer, i) => answer >= 0 && answer === patients[i].right).length;
  return { given, right, of: patients.length };
}

/** What the chart of one patient comes to, in numbers and yes or no. */
export function findings(patient, healthy) {
  const apart = (a, b) => Math.max(...a.map((value, i) => Math.abs(value - b[i])));
  return {
    relative: apart(patient.near, patient.far) < SYMPTOM,
    healthy: apart(patient.near, healthy) < SYMPTOM,
    shortest: Math.min(...patient.length),
    longest: Math.max(...patient.length),
    firstWrong: patient.errors.map((row) => row.findIndex((error) => error > CLEAN)),
  };
}

/** A list of answers with one more, unless that patient has been answered. */
export function withAnswer(answers, index, answer) {
  return answers.map((old, i) => (i === index && old < 0 ? answer : old));
}

/** The caption: what the charts of a patient show at a token; `rows` names the examinations. */
export function words(patient, healthy, rows, token) {
  const found = findings(patient, healthy);
  const wrong = found.firstWrong.filter((first) => first >= 0).length;
  const here = rows
    .map((row, i) => [row, patient.errors[i][token]])
    .filter(([, error]) => error > CLEAN)
    .map(([row, error]) => `${row} **${num(error, error < 0.1 ? 3 : 2)}**`);
  if (here.length > 3) here.splice(2, Infinity, `and in ${here.length - 2} more`);
  return (
    `Score at distance ${token}: **${num(patient.near[token], 3)}** from position 0, ` +
    `**${num(patient.far[token], 3)}** from 3,000, healthy ${num(healthy[token], 3)}. ` +
    `Lengths ${num(found.shortest, 2)} to ${num(found.longest, 2)}. ` +
    `${wrong} of ${rows.length} examinations find an error; at token ${token}: ${here.join("; ") || "none"}.`
  );
}

const LABEL =
  "Score of one vector with itself over the distance: the patient from position 0, the patient from position 3,000, " +
  "and the healthy package";
const NOTICE =
  "No symptom alone names a bug: ask of every chart whether the two curves agree with each other, whether they " +
  "agree with the grey one, and at which token the first error stands.";

const narrow = (width) => width < 520;
const rowHeight = (width) => (narrow(width) ? 38 : 25);

export default figure((fig) => {
  const { rows, healthy, patients } = fig.model.get("data");
  const places = patients[0].errors[0].length;
  const group = `rope-bench-${Math.random().toString(36).slice(2)}`; // of its own on the page
  const index = () => fig.traits.patient - 1;
  const keep = (token) => clamp(token, 0, places - 1);
  let hint = null; // the patient whose hint is shown
  let field = null; // where the cells of the chart lie

  const score = fig.element("p", { className: "rope-score" });
  const scores = fig.canvas({ label: LABEL, height: (width) => clamp(width * 0.42, 190, 250) });
  const lengths = fig.canvas({
    label: "Length of a rotated vector divided by its own length, over the position",
    height: 118,
  });
  const chart = fig.canvas({
    label: "Error of every token's output in seven examinations: darker is worse, empty is right",
    help: "Point at the chart, or focus it and use the left and right arrow keys, to read a token.",
    height: (width) => 34 + rows.length * rowHeight(width) + 34,
    point({ x }) {
      if (field) fig.set({ token: keep(Math.floor(((x - field.x0) / (field.x1 - field.x0)) * places)) });
    },
    keys: ({ dx }) => fig.set({ token: keep(fig.traits.token + dx) }),
  });

  // the question, in the page's own inputs
  const legend = make("legend", { className: "rope-prompt" });
  const options = make("div");
  const verdict = make("div", { className: "rope-verdict", role: "status" });
  const ask = fig.element("fieldset", { className: "rope-ask" }, legend, options, verdict);
  ask.addEventListener("keydown", (event) => event.stopPropagation()); // no command to the notebook

  const offer = (patient) => {
    legend.textContent = `What is wrong with patient ${patient + 1}?`;
    const choose = (i) => () => fig.set({ answers: withAnswer(fig.traits.answers, index(), i) });
    options.replaceChildren(
      ...patients[patient].options.map((name, i) => {
        const input = make("input", { type: "radio", name: group, value: i, onchange: choose(i) });
        return make("label", { className: "rope-option" }, input, name);
      }),
    );
  };
  const judge = (patient, answer) => {
    [...options.querySelectorAll("input")].forEach((input, i) => {
      input.checked = i === answer;
      input.disabled = answer >= 0;
    });
    const state = answer < 0 ? "" : answer === patients[patient].right ? "right" : "wrong";
    verdict.className = `rope-verdict rope-${state}`;
    fig.root.dataset.verdict = state;
    verdict.replaceChildren(...(state ? diagnosis(patients[patient], state) : []));
  };

  let shown = "";
  fig.draw(() => {
    const { patient: number, token, answers } = fig.traits;
    const patient = patients[number - 1];
    const answer = answers[number - 1];
    if (hint !== null && hint !== number - 1) hint = null;
    const { given, right, of } = tally(answers, patients);
    setRich(score, `Patient **${number}** of ${of}. Named so far: **${given}**, of them right: **${right}**.`);
    if (shown !== `${number} ${answer}`) {
      if (!shown.startsWith(`${number} `)) offer(number - 1);
      judge(number - 1, answer);
      shown = `${number} ${answer}`;
    }
    drawScores(scores, patient, healthy, token);
    drawLengths(lengths, patient, token);
    field = drawChart(chart, patient, rows, token);

    const look = hint === null ? "" : `**Look here:** ${patient.look} `;
    fig.say(look + words(patient, healthy, rows, token));
  });

  fig.showMe(async () => {
    hint = index();
    fig.set({ token: 0 });
    fig.redraw();
    await fig.pause(600);
    await fig.glide({ token: places - 1 }, 4500);
  });
  fig.button("Next patient", () => {
    hint = null;
    fig.set({ patient: (fig.traits.patient % patients.length) + 1 });
  });
  fig.notice(NOTICE);
});

/** What was wrong with a patient, as elements. */
function diagnosis({ right, options, why, story, diff, thread, test }, state) {
  const paragraph = (content) => {
    const p = make("p");
    setRich(p, content);
    return p;
  };
  const name = options[right][0].toLowerCase() + options[right].slice(1);
  const source = paragraph(`${story} The thread: `);
  source.append(make("a", { href: thread, rel: "noopener" }, thread.split("/").slice(3).join("/")));
  const lines = diff.split("\n").map((line) => {
    const className = { "+": "rope-new", "-": "rope-old" }[line[0]] ?? "";
    return make("span", { className }, `${line}\n`);
  });
  return [
    paragraph(`**${state === "right" ? "Yes" : "No"}: ${name}.** ${why}`),
    make("pre", { className: "rope-diff", "aria-label": "The changed line" }, ...lines),
    source,
    paragraph(`Caught by \`${test}\`.`),
  ];
}

function drawScores(plot, patient, healthy, token) {
  const { colors } = plot;
  plot.clear();
  const all = [...patient.near, ...patient.far, ...healthy];
  const at = axes(plot, {
    x: [0, healthy.length - 1],
    y: [Math.min(0, ...all) - 0.06, Math.max(1, ...all) + 0.06],
    xLabel: "distance (tokens)",
    yLabel: "score",
    box: { top: 30 },
  });
  const xs = healthy.map((_, distance) => at.x(distance));
  upright(plot, at.x(token), at.box, colors.muted, { width: 1 });
  curve(plot, xs, healthy.map(at.y), colors.muted, { width: 7, alpha: 0.28 });
  curve(plot, xs, patient.near.map(at.y), colors.k, { width: 2 });
  curve(plot, xs, patient.far.map(at.y), colors.q, { width: 2, dash: [5, 4] });
  disc(plot, at.x(token), at.y(patient.near[token]), 4, colors.k);
  disc(plot, at.x(token), at.y(patient.far[token]), 4, colors.q);
  const keys = [
    ["healthy", colors.muted],
    ["from 0", colors.k],
    ["from 3,000", colors.q],
  ];
  let x = at.box.x0;
  for (const [words, color] of keys) {
    text(plot, words, x, 14, { color, bold: true });
    plot.ctx.font = "600 12px system-ui, sans-serif";
    x += plot.ctx.measureText(words).width + 18;
  }
}

function drawLengths(plot, patient, token) {
  const { colors } = plot;
  plot.clear();
  const at = axes(plot, {
    x: [0, patient.length.length - 1],
    y: [Math.min(0.7, ...patient.length), Math.max(1.3, ...patient.length)],
    yTicks: [0.8, 1, 1.2],
    yFormat: (v) => v.toFixed(1),
    xLabel: "position (tokens)",
    box: { top: 24 },
  });
  upright(plot, at.x(token), at.box, colors.muted, { width: 1 });
  text(plot, "length after the rotation / before", at.box.x0, 10, { color: colors.ink });
  const xs = patient.length.map((_, m) => at.x(m));
  curve(plot, xs, patient.length.map(at.y), colors.k, { width: 2 });
}

/** The seven examinations as rows of cells; returns where the cells lie. */
function drawChart(plot, patient, rows, token) {
  const { colors, ctx } = plot;
  const { width } = plot.clear();
  const places = patient.errors[0].length;
  const left = narrow(width) ? 6 : 246;
  const field = { x0: left, x1: width - 8, y0: 30, y1: 30 + rows.length * rowHeight(width) };
  const cell = (field.x1 - field.x0) / places;
  text(plot, "error of each token's output", 6, 12, { color: colors.ink });
  const x = field.x0 + (token + 0.5) * cell;
  if (!narrow(width)) upright(plot, x, field, colors.muted, { width: 1 }); // there the names stand between the rows
  rows.forEach((row, i) => {
    const top = field.y0 + i * rowHeight(width) + (narrow(width) ? 17 : 0);
    const high = rowHeight(width) - (narrow(width) ? 20 : 5);
    const label = narrow(width) ? [left, top - 8] : [left - 8, top + high / 2];
    text(plot, row, ...label, { align: narrow(width) ? "left" : "right", size: 12, halo: true });
    ctx.strokeStyle = colors.rule;
    const errors = patient.errors[i];
    const wide = cell * errors.length;
    ctx.strokeRect(field.x0 + 0.5, Math.round(top) + 0.5, wide - 1, high);
    errors.forEach((error, t) => {
      const dark = severity(error);
      if (!dark) return;
      ctx.globalAlpha = dark;
      ctx.fillStyle = colors.warm;
      ctx.fillRect(field.x0 + t * cell, top, Math.max(cell - 0.5, 1), high);
      ctx.globalAlpha = 1;
    });
    if (token < errors.length) {
      ctx.strokeStyle = colors.ink;
      ctx.strokeRect(x - cell / 2, top - 0.5, cell, high + 1);
    }
  });
  for (const t of [0, 16, 32, places - 1]) {
    text(plot, String(t), field.x0 + (t + 0.5) * cell, field.y1 + 8, { align: "center", size: 11.5 });
  }
  text(plot, "token", (field.x0 + field.x1) / 2, field.y1 + 24, { align: "center" });
  return field;
}
