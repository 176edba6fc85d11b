// The complete list: which invertible M give a score q^T M^(m-n) k, and which are left if some are ruled out.
import { make, setRich } from "./kit/dom.js";
import { axes, curve, disc, level, scale, text } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { num, percent, TURN } from "./kit/numbers.js";

const FREEST = "the freest";
const AXIOMS = ["rule", "circle", "diagonalisable", "orientation"];
/** What can be ruled out: a switch's words, plain ones, a card's. What is left then has the axiom of that place. */
const OUT = [
  ["unlike rules", "queries unlike keys", "unlike rules"],
  ["growth or decay", "waves swell or fade", "growth"],
  ["counting", "distance is a factor", "counting"],
  ["mirrors", "odd and even differ", "mirror"],
];
const FIRST = -12; // distances shown
const LAST = 48;
const DISTANCES = Array.from({ length: LAST - FIRST + 1 }, (_, i) => FIRST + i);
const NARROW = 520; // pixels
const ODD = "odd from even distances";

/** The families, freest last: name, formula, and the sliders that they have. */
export const FAMILIES = {
  rope: { name: "RoPE", latex: "M^s = R_{sθ}", sliders: ["theta"] },
  "rope-mirror": { name: "RoPE with a mirror", latex: "M^s = F^s,\\quad F^2 = I", sliders: [] },
  oblique: { name: "Oblique RoPE", latex: "M^s = S\\,R_{sθ}\\,S^{-1}", sliders: ["theta"] },
  "oblique-mirror": {
    name: "Oblique mirror",
    latex: "M^s = S\\,F^s\\,S^{-1},\\quad F^2 = I",
    sliders: [],
  },
  growth: { name: "Growth or decay", latex: "M^s = ζ^s R_{sθ}", sliders: ["theta", "zeta"] },
  "growth-mirror": { name: "Growth, mirror", latex: "M^s = ζ^s F^s,\\quad F^2 = I", sliders: ["zeta"] },
  counting: {
    name: "Counting",
    latex: "M^s = \\begin{pmatrix} R_{sθ} & s\\,R_{(s-1)θ} \\\\ 0 & R_{sθ} \\end{pmatrix}",
    sliders: ["theta"],
  },
  "counting-mirror": {
    name: "Counting, mirror",
    latex: "M^s = \\begin{pmatrix} 1 & s & \\\\ & 1 & \\\\ & & (-1)^s \\end{pmatrix}",
    sliders: [],
  },
  "counting-growth": {
    name: "Counting, growth",
    latex: "M^s = \\begin{pmatrix} ζ^s R_{sθ} & s\\,ζ^{s-1} R_{(s-1)θ} \\\\ 0 & ζ^s R_{sθ} \\end{pmatrix}",
    sliders: ["theta", "zeta"],
  },
  "counting-growth-mirror": {
    name: "All three at once",
    latex: "M^s = \\begin{pmatrix} ζ^s & s\\,ζ^{s-1} & \\\\ & ζ^s & \\\\ & & (-1)^s \\end{pmatrix}",
    sliders: ["zeta"],
  },
};
const ORDER = Object.keys(FAMILIES);

const stillAt = (zeta) => Math.abs(zeta - 1) < 1e-9; // a slider's steps add up to almost 1
/** A slider's angle; its last stop but one is shown as 3.14, too. */
const angleOf = (theta) => (Math.abs(theta - Math.PI) < 0.005 ? Math.PI : theta);

/** The family's name where the sliders stand: at some settings it is a simpler one. */
export function title(kind, theta, zeta) {
  if (kind.includes("growth") && stillAt(zeta)) {
    const simpler = kind.replace("counting-growth", "counting").replace("growth", "rope");
    return `ζ = 1: ${title(simpler, theta, zeta)}`;
  }
  if ((kind === "rope" || kind === "oblique") && theta === 0) return "No encoding at all: a turn by θ = 0";
  if ((kind === "rope" || kind === "oblique") && angleOf(theta) === Math.PI) return "Half a turn: odd and even only";
  if (kind === "counting" && theta === 0) return "Linear bias";
  return FAMILIES[kind].name;
}

/** What ζ makes of a wave over the distances shown, or of a part that counts. */
function fate(kind, zeta) {
  const counts = kind.startsWith("counting");
  const size = zeta ** (counts ? LAST - 1 : LAST);
  const shown = num(size, size < 0.1 || Math.abs(size - 1) < 0.005 ? 4 : size < 20 ? 2 : 0);
  if (counts) return `ζ takes what counts times **${shown}** at distance ${LAST}.`;
  const times = size < 1.005 ? "under **1.01**" : `**${num(size, size < 1.1 ? 2 : size < 20 ? 1 : 0)}**`;
  if (size > 1) return `ζ > 1 grows it: ${times} times as high at distance ${LAST}.`;
  return `ζ < 1 fades it: **${percent(size, size < 0.1 ? 2 : 0)}** of it is left at distance ${LAST}.`;
}

