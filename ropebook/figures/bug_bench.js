// Twelve packages with one wrong line each. The chart first; the line only after a guess or two.
import { make, setRich } from "./kit/dom.js";
import { axes, curve, text, upright, wide } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num } from "./kit/numbers.js";

const CLEAN = 3e-5; // errors below are the rounding of float32, as in tests/package/test_bug_bench.py
const WORST = 5;
const SYMPTOM = 1e-3; // of the curves and of the lengths, as printed

/** How dark an error is on the chart: 0 for rounding, 1 for an output that has nothing to do with it. */
export function severity(error) {
  if (!(error > CLEAN)) return 0;
  return clamp(0.18 + (0.82 * Math.log(error / CLEAN)) / Math.log(WORST / CLEAN), 0, 1);
}

/** Where the guesses for one patient stand: "", "again", "right" or "wrong". */
export function standing(guesses, right) {
  if (guesses.includes(right)) return "right";
  return ["", "again"][guesses.length] ?? "wrong";
}

/** How many patients were named at the first guess, at the second, or not at all. */
export function tally(guesses, patients) {
  const stands = guesses.map((given, i) => standing(given, patients[i].right));
  const right = guesses.filter((_, i) => stands[i] === "right");
  const first = right.filter((given) => given.length === 1).length;
  return { first, second: right.length - first, missed: stands.filter((s) => s === "wrong").length };
}

/** The guesses for all patients with one more, unless that patient's truth is shown. */
export function withGuess(guesses, index, guess, right) {
  const open = ["", "again"].includes(standing(guesses[index], right)) && !guesses[index].includes(guess);
  return guesses.map((given, i) => (i === index && open ? [...given, guess] : given));
}

const apart = (a, b) => Math.max(...a.map((value, i) => Math.abs(value - b[i])));

/** What the chart of one patient comes to, in numbers and yes or no. */
export function findings(patient, healthy) {
  return {
    relative: apart(patient.near, patient.far) < SYMPTOM,
    healthy: apart(patient.near, healthy) < SYMPTOM,
    shortest: Math.min(...patient.length),
    longest: Math.max(...patient.length),
    firstWrong: patient.errors.map((row) => row.findIndex((error) => error > CLEAN)),
  };
}

/** The curves of the score that differ, each with all its names; the healthy one comes first. */
export function curves({ near, far }, healthy) {
  const found = [{ names: ["healthy"], values: healthy }];
  for (const [name, values] of [
    ["from 0", near],
    ["from 3,000", far],
  ]) {
    const same = found.find((other) => apart(other.values, values) < SYMPTOM);
    if (same) same.names.push(name);
    else found.push({ names: [name], values });
  }
  return found;
}

/** How the chart of another bug would differ from the one that is seen; null if it would not. */
export function contradiction(patient, other, rows, healthy) {
  const [here, there] = [patient, other].map((each) => findings(each, healthy));
  const first = (wanted) => rows.findIndex((_, i) => wanted(here.firstWrong[i], there.firstWrong[i]));
  const extra = first((seen, would) => seen < 0 && would >= 0);
  if (extra >= 0) return `it would show in “${rows[extra]}”, too`;
  const missing = first((seen, would) => seen >= 0 && would < 0);
  if (missing >= 0) return `it would leave “${rows[missing]}” clean`;
  const moved = first((seen, would) => seen !== would);
  if (moved >= 0) {
    const tokens = `${there.firstWrong[moved]}, not ${here.firstWrong[moved]}`;
    return `the first wrong token in “${rows[moved]}” would be ${tokens}`;
  }
  if (here.relative !== there.relative) {
    return `its scores from 0 and from 3,000 would be ${there.relative ? "the same" : "different"}`;
  }
  if (here.healthy !== there.healthy) {
    return `its score from 0 would ${there.healthy ? "be the healthy one" : "differ from the healthy one"}`;
  }
  return null;
}

const lower = (name) => name[0].toLowerCase() + name.slice(1);

