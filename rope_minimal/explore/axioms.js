// Choose your axioms: which invertible M gives a score q^T M^(m-n) k with exactly these properties.
import { figure, axes, curve, disc, num, text } from "./kit.js";

const AXIOMS = ["same", "norm", "orientation", "diagonalisable"];
const WORDS = ["same f", "norm kept", "orientation kept", "diagonalisable"];
const ORDER = ["rope", "parity", "xpos", "mirrored-xpos", "jordan", "mirrored-jordan"];
const FIRST = -12; // distances shown
const LAST = 48;

/** What each family is called, its formula, and the formula in words. */
export const FAMILIES = {
  rope: {
    name: "RoPE",
    latex: "M^s = R_{s\\theta}",
    formula: "M turns by θ",
    words: "Every position turns by the same angle. The score is a cosine of the distance: it swings and never fades.",
    sliders: ["theta"],
  },
  parity: {
    name: "Parity reflection",
    latex: "M^s = S^s,\\quad S^2 = I",
    formula: "M mirrors",
    words: "Every position mirrors once more. Two mirrors cancel, so the score only knows odd distances from even ones. In a wider head the other planes may turn as in RoPE.",
    sliders: ["theta"],
  },
  xpos: {
    name: "xPos",
    latex: "M^s = \\zeta^s R_{s\\theta}",
    formula: "M turns by θ and scales by ζ",
    words: "Queries are scaled one way and keys the other way, so the score is a cosine times a power of the distance's factor ζ.",
    sliders: ["theta", "zeta"],
  },
  "mirrored-xpos": {
    name: "xPos with a mirror",
    latex: "M^s = \\zeta^s S^s,\\quad S^2 = I",
    formula: "M mirrors and scales by ζ",
    words: "Odd distances from even ones, and a factor for every step.",
    sliders: ["theta", "zeta"],
  },
  jordan: {
    name: "Jordan block",
    latex: "M^s = \\begin{pmatrix} \\zeta^s R_{s\\theta} & s\\,\\zeta^{s-1} R_{(s-1)\\theta} \\\\ 0 & \\zeta^s R_{s\\theta} \\end{pmatrix}",
    formula: "M turns, scales, and adds one plane to another",
    words: "The distance itself enters the score, as a factor: s times a turn. With θ = 0 and ζ = 1 it is s times a product of contents: a linear bias, as in ALiBi, where that product is constant.",
    sliders: ["theta", "zeta"],
  },
  "mirrored-jordan": {
    name: "Jordan block with a mirror",
    latex: "M^s = \\begin{pmatrix} \\zeta^s & s\\,\\zeta^{s-1} & \\\\ & \\zeta^s & \\\\ & & (-1)^s \\end{pmatrix}",
    formula: "a linear bias beside a mirrored channel",
    words: "It counts, and it tells odd from even. It takes three channels: in one plane, a matrix that mirrors is always diagonalisable.",
    sliders: ["zeta"],
  },
};

/** The family's name where the sliders stand: at some settings it is a simpler one. */
export function title(kind, theta, zeta) {
  if (kind === "none") return "None";
  const still = Math.abs(zeta - 1) < 1e-9; // a slider's steps add up to almost 1
  if (kind === "rope" && theta === 0) return "No encoding at all: RoPE with θ = 0";
  if (kind === "xpos" && still) return "RoPE again: with ζ = 1 the norm is kept";
  if (kind === "mirrored-xpos" && still) return "The parity reflection again: with ζ = 1 the norm is kept";
  if (kind === "jordan" && theta === 0) return still ? "Linear bias" : `Linear bias with a ${zeta < 1 ? "decay" : "growth"}`;
  return FAMILIES[kind].name;
}

