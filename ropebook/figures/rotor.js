// Two words of a sentence, query and key: both arrows turn with their places, and the angle between
// them knows how far apart the words are, nothing else.
import { arrow, axes, curve, disc, text } from "./kit/draw.js";
import { figure } from "./kit/figure.js";
import { clamp, num, TURN } from "./kit/numbers.js";
import { shortWay } from "./rope.js";

const SENTENCE = "The cat lay in bed: it had a cold and no hat".split(" ");
const LAST = SENTENCE.length - 1; // the highest position, as in rotor.py
const SETTLE = 90; // ms in which the picture comes nearer to the traits by a factor of e

const radians = (degrees) => (degrees * TURN) / 360;

/** Two words apart by m - n: the angle they make, what is left of it the short way, and the score. */
export function apart(m, n, theta) {
  const words = Math.abs(m - n);
  const angle = words * theta;
  const turns = angle > 180 ? Math.round(angle / 360) : 0; // half a turn is its own short way
  const short = Math.abs(angle - 360 * turns);
  return { words, angle, turns, short, score: cosine(short) };
}

/** The cosine of an angle in degrees, exactly 0 where it is. */
const cosine = (degrees) => Math.round(1e9 * Math.cos(radians(degrees))) / 1e9;

/** The largest shift of both positions towards `by` that keeps both words in the sentence. */
export function shift(m, n, by) {
  return clamp(by, -Math.min(m, n), LAST - Math.max(m, n));
}

/** "4 × 15° = 60°", and beyond half a turn what is left of it: "8 × 50° = 360° + 40°". */
export function computation(m, n, theta) {
  const { words, angle, turns, short } = apart(m, n, theta);
  const over = `${num(360 * turns, 0)}° ${angle < 360 * turns ? "−" : "+"} ${short}°`;
  return `${words} × ${theta}° = ${turns ? over : `${angle}°`}`;
}

/** A score as it is said: what is not quite 1 is not rounded to it. */
const said = (score) => num(score, Math.abs(score) < 1 && Math.abs(score) >= 0.995 ? 4 : 2);

const count = (words) => (words === 1 ? "1 word" : `${words} words`);

/** The answer, and under it the numbers. */
export function words(m, n, theta) {
  const { words: far, angle, turns, short, score } = apart(m, n, theta);
  const degrees = turns ? `${num(angle, 0)}°, the short way **${short}°**,` : `**${short}°**`;
  const make = far === 1 ? "makes" : "make";
  const distance = far
    ? `**${count(far)}** ${make} ${degrees} and a score of **${said(score)}**, wherever they stand.`
    : "on one and the same word the arrows agree, **0°** and a score of **1.00**, wherever it stands.";
  const answer = theta
    ? `Only how far apart they are: ${distance}`
    : "Nothing: by **0°** a word no arrow turns, and every score is **1.00**.";
  const turned = (position) => `${position} × ${theta}° = **${num(position * theta, 0)}°**`;
  return (
    `${answer}\nQuery: ${turned(m)}. Key: ${turned(n)}. ` +
    `Both arrows have length 1, so the score is cos ${short}° = **${said(score)}**.`
  );
}

const LABEL =
  "A dial with two arrows, the query and the key, and the angle between them as a wedge; beside it the score as a " +
  "bar and as a curve over the distance of the two words";
const NOTICE = "Drag the bar: the wedge keeps its angle. Drag q or k alone, and it follows.";

export default figure((fig) => {
  const line = makeLine(fig);
  const plot = fig.canvas({ label: LABEL, height: (width) => (width < 480 ? 190 : width < 600 ? 220 : 250) });

  // The picture follows the traits, which are whole words, within a few frames.
  let shown = null;
  const follow = ({ m, n }) => {
    const now = performance.now();
    const part = shown && !fig.reducedMotion ? 1 - Math.exp(-Math.min(now - shown.at, 32) / SETTLE) : 1;
    const from = shown ?? { m, n };
    shown = { m: from.m + (m - from.m) * part, n: from.n + (n - from.n) * part, at: now };
    if (Math.abs(shown.m - m) + Math.abs(shown.n - n) > 0.005) fig.redraw();
    else Object.assign(shown, { m, n });
    return shown;
  };

  const both = fig.button("Move both", () => sweep());
  fig.draw(() => {
    const { m, n, theta } = fig.traits;
    both.disabled = Math.abs(m - n) === LAST; // the first word and the last: no place to go
    const at = follow({ m, n });
    plot.clear();
    const side = Math.min(plot.height - 20, 0.46 * plot.width);
    drawDial(plot, side, at, fig.traits);
    drawScore(plot, side, fig.traits, Math.abs(at.m - at.n));
    line.draw(at, { m, n });
    fig.say(words(m, n, theta));
  });

  const sweep = async () => {
    const { m, n } = fig.traits;
    const [up, down] = [shift(m, n, LAST), shift(m, n, -LAST)];
    const rest = () => fig.pause(fig.reducedMotion ? 800 : 200); // who sees jumps needs time for each
    await fig.glide({ m: m + up, n: n + up }, 1800);
    await rest();
    await fig.glide({ m: m + down, n: n + down }, 2200);
    await rest();
    await fig.glide({ m, n }, 700);
  };
  fig.showMe(async () => {
    await sweep();
    const { m, n } = fig.traits;
    await fig.pause(500);
    await fig.glide({ n: n === m ? LAST - m : m }, 1600); // the key alone
    await fig.pause(700);
    await fig.glide({ n }, 1600);
  });
  fig.notice(NOTICE);

  // on the first page it moves once by itself, unless a reader moves it already
  if (fig.model.get("plays") && !fig.reducedMotion) {
    const seen = new IntersectionObserver(
      (all) => {
        if (!all.at(-1).isIntersecting) return; // a busy machine tells of several moments at once
        seen.disconnect();
        setTimeout(() => fig.root.matches(":focus-within") || both.click(), 900);
      },
      { threshold: 0.9 },
    );
    seen.observe(plot.canvas);
  }
});