/** The answer: which examinations see the bug, then what became of the guesses. */
export function answer(patients, index, guesses, { rows, healthy, hint }) {
  const patient = patients[index];
  const stands = standing(guesses, patient.right);
  if (stands === "right" || stands === "wrong") {
    return `${stands === "right" ? "Yes" : "No. It was this"}: **${lower(patient.name)}**.`;
  }
  if (stands === "again") {
    const other = patients[patient.options[guesses[0]]];
    return `Not “${lower(other.name)}”: ${contradiction(patient, other, rows, healthy)}. **One guess is left.**`;
  }
  const { firstWrong } = findings(patient, healthy);
  const wrong = firstWrong.filter((token) => token >= 0).length;
  const row = firstWrong.findIndex((token) => token >= 0);
  const many = wrong === rows.length ? `All **${wrong}** examinations` : `**${wrong}** of ${rows.length} examinations`;
  const first = `the first wrong token in “${rows[row]}” is **${firstWrong[row]}**`;
  const see = `${many} ${wrong === 1 ? "sees" : "see"} the bug; ${first}.`;
  return hint ? `${see} Look here: ${lower(patient.look)}` : see;
}

/** The caption: the answer; below it the errors of a token, the curves and the score so far. */
export function words(patients, index, guesses, shown) {
  const { healthy, token } = shown;
  const patient = patients[index];
  const here = patient.errors.map((row) => row[token]).filter((error) => error > CLEAN);
  const [least, most] = [Math.min(...here), Math.max(...here)].map((error) => num(error, error < 0.1 ? 3 : 2));
  const sizes = least === most ? most : `${least} to ${most}`;
  const errors = here.length ? `off by **${sizes}** usual sizes of an output` : "right wherever it is examined";
  const { first, second, missed } = tally(guesses, patients);
  const named =
    first + second + missed ? ` Named: **${first}** at once, ${second} at the second guess, ${missed} not.` : "";
  const own = answer(patients, index, guesses[index], shown);
  return `${own}\nToken **${token}** is ${errors}. ${symptoms(patient, healthy)}${named}`;
}

/** What the scores and the lengths of a patient say. */
function symptoms({ near, far, length }, healthy) {
  const lengths = apart(
    length,
    length.map(() => 1),
  );
  const [first, second] = [near, far].map((values) => {
    const off = apart(values, healthy);
    return off < SYMPTOM ? "healthy" : `off by up to ${num(off, 2)}`;
  });
  const scores =
    first === "healthy" && second === first
      ? "Scores over the distance are healthy"
      : `Scores are ${first} from position 0 and ${second} from 3,000`;
  const kept = lengths < SYMPTOM ? "lengths are kept" : `lengths change by up to ${num(100 * lengths, 0)}%`;
  return `${scores}; ${kept}.`;
}

const LABEL =
  "Error of every token's output in seven examinations: empty is right, the fuller the worse; below it, where they " +
  "differ from the healthy ones, the score over the distance and the lengths";
const NOTICE =
  "Which examinations see it? Where does the first wrong token stand? Are the scores drawn, so not healthy?";

const narrow = (width) => width < 520;
const rowHeight = (width) => (narrow(width) ? 34 : 29);
const chartHeight = (rows, width) => 24 + rows * rowHeight(width) + 38;
const CURVES = 168;