/** M as rows, for a family at a turn and a factor per position. */
export function matrix(kind, theta, zeta) {
  const [c, s] = [Math.cos(theta), Math.sin(theta)];
  const scaled = (rows, factor) => rows.map((row) => row.map((v) => factor * v));
  const turn = [[c, -s], [s, c]];
  const mirror = [[-c, -s], [-s, c]];
  if (kind === "rope") return turn;
  if (kind === "parity") return mirror;
  if (kind === "xpos") return scaled(turn, zeta);
  if (kind === "mirrored-xpos") return scaled(mirror, zeta);
  if (kind === "mirrored-jordan") return [[zeta, 1, 0], [0, zeta, 0], [0, 0, -1]];
  const [a, b] = scaled(turn, zeta);
  return [[...a, 1, 0], [...b, 0, 1], [0, 0, ...a], [0, 0, ...b]];
}

const product = (a, b) => a.map((row) => b[0].map((_, j) => row.reduce((sum, v, i) => sum + v * b[i][j], 0)));

/** The matrix to a whole power, also a negative one: in closed form, so that no rounding piles up. */
export function power(kind, theta, zeta, s) {
  if (kind === "rope" || kind === "xpos") return matrix("xpos", s * theta, (kind === "rope" ? 1 : zeta) ** s);
  const odd = Math.abs(s) % 2;
  if (kind === "parity" || kind === "mirrored-xpos") {
    const size = (kind === "parity" ? 1 : zeta) ** s;
    return odd ? matrix("mirrored-xpos", theta, size) : [[size, 0], [0, size]];
  }
  const corner = s * zeta ** (s - 1);
  if (kind === "mirrored-jordan") return [[zeta ** s, corner, 0], [0, zeta ** s, 0], [0, 0, odd ? -1 : 1]];
  const [a, b] = matrix("xpos", s * theta, zeta ** s);
  const [u, v] = matrix("xpos", (s - 1) * theta, corner);
  return [[...a, ...u], [...b, ...v], [0, 0, ...a], [0, 0, ...b]];
}

// One query and one key for every width. In a Jordan block the first half of q meets the corner.
export const QUERY = { 2: [0.95, 0.3], 3: [-0.06, 0.8, 0.35], 4: [-0.06, 0, 0.8, 0] };
export const KEY = { 2: [0.9, -0.1], 3: [0, 0.9, 0.7], 4: [0, 0, 1, 0.15] };

/** The score q^T M^s k at a distance s. */
export function score(kind, theta, zeta, s) {
  const rows = power(kind, theta, zeta, s);
  const key = KEY[rows.length];
  return QUERY[rows.length].reduce((sum, q, r) => sum + q * rows[r].reduce((part, v, c) => part + v * key[c], 0), 0);
}

/** Where the key's arrow is after s steps: the first two channels. */
export function orbit(kind, theta, zeta, s) {
  const rows = power(kind, theta, zeta, s);
  return rows.slice(0, 2).map((row) => row.reduce((sum, v, c) => sum + v * KEY[rows.length][c], 0));
}

/** The family of a state, and the families that have all its properties and maybe more. */
export function lookUp(families, state) {
  const same = (a, b) => a.every((v, i) => v === b[i]);
  const here = families.find(({ axioms }) => same(axioms, state));
  const fits = ({ axioms, kind }) => kind !== "none" && state.every((wanted, i) => !wanted || axioms[i]);
  return { ...here, atLeast: ORDER.filter((kind) => families.some((f) => f.kind === kind && fits(f))) };
}

/** Why a state is empty, in one sentence; null when it is not. */
export function conflict([same, norm, , diagonalisable]) {
  if (same && !norm) return ["same f", "norm changed", "The same f for query and key keeps the norm: you cannot have the one without the other."];
  if (norm && !same) return ["norm kept", "different f", "If the norm is kept, query and key are treated alike: you cannot have the one without the other."];
  if (norm && !diagonalisable) return ["norm kept", "not diagonalisable", "A matrix that is not diagonalisable makes some arrow longer and longer, so the norm is not kept."];
  return null;
}