// ---- the line of words --------------------------------------------------------------------------

const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -LAST, End: LAST };

/** The sentence with the markers q and k under it and the bracket between them: all three are sliders. */
function makeLine(fig) {
  const make = (parent, className, properties, ...children) => {
    const node = document.createElement("div");
    Object.assign(node, { className }, properties);
    node.append(...children);
    parent.append(node);
    return node;
  };
  const strip = fig.element("div", { className: "rope-line" });
  const places = SENTENCE.map((word, position) => {
    const place = make(strip, "rope-place", {}, word);
    make(place, "rope-position", {}, String(position));
    return place;
  });

  /** A handle that moves by whole words; `moved` says which traits become what. */
  const handle = (className, name, moved) => {
    const node = make(strip, `rope-handle ${className}`, { tabIndex: 0, role: "slider", ariaLabel: name });
    const move = (start, by) => fig.set(moved(start, by));
    node.addEventListener("keydown", (event) => {
      if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation(); // or the notebook moves to another cell
      move(fig.traits, KEYS[event.key]);
    });
    let held = null;
    node.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      held = { x: event.clientX, ...fig.traits };
      node.setPointerCapture(event.pointerId);
    });
    node.addEventListener("pointermove", ({ clientX }) => {
      if (held) move(held, Math.round(((clientX - held.x) * SENTENCE.length) / strip.clientWidth));
    });
    node.addEventListener("lostpointercapture", () => {
      held = null;
    });
    return node;
  };
  const inside = (position) => clamp(position, 0, LAST);
  const both = handle("rope-both", "Both words", ({ m, n }, by) => {
    const step = shift(m, n, by);
    return { m: m + step, n: n + step };
  });
  const label = make(both, "rope-both-label", {});
  const markers = {
    k: handle("rope-k", "Key", ({ n }, by) => ({ n: inside(n + by) })),
    q: handle("rope-q", "Query", ({ m }, by) => ({ m: inside(m + by) })),
  };
  for (const [letter, node] of Object.entries(markers)) node.append(letter);

  const describe = (node, now, highest, said) =>
    Object.assign(node, { ariaValueNow: now, ariaValueMin: 0, ariaValueMax: highest, ariaValueText: said });
  const named = (position) => `word ${position}, ${SENTENCE[position].replace(":", "")}`;

  return {
    /** Put the handles where the picture stands, and name the words where they belong. */
    draw(at, { m, n }) {
      const percent = (position) => (100 * (position + 0.5)) / SENTENCE.length;
      const low = Math.min(at.m, at.n);
      markers.q.style.left = `${percent(at.m)}%`;
      markers.k.style.left = `${percent(at.n)}%`;
      both.style.left = `${percent(low)}%`;
      both.style.width = `${percent(Math.max(at.m, at.n)) - percent(low)}%`;
      label.textContent = `‹ ${count(Math.abs(m - n))} ›`;
      strip.classList.toggle("rope-same", m === n);
      for (const [position, place] of places.entries()) {
        place.classList.toggle("rope-of-q", position === Math.round(at.m));
        place.classList.toggle("rope-of-k", position === Math.round(at.n));
      }
      describe(markers.q, m, LAST, named(m));
      describe(markers.k, n, LAST, named(n));
      const apartBy = count(Math.abs(m - n));
      describe(
        both,
        Math.min(m, n),
        LAST - Math.abs(m - n),
        `query at ${named(m)}; key at ${named(n)}; ${apartBy} apart`,
      );
    },
  };
}

// ---- the picture --------------------------------------------------------------------------------