export default figure((fig) => {
  const { rows, healthy, patients } = fig.model.get("data");
  const places = patients[0].errors[0].length;
  const scores = patients.flatMap(({ near, far }) => [...near, ...far]);
  const range = [Math.min(0, ...scores) - 0.06, Math.max(1, ...scores) + 0.06]; // one for all patients
  const group = `rope-bench-${Math.random().toString(36).slice(2)}`; // of its own on the page
  const index = () => fig.traits.patient - 1;
  const keep = (token) => clamp(token, 0, places - 1);
  const panels = () => {
    const { shortest, longest } = findings(patients[index()], healthy);
    const lengths = Math.max(longest - 1, 1 - shortest) >= SYMPTOM;
    return [curves(patients[index()], healthy).length > 1 && "scores", lengths && "lengths"].filter(Boolean);
  };
  let field = null; // where the cells of the chart lie

  const plot = fig.canvas({
    label: LABEL,
    help: "Point at a token, or walk with the arrow keys.",
    height(width) {
      const below = panels().length;
      return chartHeight(rows.length, width) + CURVES * (wide(width) ? Math.min(below, 1) : below);
    },
    point({ x, y }) {
      if (!field || y > field.y1) return;
      fig.set({ token: keep(Math.floor(((x - field.x0) / (field.x1 - field.x0)) * places)) });
    },
    keys: ({ dx }) => fig.set({ token: keep(fig.traits.token + dx) }),
  });

  // the guesses, in the page's own inputs
  const legend = make("legend", { className: "rope-prompt" });
  const options = make("div", { className: "rope-guesses" });
  const verdict = make("div", { className: "rope-verdict" });
  const form = fig.element("fieldset", { className: "rope-ask" }, legend, options, verdict);
  form.addEventListener("keydown", (event) => event.stopPropagation()); // no command to the notebook

  const offer = (patient) => {
    legend.textContent = `What is wrong with patient ${patient + 1}?`;
    const { right } = patients[patient];
    const choose = (i) => () => fig.set({ guesses: withGuess(fig.traits.guesses, patient, i, right) });
    options.replaceChildren(
      ...patients[patient].options.map((other, i) => {
        const input = make("input", { type: "radio", name: group, value: i, onchange: choose(i) });
        return make("label", { className: "rope-option" }, input, make("span", {}, patients[other].name));
      }),
    );
  };
  const judge = (patient, guesses) => {
    const { right } = patients[patient];
    const stands = standing(guesses, right);
    const over = stands === "right" || stands === "wrong";
    [...options.querySelectorAll("input")].forEach((input, i) => {
      input.checked = i === guesses.at(-1);
      input.disabled = over || guesses.includes(i);
      input.parentElement.classList.toggle("rope-refuted", guesses.includes(i) && i !== right);
    });
    verdict.className = `rope-verdict rope-${stands}`;
    fig.root.dataset.verdict = stands;
    const said = stands ? paragraph(answer(patients, patient, guesses, { rows, healthy })) : "";
    verdict.replaceChildren(said, ...(over ? diagnosis(patients[patient]) : []));
  };

  let shown = "";
  fig.draw(() => {
    const { patient: number, token, guesses, hint } = fig.traits;
    const patient = patients[number - 1];
    const now = `${number} ${guesses[number - 1]}`;
    if (shown !== now) {
      if (!shown.startsWith(`${number} `)) offer(number - 1);
      judge(number - 1, guesses[number - 1]);
      shown = now;
    }
    plot.clear();
    field = drawChart(plot, patient, rows, token);
    const top = chartHeight(rows.length, plot.width);
    panels().forEach((panel, i, all) => {
      const beside = wide(plot.width) && all.length > 1;
      const middle = Math.round(plot.width * 0.6);
      const left = beside && i ? middle + 52 : 46;
      const right = beside && !i ? plot.width - middle : 10;
      const down = beside ? 0 : i * CURVES;
      const box = { left, right, top: top + down + 34, bottom: plot.height - top - down - CURVES + 38 };
      if (panel === "scores") drawScores(plot, curves(patient, healthy), range, box);
      else drawLengths(plot, patient, box);
    });
    fig.say(words(patients, number - 1, guesses, { rows, healthy, token, hint: hint === number }));
  });

  fig.showMe(async () => {
    const { patient } = fig.traits;
    fig.set({ token: 0, hint: patient });
    await fig.pause(600);
    await fig.glide({ token: places - 1 }, 4500);
  });
  fig.button("Next patient", () => fig.set({ patient: (fig.traits.patient % patients.length) + 1, hint: 0 }));
  fig.notice(NOTICE);
});