export default figure((fig) => {
  const families = fig.model.get("_families") ?? [];
  const result = fig.element("div", { className: "rope-result" });
  const name = Object.assign(document.createElement("p"), { className: "rope-family" });
  const formula = Object.assign(document.createElement("div"), { className: "rope-statement" });
  const words = Object.assign(document.createElement("p"), { className: "rope-words" });
  result.append(name, formula, words);
  const plot = fig.canvas({
    label: "On the left the path of one arrow under the powers of M, on the right the score against the distance",
    height: (width) => (width < 520 ? 420 : 250),
  });
  const proof = fig.element("p", { className: "rope-certificate" });
  const others = fig.element("div", { className: "rope-variants" });
  others.setAttribute("role", "group");
  others.setAttribute("aria-label", "The six families; press one to see it");

  const buttons = ORDER.map((kind) => {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "rope-chip", textContent: FAMILIES[kind].name });
    button.addEventListener("click", () => go(kind));
    others.append(button);
    return button;
  });
  const stateOf = (kind) => families.find((family) => family.kind === kind)?.axioms;
  const go = (kind) => fig.set(Object.fromEntries(AXIOMS.map((axiom, i) => [axiom, stateOf(kind)[i]])));

  fig.draw(() => {
    const { theta, zeta } = fig.traits;
    const state = AXIOMS.map((axiom) => fig.traits[axiom]);
    const { kind, certificate, anchor, latex, atLeast } = lookUp(families, state);
    if (!kind) return;
    const family = FAMILIES[kind];
    const clash = conflict(state);
    Object.assign(fig.root.dataset, { kind, state: state.map(Number).join("") });
    result.classList.toggle("rope-empty", kind === "none");
    name.textContent = title(kind, theta, zeta);
    words.textContent = family?.words ?? `${clash[0]} + ${clash[1]}: ${clash[2]}`;
    fig.formula(formula, family?.latex ?? latex);
    for (const control of fig.root.closest(".rope-box")?.querySelectorAll('[class*="rope-var-"]') ?? []) {
      const used = family?.sliders.some((slider) => control.classList.contains(`rope-var-${slider}`));
      control.style.display = used ? "" : "none";
    }
    const link = anchor ? Object.assign(document.createElement("a"), { href: `#${anchor}`, textContent: "See the card." }) : "";
    proof.replaceChildren(
      Object.assign(document.createElement("b"), { textContent: kind === "none" ? "Proof of impossibility. " : "Certificate. " }),
      `${certificate} `,
      link,
    );
    buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", String(ORDER[i] === kind));
      button.classList.toggle("rope-also", ORDER[i] !== kind && atLeast.includes(ORDER[i]));
    });

    const off = WORDS.filter((_, i) => !state[i]);
    const on = WORDS.filter((_, i) => state[i]);
    const wish = `With ${on.length ? on.join(", ") : "none of the four"}${off.length && on.length ? `, but not ${off.join(", not ")}` : ""}: `;
    if (kind === "none") {
      drawNothing(plot, clash);
      fig.say(
        `${wish}**no relative encoding**. If you only stop asking for what is not ticked, you still get ${list(atLeast)}.`,
      );
    } else {
      drawFamily(plot, kind, theta, zeta);
      const at = (s) => num(score(kind, theta, zeta, s), 3);
      fig.say(
        `${wish}**${FAMILIES[kind].name}**. Score at distance 0: **${at(0)}**, 1: **${at(1)}**, 2: **${at(2)}**, 20: **${at(20)}**, ${LAST}: **${at(LAST)}**.`,
      );
    }
  });

  function list(kinds) {
    const names = kinds.map((kind) => FAMILIES[kind].name);
    return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
  }

  fig.showMe(async () => {
    for (const kind of ORDER) {
      go(kind);
      await fig.pause(2200);
    }
    go("rope");
  });
  fig.notice(
    "Ticked means it has the property, not ticked means it lacks it. A chip with a line under it also has everything you ticked. Always assumed: the encoding is linear, its score is relative, and position 0 changes nothing; then the score is qᵀ Mˢ k with one invertible matrix M and s = m − n.",
  );
});

function drawNothing(plot, [first, second]) {
  const { width, height } = plot.clear();
  const { muted, warm } = plot.colors;
  text(plot, "∅", width / 2, height / 2 - 26, { align: "center", size: 64, color: warm, halo: false });
  text(plot, `${first} and ${second}: no such matrix`, width / 2, height / 2 + 36, { align: "center", size: 14, color: muted, halo: false });
}