/** How long a wave is; near two tokens a second digit distinguishes it from an alternation. */
const long = (theta) => num(TURN / theta, TURN / theta < 2.5 ? 2 : 1);

/** What the score does where the sliders stand: two lines on a phone. */
export function meaning(kind, theta, zeta) {
  const [still, half] = [theta === 0, angleOf(theta) === Math.PI];
  const grows = kind.includes("growth") && !stillAt(zeta);
  const size = grows ? ` ${fate(kind, zeta)}` : "";
  const wave = `a wave of **${long(theta)}** tokens`;
  if (kind === "counting-mirror") return "A linear bias, and beside it a channel that changes its sign.";
  if (kind === "counting-growth-mirror") return `It counts, and tells ${ODD}.${size}`;
  if (kind === "oblique-mirror") return `A reflection along an oblique direction: the score tells ${ODD}.`;
  if (kind === "rope-mirror") return `A mirror each step tells ${ODD}.`;
  if (kind === "growth-mirror") return `The score tells ${ODD}.${size}`;
  if (kind.startsWith("counting")) {
    if (!still) return `${half ? "A part of changing sign" : `A${wave.slice(1)}`} has the distance as a factor.${size}`;
    if (grows) return `A part of the score is the distance, times contents.${size}`;
    return "The score is linear in the distance: a product of contents, plus s times another, in ALiBi a constant.";
  }
  if (still) {
    if (grows) return `Nothing turns: the score is ζˢ times contents.${size}`;
    return "Nothing turns: the score is the same at every distance, so it says nothing of positions.";
  }
  if (half) {
    if (grows) return `The score changes its sign at every step.${size}`;
    return `The score changes its sign at every step: it tells ${ODD}${kind === "rope" ? ", as a mirror does" : ""}.`;
  }
  if (grows) return `The score is ${wave}, as in xPos.${size}`;
  const high = TURN / theta < 2.5 ? "always as high, though tokens seldom meet its crests" : "always as high";
  if (kind === "oblique") return `RoPE, once projections absorb S: the score is ${wave}, ${high}.`;
  return `Each position turns by the same angle; the score is ${wave}, ${high}.`;
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

const MIRROR_AT = 0.3; // radians, of the direction that a mirror reverses

/** The matrix to a whole power, also a negative one: in closed form, so that no rounding piles up. */
export function power(kind, angle, zeta, s) {
  const theta = angleOf(angle);
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
  const [c, t] = [Math.cos(MIRROR_AT), Math.sin(MIRROR_AT)];
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

/** What holds if these properties are required: one rule brings two others with it. */
export const closure = ([rule, circle, diagonalisable, orientation]) => [
  rule,
  circle || rule,
  diagonalisable || rule,
  orientation,
];

/** The freest family that has all that is required, why it has more than that, and all families that remain. */
export function lookUp(families, required) {
  const same = (a, b) => a.every((v, i) => v === b[i]);
  const at = (state) => families.find(({ axioms }) => same(axioms, state));
  const state = closure(required);
  const fits = ({ axioms, kind }) => kind !== "none" && state.every((wanted, i) => !wanted || axioms[i]);
  const remain = ORDER.filter((kind) => families.some((family) => family.kind === kind && fits(family)));
  return { ...at(state), forced: same(state, required) ? null : at(required), remain };
}

/** Why a family is out: what of the ruled out things it has, in words. */
export const reasons = (families, kind, required) => {
  const own = families.find((family) => family.kind === kind)?.axioms ?? required;
  return OUT.filter((_, i) => required[i] && !own[i]).map(([, , why]) => why);
};

const list = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]);

/** What is said: how many of the ten families are left, and some scores of the one drawn large. */
export function words(required, kind, theta, zeta, remain) {
  const out = OUT.filter((_, i) => required[i]).map(([what]) => `“${what}”`);
  const many = `**${remain.length} of ${ORDER.length}**`;
  const answer = !out.length
    ? `Nothing is ruled out: all **${ORDER.length}** are left.`
    : remain.length === 1
      ? `Without ${list(out)}, only **${FAMILIES[remain[0]].name}** is left.`
      : `Without ${list(out)}, ${many} are left. Rule out one more.`;
  const scores = [0, 1, 2, 20, LAST].map((s) => `${s}: ${num(score(kind, theta, zeta, s), 3)}`);
  return `${answer}\n${FAMILIES[kind].name}: score at distance ${scores.join(", ")}.`;
}