/** The dial: every word's place on the rim, the two arrows, and the wedge between them the short way. */
function drawDial(plot, side, at, { m, n, theta }) {
  const { ctx, colors } = plot;
  const radius = side / 2 - 16;
  const [cx, cy] = [side / 2 + 2, side / 2];
  const on = (angle, r) => [cx + r * Math.cos(angle), cy - r * Math.sin(angle)];
  const angleOf = (position) => radians(position * theta);

  ctx.lineWidth = 1;
  ctx.strokeStyle = colors.rule;
  ctx.beginPath();
  ctx.arc(cx, cy, radius, 0, TURN);
  ctx.stroke();
  const room = radians(theta) * (radius + 9) >= 15 && (LAST + 1) * theta <= 360;
  for (let position = LAST; position >= 0; position--) {
    disc(plot, ...on(angleOf(position), radius), 3, colors.muted);
    if (!room && position > 0) continue;
    const [ofQuery, ofKey] = [at.m, at.n].map((place) => Math.round(place) === position);
    const color = ofQuery ? colors.q : ofKey ? colors.k : colors.muted;
    const bold = ofQuery || ofKey;
    text(plot, String(position), ...on(angleOf(position), radius + 10), { align: "center", size: 11, color, bold });
  }

  const [query, key] = [angleOf(at.m), angleOf(at.n)];
  const seen = shortWay(query - key);
  const wedge = () => ctx.arc(cx, cy, 0.5 * radius, -key, -(key + seen), seen > 0);
  ctx.beginPath();
  ctx.moveTo(cx, cy);
  wedge();
  ctx.closePath();
  ctx.fillStyle = colors.accent;
  ctx.globalAlpha = 0.18;
  ctx.fill();
  ctx.globalAlpha = 1;
  ctx.beginPath();
  wedge();
  ctx.strokeStyle = colors.accent;
  ctx.lineWidth = 2;
  ctx.stroke();

  // one above the other where they agree; their letters stand outside the wedge
  arrow(plot, cx, cy, ...on(key, radius - 4), colors.k, { width: Math.abs(seen) < 0.03 ? 7 : 3 });
  arrow(plot, cx, cy, ...on(query, radius - 4), colors.q, { width: 3 });
  disc(plot, cx, cy, 4, colors.muted);
  const letter = (name, angle, way, color) => {
    const [x, y] = on(angle, 0.66 * radius);
    const [dx, dy] = [-12 * way * Math.sin(angle), -12 * way * Math.cos(angle)];
    text(plot, name, x + dx, y + dy, { color, bold: true, size: 15, align: "center", halo: true });
  };
  const way = seen < 0 ? -1 : 1;
  letter("q", query, way, colors.q);
  letter("k", key, -way, colors.k);
  const { accent: color } = colors;
  const written = { align: "center", bold: true, halo: true, color, size: 13 };
  if (2 * 0.7 * radius * Math.sin(Math.abs(seen) / 2) > 40) {
    const { short } = apart(m, n, theta);
    text(plot, `${short}°`, ...on(key + seen / 2, 0.7 * radius), written);
  }
  text(plot, computation(m, n, theta), cx, plot.height - 9, written);
}

/** The score as a bar, and over the distance of the words; `far` is the distance as the dial shows it. */
function drawScore(plot, side, { theta }, far) {
  const { ctx, colors } = plot;
  const wide = plot.width >= 480;
  const at = axes(plot, {
    x: [wide ? -1.7 : -3, LAST + 0.4],
    y: [-1, 1],
    xTicks: [0, 5, 10],
    yTicks: [-1, 0, 1],
    xLabel: "words apart",
    box: { left: side + (wide ? 46 : 28), top: 34, right: 6 },
  });
  const of = (distance) => cosine(distance * theta);
  const steps = Array.from({ length: 20 * LAST + 1 }, (_, i) => i / 20);
  curve(
    plot,
    steps.map(at.x),
    steps.map((d) => at.y(of(d))),
    colors.muted,
    { width: 1.5, alpha: 0.6 },
  );
  for (let d = 0; d <= LAST; d++) disc(plot, at.x(d), at.y(of(d)), 3, colors.muted);

  const score = of(far);
  const [x, y] = [at.x(wide ? -0.95 : -1.9), at.y(score)];
  const width = wide ? 22 : 14;
  curve(plot, [x, at.x(far)], [y, y], colors.accent, { width: 1.5, dash: [3, 3] });
  ctx.fillStyle = colors.accent;
  ctx.fillRect(x - width / 2, Math.min(y, at.y(0)), width, Math.abs(y - at.y(0)));
  disc(plot, at.x(far), y, 6, colors.accent);
  const written = { align: "center", bold: true, size: 13, color: colors.accent, halo: true };
  text(plot, said(score), x, y + (score < 0 && score > -0.8 ? 10 : -10), written); // the tick of 0 is below
  text(plot, "score q·k", x - width / 2, 8, { size: 12 });
}