function drawFamily(plot, kind, theta, zeta) {
  const { width, height } = plot.clear();
  const narrow = width < 520;
  const side = narrow ? Math.min(width, 190) : Math.min(220, height);
  drawOrbit(plot, kind, theta, zeta, { x: narrow ? (width - side) / 2 : 0, y: 0, side });
  drawScores(plot, kind, theta, zeta, narrow ? { left: 46, top: side + 30, right: 12 } : { left: side + 60, top: 20, right: 12 });
}

function drawOrbit(plot, kind, theta, zeta, { x, y, side }) {
  const { ctx } = plot;
  const { accent, muted, rule, k } = plot.colors;
  const points = Array.from({ length: 25 }, (_, s) => orbit(kind, theta, zeta, s));
  const reach = Math.max(...points.map((p) => Math.hypot(...p)));
  const [cx, cy] = [x + side / 2, y + side / 2 + 8];
  const unit = (side / 2 - 18) / (reach || 1);
  const at = ([a, b]) => [cx + unit * a, cy - unit * b];
  ctx.strokeStyle = rule;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(cx - side / 2 + 8, cy);
  ctx.lineTo(cx + side / 2 - 8, cy);
  ctx.moveTo(cx, cy - side / 2 + 14);
  ctx.lineTo(cx, cy + side / 2 - 12);
  ctx.stroke();
  ctx.beginPath();
  ctx.arc(cx, cy, unit * Math.hypot(...points[points.findIndex((p) => Math.hypot(...p) > 0)]), 0, 2 * Math.PI);
  ctx.stroke();
  curve(plot, points.map((p) => at(p)[0]), points.map((p) => at(p)[1]), accent, { width: 1, alpha: 0.45 });
  points.forEach((p, s) => {
    ctx.globalAlpha = 1 - 0.03 * s;
    disc(plot, ...at(p), s ? 3 : 5, s ? accent : k);
  });
  ctx.globalAlpha = 1;
  text(plot, "Mˢk, s = 0 … 24", cx, y + 6, { align: "center", size: 11.5, color: muted });
}

function drawScores(plot, kind, theta, zeta, box) {
  const { ctx, width } = plot;
  const { accent, muted, rule } = plot.colors;
  const distances = Array.from({ length: LAST - FIRST + 1 }, (_, i) => FIRST + i);
  const scores = distances.map((s) => score(kind, theta, zeta, s));
  const seen = scores.filter((_, i) => distances[i] >= 0);
  const [low, high] = [Math.min(0, ...seen), Math.max(0, ...seen)];
  const pad = Math.max(0.12 * (high - low), 0.1);
  const at = axes(plot, {
    x: [FIRST - 1, LAST + 1],
    y: [low - pad, high + pad],
    xLabel: "distance s = m − n (tokens)",
    box: { bottom: 38, ...box },
    xTicks: width < 520 ? [0, 20, 40] : [-10, 0, 10, 20, 30, 40],
  });
  const { x0, x1, y0, y1 } = at.box;
  ctx.fillStyle = rule;
  ctx.globalAlpha = 0.45;
  ctx.fillRect(x0, y0, at.x(0) - x0, y1 - y0);
  ctx.globalAlpha = 1;
  text(plot, "score qᵀMˢk", x1, y0 - 8, { align: "right", size: 11.5, halo: false });
  text(plot, "key ahead", (x0 + at.x(0)) / 2, y0 + 9, { align: "center", size: 11, halo: false });
  ctx.save();
  ctx.beginPath();
  ctx.rect(x0, y0, x1 - x0, y1 - y0);
  ctx.clip();
  ctx.strokeStyle = muted;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(x0, at.y(0));
  ctx.lineTo(x1, at.y(0));
  ctx.stroke();
  curve(plot, distances.map(at.x), scores.map(at.y), accent, { width: 1.25, alpha: 0.5 });
  scores.forEach((value, i) => disc(plot, at.x(distances[i]), at.y(value), 2.6, accent));
  ctx.restore();
}