const NOTICE =
  "M in the score qᵀ Mˢ k is orthogonal where one rule serves queries and keys; without growth its eigenvalues have " +
  "size 1, without counting it is diagonalisable, without mirrors its determinant is above 0. The freest of those " +
  "left is drawn large, or the one that you press. In a wider head other planes may turn beside a mirror. Growth scales " +
  "queries one way and keys the other. Counting with a mirror takes three channels: in one plane, a matrix with a " +
  "negative determinant has two eigenvalues and is diagonalisable. An oblique basis is RoPE, once the query projection " +
  "has absorbed Sᵀ and the key projection S⁻¹.";

export default figure((fig) => {
  const families = fig.model.get("_families") ?? [];
  const boxes = AXIOMS.map((axiom) =>
    make("input", { type: "checkbox", onchange: ({ target }) => fig.set({ [axiom]: target.checked }) }),
  );
  const told = OUT.map(([, plain]) => make("small", {}, plain));
  const ticks = boxes.map((box, i) => make("label", {}, box, make("span", {}, OUT[i][0], told[i])));
  const chosen = { className: "rope-require" };
  const switches = fig.element("fieldset", chosen, make("legend", {}, "Rule out"), ...ticks);
  switches.addEventListener("keydown", (event) => event.stopPropagation()); // no command to the notebook
  for (const axiom of AXIOMS) fig.whenChanged(axiom, () => fig.set({ large: FREEST }));

  const label = { role: "group", "aria-label": "The ten encodings; press one to see it large" };
  fig.element("p", { className: "rope-help" }, "Score over distance");
  const wall = fig.element("div", { className: "rope-kinds", ...label });
  const cards = ORDER.map((kind) => {
    const curve = fig.canvas({ label: "", height: 40 });
    curve.canvas.setAttribute("aria-hidden", "true");
    const why = make("small");
    const chip = { type: "button", className: "rope-kind", onclick: () => fig.set({ large: kind }) };
    const button = make("button", chip, make("span", {}, FAMILIES[kind].name), curve.canvas, why);
    wall.append(button);
    return { kind, curve, why, button };
  });

  const name = fig.element("p", { className: "rope-family" });
  const plot = fig.canvas({
    label: "On the left the path of one arrow under the powers of M, on the right the score against the distance",
    height: (width) => (width < NARROW ? 160 : 190),
  });
  const explained = fig.element("p", { className: "rope-words" });
  const formula = make("p", { className: "rope-statement" });
  const proof = make("p", { className: "rope-certificate" });
  fig.root.querySelector(".rope-notes").append(formula, proof);

  fig.draw(() => {
    const { theta, zeta, large } = fig.traits;
    const required = AXIOMS.map((axiom) => fig.traits[axiom]);
    const { kind: freest, forced, remain } = lookUp(families, required);
    const kind = large === FREEST ? freest : large;
    const { certificate } = families.find((family) => family.kind === kind) ?? {};
    if (!certificate) return;
    Object.assign(fig.root.dataset, { kind, state: required.map(Number).join("") });
    boxes.forEach((box, i) => (box.checked = required[i]));
    told.forEach((node, i) => {
      const gone = required[0] && (i === 1 || i === 2);
      node.textContent = gone ? "gone already" : OUT[i][1];
      boxes[i].indeterminate = gone && !required[i];
      ticks[i].classList.toggle("rope-gone", gone);
    });
    name.textContent = title(kind, theta, zeta);
    setRich(explained, meaning(kind, theta, zeta));
    fig.formula(formula, FAMILIES[kind].latex);
    for (const [variable, slider] of Object.entries(fig.controls)) {
      slider.hidden = !FAMILIES[kind].sliders.includes(variable);
    }
    proof.replaceChildren(make("b", {}, "Certificate. "), `${certificate} `);
    if (forced) proof.append(`${forced.certificate} `);
    if (forced?.anchor) proof.append(make("a", { href: `#${forced.anchor}` }, "See the card."));
    for (const card of cards) {
      const out = !remain.includes(card.kind);
      card.button.setAttribute("aria-pressed", String(card.kind === kind));
      card.button.classList.toggle("rope-out", out);
      card.why.textContent = out ? reasons(families, card.kind, required).join(", ") : "";
      drawSmall(card.curve, card.kind, theta, zeta, out);
    }
    drawFamily(plot, kind, theta, zeta);
    fig.say(words(required, kind, theta, zeta, remain));
  });

  fig.showMe(async () => {
    const none = Object.fromEntries(AXIOMS.map((axiom) => [axiom, false]));
    fig.set(none);
    for (const axiom of ["circle", "diagonalisable", "orientation", "rule"]) {
      await fig.pause(1600);
      fig.set({ [axiom]: true });
    }
    await fig.pause(2400);
    fig.set({ ...none, rule: true, orientation: true });
  });
  fig.notice(NOTICE);
});

