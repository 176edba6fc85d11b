// The complete list: which invertible M gives a score q^T M^(m-n) k with exactly these properties.
import { make } from "./kit/dom.js";
import { axes, curve, disc, level, text } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { num, TURN } from "./kit/numbers.js";

const AXIOMS = ["rule", "circle", "diagonalisable", "orientation"];
const PROPERTIES = ["one rule", "eigenvalues of size 1", "diagonalisable", "determinant > 0"];
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
const NARROW = 520; // pixels

const MIRROR =
  "Two mirrors cancel, so the score tells odd distances from even ones. In a wider head other planes may turn " +
  "beside it.";

/** What each family is called, its formula, and the formula in words. */
export const FAMILIES = {
  rope: {
    name: "RoPE",
    latex: "M^s = R_{sθ}",
    words:
      "Each position turns by the same angle. The score is a cosine of the distance: a wave that stays as " +
      "high as it is.",
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
    latex: "M^s = S\\,R_{sθ}\\,S^{-1}",
    words:
      "The arrow runs on an ellipse, and the score is a wave that stays as high as it is: RoPE, once the " +
      "query projection has absorbed Sᵀ and the key projection S⁻¹.",
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
    latex: "M^s = ζ^s R_{sθ}",
    words:
      "Queries are scaled one way and keys the other, as in xPos: the score is a cosine times the power ζˢ of " +
      "the distance.",
    sliders: ["theta", "zeta"],
  },
  "growth-mirror": {
    name: "Growth or decay with a mirror",
    latex: "M^s = ζ^s F^s,\\quad F^2 = I",
    words: "Odd distances are told from even ones, with a factor ζ for each step.",
    sliders: ["theta", "zeta"],
  },
  counting: {
    name: "Counts the distance",
    latex: "M^s = \\begin{pmatrix} R_{sθ} & s\\,R_{(s-1)θ} \\\\ 0 & R_{sθ} \\end{pmatrix}",
    words:
      "One plane is added to another at each step, so the distance itself is a factor. With θ = 0 it is s " +
      "times a product of contents: a linear bias, as in ALiBi, where that product is constant.",
    sliders: ["theta"],
  },
  "counting-mirror": {
    name: "Counts, beside a mirror",
    latex: "M^s = \\begin{pmatrix} 1 & s & \\\\ & 1 & \\\\ & & (-1)^s \\end{pmatrix}",
    words:
      "A linear bias beside a channel that changes its sign. It takes three channels: in one plane, a matrix " +
      "with a negative determinant has two eigenvalues and is diagonalisable.",
    sliders: [],
  },
  "counting-growth": {
    name: "Counts, and grows or decays",
    latex: "M^s = \\begin{pmatrix} ζ^s R_{sθ} & s\\,ζ^{s-1} R_{(s-1)θ} \\\\ 0 & ζ^s R_{sθ} \\end{pmatrix}",
    words: "The distance as a factor, times the power ζˢ of the distance.",
    sliders: ["theta", "zeta"],
  },
  "counting-growth-mirror": {
    name: "All three at once",
    latex: "M^s = \\begin{pmatrix} ζ^s & s\\,ζ^{s-1} & \\\\ & ζ^s & \\\\ & & (-1)^s \\end{pmatrix}",
    words: "It counts, it grows or decays, and it tells odd from even.",
    sliders: ["zeta"],
  },
};

/** The family's name where the sliders stand: at some settings it is a simpler one. */
export function title(kind, theta, zeta) {
  if (kind === "none") return "None";
  const still = Math.abs(zeta - 1) < 1e-9; // a slider's steps add up to almost 1
  if ((kind === "rope" || kind === "oblique") && theta === 0) return "No encoding at all: a turn by θ = 0";
  if (kind.includes("growth") && still) {
    const simpler = kind.replace("counting-growth", "counting").replace("growth", "rope");
    return `ζ = 1 neither grows nor decays: ${FAMILIES[simpler].name}`;
  }
  if (kind === "counting" && theta === 0) return "Linear bias";
  return FAMILIES[kind].name;
}

