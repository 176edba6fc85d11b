// Both sides of a step of a derivation, evaluated where the sliders stand: numbers and arrows.
import { figure, arrow, disc, num, text, ticks } from "./kit.js";

export const AS_PRINTED = "as printed";
const TOLERANCE = 1e-9;

// What a careless pen does to the right side: each name is read from the other one's value.
const SLIPS = [
  { name: "m and n swapped on the right", needs: ["m", "n"], twist: (v) => ({ m: v.n, n: v.m }) },
  { name: "i and j swapped on the right", needs: ["i", "j"], twist: (v) => ({ i: v.j, j: v.i }) },
  { name: "θ turned round on the right", needs: ["theta"], twist: (v) => ({ theta: -v.theta }) },
  { name: "ϕ turned round on the right", needs: ["phi"], twist: (v) => ({ phi: -v.phi }) },
  { name: "x turned round on the right", needs: ["x"], twist: (v) => ({ x: -v.x }) },
  { name: "ζ turned into 1/ζ on the right", needs: ["zeta"], twist: (v) => ({ zeta: 1 / v.zeta }) },
  { name: "conjugate of k forgotten on the right", needs: ["k_x", "k_y"], twist: (v) => ({ k_y: -v.k_y }) },
];

/** A function of the variables' values that returns [[re, im], ...], one for every entry. */
export function compile(codes, names) {
  const entries = codes.map(({ re, im }) => `[${re}, ${im}]`).join(", ");
  return new Function(...names, `"use strict"; return [${entries}];`);
}

/** The variants of a step: as printed, with each slip that its right side admits, each rival. */
export function variants(step) {
  const used = (name) => step.right.some(({ re, im }) => new RegExp(`\\b${name}\\b`).test(`${re} ${im}`));
  const slips = SLIPS.filter(({ needs }) => needs.every(used)).map(({ name }) => name);
  return [AS_PRINTED, ...slips, ...step.rivals.map(({ name }) => name)];
}

/** Both sides of a step at { name: value }, in one of its variants. */
export function sides(step, values, variant = AS_PRINTED) {
  const rival = step.rivals.find(({ name }) => name === variant);
  const { left, right } = rival ?? step;
  const slip = SLIPS.find(({ name }) => name === variant);
  const twisted = slip ? { ...values, ...slip.twist(values) } : values;
  const at = (codes, v) => compile(codes, step.variables)(...step.variables.map((name) => v[name]));
  return { left: at(left, values), right: at(right, twisted) };
}

/** The largest distance between an entry on the left and the same entry on the right. */
export function difference(left, right) {
  return Math.max(...left.map(([x, y], e) => Math.hypot(x - right[e][0], y - right[e][1])));
}

/** Whether the relation holds, up to rounding. */
export function holds(relation, left, right) {
  const size = Math.max(1, ...[...left, ...right].map(([x, y]) => Math.hypot(x, y)));
  const close = difference(left, right) <= TOLERANCE * size;
  if (relation === "==") return close;
  if (relation === "!=") return !close;
  const [a, b] = [left[0][0], right[0][0]];
  return (relation.length > 1 && close) || (relation[0] === "<" ? a < b : a > b);
}

/** A complex number in words that fit a line; the imaginary part only when the step has one. */
export function complexText([x, y], real, digits = 4) {
  const tidy = (v) => num(Math.abs(v) < 5e-13 ? 0 : v, digits);
  if (real) return tidy(x);
  return `${tidy(x)} ${y < 0 && Math.abs(y) >= 5e-13 ? "−" : "+"} ${tidy(Math.abs(y))} i`;
}

/** The arrows of one side: a number, or the columns of a matrix (a row is one arrow). */
export function arrowsOf(entries, [rows, columns]) {
  if (rows * columns === 1) return [entries[0]];
  const flat = entries.map(([x]) => x);
  if (rows === 1 || columns === 1) return [[flat[0], flat[1] ?? 0]];
  return Array.from({ length: columns }, (_, c) => [flat[c], flat[columns + c] ?? 0]);
}