/** The score of a family against the distance, small: grey where it is shut out. */
function drawSmall(plot, kind, theta, zeta, out) {
  const { width, height } = plot.clear();
  const { accent, muted, rule } = plot.colors;
  const [x] = scale([FIRST, LAST], 2, width - 2);
  const [y] = scale(SCORES, height - 2, 2);
  level(plot, y(0), { x0: 0, x1: width }, rule, { width: 1 });
  const heights = DISTANCES.map((s) => y(score(kind, theta, zeta, s)));
  curve(plot, DISTANCES.map(x), heights, out ? muted : accent, { width: 1.25, alpha: out ? 0.35 : 1 });
}

// one scale for all settings of the sliders, or a slider would move the axis and not the curve
const SCORES = [-2.3, 1.5];
const REACH = { plane: 1.7, counting: 25 };

function drawFamily(plot, kind, theta, zeta) {
  const { width, height } = plot.clear();
  const narrow = width < NARROW;
  const side = narrow ? 116 : 160;
  const box = narrow ? { left: side + 34, top: 22, right: 6 } : { left: side + 60, top: 22, right: 12 };
  drawOrbit(plot, kind, theta, zeta, { x: 0, y: Math.max((height - side) / 2 - 16, 6), side });
  drawScores(plot, kind, theta, zeta, box);
}

function drawOrbit(plot, kind, theta, zeta, { x, y, side }) {
  const { ctx } = plot;
  const { accent, muted, rule, k } = plot.colors;
  const points = Array.from({ length: 25 }, (_, s) => orbit(kind, theta, zeta, s));
  const [cx, cy] = [x + side / 2, y + side / 2 + 8];
  const unit = (side / 2 - 10) / (kind.startsWith("counting") ? REACH.counting : REACH.plane);
  const at = ([a, b]) => [cx + unit * a, cy - unit * b];
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, side, side + 16);
  ctx.clip();
  level(plot, cy, { x0: x + 4, x1: x + side - 4 }, rule, { width: 1 });
  curve(plot, [cx, cx], [y + 12, y + side + 4], rule, { width: 1 });
  ctx.strokeStyle = rule;
  ctx.beginPath();
  ctx.arc(cx, cy, unit * Math.hypot(...points.find((p) => Math.hypot(...p) > 0)), 0, TURN);
  ctx.stroke();
  const [xs, ys] = [0, 1].map((axis) => points.map((p) => at(p)[axis]));
  curve(plot, xs, ys, accent, { width: 1, alpha: 0.45 });
  points.forEach((p, s) => {
    ctx.globalAlpha = 1 - 0.03 * s;
    disc(plot, ...at(p), s ? 3 : 5, s ? accent : k);
  });
  ctx.restore();
  text(plot, "key after 0 to 24 steps", cx, y + 4, { align: "center", size: 11, color: muted, halo: true });
}

function drawScores(plot, kind, theta, zeta, box) {
  const { ctx, width } = plot;
  const { accent, muted, rule } = plot.colors;
  const scores = DISTANCES.map((s) => score(kind, theta, zeta, s));
  const narrow = width < NARROW;
  const at = axes(plot, {
    x: [FIRST - 1, LAST + 1],
    y: SCORES,
    xLabel: narrow ? "distance s" : "distance s = m − n (tokens)",
    box: { bottom: 38, ...box },
    xTicks: narrow ? [0, 20, 40] : [-10, 0, 10, 20, 30, 40],
    yTicks: [-2, -1, 0, 1],
  });
  const { x0, x1, y0, y1 } = at.box;
  ctx.fillStyle = rule;
  ctx.globalAlpha = 0.45;
  ctx.fillRect(x0, y0, at.x(0) - x0, y1 - y0);
  ctx.globalAlpha = 1;
  text(plot, "score", x1, y0 - 9, { align: "right", size: 11.5 });
  text(plot, narrow ? "key ahead" : "key ahead of query", narrow ? x0 : (x0 + at.x(0)) / 2, y0 - 9, {
    align: narrow ? "left" : "center",
    size: 11,
  });
  ctx.save();
  ctx.beginPath();
  ctx.rect(x0, y0, x1 - x0, y1 - y0);
  ctx.clip();
  level(plot, at.y(0), at.box, muted, { width: 1 });
  curve(plot, DISTANCES.map(at.x), scores.map(at.y), accent, { width: 1.25, alpha: 0.5 });
  scores.forEach((value, i) => disc(plot, at.x(DISTANCES[i]), at.y(value), narrow ? 2 : 2.6, accent));
  ctx.restore();
}