const scaled = (rows, factor) => rows.map((row) => row.map((v) => factor * v));
const turn = (angle) => [
  [Math.cos(angle), -Math.sin(angle)],
  [Math.sin(angle), Math.cos(angle)],
];
const product = (a, b) => a.map((row) => b[0].map((_, j) => row.reduce((sum, v, i) => sum + v * b[i][j], 0)));
// S, and its inverse
const SLANTED = [
  [1, 0.6],
  [0, 0.8],
];
const UPRIGHT = [
  [1, -0.75],
  [0, 1.25],
];

/** The matrix to a whole power, also a negative one: in closed form, so that no rounding piles up. */
export function power(kind, theta, zeta, s) {
  const factor = kind.includes("growth") ? zeta : 1;
  const [size, corner, odd] = [factor ** s, s * factor ** (s - 1), Math.abs(s) % 2];
  if (kind.startsWith("counting")) {
    if (kind.endsWith("mirror")) {
      return [
        [size, corner, 0],
        [0, size, 0],
        [0, 0, odd ? -1 : 1],
      ];
    }
    const [a, b] = scaled(turn(s * theta), size);
    const [u, v] = scaled(turn((s - 1) * theta), corner);
    return [
      [...a, ...u],
      [...b, ...v],
      [0, 0, ...a],
      [0, 0, ...b],
    ];
  }
  const [c, t] = [Math.cos(theta), Math.sin(theta)];
  const reflected = odd
    ? [
        [-c, -t],
        [-t, c],
      ]
    : [
        [1, 0],
        [0, 1],
      ];
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
  return [
    "one rule",
    lacking,
    "One rule for query and key makes M orthogonal, so its eigenvalues have size 1 and it is diagonalisable.",
  ];
}

const list = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]);

/** The caption: what is asked for, and which family answers; `atLeast` as lookUp gives it. */
export function words(state, kind, theta, zeta, atLeast) {
  const on = PROPERTIES.filter((_, i) => state[i]);
  const off = PROPERTIES.filter((_, i) => !state[i]);
  const without = off.length && on.length ? `, but not ${off.join(", not ")}` : "";
  const wish = `With ${on.length ? on.join(", ") : "none of the four"}${without}: `;
  if (kind === "none") {
    const left = list(atLeast.map((other) => FAMILIES[other].name));
    return `${wish}**no relative encoding**. If you only stop asking for what is not ticked, you still get ${left}.`;
  }
  const scores = [0, 1, 2, 20, LAST].map((s) => `${s}: **${num(score(kind, theta, zeta, s), 3)}**`);
  return `${wish}**${FAMILIES[kind].name}**. Score at distance ${scores.join(", ")}.`;
}

const NOTICE =
  "Ticked means that M has the property, not ticked that it lacks it. A chip with a line under it also has " +
  "everything you ticked. By the main theorem the score is qᵀ Mˢ k with one invertible matrix M and s = m − n, " +
  "and these four answers sort all of them. The path and the score are one example of each kind.";

export default figure((fig) => {
  const families = fig.model.get("_families") ?? [];
  const name = make("p", { className: "rope-family" });
  const formula = make("div", { className: "rope-statement" });
  const meaning = make("p", { className: "rope-words" });
  const result = fig.element("div", { className: "rope-result" }, name, formula, meaning);
  const plot = fig.canvas({
    label: "On the left the path of one arrow under the powers of M, on the right the score against the distance",
    height: (width) => (width < NARROW ? 420 : 250),
  });
  const proof = fig.element("p", { className: "rope-certificate" });
  const stateOf = (kind) => families.find((family) => family.kind === kind)?.axioms;
  const go = (kind) => fig.set(Object.fromEntries(AXIOMS.map((axiom, i) => [axiom, stateOf(kind)[i]])));
  const buttons = ORDER.map((kind) => {
    const chip = { type: "button", className: "rope-chip", onclick: () => go(kind) };
    return make("button", chip, FAMILIES[kind].name);
  });
  const label = { role: "group", "aria-label": "The ten families; press one to see it" };
  fig.element("div", { className: "rope-variants", ...label }, ...buttons);

  fig.draw(() => {
    const { theta, zeta } = fig.traits;
    const state = AXIOMS.map((axiom) => fig.traits[axiom]);
    const { kind, certificate, anchor, latex, atLeast } = lookUp(families, state);
    if (!kind) return;
    const none = kind === "none";
    const clash = conflict(state);
    Object.assign(fig.root.dataset, { kind, state: state.map(Number).join("") });
    result.classList.toggle("rope-empty", none);
    name.textContent = title(kind, theta, zeta);
    meaning.textContent = none ? clash[2] : FAMILIES[kind].words;
    fig.formula(formula, none ? latex : FAMILIES[kind].latex);
    showSliders(fig.root, none ? [] : FAMILIES[kind].sliders);
    proof.replaceChildren(
      make("b", {}, none ? "Proof of impossibility. " : "Certificate. "),
      `${certificate} `,
      anchor ? make("a", { href: `#${anchor}` }, "See the card.") : "",
    );
    buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", String(ORDER[i] === kind));
      button.classList.toggle("rope-also", ORDER[i] !== kind && atLeast.includes(ORDER[i]));
    });
    if (none) drawNothing(plot, clash);
    else drawFamily(plot, kind, theta, zeta);
    fig.say(words(state, kind, theta, zeta, atLeast));
  });

  fig.showMe(async () => {
    for (const kind of ORDER) {
      go(kind);
      await fig.pause(1600);
    }
    go("rope");
  });
  fig.notice(NOTICE);
});