const LETTERS = { theta: "θ", theta_1: "θ₁", zeta: "ζ", phi: "ϕ", omega: "ω", alpha: "α", q_0: "q₀", q_1: "q₁", k_0: "k₀", k_1: "k₁" };

export default figure((fig) => {
  const data = fig.model.get("_data");
  const steps = data.steps ?? [];
  const labels = fig.model.get("_options").step ?? [];
  const statement = fig.element("div", { className: "rope-statement" });
  const choices = fig.element("div", { className: "rope-variants" });
  choices.setAttribute("role", "group");
  choices.setAttribute("aria-label", "Try the step");
  const plot = fig.canvas({
    label: "A plane with the left side of the step as a broad arrow and the right side as a thin arrow on it",
    height: (width) => Math.min(width * 0.62, 300),
  });
  const panel = fig.element("div", { className: "rope-sides" });
  const notice = "The broad arrow is the left side, the thin one the right side. On a true step they lie on each other wherever you put the sliders.";

  const now = () => steps[labels.indexOf(fig.traits.step)];
  const settings = (step) => Object.fromEntries(step.variables.map((v) => [v, fig.traits[`at_${v}`]]));
  const variantOf = (step) => (variants(step).includes(fig.traits.variant) ? fig.traits.variant : AS_PRINTED);

  fig.draw(() => {
    const step = now();
    if (!step) return;
    const values = settings(step);
    const variant = variantOf(step);
    const { left, right } = sides(step, values, variant);
    const apart = difference(left, right);
    const fits = holds(step.relation, left, right);
    const rival = step.rivals.some(({ name }) => name === variant);
    Object.assign(fig.root.dataset, { derivation: data.derivation, step: step.name, variant, difference: String(apart), holds: String(fits) });
    const scalar = step.shape[0] * step.shape[1] === 1;
    const real = [...left, ...right].every(([, y]) => Math.abs(y) < 5e-13) && step.left.concat(step.right).every(({ im }) => im === "0");

    showControls(fig.root, rival ? step.variables : step.own);
    fig.formula(statement, step.latex);
    showVariants(step, variant);
    drawPlane(plot, { step, left, right, fits, values, scalar, real });
    showSides({ step, left, right, real, fits });

    const used = spoken(rival ? step.variables : step.own, values);
    const where = used.length ? `At ${used.join(", ")}: ` : "";
    const words = scalar
      ? `left **${complexText(left[0], real)}**, right **${complexText(right[0], real)}**. `
      : `${left.length} entries on either side. `;
    const verdict = step.relation === "=="
      ? fits
        ? `They agree${apart === 0 ? " to the last digit" : `: the difference is ${num(apart, 9)}`}.`
        : `**They differ** by ${num(apart, 4)}: ${rival ? `${variant} breaks this step` : "this is false"}.`
      : fits ? "The relation holds." : "**The relation fails.**";
    fig.say(where + words + verdict);
    fig.notice(
      variant === AS_PRINTED
        ? notice
        : rival
          ? fits
            ? `You see the formulas of ${variant}. They satisfy this step too: it does not single out the solution.`
            : `You see the formulas of ${variant}. They satisfy every step above, and break this one: here a choice is made.`
          : fits
            ? "With this slip the step is still true at this setting: it cannot see the slip. Move the sliders, or try another step."
            : "With the slip the arrows come apart. One setting where they differ is enough to refute it.",
    );
  });

  function showVariants(step, variant) {
    const names = variants(step);
    if (choices.dataset.for !== step.name) {
      choices.dataset.for = step.name;
      choices.hidden = names.length < 2;
      choices.replaceChildren(
        ...names.map((name) => {
          const button = Object.assign(document.createElement("button"), { type: "button", className: "rope-chip", textContent: name });
          button.addEventListener("click", () => fig.set({ variant: name }));
          return button;
        }),
      );
    }
    [...choices.children].forEach((button, i) => button.setAttribute("aria-pressed", String(names[i] === variant)));
  }

  function showSides({ step, left, right, real, fits }) {
    const [rows, columns] = step.shape;
    const side = (name, entries) => {
      const box = Object.assign(document.createElement("div"), { className: `rope-side rope-${name}` });
      box.append(Object.assign(document.createElement("span"), { className: "rope-side-name", textContent: `${name} side` }));
      if (rows * columns === 1) {
        box.append(Object.assign(document.createElement("span"), { className: "rope-value", textContent: complexText(entries[0], real) }));
        return box;
      }
      const table = document.createElement("table");
      table.setAttribute("aria-label", `${name} side`);
      for (let r = 0; r < rows; r++) {
        const row = table.insertRow();
        for (let c = 0; c < columns; c++) {
          const e = r * columns + c;
          row.insertCell().textContent = complexText(entries[e], real, 3);
          row.cells[c].classList.toggle("rope-off", Math.hypot(left[e][0] - right[e][0], left[e][1] - right[e][1]) > 1e-9);
        }
      }
      box.append(table);
      return box;
    };
    const sign = { "==": ["=", "≠"], "!=": ["≠", "="], "<=": ["≤", ">"], ">=": [">", "<"], "<": ["<", "≥"], ">": [">", "≤"] }[step.relation];
    const middle = Object.assign(document.createElement("span"), { className: `rope-relation ${fits ? "rope-fits" : "rope-off"}`, textContent: sign[fits ? 0 : 1] });
    panel.replaceChildren(side("left", left), middle, side("right", right));
  }

  // a link to a card opens its step
  const linked = steps.findIndex(({ anchor }) => `#${anchor}` === decodeURIComponent(document.location?.hash ?? ""));
  if (linked >= 0) fig.set({ step: labels[linked] });

  fig.showMe(async () => {
    const step = now();
    fig.set({ variant: AS_PRINTED });
    const both = [["m", "n"], ["i", "j"]].find((pair) => pair.every((name) => step.own.includes(name))) ?? step.own.slice(0, 1);
    const room = both.length > 1 ? 12 : 1.5;
    const from = Object.fromEntries(both.map((name) => [`at_${name}`, fig.traits[`at_${name}`]]));
    const to = Object.fromEntries(Object.entries(from).map(([name, at]) => [name, Number.isInteger(at) ? at + room : at > 0.5 ? at - 0.4 : at + 0.4]));
    await fig.glide(to, 2600);
    await fig.pause(500);
    for (const variant of variants(step).slice(1)) {
      fig.set({ variant });
      await fig.pause(1500);
    }
    fig.set({ variant: AS_PRINTED });
    await fig.glide(from, 1500);
  });
});