function paragraph(content) {
  const p = make("p");
  setRich(p, content);
  return p;
}

/** What was wrong with a patient, as elements. */
function diagnosis({ why, story, diff, thread, test }) {
  const source = paragraph(`${story} The thread: `);
  source.append(make("a", { href: thread, rel: "noopener" }, thread.split("/").slice(3).join("/")));
  const lines = diff.split("\n").map((line) => {
    const className = { "+": "rope-new", "-": "rope-old" }[line[0]] ?? "";
    return make("span", { className }, `${line}\n`);
  });
  return [
    paragraph(why),
    paragraph("The change that made the bug, − the right code and + the wrong:"),
    make("pre", { className: "rope-diff", "aria-label": "The change that made the bug" }, ...lines),
    source,
    paragraph(`Caught by \`${test}\`.`),
  ];
}

/** The seven examinations as rows of cells; returns where the cells lie. */
function drawChart(plot, patient, rows, token) {
  const { colors, ctx, width } = plot;
  const small = narrow(width);
  const places = patient.errors[0].length;
  const left = small ? 6 : 246;
  const field = { x0: left, x1: width - 8, y0: 24, y1: 24 + rows.length * rowHeight(width) };
  const cell = (field.x1 - field.x0) / places;
  text(plot, "error of each token's output: empty is right, full is wrong", 6, 9, { color: colors.ink });
  const x = field.x0 + (token + 0.5) * cell;
  if (!small) upright(plot, x, field, colors.muted, { width: 1 }); // there the names stand between the rows
  rows.forEach((row, i) => {
    const top = field.y0 + i * rowHeight(width) + (small ? 17 : 0);
    const high = rowHeight(width) - (small ? 18 : 4);
    const label = small ? [left, top - 8] : [left - 8, top + high / 2];
    text(plot, row, ...label, { align: small ? "left" : "right", size: 12, halo: true });
    ctx.strokeStyle = colors.rule;
    const errors = patient.errors[i];
    const long = cell * errors.length;
    ctx.strokeRect(field.x0 + 0.5, Math.round(top) + 0.5, long - 1, high);
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
  text(plot, "token", (field.x0 + field.x1) / 2, field.y1 + 23, { align: "center" });
  return field;
}

function drawScores(plot, found, range, box) {
  const { colors } = plot;
  const last = found[0].values.length - 1;
  const at = axes(plot, { x: [0, last], y: range, xLabel: "distance (tokens)", yLabel: "score", box });
  const styles = [
    { color: colors.muted, width: 7, alpha: 0.28 },
    { color: colors.warm, width: 2 },
    { color: colors.ink, width: 1.5, dash: [5, 4] },
  ];
  let x = at.box.x0;
  found.forEach(({ names, values }, i) => {
    const { color, ...style } = styles[i];
    curve(
      plot,
      values.map((_, distance) => at.x(distance)),
      values.map((value) => at.y(value)),
      color,
      style,
    );
    const name = names.join(" and ");
    text(plot, name, x, at.box.y0 - 14, { color, bold: true });
    plot.ctx.font = `600 12px ${colors.font}`;
    x += plot.ctx.measureText(name).width + 18;
  });
}

function drawLengths(plot, { length }, box) {
  const { colors } = plot;
  const at = axes(plot, {
    x: [0, length.length - 1],
    y: [Math.min(0.7, ...length), Math.max(1.3, ...length)],
    yTicks: [0.8, 1, 1.2],
    yFormat: (v) => v.toFixed(1),
    xLabel: "position (tokens)",
    box,
  });
  text(plot, "length after / before", at.box.x0, at.box.y0 - 14, { color: colors.warm, bold: true });
  const xs = length.map((_, m) => at.x(m));
  curve(plot, xs, length.map(at.y), colors.warm, { width: 2 });
}
