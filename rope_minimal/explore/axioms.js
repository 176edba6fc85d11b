// The complete list: which invertible M gives a score q^T M^(m-n) k with exactly these properties.
import { figure, axes, curve, disc, num, text } from "./kit.js";

const AXIOMS = ["rule", "circle", "diagonalisable", "orientation"];
const WORDS = ["one rule", "eigenvalues of size 1", "diagonalisable", "determinant > 0"];
const ORDER = [
  "rope",
  "rope-mirror",
  "oblique",
  "oblique-mirror",
  "growth",
  "growth-mirror",
  "counting",
  "counting-mirror",
  "counting-growth",
  "counting-growth-mirror",
];
const FIRST = -12; // distances shown
const LAST = 48;

const MIRROR = "Two mirrors cancel, so the score tells odd distances from even ones. In a wider head other planes may turn beside it.";

/** What each family is called, its formula, and the formula in words. */
export const FAMILIES = {
  rope: {
    name: "RoPE",
    latex: "M^s = R_{s\\theta}",
    words: "Each position turns by the same angle. The score is a cosine of the distance: a wave that stays as high as it is.",
    sliders: ["theta"],
  },
  "rope-mirror": {
    name: "RoPE with a mirror",
    latex: "M^s = F^s,\\quad F^2 = I",
    words: `Each position reflects once more. ${MIRROR}`,
    sliders: ["theta"],
  },
  oblique: {
    name: "RoPE in an oblique basis",
    latex: "M^s = S\\,R_{s\\theta}\\,S^{-1}",
    words: "The arrow runs on an ellipse, and the score is a wave that stays as high as it is: RoPE, once the query projection has absorbed Sᵀ and the key projection S⁻¹.",
    sliders: ["theta"],
  },
  "oblique-mirror": {
    name: "Oblique mirror",
    latex: "M^s = S\\,F^s\\,S^{-1},\\quad F^2 = I",
    words: `A reflection along an oblique direction. ${MIRROR}`,
    sliders: ["theta"],
  },
  growth: {
    name: "Growth or decay",
    latex: "M^s = \\zeta^s R_{s\\theta}",
    words: "Queries are scaled one way and keys the other, as in xPos: the score is a cosine times the power ζˢ of the distance.",
    sliders: ["theta", "zeta"],
  },
  "growth-mirror": {
    name: "Growth or decay with a mirror",
    latex: "M^s = \\zeta^s F^s,\\quad F^2 = I",
    words: "Odd distances are told from even ones, with a factor ζ for each step.",
    sliders: ["theta", "zeta"],
  },
  counting: {
    name: "Counts the distance",
    latex: "M^s = \\begin{pmatrix} R_{s\\theta} & s\\,R_{(s-1)\\theta} \\\\ 0 & R_{s\\theta} \\end{pmatrix}",
    words: "One plane is added to another at each step, so the distance itself is a factor. With θ = 0 it is s times a product of contents: a linear bias, as in ALiBi, where that product is constant.",
    sliders: ["theta"],
  },
  "counting-mirror": {
    name: "Counts, beside a mirror",
    latex: "M^s = \\begin{pmatrix} 1 & s & \\\\ & 1 & \\\\ & & (-1)^s \\end{pmatrix}",
    words: "A linear bias beside a channel that changes its sign. It takes three channels: in one plane, a matrix with a negative determinant has two eigenvalues and is diagonalisable.",
    sliders: [],
  },
  "counting-growth": {
    name: "Counts, and grows or decays",
    latex: "M^s = \\begin{pmatrix} \\zeta^s R_{s\\theta} & s\\,\\zeta^{s-1} R_{(s-1)\\theta} \\\\ 0 & \\zeta^s R_{s\\theta} \\end{pmatrix}",
    words: "The distance as a factor, times the power ζˢ of the distance.",
    sliders: ["theta", "zeta"],
  },
  "counting-growth-mirror": {
    name: "All three at once",
    latex: "M^s = \\begin{pmatrix} \\zeta^s & s\\,\\zeta^{s-1} & \\\\ & \\zeta^s & \\\\ & & (-1)^s \\end{pmatrix}",
    words: "It counts, it grows or decays, and it tells odd from even.",
    sliders: ["zeta"],
  },
};

/** The family's name where the sliders stand: at some settings it is a simpler one. */
export function title(kind, theta, zeta) {
  if (kind === "none") return "None";
  const still = Math.abs(zeta - 1) < 1e-9; // a slider's steps add up to almost 1
  if ((kind === "rope" || kind === "oblique") && theta === 0) return "No encoding at all: a turn by θ = 0";
  if (kind.includes("growth") && still) return `ζ = 1 neither grows nor decays: ${FAMILIES[kind.replace("counting-growth", "counting").replace("growth", "rope")].name}`;
  if (kind === "counting" && theta === 0) return "Linear bias";
  return FAMILIES[kind].name;
}

const scaled = (rows, factor) => rows.map((row) => row.map((v) => factor * v));
const turn = (angle) => [
  [Math.cos(angle), -Math.sin(angle)],
  [Math.sin(angle), Math.cos(angle)],
];
const product = (a, b) => a.map((row) => b[0].map((_, j) => row.reduce((sum, v, i) => sum + v * b[i][j], 0)));
const SLANTED = [[1, 0.6], [0, 0.8]]; // S, with its inverse
const UPRIGHT = [[1, -0.75], [0, 1.25]];

/** The matrix to a whole power, also a negative one: in closed form, so that no rounding piles up. */
export function power(kind, theta, zeta, s) {
  const factor = kind.includes("growth") ? zeta : 1;
  const [size, corner, odd] = [factor ** s, s * factor ** (s - 1), Math.abs(s) % 2];
  if (kind.startsWith("counting")) {
    if (kind.endsWith("mirror")) return [[size, corner, 0], [0, size, 0], [0, 0, odd ? -1 : 1]];
    const [a, b] = scaled(turn(s * theta), size);
    const [u, v] = scaled(turn((s - 1) * theta), corner);
    return [[...a, ...u], [...b, ...v], [0, 0, ...a], [0, 0, ...b]];
  }
  const [c, t] = [Math.cos(theta), Math.sin(theta)];
  const reflected = odd ? [[-c, -t], [-t, c]] : [[1, 0], [0, 1]];
  const rows = scaled(kind.endsWith("mirror") ? reflected : turn(s * theta), size);
  return kind.startsWith("oblique") ? product(product(SLANTED, rows), UPRIGHT) : rows;
}

/** M as rows, for a family at a turn and a factor per position. */
export const matrix = (kind, theta, zeta) => power(kind, theta, zeta, 1);

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
export function conflict([rule, circle, diagonalisable]) {
  if (!rule || (circle && diagonalisable)) return null;
  const lacking = circle ? "not diagonalisable" : "eigenvalues of other sizes";
  return ["one rule", lacking, "One rule for query and key makes M orthogonal, so its eigenvalues have size 1 and it is diagonalisable."];
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
  others.setAttribute("aria-label", "The ten families; press one to see it");

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
    words.textContent = family?.words ?? clash[2];
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
      await fig.pause(1600);
    }
    go("rope");
  });
  fig.notice(
    "Ticked means that M has the property, not ticked that it lacks it. A chip with a line under it also has everything you ticked. By the main theorem the score is qᵀ Mˢ k with one invertible matrix M and s = m − n, and these four answers sort all of them. The path and the score are one example of each kind.",
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