/** "m = **5**", "q = **1.20 + 0.50 i**": the settings in words; two channels are one number. */
export function spoken(names, values) {
  const letter = (name) => LETTERS[name] ?? name;
  return names.flatMap((name) => {
    const [, base, part] = name.match(/^(.+)_([xy])$/) ?? [];
    if (!base) return [`${letter(name)} = **${num(values[name], Number.isInteger(values[name]) ? 0 : 2)}**`];
    if (part === "y") return [];
    return [`${base} = **${complexText([values[name], values[`${base}_y`] ?? 0], false, 2)}**`];
  });
}

/** Show the sliders of these variables and hide the others, in the box around the figure. */
function showControls(root, names) {
  for (const control of root.closest(".rope-box")?.querySelectorAll('[class*="rope-var-"]') ?? []) {
    const used = names.some((name) => control.classList.contains(`rope-var-${name}`));
    control.style.display = used ? "" : "none";
  }
}

function drawPlane(plot, { step, left, right, fits, values, scalar, real }) {
  const { ctx, width, height } = plot.clear();
  const { ink, muted, rule, accent, warm, q, k } = plot.colors;
  const ours = arrowsOf(left, step.shape);
  const theirs = arrowsOf(right, step.shape);
  const contents = [["q", q], ["k", k]]
    .map(([letter, color]) => {
      const pair = [["x", "y"], ["0", "1"]].find((ends) => ends.every((end) => step.own.includes(`${letter}_${end}`)));
      return pair && { letter, color, at: pair.map((end) => values[`${letter}_${end}`]) };
    })
    .filter(Boolean);
  const reach = Math.max(0.5, ...[...ours, ...theirs, ...contents.map(({ at }) => at)].map(([x, y]) => Math.hypot(x, y)));
  const radius = Math.min(width / 2, height / 2) - (scalar ? 16 : 24);
  const [cx, cy] = [width / 2, height / 2];
  const unit = radius / reach;
  const at = ([x, y]) => [cx + unit * x, cy - unit * y];

  ctx.lineWidth = 1;
  ctx.strokeStyle = rule;
  ctx.beginPath();
  ctx.moveTo(8, cy);
  ctx.lineTo(width - 8, cy);
  ctx.moveTo(cx, 6);
  ctx.lineTo(cx, height - 6);
  ctx.stroke();
  for (const r of ticks(0, reach, 2).filter((v) => v > 0)) {
    ctx.beginPath();
    ctx.arc(cx, cy, r * unit, 0, 2 * Math.PI);
    ctx.stroke();
    text(plot, num(r, r % 1 ? 1 : 0), cx + r * unit + 4, cy + 10, { size: 11.5 });
  }
  const complex = scalar;
  text(plot, complex ? "real" : "first channel", width - 8, cy - 10, { align: "right", size: 11.5 });
  const upper = complex ? (real ? "" : "imaginary") : "second channel";
  const crowded = ours.some((tip) => tip[0] >= 0 && at(tip)[0] < cx + 100 && at(tip)[1] < 40);
  text(plot, upper, crowded ? cx - 7 : cx + 7, 12, { align: crowded ? "right" : "left", size: 11.5 });

  for (const { letter, color, at: tip } of contents) {
    arrow(plot, cx, cy, ...at(tip), color, { width: 1.5, alpha: 0.75, dash: [3, 4] });
    const [x, y] = at(tip);
    const away = Math.atan2(tip[1], tip[0]);
    text(plot, letter, x + 10 * Math.cos(away), y - 10 * Math.sin(away), { color, size: 13, align: "center" });
  }
  ours.forEach((tip, c) => {
    const [x, y] = at(tip);
    band(ctx, cx, cy, x, y, accent, 11);
    const other = at(theirs[c]);
    if (!fits) {
      ctx.save();
      ctx.setLineDash([2, 4]);
      ctx.strokeStyle = warm;
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(...other);
      ctx.stroke();
      ctx.restore();
    }
    arrow(plot, cx, cy, ...other, fits ? ink : warm, { width: 2 });
    if (ours.length > 1) {
      const away = Math.atan2(tip[1], tip[0]);
      const side = Math.cos(away) < 0 ? -1 : 1; // beside a tip near the axis, and below its name
      const beside = x + side * Math.max(13, 18 * Math.abs(Math.cos(away)));
      const level = Math.min(Math.max(y - 14 * Math.sin(away), 28), height - 14);
      text(plot, `column ${c + 1}`, beside, level, { align: side < 0 ? "right" : "left", size: 12 });
    }
  });
  disc(plot, cx, cy, 3.5, muted);
  if (complex && real) text(plot, "both sides are real", cx - 7, height - 12, { align: "right", size: 11.5 });
}

function band(ctx, x0, y0, x1, y1, color, width) {
  ctx.save();
  ctx.globalAlpha = 0.38;
  ctx.strokeStyle = color;
  ctx.lineCap = "round";
  ctx.lineWidth = width;
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
  ctx.restore();
}