/** Show the sliders of these variables and hide the others, in the box around the figure. */
function showSliders(root, names) {
  for (const control of root.closest(".rope-box")?.querySelectorAll('[class*="rope-var-"]') ?? []) {
    const used = names.some((name) => control.classList.contains(`rope-var-${name}`));
    control.style.display = used ? "" : "none";
  }
}

function drawNothing(plot, [first, second]) {
  const { width, height } = plot.clear();
  const { muted, warm } = plot.colors;
  text(plot, "∅", width / 2, height / 2 - 26, { align: "center", size: 64, color: warm });
  const below = { align: "center", size: 14, color: muted };
  text(plot, `${first} and ${second}: no such matrix`, width / 2, height / 2 + 36, below);
}

function drawFamily(plot, kind, theta, zeta) {
  const { width, height } = plot.clear();
  const narrow = width < NARROW;
  const side = narrow ? Math.min(width, 190) : Math.min(220, height);
  drawOrbit(plot, kind, theta, zeta, { x: narrow ? (width - side) / 2 : 0, y: 0, side });
  const box = narrow ? { left: 46, top: side + 30, right: 12 } : { left: side + 60, top: 20, right: 12 };
  drawScores(plot, kind, theta, zeta, box);
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
  ctx.arc(cx, cy, unit * Math.hypot(...points.find((p) => Math.hypot(...p) > 0)), 0, TURN);
  ctx.stroke();
  const [xs, ys] = [0, 1].map((axis) => points.map((p) => at(p)[axis]));
  curve(plot, xs, ys, accent, { width: 1, alpha: 0.45 });
  points.forEach((p, s) => {
    ctx.globalAlpha = 1 - 0.03 * s;
    disc(plot, ...at(p), s ? 3 : 5, s ? accent : k);
  });
  ctx.globalAlpha = 1;
  text(plot, "Mˢk, s = 0 … 24", cx, y + 6, { align: "center", size: 11.5, color: muted, halo: true });
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
    xTicks: width < NARROW ? [0, 20, 40] : [-10, 0, 10, 20, 30, 40],
  });
  const { x0, x1, y0, y1 } = at.box;
  ctx.fillStyle = rule;
  ctx.globalAlpha = 0.45;
  ctx.fillRect(x0, y0, at.x(0) - x0, y1 - y0);
  ctx.globalAlpha = 1;
  text(plot, "score qᵀMˢk", x1, y0 - 8, { align: "right", size: 11.5 });
  text(plot, "key ahead", (x0 + at.x(0)) / 2, y0 + 9, { align: "center", size: 11 });
  ctx.save();
  ctx.beginPath();
  ctx.rect(x0, y0, x1 - x0, y1 - y0);
  ctx.clip();
  level(plot, at.y(0), at.box, muted, { width: 1 });
  curve(plot, distances.map(at.x), scores.map(at.y), accent, { width: 1.25, alpha: 0.5 });
  scores.forEach((value, i) => disc(plot, at.x(distances[i]), at.y(value), 2.6, accent));
  ctx.restore();
}
